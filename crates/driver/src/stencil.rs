//! Stencils from source to source: the versions among which `opt` and `tune` choose, and what is
//! measured of them.
//!
//! A version is a translation unit with a launcher of plain C signature. Four families:
//! the kernel as written (one point a thread), the same unrolled, the same scheduled for registers
//! (Rawat et al., PPoPP 2018), and kernels that stream through the domain (docs/stencil-codegen.md).

use serde::{Deserialize, Serialize};
use warpwright_stencil::emit;
use warpwright_stencil::evaluate::{Data, SizeError, Sizes, evaluate};
use warpwright_stencil::ir::{Element, Stencil};
use warpwright_stencil::stream::search;
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

/// One way to compute a stencil.
#[derive(Debug, Clone)]
pub struct Version {
    /// How it was made.
    pub family: Family,
    /// What was chosen, in words.
    pub plan: String,
    /// CUDA C++.
    pub source: String,
    /// The function that launches it, `extern "C"`.
    pub launcher: String,
    /// What its functions are named for: unique among the versions.
    name: String,
    /// Predicted milliseconds per sweep, where the model knows.
    pub predicted_ms: Option<f64>,
}

impl Version {
    /// The text for people: named for the stencil itself.
    pub fn text(&self, stencil: &Stencil) -> String {
        self.source.replace(&self.name, &stencil.name)
    }
}

/// What is known of a version in the end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
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
}

