//! The PTX instructions that the checker interprets: moves, integer arithmetic of addresses,
//! selection and comparison. Of some others it knows that operands may change places. Everything else
//! stays a free function.

use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Opcode, Type};

use crate::semantics::{Arg, Form, Meaning, Step};

/// What a pure instruction computes. `is_exact`: all its registers have the width of its types.
pub(super) fn meaning(opcode: &Opcode, step: &Step, is_exact: bool) -> Meaning {
    if !is_exact {
        return low_part(opcode, step);
    }
    let (args, results) = (step.args.len(), step.results.len());
    let first = opcode.types.first().copied();
    let integer = first.and_then(integer);
    if step.reads_flag {
        // The flag comes behind the operands.
        return match (opcode.op, args, results) {
            (Some(Op::Addc), 2, 1) => with_bits(integer, Meaning::AddCarry),
            (Some(Op::Subc), 2, 1) => with_bits(integer, Meaning::SubCarry),
            (Some(Op::Madc), 3, 1) => Meaning::Commutative,
            _ => Meaning::Opaque,
        };
    }
    // Who sets the carry flag computes what it computes without; the flag is a result of its own.
    let mods: Vec<&str> = opcode
        .mods()
        .filter(|&name| !(step.writes_flag && name == "cc"))
        .collect();
    match (opcode.op, mods.as_slice(), args, results) {
        (Some(Op::Mov), [_], _, _) => mov(first, args, results),
        (Some(Op::Add), [.., _], 2, 1) if may_fuse(&mods) => Meaning::FusibleSum,
        (Some(Op::Add), [_], 2, 1) => with_bits(integer, Meaning::Add),
        (Some(Op::Sub), [_], 2, 1) => with_bits(integer, Meaning::Sub),
        (Some(Op::Mul), ["lo", _], 2, 1) => with_bits(integer, Meaning::Mul),
        (Some(Op::Mad), ["lo", _], 3, 1) => with_bits(integer, Meaning::MulAdd),
        (Some(Op::Mul), ["wide", _], 2, 1) => match integer {
            Some((bits, signed)) => Meaning::MulWide { bits, signed },
            None => Meaning::Opaque,
        },
        // Of 64 bits there is no wider product.
        (Some(Op::Mul), ["hi", _], 2, 1) if integer.is_some_and(|of| of.0 < 64) => match integer {
            Some((bits, signed)) => Meaning::MulHigh { bits, signed },
            None => Meaning::Opaque,
        },
        (Some(Op::Mad), ["wide", _], 3, 1) => match integer {
            Some((bits, signed)) => Meaning::MulAddWide { bits, signed },
            None => Meaning::Opaque,
        },
        (Some(Op::And), [_], 2, 1) if is_bits(first) => logic(first, 0b1000),
        (Some(Op::Or), [_], 2, 1) if is_bits(first) => logic(first, 0b1110),
        (Some(Op::Xor), [_], 2, 1) if is_bits(first) => logic(first, 0b0110),
        (Some(Op::Not), [_], 1, 1) if is_bits(first) => logic(first, 0b01),
        (Some(Op::Lop3), [_], 4, 1) if is_bits(first) => match step.args[3] {
            Arg::Const(table) => logic(first, first_lowest(table as u8)),
            _ => Meaning::Opaque,
        },
        (Some(Op::Prmt), [_], 3, 1) => match step.args[2] {
            Arg::Const(order) => Meaning::Permute(order as u16),
            _ => Meaning::Opaque,
        },
        (Some(Op::Shr), [_], 2, 1) => match first {
            Some(ty) if is_bits(first) || integer.is_some_and(|of| !of.1) => {
                Meaning::Shr(ty.bits())
            }
            _ => with_bits(integer, Meaning::ShrSigned),
        },
        (Some(Op::Shf), [way @ ("l" | "r"), mode @ ("wrap" | "clamp"), "b32"], 3, 1) => {
            Meaning::Funnel {
                left: *way == "l",
                wrap: *mode == "wrap",
            }
        }
        (Some(Op::Bfe), [_], 3, 1) => match integer {
            Some((bits, signed)) => Meaning::Field { bits, signed },
            None => Meaning::Opaque,
        },
        (Some(Op::Bfi), [_], 4, 1) if is_bits(first) => {
            Meaning::Insert(first.map_or(32, Type::bits))
        }
        (Some(op @ (Op::Min | Op::Max)), [_], 2, 1) if integer.is_some() => match integer {
            Some((bits, signed)) => Meaning::Extreme {
                bits,
                signed,
                most: op == Op::Max,
            },
            None => Meaning::Opaque,
        },
        (Some(Op::Shl), [_], 2, 1) => match first {
            Some(Type::B16 | Type::B32 | Type::B64) => Meaning::Shl(first.map_or(32, Type::bits)),
            _ => Meaning::Opaque,
        },
        (Some(Op::Cvt), [_, _], 1, 1) => convert(opcode),
        (Some(Op::Selp), [_], 3, 1) => Meaning::Select,
        (Some(Op::Setp), [comparison, .., _], 2, 1 | 2) => {
            compare(first, comparison, &mods, results)
        }
        (Some(Op::Abs), [_], 1, 1) => with_bits(integer.filter(|of| of.1), Meaning::Absolute),
        (Some(Op::Neg), [_], 1, 1) => with_bits(integer.filter(|of| of.1), Meaning::Negate),
        (Some(Op::Div), [_], 2, 1) => match integer {
            Some((bits, signed)) => Meaning::Divide { bits, signed },
            None => Meaning::Opaque,
        },
        (Some(Op::Rem), [_], 2, 1) => match integer {
            Some((bits, signed)) => Meaning::Remainder { bits, signed },
            None => Meaning::Opaque,
        },
        (Some(op), _, 2.., 1) if commutes(op, &mods, first, args) => Meaning::Commutative,
        (Some(Op::Not), ["pred"], 1, 1) => Meaning::Not,
        _ => Meaning::Opaque,
    }
}

