//! `warpwright opt` for a stencil: the input with a faster kernel in it, in CUDA C. No GPU is needed; what is written was
//! compared with the input in the PTX emulator, which needs nvcc.

use std::path::Path;

use serde::Serialize;
use warpwright_cudac::diag::{Source, render_all};
use warpwright_driver::opt::failure;
use warpwright_driver::source::Kept;
use warpwright_driver::stencil::{Chosen, Verdict, choose};
use warpwright_ladder::{Checked, Rung};
use warpwright_pass::{Executor, Fuel, Setting, Target};
use warpwright_report::results::{StencilResult, StencilVersion};
use warpwright_stencil::evaluate::Sizes;
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::replace::{Note, Use};
use warpwright_stencil::versions::{Family, Problem, Version, versions};
use warpwright_stencil::{dsl, extract};
use warpwright_target::{Gpu, lookup};

use super::naive_opt::TRYING;
use super::own_sizes::OwnSizes;
use super::pass::source;
use crate::args::{Cli, Floating, OptArgs, StencilArgs};
use crate::build::with_builders;
use crate::failure::Failure;
use crate::input::{Input, Level, is_stdout, write_atomically};
use crate::{progress, session};
use warpwright::front::{DEFAULT_GPU, architecture};
use warpwright_report::screen::{dropped, wrap};
use warpwright_report::table::Table;

/// Versions of each family that are shown.
const SHOWN: usize = 8;

/// The JSON document of `opt` for a stencil.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    input: String,
    stencil: String,
    gpu: String,
    sizes: Vec<(String, i64)>,
    /// Those of them that nobody gave.
    assumed_sizes: Vec<String>,
    /// The launch that has the others that nobody gave.
    launch: Option<String>,
    reassociate: bool,
    versions: Vec<StencilVersion>,
    chosen: usize,
    /// What `--recipe` takes; empty: the input stays as it is.
    recipe_text: String,
    /// What the chosen version was compared at; none: it was not checked, or it is the input.
    checked: Option<Checked>,
    /// Why it was not checked.
    unchecked: Option<String>,
    /// Launches that were rewritten.
    launches: Option<usize>,
    /// Uses of the kernel that were left as they are.
    left: Vec<String>,
    output: Option<String>,
}

/// Is it source that becomes source: a `.stencil`, or CUDA C that is to stay CUDA C?
pub fn is_wanted(input: &Input, output: Option<&Path>) -> bool {
    let ends_in_cu = output.is_some_and(|path| path.extension().is_some_and(|e| e == "cu"));
    input.level == Level::Stencil || input.level == Level::Cuda && ends_in_cu
}

/// A stencil becomes CUDA C++, and OUT says so.
pub fn refuse_other_levels(output: Option<&Path>) -> Result<(), Failure> {
    match output {
        None => Ok(()),
        Some(output) if is_stdout(output) || output.extension().is_some_and(|e| e == "cu") => {
            Ok(())
        }
        Some(output) => Err(Failure::input(format!(
            "`{}`: a stencil becomes CUDA C++; name OUT.cu (and optimize that once more for a cubin)",
            output.display()
        ))),
    }
}

/// From source to source, options about builds and launches would be dropped without a word.
pub fn refuse_what_has_no_effect(args: &OptArgs) -> Result<(), Failure> {
    let given = [
        ("--emit", args.emit.is_some()),
        ("--keep", args.keep.is_some()),
        ("--block", !args.kernel.block.is_empty()),
        ("--dynamic-smem", args.kernel.dynamic_smem.is_some()),
        (
            "--launch beside --recipe",
            args.kernel.launch.is_some() && args.recipe.is_some(),
        ),
    ];
    match session::first_given(&given) {
        None => Ok(()),
        Some(name) => Err(Failure::Usage(format!(
            "{name} has no effect from source to source (--grid NAME=N or --launch states sizes); without OUT.cu, candidates of \
             a build are tried"
        ))),
    }
}

/// The same with the architecture that options of nvcc name as its GPU; it may not contradict `--gpu`.
pub fn for_one_target(args: &OptArgs) -> Result<OptArgs, Failure> {
    let mut args = args.clone();
    let named = session::named_gpu(args.kernel.gpu.as_deref())?;
    let (stated, nvcc) = architecture(named.as_ref(), &args.nvcc)?;
    args.kernel.gpu = args.kernel.gpu.or(stated);
    args.nvcc = nvcc;
    Ok(args)
}

