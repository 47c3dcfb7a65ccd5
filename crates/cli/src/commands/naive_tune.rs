//! `warpwright tune` for a naive kernel: each version of the shortlist is built into a program of its own beside the
//! kernel as written, compared with it and timed in turns with it; the fastest that agrees in the emulator too is written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use warpwright::Error;
use warpwright::source::build::{beside, with_builders};
use warpwright::source::naive::{Found, again, state_all, target_of};
use warpwright::source::sizes::{OwnSizes, Sizes, state};
use warpwright::source::{Tools, source, target};
use warpwright_driver::source::{Attempt, attempt};
use warpwright_gpu::stats::{faster, median};
use warpwright_gpu::{DeviceInfo, utc_now};
use warpwright_naive::emit::Generated;
use warpwright_naive::harness::{NoSetup, Setup, program};
use warpwright_naive::search::shortlist;
use warpwright_naive::versions::Problem;
use warpwright_pass::{Executor, Invocation};
use warpwright_report::screen::dropped;
use warpwright_report::table::Table;
use warpwright_toolkit::{Program, ToolError, run_program};

use super::own_run;
use super::stencil_opt::refuse_other_levels;
use super::stencil_tune::one_device;
use crate::args::{Cli, TuneArgs};
use crate::failure::Failure;
use warpwright::Input;
use warpwright_files::{write_atomically};
use crate::progress;
use crate::session;

/// Compiling or measuring one version.
const PATIENCE: Duration = Duration::from_secs(600);
/// Ways of each kind that are measured: with `--exhaustive`, else.
const SHORTLIST: [usize; 2] = [16, 4];
/// How far a sum in another order may be from the one as written, over the largest magnitude.
const REORDERED: f64 = 1e-4;

/// What became of the kernels of a file.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    input: String,
    gpu: String,
    driver: String,
    date: String,
    kernels: Vec<Tuned>,
    output: String,
}

/// What became of a kernel.
#[derive(Debug, Serialize)]
struct Tuned {
    kernel: String,
    sizes: Vec<(String, i64)>,
    /// In words, and which launch has them.
    at: String,
    grid: [i64; 3],
    block: [i64; 3],
    versions: Vec<Measured>,
    /// The number of the chosen version; none: the kernel stays as written.
    chosen: Option<usize>,
}

/// A version.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Measured {
    schedule: String,
    predicted_ms: f64,
    /// Medians of the same run.
    ms: Option<f64>,
    written_ms: Option<f64>,
    /// Its part of the time of the kernel as written, where that is surely less ([`faster`]).
    part: Option<f64>,
    /// How far its results are from those of the kernel as written, over the largest magnitude.
    distance: Option<f64>,
    rejected: Option<String>,
}

impl Measured {
    /// Its part of the time of the kernel as written, if it is right and faster.
    fn part(&self) -> Option<f64> {
        self.part.filter(|_| self.rejected.is_none())
    }

    /// What a run says, or why there is none.
    fn take(&mut self, found: Result<Line, String>, is_reordered: bool) {
        let line = match found {
            Ok(line) => line,
            Err(why) => {
                self.rejected = Some(why);
                return;
            }
        };
        let (most, how) = match is_reordered {
            true => (REORDERED, "its sums may be reordered"),
            false => (0.0, "not one bit may differ"),
        };
        self.distance = Some(line.distance);
        if !line.equal && (line.distance > most || !is_reordered) {
            let far = line.distance;
            self.rejected = Some(format!("it is {far:.1e} from the kernel as written: {how}"));
        }
        self.part = faster(&line.version, &line.written);
        self.ms = median(&line.version);
        self.written_ms = median(&line.written);
    }
}

/// What the program says.
#[derive(Deserialize)]
struct Line {
    equal: bool,
    distance: f64,
    written: Vec<f64>,
    version: Vec<f64>,
}

