//! Candidates as files: built here, measured elsewhere, brought together in the database; by Dask, too, with a
//! worker that is lost on the way. The device is a driver that computes on the host
//! (`crates/gpu/tests/driver/fake_driver.c`).

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use warpwright_toolkit::testing::require_toolkit;

struct Bench {
    folder: tempfile::TempDir,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn data() -> PathBuf {
    repository().join("crates/gpu/tests/data")
}

impl Bench {
    /// A folder with the driver; its cache is empty.
    fn new() -> Bench {
        let bench = Bench {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        let driver = bench.path("driver");
        std::fs::create_dir(&driver).expect("a folder");
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-w", "-o"])
            .arg(driver.join("libcuda.so.1"))
            .arg(repository().join("crates/gpu/tests/driver/fake_driver.c"))
            .status()
            .expect("cc");
        assert!(status.success());
        std::fs::copy(driver.join("libcuda.so.1"), driver.join("libcuda.so")).expect("copied");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// All files below the folder.
    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("entry").path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => found.push(path),
                }
            }
        }
        found.sort();
        found
    }

    fn run(&self, program: impl AsRef<std::ffi::OsStr>, words: &[&str]) -> Output {
        Command::new(program)
            .args(words)
            .current_dir(self.folder.path())
            .env("LD_LIBRARY_PATH", self.path("driver"))
            .env("WARPWRIGHT_CACHE", self.path("cache"))
            .env("FAKE_DRIVER_DEVICES", "2")
            .env("WARPWRIGHT_TOOL", env!("CARGO_BIN_EXE_warpwright"))
            .output()
            .expect("starts")
    }

    fn warpwright(&self, words: &[&str]) -> Output {
        self.run(env!("CARGO_BIN_EXE_warpwright"), words)
    }

    /// Builds candidates of `default.ptx`.
    fn build(&self, how: &[&str]) {
        let (ptx, launch) = (data().join("default.ptx"), data().join("selftest.toml"));
        // The toolkit is found through the user's cache, not through this test's.
        let built = Command::new(env!("CARGO_BIN_EXE_warpwright"))
            .args([
                "tune",
                text(&ptx),
                "--launch",
                text(&launch),
                "--size",
                "small",
            ])
            .args(["--gpu", "sm_90", "--peers", "usual"])
            .args(how)
            .current_dir(self.folder.path())
            .output()
            .expect("starts");
        assert!(built.status.success(), "{}", said(&built));
    }

    /// Files of candidates, one candidate in each. The driver reads no machine code: the default becomes a
    /// kernel of 100 µs to it, every other one of 60 µs.
    fn jobs(&self) -> Vec<PathBuf> {
        self.build(&["--jobs", "jobs", "--per-job", "1"]);
        let mut jobs: Vec<PathBuf> = std::fs::read_dir(self.path("jobs"))
            .expect("jobs")
            .map(|entry| entry.expect("entry").path())
            .collect();
        jobs.sort();
        for job in &jobs {
            let mut document = json(job);
            let cubins = document["cubins"].as_object_mut().expect("cubins");
            assert!(cubins.contains_key("default.cubin"));
            for (name, bytes) in cubins {
                *bytes = match name.as_str() {
                    "default.cubin" => base64_of(&data().join("default.ptx")),
                    _ => base64_of(&data().join("fast.ptx")),
                };
            }
            std::fs::write(job, document.to_string()).expect("written");
        }
        jobs
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

fn base64_of(path: &Path) -> Value {
    let output = Command::new("base64").arg("-w0").arg(path).output();
    String::from_utf8(output.expect("base64").stdout)
        .expect("ASCII")
        .into()
}

#[test]
fn a_job_is_measured_and_its_result_imported() {
    let Some(_) = require_toolkit("a_job_is_measured_and_its_result_imported") else {
        return;
    };
    let bench = Bench::new();
    let jobs = bench.jobs();
    assert!(jobs.len() >= 2, "{jobs:?}");
    let before = bench.files();
    let measured =
        bench.warpwright(&["measure", text(&jobs[0]), "-o", "r.json", "--budget", "0.2"]);
    assert!(measured.status.success(), "{}", said(&measured));
    // Many jobs may run at once on a shared disk: no database, no cache, nothing but the result.
    let after = bench.files();
    let new: Vec<&PathBuf> = after.iter().filter(|path| !before.contains(path)).collect();
    assert_eq!(new, [&bench.path("r.json")]);
    let result = json(&bench.path("r.json"));
    let found = result["measurements"].as_array().expect("measurements");
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|m| m["key"]["gpu"] == "Fake GPU"));
    let ratio = found[1]["measured"]["relative_time"]
        .as_f64()
        .expect("a ratio");
    assert!((0.5..0.7).contains(&ratio), "{ratio}");
    let imported = bench.warpwright(&["tune", "--import", "r.json"]);
    assert!(
        said(&imported).contains("2 measurements imported"),
        "{}",
        said(&imported)
    );
}

