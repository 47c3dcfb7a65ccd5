//! The choice among built candidates. 'Do nothing' is always among them and wins ties: a change
//! must promise more than the model's usual error.

use warpwright_model::correction::Judgement;

use crate::candidate::{Because, Candidate, Score};
use crate::proposal::{
    is_kept_apart, is_reworked, is_rewritten, is_throttle_only, is_version, spills_elsewhere,
};
use crate::why_not::{NOTHING, NotChosen, SAME, why_not};

/// A choice and its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Index of the chosen candidate.
    pub index: usize,
    /// Why, in a sentence.
    pub reason: String,
}

/// What a throttled build must promise to save at least: the mimic errs by up to a half in either
/// direction (docs/regs.md), and a kernel that does not contend loses much.
const THROTTLE_MARGIN: f64 = 0.4;

/// What a build must promise to save at least that our own passes rewrote, that spills more than the
/// default, or that is a trade ([`Score::is_trade`]): the model knows less of it. docs/model.md has how often such promises
/// were kept.
const TRADE_MARGIN: f64 = 0.15;

/// The same for a build that spares no spills, and leaves no room beside the blocks of the launch where the default left some
/// or has fewer warps at work: blocks are not dealt out evenly, and one that finds no room waits for another's end.
const ROOM_MARGIN: f64 = 0.3;

/// The same for a version for the launch that is known, beside the original: of 50 that promised as much, by ensembles that had not
/// seen their kind, one was slower by more than 2% (`lab/fits/fit/constants.py`).
const VERSION_MARGIN: f64 = 0.06;

/// The share of time that a candidate must promise to save over the default.
pub fn promise(default: &Candidate, candidate: &Candidate, margin: f64) -> f64 {
    let recipe = &candidate.recipe;
    let is_full = is_full(default, candidate);
    let is_trade = is_full
        || is_new(default, candidate)
        || is_rewritten(recipe) && !is_kept_apart(recipe) && !is_version(recipe)
        || spills_more(default, candidate)
        || candidate.score().is_some_and(|s| s.is_trade);
    let own = match recipe.is_default() {
        true => 0.0,
        false if is_throttle_only(recipe) => THROTTLE_MARGIN,
        false if is_full && !spares(default, candidate) => ROOM_MARGIN,
        false if is_trade => TRADE_MARGIN,
        false if is_version(recipe) => VERSION_MARGIN,
        false => 0.0,
    };
    margin.max(own)
}

/// Bytes per thread to and from spill slots, wherever they are.
pub fn spill_traffic(candidate: &Candidate) -> u32 {
    let resources = candidate.resources();
    resources.map_or(0, |r| r.spill_store_bytes + r.spill_load_bytes)
}

/// Does it spill more than the default?
fn spills_more(default: &Candidate, candidate: &Candidate) -> bool {
    spill_traffic(candidate) > spill_traffic(default)
}

/// Do fewer warps fit than of the default, so that no block would fit beside those of the launch, or not all of them do?
fn is_full(default: &Candidate, candidate: &Candidate) -> bool {
    let (Some(of_default), Some(residency), Some(score)) = (
        default.residency(),
        candidate.residency(),
        candidate.score(),
    ) else {
        return false;
    };
    let of_block = residency.warps / residency.blocks.max(1);
    residency.warps < of_default.warps && residency.warps < score.active_warps + of_block
}

/// Has it the registers for most of what the default spills? Of such builds that promise 15% none was slower, with
/// fewer warps or not (`bench/safe.py`, docs/model.md).
fn spares(default: &Candidate, candidate: &Candidate) -> bool {
    spills_more(candidate, default) && 2 * spill_traffic(candidate) <= spill_traffic(default)
}

/// The same, of a kernel that spills like none that the learned correction was fitted on.
fn is_new(default: &Candidate, candidate: &Candidate) -> bool {
    let is_unknown = |score: &Score| score.judgement.is_some_and(|j| !j.is_known);
    spares(default, candidate) && candidate.score().is_some_and(is_unknown)
}

