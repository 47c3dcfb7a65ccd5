//! Is what a tool wrote a whole cubin, with the kernels that it was to hold?
//!
//! Not what the machine code means: only that every table and section lies within the file, so that a file
//! that was cut off is neither kept nor passed on.

use std::collections::BTreeSet;

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

/// `e_machine` of a device ELF file (EM_CUDA in the ELF registry of machine numbers).
const EM_CUDA: u16 = 190;

/// Why what a tool wrote is no whole cubin; the text is to be put behind "reports success, but".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Torn {
    #[error("it wrote no cubin")]
    Nothing,
    #[error("the {0} bytes that it wrote are no cubin")]
    Foreign(usize),
    #[error("the {bytes} bytes of its cubin are not whole: {error}")]
    Cut { bytes: usize, error: object::Error },
    #[error("the {0} bytes of its cubin are not whole: no section")]
    Empty(usize),
}

/// The functions of a cubin.
///
/// # Errors
/// It is none, or not whole.
pub(crate) fn functions(bytes: &[u8]) -> Result<BTreeSet<String>, Torn> {
    let machine = bytes.get(18..20).map(|b| u16::from_le_bytes([b[0], b[1]]));
    match machine {
        _ if bytes.is_empty() => return Err(Torn::Nothing),
        Some(EM_CUDA) if bytes.starts_with(b"\x7fELF") => {}
        _ => return Err(Torn::Foreign(bytes.len())),
    }
    let torn = |error: object::Error| Torn::Cut {
        bytes: bytes.len(),
        error,
    };
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(torn)?;
    if file.sections().next().is_none() {
        return Err(Torn::Empty(bytes.len()));
    }
    for section in file.sections() {
        section.data().map_err(torn)?;
        section.name().map_err(torn)?;
    }
    for segment in file.segments() {
        segment.data().map_err(torn)?;
    }
    let mut functions = BTreeSet::new();
    for symbol in file.symbols() {
        let name = symbol.name().map_err(torn)?;
        if symbol.kind() == SymbolKind::Text && symbol.is_definition() {
            functions.insert(name.to_owned());
        }
    }
    Ok(functions)
}

/// The kernels that a PTX module defines: the names behind `.entry`, comments and strings left out.
pub(crate) fn entries(ptx: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = ptx;
    while let Some(at) = rest.find(['/', '"', '.']) {
        rest = &rest[at..];
        let skipped = if let Some(comment) = rest.strip_prefix("//") {
            comment.find('\n').map(|end| &comment[end..])
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map(|end| &comment[end + 2..])
        } else if let Some(string) = rest.strip_prefix('"') {
            string.find('"').map(|end| &string[end + 1..])
        } else if let Some(behind) = rest.strip_prefix(".entry") {
            let name = behind.trim_start();
            let is_name = |c: char| c.is_ascii_alphanumeric() || "_$%".contains(c);
            let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
            if name.len() < behind.len() && end > 0 {
                found.push(&name[..end]);
            }
            Some(name)
        } else {
            Some(&rest[1..])
        };
        rest = skipped.unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_a_module() {
        let ptx = "// .entry a(\n/* .entry b( */ .file 1 \".entry c(\"\n.visible .entry\n d(.param .u64 p)\n\
                   .entry e$_1()\n.entryx f\n.weak .entry";
        assert_eq!(entries(ptx), ["d", "e$_1"]);
    }

    #[test]
    fn a_file_that_was_cut_is_no_cubin() {
        let mut head = b"\x7fELF\x02\x01\x01".to_vec();
        head.resize(100, 0);
        head[18] = 190;
        assert!(functions(&head).is_err(), "a header alone");
        head[40] = 200;
        head[58..62].copy_from_slice(&[64, 0, 5, 0]);
        assert!(functions(&head).is_err(), "sections beyond the end");
    }
}
