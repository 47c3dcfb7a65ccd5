//! CUDA C++ from a schedule: a kernel whose threads compute a box of points each, its launcher, and
//! the kernels of a stencil that was split.
//!
//! The kernel is the paper's: no shared memory, neighbouring threads meet in the L1 cache, and the
//! points of one thread share their loads in registers. Statements stand in the order of the
//! schedule; each value is loaded right before its first use.
//!
//! Bounds. Along an unrolled dimension the last thread may have fewer points than the others. It
//! computes the last full box of the domain instead and stores only the points that are its own,
//! so each point is stored by one thread, once. A domain smaller than the box is computed by the
//! plain kernel, one point a thread; the launcher decides.

mod body;
mod launcher;
mod names;

use std::fmt::Write as _;

use super::evaluate::{Sizes, range};
use super::ir::Stencil;
use super::schedule::build::{Unrolled, build};
use super::schedule::schedule_dag::{Schedule, best_schedule};
use super::schedule::schedule_tree::Options as ScheduleOptions;

/// How a kernel is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Points per thread, by dimension, outermost first; missing ones count as 1.
    pub factors: Vec<u32>,
    /// Threads per block along x (the innermost dimension), y and z.
    pub block: [u32; 3],
    /// `__maxnreg__`: most registers per thread.
    pub registers: Option<u32>,
    /// Sizes to write into the kernel as constants; the launcher refuses others.
    pub sizes: Option<Sizes>,
    /// What keeps the compiler from changing the order.
    pub order: Hold,
    /// The knobs of the scheduler.
    pub schedule: ScheduleOptions,
    /// Evaluate each statement as written, in the order of the input: for comparison.
    pub unscheduled: bool,
}

/// What keeps nvcc and ptxas from undoing the order (docs/stencil-scheduling.md has the
/// measurements).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// Nothing: the order of the text is a proposal.
    #[default]
    Text,
    /// `asm volatile("" ::: "memory")` after every so many steps: binds nvcc's own optimizer.
    Fence(u32),
}

impl Default for Options {
    fn default() -> Options {
        Options {
            factors: Vec::new(),
            block: [32, 4, 1],
            registers: None,
            sizes: None,
            order: Hold::Text,
            schedule: ScheduleOptions::default(),
            unscheduled: false,
        }
    }
}

/// A kernel with its schedule.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// `__global__ void name(…) {…}`.
    pub text: String,
    /// What a thread evaluates.
    pub unrolled: Unrolled,
    /// In which order.
    pub schedule: Schedule,
}

/// A translation unit.
#[derive(Clone, Debug)]
pub struct Generated {
    /// CUDA C++.
    pub text: String,
    /// The kernels that the launcher calls for a domain that is large enough, in order.
    pub kernels: Vec<Kernel>,
}

/// Why no kernel can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmitError(String);

impl std::fmt::Display for EmitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EmitError {}

impl Options {
    /// The block of a stencil's kernels. A domain of fewer dimensions has no use for threads along the
    /// others: each of them would compute the same points again.
    pub fn block(&self, stencil: &Stencil) -> [u32; 3] {
        let [x, y, z] = self.block;
        match stencil.dims.len() {
            1 => [x * y * z, 1, 1],
            2 => [x, y * z, 1],
            _ => [x, y, z],
        }
    }
}

/// Points that one thread may compute.
const MOST_POINTS: u64 = 64;

/// One kernel for a stencil.
///
/// # Errors
/// The stencil has more than three dimensions, or a thread would compute too many points.
pub fn kernel(stencil: &Stencil, name: &str, options: &Options) -> Result<Kernel, EmitError> {
    if !(1..=3).contains(&stencil.dims.len()) {
        let dims = stencil.dims.len();
        return Err(EmitError(format!(
            "a domain of {dims} dimensions; 1 to 3 can be mapped to threads"
        )));
    }
    if let Some(what) = stencil.unwritten() {
        return Err(EmitError(what.to_owned()));
    }
    let points: u64 = options
        .factors
        .iter()
        .map(|&f| u64::from(f.max(1)))
        .product();
    if points > MOST_POINTS {
        return Err(EmitError(format!(
            "{points} points per thread; {MOST_POINTS} at most"
        )));
    }
    let unrolled = build(stencil, &options.factors);
    let schedule = match options.unscheduled {
        true => Schedule::as_written(&unrolled.dag),
        false => best_schedule(&unrolled.dag, options.schedule),
    };
    let text = body::kernel(stencil, &unrolled, &schedule, name, options);
    Ok(Kernel {
        name: name.to_owned(),
        text,
        unrolled,
        schedule,
    })
}

/// The grid of a kernel for given sizes, along x, y and z: what the launcher computes. `None` if
/// the domain has no points, or fewer along a dimension than a thread computes (the launcher then
/// takes the plain kernels).
pub fn grid(stencil: &Stencil, options: &Options, sizes: &Sizes) -> Option<[u64; 3]> {
    let mut grid = [1; 3];
    let block = options.block(stencil);
    for (at, (id, dim)) in stencil.dims.iter().rev().enumerate().take(3) {
        let (low, end) = range(dim, sizes);
        let factor = options
            .factors
            .get(id.as_u32() as usize)
            .copied()
            .unwrap_or(1)
            .max(1);
        let cells = u64::try_from(end - low).ok()?;
        if cells < u64::from(factor) {
            return None;
        }
        grid[at] = cells.div_ceil(u64::from(block[at]) * u64::from(factor));
    }
    Some(grid)
}

/// A translation unit for a stencil, which may have been split into `parts` that run one after the
/// other (one part: the stencil itself).
///
/// # Errors
/// As [`kernel`].
pub fn generate(parts: &[Stencil], options: &Options) -> Result<Generated, EmitError> {
    let mut kernels = Vec::new();
    let mut plain = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let name = match parts.len() {
            1 => part.name.clone(),
            _ => format!("{}_{at}", part.name),
        };
        kernels.push(kernel(part, &name, options)?);
        if options.factors.iter().any(|&f| f > 1) {
            let options = Options {
                factors: Vec::new(),
                ..options.clone()
            };
            plain.push(kernel(part, &format!("{name}_plain"), &options)?);
        }
    }
    let mut text = "#include <cuda_runtime.h>\n".to_owned();
    for kernel in kernels.iter().chain(&plain) {
        let _ = write!(text, "\n{}", kernel.text);
    }
    let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
    text += &launcher::launcher(parts, &names, options);
    Ok(Generated { text, kernels })
}
