//! A folder to work in: nobody else may read what it holds of a program, and what a killed command left is swept away by
//! the next one.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::signals::remove_at_end;
use crate::failure::Failure;

const PREFIX: &str = "warpwright-run-";
/// In the folder, and locked for as long as the command runs.
const LOCK: &str = "lock";
/// A folder so young may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// The folder; it goes with the value.
pub struct Work {
    folder: TempDir,
    _lock: File,
}

impl Work {
    /// A new one.
    pub fn new() -> Result<Work, Failure> {
        let failed = |e: std::io::Error| Failure::input(format!("no folder to work in: {e}"));
        let private = Permissions::from_mode(0o700);
        let mut made = tempfile::Builder::new();
        let folder = made.prefix(PREFIX).permissions(private).tempdir();
        let folder = folder.map_err(failed)?;
        remove_at_end(folder.path().to_owned());
        let lock = File::create(folder.path().join(LOCK)).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let work = Work {
            folder,
            _lock: lock,
        };
        work.sweep();
        Ok(work)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes what this user's killed commands left.
    fn sweep(&self) {
        let Ok(own) = fs::symlink_metadata(self.path()).map(|data| data.uid()) else {
            return;
        };
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let is_ours = name.to_string_lossy().starts_with(PREFIX) && path != self.path();
            let Some(data) = entry.metadata().ok().filter(|_| is_ours) else {
                continue;
            };
            if data.is_dir() && data.uid() == own && is_left(&path, &data) {
                let _ = fs::remove_dir_all(path);
            }
        }
    }
}

fn is_left(folder: &Path, data: &fs::Metadata) -> bool {
    let age = data
        .modified()
        .map(|at| SystemTime::now().duration_since(at));
    let is_old = matches!(age, Ok(Ok(age)) if age > YOUNG);
    let lock = File::options().write(true).open(folder.join(LOCK));
    is_old && lock.map_or(true, |lock| lock.try_lock().is_ok())
}
