//! Edits of the source text, addressed through the typed view.
//!
//! An [`Edits`] collects changes and [`Edits::apply`] writes them all into a new text, which is
//! then parsed again. What no edit touches stays byte-identical; what is added follows the
//! indentation around it. The edits themselves are checked for overlaps only: whether the new
//! text makes sense is for the parser and the verifier to say.

use thiserror::Error;

use crate::Span;
use crate::ir::{Base, Body, DirectiveKind, FuncId, Inst, Item, Module, Operand, OperandId, Reg};
use crate::syntax::Kind;
use crate::types::Type;

/// Why edits cannot be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EditError {
    /// Two edits change the same bytes.
    #[error("two edits overlap at bytes {first:?} and {second:?}")]
    Overlap {
        /// One of them.
        first: Span,
        /// The other.
        second: Span,
    },
    /// The span does not lie in the source or cuts a character.
    #[error("bytes {0:?} are no part of the source")]
    Outside(Span),
    /// The function has no body.
    #[error("`{0}` has no body to edit")]
    NoBody(String),
}

/// Changes to the text of one module.
#[derive(Clone, Debug)]
pub struct Edits<'m> {
    module: &'m Module,
    list: Vec<Edit>,
    fresh: u32,
}

#[derive(Clone, Debug)]
struct Edit {
    span: Span,
    text: String,
}

impl<'m> Edits<'m> {
    /// No changes yet.
    pub fn new(module: &'m Module) -> Self {
        Edits {
            module,
            list: Vec::new(),
            fresh: 0,
        }
    }

    /// Have no changes been made?
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The new text. Insertions at one place appear in the order in which they were made, before
    /// what replaces the bytes there.
    ///
    /// # Errors
    /// [`EditError::Overlap`], [`EditError::Outside`].
    pub fn apply(&self) -> Result<String, EditError> {
        let source = &*self.module.source;
        let mut list: Vec<&Edit> = self.list.iter().collect();
        list.sort_by_key(|e| (e.span.start, !e.span.is_empty()));
        let mut out = String::with_capacity(source.len() + source.len() / 8);
        let mut last = Span::default();
        for edit in list {
            let span = edit.span;
            if span.start < last.end {
                return Err(EditError::Overlap {
                    first: last,
                    second: span,
                });
            }
            let kept = last.end as usize..span.start as usize;
            out.push_str(source.get(kept).ok_or(EditError::Outside(span))?);
            out.push_str(&edit.text);
            last = span;
        }
        out.push_str(
            source
                .get(last.end as usize..)
                .ok_or(EditError::Outside(last))?,
        );
        Ok(out)
    }

    // Text.

    /// Replaces the bytes of a span.
    pub fn replace(&mut self, span: Span, text: impl Into<String>) {
        self.list.push(Edit {
            span,
            text: text.into(),
        });
    }

    /// Inserts text before a byte.
    pub fn insert(&mut self, at: u32, text: impl Into<String>) {
        self.replace(Span::point(at), text);
    }

    /// Removes a span; if it stands alone on its line, the line goes with it.
    pub fn delete(&mut self, span: Span) {
        let line = self.whole_line(span).unwrap_or(span);
        self.replace(line, "");
    }

    // Instructions.

    /// Inserts lines before an instruction, after any label in front of it: jumps to the label
    /// run them too.
    pub fn insert_before(&mut self, func: FuncId, inst: Inst, lines: &[String]) {
        if let Some(body) = self.body(func) {
            self.insert_lines_before(body.insts[inst].span.start, lines);
        }
    }

    /// Inserts lines after an instruction. They do not run when it jumps.
    pub fn insert_after(&mut self, func: FuncId, inst: Inst, lines: &[String]) {
        let Some(body) = self.body(func) else { return };
        let span = body.insts[inst].span;
        let indent = self.indent(span.start).unwrap_or("\t");
        let text: String = lines
            .iter()
            .map(|line| format!("\n{indent}{line}"))
            .collect();
        self.insert(self.end_of_line_trivia(span.end), text);
    }

    /// Inserts lines that run once at the start of the function, before its first instruction or
    /// label.
    ///
    /// # Errors
    /// [`EditError::NoBody`].
    pub fn insert_at_entry(&mut self, func: FuncId, lines: &[String]) -> Result<(), EditError> {
        let body = self.need_body(func)?;
        let at = body.items.iter().find_map(|item| match *item {
            Item::Inst(inst) => Some(body.insts[inst].span.start),
            Item::Label(label) => Some(body.labels[label].span.start),
            Item::Open(scope) => Some(body.scopes[scope].span.start),
            _ => None,
        });
        self.insert_lines_before(at.unwrap_or(body.span.end.saturating_sub(1)), lines);
        Ok(())
    }

