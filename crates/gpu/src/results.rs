//! What a session found, as it is stored and shown.

use serde::{Deserialize, Serialize};

use crate::backend::{Resources, Verdict};
use crate::device::{Clocks, DeviceInfo};
use crate::job::Shape;
use crate::plan::Plan;
use crate::stats::{Estimate, Outcome};

/// Version of the serialised form.
pub const SCHEMA: u32 = 1;

/// Everything measured about one kernel on one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurements {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Kernel name.
    pub kernel: String,
    /// Grid and block of variants that do not say otherwise.
    pub shape: Shape,
    /// Where and when.
    pub environment: Environment,
    /// The variant that the others are compared with.
    pub baseline: String,
    /// Two runs of the baseline gave the same bits. Outputs that differ are held to their
    /// tolerances only, whatever a variant promises.
    pub deterministic: bool,
    /// How samples were taken; absent if nothing was timed.
    pub plan: Option<Plan>,
    /// Relative difference below which two times are called a tie on this device: the larger of
    /// the stated resolution and what a second copy of the baseline differed by.
    pub noise: f64,
    /// The fastest correct variant, or the baseline if none is faster than it beyond the noise.
    pub chosen: String,
    /// True if every finalist's interval is as tight as asked.
    pub tight: bool,
    /// True if the session was stopped before its end.
    pub interrupted: bool,
    /// How often the worker process had to be replaced.
    pub faults: u32,
    /// Seconds spent on timing.
    pub seconds: f64,
    /// The variants in the order given.
    pub variants: Vec<Measured>,
}

/// Where and when a measurement was made. Clocks are as found, never set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The GPU and its driver.
    pub device: DeviceInfo,
    /// State of the device after the first warm-up.
    pub clocks_before: Option<Clocks>,
    /// State of the device after the last sample.
    pub clocks_after: Option<Clocks>,
    /// Lowest and highest SM clock seen between epochs, MHz.
    pub sm_mhz_range: Option<(u32, u32)>,
    /// When the session began, UTC.
    pub date: String,
}

/// What was found about one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The variant.
    pub id: String,
    /// What its results are worth.
    pub verdict: Verdict,
    /// What it takes, as loaded; absent if it was not.
    pub resources: Option<Resources>,
    /// Nanoseconds per launch; absent if it was not timed.
    pub time_ns: Option<Estimate>,
    /// Its time over the baseline's, round by round.
    pub ratio: Option<Estimate>,
    /// The judgement on `ratio`; absent for the baseline itself.
    pub outcome: Option<Outcome>,
    /// The stage after which it left the race, from 0; absent for finalists.
    pub dropped_after: Option<u32>,
}

impl Measurements {
    /// A variant by id.
    pub fn get(&self, id: &str) -> Option<&Measured> {
        self.variants.iter().find(|v| v.id == id)
    }

    /// Time of the chosen variant over the baseline's; 1 if the baseline was chosen.
    pub fn chosen_ratio(&self) -> f64 {
        self.get(&self.chosen)
            .and_then(|v| v.ratio)
            .map_or(1.0, |r| r.median)
    }
}
