//! nvdisasm's rule for guarded writes ([`Hyperblocks`]): small programs, what we and what nvdisasm say of one
//! register in them, and nvdisasm itself asked about them in a patched cubin.
//!
//! Before each instruction: `*` the register is occupied, `o` for us alone, `n` for
//! nvdisasm alone, `.` it is not.

#![allow(clippy::unwrap_used)]

mod sample;

use std::collections::BTreeMap;

use warpwright_flow::{EntityRef, Inst};
use warpwright_sass::function::{Code, Hyperblocks, for_each_occupied, value_of};
use warpwright_sass::roles::File;
use warpwright_sass::{Elf, Instruction, text};
use warpwright_toolkit::life_ranges;
use warpwright_toolkit::testing::require_toolkit;

const SM: u32 = 80;
const CONTROL: &str = "B------:R-:W-:-:S04:U----";

/// A write under a guard, read behind a label: in the summary of the run it ends the life.
const LABEL: &str = "
* MOV R5, R3
o ISETP.NE.AND P0, PT, R0, RZ, PT
o BRA .L_1
.L_1:
* NOP
* @P0 MOV R5, R4
.L_2:
* MOV R9, R5
* @P0 BRA .L_2
. EXIT
.L_9:
. BRA .L_9
";

/// The same where the run is left by a conditional branch, whatever its predicate.
const EXIT: &str = "
* MOV R5, R3
o ISETP.NE.AND P0, PT, R0, RZ, PT
o BRA .L_1
.L_1:
* NOP
* @P0 MOV R5, R4
* @P1 BRA .L_2
. MOV R10, R11
. EXIT
.L_2:
* MOV R9, R5
. EXIT
.L_9:
. BRA .L_9
";

/// A conditional branch does not end the run: behind it the read belongs to the same one.
const BEHIND_A_BRANCH: &str = "
* MOV R5, R3
* ISETP.NE.AND P0, PT, R0, RZ, PT
* BRA .L_1
.L_1:
* NOP
* @P0 MOV R5, R4
* @P1 BRA .L_2
* MOV R10, R5
. EXIT
.L_2:
. MOV R9, R4
. EXIT
.L_9:
. BRA .L_9
";

/// A branch before the write leads past it.
const PAST_THE_WRITE: &str = "
* MOV R5, R3
* ISETP.NE.AND P0, PT, R0, RZ, PT
* BRA .L_1
.L_1:
* @P1 BRA .L_2
* @P0 MOV R5, R4
.L_2:
* MOV R9, R5
. EXIT
.L_9:
. BRA .L_9
";

/// A write under a uniform predicate ends a life at once.
const UNIFORM: &str = "
* UMOV UR5, 0x1
o UISETP.NE.AND UP0, UPT, UR8, UR9, UPT
* @UP0 UMOV UR5, 0x2
* NOP
* IMAD.U32 R9, RZ, RZ, UR5
. EXIT
.L_9:
. BRA .L_9
";

/// The stack pointer counts as read wherever a run is left.
const STACK: &str = "
* MOV R3, R1
* MOV R1, R5
n BRA .L_1
.L_1:
. NOP
* MOV R1, R3
* EXIT
.L_9:
* BRA .L_9
";

const CASES: [(&str, File, u16); 6] = [
    (LABEL, File::Gpr, 5),
    (EXIT, File::Gpr, 5),
    (BEHIND_A_BRANCH, File::Gpr, 5),
    (PAST_THE_WRITE, File::Gpr, 5),
    (UNIFORM, File::Uniform, 5),
    (STACK, File::Gpr, 1),
];

struct Case {
    register: (File, u16),
    code: Vec<Instruction>,
    marks: Vec<char>,
    labelled: Vec<bool>,
}

impl Case {
    fn new((source, file, number): (&str, File, u16)) -> Case {
        let mut program = format!(".sm {SM}\n.function case\n");
        let (mut marks, mut labelled) = (Vec::new(), Vec::new());
        let mut label = false;
        for line in source.trim().lines() {
            if line.ends_with(':') {
                label = true;
                program += &format!("{line}\n");
                continue;
            }
            let (mark, instruction) = line.split_once(' ').unwrap();
            marks.push(mark.chars().next().unwrap());
            labelled.push(std::mem::take(&mut label));
            program += &format!("{CONTROL} {instruction}\n");
        }
        let (_, mut functions) = text::parse(&program).unwrap();
        Case {
            register: (file, number),
            code: functions.remove(0).code,
            marks,
            labelled,
        }
    }

