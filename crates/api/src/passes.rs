//! Passes that somebody names: one alone, or a sequence of them, over any level.

use serde::Serialize;
use warpwright_diag::{Problem, count};
use warpwright_pass::names::source_name;
use warpwright_pass::options::Arguments;
use warpwright_pass::passes::{PASSES, find};
use warpwright_pass::{
    Artifact, CarriedOut, CarryError, Caution, Demand, Done, Executor, Fuel, Invocation,
    Level as PassLevel, Recipe, RunError, Rung, Scope, ScopeError, Stepped, carry_out, plans,
    rests_on,
};
use warpwright_report::screen::{behind, wrap};
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, ToolError};

use crate::source::build::with_builders;
use crate::source::naive::refused_by_nvcc;
use crate::source::{Tools, source, target};
use crate::{DeviceCode, Error, Input, Options, RefusedPtx};

/// NAME with its options, or a whole recipe.
///
/// # Errors
/// There is no such pass, or it has no such option.
pub fn recipe(name: &str, regs: Option<u32>, set: &[(String, String)]) -> Result<Recipe, Error> {
    let is_plain = find(name).is_some();
    if !is_plain && (regs.is_some() || !set.is_empty()) {
        return Err(Problem::Usage(
            "--regs and --set go with the NAME of one pass; in a recipe, options stand in brackets"
                .into(),
        )
        .into());
    }
    if !is_plain {
        return Ok(name.parse()?);
    }
    let mut arguments = Arguments::default();
    if let Some(registers) = regs {
        arguments.set("registers", registers.to_string());
    }
    for (name, value) in set {
        arguments.set(name, value);
    }
    let pass = Invocation::new(name, arguments)?;
    Ok(Recipe::new(vec![pass])?)
}

/// What is permitted, and how is built.
pub struct How<'a> {
    /// What builds.
    pub tools: &'a Tools<'a>,
    /// Rewrites that are permitted; none: all.
    pub fuel: Option<u64>,
    /// What has to be proved.
    pub demand: Demand,
    /// The file whose PTX is built.
    pub file: Option<&'a Input>,
    /// Is told what was done.
    pub say: &'a dyn Fn(&CarriedOut),
}

