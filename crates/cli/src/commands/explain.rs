//! `warpwright explain`: resources, staircase, register pressure; the numbers of stencils.

use std::time::Instant;

use serde::Serialize;
use warpwright_autotune::launches::guesses;
use warpwright_autotune::own_run::{DOING, FOR_RUN, beside_a_build, launched_with, until};
use warpwright_diag::count;
use warpwright_driver::Resources;
use warpwright_driver::crat::ResourceUsage;
use warpwright_report::explain::Explanation;
use warpwright_target::Gpu;

use super::own::{self, LOOKING, counted};
use super::{print_json, write_page};
use crate::args::{Cli, ExplainArgs, KernelArgs};
use crate::failure::Failure;
use crate::progress;
use crate::session;
use warpwright::Counted;
use warpwright::front::{ASSUMED, BEFORE_LINKING, is_assumed, is_for_linking};
use warpwright::optimise::KernelEdits;
use warpwright::source::advice::{Advice, advice};
use warpwright::source::read::{self, File, Found, Other};
use warpwright::source::stencil::of_language;
use warpwright::{Input, Level};
use warpwright_files::{self as files};
use warpwright_pass::names::source_name;
use warpwright_report::screen::{assumed_board, beside, bound_by, launched, spills, titled, wrap};
use warpwright_report::stencils::{Explained, explained, explained_table};
use warpwright_report::table::Table;

/// What takes time, in words.
pub const COUNTING: &str = "building, and counting what a launch executes";

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    input: String,
    /// What the machine code is for, if there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stencils: Vec<Explained>,
    /// Kernels that are no stencils, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_stencils: Vec<Other>,
    kernels: Vec<Explanation>,
    /// What holds of the numbers where the code is to be linked with more.
    #[serde(skip_serializing_if = "Option::is_none")]
    before_linking: Option<&'static str>,
    /// Rewrites from source to source, by the kernels' names in the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rewrites: Vec<KernelEdits>,
}

/// What a rewrite from source to source would do, for the kernel and the GPU of a command line.
pub fn advised(
    file: &File,
    args: &KernelArgs,
    nvcc: &[String],
    counted: &[Counted],
) -> Option<Advice> {
    let named = (args.one().ok()?, args.gpu.as_deref());
    advice(file, named, nvcc, counted)
}

/// Runs the command.
pub fn run(cli: &Cli, args: &ExplainArgs) -> Result<(), Failure> {
    let until = until(args.budget);
    let input = files::read(&args.file)?;
    let named = session::named_gpu(args.kernel.gpu.as_deref())?;
    // Read once: the preprocessor is asked each time.
    let target = named.as_ref().map(Gpu::target);
    let file = match input.level {
        Level::Cuda => Some(read::read(
            &session::tools(cli, &args.nvcc)?,
            &input,
            target.as_deref(),
        )?),
        _ => None,
    };
    let found = stencils(args, &input, file.as_ref())?;
    let stencils: Vec<Explained> = found.stencils.iter().map(explained).collect();
    let built = match input.level {
        Level::Stencil => None,
        Level::Cubin | Level::Fat | Level::Cuda | Level::Ptx => {
            match of_kernels(cli, args, (&input, file.as_ref()), until) {
                // The source alone says something about a stencil.
                Err(Failure::Missing { what, .. }) if !stencils.is_empty() => {
                    eprintln!("note: the kernel is not compiled: {what}");
                    None
                }
                found => Some(found?),
            }
        }
    };
    let built = built.map(|(gpu, kernels, counted)| (Some(gpu), kernels, counted));
    let (gpu, kernels, counted) = built.unwrap_or_default();
    let advice = (file.as_ref()).and_then(|file| advised(file, &args.kernel, &args.nvcc, &counted));
    let document = Document {
        schema: "warpwright.explain/1",
        input: input.name.clone(),
        gpu: gpu.as_ref().map(ToString::to_string),
        stencils,
        not_stencils: found.others,
        kernels,
        before_linking: is_for_linking(&args.nvcc).then_some(BEFORE_LINKING),
        rewrites: (advice.as_ref()).map_or_else(Vec::new, |advice| advice.rewrites.clone()),
    };
    write_page(args.output.report.as_deref(), &document)?;
    if args.output.json {
        return print_json(&document);
    }
    if !document.stencils.is_empty() {
        println!("{}\n", document.input);
        print!("{}", explained_table(&document.stencils));
    }
    if let Some(gpu) = gpu {
        if !document.stencils.is_empty() {
            println!();
        }
        let is_assumed = is_assumed(&input, named.as_ref(), &args.nvcc);
        let assumed = if is_assumed { ASSUMED } else { "" };
        let board = assumed_board(&gpu, document.kernels.iter().map(|kernel| kernel.grid));
        println!("{} for {gpu}{board}{assumed}\n", document.input);
        if let Some(note) = document.before_linking {
            println!("{}\n", wrap(note, "", "  ").join("\n"));
        }
        for kernel in &document.kernels {
            print_kernel(kernel, (&gpu, &args.kernel), cli.verbose > 0);
        }
    }
    if let Some(advice) = &advice {
        println!("{}\n", wrap(&advice.text, "  ", "  ").join("\n"));
    }
    // Most kernels are no stencils; only who asks hears why.
    let is_asked = cli.verbose > 0 || !document.stencils.is_empty();
    for other in document.not_stencils.iter().filter(|_| is_asked) {
        let text = format!(
            "`{}` is no stencil that is understood: {} ({}:{}:{})",
            other.kernel, other.reason, document.input, other.line, other.column
        );
        println!("{}", wrap(&text, "  ", "    ").join("\n"));
    }
    Ok(())
}

