//! `warpwright-fuzz`: long fuzzing runs, and the emulator against hardware.

use clap::{Parser, Subcommand};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use warpwright_fuzz::controls::Controls;
use warpwright_fuzz::machine_code::{self, Assembler};
use warpwright_fuzz::totals::{Failed, Totals};
use warpwright_fuzz::{
    attack, case, constants, controls, demotion, forms, hardware, orders, passes, precision, ptxas,
    shapes, suite,
};
use warpwright_pass::options::Argument;
use warpwright_pass::passes::Again;
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
    /// Check kernels on this machine; failures are shrunk and written to OUT
    Run(Campaign),
    /// Put kernels through every register pass: proved, and the same in the emulator
    Passes {
        #[command(flatten)]
        campaign: Campaign,
        /// Write the counts to this file
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// This ptxas (or the one in this folder) makes machine code of the kernels, which goes through every
        /// pass over machine code
        #[arg(long, value_name = "PATH")]
        ptxas: Option<PathBuf>,
        /// Of so many kernels one is assembled
        #[arg(long, value_name = "N", default_value_t = 1, requires = "ptxas")]
        every: u64,
    },
    /// Add up files of counts, parts of one run
    Merge {
        /// Files that `passes --json` wrote
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The sum
        #[arg(short, long)]
        output: PathBuf,
    },
    /// Write the kernels that run every form of the emulator on a device (`bench/forms.py` runs them)
    Forms {
        /// The folder
        folder: PathBuf,
        /// Do not write: list what differs in the results that a device gave for this folder
        #[arg(long, value_name = "FOLDER")]
        compare: Option<PathBuf>,
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
    /// Put every example through every pass with several goals, and say what the checker leaves undecided, by reason
    Proofs {
        /// The folder of the examples
        #[arg(long, default_value = "examples")]
        examples: PathBuf,
        /// Only these
        #[arg(long = "example", value_name = "NAME")]
        names: Vec<String>,
        /// The result file
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Demote every example's default build to each step of the occupancy staircase, and say which are reached
    Demotion {
        /// The folder of the examples
        #[arg(long, default_value = "examples")]
        examples: PathBuf,
        /// Only these
        #[arg(long = "example", value_name = "NAME")]
        names: Vec<String>,
        /// So many steps of each at most
        #[arg(long, default_value_t = usize::MAX)]
        steps: usize,
        /// What is computed again: off, on, or all
        #[arg(long, default_value = "on", value_parser = again)]
        again: Again,
        /// Write the builds to this folder
        #[arg(long, value_name = "FOLDER")]
        keep: Option<PathBuf>,
        /// The result file
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Print the kernel and launch of a seed
    Show {
        /// The seed
        seed: u64,
        /// As `passes` assembles a kernel of this plan
        #[arg(long, value_name = "PLAN")]
        plan: Option<case::Plan>,
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
    /// Put machine code into other orders: right ones, which must be proved, and mistakes of every class, which must not
    Orders {
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
        /// Stop when so many mistakes of every class are planted, and plant no more of a class
        #[arg(long, default_value_t = u64::MAX)]
        each: u64,
        /// The result file
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Plant one wrong edit at a time in machine code that is proved: none may be proved
    Attack {
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
        /// What this tool makes of the machine code, instead of all ways of ptxas
        #[arg(long, conflicts_with = "built")]
        edits: bool,
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

/// Which kernels, and how fast.
#[derive(clap::Args)]
struct Campaign {
    /// Seeds A to B, without B
    #[arg(long, value_name = "A..B", default_value = "0..10000", value_parser = seeds)]
    seeds: (u64, u64),
    /// Which kernels the seeds stand for
    #[arg(long, value_enum, default_value_t)]
    plan: case::Plan,
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Begin no further kernels after so many seconds
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Folder for failing cases
    #[arg(long, default_value = "fuzz-failures")]
    out: PathBuf,
}

fn again(text: &str) -> Result<Again, String> {
    Again::parse(text).ok_or_else(Again::wanted)
}

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let parsed = || {
        let (from, to) = text.split_once("..")?;
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    let range = parsed().filter(|(from, to)| from < to);
    range.ok_or_else(|| "two numbers A..B are wanted, the second one larger".to_owned())
}

/// Of so many seeds one gives a kernel in another shape, too.
const RESHAPED: u64 = 4;

/// Kernels that are begun together, for each thread: the clock is looked at in between.
const CHUNK: u64 = 32;

impl Campaign {
    /// Gives every seed to `check`, in parallel; those that were done are a range from the first one on.
    fn run(&self, check: impl Fn(u64) -> Result<(), String> + Sync) -> Result<(u64, u64), String> {
        self.run_noting(check, |_| Ok(()))
    }

    /// The same; in between it tells which were done so far.
    fn run_noting(
        &self,
        check: impl Fn(u64) -> Result<(), String> + Sync,
        note: impl Fn((u64, u64)) -> Result<(), String>,
    ) -> Result<(u64, u64), String> {
        let threads = self.jobs.unwrap_or(0);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| e.to_string())?;
        let chunk = CHUNK * pool.current_num_threads() as u64;
        let start = Instant::now();
        let (from, to) = self.seeds;
        let mut done = from;
        let is_late = || (self.seconds).is_some_and(|most| start.elapsed().as_secs() >= most);
        while done < to && !is_late() {
            let end = to.min(done + chunk);
            pool.install(|| (done..end).into_par_iter().try_for_each(&check))?;
            done = end;
            note((from, done))?;
            let seconds = start.elapsed().as_secs_f64();
            eprintln!("{} kernels in {seconds:.0} seconds", done - from);
        }
        Ok((from, done))
    }
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
        Command::Run(campaign) => run(&campaign),
        Command::Passes {
            campaign,
            json,
            ptxas,
            every,
        } => {
            let assembler = ptxas.map(|path| Assembler::new(&path)).transpose();
            assembler.map_err(|e| e.to_string()).and_then(|assembler| {
                let assembler = assembler.map(|assembler| (assembler, every.max(1)));
                let json = json.as_deref();
                let totals = through_passes(&campaign, assembler.as_ref(), json)?;
                finish(&totals)
            })
        }
        Command::Merge { files, output } => merge(&files).and_then(|totals| {
            write(&totals, &output)?;
            finish(&totals)
        }),
        Command::Precision { from, count } => {
            print_precision(from, count);
            Ok(true)
        }
        Command::Forms { folder, compare } => match compare {
            Some(result) => compare_forms(&folder, &result),
            None => prepare_forms(&folder),
        },
        Command::Constants { from, count } => against_ptxas(from, count),
        Command::Proofs {
            examples,
            names,
            output,
        } => proofs(&examples, &names, output.as_deref()),
        Command::Demotion {
            examples,
            names,
            steps,
            again,
            keep,
            output,
        } => {
            let keep = keep.as_deref();
            let plan = demotion::Plan { steps, again, keep };
            demoted((&examples, &names), plan, output.as_deref())
        }
        Command::Show { seed, plan } => {
            let program = plan.map_or_else(
                || case::program(seed, false),
                |plan| machine_code::program(plan, seed),
            );
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
            edits,
            output,
        } => under_pressure(
            &ptxas::Plan {
                from,
                count,
                seconds,
                jobs,
                workers,
                built,
                edits,
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
        Command::Orders {
            from,
            count,
            seconds,
            jobs,
            each,
            output,
        } => reordered(
            controls::Plan {
                from,
                count,
                seconds,
                jobs,
            },
            each,
            output.as_deref(),
        ),
        Command::Attack {
            from,
            count,
            seconds,
            jobs,
            output,
        } => attacked(
            controls::Plan {
                from,
                count,
                seconds,
                jobs,
            },
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

fn run(campaign: &Campaign) -> Result<bool, String> {
    let failed = AtomicUsize::new(0);
    let (from, to) = campaign.run(|seed| {
        let program = match campaign.plan {
            case::Plan::Sizes => case::program(seed, seed % 5 == 4),
            plan => plan.program(seed),
        };
        let Err(failure) = case::check(&program) else {
            return Ok(());
        };
        failed.fetch_add(1, Ordering::Relaxed);
        eprintln!("seed {seed}: {failure}");
        let text = case::report(&program, &failure);
        save(&campaign.out, &format!("seed-{seed}"), &text)
    })?;
    let failed = failed.into_inner();
    println!("{} kernels, {failed} failures", to - from);
    Ok(failed == 0)
}

fn through_passes(
    campaign: &Campaign,
    assembler: Option<&(Assembler, u64)>,
    json: Option<&Path>,
) -> Result<Totals, String> {
    let plan = campaign.plan;
    let start = Instant::now();
    let threads = campaign.jobs.unwrap_or_else(rayon::current_num_threads);
    let version = assembler.map(|(assembler, _)| assembler.version());
    let version = version.transpose().map_err(|e| e.to_string())?;
    let sum = Mutex::new(Totals {
        assembled_by: version,
        ..Totals::default()
    });
    let check = |seed| {
        let mut totals = Totals::default();
        let fail = |totals: &mut Totals, (name, run, failure, text): (&str, _, _, String)| {
            eprintln!("seed {seed}, {run}: {failure}");
            totals.failures.push(Failed { seed, run, failure });
            save(&campaign.out, &format!("{name}-{seed}"), &text)
        };
        if let Err(error) = passes::check(plan, seed, &mut totals) {
            let (run, failure) = *error;
            let text = passes::report(plan, &plan.program(seed), &run, &failure);
            let what = (
                run.passes[0].0,
                format!("{run:?}"),
                failure.to_string(),
                text,
            );
            fail(&mut totals, what)?;
        }
        let mut reshaped = shapes::Totals::default();
        if seed.is_multiple_of(RESHAPED)
            && let Err(error) = shapes::check(seed, &mut reshaped)
        {
            let (kernel, failure) = *error;
            let text = shapes::report(&kernel, &failure);
            let run = shapes::RESHAPE;
            fail(
                &mut totals,
                (run, run.to_owned(), failure.to_string(), text),
            )?;
        }
        totals.pass(shapes::RESHAPE).add(reshaped.counts);
        let chosen = assembler.filter(|(_, every)| seed.is_multiple_of(*every));
        if let Some((assembler, _)) = chosen
            && let Err(error) = machine_code::check(plan, seed, assembler, &mut totals)
        {
            let (run, failure) = *error;
            let program = machine_code::program(plan, seed);
            let text = machine_code::report(&program, assembler, &run, &failure);
            let what = ("machine-code", run.to_string(), failure.to_string(), text);
            fail(&mut totals, what)?;
        }
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.merge(totals).map_err(|e| e.to_string())
    };
    // Whoever ends the run loses little.
    let note = |seeds| {
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.seeds = vec![seeds];
        sum.thread_seconds = start.elapsed().as_secs() * threads as u64;
        json.map_or(Ok(()), |file| write(&sum, file))
    };
    campaign.run_noting(check, note)?;
    Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn merge(files: &[PathBuf]) -> Result<Totals, String> {
    let mut sum = Totals::default();
    for file in files {
        let named = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
        let text = std::fs::read_to_string(file).map_err(|e| named(&e))?;
        let totals: Totals = serde_json::from_str(&text).map_err(|e| named(&e))?;
        sum.merge(totals).map_err(|e| named(&e))?;
    }
    Ok(sum)
}

/// Writes the counts; never half of them.
fn write(totals: &Totals, file: &Path) -> Result<(), String> {
    let text = serde_json::to_string_pretty(totals).map_err(|e| e.to_string())?;
    let new = file.with_extension("new");
    let written = std::fs::write(&new, text + "\n");
    let written = written.and_then(|()| std::fs::rename(&new, file));
    written.map_err(|e| format!("{}: {e}", file.display()))
}

/// Prints the counts.
fn finish(totals: &Totals) -> Result<bool, String> {
    println!("{totals}");
    let failing = totals.failing_controls();
    for class in &failing {
        println!("not caught: {class}");
    }
    Ok(totals.failures.is_empty() && failing.is_empty())
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

fn proofs(examples: &Path, names: &[String], output: Option<&Path>) -> Result<bool, String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    let report = suite::run(examples, names, &toolkit)?;
    if let Some(file) = output {
        let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
        let written = std::fs::write(file, text + "\n");
        written.map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let kernels = report.kernels.len();
    println!("{kernels} kernels, {} unusable", report.unusable.len());
    for (pass, counts) in &report.passes {
        println!("{}", counts.line(pass));
    }
    for [kernel, pass, why] in &report.open {
        println!("{kernel}: {pass}: {why}");
    }
    Ok(true)
}

fn demoted(
    (examples, names): (&Path, &[String]),
    plan: demotion::Plan<'_>,
    output: Option<&Path>,
) -> Result<bool, String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    let report = demotion::run(examples, names, plan, &toolkit)?;
    if let Some(file) = output {
        let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
        let written = std::fs::write(file, text + "\n");
        written.map_err(|e| format!("{}: {e}", file.display()))?;
    }
    print!("{report}");
    Ok(report.unusable.is_empty())
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
    let wanted = Controls::in_ptx().filter(|_| report.seeds.1 >= 100);
    let failing = report.controls.failing(wanted);
    for name in &failing {
        println!("not caught: {name}");
    }
    Ok(report.failures.is_empty() && failing.is_empty())
}

fn reordered(plan: controls::Plan, each: u64, output: Option<&Path>) -> Result<bool, String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    let assembler = toolkit.ptxas().map_err(|e| e.to_string())?;
    let report = orders::run(plan, each, &assembler);
    if let Some(file) = output {
        let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
        let written = std::fs::write(file, text + "\n");
        written.map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let (all, moved) = report.instructions;
    println!(
        "{} kernels: {} orders, {} proved; {moved} of {all} instructions moved",
        report.seeds.1, report.scheduled, report.proved
    );
    for (what, reasons) in [
        ("refused", &report.refused),
        ("undecided", &report.undecided),
    ] {
        for (reason, count) in reasons {
            println!("{what} {count}: {reason}");
        }
    }
    for (name, class) in &report.classes {
        println!("{name}: {} planted, {} caught", class.planted, class.caught);
    }
    for (seed, why) in report.failures.iter().take(5) {
        println!("seed {seed}: {why}");
    }
    // A handful of kernels need not have a place for every class.
    let missing = report.missing();
    for name in missing.iter().filter(|_| report.seeds.1 >= 100) {
        println!("never planted: {name}");
    }
    Ok(report.failures.is_empty() && (missing.is_empty() || report.seeds.1 < 100))
}

fn attacked(plan: controls::Plan, output: Option<&Path>) -> Result<bool, String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    let assembler = Assembler::of(toolkit).map_err(|e| e.to_string())?;
    let report = attack::run(plan, &assembler);
    if let Some(file) = output {
        let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
        let written = std::fs::write(file, text + "\n");
        written.map_err(|e| format!("{}: {e}", file.display()))?;
    }
    println!("{} kernels: {:?}", report.seeds.1, report.versions);
    for (name, class) in &report.classes {
        println!("{name}: {} planted, {} caught", class.planted, class.caught);
    }
    for (seed, why) in &report.failures {
        println!("seed {seed}: {why}");
    }
    let missing = report.missing();
    for name in missing.iter().filter(|_| report.seeds.1 >= 100) {
        println!("never planted: {name}");
    }
    Ok(report.failures.is_empty() && (missing.is_empty() || report.seeds.1 < 100))
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

fn prepare_forms(folder: &Path) -> Result<bool, String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    let ptxas = toolkit.ptxas().map_err(|e| e.to_string())?;
    let manifest = forms::prepare(ptxas, folder)?;
    let forms: usize = manifest.kernels.iter().map(|k| k.forms.len()).sum();
    println!(
        "{forms} instructions in {} kernels; {} lines of the table are not run, {} instructions fault",
        manifest.kernels.len(),
        manifest.excluded.len(),
        manifest.faults.len()
    );
    Ok(true)
}

fn compare_forms(folder: &Path, result: &Path) -> Result<bool, String> {
    let forms::Comparison {
        gpu,
        failed,
        differences,
    } = forms::compare(folder, result)?;
    for (kernel, why) in &failed {
        println!("{kernel}: {why}");
    }
    for d in &differences {
        let how = if d.approximate { "approximate: " } else { "" };
        println!(
            "{how}{} ({} words, by {} at most)",
            d.text, d.words, d.distance
        );
        d.examples
            .iter()
            .for_each(|example| println!("    {example}"));
    }
    let exact = differences.iter().filter(|d| !d.approximate).count();
    println!(
        "{gpu}: {exact} forms differ, {} approximate ones",
        differences.len() - exact
    );
    Ok(exact == 0 && failed.is_empty())
}
