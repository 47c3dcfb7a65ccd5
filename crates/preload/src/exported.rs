//! The driver's functions under their own names, for programs that link the driver: each goes on where ours is, or the driver's.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use warpwright_linkage::captured::is_captured;
use warpwright_linkage::held::{hold, let_go};

use crate::inside::{inside, of_driver};
use crate::pending::Pending;

/// Bytes of the longest name, with its zero.
const LONGEST: usize = 40;

/// Where calls of a name go on. A name is no pointer: that would be a page more which every program writes.
#[repr(C)]
struct Entry {
    to: AtomicPtr<c_void>,
    name: [u8; LONGEST],
}

impl Entry {
    const fn new(text: &str) -> Entry {
        let (text, mut name, mut at) = (text.as_bytes(), [0; LONGEST], 0);
        assert!(text.len() < LONGEST);
        while at < text.len() {
            name[at] = text[at];
            at += 1;
        }
        let to = AtomicPtr::new(std::ptr::null_mut());
        Entry { to, name }
    }
}

/// `CUDA_ERROR_NOT_FOUND`
extern "C" fn not_found() -> u32 {
    500
}

/// Where the calls of a name go on, from now on. Whoever is cancelled in the dynamic linker leaves it locked.
unsafe extern "C-unwind" fn find(entry: &Entry) -> *mut c_void {
    // What takes the error may be the program's own.
    if is_captured() {
        return look(entry);
    }
    let is_held = hold();
    let pending = Pending::take();
    let found = look(entry);
    pending.give_back();
    if is_held {
        let_go();
    }
    found
}

/// The same. The dynamic linker is asked.
fn look(entry: &Entry) -> *mut c_void {
    let name: *const c_char = entry.name.as_ptr().cast();
    // SAFETY: names that end in a zero.
    let mut found = match inside() {
        Some(inside) => unsafe { (inside.exported)(name) },
        None => std::ptr::null_mut(),
    };
    if found.is_null() {
        // SAFETY: as above.
        found = unsafe { of_driver(name) };
    }
    if found.is_null() {
        // The driver may come later.
        return not_found as *mut c_void;
    }
    entry.to.store(found, Ordering::Release);
    found
}

/// Finds out where a call goes on, its arguments kept: they are whole numbers and pointers.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn go_on() {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 8",
        "mov rdi, r11",
        "call {find}",
        "add rsp, 8",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        find = sym find,
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn go_on() {
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-80]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "mov x0, x16",
        "bl {find}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldp x29, x30, [sp], #80",
        "br x16",
        find = sym find,
    )
}

macro_rules! exported {
    ($($name:ident $base:literal $version:literal $flavour:ident $modes:ident $body:path,
       ($($arg:ident: $ty:ty),*);)*) => {
        mod entries {
            use super::Entry;
            $(
                #[allow(non_upper_case_globals)]
                pub static $name: Entry = Entry::new(stringify!($name));
            )*
        }

        $(
            /// Stands in for the driver's function of that name.
            ///
            /// # Safety
            /// As the driver's documentation asks for.
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                #[cfg(target_arch = "x86_64")]
                std::arch::naked_asm!(
                    "mov rax, qword ptr [rip + {entry}]",
                    "lea r11, [rip + {entry}]",
                    "test rax, rax",
                    "je {go_on}",
                    "jmp rax",
                    entry = sym entries::$name,
                    go_on = sym go_on,
                );
                #[cfg(target_arch = "aarch64")]
                std::arch::naked_asm!(
                    "adrp x16, {entry}",
                    "add x16, x16, :lo12:{entry}",
                    "ldr x17, [x16]",
                    "cbz x17, {go_on}",
                    "br x17",
                    entry = sym entries::$name,
                    go_on = sym go_on,
                );
            }
        )*
    };
}

warpwright_linkage::functions!(exported);
