//! The contract for wrong input, at the program itself: one message, the right exit code, nothing
//! on stdout, and no output file. Nothing here needs a toolkit or a GPU.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

/// The module's header alone.
fn header() -> &'static str {
    KERNEL.split(".visible").next().unwrap_or_default()
}

/// Is it one document that says what failed, and nothing else?
#[track_caller]
fn is_error_document(stdout: &[u8], code: i32) {
    let document: serde_json::Value = serde_json::from_slice(stdout).expect("one document");
    assert_eq!(document["schema"], "warpwright.error/1");
    assert_eq!(document["code"], code);
    assert!(
        document["message"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    );
}

/// A folder with files to try, and the program with no toolkit in reach.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("a file");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("PATH", "")
            .env("WARPWRIGHT_CACHE", self.path("cache"))
            .env_remove("WARPWRIGHT_TOOLKIT")
            .env_remove("CUDA_HOME")
            .env_remove("CUDA_PATH");
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program starts")
    }

    /// Runs it, and holds it to the contract for failures. Returns what it said.
    #[track_caller]
    fn fails(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        match args.contains(&"--json") {
            true => is_error_document(&output.stdout, code),
            false => assert!(output.stdout.is_empty(), "{args:?} printed on stdout"),
        }
        let labelled = said.contains("error") || said.contains('×');
        assert!(labelled && said.len() < 20_000, "{args:?}: {said:.500}");
        said
    }

    /// Nothing but `names` is in the folder (and the cache).
    #[track_caller]
    fn holds_only(&self, names: &[&str]) {
        let mut found: Vec<String> = std::fs::read_dir(self.folder.path())
            .expect("the folder")
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .filter(|name| name != "cache")
            .collect();
        found.sort_unstable();
        assert_eq!(found, names);
    }
}

/// `opt FILE` to PTX, and more arguments.
fn opt<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let start = ["opt", file, "-o", "out.ptx", "--gpu", "h200", "--json"];
    [&start, more].concat()
}

/// From source to source.
fn opt_to_cuda(file: &str) -> [&str; 6] {
    ["opt", file, "--gpu", "h200", "-o", "out.cu"]
}

#[test]
fn broken_files() {
    let with = |old: &str, new: &str| KERNEL.replace(old, new).into_bytes();
    let bound = ")\n.maxntid 99999999, 99999999, 99999999\n{";
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty.ptx", Vec::new()),
        ("blank.ptx", b" \n".to_vec()),
        ("nul.ptx", vec![0; 100]),
        ("latin.ptx", [KERNEL.as_bytes(), b"// \xe9\n"].concat()),
        ("junk.cubin", vec![0xa5; 5000]),
        ("elf.cubin", b"\x7fELF\x02\x01\x01".to_vec()),
        ("text.txt", b"hello".to_vec()),
        ("comment.ptx", with(".visible", "/*")),
        ("no-kernel.ptx", header().into()),
        ("scopes.ptx", with("ret;", &"{".repeat(300_000))),
        (
            "nested.ptx",
            with("[%d]", &format!("[%d+{}", "(".repeat(300_000))),
        ),
        ("bound.ptx", with(")\n{", bound)),
        ("other.ptx", with("sm_90", "sm_100a")),
    ];
    for (name, bytes) in cases {
        let bench = Bench::new();
        bench.file(name, bytes);
        bench.fails(1, &opt(name, &[]));
        bench.holds_only(&[name]);
    }
}

#[test]
fn machine_code_that_is_none() {
    let bench = Bench::new();
    bench.file("junk.cubin", vec![0xa5; 5000]);
    bench.file("elf.cubin", b"\x7fELF\x02\x01\x01");
    bench.file("k.ptx", KERNEL);
    for file in ["junk.cubin", "elf.cubin", "missing.cubin"] {
        bench.fails(1, &["sass", file]);
        bench.fails(1, &["sass", "roundtrip", file]);
        bench.fails(1, &["sass", "liveness", file, "--json"]);
    }
    // There is no ptxas to compile it with.
    bench.fails(3, &["sass", "k.ptx"]);
    bench.fails(2, &["sass"]);
    bench.fails(2, &["sass", "roundtrip"]);
    bench.holds_only(&["elf.cubin", "junk.cubin", "k.ptx"]);
}

#[test]
fn a_truncated_module_at_every_place() {
    let bench = Bench::new();
    for end in (0..KERNEL.len() - 2).step_by(13) {
        bench.file("cut.ptx", &KERNEL[..end]);
        bench.fails(1, &opt("cut.ptx", &[]));
    }
    bench.holds_only(&["cut.ptx"]);
}

