//! What people see and scripts rely on: the first screen fits a terminal, nothing is written without -o, `-` is stdin
//! and stdout, kernels go by the names of their sources, errors are JSON under `--json`.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use warpwright::Word;
use warpwright_toolkit::testing::require_toolkit;

const TWO: &str = "
__global__ void scale(float *x, float f) { x[blockIdx.x * blockDim.x + threadIdx.x] *= f; }
template <typename T> __global__ void fill(T *x, T v) { x[blockIdx.x * blockDim.x + threadIdx.x] = v; }
template __global__ void fill<int>(int *, int);
template __global__ void fill<double>(double *, double);
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run_in(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    command
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e}: {}", text(bytes)))
}

#[test]
fn the_first_screen_fits_a_terminal() {
    if require_toolkit("the first screen").is_none() {
        return;
    }
    for (name, gpu) in [("sgemm_tile", "h200"), ("icp", "h200"), ("kmeans", "a100")] {
        let source = format!("examples/{name}/{name}.cu");
        let launch = format!("examples/{name}/{name}.toml");
        let args = ["opt", &*source, "--gpu", gpu, "--launch", &*launch];
        let output = run_in(&root(), &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let shown = text(&output.stdout);
        assert!(shown.lines().count() <= 20, "{name}:\n{shown}");
        for line in shown.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        for part in ["limited by", "choice", "next", "--all"] {
            assert!(shown.contains(part), "{name}: {part}\n{shown}");
        }
        let all = run_in(&root(), &[&args[..], &["--all"]].concat());
        let all = text(&all.stdout);
        assert!(all.contains("maxnreg(") && all.lines().count() > 8, "{all}");
    }
}

/// A kernel with mangled and long names, spills to move, and one of the examples each with what makes lines long.
#[test]
fn whatever_is_asked_fits_a_terminal() {
    if require_toolkit("all screens").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let long = "struct a_structure_of_a_long_name { float x, y; };\n\
        template <typename T> __global__ void a_kernel_of_a_long_name(const T *from, T *to, int count) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < count) { to[i].x = from[i].y; to[i].y = from[i].x; } }\n\
        template __global__ void a_kernel_of_a_long_name<a_structure_of_a_long_name>(\n\
        const a_structure_of_a_long_name *, a_structure_of_a_long_name *, int);\n";
    std::fs::write(folder.path().join("long.cu"), long).unwrap();
    let long = folder.path().join("long.cu");
    let sources = [
        long.to_str().unwrap(),
        "examples/sgemm_tile/sgemm_tile.cu",
        "examples/euler_march/euler_march.cu",
    ];
    let name = folder.path().to_str().unwrap();
    for source in sources {
        for command in [
            &["opt", source, "-v"][..],
            &["opt", source, "--all"],
            &["explain", source, "-v"],
            &["check", source, source],
            &["sass", "roundtrip", source],
            &["opt", source, "--recipe", "maxnreg(64)"],
        ] {
            let shown = run_in(&root(), command);
            assert!(shown.status.success(), "{}", text(&shown.stderr));
            let shown = text(&shown.stdout) + &text(&shown.stderr);
            assert!(!shown.is_empty(), "{command:?}");
            // A path is one word.
            let mut lines = shown.lines().filter(|line| !line.contains(name));
            let long = lines.find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{command:?}:\n{shown}");
            assert!(
                !shown.contains("_Z23a_kernel") || command[0] == "explain",
                "{shown}"
            );
        }
    }
    let none = run_in(folder.path(), &["explain-term", "nonsense-without-end"]);
    assert!(
        text(&none.stderr)
            .lines()
            .all(|line| line.chars().count() <= 80)
    );
}

#[test]
fn quiet_commands_are_quiet() {
    if require_toolkit("quiet commands").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("two.cu"), TWO).unwrap();
    let run = |args: &[&str]| run_in(folder.path(), args);
    for command in [
        &["opt", "two.cu", "-o", "a.cubin"][..],
        &["opt", "two.cu", "-o", "b.cubin", "--recipe", "maxnreg(32)"],
        &["pass", "maxnreg(32)", "two.cu", "-o", "a.ptx"],
        &["pass", "dead-instructions", "a.cubin", "-o", "c.cubin"],
        &["pass", "--list"],
        &["explain", "two.cu"],
        &["check", "two.cu", "two.cu"],
        &["sass", "hazards", "a.cubin"],
        &[
            "occupancy",
            "--gpu",
            "h200",
            "--regs",
            "64",
            "--block",
            "256",
        ],
        &["launch", "two.cu", "--kernel", "scale", "-o", "l.toml"],
        &["toolkit"],
    ] {
        let loud = run(command);
        assert!(loud.status.success(), "{command:?}: {}", text(&loud.stderr));
        let quiet = run(&[command, &["-q"]].concat());
        let said = text(&quiet.stdout) + &text(&quiet.stderr);
        assert_eq!((quiet.status.code(), &*said), (Some(0), ""), "{command:?}");
    }
    // What was asked for on stdout comes, and so do errors, with the help of their own command.
    let listing = ["sass", "a.cubin"];
    for more in [&[][..], &["--whole"]] {
        let listing = [&listing[..], more].concat();
        assert_eq!(
            run(&listing).stdout,
            run(&[&listing[..], &["-q"]].concat()).stdout
        );
    }
    let wrong = run(&["pass", "maxnreg", "two.cu", "-q"]);
    let said = text(&wrong.stderr);
    assert!(said.contains("as in `maxnreg(REGISTERS)`"), "{said}");
    assert!(said.contains("see `warpwright pass --help`"), "{said}");
    let wrong = run(&["sass", "assemble", "two.cu", "-o", "t.cubin", "-q"]);
    assert!(text(&wrong.stderr).contains("see `warpwright sass assemble --help`"));
}

