//! `trace`, `tune -- PROGRAM`, `with` and `db` at the program itself, with the driver that computes on the host
//! and the program of the library's own tests (crates/inject/tests/program).

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{BuildCache, PtxasJob, Toolkit};
use warpwright_winners::{LaunchClass, Shape, Standing, Winner, export};

/// A factor that the driver takes for a sign of speed.
const FAST: &str = "4FFA7FA5";
/// One for a kernel that is fast in a trial and slow in the program.
const LONELY: &str = "4FFA7FA6";

/// The head of PTX for an architecture.
fn head(sm: u8) -> String {
    let version = if sm > 90 { "8.8" } else { "8.0" };
    format!(".version {version}\n.target sm_{sm}\n.address_size 64\n")
}

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

fn build(toolkit: &Toolkit, ptx: &str, sm: u8) -> Vec<u8> {
    let gpu = format!("sm_{sm}");
    let job = PtxasJob::new(ptx, &gpu);
    let ptxas = toolkit.ptxas().expect("ptxas");
    let build = BuildCache::standard().ptxas(&ptxas, &job);
    build.expect("ptxas takes it").cubin.to_vec()
}

/// A fat binary with a cubin and PTX, as nvcc makes it.
fn fat_binary(cubin: &[u8], ptx: &str, sm: u8) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, payload) in [(2u8, cubin), (1, ptx.as_bytes())] {
        let padded = payload.len().next_multiple_of(8);
        let mut header = [0u8; 64];
        header[0] = kind;
        header[2..4].copy_from_slice(&0x101u16.to_le_bytes());
        header[4] = 64;
        header[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
        header[28] = sm;
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
        Bench::on(90, kernel, factor)
    }

    /// The same on a GPU of another architecture.
    fn on(sm: u8, kernel: &dyn Fn(&str) -> String, factor: &str) -> Option<Bench> {
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
        let tool = ["-shared", "-fPIC", "short.c"];
        let programs = [
            ("libcuda.so.1", &shared[..]),
            ("host", &["host.c"]),
            ("short.so", &tool),
        ];
        for (out, args) in programs {
            let status = Command::new("cc")
                .current_dir(&sources)
                .args(["-w", "-o"])
                .arg(bench.path(out))
                .args(args)
                .args(["-ldl", "-lpthread"])
                .status();
            assert!(status.expect("cc").success());
        }
        let text = |factor| format!("{}{}", head(sm), kernel(factor));
        let original = build(&toolkit, &text("40000000"), sm);
        let program = fat_binary(&original, &text(factor), sm);
        std::fs::write(bench.path("scale.fatbin"), program).expect("written");
        Some(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, args: &[&str], is_for_program: bool) -> Output {
        let mut command = self.command(args);
        if is_for_program {
            command.args(["--", "./host", "proc2", "plain", "scale.fatbin"]);
        }
        command.output().expect("starts")
    }

    fn command(&self, args: &[&str]) -> Command {
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
        command
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

    // What was imported is not used until it was proved against the program's own module.
    let standings = || {
        let listed = out(&bench.run(&["db", "list", "--json"], false));
        let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
        let winners = listed["winners"].as_array().expect("winners").clone();
        let all = winners.iter().map(|w| w["standing"].to_string());
        all.collect::<std::collections::BTreeSet<String>>()
    };
    let standing = |name: &str| std::collections::BTreeSet::from([format!("\"{name}\"")]);
    let is_replaced = |command: &[&str]| {
        let log = bench.path("used.log");
        let _ = std::fs::remove_file(&log);
        let mut command = bench.command(command);
        command.args(["--", "./host", "proc2", "plain", "scale.fatbin"]);
        let ran = command.env("WARPWRIGHT_LOG", &log).output();
        let ran = ran.expect("starts");
        assert_eq!(out(&ran), out(&plain), "{}", err(&ran));
        let log = std::fs::read_to_string(log).unwrap_or_default();
        log.contains("is replaced: ")
    };
    assert_eq!(standings(), standing("imported"));
    assert!(!is_replaced(&["with"]));
    let verified = bench.run(&["db", "verify"], true);
    assert!(verified.status.success(), "{}", err(&verified));
    assert!(out(&verified).starts_with(&out(&plain)));
    assert_eq!(standings(), standing("proved"), "{}", err(&verified));
    assert!(is_replaced(&["with"]));
    assert!(is_replaced(&["with", "--db", "db"]));
    // A program that goes elsewhere first still has the store that was meant.
    let moved = "cd /; exec \"$0\" proc2 plain \"$1\"";
    let [host, module, used] = ["host", "scale.fatbin", "used.log"].map(|name| bench.path(name));
    let mut elsewhere = bench.command(&["with", "--db", "db", "--", "sh", "-c", moved]);
    elsewhere.args([&host, &module]);
    elsewhere
        .env_remove("WARPWRIGHT_DB")
        .env("WARPWRIGHT_LOG", &used);
    let _ = std::fs::remove_file(&used);
    assert_eq!(out(&elsewhere.output().expect("starts")), out(&plain));
    let log = std::fs::read_to_string(&used).unwrap_or_default();
    assert!(log.contains("is replaced: "), "{log}");

    // The next `tune` proves as well.
    assert!(
        bench
            .run(&["db", "remove", "scale"], false)
            .status
            .success()
    );
    assert!(
        bench
            .run(&["db", "import", "all.winners"], false)
            .status
            .success()
    );
    assert_eq!(standings(), standing("imported"));
    let tune = bench.run(&["tune"], true);
    assert_eq!(out(&tune), out(&plain), "{}", err(&tune));
    let told = "proved, and used from now on";
    assert!(err(&tune).contains(told), "{}", err(&tune));
    assert!(!standings().contains("\"imported\""));
}

/// Everything that was measured is in the file of `--keep`, with what is known of it.
#[test]
fn every_build_is_kept_with_its_facts() {
    let Some(bench) = Bench::new() else { return };
    let tune = bench.run(&["tune", "--keep", "k.json", "--without-names"], true);
    assert!(tune.status.success(), "{}", err(&tune));
    let text = std::fs::read_to_string(bench.path("k.json")).expect("a file");
    let kept = warpwright_autotune::kept::Document::parse(&text).expect("builds");
    assert_eq!((&*kept.gpu, kept.sm, kept.driver), ("Fake GPU", 90, 13000));
    assert!(!text.contains("scale"), "{text}");
    let kernel = &kept.kernels[0];
    assert_eq!(kernel.launch.block, [256, 1, 1]);
    assert_eq!(kernel.ns, [Some(100_000.0); 2]);
    let own = kernel.code.as_ref().expect("code").figures.as_ref();
    let own = own.expect("figures");
    assert!(own.registers > 0 && own.cycles > 0.0 && own.features.len() > 50);
    let winner = &kernel.builds[kernel.winner.expect("a winner")];
    assert_eq!(winner.ratios, [Some(0.5); 2]);
    assert_eq!(winner.ns, [Some(50_000.0); 2]);
    assert_eq!(kernel.in_program, Some(0.5));
    for build in kernel
        .builds
        .iter()
        .filter(|build| build.ratios[0].is_some())
    {
        let code = build.code.as_ref().expect("code");
        assert_eq!(code.spill_bytes, 0);
        assert!(
            code.figures.as_ref().is_some_and(|f| f.registers > 0),
            "{text}"
        );
        assert_eq!(build.shape == "same", build.launch == kernel.launch);
    }
}

/// For measuring what the search finds, every point of a space is timed and kept, and what is left out is told.
#[test]
fn every_point_of_a_space_is_kept() {
    let Some(bench) = Bench::of(&sized, FAST) else {
        return;
    };
    let space = [
        "--exhaustive",
        "--space",
        "constants,cache=2,registers=2,promote",
        "--points",
        "60",
    ];
    let tune = bench.run(&[&["tune", "--keep", "k.json"], &space[..]].concat(), true);
    assert!(tune.status.success(), "{}", err(&tune));
    let text = std::fs::read_to_string(bench.path("k.json")).expect("a file");
    let kept = warpwright_autotune::kept::Document::parse(&text).expect("builds");
    let kernel = &kept.kernels[0];
    let search = kernel.search.as_ref().expect("a search");
    assert!(search.is_exhaustive);
    let sizes = search.axes.iter().map(|axis| axis.values.len() + 1);
    assert_eq!(
        search.points.len(),
        sizes.product::<usize>(),
        "{}",
        err(&tune)
    );
    assert!(search.points.len() <= 60);
    let names: Vec<&str> = search.axes.iter().map(|axis| &*axis.name).collect();
    assert_eq!(names, ["constants", "promote", "cache", "registers"]);
    for value in search.axes.iter().flat_map(|axis| &axis.values) {
        let recipe: Result<warpwright_pass::Recipe, _> = value.parse();
        assert!(recipe.is_ok_and(|recipe| !recipe.is_default()), "{value}");
    }
    assert_eq!((search.left_out["shape"], search.left_out["cache"]), (4, 2));
    for told in ["4 of 4 of shape", "2 of 4 of cache"] {
        assert!(err(&tune).contains(told), "{}", err(&tune));
    }
    // It is fast where its size is a constant, whatever else is done.
    let constant = |value: usize| value > 0 && search.axes[0].values[value - 1].contains("1000");
    assert!((1..search.axes[0].values.len() + 1).any(constant));
    for point in search.points.iter().filter(|point| point.build.is_some()) {
        let expected = if constant(point.at[0]) { 0.5 } else { 1.0 };
        assert_eq!(point.ratio, Some(expected), "{point:?}");
        let build = &kernel.builds[point.build.expect("a build")];
        assert_eq!(build.ratios[0], point.ratio);
    }
    let wrong = bench.run(&["tune", "--exhaustive", "--space", "size"], true);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        err(&wrong).contains("there is no axis `size`"),
        "{}",
        err(&wrong)
    );
}

/// A record of a winner that computes something else, as somebody may send it.
fn hostile(bench: &Bench, toolkit: &Toolkit) -> Vec<u8> {
    let text = format!(
        "{}.visible .global .u32 fake_wrong = 1;\n{}",
        head(90),
        scale("40800000")
    );
    let trace = bench.run(&["trace", "--json"], true);
    let start = out(&trace).find('{').expect("a document");
    let trace: serde_json::Value = serde_json::from_str(&out(&trace)[start..]).expect("JSON");
    let kernel = trace["launches"][0]["digest"].as_str().expect("a digest");
    let class: LaunchClass = "256,1,1 smem 0 cluster 0,0,0 grid 2"
        .parse()
        .expect("a class");
    let winner = Winner {
        kernel: kernel.to_owned(),
        gpu: "Fake GPU".into(),
        guard: class.guard(),
        shape: Shape::SAME,
        symbol: "scale".into(),
        recipe: "default".into(),
        proof: "machine code: proved".into(),
        original_ns: 1000,
        winner_ns: 1,
        driver: "13000".into(),
        date: "2026-11-22".into(),
        standing: Standing::Measured,
        cubin: build(toolkit, &text, 90),
    };
    winner.to_bytes()
}

/// Puts a winner into the store that nobody has proved.
fn trust(bench: &Bench, toolkit: &Toolkit) {
    std::fs::write(bench.path("x.winners"), hostile(bench, toolkit)).expect("written");
    let imported = bench.run(&["db", "import", "--trust", "x.winners"], false);
    assert!(imported.status.success(), "{}", err(&imported));
}

/// Code that somebody sends is not used, whatever its record says; who trusts it by name gets it.
#[test]
fn code_from_elsewhere_is_not_taken_on_its_word() {
    let (Some(bench), Some(toolkit)) = (Bench::new(), require_toolkit("in_place")) else {
        return;
    };
    let plain = out(&bench.run(&["with"], true));
    std::fs::write(bench.path("x.winners"), hostile(&bench, &toolkit)).expect("written");
    let imported = bench.run(&["db", "import", "x.winners"], false);
    assert!(imported.status.success(), "{}", err(&imported));
    assert!(err(&imported).contains("db verify"), "{}", err(&imported));
    assert_eq!(out(&bench.run(&["with"], true)), plain);
    let verified = bench.run(&["db", "verify"], true);
    assert_eq!(verified.status.code(), Some(5), "{}", err(&verified));
    let why = "does not give its code here";
    assert!(err(&verified).contains(why), "{}", err(&verified));
    assert_eq!(out(&bench.run(&["with"], true)), plain);
    let trusted = bench.run(&["db", "import", "--trust", "x.winners"], false);
    assert!(trusted.status.success(), "{}", err(&trusted));
    assert!(out(&bench.run(&["db", "list"], false)).contains("trusted"));
    assert_ne!(out(&bench.run(&["with"], true)), plain);
    // No kernel is no name for all of them.
    let removed = bench.run(&["db", "remove", ""], false);
    assert_eq!(removed.status.code(), Some(2), "{}", err(&removed));
    assert!(out(&bench.run(&["db", "list"], false)).contains("trusted"));
}

/// Whatever lies in a store, the commands do their work on the rest of it.
#[test]
fn bad_entries_stop_no_command() {
    let (Some(bench), Some(toolkit)) = (Bench::new(), require_toolkit("in_place")) else {
        return;
    };
    trust(&bench, &toolkit);
    let run = |args: &[&str]| bench.run(args, false);
    let entries = std::fs::read_dir(bench.path("db")).expect("a store");
    let good = entries.map(|e| e.expect("an entry").path()).next();
    let good = good.expect("a winner");
    let key = good.file_name().expect("a name").to_string_lossy()[..32].to_owned();
    let place = |name: &str| bench.path("db").join(format!("{key}-{name}.winner"));
    std::fs::create_dir(place("folder")).expect("made");
    let made = Command::new("mkfifo").arg(place("pipe")).status();
    assert!(made.expect("mkfifo").success());
    for (name, to) in [("device", "/dev/zero"), ("vanished", "/no/such/file")] {
        std::os::unix::fs::symlink(to, place(name)).expect("linked");
    }
    let huge = std::fs::File::create(place("huge")).expect("made");
    huge.set_len(1 << 30).expect("sparse");
    for args in [&["db", "list"][..], &["db", "show", "scale"]] {
        let told = run(args);
        assert!(told.status.success(), "{}", err(&told));
        assert!(out(&told).contains("trusted"), "{}", out(&told));
    }
    let listed = run(&["db", "list"]);
    let reasons = ["no regular file", "cannot be read", "a record has at most"];
    for why in reasons {
        assert!(err(&listed).contains(why), "{why}: {}", err(&listed));
    }
    let exported = run(&["db", "export", "all"]);
    // The rest of it is there, and a script learns that it is not all.
    assert_eq!(exported.status.code(), Some(1), "{}", err(&exported));
    for text in ["is left out", "5 files could not be read"] {
        assert!(err(&exported).contains(text), "{}", err(&exported));
    }
    let bytes = std::fs::read(bench.path("all")).expect("an export");
    assert_eq!(export::winners(&bytes).expect("an export").len(), 1);
    let removed = run(&["db", "remove", "scale"]);
    assert!(
        removed.status.success() && !good.exists(),
        "{}",
        err(&removed)
    );
    // Those that cannot be read go by name; a folder stays.
    let removed = run(&["db", "remove", &key]);
    assert_eq!(removed.status.code(), Some(1), "{}", err(&removed));
    std::fs::remove_dir(place("folder")).expect("removed");
    let _ = run(&["db", "remove", &key]);
    let left = std::fs::read_dir(bench.path("db")).expect("a store");
    assert_eq!(left.count(), 0);
}

/// An export is no entry of the store that it comes from, and nothing is no export.
#[test]
fn exports_and_stores_are_kept_apart() {
    let (Some(bench), Some(toolkit)) = (Bench::new(), require_toolkit("in_place")) else {
        return;
    };
    trust(&bench, &toolkit);
    let run = |args: &[&str]| bench.run(args, false);
    let entries = || std::fs::read_dir(bench.path("db")).expect("a store");
    let entry = entries()
        .next()
        .expect("a winner")
        .expect("an entry")
        .path();
    let before = std::fs::read(&entry).expect("a record");
    let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, bench.path(name));
    link(&entry, "link").expect("linked");
    link(Path::new("db/later.winner"), "before").expect("linked");
    for place in [
        entry.to_str().expect("a path"),
        "link",
        "before",
        "db/new.winner",
    ] {
        let exported = run(&["db", "export", place]);
        assert_eq!(exported.status.code(), Some(1), "{place}");
        assert!(
            err(&exported).contains("in the store itself"),
            "{}",
            err(&exported)
        );
    }
    assert_eq!(std::fs::read(&entry).expect("a record"), before);
    assert_eq!(entries().count(), 1);
    // A link that leads to itself is no place; one to a file that is yet to be made is.
    link(Path::new("circle"), "circle").expect("linked");
    let circle = run(&["db", "export", "circle"]);
    let what = (circle.status.code(), err(&circle));
    assert!(what.0 == Some(1) && what.1.contains("loop"), "{what:?}");
    link(Path::new("made"), "to-be-made").expect("linked");
    assert!(run(&["db", "export", "to-be-made"]).status.success());
    assert!(bench.path("made").is_file() && bench.path("to-be-made").is_symlink());
    let whole = run(&["db", "export", "whole"]);
    assert!(whole.status.success(), "{}", err(&whole));
    // Whoever may read a file may read what replaces it, and nobody else.
    for mode in [0o600, 0o640, 0o644] {
        let access = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(bench.path("whole"), access).expect("set");
        assert!(run(&["db", "export", "whole"]).status.success());
        let written = std::fs::metadata(bench.path("whole")).expect("an export");
        assert_eq!(written.permissions().mode() & 0o777, mode);
    }
    let whole = std::fs::read(bench.path("whole")).expect("an export");
    // What waits to be proved is no part of an export, and an export of nothing is none.
    let other = |args: &[&str]| run(&[&["db", "--db", "other"], args].concat());
    assert!(other(&["import", "whole"]).status.success());
    let waiting = other(&["export", "none"]);
    let what = (waiting.status.code(), err(&waiting));
    assert!(
        what.0 == Some(1) && what.1.contains("not proved here"),
        "{what:?}"
    );
    assert!(!bench.path("none").exists());
    std::fs::write(bench.path("none"), export::to_bytes::<Winner>(&[])).expect("written");
    assert_eq!(other(&["import", "none"]).status.code(), Some(1));
    // The last one ends where the record begins.
    let record = whole.len() - before.len();
    for end in [0, whole.len() / 2, record] {
        std::fs::write(bench.path("cut"), &whole[..end]).expect("written");
        let imported = run(&["db", "import", "cut"]);
        assert_eq!(imported.status.code(), Some(1), "{end}: {}", err(&imported));
    }
}

