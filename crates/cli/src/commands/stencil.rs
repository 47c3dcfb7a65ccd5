//! What `warpwright explain` says about stencils: the columns of Table 1 of Rawat et al. (PPoPP
//! 2018).

use serde::Serialize;
use warpwright_cudac::diag::{Diagnostic, Source, render_all};
use warpwright_stencil::dsl;
use warpwright_stencil::ir::{Dim, Extent, Stencil};
use warpwright_stencil::statistics::statistics;

use crate::failure::Failure;
use crate::input::Input;
use warpwright_report::table::Table;

/// The numbers of one stencil.
#[derive(Serialize)]
pub struct Explained {
    stencil: String,
    points: Vec<String>,
    unroll: u64,
    order: i64,
    flops_per_point: u64,
    arrays: usize,
    accessed_per_thread: u64,
    unique_per_thread: u64,
    reassociate: bool,
}

/// The numbers of stencils.
pub fn explained_all(stencils: &[Stencil]) -> Vec<Explained> {
    stencils.iter().map(explained).collect()
}

/// The stencil of a `.stencil` file.
pub fn of_language(input: &Input) -> Result<Stencil, Failure> {
    let source = Source::new(&*input.name, input.text()?);
    dsl::parse(&source.text).map_err(|problems| failure(&problems, &source))
}

/// Diagnostics as a failure.
pub fn failure(problems: &[Diagnostic], source: &Source) -> Failure {
    Failure::Rendered(render_all(problems, source))
}

fn explained(stencil: &Stencil) -> Explained {
    let s = statistics(stencil);
    Explained {
        stencil: stencil.name.clone(),
        points: stencil.dims.values().map(|d| points(stencil, d)).collect(),
        unroll: s.unroll,
        order: s.order,
        flops_per_point: s.flops,
        arrays: s.arrays,
        accessed_per_thread: s.accessed,
        unique_per_thread: s.unique,
        reassociate: stencil.reassociate,
    }
}

/// `2 <= j < N-2`
fn points(stencil: &Stencil, dim: &Dim) -> String {
    let Extent { parameter, add } = dim.extent;
    let end = add - dim.high;
    let end = match parameter.map(|p| &stencil.parameters[p]) {
        None => end.to_string(),
        Some(size) if end == 0 => size.clone(),
        Some(size) => format!("{size}{end:+}"),
    };
    format!("{} <= {} < {end}", dim.low, dim.name)
}

/// Prints the table.
pub fn print(stencils: &[Explained]) {
    let mut table = Table::new(&["stencil", "UF", "k", "F", "R", "A", "U", "points"]);
    for s in stencils {
        table.row(vec![
            s.stencil.clone(),
            s.unroll.to_string(),
            s.order.to_string(),
            s.flops_per_point.to_string(),
            s.arrays.to_string(),
            s.accessed_per_thread.to_string(),
            s.unique_per_thread.to_string(),
            s.points.join(", "),
        ]);
    }
    println!("{}", table.render(2).trim_end());
    println!(
        "\n  UF: points per thread, k: order, F: FLOPs per point, R: arrays,\n  \
         A: array elements and scalar parameters accessed per thread, U: unique ones"
    );
}
