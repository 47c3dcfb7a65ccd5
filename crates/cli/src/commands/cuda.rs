//! CUDA C as source: files as nvcc's preprocessor sees them, and the stencils in them.

use std::path::Path;

use serde::Serialize;
use warpwright::Counted;
use warpwright::device_code::some_names;
use warpwright::front::{architecture, refuse_options};
use warpwright::optimise::KernelEdits;
use warpwright_cudac::diag::{Diagnostic, Source};
use warpwright_cudac::{File, marked};
use warpwright_driver::naive::promise;
use warpwright_naive::versions::is_emulated;
use warpwright_pass::names::{base_name, is_definition_named};
use warpwright_report::edit::{Edit, Gives};
use warpwright_report::screen::part as in_words;
use warpwright_stencil::extract;
use warpwright_stencil::ir::Stencil;
use warpwright_target::Gpu;
use warpwright_toolkit::{NvccJob, ToolError, Toolkit};

use super::own_sizes::OwnSizes;
use super::stencil::failure;
use super::{naive_opt, quoted, stencil_opt};
use crate::args::{Cli, KernelArgs};
use crate::failure::Failure;
use crate::input::Input;
use crate::session;

/// The architecture that a file is read for where none is named.
const DEFAULT_TARGET: &str = "sm_90";

/// A file with what nvcc's preprocessor says of it: headers, `-D` and `#if` count as they do for the
/// compiler. Without an nvcc, or where it refuses the file, the text stands for itself; what then
/// depends on the preprocessor is refused where it is used.
///
/// # Errors
/// Arguments for nvcc, but no nvcc that takes them; a file that is too large.
pub fn read(
    cli: &Cli,
    input: &Input,
    target: Option<&str>,
    nvcc: &[String],
) -> Result<File, Failure> {
    refuse_options(nvcc)?;
    let source = Source::new(&*input.name, input.text()?);
    let toolkit = session::toolkit(cli);
    let output = toolkit.and_then(|toolkit| {
        preprocessed(&toolkit, (&input.path, target, nvcc), &source.text).map_err(Failure::from)
    });
    let output = match output {
        // What was said to nvcc is not to be done without in silence.
        Err(failure) if !nvcc.is_empty() => return Err(failure),
        output => output.ok(),
    };
    let file = parsed(&input.path, output, source.clone());
    file.map_err(|problem| failure(&[problem], &source))
}

/// A changed copy of a file's text, read in the same way.
pub fn read_again(
    cli: &Cli,
    input: &Input,
    nvcc: &[String],
    text: String,
) -> Result<File, Failure> {
    let source = Source::new(&*input.name, text);
    let read = reader(cli, &input.path, nvcc)(source);
    read.ok_or_else(|| Failure::Internal(format!("`{}` is not read again", input.name)))
}

