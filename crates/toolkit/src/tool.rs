//! One program of the toolkit: where it is, who said so, and which version it is.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::dirs::{cache_dir, read_regular, write_atomically};
use crate::error::ToolError;
use crate::install::sha256_of;
use crate::process::Invocation;

/// A program of the CUDA toolkit that Warpwright uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// CUDA C++ to PTX or cubin.
    Nvcc,
    /// PTX to cubin.
    Ptxas,
    /// Lists and extracts what a fat binary holds.
    Cuobjdump,
    /// cubin to text.
    Nvdisasm,
    /// Packs cubins and PTX into a fat binary.
    Fatbinary,
}

impl ToolKind {
    /// All of them, in the order in which they are listed to the user.
    pub const ALL: [ToolKind; 5] = [
        ToolKind::Nvcc,
        ToolKind::Ptxas,
        ToolKind::Cuobjdump,
        ToolKind::Nvdisasm,
        ToolKind::Fatbinary,
    ];

    /// The program's file name.
    pub fn name(self) -> &'static str {
        match self {
            ToolKind::Nvcc => "nvcc",
            ToolKind::Ptxas => "ptxas",
            ToolKind::Cuobjdump => "cuobjdump",
            ToolKind::Nvdisasm => "nvdisasm",
            ToolKind::Fatbinary => "fatbinary",
        }
    }
}

impl std::fmt::Display for ToolKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Which of the searched places a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// `--toolkit DIR`.
    Option,
    /// The variable `WARPWRIGHT_TOOLKIT`.
    Variable,
    /// The variable `CUDA_HOME`.
    CudaHome,
    /// The variable `CUDA_PATH`.
    CudaPath,
    /// A directory in `PATH`.
    Path,
    /// Installed by `warpwright toolkit install`.
    Cache,
    /// The variable `WARPWRIGHT_REAL_PTXAS` of the drop-in.
    RealPtxas,
    /// What the drop-in's caller would have run.
    Host,
}

impl Origin {
    /// The name of the option, variable or place.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Option => "--toolkit",
            Origin::Variable => "WARPWRIGHT_TOOLKIT",
            Origin::CudaHome => "CUDA_HOME",
            Origin::CudaPath => "CUDA_PATH",
            Origin::Path => "PATH",
            Origin::Cache => "warpwright cache",
            Origin::RealPtxas => "WARPWRIGHT_REAL_PTXAS",
            Origin::Host => "the host",
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What `TOOL --version` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Major version of the toolkit.
    pub major: u32,
    /// Minor version of the toolkit.
    pub minor: u32,
    /// NVIDIA's build number, the last part of `V13.5.37`.
    pub build: u32,
    /// The whole text as printed: it tells builds of the same version apart.
    pub text: String,
}

impl Version {
    /// Reads `… release 13.5, V13.5.37 …`.
    pub fn parse(text: &str) -> Option<Version> {
        let after = text
            .match_indices(", V")
            .map(|(at, m)| &text[at + m.len()..]);
        after.into_iter().find_map(|rest| {
            let end = rest
                .find(|c: char| c != '.' && !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let mut parts = rest[..end].split('.').map(|part| part.parse().ok());
            let (major, minor, build) = (parts.next()??, parts.next()??, parts.next()??);
            let text = text.trim().to_owned();
            parts.next().is_none().then_some(Version {
                major,
                minor,
                build,
                text,
            })
        })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.build)
    }
}

/// A program that was found.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Which one.
    pub kind: ToolKind,
    /// Its file.
    pub path: PathBuf,
    /// Which of the searched places held it.
    pub origin: Origin,
    version: OnceLock<Version>,
    digest: OnceLock<String>,
}

/// `--version` answers at once; a program that does not is not the tool.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

impl Tool {
    pub(crate) fn new(kind: ToolKind, path: PathBuf, origin: Origin) -> Self {
        Tool {
            kind,
            path,
            origin,
            version: OnceLock::new(),
            digest: OnceLock::new(),
        }
    }

