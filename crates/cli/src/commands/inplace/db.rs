//! `warpwright db`: the store of winners.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;
use warpwright::trace::read;
use warpwright_autotune::{caches, verify};
use warpwright_diag::count;
use warpwright_supervise::program::{command, run as run_program, whole};
use warpwright_supervise::work;
use warpwright_winners::store::{Entry, default_folder, export_of};
use warpwright_winners::{Kept, Standing, Store, Winner};

use super::document::demangled;
use super::end::ended;
use super::trace::{look, nothing_was_seen};
use super::watch::tell;
use crate::args::{Cli, DbAction, DbArgs};
use crate::commands::print_json;
use crate::failure::Failure;
use crate::session;
use crate::threads;
use warpwright_files::{behind_links, folder_of, write_atomically};
use warpwright_report::table::Table;

/// The store: the named folder, or the user's.
pub fn store(named: Option<&PathBuf>) -> Result<Store, Failure> {
    let folder = named
        .cloned()
        .or_else(|| default_folder(|name| std::env::var_os(name)));
    let folder = folder.ok_or_else(|| Failure::Missing {
        what: "there is no folder for winners (HOME is not set)".into(),
        mend: Some("set WARPWRIGHT_DB".into()),
    })?;
    let store = Store::at(whole(&folder));
    if let Some(exposure) = store.exposure()? {
        complain!(
            "`{}`: {exposure}; who can write it decides what programs run",
            store.folder().display()
        );
    }
    Ok(store)
}

/// Runs the command.
pub fn run(cli: &Cli, args: &DbArgs) -> Result<(), Failure> {
    let store = store(args.db.as_ref())?;
    match &args.action {
        DbAction::List { json } => list(&store, *json),
        DbAction::Show { kernel, json } => show(&store, kernel, *json),
        DbAction::Remove { kernel } => {
            let found = matching(&store, kernel)?;
            for entry in &found {
                std::fs::remove_file(&entry.path)
                    .map_err(|e| Failure::input(format!("`{}`: {e}", entry.path.display())))?;
            }
            eprintln!("{} removed", found.len());
            Ok(())
        }
        DbAction::Export { output } => export(&store, output),
        DbAction::Verify { program } => verify_with(cli, &store, program),
        DbAction::Import { file, trust } => {
            let bytes = warpwright_files::contents(file)?;
            let standing = match trust {
                true => Standing::Trusted,
                false => Standing::Imported,
            };
            if bytes.is_empty() {
                return Err(Failure::input(format!(
                    "`{}` is empty: no export",
                    file.display()
                )));
            }
            let kept = store.import(&bytes, standing)?;
            if kept.is_empty() {
                return Err(Failure::input(format!(
                    "`{}` has no winner: nothing is imported",
                    file.display()
                )));
            }
            let is_new = |kept: &&Kept| matches!(kept, Kept::Written(_));
            let new = kept.iter().filter(is_new).count();
            eprintln!("{} imported", count(new, "winner"));
            if new < kept.len() {
                eprintln!("{} left out: better ones are there", kept.len() - new);
            }
            if new > 0 && !trust {
                eprintln!(
                    "they are used once they are proved here: `warpwright db verify -- PROGRAM`, or its next `tune`"
                );
            }
            Ok(())
        }
    }
}

