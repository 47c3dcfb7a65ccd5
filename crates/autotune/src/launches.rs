//! What is known of a file's launches: from a description, from a run of its own program, from its code.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use warpwright_api::front::target;
use warpwright_api::own_launch::own_headers;
use warpwright_api::source::Tools;
use warpwright_api::trace::Trace;
use warpwright_api::{Counted, Input, Level};
use warpwright_cudac::File;
use warpwright_diag::Problem;
use warpwright_files::text;
use warpwright_host::{Code, Stated as Known, Traced, halved, whole_or_parts};
use warpwright_launch::{Launch, LaunchFile, Source};
use warpwright_pass::names::is_named;
use warpwright_target::Gpu;

use crate::draft::recorded;
use crate::own_run::Ran;

/// What somebody states of launches.
pub struct Stated<'a> {
    /// Only these kernels.
    pub kernels: &'a [String],
    /// The GPU.
    pub gpu: Option<&'a Gpu>,
    /// Threads per block of a kernel, by its symbol.
    pub block_of: &'a dyn Fn(&str) -> Option<[u32; 3]>,
    /// Dynamic shared memory per block, bytes.
    pub dynamic_smem: Option<u32>,
    /// The launch of a trace that counts.
    pub traced: Option<Traced>,
    /// The trace that this launch is from.
    pub traced_in: Option<&'a Trace>,
    /// Is a trace named?
    pub is_traced: bool,
    /// The launch description.
    pub launch: Option<&'a Path>,
    /// Its named set of sizes.
    pub size: Option<&'a str>,
}

/// The launches whose executions are counted: that which is described, else that which its program made, else the code's
/// own.
///
/// # Errors
/// The description is none.
pub fn counted(
    tools: &Tools<'_>,
    (input, file): (&Input, Option<&File>),
    stated: &Stated<'_>,
    (ran, until): (Option<&Ran>, Instant),
) -> Result<Vec<Counted>, Problem> {
    let file_of = stated.launch.map(launch_file);
    let described_in = file_of.transpose()?;
    let mut all = match (&described_in, stated.launch) {
        (Some(file), Some(path)) => described(stated.size, (file, path))?,
        _ => Vec::new(),
    };
    if let (Some(file), false) = (file, stated.is_traced) {
        let mut own =
            counted_launches(tools, (input, file), stated, (ran, until)).unwrap_or_default();
        own.retain(|own| {
            let symbol = &own.launch.kernel;
            let described = described_in.as_ref().map(LaunchFile::kernel);
            described.is_none_or(|name| !is_named(name, symbol))
        });
        all.extend(own);
    }
    Ok(all)
}

/// The launch that is described: at the size that is asked for, or as much smaller as it has to be.
fn described(
    size: Option<&str>,
    (file, path): (&LaunchFile, &Path),
) -> Result<Vec<Counted>, Problem> {
    let size = size_of(file, path, (size, "full"))?;
    let of_small: BTreeMap<&str, i64> = file.parameters("small").collect();
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let is_guessed = guesses(Some(path)).is_some();
    let sized = |shift: u32| {
        let names = file.parameters(&size);
        let names = names.map(|(name, whole)| {
            let small = of_small.get(name).copied();
            (name, whole, small.unwrap_or(whole))
        });
        let (sizes, smaller) = halved(names, shift);
        let is_smaller = smaller.is_some();
        let guesses = is_guessed.then(|| "guesses in its description".to_owned());
        let at = [Some(format!("size `{size}`")), guesses, smaller].into_iter();
        Some(Counted {
            launch: file.resolve(&size, &sizes).ok()?,
            folder: folder.clone(),
            at: at.flatten().collect::<Vec<_>>().join(", "),
            source: Source::Described,
            is_known_block: true,
            is_smaller,
            guessed: None,
        })
    };
    Ok(whole_or_parts(&sized))
}

/// Kernels of a file whose own launches are looked at.
const MOST_OWN: usize = 8;

