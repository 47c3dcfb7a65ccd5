//! A file's own program, built and run without a GPU for the launches that it makes: `explain`, `opt` and `launch` go by
//! them before they go by what the code says.
//!
//! The program is built with the shared runtime (kept by content) and runs in a folder of its own, which has copies of
//! the files beside the source and goes with the command: what it writes there is gone. What the budget does not reach,
//! and what does not build or run, leaves the code to be read.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use warpwright::front::architecture;
use warpwright::own_launch::texts_of_program;
use warpwright::ran::{self, Contents};
use warpwright::source::sizes::OwnSizes;
use warpwright::trace::{Launched, Trace, read};
use warpwright::{Counted, Input, Level, source};
use warpwright_diag::count;
use warpwright_host::Calls;
use warpwright_pass::names::base_name;
use warpwright_ptx::Module;
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, Invocation, NvccJob, ToolError};

use super::belongs::{self, has_word};
use super::explain::counted;
use super::inplace::no_gpu;
use crate::args::{Cli, KernelArgs, NoGpuArgs, OwnArgs};
use crate::failure::Failure;
use crate::{progress, session};
use warpwright_supervise::signals::WorkFolder;
use warpwright_supervise::work;

/// What takes time, in words.
pub const DOING: &str = "running the file's own program without a GPU";
/// Seconds for build and run where no option says so.
pub const BUDGET: f64 = 30.0;
/// The part of the budget that kernels get in the emulator, in work.
const FOR_KERNELS: f64 = 0.25;
/// Bytes of what launches read that are kept.
const CONTENTS: u64 = 256 << 20;
/// Device memory in MiB where no option says how much.
pub const MEMORY: u64 = 16_384;
/// The part of a command's budget that its program has: the rest is for what is made of its launches.
pub const FOR_RUN: f64 = 0.75;
/// Bytes of files beside the source that the program finds beside it, at most.
const BESIDE: u64 = 64 << 20;
/// Such files and folders at most, and folders inside of each other.
const MOST_BESIDE: usize = 4096;
const DEEPEST: usize = 4;
/// Bytes of a source that may belong to a program.
const LARGEST_SOURCE: u64 = 4 << 20;
/// The GPU where none is named: CUDA C is compiled for its architecture.
const GPU: &str = "sm_90";

/// When a budget that begins now is over.
pub fn until(seconds: f64) -> Instant {
    Instant::now() + Duration::from_secs_f64(seconds)
}

/// The sizes at which a file's kernels are launched, for a rewrite: of the launch that is described, else of that which the
/// file's program makes, else of that in its code.
pub fn sizes(
    cli: &Cli,
    input: &Input,
    kernel: &KernelArgs,
    (own, nvcc): (&OwnArgs, &[String]),
) -> Result<OwnSizes, Failure> {
    if input.level != Level::Cuda {
        return Ok(OwnSizes::default());
    }
    let file = &source::read::read(&session::tools(cli, nvcc)?, input, None)?;
    let gpu = session::named_gpu(kernel.gpu.as_deref())?;
    let wanted = Wanted {
        own,
        nvcc,
        budget: BUDGET,
        gpu: gpu.as_ref(),
    };
    let until = until(wanted.budget);
    let ran = progress::waiting(DOING, || of(cli, input, kernel, wanted));
    let all = counted(
        cli,
        (input, Some(file)),
        kernel,
        nvcc,
        (ran.as_ref(), until),
    )?;
    Ok(OwnSizes::of(file, &all))
}

/// What a program launched.
pub struct Ran {
    pub trace: Trace,
    pub contents: Contents,
    /// The file of its `main`, where that is another one.
    other: Option<String>,
    /// How it ended, where that leaves something to be said.
    ended: Option<Ended>,
    /// The file of its `main`, by name, and what its functions call; none where names do not say that.
    calls: Option<(String, Calls)>,
    /// What was kept lies there.
    _folder: WorkFolder,
}

/// Why a run is not the whole one.
#[derive(Debug)]
enum Ended {
    /// After so many seconds.
    Late(f64),
    Code(i32),
    Signal(i32),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Late(seconds) => write!(
                f,
                "it was ended after {seconds} s (--budget of `explain` and `launch` gives it longer)"
            ),
            Ended::Code(code) => write!(
                f,
                "it ended with exit code {code} (--run-args gives it arguments)"
            ),
            Ended::Signal(signal) => write!(f, "it was ended by signal {signal}"),
        }
    }
}

