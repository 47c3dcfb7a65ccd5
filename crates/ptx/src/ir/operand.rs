//! Operands.

use super::{BranchTable, CallTable, FuncId, Label, OperandId, Prototype, Reg, VarId};
use crate::opcode::Shape;
use crate::special::SpecialReg;
use crate::types::Type;

/// Consecutive operands in a body's arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperandList {
    /// First operand.
    pub start: u32,
    /// Number of operands.
    pub len: u32,
}

impl OperandList {
    /// As a range of arena indices.
    pub const fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }

    /// The ids of its operands.
    pub fn ids(self) -> impl Iterator<Item = OperandId> + Clone {
        (self.start..self.start + self.len).map(OperandId::from_u32)
    }
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// `!p`
    Not(Reg),
    /// `-a`, where an instruction allows it (video instructions).
    Neg(Reg),
    /// `a+4`: a register of integers and a constant, in the width of the register.
    Sum {
        /// The register.
        reg: Reg,
        /// What is added.
        by: i64,
    },
    /// Part of a register: `a.b0`, `a.h1`, `v.x`.
    Select {
        /// The register.
        reg: Reg,
        /// Which part.
        part: Part,
        /// With a minus sign before it.
        negated: bool,
    },
    /// A special register, with a component where it has some.
    Special {
        /// Which one.
        reg: SpecialReg,
        /// `.x` …; `None` for a scalar or the whole vector.
        part: Option<Part>,
    },
    /// An immediate.
    Imm(Imm),
    /// The address of a symbol plus a constant, as a value.
    Symbol {
        /// The symbol.
        symbol: Symbol,
        /// Bytes added.
        offset: i64,
    },
    /// `[base + offset]`, `a[3]` with a constant index (in bytes).
    Mem(Address),
    /// Several parts in one pair of brackets: `[tex, {x, y}]`, `[map, {c0, c1}]`. The first is
    /// always a [`Operand::Mem`].
    MemTuple(OperandList),
    /// `{a, b, …}`
    Vector(OperandList),
    /// `p|q`: two destinations, each a register or a sink.
    Pair(OperandList),
    /// `(a, b)`: arguments of a call.
    List(OperandList),
    /// A label.
    Label(Label),
    /// `_`: a result that nobody wants.
    Sink,
    /// A `.branchtargets` list.
    BranchTable(BranchTable),
    /// A `.calltargets` list.
    CallTable(CallTable),
    /// A `.callprototype`.
    Prototype(Prototype),
    /// A name that is not declared (an error was reported, or the opcode is unknown).
    Unresolved,
}

impl Operand {
    /// How it is written, as far as that tells the forms of an opcode apart.
    pub fn shape(&self) -> Shape {
        match self {
            Operand::Mem(_) | Operand::MemTuple(_) => Shape::Bracketed,
            Operand::Vector(_) => Shape::Vector,
            _ => Shape::Plain,
        }
    }
}

/// A memory address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Address {
    /// What the offset is added to.
    pub base: Base,
    /// Bytes added.
    pub offset: i64,
    /// Followed by `.unified`.
    pub unified: bool,
}

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// A register.
    Reg(Reg),
    /// A variable or function.
    Symbol(Symbol),
    /// Nothing: the offset is an absolute address.
    Absolute,
    /// A name that is not declared (an error was reported, or the opcode is unknown).
    Unresolved,
}

/// Something with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A variable or parameter.
    Var(VarId),
    /// A function.
    Func(FuncId),
}

/// A constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imm {
    /// An integer: 64 bits in two's complement, and whether PTX gives it type `.u64` (a `U`
    /// suffix, or a value that does not fit `.s64`).
    Int {
        /// The bits as a signed number.
        value: i64,
        /// Of unsigned type.
        unsigned: bool,
    },
    /// `0f…`: the bits of a single.
    F32(u32),
    /// `0d…` or a decimal floating-point constant: the bits of a double.
    F64(u64),
}

impl Imm {
    /// The bits that an integer operation sees, or the bits of the floating-point pattern.
    pub const fn bits(self) -> u64 {
        match self {
            Imm::Int { value, .. } => value as u64,
            Imm::F32(bits) => bits as u64,
            Imm::F64(bits) => bits,
        }
    }

