//! A program that forbids itself system calls (seccomp) would be ended by those of this library, one that serves them itself
//! (`PR_SET_SYSCALL_USER_DISPATCH`) would see them, and one that forbids itself to read the processor's clock (`PR_SET_TSC`) would
//! be ended by looking at the time. So what was seen is written before, and nothing is read or written from then on; winners that are in place stay. A filter that is set by a call of the
//! kernel itself is not seen.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use warpwright_linkage::captured::{is_captured, kernel};

use crate::inside::opened;
use crate::ways::{Way, known, ways};

/// `PR_SET_SYSCALL_USER_DISPATCH` of linux/prctl.h.
const SET_USER_DISPATCH: usize = 59;

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

/// The process that has this memory. What runs between `vfork` and exec is another one.
static OWN: AtomicU32 = AtomicU32::new(0);
/// It has forbidden itself system calls, or the clock.
static IS_SEALED: AtomicBool = AtomicBool::new(false);
/// One that has so between `vfork` and exec, or zero.
static OTHER: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn note() {
    OWN.store(process(), Ordering::Relaxed);
}

unsafe extern "C" {
    // pthread.h, which the crate for the C library leaves out.
    fn pthread_atfork(
        before: Option<unsafe extern "C" fn()>,
        in_parent: Option<unsafe extern "C" fn()>,
        in_child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: unsafe extern "C" fn() = {
    unsafe extern "C" fn start() {
        // SAFETY: this library is never unloaded.
        unsafe {
            note();
            if !is_captured() {
                pthread_atfork(None, None, Some(note));
            }
        }
    }
    start
};

/// May nothing be opened any more?
pub fn is_sealed() -> bool {
    IS_SEALED.load(Ordering::Relaxed)
}

/// The same of what the calling process starts.
pub fn are_children_sealed() -> bool {
    let other = OTHER.load(Ordering::Relaxed);
    is_sealed() || (other != 0 && other == process())
}

/// Programs ask whether there are filters, with none.
fn before(is_strict: bool, filter: usize) {
    if !(is_strict || filter != 0) || is_captured() {
        return;
    }
    let process = process();
    if OWN.load(Ordering::Relaxed) != process {
        OTHER.store(process, Ordering::Relaxed);
        return;
    }
    if let Some(inside) = opened() {
        // SAFETY: of the opened library.
        unsafe { (inside.seal)() };
    }
    IS_SEALED.store(true, Ordering::Relaxed);
}

/// # Safety
/// As for [`arguments`].
unsafe extern "C" fn of_process(way: &Way, saved: *const usize) -> *mut c_void {
    // SAFETY: the caller's.
    let [option, mode, filter, _] = unsafe { arguments(saved) };
    if option == libc::PR_SET_SECCOMP as usize {
        before(mode == libc::SECCOMP_MODE_STRICT as usize, filter);
    }
    if option == libc::PR_SET_TSC as usize && mode == libc::PR_TSC_SIGSEGV as usize {
        before(true, 0);
    }
    // Calls of ours lie where none may be.
    if option == SET_USER_DISPATCH {
        before(mode != 0, 0);
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

known! {
    prctl syscall
}

ways! {
    prctl of_process,
    syscall of_kernel,
}
