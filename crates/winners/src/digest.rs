//! A kernel's machine code as a number.
//!
//! What counts: architecture, instructions, relocations (by symbol name), the kernel's own constant banks,
//! registers, local and shared memory, parameters and launch bounds, and which variables it takes the addresses of,
//! with what tables of the mathematical library hold. What does not: the kernel's name, its
//! place in the module, symbol numbers, other kernels, line tables, the version of the tool that wrote it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest, Sha256};
use warpwright_sass::elf::info::Attribute;
use warpwright_sass::elf::reloc::Relocation;
use warpwright_sass::elf::symbol::Symbol;
use warpwright_sass::elf::{ElfError, KernelSections, Section};
use warpwright_sass::{Elf, Instruction, isa};

/// A kernel of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its symbol.
    pub name: String,
    /// SHA-256 in hexadecimal.
    pub digest: String,
    /// Registers per thread, if the cubin says so.
    pub registers: Option<u32>,
}

/// Attributes of `.nv.info.KERNEL` that a launch depends on.
const LAUNCH_FACTS: [Attribute; 8] = [
    Attribute::KPARAM_INFO,
    Attribute::KPARAM_INFO_V2,
    Attribute::CBANK_PARAM_SIZE,
    Attribute::MAX_THREADS,
    Attribute::REQNTID,
    Attribute::CTA_PER_CLUSTER,
    Attribute::EXPLICIT_CLUSTER,
    Attribute::MAX_CLUSTER_RANK,
];

/// The kernels of a cubin, in the order of its symbols. The work is linear in the cubin's size: libraries load
/// cubins with thousands of kernels.
///
/// # Errors
/// The bytes are no cubin.
pub fn identities(cubin: &[u8]) -> Result<Vec<Identity>, ElfError> {
    let elf = Elf::parse(cubin)?;
    let symbols = elf.symbols()?;
    let parts = Parts::of(&elf, &symbols)?;
    let kernels = symbols.iter().enumerate().filter_map(|(index, symbol)| {
        let text = elf.sections.get(usize::from(symbol.section))?;
        let own = text.name.strip_prefix(".text.") == Some(&symbol.name);
        (own && symbol.is_kernel()).then_some((index as u32, symbol, text))
    });
    kernels
        .map(|(index, symbol, text)| {
            Ok(Identity {
                name: symbol.name.clone(),
                digest: parts.digest(&elf, (index, symbol), text, &symbols)?,
                registers: parts.fact(Attribute::REGCOUNT, index),
            })
        })
        .collect()
}

/// The variables of a cubin that kernels may write: `__device__` ones, and not the tables of the mathematical library
/// (`__cudart_…`) or texts (`$str`).
///
/// # Errors
/// The bytes are no cubin.
pub fn variables(cubin: &[u8]) -> Result<Vec<String>, ElfError> {
    let elf = Elf::parse(cubin)?;
    let symbols = elf.symbols()?.into_iter();
    let is_variable = |symbol: &Symbol| {
        let section = elf.sections.get(usize::from(symbol.section));
        let named = !symbol.name.is_empty() && !symbol.name.starts_with(['.', '$']);
        named
            && !symbol.name.starts_with(TABLES)
            && section.is_some_and(|s| s.name == ".nv.global" || s.name == ".nv.global.init")
    };
    Ok(symbols.filter(is_variable).map(|s| s.name).collect())
}

/// How the names of tables begin that CUDA's mathematical functions read and nobody writes.
pub const TABLES: &str = "__cudart_";

/// What belongs to kernels, by their names, and the module's facts by symbol.
struct Parts<'a> {
    constants: HashMap<&'a str, Vec<(u32, &'a Section)>>,
    /// Sections with relocations, and what of the kernel they are for.
    relocations: HashMap<&'a str, Vec<(&'a str, usize)>>,
    shared: HashMap<&'a str, u64>,
    infos: HashMap<&'a str, &'a str>,
    facts: HashMap<(Attribute, u32), u32>,
    slots: BTreeMap<u64, Slot>,
}

