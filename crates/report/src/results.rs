//! Result files of measured kernels and stencils: what was built, predicted and chosen, and what the device said.

use serde::{Deserialize, Serialize};
use warpwright_driver::KernelReport;
use warpwright_gpu::Measurements;
use warpwright_gpu::stats::Outcome;
use warpwright_stencil::versions::{Family, Version};

/// Version tag of the result file.
pub const SUITE_SCHEMA: &str = "warpwright.suite/1";

/// One measured kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KernelResult {
    /// The example or file.
    pub input: String,
    /// What was built, what the model said, and the static choice.
    pub report: KernelReport,
    /// What was found on the device.
    pub measurements: Measurements,
}

/// A result file: every kernel of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Suite {
    /// [`SUITE_SCHEMA`].
    pub schema: String,
    /// Version of Warpwright.
    pub warpwright: String,
    /// Version of ptxas that built the candidates.
    pub ptxas: String,
    /// The kernels.
    pub kernels: Vec<KernelResult>,
    /// Kernels that could not be measured at all, with the reason.
    pub failures: Vec<(String, String)>,
}

impl KernelResult {
    /// The measured time of the candidate that the static model chose, over the best measured one:
    /// 1 is perfect. `None` if either was not timed.
    ///
    /// A candidate that was dropped on the way to the final has a preliminary time; it counts.
    pub fn regret(&self) -> Option<f64> {
        let chosen = self.ratio_of(self.report.chosen)?;
        // A choice whose gain is within the noise may lie below the best certain one.
        Some((chosen / self.best_ratio()?).max(1.0))
    }

    /// Time of a candidate over the default's.
    pub fn ratio_of(&self, index: usize) -> Option<f64> {
        let candidate = self.report.candidates.get(index)?;
        let name = candidate
            .same_code_as()
            .map_or_else(|| candidate.name(), str::to_owned);
        if name == self.measurements.baseline {
            return Some(1.0);
        }
        self.measurements.get(&name)?.ratio.map(|r| r.median)
    }

    /// Was a candidate correct, and faster than the default beyond the noise?
    pub fn is_faster(&self, index: usize) -> bool {
        let Some(candidate) = self.report.candidates.get(index) else {
            return false;
        };
        let name = candidate
            .same_code_as()
            .map_or_else(|| candidate.name(), str::to_owned);
        self.measurements
            .get(&name)
            .is_some_and(|m| m.verdict.is_correct() && m.outcome == Some(Outcome::Faster))
    }

    /// The smallest ratio of any candidate that is faster than the default beyond the noise; 1 if
    /// none is.
    pub fn best_ratio(&self) -> Option<f64> {
        let faster = self
            .measurements
            .variants
            .iter()
            .filter(|m| m.verdict.is_correct() && m.outcome == Some(Outcome::Faster));
        let best = faster
            .filter_map(|m| m.ratio.map(|r| r.median))
            .fold(1.0, f64::min);
        Some(best)
    }
}

/// What is known of a version in the end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StencilVersion {
    /// How it was made.
    pub family: Family,
    /// What was chosen.
    pub plan: String,
    /// Predicted milliseconds per sweep.
    pub predicted_ms: Option<f64>,
    /// Why it is out: it does not compile, does not run, or computes something else.
    pub rejected: Option<String>,
    /// Largest difference from the host's double-precision reference over its largest magnitude, at
    /// the small sizes.
    pub reference_distance: Option<f64>,
    /// The same from the first version's results, at the full sizes.
    pub distance: Option<f64>,
    /// Milliseconds per sweep: median of the rounds.
    pub ms: Option<f64>,
    /// The fastest round.
    pub ms_min: Option<f64>,
    /// Its part of the original's time, where that is surely less.
    #[serde(default)]
    pub part: Option<f64>,
}

impl StencilVersion {
    /// Nothing measured yet.
    pub fn new(version: &Version) -> StencilVersion {
        StencilVersion {
            family: version.family,
            plan: version.plan.clone(),
            predicted_ms: version.predicted_ms,
            rejected: None,
            reference_distance: None,
            distance: None,
            ms: None,
            ms_min: None,
            part: None,
        }
    }
}

/// One stencil of a result file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StencilResult {
    /// `warpwright.stencil/1`
    pub schema: String,
    /// The input file.
    pub input: String,
    /// The stencil.
    pub stencil: String,
    /// The device.
    pub gpu: String,
    /// Its driver.
    pub driver: String,
    /// The compiler.
    pub nvcc: String,
    /// UTC.
    pub date: String,
    /// Sizes at which the times were taken.
    pub sizes: Vec<(String, i64)>,
    /// Sizes at which every version was compared with the host.
    pub checked_sizes: Vec<(String, i64)>,
    /// May sums be reordered?
    pub reassociate: bool,
    /// Every version, rejected ones too.
    pub versions: Vec<StencilVersion>,
    /// Index of the fastest.
    pub chosen: Option<usize>,
    /// Why that was not compared in the emulator.
    #[serde(default)]
    pub unchecked: Option<String>,
}

/// Tag of [`StencilResult`].
pub const STENCIL_SCHEMA: &str = "warpwright.stencil/1";