/// What a recipe makes stands beside what is there, and each note once.
#[test]
fn a_recipe_is_told_with_its_numbers() {
    if require_toolkit("a recipe's screen").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = root().join("examples/euler_march/euler_march.cu");
    std::fs::copy(source, folder.path().join("k.cu")).unwrap();
    let recipe = "maxntid(1024); spill-to-shared";
    let ran = run_in(
        folder.path(),
        &["opt", "k.cu", "--recipe", recipe, "-o", "a.cubin"],
    );
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let shown = text(&ran.stdout);
    let flat: Vec<&str> = shown.split_whitespace().collect();
    let flat = flat.join(" ");
    for part in [
        "now 64 registers",
        &format!("choice {recipe}: named by --recipe; predicted 0."),
        "B spills (shared)",
        "wrote a.cubin",
    ] {
        assert!(flat.contains(part), "{part}:\n{shown}");
    }
    assert_eq!(shown.matches("spill slots moved").count(), 1, "{shown}");
    // But for progress where the machine is slow.
    let said = text(&ran.stderr);
    assert!(
        said.lines().all(|line| line.ends_with(" until now")),
        "{said}"
    );
    // The table of all candidates has the same spills, in their own column.
    let all = text(&run_in(folder.path(), &["opt", "k.cu", "--all"]).stdout);
    assert!(all.contains("in smem"), "{all}");
    // Machine code and its kernel say the same of shared memory.
    let sass = text(&run_in(folder.path(), &["sass", "a.cubin"]).stdout);
    let explained = text(&run_in(folder.path(), &["explain", "a.cubin"]).stdout);
    let shared = sass.split(" bytes shared and 1024 of the system").next();
    let shared = shared.and_then(|text| text.rsplit(' ').next()).unwrap();
    assert!(
        explained.contains(&format!(" {shared} B shared")),
        "{shared}:\n{explained}"
    );
}

