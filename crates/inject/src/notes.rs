//! What is written: the log that people read, and the notes that the command line reads.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use warpwright_winners::lines::{HEAD, Note};

/// The log, if there is to be one.
const LOG: &str = "WARPWRIGHT_LOG";
/// The folder of `trace` and `try`.
const FOLDER: &str = "WARPWRIGHT_DIR";

/// Says something once. A log that cannot be written is no reason to disturb the program.
pub fn say(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    const MOST: usize = 1000;
    let Some(path) = log() else { return };
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
    append(&path.into(), line.as_bytes());
}

fn log() -> Option<OsString> {
    std::env::var_os(LOG).filter(|path| !path.is_empty())
}

/// The folder of `trace` and `try`.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
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
    append(&path, text.as_bytes());
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
    if let Err(e) = warpwright_winners::store::write_whole(&path, text.as_bytes()) {
        say(&format!("`{}` cannot be written: {e}", path.display()));
    }
}

fn append(path: &PathBuf, bytes: &[u8]) {
    let file = OpenOptions::new().append(true).create(true).open(path);
    if let Ok(mut file) = file {
        let _ = file.write_all(bytes);
    }
}

fn command() -> String {
    let raw = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = raw.split(|&b| b == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    words.join(" ")
}
