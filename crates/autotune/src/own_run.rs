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

use warpwright_api::front::architecture;
use warpwright_api::own_launch::texts_of_program;
use warpwright_api::ran::{self, Contents};
use warpwright_api::source::Tools;
use warpwright_api::trace::{Launched, Trace, read};
use warpwright_api::{Counted, Error, Input, Level};
use warpwright_diag::count;
use warpwright_host::Calls;
use warpwright_launch::Launch;
use warpwright_pass::names::base_name;
use warpwright_ptx::Module;
use warpwright_target::Gpu;
use warpwright_toolkit::{BuildCache, Invocation, NvccJob, ToolError};

use crate::belongs::{self, has_word};
use warpwright_supervise::signals::WorkFolder;
use warpwright_supervise::work;

use crate::Watch;
use crate::no_gpu::{self, StandIn};
use crate::own_args::{Search, kernels};

/// What takes time, in words.
pub const DOING: &str = "running the file's own program without a GPU";
/// Seconds for build and run where no option says so.
pub const BUDGET: f64 = 30.0;
/// The part of the budget that kernels get in the emulator, in work.
const FOR_KERNELS: f64 = 0.25;
/// Where other arguments are tried, the part of the time that is left which the first run has, and that which each other
/// one has.
const FOR_FIRST: f64 = 0.6;
const FOR_ONE: f64 = 0.5;
/// Seconds that kernels get then, in work: which are launched is wanted, and not what they compute.
const FOR_TRIED: f64 = 0.5;
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

/// What a program launched.
pub struct Ran {
    /// As it was to run, then with other arguments, for kernels that it launches with those alone.
    runs: Vec<Run>,
    /// The file of its `main`, where that is another one.
    other: Option<String>,
    /// The file of its `main`, by name, and what its functions call; none where names do not say that.
    calls: Option<(String, Calls)>,
    /// What was kept lies there.
    _folder: WorkFolder,
}

/// One run of a program.
struct Run {
    /// Its arguments, where nobody stated them.
    tried: Option<String>,
    trace: Trace,
    contents: Contents,
    /// How it ended, where that leaves something to be said.
    ended: Option<Ended>,
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
                "it was ended after {} s (--budget of `explain`, `launch` and `opt` gives it longer)",
                tenths(*seconds)
            ),
            Ended::Code(code) => write!(
                f,
                "it ended with exit code {code} (--run-args gives it arguments)"
            ),
            Ended::Signal(signal) => write!(f, "it was ended by signal {signal}"),
        }
    }
}

/// Seconds without what nobody wants to read.
fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

/// Why nothing was seen.
enum Unseen {
    /// It is no program.
    NoMain,
    Failed(Error),
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
            Unseen::Failed(error) => error.fmt(f),
            Unseen::NotBuilt(why) => write!(f, "its program does not build: {why}"),
            Unseen::SlowBuild(seconds) => {
                write!(f, "its program does not build in {} s", tenths(*seconds))
            }
            Unseen::NotStarted(why) => write!(f, "its program does not start: {why}"),
        }
    }
}

impl From<Error> for Unseen {
    fn from(error: Error) -> Unseen {
        Unseen::Failed(error)
    }
}

/// What the command line says about it.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Arguments of the program.
    pub run_args: Option<&'a str>,
    /// It is not run.
    pub no_run: bool,
    /// Device memory in MiB.
    pub run_memory: Option<u64>,
    /// Arguments for nvcc.
    pub nvcc: &'a [String],
    /// Seconds for build and run.
    pub budget: f64,
    /// The GPU that it sees.
    pub gpu: Option<&'a Gpu>,
}

/// What takes the time of a compiler, and what of the program's run, at a time. A program that is run brings its file's PTX
/// with it.
pub fn beside_a_build<T>(
    (input, is_run): (&Input, bool),
    build: impl FnOnce() + Send,
    run: impl FnOnce() -> T,
) -> T {
    if is_run && brings_ptx(input) {
        return run();
    }
    std::thread::scope(|scope| {
        scope.spawn(build);
        run()
    })
}

