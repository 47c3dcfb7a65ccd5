//! Launches that are run to count, and how they are made smaller.

use std::path::PathBuf;

use warpwright_launch::{Launch, Source};

/// A launch that is run to count.
#[derive(Debug, Clone)]
pub struct Counted {
    /// The launch.
    pub launch: Launch,
    /// Where the files lie that its buffers begin with.
    pub folder: PathBuf,
    /// What it is, in words.
    pub at: String,
    /// Who says it. Who described one wants to know if it could not be counted.
    pub source: Source,
    /// Its block is what somebody says or the code does, and no guess, and the code has no other launch.
    pub is_known_block: bool,
    /// It is smaller than the launch that it stands for.
    pub is_smaller: bool,
    /// Of a launch with as many blocks as the code's own: the sizes that these go by and that are guessed, in words.
    pub guessed: Option<String>,
}

/// Bytes of buffers that counting takes together; fewer where nobody asked: a look at a kernel is not to take the memory
/// of its launch. The blocks that run are few whatever the sizes are.
pub const MOST_BYTES: u64 = 1 << 30;
const MOST_BYTES_UNASKED: u64 = 192 << 20;

impl Counted {
    /// Did somebody describe it?
    pub fn is_described(&self) -> bool {
        self.source == Source::Described
    }

    /// Are its buffers small enough to be filled and run?
    pub fn fits(&self) -> bool {
        self.bytes()
            <= match self.is_described() {
                true => MOST_BYTES,
                false => MOST_BYTES_UNASKED,
            }
    }

    /// Bytes of its buffers.
    pub fn bytes(&self) -> u64 {
        let bytes = self.launch.buffers().map(|b| b.size() as u64);
        bytes.fold(0, u64::saturating_add)
    }
}

/// Sizes that are halved that often are the small ones.
const SMALLEST: u32 = i64::BITS - 1;

/// `what: a, b`; none of nothing.
pub(crate) fn labelled(what: &str, all: &[String]) -> Option<String> {
    (!all.is_empty()).then(|| format!("{what}: {}", all.join(", ")))
}

/// Sizes that are halved so often, but for what becomes too small, and what is said of those that are; from names, what
/// they are at the whole launch, and at the small one.
pub fn halved<'n>(
    names: impl Iterator<Item = (&'n str, i64, i64)>,
    shift: u32,
) -> (Vec<(String, i64)>, Option<String>) {
    let (mut sizes, mut smaller) = (Vec::new(), Vec::new());
    for (name, whole, small) in names {
        let size = (whole >> shift).max(small.min(whole));
        sizes.push((name.to_owned(), size));
        if size != whole {
            smaller.push(format!("{name} = {size} for {whole}"));
        }
    }
    (sizes, labelled("made small", &smaller))
}

/// A launch that is made smaller by halves: as it is, then the largest part of it that fits, which is more like it than
/// the smallest, whose blocks may have next to nothing to do, then that.
pub fn whole_or_parts(sized: &dyn Fn(u32) -> Option<Counted>) -> Vec<Counted> {
    let whole = sized(0);
    let part = match &whole {
        Some(whole) if !whole.fits() => (1..SMALLEST).filter_map(sized).find(Counted::fits),
        _ => None,
    };
    let all = whole.into_iter().chain(part).chain(sized(SMALLEST));
    let mut all: Vec<Counted> = all.collect();
    all.dedup_by(|a, b| a.at == b.at);
    all
}
