//! Reading what the user names, and writing results without ever leaving half a file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};
pub use warpwright::{Input, Level};
use warpwright_winners::aside::Aside;

use crate::failure::Failure;
use crate::terminal::printable;

/// The name of what comes through the pipe.
pub const STDIN: &str = "standard input";

/// Larger files are refused: no compiler makes such PTX, and spans are 32 bits wide.
const LARGEST_INPUT: u64 = 1 << 30;
/// The same for devices and pipes, which do not say how much they hold.
const LARGEST_STREAM: u64 = 1 << 28;
/// How long a pipe at whose other end nobody is, and one whose writer is silent, is waited for.
const NOBODY: Duration = Duration::from_secs(1);
const SILENT_WRITER: Duration = Duration::from_secs(60);

/// Device and number of every file that was read here: none of them is ever written, nor is a header of one.
static READ: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

fn identity(path: &Path) -> Option<(u64, u64)> {
    let data = std::fs::metadata(path).ok()?;
    Some((data.dev(), data.ino()))
}

fn was_read(path: &Path) -> bool {
    let read = READ
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(file) = identity(path) else {
        return false;
    };
    let is_header = |header: &PathBuf| identity(header) == Some(file);
    read.contains(&file) || warpwright_toolkit::files_read().iter().any(is_header)
}

/// What a result is, which the ending of its file must not contradict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A bare cubin.
    Cubin,
    /// PTX.
    Ptx,
    /// CUDA C.
    Cuda,
    /// A host file or fat binary with its cubins replaced.
    Host,
    /// A page.
    Page,
    /// A report of a mistake.
    Report,
}

/// Endings of texts that no result of a kernel is.
const TEXTS: [&str; 10] = [
    "html", "json", "md", "sass", "stencil", "toml", "c", "cc", "h", "hpp",
];
/// Endings of what a host's linker writes or takes.
const OF_HOST: [&str; 7] = ["a", "dll", "exe", "lib", "o", "obj", "so"];

impl Kind {
    /// Endings that say something else.
    fn contradicted_by(self, ending: &str) -> bool {
        let is_text = TEXTS.contains(&ending) || ["cpp", "cxx"].contains(&ending);
        let is_host = OF_HOST.contains(&ending) || ending == "fatbin";
        match self {
            Kind::Cubin => is_text || is_host || ["cu", "cuh", "ptx", "txt"].contains(&ending),
            Kind::Ptx => is_text || is_host || ["cu", "cuh", "cubin"].contains(&ending),
            Kind::Cuda => {
                let is_source = ["c", "cc", "cpp", "cxx", "h", "hpp"].contains(&ending);
                (is_text && !is_source) || is_host || ["cubin", "ptx"].contains(&ending)
            }
            Kind::Page | Kind::Report => {
                let is_code = ["cu", "cuh", "cubin", "ptx"].contains(&ending);
                let is_written = match self {
                    Kind::Page => "html",
                    _ => "md",
                };
                is_code || is_host || (is_text && ending != is_written)
            }
            Kind::Host => is_text || ["cu", "cuh", "cubin", "ptx", "txt"].contains(&ending),
        }
    }

    /// In words.
    fn name(self) -> &'static str {
        match self {
            Kind::Cubin => "machine code (a bare cubin)",
            Kind::Ptx => "PTX",
            Kind::Cuda => "CUDA C",
            Kind::Host => "FILE with its machine code replaced",
            Kind::Page => "a page (HTML)",
            Kind::Report => "a report",
        }
    }

    /// Does the name of OUT fit what is written there?
    pub fn fits(self, output: &Path) -> Result<(), Failure> {
        let ending = ending(output);
        match self.contradicted_by(&ending) {
            false => Ok(()),
            true => Err(Failure::Usage(format!(
                "the result is {}: OUT is not to end in .{ending}",
                self.name()
            ))),
        }
    }
}

/// The ending of a name, in small letters.
fn ending(path: &Path) -> String {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.map(str::to_ascii_lowercase).unwrap_or_default()
}

/// The bytes of a file that the user names, which becomes an input: nothing can be written over it.
pub fn contents(path: &Path) -> Result<Vec<u8>, Failure> {
    contents_within(path, LARGEST_INPUT)
}

