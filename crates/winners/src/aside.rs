//! Files that get their name once they are whole: whoever reads finds all of it, or what was there before.
//!
//! Where the file system can do so, a file has no name at all while it is written: a writer that is killed leaves nothing. Where it
//! has one it is locked meanwhile: what is not goes with the next writer.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

/// How the endings of files begin that are being written.
const PART: &str = "part-";
/// A file that was written to so shortly ago may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);
/// One that was not for so long is nobody's, where none can be locked.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A file that is being written beside the place where it belongs; dropped, it leaves nothing. Only its owner may read it.
#[derive(Debug)]
pub struct Aside {
    file: File,
    folder: PathBuf,
    /// Where it is meanwhile, if it must be somewhere.
    part: Option<PathBuf>,
}

impl Aside {
    /// An empty one in a folder.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub fn new_in(folder: &Path) -> io::Result<Aside> {
        let (file, part) = match nameless(folder) {
            Some(file) => (file, None),
            None => {
                sweep(folder);
                let part = part_in(folder);
                let mut options = OpenOptions::new();
                let named = options.write(true).create_new(true).mode(0o600);
                (named.open(&part)?, Some(part))
            }
        };
        // Some file systems have no locks.
        let _ = file.try_lock();
        Ok(Aside {
            file,
            folder: folder.to_owned(),
            part,
        })
    }

    /// What is written to, and has permissions.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its name, in this folder.
    ///
    /// # Errors
    /// It cannot have it; nothing is left behind.
    pub fn commit(mut self, path: &Path) -> io::Result<()> {
        if self.part.is_none() {
            match link(&self.file, path) {
                // Only a name can take another one's place.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                done => return done,
            }
            let part = part_in(&self.folder);
            link(&self.file, &part)?;
            self.part = Some(part);
        }
        if let Some(part) = &self.part {
            fs::rename(part, path)?;
        }
        self.part = None;
        Ok(())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}

/// A file without a name, where it can get one later.
fn nameless(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?);
    fs::metadata(opened(&file)).is_ok().then_some(file)
}

fn opened(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    let follow = AtFlags::SYMLINK_FOLLOW;
    Ok(linkat(CWD, opened(file), CWD, path, follow)?)
}

fn part_in(folder: &Path) -> PathBuf {
    // Writers in other containers and on other hosts have the same process numbers.
    let number = RandomState::new().hash_one(folder);
    let process = std::process::id();
    folder.join(format!(".warpwright.{PART}{process}-{number:016x}"))
}

/// Removes what killed writers left.
pub fn sweep(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let path = entry.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let is_part = ending.is_some_and(|ending| ending.starts_with(PART));
        if is_part && entry.metadata().is_ok_and(|data| is_left(&path, &data)) {
            let _ = fs::remove_file(path);
        }
    }
}

fn is_left(part: &Path, data: &fs::Metadata) -> bool {
    let at = data.modified().ok();
    let Some(age) = at.and_then(|at| SystemTime::now().duration_since(at).ok()) else {
        return false;
    };
    if !data.is_file() || age < YOUNG {
        return false;
    }
    match File::options()
        .write(true)
        .open(part)
        .map(|file| file.try_lock())
    {
        Ok(Ok(())) => true,
        Ok(Err(TryLockError::WouldBlock)) => false,
        Ok(Err(TryLockError::Error(_))) | Err(_) => age > ABANDONED,
    }
}
