//! `warpwright check A B`: is kernel B a correct version of kernel A?

use serde::Serialize;
use warpwright_check::{CubinOptions, Options, Verdict, check_files, check_modules};
use warpwright_emu::{Emulator, Options as RunOptions, Outcome};
use warpwright_launch::{Launch, compare};
use warpwright_pass::witness::refute;
use warpwright_ptx::{FunctionKind, Module};

use super::print_json;
use super::run::{described, materialize, run_on_device};
use crate::args::{CheckArgs, Cli};
use crate::failure::Failure;
use crate::input::{Input, Level};
use crate::session;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    original: String,
    rewritten: String,
    how: &'static str,
    verdict: &'static str,
    functions: Vec<FunctionVerdict>,
}

#[derive(Serialize)]
struct FunctionVerdict {
    name: String,
    verdict: &'static str,
    text: String,
    /// What must hold of launches for the proof to be one: nothing refuses others.
    #[serde(skip_serializing_if = "Option::is_none")]
    promises: Option<Promised>,
}

#[derive(Serialize)]
struct Promised {
    /// All blocks have these dimensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<[u32; 3]>,
    /// A launch has at most so many bytes of dynamic shared memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    dynamic_smem: Option<u32>,
}

/// Runs the command. The exit code is that of the worst verdict: refuted, then undecided.
pub fn run(cli: &Cli, args: &CheckArgs) -> Result<(), Failure> {
    let a = Input::read(&args.a)?;
    let b = Input::read(&args.b)?;
    let (how, functions) = match (args.run, args.setup.gpu) {
        (_, Some(ordinal)) => ("run on the GPU", on_device(args, &a, &b, ordinal)?),
        (true, None) => {
            let modules = (load(cli, &a)?, load(cli, &b)?);
            ("run in the emulator", in_emulator(args, &modules)?)
        }
        (false, None) if a.level == Level::Cubin && b.level == Level::Cubin => {
            ("symbolically", cubins(args, &a, &b)?)
        }
        (false, None) if (a.level == Level::Cubin) != (b.level == Level::Cubin) => {
            return Err(Failure::input(format!(
                "`{}` and `{}` are of different kinds: two cubins are compared, or two of CUDA C and PTX",
                a.name, b.name
            )));
        }
        (false, None) => {
            let modules = (load(cli, &a)?, load(cli, &b)?);
            ("symbolically", symbolically(args, &modules)?)
        }
    };
    let worst = ["refuted", "undecided"]
        .into_iter()
        .find(|w| functions.iter().any(|f| f.verdict == *w))
        .unwrap_or("proved");
    let document = Document {
        schema: "warpwright.check/1",
        original: a.name,
        rewritten: b.name,
        how,
        verdict: worst,
        functions,
    };
    if args.json {
        print_json(&document)?;
    } else {
        println!("checked {how}: {worst}");
        for f in &document.functions {
            for line in format!("{}: {}", f.name, f.text).lines() {
                println!("{}", cut(line));
            }
        }
    }
    match worst {
        "proved" => Ok(()),
        "refuted" => Err(Failure::Quiet(1)),
        _ => Err(Failure::Quiet(5)),
    }
}

/// What fits on a line; `--json` has all of it.
fn cut(line: &str) -> String {
    const COLUMNS: usize = 160;
    match line.char_indices().nth(COLUMNS) {
        // The first line is a sentence; those below it have instructions and values.
        Some(_) if line.starts_with(' ') => line.chars().take(COLUMNS - 1).chain(['…']).collect(),
        _ => line.to_owned(),
    }
}

fn load(cli: &Cli, input: &Input) -> Result<Module, Failure> {
    // With lines, so that a difference can be shown in the source.
    let mut module = session::module(cli, input, None, &[], input.level == Level::Cuda)?;
    if input.level == Level::Cuda {
        module.name = format!("PTX of {}", module.name);
    }
    Ok(module)
}

fn symbolically(
    args: &CheckArgs,
    (a, b): &(Module, Module),
) -> Result<Vec<FunctionVerdict>, Failure> {
    // One kernel stands on the device functions that it may call.
    let is_meant = |name: &str| match &args.setup.kernel {
        Some(kernel) => name == kernel || !is_kernel(a, name),
        None => true,
    };
    match &args.setup.kernel {
        Some(kernel) if !is_kernel(a, kernel) => {
            let text = format!("`{}` has no kernel `{kernel}`", a.name);
            return Err(Failure::input(text));
        }
        None if a.functions.values().all(|f| f.body.is_none()) => {
            let text = format!("`{}` has no function that could be checked", a.name);
            return Err(Failure::input(text));
        }
        _ => {}
    }
    let options = Options { block: args.block };
    let verdicts = check_modules(a, b, &options).into_iter();
    let verdicts = verdicts.filter(|(name, _)| is_meant(name)).collect();
    let verdicts = refute(a, b, verdicts, &options).into_iter();
    Ok(verdicts
        .map(|(name, verdict)| FunctionVerdict {
            name,
            verdict: word(&verdict),
            text: verdict.to_string(),
            promises: None,
        })
        .collect())
}

