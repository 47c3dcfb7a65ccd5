//! Where Warpwright keeps what it can make again: toolkits, versions, builds.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Overrides the place of the cache.
pub const CACHE_VARIABLE: &str = "WARPWRIGHT_CACHE";

/// A view of environment variables: what the process has, or what a test says.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The variables of this process; one that is set to nothing counts as not set.
pub(crate) fn process_environment(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The cache directory: `WARPWRIGHT_CACHE`, else `$XDG_CACHE_HOME/warpwright`, else
/// `$HOME/.cache/warpwright`; `None` where none of these is set. It need not exist.
pub fn cache_dir() -> Option<PathBuf> {
    cache_dir_in(&process_environment)
}

pub(crate) fn cache_dir_in(env: Environment) -> Option<PathBuf> {
    if let Some(path) = env(CACHE_VARIABLE) {
        return std::path::absolute(path).ok();
    }
    // The XDG base directory specification: a relative path is to be ignored.
    let absolute = |name| {
        env(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|base| base.join("warpwright"))
}

/// Writes a file so that another process sees all of it or nothing.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let parent = path.parent().ok_or(std::io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(parent)?;
    let mut file = tempfile::Builder::new()
        .prefix(".partial-")
        .tempfile_in(parent)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Opens a regular file. A pipe that stands in its place neither blocks the opening nor is read.
pub(crate) fn open_regular(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(std::io::ErrorKind::InvalidInput.into()),
    }
}

/// The contents of a regular file.
pub(crate) fn read_regular(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
