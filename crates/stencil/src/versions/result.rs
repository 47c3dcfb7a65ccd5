//! How results are compared with the host's.

use crate::evaluate::{Data, SizeError, Sizes, evaluate};
use crate::ir::{Element, Stencil};

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
    let single = |array: &crate::ir::Array| array.element == Element::F32;
    match stencil.arrays.values().any(single) {
        true => 1e-5,
        false => 1e-13,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsl;

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
