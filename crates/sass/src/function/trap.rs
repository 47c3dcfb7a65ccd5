//! Calls of `__assertfail`, from which no thread comes back.
//!
//! ptxas makes them of every `assert`: the address is loaded from the constant bank in which the driver leaves those of
//! functions, through an index in a register, and the parameters stand in the registers of the convention
//! ([`abi::ASSERT_USES`](super::abi::ASSERT_USES)). What ptxas writes behind the call nobody executes.

use std::collections::BTreeSet;

use super::Flow;
use crate::elf::{Elf, ElfError, KernelSections};
use crate::inst::Instruction;
use crate::spill::word;
use crate::straight::last_write;

/// The functions of the system that end the program.
const ENDING: [&str; 1] = ["__assertfail"];
/// The constant bank with addresses of functions and variables.
const ADDRESSES: (u32, &str) = (4, ".nv.constant4");

/// What tells calls of [`ENDING`] from others.
#[derive(Debug, Default)]
pub(super) struct Asserts {
    /// Where the bank has their addresses, in bytes.
    places: BTreeSet<u64>,
    /// Instructions of the section that are relocated.
    relocated: BTreeSet<usize>,
}

impl Asserts {
    /// Those of a kernel's section.
    pub(super) fn of(elf: &Elf, kernel: &KernelSections) -> Result<Asserts, ElfError> {
        let Some(bank) = elf.section_index(ADDRESSES.1) else {
            return Ok(Asserts::default());
        };
        let symbols = elf.symbols()?;
        let mut asserts = Asserts::default();
        for relocation in elf.relocations_of(bank)? {
            let symbol = symbols.get(relocation.symbol as usize);
            let ends = symbol.is_some_and(|s| s.section == 0 && ENDING.contains(&&*s.name));
            let place = relocation.offset as usize;
            let stored = elf.sections[bank].data.get(place..place.saturating_add(8));
            let is_itself = relocation.addend.unwrap_or(0) == 0 && stored == Some(&[0; 8]);
            if ends && is_itself {
                asserts.places.insert(relocation.offset);
            }
        }
        if !asserts.places.is_empty() {
            let own = elf.relocations_of(kernel.text)?;
            asserts.relocated = own.iter().map(|r| r.offset as usize / 16).collect();
        }
        Ok(asserts)
    }

    /// Is there no such call?
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The calls in `code`, given where control may come from elsewhere than the instruction before.
    pub(super) fn calls(
        &self,
        code: &[Instruction],
        flow: &[Flow],
        entries: &BTreeSet<usize>,
    ) -> Vec<usize> {
        let straight = Straight {
            code,
            flow,
            entries,
        };
        let calls = (0..code.len()).filter(|&at| self.is_one(&straight, at));
        calls.collect()
    }

    fn is_one(&self, straight: &Straight<'_>, at: usize) -> bool {
        let call = straight.code[at];
        let Some(target) = word::called_register(call) else {
            return false;
        };
        let place = || {
            let load = straight.written(at, target)?;
            let (to, index, offset) = word::address_load(straight.code[load], ADDRESSES.0)?;
            let high = straight.written(at, target.checked_add(1)?)?;
            let is_whole = to == target && high == load;
            let index = match index {
                word::ZERO_REGISTER => 0,
                index => {
                    let set = straight.written(load, index)?;
                    let is_known = !self.relocated.contains(&set);
                    let constant = straight.code[set].loaded_constant().filter(|_| is_known)?;
                    u64::from(constant)
                }
            };
            let is_known = is_whole && !self.relocated.contains(&load);
            is_known.then(|| index.wrapping_add_signed(offset))
        };
        place().is_some_and(|place| self.places.contains(&place))
    }
}

/// Code that is executed from one instruction to the next.
struct Straight<'c> {
    code: &'c [Instruction],
    flow: &'c [Flow],
    entries: &'c BTreeSet<usize>,
}

impl Straight<'_> {
    /// The instruction that writes general register `number` last before `at`, in every case and on the only way there.
    fn written(&self, at: usize, number: u8) -> Option<usize> {
        let is_next = |at: usize| self.flow[at] == Flow::Next;
        last_write(self.code, self.entries, is_next, at, number.into())
    }
}
