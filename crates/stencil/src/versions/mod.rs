//! The ways to compute a stencil among which `opt` and `tune` choose.
//!
//! Four families: the kernel as written (one point a thread), the same unrolled, the same scheduled for registers
//! (Rawat et al., PPoPP 2018), and kernels that stream through the domain (docs/stencils.md). One model predicts
//! all of them ([`Machine`]).
//!
//! * [`Problem`]: the input, and the text that a version of it becomes.
//! * [`climb`]: a version against the input, in the PTX emulator at odd and tiny sizes; `trial` has the sizes.
//! * [`reference`](reference()): results for the host's.
//!
//! Input and output are the caller's: what compiles is a closure.

mod ladder;
mod problem;
mod result;
mod trial;

pub use ladder::{Comparison, climb, variables};
pub use problem::{Launch, Output, Problem};
pub use result::{odd_sizes, reference, tolerance};
pub use trial::small_sizes;

use std::collections::BTreeSet;

use crate::emit;
use crate::evaluate::Sizes;
use crate::ir::Stencil;
use crate::stream::{self, Machine, Plan, Prediction, generate, search};
use crate::sweep::{Names, Sweep, device, standalone};
use serde::{Deserialize, Serialize};
use warpwright_target::Gpu;

/// How a version was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// As written: a thread computes a point.
    Original,
    /// A thread computes several points, statement by statement.
    Unrolled,
    /// The same, scheduled for registers.
    Reordered,
    /// Streamed along the outermost dimension.
    Streamed,
}

/// Boxes of points for the threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boxes {
    /// Points of a thread, by dimension, outermost first; missing ones count as 1.
    pub points: Vec<u32>,
    /// Threads of a block along x (the innermost dimension), y and z.
    pub block: [u32; 3],
    /// Most registers of a thread (`__maxnreg__`).
    pub registers: Option<u32>,
    /// The order of the operations is chosen for few registers (Rawat et al., PPoPP 2018), not that of the input.
    pub scheduled: bool,
}

impl Boxes {
    /// A thread computes a point, statement by statement.
    pub const AS_WRITTEN: Boxes = Boxes {
        points: Vec::new(),
        block: BLOCKS[0],
        registers: None,
        scheduled: false,
    };

    /// Its kernels.
    fn generate(&self, stencil: &Stencil) -> Result<emit::Generated, Unfit> {
        let product = |of: &[u32]| of.iter().fold(1u32, |all, n| all.saturating_mul(*n));
        let dims = stencil.dims.len();
        let fits = matches!(product(&self.block), 1..=1024)
            && self.points.len() <= dims
            && matches!(product(&self.points), 1..=64)
            && self.registers.is_none_or(|most| matches!(most, 1..=255));
        if !fits {
            return Err(Unfit::Shape);
        }
        Ok(emit::generate(
            std::slice::from_ref(stencil),
            &self.options(),
        )?)
    }

    /// How they are written.
    fn options(&self) -> emit::Options {
        emit::Options {
            block: self.block,
            registers: self.registers,
            factors: self.points.clone(),
            unscheduled: !self.scheduled,
            ..emit::Options::default()
        }
    }
}

/// The choices that make a version.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// A thread computes a box of points.
    Boxes(Boxes),
    /// A block streams along the outermost dimension.
    Stream(Plan),
}

impl Way {
    /// This way to compute a stencil.
    ///
    /// # Errors
    /// It is not one for this stencil: why not.
    pub fn sweep(&self, stencil: &Stencil) -> Result<Sweep, Unfit> {
        Ok(match self {
            Way::Boxes(boxes) => boxes.generate(stencil)?.sweep,
            Way::Stream(plan) => generate(stencil, plan)?.sweep,
        })
    }

    /// What it is, unless it stands for the kernel as written.
    pub fn family(&self) -> Family {
        match self {
            Way::Boxes(boxes) if boxes.scheduled => Family::Reordered,
            Way::Boxes(_) => Family::Unrolled,
            Way::Stream(_) => Family::Streamed,
        }
    }
}

