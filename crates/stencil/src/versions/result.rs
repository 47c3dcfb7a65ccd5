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
}
