//! `warpwright opt` for a naive kernel: the input with tuned kernels in it, in CUDA C. No GPU is needed; what is written
//! was compared with the input in the PTX emulator, which needs nvcc.

use std::collections::BTreeSet;

use serde::Serialize;
use warpwright_cudac::File;
use warpwright_cudac::diag::{Diagnostic, render_all};
use warpwright_driver::naive::{Chosen, Kind, NoStencil, choose, kind};
use warpwright_driver::opt::failure;
use warpwright_ladder::{Checked, CompileError, Rung};
use warpwright_naive::explain;
use warpwright_naive::ir::Kernel;
use warpwright_naive::recognise::is_marked;
use warpwright_naive::versions::Problem;
use warpwright_pass::names::is_definition_named;
use warpwright_pass::{Artifact, Builders, Caution, Executor, Fuel, Setting, Target};
use warpwright_target::Gpu;

use super::own_sizes::OwnSizes;
use super::pass::source;
use super::stencil_opt::{left as uses_left, target};
use crate::args::{Cli, Floating, OptArgs, StencilArgs};
use crate::build;
use crate::failure::Failure;
use crate::input::{Input, Level, write_atomically};
use crate::progress;
use warpwright_report::screen::{dropped, wrap};
use warpwright_report::table::Table;

/// The JSON document of `opt` for a naive kernel.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    input: String,
    kernel: String,
    gpu: String,
    accesses: Vec<String>,
    /// What the predictions go by.
    sizes: Sizes,
    versions: Vec<Row>,
    /// The chosen version; none: the kernel stays as written.
    chosen: Option<usize>,
    /// What `--recipe` takes; empty: the kernel stays as written.
    recipe_text: String,
    steps: Vec<String>,
    original_ms: Option<f64>,
    reordered: bool,
    checked: Option<Checked>,
    unchecked: Option<String>,
    launches: Option<usize>,
    /// Uses of the kernel that were left as they are.
    uses: Vec<String>,
    /// The other kernels of the file that stay as written, and why.
    left: Vec<Left>,
    /// Why it is no stencil.
    no_stencil: String,
    output: Option<String>,
}

#[derive(Serialize)]
struct Row {
    schedule: String,
    predicted_ms: f64,
    bound: &'static str,
    rejected: Option<String>,
}

/// What takes time, in words.
pub const TRYING: &str =
    "writing faster kernels, and comparing them with the input in the emulator";

/// The sizes that a kernel is rewritten for.
#[derive(Debug, Serialize)]
pub struct Sizes {
    all: Vec<(String, i64)>,
    /// Those of them that a launch has.
    launched: Vec<String>,
    /// Which launch.
    launch: Option<String>,
    /// Those of them that nobody says.
    assumed: Vec<String>,
}

impl Sizes {
    /// In words, behind what goes by them.
    pub fn at(&self) -> String {
        let is_one = |names: &[String], name: &str| names.iter().any(|n| n == name);
        let one = |(name, size): &(String, i64)| match is_one(&self.assumed, name) {
            true => format!("{name} = {size} (assumed: --grid {name}=N)"),
            false => format!("{name} = {size}"),
        };
        let all: Vec<String> = self.all.iter().map(one).collect();
        let launch = self.launch.as_ref().filter(|_| !self.launched.is_empty());
        let launch = launch.map_or_else(String::new, |launch| format!(" ({launch})"));
        match all[..] {
            [] => String::new(),
            _ => format!(" at {}{launch}", all.join(", ")),
        }
    }

    /// The options that state them again.
    fn options(&self) -> String {
        let launched = self.all.iter();
        let launched = launched.filter(|(name, _)| self.launched.contains(name));
        launched
            .map(|(name, size)| format!(" --grid {name}={size}"))
            .collect()
    }
}

