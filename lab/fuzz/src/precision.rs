//! How often the checker leaves a right rewrite undecided, by kind of rewrite and by reason.
//!
//! Each kind changes the text of a generated kernel wherever it can, in a way that leaves every result as
//! it was.

use std::collections::BTreeMap;

use warpwright_check::{Cause, Options, Verdict, check_modules};
use warpwright_fuzzgen::print;
use warpwright_ptx::{Diagnostic, Module};

use crate::case;

/// One line of a kernel's text to another one; `None` where the kind has nothing to do.
pub type Rewrite = fn(&Line<'_>) -> Option<String>;

/// The kinds of rewrites.
pub const KINDS: [(&str, Rewrite); 7] = [
    (
        "operands of sums, products, minima and masks swapped",
        commuted,
    ),
    ("operands of comparisons swapped", compared),
    ("comparisons inverted, selections swapped", inverted),
    ("shifts as products", multiplied),
    ("differences as sums", added),
    (
        "unsigned divisions and remainders by powers of two",
        divided,
    ),
    ("products and sums as `mad`, in two steps", split),
];

/// Of one kind: kernels that it changed, those proved, and the rest by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    /// Kernels that were changed.
    pub changed: u64,
    /// Those that were proved.
    pub proved: u64,
    /// The others, by the code of the checker's reason.
    pub open: BTreeMap<&'static str, u64>,
}

/// Every kind of rewrite of the kernel of a seed.
pub fn count(seed: u64, counts: &mut [Count; KINDS.len()]) {
    let text = print(&case::program(seed, false));
    let Some(original) = parse(&text) else { return };
    for ((_, rewrite), count) in KINDS.iter().zip(counts) {
        let lines = text.lines().map(|line| {
            let new = Line::read(line).and_then(|line| rewrite(&line));
            new.unwrap_or_else(|| line.to_owned())
        });
        let new: Vec<String> = lines.collect();
        let new = new.join("\n") + "\n";
        let Some(new) = parse(&new).filter(|_| new != text) else {
            continue;
        };
        count.changed += 1;
        match check_modules(&original, &new, &Options::default()).pop() {
            Some((_, Verdict::Proved)) => count.proved += 1,
            Some((_, verdict)) => {
                let code = verdict.cause().map_or("refuted", Cause::code);
                *count.open.entry(code).or_insert(0) += 1;
            }
            None => {}
        }
    }
}

fn parse(text: &str) -> Option<Module> {
    let (module, diagnostics) = Module::parse("kernel.ptx", text);
    (!diagnostics.iter().any(Diagnostic::is_error)).then_some(module)
}

/// `guard opcode operands;`
/// An instruction without brackets or braces.
pub struct Line<'a> {
    before: &'a str,
    opcode: &'a str,
    operands: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Line<'a>> {
        let code = line.trim_end().strip_suffix(';')?;
        let start = code.len() - code.trim_start().len();
        let opcode_at = match code[start..].strip_prefix('@') {
            Some(rest) => start + 1 + rest.find(' ')? + 1,
            None => start,
        };
        let (opcode, operands) = code[opcode_at..].split_once(' ')?;
        let is_plain = !operands.contains(['[', '{', '(', '|']) && opcode.contains('.');
        is_plain.then(|| Line {
            before: &code[..opcode_at],
            opcode,
            operands: operands.split(',').map(str::trim).collect(),
        })
    }

    fn with(&self, opcode: &str, operands: &[&str]) -> String {
        format!("{}{opcode} {};", self.before, operands.join(", "))
    }

    fn is_word(&self) -> bool {
        [".u32", ".s32", ".u64", ".s64"]
            .iter()
            .any(|ty| self.opcode.ends_with(ty))
    }
}

