//! A Python with pip: the only thing that an installation needs from the machine.
//!
//! `python3 -m pip` where it works. Distributions that take pip out of Python often leave `venv` with a
//! bundled one, so a private environment is the second try. pip only downloads: nothing is ever installed
//! into a Python.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::InstallError;
use super::pins::Wheel;
use crate::error::ToolError;
use crate::process::{Invocation, Output};

const QUICK: Duration = Duration::from_secs(120);
const DOWNLOAD: Duration = Duration::from_secs(3600);

/// An interpreter whose `-m pip` works.
pub(crate) struct Python {
    program: PathBuf,
}

impl Python {
    /// Finds one; a private environment, if one is needed, goes to `scratch`.
    pub fn find(wish: Option<&Path>, scratch: &Path) -> Result<Python, InstallError> {
        let named = wish.map(Path::to_path_buf);
        let names = || ["python3", "python"].map(PathBuf::from).to_vec();
        let names = named.map_or_else(names, |path| vec![path]);
        let alive: Vec<_> = names
            .into_iter()
            .filter(|program| succeeds(program, &["-V"]))
            .collect();
        let Some(first) = alive.first() else {
            return Err(InstallError::NoPython);
        };
        if let Some(program) = alive
            .iter()
            .find(|p| succeeds(p, &["-m", "pip", "--version"]))
        {
            return Ok(Python {
                program: program.clone(),
            });
        }
        let venv = scratch.join("venv");
        let call = Invocation::new("python3", first, QUICK)
            .args(["-m", "venv"])
            .arg(&venv);
        let made = call.run().map_err(InstallError::Tool)?;
        let program = venv.join("bin").join("python3");
        if made.status.success() && succeeds(&program, &["-m", "pip", "--version"]) {
            return Ok(Python { program });
        }
        Err(InstallError::NoPip {
            python: first.clone(),
            log: made.text(),
        })
    }

    /// Downloads one wheel into an empty directory and returns its file. pip checks the digest; so does
    /// the caller, who need not trust it.
    pub fn download(
        &self,
        wheel: &Wheel,
        machine: &str,
        dir: &Path,
    ) -> Result<PathBuf, InstallError> {
        let requirements = dir.join("requirements.txt");
        let text = format!("{}\n", wheel.requirement(machine));
        std::fs::write(&requirements, text).map_err(|e| InstallError::io(&requirements, e))?;
        let call = Invocation::new("pip", &self.program, DOWNLOAD)
            .args([
                "-m",
                "pip",
                "download",
                "--no-input",
                "--disable-pip-version-check",
            ])
            .args(["--no-cache-dir", "--progress-bar", "off", "--retries", "3"])
            .args(["--no-deps", "--only-binary", ":all:", "--require-hashes"])
            .arg("--dest")
            .arg(dir)
            .arg("--requirement")
            .arg(&requirements)
            // A user's habit of forbidding pip outside environments is no hindrance: nothing is installed.
            .env("PIP_REQUIRE_VIRTUALENV", "0")
            .env("TMPDIR", dir);
        let out = call.run().map_err(InstallError::Tool)?;
        if !out.status.success() {
            return Err(explain(wheel, dir, out.text()));
        }
        wheel_in(dir).ok_or_else(|| InstallError::Pip {
            package: wheel.name.clone(),
            log: format!("pip reports success, but left no wheel\n{}", out.text()),
        })
    }

    /// Unpacks wheels into one directory.
    pub fn unpack(&self, wheels: &[PathBuf], dir: &Path) -> Result<(), InstallError> {
        let call = Invocation::new("python3", &self.program, DOWNLOAD)
            .args(["-c", include_str!("unpack.py")])
            .arg(dir)
            .args(wheels);
        let out: Output = call.run().map_err(InstallError::Tool)?;
        if out.status.success() {
            return Ok(());
        }
        let log = out.text();
        if is_disk_full(&log) {
            return Err(InstallError::DiskFull {
                path: dir.to_path_buf(),
            });
        }
        let code = out.status.code().unwrap_or(-1);
        let tool = "python3".to_owned();
        Err(InstallError::Tool(ToolError::Rejected {
            tool,
            code,
            diagnostics: Vec::new(),
            log,
        }))
    }
}

fn succeeds(program: &Path, args: &[&str]) -> bool {
    let call = Invocation::new("python3", program, QUICK).args(args);
    call.run().is_ok_and(|out| out.status.success())
}

fn wheel_in(dir: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(dir)
        .ok()?
        .flatten()
        .map(|entry| entry.path());
    files
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "whl"))
}

fn is_disk_full(log: &str) -> bool {
    log.contains("No space left on device") || log.contains("Errno 28")
}

/// What pip's complaint comes to. Its words are not an interface, so that anything else is passed on.
fn explain(wheel: &Wheel, dir: &Path, log: String) -> InstallError {
    let package = format!("{} {}", wheel.name, wheel.version);
    let says = |marks: &[&str]| marks.iter().any(|mark| log.contains(mark));
    if is_disk_full(&log) {
        return InstallError::DiskFull {
            path: dir.to_path_buf(),
        };
    }
    if says(&["DO NOT MATCH THE HASHES"]) {
        return InstallError::Checksum { package };
    }
    // Without a network pip ends with `No matching distribution`, too: look for the cause first.
    let network = [
        "Failed to establish a new connection",
        "NewConnectionError",
        "Temporary failure in name resolution",
        "Name or service not known",
        "Network is unreachable",
        "Connection refused",
        "Connection reset",
        "ConnectTimeout",
        "ReadTimeout",
        "Read timed out",
        "Max retries exceeded",
        "Cannot connect to proxy",
        "SSLError",
    ];
    if says(&network) {
        return InstallError::Network { package, log };
    }
    if says(&["No matching distribution", "Could not find a version"]) {
        return InstallError::NotOffered { package };
    }
    InstallError::Pip { package, log }
}
