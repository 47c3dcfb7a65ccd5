//! The start of a launch description, from the code's own launch or from a trace. What is guessed says so.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use warpwright_api::Error;
use warpwright_api::ran::{Contents, given};
use warpwright_api::trace::Trace;
use warpwright_diag::Problem;
use warpwright_host::{Code, Described, Stated, Traced, Trial};
use warpwright_launch::{Launch, LaunchFile};
use warpwright_pass::names::source_name;
use warpwright_ptx::Module;

use crate::own_run::Ran;

/// What is said of one whose outputs tell nothing.
const ZEROS: &str = "with what its buffers begin with, outputs become zero or stay as they are";

/// A description.
pub struct Made {
    /// In TOML.
    pub text: String,
    /// What came of running it.
    pub trial: Trial,
    /// Which of several launches it is, in words.
    pub launched: Option<String>,
}

/// What the trial of a description says to who wrote it.
pub fn said(trial: &Trial) -> String {
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
pub struct Job<'a> {
    /// It.
    pub code: Code<'a>,
    /// As PTX.
    pub module: &'a Module,
    /// Its place, as somebody names it.
    pub file: &'a Path,
    /// Options for nvcc.
    pub nvcc: &'a [String],
    /// Threads per block that are stated.
    pub block: Option<[u32; 3]>,
    /// Dynamic shared memory per block that is stated, bytes.
    pub dynamic_smem: Option<u32>,
    /// What the file's own program launched.
    pub ran: Option<&'a Ran>,
    /// The launches that a trace saw, and the name of its file.
    pub trace: Option<(&'a str, &'a Trace)>,
    /// No other guess is tried later than this.
    pub until: Instant,
}

impl Job<'_> {
    /// Until when one of so many kernels that are left may be tried.
    pub fn share(&self, left: usize) -> Instant {
        let now = Instant::now();
        now + self.until.saturating_duration_since(now) / u32::try_from(left).unwrap_or(u32::MAX)
    }

    /// The description of a kernel for a file, and what came of running it.
    ///
    /// # Errors
    /// There is no such kernel, or no launch of it that can be described.
    pub fn describe(
        &self,
        wanted: Option<&str>,
        output: Option<&Path>,
        until: Instant,
    ) -> Result<Made, Error> {
        let kernel = self.code.kernel(wanted)?;
        let symbol = &kernel.symbol;
        let seen = match self.trace {
            Some((_, trace)) => recorded(trace, self.module, symbol),
            None => self.ran.and_then(|ran| ran.given(self.module, symbol)),
        };
        let stated = Stated {
            block: self.block,
            dynamic_smem: self.dynamic_smem,
            traced: self.traced(symbol)?,
            seen: seen.as_ref(),
            tried: self.ran.and_then(|ran| ran.tried(symbol)),
        };
        let Described { draft, trial } = self.code.describe(&kernel, &stated, until)?;
        let source = source(self.file, output);
        let body = draft.text(&source, &options(self.nvcc, output));
        let text = format!("{MARK}{}{}\n{body}", stamp(&body), about(&trial));
        // What is written has to be what is read.
        LaunchFile::parse(&text, "the description")
            .and_then(|file| file.resolve("small", &[]))
            .map_err(|e| {
                Problem::Input(format!(
                    "the launch of `{}` in the code has no description that can be run; write one by hand \
                     (docs/launch.md): {e}",
                    source_name(symbol)
                ))
            })?;
        Ok(Made {
            text,
            trial,
            launched: draft.said(),
        })
    }

    /// The launch of a kernel that a trace saw.
    fn traced(&self, symbol: &str) -> Result<Option<Traced>, Problem> {
        let Some((name, trace)) = self.trace else {
            let seen = self.ran.and_then(|ran| ran.launched(symbol));
            return Ok(seen.map(|seen| (seen.grid, seen.block, seen.dynamic_smem)));
        };
        let launched = trace.launches.iter().find(|l| l.kernel == symbol);
        let launched = launched
            .ok_or_else(|| Problem::Input(format!("`{name}` has no launch of `{symbol}`")))?;
        if self.block.is_some_and(|stated| stated != launched.block) {
            return Err(Problem::Usage(other_block(launched.block)));
        }
        Ok(Some((launched.grid, launched.block, launched.dynamic_smem)))
    }
}

/// What a trace says that a launch was given, without what lay in memory; none of a trace that does not.
pub fn recorded(trace: &Trace, module: &Module, symbol: &str) -> Option<Launch> {
    let nothing = Contents {
        folder: PathBuf::new(),
        digests: BTreeSet::new(),
    };
    given(trace, &nothing, module, symbol)
}

/// `--block` says another one than the trace.
pub fn other_block(traced: [u32; 3]) -> String {
    let said = traced.map(|n| n.to_string()).join(",");
    format!("--block is another one than that of the trace, {said}")
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

/// Is there no file of another's in the place of the description?
///
/// # Errors
/// There is.
pub fn is_free(output: &Path, force: bool) -> Result<(), Problem> {
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
    Err(Problem::Input(format!(
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
