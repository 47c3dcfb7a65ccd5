//! A folder of winners, one file each, named by the kernel's digest and by what else it depends on.
//!
//! A file is written aside and renamed, so readers see the old record or the new one. What cannot be read is
//! an entry of [`Store::all`] with its reason, and no winner. What came from elsewhere and was not looked at yet has an
//! ending of its own, so that whoever launches winners does not even open it.
//!
//! Whoever can write the folder decides what is launched: one that everybody can write is refused.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, statat};

use crate::aside::{Aside, sweep};
use crate::record::{MOST_BYTES, RecordError, Standing, Winner};
use crate::sha256;
use crate::{export, plain};

/// Characters of the kernel's digest in a file's name.
const NAMED: usize = 32;
const USED: &str = "winner";
const UNUSED: &str = "imported";
/// As many files of one kernel are read, the latest ones: a program waits for it.
const MOST_OF_KERNEL: usize = 64;

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
    /// An exported file as a whole.
    #[error("the export: {0}")]
    Head(RecordError),
    /// An export of a later version.
    #[error("the export was written by a later version (form {0})")]
    LaterExport(u32),
    /// Everybody can change what is in it.
    #[error("everybody can write `{0}`, and so decide what programs run: chmod o-w")]
    Exposed(PathBuf),
    /// A winner that could not be read again.
    #[error("the winner for `{symbol}`: {source}")]
    Record {
        /// Of which kernel.
        symbol: String,
        /// Why.
        source: RecordError,
    },
}

/// Who else can write a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exposure {
    /// Its group.
    #[error("its group can write it (chmod g-w)")]
    Group,
    /// Its owner, who is another user.
    #[error("it belongs to user {0}")]
    Owner(u32),
}

/// What became of a winner that was to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It is in this file.
    Written(PathBuf),
    /// There is a better one for the same launches.
    Better(PathBuf),
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

/// The names of files with winners that may be used, by the starts of their kernels' digests.
#[derive(Debug, Clone, Default)]
pub struct Index(BTreeMap<String, Vec<OsString>>);

impl Index {
    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many kernels have some.
    pub fn kernels(&self) -> usize {
        self.0.len()
    }

    /// Files of a kernel.
    pub fn of(&self, kernel: &str) -> &[OsString] {
        self.0.get(key(kernel)).map_or(&[], Vec::as_slice)
    }
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

    /// Who else can write it, or put another folder in its place; nobody where it does not exist.
    ///
    /// # Errors
    /// [`StoreError::Exposed`]: it, a folder that it lies in, or one of a link on the way to it.
    pub fn exposure(&self) -> Result<Option<Exposure>, StoreError> {
        exposure_at(&self.folder)
    }

    /// The winners that may be used, as far as names tell. An empty or missing folder has none.
    ///
    /// # Errors
    /// The folder cannot be read, or everybody can write it.
    pub fn index(&self) -> Result<Index, StoreError> {
        let mut index = Index::default();
        for name in self.names()? {
            let start = name.to_str().and_then(|name| name.get(..NAMED));
            let Some(start) = start.filter(|_| has_ending(&name, USED)) else {
                continue;
            };
            match index.0.get_mut(start) {
                Some(names) => names.push(name),
                None => drop(index.0.insert(start.to_owned(), vec![name])),
            }
        }
        Ok(index)
    }

    /// The winners that may be used for a kernel, on whatever GPU: [`in_order`]. Files that cannot be read are passed
    /// over, and of very many the oldest.
    pub fn of(&self, index: &Index, kernel: &str) -> Vec<Winner> {
        let names = newest(&self.folder, index.of(kernel));
        let read = names.filter_map(|name| read(&self.folder.join(name)).ok());
        let own = read.filter(|winner| winner.kernel == kernel && winner.standing.is_used());
        in_order(own.collect())
    }

    /// Everything, by file name.
    ///
    /// # Errors
    /// The folder cannot be read, or everybody can write it.
    pub fn all(&self) -> Result<Vec<Entry>, StoreError> {
        let entry = |path: PathBuf| Entry {
            winner: read(&path),
            path,
        };
        let names = self.names()?.into_iter();
        Ok(names.map(|name| entry(self.folder.join(name))).collect())
    }

