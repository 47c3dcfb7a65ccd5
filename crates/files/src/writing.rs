//! Writing results without ever leaving half a file.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use warpwright_diag::Problem;
use warpwright_winners::aside::Aside;

use crate::paths::{behind_links, descriptor, file_name, folder_of, identity, is_stdout};
use crate::reading::{NOBODY, was_read};

/// Who writes on standard output, where anybody else does so as well.
static STDOUT: OnceLock<fn(&[u8])> = OnceLock::new();

/// From now on results that go to standard output are written by this.
pub fn write_stdout_with(write: fn(&[u8])) {
    let _ = STDOUT.set(write);
}

/// What is to be written, not yet in its place: dropped, it leaves nothing behind.
pub enum Staged {
    /// A file beside the place where it belongs.
    File(Aside, PathBuf),
    /// For a device or pipe, which nothing may take the place of.
    Stream(Vec<u8>, PathBuf),
    /// For a file that is open already.
    Opened(Vec<u8>, i32),
    /// For stdout.
    Stdout(Vec<u8>),
}

pub(crate) fn is_a_folder(path: &Path) -> Problem {
    Problem::Input(format!(
        "`{}` is a folder: name the file in it that is to be written",
        path.display()
    ))
}

/// Writes a file beside the place where it belongs (behind symbolic links). [`Staged::commit`] puts it there.
///
/// # Errors
/// [`Problem::Input`]: it is a folder or an input, or nothing can be written there.
pub fn stage(path: &Path, bytes: &[u8]) -> Result<Staged, Problem> {
    let fail = |e: std::io::Error| cannot_write(path, &e);
    if is_stdout(path) {
        return Ok(Staged::Stdout(bytes.to_vec()));
    }
    if let Some(number) = descriptor(path) {
        return Ok(Staged::Opened(bytes.to_vec(), number));
    }
    if path.is_dir() {
        return Err(is_a_folder(path));
    }
    if was_read(path) {
        return Err(is_an_input(path));
    }
    let path = behind_links(path).map_err(fail)?;
    if std::fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Ok(Staged::Stream(bytes.to_vec(), path));
    }
    let file = written(&path, bytes).map_err(fail)?;
    Ok(Staged::File(file, path))
}

impl Staged {
    /// Gives it the permissions of another file: an executable stays one.
    ///
    /// # Errors
    /// [`Problem::Input`]: the permissions cannot be read or set.
    pub fn like(&mut self, file: &Path) -> Result<(), Problem> {
        let Staged::File(staged, path) = self else {
            return Ok(());
        };
        let copied = std::fs::metadata(file)
            .and_then(|data| staged.file().set_permissions(data.permissions()));
        copied.map_err(|e| cannot_write(path, &e))
    }

    /// Puts the file in its place, whole.
    ///
    /// # Errors
    /// [`Problem::Input`]: it cannot be written, or nobody reads it.
    pub fn commit(self) -> Result<(), Problem> {
        match self {
            Staged::File(file, path) => {
                let placed = file.commit(&path);
                placed.map_err(|e| cannot_write(&path, &e))?;
            }
            Staged::Stream(bytes, path) => {
                let written = open_stream(&path).and_then(|mut stream| stream.write_all(&bytes));
                written.map_err(|e| cannot_write(&path, &e))?;
            }
            Staged::Opened(bytes, number) => {
                let written = opened(number).and_then(|mut file| file.write_all(&bytes));
                let path = PathBuf::from(format!("/dev/fd/{number}"));
                written.map_err(|e| cannot_write(&path, &e))?;
            }
            Staged::Stdout(bytes) => match STDOUT.get() {
                Some(write) => write(&bytes),
                None => {
                    let written = std::io::stdout().write_all(&bytes);
                    written.map_err(|e| cannot_write(Path::new("-"), &e))?;
                }
            },
        }
        Ok(())
    }
}

