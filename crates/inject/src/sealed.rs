//! A program that forbids itself system calls (seccomp) would be ended by those of this library. So what was seen is written
//! before, and nothing is read or written from then on; winners that are in place stay. A filter that is set by a call of the
//! kernel itself is not seen.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use warpwright_winners::captured::{is_captured, kernel};

use crate::state::{OWN, seal};
use crate::ways::{Way, ways};

/// The first, second, third and fourth argument.
///
/// # Safety
/// Words as [`ways`] leaves them on the stack.
unsafe fn arguments(saved: *const usize) -> [usize; 4] {
    // SAFETY: the caller's.
    [5, 4, 3, 2].map(|at| unsafe { saved.add(at).read_volatile() })
}

fn process() -> u32 {
    // SAFETY: a call without arguments.
    unsafe { kernel(libc::SYS_getpid, [0; 3]) as u32 }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn note() {
        OWN.store(process(), Ordering::Relaxed);
    }
    note
};

/// Programs ask whether there are filters, with none. What runs between `vfork` and exec has this process's memory.
fn before(is_strict: bool, filter: usize) {
    let is_set = is_strict || filter != 0;
    if is_set && OWN.load(Ordering::Relaxed) == process() && !is_captured() {
        seal();
    }
}

/// # Safety
/// As for [`arguments`].
unsafe extern "C" fn of_process(way: &Way, saved: *const usize) -> *mut c_void {
    // SAFETY: the caller's.
    let [option, mode, filter, _] = unsafe { arguments(saved) };
    if option == libc::PR_SET_SECCOMP as usize {
        before(mode == libc::SECCOMP_MODE_STRICT as usize, filter);
    }
    way.next()
}

/// # Safety
/// As for [`arguments`].
unsafe extern "C" fn of_kernel(way: &Way, saved: *const usize) -> *mut c_void {
    // SAFETY: the caller's.
    let [number, operation, _, filter] = unsafe { arguments(saved) };
    let operations = [libc::SECCOMP_SET_MODE_STRICT, libc::SECCOMP_SET_MODE_FILTER];
    if number == libc::SYS_seccomp as usize && operations.contains(&(operation as u32)) {
        before(operation == libc::SECCOMP_SET_MODE_STRICT as usize, filter);
    }
    way.next()
}

ways! {
    prctl "mov rsi, rsp" of_process,
    syscall "mov rsi, rsp" of_kernel,
}
