//! Kernels added to a module, where they use its variables.
//!
//! A kernel with `__constant__` or `__device__` variables works on those of its module, so another version of it must
//! be in the same module: constant banks are mapped by module, and a variable's address is written by the loader.
//! The version is added under a name of its own; what the module had stays where the loader finds it, and the kernel
//! that it replaces as well.
//!
//! Code is taken as it is, but for the places of constant bank 4: they are looked up by the name of the variable.
//! The bank of `__constant__` variables must be the same, byte for byte and name for name.
//!
//! Refused: architectures whose cubins have an intermediate copy of the program (sm_100 and later), records of
//! `.nv.info` that may name symbols in an unknown way, and what [`crate::ties`] refuses.

use std::collections::BTreeMap;

use warpwright_sass::elf::info::{Attribute, Info, Value};
use warpwright_sass::elf::symbol::Symbol;
use warpwright_sass::elf::{ElfError, KernelSections};
use warpwright_sass::{Elf, Instruction, isa};

use crate::digest::{constants, identities};
use crate::ties::{
    ADDRESSES, Slot, Tie, bond_in, is_code_of, places, read, relocated, slot_of, slots,
};

/// A version of a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Addition<'a> {
    /// The kernel of the module in whose place it may be launched.
    pub kernel: &'a str,
    /// The new symbol.
    pub name: &'a str,
    /// Where the code is.
    pub cubin: &'a [u8],
    /// Its symbol there.
    pub symbol: &'a str,
}

/// Why a kernel cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraftError {
    /// One of the files.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// What the new kernel does.
    #[error(transparent)]
    Tie(#[from] Tie),
    /// Another architecture or another ABI.
    #[error("it is for another architecture")]
    Target,
    /// A second copy of the program in the module.
    #[error("the module holds an intermediate copy of the program (`{0}`)")]
    Copy(String),
    /// `__constant__` variables lie elsewhere, or hold something else at first.
    #[error("its `__constant__` variables are not those of the module")]
    Constants,
    /// A variable that the module does not have, has twice, or has in another form.
    #[error("`{0}` is not the same variable in the module")]
    Variable(String),
    /// A symbol that has no meaning in the module.
    #[error("it refers to `{0}`, which the module does not have")]
    Symbol(String),
    /// A record whose layout is not known.
    #[error("its {0} may name symbols")]
    Record(Attribute),
    /// There is a function of that name.
    #[error("the module has `{0}` already")]
    Name(String),
    /// The result does not hold what it should.
    #[error("the module with the new kernel is not what it should be")]
    Result,
}

/// Sized records of `.nv.info.KERNEL` that name no symbols.
const PLAIN: [Attribute; 27] = [
    Attribute::MAX_THREADS,
    Attribute::REQNTID,
    Attribute::KPARAM_INFO,
    Attribute::KPARAM_INFO_V2,
    Attribute::CRS_STACK_SIZE,
    Attribute::COOP_GROUP_MASK_REGIDS,
    Attribute::SW_WAR,
    Attribute::CUDA_API_VERSION,
    Attribute::CTA_PER_CLUSTER,
    Attribute::MAX_CLUSTER_RANK,
    Attribute::NUM_MBARRIERS,
    Attribute::RESERVED_SMEM_0_SIZE,
    Attribute::SAM_REGION_STACK_SIZE,
    Attribute::LANGUAGE,
    Attribute::CUDA_REQ,
    Attribute::MIN_PER_CTA_MEMORY_SIZE,
    Attribute::EXIT_INSTR_OFFSETS,
    Attribute::S2RCTAID_INSTR_OFFSETS,
    Attribute::LD_CACHEMOD_INSTR_OFFSETS,
    Attribute::ATOM_SYS_INSTR_OFFSETS,
    Attribute::COOP_GROUP_INSTR_OFFSETS,
    Attribute::INT_WARP_WIDE_INSTR_OFFSETS,
    Attribute::INSTR_REG_MAP,
    Attribute::UNUSED_LOAD_BYTE_OFFSET,
    Attribute::MBARRIER_INSTR_OFFSETS,
    Attribute::INDIRECT_BRANCH_TARGETS,
    Attribute::ANNOTATIONS,
];

