//! Recipes replay: what `opt` chose, named by `--recipe`, gives the same bytes; fuel stops inside a pass; what
//! a source pass wrote is proved as PTX.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use warpwright_toolkit::testing::require_toolkit;

fn warpwright(folder: &Path, args: &[&str]) -> Output {
    let toolkit = require_toolkit("warpwright with recipes").unwrap();
    let ptxas = toolkit.ptxas().unwrap().tool().path.clone();
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    command
        .current_dir(folder)
        .env("WARPWRIGHT_CACHE", folder.join("cache"))
        .env(
            "WARPWRIGHT_TOOLKIT",
            ptxas.parent().and_then(Path::parent).unwrap(),
        );
    command.args(args).output().unwrap()
}

fn success(folder: &Path, args: &[&str]) -> String {
    let output = warpwright(folder, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
    String::from_utf8(output.stdout).unwrap() + &said
}

/// What a command prints, without the lines about its progress.
fn json(folder: &Path, args: &[&str]) -> serde_json::Value {
    let output = warpwright(folder, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Examples whose choice is a throttle in the cubin, an option of ptxas, moved spills under a limit.
const EXAMPLES: [&str; 3] = ["kmeans", "smith_waterman", "voxel_rays"];

#[test]
fn the_choice_of_opt_replays_to_the_same_bytes() {
    if require_toolkit("the_choice_of_opt_replays_to_the_same_bytes").is_none() {
        return;
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut chosen = Vec::new();
    for name in EXAMPLES {
        let folder = tempfile::tempdir().unwrap();
        let at = |ending: &str| {
            let path = examples.join(name).join(format!("{name}.{ending}"));
            path.canonicalize().unwrap().display().to_string()
        };
        let (source, launch) = (at("cu"), at("toml"));
        let common = [
            "--launch",
            &launch,
            "--gpu",
            "h200",
            "--no-database",
            "--json",
        ];
        let opt = [&["opt", &source, "-o", "a.cubin"], &common[..]].concat();
        let found: serde_json::Value = json(folder.path(), &opt);
        let recipe = found["kernels"][0]["recipe_text"]
            .as_str()
            .unwrap()
            .to_owned();
        let replay = ["opt", &source, "-o", "b.cubin", "--recipe", &recipe];
        success(folder.path(), &[&replay, &common[..]].concat());
        let read = |file: &str| std::fs::read(folder.path().join(file)).unwrap();
        assert!(read("a.cubin") == read("b.cubin"), "{name}: {recipe}");
        chosen.push(recipe);
    }
    assert!(
        chosen.iter().any(|recipe| recipe != "default"),
        "{chosen:?}"
    );
}

/// What the screen says makes nvcc build the same does: the code of the kernel, instruction by instruction.
#[test]
fn nvcc_builds_the_same_from_what_the_screen_says() {
    let Some(toolkit) = require_toolkit("nvcc_builds_the_same_from_what_the_screen_says") else {
        return;
    };
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let source = std::fs::read_to_string(examples.join("sgemm_tile/sgemm_tile.cu")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("k.cu"), &source).unwrap();
    let code = |file: &str| {
        let bytes = std::fs::read(at(file)).unwrap();
        let cubin = warpwright_sass::Cubin::parse(&bytes).unwrap();
        cubin.kernel("sgemm_tile").unwrap().code.clone()
    };
    let default = {
        success(
            folder.path(),
            &[
                "opt", "k.cu", "--gpu", "sm_90", "--recipe", "default", "-o", "d.cubin",
            ],
        );
        code("d.cubin")
    };
    let nvcc = toolkit.nvcc().unwrap().tool().path.clone();
    for (recipe, qualifier, option) in [
        ("maxnreg(96)", "__maxnreg__(96) ", None),
        ("usage-level(10)", "", Some("--register-usage-level=10")),
        (
            "maxnreg(96); usage-level(10)",
            "__maxnreg__(96) ",
            Some("--register-usage-level=10"),
        ),
    ] {
        success(
            folder.path(),
            &[
                "opt", "k.cu", "--gpu", "sm_90", "--recipe", recipe, "-o", "r.cubin",
            ],
        );
        let said = source.replace("sgemm_tile(", &format!("{qualifier}sgemm_tile("));
        std::fs::write(at("said.cu"), said).unwrap();
        let mut command = Command::new(&nvcc);
        command.args([
            "-arch=sm_90",
            "-lineinfo",
            "-cubin",
            "said.cu",
            "-o",
            "said.cubin",
        ]);
        command.args(option.iter().flat_map(|option| ["-Xptxas", option]));
        let built = command.current_dir(folder.path()).output().unwrap();
        assert!(built.status.success(), "{built:?}");
        assert!(code("r.cubin") != default, "{recipe} changes nothing");
        assert!(code("r.cubin") == code("said.cubin"), "{recipe}");
    }
}

const KERNEL: &str = "extern \"C\" __global__ void scale(float *p) { p[threadIdx.x] *= 2.0f; }\n";

#[test]
fn a_source_pass_is_proved_as_ptx() {
    if require_toolkit("a_source_pass_is_proved_as_ptx").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), KERNEL).unwrap();
    let pass = [
        "pass",
        "launch-bounds(128)",
        "k.cu",
        "-o",
        "new.cu",
        "--block",
        "128",
        "-v",
    ];
    let said = success(folder.path(), &pass);
    let text = std::fs::read_to_string(folder.path().join("new.cu")).unwrap();
    assert_eq!(
        text,
        KERNEL.replace("scale", "__launch_bounds__(128) scale")
    );
    assert!(said.contains("launch-bounds(128): 1 rewrite in "), "{said}");
    let again = ["pass", "launch-bounds(128)", "new.cu", "--block", "128"];
    assert!(success(folder.path(), &again).contains("unchanged by launch-bounds"));
}

#[test]
fn a_recipe_goes_through_all_levels_and_says_what_is_wrong_with_it() {
    if require_toolkit("a_recipe_goes_through_all_levels").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), KERNEL).unwrap();
    let recipe = "maxnreg(32); usage-level(3); throttle(2)";
    let all = [
        "pass", recipe, "k.cu", "-o", "k.cubin", "--gpu", "h200", "--block", "256",
    ];
    success(folder.path(), &all);
    for (recipe, code) in [
        ("throttle(2); maxnreg(32)", 2),
        ("maxnreg", 2),
        ("frob(1)", 2),
        ("throttle(40)", 0),
    ] {
        let args = [
            "pass", recipe, "k.cu", "-o", "x.cubin", "--gpu", "h200", "--block", "256",
        ];
        let output = warpwright(folder.path(), &args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{recipe}: {said}");
    }
}

/// What the PTX says of dynamic shared memory is known of its machine code too, however many kernels there are.
#[test]
fn spills_of_several_kernels_move_beside_static_shared_memory() {
    if require_toolkit("spills_of_several_kernels").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/hosts/moments.cu");
    let moments = std::fs::read_to_string(path).unwrap();
    let more = "__global__ void more(int* to) { to[threadIdx.x] += 1; }\n";
    std::fs::write(folder.path().join("two.cu"), moments + more).unwrap();
    let args = [
        "opt",
        "two.cu",
        "--gpu",
        "h200",
        "-o",
        "two.cubin",
        "--json",
    ];
    let found: serde_json::Value = json(folder.path(), &args);
    let kernels = found["kernels"].as_array().unwrap();
    let moved = kernels.iter().find(|k| k["name"] == "moments").unwrap();
    let recipe = moved["recipe_text"].as_str().unwrap();
    assert!(recipe.contains("spill-to-shared"), "{recipe}");
    let one = [
        "opt",
        "two.cu",
        "--kernel",
        "moments",
        "--recipe",
        recipe,
        "-o",
        "one.cubin",
    ];
    success(folder.path(), &one);
}

/// `static __global__` makes an entry that only its module knows, with a local symbol in the cubin.
#[test]
fn static_kernels_are_kernels() {
    if require_toolkit("static_kernels_are_kernels").is_none() {
        return;
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let source = std::fs::read_to_string(examples.join("two_stream/two_stream.cu")).unwrap();
    let source = source.replace("extern \"C\" __global__", "static __global__");
    let folder = tempfile::tempdir().unwrap();
    let host = "int main() { two_stream<<<4096, 256>>>(0, 0, 0, 0, 0, 0, 0, 0); }\n";
    std::fs::write(folder.path().join("k.cu"), source + host).unwrap();
    let target = [
        "--gpu",
        "h200",
        "--block",
        "256",
        "--json",
        "--no-database",
        "--no-run",
    ];
    let opt = [&["opt", "k.cu", "-o", "k.cubin"][..], &target].concat();
    let found: serde_json::Value = json(folder.path(), &opt);
    let kernel = &found["kernels"][0];
    assert!(
        kernel["recipe_text"]
            .as_str()
            .is_some_and(|r| r.contains("maxnreg")),
        "{kernel}"
    );
    let limited = ["opt", "k.cu", "--recipe", "maxnreg(64)", "-o", "l.cubin"];
    success(folder.path(), &[&limited[..], &target].concat());
    let moved = [
        "pass",
        "spill-to-shared",
        "l.cubin",
        "--gpu",
        "h200",
        "--block",
        "256",
    ];
    let said = success(folder.path(), &[&moved[..], &["-o", "m.cubin"]].concat());
    assert!(said.contains("spill slots moved"), "{said}");
    let bytes = std::fs::read(folder.path().join("m.cubin")).unwrap();
    let cubin = warpwright_sass::Cubin::parse(&bytes).unwrap();
    assert!(
        cubin
            .kernels
            .iter()
            .any(|k| k.is_entry && k.registers == 64)
    );
}

/// A block's sums: a loop to the number of threads, and one to a parameter.
const SUMS: &str = r#"
extern "C" __global__ void sums(int *out, const int *a, int n) {
  __shared__ int part[1024];
  int sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += a[blockIdx.x * n + i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d >>= 1) {
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
"#;

const SUMS_LAUNCH: &str = r#"
source = "k.cu"
kernel = "sums"
[sizes.small]
n = 16
[sizes.full]
n = 1000
[launch]
grid = [2000]
block = [64]
[[args]]
name = "out"
type = "s32"
shape = [2000]
output = true
[[args]]
name = "a"
type = "s32"
shape = ["2000 * n"]
init = { kind = "fill", value = 1 }
[[args]]
name = "n"
type = "s32"
value = "n"
"#;

#[test]
fn a_launch_that_is_known_has_a_version_beside_the_original() {
    if require_toolkit("a_launch_that_is_known_has_a_version_beside_the_original").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), SUMS).unwrap();
    std::fs::write(folder.path().join("l.toml"), SUMS_LAUNCH).unwrap();
    let opt = |more: &[&str]| {
        let common = ["opt", "k.cu", "--gpu", "h200", "--no-database", "--json"];
        let found = json(folder.path(), &[&common[..], more].concat());
        found["kernels"][0]["recipe_text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let recipe = opt(&["--launch", "l.toml", "-o", "a.cubin"]);
    assert!(
        recipe.contains("grid=2000x1x1") && recipe.contains("guarded=yes"),
        "{recipe}"
    );
    // Without a launch nothing is known.
    let plain = opt(&["--block", "64"]);
    assert!(!plain.contains("specialize"), "{plain}");
}
