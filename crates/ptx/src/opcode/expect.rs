//! Type rules for register operands (PTX ISA, 'Type Checking of Operands' and 'Operand Size
//! Exceeding Instruction-Type Size').

use super::form::Lanes;
use crate::types::{Type, TypeKind};

/// What register type an operand may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The type; `None` when the table does not check it.
    pub ty: Option<Type>,
    /// Registers may be wider than the type (`ld`, `st`, `cvt`).
    pub wider: bool,
    /// Number of elements; [`Lanes::One`], [`Lanes::Exactly`], [`Lanes::Pack`] or [`Lanes::Any`] after
    /// everything that depends on the opcode has been resolved.
    pub lanes: Lanes,
    /// For a destination pair `d|p`: the type of `p`.
    pub second: Option<Type>,
}

impl Expected {
    /// May a register of this type stand there (as the operand or as one element of it)?
    pub fn accepts(&self, register: Type) -> bool {
        self.ty.is_none_or(|ty| agree(ty, register, self.wider))
    }
}

/// Does a register type agree with an instruction type? Integers of one size agree whatever
/// their sign, floating point agrees with itself, bits agree with everything of their size.
fn agree(instruction: Type, register: Type, wider: bool) -> bool {
    let size_fits = match wider {
        true => register.bits() >= instruction.bits(),
        false => register.bits() == instruction.bits(),
    };
    match (instruction.kind(), register.kind()) {
        (TypeKind::Predicate, kind) | (kind, TypeKind::Predicate) => kind == TypeKind::Predicate,
        // An opaque reference may come as a 64-bit handle in a register.
        (TypeKind::Opaque, TypeKind::Opaque) => instruction == register,
        (TypeKind::Opaque, _) => register.bits() == 64 && !register.is_float(),
        (_, TypeKind::Opaque) => false,
        (TypeKind::Bits, _) | (_, TypeKind::Bits) => size_fits,
        (TypeKind::Float, TypeKind::Float) => instruction.bits() == register.bits(),
        (TypeKind::Float, _) | (_, TypeKind::Float) => false,
        _ => size_fits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relaxed_type_rules() {
        assert!(agree(Type::S32, Type::U32, false));
        assert!(agree(Type::F32, Type::B32, false));
        assert!(agree(Type::B32, Type::F32, false));
        assert!(agree(Type::Bf16x2, Type::B32, false));
        assert!(!agree(Type::F32, Type::U32, false));
        assert!(!agree(Type::S32, Type::S64, false));
        assert!(agree(Type::U8, Type::U32, true));
        assert!(!agree(Type::U32, Type::U16, true));
        assert!(!agree(Type::F32, Type::F64, true));
        assert!(!agree(Type::Pred, Type::B32, true));
        assert!(agree(Type::TexRef, Type::U64, false));
    }
}
