//! A winner as bytes: one head line with version, length and digest of the rest; lines of facts; an empty
//! line; the cubin.
//!
//! ```text
//! warpwright-winner 2 5321 9f86d081…
//! kernel 2c26b46b…
//! gpu NVIDIA H200
//! guard block=256,1,1; grid.size>=1024; grid.size<=2047; cluster=1,1,1; smem=0; param1:4=4096
//! shape block=128,2,1
//! symbol _Z4axpyPfS_f
//! recipe maxnreg(64)
//! …
//!
//! <cubin>
//! ```
//!
//! Whatever was cut off or changed does not agree with the digest. Facts of a name that is not known are kept
//! out of the way, so that a later version may add some without a new number; what changes the meaning of a
//! record gets a new one, and readers leave records of later versions alone. Records of version 1 hold a launch class
//! (`class 256,1,1 smem 0 cluster 0,0,0 grid 10`) in the place of guard and shape.

use std::cmp::Ordering;
use std::fmt;
use std::io;
use std::str::FromStr;

use warpwright_launch::{Guard, Shape, Signature};

use crate::class::LaunchClass;
use crate::sha256;

/// What this version writes, and the latest that it reads.
pub const VERSION: u32 = 2;
/// Bytes of the largest record: a cubin of a whole library of kernels.
pub const MOST_BYTES: u64 = 128 << 20;
const MAGIC: &str = "warpwright-winner";
/// Head lines beyond this are damage.
const LONGEST_HEAD: usize = 160;
/// And so are facts: a guard has a few thousand characters at most.
const LONGEST_FACTS: usize = 1 << 20;

/// Why a winner may stand in its kernel's place on this machine. It is this machine's alone: exports do not carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It came from elsewhere, and nothing here has looked at it: it is not used.
    Imported,
    /// It came from elsewhere and was taken on its word (`import --trust`).
    Trusted,
    /// It came from elsewhere and was proved here against the program's own module.
    Proved,
    /// It was found, proved and measured here.
    Measured,
}

