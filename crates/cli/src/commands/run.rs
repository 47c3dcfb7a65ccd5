//! `warpwright run`: a kernel in the emulator or on the device, by its launch description.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use serde::Serialize;
use warpwright::optimise::launch_among;
use warpwright::{DeviceCode, shown};
use warpwright_diag::count;
use warpwright_emu::{DecodeError, EmuError, Emulator, FaultKind, Options, Outcome, Results};
use warpwright_gpu::{Image, Process, Variant, WorkerCommand, prepare};
use warpwright_launch::{ContentsError, ElemType, Launch, write_npy};
use warpwright_pass::names::{is_named, source_name};
use warpwright_ptx::Module;
use warpwright_report::accesses::AccessReport;

use super::print_json;
use crate::args::{Cli, RunArgs, RunSetup};
use crate::failure::Failure;
use crate::input::{self, Input, Level, contents, make_folder, write_into};
use crate::progress;
use crate::session;

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

#[derive(Serialize)]
struct Document {
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

impl From<DecodeError> for Failure {
    fn from(e: DecodeError) -> Self {
        Failure::input(e.to_string())
    }
}

impl From<EmuError> for Failure {
    fn from(e: EmuError) -> Self {
        match e {
            EmuError::Launch { .. } => Failure::input(e.to_string()),
            EmuError::Internal(_) => Failure::Internal(e.to_string()),
        }
    }
}

/// `ex2.approx.f32` of `@%p1 ex2.approx.f32 %f1, %f2`.
fn opcode(instruction: &str) -> &str {
    let mut words = instruction.split_whitespace();
    let opcode = words.find(|word| !word.starts_with('@'));
    opcode.unwrap_or(instruction).trim_end_matches(';')
}

/// Runs the command.
pub fn run(cli: &Cli, args: &RunArgs) -> Result<(), Failure> {
    let launch = described(&args.setup)?;
    let inputs = materialize(&launch, args.setup.launch.as_deref())?;
    let input = input::read(&args.file)?;
    let document = match args.setup.gpu {
        Some(ordinal) => on_device(cli, args, &input, &launch, inputs, ordinal)?,
        None => in_emulator(cli, args, &input, &launch, inputs)?,
    };
    if args.json {
        return print_json(&document);
    }
    print(&document);
    Ok(())
}

/// The launch that `run` and `check --run` are given, at its small size unless another is named.
pub fn described(setup: &RunSetup) -> Result<Launch, Failure> {
    let Some(path) = &setup.launch else {
        return Err(Failure::Usage(
            "--launch L.toml is wanted: it says how to run the kernel (`warpwright launch X.cu` writes the start of one)".into(),
        ));
    };
    session::launch(path, setup.size.as_deref(), "small", &setup.set)
}

/// The same with the symbol of the kernel that it names, of those of a file; `--kernel` has to name it, too.
pub fn among(
    launch: &Launch,
    setup: &RunSetup,
    (file, kernels): (&str, &[String]),
) -> Result<Launch, Failure> {
    let launch = launch_among(launch, file, kernels)?;
    match &setup.kernel {
        Some(kernel) if !is_named(kernel, &launch.kernel) => Err(Failure::input(format!(
            "--kernel {kernel}, but the launch description is for `{}`",
            source_name(&launch.kernel)
        ))),
        _ => Ok(launch),
    }
}

/// The symbols of a module's kernels.
pub fn kernels(module: &Module) -> Vec<String> {
    module.kernels().map(|(_, f)| f.name.to_string()).collect()
}

/// The same of what a device is given as it is.
pub fn kernels_of(input: &Input) -> Result<Vec<String>, Failure> {
    match input.level {
        Level::Cubin | Level::Fat => Ok(DeviceCode::of(input, None)?.functions()),
        _ => Ok(kernels(&session::parse(&input.name, input.text()?)?)),
    }
}

/// What the buffers of a launch may take together: the host holds them several times over.
const MOST_BYTES: u64 = 4 << 30;

/// Initial contents of all buffers; files are looked for beside the description.
pub fn materialize(launch: &Launch, path: Option<&Path>) -> Result<Vec<Vec<u8>>, Failure> {
    let folder = path
        .and_then(Path::parent)
        .map(Path::to_path_buf)
        .unwrap_or_default();
    let files = |name: &str| {
        contents(&folder.join(name)).map_err(|e| ContentsError::Reader(e.to_string().into()))
    };
    let bytes = launch.buffers().map(|b| b.size() as u64);
    let total = bytes.fold(0, u64::saturating_add);
    if total > MOST_BYTES {
        return Err(Failure::input(format!(
            "the buffers of `{}` at size `{}` take {total} bytes; `run` and `check` take {MOST_BYTES} at most",
            launch.kernel, launch.size
        )));
    }
    launch
        .buffers()
        .map(|b| {
            b.materialize(&files)
                .map_err(|e| Failure::input(e.to_string()))
        })
        .collect()
}

fn in_emulator(
    cli: &Cli,
    args: &RunArgs,
    input: &Input,
    launch: &Launch,
    inputs: Vec<Vec<u8>>,
) -> Result<Document, Failure> {
    let nvcc = session::nvcc(input, args.setup.launch.as_deref(), &args.nvcc)?;
    let compile = || session::module(cli, input, None, &nvcc, true);
    let module = progress::waiting(progress::COMPILING, compile)?;
    let launch = &among(launch, &args.setup, (&input.name, &kernels(&module)))?;
    let program = Emulator::new(&module, &launch.kernel)?;
    let mut options = Options {
        uninitialised: args.uninit,
        races: args.races,
        patterns: args.accesses,
        ..Options::default()
    };
    if let Some(fuel) = args.fuel {
        (options.budget, options.total) = (fuel, fuel);
    }
    let (blocks, done) = (launch.grid_blocks(), AtomicU64::new(0));
    let what = format!("{} in the emulator: blocks", source_name(&launch.kernel));
    let run = || program.run_counting(launch, inputs, &options, &done);
    match progress::counted(blocks, &what, &done, run)? {
        Outcome::Finished(results) => finished(args, launch, &module, results),
        Outcome::Faulted(fault) if fault.kind == FaultKind::Budget && args.fuel.is_some() => {
            Err(Failure::Rendered(format!(
                "error: the launch is not at its end after as much as --fuel permits: give it more, or a smaller \
                 size (--size, --set)\n\n{fault}"
            )))
        }
        Outcome::Faulted(fault) => {
            // Sizes and contents decide which addresses there are, and no race.
            let launch = args.setup.launch.as_deref();
            let launch = launch.filter(|_| fault.kind != FaultKind::SharedRace);
            let guesses = session::guesses(launch);
            let guesses = guesses.map_or_else(String::new, |text| format!("\nnote: {text}"));
            let fault = fault.to_string();
            Err(Failure::Rendered(format!(
                "error: the program is at fault\n\n{}{guesses}",
                fault.trim_end()
            )))
        }
    }
}

/// What the emulator stops at where it is asked to.
fn looked_for(args: &RunArgs) -> Vec<&'static str> {
    let asked = [
        (args.races, "races of warps in shared memory"),
        (
            args.uninit,
            "reads of shared memory and registers that nobody has written",
        ),
    ];
    let asked = asked.into_iter().filter(|(is_asked, _)| *is_asked);
    asked.map(|(_, what)| what).collect()
}

