//! What a cubin has beside the code of a kernel: headers, symbols, relocations, constants, variables,
//! records about launches.
//!
//! Each part is compared by what it says, or it is free by one of the rules of docs/checker.md, 'Every byte
//! of a cubin'; anything else makes the answer undecided.

use std::collections::BTreeMap;

use warpwright_sass::elf::info::{Attribute, Record, Value};
use warpwright_sass::elf::{ElfError, Section};
use warpwright_target::machine_code;

use super::Side;
use super::module::{Module, NEW_MEMORY, Owner};
use super::places::Places;

/// Something around the code that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Difference {
    #[error("the cubin cannot be read: {0}")]
    Elf(#[from] ElfError),
    #[error("they are for different architectures")]
    Architecture,
    #[error("the file headers differ (the toolkits or options that built the two cubins do)")]
    Header,
    #[error("the program headers differ")]
    Segments,
    #[error("constants or variables of the module differ")]
    Data,
    #[error("the section {0} differs")]
    Section(String),
    #[error("the section {0} is loaded in another way")]
    Loading(String),
    #[error("the relocations of {0} differ")]
    Relocations(String),
    #[error("the symbol {0} differs")]
    Symbol(String),
    #[error(
        "the place of {0} in the code is not found again: equal instructions came or went before it"
    )]
    Place(String),
    #[error("its .nv.info says other things about launches ({0})")]
    Launches(String),
    #[error("its .nv.info says other things about {0}")]
    Info(String),
    #[error("it states a stack that is too small, or a larger frame")]
    Stack,
}

type Result<T> = std::result::Result<T, Difference>;

/// Attributes of a kernel that are compared as numbers elsewhere (`mod.rs`).
const LIMITS: [Attribute; 2] = [Attribute::MAX_THREADS, Attribute::REQNTID];

/// Attributes of `.nv.info` that are compared as numbers.
const NUMBERS: [Attribute; 4] = [
    Attribute::REGCOUNT,
    Attribute::FRAME_SIZE,
    Attribute::MIN_STACK_SIZE,
    Attribute::MAX_STACK_SIZE,
];

/// Lists of places in the code: words of a record, and which of them is the place (layouts as cuobjdump 13.5
/// prints them).
const LISTS: [(Attribute, usize, usize); 16] = [
    (Attribute::EXIT_INSTR_OFFSETS, 1, 0),
    (Attribute::S2RCTAID_INSTR_OFFSETS, 1, 0),
    (Attribute::LD_CACHEMOD_INSTR_OFFSETS, 1, 0),
    (Attribute::ATOM_SYS_INSTR_OFFSETS, 1, 0),
    (Attribute::COOP_GROUP_INSTR_OFFSETS, 1, 0),
    (Attribute::ATOMF16_EMUL_INSTR_OFFSETS, 1, 0),
    (Attribute::INT_WARP_WIDE_INSTR_OFFSETS, 1, 0),
    (Attribute::SYSCALL_OFFSETS, 1, 0),
    (Attribute::STACK_CANARY_TRAP_OFFSETS, 1, 0),
    (Attribute::LOCAL_CTA_ASYNC_STORE_OFFSETS, 1, 0),
    (Attribute::IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS, 1, 0),
    (Attribute::INSTR_OFFSETS, 1, 0),
    (Attribute::ATOM16_EMUL_INSTR_REG_MAP, 2, 0),
    (Attribute::UNUSED_LOAD_BYTE_OFFSET, 2, 0),
    (Attribute::INSTR_REG_MAP, 3, 0),
    (Attribute::MBARRIER_INSTR_OFFSETS, 4, 0),
];

/// The kind of annotation that tells disassemblers and profilers where spill code stands.
const SPILL_CODE: u32 = 1;

