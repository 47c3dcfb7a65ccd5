//! What the library knows in this process, and what it is to do.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::compilers::Compilers;
use crate::functions::Functions;
use crate::grafts::Grafts;
use crate::graph::Nodes;
use crate::memory::Memory;
use crate::modules::Modules;
use crate::notes::say;
use crate::reserve::has_room;
use crate::trace::Trace;
use crate::trial::{Plan, Recorded};
use crate::whole::{Quiet, Whole};

use warpwright_winners::store::default_folder;

/// What `WARPWRIGHT` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Nothing: the program's calls go straight to the driver.
    Off = 1,
    /// Winners are put in place.
    With = 2,
    /// Launches are counted and timed.
    Trace = 4,
    /// Candidates are tried.
    Try = 8,
}

const UNKNOWN: u8 = 0;
static MODE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// A page that every new process finds empty (`MADV_WIPEONFORK`), also one that no handler of `pthread_atfork` runs in.
#[repr(align(4096))]
struct Own([AtomicU8; 4096]);

static OWN: Own = Own([const { AtomicU8::new(0) }; 4096]);

impl Own {
    /// From now on it is this process's.
    fn take(&self) {
        self.0[0].store(1, Ordering::Relaxed);
    }

    fn is_taken(&self) -> bool {
        self.0[0].load(Ordering::Relaxed) != 0
    }
}

/// Is the process one that began, or that `fork` made of such a one?
pub fn is_own() -> bool {
    OWN.is_taken()
}

/// What is to be done in this process. One made by `_Fork` or the kernel's call has locks of threads that it does not have, also
/// the C library's, so that its calls go straight to the driver.
pub fn mode() -> Mode {
    let known = match MODE.load(Ordering::Relaxed) {
        2 => Mode::With,
        4 => Mode::Trace,
        8 => Mode::Try,
        UNKNOWN => return begin(),
        _ => return Mode::Off,
    };
    if is_own() { known } else { Mode::Off }
}

static REPLACING: AtomicBool = AtomicBool::new(false);

/// Are winners put in place?
pub fn replacing() -> bool {
    match mode() {
        Mode::With => true,
        Mode::Trace => REPLACING.load(Ordering::Relaxed),
        Mode::Off | Mode::Try => false,
    }
}

/// What the environment says at the start: later the program may change it, and its folder.
#[derive(Debug)]
pub struct Settings {
    /// Where people read what happens (`WARPWRIGHT_LOG`).
    pub log: Option<PathBuf>,
    /// Where the command line reads it (`WARPWRIGHT_DIR`).
    pub folder: Option<PathBuf>,
    /// Where winners are (`WARPWRIGHT_DB`).
    pub store: PathBuf,
    /// Do winners and originals take turns, so that they can be told apart (`WARPWRIGHT_TURNS`, the number of the run: in
    /// every other one the originals begin where the winners did)?
    pub turns: Option<u64>,
    /// What trials of a kernel may take (`WARPWRIGHT_BUDGET`, in seconds).
    pub budget: f64,
    /// The process that makes candidates (`WARPWRIGHT_BUILDER`).
    pub builder: Option<i32>,
}

impl Settings {
    fn read() -> Settings {
        let whole = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let set = |name: &str| {
            let value: Option<OsString> = std::env::var_os(name);
            let value = value.filter(|value| !value.is_empty());
            value.map(|value| whole(value.into()))
        };
        let store = default_folder(|name| std::env::var_os(name)).unwrap_or_default();
        Settings {
            log: set("WARPWRIGHT_LOG"),
            folder: set("WARPWRIGHT_DIR"),
            store: whole(store),
            turns: std::env::var("WARPWRIGHT_TURNS")
                .ok()
                .and_then(|number| number.parse().ok()),
            budget: std::env::var("WARPWRIGHT_BUDGET")
                .ok()
                .and_then(|seconds| seconds.parse().ok())
                .unwrap_or(20.0),
            builder: std::env::var("WARPWRIGHT_BUILDER")
                .ok()
                .and_then(|number| number.parse().ok()),
        }
    }
}

