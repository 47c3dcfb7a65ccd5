//! Threads that may be cancelled at any instruction.

use core::ffi::c_int;

// Of pthread.h, which the crate for the C library leaves out.
unsafe extern "C-unwind" {
    /// Sets whether the calling thread may be cancelled.
    pub fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
}

/// PTHREAD_CANCEL_ENABLE
const ENABLE: c_int = 0;
/// PTHREAD_CANCEL_DISABLE
pub const DISABLE: c_int = 1;
/// PTHREAD_CANCEL_DEFERRED and PTHREAD_CANCEL_ASYNCHRONOUS.
const DEFERRED: c_int = 0;
const ASYNCHRONOUS: c_int = 1;

/// Holds the calling thread where it may be cancelled at any instruction: from there nobody can unwind through what has something
/// to undo. Is it such a thread?
pub fn hold() -> bool {
    let (mut kind, mut state) = (DEFERRED, ENABLE);
    // SAFETY: the calling thread's own, and outputs of the right types.
    unsafe {
        pthread_setcanceltype(DEFERRED, &raw mut kind);
        if kind == DEFERRED {
            return false;
        }
        pthread_setcancelstate(DISABLE, &raw mut state);
        if state == DISABLE {
            pthread_setcanceltype(ASYNCHRONOUS, &raw mut kind);
        }
    }
    state != DISABLE
}

/// It may be cancelled at any instruction again, and is if somebody has asked for it meanwhile.
pub fn let_go() {
    let mut before = 0;
    // SAFETY: as above.
    unsafe {
        pthread_setcancelstate(ENABLE, &raw mut before);
        pthread_setcanceltype(ASYNCHRONOUS, &raw mut before);
    }
}
