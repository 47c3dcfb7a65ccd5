//! A winner as bytes: one head line with version, length and digest of the rest; lines of facts; an empty
//! line; the cubin.
//!
//! ```text
//! warpwright-winner 1 5321 9f86d081…
//! kernel 2c26b46b…
//! gpu NVIDIA H200
//! class 256,1,1 smem 0 cluster 0,0,0 grid 10
//! symbol _Z4axpyPfS_f
//! recipe maxnreg(64)
//! …
//!
//! <cubin>
//! ```
//!
//! Whatever was cut off or changed does not agree with the digest. Facts of a name that is not known are kept
//! out of the way, so that a later version may add some without a new number; what changes the meaning of a
//! record gets a new one, and readers leave records of later versions alone.

use crate::class::LaunchClass;
use crate::sha256;

/// What this version writes, and the latest that it reads.
pub const VERSION: u32 = 1;
const MAGIC: &str = "warpwright-winner";
/// Head lines and facts beyond this are damage.
const LONGEST_HEAD: usize = 160;

/// A faster version of a kernel, and how it is known to be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Winner {
    /// Digest of the original's machine code.
    pub kernel: String,
    /// Name of the GPU as its driver reports it.
    pub gpu: String,
    /// The launches that it is for.
    pub class: LaunchClass,
    /// The kernel's symbol, in the original and in [`Winner::cubin`].
    pub symbol: String,
    /// What was done, as a recipe prints.
    pub recipe: String,
    /// How it is known to compute the same.
    pub proof: String,
    /// Median time of the original in nanoseconds, in the second set of turns.
    pub original_ns: u64,
    /// The same of the winner.
    pub winner_ns: u64,
    /// Version of the driver that it was measured with.
    pub driver: String,
    /// Day of the measurement (ISO 8601).
    pub date: String,
    /// The finished code.
    pub cubin: Vec<u8>,
}

/// Why bytes are no winner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Not a record at all.
    #[error("it is no record of a winner")]
    Foreign,
    /// Written by a later version.
    #[error("it was written by a later version (records {0}, this one reads {VERSION})")]
    Later(u32),
    /// Shorter than its head says.
    #[error("it is cut short")]
    Cut,
    /// Other bytes than its head says.
    #[error("it is damaged")]
    Damaged,
    /// A fact is missing or cannot be read.
    #[error("it lacks `{0}`")]
    Lacks(&'static str),
}

impl Winner {
    /// The record.
    pub fn to_bytes(&self) -> Vec<u8> {
        // A line end in a text would make a fact of what follows it.
        let line = |text: &str| text.replace(['\n', '\r'], " ");
        let facts = [
            ("kernel", line(&self.kernel)),
            ("gpu", line(&self.gpu)),
            ("class", self.class.to_string()),
            ("symbol", line(&self.symbol)),
            ("recipe", line(&self.recipe)),
            ("proof", line(&self.proof)),
            ("original-ns", self.original_ns.to_string()),
            ("winner-ns", self.winner_ns.to_string()),
            ("driver", line(&self.driver)),
            ("date", line(&self.date)),
        ];
        let facts = facts
            .iter()
            .map(|(name, value)| format!("{name} {value}\n"));
        let mut body = facts.collect::<String>().into_bytes();
        body.push(b'\n');
        body.extend_from_slice(&self.cubin);
        let head = format!("{MAGIC} {VERSION} {} {}\n", body.len(), sha256(&body));
        let mut record = head.into_bytes();
        record.append(&mut body);
        record
    }

    /// Reads one record at the start of `bytes`; returns it and what follows it.
    ///
    /// # Errors
    /// It is none, or a damaged one.
    pub fn read(bytes: &[u8]) -> Result<(Winner, &[u8]), RecordError> {
        let (version, length, digest, rest) = head(bytes)?;
        let (body, rest) = rest.split_at_checked(length).ok_or(RecordError::Cut)?;
        if sha256(body) != digest {
            return Err(RecordError::Damaged);
        }
        if version > VERSION {
            return Err(RecordError::Later(version));
        }
        match version {
            1 => Ok((Winner::of_body(body)?, rest)),
            _ => Err(RecordError::Damaged),
        }
    }

