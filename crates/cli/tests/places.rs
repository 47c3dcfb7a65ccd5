//! Where results go: never over an input, nowhere but where they were asked for, whatever the names; and what
//! names, pipes and tools that hang do to the program.

#![cfg(unix)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use warpwright_toolkit::testing::require_toolkit;

const KERNEL: &str = ".version 8.5
.target sm_90
.address_size 64

.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<3>;
	.reg .b64 %d;
	ld.param.u64 %d, [p];
	mov.u32 %r1, %tid.x;
	st.global.u32 [%d], %r1;
	ret;
}
";

const LAUNCH: &str = "kernel = \"k\"
[sizes.small]
n = 1
[launch]
grid = [1]
block = [32]
[[args]]
name = \"p\"
type = \"u32\"
shape = [1]
init = \"zeros\"
output = true
";

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bench = Bench { folder };
        bench.file("k.ptx", KERNEL);
        bench.file("k.toml", LAUNCH);
        bench
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("a file");
    }

    fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("PATH", "/usr/bin:/bin")
            .env("WARPWRIGHT_CACHE", self.path("cache"))
            .env_remove("WARPWRIGHT_TOOLKIT")
            .env_remove("CUDA_HOME")
            .env_remove("CUDA_PATH");
        command
    }

    #[track_caller]
    fn gives<S: AsRef<OsStr>>(&self, code: i32, args: &[S]) -> Output {
        let output = self.command(args).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        output
    }

    /// Every file of the folder with its contents, links not followed.
    fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let list = std::fs::read_dir(self.folder.path()).expect("the folder");
        let paths = list.map(|entry| entry.expect("an entry").path());
        let mut all: Vec<_> = paths
            .filter(|p| p.is_file() && !p.is_symlink())
            .map(|p| (p.clone(), std::fs::read(&p).expect("a file")))
            .collect();
        all.sort();
        all
    }
}

#[test]
fn a_result_never_takes_the_place_of_an_input() {
    let bench = Bench::new();
    for input in ["k.ptx", "k.toml"] {
        symlink(input, bench.path(format!("link-{input}"))).expect("a link");
        std::fs::hard_link(bench.path(input), bench.path(format!("hard-{input}"))).expect("a link");
    }
    symlink(".", bench.path("here")).expect("a link");
    let before = bench.everything();
    let launch = ["--launch", "k.toml"];
    for kind in ["", "./", "link-", "hard-", "here/"] {
        let (ptx, toml) = (format!("{kind}k.ptx"), format!("{kind}k.toml"));
        for out in [ptx.as_str(), &toml] {
            bench.gives(
                1,
                &[&["pass", "print", "k.ptx", "-o", out][..], &launch].concat(),
            );
            bench.gives(
                1,
                &[&["opt", "k.ptx", "--emit", "ptx", "-o", out][..], &launch].concat(),
            );
            let other = [
                "opt", "k.ptx", "--emit", "ptx", "-o", "out", "--report", out,
            ];
            bench.gives(1, &[&other[..], &launch].concat());
            bench.gives(
                1,
                &[&["explain", "k.ptx", "--report", out][..], &launch].concat(),
            );
            bench.gives(1, &[&["tune", "k.ptx", "-o", out][..], &launch].concat());
        }
    }
    bench.gives(
        1,
        &[
            "opt", "k.ptx", "--emit", "ptx", "-o", "new", "--report", "./new",
        ],
    );
    bench.gives(1, &["tune", "--import", "k.toml", "--export", "k.toml"]);
    assert_eq!(bench.everything(), before);
}

#[test]
fn a_place_that_cannot_be_written_is_noticed_before_the_work() {
    let bench = Bench::new();
    // Had it begun to read, the missing file would be what it complains about.
    for args in [
        &["opt", "absent.ptx", "-o", "nowhere/out.cubin"][..],
        &["pass", "print", "absent.ptx", "-o", "nowhere/out.ptx"],
        &["explain", "absent.ptx", "--report", "nowhere/page.html"],
        &[
            "run",
            "absent.ptx",
            "--launch",
            "k.toml",
            "--save",
            "k.toml/sub",
        ],
    ] {
        let said = String::from_utf8_lossy(&bench.gives(1, args).stderr).into_owned();
        assert!(!said.contains("absent"), "{said}");
    }
}

