//! Trials: candidates beside the original, on the program's own data, at launches that the plan names.
//!
//! 1. Nothing else runs: other threads wait at the gates of [`crate::memory`], all streams are idle.
//! 2. All device memory that the program has, its modules' variables included, is copied (S). A kernel may write wherever a pointer leads that
//!    it finds in memory; so either everything is saved or there is no trial.
//! 3. The original runs; what differs from S is what it writes. That is copied (O) and put back, and the
//!    original runs again: if it does not write the same bytes, bytes cannot judge candidates.
//! 4. Each candidate runs on S; then all memory must be O where the original wrote and S elsewhere.
//! 5. Original and candidates that agree are timed in turns, each launch on S, and with the caches as the program has them:
//!    as copies leave them or with nothing in them, whichever gives the original the time that it takes there. The device is kept busy
//!    until all of it is queued, so that no time is the host's.
//! 6. At the first of the two launches the command line is asked for more candidates, made of what was found, until it
//!    has none: the program waits. 4. and 5. for these; variables that they share with the module stand in [`crate::mirrors`].
//! 7. S is put back, everything is freed, and the program's launch is made with the original.
//!
//! The name of what runs stands in a file, so that if it takes the program down, the command line knows the
//! culprit and starts again without it. What a kernel writes to memory of the host cannot be seen here; a kernel
//! with a pointer to such memory among its parameters is refused.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use warpwright_launch::{CompiledGuard, Extents, LaunchValues};
use warpwright_winners::LaunchClass;
use warpwright_winners::fit::Place;
use warpwright_winners::lines::{
    IN_GRAPH, Likeness, Note, Numbers, ORIGINAL, Occasion, Outcome, Planned, Searched, Trial,
    allowance, answer_file, ask_file, parse_plan, parse_searches,
};

use crate::abi::{Code, Handle, NOT_READY, SUCCESS, ok};
use crate::driver;
use crate::functions::{
    Kind as Handles, Known, current_context, described, give_settings, identify,
};
use crate::grafts::{Of, Version};
use crate::helpers::Helpers;
use crate::launch::Launch;
use crate::memory::{Closed, Kind, Unclear, has_gates, pass, reachable};
use crate::mirrors::{Brought, Mirror, Owner};
use crate::modules::{is_mapped, load_kernel};
use crate::notes::{folder, note, quietly, say, write};
use crate::params::{Passed, buffer};
use crate::reserve::has_room;
use crate::state::{Mode, fall_asleep, guarded, mode, open_guarded, settings, stand_aside, state};
use crate::whole::Quiet;

/// Memory is compared in pieces of so many bytes; what was written is known by piece.
const PIECE: u64 = 4 << 20;
/// Device memory that stays free.
const SLACK: u64 = 256 << 20;
/// Time for one set of turns, and bounds for the number of turns.
const TIMING: Duration = Duration::from_millis(500);
const TURNS: (u32, u32) = (7, 151);
/// Launches that tell the state of the caches, and those for which it does not matter.
const TASTES: usize = 5;
/// See [`TASTES`].
const LONG: Duration = Duration::from_millis(10);
/// After so many turns what takes more than this of the original's time is left out.
const HOPELESS: (u32, f64) = (4, 1.05);
/// The same where so few turns took the whole time already.
const WORTH_MORE: f64 = 0.995;
/// How long other work is waited for, and what a launch may take beyond ten times the original.
const PATIENCE: Duration = Duration::from_secs(2);
/// A candidate may take so many times the original's time, beside the patience.
const SLOWER: u32 = 10;
/// Launches that take longer are timed by the run that compares their results.
const SLOW: Duration = Duration::from_millis(100);
/// Runs of the original and of the best that must fit into the budget beside it.
const OTHER_RUNS: f64 = 3.0;
/// Launches that a candidate costs, with those of the original beside it.
const LAUNCHES_EACH: f64 = 10.0;
/// Candidates that are timed again at the second launch.
const MOST_AGAIN: usize = 5;
/// Further runs of an original that two runs were not enough for, and the most that it may write.
const SPREAD_RUNS: usize = 6;
/// See [`SPREAD_RUNS`]; bytes.
const WIDEST: u64 = 64 << 20;
/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(120);
/// The code for a launch that does not end, which is none of the driver's.
const HANGS: Code = 9999;

/// Kernels to be tried, by digest and class.
#[derive(Default)]
pub struct Plan {
    /// As it was read: a module may be loaded while a trial holds a target.
    choices: Vec<Choice>,
    targets: BTreeMap<(String, LaunchClass), Targets>,
    by_handle: BTreeMap<(usize, LaunchClass), Targets>,
}

/// What is tried for a kernel in a class: for all its launches, and for some of them by themselves.
type Targets = Vec<Arc<Mutex<Target>>>;

/// A kernel and its candidates.
struct Target {
    kernel: String,
    class: LaunchClass,
    symbol: String,
    /// Holds for the launches that count.
    among: CompiledGuard,
    /// Launches so far.
    count: u64,
    when: Occasion,
    set: u32,
    /// Which turns of that set.
    round: u32,
    /// Are more candidates asked for?
    is_searched: bool,
    candidates: Vec<Candidate>,
}

/// Why a kernel is not tried at a launch.
#[derive(Debug, thiserror::Error)]
enum NoTrial {
    #[error("other threads cannot be held back on this processor")]
    NoGates,
    #[error("the launch is captured into a graph")]
    Captured,
    #[error("the launch has attributes that other code may not have in the same way")]
    Attributes,
    #[error("another thread's launch does not end")]
    OtherLaunch,
    #[error("its stream does not come to rest")]
    Stream,
    #[error("the context does not come to rest")]
    Context,
    #[error("the original fails in the trial (error {0})")]
    Original(Code),
    #[error("it does not write the same bytes twice")]
    Unsteady,
    #[error("it adds numbers in no fixed order, and writes {} MiB", .bytes >> 20)]
    Wide { bytes: u64 },
    #[error("a launch takes {seconds:.1} s, too long for the budget of {budget} s (--budget)")]
    Long { seconds: f64, budget: f64 },
    #[error(
        "a parameter points to memory of the host, or to memory that was not seen being allocated"
    )]
    HostParameter,
    #[error("its parameters are passed in an unknown way")]
    UnknownParameters,
    #[error("{0}")]
    Tied(String),
    #[error("the kernel is not known")]
    UnknownKernel,
    #[error("its parameters are missing")]
    NoParameters,
    #[error("this driver does not describe parameters")]
    Undescribed,
    #[error(transparent)]
    Unclear(#[from] Unclear),
    #[error("variables of its modules cannot be found (`{0}`: error {1})")]
    Variable(String, Code),
    #[error("{} MiB of device memory cannot be saved, {} MiB are free", .total >> 20, .free >> 20)]
    Room { total: u64, free: usize },
    #[error("memory cannot be saved (error {0})")]
    Saving(Code),
    #[error("what it writes cannot be kept (error {0})")]
    Keeping(Code),
}

struct Candidate {
    planned: Planned,
    guard: CompiledGuard,
    /// What is launched, once it is loaded.
    handle: Option<(usize, Handles)>,
    /// Was it made while the program waits? What shares something with its module and was not is in there.
    is_added: bool,
    /// The variables that it brings along.
    brought: Option<Brought>,
    /// The same beside the program's, at this launch.
    mirror: Mirror,
    /// Right and faster so far.
    alive: bool,
    /// Its turns at the first launch, and its time over the original's there.
    found: Option<(u32, f64)>,
}

