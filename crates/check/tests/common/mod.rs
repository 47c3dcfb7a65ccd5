//! Running kernels in the emulator, for comparisons with the checker's verdict.

#![allow(dead_code)] // Each test binary uses its own part.

pub mod filetests;

use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_launch::{Guard, LaunchFile, no_files};
use warpwright_ptx::{Diagnostic, Module};

/// What a run comes to: the bits of all buffers, or how it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    Finished(Vec<Vec<u8>>),
    Faulted(String),
}

/// Runs the kernel that a launch description names.
pub fn run(module: &Module, launch: &str) -> Run {
    run_under(module, launch, &Guard::always())
}

/// The same at a launch that meets a guard.
pub fn run_under(module: &Module, launch: &str, guard: &Guard) -> Run {
    let launch = LaunchFile::parse(launch, "launch.toml")
        .and_then(|file| file.resolve("small", &[]))
        .unwrap_or_else(|error| panic!("{error}"));
    let Some(launch) = guard.satisfied(&launch) else {
        return Run::Faulted("no such launch".to_owned());
    };
    let inputs: Result<Vec<_>, _> = launch.buffers().map(|b| b.materialize(&no_files)).collect();
    let inputs = inputs.unwrap_or_else(|error| panic!("{error}"));
    let program = match Emulator::new(module, &launch.kernel) {
        Ok(program) => program,
        Err(error) => return Run::Faulted(error.to_string()),
    };
    let options = Options {
        races: true,
        budget: 1 << 22,
        heap: 0,
        ..Options::default()
    };
    match program.run(&launch, inputs, &options) {
        Ok(Outcome::Finished(results)) => Run::Finished(results.buffers),
        Ok(Outcome::Faulted(fault)) => Run::Faulted(fault.to_string()),
        Err(error) => Run::Faulted(error.to_string()),
    }
}

/// Parses a module without errors; `None` if it has some.
pub fn parse(name: &str, text: &str) -> Option<Module> {
    let (module, diagnostics) = Module::parse(name, text);
    (!diagnostics.iter().any(Diagnostic::is_error)).then_some(module)
}
