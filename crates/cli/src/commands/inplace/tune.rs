//! `warpwright tune -- PROGRAM ARGS`

use warpwright_autotune::document::Document;
use warpwright_autotune::program::{Run, Wanted};
use warpwright_autotune::store::open;
use warpwright_autotune::target::Asked;
use warpwright_files::write_atomically;
use warpwright_supervise::limits;

use super::document;
use super::end::{ended, ended_anyhow};
use super::watch::Told;
use crate::args::{Cli, TuneArgs};
use crate::commands::{json_text, write_page};
use crate::failure::Failure;
use crate::session;

/// Runs the command. What the program printed and how it ended is told whatever else fails.
pub fn run(cli: &Cli, args: &TuneArgs) -> Result<(), Failure> {
    limits::check_search()?;
    let store = open(args.db.as_ref(), &Told(cli))?;
    store.check_writable()?;
    let space = args.space();
    let wanted = Wanted {
        program: &args.words,
        asked: Asked {
            space: space.as_ref(),
            budget: args.budget,
            kernels: &args.kernel.kernels,
            may_round: args.stencil.fp.is_some(),
        },
        keep: args.keep.as_deref(),
        without_names: args.without_names,
        toolkit: &|| session::toolkit(cli).ok(),
        watch: &Told(cli),
    };
    let path = args.kernel.trace.as_deref();
    let name = path.map(|path| path.display().to_string());
    let trace = path.map(document::read).transpose()?;
    let mut run = match Run::see(&wanted, name.as_deref().zip(trace)) {
        Ok(run) => run,
        Err(error) => return ended_anyhow(Err(error.into())),
    };
    let tuned = run.tune(&wanted, &store).map_err(Failure::from);
    let told = tuned.and_then(|document| match document {
        Some(document) => finish(args, &document, &run),
        None => Ok(()),
    });
    let (end, written) = run.end();
    let written = written.map_err(|e| Failure::input(format!("standard output: {e}")));
    ended(end, written.and(told))
}

/// Page and document, or what people are told in its place: on standard error, since standard output is the program's.
fn finish(args: &TuneArgs, document: &Document, run: &Run) -> Result<(), Failure> {
    write_page(args.show.report.as_deref(), document)?;
    match &args.report_to {
        Some(path) => write_atomically(path, json_text(document)?.as_bytes())?,
        None if args.show.json => crate::terminal::json(&json_text(document)?),
        None if run.trace().gpu.is_some() => {
            eprint!("{document}");
            for why in run.trace().not_seen_in_words() {
                eprintln!("{why}");
            }
        }
        None => {}
    }
    Ok(())
}
