//! Makes the files of a corpus: in parallel, and only those whose source, flags or producer have changed.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use warpwright_toolkit::{Invocation, NvccJob, ToolError};

use crate::Error;
use crate::plan::{Input, Job};
use crate::producers::{Producer, Tool};

/// Name of the index in a corpus folder.
pub const INDEX: &str = "corpus.json";

const LIMIT: Duration = Duration::from_secs(1800);

/// What `build` leaves besides the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Whether it is the small corpus.
    pub sample: bool,
    /// Producers that took part.
    pub producers: Vec<Entry>,
    /// Producers that were asked for and are missing, with the reason.
    pub missing: Vec<Entry>,
    /// Compilations that failed: the file that was to be, and the reason.
    pub failed: Vec<Entry>,
}

/// A name with something to say about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Producer or file.
    pub name: String,
    /// Version or reason.
    pub text: String,
}

impl Index {
    /// The index of a corpus folder; none is no error.
    ///
    /// # Errors
    /// It cannot be read, or is no index.
    pub fn load(dir: &Path) -> Result<Option<Index>, Error> {
        let path = dir.join(INDEX);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|source| Error::Index { path, source }),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(&path, e)),
        }
    }

    /// Writes it into a corpus folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, dir: &Path) -> Result<(), Error> {
        let path = dir.join(INDEX);
        let text = serde_json::to_string_pretty(self).map_err(|source| Error::Index {
            path: path.clone(),
            source,
        })?;
        fs::write(&path, text + "\n").map_err(|e| Error::io(&path, e))
    }
}

/// Runs all jobs; returns those that failed, in the order of the jobs. Files of the producers that no job
/// makes any more are removed.
///
/// # Errors
/// The folder cannot be written.
pub fn build(dir: &Path, producers: &[Producer], jobs: &[Job]) -> Result<Vec<Entry>, Error> {
    fs::create_dir_all(dir).map_err(|e| Error::io(dir, e))?;
    remove_stale(dir, producers, jobs)?;
    let failed = jobs.par_iter().map(|job| {
        let site = Site {
            dir,
            producer: &producers[job.producer],
            job,
        };
        let name = format!("{}/{}", site.producer.kind, job.output);
        let result = site.make();
        if let Err(reason) = &result {
            eprintln!("{name}: {reason}");
        }
        result.err().map(|text| Entry { name, text })
    });
    Ok(failed.collect::<Vec<_>>().into_iter().flatten().collect())
}

fn remove_stale(dir: &Path, producers: &[Producer], jobs: &[Job]) -> Result<(), Error> {
    for (index, producer) in producers.iter().enumerate() {
        let root = dir.join(producer.kind.to_string());
        if !root.is_dir() {
            continue;
        }
        let mine: Vec<_> = jobs.iter().filter(|job| job.producer == index).collect();
        for path in crate::files_below(&root, "ptx")? {
            let made = |job: &&Job| match job.input {
                Input::Triton(_) => path.parent() == Some(&root.join(&job.output)),
                _ => path == root.join(format!("{}.ptx", job.output)),
            };
            if !mine.iter().any(made) {
                fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
            }
        }
    }
    Ok(())
}

/// One job in its corpus.
struct Site<'a> {
    dir: &'a Path,
    producer: &'a Producer,
    job: &'a Job,
}

