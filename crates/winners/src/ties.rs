//! What a kernel shares with its module: its variables, tables of the mathematical library, functions of the driver.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use warpwright_sass::elf::kernel::INSTRUCTION;
use warpwright_sass::elf::reloc::Relocation;
use warpwright_sass::elf::symbol::Symbol;
use warpwright_sass::elf::{ElfError, KernelSections, Section};
use warpwright_sass::isa::table::Table;
use warpwright_sass::{Elf, HeldConstants, Instruction, isa};
use warpwright_target::runs_on;

use crate::digest::constant_bank;

/// How the names of tables begin that CUDA's mathematical functions read and nobody writes.
pub const TABLES: &str = "__cudart_";
/// Constant bank of `__constant__` variables, and the one where the loader writes addresses.
pub const CONSTANTS: u32 = 3;
/// See [`CONSTANTS`].
pub const ADDRESSES: u32 = 4;

/// What a kernel shares with its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bond {
    /// Nothing, but [`tables`] and `assert`: a copy in any module does the same.
    None,
    /// `__constant__` or `__device__` variables: a copy does the same in this module alone.
    Variables,
}

/// Why no other code may stand in a kernel's place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Tie {
    /// An instruction with a constant operand that the tables do not explain.
    #[error("its instruction of opcode {1:#05x} (number {0}) is not known to the tables")]
    Opaque(usize, u16),
    /// A variable that moves between host and device.
    #[error("it uses the managed variable `{0}`")]
    Managed(String),
    /// A texture or surface reference.
    #[error("it uses the texture or surface reference `{0}`")]
    Texture(String),
    /// It prints into a buffer that the driver empties.
    #[error("it calls printf")]
    Prints,
    /// It takes memory from the heap of the device.
    #[error("it uses the heap of the device (`{0}`)")]
    Heap(String),
    /// It calls a function outside its own code: of the driver, or one (of another object, `-rdc`) that uses variables.
    #[error("it calls `{0}`, which is not in its own code")]
    Calls(String),
    /// An address of constant bank 4 that belongs to nothing.
    #[error("it reads an address that is no variable's (c[0x4][{0:#x}])")]
    Address(u64),
    /// Another constant bank, a bindless one, or a computed place among the addresses.
    #[error("it reads a constant bank that is not its own")]
    Bank,
    /// A relocation against something outside the kernel.
    #[error("it refers to `{0}`")]
    Symbol(String),
    /// The cubin cannot be read.
    #[error("{0}")]
    Elf(#[from] ElfError),
}

/// The type of a function's symbol (STT_FUNC).
const FUNCTION: u8 = 2;

/// A place in constant bank 4, where the loader writes an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Whose address it is.
    pub variable: String,
    /// Added to it.
    pub addend: i64,
    /// Digest of what it holds, if it is a table of the mathematical library.
    pub table: Option<String>,
    /// Section of the variable, its place there and its size; empty for what is defined elsewhere.
    pub place: (String, u64, u64),
    kind: u8,
    other: u8,
}

impl Slot {
    /// Bits of st_other that say that a variable is managed.
    const MANAGED: u8 = 4;

    /// What stands behind the address.
    fn bond(&self) -> Result<Bond, Tie> {
        const TEXTURES: std::ops::RangeInclusive<u8> = 10..=12;
        let name = || self.variable.clone();
        match (&*self.variable, &*self.place.0) {
            ("vprintf", "") => Err(Tie::Prints),
            ("malloc" | "free", "") => Err(Tie::Heap(name())),
            // It never returns, and the driver gives it to every module.
            ("__assertfail" | "__assert_fail", "") => Ok(Bond::None),
            _ if TEXTURES.contains(&self.kind) => Err(Tie::Texture(name())),
            (_, section) if self.kind == FUNCTION || section.starts_with(".text.") => {
                Err(Tie::Calls(name()))
            }
            _ if self.table.is_some() => Ok(Bond::None),
            (_, ".nv.global" | ".nv.global.init") if self.other & Slot::MANAGED != 0 => {
                Err(Tie::Managed(name()))
            }
            (_, ".nv.global" | ".nv.global.init" | ".nv.constant3") => Ok(Bond::Variables),
            _ => Err(Tie::Symbol(name())),
        }
    }
}

