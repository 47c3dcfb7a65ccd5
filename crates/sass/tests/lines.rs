//! The lines of source and PTX of every instruction, as nvdisasm has them.

#![allow(clippy::unwrap_used)]

mod sample;

use std::collections::{BTreeMap, BTreeSet};

use sample::{Variant, build};
use warpwright_sass::Elf;
use warpwright_sass::lines::{ptx_lines, source_lines};
use warpwright_toolkit::testing::require_toolkit;

/// `file:line` of each instruction of each function, from `nvdisasm -c -g`. Behind the first of several marks stand
/// the places that a function was inlined at.
fn by_nvdisasm(text: &str) -> BTreeMap<String, Vec<Option<String>>> {
    let mut all: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
    let (mut kernel, mut line, mut marks) = (String::new(), None, false);
    for row in text.lines().map(str::trim) {
        if let Some(name) = row.strip_prefix(".text.") {
            (kernel, line) = (name.trim_end_matches(':').to_owned(), None);
        } else if let Some(mark) = row.strip_prefix("//## File \"") {
            if !marks {
                let (path, rest) = mark.split_once("\", line ").unwrap();
                let file = path.rsplit('/').next().unwrap();
                let number = rest.split(' ').next().unwrap();
                line = Some(format!("{file}:{number}"));
            }
            marks = true;
            continue;
        } else if row.starts_with("/*") && row.ends_with(';') {
            all.entry(kernel.clone()).or_default().push(line.clone());
        }
        marks = false;
    }
    all
}

#[test]
fn source_lines_are_those_of_nvdisasm() {
    let Some(toolkit) = require_toolkit("source lines") else {
        return;
    };
    let nvdisasm = toolkit.nvdisasm().unwrap();
    let mut compared = 0;
    for example in ["mc_basket", "svd6", "fft512", "mesh_flux"] {
        let source = format!("examples/{example}/{example}.cu");
        let sample = build(&toolkit, &source, "compute_90", "sm_90", Variant::Lines);
        let elf = Elf::parse(&sample.cubin).unwrap();
        let text = nvdisasm.disassemble(&sample.cubin, &["-c", "-g"]).unwrap();
        for (kernel, expected) in by_nvdisasm(&text) {
            let found = source_lines(&elf, &kernel).unwrap();
            let found: Vec<Option<String>> = found
                .iter()
                .map(|line| line.as_ref().map(|l| format!("{}:{}", l.file, l.line)))
                .collect();
            assert_eq!(found, expected, "{kernel} of {example}");
            let lines: BTreeSet<_> = found.iter().flatten().collect();
            assert!(lines.len() > 5, "{kernel}: {lines:?}");
            compared += expected.len();
        }
        let text = nvdisasm.disassemble(&sample.cubin, &["-c", "-gp"]).unwrap();
        for (kernel, expected) in by_nvdisasm(&text) {
            let found = ptx_lines(&elf, &kernel).unwrap();
            let number = |place: &Option<String>| {
                let number = place.as_ref()?.rsplit(':').next()?;
                Some(number.parse::<u32>().unwrap())
            };
            let expected: Vec<Option<u32>> = expected.iter().map(number).collect();
            let differs = (0..expected.len()).find(|&at| found.get(at) != Some(&expected[at]));
            assert_eq!(differs, None, "{kernel} of {example}, lines of the PTX");
            assert!(found.iter().flatten().count() > 5, "{kernel}");
        }
    }
    assert!(compared > 1000, "{compared} instructions");
}
