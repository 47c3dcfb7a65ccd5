//! Reading what the user names.

use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use warpwright_api::{Error, Input};
use warpwright_diag::{Problem, printable};

use crate::paths::{identity, is_dash};

/// The name of what comes through the pipe.
pub const STDIN: &str = "standard input";

/// Larger files are refused: no compiler makes such PTX, and spans are 32 bits wide.
const LARGEST_INPUT: u64 = 1 << 30;
/// The same for devices and pipes, which do not say how much they hold.
const LARGEST_STREAM: u64 = 1 << 28;
/// How long a pipe at whose other end nobody is, and one whose writer is silent, is waited for.
pub(crate) const NOBODY: Duration = Duration::from_secs(1);
const SILENT_WRITER: Duration = Duration::from_secs(60);

/// Device and number of every file that was read here: none of them is ever written, nor is a header of one.
static READ: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
/// Was it read here, or by a compiler?
pub(crate) fn was_read(path: &Path) -> bool {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(file) = identity(path) else {
        return false;
    };
    let is_header = |header: &PathBuf| identity(header) == Some(file);
    read.contains(&file) || warpwright_toolkit::files_read().iter().any(is_header)
}

/// The bytes of a file that the user names, which becomes an input: nothing can be written over it.
///
/// # Errors
/// [`Problem::Input`]: it cannot be read, is a folder, or is too large.
pub fn contents(path: &Path) -> Result<Vec<u8>, Problem> {
    contents_within(path, LARGEST_INPUT)
}

/// The same, with a limit in bytes.
///
/// # Errors
/// As of [`contents`].
pub fn contents_within(path: &Path, limit: u64) -> Result<Vec<u8>, Problem> {
    let name = path.display();
    let fail = |e: std::io::Error| Problem::Input(format!("cannot read `{name}`: {e}"));
    if is_dash(path) {
        let limit = limit.min(LARGEST_STREAM);
        let bytes = drain(std::io::stdin().lock().take(limit + 1), Writer::Other).map_err(fail)?;
        return match bytes.len() as u64 > limit {
            true => Err(Problem::Input("stdin holds more than 256 MiB".to_owned())),
            false => Ok(bytes),
        };
    }
    // A pipe without a writer would block the opening for ever.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path);
    let file = file.map_err(fail)?;
    let data = file.metadata().map_err(fail)?;
    if data.is_dir() {
        return Err(Problem::Input(format!("`{name}` is a folder")));
    }
    let limit = match data.is_file() {
        true => {
            let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
            read.push((data.dev(), data.ino()));
            limit
        }
        false => limit.min(LARGEST_STREAM),
    };
    let too_large = || Problem::Input(format!("`{name}` is larger than {} MiB", limit >> 20));
    if data.len() > limit {
        return Err(too_large());
    }
    let writer = Writer::of(&file, &data);
    let bytes = drain(file.take(limit + 1), writer).map_err(fail)?;
    match bytes.len() as u64 > limit {
        true => Err(too_large()),
        false => Ok(bytes),
    }
}

/// Who fills what is read.
#[derive(PartialEq)]
enum Writer {
    /// Nobody that could be waited for: of a file or device, some of which have nothing to read at times.
    Nobody,
    /// Of a pipe with a name, who may not be there yet.
    Fifo,
    /// Of a socket or standard input, or at a terminal.
    Other,
}

impl Writer {
    fn of(file: &File, data: &std::fs::Metadata) -> Writer {
        match data.file_type() {
            kind if kind.is_fifo() => Writer::Fifo,
            kind if kind.is_socket() || file.is_terminal() => Writer::Other,
            _ => Writer::Nobody,
        }
    }
}

/// Reads to the end, and no longer than a writer may take.
fn drain(mut file: impl Read, writer: Writer) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let mut last = Instant::now();
    loop {
        let pause = match file.read(&mut buffer) {
            Ok(0) => writer == Writer::Fifo && bytes.is_empty() && last.elapsed() < NOBODY,
            Ok(n) => {
                bytes.extend_from_slice(&buffer[..n]);
                last = Instant::now();
                continue;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::WouldBlock && writer != Writer::Nobody => {
                match last.elapsed() < SILENT_WRITER {
                    true => true,
                    false => return Err(e),
                }
            }
            Err(e) => return Err(e),
        };
        if !pause {
            return Ok(bytes);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The same as text.
///
/// # Errors
/// As of [`contents`], and where it is not UTF-8.
pub fn text(path: &Path) -> Result<String, Problem> {
    String::from_utf8(contents(path)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Problem::Input(format!(
            "`{}` is not text: byte {at} is not UTF-8",
            path.display()
        ))
    })
}

/// Reads FILE and detects its level, by content first and by ending where that says nothing.
///
/// # Errors
/// As of [`contents`] and [`Input::of_file`].
pub fn read(path: &Path) -> Result<Input, Error> {
    let bytes = contents(path)?;
    match is_dash(path) {
        true => Input::new(STDIN, bytes),
        false => {
            let name = printable(&path.display().to_string());
            Input::of_file(name, path, bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has nothing to read.
    struct Silent;

    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(ErrorKind::WouldBlock.into())
        }
    }

    #[test]
    fn nobody_is_waited_for_at_a_file() {
        let began = Instant::now();
        let read = drain(Silent, Writer::Nobody).map_err(|e| e.kind());
        assert_eq!(read, Err(ErrorKind::WouldBlock));
        assert!(began.elapsed() < SILENT_WRITER);
    }
}