/// States the sizes of a kernel: those that are given, then what its pragma says, then those of its launch.
pub fn state(problem: &mut Problem, given: &[(String, i64)], own: &OwnSizes) -> Sizes {
    problem.state(given);
    let stated: Vec<String> = problem
        .kernel
        .pragma
        .sizes
        .iter()
        .map(|(n, _)| n.clone())
        .collect();
    let own = own.state(problem);
    let (launched, launch) = own.map_or((Vec::new(), None), |(names, at)| {
        (names, Some(at.to_owned()))
    });
    let all = problem.expected_sizes();
    let is_assumed = |name: &&String| !stated.contains(name) && !launched.contains(name);
    let assumed = all.iter().map(|(name, _)| name).filter(is_assumed);
    Sizes {
        assumed: assumed.cloned().collect(),
        all,
        launched,
        launch,
    }
}

/// A kernel that stays as written.
#[derive(Clone, Serialize)]
pub struct Left {
    kernel: String,
    /// What is in the way.
    reason: String,
}

/// A naive kernel of a file, and why it is no stencil.
pub struct Found {
    pub problem: Problem,
    no_stencil: String,
}

/// The naive kernels of a file of CUDA C that is to stay CUDA C, if that is what it has: those that are marked as naive,
/// else all of them where there is no stencil. What is neither is an error, for both reasons.
///
/// # Errors
/// A kernel is marked as naive but is not; a file that is too large, or has nothing to work on.
pub fn wanted(
    cli: &Cli,
    kernel: Option<&str>,
    nvcc: &[String],
    input: &Input,
) -> Result<(Vec<Found>, Vec<Left>), Failure> {
    if input.level != Level::Cuda {
        return Ok((Vec::new(), Vec::new()));
    }
    wanted_in(&super::cuda::read(cli, input, None, nvcc)?, kernel)
}

/// The same of a file that has been read.
///
/// # Errors
/// See [`wanted`].
pub fn wanted_in(file: &File, kernel: Option<&str>) -> Result<(Vec<Found>, Vec<Left>), Failure> {
    let (nothing, mut left) = (Vec::new(), Vec::new());
    let fail = |problems: &[Diagnostic]| Failure::Rendered(render_all(problems, &file.source));
    let (mut found, mut reasons, mut stencils) = (Vec::new(), Vec::new(), 0);
    // Kernels of one point each, that the stencil compiler takes as well.
    let mut both = 0;
    for header in &file.kernels {
        if kernel.is_some_and(|name| !is_definition_named(name, &header.name.text)) {
            continue;
        }
        let marked = is_marked(file, header).map_err(|p| fail(&[p]))?;
        match kind(file, header).map_err(|p| fail(&[p]))? {
            Kind::Naive(problem, why) => {
                both += usize::from(matches!(why, NoStencil::NoNeighbours));
                let (problem, no_stencil) = (*problem, no_stencil(&why));
                found.push((
                    marked,
                    Found {
                        problem,
                        no_stencil,
                    },
                ));
            }
            Kind::Neither { naive, .. } if marked => return Err(fail(&[naive])),
            Kind::Neither { stencil, naive } => {
                left.push(Left {
                    kernel: header.name.text.clone(),
                    reason: naive.message.clone(),
                });
                reasons.push(naive);
                reasons.extend(stencil);
            }
            Kind::Stencil => stencils += 1,
        }
    }
    let some_are_marked = found.iter().any(|(marked, _)| *marked);
    let all_are_both = found.len() > 1 && both == found.len();
    if !some_are_marked && (stencils > 0 || all_are_both) {
        return Ok((nothing, left));
    }
    if found.is_empty() && !reasons.is_empty() {
        return Err(Failure::Rendered(refusals(&reasons, file)));
    }
    let found = found.into_iter();
    let found = found.filter(|(marked, _)| *marked || !some_are_marked);
    Ok((found.map(|(_, found)| found).collect(), left))
}

/// Refusals that are shown; of more the number.
const SHOWN: usize = 8;

