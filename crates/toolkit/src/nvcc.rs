//! nvcc: CUDA C++ to PTX or cubin.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::diagnostic::{self, Diagnostic};
use crate::error::ToolError;
use crate::find::Toolkit;
use crate::process::{Invocation, Output};
use crate::ptxas::{Build, check_gpu};
use crate::scratch::Scratch;
use crate::tool::{Tool, ToolKind, patience};

/// One source file to compile. Start from [`NvccJob::new`] and set what differs.
#[derive(Debug, Clone)]
pub struct NvccJob<'a> {
    /// The source file; its own directory is searched for `#include "…"`.
    pub source: &'a Path,
    /// `sm_90`, `sm_90a`, … (for PTX also `compute_90`).
    pub gpu: &'a str,
    /// Directories for `#include`, searched in order.
    pub include_dirs: Vec<PathBuf>,
    /// Keep line numbers: `.loc` in the PTX.
    pub lineinfo: bool,
    /// Further arguments, as given.
    pub extra: Vec<OsString>,
    /// After this, nvcc and all that it started is stopped.
    pub timeout: Duration,
}

impl<'a> NvccJob<'a> {
    /// With line numbers, [`patience`] at most.
    pub fn new(source: &'a Path, gpu: &'a str) -> Self {
        NvccJob {
            source,
            gpu,
            include_dirs: Vec::new(),
            lineinfo: true,
            extra: Vec::new(),
            timeout: patience(),
        }
    }

    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["-arch".into(), self.gpu.into()];
        for dir in &self.include_dirs {
            args.extend(["-I".into(), dir.into()]);
        }
        if self.lineinfo {
            args.push("-lineinfo".into());
        }
        // nvcc takes the language from the ending, and knows no header as CUDA C++.
        let is_language = |word: &OsString| {
            let word = word.to_string_lossy();
            word == "-x" || word.starts_with("-x=") || word.starts_with("--x")
        };
        if self.source.extension().is_none_or(|ending| ending != "cu")
            && !self.extra.iter().any(is_language)
        {
            args.extend(["-x".into(), "cu".into()]);
        }
        args.extend(self.extra.iter().cloned());
        args
    }
}

/// PTX made from CUDA C++.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvccOutput {
    /// The module's text.
    pub ptx: String,
    /// Warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether it came from a [`crate::BuildCache`].
    pub cached: bool,
}

/// What nvcc makes: a file, what it says, and the files that it read.
pub(crate) type Made = (Vec<u8>, Vec<Diagnostic>, Vec<PathBuf>);

/// An object made from CUDA C++.
pub(crate) struct Object {
    /// Its bytes.
    pub object: Vec<u8>,
    /// The files that were read.
    pub read: Vec<PathBuf>,
    /// The PTX in it, what nvcc said, and the files that were read for it.
    pub kernels: Option<Made>,
}

/// What the preprocessor knows of the optimisation of host code.
const OPTIMISED: [&str; 3] = ["__OPTIMIZE__", "__NO_INLINE__", "_FORTIFY_SOURCE"];

/// The CUDA C++ compiler.
#[derive(Debug, Clone, Copy)]
pub struct Nvcc<'a> {
    tool: &'a Tool,
}

/// Sources and headers that were compiled by this process, by nvcc or out of the cache.
static READ: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Every file that went into a compilation of CUDA C++ in this process so far: sources and headers, each once.
pub fn files_read() -> Vec<PathBuf> {
    READ.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Adds to [`files_read`].
pub(crate) fn remember_read(files: impl IntoIterator<Item = PathBuf>) {
    let mut all = READ.lock().unwrap_or_else(PoisonError::into_inner);
    all.extend(files);
    all.sort_unstable();
    all.dedup();
}

impl Toolkit {
    /// The CUDA C++ compiler, if there is one.
    ///
    /// # Errors
    /// [`ToolError::Missing`].
    pub fn nvcc(&self) -> Result<Nvcc<'_>, ToolError> {
        self.tool(ToolKind::Nvcc).map(|tool| Nvcc { tool })
    }
}