#[test]
fn saving_stays_in_its_folder() {
    let bench = Bench::new();
    bench.file("evil.toml", LAUNCH.replace("\"p\"", "\"../evil\""));
    bench.gives(
        1,
        &["run", "k.ptx", "--launch", "evil.toml", "--save", "saved"],
    );
    assert!(!bench.path("saved").exists() && !bench.path("evil.npy").exists());
    // A link that lies in the folder already is replaced and not followed.
    std::fs::create_dir(bench.path("saved")).expect("a folder");
    bench.file("victim", "as it was");
    symlink("../victim", bench.path("saved/p.npy")).expect("a link");
    bench.gives(
        0,
        &["run", "k.ptx", "--launch", "k.toml", "--save", "saved"],
    );
    assert_eq!(
        std::fs::read(bench.path("victim")).expect("a file"),
        b"as it was"
    );
    assert!(bench.path("saved/p.npy").is_file() && !bench.path("saved/p.npy").is_symlink());
}

#[test]
fn names_that_are_no_text() {
    let bench = Bench::new();
    let name = |bytes: &'static [u8]| Path::new(OsStr::from_bytes(bytes)).to_path_buf();
    let (ptx, toml, out) = (name(b"\xff.ptx"), name(b"\xfe.toml"), name(b"\xfd.ptx"));
    bench.file(&ptx, KERNEL);
    bench.file(&toml, LAUNCH);
    let arguments = |words: &[&str]| -> Vec<std::ffi::OsString> {
        let named = |word: &&str| match *word {
            "PTX" => ptx.clone().into(),
            "TOML" => toml.clone().into(),
            "OUT" => out.clone().into(),
            word => word.into(),
        };
        words.iter().map(named).collect()
    };
    bench.gives(0, &arguments(&["run", "PTX", "--launch", "TOML"]));
    bench.gives(0, &arguments(&["explain", "PTX", "--launch", "TOML"]));
    bench.gives(0, &arguments(&["pass", "print", "PTX", "-o", "OUT"]));
    bench.gives(0, &arguments(&["check", "PTX", "OUT"]));
    let Some(toolkit) = require_toolkit("names_that_are_no_text") else {
        return;
    };
    let cu = name(b"\xfc.cu");
    bench.file(&cu, "__global__ void k(int *p) { *p = 1; }\n");
    let nvcc = &toolkit.nvcc().expect("nvcc").tool().path;
    let mut command = bench.command(&["pass", "print"]);
    command
        .arg(&cu)
        .arg("--toolkit")
        .arg(nvcc.parent().expect("a folder"));
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let bench = Bench::new();
    let name = "a\u{1b}[2J\u{9b}\rb";
    bench.file(format!("{name}.ptx"), KERNEL);
    bench.file("k\u{7}.toml", LAUNCH.replace("\"k\"", "\"k\\u001b[2J\""));
    bench.file("bad.ptx", KERNEL.replace("ret;", "ret; \u{1b}[2J"));
    bench.file("text", "\u{1b}[2J");
    let file = format!("{name}.ptx");
    for args in [
        &["explain", &*file][..],
        &["explain", "--json", &file],
        &["explain", &format!("{name}.cu")],
        &["explain", "bad.ptx"],
        &["explain", "text"],
        &["run", "k.ptx", "--launch", "k\u{7}.toml"],
        &["pass", "print", "k.ptx", "-o", &format!("{name}/x")],
        &["explain", "k.ptx", "--kernel", name],
        &["opt", "k.ptx", "--gpu", name, "-o", "out"],
        &["run", "k.ptx", "--launch", "k.toml", "--size", name],
    ] {
        let output = bench.command(args).output().expect("the program starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).expect("text");
        let found = said
            .chars()
            .find(|c| c.is_control() && !"\n\t".contains(*c));
        assert_eq!(found, None, "{args:?}: {said:?}");
    }
}

#[test]
fn fuel_bounds_the_whole_launch() {
    let bench = Bench::new();
    bench.file(
        "many.toml",
        LAUNCH.replace("grid = [1]", "grid = [2147483647]"),
    );
    let start = Instant::now();
    let fuel = ["--fuel", "100000"];
    let args = [&["run", "k.ptx", "--launch", "many.toml"][..], &fuel].concat();
    let first = bench.gives(1, &args);
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(String::from_utf8_lossy(&first.stderr).contains("budget"));
    assert_eq!(
        bench.gives(1, &args).stderr,
        first.stderr,
        "the same place each time"
    );
}

#[test]
fn pipes_that_nobody_is_at_the_other_end_of() {
    let bench = Bench::new();
    let made = Command::new("mkfifo").arg(bench.path("pipe")).status();
    assert!(made.expect("mkfifo").success());
    let start = Instant::now();
    bench.gives(1, &["explain", "pipe"]);
    bench.gives(1, &["run", "k.ptx", "--launch", "pipe"]);
    bench.gives(1, &["pass", "print", "k.ptx", "-o", "pipe"]);
    bench.gives(1, &["report", "pipe"]);
    assert!(start.elapsed() < Duration::from_secs(20));
    // With a writer it is a file like any other, however slow.
    let script = "(sleep 0.3; cat k.ptx) > pipe & exec \"$0\" run pipe --launch k.toml";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_warpwright")]);
    let output = command.current_dir(bench.folder.path()).output();
    assert!(output.expect("a shell").status.success());
}

#[test]
fn a_tool_that_hangs_is_given_up() {
    let bench = Bench::new();
    for (tool, file) in [("ptxas", "k.ptx"), ("nvcc", "k.cu")] {
        let folder = bench.path(format!("with-{tool}"));
        std::fs::create_dir(&folder).expect("a folder");
        let script = "#!/bin/sh\ncase \"$*\" in *--version*) echo 'release 13.5, V13.5.37';; *) sleep 600;; esac\n";
        std::fs::write(folder.join(tool), script).expect("a script");
        let may_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.join(tool), may_run).expect("permissions");
        bench.file("k.cu", "__global__ void k() {}\n");
        let start = Instant::now();
        let mut command = bench.command(&["opt", file, "-o", "out.cubin", "--toolkit"]);
        command.arg(&folder).env("WARPWRIGHT_TOOL_SECONDS", "0.5");
        let output = command.output().expect("the program starts");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("did not end within"), "{said}");
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    assert!(!bench.path("out.cubin").exists());
}

