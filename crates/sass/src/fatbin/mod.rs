//! Fat binaries: the container in which nvcc puts cubins and PTX for several architectures, alone in a
//! file or in a section of a host object, executable or shared library.
//!
//! A container is a header (magic, version, its own size, bytes that follow) and entries one behind the
//! other, each a header and a payload of as many bytes as it states. Of an entry's header we use
//! (little-endian; compared with cuobjdump's list and its extracted files, nvcc 13.0 and 13.5):
//!
//! | offset | what |
//! |--:|---|
//! | 0 | kind, 16 bits: 1 PTX, 2 cubin |
//! | 4 | bytes of this header, 32 bits |
//! | 8 | bytes of the payload with its padding, 64 bits |
//! | 16 | bytes of the compressed payload, 32 bits, 0 if it is not compressed |
//! | 20 | where place and length of PTX's options stand, 32 bits each, places from the beginning of this header; 0: nowhere |
//! | 28 | architecture, 32 bits |
//! | 40 | flags, 64 bits: bit 13 LZ4, bit 15 Zstandard |
//! | 56 | bytes when not compressed, 64 bits, 0 if it is not compressed |
//!
//! Other fields are kept. A cubin is replaced in its place where it fits, compressed if need be: then the
//! file's layout does not change. Else its container grows ([`Fatbin::replace`], [`host`]).

mod host;
mod payload;
mod read;

use std::collections::BTreeMap;
use std::ops::Range;

pub use payload::Compression;

/// Why device code cannot be taken out of a file or put back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FatbinError {
    /// The file has no fat binary.
    #[error("it holds no device code (no .nv_fatbin section, and it is no fat binary itself)")]
    None,
    /// Headers contradict each other.
    #[error("its fat binary is damaged: {0}")]
    Damaged(String),
    /// A payload is compressed in a way that we do not know.
    #[error("entry {0} of its fat binary is compressed in an unknown way (flags {1:#x})")]
    UnknownCompression(usize, u64),
    /// A payload cannot be decompressed.
    #[error("entry {0} of its fat binary cannot be decompressed: {1}")]
    Decompression(usize, String),
    /// The new cubin needs more room than the old one has, and the host file cannot be made longer.
    #[error("its section of device code cannot be made longer: {0}")]
    Host(String),
    /// Far more would come out than went in.
    #[error(
        "its fat binary says that {bytes} bytes come out of it; for a file of its size, {limit} are read"
    )]
    TooMuch {
        /// Bytes when not compressed, of what was asked for so far.
        bytes: u64,
        /// What is decompressed of this file in all.
        limit: u64,
    },
    /// The entry is not a cubin, or there is none of that number.
    #[error("entry {0} of its fat binary is no cubin")]
    NoCubin(usize),
}

/// What a payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// PTX text.
    Ptx,
    /// A cubin.
    Cubin,
    /// Something else (intermediate code of `-dlto`, for example).
    Other(u16),
}

/// One payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// The architecture as a number, 90 for sm_90.
    pub sm: u32,
    /// The section of the host file, empty in a fat binary of its own.
    pub section: String,
    /// How it is stored.
    pub compression: Compression,
    /// Where its container begins in the file.
    container: usize,
    /// Where its header stands in the file.
    header: Range<usize>,
    /// Where its payload stands in the file, padding included.
    payload: Range<usize>,
    /// Bytes of the payload that count, as stored.
    stored: usize,
    /// Bytes when not compressed.
    size: usize,
}

/// A file with fat binaries in it.
#[derive(Debug, Clone)]
pub struct Fatbin {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Fatbin {
    /// Finds the payloads of a host object, executable or library (ELF), or of a fat binary of its own.
    ///
    /// # Errors
    /// There is none, or the headers contradict each other.
    pub fn parse(bytes: &[u8]) -> Result<Fatbin, FatbinError> {
        let entries = read::entries(bytes)?;
        Ok(Fatbin {
            bytes: bytes.to_vec(),
            entries,
        })
    }