    /// Replaces an instruction by lines; by none, it is removed with its line.
    pub fn replace_by_lines(&mut self, func: FuncId, inst: Inst, lines: &[String]) {
        let Some(body) = self.body(func) else { return };
        let span = body.insts[inst].span;
        let separator = match self.indent(span.start) {
            Some(indent) => format!("\n{indent}"),
            None => " ".to_owned(),
        };
        match lines.is_empty() {
            true => self.delete(span),
            false => self.replace(span, lines.join(&separator)),
        }
    }

    /// Removes an instruction.
    pub fn delete_inst(&mut self, func: FuncId, inst: Inst) {
        if let Some(body) = self.body(func) {
            self.delete(body.insts[inst].span);
        }
    }

    // Registers and variables.

    /// A name that stands nowhere in the source and was not given out before: `prefix` and a
    /// number.
    pub fn fresh_name(&mut self, prefix: &str) -> String {
        loop {
            let name = format!("{prefix}{}", self.fresh);
            self.fresh += 1;
            if memchr::memmem::find(self.module.source.as_bytes(), name.as_bytes()).is_none() {
                return name;
            }
        }
    }

    /// Declares a register at the top of a function's body.
    ///
    /// # Errors
    /// [`EditError::NoBody`].
    pub fn add_register(&mut self, func: FuncId, ty: Type, name: &str) -> Result<(), EditError> {
        self.add_declaration(func, &format!(".reg {ty} {name};"))
    }

    /// Declares a range of registers `prefix0 … prefix(count - 1)` at the top of a body.
    ///
    /// # Errors
    /// [`EditError::NoBody`].
    pub fn add_registers(
        &mut self,
        func: FuncId,
        ty: Type,
        prefix: &str,
        count: u32,
    ) -> Result<(), EditError> {
        self.add_declaration(func, &format!(".reg {ty} {prefix}<{count}>;"))
    }

    /// Declares an array of `bytes` bytes in shared memory at the top of a body.
    ///
    /// # Errors
    /// [`EditError::NoBody`].
    pub fn add_shared_variable(
        &mut self,
        func: FuncId,
        name: &str,
        align: u32,
        bytes: u64,
    ) -> Result<(), EditError> {
        self.add_declaration(
            func,
            &format!(".shared .align {align} .b8 {name}[{bytes}];"),
        )
    }

    /// Adds a declaration, with its `;`, at the top of a function's body.
    ///
    /// # Errors
    /// [`EditError::NoBody`].
    pub fn add_declaration(&mut self, func: FuncId, text: &str) -> Result<(), EditError> {
        let body = self.need_body(func)?;
        let first = body.items.iter().find_map(|item| match *item {
            Item::Regs(decl) => Some(body.reg_decls[decl].span.start),
            Item::Inst(inst) => Some(body.insts[inst].span.start),
            _ => None,
        });
        let indent = first.and_then(|at| self.indent(at)).unwrap_or("\t");
        self.insert(body.span.start + 1, format!("\n{indent}{text}"));
        Ok(())
    }

    /// Renames a register in one instruction, wherever it stands there (guard included).
    pub fn rename_in(&mut self, func: FuncId, inst: Inst, reg: Reg, name: &str) {
        let Some(body) = self.body(func) else { return };
        for place in places_of(self.module, body, inst, reg) {
            self.replace(place, name);
        }
    }

    // Directives of a function's head.

    /// Sets a directive of a function: it takes the place of one of its kind, or is added after
    /// the others. A `.pragma` is added at the top of the body, where ptxas takes all of them
    /// (it refuses `enable_smem_spilling` before the body), unless its strings are there already.
    pub fn set_directive(&mut self, func: FuncId, kind: &DirectiveKind) {
        let Some(function) = self.module.functions.get(func) else {
            return;
        };
        if let DirectiveKind::Pragma(strings) = kind {
            let known: Vec<&str> = function.all_pragmas().collect();
            if strings.iter().any(|s| !known.contains(&s.as_str())) {
                // A function without a body has no place for it, and no use.
                let _: Result<(), EditError> = self.add_declaration(func, &kind.to_string());
            }
            return;
        }
        if let Some(old) = function
            .directives
            .iter()
            .find(|d| same_kind(&d.kind, kind))
        {
            self.replace(old.span, kind.to_string());
            return;
        }
        self.insert(function.head_span.end, format!("\n{kind}"));
    }

    // Lines and indentation.

