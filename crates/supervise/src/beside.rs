//! What is said beside a program that runs.

use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{fresh, signals};

/// Who is told a line.
static TOLD: OnceLock<fn(&str)> = OnceLock::new();

/// Says who is told what people should know. Until then it is standard error.
pub fn tell_with(told: fn(&str)) {
    let _ = TOLD.set(told);
}

/// Tells a line.
pub(crate) fn tell(line: &str) {
    match TOLD.get() {
        Some(told) => told(line),
        None => eprintln!("warpwright: {line}"),
    }
}

/// Does a program write to the same places?
static IS_BESIDE: AtomicBool = AtomicBool::new(false);

/// Was a program made ready? Then each line on standard error is to say whose it is.
pub fn is_beside() -> bool {
    IS_BESIDE.load(Ordering::Relaxed)
}

pub(crate) fn begin() {
    IS_BESIDE.store(true, Ordering::Relaxed);
}

/// A place that a program writes to, too.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// May a program's line stand at the end of it?
static HANGS: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// A program writes from now on, or has written.
pub(crate) fn a_program_writes() {
    for hangs in &HANGS {
        hangs.store(true, Ordering::Relaxed);
    }
}

/// What is to be written first, so that a line of ours begins on its own.
pub fn beginning(place: Place, to: BorrowedFd<'_>) -> Vec<u8> {
    let hangs = &HANGS[place as usize];
    match hangs.swap(signals::is_running(), Ordering::Relaxed) {
        true => fresh::beginning(to),
        false => Vec::new(),
    }
}
