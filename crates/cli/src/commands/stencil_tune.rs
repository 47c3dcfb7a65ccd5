//! `warpwright tune` for a stencil: its versions are built into one program, each is compared with the
//! host's reference at odd sizes, those that agree take turns at the full sizes, and the fastest is
//! written.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use rayon::prelude::*;
use serde::Deserialize;
use warpwright_driver::opt::failure;
use warpwright_driver::source::{Attempt, attempt};
use warpwright_driver::stencil::pass;
use warpwright_gpu::{DeviceInfo, devices, utc_now};
use warpwright_pass::{Artifact, Executor, Target};
use warpwright_report::results::{STENCIL_SCHEMA, StencilResult, StencilVersion};
use warpwright_stencil::evaluate::{Data, Sizes};
use warpwright_stencil::harness;
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::versions::{Version, distance, odd_sizes, reference, tolerance, versions};
use warpwright_toolkit::{Program, ToolError};

use super::pass::source;
use super::stencil_opt::{
    named_sizes, print_versions, read_problem, refuse_other_levels, sizes, target, target_of,
};
use crate::args::{Cli, TuneArgs};
use crate::build::with_builders;
use crate::failure::Failure;
use crate::input::{Input, write_atomically};
use crate::progress;
use crate::session;

/// Compiling one version, or a whole measurement.
const PATIENCE: Duration = Duration::from_secs(600);
/// Streaming kernels that are measured: with `--exhaustive`, else.
const FAVOURITES: [usize; 2] = [16, 8];
/// Rounds in which each version runs once.
const MOST_ROUNDS: u32 = 101;

