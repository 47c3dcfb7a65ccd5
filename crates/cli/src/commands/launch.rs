//! `warpwright launch`: the start of a launch description, from the code's own launch or from a trace. What is guessed
//! says so.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use warpwright::Counted;
use warpwright::own_launch::own_headers;
use warpwright::ran::{Contents, given};
use warpwright::source::read::read;
use warpwright::trace::Trace;
use warpwright_cudac::File;
use warpwright_host::{Code, Described, Stated, Traced, Trial};
use warpwright_launch::{Launch, LaunchFile};
use warpwright_pass::names::{base_name, is_named, selected, source_name};
use warpwright_ptx::Module;

use super::inplace::document;
use super::own_run::{self, Ran};
use crate::args::{Cli, KernelArgs, LaunchArgs};
use crate::failure::Failure;
use crate::input::{self, Input, Level, make_folder, write_atomically};
use crate::{progress, session};

/// Runs the command.
pub fn run(cli: &Cli, args: &LaunchArgs) -> Result<(), Failure> {
    let until = own_run::until(args.budget);
    let input = input::read(&args.file)?;
    if input.level != Level::Cuda {
        return Err(Failure::input(format!(
            "`{}` is no CUDA C: the names and types of parameters stand in the source alone",
            input.name
        )));
    }
    let tools = session::tools(cli, &args.nvcc)?;
    let compile = || {
        let file = read(&tools, &input, None)?;
        let module = session::module(cli, &input, None, &args.nvcc, true)?;
        Ok::<_, Failure>((file, module))
    };
    let (file, module) = progress::waiting(progress::COMPILING, compile)?;
    let run = || own_run::run(cli, &input, args.wanted());
    let ran = match (&args.trace, args.block) {
        (None, None) => progress::waiting(own_run::DOING, run),
        _ => None,
    };
    let text = input.text()?;
    let read = (&file, text, own_headers(&input.path, text, &args.nvcc));
    let job = Job {
        code: Code::new(read, (&module, &args.nvcc), session::target(&module, None)?),
        module: &module,
        args,
        ran: ran.as_ref(),
        until,
    };
    if let Some(folder) = args.folder() {
        return into_folder(&input, &job, folder);
    }
    if let Some(output) = &args.output {
        is_free(output, args.force)?;
    }
    let made = job.describe(args.kernel.as_deref(), args.output.as_deref(), until)?;
    match &args.output {
        Some(output) => made.write(output)?,
        None => {
            if let Trial::Faults { .. } = made.trial {
                eprintln!("warning: {}", said(&made.trial));
            }
            crate::terminal::document(&made.text);
        }
    }
    made.ended()
}

/// A description of each kernel that is wanted, in a folder, by the kernel's name.
fn into_folder(input: &Input, job: &Job<'_>, folder: &Path) -> Result<(), Failure> {
    let symbols = job.code.symbols();
    let wanted: Vec<&str> = match job.args.kernel.as_deref() {
        Some(wanted) => selected(wanted, symbols),
        None => symbols.iter().map(String::as_str).collect(),
    };
    if let ([], Some(wanted)) = (&wanted[..], job.args.kernel.as_deref()) {
        job.code.kernel(Some(wanted))?;
    }
    let mut names: Vec<String> = Vec::new();
    let mut made_some = false;
    let mut worst = Ok(());
    let is_new = !folder.exists();
    make_folder(folder)?;
    let count = wanted.len();
    for (at, symbol) in wanted.into_iter().enumerate() {
        let base = base_name(symbol);
        let same = names.iter().filter(|name| **name == base).count();
        names.push(base.clone());
        let output = folder.join(match same {
            0 => format!("{base}.toml"),
            same => format!("{base}_{}.toml", same + 1),
        });
        let made = is_free(&output, job.args.force)
            .and_then(|()| job.describe(Some(symbol), Some(&output), job.share(count - at)));
        match made {
            Ok(made) => {
                made.write(&output)?;
                made_some = true;
                if worst.is_ok() {
                    worst = made.ended();
                }
            }
            Err(failure) => {
                println!("left out {}: {}", source_name(symbol), failure.shown());
                worst = Err(Failure::Quiet(failure.code()));
            }
        }
    }
    if is_new && !made_some {
        // Only an empty one goes.
        let _ = std::fs::remove_dir(folder);
    }
    match names.is_empty() {
        true => Err(Failure::input(format!("`{}` has no kernel", input.name))),
        false => worst,
    }
}

/// What is said of one whose outputs tell nothing.
const ZEROS: &str = "with what its buffers begin with, outputs become zero or stay as they are";

/// A description.
struct Made {
    text: String,
    trial: Trial,
    /// Which of several launches it is, in words.
    launched: Option<String>,
}

impl Made {
    /// Writes it and says so.
    fn write(&self, output: &Path) -> Result<(), Failure> {
        write_atomically(output, self.text.as_bytes())?;
        if output == Path::new("-") {
            return Ok(());
        }
        println!("wrote {}: {}", output.display(), said(&self.trial));
        if let Some(said) = &self.launched {
            println!("  {said}");
        }
        Ok(())
    }
}

