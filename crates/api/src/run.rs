//! A kernel that is run by its launch description: in the emulator here, elsewhere on a device; and two that are run and
//! compared.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;

use serde::Serialize;
use warpwright_diag::{Problem, count};
use warpwright_emu::{Emulator, FaultKind, Options, Outcome, Results};
use warpwright_launch::{Buffer, Comparison, ContentsError, ElemType, Launch, compare};
use warpwright_pass::names::{is_named, source_name};
use warpwright_ptx::Module;
use warpwright_report::accesses::AccessReport;

use crate::front::parse;
use crate::optimise::launch_among;
use crate::rewrite::{shown, tells_little};
use crate::{DeviceCode, Error, FunctionVerdict, Input, Level};

/// A buffer after the run.
#[derive(Debug, Serialize)]
pub struct BufferReport {
    name: String,
    element: &'static str,
    shape: Vec<u64>,
    output: bool,
    /// SHA-256 of the bytes, for quick comparisons.
    sha256: String,
    /// The first elements.
    first: Vec<f64>,
}

/// What a kernel left behind.
#[derive(Serialize)]
pub struct Document {
    schema: &'static str,
    kernel: String,
    size: String,
    ran_on: String,
    buffers: Vec<BufferReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_instructions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accesses: Option<AccessReport>,
    /// What the emulator would have stopped at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    looked_for: Vec<&'static str>,
    approximate: Vec<String>,
    printed: String,
}

/// `ex2.approx.f32` of `@%p1 ex2.approx.f32 %f1, %f2`.
fn opcode(instruction: &str) -> &str {
    let mut words = instruction.split_whitespace();
    let opcode = words.find(|word| !word.starts_with('@'));
    opcode.unwrap_or(instruction).trim_end_matches(';')
}

/// A launch with the symbol of the kernel that it names, of those of a file; a kernel that is named beside it has to be that
/// one.
///
/// # Errors
/// It is none of them, or another one.
pub fn among(
    launch: &Launch,
    named: Option<&str>,
    (file, kernels): (&str, &[String]),
) -> Result<Launch, Error> {
    let launch = launch_among(launch, file, kernels)?;
    match named {
        Some(kernel) if !is_named(kernel, &launch.kernel) => Err(Problem::Input(format!(
            "--kernel {kernel}, but the launch description is for `{}`",
            source_name(&launch.kernel)
        )))?,
        _ => Ok(launch),
    }
}

/// The symbols of a module's kernels.
pub fn kernels(module: &Module) -> Vec<String> {
    module.kernels().map(|(_, f)| f.name.to_string()).collect()
}

/// The same of what a device is given as it is.
///
/// # Errors
/// It cannot be read.
pub fn kernels_of(input: &Input) -> Result<Vec<String>, Error> {
    match input.level {
        Level::Cubin | Level::Fat => Ok(DeviceCode::of(input, None)?.functions()),
        _ => Ok(kernels(&parse(&input.name, input.text()?)?)),
    }
}

/// What the buffers of a launch may take together: the host holds them several times over.
const MOST_BYTES: u64 = 4 << 30;

/// Initial contents of all buffers; `files` reads what the description names.
///
/// # Errors
/// They take too much, or cannot be had.
pub fn materialize(
    launch: &Launch,
    files: &dyn Fn(&str) -> Result<Vec<u8>, ContentsError>,
) -> Result<Vec<Vec<u8>>, Problem> {
    let bytes = launch.buffers().map(|b| b.size() as u64);
    let total = bytes.fold(0, u64::saturating_add);
    if total > MOST_BYTES {
        return Err(Problem::Input(format!(
            "the buffers of `{}` at size `{}` take {total} bytes; `run` and `check` take {MOST_BYTES} at most",
            launch.kernel, launch.size
        )));
    }
    let contents = launch.buffers().map(|b| b.materialize(files));
    contents
        .map(|found| found.map_err(|e| Problem::Input(e.to_string())))
        .collect()
}

/// What the emulator is asked for beside the outputs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked {
    /// Reads of what nobody has written.
    pub uninit: bool,
    /// Races of warps in shared memory.
    pub races: bool,
    /// How accesses lie in memory.
    pub accesses: bool,
    /// Warp instructions after which it stops.
    pub fuel: Option<u64>,
}