fn finished(
    args: &RunArgs,
    launch: &Launch,
    module: &Module,
    results: Results,
) -> Result<Document, Failure> {
    let accesses = module.function(&launch.kernel).and_then(|id| {
        let counts = &results.statistics.instructions;
        AccessReport::new(module, id, counts, &format!("size `{}`", launch.size))
    });
    let buffers = report(launch, &results.buffers, args.save.as_deref())?;
    let approximate = results
        .approximate
        .iter()
        .map(|a| a.place.instruction.clone())
        .collect();
    Ok(Document {
        schema: "warpwright.run/1",
        kernel: launch.kernel.clone(),
        size: launch.size.clone(),
        ran_on: "the PTX emulator".into(),
        buffers,
        thread_instructions: Some(results.statistics.thread_instructions),
        accesses,
        looked_for: looked_for(args),
        approximate,
        printed: results.printed,
    })
}

fn on_device(
    cli: &Cli,
    args: &RunArgs,
    input: &Input,
    launch: &Launch,
    inputs: Vec<Vec<u8>>,
    ordinal: u32,
) -> Result<Document, Failure> {
    let (image, kernels) = match input.level {
        Level::Cubin | Level::Fat | Level::Ptx => (input.bytes.clone(), kernels_of(input)?),
        Level::Cuda | Level::Stencil => {
            let nvcc = session::nvcc(input, args.setup.launch.as_deref(), &args.nvcc)?;
            let module = session::module(cli, input, None, &nvcc, true)?;
            (module.source.as_bytes().to_vec(), kernels(&module))
        }
    };
    let launch = &among(launch, &args.setup, (&input.name, &kernels))?;
    let (ran_on, outputs) = run_on_device(image, launch, &inputs, ordinal)?;
    Ok(Document {
        schema: "warpwright.run/1",
        kernel: launch.kernel.clone(),
        size: launch.size.clone(),
        ran_on,
        buffers: report(launch, &outputs, args.save.as_deref())?,
        thread_instructions: None,
        accesses: None,
        looked_for: Vec::new(),
        approximate: Vec::new(),
        printed: String::new(),
    })
}

