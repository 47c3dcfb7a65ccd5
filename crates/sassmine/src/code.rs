//! The machine code of cubins, section by section.

use std::path::{Path, PathBuf};

use object::elf::{EM_CUDA, SHF_EXECINSTR};
use object::read::elf::{ElfFile64, FileHeader};
use object::{Object, ObjectSection, SectionFlags};
use warpwright_sass::Instruction;

use crate::Error;

/// One cubin: its bytes and its code sections.
pub struct Cubin {
    /// Where it came from.
    pub path: PathBuf,
    /// The file.
    pub bytes: Vec<u8>,
    /// Its architecture.
    pub sm: u32,
    /// Section names and instructions.
    pub sections: Vec<(String, Vec<Instruction>)>,
}

/// All cubins among `paths`, folders searched through, in the order of their names.
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<Cubin>, Error> {
    find_all(paths)?.iter().map(|file| read(file)).collect()
}

/// The files that [`read_all`] reads.
pub fn find_all(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        find(path, &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let failed = |error| Error::File(path.to_owned(), error);
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?.path();
        if entry.is_dir() || entry.extension().is_some_and(|e| e == "cubin") {
            find(&entry, files)?;
        }
    }
    Ok(())
}

/// Reads one cubin.
pub fn read(path: &Path) -> Result<Cubin, Error> {
    let bytes = std::fs::read(path).map_err(|error| Error::File(path.to_owned(), error))?;
    let bad = |error: object::Error| Error::Input(path.to_owned(), error.to_string());
    let elf: ElfFile64 = ElfFile64::parse(&bytes[..]).map_err(bad)?;
    let header = elf.elf_header();
    if header.e_machine(elf.endian()) != EM_CUDA {
        return Err(Error::Input(path.to_owned(), "not a cubin".into()));
    }
    let sm = (header.e_flags(elf.endian()) >> 8) & 0xff;
    let mut sections = Vec::new();
    for section in elf.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else {
            continue;
        };
        if sh_flags & u64::from(SHF_EXECINSTR) == 0 {
            continue;
        }
        let name = section.name().map_err(bad)?.to_owned();
        let words = section.data().map_err(bad)?.as_chunks::<16>().0;
        let code = words
            .iter()
            .map(|raw| Instruction::new(sm, u128::from_le_bytes(*raw)));
        sections.push((name, code.collect()));
    }
    Ok(Cubin {
        path: path.to_owned(),
        sm,
        sections,
        bytes,
    })
}
