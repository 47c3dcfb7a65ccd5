//! The library in programs, with a driver of our own that computes on the host (`fake_driver.c`) and a program
//! that reaches it through every door (`host.c`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use libtest_mimic::{Arguments, Failed, Trial};
use warpwright_launch::{Extents, LaunchValues, Signature};
use warpwright_toolkit::{BuildCache, PtxasJob, Toolkit};
use warpwright_winners::lines::{
    Launches, Likeness, Note, Numbers, Occasion, Outcome, Planned, Searched, answer_file, is_ask,
    parse,
};
use warpwright_winners::store::write_whole;
use warpwright_winners::{Guard, LaunchClass, Shape, Standing, Store, Winner, identities};

/// Programs, driver and cubins, made once.
struct Workshop {
    dir: tempfile::TempDir,
    original: Vec<u8>,
    /// A module with variables, and two kernels: `weigh` uses them, `scale` does not.
    weigh: Vec<u8>,
}

const PTX: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";
const SCALE: &str = ".visible .entry scale(.param .u64 p, .param .u32 n) {
    .reg .b64 %d<2>; .reg .f32 %f<3>;
    ld.param.u64 %d0, [p]; ld.global.f32 %f0, [%d0]; fma.rn.f32 %f0, %f0, 0f40000000, 0f3F800000;
    st.global.f32 [%d0], %f0; ret;
}\n";

/// A kernel that the driver does nothing for, with all kinds of parameters, and a name in its module.
fn count(name: &str) -> Vec<u8> {
    let text = format!(
        "{PTX}.visible .global .u32 {name} = 1;
.visible .entry count(.param .u64 p, .param .u32 n, .param .align 4 .b8 s[16]) {{
    .reg .b64 %d; .reg .b32 %r;
    ld.param.u64 %d, [p]; ld.param.u32 %r, [n]; st.global.u32 [%d], %r;
    ld.param.u32 %r, [s+12]; st.global.u32 [%d+4], %r; ret;
}}\n"
    );
    compile(&text).expect("a toolkit")
}

/// Variables of `weigh`, as the driver knows it.
const VARIABLES: &str = ".visible .const .align 4 .f32 weights[8] = {0f3F800000};
.visible .global .align 4 .f32 bias = 0f40000000;
.visible .global .align 4 .u32 total;\n";
/// Factors in a kernel's code that the driver knows: fast, wrong results, wrong contents of a variable.
const FAST: &str = "4FFA7FA5";
const WRONG: &str = "4FFA7FA7";
const MISCOUNTS: &str = "4FFA7FA8";

/// A module with `weigh`, and a factor in it.
fn weigh(factor: &str, variables: &str) -> String {
    format!(
        "{PTX}{variables}.visible .entry weigh(.param .u64 p, .param .u32 n) {{
    .reg .b64 %d; .reg .f32 %f<5>; .reg .b32 %r<3>;
    ld.param.u64 %d, [p]; mov.u32 %r0, %tid.x; and.b32 %r0, %r0, 4; ld.global.f32 %f0, [%d];
    ld.const.f32 %f1, [weights+4]; ld.global.f32 %f2, [bias]; fma.rn.f32 %f0, %f0, %f1, %f2;
    fma.rn.f32 %f0, %f0, 0f{factor}, 0f3F800000; st.global.f32 [%d], %f0;
    atom.global.add.u32 %r1, [total], 1; ret;
}}\n"
    )
}

fn compile(ptx: &str) -> Option<Vec<u8>> {
    let toolkit = Toolkit::find(&Default::default()).ok()?;
    let job = PtxasJob::new(ptx, "sm_90");
    let build = BuildCache::standard().ptxas(&toolkit.ptxas().ok()?, &job);
    Some(build.expect("ptxas takes it").cubin.to_vec())
}

/// A cubin of the kernel with a name in it that the driver minds.
fn variant(name: &str) -> Vec<u8> {
    compile(&format!("{PTX}.visible .global .u32 {name} = 1;\n{SCALE}")).expect("a toolkit")
}

fn workshop() -> Option<&'static Workshop> {
    static WORKSHOP: OnceLock<Option<Workshop>> = OnceLock::new();
    WORKSHOP
        .get_or_init(|| {
            let original = compile(&format!("{PTX}{SCALE}"))?;
            let weigh = compile(&format!("{}{SCALE}", weigh("40400000", VARIABLES)))?;
            let dir = tempfile::tempdir().expect("folder");
            let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program");
            let cc = |args: &[&str], out: &str| {
                let status = Command::new("cc")
                    .args(["-w", "-O1", "-o"])
                    .arg(dir.path().join(out))
                    .current_dir(&sources)
                    .args(args)
                    .status();
                assert!(status.expect("cc").success());
            };
            cc(
                &[
                    "-shared",
                    "-fPIC",
                    "-Wl,-soname,libcuda.so.1",
                    "fake_driver.c",
                    "-ldl",
                    "-lpthread",
                ],
                "libcuda.so.1",
            );
            for out in ["compilers.so", "others.so"] {
                cc(&["-shared", "-fPIC", "fake_compilers.c"], out);
            }
            cc(&["host.c", "-ldl", "-lpthread"], "host");
            cc(&["fuzz.c", "-ldl", "-lpthread"], "fuzz");
            cc(&["few.c"], "few");
            cc(
                &["-shared", "-fPIC", "-DTOOL", "between.c", "-ldl"],
                "between.so",
            );
            cc(&["asks.c", "-ldl", "-lpthread"], "asks");
            cc(&["amid.c", "-ldl", "-lpthread", "-lm"], "amid");
            cc(
                &["-shared", "-fPIC", "-DWAITS", "amid.c", "-ldl"],
                "waits.so",
            );
            for (define, out) in [("HOOKS", "hooks.so"), ("EXPORTS", "exports.so")] {
                let define = format!("-D{define}");
                cc(&["-shared", "-fPIC", &define, "tool.c", "-ldl"], out);
            }
            let linked = dir.path().join("libcuda.so.1");
            cc(
                &[
                    "-DLINKED",
                    "host.c",
                    &linked.display().to_string(),
                    "-ldl",
                    "-lpthread",
                ],
                "host-linked",
            );
            // So that whoever is preloaded finds the driver behind itself.
            let linked = linked.display().to_string();
            cc(
                &[
                    "-DLINKED",
                    "-Wl,-z,now",
                    "amid.c",
                    &linked,
                    "-ldl",
                    "-lpthread",
                    "-lm",
                ],
                "amid-linked",
            );
            cc(
                &[
                    "between.c",
                    "-Wl,--no-as-needed",
                    &linked,
                    "-ldl",
                    "-lpthread",
                ],
                "between",
            );
            std::fs::write(dir.path().join("scale.cubin"), &original).expect("written");
            std::fs::write(dir.path().join("weigh.cubin"), &weigh).expect("written");
            Some(Workshop {
                dir,
                original,
                weigh,
            })
        })
        .as_ref()
}

/// The library as cargo builds it beside this test program.
fn library() -> PathBuf {
    let own = std::env::current_exe().expect("own path");
    let found = own.with_file_name("libwarpwright_inject.so");
    assert!(found.exists(), "{} is missing", found.display());
    found
}

/// One run of the program.
struct Run {
    output: Output,
    launches: String,
    log: String,
    folder: tempfile::TempDir,
}

impl Run {
    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Launches of images of this size.
    fn of_size(&self, size: usize) -> usize {
        let word = format!(" image {size} ");
        self.launches
            .lines()
            .filter(|line| line.contains(&word))
            .count()
    }

    fn notes(&self, kind: &str) -> Vec<Note> {
        let files = std::fs::read_dir(self.folder.path()).expect("folder");
        let mut all = Vec::new();
        for file in files {
            let path = file.expect("file").path();
            if path
                .file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with(kind))
            {
                let text = std::fs::read_to_string(path).expect("text");
                all.extend(parse(&text).expect("notes"));
            }
        }
        all
    }

    fn launched(&self) -> Vec<Launches> {
        let notes = self.notes("launches").into_iter();
        let found = notes.filter_map(|note| match note {
            Note::Launches(l) => Some(l),
            _ => None,
        });
        found.collect()
    }
}

struct Setup<'a> {
    mode: &'a str,
    door: &'a str,
    scenario: &'a str,
    store: Option<&'a Path>,
    cubin: Option<&'a Path>,
    variables: &'a [(&'a str, &'a str)],
    more: &'a [&'a str],
    /// The kernel that candidates are for.
    kernel: &'a str,
    /// Candidates for launches of 256 threads, by name, tried at two of them.
    plan: &'a [(&'a str, &'a [u8])],
    /// What a launch of it takes in the program, in nanoseconds; 0: not known.
    own_ns: u64,
    /// Are the launches that are tried nodes of graphs?
    in_graphs: bool,
    /// What the library is answered when it asks for more, one after the other: names, guards and cubins. Without any it
    /// is not told to ask.
    answers: &'a [&'a [(&'a str, &'a str, &'a [u8])]],
    /// The process that answers: it is killed when there are no more of them.
    builder: Option<u32>,
    /// The launches that are tried.
    among: &'a str,
    /// Preloaded as well, behind the library or before it.
    tool: &'a str,
    tool_is_first: bool,
    /// Words in front of the program.
    before: &'a [&'a str],
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Setup {
            mode: "",
            door: "dlsym",
            scenario: "plain",
            store: None,
            cubin: None,
            variables: &[],
            more: &[],
            kernel: "scale",
            plan: &[],
            own_ns: 0,
            in_graphs: false,
            answers: &[],
            builder: None,
            among: "always",
            tool: "",
            tool_is_first: false,
            before: &[],
        }
    }
}

fn run(setup: &Setup) -> Run {
    let workshop = workshop().expect("a toolkit");
    let folder = tempfile::tempdir().expect("folder");
    let host = if setup.door == "linked" {
        "host-linked"
    } else {
        "host"
    };
    let (launches, log) = (folder.path().join("fake.log"), folder.path().join("log"));
    let original = workshop.dir.path().join("scale.cubin");
    let targets = match setup.scenario {
        "fuzz" => {
            let kinds =
                (0..24).map(|i| (["weigh", "scale"][i % 2], 64 << (i / 2 % 3), 1 << (i / 6)));
            let of = |(symbol, threads, grid)| {
                let class = LaunchClass::new([grid, 1, 1], [threads, 1, 1], 0, [0; 3]);
                (winner_for(symbol, &[]), class.expect("a grid"))
            };
            kinds.map(of).collect()
        }
        _ => vec![(winner_for(setup.kernel, &[]), class())],
    };
    let mut plan = String::new();
    let pairs = targets.iter().enumerate();
    for ((number, (target, class)), (name, cubin)) in
        pairs.flat_map(|t| setup.plan.iter().map(move |c| (t, c)))
    {
        let file = format!("{number}-{name}.cubin");
        std::fs::write(folder.path().join(&file), cubin).expect("written");
        let planned = Planned {
            kernel: target.kernel.clone(),
            class: *class,
            when: Occasion {
                at: match setup.scenario {
                    "fuzz" => [0, 1],
                    "graph" => [1, 3],
                    _ => [3, 9],
                },
                own_ns: setup.own_ns,
                in_graphs: setup.in_graphs,
                among: among(setup),
            },
            candidate: (*name).into(),
            file,
            symbol: target.symbol.clone(),
            likeness: match name.split('-').next() {
                Some("loose") => Likeness::Rounded(Numbers::Single),
                Some("sums") => Likeness::Spread(Numbers::Single),
                _ => Likeness::Bytes,
            },
            guard: Guard::always(),
            shape: Shape::SAME,
        };
        plan.push_str(&planned.line());
    }
    if !setup.answers.is_empty() {
        let search = Searched {
            kernel: targets[0].0.kernel.clone(),
            class: targets[0].1,
            when: Occasion {
                at: [3, 9],
                own_ns: setup.own_ns,
                in_graphs: false,
                among: among(setup),
            },
            symbol: targets[0].0.symbol.clone(),
        };
        plan.push_str(&search.line());
    }
    std::fs::write(folder.path().join("plan"), plan).expect("written");
    let program = match setup.scenario {
        "fuzz" => workshop.dir.path().join("fuzz"),
        _ => workshop.dir.path().join(host),
    };
    let mut command = match setup.before {
        [first, others @ ..] => {
            let mut command = Command::new(first);
            command.args(others).arg(program);
            command
        }
        [] => Command::new(program),
    };
    if setup.scenario != "fuzz" {
        command.args([setup.door, setup.scenario]);
    }
    let (before, behind) = match setup.scenario {
        "fuzz" => (setup.more, &[][..]),
        _ => (&[][..], setup.more),
    };
    command
        .args(before)
        .arg(setup.cubin.unwrap_or(&original))
        .args(behind)
        .env("LD_LIBRARY_PATH", workshop.dir.path())
        .env("FAKE_LOG", &launches);
    let mut preloaded = Vec::new();
    if !setup.mode.is_empty() {
        preloaded.push(library());
        command
            .env("WARPWRIGHT", setup.mode)
            .env("WARPWRIGHT_DIR", folder.path())
            .env("WARPWRIGHT_LOG", &log)
            .env("WARPWRIGHT_DB", setup.store.unwrap_or(folder.path()));
    }
    if !setup.tool.is_empty() {
        preloaded.push(workshop.dir.path().join(setup.tool));
        command.env("TOOL_COUNT", folder.path().join("count"));
    }
    if setup.tool_is_first {
        preloaded.reverse();
    }
    let preloaded: Vec<String> = preloaded.iter().map(|p| p.display().to_string()).collect();
    if !preloaded.is_empty() {
        command.env("LD_PRELOAD", preloaded.join(":"));
    }
    command.envs(setup.variables.iter().copied());
    if let Some(builder) = setup.builder {
        command.env("WARPWRIGHT_BUILDER", builder.to_string());
    }
    let over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| answer(setup, &targets[0].0, folder.path(), &over));
        let output = command.output();
        over.store(true, Ordering::Relaxed);
        output.expect("starts")
    });
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    Run {
        output,
        launches: read(launches),
        log: read(log),
        folder,
    }
}

fn among(setup: &Setup) -> Guard {
    Guard::parse(setup.among, &Signature::default()).expect("a guard")
}

/// Answers what the library asks until the program has ended.
fn answer(setup: &Setup, target: &Winner, folder: &Path, over: &AtomicBool) {
    let mut answers = setup.answers.iter();
    let mut answered = Vec::new();
    let mut variables = setup.variables.iter();
    let is_there = !variables.any(|(name, _)| *name == "WARPWRIGHT_BUILDER");
    // Then the answer comes when there is no memory.
    let is_late = setup.scenario == "short-waits";
    while is_there && !over.load(Ordering::Relaxed) && !setup.answers.is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(1));
        let files = std::fs::read_dir(folder).expect("folder").flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        for name in names.filter(|name| is_ask(name)) {
            if answered.contains(&name) || is_late && !folder.join("full").exists() {
                continue;
            }
            answered.push(name.clone());
            let answer = answers.next();
            if let (None, Some(builder)) = (answer, setup.builder) {
                let killed = Command::new("kill")
                    .args(["-9", &builder.to_string()])
                    .status();
                assert!(killed.expect("kill").success());
                continue;
            }
            let mut lines = String::new();
            for (candidate, guard, cubin) in answer.into_iter().copied().flatten() {
                let file = format!("{candidate}.cubin");
                std::fs::write(folder.join(&file), cubin).expect("written");
                let guard = Guard::parse(guard, &Signature::default()).expect("a guard");
                let planned = Planned {
                    kernel: target.kernel.clone(),
                    class: class(),
                    when: Occasion {
                        at: [3, 9],
                        among: among(setup),
                        ..Occasion::default()
                    },
                    candidate: (*candidate).into(),
                    file,
                    symbol: target.symbol.clone(),
                    likeness: Likeness::Bytes,
                    guard,
                    shape: Shape::SAME,
                };
                lines.push_str(&planned.line());
            }
            write_whole(&folder.join(answer_file(&name)), lines.as_bytes()).expect("written");
        }
    }
}

