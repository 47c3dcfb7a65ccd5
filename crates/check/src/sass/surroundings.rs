//! What a module has beside the code of a kernel: constants, variables, records about launches.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_sass::elf::info::{Attribute, Record, Value};
use warpwright_sass::elf::symbol::Symbol;
use warpwright_sass::elf::{Elf, ElfError};

use super::Side;

/// Attributes that say where something stands, how much memory or how many registers there are, or
/// which blocks are taken: looked at elsewhere, or following from the code.
const FREE: &[Attribute] = &[
    Attribute::EXIT_INSTR_OFFSETS,
    Attribute::S2RCTAID_INSTR_OFFSETS,
    Attribute::LD_CACHEMOD_INSTR_OFFSETS,
    Attribute::COOP_GROUP_INSTR_OFFSETS,
    Attribute::INT_WARP_WIDE_INSTR_OFFSETS,
    Attribute::ATOM_SYS_INSTR_OFFSETS,
    Attribute::MBARRIER_INSTR_OFFSETS,
    Attribute::INDIRECT_BRANCH_TARGETS,
    Attribute::ANNOTATIONS,
    Attribute::INSTR_OFFSETS,
    Attribute::MAX_THREADS,
    Attribute::REQNTID,
    Attribute::MAXREG_COUNT,
];

/// Everything of the module beside this kernel's code must be as it was.
pub(super) fn different(original: &Side, new: &Side) -> Result<(), String> {
    let facts = |side: &Side| {
        let facts = side.facts()?;
        let is_kept = |fact: &Fact| !FREE.contains(&Attribute(fact.0));
        Ok::<_, String>(facts.into_iter().filter(is_kept).collect::<Vec<_>>())
    };
    if facts(original)? != facts(new)? {
        return Err("its .nv.info says other things about launches".to_owned());
    }
    if original.data()? != new.data()? {
        return Err("constants or variables of the module differ".to_owned());
    }
    Ok(())
}

/// Are the two the same code in the same surroundings? Then nothing needs to be understood.
pub(super) fn is_identical(original: &Side, new: &Side) -> Result<bool, String> {
    let numbers = |side: &Side| {
        let shared = side.elf.shared_bytes(&side.sections);
        (side.registers, side.frame(), shared)
    };
    Ok(numbers(original) == numbers(new)
        && original.relocations == new.relocations
        && original.code.instructions() == new.code.instructions()
        && original.facts()? == new.facts()?
        && original.callees()? == new.callees()?)
}

/// An attribute and its value, symbols in it by name.
type Fact = (u8, Vec<String>, Value);

/// A section's flags and contents, and what relocations put there.
type Callee = (u64, Vec<u8>, BTreeMap<u32, String>);

impl Side<'_> {
    fn facts(&self) -> Result<Vec<Fact>, String> {
        let symbols = self.elf.symbols().map_err(|e| e.to_string())?;
        let records = self.info.records.iter();
        Ok(records
            .map(|record| fact(self.elf, &symbols, record))
            .collect())
    }

    /// Constants and variables that the kernel may use, its own shared memory left out.
    fn data(&self) -> Result<BTreeMap<&str, (u64, &[u8])>, String> {
        let kernels = kernels(self.elf)?;
        let sections = self.elf.sections.iter();
        let kept = sections.filter(|section| is_data(&section.name, &self.sections.name, &kernels));
        Ok(kept
            .map(|s| (s.name.as_str(), (s.size(), s.data.as_slice())))
            .collect())
    }

    /// The functions that are no kernels.
    fn callees(&self) -> Result<BTreeMap<&str, Callee>, String> {
        let kernels = kernels(self.elf)?;
        let named = self.elf.sections.iter().filter_map(|section| {
            let name = section.name.strip_prefix(".text.")?;
            (!kernels.contains(name)).then_some((name, section))
        });
        named
            .map(|(name, section)| {
                let relocations = relocations(self.elf, name).map_err(|e| e.to_string())?;
                Ok((name, (section.flags, section.data.clone(), relocations)))
            })
            .collect()
    }
}

fn fact(elf: &Elf, symbols: &[Symbol], record: &Record) -> Fact {
    let words = record.words();
    let (named, value) = match record.attribute {
        Attribute::PARAM_CBANK => (&words[..words.len().min(1)], rest(&words, 1)),
        Attribute::EXTERNS => (&words[..], rest(&words, words.len())),
        _ => (&[][..], record.value.clone()),
    };
    let names = named.iter().map(|&index| symbol_name(elf, symbols, index));
    (record.attribute.0, names.collect(), value)
}

fn rest(words: &[u32], from: usize) -> Value {
    let rest = words.iter().skip(from);
    Value::Sized(rest.flat_map(|word| word.to_le_bytes()).collect())
}

/// A symbol's name; that of a section has none but the section's.
fn symbol_name(elf: &Elf, symbols: &[Symbol], index: u32) -> String {
    let Some(symbol) = symbols.get(index as usize) else {
        return format!("symbol {index}");
    };
    let section = || elf.sections.get(usize::from(symbol.section));
    match symbol.name.as_str() {
        "" => section().map_or_else(String::new, |s| format!("{}+{}", s.name, symbol.value)),
        name => name.to_owned(),
    }
}

fn kernels(elf: &Elf) -> Result<BTreeSet<String>, String> {
    let symbols = elf.symbols().map_err(|e| e.to_string())?;
    let kernels = symbols.into_iter().filter(Symbol::is_kernel);
    Ok(kernels.map(|symbol| symbol.name).collect())
}

/// Is it a section with variables or constants? Those of other kernels alone are none of this one's
/// business, and its own shared memory is looked at elsewhere.
fn is_data(section: &str, kernel: &str, kernels: &BTreeSet<String>) -> bool {
    let is_memory = [".nv.constant", ".nv.global", ".nv.shared", ".nv.local"]
        .iter()
        .any(|prefix| section.starts_with(prefix));
    let owner = section
        .strip_prefix(".nv.")
        .and_then(|name| name.split_once('.'));
    let is_anothers = owner.is_some_and(|(_, owner)| owner != kernel && kernels.contains(owner));
    is_memory && !is_anothers && section != format!(".nv.shared.{kernel}")
}

/// What relocations put into instructions, by index.
pub(super) fn relocations(elf: &Elf, name: &str) -> Result<BTreeMap<u32, String>, ElfError> {
    let symbols = elf.symbols()?;
    let mut texts: BTreeMap<u32, String> = BTreeMap::new();
    for kind in [".rel.text.", ".rela.text."] {
        let Some(index) = elf.section_index(&format!("{kind}{name}")) else {
            continue;
        };
        for relocation in elf.relocations(index)? {
            let symbol = symbol_name(elf, &symbols, relocation.symbol);
            let (at, kind) = (relocation.offset % 16, relocation.kind);
            let addend = relocation.addend.unwrap_or(0);
            let text = format!(" {symbol}+{addend} as {kind} at {at}");
            texts
                .entry((relocation.offset / 16) as u32)
                .or_default()
                .push_str(&text);
        }
    }
    Ok(texts)
}
