//! What is written: the log that people read, and the notes that the command line reads.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use warpwright_winners::lines::{CUT, HEAD, Note};

use crate::state::{is_sealed, settings};
use crate::whole::Whole;

/// Says something once. A log that cannot be written is no reason to disturb the program.
pub fn say(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    const MOST: usize = 1000;
    let (Some(path), false) = (&settings().log, is_sealed()) else {
        return;
    };
    let Ok(mut said) = SAID.try_lock() else {
        return;
    };
    if said.len() >= MOST || !said.insert(text.to_owned()) {
        return;
    }
    let line = format!(
        "warpwright[{}]: {}\n",
        std::process::id(),
        text.replace('\n', " ")
    );
    let _ = append(path, line.as_bytes());
}

/// The folder of `trace` and `try`, while something may be written.
pub fn folder() -> Option<PathBuf> {
    settings().folder.clone().filter(|_| !is_sealed())
}

/// Adds notes to this process's file in the folder.
pub fn note(kind: &str, notes: &[Note]) {
    let Some(folder) = folder() else { return };
    let path = folder.join(format!("{kind}-{}.notes", std::process::id()));
    let mut text = String::new();
    if !path.exists() {
        text = format!(
            "{HEAD}\n{}",
            Note::Process(std::process::id(), command()).line()
        );
    }
    text.extend(notes.iter().map(Note::line));
    if append(&path, text.as_bytes()).is_err() {
        cut();
    }
}

/// An empty file can often be made where nothing can be written any more.
pub fn cut() {
    if let Some(folder) = folder() {
        let _ = File::create(folder.join(CUT));
    }
}

/// Replaces this process's file in the folder.
pub fn rewrite(kind: &str, notes: &[Note]) {
    let Some(folder) = folder() else { return };
    let mut text = format!(
        "{HEAD}\n{}",
        Note::Process(std::process::id(), command()).line()
    );
    text.extend(notes.iter().map(Note::line));
    let path = folder.join(format!("{kind}-{}.notes", std::process::id()));
    write(&path, text.as_bytes());
}

/// Writes a file, all of it or nothing.
pub fn write(path: &Path, bytes: &[u8]) {
    if is_sealed() {
        return;
    }
    if let Err(e) = quietly(|| warpwright_winners::store::write_whole(path, bytes)) {
        say(&format!("`{}` cannot be written: {e}", path.display()));
        cut();
    }
}

/// A pipe is neither waited for nor filled.
fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    quietly(|| options.open(path)?.write_all(bytes))
}

/// Runs work that writes. A pipe that nobody reads and a limit of file sizes send signals, which would end the program:
/// they are taken here.
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let _whole = Whole::new();
    const SIGNALS: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];
    let of = |signals: &[libc::c_int]| {
        // SAFETY: zeros are a set, which is emptied.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: a set of our own.
        unsafe { libc::sigemptyset(&raw mut set) };
        for &signal in signals {
            // SAFETY: as above.
            unsafe { libc::sigaddset(&raw mut set, signal) };
        }
        set
    };
    let (both, mut before, mut pending) = (of(&SIGNALS), of(&[]), of(&[]));
    // SAFETY: sets of our own.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const both, &raw mut before);
        libc::sigpending(&raw mut pending);
    }
    let value = work();
    let at_once = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    for signal in SIGNALS {
        // SAFETY: as above; what was pending before is the program's.
        unsafe {
            if libc::sigismember(&raw const pending, signal) == 0 {
                let one = of(&[signal]);
                libc::sigtimedwait(&raw const one, std::ptr::null_mut(), &raw const at_once);
            }
        }
    }
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    value
}

fn command() -> String {
    let raw = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = raw.split(|&b| b == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    words.join(" ")
}
