//! A program that is tuned: it runs once to see which kernels are hot (unless a trace says so), once to try candidates for
//! them inside it, while it waits ([`search`](crate::search)), and once with the winners in place: what wins alone may lose
//! beside the program's other kernels. If a candidate takes the program down, it runs again without that one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use warpwright_api::trace::{Trace, notes, read};
use warpwright_api::{Error, source_name};
use warpwright_diag::{Problem, count as counted};
use warpwright_files::write_atomically;
use warpwright_gpu::{FaultKind, devices, utc_now};
use warpwright_linkage::captured::CAPTURED;
use warpwright_supervise::program::{
    End, Program, command, inject, is_cut_off, is_linked_with, outer_mode, run as run_program,
    run_with,
};
use warpwright_supervise::shown::{Shown, Written};
use warpwright_supervise::signals::{WorkFolder, asked_to_end};
use warpwright_supervise::{stdin, threads, work};
use warpwright_target::lookup;
use warpwright_toolkit::Toolkit;
use warpwright_winners::aside::Aside;
use warpwright_winners::lines::{CUT, IN_GRAPH, Note};
use warpwright_winners::{Kept, Store, Winner, export, store};

use crate::document::{Document, document};
use crate::judge::{culprits, judge, name_of, ratios};
use crate::search::Builder;
use crate::target::{Asked, Target, targets};
use crate::verify::{Verdict, verify};
use crate::weigh::{Beside, MOST_CONFIRMATIONS, drop_all, weigh};
use crate::{Tools, Watch, caches, kept};

/// The program is started again so often, each time without the candidate that took it down.
const MOST_RUNS: usize = 9;

/// Seconds that no search takes.
const UNBOUNDED: f64 = 1e9;

/// What is asked of a tuning.
pub struct Wanted<'a> {
    /// The program and its arguments.
    pub program: &'a [OsString],
    /// The search.
    pub asked: Asked<'a>,
    /// Where every build that was measured goes.
    pub keep: Option<&'a Path>,
    /// Without names of kernels.
    pub without_names: bool,
    /// What builds PTX, once the program has run.
    pub toolkit: &'a dyn Fn() -> Option<Toolkit>,
    /// Who is told.
    pub watch: &'a dyn Watch,
}

/// A program that is tuned, after its first run.
pub struct Run {
    folder: WorkFolder,
    seen: Seen,
}

impl Run {
    /// Runs the program as it is, or goes by a trace of it, which is named.
    ///
    /// # Errors
    /// There is no room to work, or the program cannot be run.
    pub fn see(wanted: &Wanted<'_>, trace: Option<(&str, Trace)>) -> Result<Run, Error> {
        let folder = work::folder()?;
        let seen = see(wanted, trace, folder.path())?;
        Ok(Run { folder, seen })
    }

    /// All runs but the first; the document, unless nothing was tried.
    ///
    /// # Errors
    /// A run cannot begin, or what it left cannot be read.
    pub fn tune(&mut self, wanted: &Wanted<'_>, store: &Store) -> Result<Option<Document>, Error> {
        let (folder, last, watch) = (self.folder.path(), &mut self.seen, wanted.watch);
        let Some(facts) = last.trace.gpu.clone() else {
            nothing_was_seen(&last.modules, watch);
            last.show(wanted)?;
            return Ok(Some(document(&[], "", &last.trace)));
        };
        tell_cut(&last.modules, watch);
        if asked_to_end() {
            return Ok(None);
        }
        if is_cut_off(last.end) {
            watch.warn("the program ended as nobody took its output any more: nothing is tried");
            return Ok(None);
        }
        if stdin::is_for_one_run() {
            watch.warn("standard input is a connection that lasts for one run: nothing is tried");
            last.show(wanted)?;
            return Ok(None);
        }
        let gpu = lookup(&format!("sm_{}", facts.sm)).map_err(|e| Problem::Input(e.to_string()))?;
        threads::settle_now();
        let toolkit = (wanted.toolkit)();
        match verify(toolkit.as_ref(), store, &last.trace, &last.modules) {
            Ok(verdicts) => tell(&verdicts, watch),
            Err(error) => watch.failed(error),
        }
        let modules = last.modules.clone();
        let tools = Tools {
            watch,
            toolkit: toolkit.as_ref(),
            gpu: &gpu,
            modules: &modules,
        };
        let mut targets = targets(tools, &wanted.asked, &last.trace)?;
        let tried = targets.iter().filter(|t| t.is_tried()).count();
        if tried > 0 {
            let again = stdin::wanted_again();
            watch.tell(&format!(
                "versions are tried for {}{again}",
                counted(tried, "kernel")
            ));
            try_all(wanted, folder, &mut targets, last, tools)?;
        }
        last.show(wanted)?;
        if asked_to_end() {
            drop_all(&mut targets, "a signal asked the program to end");
        }
        let made = |target: &Target| target.winners(&facts);
        if targets.iter().any(|target| !made(target).is_empty()) {
            confirm(wanted, folder, &mut targets, &made, last)?;
        }
        let winners: Vec<Winner> = targets.iter().flat_map(made).collect();
        keep(store, &winners, watch);
        if let Some(path) = wanted.keep {
            let measured = (&targets[..], &last.trials[..]);
            let document = kept::document(measured, tools, &facts, !wanted.without_names);
            let text = serde_json::to_string(&document);
            let no_json = |e| Problem::Internal(format!("a document that is no JSON: {e}"));
            write_atomically(path, text.map_err(no_json)?.as_bytes())?;
        }
        Ok(Some(document(&targets, &facts.name, &last.trace)))
    }

