//! From a section of a cubin to [`Code`].

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{EntityRef, Inst};

use super::trap::Asserts;
use super::{Calls, Code, ControlFlow, Flow, Paths, is_conditional};
use crate::elf::kernel::BranchTargets;
use crate::elf::{Elf, ElfError, KernelSections};
use crate::inst::Instruction;
use crate::roles::Roles;

/// Why a section cannot be seen as a function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// The container is damaged.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// A branch leads out of the section or between instructions.
    #[error("{kernel}: the branch at {offset:#x} leads to {target:#x}, where no instruction is")]
    Target {
        /// The function.
        kernel: String,
        /// Where the branch is, in bytes from the start of the section.
        offset: i64,
        /// Where it leads.
        target: i64,
    },
    /// A jump through a register of which `.nv.info` lists no targets.
    #[error("{kernel}: nothing tells where the jump at {offset:#x} leads")]
    NoTable {
        /// The function.
        kernel: String,
        /// Where the jump is, in bytes from the start of the section.
        offset: i64,
    },
}

const WORD: i64 = 16;
/// Names of helpers that ptxas puts behind each kernel that calls them (division, shuffles on one
/// path); nobody else calls that copy, and nobody takes its address.
const HELPER: &str = "$__internal_";

/// Where control may go from each instruction, calls as if they came back. Where a branch leads out of the code, or
/// nobody knows where, the way ends.
pub(crate) fn paths(insts: &[Instruction], tables: &BranchTargets) -> Paths {
    let section = Section {
        kernel: "",
        insts,
        calls: Calls::AsNvdisasm,
        tables,
    };
    let next = |at: usize| {
        let flow = section.flow(at).unwrap_or(Flow::Exit);
        let falls = matches!(flow, Flow::Next | Flow::Call | Flow::Branch(_));
        let falls = falls || is_conditional(insts[at]);
        let behind = falls.then(|| Inst::new(at + 1));
        flow.targets().iter().copied().chain(behind).collect()
    };
    Paths((0..insts.len()).map(next).collect())
}

/// What is needed to resolve targets.
struct Section<'a> {
    kernel: &'a str,
    insts: &'a [Instruction],
    calls: Calls,
    tables: &'a BranchTargets,
}

impl Code {
    /// The section of `kernel`, with the functions behind it.
    ///
    /// # Errors
    /// The container is damaged, or control leads where no instruction is.
    pub fn new(elf: &Elf, kernel: &KernelSections, calls: Calls) -> Result<Code, CodeError> {
        let insts = elf.instructions(kernel)?;
        let functions = functions(elf, kernel, insts.len())?;
        let tables = elf.branch_targets(kernel)?;
        let asserts = match calls {
            Calls::Followed => Asserts::of(elf, kernel)?,
            Calls::AsNvdisasm => Asserts::default(),
        };
        Code::build(&kernel.name, insts, calls, &tables, &functions, &asserts)
    }

    /// A kernel without a container: nothing behind it and no jump tables.
    ///
    /// # Errors
    /// Control leads where no instruction is.
    pub fn of_instructions(name: &str, insts: Vec<Instruction>) -> Result<Code, CodeError> {
        let functions = Functions {
            starts: vec![0],
            callable: BTreeSet::new(),
            helpers: BTreeSet::new(),
        };
        Code::build(
            name,
            insts,
            Calls::Followed,
            &BranchTargets::new(),
            &functions,
            &Asserts::default(),
        )
    }

    fn build(
        name: &str,
        insts: Vec<Instruction>,
        calls: Calls,
        tables: &BranchTargets,
        functions: &Functions,
        asserts: &Asserts,
    ) -> Result<Code, CodeError> {
        let section = Section {
            kernel: name,
            insts: &insts,
            calls,
            tables,
        };
        let mut flow = Vec::with_capacity(insts.len());
        for at in 0..insts.len() {
            flow.push(section.flow(at)?);
        }
        if !asserts.is_empty() {
            let entries = section.entries(functions, &flow);
            for at in asserts.calls(&insts, &flow, &entries) {
                flow[at] = Flow::Trap;
            }
        }
        if calls == Calls::Followed {
            section.follow_calls(functions, &mut flow)?;
        }
        let known: Vec<Option<Roles>> = insts.iter().map(|&inst| Roles::of(inst)).collect();
        let unknown = known
            .iter()
            .enumerate()
            .filter(|(_, roles)| roles.is_none());
        let opaque = unknown.map(|(at, _)| Inst(at as u32)).collect();
        Ok(Code {
            roles: known.into_iter().map(Option::unwrap_or_default).collect(),
            insts,
            flow,
            opaque,
            calls,
        })
    }
}

