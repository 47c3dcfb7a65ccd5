//! The real ptxas: where it is, and running it so that nobody notices.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use warpwright_toolkit::{FindOptions, NotFound, Origin, Toolkit};

use crate::policy::Settings;

/// Names the ptxas to run (any file), or a folder with `ptxas` or `bin/ptxas` in it.
pub const VARIABLE: &str = "WARPWRIGHT_REAL_PTXAS";
/// Where Triton looks for its ptxas, and the file of its own that it would run otherwise: the second from sm_90 on (before
/// 3.9 from sm_100 on), the first below. Source: `get_ptxas` of `triton/backends/nvidia/compiler.py`, 3.5 to 3.9.
pub const TRITON: [(&str, &str); 2] = [
    ("TRITON_PTXAS_PATH", "ptxas"),
    ("TRITON_PTXAS_BLACKWELL_PATH", "ptxas-blackwell"),
];

/// There is no ptxas to run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPtxas {
    /// [`VARIABLE`] leads nowhere.
    #[error("{VARIABLE} names `{}`: {why}", .path.display())]
    Named {
        /// Its value.
        path: PathBuf,
        /// What is wrong with it.
        why: Unusable,
    },
    /// Nothing was named, and nothing is found.
    #[error("{0}, or set {VARIABLE}")]
    Nowhere(#[from] NotFound),
    /// There are tools, and ptxas is not among them.
    #[error("there is no ptxas to run; set {VARIABLE}")]
    Missing,
}

/// What is wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nothing is there.
    #[error("there is no such file")]
    Absent,
    /// A folder.
    #[error("a folder without `ptxas` or `bin/ptxas`")]
    Folder,
    /// A file that cannot be run, or this program.
    #[error("it is no program, or the drop-in itself")]
    Program,
}

/// The real ptxas, as a toolkit: the one that [`VARIABLE`] names, else the one that the caller would have run, else one
/// found as by every command. This program is never taken for it.
///
/// # Errors
/// There is none.
pub fn toolkit() -> Result<Toolkit, NoPtxas> {
    if let Some(named) = named_by_environment() {
        return named;
    }
    let host = of_triton().or_else(next_in_path);
    if let Some(toolkit) = host.and_then(|file| Toolkit::with_ptxas(&file, Origin::Host)) {
        return Ok(toolkit);
    }
    let toolkit = Toolkit::find(&FindOptions::default())?;
    match toolkit.ptxas() {
        Ok(_) => Ok(toolkit),
        Err(_) => Err(NoPtxas::Missing),
    }
}

/// The toolkit of the ptxas that [`VARIABLE`] names, if it is set.
pub fn named_by_environment() -> Option<Result<Toolkit, NoPtxas>> {
    let path = std::env::var_os(VARIABLE).filter(|v| !v.is_empty())?;
    Some(named(PathBuf::from(path)))
}

fn named(path: PathBuf) -> Result<Toolkit, NoPtxas> {
    let places = match path.is_dir() {
        true => vec![path.join("bin/ptxas"), path.join("ptxas")],
        false => vec![path.clone()],
    };
    let mut found = places
        .iter()
        .filter_map(|file| Toolkit::with_ptxas(file, Origin::RealPtxas));
    found.next().ok_or_else(|| NoPtxas::Named {
        why: match (path.exists(), path.is_dir()) {
            (false, _) => Unusable::Absent,
            (_, true) => Unusable::Folder,
            _ => Unusable::Program,
        },
        path,
    })
}

/// Started by Triton, the ptxas that it brings: the process above has its library in memory, and a variable says which of
/// the two it asks for. Where both variables are set, the way this program was called tells them apart if it can; else it is
/// the newer one for both, since the version that Triton is told must be that of every build.
fn of_triton() -> Option<PathBuf> {
    let called = std::env::args_os().next()?;
    let mut set = TRITON.iter().filter_map(|(variable, file)| {
        let value = std::env::var_os(variable).filter(|v| !v.is_empty())?;
        Some((value, *file))
    });
    let (first, second) = (set.next()?, set.next());
    let file = match second {
        Some(second) if first.0 == called && second.0 != called => first.1,
        Some(second) => second.1,
        None => first.1,
    };
    let maps = format!("/proc/{}/maps", std::os::unix::process::parent_id());
    let maps = std::fs::read_to_string(maps).ok()?;
    // `START-END rwxp OFFSET DEVICE INODE PATH`
    let mut mapped = maps
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]));
    let library = Path::new(mapped.find(|path| path.ends_with("/triton/_C/libtriton.so"))?);
    let folder = library.parent()?.parent()?;
    Some(folder.join("backends/nvidia/bin").join(file))
}

/// Started as `ptxas`, the next program of that name in `PATH`: the one that the caller would have had.
fn next_in_path() -> Option<PathBuf> {
    let name = std::env::args_os().next()?;
    if Path::new(&name).file_name()? != "ptxas" {
        return None;
    }
    let own = std::env::current_exe()
        .and_then(std::fs::canonicalize)
        .ok()?;
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut others = folders.map(|folder| folder.join("ptxas"));
    others.find(|file| file.is_file() && std::fs::canonicalize(file).is_ok_and(|real| real != own))
}

/// Lets the real one take this process's place: nothing of it can differ. Returns only if it cannot be started.
pub fn become_it(program: &Path, args: &[OsString]) -> ExitCode {
    let e = Command::new(program).args(args).exec();
    eprintln!("ptxas fatal   : {}: {e}", program.display());
    ExitCode::from(255)
}

/// A finished run of the real one.
pub struct Ran {
    /// How it ended.
    pub status: std::process::ExitStatus,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// The same on standard error.
    pub stderr: Vec<u8>,
}

/// Runs it with standard input as it is.
///
/// # Errors
/// It cannot be started.
pub fn run(program: &Path, args: &[OsString]) -> std::io::Result<Ran> {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(program)
        .args(args)
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?
        .wait_with_output()?;
    Ok(Ran {
        status,
        stdout,
        stderr,
    })
}

impl Ran {
    /// Prints what it printed and ends as it ended.
    pub fn pass_on(self) -> ExitCode {
        let _ = std::io::stdout().write_all(&self.stdout);
        let _ = std::io::stderr().write_all(&self.stderr);
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(255)),
            // As a shell says it.
            (None, signal) => {
                ExitCode::from(u8::try_from(128 + signal.unwrap_or(0)).unwrap_or(255))
            }
        }
    }
}

/// `--version`: the real one's, and what else decides which code comes out.
pub fn version(program: &Path, args: &[OsString], settings: &Settings) -> ExitCode {
    match run(program, args) {
        Ok(mut ran) => {
            if ran.status.success() {
                ran.stdout.extend_from_slice(settings.stamp().as_bytes());
                ran.stdout.push(b'\n');
            }
            ran.pass_on()
        }
        Err(e) => {
            eprintln!("ptxas fatal   : {}: {e}", program.display());
            ExitCode::from(255)
        }
    }
}
