//! `warpwright opt`: the main job.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use warpwright::optimise::{Outcome, Report, Watch};
use warpwright::source::naive::wanted;
use warpwright::source::read::read;
use warpwright::source::{advice, quoted};
use warpwright::{Candidate, Emit as Emitted, Error, Explanation};
use warpwright_autotune::own_run::{BUDGET, DOING, launched_with, until};
use warpwright_autotune::session::database;
use warpwright_diag::count;
use warpwright_driver::database::kernel_hash;
use warpwright_driver::opt::{KernelOutcome, Known, known};
use warpwright_pass::Level as PassLevel;
use warpwright_pass::names::source_name;
use warpwright_target::Gpu;

use super::explain::{COUNTING, advised};
use super::own::{self, LOOKING, counted};
use super::pass::say;
use super::{print_json, write_page};
use crate::args::{Cli, Emit, OptArgs};
use crate::failure::Failure;
use crate::progress;
use crate::session;
use warpwright::{Input, Level};
use warpwright_diag::printable;
use warpwright_files::{self as files, Kind, is_stdout, make_folder, stage, write_into};
use warpwright_report::cycles::CyclesReport;
use warpwright_report::screen::wrap;

/// Kernels that a page explains at length; of more, it has the command that explains one.
const EXPLAINED: usize = 8;

/// Runs the command.
pub fn run(cli: &Cli, args: &OptArgs) -> Result<(), Failure> {
    let input = files::read(&args.file)?;
    if super::stencil_opt::is_wanted(&input, args.output.as_deref()) {
        super::stencil_opt::refuse_what_has_no_effect(args)?;
        if input.recoded {
            return Err(Failure::input(format!(
                "`{}` is not UTF-8, and texts in it would become other ones: `iconv -f latin1 -t utf-8` makes it so",
                input.name
            )));
        }
        let args = &super::stencil_opt::for_one_target(args)?;
        if let Some(recipe) = &args.recipe {
            return super::pass::replay(cli, args, &input, recipe);
        }
        return rewrite(cli, args, &input);
    }
    let of_sources = [
        ("--grid", !args.stencil.sizes.is_empty()),
        ("--fp", args.stencil.fp.is_some()),
        ("--unchecked", args.stencil.unchecked),
    ];
    if let Some(name) = session::first_given(&of_sources) {
        return Err(Failure::Usage(format!(
            "{name} is for rewrites from source to source (-o OUT.cu), and has no effect on builds"
        )));
    }
    let mut options = session::options(&input, &args.kernel, &args.nvcc)?;
    options.emit = emitted(args, &input)?;
    options.recipe = args.recipe.as_ref().map(|text| text.parse()).transpose()?;
    if let (Level::Cuda, Some(recipe)) = (input.level, &options.recipe) {
        let mut passes = recipe.passes().iter();
        if let Some(source) = passes.find(|pass| pass.level() == PassLevel::Source) {
            return Err(Failure::Usage(format!(
                "`{source}` makes CUDA C of CUDA C: -o OUT.cu is wanted"
            )));
        }
    }
    options.fuel = args.fuel;
    options.budget = args.budget;
    let optimizer = session::optimizer(cli, &input)?;
    let file = match input.level {
        Level::Cuda => read(&session::tools(cli, &args.nvcc)?, &input, None).ok(),
        _ => None,
    };
    let on = (args.budget.max(BUDGET), options.gpu.as_ref());
    let wanted = args.own.wanted(&options.nvcc, on);
    let ran = progress::waiting(DOING, || own::ran(cli, &input, &args.kernel, wanted))?;
    let of_file = (&input, file.as_ref());
    let seen = (ran.as_ref(), until(args.budget));
    let own = || counted(cli, of_file, &args.kernel, &args.nvcc, seen);
    options.counted = progress::waiting(LOOKING, own)?;
    options.ran = own::known(ran.as_ref(), &args.kernel);
    let watch = Progress::new(cli, !args.no_database);
    let mut outcome = optimizer.optimise_watched(&input, &options, &watch)?;
    // What limits the build that is there, as far as its instructions can be counted; the page has it at length. Beside a
    // recipe that was named no other build stands.
    let is_limited = !options.counted.is_empty() && options.recipe.is_none();
    let is_explained = args.show.report.is_some() || is_limited;
    let explained = match is_explained && outcome.report.kernels.len() <= EXPLAINED {
        true => {
            watch.bar.set_message(COUNTING);
            let found = optimizer.explain(&input, &options);
            found.map(|found| found.kernels).unwrap_or_default()
        }
        false => Vec::new(),
    };
    outcome.report.count(&explained);
    for kernel in &mut outcome.report.kernels {
        let why = ran.as_ref().and_then(|ran| ran.not_launched(&kernel.name));
        kernel.notes.extend(why);
        let tried = ran.as_ref().and_then(|ran| ran.tried(&kernel.name));
        kernel.notes.extend(tried.map(launched_with));
    }
    watch.bar.finish_and_clear();
    if let Some(folder) = &args.keep {
        keep(folder, &outcome.explored)?;
    }
    if cli.verbose > 0 {
        for all in &outcome.carried {
            say(cli, all);
        }
    }
    if cli.verbose > 0 {
        for (kernel, [default, chosen]) in outcome.cycles() {
            let of = |what: &str, cycles: &CyclesReport| {
                let title = format!("{}, {what}", source_name(kernel));
                eprint!("{}\n{}", wrap(&title, "", "  ").join("\n"), cycles.screen());
            };
            if let Some(default) = &default {
                of("default", default);
            }
            if let Some(chosen) = chosen.filter(|chosen| default.as_ref() != Some(chosen)) {
                of("choice", &chosen);
            }
        }
    }
    outcome.report.output = written_to(args);
    if let Some(file) = &file {
        advice::place(&mut outcome.report.edits, file);
    }
    let advice =
        (file.as_ref()).and_then(|file| advised(file, &args.kernel, &args.nvcc, &options.counted));
    if let Some(advice) = &advice {
        outcome.report.rewrites.clone_from(&advice.rewrites);
    }
    let advice = advice.filter(|_| !args.show.json);
    let advice = advice.map(|advice| wrap(&advice.text, "", ""));
    let reserved = advice.as_ref().map_or(0, |lines| lines.len() + 1);
    finish(args, &outcome, &explained, reserved)?;
    if let Some(advice) = advice {
        let advice = advice.join("\n");
        match args.output.as_deref().is_some_and(is_stdout) {
            true => eprintln!("\n{advice}"),
            false => println!("\n{advice}"),
        }
    }
    Ok(())
}