#[test]
fn a_long_line_is_not_shown() {
    let bench = Bench::new();
    bench.file("wide.ptx", KERNEL.replace("ret;", &"{".repeat(100_000)));
    let said = bench.fails(1, &opt("wide.ptx", &[]));
    // Ten errors at most, each with an excerpt of some 120 bytes, of a line of 100,000.
    let is_short = said.len() < 5_000 && said.contains("wide.ptx:12:");
    assert!(is_short, "{said:.500}");
}

#[test]
fn contradictions_of_the_request() {
    let bench = Bench::new();
    bench.file("k.ptx", KERNEL);
    bench.file("r.ptx", KERNEL.replace(")\n{", ")\n.reqntid 64\n{"));
    let most = "4294967295,4294967295,4294967295";
    for (code, file, block) in [
        (2, "k.ptx", "0"),
        (2, "k.ptx", "2048"),
        (2, "k.ptx", most),
        (1, "r.ptx", "128"),
    ] {
        bench.fails(code, &opt(file, &["--block", block]));
    }
    bench.fails(1, &opt("k.ptx", &["--kernel", "typo"]));
    // Before any work: the folder of candidates is not made.
    bench.fails(1, &opt("k.ptx", &["--block", "typo=64", "--keep", "kept"]));
    bench.holds_only(&["k.ptx", "r.ptx"]);
}

#[test]
fn places_that_cannot_be_written() {
    let bench = Bench::new();
    bench.file("k.ptx", KERNEL);
    std::fs::create_dir(bench.path("folder.ptx")).expect("a folder");
    for out in ["missing/out.ptx", "folder.ptx", "k.ptx", "./k.ptx"] {
        let said = bench.fails(1, &["opt", "k.ptx", "--emit", "ptx", "-o", out]);
        assert!(!said.contains(".tmp"), "names its temporary file: {said}");
    }
    let kept = std::fs::read_to_string(bench.path("k.ptx")).expect("the input");
    assert_eq!(kept, KERNEL);
    bench.fails(1, &opt("k.ptx", &["--report", "missing/page.html"]));
    bench.holds_only(&["folder.ptx", "k.ptx"]);
}

#[test]
fn a_toolkit_that_was_named_is_not_done_without() {
    let bench = Bench::new();
    bench.file("k.ptx", KERNEL);
    bench.fails(3, &opt("k.ptx", &["--toolkit", "nowhere"]));
    bench.fails(3, &["opt", "k.ptx", "-o", "out.cubin"]);
    bench.holds_only(&["k.ptx"]);
    assert!(bench.run(&opt("k.ptx", &[])).status.success());
}

#[test]
fn nothing_to_check_is_not_proved() {
    let bench = Bench::new();
    bench.file("k.ptx", KERNEL);
    bench.file("head.ptx", header());
    bench.fails(1, &["check", "k.ptx", "k.ptx", "--kernel", "typo"]);
    bench.fails(1, &["check", "head.ptx", "head.ptx"]);
    bench.fails(1, &["check", "head.ptx", "k.ptx"]);
    assert!(bench.run(&["check", "k.ptx", "k.ptx"]).status.success());
}

/// A kernel is as good as the functions that it calls.
#[test]
fn one_kernel_is_checked_with_what_it_calls() {
    let bench = Bench::new();
    let module = |add: u32| {
        let function =
            format!(".func (.reg .u32 o) f(.reg .u32 i) {{ add.u32 o, i, {add}; ret; }}\n.visible");
        KERNEL
            .replace(".visible", &function)
            .replace("st.global", "call (%r1), f, (%r1);\n\tst.global")
    };
    bench.file("a.ptx", module(1));
    bench.file("b.ptx", module(2));
    let code = |b: &str| {
        let output = bench.run(&["check", "a.ptx", b, "--kernel", "k"]);
        output.status.code()
    };
    assert_eq!(code("a.ptx"), Some(0));
    assert_eq!(code("b.ptx"), Some(1));
}

