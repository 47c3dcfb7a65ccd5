//! Which instructions compute a known function of integers.

use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Opcode, Type};

use crate::fold::{Comparison, Fold, IntOp};
use crate::semantics::Step;

/// The function that a pure instruction computes, if all its registers have the width of its types.
pub(super) fn fold(opcode: &Opcode, step: &Step) -> Option<Fold> {
    if step.reads_flag {
        return None;
    }
    let ty = *opcode.types.first()?;
    let mods: Vec<&str> = opcode
        .mods()
        .filter(|&name| !(step.writes_flag && name == "cc"))
        .collect();
    let shape = (step.args.len(), step.results.len());
    let op = plain(opcode, &mods, shape)?;
    // A conversion is named for its result first.
    let of = if opcode.op == Some(Op::Cvt) {
        *opcode.types.get(1)?
    } else {
        ty
    };
    let (bits, signed) = operand(of)?;
    let is_integer = integer(of).is_some();
    let is_word = matches!(of, Type::B16 | Type::B32 | Type::B64);
    let fits = match op {
        IntOp::Move | IntOp::Select => true,
        IntOp::And | IntOp::Or | IntOp::Xor | IntOp::Not => is_word || of == Type::Pred,
        IntOp::ShiftLeft
        | IntOp::IsZero
        | IntOp::CountOnes
        | IntOp::LeadingZeros
        | IntOp::Reverse => is_word,
        IntOp::ShiftRight => is_word || is_integer,
        IntOp::InsertField | IntOp::Permute | IntOp::Funnel { .. } | IntOp::Lookup => is_word,
        IntOp::Compare(by) | IntOp::CompareAnd(by) | IntOp::CompareOr(by) => {
            is_integer || is_word && matches!(by, Comparison::Equal | Comparison::Differ)
        }
        IntOp::MulWide | IntOp::MulAddWide => is_integer && bits < 64,
        IntOp::Negate | IntOp::Abs => is_integer && signed,
        _ => is_integer,
    };
    fits.then_some(Fold { op, bits, signed })
}

/// The operation by its word and modifiers, which must be these and no others, before its type.
fn plain(opcode: &Opcode, mods: &[&str], (args, results): (usize, usize)) -> Option<IntOp> {
    let op = opcode.op?;
    if op == Op::Setp {
        return comparison(mods, opcode, args, results);
    }
    if results != 1 {
        return None;
    }
    Some(match (op, mods, args) {
        (Op::Mov, [_], 1) => IntOp::Move,
        (Op::Add, [_], 2) => IntOp::Add,
        (Op::Sub, [_], 2) => IntOp::Sub,
        (Op::Mul, ["lo", _], 2) => IntOp::Mul,
        (Op::Mul, ["hi", _], 2) => IntOp::MulHigh,
        (Op::Mul, ["wide", _], 2) => IntOp::MulWide,
        (Op::Mad, ["lo", _], 3) => IntOp::MulAdd,
        (Op::Mad, ["hi", _], 3) => IntOp::MulAddHigh,
        (Op::Mad, ["wide", _], 3) => IntOp::MulAddWide,
        (Op::Div, [_], 2) => IntOp::Divide,
        (Op::Rem, [_], 2) => IntOp::Remainder,
        (Op::Neg, [_], 1) => IntOp::Negate,
        (Op::Abs, [_], 1) => IntOp::Abs,
        (Op::Min, [_], 2) => IntOp::Min,
        (Op::Max, [_], 2) => IntOp::Max,
        (Op::And, [_], 2) => IntOp::And,
        (Op::Or, [_], 2) => IntOp::Or,
        (Op::Xor, [_], 2) => IntOp::Xor,
        (Op::Not, [_], 1) => IntOp::Not,
        (Op::Cnot, [_], 1) => IntOp::IsZero,
        (Op::Shl, [_], 2) => IntOp::ShiftLeft,
        (Op::Shr, [_], 2) => IntOp::ShiftRight,
        (Op::Popc, [_], 1) => IntOp::CountOnes,
        (Op::Clz, [_], 1) => IntOp::LeadingZeros,
        (Op::Brev, [_], 1) => IntOp::Reverse,
        (Op::Bfe, [_], 3) => IntOp::ExtractField,
        (Op::Bfi, [_], 4) => IntOp::InsertField,
        (Op::Prmt, [_], 3) => IntOp::Permute,
        (Op::Shf, [way, amount, _], 3) => IntOp::Funnel {
            left: *way == "l",
            clamp: *amount == "clamp",
        },
        (Op::Lop3, [_], 4) => IntOp::Lookup,
        (Op::Selp, [_], 3) => IntOp::Select,
        (Op::Cvt, [_, _], 1) => IntOp::Convert(integer(*opcode.types.first()?)?.0),
        _ => return None,
    })
}

fn comparison(mods: &[&str], opcode: &Opcode, args: usize, results: usize) -> Option<IntOp> {
    let (name, combine) = match (mods, args) {
        ([name, _], 2) => (*name, None),
        ([name, combine, _], 3) => (*name, Some(*combine)),
        _ => return None,
    };
    let unsigned = || {
        opcode
            .types
            .first()
            .copied()
            .and_then(integer)
            .is_some_and(|of| !of.1)
    };
    let by = match name {
        "eq" => Comparison::Equal,
        "ne" => Comparison::Differ,
        "lt" => Comparison::Less,
        "le" => Comparison::LessEqual,
        "gt" => Comparison::Greater,
        "ge" => Comparison::GreaterEqual,
        "lo" if unsigned() => Comparison::Less,
        "ls" if unsigned() => Comparison::LessEqual,
        "hi" if unsigned() => Comparison::Greater,
        "hs" if unsigned() => Comparison::GreaterEqual,
        _ => return None,
    };
    match (combine, results) {
        (None, 1 | 2) => Some(IntOp::Compare(by)),
        (Some("and"), 1) => Some(IntOp::CompareAnd(by)),
        (Some("or"), 1) => Some(IntOp::CompareOr(by)),
        _ => None,
    }
}

/// Bits of a type, and whether its numbers have signs.
fn operand(ty: Type) -> Option<(u32, bool)> {
    match ty {
        Type::Pred => Some((1, false)),
        Type::B16 | Type::B32 | Type::B64 => Some((ty.bits(), false)),
        // Bits that are moved as they are.
        Type::F16 | Type::F32 | Type::F64 => Some((ty.bits(), false)),
        _ => integer(ty),
    }
}

fn integer(ty: Type) -> Option<(u32, bool)> {
    match ty {
        Type::U16 | Type::U32 | Type::U64 => Some((ty.bits(), false)),
        Type::S16 | Type::S32 | Type::S64 => Some((ty.bits(), true)),
        _ => None,
    }
}