/// Everything that belongs to no kernel must be as it was.
pub(super) fn same_module(original: &Module, new: &Module) -> Result<()> {
    if original.elf.target() != new.elf.target() {
        return Err(Difference::Architecture);
    }
    if original.header != new.header {
        return Err(Difference::Header);
    }
    let is_memory_added = original.memory.is_empty() && new.memory == [NEW_MEMORY];
    let same_memory = original.memory == new.memory || is_memory_added;
    if original.tables != new.tables || !same_memory || original.spare != new.spare {
        return Err(Difference::Segments);
    }
    let sections = |module: &Module| {
        let sections = (0..module.owners.len()).filter(|&at| module.owners[at] == Owner::Module);
        sections.collect::<Vec<_>>()
    };
    same_sections(
        original,
        new,
        [&sections(original), &sections(new)],
        &|_| true,
    )?;
    same_symbol_table(original, new)?;
    let symbols = |module: &Module| {
        let symbols = 0..module.symbols.len();
        // Without a name and a place there is nothing that it could say. A driver refuses one that is not local.
        let is_nothing = |at: usize| {
            let symbol = &module.symbols[at];
            symbol.name.is_empty() && symbol.section == 0 && symbol.info >> 4 == 0
        };
        let symbols = symbols.filter(|&at| !is_nothing(at)).filter(|&at| {
            let section = usize::from(module.symbols[at].section);
            matches!(module.owners.get(section), None | Some(Owner::Module))
                || section == 0 && !module.kernels.contains(&module.symbols[at].name)
        });
        let mut symbols: Vec<_> = symbols.map(|at| plain_symbol(module, at)).collect();
        symbols.sort();
        symbols
    };
    let (a, b) = (symbols(original), symbols(new));
    if a != b {
        return Err(Difference::Symbol(first_difference(&a, &b)));
    }
    let records = |module: &Module| module_records(module);
    match records(original)? == records(new)? {
        true => Ok(()),
        false => Err(Difference::Info("the module".to_owned())),
    }
}

/// The first symbol that only one of the two lists has.
fn first_difference(a: &[PlainSymbol], b: &[PlainSymbol]) -> String {
    let missing = a.iter().find(|symbol| !b.contains(symbol));
    let missing = missing.or_else(|| b.iter().find(|symbol| !a.contains(symbol)));
    missing.map_or_else(|| "table".to_owned(), |symbol| symbol.0.clone())
}

/// Everything of the kernel beside its code must be as it was.
pub(super) fn same_kernel(original: &Side, new: &Side) -> Result<()> {
    let name = &original.sections.name;
    let sections = |side: &Side| {
        let owned = side.module.owned.get(name).cloned().unwrap_or_default();
        let is_own = |at: &usize| {
            let elf = &side.module.elf.sections;
            !(Some(*at) == side.sections.shared && elf[*at].is_zero_fill())
        };
        owned.into_iter().filter(is_own).collect::<Vec<_>>()
    };
    let elsewhere = [format!(".text.{name}"), format!(".nv.info.{name}")];
    let is_compared = |section: &str| elsewhere.iter().all(|name| name != section);
    same_sections(
        original.module,
        new.module,
        [&sections(original), &sections(new)],
        &is_compared,
    )?;
    same_shared(original, new)?;
    same_symbols(original, new)?;
    let facts = |side: &Side| {
        let is_kept = |fact: &Fact| !LIMITS.contains(&Attribute(fact.0));
        side.facts().into_iter().filter(is_kept).collect::<Vec<_>>()
    };
    let (before, after) = (facts(original), facts(new));
    if before != after {
        let both = before.iter().chain(&after);
        let mut alone = both.filter(|fact| !(before.contains(fact) && after.contains(fact)));
        let name = alone.next().and_then(|fact| Attribute(fact.0).name());
        return Err(Difference::Launches(name.unwrap_or("unknown").to_owned()));
    }
    same_stack(original, new)
}