/// A writer that is killed leaves nothing beside its output.
#[test]
fn killed_writers_leave_nothing() {
    let (Some(bench), Some(toolkit)) = (Bench::new(), require_toolkit("in_place")) else {
        return;
    };
    trust(&bench, &toolkit);
    std::fs::create_dir(bench.path("out")).expect("made");
    let export = |variables: &[(&str, &str)]| {
        let mut command = bench.command(&["db", "export", "out/all"]);
        command.envs(variables.iter().copied());
        let ended = command.output().expect("starts").status;
        let entries = std::fs::read_dir(bench.path("out")).expect("a folder");
        (ended, entries.count())
    };
    let tool = bench.path("short.so");
    let killed = [
        ("LD_PRELOAD", tool.to_str().expect("a path")),
        ("SHORT_DISK", "0"),
        ("SHORT_KILL", "1"),
    ];
    for left in [0, 1] {
        let (ended, found) = export(&killed);
        assert_eq!((ended.signal(), found), (Some(9), left));
        let (ended, found) = export(&killed[..1]);
        assert!(ended.success() && found == 1);
    }
}

/// A disk that fills up and threads that do not start cost no output, and nothing waits for ever.
#[test]
fn tune_ends_on_a_full_disk_and_without_threads() {
    let Some(bench) = Bench::new() else { return };
    let words = ["--", "./host", "proc2", "plain", "scale.fatbin"];
    let tool = bench.path("short.so");
    let run = |command: &str, variable: &str, value: &str| {
        let args: &[&str] = match command {
            "tune" => &["tune", "--budget", "1"],
            _ => &["trace"],
        };
        let mut started = Command::new("timeout");
        let command = bench.command(args);
        started.arg("60").arg(command.get_program());
        started.args(command.get_args()).args(words);
        for (name, value) in command.get_envs() {
            started.env(name, value.expect("a value"));
        }
        started.current_dir(bench.folder.path());
        started.env("LD_PRELOAD", &tool).env(variable, value);
        started.output().expect("starts")
    };
    let mut plain = Command::new(words[1]);
    plain.current_dir(bench.folder.path()).args(&words[2..]);
    plain.env("LD_LIBRARY_PATH", bench.folder.path());
    let plain = out(&plain.env("HOST_REPEAT", "12").output().expect("starts"));
    for bytes in ["0", "5000", "12000", "40000"] {
        let tune = run("tune", "SHORT_DISK", bytes);
        let code = tune.status.code();
        let what = format!("{bytes}: {code:?} {}", err(&tune));
        assert!(matches!(code, Some(0 | 1)), "{what}");
        // Where the store cannot be written that is told before the program runs.
        let is_told = code == Some(1) && out(&tune).is_empty() && bytes == "0";
        assert!(is_told || out(&tune).starts_with(&plain), "{what}");
    }
    for limit in ["SHORT_THREADS", "SHORT_LATER"] {
        for command in ["trace", "tune"] {
            let ended = run(command, limit, "1");
            let what = format!("{command} {limit}: {}", err(&ended));
            assert_eq!(ended.status.code(), Some(0), "{what}");
            assert!(out(&ended).starts_with(&plain), "{what}");
            let is_tried = err(&ended).contains("runs with the winners");
            assert_eq!(is_tried, command == "tune", "{what}");
        }
    }
}

