//! `warpwright tune -- PROGRAM ARGS`: the program runs once to see which kernels are hot (unless a trace says
//! so), once to try candidates for them inside it, while it waits ([`super::search`]), and once with the winners in
//! place: what wins alone may lose beside the program's other kernels. If a candidate takes the program down, it runs again without that one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use warpwright_diag::count as counted;
use warpwright_driver::search::Search;
use warpwright_gpu::stats::{faster, median};
use warpwright_pass::Recipe;
use warpwright_pass::names::is_named;
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::Toolkit;
use warpwright_winners::lines::{
    IN_GRAPH, Likeness, Note, Occasion, Outcome, Planned, Searched, Trial, allowance,
};
use warpwright_winners::{Kept, LaunchClass, Standing, Store, Winner, export, store};

use super::caches;
use super::candidates::{Code, Proposed, Wanted, is_original, make, propose};
use super::db::store as open_store;
use super::document::{Launched, Trace};
use super::limits;
use super::program::{
    End, command, ended, failed_behind, inject, is_cut_off, run as run_program, run_with,
};
use super::search::{Builder, Searching};
use super::shown::{Shown, Written};
use super::stdin;
use super::trace::{look, nothing_was_seen, tell_cut};
use super::verify;
use crate::args::{Cli, TuneArgs};
use crate::commands::{print_json, write_page};
use crate::failure::Failure;
use crate::session;
use crate::signals::asked_to_end;
use crate::threads;
use warpwright::trace::{GpuFacts, notes, read};
use warpwright_report::edit::{Edit, edit_in_place};
use warpwright_report::table::Table;

/// Kernels with less of the GPU time than this are left alone.
const LEAST_SHARE: f64 = 0.01;
/// Launches shorter than this are left alone: what could be gained is lost in the launch.
const SHORTEST_NS: u64 = 3000;
/// At most so many pairs of kernel and launch class.
const MOST_TARGETS: usize = 16;
/// Reasons of one kind that are told.
const MOST_REASONS: usize = 3;
/// The program is started again so often, each time without the candidate that took it down.
const MOST_RUNS: usize = 9;

/// Versions that are tried of a kernel that gets no more while the program runs.
const MOST_AT_ONCE: usize = 16;
/// All searches together may take so many times the budget of one kernel.
const SEARCHES: u32 = 6;
/// A kernel's search may take this part of its budget even where the hotter ones have used up all.
const LEAST_OF_BUDGET: f64 = 0.2;
/// Of what a search has found, so much is tried again when the program had to be started again.
const MOST_AGAIN: usize = 6;

/// A kernel in a launch class, and what is tried for it.
pub struct Target {
    /// Its launches.
    pub launched: Launched,
    /// The digest of its code.
    pub digest: String,
    /// Their class.
    pub class: LaunchClass,
    /// What is tried.
    pub proposed: Vec<Proposed>,
    /// The search for more.
    pub searching: Option<Searching>,
    /// At which launches of a process.
    when: Occasion,
    /// May last bits of results differ (`--fp`)?
    may_round: bool,
    verdict: Verdict,
}

