//! `warpwright-corpus`: builds the PTX corpus and checks the front end on it; the same for SASS.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use warpwright_corpus::build::{Entry, Index, build};
use warpwright_corpus::plan::{Sources, plan};
use warpwright_corpus::producers::{self, Kind};
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
        /// Only these producers (nvcc-13.5, nvcc-13.0, clang, triton); all by default.
        #[arg(long = "producer")]
        producers: Vec<Kind>,
        /// The small corpus: one architecture, fewer sources.
        #[arg(long)]
        sample: bool,
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
        /// Also write the table into this page, between its two marks.
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
            toolkits,
            install,
        } => {
            let kinds = if producers.is_empty() {
                producers::all()
            } else {
                producers
            };
            run_build(
                dir,
                &kinds,
                sample,
                &producers::Options { toolkits, install },
            )
        }
        Command::Check { dir, summary } => run_check(dir, summary),
        Command::Sass {
            dir,
            check_only,
            toolkits,
            summary,
        } => run_sass(dir, check_only, toolkits, summary),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(4)
    })
}

fn run_build(
    dir: PathBuf,
    kinds: &[Kind],
    sample: bool,
    options: &producers::Options,
) -> Result<ExitCode, Error> {
    let mut index = Index {
        sample,
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
    let jobs = plan(&present, &Sources::of_repository(), sample)?;
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

fn run_sass(
    dir: PathBuf,
    check_only: bool,
    toolkits: Vec<PathBuf>,
    summary: Option<PathBuf>,
) -> Result<ExitCode, Error> {
    let mut good = true;
    if !check_only {
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
        let failed = sass::assemble(&dir, &present)?;
        eprintln!("{} compilations failed", failed.len());
        good = failed.is_empty();
    }
    let tallies = sass::check::check_dir(&dir)?;
    let table = sass::check::table(&tallies);
    print!("{table}");
    if let Some(path) = summary {
        let told = |source| Error::Io {
            path: path.clone(),
            source,
        };
        let page = std::fs::read_to_string(&path).map_err(told)?;
        let page = sass::check::in_page(&page, &table).ok_or(Error::Page(path.clone()))?;
        std::fs::write(&path, page).map_err(told)?;
    }
    good &= tallies.values().all(|t| t.failures.is_empty());
    Ok(ExitCode::from(u8::from(!good)))
}
