//! Pairs of kernels with a launch, one file each (`tests/files`): `right-*` are the same bit for bit, `nans-*` but for the
//! bits of NaNs, `rounded-*` up to rounding, `tested-*` are right, and it is not known; of `wrong-*` nothing of it may be
//! said, and `refuted-*` are at fault.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use warpwright_emu::Emulator;
use warpwright_launch::{LaunchFile, no_files};
use warpwright_ptx::Module;
use warpwright_rewrite::{AtLaunch, Options, Paired, Side, Standing, Step, compare};

/// A kernel at the launch that the comment at the file's head describes.
fn side(module: &Module, launch: &str, kernel: &str) -> Side {
    let text = format!("kernel = \"{kernel}\"\n{launch}");
    let launch = LaunchFile::parse(&text, kernel).unwrap();
    let launch = launch.resolve("small", &[]).unwrap();
    let contents = launch.buffers().map(|b| b.materialize(&no_files).unwrap());
    let contents = contents.collect();
    let program = Emulator::new(module, &launch.kernel).unwrap();
    Side {
        name: kernel.to_owned(),
        steps: vec![Step {
            program,
            launch,
            contents,
        }],
    }
}

fn found(path: &Path) -> AtLaunch {
    let text = std::fs::read_to_string(path).unwrap();
    let launch = text.lines().map_while(|line| line.strip_prefix("// "));
    let launch = launch.collect::<Vec<&str>>().join("\n");
    // One for both, or the second one's behind it.
    let (first, second) = launch.split_once("\nb\n").unwrap_or((&launch, &launch));
    let (module, diagnostics) = Module::parse("pair", &text);
    assert!(!diagnostics.iter().any(|d| d.is_error()));
    let (a, b) = (side(&module, first, "a"), side(&module, second, "b"));
    let paired = Paired::of(&a, &b, &[]).unwrap();
    compare(&a, &b, &paired, &Options::default())
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

#[test]
fn pairs_stand_as_their_names_say() {
    let mut bad = String::new();
    for path in files() {
        let name = path.file_stem().unwrap().to_string_lossy();
        let found = found(&path);
        let is_so = match name.split('-').next() {
            Some("right") => found.standing == Standing::BitForBit,
            Some("nans") => found.standing == Standing::ButNans,
            Some("rounded") => found.standing == Standing::UpToRounding,
            Some("tested") => found.standing == Standing::Tested,
            Some("refuted") => found.standing == Standing::Refuted,
            Some("wrong") => found.standing > Standing::UpToRounding,
            _ => false,
        };
        let why: Vec<String> = found.why.iter().map(ToString::to_string).collect();
        let line = format!("{name}: {:?}: {}", found.standing, why.join("; "));
        println!("{line}");
        if !is_so {
            writeln!(bad, "{line}").unwrap();
        }
    }
    assert!(bad.is_empty(), "{bad}");
}