/// The places of constant bank 4, by their offsets.
pub fn slots(elf: &Elf, symbols: &[Symbol]) -> Result<BTreeMap<u64, Slot>, ElfError> {
    let mut found = BTreeMap::new();
    let Some(bank) = elf.section_index(".nv.constant4") else {
        return Ok(found);
    };
    for r in elf.relocations_of(bank)? {
        let Some(symbol) = symbols.get(r.symbol as usize) else {
            continue;
        };
        let section = match symbol.section {
            0 => None,
            index => elf.sections.get(usize::from(index)),
        };
        let place = r.offset as usize..(r.offset as usize).saturating_add(8);
        let in_place = elf.sections[bank].data.get(place);
        let in_place = in_place.and_then(|bytes| bytes.try_into().ok());
        // One of the two is zero.
        let addend = r.addend.unwrap_or(0) + in_place.map_or(0, i64::from_le_bytes);
        let contents = section
            .filter(|s| {
                s.name == ".nv.global.init" && symbol.name.starts_with(TABLES) && addend == 0
            })
            .and_then(|s| contents(s, symbol));
        let slot = Slot {
            variable: symbol.name.clone(),
            addend,
            table: contents.map(crate::sha256),
            place: section.map_or_else(Default::default, |s| {
                (s.name.clone(), symbol.value, symbol.size)
            }),
            kind: symbol.info & 0xf,
            other: symbol.other,
        };
        found.insert(r.offset, slot);
    }
    Ok(found)
}

/// The bytes of a variable, if it has some in the file.
pub fn contents<'s>(section: &'s Section, symbol: &Symbol) -> Option<&'s [u8]> {
    let start = usize::try_from(symbol.value).ok()?;
    let size = usize::try_from(symbol.size).ok()?;
    section.data.get(start..start.checked_add(size)?)
}

/// Could an instruction with a constant operand of this bank have these bits? [`read`] holds every kernel to it.
pub fn names_bank(bits: u128, bank: u32) -> bool {
    (bits >> 54) & 0x1f == u128::from(bank)
}

/// The places of a constant bank in an instruction's text; `None` for one that is computed.
pub fn places(text: &str, bank: u32) -> impl Iterator<Item = Option<u64>> {
    let before = format!("c[{bank:#x}][");
    let starts: Vec<usize> = text
        .match_indices(&before)
        .map(|(at, _)| at + before.len())
        .collect();
    starts.into_iter().map(|at| {
        let rest = &text[at..];
        let inside = &rest[..rest.find(']')?];
        match inside.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => (inside == "RZ" || inside == "URZ").then_some(0),
        }
    })
}

/// What code reads of the banks that it shares with its module.
#[derive(Debug, Default)]
pub struct Read {
    /// Does it read `__constant__` variables?
    pub constants: bool,
    /// The instructions that read addresses: index in the code, and the place in bank 4.
    pub addresses: Vec<(usize, u64)>,
    /// Does it read a computed place of that bank?
    pub computed: bool,
}

impl Read {
    /// The slots that it may read.
    fn slots<'s>(&self, slots: &'s BTreeMap<u64, Slot>) -> Result<Vec<&'s Slot>, Tie> {
        match self.computed {
            true => Ok(slots.values().collect()),
            false => {
                let all = self.addresses.iter();
                all.map(|(_, at)| Ok(slot_of(slots, *at)?.1)).collect()
            }
        }
    }
}

/// What a kernel reads, for [`Read`].
///
/// # Errors
/// As [`read`].
fn read_of(elf: &Elf, kernel: &KernelSections) -> Result<Read, Tie> {
    read(&elf.instructions(kernel)?, &relocated(elf, kernel)?)
}

/// The instructions of a kernel that the loader changes.
pub(crate) fn relocated(elf: &Elf, kernel: &KernelSections) -> Result<BTreeSet<usize>, ElfError> {
    let own = elf.relocations_of(kernel.text)?;
    Ok(own
        .iter()
        .map(|r| r.offset as usize / INSTRUCTION)
        .collect())
}