impl Measured {
    /// Nothing measured yet.
    pub fn new(version: &Version) -> Measured {
        Measured {
            family: version.family,
            plan: version.plan.clone(),
            predicted_ms: version.predicted_ms,
            rejected: None,
            reference_distance: None,
            distance: None,
            ms: None,
            ms_min: None,
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
    pub versions: Vec<Measured>,
    /// Index of the fastest.
    pub chosen: Option<usize>,
}

/// Tag of [`StencilResult`].
pub const SCHEMA: &str = "warpwright.stencil/1";

/// Blocks that people would try for a kernel with a thread per point.
const BLOCKS: [[u32; 3]; 3] = [[32, 4, 1], [64, 4, 1], [32, 8, 1]];
/// Register limits that people would sweep; `None` is the compiler's own choice.
const LIMITS: [Option<u32>; 4] = [None, Some(64), Some(96), Some(128)];

/// The versions of a stencil, the kernel as written first. `streamed` says how many of the model's
/// favourites among the streaming kernels are wanted; `swept`, whether to add what people would
/// sweep by hand.
pub fn versions(
    stencil: &Stencil,
    gpu: &Gpu,
    sizes: &Sizes,
    streamed: usize,
    swept: bool,
) -> Vec<Version> {
    let mut found = Vec::new();
    let blocks = if swept { &BLOCKS[..] } else { &BLOCKS[..1] };
    let limits = if swept { &LIMITS[..] } else { &LIMITS[..1] };
    let options = |block, registers, factors: &[u32], unscheduled| emit::Options {
        block,
        registers,
        factors: factors.to_vec(),
        unscheduled,
        ..emit::Options::default()
    };
    let mut add = |family, options: emit::Options| {
        let number = found.len();
        found.extend(written(stencil, family, &options, number));
    };
    for &block in blocks {
        for &registers in &limits[..limits.len().div_ceil(2)] {
            add(Family::Original, options(block, registers, &[], true));
        }
    }
    for &registers in limits {
        add(
            Family::Unrolled,
            options(BLOCKS[0], registers, &factors(stencil), true),
        );
        for factors in several_factors(stencil, swept) {
            add(
                Family::Reordered,
                options(BLOCKS[0], registers, &factors, false),
            );
        }
    }
    found.extend(streaming(stencil, gpu, sizes, streamed));
    found
}

/// The streaming kernels that the model likes best; none where the stencil or the GPU is not one for
/// them.
fn streaming(stencil: &Stencil, gpu: &Gpu, sizes: &Sizes, keep: usize) -> Vec<Version> {
    let ranked = search(&renamed(stencil, "stream"), gpu, sizes, keep).unwrap_or_default();
    let versions = ranked.into_iter().enumerate().map(|(at, ranked)| {
        let launcher = format!("{}{at}", ranked.kernel.name);
        Version {
            family: Family::Streamed,
            plan: format!("{} ({} bound)", ranked.plan, ranked.bound),
            source: ranked.kernel.source.replace(&ranked.kernel.name, &launcher),
            name: launcher.clone(),
            launcher,
            predicted_ms: Some(ranked.predicted_ms),
        }
    });
    versions.collect()
}

/// Points per thread: what the stencil asks for, else four along the dimension before the contiguous
/// one.
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
    let default = |at: usize| if at + 2 == count { 4 } else { 1 };
    (0..count).map(default).collect()
}

/// Points per thread of the scheduled kernels: along the outer dimensions, where neighbours share most.
/// A stencil of many arrays has registers for few.
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

fn renamed(stencil: &Stencil, suffix: &str) -> Stencil {
    Stencil {
        name: format!("{}_{suffix}", stencil.name),
        ..stencil.clone()
    }
}

/// A version of the paper's form; none where it cannot be written.
fn written(
    stencil: &Stencil,
    family: Family,
    options: &emit::Options,
    number: usize,
) -> Option<Version> {
    let stencil = renamed(stencil, &format!("v{number}"));
    let generated = emit::generate(std::slice::from_ref(&stencil), options).ok()?;
    let [x, y, z] = options.block;
    let points: Vec<String> = options.factors.iter().map(u32::to_string).collect();
    let mut plan = format!("block {x}x{y}x{z}");
    if !points.is_empty() {
        plan += &format!(" points {}", points.join("x"));
    }
    if let Some(registers) = options.registers {
        plan += &format!(" registers {registers}");
    }
    Some(Version {
        family,
        plan,
        source: generated.text,
        launcher: format!("launch_{}", stencil.name),
        name: stencil.name,
        predicted_ms: None,
    })
}

/// Small sizes that are no multiples of anything: the halo and an odd number of cells, another for
/// each parameter.
pub fn odd_sizes(stencil: &Stencil) -> Sizes {
    const CELLS: [i64; 4] = [37, 43, 71, 29];
    let mut sizes = Sizes::new();
    for (at, (parameter, _)) in stencil.parameters.iter().enumerate() {
        let of = stencil
            .dims
            .values()
            .filter(|dim| dim.extent.parameter == Some(parameter));
        let halo = of.map(|dim| dim.low + dim.high - dim.extent.add).max();
        sizes.push(halo.unwrap_or(0) + CELLS[at % CELLS.len()]);
    }
    sizes
}

/// What the host computes at some sizes from the sample data.
///
/// # Errors
/// The sizes are no sizes for the stencil.
pub fn reference(stencil: &Stencil, sizes: &Sizes) -> Result<Data, SizeError> {
    let mut data = Data::sample(stencil, sizes)?;
    evaluate(stencil, sizes, &mut data)?;
    Ok(data)
}

/// Largest difference between the written arrays, as a version left them in memory one behind the
/// other, and the reference, over the reference's largest magnitude. `None` where the length is wrong.
pub fn distance(stencil: &Stencil, reference: &Data, bytes: &[u8]) -> Option<f64> {
    let mut rest = bytes;
    let mut worst = 0.0f64;
    for (id, array) in stencil.arrays.iter().filter(|(_, array)| array.written) {
        let (mut apart, mut magnitude) = (0.0f64, 0.0f64);
        for &expected in &reference.arrays[id] {
            let found = match array.element {
                Element::F32 => {
                    let (head, tail) = rest.split_first_chunk::<4>()?;
                    rest = tail;
                    f64::from(f32::from_le_bytes(*head))
                }
                Element::F64 => {
                    let (head, tail) = rest.split_first_chunk::<8>()?;
                    rest = tail;
                    f64::from_le_bytes(*head)
                }
            };
            let difference = (found - expected).abs();
            apart = if difference.is_nan() {
                f64::INFINITY
            } else {
                apart.max(difference)
            };
            magnitude = magnitude.max(expected.abs());
        }
        worst = worst.max(if magnitude > 0.0 {
            apart / magnitude
        } else {
            apart
        });
    }
    rest.is_empty().then_some(worst)
}

/// How far a correct version may be from the reference: sums of some hundred terms in another order,
/// with fused operations.
pub fn tolerance(stencil: &Stencil) -> f64 {
    let single = |array: &warpwright_stencil::ir::Array| array.element == Element::F32;
    match stencil.arrays.values().any(single) {
        true => 1e-5,
        false => 1e-13,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_stencil::dsl;

    const TEXT: &str = "function f (out, in) {\n  out[j][i] = in[j-1][i] + in[j][i+2];\n}\n\
                        parameter M, N;\niterator j, i;\ndouble in[M][N], out[M][N];\n\
                        f (out, in);\nreturn out;\n";

    #[test]
    fn sizes_to_check_at_leave_a_domain() {
        let stencil = dsl::parse(TEXT).unwrap();
        let sizes = odd_sizes(&stencil);
        let found: Vec<i64> = sizes.values().copied().collect();
        assert_eq!(found, [1 + 37, 2 + 43]);
        assert!(reference(&stencil, &sizes).is_ok());
    }

    #[test]
    fn results_are_compared_element_by_element() {
        let stencil = dsl::parse(TEXT).unwrap();
        let sizes = odd_sizes(&stencil);
        let reference = reference(&stencil, &sizes).unwrap();
        let (id, _) = stencil.arrays.iter().find(|(_, a)| a.written).unwrap();
        let mut values = reference.arrays[id].clone();
        let bytes = |values: &[f64]| {
            values
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        assert_eq!(distance(&stencil, &reference, &bytes(&values)), Some(0.0));
        values[100] += 0.5;
        assert!(distance(&stencil, &reference, &bytes(&values)).unwrap() > 0.1);
        values[100] = f64::NAN;
        assert_eq!(
            distance(&stencil, &reference, &bytes(&values)),
            Some(f64::INFINITY)
        );
        assert_eq!(distance(&stencil, &reference, &bytes(&values[1..])), None);
    }

    #[test]
    fn versions_have_names_of_their_own() {
        let stencil = dsl::parse(TEXT).unwrap();
        let gpu = warpwright_target::lookup("h200").unwrap();
        let mut sizes = Sizes::new();
        sizes.push(1000);
        sizes.push(1000);
        let found = versions(&stencil, &gpu, &sizes, 3, true);
        let mut names: Vec<&str> = found.iter().map(|v| v.launcher.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), found.len());
        assert_eq!(found[0].family, Family::Original);
        assert!(found.iter().all(|v| v.source.contains(&v.launcher)));
        let text = found[0].text(&stencil);
        assert!(text.contains("cudaError_t launch_f("), "{text}");
    }
}
