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
use warpwright_naivegen::ways::grid;
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
        files: Vec<PathBuf>,
    },
    /// A kernel and its versions
    Show(Show),
}

fn main() -> Result<(), String> {
    match Arguments::parse().command {
        Command::Run(run) => run.run::<Subject>(),
        Command::Candidates { out, files } => {
            files.iter().try_for_each(|path| candidates(&out, path))
        }
        Command::Show(show) => show.show::<Subject>("it is not taken for a naive kernel"),
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
