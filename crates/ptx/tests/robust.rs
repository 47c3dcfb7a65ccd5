//! A short deterministic fuzz of the front end: damaged PTX never panics, is printed back byte by
//! byte, is covered by statements, and whatever parses without errors survives its canonical form
//! and can be analysed.
//!
//! `fuzz/` has the long-running counterpart for cargo-fuzz; both check `properties`.

mod properties;

use std::path::Path;

use properties::check;
use warpwright_ptx::syntax::Kind;
use warpwright_ptx::{Diagnostic, Module};

/// The filetests, as `(name, text)`.
fn seeds() -> Vec<(String, String)> {
    read_seeds().unwrap_or_else(|error| panic!("the filetests cannot be read: {error}"))
}

fn read_seeds() -> std::io::Result<Vec<(String, String)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/ptx");
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        seeds.push((path.display().to_string(), std::fs::read_to_string(&path)?));
    }
    seeds.sort();
    assert!(
        seeds.len() > 20,
        "the filetests are missing from {}",
        folder.display()
    );
    Ok(seeds)
}

/// A small generator (xorshift64*): the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n.max(1)
    }
}

/// The code of a seed, without its expectations: they would only be comments.
fn code(text: &str) -> &str {
    text.split("\n// expect:").next().unwrap_or(text)
}

#[test]
fn seeds_themselves() {
    seeds().iter().for_each(|(_, text)| check(text));
}

#[test]
fn truncations_at_every_token() {
    for (_, text) in seeds() {
        let text = code(&text);
        let (module, _) = Module::parse("seed.ptx", text);
        for tile in module.syntax.tiles.iter().filter(|t| !t.kind.is_trivia()) {
            check(&text[..tile.span.end as usize]);
        }
    }
}

#[test]
fn tokens_deleted_doubled_and_swapped() {
    let mut random = Random(1);
    for (_, text) in seeds() {
        let text = code(&text);
        let (module, _) = Module::parse("seed.ptx", text);
        let tiles = &module.syntax.tiles;
        let tokens: Vec<usize> = (0..tiles.len())
            .filter(|&i| !tiles[i].kind.is_trivia() && tiles[i].kind != Kind::Eof)
            .collect();
        for _ in 0..300.min(tokens.len() * 4) {
            let mut pieces: Vec<&str> = tiles.iter().map(|t| t.span.text(text)).collect();
            for _ in 0..1 + random.below(3) {
                let (a, b) = (
                    tokens[random.below(tokens.len())],
                    tokens[random.below(tokens.len())],
                );
                match random.below(4) {
                    0 => pieces[a] = "",
                    1 => pieces[a] = tiles[b].span.text(text),
                    2 => pieces.swap(a, b),
                    _ => pieces.insert(a, tiles[b].span.text(text)),
                }
            }
            check(&pieces.concat());
        }
    }
}

#[test]
fn bytes_flipped() {
    let mut random = Random(2);
    for (_, text) in seeds() {
        let text = code(&text);
        for _ in 0..300 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = match random.below(3) {
                        0 => random.next() as u8,
                        1 => *byte ^ 1 << random.below(8),
                        _ => b"{}[]()<>;:,.%@!-+|\"/*#0_\n "[random.below(26)],
                    };
                }
            }
            let (module, diagnostics) = Module::parse_bytes("fuzz.ptx", &bytes);
            match std::str::from_utf8(&bytes) {
                Ok(text) => check(text),
                Err(_) => {
                    assert!(diagnostics.iter().any(Diagnostic::is_error));
                    assert!(diagnostics.iter().all(|d| !d.render(&module).is_empty()));
                }
            }
        }
    }
}

#[test]
fn random_bytes_and_random_tokens() {
    let mut random = Random(3);
    let words = [
        ".version",
        "8.0",
        ".target",
        "sm_90",
        ".entry",
        ".func",
        "f",
        "(",
        ")",
        "{",
        "}",
        ".reg",
        ".b32",
        "%r",
        "<",
        "9",
        ">",
        ";",
        ",",
        "add.s32",
        "%r1",
        "[",
        "]",
        "+",
        "-",
        "0f00000000",
        "bra",
        "L",
        ":",
        "@",
        "!",
        "%p",
        ".param",
        ".global",
        "=",
        "|",
        "call",
        "\"s\"",
        ".loc",
        ".section",
        ".pragma",
        ".branchtargets",
        ".callprototype",
        "_",
        "WARP_SZ",
        "?",
        "~",
        "*",
        "//",
        "\n",
        "/*",
        "*/",
        ".v4",
        ".align",
        "mov.b64",
        "%tid.x",
        ".attribute",
        ".alias",
    ];
    for _ in 0..2000 {
        let length = random.below(200);
        let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        let (module, diagnostics) = Module::parse_bytes("fuzz.ptx", &bytes);
        assert!(bytes.is_empty() || !diagnostics.is_empty());
        diagnostics
            .iter()
            .for_each(|d| assert!(!d.render(&module).is_empty()));
        let mut text = ".version 8.0 .target sm_90\n".to_owned();
        for _ in 0..random.below(80) {
            text.push_str(words[random.below(words.len())]);
            text.push_str(["", " "][random.below(2)]);
        }
        check(&text);
    }
}

#[test]
fn deep_nesting_and_long_runs_end() {
    let head = ".version 8.0\n.target sm_90\n.func f()\n{\n";
    let runs = [
        "{",
        "}",
        "(",
        "[",
        "{{}",
        "-",
        "!",
        "a:",
        ";",
        "\"",
        "#\n",
        "\0",
        "@",
        "1+",
        "1?",
        "mov a,{",
        "call (",
        ".x ",
        ".x;",
        "/*",
        "/**/",
        ".reg .b32 %r<16777216>;",
        "L: bra M; {",
        "\u{e9}",
        ".global .b8 a[4294967296][4294967296] = {{1},{1}};",
        "[a+",
        "%",
        ".section x {",
        "add .s32 a;",
        "bra L",
        ".loc 1 1 1,",
        "1",
        "~(",
        "x|",
        "{a,",
        ".pragma \"x\";",
    ];
    for run in runs {
        for prefix in ["", head, ".version 8.0\n.target sm_90\n.global .u32 a = "] {
            check(&format!("{prefix}{}", run.repeat(20_000 / run.len())));
        }
    }
}