    /// All payloads, in file order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The contents of some entries, decompressed, with their numbers. What a damaged or hostile file says of
    /// its sizes does not fill the memory: 64 times the file's own size may come out, and 64 MiB more.
    ///
    /// # Errors
    /// One cannot be decompressed, or too much would come out.
    pub fn extract(
        &self,
        wanted: impl Fn(&Entry) -> bool,
    ) -> Result<Vec<(usize, Vec<u8>)>, FatbinError> {
        let limit = self.limit();
        let mut bytes = 0u64;
        let mut found = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            if wanted(entry) {
                bytes = bytes.saturating_add(entry.size as u64);
                if bytes > limit {
                    return Err(FatbinError::TooMuch { bytes, limit });
                }
                found.push((index, self.contents(index)?));
            }
        }
        Ok(found)
    }

    /// Bytes that may come out of this file.
    fn limit(&self) -> u64 {
        (self.bytes.len() as u64).saturating_mul(64) + (64 << 20)
    }

    /// The options of ptxas that an entry's PTX is to be compiled with, as nvcc wrote them (`-maxrregcount=32`); `None`
    /// where there is no such entry, or its header cannot be read.
    pub fn options(&self, index: usize) -> Option<String> {
        let header = self.bytes.get(self.entries.get(index)?.header.clone())?;
        let number = |at: usize| {
            let bytes = header.get(at..at.checked_add(4)?)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
        };
        let pair = number(20)?;
        if pair == 0 {
            return Some(String::new());
        }
        let (place, length) = (number(pair)?, number(pair.checked_add(4)?)?);
        let text = header.get(place..place.checked_add(length)?)?;
        let text = std::str::from_utf8(text).ok()?;
        Some(text.trim_matches(['\0', ' ']).to_owned())
    }

    /// The contents of an entry, decompressed.
    ///
    /// # Errors
    /// There is no such entry, or it cannot be decompressed.
    pub fn contents(&self, index: usize) -> Result<Vec<u8>, FatbinError> {
        let entry = self.entries.get(index).ok_or(FatbinError::NoCubin(index))?;
        let (bytes, limit) = (entry.size as u64, self.limit());
        if bytes > limit {
            return Err(FatbinError::TooMuch { bytes, limit });
        }
        let stored = &self.bytes[entry.payload.start..entry.payload.start + entry.stored];
        payload::unpack(index, entry, stored)
    }

    /// The file with other cubins in the places of entries; every other entry stays. What does not fit is
    /// compressed (Zstandard); where that is too little, the containers grow, and with them the file.
    ///
    /// # Errors
    /// An entry is no cubin, or the host file cannot be made longer.
    pub fn replace(&self, new: &[(usize, &[u8])]) -> Result<Vec<u8>, FatbinError> {
        let mut bytes = self.bytes.clone();
        let mut large = BTreeMap::new();
        for &(index, cubin) in new {
            let entry = self.entries.get(index).filter(|e| e.kind == Kind::Cubin);
            let entry = entry.ok_or(FatbinError::NoCubin(index))?;
            let room = entry.payload.len();
            let (stored, compression) = match cubin.len() <= room {
                true => (cubin.to_vec(), Compression::None),
                false => (payload::pack(cubin), Compression::Zstd),
            };
            if stored.len() > room {
                large.insert(index, cubin);
                continue;
            }
            let place = &mut bytes[entry.payload.clone()];
            place.fill(0);
            place[..stored.len()].copy_from_slice(&stored);
            describe(
                &mut bytes[entry.header.clone()],
                compression,
                &stored,
                cubin,
            );
        }
        match large.is_empty() {
            true => Ok(bytes),
            false => self.grown(bytes, &large),
        }
    }

