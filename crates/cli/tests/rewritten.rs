//! `warpwright check --launch-a … --launch-b …`: one verdict, one exit code, and no line that says something else.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// `to[i] = f(from[i])` of so many threads a block, where `i < n`.
fn map(name: &str, from: &str, to: &str, instructions: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 {from}, .param .u64 {to}, .param .u32 n)
{{
    .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %d<6>; .reg .pred %p;
    ld.param.u64 %d0, [{from}];
    ld.param.u64 %d1, [{to}];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    setp.ge.s32 %p, %r4, %r0;
    @%p bra END;
    mul.wide.s32 %d2, %r4, 4;
    add.s64 %d3, %d0, %d2;
    add.s64 %d4, %d1, %d2;
    ld.global.f32 %f0, [%d3];
    {instructions}
    st.global.f32 [%d4], %f1;
END:
    ret;
}}
"
    )
}

fn module(kernels: &[String]) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n{}",
        kernels.concat()
    )
}

fn launch(kernel: &str, block: u32, from: &str, to: &str, is_output: bool) -> String {
    let output = if is_output {
        "output = true\n"
    } else {
        "init = \"poison\"\n"
    };
    let input = match from {
        "mid" => "init = \"poison\"",
        _ => "init = { kind = \"uniform\", low = -1.0, high = 1.0 }",
    };
    format!(
        "kernel = \"{kernel}\"\n[sizes.small]\nn = 100\n[launch]\ngrid = [\"ceil_div(n, {block})\"]\nblock = [{block}]\n\
         [[args]]\nname = \"{from}\"\ntype = \"f32\"\nshape = [\"n\"]\n{input}\n\
         [[args]]\nname = \"{to}\"\ntype = \"f32\"\nshape = [\"n\"]\n{output}\
         [[args]]\nname = \"n\"\ntype = \"u32\"\nvalue = \"n\"\n"
    )
}

/// Twice, then a square; both at once; both at once by another road; and both at once, wrong.
fn written(folder: &Path) {
    let twice = "mul.rn.f32 %f1, %f0, 0f40000000;";
    let square = "mul.rn.f32 %f1, %f0, %f0;";
    let both = "add.rn.f32 %f2, %f0, %f0; mul.rn.f32 %f1, %f2, %f2;";
    let rounded = "mul.rn.f32 %f2, %f0, 0f40800000; mul.rn.f32 %f1, %f2, %f0;";
    let wrong = "mul.rn.f32 %f1, %f0, 0f40800000;";
    let steps = [
        map("twice", "x", "mid", twice),
        map("square", "mid", "y", square),
    ];
    let alone = [
        ("fused", twice_then(square)),
        ("both", both.into()),
        ("rounded", rounded.into()),
        ("wrong", wrong.into()),
    ];
    let mut files = vec![
        ("steps.ptx".to_owned(), module(&steps)),
        (
            "twice.toml".to_owned(),
            launch("twice", 32, "x", "mid", false),
        ),
        (
            "square.toml".to_owned(),
            launch("square", 32, "mid", "y", true),
        ),
    ];
    for (name, code) in alone {
        files.push((format!("{name}.ptx"), module(&[map(name, "x", "y", &code)])));
        files.push((format!("{name}.toml"), launch(name, 64, "x", "y", true)));
        files.push((
            format!("{name}-out.toml"),
            launch(name, 64, "x", "y", true).replace("\"y\"", "\"result\""),
        ));
    }
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

fn twice_then(square: &str) -> String {
    format!("mul.rn.f32 %f0, %f0, 0f40000000; {square}")
}

/// The exit code and the document of a comparison with the two steps.
fn compared(folder: &Path, name: &str, toml: &str, more: &[&str]) -> (i32, Value, String) {
    let rewrite = format!("{name}.ptx");
    let mut args = vec!["check", "steps.ptx", &rewrite];
    args.extend([
        "--launch-a",
        "twice.toml",
        "--launch-a",
        "square.toml",
        "--launch-b",
        toml,
    ]);
    args.extend(more);
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        command.args(args).current_dir(folder).output().unwrap()
    };
    let screen = run(&args);
    args.push("--json");
    let document = run(&args);
    assert_eq!(screen.status.code(), document.status.code());
    let json = serde_json::from_slice(&document.stdout).unwrap_or_default();
    (
        screen.status.code().unwrap(),
        json,
        String::from_utf8_lossy(&screen.stdout).into_owned(),
    )
}

#[test]
fn several_kernels_stand_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    written(folder);
    for (name, word, code) in [
        ("fused", "proved-at-launches", 0),
        ("both", "equal-up-to-rounding", 5),
        ("rounded", "equal-up-to-rounding", 5),
        ("wrong", "refuted", 1),
    ] {
        let toml = format!("{name}.toml");
        let (exit, document, screen) = compared(folder, name, &toml, &[]);
        assert_eq!(
            (exit, &document["verdict"]),
            (code, &Value::from(word)),
            "{name}: {screen}"
        );
        assert!(screen.starts_with(&format!("{word}: ")), "{screen}");
        // The worst of the launches, and none is worse.
        let launches = document["launches"].as_array().unwrap();
        let tried = launches.len();
        assert!(
            tried >= 5 || code == 1,
            "odd and tiny sizes, tiles: {screen}"
        );
        assert!(
            launches.iter().any(|launch| launch["verdict"] == word),
            "{screen}"
        );
        assert!(word == "refuted" || !screen.contains("refuted"), "{screen}");
        // What would take it is said where it is not taken.
        let takes = "--accept equal-up-to-rounding takes it";
        let said = |screen: &str| screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(said(&screen).contains(takes), code == 5, "{screen}");
        let accept = ["--accept", "equal-up-to-rounding"];
        let (exit, _, screen) = compared(folder, name, &toml, &accept);
        assert_eq!(exit, if code == 1 { 1 } else { 0 }, "{name}");
        assert!(!said(&screen).contains(takes), "{screen}");
    }
}

/// Two kernels of one launch, compared.
fn compared_once(folder: &Path, kernels: [&str; 2], toml: &str, more: &[&str]) -> Output {
    for (name, text) in ["a.ptx", "b.ptx"].iter().zip(kernels) {
        std::fs::write(folder.join(name), module(&[text.to_owned()])).unwrap();
    }
    std::fs::write(folder.join("l.toml"), toml).unwrap();
    let words = "check a.ptx b.ptx --launch-a l.toml --launch-b l.toml";
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    let command = command.args(words.split(' ')).args(more);
    command.current_dir(folder).output().unwrap()
}

