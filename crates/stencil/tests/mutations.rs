//! Damaged inputs are errors, never panics: every test file and benchmark is cut, and bytes and
//! words are exchanged, doubled and removed. What is accepted all the same is printed, counted and
//! evaluated. `WARPWRIGHT_MUTATIONS=N` takes N times as many.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use warpwright_cudac::diag::{Source, render_all};
use warpwright_cudac::{File, print};
use warpwright_stencil::evaluate::{Data, Sizes, evaluate};
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::statistics::statistics;
use warpwright_stencil::{dsl, extract};

/// Words that a mutation puts somewhere.
const WORDS: [&str; 24] = [
    "i",
    "j",
    "n",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ";",
    "+",
    "-",
    "*",
    "/",
    "=",
    "+=",
    "0",
    "1",
    "9999999999",
    "1e300",
    "for",
    "if",
    "double",
    "#define A(x) A(x)\n",
];

/// A small generator of random numbers (xorshift), the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

fn inputs() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in [
        "tests/stencils/accepted",
        "tests/stencils/refused",
        "../../examples/stencils",
    ] {
        let entries = own.join(folder).read_dir().unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    files.retain(|path| path.is_file());
    files.sort();
    files
}

fn mutate(text: &str, random: &mut Random) -> String {
    let mut text = text.to_owned();
    for _ in 0..=random.below(3) {
        let at = text.floor_char_boundary(random.below(text.len()));
        let end = text.floor_char_boundary((at + random.below(12)).min(text.len()));
        match random.below(5) {
            0 => text.truncate(at),
            1 => text.replace_range(at..end, ""),
            2 => text.insert_str(at, WORDS[random.below(WORDS.len())]),
            3 => {
                let piece = text[at..end].to_owned();
                let to = text.floor_char_boundary(random.below(text.len()));
                text.insert_str(to, &piece);
            }
            _ => text.replace_range(at..end, WORDS[random.below(WORDS.len())]),
        }
    }
    text
}

/// Everything that can be done with a stencil.
fn exercise(stencil: &Stencil) {
    let printed = dsl::print(stencil);
    match dsl::parse(&printed) {
        Ok(mut again) => {
            // Places differ, nothing else.
            for (new, old) in again.statements.iter_mut().zip(&stencil.statements) {
                new.span = old.span.clone();
            }
            // What the language has no words for.
            again.block = stencil.block;
            again.computing = stencil.computing;
            again.border.clone_from(&stencil.border);
            again.from_grid.clone_from(&stencil.from_grid);
            for (new, old) in again.arrays.values_mut().zip(stencil.arrays.values()) {
                new.variable.clone_from(&old.variable);
                (new.read, new.written) = (old.read, old.written);
            }
            if stencil.border.is_none() && stencil.variables().next().is_none() {
                assert_eq!(&again, stencil, "{printed}");
            }
        }
        Err(problems) => panic!(
            "{}",
            render_all(&problems, &Source::new("printed", printed))
        ),
    }
    statistics(stencil);
    let sizes: Sizes = stencil.parameters.values().map(|_| 9).collect();
    let small = |e: &warpwright_stencil::ir::Extent| e.add < 20;
    if stencil.arrays.values().all(|a| a.extents.iter().all(small))
        && let Ok(mut data) = Data::sample(stencil, &sizes)
    {
        let _ = evaluate(stencil, &sizes, &mut data);
    }
}

fn read(name: &str, text: String) {
    let source = Source::new(name, text);
    if name.ends_with(".stencil") {
        match dsl::parse(&source.text) {
            Ok(stencil) => exercise(&stencil),
            Err(problems) => assert!(!render_all(&problems, &source).is_empty()),
        }
        return;
    }
    let file = File::parse(source).unwrap();
    for kernel in &file.kernels {
        if let Ok(function) = file.kernel(kernel) {
            print::function(&function);
        }
        match extract::extract(&file, kernel) {
            Ok(stencil) => exercise(&stencil),
            Err(problems) => assert!(!render_all(&problems, &file.source).is_empty()),
        }
    }
}

#[test]
fn damaged_inputs_never_panic() {
    let more = std::env::var("WARPWRIGHT_MUTATIONS").ok();
    let more: usize = more.and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for path in inputs() {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let rounds = if text.len() > 4000 { 3 } else { 25 };
        for _ in 0..rounds * more {
            read(name, mutate(&text, &mut random));
        }
    }
}