/// The fastest version that gains.
fn fastest(all: &[Measured]) -> Option<usize> {
    let parts = all.iter().enumerate();
    let parts = parts.filter_map(|(at, v)| Some((at, v.part()?)));
    let least = parts.min_by(|a, b| a.1.total_cmp(&b.1));
    least.map(|(at, _)| at)
}

/// Runs the command.
pub fn run(
    cli: &Cli,
    args: &TuneArgs,
    input: &Input,
    mut found: Vec<Found>,
) -> Result<(), Failure> {
    let output = args.output.as_deref();
    let output = output.ok_or_else(|| Failure::Usage("-o OUT.cu is wanted".into()))?;
    refuse_other_levels(Some(output))?;
    state_all(&mut found, &args.stencil.sizes, input)?;
    let device = one_device()?;
    let nvcc = args.nvcc()?;
    let own = own_run::sizes(cli, input, &args.kernel, (&args.own, &nvcc))?;
    let tools = session::tools(cli, &nvcc)?;
    let setups = found.iter_mut();
    let setups = setups.map(|of| setup(&mut of.problem, &args.stencil.sizes, &own));
    let setups: Vec<(Setup, Sizes)> = setups.collect::<Result<_, _>>()?;
    let mut text = input.text()?.to_owned();
    let mut kernels = Vec::new();
    let count = found.len();
    for (number, (of, (setup, sizes))) in found.into_iter().zip(setups).enumerate() {
        let mut problem = of.problem;
        if number > 0 {
            let name = problem.kernel.name.clone();
            problem = again(&tools, input, (&name, &text))?;
            state(&mut problem, &args.stencil.sizes, &own);
        }
        let seconds = args.budget / count as f64;
        let of = (&problem, &setup, &*text);
        let (mut tuned, new) = tune(&tools, args, input, of, &device, seconds)?;
        tuned.at = sizes.at();
        if let Some(new) = new {
            text = new;
        }
        kernels.push(tuned);
    }
    write_atomically(output, text.as_bytes())?;
    let document = Document {
        schema: "warpwright.naive-tune/1",
        input: input.name.clone(),
        gpu: device.name.clone(),
        driver: device.driver.clone().unwrap_or_default(),
        date: utc_now(),
        kernels,
        output: output.display().to_string(),
    };
    if args.show.json {
        return super::print_json(&document);
    }
    print(&document);
    Ok(())
}

/// The launch that a kernel is measured at: at the sizes that are given, else those of its own launch.
fn setup(
    problem: &mut Problem,
    given: &[(String, i64)],
    own: &OwnSizes,
) -> Result<(Setup, Sizes), Failure> {
    let sizes = state(problem, given, own);
    let setup = Setup::expected(&problem.kernel).map_err(refused)?;
    Ok((setup, sizes))
}

fn refused(why: NoSetup) -> Failure {
    Failure::input(format!("{why}; `opt` chooses without a GPU"))
}

