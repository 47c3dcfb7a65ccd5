//! The parent's side of the child process: start, ask, time out, kill, start again.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::backend::{Backend, CheckReport, CheckRequest, TimeReport, TimeRequest};
use crate::device::DeviceInfo;
use crate::fault::{Fault, FaultKind};
use crate::job::Job;
use crate::runner::IN_FLIGHT;
use crate::worker::{MARK, Reply, Request, WORKER_ARGUMENT};

/// Longest time without a sign of life beside a kernel's own time: context, transfers, module
/// loads, JIT.
const GRACE: Duration = Duration::from_secs(120);
/// How long a killed process may take to be gone; the driver first has to stop its kernels.
const BURIAL: Duration = Duration::from_secs(60);

/// How to start a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

impl WorkerCommand {
    /// This very program with `gpu-worker ORDINAL`: its `main` must hand those to
    /// [`crate::worker_main`].
    ///
    /// # Errors
    /// [`FaultKind::Internal`]: the program does not know where it is.
    pub fn this_program(ordinal: u32) -> Result<Self, Fault> {
        let program = std::env::current_exe()
            .map_err(|e| Fault::new(FaultKind::Internal, format!("own path: {e}")))?;
        Ok(WorkerCommand {
            program,
            args: vec![WORKER_ARGUMENT.into(), ordinal.to_string()],
        })
    }
}

/// A backend in a child process, which is replaced when it dies or hangs.
pub struct Process {
    command: WorkerCommand,
    grace: Duration,
    worker: Option<Worker>,
    job: Option<Job>,
    restarts: u32,
}

struct Worker {
    child: Child,
    input: ChildStdin,
    replies: Receiver<String>,
}

impl Process {
    /// A backend that starts its worker when it is first asked something.
    pub fn new(command: WorkerCommand) -> Self {
        Process {
            command,
            grace: GRACE,
            worker: None,
            job: None,
            restarts: 0,
        }
    }

    /// Changes how long a worker may give no sign of life beside a kernel's own time (default:
    /// 120 s).
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How often a worker had to be replaced.
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Asks for something other than a new job; a new worker gets the current job first.
    fn ask(&mut self, request: Request, limit: Duration) -> Result<Reply, Fault> {
        if self.worker.is_none() {
            let Some(job) = self.job.clone() else {
                return Err(Fault::new(FaultKind::Internal, "no job is open"));
            };
            self.restarts += 1;
            self.send(Request::Open(Box::new(job)), self.grace)?;
        }
        self.send(request, limit)
    }

    /// One request, one reply. The worker is gone afterwards if it hung, died or lost its device.
    fn send(&mut self, request: Request, limit: Duration) -> Result<Reply, Fault> {
        if self.worker.is_none() {
            self.worker = Some(self.spawn()?);
        }
        let Some(worker) = &mut self.worker else {
            return Err(Fault::new(FaultKind::Internal, "the worker vanished"));
        };
        let pulse = self.job.as_ref().map(|job| job.dir.join(IN_FLIGHT));
        match worker.exchange(&request, limit, pulse.as_deref()) {
            Ok(Reply::Fault(fault)) => {
                if fault.kind.is_fatal() {
                    self.bury()?;
                }
                Err(fault)
            }
            Ok(reply) => Ok(reply),
            Err(Silence::Late) => {
                self.bury()?;
                let detail = format!("no sign of life for {:.0} s; killed", limit.as_secs_f64());
                Err(self.blame(Fault::new(FaultKind::Timeout, detail)))
            }
            Err(Silence::Gone) => {
                let status = self.bury()?;
                let detail = format!("the worker ended by itself ({status}){}", self.last_words());
                Err(self.blame(Fault::new(FaultKind::Killed, detail)))
            }
        }
    }

