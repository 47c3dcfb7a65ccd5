//! `schedule(registers=N)`: an order in which fewer registers suffice, and the registers of that order.
//!
//! Goal: the next step of the occupancy staircase without a value in memory. Papers: Rawat et al. (PPoPP 2018) order
//! for few registers and let nvcc allocate; RegDem (section 3.3) compacts what demotion left. Here both are done to
//! ptxas's code, one behind the other: values are webs, so that the order is not bound by registers
//! ([`warpwright_sass::schedule::pressure`]), and are coloured anew afterwards ([`compact`]).
//!
//! What other numbers alone bring within the goal is left in its order. Where the pressure of an order is within the
//! goal, but tuples leave no register for some value, orders with a few registers less are tried. A block that was
//! within the goal as it was goes back to its old order unless the new one is shorter by the walk over what is written.
//! Nothing is spilled: what needs more is refused with the number, or, with `miss=near`, comes as near as it can, so
//! that `demote` has less to do.
//!
//! Requires what `schedule` and `demote` do of instructions; nothing of launches. Preserves what `schedule` does.

use std::collections::BTreeMap;

use warpwright_diag::count;
use warpwright_flow::{EntityRef, Inst, Liveness};
use warpwright_regs::demote::{Demoted, Stuck, compact};
use warpwright_regs::draft::{Draft, Origin};
use warpwright_sass::Elf;
use warpwright_sass::demote::{General, Unset};
use warpwright_sass::elf::RESERVED_REGISTERS;
use warpwright_sass::ir::Ir;
use warpwright_sass::schedule::{Scheduler, Within, reorder};

use super::{ROUNDS, Schedule, ScheduleMiss, alone, scheduler};
use crate::demote::{Compact, Kernel, Writer, renumber};
use crate::pass::{Fuel, Outcome, Rewritten};
use crate::refusal::Refusal;
use crate::site::CubinSite;

/// Registers below the goal that orders are looked for with until the colouring finds a place for all values.
const SLACK: [u32; 4] = [0, 1, 2, 4];

/// By block, the old place of each instruction.
type Orders = BTreeMap<usize, Vec<usize>>;

/// What is looked at while an order is looked for.
struct Search<'a> {
    pass: &'a Schedule,
    kernel: &'a Kernel<'a>,
    general: &'a General<'a>,
    scheduler: &'a Scheduler,
    liveness: Liveness,
    ir: &'a Ir,
    /// General registers of a thread, without those that are reserved.
    goal: u32,
}

/// Orders, and the registers of their values.
struct Found {
    blocks: Vec<Within>,
    orders: Orders,
    done: Demoted,
    /// So many registers are there to be had.
    registers: u32,
}

pub(super) fn rewrite(
    (pass, registers): (&Schedule, u32),
    site: &CubinSite,
    fuel: &mut Fuel,
) -> Outcome<Vec<u8>> {
    let kernel = Kernel::new(site)?;
    if registers >= kernel.registers {
        return Err(Refusal::WithinGoal {
            pressure: kernel.registers,
            goal: registers,
        });
    }
    let compact = Compact {
        registers: Some(registers),
    };
    if let done @ Ok(_) = renumber(&compact, site, fuel) {
        return done;
    }
    let ir = Ir::new(kernel.elf, site.kernel)?;
    let scheduler = scheduler(&kernel.code)?;
    let mut needed = kernel.registers;
    for unset in [Unset::Kept, Unset::Dropped] {
        let general = kernel.general(unset)?;
        let search = Search {
            pass,
            kernel: &kernel,
            general: &general,
            scheduler: &scheduler,
            liveness: scheduler.liveness(&general),
            ir: &ir,
            goal: registers.saturating_sub(RESERVED_REGISTERS),
        };
        match search.find() {
            Ok(_) if !fuel.burn() => return Ok(Rewritten::new(site.cubin.bytes().to_vec())),
            Ok(found) => return search.finish(found, site),
            Err(fewest) => needed = needed.min(fewest + RESERVED_REGISTERS),
        }
    }
    Err(Refusal::NeedsRegisters { registers, needed })
}

