//! The device memory of the program, as its allocations show it, and the gates in front of calls that change
//! memory while a trial runs.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use crate::abi::{Code, Handle, SUCCESS};
use crate::driver;
use crate::state::{Mode, guarded, mode, state};

/// What an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Memory of a device.
    Device,
    /// Memory that moves between host and device.
    Managed,
}

/// An allocation.
struct Block {
    bytes: u64,
    kind: Kind,
    place: Place,
}

/// Context and device that were current when memory was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    context: usize,
    device: c_int,
}

/// The calling thread's.
fn here() -> Place {
    // SAFETY: outputs of the right types.
    let context = driver::handle(|out| unsafe { driver::context(out) });
    let device = driver::number(|n| unsafe { driver::context_device(n) });
    Place {
        context: context.unwrap_or(std::ptr::null_mut()) as usize,
        device: device.unwrap_or(-1),
    }
}

/// Why the memory that a kernel may write cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum Unclear {
    /// Threads of the program's host code may be writing.
    #[error("the program uses managed memory, and its other threads are running")]
    Threads,
    /// Managed variables.
    #[error("a module has managed variables")]
    Managed,
    /// Kernels of other contexts of the device may be writing.
    #[error("the program has memory in several contexts of the GPU")]
    Contexts,
    /// Kernels write memory of other GPUs.
    #[error("GPUs of the program reach each other's memory")]
    Peers,
}

/// Allocations by their first address.
#[derive(Default)]
pub struct Memory {
    blocks: BTreeMap<u64, Block>,
    peers: bool,
}

impl Memory {
    /// The kind of the allocation that holds an address.
    pub fn of(&self, address: u64) -> Option<Kind> {
        let (start, block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.bytes).then_some(block.kind)
    }

    /// The device memory that a kernel launched now may write: first address and bytes. Memory of another GPU is out
    /// of its reach unless the program has said otherwise.
    fn reachable(&self, here: Place) -> Result<Vec<(u64, u64)>, Unclear> {
        let is_managed = |block: &Block| block.kind == Kind::Managed;
        if self.blocks.values().any(is_managed) && others_run() {
            return Err(Unclear::Threads);
        }
        let mut found = Vec::new();
        for (start, block) in &self.blocks {
            match block.kind {
                Kind::Managed => found.push((*start, block.bytes)),
                Kind::Device if block.place == here => found.push((*start, block.bytes)),
                Kind::Device if block.place.device == here.device => {
                    return Err(Unclear::Contexts);
                }
                Kind::Device if self.peers => return Err(Unclear::Peers),
                Kind::Device => {}
            }
        }
        Ok(found)
    }

    /// A context is gone, and its memory.
    pub fn forget(&mut self) {
        self.blocks.clear();
    }
}

/// See [`Memory::reachable`].
pub fn reachable() -> Result<Vec<(u64, u64)>, Unclear> {
    let here = here();
    state().memory.reachable(here)
}

/// Are other threads of the program running or about to? The driver's own are not the program's.
fn others_run() -> bool {
    // SAFETY: no arguments.
    let own = unsafe { libc::gettid() }.to_string();
    let tasks = std::fs::read_dir("/proc/self/task");
    let mut tasks = tasks.into_iter().flatten().flatten();
    tasks.any(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // `number (name) state …`, and a name may hold what it likes.
        let read = || {
            let (before, after) = stat.rsplit_once(')')?;
            let (_, name) = before.split_once('(')?;
            Some((name, after.trim_start().chars().next()?))
        };
        let is_running =
            read().is_some_and(|(name, state)| !name.starts_with("cuda") && state == 'R');
        is_running && task.file_name().to_str() != Some(&own)
    })
}

/// Open while the program runs, closed while a trial does.
static GATE: RwLock<()> = RwLock::new(());
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Held around each of the program's launches and frees; nothing is where there are no trials.
pub fn pass() -> Option<RwLockReadGuard<'static, ()>> {
    let guarded = mode() == Mode::Try;
    guarded.then(|| GATE.read().unwrap_or_else(PoisonError::into_inner))
}

/// For a forked child: the trial is the parent's.
pub fn open() {
    CLOSED.store(false, Ordering::SeqCst);
}