/// Is it `-`, which stands for stdin and stdout?
fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Is what is written there written on stdout?
pub fn is_stdout(path: &Path) -> bool {
    is_dash(path) || descriptor(path) == Some(1)
}

/// The number of the open file of this process that a path stands for (`/dev/stdout`, `/dev/fd/63`).
fn descriptor(path: &Path) -> Option<i32> {
    const MOST_LINKS: usize = 40;
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folder = std::fs::canonicalize(folder_of(&path)).ok()?;
        if folder.starts_with(&own) && folder.ends_with("fd") {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = folder.join(std::fs::read_link(&path).ok()?);
    }
    None
}

/// The same, with a limit in bytes.
pub fn contents_within(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let fail = |e: std::io::Error| Failure::input(format!("cannot read `{name}`: {e}"));
    if is_dash(path) {
        let limit = limit.min(LARGEST_STREAM);
        let bytes = drain(std::io::stdin().lock().take(limit + 1), Writer::Other).map_err(fail)?;
        return match bytes.len() as u64 > limit {
            true => Err(Failure::input("stdin holds more than 256 MiB")),
            false => Ok(bytes),
        };
    }
    // A pipe without a writer would block the opening for ever.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path);
    let file = file.map_err(fail)?;
    let data = file.metadata().map_err(fail)?;
    if data.is_dir() {
        return Err(Failure::input(format!("`{name}` is a folder")));
    }
    let limit = match data.is_file() {
        true => {
            let mut read = READ
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            read.push((data.dev(), data.ino()));
            limit
        }
        false => limit.min(LARGEST_STREAM),
    };
    let too_large = || Failure::input(format!("`{name}` is larger than {} MiB", limit >> 20));
    if data.len() > limit {
        return Err(too_large());
    }
    let writer = Writer::of(&file, &data);
    let bytes = drain(file.take(limit + 1), writer).map_err(fail)?;
    match bytes.len() as u64 > limit {
        true => Err(too_large()),
        false => Ok(bytes),
    }
}

/// Who fills what is read.
#[derive(PartialEq)]
enum Writer {
    /// Nobody that could be waited for: of a file or device, some of which have nothing to read at times.
    Nobody,
    /// Of a pipe with a name, who may not be there yet.
    Fifo,
    /// Of a socket or standard input, or at a terminal.
    Other,
}

impl Writer {
    fn of(file: &File, data: &std::fs::Metadata) -> Writer {
        match data.file_type() {
            kind if kind.is_fifo() => Writer::Fifo,
            kind if kind.is_socket() || file.is_terminal() => Writer::Other,
            _ => Writer::Nobody,
        }
    }
}

/// Reads to the end, and no longer than a writer may take.
fn drain(mut file: impl Read, writer: Writer) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let mut last = Instant::now();
    loop {
        let pause = match file.read(&mut buffer) {
            Ok(0) => writer == Writer::Fifo && bytes.is_empty() && last.elapsed() < NOBODY,
            Ok(n) => {
                bytes.extend_from_slice(&buffer[..n]);
                last = Instant::now();
                continue;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::WouldBlock && writer != Writer::Nobody => {
                match last.elapsed() < SILENT_WRITER {
                    true => true,
                    false => return Err(e),
                }
            }
            Err(e) => return Err(e),
        };
        if !pause {
            return Ok(bytes);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The same as text.
pub fn text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(contents(path)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Failure::input(format!(
            "`{}` is not text: byte {at} is not UTF-8",
            path.display()
        ))
    })
}

/// Reads FILE and detects its level, by content first and by ending where that says nothing.
pub fn read(path: &Path) -> Result<Input, Failure> {
    let bytes = contents(path)?;
    match is_dash(path) {
        true => Ok(Input::new(STDIN, bytes)?),
        false => {
            let name = printable(&path.display().to_string());
            Ok(Input::of_file(name, path, bytes)?)
        }
    }
}

/// What is to be written, not yet in its place: dropped, it leaves nothing behind.
pub enum Staged {
    /// A file beside the place where it belongs.
    File(Aside, PathBuf),
    /// For a device or pipe, which nothing may take the place of.
    Stream(Vec<u8>, PathBuf),
    /// For a file that is open already.
    Opened(Vec<u8>, i32),
    /// For stdout.
    Stdout(Vec<u8>),
}

fn is_a_folder(path: &Path) -> Failure {
    Failure::input(format!(
        "`{}` is a folder: name the file in it that is to be written",
        path.display()
    ))
}

/// Writes a file beside the place where it belongs (behind symbolic links). [`Staged::commit`] puts it there.
pub fn stage(path: &Path, bytes: &[u8]) -> Result<Staged, Failure> {
    let fail = |e: std::io::Error| cannot_write(path, &e);
    if is_stdout(path) {
        return Ok(Staged::Stdout(bytes.to_vec()));
    }
    if let Some(number) = descriptor(path) {
        return Ok(Staged::Opened(bytes.to_vec(), number));
    }
    if path.is_dir() {
        return Err(is_a_folder(path));
    }
    if was_read(path) {
        return Err(is_an_input(path));
    }
    let path = behind_links(path).map_err(fail)?;
    if std::fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Ok(Staged::Stream(bytes.to_vec(), path));
    }
    let file = written(folder_of(&path), bytes).map_err(fail)?;
    Ok(Staged::File(file, path))
}