impl<'a> Nvcc<'a> {
    /// The program itself.
    pub fn tool(&self) -> &'a Tool {
        self.tool
    }

    /// The files of the toolkit that decide what it makes: nvcc, its profile, and what it starts and links.
    /// A link to nvcc with a profile beside it is a toolkit of its own, so both folders count.
    pub(crate) fn parts(&self) -> Vec<PathBuf> {
        const PARTS: [&str; 6] = [
            "nvcc",
            "nvcc.profile",
            "cudafe++",
            "cicc",
            "../nvvm/bin/cicc",
            "../nvvm/libdevice/libdevice.10.bc",
        ];
        let real = std::fs::canonicalize(&self.tool.path).ok();
        let programs = [Some(self.tool.path.clone()), real].into_iter().flatten();
        let folders = programs.filter_map(|p| Some(p.parent()?.to_path_buf()));
        let files = folders.flat_map(|folder| PARTS.map(|part| folder.join(part)));
        files.filter(|file| file.is_file()).collect()
    }

    /// Compiles the device code of a source file to PTX.
    ///
    /// # Errors
    /// [`ToolError::Rejected`] with places in the source; nvcc also ends so when it finds no host compiler.
    pub fn to_ptx(&self, job: &NvccJob) -> Result<NvccOutput, ToolError> {
        self.ptx(job, &Scratch::new()?, &[])
    }

    /// As [`Nvcc::to_ptx`] for a text that stands in no file; the job's own source is not read, but errors have its
    /// name.
    ///
    /// # Errors
    /// As of [`Nvcc::to_ptx`].
    pub fn text_to_ptx(&self, text: &str, job: &NvccJob) -> Result<NvccOutput, ToolError> {
        let scratch = Scratch::new()?;
        let copy = scratch.write("text.cu", text.as_bytes())?;
        let name = job.source;
        let job = NvccJob {
            source: &copy,
            ..job.clone()
        };
        self.to_ptx(&job).map_err(|e| e.with_path(&copy, name))
    }

    /// As [`Nvcc::to_ptx`]; also returns every file that was read: the source and all headers.
    pub(crate) fn ptx_and_files_read(
        &self,
        job: &NvccJob,
    ) -> Result<(NvccOutput, Vec<PathBuf>), ToolError> {
        let scratch = Scratch::new()?;
        let rule = scratch.path("out.d");
        let output = self.ptx(
            job,
            &scratch,
            &["-MD".as_ref(), "-MF".as_ref(), rule.as_os_str()],
        );
        // The preprocessor writes the rule, also of what the compiler refuses then.
        let text = String::from_utf8_lossy(&scratch.read_if_there(&rule)?).into_owned();
        let files = prerequisites(&text);
        remember_read(files.iter().cloned());
        Ok((output?, files))
    }

    /// Compiles a source file to an object; its PTX is kept for a compilation of the same without optimised host code.
    pub(crate) fn object_and_files_read(
        &self,
        job: &NvccJob,
        keeps_ptx: bool,
    ) -> Result<Object, ToolError> {
        let scratch = Scratch::new()?;
        let rule = scratch.path("out.d");
        let mut more: Vec<&OsStr> = vec!["-MD".as_ref(), "-MF".as_ref(), rule.as_os_str()];
        if keeps_ptx {
            more.extend([
                "--keep".as_ref(),
                "--keep-dir".as_ref(),
                scratch.dir().as_os_str(),
            ]);
        }
        let output = self.run(job, &scratch, "-c", "out.o", &more)?;
        let text = String::from_utf8_lossy(&scratch.read_if_there(&rule)?).into_owned();
        let object = scratch.read_if_there(&scratch.path("out.o"))?;
        if object.is_empty() {
            return Err(garbage("it wrote no object"));
        }
        let kernels = keeps_ptx.then(|| self.kept_ptx(&scratch, &output.text()));
        Ok(Object {
            object,
            read: prerequisites(&text),
            kernels: kernels.flatten(),
        })
    }

    /// The PTX among what was kept of a compilation, with what nvcc said and the files that the device's preprocessor
    /// read. None of several, or where a text looks at whether its host code is optimised.
    fn kept_ptx(&self, scratch: &Scratch, log: &str) -> Option<Made> {
        let only = |ending: &str| {
            let entries = std::fs::read_dir(scratch.dir()).ok()?;
            let paths = entries.flatten().map(|entry| entry.path());
            let mut paths = paths.filter(|path| path.to_string_lossy().ends_with(ending));
            let first = paths.next()?;
            paths.next().is_none().then_some(first)
        };
        let ptx = std::fs::read(only(".ptx")?).ok()?;
        let text = std::fs::read(only(".cpp1.ii")?).ok()?;
        let read = marked_files(&String::from_utf8_lossy(&text));
        let toolkit = self.tool.path.parent().and_then(Path::parent);
        let is_own = |path: &&PathBuf| {
            !path.starts_with("/usr") && toolkit.is_none_or(|toolkit| !path.starts_with(toolkit))
        };
        let is_same = |path: &PathBuf| {
            let text = std::fs::read(path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            !OPTIMISED.iter().any(|word| text.contains(word))
        };
        let mut diagnostics = diagnostic::parse_nvcc(log);
        diagnostics.dedup();
        let is_same = read.iter().filter(is_own).all(is_same);
        is_same.then(|| (ptx, diagnostics, read.into_iter().collect()))
    }

    fn ptx(
        &self,
        job: &NvccJob,
        scratch: &Scratch,
        more: &[&OsStr],
    ) -> Result<NvccOutput, ToolError> {
        let out = self.run(job, scratch, "-ptx", "out.ptx", more)?;
        let bytes = scratch.read_if_there(&scratch.path("out.ptx"))?;
        if bytes.is_empty() {
            return Err(garbage("it wrote no PTX"));
        }
        let ptx = String::from_utf8(bytes).map_err(|_| garbage("the PTX is not UTF-8"))?;
        let diagnostics = diagnostic::parse_nvcc(&out.text());
        Ok(NvccOutput {
            ptx,
            diagnostics,
            cached: false,
        })
    }

    /// Compiles the device code of a source file to a cubin, with the resources that ptxas reports.
    ///
    /// # Errors
    /// As [`Nvcc::to_ptx`].
    pub fn to_cubin(&self, job: &NvccJob) -> Result<Build, ToolError> {
        let scratch = Scratch::new()?;
        let start = Instant::now();
        let out = self.run(
            job,
            &scratch,
            "-cubin",
            "out.cubin",
            &["-Xptxas".as_ref(), "-v".as_ref()],
        )?;
        let cubin = scratch.read_if_there(&scratch.path("out.cubin"))?;
        Build::new(ToolKind::Nvcc.name(), cubin, &out.text(), start.elapsed())
    }

    /// What the device's preprocessor makes of another text in the place of a source file, with all
    /// definitions of macros and with line markers. The copy has the file's name, errors have its path; headers are
    /// found where the file itself finds them.
    ///
    /// # Errors
    /// As [`Nvcc::to_ptx`].
    pub fn preprocess(&self, job: &NvccJob, text: &str) -> Result<String, ToolError> {
        let scratch = Scratch::new()?;
        let source = std::path::absolute(job.source).map_err(|e| ToolError::io(job.source, e))?;
        let name = source.file_name().unwrap_or("source.cu".as_ref());
        let copy = scratch.write(&name.to_string_lossy(), text.as_bytes())?;
        // nvcc takes the values of -Xcompiler apart at commas.
        let folder = source.parent().unwrap_or(Path::new("/"));
        let folder = folder.to_string_lossy().replace(',', "\\,");
        let options = [
            "-Xcompiler",
            "-dD",
            "-Xcompiler",
            "-iquote",
            "-Xcompiler",
            &folder,
        ];
        let options: Vec<&OsStr> = options.into_iter().map(OsStr::new).collect();
        let original = job.source;
        let job = NvccJob {
            source: &copy,
            ..job.clone()
        };
        let output = self.run(&job, &scratch, "-E", "out.ii", &options);
        output.map_err(|e| e.with_path(&copy, original))?;
        let bytes = scratch.read_if_there(&scratch.path("out.ii"))?;
        let text =
            String::from_utf8(bytes).map_err(|_| garbage("the preprocessed text is not UTF-8"))?;
        remember_read(marked_files(&text));
        Ok(text)
    }

    fn run(
        &self,
        job: &NvccJob,
        scratch: &Scratch,
        mode: &str,
        output: &str,
        more: &[&OsStr],
    ) -> Result<Output, ToolError> {
        check_gpu(job.gpu)?;
        // nvcc takes the language from the extension and reads `-x.cu` as options: an absolute path is
        // never taken for one.
        let source = std::path::absolute(job.source).map_err(|e| ToolError::io(job.source, e))?;
        std::fs::metadata(&source).map_err(|e| ToolError::io(job.source, e))?;
        let call = Invocation::new(ToolKind::Nvcc.name(), &self.tool.path, job.timeout)
            .arg(mode)
            .args(job.arguments())
            .args(more)
            .arg(source)
            .arg("-o")
            .arg(scratch.path(output))
            .env("TMPDIR", scratch.dir());
        let out = call.run()?;
        if out.status.success() {
            return Ok(out);
        }
        let log = out.text();
        // ptxas speaks of a line of PTX that nobody has; with line numbers it says where that comes from.
        if !job.lineinfo && log.lines().any(|line| of_ptxas(line).is_some()) {
            let job = NvccJob {
                lineinfo: true,
                ..job.clone()
            };
            return self.run(&job, scratch, mode, output, more);
        }
        let ptx = scratch.read_if_there(&scratch.path("out.ptx"))?;
        let log = in_source(&log, &String::from_utf8_lossy(&ptx));
        let diagnostics = diagnostic::parse_nvcc(&log);
        let code = out.status.code().unwrap_or(-1);
        let refused = ToolError::Rejected {
            tool: ToolKind::Nvcc.to_string(),
            code,
            diagnostics,
            log,
        };
        Err(as_given(refused, job.source))
    }
}

