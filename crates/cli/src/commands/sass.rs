//! `warpwright sass`: machine code as text, and checks of the binary level on a file.

use std::time::Duration;

use serde::Serialize;
use warpwright_diag::count;
use warpwright_driver::life_ranges::{Compared, LifeRangeError, Outcome, compare_cubin};
use warpwright_pass::names::{is_named, source_name};
use warpwright_report::screen::wrap;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::hazards;
use warpwright_sass::isa::decode;
use warpwright_sass::roundtrip::{self, Broken};
use warpwright_sass::text::{self, Function};
use warpwright_sass::{Elf, ElfError, Instruction};
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, PtxasJob};

use super::print_json;
use crate::args::{AssembleArgs, Cli, SassAction, SassArgs, SassInput};
use crate::failure::Failure;
use crate::session;
use crate::terminal::document;
use warpwright::DeviceCode;
use warpwright::Level;
use warpwright_files::{self as files, Kind, write_atomically};

/// nvdisasm's time for one cubin.
const NVDISASM_LIMIT: Duration = Duration::from_secs(600);

/// Runs the command.
pub fn run(cli: &Cli, args: &SassArgs) -> Result<(), Failure> {
    match (&args.action, &args.input) {
        (Some(SassAction::Roundtrip(input)), _) => check(cli, input, "roundtrip", roundtrip),
        (Some(SassAction::Liveness(input)), _) => check(cli, input, "liveness", liveness),
        (Some(SassAction::Hazards(input)), _) => check(cli, input, "hazards", hazards),
        (Some(SassAction::Assemble(args)), _) => assemble(args),
        (None, input) if args.whole => whole(cli, input),
        (None, input) => disassemble(cli, input),
    }
}

/// Everything that one cubin holds.
fn whole(cli: &Cli, args: &SassInput) -> Result<(), Failure> {
    let (name, cubins) = cubins(cli, args)?;
    let [cubin] = &cubins[..] else {
        let text = format!(
            "`{name}` holds {}, and --whole prints one: choose with --gpu",
            count(cubins.len(), "cubin")
        );
        return Err(Failure::input(text));
    };
    let text = Elf::parse(cubin).and_then(|elf| text::whole(&elf));
    document(&text.map_err(|e| Failure::input(format!("`{name}`: {e}")))?);
    Ok(())
}

fn assemble(args: &AssembleArgs) -> Result<(), Failure> {
    if args.file.extension().is_none_or(|ending| ending != "sass") {
        return Err(Failure::Usage(
            "FILE is wanted with the ending .sass".into(),
        ));
    }
    Kind::Cubin.fits(&args.output)?;
    Ok(write_atomically(
        &args.output,
        &files::read(&args.file)?.bytes,
    )?)
}

/// The machine code to look at: cubins as they are, anything else as ptxas makes it.
fn cubins(cli: &Cli, args: &SassInput) -> Result<(String, Vec<Vec<u8>>), Failure> {
    let Some(file) = &args.file else {
        return Err(Failure::Usage("FILE is wanted".into()));
    };
    let input = files::read(file)?;
    let gpu = session::named_gpu(args.gpu.as_deref())?;
    if matches!(input.level, Level::Cubin | Level::Fat) {
        let is_cubin = input.level == Level::Cubin;
        if !args.nvcc.is_empty() {
            let text = "FILE is machine code: there is nothing to compile";
            return Err(Failure::Usage(text.into()));
        }
        let code = DeviceCode::of(&input, gpu.as_ref())?;
        if let (true, Some(gpu), Some(cubin)) = (is_cubin, &gpu, code.cubins.first()) {
            runs_on(&input.name, &cubin.bytes, gpu)?;
        }
        let code = code.with_function(args.kernel.as_deref().filter(|_| !is_cubin))?;
        let cubins = code.cubins.into_iter().map(|cubin| cubin.bytes).collect();
        return Ok((input.name, cubins));
    }
    let module = session::module(cli, &input, gpu.as_ref(), &args.nvcc, true)?;
    let target = session::target(&module, gpu)?.target();
    let toolkit = session::toolkit(cli)?;
    let job = PtxasJob::new(&module.source, &target);
    let built = BuildCache::standard().ptxas(&toolkit.ptxas()?, &job)?;
    Ok((input.name, vec![built.cubin]))
}

