//! A kernel's machine code as a number.
//!
//! What counts: architecture, instructions, relocations (by symbol name), the kernel's own constant banks,
//! registers, local and shared memory, parameters and launch bounds, and which variables of its module it uses: name,
//! place, alignment, first contents; the functions with sections of their own that it calls, with their relocations. What does not: the kernel's name, its
//! place in the module, symbol numbers, other kernels, line tables, the version of the tool that wrote it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest, Sha256};
use warpwright_sass::elf::info::Attribute;
use warpwright_sass::elf::symbol::Symbol;
use warpwright_sass::elf::{ElfError, Section};
use warpwright_sass::{Elf, Instruction, isa};

use crate::ties::{ADDRESSES, CONSTANTS, Slot, TABLES, function_of, names_bank, places, slots};

/// A kernel of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its symbol.
    pub name: String,
    /// SHA-256 in hexadecimal.
    pub digest: String,
    /// Registers per thread, if the cubin says so.
    pub registers: Option<u32>,
    /// Does it say that its blocks run in clusters, whatever the launch states?
    pub is_clustered: bool,
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
                is_clustered: parts.is_clustered(&elf, &symbol.name)?,
            })
        })
        .collect()
}

/// A variable of a cubin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its symbol.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// `__constant__`: kernels cannot write it.
    pub is_constant: bool,
}

/// The `__device__` and `__constant__` variables of a cubin, without the tables of the mathematical library
/// (`__cudart_…`) and texts (`$str`).
///
/// # Errors
/// The bytes are no cubin.
pub fn variables(cubin: &[u8]) -> Result<Vec<Variable>, ElfError> {
    let elf = Elf::parse(cubin)?;
    let symbols = elf.symbols()?.into_iter();
    let variable = |symbol: Symbol| {
        let is_named = !symbol.name.is_empty() && !symbol.name.starts_with(['.', '$']);
        let section = elf.sections.get(usize::from(symbol.section))?;
        let is_constant = match &*section.name {
            ".nv.global" | ".nv.global.init" => false,
            ".nv.constant3" => true,
            _ => return None,
        };
        (is_named && !symbol.name.starts_with(TABLES)).then_some(Variable {
            name: symbol.name,
            bytes: symbol.size,
            is_constant,
        })
    };
    Ok(symbols.filter_map(variable).collect())
}