#[test]
fn another_include_path_is_another_program() {
    let Some(toolkit) = require_toolkit("another_include_path_is_another_program") else {
        return;
    };
    let bench = Bench::new();
    let nvcc = &toolkit.nvcc().expect("nvcc").tool().path;
    let folder = nvcc.parent().expect("a folder");
    bench.file(
        "k.cu",
        "#include <n.h>\n__global__ void k(int *p) { *p = N; }\n",
    );
    for (dir, n) in [("first", 11), ("second", 22)] {
        std::fs::create_dir(bench.path(dir)).expect("a folder");
        bench.file(format!("{dir}/n.h"), format!("#define N {n}\n"));
    }
    let ptx = |variable: &str, dir: &str| {
        let mut command = bench.command(&["pass", "print", "k.cu", "--toolkit"]);
        command.arg(folder).env(variable, bench.path(dir));
        let output = command.output().expect("the program starts");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for variable in ["CPATH", "CPLUS_INCLUDE_PATH"] {
        assert!(ptx(variable, "first").contains(", 11;"));
        assert!(ptx(variable, "second").contains(", 22;"));
    }
}

#[test]
fn an_original_that_faults_is_no_judge() {
    let bench = Bench::new();
    let store = |at: &str| {
        format!(
            ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b64 %a;\n\
             ld.param.u64 %a, [p];\ncvta.to.global.u64 %a, %a;\nst.global.u32 [%a+{at}], 7;\nret;\n}}\n"
        )
    };
    bench.file("inside.ptx", store("0"));
    bench.file("outside.ptx", store("4096"));
    bench.file(
        "one.toml",
        "kernel = \"k\"\nabout = \"\"\n[sizes.small]\n[launch]\ngrid = [1]\nblock = [1]\n[[args]]\nname = \"p\"\n\
         type = \"u32\"\nshape = [1]\noutput = true\n",
    );
    let check = |a: &str, b: &str| {
        let mut command = bench.command(&["check", "--run", a, b, "--launch", "one.toml"]);
        let output = command.output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), said)
    };
    let (code, said) = check("outside.ptx", "outside.ptx");
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("emulator: undecided"), "{said}");
    let (code, said) = check("inside.ptx", "outside.ptx");
    assert_eq!(code, Some(1), "{said}");
    let (code, said) = check("inside.ptx", "inside.ptx");
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("equal here, not proved"), "{said}");
}

