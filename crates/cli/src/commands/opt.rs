//! `warpwright opt`: the main job.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use indicatif::ProgressBar;
use serde::Serialize;
use warpwright_driver::build::{Bench, Made, Workshop};
use warpwright_driver::candidate::Candidate;
use warpwright_driver::database::kernel_hash;
use warpwright_driver::explore::{Input as Explored, explore};
use warpwright_driver::opt::{
    self, Chosen, DEFAULT_MARGIN, KernelOutcome, KernelReport, Known, OptError, Request, failure,
    finish as carry_out,
};
use warpwright_driver::{Peers, Proofs};
use warpwright_launch::Launch;
use warpwright_pass::names::source_name;
use warpwright_pass::passes::UsageLevel;
use warpwright_pass::{Artifact, Fuel, Level as PassLevel, Recipe, RunError, Scope};
use warpwright_report::screen::{About, screen};
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, Toolkit};

use super::pass::{say, verified};
use super::print_json;
use crate::args::{Cli, Emit, KernelArgs, OptArgs};
use crate::failure::Failure;
use crate::input::{Input, Level, is_stdout, make_folder, stage, write_atomically, write_into};
use crate::progress;
use crate::session;
use crate::terminal::printable;

/// The JSON document of `opt`.
#[derive(Debug, Serialize)]
pub struct Document {
    /// `warpwright.opt/1`
    pub schema: &'static str,
    /// FILE.
    pub input: String,
    /// The target, by name.
    pub gpu: String,
    /// Version of ptxas; absent if everything was estimated.
    pub ptxas: Option<String>,
    /// Kernel by kernel.
    pub kernels: Vec<KernelReport>,
    /// What was written; nothing without -o.
    pub output: Option<String>,
    /// `cubin` or `ptx`, or `file` for a host file with its cubins replaced.
    pub emitted: &'static str,
}

impl From<OptError> for Failure {
    fn from(e: OptError) -> Self {
        match e {
            OptError::Tool(e) => e.into(),
            OptError::NotProved { .. } => Failure::Undecided(format!("{e}\nnothing is written")),
            OptError::Run(RunError::Hazard { .. }) => Failure::Undecided(e.to_string()),
            OptError::Run(RunError::Level { .. } | RunError::NoBuilder(_)) => {
                Failure::input(e.to_string())
            }
            // What a builder of ours could not do is what it says itself.
            OptError::Run(RunError::Build(error)) => match error.downcast::<Failure>() {
                Ok(failure) => *failure,
                Err(error) => Failure::input(error.to_string()),
            },
            OptError::Run(_) | OptError::Registers { .. } => Failure::Internal(e.to_string()),
            _ => Failure::input(e.to_string()),
        }
    }
}

/// What the options state about kernels and launches.
pub fn scope<'a>(
    args: &'a KernelArgs,
    blocks: &'a [(String, [u32; 3])],
    launch: Option<&'a Launch>,
) -> Result<Scope<'a>, Failure> {
    Ok(Scope {
        gpu: session::named_gpu(args.gpu.as_deref())?,
        kernels: &args.kernels,
        block: args.block_of_all(),
        blocks,
        dynamic_smem: args.dynamic_smem,
        launch,
    })
}

