//! The files of a corpus.

use std::path::{Path, PathBuf};

use warpwright_sass::elf::Elf;
use warpwright_sass::function::{Calls, Code};

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

/// From where to where.
#[derive(clap::Args)]
pub struct Files {
    /// The cubin.
    input: PathBuf,
    /// The cubin with other control fields.
    output: PathBuf,
}

impl Files {
    /// Writes the cubin with other code; gives back what `change` says of each function, line by line.
    pub fn rewrite(
        &self,
        mut change: impl FnMut(&mut Code) -> Result<String, String>,
    ) -> Result<String, Error> {
        let Files { input, output } = self;
        let bad = |error: String| Error::Input(input.clone(), error);
        let mut elf = Elf::parse(&read(input)?.bytes).map_err(|error| bad(error.to_string()))?;
        let mut out = Vec::new();
        for kernel in elf.kernels().map_err(|error| bad(error.to_string()))? {
            let code = Code::new(&elf, &kernel, Calls::Followed);
            let mut code = code.map_err(|error| bad(error.to_string()))?;
            let said = change(&mut code).map_err(bad)?;
            elf.set_code(&kernel, code.instructions())
                .map_err(|error| bad(error.to_string()))?;
            out.push(format!("{}: {said}", kernel.name));
        }
        let bytes = elf.write().map_err(|error| bad(error.to_string()))?;
        std::fs::write(output, bytes).map_err(|error| Error::File(output.clone(), error))?;
        Ok(out.join("\n"))
    }
}