    fn of_body(body: &[u8]) -> Result<Winner, RecordError> {
        let split = body.windows(2).position(|two| two == b"\n\n");
        let split = split.ok_or(RecordError::Damaged)?;
        let facts = std::str::from_utf8(&body[..split]).map_err(|_| RecordError::Damaged)?;
        let fact = |name: &'static str| {
            let mut lines = facts.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find(|(known, _)| *known == name);
            found
                .map(|(_, value)| value)
                .ok_or(RecordError::Lacks(name))
        };
        let text = |name| fact(name).map(str::to_owned);
        let number = |name| fact(name)?.parse().map_err(|_| RecordError::Lacks(name));
        Ok(Winner {
            // It names the file in the store.
            kernel: text("kernel").and_then(|digest| match is_hexadecimal(&digest) {
                true => Ok(digest),
                false => Err(RecordError::Lacks("kernel")),
            })?,
            gpu: text("gpu")?,
            class: fact("class")?
                .parse()
                .map_err(|_| RecordError::Lacks("class"))?,
            symbol: text("symbol")?,
            recipe: text("recipe")?,
            proof: text("proof")?,
            original_ns: number("original-ns")?,
            winner_ns: number("winner-ns")?,
            driver: text("driver")?,
            date: text("date")?,
            cubin: body[split + 2..].to_vec(),
        })
    }

    /// How many times faster than the original it was.
    pub fn speedup(&self) -> f64 {
        self.original_ns as f64 / self.winner_ns.max(1) as f64
    }
}

fn head(bytes: &[u8]) -> Result<(u32, usize, &str, &[u8]), RecordError> {
    if !bytes.starts_with(MAGIC.as_bytes()) {
        return Err(RecordError::Foreign);
    }
    let most = &bytes[..bytes.len().min(LONGEST_HEAD)];
    let end = most
        .iter()
        .position(|&b| b == b'\n')
        .ok_or(RecordError::Cut)?;
    let line = std::str::from_utf8(&bytes[..end]).map_err(|_| RecordError::Damaged)?;
    let words: Vec<&str> = line.split(' ').collect();
    let [MAGIC, version, length, digest] = words[..] else {
        return Err(RecordError::Damaged);
    };
    let version = version.parse().map_err(|_| RecordError::Damaged)?;
    let length = length.parse().map_err(|_| RecordError::Damaged)?;
    Ok((version, length, digest, &bytes[end + 1..]))
}

fn is_hexadecimal(digest: &str) -> bool {
    !digest.is_empty() && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn winner(kernel: &str, cubin: &[u8]) -> Winner {
        Winner {
            kernel: kernel.into(),
            gpu: "NVIDIA H200".into(),
            class: LaunchClass::new([100, 1, 1], [256, 1, 1], 0, [0; 3]).unwrap(),
            symbol: "k".into(),
            recipe: "spill-to-shared".into(),
            proof: "machine code".into(),
            original_ns: 2000,
            winner_ns: 1000,
            driver: "580.1".into(),
            date: "2026-11-22".into(),
            cubin: cubin.to_vec(),
        }
    }

    #[test]
    fn records_come_back() {
        let a = winner("aa", b"\x7fELF\n\nwith empty lines\n\n");
        let mut bytes = a.to_bytes();
        assert_eq!(Winner::read(&bytes), Ok((a.clone(), &b""[..])));
        bytes.extend(winner("bb", b"").to_bytes());
        let (first, rest) = Winner::read(&bytes).unwrap();
        assert_eq!(
            (first, Winner::read(rest).unwrap().0.kernel),
            (a, "bb".into())
        );
    }

    #[test]
    fn cut_and_changed_records_are_found_out() {
        let bytes = winner("aa", b"cubin").to_bytes();
        for end in 0..bytes.len() {
            assert!(Winner::read(&bytes[..end]).is_err(), "{end}");
        }
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert!(Winner::read(&bad).is_err(), "{at}");
        }
    }

    #[test]
    fn later_versions_are_left_alone() {
        let text = String::from_utf8(winner("aa", b"").to_bytes()).unwrap();
        let later = text.replacen(" 1 ", " 2 ", 1);
        assert_eq!(Winner::read(later.as_bytes()), Err(RecordError::Later(2)));
    }

    #[test]
    fn names_with_line_ends_make_no_facts() {
        let mut odd = winner("aa", b"");
        odd.symbol = "k\ngpu another".into();
        let read = Winner::read(&odd.to_bytes()).unwrap().0;
        assert_eq!(
            (&*read.gpu, &*read.symbol),
            ("NVIDIA H200", "k gpu another")
        );
    }
}
