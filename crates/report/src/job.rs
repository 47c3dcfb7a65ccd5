//! What travels between building and measuring.
//!
//! Both may happen on different machines: a [`Manifest`] and one cubin per candidate are all that the
//! measuring side needs. A [`Suite`](crate::results::Suite) is what comes back.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use warpwright_driver::candidate::Measured;
use warpwright_driver::database::{Entry, Key, hash};
use warpwright_driver::{KernelOutcome, KernelReport};
use warpwright_gpu::{Image, Measurements, Promise, Variant};

/// Version tag of the manifest.
pub const MANIFEST_SCHEMA: &str = "warpwright.candidates/1";
/// Version tag of a file of candidates.
const JOB_SCHEMA: &str = "warpwright.job/1";
/// Name of the manifest within a folder of candidates.
pub const MANIFEST_FILE: &str = "manifest.json";
/// The default build among the candidates.
pub const BASELINE: &str = "default";

/// A kernel's candidates, ready to be measured anywhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: String,
    /// The input file's name.
    pub input: String,
    /// The target that was built for.
    pub gpu: String,
    /// Version of ptxas.
    pub ptxas: String,
    /// Content hash of the kernel.
    pub kernel_hash: String,
    /// The launch description (TOML).
    pub launch: String,
    /// The named set of sizes.
    pub size: String,
    /// Candidates, predictions and the static choice.
    pub report: KernelReport,
    /// File of each candidate's cubin in the folder, in the order of the report; `None` if it was
    /// not built or has the same code as another.
    pub files: Vec<Option<String>>,
}

