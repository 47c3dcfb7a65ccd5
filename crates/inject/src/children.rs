//! What a program starts has the library, too, if it can open it. Where it cannot (after `chroot`, as another user, with other
//! mounts, or if the library is gone) the dynamic linker would say so on its standard error: then the environment that it gets
//! names the library no more.
//!
//! This runs in signal handlers and between `vfork` and exec, so nothing is called or allocated: the words of the environment
//! that name the library are written over where they stand. Left out are `posix_spawn`, whose older version is another
//! function, and `execle`, whose environment is behind the last argument.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::captured::{environment, is_same, kernel, own_name};
use crate::door::real_dlsym;

static NAME: [u8; 11] = *b"LD_PRELOAD=";

/// Can what is started not open the library? The dynamic linker asks the same of a file of its own, so nobody forbids it.
///
/// # Safety
/// A name that ends in a zero.
unsafe fn is_out_of_reach(library: *const c_char) -> bool {
    // SAFETY: the caller's.
    unsafe { kernel(libc::SYS_access, [library.addr(), libc::R_OK as usize, 0]) != 0 }
}

/// Writes a list of libraries anew, without one of them. Words end in a space or a colon.
///
/// # Safety
/// Both end in a zero, and the list may be written.
unsafe fn take_out(list: *mut u8, library: *const u8) {
    let ends = |byte: u8| matches!(byte, 0 | b' ' | b':');
    let (mut from, mut to) = (list, list);
    // SAFETY: nothing is read behind the zero, and nothing written behind what was read.
    unsafe {
        loop {
            let mut end = from;
            while !ends(end.read_volatile()) {
                end = end.add(1);
            }
            let separator = end.read_volatile();
            end.write_volatile(0);
            let is_own = is_same(from, library);
            end.write_volatile(separator);
            while !is_own && from != end.add(usize::from(separator != 0)) {
                to.write_volatile(from.read_volatile());
                (from, to) = (from.add(1), to.add(1));
            }
            if separator == 0 {
                break;
            }
            from = end.add(1);
        }
        to.write_volatile(0);
    }
}

/// # Safety
/// Null, or words that end in a zero and may be written, behind the last of them a null.
unsafe fn mend(mut variable: *const *mut u8) {
    let library = own_name();
    // SAFETY: the caller's.
    unsafe {
        if library.is_null() || variable.is_null() || !is_out_of_reach(library) {
            return;
        }
        while !(*variable).is_null() {
            let mut at = 0;
            while at < NAME.len() && (*variable).add(at).read_volatile() == NAME[at] {
                at += 1;
            }
            if at == NAME.len() {
                take_out((*variable).add(at), library.cast());
            }
            variable = variable.add(1);
        }
    }
}

/// A function that starts a program.
struct Way {
    name: &'static CStr,
    /// The one behind this library's.
    next: AtomicPtr<c_void>,
}

impl Way {
    const fn new(name: &'static CStr) -> Way {
        let next = AtomicPtr::new(std::ptr::null_mut());
        Way { name, next }
    }

    fn next(&self) -> *mut c_void {
        let mut found = self.next.load(Ordering::Relaxed);
        if found.is_null() {
            // SAFETY: a C string; what stands behind this library is looked for.
            found = unsafe { real_dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.next.store(found, Ordering::Relaxed);
        }
        found
    }
}

/// Where it goes on. Without an environment of its own a function means the program's.
///
/// # Safety
/// As for [`mend`].
unsafe extern "C" fn on_the_way(way: &Way, own: *const *mut u8) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { mend(if own.is_null() { environment() } else { own }) };
    way.next()
}

/// Goes on in the function behind, with registers and stack as they were, however many arguments there are.
macro_rules! ways {
    ($($name:ident $environment:literal,)*) => {
        mod all {
            use super::Way;
            $(
                #[allow(non_upper_case_globals)]
                pub static $name: Way = {
                    // SAFETY: it ends in a zero, the only one.
                    Way::new(unsafe { super::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) })
                };
            )*

            /// Looked for when the library is loaded: later it may be a bad moment.
            #[used]
            #[unsafe(link_section = ".init_array")]
            static AT_START: extern "C" fn() = {
                extern "C" fn look() {
                    $($name.next();)*
                }
                look
            };
        }

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
                    $environment,
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
                    ours = sym on_the_way,
                )
            }
        )*
    };
}

ways! {
    execv "xor esi, esi",
    execvp "xor esi, esi",
    execl "xor esi, esi",
    execlp "xor esi, esi",
    system "xor esi, esi",
    popen "xor esi, esi",
    execve "mov rsi, rdx",
    execvpe "mov rsi, rdx",
    fexecve "mov rsi, rdx",
}
