//! What a program starts has the library, too, if it can open it. Where it cannot (after `chroot`, as another user, with other
//! mounts, or if the library is gone) the dynamic linker would say so on its standard error: then the environment that it gets
//! names the library no more.
//!
//! This runs in signal handlers and between `vfork` and exec, so nothing is called or allocated: the words of the environment
//! that name the library are written over where they stand. Whoever calls the kernel itself goes past this. `posix_spawn` is the
//! one of today, which takes no file for a script that does not say so, also for programs from before 2012.

use std::ffi::{c_char, c_void};

use warpwright_linkage::captured::{environment, is_same, kernel, own_name};

use crate::sealed::are_children_sealed;
use crate::ways::{SAVED, Way, ways};

static NAME: [u8; 11] = *b"LD_PRELOAD=";

/// Can what is started not open the library? It may have no descriptor left for that.
///
/// # Safety
/// A name that ends in a zero.
unsafe fn is_out_of_reach(library: *const c_char) -> bool {
    const HOW: usize = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    if are_children_sealed() {
        return true;
    }
    let here = libc::AT_FDCWD as isize as usize;
    // SAFETY: the caller's name, and a descriptor of our own.
    unsafe {
        let opened = kernel(libc::SYS_openat, [here, library.addr(), HOW]);
        if opened >= 0 {
            kernel(libc::SYS_close, [opened as usize, 0, 0]);
        }
        opened < 0
    }
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

/// Where it goes on. Without an environment of its own a function means the program's.
///
/// # Safety
/// As for [`mend`].
unsafe extern "C" fn on_the_way(way: &Way, own: *const *mut u8) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { mend(if own.is_null() { environment() } else { own }) };
    way.next()
}

/// Where the second to sixth argument stand on the stack.
const REGISTERS: [usize; 5] = [4, 3, 2, 1, 0];

/// The same for a function whose environment stands behind the null that ends its arguments.
///
/// # Safety
/// Words as [`ways`] leaves them on the stack.
unsafe extern "C" fn behind_arguments(way: &Way, saved: *const *const *mut u8) -> *mut c_void {
    let mut number = 0;
    // SAFETY: the caller's; arguments up to a null, and one behind it.
    unsafe {
        let mut next = || {
            let at = match REGISTERS.get(number) {
                Some(at) => *at,
                None => SAVED + number - REGISTERS.len(),
            };
            number += 1;
            saved.add(at).read_volatile()
        };
        while !next().is_null() {}
        on_the_way(way, next())
    }
}

ways! {
    execv "xor esi, esi" on_the_way,
    execvp "xor esi, esi" on_the_way,
    execl "xor esi, esi" on_the_way,
    execlp "xor esi, esi" on_the_way,
    system "xor esi, esi" on_the_way,
    popen "xor esi, esi" on_the_way,
    execve "mov rsi, rdx" on_the_way,
    execvpe "mov rsi, rdx" on_the_way,
    fexecve "mov rsi, rdx" on_the_way,
    posix_spawn "mov rsi, r9" on_the_way,
    posix_spawnp "mov rsi, r9" on_the_way,
    execle "mov rsi, rsp" behind_arguments,
}
