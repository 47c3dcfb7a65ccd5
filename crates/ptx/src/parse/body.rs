//! Function bodies: scopes, declarations, labels and directives.

use std::mem;

use cranelift_entity::packed_option::PackedOption;

use super::decl::Specifiers;
use super::ranged::Ranged;
use super::resolve::{Deferred, Place};
use super::{Failed, MAX_NESTING, Parse, Parser};
use crate::Span;
use crate::ir::{
    Body, BranchTableData, CallTableData, FuncId, Inlined, Item, LabelData, Loc, LocId, Operand,
    OperandId, PrototypeData, RegData, RegDecl, Scope, ScopeData,
};
use crate::names::Entity;
use crate::syntax::Kind;
use crate::types::Space;

/// The function that is being built.
#[derive(Default)]
pub(super) struct Work {
    pub body: Body,
    pub scope: Scope0,
    pub loc: PackedOption<LocId>,
    /// Operands of the instruction on the way: the lists that are not finished.
    pub stack: Vec<(Operand, Span)>,
    /// Operands on the stack that wait for a name: index and name.
    pub waiting: Vec<(usize, Span)>,
    pub deferred: Vec<Deferred>,
    /// Registers of ranges that were used so far.
    pub ranged: Ranged,
}

/// The current scope; the default is the body itself.
pub(super) struct Scope0(pub Scope);

impl Default for Scope0 {
    fn default() -> Self {
        Scope0(Scope::from_u32(0))
    }
}

/// An open `{`.
struct Open {
    scope: Scope,
    /// Length of the deferred list when it opened.
    mark: usize,
}

impl<'s> Parser<'s> {
    /// Starts a function (its parameters may declare registers).
    pub(super) fn begin_body(&mut self) {
        self.work = Work::default();
    }

    /// `{ … }`; never fails, since it recovers from errors in statements.
    pub(super) fn body(&mut self, func: FuncId) -> Body {
        let start = self.span().start;
        self.reserve_body();
        let mut open = vec![self.open_scope(None)];
        while let Some(current) = open.last() {
            match self.kind() {
                Kind::LBrace if open.len() as u32 >= MAX_NESTING => self.too_deep(),
                Kind::LBrace => {
                    let scope = self.open_scope(Some(current.scope));
                    open.push(scope);
                }
                Kind::RBrace | Kind::Eof => {
                    if self.kind() == Kind::Eof {
                        self.unclosed(current.scope);
                    }
                    if let Some(closed) = open.pop() {
                        self.close_scope(closed, open.last().map(|o| o.scope));
                    }
                }
                Kind::Dotted if self.at_top_level_directive() => {
                    self.unclosed(current.scope);
                    while let Some(closed) = open.pop() {
                        self.close_scope(closed, open.last().map(|o| o.scope));
                    }
                }
                _ => self.statement(func),
            }
        }
        for deferred in mem::take(&mut self.work.deferred) {
            self.unresolved.push((func, deferred));
        }
        let mut body = mem::take(&mut self.work.body);
        super::ranged::order(&mut body);
        body.span = self.since(start);
        body
    }

