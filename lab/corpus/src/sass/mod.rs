//! The SASS corpus: the PTX corpus' files of nvcc and of our generator, assembled for every architecture
//! by the ptxas of every toolkit, in a covering of optimization levels, register limits and line tables.

pub mod check;
pub mod known;
mod plan;
pub mod results;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use warpwright_toolkit::{PtxasJob, Toolkit};

use crate::Error;
use crate::build::Entry;
use crate::producers::{Kind, Producer, Tool};
use plan::{Item, Variant, plan};

const LIMIT: Duration = Duration::from_secs(1800);

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

/// Assembles the PTX below `dir`, into `dir/sass/SERIES/sm_XX/NAME.VARIANT.cubin`; what is up to date
/// stays, and what no job makes any more goes. Returns what failed.
///
/// # Errors
/// The folder cannot be read or written.
pub fn assemble(dir: &Path, producers: &[Producer]) -> Result<Vec<Entry>, Error> {
    let sources = plan::sources(dir)?;
    let mut jobs = Vec::new();
    for (rank, producer) in producers.iter().enumerate() {
        let (Kind::Nvcc(series), Tool::Nvcc(toolkit)) = (&producer.kind, &producer.tool) else {
            continue;
        };
        for Item { ptx, gpu, variant } in plan(&sources, series, rank) {
            let stem = ptx.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("sass/{series}/{gpu}/{stem}.{}", variant.name);
            jobs.push(Job {
                toolkit,
                version: &producer.version,
                ptx,
                gpu,
                variant,
                output: dir.join(format!("{name}.cubin")),
                stamp: dir.join(".stamps").join(name),
            });
        }
    }
    eprintln!("{} cubins", jobs.len());
    remove_stale(dir, &jobs)?;
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

fn remove_stale(dir: &Path, jobs: &[Job<'_>]) -> Result<(), Error> {
    let root = dir.join("sass");
    if !root.is_dir() {
        return Ok(());
    }
    for path in crate::files_below(&root, "cubin")? {
        if !jobs.iter().any(|job| job.output == path) {
            fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
        }
    }
    Ok(())
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
        if plan::is_relocatable(&self.ptx) {
            job.extra = vec!["-c".into()];
        }
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
    fn bounds_are_taken_out() {
        let ptx = ".visible .entry k()\n.maxntid 128\n.minnctapersm 2\n{\n\tret;\n}\n";
        assert_eq!(without_bounds(ptx), ".visible .entry k()\n{\n\tret;\n}\n");
    }
}
