//! Holds the opcode table against NVIDIA's tools: ptxas accepts what the table says, and the
//! table knows what NVIDIA's headers use. Without a toolkit these tests are skipped, and say so.

#![allow(clippy::unwrap_used)]

mod headers;
mod ptxas;
mod sample;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ptxas::{Ptxas, Target};
use sample::Sample;
use warpwright_ptx::opcode::{Form, Opcode, OperandSpec, Presence, Role, table};
use warpwright_ptx::{SpecialReg, Type};

/// Modifiers that ptxas 13.5 accepts in no instruction of their line: the beginning of the
/// pattern, the modifier, and why it stands there.
const MODIFIER_EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "ld.weak?.SPACE?",
        "param::func",
        "needs a parameter variable of a function",
    ),
    (
        "st.weak?.{global,local,param",
        "param::func",
        "needs a parameter variable of a call",
    ),
    (
        "txq.{filter_mode",
        "force_unnormalized_coords",
        "needs .target texmode_independent",
    ),
];

fn place(form: &Form) -> String {
    format!("{}:{} {}", form.place.0, form.place.1, form.pattern)
}

/// The simplest instruction of every line is accepted for the version and target that the line
/// names.
#[test]
fn ptxas_accepts_the_first_instruction_of_every_line() {
    let Some(ptxas) = Ptxas::find("ptxas_accepts_the_first_instruction_of_every_line") else {
        return;
    };
    let mut batches: BTreeMap<Target, Vec<(&Form, Sample)>> = BTreeMap::new();
    for form in table() {
        let batch = batches.entry(Target::of(form)).or_default();
        batch.push((form, Sample::first(form)));
    }
    let mut failures = String::new();
    for (target, batch) in &batches {
        let lines: Vec<String> = batch.iter().map(|(f, s)| s.text(f, false)).collect();
        for ((form, _), (line, verdict)) in batch
            .iter()
            .zip(lines.iter().zip(ptxas.run(*target, &lines)))
        {
            if let Err(why) = verdict {
                let _ = writeln!(failures, "{}\n  {target}: {line}\n  {why}", place(form));
            }
        }
    }
    assert!(failures.is_empty(), "ptxas does not accept:\n{failures}");
}

/// A first operand that the table calls a definition may be the sink `_`, as far as ptxas's grammar
/// goes; for a source operand `_` is a syntax error.
#[test]
fn ptxas_reads_no_operand_that_the_table_calls_a_definition() {
    let Some(ptxas) = Ptxas::find("ptxas_reads_no_operand_that_the_table_calls_a_definition")
    else {
        return;
    };
    let mut batches: BTreeMap<Target, Vec<(&Form, String)>> = BTreeMap::new();
    for form in table() {
        let sample = Sample::first(form);
        let is_written = |o: &&OperandSpec| o.role == Role::Def && o.presence == Presence::Always;
        if let Some(operand) = form.operands.first().filter(is_written) {
            let line = sample.with_sink(form, operand.name);
            let batch = batches.entry(Target::of(form)).or_default();
            batch.push((form, line));
        }
    }
    let mut failures = String::new();
    let mut checked = 0;
    for (target, batch) in &batches {
        let lines: Vec<String> = batch.iter().map(|(_, line)| line.clone()).collect();
        for ((form, line), verdict) in batch.iter().zip(ptxas.run(*target, &lines)) {
            checked += usize::from(line.contains('_'));
            let why = verdict.err().unwrap_or_default();
            if why.contains("Parsing error") {
                let _ = writeln!(failures, "{}\n  {target}: {line}\n  {why}", place(form));
            }
        }
    }
    assert!(checked > 300, "only {checked} operands");
    assert!(failures.is_empty(), "ptxas disagrees:\n{failures}");
}