impl Standing {
    const ALL: [Standing; 4] = [
        Standing::Imported,
        Standing::Trusted,
        Standing::Proved,
        Standing::Measured,
    ];

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Standing::Imported => "imported",
            Standing::Trusted => "trusted",
            Standing::Proved => "proved",
            Standing::Measured => "measured",
        }
    }

    /// Is such a winner launched?
    pub fn is_used(self) -> bool {
        self > Standing::Imported
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no standing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no standing of a winner")]
pub struct NoStanding(String);

impl FromStr for Standing {
    type Err = NoStanding;

    fn from_str(text: &str) -> Result<Self, NoStanding> {
        let found = Standing::ALL.into_iter().find(|s| s.name() == text);
        found.ok_or_else(|| NoStanding(text.to_owned()))
    }
}

/// A faster version of a kernel, and how it is known to be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Winner {
    /// Digest of the original's machine code.
    pub kernel: String,
    /// Name of the GPU as its driver reports it.
    pub gpu: String,
    /// The launches that it is for. Parameters go by number.
    pub guard: Guard,
    /// What those become.
    pub shape: Shape,
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
    /// Why it may be used here.
    pub standing: Standing,
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
    /// An entry or an export is one whole, and ends with it.
    #[error("other bytes follow it")]
    Followed,
    /// Other bytes than its head says.
    #[error("it is damaged")]
    Damaged,
    /// A fact is missing or cannot be read.
    #[error("it lacks `{0}`")]
    Lacks(&'static str),
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(io::ErrorKind),
    /// A folder, a device, a pipe.
    #[error("it is no regular file")]
    NoFile,
    /// More bytes than any record has.
    #[error("it has {0} bytes, and a record has at most {MOST_BYTES}")]
    TooLarge(u64),
    /// Anybody may write it.
    #[error("everybody can write it (chmod o-w)")]
    Exposed,
    /// Another user may write it, who has not the folder.
    #[error("user {0} can write it, whose folder it is not")]
    OfOther(u32),
    /// It is a link, and others can put another file there.
    #[error("it is a link, and others can write where that leads")]
    Linked,
}

impl Winner {
    /// The record.
    pub fn to_bytes(&self) -> Vec<u8> {
        // A line end in a text would make a fact of what follows it.
        let line = |text: &str| text.replace(char::is_control, " ");
        let facts = [
            ("kernel", line(&self.kernel)),
            ("gpu", line(&self.gpu)),
            ("guard", self.guard.to_string()),
            ("shape", self.shape.to_string()),
            ("symbol", line(&self.symbol)),
            ("recipe", line(&self.recipe)),
            ("proof", line(&self.proof)),
            ("original-ns", self.original_ns.to_string()),
            ("winner-ns", self.winner_ns.to_string()),
            ("driver", line(&self.driver)),
            ("date", line(&self.date)),
            ("standing", self.standing.to_string()),
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
        let (mut winner, cubin, rest) = Winner::parts(bytes)?;
        winner.cubin = cubin.to_vec();
        Ok((winner, rest))
    }

    /// Reads bytes that are one record, in the memory that they have: somebody else's program may have no more.
    ///
    /// # Errors
    /// They are none, a damaged one, or more than one.
    pub fn whole(mut bytes: Vec<u8>) -> Result<Winner, RecordError> {
        let (mut winner, cubin, rest) = Winner::parts(&bytes)?;
        if !rest.is_empty() {
            return Err(RecordError::Followed);
        }
        let length = cubin.len();
        bytes.drain(..bytes.len() - length);
        winner.cubin = bytes;
        Ok(winner)
    }

    /// A winner without its code, the code, and what follows the record.
    fn parts(bytes: &[u8]) -> Result<(Winner, &[u8], &[u8]), RecordError> {
        let (version, length, digest, rest) = head(MAGIC, bytes)?;
        let (body, rest) = rest.split_at_checked(length).ok_or(RecordError::Cut)?;
        if sha256(body) != digest {
            return Err(RecordError::Damaged);
        }
        if version > VERSION {
            return Err(RecordError::Later(version));
        }
        if !(1..=VERSION).contains(&version) {
            return Err(RecordError::Damaged);
        }
        let start = &body[..body.len().min(LONGEST_FACTS)];
        let split = start.windows(2).position(|two| two == b"\n\n");
        let split = split.ok_or(RecordError::Damaged)?;
        let winner = Winner::of_facts(&body[..split], version)?;
        Ok((winner, &body[split + 2..], rest))
    }

    fn of_facts(facts: &[u8], version: u32) -> Result<Winner, RecordError> {
        let facts = std::str::from_utf8(facts).map_err(|_| RecordError::Damaged)?;
        let fact = |name: &'static str| {
            let mut lines = facts.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find(|(known, _)| *known == name);
            found
                .map(|(_, value)| value)
                .ok_or(RecordError::Lacks(name))
        };
        // People read it on terminals, which do what control characters say.
        let text = |name| match fact(name)? {
            odd if odd.contains(char::is_control) => Err(RecordError::Lacks(name)),
            text => Ok(text.to_owned()),
        };
        let number = |name| number(fact(name)?).ok_or(RecordError::Lacks(name));
        let (guard, shape) = match version {
            1 => {
                let class = fact("class")?.parse::<LaunchClass>();
                let class = class.map_err(|_| RecordError::Lacks("class"))?;
                (class.guard(), Shape::SAME)
            }
            _ => {
                let guard = Guard::parse(fact("guard")?, &Signature::default());
                let shape = fact("shape")?.parse();
                (
                    guard.map_err(|_| RecordError::Lacks("guard"))?,
                    shape.map_err(|_| RecordError::Lacks("shape"))?,
                )
            }
        };
        // What a later version means by a word is not known: such a winner is not used.
        let standing = match fact("standing") {
            Ok(word) => word.parse().unwrap_or(Standing::Imported),
            Err(_) => Standing::Measured,
        };
        Ok(Winner {
            // It names the file in the store.
            kernel: text("kernel").and_then(|digest| match is_hexadecimal(&digest) {
                true => Ok(digest),
                false => Err(RecordError::Lacks("kernel")),
            })?,
            gpu: text("gpu")?,
            guard,
            shape,
            symbol: text("symbol")?,
            recipe: text("recipe")?,
            proof: text("proof")?,
            original_ns: number("original-ns")?,
            winner_ns: number("winner-ns")?,
            driver: text("driver")?,
            date: text("date")?,
            standing,
            cubin: Vec::new(),
        })
    }

    /// The launches that it is for, and what they become.
    pub fn launches(&self) -> String {
        match self.shape.is_same() {
            true => self.guard.to_string(),
            false => format!("{} -> {}", self.guard, self.shape),
        }
    }

    /// The better one comes first: less of the original's time, then the later one.
    pub fn by_time(&self, other: &Winner) -> Ordering {
        let time = |winner: &Winner| winner.winner_ns as f64 / winner.original_ns.max(1) as f64;
        let order = time(self).total_cmp(&time(other));
        order.then_with(|| other.date.cmp(&self.date))
    }

    /// How many times faster than the original it was.
    pub fn speedup(&self) -> f64 {
        self.original_ns as f64 / self.winner_ns.max(1) as f64
    }
}

/// Version, length of the rest, its digest, and the rest, behind a line that begins with `magic`.
pub(crate) fn head<'a>(
    magic: &str,
    bytes: &'a [u8],
) -> Result<(u32, usize, &'a str, &'a [u8]), RecordError> {
    if !bytes.starts_with(magic.as_bytes()) {
        return Err(RecordError::Foreign);
    }
    let most = &bytes[..bytes.len().min(LONGEST_HEAD)];
    let end = most
        .iter()
        .position(|&b| b == b'\n')
        .ok_or(RecordError::Cut)?;
    let line = std::str::from_utf8(&bytes[..end]).map_err(|_| RecordError::Damaged)?;
    let words: Vec<&str> = line.split(' ').collect();
    let [first, version, length, digest] = words[..] else {
        return Err(RecordError::Damaged);
    };
    if first != magic {
        return Err(RecordError::Damaged);
    }
    let version = number(version).ok_or(RecordError::Damaged)?;
    let length = number(length).ok_or(RecordError::Damaged)?;
    Ok((version, length, digest, &bytes[end + 1..]))
}