/// The error with paths as they were given: of the source, and of what stands beside it.
fn as_given(error: ToolError, source: &Path) -> ToolError {
    let (Ok(whole), true) = (std::path::absolute(source), source.is_relative()) else {
        return error;
    };
    let error = error.with_path(&whole, source);
    let folders = whole.parent().zip(source.parent());
    match folders.filter(|(whole, _)| whole.parent().is_some()) {
        // With the separator, so that no folder is taken for another.
        Some((whole, given)) => error.with_path(&whole.join(""), &given.join("")),
        None => error,
    }
}

/// A line of PTX, and what ptxas says of it, if nvcc passes that on.
fn of_ptxas(line: &str) -> Option<(usize, &str)> {
    let (_, place) = line.strip_prefix("ptxas ")?.split_once(", line ")?;
    let (number, said) = place.split_once(';')?;
    let (_, message) = said.trim_start().strip_prefix("error")?.split_once(':')?;
    Some((number.parse().ok()?, message.trim()))
}

/// The log with places in the source where ptxas refuses inline assembly: the last `.loc` in front of the line of `ptx`.
fn in_source(log: &str, ptx: &str) -> String {
    let file = |number: &str| {
        let mut files = ptx.lines().filter_map(|line| {
            let (n, name) = line.trim().strip_prefix(".file")?.trim().split_once(' ')?;
            Some((n, name.trim().split('"').nth(1)?))
        });
        files.find(|(n, _)| *n == number).map(|(_, name)| name)
    };
    let place = |number: usize| {
        let before = ptx.lines().take(number);
        let loc = before
            .filter_map(|line| line.trim().strip_prefix(".loc"))
            .last()?;
        let mut words = loc.split_whitespace();
        Some((file(words.next()?)?, words.next()?.to_owned()))
    };
    let placed = |line: &str| {
        let (number, message) = of_ptxas(line)?;
        let (file, line) = place(number)?;
        Some(format!("{file}({line}): error: inline assembly: {message}"))
    };
    let lines = log
        .lines()
        .map(|line| placed(line).unwrap_or_else(|| line.to_owned()));
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn garbage(reason: &str) -> ToolError {
    ToolError::Garbage {
        tool: ToolKind::Nvcc.to_string(),
        reason: reason.to_owned(),
    }
}

/// The files after the colon of a make rule, as `-MD` writes it: one to a line, blanks escaped.
fn prerequisites(rule: &str) -> Vec<PathBuf> {
    let Some((_, files)) = rule.split_once(" : ") else {
        return Vec::new();
    };
    let lines = files
        .lines()
        .map(|line| line.trim().trim_end_matches('\\').trim_end());
    let names = lines.filter(|line| !line.is_empty());
    names
        .map(|name| PathBuf::from(name.replace("\\ ", " ").replace("$$", "$")))
        .collect()
}

/// The files that line markers of preprocessed text name (`# 1 "/a/b.h" 1`), each once; `<built-in>` is none.
fn marked_files(text: &str) -> BTreeSet<PathBuf> {
    let markers = text.lines().filter_map(|line| line.strip_prefix("# "));
    let names = markers.filter_map(|marker| marker.split('"').nth(1));
    let files = names.filter(|name| !name.starts_with('<') && !name.ends_with("//"));
    files.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_markers_name_files() {
        let text = "# 1 \"/t/k.cu\"\n# 0 \"<built-in>\"\nint x;\n# 1 \"in/a.h\" 1 3\n# 2 \"in/a.h\" 2\n#define A \"b.h\"\n";
        let found: Vec<_> = marked_files(text).into_iter().collect();
        assert_eq!(found, ["/t/k.cu", "in/a.h"].map(PathBuf::from));
    }

    #[test]
    fn paths_are_as_they_were_given() {
        let here = std::env::current_dir().unwrap();
        let here = here.display();
        let log =
            format!("{here}/a/k.cu(3): error: x\n{here}/a/h.cuh(1): error: y\n{here}/ab/z.h\n");
        let said = |source: &str| {
            let refused = ToolError::Rejected {
                tool: "nvcc".into(),
                code: 1,
                diagnostics: Vec::new(),
                log: log.clone(),
            };
            match as_given(refused, Path::new(source)) {
                ToolError::Rejected { log, .. } => log,
                other => panic!("{other}"),
            }
        };
        let given = format!("a/k.cu(3): error: x\na/h.cuh(1): error: y\n{here}/ab/z.h\n");
        assert_eq!(said("a/k.cu"), given);
        assert_eq!(said("k.cu"), log.replace(&format!("{here}/"), ""));
        assert_eq!(said(&format!("{here}/a/k.cu")), log);
    }

    #[test]
    fn inline_assembly_has_a_place_in_the_source() {
        let ptx = ".loc 1 2 3\nadd\n.loc\t1 7 9\n// begin inline asm\nmul.f33 %f1;\n.file\t1 \"/a b/k.cu\"\n";
        let log = "ptxas /tmp/x/out.ptx, line 5; error   : Unknown modifier '.f33'\nptxas fatal   : aborted";
        assert_eq!(
            in_source(log, ptx),
            "/a b/k.cu(7): error: inline assembly: Unknown modifier '.f33'\nptxas fatal   : aborted"
        );
        assert_eq!(in_source(log, ""), log, "nothing to go by");
        assert_eq!(of_ptxas("ptxas fatal   : aborted"), None);
    }

    #[test]
    fn prerequisites_of_a_rule() {
        let rule = "out.ptx : /a/b.cu \\\n    /usr/include/x.h \\\n    /a\\ b/c$$.h\n";
        let found = prerequisites(rule);
        assert_eq!(
            found,
            ["/a/b.cu", "/usr/include/x.h", "/a b/c$.h"].map(PathBuf::from)
        );
        assert_eq!(prerequisites(""), [] as [&Path; 0]);
    }
}
