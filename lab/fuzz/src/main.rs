//! `warpwright-fuzz`: long fuzzing runs, and the emulator against hardware.

use clap::{Parser, Subcommand};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use warpwright_fuzz::{case, constants, controls, hardware, passes, precision, ptxas};
use warpwright_toolkit::{FindOptions, Toolkit};

/// Generated kernels through the front end, the emulator, and against hardware.
#[derive(Parser)]
#[command(name = "warpwright-fuzz", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check seeds FROM to FROM+COUNT on this machine; failures are shrunk and written to OUT
    Run {
        /// First seed
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// How many
        #[arg(long, default_value_t = 10_000)]
        count: u64,
        /// Folder for failing cases
        #[arg(long, default_value = "fuzz-failures")]
        out: PathBuf,
    },
    /// Put seeds FROM to FROM+COUNT through every register pass: proved, and the same in the emulator
    Passes {
        /// First seed
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// How many
        #[arg(long, default_value_t = 10_000)]
        count: u64,
        /// Folder for failing cases
        #[arg(long, default_value = "fuzz-failures")]
        out: PathBuf,
    },
    /// Hold constant expressions and immediates against ptxas, 1,000 for each seed
    Constants {
        /// First seed
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// How many
        #[arg(long, default_value_t = 100)]
        count: u64,
    },
    /// Count the right rewrites of generated kernels that the checker leaves undecided, by reason
    Precision {
        /// First seed
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// How many
        #[arg(long, default_value_t = 100)]
        count: u64,
    },
    /// Print the kernel and launch of a seed
    Show {
        /// The seed
        seed: u64,
    },
    /// Shrink a seed's kernel while the emulator and the local GPU disagree on it
    Shrink {
        /// The seed
        seed: u64,
    },
    /// Plant mistakes of every class: none may be proved, each class must be caught
    Controls {
        /// First seed
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// How many at most
        #[arg(long, default_value_t = 1000)]
        count: u64,
        /// No kernel is begun after this many seconds
        #[arg(long, default_value_t = 3600)]
        seconds: u64,
        /// Threads
        #[arg(long, default_value_t = 2)]
        jobs: usize,
        /// In machine code, too
        #[arg(long)]
        machine_code: bool,
        /// The result file
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Build kernels in the ways of `ptxas`, as SEED-WAY.cubin in a folder, for `ptxas --built`
    PtxasBuild {
        /// First seed
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// How many
        #[arg(long, default_value_t = 100)]
        count: u64,
        /// Only these ways
        #[arg(long = "way")]
        ways: Vec<String>,
        /// The architecture
        #[arg(long, default_value = "sm_90")]
        arch: String,
        /// The folder
        #[arg(short, long)]
        output: PathBuf,
    },
    /// Build kernels with ptxas in many ways (levels, register limits, spilling to shared memory), and compare
    /// them on the local GPU with the emulator
    Ptxas {
        /// First seed
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// How many at most
        #[arg(long, default_value_t = 100_000)]
        count: u64,
        /// No kernel is begun after this many seconds
        #[arg(long, default_value_t = 120)]
        seconds: u64,
        /// Builds at a time
        #[arg(long, default_value_t = 8)]
        jobs: usize,
        /// Processes that use the GPU
        #[arg(long, default_value_t = 4)]
        workers: usize,
        /// Take what `ptxas-build` wrote to this folder
        #[arg(long)]
        built: Option<PathBuf>,
        /// The result file
        #[arg(short, long)]
        output: PathBuf,
    },
    /// Shrink a seed's kernel while one way of `ptxas` gets it wrong on the local GPU
    PtxasShrink {
        /// The seed
        seed: u64,
        /// The way, as `ptxas` reports it
        way: String,
        /// Kernels to try at most
        #[arg(long, default_value_t = 300)]
        budget: usize,
    },
    /// Compare the emulator with the local GPU, bit for bit
    Hardware {
        /// First seed
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// How many
        #[arg(long, default_value_t = 500)]
        count: u64,
        /// Folder with NAME.ptx, NAME.cubin and NAME.toml of examples
        #[arg(long)]
        examples: Option<PathBuf>,
        /// The result file
        #[arg(short, long)]
        output: PathBuf,
    },
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words
        .first()
        .is_some_and(|w| w == warpwright_gpu::WORKER_ARGUMENT)
    {
        return ExitCode::from(warpwright_gpu::worker_main(&words[1..]));
    }
    let done = match Cli::parse().command {
        Command::Run { from, count, out } => run(from, count, &out),
        Command::Passes { from, count, out } => through_passes(from, count, &out),
        Command::Precision { from, count } => {
            print_precision(from, count);
            Ok(true)
        }
        Command::Constants { from, count } => against_ptxas(from, count),
        Command::Show { seed } => {
            let program = case::program(seed, false);
            println!("{}", warpwright_fuzzgen::print(&program));
            eprintln!("{}", warpwright_fuzzgen::launch_toml(&program));
            Ok(true)
        }
        Command::Shrink { seed } => hardware::shrink(seed, 600).map(|found| {
            println!("{}", found.as_deref().unwrap_or("they agree"));
            found.is_none()
        }),
        Command::Ptxas {
            from,
            count,
            seconds,
            jobs,
            workers,
            built,
            output,
        } => under_pressure(
            &ptxas::Plan {
                from,
                count,
                seconds,
                jobs,
                workers,
                built,
            },
            &output,
        ),
        Command::Controls {
            from,
            count,
            seconds,
            jobs,
            machine_code,
            output,
        } => planted(
            controls::Plan {
                from,
                count,
                seconds,
                jobs,
            },
            machine_code,
            output.as_deref(),
        ),
        Command::PtxasBuild {
            from,
            count,
            ways,
            arch,
            output,
        } => ptxas::build_all(from..from + count, &ways, &arch, &output).map(|built| {
            println!("{built} files");
            true
        }),
        Command::PtxasShrink { seed, way, budget } => {
            ptxas::shrink(seed, &way, budget).map(|found| {
                println!("{}", found.as_deref().unwrap_or("they agree"));
                found.is_none()
            })
        }
        Command::Hardware {
            from,
            count,
            examples,
            output,
        } => against_hardware(from, count, examples, &output),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(3)
        }
    }
}

