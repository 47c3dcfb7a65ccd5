//! `warpwright opt` for a stencil: the versions that the model likes best, and the best one written as
//! CUDA C++ with its launch code. No GPU and no compiler is needed.

use std::path::Path;

use serde::Serialize;
use warpwright_cudac::File;
use warpwright_cudac::diag::{Source, render_all};
use warpwright_driver::stencil::{Family, Measured, StencilResult, versions};
use warpwright_stencil::evaluate::Sizes;
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::{dsl, extract};
use warpwright_target::{Gpu, lookup};

use crate::args::{Floating, OptArgs, StencilArgs};
use crate::failure::Failure;
use crate::input::{Input, Level, write_atomically};
use crate::table::Table;

/// Versions of each family that are shown.
const SHOWN: usize = 8;
/// The GPU that is optimized for where none is named.
const DEFAULT_GPU: &str = "h200";

/// The JSON document of `opt` for a stencil.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    input: String,
    stencil: String,
    gpu: String,
    sizes: Vec<(String, i64)>,
    reassociate: bool,
    versions: Vec<Measured>,
    chosen: usize,
    output: String,
}

/// Is it source that becomes source: a `.stencil`, or CUDA C that is to stay CUDA C?
pub fn is_wanted(input: &Input, output: Option<&Path>) -> bool {
    let ends_in_cu = output.is_some_and(|path| path.extension().is_some_and(|e| e == "cu"));
    input.level == Level::Stencil || input.level == Level::Cuda && ends_in_cu
}

/// A stencil becomes CUDA C++, and OUT says so.
pub fn refuse_other_levels(output: &Path) -> Result<(), Failure> {
    match output.extension().is_some_and(|ending| ending == "cu") {
        true => Ok(()),
        false => Err(Failure::input(format!(
            "`{}`: a stencil becomes CUDA C++; name OUT.cu (and optimize that once more for a cubin)",
            output.display()
        ))),
    }
}

/// Runs the command.
pub fn run(args: &OptArgs, input: &Input) -> Result<(), Failure> {
    refuse_other_levels(&args.output)?;
    let stencil = read_stencil(input, args.kernel.kernel.as_deref(), &args.stencil)?;
    let gpu = target(args.kernel.gpu.as_deref())?;
    let sizes = sizes(&stencil, &args.stencil.sizes)?;
    let found = versions(&stencil, &gpu, &sizes, SHOWN, false);
    // The model ranks streaming kernels among themselves; where there is none, the schedule is best.
    let streamed = found.iter().position(|v| v.family == Family::Streamed);
    let scheduled = found.iter().position(|v| v.family == Family::Reordered);
    let chosen = streamed.or(scheduled).ok_or_else(|| {
        Failure::input(format!("no kernel can be generated for `{}`", stencil.name))
    })?;
    write_atomically(&args.output, found[chosen].text(&stencil).as_bytes())?;
    let document = Document {
        schema: "warpwright.stencil-opt/1",
        input: input.name.clone(),
        stencil: stencil.name.clone(),
        gpu: args
            .kernel
            .gpu
            .clone()
            .unwrap_or_else(|| DEFAULT_GPU.into()),
        sizes: named_sizes(&stencil, &sizes),
        reassociate: stencil.reassociate,
        versions: found.iter().map(Measured::new).collect(),
        chosen,
        output: args.output.display().to_string(),
    };
    if args.show.json {
        return super::print_json(&document);
    }
    print(&document);
    Ok(())
}

fn print(document: &Document) {
    println!(
        "stencil {} for {}{}{}\n",
        document.stencil,
        document.gpu,
        size_text(&document.sizes),
        match document.reassociate {
            true => "",
            false => ", sums stay as written",
        }
    );
    let mut table = Table::new(&["", "family", "plan", "predicted ms"]);
    for (at, version) in document.versions.iter().enumerate() {
        let mark = if at == document.chosen { "*" } else { "" };
        let predicted = version
            .predicted_ms
            .map_or("–".into(), |ms| format!("{ms:.3}"));
        table.row(vec![
            mark.into(),
            family(version.family).into(),
            version.plan.clone(),
            predicted,
        ]);
    }
    print!("{}", table.render(1));
    println!("\nwrote {} (CUDA C++)", document.output);
}