/// Writes the winners that are used. What cannot be read is said, and an error behind the rest; where that is all, nothing
/// is written.
fn export(store: &Store, output: &Path) -> Result<(), Failure> {
    let own = store.folder().canonicalize().ok();
    let real = behind_links(output).unwrap_or_else(|_| output.to_owned());
    let places = [real.canonicalize(), folder_of(&real).canonicalize()];
    let is_inside = |place: &PathBuf| own.as_ref().is_some_and(|own| place.starts_with(own));
    if places.iter().flatten().any(is_inside) {
        return Err(Failure::input(format!(
            "`{}` is in the store itself, where an export would be taken for a winner",
            output.display()
        )));
    }
    let entries = store.all()?;
    if entries.is_empty() {
        return Err(Failure::input(format!(
            "`{}` has no winner: nothing is exported",
            store.folder().display()
        )));
    }
    let bad: Vec<_> = (entries.iter())
        .filter_map(|entry| Some((&entry.path, entry.winner.as_ref().err()?)))
        .collect();
    for (path, why) in &bad {
        complain!("`{}` is left out: {why}", path.display());
    }
    if bad.len() == entries.len() {
        return Err(Failure::input(
            "no winner of the store can be read: nothing is exported",
        ));
    }
    let read = entries
        .iter()
        .filter_map(|entry| entry.winner.as_ref().ok());
    match read.filter(|winner| !winner.standing.is_used()).count() {
        0 => {}
        waiting if waiting + bad.len() == entries.len() => {
            return Err(Failure::input(
                "the store's winners are from elsewhere and not proved here: nothing is exported",
            ));
        }
        waiting => complain!(
            "{} from elsewhere, not proved here, left out",
            count(waiting, "winner")
        ),
    }
    write_atomically(output, &export_of(&entries))?;
    match bad.len() {
        0 => Ok(()),
        unreadable => Err(Failure::input(format!(
            "`{}` has the other winners: {} could not be read",
            output.display(),
            count(unreadable, "file")
        ))),
    }
}

/// Runs a program for its modules, and proves what came from elsewhere against them.
fn verify_with(cli: &Cli, store: &Store, program: &[OsString]) -> Result<(), Failure> {
    store.check_writable()?;
    let folder = work::folder()?;
    let mut words = command(program)?;
    words.env(caches::CUPY, caches::of_cupy(folder.path()));
    look(&mut words, folder.path(), "trace")?;
    let end = run_program(words)?;
    let told = verify_seen(cli, store, program, folder.path());
    ended(end, told)
}

fn verify_seen(
    cli: &Cli,
    store: &Store,
    program: &[OsString],
    folder: &Path,
) -> Result<(), Failure> {
    caches::find_ptx(folder);
    let trace = read(folder, program, warpwright_gpu::utc_now())?;
    if trace.gpu.is_none() {
        nothing_was_seen(folder);
    }
    threads::settle_now();
    let toolkit = session::toolkit(cli).ok();
    let verdicts = verify::verify(toolkit.as_ref(), store, &trace, folder)?;
    match verdicts.is_empty() {
        true => eprintln!("no winner from elsewhere waits to be proved on this GPU"),
        false => tell(&verdicts),
    }
    match verdicts.iter().any(|verdict| verdict.outcome.is_err()) {
        true => Err(Failure::Quiet(5)),
        false => Ok(()),
    }
}

/// A winner as JSON, without its code.
#[derive(Serialize)]
struct Shown<'a> {
    file: String,
    kernel: &'a str,
    name: String,
    symbol: &'a str,
    gpu: &'a str,
    guard: String,
    shape: String,
    standing: &'static str,
    recipe: &'a str,
    proof: &'a str,
    original_ns: u64,
    winner_ns: u64,
    speedup: f64,
    driver: &'a str,
    date: &'a str,
    cubin_bytes: usize,
}

fn shown<'a>(entry: &Entry, winner: &'a Winner) -> Shown<'a> {
    Shown {
        file: entry.path.display().to_string(),
        kernel: &winner.kernel,
        name: demangled(&winner.symbol),
        symbol: &winner.symbol,
        gpu: &winner.gpu,
        guard: winner.guard.to_string(),
        shape: winner.shape.to_string(),
        standing: winner.standing.name(),
        recipe: &winner.recipe,
        proof: &winner.proof,
        original_ns: winner.original_ns,
        winner_ns: winner.winner_ns,
        speedup: winner.speedup(),
        driver: &winner.driver,
        date: &winner.date,
        cubin_bytes: winner.cubin.len(),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    folder: String,
    winners: Vec<Shown<'a>>,
    /// Files that are no winners, and why.
    unreadable: Vec<(String, String)>,
}