fn run(from: u64, count: u64, out: &Path) -> Result<bool, String> {
    let failed = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    (from..from + count).into_par_iter().try_for_each(|seed| {
        let program = case::program(seed, seed % 5 == 4);
        if let Err(failure) = case::check(&program) {
            failed.fetch_add(1, Ordering::Relaxed);
            eprintln!("seed {seed}: {failure}");
            save(
                out,
                &format!("seed-{seed}"),
                &case::report(&program, &failure),
            )?;
        }
        let n = done.fetch_add(1, Ordering::Relaxed) + 1;
        if n.is_multiple_of(1000) {
            eprintln!("{n} kernels");
        }
        Ok::<(), String>(())
    })?;
    let failed = failed.into_inner();
    println!("{count} kernels, {failed} failures");
    Ok(failed == 0)
}

fn through_passes(from: u64, count: u64, out: &Path) -> Result<bool, String> {
    let failed = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let totals = Mutex::new([passes::Changed::default(); 4]);
    (from..from + count).into_par_iter().try_for_each(|seed| {
        let mut own = [passes::Changed::default(); 4];
        if let Err(error) = passes::check(seed, &mut own) {
            let (run, failure) = *error;
            failed.fetch_add(1, Ordering::Relaxed);
            eprintln!("seed {seed}, {}: {failure}", run.pass);
            let text = passes::report(&case::program(seed, false), &run, &failure);
            save(out, &format!("{}-{seed}", run.pass), &text)?;
        }
        add(&totals, &own);
        let n = done.fetch_add(1, Ordering::Relaxed) + 1;
        if n.is_multiple_of(1000) {
            eprintln!("{n} kernels");
        }
        Ok::<(), String>(())
    })?;
    let failed = failed.into_inner();
    println!("{count} kernels, {failed} failures");
    let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (pass, total) in passes::PASSES.iter().zip(totals) {
        println!(
            "{pass}: {} of {} runs changed the kernel",
            total.changed, total.runs
        );
    }
    Ok(failed == 0)
}

fn print_precision(from: u64, count: u64) {
    let mut counts: [precision::Count; precision::KINDS.len()] = Default::default();
    for seed in from..from + count {
        precision::count(seed, &mut counts);
    }
    for ((kind, _), count) in precision::KINDS.iter().zip(&counts) {
        println!(
            "{kind}: {} kernels changed, {} proved",
            count.changed, count.proved
        );
        for (reason, times) in &count.open {
            println!("    {times} {reason}");
        }
    }
}