/// The same: the verdict, and what was set where it was found.
fn verdict(folder: &Path, kernels: [&str; 2], toml: &str, more: &[&str]) -> (String, String) {
    let output = compared_once(folder, kernels, toml, &[more, &["--json"]].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let last = document["launches"].as_array().unwrap().last().unwrap();
    let set = last["set"].to_string();
    (document["verdict"].as_str().unwrap().to_owned(), set)
}

/// Sizes that no grid depends on, and numbers among the arguments.
#[test]
fn what_no_launch_grows_with_is_varied_too() {
    let folder = tempfile::tempdir().unwrap();
    let twice = map("k", "x", "y", "mul.rn.f32 %f1, %f0, 0f40000000;");
    let hundred = twice.replace("%r4, %r0;", "%r4, 100;");
    let toml = launch("k", 128, "x", "y", true).replace("ceil_div(n, 128)", "1");
    let of = |kernels, toml: &str, more: &[&str]| verdict(folder.path(), kernels, toml, more);
    let (verdict, set) = of([&twice, &hundred], &toml, &[]);
    assert_eq!((&*verdict, &*set), ("refuted", "[\"n=99\"]"));
    assert_eq!(
        of([&twice, &hundred], &toml, &["--require", "n == 100"]).0,
        "proved-at-launches"
    );
    let by = |factor: &str| {
        let text = map(
            "k",
            "x",
            "y",
            &format!("ld.param.f32 %f2, [a]; mul.rn.f32 %f1, %f0, {factor};"),
        );
        text.replace(".param .u32 n)", ".param .u32 n, .param .f32 a)")
    };
    let toml = toml + "[[args]]\nname = \"a\"\ntype = \"f32\"\nvalue = 2.0\n";
    let kernels = [&*by("%f2"), &*by("0f40000000")];
    let (verdict, set) = of(kernels, &toml, &[]);
    assert_eq!((&*verdict, &*set), ("refuted", "[\"a=0.7316893\"]"));
    assert_eq!(
        of(kernels, &toml, &["--fixed", "a"]).0,
        "proved-at-launches"
    );
    assert!(of([kernels[0]; 2], &toml, &[]).0.starts_with("proved"));
}

/// What a shuffle reads of a lane outside of its mask is not defined, which is a fault of who uses it alone.
#[test]
fn shuffles_may_read_what_nobody_uses() {
    let folder = tempfile::tempdir().unwrap();
    // The first lanes take what the fourth one behind them has; the shuffle is one of the first eight, or of all.
    let shuffled = |lanes: u32, takes: u32| {
        let mask = if lanes < 32 { "255" } else { "0xffffffff" };
        map(
            "k",
            "x",
            "y",
            &format!(
                "{{ .reg .pred %q; .reg .b32 %s; mov.b32 %s, %f0; setp.lt.u32 %q, %r3, {lanes}; \
                 @%q shfl.sync.down.b32 %s, %s, 4, 31, {mask}; setp.lt.u32 %q, %r3, {takes}; \
                 mov.b32 %f1, %s; selp.f32 %f1, %f1, %f0, %q; }}"
            ),
        )
    };
    let toml = launch("k", 32, "x", "y", true).replace("n = 100", "n = 64");
    let of = |takes: u32| {
        let kernels = [&*shuffled(32, takes), &*shuffled(8, takes)];
        described(folder.path(), kernels, [&*toml; 2], &["--only-described"])
    };
    let (code, document, screen) = of(4);
    assert_eq!(
        (code, &document["verdict"]),
        (0, &"proved-at-launches".into()),
        "{screen}"
    );
    let (code, document, screen) = of(8);
    assert_eq!(
        (code, &document["verdict"]),
        (1, &"refuted".into()),
        "{screen}"
    );
    assert!(
        screen.contains("`y[4]` depends on memory that nobody has written, or on a lane"),
        "{screen}"
    );
}

/// Each description may have sizes of its own, as `launch` guesses them: those of the smaller launch count for both, and
/// two that are the same then are tried once. There is a page of it, and what a description guesses is said.
#[test]
fn sizes_of_one_description_count_for_both() {
    let folder = tempfile::tempdir().unwrap();
    let text = [
        ("a.ptx", "mul.rn.f32 %f1, %f0, 0f40000000;"),
        ("b.ptx", "mul.rn.f32 %f1, 0f40000000, %f0;"),
        ("c.ptx", "mul.rn.f32 %f1, %f0, %f0;"),
    ];
    for (name, code) in text {
        let text = module(&[map("k", "x", "y", code)]);
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let small = launch("k", 64, "x", "y", true);
    let sizes = |own: &str| small.replace("[sizes.small]\nn = 100\n", own);
    let tomls = [
        (
            "a.toml",
            sizes("[sizes.full]\nn = 300\n[sizes.small]\nn = 200\n"),
        ),
        (
            "b.toml",
            sizes("[sizes.full]\nn = 300\n[sizes.small]\nn = 70\n")
                .replace("[64]", "[64]  # guess"),
        ),
        (
            "c.toml",
            sizes("[sizes.full]\nn = 70\n[sizes.small]\nn = 200\n"),
        ),
    ];
    for (name, toml) in &tomls {
        std::fs::write(folder.path().join(name), toml).unwrap();
    }
    let check = |kernel: &str, tomls: [&str; 2], more: &[&str]| {
        let launches = ["--launch-a", tomls[0], "--launch-b", tomls[1]];
        let args = [&["check", "a.ptx", kernel][..], &launches, more].concat();
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        let output = command.args(args).current_dir(folder.path()).output();
        let output = output.unwrap();
        (output.status.code().unwrap(), output.stdout)
    };
    let tried = |tomls: [&str; 2]| -> Vec<String> {
        let (code, json) = check("b.ptx", tomls, &["--json", "--only-described"]);
        let document: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(
            (code, &document["verdict"]),
            (0, &"proved-at-launches".into())
        );
        let launches = document["launches"].as_array().unwrap();
        let name = |launch: &Value| format!("{}{}", launch["size"], launch["set"]);
        launches.iter().map(name).collect()
    };
    let both = ["\"small\"[\"n=70\"]", "\"full\"null"];
    assert_eq!(tried(["a.toml", "b.toml"]), both);
    assert_eq!(tried(["b.toml", "a.toml"]), both);
    assert_eq!(tried(["b.toml", "c.toml"]), ["\"full\"[\"n=70\"]"]);
    // Sizes made of it keep to it, and what is wrong is marked on the page.
    let page = ["--report", "r.html"];
    let (code, screen) = check("c.ptx", ["a.toml", "b.toml"], &page);
    let screen = String::from_utf8(screen).unwrap();
    assert_eq!(code, 1, "{screen}");
    assert!(screen.starts_with("refuted: not the same; "), "{screen}");
    assert!(
        screen.contains("a wrong guess refutes as well, and these are guesses: `b.toml` line "),
        "{screen}"
    );
    assert!(!screen.contains("a.toml"), "{screen}");
    let page = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
    for part in [
        "a.ptx and c.ptx",
        "refuted: not the same",
        "small with n=70",
        "<h2>Launches</h2>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// A size of a hundred million elements is refused before it takes memory.
#[test]
fn what_is_too_large_for_terms_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = map("k", "x", "y", "mul.rn.f32 %f1, %f0, 0f40000000;");
    let toml = launch("k", 128, "x", "y", true);
    let more = ["--set", "n=100000000"];
    let output = compared_once(folder.path(), [&text; 2], &toml, &more);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("its buffers hold 762 MiB at size `small`, and terms are for 64"),
        "{said}"
    );
}

/// Two kernels with a description each: the exit code, the document and the screen.
fn described(
    folder: &Path,
    kernels: [&str; 2],
    tomls: [&str; 2],
    more: &[&str],
) -> (i32, Value, String) {
    for (at, name) in ["a", "b"].iter().enumerate() {
        std::fs::write(
            folder.join(format!("{name}.ptx")),
            module(&[kernels[at].to_owned()]),
        )
        .unwrap();
        std::fs::write(folder.join(format!("{name}.toml")), tomls[at]).unwrap();
    }
    let words = "check a.ptx b.ptx --launch-a a.toml --launch-b b.toml";
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        let command = command.args(words.split(' ')).args(more);
        command.current_dir(folder).output().unwrap()
    };
    let screen = run(more);
    let document = run(&[more, &["--json"]].concat());
    let said = [screen.stdout, screen.stderr].concat();
    (
        screen.status.code().unwrap(),
        serde_json::from_slice(&document.stdout).unwrap_or_default(),
        // As it was before it was wrapped.
        String::from_utf8_lossy(&said)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
    )
}

/// A description that says something else than the other one, or than both kernels, is no fault of the rewrite.
#[test]
fn descriptions_that_disagree_are_wrong_input() {
    let folder = tempfile::tempdir().unwrap();
    let twice = map("k", "x", "y", "add.rn.f32 %f1, %f0, %f0;");
    let right = launch("k", 64, "x", "y", true);
    let half = right.replacen("[\"n\"]", "[\"n / 2\"]", 1);
    let padded = right.replacen("[\"n\"]", "[\"n + 4\"]", 1);
    let wide = right.replacen("\"f32\"", "\"f64\"", 1);
    let narrow = right.replace(
        "name = \"y\"\ntype = \"f32\"",
        "name = \"y\"\ntype = \"f16\"",
    );
    let of = |tomls| described(folder.path(), [&twice, &twice], tomls, &[]);
    for (other, said) in [
        (
            &half,
            "`x` has 400 bytes in the original's and 200 in the other",
        ),
        (&padded, "`x` has 400 bytes in the original's and 416"),
        (&wide, "`x` has 400 bytes in the original's and 800"),
        (&narrow, "`y` has 400 bytes in the original's and 200"),
    ] {
        assert_ne!(other, &right);
        let (exit, document, screen) = of([&right, other]);
        assert_eq!(
            (exit, &document["verdict"]),
            (1, &Value::from("wrong-input")),
            "{screen}"
        );
        assert!(screen.contains(said), "{said}: {screen}");
    }
    // Both say integers of what is a sum of floating point in another order.
    let integers = right.replace(
        "name = \"y\"\ntype = \"f32\"",
        "name = \"y\"\ntype = \"s32\"",
    );
    let more = "ld.global.f32 %f2, [%d3]; mul.rn.f32 %f3, %f2, 0f40400000;";
    let one = map("k", "x", "y", &format!("{more} add.rn.f32 %f1, %f3, %f0;"));
    let other = map("k", "x", "y", "mul.rn.f32 %f1, %f0, 0f40A00000;");
    let (exit, document, screen) =
        described(folder.path(), [&one, &other], [&integers, &integers], &[]);
    assert_eq!(
        (exit, &document["verdict"]),
        (1, &Value::from("wrong-input")),
        "{screen}"
    );
    assert!(
        screen.contains("`y` is of type s32, and both kernels store f32"),
        "{screen}"
    );
}

/// What is not tried is said: large sizes, sizes of one side, indices that overflow; and each reason once.
#[test]
fn what_is_not_tried_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let one = map("k", "x", "y", "mul.rn.f32 %f1, %f0, 0f40800000;");
    let other = map(
        "k",
        "x",
        "y",
        "add.rn.f32 %f2, %f0, %f0; add.rn.f32 %f1, %f2, %f2;",
    );
    let sizes = "n = 100\n[sizes.full]\nn = 9000000\n";
    let toml = launch("k", 64, "x", "y", true).replace("n = 100\n", sizes);
    let more = toml.replace("[sizes.full]", "[sizes.huge]\nn = 90000000\n[sizes.full]");
    let rows = toml
        .replace("n = 100\n", "n = 100\nrows = 1\n")
        .replace("n = 9000000\n", "n = 9000000\nrows = 1\n")
        .replace("[\"n\"]", "[\"rows\", \"n\"]");
    let of = |tomls, more: &[&str]| described(folder.path(), [&one, &other], tomls, more);
    let (exit, document, screen) = of([&rows, &more], &[]);
    assert_eq!(
        (exit, &document["verdict"]),
        (5, &Value::from("equal-up-to-rounding")),
        "{screen}"
    );
    let skipped = document["skipped"].as_array().unwrap();
    let codes: Vec<&str> = skipped
        .iter()
        .map(|s| s["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["one-side", "large", "one-side"], "{screen}");
    for said in [
        "full: its buffers hold 68 MiB, and terms are for 64",
        "huge: the original's description has no such size",
        "rows: it is not varied, since only the original's description has it",
        "its addresses were looked at, in 79 of 140625 and 79 of 140625 blocks",
        "not tried: indices at larger sizes: the largest buffer of which blocks were looked at has 2147483649 elements",
    ] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
    assert_eq!(
        screen.matches("the same over the reals").count(),
        1,
        "{screen}"
    );
    let (exit, _, screen) = of([&toml, &toml], &["--require", "k % 4 == 0"]);
    assert_eq!(exit, 1);
    assert!(
        screen.contains("--require 'k % 4 == 0': no description has a size `k` (they have n)"),
        "{screen}"
    );
    let (exit, _, screen) = of([&toml, &toml], &["--set", "k=4"]);
    assert!(
        exit == 1 && screen.contains("no description has a size `k`"),
        "{screen}"
    );
}

/// A described size at which offsets in bytes do not fit 32 bits is looked at without data.
#[test]
fn indices_that_overflow_at_a_described_size_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let one = map("k", "x", "y", "mul.rn.f32 %f1, %f0, 0f40800000;");
    let narrow = one.replace(
        "mul.wide.s32 %d2, %r4, 4;",
        "shl.b32 %r5, %r4, 2; cvt.s64.s32 %d2, %r5;",
    );
    let with = |huge: &str| {
        let sizes = format!("n = 100\n[sizes.huge]\nn = {huge}\n");
        launch("k", 64, "x", "y", true).replace("n = 100\n", &sizes)
    };
    let of = |kernels, toml: &str| described(folder.path(), kernels, [toml, toml], &[]);
    let (exit, document, screen) = of([&one, &narrow], &with("1200000000"));
    assert_eq!(
        (exit, &document["verdict"]),
        (1, &Value::from("refuted")),
        "{screen}"
    );
    assert!(
        screen.contains("huge: refuted")
            && screen.contains("the rewritten kernel reads or writes outside of its memory"),
        "{screen}"
    );
    // Below that they are the same, and the original that overflows is no judge of that size.
    for (kernels, huge) in [
        ([&one, &narrow], "500000000"),
        ([&narrow, &one], "1200000000"),
    ] {
        let (exit, document, screen) = of(kernels.map(|kernel| &**kernel), &with(huge));
        assert_eq!(
            (exit, &document["verdict"]),
            (0, &Value::from("proved-at-launches")),
            "{screen}"
        );
        assert_eq!(
            screen.contains("the original does not run there"),
            huge == "1200000000",
            "{screen}"
        );
    }
}

/// Nobody describes a large size: where an index wraps is found all the same, and said.
#[test]
fn the_size_at_which_an_index_wraps_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let one = map("k", "x", "y", "mul.rn.f32 %f1, %f0, 0f40800000;");
    let of_bytes = |offset: &str| {
        let narrow = format!("shl.b32 %r5, %r4, 2; {offset} %d2, %r5;");
        one.replace("mul.wide.s32 %d2, %r4, 4;", &narrow)
    };
    let (signed, unsigned) = (of_bytes("cvt.s64.s32"), of_bytes("cvt.u64.u32"));
    let toml = |block| launch("k", block, "x", "y", true);
    let tomls = [toml(64), toml(128)];
    let tomls = tomls.each_ref().map(String::as_str);
    let wraps = |value: i64, which, why| (value, which, why);
    for (kernels, up_to, beyond) in [
        (
            [&one, &signed],
            1 << 29,
            wraps((1 << 29) + 1, "second", "outside of its memory"),
        ),
        (
            [&signed, &one],
            1 << 29,
            wraps((1 << 29) + 1, "first", "outside of its memory"),
        ),
        // Offset 2³² is 0: nothing leaves the memory, but two blocks write there.
        (
            [&one, &unsigned],
            1 << 30,
            wraps((1 << 30) + 1, "second", "byte 0 of `y`"),
        ),
        // From there on `n` has a sign.
        (
            [&one, &one],
            i64::from(i32::MAX),
            wraps(1 << 31, "first", "writes nothing"),
        ),
    ] {
        let kernels = kernels.map(|kernel| &**kernel);
        let (exit, document, screen) = described(folder.path(), kernels, tomls, &[]);
        assert_eq!(
            (exit, &document["verdict"]),
            (0, &Value::from("proved-at-launches")),
            "{screen}"
        );
        let limit = &document["limits"][0];
        assert_eq!(
            (&limit["name"], &limit["up_to"]),
            (&"n".into(), &up_to.into()),
            "{screen}"
        );
        assert!(
            screen.contains(&format!(
                "in the blocks looked at, no index is wrong at n = {up_to}"
            )),
            "{screen}"
        );
        let ((value, which, why), found) = (beyond, &limit["beyond"]);
        assert_eq!(
            (&found["value"], &found["which"]),
            (&value.into(), &which.into()),
            "{screen}"
        );
        assert!(found["why"].as_str().unwrap().contains(why), "{screen}");
        // What is wrong with the rewritten kernel alone stands in the first line.
        let said = format!("but an index is wrong at n = {value}");
        assert_eq!(
            document["conditions"] == Value::from(vec![said]),
            which == "second",
            "{screen}"
        );
    }
    // What is required keeps to it, and stands in the first line.
    let within = ["--require", "n <= 1000"];
    let (_, document, screen) = described(folder.path(), [&one, &signed], tomls, &within);
    assert_eq!(document["limits"], Value::Null, "{screen}");
    assert_eq!(document["conditions"][0], "where n <= 1000", "{screen}");
    let said = "the same bits for every input at the launches tried, where n <= 1000; ";
    assert!(screen.contains(said), "{screen}");
}