/// See [`Settings`].
pub fn settings() -> &'static Settings {
    static SETTINGS: AtomicPtr<Settings> = AtomicPtr::new(std::ptr::null_mut());
    once(&SETTINGS, Settings::read)
}

/// A value that is made once and lives on. Nobody waits for another thread: a forked child may not have it.
fn once<T>(place: &AtomicPtr<T>, make: impl FnOnce() -> T) -> &'static T {
    let mut known = place.load(Ordering::Acquire);
    if known.is_null() {
        let new = Box::into_raw(Box::new(make()));
        let null = std::ptr::null_mut();
        let set = place.compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire);
        known = match set {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: it was made above and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: such values are never freed.
    unsafe { &*known }
}

fn begin() -> Mode {
    if is_sealed() {
        MODE.store(Mode::Off as u8, Ordering::Relaxed);
        return Mode::Off;
    }
    let _quiet = Quiet::new();
    let _whole = Whole::new();
    if !has_room(0) {
        fall_asleep();
        return Mode::Off;
    }
    let has_folder = settings().folder.is_some();
    let mode = match std::env::var("WARPWRIGHT").as_deref() {
        Ok("with") => Mode::With,
        Ok("trace") if has_folder => Mode::Trace,
        Ok("trace+with") if has_folder => {
            REPLACING.store(true, Ordering::Relaxed);
            Mode::Trace
        }
        Ok("try") if has_folder => Mode::Try,
        _ => Mode::Off,
    };
    if mode != Mode::Off {
        OWN.take();
        static ONCE: AtomicBool = AtomicBool::new(false);
        if !ONCE.swap(true, Ordering::Relaxed) {
            // The hook of our own copy of the standard library: nothing is printed into the program's output.
            std::panic::set_hook(Box::new(|_| {}));
            // SAFETY: the handlers take no arguments and live as long as this library, which is never unloaded. The page is
            // this library's own, and means nothing but what it says.
            unsafe {
                libc::pthread_atfork(None, None, Some(in_child));
                let page = OWN.0.as_ptr().cast_mut().cast();
                libc::madvise(page, size_of::<Own>(), libc::MADV_WIPEONFORK);
            }
        }
    }
    MODE.store(mode as u8, Ordering::Relaxed);
    mode
}

/// From now on this process's calls go through untouched: something here went wrong.
pub fn stand_aside(why: &str) {
    MODE.store(Mode::Off as u8, Ordering::Relaxed);
    say(&format!("stands aside from now on: {why}"));
}

static IS_SEALED: AtomicBool = AtomicBool::new(false);

/// May this library read and write nothing more?
pub fn is_sealed() -> bool {
    IS_SEALED.load(Ordering::Relaxed)
}

/// The program is about to forbid itself system calls.
pub fn seal() {
    let known = MODE.load(Ordering::Relaxed);
    if [Mode::Trace, Mode::Try]
        .map(|mode| mode as u8)
        .contains(&known)
    {
        guarded(crate::trace::finish);
        guarded(crate::notes::cut);
        MODE.store(Mode::Off as u8, Ordering::Relaxed);
    }
    IS_SEALED.store(true, Ordering::Relaxed);
}

static IS_SHORT: AtomicBool = AtomicBool::new(false);

/// The same where there is no memory, not even to say so.
pub fn fall_asleep() {
    MODE.store(Mode::Off as u8, Ordering::Relaxed);
    IS_SHORT.store(true, Ordering::Relaxed);
}

/// Says so later.
fn tell_asleep() {
    if IS_SHORT.swap(false, Ordering::Relaxed) {
        stand_aside("the program has little memory left");
    }
}

