//! The real ptxas: where it is, and running it so that nobody notices.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use warpwright_toolkit::{FindOptions, NotFound, Toolkit};

use crate::policy::Settings;

/// Names the ptxas to run, or the toolkit that it is in.
pub const VARIABLE: &str = "WARPWRIGHT_REAL_PTXAS";

/// The toolkit of the real ptxas. This program under the name `ptxas` is never taken for it.
///
/// # Errors
/// There is none.
pub fn toolkit(_: &Settings) -> Result<Toolkit, NotFound> {
    let named = std::env::var_os(VARIABLE)
        .filter(|v| !v.is_empty())
        .map(PathBuf::from);
    let folder = named
        .or_else(next_in_path)
        .map(|path| match path.is_file() {
            true => path.parent().map(Path::to_path_buf).unwrap_or_default(),
            false => path,
        });
    Toolkit::find(&FindOptions {
        explicit_dir: folder,
    })
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
