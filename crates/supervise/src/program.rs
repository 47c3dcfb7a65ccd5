//! Starting a program with the library in it.

use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::libc;

use warpwright_diag::Problem;

use crate::{beside, environment, needs, signals, stdin};

/// A library of ours: its file name, that of one which it opens beside it, and the variable that names another place.
pub struct Library {
    file: &'static str,
    opens: Option<&'static str>,
    variable: &'static str,
}

/// The library that stands in front of the driver.
const INJECT: Library = Library {
    file: "libwarpwright_inject.so",
    opens: Some("libwarpwright_inplace.so"),
    variable: "WARPWRIGHT_INJECT",
};

/// The library that stands in for the runtime.
pub const STANDIN: Library = Library {
    file: "libwarpwright_standin.so",
    opens: None,
    variable: "WARPWRIGHT_STANDIN",
};

/// A program that is to start, with its arguments.
pub struct Program {
    /// It, but for its environment.
    pub command: Command,
    set: Vec<(OsString, OsString)>,
}

impl Program {
    /// Sets a variable.
    pub fn env(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.set.push((name.into(), value.into()));
    }

    /// What is started. Its environment is this process's as it is, with what was set in its place or at the end: a
    /// [`Command`] would sort it.
    #[allow(unsafe_code)]
    fn ready(mut self) -> Result<Command, Problem> {
        let with_zero = |entry: Vec<u8>| {
            let failed =
                |_| Problem::Input("a variable of the environment has a zero in it".to_owned());
            CString::new(entry).map_err(failed)
        };
        let entries = environment::with(environment::own(), &self.set);
        let entries: Vec<CString> = entries
            .into_iter()
            .map(with_zero)
            .collect::<Result<_, _>>()?;
        // The program starts with it, or this process has it until it ends.
        let all = entries
            .into_iter()
            .map(|entry| entry.into_raw().cast_const());
        let all: Vec<_> = all.chain(std::iter::once(std::ptr::null())).collect();
        let place = Box::leak(all.into_boxed_slice()).as_ptr().addr();
        let give = move || {
            // SAFETY: nothing else runs between fork and exec, nor where this process becomes the program.
            unsafe { environment::environ = place as *const _ };
            Ok(())
        };
        // SAFETY: one word is written.
        unsafe { self.command.pre_exec(give) };
        Ok(self.command)
    }
}

/// A program with its arguments.
pub fn command(words: &[OsString]) -> Result<Program, Problem> {
    let (program, args) = words
        .split_first()
        .ok_or_else(|| Problem::Usage("a program is wanted after `--`".into()))?;
    let mut command = Command::new(program);
    command.args(args);
    beside::begin();
    signals::hand_down(&mut command);
    Ok(Program {
        command,
        set: Vec::new(),
    })
}

/// Bytes of a variable, with its name and a zero (`MAX_ARG_STRLEN` of Linux, for pages of 4 KiB).
const LONGEST: usize = 128 << 10;

/// Has the program load the library in this mode.
pub fn inject(command: &mut Program, mode: &str) -> Result<(), Problem> {
    let program = command.command.get_program();
    if needs::sanitizer(program) {
        beside::tell(&format!(
            "`{}` is built with AddressSanitizer, which ends where a library is loaded before its own: it runs without ours",
            program.display()
        ));
        return Ok(());
    }
    if needs::is_foreign(program) {
        beside::tell(&format!(
            "`{}` may not be read, is of another width or processor than our library, or started by another dynamic linker: \
             it runs without it",
            program.display()
        ));
        return Ok(());
    }
    let mut preload = library(&INJECT)?.into_os_string();
    // The dynamic linker minds the last one.
    if let Some(others) = environment::last("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    if "LD_PRELOAD=".len() + preload.len() >= LONGEST {
        beside::tell(
            "`LD_PRELOAD` is so long that ours does not fit in: the program runs without it",
        );
        return Ok(());
    }
    command.env("LD_PRELOAD", preload);
    command.env("WARPWRIGHT", mode);
    // The program may go into another folder before the library looks at them.
    for name in ["WARPWRIGHT_DB", "WARPWRIGHT_LOG"] {
        if let Some(path) = std::env::var_os(name).filter(|path| !path.is_empty()) {
            command.env(name, whole(Path::new(&path)));
        }
    }
    Ok(())
}