impl Staged {
    /// Gives it the permissions of another file: an executable stays one.
    pub fn like(&mut self, file: &Path) -> Result<(), Failure> {
        let Staged::File(staged, path) = self else {
            return Ok(());
        };
        let copied = std::fs::metadata(file)
            .and_then(|data| staged.file().set_permissions(data.permissions()));
        copied.map_err(|e| cannot_write(path, &e))
    }

    /// Puts the file in its place, whole.
    pub fn commit(self) -> Result<(), Failure> {
        match self {
            Staged::File(file, path) => {
                let placed = file.commit(&path);
                placed.map_err(|e| cannot_write(&path, &e))?;
            }
            Staged::Stream(bytes, path) => {
                let written = open_stream(&path).and_then(|mut stream| stream.write_all(&bytes));
                written.map_err(|e| cannot_write(&path, &e))?;
            }
            Staged::Opened(bytes, number) => {
                let written = opened(number).and_then(|mut file| file.write_all(&bytes));
                let path = PathBuf::from(format!("/dev/fd/{number}"));
                written.map_err(|e| cannot_write(&path, &e))?;
            }
            Staged::Stdout(bytes) => crate::terminal::bytes(&bytes),
        }
        Ok(())
    }
}

/// The kind of the error says enough; its text names the temporary file.
fn cannot_write(path: &Path, e: &std::io::Error) -> Failure {
    let why = match e.kind() {
        ErrorKind::NotFound => {
            format!("there is no folder `{}`", folder_of(path).display())
        }
        ErrorKind::BrokenPipe => "nobody reads it".to_owned(),
        _ if is_without_reader(e) => "nobody reads it".to_owned(),
        kind => kind.to_string(),
    };
    Failure::input(format!("cannot write `{}`: {why}", path.display()))
}

/// Writes a file beside its place, so that readers see the old or the new contents and an interruption leaves nothing
/// behind.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    stage(path, bytes)?.commit()
}

/// An open file of this process once more.
#[allow(unsafe_code)]
fn opened(number: i32) -> std::io::Result<File> {
    // SAFETY: asked for and not used: that it is not open is an error.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(File::from(rustix::io::dup(file)?))
}

/// Pipes with names that results are for, opened before any work: with device and number.
static PIPES: Mutex<Vec<((u64, u64), File)>> = Mutex::new(Vec::new());

/// Opens a pipe with a name for what is written at the end, so that its reader waits.
fn open_pipe(path: &Path, pipe: (u64, u64)) -> std::io::Result<()> {
    let begun = Instant::now();
    let file = loop {
        match open_stream(path) {
            Err(e) if is_without_reader(&e) && begun.elapsed() < NOBODY => {
                std::thread::sleep(Duration::from_millis(2));
            }
            done => break done?,
        }
    };
    let pipes = PIPES.lock();
    let mut pipes = pipes.unwrap_or_else(std::sync::PoisonError::into_inner);
    pipes.push((pipe, file));
    Ok(())
}

fn is_without_reader(e: &std::io::Error) -> bool {
    e.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

/// Opens a device or pipe for writing; a pipe that nobody reads from is no place to write to.
fn open_stream(path: &Path) -> std::io::Result<File> {
    if let Some(own) = identity(path) {
        let pipes = PIPES.lock();
        let mut pipes = pipes.unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(at) = pipes.iter().position(|(pipe, _)| *pipe == own) {
            return Ok(pipes.swap_remove(at).1);
        }
    }
    let nonblocking = rustix::fs::OFlags::NONBLOCK;
    let flags = nonblocking.bits() as i32;
    let file = File::options().write(true).custom_flags(flags).open(path)?;
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags.difference(nonblocking))?;
    Ok(file)
}

