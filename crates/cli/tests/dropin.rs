//! `warpwright-ptxas` beside the real ptxas: bit for bit the same where it does nothing, truthful where it does
//! something, and never a failure that ptxas would not have had.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use warpwright_sass::Cubin;
use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{NvccJob, Toolkit};
use warpwright_winners::{LaunchClass, Shape, Standing, Store, Winner, identities};

/// The middle kernel spills under its launch bounds, and its blocks might wait for each other, so that as many stay
/// resident; the others are left alone.
const KERNELS: &str = "
extern \"C\" __global__ void first(float *p) { p[threadIdx.x] *= 2; }
extern \"C\" __global__ void __launch_bounds__(64, 18) spills(float *p) {
  float x[56];
  for (int r = 0; r < 9; r++) {
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) x[i] = p[threadIdx.x + 64 * i];
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) x[i] = x[i] * x[55 - i] + sqrtf(x[(i * 7 + 3) % 56]);
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) p[threadIdx.x + 64 * i] = x[i] + x[(i * 5 + 1) % 56];
  }
  FENCE
}
extern \"C\" __global__ void third(int *p) { p[threadIdx.x] = 3; }
";
const MAIN: &str = "
#include <cstdio>
extern \"C\" __global__ void own(int *p) { *p = 1; }
int main() { std::printf(\"started\\n\"); }
";
const SMALL: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n.maxntid 64\n{\n\
                     .reg .b64 %d<2>;\n.reg .b32 %r<2>;\nld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\n\
                     st.global.u32 [%d1], %r1;\nret;\n}\n";

struct Bench {
    folder: tempfile::TempDir,
    toolkit: Toolkit,
    /// `WARPWRIGHT_PTXAS_SMEM`
    smem: &'static str,
}

impl Bench {
    fn new(test: &str) -> Option<Bench> {
        let toolkit = require_toolkit(test)?;
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench {
            folder,
            toolkit,
            smem: "",
        };
        std::fs::write(
            bench.path("k.cu"),
            KERNELS.replace("FENCE", "while (*(volatile float *)p == 0) {}"),
        )
        .unwrap();
        std::fs::write(bench.path("main.cu"), MAIN).unwrap();
        std::fs::write(bench.path("small.ptx"), SMALL).unwrap();
        std::fs::write(bench.path("broken.ptx"), SMALL.replace("ret;", "rot;")).unwrap();
        Some(bench)
    }

    /// Where no launch gives dynamic shared memory that the code does not declare.
    fn declared(test: &str) -> Option<Bench> {
        let bench = Bench::new(test)?;
        Some(Bench {
            smem: "declared",
            ..bench
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn real(&self) -> PathBuf {
        self.toolkit.ptxas().unwrap().tool().path.clone()
    }

    fn command(&self, program: &Path, policy: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("WARPWRIGHT_REAL_PTXAS", self.real())
            .env("WARPWRIGHT_CACHE", self.path("cache"))
            .env("WARPWRIGHT_DB", self.path("winners"))
            .env("WARPWRIGHT_PTXAS_LOG", self.path("log"))
            .env("WARPWRIGHT_PTXAS_BUDGET", "60")
            .env("WARPWRIGHT_PTXAS_SMEM", self.smem)
            .env("WARPWRIGHT_PTXAS", policy);
        command
    }

    fn dropin(&self, policy: &str, args: &[&str]) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_warpwright-ptxas"));
        self.command(program, policy, args).output().unwrap()
    }

    fn plain(&self, args: &[&str]) -> Output {
        self.command(&self.real(), "", args).output().unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Exit code, both streams without compile times, and the output file.
    fn seen(&self, output: &Output, out: &str) -> (Option<i32>, String, String, Option<Vec<u8>>) {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let lines = text.lines().filter(|line| !line.contains("Compile time"));
            lines.collect::<Vec<_>>().join("\n")
        };
        let file = std::fs::read(self.path(out)).ok();
        let _ = std::fs::remove_file(self.path(out));
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
            file,
        )
    }

    fn spilling_ptx(&self) {
        let source = self.path("k.cu");
        let made = self
            .toolkit
            .nvcc()
            .unwrap()
            .to_ptx(&NvccJob::new(&source, "sm_90"));
        std::fs::write(self.path("k.ptx"), made.unwrap().ptx).unwrap();
    }
}

#[test]
fn where_it_does_nothing_nobody_can_tell() {
    let Some(bench) = Bench::new("where_it_does_nothing_nobody_can_tell") else {
        return;
    };
    let calls: [&[&str]; 14] = [
        // Triton 3.9, XLA, TVM by way of nvcc
        &[
            "-lineinfo",
            "-v",
            "--regAllocOptLevel=2",
            "--gpu-name=sm_90",
            "small.ptx",
            "-o",
            "out",
        ],
        &[
            "small.ptx",
            "-o",
            "out",
            "-arch=sm_90",
            "--warn-on-spills",
            "-v",
        ],
        &[
            "-arch=sm_90",
            "-m64",
            "--register-usage-level=10",
            "small.ptx",
            "-o",
            "out",
        ],
        &["-arch=sm_90", "-m64", "small.ptx", "-o", "out"],
        &[
            "-m64",
            "-O3",
            "--gpu-name",
            "sm_90",
            "--output-file",
            "out",
            "small.ptx",
            "-v",
        ],
        &[
            "-lineinfo",
            "-v",
            "--gpu-name=sm_90",
            "small.ptx",
            "-o",
            "out",
        ],
        &["-arch=sm_90", "-O0", "-v", "small.ptx", "-o", "out"],
        &["-arch=sm_90", "-c", "small.ptx", "-o", "out"],
        &["-arch=sm_90", "broken.ptx", "-o", "out"],
        &["-arch=sm_90", "missing.ptx", "-o", "out"],
        &["-arch=sm_90", "small.ptx", "--no-such-option", "-o", "out"],
        &["-arch=sm_999", "small.ptx", "-o", "out"],
        &["-arch=sm_90", "small.ptx", "-o", "nowhere/out"],
        &["--help"],
    ];
    const SLIP: &str = "warpwright-ptxas: WARPWRIGHT_PTXAS=a slip is not understood (off, recorded or safe): the drop-in is off";
    let mut slips = 0;
    for policy in ["off", "recorded", "safe", "a slip"] {
        for call in calls {
            let expected = bench.seen(&bench.plain(call), "out");
            let mut found = bench.seen(&bench.dropin(policy, call), "out");
            // Nothing but that it is off is said of a slip.
            if let Some(rest) = found.2.strip_prefix(SLIP) {
                assert_eq!(policy, "a slip");
                found.2 = rest.trim_start().to_owned();
                slips += 1;
            }
            assert_eq!(found, expected, "{policy} {call:?}");
        }
    }
    assert!(slips > 4, "{slips}");
    let call = ["-arch=sm_90", "small.ptx"];
    let expected = bench.seen(&bench.plain(&call), "elf.o");
    assert_eq!(bench.seen(&bench.dropin("safe", &call), "elf.o"), expected);
}

#[test]
fn the_version_tells_policies_apart() {
    let Some(bench) = Bench::new("the_version_tells_policies_apart") else {
        return;
    };
    let real = bench.plain(&["--version"]);
    let text =
        |policy: &str| String::from_utf8(bench.dropin(policy, &["--version"]).stdout).unwrap();
    assert_eq!(text("off").into_bytes(), real.stdout);
    let (recorded, safe) = (text("recorded"), text("safe"));
    let real = String::from_utf8(real.stdout).unwrap();
    for told in [&recorded, &safe] {
        assert!(told.starts_with(&real) && *told != real);
        assert_eq!(
            told.matches(", V").count(),
            1,
            "one version to find: {told}"
        );
    }
    assert_ne!(recorded, safe);
    std::fs::create_dir(bench.path("winners")).unwrap();
    std::fs::write(bench.path("winners/one"), "a winner more").unwrap();
    assert_ne!(text("recorded"), recorded);
    assert_eq!(text("safe"), safe);
}

/// Triton 3.9 gives an undocumented option to ptxas; builds of our own get it too. What is not known is logged.
#[test]
fn an_option_of_triton_reaches_every_build() {
    let Some(bench) = Bench::declared("an_option_of_triton_reaches_every_build") else {
        return;
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/hosts/moments.cu");
    let job = NvccJob::new(&source, "sm_90");
    let ptx = bench.toolkit.nvcc().unwrap().to_ptx(&job).unwrap().ptx;
    std::fs::write(bench.path("moments.ptx"), ptx).unwrap();
    let option = "--regAllocOptLevel=2";
    let call = |option, out| ["-arch=sm_90", "-v", option, "moments.ptx", "-o", out];
    assert!(bench.plain(&call(option, "plain.cubin")).status.success());
    assert!(
        bench
            .dropin("safe", &call(option, "safe.cubin"))
            .status
            .success()
    );
    assert!(
        bench.log().contains("moments: spill-to-shared"),
        "{}",
        bench.log()
    );
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    assert_ne!(read("plain.cubin"), read("safe.cubin"));
    let program = Path::new(env!("CARGO_BIN_EXE_warpwright"));
    let check = ["check", "plain.cubin", "safe.cubin", "--dynamic-smem", "0"];
    let checked = bench.command(program, "", &check).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    bench.dropin("safe", &call("--no-such-option", "out"));
    assert!(
        bench
            .log()
            .contains("the option --no-such-option is not understood")
    );
}

#[test]
fn spills_that_moved_are_told_truly_and_proved() {
    let Some(bench) = Bench::declared("spills_that_moved_are_told_truly_and_proved") else {
        return;
    };
    bench.spilling_ptx();
    let call = |out| ["-arch=sm_90", "-v", "--warn-on-spills", "k.ptx", "-o", out];
    let plain = bench.plain(&call("plain.cubin"));
    assert!(String::from_utf8_lossy(&plain.stderr).contains("Registers are spilled"));
    let output = bench.dropin("safe", &call("safe.cubin"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && output.stdout == plain.stdout,
        "{said}"
    );
    assert!(
        bench.log().contains("spills: spill-to-shared"),
        "{}",
        bench.log()
    );
    assert!(!said.contains("Registers are spilled"), "{said}");
    let frames = said
        .lines()
        .filter(|line| line.contains("bytes stack frame"));
    let nothing = "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
    let all_zero = frames.clone().all(|line| line == nothing);
    assert!(frames.count() >= 3 && all_zero, "{said}");
    let read = |name: &str| Cubin::parse(&std::fs::read(bench.path(name)).unwrap()).unwrap();
    let (before, after) = (read("plain.cubin"), read("safe.cubin"));
    for name in ["first", "third"] {
        assert_eq!(
            before.kernel(name).unwrap().code,
            after.kernel(name).unwrap().code
        );
    }
    let (old, new) = (
        before.kernel("spills").unwrap(),
        after.kernel("spills").unwrap(),
    );
    assert!(old.frame_bytes > 0 && new.frame_bytes == 0 && new.shared_bytes > old.shared_bytes);
    let used = format!("Used {} registers", new.registers);
    assert!(said.contains(&used), "{said}");
    let program = Path::new(env!("CARGO_BIN_EXE_warpwright"));
    let check = [
        "check",
        "plain.cubin",
        "safe.cubin",
        "--block",
        "64",
        "--dynamic-smem",
        "0",
    ];
    let checked = bench.command(program, "", &check).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    // Eight at once, in one cache.
    let outs: Vec<String> = (0..8).map(|n| format!("{n}.cubin")).collect();
    std::thread::scope(|scope| {
        for out in &outs {
            scope.spawn(|| assert!(bench.dropin("safe", &call(out)).status.success()));
        }
    });
    let expected = std::fs::read(bench.path("safe.cubin")).unwrap();
    for out in &outs {
        assert!(std::fs::read(bench.path(out)).unwrap() == expected, "{out}");
    }
}

/// A launch may give a kernel dynamic shared memory that it does not declare, all that is left beside its own: a build with
/// more of its own would not start. So spills stay unless it is said that no launch does, or the kernel's recipe is named.
#[test]
fn no_build_asks_for_more_shared_memory_unasked() {
    let Some(bench) = Bench::new("no_build_asks_for_more_shared_memory_unasked") else {
        return;
    };
    bench.spilling_ptx();
    let call = ["-arch=sm_90", "k.ptx", "-o", "out"];
    let shared = |variable: &str, value: &str| {
        let program = Path::new(env!("CARGO_BIN_EXE_warpwright-ptxas"));
        let mut command = bench.command(program, "safe", &call);
        let output = command.env(variable, value).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let cubin = Cubin::parse(&std::fs::read(bench.path("out")).unwrap()).unwrap();
        let log = bench.log().lines().last().unwrap().to_owned();
        (cubin.kernel("spills").unwrap().shared_bytes, log)
    };
    let (before, log) = shared("WARPWRIGHT_PTXAS_SMEM", "");
    assert!(
        log.contains("spills: ") && !log.contains("spills: spill-to-shared"),
        "{log}"
    );
    assert!(
        log.contains("its spills stay out of shared memory"),
        "{log}"
    );
    assert!(log.contains("WARPWRIGHT_PTXAS_SMEM=declared"), "{log}");
    let (after, log) = shared("WARPWRIGHT_PTXAS_SMEM", "declared");
    assert!(
        after > before && log.contains("spills: spill-to-shared"),
        "{log}"
    );
    let (named, log) = shared("WARPWRIGHT_PTXAS_RECIPES", "spills=spill-to-shared");
    assert!(named == after && log.contains("named by"), "{log}");
    let (slip, log) = shared("WARPWRIGHT_PTXAS_SMEM", "none");
    assert!(
        slip == before && log.contains("WARPWRIGHT_PTXAS_SMEM=none"),
        "{log}"
    );
}

/// A register limit above what ptxas chose costs resident blocks. That is for kernels alone whose blocks cannot wait for
/// each other; nobody need know their dynamic shared memory for it.
#[test]
fn a_limit_is_raised_where_no_block_waits_for_another() {
    let Some(bench) = Bench::new("a_limit_is_raised_where_no_block_waits_for_another") else {
        return;
    };
    let call = |out| ["-arch=sm_90", "-v", "k.ptx", "-o", out];
    let built = |fence: &str| {
        let source = KERNELS.replace("FENCE", fence);
        std::fs::write(bench.path("k.cu"), source).unwrap();
        bench.spilling_ptx();
        assert!(bench.plain(&call("plain.cubin")).status.success());
        let output = bench.dropin("safe", &call("safe.cubin"));
        assert!(output.status.success(), "{output:?}");
        let read = |name: &str| Cubin::parse(&std::fs::read(bench.path(name)).unwrap()).unwrap();
        let [before, after] =
            ["plain.cubin", "safe.cubin"].map(|name| read(name).kernel("spills").unwrap().clone());
        (
            before,
            after,
            bench.log().lines().last().unwrap().to_owned(),
        )
    };
    let dynamic = "extern __shared__ float room[]; p[0] += room[threadIdx.x];";
    // A fence and an atomic operation outside of loops wait for nobody.
    let ticket = "__threadfence(); p[1] = atomicAdd(p, 1.0f);";
    for free in ["", dynamic, ticket] {
        let (before, after, log) = built(free);
        assert!(log.contains("spills: maxnreg("), "{log}");
        assert!(before.frame_bytes > 0 && after.frame_bytes == 0, "{log}");
        assert!(after.registers > before.registers && after.shared_bytes == before.shared_bytes);
    }
    for waiting in [
        "while (*(volatile float *)p == 0) {}",
        "while (atomicAdd(p, 0.0f) == 0) {}",
        "do asm volatile(\"ld.acquire.gpu.f32 %0, [%1];\" : \"=f\"(p[1]) : \"l\"(p) : \"memory\"); while (p[1] == 0);",
    ] {
        let (_, _, log) = built(waiting);
        assert!(!log.contains("maxnreg("), "{log}");
        let (before, after, log) = built(&format!("{dynamic} {waiting}"));
        assert_eq!(before.code, after.code, "{log}");
        assert!(log.contains("how much dynamic shared memory"), "{log}");
    }
}

#[test]
fn what_loops_store_is_kept_in_registers_whatever_the_block() {
    let test = "what_loops_store_is_kept_in_registers_whatever_the_block";
    let Some(bench) = Bench::new(test) else {
        return;
    };
    let source = "
extern \"C\" __global__ void sums(float *c, const float *a, const float *b, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < n; k++) c[t] += a[t * n + k] * b[k];
}
extern \"C\" __global__ void own(float *c, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < n; k++) c[t] += c[n + k];
}";
    std::fs::write(bench.path("k.cu"), source).unwrap();
    bench.spilling_ptx();
    let output = bench.dropin("safe", &["-arch=sm_90", "k.ptx", "-o", "safe.cubin"]);
    assert!(output.status.success(), "{output:?}");
    let log = bench.log();
    assert!(
        log.contains("sums: promote(arrays=apart) (predicted "),
        "{log}"
    );
    assert!(log.contains("own: its block size is not known"), "{log}");
}

/// A ptxas that adds a line to `calls` each time, and does `first` or `later` before its work.
fn counting(bench: &Bench, first: &str, later: &str) -> PathBuf {
    let folder = bench.path("counting");
    std::fs::create_dir_all(&folder).unwrap();
    let (script, calls) = (folder.join("ptxas"), bench.path("calls"));
    let _ = std::fs::remove_file(&calls);
    let text = format!(
        "#!/bin/sh\nif [ -e {calls} ]; then {later}; else {first}; fi\necho \"$*\" >>{calls}\nexec {real} \"$@\"\n",
        calls = calls.display(),
        real = bench.real().display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

impl Bench {
    /// The drop-in before that ptxas; and how often that was started for an output.
    fn counted(&self, script: &Path, budget: &str, call: &[&str]) -> (Output, usize) {
        let program = Path::new(env!("CARGO_BIN_EXE_warpwright-ptxas"));
        let mut command = self.command(program, "safe", call);
        let output = command
            .env("WARPWRIGHT_REAL_PTXAS", script)
            .env("WARPWRIGHT_PTXAS_BUDGET", budget)
            .output()
            .unwrap();
        let calls = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        let builds = calls.lines().filter(|line| line.contains(" -o "));
        (output, builds.count())
    }
}

/// The budget is seconds because somebody waits; what is done within it is few builds, whoever waits.
#[test]
fn a_kernel_costs_few_builds() {
    let Some(bench) = Bench::declared("a_kernel_costs_few_builds") else {
        return;
    };
    bench.spilling_ptx();
    let call = ["-arch=sm_90", "-v", "k.ptx", "-o", "out"];
    let script = counting(&bench, ":", ":");
    let (output, builds) = bench.counted(&script, "60", &call);
    assert!(output.status.success());
    assert!(bench.log().contains("spill-to-shared"), "{}", bench.log());
    // The real one; for each of the three kernels that whose block is known at most three; the chosen module.
    assert!((2..=1 + 3 + 1).contains(&builds), "{builds} builds");
}

#[test]
fn a_budget_that_is_spent_leaves_the_real_build() {
    let Some(bench) = Bench::new("a_budget_that_is_spent_leaves_the_real_build") else {
        return;
    };
    bench.spilling_ptx();
    let call = ["-arch=sm_90", "-v", "k.ptx", "-o", "out"];
    let expected = bench.seen(&bench.plain(&call), "out");
    let script = counting(&bench, ":", "sleep 60");
    let start = Instant::now();
    let (output, _) = bench.counted(&script, "3", &call);
    assert_eq!(bench.seen(&output, "out"), expected);
    assert!(bench.log().contains("is spent"), "{}", bench.log());
    assert!(start.elapsed() < Duration::from_secs(50));
    // Nothing is begun where one build takes longer than all of the budget.
    let script = counting(&bench, "sleep 0.2", ":");
    let (output, builds) = bench.counted(&script, "0.03", &call);
    assert_eq!((bench.seen(&output, "out"), builds), (expected, 1));
    let log = bench.log();
    assert!(log.contains("longer than the budget"), "{log}");
}

/// An option that changes the code: a build of ours would be another one. A winner of that very code may stand in.
#[test]
fn options_that_change_the_code_are_left_alone() {
    let Some(bench) = Bench::new("options_that_change_the_code_are_left_alone") else {
        return;
    };
    bench.spilling_ptx();
    for option in ["--register-usage-level=10", "-O2", "--maxrregcount=32"] {
        let call = ["-arch=sm_90", "-v", option, "k.ptx", "-o", "out"];
        let expected = bench.seen(&bench.plain(&call), "out");
        assert_eq!(expected.0, Some(0), "{option}: {}", expected.2);
        let found = bench.seen(&bench.dropin("safe", &call), "out");
        assert!(found == expected, "{option}");
        let log = bench.log();
        let last = log.lines().last().unwrap_or_default();
        let named = option.replace("-O2", "--opt-level=2");
        let says = format!("{named} changes the code");
        assert!(last.contains(&says), "{option}: {log}");
    }
}

#[test]
fn a_ptxas_that_misbehaves_is_passed_on_as_it_is() {
    let Some(bench) = Bench::new("a_ptxas_that_misbehaves_is_passed_on_as_it_is") else {
        return;
    };
    let program = Path::new(env!("CARGO_BIN_EXE_warpwright-ptxas"));
    let scripts = [
        ("echo said; echo cried >&2; exit 7", Some(7)),
        (
            "printf '\\377\\376'; for l; do :; done; echo garbage > \"$l\"",
            Some(0),
        ),
        ("kill -SEGV $$", Some(139)),
        ("exit 0", Some(0)),
    ];
    for (number, (body, code)) in scripts.into_iter().enumerate() {
        let folder = bench.path(&format!("with{number}"));
        std::fs::create_dir(&folder).unwrap();
        let script = folder.join("ptxas");
        std::fs::write(&script, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        for policy in ["recorded", "safe"] {
            let call = ["-arch=sm_90", "small.ptx", "-o", "out"];
            let expected = Command::new(&script)
                .args(call)
                .current_dir(bench.folder.path())
                .output()
                .unwrap();
            let expected = bench.seen(&expected, "out");
            let mut command = bench.command(program, policy, &call);
            let output = command
                .env("WARPWRIGHT_REAL_PTXAS", &script)
                .output()
                .unwrap();
            assert_eq!(output.status.code(), code, "{body}");
            let found = bench.seen(&output, "out");
            assert_eq!(
                (found.1, found.2, found.3),
                (expected.1, expected.2, expected.3),
                "{body}"
            );
        }
    }
}

/// A program that says its name and then is the real ptxas.
fn named_script(bench: &Bench, path: &str) -> PathBuf {
    let script = bench.path(path);
    std::fs::create_dir_all(script.parent().unwrap()).unwrap();
    let text = format!(
        "#!/bin/sh\necho {path} >&2\nexec {} \"$@\"\n",
        bench.real().display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

#[test]
fn the_ptxas_that_is_named_runs_and_no_other() {
    let Some(bench) = Bench::new("the_ptxas_that_is_named_runs_and_no_other") else {
        return;
    };
    let program = Path::new(env!("CARGO_BIN_EXE_warpwright-ptxas"));
    let named = named_script(&bench, "real/ptxas-blackwell");
    named_script(&bench, "real/ptxas");
    named_script(&bench, "real/bin/ptxas");
    let said = |value: &Path, policy: &str| {
        let call = ["-arch=sm_90", "small.ptx", "-o", "out"];
        let mut command = bench.command(program, policy, &call);
        let output = command
            .env("WARPWRIGHT_REAL_PTXAS", value)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    for policy in ["off", "recorded", "safe"] {
        let expected = (Some(0), "real/ptxas-blackwell\n".to_owned());
        assert_eq!(said(&named, policy), expected, "{policy}");
    }
    let log = bench.log();
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains(&named.display().to_string()), "{log}");
    // A folder is a toolkit's.
    let folder = said(&bench.path("real"), "safe");
    assert_eq!(folder, (Some(0), "real/bin/ptxas\n".to_owned()));
    // The variable is at fault, and nothing else stands in.
    std::fs::create_dir(bench.path("empty")).unwrap();
    for wrong in [
        &bench.path("nowhere"),
        &bench.path("empty"),
        &bench.path("small.ptx"),
        program,
    ] {
        let (code, said) = said(wrong, "safe");
        assert_eq!(code, Some(255));
        assert!(said.contains("WARPWRIGHT_REAL_PTXAS"), "{said}");
        assert!(said.contains(&wrong.display().to_string()), "{said}");
    }
}

/// Triton brings a ptxas of its own, in two versions, and tells us only by its variables which one it would have run. The
/// process above is known by Triton's library: here it is a shell under that name.
#[test]
fn under_triton_its_own_ptxas_runs() {
    let Some(bench) = Bench::new("under_triton_its_own_ptxas_runs") else {
        return;
    };
    let python = bench.path("triton/_C/libtriton.so");
    std::fs::create_dir_all(python.parent().unwrap()).unwrap();
    std::fs::copy("/bin/sh", &python).unwrap();
    for name in ["ptxas", "ptxas-blackwell"] {
        named_script(&bench, &format!("triton/backends/nvidia/bin/{name}"));
    }
    let program = Path::new(env!("CARGO_BIN_EXE_warpwright-ptxas"));
    std::os::unix::fs::symlink(program, bench.path("link")).unwrap();
    let link = bench.path("link");
    let (older, newer) = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH");
    let ran = |called: &Path, variables: &[(&str, &Path)]| {
        let script = format!("{} -arch=sm_90 small.ptx -o out; exit $?", called.display());
        let mut command = bench.command(&python, "safe", &["-c", &script]);
        command.env_remove("WARPWRIGHT_REAL_PTXAS");
        command.env("WARPWRIGHT_TOOLKIT", bench.real().parent().unwrap());
        command.env_remove(older).env_remove(newer);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let name = said.trim().rsplit('/').next().unwrap_or_default();
        name.to_owned()
    };
    assert_eq!(ran(program, &[(older, program)]), "ptxas");
    assert_eq!(ran(program, &[(newer, program)]), "ptxas-blackwell");
    // Both: what the call shows, else the newer one, which knows every architecture.
    let both = [(older, program), (newer, program)];
    assert_eq!(ran(program, &both), "ptxas-blackwell");
    let apart = [(older, link.as_path()), (newer, program)];
    assert_eq!(ran(&link, &apart), "ptxas");
    assert_eq!(ran(program, &apart), "ptxas-blackwell");
    // Nobody's variable: the toolkit's, which says nothing.
    assert_eq!(ran(program, &[]), "");
}

/// For every kernel that stays as it is, the log says why.
#[test]
fn the_log_says_why_of_each_kernel() {
    let Some(bench) = Bench::new("the_log_says_why_of_each_kernel") else {
        return;
    };
    let plain = SMALL.replace(".maxntid 64\n", "");
    let shared = SMALL.replace(
        ".visible .entry k",
        ".extern .shared .align 4 .b8 room[];\n.visible .entry k",
    );
    let shared = shared.replace("mov.u32 %r1, %tid.x;", "ld.shared.u32 %r1, [room];");
    let older = SMALL.replace(".target sm_90", ".target sm_75");
    let mangled = plain.replace(".entry k", ".entry _Z1kPf");
    for (name, text) in [
        ("plain", plain),
        ("mangled", mangled),
        ("dynamic", shared),
        ("older", older),
    ] {
        std::fs::write(bench.path(&format!("{name}.ptx")), text).unwrap();
    }
    let last = |policy: &str, call: &[&str]| {
        let call = [call, &["-o", "out"]].concat();
        assert!(bench.dropin(policy, &call).status.success());
        bench.log().lines().last().unwrap_or_default().to_owned()
    };
    for (call, policy, word) in [
        (
            ["-arch=sm_90", "plain.ptx"],
            "safe",
            "k: its block size is not known",
        ),
        (
            ["-arch=sm_90", "mangled.ptx"],
            "safe",
            "unchanged: k(float*): its block size is not known",
        ),
        (
            ["-arch=sm_90", "dynamic.ptx"],
            "safe",
            "dynamic shared memory",
        ),
        (
            ["-arch=sm_90", "small.ptx"],
            "safe",
            "k: the other builds are the same code",
        ),
        (
            ["-arch=sm_90", "small.ptx"],
            "recorded",
            "no winner is recorded in",
        ),
        (["-c", "older.ptx"], "safe", "-rdc=true"),
    ] {
        let line = last(policy, &call);
        assert!(line.contains(word), "{call:?}: {line}");
    }
    // Recipes that name no kernel of the file; a GPU that the code is not for.
    let said = |policy: &str, variable: &str, value: &str| {
        let program = Path::new(env!("CARGO_BIN_EXE_warpwright-ptxas"));
        let call = ["-arch=sm_90", "small.ptx", "-o", "out"];
        let mut command = bench.command(program, policy, &call);
        let output = command.env(variable, value).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        bench.log().lines().last().unwrap_or_default().to_owned()
    };
    let recipes = "WARPWRIGHT_PTXAS_RECIPES";
    let line = said("safe", recipes, "k=maxnreg(32) | lu=maxnreg(96)");
    assert!(line.contains("no kernel here is lu"), "{line}");
    // Winners are looked for where no recipe is named.
    let line = said("recorded", recipes, "lu=maxnreg(96)");
    assert!(
        line.contains("no winner is recorded in") && line.contains("no kernel here is lu"),
        "{line}"
    );
    let line = said("safe", "WARPWRIGHT_GPU", "a100");
    assert!(
        line.contains("for sm_90, and does not run on a100"),
        "{line}"
    );
    // Checks of the compiler are no part of the build: files without kernels, and folders of CMake's.
    let before = bench.log();
    std::fs::write(
        bench.path("host.ptx"),
        &SMALL[..SMALL.find(".visible").unwrap()],
    )
    .unwrap();
    let folder = bench.path("CMakeFiles/CMakeScratch/TryCompile-1");
    std::fs::create_dir_all(&folder).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_warpwright-ptxas"));
    for (folder, file) in [
        (bench.folder.path(), "host.ptx"),
        (&folder, "../../../small.ptx"),
    ] {
        let mut command = bench.command(program, "safe", &["-arch=sm_90", file, "-o", "out"]);
        let output = command.current_dir(folder).output().unwrap();
        assert!(
            output.status.success() && folder.join("out").is_file(),
            "{output:?}"
        );
    }
    assert_eq!(bench.log(), before);
    // A slip switches it off, and is told where somebody looks.
    assert!(last("Safe", &["-arch=sm_90", "small.ptx"]).contains("WARPWRIGHT_PTXAS=Safe"));
}

/// What a recipe asks of one kernel that cannot be is logged by the kernel's name; the others get theirs.
#[test]
fn a_recipe_that_cannot_be_stops_no_other() {
    let Some(bench) = Bench::new("a_recipe_that_cannot_be_stops_no_other") else {
        return;
    };
    let head = SMALL.find(".visible").unwrap();
    let other = SMALL[head..].replace(".entry k", ".entry other");
    let both = format!("{SMALL}{}", other.replace(".maxntid 64", ".maxntid 32"));
    std::fs::write(bench.path("both.ptx"), both).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_warpwright-ptxas"));
    let call = ["-arch=sm_90", "both.ptx", "-o", "out"];
    let mut command = bench.command(program, "safe", &call);
    command.env(
        "WARPWRIGHT_PTXAS_RECIPES",
        "other=maxntid(64) | k=maxnreg(32)",
    );
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let line = bench.log().lines().last().unwrap_or_default().to_owned();
    assert!(
        line.contains("k: maxnreg(32) (named by WARPWRIGHT_PTXAS_RECIPES"),
        "{line}"
    );
    let unchanged = line.split("unchanged: ").nth(1).unwrap_or_default();
    assert!(
        unchanged.starts_with("other: ") && unchanged.contains("maxntid"),
        "{line}"
    );
}

#[test]
fn a_winner_stands_in_where_launches_do_not_matter() {
    let Some(bench) = Bench::new("a_winner_stands_in_where_launches_do_not_matter") else {
        return;
    };
    let call = |out| ["-arch=sm_90", "small.ptx", "-o", out];
    bench.plain(&call("plain.cubin"));
    bench.plain(&["-arch=sm_90", "-O1", "small.ptx", "-o", "other.cubin"]);
    let original = std::fs::read(bench.path("plain.cubin")).unwrap();
    let other = std::fs::read(bench.path("other.cubin")).unwrap();
    assert_ne!(original, other);
    let store = Store::at(bench.path("winners"));
    let winner = |gpu: &str, cubin: &[u8], block: u32| Winner {
        kernel: identities(&original).unwrap()[0].digest.clone(),
        gpu: gpu.into(),
        guard: LaunchClass::new([1024, 1, 1], [block, 1, 1], 0, [0; 3])
            .unwrap()
            .guard(),
        shape: Shape::SAME,
        symbol: "k".into(),
        recipe: "level-1".into(),
        proof: "a test".into(),
        original_ns: 200,
        winner_ns: 100,
        driver: "580".into(),
        date: "2026-11-22".into(),
        standing: Standing::Measured,
        cubin: cubin.to_vec(),
    };
    let made = |policy: &str| {
        assert!(bench.dropin(policy, &call("out")).status.success());
        std::fs::read(bench.path("out")).unwrap()
    };
    assert_eq!(made("recorded"), original, "nothing is recorded");
    store.put(&winner("NVIDIA H200", &other, 64)).unwrap();
    assert_eq!(made("recorded"), other);
    assert!(
        bench.log().contains("2.00 times as fast"),
        "{}",
        bench.log()
    );
    assert_eq!(made("off"), original);
    // Whatever lies beside it.
    let key = &identities(&original).unwrap()[0].digest[..32];
    let beside = |name: &str| bench.path("winners").join(format!("{key}-{name}.winner"));
    std::fs::create_dir(beside("folder")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", beside("device")).unwrap();
    std::os::unix::fs::symlink("/no/such/file", beside("vanished")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(beside("pipe"))
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(made("recorded"), other);
    // Another one for other launches: which one is meant is not known here.
    store.put(&winner("NVIDIA H200", &original, 32)).unwrap();
    assert_eq!(made("recorded"), original);
    // Nobody here has looked at what was imported: it goes into no binary. What was proved does.
    for (standing, expected) in [
        (Standing::Imported, &original),
        (Standing::Proved, &other),
        (Standing::Trusted, &other),
    ] {
        std::fs::remove_dir_all(bench.path("winners")).unwrap();
        let from = Store::at(bench.path("from"));
        from.put(&winner("NVIDIA H200", &other, 64)).unwrap();
        store.import(&from.export().unwrap(), standing).unwrap();
        assert_eq!(&made("recorded"), expected, "{standing}");
        // Not under the name of one that is used, either.
        for file in std::fs::read_dir(bench.path("winners")).unwrap() {
            let file = file.unwrap().path();
            std::fs::rename(&file, file.with_extension("winner")).unwrap();
        }
        assert_eq!(&made("recorded"), expected, "{standing}, renamed");
    }
    // One that everybody can write is none.
    use std::os::unix::fs::PermissionsExt;
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(bench.path("winners"), open).unwrap();
    assert_eq!(made("recorded"), original);
    // Whatever else lies there costs none of the others.
    std::fs::remove_dir_all(bench.path("winners")).unwrap();
    let good = store.put(&winner("NVIDIA H200", &other, 64)).unwrap();
    let key = good.file_name().unwrap().to_string_lossy()[..32].to_owned();
    let place = |name: &str| good.with_file_name(format!("{key}-{name}.winner"));
    std::fs::create_dir(place("folder")).unwrap();
    let made_pipe = Command::new("mkfifo").arg(place("pipe")).status();
    assert!(made_pipe.unwrap().success());
    for (name, to) in [("device", "/dev/zero"), ("vanished", "/no/such/file")] {
        std::os::unix::fs::symlink(to, place(name)).unwrap();
    }
    let huge = std::fs::File::create(place("huge")).unwrap();
    huge.set_len(1 << 30).unwrap();
    assert_eq!(made("recorded"), other);
    // A damaged file is as good as none.
    std::fs::remove_dir_all(bench.path("winners")).unwrap();
    store.put(&winner("NVIDIA H200", &other, 64)).unwrap();
    for file in std::fs::read_dir(bench.path("winners")).unwrap() {
        let file = file.unwrap().path();
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() - 10]).unwrap();
    }
    assert_eq!(made("recorded"), original);
}

#[test]
fn a_program_is_built_with_it() {
    let Some(bench) = Bench::declared("a_program_is_built_with_it") else {
        return;
    };
    let program = Path::new(env!("CARGO_BIN_EXE_warpwright"));
    let nvcc = bench.toolkit.nvcc().unwrap().tool().path.clone();
    let root = nvcc.parent().and_then(Path::parent).unwrap().to_path_buf();
    let start = Instant::now();
    let build = |policy: &str, out: &str| {
        let args = [
            "nvcc",
            "--policy",
            policy,
            "--",
            "-arch=sm_90",
            "k.cu",
            "main.cu",
            "-o",
            out,
        ];
        let mut command = bench.command(program, "", &args);
        let output = command
            .env("WARPWRIGHT_TOOLKIT", &root)
            .env("TMPDIR", bench.folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    build("off", "plain");
    assert_eq!(bench.log(), "");
    build("safe", "better");
    assert!(
        bench.log().contains("spills: spill-to-shared")
            && bench.log().contains("k.cu (first, spills"),
        "{}",
        bench.log()
    );
    assert!(start.elapsed() < Duration::from_secs(300));
    for name in ["plain", "better"] {
        let ran = Command::new(bench.path(name)).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "started\n");
    }
    let frame = |name: &str| {
        let cubins = bench
            .toolkit
            .cuobjdump()
            .unwrap()
            .extract_elf(&bench.path(name))
            .unwrap();
        let kernels = cubins
            .iter()
            .filter_map(|c| Cubin::parse(&c.bytes).ok()?.kernel("spills").cloned());
        kernels.map(|kernel| kernel.frame_bytes).max().unwrap()
    };
    assert!(frame("plain") > 0 && frame("better") == 0);
    // A failure of nvcc is nvcc's.
    let args = ["nvcc", "--", "-arch=sm_90", "missing.cu"];
    let output = bench
        .command(program, "", &args)
        .env("WARPWRIGHT_TOOLKIT", &root)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
}

/// A log that cannot be written is said, and the build goes on; a debug build is called so, by its source.
#[test]
fn what_the_log_cannot_take_is_said_once() {
    let Some(bench) = Bench::new("what_the_log_cannot_take_is_said_once") else {
        return;
    };
    let program = Path::new(env!("CARGO_BIN_EXE_warpwright-ptxas"));
    let call = ["-arch=sm_90", "small.ptx", "-o", "out"];
    let mut command = bench.command(program, "safe", &call);
    command.env("WARPWRIGHT_PTXAS_LOG", bench.path("nowhere/log"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("WARPWRIGHT_PTXAS_LOG").count(), 1, "{said}");
    let debug = [
        &call[..],
        &["-g", "--dont-merge-basicblocks", "--return-at-end"],
    ];
    let output = bench.dropin("safe", &debug.concat());
    assert!(output.status.success(), "{output:?}");
    let log = bench.log();
    let last = log.lines().last().unwrap_or_default();
    assert!(
        last.contains("small.ptx (k) for sm_90: unchanged: a call with --return-at-end, as debug builds have it"),
        "{log}"
    );
}

/// `warpwright nvcc` runs the ptxas that the environment names, and fails by its name.
#[test]
fn nvcc_keeps_to_the_ptxas_that_is_named() {
    let Some(bench) = Bench::new("nvcc_keeps_to_the_ptxas_that_is_named") else {
        return;
    };
    let program = Path::new(env!("CARGO_BIN_EXE_warpwright"));
    let nowhere = bench.path("nowhere");
    let mut command = bench.command(program, "safe", &["nvcc", "--", "-cubin", "k.cu"]);
    command
        .env("WARPWRIGHT_REAL_PTXAS", &nowhere)
        .env("WARPWRIGHT_TOOLKIT", bench.real().parent().unwrap());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("WARPWRIGHT_REAL_PTXAS names"), "{said}");
}