/// Runs the program of a file, if it has one, and says what came of it.
pub fn run(tools: &Tools<'_>, input: &Input, wanted: Wanted<'_>, watch: &dyn Watch) -> Option<Ran> {
    if wanted.no_run || input.level != Level::Cuda {
        return None;
    }
    let name = &input.name;
    match attempt(tools, input, wanted) {
        Ok(ran) => {
            if let Some(main) = &ran.other {
                watch.warn(&format!(
                    "note: `{main}` ran without a GPU: it uses `{name}`"
                ));
            }
            let unseen = format!("the launches of `{name}` are read, not seen: its program");
            let (first, others) = ran.runs.split_first()?;
            let launches = first.trace.launches.iter();
            let launches = launches.map(|l| l.launches + l.in_graphs).sum::<u64>();
            match (launches, &first.ended) {
                _ if !others.is_empty() => {
                    let all: Vec<&str> = others.iter().filter_map(|o| o.tried.as_deref()).collect();
                    let all = all.join(", ");
                    watch.warn(&format!(
                        "note: `{name}` ran without arguments, and for kernels that it does not launch so with those that \
                         its code names: {all}"
                    ));
                }
                (0, None) => watch.warn(&format!("note: {unseen} launches nothing")),
                (0, Some(why)) => watch.warn(&format!(
                    "note: {unseen} launched nothing until then: {why}"
                )),
                (some, Some(why)) => {
                    let launches = count(some, "launch");
                    watch.warn(&format!(
                        "note: `{name}` ran without a GPU for {launches}: {why}"
                    ));
                }
                _ => {}
            }
            Some(ran)
        }
        Err(Unseen::NoMain) => None,
        Err(Unseen::Failed(error)) => {
            let shown = watch.shown(error);
            let why = shown.lines().next().unwrap_or_default();
            watch.warn(&format!(
                "note: the launches of `{name}` are read, not seen: {why}"
            ));
            None
        }
        Err(why) => {
            watch.warn(&format!(
                "note: the launches of `{name}` are read, not seen: {why}"
            ));
            None
        }
    }
}

fn attempt(tools: &Tools<'_>, input: &Input, wanted: Wanted<'_>) -> Result<Ran, Unseen> {
    let sources = Sources::of(input)?;
    let until = until(wanted.budget);
    let left = || {
        let left = until.saturating_duration_since(Instant::now());
        left.max(Duration::from_millis(1))
    };
    let own = StandIn {
        gpu: gpu(wanted)?,
        budget: wanted.budget * FOR_KERNELS,
        memory: wanted.run_memory.unwrap_or(MEMORY),
    };
    let folder = work::folder().map_err(Error::from)?;
    let environment = no_gpu::environment(tools, folder.path(), &own)?;
    let program = build(tools, (input, &sources), folder.path(), wanted, &left)?;
    let place = folder.path().join("run");
    beside(&input.path, &place).map_err(|e| Unseen::NotStarted(e.to_string()))?;
    let stated = wanted.run_args.unwrap_or_default();
    let program = Program {
        program,
        place,
        budget: wanted.budget,
    };
    let texts = || sources.texts.iter().map(|(_, text)| &**text);
    let search = stated.trim().is_empty().then(|| Search::of(texts()));
    let search = search.filter(Search::is_open);
    let share = search.as_ref().map_or(1.0, |_| FOR_FIRST);
    let first = left().mul_f64(share);
    let first = program.run(folder.path(), environment, arguments(stated), first)?;
    let mut ran = Ran {
        runs: vec![first],
        other: sources.other(input),
        calls: sources.calls(wanted.nvcc),
        _folder: folder,
    };
    if let Some(search) = search {
        let own = StandIn {
            budget: FOR_TRIED,
            ..own
        };
        ran.search(&program, search, input, &mut |folder| {
            let is_late = until <= Instant::now();
            let environment = no_gpu::environment(tools, folder, &own).ok();
            let left = left().mul_f64(FOR_ONE);
            environment
                .filter(|_| !is_late)
                .map(|environment| (environment, left))
        });
    }
    Ok(ran)
}

/// The variables that a program sees, and how long it may run.
type Granted = (Vec<(OsString, OsString)>, Duration);

/// A program that is built, and the folder that it runs in.
struct Program {
    program: PathBuf,
    place: PathBuf,
    /// Seconds that it may take with its build.
    budget: f64,
}

