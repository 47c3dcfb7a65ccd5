//! Machine code as text and as a document, and checks of the binary level on a file.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use warpwright_diag::{Problem, count};
use warpwright_driver::life_ranges::{Compared, LifeRangeError, Outcome, compare_cubin};
use warpwright_pass::names::{is_named, source_name};
use warpwright_report::screen::wrap;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::isa::decode;
use warpwright_sass::roundtrip::{self, Broken};
use warpwright_sass::text::{self, Function};
use warpwright_sass::{Elf, ElfError, Instruction, hazards};
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, PtxasJob};

use crate::front::target;
use crate::source::Tools;
use crate::{DeviceCode, Error, Input, Level};

/// nvdisasm's time for one cubin.
const NVDISASM_LIMIT: Duration = Duration::from_secs(600);

/// The machine code of a file, and the function that is looked at.
pub struct Sass {
    name: String,
    cubins: Vec<Vec<u8>>,
    function: Option<String>,
}

/// What is checked of machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Is it read and written without loss?
    Roundtrip,
    /// Does liveness agree with nvdisasm's life ranges?
    Liveness,
    /// Is every register access protected?
    Hazards,
}

impl Sass {
    /// Cubins as they are, anything else as ptxas makes it.
    ///
    /// # Errors
    /// The file cannot be read or built, runs on another GPU, or has no such function.
    pub fn of(
        tools: &Tools<'_>,
        input: &Input,
        gpu: Option<Gpu>,
        function: Option<&str>,
    ) -> Result<Sass, Error> {
        let cubins = match input.level {
            Level::Cubin | Level::Fat => cubins(tools, input, gpu, function)?,
            _ => {
                let module = tools.module(input, gpu.as_ref(), true)?;
                let target = target(&module, gpu)?.target();
                let job = PtxasJob::new(&module.source, &target);
                let ptxas = tools.toolkit()?.ptxas()?;
                vec![BuildCache::standard().ptxas(&ptxas, &job)?.cubin]
            }
        };
        Ok(Sass {
            name: input.name.clone(),
            cubins,
            function: function.map(str::to_owned),
        })
    }

    fn fail(&self, why: impl fmt::Display) -> Error {
        Problem::Input(format!("`{}`: {why}", self.name)).into()
    }

    fn elves(&self) -> Result<Vec<Elf>, Error> {
        let elves = self.cubins.iter().map(|bytes| Elf::parse(bytes));
        elves.map(|elf| elf.map_err(|e| self.fail(e))).collect()
    }

    /// Is a function looked at? Those with a section of their own, or the one that was asked for.
    fn is_wanted(&self, name: &str) -> bool {
        let mut wanted = self.function.iter();
        wanted.all(|function| is_named(function, name))
    }

    fn has_some<T>(&self, functions: &[T]) -> Result<(), Problem> {
        match (functions.is_empty(), &self.function) {
            (false, _) => Ok(()),
            (true, Some(function)) => Err(Problem::Input(format!(
                "`{}` has no function `{function}`",
                self.name
            ))),
            (true, None) => Err(Problem::Input(format!("`{}` has no function", self.name))),
        }
    }

    /// Everything that one cubin holds, as a text that assembles to it again.
    ///
    /// # Errors
    /// There are several, or it cannot be read.
    pub fn whole(&self) -> Result<String, Error> {
        let [cubin] = &self.cubins[..] else {
            return Err(Problem::Input(format!(
                "`{}` holds {}, and --whole prints one: choose with --gpu",
                self.name,
                count(self.cubins.len(), "cubin")
            ))
            .into());
        };
        let text = Elf::parse(cubin).and_then(|elf| text::whole(&elf));
        text.map_err(|e| self.fail(e))
    }

    /// The code as text.
    ///
    /// # Errors
    /// It cannot be read, or has no such function.
    pub fn text(&self) -> Result<String, Error> {
        let elves = self.elves()?;
        let functions = elves.iter().map(text::functions);
        let functions = functions.map(|of| of.map_err(|e| self.fail(e)));
        let mut functions = functions.collect::<Result<Vec<_>, _>>()?.concat();
        functions.retain(|function: &Function| self.is_wanted(&function.name));
        self.has_some(&functions)?;
        Ok(text::print(sm(&elves), &functions))
    }

    /// The code as a document.
    ///
    /// # Errors
    /// It cannot be read, or has no such function.
    pub fn listing(&self) -> Result<Listing, Error> {
        let elves = self.elves()?;
        let functions = elves.iter().map(|elf| self.listed(elf));
        let functions = functions.map(|of| of.map_err(|e| self.fail(e)));
        let functions = functions.collect::<Result<Vec<_>, _>>()?.concat();
        self.has_some(&functions)?;
        Ok(Listing {
            schema: "warpwright.sass/1",
            input: self.name.clone(),
            gpu: elves.first().map(Elf::architecture).unwrap_or_default(),
            functions,
        })
    }

