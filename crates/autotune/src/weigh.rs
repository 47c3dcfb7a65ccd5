//! What winners are worth beside the program's other kernels: what wins alone may lose there.

use std::collections::BTreeMap;
use std::path::Path;

use warpwright_api::Error;
use warpwright_api::trace::{Launched, Trace, notes};
use warpwright_gpu::stats::{estimate, median};
use warpwright_winners::LaunchClass;
use warpwright_winners::lines::Note;

use crate::judge::middle;
use crate::target::{Target, Verdict};

/// A program is as fast as it was if its kernels take no more than this of their time: two runs of it differ by as much.
const SAME: f64 = 1.01;
/// A kernel without a winner may take so much more of its time in another run, and nothing is said by it.
const APART: f64 = 1.1;
/// Launches of kernel and winner each, in turns, that tell them apart.
const ENOUGH_TURNS: usize = 3;
/// A launch that takes longer differs so little from the next that one of each is enough.
const LONG_NS: u64 = 50_000_000;
/// The program runs again, within the budget of a kernel and at most so often, until there are so many of each.
const GOOD_TURNS: usize = 5;
/// See [`GOOD_TURNS`]. A kernel that is launched once is its winner in every other run.
pub const MOST_CONFIRMATIONS: usize = 2 * GOOD_TURNS;

/// Times of winners, and of their kernels, where both were launched in turns.
#[derive(Default)]
pub struct Beside {
    launches: BTreeMap<WinnerKey, [Vec<u64>; 2]>,
    /// Times of whole graphs over the number of the kernel's nodes, in pairs.
    graphs: BTreeMap<WinnerKey, [Vec<u64>; 2]>,
}

impl Beside {
    /// Those of a run, whose notes are in a folder.
    ///
    /// # Errors
    /// [`Error::Unread`], [`Error::Notes`].
    pub fn add(&mut self, work: &Path) -> Result<(), Error> {
        for note in notes(work, "launches")? {
            if let Note::Beside(beside) = note {
                let key = (Some(beside.module), beside.kernel, Some(beside.class));
                let key = (key, beside.guard.to_string());
                let of = match beside.in_graphs {
                    true => &mut self.graphs,
                    false => &mut self.launches,
                };
                let times = of.entry(key).or_default();
                times[0].extend(beside.winner);
                times[1].extend(beside.own);
            }
        }
        Ok(())
    }

    /// Is enough known of all winners, and are all kernels together not slower with them? One that was not met at all will not
    /// be.
    pub fn is_enough(&self, targets: &[Target], before: &Trace, after: &[Trace]) -> bool {
        let ratios = self.ratios(targets);
        self.tells(targets) && together(&won(targets, &ratios), before, after, &ratios) <= SAME
    }

    fn tells(&self, targets: &[Target]) -> bool {
        let mut winners = targets.iter().filter(|t| t.is_won());
        winners.all(|target| {
            let keys = [winner_key(target), wide_key(target)];
            let known = keys.into_iter().flatten();
            let known = known.flat_map(|key| [self.launches.get(&key), self.graphs.get(&key)]);
            let mut known = known.flatten();
            known.all(|times| times.iter().all(|times| times.len() >= GOOD_TURNS))
        })
    }

    /// What the winners take of their kernels' time.
    fn ratios(&self, targets: &[Target]) -> BTreeMap<WinnerKey, f64> {
        self.by_turns(targets, |times| {
            let is_long = times.iter().all(|&ns| ns > LONG_NS);
            times.len() >= if is_long { 1 } else { ENOUGH_TURNS }
        })
    }

    /// The same of however few turns there are.
    fn hints(&self, targets: &[Target]) -> BTreeMap<WinnerKey, f64> {
        self.by_turns(targets, |times| !times.is_empty())
    }

    fn by_turns(
        &self,
        targets: &[Target],
        is_enough: impl Fn(&Vec<u64>) -> bool,
    ) -> BTreeMap<WinnerKey, f64> {
        let of_launches = self.launches.iter();
        let told = of_launches.filter(|(_, times)| times.iter().all(&is_enough));
        let told =
            told.map(|(key, [winner, own])| (key.clone(), middle(winner) / middle(own).max(1.0)));
        let mut all: BTreeMap<WinnerKey, f64> = told.collect();
        for (key, alone) in targets.iter().flat_map(alone) {
            let times = self.graphs.get(&key);
            let times = times.filter(|times| times.iter().all(&is_enough));
            if let Some(ratio) = times.and_then(|times| in_graphs(times, alone)) {
                // In launches of its own and in graphs: the less it gains counts.
                let known = all.entry(key).or_insert(ratio);
                *known = known.max(ratio);
            }
        }
        all
    }
}

