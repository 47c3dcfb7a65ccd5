//! `demote`, `compact` and `schedule(registers=N)` on generated kernels that ptxas builds here: every step that is reached
//! is proved, and mistakes planted in the results are not.

use std::fmt::Write as _;

use warpwright_check::{CubinOptions, check_kernels};
use warpwright_pass::passes::{Again, Compact, Demote, Schedule, ScheduleMiss};
use warpwright_pass::{
    Artifact, Block, BlockSource, Executor, Level, Recipe, Refusal, RunError, Setting, Target,
};
use warpwright_sass::{Control, Elf, Instruction, Operation};
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{BuildCache, PtxasJob};

/// A kernel with `live` values of `bits` bits that live through a loop in which `busy` of them work; with `arms`,
/// some are used on one side of a branch alone, and one is written under a guard.
fn module(live: usize, busy: usize, bits: u32, arms: bool) -> String {
    let bytes = bits as usize / 8;
    let mut text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 data, .param .u32 rounds)\n.reqntid 64\n{{\n\
         .reg .f{bits} %f<{}>;\n.reg .f{bits} %z;\n.reg .b64 %d;\n.reg .b64 %o;\n.reg .b32 %t, %n;\n\
         .reg .pred %p, %q;\n\
         ld.param.u64 %d, [data];\nld.param.u32 %n, [rounds];\nmov.u32 %t, %tid.x;\n\
         mul.wide.u32 %o, %t, {};\nadd.s64 %d, %d, %o;\nsetp.gt.u32 %q, %n, 7;\n",
        live + 1,
        live * bytes
    );
    for i in 0..live {
        let _ = writeln!(
            text,
            "ld.volatile.global.f{bits} %f{i}, [%d+{}];",
            i * bytes
        );
    }
    if arms {
        text.push_str("@%q bra side;\n");
        for i in busy..live {
            let _ = writeln!(text, "mul.rn.f{bits} %f{i}, %f{i}, %f{};", i % busy);
        }
        text.push_str("side:\n");
    }
    text.push_str("again:\n");
    for i in 0..busy {
        let other = (i * 7 + 3) % busy;
        let _ = writeln!(text, "fma.rn.f{bits} %f{i}, %f{other}, %f{i}, %f{other};");
    }
    if arms {
        let _ = writeln!(text, "@%q add.rn.f{bits} %f{}, %f0, %f1;", live - 1);
    }
    text.push_str("sub.u32 %n, %n, 1;\nsetp.ne.u32 %p, %n, 0;\n@%p bra again;\n");
    for i in 0..live {
        let _ = writeln!(text, "st.global.f{bits} [%d+{}], %f{i};", i * bytes);
    }
    text.push_str("ret;\n}\n");
    text
}

/// A kernel with `live` integers that are formed of two loaded ones, stored, and stored again behind a loop in which
/// `busy` floats work; the two live as long.
fn sums(live: usize, busy: usize) -> String {
    let mut text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 data, .param .u32 rounds)\n.reqntid 64\n{{\n\
         .reg .f32 %f<{}>;\n.reg .b64 %d;\n.reg .b64 %o;\n.reg .b32 %r<{}>, %t, %n, %a, %b;\n.reg .pred %p;\n\
         ld.param.u64 %d, [data];\nld.param.u32 %n, [rounds];\nmov.u32 %t, %tid.x;\n\
         mul.wide.u32 %o, %t, 1024;\nadd.s64 %d, %d, %o;\n\
         ld.volatile.global.u32 %a, [%d];\nld.volatile.global.u32 %b, [%d+4];\n",
        busy + 1,
        live + 1
    );
    for i in 0..busy {
        let _ = writeln!(text, "ld.volatile.global.f32 %f{i}, [%d+{}];", 8 + 4 * i);
    }
    for i in 0..live {
        let number = 1000 + 37 * i;
        let _ = match i % 2 {
            0 => writeln!(text, "mad.lo.s32 %r{i}, %a, {number}, %b;"),
            _ => writeln!(text, "mad.lo.s32 %r{i}, %b, {number}, %a;"),
        };
        let _ = writeln!(text, "st.volatile.global.u32 [%d+{}], %r{i};", 256 + 4 * i);
    }
    text.push_str("again:\n");
    for i in 0..busy {
        let other = (i * 7 + 3) % busy;
        let _ = writeln!(text, "fma.rn.f32 %f{i}, %f{other}, %f{i}, %f{other};");
    }
    text.push_str("sub.u32 %n, %n, 1;\nsetp.ne.u32 %p, %n, 0;\n@%p bra again;\n");
    for i in 0..busy {
        let _ = writeln!(text, "st.global.f32 [%d+{}], %f{i};", 8 + 4 * i);
    }
    for i in 0..live {
        let _ = writeln!(text, "st.volatile.global.u32 [%d+{}], %r{i};", 512 + 4 * i);
    }
    text.push_str("st.global.u32 [%d], %b;\nst.global.u32 [%d+4], %a;\nret;\n}\n");
    text
}