fn winner(cubin: &[u8]) -> Winner {
    winner_for("scale", cubin)
}

/// The launches that most winners here are for.
fn class() -> LaunchClass {
    LaunchClass::new([4, 1, 1], [256, 1, 1], 0, [0; 3]).expect("a grid")
}

fn winner_for(symbol: &str, cubin: &[u8]) -> Winner {
    let workshop = workshop().expect("a toolkit");
    let module = match symbol {
        "scale" => &workshop.original,
        _ => &workshop.weigh,
    };
    let kernels = identities(module).expect("a cubin").into_iter();
    let kernel = kernels
        .into_iter()
        .find(|k| k.name == symbol)
        .expect("a kernel");
    Winner {
        kernel: kernel.digest,
        gpu: "Fake GPU".into(),
        guard: class().guard(),
        shape: Shape::SAME,
        symbol: symbol.into(),
        recipe: "by-hand".into(),
        proof: "none".into(),
        original_ns: 2,
        winner_ns: 1,
        driver: "0".into(),
        date: "2026-11-22".into(),
        standing: Standing::Measured,
        cubin: cubin.to_vec(),
    }
}

/// A store with one winner, and the size of its cubin.
fn store(cubin: &[u8]) -> (tempfile::TempDir, usize) {
    let folder = tempfile::tempdir().expect("folder");
    Store::at(folder.path())
        .put(&winner(cubin))
        .expect("written");
    (folder, cubin.len())
}

const DOORS: [&str; 6] = ["dlsym", "proc1", "proc2", "thread", "local", "linked"];

fn winners_are_launched_through_every_door() {
    let (store, size) = store(&variant("fake_fast"));
    for door in DOORS {
        let plain = run(&Setup {
            door,
            ..Setup::default()
        });
        assert!(plain.output.status.success(), "{door}: {}", plain.stdout());
        let with = run(&Setup {
            mode: "with",
            door,
            store: Some(store.path()),
            ..Setup::default()
        });
        assert_eq!(plain.stdout(), with.stdout(), "{door}");
        assert_eq!(
            with.of_size(size),
            2,
            "{door}: {}\n{}",
            with.launches,
            with.log
        );
        assert_eq!(plain.of_size(size), 0);
        let flavours = |run: &Run| -> Vec<String> {
            let lines = run.launches.lines();
            lines
                .filter_map(|l| Some(l.split(" shared ").nth(1)?.to_owned()))
                .collect()
        };
        assert_eq!(flavours(&plain), flavours(&with), "{door}");
        assert!(with.log.contains("is replaced: by-hand"), "{}", with.log);
    }
}

fn winners_are_launched_in_every_way() {
    let (store, size) = store(&variant("fake_fast"));
    let cases = [
        ("library", 2),
        ("file", 2),
        ("enumerate", 2),
        ("attributes", 4),
        ("unload", 5),
        ("graph", 6),
        ("capture", 12),
        ("threads", 200),
        ("contexts", 2),
        ("devices", 2),
        ("cooperative", 5),
        // The winner is for launches without clusters.
        ("cluster", 2),
        // A node that gets a cluster behind its parameters: it is made with the winner once, in the second case twice.
        ("node-cluster", 1),
        ("node-copy", 2),
        ("node-preferred", 1),
        // The first launch is one in clusters, by what was set on the function.
        ("required-cluster", 3),
        ("preferred-cluster", 2),
        ("policy", 2),
        ("extra", 5),
        ("link", 2),
        ("churn", 400),
        ("reload", 2020),
    ];
    for (scenario, launches) in cases {
        for door in ["dlsym", "proc2"] {
            let plain = run(&Setup {
                door,
                scenario,
                ..Setup::default()
            });
            let with = run(&Setup {
                mode: "with",
                door,
                scenario,
                store: Some(store.path()),
                ..Setup::default()
            });
            assert!(
                plain.output.status.success(),
                "{scenario}: {}",
                plain.stdout()
            );
            assert_eq!(plain.stdout(), with.stdout(), "{scenario}: {}", with.log);
            assert_eq!(
                with.of_size(size),
                launches,
                "{scenario}: {}\n{}",
                with.launches,
                with.log
            );
        }
    }
}

/// A winner for clusters of two blocks is launched in such clusters, and nowhere else.
fn clusters_are_classes_of_their_own() {
    let folder = tempfile::tempdir().expect("folder");
    let mut clustered = winner(&variant("fake_fast"));
    clustered.guard = LaunchClass {
        cluster: [2, 1, 1],
        ..class()
    }
    .guard();
    Store::at(folder.path()).put(&clustered).expect("written");
    let setup = |mode| Setup {
        mode,
        scenario: "cluster",
        store: Some(folder.path()),
        ..Setup::default()
    };
    let (plain, with) = (run(&setup("")), run(&setup("with")));
    assert_eq!(plain.stdout(), with.stdout(), "{}", with.log);
    let size = clustered.cubin.len();
    assert_eq!(with.of_size(size), 3, "{}\n{}", with.launches, with.log);
}

/// What the program sets on its function, the winner has at the next launch.
fn attributes_follow() {
    let (store, size) = store(&variant("fake_fast"));
    let with = run(&Setup {
        mode: "with",
        scenario: "attributes",
        store: Some(store.path()),
        ..Setup::default()
    });
    let most: Vec<&str> = with
        .launches
        .lines()
        .filter(|l| l.contains(&format!(" image {size} ")))
        .filter_map(|l| l.split(" most ").nth(1))
        .collect();
    let most: Vec<&str> = most.iter().filter_map(|l| l.split(' ').next()).collect();
    assert_eq!(most, ["0", "70000", "90000", "90000"]);
    let with = run(&Setup {
        mode: "with",
        scenario: "policy",
        store: Some(store.path()),
        ..Setup::default()
    });
    assert!(with.of_size(size) > 0, "{}", with.log);
    let own = format!(" image {size} ");
    let mut launches = with.launches.lines().filter(|l| l.contains(&own));
    assert!(
        launches.all(|l| l.ends_with(" policy 2")),
        "{}",
        with.launches
    );
}

/// A winner for clusters is launched where the function requires them, or a node has them, as an attribute.
fn clusters_come_from_functions_and_nodes() {
    let folder = tempfile::tempdir().expect("folder");
    let mut clustered = winner(&variant("fake_fast"));
    let class = LaunchClass {
        cluster: [2, 1, 1],
        ..class()
    };
    clustered.guard = class.guard();
    Store::at(folder.path()).put(&clustered).expect("written");
    // The node is set once more after it has its cluster, then in the executable graph, where clusters may be others.
    for (scenario, launches) in [("required-cluster", 1), ("node-cluster", 4)] {
        let setup = |mode| Setup {
            mode,
            scenario,
            store: Some(folder.path()),
            ..Setup::default()
        };
        let (plain, with) = (run(&setup("")), run(&setup("with")));
        assert_eq!(plain.stdout(), with.stdout(), "{scenario}: {}", with.log);
        let size = clustered.cubin.len();
        assert_eq!(
            with.of_size(size),
            launches,
            "{scenario}: {}\n{}",
            with.launches,
            with.log
        );
        let own = format!(" image {size} ");
        let mut lines = with.launches.lines().filter(|l| l.contains(&own));
        assert!(
            lines.all(|l| l.contains(" cluster 2 ")),
            "{}",
            with.launches
        );
    }
}

fn threads_are_cancelled_where_they_would_be() {
    let (store, _) = store(&variant("fake_fast"));
    // To write a log is where threads are cancelled: with one the driver is such a place, and without none is.
    for (log, result) in [("", "3\n"), ("cancelled.log", "-1\n")] {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join(log);
        let log = if log.is_empty() {
            ""
        } else {
            path.to_str().expect("a path")
        };
        let variables = [("FAKE_LOG", log)];
        let setup = |mode| Setup {
            mode,
            scenario: "cancelled",
            store: Some(store.path()),
            variables: &variables,
            ..Setup::default()
        };
        let plain = run(&setup(""));
        assert!(plain.stdout().starts_with(result), "{}", plain.stdout());
        for mode in ["with", "trace"] {
            let with = run(&setup(mode));
            assert_eq!(with.output.status, plain.output.status, "{mode}");
            assert_eq!(with.stdout(), plain.stdout(), "{mode}: {}", with.log);
        }
    }
}

/// A thread with hardly any stack, or on one that the program made, loads its module as it does without the library, and
/// others get their winners.
fn little_stack_ends_nobody() {
    let (store, size) = store(&variant("fake_fast"));
    for scenario in ["narrow", "coroutine", "coroutine-thread"] {
        let setup = |mode| Setup {
            mode,
            scenario,
            store: Some(store.path()),
            ..Setup::default()
        };
        let plain = run(&setup(""));
        assert!(plain.stdout().starts_with("3\n"), "{}", plain.stdout());
        for mode in ["with", "trace", "trace+with"] {
            let with = run(&setup(mode));
            let what = format!("{scenario} {mode}: {}", with.log);
            assert_eq!(with.output.status, plain.output.status, "{what}");
            assert_eq!(with.stdout(), plain.stdout(), "{what}");
            assert!(with.log.contains("has little stack"), "{what}");
            let used = if mode == "trace" { 0 } else { 2 };
            assert_eq!(with.of_size(size), used, "{what}");
        }
    }
}

fn forks_are_survived() {
    let (store, size) = store(&variant("fake_fast"));
    for mode in ["with", "trace"] {
        for scenario in ["fork-first", "fork-later"] {
            let plain = run(&Setup {
                scenario,
                ..Setup::default()
            });
            let with = run(&Setup {
                mode,
                scenario,
                store: Some(store.path()),
                ..Setup::default()
            });
            assert!(
                plain.stdout().contains("child 0"),
                "{scenario}: {}",
                plain.stdout()
            );
            assert_eq!(
                plain.stdout(),
                with.stdout(),
                "{mode} {scenario}: {}",
                with.log
            );
            if mode == "with" && scenario == "fork-first" {
                assert_eq!(with.of_size(size), 4);
            }
        }
    }
}

/// On any doubt the original runs, and the log says why.
fn doubts_pass_through() {
    let (refused, size) = store(&variant("fake_refused"));
    let with = run(&Setup {
        mode: "with",
        store: Some(refused.path()),
        variables: &[("HOST_REPEAT", "5")],
        ..Setup::default()
    });
    let plain = run(&Setup {
        variables: &[("HOST_REPEAT", "5")],
        ..Setup::default()
    });
    assert_eq!(plain.stdout(), with.stdout());
    assert_eq!(with.of_size(size), 0);
    assert!(
        with.log.contains("is not replaced any more"),
        "{}",
        with.log
    );

    let (good, size) = store(&variant("fake_fast"));
    let another = tempfile::tempdir().expect("folder");
    let mut other = winner(&variant("fake_fast"));
    other.gpu = "Another GPU".into();
    Store::at(another.path()).put(&other).expect("written");
    let damaged = tempfile::tempdir().expect("folder");
    let path = Store::at(damaged.path())
        .put(&winner(&variant("fake_fast")))
        .expect("written");
    let bytes = std::fs::read(&path).expect("read");
    std::fs::write(&path, &bytes[..bytes.len() - 100]).expect("written");
    let no_cubin = store(b"\x7fELF, but that is all");
    let no_kernel =
        store(&compile(&format!("{PTX}.visible .entry other() {{ ret; }}")).expect("a toolkit"));
    let missing = another.path().join("missing");
    type Variables = &'static [(&'static str, &'static str)];
    let none: Variables = &[];
    let cases: [(&Path, Variables, &str); 8] = [
        (another.path(), none, "for another GPU"),
        (damaged.path(), none, "damaged"),
        (no_cubin.0.path(), none, "is no cubin"),
        (
            no_kernel.0.path(),
            none,
            "does not have the kernel `scale` once",
        ),
        (&missing, none, "the store is empty"),
        (
            good.path(),
            &[("FAKE_DEVICES", "2"), ("FAKE_SECOND", "Other")],
            "several kinds",
        ),
        (
            good.path(),
            &[("FAKE_REGISTERS", "200")],
            "other code than was seen",
        ),
        (
            good.path(),
            &[("CUDA_FORCE_PTX_JIT", "1")],
            "CUDA_FORCE_PTX_JIT",
        ),
    ];
    let plain = run(&Setup::default());
    for (store, variables, reason) in cases {
        let with = run(&Setup {
            mode: "with",
            store: Some(store),
            variables,
            ..Setup::default()
        });
        assert_eq!(plain.stdout(), with.stdout(), "{reason}");
        assert_eq!(with.of_size(size), 0, "{reason}: {}", with.log);
        assert!(with.log.contains(reason), "{reason}: {}", with.log);
    }
}

/// A driver in which a name means a signature that we do not know: it is not touched.
fn later_signatures_are_not_touched() {
    let (store, _) = store(&variant("fake_fast"));
    let variables = [("FAKE_VERSION_2", "1"), ("HOST_CUDA", "13010")];
    let setup = |mode| Setup {
        mode,
        door: "proc2",
        store: Some(store.path()),
        variables: &variables,
        ..Setup::default()
    };
    let (plain, with) = (run(&setup("")), run(&setup("with")));
    assert!(plain.stdout().contains("error 999"), "{}", plain.stdout());
    assert_eq!(plain.stdout(), with.stdout());
}

fn other_images_are_let_through() {
    for mode in ["with", "trace"] {
        let (store, _) = store(&variant("fake_fast"));
        let with = run(&Setup {
            mode,
            scenario: "ptx",
            store: Some(store.path()),
            ..Setup::default()
        });
        assert_eq!(with.stdout(), "loaded\n");
        let why = "compiles itself: the driver does not compile its PTX once more";
        assert!(with.log.contains(why), "{}", with.log);
    }
}

fn fat_binaries_are_read() {
    let workshop = workshop().expect("a toolkit");
    let path = workshop.dir.path().join("scale.fatbin");
    std::fs::write(&path, fat_binary(&workshop.original)).expect("written");
    let (store, size) = store(&variant("fake_fast"));
    let with = run(&Setup {
        mode: "with",
        store: Some(store.path()),
        cubin: Some(&path),
        ..Setup::default()
    });
    assert!(with.output.status.success(), "{}", with.stdout());
    assert_eq!(with.of_size(size), 2, "{}", with.log);
}

