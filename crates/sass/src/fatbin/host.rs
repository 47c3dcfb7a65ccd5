//! A host file whose section of device code gets longer.
//!
//! Nothing that the host program refers to moves but the section itself:
//!
//! * in a relocatable object, it goes to the end of the file, and the symbols and relocations that name a
//!   container in it follow;
//! * in an executable or library, it goes into a load segment of its own behind all others, at the same distance
//!   between address and file offset as the first one (so that a loader which derives the address of the program
//!   headers from their offset finds them: they move there, too, one more being needed), and the registration
//!   records of nvcc (`.nvFatBinSegment`: magic, version, address of a container, address or zero) follow, in
//!   place and in the relocations that the loader applies to them. What else points into the section is not
//!   understood, so the file is refused.
//!
//! Layouts: System V ABI, chapters 4 and 5 (ELF-64), little-endian; relocation numbers of the x86-64 and AArch64
//! supplements. The records were compared with what nvcc 13.0 and 13.5 write.

use std::collections::BTreeMap;
use std::ops::Range;

use super::FatbinError;

const ET_REL: u64 = 1;
const SHT_SYMTAB: u64 = 2;
const SHT_RELA: u64 = 4;
const SHT_NOBITS: u64 = 8;
const SHT_REL: u64 = 9;
const SHT_DYNSYM: u64 = 11;
const SHF_WRITE: u64 = 1;
const SHF_ALLOC: u64 = 2;
const STT_SECTION: u64 = 3;
const PT_LOAD: u64 = 1;
const PT_PHDR: u64 = 6;
/// Relocations that add the place where the file is loaded: R_X86_64_RELATIVE, R_AARCH64_RELATIVE.
const RELATIVE: [u64; 2] = [8, 1027];
const SECTION_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SYMBOL: usize = 24;
const RELOCATION: usize = 24;
/// A registration record, its magic number, and the place of the address in it.
const RECORD: usize = 24;
const RECORD_MAGIC: u64 = 0x4662_43b1;
const RECORD_ADDRESS: usize = 8;
/// Zeros between the end of a file and its new segment: there must be as many as the file's variables without
/// initial values take.
const LARGEST_GAP: u64 = 64 << 20;

fn odd(why: &str) -> FatbinError {
    FatbinError::Host(why.to_owned())
}

/// The file with another section of device code. `moved` gives, for each container's offset in the old
/// section, that in the new one.
pub(super) fn with_section(
    bytes: &[u8],
    section: &str,
    contents: &[u8],
    moved: &BTreeMap<u64, u64>,
) -> Result<Vec<u8>, FatbinError> {
    let mut file = File {
        bytes: bytes.to_vec(),
    };
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err(odd("it is no little-endian 64-bit ELF file"));
    }
    let number = file.section_named(section)?;
    match file.get(16, 2)? {
        ET_REL => file.grow_object(number, contents, moved)?,
        _ => file.grow_loaded(number, contents, moved)?,
    }
    Ok(file.bytes)
}

struct File {
    bytes: Vec<u8>,
}

/// A section's header.
struct Section {
    /// Offset of the header.
    at: usize,
    kind: u64,
    flags: u64,
    address: u64,
    range: Range<usize>,
}

