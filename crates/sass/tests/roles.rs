//! The tables of roles against the tables of forms, and against real code.

#![allow(clippy::unwrap_used)]

mod sample;

use std::collections::BTreeMap;

use warpwright_sass::isa::decode;
use warpwright_sass::isa::form::{self, Form, Kind, Piece};
use warpwright_sass::isa::table::Table;
use warpwright_sass::roles::{File, Role, Roles, Span};
use warpwright_sass::{Elf, Instruction, text};

const ARCHITECTURES: [u32; 7] = [75, 80, 86, 89, 90, 100, 120];

/// An instruction of the form with registers of their own in all fields.
fn spread(sm: u32, form: &Form) -> Instruction {
    let mut bits = form.value | 7 << 12 & form::GUARD;
    for piece in &form.pieces {
        if let Piece::Choice(choice) = piece {
            let first = choice.texts.iter().position(Option::is_some).unwrap();
            let field = &form.fields[choice.field];
            if form.has_texts(bits) {
                continue;
            }
            bits = bits & !field.mask() | field.deposit(first as u64);
        }
    }
    let mut taken: BTreeMap<form::File, u64> = BTreeMap::new();
    for piece in &form.pieces {
        if let Piece::Number(number) = piece
            && let Kind::Register(file) | Kind::Complement(file) = number.kind
        {
            let next = taken.entry(file).or_default();
            *next += 1;
            let wide = matches!(file, form::File::General | form::File::Uniform);
            let field = &form.fields[number.field];
            let value = if wide { *next * 8 } else { *next };
            bits = bits & !field.mask() | field.deposit(value);
        }
    }
    Instruction::new(sm, bits)
}

fn names(operand: &warpwright_sass::isa::operand::Operand, span: &Span) -> bool {
    let file = match span.file {
        File::Gpr => form::File::General,
        File::Pred => form::File::Predicate,
        File::Uniform => form::File::Uniform,
        File::UniformPred => form::File::UniformPredicate,
        File::Barrier => form::File::Barrier,
    };
    let mut registers = operand.registers.iter();
    let numbered = |index| index == u32::from(span.first);
    registers.any(|r| r.file == file && r.field.is_some() && !r.constant && numbered(r.index))
}

/// SASS names what it writes before what it reads (but for convergence barriers, which are changed by
/// those that leave).
#[test]
fn what_is_written_stands_before_what_is_read() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for sm in ARCHITECTURES {
        for form in Table::of(sm).unwrap().forms() {
            let inst = spread(sm, form);
            let Some(roles) = Roles::of(inst) else {
                continue;
            };
            let decoded = decode(inst);
            let operands = decoded.operands(0);
            let places = |role: Role| {
                let spans = roles.spans().iter().filter(move |span| span.role == role);
                let spans = spans.filter(|span| span.file != File::Barrier);
                let place = |span: &Span| operands.iter().position(|o| names(o, span));
                spans.filter_map(place).collect::<Vec<usize>>()
            };
            let (written, read) = (places(Role::Def), places(Role::Use));
            compared += 1;
            if let (Some(last), Some(first)) = (written.iter().max(), read.iter().min())
                && last >= first
            {
                wrong.push(format!("sm_{sm}: {} {roles:?}", decoded.text(0)));
            }
        }
    }
    assert!(compared > 2000, "only {compared} forms compared");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// nvdisasm's life ranges have the predicate of a conditional copy written as well.
#[test]
fn a_conditional_copy_reads_its_predicate() {
    for sm in [80, 86, 89, 90, 100, 120] {
        let forms = Table::of(sm).unwrap().forms().iter();
        let mut seen = 0;
        for form in forms.filter(|form| form.mnemonic() == "LDGSTS") {
            let roles = Roles::of(spread(sm, form)).unwrap();
            assert_eq!(roles.defs().count(), 0, "sm_{sm}: {roles:?}");
            seen += roles.uses().filter(|span| span.file == File::Pred).count();
        }
        assert!(seen > 0, "sm_{sm}: no form with a predicate");
    }
}

#[test]
fn every_instruction_of_the_samples_has_roles() {
    let test = "every_instruction_of_the_samples_has_roles";
    let (Some(samples), Some(debug)) = (sample::cubins(test), sample::unoptimized(test)) else {
        return;
    };
    for sample in samples.into_iter().chain(debug) {
        let elf = Elf::parse(&sample.cubin).unwrap();
        for function in text::functions(&elf).unwrap() {
            for inst in function.code {
                let text = text::instruction(inst, 0);
                assert!(Roles::of(inst).is_some(), "{}: {text}", sample.name);
            }
        }
    }
}
