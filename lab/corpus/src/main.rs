//! `warpwright-corpus`: builds the PTX corpus and checks the front end on it; the same for SASS.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use warpwright_corpus::build::{Entry, Index, build};
use warpwright_corpus::plan::{Extent, Sources, plan};
use warpwright_corpus::producers::{self, Kind, Producer, Tool};
use warpwright_corpus::sass::check::{Oracle, check_dir};
use warpwright_corpus::sass::known::Known;
use warpwright_corpus::sass::results::in_page;
use warpwright_corpus::{Error, check, sass, table};

/// A large corpus of PTX from many producers, and the front end held against it.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile the corpus into a folder; what is up to date stays.
    Build {
        /// The folder.
        dir: PathBuf,
        /// Only these producers (nvcc-13.5, nvcc-13.0, clang, triton, fuzzgen); all by default.
        #[arg(long = "producer")]
        producers: Vec<Kind>,
        /// The small corpus: one architecture, fewer sources.
        #[arg(long)]
        sample: bool,
        /// Large sources for their lowest architecture alone: enough for `sass`.
        #[arg(long, conflicts_with = "sample")]
        lean: bool,
        /// A CUDA toolkit to use, besides those found by themselves; may be given twice.
        #[arg(long = "toolkit")]
        toolkits: Vec<PathBuf>,
        /// Fetch producers that are missing: CUDA toolkits, Triton.
        #[arg(long)]
        install: bool,
    },
    /// Check every .ptx file below a folder and print a table.
    Check {
        /// The folder.
        dir: PathBuf,
        /// Also write the table, with an introduction, to this file.
        #[arg(long)]
        summary: Option<PathBuf>,
    },
    /// Assemble the corpus' PTX of nvcc for every architecture, and check the cubins.
    Sass {
        /// The folder that `build` has filled.
        dir: PathBuf,
        /// Only check the cubins that are below the folder.
        #[arg(long)]
        check_only: bool,
        /// A CUDA toolkit to use, besides those found by themselves; may be given twice.
        #[arg(long = "toolkit")]
        toolkits: Vec<PathBuf>,
        /// Also compare liveness with nvdisasm's; it takes most of the time.
        #[arg(long)]
        liveness: bool,
        /// nvdisasm's time for one cubin; what takes longer is left out, by name.
        #[arg(long, value_name = "SECONDS", default_value_t = 240)]
        limit: u64,
        /// Also write the figures to this file.
        #[arg(long)]
        result: Option<PathBuf>,
        /// Also write the tables into this page, between its two marks.
        #[arg(long)]
        summary: Option<PathBuf>,
    },
}

/// Exit codes as of `warpwright`: 1 something is wrong with the corpus or the front end, 3 a producer is
/// missing, 4 the corpus could not be read or written.
fn main() -> ExitCode {
    // Compilers run in process groups of their own, which the terminal does not interrupt.
    let handler = || {
        warpwright_toolkit::shut_down();
        std::process::exit(130)
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        eprintln!("warning: an interruption will leave compilers running: {error}");
    }
    let done = match Cli::parse().command {
        Command::Build {
            dir,
            producers,
            sample,
            lean,
            toolkits,
            install,
        } => {
            let extent = match (sample, lean) {
                (true, _) => Extent::Sample,
                (false, true) => Extent::Lean,
                (false, false) => Extent::Full,
            };
            let kinds = if producers.is_empty() {
                producers::all()
            } else {
                producers
            };
            run_build(
                dir,
                &kinds,
                extent,
                &producers::Options { toolkits, install },
            )
        }
        Command::Check { dir, summary } => run_check(dir, summary),
        Command::Sass {
            dir,
            check_only,
            toolkits,
            liveness,
            limit,
            result,
            summary,
        } => {
            let liveness = liveness.then(|| Duration::from_secs(limit));
            let present = toolkits_of(toolkits);
            let outputs = (result.as_deref(), summary.as_deref());
            run_sass(&dir, check_only, liveness, &present, outputs)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(4)
    })
}

