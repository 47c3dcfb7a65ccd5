//! Instructions as lines of text, and back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::error::{Line, TextError, TextErrorKind};
use crate::control::Control;
use crate::inst::Instruction;
use crate::isa::form::{Form, Kind, OPERATION, Piece};
use crate::isa::table::Table;
use crate::isa::{parse, print};

const UNCLAIMED: u128 = 3 << 126;
/// What the names of labels begin with.
pub(super) const LABEL: &str = ".L_";
/// Bytes of an instruction.
pub(super) const SIZE: u64 = 16;

/// Byte offsets by the names of labels.
pub(super) type Labels<'t> = BTreeMap<&'t str, u64>;

/// The lines of a section's code, with labels at the `named` offsets and wherever a branch leads. Before
/// the instruction at an offset stand the `remarks` on it.
pub(super) fn print(
    code: &[Instruction],
    named: &BTreeSet<u64>,
    remarks: &BTreeMap<u64, Vec<String>>,
    out: &mut String,
) {
    let mut labels = targets(code);
    labels.extend(named);
    for (address, inst) in (0..).step_by(SIZE as usize).zip(code) {
        for remark in remarks.get(&address).into_iter().flatten() {
            let _ = writeln!(out, "// {remark}");
        }
        if labels.contains(&address) {
            let _ = writeln!(out, "{LABEL}{address:x}:");
        }
        let _ = write!(out, "{} /*{address:04x}*/ ", inst.control());
        print_instruction(*inst, address, &labels, out);
        out.push('\n');
    }
    let end = code.len() as u64 * SIZE;
    if named.contains(&end) {
        let _ = writeln!(out, "{LABEL}{end:x}:");
    }
}

/// The instructions of the function that a relative operand names.
fn targets(code: &[Instruction]) -> BTreeSet<u64> {
    let end = code.len() as u64 * SIZE;
    let targets = code.iter().enumerate().filter_map(|(at, inst)| {
        let form = Table::of(inst.sm())?.find(inst.bits())?;
        target(form, inst.bits(), at as u64 * SIZE)
    });
    targets.filter(|t| *t < end && t % SIZE == 0).collect()
}

/// The address that a form's relative operand names.
pub fn target(form: &Form, bits: u128, address: u64) -> Option<u64> {
    form.pieces.iter().find_map(|piece| match piece {
        Piece::Number(n) if n.kind == Kind::Relative => {
            let field = &form.fields[n.field];
            let distance = print::signed(field.extract(bits), field.width() as u8) << n.scale;
            Some(address.wrapping_add(SIZE).wrapping_add_signed(distance))
        }
        _ => None,
    })
}

/// Operation, difference and all, without the control column.
pub fn instruction(inst: Instruction, address: u64) -> String {
    let mut out = String::new();
    print_instruction(inst, address, &BTreeSet::new(), &mut out);
    out
}

fn print_instruction(inst: Instruction, address: u64, labels: &BTreeSet<u64>, out: &mut String) {
    let bits = inst.bits() & (OPERATION | UNCLAIMED);
    let start = out.len();
    let table = Table::of(inst.sm());
    if let Some((table, form)) = table.and_then(|t| Some((t, t.find(inst.bits())?))) {
        print::operation(form, inst.bits(), address, out);
        if let Some(read) = parse::operation(table, &out[start..], address) {
            let difference = (read ^ bits) & (OPERATION | UNCLAIMED);
            name_target(form, inst.bits(), address, labels, start, out);
            if difference != 0 {
                let _ = write!(out, " ^{difference:#x}");
            }
            return;
        }
        out.truncate(start);
    }
    let _ = write!(out, ".inst {bits:#034x}");
}

/// Writes a branch target inside the function by its label.
fn name_target(
    form: &Form,
    bits: u128,
    address: u64,
    labels: &BTreeSet<u64>,
    start: usize,
    out: &mut String,
) {
    let Some(target) = target(form, bits, address).filter(|t| labels.contains(t)) else {
        return;
    };
    let number = format!("{target:#x}");
    if let Some(at) = out[start..].rfind(&number) {
        out.replace_range(
            start + at..start + at + number.len(),
            &format!("{LABEL}{target:x}"),
        );
    }
}