fn commuted(line: &Line<'_>) -> Option<String> {
    let commutes = [
        "add.",
        "mul.lo.",
        "mul.hi.",
        "mul.wide.",
        "min.",
        "max.",
        "and.",
        "or.",
        "xor.",
    ];
    let is_number = line.is_word() || line.opcode.ends_with(".f32") || line.opcode.contains(".b");
    match line.operands[..] {
        [d, a, b] if is_number && commutes.iter().any(|op| line.opcode.starts_with(op)) => {
            (b.starts_with('%')).then(|| line.with(line.opcode, &[d, b, a]))
        }
        [d, a, b, c] if line.opcode.starts_with("fma.") && line.opcode.ends_with(".f32") => {
            Some(line.with(line.opcode, &[d, b, a, c]))
        }
        _ => None,
    }
}

const MIRRORED: [(&str, &str); 4] = [
    (".lt.", ".gt."),
    (".gt.", ".lt."),
    (".le.", ".ge."),
    (".ge.", ".le."),
];

fn compared(line: &Line<'_>) -> Option<String> {
    let [d, a, b] = line.operands[..] else {
        return None;
    };
    let (from, to) = MIRRORED
        .iter()
        .find(|(from, _)| line.opcode.contains(from))?;
    let is_plain = line.opcode.starts_with("setp.") && b.starts_with('%');
    is_plain.then(|| line.with(&line.opcode.replace(from, to), &[d, b, a]))
}

/// The comparison becomes its complement, and a second instruction turns it back.
fn inverted(line: &Line<'_>) -> Option<String> {
    const INVERSE: [(&str, &str); 6] = [
        (".lt.", ".ge."),
        (".ge.", ".lt."),
        (".le.", ".gt."),
        (".gt.", ".le."),
        (".eq.", ".ne."),
        (".ne.", ".eq."),
    ];
    let [d, _, _] = line.operands[..] else {
        return None;
    };
    let (from, to) = INVERSE
        .iter()
        .find(|(from, _)| line.opcode.contains(from))?;
    // The second instruction has the guard of the first one, which must not have changed it.
    let sets_its_guard = line.before.contains(d);
    let is_plain = line.opcode.starts_with("setp.") && line.is_word() && !sets_its_guard;
    is_plain.then(|| {
        let comparison = line.with(&line.opcode.replace(from, to), &line.operands);
        format!("{comparison}\n{}", line.with("not.pred", &[d, d]))
    })
}

fn multiplied(line: &Line<'_>) -> Option<String> {
    let [d, a, b] = line.operands[..] else {
        return None;
    };
    let by: u32 = b.parse().ok().filter(|&by| by < 31)?;
    let bits = line.opcode.strip_prefix("shl.b")?;
    let factor = (1u64 << by).to_string();
    Some(line.with(&format!("mul.lo.u{bits}"), &[d, a, &factor]))
}

fn added(line: &Line<'_>) -> Option<String> {
    let [d, a, b] = line.operands[..] else {
        return None;
    };
    let ty = line
        .opcode
        .strip_prefix("sub.")
        .filter(|_| line.is_word())?;
    let value: i64 = b.parse().ok()?;
    Some(line.with(
        &format!("add.{ty}"),
        &[d, a, &value.checked_neg()?.to_string()],
    ))
}

fn divided(line: &Line<'_>) -> Option<String> {
    let [d, a, b] = line.operands[..] else {
        return None;
    };
    let value: u64 = b
        .parse()
        .ok()
        .filter(|value: &u64| value.is_power_of_two())?;
    let shift = value.trailing_zeros().to_string();
    let mask = (value - 1).to_string();
    match line.opcode.split_once(".u")? {
        ("div", bits) => Some(line.with(&format!("shr.u{bits}"), &[d, a, &shift])),
        ("rem", bits) => Some(line.with(&format!("and.b{bits}"), &[d, a, &mask])),
        _ => None,
    }
}

/// Only where the addend is not the result, which the first step would overwrite.
fn split(line: &Line<'_>) -> Option<String> {
    let [d, a, b, c] = line.operands[..] else {
        return None;
    };
    let ty = line
        .opcode
        .strip_prefix("mad.lo.")
        .filter(|_| line.is_word())?;
    (c != d).then(|| {
        let product = line.with(&format!("mul.lo.{ty}"), &[d, a, b]);
        format!("{product}\n{}", line.with(&format!("add.{ty}"), &[d, d, c]))
    })
}
