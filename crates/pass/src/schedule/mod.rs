//! `schedule`: put the instructions of each block into another order, with control fields of our own.
//!
//! Goal: hide latencies within the warp where too few other warps hide them. Paper: RegDem (section 3.4.2) hoists
//! the loads that it inserted, within a block; here every instruction may move, by the estimate of
//! [`warpwright_sass::schedule`]. Two times make those of a block: in which its instructions issue, and which a warp alone
//! would take, shared among the warps that reside on a scheduler (RegDem, section 4, Eq. 2 without its throughput term,
//! which the ports have; it takes the larger, here they are joined as in our model); with `waits=alone` shared among none.
//! Blocks are weighted by loops.
//!
//! That estimate knows no scoreboards, of which there are six: whoever waits for one waits for all that count on it. So
//! the code as it is written then is walked with its control fields, as RegDem does for its choice (section 4), and a
//! block whose new order takes longer so goes back to its old one. With `search=N` each
//! block takes the shortest of N + 2 orders by that walk.
//!
//! A block keeps its order, and what ptxas wrote into its control fields, where a new one is not shorter, and the
//! kernel is left alone where all together promise less than `margin` percent. Registers keep their names, so their
//! number stays. `by=none` keeps the order of all blocks: with `keep=nothing` it shows what control fields of ours cost
//! by themselves.
//!
//! With `registers=N` the goal is another one: [`within`].
//!
//! Requires that control flow, registers and timing of all instructions are known. Preserves what every
//! instruction does, and the order of all that is not surely independent ([`warpwright_sass::schedule::graph`]).

mod within;

use std::collections::BTreeMap;

use warpwright_diag::count;
use warpwright_flow::{Cfg, EntityRef, Inst, Loops};
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::ir::{Ir, Keep};
use warpwright_sass::schedule::{Estimate, Priority, Scheduler, reorder};
use warpwright_sass::{Elf, Latencies, steps};
use warpwright_target::{NORM, Resources, joined, occupancy};

use crate::pass::{Fuel, Need, Outcome, Pass, Rewritten, Timing, Work};
use crate::refusal::Refusal;
use crate::site::CubinSite;

/// By what the order is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleBy {
    /// See [`Priority::Height`].
    Height,
    /// See [`Priority::Place`].
    Place,
    /// It stays as it is.
    None,
}

/// What stays of ptxas's control fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleKeep {
    /// See [`Keep::Nothing`].
    Nothing,
    /// See [`Keep::Scoreboards`].
    Scoreboards,
    /// See [`Keep::Blocks`].
    Blocks,
}

impl From<ScheduleKeep> for Keep {
    fn from(keep: ScheduleKeep) -> Keep {
        match keep {
            ScheduleKeep::Nothing => Keep::Nothing,
            ScheduleKeep::Scoreboards => Keep::Scoreboards,
            ScheduleKeep::Blocks => Keep::Blocks,
        }
    }
}

/// Which waits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// Those that the warps which reside leave.
    Resident,
    /// All that a warp alone has.
    Alone,
}

/// What becomes of a kernel that needs more registers than are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleMiss {
    /// It stays as it is.
    Refuse,
    /// It gets the order that needs the fewest.
    Near,
}

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// By what the order is chosen.
    pub by: ScheduleBy,
    /// Which waits count.
    pub waits: Waits,
    /// What stays of ptxas's control fields.
    pub keep: ScheduleKeep,
    /// What it must promise, in percent of the time.
    pub margin: u32,
    /// Not nought: another order near the one by height ([`Priority::Varied`]), which promises nothing.
    pub seed: u32,
    /// Of so many orders near the one by height, of this and of the one by place, each block takes the shortest.
    pub search: u32,
    /// Registers per thread to come down to; none where the order alone matters.
    pub registers: Option<u32>,
    /// Where so few registers do not suffice.
    pub miss: ScheduleMiss,
}

crate::words!(ScheduleBy: ScheduleBy::Height = "height", ScheduleBy::Place = "place", ScheduleBy::None = "none");
crate::words!(ScheduleKeep: ScheduleKeep::Nothing = "nothing", ScheduleKeep::Scoreboards = "scoreboards",
    ScheduleKeep::Blocks = "blocks");
crate::words!(ScheduleMiss: ScheduleMiss::Refuse = "refuse", ScheduleMiss::Near = "near");
crate::words!(Waits: Waits::Resident = "resident", Waits::Alone = "alone");
crate::options!(Schedule: []; [
    by: ScheduleBy = ScheduleBy::Height, "what goes first: the longest way to the end of the block, the old place, or the old order alone";
    waits: Waits = Waits::Resident, "which waits count: those that the resident warps leave, or all of a warp alone";
    keep: ScheduleKeep = ScheduleKeep::Blocks, "what stays of control fields: nothing, scoreboards, or all in blocks that stay";
    margin: u32 = 2, "percent of the time that it must promise";
    seed: u32 = 0, "not 0: another order near the one by height, which promises nothing, to be measured";
    search: u32 = 0, "of so many orders near the one by height, of this and of the one by place, each block takes the shortest";
    registers: Option<u32> = None, "registers per thread to come down to: values get registers anew [default: they keep theirs]";
    miss: ScheduleMiss = ScheduleMiss::Refuse, "where so few registers do not suffice: nothing, or as few as can be had"]);

