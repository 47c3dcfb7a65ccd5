//! Liveness of sample sections against nvdisasm's life ranges, register by register.

#![allow(clippy::unwrap_used)]

mod sample;

use std::collections::BTreeMap;

use sample::{Sample, Variant};
use warpwright_sass::elf::Elf;
use warpwright_sass::function::compare::{COUNTED, Row, compare};
use warpwright_sass::function::{Calls, Code, value_of};
use warpwright_toolkit::Toolkit;
use warpwright_toolkit::life_ranges::{File, Section};
use warpwright_toolkit::testing::require_toolkit;

const COLUMNS: [File; COUNTED.len()] = [File::Gpr, File::Pred, File::Uniform, File::UniformPred];

fn rows(section: &Section, count: usize) -> (Vec<Option<Row>>, [u16; COUNTED.len()]) {
    let mut shown = [0; COUNTED.len()];
    let mut rows = vec![None; count];
    for row in &section.rows {
        let mut occupied = Vec::new();
        for (file, number, _) in &row.marks {
            let place = COLUMNS.iter().position(|column| column == file).unwrap();
            shown[place] = shown[place].max(number + 1);
            occupied.push(value_of(COUNTED[place], *number).unwrap());
        }
        let labelled = row.labelled;
        rows[row.offset as usize / 16] = Some(Row { occupied, labelled });
    }
    (rows, shown)
}

/// What is compared: the sample of this crate, and device functions with sections of their own.
fn samples(toolkit: &Toolkit, test: &str) -> Vec<Sample> {
    let mut samples = sample::cubins(test).unwrap_or_default();
    let control = "lab/corpus/cuda/control.cu";
    for (gpu, variant) in [
        ("sm_75", Variant::Relocatable),
        ("sm_80", Variant::Debug),
        ("sm_80", Variant::Relocatable),
        ("sm_120", Variant::Debug),
    ] {
        samples.push(sample::build(toolkit, control, "sm_75", gpu, variant));
    }
    samples
}

#[test]
fn liveness_agrees_with_nvdisasm_at_every_instruction() {
    let test = "liveness_agrees_with_nvdisasm_at_every_instruction";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let nvdisasm = toolkit.nvdisasm().unwrap();
    let (mut kernels, mut own_sections, mut by_rule) = (BTreeMap::new(), 0, 0);
    for sample in samples(&toolkit, test) {
        let elf = Elf::parse(&sample.cubin).unwrap();
        let sm = elf.target().sm;
        let sections = nvdisasm.life_ranges(&sample.cubin).unwrap();
        for kernel in elf.kernels().unwrap() {
            let code = Code::new(&elf, &kernel, Calls::AsNvdisasm).unwrap();
            let name = format!(".text.{}", kernel.name);
            assert!(code.opaque().is_empty(), "{name} in {}", sample.name);
            let section = sections.iter().find(|section| section.name == name);
            let (theirs, shown) = rows(section.unwrap(), code.instructions().len());
            let found = compare(&code, &theirs, &shown);
            assert_eq!(found.differences, [], "{name} in {}", sample.name);
            by_rule += usize::from(found.by_rule > 0);
            match kernel.parameters {
                Some(_) => *kernels.entry(sm).or_insert(0) += 1,
                None => own_sections += 1,
            }
        }
    }
    let architectures: Vec<u32> = kernels.keys().copied().collect();
    assert_eq!(architectures, [75, 80, 86, 89, 90, 100, 120]);
    assert!(kernels.values().all(|&count| count > 10), "{kernels:?}");
    assert!(own_sections > 20, "only {own_sections} device functions");
    assert!(by_rule > 0, "the rule for guarded writes is not tested");
}

/// The numbers that `-lrm count` prints are those of the registers that we read from the wider table.
#[test]
fn the_numbers_are_those_of_the_registers() {
    let test = "the_numbers_are_those_of_the_registers";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let nvdisasm = toolkit.nvdisasm().unwrap();
    let control = "lab/corpus/cuda/control.cu";
    let sample = sample::build(&toolkit, control, "sm_75", "sm_90", Variant::Lines);
    let options = ["-c", "-plr", "-lrm", "count"];
    let text = nvdisasm.disassemble(&sample.cubin, &options).unwrap();
    let instructions = text.lines().filter(|line| line.contains("/*"));
    let counted: Vec<Vec<usize>> = instructions
        .map(|line| {
            let (_, table) = line.rsplit_once("// |").unwrap();
            let cells = table.trim_end().trim_end_matches('|').split('|');
            cells.map(|cell| cell.trim().parse().unwrap_or(0)).collect()
        })
        .collect();
    let sections = nvdisasm.life_ranges(&sample.cubin).unwrap();
    let rows = sections.iter().flat_map(|section| &section.rows);
    let ours: Vec<Vec<usize>> = rows
        .map(|row| COLUMNS.map(|file| row.count(file)).to_vec())
        .collect();
    assert!(ours.len() > 1000 && ours.iter().any(|row| row[0] > 20));
    assert_eq!(ours.len(), counted.len());
    for (at, (ours, counted)) in ours.iter().zip(&counted).enumerate() {
        assert_eq!(ours, counted, "instruction {at}");
    }
}