/// The JSON document for a file with several stencils.
#[derive(Serialize)]
struct Documents {
    schema: &'static str,
    input: String,
    stencils: Vec<Document>,
    output: Option<String>,
}

/// Runs the command. `own` are the sizes of the file's launches.
pub fn run(
    cli: &Cli,
    args: &OptArgs,
    input: &Input,
    own: &dyn Fn() -> Result<OwnSizes, Failure>,
) -> Result<(), Failure> {
    refuse_other_levels(args.output.as_deref())?;
    let names = stencils(cli, args, input)?;
    let own = &own()?;
    if let [name] = &names[..] {
        let name = name.as_deref();
        let problem = read_problem(cli, input, name, (&args.stencil, &args.nvcc))?;
        let stencil = &problem.stencil;
        let text = input.text()?.to_owned();
        let (document, chosen, text) = one(
            cli,
            args,
            input,
            (stencil, text),
            (&args.stencil.sizes, own),
        )?;
        write(args, &text, document.unchecked.is_some())?;
        super::write_page(args.show.report.as_deref(), &document)?;
        if args.show.json {
            super::print_json(&document)?;
        } else {
            print(&document, &chosen, args.all);
            let is_changed = input.level == Level::Stencil || text != input.text()?;
            print_written(document.output.as_deref(), is_changed);
        }
        return decided(args, document.unchecked.is_none());
    }
    several(cli, args, input, (&names, own))
}

/// Exit code 5 for what was not checked, unless that was permitted.
fn decided(args: &OptArgs, is_checked: bool) -> Result<(), Failure> {
    match is_checked || args.stencil.unchecked {
        true => Ok(()),
        false => Err(Failure::Quiet(5)),
    }
}

/// The names of the kernels to transform; nothing in place of a name where there is only one.
fn stencils(cli: &Cli, args: &OptArgs, input: &Input) -> Result<Vec<Option<String>>, Failure> {
    let given = args.kernel.one()?;
    if input.level == Level::Stencil {
        return Ok(vec![given.map(str::to_owned)]);
    }
    let file = super::cuda::read(cli, input, None, &args.nvcc)?;
    if let Some(given) = given {
        let names = super::cuda::named(&file, given)?;
        return Ok(names.into_iter().map(Some).collect());
    }
    let chosen = extract::choose_all(&file)
        .map_err(|problem| Failure::Rendered(render_all(&[problem], &file.source)))?;
    let names = chosen.iter().map(|header| Some(header.name.text.clone()));
    Ok(names.collect())
}

/// One kernel after the other, each in the text that the one before it left.
fn several(
    cli: &Cli,
    args: &OptArgs,
    input: &Input,
    (names, own): (&[Option<String>], &OwnSizes),
) -> Result<(), Failure> {
    if args.show.report.is_some() {
        let what = "--report shows one stencil: --kernel NAME names it";
        return Err(Failure::Usage(what.to_owned()));
    }
    let mut text = input.text()?.to_owned();
    let reassociate = args.stencil.fp == Some(Floating::Reassociate);
    let (mut documents, mut unknown) = (Vec::new(), args.stencil.sizes.clone());
    for name in names.iter().flatten() {
        let file = super::cuda::read_again(cli, input, &args.nvcc, text.clone())?;
        let problems = |problems: Vec<_>| Failure::Rendered(render_all(&problems, &file.source));
        let header = extract::choose(&file, Some(name)).map_err(|p| problems(vec![p]))?[0].clone();
        let problem = Problem::of_cuda(file.clone(), &header, reassociate).map_err(problems)?;
        let has = |size: &String| problem.stencil.parameters.values().any(|p| p == size);
        let given = args.stencil.sizes.iter().filter(|(size, _)| has(size));
        let given: Vec<(String, i64)> = given.cloned().collect();
        unknown.retain(|(size, _)| !has(size));
        let of = (&problem.stencil, text.clone());
        let (document, chosen, new) = one(cli, args, input, of, (&given, own))?;
        text = new;
        if !args.show.json {
            print(&document, &chosen, args.all);
            println!();
        }
        documents.push(document);
    }
    if let Some((size, _)) = unknown.first() {
        let what = format!("no stencil of `{}` has a size `{size}`", input.name);
        return Err(Failure::input(what));
    }
    let is_checked = documents.iter().all(|d| d.unchecked.is_none());
    write(args, &text, !is_checked)?;
    let output = super::opt::written_to(args);
    if args.show.json {
        super::print_json(&Documents {
            schema: "warpwright.stencil-opts/1",
            input: input.name.clone(),
            stencils: documents,
            output,
        })?;
    } else {
        print_written(output.as_deref(), text != input.text()?);
    }
    decided(args, is_checked)
}

