//! The controller: our passes and ptxas in turns, until the kernel takes as few registers as wanted.
//!
//! Paper: You & Tsai 2011, section 2.4, problem 2, and Fig. 9. The pressure in PTX is not the number
//! of registers that ptxas allocates, because it moves code around first. So build, read the real
//! number, lower the goal and try again.
//!
//! Departures:
//! - The paper starts with the desired usage itself as the goal. ptxas takes more registers than are
//!   live, or fewer; so the first goal is the pressure less what the untouched kernel takes too many.
//!   That is the gentlest goal that can suffice.
//! - The goal falls by the overshoot, not by one: fewer builds.
//! - It stops when the cost says no: recomputations beyond a share of the kernel's own work are not
//!   tried. (The model still compares what is built with everything else.)
//!
//! Requires a deterministic build. Each round starts from the original text, so that the goal that
//! worked replays through [`reduce()`] alone.

use warpwright_flow::{Cfg, Loops};
use warpwright_toolkit::ToolError;

use crate::build::Workshop;
use crate::explain::pressure_report;
use crate::reduce::{Reduced, reduce};
use crate::rewrite::Site;

/// What a build of the kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes per thread that ptxas stores to local memory (its spill stores).
    pub spilled: u64,
}

/// One round of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The goal, in 32-bit registers live.
    pub goal: u32,
    /// The pressure reached.
    pub pressure: u32,
    /// What its build needs.
    pub need: Need,
}

/// What the controller found.
#[derive(Clone, Debug, PartialEq)]
pub struct Controlled {
    /// The text of the whole module: of the best round, or the original if none was better.
    pub text: String,
    /// The goal of that round, for [`reduce()`]; `None` for the original.
    pub goal: Option<u32>,
    /// What its build needs.
    pub need: Need,
    /// Does it take no more registers than wanted, and spill no more than the original?
    pub reached: bool,
    /// All rounds, in order.
    pub rounds: Vec<Round>,
    /// What was done and why it ended, a sentence each.
    pub notes: Vec<String>,
}

/// Rounds at most. Most kernels that can be helped are after two or three.
const ROUNDS: usize = 6;

/// The share of the kernel's own loop-weighted instructions that recomputations may add.
const MOST_COST: f64 = 0.25;

/// Lowers the kernel's registers per thread to `registers`; `build` builds a text and reads what the
/// kernel needs.
///
/// # Errors
/// What [`reduce()`] refuses, or what the build of the untouched module says.
pub fn control(
    site: &Site,
    registers: u32,
    build: &dyn Fn(&str) -> Result<Need, String>,
) -> Result<Controlled, String> {
    let original = build(&site.module.source)?;
    let mut best = Controlled {
        text: site.module.source.to_string(),
        goal: None,
        need: original,
        reached: original.registers <= registers,
        rounds: Vec::new(),
        notes: Vec::new(),
    };
    let pressure = pressure_report(site.module, site.kernel).peak_units;
    let mut goal = pressure.saturating_sub(original.registers.saturating_sub(registers));
    let most = MOST_COST * work(site);
    let mut last = best.text.clone();
    while !best.reached && best.rounds.len() < ROUNDS {
        let reduced = reduce(site, goal)?;
        if let Some(why) = reason_to_stop(&reduced, &last, most) {
            best.notes.push(why);
            break;
        }
        let need = build(&reduced.text)?;
        best.rounds.push(Round {
            goal,
            pressure: reduced.pressure,
            need,
        });
        last.clone_from(&reduced.text);
        if need.registers < best.need.registers && need.spilled <= original.spilled {
            best.reached = need.registers <= registers;
            best.need = need;
            best.goal = Some(goal);
            best.text = reduced.text;
            best.notes = reduced.notes;
        }
        let overshoot = need.registers.saturating_sub(registers).max(1);
        goal = goal.min(reduced.pressure).saturating_sub(overshoot);
    }
    Ok(best)
}

/// Why another round makes no sense, if so.
fn reason_to_stop(reduced: &Reduced, last: &str, most: f64) -> Option<String> {
    if reduced.text == last {
        return Some("nothing more can be recomputed".into());
    }
    (reduced.cost > most).then(|| {
        format!(
            "recomputing would add {:.0} instructions (loop-weighted), more than {most:.0}",
            reduced.cost
        )
    })
}

/// The kernel's instructions, loop-weighted.
fn work(site: &Site) -> f64 {
    let Some(view) = site.module.view(site.kernel) else {
        return 0.0;
    };
    let cfg = Cfg::new(&view);
    let loops = Loops::new(&cfg);
    let blocks = cfg.blocks();
    blocks
        .map(|block| loops.weight(block) * cfg.insts(block).len() as f64)
        .sum()
}

impl Workshop<'_> {
    /// [`control`] with ptxas.
    ///
    /// # Errors
    /// As there; a missing ptxas, too.
    pub fn control(&self, site: &Site, registers: u32) -> Result<Controlled, String> {
        let name = &*site.module.functions[site.kernel].name;
        control(site, registers, &|text| {
            let build = self.assemble(text, None);
            let build = build.map_err(|e: ToolError| e.to_string())?;
            let kernel = build.resources.kernel(name);
            let kernel = kernel.ok_or("ptxas reported no resources for this kernel")?;
            Ok(Need {
                registers: kernel.registers.unwrap_or(0),
                spilled: u64::from(kernel.spill_stores),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Block, BlockSource};
    use crate::rewrite::Setting;
    use warpwright_ptx::Module;

    const FIGURE: &str = include_str!("../../../filetests/pass/remat-figure-3.ptx");

    /// Runs the controller with an assembler that takes `extra` registers more than are live.
    fn run(registers: u32, extra: u32, spilled: u64) -> Controlled {
        let (module, _) = Module::parse("figure-3.ptx", FIGURE);
        let kernel = module.function("figure3").unwrap();
        let gpu = warpwright_target::lookup("h200").unwrap();
        let block = Block {
            dims: [256, 1, 1],
            source: BlockSource::Option,
        };
        let site = Site {
            module: &module,
            kernel,
            setting: Setting {
                gpu: &gpu,
                block,
                dynamic_smem: 0,
            },
        };
        let result = control(&site, registers, &|text| {
            let (now, _) = Module::parse("k.ptx", text);
            let is_original = text == &*module.source;
            Ok(Need {
                registers: pressure_report(&now, kernel).peak_units + extra,
                spilled: if is_original { 0 } else { spilled },
            })
        });
        result.unwrap()
    }

    #[test]
    fn the_goal_is_what_the_assembler_leaves() {
        let result = run(14, 10, 0);
        assert!(result.reached, "{result:?}");
        assert_eq!((result.goal, result.need.registers), (Some(4), 14));
        assert_ne!(result.text, FIGURE);
    }

    #[test]
    fn what_fits_is_left_alone() {
        let result = run(15, 10, 0);
        assert!(result.reached && result.rounds.is_empty());
        assert_eq!((result.goal, &*result.text), (None, FIGURE));
    }

    #[test]
    fn it_ends_where_nothing_more_can_be_done() {
        let result = run(3, 10, 0);
        assert!(
            !result.reached && result.rounds.len() < ROUNDS,
            "{result:?}"
        );
        assert_eq!(result.need.registers, 14);
    }

    #[test]
    fn more_spills_are_no_success() {
        let result = run(14, 10, 8);
        assert!(!result.reached);
        assert_eq!((result.goal, &*result.text), (None, FIGURE));
    }
}