impl Target {
    /// What candidates are wanted for.
    pub fn wanted<'a>(&'a self, code: &'a Code, gpu: &'a Gpu) -> Wanted<'a> {
        let stayed = self.launched.stayed.as_ref();
        Wanted {
            cubin: &code.cubin,
            ptx: code.ptx.as_deref(),
            kernel: &self.launched.kernel,
            digest: &self.digest,
            class: self.class,
            blocks: self.launched.blocks(),
            grid: stayed.filter(|s| s.grid).map(|_| self.launched.grid),
            may_be_shaped: !self.launched.cooperative && self.class.cluster == [0; 3],
            stayed,
            gpu,
            may_round: self.may_round,
        }
    }

    /// A candidate as the plan has it.
    pub fn planned(&self, proposed: &Proposed, file: String) -> Planned {
        Planned {
            kernel: self.digest.clone(),
            class: self.class,
            when: self.when,
            candidate: proposed.name.clone(),
            file,
            symbol: self.launched.kernel.clone(),
            likeness: proposed.likeness,
            guard: proposed.guard.clone(),
            shape: proposed.shape,
        }
    }

    /// More candidates, each code once.
    fn add(&mut self, made: impl Iterator<Item = Proposed>) {
        for mut proposed in made {
            let is_new = self.proposed.iter().all(|p| p.cubin != proposed.cubin);
            if is_new && !is_original(&proposed, &self.digest) {
                proposed.name = format!("search-{}", self.proposed.len());
                self.proposed.push(proposed);
            }
        }
    }

    /// Did anything win?
    fn is_won(&self) -> bool {
        matches!(self.verdict, Verdict::Won { .. })
    }

    /// Is anything tried?
    fn is_tried(&self) -> bool {
        !self.proposed.is_empty() || self.searching.is_some()
    }

    /// What would do in the source what a candidate does, which took so much of the original's time.
    fn edit(&self, name: &str, time: f64) -> Option<Edit> {
        let mut all = self.proposed.iter();
        let recipe = &all.find(|proposed| proposed.name == name)?.recipe;
        edit_in_place(&recipe.parse::<Recipe>().ok()?, &self.launched.name, time)
    }

    /// A candidate as it is shown: its recipe, and of what.
    fn shown(&self, name: &str) -> String {
        let mut all = self.proposed.iter();
        match all.find(|proposed| proposed.name == name) {
            Some(Proposed { recipe, of, .. }) => format!("{recipe} of the {of}"),
            None => name.to_owned(),
        }
    }
}

/// What came of it.
enum Verdict {
    /// A candidate won twice.
    Won {
        name: String,
        /// The best of those that are for all launches of the class, if this one is not.
        beside: Option<(String, f64)>,
        original_ns: f64,
        winner_ns: f64,
        /// Time over the original's among the program's other kernels, once that is known.
        in_program: Option<f64>,
    },
    /// The original stays, for this reason.
    Stays(String),
}

/// Runs the command. What the program printed and how it ended is told whatever else fails.
pub fn run(cli: &Cli, args: &TuneArgs) -> Result<(), Failure> {
    // Before the program runs for nothing.
    limits::check_search()?;
    let store = open_store(args.db.as_ref())?;
    store.check_writable()?;
    let folder = super::work::folder()?;
    let mut last = see(args, folder.path())?;
    let tuned = tune(cli, args, &store, folder.path(), &mut last);
    let written = last.shown.come();
    let written = written.map_err(|e| Failure::input(format!("standard output: {e}")));
    ended(last.end, written.and(tuned))
}

/// All runs but the first; `last` becomes the one that counts.
fn tune(
    cli: &Cli,
    args: &TuneArgs,
    store: &Store,
    folder: &Path,
    last: &mut Seen,
) -> Result<(), Failure> {
    let Some(facts) = last.trace.gpu.clone() else {
        nothing_was_seen(&last.modules);
        return last.show(args);
    };
    tell_cut(&last.modules);
    if asked_to_end() {
        return Ok(());
    }
    if is_cut_off(last.end) {
        complain!("the program ended as nobody took its output any more: nothing is tried");
        return Ok(());
    }
    if stdin::is_for_one_run() {
        complain!("standard input is a connection that lasts for one run: nothing is tried");
        return last.show(args);
    }
    let gpu = lookup(&format!("sm_{}", facts.sm)).map_err(|e| Failure::input(e.to_string()))?;
    threads::settle_now();
    match verify::verify(cli, store, &last.trace, &last.modules) {
        Ok(verdicts) => verify::tell(&verdicts),
        Err(failure) => drop(failure.report(false)),
    }
    let mut targets = targets(cli, args, last, &gpu)?;
    let tried = targets.iter().filter(|t| t.is_tried()).count();
    if tried > 0 {
        let again = stdin::wanted_again();
        eprintln!("versions are tried for {}{again}", counted(tried, "kernel"));
        let toolkit = session::toolkit(cli).ok();
        let modules = last.modules.clone();
        let tools = (toolkit.as_ref(), &gpu);
        try_all(args, folder, &mut targets, (last, &modules), tools)?;
    }
    last.show(args)?;
    if asked_to_end() {
        drop_all(&mut targets, "a signal asked the program to end");
    }
    let made = |target: &Target| winners_of(target, &facts);
    if targets.iter().any(|target| !made(target).is_empty()) {
        confirm(args, folder, &mut targets, &made, last)?;
    }
    let winners: Vec<Winner> = targets.iter().flat_map(made).collect();
    keep(store, &winners);
    if let Some(path) = &args.keep {
        let measured = (&targets[..], &last.trials[..]);
        super::kept::write(path, measured, &facts, !args.without_names)?;
    }
    let document = document(&targets, &facts.name, &last.trace);
    write_page(args.show.report.as_deref(), &document)?;
    match &args.report_to {
        Some(path) => {
            let text = serde_json::to_string_pretty(&document)
                .map_err(|e| Failure::Internal(format!("a document that is no JSON: {e}")))?;
            crate::input::write_atomically(path, text.as_bytes())?;
        }
        None if args.show.json => print_json(&document)?,
        None => {
            print(&document);
            super::trace::print_not_seen(&last.trace);
        }
    }
    Ok(())
}