/// Below `trace` a program runs with its winners and is seen; who hides it from the trace is told.
#[test]
fn commands_below_commands_are_seen_or_told() {
    let (Some(bench), Some(toolkit)) = (Bench::new(), require_toolkit("in_place")) else {
        return;
    };
    trust(&bench, &toolkit);
    let own = env!("CARGO_BIN_EXE_warpwright");
    let nested = |outer: &str, inner: &str| bench.run(&[outer, "--", own, inner], true);
    let alone = out(&bench.run(&["with"], true));
    let with = nested("trace", "with");
    assert!(out(&with).starts_with(&alone), "{}", out(&with));
    assert!(with.status.success(), "{}", err(&with));
    assert!(!err(&with).contains("no launch was seen"), "{}", err(&with));
    assert!(out(&with).contains("scale"), "{}", out(&with));
    let trace = nested("trace", "trace");
    let told = "inside another `warpwright`";
    assert!(err(&trace).contains(told), "{}", err(&trace));
}

/// Each run of the program gets all of its standard input.
#[test]
fn input_reaches_every_run() {
    let Some(bench) = Bench::new() else { return };
    let words = ["sh", "-c", "cat; exec ./host proc2 plain scale.fatbin"];
    std::fs::write(bench.path("input"), "left\nfirst\nsecond\n").expect("written");
    let mut plain = Command::new(words[0]);
    plain.current_dir(bench.folder.path()).args(&words[1..]);
    plain
        .env("LD_LIBRARY_PATH", bench.folder.path())
        .env("HOST_REPEAT", "12");
    let from = |command: &mut Command, is_pipe: bool| {
        let mut file = std::fs::File::open(bench.path("input")).expect("opened");
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(5)).expect("sought");
        if !is_pipe {
            return command.stdin(file).output().expect("starts");
        }
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let fed = std::thread::spawn(move || std::io::copy(&mut file, &mut writer));
        let output = command.stdin(reader).output().expect("starts");
        fed.join().expect("joined").expect("fed");
        output
    };
    for is_pipe in [false, true] {
        let plain = from(&mut plain, is_pipe);
        assert!(
            out(&plain).starts_with("first\nsecond\n"),
            "{}",
            out(&plain)
        );
        let mut tune = bench.command(&["tune", "--"]);
        let tune = from(tune.args(words), is_pipe);
        assert_eq!(out(&tune), out(&plain), "{is_pipe}: {}", err(&tune));
        assert!(
            err(&tune).contains("runs with the winners"),
            "{}",
            err(&tune)
        );
    }
}

/// What comes out of a command whose standard input is a file, a pipe or a socket with these bytes, and what stays in there.
fn read_from(command: &mut Command, kind: &str, path: &Path) -> (Output, Vec<u8>) {
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    let open = || std::fs::File::open(path).expect("opened");
    let (reader, writer) = match kind {
        "pipe" => {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            (OwnedFd::from(reader), Some(OwnedFd::from(writer)))
        }
        "socket" => {
            let (reader, writer) = UnixStream::pair().expect("sockets");
            (OwnedFd::from(reader), Some(OwnedFd::from(writer)))
        }
        _ => (OwnedFd::from(open()), None),
    };
    let fed = writer.map(|writer| {
        let mut source = open();
        std::thread::spawn(move || std::io::copy(&mut source, &mut std::fs::File::from(writer)))
    });
    let own = reader.try_clone().expect("cloned");
    let output = command.stdin(reader).output().expect("starts");
    let mut rest = Vec::new();
    let mut own = std::fs::File::from(own);
    own.read_to_end(&mut rest).expect("read");
    fed.map(|fed| fed.join().expect("joined").expect("fed"));
    (output, rest)
}

/// Behind a command the standard input is where the program alone would have left it, whatever it is.
#[test]
fn what_no_run_reads_stays_in_the_input() {
    let Some(bench) = Bench::new() else { return };
    let lines: String = (0..60_000).map(|number| format!("{number}\n")).collect();
    std::fs::write(bench.path("input"), &lines).expect("written");
    let program = "./host proc2 plain scale.fatbin";
    // More than pipes hold, some of it, a line, and all of it.
    let readers = ["", "head -c 150000 | cksum;", "read x; echo $x;", "cksum;"];
    let left: Vec<usize> = readers
        .iter()
        .flat_map(|reader| {
            let script = format!("{reader} exec {program}");
            let kinds = ["pipe", "socket", "file"].iter();
            kinds
                .map(|kind| {
                    let words = ["sh", "-c", &*script];
                    let from = |command: &mut Command| {
                        read_from(command.args(words), kind, &bench.path("input"))
                    };
                    let (plain, rest) = from(&mut bench.command(&["with", "--"]));
                    for command in ["tune", "trace"] {
                        let budget = (command == "tune").then_some(["--budget", "0.3"]);
                        let mut words = vec![command];
                        words.extend(budget.iter().flatten());
                        words.push("--");
                        let (output, left) = from(&mut bench.command(&words));
                        let what = format!("{command} {kind} `{reader}`: {}", err(&output));
                        assert!(out(&output).starts_with(&out(&plain)), "{what}");
                        assert!(left == rest, "{what}: {} {}", left.len(), rest.len());
                        let is_tried = err(&output).contains("runs with the winners");
                        assert_eq!(is_tried, command == "tune", "{what}");
                    }
                    rest.len()
                })
                .collect::<Vec<_>>()
        })
        .collect();
    let all = lines.len();
    let expected = [all, all, all, all - 150_000, all - 150_000, all - 150_000];
    assert_eq!((&left[..6], &left[9..]), (&expected[..], &[0; 3][..]));
    // A loop of a shell gets its other lines.
    let own = bench.command(&[]);
    let script = "seq 3 | while read l; do echo line $l; \"$@\"; done";
    let run = |words: &[&std::ffi::OsStr]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).args(words);
        shell.args(["sh", "-c", &format!("exec {program}")]);
        let set = own.get_envs();
        shell.envs(set.filter_map(|(name, value)| Some((name, value?))));
        shell
            .current_dir(bench.folder.path())
            .output()
            .expect("starts")
    };
    let tuned = ["tune", "--budget", "0.3", "--"].map(std::ffi::OsStr::new);
    let (plain, tuned) = (run(&[]), run(&[&[own.get_program()], &tuned[..]].concat()));
    assert_eq!(out(&plain).matches("line ").count(), 3);
    assert_eq!(out(&tuned), out(&plain), "{}", err(&tuned));
}

/// What comes out of a command with so many bytes in its standard input, and what its other end gets back.
fn seen_by(command: &mut Command, kind: &str, bytes: usize) -> (Output, Vec<u8>) {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    let (reader, writer): (OwnedFd, OwnedFd) = match kind {
        "unix" => UnixStream::pair()
            .map(|(a, b)| (a.into(), b.into()))
            .expect("sockets"),
        "tcp" => {
            let server = TcpListener::bind("127.0.0.1:0").expect("a socket");
            let other = TcpStream::connect(server.local_addr().expect("an address"));
            let (own, _) = server.accept().expect("a connection");
            (own.into(), other.expect("a connection").into())
        }
        _ => std::io::pipe()
            .map(|(a, b)| (a.into(), b.into()))
            .expect("a pipe"),
    };
    let mut writer = std::fs::File::from(writer);
    writer.write_all(&vec![b'x'; bytes]).expect("written");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let open = (kind != "pipe").then_some(writer);
    let output = command.stdin(reader).output().expect("starts");
    command.stdin(std::process::Stdio::null());
    let mut back = Vec::new();
    if let Some(mut open) = open.filter(|_| kind != "open pipe") {
        let _ = open.read_to_end(&mut back);
    }
    (output, back)
}

/// What a program sees of its standard input before it reads there, and finds at once, is what it would see alone; what it
/// writes into a socket arrives once. A connection that no other run could have is told.
#[test]
fn standard_input_is_what_it_is() {
    let Some(bench) = Bench::new() else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/input.c");
    let mut cc = Command::new("cc");
    let status = cc
        .args(["-w", "-o"])
        .arg(bench.path("input"))
        .arg(source)
        .status();
    assert!(status.expect("cc").success());
    let words = ["./input", "./host", "proc2", "plain", "scale.fatbin"];
    for kind in ["pipe", "open pipe", "unix", "tcp"] {
        for bytes in [0, 7, 60_000] {
            let of = |args: &[&str]| {
                let mut command = bench.command(args);
                seen_by(command.arg("--").args(words), kind, bytes)
            };
            let (plain, back) = of(&["with"]);
            assert!(plain.status.success(), "{}", err(&plain));
            for args in [&["trace"][..], &["tune", "--budget", "0.3"]] {
                let (found, again) = of(args);
                let what = format!("{args:?} {kind} {bytes}: {}", err(&found));
                assert!(
                    out(&found).starts_with(&out(&plain)),
                    "{}{what}",
                    out(&found)
                );
                assert_eq!(found.status.code(), Some(0), "{what}");
                assert_eq!(again, back, "{what}");
                if args[0] == "tune" {
                    let is_tried = err(&found).contains("runs with the winners");
                    assert_eq!(is_tried, kind != "tcp", "{what}");
                    let is_told = err(&found).contains("lasts for one run");
                    assert_eq!(is_told, kind == "tcp", "{what}");
                }
            }
        }
    }
}

/// What a program says on standard error comes once, too, and in its place where both go to one place.
#[test]
fn what_a_program_says_comes_once() {
    let Some(bench) = Bench::new() else { return };
    let script = "echo told >&2; ./host proc2 plain scale.fatbin; echo end >&2";
    let plain = bench.run(&["with", "--", "sh", "-c", script], false);
    assert_eq!(err(&plain), "told\nend\n");
    bench.run(&["trace", "-o", "t.json"], true);
    let own = bench.command(&[]);
    for more in [&[][..], &["--trace", "t.json"]] {
        let words = [
            &["tune", "--budget", "0.3"],
            more,
            &["--", "sh", "-c", script],
        ]
        .concat();
        let tuned = bench.run(&words, false);
        assert_eq!(out(&tuned), out(&plain), "{}", err(&tuned));
        for line in ["told\n", "end\n", "runs with the winners"] {
            assert_eq!(err(&tuned).matches(line).count(), 1, "{}", err(&tuned));
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$@\" 2>&1", "sh"]);
        shell.arg(own.get_program()).args(&words);
        let set = own.get_envs();
        shell.envs(set.filter_map(|(name, value)| Some((name, value?))));
        let both = shell.current_dir(bench.folder.path()).output();
        let both = out(&both.expect("starts"));
        let whole = format!("told\n{}end\n", out(&plain));
        assert_eq!(both.matches(&whole).count(), 1, "{both}");
    }
    // What the library says is none of it.
    let mut tune = bench.command(&["tune", "--budget", "0.3", "--", "sh", "-c", script]);
    let tune = tune.env("WARPWRIGHT_LOG", "/dev/stderr").output();
    let said = err(&tune.expect("starts"));
    assert!(said.contains("is replaced: "), "{said}");
}

/// A command that cannot note what it sees says so, and not that there is no driver.
#[test]
fn notes_that_cannot_be_written_are_told() {
    let Some(bench) = Bench::new() else { return };
    let plain = out(&bench.run(&["with"], true));
    let script = "ulimit -f 0; exec ./host proc2 plain scale.fatbin";
    for command in ["trace", "tune"] {
        let mut cut = bench.command(&[command, "--", "sh", "-c", script]);
        // Of the driver's own, which would grow.
        let cut = cut.env("FAKE_LOG", "/dev/null").output().expect("starts");
        assert_eq!((out(&cut), cut.status.code()), (plain.clone(), Some(0)));
        let said = err(&cut);
        assert!(said.contains("not all that the program did"), "{said}");
        assert!(!said.contains("driver"), "{said}");
    }
}