#[test]
fn several_kernels_are_measured_on_two_devices() {
    let Some(_) = require_toolkit("several_kernels_are_measured_on_two_devices") else {
        return;
    };
    let bench = Bench::new();
    for folder in ["all/a", "all/b", "all/c"] {
        bench.build(&["--build-only", folder]);
        for entry in std::fs::read_dir(bench.path(folder)).expect("candidates") {
            let path = entry.expect("entry").path();
            let stands_for = match path.file_name().and_then(|name| name.to_str()) {
                Some("manifest.json") => continue,
                Some("default.cubin") => "default.ptx",
                _ => "fast.ptx",
            };
            std::fs::copy(data().join(stands_for), path).expect("copied");
        }
    }
    let words = [
        "tune",
        "--measure-only",
        "all",
        "--budget",
        "0.2",
        "-o",
        "r.json",
    ];
    let output = bench.warpwright(&words);
    assert!(output.status.success(), "{}", said(&output));
    let kernels = json(&bench.path("r.json"));
    let kernels = kernels["kernels"].as_array().expect("kernels");
    let device = |k: &Value| k["measurements"]["environment"]["device"]["ordinal"].as_u64();
    let mut devices: Vec<_> = kernels.iter().filter_map(device).collect();
    devices.sort_unstable();
    devices.dedup();
    assert_eq!((kernels.len(), devices), (3, vec![0, 1]));
    for kernel in kernels {
        let variants = kernel["measurements"]["variants"].as_array();
        let ratios = variants
            .expect("variants")
            .iter()
            .filter(|v| v["id"] != "default");
        let ratios: Vec<_> = ratios
            .filter_map(|v| v["ratio"]["median"].as_f64())
            .collect();
        assert!(!ratios.is_empty());
        assert!(ratios.iter().all(|r| (0.5..0.7).contains(r)), "{ratios:?}");
    }
}

const STENCIL: &str = "function blur (out, in) {\n  out[j][i] = 0.5 * in[j-1][i] + in[j][i+2];\n}\nparameter M, \
                       N;\niterator j, i;\ndouble in[M][N], out[M][N];\nblur (out, in);\nreturn out;\n";

/// In the place of the program: version 1 fails, version 2 is far from the host, version 0 takes 3 ms and the others 2.
const PROGRAM: &str = r#"#!/bin/sh
for version in $(echo $2 | tr , ' '); do
    if [ $1 = check ]; then
        [ -s $3 ] || exit 2
        [ $version = 1 ] && { echo 'sweep: an illegal instruction' >&2; exit 1; }
        far=0; [ $version = 2 ] && far=0.5
        echo "{\"version\":$version,\"distance\":$far}"
    else
        ms=2; [ $version = 0 ] && ms=3
        echo "{\"version\":$version,\"distance\":0,\"ms\":[$ms,$ms,$ms]}"
    fi
done
"#;

/// A stencil, and a program that launches it.
const OWN: &str = r#"
__global__ void blur(const double *a, double *b, int H, int W) {
  int j = blockIdx.x * blockDim.x + threadIdx.x + 1;
  int i = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (i < H - 1 && j < W - 1)
    b[i * W + j] = a[(i - 1) * W + j] + a[(i + 1) * W + j] + a[i * W + j - 1] + a[i * W + j + 1];
}
int main(int argc, char **) {
  int H = 96 * argc, W = 160;
  double *a, *b;
  cudaMalloc(&a, 8 * H * W);
  cudaMalloc(&b, 8 * H * W);
  cudaMemset(a, 0, 8 * H * W);
  blur<<<dim3(10, 6 * argc), dim3(16, 16)>>>(a, b, H, W);
  return cudaDeviceSynchronize();
}
"#;