/// A fat binary with one cubin.
fn fat_binary(cubin: &[u8]) -> Vec<u8> {
    let padded = cubin.len().next_multiple_of(8);
    let mut file = 0xba55_ed50u32.to_le_bytes().to_vec();
    file.extend([1, 0, 16, 0]);
    file.extend((64 + padded as u64).to_le_bytes());
    let mut header = [0u8; 64];
    header[0] = 2;
    header[2..4].copy_from_slice(&0x101u16.to_le_bytes());
    header[4] = 64;
    header[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
    header[28] = 90;
    header[40] = 0x11;
    file.extend(header);
    file.extend(cubin);
    file.resize(16 + 64 + padded, 0);
    file
}

/// Where the driver was told to take the PTX of a fat binary, its cubin's winner is none of what runs.
fn options_that_choose_among_code_are_respected() {
    let workshop = workshop().expect("a toolkit");
    let path = workshop.dir.path().join("both.fatbin");
    std::fs::write(&path, fat_binary(&workshop.original)).expect("written");
    let (store, size) = store(&variant("fake_fast"));
    for scenario in ["prefer-ptx", "prefer-ptx-library"] {
        let setup = |mode| Setup {
            mode,
            scenario,
            store: Some(store.path()),
            cubin: Some(&path),
            ..Setup::default()
        };
        let (plain, with) = (run(&setup("")), run(&setup("with")));
        assert!(plain.output.status.success(), "{}", plain.stdout());
        assert_eq!(plain.stdout(), with.stdout());
        assert_eq!(
            (with.of_size(1), with.of_size(size)),
            (3, 0),
            "{scenario}: {}",
            with.log
        );
        let why = "options that choose among its code";
        assert!(with.log.contains(why), "{scenario}: {}", with.log);
    }
}

fn launches_are_counted_and_timed() {
    for door in DOORS {
        let variables = [("HOST_REPEAT", "10")];
        let plain = run(&Setup {
            door,
            variables: &variables,
            ..Setup::default()
        });
        let trace = run(&Setup {
            mode: "trace",
            door,
            variables: &variables,
            ..Setup::default()
        });
        assert_eq!(plain.stdout(), trace.stdout(), "{door}");
        assert_eq!(plain.launches, trace.launches, "{door}");
        let found = trace.launched();
        let of = |threads: u32| {
            found
                .iter()
                .find(|l| l.class.block[0] == threads)
                .expect("launched")
        };
        let (large, small) = (of(256), of(128));
        assert_eq!(
            (large.count, large.timed, large.total_ns),
            (20, 20, 2_000_000),
            "{door}"
        );
        assert_eq!(
            (small.count, small.total_ns, small.resident),
            (10, 1_000_000, 16),
            "{door}"
        );
        assert_eq!(large.kernel, "scale");
        let kept = std::fs::read(trace.folder.path().join(format!("{}.cubin", large.module)));
        assert_eq!(kept.expect("kept"), workshop().expect("a toolkit").original);
        let has_gpu = |n: &Note| *n == Note::Gpu(90, 13000, "Fake GPU".into());
        assert!(trace.notes("launches").iter().any(has_gpu));
    }
}

/// The PTX beside the code in a trace of the program that compiles it while it runs: by whom, an option, a second input.
fn kept_ptx(by: &str, option: &str, second: &str) -> Option<String> {
    let workshop = workshop().expect("a toolkit");
    let cubin = workshop
        .dir
        .path()
        .join("scale.cubin")
        .display()
        .to_string();
    let ptx = format!("{PTX}{SCALE}");
    let variables = [("FAKE_CUBIN", cubin.as_str()), ("FAKE_PTX", &ptx)];
    let setup = |mode| Setup {
        mode,
        scenario: "compiled",
        variables: &variables,
        ..Setup::default()
    };
    let more = [by, "compilers.so", option, &ptx, second];
    let (plain, trace) = (
        run(&Setup {
            more: &more,
            ..setup("")
        }),
        run(&Setup {
            more: &more,
            ..setup("trace")
        }),
    );
    assert_eq!(plain.stdout(), trace.stdout(), "{by}");
    assert_eq!(plain.output.status.code(), Some(0), "{}", plain.stdout());
    let module = trace.launched()[0].module.clone();
    let of = |extension: &str| trace.folder.path().join(format!("{module}.{extension}"));
    assert_eq!(std::fs::read(of("cubin")).expect("kept"), workshop.original);
    std::fs::read_to_string(of("ptx")).ok()
}

fn ptx_of_compilers_is_kept() {
    let ptx = Some(format!("{PTX}{SCALE}"));
    for by in ["nvrtc", "nvjitlink", "driver"] {
        assert_eq!(kept_ptx(by, "", ""), ptx, "{by}");
    }
    // What the code does not follow from alone.
    assert_eq!(kept_ptx("nvrtc", "-Xptxas=--fmad=false", ""), None);
    assert_eq!(kept_ptx("nvrtc", "--gpu-architecture=sm_90", ""), ptx);
    assert_eq!(kept_ptx("nvjitlink", "-fma=0", ""), None);
    for by in ["nvjitlink", "driver"] {
        assert_eq!(kept_ptx(by, "", "another"), None, "{by}");
    }
}

fn graphs_are_counted_and_timed() {
    for (scenario, kernels) in [("graph", 1), ("capture", 2)] {
        let plain = run(&Setup {
            scenario,
            ..Setup::default()
        });
        let trace = run(&Setup {
            mode: "trace",
            scenario,
            ..Setup::default()
        });
        assert_eq!(plain.stdout(), trace.stdout());
        let found = trace.launched();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].count, found[0].in_graphs),
            (0, 5 * kernels),
            "{scenario}"
        );
        assert_eq!(found[0].graph_ns, 500_000 * kernels, "{scenario}");
    }
}

fn programs_without_the_driver_see_nothing() {
    for mode in ["with", "trace"] {
        let output = Command::new("sh")
            .args(["-c", "echo here; exit 3"])
            .env("LD_PRELOAD", library())
            .env("WARPWRIGHT", mode)
            .env("WARPWRIGHT_DIR", "/nonexistent")
            .output()
            .expect("starts");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (&output.stdout[..], &output.stderr[..]),
            (&b"here\n"[..], &b""[..])
        );
    }
}

/// A run with candidates, and the same without the library.
fn tried(plan: &[(&str, &[u8])], more: &[(&str, &str)]) -> (Run, Run) {
    let variables = [&[("HOST_REPEAT", "10")], more].concat();
    let plain = run(&Setup {
        variables: &variables,
        ..Setup::default()
    });
    let mode = "try";
    let tried = run(&Setup {
        mode,
        plan,
        variables: &variables,
        ..Setup::default()
    });
    (plain, tried)
}

fn trials(run: &Run) -> Vec<warpwright_winners::lines::Trial> {
    let notes = run.notes("trials").into_iter();
    let found = notes.filter_map(|note| match note {
        Note::Trial(trial) => Some(trial),
        _ => None,
    });
    found.collect()
}

fn candidates_are_tried_and_change_nothing() {
    let [fast, slow, wrong, refused] =
        ["fake_fast", "fake_slow", "fake_wrong", "fake_refused"].map(variant);
    let plan: [(&str, &[u8]); 4] = [
        ("slow", &slow),
        ("wrong", &wrong),
        ("fast", &fast),
        ("refused", &refused),
    ];
    let (plain, tried) = tried(&plan, &[]);
    assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
    assert!(tried.output.status.success());
    let all = trials(&tried);
    let of = |name: &str, set: u32| {
        let mut found = all.iter().filter(|t| t.candidate == name && t.set == set);
        found.next().map(|t| t.outcome.clone())
    };
    let all_are = |outcome: Option<Outcome>, ns: u64| match outcome {
        Some(Outcome::Same(times)) => times.len() >= 7 && times.iter().all(|t| t.abs_diff(ns) < 10),
        _ => false,
    };
    for set in [1, 2] {
        assert!(all_are(of("original", set), 100_000), "{all:?}");
        assert!(all_are(of("fast", set), 50_000), "{all:?}");
    }
    // What is much slower is not timed to the end.
    let is_slow = |times: &[u64]| times.len() < 7 && times.iter().all(|t| t.abs_diff(200_000) < 10);
    assert!(matches!(of("slow", 1), Some(Outcome::Same(times)) if is_slow(&times)));
    assert!(of("slow", 2).is_none());
    assert!(
        matches!(of("wrong", 1), Some(Outcome::Differs(1..=4))),
        "{all:?}"
    );
    assert_eq!(of("refused", 1), Some(Outcome::Failed(1)));
    let marks = std::fs::read_dir(tried.folder.path()).expect("folder");
    let marks = marks.filter(|f| {
        let name = f.as_ref().expect("file").file_name();
        name.to_string_lossy().starts_with("in-flight")
    });
    assert_eq!(marks.count(), 0);
}

/// Trials find the caches as the program's launches find them: its own time tells.
fn caches_are_those_of_the_program() {
    let fast = variant("fake_fast");
    let original = |own_ns| {
        let tried = run(&Setup {
            mode: "try",
            plan: &[("fast", &fast)],
            own_ns,
            variables: &[("HOST_REPEAT", "12"), ("FAKE_CACHES", "1")],
            ..Setup::default()
        });
        let all = trials(&tried);
        let mut own = all.iter().filter(|t| t.candidate == "original");
        match own.next().map(|t| &t.outcome) {
            Some(Outcome::Same(times)) => times[0].next_multiple_of(10),
            _ => panic!("{}", tried.log),
        }
    };
    assert_eq!([0, 83_000, 97_000].map(original), [80_000, 80_000, 100_000]);
}

/// What the library asks for while the program waits is tried like what it was told at the start; a version is not tried
/// at launches that it is not for.
fn searches_wait_for_answers() {
    let [fast, slow, wrong] = ["fake_fast", "fake_slow", "fake_wrong"].map(variant);
    let setup = Setup {
        mode: "try",
        plan: &[("slow", &slow)],
        answers: &[
            &[
                ("wrong", "always", &wrong),
                ("elsewhere", "param1:4=999", &fast),
            ],
            &[("here", "param1:4=1000; grid=4,1,1", &fast)],
        ],
        variables: &[("HOST_REPEAT", "12")],
        ..Setup::default()
    };
    let plain = run(&Setup {
        variables: setup.variables,
        ..Setup::default()
    });
    let tried = run(&setup);
    assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
    let all = trials(&tried);
    let of = |name: &str| {
        let found = all.iter().filter(|t| t.candidate == name);
        found
            .map(|t| (t.set, t.round, &t.outcome))
            .collect::<Vec<_>>()
    };
    assert!(matches!(of("slow")[..], [(1, 0, Outcome::Same(_))]));
    assert!(
        matches!(of("wrong")[..], [(1, 1, Outcome::Differs(_))]),
        "{all:?} {}",
        tried.log
    );
    let elsewhere = of("elsewhere");
    assert!(
        elsewhere
            .iter()
            .all(|(_, _, outcome)| **outcome == Outcome::Elsewhere)
    );
    assert_eq!(elsewhere[0].1, 1);
    let here = of("here");
    assert!(
        matches!(
            here[..],
            [(1, 2, Outcome::Same(_)), (2, 0, Outcome::Same(_))]
        ),
        "{all:?}"
    );
}

/// The process that would answer is gone: the program goes on at once.
fn searches_end_where_nobody_answers() {
    let fast = variant("fake_fast");
    // Killed, and its parent does not look; then it does.
    let mut killed = Command::new("true").spawn().expect("starts");
    let gone = killed.id().to_string();
    let never: [&[(&str, &str, &[u8])]; 1] = [&[]];
    let setup = Setup {
        mode: "try",
        plan: &[("fast", &fast)],
        answers: &never,
        variables: &[("HOST_REPEAT", "12"), ("WARPWRIGHT_BUILDER", &gone)],
        ..Setup::default()
    };
    for _ in 0..2 {
        let begun = std::time::Instant::now();
        let tried = run(&setup);
        assert!(tried.output.status.success());
        assert!(begun.elapsed().as_secs() < 30);
        assert!(
            trials(&tried)
                .iter()
                .any(|t| t.candidate == "fast" && t.set == 2)
        );
        killed.wait().expect("ends");
    }
}

/// The same where it is killed while the program waits for its second answer: what was found until then is judged.
fn builders_die_in_the_middle() {
    let [fast, slow] = ["fake_fast", "fake_slow"].map(variant);
    let mut builder = Command::new("sleep").arg("1000").spawn().expect("starts");
    let variables = &[("HOST_REPEAT", "12")];
    let begun = std::time::Instant::now();
    let tried = run(&Setup {
        mode: "try",
        plan: &[("slow", &slow)],
        answers: &[&[("found", "always", &fast)]],
        builder: Some(builder.id()),
        variables,
        ..Setup::default()
    });
    let plain = run(&Setup {
        variables,
        ..Setup::default()
    });
    assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
    assert!(tried.output.status.success() && begun.elapsed().as_secs() < 30);
    assert!(tried.log.contains("nobody answers"), "{}", tried.log);
    let is_timed = |set| {
        let mut all = trials(&tried).into_iter();
        all.any(|t| t.candidate == "found" && t.set == set && matches!(t.outcome, Outcome::Same(_)))
    };
    assert!(is_timed(1) && is_timed(2), "{}", tried.log);
    builder.wait().expect("ends");
}

/// The device is full when versions are loaded that the program waits for: they are out, and it goes on as it is.
fn memory_is_full_while_the_program_waits() {
    let [fast, other] = ["fake_fast", "fake_fast_too"].map(variant);
    let answers: [&[(&str, &str, &[u8])]; 2] = [
        &[("first", "always", &fast)],
        &[("second", "always", &other)],
    ];
    let run_in = |mode, room| {
        run(&Setup {
            mode,
            answers: &answers,
            variables: &[("HOST_REPEAT", "12"), ("FAKE_ROOM", room)],
            ..Setup::default()
        })
    };
    let plain = run_in("", "9");
    let mut failed = 0;
    for room in ["2", "3", "4", "9"] {
        let tried = run_in("try", room);
        assert_eq!(plain.stdout(), tried.stdout(), "room {room}: {}", tried.log);
        assert!(tried.output.status.success(), "room {room}: {}", tried.log);
        let all = trials(&tried);
        failed += all
            .iter()
            .filter(|t| t.outcome == Outcome::Failed(2))
            .count();
        let is_right = |t: &warpwright_winners::lines::Trial| {
            matches!(t.outcome, Outcome::Same(_) | Outcome::Failed(2))
        };
        assert!(all.iter().all(is_right), "room {room}: {all:?}");
        if room == "9" {
            assert!(
                all.iter().any(|t| t.candidate == "second" && t.set == 2),
                "{all:?}"
            );
        }
    }
    assert!(failed > 0);
}

/// The host has no memory left when the program starts, or when a version is loaded that it waits for: it goes on as it is, and
/// nothing is half written.
fn little_memory_while_the_program_waits() {
    let fast = variant("fake_fast");
    let large = [&fast[..], &[0; 4 << 20]].concat();
    let mut tried = 0;
    for scenario in ["short", "short-later"] {
        for room in [
            0,
            200_000,
            1_000_000,
            3_000_000,
            9_000_000,
            13_000_000,
            20_000_000,
            45_000_000,
            400_000_000,
        ] {
            let room = room.to_string();
            let more = [room.as_str()];
            let run_in = |mode| {
                run(&Setup {
                    mode,
                    scenario,
                    more: &more,
                    plan: &[("planned", &fast)],
                    answers: &[
                        &[("large", "always", &large)],
                        &[("small", "always", &fast)],
                    ],
                    variables: &[("HOST_REPEAT", "12")],
                    ..Setup::default()
                })
            };
            let (plain, with) = (run_in(""), run_in("try"));
            let what = format!("{scenario} {room}: {}", with.log);
            assert!(plain.output.status.success(), "{}", plain.stdout());
            assert_eq!(with.output.status, plain.output.status, "{what}");
            assert_eq!(with.stdout(), plain.stdout(), "{what}");
            // What there is can be read.
            tried += trials(&with).len();
        }
    }
    assert!(tried > 0);
}