/// Runs the command.
pub fn run(cli: &Cli, args: &TuneArgs, input: &Input) -> Result<(), Failure> {
    let output = args.output.as_deref();
    let output = output.ok_or_else(|| Failure::Usage("-o OUT.cu is wanted".into()))?;
    refuse_other_levels(Some(output))?;
    let problem = read_problem(cli, input, args.kernel.one()?, (&args.stencil, &args.nvcc))?;
    let stencil = problem.stencil.clone();
    if let Some((_, variable)) = stencil.variables().next() {
        let variable = &variable.name;
        return Err(Failure::input(format!(
            "`{}` reads `{variable}`, a variable of the file: `tune` does not set it; `opt` chooses without a GPU",
            stencil.name
        )));
    }
    let device = devices()?.into_iter().next();
    let device = device.ok_or_else(|| Failure::Missing {
        what: "there is no GPU to measure on".into(),
        mend: Some("`warpwright opt` chooses without one".into()),
    })?;
    let sizes = sizes(&stencil, &args.stencil.sizes)?;
    let gpu = target(args.kernel.gpu.as_deref().or(Some(&device.arch)))?;
    let favourites = FAVOURITES[usize::from(!args.exhaustive)];
    let versions = versions(&stencil, &gpu, &sizes, favourites, args.exhaustive);
    let toolkit = session::toolkit(cli)?;
    let program = toolkit.nvcc()?.program(&gpu.target(), PATIENCE)?;
    let mut measured: Vec<StencilVersion> = versions.iter().map(StencilVersion::new).collect();
    let built = build(&program, &stencil, &versions, &mut measured)?;
    compare(&program, &stencil, &built, &mut measured)?;
    time(&program, &sizes, args.budget, &built, &mut measured)?;
    let file = source(input, input.text()?.to_owned());
    let text = with_builders(cli, &gpu, &args.nvcc, |builders| {
        let mut executor = Executor::new(builders);
        let target = target_of(&stencil, &gpu);
        fastest((&file, &target), &versions, &mut measured, &mut executor)
    })?;
    let result = result(
        &stencil,
        input,
        &device,
        &sizes,
        measured,
        toolkit.nvcc()?.tool(),
    );
    let (Some(chosen), Some(text)) = (result.chosen, text) else {
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
    Ok(())
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

/// The text of the fastest version that agrees with the input in the emulator too; the others lose their times.
fn fastest(
    (file, target): (&Artifact, &Target<'_>),
    versions: &[Version],
    measured: &mut [StencilVersion],
    executor: &mut Executor<'_>,
) -> Result<Option<String>, Failure> {
    let Some(input) = file.as_source() else {
        return Ok(None);
    };
    loop {
        let times = measured
            .iter()
            .enumerate()
            .filter_map(|(at, v)| Some((at, v.ms?)));
        let Some((at, _)) = times.min_by(|a, b| a.1.total_cmp(&b.1)) else {
            return Ok(None);
        };
        let Some(pass) = pass(&versions[at], input.language) else {
            return Ok(Some(input.text.clone()));
        };
        let attempt = attempt(&pass, (file, target), executor);
        let why = match attempt.map_err(|e| Failure::from(failure(e)))? {
            Attempt::Kept(kept) => return Ok(Some(kept.text)),
            Attempt::Falls(fall) => fall.to_string(),
            Attempt::NotOne => "it cannot be written".to_owned(),
        };
        measured[at].ms = None;
        measured[at].rejected = Some(why);
    }
}

/// Compiles all versions and links those that compile with the program around them. Returns which
/// version each number of the program is.
fn build(
    program: &Program,
    stencil: &Stencil,
    versions: &[Version],
    measured: &mut [StencilVersion],
) -> Result<Vec<usize>, Failure> {
    let bar = progress::bar(Some(versions.len() as u64), "compiling");
    let objects: Vec<Result<PathBuf, ToolError>> = versions
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
    let (mut built, mut linked) = (Vec::new(), Vec::new());
    for (at, object) in objects.into_iter().enumerate() {
        match object {
            Ok(object) => {
                built.push(at);
                linked.push(object);
            }
            Err(error @ ToolError::Rejected { .. }) => {
                measured[at].rejected = Some(format!("it does not compile: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let launchers: Vec<String> = built
        .iter()
        .map(|&at| format!("version{at}_launch"))
        .collect();
    linked.push(program.compile("harness", &harness::program(stencil, &launchers))?);
    program.link(&linked)?;
    Ok(built)
}

/// Compares every version with the host at odd sizes, each in a process of its own.
fn compare(
    program: &Program,
    stencil: &Stencil,
    built: &[usize],
    measured: &mut [StencilVersion],
) -> Result<(), Failure> {
    let sizes = odd_sizes(stencil);
    let expected = reference(stencil, &sizes).map_err(|e| Failure::input(e.to_string()))?;
    for (number, &at) in built.iter().enumerate() {
        match compare_one(program, stencil, &sizes, &expected, number)? {
            Ok(apart) => {
                measured[at].reference_distance = Some(apart);
                if apart > tolerance(stencil) {
                    measured[at].rejected =
                        Some(format!("it is {apart:.1e} from the host's result"));
                }
            }
            Err(why) => measured[at].rejected = Some(why),
        }
    }
    Ok(())
}

fn compare_one(
    program: &Program,
    stencil: &Stencil,
    sizes: &Sizes,
    expected: &Data,
    number: usize,
) -> Result<Result<f64, String>, Failure> {
    let file = program.path(&format!("output{number}.bin"));
    let mut arguments = vec![
        "check".into(),
        number.to_string(),
        file.display().to_string(),
    ];
    arguments.extend(sizes.values().map(ToString::to_string));
    let out = program.run(&arguments)?;
    if !out.status.success() {
        return Ok(Err(format!("it does not run: {}", out.text().trim())));
    }
    let bytes =
        std::fs::read(&file).map_err(|e| Failure::Internal(format!("{}: {e}", file.display())))?;
    let apart = distance(stencil, expected, &bytes);
    Ok(apart.ok_or_else(|| "its output has another size".to_owned()))
}

/// A line of the program.
#[derive(Deserialize)]
struct Timed {
    version: usize,
    distance: f64,
    ms: Vec<f64>,
}

/// Lets the versions that are left take turns; more rounds the faster they are.
fn time(
    program: &Program,
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
    for found in timed(program, sizes, rounds.clamp(11, MOST_ROUNDS), &numbers)? {
        let Some(of) = built.get(found.version).map(|&at| &mut measured[at]) else {
            continue;
        };
        let mut ms = found.ms;
        ms.sort_by(f64::total_cmp);
        of.distance = Some(found.distance);
        of.ms = ms.get(ms.len() / 2).copied();
        of.ms_min = ms.first().copied();
    }
    Ok(())
}

fn timed(
    program: &Program,
    sizes: &Sizes,
    rounds: u32,
    numbers: &[String],
) -> Result<Vec<Timed>, Failure> {
    let mut arguments = vec!["time".into(), rounds.to_string(), numbers.join(",")];
    arguments.extend(sizes.values().map(ToString::to_string));
    let out = program.run(&arguments)?;
    if !out.status.success() {
        let text = format!("measuring at the full sizes fails: {}", out.text().trim());
        return Err(Failure::input(text));
    }
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let lines = text.lines().map(serde_json::from_str);
    lines
        .collect::<Result<_, _>>()
        .map_err(|e| Failure::Internal(format!("the measuring program: {e}")))
}

fn result(
    stencil: &Stencil,
    input: &Input,
    device: &DeviceInfo,
    sizes: &Sizes,
    versions: Vec<StencilVersion>,
    nvcc: &warpwright_toolkit::Tool,
) -> StencilResult {
    let times = versions
        .iter()
        .enumerate()
        .filter_map(|(at, v)| Some((at, v.ms?)));
    let chosen = times.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at);
    let version = nvcc.version().map(ToString::to_string);
    StencilResult {
        schema: STENCIL_SCHEMA.into(),
        input: input.name.clone(),
        stencil: stencil.name.clone(),
        gpu: device.name.clone(),
        driver: device.driver.clone().unwrap_or_default(),
        nvcc: version.unwrap_or_default(),
        date: utc_now(),
        sizes: named_sizes(stencil, sizes),
        checked_sizes: named_sizes(stencil, &odd_sizes(stencil)),
        reassociate: stencil.reassociate,
        versions,
        chosen,
    }
}