/// The symbols in the kernel's sections, but for the places of functions in its code: they must stand before
/// the same instruction by its bits, or right behind the same control instruction.
fn same_symbols(original: &Side, new: &Side) -> Result<()> {
    let (a, b) = (kernel_symbols(original), kernel_symbols(new));
    let plain = |all: &[Symbol]| all.iter().map(|of| of.plain.clone()).collect::<Vec<_>>();
    if plain(&a) != plain(&b) {
        return Err(Difference::Symbol(first_difference(&plain(&a), &plain(&b))));
    }
    // Both are sorted by all else that there is of them.
    let is_moved = |pair: &(&Symbol, &Symbol)| {
        let [before, after] = [&pair.0.places, &pair.1.places];
        let mut ways = before.iter().zip(after);
        before != after && !ways.any(|(a, b)| a.is_some() && a == b)
    };
    match a.iter().zip(&b).find(is_moved) {
        Some((symbol, _)) => Err(Difference::Place(symbol.plain.0.clone())),
        None => Ok(()),
    }
}

/// Is the code the same to the last bit, with the same numbers around it? Then nothing needs to be understood.
pub(super) fn is_identical(original: &Side, new: &Side) -> bool {
    let of = |side: &Side| {
        let sections = &side.module.elf.sections;
        let info = side.sections.info.map(|at| sections[at].data.clone());
        let shared = side.module.elf.shared_bytes(side.sections);
        let numbers = NUMBERS.map(|number| side.number(number));
        (
            sections[side.sections.text].data.clone(),
            info,
            shared,
            numbers,
        )
    };
    of(original) == of(new) && original.relocations == new.relocations
}

/// The stack must hold the frame and what is beyond it: called functions.
fn same_stack(original: &Side, new: &Side) -> Result<()> {
    for attribute in [Attribute::MIN_STACK_SIZE, Attribute::MAX_STACK_SIZE] {
        let beyond = |side: &Side| {
            let stack = side.number(attribute).map(i64::from);
            stack.map(|stack| stack - i64::from(side.frame()))
        };
        let (before, after) = (beyond(original), beyond(new));
        let is_larger = new.number(attribute) > original.number(attribute);
        if before.is_some() != after.is_some() || after < before || is_larger {
            return Err(Difference::Stack);
        }
    }
    match same_numbers(original, new) && new.frame() <= original.frame() {
        true => Ok(()),
        false => Err(Difference::Stack),
    }
}

/// Is the same said of the functions behind the kernel? Some have the kernel's frame and say so.
fn same_numbers(original: &Side, new: &Side) -> bool {
    let (before, after) = (stated(original), stated(new));
    let is_same = |attribute: u8, before: u32, after: u32| {
        let is_frame = attribute == Attribute::FRAME_SIZE.0;
        before == after || is_frame && before == original.frame() && after == new.frame()
    };
    before.keys().eq(after.keys())
        && before.iter().zip(after.values()).all(|(before, after)| {
            let ((attribute, _), before) = before;
            let mut pairs = before.iter().zip(after);
            before.len() == after.len()
                && pairs.all(|(&before, &after)| is_same(*attribute, before, after))
        })
}

/// What `.nv.info` says of the symbols in the kernel's section: how often of the kernel itself, and the numbers
/// of the functions behind it.
fn stated(side: &Side) -> BTreeMap<(u8, String), Vec<u32>> {
    let owned = side.module.owned_symbols.get(&side.sections.name);
    let mut all = BTreeMap::new();
    for (&at, attribute) in owned
        .into_iter()
        .flatten()
        .flat_map(|at| NUMBERS.iter().map(move |number| (at, *number)))
    {
        let numbers = side.module.numbers.get(&(attribute, at as u32));
        let is_kernel = at as u32 == side.sections.symbol;
        let numbers = numbers.into_iter().flatten();
        let numbers = numbers.map(|&number| if is_kernel { 0 } else { number });
        let name = side.module.symbol_name(at as u32);
        all.insert((attribute.0, name), numbers.collect());
    }
    all
}

/// The section with the block's own shared memory: larger, or new, as ptxas makes it.
fn same_shared(original: &Side, new: &Side) -> Result<()> {
    let of = |side: &Side| {
        let at = side.sections.shared?;
        let section = &side.module.elf.sections[at];
        Some((section_header(side.module, section), section.align))
    };
    let text = format!(".text.{}", original.sections.name);
    let is_same = match (of(original), of(new)) {
        (before, None) => before.is_none(),
        (Some(before), Some(after)) => before == after,
        (None, Some((header, align))) => {
            const NOBITS: u32 = object::elf::SHT_NOBITS;
            let linked = u64::from(object::elf::SHF_WRITE | object::elf::SHF_ALLOC)
                | u64::from(object::elf::SHF_INFO_LINK);
            align == 16 && header == (NOBITS, linked, 0, "section 0".to_owned(), text, 16, 0)
        }
    };
    match is_same {
        true => Ok(()),
        false => Err(Difference::Section(format!(
            ".nv.shared.{}",
            original.sections.name
        ))),
    }
}

