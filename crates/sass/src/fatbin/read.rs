//! Headers of fat binaries: finding and rewriting them.

use object::{Object, ObjectSection};

use super::payload::{Compression, LZ4, ZSTD};
use super::{Entry, FatbinError, Kind};

const MAGIC: [u8; 4] = 0xba55_ed50u32.to_le_bytes();
const CONTAINER: usize = 16;
const ENTRY: usize = 64;
/// Sections of host files: for device code as it is, and for relocatable device code.
const SECTIONS: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];
/// Payloads beyond this are taken for damage.
const LARGEST: u64 = 1 << 31;

fn damaged(what: &str) -> FatbinError {
    FatbinError::Damaged(what.to_owned())
}

/// The payloads of a file.
pub fn entries(bytes: &[u8]) -> Result<Vec<Entry>, FatbinError> {
    let mut found = Vec::new();
    if bytes.starts_with(&MAGIC) {
        containers(bytes, 0..bytes.len(), "", &mut found)?;
        return Ok(found);
    }
    let host = object::File::parse(bytes).map_err(|_| FatbinError::None)?;
    let mut any = false;
    for section in host.sections() {
        let name = section.name().unwrap_or_default();
        let Some((at, size)) = section.file_range().filter(|_| SECTIONS.contains(&name)) else {
            continue;
        };
        any = true;
        let end = at
            .checked_add(size)
            .filter(|&end| end <= bytes.len() as u64);
        let end = end.ok_or_else(|| damaged("its section reaches beyond the file"))?;
        containers(bytes, at as usize..end as usize, name, &mut found)?;
    }
    match any {
        true => Ok(found),
        false => Err(FatbinError::None),
    }
}

fn word(bytes: &[u8], at: usize, size: usize) -> Result<u64, FatbinError> {
    let raw = at.checked_add(size).and_then(|end| bytes.get(at..end));
    let raw = raw.ok_or_else(|| damaged("it is cut short"))?;
    let bytes = raw.iter().rev();
    Ok(bytes.fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// The containers of a section, one behind the other, zeros between them.
fn containers(
    bytes: &[u8],
    range: std::ops::Range<usize>,
    section: &str,
    found: &mut Vec<Entry>,
) -> Result<(), FatbinError> {
    let bytes = &bytes[..range.end];
    let mut at = range.start;
    while at + CONTAINER <= range.end {
        if bytes[at..at + 8].iter().all(|&b| b == 0) {
            at += 8;
            continue;
        }
        if !bytes[at..].starts_with(&MAGIC) {
            return Err(damaged("something else stands where a header should be"));
        }
        let header = word(bytes, at + 6, 2)? as usize;
        let size = word(bytes, at + 8, 8)?;
        let start = at + header;
        let end = start as u64 + size.min(LARGEST);
        if header < CONTAINER || end > range.end as u64 {
            return Err(damaged("a container reaches beyond its section"));
        }
        container(bytes, at, start..end as usize, section, found)?;
        at = (end as usize).next_multiple_of(8);
    }
    Ok(())
}

fn container(
    bytes: &[u8],
    container: usize,
    range: std::ops::Range<usize>,
    section: &str,
    found: &mut Vec<Entry>,
) -> Result<(), FatbinError> {
    let mut at = range.start;
    while at < range.end {
        let entry = entry(&bytes[..range.end], container, at, section)?;
        at = entry.payload.end;
        // Sections that lie over each other would name the same entries again and again.
        if found.len() > bytes.len() / ENTRY {
            return Err(damaged("it has more entries than there is room for"));
        }
        found.push(entry);
    }
    Ok(())
}

fn entry(bytes: &[u8], container: usize, at: usize, section: &str) -> Result<Entry, FatbinError> {
    let field = |offset, size| word(bytes, at + offset, size);
    let (header, padded) = (field(4, 4)? as usize, field(8, 8)?);
    let payload = at + header;
    let end = payload as u64 + padded.min(LARGEST);
    if header < ENTRY || end > bytes.len() as u64 {
        return Err(damaged("an entry reaches beyond its container"));
    }
    let (compressed, flags, size) = (field(16, 4)?, field(40, 8)?, field(56, 8)?);
    let compression = Compression::of(flags, compressed);
    let (stored, size) = match compression {
        Compression::None => (padded, padded),
        _ => (compressed, size),
    };
    if stored > padded || size > LARGEST {
        return Err(damaged("an entry has an impossible size"));
    }
    Ok(Entry {
        kind: match field(0, 2)? as u16 {
            1 => Kind::Ptx,
            2 => Kind::Cubin,
            other => Kind::Other(other),
        },
        sm: field(28, 4)? as u32,
        section: section.to_owned(),
        compression,
        container,
        header: at..payload,
        payload: payload..end as usize,
        stored: stored as usize,
        size: size as usize,
    })
}

/// A container like the one at `at`, with these entries (header and payload one behind the other).
pub fn contain(bytes: &[u8], at: usize, entries: &[u8]) -> Result<Vec<u8>, FatbinError> {
    let header = word(bytes, at + 6, 2)? as usize;
    let header = bytes
        .get(at..at + header)
        .ok_or_else(|| damaged("it is cut short"))?;
    let mut container = header.to_vec();
    container[8..16].copy_from_slice(&(entries.len() as u64).to_le_bytes());
    container.extend_from_slice(entries);
    Ok(container)
}

/// The range of a section in a host file.
pub fn section(bytes: &[u8], name: &str) -> Result<std::ops::Range<usize>, FatbinError> {
    let host = object::File::parse(bytes).map_err(|_| FatbinError::None)?;
    let section = host.section_by_name(name).ok_or(FatbinError::None)?;
    let (at, size) = section.file_range().ok_or(FatbinError::None)?;
    Ok(at as usize..(at + size) as usize)
}

/// Says in an entry's header how its payload is stored: bytes stored and bytes when not compressed, zeros
/// if it is not compressed.
pub fn describe(header: &mut [u8], compression: Compression, (stored, size): (usize, usize)) {
    let mut set = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    set(16, &(stored as u32).to_le_bytes());
    set(56, &(size as u64).to_le_bytes());
    let mut flags = [0; 8];
    flags.copy_from_slice(&header[40..48]);
    let flags = u64::from_le_bytes(flags) & !(LZ4 | ZSTD);
    let flags = match compression {
        Compression::Zstd => flags | ZSTD,
        _ => flags,
    };
    header[40..48].copy_from_slice(&flags.to_le_bytes());
}
