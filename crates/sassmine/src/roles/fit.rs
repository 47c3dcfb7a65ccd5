//! Finds the register operands of one instruction by moving its fields.
//!
//! Each of the register fields in turn is set to 48 and the others to 8, 16, 24 and 32; the upper
//! two bits of a field are left alone (where a field names a uniform register they may be modifiers),
//! unless it holds RZ. What nvdisasm then marks from register 48 upwards belongs to that field: its
//! file, role and width. Predicate fields are found by setting three bits at every possible
//! place to two values and watching both appear. The operands found must be what nvdisasm says of the
//! unchanged instruction; if they are not, the last field holds modifiers (as in PLOP3) and is left alone.

use std::collections::BTreeSet;

use warpwright_sass::roles::{self as sass, Field, Role, Slot};
use warpwright_toolkit::ToolError;
use warpwright_toolkit::life_ranges::{File, Mark};

use crate::bench::{Bench, Reading};

/// The lowest bits of the register fields.
const FIELDS: [u32; 5] = [16, 24, 32, 40, 64];
/// Where a predicate field may begin.
const PREDICATES: std::ops::Range<u32> = 66..92;
const GUARD: Field = Field(12, 3);
/// Where the field under test points.
const HIGH: u16 = 48;
/// Pairs of predicates whose numbers differ in every bit.
const PAIRS: [(u16, u16); 3] = [(2, 5), (1, 6), (3, 4)];

/// What was found out about an instruction.
pub struct Fitted {
    /// Its mnemonic without modifiers.
    pub name: String,
    /// The file of its guard.
    pub guard: Option<sass::File>,
    /// Its operands.
    pub slots: Vec<Slot>,
}

/// The instruction with `field` pointing high and the other fields at low registers of their own.
fn spread(bits: u128, fields: &[u32], field: u32) -> u128 {
    let mut low = 0;
    fields.iter().fold(bits, |bits, &at| {
        let value = if at == field {
            HIGH
        } else {
            low += 8;
            low
        };
        let whole = Field(at, 8);
        let upper = match whole.get(bits) {
            255 => 0,
            other => other & 0xc0,
        };
        whole.set(bits, upper | value)
    })
}

/// Like [`spread`], and predicate operands that are PT become real ones, so that it shows whether they count.
pub fn spread_predicates(bits: u128) -> u128 {
    // Numbers of which no two become alike, or PT, when one bit is flipped; results and sources apart.
    let fields = [(68, 1), (77, 2), (87, 4), (81, 1), (84, 2)].into_iter();
    fields.fold(spread(bits, &FIELDS, FIELDS[0]), |bits, (at, number)| {
        let field = Field(at, 3);
        match field.get(bits) {
            7 => field.set(bits, number),
            _ => bits,
        }
    })
}

/// The register file that nvdisasm shows, `None` for convergence barriers, which it does not.
pub fn file_of(file: sass::File) -> Option<File> {
    Some(match file {
        sass::File::Gpr => File::Gpr,
        sass::File::Pred => File::Pred,
        sass::File::Uniform => File::Uniform,
        sass::File::UniformPred => File::UniformPred,
        sass::File::Barrier => return None,
    })
}

/// The register file of a column.
pub fn sass_file(file: File) -> sass::File {
    match file {
        File::Gpr => sass::File::Gpr,
        File::Pred => sass::File::Pred,
        File::Uniform => sass::File::Uniform,
        File::UniformPred => sass::File::UniformPred,
    }
}

/// The operands of each instruction, or why they were not found.
pub fn fit(
    bench: &Bench<'_>,
    sm: u32,
    insts: &[u128],
) -> Result<Vec<Result<Fitted, String>>, ToolError> {
    let mut fitted = fit_fields(bench, sm, insts, &FIELDS)?;
    let failed: Vec<usize> = (0..insts.len()).filter(|&at| fitted[at].is_err()).collect();
    let again: Vec<u128> = failed.iter().map(|&at| insts[at]).collect();
    let better = fit_fields(bench, sm, &again, &FIELDS[..FIELDS.len() - 1])?;
    for (at, better) in failed.into_iter().zip(better) {
        if better.is_ok() {
            fitted[at] = better;
        }
    }
    Ok(fitted)
}

