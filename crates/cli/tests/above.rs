//! What a program does not see, and who started it neither, of the `trace`, `tune` or `with` above it: signals, stops, ends,
//! and outputs that nobody takes. No GPU, no driver and no toolkit is there.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const COMMANDS: [&str; 3] = ["trace", "tune", "with"];

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("tmp")).expect("made");
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts words in the folder.
    fn set(&self, mut command: Command) -> Command {
        let library = std::env::current_exe().expect("own path");
        let library = library.with_file_name("libwarpwright_inject.so");
        command
            .current_dir(self.folder.path())
            .env("WARPWRIGHT_INJECT", library)
            .env("WARPWRIGHT_DB", self.path("db"))
            .env("TMPDIR", self.path("tmp"));
        command
    }

    /// These words below a command of ours, or alone.
    fn below(&self, command: Option<&str>, words: &[&str]) -> Command {
        let Some(name) = command else {
            let (first, others) = words.split_first().expect("a program");
            let mut plain = Command::new(first);
            plain.args(others);
            return self.set(plain);
        };
        let mut own = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        own.args([name, "--"]).args(words);
        self.set(own)
    }

    /// A program of the folder `program`.
    fn build(&self, name: &str) {
        self.build_as(name, name, &[]);
    }

    fn build_as(&self, name: &str, out: &str, flags: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program");
        let mut cc = Command::new("cc");
        cc.args(["-w", "-o"]).arg(self.path(out)).args(flags);
        let status = cc.arg(source.join(format!("{name}.c"))).status();
        assert!(status.expect("cc").success());
    }

    /// Runs a line of shell with the program's path in `$OWN`.
    fn shell(&self, line: &str) -> Output {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]);
        shell.env("OWN", env!("CARGO_BIN_EXE_warpwright"));
        self.set(shell).output().expect("starts")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Starts a command, in a group of its own, and waits until its program says that it is ready, on standard error.
fn started(mut command: Command) -> Child {
    command.process_group(0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        let read = stderr.read_line(&mut line);
        assert!(read.expect("text") > 0, "it has ended");
    }
    // Whatever else is said there finds room.
    std::thread::spawn(move || stderr.lines().count());
    child
}

fn kill(words: &[&str], child: &Child) {
    let id = child.id().to_string();
    let to = words
        .last()
        .map_or(String::new(), |last| last.replace("ID", &id));
    let (_, first) = words.split_last().expect("words");
    let sent = Command::new("kill").args(first).arg(to).status();
    assert!(sent.expect("kill").success());
}

/// Each signal reaches the program once, whether it is sent to the command or to its group, with what was sent along.
#[test]
fn every_signal_reaches_the_program_once() {
    let bench = Bench::new();
    bench.build("told");
    // Those that nobody can take; the C library's own.
    let not_sent = [9, 19, 32, 33];
    let signals = (1..=64).filter(|signal| !not_sent.contains(signal));
    let signals: Vec<String> = signals.map(|signal| signal.to_string()).collect();
    for to in ["ID", "-ID"] {
        let run = |command: Option<&str>| {
            let child = started(bench.below(command, &["./told"]));
            for signal in &signals {
                kill(&["-s", signal, "--", to], &child);
                std::thread::sleep(Duration::from_millis(15));
                // A value goes along.
                if signal == "40" {
                    kill(&["-q", "7", "-s", "41", "--", "ID"], &child);
                }
            }
            let ended = child.wait_with_output().expect("ends");
            let said = text(&ended.stdout);
            let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
            lines.truncate(signals.len() + 1);
            lines.sort();
            (lines, ended.status.code())
        };
        let plain = run(None);
        assert_eq!(plain.1, Some(9));
        assert_eq!(plain.0.len(), signals.len() + 1, "{:?}", plain.0);
        assert!(plain.0.contains(&"41 7".to_owned()));
        for command in COMMANDS {
            assert_eq!(run(Some(command)), plain, "{command} {to}");
        }
    }
}

