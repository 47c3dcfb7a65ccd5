//! A cubin as the checker reads it: from its bytes, every part by name, once for all kernels.
//!
//! Indices and offsets are resolved here, so that two files are compared by what they say and not by where
//! they say it (docs/checker.md, 'Every byte of a cubin').

use std::collections::{BTreeMap, BTreeSet};

use object::LittleEndian;
use object::elf::{FileHeader64, PF_R, PF_W, PT_LOAD, ProgramHeader64, SHF_ALLOC, SHF_WRITE};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use warpwright_sass::elf::info::{Attribute, Info};
use warpwright_sass::elf::symbol::Symbol;
use warpwright_sass::elf::{Elf, ElfError, KernelSections, Section};

const E: LittleEndian = LittleEndian;

/// What a part of the file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// One kernel alone.
    Kernel(String),
    /// All of them.
    Module,
    /// Nothing that runs: names, and what is read by debuggers or says how the file was made.
    Nobody,
}

/// Sections of one kernel: what stands before its name.
const OF_A_KERNEL: [&str; 5] = [
    ".text.",
    ".nv.info.",
    ".nv.shared.",
    ".nv.local.",
    ".nv.constant",
];

/// Sections that name what others refer to, and are read through them.
const NAMES: [&str; 3] = [".strtab", ".shstrtab", ".symtab"];

/// What no loader reads, as long as it is not loaded: debugging information, and the tool's command line.
const UNREAD: [&str; 3] = [".debug_", ".nv_debug_", ".note.nv.tkinfo"];

/// A program header for memory that has no contents, as the container layer adds one.
pub(super) const NEW_MEMORY: Loaded = (PT_LOAD, PF_R | PF_W, [0; 2], 8, [0; 2], 0);

/// One way in which a range of the file is loaded: kind, flags, addresses, alignment of a program header,
/// how far it misses the ends of the sections that it covers, and the memory behind its contents, if that is
/// none of the variables'.
pub(super) type Loaded = (u32, u32, [u64; 2], u64, [i64; 2], i64);

/// A parsed cubin.
pub(super) struct Module<'e> {
    pub(super) elf: &'e Elf,
    pub(super) symbols: Vec<Symbol>,
    /// Functions with a section of their own, by name.
    pub(super) functions: BTreeMap<String, KernelSections>,
    /// Names of kernels.
    pub(super) kernels: BTreeSet<String>,
    pub(super) sections: BTreeMap<&'e str, usize>,
    /// Sections with relocations, by the section that they change.
    pub(super) relocations: BTreeMap<usize, Vec<usize>>,
    pub(super) owners: Vec<Owner>,
    /// Sections of each kernel.
    pub(super) owned: BTreeMap<String, Vec<usize>>,
    /// Symbols in the sections of each kernel.
    pub(super) owned_symbols: BTreeMap<String, Vec<usize>>,
    /// `.nv.info`: what it says of one symbol.
    pub(super) numbers: BTreeMap<(Attribute, u32), Vec<u32>>,
    /// How each section is loaded.
    pub(super) loaded: Vec<Vec<Loaded>>,
    /// Program headers that cover no section; with whether they cover the program headers.
    pub(super) tables: Vec<(Loaded, bool)>,
    /// Those for memory without contents.
    pub(super) memory: Vec<Loaded>,
    /// Memory that the writable program headers have beyond what the writable sections need.
    pub(super) spare: i64,
    /// The file header: what does not follow from the layout.
    pub(super) header: Vec<u8>,
}

impl<'e> Module<'e> {
    pub(super) fn read(elf: &'e Elf) -> Result<Module<'e>, ElfError> {
        let bytes = elf.write()?;
        let symbols = elf.symbols()?;
        let kernels: BTreeSet<String> = symbols
            .iter()
            .filter(|symbol| symbol.is_kernel())
            .map(|symbol| symbol.name.clone())
            .collect();
        let owners = owners(elf, &kernels);
        let mut owned: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut relocations: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut sections = BTreeMap::new();
        for (at, section) in elf.sections.iter().enumerate() {
            if let Owner::Kernel(name) = &owners[at] {
                owned.entry(name.clone()).or_default().push(at);
            }
            if section.is_relocations() {
                relocations
                    .entry(section.info as usize)
                    .or_default()
                    .push(at);
            }
            let is_new = sections.insert(section.name.as_str(), at).is_none();
            if !is_new && owners[at] != Owner::Nobody {
                let name = &section.name;
                return Err(ElfError::Damaged(format!("there are two sections {name}")));
            }
        }
        let mut owned_symbols: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, symbol) in symbols.iter().enumerate() {
            if let Some(Owner::Kernel(name)) = owners.get(usize::from(symbol.section)) {
                owned_symbols.entry(name.clone()).or_default().push(at);
            }
        }
        let functions = elf.kernels()?.into_iter();
        let raw = RawFile::read(&bytes, elf)?;
        Ok(Module {
            functions: functions.map(|f| (f.name.clone(), f)).collect(),
            numbers: numbers(elf)?,
            loaded: raw.loaded(elf),
            tables: raw.tables(),
            memory: raw.memory(),
            spare: raw.spare(elf),
            header: raw.header,
            elf,
            symbols,
            kernels,
            sections,
            relocations,
            owners,
            owned,
            owned_symbols,
        })
    }