/// Why nothing was seen.
enum Unseen {
    /// It is no program.
    NoMain,
    Failed(Failure),
    /// What nvcc says.
    NotBuilt(String),
    /// In so many seconds.
    SlowBuild(f64),
    NotStarted(String),
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unseen::NoMain => f.write_str("it has no `main`"),
            Unseen::Failed(failure) => {
                let shown = failure.shown();
                f.write_str(shown.lines().next().unwrap_or_default())
            }
            Unseen::NotBuilt(why) => write!(f, "its program does not build: {why}"),
            Unseen::SlowBuild(seconds) => write!(f, "its program does not build in {seconds} s"),
            Unseen::NotStarted(why) => write!(f, "its program does not start: {why}"),
        }
    }
}

impl From<Failure> for Unseen {
    fn from(failure: Failure) -> Unseen {
        Unseen::Failed(failure)
    }
}

/// What the command line says about it.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub own: &'a OwnArgs,
    pub nvcc: &'a [String],
    /// Seconds for build and run.
    pub budget: f64,
    pub gpu: Option<&'a Gpu>,
}

/// What takes the time of a compiler, and what of the program's run, at a time.
pub fn beside_a_build<T>(build: impl FnOnce() + Send, run: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        scope.spawn(build);
        run()
    })
}

/// Runs the program of a file, if it has one, and says on standard error what came of it. Nobody wants to see a run whose
/// launches are stated otherwise.
pub fn of(cli: &Cli, input: &Input, kernel: &KernelArgs, wanted: Wanted<'_>) -> Option<Ran> {
    let is_traced = kernel.traced.is_some() || kernel.seen.is_some();
    let is_stated = kernel.launch.is_some() || kernel.trace.is_some() || is_traced;
    match is_stated {
        true => None,
        false => run(cli, input, wanted),
    }
}

/// The same, whatever else is stated.
pub fn run(cli: &Cli, input: &Input, wanted: Wanted<'_>) -> Option<Ran> {
    if wanted.own.no_run || input.level != Level::Cuda {
        return None;
    }
    let name = &input.name;
    match attempt(cli, input, wanted) {
        Ok(ran) => {
            if let Some(main) = &ran.other {
                complain!("note: `{main}` ran without a GPU: it uses `{name}`");
            }
            let unseen = format!("the launches of `{name}` are read, not seen: its program");
            let launches = ran.trace.launches.iter().map(|l| l.launches + l.in_graphs);
            match (launches.sum::<u64>(), &ran.ended) {
                (0, None) => complain!("note: {unseen} launches nothing"),
                (0, Some(why)) => complain!("note: {unseen} launched nothing until then: {why}"),
                (some, Some(why)) => {
                    let launches = count(some, "launch");
                    complain!("note: `{name}` ran without a GPU for {launches}: {why}");
                }
                _ => {}
            }
            Some(ran)
        }
        Err(Unseen::NoMain) => None,
        // What nvcc refuses in the file itself is an error that the command ends with.
        Err(Unseen::NotBuilt(_))
            if session::module(cli, input, None, wanted.nvcc, false).is_err() =>
        {
            None
        }
        Err(why) => {
            complain!("note: the launches of `{name}` are read, not seen: {why}");
            None
        }
    }
}

