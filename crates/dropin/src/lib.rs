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
//! * `label`: how the log names a module; `probe`: what is no part of a build.
//! * [`messages`]: what ptxas says about a kernel, made true again.

pub mod engine;
mod label;
pub mod messages;
pub mod options;
pub mod policy;
mod probe;
pub mod real;
pub mod recorded;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use warpwright_pass::names::source_name;
use warpwright_toolkit::Toolkit;
use warpwright_winners::aside::Aside;

use crate::messages::Facts;
use crate::options::Request;
use crate::policy::{BUDGET, Policy, Settings};

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
    let found = real::toolkit();
    let found = found.and_then(|toolkit| match toolkit.ptxas() {
        Ok(ptxas) => Ok((ptxas.tool().path.clone(), toolkit.clone())),
        Err(_) => Err(real::NoPtxas::Missing),
    });
    let (program, toolkit) = match found {
        Ok(found) => found,
        Err(e) => {
            eprintln!("ptxas fatal   : {e}");
            return ExitCode::from(255);
        }
    };
    let is_question = options::asks_for_version(&args);
    if is_question && settings.policy != Policy::Off {
        return real::version(&program, &args, &settings);
    }
    let note = |what: &str| settings.note(&format!("{what} [{}]", program.display()));
    if settings.policy == Policy::Off {
        if !is_question {
            // Who mistypes a setting has asked for something: that nothing happens is said where the build speaks.
            for mistake in &settings.mistakes {
                note(&mistake.to_string());
                eprintln!("warpwright-ptxas: {mistake}");
            }
        }
        return real::become_it(&program, &args);
    }
    if probe::is_running() {
        return real::become_it(&program, &args);
    }
    let request = match options::parse(&args) {
        Ok(request) => request,
        Err(why) => {
            note(&format!(
                "{}: unchanged: {why}",
                options::name_of_call(&args)
            ));
            return real::become_it(&program, &args);
        }
    };
    let ptx = read_regular(Path::new(&request.input)).and_then(|ptx| String::from_utf8(ptx).ok());
    let symbols = ptx.as_deref().map(|ptx| label::symbols(ptx).collect());
    let symbols: Option<Vec<&str>> = symbols;
    // A check of the compiler, or a file of host code alone: there is nothing to say.
    if symbols.as_ref().is_some_and(Vec::is_empty) {
        return real::become_it(&program, &args);
    }
    let symbols = symbols.unwrap_or_default();
    let unmatched = settings.unmatched(&symbols);
    let settings = settings.clone().for_module(&symbols);
    if let Some(why) = request.kept {
        note(&format!("{}: unchanged: {why}", request.name()));
        return real::become_it(&program, &args);
    }
    let start = Instant::now();
    let ran = match real::run(&program, &args) {
        Ok(ran) => ran,
        Err(e) => {
            eprintln!("ptxas fatal   : {}: {e}", program.display());
            return ExitCode::from(255);
        }
    };
    let took = start.elapsed();
    if !ran.status.success() {
        note(&format!("{}: ptxas refuses it", request.name()));
        return ran.pass_on();
    }
    for met in engine::miscompiled(&toolkit, &request, ptx.as_deref()) {
        note(&format!("{}: {met}", request.name()));
    }
    match improved(toolkit, &settings, &request, ptx, (&ran.stderr, took)) {
        Ok((better, messages)) => match replace(Path::new(&request.output), &better.cubin) {
            Ok(()) => {
                let took = start.elapsed().as_secs_f64();
                note(&format!(
                    "{}: {}{unmatched} ({took:.2} s)",
                    request.name(),
                    better.what
                ));
                let _ = std::io::stdout().write_all(&ran.stdout);
                let _ = std::io::stderr().write_all(&messages);
                return ExitCode::SUCCESS;
            }
            Err(e) => note(&format!("{}: not replaced: {e}", request.name())),
        },
        Err(why) => note(&format!("{}: unchanged: {why}{unmatched}", request.name())),
    }
    ran.pass_on()
}