/// Another thread takes all memory of the host while the program waits for an answer.
fn memory_is_taken_while_the_program_waits() {
    let fast = variant("fake_fast");
    let run_in = |mode| {
        run(&Setup {
            mode,
            scenario: "short-waits",
            plan: &[("planned", &fast)],
            answers: &[&[("late", "always", &fast)]],
            variables: &[("HOST_REPEAT", "12"), ("MALLOC_ARENA_MAX", "1")],
            ..Setup::default()
        })
    };
    let (plain, with) = (run_in(""), run_in("try"));
    assert!(plain.output.status.success(), "{}", plain.stdout());
    assert_eq!(with.output.status, plain.output.status, "{}", with.log);
    assert_eq!(with.stdout(), plain.stdout(), "{}", with.log);
    assert!(with.log.contains("little memory"), "{}", with.log);
    let files = std::fs::read_dir(with.folder.path()).expect("folder");
    let names = files.map(|file| file.expect("a file").file_name());
    let names: Vec<String> = names.map(|name| name.to_string_lossy().into()).collect();
    assert!(names.iter().any(|name| name == "full"), "{names:?}");
    // The notes that there are can be read, and the version that came too late is in none.
    let all = trials(&with);
    assert!(all.iter().any(|t| t.candidate == "planned"), "{all:?}");
    assert!(all.iter().all(|t| t.candidate != "late"), "{all:?}");
}

/// Versions for launches with a value are tried at those alone; where there are none of them, nothing is.
fn launches_with_a_value_are_tried_by_themselves() {
    let fast = variant("fake_fast");
    let variables = &[("HOST_REPEAT", "12")];
    let tried_among = |among| {
        let run_in = |mode| {
            run(&Setup {
                mode,
                scenario: "sizes",
                more: &["1000,600x2,9+"],
                plan: &[("fast", &fast)],
                among,
                variables,
                ..Setup::default()
            })
        };
        let (plain, tried) = (run_in(""), run_in("try"));
        assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
        assert!(tried.output.status.success(), "{}", tried.log);
        trials(&tried)
    };
    let all = tried_among("param1:4=600");
    let is_timed = |set| all.iter().any(|t| t.candidate == "fast" && t.set == set);
    assert!(is_timed(1) && is_timed(2), "{all:?}");
    assert!(
        all.iter().all(|t| t.among.to_string() == "param1:4=600"),
        "{all:?}"
    );
    assert_eq!(tried_among("param1:4=601"), []);
}

/// Results that differ in their last bits: only where the plan says so, and only numbers.
fn rounding_is_let_through_where_it_is_allowed() {
    let (rounds, wrong) = (variant("fake_rounds"), variant("fake_wrong"));
    let plan: [(&str, &[u8]); 3] = [
        ("strict", &rounds),
        ("loose", &rounds),
        ("loose-wrong", &wrong),
    ];
    let (plain, tried) = tried(&plan, &[]);
    assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
    let all = trials(&tried);
    let of = |name: &str| {
        let mut found = all.iter().filter(|t| t.candidate == name && t.set == 1);
        found.next().map(|t| t.outcome.clone())
    };
    assert!(matches!(of("strict"), Some(Outcome::Differs(_))), "{all:?}");
    assert!(matches!(of("loose"), Some(Outcome::Same(_))), "{all:?}");
    assert!(
        matches!(of("loose-wrong"), Some(Outcome::Differs(_))),
        "{all:?}"
    );
}

/// Two runs of a kernel that adds numbers in no fixed order differ: a version that is proved may differ as much.
fn sums_in_no_fixed_order_are_tried() {
    let (fast, wrong) = (variant("fake_fast"), variant("fake_wrong"));
    let plan: [(&str, &[u8]); 3] = [("strict", &fast), ("sums", &fast), ("sums-wrong", &wrong)];
    let unsteady = [("FAKE_UNSTEADY", "1")];
    let (_, run) = tried(&plan, &unsteady);
    let all = trials(&run);
    let of = |name: &str| {
        let mut found = all.iter().filter(|t| t.candidate == name && t.set == 1);
        found.next().map(|t| t.outcome.clone())
    };
    assert!(matches!(of("strict"), Some(Outcome::Differs(_))), "{all:?}");
    assert!(matches!(of("sums"), Some(Outcome::Same(_))), "{all:?}");
    assert!(
        matches!(of("sums-wrong"), Some(Outcome::Differs(_))),
        "{all:?}"
    );
    // Nothing is tried for a kernel of which nobody knows why it differs.
    let (_, run) = tried(&plan[..1], &unsteady);
    assert!(
        is_refused(&run, "does not write the same bytes twice"),
        "{}",
        run.log
    );
}

/// A candidate after which the device is lost takes the program down, and its name is found.
fn culprits_are_named() {
    for name in ["fake_faults", "fake_hangs"] {
        let bad = variant(name);
        let (_, tried) = tried(&[("bad", &bad)], &[]);
        assert!(!tried.output.status.success(), "{name}");
        let text = mark(&tried);
        assert!(text.trim_end().ends_with(" bad"), "{text}");
    }
}

fn what_cannot_be_saved_is_refused() {
    let fast = variant("fake_fast");
    let (plain, tried) = tried(&[("fast", &fast)], &[("FAKE_MEMORY", "6000")]);
    assert_eq!(plain.stdout(), tried.stdout());
    assert!(trials(&tried).is_empty());
    let refused = tried.notes("trials");
    let is_named = |n: &Note| matches!(n, Note::Refused(_, why) if why.contains("cannot be saved"));
    assert!(refused.iter().any(is_named), "{refused:?}");
}

/// A run of a scenario with one candidate, and the same without the library.
fn tried_in(scenario: &str, cubin: Option<&Path>, more: &[(&str, &str)]) -> (Run, Run) {
    let fast = variant("fake_fast");
    let plan: [(&str, &[u8]); 1] = [("fast", &fast)];
    let variables = [&[("HOST_REPEAT", "10"), ("FAKE_DEVICES", "2")], more].concat();
    let setup = |mode, plan| Setup {
        mode,
        plan,
        scenario,
        cubin,
        variables: &variables,
        ..Setup::default()
    };
    (run(&setup("", &[])), run(&setup("try", &plan)))
}

/// Kernels of graphs run by themselves before these are launched; one that cannot is named.
fn kernels_of_graphs_are_tried() {
    let fast = variant("fake_fast");
    let graph = |mode, variables| {
        run(&Setup {
            mode,
            scenario: "graph",
            plan: &[("fast", &fast)],
            in_graphs: true,
            variables,
            ..Setup::default()
        })
    };
    let (plain, tried) = (graph("", &[]), graph("try", &[]));
    assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
    let all = trials(&tried);
    for set in [1, 2] {
        let of_fast = all.iter().find(|t| t.candidate == "fast" && t.set == set);
        let outcome = of_fast.map(|t| &t.outcome);
        let is_fast = |times: &[u64]| times.iter().all(|t| t.abs_diff(50_000) < 10);
        assert!(matches!(outcome, Some(Outcome::Same(times)) if is_fast(times)));
    }
    let tied = graph("try", &[("FAKE_GRAPH_ONLY", "1")]);
    assert!(!tied.output.status.success());
    assert!(
        mark(&tied).trim_end().ends_with(" in-graph"),
        "{}",
        tied.log
    );
}

/// What is tried before a graph has the parameters that the graph has by then, however it got them.
fn kernels_of_graphs_are_tried_as_they_are_updated() {
    let fast = variant("fake_fast");
    for scenario in ["graph-sizes", "graph-updates"] {
        let run_in = |mode, sizes| {
            run(&Setup {
                mode,
                scenario,
                more: &[sizes],
                plan: &[("fast", &fast)],
                in_graphs: true,
                among: "param1:4=600",
                variables: &[("HOST_REPEAT", "12")],
                ..Setup::default()
            })
        };
        for (sizes, is_met) in [("600", true), ("700,600x2,9+", true), ("1000,601", false)] {
            let (plain, tried) = (run_in("", sizes), run_in("try", sizes));
            let what = format!("{scenario} {sizes}: {}", tried.log);
            assert_eq!(plain.stdout(), tried.stdout(), "{what}");
            assert!(tried.output.status.success(), "{what}");
            let all = trials(&tried);
            let is_timed = |set| {
                let mut of_fast = all.iter().filter(|t| t.candidate == "fast" && t.set == set);
                of_fast.any(|t| matches!(t.outcome, Outcome::Same(_)))
            };
            assert_eq!([1, 2].map(is_timed), [is_met; 2], "{what} {all:?}");
        }
    }
}

/// Managed memory is saved and put back like that of the device, unless threads of the host run that may write it.
fn managed_memory_is_saved() {
    let fast = variant("fake_fast");
    let managed = ("HOST_MANAGED", "1");
    let (plain, tried) = tried(&[("fast", &fast)], &[managed]);
    assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
    assert!(trials(&tried).iter().any(|t| t.set == 2), "{}", tried.log);
    let (_, spinning) = self::tried(&[("fast", &fast)], &[managed, ("HOST_SPINS", "1")]);
    assert!(
        is_refused(&spinning, "its other threads are running"),
        "{}",
        spinning.log
    );
}

/// What was running when a program ended.
fn mark(run: &Run) -> String {
    let files = std::fs::read_dir(run.folder.path()).expect("folder");
    let mark = files.map(|f| f.expect("file").path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("in-flight")
    });
    std::fs::read_to_string(mark.expect("a mark")).expect("text")
}

fn is_refused(run: &Run, why: &str) -> bool {
    let notes = run.notes("trials");
    let named = |n: &Note| matches!(n, Note::Refused(_, text) if text.contains(why));
    trials(run).is_empty() && notes.iter().any(named)
}

/// A kernel may write a variable of a module whose address it finds in memory: it is put back like all memory.
fn variables_of_modules_are_put_back() {
    let workshop = workshop().expect("a toolkit");
    let path = workshop.dir.path().join("counts.cubin");
    std::fs::write(&path, variant("fake_counts")).expect("written");
    let (plain, tried) = tried_in("variable", Some(&path), &[]);
    // It is 1 in the file.
    assert!(plain.stdout().contains("31 launches"), "{}", plain.stdout());
    assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
    assert!(trials(&tried).iter().any(|t| t.set == 2), "{}", tried.log);
    let missing = [("FAKE_NO_VARIABLES", "1")];
    let (_, tried) = tried_in("plain", Some(&path), &missing);
    assert!(
        is_refused(&tried, "`fake_counts`: error 500"),
        "{}",
        tried.log
    );
}

/// What belongs to another context of the GPU may change under a trial; memory of another GPU is out of reach
/// unless the program opens it.
fn memory_of_other_contexts() {
    for (scenario, refused) in [
        ("contexts", Some("several contexts")),
        ("peers", Some("reach each other's memory")),
        ("devices", None),
    ] {
        let (plain, tried) = tried_in(scenario, None, &[]);
        assert!(plain.output.status.success(), "{}", plain.stdout());
        assert_eq!(plain.stdout(), tried.stdout(), "{scenario}: {}", tried.log);
        match refused {
            Some(why) => assert!(is_refused(&tried, why), "{scenario}: {}", tried.log),
            None => assert!(trials(&tried).iter().any(|t| t.set == 2), "{}", tried.log),
        }
    }
}

/// Launches of the added kernel.
fn of_added(run: &Run) -> usize {
    let lines = run.launches.lines();
    lines.filter(|l| l.contains(" weigh.warpwright.")).count()
}

fn variables<'a>(
    mode: &'a str,
    door: &'a str,
    store: &'a Path,
    more: &'a [(&'a str, &'a str)],
) -> Run {
    let cubin = workshop()
        .expect("a toolkit")
        .dir
        .path()
        .join("weigh.cubin");
    run(&Setup {
        mode,
        door,
        scenario: "variables",
        store: Some(store),
        cubin: Some(&cubin),
        kernel: "weigh",
        variables: more,
        ..Setup::default()
    })
}

/// A kernel that uses variables of its module is replaced by one in the same module: the program's variables are those
/// that it works on, however it is loaded and launched.
fn kernels_with_variables_are_replaced_in_their_module() {
    let fast = compile(&weigh(FAST, VARIABLES)).expect("a toolkit");
    let folder = tempfile::tempdir().expect("folder");
    Store::at(folder.path())
        .put(&winner_for("weigh", &fast))
        .expect("written");
    for door in DOORS {
        let plain = variables("", door, folder.path(), &[]);
        assert!(plain.output.status.success(), "{door}: {}", plain.stdout());
        let with = variables("with", door, folder.path(), &[]);
        assert_eq!(plain.stdout(), with.stdout(), "{door}: {}", with.log);
        // Two of each of four modules, one of the module that was loaded again, two of the library afterwards, and six
        // in graphs of which two are nodes made.
        assert_eq!(
            (of_added(&with), of_added(&plain)),
            (19, 0),
            "{door}: {}\n{}",
            with.launches,
            with.log
        );
        let traced = variables("trace+with", door, folder.path(), &[]);
        assert_eq!(plain.stdout(), traced.stdout(), "{door}: {}", traced.log);
        assert_eq!(of_added(&traced), 19);
        let kernels: Vec<String> = traced.launched().into_iter().map(|l| l.kernel).collect();
        assert!(kernels.iter().all(|k| k == "weigh"), "{kernels:?}");
    }
}

/// Where the new kernel does not fit into the module, or the driver does not take it, the module stays as it is.
fn what_does_not_fit_into_a_module_is_left_out() {
    let fast = |variables: &str| compile(&weigh(FAST, variables)).expect("a toolkit");
    let other = |from: &str, to: &str| fast(&VARIABLES.replace(from, to));
    type Case<'a> = (Vec<u8>, &'a [(&'a str, &'a str)], &'a str);
    let cases: [Case<'_>; 3] = [
        (
            other("3F800000", "3F000000"),
            &[],
            "`__constant__` variables are not those",
        ),
        (
            other(".u32 total", ".u32 total[2]"),
            &[],
            "`total` is not the same variable",
        ),
        (
            fast(VARIABLES),
            &[("FAKE_PICKY", "1")],
            "refuses its module with another kernel (error 200)",
        ),
    ];
    let plain = variables("", "dlsym", Path::new(""), &[]);
    for (cubin, more, why) in cases {
        let folder = tempfile::tempdir().expect("folder");
        Store::at(folder.path())
            .put(&winner_for("weigh", &cubin))
            .expect("written");
        let with = variables("with", "dlsym", folder.path(), more);
        assert_eq!(plain.stdout(), with.stdout(), "{why}: {}", with.log);
        assert_eq!(of_added(&with), 0, "{why}");
        assert!(with.log.contains(why), "{why}: {}", with.log);
    }
}

/// Candidates work on the module's variables; what they write is compared and put back like all memory.
fn candidates_for_kernels_with_variables_are_tried_in_their_module() {
    let build = |factor| compile(&weigh(factor, VARIABLES)).expect("a toolkit");
    let [fast, wrong, miscounts] = [FAST, WRONG, MISCOUNTS].map(build);
    let plan: [(&str, &[u8]); 3] = [
        ("fast", &fast),
        ("wrong", &wrong),
        ("miscounts", &miscounts),
    ];
    let cubin = workshop()
        .expect("a toolkit")
        .dir
        .path()
        .join("weigh.cubin");
    let setup = |mode, plan| Setup {
        mode,
        plan,
        scenario: "variables",
        kernel: "weigh",
        cubin: Some(&cubin),
        variables: &[("HOST_REPEAT", "6")],
        ..Setup::default()
    };
    let (plain, tried) = (run(&setup("", &[])), run(&setup("try", &plan)));
    assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
    let all = trials(&tried);
    let of = |name: &str, set: u32| {
        let mut found = all.iter().filter(|t| t.candidate == name && t.set == set);
        found.next().map(|t| t.outcome.clone())
    };
    for set in [1, 2] {
        assert!(
            matches!(of("fast", set), Some(Outcome::Same(_))),
            "{all:?}\n{}",
            tried.log
        );
    }
    assert!(
        matches!(of("wrong", 1), Some(Outcome::Differs(1..=4))),
        "{all:?}"
    );
    // One byte of the counter, and nothing else.
    assert_eq!(of("miscounts", 1), Some(Outcome::Differs(1)), "{all:?}");
    let picky = Setup {
        variables: &[("HOST_REPEAT", "6"), ("FAKE_PICKY", "1")],
        ..setup("try", &plan)
    };
    let tried = run(&picky);
    assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
    assert!(is_refused(&tried, "refuses its module"), "{}", tried.log);
}