fn attempt(cli: &Cli, input: &Input, wanted: Wanted<'_>) -> Result<Ran, Unseen> {
    let sources = Sources::of(input)?;
    let until = until(wanted.budget);
    let left = || {
        let left = until.saturating_duration_since(Instant::now());
        left.max(Duration::from_millis(1))
    };
    let own = NoGpuArgs {
        no_gpu: true,
        gpu: gpu(wanted)?,
        budget: wanted.budget * FOR_KERNELS,
        memory: wanted.own.run_memory.unwrap_or(MEMORY),
    };
    let folder = work::folder().map_err(Failure::from)?;
    let environment = no_gpu::environment(cli, folder.path(), &own)?;
    let program = build(cli, (input, &sources), folder.path(), wanted, &left)?;
    let place = folder.path().join("run");
    beside(&input.path, &place).map_err(|e| Unseen::NotStarted(e.to_string()))?;
    let mut call = Invocation::new("the program", &program, left());
    call.args = arguments(wanted.own.run_args.as_deref().unwrap_or_default());
    call.env = environment;
    call = call
        .env("WARPWRIGHT_CONTENTS", CONTENTS.to_string())
        .env("TMPDIR", &place);
    call.directory = Some(place);
    let ended = match call.run() {
        Ok(output) => match output.status.code() {
            Some(0) => None,
            code => Some(Ended::Code(code.unwrap_or(-1))),
        },
        Err(ToolError::Timeout { .. }) => Some(Ended::Late(wanted.budget)),
        Err(ToolError::Signal { signal, .. }) => Some(Ended::Signal(signal)),
        Err(error) => return Err(Unseen::NotStarted(error.to_string())),
    };
    let trace =
        read(folder.path(), &[program.into()], warpwright_gpu::utc_now()).map_err(Failure::from)?;
    let contents = Contents {
        folder: folder.path().to_path_buf(),
        digests: kept(folder.path()),
    };
    Ok(Ran {
        trace,
        contents,
        ended,
        other: sources.other(input),
        calls: sources.calls(wanted.nvcc),
        _folder: folder,
    })
}

/// The GPU that the program sees.
fn gpu(wanted: Wanted<'_>) -> Result<String, Unseen> {
    let stated = architecture(wanted.gpu, wanted.nvcc).map_err(Failure::from)?;
    Ok(match (wanted.gpu, stated.0) {
        (Some(gpu), _) => gpu
            .board
            .map_or_else(|| gpu.target(), |b| b.name.to_owned()),
        (None, stated) => stated.unwrap_or_else(|| GPU.to_owned()),
    })
}

/// Builds the program that a file belongs to, of the sources beside it that it needs.
///
/// # Errors
/// What nvcc or its linker says; it has no `main`, nor has a program that uses it.
pub fn program_of(
    cli: &Cli,
    input: &Input,
    (folder, gpu, time): (&Path, &Gpu, Duration),
) -> Result<PathBuf, Failure> {
    let wanted = Wanted {
        own: &OwnArgs::default(),
        nvcc: &[],
        budget: time.as_secs_f64(),
        gpu: Some(gpu),
    };
    let made = Sources::of(input)
        .and_then(|sources| build(cli, (input, &sources), folder, wanted, &|| time));
    made.map_err(|why| match why {
        Unseen::Failed(failure) => failure,
        why => Failure::input(format!("`{}`: {why}", input.name)),
    })
}

/// Builds the program of what was compiled of the same before, and of the rest.
fn build(
    cli: &Cli,
    (input, sources): (&Input, &Sources),
    folder: &Path,
    wanted: Wanted<'_>,
    left: &dyn Fn() -> Duration,
) -> Result<PathBuf, Unseen> {
    let toolkit = session::toolkit(cli)?;
    let nvcc = toolkit.nvcc().map_err(Failure::from)?;
    let (stated, others) = architecture(wanted.gpu, wanted.nvcc).map_err(Failure::from)?;
    let target = match wanted.gpu {
        Some(gpu) => gpu.target(),
        None => stated.unwrap_or_else(|| GPU.to_owned()),
    };
    let failed = |error: ToolError| match error {
        ToolError::Timeout { .. } => Unseen::SlowBuild(wanted.budget),
        ToolError::Rejected { log, .. } => Unseen::NotBuilt(complaint(&log)),
        error => Unseen::NotBuilt(error.to_string()),
    };
    let others: Vec<OsString> = others.iter().map(Into::into).collect();
    let made = nvcc.program(&target, left()).map_err(failed)?;
    let program = folder.join("program");
    let mut objects = Vec::new();
    let object = |source: &Path| {
        let mut job = NvccJob::new(source, &target);
        job.lineinfo = false;
        job.extra.clone_from(&others);
        job.extra.push("-O2".into());
        job.extra.extend(
            language(source)
                .into_iter()
                .flat_map(|l| ["-x".into(), l.into()]),
        );
        job.timeout = left();
        BuildCache::standard().object(&nvcc, &job)
    };
    let own = match &sources.main {
        Some(main) => main.clone(),
        None => made.write("program.cu", &input.bytes).map_err(failed)?,
    };
    let add = |objects: &mut Vec<PathBuf>, source: &Path| {
        let bytes = object(source).map_err(failed)?;
        let name = format!("{}.o", objects.len());
        objects.push(made.write(&name, &bytes).map_err(failed)?);
        Ok::<_, Unseen>(())
    };
    add(&mut objects, &own)?;
    let mut beside: Vec<&(PathBuf, String)> = sources.beside.iter().collect();
    loop {
        let missing = match made.link_shared(&objects, &others, &program) {
            Ok(()) => return Ok(program),
            Err(error) => error,
        };
        let before = objects.len();
        for (source, _) in of_the_same(&missing, &mut beside) {
            // What does not compile belongs to something else, or the linker says what it lacks.
            match add(&mut objects, source) {
                Ok(()) | Err(Unseen::NotBuilt(_)) => {}
                Err(other) => return Err(other),
            }
        }
        if objects.len() == before {
            return Err(failed(missing));
        }
    }
}

