//! What a path stands for.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Device and number of a file.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    let data = std::fs::metadata(path).ok()?;
    Some((data.dev(), data.ino()))
}

/// Is it `-`, which stands for stdin and stdout?
pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Is what is written there written on stdout?
pub fn is_stdout(path: &Path) -> bool {
    is_dash(path) || descriptor(path) == Some(1)
}

/// The number of the open file of this process that a path stands for (`/dev/stdout`, `/dev/fd/63`).
pub(crate) fn descriptor(path: &Path) -> Option<i32> {
    const MOST_LINKS: usize = 40;
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folder = std::fs::canonicalize(folder_of(&path)).ok()?;
        if folder.starts_with(&own) && folder.ends_with("fd") {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = folder.join(std::fs::read_link(&path).ok()?);
    }
    None
}

/// The folder that a path is in.
pub fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// What a path names behind symbolic links, where the last one may lead to a file that is yet to be made.
///
/// # Errors
/// Links that lead back to themselves, and folders that are none or cannot be looked into.
pub fn behind_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    loop {
        // Fails on a circle.
        match std::fs::canonicalize(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            known => return known,
        }
        match std::fs::read_link(&path) {
            Ok(to) => path = folder_of(&path).join(to),
            Err(_) => return Ok(path),
        }
    }
}

/// Where a file would come to be.
pub(crate) fn place(path: &Path) -> Option<PathBuf> {
    Some(
        std::fs::canonicalize(folder_of(path))
            .ok()?
            .join(path.file_name()?),
    )
}

/// A name that leads nowhere and that every file system takes; a kernel's can be anything.
pub fn file_name(name: &str) -> String {
    const LONGEST: usize = 200;
    let is_plain = |c: char| !(c == '/' || c == '\\' || c.is_control());
    if !name.is_empty()
        && name.len() <= LONGEST
        && !name.starts_with('.')
        && name.chars().all(is_plain)
    {
        return name.to_owned();
    }
    let digest = warpwright_driver::database::hash(&[name.as_bytes()]);
    let plain = name.trim_start_matches('.').replace(|c| !is_plain(c), "_");
    // The end says what it is.
    let keep = plain.char_indices().rev().take(80).last();
    let end = keep.map_or("", |(at, _)| &plain[at..]);
    format!("{}-{end}", &digest[..16])
}
