//! Machine code that is made in several steps of what ptxas built: its spills in shared memory, values of ours in the
//! place of its spills, another order.
//!
//! Goal and paper: RegDem, whole. Which build is worth a step is for the model to say, as in the paper's section 4.
//! Departures: the paper demotes the one build that the user has, to one target; here every build of ptxas is a start,
//! also under a limit, with its spills in local memory or moved, and every stair below it is a goal. A limit that makes
//! ptxas spill may be reached with fewer accesses from a build under a higher one. From the nearest build values are also
//! computed again (You & Tsai) where that costs less than a slot. Steps go round by round: of what one round left, the
//! best by the model are taken further.
//!
//!
//! The nearest build, where no stair lies between, is also put into an order that needs fewer registers (Rawat et al.), by itself
//! and before values leave it.
//!
//! `compact` is no step: `demote` gives registers other numbers before it moves a value.

use warpwright_pass::passes::{
    Again, Demote, Schedule, ScheduleBy, ScheduleMiss, SpillToShared, Throttle,
};
use warpwright_pass::{Level, Recipe};
use warpwright_target::{EditedCode, Gpu, Stair, ran_right};

use crate::candidate::Candidate;
use crate::proposal::{is_rewritten, predicted};

/// Stairs that values are demoted to: the default's own where it spills, and those behind it. RegDem (table 1) goes two
/// further at most.
const MOST_GOALS: usize = 4;
/// No stair lies below that RegDem goes to.
const FEWEST_REGISTERS: u32 = 32;
/// Builds with the fewest registers above a goal that are demoted to it, and of the others those that the model likes best.
const NEAREST_STARTS: usize = 2;
const BEST_STARTS: usize = 1;
/// Demoted builds that are kept.
const MOST_DEMOTED: usize = 8;
/// Builds whose instructions are put into other orders: the default, the best as ptxas leaves them, and the best that were
/// made of such.
const MOST_REORDERED: usize = 3;
const MADE_REORDERED: usize = 3;
/// Orders of each beside the two that the estimate likes ([`Schedule::seed`]).
const SEEDS: u32 = 2;

/// Builds that values leave for shared memory. `stairs` are those of the default build.
pub fn demoted(gpu: &Gpu, stairs: &[Stair], scored: &[Candidate]) -> Vec<Recipe> {
    let Some(default) = scored.first() else {
        return Vec::new();
    };
    if !ran_right(EditedCode::ControlFields, gpu.arch.sm) {
        return Vec::new();
    }
    let resident = blocks(default);
    let is_spilling = default.resources().is_some_and(|r| r.spills());
    let is_goal = |stair: &&Stair| {
        let is_higher = stair.blocks > resident || is_spilling && stair.blocks == resident;
        is_higher && stair.regs >= FEWEST_REGISTERS
    };
    let mut goals: Vec<&Stair> = stairs.iter().filter(is_goal).collect();
    goals.sort_by_key(|stair| stair.blocks);
    goals.truncate(MOST_GOALS);
    let all = goals.into_iter().flat_map(|goal| {
        let starts = starts(scored, goal);
        let demote = Demote::to(goal.regs);
        let again = Demote {
            again: Again::All,
            ..demote
        };
        let nearest = starts.first().map(|start| start.recipe.with(again));
        let first = starts.first().filter(|start| is_next(start, goal, stairs));
        let ordered = first.into_iter().flat_map(|start| {
            let order = |miss| start.recipe.with(Schedule::within(goal.regs, miss));
            let near = order(ScheduleMiss::Near).with(again);
            [order(ScheduleMiss::Refuse), near]
        });
        let by_slots = starts.iter().map(|start| start.recipe.with(demote));
        by_slots.chain(nearest).chain(ordered).collect::<Vec<_>>()
    });
    all.collect()
}

/// Does no stair lie between a build and a goal?
fn is_next(start: &Candidate, goal: &Stair, stairs: &[Stair]) -> bool {
    let between = blocks(start) + 1..goal.blocks;
    !stairs.iter().any(|stair| between.contains(&stair.blocks))
}

