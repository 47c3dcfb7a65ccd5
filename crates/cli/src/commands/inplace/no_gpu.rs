//! `warpwright trace --no-gpu -- PROGRAM ARGS`: the program finds our runtime in CUDA's place.
//!
//! A source file is built first. The program finds the runtime by the loader's path. What it starts finds it as well, so that `make run` does; and an nvcc that it starts
//! is told to link the shared runtime, and to put code and PTX for the GPU into what it builds.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use warpwright::trace::STAND_IN;
use warpwright_supervise::program::{Program, STANDIN, library, loadable};
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::patience;

use crate::args::{Cli, NoGpuArgs};
use crate::commands::own_run::program_of;
use crate::failure::Failure;
use crate::session;

/// The names under which programs ask for the runtime: one for each version of its interface.
const NAMES: [&str; 3] = ["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"];

/// Has the program run on the stand-in, which writes into a folder.
pub fn stand_in(
    cli: &Cli,
    program: &mut Program,
    folder: &Path,
    args: &NoGpuArgs,
) -> Result<(), Failure> {
    for (name, value) in environment(cli, folder, args)? {
        program.env(name, value);
    }
    Ok(())
}

/// The variables with which a program finds the stand-in, and what it starts.
pub fn environment(
    cli: &Cli,
    folder: &Path,
    args: &NoGpuArgs,
) -> Result<Vec<(OsString, OsString)>, Failure> {
    let gpu = lookup(&args.gpu).map_err(|error| Failure::input(error.to_string()))?;
    let (library, links) = (library(&STANDIN)?, folder.join(STAND_IN));
    let failed = |e: std::io::Error| Failure::input(format!("`{}`: {e}", links.display()));
    loadable(&links, &[':', ';', '$'])?;
    std::fs::create_dir(&links).map_err(failed)?;
    for name in NAMES {
        std::os::unix::fs::symlink(&library, links.join(name)).map_err(failed)?;
    }
    let links = list("LD_LIBRARY_PATH", links.as_os_str(), true);
    let mut all: Vec<(&str, OsString)> = vec![
        ("LD_LIBRARY_PATH", links),
        ("NVCC_APPEND_FLAGS", flags(&gpu)),
        ("WARPWRIGHT_DIR", folder.into()),
        ("WARPWRIGHT_GPU", args.gpu.clone().into()),
        ("WARPWRIGHT_BUDGET", args.budget.to_string().into()),
        ("WARPWRIGHT_MEMORY", (args.memory << 20).to_string().into()),
    ];
    let toolkit = session::toolkit(cli).ok();
    let nvcc = toolkit.as_ref().and_then(|toolkit| toolkit.nvcc().ok());
    if let Some(bin) = nvcc.and_then(|nvcc| nvcc.tool().path.parent()) {
        // Behind the user's own.
        all.push(("PATH", list("PATH", bin.as_os_str(), false)));
    }
    Ok(all
        .into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect())
}

/// The program to run: as it is named, or built of the source file that is named in its place.
pub fn built(
    cli: &Cli,
    words: &[OsString],
    folder: &Path,
    args: &NoGpuArgs,
) -> Result<Vec<OsString>, Failure> {
    let source = words.first().map(Path::new);
    let source = source.filter(|path| path.extension().is_some_and(|end| end == "cu"));
    let Some(source) = source.filter(|_| args.no_gpu) else {
        return Ok(words.to_vec());
    };
    let input = crate::input::read(source)?;
    let gpu = lookup(&args.gpu).map_err(|error| Failure::input(error.to_string()))?;
    let kept = program_of(cli, &input, (folder, &gpu, patience()))?;
    let own = std::iter::once(kept.into_os_string());
    Ok(own.chain(words.iter().skip(1).cloned()).collect())
}

/// A list of folders in the environment with one more at its begin or end.
fn list(name: &str, folder: &OsStr, first: bool) -> OsString {
    let old = std::env::var_os(name).filter(|old| !old.is_empty());
    match (old, first) {
        (None, _) => folder.to_owned(),
        (Some(old), true) => [folder, OsStr::new(":"), &old].into_iter().collect(),
        (Some(old), false) => [&old, OsStr::new(":"), folder].into_iter().collect(),
    }
}

/// What nvcc is told behind its own arguments.
fn flags(gpu: &Gpu) -> OsString {
    let sm = gpu.arch.sm;
    let own = format!("-cudart shared -gencode arch=compute_{sm},code=[sm_{sm},compute_{sm}]");
    let old = std::env::var_os("NVCC_APPEND_FLAGS").filter(|old| !old.is_empty());
    match old {
        None => own.into(),
        Some(old) => [&old, OsStr::new(" "), OsStr::new(&own)]
            .into_iter()
            .collect(),
    }
}
