//! Builds, kept by content.
//!
//! An entry's name is the SHA-256 of all that decides the result: the digests of the programs, the
//! arguments, the contents of files that the arguments name, and the input; for nvcc also the environment and
//! the working folder. A build whose report is incomplete is not kept. An entry carries a digest of
//! itself; one that does not match is thrown away and built again. Entries appear by renaming, so that
//! several processes can share the directory. The oldest-used entries go when the directory outgrows its
//! limit.
//!
//! What nvcc makes also depends on the headers that the source includes. The entry therefore lists them with
//! their digests, and holds only while all of them are unchanged. (A new header that comes earlier in the
//! search path than one in the list goes unnoticed, as in other compiler caches.)

mod store;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::thread::ScopedJoinHandle;

use serde::{Deserialize, Serialize};

use self::store::{Key, Store};
use crate::diagnostic::Diagnostic;
use crate::dirs::{cache_dir, read_regular};
use crate::environment::{self, host_compilers};
use crate::error::ToolError;
use crate::install::sha256_of;
use crate::nvcc::{Made, Nvcc, NvccJob, NvccOutput, garbage, remember_read};
use crate::ptxas::{Build, Ptxas, PtxasJob};
use crate::renamed;
use crate::scratch::Scratch;
use crate::tool::digest_of;

/// Default limit, in bytes.
const DEFAULT_LIMIT: u64 = 2 << 30;

/// Keeps what ptxas and nvcc made. Cheap to share between threads.
#[derive(Debug)]
pub struct BuildCache {
    store: Option<Store>,
}

/// What is kept of a run of nvcc besides the PTX.
#[derive(Serialize, Deserialize)]
struct NvccReport {
    diagnostics: Vec<Diagnostic>,
    /// Every file that was read, with its digest.
    read: Vec<(PathBuf, String)>,
}

/// What nvcc made, now or before.
struct Kept {
    file: Vec<u8>,
    diagnostics: Vec<Diagnostic>,
    cached: bool,
}

impl BuildCache {
    /// In Warpwright's cache directory, at most 2 GiB. Disabled where there is no such directory.
    pub fn standard() -> BuildCache {
        match cache_dir() {
            Some(dir) => BuildCache::open(dir.join("builds"), DEFAULT_LIMIT),
            None => BuildCache::disabled(),
        }
    }

    /// In the given directory, made when first needed; `limit` in bytes.
    pub fn open(dir: PathBuf, limit: u64) -> BuildCache {
        BuildCache {
            store: Some(Store::new(dir, limit)),
        }
    }

    /// One that never keeps anything.
    pub fn disabled() -> BuildCache {
        BuildCache { store: None }
    }

    /// The kept build of this job, or else a new one, which is then kept. A cache that cannot be read or
    /// written is no error: it only costs time.
    ///
    /// # Errors
    /// As [`Ptxas::run`]; refusals are not kept.
    pub fn ptxas(&self, ptxas: &Ptxas, job: &PtxasJob) -> Result<Build, ToolError> {
        let suffixed = |suffix| Some((renamed::with_suffix(job.ptx, suffix)?, suffix));
        if let Some(((ptx, kernels), suffix)) = job.suffix.and_then(suffixed) {
            let job = PtxasJob {
                ptx: &ptx,
                suffix: None,
                ..job.clone()
            };
            let mut build = self.ptxas(ptxas, &job)?;
            renamed::without_suffix(&mut build, &kernels, suffix);
            return Ok(build);
        }
        let Some(store) = &self.store else {
            return ptxas.run(job);
        };
        let key = Key::new("ptxas").with(ptxas.tool().digest()?.as_bytes());
        let key = with_arguments(key, &job.arguments());
        let name = key.with(job.ptx.as_bytes()).name();
        let wanted = job.wanted();
        if let Some((mut build, cubin)) = store.load::<Build>(&name) {
            (build.cubin, build.cached) = (cubin, true);
            if matches!(build.holds(&wanted), Ok(true)) {
                return Ok(build);
            }
        }
        let build = ptxas.run(job)?;
        if build.holds(&wanted)? {
            store.save(&name, &build, &build.cubin);
        }
        Ok(build)
    }

    /// The kept PTX of this job, or else a new one, which is then kept.
    ///
    /// # Errors
    /// As [`Nvcc::to_ptx`]; refusals are not kept.
    pub fn nvcc(&self, nvcc: &Nvcc, job: &NvccJob) -> Result<NvccOutput, ToolError> {
        let made = self.kept("nvcc", nvcc, job, &|| {
            let (output, read) = nvcc.ptx_and_files_read(job)?;
            Ok((output.ptx.into_bytes(), output.diagnostics, read))
        })?;
        Ok(NvccOutput {
            ptx: String::from_utf8(made.file).map_err(|_| garbage("the PTX is not UTF-8"))?,
            diagnostics: made.diagnostics,
            cached: made.cached,
        })
    }

