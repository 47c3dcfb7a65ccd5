//! `warpwright check A B`: is kernel B a correct version of kernel A?

use std::path::PathBuf;

use warpwright::source::quoted;
use warpwright::{CheckOptions, Checked, FunctionVerdict, Optimizer};
use warpwright_diag::count;
use warpwright_emu::{Emulator, FaultKind, Options as RunOptions, Outcome};
use warpwright_launch::{Buffer, Comparison, Launch, compare};
use warpwright_pass::names::source_name;
use warpwright_ptx::Module;
use warpwright_report::screen::{WIDTH, shortened, wrap};

use super::run::{among, described, kernels, kernels_of, materialize, run_on_device, shown};
use super::{print_json, write_page};
use crate::args::{CheckArgs, Cli};
use crate::failure::Failure;
use crate::input::{self, Input, Level};
use crate::{progress, session};

/// Runs the command. The exit code is that of the worst verdict: refuted, then undecided.
pub fn run(cli: &Cli, args: &CheckArgs) -> Result<(), Failure> {
    let a = input::read(&args.a)?;
    let b = input::read(&args.b)?;
    if args.rewrite.is_given() {
        return super::rewrite::run(cli, args, &a, &b);
    }
    let optimizer = compiler(cli, [&a, &b])?;
    // Options of nvcc are for what it compiles.
    let nvcc = |input: &Input| match input.level {
        Level::Cuda => session::nvcc(input, args.setup.launch.as_deref(), &args.nvcc),
        _ => Ok(Vec::new()),
    };
    if !args.nvcc.is_empty() && ![&a, &b].iter().any(|input| input.level == Level::Cuda) {
        return Err(Failure::Usage(
            "arguments after `--` go to nvcc, but none of the two is CUDA C".into(),
        ));
    }
    refuse_what_has_no_effect(args)?;
    let symbolically = || {
        let compiled = match a.level {
            Level::Cuda => &a,
            _ => &b,
        };
        let options = symbolic(args, nvcc(compiled)?)?;
        let check = || optimizer.check(&a, &b, &options);
        Ok::<_, Failure>(progress::waiting(COMPARING, check)?)
    };
    // Of an original that faults nothing can be said but that.
    let mut has_run = args.setup.gpu.is_some();
    let document = match (args.run, args.setup.gpu) {
        (_, Some(ordinal)) => {
            let run = || on_device(args, &a, &b, ordinal);
            let mut functions = progress::waiting("running both on the GPU", run)?;
            let kernels = [kernels_of(&a)?, kernels_of(&b)?];
            let others = not_run(&kernels, (&a.name, &b.name));
            has_run &= others.is_empty();
            functions.extend(others);
            Checked::new(&a, &b, "run on the GPU", functions)
        }
        (true, None) => {
            let compile = || {
                let one = |input: &Input| -> Result<Module, Failure> {
                    Ok(optimizer.compared(input, &nvcc(input)?)?)
                };
                Ok::<_, Failure>((one(&a)?, one(&b)?))
            };
            let modules = progress::waiting(progress::COMPILING, compile)?;
            let run = || in_emulator(args, &modules);
            let found = progress::waiting("running both in the emulator (--fuel ends it)", run)?;
            has_run = found.is_ok();
            let mut verdict = found.unwrap_or_else(|verdict| verdict);
            // What is equal here may be known to differ elsewhere.
            if has_run && verdict.verdict == "undecided" {
                let mut elsewhere = symbolically()?.functions.into_iter();
                let differs =
                    |f: &FunctionVerdict| f.name == verdict.name && f.verdict == "refuted";
                if let Some(mut refuted) = elsewhere.find(differs) {
                    let launch = args.setup.launch.as_deref();
                    let launch = launch.map(|path| path.display().to_string());
                    refuted.text += &format!(
                        "\nat the launch of `{}` {}",
                        launch.unwrap_or_default(),
                        verdict.text
                    );
                    verdict = refuted;
                }
            }
            let mut verdicts = vec![verdict];
            let kernels = [&modules.0, &modules.1].map(kernels);
            let others = not_run(&kernels, (&a.name, &b.name));
            has_run &= others.is_empty();
            verdicts.extend(others);
            Checked::new(&a, &b, "run in the emulator", verdicts)
        }
        (false, None) => symbolically()?,
    };
    let (how, worst) = (document.how, document.verdict);
    write_page(args.show.report.as_deref(), &document)?;
    if args.show.json {
        print_json(&document)?;
    } else {
        let summary = match (worst, has_run) {
            ("undecided", true) => "equal here, not proved (exit code 5)",
            _ => worst,
        };
        println!("checked {how}: {summary}");
        for f in &document.functions {
            for line in format!("{}: {}", source_name(&f.name), named(&f.text)).lines() {
                println!("{}", fitted(line));
            }
        }
        for met in &document.miscompiled {
            println!("{}", wrap(&format!("note: {met}"), "", "  ").join("\n"));
        }
        let are_cubins = a.level == Level::Cubin && b.level == Level::Cubin;
        if worst == "undecided" && are_cubins && !args.run {
            let note = "note: two cubins can be proved equal where one is a rewrite of the other; for two builds of \
                        ptxas compare their PTX, or run them (--gpu); for a recipe's passes over machine code compare with \
                        the build that its first steps make (`opt --recipe`)";
            println!("{}", wrap(note, "", "  ").join("\n"));
        }
        if worst == "undecided" && has_run && args.setup.gpu.is_none() {
            let launch = args
                .setup
                .launch
                .as_deref()
                .map(|path| path.display().to_string());
            let note = format!(
                "note: `warpwright run {} --launch {} --races --uninit` looks for races of warps in shared memory and \
                 for reads of what nobody has written, which equal outputs may hide",
                b.name,
                launch.unwrap_or_default()
            );
            println!("{}", wrap(&note, "", "  ").join("\n"));
        }
        if worst == "refuted" && args.run {
            let note = "note: where threads of the launch race for an element either value is right; what `check` proves \
                        without --run assumes that none do";
            println!("{}", wrap(note, "", "  ").join("\n"));
        }
        let are_sources = a.level == Level::Cuda && b.level == Level::Cuda;
        if worst == "undecided" && are_sources && !args.run {
            let run = match &args.setup.launch {
                Some(launch) => format!(
                    "--run runs a kernel that both have at `{}` and compares what it writes",
                    launch.display()
                ),
                None => format!(
                    "--block names the threads per block that count. If the second has a launch of its own: \
                     `{}` and `{}` begin descriptions of both, \
                     and `warpwright check {} {} --launch-a a.toml --launch-b b.toml` compares them there for every input",
                    description(&a, "a.toml", args),
                    description(&b, "b.toml", args),
                    quoted(&a.name),
                    quoted(&b.name)
                ),
            };
            let note = format!("note: {run}");
            println!("{}", wrap(&note, "", "  ").join("\n"));
        }
    }
    match worst {
        "proved" => Ok(()),
        "refuted" => Err(Failure::Quiet(1)),
        _ => Err(Failure::Quiet(5)),
    }
}

