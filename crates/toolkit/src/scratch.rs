//! A private temporary directory that disappears with the value.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dirs::read_regular;
use crate::error::ToolError;
use crate::private::PrivateFolder;

pub(crate) struct Scratch {
    // In this order: the directory is gone before it counts as gone.
    _private: PrivateFolder,
    dir: PathBuf,
    _counted: Counted,
}

static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// How many temporary directories and running programs there are.
pub(crate) fn alive() -> usize {
    ALIVE.load(Ordering::SeqCst)
}

/// One of them.
pub(crate) struct Counted;

impl Counted {
    pub fn new() -> Self {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Scratch {
    pub fn new() -> Result<Self, ToolError> {
        let counted = Counted::new();
        let failed = |e| ToolError::io(&std::env::temp_dir(), e);
        let private = PrivateFolder::new().map_err(failed)?;
        // What tools write stands alone.
        let dir = private.path().join("files");
        std::fs::create_dir(&dir).map_err(failed)?;
        Ok(Scratch {
            _private: private,
            dir,
            _counted: counted,
        })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, ToolError> {
        let path = self.path(name);
        std::fs::write(&path, bytes).map_err(|e| ToolError::io(&path, e))?;
        Ok(path)
    }

    /// The file's bytes; none where the tool wrote no file.
    pub fn read_if_there(&self, path: &Path) -> Result<Vec<u8>, ToolError> {
        match read_regular(path) {
            Ok(bytes) => Ok(bytes),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(ToolError::io(path, e)),
        }
    }
}