/// Everything that changes, behind one lock. It is never held while one of the program's calls runs.
#[derive(Default)]
pub struct State {
    pub modules: Modules,
    pub functions: Functions,
    pub grafts: Grafts,
    pub nodes: Nodes,
    pub trace: Trace,
    pub compilers: Compilers,
    pub memory: Memory,
    pub plan: Plan,
    /// Kernels that may be tried, by executable graph.
    pub recorded: BTreeMap<usize, Vec<Arc<Recorded>>>,
    /// What was abandoned before.
    _before: Abandoned,
}

/// Memory that nobody uses any more and nobody gives back: who looks for what is lost finds it here.
struct Abandoned(#[expect(dead_code, reason = "held")] *mut Mutex<State>);

// SAFETY: nobody goes there.
unsafe impl Send for Abandoned {}

impl Default for Abandoned {
    fn default() -> Self {
        Abandoned(ABANDONED.load(Ordering::Acquire))
    }
}

static ABANDONED: AtomicPtr<Mutex<State>> = AtomicPtr::new(std::ptr::null_mut());

/// What is known is as if it had never been, but for the table of functions.
fn abandon() {
    let known = STATE.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !known.is_null() {
        ABANDONED.store(known, Ordering::Release);
    }
    crate::memory::open();
}

/// The program has closed the driver, and handles of it mean nothing any more.
pub fn forget_driver() {
    abandon();
    let known = state();
    crate::functions::forget_all();
    drop(known);
    FINISHES.store(false, Ordering::Relaxed);
    match MODE.load(Ordering::Relaxed) {
        // Launches that were not written are lost.
        mode if mode == Mode::Trace as u8 => drop(guarded(crate::notes::cut)),
        mode if mode == Mode::Try as u8 => MODE.store(Mode::Off as u8, Ordering::Relaxed),
        _ => {}
    }
}

static STATE: AtomicPtr<Mutex<State>> = AtomicPtr::new(std::ptr::null_mut());

/// The state of this process.
pub fn state() -> MutexGuard<'static, State> {
    let lock = once(&STATE, || {
        let plan = match mode() {
            Mode::Try => Plan::read(),
            _ => Plan::default(),
        };
        Mutex::new(State {
            plan,
            ..State::default()
        })
    });
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A forked child begins anew. What it inherited may be half changed, and its locks held by threads that it
/// does not have; the driver's handles mean nothing there either.
extern "C" fn in_child() {
    OWN.take();
    abandon();
    crate::functions::abandon();
    crate::driver::in_child();
    // No trials: a lock may be held by a thread of the parent.
    match mode() {
        Mode::Off | Mode::Try => MODE.store(Mode::Off as u8, Ordering::Relaxed),
        Mode::With | Mode::Trace => MODE.store(UNKNOWN, Ordering::Relaxed),
    }
}

static FINISHES: AtomicBool = AtomicBool::new(false);

/// Has the trace finished when the program ends. What is registered last runs first, and the driver takes itself
/// down in a handler that it registers when it is initialised: so this is for the first load of a module, and for the first
/// launch where none was seen. Later another thread may hold the lock of what is registered when the program forks.
pub fn finish_at_exit() {
    if !FINISHES.swap(true, Ordering::Relaxed) {
        // SAFETY: the handler takes no arguments, and this library is never unloaded.
        unsafe { libc::atexit(at_exit) };
    }
}

/// In a child that was made past `fork` another thread's locks would be waited for.
extern "C" fn at_exit() {
    if is_own() {
        guarded(crate::trace::finish);
    }
}

/// Runs our own work; if it panics, the library stands aside and the program goes on. The number of the program's last
/// error stays, and signals wait.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    let _quiet = Quiet::new();
    open_guarded(work)
}

/// The same for what takes long: signals come as ever, so nothing of ours is locked meanwhile.
pub fn open_guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    let _whole = Whole::new();
    // SAFETY: the calling thread's own.
    let errno = unsafe { *libc::__errno_location() };
    let done = catch_unwind(AssertUnwindSafe(work));
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    match done {
        Ok(value) => {
            tell_asleep();
            Some(value)
        }
        Err(panic) => {
            stand_aside(panic_text(&*panic));
            None
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic")
}