/// The same for changed copies of a file's text.
pub fn reader(cli: &Cli, path: &Path, nvcc: &[String]) -> impl Fn(Source) -> Option<File> {
    let toolkit = session::toolkit(cli).ok();
    move |source| {
        let output = toolkit
            .as_ref()
            .and_then(|toolkit| preprocessed(toolkit, (path, None, nvcc), &source.text).ok());
        parsed(path, output, source).ok()
    }
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
pub fn stencils(file: &File, kernel: Option<&str>) -> Result<Found, Failure> {
    let mut found = Found::default();
    for header in &file.kernels {
        if kernel.is_some_and(|name| !is_definition_named(name, &header.name.text)) {
            continue;
        }
        let is_marked = extract::is_marked(file, header);
        let is_marked = is_marked.map_err(|problem| failure(&[problem], &file.source))?;
        match extract::extract(file, header) {
            Ok(stencil) => found.stencils.push(stencil),
            Err(problems) if is_marked => return Err(failure(&problems, &file.source)),
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
pub fn named(file: &File, pattern: &str) -> Result<Vec<String>, Failure> {
    let all = file.kernels.iter().map(|header| header.name.text.clone());
    let mut all: Vec<String> = all.collect();
    all.dedup();
    let is_meant = |name: &&String| is_definition_named(pattern, name);
    let found: Vec<String> = all.iter().filter(is_meant).cloned().collect();
    match found.is_empty() {
        false => Ok(found),
        true => Err(Failure::input(format!(
            "`{}` has no kernel `{pattern}`; it has {}",
            file.source.name,
            some_names(&all)
        ))),
    }
}

/// What `opt FILE -o OUT.cu` would do.
pub struct Advice {
    /// In a sentence.
    pub text: String,
    /// By kernel, as edits.
    pub rewrites: Vec<KernelEdits>,
}

/// What `opt FILE -o OUT.cu` would do, by the decisions that it makes itself at the sizes of launches that are known;
/// nothing where it would write no other kernel.
pub fn advice(
    file: &File,
    args: &KernelArgs,
    nvcc: &[String],
    counted: &[Counted],
) -> Option<Advice> {
    let own = &OwnSizes::of(file, counted);
    let stated = architecture(None, nvcc).ok().and_then(|(stated, _)| stated);
    let (kernel, gpu) = (args.one().ok()?, args.gpu.as_deref().or(stated.as_deref()));
    let (named, gpu) = (gpu, stencil_opt::target(gpu).ok()?);
    let (naive, _) = naive_opt::wanted_in(file, kernel).ok()?;
    if !naive.is_empty() {
        // Of several kernels the others would be written as well, or be in the way.
        let is_one_of_many = file.kernels.len() > 1;
        return what_pays((file, own), naive, (named, &gpu), is_one_of_many);
    }
    let headers = match kernel {
        None => extract::choose_all(file).ok()?,
        Some(name) => {
            let all = file.kernels.iter();
            all.filter(|header| is_definition_named(name, &header.name.text))
                .collect()
        }
    };
    let stencils = headers
        .into_iter()
        .filter_map(|header| extract::extract(file, header).ok());
    let stencils = stencils.filter(|stencil| stencil_opt::can_be_written(stencil, &gpu));
    let stencils: Vec<Stencil> = stencils.collect();
    let mut advice = what_to_do(file, &stencils)?;
    // Beside stencils naive kernels are left alone, unless they are named.
    let is_other = |name: &str| kernel.is_none() && stencils.iter().all(|s| s.name != name);
    let others = file.kernels.iter().map(|header| &*header.name.text);
    let others = others.filter(|name| is_other(name));
    let found = others.filter_map(|name| naive_opt::wanted_in(file, Some(name)).ok());
    let found: Vec<_> = found.flat_map(|(found, _)| found).collect();
    if let Some(more) = what_pays((file, own), found, (named, &gpu), true) {
        advice.text = format!("{}; {}", advice.text, more.text);
        advice.rewrites.extend(more.rewrites);
    }
    Some(advice)
}

/// A rewrite of a kernel as an edit at its definition.
fn rewrite(file: &File, kernel: &str, text: String, gives: Gives) -> KernelEdits {
    let line = defined_at(file, kernel);
    KernelEdits {
        kernel: kernel.to_owned(),
        edits: vec![Edit { line, text, gives }],
    }
}

/// `file:line` where a kernel is defined, by its name.
fn defined_at(file: &File, kernel: &str) -> Option<String> {
    let mut all = file.kernels.iter();
    let header = all.find(|header| header.name.text == kernel)?;
    let before = file.source.text.get(..header.span.start)?;
    let name = file.source.name.rsplit('/').next().unwrap_or_default();
    Some(format!("{name}:{}", before.matches('\n').count() + 1))
}

/// Says of edits at kernels where these are defined; options of nvcc stand nowhere.
pub fn place(edits: &mut [KernelEdits], file: &File) {
    for of in edits {
        let line = defined_at(file, &base_name(&of.kernel));
        let at_kernel = of
            .edits
            .iter_mut()
            .filter(|edit| !edit.text.starts_with("`-"));
        at_kernel.for_each(|edit| edit.line.clone_from(&line));
    }
}

/// What `opt FILE -o OUT.cu` would do with the naive kernels that it finds, in a sentence; nothing where none is
/// predicted to gain.
fn what_pays(
    (file, own): (&File, &OwnSizes),
    found: Vec<naive_opt::Found>,
    (named, gpu): (Option<&str>, &Gpu),
    wants_name: bool,
) -> Option<Advice> {
    // What cannot be compared is not advised.
    let problems = found.into_iter().map(|found| found.problem);
    let problems = problems.filter(|problem| is_emulated(&problem.kernel));
    let gains = problems.filter_map(|mut problem| {
        let sizes = naive_opt::state(&mut problem, &[], own);
        Some((promise(&problem.kernel, gpu)?, problem.kernel.name, sizes))
    });
    let gains: Vec<_> = gains.collect();
    let (part, first, sizes) = gains.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let also = match gains.len() {
        1 => String::new(),
        count => format!(" ({} more)", count - 1),
    };
    let gpu_option = named.map_or_else(String::new, |gpu| format!(" --gpu {}", quoted(gpu)));
    let command = |kernel: &str| {
        let kernel = match wants_name {
            true => format!(" --kernel {kernel}"),
            false => String::new(),
        };
        let name = &file.source.name;
        format!(
            "`warpwright opt {name} -o OUT.cu{gpu_option}{kernel}` writes a tuned kernel in CUDA C"
        )
    };
    let rewrites = gains.iter().map(|(part, kernel, sizes)| {
        let text = format!("{}{}", command(kernel), sizes.at());
        rewrite(file, kernel, text, Gives::Predicted(*part))
    });
    Some(Advice {
        text: format!(
            "`{first}` computes one element in a thread{also}: {}, predicted to take {} of its time on {}{}",
            command(first),
            in_words(*part),
            gpu.target(),
            sizes.at(),
        ),
        rewrites: rewrites.collect(),
    })
}

/// What can be done with the stencils of a file, in a sentence; nothing where there are none.
fn what_to_do(file: &File, stencils: &[Stencil]) -> Option<Advice> {
    let names: Vec<String> = stencils.iter().map(|s| format!("`{}`", s.name)).collect();
    let (is, one) = match stencils {
        [] => return None,
        [_] => ("is a stencil", ""),
        _ => ("are stencils", " --kernel NAME"),
    };
    let name = &file.source.name;
    let what = "looks for a faster kernel in CUDA C (more points for a thread, streaming through planes, an order that \
                needs fewer registers)";
    let own = |stencil: &Stencil| {
        let kernel = &stencil.name;
        let named = if one.is_empty() {
            String::new()
        } else {
            format!(" --kernel {kernel}")
        };
        let text = format!("a stencil: `warpwright opt {name} -o OUT.cu{named}` {what}");
        rewrite(file, kernel, text, Gives::Unknown)
    };
    Some(Advice {
        text: format!(
            "{} {is}: `warpwright opt {name} -o OUT.cu{one}` {what}",
            names.join(", ")
        ),
        rewrites: stencils.iter().map(own).collect(),
    })
}