/// Why a way is not one for a stencil.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A box without points or threads, or with more than there can be.
    #[error("the numbers are not those of a box of points")]
    Shape,
    /// A box cannot be written.
    #[error(transparent)]
    Boxes(#[from] emit::EmitError),
    /// Streaming is not possible.
    #[error(transparent)]
    Stream(#[from] stream::Refusal),
}

/// One way to compute a stencil.
#[derive(Debug, Clone)]
pub struct Version {
    /// How it was made.
    pub family: Family,
    /// What was chosen, in words.
    pub plan: String,
    /// What was chosen.
    pub way: Way,
    /// Its code and its launch.
    pub sweep: Sweep,
    /// Predicted milliseconds per sweep, where the model knows.
    pub predicted_ms: Option<f64>,
    /// The stencil permits to reassociate.
    pub(super) sums_move: bool,
}

impl Version {
    /// A version without a prediction.
    ///
    /// # Errors
    /// It is not one for this stencil: why not.
    pub fn new(stencil: &Stencil, way: Way) -> Result<Version, Unfit> {
        Ok(Version {
            family: way.family(),
            plan: format!("{way:?}"),
            sweep: way.sweep(stencil)?,
            way,
            predicted_ms: None,
            sums_move: stencil.reassociate,
        })
    }

    /// A thread computes a point, statement by statement.
    ///
    /// # Errors
    /// As [`Version::new`].
    pub fn as_written(stencil: &Stencil) -> Result<Version, Unfit> {
        Ok(Version {
            family: Family::Original,
            ..Version::new(stencil, Way::Boxes(Boxes::AS_WRITTEN))?
        })
    }

    /// Its results may differ by rounding.
    pub fn reassociates(&self) -> bool {
        match &self.way {
            Way::Stream(plan) => plan.reassociate,
            // Sums are written in a form of their own, scheduled or not.
            Way::Boxes(_) => self.sums_move,
        }
    }

    /// Its kernels alone, which begin with `name`.
    pub fn kernels(&self, stencil: &Stencil, name: &str) -> String {
        let names = Names::new(name, &BTreeSet::new());
        device(stencil, &self.sweep, &names, "")
    }

    /// A translation unit of its own for a stencil, and the function in it that launches it; `name` begins all names.
    pub fn unit(&self, stencil: &Stencil, name: &str) -> (String, String) {
        let stencil = Stencil {
            name: name.to_owned(),
            ..stencil.clone()
        };
        let text = standalone(&stencil, Some(&self.sweep), None);
        (text, format!("{name}_launch"))
    }
}

/// Blocks that people would try for a kernel with a thread per point.
const BLOCKS: [[u32; 3]; 3] = [[32, 4, 1], [64, 4, 1], [32, 8, 1]];
/// Register limits that people would sweep; `None` is the compiler's own choice.
const LIMITS: [Option<u32>; 4] = [None, Some(64), Some(96), Some(128)];

/// A thread computes a point, statement by statement.
pub(super) fn as_written(stencil: &Stencil) -> Option<Sweep> {
    Way::Boxes(Boxes::AS_WRITTEN).sweep(stencil).ok()
}

/// The versions of a stencil, the kernel as written first. `streamed` says how many of the model's favourites among the
/// streaming kernels are wanted; `swept`, whether to add what people would sweep by hand. `launched`: threads of a block of
/// the kernel as written, where they are known.
pub fn versions(
    stencil: &Stencil,
    gpu: &Gpu,
    (sizes, launched): (&Sizes, Option<[u32; 3]>),
    streamed: usize,
    swept: bool,
) -> Vec<Version> {
    let machine = Machine::new(gpu).ok();
    let mut found = Vec::new();
    let blocks = if swept { &BLOCKS[..] } else { &BLOCKS[..1] };
    let limits = if swept { &LIMITS[..] } else { &LIMITS[..1] };
    let mut add = |family, way: Boxes| {
        found.extend(boxes(stencil, family, way, machine.as_ref(), sizes));
    };
    let plain = Boxes::AS_WRITTEN;
    let own = launched.map(|block| Boxes {
        block,
        ..plain.clone()
    });
    let own = own.filter(|own| own.generate(stencil).is_ok());
    let others = blocks.iter().filter(|_| own.is_none() || swept);
    if let Some(own) = &own {
        add(Family::Original, own.clone());
    }
    for &block in others.filter(|block| Some(**block) != launched) {
        for &registers in &limits[..limits.len().div_ceil(2)] {
            let way = Boxes {
                block,
                registers,
                ..plain.clone()
            };
            add(Family::Original, way);
        }
    }
    for &registers in limits {
        let way = |points, scheduled| Boxes {
            points,
            registers,
            scheduled,
            ..plain.clone()
        };
        add(Family::Unrolled, way(factors(stencil), false));
        for factors in several_factors(stencil, swept) {
            add(Family::Reordered, way(factors, true));
        }
    }
    found.extend(streaming(stencil, gpu, sizes, streamed));
    found
}

/// The streaming kernels that the model likes best; none where the stencil or the GPU is not one for them.
fn streaming(stencil: &Stencil, gpu: &Gpu, sizes: &Sizes, keep: usize) -> Vec<Version> {
    let ranked = search(stencil, gpu, sizes, keep).unwrap_or_default();
    let versions = ranked.into_iter().map(|ranked| Version {
        family: Family::Streamed,
        plan: format!("{} ({} bound)", ranked.plan, ranked.bound),
        way: Way::Stream(ranked.plan),
        sweep: ranked.kernel.sweep,
        predicted_ms: Some(ranked.predicted_ms),
        sums_move: stencil.reassociate,
    });
    versions.collect()
}

/// Points per thread: what the stencil asks for, else four along the dimension before the contiguous one.
fn factors(stencil: &Stencil) -> Vec<u32> {
    let count = stencil.dims.len();
    let asked: Vec<u32> = stencil
        .dims
        .values()
        .map(|d| d.unroll.unwrap_or(1))
        .collect();
    if asked.iter().any(|&factor| factor > 1) {
        return asked;
    }
    let default = |at: usize| {
        if at + 2 == count || count == 1 { 4 } else { 1 }
    };
    (0..count).map(default).collect()
}

/// Points per thread of the scheduled kernels: along the outer dimensions, where neighbours share most. A stencil of
/// many arrays has registers for few.
fn several_factors(stencil: &Stencil, swept: bool) -> Vec<Vec<u32>> {
    let asked = factors(stencil);
    if !swept {
        return vec![asked];
    }
    let has_many = stencil.arrays.len() > 2;
    let all: &[&[u32]] = match (stencil.dims.len(), has_many) {
        (2, _) => &[&[4, 1], &[8, 1], &[16, 1], &[8, 2]],
        (3, false) => &[&[4, 1, 1], &[4, 4, 1], &[8, 2, 1]],
        (3, true) => &[&[1, 1, 1], &[2, 1, 1]],
        _ => return vec![asked],
    };
    all.iter().map(|factors| factors.to_vec()).collect()
}

/// A version of the paper's form; none where it cannot be written.
fn boxes(
    stencil: &Stencil,
    family: Family,
    way: Boxes,
    machine: Option<&Machine>,
    sizes: &Sizes,
) -> Option<Version> {
    let options = way.options();
    let generated = way.generate(stencil).ok()?;
    let [x, y, z] = options.block(stencil);
    let points: Vec<String> = options.factors.iter().map(u32::to_string).collect();
    let mut plan = format!("block {x}x{y}x{z}");
    if !points.is_empty() {
        plan += &format!(" points {}", points.join("x"));
    }
    if let Some(registers) = options.registers {
        plan += &format!(" registers {registers}");
    }
    // The kernel as written computes its border itself.
    let apart = match (family, machine) {
        (Family::Original, _) | (_, None) => 0.0,
        (_, Some(machine)) => machine.border_ms(stencil),
    };
    let predicted: Option<Prediction> =
        machine.and_then(|m| m.predict_boxes(stencil, &generated, &options, sizes));
    if let Some(predicted) = &predicted {
        plan += &format!(" ({} bound)", predicted.bound);
    }
    Some(Version {
        family,
        plan,
        way: Way::Boxes(way),
        sweep: generated.sweep,
        predicted_ms: predicted.map(|p| p.ms + apart),
        sums_move: stencil.reassociate,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsl;

    #[test]
    fn every_version_has_a_prediction_and_a_launcher() {
        let stencil = dsl::parse(
            "function f (out, in) {\n  out[j][i] = in[j-1][i] + in[j][i+2];\n}\nparameter M, N;\niterator j, i;\n\
             double in[M][N], out[M][N];\nf (out, in);\nreturn out;\n",
        )
        .unwrap();
        let gpu = warpwright_target::lookup("h200").unwrap();
        let sizes: Sizes = [1000, 1000].into_iter().collect();
        let found = versions(&stencil, &gpu, (&sizes, None), 3, true);
        assert_eq!(found[0].family, Family::Original);
        for (number, version) in found.iter().enumerate() {
            assert!(
                version.predicted_ms.is_some_and(|ms| ms > 0.0),
                "{version:?}"
            );
            let (text, launcher) = version.unit(&stencil, &format!("v{number}"));
            assert!(text.contains(&format!("cudaError_t {launcher}(")), "{text}");
        }
        // As it is launched, where that is known; a block that there is none of is left out.
        for (block, plan) in [
            ([64, 16, 1], "block 64x16x1"),
            ([64, 32, 1], "block 32x4x1"),
        ] {
            let found = versions(&stencil, &gpu, (&sizes, Some(block)), 0, false);
            let originals = found.iter().filter(|v| v.family == Family::Original);
            let plans: Vec<&String> = originals.map(|version| &version.plan).collect();
            assert!(
                matches!(&plans[..], [only] if only.starts_with(plan)),
                "{plans:?}"
            );
        }
    }
}