impl File {
    fn get(&self, at: usize, size: usize) -> Result<u64, FatbinError> {
        let raw = at.checked_add(size).and_then(|end| self.bytes.get(at..end));
        let raw = raw.ok_or_else(|| odd("it is cut short"))?;
        Ok(raw.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    fn set(&mut self, at: usize, size: usize, value: u64) -> Result<(), FatbinError> {
        let place = at
            .checked_add(size)
            .and_then(|end| self.bytes.get_mut(at..end));
        let place = place.ok_or_else(|| odd("it is cut short"))?;
        place.copy_from_slice(&value.to_le_bytes()[..size]);
        Ok(())
    }

    fn sections(&self) -> Result<Vec<Section>, FatbinError> {
        let (start, count) = (self.get(40, 8)? as usize, self.get(60, 2)? as usize);
        if self.get(58, 2)? as usize != SECTION_HEADER || count == 0 {
            return Err(odd("its section headers are of another form"));
        }
        let header = |number: usize| {
            let at = start + number * SECTION_HEADER;
            let kind = self.get(at + 4, 4)?;
            let (offset, size) = (self.get(at + 24, 8)?, self.get(at + 32, 8)?);
            let end = offset
                .checked_add(size)
                .filter(|&end| end <= self.bytes.len() as u64);
            let range = match (kind, end) {
                (SHT_NOBITS | 0, _) => 0..0,
                (_, Some(end)) => offset as usize..end as usize,
                (_, None) => return Err(odd("a section reaches beyond the file")),
            };
            Ok(Section {
                at,
                kind,
                flags: self.get(at + 8, 8)?,
                address: self.get(at + 16, 8)?,
                range,
            })
        };
        (0..count).map(header).collect()
    }

    fn name(&self, section: &Section, names: &Section) -> Result<&[u8], FatbinError> {
        let at = self.get(section.at, 4)? as usize;
        let rest = self.bytes[names.range.clone()]
            .get(at..)
            .unwrap_or_default();
        Ok(rest.split(|&b| b == 0).next().unwrap_or_default())
    }

    fn section_named(&self, wanted: &str) -> Result<usize, FatbinError> {
        let sections = self.sections()?;
        let names = sections.get(self.get(62, 2)? as usize);
        let names = names.ok_or_else(|| odd("its sections have no names"))?;
        let mut found = Vec::new();
        for (number, section) in sections.iter().enumerate() {
            if self.name(section, names)? == wanted.as_bytes() {
                found.push(number);
            }
        }
        match found[..] {
            [one] => Ok(one),
            _ => Err(odd("it has several sections of device code of one name")),
        }
    }

    /// Appends the contents and lets the section's header say so. The old ones become zeros.
    fn append(&mut self, section: &Section, contents: &[u8]) -> Result<usize, FatbinError> {
        let align = self.get(section.at + 48, 8)?.clamp(16, 1 << 16) as usize;
        self.bytes[section.range.clone()].fill(0);
        let at = self.bytes.len().next_multiple_of(align);
        self.bytes.resize(at, 0);
        self.bytes.extend_from_slice(contents);
        self.set(section.at + 24, 8, at as u64)?;
        self.set(section.at + 32, 8, contents.len() as u64)?;
        Ok(at)
    }

    fn grow_object(
        &mut self,
        number: usize,
        contents: &[u8],
        moved: &BTreeMap<u64, u64>,
    ) -> Result<(), FatbinError> {
        let sections = self.sections()?;
        let to = |offset: u64| {
            let new = moved.get(&offset).copied();
            new.ok_or_else(|| odd("something points into the middle of its device code"))
        };
        for table in sections.iter().filter(|s| s.kind == SHT_SYMTAB) {
            for at in table.range.clone().step_by(SYMBOL) {
                let kind = self.get(at + 4, 1)? & 15;
                if self.get(at + 6, 2)? as usize == number && kind != STT_SECTION {
                    let value = self.get(at + 8, 8)?;
                    self.set(at + 8, 8, to(value)?)?;
                }
            }
        }
        for table in &sections {
            let (symbols, applies) = (self.get(table.at + 40, 4)?, self.get(table.at + 44, 4)?);
            let symbols = sections
                .get(symbols as usize)
                .map_or(0..0, |s| s.range.clone());
            if table.kind == SHT_REL
                && sections
                    .get(applies as usize)
                    .is_some_and(|s| s.flags & SHF_ALLOC != 0)
            {
                return Err(odd("its relocations have no addends of their own"));
            }
            if table.kind != SHT_RELA {
                continue;
            }
            for at in table.range.clone().step_by(RELOCATION) {
                let symbol = symbols.start + (self.get(at + 8, 8)? >> 32) as usize * SYMBOL;
                if !symbols.contains(&symbol) || self.get(symbol + 6, 2)? as usize != number {
                    continue;
                }
                let addend = self.get(at + 16, 8)?;
                match self.get(symbol + 4, 1)? & 15 == STT_SECTION {
                    true => self.set(at + 16, 8, to(addend)?)?,
                    false if addend == 0 => {}
                    false => {
                        return Err(odd("something points into the middle of its device code"));
                    }
                }
            }
        }
        self.append(&sections[number], contents)?;
        Ok(())
    }

    fn grow_loaded(
        &mut self,
        number: usize,
        contents: &[u8],
        moved: &BTreeMap<u64, u64>,
    ) -> Result<(), FatbinError> {
        let sections = self.sections()?;
        let section = &sections[number];
        let old = section.address..section.address + section.range.len() as u64;
        if section.flags & SHF_ALLOC == 0 {
            return Err(odd("its device code is not loaded"));
        }
        let (start, address) = self.add_segment(contents.len())?;
        let to = |pointer: u64| {
            let new = moved.get(&(pointer - old.start));
            let new = new.ok_or_else(|| odd("something points into the middle of its device code"));
            Ok::<u64, FatbinError>(address + new?)
        };
        // Where the loader itself writes an address.
        let mut relocated = BTreeMap::new();
        for table in sections.iter().filter(|s| s.flags & SHF_ALLOC != 0) {
            for at in table
                .range
                .clone()
                .step_by(RELOCATION)
                .filter(|_| table.kind == SHT_RELA)
            {
                let addend = self.get(at + 16, 8)?;
                let is_relative = RELATIVE.contains(&(self.get(at + 8, 8)? & 0xffff_ffff));
                if is_relative && old.contains(&addend) {
                    self.set(at + 16, 8, to(addend)?)?;
                    relocated.insert(self.get(at, 8)?, addend);
                }
            }
        }
        self.move_records(&sections, &old, &mut relocated, &to)?;
        if !relocated.is_empty() {
            return Err(odd(
                "something besides the registration points to its device code",
            ));
        }
        for table in sections
            .iter()
            .filter(|s| matches!(s.kind, SHT_SYMTAB | SHT_DYNSYM))
        {
            for at in table.range.clone().step_by(SYMBOL) {
                let (value, kind) = (self.get(at + 8, 8)?, self.get(at + 4, 1)? & 15);
                if self.get(at + 6, 2)? as usize != number {
                    continue;
                }
                match (table.kind, kind) {
                    (_, STT_SECTION) => self.set(at + 8, 8, address)?,
                    (SHT_SYMTAB, _) if old.contains(&value) => self.set(at + 8, 8, to(value)?)?,
                    _ => return Err(odd("its device code is exported")),
                }
            }
        }
        self.bytes[section.range.clone()].fill(0);
        self.bytes[start..start + contents.len()].copy_from_slice(contents);
        self.set(section.at + 16, 8, address)?;
        self.set(section.at + 24, 8, start as u64)?;
        self.set(section.at + 32, 8, contents.len() as u64)
    }

    /// Lets the registration records follow. Every other word of the program's data that could be an address
    /// in the old section is a reason to refuse.
    fn move_records(
        &mut self,
        sections: &[Section],
        old: &Range<u64>,
        relocated: &mut BTreeMap<u64, u64>,
        to: &dyn Fn(u64) -> Result<u64, FatbinError>,
    ) -> Result<(), FatbinError> {
        let names = &sections[self.get(62, 2)? as usize];
        let mut records = 0;
        for section in sections {
            let is_records = self.name(section, names)? == b".nvFatBinSegment";
            if !is_records && section.flags & (SHF_ALLOC | SHF_WRITE) != SHF_ALLOC | SHF_WRITE {
                continue;
            }
            for at in section.range.clone().step_by(8) {
                if at + 8 > section.range.end {
                    break;
                }
                let word = self.get(at, 8)?;
                let offset = at - section.range.start;
                let is_address = is_records
                    && offset % RECORD == RECORD_ADDRESS
                    && self.get(at - RECORD_ADDRESS, 4)? == RECORD_MAGIC;
                if !is_address {
                    match old.contains(&word) {
                        true => {
                            return Err(odd(
                                "something besides the registration points to its device code",
                            ));
                        }
                        false => continue,
                    }
                }
                let place = section.address + offset as u64;
                match relocated.remove(&place) {
                    // The loader's addend counts; what stands in place may be zero.
                    Some(_) if !old.contains(&word) => {}
                    Some(_) => self.set(at, 8, to(word)?)?,
                    // Loaded where it was linked for, or relocated by a packed table that adds to what stands here.
                    None if old.contains(&word) => self.set(at, 8, to(word)?)?,
                    None => continue,
                }
                records += 1;
            }
        }
        match records {
            0 => Err(odd("nothing registers its device code")),
            _ => Ok(()),
        }
    }

    /// Adds a load segment with the program headers and `length` bytes behind them; returns the offset and the
    /// address of those bytes.
    fn add_segment(&mut self, length: usize) -> Result<(usize, u64), FatbinError> {
        let (table, count) = (self.get(32, 8)? as usize, self.get(56, 2)? as usize);
        if self.get(54, 2)? as usize != PROGRAM_HEADER {
            return Err(odd("its program headers are of another form"));
        }
        let header = |file: &File, number: usize| -> Result<[u64; 6], FatbinError> {
            let at = table + number * PROGRAM_HEADER;
            let field = |offset, size| file.get(at + offset, size);
            Ok([
                field(0, 4)?,
                field(8, 8)?,
                field(16, 8)?,
                field(32, 8)?,
                field(40, 8)?,
                field(48, 8)?,
            ])
        };
        let headers = (0..count)
            .map(|n| header(self, n))
            .collect::<Result<Vec<_>, _>>()?;
        let loads: Vec<&[u64; 6]> = headers.iter().filter(|h| h[0] == PT_LOAD).collect();
        let first = loads
            .first()
            .ok_or_else(|| odd("nothing of it is loaded"))?;
        let distance = first[2]
            .checked_sub(first[1])
            .ok_or_else(|| odd("it is loaded in an odd place"))?;
        let page = loads
            .iter()
            .map(|h| h[5])
            .max()
            .unwrap_or(0)
            .clamp(1 << 12, 1 << 21);
        if !page.is_power_of_two() {
            return Err(odd("it is loaded in an odd place"));
        }
        let ends = loads.iter().map(|h| h[2].saturating_add(h[4]));
        let end = ends.max().unwrap_or(0).saturating_sub(distance);
        let length_now = self.bytes.len() as u64;
        if end > length_now + LARGEST_GAP {
            return Err(odd("its variables leave no room behind them"));
        }
        let start = length_now.max(end).next_multiple_of(page);
        let address = start + distance;
        let mut new = self.bytes[table..table + count * PROGRAM_HEADER].to_vec();
        let size = ((count + 1) * PROGRAM_HEADER).next_multiple_of(16);
        let all = (size + length) as u64;
        let mut segment = Vec::new();
        for (value, bytes) in [
            (PT_LOAD, 4),
            (4, 4), // may be read
            (start, 8),
            (address, 8),
            (address, 8),
            (all, 8),
            (all, 8),
            (page, 8),
        ] {
            segment.extend_from_slice(&value.to_le_bytes()[..bytes]);
        }
        let last = headers.iter().rposition(|h| h[0] == PT_LOAD).unwrap_or(0) + 1;
        new.splice(last * PROGRAM_HEADER..last * PROGRAM_HEADER, segment);
        self.bytes.resize(start as usize, 0);
        self.bytes.extend_from_slice(&new);
        self.bytes.resize(start as usize + size + length, 0);
        for number in 0..=count {
            let at = start as usize + number * PROGRAM_HEADER;
            if self.get(at, 4)? == PT_PHDR {
                let bytes = new.len() as u64;
                for (field, value) in [
                    (8, start),
                    (16, address),
                    (24, address),
                    (32, bytes),
                    (40, bytes),
                ] {
                    self.set(at + field, 8, value)?;
                }
            }
        }
        self.set(32, 8, start)?;
        self.set(56, 2, count as u64 + 1)?;
        Ok((start as usize + size, address + size as u64))
    }
}