    fn with_mark(&self, wanted: &str) -> Vec<bool> {
        self.marks.iter().map(|&m| wanted.contains(m)).collect()
    }
}

#[test]
fn the_rule_says_what_nvdisasm_says_and_liveness_what_is_true() {
    for case in CASES.map(Case::new) {
        let register = value_of(case.register.0, case.register.1).unwrap();
        let code = Code::of_instructions("case", case.code.clone()).unwrap();
        let mut ours = vec![false; case.code.len()];
        for_each_occupied(&code, |inst, occupied| {
            ours[inst.index()] = occupied.contains(&register);
        });
        assert_eq!(ours, case.with_mark("*o"), "ours: {:?}", case.register);
        let mut theirs = vec![false; case.code.len()];
        let labelled = |inst: Inst| case.labelled[inst.index()];
        Hyperblocks::new(&code, labelled).for_each_occupied(|inst, occupied| {
            theirs[inst.index()] = occupied.contains(&register);
        });
        assert_eq!(theirs, case.with_mark("*n"), "theirs: {:?}", case.register);
    }
}

/// The kernels whose first instructions have no label: room for a case.
fn rooms(elf: &Elf, sections: &[life_ranges::Section]) -> Vec<String> {
    const ROOM: usize = 16;
    let kernels = elf.kernels().unwrap();
    let names = kernels.iter().map(|kernel| kernel.name.clone());
    let has_room = |name: &String| {
        let name = format!(".text.{name}");
        let section = sections.iter().find(|section| section.name == name);
        section.is_some_and(|section| {
            let mut first = section.rows.iter().skip(1).take(ROOM);
            section.rows.len() > ROOM && !first.any(|row| row.labelled)
        })
    };
    names.filter(has_room).collect()
}

#[test]
fn nvdisasm_says_so() {
    let test = "nvdisasm_says_so";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let nvdisasm = toolkit.nvdisasm().unwrap();
    let source = "lab/corpus/cuda/atomics.cu";
    let base = sample::build(&toolkit, source, "sm_75", "sm_80", sample::Variant::Default);
    let mut elf = Elf::parse(&base.cubin).unwrap();
    let rooms = rooms(&elf, &nvdisasm.life_ranges(&base.cubin).unwrap());
    // `.nv.info` names places behind the case, from where nvdisasm lets control go on.
    let pad = text::parse_instruction(SM, "BRA 0x0", 0).unwrap();
    let pad = pad.with_control(CONTROL.parse().unwrap()).unwrap();
    let mut placed: BTreeMap<String, Case> = BTreeMap::new();
    for (case, room) in CASES.map(Case::new).into_iter().zip(&rooms) {
        let kernel = elf.kernel(room).unwrap();
        let mut code = case.code.clone();
        code.resize(elf.instructions(&kernel).unwrap().len(), pad);
        elf.set_instructions(room, &code).unwrap();
        placed.insert(format!(".text.{room}"), case);
    }
    assert_eq!(placed.len(), CASES.len());
    for section in nvdisasm.life_ranges(&elf.write().unwrap()).unwrap() {
        let Some(case) = placed.remove(&section.name) else {
            continue;
        };
        let rows = || section.rows.iter().zip(&case.marks).map(|(row, _)| row);
        let theirs: Vec<bool> = rows()
            .map(|row| {
                let mut marks = row.marks.iter();
                let file = match case.register.0 {
                    File::Uniform => life_ranges::File::Uniform,
                    _ => life_ranges::File::Gpr,
                };
                marks.any(|mark| (mark.0, mark.1) == (file, case.register.1))
            })
            .collect();
        assert_eq!(theirs, case.with_mark("*n"), "{:?}", section.rows);
    }
    assert!(placed.is_empty());
}
