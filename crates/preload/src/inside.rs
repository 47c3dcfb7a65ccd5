//! The library that does the work. It is opened where a program asks for the driver.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use warpwright_linkage::captured::{is_captured, variable};
use warpwright_linkage::{BEGIN, Begin, INSIDE, Inside, Outside};

use crate::door::{dlsym_of_libc, real_dlsym};
use crate::holes::Holes;
#[cfg(target_arch = "x86_64")]
use crate::sealed::is_sealed;

#[cfg(not(target_arch = "x86_64"))]
fn is_sealed() -> bool {
    false
}

static OPENED: AtomicPtr<Inside> = AtomicPtr::new(std::ptr::null_mut());
/// It is not to be had.
static NONE: u8 = 0;

fn none() -> *mut Inside {
    (&raw const NONE).cast_mut().cast()
}

/// It, if it is open.
pub fn opened() -> Option<&'static Inside> {
    let known = OPENED.load(Ordering::Acquire);
    if known == none() {
        return None;
    }
    // SAFETY: null, or what the library gave, which is never closed.
    unsafe { known.as_ref() }
}

/// It, opened where it is not yet; none where nothing is to be done, or it cannot be.
pub fn inside() -> Option<&'static Inside> {
    if OPENED.load(Ordering::Acquire).is_null() && !is_sealed() && !is_captured() {
        // SAFETY: the calling thread's own.
        let number = unsafe { libc::__errno_location() };
        let before = unsafe { *number };
        let found = match open() {
            found if found.is_null() => none(),
            found => found.cast_mut(),
        };
        OPENED.store(found, Ordering::Release);
        // SAFETY: as above.
        unsafe { *number = before };
    }
    opened()
}

/// Opens it; null if that is not to be or fails. Whoever does so at the same time gets the same.
fn open() -> *const Inside {
    let null = std::ptr::null();
    let mode = variable(b"WARPWRIGHT=");
    // SAFETY: a text of the environment.
    if mode.is_null() || unsafe { *mode } == 0 {
        return null;
    }
    let Some(dlsym) = dlsym_of_libc() else {
        return null;
    };
    let how = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE;
    let outside = Outside { dlsym, behind };
    let _holes = Holes::take();
    // SAFETY: C strings, and a function of that type.
    unsafe {
        let library = libc::dlopen(INSIDE.as_ptr(), how);
        if library.is_null() {
            return null;
        }
        let begin = dlsym(library, BEGIN.as_ptr());
        match std::mem::transmute::<*mut c_void, Option<Begin>>(begin) {
            Some(begin) => begin(&raw const outside),
            None => null,
        }
    }
}

/// What stands behind this library. Whom that is asked for goes by where the call comes from, so it is no jump.
///
/// # Safety
/// A name that ends in a zero.
pub unsafe extern "C" fn behind(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's.
    std::hint::black_box(unsafe { real_dlsym(libc::RTLD_NEXT, name) })
}

/// The driver's function of a name, whoever has it, or null.
///
/// # Safety
/// A name that ends in a zero.
pub unsafe fn of_driver(name: *const c_char) -> *mut c_void {
    let how = libc::RTLD_NOLOAD | libc::RTLD_LAZY;
    // SAFETY: C strings; nothing is loaded that is not there.
    unsafe {
        let linked = behind(name);
        if !linked.is_null() {
            return linked;
        }
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), how);
        if library.is_null() {
            return library;
        }
        let found = real_dlsym(library, name);
        // The program's own references alone hold it.
        libc::dlclose(library);
        found
    }
}
