//! The functions that we stand in for.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::AtomicPtr;

use warpwright_linkage::held::{hold, let_go};

use crate::abi::{Code, Handle, LaunchConfig, NOT_FOUND, Out, Text};
use crate::door::{self, Slot};
use crate::state::{Mode, mode};
use crate::within::Within;
use crate::{abi, compilers, functions, grafts, graph, launch, memory, modules};

const ALL: u8 = Mode::With as u8 | Mode::Trace as u8 | Mode::Try as u8;
const PUT: u8 = Mode::With as u8 | Mode::Trace as u8;
const TRY: u8 = Mode::Try as u8;
const TRACE: u8 = Mode::Trace as u8;
const LEGACY: bool = false;
const THREAD: bool = true;

/// Is it the name of a launch?
const fn is_launch(name: &str) -> bool {
    matches!(
        name.as_bytes(),
        [b'c', b'u', b'L', b'a', b'u', b'n', b'c', b'h', ..]
    )
}

macro_rules! wrapped {
    ($($name:ident $base:literal $version:literal $flavour:ident $modes:ident $body:path,
       ($($arg:ident: $ty:ty),*);)*) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        enum Index { $($name),* }

        /// All of them.
        pub static SLOTS: [Slot; [$(stringify!($name)),*].len()] = [$(Slot {
            // SAFETY: the zero is at the end.
            name: unsafe { std::ffi::CStr::from_bytes_with_nul_unchecked(
                concat!(stringify!($name), "\0").as_bytes()) },
            base: $base,
            version: $version,
            per_thread: $flavour,
            modes: $modes,
            ours: $name as *const c_void,
            real: AtomicPtr::new(std::ptr::null_mut()),
            linked: AtomicPtr::new(std::ptr::null_mut()),
        }),*];

        $(
            /// Stands in for the driver's function of that name. Nothing is to be undone in this frame: a thread may be cancelled
            /// at any of its instructions.
            ///
            /// # Safety
            /// As the driver's documentation asks for.
            #[allow(non_snake_case)]
            unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> Code {
                let is_held = hold();
                // SAFETY: the caller's.
                let code = unsafe { work::$name(is_held, $($arg),*) };
                if is_held {
                    let_go();
                }
                code
            }
        )*

        /// What is done in their place.
        mod work {
            use super::*;
            $(
                #[allow(non_snake_case, clippy::too_many_arguments)]
                #[inline(never)]
                pub unsafe fn $name(is_held: bool, $($arg: $ty),*) -> Code {
                    let found = SLOTS[Index::$name as usize].real();
                    if found.is_null() {
                        return NOT_FOUND;
                    }
                    // SAFETY: the driver's function of that name has this signature.
                    let real: unsafe extern "C-unwind" fn($($ty),*) -> Code = unsafe { std::mem::transmute(found) };
                    const IS_LAUNCH: bool = is_launch(stringify!($name));
                    let _within = (!IS_LAUNCH || mode() != Mode::With).then(Within::new);
                    // Trials are not to be cancelled.
                    let real = if is_held && mode() != Mode::Try { open::$name } else { real };
                    // SAFETY: the caller's.
                    unsafe { $body($flavour, real, $($arg),*) }
                }
            )*
        }

        /// The driver's, in which a thread that is held may be cancelled.
        mod open {
            use super::*;
            $(
                #[allow(non_snake_case, clippy::too_many_arguments)]
                pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> Code {
                    // SAFETY: it was found, and has this signature.
                    let real: unsafe extern "C-unwind" fn($($ty),*) -> Code =
                        unsafe { std::mem::transmute(SLOTS[Index::$name as usize].real()) };
                    let_go();
                    // SAFETY: the caller's.
                    let code = unsafe { real($($arg),*) };
                    hold();
                    code
                }
            )*
        }
    };
}

warpwright_linkage::functions!(wrapped);