/// A store that cannot be written is told before the program runs; one that breaks meanwhile costs neither the program's
/// output nor the winners.
#[test]
fn winners_are_kept_aside_where_the_store_is_gone() {
    let Some(bench) = Bench::new() else { return };
    let plain = bench.run(&["with"], true);
    let _ = std::fs::remove_file(bench.path("fake.log"));
    std::fs::write(bench.path("db"), "no folder").expect("written");
    let tune = bench.run(&["tune"], true);
    assert_eq!(tune.status.code(), Some(1), "{}", err(&tune));
    assert!(!bench.path("fake.log").exists(), "the program has run");
    std::fs::remove_file(bench.path("db")).expect("removed");
    let script = "./host proc2 plain scale.fatbin; code=$?; rm -rf db; touch db; exit $code";
    let tune = bench.run(&["tune", "--", "sh", "-c", script], false);
    assert_eq!(out(&tune), out(&plain), "{}", err(&tune));
    assert!(tune.status.success(), "{}", err(&tune));
    assert!(err(&tune).contains("db import --trust"), "{}", err(&tune));
    std::fs::remove_file(bench.path("db")).expect("removed");
    let script = "./host proc2 plain scale.fatbin; rm -rf db; touch db; exit 7";
    let failing = bench.run(&["tune", "--", "sh", "-c", script], false);
    let ended = (out(&failing), failing.status.code());
    assert_eq!(ended, (out(&plain), Some(7)), "{}", err(&failing));
    let entries = std::fs::read_dir(bench.folder.path()).expect("a folder");
    let names = entries.map(|e| {
        e.expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let aside: Vec<String> = names.filter(|n| n.ends_with(".winners")).collect();
    assert_eq!(aside.len(), 2, "{aside:?}");
    std::fs::remove_file(bench.path("db")).expect("removed");
    let imported = bench.run(&["db", "import", "--trust", &aside[0]], false);
    assert!(err(&imported).contains("imported"), "{}", err(&imported));
}

/// Signals to the command are for the program, and nothing runs after one that ends it.
#[test]
fn signals_reach_the_program() {
    let Some(bench) = Bench::new() else { return };
    let script = "trap 'echo got it; exit 9' TERM HUP; echo x >> runs; touch ready; \
        i=0; while [ $i -lt 200 ]; do sleep 0.05; i=$((i+1)); done; echo late";
    for (command, signal) in [("trace", "TERM"), ("tune", "HUP"), ("tune", "TERM")] {
        let _ = std::fs::remove_file(bench.path("runs"));
        let _ = std::fs::remove_file(bench.path("ready"));
        let mut started = bench.command(&[command, "--", "sh", "-c", script]);
        let started = started.stdout(std::process::Stdio::piped());
        let child = started.stderr(std::process::Stdio::piped()).spawn();
        let child = child.expect("starts");
        while !bench.path("ready").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
        let ended = child.wait_with_output().expect("ends");
        assert_eq!(ended.status.code(), Some(9), "{command}: {}", err(&ended));
        assert!(out(&ended).starts_with("got it\n"), "{}", out(&ended));
        let runs = std::fs::read_to_string(bench.path("runs")).expect("runs");
        assert_eq!(runs, "x\n", "{command}");
    }
}

/// What a program says of its signals, those aside that the C library keeps for itself (32 and 33).
fn seen(output: &Output) -> Vec<(String, u64)> {
    let text = out(output);
    let lines = text.lines().filter_map(|line| {
        let (name, mask) = line.strip_prefix("Sig")?.split_once(':')?;
        let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
        Some((name.to_owned(), mask & !(0b11 << 31)))
    });
    lines.collect()
}

/// A program starts with the signals held back and ignored that the command was started with.
#[test]
fn programs_start_with_the_signals_of_the_command() {
    let Some(bench) = Bench::new() else { return };
    let program = ["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"];
    let odd = [
        "env",
        "--ignore-signal=PIPE",
        "--ignore-signal=USR2",
        "--block-signal=TERM",
    ];
    for before in [&["env"][..], &odd] {
        let (first, others) = before.split_first().expect("a program");
        let mut plain = Command::new(first);
        let plain = plain.args(others).args(program).output().expect("starts");
        assert_eq!(seen(&plain).len(), 2, "{}", err(&plain));
        let own = bench.command(&[]);
        for command in ["trace", "with", "tune"] {
            let mut started = Command::new(first);
            let set = own
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?)));
            started
                .args(others)
                .arg(own.get_program())
                .args([command, "--"]);
            let started = started.args(program).envs(set).output().expect("starts");
            assert_eq!(seen(&started), seen(&plain), "{command}: {}", err(&started));
        }
    }
}

/// What a process keeps when it becomes another program, `with` keeps, which is a process no longer; a child of `trace` and `tune`
/// is given what it can be.
#[test]
fn programs_keep_what_exec_keeps() {
    let Some(bench) = Bench::new() else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/bears.c");
    let bears = bench.path("bears").display().to_string();
    let mut cc = Command::new("cc");
    let built = cc.args(["-w", "-o", &bears]).arg(source).status();
    assert!(built.expect("cc").success());
    let own = bench.command(&[]);
    let run = |before: &[&str]| {
        let mut started = Command::new(&bears);
        let set = own
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        started.envs(set).args(["set", "lock"]);
        if let [_, ..] = before {
            started.arg(own.get_program()).args(before);
        }
        let started = started.args([&bears, "show", "lock"]);
        started
            .current_dir(bench.folder.path())
            .output()
            .expect("starts")
    };
    let plain = run(&[]);
    assert!(
        out(&plain).contains("death 12 reaps 1 waiting 10 37\nlock 1 timer 1 child 1 700"),
        "{}",
        out(&plain)
    );
    for command in ["with", "trace", "tune"] {
        let found = run(&[command, "--"]);
        assert_eq!(found.status.code(), Some(4), "{command}: {}", err(&found));
        match command {
            "with" => assert_eq!(out(&found), out(&plain)),
            _ => assert!(
                out(&found)
                    .starts_with("death 12 reaps 1 waiting 10 37\nlock 0 timer 0 child 0 0\n"),
                "{command}: {}",
                out(&found)
            ),
        }
    }
}

/// What ends a program ends it, whether it waits for signals or not.
#[test]
fn signals_end_programs() {
    let Some(bench) = Bench::new() else { return };
    for (command, signal, number) in [
        ("trace", "TERM", 15),
        ("tune", "HUP", 1),
        ("with", "TERM", 15),
        ("trace", "QUIT", 3),
    ] {
        let mut started = bench.command(&[command, "--", "sleep", "20"]);
        started.env("WARPWRIGHT_LOG", "/dev/null");
        started.stdout(std::process::Stdio::piped());
        let child = started.stderr(std::process::Stdio::piped()).spawn();
        let child = child.expect("starts");
        let pid = child.id().to_string();
        // `with` becomes the program, the others have it as a child.
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let is_it = |pid: &str| read(&format!("/proc/{pid}/comm")).trim() == "sleep";
        let children = || read(&format!("/proc/{pid}/task/{pid}/children"));
        while !is_it(&pid) && !children().split_whitespace().any(is_it) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &pid])
            .status();
        assert!(sent.expect("kill").success());
        let ended = child.wait_with_output().expect("ends");
        let code = ended
            .status
            .code()
            .or(ended.status.signal().map(|n| 128 + n));
        assert_eq!(code, Some(128 + number), "{command}: {}", err(&ended));
    }
}

/// A command without a program ends by the signal that ends it; nothing is written, no compiler goes on, no folder stays.
#[test]
fn signals_end_commands() {
    let Some(bench) = Bench::new() else { return };
    std::fs::create_dir_all(bench.path("slow/bin")).expect("made");
    std::fs::create_dir(bench.path("tmp")).expect("made");
    let ptxas = bench.path("slow/bin/ptxas");
    let script = format!(
        "#!/bin/sh\ncase $1 in --version) exec {} --version;; esac\ngrep SigBlk /proc/self/status > {}\necho $$ > {}\nexec sleep 1000\n",
        require_toolkit("in_place")
            .expect("found")
            .ptxas()
            .expect("ptxas")
            .tool()
            .path
            .display(),
        bench.path("held").display(),
        bench.path("begun").display()
    );
    std::fs::write(&ptxas, script).expect("written");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&ptxas, executable).expect("set");
    std::fs::write(
        bench.path("k.ptx"),
        format!("{}{}", head(90), scale("40000000")),
    )
    .expect("written");
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let _ = std::fs::remove_file(bench.path("begun"));
        let mut opt = bench.command(&["opt", "k.ptx", "--block", "256", "-o", "k.cubin"]);
        opt.args(["--toolkit"]).arg(bench.path("slow"));
        opt.env("TMPDIR", bench.path("tmp"));
        opt.env("WARPWRIGHT_CACHE", bench.path("cache"));
        let opt = opt.stderr(std::process::Stdio::piped()).spawn();
        let mut opt = opt.expect("starts");
        let begun = || {
            let text = std::fs::read_to_string(bench.path("begun")).unwrap_or_default();
            text.trim().parse::<u32>().ok()
        };
        while begun().is_none() && opt.try_wait().expect("waits").is_none() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let compiler = begun();
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &opt.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
        let ended = opt.wait_with_output().expect("ends");
        assert_eq!(ended.status.signal(), Some(number), "{}", err(&ended));
        let compiler = compiler.expect("a compiler");
        // What it starts by itself must hear of signals (`timeout`).
        let held = std::fs::read_to_string(bench.path("held")).expect("a mask");
        assert_eq!(held, "SigBlk:\t0000000000000000\n", "{signal}");
        let is_running = Path::new(&format!("/proc/{compiler}/cmdline")).exists();
        assert!(!is_running, "{signal}");
        assert!(!bench.path("k.cubin").exists(), "{signal}");
        let left = std::fs::read_dir(bench.path("tmp")).expect("a folder");
        assert_eq!(left.count(), 0, "{signal}");
    }
}

/// A library that is cut short is told: the dynamic linker would pass it over.
#[test]
fn a_library_that_is_cut_short_is_told() {
    let Some(bench) = Bench::new() else { return };
    let library = std::env::current_exe().expect("own path");
    let bytes = std::fs::read(library.with_file_name("libwarpwright_inject.so")).expect("read");
    for end in [0, 64, 4096, bytes.len() - 1] {
        std::fs::write(bench.path("cut.so"), &bytes[..end]).expect("written");
        let mut with = bench.command(&["with", "--", "true"]);
        let with = with.env("WARPWRIGHT_INJECT", bench.path("cut.so")).output();
        let with = with.expect("starts");
        assert_eq!(with.status.code(), Some(3), "{}", err(&with));
        assert!(err(&with).contains("no whole library"), "{}", err(&with));
    }
    // Nor is it without the one that it opens.
    let beside = bench.path("libwarpwright_inplace.so");
    std::fs::write(bench.path("cut.so"), &bytes).expect("written");
    for (opened, why) in [(None, "is not there"), (Some(100), "no whole library")] {
        if let Some(end) = opened {
            std::fs::write(&beside, &bytes[..end]).expect("written");
        }
        let mut with = bench.command(&["with", "--", "true"]);
        let with = with.env("WARPWRIGHT_INJECT", bench.path("cut.so")).output();
        let with = with.expect("starts");
        assert_eq!(with.status.code(), Some(3), "{}", err(&with));
        assert!(err(&with).contains(why), "{}", err(&with));
    }
}

