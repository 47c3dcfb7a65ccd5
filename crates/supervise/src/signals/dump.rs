//! A program whose memory was written down (a core) has a mark for that in its wait status, and the kernel sets it for a process
//! whose own memory it writes down. So this process has the kernel write its own: no more than a page, in a folder that goes
//! behind this process, or to the program that takes cores here. Where it would go to a place for all cores it could take that of
//! the program's: there is no mark then.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Read, Result, pipe};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::Path;

use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use warpwright_toolkit::PrivateFolder;

use super::{hold, set};

/// The least bytes that the kernel begins to write (`ELF_EXEC_PAGESIZE` of x86-64).
const LEAST: u64 = 4096;

/// From now on nothing is written down of this process.
#[allow(unsafe_code)]
pub fn prevent() {
    // SAFETY: a call without memory.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
}

/// From now on this little is. This process is about to end.
///
/// # Errors
/// There is no place for it.
pub fn prepare() -> Result<()> {
    let pattern = fs::read("/proc/sys/kernel/core_pattern")?;
    let (_, most) = getrlimit(Resource::RLIMIT_CORE)?;
    setrlimit(Resource::RLIMIT_CORE, LEAST.min(most), most)?;
    // No kind of memory.
    fs::write("/proc/self/coredump_filter", "0")?;
    match pattern.first() {
        // A program's input, or a socket's.
        Some(b'|' | b'@') => Ok(()),
        Some(b'/') | None => Err(ErrorKind::Unsupported.into()),
        Some(_) => {
            let folder = PrivateFolder::new()?;
            std::env::set_current_dir(folder.path())?;
            removed_behind(folder.path())?;
            // It is locked until this process ends.
            std::mem::forget(folder);
            Ok(())
        }
    }
}

/// Has a folder removed behind this process.
#[allow(unsafe_code)]
fn removed_behind(folder: &Path) -> Result<()> {
    let (reader, writer) = pipe()?;
    // SAFETY: what the child calls needs no other thread: the C library's heap is whole behind a fork.
    match unsafe { libc::fork() } {
        -1 => Err(Error::last_os_error()),
        0 => {
            drop(writer);
            remove_at_end(reader.into(), folder)
        }
        // Closed by this process's end.
        _ => {
            let _ = writer.into_raw_fd();
            Ok(())
        }
    }
}

/// Waits until there is nobody who could write, and removes the folder.
#[allow(unsafe_code)]
fn remove_at_end(reader: std::os::fd::OwnedFd, folder: &Path) -> ! {
    hold(libc::SIG_BLOCK, &set(None));
    let own = reader.as_raw_fd() as u32;
    // SAFETY: calls without memory. Nobody is to wait for the end of what this process does not use.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, own.saturating_sub(1), 0);
        libc::syscall(libc::SYS_close_range, own + 1, u32::MAX, 0);
    }
    let _ = File::from(reader).read(&mut [0]);
    let _ = fs::remove_dir_all(folder);
    // SAFETY: as above.
    unsafe { libc::_exit(0) }
}