    /// Its version. The first call ever runs `TOOL --version`; the answer is kept in the cache, by path,
    /// size and times of change, so that later calls cost the reading of one small file.
    ///
    /// # Errors
    /// The program cannot be run, or does not answer as the tool does.
    pub fn version(&self) -> Result<&Version, ToolError> {
        if let Some(version) = self.version.get() {
            return Ok(version);
        }
        let version = remembered("versions", &self.path, || self.ask())?;
        Ok(self.version.get_or_init(|| version))
    }

    /// SHA-256 of the program's file: what tells apart two programs that call themselves the same version.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn digest(&self) -> Result<&str, ToolError> {
        if let Some(digest) = self.digest.get() {
            return Ok(digest);
        }
        let digest = digest_of(&self.path)?;
        Ok(self.digest.get_or_init(|| digest))
    }

    pub(crate) fn ask(&self) -> Result<Version, ToolError> {
        let call = Invocation::new(self.kind.name(), &self.path, VERSION_LIMIT).arg("--version");
        let text = call.run()?.text();
        Version::parse(&text).ok_or_else(|| ToolError::Garbage {
            tool: self.kind.to_string(),
            reason: format!("`{} --version` names no version", self.path.display()),
        })
    }
}

/// SHA-256 of a file that seldom changes, kept by path, size and times of change.
pub(crate) fn digest_of(path: &Path) -> Result<String, ToolError> {
    remembered("digests", path, || {
        sha256_of(path).map_err(|e| ToolError::io(path, e))
    })
}

/// What was found out about a file, from the cache while the file is unchanged.
fn remembered<T: Serialize + DeserializeOwned>(
    what: &str,
    path: &Path,
    find_out: impl FnOnce() -> Result<T, ToolError>,
) -> Result<T, ToolError> {
    let stamp = Stamp::of(path).map_err(|e| ToolError::io(path, e))?;
    let file = cache_dir().map(|dir| dir.join(what).join(stamp.file_name()));
    if let Some(known) = file.as_deref().and_then(|file| stamp.recall(file)) {
        return Ok(known);
    }
    let found = find_out()?;
    if let Some(file) = file {
        stamp.remember(&file, &found);
    }
    Ok(found)
}

/// What identifies a file without reading it.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    path: PathBuf,
    /// Device and number of the file, and when its contents and its state last changed, in nanoseconds.
    file: (u64, u64),
    modified_ns: (i64, i64),
    changed_ns: (i64, i64),
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Remembered<T> {
    stamp: Stamp,
    found: T,
}

impl Stamp {
    fn of(path: &Path) -> std::io::Result<Stamp> {
        let data = std::fs::metadata(path)?;
        Ok(Stamp {
            path: path.to_path_buf(),
            file: (data.dev(), data.ino()),
            modified_ns: (data.mtime(), data.mtime_nsec()),
            changed_ns: (data.ctime(), data.ctime_nsec()),
            bytes: data.len(),
        })
    }

    fn file_name(&self) -> String {
        let digest = Sha256::digest(self.path.as_os_str().as_encoded_bytes());
        format!("{}.json", crate::hex(&digest[..12]))
    }

    fn recall<T: DeserializeOwned>(&self, file: &Path) -> Option<T> {
        let kept: Remembered<T> = serde_json::from_slice(&read_regular(file).ok()?).ok()?;
        (kept.stamp == *self).then_some(kept.found)
    }

    /// Best effort: a cache that cannot be written only costs time.
    fn remember<T: Serialize>(self, file: &Path, found: &T) {
        let kept = Remembered { stamp: self, found };
        if let Ok(bytes) = serde_json::to_vec(&kept) {
            let _ = write_atomically(file, &bytes);
        }
    }
}

/// The limit of a run that nobody gave another one: [`PATIENCE_VARIABLE`], else five minutes. ptxas needs
/// a second for nearly every kernel; one that hangs must not hold up its caller for hours.
pub fn patience() -> Duration {
    const DEFAULT: Duration = Duration::from_secs(300);
    let given = std::env::var(PATIENCE_VARIABLE).ok();
    let seconds = given.and_then(|text| text.parse::<f64>().ok());
    let limit = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    limit.filter(|limit| !limit.is_zero()).unwrap_or(DEFAULT)
}

/// Seconds after which a tool is given up.
pub const PATIENCE_VARIABLE: &str = "WARPWRIGHT_TOOL_SECONDS";