/// Why no kernel of a file is rewritten in CUDA C, each reason once, and what can be done all the same.
fn refusals(reasons: &[Diagnostic], file: &File) -> String {
    let mut told: Vec<&Diagnostic> = Vec::new();
    for reason in reasons {
        if !told.contains(&reason) {
            told.push(reason);
        }
    }
    let shown = told.iter().take(SHOWN);
    let mut text: String = shown.map(|reason| reason.render(&file.source)).collect();
    if let Some(more @ 1..) = told.len().checked_sub(SHOWN) {
        text += &format!("\n({more} more; --kernel NAME has those of a kernel)\n");
    }
    text + "\nhelp: with `-o OUT.cubin` or `-o OUT.ptx` registers and shared memory of any kernel are chosen\n"
}

/// In words.
fn no_stencil(why: &NoStencil) -> String {
    match why {
        NoStencil::Refused(reason) => reason.message.clone(),
        NoStencil::NoNeighbours => "it reads too few places around its point".into(),
        NoStencil::Marked => "its pragma says so".into(),
    }
}

/// Only its pragma lets a naive kernel's sums be reordered: the text says so wherever it goes.
pub fn refuse_reassociate(args: &StencilArgs) -> Result<(), Failure> {
    match args.fp {
        Some(Floating::Reassociate) => Err(Failure::Usage(
            "--fp reassociate is for stencils, and has no effect on naive kernels: `#pragma warpwright naive reassociate` \
             in front of a kernel lets its sums be reordered"
                .into(),
        )),
        _ => Ok(()),
    }
}

/// States sizes of all kernels; one that none of them has is a mistake.
pub fn state_all(
    found: &mut [Found],
    sizes: &[(String, i64)],
    input: &Input,
) -> Result<(), Failure> {
    let of = |found: &mut Found| found.problem.state(sizes);
    let unknown: Vec<Vec<String>> = found.iter_mut().map(of).collect();
    let nowhere = |name: &&String| unknown.iter().all(|u| u.contains(name));
    match sizes.iter().map(|(name, _)| name).find(nowhere) {
        Some(name) => {
            let each = found.iter().map(|of| of.problem.size_names());
            let known: BTreeSet<String> = each.flatten().collect();
            let known: Vec<String> = known.into_iter().collect();
            Err(Failure::input(format!(
                "`{}` has no size `{name}`; it has {}",
                input.name,
                known.join(", ")
            )))
        }
        None => Ok(()),
    }
}

/// A kernel of a file, for sizes.
pub fn target_of<'a>(kernel: &'a str, gpu: &'a Gpu, sizes: &'a [(String, i64)]) -> Target<'a> {
    Target {
        kernel: Some(kernel),
        setting: Setting {
            sizes,
            ..Setting::new(gpu)
        },
    }
}

/// The kernel of a name in a text that was changed since it was found.
pub fn again(
    cli: &Cli,
    nvcc: &[String],
    input: &Input,
    (name, text): (&str, &str),
) -> Result<Problem, Failure> {
    let file = super::cuda::read_again(cli, input, nvcc, text.to_owned())?;
    let gone = || Failure::Internal(format!("`{name}` is gone from `{}`", input.name));
    let header = file.kernels.iter().find(|h| h.name.text == name);
    let header = header.cloned().ok_or_else(gone)?;
    let source = file.source.clone();
    Problem::new(file, &header).map_err(|p| Failure::Rendered(render_all(&[p], &source)))
}

/// The JSON document for a file with several naive kernels.
#[derive(Serialize)]
struct Documents {
    schema: &'static str,
    input: String,
    kernels: Vec<Document>,
    output: Option<String>,
}

