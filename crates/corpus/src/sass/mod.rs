//! The SASS corpus: the PTX corpus' files of nvcc, assembled by the ptxas of the same toolkit for
//! every architecture, in a covering of optimization levels, register limits and line tables.

pub mod check;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use warpwright_toolkit::{PtxasJob, Toolkit};

use crate::Error;
use crate::build::Entry;
use crate::producers::{Kind, Producer, Tool};

const LIMIT: Duration = Duration::from_secs(1800);

/// Architectures that are assembled from the PTX of another one besides its own.
const MORE: [(&str, &[&str]); 2] = [("sm_80", &["sm_86", "sm_89"]), ("sm_100", &["sm_120"])];

/// One way to assemble a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Variant {
    name: &'static str,
    level: u8,
    limit: Option<u32>,
    lines: bool,
}

const fn variant(name: &'static str, level: u8, limit: Option<u32>, lines: bool) -> Variant {
    Variant {
        name,
        level,
        limit,
        lines,
    }
}

/// Every file is assembled in the first way, and in one of the others, which take turns.
const VARIANTS: [Variant; 8] = [
    variant("O3.lines", 3, None, true),
    variant("O3.r32.lines", 3, Some(32), true),
    variant("O2.r64", 2, Some(64), false),
    variant("O0", 0, None, false),
    variant("O1.r40", 1, Some(40), false),
    variant("O3", 3, None, false),
    variant("O1.lines", 1, None, true),
    variant("O3.r128", 3, Some(128), false),
];

/// One cubin to be made.
#[derive(Debug)]
struct Job<'a> {
    toolkit: &'a Toolkit,
    /// Of the toolkit; part of what decides whether a file must be made anew.
    version: &'a str,
    ptx: PathBuf,
    gpu: String,
    variant: Variant,
    output: PathBuf,
    stamp: PathBuf,
}

/// Assembles the files of nvcc below `dir`, into `dir/sass/SERIES/sm_XX/NAME.VARIANT.cubin`; what is
/// up to date stays. Returns what failed.
///
/// # Errors
/// The folder cannot be read.
pub fn assemble(dir: &Path, producers: &[Producer]) -> Result<Vec<Entry>, Error> {
    let mut jobs = Vec::new();
    for producer in producers {
        let (Kind::Nvcc(series), Tool::Nvcc(toolkit)) = (&producer.kind, &producer.tool) else {
            continue;
        };
        let root = dir.join(producer.kind.to_string());
        if !root.is_dir() {
            continue;
        }
        for (number, ptx) in crate::files_below(&root, "ptx")?.into_iter().enumerate() {
            for (turn, gpu) in targets(&ptx).into_iter().enumerate() {
                let other = 1 + (number + turn) % (VARIANTS.len() - 1);
                for variant in [VARIANTS[0], VARIANTS[other]] {
                    let stem = ptx.file_stem().unwrap_or_default().to_string_lossy();
                    let name = format!("sass/{series}/{gpu}/{stem}.{}", variant.name);
                    jobs.push(Job {
                        toolkit,
                        version: &producer.version,
                        ptx: ptx.clone(),
                        gpu: gpu.clone(),
                        variant,
                        output: dir.join(format!("{name}.cubin")),
                        stamp: dir.join(".stamps").join(name),
                    });
                }
            }
        }
    }
    eprintln!("{} cubins", jobs.len());
    let failed = jobs.par_iter().map(|job| {
        let name = job.output.display().to_string();
        let result = job.make();
        if let Err(reason) = &result {
            eprintln!("{name}: {reason}");
        }
        result.err().map(|text| Entry { name, text })
    });
    Ok(failed.collect::<Vec<_>>().into_iter().flatten().collect())
}

/// The architectures that a PTX file in `…/sm_XX/NAME.ptx` is assembled for.
fn targets(ptx: &Path) -> Vec<String> {
    let own = ptx.parent().and_then(Path::file_name);
    let own = own.unwrap_or_default().to_string_lossy().into_owned();
    let more = MORE.iter().find(|(gpu, _)| *gpu == own);
    let more = more.map_or(&[][..], |(_, more)| more);
    let more = more.iter().map(|gpu| (*gpu).to_owned());
    std::iter::once(own).chain(more).collect()
}

impl Job<'_> {
    fn make(&self) -> Result<(), String> {
        let told = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
        let mut text = fs::read_to_string(&self.ptx).map_err(|e| told(&self.ptx, e))?;
        if self.variant.limit.is_some() {
            text = without_bounds(&text);
        }
        let mut job = PtxasJob::new(&text, &self.gpu);
        job.opt_level = Some(self.variant.level);
        job.maxrregcount = self.variant.limit;
        job.lineinfo = self.variant.lines;
        job.timeout = LIMIT;
        let key = self.key(&job);
        if self.output.exists() && fs::read_to_string(&self.stamp).is_ok_and(|found| found == key) {
            return Ok(());
        }
        let _ = fs::remove_file(&self.stamp);
        for parent in [self.output.parent(), self.stamp.parent()]
            .into_iter()
            .flatten()
        {
            fs::create_dir_all(parent).map_err(|e| told(parent, e))?;
        }
        let built = self.toolkit.ptxas().and_then(|ptxas| ptxas.run(&job));
        let built = built.map_err(|e| e.to_string())?;
        fs::write(&self.output, built.cubin).map_err(|e| told(&self.output, e))?;
        fs::write(&self.stamp, key).map_err(|e| told(&self.stamp, e))
    }

    /// A digest of all that decides the output.
    fn key(&self, job: &PtxasJob) -> String {
        let mut hash = Sha256::new();
        let arguments = job.arguments();
        let arguments = arguments.iter().map(|a| a.as_encoded_bytes());
        for part in [self.version.as_bytes(), job.ptx.as_bytes()]
            .into_iter()
            .chain(arguments)
        {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Without the directives beside which ptxas ignores a register limit.
fn without_bounds(ptx: &str) -> String {
    let bounds = [".maxntid", ".minnctapersm", ".reqntid", ".maxnreg"];
    let kept = ptx.lines().filter(|line| {
        let line = line.trim_start();
        !bounds.iter().any(|b| line.starts_with(b))
    });
    kept.fold(String::with_capacity(ptx.len()), |text, line| {
        text + line + "\n"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ptx_for_several_architectures() {
        let of = |gpu: &str| targets(Path::new(&format!("nvcc-13.5/{gpu}/a.ptx")));
        assert_eq!(of("sm_80"), ["sm_80", "sm_86", "sm_89"]);
        assert_eq!(of("sm_90a"), ["sm_90a"]);
    }

    #[test]
    fn bounds_are_taken_out() {
        let ptx = ".visible .entry k()\n.maxntid 128\n.minnctapersm 2\n{\n\tret;\n}\n";
        assert_eq!(without_bounds(ptx), ".visible .entry k()\n{\n\tret;\n}\n");
    }
}
