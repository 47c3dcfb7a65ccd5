//! `trace`, `tune -- PROGRAM`, `with` and `db` at the program itself, with the driver that computes on the host
//! and the program of the library's own tests (crates/inject/tests/program).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{BuildCache, PtxasJob, Toolkit};

/// A factor that the driver takes for a sign of speed.
const FAST: &str = "4FFA7FA5";
/// One for a kernel that is fast in a trial and slow in the program.
const LONELY: &str = "4FFA7FA6";
const PTX: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// The kernel of the tests' program with a factor in it, which the driver ignores but for its speed.
fn scale(factor: &str) -> String {
    format!(
        ".visible .entry scale(.param .u64 p, .param .u32 n) {{
    .reg .b64 %d<2>; .reg .f32 %f<3>;
    ld.param.u64 %d0, [p]; ld.global.f32 %f0, [%d0];
    fma.rn.f32 %f0, %f0, 0f{factor}, 0f3F800000; st.global.f32 [%d0], %f0; ret;
}}\n"
    )
}

/// A kernel that uses variables of its module, beside another one.
fn weigh(factor: &str) -> String {
    format!(
        ".visible .const .align 4 .f32 weights[8];\n.visible .global .align 4 .f32 bias;\n
.visible .global .align 4 .u32 total;\n{}.visible .entry weigh(.param .u64 p, .param .u32 n) {{
    .reg .b64 %d; .reg .f32 %f<5>; .reg .b32 %r<3>;
    ld.param.u64 %d, [p]; ld.global.f32 %f0, [%d]; ld.const.f32 %f1, [weights+4]; ld.global.f32 %f2, [bias];
    fma.rn.f32 %f0, %f0, %f1, %f2; fma.rn.f32 %f0, %f0, 0f{factor}, 0f3F800000; st.global.f32 [%d], %f0;
    atom.global.add.u32 %r1, [total], 1; ret;
}}\n",
        scale("40000000")
    )
}

fn build(toolkit: &Toolkit, ptx: &str) -> Vec<u8> {
    let job = PtxasJob::new(ptx, "sm_90");
    let ptxas = toolkit.ptxas().expect("ptxas");
    let build = BuildCache::standard().ptxas(&ptxas, &job);
    build.expect("ptxas takes it").cubin.to_vec()
}

/// A fat binary with a cubin and PTX, as nvcc makes it.
fn fat_binary(cubin: &[u8], ptx: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, payload) in [(2u8, cubin), (1, ptx.as_bytes())] {
        let padded = payload.len().next_multiple_of(8);
        let mut header = [0u8; 64];
        header[0] = kind;
        header[2..4].copy_from_slice(&0x101u16.to_le_bytes());
        header[4] = 64;
        header[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
        header[28] = 90;
        header[40] = 0x11;
        body.extend(header);
        body.extend(payload);
        body.resize(body.len().next_multiple_of(8), 0);
    }
    let mut file = 0xba55_ed50u32.to_le_bytes().to_vec();
    file.extend([1, 0, 16, 0]);
    file.extend((body.len() as u64).to_le_bytes());
    file.extend(body);
    file
}

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Option<Bench> {
        Bench::with(FAST)
    }

    /// The program's PTX makes a kernel of this factor.
    fn with(factor: &str) -> Option<Bench> {
        Bench::of(&scale, factor)
    }

    /// The same for a kernel of another text.
    fn of(kernel: &dyn Fn(&str) -> String, factor: &str) -> Option<Bench> {
        let toolkit = require_toolkit("in_place")?;
        let bench = Bench {
            folder: tempfile::tempdir().expect("folder"),
        };
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../inject/tests/program");
        let shared = [
            "-shared",
            "-fPIC",
            "-Wl,-soname,libcuda.so.1",
            "fake_driver.c",
        ];
        for (out, args) in [("libcuda.so.1", &shared[..]), ("host", &["host.c"][..])] {
            let status = Command::new("cc")
                .current_dir(&sources)
                .args(["-w", "-o"])
                .arg(bench.path(out))
                .args(args)
                .args(["-ldl", "-lpthread"])
                .status();
            assert!(status.expect("cc").success());
        }
        let original = build(&toolkit, &format!("{PTX}{}", kernel("40000000")));
        let faster = format!("{PTX}{}", kernel(factor));
        std::fs::write(bench.path("scale.fatbin"), fat_binary(&original, &faster))
            .expect("written");
        Some(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, args: &[&str], is_for_program: bool) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        let library = std::env::current_exe().expect("own path");
        let library = library.with_file_name("libwarpwright_inject.so");
        command
            .current_dir(self.folder.path())
            .args(args)
            .env("WARPWRIGHT_INJECT", library)
            .env("WARPWRIGHT_DB", self.path("db"))
            .env("LD_LIBRARY_PATH", self.folder.path())
            .env("FAKE_LOG", self.path("fake.log"))
            .env("HOST_REPEAT", "12");
        if is_for_program {
            command.args(["--", "./host", "proc2", "plain", "scale.fatbin"]);
        }
        command.output().expect("starts")
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_program_is_traced_tuned_and_run_with_its_winners() {
    let Some(bench) = Bench::new() else { return };
    let plain = Command::new(bench.path("host"))
        .current_dir(bench.folder.path())
        .args(["proc2", "plain", "scale.fatbin"])
        .env("LD_LIBRARY_PATH", bench.folder.path())
        .env("HOST_REPEAT", "12")
        .output()
        .expect("starts");
    assert!(plain.status.success(), "{}", out(&plain));

    let trace = bench.run(&["trace", "-o", "t.json"], true);
    assert!(trace.status.success(), "{}", err(&trace));
    assert!(out(&trace).starts_with(&out(&plain)), "{}", out(&trace));
    let text = std::fs::read_to_string(bench.path("t.json")).expect("a trace");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["schema"], "warpwright.trace/1");
    assert_eq!(document["launches"][0]["kernel"], "scale");
    assert_eq!(document["launches"][0]["launches"], 24);
    assert_eq!(document["launches"][0]["gpu_ns"], 2_400_000);
    assert_eq!(document["modules"][0]["ptx"], true);

    let tune = bench.run(&["tune", "--report-to", "r.json"], true);
    assert!(tune.status.success(), "{}", err(&tune));
    assert_eq!(out(&tune), out(&plain), "the program's output comes once");
    let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let kernels = report["kernels"].as_array().expect("kernels");
    assert!(
        kernels.iter().all(|k| k["winner"].is_string()),
        "{text}\n{}",
        err(&tune)
    );
    assert_eq!(kernels[0]["original_ns"], 100_000.0);
    assert_eq!(kernels[0]["winner_ns"], 50_000.0);
    assert_eq!(kernels[0]["in_program"], 0.5);

    std::fs::remove_file(bench.path("fake.log")).expect("a log");
    let with = bench.run(&["with"], true);
    assert_eq!((out(&with), with.status.code()), (out(&plain), Some(0)));
    let log = std::fs::read_to_string(bench.path("fake.log")).expect("a log");
    let sizes: std::collections::BTreeSet<&str> = log
        .lines()
        .filter_map(|l| l.split(" image ").nth(1)?.split(' ').next())
        .collect();
    assert_eq!(sizes.len(), 1, "{log}");

    let listed = out(&bench.run(&["db", "list", "--json"], false));
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let winners = listed["winners"].as_array().expect("winners").len();
    assert_eq!(winners, kernels.len());
    assert!(
        bench
            .run(&["db", "export", "all.winners"], false)
            .status
            .success()
    );
    assert!(
        bench
            .run(&["db", "remove", "scale"], false)
            .status
            .success()
    );
    assert_eq!(
        bench.run(&["db", "show", "scale"], false).status.code(),
        Some(1)
    );
    assert!(
        bench
            .run(&["db", "import", "all.winners"], false)
            .status
            .success()
    );
    assert!(out(&bench.run(&["db", "show", "scale"], false)).contains("2.000×"));
}