/// The same by moving these register fields.
fn fit_fields(
    bench: &Bench<'_>,
    sm: u32,
    insts: &[u128],
    fields: &[u32],
) -> Result<Vec<Result<Fitted, String>>, ToolError> {
    let probes = insts.iter().flat_map(|&bits| probes(bits, fields));
    let readings = bench.read(&probes.collect::<Vec<u128>>())?;
    let per_inst = readings.len() / insts.len().max(1);
    let parts = insts.iter().zip(readings.chunks(per_inst.max(1)));
    let explained = parts.map(|(&bits, readings)| {
        let fitted = explain(sm, bits, fields, readings)?;
        let plain = readings.first().and_then(Option::as_ref);
        match plain.is_none_or(|plain| says(sm, bits, &fitted.slots) == said(plain)) {
            true => Ok(fitted),
            false => Err("with its own registers it has other operands".to_owned()),
        }
    });
    Ok(explained.collect())
}

/// Registers by file and number, written or read.
type Marks = BTreeSet<(File, u16, bool)>;

/// What the operands name in the instruction.
fn says(sm: u32, bits: u128, slots: &[Slot]) -> Marks {
    let mut table = sass::Table::new(sm);
    let row = sass::Row {
        slots: slots.to_vec(),
        confirmed: 0,
    };
    let entry = sass::Entry {
        rows: [(0, row)].into(),
        ..sass::Entry::default()
    };
    table.insert(sass::OPCODE.get(bits), entry);
    let roles = table.roles(warpwright_sass::Instruction::new(sm, bits));
    let spans = roles.iter().flat_map(|roles| roles.spans());
    let named = spans.filter_map(|span| Some((file_of(span.file)?, span)));
    let registers = named.flat_map(|(file, span)| {
        let registers = span.registers();
        registers.map(move |register| (file, register, span.role == Role::Def))
    });
    registers.collect()
}

fn said(reading: &Reading) -> Marks {
    let marks = reading.marks.iter();
    let both = marks.flat_map(|&(file, register, mark)| {
        let roles = [(true, mark.defines()), (false, mark.uses())];
        let played = roles.into_iter().filter(|role| role.1);
        played.map(move |role| (file, register, role.0))
    });
    both.collect()
}

/// The instruction itself, one for each register field, one for each of the guard's pair, and then the predicate places.
fn probes(bits: u128, fields: &[u32]) -> Vec<u128> {
    let base = spread(bits, fields, FIELDS[0]);
    let mut probes = vec![bits];
    probes.extend(fields.iter().map(|&field| spread(bits, fields, field)));
    let fields = std::iter::once(GUARD).chain(PREDICATES.map(|at| Field(at, 3)));
    for field in fields {
        for (one, other) in PAIRS {
            probes.push(field.set(base, one));
            probes.push(field.set(base, other));
        }
    }
    probes
}

fn explain(
    sm: u32,
    bits: u128,
    fields: &[u32],
    readings: &[Option<Reading>],
) -> Result<Fitted, String> {
    let (plain, readings) = readings.split_first().ok_or("no readings")?;
    let (spreads, predicates) = readings.split_at(fields.len());
    let mut slots = BTreeSet::new();
    for (&at, reading) in fields.iter().zip(spreads) {
        if let Some(reading) = reading {
            slots.extend(slots_at(
                sm,
                at,
                Field(at, 8).get(spread(bits, fields, at)),
                &reading.marks,
            ));
        }
    }
    let Some(base) = &spreads[0] else {
        // Some fields must hold RZ, as in CCTL.IVALL.
        let plain = plain.as_ref().filter(|plain| plain.marks.is_empty());
        let plain = plain.ok_or("nvdisasm refuses it with other registers")?;
        return Ok(Fitted {
            name: name(&plain.text),
            guard: Some(sass::File::Pred),
            slots: Vec::new(),
        });
    };
    let mut guard = None;
    for (index, pair) in predicates.chunks(2 * PAIRS.len()).enumerate() {
        let Some((file, roles)) = predicate(&base.marks, pair) else {
            continue;
        };
        if index == 0 {
            guard = Some(file);
            continue;
        }
        for role in roles {
            slots.insert(Slot {
                bit: (PREDICATES.start as usize + index - 1) as u8,
                file,
                role,
                count: 1,
            });
        }
    }
    let slots: Vec<Slot> = slots.into_iter().collect();
    let name = name(&base.text);
    for (&at, reading) in fields.iter().zip(spreads) {
        if let Some(reading) = reading {
            unexplained(sm, spread(bits, fields, at), &slots, reading)?;
        }
    }
    Ok(Fitted { name, guard, slots })
}

