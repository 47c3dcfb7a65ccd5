//! `warpwright check A B`: is kernel B a correct version of kernel A?

use std::path::PathBuf;

use warpwright::Module;
use warpwright::run::{among, both_in_emulator, compared, kernels, kernels_of, not_run};
use warpwright::source::quoted;
use warpwright::{CheckOptions, Checked, FunctionVerdict, Optimizer};
use warpwright_autotune::launches::{guesses, nvcc as described_nvcc};
use warpwright_pass::names::{base_name, source_name};
use warpwright_report::screen::{WIDTH, shortened, wrap};

use super::run::{described, initial, run_on_device};
use super::{print_json, write_page};
use crate::args::{CheckArgs, Cli};
use crate::failure::Failure;
use crate::{progress, session};
use warpwright::{Input, Level};
use warpwright_files::{self as files};

/// Runs the command. The exit code is that of the worst verdict: refuted, then undecided.
pub fn run(cli: &Cli, args: &CheckArgs) -> Result<(), Failure> {
    let a = files::read(&args.a)?;
    let b = files::read(&args.b)?;
    if args.rewrite.is_given() {
        return super::rewrite::run(cli, args, &a, &b);
    }
    let optimizer = compiler(cli, [&a, &b])?;
    // Options of nvcc are for what it compiles.
    let nvcc = |input: &Input| match input.level {
        Level::Cuda => described_nvcc(input, args.setup.launch.as_deref(), &args.nvcc),
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
        let is_asked = worst == "undecided" && are_sources && !args.run;
        if let Some(open) = document.open().filter(|_| is_asked) {
            // Of several kernels the command wants one by name.
            let undecided = (document.functions.len() > 1).then(|| base_name(&open.name));
            let run = match &args.setup.launch {
                Some(launch) => format!(
                    "--run runs a kernel that both have at `{}` and compares what it writes",
                    launch.display()
                ),
                None => format!(
                    "--block N may decide it: it states the threads per block. If the second has a launch of its own: \
                     `{}` and `{}` begin descriptions of both, \
                     and `warpwright check {} {} --launch-a a.toml --launch-b b.toml` compares them there for every input",
                    description(&a, "a.toml", (args, undecided.as_deref())),
                    description(&b, "b.toml", (args, undecided.as_deref())),
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
/// `kernel`: the one where nobody names one.
fn description(input: &Input, output: &str, (args, kernel): (&CheckArgs, Option<&str>)) -> String {
    let mut words = vec![
        "warpwright".to_owned(),
        "launch".to_owned(),
        quoted(&input.name),
    ];
    if let Some(kernel) = args.setup.kernel.as_deref().or(kernel) {
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
    let launch =
        |path: &PathBuf| session::launch(path, (setup.size.as_deref(), "full"), &setup.set);
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

/// Runs both with the same inputs.
fn on_device(
    args: &CheckArgs,
    a: &Input,
    b: &Input,
    ordinal: u32,
) -> Result<Vec<FunctionVerdict>, Failure> {
    let launch = described(&args.setup)?;
    let named = args.setup.kernel.as_deref();
    let launch = among(&launch, named, (&a.name, &kernels_of(a)?))?;
    let inputs = initial(&launch, args.setup.launch.as_deref())?;
    let (_, first) = run_on_device(a.bytes.clone(), &launch, &inputs, ordinal)?;
    let (_, second) = run_on_device(b.bytes.clone(), &launch, &inputs, ordinal)?;
    let all = (&launch, &*args.setup.set);
    Ok(vec![compared(all, &inputs, &first, &second)])
}

/// The same in the emulator.
fn in_emulator(
    args: &CheckArgs,
    (a, b): &(Module, Module),
) -> Result<Result<FunctionVerdict, FunctionVerdict>, Failure> {
    let launch = described(&args.setup)?;
    let named = args.setup.kernel.as_deref();
    let launch = among(&launch, named, (&a.name, &kernels(a)))?;
    let inputs = initial(&launch, args.setup.launch.as_deref())?;
    let guesses = || guesses(args.setup.launch.as_deref());
    let of = (&launch, &*args.setup.set);
    Ok(both_in_emulator((a, b), of, &inputs, args.fuel, &guesses)?)
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