/// From source to source: the naive kernels of a file, else its stencils, at the sizes of its launches.
fn rewrite(cli: &Cli, args: &OptArgs, input: &Input) -> Result<(), Failure> {
    let kernel = args.kernel.one()?;
    let tools = session::tools(cli, &args.nvcc)?;
    let found = wanted(&tools, kernel, input)?;
    let of = (&args.own, args.nvcc.as_slice(), args.budget);
    let sizes = || own::sizes(cli, input, &args.kernel, of);
    match found.0.is_empty() {
        false => {
            super::naive_opt::refuse_reassociate(&args.stencil)?;
            super::naive_opt::run(&tools, args, input, found, &sizes()?)
        }
        true => super::stencil_opt::run(&tools, args, input, &sizes),
    }
}

/// What is written: as `--emit` says, else by the ending of OUT.
fn emitted(args: &OptArgs, input: &Input) -> Result<Emitted, Failure> {
    let ending = args.output.as_deref().and_then(Path::extension);
    let ends_in_ptx = ending.is_some_and(|ending| ending == "ptx");
    let is_code = matches!(input.level, Level::Cubin | Level::Fat);
    if input.level == Level::Cubin {
        // Of what is no cubin there is no more to say.
        input.check_cubin()?;
    }
    let emitted = match (args.emit, ends_in_ptx) {
        (Some(Emit::Ptx), _) => Emitted::Ptx,
        (None, true) if !is_code => Emitted::Ptx,
        (Some(Emit::Cubin) | None, _) => Emitted::Cubin,
    };
    let kind = match (emitted, input.level) {
        (Emitted::Ptx, _) => Kind::Ptx,
        (Emitted::Cubin, Level::Fat) => Kind::Host,
        (Emitted::Cubin, _) => Kind::Cubin,
    };
    args.output
        .as_deref()
        .map_or(Ok(()), |out| kind.fits(out))?;
    Ok(emitted)
}