impl Made {
    /// Nobody is to take for good what faults.
    fn ended(&self) -> Result<(), Failure> {
        match self.trial {
            Trial::Faults { is_long: false, .. } => Err(Failure::Quiet(FAULTS)),
            _ => Ok(()),
        }
    }
}

/// The exit code where something was written that is not decided to be right.
const FAULTS: u8 = 5;

/// What the trial of a description says to who wrote it.
fn said(trial: &Trial) -> String {
    match trial {
        Trial::Runs => "look at what it marks as a guess".to_owned(),
        Trial::Zeros => format!("look at what it marks as a guess; {ZEROS}"),
        Trial::Faults {
            is_long: true, why, ..
        } => format!("{why}; look at what it marks as a guess"),
        Trial::Faults { why, .. } => {
            format!("it FAULTS at its small size and wants a look: {why}")
        }
        Trial::Unknown(why) => {
            format!("look at what it marks as a guess; the emulator could not try it: {why}")
        }
    }
}

/// A file whose launches are described.
struct Job<'a> {
    code: Code<'a>,
    module: &'a Module,
    args: &'a LaunchArgs,
    ran: Option<&'a Ran>,
    /// No other guess is tried later than this.
    until: Instant,
}

impl Job<'_> {
    /// Until when one of so many kernels that are left may be tried.
    fn share(&self, left: usize) -> Instant {
        let now = Instant::now();
        now + self.until.saturating_duration_since(now) / u32::try_from(left).unwrap_or(u32::MAX)
    }

    /// The description of a kernel, and what came of running it.
    fn describe(
        &self,
        wanted: Option<&str>,
        output: Option<&Path>,
        until: Instant,
    ) -> Result<Made, Failure> {
        let kernel = self.code.kernel(wanted)?;
        let symbol = &kernel.symbol;
        let of = |ran: &Ran| given(&ran.trace, &ran.contents, self.module, symbol);
        let seen = match &self.args.trace {
            Some(path) => recorded(&document::read(path)?, self.module, symbol),
            None => self.ran.and_then(of),
        };
        let stated = Stated {
            block: self.args.block,
            dynamic_smem: self.args.dynamic_smem,
            traced: traced(self.args, self.ran, symbol)?,
            seen: seen.as_ref(),
        };
        let what = format!("{}: trying its launch in the emulator", source_name(symbol));
        let describe = || self.code.describe(&kernel, &stated, until);
        let Described { draft, trial } = progress::waiting(&what, describe)?;
        let source = source(&self.args.file, output);
        let body = draft.text(&source, &options(&self.args.nvcc, output));
        let text = format!("{MARK}{}{}\n{body}", stamp(&body), about(&trial));
        // What is written has to be what is read.
        LaunchFile::parse(&text, "the description")
            .and_then(|file| file.resolve("small", &[]))
            .map_err(|e| {
                Failure::input(format!(
                    "the launch of `{}` in the code has no description that can be run; write one by hand \
                     (docs/launch.md): {e}",
                    source_name(symbol)
                ))
            })?;
        Ok(Made {
            text,
            trial,
            launched: draft.launched.said(),
        })
    }
}

/// What the first line of a description says behind who wrote it.
fn about(trial: &Trial) -> String {
    match trial {
        Trial::Runs => {
            "; the emulator runs it at `small`. Lines with `guess` want a look.".to_owned()
        }
        Trial::Zeros => format!(
            "; the emulator runs it at `small`, and {ZEROS}. Lines with `guess` want a look."
        ),
        Trial::Faults {
            is_long: true, why, ..
        } => format!("; {why}"),
        Trial::Faults { why, .. } => format!("; it FAULTS at `small` and wants a look: {why}"),
        Trial::Unknown(why) => format!("; the emulator could not try it: {why}"),
    }
}

/// What the first line of each description begins with.
const MARK: &str = "# A start, by `warpwright launch`";

/// Tells a description that somebody changed from one that is as it was written.
fn stamp(body: &str) -> String {
    let digest = warpwright_driver::database::hash(&[body.as_bytes()]);
    format!(" ({})", digest.get(..8).unwrap_or_default())
}

/// Is a file of this text as this command has written it?
fn is_own(text: &str) -> bool {
    let Some((first, body)) = text.split_once('\n') else {
        return false;
    };
    let rest = first.strip_prefix(MARK);
    rest.is_some_and(|rest| rest.starts_with(&stamp(body)))
}

/// Bytes of a description that is looked at.
const LARGEST: u64 = 1 << 20;

/// Kernels of a file whose own launches are looked at.
const MOST_OWN: usize = 8;