    /// Runs one check over all of it; nvdisasm is for [`Check::Liveness`].
    ///
    /// # Errors
    /// It cannot be read, has no such function, or there is no nvdisasm.
    pub fn check(&self, what: Check, tools: &Tools<'_>) -> Result<Checked, Error> {
        let (mut functions, mut errors) = Findings::default();
        let mut gpu = String::new();
        for (bytes, elf) in self.cubins.iter().zip(self.elves()?) {
            gpu = elf.architecture();
            let found = match what {
                Check::Roundtrip => self.roundtrip(bytes)?,
                Check::Liveness => self.liveness(bytes, tools)?,
                Check::Hazards => self.hazards(&elf)?,
            };
            functions.extend(found.0);
            errors.extend(found.1);
        }
        functions.retain(|function| self.is_wanted(&function.name));
        errors.retain(|error| error.function.as_deref().is_none_or(|f| self.is_wanted(f)));
        self.has_some(&functions)?;
        Ok(Checked {
            schema: "warpwright.sass-check/1",
            input: self.name.clone(),
            gpu,
            check: match what {
                Check::Roundtrip => "roundtrip",
                Check::Liveness => "liveness",
                Check::Hazards => "hazards",
            },
            holds: errors.is_empty(),
            functions,
            errors,
        })
    }

    fn listed(&self, elf: &Elf) -> Result<Vec<ListedFunction>, ElfError> {
        let kernels = elf.kernels()?.into_iter();
        let meant = kernels.filter(|kernel| self.is_wanted(&kernel.name));
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

    fn roundtrip(&self, bytes: &[u8]) -> Result<Findings, Error> {
        let found = roundtrip::check(bytes).map_err(|e| self.fail(e))?;
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

    fn liveness(&self, bytes: &[u8], tools: &Tools<'_>) -> Result<Findings, Error> {
        let toolkit = tools.toolkit()?;
        let compared = compare_cubin(toolkit.nvdisasm()?, bytes, NVDISASM_LIMIT).map_err(
            |error| match error {
                LifeRangeError::Tool(error) => error.into(),
                other => self.fail(other),
            },
        )?;
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

    fn hazards(&self, elf: &Elf) -> Result<Findings, Error> {
        let mut findings = Findings::default();
        for kernel in elf.kernels().map_err(|e| self.fail(e))? {
            let code = Code::new(elf, &kernel, Calls::Followed).map_err(|e| self.fail(e))?;
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
}

fn sm(elves: &[Elf]) -> u32 {
    elves.first().map_or(0, |elf| elf.target().sm)
}

/// The cubins of a file that has them.
fn cubins(
    tools: &Tools<'_>,
    input: &Input,
    gpu: Option<Gpu>,
    function: Option<&str>,
) -> Result<Vec<Vec<u8>>, Error> {
    let is_cubin = input.level == Level::Cubin;
    if !tools.nvcc.is_empty() {
        let text = "FILE is machine code: there is nothing to compile";
        return Err(Problem::Usage(text.into()).into());
    }
    let code = DeviceCode::of(input, gpu.as_ref())?;
    if let (true, Some(gpu), Some(cubin)) = (is_cubin, &gpu, code.cubins.first()) {
        runs_on(&input.name, &cubin.bytes, gpu)?;
    }
    let code = code.with_function(function.filter(|_| !is_cubin))?;
    Ok(code.cubins.into_iter().map(|cubin| cubin.bytes).collect())
}

/// A GPU that is named beside a cubin must be one that runs it.
fn runs_on(name: &str, cubin: &[u8], gpu: &Gpu) -> Result<(), Problem> {
    let elf = Elf::parse(cubin).map_err(|e| Problem::Input(format!("`{name}`: {e}")))?;
    match warpwright_target::runs_on(elf.target().sm, gpu.arch.sm) {
        true => Ok(()),
        false => Err(Problem::Input(format!(
            "`{name}` is a cubin for {}, which does not run on {gpu}",
            elf.architecture()
        ))),
    }
}

/// Machine code, instruction by instruction.
#[derive(Serialize)]
pub struct Listing {
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

/// What a check of machine code found.
#[derive(Serialize)]
pub struct Checked {
    schema: &'static str,
    input: String,
    gpu: String,
    check: &'static str,
    /// Is nothing wrong?
    pub holds: bool,
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

impl Checked {
    /// What is wrong, a line each.
    pub fn errors(&self) -> Vec<String> {
        const SHOWN: usize = 20;
        let shown = self.errors.iter().take(SHOWN).map(|error| {
            let function = error.function.as_deref();
            let function =
                function.map_or_else(String::new, |name| format!(" {}", source_name(name)));
            let offset = error
                .offset
                .map_or_else(String::new, |at| format!(" at {at:#x}"));
            let text = format!("error: {}:{function}{offset}: {}", self.input, error.reason);
            wrap(&text, "", "  ").join("\n")
        });
        let more = self.errors.len().saturating_sub(SHOWN);
        let more = (more > 0).then(|| format!("… and {}", count(more, "more error")));
        shown.chain(more).collect()
    }
}

/// What became of each function.
impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for function in &self.functions {
            let CheckedFunction {
                name,
                state,
                note,
                instructions,
            } = function;
            let instructions = count(*instructions, "instruction");
            let text = format!("{}: {state} ({instructions}{note})", source_name(name));
            writeln!(f, "{}", wrap(&text, "", "  ").join("\n"))?;
        }
        Ok(())
    }
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
