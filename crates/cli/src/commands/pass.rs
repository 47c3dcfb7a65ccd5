//! `warpwright pass`: one pass alone, or a sequence of them.

use std::path::Path;

use serde::Serialize;
use warpwright::source::build::with_builders;
use warpwright::source::naive::refused_by_nvcc;
use warpwright::source::{source, target};
use warpwright::{DeviceCode, Error, RefusedPtx};
use warpwright_diag::count;
use warpwright_pass::names::source_name;
use warpwright_pass::options::Arguments;
use warpwright_pass::registry::{PASSES, find};
use warpwright_pass::{
    Artifact, CarriedOut, CarryError, Caution, Demand, Done, Executor, Fuel, Invocation,
    Level as PassLevel, Recipe, RunError, Rung, Scope, ScopeError, Stepped, carry_out, plans,
};
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::{BuildCache, ToolError};

use super::stencil_opt::print_written;
use crate::args::{Cli, Floating, OptArgs, PassArgs};
use crate::failure::Failure;
use crate::session;
use crate::terminal::document;
use warpwright::{Input, Level};
use warpwright_files::{self as files, Kind, stage, write_atomically};
use warpwright_report::screen::{behind, wrap};

/// Runs the command: the result goes to stdout or OUT, what the passes have to say about it to stderr.
pub fn run(cli: &Cli, args: &PassArgs) -> Result<(), Failure> {
    if args.list {
        return list();
    }
    let (Some(name), Some(file)) = (&args.name, &args.file) else {
        return Err(Failure::Usage("NAME and FILE are wanted, or --list".into()));
    };
    let recipe = recipe(args, name)?;
    let first = recipe.passes().first().map(Invocation::level);
    let input = files::read(file)?;
    let options = session::options(&input, &args.kernel, &args.nvcc)?;
    let mut scope = options.scope();
    match input.level {
        Level::Cubin | Level::Fat => return on_cubins(cli, args, &recipe, &input, &scope),
        Level::Cuda | Level::Stencil if first == Some(PassLevel::Source) => {
            scope.gpu = Some(match scope.gpu {
                Some(gpu) => gpu,
                None => any_gpu()?,
            });
            let source = source(&input, input.text()?.to_owned());
            let all = carry(cli, &how(args, &options.nvcc), &source, &recipe, &scope)?;
            return write(args.output.as_deref(), &all);
        }
        _ => {}
    }
    // The level of the last pass says what comes out, before any work.
    let last = recipe.passes().last().map(Invocation::level);
    match (&args.output, last) {
        (None, Some(PassLevel::MachineCode)) => return Err(no_output()),
        (Some(output), Some(PassLevel::Ptx)) => {
            Kind::Ptx
                .fits(output)
                .map_err(|failure| built(failure.into(), output, &recipe))?;
        }
        _ => {}
    }
    let module = session::module(cli, &input, scope.gpu.as_ref(), &options.nvcc, false)?;
    if let Some(gpu) = scope.gpu {
        scope.gpu = Some(session::target(&module, Some(gpu))?);
    }
    let how = How {
        file: Some(&input),
        ..how(args, &[])
    };
    let all = carry(cli, &how, &session::verified(module)?, &recipe, &scope)?;
    write(args.output.as_deref(), &all)
}

/// Who wants a cubin of a pass over PTX is told which command builds one.
fn built(failure: Failure, output: &Path, recipe: &Recipe) -> Failure {
    let is_cubin = output.extension().is_some_and(|ending| ending == "cubin");
    match failure {
        Failure::Usage(what) if is_cubin => Failure::Usage(format!(
            "{what}; `warpwright opt FILE --recipe '{recipe}' -o {}` builds it",
            output.display()
        )),
        other => other,
    }
}

