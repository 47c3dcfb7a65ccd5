//! What the trials of a run say of candidates: the times of each beside the original's, turn by turn, in two sets.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use warpwright_diag::count as counted;
use warpwright_gpu::stats::{faster, median};
use warpwright_winners::lines::{IN_GRAPH, Note, ORIGINAL, Outcome, Trial};

use crate::target::{Target, Verdict};

/// Reasons of one kind that are told.
const MOST_REASONS: usize = 3;
/// Of what a search has found, so much is tried again when the program had to be started again.
const MOST_AGAIN: usize = 6;

/// Is it among the best of what was timed before the program had to be started again, or was it not timed?
pub fn is_of_the_best(name: &str, ratios: &BTreeMap<String, f64>) -> bool {
    let own = ratios.get(name);
    own.is_none_or(|own| ratios.values().filter(|ratio| *ratio < own).count() < MOST_AGAIN)
}

/// The name of a kernel by its digest.
pub fn name_of<'a>(targets: &'a [Target], digest: &str) -> &'a str {
    let found = targets.iter().find(|t| t.digest == digest);
    found.map_or("?", |t| &t.launched.name)
}

/// What was running, or being loaded, when a process ended: kernels and candidates.
pub fn culprits(work: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(work).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    let marks = paths.iter().filter(|path| {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
        name.is_some_and(|n| n.starts_with("in-flight-"))
    });
    let mut all = marks.map(|path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let candidates = lines.filter(|(_, candidate)| *candidate != ORIGINAL);
        let owned = candidates.map(|(kernel, name)| (kernel.to_owned(), name.to_owned()));
        owned.collect::<Vec<_>>()
    });
    all.find(|found| !found.is_empty()).unwrap_or_default()
}

/// The trials of a target among notes.
pub fn trials<'a>(target: &Target, notes: &'a [Note]) -> Vec<&'a Trial> {
    let trials = notes.iter().filter_map(|note| match note {
        Note::Trial(trial) => Some(trial),
        _ => None,
    });
    let is_own = |t: &&Trial| {
        let is_of = t.kernel == target.digest && t.class == target.class;
        is_of && t.among == target.when.among
    };
    trials.filter(is_own).collect()
}

/// The times of a candidate in a set, and the original's beside them.
fn times<'a>(trials: &[&'a Trial], name: &str, set: u32) -> Option<[&'a [u64]; 2]> {
    let of = |name: &str, round: Option<u32>| {
        let mut own = trials.iter().rev().filter(|t| {
            t.set == set && t.candidate == name && round.is_none_or(|round| round == t.round)
        });
        own.find_map(|t| match &t.outcome {
            Outcome::Same(times) => Some((&times[..], t.round)),
            _ => None,
        })
    };
    let (own, round) = of(name, None)?;
    Some([own, of(ORIGINAL, Some(round))?.0])
}

/// What each candidate took of the original's time in a set.
pub fn ratios(target: &Target, notes: &[Note], set: u32) -> BTreeMap<String, f64> {
    let trials = trials(target, notes);
    let names = target.proposed.iter().map(|proposed| &proposed.name);
    let ratio = |name: &String| {
        let ratios = in_turns(times(&trials, name, set)?);
        Some((name.clone(), median(&ratios)?))
    };
    names.filter_map(ratio).collect()
}

/// Median nanoseconds of each candidate in a set, and of the original beside them.
pub fn nanoseconds(target: &Target, notes: &[Note], set: u32) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for trial in trials(target, notes).iter().filter(|t| t.set == set) {
        if let Outcome::Same(times) = &trial.outcome {
            let own = all.entry(trial.candidate.clone()).or_default();
            own.extend(times);
        }
    }
    all.into_iter()
        .map(|(name, times)| (name, middle(&times)))
        .collect()
}

/// Is anything said of a candidate?
pub fn is_told(target: &Target, notes: &[Note], name: &str) -> bool {
    trials(target, notes).iter().any(|t| t.candidate == name)
}

