//! What the model takes for one candidate.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::time::{Duration, Instant};

use warpwright_model::correction::Correction;
use warpwright_model::features::{Build, Terms, features};
use warpwright_model::{Case, Parameters, predict};
use warpwright_sass::Cubin;
use warpwright_target::lookup;

/// A loop of loads and arithmetic in a loop, so many instructions in all.
fn cubin(instructions: usize) -> Vec<u8> {
    let mut text = String::from(".sm 90\n.function k\n");
    let mut line = |control: &str, what: &str| {
        let _ = writeln!(text, "{control} {what}");
    };
    line("B------:R-:W-:-:S05:U----", "MOV R2, 0x7");
    for n in 0..(instructions - 2) / 4 {
        let board = n % 6;
        let wait: String = (0..6)
            .map(|b| {
                if b == board {
                    char::from(b'0' + b as u8)
                } else {
                    '-'
                }
            })
            .collect();
        let load = format!("B------:R-:W{board}:-:S01:U----");
        line(&load, "LDS R4, [R2]");
        line(&format!("B{wait}:R-:W-:-:S04:U----"), "FFMA R5, R4, R4, R5");
        line("B------:R-:W-:-:S02:U----", "FADD R6, R5, R4");
        line("B------:R-:W-:-:S05:U----", "IADD3 R2, R2, R2, R4");
    }
    line("B------:R-:W-:-:S05:U----", "EXIT");
    warpwright_sass::text::assemble(&text).unwrap()
}

#[test]
fn a_candidate_of_2000_instructions_takes_less_than_20_milliseconds() {
    let bytes = cubin(2002);
    let cubin = Cubin::parse(&bytes).unwrap();
    let kernel = cubin.kernel("k").unwrap();
    assert!(kernel.code.len() >= 2000, "{}", kernel.code.len());
    let gpu = lookup("h200").unwrap();
    let case = Case {
        gpu: &gpu,
        code: &kernel.code,
        targets: &kernel.targets,
        warps: 32,
        grid_warps: Some(64),
        frame_bytes: 0,
        shared_per_sm: 0,
        global_bytes: None,
        counts: None,
    };
    let build = Build {
        case,
        registers: 32,
        threads: 128,
        blocks: 8,
        grid: Some(4096),
    };
    let parameters = Parameters::default();
    let correction = Correction::fitted().unwrap();
    // The least of several: other work on the machine only adds.
    let least = (0..5)
        .map(|_| {
            let begin = Instant::now();
            let predicted = predict(&case, &parameters);
            let terms = Terms::new(&build, &parameters);
            let judgement = correction.judge(&features(&terms, &terms, 1.0));
            assert!(predicted.cycles > 0.0 && judgement.expected > 0.0);
            begin.elapsed()
        })
        .min()
        .unwrap();
    assert!(least < Duration::from_millis(20), "{least:?}");
    println!("{least:?} for {} instructions", kernel.code.len());
}