/// NAME with its options, or a whole recipe.
fn recipe(args: &PassArgs, name: &str) -> Result<Recipe, Failure> {
    let is_plain = find(name).is_some();
    if !is_plain && (args.regs.is_some() || !args.set.is_empty()) {
        return Err(Failure::Usage(
            "--regs and --set go with the NAME of one pass; in a recipe, options stand in brackets"
                .into(),
        ));
    }
    if !is_plain {
        return Ok(name.parse()?);
    }
    let mut arguments = Arguments::default();
    if let Some(registers) = args.regs {
        arguments.set("registers", registers.to_string());
    }
    for (name, value) in &args.set {
        arguments.set(name, value);
    }
    let pass = Invocation::new(name, arguments)?;
    Ok(Recipe::new(vec![pass])?)
}

/// `opt --recipe` from CUDA C to CUDA C: what the passes make of the kernels, or an error.
pub fn replay(cli: &Cli, args: &OptArgs, input: &Input, recipe: &str) -> Result<(), Failure> {
    let recipe: Recipe = recipe.parse()?;
    let wrong = |pass: &&Invocation| pass.level() != PassLevel::Source;
    if let Some(wrong) = recipe.passes().iter().find(wrong) {
        return Err(Failure::Usage(format!(
            "`{wrong}` works on {}, and OUT.cu is CUDA C",
            wrong.level()
        )));
    }
    let options = session::options(input, &args.kernel, &args.nvcc)?;
    let scope = Scope {
        gpu: Some(target(args.kernel.gpu.as_deref())?),
        sizes: &args.stencil.sizes,
        reassociate: args.stencil.fp == Some(Floating::Reassociate),
        ..options.scope()
    };
    let how = How {
        fuel: args.fuel,
        demand: Demand::Proved,
        nvcc: &options.nvcc,
        file: None,
    };
    let file = source(input, input.text()?.to_owned());
    let all = carry(cli, &how, &file, &recipe, &scope)?;
    let refused = |done: &Done| Some((done.kernel.clone()?, done.refused.clone()?.1));
    if let Some((kernel, refusal)) = all.kernels.iter().find_map(refused) {
        return Err(Failure::input(format!(
            "{}: {refusal}",
            source_name(&kernel)
        )));
    }
    if all.artifact.bytes() != input.text()?.as_bytes() {
        let gpu = scope.gpu(&file)?;
        let tools = session::tools(cli, how.nvcc)?;
        let refused = with_builders(&tools, &gpu, |builders| {
            refused_by_nvcc(&all.artifact, &builders)
        });
        if let Some(why) = refused {
            return Err(Failure::Undecided(format!(
                "nvcc refuses the file with it rewritten, so nothing is written: {why}"
            )));
        }
    }
    if let Some(output) = &args.output {
        write_atomically(output, all.artifact.bytes())?;
    }
    if !args.show.json {
        for done in &all.kernels {
            let kernel = done.kernel.as_deref().map(source_name).unwrap_or_default();
            for stepped in &done.steps {
                let Some(rung) = stepped.rung.as_ref().ok().copied() else {
                    continue;
                };
                let text = format!("{kernel}: {}: {}", stepped.step.pass, behind(rung));
                println!("{}", wrap(&text, "", "  ").join("\n"));
            }
        }
        let is_changed = all.artifact.bytes() != input.text()?.as_bytes();
        print_written(super::opt::written_to(args).as_deref(), is_changed);
        return Ok(());
    }
    let step = |stepped: &Stepped| Passed {
        pass: stepped.step.pass.to_string(),
        rewrites: stepped.step.rewrites,
        rung: stepped.rung.as_ref().ok().copied(),
        notes: stepped.step.notes.clone(),
        cautions: stepped.step.cautions.clone(),
    };
    let kernel = |done: &Done| Replayed {
        kernel: done.kernel.clone(),
        steps: done.steps.iter().map(step).collect(),
    };
    super::print_json(&Document {
        schema: "warpwright.source-recipe/1",
        input: input.name.clone(),
        recipe_text: recipe.to_string(),
        kernels: all.kernels.iter().map(kernel).collect(),
        output: super::opt::written_to(args),
    })
}

/// The JSON document of [`replay`].
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    input: String,
    recipe_text: String,
    kernels: Vec<Replayed>,
    output: Option<String>,
}

#[derive(Serialize)]
struct Replayed {
    kernel: Option<String>,
    steps: Vec<Passed>,
}