fn family(family: Family) -> &'static str {
    match family {
        Family::Original => "original",
        Family::Unrolled => "unrolled",
        Family::Reordered => "reordered",
        Family::Streamed => "streamed",
    }
}

/// `, M=512, N=512`
fn size_text(sizes: &[(String, i64)]) -> String {
    let sizes = sizes.iter().map(|(name, n)| format!(", {name}={n}"));
    sizes.collect()
}

/// Prints what `tune` measured, the fastest first.
pub fn print_versions(result: &StencilResult) {
    println!(
        "stencil {} on {}{}\n",
        result.stencil,
        result.gpu,
        size_text(&result.sizes)
    );
    let mut order: Vec<&Measured> = result.versions.iter().collect();
    order.sort_by(|a, b| {
        let key = |v: &Measured| v.ms.unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b))
    });
    let mut table = Table::new(&["family", "plan", "ms", "predicted", "from the host", "note"]);
    for version in order {
        let number = |value: Option<f64>| value.map_or("–".into(), |ms| format!("{ms:.3}"));
        let apart = version.reference_distance;
        table.row(vec![
            family(version.family).into(),
            version.plan.clone(),
            number(version.ms),
            number(version.predicted_ms),
            apart.map_or("–".into(), |apart| format!("{apart:.0e}")),
            version.rejected.clone().unwrap_or_default(),
        ]);
    }
    print!("{}", table.render(2));
}

/// The one stencil of a file, with the permissions of the command line.
pub fn read_stencil(
    input: &Input,
    kernel: Option<&str>,
    args: &StencilArgs,
) -> Result<Stencil, Failure> {
    let mut stencil = the_stencil(input, kernel)?;
    stencil.reassociate |= args.fp == Some(Floating::Reassociate);
    Ok(stencil)
}

fn the_stencil(input: &Input, kernel: Option<&str>) -> Result<Stencil, Failure> {
    let source = Source::new(&*input.name, input.text()?);
    let problems = |problems: Vec<_>| Failure::Rendered(render_all(&problems, &source));
    if input.level == Level::Stencil {
        return dsl::parse(&source.text).map_err(problems);
    }
    let file = File::parse(source.clone()).map_err(|problem| problems(vec![problem]))?;
    let chosen = extract::choose(&file, kernel).map_err(|problem| problems(vec![problem]))?;
    match chosen.as_slice() {
        [one] => extract::extract(&file, one).map_err(problems),
        several => {
            let names: Vec<&str> = several.iter().map(|k| &*k.name.text).collect();
            Err(Failure::input(format!(
                "`{}` has the stencils {}; name one with --kernel",
                input.name,
                names.join(", ")
            )))
        }
    }
}

/// The GPU that kernels are made for.
pub fn target(name: Option<&str>) -> Result<Gpu, Failure> {
    lookup(name.unwrap_or(DEFAULT_GPU)).map_err(|e| Failure::input(e.to_string()))
}

/// The sizes given as `NAME=N`; for the others, a domain larger than the caches.
pub fn sizes(stencil: &Stencil, given: &[(String, i64)]) -> Result<Sizes, Failure> {
    let names: Vec<&str> = stencil.parameters.values().map(String::as_str).collect();
    if let Some((unknown, _)) = given
        .iter()
        .find(|(name, _)| !names.contains(&name.as_str()))
    {
        let known = names.join(", ");
        return Err(Failure::input(format!(
            "`{}` has no size `{unknown}`; it has {known}",
            stencil.name
        )));
    }
    let default = match stencil.dims.len() {
        0..=2 => 8192,
        _ => 512,
    };
    let mut sizes = Sizes::new();
    for name in names {
        let found = given.iter().find(|(given, _)| given == name);
        sizes.push(found.map_or(default, |(_, size)| *size));
    }
    Ok(sizes)
}

/// Sizes with their names.
pub fn named_sizes(stencil: &Stencil, sizes: &Sizes) -> Vec<(String, i64)> {
    let names = stencil.parameters.iter();
    names.map(|(id, name)| (name.clone(), sizes[id])).collect()
}
