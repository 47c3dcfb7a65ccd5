//! Predicate operands that nvdisasm's life ranges show as written although they are sources.
//!
//! Its list says `x` (read and written) of the predicate behind the addresses of LDGSTS. Only a source can
//! be negated: where the bit above a predicate field puts `!` before it in nvdisasm's own text, the
//! operand is read and not written.

use std::collections::BTreeMap;
use std::fmt::Write;

use warpwright_sass::roles::{Field, OPCODE, Table};
use warpwright_toolkit::ToolError;
use warpwright_toolkit::life_ranges::File;

use super::predicates::PLACES;
use crate::bench::{Bench, Reading};
use crate::words::Words;

/// Instructions of an opcode that are tried.
const SAMPLES: usize = 4;
/// The numbers that must appear.
const NUMBERS: [u16; 2] = [5, 2];

/// The fields by opcode.
pub type Sources = BTreeMap<u16, Vec<Field>>;

/// Tries instructions of every opcode that is not in `control`.
pub fn find(bench: &Bench<'_>, words: &Words, control: &Table) -> Result<Sources, ToolError> {
    let mut samples: BTreeMap<u16, Vec<u128>> = BTreeMap::new();
    for word in &words.words {
        samples
            .entry(OPCODE.get(word.bits))
            .or_default()
            .push(word.bits);
    }
    samples.retain(|opcode, _| !control.entries().contains_key(opcode));
    let mut places = Vec::new();
    for (&opcode, samples) in &samples {
        let step = samples.len().div_ceil(SAMPLES);
        for &bits in samples.iter().step_by(step) {
            places.extend(PLACES.map(|at| (opcode, bits, Field(at, 3))));
        }
    }
    let probes = places.iter().flat_map(|&(_, bits, field)| {
        let negated = bits | 1 << (field.0 + field.1);
        NUMBERS.map(|number| field.set(negated, number))
    });
    let readings = bench.read(&probes.collect::<Vec<u128>>())?;
    let mut sources = Sources::new();
    for (&(opcode, _, field), readings) in places.iter().zip(readings.chunks(NUMBERS.len())) {
        let pairs = NUMBERS.iter().zip(readings);
        let mut doubts = pairs.map(|(&number, reading)| {
            reading
                .as_ref()
                .is_some_and(|r| negated_and_written(r, number))
        });
        let fields = sources.entry(opcode).or_default();
        if doubts.all(|doubt| doubt) && !fields.contains(&field) {
            fields.push(field);
        }
    }
    sources.retain(|_, fields| !fields.is_empty());
    Ok(sources)
}

/// Does the text negate the predicate as an operand, while the list has it written?
fn negated_and_written(reading: &Reading, number: u16) -> bool {
    [(File::Pred, "P"), (File::UniformPred, "UP")]
        .into_iter()
        .any(|(file, prefix)| {
            let mut marks = reading.marks.iter();
            let written = marks.any(|m| m.0 == file && m.1 == number && m.2.defines());
            let operand = format!("!{prefix}{number}");
            let mut words = reading.text.split([' ', ',']);
            written && words.any(|word| word == operand)
        })
}

/// What was found, as lines of the table.
pub fn notes(sources: &Sources) -> String {
    let mut notes = String::new();
    for (opcode, fields) in sources {
        for field in fields {
            let _ = writeln!(
                notes,
                "# nvdisasm has the predicate at bit {} of opcode {opcode:#05x} written; it can be negated, so it is read.",
                field.0
            );
        }
    }
    notes
}
