//! `warpwright nvcc`: a whole program built with the drop-in in ptxas's place.
//!
//! nvcc takes ptxas from its own folder, whatever `PATH` says: its profile puts that folder in front. So it is
//! started through a link in a folder of ours, which has links to all that its own folder has but for ptxas, and
//! a profile whose paths lead to the real toolkit and which puts our folder in front of that. The folder is kept in the cache: it is also what build
//! systems can be pointed at (`PYTORCH_NVCC`, `CMAKE_CUDA_COMPILER`, …).

use std::path::{Path, PathBuf};

use warpwright_toolkit::{NO_CACHE, cache_dir};

use crate::args::{Cli, NvccArgs};
use crate::failure::Failure;
use crate::session;
use warpwright_supervise::program::{become_it, command};

/// Runs the command; nvcc takes this process's place.
pub fn run(cli: &Cli, args: &NvccArgs) -> Result<(), Failure> {
    let toolkit = session::toolkit(cli)?;
    // What the environment names goes before the toolkit's own.
    let named = warpwright_dropin::real::named_by_environment().transpose();
    let named = named.map_err(|error| Failure::Missing {
        what: error.to_string(),
        mend: None,
    })?;
    let ptxas = named.as_ref().unwrap_or(&toolkit).ptxas()?;
    let ptxas = ptxas.tool().path.clone();
    let folder = folder(&toolkit.nvcc()?.tool().path)?;
    if args.folder {
        crate::terminal::document(&format!("{}\n", folder.display()));
        return Ok(());
    }
    if args.nvcc.is_empty() {
        return Err(Failure::Usage(
            "nvcc's arguments are wanted after `--`".into(),
        ));
    }
    let mut words = vec![folder.join("nvcc").into_os_string()];
    words.extend(args.nvcc.iter().cloned());
    let mut program = command(&words)?;
    program.env(warpwright_dropin::real::VARIABLE, ptxas);
    if let Some(policy) = args.policy {
        program.env(warpwright_dropin::policy::POLICY, policy.name());
    }
    Err(Failure::Missing {
        what: become_it(program).to_string(),
        mend: None,
    })
}

/// The folder for a toolkit, made if it is not there.
fn folder(nvcc: &Path) -> Result<PathBuf, Failure> {
    let fail =
        |path: &Path, e: std::io::Error| Failure::input(format!("`{}`: {e}", path.display()));
    let real = std::fs::canonicalize(nvcc).map_err(|e| fail(nvcc, e))?;
    let bin = real.parent().unwrap_or(Path::new("/"));
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    let own = own.map_err(|e| fail(Path::new("warpwright"), e))?;
    let dropin = own.with_file_name("warpwright-ptxas");
    if !dropin.is_file() {
        return Err(Failure::Missing {
            what: format!("there is no `{}`", dropin.display()),
            mend: Some("cargo build --release --workspace".into()),
        });
    }
    let profile = std::fs::read_to_string(bin.join("nvcc.profile")).map_err(|e| fail(bin, e))?;
    let cache = cache_dir().ok_or_else(|| Failure::Missing {
        what: "there is no cache folder (HOME is not set)".into(),
        mend: Some(NO_CACHE.into()),
    })?;
    let parts = [real.as_os_str(), dropin.as_os_str(), profile.as_ref()];
    let parts = parts.map(|part| part.as_encoded_bytes());
    let name = warpwright_driver::database::hash(&parts);
    let folder = cache.join("nvcc").join(&name[..16]);
    if folder.join("nvcc.profile").is_file() {
        return Ok(folder);
    }
    let parent = cache.join("nvcc");
    std::fs::create_dir_all(&parent).map_err(|e| fail(&parent, e))?;
    let new = tempfile::tempdir_in(&parent).map_err(|e| fail(&parent, e))?;
    let link = |to: &Path, name: &str| {
        let path = new.path().join(name);
        std::os::unix::fs::symlink(to, &path).map_err(|e| fail(&path, e))
    };
    // nvcc looks for more than its profile beside itself (crt/link.stub).
    for entry in std::fs::read_dir(bin).map_err(|e| fail(bin, e))? {
        let name = entry.map_err(|e| fail(bin, e))?.file_name();
        if let Some(name) = name
            .to_str()
            .filter(|n| !["ptxas", "nvcc.profile"].contains(n))
        {
            link(&bin.join(name), name)?;
        }
    }
    link(&dropin, "ptxas")?;
    // The last addition to PATH stands first in it.
    let edited = format!(
        "{}\nPATH += {}:\n",
        profile
            .replace("$(_HERE_)", &bin.display().to_string())
            .trim_end(),
        folder.display()
    );
    let path = new.path().join("nvcc.profile");
    std::fs::write(&path, edited).map_err(|e| fail(&path, e))?;
    let new = new.keep();
    // Somebody else may have been faster, with the same contents.
    if std::fs::rename(&new, &folder).is_err() {
        let _ = std::fs::remove_dir_all(&new);
    }
    match folder.join("nvcc.profile").is_file() {
        true => Ok(folder),
        false => Err(Failure::input(format!(
            "cannot make `{}`",
            folder.display()
        ))),
    }
}
