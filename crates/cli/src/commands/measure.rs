//! `warpwright measure`: a file of candidates in, a file of measurements out, for `tune --import`.

use warpwright_autotune::session::measure_job;
use warpwright_files::{text, write_atomically};

use super::inplace::watch::Told;
use crate::args::{Cli, MeasureArgs};
use crate::failure::Failure;

/// Runs the command.
pub fn run(cli: &Cli, args: &MeasureArgs) -> Result<(), Failure> {
    let name = args.job.display().to_string();
    let job = (&*name, &*text(&args.job)?);
    let export = measure_job(job, (args.budget, args.device), &Told(cli))?;
    let text = serde_json::to_string(&export).map_err(|e| Failure::Internal(e.to_string()))?;
    Ok(write_atomically(&args.output, text.as_bytes())?)
}