/// Reads what [`instruction`] printed; the control field comes out zero.
///
/// # Errors
/// The text is no instruction of the architecture.
pub fn parse_instruction(sm: u32, text: &str, address: u64) -> Result<Instruction, TextError> {
    let line = Line { number: 1, text };
    parse_operation(sm, line, text, address, &Labels::new())
}

/// Does a line begin with a control column?
pub(super) fn is_code(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or("");
    first.starts_with('B') && first.contains(':')
}

/// An instruction with its control column.
pub(super) fn parse_line(
    sm: u32,
    line: Line<'_>,
    address: u64,
    labels: &Labels<'_>,
) -> Result<Instruction, TextError> {
    let text = line.text.split(" //").next().unwrap_or("").trim();
    let missing = || line.fail(text, TextErrorKind::Missing("the instruction"));
    let (column, rest) = text.split_once(' ').ok_or_else(missing)?;
    let control: Control = column
        .parse()
        .map_err(|e| line.fail(column, TextErrorKind::Control(e)))?;
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix("/*") {
        Some(tail) => {
            let open = || line.fail(rest, TextErrorKind::Open("comment"));
            tail.split_once("*/").ok_or_else(open)?.1.trim_start()
        }
        None => rest,
    };
    let inst = parse_operation(sm, line, rest, address, labels)?;
    let controlled = inst.with_control(control);
    controlled.map_err(|e| line.fail(column, TextErrorKind::ControlRange(e)))
}

fn parse_operation(
    sm: u32,
    line: Line<'_>,
    text: &str,
    address: u64,
    labels: &Labels<'_>,
) -> Result<Instruction, TextError> {
    let bits = match text.strip_prefix(".inst ") {
        Some(word) => hex(line, word)?,
        None => parse_words(sm, line, text, address, labels)?,
    };
    Ok(Instruction::new(sm, bits & (OPERATION | UNCLAIMED)))
}

fn parse_words(
    sm: u32,
    line: Line<'_>,
    text: &str,
    address: u64,
    labels: &Labels<'_>,
) -> Result<u128, TextError> {
    let (shown, difference) = match text.split_once(" ^") {
        Some((words, difference)) => (words, hex(line, difference)?),
        None => (text, 0),
    };
    let mut words = shown.to_owned();
    if let Some(at) = shown.find(LABEL) {
        let end = shown[at..].find([' ', ',', ')']);
        let label = &shown[at..end.map_or(shown.len(), |end| at + end)];
        let unknown = || {
            let name = label.to_owned();
            line.fail(
                label,
                TextErrorKind::Unknown {
                    what: "label",
                    name,
                },
            )
        };
        let target = labels.get(label).ok_or_else(unknown)?;
        words.replace_range(at..at + label.len(), &format!("{target:#x}"));
    }
    let unknown = || line.fail(text, TextErrorKind::Architecture(sm));
    let table = Table::of(sm).ok_or_else(unknown)?;
    let read = parse::operation(table, &words, address);
    let bits = read.ok_or_else(|| unreadable(sm, table, line, shown))?;
    Ok(bits ^ difference)
}

fn unreadable(sm: u32, table: &Table, line: Line<'_>, text: &str) -> TextError {
    let bare = match text.starts_with('@') {
        true => text.split_once(' ').map_or("", |(_, rest)| rest),
        false => text,
    };
    let mnemonic = &bare[..bare.find(['.', ' ']).unwrap_or(bare.len())];
    let name = mnemonic.to_owned();
    match table.named(mnemonic).next() {
        None => line.fail(mnemonic, TextErrorKind::Mnemonic { name, sm }),
        Some(_) => line.fail(text, TextErrorKind::Operands { name, sm }),
    }
}

fn hex(line: Line<'_>, word: &str) -> Result<u128, TextError> {
    let word = word.trim();
    let digits = word.strip_prefix("0x");
    let value = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
    value.ok_or_else(|| line.fail(word, TextErrorKind::Number))
}