impl Site<'_> {
    /// Makes the job's output unless it is there and up to date.
    fn make(&self) -> Result<(), String> {
        let key = self.key()?;
        let name = format!("{}/{}", self.producer.kind, self.job.output);
        let stamp = self.dir.join(".stamps").join(&name);
        let output = match self.job.input {
            Input::Triton(_) => self.dir.join(&name),
            _ => self.dir.join(format!("{name}.ptx")),
        };
        if output.exists() && fs::read_to_string(&stamp).is_ok_and(|found| found == key) {
            return Ok(());
        }
        // Whatever happens now, the old output is not this job's any more.
        let _ = fs::remove_file(&stamp);
        let _ = fs::remove_file(&output);
        let parents = [output.parent(), stamp.parent()];
        for parent in parents.into_iter().flatten() {
            fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
        }
        self.compile(&output)?;
        fs::write(&stamp, key).map_err(|e| format!("{}: {e}", stamp.display()))
    }

    /// A digest of all that decides the output.
    fn key(&self) -> Result<String, String> {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(self.producer.version.as_bytes());
        part(self.job.gpu.as_bytes());
        self.job.flags.iter().for_each(|flag| part(flag.as_bytes()));
        let read = |path: &Path| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
        match &self.job.input {
            Input::Generated(text) | Input::Ptx(text) => part(text.as_bytes()),
            Input::Triton(path) | Input::OpenCl(path) => part(&read(path)?),
            Input::Cuda(path) => {
                part(&read(path)?);
                // clang's sources share a header.
                part(&fs::read(path.with_file_name("cuda.h")).unwrap_or_default());
            }
        }
        Ok(hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }

    fn compile(&self, output: &Path) -> Result<(), String> {
        match (&self.producer.tool, &self.job.input) {
            (Tool::Nvcc(_), Input::Cuda(source)) => self.nvcc(source, output),
            (Tool::Nvcc(_), Input::Generated(text)) => {
                let source = output.with_extension("cu");
                fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
                self.nvcc(&source, output)
            }
            (Tool::Clang(program), Input::Cuda(source)) => {
                let arch = format!("--cuda-gpu-arch={}", self.job.gpu);
                let language = [
                    "-x",
                    "cuda",
                    "--cuda-device-only",
                    "-nocudalib",
                    "-nocudainc",
                    &arch,
                ];
                self.clang(program, &language, source, output)
            }
            (Tool::Clang(program), Input::OpenCl(source)) => {
                let arch = format!("-march={}", self.job.gpu);
                let target = "--target=nvptx64-nvidia-cuda";
                let language = ["-x", "cl", "-cl-std=CL2.0", target, &arch, "-nogpulib"];
                self.clang(program, &language, source, output)
            }
            (Tool::Fuzzgen, Input::Ptx(text)) => {
                fs::write(output, text).map_err(|e| format!("{}: {e}", output.display()))
            }
            (Tool::Triton(python), Input::Triton(script)) => self.triton(python, script, output),
            _ => Err("this producer does not take this input".to_owned()),
        }
    }

    fn nvcc(&self, source: &Path, output: &Path) -> Result<(), String> {
        let Tool::Nvcc(toolkit) = &self.producer.tool else {
            return Err("no toolkit".into());
        };
        let mut job = NvccJob::new(source, &self.job.gpu);
        (job.lineinfo, job.timeout) = (false, LIMIT);
        job.extra = self.job.flags.iter().map(OsString::from).collect();
        let made = toolkit
            .nvcc()
            .and_then(|nvcc| nvcc.to_ptx(&job))
            .map_err(|e| e.to_string())?;
        fs::write(output, made.ptx).map_err(|e| format!("{}: {e}", output.display()))
    }

    fn clang(
        &self,
        program: &Path,
        language: &[&str],
        source: &Path,
        output: &Path,
    ) -> Result<(), String> {
        // Without a version of its own the back end writes the oldest PTX that the GPU allows.
        let ptx = ["-Xclang", "-target-feature", "-Xclang", "+ptx83"];
        let call = Invocation::new("clang", program, LIMIT)
            .args(language)
            .args(["-S", "-O2"])
            .args(ptx)
            .args(&self.job.flags)
            .arg(source)
            .arg("-o")
            .arg(output);
        succeed(&call)
    }

    /// Triton's script fills a folder; a fresh cache, so that every kernel is compiled.
    fn triton(&self, python: &Path, script: &Path, output: &Path) -> Result<(), String> {
        let capability: String = self.job.gpu.chars().filter(char::is_ascii_digit).collect();
        let cache = self.dir.join(format!(".triton-cache-{capability}"));
        for dir in [output, &cache] {
            let _ = fs::remove_dir_all(dir);
            fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        }
        let call = Invocation::new("triton", python, LIMIT)
            .arg(script)
            .arg(output)
            .arg(capability)
            .env("TRITON_CACHE_DIR", &cache);
        let result = succeed(&call);
        let _ = fs::remove_dir_all(&cache);
        result
    }
}

fn succeed(call: &Invocation) -> Result<(), String> {
    let out = call.run().map_err(|e: ToolError| e.to_string())?;
    if out.status.success() {
        return Ok(());
    }
    let text = out.text();
    let errors = text.lines().filter(|line| line.contains("error"));
    let first = errors
        .chain(text.lines())
        .next()
        .unwrap_or("it said nothing");
    Err(format!("{} failed: {first}", call.name))
}
