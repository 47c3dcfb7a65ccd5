//! The rules of the house that a test can hold: which room may use which, what documents may
//! cite, and where numbers about GPUs may stand. The rules are in `tests/`; here is what several of them read.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::path::{Path, PathBuf};

/// All files of Rust below a folder, tests left out.
pub fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.file_name().is_some_and(|name| name == "tests") => {}
            true => sources(&path, found),
            false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
            false => {}
        }
    }
}