/// A GPU that is named beside a cubin must be one that runs it.
fn runs_on(name: &str, cubin: &[u8], gpu: &Gpu) -> Result<(), Failure> {
    let elf = Elf::parse(cubin).map_err(|e| Failure::input(format!("`{name}`: {e}")))?;
    let (sm, wanted) = (elf.target().sm, gpu.arch.sm);
    match warpwright_target::runs_on(sm, wanted) {
        true => Ok(()),
        false => Err(Failure::input(format!(
            "`{name}` is a cubin for sm_{sm}, which does not run on {gpu}"
        ))),
    }
}

/// Functions with a section of their own, or the one that was asked for.
fn wanted(args: &SassInput, name: &str) -> bool {
    args.kernel
        .as_deref()
        .is_none_or(|kernel| is_named(kernel, name))
}

fn no_such(file: &str, args: &SassInput) -> Failure {
    match &args.kernel {
        Some(kernel) => Failure::input(format!("`{file}` has no function `{kernel}`")),
        None => Failure::input(format!("`{file}` has no function")),
    }
}

#[derive(Serialize)]
struct Listing {
    schema: &'static str,
    input: String,
    gpu: String,
    functions: Vec<ListedFunction>,
}

#[derive(Clone, Serialize)]
struct ListedFunction {
    name: String,
    registers: Option<u32>,
    /// Its own, without what the system keeps.
    shared_bytes: u64,
    system_shared_bytes: u64,
    opaque: usize,
    instructions: Vec<ListedInstruction>,
}

#[derive(Clone, Serialize)]
struct ListedInstruction {
    offset: u64,
    bits: String,
    control: ListedControl,
    mnemonic: &'static str,
    modifiers: String,
    operands: Vec<String>,
    text: String,
}

/// The control field, as [`warpwright_sass::Control`] has it.
#[derive(Clone, Serialize)]
struct ListedControl {
    stall: u8,
    yields: bool,
    write_barrier: Option<u8>,
    read_barrier: Option<u8>,
    wait_mask: u8,
    reuse: u8,
}

fn disassemble(cli: &Cli, args: &SassInput) -> Result<(), Failure> {
    let (name, cubins) = cubins(cli, args)?;
    let fail = |e: ElfError| Failure::input(format!("`{name}`: {e}"));
    let elves = cubins.iter().map(|bytes| Elf::parse(bytes).map_err(fail));
    let elves = elves.collect::<Result<Vec<Elf>, _>>()?;
    let sm = elves.first().map_or(0, |elf| elf.target().sm);
    if args.json {
        let functions = elves.iter().map(|elf| listed(elf, args).map_err(fail));
        let functions = functions.collect::<Result<Vec<_>, _>>()?.concat();
        if functions.is_empty() {
            return Err(no_such(&name, args));
        }
        return print_json(&Listing {
            schema: "warpwright.sass/1",
            input: name.clone(),
            gpu: format!("sm_{sm}"),
            functions,
        });
    }
    let functions = elves.iter().map(|elf| text::functions(elf).map_err(fail));
    let mut functions = functions.collect::<Result<Vec<_>, _>>()?.concat();
    functions.retain(|function: &Function| wanted(args, &function.name));
    if functions.is_empty() {
        return Err(no_such(&name, args));
    }
    document(&text::print(sm, &functions));
    Ok(())
}

fn listed(elf: &Elf, args: &SassInput) -> Result<Vec<ListedFunction>, ElfError> {
    let kernels = elf.kernels()?.into_iter();
    let meant = kernels.filter(|kernel| wanted(args, &kernel.name));
    let functions = meant.map(|kernel| {
        let code = elf.instructions(&kernel)?;
        let instructions = (0..).step_by(16).zip(code);
        let instructions: Vec<_> = instructions.map(|(at, inst)| list(at, inst)).collect();
        let (shared_bytes, system_shared_bytes) = elf.own_shared_bytes(&kernel);
        Ok(ListedFunction {
            registers: elf.registers(&kernel)?,
            shared_bytes,
            system_shared_bytes,
            opaque: instructions
                .iter()
                .filter(|i| i.mnemonic.is_empty())
                .count(),
            name: kernel.name,
            instructions,
        })
    });
    functions.collect()
}