/// Type, flags, address, link, info, alignment and entry size, other sections and symbols by name.
type Header = (u32, u64, u64, String, String, u64, u64);

fn section_header(module: &Module, section: &Section) -> Header {
    let by_section =
        section.is_relocations() || section.flags & u64::from(object::elf::SHF_INFO_LINK) != 0;
    let info = match section.name.starts_with(".text.") {
        _ if by_section => module.section_name(section.info),
        // Older architectures repeat the register count in the top byte.
        true => {
            let symbol = section.info & 0x00ff_ffff;
            let (sm, top) = (module.elf.target().sm, section.info >> 24);
            let repeats = machine_code(sm).repeats_registers
                && module.number(Attribute::REGCOUNT, symbol) == Some(top);
            let top = if repeats {
                "registers".to_owned()
            } else {
                top.to_string()
            };
            format!("{} {top}", module.symbol_name(symbol))
        }
        false => section.info.to_string(),
    };
    (
        section.kind,
        section.flags,
        section.address,
        module.section_name(section.link),
        info,
        section.align,
        section.entry_size,
    )
}

/// The sections must be the same by name, header, contents, relocations, and how they are loaded.
/// `is_compared` tells whose contents are.
fn same_sections(
    original: &Module,
    new: &Module,
    lists: [&[usize]; 2],
    is_compared: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let by_name = |module: &Module, list: &[usize]| -> BTreeMap<String, usize> {
        let named = list.iter();
        named
            .map(|&at| (module.elf.sections[at].name.clone(), at))
            .collect()
    };
    let [before, after] = [by_name(original, lists[0]), by_name(new, lists[1])];
    let mut names = before.keys().chain(after.keys());
    if let Some(name) = names.find(|name| before.contains_key(*name) != after.contains_key(*name)) {
        return Err(Difference::Section(name.clone()));
    }
    for (name, &at) in &before {
        let (a, b) = (&original.elf.sections[at], &new.elf.sections[after[name]]);
        if section_header(original, a) != section_header(new, b) {
            return Err(Difference::Section(name.clone()));
        }
        if original.loaded[at] != new.loaded[after[name]] {
            return Err(Difference::Loading(name.clone()));
        }
        if !is_compared(name) {
            continue;
        }
        if a.is_relocations() {
            let is_code = original.elf.sections[a.info as usize]
                .name
                .starts_with(".text.");
            let is_own = matches!(original.owners[a.info as usize], Owner::Kernel(_));
            // Those of a kernel's code are compared with its instructions.
            let both = [(original, at), (new, after[name])].map(|(m, at)| relocations_of(m, at));
            let [a, b] = both;
            if !(is_code && is_own) && a? != b? {
                return Err(Difference::Relocations(name.clone()));
            }
            continue;
        }
        let is_same = match name.as_str() {
            ".nv.info" => true,
            ".nv.callgraph" => calls(original, a) == calls(new, b),
            _ => a.data == b.data && a.size() == b.size(),
        };
        let is_data = name.starts_with(".nv.constant") || name.starts_with(".nv.global");
        match is_same {
            true => {}
            false if is_data => return Err(Difference::Data),
            false => return Err(Difference::Section(name.clone())),
        }
    }
    Ok(())
}

/// Offset, symbol, kind, addend.
type PlainRelocation = (u64, String, u32, Option<i64>);

fn relocations_of(module: &Module, section: usize) -> Result<Vec<PlainRelocation>> {
    let mut all: Vec<_> = module
        .elf
        .relocations(section)?
        .into_iter()
        .map(|r| (r.offset, module.symbol_name(r.symbol), r.kind, r.addend))
        .collect();
    all.sort();
    Ok(all)
}