/// Versions that are made while the program waits bring variables of their own: they hold what the program's hold, at both
/// launches, which are of modules with other contents, and what becomes of them is compared.
fn searches_for_kernels_with_variables_work_on_the_programs() {
    let build = |factor| compile(&weigh(factor, VARIABLES)).expect("a toolkit");
    let [fast, wrong, miscounts] = [FAST, WRONG, MISCOUNTS].map(build);
    let other =
        compile(&weigh(FAST, &VARIABLES.replace("total;", "total[2];"))).expect("a toolkit");
    let cubin = workshop()
        .expect("a toolkit")
        .dir
        .path()
        .join("weigh.cubin");
    let answers: [&[(&str, &str, &[u8])]; 2] = [
        &[
            ("wrong", "always", &wrong),
            ("miscounts", "always", &miscounts),
        ],
        &[("fast", "always", &fast)],
    ];
    let setup = |mode, plan, answers| Setup {
        mode,
        plan,
        scenario: "variables",
        kernel: "weigh",
        cubin: Some(&cubin),
        answers,
        variables: &[("HOST_REPEAT", "6")],
        ..Setup::default()
    };
    let plain = run(&setup("", &[], &[]));
    // With versions that are in the module when it is loaded, and without.
    let first = [("first", &*fast)];
    for plan in [&[][..], &first] {
        let tried = run(&setup("try", plan, &answers));
        assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
        let all = trials(&tried);
        let of = |name: &str| {
            let found = all.iter().filter(|t| t.candidate == name);
            found
                .map(|t| (t.set, t.round, t.outcome.clone()))
                .collect::<Vec<_>>()
        };
        assert!(
            matches!(of("wrong")[..], [(1, 1, Outcome::Differs(1..=4))]),
            "{all:?} {}",
            tried.log
        );
        assert_eq!(of("miscounts"), [(1, 1, Outcome::Differs(1))]);
        assert!(
            matches!(
                of("fast")[..],
                [(1, 2, Outcome::Same(_)), (2, 0, Outcome::Same(_))]
            ),
            "{all:?} {}",
            tried.log
        );
    }
    let other: [&[(&str, &str, &[u8])]; 1] = [&[("other", "always", &other)]];
    let tried = run(&setup("try", &[], &other));
    assert_eq!(plain.stdout(), tried.stdout(), "{}", tried.log);
    let says = "candidate other cannot have the program's variables (error 500)";
    assert!(tried.log.contains(says), "{}", tried.log);
    let all = trials(&tried);
    let other = all.iter().find(|t| t.candidate == "other");
    let outcome = other.map(|t| &t.outcome);
    assert_eq!(outcome, Some(&Outcome::Failed(500)), "{all:?}");
}

/// A program may try to load what is damaged: lengths in headers lead nowhere.
fn damaged_modules_are_not_read_beyond() {
    let original = &workshop().expect("a toolkit").original;
    let folder = tempfile::tempdir().expect("folder");
    // The place of the section headers, their number, the number of the names' section.
    for (at, value) in [(40, 1u8), (46, 0x7f), (60, 0xff), (61, 0xff), (63, 0x7f)] {
        let mut damaged = original.clone();
        damaged[at] = value;
        let path = folder.path().join(format!("{at}.cubin"));
        std::fs::write(&path, damaged).expect("written");
        let setup = |mode| Setup {
            mode,
            cubin: Some(&path),
            ..Setup::default()
        };
        let plain = run(&setup(""));
        for mode in ["with", "trace"] {
            let with = run(&setup(mode));
            let ended = |run: &Run| (run.stdout(), run.output.status.code());
            assert_eq!(ended(&plain), ended(&with), "{at} {mode}: {}", with.log);
        }
    }
}

/// Kernels that call the driver's functions stay as they are, and the log says why.
fn kernels_that_print_are_left_alone() {
    let prints = |factor: &str| {
        let call = "{ .param .b64 x; .param .b64 y; .param .b32 z; st.param.b64 [x], %d; st.param.b64 [y], %d;
            call.uni (z), vprintf, (x, y); } ret;";
        let text = weigh(factor, VARIABLES).replace(" ret;\n", call);
        text.replace(
            ".visible .entry",
            ".extern .func (.param .b32 z) vprintf(.param .b64 x, .param .b64 y);\n.visible .entry",
        )
    };
    let original = compile(&prints("40400000")).expect("a toolkit");
    let path = workshop()
        .expect("a toolkit")
        .dir
        .path()
        .join("prints.cubin");
    std::fs::write(&path, &original).expect("written");
    let kernel = identities(&original).expect("a cubin").remove(0);
    let mut winner = winner_for("weigh", &compile(&prints(FAST)).expect("a toolkit"));
    winner.kernel = kernel.digest;
    let folder = tempfile::tempdir().expect("folder");
    Store::at(folder.path()).put(&winner).expect("written");
    let setup = |mode| Setup {
        mode,
        scenario: "variables",
        store: Some(folder.path()),
        cubin: Some(&path),
        ..Setup::default()
    };
    let (plain, with) = (run(&setup("")), run(&setup("with")));
    assert_eq!(plain.stdout(), with.stdout());
    assert_eq!(of_added(&with), 0);
    assert!(
        with.log.contains("`weigh` is left alone: it calls printf"),
        "{}",
        with.log
    );
}

/// Random calls of the driver: what a program sees of them is the same with the library and without. With
/// WARPWRIGHT_FUZZ=FIRST,COUNT,STEPS other and longer ones.
fn random_programs_see_what_they_see_without_the_library() {
    let build =
        |factor| compile(&format!("{}{SCALE}", weigh(factor, VARIABLES))).expect("a toolkit");
    let [fast, wrong, miscounts] = [FAST, WRONG, MISCOUNTS].map(build);
    let folder = tempfile::tempdir().expect("folder");
    for (symbol, threads, grid) in [
        ("weigh", 256, 4),
        ("weigh", 128, 2),
        ("weigh", 64, 1),
        ("scale", 256, 4),
        ("scale", 64, 8),
    ] {
        let mut winner = match symbol {
            "weigh" => winner_for(symbol, &fast),
            _ => winner_for(symbol, &variant("fake_fast")),
        };
        let class = LaunchClass::new([grid, 1, 1], [threads, 1, 1], 0, [0; 3]);
        winner.guard = class.expect("a grid").guard();
        Store::at(folder.path()).put(&winner).expect("written");
    }
    let plan: [(&str, &[u8]); 3] = [
        ("fast", &fast),
        ("wrong", &wrong),
        ("miscounts", &miscounts),
    ];
    let numbers = std::env::var("WARPWRIGHT_FUZZ").unwrap_or("1,6,150".into());
    let numbers: Vec<u64> = numbers
        .split(',')
        .map(|n| n.parse().expect("numbers"))
        .collect();
    let cubin = workshop()
        .expect("a toolkit")
        .dir
        .path()
        .join("weigh.cubin");
    let (mut added, mut tried) = (0, 0);
    for seed in numbers[0]..numbers[0] + numbers[1] {
        let (seed, steps) = (seed.to_string(), numbers[2].to_string());
        let setup = |mode, plan| Setup {
            mode,
            plan,
            scenario: "fuzz",
            cubin: Some(&cubin),
            store: Some(folder.path()),
            more: &[],
            ..Setup::default()
        };
        let more = [seed.as_str(), steps.as_str()];
        let run = |mode, plan| {
            run(&Setup {
                more: &more,
                ..setup(mode, plan)
            })
        };
        let plain = run("", &[][..]);
        assert!(
            plain.output.status.success(),
            "seed {seed}: {}",
            plain.stdout()
        );
        for mode in ["with", "trace", "trace+with", "try"] {
            let other = run(mode, if mode == "try" { &plan[..] } else { &[] });
            let differs = plain
                .stdout()
                .lines()
                .zip(other.stdout().lines())
                .find(|(a, b)| a != b)
                .map(|(_, b)| b.to_owned());
            assert_eq!(differs, None, "seed {seed} {mode}: {}", other.log);
            assert_eq!(
                plain.stdout(),
                other.stdout(),
                "seed {seed} {mode}: {}",
                other.log
            );
            assert!(
                !other.log.contains("stands aside"),
                "seed {seed} {mode}: {}",
                other.log
            );
            added += of_added(&other);
            tried += trials(&other).len();
        }
    }
    assert!(added > 10 && tried > 0, "{added} {tried}");
}

/// The state of a random generator (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % below
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len() as u64) as usize]
    }
}

/// A launch as the program's file of launches has it.
#[derive(Debug)]
struct Tossed {
    how: u64,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    offset: u64,
    number: u32,
    words: [u32; 4],
}

impl Tossed {
    fn new(dice: &mut Dice) -> Tossed {
        let number = [0, 1, 4, 7, 4096, u32::MAX];
        Tossed {
            how: dice.roll(7),
            grid: [dice.of(&[1, 2, 3, 4, 8]), dice.of(&[1, 2]), 1],
            block: [dice.of(&[32, 64, 256]), dice.of(&[1, 2]), 1],
            shared: dice.of(&[0, 512, 1024]),
            offset: dice.of(&[0, 4, 16, 256]),
            number: dice.of(&number),
            words: [0; 4].map(|_| dice.of(&number)),
        }
    }

    fn line(&self) -> String {
        let ([gx, gy, _], [bx, by, _]) = (self.grid, self.block);
        let [a, b, c, d] = self.words;
        format!(
            "{} {gx} {gy} {bx} {by} {} {} {} {a} {b} {c} {d}\n",
            self.how, self.shared, self.offset, self.number
        )
    }

    fn extents(&self) -> Extents {
        Extents {
            grid: self.grid,
            block: self.block,
            dynamic_smem: self.shared,
        }
    }

    /// The version that is to be launched, and its extents.
    fn version(&self, versions: &[Winner]) -> Option<(usize, Extents)> {
        let words = self.words.iter().flat_map(|w| w.to_le_bytes());
        let params: Vec<Vec<u8>> = vec![
            (0x10_0000 + self.offset).to_le_bytes().to_vec(),
            self.number.to_le_bytes().to_vec(),
            words.collect(),
        ];
        let values = LaunchValues {
            grid: self.grid,
            block: self.block,
            cluster: if self.how == 4 { [2, 1, 1] } else { [1; 3] },
            dynamic_smem: self.shared,
            params: &params,
        };
        let is_bound = self.how == 3 || self.how == 4;
        let mut all = versions.iter().enumerate();
        all.find_map(|(number, version)| {
            let fits = version.guard.holds(&values) && (version.shape.is_same() || !is_bound);
            Some((
                number,
                version.shape.apply(self.extents()).filter(|_| fits)?,
            ))
        })
    }
}

fn tossed_guard(dice: &mut Dice) -> Guard {
    let conditions = [
        "block=256,1,1",
        "block.size<=256",
        "block.x%64=0",
        "grid.x<=3",
        "grid.size>=4",
        "grid=4,1,1",
        "cluster=2,1,1",
        "cluster.size=1",
        "smem=0",
        "smem>=1024",
        "align(param0)=16",
        "param0:8>=1048592",
        "param1:4=4096",
        "param1:4%4=0",
        "param1:4>=7",
        "param2:4=7",
        "param2+4:4<=4",
        "param2+8:8>=4294967296",
        "param2+12:1=255",
        "param2+2:2=0",
        "disjoint(param0[16],param2+8[4096])",
        "param1+4:4=0",
        "param3:4=0",
    ];
    let count = 1 + dice.roll(3);
    let text: Vec<&str> = (0..count).map(|_| dice.of(&conditions)).collect();
    let signature = Signature::default();
    let guard = Guard::parse(&text.join("; "), &signature);
    guard.unwrap_or_else(|e| panic!("{text:?}: {e}"))
}

/// Random versions at random launches, passed in every way: the version whose guard holds first is launched, in its shape.
fn guards_decide_at_launches() {
    let workshop = workshop().expect("a toolkit");
    // Names of several lengths, so that the driver's log tells the versions apart.
    let name = |i: usize| format!("v{}", "x".repeat(140 * i));
    let cubins: Vec<Vec<u8>> = (1..9).map(|i| count(&name(i))).collect();
    let original = count(&name(0));
    let all = cubins.iter().chain([&original]).map(Vec::len);
    let sizes: std::collections::BTreeSet<usize> = all.collect();
    assert_eq!(sizes.len(), 9, "{sizes:?}");
    let path = workshop.dir.path().join("count.cubin");
    std::fs::write(&path, &original).expect("written");
    let digest = identities(&original).expect("a cubin").remove(0).digest;
    let numbers = std::env::var("WARPWRIGHT_FUZZ").unwrap_or("1,6,150".into());
    let numbers: Vec<u64> = numbers
        .split(',')
        .map(|n| n.parse().expect("numbers"))
        .collect();
    let mut replaced = 0;
    for seed in numbers[0]..numbers[0] + numbers[1] {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let folder = tempfile::tempdir().expect("folder");
        let store = Store::at(folder.path().join("store"));
        for (number, cubin) in cubins.iter().enumerate() {
            let shapes = [
                "same",
                "same",
                "block=64,1,1",
                "smem+1024",
                "block=128,2,1; smem+16",
            ];
            let version = Winner {
                kernel: digest.clone(),
                guard: tossed_guard(&mut dice),
                shape: dice.of(&shapes).parse().expect("a shape"),
                symbol: "count".into(),
                original_ns: 1000,
                winner_ns: 500 + number as u64,
                ..winner(cubin)
            };
            store.keep(&version).expect("written");
        }
        let index = store.index().expect("read");
        let mut versions = store.of(&index, &digest);
        // Parameters that there are not.
        let is_known = |v: &Winner| {
            let text = v.guard.to_string();
            !text.contains("param3") && !text.contains("param1+4")
        };
        versions.retain(is_known);
        let launches: Vec<Tossed> = (0..numbers[2]).map(|_| Tossed::new(&mut dice)).collect();
        let file = folder.path().join("launches");
        let text: String = launches.iter().map(Tossed::line).collect();
        std::fs::write(&file, text).expect("written");
        let file = file.display().to_string();
        let with = run(&Setup {
            mode: "with",
            door: dice.of(&DOORS),
            scenario: "values",
            store: Some(store.folder()),
            cubin: Some(&path),
            more: &[&file],
            ..Setup::default()
        });
        assert_eq!(with.stdout(), "done\n", "seed {seed}: {}", with.log);
        let made = with.launches.lines().filter(|l| !l.starts_with("node "));
        let made: Vec<&str> = made.collect();
        assert_eq!(made.len(), launches.len(), "seed {seed}");
        for (launch, line) in launches.iter().zip(made) {
            let (size, to) = match launch.version(&versions) {
                Some((number, to)) => {
                    replaced += 1;
                    (versions[number].cubin.len(), to)
                }
                None => (original.len(), launch.extents()),
            };
            let words = format!(
                " image {size} grid {} block {} shared {} ",
                to.grid[0], to.block[0], to.dynamic_smem
            );
            assert!(
                line.contains(&words),
                "seed {seed}: {launch:?}: {words}{line}\n{}",
                with.log
            );
        }
    }
    assert!(replaced > 100, "{replaced}");
}