/// Runs a program alone and below each command, on a standard input of this kind.
fn on_input(bench: &Bench, words: &[&str], input: &dyn Fn() -> std::process::Stdio) {
    let mut alone = Command::new(words[0]);
    let plain = alone.args(&words[1..]).stdin(input()).output();
    let plain = plain.expect("starts");
    for command in ["with", "trace", "tune"] {
        let mut ran = bench.command(&[&[command, "--"], words].concat());
        let ran = ran.stdin(input()).output().expect("starts");
        assert_eq!(ran.status.code(), plain.status.code(), "{command}");
        assert!(
            out(&ran).starts_with(&out(&plain)),
            "{command}: {}, but then {} {}",
            out(&plain),
            out(&ran),
            err(&ran)
        );
        let says = |output: &Output| {
            let text = err(output);
            let lines = text.lines().filter(|line| !line.starts_with("warpwright"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(says(&ran), says(&plain), "{command}");
    }
}

/// A standard input that cannot be read is none that is empty; one that is a path alone brings no other descriptor.
#[test]
fn inputs_that_cannot_be_read_are_none() {
    use std::os::unix::fs::OpenOptionsExt;
    let Some(bench) = Bench::new() else { return };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let unreadable = || writer.try_clone().expect("a descriptor").into();
    on_input(&bench, &["cat"], &unreadable);
    drop(reader);
    // One that may be written to as well.
    let made = Command::new("mkfifo").arg(bench.path("fifo")).status();
    assert!(made.expect("mkfifo").success());
    let both = || {
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).open(bench.path("fifo"));
        file.expect("opens").into()
    };
    on_input(&bench, &["sh", "-c", "echo a >&0 && head -n 1"], &both);
    let file = |flags: i32| {
        let mut options = std::fs::OpenOptions::new();
        let writes = flags == 0;
        let options = options.read(!writes).write(writes).custom_flags(flags);
        options.open(bench.path("read")).expect("opens")
    };
    std::fs::write(bench.path("read"), "data").expect("written");
    on_input(&bench, &["cat"], &|| file(0).into());
    const PATH_ONLY: i32 = 0o10_000_000;
    for words in [
        &["cat"][..],
        &[
            "sh",
            "-c",
            "for n in 0 1 2 3 4 5 6 7 8 9; do readlink /proc/$$/fd/$n >/dev/null && echo $n; done",
        ],
    ] {
        on_input(&bench, words, &|| file(PATH_ONLY).into());
    }
}

/// A program is not told to end with the command, and does when that is killed.
#[test]
fn programs_end_with_a_killed_command() {
    let Some(bench) = Bench::new() else { return };
    let source = r#"#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void) { int signal = -1; prctl(PR_GET_PDEATHSIG, &signal); printf("%d %d\n", signal, getpid()); fflush(stdout); for (;;) pause(); }"#;
    std::fs::write(bench.path("tied.c"), source).expect("written");
    let built = Command::new("cc")
        .current_dir(bench.folder.path())
        .args(["-w", "-o", "tied", "tied.c"])
        .status();
    assert!(built.expect("cc").success());
    for command in ["trace", "tune"] {
        let mut started = bench.command(&[command, "--", "./tied"]);
        started.stdout(std::process::Stdio::piped());
        let mut child = started.spawn().expect("starts");
        let mut line = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
        std::io::BufRead::read_line(&mut out, &mut line).expect("a line");
        let (signal, program) = line.trim().split_once(' ').expect("two numbers");
        assert_eq!(signal, "0", "{command}");
        // What watches beside the program has a signal to tell, and nobody to tell it.
        let number = child.id();
        let beside = format!("/proc/{number}/task/{number}/children");
        let beside = std::fs::read_to_string(beside).expect("children");
        let beside: Vec<&str> = beside
            .split_whitespace()
            .filter(|number| *number != program)
            .collect();
        assert_eq!(beside.len(), 1, "{command}: {beside:?}");
        signal_to("STOP", beside[0]);
        child.kill().expect("killed");
        child.wait().expect("ended");
        signal_to("TERM", beside[0]);
        signal_to("CONT", beside[0]);
        for number in [program, beside[0]] {
            wait_for_end(number, command);
        }
    }
}

/// Nor does one live on whose first deed is to kill the command.
#[test]
fn programs_that_kill_the_command_end_with_it() {
    let Some(bench) = Bench::new() else { return };
    let source = r#"#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
    alarm(60);
    kill(getppid(), SIGKILL);
    FILE *file = fopen(words[1], "w");
    if (file) { fprintf(file, "%d", getpid()); fclose(file); }
    for (;;) pause();
}"#;
    std::fs::write(bench.path("kills.c"), source).expect("written");
    let built = Command::new("cc")
        .current_dir(bench.folder.path())
        .args(["-w", "-static", "-O1", "-o", "kills", "kills.c"])
        .status();
    assert!(built.expect("cc").success());
    for number in 0..20 {
        let told = bench.path(&format!("killed-{number}"));
        let words = ["trace", "--", "./kills", &told.display().to_string()];
        let ended = bench.command(&words).status().expect("starts");
        assert_eq!(ended.signal(), Some(9));
        // It may end before it says which it is.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let program = std::fs::read_to_string(&told).unwrap_or_default();
        if !program.is_empty() {
            wait_for_end(&program, &number.to_string());
        }
    }
}

/// Waits until a process has ended.
fn wait_for_end(process: &str, what: &str) {
    let state = || std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let begun = std::time::Instant::now();
    while !state().is_empty() && !state().contains(") Z ") {
        assert!(begun.elapsed().as_secs() < 20, "{what}: {}", state());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn signal_to(signal: &str, process: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), process])
        .status();
    assert!(sent.expect("kill").success(), "{signal}");
}

/// A signal ends a trace whenever it comes: no folder stays, and the file is the older one or a trace.
#[test]
fn signals_leave_nothing_half_made() {
    let Some(bench) = Bench::new() else { return };
    std::fs::create_dir(bench.path("tmp")).expect("made");
    let older = "an older trace";
    for (number, signal) in ["TERM", "INT", "HUP"].iter().cycle().take(60).enumerate() {
        std::fs::write(bench.path("t.json"), older).expect("written");
        let mut trace = bench.command(&["trace", "-o", "t.json", "--"]);
        trace.args(["sh", "-c", "sleep 0.02; exec sleep 5"]);
        trace.env("TMPDIR", bench.path("tmp"));
        let trace = trace
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let mut child = trace.spawn().expect("starts");
        std::thread::sleep(std::time::Duration::from_micros(1_500 * number as u64));
        signal_to(signal, &child.id().to_string());
        assert_eq!(child.wait().expect("ends").code(), None, "{number}");
        let text = std::fs::read_to_string(bench.path("t.json")).expect("a file");
        assert_eq!(text, older, "{number}");
        let left = std::fs::read_dir(bench.path("tmp")).expect("a folder");
        assert_eq!(left.count(), 0, "{number}");
    }
}

/// Nobody else reads what a run keeps of the program, and what a killed run left is swept.
#[test]
fn folders_to_work_in_are_private_and_swept() {
    let Some(bench) = Bench::new() else { return };
    let left = bench.path("tmp/warpwright-run-left");
    std::fs::create_dir_all(&left).expect("made");
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(600);
    let folder = std::fs::File::open(&left).expect("opens");
    folder.set_modified(before).expect("dated");
    std::fs::create_dir(bench.path("tmp/warpwright-run-young")).expect("made");
    let script = "stat -c %a \"$WARPWRIGHT_DIR\"";
    let mut trace = bench.command(&["trace", "--", "sh", "-c", script]);
    let trace = trace.env("TMPDIR", bench.path("tmp")).output();
    let trace = trace.expect("starts");
    assert!(out(&trace).starts_with("700\n"), "{}", out(&trace));
    let entries = std::fs::read_dir(bench.path("tmp")).expect("a folder");
    let names: Vec<_> = entries.map(|e| e.expect("an entry").file_name()).collect();
    assert_eq!(names, ["warpwright-run-young"]);
    // Those of single builds, too: they hold kernels.
    std::fs::create_dir_all(&left).expect("made");
    let folder = std::fs::File::open(&left).expect("opens");
    folder.set_modified(before).expect("dated");
    // One that no cache of builds has.
    let name = format!("k{}", std::process::id());
    let head = ".version 8.0\n.target sm_90\n.address_size 64\n";
    let kernel = format!("{head}.visible .entry {name}() {{ ret; }}\n");
    std::fs::write(bench.path("k.ptx"), kernel).expect("written");
    let mut opt = bench.command(&["opt", "k.ptx", "--block", "32", "-o", "k.out.cubin"]);
    let opt = opt.env("TMPDIR", bench.path("tmp"));
    let opt = opt.output().expect("starts");
    assert!(!left.exists(), "{}", err(&opt));
}

/// A search that memory ends in the middle would lose what the program printed; files that grow too large are errors.
#[test]
fn limits_are_told_before_they_are_met() {
    let Some(bench) = Bench::new() else { return };
    let under = |limit: &str, words: &[&str]| {
        let mut command = bench.command(&[]);
        let own = command.get_program().to_owned();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh"]);
        shell.arg(own).args(words).current_dir(bench.path("."));
        for (name, value) in command.get_envs() {
            shell.env(name, value.expect("set"));
        }
        command = shell;
        command.output().expect("starts")
    };
    let tune = under("-v 900000", &["tune", "--", "sh", "-c", "echo ran"]);
    assert_eq!(tune.status.code(), Some(1), "{}", err(&tune));
    let says = "this process may have 878 MiB of memory (`ulimit -v`)";
    assert!(
        out(&tune).is_empty() && err(&tune).contains(says),
        "{}",
        err(&tune)
    );
    // What has little stack from the start has it all the same.
    for command in ["trace", "with", "tune"] {
        let ended = under("-s 64", &[command, "--", "sh", "-c", "ulimit -s; exit 7"]);
        assert_eq!(ended.status.code(), Some(7), "{command}: {}", err(&ended));
        assert_eq!(out(&ended), "64\n", "{command}");
    }
    // So has what may open few files: `with` needs none.
    std::fs::create_dir(bench.path("tmp")).expect("made");
    let host = ["./host", "proc2", "plain", "scale.fatbin"];
    let plain = bench.run(&["with"], true);
    for files in ["4", "5", "6", "7", "9"] {
        for command in ["trace", "with", "tune"] {
            let limit = format!("-n {files}; export TMPDIR=tmp FAKE_LOG=/dev/null");
            let ended = under(&limit, &[&[command, "--"], &host[..]].concat());
            let what = format!("{files} {command}: {}", err(&ended));
            if command == "with" {
                assert_eq!(
                    (out(&ended), ended.status.code()),
                    (out(&plain), Some(0)),
                    "{what}"
                );
            } else {
                assert_eq!(
                    (&*out(&ended), ended.status.code()),
                    ("", Some(1)),
                    "{what}"
                );
                assert!(err(&ended).contains("more files (`ulimit -n`)"), "{what}");
            }
            let left = std::fs::read_dir(bench.path("tmp")).expect("a folder");
            assert_eq!(left.count(), 0, "{what}");
        }
    }
    let tune = under(
        "-n 48",
        &[&["tune", "--budget", "0.3", "--"], &host[..]].concat(),
    );
    assert_eq!(out(&tune), out(&plain), "{}", err(&tune));
    assert!(
        err(&tune).contains("runs with the winners"),
        "{}",
        err(&tune)
    );
    let list = under("-s 64", &["db", "list"]);
    assert!(list.status.success(), "{}", err(&list));
    let kernel = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";
    std::fs::write(bench.path("k.ptx"), kernel).expect("written");
    let opt = under(
        "-f 0",
        &["pass", "cache(loads=streaming)", "k.ptx", "-o", "big.ptx"],
    );
    assert_eq!(opt.status.code(), Some(1), "{}", err(&opt));
    assert!(err(&opt).contains("big.ptx"), "{}", err(&opt));
    let script = "echo first; echo second >> /dev/stdout; echo third";
    let tune = bench.run(&["tune", "--", "sh", "-c", script], false);
    assert_eq!(out(&tune), "first\nsecond\nthird\n");
}

