//! The driver's library goes when the program closes it for the last time, as it would without us: then all that is known of
//! it is forgotten.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

use warpwright_linkage::captured::is_captured;

use crate::inside::opened;
use crate::ways::known;

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dlclose(library: *mut c_void) -> c_int {
    // SAFETY: it is one.
    let next: unsafe extern "C-unwind" fn(*mut c_void) -> c_int =
        unsafe { transmute(all::dlclose.next()) };
    // SAFETY: the caller's.
    let code = unsafe { next(library) };
    if let (0, false, Some(inside)) = (code, is_captured(), opened()) {
        // SAFETY: of the opened library.
        unsafe { (inside.closed)() };
    }
    code
}

known! {
    dlclose
}
