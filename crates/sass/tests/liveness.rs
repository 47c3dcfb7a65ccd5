//! Liveness of sample sections against nvdisasm's life ranges, register by register.

#![allow(clippy::unwrap_used)]

mod sample;

use warpwright_sass::elf::Elf;
use warpwright_sass::function::compare::{COUNTED, Row, compare};
use warpwright_sass::function::{Calls, Code, value_of};
use warpwright_sass::roles::Table;
use warpwright_toolkit::life_ranges::{File, Section};
use warpwright_toolkit::testing::require_toolkit;

const COLUMNS: [File; COUNTED.len()] = [File::Gpr, File::Pred, File::Uniform, File::UniformPred];

fn rows(section: &Section) -> (Vec<Row>, [u16; COUNTED.len()]) {
    let mut shown = [0; COUNTED.len()];
    let rows = section.rows.iter().map(|row| {
        let mut said = Row::default();
        for (file, number, mark) in &row.marks {
            let place = COLUMNS.iter().position(|column| column == file).unwrap();
            shown[place] = shown[place].max(number + 1);
            let value = value_of(COUNTED[place], *number).unwrap();
            said.occupied.insert(value);
            if mark.defines() && !mark.uses() {
                said.written.insert(value);
            }
        }
        said
    });
    (rows.collect(), shown)
}

#[test]
fn liveness_agrees_with_nvdisasm_at_every_instruction() {
    let test = "liveness_agrees_with_nvdisasm_at_every_instruction";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let nvdisasm = toolkit.nvdisasm().unwrap();
    let mut compared = 0;
    for sample in sample::cubins(test).unwrap_or_default() {
        let elf = Elf::parse(&sample.cubin).unwrap();
        if Table::for_sm(elf.target().sm).is_none() || elf.is_relocatable() {
            continue;
        }
        let sections = nvdisasm.life_ranges(&sample.cubin).unwrap();
        for kernel in elf.kernels().unwrap() {
            let code = Code::new(&elf, &kernel, Calls::AsNvdisasm).unwrap();
            // Device functions in sections of their own (debug and relocatable code): docs/sass-liveness.md.
            if !code.opaque().is_empty() || kernel.parameters.is_none() {
                continue;
            }
            let name = format!(".text.{}", kernel.name);
            let section = sections
                .iter()
                .find(|section| section.name == name)
                .unwrap();
            let (theirs, shown) = rows(section);
            let found = compare(&code, &theirs, &shown);
            assert_eq!(found.differences, [], "{name} in {}", sample.name);
            compared += 1;
        }
    }
    assert!(compared > 10, "only {compared} sections compared");
}