/// A tuned program writes where the command does, once and as it would alone: into files that it opens anew, behind its own
/// end, under limits, to readers that go away, and nowhere.
#[test]
fn a_tuned_program_writes_where_the_command_does() {
    let Some(bench) = Bench::new() else { return };
    let program = "./host proc2 plain scale.fatbin";
    let late = "(while [ ! -e go ] && [ -e host ]; do sleep 0.02; done; echo late) 2> /dev/null &";
    let anew = format!("echo lost; {program} > /dev/stdout; echo first; {late}");
    // These end as nobody reads any more: with other places for their output they would not.
    let endless = format!("{program}; yes");
    let stubborn = format!("trap '' PIPE; {program}; while echo y; do :; done; exit 3");
    let cases = [
        ("exec \"$@\" > out", &*anew),
        (
            "ulimit -f 8; exec \"$@\" > out",
            "echo first; head -c 20000 /dev/zero; echo last",
        ),
        ("\"$@\" | head -n 1 > out", &endless),
        ("\"$@\" | head -n 1 > out", &stubborn),
    ];
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let tune = bench.command(&["tune", "--budget", "0.3", "--"]);
    for (before, script) in cases {
        let under = |words: Vec<&std::ffi::OsStr>| {
            let _ = std::fs::remove_file(bench.path("out"));
            if script == anew {
                let _ = std::fs::remove_file(bench.path("go"));
            }
            let mut shell = Command::new("timeout");
            shell.args(["100", "sh", "-c", before, "sh"]).args(words);
            shell
                .args(["sh", "-c", script])
                .current_dir(bench.folder.path());
            shell.envs(
                tune.get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
            let ended = shell.output().expect("starts");
            std::fs::write(bench.path("go"), "").expect("written");
            let read = || std::fs::read(bench.path("out")).unwrap_or_default();
            for _ in 0..500 {
                if script != anew || text(&read()).contains("late") {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            let signal = ended.status.signal().map(|number| 128 + number);
            (ended.status.code().or(signal), read(), err(&ended))
        };
        let plain = under(Vec::new());
        let words = std::iter::once(tune.get_program()).chain(tune.get_args());
        let tuned = under(words.collect());
        assert_eq!(
            text(&tuned.1),
            text(&plain.1),
            "{before} {script}: {}",
            tuned.2
        );
        assert_eq!(tuned.0, plain.0, "{before} {script}: {}", tuned.2);
        let is_tried = tuned.2.contains("runs with the winners");
        assert_eq!(is_tried, script == anew, "{}", tuned.2);
    }
    // With a trace there is no first run: what counts is written at its end.
    bench.run(&["trace", "-o", "t.json"], true);
    for code in [0, 7] {
        let script = format!("{program}; exit {code}");
        let run =
            |words: &[&str]| bench.run(&[words, &["--", "sh", "-c", &script]].concat(), false);
        let (plain, tuned) = (
            run(&["with"]),
            run(&["tune", "--budget", "0.3", "--trace", "t.json"]),
        );
        assert_eq!(out(&tuned), out(&plain), "{}", err(&tuned));
        assert_eq!(tuned.status.code(), Some(code), "{}", err(&tuned));
    }
}

/// What a program reads from a terminal it wants in each run, and that is said.
#[test]
fn what_terminals_are_asked_again_is_told() {
    let Some(bench) = Bench::new() else { return };
    let tune = bench.command(&[]);
    let program = "printf name:; read x; echo got $x; exec ./host proc2 plain scale.fatbin";
    let words = format!("\"$BINARY\" tune --budget 1 -- sh -c '{program}'");
    // Has a terminal.
    let mut script = Command::new("script");
    script
        .args(["-qec", &words, "/dev/null"])
        .current_dir(bench.folder.path());
    script.envs(
        tune.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    script.env("BINARY", tune.get_program());
    std::fs::write(bench.path("typed"), "one\ntwo\nthree\n").expect("written");
    let typed = std::fs::File::open(bench.path("typed")).expect("opened");
    let ended = script.stdin(typed).output().expect("starts");
    let shown = out(&ended);
    assert!(ended.status.success(), "{shown}");
    assert_eq!(shown.matches("name:got one").count(), 1, "{shown}");
    assert_eq!(shown.matches("it wants again").count(), 2, "{shown}");
    assert!(shown.contains("runs with the winners"), "{shown}");
}

#[test]
fn the_environment_stays_as_it_is() {
    let Some(bench) = Bench::new() else { return };
    let source = r#"#include <stdio.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
static char *given[] = {"ZED=1", "DUP=first", "NOEQ", "WARPWRIGHT=old", "=empty", "", "DUP=second", "ABC=2", 0, 0, 0, 0};
int main(int count, char **words) {
    if (count > 1) {
        char **last = given;
        while (*last) last++;
        for (char **own = environ; *own; own++)
            if (!strncmp(*own, "WARPWRIGHT_", 11) || !strncmp(*own, "LD_LIB", 6)) *last++ = *own;
        return execve(words[1], words + 1, given);
    }
    for (; *environ; environ++) puts(*environ);
    return 0;
}"#;
    std::fs::write(bench.path("environment.c"), source).expect("written");
    let built = Command::new("cc")
        .current_dir(bench.folder.path())
        .args(["-w", "-o", "environment", "environment.c"])
        .status();
    assert!(built.expect("cc").success());
    let own = env!("CARGO_BIN_EXE_warpwright");
    let expected = [
        "ZED=1",
        "DUP=first",
        "NOEQ",
        "=empty",
        "",
        "DUP=second",
        "ABC=2",
    ];
    for command in ["with", "trace", "tune"] {
        let mut words = Command::new(bench.path("environment"));
        words.args([own, command, "--", "./environment"]);
        let set = bench.command(&[]);
        let set: Vec<_> = set
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        let ended = words.envs(set).current_dir(bench.folder.path()).output();
        let ended = ended.expect("starts");
        let text = out(&ended);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines
                .get(3)
                .is_some_and(|line| line.starts_with("WARPWRIGHT=")),
            "{text}"
        );
        let ours = |line: &&str| line.starts_with("WARPWRIGHT");
        let all = lines.iter().copied().filter(|line| !ours(line));
        assert!(
            all.take(expected.len()).eq(expected),
            "{command}: {text} {}",
            err(&ended)
        );
        assert!(!lines.contains(&"WARPWRIGHT=old"), "{text}");
    }
}

#[test]
fn programs_with_functions_of_the_librarys_names_run_alone() {
    let Some(bench) = Bench::new() else { return };
    let source = r#"extern void *dlsym(void *, const char *);
int close(char *at) { return *at; }
int main(void) { return dlsym(0, "cuInit") ? 1 : 7; }"#;
    std::fs::write(bench.path("own.c"), source).expect("written");
    let built = Command::new("cc")
        .current_dir(bench.folder.path())
        .args(["-w", "-o", "own", "own.c", "-ldl"])
        .status();
    assert!(built.expect("cc").success());
    for command in ["with", "trace", "tune"] {
        let ended = bench.run(&[command, "--", "./own"], false);
        assert_eq!(ended.status.code(), Some(7), "{command}: {}", err(&ended));
        let is_told = err(&ended).contains("a function `close` of its own");
        assert_eq!(is_told, command != "with", "{command}: {}", err(&ended));
    }
}

/// A program that forbids itself system calls is not ended by the library's, and what was seen before is told.
#[test]
fn programs_forbid_themselves_system_calls() {
    let Some(bench) = Bench::new() else { return };
    let all = [
        ("forbidden", "prctl"),
        ("forbidden", "syscall"),
        ("forbidden-first", "prctl"),
    ];
    for (scenario, by) in all {
        let program = ["./host", "proc2", scenario, "scale.fatbin", by];
        let run = |command: &[&str]| {
            let own = bench.command(&[command, &["--"], &program].concat());
            let plain = match command {
                [] => Command::new(program[0]),
                _ => Command::new(own.get_program()),
            };
            let mut ran = plain;
            match command {
                [] => ran.args(&program[1..]),
                _ => ran.args(own.get_args()),
            };
            let set = own.get_envs();
            ran.envs(set.filter_map(|(name, value)| Some((name, value?))));
            ran.env_remove("FAKE_LOG").current_dir(bench.folder.path());
            ran.output().expect("starts")
        };
        let plain = run(&[]);
        assert!(plain.status.success(), "{}", err(&plain));
        for command in [&["with"][..], &["trace"], &["tune", "--budget", "1"]] {
            let ended = run(command);
            assert!(
                ended.status.success(),
                "{command:?}: {:?} {}",
                ended.status,
                err(&ended)
            );
            assert!(
                out(&ended).starts_with(&out(&plain)),
                "{command:?}: {}",
                out(&ended)
            );
            let is_told = err(&ended).contains("(seccomp)");
            assert_eq!(is_told, command != ["with"], "{command:?}: {}", err(&ended));
            let is_seen = out(&ended).contains("GPU time in 1 launch,");
            let is_first = scenario == "forbidden-first";
            assert_eq!(
                is_seen,
                command == ["trace"] && !is_first,
                "{}",
                out(&ended)
            );
        }
    }
}

#[test]
fn exit_codes_are_the_programs() {
    let Some(bench) = Bench::new() else { return };
    // So is its output, even where it removes the folder that the command works in.
    for command in ["trace", "tune"] {
        let script = "echo done; rm -rf \"$WARPWRIGHT_DIR\"; exit 7";
        let ended = bench.run(&[command, "--", "sh", "-c", script], false);
        let found = (out(&ended), ended.status.code());
        assert_eq!(
            found,
            ("done\n".into(), Some(7)),
            "{command}: {}",
            err(&ended)
        );
    }
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
    // Who wants a document has one, behind what the program says: it names no kernel.
    let kept = bench.folder.path().join("none.json");
    for to in [&["--json"][..], &["--report-to", kept.to_str().unwrap()]] {
        let words = [&["tune"], to, &["--", "sh", "-c", "echo done; exit 7"]].concat();
        let ended = bench.run(&words, false);
        assert_eq!(ended.status.code(), Some(7), "{to:?}: {}", err(&ended));
        assert!(
            err(&ended).contains("no launch was seen: "),
            "{}",
            err(&ended)
        );
        let said = out(&ended);
        let behind = said.strip_prefix("done\n").unwrap().to_owned();
        let text = match to {
            ["--json"] => behind,
            _ => std::fs::read_to_string(&kept).unwrap() + &behind,
        };
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["kernels"], serde_json::json!([]), "{text}");
        assert_eq!(document["gpu"], "", "{text}");
    }
    // What is closed is closed for the program.
    for (closed, script) in [
        (">&-", "echo no"),
        ("<&-", "read x"),
        ("2>&-", "echo no >&2"),
    ] {
        let mut plain = Command::new("sh");
        plain.args(["-c", &format!("exec sh -c '{script}' {closed}")]);
        let plain = plain.status().expect("starts").code();
        assert!(plain.is_some_and(|code| code != 0), "{closed}");
        for command in ["trace", "tune", "with"] {
            let own = env!("CARGO_BIN_EXE_warpwright");
            let words = format!("exec {own} {command} -- sh -c '{script}' {closed}");
            let mut shell = Command::new("sh");
            shell.args(["-c", &words]).current_dir(bench.folder.path());
            let set = bench.command(&[]);
            shell.envs(
                set.get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
            let ended = shell.output().expect("starts");
            assert_eq!(ended.status.code(), plain, "{command} {closed}");
        }
    }
    assert_eq!(bench.run(&["with"], false).status.code(), Some(2));
    // Arguments are bytes.
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"\xff");
    for command in ["trace", "tune", "with"] {
        let mut words = bench.command(&[command, "--", "printf", "%s"]);
        let ended = words.arg(odd).output().expect("starts");
        assert_eq!(ended.stdout, b"\xff", "{command}: {}", err(&ended));
    }
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

/// Kernels that are launched in graphs alone are tuned, and stand in the graphs' nodes.
#[test]
fn kernels_of_graphs_are_tuned() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let program = ["--", "./host", "proc2", "graph", "scale.fatbin"];
    let run = |args: &[&str]| {
        let mut command = bench.command(args);
        let run = command
            .args(program)
            .env("WARPWRIGHT_LOG", bench.path("log"));
        run.output().expect("starts")
    };
    let plain = out(&run(&["with"]));
    let tune = run(&["tune", "--report-to", "r.json"]);
    assert_eq!(out(&tune), plain, "{}", err(&tune));
    let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for kernel in report["kernels"].as_array().expect("kernels") {
        assert_eq!(kernel["in_program"], 0.5, "{text}\n{}", err(&tune));
    }
    assert_eq!(out(&run(&["with"])), plain);
    let log = std::fs::read_to_string(bench.path("log")).expect("a log");
    assert!(log.contains("is replaced: "), "{log}");
}

/// Of two winners in a graph each is judged by what the graph takes less with it: the whole, which takes what it took before,
/// would tell neither.
#[test]
fn winners_in_graphs_are_judged_by_their_nodes() {
    let both = |factor: &str| {
        // Other code from the start: kernels are known by it.
        let too = if factor == FAST { LONELY } else { "40400000" };
        scale(factor) + &scale(too).replace("scale(", "scale_too(")
    };
    let Some(bench) = Bench::of(&both, FAST) else {
        return;
    };
    let program = ["--", "./host", "proc2", "graph-both", "scale.fatbin"];
    let run = |args: &[&str]| bench.command(args).args(program).output().expect("starts");
    let plain = run(&["with"]);
    assert!(plain.status.success(), "{}", out(&plain));
    let tune = run(&["tune", "--report-to", "r.json"]);
    assert_eq!(out(&tune), out(&plain), "{}", err(&tune));
    let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let kernels = report["kernels"].as_array().expect("kernels");
    let of = |name: &str| {
        let mut all = kernels.iter();
        let found = all.find(|k| k["kernel"] == name);
        found.unwrap_or_else(|| panic!("{text}\n{}", err(&tune)))
    };
    assert_eq!(of("scale")["in_program"], 0.5, "{text}");
    let stays = of("scale_too")["stays"].as_str().unwrap_or_default();
    assert!(
        stays.contains("wins alone") && stays.contains("2.000"),
        "{text}"
    );
    assert_eq!(out(&run(&["with"])), out(&plain));
}

/// Another thread of the program takes all its memory while it waits for the search: it ends as ever, and what was found until
/// then is judged.
#[test]
fn programs_without_memory_end_their_search() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let run = |args: &[&str]| {
        let mut command = bench.command(args);
        command.args(["--", "./host", "proc2", "short-waits", "scale.fatbin"]);
        command.env("MALLOC_ARENA_MAX", "1").env("HOST_REPEAT", "1");
        command.env("WARPWRIGHT_LOG", bench.path("log"));
        command.output().expect("starts")
    };
    let plain = run(&["with"]);
    assert!(plain.status.success(), "{}", out(&plain));
    let tune = run(&["tune", "--report-to", "r.json"]);
    assert_eq!(out(&tune), out(&plain), "{}", err(&tune));
    assert_eq!(tune.status.code(), Some(0), "{}", err(&tune));
    let log = std::fs::read_to_string(bench.path("log")).expect("a log");
    assert!(log.contains("little memory"), "{log}");
    let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let kernels = report["kernels"].as_array().expect("kernels");
    assert!(kernels.iter().all(|k| k["winner"].is_null()), "{text}");
    let listed = bench.run(&["db", "list", "--json"], false);
    assert!(listed.status.success(), "{}", err(&listed));
}

/// A kernel that cannot run outside of its graph is left alone, and named.
#[test]
fn kernels_that_need_their_graph_stay() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let mut command = bench.command(&["tune", "--report-to", "r.json"]);
    command.args(["--", "./host", "proc2", "graph", "scale.fatbin"]);
    let tune = command
        .env("FAKE_GRAPH_ONLY", "1")
        .output()
        .expect("starts");
    assert!(tune.status.success(), "{}", err(&tune));
    let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for kernel in report["kernels"].as_array().expect("kernels") {
        let stays = kernel["stays"].as_str().unwrap_or_default();
        assert!(stays.contains("cannot run outside of its graph"), "{text}");
    }
}