/// Runs the command: one kernel after the other, each in the text that the one before it left.
pub fn run(
    cli: &Cli,
    args: &OptArgs,
    input: &Input,
    (mut found, mut left): (Vec<Found>, Vec<Left>),
    own: &OwnSizes,
) -> Result<(), Failure> {
    if found.len() > 1 && args.show.report.is_some() {
        let what = "--report shows one kernel: --kernel NAME names it";
        return Err(Failure::Usage(what.to_owned()));
    }
    state_all(&mut found, &args.stencil.sizes, input)?;
    let gpu = target(args.kernel.gpu.as_deref())?;
    let mut text = input.text()?.to_owned();
    let mut documents = Vec::new();
    build::with_builders(cli, &gpu, &args.nvcc, |builders| {
        let mut executor = Executor::new(builders);
        executor.fuel = args.fuel.map_or_else(Fuel::default, Fuel::limited);
        for (number, of) in found.into_iter().enumerate() {
            let mut problem = of.problem;
            if number > 0 {
                let name = problem.kernel.name.clone();
                problem = again(cli, &args.nvcc, input, (&name, &text))?;
            }
            let sizes = state(&mut problem, &args.stencil.sizes, own);
            let kernel = &problem.kernel;
            let file = source(input, text.clone());
            let target = target_of(&kernel.name, &gpu, &problem.kernel.pragma.sizes);
            let doing = format!("{}: {TRYING}", kernel.name);
            let chosen = || choose(kernel, (&file, &target), &mut executor);
            let chosen = progress::waiting(&doing, chosen);
            let mut chosen = chosen.map_err(|e| Failure::from(failure(e)))?;
            if let Some(kept) = &chosen.kept
                && let Err(why) = compiles(&source(input, kept.text.clone()), &executor.builders)
            {
                left.push(Left {
                    kernel: kernel.name.clone(),
                    reason: format!("nvcc refuses the file with it rewritten: {why}"),
                });
                chosen.kept = None;
                chosen.version = None;
            }
            let mut document = document(args, input, (kernel, sizes), &chosen, gpu.to_string());
            document.no_stencil = of.no_stencil;
            document.uses = uses_left(chosen.kept.as_ref(), &kernel.name, [input.text()?, &text]);
            if let Some(kept) = chosen.kept {
                text = kept.text;
            }
            documents.push(document);
        }
        Ok::<(), Failure>(())
    })?;
    if let Some(last) = documents.last_mut() {
        last.left = left;
    }
    let is_checked = documents.iter().all(|d| d.unchecked.is_none());
    if !is_checked {
        text += "// Not checked: what warpwright added here was never compared with the input.\n";
    }
    if let Some(output) = &args.output {
        write_atomically(output, text.as_bytes())?;
    }
    if let [document] = &documents[..] {
        super::write_page(args.show.report.as_deref(), document)?;
    }
    match (args.show.json, &documents[..]) {
        (true, [document]) => super::print_json(document)?,
        (true, _) => super::print_json(&Documents {
            schema: "warpwright.naive-opts/1",
            input: input.name.clone(),
            kernels: documents,
            output: super::opt::written_to(args),
        })?,
        (false, all) => {
            for (number, document) in all.iter().enumerate() {
                if number > 0 {
                    println!();
                }
                print(document);
            }
            if let Some(output) = super::opt::written_to(args) {
                let is_changed = text != input.text()?;
                println!("{}", super::stencil_opt::written(&output, is_changed));
            }
        }
    }
    match is_checked || args.stencil.unchecked {
        true => Ok(()),
        false => Err(Failure::Quiet(5)),
    }
}

/// Does nvcc take a file as a whole? Kernels are compared alone where its host code stands in the way, and launches are
/// rewritten after that. Without nvcc nobody knows.
///
/// # Errors
/// What it says.
pub fn compiles(file: &Artifact, builders: &Builders<'_>) -> Result<(), String> {
    let (Some(file), Some(compile)) = (file.as_source(), builders.compile_unfused) else {
        return Ok(());
    };
    match compile(file) {
        Err(CompileError::Rejected(why)) => Err(why),
        _ => Ok(()),
    }
}