#[test]
fn screens_of_source_to_source_fit_a_terminal() {
    if require_toolkit("screens of stencils").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.cu");
    for source in ["examples/stencils/2d25pt.stencil", "examples/naive/mm.cu"] {
        let shown = run_in(&root(), &["opt", source, "-o", output.to_str().unwrap()]);
        assert!(shown.status.success(), "{}", text(&shown.stderr));
        let shown = text(&shown.stdout);
        assert!(shown.lines().count() <= 24, "{shown}");
        // A path is one word.
        let mut lines = shown.lines().filter(|line| !line.starts_with("wrote "));
        let long = lines.find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{shown}");
    }
}

/// Turns for minutes in the emulator, block after block.
const LONG: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n\
                    .reg .b64 %d<2>;\n.reg .b32 %r<3>;\n.reg .pred %p<2>;\nld.param.u64 %d1, [p];\n\
                    mov.u32 %r1, 0;\nL:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 100000;\n@%p1 bra L;\n\
                    st.global.u32 [%d1], %r1;\nret;\n}\n";

#[test]
fn a_long_run_says_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.ptx"), LONG).unwrap();
    let toml = "kernel = \"k\"\n[sizes.small]\nn = 1\n[sizes.full]\nn = 100000\n[launch]\ngrid = [\"n\"]\n\
                block = [\"32\"]\n[[args]]\nname = \"p\"\ntype = \"u32\"\nshape = [\"1\"]\noutput = true\n\
                init = { kind = \"zeros\" }\n";
    std::fs::write(folder.path().join("k.toml"), toml).unwrap();
    let mut running = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(["run", "k.ptx", "--launch", "k.toml", "--size", "full"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(running.stderr.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    let done = said.strip_prefix("k in the emulator: blocks: ");
    let done = done.and_then(|text| text.split_once(" of 100000 after "));
    let (done, after) = done.unwrap_or_else(|| panic!("{said}"));
    assert!(done.parse::<u64>().unwrap() > 0, "{said}");
    assert!(after.ends_with(" s\n"), "{said}");
}

#[test]
fn nothing_is_written_without_a_place() {
    if require_toolkit("a dry run").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("two.cu"), TWO).unwrap();
    let run = |args: &[&str]| run_in(folder.path(), args);
    let count = || std::fs::read_dir(folder.path()).unwrap().count();
    let shown = run(&["opt", "two.cu", "--gpu", "h200"]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    assert_eq!(count(), 1);
    let summary = text(&shown.stdout);
    assert!(summary.contains("of 3 kernels"), "{summary}");
    assert!(summary.contains("scale(float*, float)"), "{summary}");
    assert!(
        summary.contains("256 threads per block are assumed of all"),
        "{summary}"
    );

    let document = json(&run(&["opt", "two.cu", "--gpu", "h200", "--json"]).stdout);
    assert!(document["output"].is_null());
    assert_eq!(document["kernels"].as_array().unwrap().len(), 3);

    let quiet = run(&["opt", "two.cu", "--gpu", "h200", "-q", "-o", "x.cubin"]);
    assert!(quiet.status.success());
    assert_eq!(
        (text(&quiet.stdout), text(&quiet.stderr)),
        (String::new(), String::new())
    );
    assert_eq!(count(), 2);
}

#[test]
fn stdin_and_stdout_are_files() {
    if require_toolkit("stdin and stdout").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("two.cu"), TWO).unwrap();
    let args = ["opt", "two.cu", "--gpu", "h200", "-o", "x.ptx"];
    assert!(run_in(folder.path(), &args).status.success());
    let ptx = std::fs::read(folder.path().join("x.ptx")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(["opt", "-", "--gpu", "h200", "-o", "-"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&ptx).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        output.stdout.starts_with(b"\x7fELF"),
        "a cubin and nothing else"
    );
    assert!(text(&output.stderr).contains("standard output"));
    // Advice about a kernel that is a stencil is no part of the cubin.
    let args = ["opt", "two.cu", "--gpu", "h200"];
    assert!(
        run_in(folder.path(), &[&args[..], &["-o", "y.cubin"]].concat())
            .status
            .success()
    );
    let piped = run_in(folder.path(), &[&args[..], &["-o", "-"]].concat());
    assert_eq!(
        piped.stdout,
        std::fs::read(folder.path().join("y.cubin")).unwrap()
    );
    assert!(
        text(&piped.stderr)
            .lines()
            .all(|line| line.chars().count() <= 80)
    );
}

#[test]
fn kernels_go_by_the_names_of_their_source() {
    if require_toolkit("names of kernels").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("two.cu"), TWO).unwrap();
    let kernels = |args: &[&str]| {
        let args = [&["opt", "two.cu", "--gpu", "h200", "--json"], args].concat();
        let document = json(&run_in(folder.path(), &args).stdout);
        let kernels = document["kernels"].as_array().unwrap().clone();
        let kernels = kernels.iter().map(|kernel| {
            let name = kernel["name"].as_str().unwrap().to_owned();
            (name, kernel["block"][0].as_u64().unwrap())
        });
        kernels.collect::<Vec<_>>()
    };
    assert_eq!(
        kernels(&["--kernel", "scale"]),
        [("_Z5scalePff".to_owned(), 256)]
    );
    assert_eq!(kernels(&["--kernel", "fill"]).len(), 2);
    assert_eq!(
        kernels(&["--kernel", "fill<*>", "--kernel", "_Z5scalePff"]).len(),
        3
    );
    let blocks = kernels(&["--block", "scale=64", "--block", "128"]);
    for (name, block) in blocks {
        assert_eq!(
            block,
            if name.contains("scale") { 64 } else { 128 },
            "{name}"
        );
    }
    let none = run_in(folder.path(), &["opt", "two.cu", "--kernel", "nobody"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("scale(float*, float)"));
}

#[test]
fn differences_are_shown_in_the_source() {
    if require_toolkit("lines of sources").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.cu"), TWO).unwrap();
    let wrong = TWO.replace("*= f", "*= f + 1");
    std::fs::write(folder.path().join("b.cu"), wrong).unwrap();
    let output = run_in(
        folder.path(),
        &["check", "a.cu", "b.cu", "--kernel", "scale"],
    );
    assert_ne!(output.status.code(), Some(0));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("(a.cu:2)") && shown.contains("(b.cu:2)"),
        "{shown}"
    );
    assert!(shown.contains("scale(float*, float): "), "{shown}");
    assert!(!shown.contains("fill"), "{shown}");
    let listed = run_in(folder.path(), &["sass", "a.cu", "--kernel", "fill<int>"]);
    let listed = text(&listed.stdout);
    assert!(
        listed.contains("fillIiE") && !listed.contains("scale"),
        "{listed}"
    );
}

#[test]
fn errors_are_documents_where_a_document_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("bad.ptx"),
        ".version 8.5\n.target sm_90\nnonsense\n",
    )
    .unwrap();
    let run = |args: &[&str]| run_in(folder.path(), args);
    for (args, code, kind) in [
        (&["opt", "nosuch.ptx", "--json"][..], 1, "input"),
        (&["opt", "bad.ptx", "--json"], 1, "input"),
        (
            &["explain", "bad.ptx", "--gpu", "v100", "--json"],
            1,
            "input",
        ),
        (&["opt", "--json"], 2, "usage"),
        (&["opt", "bad.ptx", "--block", "x", "--json"], 2, "usage"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        let document = json(&output.stdout);
        assert_eq!(document["schema"], "warpwright.error/1");
        assert_eq!(document["kind"], kind, "{args:?}");
        assert!(!document["message"].as_str().unwrap().is_empty());
        assert!(!output.stderr.is_empty(), "{args:?}: people see it, too");
    }
    std::fs::write(folder.path().join("t.sass"), ".sm 90\n\nnonsense here\n").unwrap();
    let document = json(&run(&["explain", "t.sass", "--json"]).stdout);
    assert_eq!(document["place"]["line"], 3, "{document}");
    if require_toolkit("errors of nvcc").is_some() {
        let source = "__global__ void k(int *p) {\n    *p = 3;\n    *p = nothing;\n}\n";
        std::fs::write(folder.path().join("bad.cu"), source).unwrap();
        let place = json(&run(&["opt", "bad.cu", "--json"]).stdout)["place"].clone();
        assert!(
            place["file"].as_str().unwrap().ends_with("bad.cu"),
            "{place}"
        );
        assert_eq!((&place["line"], &place["column"]), (&3.into(), &10.into()));
    }
    let undeclared = ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n  add.u32 %r1, 1, 2;\n}\n";
    std::fs::write(folder.path().join("name.ptx"), undeclared).unwrap();
    let place = json(&run(&["explain", "name.ptx", "--json"]).stdout)["place"].clone();
    assert_eq!(
        (&place["line"], &place["column"]),
        (&6.into(), &11.into()),
        "{place}"
    );
    let plain = run(&["explain", "bad.ptx", "--gpu", "v100"]);
    assert!(text(&plain.stderr).contains("sm_70) is not supported"));
    assert!(text(&run(&["optimise"]).stderr).contains("'opt'"));
}

