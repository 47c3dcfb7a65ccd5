//! The hazard checker on what ptxas writes; what it says of functions in text form is in
//! `filetests/sass/hazards`.

#![allow(clippy::unwrap_used)]

mod sample;

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
