//! Functions: parameters and directives; bodies are parsed in `body.rs`.

use smallvec::SmallVec;

use super::decl::Specifiers;
use super::{Failed, Parse, Parser};
use crate::Diagnostic;
use crate::Span;
use crate::ir::{
    Dims, Directive, DirectiveKind, FuncId, Function, FunctionKind, Linkage, Param, RegData,
    RegDecl, Scope, TopItem,
};
use crate::names::Entity;
use crate::syntax::Kind;
use crate::types::Space;

impl<'s> Parser<'s> {
    /// From `.entry` or `.func` to the end of the body or the `;`.
    pub(super) fn function(&mut self, spec: Specifiers, kind: FunctionKind) -> Parse<()> {
        self.bump();
        // Attributes may stand on either side of `.func`.
        let more = self.specifiers()?;
        let mut attributes = spec.attributes;
        attributes.extend(more.attributes);
        let linkage = if more.linkage == Linkage::Local {
            spec.linkage
        } else {
            more.linkage
        };

        self.begin_body();
        let owner = self.module.functions.next_key();
        let returns = match self.kind() {
            Kind::LParen => self.params(owner)?,
            _ => Vec::new(),
        };
        let name = self.expect(Kind::Word, "the function's name")?;
        let params = match self.kind() {
            Kind::LParen => self.params(owner)?,
            _ => Vec::new(),
        };
        let directives = self.head_directives()?;
        let head_span = self.since(spec.start);
        let function = Function {
            name: self.name(name.span),
            kind,
            linkage,
            attributes,
            params,
            returns,
            directives,
            body: None,
            span: head_span,
            head_span,
            name_span: name.span,
        };
        match self.kind() {
            Kind::LBrace => self.define(function),
            Kind::Semi => {
                self.bump();
                self.declare(function)
            }
            // ptxas takes prototypes of device functions without their `;`.
            _ if kind == FunctionKind::Func && self.at_end_of_head() => self.declare(function),
            _ => self.expected("`{`, `;` or a directive of the function"),
        }
    }

    /// Behind the head of a function without a body, and its `;`.
    fn declare(&mut self, mut function: Function) -> Parse<()> {
        let span = self.since(function.span.start);
        function.span = span;
        let linkage = function.linkage;
        let (returns, params) = (function.returns.clone(), function.params.clone());
        let directives = function.directives.clone();
        let func = self.enter_function(function, false)?;
        self.module.items.push(TopItem::Declare {
            func,
            linkage,
            returns,
            params,
            directives,
            span,
        });
        Ok(())
    }

    /// At the `{` of a body.
    fn define(&mut self, function: Function) -> Parse<()> {
        let start = function.span.start;
        let params = [&function.returns[..], &function.params[..]].concat();
        let func = self.enter_function(function, true)?;
        self.names.open();
        for param in &params {
            self.declare_param(param);
        }
        let body = self.body(func);
        self.names.close();
        let span = self.since(start);
        let function = &mut self.module.functions[func];
        function.body = Some(body);
        function.span = span;
        self.module.items.push(TopItem::Define(func));
        Ok(())
    }

    fn declare_param(&mut self, param: &Param) {
        let span = self.module.variables[param.var].name_span;
        let entity = param.reg.map_or(Entity::Var(param.var), Entity::Reg);
        let name = span.text(self.source);
        // `_` stands for a parameter without a name.
        if name == "_" {
            return;
        }
        if let Err(first) = self.names.declare(name, entity, span) {
            let reported: Parse<()> = self.duplicate(span, first);
            reported.unwrap_or_else(Failed::ignore);
        }
    }

    /// Enters a function into the module. A definition takes the place of its declarations.
    fn enter_function(&mut self, function: Function, is_definition: bool) -> Parse<FuncId> {
        let name = function.name_span.text(self.source);
        let span = function.name_span;
        let old = match self.names.find(name).map(|f| f.entity) {
            None => {
                let func = self.module.functions.push(function);
                // The name was not found, so it is free.
                let free = self.names.declare(name, Entity::Func(func), span);
                debug_assert!(free.is_ok());
                return Ok(func);
            }
            Some(Entity::Func(old)) => old,
            Some(_) => return self.duplicate_function(name, span, None),
        };
        let known = &mut self.module.functions[old];
        if is_definition && known.body.is_some() {
            let first = known.name_span;
            return self.duplicate_function(name, span, Some(first));
        }
        if is_definition {
            for param in function.params.iter().chain(&function.returns) {
                self.module.variables[param.var].owner = Some(old);
            }
            *known = function;
        }
        Ok(old)
    }

