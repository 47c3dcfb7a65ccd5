//! Behind what a program has written, a line of ours begins on a line of its own. Whether the program's last one has an end is
//! seen in files, and need not be at terminals. In pipes and sockets nobody sees it, once it is read: there it is joined.

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use nix::libc;
use rustix::fs::{FileType, OFlags, SeekFrom, fcntl_getfl, fstat, seek};

/// What is to be written first.
pub fn beginning(to: BorrowedFd<'_>) -> Vec<u8> {
    let kind = fstat(to).map(|data| FileType::from_raw_mode(data.st_mode));
    let last = match kind {
        Ok(FileType::RegularFile) => last_of_file(to),
        Ok(FileType::CharacterDevice) => return across(to),
        _ => None,
    };
    match last {
        None | Some(b'\n') => Vec::new(),
        Some(_) => vec![b'\n'],
    }
}

/// The byte before the place that is written to next.
fn last_of_file(to: BorrowedFd<'_>) -> Option<u8> {
    let here = match fcntl_getfl(to).ok()?.contains(OFlags::APPEND) {
        true => u64::try_from(fstat(to).ok()?.st_size).ok()?,
        false => seek(to, SeekFrom::Current(0)).ok()?,
    };
    let mut byte = [0];
    let file = File::open(format!("/proc/self/fd/{}", to.as_raw_fd())).ok()?;
    let count = file.read_at(&mut byte, here.checked_sub(1)?).ok()?;
    (count == 1).then_some(byte[0])
}

/// As many spaces as a terminal's line has, and back: they reach into the next line wherever the line does not begin.
#[allow(unsafe_code)]
fn across(to: BorrowedFd<'_>) -> Vec<u8> {
    // SAFETY: zeros are a size, which is filled where there is a terminal.
    let columns = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        libc::ioctl(to.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size);
        usize::from(size.ws_col)
    };
    let terminal = std::env::var("TERM").unwrap_or_default();
    if columns == 0 || matches!(&*terminal, "" | "dumb") {
        return Vec::new();
    }
    let mut all = vec![b' '; columns];
    all.push(b'\r');
    all
}
