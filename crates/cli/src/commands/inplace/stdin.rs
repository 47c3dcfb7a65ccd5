//! The standard input of a program that runs several times: each run gets all of it, and behind the last one it is where the
//! program alone would have left it. A file is read from where it stood, and put where the first run left it. What waits in a
//! pipe is looked at (`tee`; of a socket `MSG_PEEK`) and handed on through a pipe of our own; what the program has taken out
//! of that is read at its source, too, and kept in an unnamed file for other runs. Terminals and devices are handed on as
//! they are.

use std::fs::File;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Result, Write, pipe};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use nix::fcntl::{SpliceFFlags, tee};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use rustix::fs::{FileType, OFlags, SeekFrom, fcntl_setfl, fstat, seek};
use rustix::io::{ioctl_fionread, read};

use crate::failure::Failure;

/// Bytes that are looked at or handed on at a time: more than a pipe of ours holds.
const PIECE: usize = 1 << 17;
/// How long a program that has something to read is left alone: a little longer each time that it has not read.
const SHORTEST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(5);

enum Input {
    Passed,
    File {
        /// Where it stood.
        start: u64,
        /// Where the first run left it.
        left: OnceLock<u64>,
    },
    Stream(Arc<Stream>),
}

/// A pipe or socket.
struct Stream {
    /// What the program has taken out of it.
    kept: File,
    /// What `tee` fills; of a socket none.
    glass: Option<(PipeReader, PipeWriter)>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bytes that were read at the source: it stands there.
    taken: u64,
    /// As many of them are kept.
    kept: u64,
    runs: Vec<Run>,
}

/// What a run of the program reads.
struct Run {
    /// None where nothing comes any more.
    writer: Option<Arc<PipeWriter>>,
    /// Bytes that were written there.
    handed: u64,
}

/// What is to be waited for.
enum Next {
    /// Nothing.
    Now,
    /// The program has not read what it has.
    Reader,
    /// Nothing is there to be read.
    Source(Arc<PipeWriter>),
    /// The program has all that there is, or reads no more.
    Over,
}

impl Stream {
    fn new(is_pipe: bool) -> Result<Stream> {
        Ok(Stream {
            kept: tempfile::tempfile()?,
            glass: if is_pipe { Some(pipe()?) } else { None },
            state: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins another run, which reads what is returned. It has a number.
    fn begin(&self) -> Result<(PipeReader, usize)> {
        let (reader, writer) = pipe()?;
        fcntl_setfl(&writer, OFlags::NONBLOCK)?;
        let mut state = self.lock();
        state.runs.push(Run {
            writer: Some(Arc::new(writer)),
            handed: 0,
        });
        Ok((reader, state.runs.len() - 1))
    }

    /// Hands a run what there is, until it wants no more.
    fn feed(&self, number: usize) {
        let mut pause = SHORTEST;
        loop {
            match self.step(number) {
                Next::Now => pause = SHORTEST,
                Next::Reader => {
                    std::thread::sleep(pause);
                    pause = LONGEST.min(pause * 2);
                }
                Next::Source(writer) => wait(&writer),
                Next::Over => break,
            }
        }
        // It may have read until it closed its input.
        let mut state = self.lock();
        let _ = self.account(&mut state, number);
        state.runs[number].writer = None;
    }

    fn step(&self, number: usize) -> Next {
        let mut state = self.lock();
        let next = self.account(&mut state, number);
        next.and_then(|()| self.hand_on(&mut state, number))
            .unwrap_or_else(|e| {
                // A program may close its input.
                if e.kind() != ErrorKind::BrokenPipe {
                    let handed = state.runs[number].handed;
                    complain!("standard input ends for the program after {handed} bytes: {e}");
                }
                Next::Over
            })
    }

    /// Reads at the source what a run has taken.
    fn account(&self, state: &mut State, number: usize) -> Result<()> {
        let run = &state.runs[number];
        let Some(writer) = &run.writer else {
            return Ok(());
        };
        let seen = run.handed - ioctl_fionread(writer)?;
        if seen <= state.taken {
            return Ok(());
        }
        let mut piece = vec![0; PIECE];
        while state.taken < seen {
            let most = piece.len().min((seen - state.taken) as usize);
            // Somebody else who reads there could have been faster.
            let count = match ioctl_fionread(std::io::stdin())? {
                0 => 0,
                _ => read(std::io::stdin(), &mut piece[..most])?,
            };
            if count == 0 {
                break;
            }
            self.keep(state, &piece[..count]);
            state.taken += count as u64;
        }
        Ok(())
    }

    fn keep(&self, state: &mut State, bytes: &[u8]) {
        if state.kept < state.taken {
            return;
        }
        match self.kept.write_all_at(bytes, state.kept) {
            Ok(()) => state.kept += bytes.len() as u64,
            Err(e) => complain!(
                "standard input is kept for other runs up to byte {} alone: {e}",
                state.kept
            ),
        }
    }

    /// What was kept comes first. Behind it nothing is handed on until a run has taken all of that: one that wants no more
    /// shall not get more at one go than the run before.
    fn hand_on(&self, state: &mut State, number: usize) -> Result<Next> {
        let run = &mut state.runs[number];
        let Some(writer) = run.writer.clone() else {
            return Ok(Next::Over);
        };
        if is_closed(&writer)? {
            return Ok(Next::Over);
        }
        let has_unread = ioctl_fionread(&*writer)? > 0;
        let mut piece = vec![0; PIECE];
        let from = match run.handed {
            handed if handed < state.kept => {
                let most = piece.len().min((state.kept - handed) as usize);
                piece.truncate(most);
                self.kept.read_exact_at(&mut piece, handed)?;
                0
            }
            handed if handed < state.taken => return Ok(Next::Over),
            handed if handed == state.taken && has_unread => return Ok(Next::Reader),
            handed => match self.look(&mut piece) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Next::Source(writer)),
                Ok(0) => return Ok(Next::Over),
                count => {
                    piece.truncate(count?);
                    (handed - state.taken) as usize
                }
            },
        };
        let new = piece.get(from..).unwrap_or_default();
        if new.is_empty() {
            return Ok(Next::Reader);
        }
        match (&*writer).write(new) {
            Ok(count) => run.handed += count as u64,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Next::Reader),
            Err(e) => return Err(e),
        }
        Ok(Next::Now)
    }