/// The same code as that of an architecture whose code the tables explain, where its own is not: such code runs on this one as it
/// is, so that what both have is encoded alike.
fn explained(code: &[Instruction]) -> Cow<'_, [Instruction]> {
    let own = code.first().map_or(0, |first| first.sm());
    let is_explained = |sm: &u32| Table::of(*sm).is_some() && runs_on(*sm, own);
    match (0..=own).rev().find(is_explained) {
        Some(sm) if sm != own => {
            let as_there = code.iter().map(|i| Instruction::new(sm, i.bits()));
            Cow::Owned(as_there.collect())
        }
        _ => Cow::Borrowed(code),
    }
}

/// Reads code for [`Read`], of which the loader changes the instructions `relocated`.
///
/// # Errors
/// What the tables do not know, or a bank that is neither the kernel's nor its module's.
pub fn read(code: &[Instruction], relocated: &BTreeSet<usize>) -> Result<Read, Tie> {
    let mut found = Read::default();
    let code = &explained(code)[..];
    // Few kernels ask.
    let held = LazyCell::new(|| HeldConstants::new(code, relocated));
    for (index, &instruction) in code.iter().enumerate() {
        let decoded = isa::decode(instruction);
        let has_constant = instruction.opcode().form().has_constant();
        if decoded.is_opaque() {
            match has_constant {
                true => return Err(Tie::Opaque(index, instruction.opcode().number())),
                // Whatever it does, it reads nothing here.
                false => continue,
            }
        }
        let text = decoded.text(0);
        let banks = banks(&text);
        if text.contains("cx[") || !banks.is_empty() && !has_constant {
            return Err(Tie::Bank);
        }
        for bank in banks {
            match bank {
                0..=2 => {}
                CONSTANTS | ADDRESSES if !names_bank(instruction.bits(), bank) => {
                    return Err(Tie::Bank);
                }
                CONSTANTS => found.constants = true,
                ADDRESSES => {
                    for at in places(&text, ADDRESSES) {
                        match at {
                            Some(at) => found.addresses.push((index, at)),
                            None => match held_place(&held, index, &text) {
                                Some(at) => found.addresses.push((index, at)),
                                // It may be each of them.
                                None => found.computed = true,
                            },
                        }
                    }
                }
                _ => return Err(Tie::Bank),
            }
        }
    }
    Ok(found)
}

/// The place of the bank of addresses that an instruction reads through a register, if that holds a constant: so ptxas reads
/// the addresses of the driver's functions.
fn held_place(held: &HeldConstants<'_>, index: usize, text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("c[0x4][R")?;
    let inside = &rest[..rest.find(']')?];
    let (register, beyond) = match inside.split_once("+0x") {
        Some((register, digits)) => (register, u64::from_str_radix(digits, 16).ok()?),
        None => (inside, 0),
    };
    let held = held.at(index, register.parse().ok()?)?;
    Some(u64::from(held) + beyond)
}

/// The constant banks that an instruction's text names; 255 for one that cannot be read.
fn banks(text: &str) -> BTreeSet<u32> {
    let found = text.match_indices("c[0x").map(|(at, _)| {
        let digits = &text[at + 4..];
        let end = digits.find(']').unwrap_or(digits.len());
        u32::from_str_radix(&digits[..end], 16).unwrap_or(255)
    });
    found.collect()
}

/// The slot that holds a place of bank 4: code may read its halves.
pub fn slot_of(slots: &BTreeMap<u64, Slot>, at: u64) -> Result<(u64, &Slot), Tie> {
    let start = at & !7;
    let slot = slots.get(&start).ok_or(Tie::Address(at))?;
    Ok((start, slot))
}

/// What a kernel shares with its module.
///
/// # Errors
/// Something because of which nothing may stand in its place.
pub fn bond(cubin: &[u8], name: &str) -> Result<Bond, Tie> {
    let elf = Elf::parse(cubin)?;
    bond_in(&elf, &elf.symbols()?, &elf.kernel(name)?)
}

/// The same in a cubin that was read already.
pub fn bond_in(elf: &Elf, symbols: &[Symbol], kernel: &KernelSections) -> Result<Bond, Tie> {
    check_relocations(elf, symbols, &kernel.name)?;
    let slots = slots(elf, symbols)?;
    let read = read_of(elf, kernel)?;
    let mut bond = match read.constants {
        true => Bond::Variables,
        false => Bond::None,
    };
    let bonds = read.slots(&slots)?.into_iter().map(Slot::bond);
    for of_slot in bonds.collect::<Result<Vec<Bond>, Tie>>()? {
        if of_slot == Bond::Variables {
            bond = Bond::Variables;
        }
    }
    match read.computed && bond == Bond::Variables {
        // Which variable, only the code knows.
        true => Err(Tie::Bank),
        false => Ok(bond),
    }
}