    pub(super) fn section(&self, name: &str) -> Option<&'e Section> {
        self.sections.get(name).map(|&at| &self.elf.sections[at])
    }

    /// What `.nv.info` says of a symbol, if it says it once.
    pub(super) fn number(&self, attribute: Attribute, symbol: u32) -> Option<u32> {
        match self.numbers.get(&(attribute, symbol))?.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// A name for a symbol that both files share.
    pub(super) fn symbol_name(&self, index: u32) -> String {
        let Some(symbol) = self.symbols.get(index as usize) else {
            return format!("symbol {index}");
        };
        let section = self.section_name(u32::from(symbol.section));
        match symbol.name.as_str() {
            "" => format!("{section}+{}", symbol.value),
            name => format!("{name} in {section}"),
        }
    }

    /// A section's name; those that are none (undefined, absolute) by number.
    pub(super) fn section_name(&self, index: u32) -> String {
        match self.elf.sections.get(index as usize) {
            Some(section) if index != 0 => section.name.clone(),
            _ => format!("section {index}"),
        }
    }
}

/// `.nv.info`: records of the form (symbol, number).
fn numbers(elf: &Elf) -> Result<BTreeMap<(Attribute, u32), Vec<u32>>, ElfError> {
    let info: Info = elf.info(".nv.info")?.unwrap_or_default();
    let mut numbers: BTreeMap<(Attribute, u32), Vec<u32>> = BTreeMap::new();
    for record in &info.records {
        if let [symbol, number] = record.words()[..] {
            let known = numbers.entry((record.attribute, symbol)).or_default();
            known.push(number);
        }
    }
    Ok(numbers)
}

fn owners(elf: &Elf, kernels: &BTreeSet<String>) -> Vec<Owner> {
    let sections = elf.sections.iter();
    sections
        .map(|section| {
            let name = match section.is_relocations() {
                true => {
                    let target = elf.sections.get(section.info as usize);
                    target.map_or("", |target| target.name.as_str())
                }
                false => section.name.as_str(),
            };
            owner(section, name, kernels)
        })
        .collect()
}

fn owner(section: &Section, name: &str, kernels: &BTreeSet<String>) -> Owner {
    let of = OF_A_KERNEL.iter().find_map(|prefix| {
        let rest = name.strip_prefix(prefix)?;
        let rest = match *prefix {
            ".nv.constant" => rest.split_once('.')?.1,
            _ => rest,
        };
        kernels.contains(rest).then(|| rest.to_owned())
    });
    let is_loaded = section.flags & u64::from(SHF_ALLOC) != 0;
    let is_unread = UNREAD.iter().any(|start| name.starts_with(start));
    match of {
        Some(kernel) => Owner::Kernel(kernel),
        None if NAMES.contains(&name) || is_unread && !is_loaded || section.kind == 0 => {
            Owner::Nobody
        }
        None => Owner::Module,
    }
}

/// A program header as numbers.
struct Segment {
    kind: u32,
    flags: u32,
    addresses: [u64; 2],
    align: u64,
    file: [u64; 2],
    memory: u64,
}

/// The headers of the file as a loader reads them.
struct RawFile {
    header: Vec<u8>,
    segments: Vec<Segment>,
    /// Start and end of what each section has in the file.
    contents: Vec<[u64; 2]>,
    /// Start and end of the program headers.
    table: [u64; 2],
}

