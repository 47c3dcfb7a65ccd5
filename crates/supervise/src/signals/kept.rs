//! What a process keeps when it becomes another program, and a child of it does not get: signals that wait, the signal that it gets
//! when its parent ends, and that it inherits the children of its own that end before theirs.

use std::mem::zeroed;

use nix::libc::{self, c_int};

use super::{LAST, OF_LIBRARY, bit};

/// Of a process that starts a program.
#[derive(Clone, Copy)]
pub struct Kept {
    process: i32,
    death: c_int,
    reaps: c_int,
    waiting: u64,
}

impl Kept {
    /// This one's.
    #[allow(unsafe_code)]
    pub fn own() -> Kept {
        let (mut death, mut reaps) = (0, 0);
        // SAFETY: zeros are a set; numbers and a set of our own are written.
        unsafe {
            let mut set = zeroed();
            libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut death);
            libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut reaps);
            libc::sigpending(&raw mut set);
            let all = (1..=LAST).filter(|signal| !OF_LIBRARY.contains(signal));
            let waits = all.filter(|signal| libc::sigismember(&raw const set, *signal) == 1);
            Kept {
                process: libc::getpid(),
                death,
                reaps,
                waiting: waits.map(bit).fold(0, |all, one| all | one),
            }
        }
    }

    /// Gives them to the calling process, between fork and exec. Signals are held back.
    #[allow(unsafe_code)]
    pub fn give(self) {
        // SAFETY: calls that are allowed there.
        unsafe {
            let own = libc::getpid();
            if own == self.process {
                return;
            }
            libc::prctl(libc::PR_SET_PDEATHSIG, self.death);
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, self.reaps);
            for signal in (1..=LAST).filter(|signal| self.waiting & bit(*signal) != 0) {
                libc::kill(own, signal);
            }
        }
    }
}