    /// Finds out whether winners can be kept, before somebody works for them.
    ///
    /// # Errors
    /// They cannot.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        self.make()?;
        let mut probe = Aside::new_in(&self.folder).map_err(at(&self.folder))?;
        let written = probe.file().write_all(&[0; 4096]);
        written.map_err(at(&self.folder))
    }

    fn make(&self) -> Result<(), StoreError> {
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(&self.folder).map_err(at(&self.folder))?;
        self.exposure().map(|_| ())
    }

    /// Keeps a winner, in the place of an older one for the same kernel, GPU and launches. After an error
    /// the store is as it was.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(&self, winner: &Winner) -> Result<PathBuf, StoreError> {
        let bytes = winner.to_bytes();
        if bytes.len() as u64 > MOST_BYTES {
            return Err(StoreError::Record {
                symbol: winner.symbol.clone(),
                source: RecordError::TooLarge(bytes.len() as u64),
            });
        }
        self.make()?;
        sweep(&self.folder);
        let path = self.folder.join(file_name(winner));
        write_aside(&path, &bytes, true).map_err(at(&path))?;
        self.share(&path);
        Ok(path)
    }

    /// The same, unless there is a better one for the same launches: what was measured here is better than what came
    /// from elsewhere, and of both kinds what takes less of the original's time.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, winner: &Winner) -> Result<Kept, StoreError> {
        let path = self.folder.join(file_name(winner));
        match read(&path) {
            Ok(known) if is_better(&known, winner) => Ok(Kept::Better(path)),
            _ => self.put(winner).map(Kept::Written),
        }
    }

    /// A winner that was looked at gets its new standing, or goes where a better one is.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn promote(&self, entry: &Path, winner: &Winner) -> Result<Kept, StoreError> {
        let kept = self.keep(winner)?;
        let (Kept::Written(path) | Kept::Better(path)) = &kept;
        if path != entry {
            fs::remove_file(entry).map_err(at(entry))?;
        }
        Ok(kept)
    }

    /// Who may read the folder may read its files.
    fn share(&self, path: &Path) {
        let folder = fs::metadata(&self.folder);
        let mode = folder.map_or(0, |data| data.mode() & 0o044);
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o600 | mode));
    }

    /// Everything that can be read and is used here, as one file for [`Store::import`].
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn export(&self) -> Result<Vec<u8>, StoreError> {
        Ok(export_of(&self.all()?))
    }

    /// Adds the winners of an export with this standing, all or (if the file is damaged) none. None takes the place of a
    /// better one.
    ///
    /// # Errors
    /// The file is damaged, or a record cannot be written.
    pub fn import(&self, bytes: &[u8], standing: Standing) -> Result<Vec<Kept>, StoreError> {
        let winners = export::winners(bytes)?.into_iter();
        let kept = winners.map(|winner| self.keep(&Winner { standing, ..winner }));
        kept.collect()
    }

    /// Of its files, in order.
    fn names(&self) -> Result<Vec<OsString>, StoreError> {
        self.exposure()?;
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(at(&self.folder)(e)),
        };
        // One that cannot be told is passed over: the rest is there.
        let names = entries.flatten().map(|entry| entry.file_name());
        let is_own = |name: &OsString| [USED, UNUSED].iter().any(|end| has_ending(name, end));
        let mut names: Vec<OsString> = names.filter(is_own).collect();
        names.sort_unstable();
        Ok(names)
    }
}

/// What an export of these entries holds: the winners among them that may be used.
pub fn export_of(entries: &[Entry]) -> Vec<u8> {
    let winners = entries
        .iter()
        .filter_map(|entry| entry.winner.as_ref().ok());
    let used = winners.filter(|winner| winner.standing.is_used());
    let plain = used.map(|winner| Winner {
        standing: Standing::Measured,
        ..winner.clone()
    });
    export::to_bytes(&plain.collect::<Vec<_>>())
}

