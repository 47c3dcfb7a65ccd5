//! Runs one child process: collects what it prints, enforces a time limit, and leaves nothing behind.
//!
//! The child leads a process group of its own, so that a time-out also ends what it started
//! (nvcc runs cicc and ptxas). The group is killed *before* the child is reaped, so its number cannot
//! have been reused by an unrelated process.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::ToolError;
use crate::scratch::{Counted, alive};

/// What one process may print to each of its streams, if nothing else is said.
const OUTPUT_LIMIT: u64 = 1 << 30;
/// Attempts to start a program whose file somebody still holds open for writing.
const BUSY_RETRIES: u32 = 20;

static CANCELLED: AtomicBool = AtomicBool::new(false);

/// Ends every running tool and makes each later run fail with [`ToolError::Cancelled`]. The
/// interrupted calls return errors, and their temporary files are removed on the way out.
pub fn cancel_all() {
    CANCELLED.store(true, Ordering::SeqCst);
}

/// For an interrupt handler that is about to end the program: [`cancel_all`], then waits (two seconds
/// at most) until no tool runs any more and all temporary files are gone.
pub fn shut_down() {
    cancel_all();
    let start = Instant::now();
    while alive() > 0 && start.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A program, its arguments and its limits.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The name used in error messages.
    pub name: String,
    /// The file, or a name to be found in `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables set besides those of this process.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory, if it is to be another one.
    pub directory: Option<PathBuf>,
    /// After this, the program and all that it started is killed.
    pub timeout: Duration,
    /// What it may print to each of its streams, in bytes; past it, it gets a broken pipe.
    pub output_limit: u64,
}

/// What a process left: its status and both streams.
#[derive(Debug, Clone)]
pub struct Output {
    /// How it exited.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Both streams as text, standard output first.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&self.stderr));
        text
    }
}

impl Invocation {
    /// Without arguments.
    pub fn new(name: impl Into<String>, program: &Path, timeout: Duration) -> Self {
        Invocation {
            name: name.into(),
            program: program.to_path_buf(),
            args: Vec::new(),
            env: Vec::new(),
            directory: None,
            timeout,
            output_limit: OUTPUT_LIMIT,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Runs to the end. An exit code other than zero is no error here; a signal, a time-out or a
    /// program that cannot be started is.
    ///
    /// # Errors
    /// [`ToolError::Spawn`], [`ToolError::Timeout`], [`ToolError::Signal`], [`ToolError::Cancelled`].
    pub fn run(&self) -> Result<Output, ToolError> {
        if CANCELLED.load(Ordering::SeqCst) {
            return Err(ToolError::Cancelled {
                tool: self.name.clone(),
            });
        }
        let _counted = Counted::new();
        let mut child = self.spawn()?;
        let stdout = collect(child.stdout.take(), self.output_limit);
        let stderr = collect(child.stderr.take(), self.output_limit);
        let waited = self.wait(&mut child);
        // Whatever happened, nothing of the group survives; only then can the readers end.
        kill_group(&child);
        let reaped = child.wait();
        let stdout = stdout.join().unwrap_or_default();
        let stderr = stderr.join().unwrap_or_default();
        waited?;
        let status = reaped.map_err(|e| ToolError::io(&self.program, e))?;
        if let Some(signal) = status.signal() {
            let log = String::from_utf8_lossy(&stderr).into_owned();
            return Err(ToolError::Signal {
                tool: self.name.clone(),
                signal,
                log,
            });
        }
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }

    fn spawn(&self) -> Result<Child, ToolError> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let mut attempt = 0;
        loop {
            match command.spawn() {
                Err(e) if e.kind() == ErrorKind::ExecutableFileBusy && attempt < BUSY_RETRIES => {
                    attempt += 1;
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(source) => {
                    let path = self.program.clone();
                    return Err(ToolError::Spawn {
                        tool: self.name.clone(),
                        path,
                        source,
                    });
                }
                Ok(child) => return Ok(child),
            }
        }
    }

    /// Waits until the child has ended, without reaping it.
    fn wait(&self, child: &mut Child) -> Result<(), ToolError> {
        let start = Instant::now();
        let mut pause = Duration::from_micros(200);
        while !has_ended(child) {
            if CANCELLED.load(Ordering::SeqCst) {
                return Err(ToolError::Cancelled {
                    tool: self.name.clone(),
                });
            }
            if start.elapsed() >= self.timeout {
                let limit = self.timeout;
                return Err(ToolError::Timeout {
                    tool: self.name.clone(),
                    limit,
                });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(4));
        }
        Ok(())
    }
}

fn group(child: &Child) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// Whether the child has become a zombie: ended, but not yet waited for.
fn has_ended(child: &mut Child) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let Some(pid) = group(child) else { return true };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

fn kill_group(child: &Child) {
    if let Some(pid) = group(child) {
        // Fails only when the group is gone already, which is what is wanted.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

fn collect(stream: Option<impl Read + Send + 'static>, limit: u64) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            // A stream that breaks off ends the text; the exit status tells the rest.
            let _ = stream.take(limit).read_to_end(&mut bytes);
        }
        bytes
    })
}