impl Candidate {
    fn new(planned: Planned) -> Candidate {
        Candidate {
            guard: planned.guard.compile(),
            planned,
            handle: None,
            is_added: false,
            brought: None,
            mirror: Mirror::default(),
            alive: true,
            found: None,
        }
    }

    /// What the launch becomes for it, if it is for such launches.
    fn extents(&self, launch: &Launch, places: &[Place]) -> Option<Extents> {
        let cluster = launch.effective_cluster();
        let holds = holds(&self.guard, launch, places);
        let shape = self.planned.shape;
        let is_bound = launch.cooperative || cluster != [0; 3];
        match holds && (shape.is_same() || !is_bound) {
            true => shape.apply(launch.extents()),
            false => None,
        }
    }
}

/// Does a guard hold for a launch?
fn holds(guard: &CompiledGuard, launch: &Launch, places: &[Place]) -> bool {
    let params = Passed {
        params: launch.params,
        extra: launch.extra,
        places,
    };
    guard.holds(&LaunchValues {
        grid: launch.grid,
        block: launch.block,
        cluster: match launch.effective_cluster() {
            [0, 0, 0] => [1; 3],
            stated => stated,
        },
        dynamic_smem: launch.shared,
        params: &params,
    })
}

impl Plan {
    /// The plan in the folder.
    pub fn read() -> Plan {
        let text = folder().and_then(|folder| fs::read_to_string(folder.join("plan")).ok());
        let mut targets: BTreeMap<_, Targets> = BTreeMap::new();
        let text = text.unwrap_or_default();
        let choices = parse_plan(&text);
        let own = |target: &Arc<Mutex<Target>>, work: &mut dyn FnMut(&mut Target)| {
            work(&mut target.lock().unwrap_or_else(PoisonError::into_inner));
        };
        let mut target = |kernel: &str, class: LaunchClass, when: &Occasion, symbol: &str| {
            let all = targets.entry((kernel.to_owned(), class)).or_default();
            let is_it = |target: &&Arc<Mutex<Target>>| {
                let target = target.lock().unwrap_or_else(PoisonError::into_inner);
                target.when.among == when.among
            };
            if let Some(known) = all.iter().find(is_it) {
                return known.clone();
            }
            let target = Arc::new(Mutex::new(Target {
                kernel: kernel.to_owned(),
                class,
                symbol: symbol.to_owned(),
                among: when.among.compile(),
                count: 0,
                when: when.clone(),
                set: 0,
                round: 0,
                is_searched: false,
                candidates: Vec::new(),
            }));
            all.push(target.clone());
            target
        };
        for Searched {
            kernel,
            class,
            when,
            symbol,
        } in parse_searches(&text)
        {
            let target = target(&kernel, class, &when, &symbol);
            own(&target, &mut |target| target.is_searched = true);
        }
        for planned in &choices {
            let Planned {
                kernel,
                class,
                when,
                symbol,
                ..
            } = planned;
            let target = target(kernel, *class, when, symbol);
            own(&target, &mut |target| {
                target.candidates.push(Candidate::new(planned.clone()));
            });
        }
        Plan {
            choices,
            targets,
            by_handle: BTreeMap::new(),
        }
    }

    /// The candidates for a kernel.
    fn of(&self, digest: &str) -> Vec<Choice> {
        let choices = self.choices.iter().filter(|choice| choice.kernel == digest);
        choices.cloned().collect()
    }

    /// Handles are about to lose their meaning.
    pub fn close(&mut self) {
        self.by_handle.clear();
    }

    /// A handle stands for another kernel.
    pub fn forget(&mut self, handle: usize) {
        self.by_handle.retain(|(other, _), _| *other != handle);
    }
}

/// A candidate as the plan has it.
pub type Choice = Planned;

/// The candidates for a kernel as versions that its module may get.
pub fn versions(kernel: &str, digest: &str) -> Vec<Version> {
    let choices = state().plan.of(digest).into_iter();
    let versions = choices.filter_map(|choice| {
        Some(Version {
            kernel: kernel.to_owned(),
            digest: digest.to_owned(),
            symbol: choice.symbol.clone(),
            of: {
                let cubin = fs::read(folder()?.join(&choice.file)).ok()?;
                Of::Candidate(Box::new(choice), cubin)
            },
        })
    });
    versions.collect()
}

fn targets(launch: &Launch) -> Targets {
    let Some(class) = launch.class() else {
        return Targets::new();
    };
    let key = (launch.function as usize, class);
    if let Some(known) = state().plan.by_handle.get(&key) {
        return known.clone();
    }
    let known = identify(launch.function);
    let mut state = state();
    let found = known
        .as_ref()
        .and_then(Known::digest)
        .and_then(|digest| state.plan.targets.get(&(digest.to_owned(), class)).cloned());
    let found = found.unwrap_or_default();
    state.plan.by_handle.insert(key, found.clone());
    found
}

/// A launch of the program.
pub fn launch(launch: &Launch, call: impl Fn(Handle, &Extents) -> Code) -> Code {
    let due = guarded(|| targets(launch)).unwrap_or_default();
    open_guarded(|| {
        for target in due {
            // Another thread's trial of this kernel is under way: this launch is not it.
            let Ok(mut target) = target.try_lock() else {
                continue;
            };
            if !target.when.in_graphs {
                met(&mut target, launch, &call);
            }
        }
    });
    let _pass = pass();
    call(launch.function, &launch.extents())
}

/// A launch of a target: one of its occasions, perhaps.
fn met(target: &mut Target, launch: &Launch, call: &impl Fn(Handle, &Extents) -> Code) {
    let is_for_all = target.when.among.is_always();
    let places = || guarded(|| places(launch).unwrap_or_default()).unwrap_or_default();
    if !is_for_all && !holds(&target.among, launch, &places()) {
        return;
    }
    let count = target.count;
    target.count += 1;
    let sets = target.when.at.iter().filter(|&&at| at == count).count();
    let _quiet = (sets > 0).then(Quiet::of_handled);
    for _ in 0..sets {
        target.set += 1;
        target.round = 0;
        if let Err(why) = attempt(target, launch, call) {
            note(
                "trials",
                &[Note::Refused(target.kernel.clone(), why.to_string())],
            );
            say(&format!("`{}` is not tried: {why}", target.symbol));
        }
    }
}

/// A graph is about to be launched: those of its kernels that are in no other launches are tried before it, on memory as it is
/// then.
pub fn graph(nodes: &[Arc<Recorded>], stream: Handle) {
    open_guarded(|| {
        for node in nodes {
            let mut pointers = node.pointers();
            let launch = Launch {
                stream,
                params: pointers.as_mut_ptr(),
                ..node.launch
            };
            for target in guarded(|| targets(&launch)).unwrap_or_default() {
                let Ok(mut target) = target.try_lock() else {
                    continue;
                };
                if target.when.in_graphs {
                    met(&mut target, &launch, &|function, to| {
                        launch_node(&launch, function, to)
                    });
                }
            }
        }
    });
}