/// `.nv.callgraph`: pairs of symbols; those of other kernels left out.
fn calls(module: &Module, section: &Section) -> Vec<[String; 2]> {
    let words = section.data.chunks(4);
    let words: Vec<u32> = words
        .map(|word| {
            word.iter()
                .rev()
                .fold(0, |all, &byte| all << 8 | u32::from(byte))
        })
        .collect();
    let name = |word: u32| match module.symbols.get(word as usize) {
        Some(symbol) if word != 0 => symbol.name.clone(),
        _ => format!("{word:#x} of {}", section.data.len() % 8),
    };
    let pairs = words.chunks(2);
    let pairs = pairs.filter(|pair| {
        let caller = module.symbols.get(pair[0] as usize);
        caller.is_none_or(|symbol| pair[0] == 0 || !module.kernels.contains(&symbol.name))
    });
    let mut pairs: Vec<_> = pairs
        .map(|pair| {
            [
                name(pair[0]),
                pair.get(1).map_or_else(String::new, |&to| name(to)),
            ]
        })
        .collect();
    pairs.sort();
    pairs
}

/// The header of the symbol table: how many symbols come first that only this file knows. Some producers
/// count all of them.
fn same_symbol_table(original: &Module, new: &Module) -> Result<()> {
    let table = |module: &Module| {
        let table = module.section(".symtab")?;
        let is_all = table.info as usize == module.symbols.len();
        let info = if is_all {
            String::new()
        } else {
            table.info.to_string()
        };
        let (kind, flags, address, link, _, align, size) = section_header(module, table);
        Some((kind, flags, address, link, info, align, size))
    };
    match table(original) == table(new) {
        true => Ok(()),
        false => Err(Difference::Section(".symtab".to_owned())),
    }
}

/// Name, section, binding and type, visibility and flags, value, size.
type PlainSymbol = (String, String, u8, u8, String, u64);

fn plain_symbol(module: &Module, at: usize) -> PlainSymbol {
    let symbol = &module.symbols[at];
    let section = module.section_name(u32::from(symbol.section));
    let name = match symbol.name.as_str() {
        "" => section.clone(),
        name => name.to_owned(),
    };
    let value = symbol.value.to_string();
    (name, section, symbol.info, symbol.other, value, symbol.size)
}

/// The symbols in the kernel's sections. A function's place is named by what stands there, and its size goes
/// with that of the code; other functions of the section are for debuggers, as nothing else names them but
/// relocations, which are compared.
fn kernel_symbols(side: &Side) -> Vec<Symbol> {
    let name = &side.sections.name;
    let owned = side.module.owned_symbols.get(name);
    let mut symbols = Vec::new();
    for &at in owned.into_iter().flatten() {
        let symbol = &side.module.symbols[at];
        let mut plain = plain_symbol(side.module, at);
        let mut places = [None, None];
        if usize::from(symbol.section) == side.sections.text && symbol.is_function() {
            let code = side.module.elf.sections[side.sections.text].data.len() as u64;
            if at as u32 == side.sections.symbol {
                plain.5 = symbol.size.wrapping_sub(code);
            } else {
                plain.4.clear();
                plain.5 = 0;
                places = [
                    Some(side.places.name(symbol.value)),
                    side.places.behind_control(symbol.value),
                ];
            }
        }
        symbols.push(Symbol { plain, places });
    }
    symbols.sort();
    symbols
}

/// A symbol of a kernel; for another function in its code, with the names of its place.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Symbol {
    plain: PlainSymbol,
    places: [Option<String>; 2],
}

