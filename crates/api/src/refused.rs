//! Whose text it is that ptxas refuses, and where.

use std::fmt;

use warpwright_toolkit::{BuildCache, Diagnostic, PtxasJob, Severity, ToolError, Toolkit};

use crate::{Error, Input, Level};

/// PTX that ptxas refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPtx {
    /// The input by name.
    pub name: String,
    /// What made the PTX of it.
    pub made: Made,
    /// The PTX, where it is the input itself.
    pub text: Option<String>,
    /// The line of the PTX, from 1.
    pub line: Option<usize>,
    /// What ptxas says.
    pub message: String,
    /// Is the file of a newer version of PTX than ptxas reads?
    pub is_newer: bool,
}

/// Where PTX comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// It is the input.
    Given,
    /// nvcc made it of the input.
    Compiled,
    /// Warpwright did, by this recipe.
    Candidate(String),
}

impl RefusedPtx {
    /// What an error of ptxas is about, and its place: the text `ptx` of the input as it is, which is tried again by
    /// itself, or what `recipe` made of it. `None` where ptxas does not refuse, but fails.
    pub fn of(
        (toolkit, cache): (&Toolkit, &BuildCache),
        (input, ptx, arch): (&Input, &str, &str),
        recipe: &str,
        error: &ToolError,
    ) -> Option<RefusedPtx> {
        let first = |error: &ToolError| match error {
            ToolError::Rejected { diagnostics, .. } => {
                let is_error = |found: &&Diagnostic| found.severity >= Severity::Error;
                diagnostics.iter().find(is_error).cloned()
            }
            _ => None,
        };
        let found = first(error)?;
        let ptxas = toolkit.ptxas().ok();
        let untouched =
            ptxas.and_then(|ptxas| cache.ptxas(&ptxas, &PtxasJob::new(ptx, arch)).err());
        let (made, found) = match (untouched.as_ref().and_then(first), input.level) {
            (Some(found), Level::Ptx) => (Made::Given, found),
            (Some(found), _) => (Made::Compiled, found),
            (None, _) => (Made::Candidate(recipe.to_owned()), found),
        };
        Some(RefusedPtx {
            name: input.name.clone(),
            text: (made == Made::Given).then(|| ptx.to_owned()),
            made,
            line: found.line.map(|line| line as usize),
            is_newer: found.is_newer_version(),
            message: found.message,
        })
    }

    /// Its place in the input: bytes of the text, the line that ptxas names without the blanks around it.
    pub fn span(&self) -> Option<std::ops::Range<usize>> {
        let (text, number) = (self.text.as_ref()?, self.line?);
        let before = number.checked_sub(1)?;
        let mut lines = text.split_inclusive('\n');
        let start: usize = lines.by_ref().take(before).map(str::len).sum();
        let line = lines.next()?;
        let blanks = line.len() - line.trim_start().len();
        Some(start + blanks..start + line.trim_end().len().max(blanks))
    }
}

impl fmt::Display for RefusedPtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.made {
            Made::Given => write!(f, "ptxas refuses `{name}`")?,
            Made::Compiled => write!(f, "ptxas refuses the PTX that nvcc makes of `{name}`")?,
            Made::Candidate(recipe) => {
                write!(f, "ptxas refuses what `{recipe}` makes of `{name}`")?
            }
        }
        match (self.line, &self.made) {
            (Some(line), Made::Given) => write!(f, ", line {line}")?,
            (Some(line), _) => write!(f, ", at its line {line}")?,
            (None, _) => {}
        }
        write!(f, ": {}", self.message)?;
        if self.is_newer {
            f.write_str(
                " (name a newer toolkit with --toolkit, or fetch one with `warpwright toolkit install`; PTX that uses \
                 nothing newer may state that version)",
            )?;
        }
        Ok(())
    }
}

/// An error, with what it is about where it is ptxas's.
pub(crate) fn placed(
    error: Error,
    tools: Option<(&Toolkit, &BuildCache)>,
    text: (&Input, &str, &str),
    recipe: &str,
) -> Error {
    let (Some(tools), Some(said)) = (tools, error.of_a_tool()) else {
        return error;
    };
    match RefusedPtx::of(tools, text, recipe, said) {
        Some(refused) => Error::Ptxas(Box::new(refused)),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_toolkit::testing::require_toolkit;

    #[test]
    fn what_a_recipe_made_is_not_the_input() {
        let Some(toolkit) = require_toolkit("whose PTX it is") else {
            return;
        };
        let good =
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n\tret;\n}\n";
        let bad = good.replace("ret", "cp.reduce.async.bulk");
        let said = "ptxas <ptx>, line 7; error   : no\n";
        let error = ToolError::Rejected {
            tool: "ptxas".into(),
            code: 255,
            diagnostics: warpwright_toolkit::diagnostic::parse_ptxas(said),
            log: said.into(),
        };
        let cache = BuildCache::disabled();
        let of = |input: &Input, ptx: &str, error: &ToolError| {
            RefusedPtx::of(
                (&toolkit, &cache),
                (input, ptx, "sm_90"),
                "maxnreg(64)",
                error,
            )
        };
        let input = Input::new("k.ptx", good).unwrap();
        let candidate = of(&input, good, &error).unwrap();
        assert_eq!(candidate.made, Made::Candidate("maxnreg(64)".into()));
        assert_eq!((candidate.line, candidate.span()), (Some(7), None));
        let given = of(&Input::new("k.ptx", &*bad).unwrap(), &bad, &error).unwrap();
        assert_eq!((&given.made, given.line), (&Made::Given, Some(5)));
        assert_eq!(&bad[given.span().unwrap()], "cp.reduce.async.bulk;");
        let compiled = of(&Input::new("k.cu", "int x;").unwrap(), &bad, &error).unwrap();
        assert_eq!((compiled.made, compiled.text), (Made::Compiled, None));
        let crashed = ToolError::Signal {
            tool: "ptxas".into(),
            signal: 11,
            log: String::new(),
        };
        assert_eq!(of(&input, good, &crashed), None);
    }
}
