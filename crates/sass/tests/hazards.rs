//! The hazard checker on functions in text form: `tests/hazards/*.sass`. Lines that begin with `//! `
//! are what it must say, all of it and in that order.

#![allow(clippy::unwrap_used)]

mod sample;

use std::path::Path;

use warpwright_sass::elf::Elf;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::hazards::{Unchecked, check};
use warpwright_sass::text;

fn code(source: &str) -> Code {
    let (_, functions) = text::parse(source).unwrap();
    let function = functions.into_iter().next().unwrap();
    Code::of_instructions(&function.name, function.code).unwrap()
}

#[test]
fn what_is_said_of_the_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hazards");
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        let expected: Vec<&str> = source
            .lines()
            .filter_map(|l| l.strip_prefix("//! "))
            .collect();
        let code = code(&source);
        let said = check(&code).unwrap();
        let said: Vec<String> = said.iter().map(|v| v.describe(&code)).collect();
        assert_eq!(said, expected, "{}:\n{}", path.display(), said.join("\n"));
        files += 1;
    }
    assert!(files >= 10, "only {files} files");
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let opaque = code(".sm 90\n.function f\nB------:R-:W-:-:S01:U---- .inst 0xfff\n");
    assert!(matches!(check(&opaque), Err(Unchecked::Opaque { .. })));
}

#[test]
fn nothing_is_said_of_what_ptxas_wrote() {
    let samples = sample::cubins("nothing_is_said_of_what_ptxas_wrote");
    let (mut checked, mut expected) = (0, 0);
    for sample in samples.unwrap_or_default() {
        let elf = Elf::parse(&sample.cubin).unwrap();
        if elf.is_relocatable() {
            continue;
        }
        expected += 5;
        for kernel in elf.kernels().unwrap() {
            let code = Code::new(&elf, &kernel, Calls::Followed).unwrap();
            let Ok(violations) = check(&code) else {
                continue;
            };
            let said: Vec<String> = violations.iter().map(|v| v.describe(&code)).collect();
            let name = format!("{}: {}", sample.name, kernel.name);
            assert_eq!(said, [] as [&str; 0], "{name}");
            checked += 1;
        }
    }
    assert!(checked >= expected, "only {checked} functions checked");
}
