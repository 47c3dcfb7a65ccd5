//! The folder that a command works in, which ends with it however it ends.

use std::path::Path;

use crate::signals::WorkFolder;
use warpwright_diag::Problem;

/// A new one.
pub fn folder() -> Result<WorkFolder, Problem> {
    crate::limits::check()?;
    WorkFolder::new().map_err(|e| Problem::Input(format!("no folder to work in: {e}")))
}

/// Is it there behind a program's run?
///
/// # Errors
/// The program, or somebody else, has removed it.
pub fn is_there(folder: &Path) -> Result<(), Problem> {
    match folder.is_dir() {
        true => Ok(()),
        false => Err(Problem::Input(format!(
            "`{}`, where the program was noted, is gone: was the temporary folder emptied?",
            folder.display()
        ))),
    }
}
