//! Our own work as the program's thread does it: nothing of the program's comes between, and it leaves no trace in the thread.
//!
//! A handler of signals that launches kernels in the middle of it would wait for a lock that its own thread holds, and one that
//! jumps away would leave it locked for all. Numbers are computed as Rust expects them, whatever the program has set up, and raise
//! no flags of the program's.

use std::ffi::c_int;

use warpwright_linkage::held::{DISABLE, pthread_setcancelstate};

use crate::state::is_sealed;

/// Signals of what the thread itself does: who serves such faults (memory that is read in at its first use) is to go on.
const OF_FAULTS: [c_int; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];
const LAST: c_int = 64;

/// While it lives, the calling thread is not cancelled: that would unwind through our own work, which catches panics. A
/// cancellation that is asked for meanwhile waits for the program's next call at which threads are cancelled; a call of the
/// driver may be one, and is unwound through (`C-unwind`). Floating-point numbers are computed by Rust's rules.
pub struct Whole {
    cancel: c_int,
    numbers: Numbers,
}

impl Whole {
    pub fn new() -> Self {
        let mut cancel = 0;
        // SAFETY: the calling thread's own state, and an output of the right type.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut cancel) };
        Whole {
            cancel,
            numbers: Numbers::exchange(Numbers::USUAL),
        }
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        Numbers::exchange(self.numbers);
        // SAFETY: the state that was there.
        unsafe { pthread_setcancelstate(self.cancel, std::ptr::null_mut()) };
    }
}

/// While it lives, signals wait, but for those of faults. None do where the program has forbidden itself system calls.
pub struct Quiet(Option<libc::sigset_t>);

impl Quiet {
    pub fn new() -> Self {
        Quiet::but_for(|signal| OF_FAULTS.contains(&signal))
    }

    /// For work that takes long: what ends or stops the program does so at once, and what it handles itself waits.
    pub fn of_handled() -> Self {
        Quiet::but_for(|signal| {
            // SAFETY: zeros are an action, and one is read.
            let action = unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &raw mut action);
                action.sa_sigaction
            };
            OF_FAULTS.contains(&signal) || [libc::SIG_DFL, libc::SIG_IGN].contains(&action)
        })
    }

    fn but_for(is_open: impl Fn(c_int) -> bool) -> Self {
        if is_sealed() {
            return Quiet(None);
        }
        let waits = (1..=LAST).filter(|signal| !is_open(*signal));
        let bits = waits.fold(0u64, |all, signal| all | 1 << (signal - 1));
        // SAFETY: zeros are sets, both of our own; they begin with the bits of all signals.
        unsafe {
            let (mut set, mut before): (libc::sigset_t, _) =
                (std::mem::zeroed(), std::mem::zeroed());
            (&raw mut set).cast::<u64>().write(bits);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
            Quiet(Some(before))
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: the set that was there.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
        }
    }
}

/// How the calling thread computes floating-point numbers, and what has happened to them.
#[derive(Clone, Copy)]
#[cfg(target_arch = "x86_64")]
struct Numbers(u32);

#[cfg(target_arch = "x86_64")]
impl Numbers {
    /// What MXCSR holds where a program starts.
    const USUAL: Numbers = Numbers(0x1f80);

    /// Sets it; returns what it was.
    fn exchange(new: Numbers) -> Numbers {
        let mut old = Numbers(0);
        // SAFETY: both are four bytes of our own; what is set was read or is what programs start with.
        unsafe {
            std::arch::asm!(
                "stmxcsr dword ptr [{old}]", "ldmxcsr dword ptr [{new}]",
                old = in(reg) &raw mut old.0, new = in(reg) &raw const new.0, options(nostack),
            );
        }
        old
    }
}

/// As above.
#[derive(Clone, Copy)]
#[cfg(target_arch = "aarch64")]
struct Numbers(u64, u64);

#[cfg(target_arch = "aarch64")]
impl Numbers {
    /// What FPCR and FPSR hold where a program starts.
    const USUAL: Numbers = Numbers(0, 0);

    /// Sets both; returns what they were.
    fn exchange(new: Numbers) -> Numbers {
        let (how, what);
        // SAFETY: registers of the calling thread; what is set was read or is what programs start with.
        unsafe {
            std::arch::asm!(
                "mrs {how}, fpcr", "mrs {what}, fpsr", "msr fpcr, {new_how}", "msr fpsr, {new_what}",
                how = out(reg) how, what = out(reg) what, new_how = in(reg) new.0, new_what = in(reg) new.1,
                options(nostack, nomem),
            );
        }
        Numbers(how, what)
    }
}
