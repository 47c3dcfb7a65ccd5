//! Progress on stderr; nothing is shown where stderr is no terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::terminal::printable;

/// How long work may take before anybody is told of it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks at what is done.
const BETWEEN: Duration = Duration::from_millis(200);

/// Does work that counts in `done` what it has done of `length`, and says so where it takes long.
pub fn counted<T>(length: u64, message: &str, done: &AtomicU64, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    std::thread::scope(|scope| {
        let (ended, end) = channel::<()>();
        scope.spawn(move || {
            let mut wait = PATIENCE;
            let mut shown = None;
            while end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let bar = shown.get_or_insert_with(|| bar(Some(length), message));
                bar.set_position(done.load(Ordering::Relaxed));
                wait = BETWEEN;
            }
            if let Some(bar) = shown {
                bar.finish_and_clear();
            }
        });
        let result = work();
        drop(ended);
        result
    })
}

/// Does work of which nobody knows how much is left, and says that it goes on where it takes long.
pub fn waiting<T>(message: &str, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let bar = bar(None, message);
    bar.enable_steady_tick(BETWEEN);
    let result = work();
    bar.finish_and_clear();
    result
}

/// A bar that counts to `length`, or a spinner if that is unknown.
pub fn bar(length: Option<u64>, message: &str) -> ProgressBar {
    let bar = match length {
        Some(n) => ProgressBar::new(n),
        None => ProgressBar::new_spinner(),
    };
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    bar.set_draw_target(target);
    let template = match length {
        Some(_) => "{msg} [{bar:30}] {pos}/{len}, {eta} left",
        None => "{spinner} {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(printable(message));
    bar
}