/// What the kernels run on, the kernels, and the launches that are known.
fn of_kernels(
    cli: &Cli,
    args: &ExplainArgs,
    (input, file): (&Input, Option<&File>),
    until: Instant,
) -> Result<(Gpu, Vec<Explanation>, Vec<Counted>), Failure> {
    let mut options = session::options(input, &args.kernel, &args.nvcc)?;
    options.until = Some(until);
    let on = (args.budget * FOR_RUN, options.gpu.as_ref());
    let wanted = args.own.wanted(&options.nvcc, on);
    let optimizer = session::optimizer(cli, input)?;
    // Kept by content: what is wrong with it is said when it is asked for.
    let compile = || {
        if input.level == Level::Cuda {
            drop(optimizer.compiled(input, &options));
        }
    };
    let own = || own::ran(cli, input, &args.kernel, wanted);
    let is_run = !args.own.no_run && !own::is_stated(&args.kernel);
    let run = || beside_a_build((input, is_run), compile, own);
    let ran = progress::waiting(DOING, run)?;
    let seen = (ran.as_ref(), until);
    let own = || counted(cli, (input, file), &args.kernel, &args.nvcc, seen);
    options.counted = progress::waiting(LOOKING, own)?;
    options.ran = own::known(ran.as_ref(), &args.kernel);
    let mut found = progress::waiting(COUNTING, || optimizer.explain(input, &options))?;
    for kernel in &mut found.kernels {
        let Some(ran) = &ran else { continue };
        kernel.not_launched = ran.not_launched(&kernel.kernel);
        kernel.run_args = ran.tried(&kernel.kernel).map(str::to_owned);
    }
    Ok((found.gpu, found.kernels, options.counted))
}

/// The stencils among the kernels.
fn stencils(args: &ExplainArgs, input: &Input, file: Option<&File>) -> Result<Found, Failure> {
    match (input.level, file) {
        (Level::Stencil, _) => Ok(Found {
            stencils: vec![of_language(input)?],
            ..Found::default()
        }),
        (_, Some(file)) => Ok(read::stencils(file, args.kernel.one().ok().flatten())?),
        _ => Ok(Found::default()),
    }
}

/// What loads and stores of finished code move at fixed places of the stack, and how many go by an index.
fn accessed(r: &Resources, level: warpwright_pass::Level) -> String {
    let fixed = r.local_spill_bytes();
    let fixed = (fixed > 0).then(|| format!("{fixed} B moved at fixed places"));
    let indexed = r.computed_accesses;
    let indexed = (indexed > 0).then(|| match indexed {
        1 => "1 access by an index".to_owned(),
        _ => format!("{indexed} accesses by an index"),
    });
    let all: Vec<String> = [fixed, indexed].into_iter().flatten().collect();
    match level == warpwright_pass::Level::MachineCode && !all.is_empty() {
        true => format!(" ({})", all.join(", ")),
        false => String::new(),
    }
}