/// The kind of the error says enough; its text names the temporary file.
pub(crate) fn cannot_write(path: &Path, e: &std::io::Error) -> Problem {
    let why = match e.kind() {
        ErrorKind::NotFound => {
            format!("there is no folder `{}`", folder_of(path).display())
        }
        ErrorKind::BrokenPipe => "nobody reads it".to_owned(),
        _ if is_without_reader(e) => "nobody reads it".to_owned(),
        kind => kind.to_string(),
    };
    Problem::Input(format!("cannot write `{}`: {why}", path.display()))
}

/// Writes a file beside its place, so that readers see the old or the new contents and an interruption leaves nothing
/// behind.
///
/// # Errors
/// As of [`stage`] and [`Staged::commit`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    stage(path, bytes)?.commit()
}

/// An open file of this process once more.
#[allow(unsafe_code)]
pub(crate) fn opened(number: i32) -> std::io::Result<File> {
    // SAFETY: asked for and not used: that it is not open is an error.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(File::from(rustix::io::dup(file)?))
}

/// Pipes with names that results are for, opened before any work: with device and number.
static PIPES: Mutex<Vec<((u64, u64), File)>> = Mutex::new(Vec::new());

/// Opens a pipe with a name for what is written at the end, so that its reader waits.
pub(crate) fn open_pipe(path: &Path, pipe: (u64, u64)) -> std::io::Result<()> {
    let begun = Instant::now();
    let file = loop {
        match open_stream(path) {
            Err(e) if is_without_reader(&e) && begun.elapsed() < NOBODY => {
                std::thread::sleep(Duration::from_millis(2));
            }
            done => break done?,
        }
    };
    let pipes = PIPES.lock();
    let mut pipes = pipes.unwrap_or_else(PoisonError::into_inner);
    pipes.push((pipe, file));
    Ok(())
}

fn is_without_reader(e: &std::io::Error) -> bool {
    e.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

/// Opens a device or pipe for writing; a pipe that nobody reads from is no place to write to.
fn open_stream(path: &Path) -> std::io::Result<File> {
    if let Some(own) = identity(path) {
        let pipes = PIPES.lock();
        let mut pipes = pipes.unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = pipes.iter().position(|(pipe, _)| *pipe == own) {
            return Ok(pipes.swap_remove(at).1);
        }
    }
    let nonblocking = rustix::fs::OFlags::NONBLOCK;
    let flags = nonblocking.bits() as i32;
    let file = File::options().write(true).custom_flags(flags).open(path)?;
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags.difference(nonblocking))?;
    Ok(file)
}

pub(crate) fn is_an_input(path: &Path) -> Problem {
    Problem::Input(format!(
        "`{}` is an input; the result needs a file of its own",
        path.display()
    ))
}

/// Makes a folder for results.
///
/// # Errors
/// [`Problem::Input`]: it cannot be made.
pub fn make_folder(folder: &Path) -> Result<(), Problem> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Problem::Input(format!("cannot make `{}`: {e}", folder.display())))
}

/// Writes a file into a folder and nowhere else: a link of that name is replaced, not followed.
///
/// # Errors
/// [`Problem::Input`]: a file of that name is an input, or nothing can be written there.
pub fn write_into(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Problem> {
    let path = folder.join(file_name(name));
    if was_read(&path) {
        return Err(is_an_input(&path));
    }
    let fail = |e: std::io::Error| cannot_write(&path, &e);
    let file = written(&path, bytes).map_err(fail)?;
    file.commit(&path).map_err(fail)
}

/// A file, not yet in its place: whoever may read or write what it replaces may do so, and everybody may read a new one.
fn written(path: &Path, bytes: &[u8]) -> std::io::Result<Aside> {
    const ACCESS: u32 = 0o777;
    let mut aside = Aside::new_in(folder_of(path))?;
    aside.file().write_all(bytes)?;
    let replaced = std::fs::symlink_metadata(path).ok();
    let mode = match replaced.filter(std::fs::Metadata::is_file) {
        Some(replaced) => replaced.permissions().mode() & ACCESS,
        None => 0o644,
    };
    aside
        .file()
        .set_permissions(std::fs::Permissions::from_mode(mode))?;
    Ok(aside)
}
