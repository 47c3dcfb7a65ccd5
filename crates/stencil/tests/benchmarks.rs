//! The benchmarks of Table 1 of the paper, as the repository has them.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use warpwright_cudac::File;
use warpwright_cudac::diag::{Source, render_all};
use warpwright_stencil::evaluate::{Data, Sizes, evaluate};
use warpwright_stencil::ir::{Extent, Stencil};
use warpwright_stencil::statistics::statistics;
use warpwright_stencil::{dsl, extract};

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

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/stencils")
}

fn stencil(name: &str) -> Stencil {
    let text = std::fs::read_to_string(folder().join(format!("{name}.stencil"))).unwrap();
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

/// (UF, k, F, R, A, U); bench/results/stencils.md says where the paper has other numbers.
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

fn kernel(name: &str) -> Stencil {
    let path = folder().join(format!("{name}.cu"));
    let text = std::fs::read_to_string(path).unwrap();
    let source = Source::new(format!("{name}.cu"), text);
    let file = File::parse(source).unwrap();
    let kernels = extract::choose(&file, None).unwrap();
    assert_eq!(kernels.len(), 1, "{name}");
    extract::extract(&file, kernels[0])
        .unwrap_or_else(|problems| panic!("{}", render_all(&problems, &file.source)))
}

/// Sizes become those that a kernel has built in.
fn with_sizes(mut stencil: Stencil, like: &Stencil) -> Stencil {
    let pairs: Vec<_> = stencil
        .dims
        .values()
        .zip(like.dims.values())
        .filter_map(|(ours, theirs)| {
            let known = theirs.extent.parameter.is_none();
            Some((ours.extent.parameter?, known.then_some(theirs.extent.add)?))
        })
        .collect();
    let known = |extent: &mut Extent| {
        if let Some((_, size)) = pairs.iter().find(|(p, _)| Some(*p) == extent.parameter) {
            *extent = Extent {
                parameter: None,
                add: extent.add + size,
            };
        }
    };
    for dim in stencil.dims.values_mut() {
        known(&mut dim.extent);
    }
    for array in stencil.arrays.values_mut() {
        array.extents.iter_mut().for_each(known);
    }
    if !pairs.is_empty() {
        stencil.parameters.clear();
    }
    stencil
}

/// Everything but names and places.
fn anonymous(mut stencil: Stencil) -> Stencil {
    let number = |n: usize, name: &mut String| *name = format!("_{n}");
    number(0, &mut stencil.name);
    let names = stencil.parameters.values_mut();
    names.enumerate().for_each(|(n, p)| number(n, p));
    let dims = stencil.dims.values_mut();
    dims.enumerate().for_each(|(n, d)| number(n, &mut d.name));
    let arrays = stencil.arrays.values_mut();
    arrays.enumerate().for_each(|(n, a)| number(n, &mut a.name));
    let scalars = stencil.scalars.values_mut();
    scalars
        .enumerate()
        .for_each(|(n, s)| number(n, &mut s.name));
    let temps = stencil.temps.values_mut();
    temps.enumerate().for_each(|(n, t)| number(n, &mut t.name));
    for statement in &mut stencil.statements {
        statement.span = 0..0;
    }
    stencil
}

#[test]
fn kernels_are_the_same_stencils_as_the_compact_texts() {
    for name in NAMES {
        let kernel = kernel(name);
        let text = with_sizes(stencil(name), &kernel);
        let (kernel, text) = (anonymous(kernel), anonymous(text));
        assert_eq!(dsl::print(&kernel), dsl::print(&text), "{name}");
        assert_eq!(kernel, text, "{name}");
    }
}

#[test]
fn kernels_and_texts_compute_the_same_values() {
    for name in NAMES {
        let (kernel, text) = (kernel(name), stencil(name));
        // Small grids, also where the kernel has its sizes built in.
        let kernel = with_small_sizes(kernel);
        let run = |stencil: &Stencil| {
            let sizes: Sizes = stencil.parameters.values().map(|_| 12).collect();
            let mut data = Data::sample(stencil, &sizes).unwrap();
            let before = data.clone();
            evaluate(stencil, &sizes, &mut data).unwrap();
            assert_ne!(before, data, "{name}");
            assert!(data.arrays.values().flatten().all(|v| v.is_finite()));
            data
        };
        assert_eq!(run(&kernel), run(&text), "{name}");
    }
}

/// Sizes that are built in become 12.
fn with_small_sizes(mut stencil: Stencil) -> Stencil {
    let small = |extent: &mut Extent| {
        if extent.parameter.is_none() && extent.add > 100 {
            extent.add = 12;
        }
    };
    for dim in stencil.dims.values_mut() {
        small(&mut dim.extent);
    }
    for array in stencil.arrays.values_mut() {
        array.extents.iter_mut().for_each(small);
    }
    stencil
}