impl Program {
    fn run(
        &self,
        folder: &Path,
        environment: Vec<(OsString, OsString)>,
        args: Vec<OsString>,
        left: Duration,
    ) -> Result<Run, Unseen> {
        let mut call = Invocation::new("the program", &self.program, left);
        call.args = args;
        call.env = environment;
        call = call
            .env("WARPWRIGHT_CONTENTS", CONTENTS.to_string())
            .env("TMPDIR", &self.place);
        call.directory = Some(self.place.clone());
        let ended = match call.run() {
            Ok(output) => match output.status.code() {
                Some(0) => None,
                code => Some(Ended::Code(code.unwrap_or(-1))),
            },
            Err(ToolError::Timeout { .. }) => Some(Ended::Late(self.budget)),
            Err(ToolError::Signal { signal, .. }) => Some(Ended::Signal(signal)),
            Err(error) => return Err(Unseen::NotStarted(error.to_string())),
        };
        let program = self.program.clone().into();
        let trace = read(folder, &[program], warpwright_gpu::utc_now())?;
        let contents = Contents {
            folder: folder.to_path_buf(),
            digests: kept(folder),
        };
        Ok(Run {
            tried: None,
            trace,
            contents,
            ended,
        })
    }
}

impl Run {
    /// Was it not kept from launching more by the time?
    fn is_whole(&self) -> bool {
        !matches!(self.ended, Some(Ended::Late(_)))
    }

    /// The kernels that it launched, by their names in the source.
    fn kernels(&self) -> BTreeSet<String> {
        let all = self.trace.launches.iter().map(|l| &*l.kernel);
        let all = all.filter(|kernel| self.launched(kernel).is_some());
        all.map(base_name).collect()
    }

    /// The launch of a kernel that counts.
    fn launched<'a>(&'a self, kernel: &'a str) -> Option<&'a Launched> {
        self.trace.of(kernel).next()
    }
}

/// The GPU that the program sees.
fn gpu(wanted: Wanted<'_>) -> Result<String, Unseen> {
    let stated = architecture(wanted.gpu, wanted.nvcc)?;
    Ok(match (wanted.gpu, stated.0) {
        (Some(gpu), _) => gpu
            .board
            .map_or_else(|| gpu.target(), |b| b.name.to_owned()),
        (None, stated) => stated.unwrap_or_else(|| GPU.to_owned()),
    })
}