/// Time for the kernels of a call, as the variable states it: for each.
#[derive(Debug, Clone, Copy)]
struct Budget {
    one: Duration,
    kernels: u32,
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kernels {
            1 => write!(f, "{:?}", self.one),
            all => write!(f, "{:?} for each of {all} kernels", self.one),
        }
    }
}

/// Why a build of ptxas stands.
#[derive(Debug, thiserror::Error)]
enum Unchanged {
    #[error("its input or its output cannot be read")]
    Unreadable,
    #[error("ptxas alone takes longer than the budget of {0} ({BUDGET} raises it)")]
    Slow(Budget),
    #[error("the budget of {0} is spent ({BUDGET} raises it)")]
    Spent(Budget),
    #[error("an internal error; please report it")]
    Panicked,
    #[error(transparent)]
    Recorded(#[from] recorded::RecordedError),
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    #[error("{0}")]
    Kernels(String),
}

/// A better build than the one that was made in `took`, with the messages about it; within the budget, and never a
/// panic.
fn improved(
    toolkit: Toolkit,
    settings: &Settings,
    request: &Request,
    ptx: Option<String>,
    (said, took): (&[u8], Duration),
) -> Result<(Better, Vec<u8>), Unchanged> {
    let cubin = read_regular(Path::new(&request.output)).ok_or(Unchanged::Unreadable)?;
    let ptx = ptx.ok_or(Unchanged::Unreadable)?;
    let said = String::from_utf8(said.to_vec()).map_err(|_| Unchanged::Unreadable)?;
    let kernels = ptx.matches(".entry").count().max(1);
    let kernels = u32::try_from(kernels).unwrap_or(u32::MAX);
    let budget = settings.budget * kernels;
    let in_words = Budget {
        one: settings.budget,
        kernels,
    };
    if settings.policy == Policy::Safe && took > budget {
        return Err(Unchanged::Slow(in_words));
    }
    let (sender, receiver) = mpsc::channel();
    let (settings_there, request_there) = (settings.clone(), request.clone());
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::spawn(move || {
        let found = match settings_there.policy {
            Policy::Safe => predicted(&toolkit, &settings_there, &request_there, &ptx, &cubin),
            Policy::Recorded | Policy::Off => {
                recorded::better(&settings_there, &cubin).map_err(Unchanged::from)
            }
        };
        // Nobody listens any more when the budget is spent.
        let _ = sender.send(found);
    });
    let better = match receiver.recv_timeout(budget) {
        Ok(found) => found?,
        // Compilers that are still running end, and their files go.
        Err(mpsc::RecvTimeoutError::Timeout) => {
            warpwright_toolkit::shut_down();
            return Err(Unchanged::Spent(in_words));
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => return Err(Unchanged::Panicked),
    };
    let messages = messages::about(&said, &better.changed);
    Ok((better, messages.into_bytes()))
}

/// What the engine found, with a word on every kernel.
fn predicted(
    toolkit: &Toolkit,
    settings: &Settings,
    request: &Request,
    ptx: &str,
    cubin: &[u8],
) -> Result<Better, Unchanged> {
    let found = engine::better(toolkit, settings, request, ptx, cubin)?;
    let kept =
        |(kernel, why): &(String, engine::Unchanged)| format!("{}: {why}", source_name(kernel));
    let kept: Vec<String> = found.unchanged.iter().map(kept).collect();
    match found.better {
        None if kept.is_empty() => Err(Unchanged::Kernels("it has no kernel".into())),
        None => Err(Unchanged::Kernels(kept.join("; "))),
        Some(mut better) => {
            for kept in kept {
                better.what.push_str(&format!("; unchanged: {kept}"));
            }
            Ok(better)
        }
    }
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
    let mut aside = Aside::new_in(folder)?;
    aside.file().write_all(bytes)?;
    let permissions = std::fs::metadata(&real)?.permissions();
    aside.file().set_permissions(permissions)?;
    aside.commit(&real)
}

/// The budget of a kernel unless the environment says otherwise: somebody waits for a just-in-time compiler.
pub const DEFAULT_BUDGET: Duration = Duration::from_millis(500);
