//! Registers that nvcc and ptxas give to the benchmarks' kernels, scheduled and not: the tables of
//! bench/results/stencils.md. Uses the toolkit that is found (`WARPWRIGHT_TOOLKIT`).
//!
//! ```text
//! stencil_registers FOLDER           (examples/stencils) without a limit
//! stencil_registers FOLDER limits    bytes of spill stores under register limits
//! ```

#[path = "../tests/fission/mod.rs"]
mod fission;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use fission::{Crossing, split};
use warpwright_stencil::dsl;
use warpwright_stencil::emit::{Hold, Options, generate};
use warpwright_stencil::ir::Stencil;
use warpwright_toolkit::{FindOptions, NvccJob, Toolkit};

/// Name, extent along every dimension, points per thread, kernels.
const ROWS: [(&str, i64, &[u32], usize); 13] = [
    ("2d25pt", 8196, &[4], 1),
    ("2d64pt", 8200, &[4], 1),
    ("2d81pt", 8200, &[4], 1),
    ("3d27pt", 514, &[4], 1),
    ("3d125pt", 516, &[4], 1),
    ("3d125pt", 516, &[4, 4], 1),
    ("hypterm", 308, &[], 1),
    ("hypterm", 308, &[], 3),
    ("rhs4th3fort", 304, &[], 1),
    ("rhs4th3fort", 304, &[], 3),
    ("derivative", 304, &[], 1),
    ("derivative", 304, &[], 2),
    ("derivative", 304, &[2], 1),
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let folder = std::env::args().nth(1).ok_or("which folder?")?;
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    if std::env::args().nth(2).as_deref() == Some("limits") {
        return under_limits(&toolkit, &folder);
    }
    println!(
        "| stencil | points per thread | kernels | MAXLIVE as written | atomic | interleaved | registers as written | scheduled | with fences | schedule, s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, size, factors, kernels) in ROWS {
        let stencil = read(&folder, name)?;
        let parts = split(&stencil, kernels, Crossing::Recompute).ok_or("it cannot be split so")?;
        let options = Options {
            factors: factors.to_vec(),
            sizes: Some(stencil.parameters.values().map(|_| size).collect()),
            ..Options::default()
        };
        let scheduled = registers(&toolkit, &parts, &options)?;
        let written = Options {
            unscheduled: true,
            ..options.clone()
        };
        let written = registers(&toolkit, &parts, &written)?;
        let fenced = Options {
            order: Hold::Fence(1),
            ..options.clone()
        };
        let fenced = registers(&toolkit, &parts, &fenced)?;
        let points: u32 = factors.iter().product();
        println!(
            "| {name} | {points} | {kernels} | {} | {} | {} | {} | {} | {} | {:.2} |",
            written.max_live,
            scheduled.atomic,
            scheduled.max_live,
            written.text,
            scheduled.text,
            fenced.text,
            scheduled.seconds
        );
    }
    Ok(())
}

fn read(folder: &str, name: &str) -> Result<Stencil, String> {
    let path = Path::new(folder).join(format!("{name}.stencil"));
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut stencil = dsl::parse(&text).map_err(|_| format!("{name}: no stencil"))?;
    stencil.reassociate = true;
    Ok(stencil)
}

/// As written / scheduled: bytes of spill stores per thread at each limit, for the stencils of many
/// statements (the others fit).
fn under_limits(toolkit: &Toolkit, folder: &str) -> Result<(), String> {
    const LIMITS: [u32; 3] = [96, 64, 48];
    println!("| stencil | points per thread | 96 registers | 64 | 48 |");
    println!("|---|---|---|---|---|");
    for (name, size, factors, _) in ROWS.iter().skip(6).filter(|row| row.3 == 1) {
        let stencil = read(folder, name)?;
        let mut line = format!("| {name} | {} |", factors.iter().product::<u32>());
        for limit in LIMITS {
            let options = Options {
                factors: factors.to_vec(),
                sizes: Some(stencil.parameters.values().map(|_| *size).collect()),
                registers: Some(limit),
                ..Options::default()
            };
            let written = Options {
                unscheduled: true,
                ..options.clone()
            };
            let part = std::slice::from_ref(&stencil);
            let written = registers(toolkit, part, &written)?.spilled;
            let scheduled = registers(toolkit, part, &options)?.spilled;
            line += &format!(" {written} / {scheduled} |");
        }
        println!("{line}");
    }
    Ok(())
}

/// The largest numbers over the kernels of one build.
struct Found {
    max_live: u32,
    atomic: u32,
    text: String,
    /// Bytes of spill stores per thread.
    spilled: u32,
    /// What it took to schedule and to write.
    seconds: f64,
}

fn registers(toolkit: &Toolkit, parts: &[Stencil], options: &Options) -> Result<Found, String> {
    let start = Instant::now();
    let generated = generate(parts, options).map_err(|e| e.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let source = folder.path().join("stencil.cu");
    std::fs::write(&source, generated.text()).map_err(|e| e.to_string())?;
    let mut job = NvccJob::new(&source, "sm_90");
    job.lineinfo = false;
    let nvcc = toolkit.nvcc().map_err(|e| e.to_string())?;
    let build = nvcc.to_cubin(&job).map_err(|e| e.to_string())?;
    let mut most = (0, 0);
    for kernel in &generated.kernels {
        let resources = build
            .resources
            .kernel(&kernel.name)
            .ok_or("no resources reported")?;
        let registers = resources.registers.unwrap_or(0);
        most = most.max((registers, resources.spill_stores));
    }
    let text = match most {
        (registers, 0) => registers.to_string(),
        (registers, bytes) => format!("{registers} + {bytes} B"),
    };
    let schedules = generated.kernels.iter().map(|k| &k.schedule);
    Ok(Found {
        max_live: schedules.clone().map(|s| s.max_live).max().unwrap_or(0),
        atomic: schedules.map(|s| s.atomic).max().unwrap_or(0),
        text,
        spilled: most.1,
        seconds,
    })
}
