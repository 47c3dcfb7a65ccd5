//! What the stand-in knows, behind one lock, and the errors that a program is told.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use warpwright_linkage::captured;
use warpwright_target::{Gpu, lookup};

use crate::abi::{Code, NO_DEVICE, SUCCESS, UNKNOWN};
use crate::again::Again;
use crate::events::Clock;
use crate::graphs::Graphs;
use crate::memory::Arena;
use crate::modules::Modules;
use crate::record::Record;

/// What a call comes to.
pub type Answer = Result<(), Code>;

/// The GPU that is stood in for where none is named: the first board of the architecture.
const GPU: &str = "sm_90";
/// Seconds for kernels where no budget is named.
const BUDGET: f64 = 30.0;
/// Bytes of device memory where no limit is named.
const MEMORY: u64 = 16 << 30;

/// Everything that is known.
pub struct State {
    /// The GPU, if one of that name is known.
    pub gpu: Option<Gpu>,
    pub arena: Arena,
    pub modules: Modules,
    pub record: Record,
    pub graphs: Graphs,
    pub again: Again,
    pub clock: Clock,
    /// Warp instructions that kernels may still execute.
    pub work: u64,
    /// What a kernel did wrong stays: no call succeeds from then on.
    pub sticky: Code,
    /// What about a texture or a surface of the program is not stood in for.
    pub unread_texture: Option<&'static str>,
    /// The process that began: threads of the emulator do not survive a fork.
    pub process: u32,
    /// What was asked for and is refused, each name once.
    pub refused: BTreeSet<&'static str>,
    /// Attributes of functions that the program has set: the most dynamic shared memory.
    pub dynamic_smem: BTreeMap<usize, u32>,
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A number that a variable holds.
fn number<N: std::str::FromStr>(name: &str) -> Option<N> {
    variable(name)?.to_str()?.parse().ok()
}

impl State {
    fn new() -> State {
        let name = variable("WARPWRIGHT_GPU");
        let name = name.as_ref().and_then(|name| name.to_str()).unwrap_or(GPU);
        let seconds = number("WARPWRIGHT_BUDGET").unwrap_or(BUDGET);
        State {
            gpu: lookup(name).ok(),
            arena: Arena::new(number("WARPWRIGHT_MEMORY").unwrap_or(MEMORY)),
            modules: Modules::default(),
            record: Record::new(
                variable("WARPWRIGHT_DIR").map(Into::into),
                number("WARPWRIGHT_CONTENTS").unwrap_or(0),
            ),
            graphs: Graphs::default(),
            again: Again::default(),
            clock: Clock::default(),
            work: (seconds.max(0.0) * crate::launch::SECOND) as u64,
            sticky: SUCCESS,
            unread_texture: None,
            process: std::process::id(),
            refused: BTreeSet::new(),
            dynamic_smem: BTreeMap::new(),
        }
    }

    /// The GPU.
    ///
    /// # Errors
    /// There is none of the name that was given.
    pub fn gpu(&self) -> Result<Gpu, Code> {
        self.gpu.ok_or(NO_DEVICE)
    }

    /// The architecture: 90 for sm_90.
    pub fn sm(&self) -> Result<u32, Code> {
        Ok(self.gpu()?.arch.sm)
    }
}

/// The state, made at the first call.
pub fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    let state = STATE.get_or_init(|| Mutex::new(State::new()));
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static LAST: Cell<Code> = const { Cell::new(SUCCESS) };
}

/// The last error of this thread; `clear` it as well.
pub fn last_error(clear: bool) -> Code {
    if is_captured() {
        return NO_DEVICE;
    }
    let sticky = state().sticky;
    let last = LAST.with(|last| match clear {
        true => last.replace(SUCCESS),
        false => last.get(),
    });
    if sticky == SUCCESS { last } else { sticky }
}

/// May nothing of this library run, since the program means something else by what it calls? Then the command line is told.
pub fn is_captured() -> bool {
    let is_captured = captured::is_captured();
    if is_captured {
        captured::tell();
    }
    is_captured
}

/// Answers a call; the program never sees a panic.
pub fn answer(call: impl FnOnce() -> Answer) -> Code {
    if is_captured() {
        return NO_DEVICE;
    }
    let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
    let code = match called {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => UNKNOWN,
    };
    if code != SUCCESS {
        LAST.with(|last| last.set(code));
    }
    code
}