/// What belongs to kernels, by their names, and the module's facts by symbol.
struct Parts<'a> {
    constants: HashMap<&'a str, Vec<(u32, &'a Section)>>,
    /// Sections with relocations, and what of the kernel they are for.
    relocations: HashMap<&'a str, Vec<(&'a str, usize)>>,
    shared: HashMap<&'a str, u64>,
    infos: HashMap<&'a str, &'a str>,
    facts: HashMap<(Attribute, u32), u32>,
    slots: BTreeMap<u64, Slot>,
    /// `__constant__` variables: see [`constants`].
    variables: Option<Vec<u8>>,
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
            variables: constants(elf, symbols)?,
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

    fn is_clustered(&self, elf: &Elf, kernel: &str) -> Result<bool, ElfError> {
        const FACTS: [Attribute; 2] = [Attribute::CTA_PER_CLUSTER, Attribute::EXPLICIT_CLUSTER];
        let info = self.infos.get(kernel).map(|section| elf.info(section));
        let info = info.transpose()?.flatten().unwrap_or_default();
        Ok(FACTS.iter().any(|&fact| info.get(fact).is_some()))
    }

    /// Place, alignment and first contents of a variable: a version of the kernel may rest on them.
    fn variable(&self, elf: &Elf, slot: &Slot) -> String {
        let (name, at, size) = &slot.place;
        let section = elf.section(name);
        let align = section.map_or(0, |s| s.align);
        let end = at.saturating_add(*size) as usize;
        let holds = section.and_then(|s| s.data.get(*at as usize..end));
        let holds = holds.map(crate::sha256).unwrap_or_default();
        format!("{name} {at} {size} {align} {} {holds}", slot.addend)
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
        // Of the kernel, and of the functions that it calls.
        let mut called = vec![(name, None)];
        let mut next = 0;
        while let Some(&(name, section)) = called.get(next) {
            next += 1;
            if let Some(section) = section.and_then(|at: usize| elf.sections.get(at)) {
                part("function", name.as_bytes());
                part("code", &section.data);
            }
            let mut relocations = Vec::new();
            for (place, section) in self.relocations.get(name).into_iter().flatten() {
                for r in elf.relocations(*section)? {
                    let symbol = symbols.get(r.symbol as usize);
                    let to = symbol.map_or("?", |s| &s.name);
                    let function = symbol.and_then(|symbol| function_of(symbol, elf));
                    if let Some((to, section)) = function
                        && called.iter().all(|(other, _)| *other != to)
                    {
                        called.push((to, Some(section)));
                    }
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
        }
        let read = |bank: u32, any: bool| match any {
            true => places_read(elf.target().sm, &text.data, bank),
            false => BTreeSet::new(),
        };
        let used = read(ADDRESSES, !self.slots.is_empty()).into_iter();
        // Each half of an address may be read by itself.
        let used: BTreeSet<_> = used.map(|at| at.map(|at| at & !7)).collect();
        for use_ in used {
            let used = self.slots.iter();
            let used = used.filter(|(at, _)| use_.is_none_or(|use_| use_ == **at));
            for (at, slot) in used {
                part("address", &at.to_le_bytes());
                part("of", slot.variable.as_bytes());
                part("table", slot.table.as_deref().unwrap_or("").as_bytes());
                if slot.table.is_none() {
                    part("variable", self.variable(elf, slot).as_bytes());
                }
            }
        }
        if !read(CONSTANTS, self.variables.is_some()).is_empty() {
            part("variables", self.variables.as_deref().unwrap_or_default());
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

/// Where code reads a constant bank; `None` for a place that is computed.
fn places_read(sm: u32, code: &[u8], bank: u32) -> BTreeSet<Option<u64>> {
    let mut found = BTreeSet::new();
    for raw in code.chunks_exact(16) {
        let bits = raw
            .iter()
            .rev()
            .fold(0, |all: u128, &byte| all << 8 | u128::from(byte));
        if names_bank(bits, bank) {
            let decoded = isa::decode(Instruction::new(sm, bits));
            match decoded.is_opaque() {
                true => drop(found.insert(None)),
                false => found.extend(places(&decoded.text(0), bank)),
            }
        }
    }
    found
}

/// The `__constant__` variables of a module as a text: their places, what they hold at first, and what the loader
/// writes into them.
pub(crate) fn constants(elf: &Elf, symbols: &[Symbol]) -> Result<Option<Vec<u8>>, ElfError> {
    let Some(index) = elf.section_index(".nv.constant3") else {
        return Ok(None);
    };
    let bank = &elf.sections[index];
    let mut lines = vec![format!("align {}", bank.align)];
    let own = symbols.iter().filter(|s| usize::from(s.section) == index);
    // The symbol of the section itself has none.
    let own = own.filter(|s| s.size > 0);
    lines.extend(own.map(|s| format!("{} {} {}", s.value, s.size, s.name)));
    for r in elf.relocations_of(index)? {
        let to = symbols.get(r.symbol as usize).map_or("?", |s| &s.name);
        lines.push(format!("{} {} {to} {:?}", r.offset, r.kind, r.addend));
    }
    lines.sort_unstable();
    let mut text = lines.join("\n").into_bytes();
    text.push(0);
    text.extend_from_slice(&bank.data);
    Ok(Some(text))
}

/// Bank and kernel of `.nv.constant0.KERNEL`.
pub(crate) fn constant_bank(section: &str) -> Option<(u32, &str)> {
    let (bank, kernel) = section.strip_prefix(".nv.constant")?.split_once('.')?;
    Some((bank.parse().ok()?, kernel))
}
