//! What people see: no byte of a name, a message or a tool's output reaches a terminal as a control character.
//!
//! The macros take the place of the standard ones in this crate, so that no command can forget it.

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use warpwright_diag::{is_control, printable};
use warpwright_supervise::beside::{Place, beginning, is_beside};
use warpwright_supervise::signals;

use crate::failure::Failure;

/// `println!`, control characters escaped.
macro_rules! println {
    () => { $crate::terminal::out(format_args!("\n")) };
    ($($text:tt)*) => { $crate::terminal::out(format_args!("{}\n", format_args!($($text)*))) };
}

/// `print!`, control characters escaped.
macro_rules! print {
    ($($text:tt)*) => { $crate::terminal::out(format_args!($($text)*)) };
}

/// `eprintln!`, control characters escaped: what goes on beside the result, which `-q` leaves out.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::terminal::aside(format_args!("{}\n", format_args!($($text)*))) };
}

/// `eprint!`, likewise.
macro_rules! eprint {
    ($($text:tt)*) => { $crate::terminal::aside(format_args!($($text)*)) };
}

/// A line of an error or a warning on stderr, control characters escaped.
macro_rules! complain {
    ($($text:tt)*) => { $crate::terminal::err(format_args!("{}\n", format_args!($($text)*))) };
}

/// Is text for people to be left out?
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// `-q`: from now on text for people is left out. Errors, documents and results are not.
pub fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Behind `eprintln!` and `eprint!`.
pub fn aside(text: fmt::Arguments<'_>) {
    if !IS_QUIET.load(Ordering::Relaxed) {
        err(text);
    }
}

/// Behind `println!` and `print!`. Nothing is no line that would begin anew.
pub fn out(text: fmt::Arguments<'_>) {
    let text = text.to_string();
    if !text.is_empty() && !IS_QUIET.load(Ordering::Relaxed) {
        write(printable(&text).as_bytes());
    }
}

/// Bytes of a result on stdout, as they are.
pub fn bytes(bytes: &[u8]) {
    write(bytes);
}

/// Behind `complain!`.
pub fn err(text: fmt::Arguments<'_>) {
    shown(&printable(&text.to_string()));
}

/// On stderr, a text without control characters but our own. Where nobody takes it there is nobody to tell.
pub fn shown(text: &str) {
    if text.is_empty() {
        return;
    }
    let text = match is_beside() {
        true => marked(text),
        false => text.to_owned(),
    };
    let mut all = beginning(Place::Error, io::stderr().as_fd());
    all.extend(text.as_bytes());
    let _ = io::stderr().write_all(&all);
}

fn marked(text: &str) -> String {
    let lines = text.lines();
    lines
        .map(|line| format!("{}\n", format!("warpwright: {line}").trim_end()))
        .collect()
}

/// A whole document on stdout, such as PTX: as it is, unless stdout is a terminal.
pub fn document(text: &str) {
    match std::io::stdout().is_terminal() {
        true => write(printable(text).as_bytes()),
        false => write(text.as_bytes()),
    }
}

/// A JSON document on stdout.
pub fn json(text: &str) {
    write(escaped(text).as_bytes());
}

/// The same about a failure, which is told whether this can be written or not.
pub fn json_of_failure(text: &str) {
    let _ = written(escaped(text).as_bytes());
}

/// What serde leaves as it is and a terminal does not is escaped as JSON does.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        match is_control(c) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown.push('\n');
    shown
}

/// Why stdout does not take any more.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Is all on stdout that was written there? A reader that has seen enough needs no more.
///
/// # Errors
/// The disk is full, or the like.
pub fn is_whole() -> Result<(), Failure> {
    let lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*lost {
        Some(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::input(format!("standard output: {e}")))
        }
        _ => Ok(()),
    }
}

fn written(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let first = beginning(Place::Output, stdout.as_fd());
    let all = stdout
        .write_all(&first)
        .and_then(|()| stdout.write_all(bytes));
    all.and_then(|()| stdout.flush())
}

/// Nothing more is to be said where stdout takes no more, and the command ends; behind a program's run it goes on, since the
/// exit code is the program's.
fn write(bytes: &[u8]) {
    let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
    if lost.is_some() {
        return;
    }
    *lost = written(bytes).err();
    if lost.is_none() || signals::has_run() {
        return;
    }
    drop(lost);
    if let Err(failure) = is_whole() {
        let _ = failure.report(false);
    }
    signals::quit(1);
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn each_line_beside_a_program_is_marked() {
        assert_eq!(
            marked("error: a\n\n  b\n"),
            "warpwright: error: a\nwarpwright:\nwarpwright:   b\n"
        );
    }
}
