//! What tests need of the outside world: NVIDIA's header, a C++ compiler, and a way to say what was skipped.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says loudly that a test did not run, and why. A line goes to standard output and to the file that
/// `WARPWRIGHT_SKIP_LOG` names (default: `skipped.log` among the build's temporary files), so that a summary
/// can list what was skipped even where the test runner hides the output.
///
/// # Panics
/// With `WARPWRIGHT_REQUIRE_TOOLKIT` set (and not `0`): then what cannot run has failed.
pub fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    let required = env::var_os("WARPWRIGHT_REQUIRE_TOOLKIT");
    assert!(
        required.is_none_or(|value| value.is_empty() || value == "0"),
        "{line}"
    );
    println!("{line}");
    let default = || Path::new(env!("CARGO_TARGET_TMPDIR")).join("skipped.log");
    let log = env::var_os("WARPWRIGHT_SKIP_LOG").map_or_else(default, PathBuf::from);
    let mut log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .unwrap();
    writeln!(log, "{line}").unwrap();
}

/// The directory that holds `cuda_occupancy.h`, searched as `warpwright toolkit` searches: the toolkit that
/// `WARPWRIGHT_TOOLKIT`, `CUDA_HOME` or `CUDA_PATH` names, nvcc's on the `PATH`, Warpwright's own cache.
pub fn header_directory() -> Option<PathBuf> {
    let named = ["WARPWRIGHT_TOOLKIT", "CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(env::var_os);
    let on_path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&on_path).filter_map(|bin| {
        fs::canonicalize(bin.join("nvcc"))
            .ok()?
            .parent()?
            .parent()
            .map(PathBuf::from)
    });
    let includes = named
        .map(PathBuf::from)
        .chain(on_path)
        .map(|root| root.join("include"));
    let has_header = |directory: &PathBuf| directory.join("cuda_occupancy.h").is_file();
    includes
        .into_iter()
        .find(has_header)
        .or_else(|| find_below(&cache()?, 8))
}

fn cache() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    variable("WARPWRIGHT_CACHE")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("warpwright")))
        .or_else(|| Some(variable("HOME")?.join(".cache/warpwright")))
}

/// The first directory in order of names that holds the header, at most `depth` levels below `directory`.
fn find_below(directory: &Path, depth: u32) -> Option<PathBuf> {
    if directory.join("cuda_occupancy.h").is_file() {
        return Some(directory.to_owned());
    }
    let mut below: Vec<_> = fs::read_dir(directory)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    below.sort();
    below
        .into_iter()
        .filter(|path| depth > 0 && path.is_dir())
        .find_map(|path| find_below(&path, depth - 1))
}

/// The version of the toolkit whose headers these are: 13050 for 13.5.
pub fn cuda_version(include: &Path) -> Option<u32> {
    let header = fs::read_to_string(include.join("cuda.h")).ok()?;
    let define = header
        .lines()
        .find_map(|line| line.trim().strip_prefix("#define CUDA_VERSION"))?;
    define.trim().parse().ok()
}

/// The host's C++ compiler: `CXX`, or the first of the usual names that runs.
pub fn cxx() -> Option<String> {
    let named = env::var("CXX").ok();
    let usual = ["c++", "g++", "clang++"].map(String::from);
    let runs = |name: &String| {
        Command::new(name)
            .arg("--version")
            .output()
            .is_ok_and(|o| o.status.success())
    };
    named.into_iter().chain(usual).find(runs)
}
