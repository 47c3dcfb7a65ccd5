//! `warpwright-sassmine`: derives the tables of SASS facts under `crates/sass/tables`.

mod anew;
mod apart;
mod bench;
mod code;
mod hazards;
mod isa;
mod orders;
mod rare;
mod roles;
mod suspects;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use warpwright_toolkit::{FindOptions, ToolError, Toolkit};

/// Derives the tables of SASS facts from what NVIDIA's tools say about real and perturbed code.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Derive which registers each instruction reads and writes; see docs/sass.md.
    Roles(roles::Options),
    /// Derive the instruction tables (opcodes, fields, modifiers); see docs/sass.md.
    Tables(isa::Options),
    /// How the instruction tables do on a corpus, as Markdown.
    Agreement(isa::report::Options),
    /// List what the tables have from few sightings.
    Rare {
        /// Where the list goes.
        #[arg(short, long)]
        output: PathBuf,
    },
    /// Derive the distances between dependent instructions, and what units keep in order; see
    /// docs/sass.md.
    Hazards {
        /// Folders or files: cubins of one architecture, named for their sources.
        #[arg(required = true)]
        corpus: Vec<PathBuf>,
        #[command(flatten)]
        outputs: hazards::Outputs,
    },
    /// What the hazard checker says of cubins, as they are or with control fields of ours.
    Suspects(suspects::Options),
    /// Write every function again, in ptxas's order and in ours: no hazard, no panic, and how fast that is.
    Orders(orders::Options),
    /// Write a cubin with control fields of ours, to be measured; see bench/control-fields.sh.
    Anew(anew::Options),
    /// Write a cubin with stricter control fields, everywhere or in a part; see bench/apart.py.
    Apart(apart::Options),
}

/// Why mining failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tool is missing or failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// No toolkit.
    #[error(transparent)]
    NotFound(#[from] warpwright_toolkit::NotFound),
    /// The corpus has nothing for the architecture.
    #[error("the corpus has no code for sm_{0}")]
    Empty(u32),
    /// A file could not be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    /// The corpus does not pass.
    #[error("{0}")]
    Differs(String),
    /// A file is not what it should be.
    #[error("{0}: {1}")]
    Input(PathBuf, String),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(1)
        }
    }
}

fn run(command: Command) -> Result<String, String> {
    match command {
        Command::Roles(options) => {
            let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
            roles::run(&toolkit, &options).map_err(|e| e.to_string())
        }
        Command::Tables(options) => isa::run(&options).map_err(|e| e.to_string()),
        Command::Agreement(options) => isa::report::run(&options).map_err(|e| e.to_string()),
        Command::Rare { output } => {
            let written = std::fs::write(&output, rare::list());
            written.map_err(|error| Error::File(output, error).to_string())?;
            Ok("written".to_owned())
        }
        Command::Orders(options) => orders::run(&options).map_err(|e| e.to_string()),
        Command::Anew(options) => anew::run(&options).map_err(|e| e.to_string()),
        Command::Apart(options) => apart::run(&options).map_err(|e| e.to_string()),
        Command::Suspects(options) => suspects::run(&options).map_err(|e| e.to_string()),
        Command::Hazards { corpus, outputs } => {
            hazards::run(&corpus, &outputs).map_err(|e| e.to_string())
        }
    }
}
