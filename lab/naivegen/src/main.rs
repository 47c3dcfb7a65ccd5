//! Random naive kernels against what is made of them.
//!
//! ```text
//! warpwright-naivegen run --count 5000 [--seed S] [--batch 24] [--json OUT] [--failures DIR]
//! warpwright-naivegen candidates --out DIR examples/naive/*.cu
//! warpwright-naivegen show NUMBER [--seed S]
//! ```

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Parser, Subcommand};
use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_naive::recognise::recognise;
use warpwright_naive::replace::replaced;
use warpwright_naivegen::check::{Counters, Finding, Subject, batch_text, compare_all, subject};
use warpwright_naivegen::ways::grid;
use warpwright_ptx::Module;
use warpwright_toolkit::{FindOptions, NvccJob, Toolkit};

#[derive(Parser)]
#[command(
    about = "Random naive kernels in CUDA C against every kind of kernel that is made of them"
)]
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
    /// Every choice for the kernels of files, as `OUT/KERNEL/CHOICE.cu`, to be measured
    Candidates {
        #[arg(long)]
        out: PathBuf,
        files: Vec<PathBuf>,
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
        Command::Candidates { out, files } => {
            files.iter().try_for_each(|path| candidates(&out, path))
        }
        Command::Show { number, seed } => {
            let found = subject(seed, number, &mut Counters::default());
            match found.map_err(|f| format!("{}\n{}", f.what, f.text))? {
                Some(subject) => print!("{}", batch_text(&[subject])),
                None => println!("it is not taken for a naive kernel"),
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
                let (module, _) = Module::parse("batch", &output.ptx);
                let (more, wrong) = compare_all(&found, &module);
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

fn candidates(out: &Path, path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let source = Source::new(path.display().to_string(), text);
    let file = File::parse(source).map_err(|e| e.message.clone())?;
    for header in &file.kernels {
        let kernel = match recognise(&file, header) {
            Ok(kernel) => kernel,
            Err(problem) => {
                println!("{}: {}", header.name.text, problem.message);
                continue;
            }
        };
        let folder = out.join(&header.name.text);
        std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let mut written = 0;
        for (name, generated) in grid(&kernel) {
            if let Ok((replaced, _)) = replaced(&file, header, &kernel, &generated) {
                let path = folder.join(format!("{name}.cu"));
                std::fs::write(path, replaced.text).map_err(|e| e.to_string())?;
                written += 1;
            }
        }
        println!("{}: {written} candidates", header.name.text);
    }
    Ok(())
}
