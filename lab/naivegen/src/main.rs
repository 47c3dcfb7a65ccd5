//! Random naive kernels against what is made of them.
//!
//! ```text
//! warpwright-naivegen run --count 5000 [--seed S] [--batch 24] [--json OUT] [--failures DIR]
//! warpwright-naivegen candidates --out DIR examples/naive/*.cu
//! warpwright-naivegen show NUMBER [--seed S]
//! ```

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_naive::recognise::recognise;
use warpwright_naive::replace::replaced;
use warpwright_naivegen::check::Subject;
use warpwright_naivegen::device::Program;
use warpwright_naivegen::ways::{best, grid};
use warpwright_sourcegen::{Run, Show};

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
    Run(Run),
    /// Every choice for the kernels of files, as `OUT/KERNEL/CHOICE.cu`, to be measured
    Candidates {
        #[arg(long)]
        out: PathBuf,
        /// So many of each kind that are predicted to be fast on an H200, in place of a grid
        #[arg(long)]
        best: Option<usize>,
        files: Vec<PathBuf>,
    },
    /// Programs for a machine with a GPU that launch kernels and what is made of them: `OUT/NAME.cu` with `NAME.bin`
    Device {
        #[arg(long)]
        out: PathBuf,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Random kernels
        #[arg(long, default_value_t = 100)]
        count: u64,
        /// Random kernels of a program
        #[arg(long, default_value_t = 8)]
        batch: u64,
        /// Folders KERNEL with `opt.cu`, whose launches stand in examples/naive/KERNEL.toml
        #[arg(long)]
        gallery: Option<PathBuf>,
    },
    /// A kernel and its versions
    Show(Show),
}

fn main() -> Result<(), String> {
    match Arguments::parse().command {
        Command::Run(run) => run.run::<Subject>(),
        Command::Candidates { out, best, files } => files
            .iter()
            .try_for_each(|path| candidates(&out, best, path)),
        Command::Device {
            out,
            seed,
            count,
            batch,
            gallery,
        } => {
            std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
            device(&out, seed, count, batch.max(1))?;
            gallery
                .iter()
                .try_for_each(|gallery| examples(&out, gallery))
        }
        Command::Show(show) => show.show::<Subject>("it is not taken for a naive kernel"),
    }
}

fn device(out: &Path, seed: u64, count: u64, batch: u64) -> Result<(), String> {
    let mut comparisons = 0;
    for from in (0..count).step_by(usize::try_from(batch).unwrap_or(1)) {
        let mut program = Program::default();
        (from..count.min(from + batch)).try_for_each(|number| program.random(seed, number))?;
        program.write(out, &format!("random{from:04}"))?;
        comparisons += program.comparisons;
    }
    println!("{count} random kernels, {comparisons} comparisons");
    Ok(())
}

/// One program for each kernel of the gallery that was rewritten.
fn examples(out: &Path, gallery: &Path) -> Result<(), String> {
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let mut folders: Vec<PathBuf> = std::fs::read_dir(gallery)
        .map_err(|e| format!("{}: {e}", gallery.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("opt.cu").exists())
        .collect();
    folders.sort();
    let mut count = 0;
    for folder in &folders {
        let name = folder.file_name().map(|n| n.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let text = read(&folder.join("opt.cu"))?;
        if text == read(Path::new(&format!("examples/naive/{name}.cu")))? {
            continue;
        }
        count += 1;
        let description = read(Path::new(&format!("examples/naive/{name}.toml")))?;
        let mut program = Program::default();
        program
            .example(&text, &description)
            .map_err(|e| format!("{name}: {e}"))?;
        program.write(out, &name)?;
    }
    println!("{count} kernels of the gallery");
    Ok(())
}

fn candidates(out: &Path, count: Option<usize>, path: &Path) -> Result<(), String> {
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
        let all = match count {
            Some(count) => {
                let gpu = warpwright_target::lookup("h200").map_err(|e| e.to_string())?;
                best(&kernel, &gpu, count)
            }
            None => grid(&kernel),
        };
        for (name, generated) in all {
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
