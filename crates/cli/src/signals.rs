//! Signals. Without a program that runs they end this process as they would without us, but no compiler goes on and no folder
//! stays; a command that can say what it has so far is given the time to. Those that somebody sends to this process while a
//! program runs are for the program; what a terminal sends both get already.
//!
//! A program starts with the signals held back and ignored that this process was started with: neither what is held back
//! here is its own, nor that Rust's start ignores SIGPIPE, nor that SIGCHLD is not ignored here, without which nobody can
//! wait for a program, nor that SIGXFSZ is, so that a file that grows too large is an error and no end. What was closed of
//! standard input, output and error is closed for it, too: Rust's start opens `/dev/null` there.

use std::io::Read;
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nix::libc;
use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, Signal, kill, raise, sigaction, signal,
};
use nix::unistd::{Pid, getpid, getsid};

/// Those that end a program, or tell it something.
const PASSED: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];
/// No program, and one that is just being started.
const NONE: i32 = 0;
const STARTING: i32 = -1;

static PROGRAM: AtomicI32 = AtomicI32::new(NONE);
static ASKED: AtomicBool = AtomicBool::new(false);
/// Does the command end by itself when it is asked to, and by which signal was it?
static IS_PATIENT: AtomicBool = AtomicBool::new(false);
static ENDS_BY: AtomicI32 = AtomicI32::new(0);
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Where [`note`] writes, and the signals that it is told of, a bit for each number.
static NOTES: AtomicI32 = AtomicI32::new(-1);
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// Why signals are not taken.
static UNTAKEN: Mutex<Option<std::io::Error>> = Mutex::new(None);
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// What this process was started to hold back, and which of [`OURS`] to ignore.
static HELD: OnceLock<Option<SigSet>> = OnceLock::new();
/// What is done here with signals whose treatment a program inherits. A file that grows beyond a limit is an error of a call.
const OURS: [(Signal, SigHandler); 3] = [
    (Signal::SIGPIPE, SigHandler::SigDfl),
    (Signal::SIGCHLD, SigHandler::SigDfl),
    (Signal::SIGXFSZ, SigHandler::SigIgn),
];
static IGNORED: [AtomicBool; OURS.len()] = [const { AtomicBool::new(false) }; OURS.len()];
/// Which of standard input, output and error this process was started without.
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Runs before `main`, and before Rust's own start changes what is done with SIGPIPE and opens what is closed.
#[used]
#[allow(unsafe_code)]
// SAFETY: the section holds pointers to functions that are called once.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

#[allow(unsafe_code)]
extern "C" fn before_main() {
    for ((ours, here), is_ignored) in OURS.into_iter().zip(&IGNORED) {
        // SAFETY: no handler, and nothing runs yet that could have set one.
        let before = unsafe { signal(ours, here) };
        is_ignored.store(matches!(before, Ok(SigHandler::SigIgn)), Ordering::Relaxed);
    }
    for (number, is_closed) in (0..).zip(&CLOSED) {
        // SAFETY: a number that may be no descriptor is asked for, and an error is the answer.
        let is_open = unsafe { libc::fcntl(number, libc::F_GETFD) } != -1;
        is_closed.store(!is_open, Ordering::Relaxed);
    }
}

fn held() -> Option<SigSet> {
    *HELD.get_or_init(|| SigSet::thread_get_mask().ok())
}

/// Has a program start with the signals held back and ignored that this process was started with, and without the
/// descriptors that were closed.
#[allow(unsafe_code)]
pub fn hand_down(command: &mut Command) {
    let held = held();
    let give = move || {
        for ((ours, _), is_ignored) in OURS.into_iter().zip(&IGNORED) {
            let own = match is_ignored.load(Ordering::Relaxed) {
                true => SigHandler::SigIgn,
                false => SigHandler::SigDfl,
            };
            // SAFETY: no handler.
            unsafe { signal(ours, own) }?;
        }
        // One that came meanwhile is for the program.
        let taken = TAKEN.load(Ordering::Relaxed);
        for own in PASSED {
            if taken >> own as u32 & 1 == 1 {
                // SAFETY: no handler.
                unsafe { signal(own, SigHandler::SigDfl) }?;
            }
        }
        held.map_or(Ok(()), |held| held.thread_set_mask())?;
        for (number, is_closed) in (0..).zip(&CLOSED) {
            if is_closed.load(Ordering::Relaxed) {
                // SAFETY: nothing of this process uses it between fork and exec.
                unsafe { libc::close(number) };
            }
        }
        Ok(())
    };
    // SAFETY: calls that are allowed between fork and exec, on values that were made before.
    unsafe { command.pre_exec(give) };
}

/// Has somebody asked the program, or this process, to end?
pub fn asked_to_end() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// From now on the first signal that asks this process to end does no more than that.
pub fn be_patient() {
    IS_PATIENT.store(true, Ordering::SeqCst);
}