/// What the measured kernels say against a candidate.
pub fn objection(default: &Candidate, candidate: &Candidate) -> Option<Judgement> {
    let judgement = candidate.score()?.judgement?;
    let is_asked = !is_throttle_only(&candidate.recipe) && !is_new(default, candidate);
    (is_asked && !judgement.is_safe).then_some(judgement)
}

/// Can the model not tell what it is worth? It knows little of other orders, and calls slots in shared memory that our own
/// passes make no spills: of kernels that ptxas lets spill, these took 1.3 and 1.6 of the time that was promised 0.7 and 0.8.
pub fn is_for_measuring(default: &Candidate, candidate: &Candidate) -> bool {
    let recipe = &candidate.recipe;
    let is_spilling = spill_traffic(default) > 0;
    is_reworked(recipe) || is_spilling && is_rewritten(recipe) && !is_throttle_only(recipe)
}

/// Does its promise suffice, if it must promise more than the margin? (The others are judged together.) And does
/// nothing that was measured speak against it? What the model cannot tell is for measurements alone.
fn keeps(default: &Candidate, candidate: &Candidate, score: &Score, margin: f64) -> bool {
    if is_for_measuring(default, candidate) {
        return false;
    }
    let promise = promise(default, candidate, margin);
    let is_enough = promise <= margin || score.relative_time < 1.0 - promise;
    is_enough && objection(default, candidate).is_none()
}

/// Chooses among `candidates`; the first one is the default build. `margin` is the share of time
/// a candidate must promise to save before the default is given up (0.05 = 5%); throttled and
/// rewritten builds, and such that trade spills for warps or warps for anything, must promise more.
pub fn choose(candidates: &[Candidate], margin: f64) -> Choice {
    if let Some(choice) = choose_measured(candidates) {
        return choice;
    }
    if let Some(choice) = choose_launchable(candidates) {
        return choice;
    }
    let best = candidates
        .iter()
        .enumerate()
        .filter(|(_, c)| c.is_open())
        .filter_map(|(i, c)| c.score().map(|s| (i, s)))
        .filter(|&(i, s)| i == 0 || keeps(&candidates[0], &candidates[i], s, margin))
        // `min_by` keeps the first of equals: earlier proposals are the smaller changes.
        .min_by(|(_, a), (_, b)| a.relative_time.total_cmp(&b.relative_time));
    match best {
        Some((index, score)) if index != 0 && score.relative_time < 1.0 - margin => Choice {
            index,
            reason: reason(&candidates[0], &candidates[index], score.relative_time),
        },
        best => Choice {
            index: 0,
            reason: match best {
                Some(_) => kept(candidates, margin),
                None => "no other candidate could be built".into(),
            },
        },
    }
}

/// Of the builds that ptxas alone made, that which spills least, where the default cannot be launched: nothing is faster or
/// slower than that.
fn choose_launchable(candidates: &[Candidate]) -> Option<Choice> {
    let why = candidates.first()?.rejected()?;
    let is_plain = |c: &Candidate| !spills_elsewhere(&c.recipe) && !is_rewritten(&c.recipe);
    let others = candidates.iter().enumerate().skip(1);
    let others = others.filter(|(_, c)| c.is_open() && c.caution().is_none() && is_plain(c));
    let (index, _) = others.min_by_key(|(_, c)| spill_traffic(c))?;
    (why.because == Because::Launch).then(|| Choice {
        index,
        reason: "the default cannot be launched".into(),
    })
}