fn is_bits(ty: Option<Type>) -> bool {
    matches!(ty, Some(Type::B16 | Type::B32 | Type::B64))
}

fn logic(ty: Option<Type>, table: u8) -> Meaning {
    Meaning::Logic {
        bits: ty.map_or(32, Type::bits),
        table,
    }
}

/// The table of `lop3`, whose first operand counts 4 and whose last one counts 1, the other way round.
fn first_lowest(table: u8) -> u8 {
    (0..8).fold(0, |found, row: u8| {
        let index = (row & 1) << 2 | row & 2 | row >> 2;
        found | (table >> index & 1) << row
    })
}

/// Comparisons in terms of equality and `less`, of numbers in terms of six relations that are false for
/// NaNs: which complements which is the ISA's section 'Floating Point Comparisons'.
fn compare(first: Option<Type>, comparison: &str, mods: &[&str], results: usize) -> Meaning {
    let form = |swapped, negated| Form {
        swapped,
        negated,
        symmetric: false,
    };
    let (swapped, negated) = match comparison {
        "lt" | "lo" => (false, false),
        "gt" | "hi" => (true, false),
        "ge" | "hs" => (false, true),
        "le" | "ls" => (true, true),
        _ => (false, false),
    };
    match (first, comparison) {
        (Some(ty), "eq" | "ne") if word(ty).is_some() => match (comparison, results) {
            ("eq", 1) => Meaning::Equal(ty.bits()),
            ("ne", 1) => Meaning::Differ(ty.bits()),
            _ => Meaning::Opaque,
        },
        (Some(ty), "lt" | "le" | "gt" | "ge") if integer(ty).is_some() => Meaning::Less {
            bits: ty.bits(),
            signed: integer(ty).is_some_and(|of| of.1),
            form: form(swapped, negated),
        },
        (Some(ty), "lo" | "ls" | "hi" | "hs") if integer(ty).is_some_and(|of| !of.1) => {
            Meaning::Less {
                bits: ty.bits(),
                signed: false,
                form: form(swapped, negated),
            }
        }
        (Some(Type::F32 | Type::F64), _) if mods.len() == 2 || mods[1..] == ["ftz", "f32"] => {
            relation(comparison).map_or(Meaning::Opaque, |(_, form)| Meaning::Relation(form))
        }
        _ => Meaning::Opaque,
    }
}

/// A comparison of numbers by one of `eq`, `ne`, `lt`, `le`, `num`.
pub(super) fn relation(comparison: &str) -> Option<(&'static str, Form)> {
    let (base, swapped, negated) = match comparison {
        "eq" => ("eq", false, false),
        "neu" => ("eq", false, true),
        "ne" => ("ne", false, false),
        "equ" => ("ne", false, true),
        "lt" => ("lt", false, false),
        "gt" => ("lt", true, false),
        "geu" => ("lt", false, true),
        "leu" => ("lt", true, true),
        "le" => ("le", false, false),
        "ge" => ("le", true, false),
        "gtu" => ("le", false, true),
        "ltu" => ("le", true, true),
        "num" => ("num", false, false),
        "nan" => ("num", false, true),
        _ => return None,
    };
    let symmetric = matches!(base, "eq" | "ne" | "num");
    Some((
        base,
        Form {
            swapped,
            negated,
            symmetric,
        },
    ))
}

