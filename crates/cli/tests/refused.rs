//! What ptxas refuses has a place in the file that was given; what `check` and `opt` find out is in their documents.

#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use warpwright_toolkit::Toolkit;
use warpwright_toolkit::testing::require_toolkit;

/// Two kernels; the second one may be spoilt.
const PTX: &str = ".version 8.5
.target sm_90
.address_size 64
.visible .entry one() { ret; }
.visible .entry two(.param .u64 p, .param .u32 n)
{
	.reg .b64 %d<4>;
	.reg .b32 %r<4>;
	ld.param.u64 %d1, [p];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	mul.wide.u32 %d2, %r2, 4;
	add.s64 %d3, %d1, %d2;
	add.u32 %r3, %r1, %r2;
	st.global.u32 [%d3], %r3;
	ret;
}
";
/// A register-heavy kernel with launches of its own.
const OWN: &str = "
#define T 128
extern \"C\" __global__ void heavy(float *p) {
  float x[56];
  for (int r = 0; r < 9; r++) {
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) x[i] = p[threadIdx.x + T * i];
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) x[i] = x[i] * x[55 - i] + sqrtf(x[(i * 7 + 3) % 56]);
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) p[threadIdx.x + T * i] = x[i] + x[(i * 5 + 1) % 56];
  }
}
void go(float *p) { heavy<<<64, T>>>(p); }
";

struct Bench {
    folder: tempfile::TempDir,
    toolkit: PathBuf,
}