fn build(test: &str, text: &str) -> Option<Vec<u8>> {
    let toolkit = require_toolkit(test)?;
    let ptxas = toolkit.ptxas().ok()?;
    let build = BuildCache::standard().ptxas(&ptxas, &PtxasJob::new(text, "sm_90"));
    Some(build.expect("ptxas takes the module").cubin.to_vec())
}

fn setting(gpu: &Gpu) -> Setting<'_> {
    Setting {
        block: Block {
            dims: [64, 1, 1],
            source: BlockSource::Option,
        },
        dynamic_smem: Some(0),
        ..Setting::new(gpu)
    }
}

/// A recipe through the executor. The checker must find what it gives right, but for distances that ptxas was not
/// seen to leave.
fn carried_out(cubin: &[u8], recipe: &Recipe) -> Result<Vec<u8>, RunError> {
    let gpu = lookup("h200").expect("a known GPU");
    let target = Target {
        kernel: Some("k"),
        setting: setting(&gpu),
    };
    let start = Artifact::cubin(cubin.to_vec()).expect("a cubin");
    let run = Executor::default().run(&start, &target, recipe, Level::MachineCode)?;
    let after = run.unproved().bytes().to_vec();
    let options = CubinOptions {
        block: Some([64, 1, 1]),
        dynamic_smem: Some(0),
    };
    let elf = |bytes: &[u8]| Elf::parse(bytes).expect("a cubin");
    let verdict = check_kernels(&elf(cubin), &elf(&after), "k", &options);
    match run.prove() {
        Ok(_) => assert!(verdict.is_proved(), "{recipe}: {verdict}"),
        Err(why) => {
            let why = why.to_string();
            let is_expected = why.contains("ptxas was not seen to leave as few");
            assert!(
                is_expected && !verdict.is_proved(),
                "{recipe}: {verdict}; {why}"
            );
        }
    }
    Ok(after)
}

fn registers(cubin: &[u8]) -> u32 {
    let elf = Elf::parse(cubin).expect("a cubin");
    let kernel = elf.kernel("k").expect("the kernel");
    elf.registers(&kernel).expect("records").expect("a count")
}

fn code(cubin: &[u8]) -> Vec<Instruction> {
    let elf = Elf::parse(cubin).expect("a cubin");
    let kernel = elf.kernel("k").expect("the kernel");
    elf.instructions(&kernel).expect("its code")
}

/// Kernels of several shapes, and how many registers fewer each is asked for.
const SHAPES: [(usize, usize, u32, bool, u32); 6] = [
    (40, 6, 32, false, 16),
    (40, 6, 32, true, 12),
    (64, 20, 32, true, 24),
    (20, 4, 64, false, 16),
    (30, 6, 64, true, 24),
    (24, 24, 32, false, 6),
];

