//! A program that has stopped may be told to go on alone, and this process, which has stopped with it, would not hear of it. A
//! process in a group of its own looks at the program meanwhile, and wakes this one.

use std::mem::{size_of_val, zeroed};
use std::sync::atomic::{AtomicI32, Ordering};

use nix::libc;

/// The last one.
static LAST: AtomicI32 = AtomicI32::new(0);
/// How often it looks.
const INTERVAL: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};
/// A process's state follows its name, which may have brackets; both stand within so many bytes.
const BEGINNING: usize = 512;

/// Does something while one looks at a program.
#[allow(unsafe_code)]
pub fn beside(program: i32, stop: impl FnOnce()) {
    let path = format!("/proc/{program}/stat\0");
    let parent = std::process::id() as i32;
    // SAFETY: the child makes calls alone that need no other thread.
    let waker = unsafe { libc::fork() };
    if waker == 0 {
        // SAFETY: a path that ends in a zero.
        unsafe { watch(parent, path.as_ptr().cast()) }
    }
    LAST.store(waker, Ordering::SeqCst);
    stop();
    if waker > 0 {
        // SAFETY: a child that nobody else waits for.
        unsafe {
            libc::kill(waker, libc::SIGKILL);
            libc::waitpid(waker, std::ptr::null_mut(), 0);
        }
    }
}

/// Is it one of these that says that it goes on?
pub fn is_by(sender: i32) -> bool {
    sender > 0 && sender == LAST.load(Ordering::SeqCst)
}

/// Wakes the parent when the program has not stopped any more, or is gone, until the parent ends this: it may be about to
/// stop only now.
///
/// # Safety
/// In a process of one thread; the path ends in a zero.
#[allow(unsafe_code)]
unsafe fn watch(parent: i32, path: *const libc::c_char) -> ! {
    // SAFETY: calls without memory, or with values of this function's own.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::setpgid(0, 0);
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        while libc::getppid() == parent {
            libc::nanosleep(&INTERVAL, std::ptr::null_mut());
            if !has_stopped(path) {
                libc::kill(parent, libc::SIGCONT);
            }
        }
        libc::_exit(0)
    }
}

/// # Safety
/// The path ends in a zero.
#[allow(unsafe_code)]
unsafe fn has_stopped(path: *const libc::c_char) -> bool {
    let mut text = [0_u8; BEGINNING];
    // SAFETY: the caller's path, and a buffer of its size.
    let length = unsafe {
        let file = libc::open(path, libc::O_RDONLY);
        let length = libc::read(file, text.as_mut_ptr().cast(), size_of_val(&text));
        libc::close(file);
        length
    };
    let text = text.get(..length.max(0).unsigned_abs()).unwrap_or_default();
    let name = text.iter().rposition(|&byte| byte == b')');
    let state = name.and_then(|end| text.get(end + 2));
    matches!(state, Some(b'T' | b't'))
}
