//! Stencils: the versions are built into one program, each is compared with the host's reference at odd sizes, those that
//! agree take turns at the full sizes, and the fastest is taken. Building needs no GPU and measuring no nvcc: a folder
//! carries what was built from one machine to another.

use std::collections::BTreeSet;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use warpwright_api::source::build::with_builders;
use warpwright_api::source::sizes::OwnSizes;
use warpwright_api::source::stencil::{Known, known_sizes, named_sizes, read_problem, target_of};
use warpwright_api::source::{Tools, source, target};
use warpwright_api::{Error, Input};
use warpwright_diag::Problem;
use warpwright_driver::stencil::pass;
use warpwright_files::{file_name, make_folder, read, text, write_atomically, write_into};
use warpwright_gpu::stats::{faster, median};
use warpwright_gpu::{DeviceInfo, utc_now};
use warpwright_pass::{Executor, Language};
use warpwright_report::results::{STENCIL_SCHEMA, StencilResult, StencilVersion};
use warpwright_stencil::evaluate::Sizes;
use warpwright_stencil::harness;
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::versions::{
    Family, Problem as Of, Version as Planned, odd_sizes, reference, tolerance, versions,
};
use warpwright_target::Gpu;
use warpwright_toolkit::{Output, run_program};

use crate::Watch;
use crate::alone::{Out, PATIENCE, Version, Wanted, build_all, one_device, parsed, settle};
use crate::last_part;

/// Streaming kernels that are measured: with `--exhaustive`, else.
const FAVOURITES: [usize; 2] = [16, 8];
/// Rounds in which each version runs once.
const MOST_ROUNDS: u32 = 101;

/// What was built for measuring elsewhere: a folder with this, the input, and the program.
#[derive(Serialize, Deserialize)]
pub struct Built {
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
struct Subject<'a> {
    input: &'a Input,
    problem: Of,
    sizes: Sizes,
    /// Which launch has those that were not given.
    launch: Option<String>,
    gpu: Gpu,
    gpu_name: &'a str,
    versions: Vec<Planned>,
}

impl<'a> Subject<'a> {
    fn new(tools: &Tools<'_>, input: &'a Input, wanted: &Wanted<'a>) -> Result<Subject<'a>, Error> {
        let gpu = target(Some(wanted.gpu))?;
        let problem = read_problem(tools, input, wanted.kernel, wanted.reassociate)?;
        let own = &problem.stencil;
        if let Some((_, variable)) = own.variables().next() {
            let variable = &variable.name;
            return Err(Problem::Input(format!(
                "`{}` reads `{variable}`, a variable of the file: `tune` does not set it; `opt` chooses without a GPU",
                own.name
            )).into());
        }
        let known = known_sizes(own, wanted.sizes, wanted.own)?;
        let favourites = FAVOURITES[usize::from(!wanted.exhaustive)];
        let launched = (&known.sizes, known.block);
        let versions = versions(own, &gpu, launched, favourites, wanted.exhaustive);
        let Known { sizes, launch, .. } = known;
        Ok(Subject {
            input,
            problem,
            sizes,
            launch,
            gpu,
            gpu_name: wanted.gpu,
            versions,
        })
    }
}

impl Version for StencilVersion {
    const IS_BESIDE: bool = false;

    /// All took turns in one process.
    fn time(&self) -> Option<f64> {
        self.ms
    }

    fn gains(&self) -> bool {
        self.part.is_some()
    }

    fn is_original(&self) -> bool {
        self.family == Family::Original
    }