/// The folder that a path is in.
pub fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn is_an_input(path: &Path) -> Failure {
    Failure::input(format!(
        "`{}` is an input; the result needs a file of its own",
        path.display()
    ))
}

/// What a command reads and writes, as its arguments say.
#[derive(Debug, Default)]
pub struct Places<'a> {
    /// Files that it reads.
    pub reads: Vec<&'a Path>,
    /// Files that it writes.
    pub writes: Vec<&'a Path>,
    /// Pages that it writes.
    pub pages: Vec<&'a Path>,
    /// Folders that it writes into, and makes if they are not there.
    pub folders: Vec<&'a Path>,
    /// A document was asked for (--json), and takes stdout.
    pub is_document: bool,
    /// A trace that it writes, which has a folder beside it.
    pub trace: Option<&'a Path>,
    /// A program that it runs, and its arguments.
    pub program: &'a [OsString],
}

/// The folder of modules beside a trace.
pub fn modules_beside(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".modules");
    name.into()
}

/// The files that the words of a command line name, the program first.
fn files_of(words: &[OsString]) -> Vec<PathBuf> {
    let Some((program, others)) = words.split_first() else {
        return Vec::new();
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |path: &PathBuf| {
        let data = std::fs::metadata(path);
        data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let program = match program.as_bytes().contains(&b'/') {
        true => Some(PathBuf::from(program)),
        false => std::env::split_paths(&path)
            .map(|folder| folder.join(program))
            .find(is_program),
    };
    // `--input=FILE`
    let behind = |word: &OsString| {
        let mut parts = word.as_bytes().splitn(2, |&byte| byte == b'=').skip(1);
        parts
            .next()
            .map(|file| PathBuf::from(std::ffi::OsStr::from_bytes(file)))
    };
    let others = others
        .iter()
        .flat_map(|word| [Some(PathBuf::from(word)), behind(word)]);
    let all = std::iter::once(program).chain(others).flatten();
    all.filter(|path| path.is_file()).collect()
}

/// What standard input, output or error is, if it is a file.
fn standard(number: i32) -> Option<(u64, u64)> {
    let data = opened(number).and_then(|file| file.metadata()).ok()?;
    data.is_file().then(|| (data.dev(), data.ino()))
}

impl Places<'_> {
    /// Before any work: can everything be written where it is to go, and is nothing of it an input, under
    /// whatever name?
    pub fn check(&self) -> Result<(), Failure> {
        let all = self.writes.iter().chain(&self.trace).chain(&self.pages);
        let written: Vec<&Path> = all.copied().collect();
        let words = files_of(self.program);
        if let Some(path) = self.trace {
            check_trace(path)?;
        }
        for (number, &path) in written.iter().enumerate() {
            if is_stdout(path) && self.is_document {
                return Err(Failure::Usage(
                    "--json puts a document on stdout, where `-o -` puts the result: name a file for one of the two"
                        .to_owned(),
                ));
            }
            if is_stdout(path) {
                continue;
            }
            if path.is_dir() {
                return Err(is_a_folder(path));
            }
            let file = identity(path);
            let is_same = |other: &&Path| match (file, identity(other)) {
                (Some(a), Some(b)) => a == b,
                (None, None) => place(path) == place(other),
                _ => false,
            };
            let kind = std::fs::metadata(path).ok().map(|data| data.file_type());
            if let (Some(kind), Some(pipe), None) = (kind, file, descriptor(path))
                && kind.is_fifo()
            {
                open_pipe(path, pipe).map_err(|e| cannot_write(path, &e))?;
            }
            if kind.is_some_and(|kind| !kind.is_file()) || descriptor(path).is_some() {
                continue;
            }
            // Programs read these, and not this process.
            if ["winner", "imported"].contains(&&*ending(path)) && path.exists() {
                let text = format!("`{}` is a winner, in the store itself", path.display());
                return Err(Failure::input(text));
            }
            let words = words.iter().map(PathBuf::as_path);
            let is_standard = |number: i32| file.is_some() && standard(number) == file;
            if self
                .reads
                .iter()
                .copied()
                .chain(words)
                .any(|read| is_same(&read))
                || is_standard(0)
            {
                return Err(is_an_input(path));
            }
            if written[..number].iter().any(is_same) || is_standard(1) || is_standard(2) {
                let text = format!("`{}` is to be written twice", path.display());
                return Err(Failure::input(text));
            }
            let real = behind_links(path).map_err(|e| cannot_write(path, &e))?;
            Aside::new_in(folder_of(&real)).map_err(|e| cannot_write(path, &e))?;
        }
        for page in &self.pages {
            Kind::Page.fits(page)?;
        }
        let modules = self.trace.map(modules_beside);
        for folder in self.folders.iter().copied().chain(modules.as_deref()) {
            // The first part of the path that is there.
            let there = folder.ancestors().find(|part| part.exists());
            let there = there.unwrap_or(Path::new("."));
            Aside::new_in(there).map_err(|e| cannot_write(folder, &e))?;
        }
        Ok(())
    }
}

/// A trace has its modules beside it.
fn check_trace(path: &Path) -> Result<(), Failure> {
    let is_file = std::fs::metadata(path).map_or(true, |found| found.is_file() || found.is_dir());
    match is_file && !is_stdout(path) && descriptor(path).is_none() {
        true => Ok(()),
        false => Err(Failure::input(format!(
            "`{}` is no file, and the modules of a trace go into a folder beside it: name a file, or take --json",
            path.display()
        ))),
    }
}

/// What a path names behind symbolic links, where the last one may lead to a file that is yet to be made.
///
/// # Errors
/// Links that lead back to themselves, and folders that are none or cannot be looked into.
pub fn behind_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    loop {
        // Fails on a circle.
        match std::fs::canonicalize(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            known => return known,
        }
        match std::fs::read_link(&path) {
            Ok(to) => path = folder_of(&path).join(to),
            Err(_) => return Ok(path),
        }
    }
}