/// A command ends by the signal that ends its program, and leaves no program behind.
#[test]
fn a_signal_that_ends_the_program_ends_the_command() {
    let bench = Bench::new();
    let script = "echo $$ > pid; echo ready >&2; exec sleep 60";
    // The command alone is killed; the others reach the program.
    let all = [6, 9, 11, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 33, 34, 64];
    for (command, signals) in [
        ("trace", &all[..]),
        ("tune", &[9, 14, 27, 34]),
        ("with", &[14, 34]),
    ] {
        for signal in signals {
            let child = started(bench.below(Some(command), &["sh", "-c", script]));
            kill(&["-s", &signal.to_string(), "--", "ID"], &child);
            let ended = child.wait_with_output().expect("ends");
            assert_eq!(ended.status.signal(), Some(*signal), "{command}");
            let pid = std::fs::read_to_string(bench.path("pid")).expect("a number");
            let program = format!("/proc/{}/comm", pid.trim());
            let is_running =
                || std::fs::read_to_string(&program).is_ok_and(|name| name == "sleep\n");
            for _ in 0..500 {
                if is_running() {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            assert!(!is_running(), "{command} {signal}");
        }
    }
    // So where nobody sent it to the command.
    for signal in [11, 15] {
        for command in COMMANDS {
            let script = format!("kill -{signal} $$");
            let ended = bench.below(Some(command), &["sh", "-c", &script]).output();
            let ended = ended.expect("starts").status;
            assert_eq!(ended.signal(), Some(signal), "{command}");
        }
    }
}

/// A timer that was set before the command was started is for the program.
#[test]
fn timers_of_the_start_are_the_programs() {
    let bench = Bench::new();
    let timer = "alarm 3; exec @ARGV";
    let program = "$SIG{ALRM} = sub { print \"rang\\n\"; exit 5 }; sleep 60";
    for command in COMMANDS {
        let own = env!("CARGO_BIN_EXE_warpwright");
        let words = [
            "perl", "-e", timer, own, command, "--", "perl", "-e", program,
        ];
        let ended = bench.below(None, &words).output().expect("starts");
        let found = (text(&ended.stdout), ended.status.code());
        assert_eq!(found, ("rang\n".into(), Some(5)), "{command}");
    }
}

/// What a program sends to the process that started it arrives where the program alone would have sent it.
#[test]
fn signals_of_the_program_go_up() {
    let bench = Bench::new();
    for command in ["", "$OWN trace --", "$OWN tune --"] {
        let line = format!(
            "trap 'echo up' USR1; {command} sh -c 'kill -USR1 $PPID; sleep 0.3; exit 4' & wait $!; \
             wait $! 2> /dev/null; echo $?"
        );
        let ended = bench.shell(&line);
        let said = text(&ended.stdout);
        assert!(
            said.starts_with("up\n") && said.ends_with("4\n"),
            "{command}: {said}"
        );
    }
}

/// The state of a process, as the kernel has it.
fn state(id: u32) -> char {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let behind = text.rsplit_once(") ").map(|(_, rest)| rest);
    behind.and_then(|rest| rest.chars().next()).unwrap_or('?')
}

fn becomes(id: u32, wanted: char) -> bool {
    (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        state(id) == wanted
    })
}

/// A program that stops, by itself or as it is told to, stops the command, and both go on together.
#[test]
fn commands_stop_and_go_on_with_their_program() {
    let bench = Bench::new();
    for command in ["trace", "tune"] {
        let script = "echo ready >&2; kill -STOP $$; echo on; exit 3";
        let child = started(bench.below(Some(command), &["sh", "-c", script]));
        assert!(becomes(child.id(), 'T'), "{command}");
        kill(&["-CONT", "ID"], &child);
        let ended = child.wait_with_output().expect("ends");
        assert!(text(&ended.stdout).starts_with("on\n"), "{command}");
        assert_eq!(ended.status.code(), Some(3), "{command}");
        let script = "echo $$ > pid; echo ready >&2; exec sleep 60";
        let mut child = started(bench.below(Some(command), &["sh", "-c", script]));
        let pid = std::fs::read_to_string(bench.path("pid")).expect("a number");
        let pid = pid.trim().parse().expect("a number");
        kill(&["-TSTP", "ID"], &child);
        assert!(becomes(child.id(), 'T') && becomes(pid, 'T'), "{command}");
        kill(&["-CONT", "ID"], &child);
        assert!(becomes(child.id(), 'S') && becomes(pid, 'S'), "{command}");
        kill(&["-TERM", "ID"], &child);
        assert_eq!(child.wait().expect("ends").signal(), Some(15), "{command}");
    }
}

/// What stops the whole group and has it go on leaves nobody stopped, and is heard once.
#[test]
fn groups_stop_and_go_on_as_one() {
    let bench = Bench::new();
    // No shell: one that stops while it starts a process is in another state.
    let program = "$SIG{CONT} = sub { syswrite STDOUT, \"on\n\" }; $SIG{USR1} = sub { exit 3 }; \
                   syswrite STDERR, \"ready\n\"; sleep 1 while 1";
    for command in [None, Some("trace"), Some("tune"), Some("with")] {
        for signal in ["-STOP", "-TSTP"] {
            let child = started(bench.below(command, &["perl", "-e", program]));
            for _ in 0..2 {
                kill(&[signal, "--", "-ID"], &child);
                assert!(becomes(child.id(), 'T'), "{command:?} {signal}");
                std::thread::sleep(Duration::from_millis(100));
                kill(&["-CONT", "--", "-ID"], &child);
                std::thread::sleep(Duration::from_millis(300));
                assert_ne!(state(child.id()), 'T', "{command:?} {signal}");
            }
            kill(&["-USR1", "ID"], &child);
            let ended = child.wait_with_output().expect("ends");
            assert!(
                text(&ended.stdout).starts_with("on\non\n"),
                "{command:?} {signal}"
            );
            assert!(
                !text(&ended.stdout).starts_with("on\non\non\n"),
                "{command:?} {signal}"
            );
            assert_eq!(ended.status.code(), Some(3), "{command:?} {signal}");
        }
    }
}

/// Whoever stops a program by its number may have it go on so.
#[test]
fn a_program_goes_on_that_somebody_stops_and_wakes_by_its_number() {
    let bench = Bench::new();
    let script = "trap 'echo on' CONT; echo ready >&2; (sleep 0.4; kill -CONT $$) & kill SIGNAL $$; wait; echo ok; exit 3";
    for command in [None, Some("trace"), Some("tune"), Some("with")] {
        for signal in ["-STOP", "-TSTP"] {
            let script = script.replace("SIGNAL", signal);
            let child = started(bench.below(command, &["sh", "-c", &script]));
            let ended = child.wait_with_output().expect("ends");
            let printed = text(&ended.stdout);
            assert!(
                printed.starts_with("on\nok\n"),
                "{command:?} {signal}: {printed}"
            );
            assert_eq!(ended.status.code(), Some(3), "{command:?} {signal}");
        }
    }
}

/// Puts the library that the preloaded one opens into a folder.
fn link_opened(preloaded: &Path, folder: &Path) {
    let name = "libwarpwright_inplace.so";
    let linked = symlink(preloaded.with_file_name(name), folder.join(name));
    linked.expect("linked");
}

/// What a program starts where the library cannot be opened is not told of it.
#[test]
fn nobody_is_told_of_a_library_that_is_out_of_reach() {
    let bench = Bench::new();
    let library = std::env::current_exe().expect("own path");
    let library = library.with_file_name("libwarpwright_inject.so");
    let of_library = |command: &mut Command, place: &Path| {
        std::fs::copy(&library, place).expect("copied");
        command.env("WARPWRIGHT_INJECT", place);
    };
    bench.build("starts");
    link_opened(&library, bench.folder.path());
    let place = bench.path("lib.so");
    for way in [
        "execve",
        "execv",
        "execvp",
        "execvpe",
        "execl",
        "execlp",
        "execle",
        "execle-long",
        "fexecve",
        "system",
        "popen",
        "posix_spawn",
        "posix_spawnp",
    ] {
        for others in [
            "",
            "libm.so.6",
            "libm.so.6:libdl.so.2",
            "libm.so.6 libdl.so.2",
        ] {
            let words = ["./starts", way, "lib.so"];
            let [plain, below] = [None, Some("with")].map(|command| {
                let mut command = bench.below(command, &words);
                of_library(&mut command, &place);
                command.env("LD_PRELOAD", others).output().expect("starts")
            });
            assert_eq!(text(&plain.stderr), text(&below.stderr), "{way} {others}");
            assert_eq!(plain.stdout, below.stdout, "{way} {others}");
            assert_eq!(plain.status, below.status, "{way} {others}");
            assert!(
                text(&plain.stdout).contains(&format!("LD_PRELOAD={others}.")),
                "{plain:?}"
            );
        }
    }
}

/// Where nobody takes what a command says, it ends as its program, and never by a panic.
#[test]
fn outputs_that_nobody_takes_cost_no_exit_code() {
    let bench = Bench::new();
    let closed = ">&- 2>&-";
    let gone = "> gone 2>&1";
    for more in [
        "trace --",
        "trace --json --",
        "trace -o t.json --",
        "tune --",
        "tune --json --",
    ] {
        for to in ["> /dev/full", "> /dev/full 2>&1", closed] {
            let ended = bench.shell(&format!("$OWN {more} sh -c 'exit 7' {to}"));
            assert_eq!(ended.status.code(), Some(7), "{more} {to}");
        }
        // A pipe whose reader has left.
        let _ = std::fs::remove_file(bench.path("gone"));
        let line =
            format!("mkfifo gone; sleep 0.1 < gone & $OWN {more} sh -c 'sleep 0.5; exit 7' {gone}");
        let ended = bench.shell(&line);
        assert_eq!(ended.status.code(), Some(7), "{more} {gone}");
    }
    // Other commands keep the code of what is wrong.
    for (words, code) in [
        ("explain absent.ptx --json", 1),
        ("explain absent.ptx", 1),
        ("explain --no-such-option --json", 2),
        ("explain-term warp", 1),
    ] {
        let ended = bench.shell(&format!("$OWN {words} > /dev/full 2>&1"));
        assert_eq!(ended.status.code(), Some(code), "{words}");
    }
}

/// Nothing is written over a program, what it reads, or where it writes: under whatever name.
#[test]
fn results_take_no_place_of_the_program() {
    let bench = Bench::new();
    let program = "#!/bin/sh\necho ran >> runs\n";
    std::fs::write(bench.path("prog"), program).expect("written");
    std::fs::write(bench.path("data"), "data").expect("written");
    let made = Command::new("chmod")
        .arg("+x")
        .arg(bench.path("prog"))
        .status();
    assert!(made.expect("chmod").success());
    for name in ["prog", "data"] {
        symlink(name, bench.path(&format!("link-{name}"))).expect("a link");
        let hard = bench.path(&format!("hard-{name}"));
        std::fs::hard_link(bench.path(name), hard).expect("a link");
    }
    for option in ["trace -o", "tune --keep", "tune --report-to"] {
        for place in [
            "prog",
            "./prog",
            "link-prog",
            "hard-prog",
            "data",
            "link-data",
            "hard-data",
        ] {
            for words in [
                "./prog data < /dev/null",
                "prog --from=data < /dev/null",
                "./prog --in=data < data",
                "sh ./prog data",
            ] {
                let line = format!("PATH=.:$PATH; $OWN {option} {place} -- {words}");
                let ended = bench.shell(&line);
                let said = text(&ended.stderr);
                assert_eq!(ended.status.code(), Some(1), "{line}: {said}");
                assert!(said.contains("is an input"), "{line}: {said}");
            }
        }
        let ended = bench.shell(&format!("$OWN {option} out -- ./prog > out"));
        let said = text(&ended.stderr);
        assert!(said.contains("written twice"), "{option}: {said}");
    }
    assert!(!bench.path("runs").exists());
    for (name, wanted) in [("prog", program), ("data", "data")] {
        let found = std::fs::read_to_string(bench.path(name)).expect("text");
        assert_eq!(found, wanted);
    }
}

/// A trace needs a file, other results go wherever they are sent; what cannot be written is told before the program runs.
#[test]
fn results_go_where_they_are_sent_or_that_is_told_first() {
    let bench = Bench::new();
    let made = Command::new("mkfifo").arg(bench.path("pipe")).status();
    assert!(made.expect("mkfifo").success());
    std::fs::write(bench.path("t.modules"), "no folder").expect("written");
    let places = [
        "/dev/stdout",
        "/dev/fd/1",
        "/dev/null",
        "pipe",
        "-",
        "t",
        ".",
    ];
    for (option, places) in [
        ("trace -o", &places[..]),
        ("tune --keep", &["pipe", "."]),
        ("tune --report-to", &["pipe"]),
    ] {
        for place in places {
            let ended = bench.shell(&format!("$OWN {option} {place} -- touch ran | cat"));
            assert!(!bench.path("ran").exists(), "{option} {place}");
            assert!(!text(&ended.stderr).is_empty(), "{option} {place}");
        }
    }
    // What is no trace: behind what is there already, and to a reader that waits for it.
    std::fs::write(
        bench.path("k.ptx"),
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n",
    )
    .expect("written");
    let pass = "$OWN pass print k.ptx -o";
    for place in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"] {
        let ended = bench.shell(&format!("{{ echo first; {pass} {place}; }} > out; cat out"));
        let said = text(&ended.stdout);
        assert!(
            said.starts_with("first\n.version"),
            "{place}: {said} {}",
            text(&ended.stderr)
        );
        let piped = text(&bench.shell(&format!("{pass} {place} | cat")).stdout);
        assert!(piped.starts_with(".version"), "{place}: {piped}");
    }
    let ended = bench.shell(&format!("cat pipe & sleep 0.3; {pass} pipe; wait"));
    assert!(
        text(&ended.stdout).starts_with(".version"),
        "{}",
        text(&ended.stderr)
    );
    let ended = bench.shell(&format!("{pass} pipe"));
    assert!(
        text(&ended.stderr).contains("nobody reads it"),
        "{}",
        text(&ended.stderr)
    );
}