/// A pass, and what stands behind its result.
#[derive(Serialize)]
struct Passed {
    pass: String,
    rewrites: u64,
    rung: Option<Rung>,
    notes: Vec<String>,
    cautions: Vec<Caution>,
}

/// What is permitted, and how is built.
struct How<'a> {
    fuel: Option<u64>,
    demand: Demand,
    /// Options for nvcc.
    nvcc: &'a [String],
    /// The file whose PTX is built.
    file: Option<&'a Input>,
}

fn how<'a>(args: &PassArgs, nvcc: &'a [String]) -> How<'a> {
    How {
        fuel: args.fuel,
        demand: match args.unproved {
            true => Demand::Whatever,
            false => Demand::Proved,
        },
        nvcc,
        file: None,
    }
}

/// Carries the recipe out and says what was done.
fn carry(
    cli: &Cli,
    how: &How<'_>,
    input: &Artifact,
    recipe: &Recipe,
    scope: &Scope<'_>,
) -> Result<CarriedOut, Failure> {
    let plans = plans(input, scope, recipe)?;
    let is_whole = plans.iter().all(|plan| plan.kernel.is_none());
    let gpu = match scope.gpu(input) {
        // What no pass asks for need not be known.
        Err(ScopeError::NoGpu) if is_whole => any_gpu()?,
        gpu => gpu?,
    };
    let tools = session::tools(cli, how.nvcc)?;
    let all = with_builders(&tools, &gpu, |builders| {
        let mut executor = Executor::new(builders);
        executor.fuel = how.fuel.map_or_else(Fuel::default, Fuel::limited);
        carry_out(
            &mut executor,
            input,
            (scope, &gpu),
            &plans,
            (input.level(), how.demand),
        )
        .and_then(CarriedOut::as_launched)
    })
    .map_err(|error| refused(cli, how, input, &gpu, recipe, error))?;
    say(cli, &all);
    Ok(all)
}

/// What went wrong; of what ptxas refuses, whose text it is.
fn refused(
    cli: &Cli,
    how: &How<'_>,
    input: &Artifact,
    gpu: &Gpu,
    recipe: &Recipe,
    error: CarryError,
) -> Failure {
    let said = match &error {
        CarryError::Run { error, .. } => match &**error {
            RunError::Build(failure) => failure.downcast_ref::<ToolError>(),
            _ => None,
        },
        _ => None,
    };
    let (Some(said), Some(file), Some(module)) = (said, how.file, input.as_module()) else {
        return error.into();
    };
    let found = session::toolkit(cli).ok().and_then(|toolkit| {
        let tools = (&toolkit, &BuildCache::standard());
        let text = (file, &*module.source, &*gpu.target());
        RefusedPtx::of(tools, text, &recipe.to_string(), said)
    });
    match found {
        Some(found) => Error::Ptxas(Box::new(found)).into(),
        None => error.into(),
    }
}

fn any_gpu() -> Result<Gpu, Failure> {
    lookup("sm_90").map_err(|error| Failure::Internal(error.to_string()))
}

/// What each pass did, on stderr.
pub fn say(cli: &Cli, all: &CarriedOut) {
    for done in &all.kernels {
        let of = done
            .kernel
            .as_ref()
            .map_or_else(String::new, |name| format!("{}: ", source_name(name)));
        for stepped in &done.steps {
            let step = &stepped.step;
            for note in &step.notes {
                eprintln!("{of}{note}");
            }
            for caution in &step.cautions {
                eprintln!("{of}{caution}");
            }
            if !stepped.promises.is_empty() {
                eprintln!("{of}{}", warpwright_pass::rests_on(&stepped.promises));
            }
            match &stepped.rung {
                Err(error) => eprintln!("{of}{error}"),
                Ok(rung) if cli.verbose > 0 => eprintln!(
                    "{of}{}: {} in {:.1} ms; {rung} in {:.1} ms",
                    step.pass,
                    count(step.rewrites, "rewrite"),
                    step.elapsed.as_secs_f64() * 1e3,
                    stepped.proof.as_secs_f64() * 1e3,
                ),
                Ok(_) => {}
            }
        }
        if let Some((pass, refusal)) = &done.refused {
            eprintln!("{of}unchanged by {}: {refusal}", pass.name());
        }
    }
}

