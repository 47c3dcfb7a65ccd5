//! Was a signal sent to the whole group? A process beside the program, in the same group, holds all signals back and does
//! nothing. What somebody sends to the group waits there, too, and then the program has it from the sender.
//!
//! It outlives this process, if that is killed, for as long as it takes to have the program end with it.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::libc::{self, c_int};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A sender to a group gives its signal to one process after the other.
const MEANWHILE: Duration = Duration::from_millis(2);
/// How long the witness is waited for: it may be stopped.
const PATIENCE_MS: u16 = 500;
/// What stands where the number of a program is told otherwise: what came?
const ASK: i32 = 0;
/// What it saw longer ago is forgotten.
const MEMORY: Duration = Duration::from_secs(1);

struct Witness {
    ask: PipeWriter,
    told: PipeReader,
    /// Signals and their senders.
    seen: Vec<(Instant, c_int, i32)>,
}

static WITNESS: Mutex<Option<Witness>> = Mutex::new(None);
/// All that were started.
static STARTED: Mutex<Vec<i32>> = Mutex::new(Vec::new());
/// Where a program says that it starts.
static ASK_AT: AtomicI32 = AtomicI32::new(-1);

/// Lets one stand there, if none does. Signals are held back meanwhile.
pub fn stand() {
    let mut witness = WITNESS.lock().unwrap_or_else(PoisonError::into_inner);
    if witness.is_none() {
        // Without one a program hears twice what is sent to its group.
        *witness = Witness::new().ok();
        let ask = witness.as_ref().map_or(-1, |own| own.ask.as_raw_fd());
        ASK_AT.store(ask, Ordering::SeqCst);
    }
}

/// Sends them away, now that no program runs: whoever takes in orphans is not to meet them.
#[allow(unsafe_code)]
pub fn dismiss() {
    // Nobody is asked any more.
    let mut witness = WITNESS.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::forget(witness.take());
    ASK_AT.store(-1, Ordering::SeqCst);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    for id in started.drain(..) {
        // SAFETY: children that nobody else waits for.
        unsafe {
            libc::kill(id, libc::SIGKILL);
            libc::waitpid(id, std::ptr::null_mut(), 0);
        }
    }
}

/// Has the calling process, between fork and exec, end with the one that starts it: said by that, it would be too late if that is
/// killed first. Signals are held back.
#[allow(unsafe_code)]
pub fn tie() {
    let ask = ASK_AT.load(Ordering::SeqCst);
    if ask < 0 {
        return;
    }
    // SAFETY: calls that are allowed there; a word of its own. Without a witness SIGPIPE comes, and goes as it is ignored.
    unsafe {
        let own = libc::getpid();
        libc::write(ask, (&raw const own).cast(), size_of_val(&own));
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
}

/// Did it see a signal of this sender? None where that cannot be known.
pub fn has_seen(signal: c_int, by: i32) -> Option<bool> {
    let mut witness = WITNESS.lock().unwrap_or_else(PoisonError::into_inner);
    let own = witness.as_mut()?;
    std::thread::sleep(MEANWHILE);
    let found = own.has_seen(signal, by).ok();
    if found.is_none() {
        ASK_AT.store(-1, Ordering::SeqCst);
        // It may be stopped alone. Nobody asks it any more; closed, its pipe would tell it that this process has ended.
        std::mem::forget(witness.take());
    }
    found
}

impl Witness {
    #[allow(unsafe_code)]
    fn new() -> std::io::Result<Witness> {
        let ((asked, ask), (told, tell)) = (pipe()?, pipe()?);
        // SAFETY: the child makes calls alone that need no other thread.
        match unsafe { libc::fork() } {
            -1 => Err(std::io::Error::last_os_error()),
            // SAFETY: two descriptors of its own, and signals are held back.
            0 => unsafe { watch(asked.as_raw_fd(), tell.as_raw_fd()) },
            id => {
                let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
                started.push(id);
                Ok(Witness {
                    ask,
                    told,
                    seen: Vec::new(),
                })
            }
        }
    }

    fn has_seen(&mut self, signal: c_int, by: i32) -> std::io::Result<bool> {
        self.ask.write_all(&ASK.to_ne_bytes())?;
        self.seen.retain(|(at, ..)| at.elapsed() < MEMORY);
        loop {
            let mut one = [PollFd::new(self.told.as_fd(), PollFlags::POLLIN)];
            if poll(&mut one, PollTimeout::from(PATIENCE_MS))? == 0 {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
            let mut word = [0; 2 * size_of::<i32>()];
            self.told.read_exact(&mut word)?;
            let [signal, by] = [0, 4].map(|at| {
                let bytes = [word[at], word[at + 1], word[at + 2], word[at + 3]];
                i32::from_ne_bytes(bytes)
            });
            match signal {
                0 => break,
                signal => self.seen.push((Instant::now(), signal, by)),
            }
        }
        let mut all = self.seen.iter();
        let found = all.position(|&(_, other, sender)| (other, sender) == (signal, by));
        Ok(found.map(|at| self.seen.swap_remove(at)).is_some())
    }
}

/// Says what came whenever it is asked, and ends behind its parent, with the program.
///
/// # Safety
/// In a process of one thread that holds all signals back.
#[allow(unsafe_code)]
unsafe fn watch(asked: RawFd, tell: RawFd) -> ! {
    let (first, last) = (asked.min(tell) as u32, asked.max(tell) as u32);
    let others = [(0, first), (first + 1, last), (last + 1, u32::MAX)];
    // SAFETY: calls without memory, or with values of this function's own.
    unsafe {
        // Nobody is to wait for the end of what this process does not use.
        for (from, to) in others.into_iter().filter(|(from, to)| from < to) {
            let to = if to == u32::MAX { to } else { to - 1 };
            libc::syscall(libc::SYS_close_range, from, to, 0);
        }
        let mut all = zeroed();
        libc::sigfillset(&raw mut all);
        let came = libc::signalfd(-1, &raw const all, libc::SFD_NONBLOCK);
        let either = [came, asked].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        let mut program = -1;
        loop {
            // At once: a stop takes back that all go on, and the other way round.
            let mut either = either;
            libc::poll(either.as_mut_ptr(), 2, -1);
            let mut info: libc::signalfd_siginfo = zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            // Where nobody reads any more, what is said comes back as SIGPIPE.
            while libc::read(came, (&raw mut info).cast(), size) == size as isize
                && say(tell, [info.ssi_signo as i32, info.ssi_pid as i32])
            {}
            if either[1].revents != 0 {
                let mut word = ASK;
                let size = size_of::<i32>();
                if libc::read(asked, (&raw mut word).cast(), size) != size as isize {
                    // A program that has ended is not met: its descriptor is of no other process.
                    libc::syscall(libc::SYS_pidfd_send_signal, program, libc::SIGKILL, 0, 0);
                    libc::_exit(0);
                }
                if word == ASK {
                    say(tell, [0, 0]);
                } else {
                    libc::close(program);
                    program = libc::syscall(libc::SYS_pidfd_open, word, 0) as RawFd;
                }
            }
        }
    }
}

/// A signal and its sender, or that these were all. Is there somebody who reads it?
#[allow(unsafe_code)]
fn say(tell: RawFd, word: [i32; 2]) -> bool {
    let size = size_of::<[i32; 2]>();
    // SAFETY: a descriptor of our own, and so many bytes.
    unsafe { libc::write(tell, word.as_ptr().cast(), size) == size as isize }
}
