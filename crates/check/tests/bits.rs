//! Every byte of small cubins, changed one bit at a time: what is proved all the same is so by a rule with a
//! name (docs/checker.md, 'Every byte of a cubin'). It prints how many of each. `WARPWRIGHT_BITS=all` takes every bit of
//! every byte of the small files instead of some, and the metadata of the others.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use warpwright_check::{CubinOptions, check_files};
use warpwright_flow::{Cfg, Inst};
use warpwright_sass::Elf;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::roles::Table;

const E: LittleEndian = LittleEndian;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cubins")
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.cubin"))).expect("a file of this folder")
}

/// `unreadable`, or the worst of all verdicts.
fn verdict(original: &[u8], new: &[u8]) -> &'static str {
    let Ok(answers) = check_files(original, new, &CubinOptions::default()) else {
        return "unreadable";
    };
    let words = answers.iter().map(|(_, answer)| answer.verdict.word());
    // Alphabetical order happens to go from good to bad, backwards.
    let worst = words.max_by_key(|word| {
        ["proved", "refuted", "undecided"]
            .iter()
            .position(|w| w == word)
    });
    worst.unwrap_or("unreadable")
}

/// The parts of a file: start, end, and the rule under which changes there may be harmless.
fn parts(file: &[u8]) -> Vec<(u64, u64, &'static str)> {
    let header = FileHeader64::<LittleEndian>::parse(file).expect("an ELF file");
    let sections = header.sections(E, file).expect("sections");
    let mut parts = vec![(0, 64, "")];
    let table = header.e_shoff(E);
    let names: Vec<String> = sections
        .iter()
        .map(|section| {
            let name = sections.section_name(E, section).expect("a name");
            String::from_utf8(name.to_vec()).expect("text")
        })
        .collect();
    for (at, section) in sections.iter().enumerate() {
        let name = names[at].as_str();
        let rule = match name {
            "" => "null entries",
            ".strtab" | ".shstrtab" | ".symtab" => "names",
            ".nv.info" => "numbers",
            _ if name.contains("debug_") || name == ".note.nv.tkinfo" => "not loaded",
            _ if name.starts_with(".nv.info.") => "annotations and limits",
            _ if name.starts_with(".text.") => "code",
            _ => "",
        };
        let entry = table + 64 * at as u64;
        let of_header = if matches!(rule, "null entries" | "names" | "not loaded") {
            rule
        } else {
            ""
        };
        parts.push((entry, entry + 64, of_header));
        if section.sh_type(E) == object::elf::SHT_NOBITS || section.sh_size(E) == 0 {
            parts.insert(0, (entry + 0x18, entry + 0x20, "offset of nothing"));
        }
        if let Some((start, size)) = section.file_range(E) {
            parts.push((start, start + size, rule));
        }
    }
    let segments = header.program_headers(E, file).expect("program headers");
    for (at, segment) in segments.iter().enumerate() {
        let entry = header.e_phoff(E) + 56 * at as u64;
        if segment.p_filesz(E) == 0 {
            parts.push((entry + 8, entry + 16, "offset of nothing"));
        }
        parts.push((entry, entry + 56, ""));
    }
    parts
}

