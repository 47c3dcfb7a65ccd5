//! Initial values of variables.

use smallvec::SmallVec;

use super::{Parse, Parser};
use crate::Span;
use crate::ir::{Imm, Init, InitData, InitRef, Symbol, VarId};
use crate::names::Entity;
use crate::syntax::Kind;
use crate::types::{Type, TypeKind};

impl<'s> Parser<'s> {
    /// What stands after `=`.
    pub(super) fn initial_value(&mut self, var: VarId) -> Parse<Init> {
        let start = self.span().start;
        if self.kind() == Kind::LBrace && self.is_opaque_initialiser() {
            self.skip_pair(Kind::LBrace, Kind::RBrace);
            return Ok(Init::Opaque(self.since(start)));
        }
        let variable = &self.module.variables[var];
        let mut shape: SmallVec<[Option<u64>; 4]> = variable.dims.iter().copied().collect();
        if variable.vector > 1 {
            shape.push(Some(u64::from(variable.vector)));
        }
        let mut fill = Fill {
            ty: variable.ty,
            shape,
            at: 0,
            data: InitData::default(),
        };
        match self.kind() {
            Kind::LBrace => self.braced_values(&mut fill, 0)?,
            _ => self.initial_element(&mut fill)?,
        }
        fill.data.span = self.since(start);
        if fill.elements(0).is_none() {
            // An open array is as long as what its braces enclose, zeros included.
            self.grow(&mut fill)?;
        }
        Ok(Init::Data(fill.data))
    }

    /// Settings of a sampler or texture: `{ filter_mode = nearest, … }`.
    fn is_opaque_initialiser(&self) -> bool {
        let mut next = self.tiles[self.at..]
            .iter()
            .filter(|t| !t.kind.is_trivia())
            .skip(1);
        matches!(next.next(), Some(t) if t.kind == Kind::Word)
            && matches!(next.next(), Some(t) if t.kind == Kind::Equal)
    }