/// Builds from which a stair is reached: nothing of them lies in local memory.
fn starts<'c>(scored: &'c [Candidate], goal: &Stair) -> Vec<&'c Candidate> {
    let is_start = |c: &&Candidate| {
        let resources = c.resources();
        let is_above =
            resources.is_some_and(|r| r.registers > goal.regs && r.local_spill_bytes() == 0);
        is_above && c.is_open() && is_made_by_ptxas(&c.recipe) && blocks(c) < goal.blocks
    };
    let mut starts: Vec<&Candidate> = scored.iter().filter(is_start).collect();
    starts.sort_by_key(|c| c.resources().map(|r| r.registers));
    let mut rest = starts.split_off(starts.len().min(NEAREST_STARTS));
    rest.sort_by(|a, b| predicted(a).total_cmp(&predicted(b)));
    starts.extend(rest.into_iter().take(BEST_STARTS));
    starts
}

/// Has ptxas made it of the kernel's own instructions, its spills moved at most?
fn is_made_by_ptxas(recipe: &Recipe) -> bool {
    let mut edits = recipe.at(Level::MachineCode);
    let is_moved = edits.all(|pass| pass.get::<SpillToShared>().is_some());
    is_moved && !is_rewritten(recipe) && recipe.find::<Throttle>().is_none()
}

fn blocks(candidate: &Candidate) -> u32 {
    candidate
        .residency()
        .map_or(0, |residency| residency.blocks)
}

/// Of demoted builds, the numbers of those that the model gives no chance: all but the best.
pub fn hopeless(scored: &[Candidate]) -> Vec<usize> {
    let is_demoted = |&at: &usize| scored[at].is_open() && is_demoted(&scored[at].recipe);
    let mut demoted: Vec<usize> = (0..scored.len()).filter(is_demoted).collect();
    demoted.sort_by(|&a, &b| predicted(&scored[a]).total_cmp(&predicted(&scored[b])));
    demoted.split_off(demoted.len().min(MOST_DEMOTED))
}

fn is_demoted(recipe: &Recipe) -> bool {
    recipe.find::<Demote>().is_some()
}