/// What a winner takes of its kernel's time by graphs with both in turns, all other nodes being the same: what the graph takes
/// less with it, of what the kernel takes alone. No less than alone, as nobody knows what the kernel takes in there; `None` where the
/// turns do not tell the two apart.
fn in_graphs([winner, own]: &[Vec<u64>; 2], [original_ns, winner_ns]: [f64; 2]) -> Option<f64> {
    let pairs = own.iter().zip(winner);
    let gains: Vec<f64> = pairs
        .map(|(&own, &winner)| own as f64 - winner as f64)
        .collect();
    let gain = estimate([&gains[..]])?;
    let is_told = gain.low > 0.0 || gain.high < 0.0;
    let ratio = 1.0 - gain.median / original_ns.max(1.0);
    is_told.then_some(ratio.max(winner_ns / original_ns.max(1.0)))
}

/// What a target's winners took alone, the original first.
fn alone(target: &Target) -> Vec<(WinnerKey, [f64; 2])> {
    let Verdict::Won {
        name,
        beside,
        original_ns,
        winner_ns,
        ..
    } = &target.verdict
    else {
        return Vec::new();
    };
    let wide = beside.as_ref().map(|(name, ns)| (name, *ns));
    let both = [Some((name, *winner_ns)), wide].into_iter().flatten();
    let of = both.filter_map(|(name, ns)| Some((key_of(target, name)?, [*original_ns, ns])));
    of.collect()
}

/// Judges winners by what they do in the program: each must be faster in it, in turns with its kernel where it is launched
/// often enough, and all kernels together must not be slower. Two runs may differ by much, and so may single launches: where
/// they are all that tells, a winner gains no more than it does alone.
pub fn weigh(targets: &mut [Target], before: &Trace, after: &[Trace], turns: &Beside) {
    let (beside, hints) = (turns.ratios(targets), turns.hints(targets));
    let times = by_launch(after, median);
    // What is for some launches first: the winner for all is met at the others alone.
    let (some, all): (Vec<usize>, Vec<usize>) =
        (0..targets.len()).partition(|&index| targets[index].is_for_some());
    let won_alone: Vec<bool> = targets.iter().map(Target::is_won).collect();
    for index in some.into_iter().chain(all) {
        let parts = parts(targets, index, &won_alone);
        let target = &mut targets[index];
        let (key, wide_key) = (winner_key(target), wide_key(target));
        let (is_for_some, own) = (target.is_for_some(), launch_key(&target.launched));
        let (count, ns) = launches_of(&target.launched);
        let Verdict::Won {
            name,
            beside: wide,
            in_program,
            original_ns,
            winner_ns,
        } = &mut target.verdict
        else {
            continue;
        };
        let of = |all: &BTreeMap<WinnerKey, f64>| all.get(key.as_ref()?).copied();
        let alone = *winner_ns / *original_ns;
        // The one for all launches is met where the other's guard does not hold.
        let wide_alone = wide.as_ref().map_or(1.0, |(_, ns)| ns / *original_ns);
        let wide_ratio = told(wide_key.as_ref(), (&beside, &hints), wide_alone);
        if wide_ratio.is_some_and(|ratio| ratio >= 1.0) {
            *wide = None;
        }
        // A run's launches of all kinds tell nothing of one of them.
        let is_one_kind = !is_for_some && parts == Parts::None;
        let in_runs = || Some(times.get(&own).filter(|_| is_one_kind)? * count / ns.max(1.0));
        let hint = || of(&hints).or_else(in_runs);
        // Where versions for values take all launches, the one for the others is what it is alone.
        let unmet = || (parts == Parts::Won).then_some(alone);
        let ratio = of(&beside).or_else(|| Some(hint().or_else(unmet)?.max(alone)));
        *in_program = ratio;
        let why = match ratio {
            None => "was not launched with the winners in place".to_owned(),
            Some(ratio) if ratio >= 1.0 => format!("takes {ratio:.3} of the time there"),
            Some(_) => continue,
        };
        // It takes all launches then.
        if let (Some((other, ns)), Some(_)) = (wide.take(), wide_ratio) {
            (*name, *winner_ns, *in_program) = (other, ns, wide_ratio);
            continue;
        }
        target.verdict = Verdict::Stays(format!("{name} wins alone, but in the program it {why}"));
    }
    let together = together(&won(targets, &beside), before, after, &beside);
    if together > SAME {
        let why = format!("with the winners all kernels take {together:.3} of the time");
        drop_all(targets, &why);
    }
}