fn list(offset: u64, inst: Instruction) -> ListedInstruction {
    let decoded = decode(inst);
    let control = decoded.control;
    let operands = decoded.operands(offset).into_iter();
    ListedInstruction {
        offset,
        bits: format!("{:#034x}", inst.bits()),
        control: ListedControl {
            stall: control.stall,
            yields: !control.yield_bit,
            write_barrier: control.write_barrier,
            read_barrier: control.read_barrier,
            wait_mask: control.wait_mask,
            reuse: control.reuse,
        },
        mnemonic: decoded.mnemonic(),
        modifiers: decoded.modifiers(),
        operands: operands.map(|operand| operand.text).collect(),
        text: text::instruction(inst, offset),
    }
}

#[derive(Serialize)]
struct Checked {
    schema: &'static str,
    input: String,
    gpu: String,
    check: &'static str,
    holds: bool,
    functions: Vec<CheckedFunction>,
    errors: Vec<CheckError>,
}

/// `state` is `holds`, `broken`, `unknown` (instructions that the tables lack) or `left out`.
#[derive(Serialize)]
struct CheckedFunction {
    name: String,
    instructions: usize,
    state: &'static str,
    note: String,
}

#[derive(Serialize)]
struct CheckError {
    function: Option<String>,
    offset: Option<u64>,
    reason: String,
}

type Findings = (Vec<CheckedFunction>, Vec<CheckError>);

/// Runs one check, prints what it found, and fails if it does not hold.
fn check(
    cli: &Cli,
    args: &SassInput,
    what: &'static str,
    run: fn(&Cli, &str, &[u8]) -> Result<Findings, Failure>,
) -> Result<(), Failure> {
    let (name, cubins) = cubins(cli, args)?;
    let (mut functions, mut errors) = Findings::default();
    let mut target = 0;
    for bytes in cubins {
        let elf = Elf::parse(&bytes).map_err(|e| Failure::input(format!("`{name}`: {e}")))?;
        target = elf.target().sm;
        let found = run(cli, &name, &bytes)?;
        functions.extend(found.0);
        errors.extend(found.1);
    }
    functions.retain(|function| wanted(args, &function.name));
    errors.retain(|error| error.function.as_deref().is_none_or(|f| wanted(args, f)));
    if functions.is_empty() {
        return Err(no_such(&name, args));
    }
    let document = Checked {
        schema: "warpwright.sass-check/1",
        input: name,
        gpu: format!("sm_{target}"),
        check: what,
        holds: errors.is_empty(),
        functions,
        errors,
    };
    match args.json {
        true => print_json(&document)?,
        false => document.print(),
    }
    match document.holds {
        true => Ok(()),
        false => Err(Failure::Quiet(1)),
    }
}

impl Checked {
    fn print(&self) {
        const SHOWN: usize = 20;
        for function in &self.functions {
            let CheckedFunction {
                name,
                state,
                note,
                instructions,
            } = function;
            let instructions = count(*instructions, "instruction");
            let text = format!("{}: {state} ({instructions}{note})", source_name(name));
            println!("{}", wrap(&text, "", "  ").join("\n"));
        }
        for error in self.errors.iter().take(SHOWN) {
            let function = error.function.as_deref();
            let function =
                function.map_or_else(String::new, |name| format!(" {}", source_name(name)));
            let offset = error
                .offset
                .map_or_else(String::new, |at| format!(" at {at:#x}"));
            let text = format!("error: {}:{function}{offset}: {}", self.input, error.reason);
            complain!("{}", wrap(&text, "", "  ").join("\n"));
        }
        if self.errors.len() > SHOWN {
            let more = count(self.errors.len() - SHOWN, "more error");
            complain!("… and {more}");
        }
    }
}

