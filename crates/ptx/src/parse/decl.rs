//! Declarations of variables and parameters, and their initial values.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Parse, Parser};
use crate::Diagnostic;
use crate::Span;
use crate::ir::{Attribute, FuncId, Linkage, PtrAttr, VarId, Variable};
use crate::names::Entity;
use crate::syntax::Kind;
use crate::types::{Space, Type};

/// What stands before the name of a declaration.
#[derive(Default)]
pub(super) struct Specifiers {
    pub start: u32,
    pub linkage: Linkage,
    pub attributes: Vec<Attribute>,
    pub space: Option<Space>,
    pub align: Option<u32>,
    pub vector: Option<u8>,
    pub ty: Option<Type>,
    pub ptr: Option<PtrAttr>,
}

/// The linkage that a directive (with its dot) states.
pub(super) fn linkage_of(text: &str) -> Option<Linkage> {
    [
        Linkage::Visible,
        Linkage::Extern,
        Linkage::Weak,
        Linkage::Common,
    ]
    .into_iter()
    .find(|l| l.text() == text)
}

impl<'s> Parser<'s> {
    /// Linkage, attributes, space, alignment, vector length, type and `.ptr`, in any order. Stops
    /// at the first tile that is none of these.
    pub(super) fn specifiers(&mut self) -> Parse<Specifiers> {
        let mut spec = Specifiers {
            start: self.span().start,
            ..Specifiers::default()
        };
        while self.kind() == Kind::Dotted {
            if !self.specifier(&mut spec)? {
                break;
            }
        }
        Ok(spec)
    }

    /// Takes one specifier; false if there is none.
    fn specifier(&mut self, spec: &mut Specifiers) -> Parse<bool> {
        let text = self.text();
        if let Some(linkage) = linkage_of(text) {
            spec.linkage = linkage;
            self.bump();
            return Ok(true);
        }
        match text {
            ".attribute" => {
                self.bump();
                self.attributes(&mut spec.attributes)?;
            }
            ".align" => {
                self.bump();
                let align = Some(self.alignment()?);
                match &mut spec.ptr {
                    Some(ptr) => ptr.align = align,
                    None => spec.align = align,
                }
            }
            ".ptr" => {
                self.bump();
                spec.ptr = Some(PtrAttr::default());
            }
            ".v2" | ".v4" | ".v8" => {
                self.bump();
                spec.vector = Some(text.as_bytes()[2] - b'0');
            }
            _ => {
                let word = &text[1..];
                if let Some(ty) = Type::parse(word) {
                    spec.ty = Some(ty);
                } else if let Some(space) = Space::parse(word) {
                    match &mut spec.ptr {
                        Some(ptr) => ptr.space = Some(space),
                        None => spec.space = Some(space),
                    }
                } else {
                    return Ok(false);
                }
                self.bump();
            }
        }
        Ok(true)
    }

    fn alignment(&mut self) -> Parse<u32> {
        let start = self.span().start;
        let align = self.integer32()?;
        if !align.is_power_of_two() {
            let span = self.since(start);
            let message = format!("an alignment of {align} bytes is no power of two");
            return self.fail("ptx::align", message, span, "here");
        }
        Ok(align)
    }

    fn attributes(&mut self, list: &mut Vec<Attribute>) -> Parse<()> {
        self.expect(Kind::LParen, "`(` after `.attribute`")?;
        while self.kind() != Kind::RParen {
            list.push(self.attribute()?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RParen, "`)` after the attributes")?;
        Ok(())
    }

    fn attribute(&mut self) -> Parse<Attribute> {
        let name = self.expect(Kind::Dotted, "an attribute such as `.managed`")?;
        let text = name.span.text(self.source);
        match text {
            ".managed" => Ok(Attribute::Managed),
            ".unified" => {
                self.expect(Kind::LParen, "`(` after `.unified`")?;
                let high = self.constant()?.bits();
                self.expect(Kind::Comma, "`,` between the halves of the identifier")?;
                let low = self.constant()?.bits();
                self.expect(Kind::RParen, "`)`")?;
                Ok(Attribute::Unified(high, low))
            }
            _ => {
                if self.kind() == Kind::LParen {
                    self.skip_pair(Kind::LParen, Kind::RParen);
                }
                let span = self.since(name.span.start);
                Ok(Attribute::Unknown(span.text(self.source).to_owned()))
            }
        }
    }

    /// Skips from an opening bracket to its partner (or the end of the file).
    pub(super) fn skip_pair(&mut self, open: Kind, close: Kind) {
        let mut depth = 0u32;
        while self.kind() != Kind::Eof {
            let kind = self.bump().kind;
            if kind == open {
                depth += 1;
            } else if kind == close {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return;
                }
            }
        }
    }

