//! A directory of entries that name and check themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::dirs::{read_regular, write_atomically};

/// First bytes of an entry; the number changes with the format.
const MAGIC: &[u8; 8] = b"WWBUILD3";
/// Length of a SHA-256 digest in bytes.
const DIGEST: usize = 32;

/// The name of an entry, made from all that decides its contents. Each part goes in with its length, so
/// that parts cannot run together.
pub(super) struct Key(Sha256);

impl Key {
    pub fn new(kind: &str) -> Key {
        let key = Key(Sha256::new());
        key.with(MAGIC).with(kind.as_bytes())
    }

    pub fn with(mut self, part: &[u8]) -> Key {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
        self
    }

    pub fn name(self) -> String {
        crate::hex(&self.0.finalize())
    }
}

#[derive(Debug)]
pub(super) struct Store {
    dir: PathBuf,
    /// Bytes that the entries may take together.
    limit: u64,
    /// Bytes that the entries take, counted when first needed.
    used: Mutex<Option<u64>>,
}

impl Store {
    pub fn new(dir: PathBuf, limit: u64) -> Store {
        Store {
            dir,
            limit,
            used: Mutex::new(None),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        let (shard, rest) = name.split_at(2);
        self.dir.join(shard).join(rest)
    }

    /// The report and the file of an entry. A damaged one is thrown away.
    pub fn load<T: DeserializeOwned>(&self, name: &str) -> Option<(T, Vec<u8>)> {
        let path = self.path(name);
        let bytes = read_regular(&path).ok()?;
        let Some(entry) = decode(&bytes) else {
            let _ = fs::remove_file(&path);
            return None;
        };
        // The modification time is the time of the last use: eviction goes by it.
        if let Ok(file) = fs::File::options().write(true).open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(entry)
    }

    /// Keeps a report and a file, if there is room and the disk takes it.
    pub fn save<T: Serialize>(&self, name: &str, report: &T, file: &[u8]) {
        let Some(bytes) = encode(report, file) else {
            return;
        };
        let size = bytes.len() as u64;
        if size > self.limit || write_atomically(&self.path(name), &bytes).is_err() {
            return;
        }
        let Ok(mut used) = self.used.lock() else {
            return;
        };
        let total = match *used {
            Some(total) => total + size,
            None => self.entries().iter().map(|e| e.bytes).sum(),
        };
        *used = Some(if total > self.limit {
            self.evict()
        } else {
            total
        });
    }

    /// Removes the entries that were used longest ago until three quarters of the limit are taken;
    /// returns the bytes that remain.
    fn evict(&self) -> u64 {
        let mut entries = self.entries();
        entries.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
        let mut total = entries.iter().map(|e| e.bytes).sum::<u64>();
        for entry in entries {
            if total <= self.limit / 4 * 3 {
                break;
            }
            if fs::remove_file(&entry.path).is_ok() {
                total -= entry.bytes;
            }
        }
        total
    }

    fn entries(&self) -> Vec<Entry> {
        let list = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
        let files = list(&self.dir).flat_map(|shard| list(&shard.path()));
        files
            .filter_map(|file| Entry::of(file.path(), &file.metadata().ok()?))
            .collect()
    }
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Entry {
    fn of(path: PathBuf, data: &fs::Metadata) -> Option<Entry> {
        Some(Entry {
            path,
            bytes: data.len(),
            used: data.modified().ok()?,
        })
    }
}

/// Magic, digest of the rest, length of the report, the report as JSON, the file.
fn encode<T: Serialize>(report: &T, file: &[u8]) -> Option<Vec<u8>> {
    let report = serde_json::to_vec(report).ok()?;
    let mut payload = (report.len() as u64).to_le_bytes().to_vec();
    payload.extend_from_slice(&report);
    payload.extend_from_slice(file);
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&Sha256::digest(&payload));
    bytes.extend_from_slice(&payload);
    Some(bytes)
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, Vec<u8>)> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (digest, payload) = rest.split_at_checked(DIGEST)?;
    if Sha256::digest(payload).as_slice() != digest {
        return None;
    }
    let (length, rest) = payload.split_first_chunk::<8>()?;
    let (report, file) =
        rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((serde_json::from_slice(report).ok()?, file.to_vec()))
}
