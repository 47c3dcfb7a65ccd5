//! The folder that a command works in, which ends with it however it ends.

use warpwright_toolkit::PrivateFolder;

use crate::failure::Failure;
use crate::signals::remove_at_end;

/// A new one.
pub fn folder() -> Result<PrivateFolder, Failure> {
    super::limits::check()?;
    let folder = PrivateFolder::new();
    let folder = folder.map_err(|e| Failure::input(format!("no folder to work in: {e}")))?;
    remove_at_end(folder.path().to_owned());
    Ok(folder)
}
