//! What the model says of builds of a kernel that were measured, beside its default build: what fits read.

use serde::{Deserialize, Serialize};
use warpwright_sass::{Kernel, Profile};
use warpwright_target::{Gpu, Resources, occupancy};

use crate::features::{Build, Terms, features};
use crate::{Case, Parameters, grid_warps, inserted, predict, profile, tpsc};

/// A build as it was launched.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// Its machine code.
    pub kernel: &'a Kernel,
    /// Registers per thread.
    pub registers: u32,
    /// Threads per block.
    pub threads: u32,
    /// Blocks.
    pub blocks: u64,
    /// Bytes per block.
    pub dynamic_smem: u32,
}

/// What is known of it without a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Registers per thread.
    pub registers: u32,
    /// Blocks per SM that the resources allow.
    pub blocks: u32,
    /// The same in warps.
    pub warps: u32,
    /// Warps per SM that the grid brings, at most.
    pub grid_warps: Option<u32>,
    /// Bytes of local memory per thread, loops weighted.
    pub local_bytes: f64,
    /// Cycles of a warp alone, loops weighted.
    pub lone: f64,
    /// CRAT's measure, and its share of parallelism, which decides among equals.
    pub tpsc: [f64; 2],
    /// Predicted cycles; only their ratio to another build's means something.
    pub cycles: f64,
    /// The same without the grid.
    pub cycles_of_full_grid: f64,
    /// [`crate::features::NAMES`], in five digits.
    pub features: Vec<f64>,
}

/// The figures of builds of a kernel, beside those of the default build, which has this number; none where the board
/// cannot run a build, or the default.
pub fn figures(gpu: &Gpu, default: usize, builds: &[Measured<'_>]) -> Vec<Option<Figures>> {
    let parameters = Parameters::default();
    let parts: Vec<Option<(Build<'_>, Profile)>> = builds
        .iter()
        .map(|build| {
            let build = build.build(gpu)?;
            Some((build, profile(&build.case, &parameters)))
        })
        .collect();
    let spilled = |p: &Profile| p.local_load_bytes + p.local_store_bytes;
    let known = parts.iter().flatten().map(|(_, profile)| profile);
    let least = known.min_by(|a, b| spilled(a).total_cmp(&spilled(b)));
    let (Some(Some((first, of_first))), Some(least)) = (parts.get(default), least) else {
        return vec![None; builds.len()];
    };
    let of_default = Terms::new(first, &parameters);
    let global_bytes = Some(of_first.global_bytes);
    let cycles = |case: &Case| predict(case, &parameters).cycles;
    let figures = |build: &Build<'_>, profile: &Profile| {
        let case = Case {
            global_bytes,
            ..build.case
        };
        let full = Case {
            grid_warps: None,
            ..case
        };
        let measure = tpsc(gpu, build.blocks, build.threads, &inserted(profile, least));
        let promised = cycles(&case) / cycles(&first.case);
        let features = features(&of_default, &Terms::new(build, &parameters), promised);
        Figures {
            registers: build.registers,
            blocks: build.blocks,
            warps: case.warps,
            grid_warps: case.grid_warps,
            local_bytes: spilled(profile),
            lone: profile.warp_cycles,
            tpsc: [measure.value(), measure.tlp_gain],
            cycles: cycles(&case),
            cycles_of_full_grid: cycles(&full),
            features: features.map(five_digits).to_vec(),
        }
    };
    let all = parts.iter().map(Option::as_ref);
    all.map(|part| part.map(|(build, profile)| figures(build, profile)))
        .collect()
}

impl<'a> Measured<'a> {
    /// Where it runs on a board; none where it cannot.
    fn build(&self, gpu: &'a Gpu) -> Option<Build<'a>> {
        let first = gpu.arch.first_shared_address();
        let need = Resources {
            regs: self.registers,
            block_threads: self.threads,
            static_smem: self.kernel.shared_bytes.saturating_sub(first),
            dynamic_smem: self.dynamic_smem,
            barriers: 0,
        };
        let resident = occupancy(gpu, &need).ok()?;
        let per_block = self.kernel.shared_bytes + self.dynamic_smem;
        let case = Case {
            gpu,
            code: &self.kernel.code,
            targets: &self.kernel.targets,
            warps: resident.warps,
            grid_warps: grid_warps(gpu, self.blocks, self.threads),
            frame_bytes: self.kernel.frame_bytes,
            shared_per_sm: per_block.saturating_mul(resident.blocks),
            global_bytes: None,
            counts: None,
        };
        Some(Build {
            case,
            registers: self.registers,
            threads: self.threads,
            blocks: resident.blocks,
            grid: Some(self.blocks),
        })
    }
}

/// The number in five significant digits: a file of them stays small.
fn five_digits(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}
