//! Insert NOPs everywhere: nvdisasm prints the same program, and taking them out again gives back
//! every byte.

#![allow(clippy::unwrap_used)]

mod sample;

use std::collections::BTreeMap;

use sample::{Sample, Variant, build, cubins};
use warpwright_sass::edit::{EditError, Moves};
use warpwright_sass::elf::info::Attribute;
use warpwright_sass::{Edit, Elf, ElfError, Instruction, Operation};
use warpwright_toolkit::Nvdisasm;
use warpwright_toolkit::testing::require_toolkit;

/// A NOP that issues in one cycle and waits for nothing.
fn nop(sm: u32) -> Instruction {
    Instruction::new(sm, 0x000f_e200_0000_0000_0000_0000_0000_7918)
}

/// Why an edit was refused.
fn why(error: &ElfError) -> Option<&EditError> {
    match error {
        ElfError::Edit { why, .. } => Some(why),
        _ => None,
    }
}

/// One NOP before every instruction and one more after every third.
fn stuff(elf: &mut Elf, name: &str) -> Result<Moves, ElfError> {
    let kernel = elf.kernel(name).unwrap();
    let code = elf.instructions(&kernel).unwrap();
    let padding = code.iter().rev();
    let padding = padding
        .take_while(|i| i.operation() == Operation::NOP)
        .count();
    let mut edit = Edit::new();
    for at in 0..code.len() - padding {
        edit.insert_before(at, [nop(elf.target().sm)]);
        if at % 3 == 0 && at + 1 < code.len() - padding {
            edit.insert_after(at, [nop(elf.target().sm)]);
        }
    }
    edit.apply(elf, name)
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
        .take_while(|i| i.operation() == Operation::NOP)
        .count();
    let mut edit = Edit::new();
    for (at, instruction) in code.iter().enumerate().take(code.len() - padding) {
        let here = at as u64 * 16;
        if here <= last && !kept.contains(&here) {
            assert_eq!(instruction.operation(), Operation::NOP);
            edit.delete(at);
        }
    }
    edit.apply(elf, name).unwrap();
}

/// A branch through a table, with the place from which the table counts instead of the distance to it.
fn with_base(address: &str, operation: &str) -> String {
    let distance = operation
        .split_whitespace()
        .find_map(|w| w.strip_prefix("-0x"));
    match distance.filter(|_| operation.contains("BRX")) {
        Some(hex) => {
            let number = |hex| i64::from_str_radix(hex, 16).unwrap();
            let base = number(address) + 16 - number(hex);
            operation.replace(&format!("-0x{hex}"), &format!("<{base}>"))
        }
        None => operation.to_string(),
    }
}