/// What the emulator stops at where it is asked to.
fn looked_for(asked: &Asked) -> Vec<&'static str> {
    let all = [
        (asked.races, "races of warps in shared memory"),
        (
            asked.uninit,
            "reads of shared memory and registers that nobody has written",
        ),
    ];
    let all = all.into_iter().filter(|(is_asked, _)| *is_asked);
    all.map(|(_, what)| what).collect()
}

/// A kernel of a module, at a launch with its buffers' contents, in the emulator; `done` counts blocks, and `guesses` says what
/// the launch description marks as guesses.
///
/// # Errors
/// The emulator does not take it, or the program faults.
pub fn in_emulator(
    (module, launch): (&Module, &Launch),
    inputs: Vec<Vec<u8>>,
    asked: &Asked,
    done: &AtomicU64,
    guesses: &dyn Fn() -> Option<String>,
) -> Result<(Document, Vec<Vec<u8>>), Error> {
    let program = Emulator::new(module, &launch.kernel)?;
    let mut options = Options {
        uninitialised: asked.uninit,
        races: asked.races,
        patterns: asked.accesses,
        ..Options::default()
    };
    if let Some(fuel) = asked.fuel {
        (options.budget, options.total) = (fuel, fuel);
    }
    match program.run_counting(launch, inputs, &options, done)? {
        Outcome::Finished(results) => Ok(finished(asked, launch, module, results)),
        Outcome::Faulted(fault) if fault.kind == FaultKind::Budget && asked.fuel.is_some() => {
            Err(Error::Faulted(format!(
                "error: the launch is not at its end after as much as --fuel permits: give it more, or a smaller \
                 size (--size, --set)\n\n{fault}"
            )))
        }
        Outcome::Faulted(fault) => {
            // Sizes and contents decide which addresses there are, and no race.
            let is_race = fault.kind == FaultKind::SharedRace;
            let guesses = (!is_race).then(guesses).flatten();
            let guesses = guesses.map_or_else(String::new, |text| format!("\nnote: {text}"));
            let fault = fault.to_string();
            Err(Error::Faulted(format!(
                "error: the program is at fault\n\n{}{guesses}",
                fault.trim_end()
            )))
        }
    }
}

fn finished(
    asked: &Asked,
    launch: &Launch,
    module: &Module,
    results: Results,
) -> (Document, Vec<Vec<u8>>) {
    let accesses = module.function(&launch.kernel).and_then(|id| {
        let counts = &results.statistics.instructions;
        AccessReport::new(module, id, counts, &format!("size `{}`", launch.size))
    });
    let approximate = results.approximate.iter();
    let document = Document {
        thread_instructions: Some(results.statistics.thread_instructions),
        accesses,
        looked_for: looked_for(asked),
        approximate: approximate.map(|a| a.place.instruction.clone()).collect(),
        printed: results.printed,
        ..Document::new(launch, "the PTX emulator".into(), &results.buffers)
    };
    (document, results.buffers)
}

impl Document {
    /// Of a run on something, which left this in the buffers.
    pub fn new(launch: &Launch, ran_on: String, contents: &[Vec<u8>]) -> Document {
        let buffers = launch.buffers().zip(contents);
        Document {
            schema: "warpwright.run/1",
            kernel: launch.kernel.clone(),
            size: launch.size.clone(),
            ran_on,
            buffers: buffers.map(|(buffer, bytes)| told(buffer, bytes)).collect(),
            thread_instructions: None,
            accesses: None,
            looked_for: Vec::new(),
            approximate: Vec::new(),
            printed: String::new(),
        }
    }
}

fn told(buffer: &Buffer, bytes: &[u8]) -> BufferReport {
    let elements = bytes.chunks_exact(buffer.ty.size()).take(6);
    BufferReport {
        name: buffer.name.clone(),
        element: buffer.ty.name(),
        shape: buffer.shape.clone(),
        output: buffer.output,
        sha256: warpwright_driver::database::hash(&[bytes]),
        first: elements
            .map(|e| buffer.ty.to_f64(buffer.ty.read(e)))
            .collect(),
    }
}

