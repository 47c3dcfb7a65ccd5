//! nvdisasm as an oracle: what does it say about these bits?
//!
//! One run reads thousands of instructions. Illegal ones make it print nothing but their addresses;
//! they are taken out and the rest is read again. Raw code has no labels: branch targets are
//! addresses.

use rayon::prelude::*;
use warpwright_toolkit::{Nvdisasm, ToolError};

/// What nvdisasm printed for one instruction, and where it stood.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Byte address within the run.
    pub address: u64,
    /// The text, spaces normalised.
    pub text: String,
}

/// nvdisasm for one architecture.
pub struct Oracle<'a> {
    nvdisasm: Nvdisasm<'a>,
    architecture: String,
    /// Instructions asked so far.
    pub asked: u64,
}

/// Instructions per run: a compromise between the cost of starting it and even work for all cores.
const BATCH: usize = 20_000;

impl<'a> Oracle<'a> {
    /// An oracle for architecture `sm`, with the architecture-specific features where there are any.
    pub fn new(nvdisasm: Nvdisasm<'a>, sm: u32) -> Self {
        let suffix = if sm >= 90 { "a" } else { "" };
        Oracle {
            nvdisasm,
            architecture: format!("SM{sm}{suffix}"),
            asked: 0,
        }
    }

    /// The answer to each word, `None` for illegal ones.
    pub fn ask(&mut self, words: &[u128]) -> Result<Vec<Option<Answer>>, ToolError> {
        self.asked += words.len() as u64;
        let batches: Result<Vec<_>, _> = words
            .par_chunks(BATCH)
            .map(|batch| {
                let mut answers = Vec::with_capacity(batch.len());
                self.ask_batch(batch, &mut answers)?;
                Ok(answers)
            })
            .collect();
        Ok(batches?.into_iter().flatten().collect())
    }

    fn ask_batch(&self, words: &[u128], out: &mut Vec<Option<Answer>>) -> Result<(), ToolError> {
        let mut legal: Vec<usize> = (0..words.len()).collect();
        while !legal.is_empty() {
            let code: Vec<u8> = legal.iter().flat_map(|&i| words[i].to_le_bytes()).collect();
            match self
                .nvdisasm
                .disassemble(&code, &["-b", &self.architecture])
            {
                Ok(text) => {
                    let start = out.len();
                    out.resize(start + words.len(), None);
                    for answer in text.lines().filter_map(read_line) {
                        if let Some(&i) = legal.get(answer.address as usize / 16) {
                            out[start + i] = Some(answer);
                        }
                    }
                    return Ok(());
                }
                Err(ToolError::Rejected { log, .. }) if log.contains("at address 0x") => {
                    for address in log.lines().filter_map(illegal_address) {
                        if let Some(i) = legal.get_mut(address / 16) {
                            *i = usize::MAX;
                        }
                    }
                    legal.retain(|&i| i != usize::MAX);
                }
                Err(e) => return Err(e),
            }
        }
        out.resize(out.len() + words.len(), None);
        Ok(())
    }
}

fn illegal_address(line: &str) -> Option<usize> {
    let (_, address) = line.rsplit_once("at address 0x")?;
    let end = address
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(address.len());
    usize::from_str_radix(&address[..end], 16).ok()
}

/// `/*0010*/  FADD R1, R2, R3 ;`
fn read_line(line: &str) -> Option<Answer> {
    let rest = line.trim_start().strip_prefix("/*")?;
    let (address, rest) = rest.split_once("*/")?;
    let (text, _) = rest.rsplit_once(';')?;
    Some(Answer {
        address: u64::from_str_radix(address, 16).ok()?,
        text: normalise(text),
    })
}

/// Single blanks, none before a comma.
pub fn normalise(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace(" ,", ",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let answer = read_line("        /*0010*/         FSEL R25, R26, +INF , P0 ;   /* 0x */");
        let answer = answer.unwrap_or_else(|| unreachable!());
        assert_eq!(
            (answer.address, &*answer.text),
            (16, "FSEL R25, R26, +INF, P0")
        );
        assert!(read_line("\t.headerflags\t@\"x\"").is_none());
        let log = "nvdisasm error : Opclass 'mov', undefined value 0x92 at address 0x00000320";
        assert_eq!(illegal_address(log), Some(0x320));
    }
}
