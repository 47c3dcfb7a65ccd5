//! Starting a program with the library in it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::failure::Failure;

/// The library's file name, and the variable that names another place.
const LIBRARY: &str = "libwarpwright_inject.so";
const LIBRARY_VARIABLE: &str = "WARPWRIGHT_INJECT";

/// A program with its arguments.
pub fn command(words: &[OsString]) -> Result<Command, Failure> {
    let (program, args) = words
        .split_first()
        .ok_or_else(|| Failure::Usage("a program is wanted after `--`".into()))?;
    let mut command = Command::new(program);
    command.args(args);
    Ok(command)
}

/// Has the program load the library in this mode.
pub fn inject(command: &mut Command, mode: &str) -> Result<(), Failure> {
    let mut preload = library()?.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    command.env("LD_PRELOAD", preload).env("WARPWRIGHT", mode);
    Ok(())
}

/// The library: named by the variable, beside this program, or in the `lib` folder beside its folder.
fn library() -> Result<PathBuf, Failure> {
    let missing = |what: String| Failure::Missing {
        what,
        mend: Some(format!(
            "cargo build --release --workspace (in a checkout; `cargo install` has no libraries) puts {LIBRARY} beside \
             `warpwright`; {LIBRARY_VARIABLE} names another place"
        )),
    };
    let own = std::env::current_exe().and_then(|path| path.canonicalize());
    let own = own.map_err(|e| {
        missing(format!(
            "where `warpwright` itself is cannot be found out: {e}"
        ))
    })?;
    let folder = own.parent().unwrap_or(Path::new("."));
    let named = std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from);
    let places = match named {
        Some(named) => vec![named],
        None => vec![folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)],
    };
    let found = places.iter().find_map(|place| place.canonicalize().ok());
    let found = found.ok_or_else(|| missing(format!("{LIBRARY} is not found")))?;
    // Both separate names in LD_PRELOAD, and nothing protects them there.
    match found.to_string_lossy().contains([' ', ':']) {
        true => Err(Failure::input(format!(
            "`{}`: a path with a blank or a colon cannot be preloaded",
            found.display()
        ))),
        false => Ok(found),
    }
}

/// Becomes the program. Returns only if that fails.
pub fn become_it(mut command: Command) -> Failure {
    let name = command.get_program().to_owned();
    not_started(&name, &command.exec())
}

/// Runs the program to its end; its standard output goes to a file if one is given.
pub fn run(mut command: Command, stdout: Option<File>) -> Result<ExitStatus, Failure> {
    if let Some(file) = stdout {
        command.stdout(file);
    }
    // An interrupt is for the program; what it did until then is still worth telling.
    let _ = ctrlc::set_handler(|| {});
    let name = command.get_program().to_owned();
    command.status().map_err(|e| not_started(&name, &e))
}

fn not_started(name: &OsStr, why: &std::io::Error) -> Failure {
    Failure::input(format!(
        "`{}` does not start: {why}",
        name.to_string_lossy()
    ))
}

/// A program's exit code as ours; of a signal what shells make of it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).unwrap_or(1) as u8
}