    /// What the program launched in its first run.
    pub fn trace(&self) -> &Trace {
        &self.seen.trace
    }

    /// Gives out what the last run that counts wrote, and how it ended.
    pub fn end(self) -> (End, std::io::Result<()>) {
        (self.seen.end, self.seen.shown.come())
    }
}

/// Puts winners into the store, or aside where that fails by now.
fn keep(store: &Store, winners: &[Winner], watch: &dyn Watch) {
    let mut left: Vec<&Winner> = Vec::new();
    for winner in winners {
        match store.keep(winner) {
            Ok(Kept::Written(_)) => {}
            Ok(Kept::Better(path)) => {
                watch.tell(&format!(
                    "a better winner is there already: `{}`",
                    path.display()
                ));
            }
            Err(e) => {
                watch.warn(&e.to_string());
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
        Some(path) => watch.warn(&format!(
            "{} could not go into the store and stand in `{}`: `warpwright db import --trust {}`",
            counted(left.len(), "winner"),
            path.display(),
            path.display()
        )),
        None => watch.warn(&format!(
            "{} could be kept nowhere",
            counted(left.len(), "winner")
        )),
    }
}

/// Runs the program with the winners in place until all were met often enough, and drops those that are not faster there.
fn confirm(
    wanted: &Wanted<'_>,
    folder: &Path,
    targets: &mut [Target],
    made: &dyn Fn(&Target) -> Vec<Winner>,
    seen: &mut Seen,
) -> Result<(), Error> {
    let failed = |e: std::io::Error| Problem::Input(format!("`{}`: {e}", folder.display()));
    let db = folder.join("confirm-db");
    for winner in targets.iter().flat_map(made) {
        Store::at(&db).put(&winner)?;
    }
    let (program, watch) = (wanted.program, wanted.watch);
    watch.tell(&format!(
        "the program runs with the winners{}",
        stdin::wanted_again()
    ));
    let begun = Instant::now();
    let (mut beside, mut runs) = (Beside::default(), Vec::new());
    for run in 0..MOST_CONFIRMATIONS {
        let work = folder.join(format!("confirm-{run}"));
        fs::create_dir(&work).map_err(failed)?;
        let mut words = command(program)?;
        words.env(caches::CUPY, caches::of_cupy(folder));
        look(&mut words, &work, "trace+with", watch)?;
        stdin::give(&mut words, false)?;
        words.env("WARPWRIGHT_TURNS", run.to_string());
        words.env("WARPWRIGHT_DB", &db);
        let written = seen.shown.give(&mut words)?;
        let end = run_program(words)?;
        if end != seen.end {
            watch.warn(&format!(
                "the program ended with {end} beside its winners, with {} before: nothing is kept",
                seen.end
            ));
            drop_all(targets, "the program ends otherwise with the winners");
            return Ok(());
        }
        runs.push(read(&work, program, utc_now())?);
        beside.add(&work)?;
        seen.count(written, end);
        if asked_to_end() {
            drop_all(targets, "a signal asked the program to end");
            return Ok(());
        }
        let taken = begun.elapsed();
        let next = taken / runs.len() as u32 * (runs.len() as u32 + 1);
        let is_enough = beside.is_enough(targets, &seen.trace, &runs);
        if is_enough || next.as_secs_f64() > wanted.asked.budget {
            break;
        }
    }
    weigh(targets, &seen.trace, &runs, &beside);
    Ok(())
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
    fn show(&mut self, wanted: &Wanted<'_>) -> Result<(), Error> {
        if matches!(self.shown, Shown::No) && !asked_to_end() {
            let mut words = command(wanted.program)?;
            stdin::give(&mut words, true)?;
            wanted.watch.tell(&format!(
                "the program runs as it is{}",
                stdin::wanted_again()
            ));
            self.end = run_program(words)?;
            self.shown = Shown::Yes;
        }
        Ok(())
    }
}

/// The trace that was named, or a run of the program.
fn see(wanted: &Wanted<'_>, trace: Option<(&str, Trace)>, folder: &Path) -> Result<Seen, Error> {
    let (program, watch) = (wanted.program, wanted.watch);
    if let Some((name, trace)) = trace {
        let modules = trace
            .modules_in
            .clone()
            .map(PathBuf::from)
            .ok_or_else(|| Problem::Input(format!("`{name}` was made without its modules")))?;
        return Ok(Seen {
            trace,
            modules,
            shown: Shown::No,
            end: End::Code(0),
            trials: Vec::new(),
        });
    }
    let modules = folder.join("seen");
    let failed = |e: std::io::Error| Problem::Input(format!("`{}`: {e}", folder.display()));
    fs::create_dir(&modules).map_err(failed)?;
    let mut words = command(program)?;
    words.env(caches::CUPY, caches::of_cupy(folder));
    look(&mut words, &modules, "trace", watch)?;
    stdin::give(&mut words, true)?;
    watch.tell("the program runs as it is");
    let end = run_program(words)?;
    work::is_there(&modules)?;
    caches::find_ptx(&modules);
    let trace = read(&modules, program, utc_now());
    Ok(Seen {
        trace: trace?,
        modules,
        shown: Shown::Yes,
        end,
        trials: Vec::new(),
    })
}

/// Runs the program with the candidates until it ends by itself, and judges.
fn try_all(
    wanted: &Wanted<'_>,
    folder: &Path,
    targets: &mut [Target],
    seen: &mut Seen,
    tools: Tools<'_>,
) -> Result<(), Error> {
    let watch = wanted.watch;
    let failed = |e: std::io::Error| Problem::Input(format!("`{}`: {e}", folder.display()));
    let mut crashed: Vec<(String, String)> = Vec::new();
    let mut ranked: Vec<BTreeMap<String, f64>> = Vec::new();
    for round in 0..MOST_RUNS {
        let work = folder.join(format!("try-{round}"));
        fs::create_dir(&work).map_err(failed)?;
        let mut plan = String::new();
        for (number, target) in targets.iter_mut().enumerate() {
            plan += &target.plan(number, &work, &crashed, ranked.get(number))?;
        }
        fs::write(work.join("plan"), plan).map_err(failed)?;
        let mut program = command(wanted.program)?;
        program.env(caches::CUPY, caches::of_cupy(folder));
        inject(&mut program, "try")?;
        stdin::give(&mut program, false)?;
        program.env("WARPWRIGHT_DIR", &work);
        program.env("WARPWRIGHT_BUILDER", std::process::id().to_string());
        let budget = match wanted.asked.space {
            Some(_) => UNBOUNDED,
            None => wanted.asked.budget,
        };
        program.env("WARPWRIGHT_BUDGET", budget.to_string());
        if std::env::var_os("WARPWRIGHT_LOG").is_none() {
            program.env("WARPWRIGHT_LOG", work.join("log"));
        }
        let written = seen.shown.give(&mut program)?;
        let mut builder = Builder::new(tools, &work);
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
                    true => watch.tell(&format!(
                        "{of} cannot run outside of its graph; the program starts again without trying it"
                    )),
                    false => watch.tell(&format!(
                        "candidate {name} of {of} took the program down; it starts again without"
                    )),
                }
            }
            crashed.extend(culprits);
            let notes = notes(&work, "trials")?;
            ranked = targets.iter().map(|t| ratios(t, &notes, 1)).collect();
            continue;
        }
        if end != seen.end {
            // Nothing that such a run found counts.
            watch.warn(&format!(
                "the program ended with {end} in the trial, with {} before: nothing is kept",
                seen.end
            ));
            return Ok(());
        }
        seen.trials = notes(&work, "trials")?;
        judge(targets, &seen.trials, &crashed);
        seen.count(written, end);
        return Ok(());
    }
    watch.warn("too many candidates took the program down: nothing is kept");
    Ok(())
}

