//! The container loses nothing: what is read and written is the same, damaged input is an error,
//! and a change alters what it should and nothing else.

#![allow(clippy::unwrap_used)]

mod sample;

use sample::{Sample, Variant, build, cubins};
use warpwright_sass::elf::{Elf, Info};
use warpwright_sass::{Cubin, Instruction, text};
use warpwright_toolkit::testing::require_toolkit;

/// Everything that has a typed view comes back from it as it was.
fn assert_lossless(name: &str, bytes: &[u8]) {
    let elf = Elf::parse(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(elf.write().unwrap() == bytes, "{name} changed");
    let mut copy = elf.clone();
    copy.set_symbols(&elf.symbols().unwrap()).unwrap();
    for (i, section) in elf.sections.iter().enumerate() {
        if section.is_relocations() {
            let relocations = elf.relocations(i).unwrap();
            copy.set_relocations(i, &relocations).unwrap();
        }
        if section.name.starts_with(".nv.info") {
            let info = Info::parse(&section.data).unwrap();
            copy.set_info(&section.name, &info).unwrap();
        }
    }
    for kernel in elf.kernels().unwrap() {
        let code = elf.instructions(&kernel).unwrap();
        copy.set_instructions(&kernel.name, &code).unwrap();
    }
    assert!(copy.write().unwrap() == bytes, "{name}: a view changed it");
    let whole = text::whole(&elf).unwrap();
    let again = text::assemble(&whole).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(again == bytes, "{name}: its text is another file");
}

#[test]
fn parsing_and_writing_is_the_identity() {
    let Some(samples) = cubins("round trip of cubins") else {
        return;
    };
    for Sample { name, cubin } in &samples {
        assert_lossless(name, cubin);
    }
}

/// A small generator of numbers, so that the damage is the same in every run.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn damaged_cubins_are_errors_or_come_back() {
    let Some(samples) = cubins("damaged cubins") else {
        return;
    };
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for Sample { name, cubin } in samples.iter().filter(|s| !s.name.contains("control")) {
        let headers = Elf::parse(cubin).unwrap().sections.len() * 64;
        let mut refused = 0;
        for round in 0..400 {
            let mut bytes = cubin.clone();
            for _ in 0..1 + next(&mut state) % 4 {
                // Headers stand at both ends of the file, and that is where damage hurts.
                let at = match next(&mut state) % 4 {
                    0 => next(&mut state) as usize % 64,
                    1 => next(&mut state) as usize % bytes.len(),
                    _ => bytes.len() - 1 - next(&mut state) as usize % (headers + 300),
                };
                bytes[at] = next(&mut state) as u8;
            }
            if round % 8 == 0 {
                bytes.truncate(next(&mut state) as usize % bytes.len());
            }
            let Ok(mut elf) = Elf::parse(&bytes) else {
                refused += 1;
                continue;
            };
            assert!(elf.write().unwrap() == bytes, "{name} {round}");
            // What follows may fail, but not panic.
            let kernels = elf.kernels().unwrap_or_default();
            for kernel in kernels {
                let _ = elf.instructions(&kernel);
                let _ = elf.set_registers(&kernel.name, 40);
                let _ = elf.set_shared_bytes(&kernel.name, 4096);
            }
            for i in 0..elf.sections.len() {
                let _ = elf.relocations(i);
            }
            let _ = elf.write();
        }
        assert!(
            refused > 40,
            "{name}: only {refused} were found to be damaged"
        );
    }
}

