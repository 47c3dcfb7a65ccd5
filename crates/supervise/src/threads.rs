//! The threads that work in parallel: as many as may start, and none where none may (`ulimit -u`, a full container).

use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, available_parallelism, scope};

/// What else needs threads: standard input.
const OTHERS: usize = 1;

/// Has parallel work done by the threads that can be had. To be called by the thread that does the rest of the work, while
/// there are no others.
pub fn settle() {
    let (wanted, startable) = startable();
    if startable < wanted {
        start(startable);
    }
}

/// The same at once, behind a program's run: later others may have taken the threads that can be had now.
pub fn settle_now() {
    start(startable().1);
}

fn start(startable: usize) {
    let pool = rayon::ThreadPoolBuilder::new();
    // Without threads the calling one does it all; then there is no other one that could wait for it. Those that are there stay.
    let _ = match startable.saturating_sub(OTHERS) {
        0 => pool.num_threads(1).use_current_thread().build_global(),
        threads => pool.num_threads(threads).build_global(),
    };
}

/// How many threads are wanted, and how many of them start at a time. They end again.
fn startable() -> (usize, usize) {
    let wanted = available_parallelism().map_or(1, usize::from);
    let gate = Mutex::new(());
    scope(|scope| {
        let held = gate.lock().unwrap_or_else(PoisonError::into_inner);
        let starts = |_: &usize| {
            let waits = || drop(gate.lock().unwrap_or_else(PoisonError::into_inner));
            Builder::new().spawn_scoped(scope, waits).is_ok()
        };
        let started = (0..wanted).take_while(starts).count();
        drop(held);
        (wanted, started)
    })
}
