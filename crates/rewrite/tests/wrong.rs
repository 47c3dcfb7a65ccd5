//! Wrong rewrites that were once taken for right ones, each in `wrong`: the original (`-a`), the rewrite (`-b`) and the
//! launch of both. None is proved.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::path::{Path, PathBuf};

use warpwright_emu::Emulator;
use warpwright_launch::{LaunchFile, no_files};
use warpwright_ptx::Module;
use warpwright_rewrite::{AtLaunch, Options, Paired, Side, Standing, Step, compare};

/// The same over the reals, but not bit for bit.
const ROUNDED: [&str; 5] = [
    "magnitude-of-a-negation-that-flushes",
    "negation-that-flushes",
    "negation-that-flushes-a-factor",
    "one-product-as-two",
    "reciprocal-for-a-full-quotient",
];

fn side(path: &Path, version: &str, file: &LaunchFile) -> Side {
    let name = path.file_stem().unwrap().to_string_lossy();
    let ptx = path.with_file_name(format!("{name}-{version}.ptx"));
    let text = std::fs::read_to_string(&ptx).unwrap();
    let (module, diagnostics) = Module::parse(version, &text);
    assert!(
        !diagnostics.iter().any(|d| d.is_error()),
        "{}",
        ptx.display()
    );
    let launch = file.resolve("small", &[]).unwrap();
    let contents = launch.buffers().map(|b| b.materialize(&no_files).unwrap());
    let contents = contents.collect();
    let program = Emulator::new(&module, &launch.kernel).unwrap();
    Side {
        name: version.to_owned(),
        steps: vec![Step {
            program,
            launch,
            contents,
        }],
    }
}

fn found(path: &Path) -> AtLaunch {
    let file = LaunchFile::parse(&std::fs::read_to_string(path).unwrap(), "k").unwrap();
    let [a, b] = ["a", "b"].map(|version| side(path, version, &file));
    let paired = Paired::of(&a, &b, &[]).unwrap();
    compare(&a, &b, &paired, &Options::default())
}

#[test]
fn none_of_them_is_proved() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong");
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path());
    let is_launch = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml");
    let mut launches: Vec<PathBuf> = entries.filter(is_launch).collect();
    launches.sort();
    assert!(launches.len() >= 39, "the test runs dry");
    let mut proved = Vec::new();
    for path in launches {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let found = found(&path);
        let least = match ROUNDED.contains(&&*name) {
            true => Standing::UpToRounding,
            false => Standing::Tested,
        };
        if found.standing < least {
            let why: Vec<String> = found.why.iter().map(ToString::to_string).collect();
            proved.push(format!("{name}: {:?}: {}", found.standing, why.join("; ")));
        }
    }
    assert!(proved.is_empty(), "{}", proved.join("\n"));
}
