//! Where a program gets the driver's functions from: `dlsym` and `cuGetProcAddress`.
//!
//! The preloaded library answers the first and asks here. What is asked for by a
//! name that [`crate::wrapped`] lists is looked up in the driver; if it is there, our function is handed out
//! and keeps the driver's address. `cuGetProcAddress` takes a version: the same name means different
//! signatures in different versions. Whether the one that was asked for is the one that we know is asked of the
//! driver itself: both must give the same address, so a driver of the future is no danger.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use warpwright_linkage::captured::{is_captured, tell};
use warpwright_linkage::{Dlsym, Inside, Outside};

use crate::abi::{Code, SUCCESS};
use crate::compilers;
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
    /// What whoever links the driver calls, once the driver was met: what stands behind us, another tool perhaps.
    pub linked: AtomicPtr<c_void>,
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
        let found = self.next();
        self.real.store(found, Ordering::Relaxed);
        found
    }

    /// See [`Slot::linked`].
    fn next(&self) -> *mut c_void {
        if driver::meet() {
            return self.linked.load(Ordering::Relaxed);
        }
        match behind(self.name) {
            found if found.is_null() => driver::symbol(self.name),
            found => found,
        }
    }

    /// Is a function of the slot's name another one than what ours goes on with? Then somebody stands between program and
    /// driver, or there are two drivers: calls come by here once, and whoever asks for this one gets it.
    fn is_beyond(&self, found: *mut c_void) -> bool {
        let known = self.real.load(Ordering::Relaxed);
        !known.is_null() && known != found && object_of(known) != object_of(found)
    }

    /// Our function, which goes on with `real`.
    fn hand_out(&self, real: *mut c_void) -> Option<*mut c_void> {
        if self.is_beyond(real) {
            return None;
        }
        self.real.store(real, Ordering::Relaxed);
        Some(self.ours.cast_mut())
    }
}

/// Finds what whoever links the driver calls, where the dynamic linker may be asked.
pub fn meet() {
    let names = SLOTS.each_ref().map(|slot| slot.name);
    let own = driver::look(&names);
    for (at, slot) in SLOTS.iter().enumerate() {
        let found = match (behind(slot.name), &own) {
            (found, Some(own)) if found.is_null() => own[at],
            (found, _) => found,
        };
        slot.linked.store(found, Ordering::Relaxed);
    }
}

/// What the preloaded library gave.
static OUTSIDE: OnceLock<Outside> = OnceLock::new();

static INSIDE: Inside = Inside {
    hand_out,
    exported,
    seal,
    closed,
};

/// Takes what the preloaded library has, and gives what this one has.
///
/// # Safety
/// As [`warpwright_linkage::Begin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpwright_begin_2(outside: *const Outside) -> *const Inside {
    if is_captured() {
        tell();
        return std::ptr::null();
    }
    // SAFETY: the caller's.
    OUTSIDE.get_or_init(|| unsafe { outside.read() });
    if mode() == Mode::With {
        crate::functions::prepare();
    }
    &raw const INSIDE
}

/// `dlsym` of the C library, for a handle.
///
/// # Safety
/// As `dlsym`.
pub unsafe fn real_dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    match OUTSIDE.get() {
        // SAFETY: the caller's.
        Some(outside) => unsafe { (outside.dlsym)(handle, name) },
        None => std::ptr::null_mut(),
    }
}

/// What a program that links the driver calls by this name, were it not for us; null where none is linked.
pub fn behind(name: &CStr) -> *mut c_void {
    let Some(outside) = OUTSIDE.get() else {
        return std::ptr::null_mut();
    };
    // SAFETY: a C string. That nothing was found is no error of the program's.
    unsafe {
        let found = (outside.behind)(name.as_ptr());
        if found.is_null() {
            libc::dlerror();
        }
        found
    }
}

/// Where the object begins that an address lies in.
fn object_of(address: *const c_void) -> *mut c_void {
    // SAFETY: zeros are valid, and the call fills them.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about.
    unsafe { libc::dladdr(address, &raw mut found) };
    found.dli_fbase
}

/// Is it a function of this library or of the preloaded one, by whatever name it was found?
fn is_own(address: *mut c_void) -> bool {
    let preloaded = OUTSIDE.get().map(|outside| outside.behind as *const c_void);
    let object = object_of(address);
    object == object_of(hand_out as *const c_void) || preloaded.map(object_of) == Some(object)
}

/// Our function for a name that is asked of a `dlsym`, or null.
unsafe extern "C" fn hand_out(ask: Dlsym, handle: *mut c_void, name: *const c_char) -> *mut c_void {
    let null = std::ptr::null_mut();
    if mode() == Mode::Off {
        return null;
    }
    // SAFETY: a `dlsym` was called with it.
    let name = unsafe { CStr::from_ptr(name) };
    // SAFETY: as above. A library that is called like this and searches behind itself finds the driver behind us as well.
    let real = || unsafe { ask(handle, name.as_ptr()) };
    if compilers::is_name(name.to_bytes()) {
        return compilers::hand_out(name.to_bytes(), real).unwrap_or(null);
    }
    // It may have been closed in a way that is not seen.
    // SAFETY: as the preloaded library calls it.
    unsafe { closed() };
    let modes = mode() as u8;
    let mut slots = SLOTS.iter();
    let found = match slots.find(|s| s.name == name && s.modes & modes != 0) {
        None => gate(name.to_bytes(), real),
        Some(slot) => {
            let real = real();
            let is_other = !real.is_null() && !is_own(real);
            if is_other {
                driver::meet();
            }
            is_other.then(|| slot.hand_out(real)).flatten()
        }
    };
    found.unwrap_or(null)
}

/// Our function for one that a program links.
unsafe extern "C" fn exported(name: *const c_char) -> *mut c_void {
    // SAFETY: the preloaded library's.
    let name = unsafe { CStr::from_ptr(name) };
    let mut slots = SLOTS.iter();
    let found = slots.find(|s| s.name == name);
    let found = found.filter(|slot| {
        let (next, none) = (slot.next(), std::ptr::null_mut());
        // Else it would be looked for once more where the program has an error to ask for.
        let _ = slot
            .real
            .compare_exchange(none, next, Ordering::Relaxed, Ordering::Relaxed);
        next.is_null() || !slot.is_beyond(next)
    });
    found.map_or(std::ptr::null_mut(), |slot| slot.ours.cast_mut())
}

unsafe extern "C" fn seal() {
    crate::state::seal();
}

unsafe extern "C" fn closed() {
    if crate::state::is_own() && driver::is_gone() {
        for slot in &SLOTS {
            slot.real.store(std::ptr::null_mut(), Ordering::Relaxed);
        }
        driver::forget();
        crate::state::forget_driver();
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
        Some(slot) => slot.hand_out(real),
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
