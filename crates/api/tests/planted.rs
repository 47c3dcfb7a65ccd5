//! Mistakes that people and generators make, planted in right rewrites (`planted.cu`): each is refuted at the sizes that a
//! check derives, whatever the seed of the described inputs, and the rewritten kernel is charged.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use warpwright_api::{Input, Optimizer, RewriteOptions, Rewritten, Word};
use warpwright_launch::LaunchFile;
use warpwright_toolkit::NvccJob;
use warpwright_toolkit::testing::require_toolkit;

/// What is wrong, as issue trackers have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Tail,
    Guard,
    Stride,
    Index,
    LostBarrier,
    ExtraBarrier,
    LostAtomic,
    Identity,
    LostStep,
    Unset,
    SecondTile,
    FastPath,
    LeftOutput,
    Formula,
}

use Kind::*;

/// A rewrite: its plain kernel with its launch, its own launch, the arguments, and of each mistake its kind and the reason
/// for which it is refuted.
struct Planted {
    plain: (&'static str, &'static str, &'static str),
    rewrite: (&'static str, &'static str, &'static str),
    args: [&'static str; 2],
    mistakes: &'static [(Kind, &'static str)],
}

const FLAT: &str = "x f32 n; out f32 n out; n s32 = n";
const ROWS: &str = "x f32 rows,n; out f32 rows out; n s32 = n";
const TABLE: &str = "x f32 rows,n; out f32 rows,n out; n s32 = n";
const INTEGERS: &str = "x s32 rows,n; out s32 rows,n out; n s32 = n";
const ONE: &str = "x f32 n; out f32 1 out; n s32 = n";
const ADDED: &str = "x f32 n; out f32 1 zeros out; n s32 = n";
const PARTS: &str = "x f32 n; part f32 3 poison; out f32 1 out; n s32 = n";
const PAIR: &str = "x f32 n; y f32 n; out f32 1 out; n s32 = n";
const SQUARES: &str = "a f32 n,n; b f32 n,n; c f32 n,n out; n s32 = n";
const SQUARE: &str = "x f32 n,n; out f32 n,n out; n s32 = n";
const COUNTS: &str = "x u8 n kinds; out u32 16 zeros out; n s32 = n";

const PLANTED: [Planted; 15] = [
    Planted {
        plain: ("twice", "ceil_div(n,32)", "32"),
        rewrite: ("map_fours", "ceil_div(n,128)+1", "32"),
        args: [FLAT, FLAT],
        mistakes: &[
            (Tail, "unwritten"),
            (Tail, "unwritten"),
            (Guard, "out-of-bounds"),
            (Tail, "out-of-bounds"),
            (Index, "shown"),
            (Index, "misaligned"),
            (Tail, "shown"),
        ],
    },
    Planted {
        plain: ("twice", "ceil_div(n,32)", "32"),
        rewrite: ("map_stride", "2", "32"),
        args: [FLAT, FLAT],
        mistakes: &[
            (Stride, "unwritten"),
            (Guard, "unwritten"),
            (Index, "shown"),
            (Index, "unwritten"),
            (SecondTile, "unwritten"),
            (FastPath, "shown"),
            (FastPath, "unwritten"),
            (LeftOutput, "shown"),
            (FastPath, "unwritten"),
            (Formula, "shown"),
            (Formula, "input-written"),
            (Guard, "out-of-bounds"),
        ],
    },
    Planted {
        plain: ("sum", "rows", "1"),
        rewrite: ("sum_tree", "rows", "64"),
        args: [ROWS, ROWS],
        mistakes: &[
            (LostBarrier, "race"),
            (LostBarrier, "race"),
            (Stride, "shown"),
            (LostStep, "shown"),
            (Index, "shown"),
            (Guard, "shown"),
            (Unset, "unset"),
            (ExtraBarrier, "barrier-divergence"),
            (Identity, "shown"),
            (LostStep, "shown"),
            (SecondTile, "shown"),
            (Index, "out-of-bounds"),
            (Guard, "race"),
            (Index, "shown"),
            (Stride, "shown"),
            (LeftOutput, "unwritten"),
        ],
    },
    Planted {
        plain: ("sum", "rows", "1"),
        rewrite: ("sum_warp", "rows", "32"),
        args: [ROWS, ROWS],
        mistakes: &[
            (LostStep, "shown"),
            (Formula, "warp-divergence"),
            (Stride, "shown"),
            (Guard, "unset"),
            (LostStep, "shown"),
            (LostStep, "shown"),
            (Index, "shown"),
            (LeftOutput, "second-launch"),
        ],
    },
    Planted {
        plain: ("total", "1", "1"),
        rewrite: ("total_atomic", "2", "32"),
        args: [ONE, ADDED],
        mistakes: &[
            (LostAtomic, "race"),
            (LostAtomic, "race"),
            (Guard, "shown"),
            (SecondTile, "shown"),
            (LostAtomic, "race"),
            (Formula, "shown"),
        ],
    },
    Planted {
        plain: ("total", "1", "1"),
        rewrite: ("total_last", "3", "32"),
        args: [ONE, PARTS],
        mistakes: &[
            (LostBarrier, "race"),
            (Guard, "unset"),
            (Index, "shown"),
            (LostAtomic, "race"),
        ],
    },
    Planted {
        plain: ("largest", "rows", "1"),
        rewrite: ("max_tree", "rows", "64"),
        args: [ROWS, ROWS],
        mistakes: &[
            (Identity, "shown"),
            (Identity, "shown"),
            (Guard, "shown"),
            (SecondTile, "shown"),
            (LostBarrier, "race"),
            (Unset, "unset"),
            (Formula, "shown"),
            (Identity, "shown"),
            (ExtraBarrier, "barrier-divergence"),
        ],
    },
    Planted {
        plain: ("dot", "1", "1"),
        rewrite: ("dot_twos", "1", "32"),
        args: [PAIR, PAIR],
        mistakes: &[
            (Tail, "shown"),
            (LostStep, "shown"),
            (Identity, "shown"),
            (Index, "shown"),
            (Tail, "shown"),
            (Guard, "shown"),
        ],
    },
    Planted {
        plain: ("softmax", "rows", "1"),
        rewrite: ("softmax_block", "rows", "64"),
        args: [TABLE, TABLE],
        mistakes: &[
            (LostBarrier, "race"),
            (LostBarrier, "race"),
            (Identity, "shown"),
            (Formula, "shown"),
            (Index, "shown"),
            (SecondTile, "unwritten"),
            (Formula, "shown"),
            (SecondTile, "shown"),
            (ExtraBarrier, "barrier-divergence"),
        ],
    },
    Planted {
        plain: ("normed", "rows", "1"),
        rewrite: ("norm_warp", "rows", "32"),
        args: [TABLE, TABLE],
        mistakes: &[
            (Formula, "shown"),
            (Formula, "shown"),
            (Formula, "shown"),
            (Formula, "shown"),
            (Formula, "shown"),
            (LostStep, "shown"),
        ],
    },
    Planted {
        plain: ("product", "ceil_div(n,8) ceil_div(n,4)", "8 4"),
        rewrite: ("product_tiled", "ceil_div(n,8) ceil_div(n,8)", "8 8"),
        args: [SQUARES, SQUARES],
        mistakes: &[
            (LostBarrier, "race"),
            (LostBarrier, "race"),
            (Guard, "out-of-bounds"),
            (Index, "shown"),
            (Tail, "shown"),
            (Unset, "shown"),
            (Unset, "unset"),
            (Index, "shown"),
            (Guard, "out-of-bounds"),
            (Guard, "out-of-bounds"),
            (SecondTile, "shown"),
            (ExtraBarrier, "barrier-divergence"),
            (LostStep, "shown"),
        ],
    },
    Planted {
        plain: ("transpose", "ceil_div(n*n,64)", "64"),
        rewrite: ("transpose_tiled", "ceil_div(n,8) ceil_div(n,8)", "8 8"),
        args: [SQUARE, SQUARE],
        mistakes: &[
            (LostBarrier, "race"),
            (Index, "shown"),
            (Guard, "out-of-bounds"),
            (Index, "unset"),
            (Index, "unset"),
            (Guard, "out-of-bounds"),
            (ExtraBarrier, "barrier-divergence"),
        ],
    },
    Planted {
        plain: ("summed", "rows", "1"),
        rewrite: ("scan_tiles", "rows", "32"),
        args: [INTEGERS, INTEGERS],
        mistakes: &[
            (LostBarrier, "race"),
            (LostBarrier, "race"),
            (LostStep, "shown"),
            (Index, "shown"),
            (SecondTile, "shown"),
            (Guard, "shown"),
            (Index, "shown"),
            (SecondTile, "shown"),
        ],
    },
    Planted {
        plain: ("blur", "ceil_div(n,64)", "64"),
        rewrite: ("blur_shared", "ceil_div(n,32)", "32"),
        args: [FLAT, FLAT],
        mistakes: &[
            (Unset, "unset"),
            (Index, "shown"),
            (Guard, "shown"),
            (LostBarrier, "race"),
            (Formula, "shown"),
            (Index, "shown"),
            (Unset, "unset"),
            (ExtraBarrier, "barrier-divergence"),
        ],
    },
    Planted {
        plain: ("histogram", "ceil_div(n,32)", "32"),
        rewrite: ("histogram_shared", "1", "32"),
        args: [COUNTS, COUNTS],
        mistakes: &[
            (Unset, "unset"),
            (LostBarrier, "race"),
            (LostAtomic, "race"),
            (LostBarrier, "race"),
            (Unset, "unset"),
            (Identity, "shown"),
        ],
    },
];

fn quoted(list: &str, by: char) -> String {
    let all: Vec<String> = list.split(by).map(|e| format!("\"{e}\"")).collect();
    all.join(", ")
}

fn described((kernel, grid, block): (&str, &str, &str), args: &str, seed: u64) -> LaunchFile {
    let (grid, block) = (quoted(grid, ' '), quoted(block, ' '));
    let mut text = format!(
        "kernel = \"{kernel}\"\n[sizes.small]\nn = 70\nrows = 3\n[launch]\ngrid = [{grid}]\nblock = [{block}]\n"
    );
    for arg in args.split("; ") {
        let words: Vec<&str> = arg.split(' ').collect();
        text += &format!(
            "[[args]]\nname = \"{}\"\ntype = \"{}\"\n",
            words[0], words[1]
        );
        if words[2] == "=" {
            text += &format!("value = \"{}\"\n", words[3]);
            continue;
        }
        let last = words.get(3).copied().unwrap_or_default();
        text += &format!("shape = [{}]\n", quoted(words[2], ','));
        text += &match (last, words[1]) {
            ("poison" | "zeros", _) => format!("init = \"{last}\"\n"),
            ("out", _) => String::new(),
            ("kinds", _) => format!("init = {{ kind = \"indices\", bound = 16, seed = {seed} }}\n"),
            (_, "s32") => format!("init = {{ kind = \"bits\", seed = {seed} }}\n"),
            _ => {
                format!("init = {{ kind = \"uniform\", low = -1.0, high = 1.0, seed = {seed} }}\n")
            }
        };
        text += if words.contains(&"out") {
            "output = true\n"
        } else {
            ""
        };
    }
    LaunchFile::parse(&text, kernel).unwrap()
}

/// The module with this kernel alone, and all variables.
fn alone(ptx: &str, kernel: &str) -> String {
    let start = format!(".entry {kernel}(");
    let kept = |part: &str| match part.contains(".entry ") && !part.contains(&start) {
        // Its first line was a comment's.
        false => format!("// {part}"),
        true => {
            let variables = part.lines().filter(|line| line.contains(".global .align"));
            variables.collect::<Vec<&str>>().join("\n")
        }
    };
    let parts: Vec<String> = ptx.split("\t// .globl\t").map(kept).collect();
    parts.join("\n")
}

/// Compares a rewrite, or one with a mistake, with its plain kernel.
fn compared(ptx: &str, planted: &Planted, mistake: usize, seed: u64) -> Rewritten {
    let (name, grid, block) = planted.rewrite;
    let mangled = format!("_Z{}{name}ILi{mistake}EE", name.len());
    let from = ptx.find(&mangled).unwrap();
    let symbol = ptx[from..].split(['(', '\n']).next().unwrap();
    let launches = [
        vec![described(planted.plain, planted.args[0], seed)],
        vec![described((symbol, grid, block), planted.args[1], seed)],
    ];
    let inputs = [planted.plain.0, symbol].map(|kernel| {
        let text = alone(ptx, kernel);
        Input::new(format!("{kernel}.ptx"), text).unwrap()
    });
    let options = RewriteOptions {
        launches,
        files: &|_, _, name| panic!("{name} is no file here"),
        size: None,
        set: Vec::new(),
        pairs: Vec::new(),
        requires: Vec::new(),
        fixed: Vec::new(),
        ranges: Vec::new(),
        only_described: false,
        nvcc: [Vec::new(), Vec::new()],
        watch: &|_, _, _| {},
    };
    Optimizer::without_toolkit()
        .check_rewrite(&inputs[0], &inputs[1], &options)
        .unwrap()
}

fn said(found: &Rewritten) -> String {
    let launches = found.launches.iter().map(|launch| {
        let why: Vec<&str> = launch.why.iter().map(|why| &*why.text).collect();
        format!(
            "{:?}: {}: {}",
            launch.set,
            launch.verdict.name(),
            why.join("; ")
        )
    });
    launches.collect::<Vec<String>>().join("\n  ")
}

/// The reasons of the launch that is refuted.
fn codes(found: &Rewritten) -> Vec<&'static str> {
    let refuted = found.launches.iter().filter(|l| l.verdict == Word::Refuted);
    refuted.flat_map(|l| &l.why).map(|why| why.code).collect()
}

