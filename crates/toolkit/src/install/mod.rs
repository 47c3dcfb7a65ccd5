//! Fill the cache with a CUDA toolkit, from NVIDIA's own Python wheels.
//!
//! In order: lock; look whether it is there already and intact; download each wheel and check its digest;
//! unpack all of them side by side; try the tools; write the manifest; rename into place. Everything before
//! the renaming happens in a staging directory, so that an interruption leaves no half toolkit, and finished
//! downloads are taken up again. The lock is the operating system's: it ends with the process.

mod manifest;
mod pins;
mod python;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use self::manifest::Manifest;
pub(crate) use self::manifest::sha256_of;
use self::pins::{Pins, Set, Wheel};
use self::python::Python;
use crate::dirs::cache_dir;
use crate::error::ToolError;
use crate::tool::{Origin, Tool, ToolKind};

/// What to install.
#[derive(Debug, Clone, Default)]
pub struct InstallOptions {
    /// `13.5`, `13.0`, or a full version; by default the first of [`installable`].
    pub version: Option<String>,
    /// The Python to use; by default the first of `python3` and `python` that has pip.
    pub python: Option<PathBuf>,
}

/// How far an installation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Another process installs the same toolkit; waiting for it.
    Waiting,
    /// Checking the files of an existing installation.
    Verifying,
    /// The existing installation is not intact (this file is not) and is made anew.
    Damaged(PathBuf),
    /// Fetching a package.
    Downloading {
        /// Its name and version.
        package: String,
        /// Its number, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// Writing the files.
    Unpacking,
    /// Digesting the files and trying the tools.
    Checking,
}

/// A toolkit in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its directory; the tools are in `bin`.
    pub dir: PathBuf,
    /// The version of nvcc and ptxas.
    pub version: String,
    /// Whether it was there already, intact.
    pub already: bool,
}

/// Why there is no installation. For the user, each means a tool that is missing: exit code 3.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// No such version is pinned.
    #[error("there is no toolkit `{asked}` to install; choose one of {known}")]
    UnknownVersion {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// NVIDIA offers no wheels for this machine.
    #[error(
        "there are no toolkit wheels for {0}; install the CUDA toolkit by other means and name it with WARPWRIGHT_TOOLKIT"
    )]
    Unsupported(String),
    /// The list of pinned wheels does not parse.
    #[error("the list of pinned wheels is broken: {0}")]
    Pins(String),
    /// There is nowhere to put it.
    #[error("no cache directory: set WARPWRIGHT_CACHE, XDG_CACHE_HOME or HOME")]
    NoCacheDir,
    /// No Python.
    #[error(
        "no python3 found: it fetches and unpacks the wheels; install it (Debian and Ubuntu: apt install python3-venv) and run the command again"
    )]
    NoPython,
    /// A Python without pip that cannot make itself one.
    #[error(
        "`{}` has no pip and cannot make an environment with one; install it (Debian and Ubuntu: apt install python3-pip or python3-venv) and run the command again", .python.display()
    )]
    NoPip {
        /// The interpreter.
        python: PathBuf,
        /// What it said.
        log: String,
    },
    /// The package index cannot be reached.
    #[error("cannot fetch {package}: the network or the package index cannot be reached")]
    Network {
        /// Name and version.
        package: String,
        /// What pip said.
        log: String,
    },
    /// The package index has no such wheel.
    #[error("cannot fetch {package}: the package index offers no such wheel for this machine")]
    NotOffered {
        /// Name and version.
        package: String,
    },
    /// What was fetched is not what was pinned.
    #[error("{package} does not have the pinned SHA-256 digest; nothing was installed")]
    Checksum {
        /// Name and version.
        package: String,
    },
    /// pip failed in another way.
    #[error("pip cannot fetch {package}: {}", last_line(.log))]
    Pip {
        /// Name and version.
        package: String,
        /// What it said.
        log: String,
    },
    /// The disk is full.
    #[error("no space left on the disk that holds `{}` (a toolkit takes about 500 MB while it is installed)", .path.display())]
    DiskFull {
        /// Where.
        path: PathBuf,
    },
    /// The files are there, but a tool does not run on this machine.
    #[error("the toolkit was fetched, but {tool} does not run on this machine: {reason}")]
    Unusable {
        /// Which one.
        tool: ToolKind,
        /// Why.
        reason: String,
    },
    /// A program did not end as it should.
    #[error(transparent)]
    Tool(ToolError),
    /// A file could not be read or written.
    #[error("`{}`: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl InstallError {
    fn io(path: &Path, source: std::io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            std::io::ErrorKind::StorageFull => InstallError::DiskFull { path },
            _ => InstallError::Io { path, source },
        }
    }

    /// What a program printed, for `-v`.
    pub fn log(&self) -> Option<&str> {
        match self {
            InstallError::NoPip { log, .. }
            | InstallError::Network { log, .. }
            | InstallError::Pip { log, .. }
            | InstallError::Tool(ToolError::Rejected { log, .. }) => Some(log),
            _ => None,
        }
    }
}

