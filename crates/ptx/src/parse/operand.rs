//! Operands.

use super::resolve::operand_of;
use super::{Parse, Parser};
use crate::Span;
use crate::ir::{Address, Base, OpcodeId, Operand, Part, Reg, Symbol};
use crate::names::Entity;
use crate::special::SpecialReg;
use crate::syntax::Kind;

/// What an opcode says about how its operands are to be read.
#[derive(Clone, Copy)]
pub(super) struct Mode {
    /// Parentheses enclose arguments, not expressions.
    pub is_call: bool,
    /// `a[3]` is the address as a value, not the memory there.
    pub takes_address: bool,
    /// The opcode is unknown: names may be keywords.
    pub is_opaque: bool,
    /// It stands among others, in braces, parentheses or brackets.
    pub is_inner: bool,
}

impl<'s> Parser<'s> {
    pub(super) fn operand_mode(&self, opcode: OpcodeId, first: Span) -> Mode {
        let text = first.text(self.source).as_bytes();
        Mode {
            is_call: text.starts_with(b"call"),
            takes_address: text.starts_with(b"mov") || text.starts_with(b"cvta"),
            is_opaque: !self.module.opcodes[opcode].is_known(),
            is_inner: false,
        }
    }

    /// One operand, with a second one after `|` where there is one. Pushes it on the stack.
    #[inline]
    pub(super) fn operand(&mut self, mode: Mode) -> Parse<()> {
        let start = self.span().start;
        let mark = self.work.stack.len();
        let operand = self.single(mode)?;
        self.push(operand, start);
        if self.kind() != Kind::Pipe {
            return Ok(());
        }
        self.bump();
        let second = self.span().start;
        let operand = self.single(mode)?;
        self.push(operand, second);
        let pair = Operand::Pair(self.flush(mark));
        self.push(pair, start);
        Ok(())
    }

    fn push(&mut self, operand: Operand, start: u32) {
        let span = self.since(start);
        self.work.stack.push((operand, span));
    }

    #[inline]
    fn single(&mut self, mode: Mode) -> Parse<Operand> {
        match self.kind() {
            Kind::Word => self.named(mode),
            Kind::Number => Ok(Operand::Imm(self.constant()?)),
            Kind::Dotted if self.at_fraction() => Ok(Operand::Imm(self.constant()?)),
            Kind::LBracket => self.memory(mode),
            Kind::LBrace => Ok(Operand::Vector(self.list(Kind::RBrace, mode)?)),
            Kind::LParen if mode.is_call => Ok(Operand::List(self.list(Kind::RParen, mode)?)),
            Kind::Bang if self.kind_after() == Kind::Word => self.negated_predicate(),
            Kind::Minus if self.kind_after() == Kind::Word => self.negated_register(mode),
            Kind::Minus | Kind::Plus | Kind::Tilde | Kind::Bang | Kind::LParen => {
                Ok(Operand::Imm(self.constant()?))
            }
            _ => self.expected("an operand"),
        }
    }