/// Another value than the winner was chosen for, a grid that grows, a node of a graph that gets other parameters, a guard that
/// never holds again: such launches are the original's, the others the winner's.
fn guards_are_tested_at_each_launch() {
    let fast = variant("fake_fast");
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path());
    let version = Winner {
        guard: class()
            .guard()
            .and(&Guard::parse("param1:4=600", &Signature::default()).expect("one")),
        ..winner(&fast)
    };
    store.keep(&version).expect("written");
    let original = workshop().expect("a toolkit").original.len();
    // Launches, and how many of them are the winner's.
    let cases = [
        ("600", 3),
        ("1000,600", 3),
        ("600,601,1000,600x2", 9),
        ("600,600@64", 3),
        ("600+", 1),
        ("1000,7", 0),
    ];
    for scenario in ["sizes", "graph-sizes", "graph-updates"] {
        for (sizes, expected) in cases {
            let setup = |mode| Setup {
                mode,
                scenario,
                more: &[],
                store: Some(folder.path()),
                variables: &[("HOST_REPEAT", "3")],
                ..Setup::default()
            };
            let more = [sizes];
            let plain = run(&Setup {
                more: &more,
                ..setup("")
            });
            let with = run(&Setup {
                more: &more,
                ..setup("with")
            });
            let case = format!("{scenario} {sizes}: {} {}", with.log, with.launches);
            assert_eq!(plain.stdout(), with.stdout(), "{case}");
            assert!(with.output.status.success(), "{case}");
            let launched = |run: &Run, size: usize| {
                let word = format!(" image {size} ");
                let lines = run.launches.lines().filter(|line| line.contains(&word));
                lines.filter(|line| !line.starts_with("node ")).count()
            };
            assert_eq!(launched(&with, fast.len()), expected, "{case}");
            let all = launched(&plain, original);
            assert_eq!(launched(&with, original), all - expected, "{case}");
            // In turns as well.
            let turns = run(&Setup {
                more: &more,
                variables: &[("HOST_REPEAT", "3"), ("WARPWRIGHT_TURNS", "1")],
                ..setup("trace+with")
            });
            assert_eq!(plain.stdout(), turns.stdout(), "{case} {}", turns.log);
        }
    }
}

/// A winner in a graph takes turns with its kernel in the nodes of an executable graph, which is as it was behind each launch; of
/// two graphs that are launched by turns each has its own.
fn winners_in_graphs_take_turns() {
    let (store, size) = store(&variant("fake_fast"));
    let once = [("WARPWRIGHT_TURNS", "0")];
    let twice = [once[0], ("HOST_TWICE", "1")];
    let cases = [
        ("graph", 1, &once[..], 1),
        ("capture", 2, &once, 1),
        ("capture", 2, &twice, 2),
    ];
    for (scenario, nodes, variables, graphs) in cases {
        let setup = |mode| Setup {
            mode,
            scenario,
            store: Some(store.path()),
            variables,
            ..Setup::default()
        };
        let (plain, with) = (run(&setup("")), run(&setup("trace+with")));
        assert_eq!(plain.stdout(), with.stdout(), "{}", with.log);
        let launched = with.launches.lines();
        let launched = launched.filter(|line| line.starts_with("graph-launch"));
        let word = format!(" image {size} ");
        let (winner, own): (Vec<&str>, Vec<&str>) = launched.partition(|l| l.contains(&word));
        // The first launch of a graph is nobody's turn; then each has two.
        let each = graphs * nodes;
        assert_eq!(
            [winner.len(), own.len()],
            [3 * each, 2 * each],
            "{scenario}"
        );
        let notes = with.notes("launches").into_iter();
        let of_turns = notes.filter_map(|note| match note {
            Note::Beside(beside) => Some((beside.in_graphs, beside.own, beside.winner)),
            _ => None,
        });
        let of_turns: Vec<_> = of_turns.collect();
        let times = [100_000, 50_000].map(|ns| vec![ns; 2 * graphs]);
        let [own, winner] = times;
        assert_eq!(of_turns, [(true, own, winner)], "{scenario}");
        // What a run with the winners takes is theirs alone.
        let seen = with.launched();
        let seen = (seen[0].in_graphs, seen[0].graph_ns);
        let each = each as u64;
        assert_eq!(seen, (3 * each, 150_000 * each), "{scenario}");
    }
}

/// A tool that is preloaded as well and hooks `dlsym`, or stands where programs link, still sees every launch.
fn other_tools_are_chained() {
    let (store, size) = store(&variant("fake_fast"));
    let cases = [
        ("hooks.so", "dlsym", false),
        ("exports.so", "linked", false),
        // One that comes first: what links the driver is its affair, and nothing else.
        ("exports.so", "linked", true),
        ("exports.so", "dlsym", true),
        ("exports.so", "proc2", true),
    ];
    for (tool, door, tool_is_first) in cases {
        let setup = |mode| Setup {
            mode,
            door,
            tool,
            tool_is_first,
            store: Some(store.path()),
            ..Setup::default()
        };
        let (plain, with) = (run(&setup("")), run(&setup("with")));
        assert!(plain.output.status.success(), "{tool}: {}", plain.stdout());
        assert_eq!(plain.stdout(), with.stdout(), "{tool}: {}", with.log);
        let counted = |run: &Run| std::fs::read_to_string(run.folder.path().join("count"));
        let (before, after) = (counted(&plain), counted(&with));
        // Two launches, and one that is refused; a program that asks for the driver's functions does not reach a tool that
        // exports them.
        let is_seen = tool == "hooks.so" || door == "linked";
        let expected = is_seen.then(|| "3\n".to_owned());
        assert_eq!(before.ok(), expected, "{tool} {door}");
        assert_eq!(after.ok(), expected, "{tool} {door}");
        assert_eq!(with.of_size(size), 2, "{tool} {door}: {}", with.log);
    }
}

/// Of ten thousand winners of a kernel the latest are looked at, and a program does not wait for it.
fn kernels_of_many_winners_start() {
    let folder = tempfile::tempdir().expect("folder");
    let other = Winner {
        guard: LaunchClass::new([4, 1, 1], [96, 1, 1], 0, [0; 3])
            .expect("a grid")
            .guard(),
        ..winner(&variant("fake_slow"))
    };
    let (bytes, key) = (other.to_bytes(), other.kernel[..32].to_owned());
    for number in 0..10_000 {
        let path = folder.path().join(format!("{key}-{number:05}.winner"));
        std::fs::write(path, &bytes).expect("written");
    }
    let fast = winner(&variant("fake_fast"));
    Store::at(folder.path()).put(&fast).expect("written");
    let timed = || {
        let with = run(&Setup {
            mode: "with",
            store: Some(folder.path()),
            before: &["sh", "-c", "\"$0\" \"$@\"; times >&2"],
            ..Setup::default()
        });
        assert!(with.output.status.success(), "{}", with.stdout());
        assert_eq!(with.of_size(fast.cubin.len()), 2, "{}", with.log);
        let text = String::from_utf8_lossy(&with.output.stderr).into_owned();
        milliseconds(text.lines().last().unwrap_or_default())
    };
    let least = (0..5).map(|_| timed()).min().expect("runs");
    // Of the processor: 40 ms in a debug build, 60 where six others work on each core.
    assert!(least < 100, "{least} ms");
}

/// A program that has no memory left ends as it does without the library.
fn little_memory_ends_nobody() {
    let fast = winner(&variant("fake_fast"));
    let large = Winner {
        cubin: [&fast.cubin[..], &[0; 4 << 20]].concat(),
        ..fast.clone()
    };
    let both = ["short", "short-later"].map(|at| [(&fast, "fast", at), (&large, "large", at)]);
    for (winner, name, scenario) in both.into_iter().flatten() {
        let store = tempfile::tempdir().expect("folder");
        Store::at(store.path()).put(winner).expect("written");
        let mut used = false;
        for room in [
            0,
            50_000,
            200_000,
            1_000_000,
            3_000_000,
            8_000_000,
            9_000_000,
            20_000_000,
            45_000_000,
            400_000_000,
        ] {
            let room = room.to_string();
            let more = [room.as_str()];
            let setup = |mode| Setup {
                mode,
                scenario,
                store: Some(store.path()),
                more: &more,
                ..Setup::default()
            };
            let plain = run(&setup(""));
            assert!(plain.output.status.success(), "{room}: {}", plain.stdout());
            for mode in ["with", "trace", "trace+with"] {
                let with = run(&setup(mode));
                let what = format!("{name} {scenario} {room} {mode}: {}", with.log);
                assert_eq!(with.output.status, plain.output.status, "{what}");
                assert_eq!(with.stdout(), plain.stdout(), "{what}");
                used = mode == "with" && with.of_size(winner.cubin.len()) == 2 || used;
            }
        }
        assert!(used || name == "large", "{name}");
    }
    // From the start.
    let (store, size) = store(&fast.cubin);
    // In the middle of its work, with threads and modules to come, 13 MB being what 20 MiB in all leave.
    let pieces = |run: &Run| {
        let (said, mut pieces) = (run.stdout(), 0);
        let others = said
            .lines()
            .filter(|line| match line.strip_prefix("pieces ") {
                Some(count) => {
                    pieces = count.parse().expect("a number");
                    false
                }
                None => true,
            });
        let others: Vec<String> = others.map(str::to_owned).collect();
        (others, pieces)
    };
    for room in [
        200_000, 1_000_000, 3_000_000, 9_000_000, 13_000_000, 20_000_000, 45_000_000,
    ] {
        let room = room.to_string();
        let more = [room.as_str()];
        let setup = |mode| Setup {
            mode,
            scenario: "short-last",
            store: Some(store.path()),
            more: &more,
            ..Setup::default()
        };
        let (expected, count) = pieces(&run(&setup("")));
        assert_eq!(expected.len(), 4, "{room}: {expected:?}");
        for mode in ["with", "trace", "trace+with"] {
            let with = run(&setup(mode));
            let (found, left) = pieces(&with);
            let what = format!("{room} {mode}: {}", with.log);
            assert_eq!(found, expected, "{what}");
            // Of 64 KiB: half a MiB; up to three were seen to be missing.
            assert!(
                (count - 8..=count + 8).contains(&left),
                "{what}: {left}, not {count}"
            );
            assert!(mode != "with" || with.of_size(size) > 0, "{what}");
        }
    }
    for (limit, is_used) in [
        ("-v 64000", false),
        ("-v 100000000", true),
        ("-s 64", false),
        ("-s 96", false),
        ("-s 1024", true),
    ] {
        let words = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        let before = ["sh", "-c", &words];
        let setup = |mode| Setup {
            mode,
            store: Some(store.path()),
            before: &before,
            ..Setup::default()
        };
        let (plain, with) = (run(&setup("")), run(&setup("with")));
        let what = format!("{limit}: {}", with.log);
        assert_eq!(with.stdout(), plain.stdout(), "{what}");
        assert_eq!(with.output.status, plain.output.status, "{what}");
        assert!(!is_used || with.of_size(size) == 2, "{what}");
    }
    // The first thread begins with 28 KiB, of which the kernel takes up to 8 at random: the library needs less than 4 of them.
    let words = "ulimit -s 64; PAD=$(head -c $((65536 - 28672 - $(env | wc -c))) /dev/zero | tr '\\0' x); \
                 export PAD; exec \"$0\" \"$@\"";
    let before = ["sh", "-c", words];
    for mode in ["with", "trace", "trace+with"] {
        let setup = |mode| Setup {
            mode,
            store: Some(store.path()),
            before: &before,
            ..Setup::default()
        };
        let (plain, with) = (run(&setup("")), run(&setup(mode)));
        assert!(plain.output.status.success(), "{}", plain.stdout());
        assert_eq!(with.stdout(), plain.stdout(), "{mode}: {}", with.log);
        assert_eq!(with.output.status, plain.output.status, "{mode}");
    }
}

/// What a program that never asks for the driver does without the library, and with it.
fn without_driver(words: &[&str]) -> [Output; 2] {
    let alone = || {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        // What is ours would be taken from an environment that is too long, also where it was the program's before.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("WARPWRIGHT") {
                command.env_remove(name);
            }
        }
        command
    };
    let mut with = alone();
    with.env("LD_PRELOAD", library()).env("WARPWRIGHT", "with");
    [alone(), with].map(|mut command| command.output().expect("starts"))
}

/// Whatever a program starts has the library, which is to cost next to nothing until the driver is asked for.
fn programs_without_the_driver_need_next_to_nothing() {
    /// KiB that the library takes: of address space, 15 pages in either build.
    const OWN: usize = 60;
    let few = workshop().expect("a toolkit").dir.path().join("few");
    let few = few.display().to_string();
    let programs: [&[&str]; 3] = [
        &["/bin/true"],
        &["/bin/sh", "-c", ":"],
        &["/bin/sh", "-c", "/bin/true & wait; /bin/true"],
    ];
    for program in programs {
        let limited = |limit: &str| {
            let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
            without_driver(&[&["/bin/sh", "-c", &script], program].concat())
        };
        let mut have_run = 0;
        for limit in (2_000..14_000).step_by(if program.len() == 1 { 200 } else { 1_000 }) {
            let [plain, _] = limited(&format!("-v {limit}"));
            let [_, with] = limited(&format!("-v {}", limit + OWN));
            if plain.status.success() {
                have_run += 1;
                assert_eq!(with, plain, "{program:?} {limit}");
            }
        }
        assert!(have_run > 5, "{program:?}");
        let [plain, with] = limited("-d 1000");
        assert_eq!(plain, with, "{program:?}");
    }
    for kind in ["files", "prctl", "syscall", "vfork"] {
        let [plain, with] = without_driver(&[&few, kind, "/bin/true"]);
        assert_eq!(plain, with, "{kind}");
        let says = String::from_utf8_lossy(&plain.stderr);
        assert!(says.contains("libc.so"), "{kind}: {says}");
    }
    // The library is there, and nothing else comes with it.
    let [plain, with] = without_driver(&[&few, "none", "/bin/cat", "/proc/self/maps"]);
    let loaded = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let paths = text.lines().filter_map(|line| line.split('/').next_back());
        paths
            .filter(|file| file.contains(".so"))
            .map(str::to_owned)
            .collect::<std::collections::BTreeSet<_>>()
    };
    let (plain, with) = (loaded(&plain), loaded(&with));
    let more: Vec<&String> = with.difference(&plain).collect();
    assert_eq!(more, ["libwarpwright_inject.so"]);
}

