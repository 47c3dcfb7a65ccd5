//! Words on the stack.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use warpwright_linkage::captured::kernel;

/// Has something done with so many words of the stack. Where it would take too many there are none, and what is started is told:
/// a handler of signals may have as little as 8 KiB, so these are 2, for some 200 variables; on the first thread's stack, if that
/// has room, 128, for some 16,000.
pub fn on_stack(words: usize, work: &mut dyn FnMut(*mut usize) -> usize) -> usize {
    #[inline(never)]
    fn with<const WORDS: usize>(work: &mut dyn FnMut(*mut usize) -> usize) -> usize {
        let mut place = MaybeUninit::<[usize; WORDS]>::uninit();
        work(place.as_mut_ptr().cast())
    }
    match words {
        ..=64 => with::<64>(work),
        65..=256 => with::<256>(work),
        257..=2048 if has_room(2048) => with::<2048>(work),
        2049..=16_384 if has_room(16_384) => with::<16_384>(work),
        _ => work(std::ptr::null_mut()),
    }
}

/// Where the first thread's stack was when this library was loaded.
static TOP: AtomicUsize = AtomicUsize::new(0);

#[inline(never)]
fn here() -> usize {
    let word = 0usize;
    (&raw const word).addr()
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn look() {
        TOP.store(here(), Ordering::Relaxed);
    }
    look
};

/// Is this the first thread's stack, or what `fork` and `vfork` made of it, with room for so many words and what is called? Half
/// of the stack, as arguments and environment may take a quarter of it, and nothing else lies in there.
fn has_room(words: usize) -> bool {
    const CALLED: usize = 64 << 10;
    /// Below the first thread's stack nothing else lies within so many bytes (`SZ_128M` in Linux' mm/util.c).
    const GAP: usize = 128 << 20;
    let (mut limit, mut other) = ([0usize; 2], [0usize; 3]);
    let of_limit = [
        libc::RLIMIT_STACK as usize,
        (&raw mut limit).expose_provenance(),
        0,
    ];
    let of_other = [0, (&raw mut other).expose_provenance(), 0];
    // SAFETY: both are as long as what is written there.
    let is_told = unsafe {
        kernel(libc::SYS_getrlimit, of_limit) == 0 && kernel(libc::SYS_sigaltstack, of_other) == 0
    };
    // The second word begins with the flags of `stack_t`.
    let is_other = other[1] & libc::SS_ONSTACK as usize != 0;
    let most = if limit[0] < GAP { limit[0] } else { GAP };
    let used = TOP.load(Ordering::Relaxed).wrapping_sub(here());
    is_told && !is_other && used < most / 2 && words * size_of::<usize>() + CALLED < most / 2 - used
}