/// What a winner takes of its kernel's time by enough turns, or by few and no less than it does alone; none where it was not met.
fn told(
    key: Option<&WinnerKey>,
    (ratios, hints): (&BTreeMap<WinnerKey, f64>, &BTreeMap<WinnerKey, f64>),
    alone: f64,
) -> Option<f64> {
    let key = key?;
    let hint = || hints.get(key).map(|ratio| ratio.max(alone));
    ratios.get(key).copied().or_else(hint)
}

/// What became of the versions for some launches of a target that is for all of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    /// None was met in the program.
    None,
    /// All that were are faster there.
    Won,
    /// One lost what it had won alone.
    Lost,
}

/// See [`Parts`]; of the targets these had won alone.
fn parts(targets: &[Target], index: usize, alone: &[bool]) -> Parts {
    let key = launch_key(&targets[index].launched);
    let is_part = |t: &Target| t.is_for_some() && launch_key(&t.launched) == key;
    let all = targets.iter().zip(alone);
    let mut met = all.filter(|(t, alone)| **alone && is_part(t)).peekable();
    if targets[index].is_for_some() || met.peek().is_none() {
        return Parts::None;
    }
    match met.all(|(target, _)| target.is_won()) {
        true => Parts::Won,
        false => Parts::Lost,
    }
}

/// What all kernels take of their time before. What took turns was slower there, each with the other's code in the caches:
/// of such a kernel the turns tell what its winner makes of its time. Of the others the best run counts: what winners do to
/// them they do in each.
fn together(
    won: &BTreeMap<LaunchKey, f64>,
    before: &Trace,
    after: &[Trace],
    beside: &BTreeMap<WinnerKey, f64>,
) -> f64 {
    let times = by_launch(after, |times| times.iter().copied().reduce(f64::min));
    let (mut old, mut new) = (0.0, 0.0);
    for launched in &before.launches {
        let key = launch_key(launched);
        let (count, all) = launches_of(launched);
        let winner = won.get(&key).copied();
        let is_told = beside.keys().any(|(of, _)| *of == key);
        let then = match is_told {
            true => Some(all * winner.unwrap_or(1.0)),
            false => times.get(&key).map(|ns| ns * count),
        };
        // The same code in two runs.
        let is_noise = |then: &f64| winner.is_none() && *then <= all * APART;
        let then = then.map(|then| if is_noise(&then) { all } else { then });
        if let Some(then) = then {
            old += all;
            new += then;
        }
    }
    if old > 0.0 { new / old } else { 1.0 }
}

/// Launches with a winner, and what they take of their time in the program, once it is known. Winners for some of them count
/// for their part.
fn won(targets: &[Target], beside: &BTreeMap<WinnerKey, f64>) -> BTreeMap<LaunchKey, f64> {
    let ratio = |target: &Target| {
        let Verdict::Won { in_program, .. } = target.verdict else {
            return None;
        };
        let known = |key: Option<WinnerKey>| beside.get(&key?).copied();
        let ratio = in_program.or_else(|| known(winner_key(target)))?;
        // How many launches are whose is not known.
        Some(known(wide_key(target)).map_or(ratio, |wide| wide.max(ratio)))
    };
    let mut all = BTreeMap::new();
    for target in targets.iter().filter(|t| !t.is_for_some()) {
        let key = launch_key(&target.launched);
        let is_part = |t: &&Target| t.is_for_some() && launch_key(&t.launched) == key;
        let parts = targets.iter().filter(is_part);
        let parts = parts.filter_map(|t| Some((t.launched.gpu_ns as f64, ratio(t)?)));
        let parts: Vec<(f64, f64)> = parts.collect();
        let own = ratio(target);
        if own.is_none() && parts.is_empty() {
            continue;
        }
        let (_, ns) = launches_of(&target.launched);
        let others = (ns - parts.iter().map(|part| part.0).sum::<f64>()).max(0.0);
        let left = parts.iter().map(|(ns, ratio)| ns * ratio).sum::<f64>();
        let left = left + others * own.unwrap_or(1.0);
        all.insert(key, left / ns.max(1.0));
    }
    all
}