/// Launches a node's kernel, or a version of it, outside of its graph.
fn launch_node(launch: &Launch, function: Handle, to: &Extents) -> Code {
    let ([gx, gy, gz], [bx, by, bz]) = (to.grid, to.block);
    let (shared, null) = (to.dynamic_smem, std::ptr::null_mut());
    let (stream, params) = (launch.stream, launch.params);
    // SAFETY: the parameters that the node was made with.
    unsafe {
        driver::launch_kernel(
            function, gx, gy, gz, bx, by, bz, shared, stream, params, null,
        )
    }
}

/// The launches of an executable graph that may be tried, as it gets them: what has them in its nodes may go. Null are nodes
/// that are not known.
pub fn record_graph(exec: Handle, launches: &[(Handle, Launch)]) {
    let tried = launches.iter();
    let tried = tried.filter_map(|(node, launch)| Recorded::new(*node, launch));
    let tried = tried.map(Arc::new).collect();
    state().recorded.insert(exec as usize, tried);
}

/// A node of an executable graph has another launch. Where nodes are not known nothing of the graph is tried any more: which
/// launch is over cannot be told.
pub fn again(exec: Handle, node: Handle, launch: &Launch) {
    let tried = Recorded::new(node, launch);
    let mut state = state();
    let Some(all) = state.recorded.get_mut(&(exec as usize)) else {
        return;
    };
    if all.iter().any(|recorded| recorded.node == 0) {
        return all.clear();
    }
    all.retain(|recorded| recorded.node != node as usize);
    all.extend(tried.map(Arc::new));
}

/// A launch in a graph, with its parameters.
pub struct Recorded {
    node: usize,
    launch: Launch,
    bytes: Vec<u8>,
    places: Vec<Place>,
}

impl Recorded {
    /// Not of one that is not to be tried, or cannot be made by itself.
    fn new(node: Handle, launch: &Launch) -> Option<Recorded> {
        let is_tried = targets(launch).iter().any(|target| {
            let target = target.lock().unwrap_or_else(PoisonError::into_inner);
            target.when.in_graphs
        });
        let is_bound = launch.alone || launch.cooperative || launch.cluster != [0; 3];
        if !is_tried || is_bound {
            return None;
        }
        let places = places(launch).ok()?;
        let passed = Passed {
            params: launch.params,
            extra: launch.extra,
            places: &places,
        };
        Some(Recorded {
            node: node as usize,
            bytes: passed.packed()?,
            launch: Launch {
                params: std::ptr::null_mut(),
                extra: std::ptr::null_mut(),
                ..*launch
            },
            places,
        })
    }

    /// Where the values of the parameters are.
    fn pointers(&self) -> Vec<*mut c_void> {
        let starts = self.places.iter().map(|&(at, _)| at as usize);
        let pointers = starts.map(|at| self.bytes[at..].as_ptr().cast_mut().cast());
        pointers.collect()
    }
}

// SAFETY: the handles in it may be used on every thread.
unsafe impl Send for Recorded {}
// SAFETY: as above, and nothing in it changes.
unsafe impl Sync for Recorded {}

/// One set of turns.
fn attempt(
    target: &mut Target,
    launch: &Launch,
    call: &impl Fn(Handle, &Extents) -> Code,
) -> Result<(), NoTrial> {
    let asks = target.is_searched && target.set == 1;
    if !asks && !target.candidates.iter().any(|c| c.alive) {
        return Ok(());
    }
    if !has_gates() {
        return Err(NoTrial::NoGates);
    }
    if driver::is_capturing(launch.stream) {
        return Err(NoTrial::Captured);
    }
    if launch.alone {
        return Err(NoTrial::Attributes);
    }
    check_parameters(launch)?;
    let _relaxed = driver::Relaxed::new();
    let _closed = Closed::new(PATIENCE).ok_or(NoTrial::OtherLaunch)?;
    if wait(launch.stream, PATIENCE) != SUCCESS {
        return Err(NoTrial::Stream);
    }
    // SAFETY: no arguments.
    if unsafe { driver::synchronize() } != SUCCESS {
        return Err(NoTrial::Context);
    }
    let module = identify(launch.function).and_then(|known| Some((known.name, known.module?)));
    let grafted = module
        .as_ref()
        .and_then(|(name, module)| module.grafted.get(name));
    if let Some(why) = grafted.and_then(|grafted| grafted.refused.clone()) {
        return Err(NoTrial::Tied(why));
    }
    let mut failed = Vec::new();
    for candidate in target.candidates.iter_mut().filter(|c| c.alive) {
        match grafted {
            // In the module that is loaded now.
            Some(grafted) if !candidate.is_added => {
                let own = grafted.candidates.get(&candidate.planned.file).copied();
                candidate.handle = own;
                candidate.alive = own.is_some();
            }
            _ if candidate.handle.is_none() => {
                if let Err(outcome) = bring(candidate) {
                    failed.push((candidate.planned.candidate.clone(), outcome));
                }
            }
            _ => {}
        }
        if let Some((handle, kind)) = candidate.handle {
            give_settings(launch.function, (handle as Handle, kind), 0);
        }
    }
    for (name, outcome) in failed {
        note("trials", &[trial(target, &name, outcome)]);
    }
    let mut saved = Saved::new(launch.stream)?;
    for index in 0..target.candidates.len() {
        reflect(target, index, launch, &saved);
    }
    let result = turns(target, launch, call, &mut saved);
    // Whatever happened: the program's memory is what it was.
    let restored = saved.restore_all();
    if restored.is_err() && target.when.in_graphs {
        // The program would not have launched it so. The command line starts it again.
        say("a kernel cannot run outside of its graph; the program ends here");
        std::process::abort();
    }
    in_flight(None);
    match (result, restored) {
        (result, Ok(())) => result,
        (_, Err(code)) => {
            // The context is lost, with or without us: the program sees it at its next call.
            stand_aside(&format!("a trial left the device unusable (error {code})"));
            Ok(())
        }
    }
}