    /// The file with containers that are longer.
    fn grown(
        &self,
        bytes: Vec<u8>,
        large: &BTreeMap<usize, &[u8]>,
    ) -> Result<Vec<u8>, FatbinError> {
        let mut sections: Vec<&str> = large.keys().map(|&i| &*self.entries[i].section).collect();
        sections.dedup();
        let [section] = sections[..] else {
            return Err(FatbinError::Host("several sections would grow".into()));
        };
        let start = match section.is_empty() {
            true => 0,
            false => read::section(&bytes, section)?.start,
        };
        let (mut contents, mut moved) = (Vec::new(), BTreeMap::new());
        let entries = self.entries.iter().enumerate();
        let entries: Vec<_> = entries.filter(|(_, e)| e.section == section).collect();
        for container in entries.chunk_by(|a, b| a.1.container == b.1.container) {
            let mut body = Vec::new();
            for (index, entry) in container {
                let mut header = bytes[entry.header.clone()].to_vec();
                match large.get(index) {
                    None => {
                        body.extend(header);
                        body.extend_from_slice(&bytes[entry.payload.clone()]);
                    }
                    Some(cubin) => {
                        let (stored, compression) = match entry.compression {
                            Compression::None => (cubin.to_vec(), Compression::None),
                            _ => (payload::pack(cubin), Compression::Zstd),
                        };
                        let padded = stored.len().next_multiple_of(8);
                        header[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
                        describe(&mut header, compression, &stored, cubin);
                        body.extend(header);
                        body.extend(&stored);
                        body.resize(body.len() + padded - stored.len(), 0);
                    }
                }
            }
            let Some((_, first)) = container.first() else {
                continue;
            };
            moved.insert((first.container - start) as u64, contents.len() as u64);
            contents.extend(read::contain(&bytes, first.container, &body)?);
            contents.resize(contents.len().next_multiple_of(8), 0);
        }
        match section.is_empty() {
            true => Ok(contents),
            false => host::with_section(&bytes, section, &contents, &moved),
        }
    }
}

fn describe(header: &mut [u8], compression: Compression, stored: &[u8], cubin: &[u8]) {
    let sizes = match compression {
        Compression::None => (0, 0),
        _ => (stored.len(), cubin.len()),
    };
    read::describe(header, compression, sizes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fat binary of its own with these payloads (kind, architecture, flags, stored, size).
    fn container(entries: &[(u16, u32, u64, &[u8], usize)]) -> Vec<u8> {
        let mut body = Vec::new();
        for &(kind, sm, flags, stored, size) in entries {
            let padded = stored.len().next_multiple_of(8);
            let mut header = vec![0u8; 64];
            header[0..2].copy_from_slice(&kind.to_le_bytes());
            header[2..4].copy_from_slice(&0x101u16.to_le_bytes());
            header[4..8].copy_from_slice(&64u32.to_le_bytes());
            header[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
            if size > 0 {
                header[16..20].copy_from_slice(&(stored.len() as u32).to_le_bytes());
            }
            header[28..32].copy_from_slice(&sm.to_le_bytes());
            header[40..48].copy_from_slice(&flags.to_le_bytes());
            header[56..64].copy_from_slice(&(size as u64).to_le_bytes());
            body.extend(header);
            body.extend(stored);
            body.resize(body.len().next_multiple_of(8), 0);
        }
        let mut file = 0xba55_ed50u32.to_le_bytes().to_vec();
        file.extend([1, 0, 16, 0]);
        file.extend((body.len() as u64).to_le_bytes());
        file.extend(body);
        file
    }

    fn cubin(bytes: usize) -> Vec<u8> {
        let noise = (0..bytes).map(|i| (i as u32).wrapping_mul(0x9e37_79b9).to_le_bytes()[3] & 15);
        let mut cubin: Vec<u8> = noise.collect();
        cubin[..4].copy_from_slice(b"\x7fELF");
        cubin
    }

    #[test]
    fn payloads_come_out_as_they_went_in() {
        let (ptx, code) = (b".version 9.0 .target sm_90".repeat(20), cubin(1000));
        // One literal block: token 0xf0, length, bytes.
        let mut lz4 = vec![0xf0, (ptx.len() - 15 - 255) as u8];
        lz4.insert(1, 255);
        lz4.extend(&ptx);
        let file = container(&[
            (2, 90, 0x11, &code, 0),
            (1, 90, 0x2011, &lz4, ptx.len()),
            (2, 75, 0x8011, &payload::pack(&code), code.len()),
        ]);
        let fat = Fatbin::parse(&file).expect("it is a fat binary");
        let kinds: Vec<_> = fat.entries().iter().map(|e| (e.kind, e.sm)).collect();
        assert_eq!(
            kinds,
            [(Kind::Cubin, 90), (Kind::Ptx, 90), (Kind::Cubin, 75)]
        );
        assert_eq!(fat.contents(0), Ok(code.clone()));
        assert_eq!(fat.contents(1), Ok(ptx));
        assert_eq!(fat.contents(2), Ok(code));
    }

    #[test]
    fn a_cubin_is_replaced_in_its_place() {
        let (old, other) = (cubin(1000), cubin(400));
        let file = container(&[(2, 90, 0x11, &old, 0), (2, 75, 0x11, &other, 0)]);
        let fat = Fatbin::parse(&file).expect("it is a fat binary");
        for size in [600, 1000, 1500] {
            let new = cubin(size);
            let written = fat.replace(&[(0, &new)]).expect("it fits");
            assert_eq!(written.len(), file.len());
            let read = Fatbin::parse(&written).expect("still a fat binary");
            let found = read.contents(0).expect("it comes out");
            assert_eq!(&found[..size], new, "{size}");
            assert!(found[size..].iter().all(|&b| b == 0));
            assert_eq!(read.contents(1), Ok(other.clone()));
        }
        assert_eq!(fat.replace(&[(0, &old)]), Ok(file));
    }

    /// Entries that are small in the file and large outside of it.
    #[test]
    fn a_bomb_is_not_set_off() {
        let zeros = payload::pack(&vec![0; 1 << 20]);
        let entries: Vec<_> = (0..200)
            .map(|_| (2, 90, 0x8011, &zeros[..], 1 << 20))
            .collect();
        let file = container(&entries);
        let fat = Fatbin::parse(&file).expect("the headers are fine");
        assert!(file.len() < 1 << 20 && fat.contents(0).is_ok());
        let error = fat.extract(|_| true);
        assert!(matches!(error, Err(FatbinError::TooMuch { .. })));
        let file = container(&[(2, 90, 0x8011, &zeros, 1 << 30)]);
        let fat = Fatbin::parse(&file).expect("the headers are fine");
        assert!(matches!(fat.contents(0), Err(FatbinError::TooMuch { .. })));
    }

    #[test]
    fn what_does_not_fit_grows() {
        let (old, other, large) = (cubin(100), cubin(400), cubin(10_000));
        let packed = payload::pack(&other);
        let file = container(&[
            (2, 90, 0x11, &old, 0),
            (1, 90, 0x11, b"ptx", 0),
            (2, 75, 0x8011, &packed, other.len()),
        ]);
        let fat = Fatbin::parse(&file).expect("it is a fat binary");
        let written = fat.replace(&[(0, &large), (2, &large)]).expect("it grows");
        let read = Fatbin::parse(&written).expect("still a fat binary");
        assert_eq!(read.contents(0), Ok(large.clone()));
        assert_eq!(&read.contents(1).expect("it comes out")[..3], b"ptx");
        assert_eq!(read.contents(2), Ok(large));
        assert_eq!(read.entries()[2].compression, Compression::Zstd);
        assert_eq!(fat.replace(&[(1, b"x")]), Err(FatbinError::NoCubin(1)));
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let code = cubin(500);
        let packed = payload::pack(&code);
        let file = container(&[
            (2, 90, 0x8011, &packed, code.len()),
            (1, 90, 0x11, b"ptx", 0),
        ]);
        for at in 0..file.len() {
            for value in [0, 0xff, file[at] ^ 1] {
                let mut bad = file.clone();
                bad[at] = value;
                if let Ok(fat) = Fatbin::parse(&bad) {
                    let count = fat.entries().len();
                    (0..count).for_each(|i| drop(fat.contents(i)));
                }
            }
            drop(Fatbin::parse(&file[..at]));
        }
        assert_eq!(Fatbin::parse(b"hello").err(), Some(FatbinError::None));
        let odd = container(&[(2, 90, 0x4011, &packed, code.len())]);
        let fat = Fatbin::parse(&odd).expect("the headers are fine");
        assert_eq!(
            fat.contents(0),
            Err(FatbinError::UnknownCompression(0, 0x4011))
        );
    }
}
