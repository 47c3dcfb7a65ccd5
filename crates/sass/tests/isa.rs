//! Decoding, encoding and the text form, on real code and on random words, and the agreement of our
//! text with nvdisasm's.

#![allow(clippy::unwrap_used)]

mod sample;

use std::collections::BTreeMap;

use warpwright_sass::isa::table::Table;
use warpwright_sass::isa::{decode, encode};
use warpwright_sass::text::{self, Function};
use warpwright_sass::{Elf, Instruction, Opcode};
use warpwright_toolkit::testing::require_toolkit;

const ARCHITECTURES: [u32; 7] = [75, 80, 86, 89, 90, 100, 120];

fn parses_back(inst: Instruction) {
    let function = Function {
        name: "f".into(),
        note: String::new(),
        code: vec![inst],
    };
    let printed = text::print(inst.sm(), std::slice::from_ref(&function));
    let (sm, read) = text::parse(&printed).unwrap_or_else(|e| panic!("{e}:\n{printed}"));
    assert_eq!((sm, &read[..]), (inst.sm(), &[function][..]), "{printed}");
}

/// A deterministic stream of words.
struct Noise(u64);

impl Noise {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.word()) << 64 | u128::from(self.word())
    }
}

#[test]
fn random_words_survive() {
    let mut noise = Noise(1);
    for sm in ARCHITECTURES {
        for _ in 0..2000 {
            let inst = Instruction::new(sm, noise.wide());
            assert_eq!(encode(&decode(inst)), Ok(inst));
            parses_back(inst);
        }
    }
}

/// Words that a form explains, with arbitrary fields.
#[test]
fn random_fields_survive() {
    let mut noise = Noise(2);
    for sm in ARCHITECTURES {
        for form in Table::of(sm).unwrap().forms() {
            for _ in 0..10 {
                let inst = Instruction::new(sm, form.value | noise.wide() & !form.mask());
                assert_eq!(encode(&decode(inst)), Ok(inst));
                parses_back(inst);
            }
        }
    }
}

#[test]
fn every_table_reads_and_prints_back() {
    for sm in ARCHITECTURES {
        let path = format!("{}/tables/isa/sm_{sm}.txt", env!("CARGO_MANIFEST_DIR"));
        let file = std::fs::read_to_string(path).unwrap();
        let table = Table::parse(&file).unwrap();
        let lines = file.lines().filter(|l| !l.starts_with('#'));
        let body: String = lines.map(|l| format!("{l}\n")).collect();
        assert_eq!(table.print(), body, "sm_{sm}");
        assert!(table.forms().len() > 300, "sm_{sm}");
        assert_eq!(Table::of(sm).unwrap().forms(), table.forms());
    }
}

#[test]
fn constant_operands_show_in_the_opcode() {
    for sm in ARCHITECTURES {
        let path = format!("{}/tables/isa/sm_{sm}.txt", env!("CARGO_MANIFEST_DIR"));
        let file = std::fs::read_to_string(path).unwrap();
        let rows = file.lines().zip(1..).filter(|(row, _)| {
            let text = row.replace("desc[", "");
            !row.starts_with('#') && (text.contains("c[") || text.contains("cx["))
        });
        let mut count = 0;
        for (row, line) in rows {
            let opcode = row
                .split_whitespace()
                .next()
                .and_then(|word| u16::from_str_radix(word, 16).ok());
            let opcode = Opcode::new(opcode.expect("an opcode"));
            assert!(opcode.form().has_constant(), "sm_{sm}, line {line}: {row}");
            count += 1;
        }
        assert!(count >= 6, "sm_{sm}: {count}");
    }
}

#[test]
fn a_bit_that_no_rule_explains_makes_an_instruction_opaque() {
    // NOP with an operand register, which it does not have.
    let nop = Instruction::new(90, 0x000f_c000_0000_0000_0000_0000_0000_7918);
    assert_eq!(decode(nop).text(0), "NOP");
    let odd = nop.with_bits(nop.bits() | 1 << 90);
    assert!(decode(odd).is_opaque());
    assert_eq!(encode(&decode(odd)), Ok(odd));
}

#[test]
fn real_code_survives_and_reads_as_nvdisasm_says() {
    let (Some(samples), Some(unoptimized)) = (sample::cubins("isa"), sample::unoptimized("isa"))
    else {
        return;
    };
    let toolkit = require_toolkit("isa").unwrap();
    for sample in samples.into_iter().chain(unoptimized) {
        let elf = Elf::parse(&sample.cubin).unwrap();
        let sm = elf.target().sm;
        let functions = text::functions(&elf).unwrap();
        let printed = text::print(sm, &functions);
        assert_eq!(text::parse(&printed).unwrap(), (sm, functions.clone()));
        let code: Vec<Instruction> = functions.into_iter().flat_map(|f| f.code).collect();
        for inst in &code {
            assert_eq!(encode(&decode(*inst)), Ok(*inst));
        }
        let raw: Vec<u8> = code.iter().flat_map(|i| i.bits().to_le_bytes()).collect();
        let architecture = format!("SM{sm}{}", if sm >= 90 { "a" } else { "" });
        let nvdisasm = toolkit.nvdisasm().unwrap();
        let theirs = nvdisasm.disassemble(&raw, &["-b", &architecture]).unwrap();
        let mut differences: BTreeMap<String, String> = BTreeMap::new();
        for (address, their) in theirs.lines().filter_map(instruction) {
            let decoded = decode(code[address as usize / 16]);
            let our = decoded.text(address);
            if our != their {
                differences.insert(their, our);
            }
        }
        assert!(differences.is_empty(), "{}: {differences:#?}", sample.name);
    }
}

/// Address and text of a line of nvdisasm's.
fn instruction(line: &str) -> Option<(u64, String)> {
    let (address, rest) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    let words: Vec<&str> = rest.rsplit_once(';')?.0.split_whitespace().collect();
    let text = words.join(" ").replace(" ,", ",");
    Some((u64::from_str_radix(address, 16).ok()?, text))
}