/// Who else can write what stands at a path, or put another thing there.
fn exposure_at(path: &Path) -> Result<Option<Exposure>, StoreError> {
    const OTHERS: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let Ok(whole) = path.canonicalize() else {
        return Ok(None);
    };
    let (folders, links) = folders_to(path);
    // Who has a link in a sticky folder can make it anew.
    let own = |link: &PathBuf| fs::symlink_metadata(link).ok();
    let mut found = links.iter().filter_map(own).find_map(|data| other(&data));
    for folder in folders {
        let Ok(data) = fs::metadata(&folder) else {
            continue;
        };
        // In a sticky folder only owners rename and remove; add they all may.
        let is_it = folder.canonicalize().is_ok_and(|known| known == whole);
        let is_safe = !is_it && data.mode() & STICKY != 0;
        if data.mode() & OTHERS != 0 && !is_safe {
            return Err(StoreError::Exposed(folder));
        }
        found = found.or(exposure_of(&data, is_it, is_safe));
    }
    Ok(found)
}

/// It belongs to another user than this one and the administrator.
fn other(data: &fs::Metadata) -> Option<Exposure> {
    let own = [rustix::process::geteuid().as_raw(), 0];
    (!own.contains(&data.uid())).then(|| Exposure::Owner(data.uid()))
}

/// Folders whose writers decide what stands at a path, which is the first: it and those above it, the same for each link on
/// the way; and these links.
fn folders_to(path: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    /// As many links as the kernel follows.
    const MOST_LINKS: usize = 40;
    let mut left = vec![std::path::absolute(path).unwrap_or_else(|_| path.to_owned())];
    let (mut folders, mut links) = (Vec::<PathBuf>::new(), Vec::new());
    while let Some(path) = left.pop() {
        for folder in path.ancestors().filter(|f| !f.as_os_str().is_empty()) {
            if folders.iter().any(|known| known == folder) {
                continue;
            }
            if let (Ok(to), true) = (fs::read_link(folder), links.len() < MOST_LINKS) {
                let rest = path.strip_prefix(folder).unwrap_or(Path::new(""));
                let parent = folder.parent().unwrap_or(Path::new("/"));
                left.push(parent.join(to).join(rest));
                links.push(folder.to_owned());
            } else {
                folders.push(folder.to_owned());
            }
        }
    }
    (folders, links)
}

/// A folder above the store may belong to its owner's own group, as homes do on many systems.
fn exposure_of(data: &fs::Metadata, is_store: bool, is_safe: bool) -> Option<Exposure> {
    const GROUP: u32 = 0o020;
    let is_private = !is_store && (data.gid() == data.uid() || is_safe);
    let is_of_group = data.mode() & GROUP != 0 && !is_private;
    other(data).or(is_of_group.then_some(Exposure::Group))
}

/// Of a name, and not all of it.
fn has_ending(name: &OsStr, wanted: &str) -> bool {
    let before = name.as_bytes().strip_suffix(wanted.as_bytes());
    before.is_some_and(|before| before.len() > 1 && before.ends_with(b"."))
}

/// Is the first one to stay where the second one would be?
fn is_better(known: &Winner, new: &Winner) -> bool {
    let is_here = |winner: &Winner| winner.standing == Standing::Measured;
    match (is_here(known), is_here(new)) {
        (true, false) => true,
        (false, true) => false,
        // What another driver was measured with says nothing of this one.
        (true, true) if known.driver != new.driver => false,
        _ => known.by_time(new).is_le(),
    }
}

/// Winners in the order in which they are tried: those that were measured here, then those from elsewhere, whatever time
/// they claim; among each, one for launches of another one before that one, then by time, and of several for the same
/// launches the best alone.
pub fn in_order(mut winners: Vec<Winner>) -> Vec<Winner> {
    let tie = |winner: &Winner| (winner.gpu.clone(), sha256(&winner.cubin));
    let is_foreign = |winner: &Winner| winner.standing != Standing::Measured;
    winners.sort_by(|a, b| {
        let order = is_foreign(a).cmp(&is_foreign(b)).then(a.by_time(b));
        order.then_with(|| tie(a).cmp(&tie(b)))
    });
    let mut ordered: Vec<Winner> = Vec::new();
    for winner in winners {
        let is_known = |known: &Winner| known.gpu == winner.gpu && known.guard == winner.guard;
        if ordered.iter().any(is_known) {
            continue;
        }
        let is_wider = |known: &Winner| {
            is_foreign(known) == is_foreign(&winner) && known.guard.covers(&winner.guard)
        };
        let place = ordered.iter().position(is_wider).unwrap_or(ordered.len());
        ordered.insert(place, winner);
    }
    ordered
}