fn roundtrip(_: &Cli, name: &str, bytes: &[u8]) -> Result<Findings, Failure> {
    let found = roundtrip::check(bytes).map_err(|e| Failure::input(format!("`{name}`: {e}")))?;
    let is_broken = |name: &str| {
        found
            .broken
            .iter()
            .any(|b| b.function.as_deref() == Some(name))
    };
    let functions = found.functions.iter().map(|function| CheckedFunction {
        name: function.name.clone(),
        instructions: function.instructions,
        state: if is_broken(&function.name) {
            "broken"
        } else {
            "holds"
        },
        note: match function.opaque {
            0 => String::new(),
            opaque => format!(", {opaque} of them opaque"),
        },
    });
    let functions = functions.collect();
    let errors = found.broken.into_iter().map(|broken| {
        let Broken {
            function,
            offset,
            reason,
        } = broken;
        CheckError {
            function,
            offset,
            reason,
        }
    });
    Ok((functions, errors.collect()))
}

fn liveness(cli: &Cli, name: &str, bytes: &[u8]) -> Result<Findings, Failure> {
    let toolkit = session::toolkit(cli)?;
    let compared =
        compare_cubin(toolkit.nvdisasm()?, bytes, NVDISASM_LIMIT).map_err(|error| match error {
            LifeRangeError::Tool(error) => error.into(),
            other => Failure::input(format!("`{name}`: {other}")),
        })?;
    let mut findings = Findings::default();
    for function in compared {
        findings.1.extend(disagreements(&function));
        let (state, note) = match function.outcome {
            Outcome::Agrees { by_rule: 0 } => ("holds", String::new()),
            Outcome::Agrees { by_rule } => {
                let places = count(by_rule, "place");
                let note = format!(", at {places} by nvdisasm's rule for guarded writes");
                ("holds", note)
            }
            Outcome::Differs(_) => ("broken", String::new()),
            Outcome::Opaque(_) => ("unknown", String::new()),
            Outcome::LeftOut(why) => ("left out", format!(", {why}")),
        };
        findings.0.push(CheckedFunction {
            name: function.name,
            instructions: function.instructions,
            state,
            note,
        });
    }
    Ok(findings)
}

fn hazards(_: &Cli, name: &str, bytes: &[u8]) -> Result<Findings, Failure> {
    let fail = |error: String| Failure::input(format!("`{name}`: {error}"));
    let elf = Elf::parse(bytes).map_err(|e| fail(e.to_string()))?;
    let mut findings = Findings::default();
    for kernel in elf.kernels().map_err(|e| fail(e.to_string()))? {
        let code = Code::new(&elf, &kernel, Calls::Followed).map_err(|e| fail(e.to_string()))?;
        let (state, errors) = match hazards::check(&code) {
            Ok(violations) if violations.is_empty() => ("holds", Vec::new()),
            Ok(violations) => {
                let found = violations.iter();
                let found = found.map(|v| (Some(v.offset()), v.describe(&code)));
                ("broken", found.collect())
            }
            Err(unchecked) => ("unknown", vec![(None, unchecked.to_string())]),
        };
        let errors = errors.into_iter().map(|(offset, reason)| CheckError {
            function: Some(kernel.name.clone()),
            offset,
            reason,
        });
        findings.1.extend(errors);
        findings.0.push(CheckedFunction {
            instructions: code.instructions().len(),
            name: kernel.name,
            state,
            note: String::new(),
        });
    }
    Ok(findings)
}

/// Errors of one function: where liveness differs, and instructions about which nothing is known.
fn disagreements(function: &Compared) -> Vec<CheckError> {
    let error = |offset: u64, reason: String| CheckError {
        function: Some(function.name.clone()),
        offset: Some(offset),
        reason,
    };
    match &function.outcome {
        Outcome::Differs(differences) => {
            let reasons = differences.iter().map(|d| {
                let side = if d.ours { "for us" } else { "for nvdisasm" };
                error(
                    d.offset,
                    format!("{} is occupied only {side}: {}", d.register, d.text),
                )
            });
            reasons.collect()
        }
        Outcome::Opaque(instructions) => {
            let reasons = instructions.iter().map(|(offset, text)| {
                error(
                    *offset,
                    format!("what it reads and writes is not known: {text}"),
                )
            });
            reasons.collect()
        }
        _ => Vec::new(),
    }
}
