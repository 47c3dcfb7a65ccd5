//! No number about a GPU stands outside `target`: no comparison of an architecture's number, no list of architectures,
//! no size of a register file or of shared memory, no warp size.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::collections::BTreeSet;
use std::path::Path;

use warpwright_house::sources;
use warpwright_target::architectures;

/// Numbers that look like one of a GPU's and are none: the file's end, what the line holds, and why.
const OTHERS: &[(&str, &str, &str)] = &[(
    "gpu/src/arena.rs",
    "const GUARD: usize = 64 * 1024;",
    "bytes between buffers",
)];

/// Sizes of registers and shared memory that are large enough to be meant where they stand.
fn sizes() -> BTreeSet<u64> {
    let sizes = architectures().flat_map(|arch| {
        let (registers, shared) = (arch.registers, arch.shared);
        [
            registers.per_sm,
            shared.per_sm,
            shared.per_block,
            shared.per_block_opt_in,
        ]
    });
    sizes.map(u64::from).filter(|&size| size > 40_000).collect()
}

/// The words of a line of code, without its comment: names, numbers, operators.
fn words(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or_default();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let kind = |c: char| match c {
        _ if is_word(c) => 0,
        '<' | '>' | '=' | '!' => 1,
        _ => 2,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut chars = code.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().copied();
        if next.is_none_or(|(_, next)| kind(next) != kind(c) || kind(c) == 2) {
            words.push(&code[start..at + c.len_utf8()]);
            start = at + c.len_utf8();
        }
    }
    words.retain(|word| !word.trim().is_empty());
    words
}

fn number(word: &str) -> Option<u64> {
    let word = word.replace('_', "");
    let suffixes = ["u8", "u16", "u32", "u64", "usize", "i32", "i64"];
    let plain = suffixes.iter().find_map(|suffix| word.strip_suffix(suffix));
    let plain = plain.unwrap_or(&word);
    match plain.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => plain.parse().ok(),
    }
}

/// `[75, 80]`, `&[90]`: brackets that hold nothing but numbers of architectures, in a constant or beside `sm`.
fn is_list_of_architectures(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    if !code.contains("const ") && !words(code).contains(&"sm") {
        return false;
    }
    let inside = code
        .split('[')
        .skip(1)
        .filter_map(|rest| rest.split_once(']'));
    let is_known = |item: &str| {
        let number = number(item.trim());
        number.is_some_and(|number| architectures().any(|arch| u64::from(arch.sm) == number))
    };
    inside.into_iter().any(|(list, _)| {
        let items: Vec<&str> = list
            .split(',')
            .filter(|item| !item.trim().is_empty())
            .collect();
        !items.is_empty() && items.into_iter().all(is_known)
    })
}

/// What of a line is a number about a GPU.
fn finding(line: &str, sizes: &BTreeSet<u64>) -> Option<&'static str> {
    let words = words(line);
    let is_order = |word: &str| matches!(word, "<" | ">" | "<=" | ">=" | "==" | "!=");
    // `sm`, `arch.sm`, `self.sm()` before the operator.
    let is_sm = |at: usize| {
        let before: Vec<&str> = words[..at].iter().rev().copied().collect();
        matches!(before[..], ["sm", ..] | [")", "(", "sm", ..])
    };
    for at in 1..words.len().saturating_sub(1) {
        if !is_order(words[at]) {
            continue;
        }
        if is_sm(at) && number(words[at + 1]).is_some() {
            return Some("an architecture is compared with a number");
        }
        let is_reverse = number(words[at - 1]).is_some()
            && words[at + 1..].iter().take(5).any(|&word| word == "sm");
        if is_reverse {
            return Some("an architecture is compared with a number");
        }
    }
    if is_list_of_architectures(line) {
        return Some("a list of architectures");
    }
    let numbers = words.iter().filter_map(|word| number(word));
    if numbers.into_iter().any(|number| sizes.contains(&number)) {
        return Some("the size of a register file or of shared memory");
    }
    let kilobytes = words.windows(3).any(|three| {
        let size = number(three[0]).and_then(|n| n.checked_mul(1024));
        let is_size = size.is_some_and(|size| sizes.contains(&size));
        // A power of two is any buffer's size.
        let is_shift = three[1..] == ["<<", "10"] && size.is_some_and(|n| !n.is_power_of_two());
        is_size && (three[1..] == ["*", "1024"] || is_shift)
    });
    if kilobytes {
        return Some("the size of a register file or of shared memory");
    }
    let is_warp = line.contains("const ") && line.contains("WARP") && line.contains("= 32;");
    is_warp.then_some("the size of a warp")
}

#[test]
fn numbers_about_gpus_stand_in_target() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut files = Vec::new();
    for room in std::fs::read_dir(&crates).unwrap() {
        let room = room.unwrap().path();
        if room.file_name().is_some_and(|name| name != "target") {
            sources(&room.join("src"), &mut files);
        }
    }
    files.sort();
    assert!(files.len() > 400, "{}", files.len());
    let sizes = sizes();
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for (at, line) in code.lines().enumerate() {
            let is_other = OTHERS
                .iter()
                .any(|(end, part, _)| file.ends_with(end) && line.contains(part));
            if let (Some(what), false) = (finding(line, &sizes), is_other) {
                found.push(format!("{}:{}: {what}: {line}", file.display(), at + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn such_numbers_are_found() {
    let sizes = sizes();
    for line in [
        "if sm < 90 {",
        "let field = if self.sm() >= 100 {",
        "match target.arch.sm == 90u32 {",
        "if 90 <= gpu.arch.sm {",
        "const MOST: u64 = 232_448;",
        "let limit = 48 * 1024;",
        "if total > 48 << 10 {",
        "const SHARED: u64 = 227 << 10;",
        "pub const WARP: usize = 32;",
        "const FILE: u32 = 0x10000;",
        "const TRIED: [u32; 1] = [90];",
        "match [80, 90].contains(&sm) {",
    ] {
        assert!(finding(line, &sizes).is_some(), "{line}");
    }
    for line in [
        "if machine_code(sm).names_code {",
        "let small = forms < 90; // sm < 90",
        "for item in 0..64 * 1000 {",
        "let buffer = 64 << 10;",
        "let wanted = sm == other.sm;",
        "const SIZES: [u32; 3] = [30, 90, 64];",
        "let first = table[80];",
    ] {
        assert_eq!(finding(line, &sizes), None, "{line}");
    }
}