/// What people see of it.
impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} ({}) on {}",
            source_name(&self.kernel),
            self.size,
            self.ran_on
        )?;
        if let Some(count) = self.thread_instructions {
            writeln!(f, "{count} thread instructions")?;
        }
        if !self.looked_for.is_empty() {
            writeln!(f, "none at this launch: {}", self.looked_for.join("; "))?;
        }
        for b in self.buffers.iter().filter(|b| b.output) {
            let shape: Vec<String> = b.shape.iter().map(ToString::to_string).collect();
            let ty = ElemType::from_name(b.element).unwrap_or(ElemType::F64);
            let first: Vec<String> = b.first.iter().map(|x| shown(ty, *x)).collect();
            writeln!(
                f,
                "  {} {}[{}]: {} …",
                b.name,
                b.element,
                shape.join("×"),
                first.join(", ")
            )?;
        }
        if let Some(accesses) = &self.accesses {
            write!(f, "{}", accesses.screen())?;
        }
        let mut approximate: BTreeMap<&str, usize> = BTreeMap::new();
        for text in &self.approximate {
            *approximate.entry(opcode(text)).or_default() += 1;
        }
        for (opcode, times) in approximate {
            writeln!(
                f,
                "  approximate on hardware: {opcode}, {}",
                count(times, "instruction")
            )?;
        }
        if !self.printed.is_empty() {
            writeln!(f, "printed:\n{}", self.printed.trim_end())?;
        }
        Ok(())
    }
}

/// Kernels that the second has alone: nothing runs them, so nothing is said of what launches them.
pub fn not_run(
    [known, all]: &[Vec<String>; 2],
    (first, second): (&str, &str),
) -> Vec<FunctionVerdict> {
    let others = all.iter().filter(|name| !known.contains(name));
    let verdict = |name: &String| {
        let text = format!(
            "undecided: not run, because `{first}` has no such kernel; what launches it in `{second}` may differ"
        );
        FunctionVerdict::of_run(name.clone(), "undecided", text)
    };
    others.map(verdict).collect()
}

/// A rewrite may execute so many times the original's instructions, and so many in any case (of warps).
const TIMES: u64 = 1000;
const LEAST_BUDGET: u64 = 1 << 24;

/// Runs both in the emulator with the same inputs. Equal outputs on one input prove nothing about
/// others, so the best verdict is "undecided", said as such. Where the original faults that is all that is said: the
/// verdict is the error then.
///
/// `set` are the sizes that were changed, `fuel` limits the work of both, and `guesses` says what the description guesses.
///
/// # Errors
/// The emulator does not take one of them.
pub fn both_in_emulator(
    (a, b): (&Module, &Module),
    (launch, set): (&Launch, &[String]),
    inputs: &[Vec<u8>],
    given: Option<u64>,
    guesses: &dyn Fn() -> Option<String>,
) -> Result<Result<FunctionVerdict, FunctionVerdict>, Error> {
    let run = |module: &Module, options: &Options| {
        let program = Emulator::new(module, &launch.kernel)?;
        Ok::<_, Error>(program.run(launch, inputs.to_vec(), options)?)
    };
    let verdict = |verdict, text| FunctionVerdict::of_run(launch.kernel.clone(), verdict, text);
    let all = Options::default();
    let fuel = given.unwrap_or(u64::MAX);
    let all = Options {
        budget: all.budget.min(fuel),
        total: all.total.min(fuel),
        ..all
    };
    let (first, executed) = match run(a, &all)? {
        Outcome::Finished(results) => (results.buffers, results.statistics.warp_instructions),
        Outcome::Faulted(fault) if fault.kind == FaultKind::Budget && given.is_some() => {
            let text = format!(
                "undecided: the original `{}` is not at its end after {fuel} instructions of warps (--fuel)",
                a.name
            );
            return Ok(Err(verdict("undecided", text)));
        }
        Outcome::Faulted(fault) => {
            let guesses = guesses();
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
    let bounded = Options {
        budget: all.budget.min(most),
        total: all.total.min(most),
        ..all
    };
    let name = &b.name;
    let spent = bounded.total;
    Ok(match run(b, &bounded)? {
        Outcome::Finished(results) => Ok(compared((launch, set), inputs, &first, &results.buffers)),
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

/// What two runs with the same inputs left, compared: equal outputs prove nothing about others.
pub fn compared(
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