#[test]
fn a_stencil_is_measured_at_the_sizes_of_its_launch() {
    if require_toolkit("a_stencil_is_measured_at_the_sizes_of_its_launch").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("own.cu"), OWN).expect("written");
    let own = std::env::current_exe().expect("own path");
    let library = own.with_file_name("libwarpwright_standin.so");
    assert!(library.exists(), "{} is missing", library.display());
    let sizes = |more: &[&str]| {
        let words = ["tune", "own.cu", "-o", "best.cu", "--gpu", "h200"];
        let built = ["--build-only", "built"];
        let output = Command::new(env!("CARGO_BIN_EXE_warpwright"))
            .args(words.iter().chain(&built).chain(more))
            .current_dir(folder.path())
            .env("WARPWRIGHT_STANDIN", &library)
            .output()
            .expect("starts");
        assert!(output.status.success(), "{}", said(&output));
        let built = json(&folder.path().join("built/stencil.json"));
        std::fs::remove_dir_all(folder.path().join("built")).expect("removed");
        let size = |name: &str| {
            let sizes = built["sizes"].as_array().expect("sizes");
            let one = sizes.iter().find(|size| size[0] == name);
            one.and_then(|one| one[1].as_i64()).expect("a size")
        };
        ((size("H"), size("W")), said(&output))
    };
    let (seen, told) = sizes(&[]);
    assert_eq!(seen, (96, 160));
    assert!(
        told.contains("H = 96, W = 160 (the launch that its program made)"),
        "{told}"
    );
    assert_eq!(sizes(&["--run-args", "2"]).0, (192, 160));
    // What is given counts first.
    assert_eq!(sizes(&["--grid", "H=64"]).0, (64, 160));
    let toml = r#"
kernel = "blur"
[sizes.full]
h = 256
w = 128
[launch]
grid = [8, 16]
block = [16, 16]
[[args]]
name = "a"
type = "f64"
shape = ["h", "w"]
init = "zeros"
[[args]]
name = "b"
type = "f64"
shape = ["h", "w"]
init = "zeros"
output = true
[[args]]
name = "H"
type = "s32"
value = "h"
[[args]]
name = "W"
type = "s32"
value = "w"
"#;
    std::fs::write(folder.path().join("l.toml"), toml).expect("written");
    assert_eq!(sizes(&["--launch", "l.toml"]).0, (256, 128));
}

#[test]
fn stencils_are_built_here_and_measured_there() {
    if require_toolkit("stencils_are_built_here_and_measured_there").is_none() {
        return;
    }
    let bench = Bench::new();
    std::fs::write(bench.path("blur.stencil"), STENCIL).expect("written");
    let words = [
        "tune",
        "blur.stencil",
        "--grid",
        "M=500",
        "--grid",
        "N=600",
        "--gpu",
        "h200",
    ];
    let more = ["-o", "best.cu", "--build-only", "built/blur"];
    let built = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(words.iter().chain(&more))
        .current_dir(bench.folder.path())
        .output()
        .expect("starts");
    assert!(built.status.success(), "{}", said(&built));
    assert!(!bench.path("best.cu").exists());
    let program = bench.path("built/blur/program");
    let machine_code = std::fs::metadata(&program).expect("a program").len();
    assert!(machine_code > 100_000, "{machine_code}");
    std::fs::write(&program, PROGRAM).expect("written");
    // A second one, which is not whole.
    std::fs::create_dir(bench.path("built/cut")).expect("a folder");
    let whole = std::fs::read_to_string(bench.path("built/blur/stencil.json")).expect("read");
    let half = &whole[..whole.len() / 2];
    std::fs::write(bench.path("built/cut/stencil.json"), half).expect("written");
    let measured = bench.warpwright(&["tune", "--measure-only", "built", "-o", "result.json"]);
    assert!(said(&measured).contains("built/cut"), "{}", said(&measured));
    assert!(!measured.status.success());
    let result = json(&bench.path("result.json"));
    assert_eq!(result["schema"], "warpwright.stencils/1");
    let stencils = result["stencils"].as_array().expect("stencils");
    assert_eq!(stencils.len(), 1);
    let versions = stencils[0]["versions"].as_array().expect("versions");
    assert!(versions.len() > 4, "{versions:?}");
    let why = |at: usize| versions[at]["rejected"].as_str().unwrap_or_default();
    assert!(
        why(1).contains("sweep: an illegal instruction"),
        "{}",
        why(1)
    );
    assert!(why(2).contains("5.0e-1 from the host"), "{}", why(2));
    for (at, version) in versions.iter().enumerate() {
        let ms = version["ms"].as_f64();
        let expected = match at {
            0 => Some(3.0),
            1 | 2 => None,
            _ => Some(2.0),
        };
        assert_eq!(ms, expected, "{at}");
    }
    assert_eq!(stencils[0]["chosen"], 3);
    // No toolkit is in reach there, so nothing was compared in the emulator.
    assert!(
        stencils[0]["unchecked"].is_string(),
        "{}",
        stencils[0]["unchecked"]
    );
    let best = std::fs::read_to_string(bench.path("built/blur/best.cu")).expect("written");
    assert!(best.contains("blur_launch"), "{best}");
}

