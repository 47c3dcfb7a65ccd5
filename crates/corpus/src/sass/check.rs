//! The promises of the binary level, checked on one cubin after another.
//!
//! For every cubin: it parses, and writing gives back its bytes; so do its symbols, relocations,
//! `.nv.info` records and instructions when they are read and written. For every function: a NOP
//! before each instruction can be inserted, and taking them out gives back the bytes; or the edit
//! layer refuses, by name.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use warpwright_sass::elf::Info;
use warpwright_sass::{Edit, Elf, Instruction};

use crate::Error;

/// Where the table stands in the page: between these two lines.
const MARKS: [&str; 2] = ["<!-- corpus -->", "<!-- /corpus -->"];

const NOP: u128 = 0x000f_e200_0000_0000_0000_0000_0000_7918;

/// What the cubins of one architecture and ptxas came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cubins.
    pub cubins: u64,
    /// Functions with a section of their own: kernels, nearly all.
    pub functions: u64,
    /// Instructions.
    pub instructions: u64,
    /// Functions whose code was moved and moved back.
    pub edited: u64,
    /// Functions that the edit layer refuses, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Cubins that break a promise, with the first one broken.
    pub failures: Vec<(PathBuf, String)>,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.cubins += other.cubins;
        self.functions += other.functions;
        self.instructions += other.instructions;
        self.edited += other.edited;
        for (why, count) in &other.refused {
            *self.refused.entry(why.clone()).or_default() += count;
        }
        self.failures.extend(other.failures.iter().cloned());
    }
}

/// Tallies by version of ptxas and architecture.
pub type Tallies = BTreeMap<(String, u32), Tally>;

/// Checks all `.cubin` files below a directory.
///
/// # Errors
/// A file cannot be read, or there is none.
pub fn check_dir(dir: &Path) -> Result<Tallies, Error> {
    let files = crate::files_below(dir, "cubin")?;
    if files.is_empty() {
        return Err(Error::Empty(dir.to_path_buf()));
    }
    let checked = files.par_iter().map(|path| {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        let (key, tally) = check(&bytes).unwrap_or_else(|why| {
            let failures = vec![(path.clone(), why)];
            let cubins = 1;
            let tally = Tally {
                cubins,
                failures,
                ..Tally::default()
            };
            ((String::new(), 0), tally)
        });
        Ok((key, tally))
    });
    let mut tallies = Tallies::new();
    for result in checked.collect::<Vec<_>>() {
        let (key, tally) = result?;
        tallies.entry(key).or_default().add(&tally);
    }
    Ok(tallies)
}

/// Checks one cubin.
fn check(bytes: &[u8]) -> Result<((String, u32), Tally), String> {
    let text = |e: warpwright_sass::ElfError| e.to_string();
    let elf = Elf::parse(bytes).map_err(text)?;
    if elf.write().map_err(text)? != bytes {
        return Err("it is written differently".into());
    }
    let copy = through_views(&elf).map_err(text)?;
    if copy.write().map_err(text)? != bytes {
        return Err("a view changes it".into());
    }
    let mut tally = Tally {
        cubins: 1,
        ..Tally::default()
    };
    for kernel in elf.kernels().map_err(text)? {
        let code = elf.instructions(&kernel).map_err(text)?;
        tally.functions += 1;
        tally.instructions += code.len() as u64;
        match there_and_back(&elf, &kernel.name, code.len())? {
            None => tally.edited += 1,
            Some(why) => *tally.refused.entry(why).or_default() += 1,
        }
    }
    Ok(((ptxas(&elf), elf.target().sm), tally))
}

/// Everything that has a typed view, read and written.
fn through_views(elf: &Elf) -> Result<Elf, warpwright_sass::ElfError> {
    let mut copy = elf.clone();
    copy.set_symbols(&elf.symbols()?)?;
    for (i, section) in elf.sections.iter().enumerate() {
        if section.is_relocations() {
            copy.set_relocations(i, &elf.relocations(i)?)?;
        }
        if section.name.starts_with(".nv.info") {
            copy.set_info(&section.name, &Info::parse(&section.data)?)?;
        }
    }
    for kernel in elf.kernels()? {
        copy.set_instructions(&kernel.name, &elf.instructions(&kernel)?)?;
    }
    Ok(copy)
}