/// Carries the recipe out and says what was done.
///
/// # Errors
/// A pass refuses, or nothing is proved.
pub fn carry(
    how: &How<'_>,
    input: &Artifact,
    recipe: &Recipe,
    scope: &Scope<'_>,
) -> Result<CarriedOut, Error> {
    let plans = plans(input, scope, recipe)?;
    let is_whole = plans.iter().all(|plan| plan.kernel.is_none());
    let gpu = match scope.gpu(input) {
        // What no pass asks for need not be known.
        Err(ScopeError::NoGpu) if is_whole => any_gpu()?,
        gpu => gpu?,
    };
    let all = with_builders(how.tools, &gpu, |builders| {
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
    .map_err(|error| refused(how, input, &gpu, recipe, error))?;
    (how.say)(&all);
    Ok(all)
}

/// What went wrong; of what ptxas refuses, whose text it is.
fn refused(
    how: &How<'_>,
    input: &Artifact,
    gpu: &Gpu,
    recipe: &Recipe,
    error: CarryError,
) -> Error {
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
    let found = how.tools.toolkit().ok().and_then(|toolkit| {
        let tools = (toolkit, &BuildCache::standard());
        let text = (file, &*module.source, &*gpu.target());
        RefusedPtx::of(tools, text, &recipe.to_string(), said)
    });
    match found {
        Some(found) => Error::Ptxas(Box::new(found)),
        None => error.into(),
    }
}

/// A GPU where no pass asks for one.
fn any_gpu() -> Result<Gpu, Error> {
    crate::gpu("sm_90").map_err(|error| Problem::Internal(error.to_string()).into())
}

/// What each pass did, in lines; with how long it took, if that is asked for.
pub fn said(all: &CarriedOut, is_verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for done in &all.kernels {
        let of = done
            .kernel
            .as_ref()
            .map_or_else(String::new, |name| format!("{}: ", source_name(name)));
        for stepped in &done.steps {
            let step = &stepped.step;
            for note in &step.notes {
                lines.push(format!("{of}{note}"));
            }
            for caution in &step.cautions {
                lines.push(format!("{of}{caution}"));
            }
            if !stepped.promises.is_empty() {
                lines.push(format!("{of}{}", rests_on(&stepped.promises)));
            }
            match &stepped.rung {
                Err(error) => lines.push(format!("{of}{error}")),
                Ok(rung) if is_verbose => lines.push(format!(
                    "{of}{}: {} in {:.1} ms; {rung} in {:.1} ms",
                    step.pass,
                    count(step.rewrites, "rewrite"),
                    step.elapsed.as_secs_f64() * 1e3,
                    stepped.proof.as_secs_f64() * 1e3,
                )),
                Ok(_) => {}
            }
        }
        if let Some((pass, refusal)) = &done.refused {
            lines.push(format!("{of}unchanged by {}: {refusal}", pass.name()));
        }
    }
    lines
}

/// Do all passes of a recipe work on machine code?
///
/// # Errors
/// One does not.
pub fn check_machine_code(recipe: &Recipe, input: &Input) -> Result<(), Problem> {
    let wrong = |pass: &&Invocation| pass.level() != PassLevel::MachineCode;
    if let Some(wrong) = recipe.passes().iter().find(wrong) {
        let text = format!(
            "`{wrong}` works on {}, and `{}` is machine code",
            wrong.level(),
            input.name
        );
        return Err(Problem::Input(text));
    }
    Ok(())
}

/// Passes over a finished cubin, or over those in a host file, which becomes this.
///
/// # Errors
/// A pass refuses a kernel that was named, or nothing is proved.
pub fn over_cubins(
    how: &How<'_>,
    recipe: &Recipe,
    input: &Input,
    scope: &Scope<'_>,
) -> Result<Vec<u8>, Error> {
    let code = DeviceCode::of(input, scope.gpu.as_ref())?.with_kernels(scope.kernels)?;
    let mut edited = Vec::new();
    for cubin in &code.cubins {
        // nvcc links stubs without kernels into programs and libraries.
        if code.cubins.len() > 1 && !cubin.has_kernels() {
            edited.push(cubin.bytes.clone());
            continue;
        }
        let artifact = Artifact::cubin(cubin.bytes.clone());
        let artifact = artifact.map_err(|error| Problem::Input(error.to_string()))?;
        let here = cubin.named(scope.kernels);
        let scope = Scope {
            kernels: &here,
            ..*scope
        };
        let all = carry(how, &artifact, recipe, &scope)?;
        // With a name, a refusal is an error; without one it has been said.
        let refused = all.kernels.iter().find_map(|done| done.refused.as_ref());
        if let (Some(kernel), Some((_, refusal))) = (scope.kernels.first(), refused) {
            return Err(Problem::Input(format!("{}: {refusal}", source_name(kernel))).into());
        }
        edited.push(all.artifact.bytes().to_vec());
    }
    code.replaced(&edited)
}

/// A source file with the passes of a recipe in it.
///
/// # Errors
/// As of [`carry`].
pub fn over_source(
    how: &How<'_>,
    recipe: &Recipe,
    input: &Input,
    scope: &Scope<'_>,
) -> Result<CarriedOut, Error> {
    let gpu = match scope.gpu {
        Some(gpu) => gpu,
        None => any_gpu()?,
    };
    let scope = Scope {
        gpu: Some(gpu),
        ..*scope
    };
    carry(
        how,
        &source(input, input.text()?.to_owned()),
        recipe,
        &scope,
    )
}

/// What is asked of a recipe that is carried out from CUDA C to CUDA C.
pub struct Again<'a> {
    /// What is stated of the kernels.
    pub options: &'a Options,
    /// The GPU, as somebody names it.
    pub gpu: Option<&'a str>,
    /// Sizes that somebody states, elements.
    pub sizes: &'a [(String, i64)],
    /// May sums be reordered?
    pub reassociate: bool,
    /// Where the text goes, as the document says it.
    pub output: Option<String>,
}

/// What the passes of a recipe make of the kernels of a file in CUDA C, and the text.
///
/// # Errors
/// A pass refuses, works on something else, or nvcc refuses what becomes of the file.
pub fn replay(
    how: &How<'_>,
    again: Again<'_>,
    input: &Input,
    recipe: &Recipe,
) -> Result<(Replay, String), Error> {
    let wrong = |pass: &&Invocation| pass.level() != PassLevel::Source;
    if let Some(wrong) = recipe.passes().iter().find(wrong) {
        return Err(Problem::Usage(format!(
            "`{wrong}` works on {}, and OUT.cu is CUDA C",
            wrong.level()
        ))
        .into());
    }
    let scope = Scope {
        gpu: Some(target(again.gpu)?),
        sizes: again.sizes,
        reassociate: again.reassociate,
        ..again.options.scope()
    };
    let file = source(input, input.text()?.to_owned());
    let all = carry(how, &file, recipe, &scope)?;
    let refused = |done: &Done| Some((done.kernel.clone()?, done.refused.clone()?.1));
    if let Some((kernel, refusal)) = all.kernels.iter().find_map(refused) {
        return Err(Problem::Input(format!("{}: {refusal}", source_name(&kernel))).into());
    }
    if all.artifact.bytes() != input.text()?.as_bytes() {
        let gpu = scope.gpu(&file)?;
        let refused = with_builders(how.tools, &gpu, |builders| {
            refused_by_nvcc(&all.artifact, &builders)
        });
        if let Some(why) = refused {
            return Err(Problem::Undecided(format!(
                "nvcc refuses the file with it rewritten, so nothing is written: {why}"
            ))
            .into());
        }
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
    let document = Replay {
        schema: "warpwright.source-recipe/1",
        input: input.name.clone(),
        recipe_text: recipe.to_string(),
        kernels: all.kernels.iter().map(kernel).collect(),
        output: again.output,
    };
    let text = String::from_utf8_lossy(all.artifact.bytes()).into_owned();
    Ok((document, text))
}

/// The JSON document of [`replay`].
#[derive(Serialize)]
pub struct Replay {
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

/// What stands behind each pass, a line each.
impl std::fmt::Display for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for replayed in &self.kernels {
            let kernel = replayed.kernel.as_deref().map(source_name);
            for passed in &replayed.steps {
                let Some(rung) = passed.rung else { continue };
                let kernel = kernel.as_deref().unwrap_or_default();
                let text = format!("{kernel}: {}: {}", passed.pass, behind(rung));
                writeln!(f, "{}", wrap(&text, "", "  ").join("\n"))?;
            }
        }
        Ok(())
    }
}

/// What each pass does, and its options.
pub fn list() -> String {
    let mut lines = Vec::new();
    for pass in PASSES {
        lines.push(pass.name.to_owned());
        let mut about = vec![pass.about.to_owned()];
        for parameter in (pass.parameters)() {
            let (name, wanted) = (parameter.name, parameter.wanted);
            about.push(format!("{name}={wanted}: {}", parameter.about));
        }
        lines.extend(about.iter().flat_map(|text| wrap(text, "  ", "    ")));
    }
    lines.join("\n")
}