/// Measures the versions of one kernel; the text with the fastest, if one gains.
fn tune(
    tools: &Tools<'_>,
    args: &TuneArgs,
    input: &Input,
    (problem, setup, written): (&Problem, &Setup, &str),
    device: &DeviceInfo,
    seconds: f64,
) -> Result<(Tuned, Option<String>), Failure> {
    let kernel = &problem.kernel;
    let gpu = target(args.kernel.gpu.as_deref().or(Some(&device.arch)))?;
    let shared = gpu.arch.shared.per_block_opt_in;
    let count = SHORTLIST[usize::from(!args.exhaustive)];
    let (mut passes, mut versions, mut measured) = (Vec::new(), Vec::new(), Vec::new());
    for (way, predicted) in shortlist(kernel, &gpu, count) {
        let Some(generated) = way.generate(kernel, shared) else {
            continue;
        };
        let pass = Invocation::from(way);
        versions.push(generated);
        measured.push(Measured {
            schedule: pass.to_string(),
            predicted_ms: predicted.ms,
            ms: None,
            written_ms: None,
            part: None,
            distance: None,
            rejected: None,
        });
        passes.push(pass);
    }
    let made = tools.toolkit()?.nvcc()?.program(&gpu.target(), PATIENCE)?;
    let programs = build(&made, (problem, setup), &versions, &more(args, input))?;
    let bar = progress::bar(Some(versions.len() as u64), "measuring");
    let each = seconds / (versions.len().max(1) as f64);
    for ((of, built), generated) in measured.iter_mut().zip(programs).zip(&versions) {
        let line = match built {
            Ok(path) => timed(&path, each)?,
            Err(why) => Err(why),
        };
        of.take(line, generated.reordered);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let (mut chosen, mut text) = (None, None);
    let file = source(input, written.to_owned());
    let wanted = target_of(&kernel.name, &gpu, &kernel.pragma.sizes);
    with_builders(tools, &gpu, |builders| {
        let mut executor = Executor::new(builders);
        while let Some(at) = fastest(&measured) {
            let attempt = attempt(&passes[at], (&file, &wanted), &mut executor);
            let why = match attempt.map_err(Error::from)? {
                Attempt::Kept(kept) => {
                    (chosen, text) = (Some(at), Some(kept.text));
                    break;
                }
                Attempt::Falls(fall) => fall.to_string(),
                Attempt::NotOne => "it cannot be written".to_owned(),
            };
            measured[at].rejected = Some(why);
        }
        Ok::<(), Failure>(())
    })?;
    let sizes = setup.sizes.iter().enumerate();
    let tuned = Tuned {
        kernel: kernel.name.clone(),
        sizes: sizes
            .map(|(at, n)| (kernel.size_name(at).to_owned(), *n))
            .collect(),
        at: String::new(),
        grid: setup.grid,
        block: setup.block,
        versions: measured,
        chosen,
    };
    Ok((tuned, text))
}

/// Arguments for nvcc; headers beside the file are found.
fn more(args: &TuneArgs, input: &Input) -> Vec<OsString> {
    let mut more = args.words.clone();
    if let Some(folder) = beside(&input.path) {
        more.push("-I".into());
        more.push(folder.into());
    }
    more
}

/// A program for each version.
fn build(
    made: &Program<'_>,
    (problem, setup): (&Problem, &Setup),
    versions: &[Generated],
    more: &[OsString],
) -> Result<Vec<Result<PathBuf, String>>, Failure> {
    let bar = progress::bar(Some(versions.len() as u64), "compiling");
    let built: Vec<Result<Result<PathBuf, String>, Failure>> = versions
        .par_iter()
        .enumerate()
        .map(|(at, generated)| {
            let output = match problem.output(generated) {
                Ok(output) => output,
                Err(refusal) => return Ok(Err(refusal.to_string())),
            };
            let text = program(&problem.kernel, &output, setup).map_err(refused)?;
            let path = made.executable(&format!("version{at}"), &text, more);
            bar.inc(1);
            match path {
                Ok(path) => Ok(Ok(path)),
                Err(error @ ToolError::Rejected { .. }) => {
                    Ok(Err(format!("it does not compile: {error}")))
                }
                Err(error) => Err(error.into()),
            }
        })
        .collect();
    bar.finish_and_clear();
    built.into_iter().collect()
}

/// Runs a program; a version that fails takes its process with it, and nothing else.
fn timed(path: &Path, seconds: f64) -> Result<Result<Line, String>, Failure> {
    let out = run_program(path, &[seconds.to_string()], PATIENCE)?;
    if !out.status.success() {
        return Ok(Err(format!("it does not run: {}", out.text().trim())));
    }
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = serde_json::from_str(text.trim());
    line.map(Ok)
        .map_err(|e| Failure::Internal(format!("the measuring program: {e}")))
}

fn print(document: &Document) {
    for tuned in &document.kernels {
        println!(
            "naive kernel {} on {}{}\n",
            tuned.kernel, document.gpu, tuned.at
        );
        let mut table = Table::new(&["", "schedule", "predicted ms", "ms", "as written", "note"]);
        let ms = |of: Option<f64>| of.map_or("–".to_owned(), |ms| format!("{ms:.4}"));
        for (at, of) in tuned.versions.iter().enumerate() {
            table.row(vec![
                if tuned.chosen == Some(at) { "*" } else { "" }.into(),
                of.schedule.clone(),
                format!("{:.4}", of.predicted_ms),
                ms(of.ms),
                ms(of.written_ms),
                of.rejected.as_ref().map_or("", |_| "dropped").to_owned(),
            ]);
        }
        print!("{}", table.render_within(1));
        let all = tuned.versions.iter();
        let why = all.filter_map(|of| Some((&*of.schedule, of.rejected.as_deref()?)));
        print!("{}", dropped(why));
        match tuned.chosen.and_then(|at| tuned.versions[at].part()) {
            Some(part) => println!("\n{:.2} times as fast as written\n", 1.0 / part),
            None => println!("\nstays as it is: nothing that agrees is faster\n"),
        }
    }
    println!("wrote {} (CUDA C++)", document.output);
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_cudac::File;
    use warpwright_cudac::diag::Source;

    fn measured(ms: f64, written_ms: f64) -> Measured {
        Measured {
            schedule: String::new(),
            predicted_ms: 1.0,
            ms: Some(ms),
            written_ms: Some(written_ms),
            part: faster(&[ms; 7], &[written_ms; 7]),
            distance: Some(0.0),
            rejected: None,
        }
    }

    #[test]
    fn the_fastest_beside_the_kernel_as_written_of_its_own_run() {
        let mut all = vec![measured(1.0, 4.0), measured(0.9, 2.0), measured(3.0, 1.0)];
        assert_eq!(fastest(&all), Some(0));
        all[0].rejected = Some("it differs".into());
        assert_eq!(fastest(&all), Some(1));
        // Within noise of what was there.
        assert_eq!(fastest(&[measured(0.996, 1.0)]), None);
        all[1].part = None;
        assert_eq!(fastest(&all), None);
    }

    #[test]
    fn a_kernel_is_measured_at_the_sizes_of_its_launch() {
        let text = "__global__ void add(float *a, const float *b, int n, int m) {\n\
                    int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                    int j = blockIdx.y * blockDim.y + threadIdx.y;\n\
                    if (i < n && j < m) a[j * n + i] = b[j * n + i] + 1.0f;\n}\n";
        let file = File::parse(Source::new("k.cu", text)).unwrap();
        let own = OwnSizes::one("add", &[("n", 300), ("m", 40)], "its launch");
        let at = |given: &[(String, i64)]| {
            let mut problem = Problem::new(file.clone(), &file.kernels[0]).unwrap();
            let (setup, sizes) = setup(&mut problem, given, &own).unwrap();
            (setup.lengths, sizes.at())
        };
        let (lengths, words) = at(&[]);
        assert_eq!(lengths, [12000, 12000]);
        assert_eq!(words, " at n = 300, m = 40 (its launch)");
        // What is given counts first.
        assert_eq!(at(&[("m".into(), 7)]).0, [2100, 2100]);
    }

    #[test]
    fn what_differs_is_dropped_unless_sums_may_be_reordered() {
        let line = |equal, distance| Line {
            equal,
            distance,
            written: vec![2.0, 9.0, 1.0],
            version: vec![1.0],
        };
        let mut of = measured(0.0, 0.0);
        of.take(Ok(line(true, 0.0)), false);
        assert_eq!(
            (of.ms, of.written_ms, &of.rejected),
            (Some(1.0), Some(2.0), &None)
        );
        of.take(Ok(line(false, 1e-6)), true);
        assert_eq!(of.rejected, None);
        // A bit that differs, though no magnitude does: a negative zero.
        of.take(Ok(line(false, 0.0)), false);
        assert!(of.rejected.is_some());
        of.rejected = None;
        of.take(Ok(line(false, 1e-2)), true);
        assert!(of.rejected.is_some());
    }
}
