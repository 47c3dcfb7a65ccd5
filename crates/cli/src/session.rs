//! What most commands start with: the toolkit, the GPU, the module, the launch description.

use std::cell::RefCell;
use std::path::Path;

pub use warpwright::front::{target, verified};
use warpwright::source::{Tools, Watch};
use warpwright::{Optimizer, Options};
use warpwright_autotune::launches;
use warpwright_launch::Launch;
use warpwright_pass::names::is_named;
use warpwright_report::screen::extents;
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::{FindOptions, NotFound, Toolkit};

use crate::args::{Cli, KernelArgs};
use crate::failure::Failure;
use crate::progress::{Bar, bar};
use warpwright::{Input, Level};

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
        watch: Box::new(Shown::default()),
    })
}

/// Rewrites on stderr.
#[derive(Default)]
struct Shown(RefCell<Option<Bar>>);

impl Watch for Shown {
    fn begins(&self, kernel: &str) {
        let what = format!(
            "{kernel}: writing faster kernels, and comparing them with the input in the emulator"
        );
        let shown = bar(None, &what);
        shown.turn();
        *self.0.borrow_mut() = Some(shown);
    }

    fn ends(&self) {
        drop(self.0.take());
    }

    fn tell(&self, note: &str) {
        eprintln!("note: {note}");
    }
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
    let nvcc = launches::nvcc(input, args.launch.as_deref(), nvcc)?;
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

/// Reads and resolves a launch description, with sizes changed by `--set`.
pub fn launch(path: &Path, size: (Option<&str>, &str), set: &[String]) -> Result<Launch, Failure> {
    Ok(launches::launch(path, size, &overrides(set)?)?)
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
    let launch = launch(path, (args.size.as_deref(), "full"), &[])?;
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
