//! Progress on stderr: bars on a terminal; elsewhere work that takes long says so in a line from time to time.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use warpwright_diag::printable;

/// How long work may take before anybody is told of it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks at what is done.
const BETWEEN: Duration = Duration::from_millis(200);
/// Until the first line where there is no terminal, and between two.
const FIRST_LINE: Duration = Duration::from_secs(10);
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// What takes the time of nvcc, in words.
pub const COMPILING: &str = "compiling";

/// Does work that counts in `done` what it has done of `length`, and says so where it takes long.
pub fn counted<T>(length: u64, message: &str, done: &AtomicU64, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return lines(message, length, done, work);
    }
    let mut shown: Option<ProgressBar> = None;
    let show = |done: Option<u64>| match (done, &shown) {
        (Some(done), Some(bar)) => bar.set_position(done),
        (Some(_), None) => shown = Some(drawn(Some(length), message)),
        (None, Some(bar)) => bar.finish_and_clear(),
        (None, None) => {}
    };
    watched((PATIENCE, BETWEEN), done, show, work)
}

/// The same without a terminal, in lines.
fn lines<T>(message: &str, length: u64, done: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let show = |done: Option<u64>| {
        if let Some(done) = done {
            let seconds = begun.elapsed().as_secs();
            eprintln!("{}", line(message, (done, Some(length)), seconds));
        }
    };
    watched((FIRST_LINE, BETWEEN_LINES), done, show, work)
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
    let bar = bar(None, message);
    bar.turn();
    work()
}

/// A bar on a terminal; elsewhere the same in lines, from time to time.
pub struct Bar {
    drawn: ProgressBar,
    /// Ends with the bar.
    told: Option<Told>,
}

/// What tells in lines how far work is.
struct Told {
    state: Arc<State>,
    _ended: Sender<()>,
}

struct State {
    message: Mutex<String>,
    done: AtomicU64,
    length: Option<u64>,
    is_over: AtomicBool,
}

impl State {
    fn message(&self) -> MutexGuard<'_, String> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    /// `first`: until the first line; `between` two others.
    fn begin(
        (length, message): (Option<u64>, &str),
        (first, between): (Duration, Duration),
        say: impl Fn(String) + Send + 'static,
    ) -> Told {
        let state = Arc::new(State {
            message: Mutex::new(message.to_owned()),
            done: AtomicU64::new(0),
            length,
            is_over: AtomicBool::new(false),
        });
        let (ended, end) = channel::<()>();
        let shown = Arc::clone(&state);
        let tell = move || {
            let begun = Instant::now();
            let mut wait = first;
            while end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
                && !shown.is_over.load(Ordering::Relaxed)
            {
                let done = (shown.done.load(Ordering::Relaxed), shown.length);
                say(line(&shown.message(), done, begun.elapsed().as_secs()));
                wait = between;
            }
        };
        // Where no thread may start nothing is told.
        drop(std::thread::Builder::new().spawn(tell));
        Told {
            state,
            _ended: ended,
        }
    }
}

impl Bar {
    /// What is being done.
    pub fn set_message(&self, message: impl Into<String>) {
        let message = message.into();
        if let Some(told) = &self.told {
            told.state.message().clone_from(&message);
        }
        self.drawn.set_message(message);
        self.drawn.tick();
    }

    /// Something else is printed.
    pub fn suspend(&self, print: impl FnOnce()) {
        self.drawn.suspend(print);
    }

    /// It goes on although nobody says so.
    pub fn turn(&self) {
        self.drawn.enable_steady_tick(BETWEEN);
    }

    /// The bar goes.
    pub fn finish_and_clear(&self) {
        if let Some(told) = &self.told {
            told.state.is_over.store(true, Ordering::Relaxed);
        }
        self.drawn.finish_and_clear();
    }
}

impl warpwright_autotune::Bar for Bar {
    fn more(&self) {
        if let Some(told) = &self.told {
            told.state.done.fetch_add(1, Ordering::Relaxed);
        }
        self.drawn.inc(1);
    }

    fn say(&self, what: &str) {
        self.set_message(what);
    }

    fn note(&self, line: &str) {
        match &self.told {
            Some(_) => eprintln!("{line}"),
            None => self.drawn.println(line),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish_and_clear();
    }
}

/// A bar that counts to `length`, or a spinner if that is unknown.
pub fn bar(length: Option<u64>, message: &str) -> Bar {
    let is_drawn = std::io::stderr().is_terminal();
    let told = || {
        let say = |line: String| eprintln!("{line}");
        Told::begin((length, message), (FIRST_LINE, BETWEEN_LINES), say)
    };
    Bar {
        drawn: drawn(length, message),
        told: (!is_drawn).then(told),
    }
}

fn drawn(length: Option<u64>, message: &str) -> ProgressBar {
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
    use warpwright_autotune::Bar as _;

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
    fn a_bar_without_a_terminal_tells_what_is_done_until_it_goes() {
        let (lines, said) = channel();
        let wait = Duration::from_millis(1);
        let told = Told::begin((Some(8), "compiling"), (wait, wait), move |line| {
            let _ = lines.send(line);
        });
        let bar = Bar {
            drawn: ProgressBar::hidden(),
            told: Some(told),
        };
        (0..3).for_each(|_| bar.more());
        bar.set_message("measuring");
        let is_last = |line: &String| line.starts_with("measuring: 3 of 8 after ");
        assert!(said.iter().take(10_000).any(|line| is_last(&line)));
        drop(bar);
        // Whoever tells has ended when nobody can send any more.
        assert!(said.iter().count() < 10_000);
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
