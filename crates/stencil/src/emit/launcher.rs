//! The host function that launches the kernels of a stencil.

use std::fmt::Write as _;

use super::super::evaluate;
use super::super::ir::Stencil;
use super::Options;
use super::body::parameters;
use super::names::extent;

/// `extern "C" cudaError_t launch_NAME(…, cudaStream_t stream)`.
pub fn launcher(parts: &[Stencil], kernels: &[&str], options: &Options) -> String {
    let Some(stencil) = all_written(parts) else {
        return String::new();
    };
    let stencil = &stencil;
    let mut text = format!(
        "\nextern \"C\" cudaError_t launch_{}({}, cudaStream_t stream)\n{{\n",
        stencil.name,
        parameters(stencil)
    );
    if let Some(sizes) = &options.sizes {
        for (id, name) in &stencil.parameters {
            let _ = writeln!(
                text,
                "  if ({name} != {}) return cudaErrorInvalidValue;",
                sizes[id]
            );
        }
    }
    let unrolled = options.factors.iter().any(|&f| f > 1);
    let mut enough = Vec::new();
    for (id, dim) in &stencil.dims {
        let cells = match &options.sizes {
            Some(sizes) => {
                let (low, end) = evaluate::range(dim, sizes);
                (end - low).to_string()
            }
            None => {
                let size = extent(stencil, dim.extent, None);
                format!("{size} - {}", dim.low + dim.high)
            }
        };
        let name = &dim.name;
        let _ = writeln!(text, "  const int cells_{name} = {cells};");
        let _ = writeln!(text, "  if (cells_{name} <= 0) return cudaSuccess;");
        let factor = factor(options, id.as_u32() as usize);
        if factor > 1 {
            enough.push(format!("cells_{name} >= {factor}"));
        }
    }
    let [x, y, z] = options.block(stencil);
    let _ = writeln!(text, "  const dim3 block({x}, {y}, {z});");
    if unrolled {
        let _ = writeln!(text, "  if ({}) {{", enough.join(" && "));
        calls(&mut text, stencil, kernels, options, "    ", "");
        text += "    return cudaGetLastError();\n  }\n";
    }
    let plain = Options {
        factors: Vec::new(),
        ..options.clone()
    };
    let suffix = if unrolled { "_plain" } else { "" };
    calls(&mut text, stencil, kernels, &plain, "  ", suffix);
    text += "  return cudaGetLastError();\n}\n";
    text
}

/// The first part, with all arrays marked as written that any part writes.
fn all_written(parts: &[Stencil]) -> Option<Stencil> {
    let mut stencil = parts.first()?.clone();
    for (id, array) in stencil.arrays.iter_mut() {
        array.written = parts.iter().any(|part| part.arrays[id].written);
    }
    Some(stencil)
}

fn factor(options: &Options, dim: usize) -> u32 {
    options.factors.get(dim).copied().unwrap_or(1).max(1)
}

fn calls(
    text: &mut String,
    stencil: &Stencil,
    kernels: &[&str],
    options: &Options,
    indent: &str,
    suffix: &str,
) {
    let mut grid = Vec::new();
    for ((id, dim), threads) in stencil.dims.iter().rev().zip(options.block(stencil)) {
        let points = threads * factor(options, id.as_u32() as usize);
        grid.push(format!("(cells_{} + {}) / {points}", dim.name, points - 1));
    }
    let _ = writeln!(text, "{indent}const dim3 grid({});", grid.join(", "));
    let arrays = stencil.arrays.values().map(|a| a.name.as_str());
    let scalars = stencil.scalars.values().map(|s| s.name.as_str());
    let sizes = stencil.parameters.values().map(String::as_str);
    let arguments: Vec<&str> = arrays.chain(scalars).chain(sizes).collect();
    for kernel in kernels {
        let arguments = arguments.join(", ");
        let _ = writeln!(
            text,
            "{indent}{kernel}{suffix}<<<grid, block, 0, stream>>>({arguments});"
        );
    }
}