    /// `{a, b}` or `(a, b)`.
    fn list(&mut self, close: Kind, mode: Mode) -> Parse<crate::ir::OperandList> {
        self.bump();
        let mark = self.work.stack.len();
        // Only the outer parentheses of a call hold arguments.
        let inner = Mode {
            is_call: false,
            is_inner: true,
            ..mode
        };
        while self.kind() != close {
            self.nested(|p| p.operand(inner))?;
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(
            close,
            if close == Kind::RBrace {
                "`,` or `}`"
            } else {
                "`,` or `)`"
            },
        )?;
        Ok(self.flush(mark))
    }

    /// A register, symbol, label, special register, sink or `WARP_SZ`.
    #[inline]
    fn named(&mut self, mode: Mode) -> Parse<Operand> {
        let span = self.span();
        let text = span.text(self.source);
        if let Some(found) = self.find(text) {
            match found.entity {
                Entity::Reg(reg) => {
                    self.bump();
                    return self.alone(reg, mode);
                }
                // A label further in may come later and is then meant.
                Entity::Label(_) if found.depth < self.names.depth() => {
                    self.bump();
                    return Ok(self.wait_for(span));
                }
                Entity::Var(var) => {
                    self.bump();
                    return self.symbol_operand(Symbol::Var(var), mode);
                }
                Entity::Func(func) => {
                    self.bump();
                    return self.symbol_operand(Symbol::Func(func), mode);
                }
                entity => {
                    self.bump();
                    return Ok(operand_of(entity));
                }
            }
        }
        self.special_name(span, text, mode)
    }

    /// A register, or one and a constant: `a+4`. ptxas takes no sum within braces or parentheses.
    #[inline]
    fn alone(&mut self, reg: Reg, mode: Mode) -> Parse<Operand> {
        if self.kind() != Kind::Plus {
            return Ok(Operand::Reg(reg));
        }
        if mode.is_inner {
            let message = "no constant is added to an element";
            return self.fail(
                "ptx::syntax",
                message,
                self.span(),
                "add it with `add` first",
            );
        }
        let by = self.offset()?;
        Ok(Operand::Sum { reg, by })
    }

    fn special_name(&mut self, span: Span, text: &'s str, mode: Mode) -> Parse<Operand> {
        match text {
            "_" => {
                self.bump();
                return Ok(Operand::Sink);
            }
            "WARP_SZ" => return Ok(Operand::Imm(self.constant()?)),
            _ => {}
        }
        let (name, part) = match text.split_once('.') {
            Some((name, part)) => (name, Some(part)),
            None => (text, None),
        };
        let selected = match part {
            Some(part) => Part::parse(part).map(Some),
            None => Some(None),
        };
        if let (Some(reg), Some(part)) = (SpecialReg::parse(name), selected)
            && (part.is_none() || reg.is_vector())
        {
            self.bump();
            return Ok(Operand::Special { reg, part });
        }
        if let Some(Some(part)) = selected
            && let Some(Entity::Reg(reg)) = self.find(name).map(|f| f.entity)
        {
            self.bump();
            return Ok(Operand::Select {
                reg,
                part,
                negated: false,
            });
        }
        self.bump();
        if mode.is_opaque {
            return Ok(self.wait_for(span));
        }
        if name.starts_with('%') {
            let declared = part.is_some() && self.names.find(name).is_some();
            return match declared {
                true => self.fail("ptx::syntax", "no such part of a register", span, "here"),
                false => self.unknown_name(Span::new(span.start, span.start + name.len() as u32)),
            };
        }
        Ok(self.wait_for(span))
    }

    /// An operand whose name is looked up when the scope ends: labels may follow.
    fn wait_for(&mut self, name: Span) -> Operand {
        self.work.waiting.push((self.work.stack.len(), name));
        Operand::Unresolved
    }

    /// `symbol`, `symbol + n`, `symbol[n]`.
    fn symbol_operand(&mut self, symbol: Symbol, mode: Mode) -> Parse<Operand> {
        match self.kind() {
            Kind::Plus | Kind::Minus => Ok(Operand::Symbol {
                symbol,
                offset: self.offset()?,
            }),
            Kind::LBracket => {
                let offset = self.index(symbol)?;
                if mode.takes_address {
                    return Ok(Operand::Symbol { symbol, offset });
                }
                let base = Base::Symbol(symbol);
                Ok(Operand::Mem(Address {
                    base,
                    offset,
                    unified: false,
                }))
            }
            _ => Ok(Operand::Symbol { symbol, offset: 0 }),
        }
    }

    /// `[n]` after an array: the offset in bytes.
    fn index(&mut self, symbol: Symbol) -> Parse<i64> {
        let open = self.bump().span;
        let index = self.integer()?;
        self.expect(Kind::RBracket, "`]`")?;
        match symbol {
            Symbol::Var(var) => {
                let size = self.module.variables[var].element_bytes() as i64;
                Ok(index.wrapping_mul(size))
            }
            Symbol::Func(_) => self.fail(
                "ptx::syntax",
                "a function has no elements",
                open,
                "indexed here",
            ),
        }
    }

    fn negated_predicate(&mut self) -> Parse<Operand> {
        self.bump();
        let span = self.span();
        match self.find(span.text(self.source)).map(|f| f.entity) {
            Some(Entity::Reg(reg)) => {
                self.bump();
                Ok(Operand::Not(reg))
            }
            Some(_) => self.fail("ptx::type", "expected a register after `!`", span, "here"),
            None => self.unknown_name(span),
        }
    }

    fn negated_register(&mut self, mode: Mode) -> Parse<Operand> {
        let minus = self.bump().span;
        match self.single(mode)? {
            Operand::Reg(reg) => Ok(Operand::Neg(reg)),
            Operand::Select { reg, part, .. } => Ok(Operand::Select {
                reg,
                part,
                negated: true,
            }),
            Operand::Imm(crate::ir::Imm::Int { value, unsigned }) => {
                let value = value.wrapping_neg();
                Ok(Operand::Imm(crate::ir::Imm::Int { value, unsigned }))
            }
            _ => self.fail(
                "ptx::syntax",
                "this cannot be negated",
                minus,
                "minus sign here",
            ),
        }
    }

    /// `[a]`, `[a + 4]`, `[tex, {x, y}]`.
    fn memory(&mut self, mode: Mode) -> Parse<Operand> {
        let open = self.bump().span.start;
        let mark = self.work.stack.len();
        let address = self.address()?;
        if self.kind() != Kind::Comma {
            self.expect(Kind::RBracket, "`]` after the address")?;
            let unified = self.at_dotted(".unified");
            if unified {
                self.bump();
            }
            return Ok(Operand::Mem(Address { unified, ..address }));
        }
        self.push(Operand::Mem(address), open + 1);
        let mode = Mode {
            is_inner: true,
            ..mode
        };
        while self.eat(Kind::Comma) {
            self.nested(|p| p.operand(mode))?;
        }
        self.expect(Kind::RBracket, "`,` or `]`")?;
        Ok(Operand::MemTuple(self.flush(mark)))
    }

    /// What stands in brackets: a register, symbol or constant, and constants added to it.
    fn address(&mut self) -> Parse<Address> {
        if self.kind() != Kind::Word || self.text() == "WARP_SZ" {
            let offset = self.integer()?;
            return Ok(Address {
                base: Base::Absolute,
                offset,
                unified: false,
            });
        }
        let name = self.span();
        let text = name.text(self.source);
        let base = match self.find(text).map(|f| f.entity) {
            Some(Entity::Reg(reg)) => Base::Reg(reg),
            Some(Entity::Var(var)) => Base::Symbol(Symbol::Var(var)),
            Some(Entity::Func(func)) => Base::Symbol(Symbol::Func(func)),
            Some(_) => {
                let message = "no memory can be addressed by this name";
                return self.fail(
                    "ptx::name",
                    message,
                    name,
                    "expected a register or variable",
                );
            }
            None if text.starts_with('%') => return self.unknown_name(name),
            None => {
                self.work.waiting.push((self.work.stack.len(), name));
                Base::Unresolved
            }
        };
        self.bump();
        let mut offset = 0;
        if self.kind() == Kind::LBracket
            && let Base::Symbol(symbol) = base
        {
            offset = self.index(symbol)?;
        }
        let offset = i64::wrapping_add(offset, self.offset()?);
        Ok(Address {
            base,
            offset,
            unified: false,
        })
    }
}