#[test]
fn a_launch_description_comes_of_the_code() {
    if require_toolkit("launch descriptions").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source =
        format!("{TWO}\nvoid host(float *x) {{ dim3 b(128); scale<<<8, b>>>(x, 2.0f); }}\n");
    std::fs::write(folder.path().join("two.cu"), source).unwrap();
    let run = |args: &[&str]| run_in(folder.path(), args);
    let made = run(&["launch", "two.cu", "--kernel", "scale", "-o", "two.toml"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let toml = std::fs::read_to_string(folder.path().join("two.toml")).unwrap();
    assert!(
        toml.contains("grid = [8]") && toml.contains("block = [128]"),
        "{toml}"
    );
    // The emulator takes it as it is, and so does the choice.
    let args = ["run", "two.cu", "--launch", "two.toml", "--size", "small"];
    let emulated = run(&args);
    assert!(emulated.status.success(), "{}", text(&emulated.stderr));
    // Of narrow numbers, too.
    let narrow = "#include <cstdint>\ntypedef unsigned char byte;\n\
        __global__ void thin(const byte *a, int16_t *b, byte c, short d, size_t n) {\n\
        size_t i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[i] = a[i] * c + d; }\n";
    std::fs::write(folder.path().join("thin.cu"), narrow).unwrap();
    let made = run(&["launch", "thin.cu", "-o", "thin.toml"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let args = ["run", "thin.cu", "--launch", "thin.toml", "--size", "small"];
    let emulated = run(&args);
    assert!(emulated.status.success(), "{}", text(&emulated.stderr));
    let several = run(&["launch", "two.cu"]);
    assert_eq!(several.status.code(), Some(1));
    assert!(text(&several.stderr).contains("--kernel"));
}

#[test]
fn a_report_names_no_place() {
    if require_toolkit("reports of bugs").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("two.cu"), TWO).unwrap();
    let path = folder.path().join("two.cu");
    let told = run_in(
        Path::new("/"),
        &[
            "bug",
            path.to_str().unwrap(),
            "--kernel",
            "scale",
            "--gpu",
            "h200",
            "--",
            "-I/somewhere/include",
        ],
    );
    let told = text(&told.stdout);
    assert!(
        told.contains("- options: --kernel scale --gpu h200 -- -I…\n"),
        "{told}"
    );
    let stencil = text(&run_in(&root(), &["bug", "examples/stencils/2d25pt.stencil"]).stdout);
    assert!(
        stencil.contains("## The stencil") && !stencil.contains("failure"),
        "{stencil}"
    );
    assert!(
        told.contains(".entry _Z5scalePff") && told.contains("ptxas 13"),
        "{told}"
    );
    assert!(!told.contains(&*folder.path().to_string_lossy()), "{told}");
    // The file name of an assert is data; the launch description stands in the report as it is.
    let asserting =
        "#include <cassert>\n__global__ void sure(float *x, int n) { assert(n > 0); x[0] = n; }\n";
    std::fs::write(folder.path().join("sure.cu"), asserting).unwrap();
    let launch = "# of the launch\n";
    let run = |args: &[&str]| text(&run_in(folder.path(), args).stdout);
    let made = run(&["launch", "sure.cu", "-o", "sure.toml"]);
    let toml = folder.path().join("sure.toml");
    let described = std::fs::read_to_string(&toml).unwrap_or_else(|_| panic!("{made}"));
    std::fs::write(&toml, format!("{launch}{described}")).unwrap();
    let path = folder.path().join("sure.cu");
    let told = run(&[
        "bug",
        path.to_str().unwrap(),
        "--launch",
        "sure.toml",
        "--gpu",
        "h200",
    ]);
    let name: Vec<String> = "sure.cu".bytes().map(|b| b.to_string()).collect();
    assert!(!told.contains(&name.join(", ")), "{told}");
    assert!(
        told.contains("120, 120, 120") && told.contains(launch),
        "{told}"
    );
    assert!(told.contains("## What I expected") && told.contains("ISSUE_TEMPLATE"));
    std::fs::write(
        folder.path().join("bad.ptx"),
        ".version 8.5\n.target sm_90\nnonsense\n",
    )
    .unwrap();
    let told = text(&run_in(folder.path(), &["bug", "bad.ptx"]).stdout);
    assert!(
        told.contains("The failure") && told.contains("exit code 1") && told.contains("nonsense"),
        "{told}"
    );
}

#[test]
fn the_command_explains_itself() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| run_in(folder.path(), args);
    let term = run(&["explain-term", "occ."]);
    assert!(text(&term.stdout).starts_with("occupancy\n"));
    assert!(text(&run(&["explain-term", "maxnreg(64)"]).stdout).contains("pass"));
    assert_eq!(run(&["explain-term", "nonsense"]).status.code(), Some(1));
    let near = run(&["explain-term", "regrett"]);
    assert_eq!(near.status.code(), Some(1));
    assert!(text(&near.stderr).contains("near: regret"));
    assert!(text(&run(&["explain-term", "kept"]).stdout).contains("kept"));
    let words = text(&run(&["explain-term"]).stdout);
    assert!(words.contains("spill-to-shared") && words.lines().all(|l| l.chars().count() <= 80));
    for shell in ["bash", "zsh", "fish"] {
        let completions = text(&run(&["completions", shell]).stdout);
        assert!(completions.contains("explain-term"), "{shell}");
    }
    assert!(run(&["man", "pages"]).status.success());
    let page = std::fs::read_to_string(folder.path().join("pages/warpwright-opt.1")).unwrap();
    assert!(page.contains("recipe"));
    for (command, program) in [("nvcc", "NVCC"), ("opt", "NVCC"), ("db-verify", "PROGRAM")] {
        let page = format!("pages/warpwright-{command}.1");
        let page = std::fs::read_to_string(folder.path().join(page)).unwrap();
        let synopsis = page.split(".SH").nth(2).unwrap();
        let wanted = format!("\\-\\- {program}...");
        assert!(synopsis.contains(&wanted), "{command}: {synopsis}");
    }
    for word in Word::ALL
        .map(Word::name)
        .into_iter()
        .chain(["equal", "rewrite"])
    {
        let said = run(&["explain-term", word]);
        assert!(
            text(&said.stdout).contains(word),
            "{word}: {}",
            text(&said.stderr)
        );
    }
    let version = text(&run(&["--version"]).stdout);
    assert!(
        version.contains("13.5") && version.contains('('),
        "{version}"
    );
}

/// Heads of tables that say what they are.
const PLAIN: &[&str] = &[
    "kernel",
    "name",
    "note",
    "share",
    "line",
    "ms",
    "µs",
    "predicted ms",
    "what",
    "was",
    "uses",
    "tool",
    "points",
    "path",
    "instruction",
    "instructions",
    "hint",
    "from",
    "defined by",
    "value",
    "place",
    "original",
    "second",
    "at",
    "date",
    "case",
    "choice",
    "best",
    "why not",
    "GPU",
    "architecture",
    "found",
    "expected",
    "ok",
    "regret",
    "static choice",
    "default µs",
    "not checked",
    "as written",
    "no gain",
    "does not run",
    "from the host",
    "stencil",
    "default",
];

/// The heads of tables in a source: what stands in quotation marks behind `Table::new(&[`.
fn heads(source: &str) -> Vec<String> {
    let lists = source.split("Table::new(&[").skip(1);
    let lists = lists.map(|rest| rest.split(']').next().unwrap());
    let heads = lists.flat_map(|list| list.split('"').skip(1).step_by(2));
    heads.map(str::to_owned).collect()
}

#[test]
fn every_word_of_the_screens_is_explained() {
    let mut words: Vec<String> = Vec::new();
    let mut folders = vec![root().join("crates/cli/src/commands")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                // Numbers of papers and of the laboratory; docs/stencils.md and docs/papers.md have them.
                false
                    if ["report.rs", "selftest.rs", "stencil.rs"]
                        .iter()
                        .any(|name| path.ends_with(name)) => {}
                false => words.extend(heads(&std::fs::read_to_string(path).unwrap())),
            }
        }
    }
    words.extend(heads(
        &std::fs::read_to_string(root().join("crates/report/src/screen.rs")).unwrap(),
    ));
    let page = std::fs::read_to_string(root().join("crates/report/src/page.html")).unwrap();
    for head in page.split("<th scope=\"col\"").skip(1) {
        let text = head.split_once('>').unwrap().1.split('<').next().unwrap();
        words.push(text.to_owned());
    }
    assert!(words.len() > 40, "{words:?}");
    // What limits, what bounds, where a block size comes from, what a choice is called.
    let more = [
        "registers",
        "shared memory",
        "warps",
        "blocks",
        "threads",
        "barriers",
        "latency",
        "issue",
        "traffic",
        ".maxntid",
        ".reqntid",
        "launch description",
        "the code's own launch",
        "lp",
        "cyc%",
        "kept",
        "now",
        "proved",
        "spills",
        "OptTLP",
        "usage-level(10)",
        "spill-to-shared(blocks=4)",
        "smem-spilling",
        "throttle(2)",
        "maxnreg(64); spill-to-shared",
    ];
    words.extend(more.map(str::to_owned));
    words.retain(|word| !word.is_empty() && !PLAIN.contains(&&**word));
    words.sort_unstable();
    words.dedup();
    let folder = tempfile::tempdir().unwrap();
    let unknown = words.iter().filter(|word| {
        let found = run_in(folder.path(), &["explain-term", word]);
        !found.status.success()
    });
    let unknown: Vec<&String> = unknown.collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// The commands that are named next are of the kernel that was asked for, with the options that its files are compiled with.
#[test]
fn what_is_to_do_next_names_the_kernel() {
    if require_toolkit("next commands of check").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sum = |body: &str| {
        format!(
            "template <typename T> __global__ void fill(const T *x, T *y, int n) {{ T s = 0; {body} y[threadIdx.x] = s; }}\n\
             template __global__ void fill<int>(const int *, int *, int);\n"
        )
    };
    let one = sum("for (int k = 0; k < n; k++) s += x[k];");
    let two = sum(
        "for (int k = 0; k < n / 2; k++) s += x[2 * k] + x[2 * k + 1]; if (n > 0 && n % 2) s += x[n - 1];",
    );
    std::fs::write(folder.path().join("a.cu"), one).unwrap();
    std::fs::write(folder.path().join("b.cu"), two).unwrap();
    let args = [
        "check",
        "a.cu",
        "b.cu",
        "--kernel",
        "fill<int>",
        "--",
        "-DN=a b",
    ];
    let checked = run_in(folder.path(), &args);
    let said = text(&checked.stdout)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for file in ["a", "b"] {
        let next = format!(
            "`warpwright launch {file}.cu --kernel 'fill<int>' -o {file}.toml -- '-DN=a b'`"
        );
        assert!(said.contains(&next), "{said}{}", text(&checked.stderr));
    }
}
