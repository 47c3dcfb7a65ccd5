//! `warpwright tune` for a stencil: its versions are built into one program, each is compared with the host's reference
//! at odd sizes, those that agree take turns at the full sizes, and the fastest is written. Building needs no GPU and
//! measuring no nvcc: `--build-only` and `--measure-only` do one on one machine and the other on another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use warpwright::Error;
use warpwright::source::build::with_builders;
use warpwright::source::sizes::OwnSizes;
use warpwright::source::stencil::{Known, known_sizes, named_sizes, read_problem, target_of};
use warpwright::source::{source, target};
use warpwright_driver::source::{Attempt, attempt};
use warpwright_driver::stencil::pass;
use warpwright_gpu::stats::{faster, median};
use warpwright_gpu::{DeviceInfo, devices, utc_now};
use warpwright_pass::{Artifact, Executor, Target};
use warpwright_report::results::{STENCIL_SCHEMA, StencilResult, StencilVersion};
use warpwright_report::stencils::{Results, SCHEMA};
use warpwright_stencil::evaluate::Sizes;
use warpwright_stencil::harness;
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::versions::{
    Family, Problem, Version, odd_sizes, reference, tolerance, versions,
};
use warpwright_target::Gpu;
use warpwright_toolkit::{Output, ToolError, run_program};

use super::own_run;
use super::stencil_opt::{print_versions, refuse_other_levels};
use super::tune::last_part;
use crate::args::{Cli, Floating, StencilArgs, TuneArgs};
use crate::failure::Failure;
use crate::input::{Input, file_name, make_folder, read, text, write_atomically, write_into};
use crate::progress;
use crate::session;
use warpwright::front::DEFAULT_GPU;

/// Compiling one version, or a whole measurement.
const PATIENCE: Duration = Duration::from_secs(600);
/// Streaming kernels that are measured: with `--exhaustive`, else.
const FAVOURITES: [usize; 2] = [16, 8];
/// Rounds in which each version runs once.
const MOST_ROUNDS: u32 = 101;

/// A folder that `--build-only` filled: [`BUILT_FILE`] with this, the input, and the program.
#[derive(Serialize, Deserialize)]
struct Built {
    schema: String,
    /// The input as the user named it, and its file in the folder.
    input: String,
    file: String,
    kernel: Option<String>,
    /// Arguments for nvcc, and which nvcc it was.
    arguments: Vec<String>,
    nvcc: String,
    gpu: String,
    sizes: Vec<(String, i64)>,
    reassociate: bool,
    exhaustive: bool,
    /// Where the fastest is to be written.
    output: String,
    /// All versions; those that do not compile say so.
    versions: Vec<StencilVersion>,
    /// By number of the program: which version it is.
    linked: Vec<usize>,
}

/// Tag of [`Built`].
const BUILT_SCHEMA: &str = "warpwright.stencil-built/1";
/// The file in which it lies.
const BUILT_FILE: &str = "stencil.json";
/// The program beside it.
const PROGRAM_FILE: &str = "program";
/// What the host computes, for the program.
const EXPECTED_FILE: &str = "expected";

/// A stencil that is measured.
struct Subject {
    input: Input,
    problem: Problem,
    sizes: Sizes,
    /// Which launch has those that were not given.
    launch: Option<String>,
    gpu: Gpu,
    gpu_name: String,
    versions: Vec<Version>,
}

impl Subject {
    fn new(
        cli: &Cli,
        input: Input,
        kernel: Option<&str>,
        (stencil, nvcc): (&StencilArgs, &[String]),
        (gpu_name, own_sizes): (&str, &OwnSizes),
        exhaustive: bool,
    ) -> Result<Subject, Failure> {
        let gpu = target(Some(gpu_name))?;
        let problem = read_problem(
            &session::tools(cli, nvcc)?,
            &input,
            kernel,
            stencil.fp == Some(Floating::Reassociate),
        )?;
        let own = &problem.stencil;
        if let Some((_, variable)) = own.variables().next() {
            let variable = &variable.name;
            return Err(Failure::input(format!(
                "`{}` reads `{variable}`, a variable of the file: `tune` does not set it; `opt` chooses without a GPU",
                own.name
            )));
        }
        let known = known_sizes(own, &stencil.sizes, own_sizes)?;
        let favourites = FAVOURITES[usize::from(!exhaustive)];
        let launched = (&known.sizes, known.block);
        let versions = versions(own, &gpu, launched, favourites, exhaustive);
        let Known { sizes, launch, .. } = known;
        Ok(Subject {
            input,
            problem,
            sizes,
            launch,
            gpu,
            gpu_name: gpu_name.to_owned(),
            versions,
        })
    }
}

