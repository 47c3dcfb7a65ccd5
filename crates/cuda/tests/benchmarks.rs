//! The benchmarks of Table 1 of the paper, as the repository has them.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use warpwright_cuda::diag::{Source, render_all};
use warpwright_cuda::stencil::dsl;
use warpwright_cuda::stencil::ir::Stencil;
use warpwright_cuda::stencil::statistics::statistics;

const NAMES: [&str; 8] = [
    "2d25pt",
    "2d64pt",
    "2d81pt",
    "3d27pt",
    "3d125pt",
    "hypterm",
    "rhs4th3fort",
    "derivative",
];

fn stencil(name: &str) -> Stencil {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/stencils");
    let text = std::fs::read_to_string(folder.join(format!("{name}.stencil"))).unwrap();
    dsl::parse(&text)
        .unwrap_or_else(|problems| panic!("{}", render_all(&problems, &Source::new(name, text))))
}

#[test]
fn all_parse_and_print_back() {
    for name in NAMES {
        let stencil = stencil(name);
        let printed = dsl::print(&stencil);
        let again = dsl::parse(&printed).unwrap_or_else(|problems| {
            panic!(
                "{}",
                render_all(&problems, &Source::new(name, printed.clone()))
            )
        });
        assert_eq!(dsl::print(&again), printed, "{name}");
        assert_eq!(
            (again.exprs, again.dims),
            (stencil.exprs, stencil.dims),
            "{name}"
        );
    }
}

/// (UF, k, F, R, A, U); docs/stencils.md explains where the paper has other numbers.
#[test]
fn the_columns_of_table_1() {
    let table = [
        ("2d25pt", [4, 2, 33, 2, 104, 44]),
        // The paper: U = 92.
        ("2d64pt", [4, 4, 73, 2, 260, 100]),
        ("2d81pt", [4, 4, 95, 2, 328, 112]),
        ("3d27pt", [4, 1, 30, 2, 112, 58]),
        ("3d125pt", [4, 2, 130, 2, 504, 204]),
        // The paper: A = 310.
        ("hypterm", [1, 4, 358, 13, 318, 152]),
        // The paper: F = 687, A = 696, U = 179.
        ("rhs4th3fort", [1, 2, 666, 7, 525, 181]),
        // The paper: F = 486, R = 10, A = 493, U = 165.
        ("derivative", [1, 2, 499, 12, 480, 173]),
    ];
    for (name, ours) in table {
        let s = statistics(&stencil(name));
        let (uf, flops) = (s.unroll as i64, s.flops as i64);
        let (arrays, all, unique) = (s.arrays as i64, s.accessed as i64, s.unique as i64);
        assert_eq!([uf, s.order, flops, arrays, all, unique], ours, "{name}");
    }
}