fn document<'a>(store: &Store, entries: &'a [Entry]) -> Document<'a> {
    let read = entries
        .iter()
        .filter_map(|e| Some(shown(e, e.winner.as_ref().ok()?)));
    let bad = entries.iter().filter_map(|e| {
        let why = e.winner.as_ref().err()?;
        Some((e.path.display().to_string(), why.to_string()))
    });
    Document {
        schema: "warpwright.db/2",
        folder: store.folder().display().to_string(),
        winners: read.collect(),
        unreadable: bad.collect(),
    }
}

fn list(store: &Store, json: bool) -> Result<(), Failure> {
    let entries = store.all()?;
    let document = document(store, &entries);
    if json {
        return print_json(&document);
    }
    let mut table = Table::new(&[
        "kernel", "faster", "µs", "GPU", "standing", "launches", "recipe", "date", "name",
    ]);
    for winner in &document.winners {
        table.row(vec![
            winner.kernel[..winner.kernel.len().min(12)].to_owned(),
            format!("{:.2}×", winner.speedup),
            format!("{:.1}", winner.winner_ns as f64 * 1e-3),
            winner.gpu.to_owned(),
            winner.standing.to_owned(),
            launches(winner),
            winner.recipe.to_owned(),
            winner.date.to_owned(),
            winner.name.clone(),
        ]);
    }
    match document.winners.is_empty() {
        true => println!("no winners yet: `warpwright tune -- PROGRAM` finds them"),
        false => print!("{}", table.render(0)),
    }
    for (file, why) in &document.unreadable {
        complain!("`{file}`: {why}");
    }
    Ok(())
}

fn launches(winner: &Shown<'_>) -> String {
    match winner.shape.as_str() {
        "same" => winner.guard.clone(),
        shape => format!("{} -> {shape}", winner.guard),
    }
}

/// Entries whose digest begins with the text, or whose symbol is it; of those that cannot be read their names count.
fn matching(store: &Store, kernel: &str) -> Result<Vec<Entry>, Failure> {
    if kernel.is_empty() {
        return Err(Failure::Usage(
            "which kernel? The start of a digest, or a symbol (`db list` shows all)".into(),
        ));
    }
    let entries = store.all()?.into_iter();
    let is_named = |entry: &Entry| {
        let name = entry.path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with(kernel))
    };
    let found: Vec<Entry> = entries
        .filter(|entry| match &entry.winner {
            Ok(winner) => winner.kernel.starts_with(kernel) || winner.symbol == kernel,
            Err(_) => is_named(entry),
        })
        .collect();
    match found.is_empty() {
        true => Err(Failure::input(format!(
            "the store has no winner for `{kernel}` (`db list` shows all)"
        ))),
        false => Ok(found),
    }
}

fn show(store: &Store, kernel: &str, json: bool) -> Result<(), Failure> {
    let entries = matching(store, kernel)?;
    let document = document(store, &entries);
    if json {
        return print_json(&document);
    }
    for winner in &document.winners {
        println!("{} ({})", winner.name, winner.symbol);
        println!("  code     {}", winner.kernel);
        println!("  GPU      {}, driver {}", winner.gpu, winner.driver);
        println!("  launches {}", launches(winner));
        println!("  standing {}", winner.standing);
        println!("  recipe   {}", winner.recipe);
        println!("  proof    {}", winner.proof);
        println!(
            "  time     {:.2} µs, was {:.2} ({:.3}×), {}",
            winner.winner_ns as f64 * 1e-3,
            winner.original_ns as f64 * 1e-3,
            winner.speedup,
            winner.date
        );
        println!(
            "  file     {} ({} bytes of code)",
            winner.file, winner.cubin_bytes
        );
    }
    for (file, why) in &document.unreadable {
        complain!("`{file}`: {why}");
    }
    Ok(())
}