/// The manifest of a kernel's outcome, with the bytes of each file it names.
pub fn manifest<'a>(
    outcome: &'a KernelOutcome,
    input: &str,
    gpu: &str,
    ptxas: &str,
    kernel_hash: String,
    launch: (&str, &str),
) -> (Manifest, Vec<(String, &'a [u8])>) {
    let mut files = Vec::new();
    let mut contents = Vec::new();
    for built in &outcome.built {
        let candidate = &built.candidate;
        let cubin = built
            .cubin()
            .filter(|_| candidate.rejected().is_none() && candidate.same_code_as().is_none());
        files.push(cubin.map(|_| format!("{}.cubin", candidate.name())));
        contents
            .extend(cubin.map(|cubin| (format!("{}.cubin", candidate.name()), &**cubin.bytes())));
    }
    let manifest = Manifest {
        schema: MANIFEST_SCHEMA.into(),
        input: input.into(),
        gpu: gpu.into(),
        ptxas: ptxas.into(),
        kernel_hash,
        launch: launch.0.into(),
        size: launch.1.into(),
        report: outcome.report.clone(),
        files,
    };
    (manifest, contents)
}

impl Manifest {
    /// What the database knows the launch by: its description and the set of sizes.
    pub fn launch_hash(&self) -> String {
        hash(&[self.launch.as_bytes(), self.size.as_bytes()])
    }

    /// Whether its parts fit together: it may come from elsewhere.
    ///
    /// # Errors
    /// See [`Misfit`].
    pub fn check(&self) -> Result<(), Misfit> {
        let candidates = &self.report.candidates;
        if candidates.len() != self.files.len() {
            return Err(Misfit::Files(self.files.len(), candidates.len()));
        }
        if self.report.chosen >= candidates.len() {
            return Err(Misfit::Chosen(self.report.chosen));
        }
        let mut all = candidates.iter().zip(&self.files);
        if !all.any(|(one, file)| one.name() == BASELINE && file.is_some()) {
            return Err(Misfit::NoDefault);
        }
        let mut names = self.files.iter().flatten();
        match names.find(|name| std::path::Path::new(name).file_name() != Some(name.as_ref())) {
            Some(name) => Err(Misfit::Name(name.clone())),
            None => Ok(()),
        }
    }

    /// The candidates with code of their own dealt out, `size` beside the default build to each share.
    pub fn shares(&self, size: u32) -> Vec<Manifest> {
        let is_default = |index: usize| self.report.candidates[index].name() == BASELINE;
        let others: Vec<usize> = (0..self.files.len())
            .filter(|&index| self.files[index].is_some() && !is_default(index))
            .collect();
        let share = |chunk: &[usize]| {
            let mut share = self.clone();
            for (index, file) in share.files.iter_mut().enumerate() {
                if !is_default(index) && !chunk.contains(&index) {
                    *file = None;
                }
            }
            share
        };
        match others.is_empty() {
            true => vec![self.clone()],
            false => others.chunks(size.max(1) as usize).map(share).collect(),
        }
    }

    /// The variants to measure: every candidate with code of its own, the default first.
    /// `path` maps a file of the folder to where it is.
    pub fn variants(&self, path: impl Fn(&str) -> std::path::PathBuf) -> Vec<Variant> {
        self.report
            .candidates
            .iter()
            .zip(&self.files)
            .filter_map(|(candidate, file)| {
                let image = Image::File(path(file.as_deref()?));
                let mut variant = Variant::new(candidate.name(), image);
                variant.promise = Promise::Bitwise;
                // Timed to the end, so that the regret of the static choice is a real one.
                variant.keep =
                    candidate.recipe == self.report.candidates[self.report.chosen].recipe;
                Some(variant)
            })
            .collect()
    }
}

/// A manifest and its cubins in one document: a job that any machine with the GPU can measure.
#[derive(Debug, Serialize, Deserialize)]
pub struct Packed {
    schema: String,
    manifest: Manifest,
    /// Contents of [`Manifest::files`], in base64.
    cubins: BTreeMap<String, String>,
}

/// Names and contents.
pub type Files = Vec<(String, Vec<u8>)>;

/// Parts of a manifest that do not fit together.
#[derive(Debug, thiserror::Error)]
pub enum Misfit {
    /// Their number is not that of the candidates.
    #[error("{0} files for {1} candidates")]
    Files(usize, usize),
    /// The chosen one is none of them.
    #[error("there is no candidate {0}, the chosen one")]
    Chosen(usize),
    /// There is nothing to compare with.
    #[error("the default build is missing")]
    NoDefault,
    /// A file elsewhere.
    #[error("`{0}` is no name of a file in its folder")]
    Name(String),
}

/// A file of candidates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackedError {
    /// Written by another version.
    #[error("schema `{0}`, wanted `{JOB_SCHEMA}`")]
    Schema(String),
    /// Its parts do not fit together.
    #[error(transparent)]
    Parts(#[from] Misfit),
    /// A candidate's machine code is not in it, or not in base64.
    #[error("the machine code of `{0}` is missing or damaged")]
    Cubin(String),
}

impl Packed {
    /// Packs a manifest with what `read` gives for its files.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn new<E>(
        manifest: Manifest,
        read: impl Fn(&str) -> Result<Vec<u8>, E>,
    ) -> Result<Self, E> {
        let cubins = manifest
            .files
            .iter()
            .flatten()
            .map(|file| Ok((file.clone(), BASE64.encode(read(file)?))))
            .collect::<Result<_, E>>()?;
        Ok(Packed {
            schema: JOB_SCHEMA.into(),
            manifest,
            cubins,
        })
    }

    /// The manifest, and name and bytes of its files.
    ///
    /// # Errors
    /// [`PackedError`]: another schema, a manifest that contradicts itself, or a file that is not there.
    pub fn open(self) -> Result<(Manifest, Files), PackedError> {
        if self.schema != JOB_SCHEMA {
            return Err(PackedError::Schema(self.schema));
        }
        self.manifest.check()?;
        let bytes = |file: &String| {
            let text = self.cubins.get(file)?;
            Some((file.clone(), BASE64.decode(text).ok()?))
        };
        let files = self.manifest.files.iter().flatten();
        let files = files
            .map(|file| bytes(file).ok_or_else(|| PackedError::Cubin(file.clone())))
            .collect::<Result<_, _>>()?;
        Ok((self.manifest, files))
    }
}

/// Entries for the database.
pub fn entries(manifest: &Manifest, found: &Measurements) -> Vec<Entry> {
    let environment = &found.environment;
    let key = Key {
        kernel: manifest.kernel_hash.clone(),
        launch: manifest.launch_hash(),
        gpu: environment.device.name.clone(),
        driver: environment.device.driver.clone().unwrap_or_default(),
        toolkit: manifest.ptxas.clone(),
    };
    let by_name = |id: &str| manifest.report.candidates.iter().find(|c| c.name() == id);
    found
        .variants
        .iter()
        .filter_map(|m| {
            let measured = m.time_ns.map(|time| Measured {
                median_ns: time.median,
                interval_ns: (time.low, time.high),
                relative_time: m.ratio.map_or(1.0, |r| r.median),
            });
            let failure = (!m.verdict.is_correct()).then(|| m.verdict.to_string());
            (measured.is_some() || failure.is_some()).then_some(())?;
            Some(Entry {
                key: key.clone(),
                name: manifest.report.name.clone(),
                recipe: by_name(&m.id)?.recipe.clone(),
                measured,
                failure,
                date: environment.date.clone(),
            })
        })
        .collect()
}
