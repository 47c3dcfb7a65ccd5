//! `warpwright report`: the tables and plots of the documentation from result files.

use std::path::{Path, PathBuf};

use warpwright_report::ReportError;
use warpwright_report::tables::{Kind, Plan, Table};

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::input::write_atomically;

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
    println!("{}", table.text(&[], &read)?.trim_end());
    Ok(())
}

/// Every table of a plan, each in its file; the names in a plan are relative to the working folder.
fn write_all(plan: &Path) -> Result<(), Failure> {
    let name = plan.display().to_string();
    let text = std::fs::read_to_string(plan)
        .map_err(|e| Failure::input(format!("cannot read `{name}`: {e}")))?;
    for (file, text) in Plan::parse(&name, &text)?.files(&read)? {
        write_atomically(Path::new(&file), text.as_bytes())?;
    }
    Ok(())
}

fn read(name: &str) -> std::io::Result<String> {
    std::fs::read_to_string(name)
}
