//! What a session asks of a device: open a job, check a variant, time a group of variants.
//!
//! Three things implement [`Backend`]: [`crate::runner::Runner`] does it on a GPU in this process,
//! [`crate::process::Process`] has a child process do it, and the tests have a device made of
//! numbers.

use serde::{Deserialize, Serialize};

use crate::device::{Clocks, DeviceInfo};
use crate::fault::{Fault, FaultKind};
use crate::job::{Job, Variant};
use crate::plan::Plan;

/// A device that runs variants of one job at a time.
pub trait Backend {
    /// Makes the job's buffers ready and says what the device is. Replaces an earlier job.
    fn open(&mut self, job: &Job) -> Result<DeviceInfo, Fault>;

    /// Runs one variant by itself and looks at what it did. The first check of a job must be that
    /// of its reference.
    fn check(&mut self, request: &CheckRequest) -> Result<CheckReport, Fault>;

    /// Times variants against each other in one context.
    fn time(&mut self, request: &TimeRequest) -> Result<TimeReport, Fault>;
}

/// Runs one variant and compares its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckRequest {
    /// What to run.
    pub variant: Variant,
    /// What its results are measured by.
    pub against: Against,
    /// Longest that one launch may take, seconds.
    pub limit_s: f64,
}

/// What a check compares results with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// Nothing: this variant's results become the reference.
    Nothing,
    /// The results of the reference run.
    Reference {
        /// What is known of that run.
        known: Reference,
        /// Bit for bit; otherwise within the buffers' tolerances.
        bits: bool,
    },
}

/// What two runs of the reference showed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Buffers (indices) that it changes.
    pub changed: Vec<usize>,
    /// Outputs (indices) in which the two runs differ; these are held to their tolerances only.
    pub unstable: Vec<usize>,
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckReport {
    /// What the kernel takes, as the driver loaded it.
    pub resources: Resources,
    /// What its results are worth. For a reference: [`Verdict::Identical`], or
    /// [`Verdict::Corrupts`].
    pub verdict: Verdict,
    /// Time of one launch after a first one, nanoseconds; a rough estimate.
    pub ns: f64,
    /// What was learned, if this was the reference run.
    pub reference: Reference,
}

/// What a kernel takes, as loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Registers per thread.
    pub registers: u32,
    /// Local memory, bytes per thread.
    pub local_bytes: u32,
    /// Static shared memory, bytes per block (the driver's reserve not included).
    pub static_smem: u32,
    /// Dynamic shared memory, bytes per block.
    pub dynamic_smem: u32,
    /// Threads per block as launched.
    pub threads: u32,
    /// Blocks that fit on one SM at a time (cuOccupancyMaxActiveBlocksPerMultiprocessor).
    pub blocks_per_sm: u32,
}

/// What a variant's results are worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The same bits as the default build's.
    Identical,
    /// Within the stated tolerance, which is all that was asked.
    Within {
        /// Largest absolute difference.
        max_abs: f64,
        /// Largest relative difference.
        max_rel: f64,
    },
    /// Wrong values.
    Wrong {
        /// Name of the first buffer with a wrong element.
        buffer: String,
        /// Index of that element.
        index: usize,
        /// The default build's element.
        expected: String,
        /// What the variant computed.
        found: String,
        /// How many elements of the buffer are wrong.
        mismatches: usize,
        /// Elements in the buffer.
        of: usize,
        /// True if all of them lie within the tolerance, but the same bits were promised.
        within_tolerance: bool,
    },
    /// It wrote where it must not: beyond a buffer, or into an input.
    Corrupts {
        /// Where.
        what: String,
    },
    /// It did not run.
    Failed {
        /// Why, in a word.
        kind: FaultKind,
        /// Why, in the driver's words.
        why: String,
    },
    /// Nobody looked (the budget ended or the session was interrupted).
    Untested,
}

impl Verdict {
    /// True if its results may be used.
    pub fn is_correct(&self) -> bool {
        matches!(self, Verdict::Identical | Verdict::Within { .. })
    }

    /// The verdict on a variant that caused a fault.
    pub fn failed(fault: &Fault) -> Self {
        Verdict::Failed {
            kind: fault.kind,
            why: fault.detail.clone(),
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Identical => write!(f, "correct, bit for bit"),
            Verdict::Within { max_abs, max_rel } => {
                write!(
                    f,
                    "correct within {max_abs:.1e} absolute, {max_rel:.1e} relative"
                )
            }
            Verdict::Wrong {
                buffer,
                index,
                expected,
                found,
                mismatches,
                of,
                within_tolerance,
            } => {
                let close = if *within_tolerance {
                    " (within the tolerance)"
                } else {
                    ""
                };
                write!(
                    f,
                    "WRONG: {mismatches} of {of} elements of `{buffer}` differ{close}, first \
                     [{index}]: {found} instead of {expected}"
                )
            }
            Verdict::Corrupts { what } => write!(f, "CORRUPTS MEMORY: {what}"),
            Verdict::Failed { kind, why } => write!(f, "FAILED: {}: {why}", kind.name()),
            Verdict::Untested => write!(f, "not tested"),
        }
    }
}

/// Times variants in interleaved rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeRequest {
    /// What to time; every round times each once, in an order of its own.
    pub variants: Vec<Variant>,
    /// How a sample is taken.
    pub plan: Plan,
    /// Number of rounds.
    pub rounds: u32,
    /// Which epoch this is: seeds orders and the placement of buffers.
    pub epoch: u32,
    /// Buffers (indices) to restore before each sample.
    pub restore: Vec<usize>,
    /// Seconds of untimed rounds at the start.
    pub warmup_s: f64,
    /// Longest that one sample may take, seconds.
    pub limit_s: f64,
}

/// The samples of one epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeReport {
    /// Nanoseconds per launch, by variant as requested, then by round.
    pub samples: Vec<Vec<f64>>,
    /// How long the request took, seconds.
    pub wall_s: f64,
    /// Clocks right after the warm-up.
    pub clocks_before: Option<Clocks>,
    /// Clocks right after the last round.
    pub clocks_after: Option<Clocks>,
}
