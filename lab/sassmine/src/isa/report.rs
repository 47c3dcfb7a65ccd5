//! How well the tables do on a corpus: the figures of docs/sass.md.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use warpwright_sass::Instruction;
use warpwright_sass::isa::{decode, encode};
use warpwright_sass::text;
use warpwright_toolkit::{FindOptions, Toolkit};

use super::corpus::Corpus;
use super::oracle::Oracle;
use crate::Error;

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folders with cubins (searched with their subfolders); those for other architectures are passed over.
    #[arg(long, required = true, num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// The architectures.
    #[arg(long, value_delimiter = ',', default_values_t = [75, 80, 86, 89, 90, 100, 120])]
    sm: Vec<u32>,
}

/// Counts of one architecture, by occurrence.
#[derive(Default)]
struct Counts {
    total: u64,
    distinct: usize,
    forms: usize,
    opaque: u64,
    differs: u64,
    lost: u64,
    /// Opcode and nvdisasm's name: occurrences and the first pair of texts.
    examples: BTreeMap<(u16, String), (u64, String, String)>,
}

/// The figures as Markdown.
pub fn run(options: &Options) -> Result<String, Error> {
    let toolkit = Toolkit::find(&FindOptions::default())?;
    let mut table = String::from(
        "| architecture | instructions | distinct | forms | opaque | other text | not kept |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut list = String::new();
    for &sm in &options.sm {
        let mut oracle = Oracle::new(toolkit.nvdisasm()?, sm);
        let corpus = match Corpus::load(&options.corpus, sm, &mut oracle, None) {
            Err(Error::Empty(_)) => continue,
            other => other?,
        };
        let counts = count(sm, &corpus);
        let Counts {
            total,
            distinct,
            forms,
            opaque,
            differs,
            lost,
            ..
        } = counts;
        let _ = writeln!(
            table,
            "| sm_{sm} | {total} | {distinct} | {forms} | {opaque} | {differs} | {lost} |"
        );
        for ((opcode, name), (count, theirs, ours)) in counts.examples {
            let ours = if ours.is_empty() {
                "opaque".into()
            } else {
                format!("`{ours}`")
            };
            let _ = writeln!(
                list,
                "- sm_{sm} {opcode:#05x} {name}, {count} times: `{theirs}`, here {ours}"
            );
        }
    }
    Ok(format!(
        "{table}\nDifferences by opcode, an example of each:\n\n{list}"
    ))
}

fn count(sm: u32, corpus: &Corpus) -> Counts {
    let mut counts = Counts {
        total: corpus.total,
        distinct: corpus.instances.len(),
        forms: warpwright_sass::isa::table::Table::of(sm).map_or(0, |t| t.forms().len()),
        ..Counts::default()
    };
    for instance in &corpus.instances {
        let inst = Instruction::new(sm, instance.bits);
        let decoded = decode(inst);
        let printed = text::instruction(inst, instance.address);
        let operation = inst.with_bits(inst.bits() & !(0x1f_ffff << 105));
        let read = text::parse_instruction(sm, &printed, instance.address);
        if encode(&decoded) != Ok(inst) || read != Ok(operation) {
            counts.lost += instance.count;
        }
        let ours = decoded.text(instance.address);
        if ours == instance.text {
            continue;
        }
        let place = match decoded.is_opaque() {
            true => &mut counts.opaque,
            false => &mut counts.differs,
        };
        *place += instance.count;
        let key = ((inst.bits() & 0xfff) as u16, instance.name().to_owned());
        let fresh = || (0, instance.text.clone(), ours.clone());
        counts.examples.entry(key).or_insert_with(fresh).0 += instance.count;
    }
    counts
}
