//! The standard input of a program that runs several times: each run gets all of it, and behind the last one it is where the
//! program alone would have left it. A file is read from where it stood, and put where the first run left it. What waits in a
//! pipe is looked at (`tee`; of a socket `MSG_PEEK`) and handed on through a pipe of our own, or a socket, what is there before
//! the program starts; what the program has taken out of that is read at its source, too, and kept in an unnamed file for
//! other runs. Terminals and devices are handed on as they are, and so are connections with somebody who has a name, and a pipe
//! that the program may write to as well: those last for one run.

use std::fs::File;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Result, Write, pipe};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SpliceFFlags, fcntl, tee};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    MsgFlags, SockType, UnixAddr, getpeername, getsockname, getsockopt, recv, send, shutdown,
    sockopt,
};
use rustix::fs::{FileType, OFlags, SeekFrom, fcntl_getfl, fcntl_setfl, fstat, seek};
use rustix::io::{ioctl_fionread, read};

use crate::beside::tell;
use crate::program::Program;
use warpwright_diag::Problem;

/// Bytes that are looked at or handed on at a time, and no less than twice what the source may hold.
const PIECE: usize = 1 << 17;
/// How long a program that has something to read is left alone: a little longer each time that it has not read.
const SHORTEST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(5);

enum Input {
    Passed,
    /// The same, and no second run can have it.
    Once,
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
    /// See [`PIECE`].
    piece: usize,
    state: Mutex<State>,
}

/// What a run of the program reads from, as it is seen from here.
enum Mouth {
    Pipe(PipeWriter),
    /// All that comes was written, and it has no writer any more: its other end.
    Whole(File),
    Socket {
        ours: UnixStream,
        /// Tells what was not read.
        theirs: UnixStream,
    },
}

impl Mouth {
    fn unread(&self) -> Result<u64> {
        Ok(match self {
            Mouth::Pipe(writer) => ioctl_fionread(writer)?,
            Mouth::Whole(reader) => ioctl_fionread(reader)?,
            Mouth::Socket { theirs, .. } => ioctl_fionread(theirs)?,
        })
    }

    /// Waits for nobody.
    fn write(&self, bytes: &[u8]) -> Result<usize> {
        match self {
            Mouth::Pipe(writer) => (&*writer).write(bytes),
            Mouth::Whole(_) => Err(ErrorKind::BrokenPipe.into()),
            Mouth::Socket { ours, .. } => {
                let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                Ok(send(ours.as_raw_fd(), bytes, flags)?)
            }
        }
    }

    /// Does nobody read any more?
    fn is_closed(&self) -> Result<bool> {
        let mut one = [PollFd::new(self.as_fd(), PollFlags::empty())];
        poll(&mut one, PollTimeout::ZERO)?;
        Ok(one[0].revents().is_some_and(|found| !found.is_empty()))
    }

    /// Nothing comes any more. A pipe ends with its last writer.
    fn end(&self) {
        if let Mouth::Socket { ours, .. } = self {
            let _ = ours.shutdown(Shutdown::Write);
        }
    }
}

impl AsFd for Mouth {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Mouth::Pipe(writer) => writer.as_fd(),
            Mouth::Whole(reader) => reader.as_fd(),
            Mouth::Socket { ours, .. } => ours.as_fd(),
        }
    }
}

/// What a run writes where it reads, which goes to the source if its output is shown.
struct Back {
    socket: UnixStream,
    ends: Arc<Ends>,
    thread: JoinHandle<()>,
}

/// How that ends.
#[derive(Default)]
struct Ends {
    /// The run has ended, and did not say that it writes no more.
    with_run: AtomicBool,
    /// Nobody takes anything any more: what comes from now on is left unread.
    at_once: AtomicBool,
}

