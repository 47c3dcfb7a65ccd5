//! Small wrong changes of everything that the filetests prove: none that computes something else is proved.
//!
//! Each `right-*` file has a version that the checker proves by one of its rules. Here one instruction of that version is
//! changed at a time: another number, operation, comparison or sign, operands or neighbours that change places, a guard
//! turned round, an instruction left out or done twice. `WARPWRIGHT_MUTANTS=all` takes all of them, else every so many.

mod common;

use common::filetests::{block, files, launch, name, source, versions};
use common::{Run, parse};
use warpwright_check::{Options, check_functions};
use warpwright_launch::Guard;
use warpwright_ptx::Module;

/// Of so many changes the normal test makes one.
const STRIDE: usize = 61;

/// Words of opcodes that a slip might exchange.
const SLIPS: [(&str, &str); 22] = [
    ("add.", "sub."),
    ("sub.", "add."),
    (".lt.", ".le."),
    (".le.", ".lt."),
    (".ge.", ".gt."),
    (".gt.", ".lt."),
    (".eq.", ".ne."),
    (".ne.", ".eq."),
    (".lo.", ".le."),
    ("and.b", "or.b"),
    ("or.b", "and.b"),
    ("xor.b", "or.b"),
    ("not.b32", "mov.b32"),
    ("mul.lo", "mul.hi"),
    ("mul.wide.u32", "mul.wide.s32"),
    ("mul.wide.s32", "mul.wide.u32"),
    (".s32", ".u32"),
    (".u32", ".s32"),
    ("shl.", "shr."),
    ("min.", "max."),
    ("cvt.s64.s32", "cvt.u64.u32"),
    ("cvt.u64.u32", "cvt.s64.s32"),
];

/// The line with each number in it one higher or lower.
fn other_numbers(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let bytes = line.as_bytes();
    let is_word = |at: usize| bytes[at].is_ascii_alphanumeric() || b"%_.$".contains(&bytes[at]);
    let mut at = 0;
    while at < bytes.len() {
        let begins = bytes[at].is_ascii_digit() && (at == 0 || !is_word(at - 1));
        let end = (at..bytes.len())
            .find(|&end| !is_word(end))
            .unwrap_or(bytes.len());
        if begins && let Ok(number) = line[at..end].parse::<u64>() {
            let others = [
                number.checked_add(1),
                number.checked_sub(1),
                number.checked_mul(2),
            ];
            for other in others
                .into_iter()
                .flatten()
                .filter(|&other| other != number)
            {
                found.push(format!("{}{other}{}", &line[..at], &line[end..]));
            }
        }
        at = end.max(at + 1);
    }
    found
}

/// The line with two neighbouring operands, behind the first one, in the other order.
fn other_orders(line: &str) -> Vec<String> {
    let Some((start, rest)) = line.split_once(", ") else {
        return Vec::new();
    };
    let parts: Vec<&str> = rest.trim_end_matches(';').split(", ").collect();
    (1..parts.len())
        .filter(|&at| parts[at] != parts[at - 1])
        .map(|at| {
            let mut parts = parts.clone();
            parts.swap(at - 1, at);
            format!("{start}, {};", parts.join(", "))
        })
        .collect()
}

/// What may stand in place of a line, the next line left as it is.
fn slips(line: &str) -> Vec<String> {
    let mut found = vec![String::new(), format!("{line}\n{line}")];
    found.extend(
        SLIPS
            .iter()
            .filter(|(from, _)| line.contains(from))
            .map(|(from, to)| line.replacen(from, to, 1)),
    );
    found.extend(line.find("@!").map(|_| line.replacen("@!", "@", 1)));
    found.extend(line.find("@%").map(|_| line.replacen("@%", "@!%", 1)));
    found.extend(other_numbers(line));
    found.extend(other_orders(line));
    found
}

/// All texts in which one instruction of the kernel `rewritten` is changed.
fn mutants(text: &str) -> Vec<String> {
    let start = text.find(".entry rewritten").expect("the second version");
    let lines: Vec<&str> = text[start..].lines().collect();
    let is_instruction = |line: &&str| {
        let line = line.trim();
        line.ends_with(';') && !line.starts_with(['.', '/', '{', '}'])
    };
    let with = |at: usize, count: usize, new: String| {
        let all = lines[..at]
            .iter()
            .copied()
            .chain([new.as_str()])
            .chain(lines[at + count..].iter().copied());
        text[..start].to_owned() + &all.collect::<Vec<_>>().join("\n")
    };
    let mut found = Vec::new();
    for (at, line) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| is_instruction(line))
    {
        found.extend(slips(line).into_iter().map(|new| with(at, 1, new)));
        if let Some(next) = lines.get(at + 1).filter(|next| is_instruction(next)) {
            found.push(with(at, 2, format!("{next}\n{line}")));
        }
    }
    found
}

fn is_proved(module: &Module) -> bool {
    let [a, b] =
        ["original", "rewritten"].map(|name| module.function(name).expect("both versions"));
    check_functions((module, a), (module, b), &Options::default()).is_proved()
}

/// Numbers of elements, and whether both buffers are one: never where threads would meet.
const SIZES: [u32; 6] = [0, 1, 3, 5, 8, 40];

/// Does the version compute something else on some launch on which the original has no fault?
fn differs(module: &Module, block: &str) -> bool {
    SIZES.iter().any(|&n| {
        let of = |kernel| launch(module, kernel, block, n, false, &Guard::always());
        let before = of("original");
        matches!(before, Run::Finished(_)) && of("rewritten") != before
    })
}

#[test]
fn no_slip_that_shows_is_proved() {
    let all = std::env::var("WARPWRIGHT_MUTANTS").is_ok_and(|value| value == "all");
    let stride = if all { 1 } else { STRIDE };
    let (mut made, mut proved) = (0, 0);
    let mut found = Vec::new();
    for path in files("right-") {
        let [(_, first), (_, second)] = versions(&path);
        if first == second {
            continue;
        }
        for (number, text) in mutants(&source(&path)).into_iter().enumerate() {
            made += 1;
            if made % stride != 0 {
                continue;
            }
            let Some(module) = parse("slip.ptx", &text) else {
                continue;
            };
            if !is_proved(&module) {
                continue;
            }
            proved += 1;
            if differs(&module, &block(&path)) {
                found.push(format!("{} {number}\n{text}", name(&path)));
            }
        }
    }
    println!("of {made} changes every {stride}. was made: {proved} are proved");
    assert!(found.is_empty(), "{}", found.join("\n\n"));
    assert!(
        made >= 10_000 && proved >= 3,
        "the test runs dry: {made} {proved}"
    );
}
