//! How large the blocks of a kernel are, and who says so.

use serde::{Deserialize, Serialize};
use std::fmt;
use warpwright_launch::{Launch, Source as Certainty};
use warpwright_ptx::Function;
use warpwright_target::{BLOCK_DIMENSIONS, THREADS_PER_BLOCK};

use crate::names::source_name;
use crate::scope::Seen;

/// Where the block size comes from; the later ones are guesses or promises of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockSource {
    /// `.reqntid` in the kernel.
    Required,
    /// `--block`.
    Option,
    /// A launch that was seen when the program ran (`--trace`).
    Traced,
    /// The launch description.
    Launch,
    /// `.maxntid` in the kernel: an upper bound, taken as the size where no launch of fewer threads was seen.
    Bound,
    /// `.maxntid` in the kernel, in the shape of a launch of as many threads that was seen.
    BoundSeen,
    /// A launch in the kernel's own source: a fact about that launch, which occupancy and prediction may use, and no
    /// promise of others.
    Seen,
    /// The same of the first known one of several launches, which differ.
    SeenFirst,
    /// A launch that the kernel's own program made when it ran without a GPU: a fact about that launch as well.
    Ran,
    /// The same of that of most threads, where others had another block.
    RanFirst,
    /// Nobody said; 256 is assumed.
    Assumed,
}

impl fmt::Display for BlockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BlockSource::Required => ".reqntid",
            BlockSource::Option => "--block",
            BlockSource::Traced => "the trace",
            BlockSource::Launch => "launch description",
            BlockSource::Bound => ".maxntid",
            BlockSource::BoundSeen => ".maxntid, in the shape of a launch that was seen",
            BlockSource::Seen => "the code's own launch",
            BlockSource::SeenFirst => "one of the code's launches, which differ: --block",
            BlockSource::Ran => "seen when its program ran",
            BlockSource::RanFirst => "seen when its program ran; other launches differ: --block",
            BlockSource::Assumed => "assumed: state it with --block",
        })
    }
}

/// Threads per block, and how we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Threads per block in x, y, z.
    pub dims: [u32; 3],
    /// How we know.
    pub source: BlockSource,
}

/// The block size that is assumed when nobody states one.
const ASSUMED_BLOCK: u32 = 256;

const MOST_THREADS: u64 = THREADS_PER_BLOCK as u64;

/// A block size that contradicts the kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// `--block` against `.reqntid`.
    #[error("--block {} contradicts .reqntid {} of kernel `{}`", show(*.asked), show(*.required), source_name(.kernel))]
    Required {
        /// The kernel.
        kernel: String,
        /// What was asked for.
        asked: [u32; 3],
        /// What it requires.
        required: [u32; 3],
    },
    /// A block above `.maxntid`.
    #[error("{who} {} is larger than the bound {} of kernel `{}` (.maxntid, or __launch_bounds__ in CUDA C)", show(*.asked), show(*.bound), source_name(.kernel))]
    Bound {
        /// Who asks for it.
        who: &'static str,
        /// The kernel.
        kernel: String,
        /// What was asked for.
        asked: [u32; 3],
        /// What it allows.
        bound: [u32; 3],
    },
    /// No device has such blocks.
    #[error("a block of {} is {threads} threads; a block has 1 to {THREADS_PER_BLOCK}", show(*.dims))]
    Impossible {
        /// Threads in x, y, z.
        dims: [u32; 3],
        /// Their product.
        threads: u64,
    },
    /// No device has blocks that are so long in one dimension.
    #[error("a block of {} cannot be launched: its {axis} is at most {most}", show(*.dims))]
    TooLong {
        /// Threads in x, y, z.
        dims: [u32; 3],
        /// The dimension.
        axis: char,
        /// Its most.
        most: u32,
    },
}

fn show(dims: [u32; 3]) -> String {
    format!("{},{},{}", dims[0], dims[1], dims[2])
}

fn count(dims: [u32; 3]) -> u64 {
    dims.iter()
        .fold(1, |all, &n| u64::from(n).saturating_mul(all))
}

/// Can a device launch such blocks?
///
/// # Errors
/// [`BlockError::Impossible`], [`BlockError::TooLong`].
pub fn possible(dims: [u32; 3]) -> Result<(), BlockError> {
    let threads = count(dims);
    if !(1..=MOST_THREADS).contains(&threads) {
        return Err(BlockError::Impossible { dims, threads });
    }
    let limits = dims.iter().zip(BLOCK_DIMENSIONS).zip(['x', 'y', 'z']);
    for ((&n, most), axis) in limits {
        if n > most {
            return Err(BlockError::TooLong { dims, axis, most });
        }
    }
    Ok(())
}

