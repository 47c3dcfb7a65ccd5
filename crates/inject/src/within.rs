//! Is the calling thread in one of our functions already? Then a handler of signals launches in the middle of a call of the
//! driver's, where it may be that nothing can be allocated: such launches go through untouched.
//!
//! A thread's own memory would be allocated at its first use, so the threads stand in a table.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::state::{Mode, mode};

/// Threads that are in there at a time; of more nothing is known.
const PLACES: usize = 256;

struct Place {
    /// What the thread is known by; zero for none.
    thread: AtomicUsize,
    /// Where its stack was at the first of them, and how many there are.
    stack: AtomicUsize,
    depth: AtomicUsize,
}

static ALL: [Place; PLACES] = [const {
    Place {
        thread: AtomicUsize::new(0),
        stack: AtomicUsize::new(0),
        depth: AtomicUsize::new(0),
    }
}; PLACES];

/// While it lives, the thread is in one of our functions.
pub struct Within(Option<&'static Place>);

/// What the C library knows the calling thread by.
fn thread() -> usize {
    // SAFETY: no arguments.
    unsafe { libc::pthread_self() as usize }
}

fn places(thread: usize) -> impl Iterator<Item = &'static Place> {
    let start = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - 8);
    (0..PLACES).map(move |at| &ALL[(start + at) % PLACES])
}

fn known(thread: usize) -> Option<&'static Place> {
    places(thread).find(|place| place.thread.load(Ordering::Relaxed) == thread)
}

fn taken(thread: usize) -> Option<&'static Place> {
    let is_taken = |place: &&Place| {
        let free = &place.thread;
        let set = free.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed);
        set.is_ok()
    };
    places(thread).find(is_taken)
}

impl Within {
    pub fn new() -> Within {
        let (thread, here) = (thread(), 0u8);
        let here = (&raw const here).addr();
        let place = known(thread).or_else(|| taken(thread));
        if let Some(place) = place {
            // Who jumps away does not leave: what is called behind that is no deeper.
            if here >= place.stack.load(Ordering::Relaxed) {
                place.depth.store(0, Ordering::Relaxed);
            }
            if place.depth.load(Ordering::Relaxed) == 0 {
                place.stack.store(here, Ordering::Relaxed);
            }
            place.depth.fetch_add(1, Ordering::Relaxed);
        }
        Within(place)
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        let Some(place) = self.0 else { return };
        if place.depth.load(Ordering::Relaxed) > 1 {
            place.depth.fetch_sub(1, Ordering::Relaxed);
        } else {
            place.stack.store(0, Ordering::Relaxed);
            place.depth.store(0, Ordering::Relaxed);
            place.thread.store(0, Ordering::Relaxed);
        }
    }
}

/// Does a launch come in the middle of another call? Those that only look a winner up are not counted.
pub fn is_amid() -> bool {
    let least = usize::from(mode() != Mode::With);
    known(thread()).is_some_and(|place| place.depth.load(Ordering::Relaxed) > least)
}
