//! Naive kernels of a file: each version of the shortlist is built into a program of its own beside the kernel as written,
//! compared with it and timed in turns with it; the fastest that agrees in the emulator too is taken.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use warpwright_api::source::build::{beside, with_builders};
use warpwright_api::source::naive::{Found, again, target_of};
use warpwright_api::source::sizes::{OwnSizes, Sizes, state};
use warpwright_api::source::{Tools, source, target};
use warpwright_api::{Error, Input};
use warpwright_diag::Problem;
use warpwright_gpu::stats::{faster, median};
use warpwright_gpu::{DeviceInfo, utc_now};
use warpwright_naive::harness::{NoSetup, Setup, program};
use warpwright_naive::search::shortlist;
use warpwright_naive::versions::Problem as Naive;
use warpwright_pass::{Executor, Invocation};
use warpwright_report::screen::dropped;
use warpwright_report::table::Table;
use warpwright_toolkit::run_program;

use crate::Watch;
use crate::alone::{Out, PATIENCE, Version, Wanted, build_all, parsed, settle};

/// Ways of each kind that are measured: with `--exhaustive`, else.
const SHORTLIST: [usize; 2] = [16, 4];
/// How far a sum in another order may be from the one as written, over the largest magnitude.
const REORDERED: f64 = 1e-4;

