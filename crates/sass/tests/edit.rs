//! Insert NOPs everywhere: nvdisasm prints the same program, and taking them out again gives back
//! every byte.

#![allow(clippy::unwrap_used)]

mod sample;

use std::collections::BTreeMap;

use sample::{Sample, Variant, build, cubins};
use warpwright_sass::edit::Moves;
use warpwright_sass::{Edit, Elf, Instruction};
use warpwright_toolkit::Nvdisasm;
use warpwright_toolkit::testing::require_toolkit;

/// A NOP that issues in one cycle and waits for nothing.
fn nop(sm: u32) -> Instruction {
    Instruction::new(sm, 0x000f_e200_0000_0000_0000_0000_0000_7918)
}

const NOP_OPERATION: u16 = 0x118;

/// One NOP before every instruction and one more after every third.
fn stuff(elf: &mut Elf, name: &str) -> Result<Moves, String> {
    let kernel = elf.kernel(name).unwrap();
    let code = elf.instructions(&kernel).unwrap();
    let padding = code.iter().rev();
    let padding = padding
        .take_while(|i| i.operation() == NOP_OPERATION)
        .count();
    let mut edit = Edit::new();
    for at in 0..code.len() - padding {
        edit.insert_before(at, [nop(elf.target().sm)]);
        if at % 3 == 0 && at + 1 < code.len() - padding {
            edit.insert_after(at, [nop(elf.target().sm)]);
        }
    }
    edit.apply(elf, name).map_err(|e| e.to_string())
}

/// Deletes what [`stuff`] inserted into a function of so many instructions.
fn empty(elf: &mut Elf, name: &str, moves: &Moves, old: usize) {
    let kept: Vec<u64> = (0..old as u64)
        .filter_map(|i| moves.instruction(i * 16))
        .collect();
    let last = kept.iter().copied().max().unwrap();
    let kernel = elf.kernel(name).unwrap();
    let code = elf.instructions(&kernel).unwrap();
    let padding = code.iter().rev();
    let padding = padding
        .take_while(|i| i.operation() == NOP_OPERATION)
        .count();
    let mut edit = Edit::new();
    for (at, instruction) in code.iter().enumerate().take(code.len() - padding) {
        let here = at as u64 * 16;
        if here <= last && !kept.contains(&here) {
            assert_eq!(instruction.operation(), NOP_OPERATION);
            edit.delete(at);
        }
    }
    edit.apply(elf, name).unwrap();
}