/// Says what became of programs that were built below this command.
pub fn tell_linked(words: &[OsString], watch: &dyn Watch) {
    let is_source = |word: &OsString| Path::new(word).extension().is_some_and(|end| end == "cu");
    let first = words.first().filter(|word| !is_source(word));
    if first.is_some_and(|program| !is_linked_with(program, "libcudart.so")) {
        watch.tell("what nvcc built meanwhile is linked with the shared runtime, libcudart.so: build it anew for other runs");
    }
}

/// Says why nothing may be known of a program's launches. How it ended is for its exit code to say.
pub fn nothing_was_seen(folder: &Path, watch: &dyn Watch) {
    if tell_captured(folder, watch) {
        return;
    }
    let written = Aside::new_in(folder).and_then(|mut file| file.file().write_all(&[0; 4096]));
    match (written, devices()) {
        (Err(e), _) => watch.warn(&format!(
            "no launch was seen: what the program does is noted in `{}`, where nothing can be written: {e}",
            folder.display()
        )),
        (Ok(()), _) if tell_cut(folder, watch) => {}
        (Ok(()), Err(fault)) if fault.kind == FaultKind::Missing => watch.warn(&format!(
            "no launch was seen: {}; `warpwright trace --no-gpu -- PROGRAM` and `warpwright opt PROGRAM -o OUT` need none",
            fault.detail
        )),
        _ => watch.warn("no launch was seen: the program does not use the driver, is linked statically, forbids itself system \
             calls (seccomp), has no room for the library (`ulimit -v`), or must not be preloaded (set-user-ID), or a \
             `warpwright` of its own is in between"),
    }
}

