//! The result files of `bench/foreign` and `bench/made`, and the lines that `terms` makes of them.

use std::path::Path;

use serde::{Deserialize, Serialize};
use warpwright_model::measured::Figures;

/// One build of one kernel, as measured and as predicted.
#[derive(Serialize, Deserialize)]
pub struct Row {
    /// Program.
    pub program: String,
    /// Part of the split.
    pub split: String,
    /// Mangled name, or what stands for it.
    pub kernel: String,
    /// `default`, a knob, or a recipe and what it is of.
    pub build: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Least of the runs' medians, nanoseconds.
    pub ns: f64,
    /// Largest of the medians over the least.
    pub noise: f64,
    /// What the model says.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The file, as far as it is needed here.
#[derive(Deserialize)]
pub struct Results {
    /// One for each kernel, geometry and build.
    pub records: Vec<Record>,
}

/// A measured build.
#[derive(Deserialize)]
pub struct Record {
    /// Program.
    pub program: String,
    /// `fit`, `validation` or `held-out`.
    pub split: String,
    /// Mangled name.
    pub kernel: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Bytes per block.
    pub dynamic_smem: u32,
    /// The knob.
    pub build: String,
    /// Name of the cubin, where it is not the knob's.
    pub file: Option<String>,
    /// Per thread.
    pub registers: u32,
    median_ns: Vec<f64>,
    total_ns: Vec<f64>,
}

impl Record {
    /// Threads per block.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Blocks of the launch.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Least median of the runs, nanoseconds. (Of one run in turns: the least time.)
    pub fn least(&self) -> f64 {
        self.median_ns.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Largest median over the least.
    pub fn noise(&self) -> f64 {
        self.median_ns.iter().copied().fold(0.0, f64::max) / self.least()
    }

    /// Least total time of the kernel within a run of the program, nanoseconds.
    pub fn total(&self) -> f64 {
        self.total_ns.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Reads the file.
///
/// # Errors
/// If it cannot be read or is no such file.
pub fn read(path: &Path) -> Result<Results, Box<dyn std::error::Error>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}
