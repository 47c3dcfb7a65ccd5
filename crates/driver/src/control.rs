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
//! worked replays as `reduce(GOAL)`.

use std::collections::BTreeMap;

use warpwright_flow::{Cfg, Loops};
use warpwright_pass::passes::Reduce;
use warpwright_pass::ptx::facts::kernel_pressure;
use warpwright_pass::{Level, Recipe, Run};
use warpwright_ptx::{FuncId, Module};

use crate::build::{Bench, Built};
use crate::candidate::Resources;

/// One round of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The goal, in 32-bit registers live.
    pub goal: u32,
    /// The pressure reached.
    pub pressure: u32,
    /// Registers per thread that its build takes.
    pub registers: u32,
}

/// What the controller found.
#[derive(Clone, Debug, Default)]
pub struct Controlled {
    /// The goal of the best round; `None` for the original.
    pub goal: Option<u32>,
    /// All rounds, in order.
    pub rounds: Vec<Round>,
    /// What each goal made of the PTX.
    pub runs: BTreeMap<u32, Run>,
}

/// Rounds at most. Most kernels that can be helped are after two or three.
const ROUNDS: usize = 6;

/// The share of the kernel's own loop-weighted instructions that recomputations may add.
const MOST_COST: f64 = 0.25;

/// What the controller asks for.
pub trait Assembly {
    /// The PTX with `reduce(goal)` carried out.
    fn reduce(&self, goal: u32) -> Option<Run>;

    /// What its build takes.
    fn build(&self, run: &Run) -> Option<Resources>;
}

/// Lowers the registers per thread of the kernel, whose untouched build takes `original`, to `registers`.
pub fn control(
    (module, kernel): (&Module, FuncId),
    original: &Resources,
    registers: u32,
    assembly: &dyn Assembly,
) -> Controlled {
    let mut found = Controlled::default();
    let pressure = kernel_pressure(module, kernel);
    let mut goal = pressure.saturating_sub(original.registers.saturating_sub(registers));
    let most = MOST_COST * work(module, kernel);
    let mut best = original.registers;
    let mut last: Option<Vec<u8>> = None;
    while best > registers && found.rounds.len() < ROUNDS {
        let Some(run) = assembly.reduce(goal) else {
            break;
        };
        let cost: f64 = run.steps.iter().map(|step| step.cost).sum();
        if cost > most || last.as_deref() == Some(run.unproved().bytes()) {
            break;
        }
        let Some(need) = assembly.build(&run) else {
            break;
        };
        let reached = run.unproved().as_module();
        let reached = reached.map_or(0, |module| kernel_pressure(module, kernel));
        found.rounds.push(Round {
            goal,
            pressure: reached,
            registers: need.registers,
        });
        last = Some(run.unproved().bytes().to_vec());
        found.runs.insert(goal, run);
        if need.registers < best && need.spill_store_bytes <= original.spill_store_bytes {
            best = need.registers;
            found.goal = Some(goal);
        }
        let overshoot = need.registers.saturating_sub(registers).max(1);
        goal = goal.min(reached).saturating_sub(overshoot);
    }
    found
}

/// The kernel's instructions, loop-weighted.
fn work(module: &Module, kernel: FuncId) -> f64 {
    let Some(view) = module.view(kernel) else {
        return 0.0;
    };
    let cfg = Cfg::new(&view);
    let loops = Loops::new(&cfg);
    let blocks = cfg.blocks();
    blocks
        .map(|block| loops.weight(block) * cfg.insts(block).len() as f64)
        .sum()
}

impl Assembly for Bench<'_> {
    fn reduce(&self, goal: u32) -> Option<Run> {
        self.of_ptx(&reduction(goal))
    }

    fn build(&self, run: &Run) -> Option<Resources> {
        let goal = run.steps.first()?.pass.clone();
        let recipe = Recipe::default().with(goal);
        let made = self.run(Some(run), &recipe, Level::MachineCode).ok()?;
        let Built { candidate, .. } = self.read_back(recipe, &made);
        candidate.resources().cloned()
    }
}

fn reduction(goal: u32) -> Recipe {
    Recipe::default().with(Reduce {
        registers: Some(goal),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_pass::{Artifact, Block, BlockSource, Executor, Setting, Target};

    const FIGURE: &str = include_str!("../../../filetests/pass/remat-figure-3.ptx");

    /// An assembler that takes `extra` registers more than are live.
    struct Model {
        start: Artifact,
        extra: u32,
        spilled: u32,
    }

    impl Assembly for Model {
        fn reduce(&self, goal: u32) -> Option<Run> {
            let gpu = warpwright_target::lookup("h200").unwrap();
            let block = Block {
                dims: [256, 1, 1],
                source: BlockSource::Option,
            };
            let target = Target {
                kernel: Some("figure3"),
                setting: Setting {
                    block,
                    dynamic_smem: Some(0),
                    ..Setting::new(&gpu)
                },
            };
            let run = Executor::default().run(&self.start, &target, &reduction(goal), Level::Ptx);
            run.ok()
        }

        fn build(&self, run: &Run) -> Option<Resources> {
            let module = run.unproved().as_module()?;
            Some(Resources {
                registers: kernel_pressure(module, module.function("figure3")?) + self.extra,
                spill_store_bytes: self.spilled,
                ..Resources::default()
            })
        }
    }

    fn run(registers: u32, extra: u32, spilled: u32) -> Controlled {
        let start = Artifact::parse("figure-3.ptx", FIGURE).unwrap();
        let module = start.as_module().unwrap();
        let kernel = module.function("figure3").unwrap();
        let original = Resources {
            registers: kernel_pressure(module, kernel) + extra,
            ..Resources::default()
        };
        let model = Model {
            start: start.clone(),
            extra,
            spilled,
        };
        control((module, kernel), &original, registers, &model)
    }

    #[test]
    fn the_goal_is_what_the_assembler_leaves() {
        let found = run(14, 10, 0);
        assert_eq!(found.goal, Some(4));
        assert_eq!(found.rounds.last().unwrap().registers, 14);
        assert_ne!(found.runs[&4].unproved().bytes(), FIGURE.as_bytes());
    }

    #[test]
    fn what_fits_is_left_alone() {
        let found = run(15, 10, 0);
        assert!(found.rounds.is_empty() && found.goal.is_none());
    }

    #[test]
    fn it_ends_where_nothing_more_can_be_done() {
        let found = run(3, 10, 0);
        assert!(found.rounds.len() < ROUNDS, "{found:?}");
        assert!(found.rounds.iter().all(|round| round.registers > 3));
    }

    #[test]
    fn more_spills_are_no_success() {
        assert_eq!(run(14, 10, 8).goal, None);
    }
}