/// Why the default is kept: what is in the way of the best prediction, as of any other candidate ([`why_not`]).
fn kept(candidates: &[Candidate], margin: f64) -> String {
    let others = candidates.iter().enumerate().skip(1);
    let others = others.filter(|(_, c)| c.rejected().is_none() && c.same_code_as().is_none());
    let others = others.filter_map(|(i, c)| Some((i, c.score()?.relative_time)));
    let faster = others.filter(|&(_, time)| time <= 1.0 - NOTHING);
    let Some((index, time)) = faster.min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return "no candidate is predicted to be faster".to_owned();
    };
    let saves = 100.0 * (1.0 - time);
    match why_not(candidates, 0, index, margin) {
        why @ NotChosen::Promise { .. } => format!("the best prediction {why}"),
        why => format!("the best prediction saves {saves:.1}%, but: {why}"),
    }
}

/// The fastest measured candidate, if there are measurements.
fn choose_measured(candidates: &[Candidate]) -> Option<Choice> {
    let (index, measured) = candidates
        .iter()
        .enumerate()
        .filter(|(_, c)| c.rejected().is_none())
        .filter_map(|(i, c)| c.measured().map(|m| (i, m)))
        .min_by(|(_, a), (_, b)| a.relative_time.total_cmp(&b.relative_time))?;
    // Of those that nobody tells apart one that asks for no caution, and of these the first: proposals begin with the
    // smaller changes.
    let is_as_fast = |c: &Candidate| {
        let its = c.measured().filter(|_| c.rejected().is_none());
        its.is_some_and(|its| {
            its.interval_ns.0 <= measured.interval_ns.1
                && its.relative_time < measured.relative_time + SAME
        })
    };
    let careless = |c: &Candidate| c.caution().is_none() && !is_rewritten(&c.recipe);
    let mut others = candidates.iter().enumerate().skip(1);
    let simple = others.find(|(_, c)| careless(c) && is_as_fast(c));
    let (index, measured) = match simple {
        Some((simple, c)) if index != 0 && !careless(&candidates[index]) => (simple, c.measured()?),
        _ => (index, measured),
    };
    let default = candidates.first()?.measured()?;
    let apart = measured.interval_ns.1 < default.interval_ns.0;
    Some(if index != 0 && apart {
        let reason = format!(
            "measured: {:.3} times the default's time",
            measured.relative_time
        );
        Choice { index, reason }
    } else {
        Choice {
            index: 0,
            reason: "measured: no candidate is faster beyond the noise".into(),
        }
    })
}