/// Two finished cubins, kernel by kernel.
fn cubins(args: &CheckArgs, a: &Input, b: &Input) -> Result<Vec<FunctionVerdict>, Failure> {
    let options = CubinOptions {
        block: args.block,
        dynamic_smem: args.dynamic_smem,
    };
    let verdicts = check_files(&a.bytes, &b.bytes, &options)
        .map_err(|e| Failure::input(format!("`{}` or `{}`: {e}", a.name, b.name)))?;
    let wanted = |name: &str| args.setup.kernel.as_deref().is_none_or(|k| k == name);
    let functions: Vec<FunctionVerdict> = verdicts
        .into_iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, answer)| {
            let mut text = answer.verdict.to_string();
            let promises = answer.promises;
            let holds = answer.verdict.is_proved() && !promises.is_empty();
            if holds {
                text += &format!(", for launches of {promises}");
            }
            FunctionVerdict {
                name,
                verdict: word(&answer.verdict),
                text,
                promises: holds.then_some(Promised {
                    block: promises.block,
                    dynamic_smem: promises.dynamic_smem,
                }),
            }
        })
        .collect();
    if functions.is_empty() {
        let text = format!("`{}` has no kernel that could be checked", a.name);
        return Err(Failure::input(text));
    }
    Ok(functions)
}

fn is_kernel(module: &Module, name: &str) -> bool {
    let function = module.function(name).map(|id| &module.functions[id]);
    function.is_some_and(|f| f.kind == FunctionKind::Entry && f.body.is_some())
}

fn word(verdict: &Verdict) -> &'static str {
    verdict.word()
}

/// Runs both in the emulator with the same inputs. Equal outputs on one input prove nothing about
/// others, so the best verdict is "undecided", said as such.
fn in_emulator(
    args: &CheckArgs,
    (a, b): &(Module, Module),
) -> Result<Vec<FunctionVerdict>, Failure> {
    let launch = described(&args.setup)?;
    let inputs = materialize(&launch, args.setup.launch.as_deref())?;
    let mut outputs = Vec::new();
    for module in [a, b] {
        let program = Emulator::new(module, &launch.kernel)?;
        match program.run(&launch, inputs.clone(), &RunOptions::default())? {
            Outcome::Finished(results) => outputs.push(results.buffers),
            Outcome::Faulted(fault) => {
                return Ok(vec![FunctionVerdict {
                    name: launch.kernel.clone(),
                    verdict: "refuted",
                    text: format!("`{}` is at fault: {fault}", module.name),
                    promises: None,
                }]);
            }
        }
    }
    Ok(vec![compared(&launch, &outputs[0], &outputs[1])])
}

fn on_device(
    args: &CheckArgs,
    a: &Input,
    b: &Input,
    ordinal: u32,
) -> Result<Vec<FunctionVerdict>, Failure> {
    let launch = described(&args.setup)?;
    let inputs = materialize(&launch, args.setup.launch.as_deref())?;
    let (_, first) = run_on_device(a.bytes.clone(), &launch, &inputs, ordinal)?;
    let (_, second) = run_on_device(b.bytes.clone(), &launch, &inputs, ordinal)?;
    Ok(vec![compared(&launch, &first, &second)])
}

fn compared(launch: &Launch, first: &[Vec<u8>], second: &[Vec<u8>]) -> FunctionVerdict {
    for ((buffer, a), b) in launch.buffers().zip(first).zip(second) {
        if a == b {
            continue;
        }
        let found = compare(b, a, buffer.ty, None);
        let place = found
            .first_mismatch
            .map_or_else(String::new, |i| format!("[{i}]"));
        return FunctionVerdict {
            name: launch.kernel.clone(),
            verdict: "refuted",
            text: format!(
                "refuted: `{}{place}` differs (largest relative difference {:e})",
                buffer.name, found.max_rel
            ),
            promises: None,
        };
    }
    FunctionVerdict {
        name: launch.kernel.clone(),
        verdict: "undecided",
        text: format!(
            "the outputs are equal bit for bit at size `{}`; that is no proof",
            launch.size
        ),
        promises: None,
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