/// Text goes to stdout where no OUT is named; a cubin needs a file.
fn write(output: Option<&Path>, all: &CarriedOut) -> Result<(), Failure> {
    let bytes = all.artifact.bytes();
    let is_cubin = all.artifact.as_cubin().is_some();
    match (output, std::str::from_utf8(bytes)) {
        (Some(output), _) => {
            kind(&all.artifact).fits(output)?;
            Ok(write_atomically(output, bytes)?)
        }
        (None, Ok(text)) if !is_cubin => {
            document(text);
            Ok(())
        }
        _ => Err(no_output()),
    }
}

/// What a result is.
fn kind(artifact: &Artifact) -> Kind {
    match (artifact.as_cubin(), artifact.as_source()) {
        (Some(_), _) => Kind::Cubin,
        (None, Some(_)) => Kind::Cuda,
        (None, None) => Kind::Ptx,
    }
}

fn no_output() -> Failure {
    Failure::Usage("-o OUT is wanted: the result is a cubin".into())
}

/// Passes over a finished cubin, or over those in a host file.
fn on_cubins(
    cli: &Cli,
    args: &PassArgs,
    recipe: &Recipe,
    input: &Input,
    scope: &Scope<'_>,
) -> Result<(), Failure> {
    let wrong = |pass: &&Invocation| pass.level() != PassLevel::MachineCode;
    if let Some(wrong) = recipe.passes().iter().find(wrong) {
        let text = format!(
            "`{wrong}` works on {}, and `{}` is machine code",
            wrong.level(),
            input.name
        );
        return Err(Failure::input(text));
    }
    let (Some(output), Some(file)) = (&args.output, &args.file) else {
        return Err(Failure::Usage("-o OUT is wanted".into()));
    };
    let kind = match input.level {
        Level::Fat => Kind::Host,
        _ => Kind::Cubin,
    };
    kind.fits(output)?;
    let code = DeviceCode::of(input, scope.gpu.as_ref())?.with_kernels(scope.kernels)?;
    let mut edited = Vec::new();
    for cubin in &code.cubins {
        // nvcc links stubs without kernels into programs and libraries.
        if code.cubins.len() > 1 && !cubin.has_kernels() {
            edited.push(cubin.bytes.clone());
            continue;
        }
        let artifact = Artifact::cubin(cubin.bytes.clone());
        let artifact = artifact.map_err(|error| Failure::input(error.to_string()))?;
        let here = cubin.named(scope.kernels);
        let scope = Scope {
            kernels: &here,
            ..*scope
        };
        let all = carry(cli, &how(args, &[]), &artifact, recipe, &scope)?;
        // With a name, a refusal is an error; without one it has been said.
        let refused = all.kernels.iter().find_map(|done| done.refused.as_ref());
        if let (Some(kernel), Some((_, refusal))) = (scope.kernels.first(), refused) {
            return Err(Failure::input(format!(
                "{}: {refusal}",
                source_name(kernel)
            )));
        }
        edited.push(all.artifact.bytes().to_vec());
    }
    write_like(file, output, &code.replaced(&edited)?)
}

/// Writes OUT with the permissions of FILE: an executable stays one.
fn write_like(file: &Path, output: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut staged = stage(output, bytes)?;
    staged.like(file)?;
    Ok(staged.commit()?)
}

fn list() -> Result<(), Failure> {
    for pass in PASSES {
        println!("{}", pass.name);
        let mut about = vec![pass.about.to_owned()];
        for parameter in (pass.parameters)() {
            let (name, wanted) = (parameter.name, parameter.wanted);
            about.push(format!("{name}={wanted}: {}", parameter.about));
        }
        for text in about {
            for line in wrap(&text, "  ", "    ") {
                println!("{line}");
            }
        }
    }
    Ok(())
}