/// Held by a trial. `None` if another thread's launch does not end in time.
pub struct Closed(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>);

impl Closed {
    pub fn new(patience: Duration) -> Option<Closed> {
        let begun = Instant::now();
        loop {
            match GATE.try_write() {
                Ok(guard) => {
                    CLOSED.store(true, Ordering::SeqCst);
                    // Calls that passed the thin gates just before are in the driver by then.
                    std::thread::sleep(Duration::from_millis(2));
                    return Some(Closed(guard));
                }
                Err(_) if begun.elapsed() > patience => return None,
                Err(_) => std::thread::sleep(Duration::from_micros(100)),
            }
        }
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        CLOSED.store(false, Ordering::SeqCst);
    }
}

/// Calls that change memory and that we know by their names alone.
const THIN: [&[u8]; 6] = [
    b"cuMemcpy",
    b"cuMemset",
    b"cuGraphLaunch",
    b"cuMemPrefetch",
    b"cuStreamWriteValue",
    b"cuStreamBatchMemOp",
];
const GATES: usize = 256;

static BEHIND: [AtomicPtr<std::ffi::c_void>; GATES] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; GATES];

/// A function in front of the driver's that waits while a trial runs, whatever its arguments are.
pub fn gate(
    name: &[u8],
    real: impl FnOnce() -> *mut std::ffi::c_void,
) -> Option<*mut std::ffi::c_void> {
    if mode() != Mode::Try || !THIN.iter().any(|start| name.starts_with(start)) {
        return None;
    }
    let real = real();
    if real.is_null() {
        return None;
    }
    for (place, ours) in BEHIND.iter().zip(thin::GATES) {
        let null = std::ptr::null_mut();
        let set = place.compare_exchange(null, real, Ordering::AcqRel, Ordering::Acquire);
        if set.is_ok() || set == Err(real) {
            return Some(*ours as *mut std::ffi::c_void);
        }
    }
    None
}

extern "C" fn wait() {
    while CLOSED.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_micros(50));
    }
}

#[cfg(target_arch = "x86_64")]
mod thin {
    use super::{BEHIND, CLOSED, wait};

    /// Integer arguments are in registers and on the stack, where they stay.
    #[unsafe(naked)]
    unsafe extern "C" fn gate<const PLACE: usize>() {
        std::arch::naked_asm!(
            "cmp byte ptr [rip + {closed}], 0",
            "je 2f",
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "sub rsp, 8",
            "call {wait}",
            "add rsp, 8",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "2:",
            "jmp qword ptr [rip + {behind} + {offset}]",
            closed = sym CLOSED,
            wait = sym wait,
            behind = sym BEHIND,
            offset = const PLACE * 8,
        )
    }

    macro_rules! gates {
        ($($tens:literal)*) => {
            pub static GATES: &[unsafe extern "C" fn()] = &[$(
                gate::<{ $tens * 8 }>, gate::<{ $tens * 8 + 1 }>, gate::<{ $tens * 8 + 2 }>,
                gate::<{ $tens * 8 + 3 }>, gate::<{ $tens * 8 + 4 }>, gate::<{ $tens * 8 + 5 }>,
                gate::<{ $tens * 8 + 6 }>, gate::<{ $tens * 8 + 7 }>
            ),*];
        };
    }
    gates!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
}

#[cfg(not(target_arch = "x86_64"))]
mod thin {
    /// None: trials are refused where there are no gates.
    pub static GATES: &[unsafe extern "C" fn()] = &[];
}

/// Can calls that change memory be held back?
pub fn has_gates() -> bool {
    !thin::GATES.is_empty()
}

fn allocated(code: Code, address: *const u64, bytes: u64, kind: Kind) -> Code {
    if code == SUCCESS && mode() == Mode::Try && !address.is_null() {
        // SAFETY: the driver has written it.
        let address = unsafe { *address };
        guarded(|| {
            let place = here();
            let block = Block { bytes, kind, place };
            state().memory.blocks.insert(address, block);
        });
    }
    code
}

fn freed(address: u64) {
    if mode() == Mode::Try {
        guarded(|| state().memory.blocks.remove(&address));
    }
}

