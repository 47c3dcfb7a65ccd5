//! `warpwright sass` on a kernel that ptxas has built.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use warpwright_toolkit::testing::require_toolkit;

const KERNELS: &str = ".version 8.5
.target sm_90
.address_size 64

.visible .entry twice(.param .u64 p)
{
	.reg .b32 %r<3>;
	.reg .b64 %d;
	ld.param.u64 %d, [p];
	ld.global.u32 %r1, [%d];
	add.u32 %r2, %r1, %r1;
	st.global.u32 [%d], %r2;
	ret;
}
.visible .entry nothing() { ret; }
";

fn warpwright(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    let cache = folder.join("cache");
    command.current_dir(folder).env("WARPWRIGHT_CACHE", cache);
    // The tests' own toolkit, which may lie in the cache that is not used here.
    let toolkit = require_toolkit("warpwright sass").unwrap();
    let ptxas = toolkit.ptxas().unwrap().tool().path.clone();
    let root = ptxas.parent().and_then(Path::parent).unwrap();
    command.env("WARPWRIGHT_TOOLKIT", root);
    command.args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A folder with the kernels as PTX and as a cubin.
fn folder(toolkit: &warpwright_toolkit::Toolkit) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let job = warpwright_toolkit::PtxasJob::new(KERNELS, "sm_90");
    let cubin = toolkit.ptxas().unwrap().run(&job).unwrap().cubin;
    std::fs::write(folder.path().join("k.ptx"), KERNELS).unwrap();
    std::fs::write(folder.path().join("k.cubin"), cubin).unwrap();
    folder
}

#[test]
fn machine_code_of_every_level_in_one_text_form() {
    let Some(toolkit) = require_toolkit("machine_code_of_every_level_in_one_text_form") else {
        return;
    };
    let folder = folder(&toolkit);
    let text = stdout(&warpwright(folder.path(), &["sass", "k.cubin"]));
    assert!(
        text.starts_with(".sm 90\n") && text.contains(".function nothing"),
        "{text}"
    );
    let line = text.lines().find(|l| l.contains("STG.E")).unwrap();
    assert!(line.starts_with("B"), "{line}");
    let (sm, functions) = warpwright_sass::text::parse(&text).unwrap();
    assert_eq!((sm, functions.len()), (90, 2));
    let compiled = warpwright(folder.path(), &["sass", "k.ptx", "--kernel", "twice"]);
    let one = stdout(&compiled);
    assert!(one.contains(".function twice") && !one.contains(".function nothing"));
}

#[test]
fn the_listing_as_a_document() {
    let Some(toolkit) = require_toolkit("the_listing_as_a_document") else {
        return;
    };
    let folder = folder(&toolkit);
    let args = ["sass", "k.cubin", "--json", "--kernel", "twice"];
    let text = stdout(&warpwright(folder.path(), &args));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "warpwright.sass/1");
    let instructions = document["functions"][0]["instructions"].as_array().unwrap();
    let store = instructions
        .iter()
        .find(|i| i["mnemonic"] == "STG")
        .unwrap();
    assert_eq!(store["modifiers"], ".E");
    assert_eq!(store["operands"].as_array().unwrap().len(), 2, "{store}");
    let bits = store["bits"].as_str().unwrap();
    assert!(bits.starts_with("0x") && bits.len() == 34, "{bits}");
    assert_eq!(store["offset"].as_u64().unwrap() % 16, 0);
}

#[test]
fn checks_hold_or_say_where_they_do_not() {
    let Some(toolkit) = require_toolkit("checks_hold_or_say_where_they_do_not") else {
        return;
    };
    let folder = folder(&toolkit);
    let run = |args: &[&str]| warpwright(folder.path(), args);
    for check in ["roundtrip", "liveness"] {
        let text = stdout(&run(&["sass", check, "k.cubin"]));
        assert!(text.contains("twice: holds"), "{check}: {text}");
        let json = stdout(&run(&[
            "sass", check, "k.ptx", "--json", "--kernel", "nothing",
        ]));
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(document["holds"], true);
        assert_eq!(document["functions"].as_array().unwrap().len(), 1);
        assert_eq!(
            run(&["sass", check, "k.cubin", "--kernel", "no"])
                .status
                .code(),
            Some(1)
        );
    }
    // An opcode that nobody knows keeps its bits, but there is no liveness around it.
    let mut cubin = std::fs::read(folder.path().join("k.cubin")).unwrap();
    let elf = warpwright_sass::Elf::parse(&cubin).unwrap();
    let kernel = elf.kernel("twice").unwrap();
    let code = elf.instructions(&kernel).unwrap();
    let first = code[0].bits().to_le_bytes();
    let at = cubin.windows(16).position(|w| w == first).unwrap();
    cubin[at..at + 2].copy_from_slice(&[0xff, 0x7f]);
    std::fs::write(folder.path().join("odd.cubin"), cubin).unwrap();
    let roundtrip = run(&["sass", "roundtrip", "odd.cubin"]);
    assert!(stdout(&roundtrip).contains("1 of them opaque"));
    let liveness = run(&["sass", "liveness", "odd.cubin"]);
    let said = String::from_utf8_lossy(&liveness.stderr);
    assert_eq!(liveness.status.code(), Some(1), "{said}");
    assert!(
        said.contains("odd.cubin") || said.contains("nvdisasm"),
        "{said}"
    );
}