/// Every modifier of every line stands in some instruction that ptxas accepts for some target;
/// so do optional operands.
#[test]
fn ptxas_accepts_every_modifier_of_every_line() {
    let Some(ptxas) = Ptxas::find("ptxas_accepts_every_modifier_of_every_line") else {
        return;
    };
    let mut open: Vec<Goal> = table().iter().flat_map(Goal::all).collect();
    let removed = table().iter().filter(|f| f.until.is_some()).map(Target::of);
    let mut targets: Vec<Target> = removed.collect();
    targets.sort();
    targets.dedup();
    targets.extend(Ptxas::targets());
    // Few tries for most of the modifiers, many for those that go with few others only.
    for tries in [1, 8, 48, 256] {
        for goal in &mut open {
            goal.propose(tries);
        }
        for &target in &targets {
            let waiting: Vec<(usize, String)> = open
                .iter()
                .enumerate()
                .filter(|(_, goal)| goal.may_run_on(target))
                .flat_map(|(i, goal)| goal.candidates.iter().map(move |c| (i, c.clone())))
                .collect();
            let lines: Vec<String> = waiting.iter().map(|(_, line)| line.clone()).collect();
            for ((i, line), verdict) in waiting.iter().zip(ptxas.run(target, &lines)) {
                open[*i].note(line, verdict);
            }
        }
        open.retain(|g| !g.reached);
    }
    let mut failures = String::new();
    for goal in open.iter().filter(|g| !g.is_excused()) {
        let _ = writeln!(
            failures,
            "{}\n  .{}\n  {}",
            place(goal.form),
            goal.wanted,
            goal.why
        );
    }
    for (pattern, modifier, _) in MODIFIER_EXCEPTIONS {
        let is_open = |g: &Goal| g.form.pattern.starts_with(pattern) && g.wanted == *modifier;
        assert!(
            open.iter().any(is_open),
            "ptxas accepts .{modifier} of {pattern} by now"
        );
    }
    assert!(failures.is_empty(), "ptxas accepts nowhere:\n{failures}");
}

/// A modifier (or the optional operands) that some accepted instruction of a line must have.
struct Goal {
    form: &'static Form,
    slot: Option<usize>,
    wanted: &'static str,
    /// Instructions with it.
    candidates: Vec<String>,
    reached: bool,
    /// What ptxas said last.
    why: String,
}

impl Goal {
    fn all(form: &'static Form) -> Vec<Goal> {
        let goal = |slot, wanted| Goal {
            form,
            slot,
            wanted,
            candidates: Vec::new(),
            reached: false,
            why: String::new(),
        };
        let mut goals: Vec<Goal> = Vec::new();
        for (i, slot) in form.slots.iter().enumerate() {
            if slot.optional || slot.alternatives.len() > 1 {
                goals.extend(slot.alternatives.iter().map(|a| goal(Some(i), *a)));
            }
        }
        let optional = |o: &OperandSpec| o.presence == Presence::Optional;
        if form.sample.is_none() && form.operands.iter().any(optional) {
            goals.push(goal(None, "optional operands"));
        }
        goals
    }

    /// Takes the first instruction with the wanted modifier, and random ones with it.
    fn propose(&mut self, tries: u64) {
        let sample = |i| match i {
            0 => Sample::first(self.form),
            _ => Sample::random(self.form, (tries + i) * 7919 + u64::from(self.form.place.1)),
        };
        let text = |mut sample: Sample| {
            if let Some(slot) = self.slot {
                sample.set(slot, self.wanted);
            }
            sample.text(self.form, self.slot.is_none())
        };
        self.candidates = (0..tries).map(|i| text(sample(i))).collect();
        self.candidates.sort();
        self.candidates.dedup();
    }

    fn may_run_on(&self, target: Target) -> bool {
        let wanted = Target::of(self.form);
        let fits = match self.form.until {
            Some(_) => target == wanted,
            None => target.version >= wanted.version && target.sm >= wanted.sm,
        };
        !self.reached && (fits || target == wanted)
    }

    fn is_excused(&self) -> bool {
        MODIFIER_EXCEPTIONS
            .iter()
            .any(|(p, m, _)| self.form.pattern.starts_with(p) && self.wanted == *m)
    }

    fn note(&mut self, line: &str, verdict: Result<(), String>) {
        match verdict {
            Ok(()) => self.reached = true,
            Err(why) => self.why = format!("{line}\n  {why}"),
        }
    }
}

