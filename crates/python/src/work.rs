//! Where the library's work is done: on threads that end with the call, so that what the process does beside it, fork
//! and Ctrl-C, finds none of them in the way.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;
use warpwright_api::Candidate;
use warpwright_api::optimise::Watch;

use crate::InternalError;

/// How often a signal is looked for.
const LOOKS: Duration = Duration::from_millis(20);
/// Of the thread that works, in bytes: as much as a main thread has.
const STACK: usize = 8 << 20;

/// Works that go on. Who forks holds it: the child has none of these threads, so nobody may be in a lock.
static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

thread_local! {
    static FORKING: RefCell<Option<MutexGuard<'static, usize>>> = const { RefCell::new(None) };
}

fn running() -> MutexGuard<'static, usize> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a work from its begin to its end, whatever the end is.
struct Counted;

impl Counted {
    fn begins() -> Counted {
        *running() += 1;
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        *running() -= 1;
        ENDED.notify_all();
    }
}

/// Before a fork: the works of other threads end first, and none begins.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    py.detach(|| {
        let guard = ENDED.wait_while(running(), |works| *works > 0);
        FORKING.set(Some(guard.unwrap_or_else(PoisonError::into_inner)));
    });
}

/// After a fork, in both processes.
#[pyfunction]
pub fn after_fork() {
    FORKING.take();
}

/// Ends a work whose caller is gone, at the next candidate.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    fn look(&self) {
        if self.0.load(Ordering::Relaxed) {
            // Nobody waits for the result, and no message is printed.
            resume_unwind(Box::new("stopped"));
        }
    }
}

impl Watch for Stop {
    fn begins(&self, _: &str, _: usize, _: usize) {
        self.look();
    }

    fn built(&self, _: &Candidate) {
        self.look();
    }
}

/// Works without the interpreter, until the work ends or a signal's handler raises. The threads of the work end with it:
/// a pool that stayed would not be there in a forked child.
pub fn worked<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> PyResult<T> {
    let (done, result) = channel();
    let stop = Stop::default();
    let theirs = stop.clone();
    let (counted, thread) = py.detach(|| (Counted::begins(), Builder::new().stack_size(STACK)));
    let started = thread.spawn(move || {
        // Dropped last: what is sent is there before a fork.
        let _counted = counted;
        let result = catch_unwind(AssertUnwindSafe(|| {
            let pool = ThreadPoolBuilder::new().stack_size(STACK);
            pool.build_scoped(rayon::ThreadBuilder::run, |pool| {
                pool.install(|| work(&theirs))
            })
        }));
        // The caller may be gone.
        let _ = done.send(result);
    });
    started.map_err(unstarted)?;
    let result = Mutex::new(result);
    loop {
        let next = py.detach(|| {
            let result = result.lock().unwrap_or_else(PoisonError::into_inner);
            result.recv_timeout(LOOKS)
        });
        match next {
            Ok(Ok(result)) => return result.map_err(unstarted),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(InternalError::new_err("a thread ended without a result"));
            }
        }
        if let Err(signal) = py.check_signals() {
            stop.0.store(true, Ordering::Relaxed);
            return Err(signal);
        }
    }
}

fn unstarted(error: impl std::fmt::Display) -> PyErr {
    InternalError::new_err(format!("no thread can be started: {error}"))
}
