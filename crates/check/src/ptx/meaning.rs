//! The PTX instructions that the checker interprets: moves, integer arithmetic of addresses,
//! selection and comparison of integers. Everything else stays a free function.

use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Opcode, Type};

use crate::semantics::{Meaning, Step};

/// What a pure instruction computes. `is_exact`: all its registers have the width of its types.
pub(super) fn meaning(opcode: &Opcode, step: &Step, is_exact: bool) -> Meaning {
    if !is_exact || step.reads_flag || step.writes_flag {
        return Meaning::Opaque;
    }
    let mods: Vec<&str> = opcode.mods().collect();
    let (args, results) = (step.args.len(), step.results.len());
    let first = opcode.types.first().copied();
    let integer = first.and_then(integer);
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
        (Some(Op::Setp), [comparison, _], 2, 1) => match (*comparison, first.and_then(word)) {
            ("eq", Some(bits)) => Meaning::Equal(bits),
            ("ne", Some(bits)) => Meaning::Differ(bits),
            _ => Meaning::Opaque,
        },
        (Some(Op::Not), ["pred"], 1, 1) => Meaning::Not,
        _ => Meaning::Opaque,
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