    /// What waits at the source, which stays there; nothing at its end.
    fn look(&self, piece: &mut [u8]) -> Result<usize> {
        let stdin = std::io::stdin();
        let Some((mut reader, writer)) = self.glass.as_ref().map(|(r, w)| (r, w)) else {
            let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
            return Ok(recv(stdin.as_raw_fd(), piece, flags)?);
        };
        let count = tee(stdin, writer, piece.len(), SpliceFFlags::SPLICE_F_NONBLOCK)?;
        reader.read_exact(&mut piece[..count])?;
        Ok(count)
    }
}

/// Does nobody read any more?
fn is_closed(writer: &PipeWriter) -> Result<bool> {
    let mut one = [PollFd::new(writer.as_fd(), PollFlags::empty())];
    poll(&mut one, PollTimeout::ZERO)?;
    Ok(one[0].revents().is_some_and(|found| !found.is_empty()))
}

/// Until there is something at the source, or nobody reads any more.
fn wait(writer: &PipeWriter) {
    let stdin = std::io::stdin();
    let mut both = [
        PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
        PollFd::new(writer.as_fd(), PollFlags::empty()),
    ];
    let _ = poll(&mut both, PollTimeout::NONE);
}

static INPUT: OnceLock<Input> = OnceLock::new();

fn input() -> &'static Input {
    INPUT.get_or_init(|| {
        let stdin = std::io::stdin();
        let kind = fstat(&stdin).map(|data| FileType::from_raw_mode(data.st_mode));
        match kind {
            Ok(FileType::RegularFile) => match seek(&stdin, SeekFrom::Current(0)) {
                Ok(start) => Input::File {
                    start,
                    left: OnceLock::new(),
                },
                Err(_) => Input::Passed,
            },
            Ok(kind @ (FileType::Fifo | FileType::Socket)) => {
                let stream = Stream::new(kind == FileType::Fifo);
                stream.map(Arc::new).map_or_else(
                    |e| {
                        complain!("standard input is for the program's first run alone: {e}");
                        Input::Passed
                    },
                    Input::Stream,
                )
            }
            _ => Input::Passed,
        }
    })
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
pub fn give(program: &mut Command) -> std::result::Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::input(format!("standard input: {e}"));
    match input() {
        Input::Passed => {}
        Input::File { start, .. } => {
            seek(std::io::stdin(), SeekFrom::Start(*start)).map_err(|e| failed(e.into()))?;
        }
        Input::Stream(stream) => {
            let (reader, number) = stream.begin().map_err(failed)?;
            program.stdin(reader);
            let stream = stream.clone();
            let feed = std::thread::Builder::new().spawn(move || stream.feed(number));
            feed.map_err(failed)?;
        }
    }
    Ok(())
}

/// Leaves the standard input where it belongs behind a run that has ended.
pub fn settle() {
    match INPUT.get() {
        None | Some(Input::Passed) => {}
        Some(Input::File { left, .. }) => {
            let stdin = std::io::stdin();
            if let Ok(here) = seek(&stdin, SeekFrom::Current(0)) {
                let _ = seek(&stdin, SeekFrom::Start(*left.get_or_init(|| here)));
            }
        }
        Some(Input::Stream(stream)) => {
            let mut state = stream.lock();
            for number in 0..state.runs.len() {
                let _ = stream.account(&mut state, number);
            }
        }
    }
}
