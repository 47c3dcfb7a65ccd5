//! `warpwright opt` for a naive kernel: the input with tuned kernels in it, in CUDA C. No GPU is needed; what is written
//! was compared with the input in the PTX emulator, which needs nvcc.

use serde::Serialize;
use warpwright_cudac::diag::render_all;
use warpwright_driver::naive::{Chosen, Kind, choose, kind};
use warpwright_ladder::Checked;
use warpwright_naive::explain;
use warpwright_naive::ir::ParameterKind;
use warpwright_naive::versions::Problem;

use super::stencil::names;
use super::stencil_opt::{Compiler, target};
use crate::args::{Cli, OptArgs};
use crate::failure::Failure;
use crate::input::{Input, Level, write_atomically};
use warpwright_report::table::Table;

/// The JSON document of `opt` for a naive kernel.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    input: String,
    kernel: String,
    gpu: String,
    accesses: Vec<String>,
    versions: Vec<Row>,
    /// The chosen version; none: the kernel stays as written.
    chosen: Option<usize>,
    steps: Vec<String>,
    original_ms: Option<f64>,
    reordered: bool,
    checked: Option<Checked>,
    unchecked: Option<String>,
    launches: Option<usize>,
    /// Why it is no stencil, where it stays as written.
    no_stencil: Option<super::cuda::Other>,
    output: Option<String>,
}

#[derive(Serialize)]
struct Row {
    schedule: String,
    predicted_ms: f64,
    bound: &'static str,
    rejected: Option<String>,
}

/// The naive kernel of a file of CUDA C that is to stay CUDA C, if that is what it has.
///
/// # Errors
/// A kernel is marked as naive but is not; a file that is too large.
pub fn wanted(cli: &Cli, args: &OptArgs, input: &Input) -> Result<Option<Problem>, Failure> {
    if input.level != Level::Cuda {
        return Ok(None);
    }
    let file = super::cuda::read(cli, input, None, &args.nvcc)?;
    let fail = |problem| Failure::Rendered(render_all(&[problem], &file.source));
    let mut found = Vec::new();
    for header in &file.kernels {
        let name = args.kernel.one()?;
        if name.is_some_and(|name| !names(name, &header.name.text)) {
            continue;
        }
        let marked = warpwright_naive::recognise::is_marked(&file, header).map_err(fail)?;
        match kind(&file, header).map_err(fail)? {
            Kind::Naive(problem) => found.push((marked, problem)),
            Kind::Neither { naive, .. } if marked => return Err(fail(naive)),
            // A stencil, or nothing: the stencil compiler says which, and why.
            Kind::Stencil | Kind::Neither { .. } => {}
        }
    }
    let some_are_marked = found.iter().any(|(marked, _)| *marked);
    found.retain(|(marked, _)| *marked || !some_are_marked);
    // Stencils come first where nothing is marked.
    let only = found.len() == 1
        && (some_are_marked || file.kernels.len() == 1 || args.kernel.one()?.is_some());
    let Some((_, mut problem)) = found.pop().filter(|_| only) else {
        return Ok(None);
    };
    for (name, size) in &args.stencil.sizes {
        let kernel = &problem.kernel;
        let sizes = kernel.parameters.iter();
        let sizes = sizes.filter(|p| matches!(p.kind, ParameterKind::Size(..)));
        let sizes: Vec<&str> = sizes.map(|p| p.name.as_str()).collect();
        if !sizes.contains(&name.as_str()) {
            return Err(Failure::input(format!(
                "`{}` has no size `{name}`; it has {}",
                kernel.name,
                sizes.join(", ")
            )));
        }
        problem
            .kernel
            .pragma
            .sizes
            .retain(|(known, _)| known != name);
        problem.kernel.pragma.sizes.push((name.clone(), *size));
    }
    Ok(Some(*problem))
}