fn turns(
    target: &mut Target,
    launch: &Launch,
    call: &impl Fn(Handle, &Extents) -> Code,
    saved: &mut Saved,
) -> Result<(), NoTrial> {
    let failed = NoTrial::Original;
    let own = launch.extents();
    let run = |function: Handle, extents: &Extents, limit: Duration| {
        let begun = Instant::now();
        match call(function, extents) {
            SUCCESS => (wait(launch.stream, limit), begun.elapsed()),
            code => (code, begun.elapsed()),
        }
    };
    let own_name = match target.when.in_graphs {
        true => IN_GRAPH,
        false => ORIGINAL,
    };
    in_flight(Some((target, own_name)));
    let (code, took) = run(launch.function, &own, Duration::from_secs(60));
    if code != SUCCESS {
        return Err(failed(code));
    }
    saved.learn()?;
    saved.restore().map_err(failed)?;
    let (code, again) = run(launch.function, &own, Duration::from_secs(60));
    if code != SUCCESS {
        return Err(failed(code));
    }
    let is_slow = took.min(again) > SLOW;
    let original = [took, again].map(nanoseconds);
    if saved.differences().map_err(failed)? != 0 {
        let mut all = target.candidates.iter();
        let numbers = all.find_map(|c| match c.planned.likeness {
            Likeness::Spread(numbers) if c.alive => Some(numbers),
            _ => None,
        });
        let mut spread = Spread::new(numbers.ok_or(NoTrial::Unsteady)?, saved)?;
        for _ in 0..SPREAD_RUNS {
            saved.restore().map_err(failed)?;
            let (code, _) = run(launch.function, &own, Duration::from_secs(60));
            if code != SUCCESS {
                return Err(failed(code));
            }
            spread.add(saved)?;
        }
        saved.spread = Some(spread);
    }
    if took < LONG {
        saved
            .settle_caches(launch, call, target.when.own_ns)
            .map_err(failed)?;
    }
    let limit = took * SLOWER + PATIENCE;
    let (seconds, budget) = (took.as_secs_f64(), settings().budget);
    let most = match is_slow {
        true => allowance(budget, seconds) / seconds - OTHER_RUNS,
        false => budget / (seconds * LAUNCHES_EACH),
    };
    if most < 1.0 {
        return Err(NoTrial::Long { seconds, budget });
    }
    let places = places(launch).unwrap_or_default();
    let compare = |saved: &mut Saved, candidate: &Candidate, extents: &Extents| {
        let (kernel, _) = candidate.handle.ok_or(Outcome::Elsewhere)?;
        let ran = || {
            candidate.mirror.give(saved.copies())?;
            let (code, took) = run(kernel as Handle, extents, limit);
            ok(code)?;
            candidate.mirror.take(saved.copies())?;
            Ok((saved.differences_of(candidate.planned.likeness)?, took))
        };
        match ran() {
            Ok((0, took)) => Ok(nanoseconds(took)),
            Ok((bytes, _)) => Err(Outcome::Differs(bytes)),
            Err(code) => Err(Outcome::Failed(code)),
        }
    };
    let mut fresh: Vec<usize> = (0..target.candidates.len()).collect();
    // The best of the first launch first, should the time not do for all.
    let found = |index: &usize| {
        target.candidates[*index]
            .found
            .map_or(1.0, |(_, ratio)| ratio)
    };
    fresh.sort_by(|a, b| found(a).total_cmp(&found(b)));
    loop {
        let mut timed = Vec::new();
        for index in fresh {
            // What is left out here is not looked at again; the search may ask for it once more.
            target.candidates[index].alive &= (timed.len() as f64) < most;
            let candidate = &target.candidates[index];
            let (true, Some(_)) = (candidate.alive, candidate.handle) else {
                continue;
            };
            let name = candidate.planned.candidate.clone();
            let Some(extents) = candidate.extents(launch, &places) else {
                note("trials", &[trial(target, &name, Outcome::Elsewhere)]);
                continue;
            };
            saved.restore().map_err(failed)?;
            in_flight(Some((target, &name)));
            match compare(saved, candidate, &extents) {
                Ok(ns) => timed.push((index, extents, ns)),
                Err(outcome) => wrong(target, index, outcome, saved),
            }
        }
        if is_slow {
            let notes = time_slow(target, &original, saved, &timed, &compare)?;
            note("trials", &notes);
        } else {
            let timed: Vec<_> = timed
                .into_iter()
                .map(|(index, at, _)| (index, at))
                .collect();
            in_flight(Some((target, ORIGINAL)));
            let notes = time(target, launch, call, saved, &timed).map_err(failed)?;
            note("trials", &notes);
        }
        let more = match target.is_searched && target.set == 1 {
            true => ask(target),
            false => Vec::new(),
        };
        if more.is_empty() {
            break;
        }
        target.round += 1;
        fresh = (target.candidates.len()..target.candidates.len() + more.len()).collect();
        for planned in more {
            let mut candidate = Candidate::new(planned);
            candidate.is_added = true;
            in_flight(Some((target, &candidate.planned.candidate)));
            if let Err(outcome) = bring(&mut candidate) {
                let name = &candidate.planned.candidate;
                note("trials", &[trial(target, name, outcome)]);
            }
            if let Some((handle, kind)) = candidate.handle {
                give_settings(launch.function, (handle as Handle, kind), 0);
            }
            target.candidates.push(candidate);
            reflect(target, target.candidates.len() - 1, launch, saved);
        }
    }
    leave_the_best(&mut target.candidates);
    Ok(())
}

/// Times where launches take long: that of the run that compared results, and one more of the round's best, which alone
/// may win.
fn time_slow(
    target: &mut Target,
    original: &[u64],
    saved: &mut Saved,
    timed: &[(usize, Extents, u64)],
    compare: &impl Fn(&mut Saved, &Candidate, &Extents) -> Result<u64, Outcome>,
) -> Result<Vec<Note>, NoTrial> {
    let original_ns = median(original);
    let best = timed.iter().map(|(_, _, ns)| *ns).min();
    let mut notes = vec![trial(target, ORIGINAL, Outcome::Same(original.to_vec()))];
    for (index, extents, ns) in timed {
        let mut times = vec![*ns];
        let is_worth_more = (*ns as f64) < original_ns as f64 * WORTH_MORE;
        if best == Some(*ns) && is_worth_more {
            let name = target.candidates[*index].planned.candidate.clone();
            saved.restore().map_err(NoTrial::Original)?;
            in_flight(Some((target, &name)));
            match compare(saved, &target.candidates[*index], extents) {
                Ok(ns) => times.push(ns),
                Err(outcome) => {
                    wrong(target, *index, outcome, saved);
                    continue;
                }
            }
        }
        let is_told = times.len() > 1;
        notes.push(target.timed(*index, times, original_ns));
        target.candidates[*index].alive &= is_told;
    }
    Ok(notes)
}

impl Target {
    /// What a candidate took in this round, beside the original's median: whether it goes on, and the note of it.
    fn timed(&mut self, index: usize, times: Vec<u64>, original: u64) -> Note {
        let round = self.round;
        let candidate = &mut self.candidates[index];
        let ns = median(&times);
        candidate.alive = ns < original;
        candidate.found = Some((round, ns as f64 / original.max(1) as f64));
        let name = candidate.planned.candidate.clone();
        trial(self, &name, Outcome::Same(times))
    }
}

/// A candidate is out. If the device is lost with it, so is the program.
fn wrong(target: &mut Target, index: usize, outcome: Outcome, saved: &Saved) {
    target.candidates[index].alive = false;
    let name = target.candidates[index].planned.candidate.clone();
    let hangs = outcome == Outcome::Failed(HANGS);
    let failed = matches!(outcome, Outcome::Failed(_));
    let lost = hangs || failed && saved.restore_all().is_err();
    note("trials", &[trial(target, &name, outcome)]);
    if lost {
        // Nothing more will run here. The command line starts the program again without this one.
        say(&format!(
            "candidate {name} leaves the device unusable; the program ends here"
        ));
        std::process::abort();
    }
}

/// Candidates that were faster, the best few of them, go on.
fn leave_the_best(candidates: &mut [Candidate]) {
    let mut ratios: Vec<f64> = candidates
        .iter()
        .filter(|c| c.alive)
        .filter_map(|c| Some(c.found?.1))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let last = ratios.get(MOST_AGAIN - 1).copied().unwrap_or(f64::INFINITY);
    for candidate in candidates {
        // One that was not for this launch may be for the other.
        candidate.alive &= candidate.found.is_none_or(|(_, ratio)| ratio <= last);
    }
}