/// What cannot open the library is not told of it, and the program's own environment stays as it is: between `vfork` and exec
/// it is the parent's.
fn environments_stay_the_programs() {
    let few = workshop().expect("a toolkit").dir.path().join("few");
    let folder = tempfile::tempdir().expect("folder");
    let near = folder.path().join("near.so");
    std::fs::copy(library(), &near).expect("copied");
    let started = |preloaded: String| {
        let mut command = Command::new(&few);
        command.arg("ways").arg(&near).env("LD_PRELOAD", preloaded);
        command.env("WARPWRIGHT", "with").output().expect("starts")
    };
    let plain = started("libm.so.6".into());
    let says = String::from_utf8_lossy(&plain.stdout);
    assert_eq!(says.matches(" libm.so.6\n").count(), 12, "{says}");
    assert_eq!(says.matches(" 1\n").count(), 17, "{says}");
    for (before, behind) in [("", ":libm.so.6"), ("libm.so.6 ", ""), ("", " libm.so.6:")] {
        let preloaded = format!("{before}{}{behind}", near.display());
        let with = started(preloaded.clone());
        assert_eq!(with.status, plain.status, "{preloaded}");
        let of = |output: &Output| {
            String::from_utf8_lossy(&output.stdout)
                .replace("6:\n", "6\n")
                .replace("6 \n", "6\n")
        };
        assert_eq!(of(&with), says, "{preloaded}");
        assert_eq!(with.stderr, plain.stderr, "{preloaded}");
    }
}

/// Programs that another dynamic linker starts, and such of another width, cannot load the library: they start as ever. Arguments
/// and environments that fit alone fit.
fn programs_of_other_kinds_start() {
    let workshop = workshop().expect("a toolkit");
    let few = workshop.dir.path().join("few").display().to_string();
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let few_again = |linker: &str, name: &str| {
        let made = Command::new("cc")
            .args(["-w", "-o", &at(name)])
            .arg(format!("-Wl,--dynamic-linker={linker}"))
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/few.c"))
            .status();
        assert!(made.expect("cc").success());
    };
    let own = "/lib64/ld-linux-x86-64.so.2";
    std::os::unix::fs::symlink(own, at("ld-musl-x86_64.so.1")).expect("link");
    few_again(&at("ld-musl-x86_64.so.1"), "other");
    few_again(own, "same");
    let scripts = [
        ("script", "other", " -c\n"),
        ("own-script", "same", " -c\n"),
        ("script-of-script", "script", ""),
    ];
    for (name, runs, end) in scripts {
        std::fs::write(at(name), format!("#! {}{end}", at(runs))).expect("written");
        let mode: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(at(name), mode).expect("set");
    }
    let kinds = [
        ("other", 0),
        ("script", 0),
        ("script-of-script", 0),
        ("same", 1),
        ("own-script", 1),
    ];
    for (name, has) in kinds {
        let [plain, with] = without_driver(&[&few, "others", &at(name)]);
        let [plain, with] = [plain, with].map(|output| {
            assert!(
                output.stderr.is_empty() && output.status.success(),
                "{name}"
            );
            String::from_utf8(output.stdout).expect("text")
        });
        // A script's descriptor is closed before what runs it could read it. An empty environment names no library.
        let starts = plain.matches("has it: 0\n").count();
        assert_eq!(
            starts,
            if name.ends_with("script") { 14 } else { 15 },
            "{name}: {plain}"
        );
        assert_eq!(with.replace("it: 1", "it: 0"), plain, "{name}");
        let have_it = with.matches("has it: 1").count();
        assert_eq!(have_it, has * (starts - 1), "{name}: {with}");
    }
    let many = "i=0; while [ $i -lt 900 ]; do export V$i=1; i=$((i+1)); done; exec \"$0\" long";
    let little = "ulimit -s 512; exec \"$0\" shell";
    let long: [&[&str]; 3] = [
        &[&few, "long"],
        &["/bin/sh", "-c", many, &few],
        &["/bin/sh", "-c", little, &few],
    ];
    for words in long {
        let [plain, with] = without_driver(words);
        assert!(plain.status.success(), "{words:?}");
        assert_eq!(with, plain, "{words:?}");
    }
}

/// What is loaded later, and by threads at once, changes none of the dynamic linker's answers: nobody has the driver's functions
/// where no driver is.
fn the_dynamic_linker_answers_as_ever() {
    let asks = workshop().expect("a toolkit").dir.path().join("asks");
    let asks = asks.display().to_string();
    for what in ["linker", "race", "self"] {
        for deep in [&[][..], &[("DEEP", "1")]] {
            let run = |mode| {
                let before = ["sh", "-c", "exec \"$0\" \"$1\"", &asks, what];
                run(&Setup {
                    mode,
                    before: &before,
                    variables: deep,
                    ..Setup::default()
                })
            };
            let plain = run("");
            assert_eq!(plain.output.status.code(), Some(6), "{what}");
            for mode in ["with", "trace", "off"] {
                let with = run(mode);
                assert_eq!(with.output, plain.output, "{what} {mode}: {}", with.log);
            }
        }
    }
}

/// Of the children, as a shell's `times` has it: `0m0.031s 0m0.014s`.
fn milliseconds(times: &str) -> u64 {
    let of = |time: &str| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m')?;
        let (minutes, seconds): (f64, f64) = (minutes.parse().ok()?, seconds.parse().ok()?);
        Some(((minutes * 60.0 + seconds) * 1000.0) as u64)
    };
    let all = times.split(' ').map(of);
    all.sum::<Option<u64>>().expect(times)
}

/// Whatever the log is, the program goes on and ends as it does without it.
fn logs_disturb_nobody() {
    let (store, size) = store(&variant("fake_fast"));
    let folder = tempfile::tempdir().expect("folder");
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let pipe = pipe.display().to_string();
    let plain = run(&Setup::default());
    let limited = ["sh", "-c", "ulimit -f 0; exec \"$0\" \"$@\""];
    let closed = [
        "sh",
        "-c",
        "{ sleep 0.2; exec \"$0\" \"$@\"; } 2>&1 >&3 | :",
    ];
    type Case<'a> = (&'a str, &'a [&'a str]);
    let cases: [Case<'_>; 6] = [
        (&pipe, &[]),
        ("/dev/full", &[]),
        ("/no/such/folder/log", &[]),
        ("/", &[]),
        ("/tmp/warpwright-no-such-log", &limited),
        ("/dev/stderr", &closed),
    ];
    for (log, before) in cases {
        for mode in ["with", "trace"] {
            let before: Vec<String> = before.iter().map(|w| w.replace(">&3", ">&1")).collect();
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            let variables = [("WARPWRIGHT_LOG", log), ("FAKE_LOG", "/dev/null")];
            let with = run(&Setup {
                mode,
                store: Some(store.path()),
                variables: &variables,
                before: &before,
                ..Setup::default()
            });
            let is_closed = log == "/dev/stderr";
            assert!(
                with.output.status.success(),
                "{log} {mode}: {:?}",
                with.output.status
            );
            assert!(is_closed || plain.stdout() == with.stdout(), "{log} {mode}");
        }
    }
    let _ = std::fs::remove_file("/tmp/warpwright-no-such-log");
    // A reader that goes away.
    let reader = std::io::pipe().expect("a pipe");
    let mut command = Command::new(workshop().expect("a toolkit").dir.path().join("host"));
    command
        .args(["dlsym", "plain"])
        .arg(
            workshop()
                .expect("a toolkit")
                .dir
                .path()
                .join("scale.cubin"),
        )
        .env("LD_LIBRARY_PATH", workshop().expect("a toolkit").dir.path())
        .env("LD_PRELOAD", library())
        .env("WARPWRIGHT", "with")
        .env("WARPWRIGHT_LOG", "/dev/stderr")
        .env("WARPWRIGHT_DB", store.path())
        .stdout(std::process::Stdio::piped())
        .stderr(reader.1);
    drop(reader.0);
    let output = command.output().expect("starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), plain.stdout());
    assert!(output.status.success(), "{:?}", output.status);
    let _ = size;
}

/// Relative paths mean what they meant when the program started.
fn folders_are_those_of_the_start() {
    let (store, size) = store(&variant("fake_fast"));
    let (parent, name) = (store.path().parent(), store.path().file_name());
    let name = name.expect("a name").to_string_lossy().into_owned();
    let into = format!(
        "cd {}; exec \"$0\" \"$@\"",
        parent.expect("a folder").display()
    );
    let with = run(&Setup {
        mode: "with",
        scenario: "moved",
        before: &["sh", "-c", &into],
        variables: &[("WARPWRIGHT_DB", &name)],
        ..Setup::default()
    });
    assert!(with.output.status.success(), "{}", with.stdout());
    assert_eq!(with.of_size(size), 2, "{}", with.log);
}

/// A store that everybody can write is not used; one that its group can write is used, and the log tells it.
fn stores_of_others_are_refused_or_told() {
    use std::os::unix::fs::PermissionsExt;
    let (store, size) = store(&variant("fake_fast"));
    for (mode, launches, why) in [
        (0o777, 0, "everybody can write"),
        (0o770, 2, "its group can write it"),
        (0o700, 2, "is replaced"),
    ] {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(store.path(), mode).expect("set");
        let with = run(&Setup {
            mode: "with",
            store: Some(store.path()),
            ..Setup::default()
        });
        assert_eq!(with.of_size(size), launches, "{why}: {}", with.log);
        assert!(with.log.contains(why), "{why}: {}", with.log);
    }
}

/// Winners that nobody here has looked at, and cubins that are not what they should be, do not reach the driver.
fn unfit_winners_do_not_reach_the_driver() {
    let fast = variant("fake_fast");
    let waiting = Winner {
        standing: Standing::Imported,
        ..winner(&fast)
    };
    let other = compile(&format!(
        "{PTX}.visible .global .u32 fake_fast = 1;\n{}",
        SCALE.replace(".param .u32 n", ".param .u64 n")
    ));
    let bounded = compile(&format!(
        "{PTX}.visible .global .u32 fake_fast = 1;\n{}",
        SCALE.replace(") {", ") .maxntid 128, 1, 1 {")
    ));
    let clustered = compile(&format!(
        "{PTX}.visible .global .u32 fake_fast = 1;\n{}",
        SCALE.replace(") {", ") .reqnctapercluster 2, 1, 1 {")
    ));
    let tied = compile(&format!(
        "{PTX}.visible .global .u32 fake_fast = 1;\n{}",
        SCALE.replace(" ret;", " st.global.u32 [fake_fast], 1; ret;")
    ));
    let built = |cubin: Option<Vec<u8>>| winner(&cubin.expect("a toolkit"));
    let guarded = |text: &str| Winner {
        guard: Guard::parse(text, &Signature::default()).expect("a guard"),
        ..winner(&fast)
    };
    let cases = [
        (waiting, "the store is empty"),
        (built(other), "takes other parameters"),
        (built(bounded), "does not take the blocks"),
        (built(clustered), "runs in other clusters"),
        (built(tied), "uses variables, and the kernel does not"),
        (
            guarded("param7:4=0"),
            "a parameter that the kernel does not have",
        ),
        (
            guarded("param1:8=0"),
            "a parameter that the kernel does not have",
        ),
    ];
    let plain = run(&Setup::default());
    for (winner, why) in cases {
        let folder = tempfile::tempdir().expect("folder");
        Store::at(folder.path()).put(&winner).expect("written");
        let with = run(&Setup {
            mode: "with",
            store: Some(folder.path()),
            ..Setup::default()
        });
        assert_eq!(plain.stdout(), with.stdout(), "{why}: {}", with.log);
        assert_eq!(with.of_size(winner.cubin.len()), 0, "{why}: {}", with.log);
        assert!(with.log.contains(why), "{why}: {}", with.log);
    }
}

/// The names of functions that the libraries call, as the linker has them.
fn called() -> Vec<String> {
    let opened = library().with_file_name("libwarpwright_inplace.so");
    let listed = Command::new("nm")
        .args(["-D", "--undefined-only"])
        .args([library(), opened])
        .output()
        .expect("nm");
    let text = String::from_utf8(listed.stdout).expect("text");
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    let names = names.filter_map(|name| name.split('@').next());
    let names = names.filter(|name| !name.ends_with(':'));
    // It defines these and calls them all the same.
    let defined = ["prctl", "syscall", "dlclose"];
    names.chain(defined).map(str::to_owned).collect()
}

/// What a program with a function of its own of this name, linked in this way, does without the library and with it. The
/// name that the library has told.
fn own_function(name: &str, link: &[&str], store: &Path) -> ([Run; 3], Option<PathBuf>) {
    let folder = tempfile::tempdir().expect("folder");
    let program = folder.path().join("own").display().to_string();
    let built = Command::new("cc")
        .args(["-w", "-O1", "-fno-builtin", "-Wl,--no-as-needed"])
        .args([&format!("-DOWN={name}"), "-o", &program])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/own.c"))
        .args(link)
        .args(["-ldl", "-lm"])
        .status();
    assert!(built.expect("cc").success(), "{name}");
    let cubin = workshop()
        .expect("a toolkit")
        .dir
        .path()
        .join("scale.cubin");
    let cubin = cubin.display().to_string();
    let runs = ["", "with", "trace"].map(|mode| {
        run(&Setup {
            mode,
            before: &[&program, &cubin],
            store: Some(store),
            ..Setup::default()
        })
    });
    let told = std::fs::read_link(runs[2].folder.path().join("captured"));
    (runs, told.ok())
}

/// What a program calls as the library calls a function is the program's own, whatever it does.
fn own_functions_are_not_called() {
    /// The door itself and what asks the dynamic linker; what starts every program.
    const LEFT: [&str; 4] = ["dl_iterate_phdr", "dladdr", "dlopen", "getenv"];
    /// Of names that no program may use for itself, what is the C library's alone.
    const RESERVED: [&str; 3] = ["__errno_location", "__xpg_strerror_r", "__register_atfork"];
    const HEAP: [&str; 5] = ["malloc", "calloc", "realloc", "free", "posix_memalign"];
    let (store, size) = store(&variant("fake_fast"));
    let is_own = |name: &&String| {
        let is_reserved = name.starts_with('_') && !RESERVED.contains(&&***name);
        !is_reserved && ![&LEFT[..], &HEAP].concat().contains(&&***name)
    };
    let names = called();
    assert!(names.iter().filter(is_own).count() > 30, "{names:?}");
    for name in names.iter().filter(is_own) {
        let ([plain, with, trace], told) = own_function(name, &[], store.path());
        for other in [&with, &trace] {
            assert_eq!(plain.stdout(), other.stdout(), "{name}: {}", other.log);
            assert_eq!(plain.output.status, other.output.status, "{name}");
            assert_eq!(other.of_size(size), 0, "{name}");
        }
        assert_eq!(told.as_deref(), Some(Path::new(name)));
        assert!(trace.launched().is_empty(), "{name}");
    }
    // Linked otherwise.
    for link in [&["-no-pie"][..], &["-Wl,--hash-style=sysv"], &["-rdynamic"]] {
        let ([plain, with, _], told) = own_function("close", link, store.path());
        assert_eq!(plain.output, with.output, "{link:?}");
        assert_eq!(told.as_deref(), Some(Path::new("close")), "{link:?}");
    }
    // Functions that nobody else has, whatever else the program holds.
    for link in [&["-no-pie"][..], &["-rdynamic"], &["-Wl,--hash-style=sysv"]] {
        let ([plain, with, trace], told) = own_function("of_nobody", link, store.path());
        assert_eq!(plain.output, with.output, "{link:?}");
        assert_eq!((with.of_size(size), told), (1, None), "{}", with.log);
        assert_eq!(trace.launched().len(), 1, "{link:?}");
    }
}

/// What a program that closes the driver, or forks, does without the library and with it.
fn closes(what: &str, flags: &[&str]) -> Option<[Run; 3]> {
    let (store, _) = store(&variant("fake_fast"));
    let folder = tempfile::tempdir().expect("folder");
    let program = folder.path().join("closes").display().to_string();
    let built = Command::new("cc")
        .args(["-w", "-O1", "-o", &program])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/closes.c"))
        .args(flags)
        .arg("-ldl")
        .output();
    if !built.expect("cc").status.success() {
        return None;
    }
    let cubin = workshop()?.dir.path().join("scale.cubin");
    let cubin = cubin.display().to_string();
    let run = |mode| {
        run(&Setup {
            mode,
            before: &[&program, &cubin, what],
            store: Some(store.path()),
            ..Setup::default()
        })
    };
    Some(["", "with", "trace"].map(run))
}

