//! Goal: lower the register pressure to a desired degree by computing values again where they are
//! used, instead of keeping them in registers while the pressure is high.
//!
//! Paper: You & Tsai 2011, section 2.2, Algorithm 1. While the pressure is above the goal, take the
//! regions at the highest pressure. A value is a candidate if (1) its definition is no long
//! instruction, (2) it lives through a whole region and is not accessed there, (3) the sources of its
//! definition are live together behind the region, and (4) its definition is explicit: one instruction,
//! no guard. Of these the one that covers the most regions, or has the longest live range, is computed
//! again before its first use behind the region or where its sources are last live together, whatever
//! comes first.
//!
//! Departures, under both rules:
//! - The paper numbers instructions in a line. Here 'behind' and 'live' are data-flow facts, so regions
//!   may lie in branches and loops; every use that the region reaches is served.
//! - That the sources still hold what the definition read is tested (see [`place`]).
//! - A step counts only if the analyses of the new code say that the peak is lower or shorter, and in
//!   the end all steps are taken back that did not lower the peak: work without gain.
//! - Recomputations are hidden from the compiler behind us (see [`hide`]): the paper's problem 1.
//!
//! Beyond the paper, under [`Rules::Full`]:
//! - sources that are not live any more are computed again, too: chains of cheap operations down to
//!   parameters, special registers, constants and addresses; or they stay live longer if that takes
//!   fewer registers than the value (an index instead of the 64-bit address);
//! - a value may cross a part of a region if others cross the rest;
//! - of several candidates that free the same, the cheapest by loop-weighted cost is taken.
//!
//! Requires nothing of the function; preserves what every thread computes, bit for bit. Values in
//! flight under asynchronous operations stay where they are.

mod candidate;
mod facts;
mod hide;
pub(crate) mod place;

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{EntityRef, Function, Inst, Pressure};

use facts::{Facts, Peaks, price};
pub use hide::{Hidden, Mask};
use place::Sources;

use crate::draft::{Draft, Origin};

/// Which rules apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// The four conditions and the selection rule as the paper has them.
    Paper,
    /// What goes beyond the paper, too.
    #[default]
    Full,
}

/// A function with values recomputed.
#[derive(Clone, Debug)]
pub struct Rematerialized {
    /// The new code: recomputations are [`Origin::Copy`].
    pub draft: Draft,
    /// How recomputations are kept from looking like what they repeat.
    pub hidden: BTreeMap<Inst, Hidden>,
    /// The highest pressure before, in 32-bit registers.
    pub before: u32,
    /// The highest pressure now, without what hiding takes. It may be above the goal.
    pub pressure: u32,
    /// What the recomputations cost beyond the definitions that they replace: simple instructions,
    /// weighted by loop depth ([`warpwright_flow::Loops::weight`]).
    pub cost: f64,
    /// Rounds that this version took.
    pub rounds: u64,
}

/// Candidates that are tried in a round before it is given up.
const TRIES: usize = 48;

/// Instructions that are analysed in all before what was found so far has to do: every try analyses the whole
/// function anew, so long functions would have time for few. Where very many values are live, each counts more:
/// an analysis takes the product of both.
const WORK: u64 = 1 << 22;
/// So many registers' worth of live values make an instruction count once.
const CROWDED: u32 = 128;

/// Recomputes values until the highest pressure is at most `goal` 32-bit registers, nothing more
/// can be done, [`WORK`] is used up, or `most` rounds are over: in each, one value is recomputed.
pub fn rematerialize(func: &impl Function, goal: u32, rules: Rules, most: u64) -> Rematerialized {
    let mut now = State::new(Draft::new(func));
    let before = now.facts.pressure.max();
    let mut best = now.draft.clone();
    let (mut rounds, mut done) = (0, 0);
    let mut work = WORK;
    while now.facts.pressure.max() > goal && done < most {
        let Some(next) = improve(func, &now, rules, &mut work) else {
            break;
        };
        done += 1;
        if next.facts.pressure.max() < now.facts.pressure.max() {
            best = next.draft.clone();
            rounds = done;
        }
        now = next;
    }
    let State { draft, facts } = State::new(best);
    Rematerialized {
        before,
        hidden: hide::hide(func, &draft, &facts),
        pressure: facts.pressure.max(),
        cost: cost(func, &draft, &facts),
        draft,
        rounds,
    }
}

/// Code with its analyses.
struct State {
    draft: Draft,
    facts: Facts,
}

impl State {
    fn new(draft: Draft) -> Self {
        let facts = Facts::new(&draft);
        State { draft, facts }
    }
}

/// How high the peak is, and how many instructions stand at it.
fn peak(pressure: &Pressure) -> (u32, u32) {
    let regions = pressure.peak_regions();
    let sizes = regions.iter().map(|r| r.last.0 - r.first.0 + 1);
    (pressure.max(), sizes.sum())
}

/// Recomputes one value: the best candidate that lowers or shortens the peak, as long as `work` lasts.
fn improve(func: &impl Function, now: &State, rules: Rules, work: &mut u64) -> Option<State> {
    let regions = now.facts.pressure.peak_regions();
    let candidates = candidate::find(&now.draft, &now.facts, &regions, rules);
    let ways: &[Sources] = match rules {
        Rules::Paper => &[Sources::Live],
        Rules::Full => &[Sources::Live, Sources::Any],
    };
    let tries = candidates.iter().take(TRIES);
    let pairs = tries.flat_map(|candidate| ways.iter().map(move |&way| (candidate, way)));
    let lowest = peak(&now.facts.pressure);
    let mut placed = pairs
        .map_while(|pair| {
            let crowd = u64::from(now.facts.pressure.max() / CROWDED).max(1);
            *work = work.checked_sub(crowd * now.draft.inst_count() as u64)?;
            Some(pair)
        })
        .filter_map(|(candidate, way)| {
            place::recompute(func, &now.draft, &now.facts, candidate, way)
        })
        .map(|draft| (Peaks::new(&draft), draft));
    let (peaks, draft) = placed.find(|(peaks, _)| peak(&peaks.pressure) < lowest)?;
    Some(State {
        facts: Facts::of(&draft, peaks),
        draft,
    })
}

fn cost(func: &impl Function, draft: &Draft, facts: &Facts) -> f64 {
    let mut added = 0.0;
    let mut kept = BTreeSet::new();
    for inst in draft.insts() {
        match draft.origin(inst) {
            Origin::Copy { .. } => {
                added += f64::from(price(draft, inst).unwrap_or(0)) * facts.weight(inst);
            }
            Origin::Own(own) => {
                kept.insert(own);
            }
            Origin::Bases | Origin::Load { .. } | Origin::Store { .. } => {}
        }
    }
    let base = Facts::new(func);
    for inst in (0..func.inst_count()).map(Inst::new) {
        if !kept.contains(&inst) {
            added -= f64::from(price(func, inst).unwrap_or(0)) * base.weight(inst);
        }
    }
    added
}