/// A path that the dynamic linker would read as something else is told, and the program does not run without the library.
#[test]
fn paths_that_cannot_be_preloaded_are_told() {
    let bench = Bench::new();
    let library = std::env::current_exe().expect("own path");
    let library = library.with_file_name("libwarpwright_inject.so");
    let mut folder = bench.path("plain");
    std::fs::create_dir(&folder).expect("made");
    std::fs::copy(&library, folder.join("own.so")).expect("copied");
    link_opened(&library, &folder);
    for name in ["with blank", "with:colon", "$ORIGIN", "${LIB}"] {
        let next = bench.path(name);
        std::fs::rename(&folder, &next).expect("renamed");
        folder = next;
        for command in COMMANDS {
            let mut started = bench.below(Some(command), &["touch", "ran"]);
            started.env("WARPWRIGHT_INJECT", folder.join("own.so"));
            let ended = started.output().expect("starts");
            let said = text(&ended.stderr);
            assert_eq!(ended.status.code(), Some(1), "{command} {name}: {said}");
            assert!(said.contains("dynamic linker takes no path"), "{said}");
        }
    }
    assert!(!bench.path("ran").exists());
}

/// A program that empties the temporary folder loses the trace and nothing else, and that is told.
#[test]
fn an_emptied_temporary_folder_is_told() {
    let bench = Bench::new();
    for command in ["trace", "tune"] {
        for script in ["rm -rf $TMPDIR/*; exit 7", "rm -rf $TMPDIR; exit 7"] {
            std::fs::create_dir_all(bench.path("tmp")).expect("made");
            let ended = bench.below(Some(command), &["sh", "-c", script]).output();
            let ended = ended.expect("starts");
            let said = text(&ended.stderr);
            assert_eq!(ended.status.code(), Some(7), "{command}: {said}");
            assert!(said.contains("was the temporary"), "{command}: {said}");
        }
    }
}

