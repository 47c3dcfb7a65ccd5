//! The benchmarks of Table 1 of the paper, as the repository has them.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use warpwright_cuda::diag::{Source, render_all};
use warpwright_cuda::stencil::dsl;
use warpwright_cuda::stencil::ir::Stencil;

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
