//! The standard input of a program that runs several times: each run gets all of it. A file is read from where it stood; what
//! comes through a pipe is read once, as a run wants it, and kept in an unnamed file. Terminals and devices are handed on as
//! they are.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{FileType, SeekFrom, fstat, seek};

use crate::failure::Failure;

/// Bytes that are read and handed on at a time.
const PIECE: usize = 1 << 16;

enum Input {
    Passed,
    /// Where the file stood.
    File(u64),
    Pipe(Arc<Kept>),
}

/// What came through a pipe so far.
struct Kept {
    file: File,
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Clone, Copy, Default)]
struct State {
    bytes: u64,
    /// How many some run wants: one that has got all waits for another.
    wanted: u64,
    is_over: bool,
}

impl Kept {
    fn new() -> std::io::Result<Kept> {
        Ok(Kept {
            file: tempfile::tempfile()?,
            state: Mutex::default(),
            more: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while<'g>(
        &self,
        state: MutexGuard<'g, State>,
        is_so: impl Fn(&State) -> bool,
    ) -> MutexGuard<'g, State> {
        let waited = self.more.wait_while(state, |state| is_so(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is wanted, until the end.
    fn fill(&self) {
        let mut piece = vec![0; PIECE];
        loop {
            let state = self.lock();
            drop(self.wait_while(state, |state| state.bytes >= state.wanted));
            let read = match std::io::stdin().lock().read(&mut piece) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                read => read,
            };
            let at = self.lock().bytes;
            let kept = read.and_then(|count| {
                self.file.write_all_at(&piece[..count], at)?;
                Ok(count)
            });
            let mut state = self.lock();
            match kept {
                Ok(count) => {
                    state.bytes += count as u64;
                    state.is_over = count == 0;
                }
                Err(e) => {
                    complain!("standard input ends for the program after {at} bytes: {e}");
                    state.is_over = true;
                }
            }
            self.more.notify_all();
            if state.is_over {
                return;
            }
        }
    }

    /// Writes all of it, from the beginning, until nobody reads any more.
    fn feed(&self, mut to: impl Write) {
        let mut piece = vec![0; PIECE];
        let mut done = 0;
        loop {
            let mut state = self.lock();
            state.wanted = state.wanted.max(done + 1);
            self.more.notify_all();
            let state = self.wait_while(state, |state| state.bytes == done && !state.is_over);
            let left = state.bytes - done;
            drop(state);
            let piece = &mut piece[..left.min(PIECE as u64) as usize];
            let is_written = self
                .file
                .read_exact_at(piece, done)
                .and_then(|()| to.write_all(piece));
            if piece.is_empty() || is_written.is_err() {
                return;
            }
            done += piece.len() as u64;
        }
    }
}

fn input() -> &'static Input {
    static INPUT: OnceLock<Input> = OnceLock::new();
    INPUT.get_or_init(|| {
        let stdin = std::io::stdin();
        let kind = fstat(&stdin).map(|data| FileType::from_raw_mode(data.st_mode));
        match kind {
            Ok(FileType::RegularFile) => match seek(&stdin, SeekFrom::Current(0)) {
                Ok(at) => Input::File(at),
                Err(_) => Input::Passed,
            },
            Ok(FileType::Fifo | FileType::Socket) => kept().unwrap_or_else(|e| {
                complain!("standard input is for the program's first run alone: {e}");
                Input::Passed
            }),
            _ => Input::Passed,
        }
    })
}

fn kept() -> std::io::Result<Input> {
    let kept = Arc::new(Kept::new()?);
    let own = kept.clone();
    std::thread::Builder::new().spawn(move || own.fill())?;
    Ok(Input::Pipe(kept))
}

/// What is to be said with the start of another run: terminals are handed on, and what is typed there is not kept.
pub fn wanted_again() -> &'static str {
    match std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        true => " (its output is not shown; what it reads from the terminal it wants again)",
        false => "",
    }
}

/// Gives the program's next run all of the standard input.
///
/// # Errors
/// There is no way to.
pub fn give(program: &mut Command) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::input(format!("standard input: {e}"));
    match input() {
        Input::Passed => {}
        Input::File(at) => {
            seek(std::io::stdin(), SeekFrom::Start(*at)).map_err(|e| failed(e.into()))?;
        }
        Input::Pipe(kept) => {
            let (reader, writer) = std::io::pipe().map_err(failed)?;
            program.stdin(reader);
            let kept = kept.clone();
            let feed = std::thread::Builder::new().spawn(move || kept.feed(writer));
            feed.map_err(failed)?;
        }
    }
    Ok(())
}