/// Is there a version of a stencil, at the usual sizes?
pub fn can_be_written(stencil: &Stencil, gpu: &Gpu) -> bool {
    sizes(stencil, &[]).is_ok_and(|sizes| !versions(stencil, gpu, &sizes, SHOWN, false).is_empty())
}

/// The sizes that a stencil is rewritten for.
pub struct Known {
    /// Those that somebody said.
    pub known: Vec<(String, i64)>,
    /// All.
    pub sizes: Sizes,
    /// Which launch has those that were not given.
    pub launch: Option<String>,
}

/// Those that are given, then those of its launch, then the usual ones.
///
/// # Errors
/// One that the stencil does not have, or that leaves no points.
pub fn known_sizes(
    stencil: &Stencil,
    given: &[(String, i64)],
    own: &OwnSizes,
) -> Result<Known, Failure> {
    sizes(stencil, given)?;
    let launched = own.of_stencil(stencil, given);
    let launched = launched.filter(|(sizes, _)| !sizes.is_empty());
    let (own, launch) = launched.map_or((Vec::new(), None), |(sizes, at)| {
        (sizes, Some(at.to_owned()))
    });
    let known = [given, &own].concat();
    let sizes = sizes(stencil, &known)?;
    Ok(Known {
        known,
        sizes,
        launch,
    })
}

/// Chooses a version of one kernel of a text; the choice, and the text that has it.
fn one(
    cli: &Cli,
    args: &OptArgs,
    input: &Input,
    (stencil, text): (&Stencil, String),
    (given, own): (&[(String, i64)], &OwnSizes),
) -> Result<(Document, Chosen, String), Failure> {
    let gpu = target(args.kernel.gpu.as_deref())?;
    let Known {
        known,
        sizes,
        launch,
    } = known_sizes(stencil, given, own)?;
    let found = versions(stencil, &gpu, &sizes, SHOWN, false);
    let file = source(input, text.clone());
    let target = target_of(stencil, &gpu);
    let chosen = with_builders(cli, &gpu, &args.nvcc, |builders| {
        let mut executor = Executor::new(builders);
        executor.fuel = args.fuel.map_or_else(Fuel::default, Fuel::limited);
        let doing = format!("{}: {TRYING}", stencil.name);
        progress::waiting(&doing, || choose(&found, (&file, &target), &mut executor))
    });
    let chosen = chosen.map_err(|e| Failure::from(failure(e)))?;
    let chosen = chosen.ok_or_else(|| {
        Failure::input(format!("no kernel can be written for `{}`", stencil.name))
    })?;
    let kept = chosen.kept.as_ref();
    let comparison = kept.and_then(|kept| kept.step.comparison.as_ref());
    let document = Document {
        schema: "warpwright.stencil-opt/2",
        input: input.name.clone(),
        stencil: stencil.name.clone(),
        gpu: gpu.to_string(),
        sizes: named_sizes(stencil, &sizes),
        assumed_sizes: assumed(stencil, &known),
        launch,
        reassociate: stencil.reassociate,
        versions: found.iter().zip(&chosen.verdicts).map(measured).collect(),
        chosen: chosen.version,
        recipe_text: kept.map_or_else(String::new, |kept| kept.step.pass.to_string()),
        checked: comparison.and_then(|c| match &c.rung {
            Rung::Agrees(checked) => Some(checked.clone()),
            _ => None,
        }),
        unchecked: kept.and_then(|kept| kept.unchecked.clone()),
        launches: comparison.and_then(|c| c.launches),
        left: left(kept, &stencil.name, [input.text()?, &text]),
        output: super::opt::written_to(args),
    };
    let text = kept.map_or(text, |kept| kept.text.clone());
    Ok((document, chosen, text))
}

/// A stencil of a file.
pub fn target_of<'a>(stencil: &'a Stencil, gpu: &'a Gpu) -> Target<'a> {
    Target {
        kernel: Some(&stencil.name),
        setting: Setting {
            reassociate: stencil.reassociate,
            ..Setting::new(gpu)
        },
    }
}

