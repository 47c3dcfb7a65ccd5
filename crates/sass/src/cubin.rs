//! The kernels of a cubin with the facts that the models need: a view for reading, made of the container.

use std::collections::HashMap;
use std::sync::Arc;

use warpwright_target::Unit;

use crate::elf::info::Attribute;
use crate::elf::kernel::{BranchTargets, INSTRUCTION};
use crate::elf::symbol::Symbol;
use crate::elf::{Elf, ElfError, Info, KernelSections};
use crate::inst::Instruction;
use crate::operation::Operation;

/// A finished cubin: what ptxas wrote, read only.
#[derive(Debug, Clone)]
pub struct Cubin {
    /// The architecture as a number, 90 for sm_90.
    pub sm: u32,
    /// Kernels and separately compiled functions, in symbol-table order.
    pub kernels: Vec<Kernel>,
}

/// One function of a cubin that has a `.text` section of its own.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Symbol name.
    pub name: String,
    /// Is it a kernel (has a parameter bank) rather than a device function?
    pub is_entry: bool,
    /// Registers per thread (EIATTR_REGCOUNT), 0 if the cubin does not say.
    pub registers: u32,
    /// Bytes of local memory per thread (EIATTR_FRAME_SIZE): stack and spills.
    pub frame_bytes: u32,
    /// Bytes of static shared memory per block as the section header states them.
    pub shared_bytes: u32,
    /// `.maxntid` or `.reqntid`, if the kernel states one.
    pub max_threads: Option<[u32; 3]>,
    /// It is `.reqntid`: no other block may be launched.
    pub is_exact_block: bool,
    /// The kernel's own instructions; helper functions placed behind it are left out.
    pub code: Vec<Instruction>,
    /// Where its indirect branches lead.
    pub targets: BranchTargets,
}

impl Cubin {
    /// Reads a cubin. Bytes are never trusted: any inconsistency is an error.
    ///
    /// # Errors
    /// As of [`Elf::parse`] and [`Cubin::of`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ElfError> {
        Cubin::of(&Elf::parse(bytes)?)
    }

    /// The view of a container. Functions that only their own file knows are left out, but its kernels are there:
    /// `static __global__` makes a local symbol.
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: records, symbols or code are cut short.
    pub fn of(elf: &Elf) -> Result<Self, ElfError> {
        let symbols = elf.symbols()?;
        let facts = elf.info(".nv.info")?.unwrap_or_default();
        let kernels = elf.kernels()?;
        let known = |kernel: &&KernelSections| {
            let symbol = symbols.get(kernel.symbol as usize);
            kernel.parameters.is_some() || symbol.is_some_and(|symbol| !symbol.is_local())
        };
        let registers = facts.by_symbol(Attribute::REGCOUNT);
        let frames = facts.by_symbol(Attribute::FRAME_SIZE);
        let ends = helpers(&symbols, &kernels);
        let kernels = kernels.iter().filter(known).map(|kernel| {
            let fact = |facts: &HashMap<u32, u32>| facts.get(&kernel.symbol).copied().unwrap_or(0);
            let mut code = elf.instructions(kernel)?;
            let end = ends.get(&kernel.text).copied();
            code.truncate(end.unwrap_or(code.len()));
            Ok(Kernel {
                name: kernel.name.clone(),
                is_entry: kernel.parameters.is_some(),
                registers: fact(&registers),
                frame_bytes: fact(&frames),
                shared_bytes: u32::try_from(elf.shared_bytes(kernel)).unwrap_or(u32::MAX),
                max_threads: block_bound(&elf.info_of(kernel)?),
                is_exact_block: elf
                    .info_of(kernel)?
                    .records
                    .iter()
                    .any(|record| record.attribute == Attribute::REQNTID),
                code,
                targets: elf.branch_targets(kernel)?,
            })
        });
        Ok(Cubin {
            sm: elf.target().sm,
            kernels: kernels.collect::<Result<_, _>>()?,
        })
    }

    /// The function called `name`.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.name == name)
    }
}

