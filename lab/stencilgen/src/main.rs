//! Random stencils against their rewrites.
//!
//! ```text
//! warpwright-stencilgen run --count 5000 [--seed S] [--batch 24] [--json OUT] [--failures DIR]
//! warpwright-stencilgen gpu --count 300 --out DIR
//! warpwright-stencilgen show NUMBER [--seed S]
//! ```

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Parser, Subcommand};
use warpwright_ptx::Module;
use warpwright_stencilgen::check::{
    Counters, Finding, Subject, batch_text, compare, subject, with_memory,
};
use warpwright_stencilgen::program::program;
use warpwright_toolkit::{FindOptions, NvccJob, Toolkit};

#[derive(Parser)]
#[command(about = "Random stencil kernels in CUDA C against every family of rewrites")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// In the PTX emulator
    Run {
        #[arg(long, default_value_t = 100)]
        count: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The first number
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Kernels in a call of nvcc
        #[arg(long, default_value_t = 24)]
        batch: u64,
        /// The counters so far, after every batch
        #[arg(long)]
        json: Option<PathBuf>,
        /// Kernels that fail
        #[arg(long)]
        failures: Option<PathBuf>,
    },
    /// Programs for a GPU
    Gpu {
        #[arg(long, default_value_t = 300)]
        count: u64,
        #[arg(long, default_value_t = 7)]
        seed: u64,
        /// Kernels in a program
        #[arg(long, default_value_t = 10)]
        batch: u64,
        #[arg(long)]
        out: PathBuf,
    },
    /// A kernel and its versions
    Show {
        number: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn main() -> Result<(), String> {
    match Arguments::parse().command {
        Command::Run {
            count,
            seed,
            from,
            batch,
            json,
            failures,
        } => run(
            seed,
            from..from + count,
            batch,
            json.as_deref(),
            failures.as_deref(),
        ),
        Command::Gpu {
            count,
            seed,
            batch,
            out,
        } => gpu(count, seed, batch, &out),
        Command::Show { number, seed } => {
            let found = subject(seed, number, &mut Counters::default());
            match found.map_err(|f| format!("{}\n{}", f.what, f.text))? {
                Some(subject) => print!("{}", batch_text(&[subject])),
                None => println!("it is not taken for a stencil"),
            }
            Ok(())
        }
    }
}

fn subjects(
    seed: u64,
    numbers: std::ops::Range<u64>,
    counters: &mut Counters,
) -> (Vec<Subject>, Vec<Finding>) {
    let (mut found, mut findings) = (Vec::new(), Vec::new());
    for number in numbers {
        match subject(seed, number, counters) {
            Ok(subject) => found.extend(subject),
            Err(finding) => findings.push(finding),
        }
    }
    (found, findings)
}

fn run(
    seed: u64,
    numbers: std::ops::Range<u64>,
    batch: u64,
    json: Option<&Path>,
    failures: Option<&Path>,
) -> Result<(), String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    let nvcc = toolkit.nvcc().map_err(|e| e.to_string())?;
    let mut all = Counters::default();
    let start = Instant::now();
    let mut at = numbers.start;
    while at < numbers.end {
        let next = (at + batch.max(1)).min(numbers.end);
        let mut counters = Counters::default();
        let (found, mut findings) = subjects(seed, at..next, &mut counters);
        let mut job = NvccJob::new(Path::new(""), "sm_90");
        job.lineinfo = false;
        job.extra = vec!["-fmad=false".into()];
        match nvcc.text_to_ptx(&batch_text(&found), &job) {
            Ok(output) => {
                let (module, _) = Module::parse("batch", &with_memory(&found, &output.ptx));
                let (more, wrong) = compare(&found, &module);
                counters.add(&more);
                findings.extend(wrong);
            }
            Err(e) => {
                counters.broken += 1;
                findings.push(Finding {
                    text: batch_text(&found),
                    version: "batch".into(),
                    what: e.to_string(),
                });
            }
        }
        for (number, finding) in findings.iter().enumerate() {
            eprintln!("{}: {}", finding.version, finding.what);
            if let Some(folder) = failures {
                let path = folder.join(format!("{at}-{number}.cu"));
                let text = format!(
                    "// {}\n// {}\n{}",
                    finding.version,
                    finding.what.replace('\n', "\n// "),
                    finding.text
                );
                std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
                std::fs::write(path, text).map_err(|e| e.to_string())?;
            }
        }
        all.add(&counters);
        at = next;
        if let Some(path) = json {
            let text = serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?;
            std::fs::write(path, text + "\n").map_err(|e| e.to_string())?;
        }
        eprintln!(
            "{at} of {} in {:.0} s, wrong: {}",
            numbers.end,
            start.elapsed().as_secs_f64(),
            all.wrong()
        );
    }
    println!(
        "{}",
        serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?
    );
    match all.wrong() {
        0 => Ok(()),
        wrong => Err(format!("{wrong} versions are wrong")),
    }
}

/// Programs with `count` stencils that are taken for such.
fn gpu(count: u64, seed: u64, batch: u64, out: &Path) -> Result<(), String> {
    std::fs::create_dir_all(out).map_err(|e| e.to_string())?;
    let mut counters = Counters::default();
    let mut all = Vec::new();
    let mut number = 0;
    while (all.len() as u64) < count {
        let (found, findings) = subjects(seed, number..number + 1, &mut counters);
        if let Some(finding) = findings.first() {
            return Err(finding.what.clone());
        }
        // The programs set no memory of a file, and name no instances.
        all.extend(found.into_iter().filter(|subject| {
            let mut variables = subject.problem.stencil.variables();
            !subject.kernel.is_template && variables.next().is_none()
        }));
        number += 1;
    }
    for (at, chunk) in all.chunks(batch.max(1) as usize).enumerate() {
        let path = out.join(format!("batch{at:02}.cu"));
        std::fs::write(path, program(chunk)).map_err(|e| e.to_string())?;
    }
    println!("{} kernels of {number} generated", all.len());
    Ok(())
}