impl Section<'_> {
    /// The instruction `distance` bytes after the one behind `at`.
    fn target(&self, at: usize, distance: i64) -> Result<Inst, CodeError> {
        self.at_offset(at, (at as i64 + 1) * WORD + distance)
    }

    fn at_offset(&self, from: usize, target: i64) -> Result<Inst, CodeError> {
        let inst = usize::try_from(target / WORD).ok();
        match inst.filter(|&inst| target % WORD == 0 && inst < self.insts.len()) {
            Some(inst) => Ok(Inst(inst as u32)),
            None => Err(CodeError::Target {
                kernel: self.kernel.to_owned(),
                offset: from as i64 * WORD,
                target,
            }),
        }
    }

    /// Calls by convention; [`Section::follow_calls`] replaces those that can be followed.
    fn flow(&self, at: usize) -> Result<Flow, CodeError> {
        Ok(match ControlFlow::of(self.insts[at]) {
            ControlFlow::Next => Flow::Next,
            ControlFlow::Jump(distance) => Flow::Jump(self.target(at, distance)?),
            ControlFlow::Branch(distance) => Flow::Branch(self.target(at, distance)?),
            // All threads of the warp end up behind the collective part, but whether each goes
            // through it is not known: for nvdisasm it does, for us it may.
            ControlFlow::Collective(_) if self.calls == Calls::AsNvdisasm => Flow::Next,
            ControlFlow::Collective(distance) => Flow::Branch(self.target(at, distance)?),
            ControlFlow::Call(_) | ControlFlow::FarCall => Flow::Call,
            ControlFlow::Return => Flow::Return,
            ControlFlow::Exit => Flow::Exit,
            ControlFlow::Table | ControlFlow::FarJump => {
                let offset = at as i64 * WORD;
                let targets = self.tables.get(&at).ok_or_else(|| CodeError::NoTable {
                    kernel: self.kernel.to_owned(),
                    offset,
                })?;
                let targets = targets
                    .iter()
                    .map(|&target| self.at_offset(at, i64::try_from(target).unwrap_or(i64::MAX)));
                Flow::Indirect(targets.collect::<Result<_, _>>()?)
            }
        })
    }

    /// Where control may come from elsewhere than the instruction before.
    fn entries(&self, functions: &Functions, flow: &[Flow]) -> BTreeSet<usize> {
        let targets = flow.iter().flat_map(Flow::targets);
        let mut entries: BTreeSet<usize> = targets.map(|target| target.0 as usize).collect();
        entries.extend(&functions.starts);
        for (at, inst) in self.insts.iter().enumerate() {
            if let ControlFlow::Call(distance) = ControlFlow::of(*inst) {
                let target = self.target(at, distance).ok();
                entries.extend(target.map(|target| target.0 as usize));
            }
        }
        entries
    }

    /// Makes calls inside the section jumps, and returns jumps back behind the calls.
    ///
    /// A function returns to where it was called from, and so does what it jumps into; functions that
    /// branch into each other share their return sites. A RET keeps the calling convention if somebody
    /// outside may call its function.
    fn follow_calls(&self, functions: &Functions, flow: &mut [Flow]) -> Result<(), CodeError> {
        let mut group: Vec<usize> = (0..functions.starts.len()).collect();
        for (at, flow) in flow.iter().enumerate() {
            let from = functions.of(at);
            for target in flow.targets() {
                let (a, b) = (group[from], group[functions.of(target.0 as usize)]);
                group
                    .iter_mut()
                    .for_each(|g| *g = if *g == b { a } else { *g });
            }
        }
        let mut sites: BTreeMap<usize, BTreeSet<Inst>> = BTreeMap::new();
        let mut far_calls = false;
        for (at, (flow, inst)) in flow.iter_mut().zip(self.insts).enumerate() {
            match ControlFlow::of(*inst) {
                ControlFlow::Call(distance) => {
                    // A relocated call has no distance of its own and leaves the section.
                    let Ok(target) = self.target(at, distance) else {
                        far_calls = true;
                        continue;
                    };
                    *flow = Flow::Jump(target);
                    let callee = group[functions.of(target.0 as usize)];
                    sites.entry(callee).or_default().insert(Inst(at as u32 + 1));
                }
                ControlFlow::FarCall => far_calls |= *flow != Flow::Trap,
                _ => {}
            }
        }
        for (at, flow) in flow.iter_mut().enumerate() {
            let function = functions.of(at);
            let may_be_pointed_to = far_calls && !functions.helpers.contains(&function);
            let outside = may_be_pointed_to || functions.callable.contains(&group[function]);
            let sites = sites.get(&group[function]).filter(|_| !outside);
            if let (Flow::Return, Some(sites)) = (&*flow, sites) {
                *flow = Flow::Indirect(sites.iter().copied().collect());
            }
        }
        Ok(())
    }
}

/// The functions of a section: first instructions, ascending, those that other code may call, and
/// the compiler's own helpers.
struct Functions {
    starts: Vec<usize>,
    callable: BTreeSet<usize>,
    helpers: BTreeSet<usize>,
}

impl Functions {
    fn of(&self, inst: usize) -> usize {
        self.starts
            .partition_point(|&start| start <= inst)
            .saturating_sub(1)
    }
}

fn functions(elf: &Elf, kernel: &KernelSections, count: usize) -> Result<Functions, ElfError> {
    let symbols = elf.symbols()?;
    let own = symbols
        .iter()
        .filter(|symbol| usize::from(symbol.section) == kernel.text);
    let own: Vec<_> = own.filter(|symbol| symbol.is_function()).collect();
    let mut starts: Vec<usize> = own
        .iter()
        .map(|symbol| symbol.value as usize / 16)
        .collect();
    starts.push(0);
    starts.retain(|&start| start < count.max(1));
    starts.sort_unstable();
    starts.dedup();
    let mut functions = Functions {
        starts,
        callable: BTreeSet::new(),
        helpers: BTreeSet::new(),
    };
    for symbol in own
        .iter()
        .filter(|symbol| !symbol.is_kernel() && !symbol.is_local())
    {
        let function = functions.of(symbol.value as usize / 16);
        match symbol.name.starts_with(HELPER) {
            true => functions.helpers.insert(function),
            false => functions.callable.insert(function),
        };
    }
    Ok(functions)
}
