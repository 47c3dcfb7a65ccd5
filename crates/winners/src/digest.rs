//! A kernel's machine code as a number.
//!
//! What counts: architecture, instructions, relocations (by symbol name), the kernel's own constant banks,
//! registers, local and shared memory, parameters and launch bounds. What does not: the kernel's name, its
//! place in the module, symbol numbers, other kernels, line tables, the version of the tool that wrote it.

use std::collections::BTreeSet;

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

/// The kernels of a cubin.
///
/// # Errors
/// The bytes are no cubin.
pub fn identities(cubin: &[u8]) -> Result<Vec<Identity>, ElfError> {
    let elf = Elf::parse(cubin)?;
    let symbols = elf.symbols()?;
    let is_kernel = |k: &&KernelSections| symbols[k.symbol as usize].is_kernel();
    let kernels = elf.kernels()?;
    let kernels = kernels.iter().filter(is_kernel);
    kernels
        .map(|kernel| {
            Ok(Identity {
                name: kernel.name.clone(),
                digest: digest(&elf, kernel, &symbols)?,
                registers: elf.registers(kernel)?,
            })
        })
        .collect()
}

fn digest(elf: &Elf, kernel: &KernelSections, symbols: &[Symbol]) -> Result<String, ElfError> {
    let mut hash = Sha256::new();
    let mut part = |name: &str, bytes: &[u8]| {
        hash.update(name);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part("kernel 1", &elf.target().sm.to_le_bytes());
    part("code", &elf.sections[kernel.text].data);
    for (bank, section) in own_constants(elf, kernel) {
        match bank {
            // Filled at each launch.
            0 => part("parameters", &section.size().to_le_bytes()),
            _ => {
                part("constant", &bank.to_le_bytes());
                part("holds", &section.data);
            }
        }
    }
    for text in relocations(elf, kernel, symbols)? {
        part("relocation", text.as_bytes());
    }
    part("shared", &elf.shared_bytes(kernel).to_le_bytes());
    let module = elf.info(".nv.info")?.unwrap_or_default();
    for attribute in [Attribute::REGCOUNT, Attribute::FRAME_SIZE] {
        let value = module.of_symbol(attribute, kernel.symbol).unwrap_or(0);
        part("module", &value.to_le_bytes());
    }
    if let Some(info) = elf.info(&format!(".nv.info.{}", kernel.name))? {
        for record in info
            .records
            .iter()
            .filter(|r| LAUNCH_FACTS.contains(&r.attribute))
        {
            part("launch", &[record.attribute.0]);
            let words = record.words();
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            part("is", &bytes);
        }
    }
    Ok(crate::hex(&hash.finalize()))
}

/// The constant banks that belong to a kernel alone, by bank.
fn own_constants<'a>(elf: &'a Elf, kernel: &KernelSections) -> Vec<(u32, &'a Section)> {
    let banks = elf.sections.iter().filter_map(|section| {
        let rest = section.name.strip_prefix(".nv.constant")?;
        let (bank, name) = rest.split_once('.')?;
        let bank = bank.parse().ok().filter(|_| name == kernel.name)?;
        Some((bank, section))
    });
    let mut found: Vec<(u32, &Section)> = banks.collect();
    found.sort_by_key(|(bank, _)| *bank);
    found
}

/// Is it code or a constant bank of this kernel?
fn is_code_of(section: &Section, name: &str) -> bool {
    let prefix = section.name.strip_suffix(name);
    prefix.is_some_and(|p| p == ".text." || p.starts_with(".nv.constant"))
}

/// The relocations of a kernel's code and constants, as texts without numbers of symbols. The kernel's own
/// name, which does not matter, is left out.
fn relocations(
    elf: &Elf,
    kernel: &KernelSections,
    symbols: &[Symbol],
) -> Result<Vec<String>, ElfError> {
    let mut found = Vec::new();
    for (place, r) in own_relocations(elf, &kernel.name)? {
        let symbol = symbols.get(r.symbol as usize).map_or("?", |s| &s.name);
        let symbol = if symbol == kernel.name { "" } else { symbol };
        let place = place.trim_end_matches(kernel.name.as_str());
        found.push(format!(
            "{place} {} {} {symbol} {:?}",
            r.offset, r.kind, r.addend
        ));
    }
    found.sort_unstable();
    Ok(found)
}

/// The relocations of a kernel's code and constants, each with the section that it is in.
fn own_relocations<'a>(elf: &'a Elf, name: &str) -> Result<Vec<(&'a str, Relocation)>, ElfError> {
    let mut found = Vec::new();
    for (index, section) in elf.sections.iter().enumerate() {
        let target = elf.sections.get(section.info as usize);
        let target = target.filter(|t| section.is_relocations() && is_code_of(t, name));
        if let Some(target) = target {
            let all = elf.relocations(index)?;
            found.extend(all.into_iter().map(|r| (target.name.as_str(), r)));
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

/// Does a kernel live by its parameters and its own code alone? Only then may a copy in another module stand in
/// for it: variables of the module would be others there.
///
/// # Errors
/// What it shares with its module.
pub fn stands_alone(cubin: &[u8], name: &str) -> Result<(), Tie> {
    let elf = Elf::parse(cubin)?;
    let kernel = elf.kernel(name)?;
    let symbols = elf.symbols()?;
    for (_, r) in own_relocations(&elf, name)? {
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
            4 => return Err(Tie::Variables),
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
