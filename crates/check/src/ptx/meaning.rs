//! The PTX instructions that the checker interprets: moves, integer arithmetic of addresses,
//! selection and comparison. Of some others it knows that operands may change places. Everything else
//! stays a free function.

use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Opcode, Type};

use crate::semantics::{Form, Meaning, Step};

/// What a pure instruction computes. `is_exact`: all its registers have the width of its types.
pub(super) fn meaning(opcode: &Opcode, step: &Step, is_exact: bool) -> Meaning {
    if !is_exact {
        return Meaning::Opaque;
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
        (Some(Op::Add), [_], 2, 1) => with_bits(integer, Meaning::Add),
        (Some(Op::Sub), [_], 2, 1) => with_bits(integer, Meaning::Sub),
        (Some(Op::Mul), ["lo", _], 2, 1) => with_bits(integer, Meaning::Mul),
        (Some(Op::Mad), ["lo", _], 3, 1) => with_bits(integer, Meaning::MulAdd),
        (Some(Op::Mul), ["wide", _], 2, 1) => match integer {
            Some((bits, signed)) => Meaning::MulWide { bits, signed },
            None => Meaning::Opaque,
        },
        (Some(Op::Mad), ["wide", _], 3, 1) => match integer {
            Some((bits, signed)) => Meaning::MulAddWide { bits, signed },
            None => Meaning::Opaque,
        },
        (Some(Op::Xor), [_], 2, 1) => match first {
            Some(Type::B16 | Type::B32 | Type::B64) => Meaning::Xor(first.map_or(32, Type::bits)),
            _ => Meaning::Opaque,
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
        (Some(Op::Neg), [_], 1, 1) => with_bits(integer.filter(|of| of.1), Meaning::Negate),
        (Some(Op::Div), [_], 2, 1) => match integer {
            Some((bits, signed)) => Meaning::Divide { bits, signed },
            None => Meaning::Opaque,
        },
        (Some(Op::Rem), [_], 2, 1) => match integer {
            Some((bits, signed)) => Meaning::Remainder { bits, signed },
            None => Meaning::Opaque,
        },
        (Some(Op::Shr), [_], 2, 1) => match first {
            Some(Type::B16 | Type::B32 | Type::B64 | Type::U16 | Type::U32 | Type::U64) => {
                Meaning::Shr(first.map_or(32, Type::bits))
            }
            _ => Meaning::Opaque,
        },
        (Some(op), _, 2.., 1) if commutes(op, &mods, first, args) => Meaning::Commutative,
        (Some(Op::Not), ["pred"], 1, 1) => Meaning::Not,
        _ => Meaning::Opaque,
    }
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

/// `cvt` between integers, without saturation.
fn convert(opcode: &Opcode) -> Meaning {
    let [to, from] = opcode.types.as_slice() else {
        return Meaning::Opaque;
    };
    let (Some((to, _)), Some((from, signed))) = (integer(*to), integer(*from)) else {
        return Meaning::Opaque;
    };
    match to.cmp(&from) {
        std::cmp::Ordering::Equal => Meaning::Copy,
        std::cmp::Ordering::Less => Meaning::Truncate { from, to },
        std::cmp::Ordering::Greater if signed => Meaning::SignExtend { from, to },
        std::cmp::Ordering::Greater => Meaning::ZeroExtend { from, to },
    }
}