impl Schedule {
    /// By what a warp alone takes, whatever it promises: to be measured.
    pub fn tried(by: ScheduleBy, seed: u32) -> Schedule {
        Schedule {
            by,
            waits: Waits::Alone,
            keep: ScheduleKeep::Blocks,
            margin: 0,
            seed,
            search: 0,
            registers: None,
            miss: ScheduleMiss::Refuse,
        }
    }

    /// Within so many registers.
    pub fn within(registers: u32, miss: ScheduleMiss) -> Schedule {
        Schedule {
            by: ScheduleBy::Height,
            waits: Waits::Resident,
            keep: ScheduleKeep::Blocks,
            margin: 2,
            seed: 0,
            search: 0,
            registers: Some(registers),
            miss,
        }
    }

    /// The orders that are tried.
    fn priorities(self) -> Vec<Priority> {
        match (self.by, self.seed, self.search) {
            (ScheduleBy::None, ..) => Vec::new(),
            (_, _, 1..) => {
                let near = (1..=self.search).map(Priority::Varied);
                [Priority::Height, Priority::Place]
                    .into_iter()
                    .chain(near)
                    .collect()
            }
            (ScheduleBy::Height, 0, _) => vec![Priority::Height],
            (ScheduleBy::Height, seed, _) => vec![Priority::Varied(seed)],
            (ScheduleBy::Place, ..) => vec![Priority::Place],
        }
    }
}

impl Pass for Schedule {
    const NAME: &'static str = "schedule";
    const ABOUT: &'static str = "put machine code into an order that waits less";
    const TIMING: Timing = Timing::Anew;

    fn needs(&self) -> &'static [Need] {
        match (self.by, self.waits, self.registers) {
            (ScheduleBy::None, ..) | (_, Waits::Alone, _) | (.., Some(_)) => &[],
            (ScheduleBy::Height | ScheduleBy::Place, Waits::Resident, None) => &[Need::BlockSize],
        }
    }

    fn work(&self) -> Work<Self> {
        Work::MachineCode(schedule)
    }
}

fn schedule(pass: &Schedule, site: &CubinSite, fuel: &mut Fuel) -> Outcome<Vec<u8>> {
    if let Some(registers) = pass.registers {
        return within::rewrite((pass, registers), site, fuel);
    }
    let mut elf = site.cubin.elf().clone();
    let mut ir = Ir::new(&elf, site.kernel)?;
    let note = match pass.priorities() {
        all if !all.is_empty() => permute(&elf, &mut ir, &all, (pass, site), fuel)?,
        _ if fuel.burn() => "the order is as it was".to_owned(),
        _ => return Ok(Rewritten::new(site.cubin.bytes().to_vec())),
    };
    ir.emit(&mut elf, pass.keep.into())?;
    Ok(Rewritten::new(elf.write()?).note(note))
}

/// Blocks go back to their old order so many times at most; then they all do that have to.
const ROUNDS: usize = 3;

/// An order for a block.
struct Order {
    /// The new n-th instruction is the old one at the n-th of these places.
    places: Vec<usize>,
    /// Instructions that stand elsewhere now.
    moved: u32,
    priority: Priority,
}