/// Runs the command.
pub fn run(cli: &Cli, args: &TuneArgs, input: Input) -> Result<(), Failure> {
    let output = args.output.as_deref();
    let output = output.ok_or_else(|| Failure::Usage("-o OUT.cu is wanted".into()))?;
    refuse_other_levels(Some(output))?;
    let device = match args.build_only {
        Some(_) => None,
        None => Some(one_device()?),
    };
    let arch = device.as_ref().map(|device| device.arch.as_str());
    let gpu = args.kernel.gpu.as_deref().or(arch).unwrap_or(DEFAULT_GPU);
    let kernel = args.kernel.one()?;
    let nvcc = args.nvcc()?;
    let options = (&args.stencil, &*nvcc);
    let own = own_run::sizes(cli, &input, &args.kernel, (&args.own, &nvcc))?;
    let subject = Subject::new(cli, input, kernel, options, (gpu, &own), args.exhaustive)?;
    let scratch = tempfile::tempdir().map_err(|e| Failure::input(e.to_string()))?;
    let folder = args.build_only.as_deref().unwrap_or(scratch.path());
    let built = build(cli, args, &subject, folder, output)?;
    if let Some(launch) = &subject.launch {
        let sizes = built.sizes.iter().map(|(name, n)| format!("{name} = {n}"));
        let sizes: Vec<String> = sizes.collect();
        eprintln!("measured at {} ({launch})", sizes.join(", "));
    }
    let Some(device) = device else {
        eprintln!(
            "the versions of `{}` are in {}",
            subject.problem.stencil.name,
            folder.display()
        );
        return Ok(());
    };
    let (result, text) = measure(cli, args.budget, &subject, &built, folder, &device)?;
    let Some(chosen) = result.chosen else {
        return Err(Failure::input(why_none(&result)));
    };
    write_atomically(output, text.as_bytes())?;
    if args.show.json {
        return super::print_json(&result);
    }
    print_versions(&result);
    println!(
        "wrote {} ({})",
        output.display(),
        result.versions[chosen].plan
    );
    if let Some(why) = &result.unchecked {
        println!("not compared in the emulator: {why}");
    }
    Ok(())
}

/// The GPU that is measured on.
///
/// # Errors
/// There is none.
pub fn one_device() -> Result<DeviceInfo, Failure> {
    devices()?
        .into_iter()
        .next()
        .ok_or_else(|| Failure::Missing {
            what: "there is no GPU to measure on".into(),
            mend: Some("`warpwright opt` chooses without one".into()),
        })
}

/// Does `--build-only` of a stencil lie here?
pub fn is_built(folder: &Path) -> bool {
    folder.join(BUILT_FILE).is_file()
}

/// Measures what `--build-only` left in folders, one after the other, and writes one result file: what is measured is
/// kept, also where the rest never is.
pub fn measure_only(
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
        match measure_folder(cli, args.budget, folder) {
            Ok(result) => {
                if result.chosen.is_none() {
                    failed.push(format!("{}: {}", folder.display(), why_none(&result)));
                }
                if !args.show.json {
                    print_versions(&result);
                }
                results.stencils.push(result);
            }
            Err(failure) => failed.push(format!("{}: {failure:?}", folder.display())),
        }
        let text = serde_json::to_string(&results).map_err(|e| Failure::Internal(e.to_string()))?;
        write_atomically(output, text.as_bytes())?;
    }
    if args.show.json {
        super::print_json(&results)?;
    }
    eprintln!("wrote {}", output.display());
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::input(failed.join("\n"))),
    }
}

