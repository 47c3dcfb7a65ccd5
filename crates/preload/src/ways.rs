//! Functions of the C library that something is done before: it is called with registers and stack as they were.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::door::real_dlsym;

/// A function of the C library that something is done before.
pub struct Way {
    name: &'static CStr,
    /// The one behind this library's.
    next: AtomicPtr<c_void>,
}

impl Way {
    pub const fn new(name: &'static CStr) -> Way {
        let next = AtomicPtr::new(std::ptr::null_mut());
        Way { name, next }
    }

    /// The function itself.
    pub fn next(&self) -> *mut c_void {
        let mut found = self.next.load(Ordering::Relaxed);
        if found.is_null() {
            // SAFETY: a C string; what stands behind this library is looked for.
            found = unsafe { real_dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.next.store(found, Ordering::Relaxed);
        }
        found
    }
}

/// Words on the stack below the arguments there, while something is done: registers (the first argument is the sixth word, the
/// sixth the first), and where the call came from.
pub const SAVED: usize = 8;

/// Functions of the C library, found when this library is loaded: later it may be a bad moment.
macro_rules! known {
    ($($name:ident)*) => {
        mod all {
            use crate::ways::Way;
            $(
                #[allow(non_upper_case_globals)]
                pub static $name: Way = {
                    // SAFETY: it ends in a zero, the only one.
                    Way::new(unsafe { std::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) })
                };
            )*

            #[used]
            #[unsafe(link_section = ".init_array")]
            static AT_START: extern "C" fn() = {
                extern "C" fn look() {
                    $($name.next();)*
                }
                look
            };
        }
    };
}

/// Defines such functions that do something, with the words that were put on the stack, and go on in what that answers with
/// registers and stack as they were, however many arguments there are.
macro_rules! ways {
    ($($name:ident $ours:ident,)*) => {
        $(
            /// # Safety
            /// As the C library's.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                std::arch::naked_asm!(
                    "push rax",
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "mov rsi, rsp",
                    "lea rdi, [rip + {way}]",
                    "call {ours}",
                    "mov r11, rax",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "pop rax",
                    "jmp r11",
                    way = sym all::$name,
                    ours = sym $ours,
                )
            }
        )*
    };
}

pub(crate) use {known, ways};