#[test]
fn planted_mistakes_are_refuted_and_what_they_were_planted_in_is_not() {
    let Some(toolkit) = require_toolkit("planted") else {
        return;
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/planted.cu");
    let job = NvccJob::new(&path, "sm_90");
    let ptx = toolkit.nvcc().unwrap().to_ptx(&job).unwrap().ptx;
    let mut bad = Vec::new();
    let mut caught: BTreeMap<Kind, usize> = BTreeMap::new();
    for planted in &PLANTED {
        let name = planted.rewrite.0;
        let right = compared(&ptx, planted, 0, 0);
        if right.verdict > Word::Tested {
            bad.push(format!("{name} is right:\n  {}", said(&right)));
        }
        for (at, &(kind, code)) in planted.mistakes.iter().enumerate() {
            // What is seen without running anything depends on no inputs.
            let seeds = if code == "shown" { 0..3 } else { 0..1 };
            for seed in seeds {
                let found = compared(&ptx, planted, at + 1, seed);
                let is_so = found.verdict == Word::Refuted && codes(&found).contains(&code);
                if !is_so {
                    bad.push(format!(
                        "{name}<{}>, {kind:?}, `{code}`:\n  {}",
                        at + 1,
                        said(&found)
                    ));
                    break;
                }
            }
            *caught.entry(kind).or_default() += 1;
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    let kinds: BTreeSet<Kind> = caught.keys().copied().collect();
    assert!(
        caught.values().sum::<usize>() >= 100 && kinds.len() == 14,
        "{caught:?}"
    );
}