/// The records of `.nv.info` that are about no kernel.
fn module_records(module: &Module) -> Result<Vec<(u8, String, Vec<u8>)>> {
    let info = module.elf.info(".nv.info")?.unwrap_or_default();
    let mut facts = Vec::new();
    for record in &info.records {
        let words = record.words();
        let (about, rest) = match (NUMBERS.contains(&record.attribute), &words[..]) {
            (true, &[symbol, number]) => {
                let known = module.symbols.get(symbol as usize);
                let owner = known.and_then(|known| module.owners.get(usize::from(known.section)));
                if matches!(owner, Some(Owner::Kernel(_))) {
                    continue;
                }
                (module.symbol_name(symbol), Value::Half(0).bytes(number))
            }
            _ => (String::new(), record.value.clone().bytes(0)),
        };
        facts.push((record.attribute.0, about, rest));
    }
    Ok(facts)
}

trait Bytes {
    /// The format and all bytes of a value; of a number, just those.
    fn bytes(&self, number: u32) -> Vec<u8>;
}

impl Bytes for Value {
    fn bytes(&self, number: u32) -> Vec<u8> {
        let (format, bytes) = match self {
            Value::Flag(pair) => (1, pair.to_vec()),
            Value::Byte(pair) => (2, pair.to_vec()),
            Value::Half(half) => (3, half.to_le_bytes().to_vec()),
            Value::Sized(bytes) => (4, bytes.clone()),
            Value::Other(format, pair) => (*format, pair.to_vec()),
        };
        [&[format][..], &bytes, &number.to_le_bytes()].concat()
    }
}

/// An attribute, what it names (symbols, places in the code), and its value without that.
type Fact = (u8, Vec<String>, Value);

impl Side<'_> {
    fn facts(&self) -> Vec<Fact> {
        let records = self.info.records.iter();
        records.map(|record| self.fact(record)).collect()
    }

    fn fact(&self, record: &Record) -> Fact {
        let words = record.words();
        let is_whole =
            matches!(&record.value, Value::Sized(bytes) if bytes.len() == 4 * words.len());
        let mut names = Vec::new();
        let mut kept = words.clone();
        let list = LISTS.iter().find(|list| list.0 == record.attribute);
        match (record.attribute, list) {
            _ if !is_whole => return (record.attribute.0, names, record.value.clone()),
            (Attribute::PARAM_CBANK, _) => name_words(
                &mut kept,
                &mut names,
                |at| at == 0,
                |word| self.module.symbol_name(word),
            ),
            (Attribute::EXTERNS, _) => name_words(
                &mut kept,
                &mut names,
                |_| true,
                |word| self.module.symbol_name(word),
            ),
            (Attribute::ANNOTATIONS, _) if words.chunks(2).all(|pair| pair[0] == SPILL_CODE) => {
                kept.clear();
            }
            (_, Some(&(_, size, place))) => {
                name_words(
                    &mut kept,
                    &mut names,
                    |at| at % size == place,
                    |word| self.places.name(u64::from(word)),
                );
            }
            _ => {}
        }
        let rest = kept.iter().flat_map(|word| word.to_le_bytes()).collect();
        (record.attribute.0, names, Value::Sized(rest))
    }
}

/// Takes words out of a value and puts names in their place.
fn name_words(
    words: &mut [u32],
    names: &mut Vec<String>,
    is_named: impl Fn(usize) -> bool,
    name: impl Fn(u32) -> String,
) {
    for (at, word) in words.iter_mut().enumerate() {
        if is_named(at) {
            names.push(name(std::mem::take(word)));
        }
    }
}

/// What relocations put into the kernel's instructions, by index.
pub(super) fn relocations(
    module: &Module,
    text: usize,
    places: &Places,
) -> Result<BTreeMap<u32, String>> {
    let mut texts: BTreeMap<u32, String> = BTreeMap::new();
    for &section in module.relocations.get(&text).into_iter().flatten() {
        for relocation in module.elf.relocations(section)? {
            let symbol = module.symbols.get(relocation.symbol as usize);
            let name = match symbol {
                Some(known) if usize::from(known.section) == text => places.name(known.value),
                _ => module.symbol_name(relocation.symbol),
            };
            let (at, kind) = (relocation.offset % 16, relocation.kind);
            let addend = relocation.addend;
            let text = format!(" {name}+{addend:?} as {kind} at {at}");
            texts
                .entry((relocation.offset / 16) as u32)
                .or_default()
                .push_str(&text);
        }
    }
    Ok(texts)
}