/// Where a file would come to be.
fn place(path: &Path) -> Option<PathBuf> {
    Some(
        std::fs::canonicalize(folder_of(path))
            .ok()?
            .join(path.file_name()?),
    )
}

/// Makes a folder for results.
pub fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::input(format!("cannot make `{}`: {e}", folder.display())))
}

/// Writes a file into a folder and nowhere else: a link of that name is replaced, not followed.
pub fn write_into(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let path = folder.join(file_name(name));
    if was_read(&path) {
        return Err(is_an_input(&path));
    }
    let fail = |e: std::io::Error| cannot_write(&path, &e);
    let file = written(folder, bytes).map_err(fail)?;
    file.commit(&path).map_err(fail)
}

/// A name that leads nowhere and that every file system takes; a kernel's can be anything.
pub fn file_name(name: &str) -> String {
    const LONGEST: usize = 200;
    let is_plain = |c: char| !(c == '/' || c == '\\' || c.is_control());
    if !name.is_empty()
        && name.len() <= LONGEST
        && !name.starts_with('.')
        && name.chars().all(is_plain)
    {
        return name.to_owned();
    }
    let digest = warpwright_driver::database::hash(&[name.as_bytes()]);
    let plain = name.trim_start_matches('.').replace(|c| !is_plain(c), "_");
    // The end says what it is.
    let keep = plain.char_indices().rev().take(80).last();
    let end = keep.map_or("", |(at, _)| &plain[at..]);
    format!("{}-{end}", &digest[..16])
}

/// A file in a folder that everybody may read, not yet in its place.
fn written(folder: &Path, bytes: &[u8]) -> std::io::Result<Aside> {
    let mut aside = Aside::new_in(folder)?;
    aside.file().write_all(bytes)?;
    let readable = std::fs::Permissions::from_mode(0o644);
    aside.file().set_permissions(readable)?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has nothing to read.
    struct Silent;

    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(ErrorKind::WouldBlock.into())
        }
    }

    #[test]
    fn nobody_is_waited_for_at_a_file() {
        let began = Instant::now();
        let read = drain(Silent, Writer::Nobody).map_err(|e| e.kind());
        assert_eq!(read, Err(ErrorKind::WouldBlock));
        assert!(began.elapsed() < SILENT_WRITER);
    }
}