/// All opcodes in the inline assembly of NVIDIA's headers are known, with their operands.
#[test]
fn the_table_knows_the_opcodes_of_the_headers() {
    let name = "the_table_knows_the_opcodes_of_the_headers";
    let Some(instructions) = headers::instructions(name) else {
        return;
    };
    assert!(
        instructions.len() > 1000,
        "only {} found",
        instructions.len()
    );
    let mut failures = String::new();
    for instruction in &instructions {
        let opcode = Opcode::parse(&instruction.opcode);
        let known = opcode.is_known();
        let shape = instruction.operands.as_deref();
        let fits = shape.is_none_or(|o| opcode.roles_of(o).is_some());
        if !known || !fits {
            let _ = writeln!(
                failures,
                "{} with operands {:?}: known {known}, operands fit {fits} ({})",
                instruction.opcode, instruction.operands, instruction.file
            );
        }
    }
    assert!(failures.is_empty(), "in NVIDIA's headers:\n{failures}");
}

/// Every special register can be read, as the type that it has and no narrower one.
#[test]
fn ptxas_knows_the_special_registers() {
    let Some(ptxas) = Ptxas::find("ptxas_knows_the_special_registers") else {
        return;
    };
    let numbered = [
        SpecialReg::EnvReg(0),
        SpecialReg::EnvReg(31),
        SpecialReg::Pm(7),
        SpecialReg::Pm64(7),
        SpecialReg::ReservedSmemOffset(1),
    ];
    let all: Vec<SpecialReg> = SpecialReg::SINGLES
        .iter()
        .chain(&numbered)
        .copied()
        .collect();
    let line = |reg: &SpecialReg| {
        let part = if reg.is_vector() { ".x" } else { "" };
        let (ty, register) = match reg.ty() {
            Type::Pred => ("pred", "%p1"),
            ty if ty.bits() == 64 => ("b64", "%d1"),
            _ => ("b32", "%r1"),
        };
        format!("mov.{ty} {register}, {reg}{part};")
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    let Some(target) = Ptxas::targets().last().copied() else {
        return;
    };
    let mut failures = String::new();
    for (line, verdict) in lines.iter().zip(ptxas.run(target, &lines)) {
        // These two need a directive on the kernel; ptxas says so only if the type is right.
        let why = verdict.err().unwrap_or_default();
        if !why.is_empty() && !why.contains(".minperctamemory") {
            let _ = writeln!(failures, "{line} {why}");
        }
    }
    assert!(failures.is_empty(), "ptxas does not accept:\n{failures}");
}

/// Not a check but a help for those who add lines: prints for each line the oldest version that
/// ptxas accepts its first instruction with, and the oldest target for that version.
#[test]
#[ignore = "prints what to write into the table"]
fn measure_versions_and_targets() {
    let Some(ptxas) = Ptxas::find("measure_versions_and_targets") else {
        return;
    };
    let forms: Vec<&Form> = table().iter().filter(|f| f.until.is_none()).collect();
    let lines: Vec<String> = forms
        .iter()
        .map(|f| Sample::first(f).text(f, false))
        .collect();
    let mut since: Vec<Option<Target>> = vec![None; forms.len()];
    for version in ptxas.versions_from((6, 4)) {
        for target in ptxas::measured_targets(version) {
            let open: Vec<usize> = (0..forms.len()).filter(|&i| since[i].is_none()).collect();
            let lines: Vec<String> = open.iter().map(|&i| lines[i].clone()).collect();
            for (i, verdict) in open.into_iter().zip(ptxas.run(target, &lines)) {
                since[i] = verdict.is_ok().then_some(target);
            }
        }
    }
    for (form, since) in forms.iter().zip(since) {
        let since = since.map_or("never".to_owned(), |target| {
            let (major, minor) = target.version;
            format!("ptx={major}.{minor} sm={}", &target.name()[3..])
        });
        println!("MEASURED {} {} {since}", form.place.0, form.place.1);
    }
}