/// Runs the command.
pub fn run(cli: &Cli, args: &OptArgs) -> Result<(), Failure> {
    let input = Input::read(&args.file)?;
    if matches!(input.level, Level::Cubin | Level::Fat) {
        return super::opt_cubin::run(cli, args, &input);
    }
    if super::stencil_opt::is_wanted(&input, args.output.as_deref()) {
        if let Some(problem) = super::naive_opt::wanted(cli, args, &input)? {
            return super::naive_opt::run(cli, args, &input, &problem);
        }
        return super::stencil_opt::run(cli, args, &input);
    }
    let launch = session::kernel_launch(&args.kernel)?;
    let blocks = args.kernel.blocks();
    let mut scope = scope(&args.kernel, &blocks, launch.as_ref())?;
    let by_ending = || args.output.as_deref().map_or(Emit::Cubin, emit_by_ending);
    let emit = args.emit.unwrap_or_else(by_ending);
    let mut nvcc = args.nvcc.clone();
    let described = args.kernel.launch.as_deref();
    nvcc.extend(session::described_nvcc(&input, described)?);
    let module = session::module(cli, &input, scope.gpu.as_ref(), &nvcc, false)?;
    let gpu = session::target(&module, scope.gpu)?;
    scope.gpu = Some(gpu);
    let artifact = verified(module)?;
    let request = Request {
        gpu: &gpu,
        scope,
        peers: Peers::None,
        ptx_only: emit == Emit::Ptx,
        margin: DEFAULT_MARGIN,
        budget: args.budget,
        proofs: Proofs::Choice,
    };
    let toolkit = match session::toolkit(cli) {
        Ok(toolkit) if toolkit.ptxas().is_ok() => Some(toolkit),
        // What was asked for by name is not to be done without in silence.
        Err(failure) if cli.toolkit.is_some() || cli.fetch_toolkit => return Err(failure),
        _ => None,
    };
    let Some(toolkit) = toolkit else {
        return super::estimate::run(args, &input, &artifact, &request, emit);
    };
    let arch = gpu.target();
    let cache = BuildCache::standard();
    let workshop = workshop(&toolkit, &cache, &arch, &artifact);
    let (bytes, kernels) = optimise(cli, args, Some(&workshop), &artifact, &request)?;
    let document = Document {
        schema: "warpwright.opt/1",
        input: input.name.clone(),
        gpu: gpu.to_string(),
        ptxas: ptxas_version(&toolkit),
        kernels,
        output: written_to(args),
        emitted: match emit {
            Emit::Ptx => "ptx",
            Emit::Cubin => "cubin",
        },
    };
    finish(args, &document, &bytes)?;
    if input.level == Level::Cuda && !args.show.json {
        // A file that is not understood as a stencil is none: nothing to say.
        let file = super::cuda::read(cli, &input, Some(&arch), &args.nvcc).ok();
        let kernel = args.kernel.one().ok().flatten();
        let found = file.and_then(|file| super::cuda::stencils(&file, kernel).ok());
        let found = found.unwrap_or_default();
        if let Some(advice) = super::cuda::what_to_do(&input, &found.stencils) {
            println!("\n{advice}");
        }
    }
    Ok(())
}

/// ptxas for the candidates of an input.
pub fn workshop<'a>(
    toolkit: &'a Toolkit,
    cache: &'a BuildCache,
    arch: &'a str,
    input: &Artifact,
) -> Workshop<'a> {
    Workshop {
        toolkit,
        cache,
        arch,
        lineinfo: input
            .as_module()
            .is_some_and(|module| !module.files.is_empty()),
    }
}

/// Chooses for each kernel, or takes the recipe that was named: the result, and what is reported.
pub fn optimise(
    cli: &Cli,
    args: &OptArgs,
    workshop: Option<&Workshop<'_>>,
    artifact: &Artifact,
    request: &Request<'_>,
) -> Result<(Vec<u8>, Vec<KernelReport>), Failure> {
    let outcomes = match &args.recipe {
        Some(_) => Vec::new(),
        None => explore_all(cli, workshop, artifact, request, &|kernel| match (
            args.no_database,
            workshop,
            artifact.as_module(),
        ) {
            (false, Some(workshop), Some(module)) => {
                measured_before(&module.source, kernel, request.gpu, workshop.toolkit)
            }
            _ => Known::new(),
        })?,
    };
    if let Some(folder) = &args.keep {
        keep(folder, &outcomes)?;
    }
    let mut reports: Vec<KernelReport> = outcomes.iter().map(|o| o.report.clone()).collect();
    if let Some(text) = &args.recipe {
        reports = replayed(request, artifact, text)?;
    }
    let until = match request.ptx_only {
        true => PassLevel::Ptx,
        false => PassLevel::MachineCode,
    };
    let bytes = match already(&outcomes, artifact, until) {
        Some(done) => done,
        None => {
            let chosen: Vec<Chosen> = reports.iter().map(Chosen::of).collect();
            let fuel = args.fuel.map_or_else(Fuel::default, Fuel::limited);
            let all = carry_out(workshop, artifact, &chosen, request, (until, fuel))?;
            if args.recipe.is_some() || cli.verbose > 0 {
                say(cli, &all);
            }
            all.artifact.bytes().to_vec()
        }
    };
    let bytes = match until {
        PassLevel::Ptx => annotated(&String::from_utf8_lossy(&bytes), &reports).into_bytes(),
        _ => bytes,
    };
    Ok((bytes, reports))
}

