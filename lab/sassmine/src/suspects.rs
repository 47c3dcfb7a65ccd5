//! Where control fields protect less than ptxas ever does: what the hazard checker says of cubins, as they are or
//! with control fields of ours.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use warpwright_flow::Inst;
use warpwright_sass::elf::Elf;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::hazards::{self, Cause, Hazard, Kind, Unchecked, Violation};
use warpwright_sass::isa::decode;
use warpwright_sass::issue::{self, Old};
use warpwright_sass::text;

use crate::{Error, code};

/// What is looked at.
#[derive(clap::Args)]
pub struct Options {
    /// Folders or files.
    #[arg(required = true)]
    cubins: Vec<PathBuf>,
    /// Give all instructions control fields of ours first.
    #[arg(long)]
    anew: bool,
    /// How many findings of a function are shown.
    #[arg(long, default_value_t = 3)]
    shown: usize,
    /// Counts alone, as JSON: by architecture, findings by operations and cause, unknown instructions by name.
    #[arg(long, conflicts_with = "shown")]
    json: bool,
}

/// What was found in the functions of one architecture.
#[derive(Debug, Default, Serialize)]
struct Row {
    functions: u64,
    instructions: u64,
    /// Functions in which something is reported.
    reported: u64,
    /// Functions that cannot be checked.
    not_checked: u64,
    /// Functions with a finding, by its kind: dependence, register file, both mnemonics, cause.
    findings: BTreeMap<String, u64>,
    /// Functions that have it, by the text of an instruction without numbers, or another reason.
    unknown: BTreeMap<String, u64>,
}

impl Row {
    fn add(&mut self, other: Row) {
        self.functions += other.functions;
        self.instructions += other.instructions;
        self.reported += other.reported;
        self.not_checked += other.not_checked;
        let tables = [
            (&mut self.findings, other.findings),
            (&mut self.unknown, other.unknown),
        ];
        for (own, more) in tables {
            for (name, count) in more {
                *own.entry(name).or_default() += count;
            }
        }
    }
}

/// The lines of one file, and its counts by architecture.
type Found = (String, BTreeMap<u32, Row>);

/// One line per function, and its first findings.
pub fn run(options: &Options) -> Result<String, Error> {
    let files = code::find_all(&options.cubins)?;
    let found: Vec<Found> = files
        .par_iter()
        .map(|path| of_file(path, options))
        .collect::<Result<_, _>>()?;
    let mut out = String::new();
    let mut rows: BTreeMap<u32, Row> = BTreeMap::new();
    for (lines, more) in found {
        out += &lines;
        for (sm, row) in more {
            rows.entry(sm).or_default().add(row);
        }
    }
    if options.json {
        let text = serde_json::to_string_pretty(&rows);
        return text.map_err(|error| Error::Differs(error.to_string()));
    }
    let sum = |what: fn(&Row) -> u64| rows.values().map(what).sum::<u64>();
    let (all, found, refused) = (
        sum(|r| r.functions),
        sum(|r| r.reported),
        sum(|r| r.not_checked),
    );
    let clean = all - found - refused;
    let _ = write!(
        out,
        "{clean} functions without a finding, {found} with, {refused} not checked"
    );
    Ok(out)
}

fn of_file(path: &Path, options: &Options) -> Result<Found, Error> {
    let cubin = code::read(path)?;
    let bad = |error: String| Error::Input(path.to_path_buf(), error);
    let elf = Elf::parse(&cubin.bytes).map_err(|error| bad(error.to_string()))?;
    let (mut out, mut row) = (String::new(), Row::default());
    for kernel in elf.kernels().map_err(|error| bad(error.to_string()))? {
        let name = format!("{}: {}", path.display(), kernel.name);
        row.functions += 1;
        let mut code = match Code::new(&elf, &kernel, Calls::Followed) {
            Ok(code) => code,
            Err(error) => {
                row.not_checked += 1;
                *row.unknown.entry(error.to_string()).or_default() += 1;
                let _ = writeln!(out, "{name}: not checked: {error}");
                continue;
            }
        };
        row.instructions += code.instructions().len() as u64;
        let made = match options.anew {
            true => issue::assign(&mut code, &Old::default()).map_err(|error| error.to_string()),
            false => Ok(()),
        };
        let checked = made.and_then(|()| {
            hazards::check(&code).map_err(|error| {
                for text in unknown(&code, &error) {
                    *row.unknown.entry(text).or_default() += 1;
                }
                error.to_string()
            })
        });
        match checked {
            Err(error) => {
                row.not_checked += 1;
                let _ = writeln!(out, "{name}: not checked: {error}");
            }
            Ok(violations) if violations.is_empty() => {
                let _ = writeln!(out, "{name}: nothing found");
            }
            Ok(violations) => {
                row.reported += 1;
                let mut kinds: Vec<String> = violations.iter().map(|v| kind(&code, v)).collect();
                kinds.sort();
                kinds.dedup();
                for kind in kinds {
                    *row.findings.entry(kind).or_default() += 1;
                }
                let _ = writeln!(out, "{name}: {} findings", violations.len());
                for violation in violations.iter().take(options.shown) {
                    let _ = writeln!(out, "  {}", violation.describe(&code));
                }
            }
        }
    }
    Ok((out, BTreeMap::from([(elf.target().sm, row)])))
}

/// What keeps a function from being checked, each once.
fn unknown(code: &Code, error: &Unchecked) -> Vec<String> {
    let Unchecked::Opaque { .. } = error else {
        return vec![error.to_string()];
    };
    let shape = |inst: &Inst| {
        let word = code.instructions()[inst.0 as usize];
        if decode(word).mnemonic().is_empty() {
            return format!("no form: operation {:#05x}", word.operation().number());
        }
        let text = text::instruction(word, 0);
        let mut shape = String::new();
        for letter in text.chars() {
            match letter {
                '0'..='9' if shape.ends_with('#') => {}
                '0'..='9' => shape.push('#'),
                letter => shape.push(letter),
            }
        }
        shape
    };
    let mut all: Vec<String> = code.opaque().iter().map(shape).collect();
    all.sort();
    all.dedup();
    all
}

/// What a finding is about, without registers and places.
fn kind(code: &Code, violation: &Violation) -> String {
    let name = |inst: Inst| decode(code.instructions()[inst.0 as usize]).mnemonic();
    let here = name(violation.inst);
    match violation.hazard {
        Hazard::Order {
            kind,
            register,
            earlier,
            cause,
        } => {
            let kind = match kind {
                Kind::Raw => "read after write",
                Kind::War => "write after read",
                Kind::Waw => "write after write",
            };
            let cause = match cause {
                Cause::NotAwaited { .. } => "not awaited".to_owned(),
                other => other.to_string(),
            };
            let register = warpwright_flow::Function::value_name(code, register);
            let file = register.trim_end_matches(|c: char| c.is_ascii_digit());
            format!("{kind}, {file}, {} -> {here}: {cause}", name(earlier))
        }
        Hazard::Reuse { fault, .. } => format!("reuse, {here}: {fault}"),
        Hazard::NoSuchScoreboard { .. } => format!("no such scoreboard, {here}"),
    }
}
