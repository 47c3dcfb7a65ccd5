//! What a program that runs several times writes comes once: standard output and error of its first run, as it writes them. Where
//! no run was shown, since its trace was made before, those of the last one that counts come at its end.

use std::fs::File;
use std::io::{Result, Seek, SeekFrom, Write, copy, stderr, stdout};
use std::process::Stdio;

use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, fstat, memfd_create};

use crate::program::Program;
use warpwright_diag::Problem;

/// What became of it.
pub enum Shown {
    /// A run wrote where this command does.
    Yes,
    /// No run counts so far.
    No,
    /// What the last run that counts wrote.
    Kept(Written),
}

/// What a run wrote, in memory: a disk may be full.
pub struct Written {
    output: File,
    /// None where both go to one place.
    error: Option<File>,
}

impl Shown {
    /// Sets where another run writes: nowhere, or where none was shown into memory, until it is known whether it counts.
    ///
    /// # Errors
    /// There is no memory.
    pub fn give(&self, program: &mut Program) -> std::result::Result<Option<Written>, Problem> {
        // The log is none of what the program writes.
        if std::env::var_os("WARPWRIGHT_LOG").is_some_and(|log| log == "/dev/stderr") {
            let own = format!("/proc/{}/fd/2", std::process::id());
            program.env("WARPWRIGHT_LOG", own);
        }
        if matches!(self, Shown::Yes) {
            let command = &mut program.command;
            command.stdout(Stdio::null()).stderr(Stdio::null());
            return Ok(None);
        }
        let written = Written::new(&mut program.command);
        let failed = |e| Problem::Input(format!("no place for the program's output: {e}"));
        written.map(Some).map_err(failed)
    }

    /// Writes what did not come yet.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn come(self) -> Result<()> {
        let Shown::Kept(Written { output, error }) = self else {
            return Ok(());
        };
        let all = |mut file: File, to: &mut dyn Write| {
            file.seek(SeekFrom::Start(0))?;
            copy(&mut file, to).map(drop)
        };
        let written = all(output, &mut stdout());
        error.map_or(Ok(()), |file| all(file, &mut stderr()))?;
        written
    }
}

impl Written {
    fn new(program: &mut std::process::Command) -> Result<Written> {
        let output = memory("stdout")?;
        program.stdout(output.try_clone()?);
        let error = match is_one_place() {
            true => None,
            false => Some(memory("stderr")?),
        };
        program.stderr(error.as_ref().unwrap_or(&output).try_clone()?);
        Ok(Written { output, error })
    }
}

/// A file that is written to as a pipe is: who opens it anew writes behind what is there.
fn memory(name: &str) -> Result<File> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(File::from(file))
}

/// Do standard output and error of this process go to one place?
fn is_one_place() -> bool {
    match (fstat(stdout()), fstat(stderr())) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        _ => false,
    }
}
