//! `warpwright db`: the store of winners.

use std::path::PathBuf;

use serde::Serialize;
use warpwright_diag::count;
use warpwright_winners::store::{Entry, default_folder};
use warpwright_winners::{Store, StoreError, Winner};

use super::document::demangled;
use crate::args::{DbAction, DbArgs};
use crate::commands::print_json;
use crate::failure::Failure;
use crate::input::write_atomically;
use warpwright_report::table::Table;

impl From<StoreError> for Failure {
    fn from(e: StoreError) -> Self {
        Failure::input(e.to_string())
    }
}

/// The store: the named folder, or the user's.
pub fn store(named: Option<&PathBuf>) -> Result<Store, Failure> {
    let folder = named
        .cloned()
        .or_else(|| default_folder(|name| std::env::var_os(name)));
    folder.map(Store::at).ok_or_else(|| Failure::Missing {
        what: "there is no folder for winners (HOME is not set)".into(),
        mend: Some("set WARPWRIGHT_DB".into()),
    })
}

/// Runs the command.
pub fn run(args: &DbArgs) -> Result<(), Failure> {
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
        DbAction::Export { output } => write_atomically(output, &store.export()?),
        DbAction::Import { file } => {
            let bytes = crate::input::contents(file)?;
            eprintln!("{} imported", count(store.import(&bytes)?, "winner"));
            Ok(())
        }
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
    class: String,
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
        class: winner.class.to_string(),
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
        schema: "warpwright.db/1",
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
        "kernel", "faster", "µs", "GPU", "launches", "recipe", "date", "name",
    ]);
    for winner in &document.winners {
        table.row(vec![
            winner.kernel[..winner.kernel.len().min(12)].to_owned(),
            format!("{:.2}×", winner.speedup),
            format!("{:.1}", winner.winner_ns as f64 * 1e-3),
            winner.gpu.to_owned(),
            winner.class.clone(),
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

/// Entries whose digest begins with the text, or whose symbol is it.
fn matching(store: &Store, kernel: &str) -> Result<Vec<Entry>, Failure> {
    let entries = store.all()?.into_iter();
    let found: Vec<Entry> = entries
        .filter(|entry| {
            let winner = entry.winner.as_ref();
            winner.is_ok_and(|w| w.kernel.starts_with(kernel) || w.symbol == kernel)
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
        println!("  launches {}", winner.class);
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
    Ok(())
}