fn reason(default: &Candidate, chosen: &Candidate, relative: f64) -> String {
    let mut parts = vec![format!(
        "predicted {:.2} times the default's time",
        relative
    )];
    if is_throttle_only(&chosen.recipe) {
        parts.push("the same code, fewer blocks contend for the first-level cache".into());
    }
    if let (Some(a), Some(b)) = (default.residency(), chosen.residency())
        && a.warps != b.warps
    {
        parts.push(format!("{} instead of {} resident warps", b.warps, a.warps));
    }
    if let (Some(a), Some(b)) = (default.resources(), chosen.resources()) {
        let is_code = !is_throttle_only(&chosen.recipe);
        if is_code && a.registers != b.registers {
            parts.push(format!(
                "{} instead of {} registers",
                b.registers, a.registers
            ));
        }
        match (a.spills(), b.spills()) {
            (true, false) if b.spill_shared_bytes > 0 => {
                parts.push("no local spills any more".into());
            }
            (true, false) => parts.push("no spills any more".into()),
            (_, true) => {
                let place = match (b.local_spill_bytes(), b.spill_moved_bytes) {
                    (_, 0) if a.spill_shared_bytes + b.spill_shared_bytes > 0 => {
                        " in local memory".to_owned()
                    }
                    (_, 0) => String::new(),
                    (0, _) => " in shared memory".to_owned(),
                    (_, moved) => format!(" ({moved} in shared memory)"),
                };
                parts.push(format!(
                    "{} bytes of spill traffic{place}, {} before",
                    spill_traffic(chosen),
                    spill_traffic(default)
                ));
            }
            _ => {}
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::{Measured, Rejection, Residency, Resources, Score};
    use warpwright_pass::Recipe;
    use warpwright_pass::passes::{MaxNReg, Schedule, ScheduleBy};

    fn scored(registers: u32, relative_time: f64) -> Candidate {
        let recipe = match registers {
            0 => Recipe::default(),
            registers => Recipe::default().with(MaxNReg { registers }),
        };
        let mut candidate = Candidate::built(recipe, Resources::default());
        candidate.figures_mut().unwrap().score = Some(Score {
            relative_time,
            bound: "latency".into(),
            turns: crate::candidate::Turns::None,
            contention: 1.0,
            active_warps: 0,
            is_trade: false,
            judgement: None,
            tpsc: None,
        });
        candidate
    }

    fn score_of(candidate: &mut Candidate) -> &mut Score {
        candidate.figures_mut().unwrap().score.as_mut().unwrap()
    }

    #[test]
    fn the_default_wins_ties_and_small_promises() {
        assert_eq!(choose(&[scored(0, 1.0), scored(64, 1.0)], 0.05).index, 0);
        assert_eq!(choose(&[scored(0, 1.0), scored(64, 0.96)], 0.05).index, 0);
        assert_eq!(
            choose(&[scored(0, 1.0), scored(64, 0.90), scored(32, 0.8)], 0.05).index,
            2
        );
    }

    #[test]
    fn one_best_is_told_whatever_is_in_its_way() {
        let spilling = |relative_time: f64| {
            let mut candidate = scored(48, relative_time);
            let figures = candidate.figures_mut().unwrap();
            figures.resources.spill_store_bytes = 64;
            candidate
        };
        let told = |others: &[Candidate]| {
            let all = [&[scored(0, 1.0)], others].concat();
            let choice = choose(&all, 0.05);
            assert_eq!(choice.index, 0);
            choice.reason
        };
        // The second one falls short by less, but the first one promises more.
        assert_eq!(
            told(&[spilling(0.9), scored(64, 0.96)]),
            "the best prediction saves 10.0%; such a change must promise 15%"
        );
        assert_eq!(
            told(&[scored(64, 0.96)]),
            "the best prediction saves 4.0%; such a change must promise 5%"
        );
        let waits: Recipe = "schedule".parse().unwrap();
        let mut waiting = scored(0, 0.8);
        waiting.recipe = waits;
        assert!(told(&[waiting]).contains("saves 20.0%, but: waits for `tune`"));
        let none = "no candidate is predicted to be faster";
        assert_eq!(told(&[scored(64, 1.0), scored(56, 0.9999)]), none);
    }

    #[test]
    fn fewer_warps_must_promise_more_unless_the_launch_has_no_more() {
        let with = |warps: u32, grid: u32, relative_time: f64| {
            let mut candidate = scored(if warps == 32 { 0 } else { 64 }, relative_time);
            let figures = candidate.figures_mut().unwrap();
            figures.residency = Some(Residency {
                blocks: warps / 4,
                warps,
                percent: 0.0,
                limiters: Vec::new(),
            });
            figures.score.as_mut().unwrap().active_warps = warps.min(grid);
            candidate
        };
        let chosen =
            |warps, grid, time| choose(&[with(32, grid, 1.0), with(warps, grid, time)], 0.05).index;
        assert_eq!(chosen(48, 1000, 0.9), 1);
        assert_eq!(chosen(16, 1000, 0.8), 0);
        assert_eq!(chosen(16, 1000, 0.65), 1);
        assert_eq!(chosen(16, 12, 0.9), 1);
        assert_eq!(chosen(16, 13, 0.9), 0);
    }

    #[test]
    fn fewer_warps_that_spare_spills_must_promise_less() {
        let chosen = |left: u32, relative_time: f64| {
            let with = |warps: u32, bytes: u32, relative_time: f64| {
                let mut candidate = scored(if warps == 32 { 0 } else { 64 }, relative_time);
                let figures = candidate.figures_mut().unwrap();
                figures.resources.spill_load_bytes = bytes;
                figures.residency = Some(Residency {
                    blocks: warps / 4,
                    warps,
                    percent: 0.0,
                    limiters: Vec::new(),
                });
                figures.score.as_mut().unwrap().active_warps = warps;
                candidate
            };
            choose(&[with(32, 100, 1.0), with(16, left, relative_time)], 0.05).index
        };
        assert_eq!(chosen(0, 0.84), 1);
        assert_eq!(chosen(0, 0.86), 0);
        assert_eq!(chosen(51, 0.84), 0);
        assert_eq!(chosen(51, 0.69), 1);
    }

    #[test]
    fn a_trade_must_promise_more() {
        let with = |is_trade: bool, relative_time: f64| {
            let mut candidate = scored(64, relative_time);
            score_of(&mut candidate).is_trade = is_trade;
            choose(&[scored(0, 1.0), candidate], 0.05).index
        };
        assert_eq!(with(false, 0.9), 1);
        assert_eq!(with(true, 0.9), 0);
        assert_eq!(with(true, 0.8), 1);
    }

    #[test]
    fn what_our_passes_make_of_a_kernel_that_spills_is_for_measurements_alone() {
        let chosen = |recipe: &str, spilled: u32| {
            let mut default = scored(0, 1.0);
            default.figures_mut().unwrap().resources.spill_load_bytes = spilled;
            let mut rewritten = scored(64, 0.5);
            rewritten.figures_mut().unwrap().resources.spill_load_bytes = 0;
            rewritten.recipe = recipe.parse().unwrap();
            choose(&[default, rewritten], 0.05).index
        };
        let reduced = "reduce(64); maxnreg(64)";
        assert_eq!(chosen(reduced, 0), 1);
        assert_eq!(chosen(reduced, 4), 0);
        // The same code with fewer blocks is none of theirs.
        assert_eq!(chosen("throttle(2)", 4), 1);
    }

    #[test]
    fn what_loops_store_is_kept_unless_one_may_run_twice() {
        let chosen = |recipe: &str, margin: f64| {
            let mut kept = scored(64, 0.9);
            kept.recipe = recipe.parse().unwrap();
            choose(&[scored(0, 1.0), kept], margin).index
        };
        assert_eq!(chosen("promote(arrays=apart)", 0.05), 1);
        assert_eq!(chosen("promote(arrays=apart)", 0.2), 0);
        for trade in ["promote", "promote(arrays=apart); unroll(4)"] {
            assert_eq!(chosen(trade, 0.05), 0, "{trade}");
        }
    }

    #[test]
    fn a_version_for_the_launch_goes_by_its_own_margin() {
        let chosen = |recipe: &str, time: f64| {
            let mut version = scored(64, time);
            version.recipe = recipe.parse().unwrap();
            choose(&[scored(0, 1.0), version], 0.05).index
        };
        let version = "specialize(block=32x1x1,guarded=yes)";
        assert_eq!(chosen(version, 0.93), 1);
        assert_eq!(chosen(version, 0.945), 0);
        for trade in [
            "specialize(block=32x1x1)",
            "specialize(block=32x1x1,guarded=yes); maxnreg(64)",
        ] {
            assert_eq!(chosen(trade, 0.9), 0, "{trade}");
        }
    }

    #[test]
    fn what_is_not_safe_stays_out() {
        let judged = |is_safe: bool| {
            let mut candidate = scored(64, 0.5);
            score_of(&mut candidate).judgement = Some(Judgement {
                expected: 0.5,
                risk: if is_safe { 0.01 } else { 0.5 },
                is_known: true,
                is_safe,
            });
            candidate
        };
        assert_eq!(choose(&[scored(0, 1.0), judged(true)], 0.05).index, 1);
        assert_eq!(choose(&[scored(0, 1.0), judged(false)], 0.05).index, 0);
    }

    #[test]
    fn more_registers_for_what_spills_go_by_their_promise_where_nothing_like_it_was_measured() {
        let chosen = |of_default: u32, left: u32, relative_time: f64, is_known: bool| {
            let spilling = |registers: u32, bytes: u32, relative_time: f64| {
                let mut candidate = scored(registers, relative_time);
                candidate.figures_mut().unwrap().resources.spill_load_bytes = bytes;
                candidate
            };
            let mut candidate = spilling(255, left, relative_time);
            score_of(&mut candidate).judgement = Some(Judgement {
                expected: 0.9,
                risk: 0.5,
                is_known,
                is_safe: false,
            });
            choose(&[spilling(0, of_default, 1.0), candidate], 0.05).index
        };
        assert_eq!(chosen(1000, 0, 0.6, false), 1);
        assert_eq!(chosen(1000, 500, 0.6, false), 1);
        // Too little promised, too little spared, nothing to spare, and measured kernels that speak against it.
        assert_eq!(chosen(1000, 0, 0.86, false), 0);
        assert_eq!(chosen(1000, 501, 0.6, false), 0);
        assert_eq!(chosen(0, 0, 0.6, false), 0);
        assert_eq!(chosen(1000, 0, 0.6, true), 0);
    }

    #[test]
    fn other_orders_are_for_measurements_alone() {
        let mut reordered = scored(0, 0.5);
        reordered.recipe = Recipe::default().with(Schedule::tried(ScheduleBy::Height, 0));
        assert_eq!(choose(&[scored(0, 1.0), reordered.clone()], 0.05).index, 0);
        let measured = |mut candidate: Candidate, time: f64| {
            candidate.figures_mut().unwrap().measured = Some(Measured {
                median_ns: time,
                interval_ns: (0.99 * time, 1.01 * time),
                relative_time: time / 2.0,
            });
            candidate
        };
        let all = [measured(scored(0, 1.0), 2.0), measured(reordered, 1.0)];
        assert_eq!(choose(&all, 0.05).index, 1);
    }

    #[test]
    fn what_can_be_launched_is_chosen_where_the_default_cannot() {
        let spilling = |registers: u32, bytes: u32| {
            let mut candidate = scored(registers, 1.0);
            let figures = candidate.figures_mut().unwrap();
            (figures.score, figures.resources.spill_load_bytes) = (None, bytes);
            candidate
        };
        let too_large = |because: Because| {
            let mut default = spilling(0, 0);
            default.reject(Rejection::new(because, "96 registers"));
            default
        };
        let others = [spilling(64, 256), spilling(32, 1456)];
        let all = [&[too_large(Because::Launch)], &others[..]].concat();
        assert_eq!(choose(&all, 0.05).index, 1);
        assert_eq!(choose(&all[..1], 0.05).index, 0);
        let all = [&[too_large(Because::NotProved)], &others[..]].concat();
        assert_eq!(choose(&all, 0.05).index, 0);
    }

    #[test]
    fn of_what_is_as_fast_the_simple_one_is_kept() {
        let measured = |recipe: &str, ns: f64| {
            let mut candidate = scored(0, 1.0);
            candidate.recipe = recipe.parse().unwrap();
            candidate.figures_mut().unwrap().measured = Some(Measured {
                median_ns: ns,
                interval_ns: (0.99 * ns, 1.01 * ns),
                relative_time: ns / 1000.0,
            });
            candidate
        };
        let chosen = |simple: f64, rewritten: f64| {
            let all = [
                measured("default", 1000.0),
                measured("maxnreg(64)", simple),
                measured("reduce(64); maxnreg(64)", rewritten),
            ];
            choose(&all, 0.05).index
        };
        assert_eq!(chosen(802.0, 800.0), 1);
        assert_eq!(chosen(830.0, 800.0), 2);
        assert_eq!(chosen(800.0, 802.0), 1);
    }

    #[test]
    fn rejected_candidates_are_never_chosen() {
        let mut broken = scored(64, 0.1);
        broken.reject(Rejection::new(Because::Build, "ptxas failed"));
        assert_eq!(choose(&[scored(0, 1.0), broken], 0.05).index, 0);
    }
}