/// Winners that are launched once or twice a run are met in as many runs as it takes; what is launched often in one.
#[test]
fn seldom_winners_are_met_in_several_runs() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let runs = |repeat: &str| {
        let mut tune = bench.command(&["tune", "--report-to", "r.json", "--", "sh", "-c"]);
        let program = "echo >> runs; exec ./host proc2 plain scale.fatbin";
        let tune = tune.arg(program).env("HOST_REPEAT", repeat);
        let tuned = tune.output().expect("starts");
        let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for kernel in report["kernels"].as_array().expect("kernels") {
            assert_eq!(kernel["in_program"], 0.5, "{text}\n{}", err(&tuned));
        }
        let count = std::fs::read(bench.path("runs")).expect("runs").len();
        std::fs::remove_file(bench.path("runs")).expect("removed");
        count
    };
    // As it is, with candidates, and with winners: once, or until five launches of each were seen.
    assert_eq!(runs("12"), 3);
    assert_eq!(runs("1"), 2 + 10);
}

/// The kernels of device-linked code have the PTX of what they were linked from.
#[test]
fn device_linked_code_is_tuned() {
    let Some(bench) = Bench::of(&sized, FAST) else {
        return;
    };
    let program = ["--", "./host", "proc2", "linked", "scale.fatbin"];
    let run = |args: &[&str]| bench.command(args).args(program).output().expect("starts");
    let plain = run(&["with"]);
    let tune = run(&["tune", "--report-to", "r.json"]);
    assert_eq!(out(&tune), out(&plain), "{}", err(&tune));
    let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for kernel in report["kernels"].as_array().expect("kernels") {
        let winner = kernel["winner"].as_str().unwrap_or_default();
        assert!(winner.contains("param1:4=1000"), "{text}\n{}", err(&tune));
    }
}

/// Launches that take long are timed by the runs that compare their results, and win all the same.
#[test]
fn long_launches_are_timed_seldom() {
    let Some(bench) = Bench::of(&sized, FAST) else {
        return;
    };
    let mut tune = bench.command(&["tune", "--budget", "2", "--report-to", "r.json", "--"]);
    let tune = tune.args(["./host", "proc2", "plain", "scale.fatbin"]);
    let tune = tune.env("HOST_REPEAT", "1").env("FAKE_SLOWLY", "3000");
    let tuned = tune.output().expect("starts");
    let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let kernels = report["kernels"].as_array().expect("kernels");
    assert!(!kernels.is_empty(), "{}", err(&tuned));
    for kernel in kernels {
        let ratio = kernel["in_program"].as_f64();
        assert_eq!(ratio, Some(0.5), "{text}\n{}", err(&tuned));
    }
}

/// A kernel that is fast once the number of its elements, which is 1000 at all launches, is a constant.
fn sized(_: &str) -> String {
    let rest = 0x4FFA_7FA5 - 1000;
    format!(
        ".visible .entry scale(.param .u64 p, .param .u32 n) {{
    .reg .b64 %d<2>; .reg .f32 %f<3>; .reg .b32 %r<3>;
    ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; add.u32 %r1, %r0, {rest}; mov.b32 %f1, %r1;
    ld.global.f32 %f0, [%d0]; fma.rn.f32 %f0, %f0, %f1, 0f3F800000; st.global.f32 [%d0], %f0; ret;
}}\n"
    )
}

/// A kernel that is fast once its number of elements is a constant, 1000 or 600.
fn twice_sized(_: &str) -> String {
    let [first, second] = [1000, 600].map(|n| 0x4FFA_7FA5 - n);
    format!(
        ".visible .entry scale(.param .u64 p, .param .u32 n) {{
    .reg .b64 %d<2>; .reg .f32 %f<4>; .reg .b32 %r<3>;
    ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; ld.global.f32 %f0, [%d0];
    add.u32 %r1, %r0, {first}; mov.b32 %f1, %r1; fma.rn.f32 %f0, %f0, %f1, 0f3F800000;
    add.u32 %r2, %r0, {second}; mov.b32 %f2, %r2; fma.rn.f32 %f0, %f0, %f2, 0f40000000;
    st.global.f32 [%d0], %f0; ret;
}}\n"
    )
}