fn against_ptxas(from: u64, count: u64) -> Result<bool, String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    let assembler = toolkit.ptxas().map_err(|e| e.to_string())?;
    let mut sum = constants::Totals::default();
    let mut failed = 0;
    for seed in from..from + count {
        match constants::check(seed, &assembler) {
            Ok(totals) => {
                sum.initial_values += totals.initial_values;
                sum.immediates += totals.immediates;
                sum.refused += totals.refused;
            }
            Err(failure) => {
                failed += 1;
                eprintln!("seed {seed}: {failure}");
            }
        }
    }
    println!(
        "{}: {} initial values and {} immediates as the front end says, {} expressions refused by \
         both, {failed} seeds with a difference",
        assembler.tool().version().map_err(|e| e.to_string())?,
        sum.initial_values,
        sum.immediates,
        sum.refused
    );
    Ok(failed == 0)
}

fn add(totals: &Mutex<[passes::Changed; 4]>, own: &[passes::Changed; 4]) {
    let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
    for (total, own) in totals.iter_mut().zip(own) {
        total.runs += own.runs;
        total.changed += own.changed;
    }
}

/// Writes a failing case.
fn save(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let file = folder.join(format!("{name}.ptx"));
    std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))
}

fn planted(
    plan: controls::Plan,
    machine_code: bool,
    output: Option<&Path>,
) -> Result<bool, String> {
    let toolkit = Toolkit::find(&FindOptions::default());
    let toolkit = machine_code.then_some(toolkit).transpose();
    let toolkit = toolkit.map_err(|e| e.to_string())?;
    let assembler = toolkit.as_ref().map(Toolkit::ptxas).transpose();
    let assembler = assembler.map_err(|e| e.to_string())?;
    let report = controls::run(plan, assembler.as_ref());
    if let Some(file) = output {
        let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
        let written = std::fs::write(file, text + "\n");
        written.map_err(|e| format!("{}: {e}", file.display()))?;
    }
    println!(
        "{} kernels, {} failures; {} of {} proved to be themselves",
        report.seeds.1,
        report.failures.len(),
        report.controls.idle_proved,
        report.controls.idle
    );
    for (name, class) in &report.controls.classes {
        println!(
            "{name}: {} planted, {} mistakes, {} caught",
            class.planted, class.mistakes, class.caught
        );
    }
    for (seed, why) in report.failures.iter().take(3) {
        let why: Vec<&str> = why.lines().take(3).collect();
        println!("seed {seed}: {}", why.join(" "));
    }
    // A handful of kernels need not have a place for every class.
    let failing = report.controls.failing(report.seeds.1 >= 100);
    for name in &failing {
        println!("not caught: {name}");
    }
    Ok(report.failures.is_empty() && failing.is_empty())
}

fn under_pressure(plan: &ptxas::Plan, output: &Path) -> Result<bool, String> {
    let report = ptxas::run(plan)?;
    let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
    std::fs::write(output, text + "\n").map_err(|e| format!("{}: {e}", output.display()))?;
    println!(
        "ptxas {} on {}: {} kernels, {} unusable, {} that some way gets wrong",
        report.ptxas,
        report.gpu,
        report.kernels,
        report.unusable,
        report.findings.len()
    );
    for (way, count) in &report.ways {
        println!(
            "{way}: {} built, {} with spills, {} identical, {} different, {} refused",
            count.built,
            count.spilled,
            count.identical,
            count.different,
            count.refused.values().sum::<u64>()
        );
    }
    Ok(report.findings.is_empty())
}

fn against_hardware(
    from: u64,
    count: u64,
    examples: Option<PathBuf>,
    output: &Path,
) -> Result<bool, String> {
    let report = hardware::run(from..from + count, examples.as_deref(), &mut |c| {
        if c.agreement != hardware::Agreement::Identical {
            eprintln!("{}: {:?}", c.name, c.agreement);
        }
    })?;
    let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
    std::fs::write(output, text + "\n").map_err(|e| format!("{}: {e}", output.display()))?;
    println!(
        "{} compared on {}: {} identical, {} approximate, {} disagree",
        report.compared, report.gpu, report.identical, report.approximate, report.disagreeing
    );
    Ok(report.disagreeing == 0)
}