/// What a command says while a program says something, too, is marked, line by line.
#[test]
fn lines_beside_those_of_a_program_are_marked() {
    let bench = Bench::new();
    let own = env!("CARGO_BIN_EXE_warpwright");
    let says = ["sh", "-c", "echo own >&2; exit 3"];
    let below = [&[own, "trace", "--"][..], &says].concat();
    let missing = ["./none"];
    for command in COMMANDS {
        for (words, code) in [(&says[..], 3), (&below, 3), (&missing, 1)] {
            let ended = bench.below(Some(command), words).output().expect("starts");
            let said = text(&ended.stderr);
            let others: Vec<&str> = said.lines().filter(|line| *line != "own").collect();
            let is_ours = |line: &&str| line.starts_with("warpwright: ");
            assert!(others.iter().all(is_ours), "{command} {words:?}: {said}");
            let is_silent = command == "with" && words == says;
            assert_eq!(others.is_empty(), is_silent, "{command} {words:?}: {said}");
            assert_eq!(ended.status.code(), Some(code), "{command} {words:?}");
        }
    }
}

/// A program gets no variables but those of the library; where the PTX of what CuPy compiles is wanted, its cache is another.
#[test]
fn no_other_variables_are_set() {
    let bench = Bench::new();
    let of = |command: &str, more: &[&str]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        run.arg(command).args(more).args(["--", "env"]);
        let mut run = bench.set(run);
        let said = text(&run.output().expect("starts").stdout);
        let set = said
            .lines()
            .filter_map(|line| Some(line.split_once('=')?.0.to_owned()));
        set.filter(|name| !name.starts_with("WARPWRIGHT") && name != "LD_PRELOAD")
            .collect::<Vec<String>>()
    };
    let plain = bench.below(None, &["env"]).output().expect("starts");
    let plain = text(&plain.stdout);
    let names = plain
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0.to_owned()));
    let plain: Vec<String> = names
        .filter(|name| !name.starts_with("WARPWRIGHT"))
        .collect();
    for command in ["with", "trace"] {
        assert_eq!(of(command, &[]), plain, "{command}");
    }
    let cupy = [&plain[..], &["CUPY_CACHE_DIR".to_owned()]].concat();
    assert_eq!(of("trace", &["-o", "T.json"]), cupy);
    assert_eq!(of("tune", &[]), cupy);
}