#[cfg(unix)]
#[test]
fn names_and_streams_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new();
    bench.file("k.ptx", KERNEL);
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"\xff\xfe.ptx"));
    let mut command = bench.command(&["explain"]);
    let output = command.arg(odd).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    for words in [&["pass", "print", "k.ptx"][..], &["--help"]] {
        let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
            return;
        };
        let mut command = bench.command(words);
        let output = command.stdout(Stdio::from(full)).output();
        let output = output.expect("the program starts");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn stencils() {
    let good = "function f (o, v) { o[i] = v[i-1] + v[i+1]; }\nparameter N;\niterator i;\n\
                double o[N], v[N];\nunroll i=4;\nf (o, v);\nreturn o;\n";
    let kernel = "#pragma warpwright stencil\n__global__ void f(double *o, const double *v, int n) {\n\
                  int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                  if (i > 0 && i < n) o[i] = v[i - 1];\n}\n";
    let bench = Bench::new();
    bench.file("good.stencil", good);
    bench.file("bad.stencil", good.replace("v[i-1]", "v[2*i]"));
    bench.file(
        "wide.stencil",
        good.replace("v[i-1]", &"v[i] + ".repeat(100_000)),
    );
    bench.file("good.cu", kernel);
    bench.file("bad.cu", kernel.replace("v[i - 1]", "o[i - 1]"));
    bench.file("pragma.cu", kernel.replace("stencil", "stencil loudly"));
    for (file, expected) in [
        ("bad.stencil", "a name plus a constant"),
        ("wide.stencil", "operators in a row"),
        ("bad.cu", "read at another point"),
        ("pragma.cu", "`loudly`"),
    ] {
        let said = bench.fails(1, &["explain", file]);
        assert!(said.contains(expected), "{file}: {said}");
    }
    bench.fails(1, &opt("good.stencil", &[]));
    // Neither needs a toolkit.
    for (file, row) in [
        ("good.stencil", "f 4 1 1 2 12 10 1 <= i < N-1"),
        ("good.cu", "f 1 1 0 2 2 2 1 <= i < n"),
    ] {
        let output = bench.run(&["explain", file]);
        let said = String::from_utf8_lossy(&output.stdout);
        let words: Vec<&str> = said.split_whitespace().collect();
        let shown = words.join(" ").contains(row);
        assert!(output.status.success() && shown, "{file}: {said}");
    }
    let output = bench.run(&["explain", "good.stencil", "--json"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("\"unique_per_thread\": 10"), "{said}");
}

/// Kernels that stay as written: each reason once, not too many of them, and what can be done with the file.
#[test]
fn reasons_are_told_once() {
    let bench = Bench::new();
    let kernel =
        |n: usize| format!("__global__ void k{n}(int *o) {{ goto end; end: o[0] = 1; }}\n");
    bench.file("one.cu", kernel(0));
    bench.file("many.cu", (0..20).map(kernel).collect::<String>());
    let [one, many] = ["one.cu", "many.cu"].map(|name| bench.fails(1, &opt_to_cuda(name)));
    assert_eq!(one.matches("error:").count(), 1, "{one}");
    assert!(one.contains("-o OUT.cubin"), "{one}");
    assert_eq!(many.matches("error:").count(), 1, "{many}");
    assert_eq!(many.matches("note: this is outside").count(), 8, "{many}");
    assert!(many.contains("12 more"), "{many}");
}

/// The result goes where a link leads, and nothing takes the place of a device.
#[cfg(unix)]
#[test]
fn links_and_devices_stay_what_they_are() {
    let bench = Bench::new();
    bench.file("k.ptx", KERNEL);
    bench.file("old.ptx", "old");
    for (link, target) in [("file", "old.ptx"), ("device", "/dev/null")] {
        std::os::unix::fs::symlink(target, bench.path(link)).expect("a link");
        let output = bench.run(&["pass", "print", "k.ptx", "-o", link]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{link}: {said}");
        let kept = std::fs::read_link(bench.path(link)).expect("still a link");
        assert_eq!(kept, Path::new(target));
    }
    let written = std::fs::read_to_string(bench.path("old.ptx")).expect("a file");
    assert!(written.contains(".entry k"), "{written}");
    bench.holds_only(&["device", "file", "k.ptx", "old.ptx"]);
}

const NAIVE: &str = "#pragma warpwright naive sizes(n=1024) outputs(o)\n\
    __global__ void scale(float *o, const float *v, int n) {\n  \
    int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) o[i] = v[i] * 2.0f;\n}\n";

/// Every line of tests/bad_input/tries.txt, in a folder of its own.
#[test]
fn tries() {
    let table = include_str!("bad_input/tries.txt");
    let tries = table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut toolkit: Option<PathBuf> = None;
    let mut tried = 0;
    for line in tries {
        if line == "toolkit" {
            let Some(found) = warpwright_toolkit::testing::require_toolkit("bad input for nvcc")
            else {
                break;
            };
            let nvcc = found.nvcc().expect("nvcc").tool().path.clone();
            toolkit = nvcc.ancestors().nth(2).map(Path::to_owned);
            continue;
        }
        let mut parts = line.split(" | ");
        let [Some(code), Some(part), Some(words)] = [(); 3].map(|()| parts.next()) else {
            panic!("{line}");
        };
        attempt(line, code, part, words, toolkit.as_deref());
        tried += 1;
    }
    assert!(tried >= 50, "{tried}");
}

#[track_caller]
fn attempt(line: &str, code: &str, part: &str, words: &str, toolkit: Option<&Path>) {
    let bench = Bench::new();
    let naive = |old: &str, new: &str| NAIVE.replace(old, new).into_bytes();
    let files: [(&str, Vec<u8>); 19] = [
        ("k.ptx", KERNEL.into()),
        ("naive.cu", NAIVE.into()),
        ("nosize.cu", naive("n=1024", "n=")),
        ("negative.cu", naive("n=1024", "n=-5")),
        ("huge.cu", naive("n=1024", "n=99999999999999999999")),
        ("othersize.cu", naive("n=1024", "m=1024")),
        ("output.cu", naive("outputs(o)", "outputs(q)")),
        ("loud.cu", naive("outputs(o)", "outputs(o) loudly(3)")),
        ("loop.cu", naive("if (i < n)", "switch (i)")),
        (
            "two.cu",
            (NAIVE.to_owned() + &NAIVE.replace("scale", "other")).into(),
        ),
        ("cut.cu", NAIVE[..120].into()),
        ("latin.cu", [b"\xff\xfe", NAIVE.as_bytes()].concat()),
        ("binary.cu", vec![0, 1, 2]),
        ("none.cu", b"int main() { return 0; }\n".to_vec()),
        ("empty.cu", Vec::new()),
        ("half.json", b"{".to_vec()),
        ("list.json", b"[]".to_vec()),
        ("deep.json", vec![b'['; 200_000]),
        ("other.json", b"{\"schema\": \"other/9\"}".to_vec()),
    ];
    let mut names = vec!["folder"];
    for (name, bytes) in &files {
        bench.file(name, bytes);
        names.push(name);
    }
    names.sort_unstable();
    std::fs::create_dir(bench.path("folder")).expect("a folder");
    let words: Vec<&str> = words.split(' ').collect();
    let mut command = bench.command(&words);
    if let Some(toolkit) = toolkit {
        // nvcc wants its host compiler.
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("WARPWRIGHT_TOOLKIT", toolkit).env("PATH", path);
    }
    let output = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let found = output.status.code().map(|code| code.to_string());
    assert_eq!(found.as_deref(), Some(code), "{line}: {said}");
    // Messages are broken at the terminal's width.
    let flat: Vec<&str> = said
        .split_whitespace()
        .filter(|word| *word != "│")
        .collect();
    let flat = flat.join(" ");
    assert!(flat.contains(part), "{line}: {said}");
    assert!(output.stdout.is_empty(), "{line} printed on stdout");
    let errors = said.matches("error: ").count() + said.matches('×').count();
    assert!(errors >= 1 && said.len() < 20_000, "{line}: {said}");
    bench.holds_only(&names);
}

/// What is said to a command that fails with an exit code.
#[track_caller]
fn refusal(bench: &Bench, arguments: &[&str], code: i32) -> String {
    let output = bench.command(arguments).output().expect("it runs");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn a_refusal_says_what_is_wanted() {
    let bench = Bench::new();
    bench.file("k.ptx", KERNEL);
    bench.file("k.cu", "__global__ void k(int *x) { x[0] = 1; }\n");
    // A host's file, by its head.
    bench.file(
        "host",
        [&b"\x7fELF\x02\x01"[..], &[0; 12], &[62, 0]].concat(),
    );
    for (arguments, wanted) in [
        (
            &["opt", "k.cu", "--recipe", "boxes(4x1)"][..],
            "-o OUT.cu is wanted",
        ),
        (
            &["opt", "k.ptx", "--emit", "ptx", "-o", "k.cubin"],
            "OUT is not to end in .cubin",
        ),
        (
            &["pass", "print", "k.ptx", "-o", "k.cubin"],
            "the result is PTX: OUT is not to end in .cubin",
        ),
        (
            &["pass", "maxnreg(32)", "k.ptx", "-o", "k.cubin"],
            "the result is PTX: OUT is not to end in .cubin",
        ),
        (
            &["opt", "k.ptx", "-o", "k.o"],
            "the result is machine code (a bare cubin): OUT is not to end in .o",
        ),
        (&["opt", "k.ptx", "-o", "K.EXE"], "not to end in .exe"),
        (&["opt", "k.ptx", "-o", "k.txt"], "not to end in .txt"),
        (
            &["opt", "host", "-o", "k.cubin"],
            "the result is FILE with its machine code replaced: OUT is not to end in .cubin",
        ),
        (
            &["pass", "maxnreg(1000)", "k.ptx"],
            "registers=1000: a number from 1 to 255 is wanted",
        ),
        (&["pass", "maxnreg(0)", "k.ptx"], "a number from 1 to 255"),
        (
            &[
                "opt",
                "k.ptx",
                "--recipe",
                "usage-level(20)",
                "-o",
                "x.cubin",
            ],
            "a number from 0 to 10 is wanted",
        ),
        (&["pass", "maxntid(2000)", "k.ptx"], "from 1 to 1024"),
        (&["pass", "minnctapersm(40)", "k.ptx"], "from 1 to 32"),
        (
            &["explain", "k.ptx", "--dynamic-smem", "32G"],
            "is no number of bytes, as in 32768 or 32K",
        ),
        (
            &["explain", "k.cu", "-arch=sm_80"],
            "options of nvcc go behind `--`, at the end: -- -arch=sm_80",
        ),
        (
            &["explain", "k.cu", "--", "-o", "k.cubin"],
            "`-o` after `--` says what nvcc writes",
        ),
        (&["pass", "compact", "k.ptx"], "-o OUT is wanted"),
        (
            &["explain", "k.ptx", "--block", "0x800"],
            "a block has 1 to 1024",
        ),
        (
            &["explain", "k.ptx", "--block", "32by8"],
            "X[,Y[,Z]] is wanted, as in 32,8",
        ),
    ] {
        let said = refusal(&bench, arguments, 2);
        let flat: Vec<&str> = said.split_whitespace().collect();
        assert!(flat.join(" ").contains(wanted), "{arguments:?}: {said}");
    }
    let twice = ["opt", "k.ptx", "--gpu", "h200", "--json", "-o", "-"];
    let output = bench.command(&twice).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(said.contains("name a file for one of the two"), "{said}");
    for name in ["k.cubin", "k.o", "K.EXE", "k.txt", "x.cubin"] {
        assert!(!bench.path(name).exists(), "{name}");
    }
}

#[test]
fn a_block_that_no_device_launches_is_refused() {
    let bench = Bench::new();
    bench.file("k.ptx", KERNEL);
    let bounded = KERNEL.replace(".param .u64 p)\n", ".param .u64 p)\n.maxntid 64\n");
    bench.file("bounded.ptx", bounded.replace(" k(", " _Z1kPf("));
    for (code, arguments, wanted) in [
        (
            2,
            &["explain", "k.ptx", "--gpu", "h200", "--block", "1,1,128"][..],
            "its z is at most 64",
        ),
        (
            2,
            &[
                "occupancy",
                "--gpu",
                "h200",
                "--regs",
                "32",
                "--block",
                "1,1,128",
            ],
            "its z is at most 64",
        ),
        (
            2,
            &["explain", "k.ptx", "--gpu", "h200", "--block", "0x800"],
            "a block has 1 to 1024",
        ),
        (
            1,
            &["explain", "bounded.ptx", "--gpu", "h200", "--block", "128"],
            "larger than the bound 64,1,1 of kernel `k(float*)`",
        ),
    ] {
        let said = refusal(&bench, arguments, code);
        let flat: Vec<&str> = said.split_whitespace().collect();
        assert!(flat.join(" ").contains(wanted), "{arguments:?}: {said}");
    }
    let fits = [
        "explain",
        "k.ptx",
        "--gpu",
        "h200",
        "--block",
        "0x10,1,0x40",
    ];
    let fits = bench.command(&fits).output().expect("it runs");
    assert!(fits.status.success(), "{fits:?}");
}

#[test]
fn the_list_of_gpus_is_one_document() {
    let bench = Bench::new();
    let listed = bench.command(&["occupancy", "--list", "--json"]).output();
    let listed = listed.expect("it runs").stdout;
    let document: serde_json::Value = serde_json::from_slice(&listed).expect("one document");
    assert_eq!(document["schema"], "warpwright.gpus/1");
    let gpus = document["gpus"].as_array().expect("a list");
    let h200 = gpus.iter().find(|gpu| gpu["name"] == "h200");
    assert_eq!(h200.expect("the H200")["architecture"], "sm_90");
}
