//! Progress on stderr: bars on a terminal; elsewhere work that takes long says so in a line from time to time.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::terminal::printable;

/// How long work may take before anybody is told of it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks at what is done.
const BETWEEN: Duration = Duration::from_millis(200);
/// Between two lines where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Does work that counts in `done` what it has done of `length`, and says so where it takes long.
pub fn counted<T>(length: u64, message: &str, done: &AtomicU64, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return lines(message, Some(length), done, work);
    }
    let mut shown: Option<ProgressBar> = None;
    let show = |done: Option<u64>| match (done, &shown) {
        (Some(done), Some(bar)) => bar.set_position(done),
        (Some(_), None) => shown = Some(bar(Some(length), message)),
        (None, Some(bar)) => bar.finish_and_clear(),
        (None, None) => {}
    };
    watched((PATIENCE, BETWEEN), done, show, work)
}

/// The same without a terminal, in lines.
fn lines<T>(message: &str, length: Option<u64>, done: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let show = |done: Option<u64>| {
        if let Some(done) = done {
            let seconds = begun.elapsed().as_secs();
            eprintln!("{}", line(message, (done, length), seconds));
        }
    };
    watched((BETWEEN_LINES, BETWEEN_LINES), done, show, work)
}

fn line(message: &str, (done, length): (u64, Option<u64>), seconds: u64) -> String {
    match length {
        Some(length) => format!("{message}: {done} of {length} after {seconds} s"),
        None => format!("{message}: {seconds} s until now"),
    }
}

/// Does work, and shows from time to time what is done, once it has taken longer than `patience`; nothing at its end.
fn watched<T>(
    (patience, between): (Duration, Duration),
    done: &AtomicU64,
    mut show: impl FnMut(Option<u64>) + Send,
    work: impl FnOnce() -> T,
) -> T {
    std::thread::scope(|scope| {
        let (ended, end) = channel::<()>();
        scope.spawn(move || {
            let mut wait = patience;
            while end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                show(Some(done.load(Ordering::Relaxed)));
                wait = between;
            }
            show(None);
        });
        let result = work();
        drop(ended);
        result
    })
}

/// Does work of which nobody knows how much is left, and says that it goes on where it takes long.
pub fn waiting<T>(message: &str, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return lines(message, None, &AtomicU64::new(0), work);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_work_is_shown_and_short_work_is_not() {
        let shown_of = |patience: Duration| {
            let (done, mut shown) = (AtomicU64::new(0), Vec::new());
            let result = watched(
                (patience, patience.min(BETWEEN)),
                &done,
                |done| shown.push(done),
                || {
                    done.store(7, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(50));
                    "a result"
                },
            );
            assert_eq!(result, "a result");
            shown
        };
        let long = shown_of(Duration::from_millis(5));
        assert!(long.contains(&Some(7)), "{long:?}");
        assert_eq!(long.last(), Some(&None));
        assert_eq!(shown_of(Duration::from_secs(60)), [None]);
    }

    #[test]
    fn a_line_says_what_is_done_and_since_when() {
        assert_eq!(
            line("blocks", (3, Some(8)), 61),
            "blocks: 3 of 8 after 61 s"
        );
        assert_eq!(line("building", (0, None), 30), "building: 30 s until now");
    }
}
