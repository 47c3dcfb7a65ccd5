//! Files that somebody else has named: regular ones are read, up to a size. To open a device may do something, and a pipe gives
//! once what it has, or blocks for ever.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file, if it is a regular one.
///
/// # Errors
/// It is not there, or cannot be read.
pub fn open(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    if !fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut options = OpenOptions::new();
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = options.read(true).custom_flags(nonblocking).open(path)?;
    // It may be another one by now.
    let data = file.metadata()?;
    Ok(data.is_file().then_some((file, data)))
}

/// What is in it; none of one with more bytes.
///
/// # Errors
/// It cannot be read, or there is no memory for it.
pub fn content(file: File, data: &Metadata, most: u64) -> io::Result<Option<Vec<u8>>> {
    if data.len() > most {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let room = bytes.try_reserve_exact(data.len() as usize);
    room.map_err(|_| io::ErrorKind::OutOfMemory)?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