#[test]
fn damaged_text_is_an_error_or_another_cubin() {
    let Some(samples) = cubins("damaged text") else {
        return;
    };
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut small: Vec<&Sample> = samples.iter().collect();
    small.sort_by_key(|sample| sample.cubin.len());
    small.truncate(3);
    let mut tried = 0;
    for Sample { name, cubin } in small {
        let elf = Elf::parse(cubin).unwrap();
        let whole = text::whole(&elf).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        for round in 0..150 {
            let at = next(&mut state) as usize % lines.len();
            let mut damaged: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            match round % 3 {
                0 => drop(damaged.remove(at)),
                1 => damaged.swap(at, (at + 1) % lines.len()),
                _ => {
                    let mut bytes = damaged[at].clone().into_bytes();
                    if let Some(place) = bytes.len().checked_sub(1) {
                        bytes[next(&mut state) as usize % (place + 1)] = b" 0x#\"9-:@"[round % 9];
                    }
                    damaged[at] = String::from_utf8_lossy(&bytes).into_owned();
                }
            }
            // It must not panic, and what it makes is a cubin.
            if let Ok(made) = text::assemble(&damaged.join("\n")) {
                assert!(Elf::parse(&made).is_ok(), "{name} {round}");
            }
            tried += 1;
        }
    }
    assert!(tried > 100, "only {tried} texts");
}

/// A kernel with and one without shared memory, before and after.
#[test]
fn shared_memory_registers_and_words_can_be_set() {
    let Some(toolkit) = require_toolkit("changing cubins") else {
        return;
    };
    let nvdisasm = toolkit.nvdisasm().unwrap();
    for gpu in ["sm_75", "sm_80", "sm_90", "sm_120"] {
        for source in ["sgemm_tile", "lu11"] {
            let path = format!("examples/{source}/{source}.cu");
            let Sample { name, cubin } = build(&toolkit, &path, "sm_75", gpu, Variant::Limited);
            let before = Cubin::parse(&cubin).unwrap();
            let kernel = &before.kernels[0];
            let bytes = kernel.shared_bytes + 100_000;
            let mut elf = Elf::parse(&cubin).unwrap();
            elf.set_shared_bytes(&kernel.name, u64::from(bytes))
                .unwrap();
            elf.set_registers(&kernel.name, 77).unwrap();
            let sections = elf.kernel(&kernel.name).unwrap();
            let mut code = elf.instructions(&sections).unwrap();
            // The first instruction waits for one more scoreboard, or one less.
            code[0] = Instruction::new(before.sm, code[0].bits() ^ 1 << 116);
            elf.set_instructions(&kernel.name, &code).unwrap();
            let changed = elf.write().unwrap();
            assert_lossless(&name, &changed);
            let after = Cubin::parse(&changed).unwrap();
            assert_eq!(after.kernels[0].shared_bytes, bytes, "{name}");
            assert_eq!(after.kernels[0].registers, 77, "{name}");
            assert_eq!(after.kernels[0].code[0], code[0], "{name}");
            assert_eq!(after.kernels[0].code[1..], kernel.code[1..], "{name}");
            assert_memory_in_program_header(&name, &changed, u64::from(bytes));
            let text = |cubin: &[u8]| nvdisasm.disassemble(cubin, &["-c"]).unwrap();
            let code_of = |text: String| -> Vec<String> {
                let lines = text.lines().filter(|l| l.contains("/*"));
                lines.map(str::to_owned).collect()
            };
            assert_eq!(code_of(text(&changed)), code_of(text(&cubin)), "{name}");
        }
    }
}

/// The writable program header holds all sections without contents.
fn assert_memory_in_program_header(name: &str, cubin: &[u8], at_least: u64) {
    use object::LittleEndian as E;
    use object::read::elf::{FileHeader as _, ProgramHeader as _};
    let header = object::elf::FileHeader64::<E>::parse(cubin).unwrap();
    let programs = header.program_headers(E, cubin).unwrap();
    let writable = programs.iter().filter(|p| p.p_flags(E) & 2 != 0);
    let sizes: Vec<u64> = writable.map(|p| p.p_memsz(E)).collect();
    assert!(
        matches!(sizes[..], [size] if size >= at_least && size < at_least + 4096),
        "{name}: {sizes:?} for {at_least}"
    );
}