fn rule(parts: &[(u64, u64, &'static str)], at: u64) -> &'static str {
    let inside = parts
        .iter()
        .find(|(start, end, _)| (*start..*end).contains(&at));
    inside.map_or("between the parts", |part| part.2)
}

type Counts = BTreeMap<String, u32>;

fn is_long() -> bool {
    std::env::var_os("WARPWRIGHT_BITS").is_some_and(|value| value == "all")
}

/// One bit of each byte that is no code, or all eight.
fn metadata(name: &str, all: bool, lawless: &mut Vec<String>) -> Counts {
    let file = read(name);
    let parts = parts(&file);
    let mut counts = Counts::new();
    for at in 0..file.len() {
        let rule = rule(&parts, at as u64);
        if rule == "code" {
            continue;
        }
        let bits = match all {
            true => 0..8,
            false => at % 8..at % 8 + 1,
        };
        for bit in bits {
            let mut changed = file.clone();
            changed[at] ^= 1 << bit;
            let mut word = verdict(&file, &changed).to_owned();
            if word == "proved" {
                if rule.is_empty() {
                    lawless.push(format!("{name}: byte {at:#x}, bit {bit}"));
                }
                word = format!("proved: {rule}");
            }
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

/// Every bit of every n-th instruction.
fn code(name: &str, every: usize, lawless: &mut Vec<String>) -> Counts {
    let file = read(name);
    let elf = Elf::parse(&file).expect("a cubin");
    let mut counts = Counts::new();
    for kernel in elf.kernels().expect("kernels") {
        let code = Code::new(&elf, &kernel, Calls::Followed).expect("code");
        let table = Table::for_sm(elf.target().sm).expect("a table");
        let cfg = Cfg::new(&code);
        let reached: Vec<Inst> = cfg
            .reverse_postorder()
            .iter()
            .flat_map(|&b| cfg.insts(b))
            .collect();
        let words = code.instructions().to_vec();
        for at in (0..words.len()).step_by(every) {
            for bit in 0..128 {
                let mut changed = words.clone();
                changed[at] = changed[at].with_bits(changed[at].bits() ^ 1 << bit);
                let mut new = elf.clone();
                new.set_instructions(&kernel.name, &changed)
                    .expect("as many");
                let new = new.write().expect("a cubin");
                let mut word = verdict(&file, &new).to_owned();
                if word == "proved" {
                    let is_register = code.roles(Inst(at as u32)).spans().iter().any(|span| {
                        let field = table.field((*span).into());
                        (field.0..field.0 + field.1).contains(&bit)
                    });
                    let rule = match bit {
                        105.. => "schedule",
                        _ if !reached.contains(&Inst(at as u32)) => "never reached",
                        _ if is_register => "registers of equal value, or dead",
                        16..=23 | 34..=81 if words[at].bits() & 0xfff == 0x947 => {
                            "another way to the same"
                        }
                        _ if is_unused(&code, Inst(at as u32)) => "result that nobody reads",
                        _ if words[at].bits() >> 12 & 0xf == 0xf => "never executed",
                        84..=86 if matches!(words[at].bits() & 0xfff, 0x387 | 0x983) => "eviction",
                        _ => {
                            lawless.push(format!("{name}: instruction {:#x}, bit {bit}", at * 16));
                            ""
                        }
                    };
                    word = format!("proved: {rule}");
                }
                *counts.entry(word).or_default() += 1;
            }
        }
    }
    counts
}

/// Does it write registers that no instruction reads?
fn is_unused(code: &Code, inst: Inst) -> bool {
    let mut read = Vec::new();
    for other in 0..code.instructions().len() as u32 {
        for span in code.roles(Inst(other)).uses() {
            read.extend(span.registers().map(|number| (span.file, number)));
        }
    }
    let writes = code.roles(inst).defs();
    let mut writes = writes.flat_map(|span| span.registers().map(move |n| (span.file, n)));
    writes.next().is_some_and(|first| {
        !read.contains(&first) && writes.all(|register| !read.contains(&register))
    })
}

fn show(text: &mut String, name: &str, what: &str, counts: &Counts) {
    let all: u32 = counts.values().sum();
    let _ = writeln!(text, "{name}, {what}: {all} changes");
    for (word, count) in counts {
        let _ = writeln!(text, "  {count:6} {word}");
    }
}

#[test]
fn single_bits_are_compared_or_free_by_a_rule() {
    let mut text = String::new();
    let mut lawless = Vec::new();
    const SMALL: [&str; 3] = ["B-data", "B-red", "B-async"];
    const LARGE: [&str; 2] = ["B2-ldl-orig", "B-spill"];
    let more = LARGE.iter().filter(|_| is_long());
    for name in SMALL.iter().chain(more) {
        let all = is_long() && SMALL.contains(name);
        show(
            &mut text,
            name,
            "one bit of the metadata",
            &metadata(name, all, &mut lawless),
        );
    }
    for (name, every) in [
        ("B-data", 5),
        ("B-red", 11),
        ("B-async", 7),
        ("B2-ldl-orig", 61),
        ("B-spill", 401),
    ] {
        let every = match is_long() && SMALL.contains(&name) {
            true => 1,
            false => every,
        };
        show(
            &mut text,
            name,
            "one bit of the code",
            &code(name, every, &mut lawless),
        );
    }
    assert!(
        lawless.is_empty(),
        "proved by no rule:\n{}\n{text}",
        lawless.join("\n")
    );
    println!("{text}");
}

/// Each was proved once: what is changed stands in the name.
#[test]
fn found_from_outside() {
    for (original, changed) in [
        ("B-data", "B1-rela-constant3"),
        ("B-data", "B1-rela-constant4"),
        ("B-data", "B1-rela-dropped"),
        ("B2-ldl-orig", "B2-ldl-invalid7"),
        ("B2-ldl-orig", "B2-ldl-lu"),
        ("B-red", "B3-entry-plus-16"),
        ("B-red", "B3-no-load-segment"),
        ("B-red", "B3-text-not-exec"),
        ("B-spill", "B4-min-stack-0"),
        ("B-async", "B5-never-unknown-opcode"),
    ] {
        let (original, changed) = (read(original), read(changed));
        assert_eq!(verdict(&original, &original), "proved");
        assert_eq!(verdict(&original, &changed), "undecided");
    }
}
