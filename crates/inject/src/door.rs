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
use crate::driver;
use crate::memory::gate;
use crate::state::{Mode, mode};
use crate::wrapped::SLOTS;

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
        let found = driver::symbol(self.name);
        self.real.store(found, Ordering::Relaxed);
        found
    }

    fn hand_out(&self, real: *mut c_void) -> *mut c_void {
        self.real.store(real, Ordering::Relaxed);
        self.ours.cast_mut()
    }
}

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
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

/// `dlsym` itself.
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

/// Our function for a name, or null for everything else.
unsafe extern "C" fn ours(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    let nothing = std::ptr::null_mut();
    if dlsym_of_libc().is_none() || name.is_null() {
        return nothing;
    }
    // SAFETY: `dlsym` was called with it. The C library itself asks for names while it starts, so there is
    // no work here for a name that is not the driver's.
    let name = unsafe { CStr::from_ptr(name) };
    if !name.to_bytes().starts_with(b"cu") || mode() == Mode::Off {
        return nothing;
    }
    let modes = mode() as u8;
    let Some(slot) = SLOTS
        .iter()
        .find(|s| s.name == name && s.modes & modes != 0)
    else {
        // SAFETY: as our caller says.
        let real = || unsafe { real_dlsym(handle, name.as_ptr()) };
        return gate(name.to_bytes(), real).unwrap_or(nothing);
    };
    // SAFETY: as our caller says. A library that is called like this and searches behind itself finds the
    // driver behind us as well.
    let real = unsafe { real_dlsym(handle, name.as_ptr()) };
    match real.is_null() || real.cast_const() == slot.ours {
        true => nothing,
        false => slot.hand_out(real),
    }
}

/// Answers for the names that we stand in for and goes on into the C library's `dlsym` for all others, with
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
        "sub rsp, 8",
        "call {ours}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jne 2f",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "je 2f",
        "jmp rax",
        "2:",
        "ret",
        ours = sym ours,
        real = sym REAL_DLSYM,
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
        let found = ours(handle, name);
        if found.is_null() {
            real_dlsym(handle, name)
        } else {
            found
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
    if real.is_null() || SLOTS.iter().any(|s| s.ours == real.cast_const()) {
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
    real: unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> Code,
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
    real: unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> Code,
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