/// nvcc has the environment as it is.
#[test]
fn nvcc_gets_the_environment_in_its_order() {
    let bench = Bench::new();
    let bin = bench.path("toolkit/bin");
    std::fs::create_dir_all(&bin).expect("made");
    std::fs::write(bin.join("nvcc.profile"), "").expect("written");
    let tool = "#!/bin/sh\ncase $1 in --version) echo 'release 13.0, V13.0.88';; *) tr '\\0' '\\n' < /proc/$$/environ;; esac\n";
    for name in ["nvcc", "ptxas"] {
        std::fs::write(bin.join(name), tool).expect("written");
        let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(bin.join(name), may_run).expect("set");
    }
    let set = |name: &str, path: &str| format!("{name}={}", bench.path(path).display());
    let expected = [
        "ZED=1".to_owned(),
        set("WARPWRIGHT_TOOLKIT", "toolkit"),
        "ABC=2".to_owned(),
        set("WARPWRIGHT_CACHE", "cache"),
        "PATH=/usr/bin:/bin".to_owned(),
        "odd=".to_owned(),
    ];
    let mut words = Command::new("env");
    words.arg("-i").args(&expected);
    words.args([env!("CARGO_BIN_EXE_warpwright"), "nvcc", "--", "x.cu"]);
    let ended = words.output().expect("starts");
    let said = text(&ended.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines.starts_with(&expected.each_ref().map(String::as_str)),
        "{said}{}",
        text(&ended.stderr)
    );
}

/// The mark of a core in a program's end is in the command's, and the core is the program's.
#[test]
fn a_core_leaves_its_mark() {
    let bench = Bench::new();
    let pattern = std::fs::read("/proc/sys/kernel/core_pattern").expect("a pattern");
    // A place for the cores of all is left to the program.
    let is_left = pattern.starts_with(b"/");
    for limit in ["unlimited", "0"] {
        for signal in [6, 11, 15] {
            let run = |command: Option<&str>| {
                let place = bench.path(&format!("{}-{limit}-{signal}", command.unwrap_or("alone")));
                std::fs::create_dir(&place).expect("made");
                let words = format!("ulimit -c {limit}; exec \"$@\"");
                let below = bench.below(command, &["sh", "-c", &format!("kill -{signal} $$")]);
                let mut shell = Command::new("sh");
                shell.args(["-c", &words, "sh"]).arg(below.get_program());
                shell.args(below.get_args());
                let ended = bench
                    .set(shell)
                    .current_dir(&place)
                    .status()
                    .expect("starts");
                let cores = std::fs::read_dir(&place).expect("a folder").flatten();
                let sizes = cores.map(|core| core.metadata().expect("a size").len());
                (ended, sizes.filter(|size| *size > 1 << 16).count())
            };
            let (plain, cores) = run(None);
            assert_eq!(plain.signal(), Some(signal));
            for command in COMMANDS {
                let (found, left) = run(Some(command));
                let what = format!("{command} {limit} {signal}");
                assert_eq!(found.signal(), Some(signal), "{what}");
                let is_marked = plain.core_dumped() && (command == "with" || !is_left);
                assert_eq!(found.core_dumped(), is_marked, "{what}");
                assert_eq!(left, cores, "{what}");
            }
        }
    }
    let is_empty = || {
        std::fs::read_dir(bench.path("tmp"))
            .expect("a folder")
            .count()
            == 0
    };
    assert!((0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        is_empty()
    }));
}