/// The latest of some files of a folder.
fn newest<'n>(folder: &Path, names: &'n [OsString]) -> impl Iterator<Item = &'n OsString> {
    // By their names in the folder: its path is walked once.
    let opened = (names.len() > MOST_OF_KERNEL).then(|| fs::File::open(folder).ok());
    let opened = opened.flatten();
    let written = |name: &OsString| {
        let data = statat(opened.as_ref()?, name, AtFlags::empty()).ok()?;
        Some((data.st_mtime, data.st_mtime_nsec))
    };
    let mut dated: Vec<_> = names.iter().map(|name| (written(name), name)).collect();
    let latest =
        |a: &(_, &OsString), b: &(_, &OsString)| Ord::cmp(&b.0, &a.0).then_with(|| a.1.cmp(b.1));
    if dated.len() > MOST_OF_KERNEL {
        dated.select_nth_unstable_by(MOST_OF_KERNEL, latest);
        dated.truncate(MOST_OF_KERNEL);
        dated.sort_unstable_by(latest);
    }
    dated.into_iter().map(|(_, name)| name)
}

/// Who has not the folder may have a record in it where a group fills it.
fn is_foreign(path: &Path, record: &fs::Metadata) -> bool {
    const GROUP: u32 = 0o020;
    let folder = || fs::metadata(path.parent()?).ok();
    let is_own = |folder: fs::Metadata| folder.uid() == record.uid() || folder.mode() & GROUP != 0;
    other(record).is_some() && !folder().is_some_and(is_own)
}

/// Leads a link to where nobody else can write but who can write the folder?
fn is_trusted(link: &Path) -> bool {
    let Ok(found) = exposure_at(link) else {
        return false;
    };
    let folder = || link.parent().and_then(|folder| exposure_at(folder).ok());
    found.is_none() || folder() == Some(found)
}

/// A record of a file: a regular one of bounded size that nobody can write who cannot write the folder.
fn read(path: &Path) -> Result<Winner, RecordError> {
    let unreadable = |e: io::Error| RecordError::Unreadable(e.kind());
    let is_link = fs::symlink_metadata(path).map_err(unreadable)?.is_symlink();
    let found = plain::open(path).map_err(unreadable)?;
    let (file, data) = found.ok_or(RecordError::NoFile)?;
    if is_link && !is_trusted(path) {
        return Err(RecordError::Linked);
    }
    if data.mode() & 0o002 != 0 {
        return Err(RecordError::Exposed);
    }
    if is_foreign(path, &data) {
        return Err(RecordError::OfOther(data.uid()));
    }
    let bytes = plain::content(file, &data, MOST_BYTES).map_err(unreadable)?;
    Winner::whole(bytes.ok_or(RecordError::TooLarge(data.len()))?)
}

/// The start of a digest, as file names have it.
pub fn key(kernel: &str) -> &str {
    kernel.get(..NAMED).unwrap_or(kernel)
}

fn file_name(winner: &Winner) -> String {
    let rest = sha256(format!("{}\n{}", winner.gpu, winner.guard).as_bytes());
    let ending = match winner.standing.is_used() {
        true => USED,
        false => UNUSED,
    };
    format!("{}-{}.{ending}", key(&winner.kernel), &rest[..16])
}

/// Writes a file aside and renames it: whoever reads finds all of it or nothing. Only its owner may read it.
///
/// # Errors
/// It cannot be written; nothing is left behind.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_aside(path, bytes, false)
}

/// `lasting`: it is on the disk before it has its name.
fn write_aside(path: &Path, bytes: &[u8], lasting: bool) -> io::Result<()> {
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
    let mut aside = Aside::new_in(folder.unwrap_or(Path::new(".")))?;
    aside.file().write_all(bytes)?;
    if lasting {
        aside.file().sync_all()?;
    }
    aside.commit(path)
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