impl Bench {
    fn new(toolkit: &Toolkit) -> Bench {
        let ptxas = toolkit.ptxas().unwrap().tool().path.clone();
        let toolkit = ptxas.parent().unwrap().parent().unwrap().to_owned();
        let folder = tempfile::tempdir().unwrap();
        Bench { folder, toolkit }
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// The document of a command that ends with this code.
    #[track_caller]
    fn document(&self, code: i32, args: &[&str], stdin: &str) -> Value {
        let mut program = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        let program = program
            .args(args)
            .arg("--json")
            .current_dir(self.folder.path())
            .env("WARPWRIGHT_TOOLKIT", &self.toolkit)
            .env("WARPWRIGHT_CACHE", self.folder.path().join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut started = program.spawn().unwrap();
        started
            .stdin
            .take()
            .unwrap()
            .write_all(stdin.as_bytes())
            .unwrap();
        let output = started.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

#[test]
fn what_ptxas_refuses_has_a_place() {
    let Some(toolkit) = require_toolkit("errors of ptxas") else {
        return;
    };
    let bench = Bench::new(&toolkit);
    let bad = PTX.replace(
        "add.u32 %r3, %r1, %r2",
        "ld.global.v8.b32 {%r1, %r1, %r1, %r1, %r2, %r2, %r2, %r2}, [%d1]",
    );
    bench.file("bad.ptx", &bad);
    bench.file("new.ptx", &PTX.replace("8.5", "9.99"));
    // The same line, whatever is built of the module: all of it, a kernel alone, or what a recipe made of it.
    let block = ["--block", "64"];
    for args in [
        &["opt", "bad.ptx"][..],
        &["opt", "bad.ptx", "--kernel", "two"],
        &["opt", "bad.ptx", "--recipe", "maxnreg(64)", "-o", "x.cubin"],
        &["explain", "bad.ptx"],
    ] {
        let error = bench.document(1, &[args, &block].concat(), "");
        assert_eq!(error["schema"], "warpwright.error/1");
        assert_eq!(error["kind"], "input", "{error}");
        let place = &error["place"];
        assert_eq!(
            (place["file"].as_str(), place["line"].as_u64()),
            (Some("bad.ptx"), Some(14)),
            "{error}"
        );
        assert_eq!(place["column"], 2);
    }
    let piped = bench.document(1, &["opt", "-", "--block", "64"], &bad);
    assert_eq!(
        (&piped["place"]["file"], &piped["place"]["line"]),
        (&"-".into(), &14.into())
    );
    let newer = bench.document(1, &["opt", "new.ptx", "--block", "64"], "");
    assert_eq!(
        (&newer["place"]["file"], &newer["place"]["line"]),
        (&"new.ptx".into(), &1.into())
    );
    let message = newer["message"].as_str().unwrap();
    assert!(
        message.contains("`new.ptx`") && message.contains("--toolkit"),
        "{message}"
    );
}

#[test]
fn check_has_the_first_difference_and_the_launch_that_shows_it() {
    let Some(toolkit) = require_toolkit("the document of check") else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file("a.ptx", PTX);
    bench.file("b.ptx", &PTX.replace("add.u32 %r3", "sub.u32 %r3"));
    bench.file(
        "c.ptx",
        &PTX.replace("ld.param.u64", "bar.sync 0;\n\tld.param.u64"),
    );
    let two = |document: &Value| {
        let functions = document["functions"].as_array().unwrap();
        functions
            .iter()
            .find(|f| f["name"] == "two")
            .unwrap()
            .clone()
    };
    let refuted = two(&bench.document(1, &["check", "a.ptx", "b.ptx"], ""));
    let found = |tried: &Value| -> Vec<String> {
        let tried = tried["tried"].as_array().unwrap().iter();
        tried
            .map(|t| format!("{} {}", t["rung"], t["found"]).replace('"', ""))
            .collect()
    };
    assert_eq!(
        found(&refuted),
        ["symbolically in-form", "emulator different"]
    );
    let witness = &refuted["witness"];
    // n + tid and n - tid.
    let n = witness["number"].as_u64().unwrap();
    let word = witness["word"].as_u64().unwrap();
    assert_eq!(witness["parameter"], "p");
    assert_eq!(witness["was"].as_u64(), Some(n + word));
    assert_eq!(
        witness["is"].as_u64(),
        Some((n as u32).wrapping_sub(word as u32).into())
    );
    let side = |side: &str, line: u64| {
        let around = refuted["difference"][side]["around"].as_array().unwrap();
        let is_it: Vec<u64> = around
            .iter()
            .filter(|l| l["is_it"] == true)
            .map(|l| l["line"].as_u64().unwrap())
            .collect();
        assert_eq!(is_it, [line]);
    };
    side("original", 15);
    side("rewritten", 15);
    let undecided = two(&bench.document(5, &["check", "a.ptx", "c.ptx"], ""));
    assert_eq!(found(&undecided)[0], "symbolically in-form");
    assert!(undecided["witness"].is_null() && undecided["difference"]["cause"].is_string());
    let proved = two(&bench.document(0, &["check", "a.ptx", "a.ptx"], ""));
    assert_eq!(found(&proved), ["symbolically equal"]);
    assert!(proved["difference"].is_null());
    bench.document(1, &["check", "a.ptx", "b.ptx", "--report", "r.html"], "");
    let page = std::fs::read_to_string(bench.folder.path().join("r.html")).unwrap();
    let value = format!("{:#010x}", witness["is"].as_u64().unwrap());
    assert!(page.contains(&format!("<code>{value}</code>")), "{value}");
}

#[test]
fn the_codes_own_launch_is_known_and_promises_nothing() {
    let Some(toolkit) = require_toolkit("a launch in the source") else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file("own.cu", OWN);
    bench.file(
        "two.cu",
        &format!("{OWN}void other(float *p) {{ heavy<<<1, 64>>>(p); }}\n"),
    );
    let kernel = |args: &[&str]| bench.document(0, args, "")["kernels"][0].clone();
    let own = ["opt", "own.cu", "--gpu", "h200"];
    let bounds = |kernel: &Value| {
        let candidates = kernel["candidates"].as_array().unwrap().iter();
        let recipes = candidates.map(|c| c["recipe"].as_str().unwrap().to_owned());
        recipes
            .filter(|recipe| recipe.contains("maxntid") || recipe.contains("spill-to-shared"))
            .count()
    };
    let seen = kernel(&own);
    assert_eq!(seen["block_source"], "seen");
    assert_eq!(seen["block"], serde_json::json!([128, 1, 1]));
    assert_eq!(bounds(&seen), 0, "{:#}", seen["candidates"]);
    let stated = kernel(&[&own[..], &["--block", "128"]].concat());
    assert_eq!(stated["block_source"], "option");
    assert!(bounds(&stated) > 0);
    // The same occupancy by both.
    let residency = |kernel: &Value| kernel["candidates"][0]["residency"].clone();
    assert_eq!(residency(&seen), residency(&stated));
    // Of launches that do not agree, the first is taken, and that is said.
    assert_eq!(
        kernel(&["explain", "two.cu", "--gpu", "h200"])["block_source"],
        "seen-first"
    );
    assert_eq!(
        kernel(&["explain", "own.cu", "--gpu", "h200"])["block_source"],
        "seen"
    );
}

/// An index by the wrong one of two sizes: numbers that are all one do not tell them apart.
#[test]
fn an_index_by_another_size_is_refuted() {
    let Some(toolkit) = require_toolkit("an index by another size") else {
        return;
    };
    let bench = Bench::new(&toolkit);
    let text = |size: &str| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n\
             .visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n, .param .u32 m)\n{{\n\
             .reg .b32 %r<8>;\n.reg .b64 %d<6>;\nld.param.u64 %d0, [x];\nld.param.u64 %d1, [y];\n\
             ld.param.u32 %r0, [{size}];\nmov.u32 %r1, %tid.x;\nmul.lo.s32 %r2, %r1, %r0;\n\
             mul.wide.u32 %d2, %r2, 4;\nmul.wide.u32 %d3, %r1, 4;\nadd.s64 %d4, %d0, %d2;\n\
             add.s64 %d5, %d1, %d3;\nld.global.u32 %r3, [%d4];\nst.global.u32 [%d5], %r3;\nret;\n}}\n"
        )
    };
    bench.file("m.ptx", &text("m"));
    bench.file("n.ptx", &text("n"));
    let document = bench.document(1, &["check", "m.ptx", "n.ptx"], "");
    let witness = &document["functions"][0]["witness"];
    assert!(
        witness["step"].as_i64().is_some_and(|step| step != 0),
        "{document}"
    );
    let said = document["functions"][0]["text"].as_str().unwrap();
    assert!(said.contains("for each next one, word"), "{said}");
}
