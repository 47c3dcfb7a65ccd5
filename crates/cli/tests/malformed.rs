//! Malformed files of every kind, made from whole ones by a generator, through every command that reads the
//! kind: one labelled error and the exit code of the contract, or a result; never a panic, a signal, a hang, a
//! memory explosion or a file half written.
//!
//! `WARPWRIGHT_MALFORMED=N` makes N of each kind (40 by default, some 400 files in all) and `WARPWRIGHT_MALFORMED_SEED`
//! begins elsewhere. A failure names the kind and the number, and keeps the file.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What one command may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Address space of one command, in KiB: a bomb of a few hundred kilobytes does not fit.
const MOST_KIB: u32 = 6 << 20;

const PTX: &str = include_str!("malformed/kernel.ptx");
const LAUNCH: &str = include_str!("malformed/kernel.toml");
const STENCIL: &str = include_str!("malformed/smooth.stencil");
const CUDA: &str = include_str!("malformed/smooth.cu");
const REDUCE: &[u8] = include_bytes!("malformed/reduce.cubin");
const SPILLS: &[u8] = include_bytes!("malformed/spills.cubin");

/// A stream of numbers (xorshift64*), so that a case is its number.
struct Dice(u64);

impl Dice {
    fn new(kind: &str, number: u64) -> Dice {
        let seed = kind.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        let mut dice = Dice((seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
        for _ in 0..4 {
            dice.next();
        }
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Spoils a file: sometimes one way, sometimes several.
fn spoil(good: &[u8], is_text: bool, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..*dice.of(&[1, 1, 1, 2, 4]) {
        match (dice.below(12), is_text) {
            (0, _) => bytes.truncate(dice.below(bytes.len())),
            (1 | 2, false) => (0..=dice.below(8)).for_each(|_| flip(&mut bytes, dice)),
            (3 | 4, false) => word(&mut bytes, dice),
            (1 | 2, true) => number(&mut bytes, dice),
            (3 | 4, true) => token(&mut bytes, dice),
            (5, _) => flip(&mut bytes, dice),
            (6, _) => {
                let (from, to) = (dice.below(bytes.len()), dice.below(bytes.len()));
                let piece = bytes[from.min(to)..from.max(to)].to_vec();
                let at = dice.below(bytes.len());
                bytes.splice(at..at, piece);
            }
            (7, _) => {
                let at = dice.below(bytes.len());
                let end = (at + 1 + dice.below(64)).min(bytes.len());
                bytes.drain(at.min(end)..end);
            }
            (8, _) => {
                let at = dice.below(bytes.len());
                let noise: Vec<u8> = (0..dice.below(300)).map(|_| dice.next() as u8).collect();
                bytes.splice(at..at, noise);
            }
            (9, _) => {
                let at = dice.below(bytes.len());
                let piece = *dice.of(&[
                    &b"("[..],
                    b"{",
                    b"[",
                    b"-",
                    b"+1",
                    b"\"",
                    b"/*",
                    b"[[",
                    b"a.",
                    b"0,",
                    b"\n",
                    b"\0",
                ]);
                let many = piece.repeat(*dice.of(&[10, 5_000, 100_000]));
                bytes.splice(at..at, many);
            }
            (10, _) => {
                let at = dice.below(bytes.len());
                let end = (at + 1 + dice.below(200)).min(bytes.len());
                bytes[at.min(end)..end].fill(*dice.of(&[0, 0xff, b' ', b'9']));
            }
            _ => {
                let mut lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').collect();
                let (a, b) = (dice.below(lines.len()), dice.below(lines.len()));
                lines.swap(a, b);
                bytes = lines.join(&b'\n');
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

fn flip(bytes: &mut [u8], dice: &mut Dice) {
    // Headers are small and decide most.
    let most = *dice.of(&[64, bytes.len(), bytes.len()]);
    let at = dice.below(most.min(bytes.len()));
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << dice.below(8);
    }
}

/// A number of a binary file becomes a large, an odd or a negative one.
fn word(bytes: &mut [u8], dice: &mut Dice) {
    let values = [
        u64::MAX,
        u64::MAX / 2,
        1 << 32,
        (1 << 31) - 1,
        0,
        1,
        7,
        0xffff_fff0,
    ];
    let value = dice.of(&values).to_le_bytes();
    let size = *dice.of(&[2, 4, 8]);
    let at = dice.below(bytes.len()) / 4 * 4;
    for (byte, new) in bytes.iter_mut().skip(at).zip(&value[..size]) {
        *byte = *new;
    }
}

/// A number of a text becomes another one.
fn number(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let starts: Vec<usize> = (0..bytes.len())
        .filter(|&i| bytes[i].is_ascii_digit() && (i == 0 || !bytes[i - 1].is_ascii_digit()))
        .collect();
    if starts.is_empty() {
        return;
    }
    let at = *dice.of(&starts);
    let end = (at..bytes.len())
        .find(|&i| !bytes[i].is_ascii_digit())
        .unwrap_or(bytes.len());
    let new = *dice.of(&[
        "0",
        "-1",
        "1",
        "4294967295",
        "4294967296",
        "2147483647",
        "9223372036854775807",
        "18446744073709551615",
        "99999999999999999999999999",
        "1e309",
        "0x",
        "1000000",
        "65537",
        "100000000",
        "nan",
        "",
    ]);
    bytes.splice(at..end, new.bytes());
}

/// A word of a text becomes another word of it.
fn token(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b"_.%".contains(&b);
    let mut words = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = (at..bytes.len())
            .find(|&i| !is_word(bytes[i]))
            .unwrap_or(bytes.len());
        if end > at {
            words.push(at..end);
        }
        at = end + 1;
    }
    if words.is_empty() {
        return;
    }
    let (from, to) = (dice.of(&words).clone(), dice.of(&words).clone());
    let odd = [
        "sm_10",
        "sm_999a",
        "sm_100a",
        ".b128",
        "../../x",
        "\u{1b}[2J",
        "é",
        ".func",
        "%tid.x",
        "all",
    ];
    let new = match dice.below(3) {
        0 => dice.of(&odd).as_bytes().to_vec(),
        _ => bytes[from].to_vec(),
    };
    bytes.splice(to, new);
}

struct Bench {
    folder: tempfile::TempDir,
    kind: &'static str,
    ran: usize,
    failures: Vec<String>,
}

impl Bench {
    fn new(kind: &'static str) -> Bench {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bench = Bench {
            folder,
            kind,
            ran: 0,
            failures: Vec::new(),
        };
        for (name, bytes) in [
            ("good.ptx", PTX.as_bytes()),
            ("good.toml", LAUNCH.as_bytes()),
            ("good.cubin", REDUCE),
            ("spills.cubin", SPILLS),
            ("array.toml", &with_array()),
        ] {
            std::fs::write(bench.path(name), bytes).expect("a file");
        }
        std::fs::create_dir(bench.path("cache")).expect("a folder");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn listing(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("the folder");
        let names = entries.map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        });
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    fn run(&self, args: &[&str]) -> Result<Output, String> {
        let mut child = Command::new("/bin/sh")
            .arg("-c")
            .arg(format!("ulimit -v {MOST_KIB}; exec \"$0\" \"$@\""))
            .arg(env!("CARGO_BIN_EXE_warpwright"))
            .args(args)
            .current_dir(self.folder.path())
            .env("PATH", "")
            .env("WARPWRIGHT_CACHE", self.path("cache"))
            .env_remove("WARPWRIGHT_TOOLKIT")
            .env_remove("CUDA_HOME")
            .env_remove("CUDA_PATH")
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(self.path("cache/stdout")).expect("a file"))
            .stderr(std::fs::File::create(self.path("cache/stderr")).expect("a file"))
            .spawn()
            .expect("a shell");
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if start.elapsed() > PATIENCE {
                child.kill().expect("it runs");
                child.wait().expect("it ran");
                return Err(format!("it ran for more than {PATIENCE:?}"));
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        Ok(Output {
            status,
            stdout: std::fs::read(self.path("cache/stdout")).expect("a file"),
            stderr: std::fs::read(self.path("cache/stderr")).expect("a file"),
        })
    }

    /// One command on the file that is there now. `wrong`: it cannot be right.
    fn hold(&mut self, number: &str, wrong: bool, args: &[&str]) {
        let before = self.listing();
        self.ran += 1;
        if let Err(why) = self.held(&before, wrong, args) {
            let kept = std::env::temp_dir().join(format!("malformed-{}-{number}", self.kind));
            let _ = std::fs::create_dir_all(&kept);
            let files = self.listing().into_iter();
            for name in files.filter(|name| self.path(name).is_file()) {
                let _ = std::fs::copy(self.path(&name), kept.join(&name));
            }
            self.failures.push(format!(
                "{} {number}: {args:?}: {why}\n(the files are in {})",
                self.kind,
                kept.display()
            ));
        }
        for name in self.listing() {
            if !before.contains(&name) {
                let path = self.path(&name);
                let gone = if path.is_dir() {
                    std::fs::remove_dir_all(path)
                } else {
                    std::fs::remove_file(path)
                };
                gone.expect("it was made");
            }
        }
    }

    fn held(&self, before: &[String], wrong: bool, args: &[&str]) -> Result<(), String> {
        let output = self.run(args)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let shown: String = said.chars().take(600).collect();
        // A verdict about the file is a result; every other code but 0 is a failure.
        let gives_verdict = matches!(args[0], "check") || args[0] == "sass" && args.len() > 2;
        match output.status.code() {
            Some(0) if wrong => return Err("it was accepted".into()),
            Some(0) => return Ok(()),
            Some(1 | 5) if gives_verdict && !output.stdout.is_empty() => return Ok(()),
            Some(1..=3 | 5) => {}
            code => return Err(format!("exit code {code:?} ({}): {shown}", output.status)),
        }
        let is_document = args.contains(&"--json")
            && String::from_utf8_lossy(&output.stdout).contains("\"warpwright.error/1\"");
        if !output.stdout.is_empty() && !is_document {
            return Err("it failed and printed on stdout".into());
        }
        if !(said.contains("error") || said.contains('×')) || said.len() > 20_000 {
            return Err(format!("no labelled error ({} bytes): {shown}", said.len()));
        }
        if said
            .chars()
            .any(|c| c.is_control() && c != '\n' && c != '\t')
        {
            return Err(format!("control characters on stderr: {shown:?}"));
        }
        match self.listing() {
            after if after == before => Ok(()),
            after => Err(format!("it failed and left files: {after:?}")),
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Spoils a kind in every way, and runs every command on what comes out.
fn drive(kind: &'static str, file: &str, goods: &[&[u8]], is_text: bool, commands: &[&[&str]]) {
    let mut bench = Bench::new(kind);
    let path = bench.path(file);
    let hold_all = |bench: &mut Bench, number: &str, wrong: bool| {
        for command in commands {
            bench.hold(number, wrong, command);
        }
    };
    for good in goods {
        std::fs::write(&path, good).expect("a file");
        hold_all(&mut bench, "whole", false);
    }
    let begin = setting("WARPWRIGHT_MALFORMED_SEED", 0);
    for number in begin..begin + setting("WARPWRIGHT_MALFORMED", 40) {
        let mut dice = Dice::new(kind, number);
        let good = *dice.of(goods);
        std::fs::write(&path, spoil(good, is_text, &mut dice)).expect("a file");
        hold_all(&mut bench, &number.to_string(), false);
    }
    for (name, bytes) in [
        ("empty", Vec::new()),
        ("nothing", vec![0; 4096]),
        ("ones", vec![0xff; 4096]),
        ("noise", {
            let mut dice = Dice::new("noise", 1);
            (0..4096).map(|_| dice.next() as u8).collect()
        }),
        (
            "another kind",
            if is_text { REDUCE.to_vec() } else { PTX.into() },
        ),
    ] {
        std::fs::write(&path, bytes).expect("a file");
        hold_all(&mut bench, name, false);
    }
    std::fs::remove_file(&path).expect("it is there");
    // A database that is not there is made, and a store without files is empty.
    let may_lack = matches!(kind, "database" | "store");
    hold_all(&mut bench, "missing", !may_lack);
    let _ = std::fs::remove_file(&path);
    // One entry of a store that cannot be read is told, and the rest of it is there.
    let is_all = kind != "store";
    std::fs::create_dir(&path).expect("a folder");
    hold_all(&mut bench, "a folder", is_all);
    std::fs::remove_dir(&path).expect("it is there");
    std::os::unix::fs::symlink(file, &path).expect("a link");
    hold_all(&mut bench, "a link to itself", is_all);
    std::fs::remove_file(&path).expect("it is there");
    std::fs::write(&path, goods[0]).expect("a file");
    let nobody = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o000);
    std::fs::set_permissions(&path, nobody).expect("permissions");
    // The superuser may read it all the same.
    hold_all(
        &mut bench,
        "unreadable",
        is_all && std::fs::read(&path).is_err(),
    );
    std::fs::remove_file(&path).expect("it is there");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo").success());
    // A store without winners is an empty file.
    bench.hold("a pipe", is_all && kind != "winners", commands[0]);
    assert!(bench.ran > commands.len() * 10);
    let count = bench.failures.len();
    bench.failures.truncate(20);
    assert_eq!(count, 0, "{}", bench.failures.join("\n\n"));
}

#[test]
fn ptx() {
    drive(
        "ptx",
        "f.ptx",
        &[PTX.as_bytes()],
        true,
        &[
            &["explain", "f.ptx"],
            &["opt", "f.ptx", "-o", "out.ptx", "--gpu", "h200", "--json"],
            &["pass", "remat", "f.ptx", "--regs", "8", "-o", "out.ptx"],
            &["pass", "allocate", "f.ptx", "--regs", "16", "-o", "out.ptx"],
            &[
                "run",
                "f.ptx",
                "--launch",
                "good.toml",
                "--fuel",
                "1000000",
                "--races",
                "--uninit",
            ],
            &["check", "f.ptx", "good.ptx"],
            &["check", "good.ptx", "f.ptx", "--block", "64"],
        ],
    );
}

#[test]
fn cubins() {
    drive(
        "cubin",
        "f.cubin",
        &[REDUCE, SPILLS],
        false,
        &[
            &["explain", "f.cubin"],
            &[
                "opt",
                "f.cubin",
                "-o",
                "out.cubin",
                "--gpu",
                "h200",
                "--block",
                "64",
                "--report",
                "page.html",
            ],
            &[
                "pass",
                "spill-to-shared",
                "f.cubin",
                "-o",
                "out.cubin",
                "--block",
                "64",
            ],
            &["sass", "f.cubin", "--json"],
            &["sass", "roundtrip", "f.cubin"],
            &["sass", "hazards", "f.cubin"],
            &["check", "f.cubin", "good.cubin"],
            &["check", "spills.cubin", "f.cubin", "--block", "64"],
        ],
    );
}

/// A fat binary of its own (as `fatbinary` writes it) with a cubin as it is, and some PTX.
fn container() -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, sm, payload) in [
        (2u16, 90u32, SPILLS),
        (1, 90, PTX.as_bytes()),
        (2, 90, REDUCE),
    ] {
        let mut header = vec![0u8; 64];
        header[..2].copy_from_slice(&kind.to_le_bytes());
        header[2..4].copy_from_slice(&0x101u16.to_le_bytes());
        header[4..8].copy_from_slice(&64u32.to_le_bytes());
        header[8..16].copy_from_slice(&(payload.len().next_multiple_of(8) as u64).to_le_bytes());
        header[28..32].copy_from_slice(&sm.to_le_bytes());
        header[40..48].copy_from_slice(&0x11u64.to_le_bytes());
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

#[test]
fn fat_binaries() {
    drive(
        "fatbin",
        "f.fatbin",
        &[&container()],
        false,
        &[
            &["explain", "f.fatbin"],
            &["sass", "f.fatbin"],
            &["sass", "roundtrip", "f.fatbin"],
            &[
                "pass",
                "spill-to-shared",
                "f.fatbin",
                "-o",
                "out",
                "--block",
                "64",
            ],
        ],
    );
}

#[test]
fn launch_descriptions() {
    drive(
        "toml",
        "f.toml",
        &[LAUNCH.as_bytes()],
        true,
        &[
            &[
                "run", "good.ptx", "--launch", "f.toml", "--fuel", "1000000", "--save", "saved",
            ],
            &[
                "check", "--run", "good.ptx", "good.ptx", "--launch", "f.toml", "--size", "small",
            ],
            &["opt", "good.ptx", "-o", "out.ptx", "--launch", "f.toml"],
            &["explain", "good.ptx", "--launch", "f.toml"],
        ],
    );
}

#[test]
fn stencils() {
    drive(
        "stencil",
        "f.stencil",
        &[STENCIL.as_bytes()],
        true,
        &[
            &["explain", "f.stencil"],
            &["opt", "f.stencil", "-o", "out.cu", "--unchecked"],
        ],
    );
}

#[test]
fn cuda() {
    drive(
        "cuda",
        "f.cu",
        &[CUDA.as_bytes()],
        true,
        &[
            &["explain", "f.cu"],
            &["opt", "f.cu", "-o", "out.cu", "--unchecked"],
        ],
    );
}

fn committed(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read(root.join(name)).expect("a committed file")
}

#[test]
fn result_files() {
    let suite = committed("bench/results/h200-2026-11-22-spills-dynamic-small.json");
    let stencils = committed("bench/results/h200-2026-11-22-stencils.json");
    drive(
        "json",
        "f.json",
        &[&suite, &stencils],
        true,
        &[
            &["report", "f.json"],
            &["report", "f.json", "--table", "summary"],
            &["report", "f.json", "--table", "crat"],
            &["report", "f.json", "--table", "one-block-more"],
            &["report", "f.json", "--table", "spills"],
            &["report", "f.json", "--table", "stencils"],
            &["report", "f.json", "--table", "figure"],
            &["report", "f.json", "f.json", "--table", "agreement"],
            &["report", "--plan", "f.json"],
            &["tune", "--import", "f.json"],
        ],
    );
}

#[test]
fn databases() {
    let bench = Bench::new("database");
    let json = br#"{"schema":"x"}"#;
    std::fs::write(bench.path("f.json"), json).expect("a file");
    // Any command that opens it makes an empty one.
    let made = bench
        .run(&["tune", "--export", "out.json"])
        .expect("it ends");
    assert!(made.status.success(), "{made:?}");
    let good = std::fs::read(bench.path("cache/measurements.sqlite")).expect("a database");
    drive(
        "database",
        "cache/measurements.sqlite",
        &[&good],
        false,
        &[
            &["tune", "--export", "out.json"],
            &["tune", "--import", "good.toml"],
        ],
    );
}

/// The launch description with its input in a file.
fn with_array() -> Vec<u8> {
    let random = "init = { kind = \"uniform\", low = -1.0, high = 1.0, seed = 7 }";
    assert!(LAUNCH.contains(random));
    let file = "init = { kind = \"file\", path = \"f.npy\" }";
    LAUNCH.replacen(random, file, 1).into_bytes()
}

#[test]
fn arrays() {
    let head = "{'descr': '<f4', 'fortran_order': False, 'shape': (100,), }";
    let mut good = b"\x93NUMPY\x01\x00v\x00".to_vec();
    good.extend(format!("{head:<117}\n").bytes());
    good.extend((0u8..100).flat_map(|n| f32::from(n).to_le_bytes()));
    let run = [
        "run",
        "good.ptx",
        "--launch",
        "array.toml",
        "--size",
        "small",
    ];
    drive("npy", "f.npy", &[&good], false, &[&run]);
}

#[test]
fn traces() {
    let good = include_bytes!("malformed/trace.json");
    drive(
        "trace",
        "f.json",
        &[good],
        true,
        &[
            &["explain", "good.ptx", "--trace", "f.json"],
            &["opt", "good.ptx", "-o", "out.ptx", "--trace", "f.json"],
            &[
                "pass", "remat", "good.ptx", "--regs", "8", "-o", "out.ptx", "--trace", "f.json",
            ],
        ],
    );
}

#[test]
fn assembler_texts() {
    let bench = Bench::new("whole");
    let text = bench.run(&["sass", "good.cubin", "--whole"]);
    let good = text.expect("it ends").stdout;
    assert!(good.len() > 1_000);
    let commands: [&[&str]; 1] = [&["sass", "assemble", "f.sass", "-o", "out.cubin"]];
    drive("assembler", "f.sass", &[&good], true, &commands);
}

/// A program with the fat binary in its section, and nothing else.
fn host_program() -> Vec<u8> {
    let (body, names) = (container(), b"\0.nv_fatbin\0.shstrtab\0");
    let mut file = vec![0u8; 64];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let at = |file: &[u8]| file.len() as u64;
    let start = at(&file);
    file.extend(&body);
    let names_at = at(&file);
    file.extend(names);
    file.resize(file.len().next_multiple_of(8), 0);
    let table = at(&file);
    let sections = [
        (0u32, 0u32, 0, 0),
        (1, 1, start, body.len() as u64),
        (12, 3, names_at, names.len() as u64),
    ];
    for (name, kind, offset, size) in sections {
        file.extend(name.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(
            [2u64, 0, offset, size, 0, 8, 0]
                .iter()
                .flat_map(|n| n.to_le_bytes()),
        );
    }
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x10, &[3, 0, 62, 0, 1]);
    put(0x28, &table.to_le_bytes());
    put(0x34, &[64, 0, 56, 0, 0, 0, 64, 0, 3, 0, 2, 0]);
    file
}

#[test]
fn host_programs() {
    let bench = Bench::new("host");
    std::fs::write(bench.path("f.so"), host_program()).expect("a file");
    let whole = bench.run(&["explain", "f.so"]).expect("it ends");
    assert!(whole.status.success(), "{whole:?}");
    drive(
        "host",
        "f.so",
        &[&host_program()],
        false,
        &[
            &["explain", "f.so"],
            &["sass", "f.so"],
            &[
                "opt", "f.so", "-o", "out.so", "--gpu", "h200", "--block", "64",
            ],
        ],
    );
}

/// A record of a winner; its kernel is named for its digest, or for what `kernel` says.
fn winner(kernel: &str, cubin: &[u8]) -> Vec<u8> {
    let winner = warpwright_winners::Winner {
        kernel: kernel.into(),
        gpu: "NVIDIA H200".into(),
        guard: "256,1,1 smem 4096 cluster 2,1,1 grid 10"
            .parse::<warpwright_winners::LaunchClass>()
            .expect("a class")
            .guard(),
        shape: warpwright_winners::Shape::SAME,
        symbol: "k".into(),
        recipe: "spill-to-shared".into(),
        proof: "machine code".into(),
        original_ns: 2000,
        winner_ns: 1000,
        driver: "580.1".into(),
        date: "2026-11-22".into(),
        standing: warpwright_winners::Standing::Measured,
        cubin: cubin.to_vec(),
    };
    winner.to_bytes()
}

#[test]
fn winners() {
    let digest = "0123456789abcdef".repeat(4);
    let good = [winner(&digest, REDUCE), winner(&digest, SPILLS)].concat();
    let mut dice = Dice::new("winner", 0);
    let signed = winner(&digest, &spoil(REDUCE, false, &mut dice));
    drive(
        "winners",
        "f.winners",
        &[&good, &signed],
        false,
        &[&["db", "--db", "store", "import", "f.winners"]],
    );
    drive(
        "store",
        "cache/0123456789abcdef-0123456789abcdef.winner",
        &[&winner(&digest, REDUCE), &signed],
        false,
        &[
            &["db", "--db", "cache", "list"],
            &["db", "--db", "cache", "show", "k"],
            &["db", "--db", "cache", "export", "out.winners"],
        ],
    );
}

/// The name of a kernel is no path.
#[test]
fn a_winner_is_kept_in_the_store_alone() {
    for kernel in [
        "../../../../x",
        "/tmp/x",
        "..",
        "a/b/c/d/e/f/g/h",
        "\u{1b}[31m",
    ] {
        let bench = Bench::new("name");
        std::fs::write(bench.path("f.winners"), winner(kernel, REDUCE)).expect("a file");
        std::fs::create_dir(bench.path("store")).expect("a folder");
        let before = bench.listing();
        let output = bench.run(&["db", "--db", "store", "import", "f.winners"]);
        let output = output.expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{kernel:?}: {output:?}");
        assert_eq!(bench.listing(), before, "{kernel:?}");
    }
}

/// Recipes are words of the command line.
#[test]
fn recipes() {
    let mut bench = Bench::new("recipe");
    let goods = [
        "remat(8, rules=paper); dead-code; maxnreg(64); throttle(2, by=smem)",
        "demote(x4, by=loops, hoist=off); compact; spill-to-shared(blocks=2)",
    ];
    let begin = setting("WARPWRIGHT_MALFORMED_SEED", 0);
    for number in begin..begin + setting("WARPWRIGHT_MALFORMED", 40) {
        let mut dice = Dice::new("recipe", number);
        let mut text = spoil(dice.of(&goods).as_bytes(), true, &mut dice);
        text.retain(|&byte| byte != 0);
        // The kernel takes no longer words (128 KiB).
        text.truncate(100_000);
        let text = String::from_utf8_lossy(&text).into_owned();
        for file in ["good.ptx", "spills.cubin"] {
            let option = format!("--recipe={text}");
            let opt = [
                "opt", file, "-o", "out", "--gpu", "h200", "--block", "64", &option,
            ];
            bench.hold(&number.to_string(), false, &opt);
            let pass = ["pass", "-o", "out", "--block", "64", "--", &text, file];
            bench.hold(&number.to_string(), false, &pass);
        }
    }
    assert!(bench.failures.is_empty(), "{}", bench.failures.join("\n\n"));
}

/// What the database says is never needed: `opt` goes on without it.
#[test]
fn a_database_that_is_none_does_not_stop_opt() {
    let mut bench = Bench::new("no-database");
    std::fs::write(bench.path("cache/measurements.sqlite"), vec![0xa5; 5000]).expect("a file");
    let output = bench
        .run(&["opt", "good.ptx", "-o", "out.ptx"])
        .expect("it ends");
    assert!(output.status.success(), "{output:?}");
    bench.ran += 1;
}

/// PTX that is small as text and large as something else, or the other way round: valid in form more often than
/// not, so that it reaches what works behind the parser.
mod shapes {
    use super::Dice;

    /// How many shapes there are.
    pub const COUNT: u64 = 30;

    const HEAD: &str = ".version 8.8\n.target sm_90\n.address_size 64\n";
    const ENTRY: &str = ".visible .entry k(.param .u64 p, .param .u32 n)\n.reqntid 64, 1, 1\n{\n";
    const START: &str = "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\n\
        mul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd1, %rd1, %rd2;\nld.global.u32 %r3, [%rd1];\nmov.u32 %r0, 0;\n";
    const REGISTERS: &str = ".reg .b32 %r<20000>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n";
    const END: &str = "st.global.u32 [%rd1], %r0;\nret;\n}\n";

    fn kernel(body: &str) -> String {
        format!("{HEAD}{ENTRY}{REGISTERS}{START}{body}{END}")
    }

    fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
        (0..count).map(|i| line(i) + "\n").collect()
    }

    /// A shape of some size.
    pub fn text(shape: u64, dice: &mut Dice) -> String {
        let many = *dice.of(&[3usize, 60, 900, 6000]);
        let few = many / 20 + 1;
        let size = *dice.of(&[
            "0",
            "1",
            "16777216",
            "16777217",
            "2147483647",
            "4294967296",
            "9223372036854775807",
        ]);
        match shape {
            0 => kernel(&format!(".reg .b32 %z<{size}>;\n")),
            1 => kernel(&lines(many, |i| format!(".reg .b64 %z{i}_<16777216>;"))),
            2 => kernel(&format!(
                ".reg .b32 %z<16777216>;\n{}",
                lines(many, |i| {
                    format!(
                        "mov.u32 %z{}, %r1;\nadd.u32 %r0, %r0, %z{};",
                        i * 2731,
                        i * 2731
                    )
                })
            )),
            3 => kernel(&("{\n".repeat(many) + &"}\n".repeat(many))),
            4 => kernel(&lines(many, |i| format!("bra L{i};\nL{i}:"))),
            5 => {
                let labels: Vec<String> = (0..many).map(|i| format!("L{i}")).collect();
                let arms = lines(many, |i| format!("L{i}:\nadd.u32 %r0, %r0, {i};"));
                kernel(&format!(
                    "T: .branchtargets {};\nbrx.idx %r3, T;\n{arms}",
                    labels.join(", ")
                ))
            }
            6 => kernel(&lines(many, |i| {
                format!(
                    "setp.eq.u32 %p1, %r3, {i};\n@%p1 bra L{};\nL{i}:\nadd.u32 %r0, %r0, 1;",
                    (i * 7919) % many
                )
            })),
            7 => {
                let open = lines(few, |i| format!("mov.u32 %r{}, 0;\nL{i}:", i + 10));
                let close = lines(few, |i| {
                    let i = few - 1 - i;
                    let r = i + 10;
                    format!(
                        "add.u32 %r{r}, %r{r}, 1;\nadd.u32 %r0, %r0, %r{r};\nsetp.lt.u32 %p1, %r{r}, 3;\n@%p1 bra L{i};"
                    )
                });
                kernel(&(open + &close))
            }
            8 => {
                let calls = |next: usize| format!("call.uni f{next};\n");
                let functions: String = (0..few)
                    .rev()
                    .map(|i| {
                        let next = if i + 1 < few {
                            calls(i + 1)
                        } else {
                            String::new()
                        };
                        format!(".func f{i}\n{{\n{next}ret;\n}}\n")
                    })
                    .collect();
                kernel(&calls(0)).replacen(ENTRY, &(functions + ENTRY), 1)
            }
            9 => format!(
                "{HEAD}.func f0;\n.func f1\n{{\ncall.uni f0;\nret;\n}}\n.func f0\n{{\ncall.uni f1;\nret;\n}}\n{}",
                &kernel("call.uni f1;\n")[HEAD.len()..]
            ),
            10 => kernel(&lines(many, |_| {
                "add.u32 %r3, %r3, %r3;\nxor.b32 %r0, %r0, %r3;".into()
            })),
            11 => kernel(&lines(many, |_| {
                "mad.lo.u32 %r3, %r3, %r3, %r0;\nadd.u32 %r0, %r3, %r0;".into()
            })),
            12 => kernel(&lines(many, |i| {
                format!(
                    "setp.gt.u32 %p1, %r3, {i};\n@%p1 bra L{i};\nadd.u32 %r0, %r0, %r3;\nmul.lo.u32 %r3, %r0, %r3;\nL{i}:"
                )
            })),
            13 => kernel(&lines(many, |i| {
                format!(
                    "setp.gt.u32 %p1, %r3, {i};\n@%p1 add.u32 %r0, %r0, %r3;\n@!%p1 mul.lo.u32 %r3, %r0, %r3;"
                )
            })),
            14 => kernel(&lines(many, |i| {
                format!(
                    "st.global.u32 [%rd1+{}], %r0;\nld.global.u32 %r0, [%rd1+{}];",
                    4 * i,
                    4 * (i / 2)
                )
            })),
            15 => kernel(&format!(
                ".local .align 8 .b8 l[{size}];\n.shared .align 8 .b8 s[{}];\n",
                many * 4
            )),
            16 => format!(
                "{HEAD}.global .align {many} .b8 g[{size}] = {{{}}};\n{}",
                "{".repeat(many),
                &kernel("")[HEAD.len()..]
            ),
            17 => kernel(&format!(
                "mov.u32 %r0, {}1{};\n",
                "(".repeat(many),
                ")".repeat(many)
            )),
            18 => kernel(&format!("mov.u32 %r0, {}1;\n", "1 + ~-!".repeat(many))),
            19 => {
                let all: Vec<String> = (0..many).map(|i| format!("%r{i}")).collect();
                kernel(&format!("mov.b64 {{{}}}, %rd1;\n", all.join(", ")))
            }
            20 => kernel(&format!(
                "{}:\nbra {};\n",
                "a".repeat(many * 100),
                "a".repeat(many * 100)
            )),
            21 => kernel(&lines(many, |i| {
                format!(".loc 1 {i} {i}, function_name L, inlined_at 1 {i} {i}")
            })),
            22 => {
                let all: Vec<String> = (0..many)
                    .map(|i| format!(".param .align 16 .b8 q{i}[{}]", 1 + i * 7919))
                    .collect();
                format!(
                    "{HEAD}.visible .entry k({})\n{{\nret;\n}}\n",
                    all.join(", ")
                )
            }
            23 => format!(
                "{HEAD}{}{}",
                lines(many, |i| format!(".visible .entry k{i}()\n{{\nret;\n}}")),
                &kernel("")[HEAD.len()..]
            ),
            24 => {
                let set = lines(few * 4, |i| format!("add.u32 %r{}, %r1, {i};", i + 10));
                let sum = lines(few * 4, |i| format!("add.u32 %r0, %r0, %r{};", i + 10));
                kernel(&format!(
                    "{set}L:\n{sum}setp.lt.u32 %p1, %r0, %r3;\n@%p1 bra L;\n{sum}"
                ))
            }
            25 => kernel(
                &(lines(many, |_| {
                    "bar.sync 0;\nvote.sync.any.pred %p1, %p2, -1;".into()
                })),
            ),
            26 => kernel(
                &(lines(few, |i| {
                    format!(
                        "setp.gt.u32 %p1, %r3, {i};\n@%p1 bra A{i};\nbar.warp.sync -1;\nbra B{i};\nA{i}:\nbar.warp.sync -1;\nB{i}:"
                    )
                })),
            ),
            27 => format!(
                "{HEAD}.section .debug_info\n{{\n{}}}\n{}",
                lines(many, |i| format!(".b8 {i}")),
                &kernel("")[HEAD.len()..]
            ),
            28 => {
                kernel(
                    &lines(few, |i| {
                        format!("{{\n.reg .b32 %r<{}>;\nmov.u32 %r{i}, %r0;\n", i + 2)
                    })
                    .replace("\n\n", "\n"),
                ) + &"}\n".repeat(few)
            }
            _ => kernel(&lines(many, |i| {
                format!(
                    "P{i}: .callprototype (.param .b32 _) _ (.param .b64 .ptr .align 16 _, .param .b8 _[{i}]);"
                )
            })),
        }
    }
}

/// Files that grow into something large: no more memory or time than [`MOST_KIB`] and [`PATIENCE`].
#[test]
fn shapes_of_ptx() {
    let mut bench = Bench::new("shape");
    let path = bench.path("f.ptx");
    let begin = setting("WARPWRIGHT_MALFORMED_SEED", 0);
    let count = setting("WARPWRIGHT_MALFORMED", shapes::COUNT);
    for number in begin..begin + count {
        let text = shapes::text(number % shapes::COUNT, &mut Dice::new("shape", number));
        std::fs::write(&path, text).expect("a file");
        for command in [
            &["explain", "f.ptx"][..],
            &["pass", "remat", "f.ptx", "--regs", "8", "-o", "out.ptx"],
            &["pass", "allocate", "f.ptx", "--regs", "16", "-o", "out.ptx"],
            &["run", "f.ptx", "--launch", "good.toml", "--fuel", "1000000"],
            &["check", "f.ptx", "f.ptx", "--block", "64"],
        ] {
            bench.hold(&number.to_string(), false, command);
        }
    }
    assert_eq!(bench.failures.len(), 0, "{}", bench.failures.join("\n\n"));
}