/// The command that begins a description of what is compared; the description keeps options of nvcc.
fn description(input: &Input, output: &str, args: &CheckArgs) -> String {
    let mut words = vec![
        "warpwright".to_owned(),
        "launch".to_owned(),
        quoted(&input.name),
    ];
    if let Some(kernel) = &args.setup.kernel {
        words.extend(["--kernel".to_owned(), quoted(kernel)]);
    }
    words.extend(["-o".to_owned(), output.to_owned()]);
    if !args.nvcc.is_empty() {
        words.push("--".to_owned());
        words.extend(args.nvcc.iter().map(|word| quoted(word)));
    }
    words.join(" ")
}

/// What takes time, in words.
const COMPARING: &str = "comparing both for every input";

/// Sizes are those of a launch description.
fn refuse_what_has_no_effect(args: &CheckArgs) -> Result<(), Failure> {
    let setup = &args.setup;
    let given = [
        ("--size", setup.size.is_some()),
        ("--set", !setup.set.is_empty()),
    ];
    match session::first_given(&given) {
        Some(name) if setup.launch.is_none() => {
            Err(Failure::Usage(format!("{name} needs --launch")))
        }
        _ => Ok(()),
    }
}

/// What is compared, and what launches are taken to keep to: what a description says of its launch counts.
fn symbolic(args: &CheckArgs, nvcc: Vec<String>) -> Result<CheckOptions, Failure> {
    let setup = &args.setup;
    let launch = |path: &PathBuf| session::launch(path, setup.size.as_deref(), "full", &setup.set);
    let launch = setup.launch.as_ref().map(launch).transpose()?;
    let launch = launch.as_ref();
    Ok(CheckOptions {
        kernel: setup.kernel.clone().or(launch.map(|l| l.kernel.clone())),
        block: args.block.or(launch.map(|l| l.block)),
        dynamic_smem: args.dynamic_smem.or(launch.map(|l| l.dynamic_smem)),
        assume: args.assume.clone(),
        shape: args.shape.unwrap_or_default(),
        nvcc,
    })
}

/// Kernels that the second has alone: nothing runs them, so nothing is said of what launches them.
fn not_run([known, all]: &[Vec<String>; 2], (first, second): (&str, &str)) -> Vec<FunctionVerdict> {
    let others = all.iter().filter(|name| !known.contains(name));
    let verdict = |name: &String| {
        let text = format!(
            "undecided: not run, because `{first}` has no such kernel; what launches it in `{second}` may differ"
        );
        FunctionVerdict::of_run(name.clone(), "undecided", text)
    };
    others.map(verdict).collect()
}

