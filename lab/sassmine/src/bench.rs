//! A bench for instructions: nvdisasm's opinion on any list of them.
//!
//! The instructions go into a minimal cubin (one section with a function symbol per hundred, each
//! ended by EXIT; the ELF header as our assembler writes it, as that of an older ptxas stops the
//! analysis), and `nvdisasm -plr` prints what each defines and uses. It names every instruction that it does not accept by address; those are
//! replaced and the rest asked again. Functions are short because its time grows faster than their
//! length. The header claims the architecture-specific features (`sm_90a`), so that their instructions
//! are accepted.

use std::collections::BTreeMap;

use rayon::prelude::*;
use warpwright_sass::roles::{Field, OPCODE};
use warpwright_sass::text;
use warpwright_toolkit::life_ranges::{File, Mark};
use warpwright_toolkit::{Nvdisasm, ToolError};

use crate::Error;

/// Instructions per function, the EXIT not counted.
const PER_FUNCTION: usize = 99;
const FUNCTIONS: usize = 60;
const WORD: usize = 16;
const NOP: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918;
const EXIT: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d;
const ELF_HEADER: usize = 64;
const SECTION_HEADER: usize = 64;
/// The bit of e_flags for architecture-specific features.
const SPECIFIC: u8 = 1 << 3;

/// What nvdisasm says about one instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Its text.
    pub text: String,
    /// Registers that it defines or uses (not those that only live past it).
    pub marks: Vec<(File, u16, Mark)>,
}

/// See the module.
pub struct Bench<'a> {
    nvdisasm: Nvdisasm<'a>,
    header: Vec<u8>,
    sources: BTreeMap<u16, Vec<Field>>,
}

