//! How the driver is called, with a driver of our own that computes on the host
//! (`driver/fake_driver.c`): the whole self-test runs through the real runner, in a real worker.
//!
//! This program starts itself with that driver first in the library path, as `selftest` or
//! `devices`; and it is its own worker.

use std::path::Path;
use std::process::{Command, Output};

use libtest_mimic::{Arguments, Failed, Trial};
use warpwright_gpu::{
    Image, Process, SelftestSize, Variant, WORKER_ARGUMENT, WorkerCommand, devices, prepare, run,
    selftest, worker_main,
};
use warpwright_launch::{LaunchFile, no_files};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some(WORKER_ARGUMENT) => std::process::exit(worker_main(&args[1..]).into()),
        Some("selftest") => std::process::exit(run_selftest()),
        Some("run") => std::process::exit(run_once()),
        Some("devices") => std::process::exit(list_devices()),
        _ => {}
    }
    let tests: [(&str, fn()); 3] = [
        ("a_run_returns_its_outputs", a_run_returns_its_outputs),
        ("the_selftest_passes", the_selftest_passes),
        ("what_is_missing_is_said", what_is_missing_is_said),
    ];
    let trials = tests
        .into_iter()
        .map(|(name, test)| {
            Trial::test(name, move || {
                test();
                Ok::<(), Failed>(())
            })
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn run_selftest() -> i32 {
    let dir = tempfile::tempdir().expect("folder");
    let mut process = Process::new(WorkerCommand::this_program(0).expect("own path"));
    let report = selftest(&mut process, dir.path(), SelftestSize::Small, &mut |_| {})
        .expect("the session runs");
    for case in report.cases.iter().filter(|c| !c.passed) {
        println!(
            "{}: expected {}, found {}",
            case.id, case.expected, case.found
        );
    }
    i32::from(!report.passed)
}

/// y = 2 x + 1, in a worker, with the driver that the caller chose.
fn run_once() -> i32 {
    let dir = tempfile::tempdir().expect("folder");
    let file =
        LaunchFile::parse(include_str!("data/selftest.toml"), "selftest.toml").expect("parses");
    let launch = file.resolve("small", &[]).expect("resolves");
    let job = prepare(&launch, dir.path(), &no_files).expect("prepares");
    let mut process = Process::new(WorkerCommand::this_program(0).expect("own path"));
    let image = Image::Bytes(include_bytes!("data/fast.ptx").to_vec());
    let done = run(&mut process, &job, &Variant::new("fast", image), 2.0).expect("runs");
    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes
            .as_chunks()
            .0
            .iter()
            .map(|c| f32::from_le_bytes(*c))
            .collect()
    };
    let x = std::fs::read(&job.buffers[0].file).expect("x");
    let expected: Vec<f32> = floats(&x).iter().map(|x| x.mul_add(2.0, 1.0)).collect();
    assert_eq!(done.outputs.len(), 1);
    assert_eq!(done.outputs[0].0, "y");
    assert_eq!(floats(&done.outputs[0].1), expected);
    assert_eq!(
        (done.resources.registers, done.resources.blocks_per_sm),
        (18, 8)
    );
    assert!(done.verdict.is_correct() && done.deterministic);
    0
}

fn list_devices() -> i32 {
    match devices() {
        Ok(found) => {
            println!("{} {} {}", found.len(), found[0].name, found[0].arch);
            0
        }
        Err(fault) => {
            println!("{fault}");
            fault.exit_code().into()
        }
    }
}

/// Compiles the driver into a folder (a C compiler is there wherever Rust links programs).
fn compile(dir: &Path, source: &Path) {
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(dir.join("libcuda.so.1"))
        .arg(source)
        .status()
        .expect("cc");
    assert!(status.success());
    // The name that is looked for first: a real driver must not come before this one.
    std::fs::copy(dir.join("libcuda.so.1"), dir.join("libcuda.so")).expect("copied");
}

fn source() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver/fake_driver.c")
}

/// This program with a driver from `dir`.
fn with_driver(dir: &Path, what: &str, settings: &[(&str, &str)]) -> Output {
    let program = std::env::current_exe().expect("own path");
    Command::new(program)
        .arg(what)
        .env("LD_LIBRARY_PATH", dir)
        .envs(settings.iter().copied())
        .output()
        .expect("starts")
}

fn the_selftest_passes() {
    let dir = tempfile::tempdir().expect("folder");
    compile(dir.path(), &source());
    let output = with_driver(dir.path(), "selftest", &[]);
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}\n{err}");
    assert_eq!(out, "");
}

fn a_run_returns_its_outputs() {
    let dir = tempfile::tempdir().expect("folder");
    compile(dir.path(), &source());
    let output = with_driver(dir.path(), "run", &[]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn what_is_missing_is_said() {
    let dir = tempfile::tempdir().expect("folder");
    compile(dir.path(), &source());
    let said = |dir: &Path, settings: &[(&str, &str)]| {
        let output = with_driver(dir, "devices", settings);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (code, text) = said(dir.path(), &[]);
    assert_eq!((code, text.trim()), (Some(0), "1 Fake GPU sm_90"));
    for (setting, value, word) in [
        ("FAKE_DRIVER_INIT", "100", "no CUDA device"),
        ("FAKE_DRIVER_INIT", "34", "stub"),
        ("FAKE_DRIVER_VERSION", "12020", "it provides CUDA 12.2"),
    ] {
        let (code, text) = said(dir.path(), &[(setting, value)]);
        assert!(
            code == Some(3) && text.contains(word),
            "{setting}={value}: {code:?} {text}"
        );
    }
    // A library of that name that lacks what is needed.
    let old = tempfile::tempdir().expect("folder");
    let source = old.path().join("old.c");
    std::fs::write(&source, "unsigned cuInit(unsigned flags) { return 0; }\n").expect("written");
    compile(old.path(), &source);
    let (code, text) = said(old.path(), &[]);
    assert!(
        code == Some(3) && text.contains("cuDriverGetVersion"),
        "{code:?} {text}"
    );
}