impl<'a> Parts<'a> {
    fn of(elf: &'a Elf, symbols: &[Symbol]) -> Result<Parts<'a>, ElfError> {
        let mut parts = Parts {
            constants: HashMap::new(),
            relocations: HashMap::new(),
            shared: HashMap::new(),
            infos: HashMap::new(),
            facts: HashMap::new(),
            slots: slots(elf, symbols)?,
        };
        for (index, section) in elf.sections.iter().enumerate() {
            let name = &*section.name;
            if let Some((bank, kernel)) = constant_bank(name) {
                parts
                    .constants
                    .entry(kernel)
                    .or_default()
                    .push((bank, section));
            } else if let Some(kernel) = name.strip_prefix(".nv.shared.") {
                parts.shared.insert(kernel, section.size());
            } else if let Some(kernel) = name.strip_prefix(".nv.info.") {
                parts.infos.insert(kernel, name);
            }
            if section.is_relocations()
                && let Some(target) = elf.sections.get(section.info as usize)
            {
                let text = target.name.strip_prefix(".text.");
                let kernel = text.or_else(|| Some(constant_bank(&target.name)?.1));
                if let Some(kernel) = kernel {
                    let place = &target.name[..target.name.len() - kernel.len()];
                    parts
                        .relocations
                        .entry(kernel)
                        .or_default()
                        .push((place, index));
                }
            }
        }
        for banks in parts.constants.values_mut() {
            banks.sort_by_key(|(bank, _)| *bank);
        }
        for record in elf.info(".nv.info")?.unwrap_or_default().records {
            if let [symbol, value] = record.words()[..] {
                parts.facts.insert((record.attribute, symbol), value);
            }
        }
        Ok(parts)
    }

    fn fact(&self, attribute: Attribute, symbol: u32) -> Option<u32> {
        self.facts.get(&(attribute, symbol)).copied()
    }

    fn digest(
        &self,
        elf: &Elf,
        (index, symbol): (u32, &Symbol),
        text: &Section,
        symbols: &[Symbol],
    ) -> Result<String, ElfError> {
        let name = &*symbol.name;
        let mut hash = Sha256::new();
        let mut part = |what: &str, bytes: &[u8]| {
            hash.update(what);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part("kernel 1", &elf.target().sm.to_le_bytes());
        part("code", &text.data);
        for (bank, section) in self.constants.get(name).into_iter().flatten() {
            match bank {
                // Filled at each launch.
                0 => part("parameters", &section.size().to_le_bytes()),
                _ => {
                    part("constant", &bank.to_le_bytes());
                    part("holds", &section.data);
                }
            }
        }
        let mut relocations = Vec::new();
        for (place, section) in self.relocations.get(name).into_iter().flatten() {
            for r in elf.relocations(*section)? {
                let to = symbols.get(r.symbol as usize).map_or("?", |s| &s.name);
                let to = if to == name { "" } else { to };
                relocations.push(format!(
                    "{place} {} {} {to} {:?}",
                    r.offset, r.kind, r.addend
                ));
            }
        }
        relocations.sort_unstable();
        for text in relocations {
            part("relocation", text.as_bytes());
        }
        let used = match self.slots.is_empty() {
            true => BTreeSet::new(),
            false => addresses_used(elf.target().sm, &text.data),
        };
        for use_ in used {
            let used = self.slots.iter();
            let used = used.filter(|(at, _)| use_.is_none_or(|use_| use_ == **at));
            for (at, slot) in used {
                part("address", &at.to_le_bytes());
                part("of", slot.variable.as_bytes());
                part("table", slot.table.as_deref().unwrap_or("").as_bytes());
            }
        }
        part("shared", &self.shared.get(name).unwrap_or(&0).to_le_bytes());
        for attribute in [Attribute::REGCOUNT, Attribute::FRAME_SIZE] {
            let value = self.fact(attribute, index).unwrap_or(0);
            part("module", &value.to_le_bytes());
        }
        let info = self
            .infos
            .get(name)
            .map(|section| elf.info(section))
            .transpose()?;
        for record in info.flatten().unwrap_or_default().records {
            if LAUNCH_FACTS.contains(&record.attribute) {
                part("launch", &[record.attribute.0]);
                let words = record.words();
                let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
                part("is", &bytes);
            }
        }
        Ok(crate::hex(&hash.finalize()))
    }
}

/// A place in constant bank 4, where the loader writes an address.
struct Slot {
    variable: String,
    /// Digest of what it holds, if it is a table of the mathematical library.
    table: Option<String>,
}

/// The places of constant bank 4, by their offsets.
fn slots(elf: &Elf, symbols: &[Symbol]) -> Result<BTreeMap<u64, Slot>, ElfError> {
    let mut found = BTreeMap::new();
    let Some(bank) = elf.section_index(".nv.constant4") else {
        return Ok(found);
    };
    for r in elf.relocations_of(bank)? {
        let Some(symbol) = symbols.get(r.symbol as usize) else {
            continue;
        };
        let section = elf.sections.get(usize::from(symbol.section));
        let place = r.offset as usize..(r.offset as usize).saturating_add(8);
        let in_place = elf.sections[bank].data.get(place);
        let is_start = r.addend.unwrap_or(0) == 0 && in_place == Some(&[0; 8][..]);
        let contents = section
            .filter(|s| s.name == ".nv.global.init" && symbol.name.starts_with(TABLES) && is_start)
            .and_then(|s| {
                let start = usize::try_from(symbol.value).ok()?;
                let size = usize::try_from(symbol.size).ok()?;
                s.data.get(start..start.checked_add(size)?)
            });
        let slot = Slot {
            variable: symbol.name.clone(),
            table: contents.map(crate::sha256),
        };
        found.insert(r.offset, slot);
    }
    Ok(found)
}

/// Where code reads constant bank 4; `None` for a place that is computed.
fn addresses_used(sm: u32, code: &[u8]) -> BTreeSet<Option<u64>> {
    let mut found = BTreeSet::new();
    for raw in code.chunks_exact(16) {
        let bits = raw
            .iter()
            .rev()
            .fold(0, |all: u128, &byte| all << 8 | u128::from(byte));
        if names_bank_4(bits) {
            let decoded = isa::decode(Instruction::new(sm, bits));
            match decoded.is_opaque() {
                true => drop(found.insert(None)),
                false => found.extend(addresses_in(&decoded.text(0))),
            }
        }
    }
    found
}

/// Could an instruction with a constant operand of bank 4 have these bits? [`tables`] holds every kernel to it.
fn names_bank_4(bits: u128) -> bool {
    (bits >> 54) & 0x1f == 4
}

/// The places of bank 4 in an instruction's text.
fn addresses_in(text: &str) -> impl Iterator<Item = Option<u64>> {
    const BANK: &str = "c[0x4][";
    text.match_indices(BANK).map(|(at, _)| {
        let rest = &text[at + BANK.len()..];
        let inside = &rest[..rest.find(']')?];
        match inside.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => (inside == "RZ" || inside == "URZ").then_some(0),
        }
    })
}

/// The tables of the mathematical library that a kernel reads (`__cudart_…`): names and digests of what they hold.
/// Nobody writes them, so that those of another module do as well.
///
/// # Errors
/// [`Tie::Variables`]: it takes addresses of other things.
pub fn tables(cubin: &[u8], name: &str) -> Result<BTreeMap<String, String>, Tie> {
    let elf = Elf::parse(cubin)?;
    let code = elf.instructions(&elf.kernel(name)?)?;
    let slots = slots(&elf, &elf.symbols()?)?;
    let mut found = BTreeMap::new();
    for instruction in code {
        let decoded = isa::decode(instruction);
        for at in addresses_in(&decoded.text(0)) {
            if !names_bank_4(instruction.bits()) {
                return Err(Tie::Bank);
            }
            let slot = at.and_then(|at| slots.get(&at)).ok_or(Tie::Variables)?;
            let table = slot.table.clone().ok_or(Tie::Variables)?;
            found.insert(slot.variable.clone(), table);
        }
    }
    Ok(found)
}

/// Bank and kernel of `.nv.constant0.KERNEL`.
fn constant_bank(section: &str) -> Option<(u32, &str)> {
    let (bank, kernel) = section.strip_prefix(".nv.constant")?.split_once('.')?;
    Some((bank.parse().ok()?, kernel))
}

/// Is it code or a constant bank of this kernel?
fn is_code_of(section: &Section, name: &str) -> bool {
    let prefix = section.name.strip_suffix(name);
    prefix.is_some_and(|p| p == ".text." || p.starts_with(".nv.constant"))
}

/// The relocations of a kernel's code and constants.
fn own_relocations(elf: &Elf, name: &str) -> Result<Vec<Relocation>, ElfError> {
    let mut found = Vec::new();
    for (index, section) in elf.sections.iter().enumerate() {
        let target = elf.sections.get(section.info as usize);
        if section.is_relocations() && target.is_some_and(|t| is_code_of(t, name)) {
            found.extend(elf.relocations(index)?);
        }
    }
    Ok(found)
}

/// Why a kernel cannot be taken out of its module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Tie {
    /// An instruction that the tables do not explain.
    #[error("instruction {0} is not known to the tables")]
    Opaque(usize),
    /// Constant bank 3: `__constant__` variables.
    #[error("it reads `__constant__` variables of its module")]
    Constants,
    /// Constant bank 4: addresses of module variables and of functions of the driver.
    #[error("it uses variables of its module, or calls printf, malloc or assert")]
    Variables,
    /// Another constant bank, or bindless constants.
    #[error("it reads a constant bank that is not its own")]
    Bank,
    /// A relocation against something outside the kernel.
    #[error("it refers to `{0}`")]
    Symbol(String),
    /// The cubin cannot be read.
    #[error("{0}")]
    Elf(#[from] ElfError),
}

/// Does a kernel live by its parameters, its own code and [`tables`] alone? Only then may a copy in another module stand in
/// for it: variables of the module would be others there.
///
/// # Errors
/// What it shares with its module.
pub fn stands_alone(cubin: &[u8], name: &str) -> Result<(), Tie> {
    let elf = Elf::parse(cubin)?;
    let kernel = elf.kernel(name)?;
    let symbols = elf.symbols()?;
    for r in own_relocations(&elf, name)? {
        let symbol = symbols.get(r.symbol as usize);
        if symbol.is_none_or(|s| !is_own(s, &elf, &kernel)) {
            let text = symbol.map_or("?", |s| &s.name);
            return Err(Tie::Symbol(text.to_owned()));
        }
    }
    let banks = banks(&elf.instructions(&kernel)?)?;
    for bank in banks {
        match bank {
            0..=2 => {}
            3 => return Err(Tie::Constants),
            4 => drop(tables(cubin, name)?),
            _ => return Err(Tie::Bank),
        }
    }
    Ok(())
}

/// Code, shared memory and constant banks of the kernel itself.
fn is_own(symbol: &Symbol, elf: &Elf, kernel: &KernelSections) -> bool {
    let section = elf.sections.get(usize::from(symbol.section));
    section.is_some_and(|s| {
        let prefix = s.name.strip_suffix(&kernel.name);
        is_code_of(s, &kernel.name)
            || prefix == Some(".nv.shared.")
            || s.name == ".nv.shared.reserved.0"
    })
}

/// The constant banks that code names; a bank of 255 stands for a bindless one.
fn banks(code: &[Instruction]) -> Result<BTreeSet<u32>, Tie> {
    let mut found = BTreeSet::new();
    for (index, &instruction) in code.iter().enumerate() {
        let decoded = isa::decode(instruction);
        if decoded.is_opaque() {
            return Err(Tie::Opaque(index));
        }
        let text = decoded.text(0);
        if text.contains("cx[") {
            found.insert(255);
        }
        for (at, _) in text.match_indices("c[0x") {
            let digits = &text[at + 4..];
            let end = digits.find(']').unwrap_or(digits.len());
            let bank = u32::from_str_radix(&digits[..end], 16);
            found.insert(bank.unwrap_or(255));
        }
    }
    Ok(found)
}
