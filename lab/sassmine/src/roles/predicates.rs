//! Finds the predicate operands of an instruction: three bits at every possible place are set to two
//! numbers, and both must appear among the registers that nvdisasm marks.

use warpwright_sass::roles::{self as sass, Field, Role, Slot};
use warpwright_toolkit::ToolError;
use warpwright_toolkit::life_ranges::{File, Mark};

use super::fit::{plays, sass_file};
use crate::bench::{Bench, Reading};

/// Where a predicate field may begin.
pub const PLACES: std::ops::Range<u32> = 66..92;
const GUARD: Field = Field(12, 3);
/// Pairs of predicates whose numbers differ in every bit: a field that holds them inverted shows the other
/// one of the pair.
const PAIRS: [(u16, u16); 3] = [(2, 5), (1, 6), (3, 4)];

/// The predicates of one instruction.
#[derive(Default)]
pub struct Predicates {
    /// The file of its guard.
    pub guard: Option<sass::File>,
    /// The operands.
    pub slots: Vec<Slot>,
}

/// What a field was found to name.
struct Operand {
    file: sass::File,
    roles: Vec<Role>,
    complement: bool,
}

/// One place of one instruction that is still looked at.
struct Open {
    inst: usize,
    field: Field,
    /// Pairs to be tried, those first that nothing else in the instruction names.
    pairs: Vec<(u16, u16)>,
}

type Marks = [(File, u16, Mark)];

/// The predicates of each instruction, of which its bits and reading are given.
pub fn find(
    bench: &Bench<'_>,
    bases: &[Option<(u128, &Reading)>],
) -> Result<Vec<Predicates>, ToolError> {
    let mut found: Vec<Predicates> = bases.iter().map(|_| Predicates::default()).collect();
    let mut open = Vec::new();
    for (inst, base) in bases.iter().enumerate() {
        let Some((_, reading)) = base else { continue };
        let places = std::iter::once(GUARD).chain(PLACES.map(|at| Field(at, 3)));
        open.extend(places.map(|field| Open {
            inst,
            field,
            pairs: pairs(&reading.marks),
        }));
    }
    while !open.is_empty() {
        let probes = open.iter().flat_map(|open| {
            let bits = bases[open.inst].map_or(0, |base| base.0);
            let (one, other) = open.pairs[0];
            [open.field.set(bits, one), open.field.set(bits, other)]
        });
        let readings = bench.read(&probes.collect::<Vec<u128>>())?;
        let mut left = Vec::new();
        for (mut place, pair) in open.into_iter().zip(readings.chunks(2)) {
            let base = bases[place.inst].map_or(&[][..], |base| &base.1.marks);
            if let Some(operand) = predicate(base, place.pairs[0], pair) {
                found[place.inst].add(place.field, operand);
                continue;
            }
            let (one, other) = place.pairs.remove(0);
            let doubtful = named(base, one) || named(base, other) || pair.contains(&None);
            if doubtful && !place.pairs.is_empty() {
                left.push(place);
            }
        }
        open = left;
    }
    Ok(found)
}

impl Predicates {
    fn add(&mut self, field: Field, found: Operand) {
        let Operand {
            file,
            roles,
            complement,
        } = found;
        if field == GUARD {
            self.guard = Some(file);
            return;
        }
        self.slots.extend(roles.into_iter().map(|role| Slot {
            bit: field.0 as u8,
            file,
            role,
            count: 1,
            complement,
        }));
    }
}

/// Does a reading name a predicate of this number?
fn named(marks: &Marks, number: u16) -> bool {
    let is_predicate = |file| matches!(file, File::Pred | File::UniformPred);
    marks.iter().any(|m| is_predicate(m.0) && m.1 == number)
}

fn pairs(marks: &Marks) -> Vec<(u16, u16)> {
    let mut pairs = PAIRS.to_vec();
    pairs.sort_by_key(|&(one, other)| named(marks, one) || named(marks, other));
    pairs
}

/// Does setting the field to two predicates make both appear?
fn predicate(base: &Marks, (one, other): (u16, u16), pair: &[Option<Reading>]) -> Option<Operand> {
    let [Some(first), Some(second)] = pair else {
        return None;
    };
    for file in [File::Pred, File::UniformPred] {
        let mark = |marks: &Marks, number| {
            let found = marks.iter().find(|m| m.0 == file && m.1 == number);
            found.map(|m| m.2)
        };
        if mark(base, one).is_some() || mark(base, other).is_some() {
            continue;
        }
        for (here, there, complement) in [(one, other, false), (other, one, true)] {
            let both = (mark(&first.marks, here), mark(&second.marks, there));
            let alone = mark(&first.marks, there).is_none() && mark(&second.marks, here).is_none();
            if let (Some(a), Some(b)) = both
                && a == b
                && alone
            {
                let roles = [Role::Def, Role::Use].into_iter();
                return Some(Operand {
                    file: sass_file(file),
                    roles: roles.filter(|&role| plays(a, role)).collect(),
                    complement,
                });
            }
        }
    }
    None
}
