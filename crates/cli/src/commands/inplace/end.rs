//! How a command ends behind its program's run.

use warpwright_supervise::program::{End, first};
use warpwright_supervise::signals;

use crate::failure::Failure;
use crate::terminal;

/// As the program, and if that tells nothing with its own exit code.
///
/// # Errors
/// Always, but where both ended well.
pub fn ended(end: End, told: Result<(), Failure>) -> Result<(), Failure> {
    match (told.and_then(|()| terminal::is_whole()), end) {
        (Ok(()), End::Code(0)) => Ok(()),
        (Ok(()), end) => Err(as_it(end)),
        (Err(failure), end) => Err(failed_behind(end, failure)),
    }
}

fn failed_behind(end: End, failure: Failure) -> Failure {
    match end {
        End::Code(0) => failure,
        end => {
            let _ = failure.report(false);
            as_it(end)
        }
    }
}

/// The same where it may not have run.
pub fn ended_anyhow(told: Result<(), Failure>) -> Result<(), Failure> {
    match first() {
        None => told,
        Some(end) => ended(end, told),
    }
}

fn as_it(end: End) -> Failure {
    match end {
        End::Code(code) => Failure::Quiet(code),
        End::Signal { number, has_dumped } => {
            signals::end_as(number, has_dumped);
            Failure::Quiet(128 + number as u8)
        }
    }
}
