//! `warpwright trace -- PROGRAM ARGS`

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use warpwright::trace::{Trace, WithoutGpu, read};
use warpwright_autotune::{caches, shortened};
use warpwright_diag::count;
use warpwright_gpu::{FaultKind, devices};
use warpwright_linkage::captured::CAPTURED;
use warpwright_supervise::program::{
    End, Program, command, inject, is_linked_with, outer_mode, run as run_program,
};
use warpwright_supervise::work;
use warpwright_winners::aside::Aside;
use warpwright_winners::lines::CUT;

use super::document::demangled;
use super::end::ended;
use super::no_gpu::{built, stand_in};
use crate::args::{Cli, TraceArgs};
use crate::commands::print_json;
use crate::failure::Failure;
use crate::input::{modules_beside, write_atomically};
use warpwright_report::table::Table;

/// Runs the command.
pub fn run(cli: &Cli, args: &TraceArgs) -> Result<(), Failure> {
    let folder = work::folder()?;
    let words = built(cli, &args.program, folder.path(), &args.without)?;
    let mut program = command(&words)?;
    match args.without.no_gpu {
        true => stand_in(cli, &mut program, folder.path(), &args.without)?,
        false => {
            if args.output.is_some() {
                program.env(caches::CUPY, caches::of_cupy(folder.path()));
            }
            look(&mut program, folder.path(), "trace")?;
        }
    }
    let end = run_program(program)?;
    ended(end, tell(args, folder.path(), end))
}

/// Says what was seen.
fn tell(args: &TraceArgs, folder: &Path, end: End) -> Result<(), Failure> {
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
        false => print(&trace, args.rows),
    }
    match (&trace.gpu, args.without.no_gpu) {
        (None, true) if !tell_captured(folder) => complain!(
            "no launch was seen: the program starts no kernel, or has a CUDA runtime of its own (nvcc -cudart shared \
             links the one that can be stood in for; nvcc below `trace --no-gpu` does so by itself)"
        ),
        (None, true) => {}
        (None, false) => nothing_was_seen(folder),
        (Some(_), true) => tell_linked(&args.program),
        (Some(_), _) => drop(tell_cut(folder)),
    }
    Ok(())
}

/// Says what became of programs that were built below this command.
fn tell_linked(words: &[OsString]) {
    let is_source = |word: &OsString| Path::new(word).extension().is_some_and(|end| end == "cu");
    let first = words.first().filter(|word| !is_source(word));
    if first.is_some_and(|program| !is_linked_with(program, "libcudart.so")) {
        eprintln!(
            "what nvcc built meanwhile is linked with the shared runtime, libcudart.so: build it anew for other runs"
        );
    }
}

/// Says why nothing may be known of a program's launches. How it ended is for its exit code to say.
pub fn nothing_was_seen(folder: &Path) {
    if tell_captured(folder) {
        return;
    }
    let written = Aside::new_in(folder).and_then(|mut file| file.file().write_all(&[0; 4096]));
    match (written, devices()) {
        (Err(e), _) => complain!(
            "no launch was seen: what the program does is noted in `{}`, where nothing can be written: {e}",
            folder.display()
        ),
        (Ok(()), _) if tell_cut(folder) => {}
        (Ok(()), Err(fault)) if fault.kind == FaultKind::Missing => complain!(
            "no launch was seen: {}; `warpwright trace --no-gpu -- PROGRAM` and `warpwright opt PROGRAM -o OUT` need none",
            fault.detail
        ),
        _ => complain!(
            "no launch was seen: the program does not use the driver, is linked statically, forbids itself system \
             calls (seccomp), has no room for the library (`ulimit -v`), or must not be preloaded (set-user-ID), or a \
             `warpwright` of its own is in between"
        ),
    }
}

/// Says so if the program's functions have names that the library calls.
fn tell_captured(folder: &Path) -> bool {
    let name = std::fs::read_link(folder.join(&*CAPTURED.to_string_lossy()));
    if let Ok(name) = &name {
        complain!(
            "no launch was seen: the program has a function `{}` of its own, which the library would call for that of the \
             C library",
            name.display()
        );
    }
    name.is_ok()
}

/// Says so if not all was noted that the program did.
pub fn tell_cut(folder: &Path) -> bool {
    let is_cut = folder.join(CUT).exists();
    if is_cut {
        complain!(
            "not all that the program did could be noted in `{}`: is the disk full, is there a limit (`ulimit -f`, `-n`), \
             or does it forbid itself system calls (seccomp)?",
            folder.display()
        );
    }
    is_cut
}