fn last_line(log: &str) -> &str {
    log.lines()
        .rfind(|line| !line.trim().is_empty())
        .unwrap_or("it said nothing")
        .trim()
}

/// The versions that can be installed, the default first.
///
/// # Errors
/// The pinned list is broken.
pub fn installable() -> Result<Vec<String>, InstallError> {
    Ok(Pins::built_in()?.series())
}

/// Puts a toolkit into the cache. Where it is already, its files are checked and nothing else happens.
///
/// # Errors
/// See [`InstallError`]; whatever happens, an intact toolkit that was there before stays.
pub fn install(
    options: &InstallOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Installed, InstallError> {
    let pins = Pins::built_in()?;
    let set = pins.select(options.version.as_deref())?;
    let cache = cache_dir().ok_or(InstallError::NoCacheDir)?;
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let base = cache.join("toolkits");
    let site = Site {
        base: &base,
        set,
        machine,
        python: options.python.as_deref(),
    };
    if system != "linux"
        || set
            .wheels
            .iter()
            .any(|wheel| wheel.sha256(machine).is_empty())
    {
        return Err(InstallError::Unsupported(format!("{system} on {machine}")));
    }
    site.install(progress)
}

/// The full version that a series stands for.
pub(crate) fn version_of(series: &str) -> Option<String> {
    let pins = Pins::built_in().ok()?;
    pins.select(Some(series))
        .ok()
        .map(|set| set.version.clone())
}

/// Toolkits in the cache: the pinned ones in their order, then any others by name.
pub(crate) fn installed_in(cache: &Path) -> Vec<PathBuf> {
    let Ok(pins) = Pins::built_in() else {
        return Vec::new();
    };
    let entries = fs::read_dir(cache.join("toolkits"))
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .filter(|entry| entry.path().join(manifest::NAME).is_file())
        .map(|entry| {
            (
                pins.rank(&entry.file_name().to_string_lossy()),
                entry.path(),
            )
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, dir)| dir).collect()
}

/// One toolkit and the place where it goes.
struct Site<'a> {
    base: &'a Path,
    set: &'a Set,
    machine: &'a str,
    python: Option<&'a Path>,
}

impl Site<'_> {
    fn install(&self, progress: &mut dyn FnMut(Progress)) -> Result<Installed, InstallError> {
        fs::create_dir_all(self.base).map_err(|e| InstallError::io(self.base, e))?;
        let _lock = self.lock(progress)?;
        let target = self.base.join(&self.set.version);
        let done = |already| Installed {
            dir: target.clone(),
            version: self.set.version.clone(),
            already,
        };
        if let Some(manifest) = Manifest::load(&target) {
            progress(Progress::Verifying);
            let damage = match manifest.pins == self.set.digest(self.machine) {
                true => manifest.first_damage(&target),
                false => Some(Path::new(manifest::NAME)),
            };
            let Some(damage) = damage else {
                linkable(&target)?;
                return Ok(done(true));
            };
            progress(Progress::Damaged(target.join(damage)));
        }
        let staging = self.base.join(format!(".staging-{}", self.set.version));
        let result = self
            .stage(&staging, progress)
            .and_then(|tree| replace(&tree, &target, &staging));
        // Finished downloads are worth keeping for the next try, unless there is no room for them.
        match result {
            Ok(()) | Err(InstallError::DiskFull { .. }) => drop(fs::remove_dir_all(&staging)),
            Err(_) => clear(&staging),
        }
        result?;
        linkable(&target)?;
        Ok(done(false))
    }

    /// Waits until no other process installs this version.
    fn lock(&self, progress: &mut dyn FnMut(Progress)) -> Result<File, InstallError> {
        let path = self.base.join(format!(".lock-{}", self.set.version));
        let failed = |e| InstallError::io(&path, e);
        let file = File::create(&path).map_err(failed)?;
        if file.try_lock().is_err() {
            progress(Progress::Waiting);
            file.lock().map_err(failed)?;
        }
        Ok(file)
    }

    /// Makes the whole toolkit in the staging directory; returns its root.
    fn stage(
        &self,
        staging: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PathBuf, InstallError> {
        let work = fresh_work_dir(staging)?;
        let python = Python::find(self.python, &work)?;
        let mut wheels = Vec::new();
        for (index, wheel) in self.set.wheels.iter().enumerate() {
            let package = format!("{} {}", wheel.name, wheel.version);
            let of = self.set.wheels.len();
            progress(Progress::Downloading {
                package,
                number: index + 1,
                of,
            });
            wheels.push(self.fetch(&python, wheel, &work, &wheel_dir(staging))?);
        }
        progress(Progress::Unpacking);
        let site = work.join("site");
        make_dir(&site)?;
        python.unpack(&wheels, &site)?;
        progress(Progress::Checking);
        let root = gather(&site)?;
        try_tools(&root)?;
        let pins = self.set.digest(self.machine);
        let manifest = Manifest::of(&root, &self.set.version, pins);
        manifest
            .and_then(|manifest| manifest.save(&root))
            .map_err(|e| InstallError::io(&root, e))?;
        Ok(root)
    }

    /// The wheel's file: a finished one of an earlier try, or a new one.
    fn fetch(
        &self,
        python: &Python,
        wheel: &Wheel,
        work: &Path,
        finished: &Path,
    ) -> Result<PathBuf, InstallError> {
        let intact =
            |path: &Path| sha256_of(path).is_ok_and(|found| found == wheel.sha256(self.machine));
        let kept = finished.join(format!("{}-{}.whl", wheel.name, wheel.version));
        if intact(&kept) {
            return Ok(kept);
        }
        let dir = work.join(&wheel.name);
        make_dir(&dir)?;
        let fetched = python.download(wheel, self.machine, &dir)?;
        if !intact(&fetched) {
            let package = format!("{} {}", wheel.name, wheel.version);
            return Err(InstallError::Checksum { package });
        }
        fs::rename(&fetched, &kept).map_err(|e| InstallError::io(&kept, e))?;
        Ok(kept)
    }
}