type LaunchKey = (Option<String>, String, Option<LaunchClass>);

/// A winner: the launches, and its guard among them.
type WinnerKey = (LaunchKey, String);

fn winner_key(target: &Target) -> Option<WinnerKey> {
    let Verdict::Won { name, .. } = &target.verdict else {
        return None;
    };
    key_of(target, name)
}

/// The same of the one for all launches that is kept beside it.
fn wide_key(target: &Target) -> Option<WinnerKey> {
    let Verdict::Won { beside, .. } = &target.verdict else {
        return None;
    };
    key_of(target, &beside.as_ref()?.0)
}

fn key_of(target: &Target, name: &str) -> Option<WinnerKey> {
    let guard = target.guard(name)?;
    Some((launch_key(&target.launched), guard.to_string()))
}

fn launch_key(l: &Launched) -> LaunchKey {
    (l.module.clone(), l.kernel.clone(), l.class())
}

/// Number of launches, and nanoseconds of all of them.
pub fn launches_of(l: &Launched) -> (f64, f64) {
    ((l.launches + l.in_graphs) as f64, l.gpu_ns as f64)
}

/// Nanoseconds of a launch, of what it took in each run.
fn by_launch(runs: &[Trace], of: impl Fn(&[f64]) -> Option<f64>) -> BTreeMap<LaunchKey, f64> {
    let mut all: BTreeMap<LaunchKey, Vec<f64>> = BTreeMap::new();
    for launched in runs.iter().flat_map(|trace| &trace.launches) {
        let (count, ns) = launches_of(launched);
        // What took turns is timed there.
        if ns > 0.0 {
            let times = all.entry(launch_key(launched)).or_default();
            times.push(ns / count.max(1.0));
        }
    }
    let each = all.into_iter();
    each.filter_map(|(key, times)| Some((key, of(&times)?)))
        .collect()
}