impl<'a> Bench<'a> {
    /// A bench for architecture `sm`.
    ///
    /// # Errors
    /// Nothing can be assembled for it.
    pub fn new(nvdisasm: Nvdisasm<'a>, sm: u32) -> Result<Bench<'a>, Error> {
        let cubin = text::assemble(&format!(
            ".sm {sm}\n.function k\nB------:R-:W-:-:S05:U---- EXIT\n"
        ));
        let cubin = cubin.map_err(|error| Error::Input("EXIT".into(), error.to_string()))?;
        let mut header = cubin.get(..ELF_HEADER).unwrap_or_default().to_vec();
        if let Some(flags) = header.get_mut(48).filter(|_| sm >= 90) {
            *flags |= SPECIFIC;
        }
        Ok(Bench {
            nvdisasm,
            header,
            sources: BTreeMap::new(),
        })
    }

    /// From here on, these predicate fields (by opcode) are read and never written, whatever nvdisasm says.
    pub fn set_sources(&mut self, sources: BTreeMap<u16, Vec<Field>>) {
        self.sources = sources;
    }

    /// A reading of each instruction, `None` where nvdisasm does not accept it.
    pub fn read(&self, insts: &[u128]) -> Result<Vec<Option<Reading>>, ToolError> {
        let chunks = insts.par_chunks(PER_FUNCTION * FUNCTIONS).map(|chunk| {
            let mut readings = Vec::with_capacity(chunk.len());
            self.read_chunk(chunk, &mut readings)?;
            for (&bits, reading) in chunk.iter().zip(&mut readings) {
                self.correct(bits, reading);
            }
            Ok(readings)
        });
        let chunks: Result<Vec<_>, ToolError> = chunks.collect();
        Ok(chunks?.into_iter().flatten().collect())
    }

    fn correct(&self, bits: u128, reading: &mut Option<Reading>) {
        let (Some(fields), Some(reading)) = (self.sources.get(&OPCODE.get(bits)), reading) else {
            return;
        };
        for (file, number, mark) in &mut reading.marks {
            let predicate = matches!(file, File::Pred | File::UniformPred);
            if predicate && fields.iter().any(|field| field.get(bits) == *number) {
                *mark = Mark::Used;
            }
        }
    }

    fn read_chunk(
        &self,
        insts: &[u128],
        readings: &mut Vec<Option<Reading>>,
    ) -> Result<(), ToolError> {
        let mut code = insts.to_vec();
        let mut refused = vec![false; code.len()];
        let sections = loop {
            match self.nvdisasm.life_ranges(&self.cubin(&code)) {
                Ok(sections) => break sections,
                Err(ToolError::Rejected { log, .. }) if mark_refused(&log, &mut refused) => {
                    for (word, _) in code.iter_mut().zip(&refused).filter(|(_, no)| **no) {
                        *word = NOP;
                    }
                }
                // Some code it cannot analyse ("flow analysis is disabled"), and does not say which.
                Err(ToolError::Rejected { .. }) if insts.len() > 1 => {
                    let (first, second) = insts.split_at(insts.len() / 2);
                    self.read_chunk(first, readings)?;
                    return self.read_chunk(second, readings);
                }
                Err(ToolError::Rejected { .. }) => break Vec::new(),
                Err(error) => return Err(error),
            }
        };
        let mut found = vec![None; insts.len()];
        for row in sections.into_iter().flat_map(|section| section.rows) {
            let Some(inst) = inst_at(row.offset as usize) else {
                continue;
            };
            if refused.get(inst) == Some(&false) {
                let marks = row.marks.into_iter().filter(|mark| mark.2 != Mark::Live);
                found[inst] = Some(Reading {
                    text: row.text,
                    marks: marks.collect(),
                });
            }
        }
        readings.extend(found);
        Ok(())
    }

    /// A cubin with the code.
    fn cubin(&self, code: &[u128]) -> Vec<u8> {
        let names = b"\0.shstrtab\0.strtab\0.symtab\0.text.k\0";
        let mut strings = vec![0u8];
        let mut symbols = vec![0u8; 24];
        let mut text = Vec::new();
        for (index, part) in code.chunks(PER_FUNCTION).enumerate() {
            let start = text.len() as u64;
            text.extend(part.iter().flat_map(|word| word.to_le_bytes()));
            text.extend(EXIT.to_le_bytes());
            symbols.extend((strings.len() as u32).to_le_bytes());
            symbols.extend([0x12, 0x10]);
            symbols.extend(4u16.to_le_bytes());
            symbols.extend(start.to_le_bytes());
            symbols.extend((text.len() as u64 - start).to_le_bytes());
            strings.extend(format!("k{index}\0").bytes());
        }
        let mut file = self.header.clone();
        let mut headers = vec![0u8; SECTION_HEADER];
        let mut add =
            |name: u32, kind: u32, flags: u64, info: (u32, u32), entry: u64, data: &[u8]| {
                file.resize(file.len().next_multiple_of(128), 0);
                headers.extend([name, kind].iter().flat_map(|v| v.to_le_bytes()));
                let wide = [flags, 0, file.len() as u64, data.len() as u64];
                headers.extend(wide.iter().flat_map(|v| v.to_le_bytes()));
                headers.extend([info.0, info.1].iter().flat_map(|v| v.to_le_bytes()));
                headers.extend([128, entry].iter().flat_map(|v: &u64| v.to_le_bytes()));
                file.extend(data);
            };
        add(1, 3, 0, (0, 0), 0, names);
        add(11, 3, 0, (0, 0), 0, &strings);
        add(19, 2, 0, (2, 1), 24, &symbols);
        add(27, 1, 6, (3, 1), 0, &text);
        file.resize(file.len().next_multiple_of(128), 0);
        let count = (headers.len() / SECTION_HEADER) as u16;
        let at = file.len() as u64;
        file.extend(headers);
        file[32..40].fill(0);
        file[40..48].copy_from_slice(&at.to_le_bytes());
        file[54..58].fill(0);
        file[58..60].copy_from_slice(&(SECTION_HEADER as u16).to_le_bytes());
        file[60..62].copy_from_slice(&count.to_le_bytes());
        file[62..64].copy_from_slice(&1u16.to_le_bytes());
        file
    }
}

/// The number of the instruction at this byte of the section, unless it ends a function.
fn inst_at(offset: usize) -> Option<usize> {
    let (function, place) = (
        offset / WORD / (PER_FUNCTION + 1),
        offset / WORD % (PER_FUNCTION + 1),
    );
    (place < PER_FUNCTION).then_some(function * PER_FUNCTION + place)
}

/// Marks what the tool's errors name; was there anything new?
fn mark_refused(log: &str, refused: &mut [bool]) -> bool {
    let mut news = false;
    for address in log.split("at address 0x").skip(1) {
        let digits = address.split(|c: char| !c.is_ascii_hexdigit()).next();
        let address = digits.and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let Some(inst) = address.and_then(inst_at) else {
            continue;
        };
        if let Some(mark) = refused.get_mut(inst) {
            news |= !*mark;
            *mark = true;
        }
    }
    news
}
