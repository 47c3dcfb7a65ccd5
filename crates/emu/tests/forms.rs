//! The forms of PTX that the emulator refuses are those that `forms-refused.txt` lists, line by line of the opcode
//! table: no more, or a kernel stops that the page promises; no fewer, or the page is wrong.
//!
//! A modifier counts as refused where no instruction with it is taken that this test tries: the simplest one of the
//! line, and random ones.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../ptx/tests/opcode_table/sample.rs"]
mod sample;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use sample::Sample;
use warpwright_emu::{DecodeError, Emulator};
use warpwright_ptx::opcode::{Form, table};
use warpwright_ptx::{LineIndex, Module};

/// Random instructions for each modifier.
const TRIES: u64 = 48;

const HEAD: &str = "# PTX that ptxas accepts and the emulator refuses, by lines of the opcode table (crates/ptx/src/opcode/table):
# `all`, or the modifiers with which no instruction is taken. Held by crates/emu/tests/forms.rs; WARPWRIGHT_BLESS=1 writes it.
";

const PRELUDE: &str = ".version 9.3
.target sm_120a
.address_size 64
.global .texref tex;
.global .surfref srf;
.func dev() { ret; }
.entry kernel(.param .u64 kp)
{
.reg .pred %p<20>; .reg .b8 %c<20>; .reg .b16 %h<40>; .reg .b32 %r<300>;
.reg .b64 %d<40>; .reg .f32 %f<300>; .reg .f64 %e<40>; .reg .b128 %q<20>;
T0: .branchtargets L0;
";

const POSTLUDE: &str = "L0: ret;\n}\n";

/// Which of the instructions are refused.
fn refused(instructions: &[String]) -> Vec<bool> {
    let first = PRELUDE.lines().count() as u32;
    let mut refused = vec![false; instructions.len()];
    loop {
        let mut text = PRELUDE.to_owned();
        for (instruction, no) in instructions.iter().zip(&refused) {
            let line = if *no { "" } else { instruction };
            text.push_str(&line.replace('\n', " "));
            text.push('\n');
        }
        text.push_str(POSTLUDE);
        let lines = complaints(&text);
        let mut news = false;
        for line in lines {
            let place = line.checked_sub(first + 1).map(|at| at as usize);
            if let Some(no) = place.and_then(|at| refused.get_mut(at)) {
                news |= !*no;
                *no = true;
            }
        }
        if !news {
            return refused;
        }
    }
}

/// The lines of what the front end or the emulator does not take.
fn complaints(text: &str) -> Vec<u32> {
    let (module, diagnostics) = Module::parse("forms.ptx", text);
    let lines = LineIndex::new(&module.source);
    let errors = diagnostics.iter().filter(|d| d.is_error());
    let places = errors.filter_map(|d| d.labels.first());
    let errors: Vec<u32> = places
        .map(|(span, _)| lines.line_col(&module.source, span.start).line)
        .collect();
    if !errors.is_empty() {
        return errors;
    }
    match Emulator::new(&module, "kernel") {
        Err(DecodeError::Unsupported(all)) => all.iter().map(|u| u.place.ptx_line).collect(),
        Err(error) => panic!("{error}"),
        Ok(_) => Vec::new(),
    }
}

/// Instructions of a line, with the modifier in its slot.
fn instructions(form: &Form, wanted: Option<(usize, &'static str)>) -> Vec<String> {
    let random = |i| Sample::random(form, i * 7919 + u64::from(form.place.1));
    let samples = std::iter::once(Sample::first(form)).chain((1..=TRIES).map(random));
    let set = samples.map(|mut sample| {
        if let Some((slot, modifier)) = wanted {
            sample.set(slot, modifier);
        }
        sample.text(form, false)
    });
    let all: BTreeSet<String> = set.collect();
    all.into_iter().collect()
}

/// What is refused of a line: everything, some modifiers, or nothing.
fn line(form: &Form) -> Option<String> {
    let is_refused = |wanted| refused(&instructions(form, wanted)).iter().all(|&no| no);
    if is_refused(None) {
        return Some("all".to_owned());
    }
    let mut found = Vec::new();
    for (slot, alternatives) in form.slots.iter().map(|s| &s.alternatives).enumerate() {
        let modifiers = alternatives.iter().copied();
        found.extend(modifiers.filter(|modifier| is_refused(Some((slot, modifier)))));
    }
    let unique: BTreeSet<&str> = found.into_iter().collect();
    let modifiers: Vec<String> = unique.iter().map(|m| format!(".{m}")).collect();
    (!modifiers.is_empty()).then(|| modifiers.join(" "))
}

#[test]
fn what_is_refused_is_listed() {
    let mut list = HEAD.to_owned();
    for form in table() {
        if let Some(what) = line(form) {
            let _ = writeln!(list, "{}: {} | {what}", form.place.0, form.pattern);
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("forms-refused.txt");
    if std::env::var_os("WARPWRIGHT_BLESS").is_some() {
        std::fs::write(&path, &list).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == list,
        "another list than crates/emu/forms-refused.txt; WARPWRIGHT_BLESS=1 writes it"
    );
}