#[test]
fn every_shape_is_demoted_and_proved() {
    const TEST: &str = "every_shape_is_demoted_and_proved";
    for (live, busy, bits, arms, fewer) in SHAPES {
        let Some(cubin) = build(TEST, &module(live, busy, bits, arms)) else {
            return;
        };
        let wanted = registers(&cubin) - fewer;
        let recipe = Recipe::default().with(Demote::to(wanted));
        let demoted = carried_out(&cubin, &recipe)
            .unwrap_or_else(|why| panic!("{live} {busy} {bits} {arms}: {why}"));
        assert!(registers(&demoted) <= wanted, "{live} {busy} {bits} {arms}");
        let moved = code(&demoted);
        let shared =
            |inst: &Instruction| matches!(inst.operation(), Operation::LDS | Operation::STS);
        assert!(
            moved.iter().any(shared),
            "{live} {busy} {bits} {arms}: nothing moved"
        );
    }
}

#[test]
fn every_order_and_every_refinement_is_proved() {
    const TEST: &str = "every_order_and_every_refinement_is_proved";
    let Some(cubin) = build(TEST, &module(40, 8, 32, true)) else {
        return;
    };
    let wanted = registers(&cubin) - 10;
    for options in [
        "by=accesses",
        "by=loops",
        "by=conflicts",
        "redundant=off",
        "hoist=off",
        "pairs=off",
        "again=off",
        "again=all",
        "waits=off",
        "redundant=off, hoist=off, pairs=off, again=off, waits=off",
    ] {
        let recipe: Recipe = format!("demote({wanted}, {options})")
            .parse()
            .expect(options);
        assert_eq!(recipe.to_string(), format!("demote({wanted}, {options})"));
        let demoted = carried_out(&cubin, &recipe).unwrap_or_else(|why| panic!("{options}: {why}"));
        assert!(registers(&demoted) <= wanted, "{options}");
    }
}

#[test]
fn what_is_not_below_the_kernels_own_count_is_refused() {
    const TEST: &str = "what_is_not_below_the_kernels_own_count_is_refused";
    let Some(cubin) = build(TEST, &module(24, 6, 32, false)) else {
        return;
    };
    let own = registers(&cubin);
    let refused = |recipe: Recipe| match carried_out(&cubin, &recipe) {
        Err(RunError::Refused { refusal, .. }) => refusal,
        other => panic!("no refusal: {:?}", other.map(|cubin| cubin.len())),
    };
    assert_eq!(
        refused(Recipe::default().with(Demote::to(own))),
        Refusal::WithinGoal {
            pressure: own,
            goal: own
        }
    );
    let few = refused(Recipe::default().with(Demote::to(8)));
    let is_named = matches!(
        few,
        Refusal::TooFewRegisters { .. } | Refusal::NoRoom { .. }
    );
    assert!(is_named, "{few:?}");
    let compact = Compact {
        registers: Some(10),
    };
    let few = refused(Recipe::default().with(compact));
    assert!(matches!(few, Refusal::TooFewRegisters { .. }), "{few:?}");
}

