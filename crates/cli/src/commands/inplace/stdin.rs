//! The standard input of a program that runs several times: each run gets all of it. A file is read from where it stood; what
//! comes through a pipe is read once, as it comes, and kept. Terminals and devices are handed on as they are.

use std::io::{Read, Write};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{FileType, SeekFrom, fstat, seek};

use crate::failure::Failure;

/// Bytes of a pipe that are kept.
const MOST: usize = 256 << 20;

enum Input {
    Passed,
    /// Where the file stood.
    File(u64),
    Pipe(Arc<Kept>),
}

/// What came through a pipe so far.
#[derive(Default)]
struct Kept {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill(&self) {
        let mut piece = vec![0; 1 << 16];
        loop {
            let count = std::io::stdin().lock().read(&mut piece).unwrap_or(0);
            let mut state = self.lock();
            if state.bytes.len() + count > MOST {
                complain!(
                    "only the first {} MiB of standard input reach the program",
                    MOST >> 20
                );
                state.is_over = true;
            } else {
                state.bytes.extend_from_slice(&piece[..count]);
                state.is_over = count == 0;
            }
            self.more.notify_all();
            if state.is_over {
                return;
            }
        }
    }

    /// Writes all of it, from the beginning, until nobody reads any more.
    fn feed(&self, mut to: impl Write) {
        let mut done = 0;
        loop {
            let mut state = self.lock();
            while state.bytes.len() == done && !state.is_over {
                state = self
                    .more
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let piece: Vec<u8> = state.bytes[done..].iter().take(1 << 16).copied().collect();
            drop(state);
            if piece.is_empty() || to.write_all(&piece).is_err() {
                return;
            }
            done += piece.len();
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
            Ok(FileType::Fifo | FileType::Socket) => {
                let kept = Arc::new(Kept::default());
                let own = kept.clone();
                match std::thread::Builder::new().spawn(move || own.fill()) {
                    Ok(_) => Input::Pipe(kept),
                    Err(_) => Input::Passed,
                }
            }
            _ => Input::Passed,
        }
    })
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
