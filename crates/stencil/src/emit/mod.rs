//! CUDA C++ from a schedule: a kernel whose threads compute a box of points each, and the kernels of a
//! stencil that was split.
//!
//! The kernel is the paper's: no shared memory, neighbouring threads meet in the L1 cache, and the
//! points of one thread share their loads in registers. Statements stand in the order of the
//! schedule; each value is loaded right before its first use.
//!
//! Bounds. Along an unrolled dimension the last thread may have fewer points than the others. It
//! computes the last full box of the domain instead and stores only the points that are its own,
//! so each point is stored by one thread, once. A domain smaller than the box is computed by the
//! plain kernel, one point a thread: the sweep's second choice.

mod body;
mod border;
mod names;
mod plain;

use std::collections::BTreeSet;

use super::evaluate::Sizes;
use super::ir::Stencil;
use super::schedule::build::{Unrolled, build};
use super::schedule::schedule_dag::{Schedule, best_schedule};
use super::schedule::schedule_tree::Options as ScheduleOptions;
use super::sweep::{Blocks, Choice, Condition, Entry, Grid, Names, Sweep, standalone};

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

/// What keeps nvcc and ptxas from undoing the order (docs/stencils.md has the
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
    /// Its name in [`Generated::text`].
    pub name: String,
    /// The end of the name.
    pub suffix: String,
    /// Its qualifiers and its statements.
    pub text: [String; 2],
    /// What a thread evaluates.
    pub unrolled: Unrolled,
    /// In which order.
    pub schedule: Schedule,
}

/// The kernels of a stencil, which may have been split.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The stencil whose parameters the kernels have.
    pub stencil: Stencil,
    /// All kernels and their launch.
    pub sweep: Sweep,
    /// The kernels that are launched for a domain that is large enough, in order.
    pub kernels: Vec<Kernel>,
}

impl Generated {
    /// A translation unit.
    pub fn text(&self) -> String {
        standalone(&self.stencil, Some(&self.sweep), None)
    }
}

/// Why no kernel can be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EmitError(String);

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

    fn factor(&self, dim: usize) -> u32 {
        self.factors.get(dim).copied().unwrap_or(1).max(1)
    }
}

/// Points that one thread may compute.
const MOST_POINTS: u64 = 64;

pub(crate) use border::add as add_border;

/// One kernel for a stencil, its border apart.
///
/// # Errors
/// The stencil has more than three dimensions, or a thread would compute too many points.
pub fn kernel(stencil: &Stencil, suffix: &str, options: &Options) -> Result<Kernel, EmitError> {
    if !(1..=3).contains(&stencil.dims.len()) {
        let dims = stencil.dims.len();
        return Err(EmitError(format!(
            "a domain of {dims} dimensions; 1 to 3 can be mapped to threads"
        )));
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
    let text = body::kernel(stencil, &unrolled, &schedule, options);
    Ok(Kernel {
        name: Names::new(&stencil.name, &BTreeSet::new()).entry(suffix),
        suffix: suffix.to_owned(),
        text,
        unrolled,
        schedule,
    })
}

/// The kernels of a stencil, which may have been split into `parts` that run one after the other (one part: the
/// stencil itself).
///
/// # Errors
/// As [`kernel`].
pub fn generate(parts: &[Stencil], options: &Options) -> Result<Generated, EmitError> {
    let mut stencil = parts
        .first()
        .ok_or_else(|| EmitError("a stencil without parts".to_owned()))?
        .clone();
    for (id, array) in stencil.arrays.iter_mut() {
        array.written = parts.iter().any(|part| part.arrays[id].written);
    }
    let plain = Options {
        factors: Vec::new(),
        ..options.clone()
    };
    let is_box = options.factors.iter().any(|&f| f > 1);
    let mut sweep = Sweep::default();
    let mut kernels = Vec::new();
    let add = |sweep: &mut Sweep, options: &Options, form: &str, conditions| {
        let mut choice = Choice {
            conditions,
            entries: Vec::new(),
        };
        let mut written = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let suffix = match parts.len() {
                1 => form.to_owned(),
                _ => format!("{form}_{at}"),
            };
            let kernel = kernel(part, &suffix, options)?;
            choice.entries.push(sweep.entries.len());
            let [qualifiers, body] = kernel.text.clone();
            sweep.entries.push(Entry {
                suffix,
                qualifiers,
                body,
                grid: grid(&stencil, options),
                block: options.block(&stencil),
                shared_bytes: 0,
            });
            written.push(kernel);
        }
        sweep.choices.push(choice);
        Ok(written)
    };
    let mut sizes = Vec::new();
    if let Some(known) = &options.sizes {
        sizes.extend(
            stencil
                .parameters
                .keys()
                .map(|p| Condition::Is(p, known[p])),
        );
    }
    if is_box {
        let mut conditions = sizes.clone();
        for (id, dim) in &stencil.dims {
            let factor = options.factor(id.as_u32() as usize);
            if factor > 1 {
                let less = dim.low + dim.high;
                conditions.push(Condition::AtLeast(dim.extent, less, factor.into()));
            }
        }
        kernels = add(&mut sweep, options, "box", conditions)?;
    }
    let points = add(&mut sweep, &plain, "points", sizes)?;
    border::add(&stencil, &mut sweep);
    if !is_box {
        kernels = points;
    }
    Ok(Generated {
        stencil,
        sweep,
        kernels,
    })
}

fn grid(stencil: &Stencil, options: &Options) -> Grid {
    let mut grid = [Blocks::ONE; 3];
    let block = options.block(stencil);
    for ((blocks, threads), (id, dim)) in grid.iter_mut().zip(block).zip(stencil.dims.iter().rev())
    {
        *blocks = Blocks {
            extent: dim.extent,
            less: dim.low + dim.high,
            per: threads * options.factor(id.as_u32() as usize),
        };
    }
    Grid::Box(grid)
}