/// Puts the blocks of `ir` into another order where that is shorter, and says what it promises.
fn permute(
    elf: &Elf,
    ir: &mut Ir,
    priorities: &[Priority],
    (pass, site): (&Schedule, &CubinSite),
    fuel: &mut Fuel,
) -> Result<String, Refusal> {
    let sections = elf.kernel(site.kernel)?;
    let code = Code::new(elf, &sections, Calls::Followed)?;
    let scheduler = scheduler(&code)?;
    let warps = match pass.waits {
        Waits::Resident => warps(site)?,
        Waits::Alone => 1.0,
    };
    let cfg = Cfg::new(&code);
    let loops = Loops::new(&cfg);
    let mut issues = vec![0.0; ir.blocks.len()];
    let mut proposed: Vec<BTreeMap<usize, Order>> = Vec::new();
    for &priority in priorities {
        let mut orders = BTreeMap::new();
        for (number, block) in ir.blocks.iter().enumerate() {
            let Some(first) = block.first().and_then(|op| op.origin()) else {
                continue;
            };
            let weight = loops.weight(cfg.block_of(Inst(first as u32)));
            let (estimate, places) = scheduler.block(&code, block, priority);
            issues[number] = weight * f64::from(estimate.issues);
            let [old, new] = times(estimate, warps);
            if let Some(places) = places.filter(|_| priority.takes(old, new)) {
                let moved = estimate.moved;
                let order = Order {
                    places,
                    moved,
                    priority,
                };
                orders.insert(number, order);
            }
        }
        proposed.push(orders);
    }
    // What is written is another thing: with six scoreboards.
    let rated = |elf: &Elf| -> Result<Vec<f64>, Refusal> {
        let alone = alone(elf, ir, site)?.into_iter().zip(&issues);
        Ok(alone
            .map(|(alone, issues)| shared(*issues, alone, warps))
            .collect())
    };
    let with = |orders: &BTreeMap<usize, Order>| -> Result<Vec<f64>, Refusal> {
        let (mut new, mut written) = (ir.clone(), elf.clone());
        for (block, order) in orders {
            reorder(&mut new, *block, &order.places);
        }
        new.emit(&mut written, pass.keep.into())?;
        rated(&written)
    };
    let before = rated(elf)?;
    let mut orders = match proposed.len() {
        0 | 1 => proposed.pop().unwrap_or_default(),
        _ => shortest(proposed, &before, with),
    };
    let mut after = before.clone();
    for _ in 0..ROUNDS {
        after.clone_from(&before);
        if orders.is_empty() {
            break;
        }
        after = with(&orders)?;
        let count = orders.len();
        orders.retain(|&block, order| order.priority.takes(before[block], after[block]));
        if orders.len() == count {
            break;
        }
    }
    let [old, new] = [before, after].map(|all| all.iter().sum::<f64>());
    let promise = 100.0 * (1.0 - new / old.max(1.0));
    let is_enough = pass.seed != 0 || promise >= f64::from(pass.margin);
    if orders.is_empty() || !is_enough {
        return Err(Refusal::NothingToDo("order that promises enough"));
    }
    let burnt = fuel.burn_up_to(orders.len() as u64) as usize;
    let moved: u32 = orders.values().take(burnt).map(|order| order.moved).sum();
    for (block, order) in orders.iter().take(burnt) {
        reorder(ir, *block, &order.places);
    }
    Ok(format!(
        "{} in another order, {} moved; it promises {promise:.1}% at {warps:.2} warps per scheduler",
        count(burnt, "block"),
        count(moved, "instruction")
    ))
}

fn scheduler(code: &Code) -> Result<Scheduler, Refusal> {
    Scheduler::new(code).map_err(|error| Refusal::obstacle("its schedule is not understood", error))
}

/// Of several proposals the one that is shortest for each block, if it is shorter than the block was. What cannot be
/// written is none.
fn shortest(
    proposed: Vec<BTreeMap<usize, Order>>,
    before: &[f64],
    with: impl Fn(&BTreeMap<usize, Order>) -> Result<Vec<f64>, Refusal>,
) -> BTreeMap<usize, Order> {
    let mut best: BTreeMap<usize, (f64, Order)> = BTreeMap::new();
    for orders in proposed {
        let Ok(times) = with(&orders) else {
            continue;
        };
        for (block, order) in orders {
            let time = times[block];
            let limit = best.get(&block).map_or(before[block], |(time, _)| *time);
            if time < limit {
                best.insert(block, (time, order));
            }
        }
    }
    best.into_iter()
        .map(|(at, (_, order))| (at, order))
        .collect()
}

/// The weighted cycles that a warp alone spends in each block, by what the control fields say.
fn alone(elf: &Elf, ir: &Ir, site: &CubinSite) -> Result<Vec<f64>, Refusal> {
    let sections = elf.kernel(site.kernel)?;
    let code = Code::new(elf, &sections, Calls::Followed)?;
    let latencies = Latencies::typical(&site.setting.gpu.arch.latency);
    let targets = elf.branch_targets(&sections)?;
    let mut cycles = vec![0.0; ir.blocks.len()];
    let steps = steps(code.instructions(), &targets, &latencies, None);
    for (at, step) in steps.into_iter().enumerate() {
        if let Some(block) = ir.block_of(Inst::new(at)) {
            cycles[block] += step.weight * step.cycles;
        }
    }
    Ok(cycles)
}

/// The cycles of a block before and after, with so many warps on a scheduler.
fn times(estimate: Estimate, warps: f64) -> [f64; 2] {
    let issues = f64::from(estimate.issues);
    [estimate.before, estimate.after].map(|alone| shared(issues, f64::from(alone), warps))
}

/// The cycles that each of so many warps on a scheduler costs, of which one alone issues and takes so many: near balance
/// neither hides the other completely, so they are joined as the model joins them ([`NORM`]).
fn shared(issues: f64, alone: f64, warps: f64) -> f64 {
    match warps > 1.0 {
        true => joined(&[(issues, ()), (alone / warps, ())], NORM).0,
        false => alone,
    }
}

/// Warps that reside on each scheduler.
fn warps(site: &CubinSite) -> Result<f64, Refusal> {
    let kernel = site.cubin.kernel(site.kernel).ok_or(Refusal::NoBody)?;
    let setting = site.setting;
    let reserved = setting.gpu.arch.shared.reserved;
    let need = Resources::new(kernel.registers, setting.block.threads())
        .static_smem(kernel.shared_bytes.saturating_sub(reserved))
        .dynamic_smem(setting.dynamic());
    let found = occupancy(setting.gpu, &need)?;
    let warps = f64::from(found.warps) / f64::from(setting.gpu.arch.schedulers.max(1));
    // Less than one: the scheduler idles for the rest.
    Ok(warps.max(0.25))
}
