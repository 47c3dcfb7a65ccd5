//! Speed of decoding and encoding: `cargo bench -p warpwright-sass`.
//!
//! The instructions are made here, from the forms of each table: every form as often as the corpus that
//! the table was derived from has it, with arbitrary fields and control codes, in arbitrary order.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warpwright_sass::Instruction;
use warpwright_sass::isa::form::{Form, OPERATION, Piece};
use warpwright_sass::isa::table::Table;
use warpwright_sass::isa::{decode, encode};
use warpwright_sass::text::{self, Function};

const COUNT: usize = 20_000;

/// A deterministic stream of words (splitmix64).
struct Noise(u64);

impl Noise {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.word()) << 64 | u128::from(self.word())
    }
}

/// An instruction of this form: arbitrary numbers and control code, modifiers that have a text.
fn instance(sm: u32, form: &Form, noise: &mut Noise) -> Instruction {
    let free = !form.mask() & OPERATION | !OPERATION;
    let mut bits = form.value | noise.wide() & free;
    for piece in &form.pieces {
        if let Piece::Choice(choice) = piece {
            let field = &form.fields[choice.field];
            let known = choice
                .texts
                .iter()
                .enumerate()
                .filter(|(_, text)| text.is_some());
            let known: Vec<usize> = known.map(|(value, _)| value).collect();
            let value = known[noise.word() as usize % known.len()];
            bits = bits & !field.mask() | field.deposit(value as u64);
        }
    }
    Instruction::new(sm, bits)
}

/// Code in the proportions of the corpus.
fn code(sm: u32) -> Vec<Instruction> {
    let forms: &[Form] = Table::of(sm).map_or(&[], Table::forms);
    let total: u64 = forms.iter().map(|form| form.confirmed).sum();
    let mut noise = Noise(u64::from(sm));
    let mut code = Vec::with_capacity(COUNT);
    while code.len() < COUNT {
        let mut place = noise.word() % total.max(1);
        for form in forms {
            if place < form.confirmed {
                code.push(instance(sm, form, &mut noise));
                break;
            }
            place -= form.confirmed;
        }
    }
    code
}

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("sass");
    for sm in [75, 90, 120] {
        let code = code(sm);
        let opaque = code.iter().filter(|i| decode(**i).is_opaque()).count();
        assert!(
            opaque * 10 < code.len(),
            "sm_{sm}: {opaque} of {} opaque",
            code.len()
        );
        group.throughput(Throughput::Elements(code.len() as u64));
        group.bench_function(format!("decode and encode, sm_{sm}"), |b| {
            b.iter(|| {
                for &inst in &code {
                    let decoded = decode(black_box(inst));
                    assert_eq!(encode(black_box(&decoded)), Ok(inst));
                }
            });
        });
    }
    let function = Function {
        name: "f".into(),
        note: String::new(),
        code: code(90),
    };
    group.throughput(Throughput::Elements(function.code.len() as u64));
    let functions = std::slice::from_ref(&function);
    group.bench_function("text, print, sm_90", |b| {
        b.iter(|| black_box(text::print(90, functions)));
    });
    let printed = text::print(90, functions);
    group.bench_function("text, parse, sm_90", |b| {
        b.iter(|| black_box(text::parse(&printed).map(|read| read.1.len())));
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