/// An index in single precision comes twice to one element, within a block.
#[test]
fn an_index_of_floating_point_is_said_where_two_threads_share_one() {
    let folder = tempfile::tempdir().unwrap();
    let one = map("k", "x", "y", "mov.f32 %f1, %f0;");
    let rounded = one.replace(
        "mad.lo.s32 %r4, %r1, %r2, %r3;",
        "cvt.rn.f32.u32 %f0, %r1; cvt.rn.f32.u32 %f1, %r2; cvt.rn.f32.u32 %f2, %r3; \
         mul.rn.f32 %f0, %f0, %f1; add.rn.f32 %f0, %f0, %f2; cvt.rzi.s32.f32 %r4, %f0;",
    );
    let toml = launch("k", 32, "x", "y", true);
    let (_, document, screen) = described(folder.path(), [&one, &rounded], [&toml, &toml], &[]);
    let limit = &document["limits"][0];
    assert_eq!(limit["up_to"], 1 << 24, "{screen}");
    let beyond = &limit["beyond"];
    assert_eq!(beyond["value"], (1 << 24) + 1, "{screen}");
    let said = "writes byte 67108864 of `y` in thread 0 and in thread 1 of block 524288";
    assert!(beyond["why"].as_str().unwrap().contains(said), "{screen}");
    let said = "but an index is wrong at n = 16777217; ";
    assert!(screen.contains(said), "{screen}");
    let said = "not tried: other values of `n` (the largest tried: 65";
    assert!(screen.contains(said), "{screen}");
}