    /// The declarators after `spec`, up to and with the `;`. Returns the variables declared.
    pub(super) fn variables(
        &mut self,
        spec: &Specifiers,
        owner: Option<FuncId>,
    ) -> Parse<SmallVec<[VarId; 4]>> {
        let mut ids = SmallVec::new();
        loop {
            let id = self.declarator(spec, owner)?;
            ids.push(id);
            if self.eat(Kind::Equal) {
                let init = self.initial_value(id)?;
                self.module.variables[id].init = Some(init);
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Semi, "`,` or `;` after the declaration")?;
        let span = self.since(spec.start);
        for &id in &ids {
            self.module.variables[id].span = span;
        }
        Ok(ids)
    }

    /// A name with its dimensions; declares the variable.
    fn declarator(&mut self, spec: &Specifiers, owner: Option<FuncId>) -> Parse<VarId> {
        let variable = self.variable(spec, owner)?;
        let (name_span, linkage) = (variable.name_span, variable.linkage);
        let id = self.module.variables.push(variable);
        self.declare_variable(id, name_span, linkage)?;
        Ok(id)
    }

    fn declare_variable(&mut self, id: VarId, name_span: Span, linkage: Linkage) -> Parse<()> {
        let name = name_span.text(self.source);
        let Err(first) = self.names.declare(name, Entity::Var(id), name_span) else {
            return Ok(());
        };
        // An `.extern` declaration may stand beside the definition; so may several weak ones.
        let old = match self.names.find(name).map(|f| f.entity) {
            Some(Entity::Var(old)) => Some(self.module.variables[old].linkage),
            _ => None,
        };
        let repeatable = |l| matches!(l, Linkage::Extern | Linkage::Weak | Linkage::Common);
        if linkage == Linkage::Extern && old.is_some() {
            return Ok(());
        }
        if old.is_some_and(repeatable) {
            self.names.replace(name, Entity::Var(id));
            return Ok(());
        }
        self.duplicate(name_span, first)
    }

    /// Reports that the name at `span` is declared twice.
    pub(super) fn duplicate<T>(&mut self, span: Span, first: Span) -> Parse<T> {
        let message = format!("`{}` is declared twice", span.text(self.source));
        self.report(
            Diagnostic::error("ptx::duplicate", message)
                .label(span, "declared again here")
                .label(first, "first declared here"),
        );
        Err(super::Failed)
    }

    /// A name with its dimensions, as a variable of the given specifiers.
    pub(super) fn variable(&mut self, spec: &Specifiers, owner: Option<FuncId>) -> Parse<Variable> {
        let Some(ty) = spec.ty else {
            return self.expected("a type such as `.b32`");
        };
        let name = self.expect(Kind::Word, "a name")?;
        if name.span.text(self.source).contains('.') {
            return self.fail(
                "ptx::syntax",
                "expected a name",
                name.span,
                "a name has no dots",
            );
        }
        let mut dims = SmallVec::new();
        while self.eat(Kind::LBracket) {
            let dim = match self.kind() {
                Kind::RBracket => None,
                _ => Some(self.dimension()?),
            };
            dims.push(dim);
            self.expect(Kind::RBracket, "`]`")?;
        }
        Ok(Variable {
            name: Arc::from(name.span.text(self.source)),
            space: spec.space.unwrap_or(Space::Param),
            align: spec.align,
            vector: spec.vector.unwrap_or(1),
            ty,
            dims,
            init: None,
            linkage: spec.linkage,
            ptr: spec.ptr,
            attributes: spec.attributes.clone(),
            owner,
            span: self.since(spec.start),
            name_span: name.span,
        })
    }

    fn dimension(&mut self) -> Parse<u64> {
        let start = self.span().start;
        match u64::try_from(self.integer()?) {
            Ok(n) => Ok(n),
            Err(_) => {
                let span = self.since(start);
                self.fail("ptx::constant", "a dimension is not negative", span, "here")
            }
        }
    }
}
