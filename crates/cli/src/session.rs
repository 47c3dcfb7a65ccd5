//! What most commands start with: the toolkit, the GPU, the module, the launch description.

use std::cell::RefCell;
use std::path::Path;

use warpwright::front::Compile;
pub use warpwright::front::{parse, target, verified};
use warpwright::source::{Tools, Watch};
use warpwright::{Optimizer, Options};
use warpwright_launch::{Launch, LaunchFile};
use warpwright_pass::names::is_named;
use warpwright_ptx::Module;
use warpwright_report::screen::extents;
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::{FindOptions, NotFound, Toolkit};

use crate::args::{Cli, KernelArgs};
use crate::failure::Failure;
use crate::progress::{Bar, bar};
use warpwright::{Input, Level};
use warpwright_files::{self as files};

/// Finds the toolkit, or fetches it first if the user asked for that.
pub fn toolkit(cli: &Cli) -> Result<Toolkit, Failure> {
    Ok(found(cli)??)
}

/// The same, and why there is none.
fn found(cli: &Cli) -> Result<Result<Toolkit, NotFound>, Failure> {
    let options = FindOptions {
        explicit_dir: cli.toolkit.clone(),
    };
    match Toolkit::find(&options) {
        Err(NotFound::Anywhere) if cli.fetch_toolkit => {
            crate::commands::toolkit::install(None)?;
            Ok(Toolkit::find(&options))
        }
        found => Ok(found),
    }
}

/// What sources are read and built with, and rewritten before somebody's eyes.
pub fn tools<'a>(cli: &Cli, nvcc: &'a [String]) -> Result<Tools<'a>, Failure> {
    Ok(Tools {
        toolkit: found(cli)?,
        nvcc,
        watch: Box::new(Shown {
            is_quiet: cli.quiet,
            bar: RefCell::default(),
        }),
    })
}

/// Rewrites on stderr.
struct Shown {
    is_quiet: bool,
    bar: RefCell<Option<Bar>>,
}

impl Watch for Shown {
    fn begins(&self, kernel: &str) {
        let what = format!(
            "{kernel}: writing faster kernels, and comparing them with the input in the emulator"
        );
        let shown = bar(None, &what);
        shown.turn();
        *self.bar.borrow_mut() = Some(shown);
    }

    fn ends(&self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn tell(&self, note: &str) {
        if !self.is_quiet {
            eprintln!("note: {note}");
        }
    }
}

/// FILE as a PTX module: CUDA C goes through nvcc (with source lines if wanted), a cubin is refused.
pub fn module(
    cli: &Cli,
    input: &Input,
    gpu: Option<&Gpu>,
    nvcc: &[String],
    lineinfo: bool,
) -> Result<Module, Failure> {
    let compile = Compile {
        gpu,
        nvcc,
        lineinfo,
        takes_limit: false,
    };
    let toolkit = match input.level {
        Level::Cuda => Some(toolkit(cli)?),
        _ => None,
    };
    Ok(warpwright::front::module(
        toolkit.as_ref(),
        input,
        &compile,
    )?)
}

/// What FILE is to be optimised or explained with; ptxas is for what is not machine code yet.
pub fn optimizer(cli: &Cli, input: &Input) -> Result<Optimizer, Failure> {
    let toolkit = match (input.level, toolkit(cli)) {
        (Level::Cubin | Level::Fat, _) => None,
        (_, Ok(toolkit)) => Some(toolkit),
        // What was asked for by name, and what cannot be done without.
        (Level::Cuda, Err(failure)) => return Err(failure),
        (_, Err(failure)) if cli.toolkit.is_some() || cli.fetch_toolkit => return Err(failure),
        _ => None,
    };
    Ok(Optimizer::with(toolkit))
}

/// What the options of a command state about kernels, launches and nvcc.
pub fn options(input: &Input, args: &KernelArgs, nvcc: &[String]) -> Result<Options, Failure> {
    let nvcc = self::nvcc(input, args.launch.as_deref(), nvcc)?;
    Ok(Options {
        gpu: named_gpu(args.gpu.as_deref())?,
        kernels: args.kernels.clone(),
        block: args.block_of_all(),
        blocks: args.blocks(),
        dynamic_smem: args.dynamic_smem,
        grid: args.launched_blocks(),
        launch: kernel_launch(args)?,
        nvcc,
        ..Options::default()
    })
}

/// The GPU that the user named.
pub fn named_gpu(name: Option<&str>) -> Result<Option<Gpu>, Failure> {
    name.map(|n| lookup(n).map_err(|e| Failure::input(e.to_string())))
        .transpose()
}

/// Reads and resolves a launch description. Without a size name: `full` if there is one, else the
/// only one.
pub fn launch(
    path: &Path,
    size: Option<&str>,
    fallback: &str,
    set: &[String],
) -> Result<Launch, Failure> {
    let file = launch_file(path)?;
    let size = size_of(&file, path, (size, fallback))?;
    file.resolve(&size, &overrides(set)?)
        .map_err(|e| Failure::input(e.to_string()))
}

/// The launch description in a file.
pub fn launch_file(path: &Path) -> Result<LaunchFile, Failure> {
    let text = files::text(path)?;
    LaunchFile::parse(&text, &path.display().to_string()).map_err(|e| Failure::input(e.to_string()))
}

/// The size that was named, or else `fallback`, or else the only one.
pub fn size_of(
    file: &LaunchFile,
    path: &Path,
    (size, fallback): (Option<&str>, &str),
) -> Result<String, Failure> {
    let sizes: Vec<&str> = file.sizes().collect();
    let size = match (size, &sizes[..]) {
        (Some(size), _) => size,
        (None, names) if names.contains(&fallback) => fallback,
        (None, [only]) => only,
        (None, _) => {
            return Err(Failure::input(format!(
                "`{}` has several sizes ({}); choose one with --size",
                path.display(),
                sizes.join(", ")
            )));
        }
    };
    Ok(size.to_owned())
}

/// `--set NAME=VALUE`
pub fn overrides(set: &[String]) -> Result<Vec<(String, i64)>, Failure> {
    let one = |pair: &String| {
        let wanted = |what: &str| Failure::Usage(format!("--set {pair}: {what}"));
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| wanted("NAME=VALUE is wanted"))?;
        let number = value.trim().parse();
        let number = number
            .map_err(|_| wanted(&format!("`{}` is no whole number of 64 bits", value.trim())))?;
        Ok((name.trim().to_owned(), number))
    };
    set.iter().map(one).collect()
}

