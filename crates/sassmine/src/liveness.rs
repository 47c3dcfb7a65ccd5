//! Our liveness against nvdisasm's, over a whole corpus.

use std::path::PathBuf;

use warpwright_sass::elf::Elf;
use warpwright_sass::function::compare::{COUNTED, Row, compare};
use warpwright_sass::function::{Calls, Code, register_of, value_of};
use warpwright_toolkit::Toolkit;
use warpwright_toolkit::life_ranges::Section;

use crate::Error;
use crate::code;
use crate::roles::sass_file;

/// How many differing functions are shown.
const SHOWN: usize = 40;

/// Compares every instruction; returns a summary in words, or an error if anything differs.
pub fn run(toolkit: &Toolkit, corpus: &[PathBuf]) -> Result<String, Error> {
    let nvdisasm = toolkit.nvdisasm()?;
    let (mut functions, mut instructions, mut opaque, mut contradictions) = (0, 0, 0, 0);
    let mut differing = Vec::new();
    for path in code::find_all(corpus)? {
        let cubin = code::read(&path)?;
        let bad = |error: String| Error::Input(path.clone(), error);
        let elf = Elf::parse(&cubin.bytes).map_err(|error| bad(error.to_string()))?;
        let sections = nvdisasm.life_ranges(&cubin.bytes)?;
        for kernel in elf.kernels().map_err(|error| bad(error.to_string()))? {
            let name = format!(".text.{}", kernel.name);
            let Some(section) = sections.iter().find(|section| section.name == name) else {
                return Err(bad(format!("nvdisasm shows no {name}")));
            };
            let code =
                Code::new(&elf, &kernel, Calls::AsNvdisasm).map_err(|e| bad(e.to_string()))?;
            // Device functions in sections of their own (debug and relocatable code).
            if kernel.parameters.is_none() {
                continue;
            }
            functions += 1;
            if !code.opaque().is_empty() {
                opaque += 1;
                continue;
            }
            instructions += code.instructions().len();
            let (theirs, bound) = occupied(section);
            let compared = compare(&code, &theirs, &bound);
            contradictions += compared.contradictions;
            let found = compared.differences;
            if let Some(first) = found.first() {
                let register = register_of(first.value);
                let row = section
                    .rows
                    .iter()
                    .find(|row| row.offset == u64::from(first.inst.0) * 16);
                let text = row.map_or("", |row| &row.text);
                differing.push(format!(
                    "{}: {}: {} differences; first at {:#x} ({text}): {register:?} {}",
                    path.display(),
                    kernel.name,
                    found.len(),
                    first.inst.0 * 16,
                    if first.ours {
                        "is occupied only for us"
                    } else {
                        "is occupied only for nvdisasm"
                    },
                ));
            }
        }
    }
    for line in differing.iter().take(SHOWN) {
        eprintln!("{line}");
    }
    let summary = format!(
        "{functions} functions, {opaque} of them with opaque instructions and left out; {instructions} instructions; {} functions differ; nvdisasm contradicts itself for {contradictions} registers",
        differing.len()
    );
    match differing.is_empty() {
        true => Ok(summary),
        false => Err(Error::Differs(summary)),
    }
}

/// What nvdisasm says, and how many registers of each file it shows.
fn occupied(section: &Section) -> (Vec<Row>, [u16; COUNTED.len()]) {
    let mut bound = [0; COUNTED.len()];
    let rows = section.rows.iter().map(|row| {
        let mut said = Row::default();
        for &(file, number, mark) in &row.marks {
            let file = sass_file(file);
            if let Some(place) = COUNTED.iter().position(|&known| known == file) {
                bound[place] = bound[place].max(number + 1);
            }
            let Some(value) = value_of(file, number) else {
                continue;
            };
            said.occupied.insert(value);
            if mark.defines() && !mark.uses() {
                said.written.insert(value);
            }
        }
        said
    });
    (rows.collect(), bound)
}
