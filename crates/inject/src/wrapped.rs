//! The functions that we stand in for.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::AtomicPtr;

use crate::abi::{Code, Handle, LaunchConfig, NOT_FOUND, Out, Text};
use crate::door::{self, Slot};
use crate::state::Mode;
use crate::{abi, compilers, functions, grafts, graph, launch, memory, modules};

const ALL: u8 = Mode::With as u8 | Mode::Trace as u8 | Mode::Try as u8;
const PUT: u8 = Mode::With as u8 | Mode::Trace as u8;
const TRY: u8 = Mode::Try as u8;
const TRACE: u8 = Mode::Trace as u8;
const LEGACY: bool = false;
const THREAD: bool = true;

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
        }),*];

        $(
            /// Stands in for the driver's function of that name.
            ///
            /// # Safety
            /// As the driver's documentation asks for.
            #[allow(non_snake_case)]
            unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> Code {
                let real = SLOTS[Index::$name as usize].real();
                if real.is_null() {
                    return NOT_FOUND;
                }
                // SAFETY: the driver's function of that name has this signature.
                let real: unsafe extern "C-unwind" fn($($ty),*) -> Code = unsafe { std::mem::transmute(real) };
                unsafe { $body($flavour, real, $($arg),*) }
            }
        )*
    };
}

warpwright_linkage::functions!(wrapped);