/// Asks for more candidates, and waits for them; none where nobody answers.
fn ask(target: &Target) -> Vec<Planned> {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let Some(folder) = folder() else {
        return Vec::new();
    };
    let name = ask_file(std::process::id(), ASKED.fetch_add(1, Ordering::Relaxed));
    let question = Searched {
        kernel: target.kernel.clone(),
        class: target.class,
        when: target.when.clone(),
        symbol: target.symbol.clone(),
    };
    let question_file = folder.join(&name);
    write(&question_file, question.line().as_bytes());
    let answer = folder.join(answer_file(&name));
    let begun = Instant::now();
    // A question that could not be written has no answer.
    let is_asked = question_file.exists() || answer.exists();
    while is_asked && begun.elapsed() < ANSWER && builder_lives() {
        let text = fs::read_to_string(&answer);
        // The program's other threads may have taken it meanwhile.
        if !has_room(0) {
            fall_asleep();
        }
        match (mode(), text) {
            (Mode::Try, Ok(text)) => return parse_plan(&text),
            (Mode::Try, Err(_)) => {}
            _ => return Vec::new(),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    say(&format!(
        "the search for `{}` ends: nobody answers",
        target.symbol
    ));
    Vec::new()
}

/// Is the process there that makes candidates?
fn builder_lives() -> bool {
    settings().builder.is_none_or(|process| {
        // SAFETY: no signal is sent.
        let is_there = unsafe { libc::kill(process, 0) } == 0;
        // One that was killed stays until its parent looks.
        let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let state = state.rsplit(')').next().unwrap_or_default().trim_start();
        is_there && !state.starts_with(['Z', 'X'])
    })
}

fn trial(target: &Target, candidate: &str, outcome: Outcome) -> Note {
    Note::Trial(Trial {
        kernel: target.kernel.clone(),
        class: target.class,
        among: target.when.among.clone(),
        candidate: candidate.to_owned(),
        set: target.set,
        round: target.round,
        outcome,
    })
}

/// Original or candidate in turns.
struct Runner {
    function: usize,
    extents: Extents,
    candidate: Option<usize>,
    /// Nanoseconds.
    times: Vec<u64>,
}

/// Original and candidates in turns, the order reversed every other time.
fn time(
    target: &mut Target,
    launch: &Launch,
    call: &impl Fn(Handle, &Extents) -> Code,
    saved: &Saved,
    candidates: &[(usize, Extents)],
) -> Result<Vec<Note>, Code> {
    let mut runners = vec![Runner {
        function: launch.function as usize,
        extents: launch.extents(),
        candidate: None,
        times: Vec::new(),
    }];
    runners.extend(candidates.iter().map(|&(index, extents)| {
        Runner {
            function: target.candidates[index]
                .handle
                .map_or(0, |(kernel, _)| kernel),
            extents,
            candidate: Some(index),
            times: Vec::new(),
        }
    }));
    let stopwatch = Stopwatch::new(launch.stream)?;
    let mut running: Vec<usize> = (0..runners.len()).collect();
    let started = Instant::now();
    for turn in 0..=TURNS.1 {
        if turn > TURNS.0 && started.elapsed() > TIMING {
            break;
        }
        if turn == HOPELESS.0 {
            // Where a launch takes long, what does not look better gets no more of the time.
            let is_long = started.elapsed() > TIMING;
            let most = if is_long { WORTH_MORE } else { HOPELESS.1 };
            let most = median(&runners[0].times) as f64 * most;
            running.retain(|&index| index == 0 || median(&runners[index].times) as f64 <= most);
        }
        let order: Vec<usize> = match turn % 2 {
            0 => running.clone(),
            _ => running.iter().rev().copied().collect(),
        };
        for index in order {
            saved.restore()?;
            let runner = &mut runners[index];
            if let Some(candidate) = runner.candidate {
                target.candidates[candidate].mirror.give(saved.copies())?;
            }
            saved.prepare()?;
            let ns = stopwatch.time(|| call(runner.function as Handle, &runner.extents))?;
            // The first turn warms up.
            if turn > 0 {
                runner.times.push(ns);
            }
        }
    }
    let original = median(&runners[0].times);
    let mut notes = vec![trial(
        target,
        ORIGINAL,
        Outcome::Same(std::mem::take(&mut runners[0].times)),
    )];
    for (&(index, _), Runner { times, .. }) in candidates.iter().zip(runners.drain(1..)) {
        notes.push(target.timed(index, times, original));
    }
    Ok(notes)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn median(times: &[u64]) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(u64::MAX)
}

/// Two events in a stream.
struct Stopwatch {
    stream: Handle,
    begin: Handle,
    end: Handle,
}

impl Stopwatch {
    fn new(stream: Handle) -> Result<Stopwatch, Code> {
        // SAFETY: outputs of the right types.
        let event =
            || driver::handle(|out| unsafe { driver::event_create(out, 0) }).ok_or(NOT_READY);
        Ok(Stopwatch {
            stream,
            begin: event()?,
            end: event()?,
        })
    }

    /// Nanoseconds that a launch takes.
    fn time(&self, launch: impl FnOnce() -> Code) -> Result<u64, Code> {
        // SAFETY: events of ours, the program's stream.
        unsafe {
            ok(driver::event_record(self.begin, self.stream))?;
            ok(launch())?;
            ok(driver::event_record(self.end, self.stream))?;
            ok(wait(self.stream, Duration::from_secs(60)))?;
            let mut milliseconds = 0f32;
            let elapsed = driver::event_elapsed(&raw mut milliseconds, self.begin, self.end);
            ok(elapsed).map(|()| (milliseconds * 1e6) as u64)
        }
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        // SAFETY: events of ours that nothing waits for.
        unsafe {
            driver::event_destroy(self.begin);
            driver::event_destroy(self.end);
        }
    }
}

/// Loads a candidate; one that cannot be loaded is out.
fn bring(candidate: &mut Candidate) -> Result<(), Outcome> {
    let planned = &candidate.planned;
    let cubin = folder().and_then(|folder| fs::read(folder.join(&planned.file)).ok());
    let loaded = cubin.ok_or(("its file", 0)).and_then(|cubin| {
        let loaded = load_kernel(&cubin, &planned.symbol)?;
        let brought = Brought::new(&cubin, &planned.symbol, loaded.library);
        Ok((loaded, brought))
    });
    match loaded {
        Ok((loaded, brought)) => {
            candidate.handle = Some((loaded.kernel as usize, Handles::Kernel));
            candidate.brought = brought;
            Ok(())
        }
        Err((what, code)) => {
            candidate.alive = false;
            say(&format!(
                "candidate {} cannot be loaded ({what}: error {code})",
                planned.candidate
            ));
            Err(Outcome::Failed(code))
        }
    }
}

/// The variables that a candidate brings along stand beside those of a launch; one whose do not is out.
fn reflect(target: &mut Target, index: usize, launch: &Launch, saved: &Saved) {
    let candidate = &mut target.candidates[index];
    let (Some(brought), true) = (&candidate.brought, candidate.alive) else {
        return;
    };
    let mirror = brought.mirror(launch.function);
    let given = mirror.and_then(|mirror| {
        mirror.give_constants(saved.copies())?;
        Ok(mirror)
    });
    match given {
        Ok(mirror) => candidate.mirror = mirror,
        Err(code) => {
            candidate.alive = false;
            let name = candidate.planned.candidate.clone();
            say(&format!(
                "candidate {name} cannot have the program's variables (error {code})"
            ));
            note("trials", &[trial(target, &name, Outcome::Failed(code))]);
        }
    }
}

/// Says what is about to run, in case that it is the last thing that this process does.
fn in_flight(what: Option<(&Target, &str)>) {
    let what = what.map(|(target, name)| (&*target.kernel, name));
    mark(what.as_slice());
}

/// The same of digests and candidates; none: nothing is about to happen.
pub fn mark(what: &[(&str, &str)]) {
    if mode() != Mode::Try {
        return;
    }
    let Some(path) =
        folder().map(|folder: PathBuf| folder.join(format!("in-flight-{}", std::process::id())))
    else {
        return;
    };
    let lines = what
        .iter()
        .map(|(digest, name)| format!("{digest} {name}\n"));
    let _ = match what {
        [] => fs::remove_file(path),
        _ => quietly(|| fs::write(path, lines.collect::<String>())),
    };
}

/// Waits for a stream without blocking in the driver.
fn wait(stream: Handle, limit: Duration) -> Code {
    let begun = Instant::now();
    loop {
        // SAFETY: the program's stream.
        match unsafe { driver::stream_query(stream) } {
            NOT_READY if begun.elapsed() > limit => return HANGS,
            NOT_READY if begun.elapsed() > Duration::from_millis(2) => {
                std::thread::sleep(Duration::from_micros(50));
            }
            NOT_READY => std::hint::spin_loop(),
            code => return code,
        }
    }
}

/// Refuses kernels with parameters that lead to memory that cannot be saved.
fn check_parameters(launch: &Launch) -> Result<(), NoTrial> {
    for word in parameter_words(launch)? {
        let known = state().memory.of(word);
        match known {
            Some(Kind::Device | Kind::Managed) => {}
            None if is_pointer(word) => return Err(NoTrial::HostParameter),
            None => {}
        }
    }
    Ok(())
}

/// Does the driver know memory at such an address?
pub fn is_pointer(word: u64) -> bool {
    const MEMORY_TYPE: i32 = 2;
    let mut kind = 0u32;
    // SAFETY: the output has the right type; any number may be asked about.
    word != 0
        && unsafe { driver::pointer_attribute((&raw mut kind).cast(), MEMORY_TYPE, word) }
            == SUCCESS
        && kind != 0
}

fn is_managed(address: u64) -> bool {
    const MANAGED: i32 = 8;
    let mut managed = 0u32;
    // SAFETY: the output has the right type.
    let code = unsafe { driver::pointer_attribute((&raw mut managed).cast(), MANAGED, address) };
    code == SUCCESS && managed != 0
}

/// All aligned 64-bit words of the parameters.
fn parameter_words(launch: &Launch) -> Result<Vec<u64>, NoTrial> {
    let mut words = Vec::new();
    let mut take = |at: *const u8, bytes: usize| {
        for offset in (0..bytes / 8).map(|i| i * 8) {
            // SAFETY: the parameter has that many bytes.
            words.push(unsafe { at.add(offset).cast::<u64>().read_unaligned() });
        }
    };
    if launch.params.is_null() && !launch.extra.is_null() {
        let passed = buffer(launch.extra).ok_or(NoTrial::UnknownParameters)?;
        if let Some(bytes) = passed {
            if !is_mapped(bytes.as_ptr(), bytes.len()) {
                return Err(NoTrial::UnknownParameters);
            }
            take(bytes.as_ptr(), bytes.len());
        }
        return Ok(words);
    }
    for (index, (_, bytes)) in places(launch)?.into_iter().enumerate() {
        if launch.params.is_null() {
            return Err(NoTrial::NoParameters);
        }
        // SAFETY: the kernel has such a parameter.
        unsafe { take((*launch.params.add(index)).cast(), bytes as usize) }
    }
    Ok(words)
}

/// Where a launch's kernel has its parameters, as the driver says it.
fn places(launch: &Launch) -> Result<Vec<Place>, NoTrial> {
    let known = identify(launch.function).ok_or(NoTrial::UnknownKernel)?;
    described(launch.function, known.kind).ok_or(NoTrial::Undescribed)
}

/// Place and bytes of the variables of all modules: a kernel writes them without having them as parameters.
fn variables() -> Result<Vec<(u64, u64)>, NoTrial> {
    let mut found = BTreeMap::new();
    let owners = state().modules.owners(current_context());
    for (handle, is_library, module) in owners {
        let owner = Owner { handle, is_library };
        for name in &module.variables {
            let variable = owner.variable(name);
            let (address, bytes) =
                variable.map_err(|code| NoTrial::Variable(name.clone(), code))?;
            if is_managed(address) {
                return Err(Unclear::Managed.into());
            }
            if bytes > 0 {
                found.insert(address, bytes);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Bytes of numbers that differ by more than 1e-5 of themselves (1e-12 in double precision). Both are normal numbers,
/// so that small integers are none. `address` is that of the first byte.
fn numbers_apart(numbers: Numbers, own: &[u8], original: &[u8], address: u64) -> u64 {
    let (size, least) = (bytes_of(numbers), least_normal(numbers));
    let tolerance = match numbers {
        Numbers::Single => 1e-5,
        Numbers::Double => 1e-12,
    };
    let is_close = |a: &[u8], b: &[u8]| {
        let normal = |x: &f64| x.is_finite() && x.abs() >= least;
        let both = [a, b].map(|bytes| value(numbers, bytes).filter(normal));
        matches!(both, [Some(x), Some(y)] if (x - y).abs() <= tolerance * x.abs().max(y.abs()))
    };
    let is_aligned = address.is_multiple_of(size as u64);
    let pairs = own.chunks(size).zip(original.chunks(size));
    let apart = pairs.filter(|(a, b)| a != b && !(is_aligned && is_close(a, b)));
    let unlike = |(a, b): (&[u8], &[u8])| a.iter().zip(b).filter(|(a, b)| a != b).count() as u64;
    apart.map(unlike).sum()
}

/// What several runs of the original leave of numbers that threads add up in no fixed order.
struct Spread {
    numbers: Numbers,
    /// By the index of the piece.
    pieces: BTreeMap<usize, Runs>,
}

impl Spread {
    /// Nothing is known but the run that was kept.
    fn new(numbers: Numbers, saved: &Saved) -> Result<Spread, NoTrial> {
        let kept = saved.pieces.iter().enumerate();
        let kept = kept.filter_map(|(index, piece)| Some((index, piece.expected?, piece.bytes)));
        let kept: Vec<_> = kept.collect();
        let bytes = kept.iter().map(|(.., bytes)| bytes).sum();
        if bytes > WIDEST {
            return Err(NoTrial::Wide { bytes });
        }
        let run = |(index, expected, bytes)| Ok((index, Runs(vec![saved.fetch(expected, bytes)?])));
        let pieces: Result<BTreeMap<usize, Runs>, Code> = kept.into_iter().map(run).collect();
        let pieces = pieces.map_err(NoTrial::Keeping)?;
        Ok(Spread { numbers, pieces })
    }

    /// One more run. It writes where the first one did.
    fn add(&mut self, saved: &Saved) -> Result<(), NoTrial> {
        let no = NoTrial::Keeping;
        for (index, piece) in saved.pieces.iter().enumerate() {
            match self.pieces.get_mut(&index) {
                Some(runs) => runs
                    .0
                    .push(saved.fetch(piece.program, piece.bytes).map_err(no)?),
                None if saved
                    .compare(piece.program, piece.saved, piece.bytes)
                    .map_err(no)?
                    > 0 =>
                {
                    return Err(NoTrial::Unsteady);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Bytes of a piece that are not within what the runs span; `address` is that of its first byte.
    fn outside(&self, piece: usize, own: &[u8], address: u64) -> u64 {
        match self.pieces.get(&piece) {
            Some(runs) => runs.outside(self.numbers, own, address),
            None => own.len() as u64,
        }
    }
}

/// What runs of the original left in a piece of memory.
struct Runs(Vec<Vec<u8>>);

impl Runs {
    /// Bytes of numbers that no run has left and that do not lie between those that they have left. The interval of
    /// each is wider by the widest of the piece: of a few runs none is at the end of what is possible. What all runs have
    /// left alike may differ as far if it is a normal number, so that small integers may not.
    fn outside(&self, numbers: Numbers, own: &[u8], address: u64) -> u64 {
        let size = bytes_of(numbers);
        if !address.is_multiple_of(size as u64) {
            return own.len() as u64;
        }
        let interval = |at: usize| {
            let values = self
                .0
                .iter()
                .map(|run| value(numbers, run.get(at..at + size)?));
            let values: Option<Vec<f64>> = values.collect();
            let values = values.filter(|values| values.iter().all(|x| x.is_finite()))?;
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            Some((
                low,
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ))
        };
        let least = least_normal(numbers);
        let starts = || (0..own.len() / size).map(|n| n * size);
        let widths = starts().filter_map(interval).map(|(low, high)| high - low);
        let widest = widths.fold(0.0, f64::max);
        let mut found = (own.len() % size) as u64;
        for at in starts() {
            let bytes = &own[at..at + size];
            let is_seen = self
                .0
                .iter()
                .any(|run| run.get(at..at + size) == Some(bytes));
            let x = value(numbers, bytes);
            let is_within = is_seen
                || interval(at).zip(x).is_some_and(|((low, high), x)| {
                    let is_number = low < high || [low, x].iter().all(|x| x.abs() >= least);
                    is_number && low - widest <= x && x <= high + widest
                });
            found += if is_within { 0 } else { size as u64 };
        }
        found
    }
}

fn bytes_of(numbers: Numbers) -> usize {
    match numbers {
        Numbers::Single => 4,
        Numbers::Double => 8,
    }
}

fn least_normal(numbers: Numbers) -> f64 {
    match numbers {
        Numbers::Single => f32::MIN_POSITIVE.into(),
        Numbers::Double => f64::MIN_POSITIVE,
    }
}

fn value(numbers: Numbers, bytes: &[u8]) -> Option<f64> {
    Some(match numbers {
        Numbers::Single => f32::from_le_bytes(bytes.try_into().ok()?).into(),
        Numbers::Double => f64::from_le_bytes(bytes.try_into().ok()?),
    })
}

/// A piece of the program's memory with its copies.
struct Piece {
    program: u64,
    bytes: u64,
    /// Place in the copy of everything.
    saved: u64,
    /// Place in the copy of what the original wrote, once that is known.
    expected: Option<u64>,
}

/// Copies of the program's device memory.
struct Saved {
    stream: Handle,
    pieces: Vec<Piece>,
    /// Device memory of ours.
    own: Vec<u64>,
    helpers: Helpers,
    result: u64,
    /// Memory that fills the cache, and how many pieces of 16 bytes it has.
    cache: (u64, u64),
    /// Do launches find nothing in the cache?
    is_cold: bool,
    /// What the original's runs leave, if that is not the same.
    spread: Option<Spread>,
}

impl Saved {
    fn new(stream: Handle) -> Result<Saved, NoTrial> {
        let mut blocks = reachable()?;
        blocks.extend(variables()?);
        let total: u64 = blocks.iter().map(|(_, bytes)| bytes).sum();
        let (mut free, mut all) = (0usize, 0usize);
        // SAFETY: outputs of the right types.
        unsafe { driver::memory_info(&raw mut free, &raw mut all) };
        if total.saturating_add(SLACK.min(all as u64 / 16)) > free as u64 {
            return Err(NoTrial::Room { total, free });
        }
        let no = NoTrial::Saving;
        let mut saved = Saved {
            stream,
            pieces: Vec::new(),
            own: Vec::new(),
            helpers: Helpers::load().map_err(no)?,
            result: 0,
            cache: (0, 0),
            is_cold: false,
            spread: None,
        };
        saved.result = saved.alloc(16).map_err(no)?;
        for (program, bytes) in blocks {
            let copy = saved.alloc(bytes).map_err(no)?;
            for start in (0..bytes).step_by(PIECE as usize) {
                saved.pieces.push(Piece {
                    program: program + start,
                    bytes: PIECE.min(bytes - start),
                    saved: copy + start,
                    expected: None,
                });
            }
            saved.copy(copy, program, bytes).map_err(no)?;
        }
        ok(wait(stream, Duration::from_secs(60))).map_err(no)?;
        Ok(saved)
    }

    fn alloc(&mut self, bytes: u64) -> Result<u64, Code> {
        let mut address = 0;
        // SAFETY: an output of the right type.
        ok(unsafe { driver::memory_alloc(&raw mut address, bytes as usize) })?;
        self.own.push(address);
        Ok(address)
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Code> {
        // SAFETY: both have that many bytes.
        ok(unsafe { driver::memory_copy(to, from, bytes as usize, self.stream) })
    }

    /// [`Saved::copy`] for those who have no more of it.
    fn copies(&self) -> impl Fn(u64, u64, u64) -> Result<(), Code> {
        |to, from, bytes| self.copy(to, from, bytes)
    }

    /// Decides how launches find the cache: as in the program, where one takes so many nanoseconds.
    fn settle_caches(
        &mut self,
        launch: &Launch,
        call: &impl Fn(Handle, &Extents) -> Code,
        own_ns: u64,
    ) -> Result<(), Code> {
        if own_ns == 0 || self.make_cache().is_err() {
            return Ok(());
        }
        let stopwatch = Stopwatch::new(launch.stream)?;
        let mut taste = |is_cold| -> Result<f64, Code> {
            self.is_cold = is_cold;
            let mut times = Vec::new();
            for _ in 0..TASTES {
                self.restore()?;
                self.prepare()?;
                times.push(stopwatch.time(|| call(launch.function, &launch.extents()))?);
            }
            Ok((median(&times) as f64 / own_ns as f64).ln().abs())
        };
        let (warm, cold) = (taste(false)?, taste(true)?);
        self.is_cold = cold < warm;
        Ok(())
    }

    /// Memory of three times the cache: replacement is not strictly the least recently used.
    fn make_cache(&mut self) -> Result<(), Code> {
        const L2_CACHE_SIZE: i32 = 38;
        if self.cache.1 > 0 {
            return Ok(());
        }
        // SAFETY: outputs of the right types.
        let size = unsafe {
            let device = driver::number(|n| driver::context_device(n)).ok_or(NOT_READY)?;
            driver::number(|n| driver::device_attribute(n, L2_CACHE_SIZE, device))
        };
        let bytes = 3 * u64::from(size.unwrap_or(0).unsigned_abs());
        let address = self.alloc(bytes)?;
        // SAFETY: it has that many bytes.
        ok(unsafe { driver::memory_set(address, 0, bytes as usize, self.stream) })?;
        self.cache = (address, bytes / 16);
        Ok(())
    }

    /// What stands before a launch that is timed.
    fn prepare(&self) -> Result<(), Code> {
        self.helpers
            .hold(self.stream, self.is_cold.then_some(self.cache))
    }

    /// Bytes that differ.
    fn compare(&self, a: u64, b: u64, bytes: u64) -> Result<u64, Code> {
        let initial = [0u64, u64::MAX];
        let mut found = [0u64; 2];
        // SAFETY: the result has 16 bytes.
        unsafe {
            ok(driver::memory_from_host(
                self.result,
                initial.as_ptr().cast(),
                16,
            ))?;
            self.helpers.diff(self.stream, [a, b, bytes], self.result)?;
            ok(wait(self.stream, Duration::from_secs(60)))?;
            ok(driver::memory_to_host(
                found.as_mut_ptr().cast(),
                self.result,
                16,
            ))?;
        }
        Ok(found[0])
    }

    /// Finds out what the original wrote and keeps it.
    fn learn(&mut self) -> Result<(), NoTrial> {
        let no = NoTrial::Keeping;
        for index in 0..self.pieces.len() {
            let Piece {
                program,
                bytes,
                saved,
                ..
            } = self.pieces[index];
            if self.compare(program, saved, bytes).map_err(no)? > 0 {
                let kept = self.alloc(bytes).map_err(no)?;
                self.pieces[index].expected = Some(kept);
                self.copy(kept, program, bytes).map_err(no)?;
            }
        }
        ok(wait(self.stream, Duration::from_secs(60))).map_err(no)
    }

    /// Bytes in which memory is not what the original left; pieces that it does not write are put back at once.
    fn differences(&self) -> Result<u64, Code> {
        let mut all = 0;
        for piece in &self.pieces {
            let expected = piece.expected.unwrap_or(piece.saved);
            let found = self.compare(piece.program, expected, piece.bytes)?;
            if found > 0 && piece.expected.is_none() {
                self.copy(piece.program, piece.saved, piece.bytes)?;
            }
            all += found;
        }
        Ok(all)
    }

    /// The same, but numbers that are as good as equal do not count where that is allowed.
    fn differences_of(&self, likeness: Likeness) -> Result<u64, Code> {
        let spread = match likeness {
            Likeness::Spread(_) => self.spread.as_ref(),
            _ => None,
        };
        let rounded = match likeness {
            Likeness::Rounded(numbers) => Some(numbers),
            _ => None,
        };
        if spread.is_none() && rounded.is_none() {
            return self.differences();
        }
        let mut all = 0;
        for (index, piece) in self.pieces.iter().enumerate() {
            let expected = piece.expected.unwrap_or(piece.saved);
            let found = self.compare(piece.program, expected, piece.bytes)?;
            all += match piece.expected {
                Some(_) if found > 0 => {
                    let own = self.fetch(piece.program, piece.bytes)?;
                    match (spread, rounded) {
                        (Some(spread), _) => spread.outside(index, &own, piece.program),
                        (None, Some(numbers)) => {
                            let original = self.fetch(expected, piece.bytes)?;
                            numbers_apart(numbers, &own, &original, piece.program)
                        }
                        (None, None) => found,
                    }
                }
                Some(_) => 0,
                // The original does not write there at all.
                None => {
                    if found > 0 {
                        self.copy(piece.program, piece.saved, piece.bytes)?;
                    }
                    found
                }
            };
        }
        Ok(all)
    }

    fn fetch(&self, address: u64, bytes: u64) -> Result<Vec<u8>, Code> {
        /// CUDA_ERROR_OUT_OF_MEMORY
        const NO_MEMORY: Code = 2;
        let mut found = Vec::new();
        let room = found.try_reserve_exact(bytes as usize);
        room.map_err(|_| NO_MEMORY)?;
        found.resize(bytes as usize, 0u8);
        // SAFETY: both have that many bytes.
        ok(unsafe { driver::memory_to_host(found.as_mut_ptr().cast(), address, found.len()) })?;
        Ok(found)
    }

    /// What the original writes becomes what it was.
    fn restore(&self) -> Result<(), Code> {
        for piece in self.pieces.iter().filter(|piece| piece.expected.is_some()) {
            self.copy(piece.program, piece.saved, piece.bytes)?;
        }
        Ok(())
    }

    /// All memory becomes what it was.
    fn restore_all(&self) -> Result<(), Code> {
        for piece in &self.pieces {
            self.copy(piece.program, piece.saved, piece.bytes)?;
        }
        ok(wait(self.stream, Duration::from_secs(60)))
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        for &address in &self.own {
            // SAFETY: memory of ours, which nothing uses any more.
            unsafe { driver::memory_free(address) };
        }
        self.helpers.unload();
    }
}

#[cfg(test)]
mod tests {
    use super::{Numbers, Runs, numbers_apart};

    #[test]
    fn sums_in_no_fixed_order_lie_where_runs_of_the_original_lie() {
        let bytes = |numbers: [f32; 4]| {
            numbers
                .iter()
                .flat_map(|x| x.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let counter = f32::from_bits(7);
        let runs = [
            bytes([1.0, 100.000_01, 5.0, counter]),
            bytes([1.000_000_1, 100.0, 5.0, counter]),
        ];
        let runs = Runs(runs.to_vec());
        let outside = |numbers| runs.outside(Numbers::Single, &bytes(numbers), 512);
        assert_eq!(outside([1.0, 100.0, 5.0, counter]), 0);
        // The widest interval is that of the second.
        assert_eq!(outside([1.000_002, 100.000_015, 5.000_000_5, counter]), 0);
        assert_eq!(outside([1.0, 100.1, 5.0, counter]), 4);
        assert_eq!(outside([1.0, 100.0, 5.001, counter]), 4);
        assert_eq!(outside([1.0, 100.0, f32::NAN, counter]), 4);
        // An integer that all runs have left alike.
        assert_eq!(outside([1.0, 100.0, 5.0, f32::from_bits(8)]), 4);
        assert_eq!(runs.outside(Numbers::Single, &bytes([1.0; 4]), 514), 16);
    }

    #[test]
    fn last_bits_of_numbers_are_let_through_and_nothing_else() {
        let single = |a: f32, b: f32| {
            numbers_apart(Numbers::Single, &a.to_le_bytes(), &b.to_le_bytes(), 512) == 0
        };
        let double = |a: f64, b: f64| {
            numbers_apart(Numbers::Double, &a.to_le_bytes(), &b.to_le_bytes(), 512) == 0
        };
        assert!(single(1.5, 1.500_001) && !single(1.5, 1.501));
        assert!(double(1.25, 1.25 + 1e-14) && !double(1.25, 1.25 + 1e-9));
        assert!(single(-2.5, -2.5) && !single(-2.5, 2.5));
        // Small integers, infinities and what is no number.
        assert!(!single(f32::from_bits(7), f32::from_bits(8)));
        assert!(!double(f64::from_bits(1000), f64::from_bits(1001)));
        assert!(!single(f32::INFINITY, f32::MAX) && !single(f32::NAN, 1.0));
        assert!(single(f32::NAN, f32::NAN) && !double(f64::NAN, -f64::NAN));
        // The end of a piece, and one that begins where no number can.
        let (a, b) = (1.5f32.to_le_bytes(), 1.500_001f32.to_le_bytes());
        assert!(numbers_apart(Numbers::Single, &a, &b, 514) > 0);
        assert!(numbers_apart(Numbers::Double, &a, &b, 512) > 0);
    }
}