impl Back {
    fn new(socket: &UnixStream, is_shown: bool) -> Result<Back> {
        let ends = Arc::<Ends>::default();
        let (mut ours, seen) = (socket.try_clone()?, ends.clone());
        let mut source = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        let hand_back = move || {
            let _ = match is_shown {
                true => hand_back(&mut ours, &mut source, &seen),
                false => hand_back(&mut ours, &mut std::io::sink(), &seen),
            };
            if is_shown && !seen.with_run.load(Ordering::SeqCst) {
                let _ = shutdown(source.as_raw_fd(), nix::sys::socket::Shutdown::Write);
            }
        };
        Ok(Back {
            socket: socket.try_clone()?,
            ends,
            thread: Builder::new().spawn(hand_back)?,
        })
    }

    /// Leaves the run without its other end, which has something unread: that makes an error of what the run reads next
    /// (ECONNRESET). `theirs` is the run's own.
    fn reset(self, theirs: &UnixStream) {
        self.ends.with_run.store(true, Ordering::SeqCst);
        self.ends.at_once.store(true, Ordering::SeqCst);
        // One that wakes the thread, and one that nobody takes.
        let _ = (&*theirs).write(&[0]);
        let _ = self.thread.join();
        let _ = (&*theirs).write(&[0]);
    }

    /// The run has ended, and all that it wrote is to be there.
    fn end(self) {
        self.ends.with_run.store(true, Ordering::SeqCst);
        let _ = self.socket.shutdown(Shutdown::Both);
        let _ = self.thread.join();
    }
}

/// Hands on what comes until nothing does, or is to.
fn hand_back(from: &mut UnixStream, to: &mut dyn Write, ends: &Ends) -> Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let mut one = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
        if poll(&mut one, PollTimeout::NONE) == Err(Errno::EINTR) {
            continue;
        }
        if ends.at_once.load(Ordering::SeqCst) {
            return Ok(());
        }
        match from.read(&mut piece)? {
            0 => return Ok(()),
            count => to.write_all(&piece[..count])?,
        }
    }
}

#[derive(Default)]
struct State {
    /// Bytes that were read at the source: it stands there.
    taken: u64,
    /// As many of them are kept.
    kept: u64,
    /// Behind them is an error, and no end: whoever wrote there has gone without reading what he was sent.
    is_reset: bool,
    runs: Vec<Run>,
}

/// What a run of the program reads.
struct Run {
    /// None where nothing comes any more.
    mouth: Option<Arc<Mouth>>,
    /// Bytes that were written there.
    handed: u64,
    back: Option<Back>,
}

/// What is to be waited for.
enum Next {
    /// Nothing.
    Now,
    /// The program has not read what it has.
    Reader,
    /// Nothing is there to be read.
    Source(Arc<Mouth>),
    /// The program has all that there is, or reads no more.
    Over,
}

