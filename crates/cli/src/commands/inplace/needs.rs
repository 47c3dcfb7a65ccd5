//! What a program must have loaded before all else, as its file says.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// AddressSanitizer's library, of GCC or Clang: it ends a program where another one is loaded before it.
const SANITIZER: [&str; 2] = ["libasan.so", "libclang_rt.asan"];

/// Does the file of a program ask for AddressSanitizer's library?
pub fn sanitizer(program: &OsStr) -> bool {
    let needed = found(program).and_then(|path| needed(&path));
    let is_it = |name: &[u8]| SANITIZER.iter().any(|it| name.starts_with(it.as_bytes()));
    needed.is_some_and(|names| names.iter().any(|name| is_it(name)))
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

/// Whole numbers of a part of a file.
fn words<const COUNT: usize>(part: &[u8], at: usize) -> Option<[u64; COUNT]> {
    let mut all = [0; COUNT];
    for (word, bytes) in all.iter_mut().zip(part.get(at..)?.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Some(all)
}

/// A part of a file, of at most so many bytes.
fn part(file: &File, at: u64, bytes: u64) -> Option<Vec<u8>> {
    const MOST: u64 = 16 << 20;
    let mut part = vec![0; usize::try_from(bytes.min(MOST)).ok()?];
    file.read_exact_at(&mut part, at).ok()?;
    Some(part)
}

/// The libraries that a program of 64 bits is linked with, by the names in its dynamic section.
fn needed(program: &Path) -> Option<Vec<Vec<u8>>> {
    const LOAD: u32 = 1;
    const DYNAMIC: u32 = 2;
    const NEEDED: u64 = 1;
    const NAMES: u64 = 5;
    const BYTES: u64 = 10;
    if !program.metadata().ok()?.is_file() {
        return None;
    }
    let mut file = File::open(program).ok()?;
    let mut head = [0; 64];
    file.read_exact(&mut head).ok()?;
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let [start] = words(&head, 32)?;
    let half = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let table = part(&file, start, half(54) * half(56))?;
    let of_kind = |wanted: u32| {
        let entries = table.chunks_exact(56);
        entries.filter(move |entry| entry.starts_with(&wanted.to_le_bytes()))
    };
    // Offset, address, (physical address,) bytes.
    let dynamic = of_kind(DYNAMIC).next()?;
    let [at, _, _, bytes] = words(dynamic, 8)?;
    let section = part(&file, at, bytes)?;
    let entries = section
        .chunks_exact(16)
        .filter_map(|entry| words::<2>(entry, 0));
    let entries: Vec<[u64; 2]> = entries.take_while(|[tag, _]| *tag != 0).collect();
    let value = |wanted| {
        entries
            .iter()
            .find(|[tag, _]| *tag == wanted)
            .map(|[_, value]| *value)
    };
    let (address, size) = (value(NAMES)?, value(BYTES)?);
    let at = of_kind(LOAD).find_map(|entry| {
        let [offset, start, _, bytes] = words(entry, 8)?;
        let within = address.checked_sub(start)?;
        (within < bytes).then_some(offset.checked_add(within)?)
    })?;
    let names = part(&file, at, size)?;
    let name = |[tag, value]: &[u64; 2]| {
        let text = names
            .get(usize::try_from(*value).ok()?..)
            .filter(|_| *tag == NEEDED)?;
        Some(text.split(|byte| *byte == 0).next()?.to_vec())
    };
    Some(entries.iter().filter_map(name).collect())
}