impl Block {
    /// What is assumed when nobody says.
    pub const ASSUMED: Block = Block {
        dims: [ASSUMED_BLOCK, 1, 1],
        source: BlockSource::Assumed,
    };

    /// Threads per block.
    pub fn threads(&self) -> u32 {
        u32::try_from(count(self.dims)).unwrap_or(u32::MAX)
    }

    /// May a bound on the block size be written into the kernel?
    pub fn is_given(&self) -> bool {
        !self.is_seen() && self.source != BlockSource::Assumed
    }

    /// Does a launch of the code's own show it?
    pub fn is_seen(&self) -> bool {
        use BlockSource::{Ran, RanFirst, Seen, SeenFirst};
        matches!(self.source, Seen | SeenFirst | Ran | RanFirst)
    }

    /// The same, where nothing better is known than launches that were seen.
    pub fn or_seen(self, seen: &Seen) -> Block {
        let fits = |dims: &[u32; 3]| possible(*dims).is_ok();
        match (self.source, seen.block.filter(fits)) {
            // A bound says how many threads there are at most, and not which way they lie. Nor is it the block's size, where launches of fewer threads were seen.
            (BlockSource::Bound, Some(dims)) if count(dims) < count(self.dims) => {
                let none = Block {
                    source: BlockSource::Assumed,
                    ..self
                };
                none.or_seen(seen)
            }
            (BlockSource::Assumed, Some(dims)) => Block {
                dims,
                source: match (seen.source, seen.differ) {
                    (Certainty::Traced, true) => BlockSource::RanFirst,
                    (Certainty::Traced, false) => BlockSource::Ran,
                    (_, true) => BlockSource::SeenFirst,
                    (_, false) => BlockSource::Seen,
                },
            },
            (BlockSource::Bound, Some(dims))
                if !seen.differ && dims != self.dims && count(dims) == count(self.dims) =>
            {
                Block {
                    dims,
                    source: BlockSource::BoundSeen,
                }
            }
            _ => self,
        }
    }

    /// The exact block of every launch, if the caller stated one that the kernel does not require itself.
    pub fn stated(&self) -> Option<[u32; 3]> {
        let is_stated = matches!(
            self.source,
            BlockSource::Option | BlockSource::Traced | BlockSource::Launch
        );
        is_stated.then_some(self.dims)
    }

    /// The block of a PTX kernel: what it requires wins over what the caller says, which wins over its
    /// upper bound.
    ///
    /// # Errors
    /// The contradiction.
    pub fn of(
        function: &Function,
        option: Option<[u32; 3]>,
        launch: Option<&Launch>,
    ) -> Result<Block, BlockError> {
        let kernel = || function.name.to_string();
        let (dims, source) = match (function.req_ntid(), option, launch, function.max_ntid()) {
            (Some(required), Some(asked), _, _) if required != asked => {
                return Err(BlockError::Required {
                    kernel: kernel(),
                    asked,
                    required,
                });
            }
            (Some(required), ..) => (required, BlockSource::Required),
            (None, Some(asked), _, _) => (asked, BlockSource::Option),
            (None, None, Some(launch), _) => (launch.block, BlockSource::Launch),
            // A bound that no launch can reach bounds nothing; ptxas reads it in 32 bits.
            (None, None, None, Some(bound)) => match possible(bound) {
                Err(BlockError::Impossible { threads, .. })
                    if (1..=u64::from(u32::MAX)).contains(&threads) =>
                {
                    ([THREADS_PER_BLOCK, 1, 1], BlockSource::Bound)
                }
                _ => (bound, BlockSource::Bound),
            },
            (None, None, None, None) => return Ok(Block::ASSUMED),
        };
        let who = match source {
            BlockSource::Option => Some("--block"),
            BlockSource::Launch => Some("the launch's block"),
            _ => None,
        };
        if let (Some(bound), Some(who)) = (function.max_ntid(), who)
            && count(dims) > count(bound)
        {
            return Err(BlockError::Bound {
                who,
                kernel: kernel(),
                asked: dims,
                bound,
            });
        }
        possible(dims)?;
        Ok(Block { dims, source })
    }
}