/// A line of a command begins on its own where the program's last one has no end, and nowhere else is anything added.
#[test]
fn lines_behind_those_of_a_program_begin_anew() {
    let bench = Bench::new();
    let ours = |text: &str| text.replace("warpwright: the program runs as it is\n", "");
    for command in ["trace", "tune"] {
        for (script, to, begins) in [
            ("printf last >&2", "2> err", "last\nwarpwright: "),
            ("echo last >&2", "2> err", "last\nwarpwright: "),
            ("printf last >&2", "2>> err", "before\nlast\nwarpwright: "),
            ("printf last", "> err 2>&1", "last\nwarpwright: "),
            (
                "printf last; printf ' of all' >&2",
                "< /dev/null > err 2>&1",
                "last of all\nwarpwright: ",
            ),
            ("printf '\\n' >&2", "2> err", "\nwarpwright: "),
            (":", "2> err", "warpwright: "),
            (":", "2>> err", "before\nwarpwright: "),
            // What is behind the place that is written to is nobody's line.
            (":", "2<> err", "warpwright: "),
            // What waits there is the reader's.
            (
                "printf last >&2",
                "2>&1 > /dev/null | (sleep 0.3; cat > err)",
                "lastwarpwright: ",
            ),
        ] {
            std::fs::write(bench.path("err"), "before\n").expect("written");
            let line = format!("$OWN {command} -- sh -c \"{script}\" {to}");
            bench.shell(&line);
            let said = ours(&std::fs::read_to_string(bench.path("err")).expect("text"));
            assert!(said.starts_with(begins), "{line}: {said}");
            assert!(!said.contains("\n\nw"), "{line}: {said}");
        }
    }
    // A terminal's next line begins behind as many columns as it has, and this one not.
    let spaces = " ".repeat(20);
    for (terminal, begins) in [
        ("xterm", format!("last{spaces}\rwarpwright: ")),
        ("dumb", "lastwarpwright: ".into()),
    ] {
        let words = "stty cols 20; $OWN trace -- sh -c 'printf last >&2'";
        let line = format!("TERM={terminal} script -qec \"{words}\" /dev/null < /dev/null");
        let said = text(&bench.shell(&line).stdout);
        assert!(said.contains(&begins), "{said:?}");
    }
}

/// A connection whose other end has gone without reading what it was sent is an error for each run, and no end.
#[test]
fn an_input_that_is_reset_is_no_end() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    let bench = Bench::new();
    let program = "for (1 .. 4) { my $n = sysread STDIN, my $b, 1 << 20; print defined $n ? \"read $n\n\" : 'error ' . ($! + 0) . \"\n\" } \
                   $SIG{PIPE} = 'IGNORE'; print defined syswrite(STDIN, 'x') ? \"wrote\n\" : 'error ' . ($! + 0) . \"\n\"; exit 3";
    for (bytes, is_reset) in [(0, true), (7, true), (0, false), (7, false)] {
        let [plain, below] = [None, Some("tune")].map(|command| {
            let (mut own, mut other) = UnixStream::pair().expect("sockets");
            other.write_all(&vec![b'x'; bytes]).expect("written");
            own.write_all(b"y").expect("written");
            if !is_reset {
                other.read_exact(&mut [0]).expect("read");
            }
            drop(other);
            let mut run = bench.below(command, &["perl", "-e", program]);
            let ended = run.stdin(std::os::fd::OwnedFd::from(own)).output();
            let ended = ended.expect("starts");
            (text(&ended.stdout), ended.status.code())
        });
        assert_eq!(plain.0.contains("error 104\n"), is_reset, "{}", plain.0);
        assert_eq!(plain, below, "{bytes} {is_reset}");
    }
}

/// What watches beside a program may be stopped alone, and late: that ends nobody.
#[test]
fn a_witness_that_is_late_ends_nobody() {
    let bench = Bench::new();
    let script = "trap 'echo one' USR1; echo $$ > pid; echo ready >&2; i=0; while [ $i -lt 30 ]; do sleep 0.05; i=$((i+1)); done; echo end; exit 4";
    for command in ["trace", "tune"] {
        let child = started(bench.below(Some(command), &["sh", "-c", script]));
        let program = std::fs::read_to_string(bench.path("pid")).expect("a number");
        let id = child.id();
        let all = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let all = all.expect("children");
        let mut others = all.split_whitespace().filter(|one| *one != program.trim());
        let (witness, more) = (others.next().expect("a witness"), others.next());
        assert_eq!(more, None);
        kill(&["-STOP", witness], &child);
        kill(&["-USR1", "ID"], &child);
        // Longer than it is waited for.
        std::thread::sleep(Duration::from_millis(700));
        kill(&["-CONT", witness], &child);
        let ended = child.wait_with_output().expect("ends");
        assert!(
            text(&ended.stdout).starts_with("one\nend\n"),
            "{command}: {}",
            text(&ended.stdout)
        );
        assert_eq!(ended.status.code(), Some(4), "{command}");
    }
}