/// `cuMemAlloc`
pub unsafe fn alloc(
    _: bool,
    real: unsafe extern "C-unwind" fn(*mut u64, usize) -> Code,
    address: *mut u64,
    bytes: usize,
) -> Code {
    // SAFETY: the program's call.
    allocated(
        unsafe { real(address, bytes) },
        address,
        bytes as u64,
        Kind::Device,
    )
}

/// `cuMemAllocPitch`
pub unsafe fn alloc_pitch(
    _: bool,
    real: unsafe extern "C-unwind" fn(*mut u64, *mut usize, usize, usize, c_uint) -> Code,
    address: *mut u64,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: c_uint,
) -> Code {
    // SAFETY: the program's call; the driver has written the pitch if it succeeded.
    unsafe {
        let code = real(address, pitch, width, height, element);
        let bytes = if code == SUCCESS { *pitch * height } else { 0 };
        allocated(code, address, bytes as u64, Kind::Device)
    }
}

/// `cuMemAllocAsync`
pub unsafe fn alloc_async(
    _: bool,
    real: unsafe extern "C-unwind" fn(*mut u64, usize, Handle) -> Code,
    address: *mut u64,
    bytes: usize,
    stream: Handle,
) -> Code {
    // SAFETY: the program's call.
    allocated(
        unsafe { real(address, bytes, stream) },
        address,
        bytes as u64,
        Kind::Device,
    )
}

/// `cuMemAllocFromPoolAsync`
pub unsafe fn alloc_pool(
    _: bool,
    real: unsafe extern "C-unwind" fn(*mut u64, usize, Handle, Handle) -> Code,
    address: *mut u64,
    bytes: usize,
    pool: Handle,
    stream: Handle,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(address, bytes, pool, stream) };
    allocated(code, address, bytes as u64, Kind::Device)
}

/// `cuMemAllocManaged`
pub unsafe fn alloc_managed(
    _: bool,
    real: unsafe extern "C-unwind" fn(*mut u64, usize, c_uint) -> Code,
    address: *mut u64,
    bytes: usize,
    flags: c_uint,
) -> Code {
    // SAFETY: the program's call.
    allocated(
        unsafe { real(address, bytes, flags) },
        address,
        bytes as u64,
        Kind::Managed,
    )
}

/// `cuMemFree`
pub unsafe fn free(_: bool, real: unsafe extern "C-unwind" fn(u64) -> Code, address: u64) -> Code {
    let _pass = pass();
    freed(address);
    // SAFETY: the program's call.
    unsafe { real(address) }
}

/// `cuMemFreeAsync`
pub unsafe fn free_async(
    _: bool,
    real: unsafe extern "C-unwind" fn(u64, Handle) -> Code,
    address: u64,
    stream: Handle,
) -> Code {
    let _pass = pass();
    freed(address);
    // SAFETY: the program's call.
    unsafe { real(address, stream) }
}

/// `cuMemMap`
pub unsafe fn map(
    _: bool,
    real: unsafe extern "C-unwind" fn(u64, usize, usize, u64, u64) -> Code,
    address: u64,
    bytes: usize,
    offset: usize,
    memory: u64,
    flags: u64,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(address, bytes, offset, memory, flags) };
    allocated(code, &raw const address, bytes as u64, Kind::Device)
}

/// `cuMemUnmap`: one call may end several mappings.
pub unsafe fn unmap(
    _: bool,
    real: unsafe extern "C-unwind" fn(u64, usize) -> Code,
    address: u64,
    bytes: usize,
) -> Code {
    let _pass = pass();
    if mode() == Mode::Try {
        let gone = address..address.saturating_add(bytes as u64);
        guarded(|| {
            state()
                .memory
                .blocks
                .retain(|start, _| !gone.contains(start))
        });
    }
    // SAFETY: the program's call.
    unsafe { real(address, bytes) }
}

/// `cuCtxEnablePeerAccess`
pub unsafe fn enable_peers(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle, c_uint) -> Code,
    context: Handle,
    flags: c_uint,
) -> Code {
    // SAFETY: the program's call.
    let code = unsafe { real(context, flags) };
    if code == SUCCESS && mode() == Mode::Try {
        guarded(|| state().memory.peers = true);
    }
    code
}