impl RawFile {
    fn read(bytes: &[u8], elf: &Elf) -> Result<RawFile, ElfError> {
        let not_elf = |e: object::read::Error| ElfError::NotElf(e.to_string());
        let raw = FileHeader64::<LittleEndian>::parse(bytes).map_err(not_elf)?;
        let segments = raw.program_headers(E, bytes).map_err(not_elf)?;
        let segment = |raw: &ProgramHeader64<LittleEndian>| Segment {
            kind: raw.p_type(E),
            flags: raw.p_flags(E),
            addresses: [raw.p_vaddr(E), raw.p_paddr(E)],
            align: raw.p_align(E),
            file: [
                raw.p_offset(E),
                raw.p_offset(E).saturating_add(raw.p_filesz(E)),
            ],
            memory: raw.p_memsz(E),
        };
        let sections = raw.section_headers(E, bytes).map_err(not_elf)?;
        let contents = sections.iter().zip(&elf.sections);
        let contents = contents.map(|(section, known)| {
            let range = section.file_range(E).filter(|_| known.has_contents());
            range.map_or([0; 2], |(at, size)| [at, at.saturating_add(size)])
        });
        // Identification to version, entry; flags; sizes of entries.
        let header = [&bytes[..32], &bytes[48..56]].concat();
        let start = raw.e_phoff(E);
        Ok(RawFile {
            header,
            contents: contents.collect(),
            table: [start, start + 56 * segments.len() as u64],
            segments: segments.iter().map(segment).collect(),
        })
    }

    fn is_inside(&self, section: usize, segment: &Segment) -> bool {
        let ([from, to], [start, end]) = (self.contents[section], segment.file);
        from < to && start <= from && to <= end
    }

    fn describe(&self, segment: &Segment) -> Loaded {
        let inside = (0..self.contents.len()).filter(|&at| self.is_inside(at, segment));
        let inside = inside.map(|at| self.contents[at]);
        let (first, last) = inside.fold((u64::MAX, 0), |(first, last), [from, to]| {
            (first.min(from), last.max(to))
        });
        let ends = match last {
            0 if segment.file == self.table => [0; 2],
            0 => [0, segment.file[1] as i64 - segment.file[0] as i64],
            _ => [
                first as i64 - segment.file[0] as i64,
                segment.file[1] as i64 - last as i64,
            ],
        };
        let behind = segment.memory as i64 - (segment.file[1] - segment.file[0]) as i64;
        let behind = if is_writable(segment) { 0 } else { behind };
        let Segment {
            kind,
            flags,
            addresses,
            align,
            ..
        } = *segment;
        (kind, flags, addresses, align, ends, behind)
    }

    fn loaded(&self, elf: &Elf) -> Vec<Vec<Loaded>> {
        let mut loaded = vec![Vec::new(); elf.sections.len()];
        for segment in &self.segments {
            let description = self.describe(segment);
            for (at, ways) in loaded.iter_mut().enumerate() {
                if at < self.contents.len() && self.is_inside(at, segment) {
                    ways.push(description);
                }
            }
        }
        loaded
    }

    fn tables(&self) -> Vec<(Loaded, bool)> {
        let others = self.empty().filter(|segment| !is_writable(segment));
        let mut others: Vec<_> = others
            .map(|segment| (self.describe(segment), segment.file == self.table))
            .collect();
        others.sort_unstable();
        others
    }

    fn memory(&self) -> Vec<Loaded> {
        let others = self.empty().filter(|segment| is_writable(segment));
        let mut others: Vec<_> = others.map(|segment| self.describe(segment)).collect();
        others.sort_unstable();
        others
    }

    /// Those that cover no section.
    fn empty(&self) -> impl Iterator<Item = &Segment> {
        let covers = |segment: &&Segment| {
            (0..self.contents.len()).any(|section| self.is_inside(section, segment))
        };
        self.segments.iter().filter(move |segment| !covers(segment))
    }

    fn spare(&self, elf: &Elf) -> i64 {
        let writable = self.segments.iter().filter(|segment| is_writable(segment));
        let memory: i64 = writable.map(|segment| segment.memory as i64).sum();
        let wanted = u64::from(SHF_ALLOC) | u64::from(SHF_WRITE);
        let sections = elf.sections.iter().zip(&self.contents);
        let mut sections: Vec<_> = sections
            .filter(|(section, _)| section.flags & wanted == wanted)
            .collect();
        // In the order of the file; those without contents come behind.
        sections.sort_by_key(|(section, contents)| (!section.has_contents(), contents[0]));
        let needed = sections.into_iter().fold(0u64, |end, (section, _)| {
            end.next_multiple_of(section.align.max(1)) + section.size()
        });
        memory - needed as i64
    }
}

fn is_writable(segment: &Segment) -> bool {
    segment.kind == PT_LOAD && segment.flags & PF_W != 0
}
