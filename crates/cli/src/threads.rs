//! The first thread has room on its stack.

use std::process::ExitCode;
use std::thread::Builder;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::SigSet;

use crate::failure::Failure;

/// Bytes of stack that work may need.
const ROOM: usize = 8 << 20;

/// Does the work on a stack with room, whatever `ulimit -s` says.
pub fn with_room(work: fn() -> ExitCode) -> ExitCode {
    let limit = getrlimit(Resource::RLIMIT_STACK).map_or(u64::MAX, |(soft, _)| soft);
    if limit >= ROOM as u64 {
        return work();
    }
    // Signals are for the thread that works.
    let before = SigSet::thread_get_mask();
    let _ = SigSet::all().thread_block();
    let begin = move || {
        let _ = before.and_then(|before| before.thread_set_mask());
        work()
    };
    match Builder::new().stack_size(ROOM).spawn(begin) {
        Ok(worker) => worker.join().unwrap_or_else(|_| {
            let why = Failure::Internal("a panic outside of the work".to_owned());
            why.report(false)
        }),
        Err(_) => begin(),
    }
}
