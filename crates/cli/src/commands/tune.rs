//! `warpwright tune`: build the candidates, measure them on the local GPU, keep the fastest.

use std::path::{Path, PathBuf};

use warpwright::front::DEFAULT_GPU;
use warpwright::source::naive::{state_all, wanted};
use warpwright::{Input, Level};
use warpwright_autotune::alone::{Wanted, one_device};
use warpwright_autotune::builds::{
    Job, build, candidate_folders, check_device, chosen_report, folders_with, from_database,
    measured_table, pack, work_folder,
};
use warpwright_autotune::own_run::BUDGET;
use warpwright_autotune::session::{database, load_manifest, measure_all, measure_one};
use warpwright_autotune::stencil::{Built, why_none};
use warpwright_autotune::{naive, stencil};
use warpwright_diag::count as counted;
use warpwright_driver::Peers;
use warpwright_files::{self as files, Kind, write_atomically};
use warpwright_report::results::{KernelResult, SUITE_SCHEMA, StencilResult, Suite};
use warpwright_report::screen::{About, screen};
use warpwright_report::stencils::{Results, SCHEMA};

use super::inplace::watch::Told;
use super::{own, print_json};
use crate::args::{Cli, Floating, SweptPeers, TuneArgs};
use crate::failure::Failure;
use crate::session;

/// Other launches are stated: nothing is seen of them where a program would run without a GPU.
fn refuse_own(args: &TuneArgs) -> Result<(), Failure> {
    match args.own.no_run || args.own.run_args.is_some() {
        true => Err(Failure::Usage(
            "--run-args and --no-run are for OUT.cu: elsewhere --launch says what is measured"
                .into(),
        )),
        false => Ok(()),
    }
}

/// Runs the command.
pub fn run(cli: &Cli, args: &TuneArgs) -> Result<(), Failure> {
    if let Some(path) = &args.export {
        let json = database()?
            .export()
            .map_err(|e| Failure::input(e.to_string()))?;
        return Ok(write_atomically(path, json.as_bytes())?);
    }
    if !args.import.is_empty() {
        return import(&args.import);
    }
    if let Some(root) = &args.measure_only {
        return measure_only(cli, args, root);
    }
    if args.is_for_program() {
        refuse_own(args)?;
        return super::inplace::tune::run(cli, args);
    }
    let Some(file) = &args.file else {
        return Err(Failure::Usage(
            "FILE is wanted (or `-- PROGRAM`, --measure-only, --export, --import)".into(),
        ));
    };
    let is_measured = args.build_only.is_none() && args.jobs.is_none();
    if !is_measured && (args.show.json || args.show.report.is_some()) {
        let what =
            "--json and --report show what was measured: with --build-only and --jobs nothing is";
        return Err(Failure::Usage(what.into()));
    }
    let input = files::read(file)?;
    if super::stencil_opt::is_wanted(&input, args.output.as_deref()) {
        return source(cli, args, &input);
    }
    refuse_own(args)?;
    if args.build_only.is_some() && args.output.is_some() {
        let what = "of --build-only, only a stencil's OUT.cu has an effect";
        return Err(Failure::Usage(what.into()));
    }
    if let Some(output) = args.output.as_ref().filter(|_| is_measured) {
        Kind::Cubin.fits(output)?;
    }
    if is_measured {
        check_device()?;
    }
    let Some(path) = &args.kernel.launch else {
        return Err(Failure::Usage(
            "--launch L.toml is wanted: it says how to run the kernel (`warpwright launch X.cu` writes the start of one)".into(),
        ));
    };
    let options = session::options(&input, &args.kernel, &args.nvcc()?)?;
    let job = Job {
        input: &input,
        options: &options,
        launch: &files::text(path)?,
        peers: wanted_peers(args),
    };
    let tools = session::tools(cli, &options.nvcc)?;
    if let Some(folder) = &args.build_only {
        build(&tools, &job, folder, &Told(cli))?;
        eprintln!("candidates are in {}", folder.display());
        return Ok(());
    }
    if let Some(folder) = &args.jobs {
        for path in pack(&tools, &job, (folder, args.per_job), &Told(cli))? {
            println!("{}", path.display());
        }
        return Ok(());
    }
    let request = format!("{:?} {:?} {:?}", args.kernel, args.words, job.peers);
    let folder = work_folder(file, &request)?;
    build(&tools, &job, &folder, &Told(cli))?;
    let gpu = load_manifest(&folder)?.gpu;
    let found = match args.fresh {
        true => None,
        false => from_database(&folder)?,
    };
    let report = match found {
        Some(report) => {
            eprintln!("every candidate was measured before; --fresh measures again");
            report
        }
        None => chosen_report(&measure_one(&folder, &args.session(), &Told(cli))?),
    };
    let chosen = report.candidates[report.chosen].name();
    let cubin = std::fs::read(folder.join(format!("{chosen}.cubin")))
        .map_err(|e| Failure::Internal(format!("the chosen cubin is gone: {e}")))?;
    if let Some(output) = &args.output {
        write_atomically(output, &cubin)?;
    }
    let name = args
        .output
        .as_ref()
        .map(|output| output.display().to_string());
    let document = serde_json::json!({
        "schema": "warpwright.tune/1",
        "input": input.name,
        "gpu": gpu,
        "output": name,
        "kernels": [&report],
    });
    super::write_page(args.show.report.as_deref(), &document)?;
    if args.show.json {
        return print_json(&document);
    }
    let text = screen(
        &[report],
        &About {
            input: &input.name,
            gpu: &gpu,
            builder: "measured here",
            output: name.as_deref(),
            emitted: "cubin",
            is_machine_code: matches!(input.level, Level::Cubin | Level::Fat),
            is_measured: true,
            has_page: args.show.report.is_some(),
            all: args.all,
            reserved: 0,
        },
    );
    print!("{text}");
    Ok(())
}