/// Of the sources beside those of a program, the ones that name what its linker lacks; all, if it does not say what that
/// is. The others belong to something else.
fn of_the_same<'s>(
    missing: &ToolError,
    beside: &mut Vec<&'s (PathBuf, String)>,
) -> Vec<&'s (PathBuf, String)> {
    let names = match missing {
        ToolError::Rejected { log, .. } => undefined(log),
        _ => Vec::new(),
    };
    let is_one = |(_, text): &(PathBuf, String)| {
        names.is_empty() || names.iter().any(|name| has_word(text, name))
    };
    let (own, rest) = beside.drain(..).partition(|source| is_one(source));
    *beside = rest;
    own
}

/// The functions and variables that a linker lacks, without their scopes and parameters.
fn undefined(log: &str) -> Vec<String> {
    let names = log.split("undefined reference to `").skip(1);
    let names = names.filter_map(|rest| {
        let name = rest.split(['\'', '(', '<', '[']).next()?;
        Some(name.rsplit("::").next().unwrap_or(name).to_owned())
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// What nvcc takes a host's source for.
fn language(source: &Path) -> Option<&'static str> {
    match source.extension()?.to_str()? {
        "c" => Some("c"),
        "cc" | "cpp" | "cxx" => Some("c++"),
        _ => None,
    }
}

/// The sources of a program.
struct Sources {
    /// That with the `main`; none of what stands in no file.
    main: Option<PathBuf>,
    /// Others in its folder with their texts, for what does not link alone.
    beside: Vec<(PathBuf, String)>,
    /// All of them.
    texts: Vec<(PathBuf, String)>,
}

/// Sources in a folder of which more than these are no program.
const MOST_SOURCES: usize = 16;

impl Sources {
    /// Those of the program that a file belongs to: it has the `main`, or one file beside it does and uses it.
    fn of(input: &Input) -> Result<Sources, Unseen> {
        let text = input.text().map_err(Failure::from)?;
        if input.path.as_os_str().is_empty() {
            let sources = Sources {
                main: None,
                beside: Vec::new(),
                texts: vec![(PathBuf::new(), text.to_owned())],
            };
            return if has_main(text) {
                Ok(sources)
            } else {
                Err(Unseen::NoMain)
            };
        }
        let all = in_folder(&input.path);
        // What another one includes is no unit of its own.
        let is_included = |path: &Path| {
            let name = path
                .file_name()
                .map(|name| format!("\"{}\"", name.to_string_lossy()));
            let name = name.unwrap_or_default();
            let includes = |line: &str| {
                line.trim_start().starts_with('#')
                    && line.contains("include")
                    && line.contains(&name)
            };
            all.iter()
                .any(|(other, text)| other != path && text.lines().any(includes))
        };
        let mains: Vec<&PathBuf> = all
            .iter()
            .filter(|(_, t)| has_main(t))
            .map(|(p, _)| p)
            .collect();
        let main = match (has_main(text), &mains[..]) {
            (true, _) => input.path.clone(),
            (false, [only]) if belongs::to(input, text, only, &all) => (*only).clone(),
            _ => return Err(Unseen::NoMain),
        };
        let beside = all
            .iter()
            .filter(|(path, text)| *path != main && !has_main(text) && !is_included(path));
        let mut beside: Vec<(PathBuf, String)> = beside.cloned().collect();
        if beside.len() > MOST_SOURCES {
            beside.clear();
        }
        let is_one = |path: &PathBuf| {
            let mut others = beside.iter();
            *path == main || *path == input.path || others.any(|(other, _)| other == path)
        };
        let texts = all.iter().filter(|(path, _)| is_one(path)).cloned();
        Ok(Sources {
            texts: texts.collect(),
            beside,
            main: Some(main),
        })
    }

    /// The file of the `main` where it is not the input.
    fn other(&self, input: &Input) -> Option<String> {
        let main = self.main.as_ref().filter(|main| **main != input.path)?;
        Some(main.file_name()?.to_string_lossy().into_owned())
    }

    /// The file of the `main`, and what the functions of the program call.
    fn calls(&self, nvcc: &[String]) -> Option<(String, Calls)> {
        let name = self.main.as_deref().map_or(Path::new("-"), |main| {
            main.file_name().map_or(main, Path::new)
        });
        let texts = texts_of_program(&self.texts, nvcc)?;
        Some((name.display().to_string(), Calls::of(&texts, nvcc)?))
    }
}

/// The sources in the folder of one, with their texts.
fn in_folder(source: &Path) -> Vec<(PathBuf, String)> {
    let folder = source.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_small =
        |path: &PathBuf| std::fs::metadata(path).is_ok_and(|m| m.len() <= LARGEST_SOURCE);
    let paths = entries.map(|entry| source.with_file_name(entry.file_name()));
    let is_source = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "cu") || language(path).is_some()
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_source).filter(is_small).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = String::from_utf8_lossy(&std::fs::read(&path).ok()?).into_owned();
        Some((path, text))
    };
    paths.into_iter().filter_map(read).collect()
}