/// Builds the program of what was compiled of the same before, and of the rest.
fn build(
    tools: &Tools<'_>,
    (input, sources): (&Input, &Sources),
    folder: &Path,
    wanted: Wanted<'_>,
    left: &dyn Fn() -> Duration,
) -> Result<PathBuf, Unseen> {
    let toolkit = tools.toolkit().map_err(Error::from)?;
    let nvcc = toolkit.nvcc().map_err(Error::from)?;
    let (stated, others) = architecture(wanted.gpu, wanted.nvcc)?;
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
    // What is asked of the kernels' PTX later, from the same compilation.
    let mut of_kernels = NvccJob::new(&input.path, &target);
    of_kernels.extra.clone_from(&others);
    let object = |source: &Path| {
        let mut job = NvccJob {
            source,
            ..of_kernels.clone()
        };
        let is_own = source == input.path && takes_ptx(&others);
        job.lineinfo = is_own;
        job.extra.push("-O2".into());
        job.extra.extend(
            language(source)
                .into_iter()
                .flat_map(|l| ["-x".into(), l.into()]),
        );
        job.timeout = left();
        let ptx = Some(&of_kernels).filter(|_| is_own);
        BuildCache::standard().object(&nvcc, &job, ptx)
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

/// Is the device code the same whether host code is optimised or not? Functions of the host's library are device code
/// where that is stated.
fn takes_ptx(options: &[OsString]) -> bool {
    let mut options = options.iter().map(|option| option.to_string_lossy());
    !options.any(|option| option.contains("relaxed-constexpr"))
}

/// Is the program of a file built of the file itself, so that its PTX comes with it?
fn brings_ptx(input: &Input) -> bool {
    let is_file = input.level == Level::Cuda && !input.path.as_os_str().is_empty();
    is_file && input.text().is_ok_and(has_main)
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
        let text = input.text()?;
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

/// What is said of a kernel that a program launches with arguments that were tried.
pub fn launched_with(args: &str) -> String {
    format!("its program launches it with `{args}`, and not without arguments")
}

impl Ran {
    /// The launches of each run.
    pub fn traces(&self) -> impl Iterator<Item = &Trace> {
        self.runs.iter().map(|run| &run.trace)
    }

    /// Runs the program with what its code names, as long as there are kernels of a file that it has not launched. `grant`:
    /// for a run that writes into a folder, while there is time.
    fn search(
        &mut self,
        program: &Program,
        mut search: Search,
        input: &Input,
        grant: &mut dyn FnMut(&Path) -> Option<Granted>,
    ) {
        let mut wanted = kernels(input.text().unwrap_or_default());
        let calls = self.calls.as_ref();
        wanted.retain(|kernel| calls.is_none_or(|(_, calls)| calls.unlaunched(kernel).is_none()));
        let launched = self.runs[0].kernels();
        wanted.retain(|kernel| !launched.contains(kernel));
        let mut is_fruitful = false;
        for number in 0.. {
            let next = (!wanted.is_empty())
                .then(|| search.next(is_fruitful))
                .flatten();
            let folder = program.place.with_file_name(format!("tried-{number}"));
            let granted = next
                .as_ref()
                .filter(|_| std::fs::create_dir(&folder).is_ok());
            let (Some(words), Some((environment, left))) =
                (&next, granted.and_then(|_| grant(&folder)))
            else {
                break;
            };
            let args = words.iter().map(OsString::from).collect();
            let run = program.run(&folder, environment, args, left);
            let Ok(run) = run else {
                break;
            };
            let found = run.kernels();
            is_fruitful = wanted.iter().any(|kernel| found.contains(kernel));
            wanted.retain(|kernel| !found.contains(kernel));
            if is_fruitful {
                let tried = Some(words.join(" "));
                self.runs.push(Run { tried, ..run });
            }
        }
    }

    /// The run that launched a kernel.
    fn run_of(&self, kernel: &str) -> Option<&Run> {
        let mut runs = self.runs.iter();
        runs.find(|run| run.launched(kernel).is_some())
    }

    /// The arguments that the program was given for a kernel, where nobody stated them.
    pub fn tried(&self, kernel: &str) -> Option<&str> {
        self.run_of(kernel)?.tried.as_deref()
    }

    /// The launch of a kernel with what its program gave it ([`ran::given`]).
    pub fn given(&self, module: &Module, kernel: &str) -> Option<Launch> {
        let run = self.run_of(kernel)?;
        ran::given(&run.trace, &run.contents, module, kernel)
    }

    /// The launch of a kernel that counts, and the first that can be counted if it is too large.
    pub fn counted(&self, module: &Module, kernel: &str) -> Vec<Counted> {
        let Some(run) = self.run_of(kernel) else {
            return Vec::new();
        };
        let mut all = ran::counted(&run.trace, &run.contents, module, kernel);
        let first = all.next();
        let other = first.as_ref().filter(|first| !first.fits());
        let other = other.and_then(|_| all.find(Counted::fits));
        first.into_iter().chain(other).collect()
    }

    /// What is to be said of a kernel that it did not launch.
    pub fn not_launched(&self, kernel: &str) -> Option<String> {
        let is_it = |run: &Run| run.trace.launches.iter().any(|l| l.kernel == kernel);
        if self.runs.iter().any(is_it) {
            return None;
        }
        let by_nobody = self.calls.as_ref().and_then(|(main, calls)| {
            let why = calls.unlaunched(&base_name(kernel))?;
            Some(why.in_words(main))
        });
        Some(by_nobody.unwrap_or_else(|| {
            let why = match self.runs.iter().all(Run::is_whole) {
                false => "its program had not launched it when it was ended",
                true => {
                    "its program, as it ran, does not launch it (--run-args gives other arguments)"
                }
            };
            why.to_owned()
        }))
    }

    /// The launch of a kernel that counts.
    pub fn launched<'a>(&'a self, kernel: &'a str) -> Option<&'a Launched> {
        self.run_of(kernel)?.launched(kernel)
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