/// Is its file linked with a library whose name begins so?
pub fn is_linked_with(program: &OsStr, library: &str) -> bool {
    needs::one_of(program, &[library])
}

/// The mode of the `trace` or `tune` that this command was started by, if it was.
pub fn outer_mode() -> Option<String> {
    std::env::var_os("WARPWRIGHT_DIR").filter(|folder| !folder.is_empty())?;
    let mode = std::env::var("WARPWRIGHT").ok()?;
    matches!(&*mode, "trace" | "trace+with" | "try").then_some(mode)
}

/// A path that means the same in every folder.
pub fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The library: named by the variable, beside this program, or in the `lib` folder beside its folder.
pub fn library(wanted: &Library) -> Result<PathBuf, Problem> {
    let Library {
        file,
        opens,
        variable,
    } = *wanted;
    let missing = |what: String| Problem::Missing {
        what,
        mend: Some(format!(
            "cargo build --release --workspace (in a checkout; `cargo install` has no libraries) puts {file} beside \
             `warpwright`; {variable} names another place"
        )),
    };
    let places = match std::env::var_os(variable) {
        Some(named) => vec![PathBuf::from(named)],
        None => {
            let own = std::env::current_exe().and_then(|path| path.canonicalize());
            let own = own.map_err(|e| {
                missing(format!(
                    "where `warpwright` itself is cannot be found out: {e}"
                ))
            })?;
            let folder = own.parent().unwrap_or(Path::new("."));
            vec![folder.join(file), folder.join("../lib").join(file)]
        }
    };
    let found = places.iter().find_map(|place| place.canonicalize().ok());
    let found = found.ok_or_else(|| missing(format!("{file} is not found")))?;
    let opened = opens.map(|file| found.with_file_name(file));
    for library in std::iter::once(&found).chain(&opened) {
        let is_whole = match is_whole(library) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(missing(format!("`{}` is not there", library.display())));
            }
            known => known,
        };
        let failed = |e| Problem::Input(format!("`{}`: {e}", library.display()));
        if !is_whole.map_err(failed)? {
            return Err(missing(format!(
                "`{}` is no whole library (is it cut short?), and programs would run without it",
                library.display()
            )));
        }
    }
    loadable(&found, &[' ', ':', '$'])?;
    Ok(found)
}

