//! `warpwright trace --no-gpu -- PROGRAM ARGS`: the program finds our runtime in CUDA's place.
//!
//! A source file is built first. The program finds the runtime by the loader's path. What it starts finds it as well, so that `make run` does; and an nvcc that it starts
//! is told to link the shared runtime, and to put code and PTX for the GPU into what it builds.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use warpwright_api::Error;
use warpwright_api::source::Tools;
use warpwright_api::trace::STAND_IN;
use warpwright_diag::Problem;
use warpwright_supervise::program::{Program, STANDIN, library, loadable};
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::patience;

/// The names under which programs ask for the runtime: one for each version of its interface.
const NAMES: [&str; 3] = ["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"];

/// What a program sees in the GPU's place.
#[derive(Debug, Clone)]
pub struct StandIn {
    /// The GPU, as somebody names it.
    pub gpu: String,
    /// Work of all kernels, in seconds as a reference machine takes them; then launches are recorded alone.
    pub budget: f64,
    /// Device memory in MiB.
    pub memory: u64,
}

/// Has the program run on the stand-in, which writes into a folder.
///
/// # Errors
/// The stand-in is not there, or no such GPU.
pub fn stand_in(
    tools: &Tools<'_>,
    program: &mut Program,
    folder: &Path,
    args: &StandIn,
) -> Result<(), Error> {
    for (name, value) in environment(tools, folder, args)? {
        program.env(name, value);
    }
    Ok(())
}

/// The variables with which a program finds the stand-in, and what it starts.
///
/// # Errors
/// The same.
pub fn environment(
    tools: &Tools<'_>,
    folder: &Path,
    args: &StandIn,
) -> Result<Vec<(OsString, OsString)>, Error> {
    let gpu = lookup(&args.gpu)?;
    let (library, links) = (library(&STANDIN)?, folder.join(STAND_IN));
    let failed = |e: std::io::Error| Problem::Input(format!("`{}`: {e}", links.display()));
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
    let nvcc = tools.toolkit().ok().and_then(|toolkit| toolkit.nvcc().ok());
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
///
/// # Errors
/// It does not build.
pub fn built(
    tools: &Tools<'_>,
    words: &[OsString],
    folder: &Path,
    args: &StandIn,
) -> Result<Vec<OsString>, Error> {
    let source = words.first().map(Path::new);
    let Some(source) = source.filter(|path| path.extension().is_some_and(|end| end == "cu")) else {
        return Ok(words.to_vec());
    };
    // What nvcc says of it names the file that was given.
    let text = warpwright_files::text(source)?;
    let text = format!("#line 1 \"{}\"\n{text}", source.display());
    let toolkit = tools.toolkit()?;
    let gpu = lookup(&args.gpu)?;
    let program = toolkit.nvcc()?.program(&gpu.target(), patience())?;
    // Its own headers stand beside it.
    let beside = source
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let beside = beside.unwrap_or(Path::new("."));
    let beside = std::fs::canonicalize(beside).unwrap_or_else(|_| beside.to_owned());
    let more = [
        "-cudart".into(),
        "shared".into(),
        "-I".into(),
        beside.into(),
    ];
    let made = program.executable("program", &text, &more)?;
    let kept = folder.join("program");
    std::fs::copy(&made, &kept)
        .map_err(|e| Problem::Input(format!("`{}`: {e}", kept.display())))?;
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
