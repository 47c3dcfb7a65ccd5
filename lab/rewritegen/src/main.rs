//! Random pairs of kernels against the verdicts on them.
//!
//! ```text
//! warpwright-rewritegen run --count 10000 [--seed S] [--from N] [--json OUT] [--failures DIR]
//! warpwright-rewritegen show NUMBER [--seed S]
//! warpwright-rewritegen emit FOLDER [--count 200] [--seed S]
//! ```

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use warpwright_rewritegen::check::{Counters, Pair, run};
use warpwright_rewritegen::emit::{EmitError, emit};

#[derive(Parser)]
#[command(
    about = "Random computations under random schedules, right ones and broken ones, against the verdicts on them"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Pairs at three sizes each
    Run {
        #[arg(long, default_value_t = 1000)]
        count: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The first number
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// The counters
        #[arg(long)]
        json: Option<PathBuf>,
        /// A folder for pairs with a wrong verdict
        #[arg(long)]
        failures: Option<PathBuf>,
    },
    /// Both kernels of a pair
    Show {
        number: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Pairs with inputs and verdicts, half of them broken, for `bench/rewrites_device.py`
    Emit {
        folder: PathBuf,
        #[arg(long, default_value_t = 200)]
        count: usize,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

/// Pairs between two lines of progress.
const BATCH: u64 = 500;

fn main() -> Result<(), String> {
    match Arguments::parse().command {
        Command::Show { number, seed } => {
            let pair = Pair::random(seed, number).map_err(|f| format!("{}\n{}", f.what, f.text))?;
            print!("{}", pair.text());
            Ok(())
        }
        Command::Emit {
            folder,
            count,
            seed,
        } => emit(seed, count, &folder).map_err(|error| match error {
            EmitError::Write(error) => error.to_string(),
            EmitError::Wrong(f) => format!("{}: {}\n{}", f.pair, f.what, f.text),
        }),
        Command::Run {
            count,
            seed,
            from,
            json,
            failures,
        } => {
            let mut all = Counters::default();
            let end = from + count;
            for begin in (from..end).step_by(BATCH as usize) {
                let (counters, findings) = run(seed, begin..end.min(begin + BATCH));
                all.add(&counters);
                for (at, finding) in findings.iter().enumerate() {
                    eprintln!("{}: {}", finding.pair, finding.what);
                    let Some(folder) = &failures else { continue };
                    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
                    let text =
                        format!("// {}\n// {}\n{}", finding.pair, finding.what, finding.text);
                    let path = folder.join(format!("{begin}-{at}.ptx"));
                    std::fs::write(path, text).map_err(|e| e.to_string())?;
                }
                eprintln!(
                    "{} pairs, {} launches, wrong: {}",
                    all.pairs, all.launches, all.wrong
                );
            }
            let text = serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?;
            match &json {
                Some(path) => std::fs::write(path, text + "\n").map_err(|e| e.to_string())?,
                None => println!("{text}"),
            }
            match all.wrong {
                0 => Ok(()),
                wrong => Err(format!("{wrong} wrong")),
            }
        }
    }
}