    /// Makes room for what the body will hold, counted ahead: growing by doubling copies all of
    /// it several times.
    fn reserve_body(&mut self) {
        let (mut semis, mut commas, mut others) = (0, 0, 0);
        let mut depth = 0u32;
        let ahead = self.tiles[self.at..].iter().take(self.count_budget);
        let mut counted = 0;
        for tile in ahead {
            counted += 1;
            match tile.kind {
                Kind::Semi => semis += 1,
                Kind::Comma => commas += 1,
                Kind::Colon => others += 1,
                Kind::LBrace => depth += 1,
                Kind::RBrace => {
                    others += 1;
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        // Unclosed bodies would be counted again and again.
        self.count_budget -= counted;
        let body = &mut self.work.body;
        body.insts.reserve(semis);
        body.items.reserve(semis + others);
        body.operands.reserve(semis + commas + others);
        body.operand_spans.reserve(semis + commas + others);
    }

    fn open_scope(&mut self, parent: Option<Scope>) -> Open {
        let span = self.bump().span;
        self.names.open();
        let scope = self.work.body.scopes.push(ScopeData {
            parent,
            span,
            close: Span::point(span.end),
        });
        self.work.scope = Scope0(scope);
        if parent.is_some() {
            self.work.body.items.push(Item::Open(scope));
        }
        Open {
            scope,
            mark: self.work.deferred.len(),
        }
    }

    /// Consumes the `}` if there is one, and resolves what the scope's labels can resolve.
    fn close_scope(&mut self, closed: Open, parent: Option<Scope>) {
        let brace = self.span();
        let close = match self.eat(Kind::RBrace) {
            true => brace,
            false => Span::point(self.last_end),
        };
        let data = &mut self.work.body.scopes[closed.scope];
        data.close = close;
        data.span.end = self.last_end.max(data.span.end);
        if let Some(parent) = parent {
            self.work.body.items.push(Item::Close(closed.scope));
            self.work.scope = Scope0(parent);
        }
        let inner = self
            .work
            .deferred
            .split_off(closed.mark.min(self.work.deferred.len()));
        let depth = self.names.depth();
        for deferred in inner {
            let found = self.names.find(deferred.name.text(self.source));
            match found.filter(|f| f.depth == depth) {
                Some(found) => {
                    let mut body = mem::take(&mut self.work.body);
                    let done = self.fill_in(&mut body, &deferred, found.entity);
                    self.work.body = body;
                    done.unwrap_or_else(Failed::ignore);
                }
                None => self.work.deferred.push(deferred),
            }
        }
        self.names.close();
    }

    fn unclosed(&mut self, scope: Scope) {
        let open = Span::point(self.work.body.scopes[scope].span.start);
        let open = Span::new(open.start, open.start + 1);
        let result: Parse<()> =
            self.fail("ptx::syntax", "a `{` is never closed", open, "opened here");
        result.unwrap_or_else(Failed::ignore);
    }

    fn too_deep(&mut self) {
        let start = self.span().start;
        let result: Parse<()> = self.fail(
            "ptx::nesting",
            format!("scopes nested more than {MAX_NESTING} levels deep"),
            self.span(),
            "this level is too deep",
        );
        result.unwrap_or_else(Failed::ignore);
        self.skip_pair(Kind::LBrace, Kind::RBrace);
        let span = self.since(start);
        self.work.body.items.push(Item::Unknown(span));
    }

    /// One statement; an error skips to its end.
    #[inline]
    fn statement(&mut self, func: FuncId) {
        let start = self.span().start;
        let result = match self.kind() {
            Kind::Word | Kind::At => self.instruction_or_label(func),
            Kind::Dotted => self.body_directive(func),
            Kind::Semi => {
                self.bump();
                let span = self.since(start);
                self.work.body.items.push(Item::Unknown(span));
                Ok(())
            }
            _ => self.expected("an instruction, label or declaration"),
        };
        if let Err(failed) = result {
            failed.ignore();
            self.nesting = 0;
            self.work.stack.clear();
            self.work.waiting.clear();
            self.recover();
            // Always get on, whatever the statement was.
            if self.last_end <= start && !matches!(self.kind(), Kind::Eof | Kind::RBrace) {
                self.bump();
            }
            let span = self.since(start);
            if !span.is_empty() {
                self.work.body.items.push(Item::Unknown(span));
            }
        }
    }

    fn instruction_or_label(&mut self, func: FuncId) -> Parse<()> {
        if self.kind() == Kind::Word {
            let next = self.tiles[self.at + 1].kind;
            let is_label =
                next == Kind::Colon || (next.is_trivia() && self.kind_after() == Kind::Colon);
            if is_label {
                return self.label(func);
            }
        }
        self.instruction()
    }

    /// `name:`, or a table: `name: .branchtargets …;`
    fn label(&mut self, func: FuncId) -> Parse<()> {
        let name = self.bump().span;
        self.bump();
        if self.kind() == Kind::Dotted {
            match self.text() {
                ".branchtargets" => return self.branch_table(name),
                ".calltargets" => return self.call_table(name),
                ".callprototype" => return self.call_prototype(name, func),
                _ => {}
            }
        }
        let body = &mut self.work.body;
        let at = body.insts.next_key();
        let span = Span::new(name.start, self.last_end);
        let data = LabelData {
            name: name.text(self.source).into(),
            at,
            scope: self.work.scope.0,
            span,
        };
        let label = body.labels.push(data);
        body.items.push(Item::Label(label));
        self.declare_here(name, Entity::Label(label))
    }

    fn declare_here(&mut self, name: Span, entity: Entity) -> Parse<()> {
        if let Err(first) = self.names.declare(name.text(self.source), entity, name) {
            // The statement itself is sound: nothing to skip.
            let reported: Parse<()> = self.duplicate(name, first);
            reported.unwrap_or_else(Failed::ignore);
        }
        Ok(())
    }

    fn branch_table(&mut self, name: Span) -> Parse<()> {
        self.bump();
        let names = self.word_list()?;
        let table = self.work.body.branch_tables.push(BranchTableData {
            name: self.name(name),
            targets: vec![None; names.len()],
            span: self.since(name.start),
        });
        self.work.body.items.push(Item::BranchTable(table));
        for (i, &target) in names.iter().enumerate() {
            let place = Place::Branch(table, i as u32);
            self.work.deferred.push(Deferred {
                name: target,
                place,
            });
        }
        self.declare_here(name, Entity::BranchTable(table))
    }

    fn call_table(&mut self, name: Span) -> Parse<()> {
        self.bump();
        let names = self.word_list()?;
        let table = self.work.body.call_tables.push(CallTableData {
            name: self.name(name),
            targets: vec![None; names.len()],
            span: self.since(name.start),
        });
        self.work.body.items.push(Item::CallTable(table));
        for (i, &target) in names.iter().enumerate() {
            let place = Place::Call(table, i as u32);
            self.work.deferred.push(Deferred {
                name: target,
                place,
            });
        }
        self.declare_here(name, Entity::CallTable(table))
    }

    /// `a, b, c;`
    fn word_list(&mut self) -> Parse<Vec<Span>> {
        let mut names = vec![self.expect(Kind::Word, "a name")?.span];
        while self.eat(Kind::Comma) {
            names.push(self.expect(Kind::Word, "a name")?.span);
        }
        self.expect(Kind::Semi, "`,` or `;`")?;
        Ok(names)
    }

    /// `name: .callprototype (returns) _ (params) directives;`
    fn call_prototype(&mut self, name: Span, func: FuncId) -> Parse<()> {
        self.bump();
        let returns = match self.kind() {
            Kind::LParen => self.prototype_params(func)?,
            _ => Vec::new(),
        };
        self.expect(Kind::Word, "`_`")?;
        let params = match self.kind() {
            Kind::LParen => self.prototype_params(func)?,
            _ => Vec::new(),
        };
        let directives = self.head_directives()?;
        self.expect(Kind::Semi, "`;` after the prototype")?;
        let span = self.since(name.start);
        let data = PrototypeData {
            name: self.name(name),
            returns,
            params,
            directives,
            span,
        };
        let prototype = self.work.body.prototypes.push(data);
        self.work.body.items.push(Item::Prototype(prototype));
        self.declare_here(name, Entity::Prototype(prototype))
    }

    fn body_directive(&mut self, func: FuncId) -> Parse<()> {
        let start = self.span().start;
        match self.text() {
            ".loc" => self.loc(),
            ".pragma" => {
                let strings = self.pragma()?;
                let span = self.since(start);
                self.work.body.items.push(Item::Pragma(strings, span));
                Ok(())
            }
            ".file" => {
                self.file()?;
                self.keep(start)
            }
            ".section" => {
                self.section()?;
                self.keep(start)
            }
            _ => {
                let spec = self.specifiers()?;
                match spec.space {
                    Some(Space::Reg) => self.registers(&spec),
                    Some(_) => {
                        for id in self.variables(&spec, Some(func))? {
                            self.work.body.vars.push(id);
                            self.work.body.items.push(Item::Var(id));
                        }
                        Ok(())
                    }
                    None => self.unknown_in_body(start),
                }
            }
        }
    }

    /// Keeps a statement as text.
    fn keep(&mut self, start: u32) -> Parse<()> {
        let span = self.since(start);
        self.work.body.items.push(Item::Unknown(span));
        Ok(())
    }

    fn unknown_in_body(&mut self, start: u32) -> Parse<()> {
        if self.kind() != Kind::Dotted || self.span().start != start {
            return self.expected("a state space such as `.shared`");
        }
        let span = self.span();
        let message = format!("unknown directive `{}`", super::shorten(self.text()));
        self.report(
            crate::Diagnostic::warning("ptx::directive", message).label(span, "kept as it is"),
        );
        self.skip_unknown_directive();
        self.keep(start)
    }

    /// `.reg .b32 a, %r<10>;`
    fn registers(&mut self, spec: &Specifiers) -> Parse<()> {
        let Some(ty) = spec.ty else {
            return self.expected("a type such as `.b32`");
        };
        let first_decl = self.work.body.reg_decls.next_key();
        loop {
            let name = self.expect(Kind::Word, "a register name")?.span;
            let count = match self.eat(Kind::Less) {
                true => {
                    let count = self.range_size()?;
                    self.expect(Kind::Greater, "`>`")?;
                    Some(count)
                }
                false => None,
            };
            self.declare_registers(spec, ty, name, count)?;
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Semi, "`,` or `;` after the registers")?;
        let span = self.since(spec.start);
        let decls = first_decl.as_u32()..self.work.body.reg_decls.next_key().as_u32();
        for decl in decls.map(crate::ir::RegDeclId::from_u32) {
            self.work.body.reg_decls[decl].span = span;
            self.work.body.items.push(Item::Regs(decl));
        }
        Ok(())
    }

    fn declare_registers(
        &mut self,
        spec: &Specifiers,
        ty: crate::types::Type,
        name: Span,
        count: Option<u32>,
    ) -> Parse<()> {
        let body = &mut self.work.body;
        let decl = body.reg_decls.push(RegDecl {
            base: name.text(self.source).into(),
            count,
            ty,
            vector: spec.vector.unwrap_or(1),
            scope: self.work.scope.0,
            span: name,
            name_span: name,
        });
        let entity = match count {
            Some(count) => Entity::Range { decl, count },
            None => Entity::Reg(body.regs.push(RegData::new(ty, decl, None))),
        };
        self.declare_here(name, entity)
    }

    /// `.loc file line column [, function_name label [+ n], inlined_at file line column]`
    fn loc(&mut self) -> Parse<()> {
        let start = self.bump().span.start;
        let (file, line, column) = (self.integer32()?, self.integer32()?, self.integer32()?);
        let inlined = match self.kind() == Kind::Comma {
            true => Some(self.inlined()?),
            false => None,
        };
        let span = self.since(start);
        let id = self.work.body.locs.push(Loc {
            file,
            line,
            column,
            inlined,
            span,
        });
        self.work.body.items.push(Item::Loc(id));
        self.work.loc = id.into();
        Ok(())
    }

    fn inlined(&mut self) -> Parse<Inlined> {
        let mut function_name = "".into();
        let mut name_offset = 0;
        let mut site = (0, 0, 0);
        while self.eat(Kind::Comma) {
            match self.text() {
                "function_name" => {
                    self.bump();
                    let name = self.expect(Kind::Word, "the label of a function's name")?;
                    function_name = self.name(name.span);
                    name_offset = self.offset()? as u64;
                }
                "inlined_at" => {
                    self.bump();
                    site = (self.integer32()?, self.integer32()?, self.integer32()?);
                }
                _ => return self.expected("`function_name` or `inlined_at`"),
            }
        }
        let (file, line, column) = site;
        Ok(Inlined {
            function_name,
            name_offset,
            file,
            line,
            column,
        })
    }

    /// Puts the operands above `mark` into the arena, in order.
    #[inline]
    pub(super) fn flush(&mut self, mark: usize) -> crate::ir::OperandList {
        let work = &mut self.work;
        let start = work.body.operands.next_key().as_u32();
        for &(operand, span) in &work.stack[mark..] {
            work.body.operands.push(operand);
            work.body.operand_spans.push(span);
        }
        while let Some(&(index, name)) = work.waiting.last()
            && index >= mark
        {
            work.waiting.pop();
            let id = OperandId::from_u32(start + (index - mark) as u32);
            work.deferred.push(Deferred {
                name,
                place: Place::Operand(id),
            });
        }
        let len = (work.stack.len() - mark) as u32;
        work.stack.truncate(mark);
        crate::ir::OperandList { start, len }
    }
}