/// One mistake in the code: a name for it, and the new code.
type Mistake = (&'static str, Vec<Instruction>);

/// Mistakes of each kind at each added access.
fn mistakes(code: &[Instruction]) -> Vec<Mistake> {
    const GUARD: u128 = 0xf << 12;
    const NEVER: u128 = 0xf << 12;
    const OFFSET: u32 = 40;
    const SIZE: u32 = 73;
    let mut all = Vec::new();
    for (at, &inst) in code.iter().enumerate() {
        let is_load = inst.operation() == Operation::LDS;
        if !is_load && inst.operation() != Operation::STS {
            continue;
        }
        let bits = inst.bits();
        let register = if is_load { 16 } else { 32 };
        let number = (bits >> register) as u8;
        let mut plant = |name, bits| {
            let mut planted = code.to_vec();
            planted[at] = inst.with_bits(bits);
            all.push((name, planted));
        };
        let access = |name: [&'static str; 2]| name[usize::from(is_load)];
        plant(
            access(["a missing store", "a missing load"]),
            bits & !GUARD | NEVER,
        );
        let width = inst.access_bytes();
        plant(
            access([
                "a store to the next thread's slot",
                "a load from the next thread's slot",
            ]),
            bits + (u128::from(width) << OFFSET),
        );
        plant(
            access(["a store to the next slot", "a load from the next slot"]),
            bits + (u128::from(64 * width) << OFFSET),
        );
        let other = if number % 8 == 2 {
            number + 4
        } else {
            number ^ 4
        };
        plant(
            access(["a store of another value", "a load into another register"]),
            bits & !(0xff << register) | u128::from(other) << register,
        );
        if width == 8 {
            plant(
                access(["half a pair stored", "half a pair loaded"]),
                bits & !(7 << SIZE) | 4 << SIZE,
            );
        }
        // The load stands behind the next instruction, or the store before the one before it.
        let beside = if is_load { at + 1 } else { at - 1 };
        let mut swapped = code.to_vec();
        swapped.swap(at, beside);
        if is_load && reads(code[beside], number) || !is_load && writes(code[beside], number) {
            all.push((access(["a store too early", "a load too late"]), swapped));
        }
        // The one before the store leaves it no time, or the reader of what is loaded does not wait.
        let field = match is_load {
            true => wait_lost(code, at, number),
            false => stall_lost(code, at, number),
        };
        all.extend(field.map(|planted| (access(["a stall too short", "a wait lost"]), planted)));
        // Somebody writes the register between the load and its use, or before the store.
        let clobber = Instruction::new(
            inst.sm(),
            0x0000_0f00 << 64 | 0x7a02 | u128::from(number) << 16,
        );
        if let Some(place) = idle_move(code, at, is_load) {
            let mut planted = code.to_vec();
            planted[place] = clobber
                .with_control(code[place].control())
                .expect("its own field");
            all.push((
                access([
                    "a value overwritten before its store",
                    "a value overwritten",
                ]),
                planted,
            ));
        }
    }
    all
}

/// The code with no time between the instruction before a store and the store, if that writes what is stored and
/// tells nobody when.
fn stall_lost(code: &[Instruction], store: usize, number: u8) -> Option<Vec<Instruction>> {
    let before = store.checked_sub(1)?;
    let mut control = code[before].control();
    let is_timed = writes(code[before], number) && control.write_barrier.is_none();
    control.stall = 1;
    is_timed.then(|| with_control(code, before, control))
}

/// The code in which the first that waits for a load does not, if it reads what is loaded and nobody has waited for
/// anything else since: loads come in order.
fn wait_lost(code: &[Instruction], load: usize, number: u8) -> Option<Vec<Instruction>> {
    let board = code[load].control().write_barrier?;
    let waits = |inst: &Instruction| inst.control().wait_mask >> board & 1 != 0;
    let reader = load + 1 + code[load + 1..].iter().position(waits)?;
    let mut control = code[reader].control();
    control.wait_mask &= !(1 << board);
    let between = code[load + 1..reader]
        .iter()
        .map(|inst| inst.control().wait_mask);
    let is_alone = between.fold(control.wait_mask, |all, mask| all | mask) == 0;
    (is_alone && reads(code[reader], number)).then(|| with_control(code, reader, control))
}

fn with_control(code: &[Instruction], at: usize, control: Control) -> Vec<Instruction> {
    let mut planted = code.to_vec();
    planted[at] = code[at].with_control(control).expect("it fits");
    planted
}

fn spans(inst: Instruction) -> Vec<warpwright_sass::roles::Span> {
    let roles = warpwright_sass::roles::Roles::of(inst).unwrap_or_default();
    roles.spans().to_vec()
}

fn touches(inst: Instruction, number: u8, role: warpwright_sass::roles::Role) -> bool {
    spans(inst).iter().any(|span| {
        span.file == warpwright_sass::roles::File::Gpr
            && span.role == role
            && span.registers().contains(&u16::from(number))
    })
}

fn reads(inst: Instruction, number: u8) -> bool {
    touches(inst, number, warpwright_sass::roles::Role::Use)
}

fn writes(inst: Instruction, number: u8) -> bool {
    touches(inst, number, warpwright_sass::roles::Role::Def)
}

/// A NOP beside an access that something else may stand in for.
fn idle_move(code: &[Instruction], at: usize, is_load: bool) -> Option<usize> {
    let place = if is_load { at + 1 } else { at.checked_sub(1)? };
    (code.get(place)?.operation() == Operation::NOP).then_some(place)
}

/// A part of them, for every day.
#[test]
fn planted_mistakes_are_never_proved() {
    planted(3, 100);
}

#[test]
#[ignore = "all of them: two minutes"]
fn no_planted_mistake_of_all_is_proved() {
    planted(usize::MAX, 1_000);
}

/// Plants at most `most` mistakes of each kind into each kernel; there must be so many.
fn planted(most: usize, least: usize) {
    const TEST: &str = "planted_mistakes_are_never_proved";
    let options = CubinOptions {
        block: Some([64, 1, 1]),
        dynamic_smem: Some(0),
    };
    let mut planted = 0;
    let mut kinds = std::collections::BTreeMap::new();
    for (live, busy, bits, arms, fewer) in SHAPES {
        let Some(cubin) = build(TEST, &module(live, busy, bits, arms)) else {
            return;
        };
        let wanted = registers(&cubin) - fewer;
        let recipe = Recipe::default().with(Demote::to(wanted));
        let demoted = carried_out(&cubin, &recipe).expect("it is demoted");
        let original = Elf::parse(&cubin).expect("a cubin");
        let mut here = std::collections::BTreeMap::new();
        for (name, code) in mistakes(&code(&demoted)) {
            let so_far = here.entry(name).or_insert(0);
            *so_far += 1;
            if *so_far > most {
                continue;
            }
            let mut wrong = Elf::parse(&demoted).expect("a cubin");
            if wrong.set_instructions("k", &code).is_err() {
                continue;
            }
            let verdict = check_kernels(&original, &wrong, "k", &options);
            assert!(
                !verdict.is_proved(),
                "{live} {busy} {bits} {arms}: {name} is proved"
            );
            planted += 1;
            *kinds.entry(name).or_insert(0) += 1;
        }
    }
    assert!(planted >= least, "{planted} mistakes: {kinds:?}");
    assert!(kinds.len() >= 12, "{kinds:?}");
}

/// Instructions behind the last branch back that form a number.
fn formed(code: &[Instruction]) -> Vec<usize> {
    let is_branch = |inst: &Instruction| inst.operation() == Operation::BRA && inst.is_predicated();
    let branch = code.iter().rposition(is_branch).expect("a loop");
    let behind = branch..code.len();
    let forms = |&at: &usize| warpwright_sass::schedule::graph::is_pure(code[at]);
    behind.filter(forms).collect()
}

/// Mistakes in what is computed again, for each of its instructions.
fn mistakes_in_sums(code: &[Instruction]) -> Vec<Mistake> {
    const GUARD: u128 = 0xf << 12;
    let mut all = Vec::new();
    for at in formed(code) {
        let inst = code[at];
        let mut plant = |name, bits| {
            let mut planted = code.to_vec();
            planted[at] = inst.with_bits(bits);
            all.push((name, planted));
        };
        plant("not computed again", inst.bits() | GUARD);
        plant("of another number", inst.bits() ^ 1 << 32);
        for span in spans(inst) {
            let name = match span.role {
                warpwright_sass::roles::Role::Def => "into another register",
                warpwright_sass::roles::Role::Use => "of another source",
            };
            if span.file == warpwright_sass::roles::File::Gpr {
                plant(name, inst.bits() ^ 4 << span.bit);
            }
        }
    }
    all
}

#[test]
fn sums_are_formed_again_and_no_mistake_in_them_is_proved() {
    const TEST: &str = "sums_are_formed_again_and_no_mistake_in_them_is_proved";
    let options = CubinOptions {
        block: Some([64, 1, 1]),
        dynamic_smem: Some(0),
    };
    let mut kinds = std::collections::BTreeMap::new();
    for (live, busy, fewer) in [(20, 12, 4), (20, 12, 8), (32, 8, 6)] {
        let Some(cubin) = build(TEST, &sums(live, busy)) else {
            return;
        };
        let wanted = registers(&cubin) - fewer;
        let by_slots = carried_out(&cubin, &Recipe::default().with(Demote::to(wanted)));
        let pass = Demote {
            again: Again::All,
            ..Demote::to(wanted)
        };
        let again = carried_out(&cubin, &Recipe::default().with(pass)).expect("it is demoted");
        assert!(registers(&again) <= wanted, "{live} {busy}");
        let slots = |cubin: &[u8]| {
            let elf = Elf::parse(cubin).expect("a cubin");
            elf.shared_bytes(&elf.kernel("k").expect("the kernel"))
        };
        let by_slots = by_slots.expect("it is demoted by slots");
        let [many, few] = [&by_slots, &again].map(|cubin| slots(cubin));
        assert!(few < many, "{live} {busy}: {few} of {many} bytes");
        assert!(formed(&code(&again)).len() > formed(&code(&cubin)).len());
        let original = Elf::parse(&cubin).expect("a cubin");
        for (name, code) in mistakes_in_sums(&code(&again)) {
            let mut wrong = Elf::parse(&again).expect("a cubin");
            if wrong.set_instructions("k", &code).is_err() {
                continue;
            }
            let verdict = check_kernels(&original, &wrong, "k", &options);
            assert!(!verdict.is_proved(), "{live} {busy}: {name} is proved");
            *kinds.entry(name).or_insert(0) += 1;
        }
    }
    let planted: u32 = kinds.values().sum();
    assert!(planted >= 100 && kinds.len() >= 4, "{kinds:?}");
}

#[test]
fn a_gap_in_the_registers_is_closed() {
    const TEST: &str = "a_gap_in_the_registers_is_closed";
    let Some(cubin) = build(TEST, &module(40, 6, 32, false)) else {
        return;
    };
    // A gap: all registers above 8 are named 8 higher.
    let mut elf = Elf::parse(&cubin).expect("a cubin");
    let moved: Vec<Instruction> = code(&cubin)
        .into_iter()
        .map(|inst| {
            let name = |span: warpwright_sass::roles::Span| match span.file {
                warpwright_sass::roles::File::Gpr if span.first >= 8 => span.first + 8,
                _ => span.first,
            };
            inst.renamed(name).unwrap_or(inst)
        })
        .collect();
    elf.set_instructions("k", &moved).expect("the same length");
    let own = registers(&cubin);
    elf.set_registers("k", own as u8 + 8).expect("a count");
    let gapped = elf.write().expect("a cubin");
    let recipe = Recipe::default().with(Compact { registers: None });
    let compacted = carried_out(&gapped, &recipe).expect("it is compacted");
    assert!(registers(&compacted) <= own, "{}", registers(&compacted));
}

/// A kernel that loads `loads` numbers and takes them up one by one; `kept` of them again in the end.
fn chain(loads: usize, kept: usize) -> String {
    let mut text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 data, .param .u64 out)\n.reqntid 64\n{{\n\
         .reg .f32 %f<{loads}>;\n.reg .f32 %s;\n.reg .b64 %d, %e, %o;\n.reg .b32 %t;\n\
         ld.param.u64 %d, [data];\nld.param.u64 %e, [out];\nmov.u32 %t, %tid.x;\n\
         mul.wide.u32 %o, %t, 1024;\nadd.s64 %d, %d, %o;\nadd.s64 %e, %e, %o;\nmov.f32 %s, 0f00000000;\n"
    );
    for i in 0..loads {
        let _ = writeln!(text, "ld.global.f32 %f{i}, [%d+{}];", 4 * i);
    }
    for i in (0..loads).chain(0..kept) {
        let _ = writeln!(text, "fma.rn.f32 %s, %s, %f{i}, %f{i};");
    }
    text.push_str("st.global.f32 [%e], %s;\nret;\n}\n");
    text
}

#[test]
fn another_order_needs_fewer_registers_and_no_mistake_in_it_is_proved() {
    const TEST: &str = "another_order_needs_fewer_registers_and_no_mistake_in_it_is_proved";
    let options = CubinOptions {
        block: Some([64, 1, 1]),
        dynamic_smem: Some(0),
    };
    let mut kinds = std::collections::BTreeMap::new();
    for (loads, kept, fewer) in [(40, 0, 16), (60, 12, 8), (30, 4, 8)] {
        let Some(cubin) = build(TEST, &chain(loads, kept)) else {
            return;
        };
        let wanted = registers(&cubin) - fewer;
        let compacted = carried_out(
            &cubin,
            &Recipe::default().with(Compact {
                registers: Some(wanted),
            }),
        );
        assert!(
            matches!(compacted, Err(RunError::Refused { .. })),
            "{loads} {kept}: the order alone"
        );
        let pass = Schedule::within(wanted, ScheduleMiss::Refuse);
        let ordered = carried_out(&cubin, &Recipe::default().with(pass));
        let ordered = ordered.unwrap_or_else(|why| panic!("{loads} {kept}: {why}"));
        assert!(registers(&ordered) <= wanted, "{loads} {kept}");
        let original = Elf::parse(&cubin).expect("a cubin");
        let right = code(&ordered);
        for at in 0..right.len() {
            for span in spans(right[at]) {
                if span.file != warpwright_sass::roles::File::Gpr || span.first == 1 {
                    continue;
                }
                let mut planted = right.clone();
                planted[at] = right[at].with_bits(right[at].bits() ^ 4 << span.bit);
                let mut wrong = Elf::parse(&ordered).expect("a cubin");
                if wrong.set_instructions("k", &planted).is_err() {
                    continue;
                }
                let verdict = check_kernels(&original, &wrong, "k", &options);
                assert!(
                    !verdict.is_proved(),
                    "{loads} {kept}: {at} {span:?} is proved"
                );
                *kinds.entry(span.role).or_insert(0) += 1;
            }
        }
    }
    assert!(
        kinds.len() == 2 && kinds.values().sum::<u32>() >= 200,
        "{kinds:?}"
    );
}

#[test]
fn what_no_order_meets_is_refused_with_the_number_that_it_needs() {
    const TEST: &str = "what_no_order_meets_is_refused_with_the_number_that_it_needs";
    let Some(cubin) = build(TEST, &chain(60, 30)) else {
        return;
    };
    let run = |registers, miss| {
        let pass = Schedule::within(registers, miss);
        carried_out(&cubin, &Recipe::default().with(pass))
    };
    let Err(RunError::Refused { refusal, .. }) = run(24, ScheduleMiss::Refuse) else {
        panic!("thirty values live on");
    };
    let Refusal::NeedsRegisters {
        registers: 24,
        needed,
    } = refusal
    else {
        panic!("{refusal}");
    };
    assert!((30..registers(&cubin)).contains(&needed), "{needed}");
    let there = run(needed, ScheduleMiss::Refuse).expect("it said so");
    assert!(registers(&there) <= needed);
    let near = run(24, ScheduleMiss::Near).expect("it comes near");
    assert!(registers(&near) <= needed);
    // So fewer values have to leave.
    let slots = |before: &str| {
        let recipe: Recipe = format!("{before}demote(28)").parse().expect("a recipe");
        let cubin = carried_out(&cubin, &recipe).unwrap_or_else(|why| panic!("{recipe}: {why}"));
        let elf = Elf::parse(&cubin).expect("a cubin");
        elf.shared_bytes(&elf.kernel("k").expect("the kernel"))
    };
    let [many, few] = ["", "schedule(registers=28, miss=near); "].map(slots);
    assert!(few < many, "{few} of {many} bytes");
}