fn document(
    args: &OptArgs,
    input: &Input,
    (kernel, sizes): (&Kernel, Sizes),
    chosen: &Chosen,
    gpu: String,
) -> Document {
    let kept = chosen.kept.as_ref();
    let step = kept.map(|kept| &kept.step);
    let comparison = step.and_then(|step| step.comparison.as_ref());
    Document {
        schema: "warpwright.naive-opt/1",
        input: input.name.clone(),
        kernel: kernel.name.clone(),
        gpu,
        accesses: explain::accesses(kernel),
        sizes,
        versions: chosen
            .versions
            .iter()
            .map(|v| Row {
                schedule: v.pass.to_string(),
                predicted_ms: v.predicted.ms,
                bound: v.predicted.bound,
                rejected: v.rejected.as_ref().map(ToString::to_string),
            })
            .collect(),
        chosen: chosen.version,
        recipe_text: step.map_or_else(String::new, |step| step.pass.to_string()),
        steps: step.map_or_else(Vec::new, |step| step.notes.clone()),
        original_ms: chosen.original_ms,
        reordered: step.is_some_and(|step| step.cautions.contains(&Caution::Reordered)),
        checked: comparison.and_then(|c| match &c.rung {
            Rung::Agrees(checked) => Some(checked.clone()),
            _ => None,
        }),
        unchecked: kept.and_then(|kept| kept.unchecked.clone()),
        launches: comparison.and_then(|c| c.launches),
        uses: Vec::new(),
        left: Vec::new(),
        no_stencil: String::new(),
        output: super::opt::written_to(args),
    }
}

fn print(document: &Document) {
    let title = format!(
        "naive kernel {} for {}: a thread computes one output element; no stencil: {}",
        document.kernel, document.gpu, document.no_stencil
    );
    println!("{}\n", wrap(&title, "", "  ").join("\n"));
    for access in &document.accesses {
        println!("{}", wrap(access, "  ", "    ").join("\n"));
    }
    println!();
    let mut table = Table::new(&["", "schedule", "predicted ms", "bound by", "note"]);
    for (at, row) in document.versions.iter().enumerate() {
        table.row(vec![
            if document.chosen == Some(at) { "*" } else { "" }.into(),
            row.schedule.clone(),
            format!("{:.4}", row.predicted_ms),
            row.bound.into(),
            row.rejected.as_ref().map_or("", |_| "dropped").to_owned(),
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
    print!("{}", table.render_within(1));
    let at = document.sizes.at();
    if !at.is_empty() {
        println!(
            "{}",
            wrap(&format!("predicted{at}"), "    ", "      ").join("\n")
        );
    }
    println!();
    let all = document.versions.iter();
    let why = all.filter_map(|row| Some((&*row.schedule, row.rejected.as_deref()?)));
    print!("{}", dropped(why));
    if document.chosen.is_none() {
        println!(
            "stays as it is: no {}schedule is predicted to gain enough",
            if document.versions.is_empty() {
                ""
            } else {
                "other "
            }
        );
    }
    for step in &document.steps {
        println!("{}", wrap(step, "", "  ").join("\n"));
    }
    let again = document.sizes.options();
    if !document.recipe_text.is_empty() && !again.is_empty() {
        let text = format!("once more: --recipe '{}'{again}", document.recipe_text);
        println!("{}", wrap(&text, "", "  ").join("\n"));
    }
    if let Some(checked) = &document.checked {
        let how = match document.reordered {
            false => "to the bit",
            true => {
                "within 1e-5 (float) or 1e-13 (double) of the largest value, sums reordered as its pragma or its atomics permit"
            }
        };
        let text = format!(
            "agrees with the input in the emulator {how}, without races in shared memory: {} at {} launches{}",
            checked.kernels.join(", "),
            checked.sizes.len(),
            match checked.shrunk {
                true => ", the file's constants made small",
                false => "",
            }
        );
        println!("{}", wrap(&text, "", "").join("\n"));
    }
    if let Some(why) = &document.unchecked {
        let text = format!("NOT CHECKED against the input: {why}");
        println!("{}", wrap(&text, "", "  ").join("\n"));
    }
    for left in &document.uses {
        println!("{}", wrap(left, "", "").join("\n"));
    }
    if let Some(launches) = document.launches {
        println!("launches rewritten: {launches}");
    }
    for Left { kernel, reason } in &document.left {
        let text = format!("{kernel} stays as written: {reason}");
        println!("{}", wrap(&text, "", "  ").join("\n"));
    }
}
