//! What the dynamic linker has loaded, read with nothing called ([`captured`]), and what the small library that a program
//! preloads and the one that it opens tell each other.
//!
//! No panic is compiled into this crate: what is preloaded needs no library for them.
//!
//! Unsafe code is allowed here: types of functions of C.
#![no_std]
#![allow(unsafe_code)]

pub mod captured;
mod functions;
pub mod held;

use core::ffi::{CStr, c_char, c_void};

/// `dlsym`.
pub type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The file of the library that is opened, beside the one that is preloaded.
pub const INSIDE: &CStr = c"libwarpwright_inplace.so";

/// What it exports: a [`Begin`]. The number changes with the types here.
pub const BEGIN: &CStr = c"warpwright_begin_2";

/// Takes what the preloaded library has; null where nothing may run.
pub type Begin = unsafe extern "C" fn(*const Outside) -> *const Inside;

/// What the preloaded library gives.
#[repr(C)]
pub struct Outside {
    /// The C library's `dlsym`.
    pub dlsym: Dlsym,
    /// What stands behind the preloaded library by a name, or null.
    pub behind: unsafe extern "C" fn(*const c_char) -> *mut c_void,
}

/// What the opened library gives.
#[repr(C)]
pub struct Inside {
    /// Our function for a name that is asked of a `dlsym`, or null.
    pub hand_out:
        unsafe extern "C" fn(ask: Dlsym, handle: *mut c_void, name: *const c_char) -> *mut c_void,
    /// Our function for one that a program links, or null.
    pub exported: unsafe extern "C" fn(name: *const c_char) -> *mut c_void,
    /// The program is about to forbid itself system calls.
    pub seal: unsafe extern "C" fn(),
    /// The program has closed a library.
    pub closed: unsafe extern "C" fn(),
}