/// A cubin that was taken apart once: its bytes, the container, and the view of its kernels.
#[derive(Debug)]
pub struct Parsed {
    bytes: Arc<[u8]>,
    elf: Elf,
    view: Cubin,
}

impl Parsed {
    /// Takes a cubin apart.
    ///
    /// # Errors
    /// [`ElfError`]: the bytes are no cubin, or not consistent.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Result<Parsed, ElfError> {
        let bytes = bytes.into();
        let elf = Elf::parse(&bytes)?;
        let view = Cubin::of(&elf)?;
        Ok(Parsed { bytes, elf, view })
    }

    /// The bytes as they were given.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// The container.
    pub fn elf(&self) -> &Elf {
        &self.elf
    }

    /// Its kernels with the facts that the models need.
    pub fn view(&self) -> &Cubin {
        &self.view
    }

    /// The function called `name`.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.view.kernel(name)
    }
}

impl Kernel {
    /// May it use shared memory, static or dynamic? Generic and asynchronous accesses need an address of
    /// shared memory, which comes from the special register of its window.
    pub fn touches_shared(&self) -> bool {
        const SHARED_WINDOW: u128 = 0x2f;
        self.shared_bytes > 0
            || self.code.iter().any(|inst| {
                let window = inst.bits() >> 72 & 0xff == SHARED_WINDOW;
                inst.unit() == Unit::Shared || (inst.operation() == Operation::S2R && window)
            })
    }

    /// Bytes that accesses of `unit` at fixed places of the stack frame move, each counted once: ptxas
    /// counts its spills so, and parts of local arrays with constant indices are among them.
    pub fn frame_traffic(&self, unit: Unit) -> u32 {
        let those = self.code.iter().filter(|inst| inst.unit() == unit);
        let those = those.filter(|inst| is_fixed(inst));
        those.map(|inst| inst.access_bytes()).sum()
    }

    /// How many loads and stores of local memory go by an address of their own: those of arrays, at an index that is known
    /// at run time alone.
    pub fn computed_accesses(&self) -> u32 {
        let is_local =
            |inst: &&Instruction| matches!(inst.unit(), Unit::LocalLoad | Unit::LocalStore);
        let those = self.code.iter().filter(is_local);
        those.filter(|inst| !is_fixed(inst)).count() as u32
    }
}

/// Is the place of an access fixed in its frame? The frame's start is in R1, or in a uniform register, with RZ beside it.
fn is_fixed(inst: &Instruction) -> bool {
    matches!(inst.bits() >> 24 & 0xff, 0x01 | 0xff)
}

/// The place of the first helper in each code section: slow paths (division, square root) stand behind the kernel as
/// functions of its section.
fn helpers(symbols: &[Symbol], kernels: &[KernelSections]) -> HashMap<usize, usize> {
    let owners: HashMap<usize, &str> = kernels
        .iter()
        .map(|kernel| (kernel.text, kernel.name.as_str()))
        .collect();
    let mut ends: HashMap<usize, usize> = HashMap::new();
    for symbol in symbols.iter().filter(|symbol| symbol.is_function()) {
        let text = usize::from(symbol.section);
        let is_helper = owners.get(&text).is_some_and(|owner| *owner != symbol.name);
        if is_helper && symbol.value > 0 {
            let place = symbol.value as usize / INSTRUCTION;
            let end = ends.entry(text).or_insert(place);
            *end = place.min(*end);
        }
    }
    ends
}

fn block_bound(info: &Info) -> Option<[u32; 3]> {
    const BOUNDS: [Attribute; 2] = [Attribute::MAX_THREADS, Attribute::REQNTID];
    let mut bounds = info
        .records
        .iter()
        .filter(|r| BOUNDS.contains(&r.attribute));
    bounds.find_map(|record| <[u32; 3]>::try_from(record.words()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junk_is_an_error_not_a_panic() {
        assert!(matches!(Cubin::parse(b""), Err(ElfError::NotElf(_))));
        assert!(Cubin::parse(&[0x7f; 200]).is_err());
    }
}
