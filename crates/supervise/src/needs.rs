//! What a program must have loaded before all else, as its file says.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

#[cfg(target_arch = "aarch64")]
use object::elf::EM_AARCH64;
#[cfg(target_arch = "x86_64")]
use object::elf::EM_X86_64;
use object::elf::{
    DF_1_PIE, DT_FLAGS_1, DT_NEEDED, DT_NULL, DT_SONAME, DT_STRSZ, DT_STRTAB, Dyn64, ELFMAG,
    ET_DYN, FileHeader64, PT_LOAD, ProgramHeader64,
};
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
    places.find(|place| place.is_file() && may_start(place))
}

/// The dynamic linker that programs have which can load a library of ours, without its folder, and the processor.
#[cfg(target_arch = "x86_64")]
const OWN: (u16, &[u8]) = (EM_X86_64, b"ld-linux-x86-64.so.2");
#[cfg(target_arch = "aarch64")]
const OWN: (u16, &[u8]) = (EM_AARCH64, b"ld-linux-aarch64.so.1");

/// Scripts that run each other, at most (`exec_binprm` in Linux' fs/exec.c).
const SCRIPTS: usize = 5;

/// Can a program not load a library of ours: one of another width or processor, or one that another dynamic linker starts
/// (musl's), that linker itself, or one that may be started and not read? Of a script what runs it is looked at, in the end.
pub fn is_foreign(program: &OsStr) -> bool {
    let Some(mut path) = found(program) else {
        return false;
    };
    for _ in 0..SCRIPTS {
        match runs(&path) {
            Some(next) => path = next,
            None => break,
        }
    }
    is_unread(&path) || foreign(&path) == Some(true)
}

fn is_unread(program: &Path) -> bool {
    let failed = File::open(program).err().map(|failure| failure.kind());
    failed == Some(ErrorKind::PermissionDenied) && may_start(program)
}

fn may_start(program: &Path) -> bool {
    access(program, AccessFlags::X_OK).is_ok()
}

/// What runs a script, as the kernel reads its first bytes.
fn runs(script: &Path) -> Option<PathBuf> {
    const LOOKED_AT: u64 = 256;
    if !script.metadata().ok()?.is_file() {
        return None;
    }
    let mut first = Vec::new();
    let file = File::open(script).ok()?;
    file.take(LOOKED_AT).read_to_end(&mut first).ok()?;
    let line = first.strip_prefix(b"#!")?.trim_ascii_start();
    let is_end = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | 0);
    let end = line.iter().position(is_end).unwrap_or(line.len());
    Some(PathBuf::from(OsStr::from_bytes(&line[..end])))
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
    if header.e_machine(LittleEndian) != machine {
        return Some(true);
    }
    let mut linkers = segments
        .iter()
        .filter_map(|segment| segment.interpreter(LittleEndian, &file).ok()?);
    let is_other = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() != Some(linker);
    Some(match linkers.next() {
        Some(path) => is_other(path),
        None => header.e_type(LittleEndian) == ET_DYN && is_nameless_linker(segments, &file),
    })
}

/// What needs no dynamic linker, and says neither its name, as GNU's does, nor that it is a program is one itself: musl's.
fn is_nameless_linker<'data>(
    segments: &[ProgramHeader64<LittleEndian>],
    file: &'data ReadCache<File>,
) -> bool {
    let mut dynamic = segments
        .iter()
        .filter_map(|segment| segment.dynamic(LittleEndian, file).ok()?);
    let says = |entry: &Dyn64<LittleEndian>| {
        let (tag, value) = (entry.d_tag(LittleEndian), entry.d_val(LittleEndian));
        let is_program = tag == u64::from(DT_FLAGS_1) && value & u64::from(DF_1_PIE) != 0;
        tag == u64::from(DT_SONAME) || is_program
    };
    dynamic
        .next()
        .is_some_and(|entries: &'data [Dyn64<LittleEndian>]| !entries.iter().any(says))
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