/// The smallest launch has inputs within what is described, though others would show more there.
#[test]
fn the_smallest_witness_keeps_to_what_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let of = |first: &str| {
        let steps = format!("{first} min.f32 %f1, %f2, 0f41000000;");
        map("k", "x", "y", &steps)
    };
    // At most 4, and only then at most 8: what is described, up to 10, shows it, and so does 64.
    let one = of("min.f32 %f2, %f0, 0f40800000;");
    let other = of("mov.f32 %f2, %f0;");
    let toml = launch("k", 32, "x", "y", true);
    let toml = toml.replace("low = -1.0, high = 1.0", "low = -10.0, high = 10.0");
    let (exit, document, screen) = described(folder.path(), [&one, &other], [&toml, &toml], &[]);
    assert_eq!(exit, 1, "{screen}");
    let smallest = &document["smallest"];
    let text = smallest["why"][0]["text"].as_str().unwrap();
    let value = text.split("` = ").nth(1).unwrap();
    let value: f64 = value.split(',').next().unwrap().parse().unwrap();
    assert!((-10.0..=10.0).contains(&value), "{screen}");
    // It is refuted as described: nothing is said of sizes that are made.
    assert!(!screen.contains("--only-described"), "{screen}");
}

/// What is refuted at a size alone that nobody described says so.
#[test]
fn a_size_that_was_made_says_how_to_do_without() {
    let folder = tempfile::tempdir().unwrap();
    let one = map("k", "x", "y", "mov.f32 %f1, %f0;");
    let even = one.replace(
        "setp.ge.s32 %p, %r4, %r0;",
        "and.b32 %r0, %r0, 0xFFFFFFFE; setp.ge.s32 %p, %r4, %r0;",
    );
    let toml = launch("k", 32, "x", "y", true);
    let of = |more: &[&str]| described(folder.path(), [&one, &even], [&toml, &toml], more);
    let (exit, _, screen) = of(&[]);
    let said = "no described launch was refuted, but one that is made of them: --only-described";
    assert!(exit == 1 && screen.contains(said), "{screen}");
    let (exit, _, screen) = of(&["--only-described"]);
    assert!(
        exit == 0 && !screen.contains("--only-described"),
        "{screen}"
    );
}

