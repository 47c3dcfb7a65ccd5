//! What a program must have loaded before all else, as its file says.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

#[cfg(target_arch = "aarch64")]
use object::elf::EM_AARCH64;
#[cfg(target_arch = "x86_64")]
use object::elf::EM_X86_64;
use object::elf::{DT_NEEDED, DT_NULL, DT_STRSZ, DT_STRTAB, Dyn64, ELFMAG, FileHeader64, PT_LOAD};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use object::{LittleEndian, ReadCache, ReadRef as _};

/// AddressSanitizer's library, of GCC or Clang: it ends a program where another one is loaded before it.
const SANITIZER: [&str; 2] = ["libasan.so", "libclang_rt.asan"];

/// Does the file of a program ask for AddressSanitizer's library?
pub fn sanitizer(program: &OsStr) -> bool {
    one_of(program, &SANITIZER)
}

/// Is the file of a program linked with a library whose name begins so?
pub fn one_of(program: &OsStr, libraries: &[&str]) -> bool {
    let needed = found(program).and_then(|path| needed(&path));
    let is_it = |name: &Vec<u8>| libraries.iter().any(|it| name.starts_with(it.as_bytes()));
    needed.is_some_and(|names| names.iter().any(is_it))
}

/// The file that is started.
fn found(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 || program.to_string_lossy().contains('/') {
        return Some(path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(path));
    places.find(|place| place.is_file())
}

/// The dynamic linker that programs have which can load a library of ours, without its folder, and the processor.
#[cfg(target_arch = "x86_64")]
const OWN: (u16, &[u8]) = (EM_X86_64, b"ld-linux-x86-64.so.2");
#[cfg(target_arch = "aarch64")]
const OWN: (u16, &[u8]) = (EM_AARCH64, b"ld-linux-aarch64.so.1");

/// Can a program not load a library of ours: one of another width or processor, or one that another dynamic linker starts
/// (musl's)?
pub fn is_foreign(program: &OsStr) -> bool {
    found(program).is_some_and(|path| foreign(&path) == Some(true))
}

fn foreign(program: &Path) -> Option<bool> {
    if !program.metadata().ok()?.is_file() {
        return None;
    }
    let file = ReadCache::new(File::open(program).ok()?);
    if (&file).read_bytes_at(0, 4).ok()? != ELFMAG {
        return None;
    }
    let Ok(header) = FileHeader64::<LittleEndian>::parse(&file) else {
        return Some(true);
    };
    let segments = header.program_headers(LittleEndian, &file).ok()?;
    let (machine, linker) = OWN;
    let mut linkers = segments
        .iter()
        .filter_map(|segment| segment.interpreter(LittleEndian, &file).ok()?);
    let is_other = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() != Some(linker);
    Some(header.e_machine(LittleEndian) != machine || linkers.next().is_some_and(is_other))
}

/// The libraries that a program of 64 bits is linked with, by the names in its dynamic section.
fn needed(program: &Path) -> Option<Vec<Vec<u8>>> {
    if !program.metadata().ok()?.is_file() {
        return None;
    }
    let file = ReadCache::new(File::open(program).ok()?);
    let header = FileHeader64::<LittleEndian>::parse(&file).ok()?;
    let segments = header.program_headers(LittleEndian, &file).ok()?;
    let dynamic = segments
        .iter()
        .find_map(|segment| segment.dynamic(LittleEndian, &file).ok()?)?;
    let is_end = |entry: &Dyn64<LittleEndian>| entry.d_tag(LittleEndian) == u64::from(DT_NULL);
    let entries = dynamic.split(is_end).next()?;
    let of_kind = |wanted: u32| {
        let wanted = u64::from(wanted);
        entries
            .iter()
            .filter(move |entry| entry.d_tag(LittleEndian) == wanted)
    };
    let value = |wanted| Some(of_kind(wanted).next()?.d_val(LittleEndian));
    let (address, bytes) = (value(DT_STRTAB)?, value(DT_STRSZ)?);
    let mut loaded = segments
        .iter()
        .filter(|segment| segment.p_type(LittleEndian) == PT_LOAD);
    let at = loaded.find_map(|segment| {
        let within = address.checked_sub(segment.p_vaddr(LittleEndian))?;
        let is_inside = within < segment.p_filesz(LittleEndian);
        is_inside.then_some(segment.p_offset(LittleEndian).checked_add(within)?)
    })?;
    let names = (&file).read_bytes_at(at, bytes.min(16 << 20)).ok()?;
    let name = |entry: &Dyn64<LittleEndian>| {
        let text = names.get(usize::try_from(entry.d_val(LittleEndian)).ok()?..)?;
        Some(text.split(|byte| *byte == 0).next()?.to_vec())
    };
    Some(of_kind(DT_NEEDED).filter_map(name).collect())
}
