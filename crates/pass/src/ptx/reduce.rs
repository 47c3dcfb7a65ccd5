//! `reduce`: lower the register pressure of a kernel by all means, in turn, until the goal or no change.
//!
//! Paper: You & Tsai 2011, Fig. 2: rematerialization and spilling to shared memory are repeated and
//! interleaved; rematerialization comes first, for it adds less. Each finds more to do after the
//! other.
//!
//! Requires and preserves what [`remat`](super::remat) and [`spill_shared`](super::spill_shared) do;
//! where the latter cannot work, the former works alone.

use warpwright_ptx::Module;
use warpwright_regs::frame::Layout;
use warpwright_regs::remat::Rules;

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::ptx::facts::{kernel_pressure, pressure, view};
use crate::ptx::goal::goal;
use crate::ptx::remat::recompute;
use crate::ptx::spill_shared::spill_shared;
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::Site;

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct Reduce {
    /// 32-bit registers live at most; without it, one step of the occupancy staircase down.
    pub registers: Option<u32>,
}

crate::options!(Reduce: [registers "32-bit registers live at most [default: one step of the staircase down]"]; []);

impl Pass for Reduce {
    const NAME: &'static str = "reduce";
    const ABOUT: &'static str =
        "recompute values and keep them in shared memory, in turn (You & Tsai)";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn work(&self) -> Work<Self> {
        Work::Ptx(reduce)
    }
}

/// A way to lower the pressure towards a goal.
type Method = fn(&Site, u32, &mut Fuel) -> Outcome<String>;

const METHODS: [(&str, Method); 2] = [("remat", by_recomputing), ("spill-shared", by_spilling)];

/// The pressure may stay above the goal.
fn reduce(pass: &Reduce, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    let before = pressure(&view(site.module, site.kernel)?);
    let goal = goal(site, pass.registers, before)?.registers;
    let mut now = Rewritten::new(site.module.source.to_string());
    let mut parsed = None;
    let mut reached = before;
    let mut idle = 0;
    for (name, method) in METHODS.iter().cycle() {
        if reached <= goal || idle == METHODS.len() {
            break;
        }
        idle += 1;
        let here = Site {
            module: parsed.as_ref().unwrap_or(site.module),
            ..*site
        };
        let mut left = *fuel;
        // What one method cannot do is no reason to give up what the other did.
        let Ok(next) = method(&here, goal, &mut left) else {
            continue;
        };
        let (module, _) = Module::parse(&site.module.name, &next.content);
        let pressure = kernel_pressure(&module, site.kernel);
        if pressure >= reached {
            continue;
        }
        idle = 0;
        reached = pressure;
        *fuel = left;
        parsed = Some(module);
        now.content = next.content;
        now.cost += next.cost;
        let notes = next.notes.iter().map(|note| format!("{name}: {note}"));
        now.notes.extend(notes);
        now.cautions.extend(next.cautions);
    }
    now.cautions.sort_unstable();
    now.cautions.dedup();
    match now.notes.is_empty() {
        true if before <= goal => Err(Refusal::WithinGoal {
            pressure: before,
            goal,
        }),
        true => Err(Refusal::NothingHelps {
            means: "recomputed or spilled".into(),
            pressure: before,
        }),
        false => Ok(now),
    }
}

/// Algorithm 1.
fn by_recomputing(site: &Site, registers: u32, fuel: &mut Fuel) -> Outcome<String> {
    recompute(site, registers, Rules::Full, fuel)
}

/// Algorithm 2, with as much shared memory as leaves the blocks resident that the goal is for.
fn by_spilling(site: &Site, registers: u32, fuel: &mut Fuel) -> Outcome<String> {
    let goal = goal(site, Some(registers), 0)?;
    spill_shared(site, goal, Layout::SlotMajor, fuel)
}