fn print_kernel(e: &Explanation, (gpu, args): (&Gpu, &KernelArgs), is_verbose: bool) {
    let launched = launched((e.block, e.block_source), (e.grid, e.idle_sms), &e.guessed);
    println!(
        "{}",
        wrap(&titled(&e.kernel, &launched), "", "  ").join("\n")
    );
    if let Some(args) = &e.run_args {
        println!("{}", wrap(&launched_with(args), "  ", "    ").join("\n"));
    }
    if let Some(text) = &e.not_launched {
        println!("{}", wrap(text, "  ", "    ").join("\n"));
    }
    let r = &e.resources;
    let about = if e.estimated {
        " (estimated: no ptxas)"
    } else {
        ""
    };
    let figures = format!(
        "{}, {}, {} B stack{}, {} B shared{about}",
        count(r.registers, "register"),
        spills(r, level(e)),
        r.stack_bytes,
        accessed(r, level(e)),
        r.shared_bytes + e.dynamic_smem
    );
    println!("{}", wrap(&figures, "  ", "  ").join("\n"));
    for text in e.spills_for.iter().chain(&e.ignored_bounds) {
        println!("{}", wrap(text, "  ", "  ").join("\n"));
    }
    for array in &e.local_arrays {
        println!("{}", wrap(&array.in_words(), "  ", "    ").join("\n"));
        for edit in &array.edits {
            println!(
                "{}",
                wrap(&edit.in_words(), "    edit ", "      ").join("\n")
            );
        }
    }
    for edit in &e.edits {
        println!(
            "{}",
            wrap(&edit.in_words(), "    edit ", "      ").join("\n")
        );
    }
    if e.dynamic_smem_is_assumed {
        let note = "its dynamic shared memory is assumed to be 0 B: state it with --dynamic-smem";
        println!("{}", wrap(note, "  ", "  ").join("\n"));
    }
    if !e.calls.is_empty() {
        let names: Vec<String> = e.calls.iter().map(|name| source_name(name)).collect();
        let note = format!(
            "calls {}, not linked here: what these take is in no figure here",
            names.join(", ")
        );
        println!("{}", wrap(&note, "  ", "  ").join("\n"));
    }
    if !e.functions.is_empty() {
        let names: Vec<String> = e.functions.iter().map(|name| source_name(name)).collect();
        let stack = match e.stack_with_functions {
            Some(bytes) => format!("with them its stack is {bytes} B"),
            None => "how deep its stack becomes is not known (recursion)".to_owned(),
        };
        let note = format!(
            "calls {}: its registers include theirs, its spills, cycles and stack do not; {stack}",
            names.join(", ")
        );
        println!("{}", wrap(&note, "  ", "  ").join("\n"));
    }
    match (&e.residency, &e.cannot_launch) {
        (Some(found), _) => {
            let own = e.grid.and_then(|grid| gpu.blocks_for_sm(grid));
            let own = own.filter(|&own| own < u64::from(found.blocks));
            let own = own.map_or_else(String::new, |own| match e.idle_sms {
                Some(_) => format!("; this launch has {own} for an SM"),
                None => format!("; this launch has at most {own} for an SM"),
            });
            let text = format!(
                "{}, {} of {} warps ({:.1}%), limited by {}{own}",
                count(found.blocks, "block"),
                found.warps,
                gpu.arch.threads.warps,
                found.percent,
                found.limiters.join(" and ")
            );
            println!("{}", wrap(&text, "  ", "    ").join("\n"));
        }
        (None, Some(why)) => println!("  cannot be launched: {why}"),
        (None, None) => {}
    }
    if let Some(c) = &e.cycles {
        let others: Vec<String> = c.others().map(beside).collect();
        let text = bound_by(&c.bound, c.turns, &others);
        println!("{}", wrap(&text, "  ", "    ").join("\n"));
        let wasted = e.accesses.as_ref().and_then(|a| a.wasted.as_deref());
        if let Some(wasted) = wasted {
            println!("{}", wrap(wasted, "  ", "    ").join("\n"));
        }
    }
    if let Some(why) = &e.no_staircase {
        let text = format!("no staircase: {why}");
        println!("{}", wrap(&text, "  ", "    ").join("\n"));
    }
    match (e.registers_for_one_more_block, e.registers_to_save) {
        _ if e.no_staircase.is_some() => {}
        (Some(limit), Some(save)) => {
            let limit = count(limit, "register");
            println!("  one block more: at most {limit}, {save} less than now");
        }
        _ if e.cannot_launch.is_some() => match e.staircase.iter().map(|s| s.regs).max() {
            // What it has already is not what is in the way.
            Some(limit) if limit >= e.resources.registers => {}
            Some(limit) => println!("  a block fits with at most {}", count(limit, "register")),
            None => println!("  a block does not fit with any number of registers"),
        },
        _ => println!("  one block more: not by saving registers"),
    }
    let mut table = Table::new(&["blocks", "warps", "occupancy", "registers up to", ""]);
    for s in &e.staircase {
        let here = e.residency.as_ref().is_some_and(|r| r.blocks == s.blocks);
        let point = e.design_space.iter().find(|p| p.blocks == s.blocks);
        let marks = [
            here.then_some("<- here"),
            point.filter(|p| p.pruned).map(|_| "above OptTLP"),
        ];
        let marks: Vec<&str> = marks.into_iter().flatten().collect();
        table.row(vec![
            s.blocks.to_string(),
            s.warps.to_string(),
            format!("{:.1}%", s.percent),
            s.regs.to_string(),
            marks.join(", "),
        ]);
    }
    if e.no_staircase.is_none() {
        print!("{}", table.render(4));
    }
    if let Some(usage) = e.usage.as_ref().filter(|_| is_verbose) {
        print_usage(usage);
    }
    if let Some(pressure) = &e.pressure {
        print_pressure(pressure, level(e));
    }
    if let Some(causes) = &e.causes {
        print!("{}", causes.screen());
    }
    let is_counted = e.causes.as_ref().is_some_and(|c| c.counted_at.is_some());
    let uncounted = match (&e.not_counted, &e.accesses) {
        (Some(why), _) => {
            let guesses = guesses(args.launch.as_deref());
            let guesses = guesses.map_or_else(String::new, |text| format!("; {text}"));
            Some(format!(
                "neither loops nor accesses are counted: {why}{guesses}"
            ))
        }
        (None, None) if !is_counted && level(e) == warpwright_pass::Level::Ptx => Some(
            "how its accesses lie in memory is counted with --launch (`warpwright launch` writes one)".to_owned(),
        ),
        (None, _) => None,
    };
    if let Some(text) = uncounted {
        println!("{}", wrap(&text, "  ", "    ").join("\n"));
    }
    if let Some(accesses) = &e.accesses {
        print!("{}", accesses.screen());
    }
    println!();
}