/// No winner counts, for this reason.
pub fn drop_all(targets: &mut [Target], why: &str) {
    for target in targets {
        if target.is_won() {
            target.verdict = Verdict::Stays(why.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::candidates::Proposed;
    use warpwright_launch::Signature;
    use warpwright_winners::Guard;
    use warpwright_winners::lines::Occasion;

    /// A run with so many launches of a kernel, and nanoseconds of all of them.
    fn run(launches: u64, gpu_ns: u64) -> Trace {
        let launch = json!({
            "kernel": "k", "name": "k", "module": "m", "digest": "d", "grid": [4, 1, 1], "block": [32, 1, 1],
            "dynamic_smem": 0, "cluster": null, "cooperative": false, "launches": launches, "in_graphs": 0,
            "gpu_ns": gpu_ns, "share": 1.0, "registers": null, "spill_bytes": null, "static_smem": null,
            "resident": null, "occupancy": null, "tied": null, "hint": ""
        });
        let run = json!({
            "schema": "", "program": [], "date": "", "gpu": null, "processes": 1, "modules_in": null, "modules": [],
            "not_seen": [], "launches": [launch]
        });
        serde_json::from_value(run).unwrap()
    }

    /// A winner that takes 0.8 of the time alone.
    fn target(launched: &Launched, among: Guard) -> Target {
        Target {
            class: launched.class().unwrap(),
            launched: launched.clone(),
            digest: "d".into(),
            proposed: vec![Proposed::of_test("best")],
            searching: None,
            when: Occasion {
                among,
                ..Occasion::default()
            },
            has_bounds: false,
            may_round: false,
            verdict: Verdict::Won {
                name: "best".into(),
                beside: None,
                original_ns: 100.0,
                winner_ns: 80.0,
                in_program: None,
            },
        }
    }

    /// What a winner that takes 0.8 of the time alone takes in a program of launches of 100 ns, by their turns (winner and
    /// original) and another run.
    fn in_program(turns: [&[u64]; 2], after: Trace) -> Option<f64> {
        let before = run(10, 1000);
        let mut targets = [target(&before.launches[0], Guard::always())];
        let key = winner_key(&targets[0]).unwrap();
        let beside = Beside {
            launches: BTreeMap::from([(key, turns.map(<[u64]>::to_vec))]),
            ..Beside::default()
        };
        weigh(&mut targets, &before, &[after], &beside);
        match &targets[0].verdict {
            Verdict::Won { in_program, .. } => *in_program,
            Verdict::Stays(_) => None,
        }
    }

    /// What a winner that takes 80 of 100 ns alone takes by graphs that were launched with it and with its kernel in turns.
    fn by_graphs(turns: [&[u64]; 2], after: Trace) -> Option<f64> {
        let before = run(10, 1000);
        let mut targets = [target(&before.launches[0], Guard::always())];
        let key = winner_key(&targets[0]).unwrap();
        let beside = Beside {
            graphs: BTreeMap::from([(key, turns.map(<[u64]>::to_vec))]),
            ..Beside::default()
        };
        weigh(&mut targets, &before, &[after], &beside);
        match &targets[0].verdict {
            Verdict::Won { in_program, .. } => *in_program,
            Verdict::Stays(_) => None,
        }
    }

    #[test]
    fn winners_in_graphs_are_weighed_by_what_the_graph_takes_less() {
        // Of the kernel's 100 ns, whatever else is in there, in graphs of several sizes.
        let differ = [&[1090, 5090, 1090][..], &[1100, 5100, 1100]];
        assert_eq!(by_graphs(differ, run(10, 2000)), Some(0.9));
        // No more than it gains alone.
        assert_eq!(
            by_graphs([&[1000; 3], &[1100; 3]], run(10, 1000)),
            Some(0.8)
        );
        // Another winner may hide in the run that this one makes slower.
        assert_eq!(by_graphs([&[1101; 3], &[1100; 3]], run(10, 500)), None);
        // Turns that do not tell, or too few of them: two runs do.
        let unclear = [&[1090, 1120, 1090, 1130][..], &[1100; 4]];
        assert_eq!(by_graphs(unclear, run(10, 950)), Some(0.95));
        assert_eq!(by_graphs(unclear, run(10, 1050)), None);
        assert_eq!(by_graphs([&[1090; 2], &[1100; 2]], run(10, 500)), Some(0.9));
        assert_eq!(by_graphs([&[], &[]], run(10, 950)), Some(0.95));
    }

    #[test]
    fn a_winner_of_few_launches_gains_no_more_than_alone() {
        // Enough turns tell, whatever it gains alone.
        assert_eq!(in_program([&[40; 3], &[100; 3]], run(10, 500)), Some(0.4));
        // Fewer count as far as they do not gain more.
        assert_eq!(in_program([&[40; 2], &[100; 2]], run(10, 500)), Some(0.8));
        assert_eq!(in_program([&[90; 2], &[100; 2]], run(10, 500)), Some(0.9));
        assert_eq!(in_program([&[101], &[100]], run(10, 500)), None);
        // So do two runs where there were no turns.
        assert_eq!(in_program([&[], &[]], run(10, 500)), Some(0.8));
        assert_eq!(in_program([&[], &[]], run(10, 950)), Some(0.95));
        // Of long launches one of each tells.
        let [long, longer] = [LONG_NS + 1, 2 * LONG_NS + 2];
        assert_eq!(in_program([&[long], &[longer]], run(10, 500)), Some(0.5));
    }

    /// What winners take in a program, for all launches of 1000 ns together and for those of 600 and 300 of them: by the turns
    /// of each (winner and original).
    fn by_value(turns: [[u64; 2]; 3]) -> ([Option<f64>; 3], f64) {
        let before = run(10, 1000);
        let among = |text| Guard::parse(text, &Signature::default()).unwrap();
        let guards = ["always", "param1:4=1", "param1:4=2"].map(among);
        let mut targets: Vec<Target> = guards
            .into_iter()
            .map(|among| target(&before.launches[0], among))
            .collect();
        (targets[1].launched.gpu_ns, targets[2].launched.gpu_ns) = (600, 300);
        let mut beside = Beside::default();
        for (target, turns) in targets.iter().zip(turns) {
            let times = turns.map(|ns| vec![ns; if ns > 0 { 3 } else { 0 }]);
            beside.launches.insert(winner_key(target).unwrap(), times);
        }
        weigh(&mut targets, &before, &[run(10, 500)], &beside);
        let left = won(&targets, &beside.ratios(&targets));
        let left = left.into_values().next();
        let taken = targets.iter().map(|target| match &target.verdict {
            Verdict::Won { in_program, .. } => *in_program,
            Verdict::Stays(_) => None,
        });
        let taken: Vec<Option<f64>> = taken.collect();
        (taken.try_into().unwrap(), left.unwrap_or(1.0))
    }

    #[test]
    fn winners_for_values_count_for_their_part() {
        let (each, left) = by_value([[90, 100], [50, 100], [20, 100]]);
        assert_eq!(each, [Some(0.9), Some(0.5), Some(0.2)]);
        assert!(
            (left - (0.6 * 0.5 + 0.3 * 0.2 + 0.1 * 0.9)).abs() < 1e-9,
            "{left}"
        );
        // Where they take all launches, the one for the others is what it is alone.
        let (each, _) = by_value([[0, 0], [50, 100], [20, 100]]);
        assert_eq!(each, [Some(0.8), Some(0.5), Some(0.2)]);
        // Not where it would stand in for one that is slower.
        let (each, left) = by_value([[0, 0], [50, 100], [120, 100]]);
        assert_eq!(each, [None, Some(0.5), None]);
        assert!((left - (0.6 * 0.5 + 0.4)).abs() < 1e-9, "{left}");
        // A run tells nothing of some of its launches.
        let (each, _) = by_value([[90, 100], [0, 0], [20, 100]]);
        assert_eq!(each, [Some(0.9), None, Some(0.2)]);
    }

    /// Which winners stay of a guarded one (0.8 of the time alone) and one for all launches (0.9), and what the first takes, by
    /// the turns of each in the program.
    fn of_both(turns: [[u64; 2]; 2]) -> Option<(String, Option<String>, f64)> {
        let before = run(10, 1000);
        let mut targets = [target(&before.launches[0], Guard::always())];
        let mut guarded = Proposed::of_test("guarded");
        guarded.guard = Guard::parse("param1:4=1", &Signature::default()).unwrap();
        targets[0].proposed.push(guarded);
        targets[0].verdict = Verdict::Won {
            name: "guarded".into(),
            beside: Some(("best".into(), 90.0)),
            original_ns: 100.0,
            winner_ns: 80.0,
            in_program: None,
        };
        let mut beside = Beside::default();
        for (name, turns) in ["guarded", "best"].into_iter().zip(turns) {
            let times = turns.map(|ns| vec![ns; if ns > 0 { 3 } else { 0 }]);
            beside
                .launches
                .insert(key_of(&targets[0], name).unwrap(), times);
        }
        assert!(!beside.tells(&targets));
        weigh(&mut targets, &before, &[run(10, 500)], &beside);
        let [target] = targets;
        match target.verdict {
            Verdict::Won {
                name,
                beside,
                in_program,
                ..
            } => Some((name, beside.map(|(name, _)| name), in_program.unwrap())),
            Verdict::Stays(_) => None,
        }
    }

    #[test]
    fn a_guarded_winner_and_the_one_for_all_launches_are_both_weighed() {
        let (guarded, best) = ("guarded".to_owned(), "best".to_owned());
        let both = Some((guarded.clone(), Some(best.clone()), 0.5));
        assert_eq!(of_both([[50, 100], [90, 100]]), both);
        assert_eq!(of_both([[50, 100], [120, 100]]), Some((guarded, None, 0.5)));
        assert_eq!(of_both([[120, 100], [90, 100]]), Some((best, None, 0.9)));
        assert_eq!(of_both([[120, 100], [110, 100]]), None);
    }

    #[test]
    fn a_winner_that_was_never_timed_counts_for_nothing() {
        assert_eq!(in_program([&[], &[]], run(10, 0)), None);
        assert_eq!(in_program([&[40; 5], &[]], run(0, 0)), None);
    }
}
