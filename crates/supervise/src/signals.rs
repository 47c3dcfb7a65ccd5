//! Signals. Without a program that runs they end this process as they would without us, but no compiler goes on and no folder
//! stays; a command that can say what it has so far is given the time to. Whatever somebody sends to this process while a
//! program runs is for the program, with what was sent along; what a terminal or a sender gives to the whole group it has
//! already ([`witness`]), and what it sends to the process that started it goes on to ours. A program that stops has this
//! process stop, one that a signal ends has it end by the same.
//!
//! A program starts with the signals held back and ignored that this process was started with: neither what is held back
//! here is its own, nor that Rust's start ignores SIGPIPE, nor that SIGCHLD is not ignored here, without which nobody can
//! wait for a program, nor that SIGXFSZ is, so that a file that grows too large is an error and no end. What a process keeps
//! when it becomes another program, and a child does not get, it is given ([`kept`]). What was closed of
//! standard input, output and error is closed for it, too: Rust's start opens `/dev/null` there, and one more for what is no
//! more than a path (`O_PATH`). It ends with this process, should that be killed: the witness sees to it.

mod dump;
mod kept;
mod waker;
mod witness;

use std::io::{Read, Result};
use std::mem::{size_of, zeroed};
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nix::libc::{self, c_int, c_void, siginfo_t, sigset_t};
use nix::unistd::{getpid, getppid, getsid};
use warpwright_toolkit::PrivateFolder;

use crate::beside;

/// The last of all signals.
const LAST: c_int = 64;
/// What nobody can take.
const NOT_TAKEN: [c_int; 2] = [libc::SIGKILL, libc::SIGSTOP];
/// These ask for an end.
const ASKING: [c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
/// The kernel sends these to all that run at a terminal.
const OF_TERMINAL: [c_int; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGWINCH,
];
/// Nothing happens by these.
const IDLE: [c_int; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
/// From the kernel these are of this process's own children, and of a terminal that is for others.
const OF_OTHERS: [c_int; 3] = [libc::SIGCHLD, libc::SIGTTIN, libc::SIGTTOU];
/// These stop.
const STOPPING: [c_int; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
/// From the kernel these are for a mistake of our own. The last two come back by themselves no more.
const FAULTS: [c_int; 6] = [
    libc::SIGILL,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGTRAP,
    libc::SIGSYS,
];
/// The C library keeps these for itself and lets nobody set them.
const OF_LIBRARY: [c_int; 2] = [32, 33];
/// No program, and one that is just being started.
const NONE: i32 = 0;
const STARTING: i32 = -1;

static PROGRAM: AtomicI32 = AtomicI32::new(NONE);
static HAS_RUN: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);
/// Does the command end by itself when it is asked to, and by which signal was it?
static IS_PATIENT: AtomicBool = AtomicBool::new(false);
static ENDS_BY: AtomicI32 = AtomicI32::new(0);
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Where [`note`] writes, and in which process.
static NOTES: AtomicI32 = AtomicI32::new(-1);
static OWN: AtomicI32 = AtomicI32::new(0);
/// What was done with each signal before.
static BEFORE: OnceLock<Vec<libc::sigaction>> = OnceLock::new();
/// What the program was sent, see [`bit`].
static SENT: AtomicU64 = AtomicU64::new(0);
/// Why signals are not taken.
static UNTAKEN: Mutex<Option<std::io::Error>> = Mutex::new(None);
/// Was the memory of the program that this process ends as written down?
static HAS_DUMPED: AtomicBool = AtomicBool::new(false);
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// What this process was started to hold back, and to ignore.
static HELD: OnceLock<sigset_t> = OnceLock::new();
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// What is done here with signals whose treatment a program inherits. A file that grows beyond a limit is an error of a call.
const OURS: [(c_int, usize); 3] = [
    (libc::SIGPIPE, libc::SIG_DFL),
    (libc::SIGCHLD, libc::SIG_DFL),
    (libc::SIGXFSZ, libc::SIG_IGN),
];
/// Which of standard input, output and error this process was started without.
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
/// What Rust's start has opened beside them.
static ADDED: [AtomicI32; 3] = [const { AtomicI32::new(-1) }; 3];

/// Runs before `main`, and before Rust's own start changes what is done with SIGPIPE and opens what is closed.
#[used]
#[allow(unsafe_code)]
// SAFETY: the section holds pointers to functions that are called once.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

#[allow(unsafe_code)]
extern "C" fn before_main() {
    let is_ignored = |signal: &c_int| action(*signal).sa_sigaction == libc::SIG_IGN;
    let ignored = (1..=LAST).filter(is_ignored).map(bit);
    IGNORED.store(ignored.fold(0, |all, one| all | one), Ordering::Relaxed);
    for (ours, here) in OURS {
        // SAFETY: no handler, and nothing runs yet that could have set one.
        unsafe { libc::signal(ours, here) };
    }
    let mut opened = 0;
    for (number, is_closed) in (0..).zip(&CLOSED) {
        // SAFETY: a number that may be no descriptor is asked for, and an error is the answer.
        let (is_open, flags) = unsafe {
            let is_open = libc::fcntl(number, libc::F_GETFD) != -1;
            (is_open, libc::fcntl(number, libc::F_GETFL))
        };
        is_closed.store(!is_open, Ordering::Relaxed);
        opened += usize::from(!is_open || flags & libc::O_PATH != 0);
    }
    find_added(opened);
}

/// Rust's start takes what is no more than a path for closed, and opens one more for each: these will be the first that are
/// free.
#[allow(unsafe_code)]
fn find_added(count: usize) {
    let added = &ADDED[..count];
    for place in added {
        // SAFETY: a C string.
        let opened = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        place.store(opened, Ordering::Relaxed);
    }
    for place in added {
        let number = place.load(Ordering::Relaxed);
        // SAFETY: opened above.
        unsafe { libc::close(number) };
        if number <= libc::STDERR_FILENO {
            place.store(-1, Ordering::Relaxed);
        }
    }
}

/// What is done with a signal.
#[allow(unsafe_code)]
fn action(signal: c_int) -> libc::sigaction {
    // SAFETY: zeros are an action, and one is read.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action);
        action
    }
}

/// A signal among others.
fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

fn is_ignored(signal: c_int) -> bool {
    IGNORED.load(Ordering::Relaxed) & bit(signal) != 0
}

/// All signals, or one of them.
#[allow(unsafe_code)]
fn set(one: Option<c_int>) -> sigset_t {
    // SAFETY: zeros are a set, and it is our own.
    unsafe {
        let mut set = zeroed();
        match one {
            None => libc::sigfillset(&raw mut set),
            Some(signal) => libc::sigaddset(&raw mut set, signal),
        };
        set
    }
}

/// Changes what the calling thread holds back; returns what it was.
#[allow(unsafe_code)]
fn hold(how: c_int, set: &sigset_t) -> sigset_t {
    // SAFETY: two sets of our own.
    unsafe {
        let mut before = zeroed();
        libc::pthread_sigmask(how, set, &raw mut before);
        before
    }
}

fn held() -> &'static sigset_t {
    HELD.get_or_init(|| {
        let all = set(None);
        let before = hold(libc::SIG_BLOCK, &all);
        hold(libc::SIG_SETMASK, &before);
        before
    })
}