/// The module with the kernels added. The kernels that it had are the same.
///
/// # Errors
/// [`GraftError`]
pub fn graft(module: &[u8], additions: &[Addition<'_>]) -> Result<Vec<u8>, GraftError> {
    let mut elf = Elf::parse(module)?;
    if let Some(copy) = elf.intermediate_copy() {
        return Err(GraftError::Copy(copy.to_owned()));
    }
    for addition in additions {
        let source = Elf::parse(addition.cubin)?;
        add(&mut elf, &source, addition)?;
    }
    let bytes = elf.write()?;
    let before = identities(module)?;
    let after: BTreeMap<_, _> = identities(&bytes)?
        .into_iter()
        .map(|kernel| (kernel.name, kernel.digest))
        .collect();
    let is_kept = before
        .iter()
        .all(|kernel| after.get(&kernel.name) == Some(&kernel.digest));
    let is_there = additions.iter().all(|a| after.contains_key(a.name));
    match is_kept && is_there && after.len() == before.len() + additions.len() {
        true => Ok(bytes),
        false => Err(GraftError::Result),
    }
}

fn add(elf: &mut Elf, source: &Elf, addition: &Addition<'_>) -> Result<(), GraftError> {
    if elf.target() != source.target() || elf.is_relocatable() || source.is_relocatable() {
        return Err(GraftError::Target);
    }
    let (old, new) = (elf.symbols()?, source.symbols()?);
    if old.iter().any(|s| s.name == addition.name) {
        return Err(GraftError::Name(addition.name.to_owned()));
    }
    let (place, kernel) = (
        elf.kernel(addition.kernel)?,
        source.kernel(addition.symbol)?,
    );
    bond_in(source, &new, &kernel)?;
    let code = code(elf, &old, source, &new, &kernel)?;
    let owned: Vec<usize> = (0..source.sections.len())
        .filter(|&index| belongs(source, index, &kernel))
        .collect();
    // By the index in the source: the index in the module, once it is known.
    let mut symbols: BTreeMap<u32, u32> = BTreeMap::new();
    let is_owned = |s: &Symbol| owned.contains(&usize::from(s.section));
    let moved = new.iter().enumerate().filter(|(_, s)| is_owned(s));
    let moved: Vec<(u32, &Symbol)> = moved.map(|(index, s)| (index as u32, s)).collect();
    for (number, (index, _)) in moved.iter().enumerate() {
        symbols.insert(*index, (old.len() + number) as u32);
    }
    let mut sections: BTreeMap<usize, usize> = BTreeMap::new();
    let registers = source.sections[kernel.text].info & 0xff00_0000;
    let symbol = symbols[&kernel.symbol];
    if symbol > 0x00ff_ffff {
        return Err(GraftError::Symbol(addition.symbol.to_owned()));
    }
    let text_name = format!(".text.{}", addition.name);
    let mut text = source.sections[kernel.text].clone();
    text.data = code.iter().flat_map(|i| i.bits().to_le_bytes()).collect();
    let text = elf.add_section(&text_name, &text, place.text, registers | symbol)?;
    sections.insert(kernel.text, text);
    for &index in owned.iter().filter(|&&index| index != kernel.text) {
        let section = &source.sections[index];
        let stem = section
            .name
            .strip_suffix(addition.symbol)
            .unwrap_or_default();
        let behind = behind(elf, stem, &place).ok_or(GraftError::Result)?;
        let name = format!("{stem}{}", addition.name);
        let mut copy = section.clone();
        if Some(index) == kernel.info {
            copy.data = info(&Info::parse(&section.data)?, &symbols)?.write()?;
        }
        sections.insert(index, elf.add_section(&name, &copy, behind, text as u32)?);
    }
    relocations(
        elf,
        source,
        &kernel,
        (&old, &new),
        (&mut symbols, &sections),
        addition,
    )?;
    let renamed: Vec<Symbol> = moved
        .iter()
        .map(|(_, s)| {
            let mut symbol = (*s).clone();
            symbol.name = renamed(&s.name, addition);
            symbol.section = sections[&usize::from(s.section)] as u16;
            symbol
        })
        .collect();
    elf.add_symbols(&renamed)?;
    facts(elf, source, &symbols)?;
    calls(elf, source, &symbols)
}

/// The section behind which a kernel's section of this kind belongs: its own, another kernel's, or for a constant bank
/// that no kernel has, a bank of the module. Those are loaded with it.
fn behind(elf: &Elf, stem: &str, kernel: &KernelSections) -> Option<usize> {
    let name = &kernel.name;
    let own = elf.section_index(&format!("{stem}{name}"));
    let of_kind = || elf.sections.iter().position(|s| s.name.starts_with(stem));
    let of_module = || {
        let bank = stem.starts_with(".nv.constant");
        bank.then(|| {
            elf.section_index(".nv.constant3")
                .or(elf.section_index(".nv.constant4"))
        })
    };
    own.or_else(of_kind)
        .or_else(|| of_module()?)
        .or(kernel.info)
}

/// Code, constants, facts and shared memory of a kernel.
fn belongs(elf: &Elf, index: usize, kernel: &KernelSections) -> bool {
    is_code_of(&elf.sections[index], &kernel.name)
        || Some(index) == kernel.info
        || Some(index) == kernel.shared
}

/// Symbols within the kernel keep their names but for its own.
fn renamed(name: &str, addition: &Addition<'_>) -> String {
    match name.strip_suffix(addition.symbol) {
        Some(stem) => format!("{stem}{}", addition.name),
        None if name.is_empty() => String::new(),
        None => format!("{name}.{}", addition.name),
    }
}

/// The code with the places of its variables in the module's bank of addresses.
fn code(
    elf: &Elf,
    old: &[Symbol],
    source: &Elf,
    new: &[Symbol],
    kernel: &KernelSections,
) -> Result<Vec<Instruction>, GraftError> {
    let (there, own) = (slots(elf, old)?, slots(source, new)?);
    let mut code = source.instructions(kernel)?;
    let read = read(&code, &relocated(source, kernel)?)?;
    if read.constants && constants(elf, old)? != constants(source, new)? {
        return Err(GraftError::Constants);
    }
    if read.computed {
        return Err(Tie::Bank.into());
    }
    for (index, at) in read.addresses {
        let (start, slot) = slot_of(&own, at)?;
        let place = same_variable(&there, slot, (old, new))? + (at - start);
        if place != at {
            code[index] = moved(code[index], place)
                .ok_or_else(|| GraftError::Variable(slot.variable.clone()))?;
        }
    }
    Ok(code)
}

/// The place in the module's bank where the address of the same variable stands.
fn same_variable(
    there: &BTreeMap<u64, Slot>,
    slot: &Slot,
    (old, new): (&[Symbol], &[Symbol]),
) -> Result<u64, GraftError> {
    let named = |symbols: &[Symbol]| {
        let named = symbols.iter().filter(|s| s.name == slot.variable);
        named.count()
    };
    // Where it lies in its section is the module's affair; what it is, is not.
    let is_same = |other: &Slot| {
        let ((section, _, size), (section_there, _, size_there)) = (&slot.place, &other.place);
        (&slot.variable, slot.addend, &slot.table) == (&other.variable, other.addend, &other.table)
            && (section, size) == (section_there, size_there)
    };
    let found = there.iter().find(|(_, other)| is_same(other));
    match found.filter(|_| named(old) == 1 && named(new) == 1) {
        Some((at, _)) => Ok(*at),
        None => Err(GraftError::Variable(slot.variable.clone())),
    }
}

/// An instruction that reads another place of the bank of addresses. Bits 38 to 53 hold it in bytes.
fn moved(instruction: Instruction, place: u64) -> Option<Instruction> {
    const FIELD: u128 = 0xffff << 38;
    let sm = instruction.sm();
    let bits = instruction.bits() & !FIELD | u128::from(place) << 38 & FIELD;
    let (before, after) = (isa::decode(instruction).text(0), Instruction::new(sm, bits));
    let text = isa::decode(after).text(0);
    let only = |text: &str| {
        let found: Vec<_> = places(text, ADDRESSES).collect();
        match found[..] {
            [Some(at)] => Some(at),
            _ => None,
        }
    };
    // Nothing else has changed: what stands around the place is the same.
    let around = |text: &str| {
        let (before, rest) = text.split_once("c[0x4][")?;
        Some((before.to_owned(), rest.split_once(']')?.1.to_owned()))
    };
    let is_right = only(&text) == Some(place) && around(&text) == around(&before);
    (is_right && only(&before).is_some()).then_some(after)
}

/// The records of a kernel with the symbols of the module.
fn info(info: &Info, symbols: &BTreeMap<u32, u32>) -> Result<Info, GraftError> {
    let mut info = info.clone();
    for record in &mut info.records {
        let attribute = record.attribute;
        match &record.value {
            Value::Flag(_) | Value::Byte(_) | Value::Half(_) => {}
            // Symbol of the section of parameters, and its layout.
            Value::Sized(_) if attribute == Attribute::PARAM_CBANK => {
                let words = record.words();
                let to = words.first().and_then(|symbol| symbols.get(symbol));
                let to = to.ok_or(GraftError::Record(attribute))?;
                record.set_word(0, *to);
            }
            Value::Sized(bytes) if bytes.is_empty() || PLAIN.contains(&attribute) => {}
            Value::Sized(_) | Value::Other(..) => return Err(GraftError::Record(attribute)),
        }
    }
    Ok(info)
}

/// Adds the relocations of the kernel's code and constants.
fn relocations(
    elf: &mut Elf,
    source: &Elf,
    kernel: &KernelSections,
    (old, new): (&[Symbol], &[Symbol]),
    (symbols, sections): (&mut BTreeMap<u32, u32>, &BTreeMap<usize, usize>),
    addition: &Addition<'_>,
) -> Result<(), GraftError> {
    for (&index, &target) in sections {
        for table in source.relocation_sections(index) {
            let mut relocations = source.relocations(table)?;
            for r in &mut relocations {
                let known = symbols.get(&r.symbol).copied();
                r.symbol = match known {
                    Some(known) => known,
                    // Reserved shared memory, which every module names alike.
                    None => {
                        let name = new.get(r.symbol as usize).map_or("?", |s| &s.name);
                        let found = old.iter().position(|s| s.name == name && !name.is_empty());
                        let found = found.ok_or_else(|| GraftError::Symbol(name.to_owned()))?;
                        found as u32
                    }
                };
            }
            let behind = elf
                .kernel(addition.kernel)?
                .info
                .ok_or(GraftError::Result)?;
            let section = &source.sections[table];
            let stem = section.name.strip_suffix(&*kernel.name).unwrap_or(".rela");
            let name = format!("{stem}{}", addition.name);
            let added = elf.add_section(&name, section, behind, target as u32)?;
            elf.set_relocations(added, &relocations)?;
        }
    }
    Ok(())
}

/// What `.nv.info` says of the kernel and of functions in its code: registers, stack.
fn facts(elf: &mut Elf, source: &Elf, symbols: &BTreeMap<u32, u32>) -> Result<(), GraftError> {
    const NAME: &str = ".nv.info";
    let mut info = elf.info(NAME)?.ok_or(GraftError::Result)?;
    for mut record in source.info(NAME)?.unwrap_or_default().records {
        if let [symbol, _] = record.words()[..]
            && let Some(&to) = symbols.get(&symbol)
        {
            const KNOWN: [Attribute; 4] = [
                Attribute::REGCOUNT,
                Attribute::FRAME_SIZE,
                Attribute::MIN_STACK_SIZE,
                Attribute::MAX_STACK_SIZE,
            ];
            if !KNOWN.contains(&record.attribute) {
                return Err(GraftError::Record(record.attribute));
            }
            record.set_word(0, to);
            info.records.push(record);
        }
    }
    Ok(elf.set_info(NAME, &info)?)
}

/// Who calls whom: pairs of symbols.
fn calls(elf: &mut Elf, source: &Elf, symbols: &BTreeMap<u32, u32>) -> Result<(), GraftError> {
    const NAME: &str = ".nv.callgraph";
    let Some(graph) = source.section(NAME) else {
        return Ok(());
    };
    let mut added = Vec::new();
    for pair in graph.data.chunks_exact(8) {
        let word =
            |at: usize| u32::from_le_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]]);
        let (caller, callee) = (word(0), word(4));
        let Some(from) = symbols.get(&caller) else {
            continue;
        };
        let to = symbols.get(&callee).ok_or(Tie::Calls(callee.to_string()))?;
        added.extend(from.to_le_bytes());
        added.extend(to.to_le_bytes());
    }
    match elf.section_index(NAME) {
        Some(index) => elf.sections[index].data.extend(added),
        None if added.is_empty() => {}
        None => return Err(GraftError::Result),
    }
    Ok(())
}
