//! Return addresses: constants in registers that a RET reads.
//!
//! A function of the section is called by CALL.REL, with the offset of the next instruction in a
//! register pair that the callee's RET names; the low half is the constant to mend, the high half is
//! zero. Which register it is follows from the RET, traced back to the callee's entry; which
//! instructions load it, from the call, traced back on every path. A callee with one caller may have the
//! constant itself. Where the callee keeps its return address in memory (it calls others), any register
//! does that holds it on all paths to the call; ptxas may also store it into a spill slot, from where the callee loads it.
//!
//! A call to what reaches no RET is a jump, and nobody reads a return address. Addresses that a relocation or LEPC gives follow by themselves and are only looked for.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{EntityRef, Source};

use super::EditError;
use super::trace::{Section, Trace, copied};
use crate::branch::{CodeOperand, target};
use crate::elf::kernel::INSTRUCTION;
use crate::function::ControlFlow;
use crate::inst::Instruction;
use crate::operation::Operation;
use crate::roles::File;

/// The constants that are return addresses: index of the instruction that loads it, and the address.
pub(super) type Returns = BTreeMap<usize, u64>;

/// How a callee finds its way back.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// By a constant, which these instructions load.
    Constant(u64, BTreeSet<usize>),
    /// By the general register that it has at its entry.
    Register(u16),
    /// By something that it keeps in memory, or that is not seen.
    Kept,
    /// Not by an address in the section, or by several.
    Unclear,
}

/// Finds them all.
pub(super) fn find(section: &Section<'_>) -> Result<Returns, EditError> {
    Search(section).all()
}

struct Search<'s, 'a>(&'s Section<'a>);

impl Search<'_, '_> {
    fn all(&self) -> Result<Returns, EditError> {
        let mut ways = BTreeMap::new();
        let mut found = Returns::new();
        let code = self.0.code.iter().enumerate();
        for (at, _) in code.filter(|(_, i)| i.is_call()) {
            let address = ((at + 1) * INSTRUCTION) as u64;
            if self.0.callee(at).is_none() && self.follows_by_itself(address) {
                continue;
            }
            let trace = self.0.trace();
            if trace.is_some_and(|trace| trace.jumps(at)) {
                continue;
            }
            let loads = trace.and_then(|trace| self.loads(trace, at, &mut ways));
            let loads = loads.ok_or_else(|| self.not_found(at))?;
            found.extend(loads.into_iter().map(|load| (load, address)));
        }
        Ok(found)
    }

    fn not_found(&self, at: usize) -> EditError {
        let is_relative = self.0.code[at].operation() == Operation::CALL_REL;
        EditError::NoReturnAddress {
            form: if is_relative { "REL" } else { "ABS" },
            at: at * INSTRUCTION,
        }
    }

    /// Does a relocation or LEPC name the address?
    fn follows_by_itself(&self, address: u64) -> bool {
        let mut all = 0..self.0.code.len();
        all.any(|i| self.names_by_itself(i, address))
    }

    fn names_by_itself(&self, i: usize, address: u64) -> bool {
        let old = i * INSTRUCTION;
        if let Some(named) = self.0.relocated.get(&(old as u64)) {
            return *named == Some(address);
        }
        let operand = self.0.code[i].code_operand();
        self.0.code[i].operation() == Operation::LEPC
            && matches!(operand, CodeOperand::Relative(d) if target(old, d) == Some(address))
    }

    /// Does instruction `i` load the address as a constant that has to be mended?
    fn loads_constant(&self, i: usize, address: u64) -> bool {
        !self.0.is_relocated(i) && self.0.code[i].loaded_constant().map(u64::from) == Some(address)
    }

    /// The instructions that load the return address of the call at `at`; none if it follows by itself.
    fn loads(
        &self,
        trace: &Trace<'_>,
        at: usize,
        ways: &mut BTreeMap<usize, Way>,
    ) -> Option<BTreeSet<usize>> {
        let address = ((at + 1) * INSTRUCTION) as u64;
        let way = match self.0.callee(at) {
            Some(entry) => ways
                .entry(entry)
                .or_insert_with(|| self.way_back(trace, entry)),
            None => &mut Way::Kept,
        };
        match way {
            Way::Constant(constant, loads) if *constant == address => Some(loads.clone()),
            Way::Register(register) => self.loads_of(trace, at, *register, address),
            Way::Kept => {
                let all = 0..self.0.code.len();
                let loading = all.filter(|&i| {
                    self.loads_constant(i, address) || self.names_by_itself(i, address)
                });
                let registers: BTreeSet<u16> =
                    loading.map(|i| destination(self.0.code[i])).collect();
                let mut found = registers
                    .into_iter()
                    .filter_map(|r| self.loads_of(trace, at, r, address));
                found
                    .next()
                    .or_else(|| self.loads_by_memory(trace, address))
            }
            Way::Constant(..) | Way::Unclear => None,
        }
    }