/// Says of each target what came of its trials. `crashed` are candidates by their kernels' digests.
pub fn judge(targets: &mut [Target], notes: &[Note], crashed: &[(String, String)]) {
    for target in targets.iter_mut().filter(|t| t.is_tried()) {
        let trials = trials(target, notes);
        let first = ratios(target, notes, 1);
        let mut ranked: Vec<(&str, f64)> = first
            .iter()
            .map(|(name, ratio)| (&**name, *ratio))
            .collect();
        ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
        let is_bad = |name: &str| {
            trials.iter().any(|t| {
                t.candidate == name && matches!(t.outcome, Outcome::Differs(_) | Outcome::Failed(_))
            })
        };
        let is_faster = |name: &str, set: u32| {
            let both = times(&trials, name, set).map(|both| both.map(as_numbers));
            both.is_some_and(|[own, original]| faster(&own, &original).is_some())
        };
        let wins = |name: &str| is_faster(name, 1) && is_faster(name, 2) && !is_bad(name);
        let took = |name: &str| times(&trials, name, 2).map(|all| all.map(middle));
        // Surely faster in both sets, and the best by both.
        let second = ratios(target, notes, 2);
        let both = |name: &str| Some(first.get(name)? * second.get(name)?);
        let mut winning: Vec<(&str, f64)> = ranked
            .iter()
            .filter(|(name, _)| wins(name))
            .filter_map(|(name, _)| Some((*name, both(name)?)))
            .collect();
        winning.sort_by(|a, b| a.1.total_cmp(&b.1));
        let best = winning.first().map(|(name, _)| *name);
        target.verdict = match best.and_then(|name| Some((name, took(name)?))) {
            Some((name, [winner_ns, original_ns])) => {
                let is_wide = |name: &str| {
                    let mut all = target.proposed.iter();
                    all.any(|p| p.name == name && p.guard.is_always() && p.shape.is_same())
                };
                let mut beside = winning.iter().map(|(other, _)| *other);
                let beside = beside.find(|other| is_wide(other));
                let beside = beside.filter(|_| !is_wide(name));
                Verdict::Won {
                    name: name.to_owned(),
                    beside: beside.and_then(|other| Some((other.to_owned(), took(other)?[0]))),
                    original_ns,
                    winner_ns,
                    in_program: None,
                }
            }
            None => Verdict::Stays(why(target, notes, &trials, crashed, &ranked)),
        };
    }
}

/// Nanoseconds; none is a nanosecond.
fn as_numbers(times: &[u64]) -> Vec<f64> {
    times.iter().map(|&t| t.max(1) as f64).collect()
}

/// The median, in nanoseconds.
pub fn middle(times: &[u64]) -> f64 {
    median(&as_numbers(times)).unwrap_or(0.0)
}

/// Times over the original's, turn by turn, in order.
fn in_turns([own, original]: [&[u64]; 2]) -> Vec<f64> {
    let pairs = own.iter().zip(original);
    let mut ratios: Vec<f64> = pairs.map(|(&a, &b)| a as f64 / b.max(1) as f64).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

fn why(
    target: &Target,
    notes: &[Note],
    trials: &[&Trial],
    crashed: &[(String, String)],
    ranked: &[(&str, f64)],
) -> String {
    let mut reasons: Vec<String> = Vec::new();
    if let Some((name, ratio)) = ranked.first() {
        reasons.push(format!(
            "best {}: {ratio:.3} of its time, not surely less",
            target.shown(name)
        ));
    }
    for trial in trials {
        match trial.outcome {
            Outcome::Differs(bytes) => {
                let name = target.shown(&trial.candidate);
                reasons.push(format!("{name}: {bytes} bytes differ"))
            }
            Outcome::Failed(code) => {
                let name = target.shown(&trial.candidate);
                reasons.push(format!("{name}: error {code}"))
            }
            Outcome::Same(_) | Outcome::Elsewhere => {}
        }
    }
    if reasons.len() > MOST_REASONS {
        let others = counted(reasons.len() - MOST_REASONS, "other");
        reasons.truncate(MOST_REASONS);
        reasons.push(format!("and {others} of the kind"));
    }
    let of_target = crashed
        .iter()
        .filter(|(digest, _)| *digest == target.digest);
    let took = |name: &String| match &**name == IN_GRAPH {
        true => "it cannot run outside of its graph".to_owned(),
        false => format!("{} took the program down", target.shown(name)),
    };
    reasons.extend(of_target.map(|(_, name)| took(name)));
    let refusals = notes.iter().filter_map(|note| match note {
        Note::Refused(digest, why) if *digest == target.digest => Some(why.clone()),
        _ => None,
    });
    reasons.extend(refusals);
    reasons.dedup();
    match reasons.is_empty() {
        true => "it was not launched again".into(),
        false => reasons.join("; "),
    }
}
