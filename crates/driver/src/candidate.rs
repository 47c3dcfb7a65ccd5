//! A candidate: a recipe, what came of building it, and what is predicted or measured of it.

use serde::{Deserialize, Serialize};
use warpwright_model::Tpsc;

use crate::recipe::Recipe;

/// Resources of one built kernel, as `ptxas -v` reports them (or as estimated).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Registers per thread.
    pub registers: u32,
    /// Stack frame in bytes per thread.
    pub stack_bytes: u32,
    /// Bytes per thread stored to spill slots (static count, not weighted by loops).
    pub spill_store_bytes: u32,
    /// Bytes per thread loaded from spill slots.
    pub spill_load_bytes: u32,
    /// Static shared memory in bytes per block.
    pub shared_bytes: u32,
    /// Named barriers.
    pub barriers: u32,
}

impl Resources {
    /// Did ptxas spill?
    pub fn spills(&self) -> bool {
        self.spill_store_bytes + self.spill_load_bytes > 0
    }
}

/// Resident blocks and warps of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Residency {
    /// Blocks per SM.
    pub blocks: u32,
    /// Warps per SM.
    pub warps: u32,
    /// Share of the most warps an SM can hold, in percent.
    pub percent: f64,
    /// What limits the blocks, in words.
    pub limiters: Vec<String>,
}

/// What the static model says of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Predicted time relative to the default build (1 = the same, less is faster).
    pub relative_time: f64,
    /// What bounds the kernel under the model.
    pub bound: String,
    /// How much longer blocks take because they take each other's cache lines, over the default
    /// build's; part of `relative_time`.
    #[serde(default = "unchanged")]
    pub contention: f64,
    /// CRAT's measure of the same candidate, for comparison.
    #[serde(default)]
    pub tpsc: Option<Tpsc>,
}

fn unchanged() -> f64 {
    1.0
}

/// A measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Median time of a launch in nanoseconds.
    pub median_ns: f64,
    /// Confidence interval of the median, nanoseconds.
    pub interval_ns: (f64, f64),
    /// Median ratio to the default within the same run.
    pub relative_time: f64,
}

/// One way to build a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The decisions.
    pub recipe: Recipe,
    /// Resources, if it was built.
    pub resources: Option<Resources>,
    /// Residency on the target, if it can be launched.
    pub residency: Option<Residency>,
    /// The prediction.
    pub score: Option<Score>,
    /// The measurement, if the database or a tuning run has one.
    pub measured: Option<Measured>,
    /// Why it is out of the race: a build error, or too large to launch.
    pub rejected: Option<String>,
    /// Why it may be chosen only once a measurement has compared its outputs, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// The name of an earlier candidate with exactly the same machine code.
    pub same_code_as: Option<String>,
}

impl Candidate {
    /// A candidate that has not been built.
    pub fn new(recipe: Recipe) -> Self {
        Candidate {
            recipe,
            resources: None,
            residency: None,
            score: None,
            measured: None,
            rejected: None,
            caution: None,
            same_code_as: None,
        }
    }

    /// Its name within the kernel.
    pub fn name(&self) -> String {
        self.recipe.to_string()
    }
}