/// Has a program start with the signals held back and ignored that this process was started with, and without the
/// descriptors that were closed.
#[allow(unsafe_code)]
pub fn hand_down(command: &mut Command) {
    let held = *held();
    let kept = kept::Kept::own();
    let give = move || {
        witness::tie();
        // One that came meanwhile is for the program.
        for signal in 1..=LAST {
            let own = match is_ignored(signal) {
                true => libc::SIG_IGN,
                false => libc::SIG_DFL,
            };
            // SAFETY: no handler.
            unsafe { libc::signal(signal, own) };
        }
        kept.give();
        hold(libc::SIG_SETMASK, &held);
        let closed = (0..).zip(&CLOSED);
        let closed = closed
            .filter_map(|(number, is_closed)| is_closed.load(Ordering::Relaxed).then_some(number));
        let added = ADDED.iter().map(|number| number.load(Ordering::Relaxed));
        for number in closed.chain(added.filter(|number| *number >= 0)) {
            // SAFETY: nothing of this process uses it between fork and exec.
            unsafe { libc::close(number) };
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

/// Does a program run?
pub fn is_running() -> bool {
    PROGRAM.load(Ordering::SeqCst) != NONE
}

/// Has this process started a program?
pub fn has_run() -> bool {
    HAS_RUN.load(Ordering::SeqCst)
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

/// Ends this process by the signal that asked it to, or ended its program, now that it has said all. Returns if none did.
pub fn leave() {
    let signal = ENDS_BY.load(Ordering::SeqCst);
    if signal == 0 {
        witness::dismiss();
        return;
    }
    if HAS_DUMPED.load(Ordering::SeqCst) && dump::prepare().is_err() {
        dump::prevent();
    }
    end(signal)
}

/// Ends this process at once, and leaves nothing of it.
pub fn quit(code: i32) -> ! {
    IS_ENDING.store(true, Ordering::SeqCst);
    clear();
    std::process::exit(code);
}

/// A folder that goes with the value, and when a signal ends this process.
pub struct WorkFolder(PrivateFolder);

impl WorkFolder {
    /// Once this process ends none is made.
    pub fn new() -> Result<WorkFolder> {
        let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = PrivateFolder::new()?;
        folders.push(folder.path().to_owned());
        Ok(WorkFolder(folder))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        remove(self.path());
    }
}

/// Removes a folder. It has another name first: what a program has left running, or another thread, writes into it no more,
/// but for what it has just begun.
fn remove(folder: &Path) {
    const ATTEMPTS: usize = 100;
    let gone = folder.with_extension("gone");
    let place = match std::fs::rename(folder, &gone) {
        Ok(()) => &gone,
        Err(_) => folder,
    };
    for _ in 0..ATTEMPTS {
        if std::fs::remove_dir_all(place).is_ok() || !place.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A program is about to be started.
pub fn starting() {
    let untaken = UNTAKEN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(why) = untaken {
        beside::tell(&format!("signals do not reach the program: {why}"));
    }
    HAS_RUN.store(true, Ordering::SeqCst);
    beside::a_program_writes();
    PROGRAM.store(STARTING, Ordering::SeqCst);
    let _ = held();
    hold(libc::SIG_BLOCK, &set(None));
    witness::stand();
}

/// It has this number.
pub fn started(id: u32) {
    PROGRAM.store(id as i32, Ordering::SeqCst);
    hold(libc::SIG_SETMASK, held());
}

/// It has ended, by a signal or not, or did not start.
pub fn ended(by: Option<c_int>) {
    beside::a_program_writes();
    PROGRAM.store(NONE, Ordering::SeqCst);
    let is_asked = |signal: c_int| {
        let is_sent = SENT.load(Ordering::SeqCst) & bit(signal) != 0;
        is_sent || signal == libc::SIGKILL || ASKING.contains(&signal)
    };
    if by.is_some_and(is_asked) {
        ASKED.store(true, Ordering::SeqCst);
    }
    hold(libc::SIG_SETMASK, held());
}

/// Has this process end by the signal that ended its program, once it has said all, and with the mark of a core that one may have
/// left. The program's memory is what a debugger wants to see.
pub fn end_as(signal: c_int, has_dumped: bool) {
    if !has_dumped {
        dump::prevent();
    }
    HAS_DUMPED.store(has_dumped, Ordering::SeqCst);
    ENDS_BY.store(signal, Ordering::SeqCst);
}

/// Stops this process as its program has stopped, until either goes on.
pub fn stop_with(program: u32, signal: c_int, goes_on: impl Fn() -> bool) {
    waker::beside(program as i32, || stop_unless(signal, goes_on));
}

/// Stops this process.
fn stop_as(signal: c_int) {
    stop_unless(signal, || false);
}

/// Stops this process, by the signal that its program has stopped by, unless that goes on. Whoever has the group go on takes back
/// a stop that waits (SIGSTOP cannot be held back).
#[allow(unsafe_code)]
fn stop_unless(signal: c_int, goes_on: impl Fn() -> bool) {
    if signal == libc::SIGSTOP && goes_on() {
        return;
    }
    // SAFETY: an action of zeros is the usual one, and what was there comes back. What is ignored waits no more.
    unsafe {
        let (usual, mut before) = (zeroed(), zeroed());
        libc::sigaction(signal, &raw const usual, &raw mut before);
        let held = hold(libc::SIG_BLOCK, &set(Some(signal)));
        raise(signal);
        if goes_on() {
            libc::signal(signal, libc::SIG_IGN);
        }
        hold(libc::SIG_UNBLOCK, &set(Some(signal)));
        hold(libc::SIG_SETMASK, &held);
        libc::sigaction(signal, &raw const before, std::ptr::null_mut());
    }
}

/// From now on signals are taken by a thread of their own. A handler tells it of them: what is held back instead would be held
/// back for the compilers, too.
pub fn begin() {
    if let Err(why) = take_all() {
        *UNTAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

#[allow(unsafe_code)]
fn take_all() -> Result<()> {
    let (mut reader, writer) = std::io::pipe()?;
    let hand_on = move || {
        hold(libc::SIG_BLOCK, &set(None));
        let mut bytes = [0; size_of::<Told>()];
        while reader.read_exact(&mut bytes).is_ok() {
            // SAFETY: the bytes of one, as `note` wrote them.
            take(&unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) });
        }
    };
    std::thread::Builder::new().spawn(hand_on)?;
    OWN.store(getpid().as_raw(), Ordering::SeqCst);
    NOTES.store(writer.into_raw_fd(), Ordering::SeqCst);
    let _ = BEFORE.set((0..=LAST).map(action).collect());
    // SAFETY: zeros are an action, and the handler calls nothing that a handler may not.
    unsafe {
        let mut ours: libc::sigaction = zeroed();
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = note;
        ours.sa_sigaction = handler as usize;
        ours.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO | libc::SA_ONSTACK;
        // One is noted before the next: they are handed on in that order.
        libc::sigfillset(&raw mut ours.sa_mask);
        let is_taken = |signal: &c_int| match *signal {
            // Who ignores these reads and writes at a terminal that is for others.
            libc::SIGTTIN | libc::SIGTTOU => !is_ignored(*signal),
            _ => !NOT_TAKEN.contains(signal),
        };
        let all = (1..=LAST).filter(is_taken);
        for signal in all.filter(|signal| !OF_LIBRARY.contains(signal)) {
            if libc::sigaction(signal, &raw const ours, std::ptr::null_mut()) != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
    }
    let mut own = [0; ACTION];
    kernel_action(libc::SIGTERM, None, Some(&mut own));
    for signal in OF_LIBRARY {
        kernel_action(signal, Some(&own), None);
    }
    Ok(())
}

/// Words of an action as the kernel has it: the handler, flags, the way back, and what is held back.
const ACTION: usize = 4;

/// Sets and reads an action behind the C library's back.
#[allow(unsafe_code)]
fn kernel_action(
    signal: c_int,
    new: Option<&[usize; ACTION]>,
    old: Option<&mut [usize; ACTION]>,
) -> bool {
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    let old = old.map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // SAFETY: structures of this size or none; what is set was read from the kernel, or are zeros.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, size_of::<u64>()) == 0 }
}

/// A signal, and the program that ran when it came: it may end by that before anybody looks.
struct Told {
    info: siginfo_t,
    program: i32,
}

/// Writes down which signal came, and from whom. What this process did itself is none that is told: an output without a
/// reader, a file that is too large, an end of its own making. Nor is what the kernel says of its children, and what it sends to
/// the whole group at a terminal that is for others.
#[allow(unsafe_code)]
extern "C" fn note(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel's structure, a pipe of ours, and the calling thread's own error number.
    unsafe {
        let before = *libc::__errno_location();
        let own = OWN.load(Ordering::SeqCst);
        let is_sent = (*info).si_code <= 0;
        if libc::getpid() != own {
            // Between fork and exec it is for what is being started.
            as_before(signal);
            raise(signal);
        } else if !is_sent && OF_OTHERS.contains(&signal) {
            if wants_stop(signal) {
                stop_as(signal);
            }
        } else if !is_sent && FAULTS.contains(&signal) {
            as_before(signal);
            if FAULTS[4..].contains(&signal) {
                raise(signal);
            }
        } else if is_sent && (*info).si_pid() == own {
            if signal == libc::SIGABRT {
                as_before(signal);
            }
        } else {
            let mut told: Told = zeroed();
            told.info = *info;
            told.program = PROGRAM.load(Ordering::SeqCst);
            let to = NOTES.load(Ordering::SeqCst);
            libc::write(to, (&raw const told).cast(), size_of::<Told>());
        }
        *libc::__errno_location() = before;
    }
}

/// Does this process stop by what the kernel sent it? A program that runs reads from the terminal, and stops by itself.
fn wants_stop(signal: c_int) -> bool {
    match signal {
        libc::SIGTTOU => true,
        libc::SIGTTIN => PROGRAM.load(Ordering::SeqCst) == NONE,
        _ => false,
    }
}

#[allow(unsafe_code)]
fn as_before(signal: c_int) {
    if OF_LIBRARY.contains(&signal) {
        kernel_action(signal, Some(&[0; ACTION]), None);
    } else if let Some(before) = BEFORE.get().and_then(|all| all.get(signal as usize)) {
        // SAFETY: an action that was there.
        unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
    }
}

/// Sends the calling thread a signal, those of the C library as well.
#[allow(unsafe_code)]
fn raise(signal: c_int) {
    // SAFETY: calls without memory.
    unsafe {
        let own = libc::getpid();
        if libc::syscall(libc::SYS_tgkill, own, libc::gettid(), signal) != 0 {
            libc::kill(own, signal);
        }
    }
}

/// Who a signal is from.
enum Sender {
    /// The kernel.
    Kernel,
    /// Somebody who sent it to the whole group.
    ToAll,
    /// The program.
    Program,
    /// Somebody else.
    Other,
}

impl Sender {
    #[allow(unsafe_code)]
    fn of(info: &siginfo_t, program: i32) -> Sender {
        // SAFETY: a signal that was sent says by whom.
        let by = unsafe { info.si_pid() };
        let is_to_all = witness::has_seen(info.si_signo, by);
        match (info.si_code, is_to_all) {
            (1.., _) => Sender::Kernel,
            (_, Some(true)) => Sender::ToAll,
            // One to all is not to go further up than they are.
            (_, None) if by == program => Sender::ToAll,
            _ if by == program => Sender::Program,
            _ => Sender::Other,
        }
    }
}

#[allow(unsafe_code)]
fn take(told: &Told) {
    let (info, mut program) = (&told.info, told.program);
    let signal = info.si_signo;
    // SAFETY: the kernel fills in who sent it.
    if signal == libc::SIGCONT && waker::is_by(unsafe { info.si_pid() }) {
        return;
    }
    while program == STARTING {
        std::thread::sleep(Duration::from_millis(1));
        program = PROGRAM.load(Ordering::SeqCst);
    }
    let sender = Sender::of(info, program);
    let is_end = ASKING.contains(&signal) && !is_ignored(signal);
    let is_end = is_end && !matches!(sender, Sender::Program);
    let was_asked = ASKED.fetch_or(is_end, Ordering::SeqCst);
    // That the terminal is gone is told the leader of the session alone.
    let is_alone = signal == libc::SIGHUP && getsid(None) == Ok(getpid());
    match sender {
        _ if program == NONE => take_alone(signal, is_end && !was_asked),
        // The time that this process may have is over, and the program has its own.
        Sender::Kernel if signal == libc::SIGXCPU => ASKED.store(true, Ordering::SeqCst),
        Sender::Kernel if OF_TERMINAL.contains(&signal) && !is_alone => {}
        Sender::ToAll => {}
        Sender::Program => send(getppid().as_raw(), info),
        Sender::Kernel | Sender::Other => {
            SENT.fetch_or(bit(signal), Ordering::SeqCst);
            send(program, info);
        }
    }
}

/// A signal where no program runs.
fn take_alone(signal: c_int, is_first: bool) {
    match signal {
        _ if is_ignored(signal) || IDLE.contains(&signal) => {}
        _ if STOPPING.contains(&signal) => stop_as(signal),
        _ if is_first && IS_PATIENT.load(Ordering::SeqCst) => {
            ENDS_BY.store(signal, Ordering::SeqCst);
        }
        _ => end(signal),
    }
}

/// Hands a signal on, with what was sent along where that may be said by somebody else.
#[allow(unsafe_code)]
fn send(to: i32, info: &siginfo_t) {
    let has_value = info.si_code < 0 && info.si_code != libc::SI_TKILL;
    let (call, signal) = (libc::SYS_rt_sigqueueinfo, info.si_signo);
    // SAFETY: the kernel's own structure.
    unsafe {
        if !has_value || libc::syscall(call, to, signal, std::ptr::from_ref(info)) != 0 {
            libc::kill(to, signal);
        }
    }
}

/// Leaves nothing of this process behind. Other threads may still write into a folder.
fn clear() {
    warpwright_toolkit::shut_down();
    if !is_running() {
        witness::dismiss();
    }
    let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    for folder in folders.drain(..) {
        remove(&folder);
    }
    std::mem::forget(folders);
}

/// Ends this process as the signal would have.
#[allow(unsafe_code)]
fn end(signal: c_int) -> ! {
    IS_ENDING.store(true, Ordering::SeqCst);
    clear();
    // SAFETY: no handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    kernel_action(signal, Some(&[0; ACTION]), None);
    hold(libc::SIG_UNBLOCK, &set(Some(signal)));
    raise(signal);
    // The first process of a container dies of none.
    std::process::exit(128 + signal);
}