    /// The bits that an operand of type `ty` holds, as ptxas makes them: integers are cut off, any
    /// number but zero is a true predicate, doubles are rounded to singles, and the bits of a single
    /// stay what they are in a double.
    pub fn seen_as(self, ty: Type) -> u64 {
        match (self, ty) {
            (imm, Type::Pred) => u64::from(imm.bits() != 0),
            (Imm::F64(bits), Type::F32) => u64::from(to_single(bits)),
            (imm, ty) if ty.bits() < 64 => imm.bits() & ((1 << ty.bits()) - 1),
            (imm, _) => imm.bits(),
        }
    }
}

/// A double rounded to the nearest single. A NaN becomes the quiet one with the upper bits of its
/// payload.
fn to_single(bits: u64) -> u32 {
    let value = f64::from_bits(bits);
    match value.is_nan() {
        true => (bits >> 32) as u32 & 1 << 31 | 0x7FC0_0000 | (bits >> 29) as u32 & 0x003F_FFFF,
        false => (value as f32).to_bits(),
    }
}

/// Part of a register: byte, halfword, or vector element (PTX lets `.r .g .b .a` stand for
/// `.x .y .z .w`; they are the same here).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// `.x` or `.r`
    X,
    /// `.y` or `.g`
    Y,
    /// `.z` or `.b`
    Z,
    /// `.w` or `.a`
    W,
    /// `.b0`: bits 0 to 7.
    B0,
    /// `.b1`
    B1,
    /// `.b2`
    B2,
    /// `.b3`
    B3,
    /// `.h0`: bits 0 to 15.
    H0,
    /// `.h1`
    H1,
    /// Several bytes or halfwords, which the packed video instructions name by their digits: `.h10`,
    /// `.b7610`, `.b20`.
    Lanes(Lanes),
}

/// The digits of a [`Part::Lanes`], as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lanes {
    /// Halfwords (`.h…`), not bytes (`.b…`).
    pub halves: bool,
    /// How many digits there are.
    pub count: u8,
    /// The digits, most significant lane first; those past `count` are zero.
    pub digits: [u8; 4],
}

impl Lanes {
    /// `h` and two digits to 3 (lanes of two registers), or `b` and two to four digits to 7.
    fn parse(text: &str) -> Option<Lanes> {
        let halves = text.starts_with('h');
        let digits = text.strip_prefix(['h', 'b'])?.as_bytes();
        let (most, last) = if halves { (2, b'3') } else { (4, b'7') };
        let valid =
            (2..=most).contains(&digits.len()) && digits.iter().all(|d| (b'0'..=last).contains(d));
        let mut lanes = Lanes {
            halves,
            count: digits.len() as u8,
            digits: [0; 4],
        };
        for (lane, digit) in lanes.digits.iter_mut().zip(digits) {
            *lane = digit.wrapping_sub(b'0');
        }
        valid.then_some(lanes)
    }
}

impl Part {
    /// The selector of this name (without a dot).
    pub fn parse(text: &str) -> Option<Part> {
        Some(match text {
            "x" | "r" => Part::X,
            "y" | "g" => Part::Y,
            "z" | "b" => Part::Z,
            "w" | "a" => Part::W,
            "b0" => Part::B0,
            "b1" => Part::B1,
            "b2" => Part::B2,
            "b3" => Part::B3,
            "h0" => Part::H0,
            "h1" => Part::H1,
            _ => Part::Lanes(Lanes::parse(text)?),
        })
    }

    /// The name without a dot.
    pub fn text(self) -> String {
        self.to_string()
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::X => "x",
            Part::Y => "y",
            Part::Z => "z",
            Part::W => "w",
            Part::B0 => "b0",
            Part::B1 => "b1",
            Part::B2 => "b2",
            Part::B3 => "b3",
            Part::H0 => "h0",
            Part::H1 => "h1",
            Part::Lanes(lanes) => {
                f.write_str(if lanes.halves { "h" } else { "b" })?;
                let digits = lanes.digits.iter().take(usize::from(lanes.count));
                return digits
                    .into_iter()
                    .try_for_each(|digit| write!(f, "{digit}"));
            }
        })
    }
}