impl Stream {
    fn new(is_pipe: bool) -> Result<Stream> {
        let glass = if is_pipe { Some(pipe()?) } else { None };
        let holds = glass
            .as_ref()
            .map_or(0, |(_, writer)| size_as_source(writer));
        Ok(Stream {
            kept: tempfile::tempfile()?,
            glass,
            piece: PIECE.max(2 * holds),
            state: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins another run, which reads what is returned. It has a number.
    fn begin(&self, is_shown: bool) -> Result<(OwnedFd, usize)> {
        let (reader, mouth, back): (OwnedFd, _, _) = match &self.glass {
            Some(_) => {
                let (reader, writer) = pipe()?;
                fcntl_setfl(&writer, OFlags::NONBLOCK)?;
                size_as_source(&writer);
                (reader.into(), Mouth::Pipe(writer), None)
            }
            None => {
                let (ours, theirs) = UnixStream::pair()?;
                let (reader, back) = (theirs.try_clone()?, Back::new(&ours, is_shown)?);
                (reader.into(), Mouth::Socket { ours, theirs }, Some(back))
            }
        };
        // Whether reading waits, whoever made the source has said.
        fcntl_setfl(&reader, fcntl_getfl(std::io::stdin())? & OFlags::NONBLOCK)?;
        let mut state = self.lock();
        state.runs.push(Run {
            mouth: Some(Arc::new(mouth)),
            handed: 0,
            back,
        });
        Ok((reader, state.runs.len() - 1))
    }

    /// Hands a run what there is at once. Does it get more?
    fn fill(&self, number: usize) -> bool {
        loop {
            match self.step(number) {
                Next::Now => {}
                Next::Over => {
                    self.finish(number);
                    return false;
                }
                Next::Reader | Next::Source(_) => return true,
            }
        }
    }

    /// Has a run that begins all that will ever come? Then its pipe has no writer, as the source has none.
    fn is_whole(&self, number: usize) -> Result<bool> {
        let mut state = self.lock();
        let taken = state.taken;
        let run = &mut state.runs[number];
        let Some(Mouth::Pipe(writer)) = run.mouth.as_deref() else {
            return Ok(false);
        };
        let stdin = std::io::stdin();
        let mut one = [PollFd::new(stdin.as_fd(), PollFlags::empty())];
        poll(&mut one, PollTimeout::ZERO)?;
        let found = one[0].revents().unwrap_or(PollFlags::empty());
        if !found.contains(PollFlags::POLLHUP) || run.handed != taken + ioctl_fionread(&stdin)? {
            return Ok(false);
        }
        let other_end = format!("/proc/self/fd/{}", writer.as_fd().as_raw_fd());
        run.mouth = Some(Arc::new(Mouth::Whole(File::open(other_end)?)));
        Ok(true)
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
                Next::Source(mouth) => wait(&mouth),
                Next::Over => break,
            }
        }
        self.finish(number);
    }

    fn finish(&self, number: usize) {
        // It may have read until it closed its input.
        let mut state = self.lock();
        let _ = self.account(&mut state, number);
        let is_reset = state.is_reset && state.runs[number].handed == state.taken;
        let run = &mut state.runs[number];
        match (run.mouth.take().as_deref(), run.back.take_if(|_| is_reset)) {
            (Some(Mouth::Socket { theirs, .. }), Some(back)) => back.reset(theirs),
            (Some(mouth), _) => mouth.end(),
            (None, _) => {}
        }
    }

    /// A run has ended.
    fn settle(&self) {
        let mut state = self.lock();
        for number in 0..state.runs.len() {
            let _ = self.account(&mut state, number);
        }
        let ended: Vec<Back> = state
            .runs
            .iter_mut()
            .filter_map(|run| run.back.take())
            .collect();
        drop(state);
        for back in ended {
            back.end();
        }
    }

    fn step(&self, number: usize) -> Next {
        let mut state = self.lock();
        let next = self.account(&mut state, number);
        next.and_then(|()| self.hand_on(&mut state, number))
            .unwrap_or_else(|e| {
                // A program may close its input.
                if e.kind() != ErrorKind::BrokenPipe {
                    let handed = state.runs[number].handed;
                    tell(&format!(
                        "standard input ends for the program after {handed} bytes: {e}"
                    ));
                }
                Next::Over
            })
    }

    /// Reads at the source what a run has taken.
    fn account(&self, state: &mut State, number: usize) -> Result<()> {
        let run = &state.runs[number];
        let Some(mouth) = &run.mouth else {
            return Ok(());
        };
        let seen = run.handed - mouth.unread()?;
        if seen <= state.taken {
            return Ok(());
        }
        let mut piece = vec![0; self.piece];
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
            Err(e) => tell(&format!(
                "standard input is kept for other runs up to byte {} alone: {e}",
                state.kept
            )),
        }
    }