    fn reject(&mut self, why: String) {
        self.ms = None;
        self.rejected = Some(why);
    }
}

/// Tunes a stencil; what became of its versions, and the text with the fastest, which `output` is for. Without a device the
/// versions are built into `folder`, and there is nothing more.
///
/// # Errors
/// The stencil cannot be measured, read or built; no version of it agrees with the host.
pub fn tune(
    tools: &Tools<'_>,
    wanted: &Wanted<'_>,
    input: &Input,
    (folder, output): (Option<&Path>, &Path),
    device: Option<&DeviceInfo>,
    watch: &dyn Watch,
) -> Result<Option<(StencilResult, String)>, Error> {
    let subject = Subject::new(tools, input, wanted)?;
    let scratch = tempfile::tempdir().map_err(|e| Problem::Input(e.to_string()))?;
    let place = folder.unwrap_or(scratch.path());
    let built = build(tools, wanted, &subject, (place, output), watch)?;
    if folder.is_some() {
        built.keep(input, place)?;
    }
    if let Some(launch) = &subject.launch {
        let sizes = built.sizes.iter().map(|(name, n)| format!("{name} = {n}"));
        let sizes: Vec<String> = sizes.collect();
        watch.tell(&format!("measured at {} ({launch})", sizes.join(", ")));
    }
    let Some(device) = device else {
        let name = &subject.problem.stencil.name;
        watch.tell(&format!(
            "the versions of `{name}` are in {}",
            place.display()
        ));
        return Ok(None);
    };
    let (result, text) = measure(tools, wanted.budget, (&subject, &built), place, device)?;
    match result.chosen {
        Some(_) => Ok(Some((result, text))),
        None => Err(Problem::Input(why_none(&result)))?,
    }
}

impl Built {
    /// Does one lie in a folder?
    pub fn is_in(folder: &Path) -> bool {
        folder.join(BUILT_FILE).is_file()
    }

    /// That of a folder.
    ///
    /// # Errors
    /// There is none of this version.
    pub fn read(folder: &Path) -> Result<Built, Error> {
        let path = folder.join(BUILT_FILE);
        let built: Built =
            serde_json::from_str(&text(&path)?).map_err(|e| bad(folder, &e.to_string()))?;
        match built.schema == BUILT_SCHEMA {
            true => Ok(built),
            false => Err(bad(
                folder,
                &format!("schema `{}`, wanted `{BUILT_SCHEMA}`", built.schema),
            ))?,
        }
    }

    /// Arguments for nvcc.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Writes it into a folder that has the program, beside it and the input.
    fn keep(&self, input: &Input, folder: &Path) -> Result<(), Error> {
        write_into(folder, &self.file, input.text()?.as_bytes())?;
        let text = serde_json::to_string_pretty(self);
        let text = text.map_err(|e| Problem::Internal(e.to_string()))?;
        Ok(write_into(folder, BUILT_FILE, text.as_bytes())?)
    }