/// Puts winners into the store, or aside where that fails by now.
fn keep(store: &Store, winners: &[Winner]) {
    let mut left: Vec<&Winner> = Vec::new();
    for winner in winners {
        match store.keep(winner) {
            Ok(Kept::Written(_)) => {}
            Ok(Kept::Better(path)) => {
                eprintln!("a better winner is there already: `{}`", path.display());
            }
            Err(e) => {
                complain!("{e}");
                left.push(winner);
            }
        }
    }
    if left.is_empty() {
        return;
    }
    let bytes = export::to_bytes(&left);
    let name = format!("warpwright-{}.winners", std::process::id());
    let here = std::env::current_dir().unwrap_or_default();
    let places = [here, std::env::temp_dir()].map(|folder| folder.join(&name));
    let is_written = |path: &&PathBuf| store::write_whole(path, &bytes).is_ok();
    match places.iter().find(is_written) {
        Some(path) => complain!(
            "{} could not go into the store and stand in `{}`: `warpwright db import --trust {}`",
            counted(left.len(), "winner"),
            path.display(),
            path.display()
        ),
        None => complain!("{} could be kept nowhere", counted(left.len(), "winner")),
    }
}

/// What goes into the store for a kernel, if anything won.
fn winners_of(target: &Target, gpu: &GpuFacts) -> Vec<Winner> {
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
    let own = (name, *winner_ns);
    let all = std::iter::once(own).chain(beside.iter().map(|(name, ns)| (name, *ns)));
    let winner = |(name, ns): (&String, f64)| {
        let proposed = target.proposed.iter().find(|p| p.name == *name)?;
        let mut proof = proposed.proof.clone();
        proof.push_str(match proposed.likeness {
            Likeness::Bytes => "",
            Likeness::Rounded(_) => ", within the tolerance of --fp",
            Likeness::Spread(_) => {
                "; sums in no fixed order, within what the original's own runs span"
            }
        });
        Some(Winner {
            kernel: target.digest.clone(),
            gpu: gpu.name.clone(),
            guard: target.class.guard().and(&proposed.guard),
            shape: proposed.shape,
            symbol: target.launched.kernel.clone(),
            recipe: proposed.recipe.clone(),
            proof,
            original_ns: *original_ns as u64,
            winner_ns: ns as u64,
            driver: gpu.driver.to_string(),
            date: warpwright_gpu::utc_now().chars().take(10).collect(),
            standing: Standing::Measured,
            cubin: proposed.cubin.clone(),
        })
    };
    all.filter_map(winner).collect()
}

