//! The store of winners: what is in it, and what goes in and out.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use warpwright_api::{Error, source_name};
use warpwright_diag::{Problem, count};
use warpwright_files::{behind_links, folder_of, write_atomically};
use warpwright_report::table::Table;
use warpwright_supervise::program::whole;
use warpwright_winners::store::{Entry, default_folder, export_of};
use warpwright_winners::{Kept, Standing, Store, Winner};

use crate::Watch;

/// The store: the named folder, or the user's.
///
/// # Errors
/// There is no place for one, or it cannot be looked at.
pub fn open(named: Option<&PathBuf>, watch: &dyn Watch) -> Result<Store, Error> {
    let folder = named
        .cloned()
        .or_else(|| default_folder(|name| std::env::var_os(name)));
    let folder = folder.ok_or_else(|| Problem::Missing {
        what: "there is no folder for winners (HOME is not set)".into(),
        mend: Some("set WARPWRIGHT_DB".into()),
    })?;
    let store = Store::at(whole(&folder));
    if let Some(exposure) = store.exposure()? {
        watch.warn(&format!(
            "`{}`: {exposure}; who can write it decides what programs run",
            store.folder().display()
        ));
    }
    Ok(store)
}

/// Adds an export, which `file` is; who trusts it uses its winners as they are.
///
/// # Errors
/// It is none.
pub fn import(
    store: &Store,
    (file, bytes): (&Path, &[u8]),
    trust: bool,
    watch: &dyn Watch,
) -> Result<(), Error> {
    let standing = match trust {
        true => Standing::Trusted,
        false => Standing::Imported,
    };
    if bytes.is_empty() {
        let text = format!("`{}` is empty: no export", file.display());
        return Err(Problem::Input(text).into());
    }
    let kept = store.import(bytes, standing)?;
    if kept.is_empty() {
        return Err(Problem::Input(format!(
            "`{}` has no winner: nothing is imported",
            file.display()
        ))
        .into());
    }
    let is_new = |kept: &&Kept| matches!(kept, Kept::Written(_));
    let new = kept.iter().filter(is_new).count();
    watch.tell(&format!("{} imported", count(new, "winner")));
    if new < kept.len() {
        let left = kept.len() - new;
        watch.tell(&format!("{left} left out: better ones are there"));
    }
    if new > 0 && !trust {
        watch.tell(
            "they are used once they are proved here: `warpwright db verify -- PROGRAM`, or its next `tune`",
        );
    }
    Ok(())
}

/// Removes the winners of a kernel; how many there were.
///
/// # Errors
/// There are none, or one cannot be removed.
pub fn remove(store: &Store, kernel: &str) -> Result<usize, Error> {
    let found = matching(store, kernel)?;
    for entry in &found {
        std::fs::remove_file(&entry.path)
            .map_err(|e| Problem::Input(format!("`{}`: {e}", entry.path.display())))?;
    }
    Ok(found.len())
}

