//! `schedule`: put the instructions of each block into another order, with control fields of our own.
//!
//! Goal: hide latencies within the warp where too few other warps hide them. Paper: RegDem (section 3.4.2) hoists
//! the loads that it inserted, within a block; here every instruction may move, by the estimate of
//! [`warpwright_sass::schedule`]. Cycles of a block count as the larger of two: those in which its instructions
//! issue, and those that a warp alone would take, shared among the warps that reside on a scheduler (RegDem,
//! section 4, Eq. 2 without its throughput term, which the ports have); with `waits=alone` shared among none. Blocks
//! are weighted by loops.
//!
//! A block keeps its order, and what ptxas wrote into its control fields, where a new one is not shorter, and the
//! kernel is left alone where all together promise less than `margin` percent. Registers keep their names, so their
//! number stays. `by=none` keeps the order of all blocks: with `keep=nothing` it shows what control fields of ours cost
//! by themselves.
//!
//! Requires that control flow, registers and timing of all instructions are known. Preserves what every
//! instruction does, and the order of all that is not surely independent ([`warpwright_sass::schedule::graph`]).

use warpwright_diag::count;
use warpwright_flow::{Cfg, Inst, Loops};
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::ir::{Ir, Keep};
use warpwright_sass::schedule::{Estimate, Priority, Scheduler, reorder};
use warpwright_sass::{Cubin, Elf};
use warpwright_target::{Resources, occupancy};

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
}

crate::words!(ScheduleBy: ScheduleBy::Height = "height", ScheduleBy::Place = "place", ScheduleBy::None = "none");
crate::words!(ScheduleKeep: ScheduleKeep::Nothing = "nothing", ScheduleKeep::Scoreboards = "scoreboards",
    ScheduleKeep::Blocks = "blocks");
crate::words!(Waits: Waits::Resident = "resident", Waits::Alone = "alone");
crate::options!(Schedule: []; [
    by: ScheduleBy = ScheduleBy::Height, "what goes first: the longest way to the end of the block, the old place, or the old order alone";
    waits: Waits = Waits::Resident, "which waits count: those that the resident warps leave, or all of a warp alone";
    keep: ScheduleKeep = ScheduleKeep::Blocks, "what stays of control fields: nothing, scoreboards, or all in blocks that stay";
    margin: u32 = 2, "percent of the time that it must promise";
    seed: u32 = 0, "not 0: another order near the one by height, which promises nothing, to be measured"]);

impl Schedule {
    /// By what a warp alone takes, whatever it promises: to be measured.
    pub fn tried(by: ScheduleBy, seed: u32) -> Schedule {
        Schedule {
            by,
            waits: Waits::Alone,
            keep: ScheduleKeep::Blocks,
            margin: 0,
            seed,
        }
    }
}

impl Pass for Schedule {
    const NAME: &'static str = "schedule";
    const ABOUT: &'static str = "put machine code into an order that waits less";
    const TIMING: Timing = Timing::Anew;

    fn needs(&self) -> &'static [Need] {
        match (self.by, self.waits) {
            (ScheduleBy::None, _) | (_, Waits::Alone) => &[],
            (ScheduleBy::Height | ScheduleBy::Place, Waits::Resident) => &[Need::BlockSize],
        }
    }

    fn work(&self) -> Work<Self> {
        Work::MachineCode(schedule)
    }
}

fn schedule(pass: &Schedule, site: &CubinSite, fuel: &mut Fuel) -> Outcome<Vec<u8>> {
    let mut elf = Elf::parse(site.cubin)?;
    let mut ir = Ir::new(&elf, site.kernel)?;
    let priority = match (pass.by, pass.seed) {
        (ScheduleBy::None, _) => None,
        (ScheduleBy::Height, 0) => Some(Priority::Height),
        (ScheduleBy::Height, seed) => Some(Priority::Varied(seed)),
        (ScheduleBy::Place, _) => Some(Priority::Place),
    };
    let note = match priority {
        None if fuel.burn() => "the order is as it was".to_owned(),
        None => return Ok(Rewritten::new(site.cubin.to_vec())),
        Some(priority) => permute(&elf, &mut ir, priority, (pass, site), fuel)?,
    };
    ir.emit(&mut elf, pass.keep.into())?;
    Ok(Rewritten::new(elf.write()?).note(note))
}

/// Puts the blocks of `ir` into another order where that is shorter, and says what it promises.
fn permute(
    elf: &Elf,
    ir: &mut Ir,
    priority: Priority,
    (pass, site): (&Schedule, &CubinSite),
    fuel: &mut Fuel,
) -> Result<String, Refusal> {
    let sections = elf.kernel(site.kernel)?;
    let code = Code::new(elf, &sections, Calls::Followed)?;
    let scheduler = Scheduler::new(&code)
        .map_err(|error| Refusal::obstacle("its schedule is not understood", error))?;
    let warps = match pass.waits {
        Waits::Resident => warps(site)?,
        Waits::Alone => 1.0,
    };
    let cfg = Cfg::new(&code);
    let loops = Loops::new(&cfg);
    let mut orders = Vec::new();
    let (mut before, mut after, mut moved) = (0.0, 0.0, 0);
    for (number, block) in ir.blocks.iter().enumerate() {
        let Some(first) = block.first().and_then(|op| op.origin()) else {
            continue;
        };
        let weight = loops.weight(cfg.block_of(Inst(first as u32)));
        let (estimate, order) = scheduler.block(&code, block, priority);
        let [old, new] = times(estimate, warps);
        before += weight * old;
        match order.filter(|_| priority.takes(old, new)) {
            Some(order) => {
                after += weight * new;
                moved += estimate.moved;
                orders.push((number, order));
            }
            None => after += weight * old,
        }
    }
    let promise = 100.0 * (1.0 - after / f64::max(before, 1.0));
    let is_enough = pass.seed != 0 || promise >= f64::from(pass.margin);
    if orders.is_empty() || !is_enough {
        return Err(Refusal::NothingToDo("order that promises enough"));
    }
    let burnt = fuel.burn_up_to(orders.len() as u64) as usize;
    for (block, order) in &orders[..burnt] {
        reorder(ir, *block, order);
    }
    Ok(format!(
        "{} in another order, {} moved; it promises {promise:.1}% at {warps:.2} warps per scheduler",
        count(burnt, "block"),
        count(moved, "instruction")
    ))
}

/// The cycles of a block before and after, with so many warps on a scheduler.
fn times(estimate: Estimate, warps: f64) -> [f64; 2] {
    let issues = f64::from(estimate.issues);
    [estimate.before, estimate.after].map(|alone| issues.max(f64::from(alone) / warps))
}

/// Warps that reside on each scheduler.
fn warps(site: &CubinSite) -> Result<f64, Refusal> {
    let unread = |error| Refusal::obstacle("the cubin cannot be read", error);
    let cubin = Cubin::parse(site.cubin).map_err(unread)?;
    let kernel = cubin.kernel(site.kernel).ok_or(Refusal::NoBody)?;
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
