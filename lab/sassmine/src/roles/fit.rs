//! Finds the register operands of one instruction by moving its fields.
//!
//! Each of the register fields in turn is set to 48 and the others to 8, 16, 24 and 32; the upper
//! two bits of a field are left alone (where a field names a uniform register they may be modifiers),
//! unless it holds RZ; an instruction whose text names no such register keeps its bits. What nvdisasm then marks from register 48 upwards belongs to that field: its
//! file, role and width. Predicate fields are found by setting three bits at every possible
//! place to two values and watching both appear. The operands found must be what nvdisasm says of the
//! unchanged instruction; if they are not, the last field holds modifiers (as in PLOP3) and is left alone.

use std::collections::BTreeSet;

use rayon::prelude::*;
use warpwright_sass::roles::{self as sass, Field, Role, Slot};
use warpwright_toolkit::ToolError;
use warpwright_toolkit::life_ranges::{File, Mark};

use super::corpus::Marks;
use super::predicates::{self, Predicates};
use crate::bench::{Bench, Reading};

/// The lowest bits of the register fields.
const FIELDS: [u32; 5] = [16, 24, 32, 40, 64];
/// The same with one more, which few instructions have.
const MORE_FIELDS: [u32; 6] = [16, 24, 32, 40, 48, 64];
/// Where the field under test points.
const HIGH: u16 = 48;

/// What was found out about an instruction.
#[derive(Debug, PartialEq, Eq)]
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
        // Where there are more fields, all are eight bits wide, and nvdisasm shows no register beyond 62.
        let upper = match whole.get(bits) {
            _ if fields.len() > FIELDS.len() => 0,
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
    let plain = bench.read(insts)?;
    let named = plain
        .iter()
        .map(|r| r.as_ref().is_none_or(|r| names_registers(&r.text)));
    let named: Vec<bool> = named.collect();
    let mut fitted: Vec<Result<Fitted, String>> =
        insts.iter().map(|_| Err(String::new())).collect();
    let fewer = &FIELDS[..FIELDS.len() - 1];
    let mut wide = BTreeSet::new();
    for (fields, registers, strict) in [
        (&FIELDS[..], true, true),
        (fewer, true, true),
        (&FIELDS[..], true, false),
        (fewer, true, false),
        (&MORE_FIELDS[..], true, true),
        (&[], false, true),
    ] {
        let open = (0..insts.len()).filter(|&at| named[at] == registers && fitted[at].is_err());
        let open: Vec<usize> = open.collect();
        let some: Vec<u128> = open.iter().map(|&at| insts[at]).collect();
        for (at, better) in open
            .into_iter()
            .zip(fit_fields(bench, sm, &some, fields, strict)?)
        {
            if better.is_ok() && fields.len() > FIELDS.len() {
                wide.insert(sass::OPCODE.get(insts[at]));
            }
            if better.is_ok() || fitted[at] == Err(String::new()) {
                fitted[at] = better;
            }
        }
    }
    // Where one instruction of an opcode needs the further field, in the others it holds URZ.
    let has_more = |&at: &usize| wide.contains(&sass::OPCODE.get(insts[at]));
    let again: Vec<usize> = (0..insts.len()).filter(has_more).collect();
    let some: Vec<u128> = again.iter().map(|&at| insts[at]).collect();
    for (at, better) in again
        .into_iter()
        .zip(fit_fields(bench, sm, &some, &MORE_FIELDS, true)?)
    {
        if better.is_ok() {
            fitted[at] = better;
        }
    }
    Ok(fitted)
}