impl Search<'_> {
    /// Orders within the goal, or near it; else the fewest registers that were enough.
    fn find(&self) -> Result<Found, u32> {
        let mut first = None;
        for slack in SLACK {
            let blocks = self.blocks(self.goal.saturating_sub(slack));
            let is_within = blocks.iter().all(|block| block.registers[1] <= self.goal);
            let orders = orders(&blocks);
            if is_within && let Ok(done) = self.coloured(&orders, self.goal) {
                return Ok(Found {
                    blocks,
                    orders,
                    done,
                    registers: self.goal,
                });
            }
            first.get_or_insert((blocks, orders));
            // With fewer in view no order needs fewer.
            if !is_within {
                break;
            }
        }
        let (blocks, orders) = first.unwrap_or_default();
        self.near(blocks, orders)
    }

    /// With the fewest registers above the goal that are enough for these orders.
    fn near(&self, blocks: Vec<Within>, orders: Orders) -> Result<Found, u32> {
        let own = self.kernel.registers.saturating_sub(RESERVED_REGISTERS);
        let [was, is] = [0, 1].map(|which| {
            let all = blocks.iter().map(|block| block.registers[which]);
            all.max().unwrap_or(0)
        });
        let mut goals = is.max(self.goal + 1)..=own;
        let found = goals.find_map(|goal| Some((goal, self.coloured(&orders, goal).ok()?)));
        let (registers, done) = found.ok_or(own)?;
        match self.pass.miss == ScheduleMiss::Near && is < was {
            true => Ok(Found {
                blocks,
                orders,
                done,
                registers,
            }),
            false => Err(registers),
        }
    }

    fn blocks(&self, limit: u32) -> Vec<Within> {
        let priorities = self.pass.priorities();
        let blocks = self.ir.blocks.iter();
        let within = |block: &Vec<_>| {
            let code = (&self.kernel.code, self.general);
            let goal = (&priorities[..], limit);
            self.scheduler.within(code, &self.liveness, block, goal)
        };
        blocks.map(within).collect()
    }

    /// A register for every value in these orders.
    fn coloured(&self, orders: &Orders, registers: u32) -> Result<Demoted, Stuck> {
        let mut draft = Draft::new(self.general);
        for (&block, places) in orders {
            let first = self.ir.blocks[block].first().and_then(|op| op.origin());
            draft.reorder(Inst::new(first.unwrap_or_default()), places);
        }
        compact(draft, registers)
    }

    /// The cubin with these orders and registers.
    fn written(&self, orders: &Orders, done: &Demoted) -> Result<Elf, Refusal> {
        let writer = Writer {
            kernel: self.kernel,
            general: self.general,
            done,
            start: 0,
            threads: 0,
        };
        let mut words = self.kernel.code.instructions().to_vec();
        for inst in done.draft.insts() {
            if let Origin::Own(own) = done.draft.origin(inst) {
                words[own.index()] = writer.renamed(inst, own)?;
            }
        }
        let mut ir = self.ir.clone();
        for op in ir.blocks.iter_mut().flatten() {
            if let Some(at) = op.origin() {
                op.inst = words[at];
            }
        }
        for (&block, places) in orders {
            reorder(&mut ir, block, places);
        }
        let mut elf = self.kernel.elf.clone();
        ir.emit(&mut elf, self.pass.keep.into())?;
        Ok(elf)
    }

    /// Lets blocks that need no other order keep theirs where a new one is not shorter, and writes the rest.
    fn finish(&self, found: Found, site: &CubinSite) -> Outcome<Vec<u8>> {
        let Found {
            blocks,
            mut orders,
            done,
            registers,
        } = found;
        let before = alone(self.kernel.elf, self.ir, site)?;
        let mut elf = self.written(&orders, &done)?;
        let mut after = alone(&elf, self.ir, site)?;
        for _ in 0..ROUNDS {
            let mut rest = orders.clone();
            rest.retain(|&at, _| blocks[at].registers[0] > self.goal || after[at] < before[at]);
            if rest.len() == orders.len() {
                break;
            }
            let Ok(done) = self.coloured(&rest, registers) else {
                break;
            };
            orders = rest;
            elf = self.written(&orders, &done)?;
            after = alone(&elf, self.ir, site)?;
        }
        let stated = self.kernel.state_registers(&mut elf, site.kernel)?;
        let moved: u32 = orders.keys().map(|&at| blocks[at].estimate.moved).sum();
        let [before, after] = [before, after].map(|all| all.iter().sum::<f64>());
        let note = format!(
            "{stated} instead of {} registers: {} in another order, {} moved; a warp alone takes {:.2} of its time",
            self.kernel.registers,
            count(orders.len(), "block"),
            count(moved, "instruction"),
            after / before.max(1.0)
        );
        Ok(Rewritten::new(elf.write()?).note(note))
    }
}

fn orders(blocks: &[Within]) -> Orders {
    let orders = blocks.iter().enumerate();
    let orders = orders.filter_map(|(at, block)| Some((at, block.places.clone()?)));
    orders.collect()
}