/// Measures what `--build-only` left in a folder, and writes the fastest version beside it.
fn measure_folder(cli: &Cli, budget: f64, folder: &Path) -> Result<StencilResult, Failure> {
    let path = folder.join(BUILT_FILE);
    let bad = |why: String| Failure::input(format!("`{}`: {why}", path.display()));
    let built: Built = serde_json::from_str(&text(&path)?).map_err(|e| bad(e.to_string()))?;
    if built.schema != BUILT_SCHEMA {
        return Err(bad(format!(
            "schema `{}`, wanted `{BUILT_SCHEMA}`",
            built.schema
        )));
    }
    let device = one_device()?;
    let options = StencilArgs {
        sizes: built.sizes.clone(),
        fp: built.reassociate.then_some(Floating::Reassociate),
        unchecked: false,
    };
    let mut input = read(&folder.join(file_name(&built.file)))?;
    input.name.clone_from(&built.input);
    let kernel = built.kernel.as_deref();
    let options = (&options, &*built.arguments);
    let own = (&*built.gpu, &OwnSizes::default());
    let subject = Subject::new(cli, input, kernel, options, own, built.exhaustive)?;
    let plans = subject.versions.iter().map(|version| &version.plan);
    if !plans.eq(built.versions.iter().map(|version| &version.plan)) {
        return Err(bad("another release made these versions".to_owned()));
    }
    let (result, text) = measure(cli, budget, &subject, &built, folder, &device)?;
    if result.chosen.is_some() {
        write_atomically(&folder.join(file_name(&built.output)), text.as_bytes())?;
    }
    Ok(result)
}

/// Compares all versions of the program with the host, times those that agree, and gives the text of the fastest.
fn measure(
    cli: &Cli,
    budget: f64,
    subject: &Subject,
    built: &Built,
    folder: &Path,
    device: &DeviceInfo,
) -> Result<(StencilResult, String), Failure> {
    let stencil = &subject.problem.stencil;
    let program = folder.join(PROGRAM_FILE);
    let mut versions = built.versions.clone();
    compare(&program, stencil, &built.linked, &mut versions)?;
    time(
        &program,
        &subject.sizes,
        budget,
        &built.linked,
        &mut versions,
    )?;
    let file = source(&subject.input, subject.input.text()?.to_owned());
    let tools = session::tools(cli, &built.arguments)?;
    let kept = with_builders(&tools, &subject.gpu, |builders| {
        let mut executor = Executor::new(builders);
        let target = target_of(stencil, &subject.gpu);
        fastest(
            (&file, &target),
            &subject.versions,
            &mut versions,
            &mut executor,
        )
    })?;
    let (chosen, text, unchecked) = match kept {
        Some((at, text, unchecked)) => (Some(at), text, unchecked),
        None => (None, String::new(), None),
    };
    let result = StencilResult {
        schema: STENCIL_SCHEMA.into(),
        input: built.input.clone(),
        stencil: stencil.name.clone(),
        gpu: device.name.clone(),
        driver: device.driver.clone().unwrap_or_default(),
        nvcc: built.nvcc.clone(),
        date: utc_now(),
        sizes: built.sizes.clone(),
        checked_sizes: named_sizes(stencil, &odd_sizes(stencil)),
        reassociate: stencil.reassociate,
        versions,
        chosen,
        unchecked,
    };
    Ok((result, text))
}

/// What was found wrong with the versions, each reason once with the first plan that it is said of.
fn why_none(result: &StencilResult) -> String {
    let mut text = "no version of the stencil runs and agrees with the host".to_owned();
    let mut said = BTreeSet::new();
    for version in &result.versions {
        let Some(why) = &version.rejected else {
            continue;
        };
        if said.len() < 4 && said.insert(why) {
            text += &format!("\n{}: {why}", version.plan);
        }
    }
    text
}

/// Of the versions that were timed the fastest that is surely faster than the original; else the original. Where that was not
/// timed (it was out), the fastest of all.
fn fastest_timed(measured: &[StencilVersion]) -> Option<usize> {
    let times = measured.iter().enumerate();
    let times: Vec<(usize, f64)> = times.filter_map(|(at, v)| Some((at, v.ms?))).collect();
    let is_original = |at: usize| measured[at].family == Family::Original;
    let original = times.iter().find(|(at, _)| is_original(*at));
    let is_gain = |&&(at, _): &&(usize, f64)| original.is_none() || measured[at].part.is_some();
    let gains = times.iter().filter(is_gain);
    let fastest = gains.min_by(|a, b| a.1.total_cmp(&b.1)).or(original);
    fastest.map(|(at, _)| *at)
}

