//! `warpwright gpu-selftest OUT`: planted faults on a real GPU, each of which must be isolated,
//! named and excluded. Writes what was found as JSON.

use warpwright_gpu::{Process, SelftestSize, WorkerCommand, selftest};

use crate::args::SelftestArgs;
use crate::failure::Failure;
use warpwright_files::write_atomically;
use warpwright_report::table::Table;

/// Runs the command.
pub fn run(args: &SelftestArgs) -> Result<(), Failure> {
    let scratch = tempfile::tempdir().map_err(|e| Failure::input(e.to_string()))?;
    let mut backend = Process::new(WorkerCommand::this_program(0)?);
    let found = selftest(
        &mut backend,
        scratch.path(),
        SelftestSize::Full,
        &mut |_| {},
    )?;
    let text =
        serde_json::to_string_pretty(&found).map_err(|e| Failure::Internal(e.to_string()))?;
    write_atomically(&args.output, text.as_bytes())?;
    let mut table = Table::new(&["case", "expected", "found", ""]);
    for case in &found.cases {
        let mark = if case.passed { "ok" } else { "WRONG" };
        table.row(vec![
            case.id.clone(),
            case.expected.clone(),
            case.found.clone(),
            mark.into(),
        ]);
    }
    print!("{}", table.render(0));
    if found.passed {
        Ok(())
    } else {
        Err(Failure::Quiet(1))
    }
}