#[test]
fn exit_codes_are_the_programs() {
    let Some(bench) = Bench::new() else { return };
    for command in ["trace", "tune", "with"] {
        let ended = bench.run(&[command, "--", "sh", "-c", "exit 7"], false);
        assert_eq!(ended.status.code(), Some(7), "{command}: {}", err(&ended));
        let is_told = err(&ended).contains("no launch was seen: ");
        assert_eq!(is_told, command != "with", "{}", err(&ended));
        let missing = bench.run(&[command, "--", "./no-such-program"], false);
        assert_eq!(missing.status.code(), Some(1), "{command}");
        assert!(
            err(&missing).contains("does not start"),
            "{}",
            err(&missing)
        );
    }
    assert_eq!(bench.run(&["with"], false).status.code(), Some(2));
}

#[test]
fn what_wins_alone_and_loses_in_the_program_is_not_kept() {
    let Some(bench) = Bench::with(LONELY) else {
        return;
    };
    let tune = bench.run(&["tune", "--report-to", "r.json"], true);
    assert!(tune.status.success(), "{}", err(&tune));
    let with = bench.run(&["with"], true);
    assert_eq!(out(&tune), out(&with), "the program's output comes once");
    let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let kernels = report["kernels"].as_array().expect("kernels");
    assert!(!kernels.is_empty());
    for kernel in kernels {
        let stays = kernel["stays"].as_str().unwrap_or_default();
        assert!(
            stays.contains("wins alone") && stays.contains("2.000"),
            "{text}"
        );
    }
    let listed = out(&bench.run(&["db", "list", "--json"], false));
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["winners"].as_array().expect("winners").len(), 0);
}

/// A kernel that works on variables of its module: its candidates and its winner do it in the same module.
#[test]
fn kernels_with_variables_are_tuned_in_their_module() {
    let Some(bench) = Bench::of(&weigh, FAST) else {
        return;
    };
    let program = ["--", "./host", "proc2", "variables", "scale.fatbin"];
    let run = |args: &[&str]| bench.run(&[args, &program].concat(), false);
    let plain = run(&["with"]);
    assert!(out(&plain).contains("launches"), "{}", err(&plain));
    let tune = run(&["tune", "--report-to", "r.json"]);
    assert_eq!(out(&tune), out(&plain), "{}", err(&tune));
    let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let kernels = report["kernels"].as_array().expect("kernels");
    assert!(!kernels.is_empty());
    for kernel in kernels {
        assert!(
            kernel["winner"].is_string() && kernel["in_program"] == 0.5,
            "{text}"
        );
    }
    std::fs::remove_file(bench.path("fake.log")).expect("a log");
    assert_eq!(out(&run(&["with"])), out(&plain));
    let log = std::fs::read_to_string(bench.path("fake.log")).expect("a log");
    assert!(log.contains("weigh.warpwright."), "{log}");
}
