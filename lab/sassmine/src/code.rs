//! The files of a corpus.

use std::path::{Path, PathBuf};

use crate::Error;

/// One cubin.
pub struct Cubin {
    /// The file.
    pub bytes: Vec<u8>,
}

/// All cubins among `paths`, folders searched through, in the order of their names.
pub fn find_all(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        find(path, &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let failed = |error| Error::File(path.to_owned(), error);
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?.path();
        if entry.is_dir() || entry.extension().is_some_and(|e| e == "cubin") {
            find(&entry, files)?;
        }
    }
    Ok(())
}

/// Reads one cubin.
pub fn read(path: &Path) -> Result<Cubin, Error> {
    let bytes = std::fs::read(path).map_err(|error| Error::File(path.to_owned(), error))?;
    Ok(Cubin { bytes })
}