/// Runs the command.
pub fn run(cli: &Cli, args: &OptArgs, input: &Input, problem: &Problem) -> Result<(), Failure> {
    let gpu = target(args.kernel.gpu.as_deref())?;
    let compiler = Compiler::new(cli, &input.path, &gpu, &args.nvcc);
    let chosen = choose(problem, &gpu, &|text| compiler.ptx(text));
    let mut text = match &chosen.output {
        Some(output) => output.text.clone(),
        None => input.text()?.to_owned(),
    };
    if chosen.unchecked.is_some() {
        text += "// Not checked: what warpwright added here was never compared with the input.\n";
    }
    if let Some(output) = &args.output {
        write_atomically(output, text.as_bytes())?;
    }
    let mut document = document(args, input, problem, &chosen, gpu.target());
    if chosen.version.is_none() {
        let file = super::cuda::read(cli, input, None, &args.nvcc)?;
        let found = super::cuda::stencils(&file, Some(&problem.kernel.name))?;
        document.no_stencil = found.others.into_iter().next();
    }
    super::write_page(args.show.report.as_deref(), &document)?;
    if args.show.json {
        super::print_json(&document)?;
    } else {
        print(&document);
    }
    match document.unchecked.is_none() || args.stencil.unchecked {
        true => Ok(()),
        false => Err(Failure::Quiet(5)),
    }
}

fn document(
    args: &OptArgs,
    input: &Input,
    problem: &Problem,
    chosen: &Chosen,
    gpu: String,
) -> Document {
    let kernel = &problem.kernel;
    let steps = chosen
        .version
        .map(|at| chosen.versions[at].way.steps(kernel));
    Document {
        schema: "warpwright.naive-opt/1",
        input: input.name.clone(),
        kernel: kernel.name.clone(),
        gpu,
        accesses: explain::accesses(kernel),
        versions: chosen
            .versions
            .iter()
            .map(|v| Row {
                schedule: v.way.to_string(),
                predicted_ms: v.predicted.ms,
                bound: v.predicted.bound,
                rejected: v.rejected.as_ref().map(ToString::to_string),
            })
            .collect(),
        chosen: chosen.version,
        steps: steps.unwrap_or_default(),
        original_ms: chosen.original_ms,
        reordered: chosen.reordered,
        checked: chosen.checked.clone(),
        unchecked: chosen.unchecked.clone(),
        launches: chosen.output.as_ref().map(|o| o.launches),
        no_stencil: None,
        output: super::opt::written_to(args),
    }
}

fn print(document: &Document) {
    println!(
        "naive kernel {} for {}: a thread computes one output element\n",
        document.kernel, document.gpu
    );
    for access in &document.accesses {
        println!("  {access}");
    }
    println!();
    let mut table = Table::new(&["", "schedule", "predicted ms", "bound by", "note"]);
    for (at, row) in document.versions.iter().enumerate() {
        table.row(vec![
            if document.chosen == Some(at) { "*" } else { "" }.into(),
            row.schedule.clone(),
            format!("{:.4}", row.predicted_ms),
            row.bound.into(),
            row.rejected
                .as_ref()
                .map_or(String::new(), |why| format!("dropped: {why}")),
        ]);
    }
    let original = document
        .original_ms
        .map_or("–".into(), |ms| format!("{ms:.4}"));
    let mark = if document.chosen.is_none() { "*" } else { "" };
    table.row(vec![
        mark.into(),
        "as written".into(),
        original,
        String::new(),
        String::new(),
    ]);
    print!("{}", table.render(1));
    println!();
    if document.chosen.is_none() {
        println!("stays as it is: no schedule is predicted to gain enough");
        if let Some(other) = &document.no_stencil {
            println!(
                "no stencil: {} (line {}, column {})",
                other.reason, other.line, other.column
            );
        }
    }
    for step in &document.steps {
        println!("{step}");
    }
    if let Some(checked) = &document.checked {
        let how = match document.reordered {
            false => "to the bit",
            true => {
                "within 1e-5 (float) or 1e-13 (double) of the largest value, sums reordered as its pragma permits"
            }
        };
        println!(
            "\nagrees with the input in the emulator {how}, without races in shared memory: {} at {} launches",
            checked.kernels.join(", "),
            checked.sizes.len()
        );
    }
    if let Some(why) = &document.unchecked {
        println!("NOT CHECKED against the input: {why}");
    }
    if let Some(launches) = document.launches {
        println!("launches rewritten: {launches}");
    }
    if let Some(output) = &document.output {
        println!("wrote {output} (CUDA C++)");
    }
}