fn measured((version, verdict): (&Version, &Verdict)) -> StencilVersion {
    let mut measured = StencilVersion::new(version);
    if let Verdict::Falls(fall) = verdict {
        measured.rejected = Some(fall.to_string());
    }
    measured
}

/// Writes the text, if it is wanted; one that was not compared with the input says so.
fn write(args: &OptArgs, text: &str, is_unchecked: bool) -> Result<(), Failure> {
    let Some(output) = &args.output else {
        return Ok(());
    };
    let mut text = text.to_owned();
    if is_unchecked {
        text += "// Not checked: what warpwright added here was never compared with the input.\n";
    }
    write_atomically(output, text.as_bytes())
}

/// Says where the text is, and whether it is another than the input.
pub fn written(output: &str, is_changed: bool) -> String {
    match is_changed {
        true => format!("wrote {output} (CUDA C++)"),
        false => format!("wrote {output} (CUDA C++): the input as it is, nothing was changed"),
    }
}

/// The same on stdout.
pub fn print_written(output: Option<&str>, is_changed: bool) {
    match output {
        Some(output) => println!("{}", written(output, is_changed)),
        None => println!("nothing is written: -o OUT.cu writes it"),
    }
}

/// The line of a file where a line stands that is unchanged in a text made of it.
fn line_in(file: &str, text: &str, line: usize) -> usize {
    let wanted = text.lines().nth(line - 1);
    let is_it = |line: &&str| Some(*line) == wanted;
    let before = text.lines().take(line - 1).filter(is_it).count();
    let mut alike = file.lines().zip(1..).filter(|(line, _)| is_it(line));
    alike.nth(before).map_or(line, |(_, number)| number)
}

/// What was left as it is, and what to write there instead; `texts`: the input, and the text that the kernel was in.
pub fn left(kept: Option<&Kept>, kernel: &str, texts: [&str; 2]) -> Vec<String> {
    let comparison = kept.and_then(|kept| kept.step.comparison.as_ref());
    let Some((comparison, launch)) = comparison.and_then(|c| Some((c, c.launcher.as_ref()?)))
    else {
        return Vec::new();
    };
    let note = |note: &Note| {
        let what = match note.what {
            Use::BeforeDefinition => "a launch in front of the kernel's definition",
            Use::InMacro => "a launch in a macro",
            Use::Other => "another use of the kernel",
        };
        format!(
            "line {}: {what} gets the kernel as written; for the faster one write \
             {launch}(grid, block, shared, stream, …) for {kernel}<<<grid, block, shared, stream>>>(…)",
            line_in(texts[0], texts[1], note.line)
        )
    };
    let mut left: Vec<String> = comparison.left.iter().map(note).collect();
    if comparison.launches == Some(0) {
        left.push(format!(
            "the file launches `{kernel}` nowhere that can be rewritten: call {launch}(grid, block, shared, stream, …) \
             where a program says {kernel}<<<grid, block, shared, stream>>>(…)"
        ));
    }
    left
}

