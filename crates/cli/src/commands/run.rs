//! `warpwright run`: a kernel in the emulator or on the device, by its launch description.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use warpwright::run::{Asked, Document, among, in_emulator, kernels, kernels_of, materialize};
use warpwright::{Level, source_name};
use warpwright_autotune::launches::{guesses, nvcc as described_nvcc};
use warpwright_diag::Problem;
use warpwright_files::{self as files, contents, make_folder, write_into};
use warpwright_gpu::{Image, Process, WorkerCommand, run_once};
use warpwright_launch::{ContentsError, Launch, write_npy};

use super::print_json;
use crate::args::{Cli, RunArgs, RunSetup};
use crate::failure::Failure;
use crate::progress;
use crate::session;

/// Runs the command.
pub fn run(cli: &Cli, args: &RunArgs) -> Result<(), Failure> {
    let launch = described(&args.setup)?;
    let inputs = initial(&launch, args.setup.launch.as_deref())?;
    let input = files::read(&args.file)?;
    let nvcc = described_nvcc(&input, args.setup.launch.as_deref(), &args.nvcc)?;
    let tools = session::tools(cli, &nvcc)?;
    let kernel = args.setup.kernel.as_deref();
    let (document, launch, contents) = match args.setup.gpu {
        Some(ordinal) => {
            let (image, kernels) = match input.level {
                Level::Cubin | Level::Fat | Level::Ptx => {
                    (input.bytes.clone(), kernels_of(&input)?)
                }
                Level::Cuda | Level::Stencil => {
                    let module = tools.module(&input, None, true)?;
                    (module.source.as_bytes().to_vec(), kernels(&module))
                }
            };
            let launch = among(&launch, kernel, (&input.name, &kernels))?;
            let (ran_on, outputs) = run_on_device(image, &launch, &inputs, ordinal)?;
            (Document::new(&launch, ran_on, &outputs), launch, outputs)
        }
        None => {
            let compile = || tools.module(&input, None, true);
            let module = progress::waiting(progress::COMPILING, compile)?;
            let launch = among(&launch, kernel, (&input.name, &kernels(&module)))?;
            let (blocks, done) = (launch.grid_blocks(), AtomicU64::new(0));
            let what = format!("{} in the emulator: blocks", source_name(&launch.kernel));
            let asked = Asked {
                uninit: args.uninit,
                races: args.races,
                accesses: args.accesses,
                fuel: args.fuel,
            };
            let guesses = || guesses(args.setup.launch.as_deref());
            let run = || in_emulator((&module, &launch), inputs, &asked, &done, &guesses);
            let (document, contents) = progress::counted(blocks, &what, &done, run)?;
            (document, launch, contents)
        }
    };
    if let Some(folder) = &args.save {
        save(folder, &launch, &contents)?;
    }
    match args.json {
        true => print_json(&document)?,
        false => print!("{document}"),
    }
    Ok(())
}

/// The launch that `run` and `check --run` are given, at its small size unless another is named.
pub fn described(setup: &RunSetup) -> Result<Launch, Failure> {
    let Some(path) = &setup.launch else {
        return Err(Failure::Usage(
            "--launch L.toml is wanted: it says how to run the kernel (`warpwright launch X.cu` writes the start of one)".into(),
        ));
    };
    session::launch(path, (setup.size.as_deref(), "small"), &setup.set)
}

/// Initial contents of all buffers; files are looked for beside the description.
pub fn initial(launch: &Launch, path: Option<&Path>) -> Result<Vec<Vec<u8>>, Problem> {
    let folder = path.and_then(Path::parent).unwrap_or(Path::new(""));
    materialize(launch, &|name| {
        contents(&folder.join(name)).map_err(|e| ContentsError::Reader(e.to_string().into()))
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
    let mut process = Process::new(WorkerCommand::this_program(ordinal)?);
    let of = (Image::Bytes(image), launch, inputs);
    let outputs = run_once(&mut process, of, scratch.path(), LAUNCH_LIMIT_S)?;
    let outputs =
        outputs.map_err(|verdict| Failure::Rendered(format!("error: on the device: {verdict}")))?;
    let name = warpwright_gpu::devices()?
        .into_iter()
        .find(|d| d.ordinal == ordinal)
        .map_or_else(|| format!("GPU {ordinal}"), |d| d.name);
    Ok((name, outputs))
}

/// Saves every buffer as NAME.npy.
fn save(folder: &Path, launch: &Launch, contents: &[Vec<u8>]) -> Result<(), Problem> {
    make_folder(folder)?;
    for (buffer, bytes) in launch.buffers().zip(contents) {
        let npy = write_npy(buffer.ty, &buffer.shape, bytes);
        write_into(folder, &format!("{}.npy", buffer.name), &npy)?;
    }
    Ok(())
}