    fn spawn(&self) -> Result<Worker, Fault> {
        let internal =
            |what: &str, e: std::io::Error| Fault::new(FaultKind::Internal, format!("{what}: {e}"));
        let log = match self.log_file() {
            Some(path) => File::create(path)
                .map_err(|e| internal("worker log", e))
                .map(Stdio::from)?,
            None => Stdio::null(),
        };
        let mut command = Command::new(&self.command.program);
        command
            .args(&self.command.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        // An interrupt from the terminal is for the parent: a worker that died of it would look
        // like a variant that crashed.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .spawn()
            .map_err(|e| internal("cannot start the worker", e))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Fault::new(FaultKind::Internal, "the worker has no pipes"));
        };
        let (sender, replies) = channel();
        // Reads until the pipe closes, which it does when the child is gone.
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line);
                if let Some(reply) = line.strip_prefix(MARK)
                    && sender.send(reply.to_string()).is_err()
                {
                    break;
                }
            }
        });
        Ok(Worker {
            child,
            input,
            replies,
        })
    }

    /// Kills the worker and waits until the driver has let go of it.
    fn bury(&mut self) -> Result<String, Fault> {
        let Some(mut worker) = self.worker.take() else {
            return Ok("gone".into());
        };
        // What it died of by itself must not be hidden by the signal that follows.
        let already = worker.child.try_wait().ok().flatten();
        let _ = worker.child.kill();
        let start = Instant::now();
        while start.elapsed() < BURIAL {
            if let Ok(Some(status)) = worker.child.try_wait() {
                return Ok(in_words(already.unwrap_or(status)));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let detail = "a killed worker does not end: the driver does not let go of its kernel";
        Err(Fault::new(FaultKind::Missing, detail))
    }

    /// Adds the variant that the worker started last.
    fn blame(&self, fault: Fault) -> Fault {
        let note = self
            .job
            .as_ref()
            .and_then(|j| std::fs::read(j.dir.join(IN_FLIGHT)).ok());
        match note.as_deref().map(String::from_utf8_lossy) {
            Some(text) => match text.lines().next() {
                Some(id) if !id.is_empty() => fault.blame(id),
                _ => fault,
            },
            None => fault,
        }
    }

    fn log_file(&self) -> Option<PathBuf> {
        self.job.as_ref().map(|job| job.dir.join("worker.log"))
    }

    /// The end of what the worker wrote to its standard error.
    fn last_words(&self) -> String {
        let text = self
            .log_file()
            .and_then(|path| std::fs::read(path).ok())
            .unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let tail: Vec<&str> = text.lines().rev().take(5).collect();
        if tail.is_empty() {
            return String::new();
        }
        format!(
            ": {}",
            tail.into_iter().rev().collect::<Vec<_>>().join(" | ")
        )
    }
}

enum Silence {
    Late,
    Gone,
}

impl Worker {
    /// Waits for the answer as long as there are signs of life: the file `pulse` changes whenever
    /// a kernel is started.
    fn exchange(
        &mut self,
        request: &Request,
        limit: Duration,
        pulse: Option<&Path>,
    ) -> Result<Reply, Silence> {
        let broken = |e: serde_json::Error| {
            Ok(Reply::Fault(Fault::new(
                FaultKind::Internal,
                format!("protocol: {e}"),
            )))
        };
        let text = match serde_json::to_string(request) {
            Ok(text) => text,
            Err(e) => return broken(e),
        };
        writeln!(self.input, "{text}")
            .and_then(|()| self.input.flush())
            .map_err(|_| Silence::Gone)?;
        let beat = || pulse.and_then(|path| path.metadata().ok()?.modified().ok());
        let (mut last_beat, mut alive) = (beat(), Instant::now());
        loop {
            match self
                .replies
                .recv_timeout(Duration::from_millis(500).min(limit))
            {
                Ok(line) => return serde_json::from_str(&line).or_else(broken),
                Err(RecvTimeoutError::Disconnected) => return Err(Silence::Gone),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = beat();
            if now != last_beat {
                (last_beat, alive) = (now, Instant::now());
            } else if alive.elapsed() > limit {
                return Err(Silence::Late);
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.bury();
    }
}

impl Backend for Process {
    fn open(&mut self, job: &Job) -> Result<DeviceInfo, Fault> {
        self.job = Some(job.clone());
        match self.send(Request::Open(Box::new(job.clone())), self.grace)? {
            Reply::Opened(info) => Ok(*info),
            other => Err(unexpected(&other)),
        }
    }

    fn check(&mut self, request: &CheckRequest) -> Result<CheckReport, Fault> {
        let limit = self.grace + seconds(2.0 * request.limit_s);
        match self.ask(Request::Check(Box::new(request.clone())), limit)? {
            Reply::Checked(report) => Ok(*report),
            other => Err(unexpected(&other)),
        }
    }

    fn time(&mut self, request: &TimeRequest) -> Result<TimeReport, Fault> {
        // The worker stops a sample that takes too long; this only catches a worker that does
        // not even manage that.
        let limit = self.grace + seconds(2.0 * request.limit_s);
        match self.ask(Request::Time(Box::new(request.clone())), limit)? {
            Reply::Timed(report) => Ok(*report),
            other => Err(unexpected(&other)),
        }
    }
}

fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or(GRACE)
}

fn unexpected(reply: &Reply) -> Fault {
    Fault::new(
        FaultKind::Internal,
        format!("protocol: an answer to another question: {reply:?}"),
    )
}

fn in_words(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}