/// A command that is killed between the fork and the start of its program has that end all the same.
#[test]
fn what_a_killed_command_was_about_to_start_ends() {
    let bench = Bench::new();
    bench.build_as("late", "late.so", &["-shared", "-fPIC"]);
    let mark = bench.path("tmp").display().to_string();
    let live = || {
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let is_ours = |environment: Vec<u8>| {
            environment
                .windows(mark.len())
                .any(|part| part == mark.as_bytes())
        };
        let with_mark =
            all.filter(|one| std::fs::read(one.path().join("environ")).is_ok_and(is_ours));
        with_mark.count()
    };
    for command in ["trace", "tune"] {
        for wait in [100, 300, 420] {
            let mut run = bench.below(Some(command), &["sleep", "60"]);
            run.env("LD_PRELOAD", bench.path("late.so"));
            let mut child = run.stderr(Stdio::null()).spawn().expect("starts");
            std::thread::sleep(Duration::from_millis(wait));
            child.kill().expect("killed");
            child.wait().expect("ended");
            let is_over = (0..400).any(|_| {
                std::thread::sleep(Duration::from_millis(25));
                live() == 0
            });
            assert!(is_over, "{command} {wait}: {} live on", live());
        }
    }
}

/// The library's own terminal of the tests, built, and what it hears.
fn terminal(bench: &Bench) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../inject/tests/program/terminal.c");
    let mut cc = Command::new("cc");
    cc.args(["-w", "-o"])
        .arg(bench.path("terminal"))
        .arg(source);
    assert!(cc.status().expect("cc").success());
}

fn heard(bench: &Bench, what: &str) -> usize {
    let all = std::fs::read_to_string(bench.path("heard")).unwrap_or_default();
    all.lines().filter(|line| line.starts_with(what)).count()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let waits = (0..4000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        is_so()
    });
    assert!(waits, "{what}");
}

/// What stops a group and has it go on within any time is heard once each.
#[test]
fn groups_that_go_on_at_once_are_not_left_behind() {
    let bench = Bench::new();
    terminal(&bench);
    // As a command waits for a program that has stopped: shorter, as long, longer.
    let pauses = [0, 1, 5, 15, 28, 30, 32, 35, 60];
    for command in [None, Some("trace"), Some("tune")] {
        for signal in ["-TSTP", "-STOP", "-TTIN"] {
            let _ = std::fs::remove_file(bench.path("heard"));
            let mut run = bench.below(command, &["./terminal"]);
            run.env("LOG", bench.path("heard")).process_group(0);
            run.stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut child = run.spawn().expect("starts");
            let what = format!("{command:?} {signal}");
            until(&what, || heard(&bench, "ready") == 1);
            for (number, pause) in pauses.iter().enumerate() {
                kill(&[signal, "--", "-ID"], &child);
                std::thread::sleep(Duration::from_millis(*pause));
                kill(&["-CONT", "--", "-ID"], &child);
                until(&what, || heard(&bench, "signal 18") == number + 1);
            }
            std::thread::sleep(Duration::from_millis(150));
            assert_eq!(heard(&bench, "signal 18"), pauses.len(), "{what}");
            assert_ne!(state(child.id()), 'T', "{what}");
            kill(&["-QUIT", "--", "-ID"], &child);
            assert_eq!(child.wait().expect("ends").code(), Some(9), "{what}");
            assert_eq!(heard(&bench, "signal 3"), 1, "{what}");
        }
    }
}