    /// The constants that are the address and go into returns alone: no register has it any more where the call is, as
    /// it was stored before.
    fn loads_by_memory(&self, trace: &Trace<'_>, address: u64) -> Option<BTreeSet<usize>> {
        let all = 0..self.0.code.len();
        let loads: BTreeSet<usize> = all.filter(|&i| self.loads_constant(i, address)).collect();
        let goes_back =
            |&i: &usize| trace.only_returns_read(i, (File::Gpr, destination(self.0.code[i])));
        (!loads.is_empty() && loads.iter().all(goes_back)).then_some(loads)
    }

    /// The constants that give `register` the address, if nothing else gives it a value.
    fn loads_of(
        &self,
        trace: &Trace<'_>,
        at: usize,
        register: u16,
        address: u64,
    ) -> Option<BTreeSet<usize>> {
        let register = (File::Gpr, register);
        let mut loads = BTreeSet::new();
        for source in trace.sources(at, register)? {
            match source {
                Source::Inst(i) if self.loads_constant(i.index(), address) => {
                    if !trace.only_returns_read(i.index(), register) {
                        return None;
                    }
                    loads.insert(i.index());
                }
                Source::Inst(i) if self.names_by_itself(i.index(), address) => {}
                _ => return None,
            }
        }
        Some(loads)
    }

    /// How the function at `entry` returns.
    fn way_back(&self, trace: &Trace<'_>, entry: usize) -> Way {
        let body = trace.reachable(entry, false);
        let returns = body
            .into_iter()
            .filter(|&i| ControlFlow::of(self.0.code[i]) == ControlFlow::Return);
        let ways = returns.map(|at| self.way_of(trace, at));
        ways.reduce(Way::and).unwrap_or(Way::Unclear)
    }

    /// How the RET at `at` does.
    fn way_of(&self, trace: &Trace<'_>, at: usize) -> Way {
        let relative = self.0.code[at].code_operand();
        let from_start =
            matches!(relative, CodeOperand::Relative(d) if target(at * INSTRUCTION, d) == Some(0));
        if !from_start && relative != CodeOperand::None {
            return Way::Unclear;
        }
        let (mut at, mut register) = (at, (self.0.code[at].bits() >> 24) as u16 & 0xff);
        // A copy in between is named once for each.
        for _ in 0..self.0.code.len() {
            // An instruction without roles hides the register; the caller still shows which it is.
            let Some(sources) = trace.sources(at, (File::Gpr, register)) else {
                return Way::Kept;
            };
            let mut each = sources.iter().copied();
            match (each.next(), each.next()) {
                (Some(Source::Entry), None) => return Way::Register(register),
                (Some(Source::Inst(i)), None) => match copied(self.0.code[i.index()]) {
                    Some(source) => (at, register) = (i.index(), source),
                    None => return self.way_by(trace, i.index(), register),
                },
                _ => return self.way_by_several(&sources),
            }
        }
        Way::Unclear
    }

    /// The way by one of several sources: kept in memory on some path.
    fn way_by_several(&self, sources: &BTreeSet<Source>) -> Way {
        let constant = |source: &Source| match source {
            Source::Entry => false,
            Source::Inst(i) => self.0.code[i.index()].loaded_constant().is_some(),
        };
        match sources.is_empty() || sources.iter().any(constant) {
            true => Way::Unclear,
            false => Way::Kept,
        }
    }

    /// The way by what instruction `i` puts into `register`.
    fn way_by(&self, trace: &Trace<'_>, i: usize, register: u16) -> Way {
        match self.0.code[i].loaded_constant() {
            _ if self.0.is_relocated(i) => Way::Unclear,
            Some(_) if !trace.only_returns_read(i, (File::Gpr, register)) => Way::Unclear,
            Some(constant) => Way::Constant(u64::from(constant), BTreeSet::from([i])),
            None => Way::Kept,
        }
    }
}

impl Way {
    /// The way of a function with two RETs.
    fn and(self, other: Way) -> Way {
        match (self, other) {
            (Way::Constant(one, mut loads), Way::Constant(two, more)) if one == two => {
                loads.extend(more);
                Way::Constant(one, loads)
            }
            (one, two) if one == two => one,
            (Way::Kept, Way::Register(_)) | (Way::Register(_), Way::Kept) => Way::Kept,
            _ => Way::Unclear,
        }
    }
}

/// The register in the destination field.
fn destination(instruction: Instruction) -> u16 {
    (instruction.bits() >> 16) as u16 & 0xff
}
