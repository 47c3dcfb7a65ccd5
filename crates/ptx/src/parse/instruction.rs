//! Instructions: guard, opcode, operands.

use super::{Parse, Parser};
use crate::Span;
use crate::ir::{Guard, InstData, Item};
use crate::names::Entity;
use crate::syntax::Kind;
use crate::types::Type;

impl<'s> Parser<'s> {
    /// `[@[!]p] opcode operands;`
    #[inline]
    pub(super) fn instruction(&mut self) -> Parse<()> {
        let start = self.span().start;
        let guard = match self.kind() == Kind::At {
            true => Some(self.guard()?),
            false => None,
        };
        if self.kind() != Kind::Word {
            return self.expected("an opcode");
        }
        let opcode_tile = self.bump();
        let (opcode, opcode_span) = match self.kind() {
            Kind::Dotted => self.spaced_opcode(opcode_tile.span)?,
            _ => {
                let text = opcode_tile.span.text(self.source);
                (self.intern_opcode(text), opcode_tile.span)
            }
        };
        let mode = self.operand_mode(opcode, opcode_tile.span);
        if self.kind() != Kind::Semi {
            loop {
                self.operand(mode)?;
                if !self.eat(Kind::Comma) {
                    // `call (r), f, (a)` needs its commas, but old code leaves some out.
                    let list_follows = mode.is_call && self.kind() == Kind::LParen;
                    if !list_follows {
                        break;
                    }
                }
            }
        }
        if self.kind() != Kind::Semi {
            self.missing_semicolon(opcode_tile.span)?;
        } else {
            self.bump();
        }
        let operands = self.flush(0);
        let body = &mut self.work.body;
        let inst = body.insts.push(InstData {
            opcode,
            guard,
            operands,
            span: Span::new(start, self.last_end),
            opcode_span,
            loc: self.work.loc,
            scope: self.work.scope.0,
        });
        if mode.is_opaque {
            body.opaque.push(inst);
        }
        body.items.push(Item::Inst(inst));
        Ok(())
    }

    #[cold]
    fn missing_semicolon(&mut self, opcode: Span) -> Parse<()> {
        let name = super::shorten(opcode.text(self.source));
        self.expected(&format!("`,` or `;` in `{name}`"))
    }

    /// `@p` or `@!p`
    fn guard(&mut self) -> Parse<Guard> {
        self.bump();
        let negated = self.eat(Kind::Bang);
        let name = self.expect(Kind::Word, "a predicate register")?;
        match self.find(name.span.text(self.source)).map(|f| f.entity) {
            Some(Entity::Reg(reg)) if self.work.body.regs[reg].ty == Type::Pred => {
                Ok(Guard { reg, negated })
            }
            Some(_) => {
                let message = "a guard is a predicate register";
                self.fail("ptx::type", message, name.span, "this is none")
            }
            None => self.unknown_name(name.span),
        }
    }

    /// An opcode whose modifiers are set off by white space: they are joined.
    #[cold]
    fn spaced_opcode(&mut self, first: Span) -> Parse<(crate::ir::OpcodeId, Span)> {
        let mut text = first.text(self.source).to_owned();
        while self.kind() == Kind::Dotted {
            let part = self.bump();
            text.push_str(part.span.text(self.source));
        }
        let known = self
            .opcodes
            .get(&*text)
            .or_else(|| self.spaced_opcodes.get(&text));
        let id = match known {
            Some(&id) => id,
            None => {
                let id = self
                    .module
                    .opcodes
                    .push(crate::opcode::Opcode::parse(&text));
                self.spaced_opcodes.insert(text, id);
                id
            }
        };
        Ok((id, self.since(first.start)))
    }
}