    /// What was kept comes first. Behind it nothing is handed on until a run has taken all of that: one that wants no more
    /// shall not get more at one go than the run before.
    fn hand_on(&self, state: &mut State, number: usize) -> Result<Next> {
        let run = &mut state.runs[number];
        let Some(mouth) = run.mouth.clone() else {
            return Ok(Next::Over);
        };
        if mouth.is_closed()? {
            return Ok(Next::Over);
        }
        let has_unread = mouth.unread()? > 0;
        let mut piece = vec![0; self.piece];
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
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Next::Source(mouth)),
                Err(e) if e.kind() == ErrorKind::ConnectionReset => {
                    state.is_reset = true;
                    return Ok(Next::Over);
                }
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
        match mouth.write(new) {
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

/// Has a pipe hold as much as the source; returns how much.
fn size_as_source(pipe: &PipeWriter) -> usize {
    let size = fcntl(std::io::stdin(), FcntlArg::F_GETPIPE_SZ).unwrap_or(0);
    let _ = fcntl(pipe, FcntlArg::F_SETPIPE_SZ(size));
    size as usize
}

/// Until there is something at the source, or nobody reads any more.
fn wait(mouth: &Mouth) {
    let stdin = std::io::stdin();
    let mut both = [
        PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
        PollFd::new(mouth.as_fd(), PollFlags::empty()),
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
            Ok(_) if !may_be_read() => Input::Passed,
            Ok(FileType::Socket) if !is_nameless() => Input::Once,
            Ok(FileType::Fifo) if has_mode(OFlags::RDWR) => Input::Once,
            Ok(kind @ (FileType::Fifo | FileType::Socket)) => {
                let stream = Stream::new(kind == FileType::Fifo);
                stream.map(Arc::new).map_or_else(
                    |e| {
                        tell(&format!(
                            "standard input is for the program's first run alone: {e}"
                        ));
                        Input::Passed
                    },
                    Input::Stream,
                )
            }
            _ => Input::Passed,
        }
    })
}

fn flags() -> OFlags {
    fcntl_getfl(std::io::stdin()).unwrap_or(OFlags::PATH)
}

fn has_mode(mode: OFlags) -> bool {
    flags() & OFlags::ACCMODE == mode
}

/// May it be read? If not the program is to see the error.
fn may_be_read() -> bool {
    !flags().contains(OFlags::PATH) && !has_mode(OFlags::WRONLY)
}

/// Is standard input a socket as the one that stands in for it: a stream between two ends without names?
fn is_nameless() -> bool {
    let stdin = std::io::stdin();
    let number = stdin.as_raw_fd();
    let ends = [
        getsockname::<UnixAddr>(number),
        getpeername::<UnixAddr>(number),
    ];
    let is_stream = getsockopt(&stdin, sockopt::SockType) == Ok(SockType::Stream);
    let nameless = |end: &UnixAddr| end.path().is_none() && end.as_abstract().is_none();
    is_stream && ends.iter().all(|end| end.as_ref().is_ok_and(nameless))
}

/// Is standard input one that a second run of the program cannot have?
pub fn is_for_one_run() -> bool {
    matches!(input(), Input::Once)
}

/// What is to be said with the start of another run: terminals are handed on, and what is typed there is not kept.
pub fn wanted_again() -> &'static str {
    match std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        true => " (its output is not shown; what it reads from the terminal it wants again)",
        false => "",
    }
}

/// Gives the program's next run, whose output is shown or not, all of the standard input.
///
/// # Errors
/// There is no way to.
pub fn give(program: &mut Program, is_shown: bool) -> std::result::Result<(), Problem> {
    let failed = |e: std::io::Error| Problem::Input(format!("standard input: {e}"));
    match input() {
        Input::Passed | Input::Once => {}
        Input::File { start, .. } => {
            seek(std::io::stdin(), SeekFrom::Start(*start)).map_err(|e| failed(e.into()))?;
        }
        Input::Stream(stream) => {
            let (reader, number) = stream.begin(is_shown).map_err(failed)?;
            program.command.stdin(reader);
            if stream.fill(number) && !stream.is_whole(number).map_err(failed)? {
                let stream = stream.clone();
                let feed = Builder::new().spawn(move || stream.feed(number));
                feed.map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// Leaves the standard input where it belongs behind a run that has ended.
pub fn settle() {
    match INPUT.get() {
        None | Some(Input::Passed | Input::Once) => {}
        Some(Input::File { left, .. }) => {
            let stdin = std::io::stdin();
            if let Ok(here) = seek(&stdin, SeekFrom::Current(0)) {
                let _ = seek(&stdin, SeekFrom::Start(*left.get_or_init(|| here)));
            }
        }
        Some(Input::Stream(stream)) => stream.settle(),
    }
}
