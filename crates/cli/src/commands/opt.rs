//! `warpwright opt`: the main job.

use indicatif::ProgressBar;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;
use warpwright_driver::build::Workshop;
use warpwright_driver::context::PassError;
use warpwright_driver::database::kernel_hash;
use warpwright_driver::opt::{
    self, DEFAULT_MARGIN, KernelOutcome, KernelReport, Known, OptError, Request,
};
use warpwright_driver::{Peers, Resources, explore::explore};
use warpwright_ptx::Module;
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, Toolkit};

use super::print_json;
use crate::args::{Cli, Emit, OptArgs};
use crate::failure::Failure;
use crate::input::{Input, Level, make_folder, stage, write_atomically, write_into};
use crate::progress;
use crate::session;
use crate::table::Table;

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
    /// What was written.
    pub output: String,
    /// `cubin` or `ptx`, or `file` for a host file with its cubins replaced.
    pub emitted: &'static str,
}

impl From<PassError> for Failure {
    fn from(error: PassError) -> Self {
        match error {
            PassError::Request(text) => Failure::input(text),
            PassError::Internal(text) => Failure::Internal(text),
        }
    }
}

impl From<OptError> for Failure {
    fn from(e: OptError) -> Self {
        match e {
            OptError::Request(text) => Failure::input(text),
            OptError::Tool(e) => e.into(),
            OptError::Build(e) => Failure::Internal(e.to_string()),
        }
    }
}

