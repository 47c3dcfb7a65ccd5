//! Other registers in an instruction, through the tables of roles.
//!
//! A register operand is renamed as a whole: a pair stays a pair, at its alignment. What is renamed
//! is read again afterwards, and must have the same operands with the new names. Operand reuse flags
//! and scoreboards stay: they are right as long as neighbours are renamed alike, which the hazard
//! checker tells.

use crate::inst::Instruction;
use crate::roles::{Field, File, Roles, Slot, Span, Table};

/// Why registers cannot be renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RenameError {
    /// The table of roles does not know the instruction.
    #[error("the operands of the instruction are not known")]
    Unknown,
    /// Two operands in one field were to get different names.
    #[error("an operand that is read and written cannot have two names")]
    Shared,
    /// The field does not hold the number, or the number is the zero register's.
    #[error("there is no register {0} for the operand")]
    NoRegister(u16),
    /// A pair at an odd register, or the like.
    #[error("register {0} does not have the operand's alignment")]
    Alignment(u16),
    /// Other operands would change with it.
    #[error("the operands of the instruction depend on the register")]
    Depends,
}

impl Instruction {
    /// The same instruction with other registers: `name` gives the first register of each operand.
    ///
    /// # Errors
    /// See [`RenameError`].
    pub fn renamed(self, name: impl Fn(Span) -> u16) -> Result<Instruction, RenameError> {
        let table = Table::for_sm(self.sm()).ok_or(RenameError::Unknown)?;
        let roles = table.roles(self).ok_or(RenameError::Unknown)?;
        let mut bits = self.bits();
        let mut expected = Vec::new();
        for &span in roles.spans() {
            let first = name(span);
            let mut slot = Slot::from(span);
            slot.complement = table.number(slot, self.bits()) != span.first;
            let field = checked(table.field(slot), span, first)?;
            let value = match slot.complement {
                true => (1 << field.1) - 1 - first,
                false => first,
            };
            bits = field.set(bits, value);
            expected.push(Span { first, ..span });
        }
        let renamed = self.with_bits(bits);
        let found = Roles::of(renamed).ok_or(RenameError::Depends)?;
        let same_field = |(span, wanted): (&Span, &Span)| span.bit == wanted.bit && span != wanted;
        match found.spans() == expected {
            true => Ok(renamed),
            false if found.spans().iter().zip(&expected).any(same_field) => {
                Err(RenameError::Shared)
            }
            false => Err(RenameError::Depends),
        }
    }
}

/// The field, if it can name the register.
fn checked(field: Field, span: Span, first: u16) -> Result<Field, RenameError> {
    let highest = (1u16 << field.1) - 1;
    // The highest number is no register, but a convergence barrier.
    let limit = highest + u16::from(span.file == File::Barrier);
    if first >= limit || limit - first < span.count {
        return Err(RenameError::NoRegister(first));
    }
    let alignment = match span.count {
        1 => 1,
        2 => 2,
        _ => 4,
    };
    match span.first.is_multiple_of(alignment) && !first.is_multiple_of(alignment) {
        true => Err(RenameError::Alignment(first)),
        false => Ok(field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::decode;

    fn text(inst: Instruction) -> String {
        decode(inst).text(0)
    }

    /// An instruction of sm_90.
    fn inst(low: u64, high: u64) -> Instruction {
        Instruction::new(90, u128::from(low) | u128::from(high) << 64)
    }

    /// IADD3 R5, R6, R7, RZ.
    const IADD3: (u64, u64) = (0x0000_0007_0605_7210, 0x000f_e200_07ff_e0ff);
    /// LDG.E.64 R4, desc[UR4][R2.64].
    const LDG: (u64, u64) = (0x0000_0004_0204_7981, 0x000e_a200_0c1e_1b00);

    #[test]
    fn every_operand_gets_its_new_name() {
        let add = inst(IADD3.0, IADD3.1);
        assert_eq!(text(add), "IADD3 R5, R6, R7, RZ");
        let moved = add.renamed(|span| span.first + 20).unwrap();
        assert_eq!(text(moved), "IADD3 R25, R26, R27, RZ");
        assert_eq!(moved.renamed(|span| span.first - 20), Ok(add));
        let load = inst(LDG.0, LDG.1);
        let moved = load.renamed(|span| match span.file {
            File::Gpr => span.first + 8,
            _ => span.first,
        });
        assert_eq!(text(load), "LDG.E.64 R4, desc[UR4][R2.64]");
        assert_eq!(text(moved.unwrap()), "LDG.E.64 R12, desc[UR4][R10.64]");
    }

    #[test]
    fn what_no_register_is_or_has_another_alignment_is_refused() {
        let add = inst(IADD3.0, IADD3.1);
        assert_eq!(add.renamed(|_| 255), Err(RenameError::NoRegister(255)));
        let load = inst(LDG.0, LDG.1);
        let general = |to: u16| {
            move |span: Span| match span.file {
                File::Gpr => to,
                _ => span.first,
            }
        };
        assert_eq!(load.renamed(general(7)), Err(RenameError::Alignment(7)));
        assert_eq!(
            load.renamed(general(254)),
            Err(RenameError::NoRegister(254))
        );
        let unknown = inst(0xfff, 0);
        assert_eq!(unknown.renamed(|s| s.first), Err(RenameError::Unknown));
    }
}