#[test]
fn a_job_that_cannot_be_used_is_refused() {
    let bench = Bench::new();
    let refused = |job: &str, why: &str| {
        std::fs::write(bench.path("a.job"), job).expect("written");
        let output = bench.warpwright(&["measure", "a.job", "-o", "r.json"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(why), "{}", said(&output));
        assert!(!bench.path("r.json").exists());
    };
    refused("{", "EOF");
    refused("{\"schema\": \"warpwright.job/1\"}", "manifest");
    let Some(_) = require_toolkit("a_job_that_cannot_be_used_is_refused") else {
        return;
    };
    let jobs = bench.jobs();
    let job = json(&jobs[0]);
    let changed = |at: &str, to: Value, why: &str| {
        let mut job = job.clone();
        *job.pointer_mut(at).expect(at) = to;
        refused(&job.to_string(), why);
    };
    changed("/manifest/report/chosen", 99.into(), "no candidate 99");
    changed("/manifest/files/0", Value::Null, "default build is missing");
    changed("/manifest/files", Value::Array(vec![]), "0 files for");
    changed(
        "/manifest/files/0",
        "../x.cubin".into(),
        "`../x.cubin` is no name",
    );
}

/// Two workers; the first `measure` of all kills the worker that runs it. Every job is measured all the same.
#[test]
fn dask_spreads_jobs_and_outlives_a_lost_worker() {
    let Some(python) = std::env::var_os("WARPWRIGHT_PYTHON") else {
        println!("SKIPPED dask_spreads_jobs: WARPWRIGHT_PYTHON names no Python with `distributed`");
        return;
    };
    let Some(_) = require_toolkit("dask_spreads_jobs_and_outlives_a_lost_worker") else {
        return;
    };
    let bench = Bench::new();
    let jobs = bench.jobs();
    let wrapper =
        "#!/bin/sh\nmkdir killed 2>/dev/null && kill -9 $PPID\nexec \"$WARPWRIGHT_TOOL\" \"$@\"\n";
    let tool = bench.path("tool.sh");
    std::fs::write(
        &tool,
        wrapper.replace("killed", text(&bench.path("killed"))),
    )
    .expect("written");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let script = repository().join("scripts/spread.py");
    let mut words = vec![text(&script), "out"];
    words.extend(jobs.iter().map(|job| text(job)));
    words.extend(["--workers", "2", "--budget", "0.2", "--tool", text(&tool)]);
    let output = bench.run(&python, &words);
    assert!(output.status.success(), "{}", said(&output));
    assert!(bench.path("killed").is_dir(), "no worker was lost");
    let results: Vec<PathBuf> = std::fs::read_dir(bench.path("out"))
        .expect("results")
        .map(|entry| entry.expect("entry").path())
        .collect();
    assert_eq!(results.len(), jobs.len());
    let mut words = vec!["tune", "--import"];
    words.extend(results.iter().map(|path| text(path)));
    let imported = bench.warpwright(&words);
    let count = format!("{} measurements imported", 2 * jobs.len());
    assert!(said(&imported).contains(&count), "{}", said(&imported));
}

impl Bench {
    /// A measurement that goes on for long, once it has begun.
    fn begun(&self, job: &Path) -> std::process::Child {
        let mut child = Command::new(env!("CARGO_BIN_EXE_warpwright"))
            .args(["measure", text(job), "-o", "r.json", "--budget", "60"])
            .current_dir(self.folder.path())
            .env("LD_LIBRARY_PATH", self.path("driver"))
            .env("WARPWRIGHT_CACHE", self.path("cache"))
            .env("TMPDIR", self.path("scratch"))
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("starts");
        // Its worker says which candidate runs.
        for _ in 0..600 {
            let is_running = self.files().iter().any(|path| {
                path.file_name().is_some_and(|name| name == "in-flight")
                    && path.metadata().is_ok_and(|data| data.len() > 0)
            });
            if is_running {
                return child;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = child.kill();
        panic!(
            "it does not begin: {}",
            said(&child.wait_with_output().expect("ends"))
        );
    }

    /// Processes that work in this folder.
    fn processes(&self) -> usize {
        let own = self.folder.path().canonicalize().expect("a folder");
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        all.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == own))
            .count()
    }
}

/// Interrupted from the terminal or killed: no result, nothing half, nobody left behind.
#[test]
fn an_interrupted_job_leaves_nothing() {
    let Some(_) = require_toolkit("an_interrupted_job_leaves_nothing") else {
        return;
    };
    let bench = Bench::new();
    let jobs = bench.jobs();
    std::fs::create_dir(bench.path("scratch")).expect("a folder");
    let before = bench.files();
    for (signal, expected) in [("-INT", 2), ("-TERM", 15), ("-KILL", 9)] {
        let child = bench.begun(&jobs[0]);
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
        let ended = child.wait_with_output().expect("ends");
        let number = ended.status.signal();
        assert_eq!(number, Some(expected), "{signal}: {}", said(&ended));
        if signal == "-INT" {
            assert!(
                said(&ended).contains("nothing was written"),
                "{}",
                said(&ended)
            );
        }
        for _ in 0..600 {
            if bench.processes() == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(bench.processes(), 0, "{signal}: a worker is left");
        // What was killed outright leaves its scratch folder, in the place for such.
        std::fs::remove_dir_all(bench.path("scratch")).expect("removed");
        std::fs::create_dir(bench.path("scratch")).expect("a folder");
        assert_eq!(bench.files(), before, "{signal}");
    }
}

/// Files may not grow beyond a size, as on a disk that becomes full somewhere: the result is whole or it is not there,
/// and an older one stays.
#[test]
fn a_full_disk_leaves_no_half_result() {
    let Some(_) = require_toolkit("a_full_disk_leaves_no_half_result") else {
        return;
    };
    let bench = Bench::new();
    let jobs = bench.jobs();
    let measure = |blocks: u32| {
        let command = format!(
            "trap '' XFSZ; ulimit -f {blocks}; exec \"$WARPWRIGHT_TOOL\" measure '{}' -o r.json --budget 0.2",
            text(&jobs[0])
        );
        bench.run("bash", &["-c", &command])
    };
    let mut outcomes = Vec::new();
    std::fs::write(bench.path("r.json"), "older").expect("written");
    let before = bench.files();
    for blocks in [1, 2, 4, 8, 16, 100_000] {
        std::fs::write(bench.path("r.json"), "older").expect("written");
        let output = measure(blocks);
        let found = std::fs::read_to_string(bench.path("r.json")).expect("a file");
        match output.status.success() {
            true => assert_eq!(
                json(&bench.path("r.json"))["measurements"]
                    .as_array()
                    .map(Vec::len),
                Some(2)
            ),
            false => assert_eq!(found, "older", "{blocks}: {}", said(&output)),
        }
        assert_eq!(bench.files(), before);
        outcomes.push(output.status.success());
    }
    assert!(
        outcomes.contains(&false) && outcomes.contains(&true),
        "{outcomes:?}"
    );
}
