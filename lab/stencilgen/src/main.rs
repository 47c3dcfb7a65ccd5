//! Random stencils against their rewrites.
//!
//! ```text
//! warpwright-stencilgen run --count 5000 [--seed S] [--batch 24] [--json OUT] [--failures DIR]
//! warpwright-stencilgen gpu --count 300 --out DIR
//! warpwright-stencilgen show NUMBER [--seed S]
//! ```

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use warpwright_ptx::Module;
use warpwright_sourcegen::{Counters, Run, Show, all_beyond, ptx_of, subjects};
use warpwright_stencilgen::check::Subject;
use warpwright_stencilgen::program::program;
use warpwright_toolkit::{FindOptions, Toolkit};

#[derive(Parser)]
#[command(about = "Random stencil kernels in CUDA C against every family of rewrites")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// In the PTX emulator
    Run(Run),
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
    Show(Show),
}

fn main() -> Result<(), String> {
    match Arguments::parse().command {
        Command::Run(run) => run.run::<Subject>(),
        Command::Gpu {
            count,
            seed,
            batch,
            out,
        } => gpu(count, seed, batch, &out),
        Command::Show(show) => show.show::<Subject>("it is not taken for a stencil"),
    }
}

/// Programs with `count` stencils that are taken for such.
fn gpu(count: u64, seed: u64, batch: u64, out: &Path) -> Result<(), String> {
    std::fs::create_dir_all(out).map_err(|e| e.to_string())?;
    let mut counters = Counters::default();
    let mut all = Vec::new();
    let mut number = 0;
    while (all.len() as u64) < count {
        let (found, findings) = subjects::<Subject>(seed, number..number + 1, &mut counters);
        if let Some(finding) = findings.first() {
            return Err(finding.what.clone());
        }
        all.extend(found.into_iter().filter(|subject| {
            let mut sizes = subject.sizes.iter();
            sizes.any(|sizes| subject.problem.launch(sizes).is_some())
        }));
        number += 1;
    }
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    let nvcc = toolkit.nvcc().map_err(|e| e.to_string())?;
    let mut beyond = 0;
    for (at, chunk) in all.chunks(batch.max(1) as usize).enumerate() {
        // A device finds what the emulator finds, later.
        let originals: Vec<&str> = chunk.iter().map(|s| s.kernel.text.as_str()).collect();
        let ptx = ptx_of(&originals.join("\n"), &nvcc, None).map_err(|e| e.to_string())?;
        let module = Module::parse("batch", &ptx).0;
        for finding in all_beyond(chunk, &module) {
            eprintln!("{}\n{}", finding.what, finding.text);
            beyond += 1;
        }
        let path = out.join(format!("batch{at:02}.cu"));
        std::fs::write(path, program(chunk)).map_err(|e| e.to_string())?;
    }
    println!("{} kernels of {number} generated", all.len());
    match beyond {
        0 => Ok(()),
        beyond => Err(format!("{beyond} kernels as written leave their arrays")),
    }
}