/// Does the text name a general or uniform register, if only RZ? If not, what is at the places of
/// registers are modifiers.
fn names_registers(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.any(|word| {
        let number = word.strip_prefix("UR").or_else(|| word.strip_prefix('R'));
        number.is_some_and(|n| n == "Z" || !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// The same by moving these register fields; strictly, what reaches up to the register under test from below
/// does not begin there.
fn fit_fields(
    bench: &Bench<'_>,
    sm: u32,
    insts: &[u128],
    fields: &[u32],
    strict: bool,
) -> Result<Vec<Result<Fitted, String>>, ToolError> {
    let spreads = insts.iter().flat_map(|&bits| {
        let spreads = fields.iter().map(move |&field| spread(bits, fields, field));
        std::iter::once(bits).chain(spreads)
    });
    let readings = bench.read(&spreads.collect::<Vec<u128>>())?;
    let readings: Vec<&[Option<Reading>]> = readings.chunks(1 + fields.len()).collect();
    let bases = insts.iter().zip(&readings);
    let bases: Vec<Option<(u128, &Reading)>> = bases
        .map(|(&bits, readings)| {
            let base = readings[fields.len().min(1)].as_ref()?;
            Some((spread(bits, fields, FIELDS[0]), base))
        })
        .collect();
    let predicates = predicates::find(bench, &bases)?;
    let parts = insts.par_iter().zip(readings).zip(predicates);
    let explained = parts.map(|((&bits, readings), predicates)| {
        let fitted = explain(sm, bits, fields, strict, readings, &predicates)?;
        let plain = readings.first().and_then(Option::as_ref);
        match plain.is_none_or(|plain| says(sm, bits, &fitted.slots) == said(plain)) {
            true => Ok(fitted),
            false => Err("with its own registers it has other operands".to_owned()),
        }
    });
    Ok(explained.collect())
}

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
    roles.as_ref().map_or_else(Marks::new, marks_of)
}

/// What the roles say; convergence barriers aside, which nvdisasm does not show.
pub fn marks_of(roles: &sass::Roles) -> Marks {
    let mut marks = Marks::new();
    for span in roles.spans() {
        if let Some(file) = file_of(span.file) {
            let written = span.role == Role::Def;
            marks.extend(span.registers().map(|register| (file, register, written)));
        }
    }
    marks
}

/// What nvdisasm says.
pub fn said(reading: &Reading) -> Marks {
    let marks = reading.marks.iter();
    let both = marks.flat_map(|&(file, register, mark)| {
        let roles = [(true, mark.defines()), (false, mark.uses())];
        let played = roles.into_iter().filter(|role| role.1);
        played.map(move |role| (file, register, role.0))
    });
    both.collect()
}

fn explain(
    sm: u32,
    bits: u128,
    fields: &[u32],
    strict: bool,
    readings: &[Option<Reading>],
    predicates: &Predicates,
) -> Result<Fitted, String> {
    let (plain, spreads) = readings.split_first().ok_or("no readings")?;
    let Some(base) = spreads.first().unwrap_or(plain) else {
        // Some fields must hold RZ, as in CCTL.IVALL.
        let plain = plain.as_ref().filter(|plain| plain.marks.is_empty());
        let plain = plain.ok_or("nvdisasm refuses it with other registers")?;
        return Ok(Fitted {
            name: name(&plain.text),
            guard: Some(sass::File::Pred),
            slots: Vec::new(),
        });
    };
    let mut slots: BTreeSet<Slot> = predicates.slots.iter().copied().collect();
    for (&at, reading) in fields.iter().zip(spreads) {
        if let Some(reading) = reading {
            let value = Field(at, 8).get(spread(bits, fields, at));
            slots.extend(slots_at(sm, at, value, strict, &reading.marks));
        }
    }
    let slots: Vec<Slot> = slots.into_iter().collect();
    for (&at, reading) in fields.iter().zip(spreads) {
        if let Some(reading) = reading {
            unexplained(sm, spread(bits, fields, at), &slots, reading)?;
        }
    }
    if fields.is_empty() {
        unexplained(sm, bits, &slots, base)?;
    }
    Ok(Fitted {
        name: name(&base.text),
        guard: predicates.guard,
        slots,
    })
}

/// The mnemonic with its modifiers.
pub fn words(text: &str) -> &str {
    let word = text.split_whitespace().find(|word| !word.starts_with('@'));
    word.unwrap_or_default()
}

/// The mnemonic: the first word without guard and modifiers.
fn name(text: &str) -> String {
    let end = |c: char| !c.is_ascii_alphanumeric();
    words(text).split(end).next().unwrap_or_default().to_owned()
}

/// What is marked from the register that the field `at` names upwards.
fn slots_at(sm: u32, at: u32, value: u16, strict: bool, marks: &[(File, u16, Mark)]) -> Vec<Slot> {
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
            let begins = !strict || first == 0 || !has(first - 1);
            if count > 0 && begins {
                slots.push(Slot {
                    bit: at as u8,
                    file: sass_file(file),
                    role,
                    count,
                    complement: false,
                });
            }
        }
    }
    slots
}

pub(super) fn plays(mark: Mark, role: Role) -> bool {
    match role {
        Role::Def => mark.defines(),
        Role::Use => mark.uses(),
    }
}

/// Every mark must come from a slot.
fn unexplained(sm: u32, bits: u128, slots: &[Slot], reading: &Reading) -> Result<(), String> {
    let table = sass::Table::new(sm);
    for &(file, register, mark) in &reading.marks {
        for role in [Role::Def, Role::Use] {
            let explained = slots.iter().any(|slot| {
                let first = table.number(*slot, bits);
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