    fn duplicate_function<T>(&mut self, name: &str, span: Span, first: Option<Span>) -> Parse<T> {
        let message = format!("`{name}` is defined twice");
        let mut diagnostic =
            Diagnostic::error("ptx::duplicate", message).label(span, "defined again here");
        if let Some(first) = first.or_else(|| self.names.span_of(name)) {
            diagnostic = diagnostic.label(first, "first defined here");
        }
        self.report(diagnostic);
        Err(Failed)
    }

    /// `(param, param, …)`; their names are declared once the function's scope is open.
    fn params(&mut self, owner: FuncId) -> Parse<Vec<Param>> {
        self.bump();
        let mut params = Vec::new();
        while self.kind() != Kind::RParen {
            params.push(self.param(owner)?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RParen, "`,` or `)` after a parameter")?;
        Ok(params)
    }

    fn param(&mut self, owner: FuncId) -> Parse<Param> {
        let spec = self.specifiers()?;
        let variable = self.variable(&spec, Some(owner))?;
        let (span, ty, space) = (variable.name_span, variable.ty, variable.space);
        let vector = variable.vector;
        let whole = variable.span;
        let var = self.module.variables.push(variable);
        let reg = (space == Space::Reg).then(|| {
            let decl = self.work.body.reg_decls.push(RegDecl {
                base: self.name(span),
                count: None,
                ty,
                vector,
                scope: Scope::from_u32(0),
                span: whole,
                name_span: span,
            });
            self.work.body.regs.push(RegData::new(ty, decl, None))
        });
        Ok(Param { var, reg })
    }

    /// The parameter list of a `.callprototype`: nothing is declared.
    pub(super) fn prototype_params(&mut self, owner: FuncId) -> Parse<Vec<crate::ir::VarId>> {
        self.expect(Kind::LParen, "`(`")?;
        let mut params = Vec::new();
        while self.kind() != Kind::RParen {
            let spec = self.specifiers()?;
            let variable = self.variable(&spec, Some(owner))?;
            params.push(self.module.variables.push(variable));
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RParen, "`,` or `)` after a parameter")?;
        Ok(params)
    }

    /// The directives between the parameters and the body.
    pub(super) fn head_directives(&mut self) -> Parse<Vec<Directive>> {
        let mut directives = Vec::new();
        while self.kind() == Kind::Dotted && !self.at_end_of_head() {
            let start = self.span().start;
            let kind = self.head_directive()?;
            directives.push(Directive {
                kind,
                span: self.since(start),
            });
        }
        Ok(directives)
    }

    /// Does something else begin here, or the file end?
    fn at_end_of_head(&self) -> bool {
        match self.kind() {
            Kind::Eof => true,
            Kind::Dotted => self.begins_top_item() || matches!(self.text(), ".shared" | ".alias"),
            _ => false,
        }
    }

    fn head_directive(&mut self) -> Parse<DirectiveKind> {
        let name = self.text();
        if name == ".pragma" {
            return self.pragma().map(DirectiveKind::Pragma);
        }
        let start = self.bump().span.start;
        Ok(match name {
            ".maxntid" => DirectiveKind::MaxNtid(self.dims()?),
            ".reqntid" => DirectiveKind::ReqNtid(self.dims()?),
            ".minnctapersm" => DirectiveKind::MinNctaPerSm(self.integer32()?),
            ".maxnctapersm" => DirectiveKind::MaxNctaPerSm(self.integer32()?),
            ".maxnreg" => DirectiveKind::MaxNreg(self.integer32()?),
            ".reqnctapercluster" => DirectiveKind::ReqNctaPerCluster(self.dims()?),
            ".explicitcluster" => DirectiveKind::ExplicitCluster,
            ".maxclusterrank" => DirectiveKind::MaxClusterRank(self.integer32()?),
            ".blocksareclusters" => DirectiveKind::BlocksAreClusters,
            ".noreturn" => DirectiveKind::NoReturn,
            ".abi_preserve" => DirectiveKind::AbiPreserve(self.integer32()?),
            ".abi_preserve_control" => DirectiveKind::AbiPreserveControl(self.integer32()?),
            _ => {
                // Unknown: it ends where the next directive or the body begins.
                let ends = [
                    Kind::Dotted,
                    Kind::LBrace,
                    Kind::Semi,
                    Kind::RBrace,
                    Kind::Eof,
                ];
                while !ends.contains(&self.kind()) {
                    self.bump();
                }
                let span = self.since(start);
                let message = format!("unknown directive `{}`", super::shorten(name));
                self.report(
                    Diagnostic::warning("ptx::directive", message).label(span, "kept as it is"),
                );
                DirectiveKind::Unknown(span.text(self.source).to_owned())
            }
        })
    }

    /// One to three sizes.
    fn dims(&mut self) -> Parse<Dims> {
        let mut dims = SmallVec::new();
        dims.push(self.integer32()?);
        while dims.len() < 3 && self.eat(Kind::Comma) {
            dims.push(self.integer32()?);
        }
        Ok(Dims(dims))
    }
}