/// What was given.
fn level(e: &Explanation) -> warpwright_pass::Level {
    match e.usage {
        Some(_) => warpwright_pass::Level::Ptx,
        None => warpwright_pass::Level::MachineCode,
    }
}

/// CRAT's Table 1, and the estimate of OptTLP point by point.
fn print_usage(u: &ResourceUsage) {
    let line = format!(
        "CRAT: MaxReg {}, MinReg {}, BlockSize {}, ShmSize {}, MaxTLP {}",
        u.max_reg,
        u.min_reg,
        u.block_size,
        count(u.shm_size, "byte"),
        count(u.max_tlp, "block")
    );
    println!("{}", wrap(&line, "  ", "    ").join("\n"));
    let Some(opt) = &u.opt_tlp else {
        println!("  OptTLP: no estimate");
        return;
    };
    println!(
        "  OptTLP {} (estimated; begun when the first one ends: {})",
        count(opt.blocks, "block"),
        opt.involved
    );
    let mut table = Table::new(&["blocks", "time", "contention"]);
    for point in &opt.points {
        table.row(vec![
            point.blocks.to_string(),
            format!("{:.2}", point.relative_time),
            format!("{:.2}", point.contention),
        ]);
    }
    print!("{}", table.render(4));
}

fn print_pressure(p: &warpwright_report::explain::PressureReport, level: warpwright_pass::Level) {
    println!(
        "  register pressure of the {level}: {} at its peak, {}, loops {} deep",
        p.peak_units,
        count(p.instructions, "instruction"),
        p.loop_depth
    );
    print!("{}", plot(&p.curve));
    let mut table = Table::new(&["units", "at", "line", "instruction"]);
    for peak in &p.peaks {
        let line = peak.line.clone().unwrap_or_default();
        let at = format!("{}–{}", peak.first, peak.last);
        table.row(vec![peak.units.to_string(), at, line, peak.text.clone()]);
    }
    println!("  highest peaks");
    print!("{}", table.render_within(4));
    if p.crossing.is_empty() {
        return;
    }
    let mut table = Table::new(&[
        "register",
        "units",
        "live over",
        "uses",
        "line",
        "defined by",
    ]);
    for range in &p.crossing {
        table.row(vec![
            range.register.clone(),
            range.units.to_string(),
            range.length.to_string(),
            range.uses.to_string(),
            range.line.clone().unwrap_or_default(),
            range.defined_by.clone().unwrap_or_default(),
        ]);
    }
    println!("  longest live ranges across the highest peak, unused there");
    print!("{}", table.render_within(4));
}

/// The curve as rows of block characters, at most 70 columns of equal width.
fn plot(curve: &[u32]) -> String {
    const COLUMNS: usize = 70;
    const HEIGHT: u32 = 8;
    let Some(&top) = curve.iter().max() else {
        return String::new();
    };
    if top == 0 {
        return String::new();
    }
    let width = curve.len().div_ceil(COLUMNS);
    let columns: Vec<u32> = curve
        .chunks(width)
        .map(|c| c.iter().copied().max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in (0..HEIGHT).rev() {
        let label = match row {
            _ if row == HEIGHT - 1 => top.to_string(),
            0 => "0".into(),
            _ => String::new(),
        };
        let line: String = columns
            .iter()
            .map(|&units| {
                let eighths = (units * HEIGHT * 8 / top).saturating_sub(row * 8).min(8);
                [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][eighths as usize]
            })
            .collect();
        out.push_str(&format!("    {label:>4} |{}\n", line.trim_end()));
    }
    out
}
