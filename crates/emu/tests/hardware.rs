//! The emulator's arithmetic against an H200, bit for bit.
//!
//! `hardware/facts.ptx` has one kernel per operand type. A thread takes three operands from a
//! table of special values and runs every instruction of `hardware/facts.txt` on them; each
//! instruction's results over all threads are hashed. The hashes in that file came from the GPU.
//! With `WARPWRIGHT_FACTS=FILE` the raw results of a GPU (what the hashes are of, kernel after
//! kernel, as little-endian 64-bit words) are compared one by one instead, and every difference is
//! listed.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_launch::{Launch, LaunchFile};
use warpwright_ptx::Module;

/// Operands in the table of a kernel; a kernel has as many threads as pairs of them.
const OPERANDS: usize = 24;
const THREADS: usize = OPERANDS * OPERANDS;

/// The instructions of one kernel and what they gave.
struct Facts {
    kernel: String,
    bytes: usize,
    operands: Vec<u64>,
    /// Instruction and hash; no hash where the GPU's results do not count.
    ops: Vec<(String, Option<u64>)>,
}

fn read(text: &str) -> Vec<Facts> {
    let mut all: Vec<Facts> = Vec::new();
    let hex = |word: &str| u64::from_str_radix(word, 16).unwrap();
    for line in text.lines() {
        let (key, rest) = line.split_once(' ').unwrap();
        match (key, all.last_mut()) {
            ("kernel", _) => {
                let (name, bytes) = rest.split_once(' ').unwrap();
                all.push(Facts {
                    kernel: name.to_owned(),
                    bytes: bytes.parse().unwrap(),
                    operands: Vec::new(),
                    ops: Vec::new(),
                });
            }
            ("in", Some(facts)) => facts.operands = rest.split(' ').map(hex).collect(),
            ("op", Some(facts)) => {
                let (hash, name) = rest.split_once(' ').unwrap();
                facts.ops.push((name.to_owned(), Some(hex(hash))));
            }
            ("skip", Some(facts)) => facts.ops.push((rest.to_owned(), None)),
            _ => assert_eq!(key, "#", "{line}"),
        }
    }
    all
}

fn launch(facts: &Facts) -> Launch {
    let text = format!(
        "kernel = \"{}\"\n[sizes.all]\n[launch]\ngrid = [{OPERANDS}]\nblock = [{OPERANDS}]\n\
         [[args]]\nname = \"in\"\ntype = \"u8\"\nshape = [{}]\ninit = \"zeros\"\n\
         [[args]]\nname = \"out\"\ntype = \"u64\"\nshape = [{}]\noutput = true\n",
        facts.kernel,
        OPERANDS * facts.bytes,
        THREADS * facts.ops.len(),
    );
    LaunchFile::parse(&text, "facts")
        .unwrap()
        .resolve("all", &[])
        .unwrap()
}

/// The results of a kernel in the emulator.
fn emulate(module: &Module, facts: &Facts) -> Vec<u64> {
    let program = Emulator::new(module, &facts.kernel).unwrap_or_else(|e| panic!("{e}"));
    let operands = facts.operands.iter();
    let table = operands
        .flat_map(|v| v.to_le_bytes()[..facts.bytes].to_vec())
        .collect();
    let inputs = vec![table, vec![0; 8 * THREADS * facts.ops.len()]];
    match program
        .run(&launch(facts), inputs, &Options::default())
        .unwrap()
    {
        Outcome::Finished(results) => words(&results.buffers[1]),
        Outcome::Faulted(fault) => panic!("{fault}"),
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| u64::from_le_bytes(chunk.try_into().unwrap());
    bytes.chunks_exact(8).map(word).collect()
}

/// FNV-1a of the words' bytes.
fn hash(words: &[u64]) -> u64 {
    let bytes = words.iter().flat_map(|w| w.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ byte as u64).wrapping_mul(0x100_0000_01b3)
    })
}

/// What differs, with the operands of the first few threads concerned.
fn differences(facts: &Facts, ours: &[u64], theirs: &[u64]) -> Vec<String> {
    let mut all = Vec::new();
    for (number, (name, hash)) in facts.ops.iter().enumerate() {
        if hash.is_none() {
            continue;
        }
        let results = number * THREADS..(number + 1) * THREADS;
        let pairs = ours[results.clone()].iter().zip(&theirs[results]);
        let wrong: Vec<_> = pairs.enumerate().filter(|(_, (a, b))| a != b).collect();
        for (thread, (a, b)) in wrong.iter().take(6) {
            let (x, y) = (thread % OPERANDS, thread / OPERANDS);
            let z = (7 * x + y + 3) % OPERANDS;
            let [x, y, z] = [x, y, z].map(|i| facts.operands[i]);
            let total = wrong.len();
            all.push(format!(
                "{name}: ({x:#x}, {y:#x}, {z:#x}) emulator {a:#x}, GPU {b:#x} ({total})"
            ));
        }
    }
    all
}

#[test]
fn results_are_those_of_an_h200() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hardware");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (module, diagnostics) = Module::parse("facts.ptx", &text("facts.ptx"));
    assert!(diagnostics.iter().all(|d| !d.is_error()));
    let raw = std::env::var_os("WARPWRIGHT_FACTS").map(|path| words(&std::fs::read(path).unwrap()));
    let mut begin = 0;
    let mut failures = Vec::new();
    let mut checked = 0;
    for facts in read(&text("facts.txt")) {
        let ours = emulate(&module, &facts);
        match &raw {
            Some(raw) => {
                let theirs = &raw[begin..begin + ours.len()];
                failures.extend(differences(&facts, &ours, theirs));
                for (number, (name, _)) in facts.ops.iter().enumerate() {
                    let results = &theirs[number * THREADS..(number + 1) * THREADS];
                    println!("{} {:016x} {name}", facts.kernel, hash(results));
                }
            }
            None => {
                for (results, (name, expected)) in ours.chunks(THREADS).zip(&facts.ops) {
                    if expected.is_some_and(|e| hash(results) != e) {
                        failures.push(format!("{}: {name}", facts.kernel));
                    }
                }
            }
        }
        begin += ours.len();
        checked += facts.ops.len();
    }
    assert!(checked > 400, "only {checked} instructions were checked");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
