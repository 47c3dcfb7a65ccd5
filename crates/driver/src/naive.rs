//! The first schedule in the order of the predictions that agrees with the input; and whether a kernel is naive at all.

use warpwright_cudac::diag::Diagnostic;
use warpwright_cudac::{File, Header};
use warpwright_ladder::Fall;
use warpwright_naive::families::written;
use warpwright_naive::ir::Kernel;
use warpwright_naive::recognise::is_marked;
use warpwright_naive::search::{Prediction, Way, ranked};
use warpwright_naive::versions::Problem;
use warpwright_pass::{Artifact, Executor, Invocation, Refusal, RunError, Target};
use warpwright_stencil::extract;
use warpwright_target::Gpu;

use crate::source::{Attempt, Kept, attempt};

/// A schedule must be predicted to take less than this part of the kernel as written: the model is not surer than that.
pub const MARGIN: f64 = 0.8;

/// The same where memory alone counts.
pub const MEMORY_MARGIN: f64 = 0.95;

/// What a way must be predicted to gain.
fn margin(way: &Way) -> f64 {
    match way {
        Way::Across(_) | Way::Fours(_) => MEMORY_MARGIN,
        Way::Tiles(_) | Way::Team(_) | Way::Prefix(_) | Way::Totals(_) => MARGIN,
    }
}

/// Schedules that are tried before the kernel is kept as it is.
const TRIED: usize = 6;

/// Why a kernel that computes one output element in a thread is no stencil.
#[derive(Clone, Debug)]
pub enum NoStencil {
    /// Something of it has no place in a stencil.
    Refused(Diagnostic),
    /// It reads too few places around its point.
    NoNeighbours,
    /// Its pragma says that it is naive.
    Marked,
}

/// What a kernel is.
pub enum Kind {
    /// A stencil: reads the neighbourhood of its point, without a loop over operands.
    Stencil,
    /// A naive kernel, and why it is no stencil.
    Naive(Box<Problem>, NoStencil),
    /// Neither, and the reasons against both.
    Neither {
        /// Why it is no stencil.
        stencil: Option<Diagnostic>,
        /// Why it is not naive.
        naive: Diagnostic,
    },
}

/// Decides what a kernel is. What its pragma says counts first; a sweep over neighbours without loops is a stencil
/// whatever it is called.
///
/// # Errors
/// A pragma that is not understood.
pub fn kind(file: &File, header: &Header) -> Result<Kind, Diagnostic> {
    let marked = is_marked(file, header)?;
    if extract::is_marked(file, header)? {
        return Ok(Kind::Stencil);
    }
    let problem = Problem::new(file.clone(), header);
    let stencil = extract::extract(file, header);
    Ok(match (problem, stencil) {
        (Err(_), Ok(_)) => Kind::Stencil,
        // A naive kernel's index is not clamped or wrapped.
        (Ok(_), Ok(stencil)) if stencil.has_edges() => Kind::Stencil,
        (Ok(problem), Ok(_)) => match (is_sweep(&problem), problem.kernel.loops.is_empty()) {
            (true, _) => Kind::Stencil,
            (false, true) => Kind::Naive(Box::new(problem), NoStencil::NoNeighbours),
            (false, false) if marked => Kind::Naive(Box::new(problem), NoStencil::Marked),
            (false, false) => Kind::Stencil,
        },
        (Ok(problem), Err(reasons)) => {
            let first = reasons.into_iter().next();
            let why = first.map_or(NoStencil::NoNeighbours, NoStencil::Refused);
            Kind::Naive(Box::new(problem), why)
        }
        (Err(naive), Err(stencil)) => Kind::Neither {
            stencil: stencil.into_iter().next(),
            naive,
        },
    })
}

/// Does it read an array at several places around its point, without loops?
fn is_sweep(problem: &Problem) -> bool {
    let kernel = &problem.kernel;
    let reads = |array: usize| {
        let of = kernel
            .accesses
            .iter()
            .filter(|a| a.array == array && a.affine().is_some());
        of.count()
    };
    let arrays = kernel.arrays.iter().enumerate();
    kernel.loops.is_empty()
        && arrays
            .filter(|(_, a)| !a.stored)
            .any(|(at, _)| reads(at) >= 4)
}

/// A way to compute the points, and what became of it.
#[derive(Clone, Debug)]
pub struct Version {
    /// The pass that does it.
    pub pass: Invocation,
    /// How long it should take.
    pub predicted: Prediction,
    /// Why it is out.
    pub rejected: Option<Fall<Refusal>>,
}

/// The choice.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// What was tried, in the order of the predictions, then the kernel as written.
    pub versions: Vec<Version>,
    /// The number of the chosen one; none: the kernel stays as written.
    pub version: Option<usize>,
    /// Its text, and what is known of it.
    pub kept: Option<Kept>,
    /// Predicted time of the kernel as written, in milliseconds.
    pub original_ms: Option<f64>,
}

/// The time of the fastest way over that of the kernel as written, as predicted; `None` where no way gains enough. Another
/// block alone promises nothing: predicted at 0.73 and 0.59 of the time, it took 1.01 and 0.89 of it (docs/naive.md).
pub fn promise(kernel: &Kernel, gpu: &Gpu) -> Option<f64> {
    let original = written(kernel, gpu)?;
    let is_block_alone = |way: &Way| matches!(way, Way::Tiles(tiles) if tiles.is_block_alone());
    let parts = ranked(kernel, gpu).into_iter();
    let parts = parts.filter(|(way, _)| !is_block_alone(way));
    let parts = parts.map(|(way, predicted)| (margin(&way), predicted.ms / original));
    let gains = parts.filter(|(margin, part)| part < margin);
    gains.map(|(_, part)| part).min_by(f64::total_cmp)
}

/// Tries the ways, the one that is predicted to be the fastest first, until one agrees. The kernel as written wins
/// where nothing is predicted to gain. What could not be compared is taken, and says so.
///
/// # Errors
/// The file cannot be read or written.
pub fn choose(
    kernel: &Kernel,
    (file, target): (&Artifact, &Target<'_>),
    executor: &mut Executor<'_>,
) -> Result<Chosen, RunError> {
    let gpu = target.setting.gpu;
    let original = written(kernel, gpu);
    let mut chosen = Chosen {
        versions: Vec::new(),
        version: None,
        kept: None,
        original_ms: original,
    };
    for (way, predicted) in ranked(kernel, gpu) {
        let gains = |part: f64| original.is_some_and(|ms| predicted.ms < part * ms);
        if !gains(MEMORY_MARGIN) || chosen.versions.len() == TRIED {
            break;
        }
        if !gains(margin(&way)) {
            continue;
        }
        let mut version = Version {
            pass: way.into(),
            predicted,
            rejected: None,
        };
        let fall = match attempt(&version.pass, (file, target), executor)? {
            Attempt::Kept(kept) => {
                chosen.version = Some(chosen.versions.len());
                chosen.versions.push(version);
                chosen.kept = Some(*kept);
                break;
            }
            Attempt::Falls(fall) => fall,
            Attempt::NotOne => continue,
        };
        version.rejected = Some(fall);
        chosen.versions.push(version);
    }
    Ok(chosen)
}