    /// `{ … }` around the values of dimension `level`, which may be braced again.
    fn braced_values(&mut self, fill: &mut Fill, level: usize) -> Parse<()> {
        let open = self.bump().span;
        let begin = fill.at;
        while self.kind() != Kind::RBrace {
            match self.kind() {
                Kind::LBrace => self.nested(|p| p.braced_values(fill, level + 1))?,
                _ => self.initial_element(fill)?,
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RBrace, "`,` or `}` in the initial value")?;
        if let Some(count) = fill.elements(level) {
            let end = begin.saturating_add(count);
            if fill.at > end {
                let message = format!("more than {count} initial values");
                let span = open.to(self.since(open.start));
                return self.fail("ptx::init", message, span, "in these braces");
            }
            fill.at = end;
        }
        Ok(())
    }

    fn initial_element(&mut self, fill: &mut Fill) -> Parse<()> {
        let start = self.span().start;
        let masked = self.kind() == Kind::Number && self.kind_after() == Kind::LParen;
        if masked || (self.kind() == Kind::Word && self.text() != "WARP_SZ") {
            return self.initial_address(fill);
        }
        let value = self.constant()?;
        let span = self.since(start);
        let Some((bytes, width)) = encode(value, fill.ty) else {
            let message = format!("no constant of type {}", fill.ty);
            return self.fail("ptx::init", message, span, "this value");
        };
        let at = self.reserve(fill, span)?;
        fill.data.bytes[at..at + width].copy_from_slice(&bytes[..width]);
        Ok(())
    }

    /// `symbol + n`, `generic(symbol) + n`, `0xFF00(symbol)`.
    fn initial_address(&mut self, fill: &mut Fill) -> Parse<()> {
        let start = self.span().start;
        let mut mask = u64::MAX;
        let mut generic = false;
        let mut parens = 0;
        if self.kind() == Kind::Number {
            mask = self.number()?.bits();
            self.expect(Kind::LParen, "`(`")?;
            parens += 1;
        }
        if self.text() == "generic" && self.kind_after() == Kind::LParen {
            self.bump();
            self.bump();
            generic = true;
            parens += 1;
        }
        let name = self.expect(Kind::Word, "the name of a variable or function")?;
        let symbol = self.symbol(name.span)?;
        let mut offset = self.offset()?;
        for _ in 0..parens {
            self.expect(Kind::RParen, "`)`")?;
            offset = offset.wrapping_add(self.offset()?);
        }
        let width = fill.ty.bytes();
        let at = self.reserve(fill, self.since(start))? as u64;
        let width = width as u8;
        fill.data.refs.push(InitRef {
            at,
            width,
            symbol,
            offset,
            generic,
            mask,
        });
        Ok(())
    }

    /// The variable or function of this name.
    fn symbol(&mut self, span: Span) -> Parse<Symbol> {
        match self.names.find(span.text(self.source)).map(|f| f.entity) {
            Some(Entity::Var(var)) => Ok(Symbol::Var(var)),
            Some(Entity::Func(func)) => Ok(Symbol::Func(func)),
            Some(_) => self.fail(
                "ptx::name",
                "expected a variable or function",
                span,
                "this is none",
            ),
            None => self.unknown_name(span),
        }
    }

    /// Makes room for the next element and returns its byte offset.
    fn reserve(&mut self, fill: &mut Fill, span: Span) -> Parse<usize> {
        let width = u64::from(fill.ty.bytes());
        let count = fill.elements(0).unwrap_or(u64::MAX);
        if fill.at >= count {
            let message = format!("more than {count} initial values");
            return self.fail("ptx::init", message, span, "this one has no place");
        }
        let at = fill.at.saturating_mul(width) as usize;
        fill.at += 1;
        fill.data.span = span;
        self.grow(fill)?;
        Ok(at)
    }

    /// Extends the data up to the next element.
    fn grow(&mut self, fill: &mut Fill) -> Parse<()> {
        let end = fill.at.saturating_mul(u64::from(fill.ty.bytes()));
        let more = end.saturating_sub(fill.data.bytes.len() as u64);
        if more > self.init_budget {
            let span = fill.data.span;
            return self.fail(
                "ptx::init",
                "the initial values are too large",
                span,
                "here",
            );
        }
        self.init_budget -= more;
        if more > 0 {
            fill.data.bytes.resize(end as usize, 0);
        }
        Ok(())
    }
}

/// An initial value on its way: what has been filled so far.
struct Fill {
    ty: Type,
    /// Dimensions, the vector length last.
    shape: SmallVec<[Option<u64>; 4]>,
    /// Next element.
    at: u64,
    data: InitData,
}

impl Fill {
    /// Number of elements that the braces of this level hold; `None` if open.
    fn elements(&self, level: usize) -> Option<u64> {
        let mut inner = self.shape.get(level..).unwrap_or(&[]).iter();
        inner.try_fold(1u64, |n, dim| Some(n.saturating_mul((*dim)?)))
    }
}

/// The little-endian bytes of a constant as an element of type `ty`, and how many there are. What
/// ptxas refuses has none.
fn encode(value: Imm, ty: Type) -> Option<([u8; 16], usize)> {
    let is_bits = ty.kind() == TypeKind::Bits;
    let bits = match (value, ty) {
        (Imm::Int { .. }, _) if matches!(ty.kind(), TypeKind::Float | TypeKind::Opaque) => {
            return None;
        }
        (Imm::Int { value, .. }, _) => value as u64,
        // The bits of a single stay what they are in a double, too.
        (Imm::F32(_) | Imm::F64(_), Type::F32 | Type::F64) => value.seen_as(ty),
        (Imm::F64(_), _) if is_bits && ty.bits() == 32 => value.seen_as(Type::F32),
        (Imm::F32(_) | Imm::F64(_), _) if is_bits => value.bits(),
        _ => return None,
    };
    let negative = matches!(
        value,
        Imm::Int {
            value: i64::MIN..0,
            unsigned: false
        }
    );
    let mut bytes = [if negative { 0xFF } else { 0 }; 16];
    bytes[..8].copy_from_slice(&bits.to_le_bytes());
    match ty.bytes() as usize {
        0 => None,
        width => Some((bytes, width)),
    }
}