/// An index of 8 or 16 bits wraps at sizes that nobody describes, and that terms take.
#[test]
fn indices_of_few_bits_are_refuted() {
    let folder = tempfile::tempdir().unwrap();
    let one = map("k", "x", "y", "mul.rn.f32 %f1, %f0, 0f40800000;");
    let index = "mad.lo.s32 %r4, %r1, %r2, %r3;";
    let toml = launch("k", 64, "x", "y", true);
    for (narrow, up_to) in [
        (
            "cvt.s32.s16 %r4, %r4; setp.lt.s32 %p, %r4, 0; @%p bra END;",
            1 << 15,
        ),
        ("cvt.u32.u16 %r4, %r4;", 1 << 16),
        ("cvt.u32.u8 %r4, %r4;", 1 << 8),
    ] {
        let narrow = one.replace(index, &format!("{index} {narrow}"));
        let (exit, document, screen) = described(folder.path(), [&one, &narrow], [&toml; 2], &[]);
        assert_eq!(
            (exit, &document["verdict"]),
            (1, &Value::from("refuted")),
            "{screen}"
        );
        let found = &document["holds_where"]["condition"];
        assert_eq!(found, &format!("n <= {up_to}"), "{screen}");
        let least = Value::from(vec![format!("n={}", up_to + 1)]);
        assert_eq!(document["smallest"]["set"], least, "{screen}");
    }
    // What is required keeps to it.
    let narrow = one.replace(index, &format!("{index} cvt.u32.u16 %r4, %r4;"));
    let within = ["--require", "n <= 60000"];
    let (exit, _, screen) = described(folder.path(), [&one, &narrow], [&toml; 2], &within);
    assert_eq!(exit, 0, "{screen}");
}

/// Sizes that the code itself asks for are tried; with `--set` none are made, and that is said.
#[test]
fn sizes_that_the_code_compares_with_are_tried() {
    let folder = tempfile::tempdir().unwrap();
    let one = map("k", "x", "y", "mul.rn.f32 %f1, %f0, 0f40800000;");
    let path = "mul.rn.f32 %f1, %f0, 0f40800000; setp.ne.s32 %p, %r0, 7919; @%p bra ON; mov.f32 %f1, %f0; ON:";
    let other = map("k", "x", "y", path);
    let toml = launch("k", 64, "x", "y", true);
    let of = |kernels, more: &[&str]| described(folder.path(), kernels, [&*toml; 2], more);
    let (exit, _, screen) = of([&one, &other], &[]);
    assert!(
        exit == 1 && screen.contains("small with n=7919: refuted"),
        "{screen}"
    );
    let twice = "mul.rn.f32 %f2, %f0, 0f40000000; mul.rn.f32 %f1, %f2, 0f40000000;";
    let again = map("k", "x", "y", twice);
    let both = ["--accept", "tested"];
    let with = |more: [&'static str; 2]| [both, more].concat();
    let (exit, _, screen) = of([&one, &again], &with(["--set", "n=50"]));
    let said = "not tried: other values of `n`: with --set none are made of the described ones";
    assert!(exit == 0 && screen.contains(said), "{screen}");
    // What is required moves a size down, where there is none above.
    let (exit, _, screen) = of([&one, &again], &with(["--require", "n <= 70"]));
    assert!(
        exit == 0 && screen.contains("small with n=70: "),
        "{screen}"
    );
}

/// Options that would do nothing, and names that nothing has, are refused.
#[test]
fn what_says_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let one = map("k", "x", "y", "mul.rn.f32 %f1, %f0, 0f40800000;");
    let toml = launch("k", 64, "x", "y", true);
    let of = |more: &[&str]| described(folder.path(), [&*one; 2], [&*toml; 2], more);
    for (name, value) in [
        ("--assume", "n=4"),
        ("--kernel", "k"),
        ("--block", "32"),
        ("--dynamic-smem", "7"),
    ] {
        let (exit, _, screen) = of(&[name, value]);
        let said = format!("{name} says nothing beside --launch-a and --launch-b");
        assert!(exit != 0 && screen.contains(&said), "{screen}");
    }
    let (exit, _, screen) = of(&["--fixed", "nope"]);
    let said = "--fixed nope: no launch has such a buffer or number (they have ";
    assert!(exit == 1 && screen.contains(said), "{screen}");
    let (exit, _, screen) = of(&["--size", "nope"]);
    let said = "--size nope: no description has a size `nope` (they have small)";
    assert!(exit == 1 && screen.contains(said), "{screen}");
}