/// Inserts a NOP before every instruction and deletes them again; the reason if it is refused.
fn there_and_back(elf: &Elf, name: &str, count: usize) -> Result<Option<String>, String> {
    let text = |e: warpwright_sass::ElfError| e.to_string();
    let kernel = elf.kernel(name).map_err(text)?;
    let code = elf.instructions(&kernel).map_err(text)?;
    let nop = Instruction::new(elf.target().sm, NOP);
    let padding = code.iter().rev();
    let padding = padding
        .take_while(|i| i.operation() == nop.operation())
        .count();
    let real = count - padding;
    let mut edit = Edit::new();
    (0..real).for_each(|at| edit.insert_before(at, [nop]));
    let mut moved = elf.clone();
    if let Err(why) = edit.apply(&mut moved, name) {
        return Ok(Some(class(&why.to_string())));
    }
    let mut edit = Edit::new();
    (0..real).for_each(|at| edit.delete(2 * at));
    let back = edit.apply(&mut moved, name).map_err(text);
    back.map_err(|why| format!("{name} cannot be edited back: {why}"))?;
    match moved.write().map_err(text)? == elf.write().map_err(text)? {
        true => Ok(None),
        false => Err(format!("{name} comes back changed")),
    }
}

/// The reason without names and addresses.
fn class(why: &str) -> String {
    let why = why.rsplit(": ").next().unwrap_or(why);
    let words = why.split(' ').filter(|w| !w.starts_with("0x"));
    let words: Vec<&str> = words.collect();
    words
        .join(" ")
        .trim_end_matches(" at")
        .replace(" at is", " is")
}

/// The release of ptxas, from the note that it leaves.
fn ptxas(elf: &Elf) -> String {
    let note = elf.section(".note.nv.tkinfo").map(|s| s.data.as_slice());
    let text = String::from_utf8_lossy(note.unwrap_or_default()).into_owned();
    let release = text.split("release ").nth(1);
    let release = release.and_then(|r| r.split(',').next());
    release.unwrap_or("unknown").to_owned()
}

/// The figures as a table, and why functions are refused.
pub fn table(tallies: &Tallies) -> String {
    let mut text = String::from(
        "| ptxas | architecture | cubins | functions | instructions | identical | moved and back | refused |\n\
         |---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut all = Tally::default();
    for ((ptxas, sm), tally) in tallies {
        row(&mut text, ptxas, &format!("sm_{sm}"), tally);
        all.add(tally);
    }
    row(&mut text, "**all**", "", &all);
    if !all.refused.is_empty() {
        text += "\nRefused by the edit layer, by reason:\n\n";
    }
    for (why, count) in &all.refused {
        let _ = writeln!(text, "- {count}: {why}");
    }
    for (path, why) in &all.failures {
        let _ = writeln!(text, "- FAILED {}: {why}", path.display());
    }
    text
}

fn row(text: &mut String, ptxas: &str, sm: &str, tally: &Tally) {
    let refused: u64 = tally.refused.values().sum();
    let good = tally.cubins - tally.failures.len() as u64;
    let _ = writeln!(
        text,
        "| {ptxas} | {sm} | {} | {} | {} | {good} | {} | {refused} |",
        tally.cubins, tally.functions, tally.instructions, tally.edited
    );
}

/// The page with the table in its place, if it has one.
pub fn in_page(page: &str, table: &str) -> Option<String> {
    let (head, rest) = page.split_once(MARKS[0])?;
    let (_, tail) = rest.split_once(MARKS[1])?;
    Some(format!("{head}{}\n{table}{}{tail}", MARKS[0], MARKS[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_lose_their_places() {
        assert_eq!(class("k: BRX at 0x190"), "BRX");
        let call = "k: the return address of CALL.REL at 0x20 is not found";
        assert_eq!(class(call), "the return address of CALL.REL is not found");
    }

    #[test]
    fn the_table_goes_between_the_marks() {
        let page = "a\n<!-- corpus -->\nold\n<!-- /corpus -->\nb\n";
        let new = in_page(page, "new\n");
        assert_eq!(
            new.as_deref(),
            Some("a\n<!-- corpus -->\nnew\n<!-- /corpus -->\nb\n")
        );
        assert_eq!(in_page("nothing", "new"), None);
    }
}