/// A number as it is written here: without a sign and zeros in front.
fn number<N: FromStr + ToString>(text: &str) -> Option<N> {
    let number: N = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
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
            guard: LaunchClass::new([100, 1, 1], [256, 1, 1], 0, [0; 3])
                .unwrap()
                .guard(),
            shape: Shape::SAME,
            symbol: "k".into(),
            recipe: "spill-to-shared".into(),
            proof: "machine code".into(),
            original_ns: 2000,
            winner_ns: 1000,
            driver: "580.1".into(),
            date: "2026-11-22".into(),
            standing: Standing::Measured,
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
        let later = text.replacen(" 2 ", " 3 ", 1);
        assert_eq!(Winner::read(later.as_bytes()), Err(RecordError::Later(3)));
    }

    #[test]
    fn records_of_the_first_version_are_read() {
        let body = "kernel aa\ngpu NVIDIA H200\nclass 256,1,1 smem 0 cluster 0,0,0 grid 6\nsymbol k\n\
            recipe spill-to-shared\nproof machine code\noriginal-ns 2000\nwinner-ns 1000\ndriver 580.1\n\
            date 2026-11-22\n\ncubin";
        let head = format!("{MAGIC} 1 {} {}\n", body.len(), sha256(body.as_bytes()));
        let record = [head.as_bytes(), body.as_bytes()].concat();
        let (read, rest) = Winner::read(&record).unwrap();
        assert_eq!((read, rest), (winner("aa", b"cubin"), &b""[..]));
    }

    #[test]
    fn guards_shapes_and_standings_come_back() {
        let mut own = winner("aa", b"cubin");
        own.guard = Guard::parse(
            "block=64,1,1; param0%16=0; param1:4=4096",
            &Signature::new([("", 8), ("", 4)]),
        )
        .unwrap();
        own.shape = "block=32,2,1; smem+1024".parse().unwrap();
        for standing in Standing::ALL {
            own.standing = standing;
            assert_eq!(Winner::read(&own.to_bytes()).unwrap().0, own);
        }
        let text = String::from_utf8(own.to_bytes()).unwrap();
        let body = text.split_once('\n').unwrap().1;
        let odd = body.replace("standing measured", "standing blessed");
        let head = format!("{MAGIC} 2 {} {}\n", odd.len(), sha256(odd.as_bytes()));
        let (read, _) = Winner::read(&[head.as_bytes(), odd.as_bytes()].concat()).unwrap();
        assert_eq!(read.standing, Standing::Imported);
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
