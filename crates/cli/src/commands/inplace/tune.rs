//! `warpwright tune -- PROGRAM ARGS`: the program runs once to see which kernels are hot (unless a trace says
//! so), once to try candidates for them inside it, while it waits ([`super::search`]), and once with the winners in
//! place: what wins alone may lose beside the program's other kernels. If a candidate takes the program down, it runs again without that one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use warpwright::trace::{notes, read};
use warpwright_autotune::document::{Document, document};
use warpwright_autotune::judge::{culprits, judge, name_of, ratios};
use warpwright_autotune::search::Builder;
use warpwright_autotune::target::{Asked, Target, targets};
use warpwright_autotune::weigh::{Beside, MOST_CONFIRMATIONS, drop_all, weigh};
use warpwright_autotune::{Tools, caches, kept, shortened, verify};
use warpwright_diag::count as counted;
use warpwright_report::table::Table;
use warpwright_supervise::program::{
    End, command, inject, is_cut_off, run as run_program, run_with,
};
use warpwright_supervise::shown::{Shown, Written};
use warpwright_supervise::signals::asked_to_end;
use warpwright_supervise::{limits, stdin, work};
use warpwright_target::lookup;
use warpwright_winners::lines::{IN_GRAPH, Note};
use warpwright_winners::{Kept, Store, Winner, export, store};

use super::db::store as open_store;
use super::document::Trace;
use super::end::{ended, failed_behind};
use super::trace::{look, nothing_was_seen, tell_cut};
use super::watch::{Told, tell};
use crate::args::{Cli, TuneArgs};
use crate::commands::{print_json, write_page};
use crate::failure::Failure;
use crate::input::write_atomically;
use crate::session;
use crate::threads;

/// The program is started again so often, each time without the candidate that took it down.
const MOST_RUNS: usize = 9;

/// Seconds that no search takes.
const UNBOUNDED: f64 = 1e9;

/// Runs the command. What the program printed and how it ended is told whatever else fails.
pub fn run(cli: &Cli, args: &TuneArgs) -> Result<(), Failure> {
    // Before the program runs for nothing.
    limits::check_search()?;
    let store = open_store(args.db.as_ref())?;
    store.check_writable()?;
    let folder = work::folder()?;
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
        last.show(args)?;
        return finish(args, &document(&[], "", &last.trace), |_| {});
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
    let toolkit = session::toolkit(cli).ok();
    match verify::verify(toolkit.as_ref(), store, &last.trace, &last.modules) {
        Ok(verdicts) => tell(&verdicts),
        Err(error) => drop(Failure::from(error).report(false)),
    }
    let space = args.space();
    let asked = Asked {
        space: space.as_ref(),
        budget: args.budget,
        kernels: &args.kernel.kernels,
        may_round: args.stencil.fp.is_some(),
    };
    let modules = last.modules.clone();
    let tools = Tools {
        watch: &Told(cli),
        toolkit: toolkit.as_ref(),
        gpu: &gpu,
        modules: &modules,
    };
    let mut targets = targets(tools, &asked, &last.trace)?;
    let tried = targets.iter().filter(|t| t.is_tried()).count();
    if tried > 0 {
        let again = stdin::wanted_again();
        eprintln!("versions are tried for {}{again}", counted(tried, "kernel"));
        try_all(args, folder, &mut targets, last, tools)?;
    }
    last.show(args)?;
    if asked_to_end() {
        drop_all(&mut targets, "a signal asked the program to end");
    }
    let made = |target: &Target| target.winners(&facts);
    if targets.iter().any(|target| !made(target).is_empty()) {
        confirm(args, folder, &mut targets, &made, last)?;
    }
    let winners: Vec<Winner> = targets.iter().flat_map(made).collect();
    keep(store, &winners);
    if let Some(path) = &args.keep {
        let measured = (&targets[..], &last.trials[..]);
        let document = kept::document(measured, tools, &facts, !args.without_names);
        write_text(path, serde_json::to_string(&document))?;
    }
    finish(
        args,
        &document(&targets, &facts.name, &last.trace),
        |document| {
            print(document);
            super::trace::print_not_seen(&last.trace);
        },
    )
}

/// Page and document, or what people are told in its place.
fn finish(args: &TuneArgs, document: &Document, tell: impl Fn(&Document)) -> Result<(), Failure> {
    write_page(args.show.report.as_deref(), document)?;
    match &args.report_to {
        Some(path) => write_json(path, document)?,
        None if args.show.json => print_json(document)?,
        None => tell(document),
    }
    Ok(())
}

fn write_json(path: &Path, document: &impl serde::Serialize) -> Result<(), Failure> {
    write_text(path, serde_json::to_string_pretty(document))
}

fn write_text(path: &Path, text: serde_json::Result<String>) -> Result<(), Failure> {
    let text = text.map_err(|e| Failure::Internal(format!("a document that is no JSON: {e}")))?;
    write_atomically(path, text.as_bytes())
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
        words.env(caches::CUPY, caches::of_cupy(folder));
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
        let is_enough = beside.is_enough(targets, &seen.trace, &runs);
        if is_enough || next.as_secs_f64() > args.budget {
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
    words.env(caches::CUPY, caches::of_cupy(folder));
    look(&mut words, &modules, "trace")?;
    stdin::give(&mut words, true)?;
    eprintln!("the program runs as it is");
    let end = run_program(words)?;
    work::is_there(&modules).map_err(|why| failed_behind(end, why.into()))?;
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

/// Runs the program with the candidates until it ends by itself, and judges.
fn try_all(
    args: &TuneArgs,
    folder: &Path,
    targets: &mut [Target],
    seen: &mut Seen,
    tools: Tools<'_>,
) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::input(format!("`{}`: {e}", folder.display()));
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
        let mut program = command(&args.words)?;
        program.env(caches::CUPY, caches::of_cupy(folder));
        inject(&mut program, "try")?;
        stdin::give(&mut program, false)?;
        program.env("WARPWRIGHT_DIR", &work);
        program.env("WARPWRIGHT_BUILDER", std::process::id().to_string());
        let budget = match args.exhaustive {
            true => UNBOUNDED,
            false => args.budget,
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

/// The table goes to standard error: standard output is the program's.
fn print(document: &Document) {
    if document.kernels.is_empty() {
        eprintln!("no kernel was measured");
        return;
    }
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
            match &row.among {
                Some(among) => format!("{} where {among}", shortened(&row.name)),
                None => shortened(&row.name),
            },
        ]);
    }
    eprint!("{}", table.render(0));
    for row in &document.kernels {
        if let Some(edit) = &row.edit {
            eprintln!(
                "in the source: {}: {}",
                shortened(&row.name),
                edit.in_words()
            );
        }
    }
}
