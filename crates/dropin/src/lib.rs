//! `warpwright-ptxas`: a drop-in for ptxas in the builds of others (nvcc, clang, Triton, XLA, TVM, CUDA.jl).
//!
//! The real ptxas runs first, with the arguments as they came. What it prints, its exit code and its files are
//! passed on as they are, unless it succeeded and the policy finds a better build within its budget; then the
//! output file is replaced whole, and the messages about the kernels that changed say what is true of the new code.
//! Whatever goes wrong on the way, the real one's result stands: a build that ptxas passes is never failed.
//!
//! * [`options`]: ptxas's command line. [`policy`]: what may be done, from the environment.
//! * [`real`]: the real ptxas.
//! * [`recorded`], [`engine`]: the two sources of better builds; [`engine`] is the only file that knows `driver`.
//! * `label`: how the log names a module.
//! * [`messages`]: what ptxas says about a kernel, made true again.

pub mod engine;
mod label;
pub mod messages;
pub mod options;
pub mod policy;
pub mod real;
pub mod recorded;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use warpwright_toolkit::Toolkit;

use crate::messages::Facts;
use crate::options::Request;
use crate::policy::{Policy, Settings};

/// A better build of a module.
#[derive(Debug, Clone, PartialEq)]
pub struct Better {
    /// The whole cubin.
    pub cubin: Vec<u8>,
    /// What is true of each kernel that changed.
    pub changed: Vec<Facts>,
    /// What was done, for the log.
    pub what: String,
}

/// The program.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let settings = Settings::of(&|name| std::env::var_os(name));
    let toolkit = match real::toolkit(&settings) {
        Ok(toolkit) => toolkit,
        Err(e) => {
            eprintln!("ptxas fatal   : {e}");
            return ExitCode::from(255);
        }
    };
    let Ok(program) = toolkit.ptxas().map(|ptxas| ptxas.tool().path.clone()) else {
        eprintln!(
            "ptxas fatal   : there is no ptxas to run; set {}",
            real::VARIABLE
        );
        return ExitCode::from(255);
    };
    if options::asks_for_version(&args) && settings.policy != Policy::Off {
        return real::version(&program, &args, &settings);
    }
    if settings.policy == Policy::Off {
        return real::become_it(&program, &args);
    }
    let request = match options::parse(&args) {
        Ok(request) if request.can_be_improved() => request,
        Ok(request) => {
            let why = "what is asked for is no finished kernel that is to be fast";
            settings.note(&format!("{}: unchanged: {why}", request.name()));
            return real::become_it(&program, &args);
        }
        Err(why) => {
            settings.note(&format!("a call of ptxas: unchanged: {why}"));
            return real::become_it(&program, &args);
        }
    };
    let start = Instant::now();
    let ran = match real::run(&program, &args) {
        Ok(ran) => ran,
        Err(e) => {
            eprintln!("ptxas fatal   : {}: {e}", program.display());
            return ExitCode::from(255);
        }
    };
    let took = start.elapsed();
    if ran.status.success()
        && let Some((better, messages)) = improved(toolkit, &settings, &request, &ran.stderr, took)
    {
        if let Err(e) = replace(Path::new(&request.output), &better.cubin) {
            settings.note(&format!("{}: not replaced: {e}", request.name()));
        } else {
            let took = start.elapsed().as_secs_f64();
            settings.note(&format!(
                "{}: {} ({took:.2} s)",
                request.name(),
                better.what
            ));
            let _ = std::io::stdout().write_all(&ran.stdout);
            let _ = std::io::stderr().write_all(&messages);
            return ExitCode::SUCCESS;
        }
    }
    ran.pass_on()
}

/// A better build than the one that was made in `took`, with the messages about it; within the budget, and never a
/// panic.
fn improved(
    toolkit: Toolkit,
    settings: &Settings,
    request: &Request,
    said: &[u8],
    took: Duration,
) -> Option<(Better, Vec<u8>)> {
    let cubin = read_regular(Path::new(&request.output))?;
    let ptx = String::from_utf8(read_regular(Path::new(&request.input))?).ok()?;
    let kernels = ptx.matches(".entry").count().max(1);
    let budget = settings.budget * u32::try_from(kernels).unwrap_or(u32::MAX);
    if settings.policy == Policy::Safe && took > budget {
        settings.note(&format!(
            "{}: unchanged: ptxas alone takes longer than the budget of {budget:?}",
            request.name()
        ));
        return None;
    }
    let (sender, receiver) = mpsc::channel();
    let (settings_there, request_there) = (settings.clone(), request.clone());
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::spawn(move || {
        let found = match settings_there.policy {
            Policy::Off => Ok(None),
            Policy::Recorded => {
                recorded::better(&settings_there, &cubin).map_err(|e| e.to_string())
            }
            Policy::Safe => engine::better(&toolkit, &settings_there, &request_there, &ptx, &cubin)
                .map_err(|e| e.to_string()),
        };
        // Nobody listens any more when the budget is spent.
        let _ = sender.send(found);
    });
    let better = match receiver.recv_timeout(budget) {
        Ok(Ok(Some(better))) => better,
        Ok(Ok(None)) => {
            settings.note(&format!(
                "{}: unchanged: nothing better is sure",
                request.name()
            ));
            return None;
        }
        Ok(Err(why)) => {
            settings.note(&format!("{}: unchanged: {why}", request.name()));
            return None;
        }
        // Compilers that are still running end, and their files go.
        Err(mpsc::RecvTimeoutError::Timeout) => {
            warpwright_toolkit::shut_down();
            settings.note(&format!(
                "{}: unchanged: the budget of {budget:?} is spent",
                request.name()
            ));
            return None;
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            settings.note(&format!(
                "{}: unchanged: an internal error; please report it",
                request.name()
            ));
            return None;
        }
    };
    let said = String::from_utf8(said.to_vec()).ok()?;
    let messages = messages::about(&said, &better.changed);
    Some((better, messages.into_bytes()))
}

/// The contents of a regular file of at most 256 MiB.
fn read_regular(path: &Path) -> Option<Vec<u8>> {
    const LARGEST: u64 = 1 << 28;
    let data = std::fs::metadata(path).ok()?;
    (data.is_file() && data.len() <= LARGEST).then(|| std::fs::read(path).ok())?
}

/// Puts other contents in a file's place, whole; its permissions stay.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let real = std::fs::canonicalize(path)?;
    let folder = real.parent().ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    let permissions = std::fs::metadata(&real)?.permissions();
    std::fs::set_permissions(file.path(), permissions)?;
    file.persist(&real).map_err(|e| e.error)?;
    Ok(())
}

/// The budget of a kernel unless the environment says otherwise: somebody waits for a just-in-time compiler.
pub const DEFAULT_BUDGET: Duration = Duration::from_millis(500);
