//! Where a program gets the driver's functions from: `dlsym` and `cuGetProcAddress`.
//!
//! Both are defined here under their own names, so a preloaded library answers first. What is asked for by a
//! name that [`crate::wrapped`] lists is looked up in the driver; if it is there, our function is handed out
//! and keeps the driver's address. `cuGetProcAddress` takes a version: the same name means different
//! signatures in different versions. Whether the one that was asked for is the one that we know is asked of the
//! driver itself: both must give the same address, so a driver of the future is no danger.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::{Code, SUCCESS};
use crate::compilers;
use crate::driver;
use crate::memory::gate;
use crate::state::{Mode, mode};
use crate::wrapped::SLOTS;
use warpwright_winners::captured::is_captured_for;

/// A function that we stand in for.
pub struct Slot {
    /// Its exported name.
    pub name: &'static CStr,
    /// Its name for `cuGetProcAddress`.
    pub base: &'static CStr,
    /// Of the flavour whose null stream is each thread's own?
    pub per_thread: bool,
    /// A version (12000 for 12.0) for which the base name means this signature.
    pub version: c_int,
    /// In which modes.
    pub modes: u8,
    /// Our function.
    pub ours: *const c_void,
    /// The driver's.
    pub real: AtomicPtr<c_void>,
}

// SAFETY: the pointer is a function's.
unsafe impl Sync for Slot {}

impl Slot {
    /// The driver's function, or null.
    pub fn real(&self) -> *mut c_void {
        let known = self.real.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // Whoever links the driver calls what stands behind us: another tool, perhaps.
        let mut found = driver::behind(self.name);
        if found.is_null() {
            found = driver::symbol(self.name);
        }
        self.real.store(found, Ordering::Relaxed);
        found
    }

    fn hand_out(&self, real: *mut c_void) -> *mut c_void {
        self.real.store(real, Ordering::Relaxed);
        self.ours.cast_mut()
    }
}

type Dlsym = unsafe extern "C-unwind" fn(*mut c_void, *const c_char) -> *mut c_void;
static REAL_DLSYM: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

#[cfg(target_arch = "x86_64")]
const BASE_VERSION: &CStr = c"GLIBC_2.2.5";
#[cfg(not(target_arch = "x86_64"))]
const BASE_VERSION: &CStr = c"GLIBC_2.17";

/// The C library's `dlsym`. It is found by version, since by name one would find ours.
fn dlsym_of_libc() -> Option<Dlsym> {
    let mut found = REAL_DLSYM.load(Ordering::Acquire);
    if found.is_null() {
        for version in [c"GLIBC_2.34", BASE_VERSION] {
            // SAFETY: C strings; RTLD_NEXT searches behind this library.
            found = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
            if !found.is_null() {
                break;
            }
        }
        REAL_DLSYM.store(found, Ordering::Release);
    }
    // SAFETY: it is null or `dlsym`.
    unsafe { std::mem::transmute::<*mut c_void, Option<Dlsym>>(found) }
}

/// `dlsym` of the C library.
///
/// # Safety
/// As `dlsym`.
pub unsafe fn real_dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    match dlsym_of_libc() {
        // SAFETY: the caller's.
        Some(real) => unsafe { real(handle, name) },
        None => std::ptr::null_mut(),
    }
}

static NEXT_DLSYM: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The `dlsym` behind this library's: of another tool that was preloaded, or of the C library.
fn next_dlsym() -> *mut c_void {
    let known = NEXT_DLSYM.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: a C string; RTLD_NEXT searches behind this library.
    let mut found = unsafe { real_dlsym(libc::RTLD_NEXT, c"dlsym".as_ptr()) };
    let is_ours = found.cast_const() == dlsym as *const c_void;
    if found.is_null() || is_ours || cfg!(not(target_arch = "x86_64")) {
        found = REAL_DLSYM.load(Ordering::Acquire);
    }
    NEXT_DLSYM.store(found, Ordering::Release);
    found
}

/// Where the object begins that an address lies in.
fn object_of(address: *const c_void) -> *mut c_void {
    // SAFETY: zeros are valid, and the call fills them.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about.
    unsafe { libc::dladdr(address, &raw mut found) };
    found.dli_fbase
}

/// Is it a function of this library, by whatever name it was found?
fn is_own(address: *mut c_void) -> bool {
    object_of(address) == object_of(ours as *const c_void)
}

/// What `dlsym` gives back, or null and where it goes on.
#[repr(C)]
struct Answer {
    found: *mut c_void,
    next: *mut c_void,
}

