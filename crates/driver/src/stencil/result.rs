//! What is known of the versions of a stencil: the document of `tune`, and how results are compared with the host's.

use serde::{Deserialize, Serialize};
use warpwright_stencil::evaluate::{Data, SizeError, Sizes, evaluate};
use warpwright_stencil::ir::{Element, Stencil};

use super::versions::{Family, Version};

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
        let expected = &reference.arrays[id];
        let (own, others) = rest.split_at_checked(expected.len() * array.element.size())?;
        rest = others;
        for (expected, found) in expected.iter().zip(array.element.values(own)) {
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
}
