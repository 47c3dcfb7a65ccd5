//! A large corpus of PTX from many producers, and the front end held against it.
//!
//! `warpwright-corpus build DIR` compiles the sources of this crate, the examples and generated ones with
//! every producer there is: [`plan`] says what, [`producers`] with what, [`build`] does it.
//! `warpwright-corpus check DIR` reads every `.ptx` file below a directory and checks the front end's
//! promises on it ([`check`]); [`table`] shows the outcome. `warpwright-corpus sass DIR` assembles that PTX
//! for every architecture and checks the binary level on it ([`sass`]).

pub mod build;
pub mod check;
pub mod directives;
pub mod plan;
pub mod producers;
pub mod sass;
pub mod table;
pub mod wrappers;

use std::path::{Path, PathBuf};

/// Why a corpus cannot be built or checked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A `// corpus:` line in a source is not understood.
    #[error("{file}: `{line}` is no corpus directive")]
    Directive {
        /// The source.
        file: String,
        /// The line.
        line: String,
    },
    /// A file could not be read or written.
    #[error("`{}`: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The index that `build` writes does not parse.
    #[error("`{}` is no corpus index: {source}", .path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// The parser's reason.
        source: serde_json::Error,
    },
    /// There is nothing to check.
    #[error("there is nothing to check below `{}`; run `warpwright-corpus build` first", .0.display())]
    Empty(PathBuf),
    /// The page for the figures has no place for them.
    #[error("`{}` has no place for the table", .0.display())]
    Page(PathBuf),
}

impl Error {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io {
            path: path.to_path_buf(),
            source,
        }
    }
}

/// Files below a directory that end in `.EXTENSION`, sorted; hidden directories are left out.
pub(crate) fn files_below(root: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).map_err(|e| Error::io(&dir, e))? {
            let path = entry.map_err(|e| Error::io(&dir, e))?.path();
            let hidden = path
                .file_name()
                .is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
            if path.is_dir() && !hidden {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