/// A barrier that not all threads of a block come to is said, though the same bits come out.
#[test]
fn threads_that_end_ahead_of_a_barrier_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let code = "mul.rn.f32 %f1, %f0, 0f40800000;";
    let (one, other) = (
        map("k", "x", "y", code),
        map("k", "x", "y", &format!("{code} bar.sync 0;")),
    );
    let toml = launch("k", 64, "x", "y", true);
    let (exit, _, screen) = described(folder.path(), [&one, &other], [&toml; 2], &[]);
    let said = "in the rewritten kernel threads of a block end ahead of a barrier";
    assert!(exit == 0 && screen.contains(said), "{screen}");
}

/// A size at which the values that showed a fault show it, too, is not right.
#[test]
fn sizes_are_tried_with_the_values_that_show_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let root = map("k", "x", "y", "sqrt.rn.f32 %f1, %f0;");
    let other = "rsqrt.approx.f32 %f2, %f0; mul.rn.f32 %f1, %f2, %f0;";
    let other = map("k", "x", "y", other);
    let toml = launch("k", 64, "x", "y", true).replace("low = -1.0", "low = 0.1");
    let (exit, document, screen) = described(folder.path(), [&root, &other], [&toml; 2], &[]);
    assert_eq!(
        (exit, &document["holds_where"]),
        (1, &Value::Null),
        "{screen}"
    );
    assert_eq!(document["smallest"]["set"][0], "n=1", "{screen}");
}

#[test]
fn outputs_are_paired_by_name_or_statement() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    written(folder);
    // The only output of its type and size.
    let (exit, ..) = compared(folder, "fused", "fused-out.toml", &[]);
    assert_eq!(exit, 0);
    let (exit, ..) = compared(folder, "fused", "fused-out.toml", &["--pair", "y=result"]);
    assert_eq!(exit, 0);
    let (exit, ..) = compared(folder, "fused", "fused-out.toml", &["--pair", "z=result"]);
    assert_eq!(exit, 1, "no launch has such a buffer");
}

/// What holds for every launch needs descriptions that are the same functions of the sizes.
#[test]
fn descriptions_that_agree_at_some_sizes_are_not_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let twice = map("k", "x", "y", "add.rn.f32 %f1, %f0, %f0;");
    let right = launch("k", 64, "x", "y", true);
    let of = |other: &str, more: &[&str]| {
        let (_, document, screen) = described(folder.path(), [&twice; 2], [&right, other], more);
        (
            document["verdict"].as_str().unwrap_or("").to_owned(),
            screen,
        )
    };
    assert_eq!(of(&right, &[]).0, "proved");
    for (from, to) in [
        ("value = \"n\"", "value = \"min(n, 150)\""),
        ("ceil_div(n, 64)", "min(ceil_div(n, 64), 4)"),
    ] {
        let other = right.replace(from, to);
        assert_ne!(other, right);
        // As large as no described size is they are apart.
        assert_eq!(of(&other, &[]).0, "refuted", "{to}");
        let described = of(&other, &["--only-described"]);
        assert_eq!(described.0, "proved-at-launches", "{to}");
    }
    // Data of another name and kind are taken for the original's by statement alone.
    let named = right.replace("\"x\"", "\"u\"");
    assert_eq!(of(&named, &[]).0, "proved");
    let other = named.replace("low = -1.0", "low = -2.0");
    let (_, said) = of(&other, &[]);
    assert!(said.contains("the rewritten kernel's `u`"), "{said}");
    assert_eq!(of(&other, &["--pair", "x=u"]).0, "proved");
}

/// A number that no size decides has other values unless it is fixed, and the headline says at which all was tried.
#[test]
fn integers_that_no_size_decides_are_varied() {
    let folder = tempfile::tempdir().unwrap();
    let by = |factor: &str| {
        let text = map("k", "x", "y", &format!("ld.param.u32 %r5, [m]; {factor}"));
        text.replace(".param .u32 n)", ".param .u32 n, .param .u32 m)")
    };
    let one = by("cvt.rn.f32.u32 %f2, %r5; mul.rn.f32 %f1, %f0, %f2;");
    let turned = by("cvt.rn.f32.u32 %f2, %r5; mul.rn.f32 %f1, %f2, %f0;");
    let other = by("mul.rn.f32 %f1, %f0, 0f40E00000;");
    let toml = |block| {
        let text = launch("k", block, "x", "y", true);
        text + "[[args]]\nname = \"m\"\ntype = \"u32\"\nvalue = 7\n"
    };
    let tomls = [toml(64), toml(32)];
    let tomls = tomls.each_ref().map(String::as_str);
    let of = |kernel: &str, more: &[&str]| described(folder.path(), [&one, kernel], tomls, more);
    let (_, document, screen) = of(&turned, &[]);
    assert_eq!(document["verdict"], "proved-at-launches", "{screen}");
    let said = "the same bits for every input at the launches tried, at m = 7, 8 and 6; ";
    assert!(screen.contains(said), "{screen}");
    let said = "not tried: other values of `m` than those tried";
    assert!(screen.contains(said), "{screen}");
    let (_, document, screen) = of(&other, &[]);
    assert_eq!(document["verdict"], "refuted", "{screen}");
    assert!(screen.contains("small with m=8: refuted"), "{screen}");
    let (_, document, screen) = of(&other, &["--fixed", "m"]);
    assert_eq!(document["verdict"], "proved-at-launches", "{screen}");
    assert!(
        screen.contains("at the launches tried, at m = 7; "),
        "{screen}"
    );
    assert!(!screen.contains("other values of `m`"), "{screen}");
}