/// From source to source: naive kernels, else a stencil.
fn source(cli: &Cli, args: &TuneArgs, input: &Input) -> Result<(), Failure> {
    let kernel = args.kernel.one()?;
    let nvcc = args.nvcc()?;
    let tools = session::tools(cli, &nvcc)?;
    let (mut found, _) = wanted(&tools, kernel, input)?;
    if !found.is_empty() {
        if args.build_only.is_some() {
            let what = "--build-only is for builds and for stencils, not yet for naive kernels";
            return Err(Failure::Usage(what.into()));
        }
        super::naive_opt::refuse_reassociate(&args.stencil)?;
    }
    let output = args.output.as_deref();
    let output = output.ok_or_else(|| Failure::Usage("-o OUT.cu is wanted".into()))?;
    super::stencil_opt::refuse_other_levels(Some(output))?;
    if !found.is_empty() {
        state_all(&mut found, &args.stencil.sizes, input)?;
    }
    let device = match args.build_only {
        Some(_) => None,
        None => Some(one_device()?),
    };
    let arch = device.as_ref().map(|device| device.arch.as_str());
    let wanted = Wanted {
        kernel,
        gpu: args.kernel.gpu.as_deref().or(arch).unwrap_or(DEFAULT_GPU),
        sizes: &args.stencil.sizes,
        own: &own::sizes(cli, input, &args.kernel, (&args.own, &nvcc, BUDGET))?,
        reassociate: args.stencil.fp == Some(Floating::Reassociate),
        exhaustive: args.exhaustive,
        budget: args.budget,
    };
    if let (Some(device), false) = (&device, found.is_empty()) {
        let of = (device, output.display().to_string());
        let (document, text) = naive::tune(&tools, &wanted, (input, found), of, &Told(cli))?;
        write_atomically(output, text.as_bytes())?;
        match args.show.json {
            true => print_json(&document)?,
            false => print!("{document}"),
        }
        return Ok(());
    }
    let places = (args.build_only.as_deref(), output);
    let tuned = stencil::tune(&tools, &wanted, input, places, device.as_ref(), &Told(cli))?;
    let Some((result, text)) = tuned else {
        return Ok(());
    };
    write_atomically(output, text.as_bytes())?;
    if args.show.json {
        return print_json(&result);
    }
    print!("{result}");
    let chosen = result.chosen.map_or("", |at| &result.versions[at].plan);
    println!("wrote {} ({chosen})", output.display());
    if let Some(why) = &result.unchecked {
        println!("not compared in the emulator: {why}");
    }
    Ok(())
}