/// Progress on stderr, and the database of measurements.
pub struct Progress {
    bar: progress::Bar,
    verbose: bool,
    has_database: bool,
    /// The kernel at hand, for messages, and when its work began.
    kernel: std::sync::Mutex<(String, Instant)>,
    built: AtomicUsize,
}

impl Progress {
    /// With what was measured before, or without.
    pub fn new(cli: &Cli, has_database: bool) -> Progress {
        Progress {
            bar: progress::bar(None, "building candidates"),
            verbose: cli.verbose > 0,
            has_database,
            kernel: std::sync::Mutex::new((String::new(), Instant::now())),
            built: AtomicUsize::new(0),
        }
    }

    fn kernel(&self) -> std::sync::MutexGuard<'_, (String, Instant)> {
        let kernel = self.kernel.lock();
        kernel.unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Watch for Progress {
    fn begins(&self, kernel: &str, number: usize, of: usize) {
        let mut name = printable(&source_name(kernel));
        if of > 1 {
            name += &format!(" (kernel {} of {of})", number + 1);
        }
        self.bar.set_message(format!("{name}: building candidates"));
        *self.kernel() = (name, Instant::now());
        self.built.store(0, Ordering::Relaxed);
    }

    fn built(&self, _: &Candidate) {
        let built = self.built.fetch_add(1, Ordering::Relaxed) + 1;
        let name = self.kernel().0.clone();
        self.bar
            .set_message(format!("{name}: {} built", count(built, "candidate")));
    }

    fn ends(&self, kernel: &str, candidates: usize) {
        if self.verbose {
            let seconds = self.kernel().1.elapsed().as_secs_f64();
            self.bar.suspend(|| {
                let name = printable(&source_name(kernel));
                let candidates = count(candidates, "candidate");
                let text = format!("{name}: {candidates} built and scored in {seconds:.2} s");
                eprintln!("{}", wrap(&text, "", "  ").join("\n"));
            });
        }
    }

    /// Without a database the model decides alone.
    fn measured(&self, source: &str, kernel: &str, gpu: &Gpu, ptxas: &str) -> Known {
        let board = gpu.board.filter(|_| self.has_database);
        let entries = board.and_then(|board| {
            let database = database().ok()?;
            let hash = kernel_hash(source, kernel);
            database.of_kernel(&hash, board.name, ptxas).ok()
        });
        known(&entries.unwrap_or_default())
    }
}

/// Saves every candidate's cubin as KERNEL.CANDIDATE.cubin.
pub fn keep(folder: &Path, outcomes: &[KernelOutcome]) -> Result<(), Failure> {
    make_folder(folder)?;
    for outcome in outcomes {
        for built in &outcome.built {
            let name = format!("{}.{}.cubin", outcome.report.name, built.candidate.name());
            if let Some(cubin) = built.cubin() {
                write_into(folder, &name, cubin.bytes())?;
            }
        }
    }
    Ok(())
}

/// Writes OUT and the HTML page, both or neither, and prints the result the way that was asked for.
fn finish(
    args: &OptArgs,
    outcome: &Outcome,
    explained: &[Explanation],
    reserved: usize,
) -> Result<(), Failure> {
    let report: &Report = &outcome.report;
    let output = args.output.as_deref();
    let mut staged = output.map(|path| stage(path, &outcome.code)).transpose()?;
    if let (Some(staged), "file") = (&mut staged, report.emitted) {
        staged.like(&args.file)?;
    }
    if args.show.report.is_some() {
        let mut page = report.to_json()?;
        page["explained"] = serde_json::to_value(explained).map_err(Error::from)?;
        page["again"] = (quoted(&report.input) + &args.kernel.again()).into();
        let nvcc: Vec<String> = args.nvcc.iter().map(|word| quoted(word)).collect();
        if !nvcc.is_empty() {
            page["nvcc"] = format!(" -- {}", nvcc.join(" ")).into();
        }
        write_page(args.show.report.as_deref(), &page)?;
    }
    if let Some(staged) = staged {
        staged.commit()?;
    }
    if args.show.json {
        return print_json(report);
    }
    let text = report.screen_above(args.all, reserved, args.show.report.is_some());
    match output.is_some_and(is_stdout) {
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