/// `y[i] = 2 * x[i]` by blocks of 128 threads, each of so many elements further on; so many elements a thread, or all.
fn strided(stride: u32, elements: Option<usize>) -> String {
    let one = "setp.ge.s32 %p, %r4, %r0; @%p bra END; mul.wide.s32 %d2, %r4, 4; add.s64 %d3, %d0, %d2; \
               add.s64 %d4, %d1, %d2; ld.global.f32 %f0, [%d3]; add.rn.f32 %f1, %f0, %f0; st.global.f32 [%d4], %f1; \
               add.s32 %r4, %r4, 128;\n";
    let body = match elements {
        Some(elements) => one.repeat(elements),
        None => format!("AGAIN:\n{one}bra AGAIN;\n"),
    };
    let whole = map("k", "x", "y", "");
    let (head, _) = whole.split_once("setp.ge.s32").unwrap();
    let head = head.replace("mov.u32 %r2, %ntid.x", &format!("mov.u32 %r2, {stride}"));
    format!("{head}{body}END:\n    ret;\n}}\n")
}

/// What the second block does wrong, or leaves out, no launch with one block shows; nor does one of ten columns what is
/// left out of a hundred.
#[test]
fn several_blocks_of_either_side_are_tried() {
    let folder = tempfile::tempdir().unwrap();
    let twice = map("k", "x", "y", "add.rn.f32 %f1, %f0, %f0;");
    let one = launch("k", 64, "x", "y", true);
    let fours_toml =
        launch("k", 128, "x", "y", true).replace("ceil_div(n, 128)", "ceil_div(n, 512)");
    let of =
        |kernel: &str, toml: &str| described(folder.path(), [&twice, kernel], [&one, toml], &[]);
    let (code, document, screen) = of(&strided(512, Some(4)), &fours_toml);
    assert_eq!(
        (code, &document["verdict"]),
        (0, &"proved-at-launches".into()),
        "{screen}"
    );
    let sizes = document["launches"].as_array().unwrap();
    let has = |set: &str| {
        sizes
            .iter()
            .any(|launch| launch["set"] == Value::from(vec![set]))
    };
    assert!(
        ["n=512", "n=513", "n=1024", "n=1025"].into_iter().all(has),
        "{screen}"
    );
    let (code, document, screen) = of(&strided(1024, Some(4)), &fours_toml);
    assert_eq!(
        (code, &document["verdict"]),
        (1, &"refuted".into()),
        "{screen}"
    );
    assert_eq!(document["holds_where"]["condition"], "n <= 512", "{screen}");
    let said = "right up to n = 512 and wrong from 513 on, as far as tried";
    assert!(screen.contains(said), "{screen}");
    // A grid that forgets what is left.
    let rest = fours_toml.replace("ceil_div(n, 512)", "max(1, n / 512)");
    assert_eq!(of(&strided(512, Some(4)), &rest).0, 1);
    // A second block that nobody can afford: the first one takes all of them.
    let far = fours_toml.replace("ceil_div(n, 512)", "ceil_div(n, 4000000)");
    let (code, document, screen) = of(&strided(4_000_000, None), &far);
    assert_eq!(
        (code, &document["verdict"]),
        (5, &"tested".into()),
        "{screen}"
    );
    let said =
        "one block of the rewritten kernel alone was tried along x: it has two from n = 4000001 on";
    assert!(screen.contains(said), "{screen}");
    // As large as it is described.
    let sizes = "n = 100\n[sizes.full]\nn = 40000\n";
    let full = one
        .replace("n = 100\n", sizes)
        .replace("ceil_div(n, 64)", "600");
    let least = twice.replace(
        "mov.u32 %r3, %tid.x;",
        "mov.u32 %r3, %tid.x; min.s32 %r0, %r0, 3000;",
    );
    let (code, _, screen) = described(folder.path(), [&twice, &least], [&full; 2], &[]);
    assert_eq!(code, 1, "{screen}");
    assert!(screen.contains("small with n=40000: refuted"), "{screen}");
}

/// Over the reals a sigmoid is a sigmoid; what one of them makes of large numbers is none.
#[test]
fn large_numbers_are_tried_on_what_is_equal_over_the_reals() {
    let folder = tempfile::tempdir().unwrap();
    let one = "neg.f32 %f1, %f0; ex2.approx.f32 %f2, %f1; add.rn.f32 %f3, %f2, 0f3F800000; div.rn.f32 %f1, 0f3F800000, %f3;";
    let other =
        "ex2.approx.f32 %f2, %f0; add.rn.f32 %f3, %f2, 0f3F800000; div.rn.f32 %f1, %f2, %f3;";
    let kernels = [one, other].map(|code| map("k", "x", "y", code));
    let [one, other] = kernels.each_ref().map(String::as_str);
    let toml = launch("k", 64, "x", "y", true);
    let of = |kernels, toml: &str| described(folder.path(), kernels, [toml; 2], &[]);
    let (code, document, screen) = of([one, other], &toml);
    assert_eq!(
        (code, &document["verdict"]),
        (5, &"equal-up-to-rounding".into()),
        "{screen}"
    );
    let said = "but with 200 throughout `x` `y[0]` is NaN in place of 1";
    assert!(
        document["conditions"][0].as_str().unwrap().contains(said),
        "{screen}"
    );
    // Within what is described it refutes; where the original has no number it does not.
    let wide = toml.replace("high = 1.0", "high = 300.0");
    let (code, _, screen) = of([one, other], &wide);
    assert_eq!(code, 1, "{screen}");
    let (code, document, screen) = of([other, one], &toml);
    assert_eq!(
        (code, &document["conditions"]),
        (5, &Value::Null),
        "{screen}"
    );
}

/// What the description tolerates refutes nothing, where the original is 0 either; nor what is rounding beside the results
/// on described inputs.
#[test]
fn a_tolerance_counts_where_the_original_is_zero() {
    let folder = tempfile::tempdir().unwrap();
    let least = |least: &str| map("k", "x", "y", &format!("max.f32 %f1, %f0, {least};"));
    let (zero, tiny, large) = (
        least("0f00000000"),
        least("0f33D6BF95"),
        least("0f3A83126F"),
    );
    let toml = launch("k", 64, "x", "y", true);
    let stated = toml.replace(
        "output = true\n",
        "output = true\ntolerance = { rel = 1e-5, abs = 1e-5 }\n",
    );
    for (kernel, toml, word) in [
        (&tiny, &stated, "tested"),
        (&large, &stated, "refuted"),
        (&tiny, &toml, "tested"),
        (&large, &toml, "refuted"),
    ] {
        let (_, document, screen) = described(folder.path(), [&zero, kernel], [toml; 2], &[]);
        assert_eq!(document["verdict"], word, "{screen}");
    }
}