/// The launches of a file's kernels to be run to count: those that its program made, and of other kernels the code's own,
/// as they are or else made small.
pub fn counted_launches(
    cli: &Cli,
    (input, file): (&Input, &File),
    kernels: &KernelArgs,
    nvcc: &[String],
    (ran, until): (Option<&Ran>, Instant),
) -> Option<Vec<Counted>> {
    let text = input.text().ok()?;
    let module = session::module(cli, input, None, nvcc, true).ok()?;
    let gpu = session::named_gpu(kernels.gpu.as_deref()).ok()?;
    let own = || session::target(&module, None).ok();
    let gpu = gpu.or_else(own)?;
    let read = (file, text, own_headers(&input.path, text, nvcc));
    let code = Code::new(read, (&module, nvcc), gpu);
    // What was seen, unless other blocks are stated.
    let seen = |symbol: &str| -> Vec<Counted> {
        let mut all = ran.map_or_else(Vec::new, |ran| ran.counted(&module, symbol));
        let stated = kernels.block_of(symbol);
        all.retain(|seen| stated.is_none_or(|block| block == seen.launch.block));
        all
    };
    let read = |symbol: &String| {
        let block = kernels.block_of(symbol);
        let trace = kernels.traced_in.as_deref();
        let seen = trace.and_then(|trace| recorded(trace, &module, symbol));
        let stated = Stated {
            block: block.filter(|_| kernels.traced.is_none()),
            dynamic_smem: kernels.dynamic_smem,
            traced: kernels.traced,
            seen: seen.as_ref(),
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

/// Is there no file of another's in the place of the description?
fn is_free(output: &Path, force: bool) -> Result<(), Failure> {
    let is_file = std::fs::metadata(output).is_ok_and(|m| m.is_file() && m.len() > 0);
    if force || !is_file {
        return Ok(());
    }
    // It is no input.
    let mut text = Vec::new();
    let read =
        std::fs::File::open(output).and_then(|file| file.take(LARGEST).read_to_end(&mut text));
    if read.is_ok() && is_own(&String::from_utf8_lossy(&text)) {
        return Ok(());
    }
    Err(Failure::input(format!(
        "`{}` is there, and not as `launch` has written it: --force overwrites it",
        output.display()
    )))
}

/// The folder of a description, without links.
fn folder(output: Option<&Path>) -> Option<PathBuf> {
    let folder = match output.and_then(Path::parent) {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::canonicalize(folder).ok()
}

/// A folder as the description names it: relative to its own where there is a way.
fn named(path: &Path, output: Option<&Path>) -> Option<PathBuf> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    Some(way(&folder(output)?, &std::fs::canonicalize(path).ok()?))
}

/// The source as the description names it.
fn source(file: &Path, output: Option<&Path>) -> String {
    let relative = || Some(named(file.parent()?, output)?.join(file.file_name()?));
    let path = relative().unwrap_or_else(|| file.to_path_buf());
    path.to_string_lossy().into_owned()
}

/// nvcc's options as the description has them: its folders of headers are relative to it.
fn options(nvcc: &[String], output: Option<&Path>) -> Vec<String> {
    let relative = |folder: &str| {
        let path = Path::new(folder);
        let named = named(path, output).filter(|_| path.is_relative());
        named.map_or_else(
            || folder.to_owned(),
            |way| match way.as_os_str().is_empty() {
                true => ".".to_owned(),
                false => way.to_string_lossy().into_owned(),
            },
        )
    };
    let mut is_folder = false;
    let one = |option: &String| {
        let own = match option.strip_prefix("-I") {
            Some(folder) if !folder.is_empty() => format!("-I{}", relative(folder)),
            _ if is_folder => relative(option),
            _ => option.clone(),
        };
        is_folder = option == "-I";
        own
    };
    nvcc.iter().map(one).collect()
}

/// The way from a folder to another.
fn way(from: &Path, to: &Path) -> PathBuf {
    let (from, to): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (from.components().collect(), to.components().collect());
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[same..].iter().map(|_| Component::ParentDir);
    up.chain(to[same..].iter().copied()).collect()
}

/// What a trace says that a launch was given, without what lay in memory; none of a trace that does not.
fn recorded(trace: &Trace, module: &Module, symbol: &str) -> Option<Launch> {
    let nothing = Contents {
        folder: PathBuf::new(),
        digests: BTreeSet::new(),
    };
    given(trace, &nothing, module, symbol)
}

/// The launch of a kernel that a trace saw.
fn traced(args: &LaunchArgs, ran: Option<&Ran>, symbol: &str) -> Result<Option<Traced>, Failure> {
    let Some(path) = &args.trace else {
        let seen = ran.and_then(|ran| ran.launched(symbol));
        return Ok(seen.map(|seen| (seen.grid, seen.block, seen.dynamic_smem)));
    };
    let trace = document::read(path)?;
    let launched = trace.launches.iter().find(|l| l.kernel == symbol);
    let launched = launched.ok_or_else(|| {
        Failure::input(format!("`{}` has no launch of `{symbol}`", path.display()))
    })?;
    if args.block.is_some_and(|stated| stated != launched.block) {
        return Err(Failure::Usage(document::other_block(launched.block)));
    }
    Ok(Some((launched.grid, launched.block, launched.dynamic_smem)))
}