/// A text with the names that kernels have in their source.
fn named(text: &str) -> String {
    let parts: Vec<String> = text
        .split('`')
        .map(|part| match part.starts_with("_Z") {
            true => source_name(part),
            false => part.to_owned(),
        })
        .collect();
    parts.join("`")
}

/// nvcc is needed where one of the two is CUDA C; a ptxas that is there may be known to make wrong code.
pub(super) fn compiler(cli: &Cli, inputs: [&Input; 2]) -> Result<Optimizer, Failure> {
    let is_source = inputs.iter().any(|input| input.level == Level::Cuda);
    let toolkit = session::toolkit(cli);
    Ok(Optimizer::with(match is_source {
        true => Some(toolkit?),
        false => toolkit.ok(),
    }))
}

/// A line in several of the terminal's width, where it is long.
fn fitted(line: &str) -> String {
    let line = cut(line);
    if line.chars().count() <= WIDTH {
        return line;
    }
    let indent = &line[..line.len() - line.trim_start().len()];
    wrap(&line, indent, &format!("{indent}  ")).join("\n")
}

/// What is shown of a line; `--json` has all of it.
fn cut(line: &str) -> String {
    const COLUMNS: usize = 160;
    // The first line is a sentence; those below it have instructions and values.
    match line.starts_with(' ') {
        true => shortened(line, COLUMNS),
        false => line.to_owned(),
    }
}

/// A rewrite may execute so many times the original's instructions, and so many in any case (of warps).
const TIMES: u64 = 1000;
const LEAST_BUDGET: u64 = 1 << 24;

/// Runs both in the emulator with the same inputs. Equal outputs on one input prove nothing about
/// others, so the best verdict is "undecided", said as such. Where the original faults that is all that is said: the
/// verdict is the error then.
fn in_emulator(
    args: &CheckArgs,
    (a, b): &(Module, Module),
) -> Result<Result<FunctionVerdict, FunctionVerdict>, Failure> {
    let launch = described(&args.setup)?;
    let launch = among(&launch, &args.setup, (&a.name, &kernels(a)))?;
    let inputs = materialize(&launch, args.setup.launch.as_deref())?;
    let run = |module: &Module, options: &RunOptions| {
        let program = Emulator::new(module, &launch.kernel)?;
        Ok::<_, Failure>(program.run(&launch, inputs.clone(), options)?)
    };
    let verdict = |verdict, text| FunctionVerdict::of_run(launch.kernel.clone(), verdict, text);
    let all = RunOptions::default();
    let fuel = args.fuel.unwrap_or(u64::MAX);
    let all = RunOptions {
        budget: all.budget.min(fuel),
        total: all.total.min(fuel),
        ..all
    };
    let (first, executed) = match run(a, &all)? {
        Outcome::Finished(results) => (results.buffers, results.statistics.warp_instructions),
        Outcome::Faulted(fault) if fault.kind == FaultKind::Budget && args.fuel.is_some() => {
            let text = format!(
                "undecided: the original `{}` is not at its end after {fuel} instructions of warps (--fuel)",
                a.name
            );
            return Ok(Err(verdict("undecided", text)));
        }
        Outcome::Faulted(fault) => {
            let guesses = session::guesses(args.setup.launch.as_deref());
            let guesses = guesses.map_or_else(String::new, |text| format!("\n{text}"));
            let fault = fault.to_string();
            let text = format!(
                "undecided: the original `{}` is at fault at this launch, so it is no judge: {}{guesses}",
                a.name,
                fault.trim_end()
            );
            return Ok(Err(verdict("undecided", text)));
        }
    };
    let most = executed.saturating_mul(TIMES).max(LEAST_BUDGET);
    let bounded = RunOptions {
        budget: all.budget.min(most),
        total: all.total.min(most),
        ..all
    };
    let name = &b.name;
    let spent = bounded.total;
    Ok(match run(b, &bounded)? {
        Outcome::Finished(results) => Ok(compared(
            (&launch, &args.setup.set),
            &inputs,
            &first,
            &results.buffers,
        )),
        // Whoever gives it less learns nothing of it.
        Outcome::Faulted(fault) if fault.kind == FaultKind::Budget && spent < most => Err(verdict(
            "undecided",
            format!(
                "undecided: `{name}` is not at its end after {spent} instructions of warps (--fuel), where the original \
                 needs {executed}"
            ),
        )),
        Outcome::Faulted(fault) if fault.kind == FaultKind::Budget => Ok(verdict(
            "refuted",
            format!(
                "`{name}` is not at its end after {spent} instructions of warps, where the original needs {executed}: \
                 {fault}"
            ),
        )),
        Outcome::Faulted(fault) => Ok(verdict("refuted", format!("`{name}` is at fault: {fault}"))),
    })
}