/// Writes the winners that are used. What cannot be read is said, and an error behind the rest; where that is all, nothing
/// is written.
///
/// # Errors
/// It would be in the store, or not all can be read.
pub fn export(store: &Store, output: &Path, watch: &dyn Watch) -> Result<(), Error> {
    let own = store.folder().canonicalize().ok();
    let real = behind_links(output).unwrap_or_else(|_| output.to_owned());
    let places = [real.canonicalize(), folder_of(&real).canonicalize()];
    let is_inside = |place: &PathBuf| own.as_ref().is_some_and(|own| place.starts_with(own));
    if places.iter().flatten().any(is_inside) {
        return Err(Problem::Input(format!(
            "`{}` is in the store itself, where an export would be taken for a winner",
            output.display()
        ))
        .into());
    }
    let entries = store.all()?;
    if entries.is_empty() {
        return Err(Problem::Input(format!(
            "`{}` has no winner: nothing is exported",
            store.folder().display()
        ))
        .into());
    }
    let bad: Vec<_> = (entries.iter())
        .filter_map(|entry| Some((&entry.path, entry.winner.as_ref().err()?)))
        .collect();
    for (path, why) in &bad {
        watch.warn(&format!("`{}` is left out: {why}", path.display()));
    }
    if bad.len() == entries.len() {
        return Err(Problem::Input(
            "no winner of the store can be read: nothing is exported".to_owned(),
        )
        .into());
    }
    let read = entries
        .iter()
        .filter_map(|entry| entry.winner.as_ref().ok());
    match read.filter(|winner| !winner.standing.is_used()).count() {
        0 => {}
        waiting if waiting + bad.len() == entries.len() => {
            return Err(Problem::Input(
                "the store's winners are from elsewhere and not proved here: nothing is exported"
                    .to_owned(),
            )
            .into());
        }
        waiting => watch.warn(&format!(
            "{} from elsewhere, not proved here, left out",
            count(waiting, "winner")
        )),
    }
    write_atomically(output, &export_of(&entries))?;
    match bad.len() {
        0 => Ok(()),
        unreadable => Err(Problem::Input(format!(
            "`{}` has the other winners: {} could not be read",
            output.display(),
            count(unreadable, "file")
        )))?,
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
        name: source_name(&winner.symbol),
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

/// Winners, as JSON has them.
#[derive(Serialize)]
pub struct Document<'a> {
    schema: &'static str,
    folder: String,
    winners: Vec<Shown<'a>>,
    /// Files that are no winners, and why.
    pub unreadable: Vec<(String, String)>,
}

/// The document of entries.
pub fn document<'a>(store: &Store, entries: &'a [Entry]) -> Document<'a> {
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

impl Document<'_> {
    /// A table of them.
    pub fn table(&self) -> String {
        if self.winners.is_empty() {
            return "no winners yet: `warpwright tune -- PROGRAM` finds them\n".to_owned();
        }
        let mut table = Table::new(&[
            "kernel", "faster", "µs", "GPU", "standing", "launches", "recipe", "date", "name",
        ]);
        for winner in &self.winners {
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
        table.render(0)
    }
}

/// All that is known of them.
impl fmt::Display for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for winner in &self.winners {
            writeln!(f, "{} ({})", winner.name, winner.symbol)?;
            writeln!(f, "  code     {}", winner.kernel)?;
            writeln!(f, "  GPU      {}, driver {}", winner.gpu, winner.driver)?;
            writeln!(f, "  launches {}", launches(winner))?;
            writeln!(f, "  standing {}", winner.standing)?;
            writeln!(f, "  recipe   {}", winner.recipe)?;
            writeln!(f, "  proof    {}", winner.proof)?;
            writeln!(
                f,
                "  time     {:.2} µs, was {:.2} ({:.3}×), {}",
                winner.winner_ns as f64 * 1e-3,
                winner.original_ns as f64 * 1e-3,
                winner.speedup,
                winner.date
            )?;
            writeln!(
                f,
                "  file     {} ({} bytes of code)",
                winner.file, winner.cubin_bytes
            )?;
        }
        Ok(())
    }
}

fn launches(winner: &Shown<'_>) -> String {
    match winner.shape.as_str() {
        "same" => winner.guard.clone(),
        shape => format!("{} -> {shape}", winner.guard),
    }
}

/// Entries whose digest begins with the text, or whose symbol is it; of those that cannot be read their names count.
///
/// # Errors
/// There is none.
pub fn matching(store: &Store, kernel: &str) -> Result<Vec<Entry>, Error> {
    if kernel.is_empty() {
        return Err(Problem::Usage(
            "which kernel? The start of a digest, or a symbol (`db list` shows all)".into(),
        )
        .into());
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
        true => Err(Problem::Input(format!(
            "the store has no winner for `{kernel}` (`db list` shows all)"
        )))?,
        false => Ok(found),
    }
}
