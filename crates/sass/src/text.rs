//! The text form of machine code: nvdisasm's words with the control field before them.
//!
//! ```text
//! .sm 90
//! .function sgemm_tile // 135 registers, 16384 bytes shared, 0 bytes local
//! B------:R-:W0:-:S01:U---- /*0000*/ LDC R1, c[0x0][0x28]
//! .L_10:
//! B0-----:R-:W-:Y:S05:U---- /*0010*/ @!P0 BRA .L_10
//! B------:R-:W-:-:S01:U---- /*0020*/ .inst 0x00000000000000000000000000000fff
//! ```
//!
//! The text parses back to the same bits. Instructions that the tables do not explain are hexadecimal;
//! bits that nvdisasm's words do not tell apart (a NaN's payload, say) follow behind `^`, as the
//! difference to what the words say. The control column alone tells the operand reuse. Addresses are
//! for the reader: an instruction's place is its line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::control::Control;
use crate::elf::{Elf, ElfError};
use crate::inst::Instruction;
use crate::isa::form::{Form, Kind, OPERATION, Piece};
use crate::isa::table::Table;
use crate::isa::{parse, print};

const UNCLAIMED: u128 = 3 << 126;
const LABEL: &str = ".L_";

/// One function: a section of code with what belongs into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The section's name without `.text.`.
    pub name: String,
    /// What a reader wants to know of it; not part of the code.
    pub note: String,
    /// The instructions.
    pub code: Vec<Instruction>,
}

/// The text does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TextError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

/// The functions of a cubin, one per section of code, helper functions behind a kernel included.
pub fn functions(elf: &Elf) -> Result<Vec<Function>, ElfError> {
    let kernels = elf.kernels()?;
    let mut functions = Vec::new();
    for kernel in kernels {
        let registers = elf.registers(&kernel)?.unwrap_or(0);
        let shared = elf.shared_bytes(&kernel);
        functions.push(Function {
            note: format!("{registers} registers, {shared} bytes shared"),
            code: elf.instructions(&kernel)?,
            name: kernel.name,
        });
    }
    Ok(functions)
}

/// The text of all functions.
pub fn print(sm: u32, functions: &[Function]) -> String {
    let mut out = format!(".sm {sm}\n");
    for function in functions {
        print_function(function, &mut out);
    }
    out
}

fn print_function(function: &Function, out: &mut String) {
    let _ = write!(out, "\n.function {}", function.name);
    if !function.note.is_empty() {
        let _ = write!(out, " // {}", function.note);
    }
    out.push('\n');
    let labels = targets(&function.code);
    for (at, inst) in function.code.iter().enumerate() {
        let address = at as u64 * 16;
        if labels.contains(&address) {
            let _ = writeln!(out, "{LABEL}{address:x}:");
        }
        let _ = write!(out, "{} /*{address:04x}*/ ", inst.control());
        print_instruction(*inst, address, &labels, out);
        out.push('\n');
    }
}

/// The instructions of the function that a relative operand names.
fn targets(code: &[Instruction]) -> BTreeSet<u64> {
    let end = code.len() as u64 * 16;
    let targets = code.iter().enumerate().filter_map(|(at, inst)| {
        let form = Table::of(inst.sm())?.find(inst.bits())?;
        target(form, inst.bits(), at as u64 * 16)
    });
    targets.filter(|t| *t < end && t % 16 == 0).collect()
}