/// The mnemonic: the first word without guard and modifiers.
fn name(text: &str) -> String {
    let word = text.split_whitespace().find(|word| !word.starts_with('@'));
    let end = |c: char| !c.is_ascii_alphanumeric();
    word.unwrap_or_default()
        .split(end)
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// What is marked from the register that the field `at` names upwards.
fn slots_at(sm: u32, at: u32, value: u16, marks: &[(File, u16, Mark)]) -> Vec<Slot> {
    let mut slots = Vec::new();
    let uniform = if sm < 100 { value & 63 } else { value };
    for (file, first) in [(File::Gpr, value), (File::Uniform, uniform)] {
        for role in [Role::Def, Role::Use] {
            let has = |register: u16| {
                marks
                    .iter()
                    .any(|&(f, r, mark)| f == file && r == register && plays(mark, role))
            };
            let count = (first..).take_while(|&register| has(register)).count() as u16;
            if count > 0 {
                slots.push(Slot {
                    bit: at as u8,
                    file: sass_file(file),
                    role,
                    count,
                });
            }
        }
    }
    slots
}

fn plays(mark: Mark, role: Role) -> bool {
    match role {
        Role::Def => mark.defines(),
        Role::Use => mark.uses(),
    }
}

/// Does setting the field to two predicates make both appear? For one of the pairs it must.
fn predicate(
    base: &[(File, u16, Mark)],
    readings: &[Option<Reading>],
) -> Option<(sass::File, Vec<Role>)> {
    for (&(one, other), pair) in PAIRS.iter().zip(readings.chunks(2)) {
        let [Some(first), Some(second)] = pair else {
            continue;
        };
        for file in [File::Pred, File::UniformPred] {
            let mark = |marks: &[(File, u16, Mark)], number| {
                marks
                    .iter()
                    .find(|m| m.0 == file && m.1 == number)
                    .map(|m| m.2)
            };
            if mark(base, one).is_some() || mark(base, other).is_some() {
                continue;
            }
            let both = (mark(&first.marks, one), mark(&second.marks, other));
            let (Some(a), Some(b)) = both else {
                continue;
            };
            let alone = mark(&first.marks, other).is_none() && mark(&second.marks, one).is_none();
            if a == b && alone {
                let roles = [Role::Def, Role::Use]
                    .into_iter()
                    .filter(|&role| plays(a, role));
                return Some((sass_file(file), roles.collect()));
            }
        }
    }
    None
}

/// Every mark must come from a slot.
fn unexplained(sm: u32, bits: u128, slots: &[Slot], reading: &Reading) -> Result<(), String> {
    let table = sass::Table::new(sm);
    for &(file, register, mark) in &reading.marks {
        for role in [Role::Def, Role::Use] {
            let explained = slots.iter().any(|slot| {
                let first = table.field(*slot).get(bits);
                file_of(slot.file) == Some(file)
                    && slot.role == role
                    && (first..first + slot.count).contains(&register)
            });
            if plays(mark, role) && !explained {
                return Err(format!(
                    "{file:?} {register} {mark:?} is not explained: {}",
                    reading.text
                ));
            }
        }
    }
    Ok(())
}