/// What a launch description marks as guesses, for who blames the program: a wrong one faults as well.
pub fn guesses(launch: Option<&Path>) -> Option<String> {
    let path = launch?;
    let file = launch_file(path).ok()?;
    let lines: Vec<String> = file.guesses().iter().map(usize::to_string).collect();
    let (last, first) = lines.split_last()?;
    let lines = match first {
        [] => format!("line {last} is a guess"),
        first => format!("lines {} and {last} are guesses", first.join(", ")),
    };
    Some(format!(
        "in `{}` {lines}: a wrong one faults as well",
        path.display()
    ))
}

/// Options of nvcc behind which a header or a folder of headers stands.
const PATHS: [&str; 6] = [
    "-I",
    "--include-path",
    "-isystem",
    "--system-include",
    "-include",
    "--pre-include",
];

/// The nvcc options that a launch description asks for, when the input is CUDA C.
pub fn described_nvcc(input: &Input, launch: Option<&Path>) -> Result<Vec<String>, Failure> {
    let (Level::Cuda, Some(path)) = (input.level, launch) else {
        return Ok(Vec::new());
    };
    let file = launch_file(path)?;
    // As `source`, headers and their folders are relative to the description; or to where we are.
    let folder = path.parent().unwrap_or(Path::new(""));
    let beside = |name: &str| {
        let place = folder.join(name);
        match place.exists() {
            true => place.to_string_lossy().into_owned(),
            false => name.to_owned(),
        }
    };
    let mut options = Vec::new();
    let mut is_path = false;
    for option in file.nvcc() {
        options.push(match option.strip_prefix("-I") {
            _ if is_path => beside(option),
            Some(name) if !name.is_empty() => format!("-I{}", beside(name)),
            _ => option.clone(),
        });
        is_path = PATHS.contains(&&**option);
    }
    Ok(options)
}

/// The arguments for nvcc of a command line, and those of the launch description of an input.
pub fn nvcc(input: &Input, launch: Option<&Path>, nvcc: &[String]) -> Result<Vec<String>, Failure> {
    let mut all = nvcc.to_vec();
    all.extend(described_nvcc(input, launch)?);
    Ok(all)
}

/// The first of some options that is given.
pub fn first_given(options: &[(&'static str, bool)]) -> Option<&'static str> {
    let mut given = options.iter().filter(|(_, is_given)| *is_given);
    given.next().map(|(name, _)| *name)
}

/// The launch description of `--launch`, if one was named.
pub fn kernel_launch(args: &KernelArgs) -> Result<Option<Launch>, Failure> {
    let Some(path) = &args.launch else {
        if args.size.is_some() {
            return Err(Failure::Usage("--size needs --launch".into()));
        }
        return Ok(None);
    };
    let launch = launch(path, args.size.as_deref(), "full", &[])?;
    let blocks = args.block.iter().filter(|block| {
        let kernel = block.kernel.as_deref();
        kernel.is_none_or(|name| is_named(name, &launch.kernel))
    });
    let other = blocks
        .map(|block| block.dims)
        .find(|dims| *dims != launch.block);
    let contradicts = |option: String, described: String| {
        Err(Failure::Usage(format!(
            "{option} contradicts `{}`, whose launch has {described}: leave one of them out",
            path.display()
        )))
    };
    if let Some(dims) = other {
        let option = format!("--block {}", extents(dims));
        return contradicts(option, format!("blocks of {}", extents(launch.block)));
    }
    match args.dynamic_smem {
        Some(bytes) if bytes != launch.dynamic_smem => contradicts(
            format!("--dynamic-smem {bytes}"),
            format!("{} bytes", launch.dynamic_smem),
        ),
        _ => Ok(Some(launch)),
    }
}
