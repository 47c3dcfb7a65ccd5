//! Tries the measuring side on a machine with a GPU, without the rest of Warpwright.
//!
//! ```text
//! gpu_smoke devices
//! gpu_smoke selftest [--device N] [--out FILE]
//! gpu_smoke measure LAUNCH.toml BASELINE.cubin [NAME=]VARIANT.cubin...
//!           [--size NAME] [--set PARAM=VALUE] [--seconds S] [--exhaustive] [--in-process]
//!           [--device N] [--out FILE]
//! ```
//!
//! Images may be cubins or PTX. JSON goes to FILE or standard output, news to standard error.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde::Serialize;
use warpwright_gpu::{
    Backend, Budget, Device, Fault, Image, Process, Progress, Runner, SelftestSize, Variant,
    WORKER_ARGUMENT, WorkerCommand, devices, measure, prepare, selftest, worker_main,
};
use warpwright_launch::{ContentsError, LaunchFile};

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
    /// The GPU's ordinal.
    #[arg(long, default_value_t = 0, global = true)]
    device: u32,
    /// Where the JSON goes.
    #[arg(long, global = true)]
    out: Option<PathBuf>,
    /// No child process: a fault ends everything.
    #[arg(long, global = true)]
    in_process: bool,
}

#[derive(Subcommand)]
enum Command {
    /// What GPUs there are.
    Devices,
    /// Planted faults must be found.
    Selftest,
    /// Checks and races variants; the first is the baseline.
    Measure {
        launch: PathBuf,
        #[arg(required = true)]
        variants: Vec<String>,
        #[arg(long)]
        size: Option<String>,
        #[arg(long = "set")]
        set: Vec<String>,
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
        #[arg(long)]
        exhaustive: bool,
    },
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).map(String::as_str) == Some(WORKER_ARGUMENT) {
        return ExitCode::from(worker_main(&args[2..]));
    }
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.downcast_ref::<Fault>().map_or(1, Fault::exit_code))
        }
    }
}

fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    match &options.command {
        Command::Devices => {
            let found = devices()?;
            for device in &found {
                let clocks = Device::open(device.ordinal)?.clocks();
                eprintln!("{} ({}), clocks now: {clocks:?}", device.name, device.arch);
            }
            print(options, &found)?;
            Ok(true)
        }
        Command::Selftest => {
            let dir = tempfile::tempdir()?;
            let report = selftest(
                &mut *backend(options)?,
                dir.path(),
                SelftestSize::Full,
                &mut |news| tell(news),
            )?;
            for case in &report.cases {
                let mark = if case.passed { "ok  " } else { "FAIL" };
                eprintln!(
                    "{mark} {}: expected {}; {}",
                    case.id, case.expected, case.found
                );
            }
            print(options, &report)?;
            Ok(report.passed)
        }
        Command::Measure {
            launch,
            variants,
            size,
            set,
            seconds,
            exhaustive,
        } => {
            let dir = tempfile::tempdir()?;
            let job = {
                let launch = resolve(launch, size.as_deref(), set)?;
                prepare(&launch.0, dir.path(), &launch.1)?
            };
            let variants: Vec<Variant> = variants.iter().map(|text| variant(text)).collect();
            let budget = Budget {
                seconds: *seconds,
                exhaustive: *exhaustive,
                ..Budget::default()
            };
            let baseline = variants.first().map(|v| v.id.clone()).unwrap_or_default();
            let mut backend = backend(options)?;
            let mut watch = |news: &Progress<'_>| {
                tell(news);
                ControlFlow::Continue(())
            };
            let m = measure(
                &mut *backend,
                &job,
                &variants,
                &baseline,
                &budget,
                None,
                &mut watch,
            )?;
            for v in &m.variants {
                let us = |ns: f64| ns / 1000.0;
                let time = v.time_ns.map_or("not timed".into(), |t| {
                    format!(
                        "{:.2} us [{:.2}, {:.2}]",
                        us(t.median),
                        us(t.low),
                        us(t.high)
                    )
                });
                let ratio = v.ratio.map_or(String::new(), |r| {
                    format!(", ratio {:.4} [{:.4}, {:.4}]", r.median, r.low, r.high)
                });
                eprintln!("{}: {time}{ratio} {:?}; {}", v.id, v.outcome, v.verdict);
            }
            eprintln!(
                "chosen: {} ({:.4} of {baseline})",
                m.chosen,
                m.chosen_ratio()
            );
            print(options, &m)?;
            Ok(true)
        }
    }
}

fn backend(options: &Options) -> Result<Box<dyn Backend>, Fault> {
    Ok(if options.in_process {
        Box::new(Runner::new(options.device))
    } else {
        Box::new(Process::new(WorkerCommand::this_program(options.device)?))
    })
}

type Files = Box<dyn Fn(&str) -> Result<Vec<u8>, ContentsError>>;

fn resolve(
    path: &Path,
    size: Option<&str>,
    set: &[String],
) -> Result<(warpwright_launch::Launch, Files), Box<dyn Error>> {
    let file = LaunchFile::parse(&std::fs::read_to_string(path)?, &path.to_string_lossy())
        .map_err(|e| e.to_string())?;
    let first = file.sizes().next().unwrap_or_default().to_string();
    let mut overrides = Vec::new();
    for text in set {
        let (name, value) = text.split_once('=').ok_or("--set takes PARAM=VALUE")?;
        overrides.push((name.to_string(), value.parse()?));
    }
    let launch = file
        .resolve(size.unwrap_or(&first), &overrides)
        .map_err(|e| e.to_string())?;
    let folder = path.parent().unwrap_or(Path::new(".")).to_path_buf();
    let files = move |name: &str| {
        std::fs::read(folder.join(name)).map_err(|why| ContentsError::read(name, why))
    };
    Ok((launch, Box::new(files)))
}

fn variant(text: &str) -> Variant {
    let (id, path) = text.split_once('=').unwrap_or((text, text));
    Variant::new(id, Image::File(path.into()))
}

fn tell(news: &Progress<'_>) {
    match news {
        Progress::Checked {
            id,
            verdict,
            done,
            of,
        } => eprintln!("[{done}/{of}] {id}: {verdict}"),
        Progress::Excluded { id, verdict } => eprintln!("excluded {id}: {verdict}"),
        Progress::Timed {
            alive,
            best,
            ratio,
            spent,
            budget,
        } => {
            eprintln!("{spent:.1} of {budget:.1} s, {alive} in the race, best {best}: {ratio:.4}");
        }
        Progress::Checkpoint(_) => {}
    }
}

fn print(options: &Options, value: &impl Serialize) -> Result<(), Box<dyn Error>> {
    let text = serde_json::to_string_pretty(value)?;
    match &options.out {
        Some(path) => std::fs::write(path, text + "\n")?,
        None => println!("{text}"),
    }
    Ok(())
}