/// The tables of the mathematical library that a kernel reads (`__cudart_…`): names and digests of what they hold.
/// Nobody writes them, so that those of another module do as well.
///
/// # Errors
/// [`Tie`].
pub fn tables(cubin: &[u8], name: &str) -> Result<BTreeMap<String, String>, Tie> {
    let elf = Elf::parse(cubin)?;
    tables_in(&elf, &elf.symbols()?, &elf.kernel(name)?)
}

/// The same in a cubin that was read already.
pub fn tables_in(
    elf: &Elf,
    symbols: &[Symbol],
    kernel: &KernelSections,
) -> Result<BTreeMap<String, String>, Tie> {
    let slots = slots(elf, symbols)?;
    let read = read_of(elf, kernel)?;
    let mut found = BTreeMap::new();
    for slot in read.slots(&slots)? {
        if let Some(table) = &slot.table {
            found.insert(slot.variable.clone(), table.clone());
        }
    }
    Ok(found)
}

/// Is it code or a constant bank of this kernel?
pub(crate) fn is_code_of(section: &Section, name: &str) -> bool {
    let text = section.name.strip_prefix(".text.") == Some(name);
    text || constant_bank(&section.name).is_some_and(|(_, kernel)| kernel == name)
}

/// The function of the module that a symbol is, if it has a section of its own: device-linked code calls such.
pub(crate) fn function_of<'s>(symbol: &'s Symbol, elf: &Elf) -> Option<(&'s str, usize)> {
    let section = elf.sections.get(usize::from(symbol.section))?;
    let is_function = symbol.info & 0xf == FUNCTION && !symbol.is_kernel();
    let is_whole = section.name.strip_prefix(".text.") == Some(&symbol.name);
    (is_function && is_whole).then_some((&*symbol.name, usize::from(symbol.section)))
}

/// Refuses a kernel whose code refers to something outside of it, functions left out that do not themselves and that share
/// nothing with their module: a version of the kernel has copies of those.
fn check_relocations(elf: &Elf, symbols: &[Symbol], kernel: &str) -> Result<(), Tie> {
    let mut all = vec![kernel];
    let mut next = 0;
    while let Some(&name) = all.get(next) {
        next += 1;
        for r in own_relocations(elf, name)? {
            let symbol = symbols.get(r.symbol as usize);
            if symbol.is_some_and(|s| is_own(s, elf, name)) {
                continue;
            }
            let function = symbol.and_then(|s| function_of(s, elf));
            if let Some((function, section)) = function {
                if !all.contains(&function) {
                    all.push(function);
                    shares_nothing(elf, function, &elf.sections[section])?;
                }
                continue;
            }
            let name = symbol.map_or("?", |s| &s.name).to_owned();
            return Err(match symbol.map(|s| s.info & 0xf) {
                Some(10..=12) => Tie::Texture(name),
                Some(FUNCTION) => Tie::Calls(name),
                _ => Tie::Symbol(name),
            });
        }
    }
    Ok(())
}

fn shares_nothing(elf: &Elf, name: &str, text: &Section) -> Result<(), Tie> {
    let sm = elf.target().sm;
    let raw = text.data.chunks_exact(16).map(|raw| {
        let bits = raw.iter().rev();
        bits.fold(0, |all: u128, &byte| all << 8 | u128::from(byte))
    });
    let code: Vec<Instruction> = raw.map(|bits| Instruction::new(sm, bits)).collect();
    // Whatever it reads is too much.
    let read = read(&code, &BTreeSet::new())?;
    match read.constants || read.computed || !read.addresses.is_empty() {
        true => Err(Tie::Calls(name.to_owned())),
        false => Ok(()),
    }
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

/// Code, shared memory and constant banks of the kernel itself.
fn is_own(symbol: &Symbol, elf: &Elf, kernel: &str) -> bool {
    let section = elf.sections.get(usize::from(symbol.section));
    section.is_some_and(|s| {
        is_code_of(s, kernel)
            || s.name.strip_prefix(".nv.shared.") == Some(kernel)
            || s.name == ".nv.shared.reserved.0"
    })
}