/// The fastest version that agrees with the input in the emulator too, its text, and why it was not compared there; the
/// others lose their times.
fn fastest(
    (file, target): (&Artifact, &Target<'_>),
    versions: &[Version],
    measured: &mut [StencilVersion],
    executor: &mut Executor<'_>,
) -> Result<Option<(usize, String, Option<String>)>, Failure> {
    let Some(input) = file.as_source() else {
        return Ok(None);
    };
    loop {
        let Some(at) = fastest_timed(measured) else {
            return Ok(None);
        };
        let Some(pass) = pass(&versions[at], input.language) else {
            return Ok(Some((at, input.text.clone(), None)));
        };
        let attempt = attempt(&pass, (file, target), executor);
        let why = match attempt.map_err(Error::from)? {
            Attempt::Kept(kept) => return Ok(Some((at, kept.text, kept.unchecked))),
            Attempt::Falls(fall) => fall.to_string(),
            Attempt::NotOne => "it cannot be written".to_owned(),
        };
        measured[at].ms = None;
        measured[at].rejected = Some(why);
    }
}

/// Compiles all versions and links those that compile with the program around them, into a folder.
fn build(
    cli: &Cli,
    args: &TuneArgs,
    subject: &Subject,
    folder: &Path,
    output: &Path,
) -> Result<Built, Failure> {
    let stencil = &subject.problem.stencil;
    let toolkit = session::toolkit(cli)?;
    let nvcc = toolkit.nvcc()?;
    let version = nvcc.tool().version().map(ToString::to_string);
    let program = nvcc.program(&subject.gpu.target(), PATIENCE)?;
    let mut versions: Vec<StencilVersion> =
        subject.versions.iter().map(StencilVersion::new).collect();
    let bar = progress::bar(Some(versions.len() as u64), "compiling");
    let objects: Vec<Result<PathBuf, ToolError>> = subject
        .versions
        .par_iter()
        .enumerate()
        .map(|(at, version)| {
            let name = format!("version{at}");
            let object = program.compile(&name, &version.unit(stencil, &name).0);
            bar.inc(1);
            object
        })
        .collect();
    bar.finish_and_clear();
    let (mut linked, mut parts) = (Vec::new(), Vec::new());
    for (at, object) in objects.into_iter().enumerate() {
        match object {
            Ok(object) => {
                linked.push(at);
                parts.push(object);
            }
            Err(error @ ToolError::Rejected { .. }) => {
                versions[at].rejected = Some(format!("it does not compile: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let launchers: Vec<String> = linked
        .iter()
        .map(|&at| format!("version{at}_launch"))
        .collect();
    parts.push(program.compile("harness", &harness::program(stencil, &launchers))?);
    make_folder(folder)?;
    program.link(&parts, &folder.join(PROGRAM_FILE))?;
    let built = Built {
        schema: BUILT_SCHEMA.into(),
        input: subject.input.name.clone(),
        kernel: args.kernel.one()?.map(str::to_owned),
        arguments: args.nvcc()?,
        nvcc: version.unwrap_or_default(),
        gpu: subject.gpu_name.clone(),
        sizes: named_sizes(stencil, &subject.sizes),
        reassociate: args.stencil.fp == Some(Floating::Reassociate),
        exhaustive: args.exhaustive,
        output: last_part(output),
        file: last_part(&subject.input.path),
        versions,
        linked,
    };
    if args.build_only.is_some() {
        write_into(folder, &built.file, subject.input.text()?.as_bytes())?;
        let text = serde_json::to_string_pretty(&built);
        let text = text.map_err(|e| Failure::Internal(e.to_string()))?;
        write_into(folder, BUILT_FILE, text.as_bytes())?;
    }
    Ok(built)
}

/// Compares every version with the host at odd sizes, in one process as long as none fails.
fn compare(
    program: &Path,
    stencil: &Stencil,
    linked: &[usize],
    measured: &mut [StencilVersion],
) -> Result<(), Failure> {
    let sizes = odd_sizes(stencil);
    let expected = reference(stencil, &sizes).map_err(|e| Failure::input(e.to_string()))?;
    let scratch = tempfile::tempdir().map_err(|e| Failure::input(e.to_string()))?;
    let bytes = harness::expected(stencil, &expected);
    write_into(scratch.path(), EXPECTED_FILE, &bytes)?;
    let file = scratch.path().join(EXPECTED_FILE).display().to_string();
    let mut first = 0;
    while first < linked.len() {
        let numbers: Vec<String> = (first..linked.len()).map(|n| n.to_string()).collect();
        let mut arguments = vec!["check".into(), numbers.join(","), file.clone()];
        arguments.extend(sizes.values().map(ToString::to_string));
        let out = run_program(program, &arguments, PATIENCE)?;
        for found in lines::<Compared>(&out)? {
            let Some(of) = linked.get(found.version).map(|&at| &mut measured[at]) else {
                continue;
            };
            first = found.version + 1;
            of.reference_distance = Some(found.distance);
            // A result that is no number is far away.
            if found.distance > tolerance(stencil) {
                let apart = found.distance;
                of.rejected = Some(format!("it is {apart:.1e} from the host's result"));
            }
        }
        if out.status.success() {
            break;
        }
        if let Some(&at) = linked.get(first) {
            let why = String::from_utf8_lossy(&out.stderr);
            measured[at].rejected = Some(format!("it does not run: {}", why.trim()));
        }
        first += 1;
    }
    Ok(())
}

/// A line of `check`.
#[derive(Deserialize)]
struct Compared {
    version: usize,
    distance: f64,
}

/// A line of `time`.
#[derive(Deserialize)]
struct Timed {
    version: usize,
    distance: f64,
    ms: Vec<f64>,
}

/// Lets the versions that are left take turns; more rounds the faster they are.
fn time(
    program: &Path,
    sizes: &Sizes,
    budget: f64,
    built: &[usize],
    measured: &mut [StencilVersion],
) -> Result<(), Failure> {
    let good = built
        .iter()
        .enumerate()
        .filter(|(_, at)| measured[**at].rejected.is_none());
    let numbers: Vec<String> = good.map(|(number, _)| number.to_string()).collect();
    if numbers.is_empty() {
        return Ok(());
    }
    let probe = timed(program, sizes, 1, &numbers)?;
    let round: f64 = probe.iter().flat_map(|t| &t.ms).sum();
    let rounds = (budget * 1e3 / (2.0 * round.max(1e-3))) as u32;
    let all = timed(program, sizes, rounds.clamp(11, MOST_ROUNDS), &numbers)?;
    let is_original = |of: &&Timed| {
        let at = built.get(of.version);
        at.is_some_and(|&at| measured[at].family == Family::Original)
    };
    let original = all.iter().find(is_original).map(|of| of.ms.clone());
    for found in all {
        let Some(of) = built.get(found.version).map(|&at| &mut measured[at]) else {
            continue;
        };
        of.distance = Some(found.distance);
        of.ms = median(&found.ms);
        of.ms_min = found.ms.iter().copied().min_by(f64::total_cmp);
        of.part = original.as_ref().and_then(|ms| faster(&found.ms, ms));
    }
    Ok(())
}

fn timed(
    program: &Path,
    sizes: &Sizes,
    rounds: u32,
    numbers: &[String],
) -> Result<Vec<Timed>, Failure> {
    let mut arguments = vec!["time".into(), numbers.join(","), rounds.to_string()];
    arguments.extend(sizes.values().map(ToString::to_string));
    let out = run_program(program, &arguments, PATIENCE)?;
    if !out.status.success() {
        let text = format!("measuring at the full sizes fails: {}", out.text().trim());
        return Err(Failure::input(text));
    }
    lines(&out)
}

fn lines<T: DeserializeOwned>(out: &Output) -> Result<Vec<T>, Failure> {
    let text = String::from_utf8_lossy(&out.stdout);
    let lines = text.lines().map(serde_json::from_str);
    lines
        .collect::<Result<_, _>>()
        .map_err(|e| Failure::Internal(format!("the measuring program: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_not_surely_faster_leaves_the_original() {
        let version = |family, ms: f64, part| StencilVersion {
            family,
            plan: String::new(),
            predicted_ms: None,
            rejected: None,
            reference_distance: None,
            distance: None,
            ms: Some(ms),
            ms_min: None,
            part,
        };
        let original = version(Family::Original, 1.0, None);
        let noise = version(Family::Unrolled, 0.9, None);
        let gain = version(Family::Streamed, 0.95, Some(0.95));
        let all = [original, noise, gain];
        assert_eq!(fastest_timed(&all), Some(2));
        assert_eq!(fastest_timed(&all[..2]), Some(0));
        // The original failed.
        assert_eq!(fastest_timed(&all[1..]), Some(0));
        assert_eq!(fastest_timed(&[]), None);
    }
}
