//! The text form of machine code: nvdisasm's words with the control field before them.
//!
//! ```text
//! .sm 90
//! .function sgemm_tile // 135 registers, 16384 bytes shared
//! B------:R-:W0:-:S01:U---- /*0000*/ LDC R1, c[0x0][0x28]
//! .L_10:
//! B0-----:R-:W-:Y:S05:U---- /*0010*/ @!P0 BRA .L_10
//! B------:R-:W-:-:S01:U---- /*0020*/ .inst 0x00000000000000000000000000000fff
//! ```
//!
//! The text parses back to the same bits. Instructions that the tables do not explain are hexadecimal;
//! bits that nvdisasm's words do not tell apart (a NaN's payload, say) follow behind `^`, as the
//! difference to what the words say. The control column alone tells the operand reuse. Addresses are
//! for the reader: an instruction's place is its line. Lines that begin with `//` say nothing.
//!
//! [`print()`] writes the functions alone, [`whole()`] everything that the container knows; [`assemble()`]
//! makes a cubin of either.
//!
//! * [`code`](self::code): instructions and labels.
//! * `whole`, `words`: printing a container, and its words.
//! * `statement`, `assemble`: reading one.
//! * `fresh`: the container of code that states none.

mod assemble;
mod code;
mod error;
mod fresh;
mod statement;
mod whole;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::elf::{Elf, ElfError};
use crate::inst::Instruction;

pub use assemble::assemble;
pub use code::{instruction, parse_instruction, target};
pub use error::{TextError, TextErrorKind};
pub use whole::whole;

/// One function: a section of code with what belongs into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The section's name without `.text.`.
    pub name: String,
    /// What a reader wants to know of it; not part of the code.
    pub note: String,
    /// The instructions.
    pub code: Vec<Instruction>,
}

/// The functions of a cubin, one per section of code, helper functions behind a kernel included.
///
/// # Errors
/// [`ElfError::Damaged`]: symbols or code are cut short.
pub fn functions(elf: &Elf) -> Result<Vec<Function>, ElfError> {
    let kernels = elf.kernels()?;
    let mut functions = Vec::new();
    for kernel in kernels {
        let registers = elf.registers(&kernel)?.unwrap_or(0);
        let shared = match elf.own_shared_bytes(&kernel) {
            (own, 0) => format!("{own} bytes shared"),
            (own, system) => format!("{own} bytes shared and {system} of the system"),
        };
        functions.push(Function {
            note: format!("{registers} registers, {shared}"),
            code: elf.instructions(&kernel)?,
            name: kernel.name,
        });
    }
    Ok(functions)
}

/// The text of all functions.
pub fn print(sm: u32, functions: &[Function]) -> String {
    let mut out = format!(".sm {sm}\n");
    for function in functions {
        let _ = write!(out, "\n.function {}", error::Name(&function.name));
        if !function.note.is_empty() {
            let _ = write!(out, " // {}", function.note);
        }
        out.push('\n');
        code::print(&function.code, &BTreeSet::new(), &BTreeMap::new(), &mut out);
    }
    out
}

/// Reads the functions of a text back.
///
/// # Errors
/// The first line that is wrong.
pub fn parse(text: &str) -> Result<(u32, Vec<Function>), TextError> {
    let found = statement::Statements::read(text)?;
    let sm = assemble::architecture(text, &found)?;
    let functions = found.functions.iter().map(|function| {
        let draft = &found.sections[function.section];
        Ok(Function {
            name: draft.function().to_owned(),
            note: function.note.to_owned(),
            code: assemble::instructions(sm, draft)?,
        })
    });
    Ok((sm, functions.collect::<Result<_, _>>()?))
}