/// What became of the kernels of a file.
#[derive(Serialize)]
pub struct Document {
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
    /// What a run says, or why there is none.
    fn take(&mut self, found: Result<Line, Out>, is_reordered: bool) {
        let line = match found {
            Ok(line) => line,
            Err(why) => {
                self.rejected = Some(why.to_string());
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

impl Version for Measured {
    const IS_BESIDE: bool = true;

    /// Each ran beside the kernel as written in a process of its own: its part of that one's time.
    fn time(&self) -> Option<f64> {
        self.part.filter(|_| self.rejected.is_none())
    }

    fn gains(&self) -> bool {
        true
    }

    fn is_original(&self) -> bool {
        false
    }

    fn reject(&mut self, why: String) {
        self.rejected = Some(why);
    }
}

/// Tunes one kernel after the other, each in the text that the one before it left; what became of them, and the text.
/// `more` are arguments for nvcc, and `output` is where the text goes, as the document says it.
///
/// # Errors
/// A kernel cannot be measured, or the file cannot be read or built.
pub fn tune(
    tools: &Tools<'_>,
    wanted: &Wanted<'_>,
    (input, found): (&Input, Vec<Found>),
    (device, output): (&DeviceInfo, String),
    watch: &dyn Watch,
) -> Result<(Document, String), Error> {
    let mut all = Vec::new();
    for mut of in found {
        let (setup, sizes) = setup(&mut of.problem, wanted.sizes, wanted.own)?;
        all.push((of.problem, setup, sizes));
    }
    let mut text = input.text()?.to_owned();
    let mut kernels = Vec::new();
    let seconds = wanted.budget / all.len() as f64;
    for (number, (mut problem, setup, sizes)) in all.into_iter().enumerate() {
        if number > 0 {
            let name = problem.kernel.name.clone();
            problem = again(tools, input, (&name, &text))?;
            state(&mut problem, wanted.sizes, wanted.own);
        }
        let of = (&problem, &setup, &*text);
        let (mut tuned, new) = one(tools, (wanted, seconds), input, of, watch)?;
        tuned.at = sizes.at();
        if let Some(new) = new {
            text = new;
        }
        kernels.push(tuned);
    }
    let document = Document {
        schema: "warpwright.naive-tune/1",
        input: input.name.clone(),
        gpu: device.name.clone(),
        driver: device.driver.clone().unwrap_or_default(),
        date: utc_now(),
        kernels,
        output,
    };
    Ok((document, text))
}

/// The launch that a kernel is measured at: at the sizes that are given, else those of its own launch.
fn setup(
    problem: &mut Naive,
    given: &[(String, i64)],
    own: &OwnSizes,
) -> Result<(Setup, Sizes), Problem> {
    let sizes = state(problem, given, own);
    let setup = Setup::expected(&problem.kernel).map_err(refused)?;
    Ok((setup, sizes))
}

fn refused(why: NoSetup) -> Problem {
    Problem::Input(format!("{why}; `opt` chooses without a GPU"))
}

/// Measures the versions of one kernel; the text with the fastest, if one gains.
fn one(
    tools: &Tools<'_>,
    (wanted, seconds): (&Wanted<'_>, f64),
    input: &Input,
    (problem, setup, written): (&Naive, &Setup, &str),
    watch: &dyn Watch,
) -> Result<(Tuned, Option<String>), Error> {
    let kernel = &problem.kernel;
    let gpu = target(Some(wanted.gpu))?;
    let shared = gpu.arch.shared.per_block_opt_in;
    let count = SHORTLIST[usize::from(!wanted.exhaustive)];
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
    let more = more(tools.nvcc, input);
    let programs = build_all(versions.len(), watch, |at| {
        let output = match problem.output(&versions[at]) {
            Ok(output) => output,
            Err(refusal) => return Ok(Err(Out::NotWritten(refusal))),
        };
        let text = program(kernel, &output, setup).map_err(refused)?;
        Out::of(made.executable(&format!("version{at}"), &text, &more))
    })?;
    let bar = watch.bar(Some(versions.len() as u64), "measuring");
    let each = seconds / (versions.len().max(1) as f64);
    for ((of, built), generated) in measured.iter_mut().zip(programs).zip(&versions) {
        let line = match built {
            Ok(path) => timed(&path, each)?,
            Err(why) => Err(why),
        };
        of.take(line, generated.reordered);
        bar.more();
    }
    drop(bar);
    let file = source(input, written.to_owned());
    let target = target_of(&kernel.name, &gpu, &kernel.pragma.sizes);
    let settled = with_builders(tools, &gpu, |builders| {
        let mut executor = Executor::new(builders);
        let pass = |at: usize| Some(passes[at].clone());
        settle(&mut measured, pass, (&file, &target), &mut executor)
    })?;
    let (chosen, kept) = settled.unzip();
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
    Ok((tuned, kept.flatten().map(|kept| kept.text)))
}

/// Arguments for nvcc; headers beside the file are found.
fn more(nvcc: &[String], input: &Input) -> Vec<OsString> {
    let mut more: Vec<OsString> = nvcc.iter().map(Into::into).collect();
    if let Some(folder) = beside(&input.path) {
        more.push("-I".into());
        more.push(folder.into());
    }
    more
}

/// Runs a program; a version that fails takes its process with it, and nothing else.
fn timed(path: &Path, seconds: f64) -> Result<Result<Line, Out>, Error> {
    let out = run_program(path, &[seconds.to_string()], PATIENCE)?;
    if !out.status.success() {
        return Ok(Err(Out::NotRun(out.text().trim().to_owned())));
    }
    parsed(String::from_utf8_lossy(&out.stdout).trim()).map(Ok)
}

/// What people see of it.
impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for tuned in &self.kernels {
            writeln!(
                f,
                "naive kernel {} on {}{}\n",
                tuned.kernel, self.gpu, tuned.at
            )?;
            let mut table =
                Table::new(&["", "schedule", "predicted ms", "ms", "as written", "note"]);
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
            write!(f, "{}", table.render_within(1))?;
            let all = tuned.versions.iter();
            let why = all.filter_map(|of| Some((&*of.schedule, of.rejected.as_deref()?)));
            write!(f, "{}", dropped(why))?;
            match tuned.chosen.and_then(|at| tuned.versions[at].time()) {
                Some(part) => writeln!(f, "\n{:.2} times as fast as written\n", 1.0 / part)?,
                None => writeln!(f, "\nstays as it is: nothing that agrees is faster\n")?,
            }
        }
        writeln!(f, "wrote {} (CUDA C++)", self.output)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::fastest;
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
            let mut problem = Naive::new(file.clone(), &file.kernels[0]).unwrap();
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
