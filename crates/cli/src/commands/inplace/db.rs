//! `warpwright db`: the store of winners.

use warpwright_autotune::program::verify_with;
use warpwright_autotune::store::{document, export, import, matching, open, remove};
use warpwright_winners::Store;
use warpwright_winners::store::Entry;

use super::end::ended_anyhow;
use super::watch::Told;
use crate::args::{Cli, DbAction, DbArgs};
use crate::commands::print_json;
use crate::failure::Failure;
use crate::session;

/// Runs the command.
pub fn run(cli: &Cli, args: &DbArgs) -> Result<(), Failure> {
    let told = &Told(cli);
    let store = open(args.db.as_ref(), told)?;
    match &args.action {
        DbAction::List { json } => show(&store, &store.all()?, true, *json),
        DbAction::Show { kernel, json } => show(&store, &matching(&store, kernel)?, false, *json),
        DbAction::Remove { kernel } => {
            eprintln!("{} removed", remove(&store, kernel)?);
            Ok(())
        }
        DbAction::Export { output } => Ok(export(&store, output, told)?),
        DbAction::Verify { program } => {
            let toolkit = || session::toolkit(cli).ok();
            ended_anyhow(match verify_with(&toolkit, &store, program, told) {
                Ok(true) => Ok(()),
                Ok(false) => Err(Failure::Quiet(5)),
                Err(error) => Err(error.into()),
            })
        }
        DbAction::Import { file, trust } => {
            let bytes = warpwright_files::contents(file)?;
            Ok(import(&store, (file, &bytes), *trust, told)?)
        }
    }
}

/// A table of all, or all of some.
fn show(store: &Store, entries: &[Entry], is_table: bool, json: bool) -> Result<(), Failure> {
    let document = document(store, entries);
    match (json, is_table) {
        (true, _) => return print_json(&document),
        (false, true) => print!("{}", document.table()),
        (false, false) => print!("{document}"),
    }
    for (file, why) in &document.unreadable {
        complain!("`{file}`: {why}");
    }
    Ok(())
}