/// At a terminal a program is back in front however soon `fg` is typed behind what the shell says of its stop.
#[test]
fn programs_come_back_at_once() {
    use std::io::{Read, Write};
    use std::sync::{Arc, Mutex};
    let bench = Bench::new();
    terminal(&bench);
    for command in ["", "$OWN trace -- ", "$OWN tune -- "] {
        let _ = std::fs::remove_file(bench.path("heard"));
        let mut script = Command::new("script");
        script.args([
            "-qfec",
            "PS1=PROMPT bash --norc --noprofile -i",
            "/dev/null",
        ]);
        script.env("OWN", env!("CARGO_BIN_EXE_warpwright"));
        script.env("LOG", bench.path("heard"));
        script.env("HISTFILE", "/dev/null").env("TERM", "dumb");
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = bench.set(script).spawn().expect("starts");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (all, mut out) = (shown.clone(), shell.stdout.take().expect("a pipe"));
        let reads = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut piece) {
                all.lock().expect("bytes").extend(&piece[..count]);
            }
        });
        let prompts = || {
            text(&shown.lock().expect("bytes"))
                .matches("PROMPT")
                .count()
        };
        let mut keys = shell.stdin.take().expect("a pipe");
        let mut types = |text: &str| keys.write_all(text.as_bytes()).expect("typed");
        until("a prompt", || prompts() == 1);
        types(&format!("{command}./terminal\n"));
        until(command, || heard(&bench, "ready 1") == 1);
        let pauses = [0, 0, 0, 2, 10, 20, 29, 31, 100];
        for (number, pause) in pauses.iter().enumerate() {
            types("\x1a");
            until(&format!("{command} stops"), || prompts() == number + 2);
            std::thread::sleep(Duration::from_millis(*pause));
            types("fg\n");
            let is_back = || heard(&bench, "front 1") == number + 1;
            until(&format!("{command}{pause}"), is_back);
        }
        types("\x1c");
        until("the end", || prompts() == pauses.len() + 2);
        types("echo code $? >> $LOG\nexit\n");
        assert!(shell.wait().expect("ends").success(), "{command}");
        reads.join().expect("read");
        let shown = text(&shown.lock().expect("bytes"));
        let stops = shown.matches("Stopped").count();
        assert_eq!(stops, pauses.len(), "{command}: {shown}");
        for (what, count) in [("signal 18", stops), ("signal 3", 1), ("code 9", 1)] {
            assert_eq!(heard(&bench, what), count, "{command} {what}");
        }
    }
}

/// Whoever takes in orphans gets those of the program, and nobody of the command's.
#[test]
fn orphans_are_the_programs() {
    let bench = Bench::new();
    bench.build("reaper");
    for script in [
        "exit 4",
        "(sleep 0.2; exit 3) & exit 1",
        "kill -TERM $$",
        "kill -KILL $$",
        "setsid sh -c 'sleep 0.2; exit 7' & kill -KILL $$",
    ] {
        let run = |command: Option<&str>| {
            let below = bench.below(command, &["sh", "-c", script]);
            let mut reaper = Command::new(bench.path("reaper"));
            reaper.arg(below.get_program()).args(below.get_args());
            let mut reaper = bench.set(reaper);
            // What a command says itself is none of it.
            let said = text(
                &reaper
                    .stderr(Stdio::null())
                    .output()
                    .expect("starts")
                    .stdout,
            );
            let mut ends: Vec<String> = said.lines().map(str::to_owned).collect();
            ends.sort();
            ends
        };
        let plain = run(None);
        assert!(!plain.is_empty());
        for command in COMMANDS {
            assert_eq!(run(Some(command)), plain, "{command} {script}");
        }
    }
}

/// What a program sends to its whole group goes no further up, and ends the command as the program.
#[test]
fn signals_to_all_of_a_group_stay_there() {
    let bench = Bench::new();
    for command in ["", "$OWN trace --", "$OWN tune --"] {
        // What watches beside a program may be stopped: nobody knows then who has a signal.
        let stopped = "for one in $(cat /proc/$PPID/task/$PPID/children); do [ $one = $$ ] || kill -STOP $one; done; \
                       trap 'exit 6' USR1; kill -USR1 0; sleep 2";
        let stopped = stopped.replace('$', "\\$");
        let deeds = [
            ("kill -34 0", "162"),
            ("trap 'exit 6' USR1; kill -USR1 0; sleep 1", "6"),
            (&stopped, "6"),
        ];
        let count = if command.is_empty() { 2 } else { 3 };
        for (deed, code) in &deeds[..count] {
            // Whoever started the command is in another group.
            let line = format!(
                "trap 'echo hit' USR1 RTMIN; i=0; while [ $i -lt 5 ]; do i=$((i+1)); \
                 setsid -w {command} bash -c \"{deed}\" 2> /dev/null; echo $?; done"
            );
            let mut shell = Command::new("bash");
            shell.args(["-c", &line]);
            shell.env("OWN", env!("CARGO_BIN_EXE_warpwright"));
            let said = text(&bench.set(shell).output().expect("starts").stdout);
            assert!(
                said.lines().all(|line| line == *code),
                "{command} {deed}: {said}"
            );
            assert_eq!(said.lines().count(), 5, "{command} {deed}");
        }
    }
}

/// What a program leaves running may still write where it is noted: that folder goes all the same.
#[test]
fn folders_go_that_somebody_still_writes_into() {
    let bench = Bench::new();
    let writes = "exit 3 if fork; fork; fork; fork; close STDOUT; close STDERR; 1 while open my $file, '>', $ENV{WARPWRIGHT_DIR} . '/' . $$ . $i++";
    for command in ["trace", "tune"] {
        for _ in 0..8 {
            let ended = bench.below(Some(command), &["perl", "-e", writes]).output();
            let ended = ended.expect("starts");
            assert_eq!(
                ended.status.code(),
                Some(3),
                "{command}: {}",
                text(&ended.stderr)
            );
            let left = std::fs::read_dir(bench.path("tmp")).expect("a folder");
            assert_eq!(left.count(), 0, "{command}");
        }
    }
}