fn print(document: &Document, chosen: &Chosen, all: bool) {
    let title = format!(
        "stencil {} for {}{}{}",
        document.stencil,
        document.gpu,
        size_text(&document.sizes),
        match document.reassociate {
            true => "",
            false => ", sums stay as written",
        }
    );
    println!("{}\n", wrap(&title, "", "  ").join("\n"));
    let (mut last, mut hidden, mut falls) = (None, 0, Vec::new());
    let mut table = Table::new(&["", "family", "plan", "predicted ms", "note"]);
    for (at, (version, verdict)) in document.versions.iter().zip(&chosen.verdicts).enumerate() {
        // Of each family the best one stands first.
        let is_best = last.replace(version.family) != Some(version.family);
        if !(all || is_best || at == document.chosen) {
            hidden += 1;
            continue;
        }
        let mark = if at == document.chosen { "*" } else { "" };
        let predicted = version
            .predicted_ms
            .map_or("–".into(), |ms| format!("{ms:.3}"));
        let note = match verdict {
            Verdict::Falls(fall) => {
                falls.push((version.plan.as_str(), fall.to_string()));
                "dropped".to_owned()
            }
            Verdict::Kept if document.unchecked.is_some() => "not checked".to_owned(),
            Verdict::NoGain => "no gain".to_owned(),
            Verdict::Kept | Verdict::NotTried => String::new(),
        };
        table.row(vec![
            mark.into(),
            family(version.family).into(),
            version.plan.clone(),
            predicted,
            note,
        ]);
    }
    print!("{}", table.render_within(1));
    if let Some(launch) = &document.launch {
        let text = format!("sizes of {launch}");
        println!("{}", wrap(&text, "    ", "      ").join("\n"));
    }
    let assumed = document.assumed_sizes.iter();
    let mut assumed: Vec<String> = assumed
        .map(|name| format!("{name} (--grid {name}=N)"))
        .collect();
    assumed.push("the block of the original".to_owned());
    let text = format!("assumed: {}", assumed.join(", "));
    println!("{}", wrap(&text, "    ", "      ").join("\n"));
    if hidden > 0 {
        println!("    {hidden} more with --all");
    }
    println!();
    print!(
        "{}",
        dropped(falls.iter().map(|(plan, why)| (*plan, &**why)))
    );
    if !document.recipe_text.is_empty() {
        let text = format!("once more: --recipe '{}'", document.recipe_text);
        println!("{}", wrap(&text, "", "  ").join("\n"));
    }
    if let Some(checked) = &document.checked {
        let sizes: Vec<String> = checked
            .sizes
            .iter()
            .map(|s| size_text(s)[2..].to_owned())
            .collect();
        let text = format!(
            "agrees with the input in the emulator{} ({}), {}, at {}{}",
            match checked.distance {
                0.0 => " to the bit".to_owned(),
                apart => format!(" within {apart:.1e} of the largest value"),
            },
            checked.kernels.join(", "),
            "without races in shared memory",
            sizes.join("; "),
            if checked.shrunk {
                ", the file's constants made small"
            } else {
                ""
            },
        );
        println!("{}", wrap(&text, "", "").join("\n"));
    }
    if let Some(why) = &document.unchecked {
        let text = format!("NOT CHECKED against the input: {why}");
        println!("{}", wrap(&text, "", "  ").join("\n"));
    }
    for left in &document.left {
        println!("{}", wrap(left, "", "").join("\n"));
    }
    if let Some(launches) = document.launches {
        println!("launches rewritten: {launches}");
    }
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
    let mut order: Vec<&StencilVersion> = result.versions.iter().collect();
    order.sort_by(|a, b| {
        let key = |v: &StencilVersion| v.ms.unwrap_or(f64::INFINITY);
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
    print!("{}", table.render_within(2));
}

/// The one stencil of a file, with the permissions of the command line.
pub fn read_problem(
    cli: &Cli,
    input: &Input,
    kernel: Option<&str>,
    (args, nvcc): (&StencilArgs, &[String]),
) -> Result<Problem, Failure> {
    let source = Source::new(&*input.name, input.text()?);
    let problems = |problems: Vec<_>| Failure::Rendered(render_all(&problems, &source));
    let reassociate = args.fp == Some(Floating::Reassociate);
    if input.level == Level::Stencil {
        let mut stencil = dsl::parse(&source.text).map_err(problems)?;
        stencil.reassociate |= reassociate;
        return Ok(Problem::of_language(stencil));
    }
    let file = super::cuda::read(cli, input, None, nvcc)?;
    let names = kernel.map(|kernel| super::cuda::named(&file, kernel));
    let names = names.transpose()?;
    let kernel = match names.as_deref() {
        Some([first, _, ..]) => {
            let kernel = kernel.unwrap_or(first);
            return Err(Failure::input(format!("`{kernel}` names several kernels")));
        }
        names => names.and_then(|names| names.first()),
    };
    let chosen = extract::choose(&file, kernel.map(String::as_str));
    let chosen = chosen.map_err(|problem| problems(vec![problem]))?;
    match chosen.as_slice() {
        [one] => {
            let header = (*one).clone();
            Problem::of_cuda(file, &header, reassociate).map_err(problems)
        }
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

/// The sizes that nobody gave.
fn assumed(stencil: &Stencil, given: &[(String, i64)]) -> Vec<String> {
    let is_given = |name: &&String| given.iter().any(|(given, _)| given == *name);
    let names = stencil.parameters.values();
    names.filter(|name| !is_given(name)).cloned().collect()
}

/// Sizes with their names.
pub fn named_sizes(stencil: &Stencil, sizes: &Sizes) -> Vec<(String, i64)> {
    let names = stencil.parameters.iter();
    names.map(|(id, name)| (name.clone(), sizes[id])).collect()
}
