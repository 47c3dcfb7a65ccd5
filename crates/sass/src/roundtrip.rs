//! Is a cubin read and written without loss?
//!
//! Five promises, checked on a file: the container is written back byte for byte; so are symbols,
//! relocations, `.nv.info` records and instructions when they go through their views; every instruction
//! is the same after decoding and encoding; the text form of every function parses back to its bits; and
//! the text of the whole file assembles to the same bytes.
//! An opaque instruction keeps them all: it is counted, not an error.

use crate::elf::{Elf, ElfError, Info, KernelSections};
use crate::inst::Instruction;
use crate::isa::{decode, encode};
use crate::text::{self, Function};

/// What one function came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionReport {
    /// Its name.
    pub name: String,
    /// Its instructions, helper functions in the same section included.
    pub instructions: usize,
    /// Those that the tables do not explain.
    pub opaque: usize,
}

/// A promise that does not hold, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The function, `None` for the file as a whole.
    pub function: Option<String>,
    /// Bytes from the start of the function's section.
    pub offset: Option<u64>,
    /// What is wrong.
    pub reason: String,
}

/// What the check of one cubin found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roundtrip {
    /// Every function with a section of its own.
    pub functions: Vec<FunctionReport>,
    /// What does not hold; nothing, if all does.
    pub broken: Vec<Broken>,
}

/// Checks a cubin.
///
/// # Errors
/// The bytes cannot be read as a cubin.
pub fn check(bytes: &[u8]) -> Result<Roundtrip, ElfError> {
    let elf = Elf::parse(bytes)?;
    let mut found = Roundtrip::default();
    let file = |reason: &str| Broken {
        function: None,
        offset: None,
        reason: reason.to_owned(),
    };
    if elf.write()? != bytes {
        found
            .broken
            .push(file("the container is written differently"));
    }
    if through_views(&elf)?.write()? != bytes {
        found.broken.push(file("a view changes it"));
    }
    match text::assemble(&text::whole(&elf)?) {
        Ok(again) if again == bytes => {}
        Ok(_) => found
            .broken
            .push(file("the text of the whole file reads back differently")),
        Err(error) => {
            let reason = format!("the text of the whole file does not parse: {error}");
            found.broken.push(file(&reason));
        }
    }
    for kernel in elf.kernels()? {
        check_function(&elf, kernel, &mut found)?;
    }
    Ok(found)
}

fn check_function(
    elf: &Elf,
    kernel: KernelSections,
    found: &mut Roundtrip,
) -> Result<(), ElfError> {
    let code = elf.instructions(&kernel)?;
    let mut opaque = 0;
    for (offset, &inst) in (0..).step_by(16).zip(&code) {
        let decoded = decode(inst);
        opaque += usize::from(decoded.is_opaque());
        if encode(&decoded) != Ok(inst) {
            found.broken.push(Broken {
                function: Some(kernel.name.clone()),
                offset: Some(offset),
                reason: format!("{:#034x} is encoded differently", inst.bits()),
            });
        }
    }
    found.functions.push(FunctionReport {
        name: kernel.name.clone(),
        instructions: code.len(),
        opaque,
    });
    let function = Function {
        name: kernel.name,
        note: String::new(),
        code,
    };
    found.broken.extend(text_differs(elf.target().sm, function));
    Ok(())
}

/// What the text form loses of a function.
fn text_differs(sm: u32, function: Function) -> Option<Broken> {
    let printed = text::print(sm, std::slice::from_ref(&function));
    let (offset, reason) = match text::parse(&printed) {
        Ok((read, functions)) if read == sm && functions == [function.clone()] => return None,
        Ok((_, functions)) => {
            let code = functions.first().map_or(&[][..], |f| &f.code);
            let at = first_difference(&function.code, code);
            let offset = at.map(|at| at as u64 * 16);
            (offset, "the text form reads back differently".to_owned())
        }
        Err(error) => (None, format!("the text form does not parse: {error}")),
    };
    Some(Broken {
        function: Some(function.name),
        offset,
        reason,
    })
}

fn first_difference(ours: &[Instruction], theirs: &[Instruction]) -> Option<usize> {
    let pairs = ours.iter().zip(theirs);
    let differs = pairs.enumerate().find(|(_, (a, b))| a != b);
    let shorter = ours.len().min(theirs.len());
    differs
        .map(|(at, _)| at)
        .or((ours.len() != theirs.len()).then_some(shorter))
}

/// Everything that has a typed view, read and written.
fn through_views(elf: &Elf) -> Result<Elf, ElfError> {
    let mut copy = elf.clone();
    copy.set_symbols(&elf.symbols()?)?;
    for (index, section) in elf.sections.iter().enumerate() {
        if section.is_relocations() {
            copy.set_relocations(index, &elf.relocations(index)?)?;
        }
        if section.name.starts_with(".nv.info") {
            copy.set_info(&section.name, &Info::parse(&section.data)?)?;
        }
    }
    for kernel in elf.kernels()? {
        copy.set_code(&kernel, &elf.instructions(&kernel)?)?;
    }
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918;

    #[test]
    fn text_of_any_words_reads_back() {
        let code = [NOP, 0xfff, NOP ^ 1 << 90, u128::MAX];
        let function = Function {
            name: "f".into(),
            note: String::new(),
            code: code.map(|bits| Instruction::new(90, bits)).to_vec(),
        };
        assert_eq!(text_differs(90, function), None);
    }

    #[test]
    fn differences_have_a_place() {
        let code = |words: &[u128]| -> Vec<Instruction> {
            words.iter().map(|&b| Instruction::new(90, b)).collect()
        };
        let two = code(&[NOP, NOP]);
        assert_eq!(first_difference(&two, &two), None);
        assert_eq!(first_difference(&two, &code(&[NOP, 0])), Some(1));
        assert_eq!(first_difference(&two, &code(&[NOP])), Some(1));
    }

    #[test]
    fn what_is_no_cubin_is_an_error() {
        assert!(check(b"\x7fELF").is_err());
    }
}
