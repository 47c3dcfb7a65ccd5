//! `warpwright trace -- PROGRAM ARGS`

use std::path::Path;

use warpwright::trace::read;
use warpwright_autotune::caches;
use warpwright_autotune::no_gpu::{StandIn, built, stand_in};
use warpwright_autotune::program::{look, nothing_was_seen, tell_captured, tell_cut, tell_linked};
use warpwright_files::{modules_beside, write_atomically};
use warpwright_supervise::program::{End, command, run as run_program};
use warpwright_supervise::work;

use super::end::ended;
use super::watch::Told;
use crate::args::{Cli, TraceArgs};
use crate::commands::print_json;
use crate::failure::Failure;
use crate::session;

/// Runs the command.
pub fn run(cli: &Cli, args: &TraceArgs) -> Result<(), Failure> {
    let folder = work::folder()?;
    let program = match args.without.no_gpu {
        true => {
            let without = StandIn {
                gpu: args.without.gpu.clone(),
                budget: args.without.budget,
                memory: args.without.memory,
            };
            let tools = session::tools(cli, &[])?;
            let words = built(&tools, &args.program, folder.path(), &without)?;
            let mut program = command(&words)?;
            stand_in(&tools, &mut program, folder.path(), &without)?;
            program
        }
        false => {
            let mut program = command(&args.program)?;
            if args.output.is_some() {
                program.env(caches::CUPY, caches::of_cupy(folder.path()));
            }
            look(&mut program, folder.path(), "trace", &Told(cli))?;
            program
        }
    };
    let end = run_program(program)?;
    ended(end, tell(cli, args, folder.path(), end))
}

/// Says what was seen.
fn tell(cli: &Cli, args: &TraceArgs, folder: &Path, end: End) -> Result<(), Failure> {
    work::is_there(folder)?;
    caches::find_ptx(folder);
    let mut trace = read(folder, &args.program, warpwright_gpu::utc_now())?;
    // Of a program that was ended before it launched anything there is nothing to keep, and perhaps an older trace.
    let is_cut = trace.gpu.is_none() && matches!(end, End::Signal { .. });
    if let Some(output) = args.output.as_ref().filter(|_| !is_cut) {
        trace.modules_in = Some(keep_modules(folder, output)?);
        let text = serde_json::to_string_pretty(&trace)
            .map_err(|e| Failure::Internal(format!("a trace that is no JSON: {e}")))?;
        write_atomically(output, text.as_bytes())?;
    }
    match args.json {
        true => print_json(&trace)?,
        false => print!("{}", trace.screen(args.rows)),
    }
    match (&trace.gpu, args.without.no_gpu) {
        (None, true) if !tell_captured(folder, &Told(cli)) => complain!(
            "no launch was seen: the program starts no kernel, or has a CUDA runtime of its own (nvcc -cudart shared \
             links the one that can be stood in for; nvcc below `trace --no-gpu` does so by itself)"
        ),
        (None, true) => {}
        (None, false) => nothing_was_seen(folder, &Told(cli)),
        (Some(_), true) => tell_linked(&args.program, &Told(cli)),
        (Some(_), _) => drop(tell_cut(folder, &Told(cli))),
    }
    Ok(())
}

/// Keeps the modules beside the trace; returns the folder's name.
fn keep_modules(from: &Path, output: &Path) -> Result<String, Failure> {
    let folder = modules_beside(output);
    let failed = |e: std::io::Error| Failure::input(format!("`{}`: {e}", folder.display()));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_code = path.extension().is_some_and(|e| e == "cubin" || e == "ptx");
        if let (true, Some(file)) = (is_code, path.file_name()) {
            std::fs::copy(&path, folder.join(file)).map_err(failed)?;
        }
    }
    Ok(folder.to_string_lossy().into_owned())
}