fn on_device(
    args: &CheckArgs,
    a: &Input,
    b: &Input,
    ordinal: u32,
) -> Result<Vec<FunctionVerdict>, Failure> {
    let launch = described(&args.setup)?;
    let launch = among(&launch, &args.setup, (&a.name, &kernels_of(a)?))?;
    let inputs = materialize(&launch, args.setup.launch.as_deref())?;
    let (_, first) = run_on_device(a.bytes.clone(), &launch, &inputs, ordinal)?;
    let (_, second) = run_on_device(b.bytes.clone(), &launch, &inputs, ordinal)?;
    let all = (&launch, &*args.setup.set);
    Ok(vec![compared(all, &inputs, &first, &second)])
}

fn compared(
    (launch, set): (&Launch, &[String]),
    inputs: &[Vec<u8>],
    first: &[Vec<u8>],
    second: &[Vec<u8>],
) -> FunctionVerdict {
    let mut is_equal = true;
    for ((buffer, a), b) in launch.buffers().zip(first).zip(second) {
        if a == b {
            continue;
        }
        let found = compare(b, a, buffer.ty, buffer.tolerance);
        if found.within() {
            is_equal = false;
            continue;
        }
        let text = differs(buffer, (a, b), &found);
        return FunctionVerdict::of_run(launch.kernel.clone(), "refuted", text);
    }
    let how = match is_equal {
        true => "equal bit for bit",
        false => "equal within the description's tolerance, not bit for bit,",
    };
    let changed = match set {
        [] => String::new(),
        set => format!(" with {}", set.join(", ")),
    };
    let mut text = format!(
        "the outputs are {how} at size `{}`{changed}; other inputs may differ, so this is no proof",
        launch.size
    );
    let outputs = launch.buffers().zip(inputs).zip(first);
    for ((buffer, input), output) in outputs.filter(|((buffer, _), _)| buffer.output) {
        if let Some(what) = tells_little(buffer, input, output) {
            text += &format!("\n  `{}` tells little: {what}", buffer.name);
        }
    }
    FunctionVerdict::of_run(launch.kernel.clone(), "undecided", text)
}

/// The first element that differs, how many do, and by how much.
fn differs(buffer: &Buffer, (a, b): (&[u8], &[u8]), found: &Comparison) -> String {
    let at = found.first_mismatch.unwrap_or_default();
    let ty = buffer.ty;
    let value = |bytes: &[u8]| {
        let element = bytes.chunks_exact(ty.size()).nth(at);
        element.map_or_else(
            || "missing".to_owned(),
            |bytes| shown(ty, ty.to_f64(ty.read(bytes))),
        )
    };
    let mut text = format!(
        "refuted: `{}[{at}]` differs: {} in place of {}; {} of {} do, by at most {:.2e}, {:.2e} of the value",
        buffer.name,
        value(b),
        value(a),
        found.mismatches,
        count(found.len, "element"),
        found.max_abs,
        found.max_rel
    );
    if ty.is_float() && buffer.tolerance.is_none() && found.max_rel < MAY_BE_ROUNDING {
        text += "\n  as little as another rounding may make: a `tolerance` in the description permits it (docs/launch.md)";
    }
    text
}

/// Relative differences below it may be those of sums in another order.
const MAY_BE_ROUNDING: f64 = 1e-2;

/// Why an output that both agree on says little about them.
fn tells_little(buffer: &Buffer, input: &[u8], output: &[u8]) -> Option<String> {
    if input == output {
        return Some("it is as it was before the launch".to_owned());
    }
    let mut elements = output.chunks_exact(buffer.ty.size());
    if let Some(first) = elements.clone().next()
        && buffer.len > 1
        && elements.all(|element| element == first)
    {
        let value = shown(buffer.ty, buffer.ty.to_f64(buffer.ty.read(first)));
        return Some(match value.as_str() {
            "NaN" => "every element is NaN".to_owned(),
            value => format!("every element is {value}"),
        });
    }
    let elements = output.chunks_exact(buffer.ty.size());
    let is_nan = |bytes: &[u8]| buffer.ty.to_f64(buffer.ty.read(bytes)).is_nan();
    let nans = elements.filter(|bytes| is_nan(bytes)).count();
    match nans {
        0 => None,
        all if all == buffer.len => Some("every element is NaN".to_owned()),
        some => Some(format!("{some} of {} elements are NaN", buffer.len)),
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn long_lines_are_cut_at_characters() {
        let fits = format!(" {}", "é".repeat(159));
        assert_eq!(cut(&fits), fits);
        let long = format!(" {}", "é".repeat(160));
        assert_eq!(cut(&long), format!(" {}…", "é".repeat(158)));
        assert_eq!(cut(&"é".repeat(161)), "é".repeat(161));
    }
}