/// Has the program traced into a folder; `mode` is `trace`, or `trace+with` for a program with its winners.
pub fn look(program: &mut Program, folder: &Path, mode: &str) -> Result<(), Failure> {
    if outer_mode().is_some() {
        complain!(
            "this runs inside another `warpwright`, which does not see the launches: name the program itself there"
        );
    }
    inject(program, mode)?;
    program.env("WARPWRIGHT_DIR", folder);
    if std::env::var_os("WARPWRIGHT_LOG").is_none() {
        program.env("WARPWRIGHT_LOG", folder.join("log"));
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

/// The table, the most expensive kernels first.
fn print(trace: &Trace, rows: usize) {
    let Some(gpu) = &trace.gpu else {
        return;
    };
    let total: u64 = trace.launches.iter().map(|l| l.gpu_ns).sum();
    let kernels: BTreeSet<&String> = trace.launches.iter().map(|l| &l.kernel).collect();
    let launches = trace.launches.iter().map(|l| l.launches + l.in_graphs);
    let time = match &trace.without_gpu {
        Some(_) => "no GPU,".to_owned(),
        None => format!("{:.3} ms of GPU time in", total as f64 * 1e-6),
    };
    println!(
        "{}: {}, {time} {}, {}",
        gpu.name,
        count(kernels.len(), "kernel"),
        count(launches.sum::<u64>(), "launch"),
        count(trace.modules.len(), "module"),
    );
    // Without a GPU there are no times.
    let timed = 2 * usize::from(trace.without_gpu.is_none());
    let heads = [
        "ms", "share", "launches", "grid", "block", "smem", "regs", "spills", "occ.", "hint",
        "kernel",
    ];
    let mut table = Table::new(&heads[2 - timed..]);
    let dims = |[x, y, z]: [u32; 3]| match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x}x{y}"),
        _ => format!("{x}x{y}x{z}"),
    };
    let number = |n: Option<u32>| n.map_or("?".to_owned(), |n| n.to_string());
    for l in trace.launches.iter().take(rows) {
        let mut row = vec![
            format!("{:.3}", l.gpu_ns as f64 * 1e-6),
            format!("{:.1}%", l.share * 100.0),
            match l.in_graphs {
                0 => l.launches.to_string(),
                n => format!("{}+{n}", l.launches),
            },
            dims(l.grid),
            dims(l.block),
            (l.dynamic_smem + l.static_smem.unwrap_or(0)).to_string(),
            number(l.registers),
            number(l.spill_bytes),
            l.occupancy.map_or("?".to_owned(), |p| format!("{p:.0}%")),
            l.hint.clone(),
            shortened(&l.name),
        ];
        table.row(row.split_off(2 - timed));
    }
    print!("{}", table.render(0));
    if trace.launches.len() > rows {
        println!(
            "… and {} more (--rows, --json)",
            trace.launches.len() - rows
        );
    }
    for why in not_seen(trace) {
        println!("{why}");
    }
    if let Some(without) = &trace.without_gpu {
        print_without(without);
    }
}

/// What a trace without a GPU is worth.
fn print_without(without: &WithoutGpu) {
    match (without.exact_until, without.not_computed.first()) {
        (_, None) => println!("all kernels ran in the emulator: the program saw their results"),
        (until, Some(first)) => {
            println!(
                "kernels were not computed, the first in launch {}: {}: {}",
                first.launch,
                shortened(&demangled(&first.kernel)),
                first.why.lines().next().unwrap_or_default()
            );
            match until {
                Some(until) => println!(
                    "launches up to number {until} are exact; later ones may rest on results that were not computed"
                ),
                None => println!("no launch can rest on a result that was not computed"),
            }
        }
    }
    if let Some(first) = &without.rounded {
        println!(
            "launches behind number {} may rest on results that a GPU rounds otherwise ({})",
            first.launch,
            shortened(&demangled(&first.kernel))
        );
    }
    for fault in &without.faults {
        println!(
            "launch {}: {}: {}",
            fault.launch,
            shortened(&demangled(&fault.kernel)),
            fault.why
        );
    }
    if !without.unanswered.is_empty() {
        println!("refused: {}", without.unanswered.join(", "));
    }
    if let Some(why) = &without.ended {
        println!("the program was ended: {why}");
    }
}

fn not_seen(trace: &Trace) -> impl Iterator<Item = String> {
    let all = trace.not_seen.iter();
    all.map(|why| format!("modules were not looked at: {why}"))
}

/// Says on standard error which code of a program was not looked at, and why.
pub fn print_not_seen(trace: &Trace) {
    for why in not_seen(trace) {
        eprintln!("{why}");
    }
}