/// The launches of a file's kernels to be run to count: those that its program made, and of other kernels the code's own,
/// as they are or else made small.
fn counted_launches(
    tools: &Tools<'_>,
    (input, file): (&Input, &File),
    kernels: &Stated<'_>,
    (ran, until): (Option<&Ran>, Instant),
) -> Option<Vec<Counted>> {
    let text = input.text().ok()?;
    let module = tools.module(input, None, true).ok()?;
    let own = || target(&module, None).ok();
    let gpu = kernels.gpu.copied().or_else(own)?;
    let nvcc = tools.nvcc;
    let read = (file, text, own_headers(&input.path, text, nvcc));
    let code = Code::new(read, (&module, nvcc), gpu);
    // What was seen, unless other blocks are stated.
    let seen = |symbol: &str| -> Vec<Counted> {
        let mut all = ran.map_or_else(Vec::new, |ran| ran.counted(&module, symbol));
        let stated = (kernels.block_of)(symbol);
        all.retain(|seen| stated.is_none_or(|block| block == seen.launch.block));
        all
    };
    let read = |symbol: &String| {
        let block = (kernels.block_of)(symbol);
        let seen = kernels.traced_in;
        let seen = seen.and_then(|trace| recorded(trace, &module, symbol));
        let stated = Known {
            block: block.filter(|_| kernels.traced.is_none()),
            dynamic_smem: kernels.dynamic_smem,
            traced: kernels.traced,
            seen: seen.as_ref(),
            ..Known::default()
        };
        code.counted(symbol, &stated, until)
    };
    let is_wanted = |symbol: &&String| {
        let mut names = kernels.kernels.iter();
        kernels.kernels.is_empty() || names.any(|name| is_named(name, symbol))
    };
    let mut all = Vec::new();
    let mut unseen = Vec::new();
    for symbol in code.symbols().iter().filter(is_wanted) {
        let seen = seen(symbol);
        if !seen.iter().any(Counted::fits) {
            unseen.push(symbol);
        }
        all.extend(seen);
    }
    if unseen.len() <= MOST_OWN {
        all.extend(unseen.into_iter().filter_map(read).flatten());
    }
    Some(all)
}

/// Reads and resolves a launch description. Without a size name: `full` if there is one, else the
/// only one.
///
/// # Errors
/// There is none in the file, or not of that size.
pub fn launch(
    path: &Path,
    size: (Option<&str>, &str),
    set: &[(String, i64)],
) -> Result<Launch, Problem> {
    let file = launch_file(path)?;
    let size = size_of(&file, path, size)?;
    file.resolve(&size, set)
        .map_err(|e| Problem::Input(e.to_string()))
}

/// The launch description in a file.
///
/// # Errors
/// There is none.
pub fn launch_file(path: &Path) -> Result<LaunchFile, Problem> {
    let text = text(path)?;
    LaunchFile::parse(&text, &path.display().to_string()).map_err(|e| Problem::Input(e.to_string()))
}

/// The size that was named, or else `fallback`, or else the only one.
///
/// # Errors
/// There are several.
pub fn size_of(
    file: &LaunchFile,
    path: &Path,
    (size, fallback): (Option<&str>, &str),
) -> Result<String, Problem> {
    let sizes: Vec<&str> = file.sizes().collect();
    let size = match (size, &sizes[..]) {
        (Some(size), _) => size,
        (None, names) if names.contains(&fallback) => fallback,
        (None, [only]) => only,
        (None, _) => {
            return Err(Problem::Input(format!(
                "`{}` has several sizes ({}); choose one with --size",
                path.display(),
                sizes.join(", ")
            )));
        }
    };
    Ok(size.to_owned())
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
fn described_nvcc(input: &Input, launch: Option<&Path>) -> Result<Vec<String>, Problem> {
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
///
/// # Errors
/// There is none in the file.
pub fn nvcc(input: &Input, launch: Option<&Path>, nvcc: &[String]) -> Result<Vec<String>, Problem> {
    let mut all = nvcc.to_vec();
    all.extend(described_nvcc(input, launch)?);
    Ok(all)
}