/// Adds what `--export` and `measure` wrote to the database; a file that does not fit adds nothing.
fn import(files: &[PathBuf]) -> Result<(), Failure> {
    let mut database = database()?;
    let mut count = 0;
    for path in files {
        count += database
            .import(&files::text(path)?)
            .map_err(|e| Failure::input(format!("{}: {e}", path.display())))?;
    }
    eprintln!("{} imported", counted(count, "measurement"));
    Ok(())
}

/// `--peers`, or all of them for `--exhaustive`.
fn wanted_peers(args: &TuneArgs) -> Peers {
    match (args.peers, args.exhaustive) {
        (Some(SweptPeers::None), _) | (None, false) => Peers::None,
        (Some(SweptPeers::Spills), _) => Peers::Spills,
        (Some(SweptPeers::Usual), _) => Peers::Usual,
        (Some(SweptPeers::All), _) | (None, true) => Peers::All,
    }
}

/// Measures every folder of candidates below `root` and writes one result file.
fn measure_only(cli: &Cli, args: &TuneArgs, root: &Path) -> Result<(), Failure> {
    let output = args.output.clone();
    let output = output.unwrap_or_else(|| root.join("result.json"));
    let stencils = folders_with(root, Built::is_in)?;
    if !stencils.is_empty() {
        return measure_stencils(cli, args, &stencils, &output);
    }
    let mut results = Vec::new();
    let mut failures = Vec::new();
    let mut ptxas = String::new();
    let folders = candidate_folders(root)?;
    for (folder, outcome) in folders
        .iter()
        .zip(measure_all(&folders, &args.session(), &Told(cli))?)
    {
        match outcome {
            Ok(result) => {
                ptxas = load_manifest(folder)?.ptxas;
                results.push(result);
            }
            Err(error) => {
                let failure = Failure::from(error);
                let name = folder.file_name().map(|n| n.to_string_lossy().into_owned());
                complain!("{}: {failure:?}", folder.display());
                failures.push((name.unwrap_or_default(), format!("{failure:?}")));
            }
        }
    }
    let suite = Suite {
        schema: SUITE_SCHEMA.into(),
        warpwright: env!("CARGO_PKG_VERSION").into(),
        ptxas,
        kernels: results,
        failures,
    };
    let text = serde_json::to_string(&suite).map_err(|e| Failure::Internal(e.to_string()))?;
    write_atomically(&output, text.as_bytes())?;
    show(args, &suite.kernels)?;
    eprintln!("wrote {}", output.display());
    Ok(())
}

/// Measures what `--build-only` left in folders, one after the other, and writes one result file: what is measured is
/// kept, also where the rest never is.
fn measure_stencils(
    cli: &Cli,
    args: &TuneArgs,
    folders: &[PathBuf],
    output: &Path,
) -> Result<(), Failure> {
    let mut results = Results {
        schema: SCHEMA.into(),
        stencils: Vec::new(),
    };
    let mut failed = Vec::new();
    for folder in folders {
        eprintln!("measuring {}", folder.display());
        match measure_stencil(cli, args.budget, folder) {
            Ok(result) => {
                if result.chosen.is_none() {
                    failed.push(format!("{}: {}", folder.display(), why_none(&result)));
                }
                if !args.show.json {
                    print!("{result}");
                }
                results.stencils.push(result);
            }
            Err(failure) => failed.push(format!("{}: {failure:?}", folder.display())),
        }
        let text = serde_json::to_string(&results).map_err(|e| Failure::Internal(e.to_string()))?;
        write_atomically(output, text.as_bytes())?;
    }
    if args.show.json {
        print_json(&results)?;
    }
    eprintln!("wrote {}", output.display());
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::input(failed.join("\n"))),
    }
}

/// Measures what `--build-only` left in a folder, and writes the fastest version beside it.
fn measure_stencil(cli: &Cli, budget: f64, folder: &Path) -> Result<StencilResult, Failure> {
    let built = Built::read(folder)?;
    let tools = session::tools(cli, built.arguments())?;
    Ok(built.measure(&tools, budget, folder)?)
}

fn show(args: &TuneArgs, results: &[KernelResult]) -> Result<(), Failure> {
    if args.show.json {
        let reports: Vec<_> = results.iter().map(chosen_report).collect();
        return print_json(
            &serde_json::json!({ "schema": "warpwright.tune/1", "kernels": reports }),
        );
    }
    print!("{}", measured_table(results));
    Ok(())
}
