//! What an installation consists of, file by file: written last, checked by the next run.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::dirs::open_regular;

/// Its name in the toolkit's directory. Where it is missing, there is no installation.
pub(crate) const NAME: &str = "installed.json";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Version of nvcc and ptxas.
    pub version: String,
    /// Digest of the pinned set that it was made from.
    pub pins: String,
    files: Vec<Item>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Item {
    path: PathBuf,
    bytes: u64,
    sha256: String,
}

impl Manifest {
    /// Lists everything below a directory.
    pub fn of(root: &Path, version: &str, pins: String) -> std::io::Result<Manifest> {
        let mut files = Vec::new();
        let mut pending = vec![PathBuf::new()];
        while let Some(dir) = pending.pop() {
            for entry in std::fs::read_dir(root.join(&dir))? {
                let entry = entry?;
                let path = dir.join(entry.file_name());
                if entry.file_type()?.is_dir() {
                    pending.push(path);
                } else {
                    let full = root.join(&path);
                    let bytes = std::fs::metadata(&full)?.len();
                    files.push(Item {
                        bytes,
                        sha256: sha256_of(&full)?,
                        path,
                    });
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Manifest {
            version: version.to_owned(),
            pins,
            files,
        })
    }

    pub fn load(root: &Path) -> Option<Manifest> {
        serde_json::from_slice(&std::fs::read(root.join(NAME)).ok()?).ok()
    }

    pub fn save(&self, root: &Path) -> std::io::Result<()> {
        crate::dirs::write_atomically(&root.join(NAME), &serde_json::to_vec(self)?)
    }

    /// The first file that is missing or differs.
    pub fn first_damage(&self, root: &Path) -> Option<&Path> {
        let intact = |item: &Item| {
            let path = root.join(&item.path);
            std::fs::metadata(&path).is_ok_and(|m| m.len() == item.bytes)
                && sha256_of(&path).is_ok_and(|found| found == item.sha256)
        };
        self.files
            .iter()
            .find(|item| !intact(item))
            .map(|item| item.path.as_path())
    }
}

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn sha256_of(path: &Path) -> std::io::Result<String> {
    let mut file = open_regular(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(crate::hex(&hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}
