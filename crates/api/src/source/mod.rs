//! From source to source: naive kernels and stencils of a file, rewritten in CUDA C.
//!
//! * [`read`]: files as nvcc's preprocessor sees them. [`sizes`]: what the predictions go by.
//! * [`naive`], [`stencil`]: what is found in a file, and its rewrite. [`advice`]: what a rewrite would do.
//! * [`build`]: nvcc and ptxas as the executor of passes wants them.

pub mod advice;
pub mod build;
pub mod naive;
pub mod read;
pub mod sizes;
pub mod stencil;

use std::fmt;

use warpwright_driver::source::Kept;
use warpwright_pass::{Artifact, Language, SourceFile};
use warpwright_ptx::Module;
use warpwright_report::screen::wrap;
use warpwright_stencil::replace::{Note, Use};
use warpwright_target::Gpu;
use warpwright_toolkit::{NotFound, Toolkit};

use crate::front::{self, Compile, DEFAULT_GPU};
use crate::{Error, Input, Level};
use sizes::OwnSizes;

/// Sees a rewrite while it works.
pub trait Watch {
    /// The work on a kernel begins.
    fn begins(&self, _kernel: &str) {}

    /// It has ended.
    fn ends(&self) {}

    /// Something that the user should know.
    fn tell(&self, _note: &str) {}
}

impl Watch for crate::Unwatched {}

/// What sources are read and built with.
pub struct Tools<'a> {
    /// nvcc and ptxas, or why there are none.
    pub toolkit: Result<Toolkit, NotFound>,
    /// Options for nvcc.
    pub nvcc: &'a [String],
    /// Looks on.
    pub watch: Box<dyn Watch>,
}

impl Tools<'_> {
    /// The toolkit.
    ///
    /// # Errors
    /// There is none, or not the one that was asked for.
    pub fn toolkit(&self) -> Result<&Toolkit, NotFound> {
        self.toolkit.as_ref().map_err(Clone::clone)
    }

    /// A file as a PTX module: CUDA C goes through nvcc (with source lines if wanted), a cubin is refused.
    ///
    /// # Errors
    /// As of [`front::module`].
    pub fn module(
        &self,
        input: &Input,
        gpu: Option<&Gpu>,
        lineinfo: bool,
    ) -> Result<Module, Error> {
        let compile = Compile {
            gpu,
            nvcc: self.nvcc,
            lineinfo,
            takes_limit: false,
        };
        let toolkit = match input.level {
            Level::Cuda => Some(self.toolkit()?),
            _ => None,
        };
        front::module(toolkit, input, &compile)
    }
}

/// What is asked of a rewrite.
pub struct Request<'a> {
    /// What it is for.
    pub gpu: &'a Gpu,
    /// Sizes that somebody states, elements.
    pub sizes: &'a [(String, i64)],
    /// Those of the file's own launches.
    pub own: &'a OwnSizes,
    /// May the sums of stencils be reordered?
    pub reassociate: bool,
    /// Rewrites that are permitted; none: all.
    pub fuel: Option<u64>,
    /// Where the text goes, as documents say it.
    pub output: Option<String>,
}

/// What came of the kernels of a file.
#[derive(Debug)]
pub struct Rewritten<D> {
    /// Kernel by kernel.
    pub kernels: Vec<D>,
    /// The file with all of them; what was not compared with the input says so at its end.
    pub text: String,
    /// Was everything that was written compared?
    pub is_checked: bool,
}

impl<D> Rewritten<D> {
    fn new(kernels: Vec<D>, mut text: String, is_checked: bool) -> Rewritten<D> {
        if !is_checked {
            text +=
                "// Not checked: what warpwright added here was never compared with the input.\n";
        }
        Rewritten {
            kernels,
            text,
            is_checked,
        }
    }
}

/// The GPU that kernels are made for.
///
/// # Errors
/// [`Error::Gpu`].
pub fn target(name: Option<&str>) -> Result<Gpu, Error> {
    crate::gpu(name.unwrap_or(DEFAULT_GPU))
}

/// A text of a source file, named by its path.
pub fn source(input: &Input, text: String) -> Artifact {
    let name = input.path.display().to_string();
    let language = match input.level {
        Level::Stencil => Language::Stencil,
        _ => Language::Cuda,
    };
    Artifact::source(SourceFile {
        name,
        text,
        language,
    })
}

/// Behind `agrees … at 7 launches`: in how many of the comparisons that holds for every input.
fn for_every_input(proved: usize, compared: usize) -> String {
    match proved {
        0 => String::new(),
        all if all == compared => ", proved there".to_owned(),
        some => format!(", {some} of {compared} proved"),
    }
}

/// The end of a rewrite's screen: why it was not compared, uses that stay as they are, and how many launches do not.
fn write_rest(
    f: &mut fmt::Formatter<'_>,
    unchecked: Option<&str>,
    left: &[String],
    launches: Option<usize>,
) -> fmt::Result {
    if let Some(why) = unchecked {
        let text = format!("NOT CHECKED against the input: {why}");
        writeln!(f, "{}", wrap(&text, "", "  ").join("\n"))?;
    }
    for left in left {
        writeln!(f, "{}", wrap(left, "", "").join("\n"))?;
    }
    match launches {
        Some(launches) => writeln!(f, "launches rewritten: {launches}"),
        None => Ok(()),
    }
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The line of a file where a line stands that is unchanged in a text made of it.
fn line_in(file: &str, text: &str, line: usize) -> usize {
    let wanted = text.lines().nth(line - 1);
    let is_it = |line: &&str| Some(*line) == wanted;
    let before = text.lines().take(line - 1).filter(is_it).count();
    let mut alike = file.lines().zip(1..).filter(|(line, _)| is_it(line));
    alike.nth(before).map_or(line, |(_, number)| number)
}

/// What was left as it is, and what to write there instead; `texts`: the input, and the text that the kernel was in.
pub(crate) fn uses_left(kept: Option<&Kept>, kernel: &str, texts: [&str; 2]) -> Vec<String> {
    let comparison = kept.and_then(|kept| kept.step.comparison.as_ref());
    let Some((comparison, launch)) = comparison.and_then(|c| Some((c, c.launcher.as_ref()?)))
    else {
        return Vec::new();
    };
    let note = |note: &Note| {
        let what = match note.what {
            Use::BeforeDefinition => "a launch in front of the kernel's definition",
            Use::InMacro => "a launch in a macro",
            Use::Other => "another use of the kernel",
        };
        format!(
            "line {}: {what} gets the kernel as written; for the faster one write \
             {launch}(grid, block, shared, stream, …) for {kernel}<<<grid, block, shared, stream>>>(…)",
            line_in(texts[0], texts[1], note.line)
        )
    };
    let mut left: Vec<String> = comparison.left.iter().map(note).collect();
    if comparison.launches == Some(0) {
        left.push(format!(
            "the file launches `{kernel}` nowhere that can be rewritten: call {launch}(grid, block, shared, stream, …) \
             where a program says {kernel}<<<grid, block, shared, stream>>>(…)"
        ));
    }
    left
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_go_through_a_shell() {
        assert_eq!(quoted("--block=256,4"), "--block=256,4");
        assert_eq!(quoted("k<int, 2>"), "'k<int, 2>'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