/// The result of the exploration itself, where there is but one kernel: it was built from the whole input.
fn already(outcomes: &[KernelOutcome], input: &Artifact, until: PassLevel) -> Option<Vec<u8>> {
    let [outcome] = outcomes else { return None };
    let kernels = Scope::default().kernels(input).ok()?;
    let proved = outcome.proved.as_ref().filter(|_| kernels.len() == 1)?;
    let artifact = match until {
        PassLevel::Ptx => proved.ptx()?,
        _ => proved.artifact(),
    };
    Some(artifact.bytes().to_vec())
}

/// A report for each kernel that a named recipe is for.
fn replayed(
    request: &Request<'_>,
    input: &Artifact,
    text: &str,
) -> Result<Vec<KernelReport>, Failure> {
    let recipe: Recipe = text.parse()?;
    let report = |kernel: &String| {
        let setting = request.scope.setting(input, kernel, request.gpu)?;
        Ok(KernelReport {
            name: kernel.clone(),
            block: setting.block.dims,
            block_source: setting.block.source,
            dynamic_smem: setting.dynamic(),
            recipe_text: recipe.to_string(),
            candidates: vec![Candidate::named(recipe.clone())],
            chosen: 0,
            reason: "named by --recipe".into(),
            notes: Vec::new(),
            crat: None,
        })
    };
    request.scope.kernels(input)?.iter().map(report).collect()
}

/// `.ptx` at the end of OUT asks for PTX.
fn emit_by_ending(output: &Path) -> Emit {
    match output.extension().and_then(|e| e.to_str()) {
        Some("ptx") => Emit::Ptx,
        _ => Emit::Cubin,
    }
}

/// The version of ptxas, for the record.
pub fn ptxas_version(toolkit: &Toolkit) -> Option<String> {
    let ptxas = toolkit.ptxas().ok()?;
    ptxas.tool().version().ok().map(ToString::to_string)
}

/// What the database knows of a kernel on such a GPU. Without a database the model decides alone.
fn measured_before(source: &str, kernel: &str, gpu: &Gpu, toolkit: &Toolkit) -> Known {
    let entries = super::tune::database().ok().and_then(|database| {
        let ptxas = ptxas_version(toolkit)?;
        let name = gpu.board?.name;
        let hash = kernel_hash(source, kernel);
        database.of_kernel(&hash, name, &ptxas).ok()
    });
    opt::known(&entries.unwrap_or_default())
}

/// Explores every kernel that the request is about, with a progress bar. `known` gives what was
/// measured of a kernel.
pub fn explore_all(
    cli: &Cli,
    workshop: Option<&Workshop<'_>>,
    artifact: &Artifact,
    request: &Request<'_>,
    known: &dyn Fn(&str) -> Known,
) -> Result<Vec<KernelOutcome>, Failure> {
    let kernels = request.scope.kernels(artifact)?;
    let default = untouched(workshop, artifact, request)?;
    let bar: ProgressBar = progress::bar(None, "building candidates");
    let explored = Explored {
        workshop,
        artifact,
        default: &default,
        request,
    };
    let mut outcomes = Vec::new();
    for (number, kernel) in kernels.iter().enumerate() {
        let start = Instant::now();
        let name = printable(&source_name(kernel));
        let of = match kernels.len() {
            1 => String::new(),
            all => format!(" (kernel {} of {all})", number + 1),
        };
        let built = AtomicUsize::new(0);
        let done = |_: &Candidate| {
            let built = built.fetch_add(1, Ordering::Relaxed) + 1;
            bar.set_message(format!("{name}{of}: {built} candidates built"));
            bar.tick();
        };
        bar.set_message(format!("{name}{of}: building candidates"));
        let outcome = explore(&explored, kernel, &known(kernel), &done)?;
        if cli.verbose > 0 {
            bar.suspend(|| {
                eprintln!(
                    "{kernel}: {} candidates built and scored in {:.2} s",
                    outcome.built.len(),
                    start.elapsed().as_secs_f64()
                );
            });
        }
        outcomes.push(outcome);
    }
    bar.finish_and_clear();
    Ok(outcomes)
}