fn run_build(
    dir: PathBuf,
    kinds: &[Kind],
    extent: Extent,
    options: &producers::Options,
) -> Result<ExitCode, Error> {
    let mut index = Index {
        sample: extent == Extent::Sample,
        ..Index::default()
    };
    let mut present = Vec::new();
    for kind in kinds {
        match producers::find(kind, options) {
            Ok(producer) => {
                eprintln!("{kind}: version {}", producer.version);
                let text = producer.version.clone();
                index.producers.push(Entry {
                    name: kind.to_string(),
                    text,
                });
                present.push(producer);
            }
            Err(text) => {
                eprintln!("MISSING {kind}: {text}");
                index.missing.push(Entry {
                    name: kind.to_string(),
                    text,
                });
            }
        }
    }
    let jobs = plan(&present, &Sources::of_repository(), extent)?;
    eprintln!("{} compilations", jobs.len());
    index.failed = build(&dir, &present, &jobs)?;
    index.save(&dir)?;
    Ok(match (index.failed.is_empty(), index.missing.is_empty()) {
        (false, _) => ExitCode::from(1),
        (true, false) => ExitCode::from(3),
        (true, true) => ExitCode::SUCCESS,
    })
}

fn run_check(dir: PathBuf, summary: Option<PathBuf>) -> Result<ExitCode, Error> {
    let index = Index::load(&dir)?;
    let tallies = check::check_dir(&dir)?;
    print!("{}", table::table(&tallies, index.as_ref()));
    if let Some(path) = summary {
        let page = table::page(&tallies, index.as_ref());
        std::fs::write(&path, page).map_err(|source| Error::Io { path, source })?;
    }
    let good = tallies.values().all(check::Tally::is_good);
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// The CUDA toolkits that are there.
fn toolkits_of(toolkits: Vec<PathBuf>) -> Vec<Producer> {
    let options = producers::Options {
        toolkits,
        install: false,
    };
    let mut present = Vec::new();
    for kind in producers::all() {
        match (&kind, producers::find(&kind, &options)) {
            (Kind::Nvcc(_), Ok(producer)) => present.push(producer),
            (Kind::Nvcc(_), Err(text)) => eprintln!("MISSING {kind}: {text}"),
            _ => {}
        }
    }
    present
}

fn run_sass(
    dir: &Path,
    check_only: bool,
    liveness: Option<Duration>,
    present: &[Producer],
    (result, summary): (Option<&Path>, Option<&Path>),
) -> Result<ExitCode, Error> {
    let mut refused = Vec::new();
    if !check_only {
        for Entry { name, text } in sass::assemble(dir, present)? {
            let name = Path::new(&name)
                .strip_prefix(dir)
                .unwrap_or(Path::new(&name))
                .to_owned();
            refused.push(format!("{}: {text}", name.display()));
        }
    }
    let known = Known::load()?;
    // The newest nvdisasm reads the cubins of older toolkits too.
    let mut nvdisasms = present.iter().filter_map(|producer| match &producer.tool {
        Tool::Nvcc(toolkit) => toolkit.nvdisasm().ok(),
        _ => None,
    });
    let oracle = liveness.and_then(|limit| {
        Some(Oracle {
            nvdisasm: nvdisasms.next()?,
            known: &known,
            limit,
        })
    });
    if liveness.is_some() && oracle.is_none() {
        eprintln!("MISSING nvdisasm");
        return Ok(ExitCode::from(3));
    }
    let mut results = check_dir(&dir.join("sass"), oracle)?;
    results.refused = refused;
    let tables = results.tables();
    print!("{tables}");
    if let Some(path) = result {
        results.save(path)?;
    }
    if let Some(path) = summary {
        let told = |source| Error::Io {
            path: path.to_path_buf(),
            source,
        };
        let page = std::fs::read_to_string(path).map_err(told)?;
        let page = in_page(&page, &tables).ok_or(Error::Page(path.to_path_buf()))?;
        std::fs::write(path, page).map_err(told)?;
    }
    Ok(ExitCode::from(u8::from(!results.is_good())))
}