/// May the first two operands change places, bit for bit? Of doubles and halves it is not said which
/// NaN comes out; singles give one NaN only.
fn commutes(op: Op, mods: &[&str], first: Option<Type>, args: usize) -> bool {
    let is_integer = first.is_some_and(|ty| integer(ty).is_some());
    let is_single = first == Some(Type::F32)
        && mods.split_last().is_some_and(|(_, rest)| {
            rest.iter()
                .all(|name| ["rn", "rz", "rm", "rp", "ftz", "sat"].contains(name))
        });
    match (op, args) {
        (Op::And | Op::Or | Op::Xor, 2) => mods.len() == 1,
        (Op::Min | Op::Max, 2) => {
            (is_integer && mods.len() == 1)
                || (first == Some(Type::F32) && matches!(mods, [_] | ["ftz", _]))
        }
        (Op::Add, 2) => (is_integer && mods[0] == "sat") || is_single,
        (Op::Mul, 2) => (is_integer && mods[0] == "hi") || is_single,
        (Op::Mul24, 2) => is_integer,
        (Op::Fma, 3) => is_single,
        (Op::Mad, 3) => (is_integer && mods[0] == "hi") || is_single,
        _ => false,
    }
}

/// Is it arithmetic of singles without a rounding mode, which may become part of a fused operation (PTX ISA, `add`)?
fn may_fuse(mods: &[&str]) -> bool {
    let is_open = |name: &&str| ["ftz", "sat"].contains(name);
    matches!(mods.split_last(), Some((&"f32", rest)) if rest.iter().all(is_open))
}

fn with_bits(integer: Option<(u32, bool)>, make: fn(u32) -> Meaning) -> Meaning {
    integer.map_or(Meaning::Opaque, |(bits, _)| make(bits))
}

/// Bits and signedness of a scalar integer type.
fn integer(ty: Type) -> Option<(u32, bool)> {
    match ty {
        Type::U16 | Type::U32 | Type::U64 => Some((ty.bits(), false)),
        Type::S16 | Type::S32 | Type::S64 => Some((ty.bits(), true)),
        _ => None,
    }
}

/// Bits of a type whose equality is that of its bits.
fn word(ty: Type) -> Option<u32> {
    let is_bits = matches!(ty, Type::B16 | Type::B32 | Type::B64);
    (is_bits || integer(ty).is_some()).then(|| ty.bits())
}

fn mov(ty: Option<Type>, args: usize, results: usize) -> Meaning {
    let bits = ty.map_or(0, Type::bits);
    match (args as u32, results as u32) {
        (1, 1) => Meaning::Copy,
        (1, parts @ 2..) if bits.is_multiple_of(parts) => Meaning::Unpack(bits / parts),
        (parts @ 2.., 1) if bits.is_multiple_of(parts) => Meaning::Pack(bits / parts),
        _ => Meaning::Opaque,
    }
}

/// `cvt` of the low part of a register, which is an integer.
fn low_part(opcode: &Opcode, step: &Step) -> Meaning {
    let is_plain = opcode.op == Some(Op::Cvt) && opcode.mods().count() == 2;
    match step.args.as_slice() {
        // The result would be noted if its register were wider.
        [Arg::Low { .. } | Arg::Plus { .. }] if is_plain && step.op == *opcode.text => {
            convert(opcode)
        }
        _ => Meaning::Opaque,
    }
}

/// `cvt` between integers, without saturation.
fn convert(opcode: &Opcode) -> Meaning {
    let [to, from] = opcode.types.as_slice() else {
        return Meaning::Opaque;
    };
    let with_bytes = |ty: Type| match ty {
        Type::U8 => Some((8, false)),
        Type::S8 => Some((8, true)),
        ty => integer(ty),
    };
    let (Some((to, _)), Some((from, signed))) = (with_bytes(*to), with_bytes(*from)) else {
        return Meaning::Opaque;
    };
    match to.cmp(&from) {
        std::cmp::Ordering::Equal => Meaning::Copy,
        std::cmp::Ordering::Less => Meaning::Truncate { from, to },
        std::cmp::Ordering::Greater if signed => Meaning::SignExtend { from, to },
        std::cmp::Ordering::Greater => Meaning::ZeroExtend { from, to },
    }
}