/// What is right at some sizes alone is said with a condition that `--require` takes; without one nothing is.
#[test]
fn the_condition_under_which_both_agree_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let twice = map("k", "x", "y", "mul.rn.f32 %f1, %f0, 0f40000000;");
    let loaded = "ld.param.u32 %r0, [n];";
    let fours = format!("{loaded} add.u32 %r0, %r0, 3; and.b32 %r0, %r0, -4;");
    let fours = twice.replace(loaded, &fours);
    let hundred = twice.replace("%r4, %r0;", "%r4, 100;");
    let toml = launch("k", 128, "x", "y", true);
    let of =
        |kernel: &str, more: &[&str]| described(folder.path(), [&twice, kernel], [&*toml; 2], more);
    let (code, document, screen) = of(&fours, &[]);
    assert_eq!((code, &document["verdict"]), (1, &Value::from("refuted")));
    let found = &document["holds_where"];
    assert_eq!(found["condition"], "n % 4 == 0");
    assert_eq!(found["right"], Value::from(vec![100, 12, 20]));
    assert_eq!(found["wrong"], Value::from(vec![99, 6, 13]));
    let said = "right where n % 4 == 0, as far as tried: at n = 100, 12, 20, not at 99, 6, 13";
    assert!(screen.contains(said), "{screen}");
    let (code, document, _) = of(&fours, &["--require", "n % 4 == 0"]);
    let verdict = &document["verdict"];
    assert_eq!((code, verdict), (0, &Value::from("proved-at-launches")));
    let (code, document, _) = of(&hundred, &[]);
    assert_eq!((code, &document["holds_where"]), (1, &Value::Null));
    // Of a size that is described, too; what is required moves it.
    let odd = toml.replace("n = 100", "n = 37");
    let of =
        |kernel: &str, more: &[&str]| described(folder.path(), [&twice, kernel], [&*odd; 2], more);
    let (code, document, screen) = of(&fours, &[]);
    let found = &document["holds_where"];
    assert_eq!(
        (code, &found["condition"]),
        (1, &"n % 4 == 0".into()),
        "{screen}"
    );
    assert_eq!(found["right"], Value::from(vec![12, 20, 40]));
    let (code, document, screen) = of(&fours, &["--require", "n % 4 == 0"]);
    assert_eq!(code, 0, "{screen}");
    assert_eq!(document["launches"][0]["set"], Value::from(vec!["n=40"]));
    let wrong = twice.replace("0f40000000", "0f40400000");
    let (code, document, _) = of(&wrong, &[]);
    assert_eq!((code, &document["holds_where"]), (1, &Value::Null));
}

/// Where data stay as described, an output that is one number throughout says little, and that is said.
#[test]
fn outputs_that_tell_little_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let begin = "cvt.rzi.u32.f32 %r5, %f0;";
    let turns = format!(
        "{begin} mov.f32 %f1, 0f00000000; LOOP: setp.eq.u32 %p, %r5, 0; @%p bra OUT; \
         add.rn.f32 %f1, %f1, 0f3F800000; sub.u32 %r5, %r5, 1; bra LOOP; OUT:"
    );
    let turns = map("k", "x", "y", &turns);
    let at_once = map("k", "x", "y", &format!("{begin} cvt.rn.f32.u32 %f1, %r5;"));
    let toml = launch("k", 64, "x", "y", true);
    let of = |init: &str| {
        let toml = toml.replace("{ kind = \"uniform\", low = -1.0, high = 1.0 }", init);
        described(folder.path(), [&turns, &at_once], [&*toml; 2], &[])
    };
    let (_, document, screen) = of("{ kind = \"fill\", value = 3.0 }");
    assert_eq!(document["verdict"], "tested", "{screen}");
    let said = "`y` tells little at `small`: every element is 3";
    assert!(screen.contains(said), "{screen}");
    let (_, document, screen) = of("{ kind = \"uniform\", low = 1.0, high = 9.0 }");
    assert_eq!(document["verdict"], "tested", "{screen}");
    assert!(!screen.contains("tells little"), "{screen}");
}

/// The last element is looked at by one thread too few: of all that differs, the least and the plainest is shown.
#[test]
fn the_smallest_launch_and_the_plainest_inputs_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let twice = map("k", "x", "y", "add.rn.f32 %f1, %f0, %f0;");
    let third = "mov.f32 %f1, 0f00000000; setp.eq.u32 %p, %r4, 2; @!%p add.rn.f32 %f1, %f0, %f0;";
    let third = map("k", "x", "y", third);
    let toml = launch("k", 64, "x", "y", true);
    let of = |toml: &str| described(folder.path(), [&twice, &third], [toml; 2], &[]);
    let (code, document, screen) = of(&toml);
    let smallest = &document["smallest"];
    assert_eq!((code, &smallest["set"][0]), (1, &Value::from("n=3")));
    let said = "the smallest found that shows it, small with n=3: with `x[2]` = 1, zeros elsewhere in `x`, `y[2]` is 0 in place of 2";
    assert!(screen.contains(said), "{screen}");
    // Numbers that the description does not have are none of a witness.
    let (_, _, screen) = of(&toml.replace("low = -1.0", "low = 0.5"));
    let said = "with zeros or ones elsewhere in `x`, `y[2]` is 0 in place of 2";
    assert!(screen.contains(said), "{screen}");
}

/// What a caller may do whom no description keeps from it is said, and decides nothing.
#[test]
fn an_output_that_is_an_input_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let twice = map("k", "x", "y", "add.rn.f32 %f1, %f0, %f0;");
    let other = map("k", "x", "y", "mul.rn.f32 %f1, %f0, 0f40000000;");
    let zero = "mov.f32 %f3, 0f00000000; st.global.f32 [%d4], %f3; ld.global.f32 %f0, [%d3]; add.rn.f32 %f1, %f0, %f0;";
    let zero = map("k", "x", "y", zero);
    let toml = launch("k", 64, "x", "y", true);
    let of = |kernels: [&str; 2]| described(folder.path(), kernels, [&*toml; 2], &[]);
    for (kernels, word, said) in [
        (
            [&*twice, &*other],
            "equal-up-to-rounding",
            "in place, `y` being `x`: equal-up-to-rounding",
        ),
        (
            [&twice, &zero],
            "refuted",
            "not in place, `y` being `x`, where the original is right: `x[0]` is another function",
        ),
        (
            [&zero, &twice],
            "refuted",
            "not in place, `y` being `x`, where the original is right: `x[0]` is another function",
        ),
    ] {
        let (code, document, screen) = of(kernels);
        assert_eq!(document["in_place"][0]["verdict"], word, "{screen}");
        assert!(screen.contains(said) && code != 1, "{screen}");
    }
}