/// Other orders of the default build and of the best.
pub fn reordered(gpu: &Gpu, scored: &[Candidate]) -> Vec<Recipe> {
    let Some((default, others)) = scored.split_first() else {
        return Vec::new();
    };
    if !ran_right(EditedCode::ControlFields, gpu.arch.sm) {
        return Vec::new();
    }
    let is_promising = |c: &&Candidate| c.is_open() && predicted(c) < predicted(default);
    let mut best: Vec<&Candidate> = others.iter().filter(is_promising).collect();
    best.sort_by(|a, b| predicted(a).total_cmp(&predicted(b)));
    let (made, plain): (Vec<&Candidate>, Vec<&Candidate>) = best
        .into_iter()
        .partition(|c| c.recipe.at(Level::MachineCode).next().is_some());
    let by = [ScheduleBy::Height, ScheduleBy::Place].map(|by| Schedule::tried(by, 0));
    let seeds = (1..=SEEDS).map(|seed| Schedule::tried(ScheduleBy::Height, seed));
    let orders: Vec<Schedule> = by.into_iter().chain(seeds).collect();
    let all = |c: &Candidate, orders: &[Schedule]| -> Vec<Recipe> {
        orders.iter().map(|order| c.recipe.with(*order)).collect()
    };
    let plain = std::iter::once(default).chain(plain).take(MOST_REORDERED);
    let plain = plain.flat_map(|c| all(c, &orders));
    let made = made.into_iter().take(MADE_REORDERED);
    plain.chain(made.flat_map(|c| all(c, &by))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Resources;
    use crate::proposal::is_reworked;
    use crate::proposal::tests::limited;

    fn names(recipes: &[Recipe]) -> Vec<String> {
        recipes.iter().map(Recipe::to_string).collect()
    }

    fn stair(blocks: u32, regs: u32) -> Stair {
        Stair {
            blocks,
            warps: 8 * blocks,
            percent: 12.5 * f64::from(blocks),
            regs,
        }
    }

    /// The default build, which has so many registers.
    fn default(registers: u32, blocks: u32, spills: u32) -> Candidate {
        let mut default = limited(registers, blocks, spills, 1.0);
        default.recipe = Recipe::default();
        default
    }

    #[test]
    fn values_leave_the_nearest_builds_that_do_not_spill() {
        let gpu = warpwright_target::lookup("h200").unwrap();
        let stairs = [
            stair(2, 128),
            stair(3, 80),
            stair(4, 64),
            stair(5, 48),
            stair(6, 40),
        ];
        let mut moved = limited(80, 3, 400, 0.7);
        moved.recipe = moved.recipe.with(SpillToShared { blocks: None });
        moved.figures_mut().unwrap().resources = Resources {
            spill_moved_bytes: 400,
            ..moved.resources().unwrap().clone()
        };
        let scored = [
            default(120, 2, 0),
            limited(80, 3, 400, 0.9),
            limited(64, 4, 900, 1.1),
            moved,
            limited(160, 1, 0, 1.2),
        ];
        let names = names(&demoted(&gpu, &stairs, &scored));
        assert_eq!(
            names[..5],
            [
                "demote(80)",
                "maxnreg(160); demote(80)",
                "demote(80, again=all)",
                "schedule(registers=80)",
                "schedule(registers=80, miss=near); demote(80, again=all)"
            ],
            "the build at 80 registers is there already"
        );
        assert_eq!(
            names[5..10],
            [
                "maxnreg(80); spill-to-shared; demote(64)",
                "demote(64)",
                "maxnreg(160); demote(64)",
                "maxnreg(80); spill-to-shared; demote(64, again=all)",
                "maxnreg(80); spill-to-shared; schedule(registers=64)"
            ]
        );
        // No other order by itself over more than a stair.
        assert_eq!(names.len(), 5 + 6 + 2 * 4);
        let spilling = [default(80, 3, 90), limited(96, 2, 0, 1.3)];
        let names = self::names(&demoted(&gpu, &stairs, &spilling));
        assert_eq!(
            names[0], "maxnreg(96); demote(80)",
            "in the place of ptxas's spills"
        );
        let a100 = warpwright_target::lookup("a100").unwrap();
        assert!(demoted(&a100, &stairs, &scored).is_empty());
    }

    #[test]
    fn a_few_demoted_builds_are_kept() {
        let mut scored = vec![default(120, 2, 0)];
        for at in 0..MOST_DEMOTED as u32 + 2 {
            let mut made = limited(160 + at, 2, 0, 1.0 - 0.01 * f64::from(at));
            made.recipe = made.recipe.with(Demote::to(96));
            scored.push(made);
        }
        assert_eq!(hopeless(&scored), [2, 1]);
    }

    #[test]
    fn other_orders_are_tried_of_the_best_builds_where_such_code_ran() {
        let mut made = limited(96, 4, 0, 0.85);
        made.recipe = made.recipe.with(Demote::to(64));
        let scored = [
            default(90, 3, 0),
            limited(48, 5, 90, 0.8),
            limited(64, 4, 40, 0.9),
            limited(80, 3, 0, 0.95),
            made,
        ];
        let h200 = warpwright_target::lookup("h200").unwrap();
        let recipes = reordered(&h200, &scored);
        let names = names(&recipes);
        assert_eq!(names.len(), MOST_REORDERED * (2 + SEEDS as usize) + 2);
        assert_eq!(names[4], "maxnreg(48); schedule(waits=alone, margin=0)");
        assert_eq!(
            names[9],
            "maxnreg(64); schedule(by=place, waits=alone, margin=0)"
        );
        assert_eq!(
            names[12],
            "maxnreg(96); demote(64); schedule(waits=alone, margin=0)"
        );
        assert!(recipes.iter().all(is_reworked));
        let a100 = warpwright_target::lookup("a100").unwrap();
        assert!(reordered(&a100, &scored).is_empty());
    }
}