/// The address that a form's relative operand names.
pub fn target(form: &Form, bits: u128, address: u64) -> Option<u64> {
    form.pieces.iter().find_map(|piece| match piece {
        Piece::Number(n) if n.kind == Kind::Relative => {
            let field = &form.fields[n.field];
            let distance = print::signed(field.extract(bits), field.width() as u8) << n.scale;
            Some(address.wrapping_add(16).wrapping_add_signed(distance))
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

/// Reads a text back.
///
/// # Errors
/// A line that is no instruction, label or header, or that no form has; a label that nobody defines.
pub fn parse(text: &str) -> Result<(u32, Vec<Function>), TextError> {
    let mut sm = None;
    let mut sections: Vec<(Function, Vec<Line>)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let fail = |reason: &str| TextError {
            line: number,
            reason: reason.to_owned(),
        };
        let line = line.trim();
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        if let Some(word) = line.strip_prefix(".sm ") {
            sm = Some(word.trim().parse().map_err(|_| fail("no architecture"))?);
        } else if let Some(rest) = line.strip_prefix(".function ") {
            let (name, note) = rest.split_once(" // ").unwrap_or((rest, ""));
            let function = Function {
                name: name.to_owned(),
                note: note.to_owned(),
                code: Vec::new(),
            };
            sections.push((function, Vec::new()));
        } else {
            let (_, lines) = sections.last_mut().ok_or_else(|| fail("no function yet"))?;
            lines.push(Line { number, text: line });
        }
    }
    let sm = sm.ok_or(TextError {
        line: 1,
        reason: "there is no .sm".into(),
    })?;
    let functions = sections.into_iter().map(|(mut function, lines)| {
        function.code = assemble(sm, &lines)?;
        Ok(function)
    });
    Ok((sm, functions.collect::<Result<_, _>>()?))
}

/// Reads what [`instruction`] printed; the control field comes out zero.
pub fn parse_instruction(sm: u32, text: &str, address: u64) -> Result<Instruction, String> {
    parse_labelled(sm, text, address, &BTreeMap::new())
}

fn parse_labelled(
    sm: u32,
    text: &str,
    address: u64,
    labels: &BTreeMap<&str, u64>,
) -> Result<Instruction, String> {
    let bits = match text.strip_prefix(".inst ") {
        Some(word) => hex(word)?,
        None => parse_operation(sm, text, address, labels)?,
    };
    Ok(Instruction::new(sm, bits & (OPERATION | UNCLAIMED)))
}

struct Line<'a> {
    number: usize,
    text: &'a str,
}

fn assemble(sm: u32, lines: &[Line<'_>]) -> Result<Vec<Instruction>, TextError> {
    let mut labels: BTreeMap<&str, u64> = BTreeMap::new();
    let mut count = 0;
    for line in lines {
        match line.text.strip_suffix(':') {
            Some(label) => {
                labels.insert(label, count * 16);
            }
            None => count += 1,
        }
    }
    let mut code = Vec::new();
    for line in lines.iter().filter(|l| !l.text.ends_with(':')) {
        let address = code.len() as u64 * 16;
        let inst = parse_line(sm, line.text, address, &labels);
        code.push(inst.map_err(|reason| TextError {
            line: line.number,
            reason,
        })?);
    }
    Ok(code)
}

fn parse_line(
    sm: u32,
    line: &str,
    address: u64,
    labels: &BTreeMap<&str, u64>,
) -> Result<Instruction, String> {
    let (control, rest) = line.split_once(' ').ok_or("an instruction is missing")?;
    let control: Control = control.parse().map_err(|e| format!("{control}: {e}"))?;
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix("/*") {
        Some(tail) => tail
            .split_once("*/")
            .ok_or("a comment is open")?
            .1
            .trim_start(),
        None => rest,
    };
    let inst = parse_labelled(sm, rest, address, labels)?;
    inst.with_control(control).map_err(|e| e.to_string())
}

fn parse_operation(
    sm: u32,
    text: &str,
    address: u64,
    labels: &BTreeMap<&str, u64>,
) -> Result<u128, String> {
    let (words, difference) = match text.split_once(" ^") {
        Some((words, difference)) => (words, hex(difference)?),
        None => (text, 0),
    };
    let mut words = words.to_owned();
    if let Some(at) = words.find(LABEL) {
        let end = words[at..]
            .find([' ', ',', ')'])
            .map_or(words.len(), |e| at + e);
        let label = &words[at..end];
        let target = labels.get(label).ok_or(format!("no label {label}"))?;
        words.replace_range(at..end, &format!("{target:#x}"));
    }
    let table = Table::of(sm).ok_or(format!("no table for sm_{sm}"))?;
    let read = parse::operation(table, &words, address);
    Ok(read.ok_or(format!("no instruction reads {words}"))? ^ difference)
}

fn hex(word: &str) -> Result<u128, String> {
    let digits = word
        .trim()
        .strip_prefix("0x")
        .ok_or(format!("{word} is not hexadecimal"))?;
    u128::from_str_radix(digits, 16).map_err(|e| format!("{word}: {e}"))
}
