//! CUDA C as source: files as nvcc's preprocessor sees them, and the stencils in them.

use std::path::Path;

use serde::Serialize;
pub use warpwright_cudac::File;
use warpwright_cudac::diag::{Diagnostic, Source, render_all};
use warpwright_cudac::marked;
use warpwright_pass::names::is_definition_named;
use warpwright_stencil::extract;
use warpwright_stencil::ir::Stencil;
use warpwright_toolkit::{NvccJob, ToolError, Toolkit};

use super::Tools;
use crate::device_code::some_names;
use crate::front::refuse_options;
use crate::{Error, Input};

/// The architecture that a file is read for where none is named.
const DEFAULT_TARGET: &str = "sm_90";

/// A file with what nvcc's preprocessor says of it: headers, `-D` and `#if` count as they do for the
/// compiler. Without an nvcc, or where it refuses the file, the text stands for itself; what then
/// depends on the preprocessor is refused where it is used.
///
/// # Errors
/// Arguments for nvcc, but no nvcc that takes them; a file that is too large.
pub fn read(tools: &Tools<'_>, input: &Input, target: Option<&str>) -> Result<File, Error> {
    refuse_options(tools.nvcc)?;
    let source = Source::new(&*input.name, input.text()?);
    let job = (&*input.path, target, tools.nvcc);
    let toolkit = tools.toolkit().map_err(Error::from);
    let output = toolkit.and_then(|toolkit| Ok(preprocessed(toolkit, job, &source.text)?));
    let output = match output {
        // What was said to nvcc is not to be done without in silence.
        Err(error) if !tools.nvcc.is_empty() => return Err(error),
        output => output.ok(),
    };
    let file = parsed(&input.path, output, source.clone());
    file.map_err(|problem| rendered(&[problem], &source))
}

/// Diagnostics as an error.
pub(crate) fn rendered(problems: &[Diagnostic], source: &Source) -> Error {
    Error::Source(render_all(problems, source))
}

/// A changed copy of a file's text, read in the same way.
///
/// # Errors
/// [`Error::Internal`]: what was written is not read again.
pub(crate) fn read_again(tools: &Tools<'_>, input: &Input, text: String) -> Result<File, Error> {
    let source = Source::new(&*input.name, text);
    let read = read_changed(tools, &input.path, source);
    read.ok_or(Error::Internal("what was written is not read again"))
}

/// A changed copy of the text of a file at a path.
pub(crate) fn read_changed(tools: &Tools<'_>, path: &Path, source: Source) -> Option<File> {
    let toolkit = tools.toolkit().ok();
    let output = toolkit
        .and_then(|toolkit| preprocessed(toolkit, (path, None, tools.nvcc), &source.text).ok());
    parsed(path, output, source).ok()
}

/// What the preprocessor makes of a text at a path, for a target, with more options.
fn preprocessed(
    toolkit: &Toolkit,
    (path, target, nvcc): (&Path, Option<&str>, &[String]),
    text: &str,
) -> Result<String, ToolError> {
    let mut job = NvccJob::new(path, target.unwrap_or(DEFAULT_TARGET));
    job.extra = nvcc.iter().map(Into::into).collect();
    toolkit.nvcc()?.preprocess(&job, &marked(text))
}

/// A text, with what the preprocessor says of it if it says something.
fn parsed(path: &Path, output: Option<String>, source: Source) -> Result<File, Diagnostic> {
    let copy = path.file_name().map(|name| name.to_string_lossy());
    match (output, copy) {
        (Some(output), Some(copy)) => {
            File::parse_preprocessed(source, &format!("/{copy}"), &output)
        }
        _ => File::parse(source),
    }
}

/// What the kernels of a file are.
#[derive(Default)]
pub struct Found {
    /// The stencils, in order.
    pub stencils: Vec<Stencil>,
    /// The other kernels.
    pub others: Vec<Other>,
}

/// A kernel that is no stencil as far as it is understood, and the first reason.
#[derive(Serialize)]
pub struct Other {
    /// Its name.
    pub kernel: String,
    /// What is in the way.
    pub reason: String,
    /// Where: line and column, from 1.
    pub line: u32,
    /// In characters.
    pub column: u32,
}

/// Looks at all kernels of a file, or at those of a name.
///
/// # Errors
/// A kernel is marked as a stencil but is none, or its pragma is not understood.
pub fn stencils(file: &File, kernel: Option<&str>) -> Result<Found, Error> {
    let mut found = Found::default();
    for header in &file.kernels {
        if kernel.is_some_and(|name| !is_definition_named(name, &header.name.text)) {
            continue;
        }
        let is_marked = extract::is_marked(file, header);
        let is_marked = is_marked.map_err(|problem| rendered(&[problem], &file.source))?;
        match extract::extract(file, header) {
            Ok(stencil) => found.stencils.push(stencil),
            Err(problems) if is_marked => return Err(rendered(&problems, &file.source)),
            Err(problems) => {
                let name = &header.name.text;
                found
                    .others
                    .extend(problems.first().map(|p| other(file, name, p)));
            }
        }
    }
    Ok(found)
}

fn other(file: &File, kernel: &str, problem: &Diagnostic) -> Other {
    let at = problem
        .labels
        .first()
        .map_or(0, |(span, _)| span.start as usize);
    let before = file.source.text.get(..at).unwrap_or("");
    let line = before.rfind('\n').map_or(before, |end| &before[end + 1..]);
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Other {
        kernel: kernel.to_owned(),
        reason: problem.message.clone(),
        line: number(before.matches('\n').count() + 1),
        column: number(line.chars().count() + 1),
    }
}

/// The names of the kernels of a file that a pattern means.
///
/// # Errors
/// There are none.
pub(crate) fn named(file: &File, pattern: &str) -> Result<Vec<String>, Error> {
    let all = file.kernels.iter().map(|header| header.name.text.clone());
    let mut all: Vec<String> = all.collect();
    all.dedup();
    let is_meant = |name: &&String| is_definition_named(pattern, name);
    let found: Vec<String> = all.iter().filter(is_meant).cloned().collect();
    match found.is_empty() {
        false => Ok(found),
        true => Err(Error::NoSuchKernel {
            name: file.source.name.clone(),
            kernel: pattern.to_owned(),
            has: some_names(&all),
        }),
    }
}