const SPILLING: &str = "
__global__ void small(float *p) { p[threadIdx.x] *= 2; }
extern \"C\" __global__ void spilling(float *p) {
  float x[48];
#pragma unroll
  for (int i = 0; i < 48; i++) x[i] = p[threadIdx.x + 64 * i];
#pragma unroll
  for (int i = 0; i < 48; i++) x[i] = x[i] * x[47 - i] + sqrtf(x[(i * 7 + 3) % 48]);
#pragma unroll
  for (int i = 0; i < 48; i++) p[threadIdx.x + 64 * i] = x[i] + x[(i * 5 + 1) % 48];
}
";

/// Device code inside host objects is found, shown, and replaced in its place.
#[test]
fn cubins_in_a_host_object() {
    let Some(toolkit) = require_toolkit("cubins_in_a_host_object") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| warpwright(folder.path(), args);
    std::fs::write(folder.path().join("k.cu"), SPILLING).unwrap();
    let nvcc = toolkit.nvcc().unwrap().tool().path.clone();
    let compile = |out: &str, more: &[&str]| {
        let mut command = Command::new(&nvcc);
        command
            .args(["-c", "-maxrregcount=32", "k.cu", "-o", out])
            .args(more);
        let status = command.current_dir(folder.path()).status().unwrap();
        assert!(status.success());
    };
    let sm_90 = "-gencode=arch=compute_90,code=sm_90";
    compile("k.o", &[sm_90, "-gencode=arch=compute_75,code=sm_75"]);
    compile("packed.o", &[sm_90, "--compress-mode=size"]);
    // Two architectures: the file does not say which one is meant.
    let unclear = run(&["sass", "k.o"]);
    assert_eq!(unclear.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unclear.stderr).contains("sm_75, sm_90"));
    let gpu = ["--gpu", "sm_90"];
    let with = |args: &[&str]| run(&[args, &gpu].concat());
    for file in ["k.o", "packed.o"] {
        assert!(stdout(&with(&["sass", file])).contains(".function spilling"));
        assert!(stdout(&with(&["sass", "liveness", file])).contains("spilling: holds"));
        let explained = stdout(&with(&["explain", file, "--kernel", "spilling"]));
        assert!(!explained.contains(" 0 B stack"), "{explained}");
    }
    let moved = |file, out| {
        let pass = [
            "pass",
            "spill-to-shared",
            file,
            "-o",
            out,
            "--kernel",
            "spilling",
        ];
        with(&[&pass[..], &["--block", "64", "--dynamic-smem", "0"]].concat())
    };
    stdout(&moved("k.o", "new.o"));
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let (old, new) = (read("k.o"), read("new.o"));
    assert_eq!(old.len(), new.len(), "the file's layout stays");
    assert_ne!(old, new);
    let explained = stdout(&with(&["explain", "new.o", "--kernel", "spilling"]));
    assert!(explained.contains(" 0 B stack"), "{explained}");
    assert!(stdout(&with(&["sass", "roundtrip", "new.o"])).contains("small(float*): holds"));
    // Where nvcc has compressed the cubin, the new one finds no room in its place: the file grows.
    stdout(&moved("packed.o", "grown.o"));
    let explained = stdout(&with(&["explain", "grown.o", "--kernel", "spilling"]));
    assert!(explained.contains(" 0 B stack"), "{explained}");
    assert!(stdout(&with(&["sass", "roundtrip", "grown.o"])).contains("small(float*): holds"));
    let same = run(&[
        "pass",
        "spill-to-shared",
        "k.o",
        "-o",
        "k.o",
        "--gpu",
        "sm_90",
    ]);
    assert_eq!(same.status.code(), Some(1), "the input stays");
    std::fs::write(folder.path().join("h.cpp"), "int main() {}").unwrap();
    assert_eq!(run(&["sass", "h.cpp"]).status.code(), Some(1));
}