/// What nvdisasm prints, without addresses and NOPs. A label is named by the number of
/// instructions before it, so it does not matter whether it stands before a NOP or behind it.
fn program(text: &str) -> Vec<String> {
    let mut labels = BTreeMap::new();
    let mut instructions = 0;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        let line = match line.strip_prefix("/*") {
            Some(rest) if line.ends_with(';') => {
                let (address, operation) = rest.split_once("*/").unwrap();
                &with_base(address, operation.trim())
            }
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
            Err(why) => refusals.push(why.to_string()),
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
        if sample.name.contains("Debug") {
            continue;
        }
        let (count, refusals) = assert_edits(sample, &nvdisasm);
        for why in &refusals {
            let known = ["through a register at", "LEPC", "of CALL.ABS"];
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

/// The words of a kernel's jump tables lead where they did, and so does `.nv.info`'s list of them.
#[test]
fn jump_tables_follow() {
    let Some(toolkit) = require_toolkit("jump tables") else {
        return;
    };
    let mut tables = 0;
    for gpu in sample::ARCHITECTURES {
        let control = "lab/corpus/cuda/control.cu";
        let cubin = build(&toolkit, control, "sm_75", gpu, Variant::Lines).cubin;
        let original = Elf::parse(&cubin).unwrap();
        for name in ["_Z10jump_tableILi1EEvPfPKi", "_Z10jump_tableILi2EEvPfPKi"] {
            let bank = format!(".nv.constant2.{name}");
            let words = |elf: &Elf| -> Vec<u64> {
                let data = &elf.section(&bank).unwrap().data;
                let word = |w: &[u8]| u64::from(u32::from_le_bytes(w.try_into().unwrap()));
                data.chunks(4).map(word).collect()
            };
            let listed = |elf: &Elf| -> Vec<u32> {
                let info = elf.info(&format!(".nv.info.{name}")).unwrap().unwrap();
                let targets = info.get(Attribute::INDIRECT_BRANCH_TARGETS);
                targets.map(|t| t.words()).unwrap_or_default()
            };
            if original.section(&bank).is_none() {
                continue;
            }
            let mut elf = original.clone();
            let moves = stuff(&mut elf, name).unwrap();
            let moved = |old: u64| moves.boundary(old).unwrap();
            let expected: Vec<u64> = words(&original).into_iter().map(moved).collect();
            assert_eq!(words(&elf), expected, "{gpu} {name}");
            let (old, new) = (listed(&original), listed(&elf));
            let (mut at, end) = (0, old.len());
            while at < end {
                let after = at + 3 + old[at + 2] as usize;
                assert_eq!(moves.instruction(old[at].into()), Some(new[at].into()));
                for i in at + 3..after {
                    assert_eq!(u64::from(new[i]), moved(old[i].into()), "{gpu} {name}");
                }
                (at, tables) = (after, tables + 1);
            }
        }
    }
    assert!(tables >= 8, "only {tables} tables");
}

/// What the linker makes of an edited file is the program that it makes of the unedited one.
#[test]
fn relocatable_files_link_to_the_same_program() {
    let Some(toolkit) = require_toolkit("links of edited files") else {
        return;
    };
    let nvlink = toolkit.nvcc().unwrap().tool().path.with_file_name("nvlink");
    if !nvlink.exists() {
        eprintln!("skipped: there is no {}", nvlink.display());
        return;
    }
    let nvdisasm = toolkit.nvdisasm().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let link = |cubin: &[u8], gpu: &str| {
        let (from, to) = (dir.path().join("in.cubin"), dir.path().join("out.cubin"));
        std::fs::write(&from, cubin).unwrap();
        let mut command = std::process::Command::new(&nvlink);
        let run = command
            .args(["-arch", gpu, "-o"])
            .args([&to, &from])
            .output();
        let run = run.unwrap();
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        std::fs::read(&to).unwrap()
    };
    for gpu in ["sm_75", "sm_90"] {
        let control = "lab/corpus/cuda/control.cu";
        let cubin = build(&toolkit, control, "sm_75", gpu, Variant::Relocatable).cubin;
        let mut elf = Elf::parse(&cubin).unwrap();
        let mut refusals = Vec::new();
        let mut all = BTreeMap::new();
        for kernel in elf.kernels().unwrap() {
            match stuff(&mut elf, &kernel.name) {
                Ok(moves) => drop(all.insert(kernel.name, moves)),
                Err(why) => refusals.push(why.to_string()),
            }
        }
        assert!(
            all.len() > 20,
            "{gpu}: {} were edited; {refusals:?}",
            all.len()
        );
        let text = |cubin: &[u8]| program(&nvdisasm.disassemble(cubin, &["-c"]).unwrap());
        let old = text(&link(&cubin, gpu));
        let new = text(&link(&elf.write().unwrap(), gpu));
        assert_eq!(old.len(), new.len(), "{gpu}");
        for (old, new) in old.iter().zip(&new) {
            assert!(same(old, new, &all), "{gpu}:\n{old}\n{new}");
        }
    }
}

/// A segment of variables that ends behind their last byte, where shared memory begins at its alignment, moves with
/// the code before it.
#[test]
fn a_segment_that_ends_at_an_alignment_moves() {
    let Some(toolkit) = require_toolkit("segments that end at an alignment") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (source, out) = (dir.path().join("k.ptx"), dir.path().join("k.cubin"));
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
                .visible .global .align 4 .b8 t[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};\n\
                .visible .entry k(.param .u64 p)\n{\n.shared .align 8 .b64 s[64];\n.reg .b64 %d<5>;\n.reg .b32 %r<3>;\n\
                ld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\nmov.u64 %d2, t;\nld.global.u32 %r2, [%d2];\n\
                cvt.u64.u32 %d3, %r2;\nst.shared.u64 [s], %d3;\nbar.sync 0;\nld.shared.u64 %d4, [s];\n\
                st.global.u64 [%d1], %d4;\nret;\n}\n";
    std::fs::write(&source, text).unwrap();
    let ptxas = toolkit.ptxas().unwrap().tool().path.clone();
    let mut command = std::process::Command::new(ptxas);
    command.arg("-arch=sm_90").arg(&source).arg("-o").arg(&out);
    assert!(command.status().unwrap().success());
    let cubin = std::fs::read(&out).unwrap();
    let mut elf = Elf::parse(&cubin).unwrap();
    assert_eq!(elf.write().unwrap(), cubin);
    let old = elf.instructions(&elf.kernel("k").unwrap()).unwrap().len();
    let moves = stuff(&mut elf, "k").unwrap();
    let grown = elf.write().unwrap();
    assert!(grown.len() > cubin.len());
    let mut elf = Elf::parse(&grown).unwrap();
    empty(&mut elf, "k", &moves, old);
    assert_eq!(elf.write().unwrap(), cubin);
}

/// A table is not moved unless the list in `.nv.info` is what stands in the constant bank.
#[test]
fn a_table_that_is_not_the_list_is_refused() {
    let Some(toolkit) = require_toolkit("wrong jump tables") else {
        return;
    };
    let control = "lab/corpus/cuda/control.cu";
    let name = "_Z10jump_tableILi1EEvPfPKi";
    let cubin = build(&toolkit, control, "sm_75", "sm_75", Variant::Lines).cubin;
    let mut elf = Elf::parse(&cubin).unwrap();
    let bank = elf.section_index(&format!(".nv.constant2.{name}")).unwrap();
    elf.sections[bank].data[0] ^= 0x10;
    let error = stuff(&mut elf, name).unwrap_err();
    let is_refused = matches!(why(&error), Some(EditError::NoTable(_)));
    assert!(is_refused, "{error}");
}

#[test]
fn what_cannot_follow_is_refused() {
    let Some(toolkit) = require_toolkit("refused edits") else {
        return;
    };
    let control = "lab/corpus/cuda/control.cu";
    let cases = [
        ("sm_90", Variant::Debug, "limited", "full debug information"),
        ("sm_90", Variant::Lines, "no such kernel", "has no function"),
    ];
    for (gpu, variant, kernel, reason) in cases {
        let sample = build(&toolkit, control, "sm_75", gpu, variant);
        let mut elf = Elf::parse(&sample.cubin).unwrap();
        let mut edit = Edit::new();
        edit.insert_before(0, [nop(elf.target().sm)]);
        let error = edit.apply(&mut elf, kernel).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(elf.write().unwrap() == sample.cubin, "{reason}: changed");
    }
    let sample = build(&toolkit, control, "sm_75", "sm_75", Variant::Lines);
    let mut elf = Elf::parse(&sample.cubin).unwrap();
    let mut edit = Edit::new();
    edit.insert_before(0, [nop(75)]);
    let error = edit.apply(&mut elf, "function_pointers").unwrap_err();
    let is_refused = matches!(
        why(&error),
        Some(EditError::Indirect(..) | EditError::NoReturnAddress { .. })
    );
    assert!(is_refused, "{error}");
    assert!(elf.write().unwrap() == sample.cubin, "{error}: changed");
    let sample = build(&toolkit, control, "sm_75", "sm_90", Variant::Lines);
    let mut elf = Elf::parse(&sample.cubin).unwrap();
    let kernel = elf.kernel("limited").unwrap();
    let code = elf.instructions(&kernel).unwrap();
    let exit = code.iter().position(|i| i.is_exit()).unwrap();
    let mut edit = Edit::new();
    edit.delete(exit);
    let error = edit.apply(&mut elf, "limited").unwrap_err();
    let deleted = EditError::Deleted(Attribute::EXIT_INSTR_OFFSETS);
    assert_eq!(why(&error), Some(&deleted), "{error}");
    let mut edit = Edit::new();
    edit.insert_after(code.len(), [nop(90)]);
    assert!(edit.apply(&mut elf, "limited").is_err());
}