/// Longest that one launch may take, in seconds.
const LAUNCH_LIMIT_S: f64 = 60.0;

/// One run in a child process: the device's name, and every buffer's contents afterwards.
pub fn run_on_device(
    image: Vec<u8>,
    launch: &Launch,
    inputs: &[Vec<u8>],
    ordinal: u32,
) -> Result<(String, Vec<Vec<u8>>), Failure> {
    let scratch = tempfile::tempdir().map_err(|e| Failure::input(e.to_string()))?;
    let files = |name: &str| Err(ContentsError::NotCarried(name.to_owned()));
    let job = prepare(launch, scratch.path(), &files)?;
    let mut backend = Process::new(WorkerCommand::this_program(ordinal)?);
    let variant = Variant::new("this kernel", Image::Bytes(image));
    let run = warpwright_gpu::run(&mut backend, &job, &variant, LAUNCH_LIMIT_S)?;
    if !run.verdict.is_correct() {
        return Err(Failure::Rendered(format!(
            "error: on the device: {}",
            run.verdict
        )));
    }
    let mut outputs = run.outputs.into_iter();
    let contents = launch
        .buffers()
        .zip(inputs)
        .map(|(buffer, input)| match buffer.output {
            true => outputs.next().map(|o| o.1).unwrap_or_default(),
            false => input.clone(),
        })
        .collect();
    let name = warpwright_gpu::devices()?
        .into_iter()
        .find(|d| d.ordinal == ordinal)
        .map_or_else(|| format!("GPU {ordinal}"), |d| d.name);
    Ok((name, contents))
}

fn report(
    launch: &Launch,
    contents: &[Vec<u8>],
    save: Option<&Path>,
) -> Result<Vec<BufferReport>, Failure> {
    if let Some(folder) = save {
        make_folder(folder)?;
    }
    let mut reports = Vec::new();
    for (buffer, bytes) in launch.buffers().zip(contents) {
        if let Some(folder) = save {
            let npy = write_npy(buffer.ty, &buffer.shape, bytes);
            write_into(folder, &format!("{}.npy", buffer.name), &npy)?;
        }
        let elements = bytes.chunks_exact(buffer.ty.size()).take(6);
        reports.push(BufferReport {
            name: buffer.name.clone(),
            element: buffer.ty.name(),
            shape: buffer.shape.clone(),
            output: buffer.output,
            sha256: warpwright_driver::database::hash(&[bytes]),
            first: elements
                .map(|e| buffer.ty.to_f64(buffer.ty.read(e)))
                .collect(),
        });
    }
    Ok(reports)
}

fn print(document: &Document) {
    println!(
        "{} ({}) on {}",
        source_name(&document.kernel),
        document.size,
        document.ran_on
    );
    if let Some(count) = document.thread_instructions {
        println!("{count} thread instructions");
    }
    if !document.looked_for.is_empty() {
        println!("none at this launch: {}", document.looked_for.join("; "));
    }
    for b in document.buffers.iter().filter(|b| b.output) {
        let shape: Vec<String> = b.shape.iter().map(ToString::to_string).collect();
        let ty = ElemType::from_name(b.element).unwrap_or(ElemType::F64);
        let first: Vec<String> = b.first.iter().map(|x| shown(ty, *x)).collect();
        println!(
            "  {} {}[{}]: {} …",
            b.name,
            b.element,
            shape.join("×"),
            first.join(", ")
        );
    }
    if let Some(accesses) = &document.accesses {
        print!("{}", accesses.screen());
    }
    let mut approximate: BTreeMap<&str, usize> = BTreeMap::new();
    for text in &document.approximate {
        *approximate.entry(opcode(text)).or_default() += 1;
    }
    for (opcode, times) in approximate {
        println!(
            "  approximate on hardware: {opcode}, {}",
            count(times, "instruction")
        );
    }
    if !document.printed.is_empty() {
        println!("printed:\n{}", document.printed.trim_end());
    }
}