    fn body(&self, func: FuncId) -> Option<&'m Body> {
        self.module.functions.get(func)?.body.as_ref()
    }

    fn need_body(&self, func: FuncId) -> Result<&'m Body, EditError> {
        let name = || self.module.functions.get(func).map(|f| f.name.to_string());
        self.body(func)
            .ok_or_else(|| EditError::NoBody(name().unwrap_or_default()))
    }

    fn insert_lines_before(&mut self, at: u32, lines: &[String]) {
        let separator = match self.indent(at) {
            Some(indent) => format!("\n{indent}"),
            None => " ".to_owned(),
        };
        let text: String = lines
            .iter()
            .map(|line| format!("{line}{separator}"))
            .collect();
        self.insert(at, text);
    }

    /// The white space before `at` on its line, if nothing else stands there.
    fn indent(&self, at: u32) -> Option<&'m str> {
        let before = self.module.source.get(..at as usize)?;
        let line = before.rfind('\n').map_or(0, |n| n + 1);
        let indent = &before[line..];
        indent
            .bytes()
            .all(|b| b == b' ' || b == b'\t')
            .then_some(indent)
    }

    /// The end of the white space and comment that follow on the same line, or `end` if
    /// something else follows.
    fn end_of_line_trivia(&self, end: u32) -> u32 {
        let tiles = &self.module.syntax.tiles;
        let from = tiles.partition_point(|t| t.span.start < end);
        let mut at = end;
        for tile in &tiles[from..] {
            let text = self.module.text(tile.span);
            match tile.kind {
                Kind::Space => match text.find('\n') {
                    Some(_) => return at,
                    None => continue,
                },
                Kind::LineComment => at = tile.span.end,
                Kind::BlockComment if !text.contains('\n') => at = tile.span.end,
                Kind::Eof => return at,
                _ => return end,
            }
        }
        at
    }

    /// The line of a span with its line break, if nothing else stands on it.
    fn whole_line(&self, span: Span) -> Option<Span> {
        let indent = self.indent(span.start)?;
        let rest = self.module.source.get(span.end as usize..)?;
        let line_end = rest.find('\n')?;
        let blank = rest[..line_end].bytes().all(|b| b.is_ascii_whitespace());
        let start = span.start - indent.len() as u32;
        blank.then(|| Span::new(start, span.end + line_end as u32 + 1))
    }
}

/// Where an instruction names a register, guard included, without the selectors behind it.
pub(crate) fn places_of(module: &Module, body: &Body, inst: Inst, reg: Reg) -> Vec<Span> {
    let data = body.insts[inst];
    let mut places = Vec::new();
    if data.guard.is_some_and(|g| g.reg == reg) {
        let guard = Span::new(data.span.start, data.opcode_span.start);
        places.extend(first_word(module, guard));
    }
    for id in data.operands.ids() {
        places.extend(places_in(module, body, id, reg));
    }
    places
}

/// Where an operand names a register, without the selectors behind it.
pub(crate) fn places_in(module: &Module, body: &Body, operand: OperandId, reg: Reg) -> Vec<Span> {
    let mut places = Vec::new();
    let mut work = vec![operand];
    while let Some(id) = work.pop() {
        match body.operands[id] {
            Operand::Vector(inner)
            | Operand::List(inner)
            | Operand::Pair(inner)
            | Operand::MemTuple(inner) => work.extend(inner.ids()),
            _ if refers_to(body, id, reg) => {
                places.extend(first_word(module, body.operand_spans[id]));
            }
            _ => {}
        }
    }
    places
}

/// The first word in a span, up to its selector.
fn first_word(module: &Module, within: Span) -> Option<Span> {
    let tiles = &module.syntax.tiles;
    let from = tiles.partition_point(|t| t.span.start < within.start);
    let mut inside = tiles[from..]
        .iter()
        .take_while(|t| t.span.end <= within.end);
    let word = inside.find(|t| t.kind == Kind::Word)?;
    let text = module.text(word.span);
    let length = text.find('.').unwrap_or(text.len()) as u32;
    Some(Span::new(word.span.start, word.span.start + length))
}

/// Does an operand itself (not a part of it) name the register?
fn refers_to(body: &Body, id: OperandId, reg: Reg) -> bool {
    match body.operands[id] {
        Operand::Reg(r) | Operand::Not(r) | Operand::Neg(r) => r == reg,
        Operand::Select { reg: r, .. } | Operand::Sum { reg: r, .. } => r == reg,
        Operand::Mem(address) => address.base == Base::Reg(reg),
        _ => false,
    }
}