/// Can a path stand where the dynamic linker reads it? These separate names there or begin `$ORIGIN`, and nothing protects
/// them.
pub fn loadable(path: &Path, odd: &[char]) -> Result<(), Problem> {
    match path.to_string_lossy().chars().find(|c| odd.contains(c)) {
        Some(c) => Err(Problem::Input(format!(
            "`{}`: the dynamic linker takes no path with `{c}` in it",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Does a shared library end where its header says? Its last table does.
fn is_whole(library: &Path) -> std::io::Result<bool> {
    let mut file = File::open(library)?;
    let length = file.metadata()?.len();
    let mut header = [0; 64];
    if length < header.len() as u64 {
        return Ok(false);
    }
    file.read_exact(&mut header)?;
    let half = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let mut start = [0; 8];
    start.copy_from_slice(&header[40..48]);
    let end = u64::from_le_bytes(start).saturating_add(half(58) * half(60));
    Ok(header.starts_with(b"\x7fELF") && half(16) == 3 && end > 64 && end <= length)
}

/// Becomes the program. Returns only if that fails.
pub fn become_it(program: Program) -> Problem {
    let mut command = match program.ready() {
        Ok(command) => command,
        Err(failure) => return failure,
    };
    let name = command.get_program().to_owned();
    not_started(&name, &command.exec())
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With this exit code.
    Code(u8),
    /// By a signal.
    Signal {
        /// Which.
        number: i32,
        /// Was its memory written down?
        has_dumped: bool,
    },
}

impl End {
    fn of(status: ExitStatus) -> End {
        match (status.code(), status.signal()) {
            (Some(code), _) => End::Code(code as u8),
            (None, signal) => End::Signal {
                number: signal.unwrap_or(libc::SIGKILL),
                has_dumped: status.core_dumped(),
            },
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Code(code) => write!(f, "exit code {code}"),
            End::Signal { number, .. } => write!(f, "signal {number}"),
        }
    }
}

static FIRST: OnceLock<End> = OnceLock::new();

/// How the first run ended, if one has.
pub fn first() -> Option<End> {
    FIRST.get().copied()
}

/// Runs the program to its end.
pub fn run(program: Program) -> Result<End, Problem> {
    let wait = |child| loop {
        if let Some(end) = look_after(child, 0)? {
            return Ok(end);
        }
    };
    run_beside(program.ready()?, &mut { wait })
}

/// How often something is looked after while a program runs.
const INTERVAL: Duration = Duration::from_millis(2);

/// The same, and meanwhile `work` is done again and again.
pub fn run_with(program: Program, mut work: impl FnMut()) -> Result<End, Problem> {
    run_beside(program.ready()?, &mut |child| {
        loop {
            work();
            if let Some(end) = look_after(child, libc::WNOHANG)? {
                return Ok(end);
            }
            std::thread::sleep(INTERVAL);
        }
    })
}

/// Has it ended? If it has stopped this process does so, too.
#[allow(unsafe_code)]
fn look_after(child: u32, how: i32) -> std::io::Result<Option<End>> {
    let mut status = 0;
    // SAFETY: a child of ours, and a place for its status.
    match unsafe { libc::waitpid(child as i32, &raw mut status, how | libc::WUNTRACED) } {
        -1 => match std::io::Error::last_os_error() {
            e if e.kind() == std::io::ErrorKind::Interrupted => Ok(None),
            e => Err(e),
        },
        0 => Ok(None),
        _ => {
            let status = ExitStatus::from_raw(status);
            match status.stopped_signal() {
                Some(signal) => {
                    if stays_stopped(child) {
                        signals::stop_with(child, signal, || is_changed(child));
                    }
                    Ok(None)
                }
                None => Ok(Some(End::of(status))),
            }
        }
    }
}

/// Whoever stops a group and has it go on does so to one process after the other: this one may go on first.
const MEANWHILE: Duration = Duration::from_millis(30);

/// Does a program that has stopped neither go on nor end?
fn stays_stopped(child: u32) -> bool {
    let since = Instant::now();
    while since.elapsed() < MEANWHILE {
        if is_changed(child) {
            return false;
        }
        std::thread::sleep(INTERVAL);
    }
    true
}

/// Has a program that had stopped gone on, or ended?
#[allow(unsafe_code)]
fn is_changed(child: u32) -> bool {
    let changes = libc::WCONTINUED | libc::WEXITED;
    let how = changes | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: zeros are a report of nothing, and a child of ours is asked for.
    unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_PID, child, &raw mut found, how) != 0 || found.si_pid() != 0
    }
}

fn run_beside(
    mut command: Command,
    wait: &mut dyn FnMut(u32) -> std::io::Result<End>,
) -> Result<End, Problem> {
    let name = command.get_program().to_owned();
    // Signals are for the program; what it did until then is still worth telling.
    signals::starting();
    let spawned = command.spawn();
    // What it was started with is its own now.
    drop(command);
    let end = spawned.and_then(|child| {
        signals::started(child.id());
        wait(child.id())
    });
    signals::ended(match end {
        Ok(End::Signal { number, .. }) => Some(number),
        _ => None,
    });
    if let Ok(end) = end {
        FIRST.get_or_init(|| end);
    }
    stdin::settle();
    end.map_err(|e| not_started(&name, &e))
}

fn not_started(name: &OsStr, why: &std::io::Error) -> Problem {
    Problem::Input(format!(
        "`{}` does not start: {why}",
        name.to_string_lossy()
    ))
}

/// Did a program that ended so end because nothing more could be written where its output goes? Where all is taken it might
/// never end.
pub fn is_cut_off(end: End) -> bool {
    let by = match end {
        End::Signal { number, .. } => number,
        // A shell tells so of what it has run.
        End::Code(code) => i32::from(code) - 128,
    };
    [libc::SIGPIPE, libc::SIGXFSZ].contains(&by) || (end != End::Code(0) && has_no_reader())
}

/// Is standard output a pipe or socket that nobody reads any more?
#[allow(unsafe_code)]
fn has_no_reader() -> bool {
    let mut stdout = libc::pollfd {
        fd: libc::STDOUT_FILENO,
        events: 0,
        revents: 0,
    };
    // SAFETY: one structure, and no waiting.
    let found = unsafe { libc::poll(&raw mut stdout, 1, 0) };
    found == 1 && stdout.revents & (libc::POLLERR | libc::POLLHUP) != 0
}
