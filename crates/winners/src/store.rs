//! A folder of winners, one file each, named by the kernel's digest and by what else it depends on.
//!
//! A file is written aside and renamed, so readers see the old record or the new one. What cannot be read is
//! an entry of [`Store::all`] with its reason, and no winner.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::record::{RecordError, Winner};
use crate::sha256;

/// Characters of the kernel's digest in a file's name.
const NAMED: usize = 32;
const ENDING: &str = "winner";

/// The store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or the folder.
    #[error("`{path}`: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An exported file.
    #[error("record {number} of the export: {source}")]
    Export {
        /// Counted from 1.
        number: usize,
        /// Why.
        source: RecordError,
    },
}

/// The folder.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// One file of it.
#[derive(Debug)]
pub struct Entry {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub winner: Result<Winner, RecordError>,
}

impl Store {
    /// The store in this folder, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Store {
        let folder = folder.into();
        Store { folder }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The kernels that have winners: the starts of their digests (see [`key`]). An empty or missing folder
    /// has none.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn keys(&self) -> Result<BTreeSet<String>, StoreError> {
        let names = self.files()?;
        let stems = names.iter().filter_map(|path| path.file_name()?.to_str());
        Ok(stems
            .filter_map(|name| name.get(..NAMED))
            .map(str::to_owned)
            .collect())
    }

    /// The winners for a kernel on a GPU; files that cannot be read are passed over.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn of_kernel(&self, kernel: &str, gpu: &str) -> Result<Vec<Winner>, StoreError> {
        let mut found = Vec::new();
        for path in self.files()? {
            let name = path.file_name().and_then(|n| n.to_str());
            if name.is_some_and(|n| n.starts_with(key(kernel)))
                && let Ok(bytes) = read(&path)
                && let Ok((winner, _)) = Winner::read(&bytes)
                && winner.kernel == kernel
                && winner.gpu == gpu
            {
                found.push(winner);
            }
        }
        Ok(found)
    }

    /// Everything, by file name.
    ///
    /// # Errors
    /// The folder or a file cannot be read.
    pub fn all(&self) -> Result<Vec<Entry>, StoreError> {
        let files = self.files()?.into_iter();
        files
            .map(|path| {
                let bytes = read(&path).map_err(at(&path))?;
                let winner = Winner::read(&bytes).map(|(winner, _)| winner);
                Ok(Entry { path, winner })
            })
            .collect()
    }

    /// Keeps a winner, in the place of an older one for the same kernel, GPU and launch class. After an error
    /// the store is as it was.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(&self, winner: &Winner) -> Result<PathBuf, StoreError> {
        fs::create_dir_all(&self.folder).map_err(at(&self.folder))?;
        let path = self.folder.join(file_name(winner));
        write_aside(&path, &winner.to_bytes(), true).map_err(at(&path))?;
        Ok(path)
    }

    /// Everything that can be read, as one file for [`Store::import`].
    ///
    /// # Errors
    /// The folder or a file cannot be read.
    pub fn export(&self) -> Result<Vec<u8>, StoreError> {
        let winners = self
            .all()?
            .into_iter()
            .filter_map(|entry| entry.winner.ok());
        Ok(winners.flat_map(|winner| winner.to_bytes()).collect())
    }

    /// Adds the winners of an export, all or (if the file is damaged) none; returns how many there were.
    ///
    /// # Errors
    /// The file is damaged, or a record cannot be written.
    pub fn import(&self, bytes: &[u8]) -> Result<usize, StoreError> {
        let mut winners = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let number = winners.len() + 1;
            let failed = |source| StoreError::Export { number, source };
            let (winner, after) = Winner::read(rest).map_err(failed)?;
            winners.push(winner);
            rest = after;
        }
        for winner in &winners {
            self.put(winner)?;
        }
        Ok(winners.len())
    }

    fn files(&self) -> Result<Vec<PathBuf>, StoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(at(&self.folder)(e)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(at(&self.folder))?.path();
            if path.extension().is_some_and(|ending| ending == ENDING) {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

/// A pipe of that name would block for ever.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::metadata(path)?.is_file() {
        true => fs::read(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")),
    }
}

/// The start of a digest, as file names have it.
pub fn key(kernel: &str) -> &str {
    kernel.get(..NAMED).unwrap_or(kernel)
}

fn file_name(winner: &Winner) -> String {
    let rest = sha256(format!("{}\n{}", winner.gpu, winner.class).as_bytes());
    format!("{}-{}.{ENDING}", key(&winner.kernel), &rest[..16])
}

/// Writes a file aside and renames it: whoever reads finds all of it or nothing.
///
/// # Errors
/// It cannot be written; nothing is left behind.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_aside(path, bytes, false)
}

/// `lasting`: it is on the disk before it has its name.
fn write_aside(path: &Path, bytes: &[u8], lasting: bool) -> io::Result<()> {
    // Writers in other containers and on other hosts have the same process numbers.
    let number = RandomState::new().hash_one(path);
    let aside = path.with_extension(format!("part-{}-{number:016x}", std::process::id()));
    let mut file = fs::File::create_new(&aside)?;
    let written = (|| {
        file.write_all(bytes)?;
        if lasting {
            file.sync_all()?;
        }
        fs::rename(&aside, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

fn at(path: &Path) -> impl Fn(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io {
        path: path.clone(),
        source,
    }
}

/// Where winners are kept: `WARPWRIGHT_DB`, else a folder of the user's data.
pub fn default_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("WARPWRIGHT_DB").or_else(|| {
        let data =
            set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
        Some(data?.join("warpwright/winners"))
    })
}