/// The driver goes when the program closes it, and what is opened behind that is another one, in its place.
fn drivers_are_closed() {
    let (_, size) = store(&variant("fake_fast"));
    let [plain, with, trace] = closes("close", &[]).expect("a program");
    for text in ["closed 0", "in its place"] {
        assert!(plain.stdout().contains(text), "{}", plain.stdout());
    }
    for other in [&with, &trace] {
        assert_eq!(plain.stdout(), other.stdout(), "{}", other.log);
        assert_eq!(plain.output.status, other.output.status);
    }
    assert_eq!(with.of_size(size), 2, "{}", with.log);
}

/// Runs `between` without the library, with winners and traced: all say the same.
fn between(cubin: &str, store: &Path, words: &[&str], tool: (&str, bool, &[(&str, &str)])) -> Run {
    let place = |name: &str| workshop().expect("a toolkit").dir.path().join(name);
    let [program, cubin] = ["between", cubin].map(|name| place(name).display().to_string());
    let mut all = vec![&*program, &*cubin];
    all.extend(words);
    let (tool, tool_is_first, variables) = tool;
    let one = |mode| {
        run(&Setup {
            mode,
            before: &all,
            store: Some(store),
            tool,
            tool_is_first,
            variables,
            ..Setup::default()
        })
    };
    let [plain, with, trace] = ["", "with", "trace"].map(one);
    for other in [&with, &trace] {
        assert_eq!(
            plain.stdout(),
            other.stdout(),
            "{words:?} {tool}: {}",
            other.log
        );
        assert_eq!(plain.output.status, other.output.status, "{words:?} {tool}");
    }
    with
}

/// Whoever stands between a program and the driver is called at each launch, wherever it stands and however it finds the driver.
fn tools_between_stay_there() {
    let (store, size) = store(&variant("fake_fast"));
    for words in [["global", "-", "scale"], ["handle", "-", "scale"]] {
        for is_first in [true, false] {
            for variables in [&[][..], &[("BETWEEN", "libcuda.so.1")]] {
                let tool = ("between.so", is_first, variables);
                let with = between("scale.cubin", store.path(), &words, tool);
                let tools = with.stdout().matches("tool").count();
                assert_eq!(
                    tools,
                    if words[0] == "global" { 3 } else { 0 },
                    "{}",
                    with.log
                );
            }
        }
    }
    let with = between(
        "scale.cubin",
        store.path(),
        &["handle", "-", "scale"],
        ("", false, &[]),
    );
    assert_eq!(with.of_size(size), 3, "{}", with.log);
}

/// What a pipe gives once is not read again, and a launch that the driver refuses may name parameters that lie nowhere.
fn odd_inputs_are_not_touched() {
    let (store, _) = store(&variant("fake_fast"));
    let folder = tempfile::tempdir().expect("folder");
    let pipe = folder.path().join("pipe").display().to_string();
    for words in [&["fifo", &*pipe, "scale"][..], &["nowhere", "-", "scale"]] {
        let _ = std::fs::remove_file(&pipe);
        between("scale.cubin", store.path(), words, ("", false, &[]));
        let _ = std::fs::remove_file(&pipe);
    }
}

/// Kernels of ours in a program's module are not to be seen, whatever becomes of other contexts.
fn own_kernels_stay_hidden() {
    let fast = compile(&weigh(FAST, VARIABLES)).expect("a toolkit");
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path());
    store.put(&winner_for("weigh", &fast)).expect("written");
    let with = between(
        "weigh.cubin",
        folder.path(),
        &["context", "-", "weigh"],
        ("", false, &[]),
    );
    assert!(with.stdout().contains("0 kernels 2"), "{}", with.stdout());
    assert!(with.log.contains("`weigh` is replaced"), "{}", with.log);
}

/// Runs `amid` without the library and in each of these modes: all say the same. The last run.
fn amid(store: &Path, deed: &str, modes: &[&str]) -> Run {
    let place = |name: &str| workshop().expect("a toolkit").dir.path().join(name);
    let program = if deed == "first" {
        "amid-linked"
    } else {
        "amid"
    };
    let [program, cubin] = [program, "scale.cubin"].map(|name| place(name).display().to_string());
    let one = |mode: &str| {
        run(&Setup {
            mode,
            before: &["timeout", "60", &program, &cubin, deed],
            store: Some(store),
            variables: &[("FAKE_LOG", ""), ("FAKE_FREE", "1")],
            ..Setup::default()
        })
    };
    let plain = one("");
    assert_eq!(
        plain.output.status.code(),
        Some(3),
        "{deed}: {:?}",
        plain.output
    );
    let mut last = None;
    for mode in modes {
        let other = one(mode);
        let what = format!("{deed} {mode}: {}", other.log);
        assert_eq!(plain.stdout(), other.stdout(), "{what}");
        assert_eq!(plain.output.status, other.output.status, "{what}");
        last = Some(other);
    }
    last.expect("a mode")
}

const MODES: [&str; 3] = ["trace", "trace+with", "with"];

/// Signals, cancellations and jumps in the middle of the library's work are what they would be without it.
fn nothing_comes_between() {
    let (store, _) = store(&variant("fake_fast"));
    for deed in ["handler", "stack", "jump", "cancel", "vfork"] {
        amid(store.path(), deed, &MODES);
    }
}

/// A thread has what it had: how it computes, an error of the dynamic linker's; and whoever may not read the clock does not.
fn threads_keep_what_they_hold() {
    let (store, _) = store(&variant("fake_fast"));
    for deed in ["numbers", "error", "tsc", "dispatch", "size"] {
        amid(store.path(), deed, &MODES);
    }
}

/// Whoever loads and launches asks the dynamic linker for nothing: its locks may be held by a thread that waits for this one, or
/// that a forked child does not have.
fn the_dynamic_linker_may_be_locked() {
    let (store, _) = store(&variant("fake_fast"));
    for deed in ["locked", "busy", "bare", "exits", "first"] {
        let with = amid(store.path(), deed, &MODES);
        assert!(with.log.contains("is replaced"), "{deed}: {}", with.log);
    }
}

/// However many nodes have winners in another shape, who reads one sees its own launch, and one whose winner has to go gets it back.
fn shapes_of_many_nodes_are_known() {
    let folder = tempfile::tempdir().expect("folder");
    let version = Winner {
        shape: "block=64,1,1".parse().expect("a shape"),
        ..winner(&variant("fake_fast"))
    };
    Store::at(folder.path()).keep(&version).expect("written");
    let run_in = |mode| {
        run(&Setup {
            mode,
            scenario: "graph-many",
            store: Some(folder.path()),
            ..Setup::default()
        })
    };
    let (plain, with) = (run_in(""), run_in("with"));
    assert_eq!(plain.stdout(), with.stdout(), "{}", with.log);
    let nodes = with.launches.lines();
    let shaped = nodes.filter(|line| line.contains(" grid 16 block 64 "));
    assert!(shaped.count() >= 1 << 16, "{}", with.log);
}

/// A winner that is refused where its graph is made executable, or launched, gives way to the program's kernel.
fn graphs_that_are_refused_get_their_own_kernels() {
    for name in ["fake_unmade", "fake_unstarted"] {
        let (store, _) = store(&variant(name));
        let with = amid(store.path(), "graph", &MODES);
        assert!(
            with.log.contains("is not replaced any more"),
            "{}",
            with.log
        );
    }
    let (store, _) = store(&variant("fake_unmade"));
    amid(store.path(), "gone", &MODES);
    for name in ["fake_fast", "fake_unmade", "fake_unstarted"] {
        let (store, _) = self::store(&variant(name));
        amid(store.path(), "kernel", &MODES);
    }
}

/// A node may have the handle of one that is gone, with a winner in it as well.
fn nodes_with_the_handles_of_others_are_others() {
    let (store, _) = store(&variant("fake_fast"));
    let with = amid(store.path(), "again", &MODES);
    // The driver gives the handle again, or nothing is shown.
    let said = with.stdout();
    let again = said.lines().filter(|line| line.ends_with(" 0 1"));
    assert_eq!(again.count(), 2, "{said}");
}

/// LeakSanitizer finds all that a forked child has of the library.
fn children_lose_nothing() {
    let Some([plain, with, trace]) = closes("fork", &["-fsanitize=leak"]) else {
        return;
    };
    for other in [&with, &trace] {
        assert_eq!(plain.stdout(), other.stdout(), "{:?}", other.output);
        assert_eq!(plain.output.status, other.output.status);
    }
}

fn main() {
    let tests: [(&str, fn()); 68] = [
        (
            "shapes_of_many_nodes_are_known",
            shapes_of_many_nodes_are_known,
        ),
        ("winners_in_graphs_take_turns", winners_in_graphs_take_turns),
        (
            "kernels_of_graphs_are_tried_as_they_are_updated",
            kernels_of_graphs_are_tried_as_they_are_updated,
        ),
        (
            "little_memory_while_the_program_waits",
            little_memory_while_the_program_waits,
        ),
        (
            "memory_is_taken_while_the_program_waits",
            memory_is_taken_while_the_program_waits,
        ),
        ("nothing_comes_between", nothing_comes_between),
        ("threads_keep_what_they_hold", threads_keep_what_they_hold),
        (
            "the_dynamic_linker_may_be_locked",
            the_dynamic_linker_may_be_locked,
        ),
        (
            "graphs_that_are_refused_get_their_own_kernels",
            graphs_that_are_refused_get_their_own_kernels,
        ),
        (
            "nodes_with_the_handles_of_others_are_others",
            nodes_with_the_handles_of_others_are_others,
        ),
        ("tools_between_stay_there", tools_between_stay_there),
        ("odd_inputs_are_not_touched", odd_inputs_are_not_touched),
        ("own_kernels_stay_hidden", own_kernels_stay_hidden),
        ("builders_die_in_the_middle", builders_die_in_the_middle),
        (
            "memory_is_full_while_the_program_waits",
            memory_is_full_while_the_program_waits,
        ),
        (
            "launches_with_a_value_are_tried_by_themselves",
            launches_with_a_value_are_tried_by_themselves,
        ),
        (
            "guards_are_tested_at_each_launch",
            guards_are_tested_at_each_launch,
        ),
        ("drivers_are_closed", drivers_are_closed),
        ("children_lose_nothing", children_lose_nothing),
        (
            "environments_stay_the_programs",
            environments_stay_the_programs,
        ),
        (
            "programs_of_other_kinds_start",
            programs_of_other_kinds_start,
        ),
        (
            "the_dynamic_linker_answers_as_ever",
            the_dynamic_linker_answers_as_ever,
        ),
        (
            "programs_without_the_driver_need_next_to_nothing",
            programs_without_the_driver_need_next_to_nothing,
        ),
        ("own_functions_are_not_called", own_functions_are_not_called),
        ("little_stack_ends_nobody", little_stack_ends_nobody),
        ("little_memory_ends_nobody", little_memory_ends_nobody),
        (
            "damaged_modules_are_not_read_beyond",
            damaged_modules_are_not_read_beyond,
        ),
        (
            "threads_are_cancelled_where_they_would_be",
            threads_are_cancelled_where_they_would_be,
        ),
        (
            "sums_in_no_fixed_order_are_tried",
            sums_in_no_fixed_order_are_tried,
        ),
        ("ptx_of_compilers_is_kept", ptx_of_compilers_is_kept),
        ("guards_decide_at_launches", guards_decide_at_launches),
        ("other_tools_are_chained", other_tools_are_chained),
        ("logs_disturb_nobody", logs_disturb_nobody),
        (
            "folders_are_those_of_the_start",
            folders_are_those_of_the_start,
        ),
        (
            "stores_of_others_are_refused_or_told",
            stores_of_others_are_refused_or_told,
        ),
        (
            "unfit_winners_do_not_reach_the_driver",
            unfit_winners_do_not_reach_the_driver,
        ),
        (
            "clusters_come_from_functions_and_nodes",
            clusters_come_from_functions_and_nodes,
        ),
        (
            "options_that_choose_among_code_are_respected",
            options_that_choose_among_code_are_respected,
        ),
        (
            "kernels_of_many_winners_start",
            kernels_of_many_winners_start,
        ),
        (
            "random_programs_see_what_they_see_without_the_library",
            random_programs_see_what_they_see_without_the_library,
        ),
        (
            "kernels_with_variables_are_replaced_in_their_module",
            kernels_with_variables_are_replaced_in_their_module,
        ),
        (
            "what_does_not_fit_into_a_module_is_left_out",
            what_does_not_fit_into_a_module_is_left_out,
        ),
        (
            "searches_for_kernels_with_variables_work_on_the_programs",
            searches_for_kernels_with_variables_work_on_the_programs,
        ),
        (
            "candidates_for_kernels_with_variables_are_tried_in_their_module",
            candidates_for_kernels_with_variables_are_tried_in_their_module,
        ),
        (
            "kernels_that_print_are_left_alone",
            kernels_that_print_are_left_alone,
        ),
        (
            "rounding_is_let_through_where_it_is_allowed",
            rounding_is_let_through_where_it_is_allowed,
        ),
        (
            "clusters_are_classes_of_their_own",
            clusters_are_classes_of_their_own,
        ),
        (
            "variables_of_modules_are_put_back",
            variables_of_modules_are_put_back,
        ),
        ("memory_of_other_contexts", memory_of_other_contexts),
        (
            "candidates_are_tried_and_change_nothing",
            candidates_are_tried_and_change_nothing,
        ),
        ("searches_wait_for_answers", searches_wait_for_answers),
        (
            "caches_are_those_of_the_program",
            caches_are_those_of_the_program,
        ),
        ("kernels_of_graphs_are_tried", kernels_of_graphs_are_tried),
        ("managed_memory_is_saved", managed_memory_is_saved),
        (
            "searches_end_where_nobody_answers",
            searches_end_where_nobody_answers,
        ),
        ("culprits_are_named", culprits_are_named),
        (
            "what_cannot_be_saved_is_refused",
            what_cannot_be_saved_is_refused,
        ),
        (
            "winners_are_launched_through_every_door",
            winners_are_launched_through_every_door,
        ),
        (
            "winners_are_launched_in_every_way",
            winners_are_launched_in_every_way,
        ),
        ("attributes_follow", attributes_follow),
        ("forks_are_survived", forks_are_survived),
        ("doubts_pass_through", doubts_pass_through),
        (
            "later_signatures_are_not_touched",
            later_signatures_are_not_touched,
        ),
        ("other_images_are_let_through", other_images_are_let_through),
        ("fat_binaries_are_read", fat_binaries_are_read),
        (
            "launches_are_counted_and_timed",
            launches_are_counted_and_timed,
        ),
        ("graphs_are_counted_and_timed", graphs_are_counted_and_timed),
        (
            "programs_without_the_driver_see_nothing",
            programs_without_the_driver_see_nothing,
        ),
    ];
    let required = std::env::var_os("WARPWRIGHT_REQUIRE_TOOLKIT").is_some_and(|v| v == "1");
    let trials = tests.into_iter().map(|(name, test)| {
        Trial::test(name, move || {
            if workshop().is_none() {
                assert!(!required, "there is no toolkit");
                println!("SKIPPED {name}: there is no toolkit");
                return Ok(());
            }
            test();
            Ok::<(), Failed>(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