    /// Measures it, and writes the fastest version into its folder.
    ///
    /// # Errors
    /// There is no device, another release made the versions, or the measuring fails.
    pub fn measure(
        &self,
        tools: &Tools<'_>,
        budget: f64,
        folder: &Path,
    ) -> Result<StencilResult, Error> {
        let device = one_device()?;
        let mut input = read(&folder.join(file_name(&self.file)))?;
        input.name.clone_from(&self.input);
        let wanted = Wanted {
            kernel: self.kernel.as_deref(),
            gpu: &self.gpu,
            sizes: &self.sizes,
            own: &OwnSizes::default(),
            reassociate: self.reassociate,
            exhaustive: self.exhaustive,
            budget,
        };
        let subject = Subject::new(tools, &input, &wanted)?;
        let plans = subject.versions.iter().map(|version| &version.plan);
        if !plans.eq(self.versions.iter().map(|version| &version.plan)) {
            return Err(bad(folder, "another release made these versions").into());
        }
        let (result, text) = measure(tools, budget, (&subject, self), folder, &device)?;
        if result.chosen.is_some() {
            write_atomically(&folder.join(file_name(&self.output)), text.as_bytes())?;
        }
        Ok(result)
    }
}

/// What is wrong with a folder.
fn bad(folder: &Path, why: &str) -> Problem {
    let path = folder.join(BUILT_FILE);
    Problem::Input(format!("`{}`: {why}", path.display()))
}

/// Compares all versions of the program with the host, times those that agree, and gives the text of the fastest.
fn measure(
    tools: &Tools<'_>,
    budget: f64,
    (subject, built): (&Subject<'_>, &Built),
    folder: &Path,
    device: &DeviceInfo,
) -> Result<(StencilResult, String), Error> {
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
    let file = source(subject.input, subject.input.text()?.to_owned());
    let language = file.as_source().map_or(Language::Cuda, |of| of.language);
    let settled = with_builders(tools, &subject.gpu, |builders| {
        let mut executor = Executor::new(builders);
        let target = target_of(stencil, &subject.gpu);
        let pass = |at: usize| pass(&subject.versions[at], language);
        settle(&mut versions, pass, (&file, &target), &mut executor)
    })?;
    let (chosen, kept) = settled.unzip();
    let (text, unchecked) = match (chosen, kept.flatten()) {
        (_, Some(kept)) => (kept.text, kept.unchecked),
        (Some(_), None) => (subject.input.text()?.to_owned(), None),
        (None, None) => (String::new(), None),
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
pub fn why_none(result: &StencilResult) -> String {
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

/// Compiles all versions and links those that compile with the program around them, into a folder.
fn build(
    tools: &Tools<'_>,
    wanted: &Wanted<'_>,
    subject: &Subject<'_>,
    (folder, output): (&Path, &Path),
    watch: &dyn Watch,
) -> Result<Built, Error> {
    let stencil = &subject.problem.stencil;
    let nvcc = tools.toolkit()?.nvcc()?;
    let version = nvcc.tool().version().map(ToString::to_string);
    let program = nvcc.program(&subject.gpu.target(), PATIENCE)?;
    let planned = &subject.versions;
    let mut versions: Vec<StencilVersion> = planned.iter().map(StencilVersion::new).collect();
    let name = |at: usize| format!("version{at}");
    let objects = build_all(versions.len(), watch, |at| {
        Out::of(program.compile(&name(at), &planned[at].unit(stencil, &name(at)).0))
    })?;
    let (mut linked, mut parts) = (Vec::new(), Vec::new());
    for (at, object) in objects.into_iter().enumerate() {
        match object {
            Ok(object) => {
                linked.push(at);
                parts.push(object);
            }
            Err(why) => versions[at].rejected = Some(why.to_string()),
        }
    }
    let launchers = linked.iter().map(|&at| format!("{}_launch", name(at)));
    let launchers: Vec<String> = launchers.collect();
    parts.push(program.compile("harness", &harness::program(stencil, &launchers))?);
    make_folder(folder)?;
    program.link(&parts, &folder.join(PROGRAM_FILE))?;
    Ok(Built {
        schema: BUILT_SCHEMA.into(),
        input: subject.input.name.clone(),
        kernel: wanted.kernel.map(str::to_owned),
        arguments: tools.nvcc.to_vec(),
        nvcc: version.unwrap_or_default(),
        gpu: subject.gpu_name.to_owned(),
        sizes: named_sizes(stencil, &subject.sizes),
        reassociate: wanted.reassociate,
        exhaustive: wanted.exhaustive,
        output: last_part(output),
        file: last_part(&subject.input.path),
        versions,
        linked,
    })
}

/// Compares every version with the host at odd sizes, in one process as long as none fails.
fn compare(
    program: &Path,
    stencil: &Stencil,
    linked: &[usize],
    measured: &mut [StencilVersion],
) -> Result<(), Error> {
    let sizes = odd_sizes(stencil);
    let expected = reference(stencil, &sizes).map_err(|e| Problem::Input(e.to_string()))?;
    let scratch = tempfile::tempdir().map_err(|e| Problem::Input(e.to_string()))?;
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
            measured[at].rejected = Some(Out::NotRun(why.trim().to_owned()).to_string());
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
) -> Result<(), Error> {
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
) -> Result<Vec<Timed>, Error> {
    let mut arguments = vec!["time".into(), numbers.join(","), rounds.to_string()];
    arguments.extend(sizes.values().map(ToString::to_string));
    let out = run_program(program, &arguments, PATIENCE)?;
    if !out.status.success() {
        let text = format!("measuring at the full sizes fails: {}", out.text().trim());
        return Err(Problem::Input(text).into());
    }
    lines(&out)
}

fn lines<T: DeserializeOwned>(out: &Output) -> Result<Vec<T>, Error> {
    let text = String::from_utf8_lossy(&out.stdout);
    text.lines().map(parsed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::fastest;

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
        assert_eq!(fastest(&all), Some(2));
        assert_eq!(fastest(&all[..2]), Some(0));
        // The original failed.
        assert_eq!(fastest(&all[1..]), Some(0));
        assert_eq!(fastest::<StencilVersion>(&[]), None);
    }
}