/// What nvdisasm prints, without addresses and NOPs. A label is named by the number of
/// instructions before it, so it does not matter whether it stands before a NOP or behind it.
fn program(text: &str) -> Vec<String> {
    let mut labels = BTreeMap::new();
    let mut instructions = 0;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        let line = match line.strip_prefix("/*") {
            Some(rest) if line.ends_with(';') => rest.split_once("*/").unwrap().1.trim(),
            _ => line,
        };
        match line.strip_suffix(':') {
            _ if line.starts_with("NOP") || line.is_empty() => {}
            Some(label) if label.starts_with(".L_x_") => {
                labels.insert(label.to_string(), instructions);
            }
            _ => {
                instructions += usize::from(line.ends_with(';'));
                // Remarks stand in columns.
                lines.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
    }
    for line in &mut lines {
        while let Some(at) = line.find(".L_x_") {
            let digits = line[at + 5..].find(|c: char| !c.is_ascii_digit());
            let end = digits.map_or(line.len(), |d| at + 5 + d);
            let place = labels[&line[at..end]];
            line.replace_range(at..end, &format!("<{place}>"));
        }
    }
    lines
}

/// Are the lines the same but for a return address?
fn same(old: &str, new: &str, moves: &BTreeMap<String, Moves>) -> bool {
    let number = |line: &str| {
        let (head, hex) = line.trim_end_matches([' ', ';']).rsplit_once("0x")?;
        let value = u64::from_str_radix(hex, 16).ok()?;
        Some((head.to_string(), value))
    };
    match (number(old), number(new)) {
        _ if old == new => true,
        (Some((head, old)), Some((other, new))) => {
            head == other && moves.values().any(|m| m.behind(old) == Some(new))
        }
        _ => false,
    }
}

fn assert_edits(sample: &Sample, nvdisasm: &Nvdisasm) -> (usize, Vec<String>) {
    let Sample { name, cubin } = sample;
    let original = Elf::parse(cubin).unwrap();
    let mut elf = original.clone();
    let mut all = BTreeMap::new();
    let mut refusals = Vec::new();
    for kernel in original.kernels().unwrap() {
        match stuff(&mut elf, &kernel.name) {
            Ok(moves) => drop(all.insert(kernel.name, moves)),
            Err(why) => refusals.push(why),
        }
    }
    let stuffed = elf.write().unwrap();
    let text = |cubin: &[u8]| program(&nvdisasm.disassemble(cubin, &["-c", "-g"]).unwrap());
    let (old, new) = (text(cubin), text(&stuffed));
    for (old, new) in old.iter().zip(&new) {
        assert!(same(old, new, &all), "{name}:\n{old}\n{new}");
    }
    assert_eq!(old.len(), new.len(), "{name}");
    let mut back = Elf::parse(&stuffed).unwrap();
    for (kernel, moves) in &all {
        let code = original.kernel(kernel).unwrap();
        let count = original.instructions(&code).unwrap().len();
        empty(&mut back, kernel, moves, count);
    }
    let back = back.write().unwrap();
    assert!(back == *cubin, "{name} does not come back");
    (all.len(), refusals)
}

#[test]
fn nops_everywhere_and_out_again() {
    let Some(samples) = cubins("edits of cubins") else {
        return;
    };
    let toolkit = require_toolkit("edits of cubins").unwrap();
    let nvdisasm = toolkit.nvdisasm().unwrap();
    let mut edited = 0;
    for sample in &samples {
        if sample.name.contains("Debug") || sample.name.contains("Relocatable") {
            continue;
        }
        let (count, refusals) = assert_edits(sample, &nvdisasm);
        for why in &refusals {
            let known = ["BRX at", "through a register at", "LEPC", "of CALL."];
            assert!(
                known.iter().any(|k| why.contains(k)),
                "{}: {why}",
                sample.name
            );
        }
        edited += count;
    }
    assert!(edited > 100, "only {edited} functions were edited");
}

#[test]
fn what_cannot_follow_is_refused() {
    let Some(toolkit) = require_toolkit("refused edits") else {
        return;
    };
    let control = "crates/corpus/cuda/control.cu";
    let jumps = "_Z10jump_tableILi1EEvPfPKi";
    let cases = [
        (Variant::Debug, "limited", "full debug information"),
        (Variant::Relocatable, "limited", "relocatable"),
        (Variant::Lines, jumps, "BRX"),
        (Variant::Lines, "no such kernel", "has no function"),
    ];
    for (variant, kernel, reason) in cases {
        let sample = build(&toolkit, control, "sm_75", "sm_90", variant);
        let mut elf = Elf::parse(&sample.cubin).unwrap();
        let mut edit = Edit::new();
        edit.insert_before(0, [nop(90)]);
        let error = edit.apply(&mut elf, kernel).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(elf.write().unwrap() == sample.cubin, "{reason}: changed");
    }
    let sample = build(&toolkit, control, "sm_75", "sm_90", Variant::Lines);
    let mut elf = Elf::parse(&sample.cubin).unwrap();
    let kernel = elf.kernel("limited").unwrap();
    let code = elf.instructions(&kernel).unwrap();
    let exit = code.iter().position(|i| i.is_exit()).unwrap();
    let mut edit = Edit::new();
    edit.delete(exit);
    let error = edit.apply(&mut elf, "limited").unwrap_err().to_string();
    assert!(
        error.contains("EXIT_INSTR_OFFSETS names a deleted"),
        "{error}"
    );
    let mut edit = Edit::new();
    edit.insert_after(code.len(), [nop(90)]);
    assert!(edit.apply(&mut elf, "limited").is_err());
}
