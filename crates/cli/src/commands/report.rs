//! `warpwright report`: the tables and plots of the documentation from result files.

use std::path::{Path, PathBuf};

use warpwright_report::ReportError;
use warpwright_report::tables::{Kind, Plan, Table};

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::terminal::document;
use warpwright_files::{self as files, write_atomically};

impl From<ReportError> for Failure {
    fn from(e: ReportError) -> Self {
        Failure::input(e.to_string())
    }
}

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    if let Some(plan) = &args.plan {
        return write_all(plan);
    }
    let named = Kind::ALL.into_iter().find(|k| k.name() == args.table);
    let kind = named.ok_or_else(|| {
        let names = Kind::ALL.map(Kind::name).join(", ");
        Failure::Usage(format!("--table {}: one of {names} is wanted", args.table))
    })?;
    let name = |path: &PathBuf| path.display().to_string();
    let table = Table {
        kind,
        results: args.results.iter().map(name).collect(),
        into: String::new(),
        goals: args.goals.as_ref().map(name),
    };
    // A name need not be text: the file is found by what its name looks like.
    let files: Vec<&PathBuf> = args.results.iter().chain(&args.goals).collect();
    let read = |shown: &str| {
        let file = files.iter().find(|file| name(file) == shown);
        read(file.map_or(Path::new(shown), |file| file))
    };
    document(&format!("{}\n", table.text(&[], &read)?.trim_end()));
    Ok(())
}

/// Every table of a plan, each in its file; the names in a plan are relative to the working folder.
fn write_all(plan: &Path) -> Result<(), Failure> {
    let name = plan.display().to_string();
    let plan = Plan::parse(&name, &files::text(plan)?)?;
    // A page is read and written; everything else is only read.
    let is_page = |name: &str| {
        let tables = &mut plan.tables.iter();
        tables.any(|t| t.into == name && t.kind != Kind::Figure)
    };
    let read = |name: &str| match is_page(name) {
        true => std::fs::read_to_string(name),
        false => read(Path::new(name)),
    };
    for (file, text) in plan.files(&read)? {
        write_atomically(Path::new(&file), text.as_bytes())?;
    }
    Ok(())
}

fn read(path: &Path) -> std::io::Result<String> {
    files::text(path).map_err(|e| std::io::Error::other(e.to_string()))
}