/// Runs the command.
pub fn run(cli: &Cli, args: &OptArgs) -> Result<(), Failure> {
    let input = Input::read(&args.file)?;
    if matches!(input.level, Level::Cubin | Level::Fat) {
        return super::opt_cubin::run(args, &input);
    }
    if super::stencil_opt::is_wanted(&input, Some(&args.output)) {
        return super::stencil_opt::run(args, &input);
    }
    let named = session::named_gpu(args.kernel.gpu.as_deref())?;
    let mut nvcc = args.nvcc.clone();
    nvcc.extend(session::described_nvcc(
        &input,
        args.kernel.launch.as_deref(),
    )?);
    let module = session::module(cli, &input, named.as_ref(), &nvcc, false)?;
    let gpu = session::target(&module, named)?;
    let launch = session::kernel_launch(&args.kernel)?;
    let emit = args.emit.unwrap_or_else(|| emit_by_ending(&args.output));
    let request = Request {
        gpu: &gpu,
        kernel: args.kernel.kernel.as_deref(),
        block: args.kernel.block,
        dynamic_smem: args.kernel.dynamic_smem,
        launch: launch.as_ref(),
        peers: Peers::None,
        ptx_only: emit == Emit::Ptx,
        margin: DEFAULT_MARGIN,
    };
    let toolkit = match session::toolkit(cli) {
        Ok(toolkit) if toolkit.ptxas().is_ok() => Some(toolkit),
        // What was asked for by name is not to be done without in silence.
        Err(failure) if cli.toolkit.is_some() || cli.fetch_toolkit => return Err(failure),
        _ => None,
    };
    let Some(toolkit) = toolkit else {
        return super::estimate::run(args, &input, &module, &request, emit);
    };
    let arch = gpu.target();
    let cache = BuildCache::standard();
    let lineinfo = !module.files.is_empty();
    let workshop = Workshop {
        toolkit: &toolkit,
        cache: &cache,
        arch: &arch,
        lineinfo,
    };
    let outcomes = explore_all(cli, &workshop, &module, &request, &|kernel| {
        if args.no_database {
            Known::new()
        } else {
            measured_before(&module, kernel, &gpu, &toolkit)
        }
    })?;
    let reports: Vec<KernelReport> = outcomes.iter().map(|o| o.report.clone()).collect();
    let text = opt::chosen_text(&module, &reports, &request)?;
    if let Some(folder) = &args.keep {
        keep(folder, &outcomes)?;
    }
    let (emitted, bytes) = match emit {
        Emit::Cubin => {
            let build = opt::chosen_build(&workshop, &module, &text, &reports, &request)?;
            ("cubin", build.cubin.to_vec())
        }
        Emit::Ptx => ("ptx", annotated(&text, &reports).into_bytes()),
    };
    let document = Document {
        schema: "warpwright.opt/1",
        input: input.name.clone(),
        gpu: gpu.to_string(),
        ptxas: ptxas_version(&toolkit),
        kernels: reports,
        output: args.output.display().to_string(),
        emitted,
    };
    finish(args, &document, &bytes)
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
fn measured_before(module: &Module, kernel: &str, gpu: &Gpu, toolkit: &Toolkit) -> Known {
    let entries = super::tune::database().ok().and_then(|database| {
        let ptxas = ptxas_version(toolkit)?;
        let name = gpu.board?.name;
        database
            .of_kernel(&kernel_hash(&module.source, kernel), name, &ptxas)
            .ok()
    });
    opt::known(&entries.unwrap_or_default())
}

/// Explores every kernel that the request is about, with a progress bar. `known` gives what was
/// measured of a kernel.
pub fn explore_all(
    cli: &Cli,
    workshop: &Workshop,
    module: &Module,
    request: &Request,
    known: &dyn Fn(&str) -> Known,
) -> Result<Vec<KernelOutcome>, Failure> {
    let functions = opt::kernels(module, request.kernel)?;
    let default = workshop.assemble(&module.source, None)?;
    let bar: ProgressBar = progress::bar(None, "building candidates");
    let mut outcomes = Vec::new();
    for function in functions {
        let start = Instant::now();
        bar.set_message(format!("building candidates of {}", function.name));
        let known = known(&function.name);
        let outcome = explore(
            workshop,
            module,
            function,
            &default,
            request,
            &known,
            &|_| bar.tick(),
        )?;
        if cli.verbose > 0 {
            bar.suspend(|| {
                eprintln!(
                    "{}: {} candidates built and scored in {:.2} s",
                    function.name,
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

/// Saves every candidate's cubin as KERNEL.CANDIDATE.cubin.
pub fn keep(folder: &Path, outcomes: &[KernelOutcome]) -> Result<(), Failure> {
    make_folder(folder)?;
    for outcome in outcomes {
        for built in outcome.built.iter().filter(|b| !b.cubin.is_empty()) {
            let name = format!("{}.{}.cubin", outcome.report.name, built.candidate.name());
            write_into(folder, &name, &built.cubin)?;
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
        if let Some(level) = chosen.recipe.usage_level() {
            head.push_str(&format!(
                "// warpwright: assemble with --register-usage-level {level}\n"
            ));
        }
    }
    head + text
}

/// Writes OUT and the HTML page, both or neither, and prints the result the way that was asked for.
pub fn finish(args: &OptArgs, document: &Document, output: &[u8]) -> Result<(), Failure> {
    let output = stage(&args.output, output)?;
    if document.emitted == "file" {
        output.like(&args.file)?;
    }
    if let Some(path) = &args.show.report {
        let json = serde_json::to_value(document)
            .map_err(|e| Failure::Internal(format!("a report that is no JSON: {e}")))?;
        let page = warpwright_report::page(&json).map_err(|e| Failure::Internal(e.to_string()))?;
        write_atomically(path, page.as_bytes())?;
    }
    output.commit()?;
    if args.show.json {
        return print_json(document);
    }
    let ptxas = match &document.ptxas {
        Some(version) => format!("ptxas {version}"),
        None if document.emitted != "ptx" => "machine code as it is".into(),
        None => "no ptxas: resources are estimated from the PTX".into(),
    };
    println!("{} for {}, {ptxas}\n", document.input, document.gpu);
    for kernel in &document.kernels {
        print_kernel(kernel);
    }
    println!("wrote {} ({})", document.output, document.emitted);
    Ok(())
}

/// Prints one kernel's candidates as a table.
pub fn print_kernel(report: &KernelReport) {
    let [x, y, z] = report.block;
    println!(
        "kernel {}, {x}×{y}×{z} threads per block ({})",
        report.name, report.block_source
    );
    let mut table = Table::new(&[
        "",
        "candidate",
        "regs",
        "spill B",
        "smem B",
        "blocks",
        "warps",
        "occ.",
        "time",
        "note",
    ]);
    for (i, c) in report.candidates.iter().enumerate() {
        let mark = if i == report.chosen { "*" } else { "" };
        // What was never built has no figures.
        let figure = |f: fn(&Resources) -> u32| {
            let resources = c.resources.as_ref();
            resources.map_or_else(|| "–".to_owned(), |r| f(r).to_string())
        };
        let residency = |f: fn(&warpwright_driver::Residency) -> String| {
            c.residency.as_ref().map(f).unwrap_or_default()
        };
        let time = match (&c.measured, &c.score) {
            (Some(m), _) => format!("{:.3}", m.relative_time),
            (None, Some(s)) => format!("{:.2}", s.relative_time),
            (None, None) => String::new(),
        };
        let note = match (&c.rejected, &c.same_code_as) {
            (Some(why), _) => format!("out: {}", why.lines().next().unwrap_or_default()),
            (None, Some(twin)) => format!("same code as {twin}"),
            (None, None) => String::new(),
        };
        table.row(vec![
            mark.into(),
            c.name(),
            figure(|r| r.registers),
            figure(|r| r.spill_store_bytes + r.spill_load_bytes),
            figure(|r| r.shared_bytes),
            residency(|r| r.blocks.to_string()),
            residency(|r| r.warps.to_string()),
            residency(|r| format!("{:.0}%", r.percent)),
            time,
            note,
        ]);
    }
    print!("{}", table.render(1));
    println!(
        " -> {}: {}",
        report.candidates[report.chosen].name(),
        report.reason
    );
    if let Some(threads) = report.candidates[report.chosen].recipe.block_bound() {
        println!(
            "    note: it promises blocks of at most {threads} threads; a larger launch fails"
        );
    }
    for note in &report.notes {
        println!("    note: {note}");
    }
    println!();
}