/// The untouched build of an input.
fn untouched(
    workshop: Option<&Workshop<'_>>,
    artifact: &Artifact,
    request: &Request<'_>,
) -> Result<Made, Failure> {
    let kernels = request.scope.kernels(artifact)?;
    let kernel = kernels.first().map_or("", |name| name);
    let bench = Bench {
        workshop,
        start: artifact,
        kernel,
        setting: request.scope.setting(artifact, kernel, request.gpu)?,
        fuel: Fuel::default(),
    };
    let made = bench.run(None, &Recipe::default(), PassLevel::MachineCode);
    Ok(made.map_err(failure)?)
}

/// Saves every candidate's cubin as KERNEL.CANDIDATE.cubin.
pub fn keep(folder: &Path, outcomes: &[KernelOutcome]) -> Result<(), Failure> {
    make_folder(folder)?;
    for outcome in outcomes {
        for built in &outcome.built {
            let name = format!("{}.{}.cubin", outcome.report.name, built.candidate.name());
            if let Some(cubin) = built.cubin() {
                write_into(folder, &name, cubin)?;
            }
        }
    }
    Ok(())
}

/// PTX with a comment that says what was decided, and what ptxas must be told beside it.
pub fn annotated(text: &str, reports: &[KernelReport]) -> String {
    let mut head = String::new();
    for report in reports {
        let chosen = &report.candidates[report.chosen];
        head.push_str(&format!(
            "// warpwright: {}: {} ({})\n",
            report.name,
            chosen.name(),
            report.reason
        ));
        if let Some(UsageLevel { level }) = chosen.recipe.find() {
            head.push_str(&format!(
                "// warpwright: assemble with --register-usage-level {level}\n"
            ));
        }
    }
    head + text
}

/// Writes OUT and the HTML page, both or neither, and prints the result the way that was asked for.
pub fn finish(args: &OptArgs, document: &Document, output: &[u8]) -> Result<(), Failure> {
    let staged = args.output.as_deref().map(|path| stage(path, output));
    let staged = staged.transpose()?;
    if let (Some(staged), "file") = (&staged, document.emitted) {
        staged.like(&args.file)?;
    }
    if let Some(path) = &args.show.report {
        let json = serde_json::to_value(document)
            .map_err(|e| Failure::Internal(format!("a report that is no JSON: {e}")))?;
        let page = warpwright_report::page(&json).map_err(|e| Failure::Internal(e.to_string()))?;
        write_atomically(path, page.as_bytes())?;
    }
    if let Some(staged) = staged {
        staged.commit()?;
    }
    if args.show.json {
        return print_json(document);
    }
    let ptxas = match &document.ptxas {
        Some(version) => format!("ptxas {version}"),
        None if document.emitted != "ptx" => "machine code as it is".into(),
        None => "no ptxas: resources are estimated from the PTX".into(),
    };
    let text = screen(
        &document.kernels,
        &About {
            input: &document.input,
            gpu: &document.gpu,
            builder: &ptxas,
            output: document.output.as_deref(),
            emitted: document.emitted,
            is_measured: false,
            all: args.all,
        },
    );
    match args.output.as_deref().is_some_and(is_stdout) {
        true => eprint!("{text}"),
        false => print!("{text}"),
    }
    Ok(())
}

/// OUT by name.
pub fn written_to(args: &OptArgs) -> Option<String> {
    let output = args.output.as_deref()?;
    Some(match is_stdout(output) {
        true => "standard output".to_owned(),
        false => output.display().to_string(),
    })
}