#[test]
fn machine_code_is_not_written_to_a_file_for_ptx() {
    let Some(toolkit) = require_toolkit("machine_code_is_not_written_to_a_file_for_ptx") else {
        return;
    };
    let bench = Bench::new();
    let ptxas = &toolkit.ptxas().expect("ptxas").tool().path;
    let written = |out: &str| {
        let recipe = "schedule(by=height)";
        let mut command = bench.command(&["pass", recipe, "k.ptx", "-o", out, "--toolkit"]);
        command.arg(ptxas.parent().expect("a folder"));
        command.args(["--gpu", "h200", "--block", "32", "--dynamic-smem", "0"]);
        command.output().expect("the program starts")
    };
    let output = written("out.ptx");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!bench.path("out.ptx").exists());
    let output = written("out.cubin");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(bench.path("out.cubin").exists());
}

/// What a source includes is an input as well, whatever writes and wherever the headers are known from.
#[test]
fn a_header_is_never_written() {
    let Some(toolkit) = require_toolkit("a_header_is_never_written") else {
        return;
    };
    let bench = Bench::new();
    let ptxas = &toolkit.ptxas().expect("ptxas").tool().path;
    std::fs::create_dir(bench.path("include")).expect("a folder");
    bench.file("include/own", "#define STEPS 3\n");
    symlink("own", bench.path("include/link.html")).expect("a link");
    let kernel = "#include \"own\"\n__global__ void k(float *p) { p[STEPS] = 1; }\n";
    bench.file("k.cu", kernel);
    bench.file("broken.cu", kernel.replace("1;", "nothing;"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    // The second time, the build comes out of the cache.
    for _ in 0..2 {
        for args in [
            &["explain", "k.cu", "--report", "include/link.html"][..],
            &[
                "opt",
                "k.cu",
                "--gpu",
                "sm_90",
                "--report",
                "include/link.html",
            ],
            &["opt", "k.cu", "--gpu", "sm_90", "-o", "include/own"],
            &["pass", "print", "k.cu", "-o", "include/own"],
            &["bug", "k.cu", "-o", "include/own"],
            &["bug", "broken.cu", "-o", "include/own"],
        ] {
            let mut command = bench.command(args);
            command
                .arg("--toolkit")
                .arg(ptxas.parent().expect("a folder"));
            // A pass takes no options of nvcc: the environment says where the header is.
            command
                .env("PATH", &path)
                .env("CPATH", bench.path("include"));
            let output = command.output().expect("the program starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
            assert!(said.contains("is an input"), "{args:?}: {said}");
            let header = std::fs::read_to_string(bench.path("include/own")).expect("a header");
            assert_eq!(header, "#define STEPS 3\n", "{args:?}");
        }
    }
}

/// Programs read the winners of a store, whatever this process does: no result takes the place of one.
#[test]
fn winners_are_no_places_for_results() {
    let bench = Bench::new();
    for winner in ["a.winner", "b.imported"] {
        bench.file(winner, "a winner");
        for words in [
            &["trace", "-o", winner, "--", "true"][..],
            &["tune", "--keep", winner, "--", "true"],
        ] {
            let output = bench.command(words).output().expect("the program starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
            assert!(said.contains("the store itself"), "{words:?}: {said}");
            let kept = std::fs::read_to_string(bench.path(winner)).expect("there");
            assert_eq!(kept, "a winner", "{words:?}");
        }
    }
}