/// A number that takes two values gets a version for each, each for its launches alone; one that is another at each launch
/// gets none.
#[test]
fn values_have_versions_of_their_own() {
    let Some(bench) = Bench::of(&twice_sized, FAST) else {
        return;
    };
    let program = |command: &[&str], sizes: &str| {
        let mut command = bench.command(command);
        let words = ["--", "./host", "proc2", "sizes", "scale.fatbin", sizes];
        command.args(words).output().expect("starts")
    };
    let json = |name: &str| -> serde_json::Value {
        let text = std::fs::read_to_string(bench.path(name)).expect("a file");
        serde_json::from_str(&text).expect("JSON")
    };
    let sizes = "1000x2,600x3,500+";
    let plain = program(&["with"], sizes);
    let trace = program(&["trace", "-o", "t.json"], sizes);
    assert!(trace.status.success(), "{}", err(&trace));
    let kinds = json("t.json")["launches"][0]["values"].clone();
    assert!(
        kinds.is_null(),
        "some number is another at each launch: {kinds}"
    );

    let sizes = "1000x2,600x3,7";
    let plain_of_three = program(&["with"], sizes);
    program(&["trace", "-o", "t.json"], sizes);
    let kinds = json("t.json")["launches"][0]["values"].clone();
    let counts = kinds.as_array().expect("kinds").iter();
    let counts: Vec<u64> = counts
        .filter_map(|kind| kind["launches"].as_u64())
        .collect();
    assert_eq!(counts, [36, 24, 12]);

    let tune = program(&["tune", "--report-to", "r.json"], sizes);
    assert!(tune.status.success(), "{}", err(&tune));
    assert_eq!(out(&tune), out(&plain_of_three), "{}", err(&tune));
    let report = json("r.json");
    let kernels = report["kernels"].as_array().expect("kernels");
    let of = |among: &str| {
        let found = kernels.iter().find(|k| k["among"].as_str() == Some(among));
        found.unwrap_or_else(|| panic!("{report}\n{}", err(&tune)))
    };
    for n in [1000, 600] {
        let kernel = of(&format!("param1:4={n}"));
        let winner = kernel["winner"].as_str().unwrap_or_default();
        assert!(winner.contains(&n.to_string()), "{report}\n{}", err(&tune));
        assert_eq!(kernel["in_program"], 0.5, "{report}");
    }
    // Each launch takes the same time, and half of them have this value.
    let share = of("param1:4=600")["share"].as_f64().expect("a share");
    assert!((share - 0.5).abs() < 0.01, "{report}");

    // Each launch has its own version, the others have the original.
    let below = ["trace", "-o", "w.json", "--"];
    let with = [&below[..], &[env!("CARGO_BIN_EXE_warpwright"), "with"]].concat();
    for (sizes, plain) in [(sizes, &plain_of_three), ("1000x2,600x3,500+", &plain)] {
        let traced = program(&with, sizes);
        assert!(out(&traced).starts_with(&out(plain)), "{}", err(&traced));
        let launches = json("w.json")["launches"][0].clone();
        let of_both = [&launches["launches"], &launches["gpu_ns"]];
        assert_eq!(of_both, [72, 60 * 50_000 + 12 * 100_000], "{launches}");
    }
    let changed = program(&["with"], "1000x2,600x3,500+");
    assert_eq!(out(&changed), out(&plain));
}

/// While the program waits, a version is found that is right at such launches alone; the door tests that.
#[test]
fn what_stays_the_same_becomes_a_constant() {
    let Some(bench) = Bench::of(&sized, FAST) else {
        return;
    };
    let plain = bench.run(&["with"], true);
    bench.run(&["trace", "-o", "t.json"], true);
    let trace = std::fs::read_to_string(bench.path("t.json")).expect("a trace");
    let trace: serde_json::Value = serde_json::from_str(&trace).expect("JSON");
    let stayed = &trace["launches"][0]["stayed"];
    assert_eq!(stayed["parameters"], "................e8030000", "{stayed}");
    assert_eq!(stayed["grid"], true);
    let tune = bench.run(&["tune", "--report-to", "r.json"], true);
    assert_eq!(out(&tune), out(&plain), "{}", err(&tune));
    let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for kernel in report["kernels"].as_array().expect("kernels") {
        let winner = kernel["winner"].as_str().unwrap_or_default();
        assert!(winner.contains("param1:4=1000"), "{text}\n{}", err(&tune));
        assert_eq!(kernel["in_program"], 0.5);
    }
    assert!(
        err(&tune).contains(" tried, 2.000× at best"),
        "{}",
        err(&tune)
    );
    let listed = out(&bench.run(&["db", "list", "--json"], false));
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    for winner in listed["winners"].as_array().expect("winners") {
        assert!(winner.to_string().contains("param1:4=1000"), "{winner}");
    }
    let log = bench.path("used.log");
    let mut with = bench.command(&["with", "--", "./host", "proc2", "plain", "scale.fatbin"]);
    let with = with.env("WARPWRIGHT_LOG", &log).output().expect("starts");
    assert_eq!(out(&with), out(&plain));
    let log = std::fs::read_to_string(log).expect("a log");
    assert!(log.contains("is replaced: "), "{log}");
}

/// Versions made of PTX need no machine code to be edited: they are found for every architecture.
#[test]
fn every_architecture_is_tuned_from_ptx() {
    for sm in [75, 89, 100, 103, 121] {
        let Some(bench) = Bench::on(sm, &scale, FAST) else {
            return;
        };
        let run = |args: &[&str]| {
            let mut command = bench.command(args);
            command.args(["--", "./host", "proc2", "plain", "scale.fatbin"]);
            command.env("FAKE_SM", sm.to_string());
            command.output().expect("starts")
        };
        let plain = run(&["with"]);
        let tune = run(&["tune", "--budget", "2", "--report-to", "r.json"]);
        assert_eq!(out(&tune), out(&plain), "sm_{sm}: {}", err(&tune));
        let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let kernels = report["kernels"].as_array().expect("kernels");
        assert!(!kernels.is_empty(), "sm_{sm}: {}", err(&tune));
        for kernel in kernels {
            let ratio = kernel["in_program"].as_f64();
            assert_eq!(ratio, Some(0.5), "sm_{sm}: {text}\n{}", err(&tune));
        }
        let _ = std::fs::remove_file(bench.path("fake.log"));
        assert_eq!(out(&run(&["with"])), out(&plain), "sm_{sm}");
        let log = std::fs::read_to_string(bench.path("fake.log")).expect("a log");
        let sizes = log
            .lines()
            .filter_map(|l| l.split(" image ").nth(1)?.split(' ').next());
        let sizes: std::collections::BTreeSet<&str> = sizes.collect();
        assert_eq!(sizes.len(), 1, "sm_{sm}: {log}");
    }
}

/// Each winner is told as the edit that does the same, and the page shows the whole program.
#[test]
fn winners_are_told_as_edits() {
    let Some(bench) = Bench::of(&sized, FAST) else {
        return;
    };
    let plain = bench.run(&["with"], true);
    let words = ["tune", "--report", "page.html", "--report-to", "r.json"];
    let tune = bench.run(&words, true);
    assert_eq!(out(&tune), out(&plain), "{}", err(&tune));
    let text = std::fs::read_to_string(bench.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let page = std::fs::read_to_string(bench.path("page.html")).expect("a page");
    for kernel in report["kernels"].as_array().expect("kernels") {
        let edit = kernel["edit"]["text"].as_str().unwrap_or_default();
        assert!(edit.contains("parameter 1 = 1000"), "{text}");
        assert_eq!(kernel["edit"]["gives"]["measured"], 0.5, "{text}");
    }
    for shown in ["scale", "parameter 1 = 1000"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
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

/// AddressSanitizer's library is to be the first: such a program runs without ours, and that is said.
#[test]
fn sanitizers_come_first() {
    let Some(bench) = Bench::new() else { return };
    std::fs::write(bench.path("x.c"), "int main() { return 3; }").expect("written");
    let built = Command::new("gcc")
        .current_dir(bench.folder.path())
        .args(["-fsanitize=address", "x.c", "-o", "x"])
        .output();
    if !built.is_ok_and(|built| built.status.success()) {
        return;
    }
    for command in ["with", "trace"] {
        let done = bench.run(&[command, "--", "./x"], false);
        assert_eq!(done.status.code(), Some(3), "{}", err(&done));
        assert!(err(&done).contains("AddressSanitizer"), "{}", err(&done));
    }
}

/// What another dynamic linker starts cannot load the library: it runs without it, and that is said.
#[test]
fn other_dynamic_linkers_are_left_alone() {
    let Some(bench) = Bench::new() else { return };
    std::fs::write(bench.path("x.c"), "int main() { return 3; }").expect("written");
    let linker = bench.path("ld-musl-x86_64.so.1");
    std::os::unix::fs::symlink("/lib64/ld-linux-x86-64.so.2", &linker).expect("link");
    let built = Command::new("gcc")
        .current_dir(bench.folder.path())
        .arg(format!("-Wl,--dynamic-linker={}", linker.display()))
        .args(["x.c", "-o", "x"])
        .output();
    assert!(built.expect("gcc").status.success());
    for (name, runs) in [("script", "x"), ("script-of-script", "script")] {
        let line = format!("#!{}\n", bench.path(runs).display());
        std::fs::write(bench.path(name), line).expect("written");
        let mode: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(bench.path(name), mode).expect("set");
    }
    // A dynamic linker without a name of its own, as musl's.
    let start = "void _start(void) { asm(\"mov $60, %eax; mov $3, %edi; syscall\"); }";
    std::fs::write(bench.path("linker.c"), start).expect("written");
    let built = Command::new("gcc")
        .current_dir(bench.folder.path())
        .args([
            "-shared",
            "-fPIC",
            "-nostdlib",
            "-Wl,-e,_start",
            "linker.c",
            "-o",
            "linker",
        ])
        .output();
    assert!(built.expect("gcc").status.success());
    let programs = ["./x", "./script", "./script-of-script", "./linker"];
    for (command, program) in [("trace", "./x")]
        .into_iter()
        .chain(programs.map(|it| ("with", it)))
    {
        let done = bench.run(&[command, "--", program], false);
        assert_eq!(done.status.code(), Some(3), "{}", err(&done));
        assert!(
            err(&done).contains("another dynamic linker"),
            "{}",
            err(&done)
        );
    }
}

/// What the kernel takes for a variable is not enough for ours as well: the program runs without it, and that is said.
#[test]
fn long_lists_of_libraries_leave_no_room() {
    let Some(bench) = Bench::new() else { return };
    let length = (128 << 10) - "LD_PRELOAD=".len() - 1;
    let libraries = "libm.so.6 ".repeat(length / 10) + &" ".repeat(length % 10);
    let mut command = bench.command(&["with", "--", "sh", "-c", "echo ${#LD_PRELOAD}; exit 3"]);
    let done = command
        .env("LD_PRELOAD", libraries)
        .output()
        .expect("starts");
    assert_eq!(done.status.code(), Some(3), "{}", err(&done));
    assert_eq!(out(&done), format!("{length}\n"));
    assert!(err(&done).contains("does not fit in"), "{}", err(&done));
}

/// Whoever writes an export does not say how long its proof takes.
#[test]
fn proofs_end() {
    let (Some(bench), Some(toolkit)) = (Bench::new(), require_toolkit("in_place")) else {
        return;
    };
    let (winner, _) = Winner::read(&hostile(&bench, &toolkit)).expect("a winner");
    let endless = Winner {
        recipe: "schedule(search=1000000000)".into(),
        ..winner
    };
    std::fs::write(bench.path("x.winners"), endless.to_bytes()).expect("written");
    let imported = bench.run(&["db", "import", "x.winners"], false);
    assert!(imported.status.success(), "{}", err(&imported));
    let verified = bench.run(&["db", "verify"], true);
    assert_eq!(verified.status.code(), Some(5), "{}", err(&verified));
    assert!(err(&verified).contains("too long"), "{}", err(&verified));
}
