//! A folder to work in: nobody else may read what it holds, and what a killed process left is swept away by the next one.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Once;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

const PREFIX: &str = "warpwright-run-";
/// In the folder, and locked for as long as its process lives.
const LOCK: &str = "lock";
/// A folder so young may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// The folder, in the temporary one; it goes with the value. It holds a file `lock`.
#[derive(Debug)]
pub struct PrivateFolder {
    // Goes first: to remove the folder takes descriptors.
    _lock: File,
    folder: TempDir,
}

impl PrivateFolder {
    /// A new one. The first of a process sweeps.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> io::Result<PrivateFolder> {
        static SWEPT: Once = Once::new();
        let private = Permissions::from_mode(0o700);
        let mut made = tempfile::Builder::new();
        let folder = made.prefix(PREFIX).permissions(private).tempdir()?;
        let lock = File::create(folder.path().join(LOCK)).inspect_err(|_| {
            // To look into it takes descriptors, which may be what there are none of.
            let _ = fs::remove_dir(folder.path());
        })?;
        lock.lock()?;
        let made = PrivateFolder {
            _lock: lock,
            folder,
        };
        SWEPT.call_once(|| made.sweep());
        Ok(made)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes what this user's killed processes left.
    fn sweep(&self) {
        let Ok(own) = fs::symlink_metadata(self.path()).map(|data| data.uid()) else {
            return;
        };
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            // Temporary folders may hold thousands of others.
            if !name.to_string_lossy().starts_with(PREFIX) || path == self.path() {
                continue;
            }
            let Ok(data) = entry.metadata() else { continue };
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