    /// The same of a text in the place of the job's source, under the source's name.
    ///
    /// # Errors
    /// As [`Nvcc::text_to_ptx`]; refusals are not kept.
    pub fn nvcc_of_text(
        &self,
        nvcc: &Nvcc,
        text: &str,
        job: &NvccJob,
    ) -> Result<NvccOutput, ToolError> {
        let scratch = Scratch::new()?;
        let name = job.source.file_name().unwrap_or(job.source.as_os_str());
        let copy = scratch.write(&name.to_string_lossy(), text.as_bytes())?;
        let of_copy = NvccJob {
            source: &copy,
            ..job.clone()
        };
        let made = self.nvcc(nvcc, &of_copy);
        made.map_err(|e| e.with_path(&copy, job.source))
    }

    /// The kept object of this source file, or else a new one, which is then kept: its bytes. `ptx`: a job for the PTX in
    /// it, which differs from this one in the optimisation of host code alone; it is kept as well.
    ///
    /// # Errors
    /// As [`Nvcc::to_ptx`]; refusals are not kept.
    pub fn object(
        &self,
        nvcc: &Nvcc,
        job: &NvccJob,
        ptx: Option<&NvccJob>,
    ) -> Result<Vec<u8>, ToolError> {
        let made = self.kept("object", nvcc, job, &|| {
            let made = nvcc.object_and_files_read(job, ptx.is_some())?;
            if let (Some(store), Some(job), Some(kernels)) = (&self.store, ptx, made.kernels) {
                save(store, &name("nvcc", nvcc, job)?, &kernels);
            }
            Ok((made.object, Vec::new(), made.read))
        })?;
        Ok(made.file)
    }

    /// What nvcc makes of a source file, kept under the name of a kind.
    fn kept(
        &self,
        kind: &str,
        nvcc: &Nvcc,
        job: &NvccJob,
        make: &dyn Fn() -> Result<Made, ToolError>,
    ) -> Result<Kept, ToolError> {
        let name = self.store.as_ref().map(|_| name(kind, nvcc, job));
        let place = self.store.as_ref().zip(name.transpose()?);
        if let Some((store, name)) = &place
            && let Some((report, file)) = store.load::<NvccReport>(name)
            && report
                .read
                .iter()
                .all(|(path, digest)| unchanged(path, digest))
        {
            remember_read(report.read.into_iter().map(|(path, _)| path));
            return Ok(Kept {
                file,
                diagnostics: report.diagnostics,
                cached: true,
            });
        }
        let made = make()?;
        if let Some((store, name)) = &place {
            save(store, name, &made);
        }
        let (file, diagnostics, _) = made;
        Ok(Kept {
            file,
            diagnostics,
            cached: false,
        })
    }
}

/// The name of what nvcc makes of a source file.
fn name(kind: &str, nvcc: &Nvcc, job: &NvccJob) -> Result<String, ToolError> {
    let mut key = with_arguments(Key::new(kind), &job.arguments());
    let parts: Vec<PathBuf> = nvcc.parts().into_iter().chain(host_compilers()).collect();
    for (part, digest) in parts.iter().zip(digests_of(&parts)) {
        key = key
            .with(part.as_os_str().as_encoded_bytes())
            .with(digest?.as_bytes());
    }
    for (name, value) in environment::relevant() {
        key = key
            .with(name.as_encoded_bytes())
            .with(value.as_encoded_bytes());
    }
    let folder = std::env::current_dir().unwrap_or_default();
    key = key.with(folder.as_os_str().as_encoded_bytes());
    let source = std::path::absolute(job.source).map_err(|e| ToolError::io(job.source, e))?;
    Ok(key.with(source.as_os_str().as_encoded_bytes()).name())
}

/// Keeps what nvcc made, as long as the files are there that it read.
fn save(store: &Store, name: &str, (file, diagnostics, read): &Made) {
    let digest = |path: &PathBuf| Some((path.clone(), sha256_of(path).ok()?));
    let read: Option<Vec<_>> = read.iter().map(digest).collect();
    if let Some(read) = read.filter(|read| !read.is_empty()) {
        let report = NvccReport {
            diagnostics: diagnostics.clone(),
            read,
        };
        store.save(name, &report, file);
    }
}

/// The digests of several files, in their order. The first time, a toolkit is some 200 MB, so they are read side by side.
fn digests_of(files: &[PathBuf]) -> Vec<Result<String, ToolError>> {
    std::thread::scope(|scope| {
        let readers = files.iter().map(|file| scope.spawn(|| digest_of(file)));
        let readers: Vec<_> = readers.collect();
        let join = |(file, reader): (&PathBuf, ScopedJoinHandle<_>)| {
            reader.join().unwrap_or_else(|_| digest_of(file))
        };
        files.iter().zip(readers).map(join).collect()
    })
}

fn unchanged(path: &Path, digest: &str) -> bool {
    sha256_of(path).is_ok_and(|found| found == digest)
}

/// Arguments, and the contents of the files that they name.
fn with_arguments(key: Key, arguments: &[OsString]) -> Key {
    arguments.iter().fold(key, |key, arg| {
        key.with(arg.as_encoded_bytes())
            .with(&named_file(arg).unwrap_or_default())
    })
}

/// The contents of the file that an argument (`FILE` or `--option=FILE`) names, if it does.
fn named_file(arg: &OsStr) -> Option<Vec<u8>> {
    let text = arg.to_string_lossy();
    let value = text.split_once('=').map_or(&*text, |(_, value)| value);
    read_regular(Path::new(value)).ok()
}