/// Waits for the end if a signal is ending this process: what fails meanwhile, as its compilers end, is not to be told.
pub fn wait_for_end() {
    while IS_ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Ends this process by the signal that asked it to, now that it has said all. Returns if none did.
pub fn leave() {
    if let Ok(signal) = Signal::try_from(ENDS_BY.load(Ordering::SeqCst)) {
        end(signal);
    }
}

/// A folder that goes when a signal ends this process.
pub fn remove_at_end(folder: PathBuf) {
    let folders = FOLDERS.lock();
    folders.unwrap_or_else(PoisonError::into_inner).push(folder);
}

/// A program is about to be started.
pub fn starting() {
    let untaken = UNTAKEN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(why) = untaken {
        complain!("signals do not reach the program: {why}");
    }
    PROGRAM.store(STARTING, Ordering::SeqCst);
    let _ = held();
    let _ = passed().thread_block();
}

/// It has this number.
pub fn started(id: u32) {
    PROGRAM.store(id as i32, Ordering::SeqCst);
    release();
}

/// It has ended, or did not start.
pub fn ended() {
    PROGRAM.store(NONE, Ordering::SeqCst);
    release();
}

fn release() {
    let _ = held().map(|held| held.thread_set_mask());
}

/// From now on signals are taken by a thread of their own. A handler tells it of them: what is held back instead would be held
/// back for the compilers, too.
pub fn begin() {
    let ignored = ignored();
    let wanted = PASSED.into_iter().filter(|&signal| !ignored(signal));
    if let Err(why) = take_all(wanted) {
        *UNTAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

#[allow(unsafe_code)]
fn take_all(wanted: impl Iterator<Item = Signal>) -> std::io::Result<()> {
    let (mut reader, writer) = std::io::pipe()?;
    let hand_on = move || {
        let mut word = [0; 2];
        while reader.read_exact(&mut word).is_ok() {
            // What the kernel sends for a terminal, it sends to the program as well; but that the terminal is
            // gone it tells the leader of the session alone.
            if let Ok(signal) = Signal::try_from(i32::from(word[0])) {
                let is_alone = signal == Signal::SIGHUP && getsid(None) == Ok(getpid());
                take(signal, word[1] != 0 || is_alone);
            }
        }
    };
    std::thread::Builder::new().spawn(hand_on)?;
    NOTES.store(writer.into_raw_fd(), Ordering::SeqCst);
    let flags = SaFlags::SA_RESTART | SaFlags::SA_SIGINFO;
    let action = SigAction::new(SigHandler::SigAction(note), flags, SigSet::empty());
    for signal in wanted {
        // SAFETY: the handler calls nothing but `write`.
        unsafe { sigaction(signal, &action) }?;
        TAKEN.fetch_or(1 << signal as u32, Ordering::SeqCst);
    }
    Ok(())
}

/// Writes down which signal came, and whether somebody sent it.
#[allow(unsafe_code)]
extern "C" fn note(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's structure, a pipe of ours, and the calling thread's own error number.
    unsafe {
        let before = *libc::__errno_location();
        let word = [signal as u8, u8::from((*info).si_code <= 0)];
        libc::write(
            NOTES.load(Ordering::SeqCst),
            word.as_ptr().cast(),
            word.len(),
        );
        *libc::__errno_location() = before;
    }
}

fn passed() -> SigSet {
    PASSED.into_iter().collect()
}

/// Which signals this process was started to ignore.
fn ignored() -> impl Fn(Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    move |signal| mask.unwrap_or(0) >> (signal as i32 - 1) & 1 == 1
}

fn take(signal: Signal, is_sent: bool) {
    let is_end = !matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2);
    let is_asked = ASKED.fetch_or(is_end, Ordering::SeqCst);
    while PROGRAM.load(Ordering::SeqCst) == STARTING {
        std::thread::sleep(Duration::from_millis(1));
    }
    match PROGRAM.load(Ordering::SeqCst) {
        NONE if is_end && !is_asked && IS_PATIENT.load(Ordering::SeqCst) => {
            ENDS_BY.store(signal as i32, Ordering::SeqCst);
        }
        NONE => end(signal),
        program if is_sent => drop(kill(Pid::from_raw(program), signal)),
        _ => {}
    }
}

/// Ends this process as the signal would have.
#[allow(unsafe_code)]
fn end(signal: Signal) -> ! {
    IS_ENDING.store(true, Ordering::SeqCst);
    warpwright_toolkit::shut_down();
    let folders = FOLDERS.lock();
    for folder in folders.unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = std::fs::remove_dir_all(folder);
    }
    // SAFETY: no handler.
    let _ = unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) };
    let _ = SigSet::from(signal).thread_unblock();
    let _ = raise(signal);
    // The first process of a container dies of none.
    std::process::exit(128 + signal as i32);
}