fn make_dir(path: &Path) -> Result<(), InstallError> {
    fs::create_dir_all(path).map_err(|e| InstallError::io(path, e))
}

/// Where finished downloads wait in the staging directory.
fn wheel_dir(staging: &Path) -> PathBuf {
    staging.join("wheels")
}

/// Removes everything that a try left in the staging directory but its finished downloads.
fn clear(staging: &Path) {
    let wheels = wheel_dir(staging);
    let entries = fs::read_dir(staging).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.path() != wheels) {
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// An empty directory in the staging directory, of a name that no process of an interrupted try can still
/// be writing to.
fn fresh_work_dir(staging: &Path) -> Result<PathBuf, InstallError> {
    clear(staging);
    make_dir(&wheel_dir(staging))?;
    let made = tempfile::Builder::new().prefix("work-").tempdir_in(staging);
    made.map(tempfile::TempDir::keep)
        .map_err(|e| InstallError::io(staging, e))
}

/// The wheels unpack into `nvidia/cu13` (one tree for all) and `NAME.dist-info` (licences and file lists):
/// brings the latter into the tree, as `wheels/`.
fn gather(site: &Path) -> Result<PathBuf, InstallError> {
    let root = site.join("nvidia").join("cu13");
    let notes = root.join("wheels");
    make_dir(&notes)?;
    for entry in fs::read_dir(site)
        .map_err(|e| InstallError::io(site, e))?
        .flatten()
    {
        if entry.path().extension().is_some_and(|e| e == "dist-info") {
            let to = notes.join(entry.file_name());
            fs::rename(entry.path(), &to).map_err(|e| InstallError::io(&to, e))?;
        }
    }
    Ok(root)
}

/// The names that linkers and build systems look for, which wheels leave out: `libNAME.so` beside `libNAME.so.13`, and
/// `lib64`.
fn linkable(root: &Path) -> Result<(), InstallError> {
    let link = |to: &Path, at: PathBuf| {
        if at.symlink_metadata().is_ok() {
            return Ok(());
        }
        std::os::unix::fs::symlink(to, &at).map_err(|e| InstallError::io(&at, e))
    };
    let folder = root.join("lib");
    let Ok(entries) = fs::read_dir(&folder) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if let Some((stem, version)) = name.to_str().and_then(|name| name.split_once(".so."))
            && version.chars().all(|c| c.is_ascii_digit())
        {
            link(Path::new(&name), folder.join(format!("{stem}.so")))?;
        }
    }
    link(Path::new("lib"), root.join("lib64"))
}

/// Every tool is there and says its version.
fn try_tools(root: &Path) -> Result<(), InstallError> {
    for kind in ToolKind::ALL {
        let tool = Tool::new(kind, root.join("bin").join(kind.name()), Origin::Cache);
        let unusable = |e: ToolError| InstallError::Unusable {
            tool: kind,
            reason: e.to_string(),
        };
        tool.ask().map_err(unusable)?;
    }
    Ok(())
}

/// Puts the new tree in place of whatever is there.
fn replace(tree: &Path, target: &Path, staging: &Path) -> Result<(), InstallError> {
    let failed = |e| InstallError::io(target, e);
    if target.exists() {
        let old = staging.join("old");
        fs::rename(target, &old).map_err(failed)?;
    }
    fs::rename(tree, target).map_err(failed)
}
