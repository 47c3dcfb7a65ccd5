//! The child process: serves a [`Backend`] over lines of JSON.
//!
//! One request a line on standard input, one reply a line on standard output, in turn; bulk data
//! goes through files in the job's folder. A kernel may print to standard output too, so replies
//! start on a line of their own with [`MARK`]. A worker ends when its input ends. After a fault
//! that cost it the device context it answers no more and waits to be killed.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::{Backend, CheckReport, CheckRequest, TimeReport, TimeRequest};
use crate::device::DeviceInfo;
use crate::fault::{Fault, FaultKind};
use crate::job::Job;
use crate::runner::Runner;

/// First argument of the command line that makes a program a worker.
pub const WORKER_ARGUMENT: &str = "gpu-worker";

/// What a reply's line starts with.
pub const MARK: &str = "@warpwright ";

/// What the parent asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// [`Backend::open`].
    Open(Box<Job>),
    /// [`Backend::check`].
    Check(Box<CheckRequest>),
    /// [`Backend::time`].
    Time(Box<TimeRequest>),
}

/// What the worker answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Request::Open`].
    Opened(Box<DeviceInfo>),
    /// To [`Request::Check`].
    Checked(Box<CheckReport>),
    /// To [`Request::Time`].
    Timed(Box<TimeReport>),
    /// To any request.
    Fault(Fault),
}

/// The body of the hidden subcommand `gpu-worker [ORDINAL]`; `args` are what follows the
/// subcommand. Returns the exit code.
pub fn worker_main(args: &[String]) -> u8 {
    let ordinal = match args.first().map_or(Ok(0), |text| text.parse()) {
        Ok(ordinal) => ordinal,
        Err(_) => return 2,
    };
    let mut runner = Runner::new(ordinal);
    match serve(&mut runner, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => 0,
        Err(_) => 4,
    }
}

/// Answers requests until the input ends.
pub fn serve(
    backend: &mut dyn Backend,
    input: impl BufRead,
    mut output: impl Write,
) -> io::Result<()> {
    for line in input.lines() {
        let reply = match serde_json::from_str(&line?) {
            Ok(request) => answer(backend, request),
            Err(e) => Reply::Fault(Fault::new(FaultKind::Internal, format!("request: {e}"))),
        };
        let text = serde_json::to_string(&reply).map_err(io::Error::other)?;
        write!(output, "\n{MARK}{text}\n")?;
        output.flush()?;
        if matches!(&reply, Reply::Fault(fault) if fault.kind.is_fatal()) {
            // The context is lost and even leaving could hang in the driver: the parent kills
            // this process. If there is no parent any more, it ends itself.
            std::thread::sleep(Duration::from_secs(30));
            std::process::abort();
        }
    }
    Ok(())
}

fn answer(backend: &mut dyn Backend, request: Request) -> Reply {
    let reply = match request {
        Request::Open(job) => backend.open(&job).map(|info| Reply::Opened(Box::new(info))),
        Request::Check(request) => backend
            .check(&request)
            .map(|report| Reply::Checked(Box::new(report))),
        Request::Time(request) => backend
            .time(&request)
            .map(|report| Reply::Timed(Box::new(report))),
    };
    reply.unwrap_or_else(Reply::Fault)
}