/// Runs the program with the winners in place until all were met often enough, and drops those that are not faster there.
fn confirm(
    args: &TuneArgs,
    folder: &Path,
    targets: &mut [Target],
    made: &dyn Fn(&Target) -> Vec<Winner>,
    seen: &mut Seen,
) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::input(format!("`{}`: {e}", folder.display()));
    let db = folder.join("confirm-db");
    for winner in targets.iter().flat_map(made) {
        Store::at(&db).put(&winner)?;
    }
    let program = &args.words;
    eprintln!("the program runs with the winners{}", stdin::wanted_again());
    let begun = Instant::now();
    let (mut beside, mut runs) = (Beside::default(), Vec::new());
    for run in 0..MOST_CONFIRMATIONS {
        let work = folder.join(format!("confirm-{run}"));
        fs::create_dir(&work).map_err(failed)?;
        let mut words = command(program)?;
        caches::fresh(&mut words, folder);
        look(&mut words, &work, "trace+with")?;
        stdin::give(&mut words, false)?;
        words.env("WARPWRIGHT_TURNS", run.to_string());
        words.env("WARPWRIGHT_DB", &db);
        let written = seen.shown.give(&mut words)?;
        let end = run_program(words)?;
        if end != seen.end {
            complain!(
                "the program ended with {end} beside its winners, with {} before: nothing is kept",
                seen.end
            );
            drop_all(targets, "the program ends otherwise with the winners");
            return Ok(());
        }
        runs.push(read(&work, program, warpwright_gpu::utc_now())?);
        beside.add(&work)?;
        seen.count(written, end);
        if asked_to_end() {
            drop_all(targets, "a signal asked the program to end");
            return Ok(());
        }
        let taken = begun.elapsed();
        let next = taken / runs.len() as u32 * (runs.len() as u32 + 1);
        let ratios = beside.ratios();
        let is_slower = together(&won(targets, &ratios), &seen.trace, &runs, &ratios) > SAME;
        if beside.tells(targets) && !is_slower || next.as_secs_f64() > args.budget {
            break;
        }
    }
    weigh(targets, &seen.trace, &runs, &beside);
    Ok(())
}

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
const MOST_CONFIRMATIONS: usize = 2 * GOOD_TURNS;

/// Times of winners, and of their kernels, where both were launched in turns.
#[derive(Default)]
struct Beside(BTreeMap<LaunchKey, [Vec<u64>; 2]>);

impl Beside {
    /// Those of a run.
    fn add(&mut self, work: &Path) -> Result<(), Failure> {
        for note in notes(work, "launches")? {
            if let Note::Beside(beside) = note {
                let key = (Some(beside.module), beside.kernel, Some(beside.class));
                let times = self.0.entry(key).or_default();
                times[0].extend(beside.winner);
                times[1].extend(beside.own);
            }
        }
        Ok(())
    }

    /// Is there enough of all winners? One that was not met at all will not be.
    fn tells(&self, targets: &[Target]) -> bool {
        let mut winners = targets.iter().filter(|t| t.is_won());
        winners.all(|target| {
            let times = self.0.get(&launch_key(&target.launched));
            times.is_none_or(|times| times.iter().all(|times| times.len() >= GOOD_TURNS))
        })
    }

    /// What the winners take of their kernels' time.
    fn ratios(&self) -> BTreeMap<LaunchKey, f64> {
        self.by_turns(|times| {
            let is_long = times.iter().all(|&ns| ns > LONG_NS);
            times.len() >= if is_long { 1 } else { ENOUGH_TURNS }
        })
    }

    /// The same of however few turns there are.
    fn hints(&self) -> BTreeMap<LaunchKey, f64> {
        self.by_turns(|times| !times.is_empty())
    }

    fn by_turns(&self, is_enough: impl Fn(&Vec<u64>) -> bool) -> BTreeMap<LaunchKey, f64> {
        let all = self.0.iter();
        let told = all.filter(|(_, times)| times.iter().all(&is_enough));
        told.map(|(key, [winner, own])| (key.clone(), middle(winner) / middle(own).max(1.0)))
            .collect()
    }
}

/// Judges winners by what they do in the program: each must be faster in it, in turns with its kernel where it is launched
/// often enough, and all kernels together must not be slower. Two runs may differ by much, and so may single launches: where
/// they are all that tells, a winner gains no more than it does alone.
fn weigh(targets: &mut [Target], before: &Trace, after: &[Trace], turns: &Beside) {
    let (beside, hints) = (turns.ratios(), turns.hints());
    let times = by_launch(after, median);
    for target in targets.iter_mut() {
        let Verdict::Won {
            name,
            in_program,
            original_ns,
            winner_ns,
            ..
        } = &mut target.verdict
        else {
            continue;
        };
        let (count, all) = launches_of(&target.launched);
        let key = launch_key(&target.launched);
        let in_runs = || Some(times.get(&key)? * count / all.max(1.0));
        let hint = || hints.get(&key).copied().or_else(in_runs);
        let alone = *winner_ns / *original_ns;
        let ratio = beside.get(&key).copied();
        let ratio = ratio.or_else(|| Some(hint()?.max(alone)));
        *in_program = ratio;
        let why = match ratio {
            None => "was not launched with the winners in place".to_owned(),
            Some(ratio) if ratio >= 1.0 => format!("takes {ratio:.3} of the time there"),
            Some(_) => continue,
        };
        target.verdict = Verdict::Stays(format!("{name} wins alone, but in the program it {why}"));
    }
    let together = together(&won(targets, &beside), before, after, &beside);
    if together > SAME {
        let why = format!("with the winners all kernels take {together:.3} of the time");
        drop_all(targets, &why);
    }
}