/// Says so if the program's functions have names that the library calls.
pub fn tell_captured(folder: &Path, watch: &dyn Watch) -> bool {
    let name = std::fs::read_link(folder.join(&*CAPTURED.to_string_lossy()));
    if let Ok(name) = &name {
        watch.warn(&format!(
            "no launch was seen: the program has a function `{}` of its own, which the library would call for that of the \
             C library",
            name.display()
        ));
    }
    name.is_ok()
}

/// Says so if not all was noted that the program did.
pub fn tell_cut(folder: &Path, watch: &dyn Watch) -> bool {
    let is_cut = folder.join(CUT).exists();
    if is_cut {
        watch.warn(&format!(
            "not all that the program did could be noted in `{}`: is the disk full, is there a limit (`ulimit -f`, `-n`), \
             or does it forbid itself system calls (seccomp)?",
            folder.display()
        ));
    }
    is_cut
}

/// Has the program traced into a folder; `mode` is `trace`, or `trace+with` for a program with its winners.
///
/// # Errors
/// The library is not there.
pub fn look(
    program: &mut Program,
    folder: &Path,
    mode: &str,
    watch: &dyn Watch,
) -> Result<(), Error> {
    if outer_mode().is_some() {
        watch.warn("this runs inside another `warpwright`, which does not see the launches: name the program itself there");
    }
    inject(program, mode)?;
    program.env("WARPWRIGHT_DIR", folder);
    if std::env::var_os("WARPWRIGHT_LOG").is_none() {
        program.env("WARPWRIGHT_LOG", folder.join("log"));
    }
    Ok(())
}

/// Runs a program for its modules, and proves what came from elsewhere against them; is all of it proved?
///
/// # Errors
/// The program cannot be run, or the store cannot be written to.
pub fn verify_with(
    toolkit: &dyn Fn() -> Option<Toolkit>,
    store: &Store,
    program: &[OsString],
    watch: &dyn Watch,
) -> Result<bool, Error> {
    store.check_writable()?;
    let folder = work::folder()?;
    let folder = folder.path();
    let mut words = command(program)?;
    words.env(caches::CUPY, caches::of_cupy(folder));
    look(&mut words, folder, "trace", watch)?;
    run_program(words)?;
    caches::find_ptx(folder);
    let trace = read(folder, program, utc_now())?;
    if trace.gpu.is_none() {
        nothing_was_seen(folder, watch);
    }
    threads::settle_now();
    let verdicts = verify(toolkit().as_ref(), store, &trace, folder)?;
    match verdicts.is_empty() {
        true => watch.tell("no winner from elsewhere waits to be proved on this GPU"),
        false => tell(&verdicts, watch),
    }
    Ok(verdicts.iter().all(|verdict| verdict.outcome.is_ok()))
}

/// Says what became of them.
fn tell(verdicts: &[Verdict], watch: &dyn Watch) {
    for Verdict { symbol, outcome } in verdicts {
        let name = source_name(symbol);
        match outcome {
            Ok(Kept::Written(_)) => watch.tell(&format!("{name}: proved, and used from now on")),
            Ok(Kept::Better(_)) => watch.tell(&format!("{name}: proved; a better one is used")),
            Err(why) => watch.warn(&format!("{name}: not proved, and not used: {why}")),
        }
    }
}