/// The line of a log that says what is wrong.
fn complaint(log: &str) -> String {
    let mut missing = undefined(log);
    missing.dedup();
    if !missing.is_empty() {
        return format!("nothing beside it defines `{}`", missing.join("`, `"));
    }
    let is_it = |line: &&str| line.contains("error");
    let line = log.lines().find(is_it).or(log.lines().next());
    line.unwrap_or("nvcc does not say why").trim().to_owned()
}

/// A folder with copies of the files beside a source and of the folders there, as long as they are small: programs read
/// their data there.
fn beside(source: &Path, place: &Path) -> std::io::Result<()> {
    std::fs::create_dir(place)?;
    if source.as_os_str().is_empty() {
        return Ok(());
    }
    let folder = source.parent().filter(|p| !p.as_os_str().is_empty());
    let mut room = Room {
        bytes: BESIDE,
        entries: MOST_BESIDE,
    };
    // Files first: a large folder leaves no room for what stands beside the source itself.
    let mut folders = vec![(
        folder.unwrap_or(Path::new(".")).to_path_buf(),
        place.to_path_buf(),
        DEEPEST,
    )];
    while let Some((from, to, depth)) = folders.pop() {
        // What cannot be read is not there for the program either.
        let Ok(entries) = std::fs::read_dir(&from) else {
            continue;
        };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let (name, to) = (entry.file_name(), to.join(entry.file_name()));
            match entry.metadata() {
                Ok(found) if found.is_file() && room.has(found.len()) => {
                    let _ = std::fs::copy(entry.path(), to);
                }
                // Where tools keep what is theirs there is no program's data.
                Ok(found)
                    if found.is_dir()
                        && depth > 0
                        && !name.as_encoded_bytes().starts_with(b".")
                        && room.has(0)
                        && std::fs::create_dir(&to).is_ok() =>
                {
                    folders.insert(0, (entry.path(), to, depth - 1));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// What may still be copied.
struct Room {
    bytes: u64,
    entries: usize,
}

impl Room {
    /// Takes room for one entry of so many bytes, if there is.
    fn has(&mut self, bytes: u64) -> bool {
        let fits = bytes <= self.bytes && self.entries > 0;
        if fits {
            self.bytes -= bytes;
            self.entries -= 1;
        }
        fits
    }
}

/// The digests of what launches read.
fn kept(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter_map(|name| name.strip_suffix(".bin").map(str::to_owned))
        .collect()
}

/// The words of `--run-args`, as a shell takes them apart; those that name files do so from the program's folder.
fn arguments(text: &str) -> Vec<OsString> {
    let whole = |word: String| {
        let path = Path::new(&word);
        match path.is_relative() && path.exists() {
            true => std::path::absolute(path).map_or(word.into(), OsString::from),
            false => word.into(),
        }
    };
    words(text).into_iter().map(whole).collect()
}

/// Words with quotes and backslashes as in a shell.
fn words(text: &str) -> Vec<String> {
    let (mut all, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => all.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

/// Does a text define `main`? A comment that says so costs an attempt to build it.
fn has_main(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices("main").any(|(at, name)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].trim_start();
        before.is_some_and(char::is_whitespace)
            && after.starts_with('(')
            && !before.is_some_and(is_word)
    })
}

/// What is known of launches: the program's own, or those of a trace that was named.
pub fn known(ran: Option<&Ran>, kernel: &KernelArgs) -> Option<Trace> {
    let own = ran.map(|ran| &ran.trace);
    own.or(kernel.seen.as_deref()).cloned()
}

impl Ran {
    /// The launch of a kernel that counts, and the first that can be counted if it is too large.
    pub fn counted(&self, module: &Module, kernel: &str) -> Vec<Counted> {
        let mut all = ran::counted(&self.trace, &self.contents, module, kernel);
        let first = all.next();
        let other = first.as_ref().filter(|first| !first.fits());
        let other = other.and_then(|_| all.find(Counted::fits));
        first.into_iter().chain(other).collect()
    }

    /// What is to be said of a kernel that it did not launch.
    pub fn not_launched(&self, kernel: &str) -> Option<String> {
        if self.trace.launches.iter().any(|l| l.kernel == kernel) {
            return None;
        }
        let by_nobody = self.calls.as_ref().and_then(|(main, calls)| {
            let why = calls.unlaunched(&base_name(kernel))?;
            Some(why.in_words(main))
        });
        Some(by_nobody.unwrap_or_else(|| {
            match self.ended {
                Some(Ended::Late(_)) => {
                    "its program had not launched it when it was ended".to_owned()
                }
                _ => {
                    "its program, as it ran, does not launch it (--run-args gives other arguments)"
                        .to_owned()
                }
            }
        }))
    }

    /// The launch of a kernel that counts.
    pub fn launched<'a>(&'a self, kernel: &'a str) -> Option<&'a Launched> {
        self.trace.of(kernel).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        assert_eq!(
            words(" -n 5 'a b'\"c\" d\\ e '' "),
            ["-n", "5", "a bc", "d e", ""]
        );
        assert!(words("  ").is_empty());
    }

    #[test]
    fn the_linker_says_what_it_lacks() {
        let log = "/tmp/0.o: in function `main':\nk.cu:(.text+0x1): undefined reference to `ns::go<int>(float*, int)'\n\
                   k.cu:(.text+0x2): undefined reference to `table'\n";
        assert_eq!(undefined(log), ["go", "table"]);
        assert!(has_word("void go(float *)", "go") && has_word("go", "go"));
        assert!(!has_word("goes ago go_on", "go"));
    }

    #[test]
    fn a_program_has_a_main() {
        for text in [
            "int main() {}",
            "int\nmain (int argc)",
            "auto main(void)->int",
        ] {
            assert!(has_main(text), "{text}");
        }
        for text in ["void domain(int)", "int main_loop()", "x.main()", ""] {
            assert!(!has_main(text), "{text}");
        }
    }

    /// Files and folders of data, but not what is hidden, linked, too deep or too large.
    #[test]
    fn a_program_finds_the_data_beside_its_source() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("source");
        let deep = at.join("a/b/c/d/e");
        for inside in [&deep, &at.join("data"), &at.join(".git")] {
            std::fs::create_dir_all(inside).unwrap();
        }
        for file in ["k.cu", "data/picture", ".git/config", "a/b/c/d/last"] {
            std::fs::write(at.join(file), "text").unwrap();
        }
        std::fs::write(deep.join("too-deep"), "text").unwrap();
        let large = std::fs::File::create(at.join("data/large")).unwrap();
        large.set_len(BESIDE).unwrap();
        std::os::unix::fs::symlink(folder.path(), at.join("up")).unwrap();
        let place = folder.path().join("run");
        beside(&at.join("k.cu"), &place).unwrap();
        for (name, is_there) in [
            ("k.cu", true),
            ("data/picture", true),
            ("a/b/c/d/last", true),
            ("a/b/c/d/e/too-deep", false),
            ("data/large", false),
            (".git", false),
            ("up", false),
        ] {
            assert_eq!(place.join(name).exists(), is_there, "{name}");
        }
    }
}