/// What all kernels take of their time before. What took turns was slower there, each with the other's code in the caches:
/// of such a kernel the turns tell what its winner makes of its time. Of the others the best run counts: what winners do to
/// them they do in each.
fn together(
    won: &BTreeMap<LaunchKey, f64>,
    before: &Trace,
    after: &[Trace],
    beside: &BTreeMap<LaunchKey, f64>,
) -> f64 {
    let times = by_launch(after, |times| times.iter().copied().reduce(f64::min));
    let (mut old, mut new) = (0.0, 0.0);
    for launched in &before.launches {
        let key = launch_key(launched);
        let (count, all) = launches_of(launched);
        let winner = won.get(&key).copied();
        let then = match beside.contains_key(&key) {
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

/// Targets with a winner, and what that takes of its time in the program, once it is known.
fn won(targets: &[Target], beside: &BTreeMap<LaunchKey, f64>) -> BTreeMap<LaunchKey, f64> {
    let ratio = |target: &Target| {
        let Verdict::Won { in_program, .. } = target.verdict else {
            return None;
        };
        let key = launch_key(&target.launched);
        let ratio = in_program.or_else(|| beside.get(&key).copied())?;
        Some((key, ratio))
    };
    targets.iter().filter_map(ratio).collect()
}

type LaunchKey = (Option<String>, String, Option<LaunchClass>);

fn launch_key(l: &Launched) -> LaunchKey {
    (l.module.clone(), l.kernel.clone(), l.class())
}

/// Number of launches, and nanoseconds of all of them.
fn launches_of(l: &Launched) -> (f64, f64) {
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

fn drop_all(targets: &mut [Target], why: &str) {
    for target in targets {
        if target.is_won() {
            target.verdict = Verdict::Stays(why.to_owned());
        }
    }
}

/// One run of the program.
struct Seen {
    trace: Trace,
    /// Folder with the modules.
    modules: PathBuf,
    shown: Shown,
    end: End,
    /// What the trials said.
    trials: Vec<Note>,
}

impl Seen {
    /// A run that wrote this counts.
    fn count(&mut self, written: Option<Written>, end: End) {
        if let Some(written) = written {
            self.shown = Shown::Kept(written);
            self.end = end;
        }
    }

    /// Runs the program as it is if no run counts.
    fn show(&mut self, args: &TuneArgs) -> Result<(), Failure> {
        if matches!(self.shown, Shown::No) && !asked_to_end() {
            let mut words = command(&args.words)?;
            stdin::give(&mut words, true)?;
            eprintln!("the program runs as it is{}", stdin::wanted_again());
            self.end = run_program(words)?;
            self.shown = Shown::Yes;
        }
        Ok(())
    }
}

/// The trace that was named, or a run of the program.
fn see(args: &TuneArgs, folder: &Path) -> Result<Seen, Failure> {
    let program: &[OsString] = &args.words;
    if let Some(path) = &args.kernel.trace {
        let trace = super::document::read(path)?;
        let modules = trace.modules_in.clone().map(PathBuf::from).ok_or_else(|| {
            Failure::input(format!("`{}` was made without its modules", path.display()))
        })?;
        return Ok(Seen {
            trace,
            modules,
            shown: Shown::No,
            end: End::Code(0),
            trials: Vec::new(),
        });
    }
    let modules = folder.join("seen");
    let failed = |e: std::io::Error| Failure::input(format!("`{}`: {e}", folder.display()));
    fs::create_dir(&modules).map_err(failed)?;
    let mut words = command(program)?;
    caches::fresh(&mut words, folder);
    look(&mut words, &modules, "trace")?;
    stdin::give(&mut words, true)?;
    eprintln!("the program runs as it is");
    let end = run_program(words)?;
    super::work::is_there(&modules).map_err(|why| failed_behind(end, why))?;
    caches::find_ptx(&modules);
    let trace = read(&modules, program, warpwright_gpu::utc_now());
    Ok(Seen {
        trace: trace.map_err(|why| failed_behind(end, why.into()))?,
        modules,
        shown: Shown::Yes,
        end,
        trials: Vec::new(),
    })
}

/// The hot kernels with their candidates, or why there are none.
fn targets(cli: &Cli, args: &TuneArgs, seen: &Seen, gpu: &Gpu) -> Result<Vec<Target>, Failure> {
    let toolkit = session::toolkit(cli).ok();
    let mut targets = Vec::new();
    let budget = Duration::from_secs_f64(args.budget);
    let mut left = budget * SEARCHES;
    let named = &args.kernel.kernels;
    let wanted =
        |l: &&Launched| named.is_empty() || named.iter().any(|name| is_named(name, &l.kernel));
    let hot = seen
        .trace
        .launches
        .iter()
        .filter(|l| l.share >= LEAST_SHARE)
        .filter(wanted);
    for launched in hot.take(MOST_TARGETS) {
        let Some(class) = launched.class() else {
            continue;
        };
        // Without one the module was not seen, and the kernel is tied.
        let digest = launched.digest.clone().unwrap_or_default();
        let each = launched.gpu_ns / (launched.launches + launched.in_graphs).max(1);
        let refused = match &launched.tied {
            Some(why) => Some(why.clone()),
            None if digest.is_empty() => Some("its code is not known".into()),
            None if each < SHORTEST_NS => Some(format!("its launches take {each} ns")),
            None => None,
        };
        let mut target = Target {
            launched: launched.clone(),
            digest,
            class,
            proposed: Vec::new(),
            searching: None,
            when: occasion(launched, seen.trace.processes),
            may_round: args.stencil.fp.is_some(),
            verdict: Verdict::Stays("it was not launched again".into()),
        };
        match refused {
            Some(why) => target.verdict = Verdict::Stays(why),
            None => {
                let code = Code::read(&seen.modules, launched)?;
                let start = propose(cli, &target.wanted(&code, gpu), toolkit.as_ref())?;
                let own = Duration::from_nanos(each).as_secs_f64();
                let allowed = Duration::from_secs_f64(allowance(args.budget, own));
                let most = left.max(budget.mul_f64(LEAST_OF_BUDGET)).min(allowed);
                left = left.saturating_sub(allowed);
                let mut search = Search::new(start.axes);
                target.proposed = start.proposed;
                if start.is_searched {
                    let searching = Searching::new(search, most, &target.proposed);
                    target.searching = Some(searching);
                } else if let Some(toolkit) = &toolkit {
                    // All that its module can get is there when that is loaded.
                    let points = search.next(MOST_AT_ONCE);
                    let recipes: Vec<_> = points.iter().map(|p| search.recipe(p)).collect();
                    // PTX that ptxas refuses has no axes.
                    if !recipes.is_empty() {
                        let made = make(&target.wanted(&code, gpu), toolkit, recipes)?;
                        target.add(made.into_iter().flatten());
                    }
                }
                if !target.is_tried() {
                    target.verdict = Verdict::Stays("there is no candidate".to_owned());
                }
            }
        }
        targets.push(target);
    }
    Ok(targets)
}

/// When candidates for a kernel are tried: a third and two thirds into the launches of a process. Nodes of graphs are where
/// nothing else is; what one of them takes is not known.
fn occasion(launched: &Launched, processes: u32) -> Occasion {
    let in_graphs = launched.launches == 0;
    let all = match in_graphs {
        true => launched.in_graphs,
        false => launched.launches,
    };
    let launches = (all / u64::from(processes.max(1))).max(1);
    let (count, ns) = launches_of(launched);
    Occasion {
        at: [launches / 3, launches * 2 / 3].map(|at| at.min(launches - 1)),
        own_ns: if in_graphs {
            0
        } else {
            (ns / count.max(1.0)) as u64
        },
        in_graphs,
    }
}

/// Runs the program with the candidates until it ends by itself, and judges.
fn try_all(
    args: &TuneArgs,
    folder: &Path,
    targets: &mut [Target],
    (seen, modules): (&mut Seen, &Path),
    tools: (Option<&Toolkit>, &Gpu),
) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::input(format!("`{}`: {e}", folder.display()));
    let mut crashed: Vec<(String, String)> = Vec::new();
    let mut ranked: Vec<BTreeMap<String, f64>> = Vec::new();
    for round in 0..MOST_RUNS {
        let work = folder.join(format!("try-{round}"));
        fs::create_dir(&work).map_err(failed)?;
        let mut plan = String::new();
        for (number, target) in targets.iter_mut().enumerate() {
            let in_graph = (target.digest.clone(), IN_GRAPH.to_owned());
            if crashed.contains(&in_graph) {
                continue;
            }
            let before = ranked.get(number);
            for (index, proposed) in target.proposed.iter().enumerate() {
                let name = &proposed.name;
                let is_out = crashed.contains(&(target.digest.clone(), name.clone()));
                if is_out || before.is_some_and(|ratios| !is_of_the_best(name, ratios)) {
                    continue;
                }
                let file = format!("{number}-{index}.cubin");
                fs::write(work.join(&file), &proposed.cubin).map_err(failed)?;
                plan.push_str(&target.planned(proposed, file).line());
            }
            if let Some(searching) = &mut target.searching {
                searching.begin_again();
                let searched = Searched {
                    kernel: target.digest.clone(),
                    class: target.class,
                    when: target.when,
                    symbol: target.launched.kernel.clone(),
                };
                plan.push_str(&searched.line());
            }
        }
        fs::write(work.join("plan"), plan).map_err(failed)?;
        let mut program = command(&args.words)?;
        caches::fresh(&mut program, folder);
        inject(&mut program, "try")?;
        stdin::give(&mut program, false)?;
        program.env("WARPWRIGHT_DIR", &work);
        program.env("WARPWRIGHT_BUILDER", std::process::id().to_string());
        program.env("WARPWRIGHT_BUDGET", args.budget.to_string());
        if std::env::var_os("WARPWRIGHT_LOG").is_none() {
            program.env("WARPWRIGHT_LOG", work.join("log"));
        }
        let written = seen.shown.give(&mut program)?;
        let mut builder = Builder::new(tools, &work, modules);
        let end = run_with(program, || builder.answer(targets))?;
        if asked_to_end() {
            seen.count(written, end);
            return Ok(());
        }
        let culprits = culprits(&work);
        if end != seen.end && !culprits.is_empty() {
            for (digest, name) in &culprits {
                let of = name_of(targets, digest);
                match &**name == IN_GRAPH {
                    true => eprintln!(
                        "{of} cannot run outside of its graph; the program starts again without trying it"
                    ),
                    false => eprintln!(
                        "candidate {name} of {of} took the program down; it starts again without"
                    ),
                }
            }
            crashed.extend(culprits);
            let notes = notes(&work, "trials")?;
            ranked = targets.iter().map(|t| ratios(t, &notes, 1)).collect();
            continue;
        }
        if end != seen.end {
            // Nothing that such a run found counts.
            complain!(
                "the program ended with {end} in the trial, with {} before: nothing is kept",
                seen.end
            );
            return Ok(());
        }
        seen.trials = notes(&work, "trials")?;
        judge(targets, &seen.trials, &crashed);
        seen.count(written, end);
        return Ok(());
    }
    complain!("too many candidates took the program down: nothing is kept");
    Ok(())
}

/// Is it among the best of what was timed before the program had to be started again, or was it not timed?
fn is_of_the_best(name: &str, ratios: &BTreeMap<String, f64>) -> bool {
    let own = ratios.get(name);
    own.is_none_or(|own| ratios.values().filter(|ratio| *ratio < own).count() < MOST_AGAIN)
}

fn name_of<'a>(targets: &'a [Target], digest: &str) -> &'a str {
    let found = targets.iter().find(|t| t.digest == digest);
    found.map_or("?", |t| &t.launched.name)
}

/// What was running, or being loaded, when a process ended: kernels and candidates.
fn culprits(work: &Path) -> Vec<(String, String)> {
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
        let candidates = lines.filter(|(_, candidate)| *candidate != "original");
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
    trials
        .filter(|t| t.kernel == target.digest && t.class == target.class)
        .collect()
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
    Some([own, of("original", Some(round))?.0])
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

/// Is anything said of a candidate?
pub fn is_told(target: &Target, notes: &[Note], name: &str) -> bool {
    trials(target, notes).iter().any(|t| t.candidate == name)
}

fn judge(targets: &mut [Target], notes: &[Note], crashed: &[(String, String)]) {
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

fn middle(times: &[u64]) -> f64 {
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

#[derive(Serialize)]
struct Row {
    kernel: String,
    name: String,
    digest: String,
    class: String,
    share: f64,
    candidates: usize,
    original_ns: Option<f64>,
    winner_ns: Option<f64>,
    /// Time over the original's among the program's other kernels.
    in_program: Option<f64>,
    winner: Option<String>,
    stays: Option<String>,
    /// What would do it in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    edit: Option<Edit>,
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    gpu: String,
    program: Vec<String>,
    date: String,
    kernels: Vec<Row>,
}

fn document(targets: &[Target], gpu: &str, trace: &Trace) -> Document {
    let rows = targets.iter().map(|target| {
        let mut row = Row {
            kernel: target.launched.kernel.clone(),
            name: target.launched.name.clone(),
            digest: target.digest.clone(),
            class: target.class.to_string(),
            share: target.launched.share,
            candidates: target.proposed.len(),
            original_ns: None,
            winner_ns: None,
            in_program: None,
            winner: None,
            stays: None,
            edit: None,
        };
        match &target.verdict {
            Verdict::Won {
                name,
                original_ns,
                winner_ns,
                in_program,
                ..
            } => {
                row.in_program = *in_program;
                row.winner = Some(target.shown(name));
                row.edit = in_program.and_then(|time| target.edit(name, time));
                row.original_ns = Some(*original_ns);
                row.winner_ns = Some(*winner_ns);
            }
            Verdict::Stays(why) => row.stays = Some(why.clone()),
        }
        row
    });
    Document {
        schema: "warpwright.tune-in-place/1",
        gpu: gpu.to_owned(),
        program: trace.program.clone(),
        date: warpwright_gpu::utc_now(),
        kernels: rows.collect(),
    }
}

/// The table goes to standard error: standard output is the program's.
fn print(document: &Document) {
    let mut table = Table::new(&["share", "µs", "was", "faster", "what", "kernel"]);
    for row in &document.kernels {
        let us = |ns: Option<f64>| ns.map_or("–".to_owned(), |ns| format!("{:.1}", ns * 1e-3));
        let faster = row
            .original_ns
            .zip(row.winner_ns)
            .map(|(a, b)| a / b.max(1.0));
        let what = row.winner.as_ref().or(row.stays.as_ref());
        table.row(vec![
            format!("{:.1}%", row.share * 100.0),
            us(row.winner_ns),
            us(row.original_ns),
            faster.map_or("–".to_owned(), |f| format!("{f:.3}×")),
            what.cloned().unwrap_or_default(),
            super::trace::shortened(&row.name),
        ]);
    }
    eprint!("{}", table.render(0));
    for row in &document.kernels {
        if let Some(edit) = &row.edit {
            eprintln!(
                "in the source: {}: {}",
                super::trace::shortened(&row.name),
                edit.in_words()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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

    /// What a winner that takes 0.8 of the time alone takes in a program of launches of 100 ns, by their turns (winner and
    /// original) and another run.
    fn in_program(turns: [&[u64]; 2], after: Trace) -> Option<f64> {
        let before = run(10, 1000);
        let launched = before.launches[0].clone();
        let key = launch_key(&launched);
        let mut targets = [Target {
            class: launched.class().unwrap(),
            launched,
            digest: "d".into(),
            proposed: Vec::new(),
            searching: None,
            when: Occasion::default(),
            may_round: false,
            verdict: Verdict::Won {
                name: "best".into(),
                beside: None,
                original_ns: 100.0,
                winner_ns: 80.0,
                in_program: None,
            },
        }];
        let beside = Beside(BTreeMap::from([(key, turns.map(<[u64]>::to_vec))]));
        weigh(&mut targets, &before, &[after], &beside);
        match &targets[0].verdict {
            Verdict::Won { in_program, .. } => *in_program,
            Verdict::Stays(_) => None,
        }
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

    #[test]
    fn a_winner_that_was_never_timed_counts_for_nothing() {
        assert_eq!(in_program([&[], &[]], run(10, 0)), None);
        assert_eq!(in_program([&[40; 5], &[]], run(0, 0)), None);
    }
}