/// Our function for a name, or who is asked for everything else.
unsafe extern "C" fn ours(
    handle: *mut c_void,
    name: *const c_char,
    caller: *const c_void,
) -> Answer {
    let pass = |next: *mut c_void| Answer {
        found: std::ptr::null_mut(),
        next,
    };
    let Some(of_libc) = dlsym_of_libc() else {
        return pass(std::ptr::null_mut());
    };
    let next = next_dlsym();
    // SAFETY: `dlsym` was called with it.
    if unsafe { is_captured_for(name) } {
        return pass(next);
    }
    // Who searches behind itself, and who hooks this function as well, is a tool and not the program: it gets what it would
    // get without us.
    let is_hooked = next != of_libc as *mut c_void;
    let is_tool = is_hooked && object_of(caller) == object_of(next);
    if name.is_null() || handle == libc::RTLD_NEXT || is_tool {
        return pass(next);
    }
    // SAFETY: `dlsym` was called with it. The C library itself asks for names while it starts, so there is
    // no work here for a name that is not the driver's.
    let name = unsafe { CStr::from_ptr(name) };
    let is_compiler = compilers::is_name(name.to_bytes());
    if !(name.to_bytes().starts_with(b"cu") || is_compiler) || mode() == Mode::Off {
        return pass(next);
    }
    // SAFETY: it is a `dlsym`.
    let ask: Option<Dlsym> = unsafe { std::mem::transmute::<*mut c_void, Option<Dlsym>>(next) };
    let real = || match ask {
        // SAFETY: as our caller says. A library that is called like this and searches behind itself finds the driver
        // behind us as well.
        Some(ask) => unsafe { ask(handle, name.as_ptr()) },
        None => std::ptr::null_mut(),
    };
    if is_compiler {
        let found = compilers::hand_out(name.to_bytes(), real).unwrap_or(std::ptr::null_mut());
        return Answer { found, next };
    }
    let modes = mode() as u8;
    let mut slots = SLOTS.iter();
    let found = match slots.find(|s| s.name == name && s.modes & modes != 0) {
        None => gate(name.to_bytes(), real),
        Some(slot) => {
            let real = real();
            let is_other = !real.is_null() && !is_own(real);
            is_other.then(|| slot.hand_out(real))
        }
    };
    let found = found.unwrap_or(std::ptr::null_mut());
    Answer { found, next }
}

/// Answers for the names that we stand in for and goes on into the next `dlsym` for all others, with
/// registers and stack as they were: `RTLD_NEXT` and `RTLD_DEFAULT` depend on who calls.
///
/// # Safety
/// As the C library's.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "mov rdx, qword ptr [rsp + 16]",
        "sub rsp, 8",
        "call {ours}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jne 2f",
        "test rdx, rdx",
        "je 2f",
        "jmp rdx",
        "2:",
        "ret",
        ours = sym ours,
    )
}

/// As above; a search that depends on who calls begins behind this library.
///
/// # Safety
/// As the C library's.
#[cfg(not(target_arch = "x86_64"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe {
        let answer = ours(handle, name, std::ptr::null());
        match answer.found.is_null() {
            true => real_dlsym(handle, name),
            false => answer.found,
        }
    }
}

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`
const PER_THREAD: u64 = 2;

/// Puts our function in the place of what `cuGetProcAddress` found. `ask` is that function, for this name and
/// these flags, with another version.
///
/// # Safety
/// `name` and `found` are those of a call that succeeded.
pub unsafe fn proc_address(
    name: *const c_char,
    found: *mut *mut c_void,
    flags: u64,
    ask: impl Fn(c_int) -> *mut c_void,
) {
    if name.is_null() || found.is_null() || mode() == Mode::Off {
        return;
    }
    // SAFETY: the driver has just read the one and written the other.
    let (name, real) = unsafe { (CStr::from_ptr(name), *found) };
    if real.is_null() || is_own(real) {
        return;
    }
    let modes = mode() as u8;
    let of_name = SLOTS
        .iter()
        .filter(|s| (s.base == name || s.name == name) && s.modes & modes != 0);
    let has_own = |s: &&Slot| s.per_thread;
    let per_thread = flags & PER_THREAD != 0 && of_name.clone().any(|s| has_own(&s));
    let slot = of_name
        .filter(|s| s.per_thread == per_thread)
        .find(|s| ask(s.version) == real);
    let ours = match slot {
        Some(slot) => Some(slot.hand_out(real)),
        None => gate(name.to_bytes(), || real),
    };
    if let Some(ours) = ours {
        // SAFETY: as above.
        unsafe { *found = ours };
    }
}

/// `cuGetProcAddress` of CUDA 11.
pub unsafe fn get_proc_address(
    _: bool,
    real: unsafe extern "C-unwind" fn(*const c_char, *mut *mut c_void, c_int, u64) -> Code,
    name: *const c_char,
    found: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> Code {
    // SAFETY: the program's call.
    unsafe {
        let code = real(name, found, version, flags);
        if code == SUCCESS {
            proc_address(name, found, flags, |version| {
                let mut other = std::ptr::null_mut();
                let code = real(name, &raw mut other, version, flags);
                if code == SUCCESS {
                    other
                } else {
                    std::ptr::null_mut()
                }
            });
        }
        code
    }
}

/// `cuGetProcAddress_v2` of CUDA 12, which also says why it found nothing.
pub unsafe fn get_proc_address_v2(
    _: bool,
    real: unsafe extern "C-unwind" fn(
        *const c_char,
        *mut *mut c_void,
        c_int,
        u64,
        *mut c_int,
    ) -> Code,
    name: *const c_char,
    found: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> Code {
    // SAFETY: the program's call.
    unsafe {
        let code = real(name, found, version, flags, status);
        if code == SUCCESS {
            proc_address(name, found, flags, |version| {
                let mut other = std::ptr::null_mut();
                let code = real(name, &raw mut other, version, flags, std::ptr::null_mut());
                if code == SUCCESS {
                    other
                } else {
                    std::ptr::null_mut()
                }
            });
        }
        code
    }
}
