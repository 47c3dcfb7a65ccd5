//! What `warpwright explain` says about stencils: the columns of Table 1 of Rawat et al. (PPoPP
//! 2018).

use serde::Serialize;
use warpwright_cudac::File;
use warpwright_cudac::diag::{Diagnostic, Source, render_all};
use warpwright_stencil::ir::{Dim, Extent, Stencil};
use warpwright_stencil::statistics::statistics;
use warpwright_stencil::{dsl, extract};

use crate::failure::Failure;
use crate::input::{Input, Level};
use crate::table::Table;

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

/// The stencils of a file: of a `.stencil` file, or the kernels of a `.cu` file that are marked by
/// `#pragma warpwright stencil`.
pub fn explain(input: &Input, kernel: Option<&str>) -> Result<Vec<Explained>, Failure> {
    let found = match input.level {
        Level::Stencil => {
            let source = Source::new(&*input.name, input.text()?);
            vec![dsl::parse(&source.text).map_err(|problems| failure(&problems, &source))?]
        }
        Level::Cuda if input.text().is_ok_and(|text| text.contains("warpwright")) => {
            marked(input, kernel)?
        }
        _ => Vec::new(),
    };
    Ok(found.iter().map(explained).collect())
}

fn marked(input: &Input, kernel: Option<&str>) -> Result<Vec<Stencil>, Failure> {
    let source = Source::new(&*input.name, input.text()?);
    let file = File::parse(source.clone()).map_err(|problem| failure(&[problem], &source))?;
    let mut found = Vec::new();
    for header in &file.kernels {
        let wanted = kernel.is_none_or(|name| names(name, &header.name.text));
        let marked = extract::is_marked(&file, header);
        if wanted && marked.map_err(|problem| failure(&[problem], &source))? {
            let stencil = extract::extract(&file, header);
            found.push(stencil.map_err(|problems| failure(&problems, &source))?);
        }
    }
    Ok(found)
}

/// Does a name, perhaps one of PTX such as `_Z3addPfS_`, mean a kernel of the source?
fn names(name: &str, kernel: &str) -> bool {
    let mangled = name.strip_prefix("_Z").and_then(|rest| {
        let rest = rest.strip_prefix(&*kernel.len().to_string())?;
        Some(rest.starts_with(kernel))
    });
    name == kernel || mangled.unwrap_or(false)
}

fn failure(problems: &[Diagnostic], source: &Source) -> Failure {
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
         A: elements accessed per thread, U: unique ones"
    );
}