/// Do two directives set the same thing? The two names of one limit count as the same.
fn same_kind(a: &DirectiveKind, b: &DirectiveKind) -> bool {
    use DirectiveKind::{MaxNctaPerSm, MinNctaPerSm, Unknown};
    match (a, b) {
        (Unknown(a), Unknown(b)) => a == b,
        (MinNctaPerSm(_) | MaxNctaPerSm(_), MinNctaPerSm(_) | MaxNctaPerSm(_)) => true,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Dims;

    const SOURCE: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .visible .entry k(\n\t.param .u64 p\n)\n.maxntid 128, 1, 1\n{\n\
        \t.reg .pred %p<2>;\n\t.reg .b32 %r<4>, t;\n\n\
        \tmov.u32 \t%r1, %tid.x; // thread\n\
        $L1: add.s32 %r2, %r1, %r1;\n\
        \t@%p1 bra $L1;\n\tst.global.u32 [%r1+4], %r2; ret;\n}\n";

    fn module() -> Module {
        let (module, diagnostics) = Module::parse("k.ptx", SOURCE);
        assert_eq!(diagnostics, []);
        module
    }

    fn edited(edit: impl FnOnce(&mut Edits<'_>, FuncId)) -> String {
        let module = module();
        let mut edits = Edits::new(&module);
        edit(&mut edits, FuncId::from_u32(0));
        let text = edits.apply().unwrap();
        let (again, diagnostics) = Module::parse("k.ptx", &text);
        assert_eq!(diagnostics, [], "{text}");
        assert_eq!(again.print().unwrap(), text);
        text
    }

    #[test]
    fn no_edit_changes_nothing() {
        assert_eq!(edited(|_, _| {}), SOURCE);
    }

    #[test]
    fn lines_follow_the_indentation_and_leave_comments_in_place() {
        let line = ["mov.u32 t, 1;".to_owned()];
        let text = edited(|e, f| {
            e.insert_after(f, Inst::from_u32(0), &line);
            e.insert_before(f, Inst::from_u32(2), &line);
        });
        assert!(
            text.contains("%tid.x; // thread\n\tmov.u32 t, 1;\n$L1"),
            "{text}"
        );
        assert!(text.contains("\tmov.u32 t, 1;\n\t@%p1 bra"), "{text}");
        let text = edited(|e, f| e.insert_before(f, Inst::from_u32(1), &line));
        assert!(text.contains("$L1: mov.u32 t, 1; add.s32"), "{text}");
    }

    #[test]
    fn entry_code_comes_before_the_first_label() {
        let source = ".version 8.0\n.target sm_90\n.func f() {\nL: bra L;\n}\n";
        let (module, _) = Module::parse("f.ptx", source);
        let mut edits = Edits::new(&module);
        edits
            .insert_at_entry(FuncId::from_u32(0), &["bar.sync 0;".to_owned()])
            .unwrap();
        assert!(edits.apply().unwrap().contains("{\nbar.sync 0;\nL: bra L;"));
    }

    #[test]
    fn directives_are_replaced_or_added_once() {
        let text = edited(|e, f| {
            let block = Dims([256, 2].into_iter().collect());
            let pragma = DirectiveKind::Pragma(vec!["enable_smem_spilling".to_owned()]);
            for kind in [
                DirectiveKind::MaxNtid(block),
                DirectiveKind::MinNctaPerSm(3),
                pragma,
            ] {
                e.set_directive(f, &kind);
            }
        });
        let head =
            ")\n.maxntid 256, 2\n.minnctapersm 3\n{\n\t.pragma \"enable_smem_spilling\";\n\t.reg";
        assert!(text.contains(head), "{text}");
    }

    #[test]
    fn shared_variables_and_deletions() {
        let text = edited(|e, f| {
            e.add_shared_variable(f, "spill", 16, 1024).unwrap();
            e.delete_inst(f, Inst::from_u32(0));
            e.replace_by_lines(
                f,
                Inst::from_u32(3),
                &["st.shared.u32 [spill+4], %r2;".to_owned()],
            );
        });
        assert!(
            text.contains("{\n\t.shared .align 16 .b8 spill[1024];\n"),
            "{text}"
        );
        assert!(!text.contains("%tid.x"));
        assert!(text.contains("[spill+4], %r2; ret;"), "{text}");
    }

    #[test]
    fn overlaps_are_refused() {
        let module = module();
        let mut edits = Edits::new(&module);
        edits.replace(Span::new(3, 8), "a");
        edits.replace(Span::new(5, 9), "b");
        assert!(matches!(edits.apply(), Err(EditError::Overlap { .. })));
        let mut edits = Edits::new(&module);
        edits.insert(1 << 20, "x");
        assert!(matches!(edits.apply(), Err(EditError::Outside(_))));
    }

    #[test]
    fn fresh_names_are_nowhere_in_the_source() {
        let module = module();
        let mut edits = Edits::new(&module);
        assert_eq!(edits.fresh_name("%r"), "%r0");
        assert_eq!(edits.fresh_name("%r"), "%r3");
    }
}
