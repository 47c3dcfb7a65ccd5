//! Whose text it is that ptxas refuses, and where.

use std::fmt;
use std::ops::Range;

use warpwright_cudac::replace::tokens;
use warpwright_pass::names::{base_name, source_name};
use warpwright_toolkit::{BuildCache, Diagnostic, PtxasJob, Severity, ToolError, Toolkit};

use crate::{Error, Input, Level};

/// PTX that ptxas refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPtx {
    /// The input by name.
    pub name: String,
    /// What made the PTX of it.
    pub made: Made,
    /// The input, where the place is in it.
    pub text: Option<String>,
    /// The line of the PTX, from 1.
    pub line: Option<usize>,
    /// What ptxas says.
    pub message: String,
    /// A function that is called and defined nowhere, as the source has it, and its first call in the input.
    pub unresolved: Option<(String, Option<Range<usize>>)>,
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
        let symbol = found.message.strip_prefix("Unresolved extern function '");
        let symbol = symbol.and_then(|rest| rest.strip_suffix('\''));
        let unresolved = symbol.map(|symbol| {
            let call = match made {
                Made::Given => call_in_ptx(ptx, symbol),
                _ => input
                    .text()
                    .ok()
                    .and_then(|text| call_in_cuda(text, symbol)),
            };
            (source_name(symbol), call)
        });
        let text = match (&made, &unresolved) {
            (Made::Given, _) => Some(ptx.to_owned()),
            (_, Some((_, Some(_)))) => input.text().ok().map(str::to_owned),
            _ => None,
        };
        Some(RefusedPtx {
            name: input.name.clone(),
            text,
            unresolved,
            made,
            line: found.line.map(|line| line as usize),
            is_newer: found.is_newer_version(),
            message: found.message,
        })
    }

    /// Its place in the input: bytes of the text, the line that ptxas names without the blanks around it.
    pub fn span(&self) -> Option<Range<usize>> {
        if let Some((_, call)) = &self.unresolved {
            return call.clone();
        }
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
        if let Some((function, _)) = &self.unresolved {
            return write!(
                f,
                "`{name}` calls `{function}`, which it does not define: bring the definition into the file (#include), \
                 or link the program (nvcc -rdc=true) and name that, whose cubins are optimised as they are"
            );
        }
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

/// The first call of a function in CUDA C: its name where it stands in braces.
fn call_in_cuda(text: &str, symbol: &str) -> Option<Range<usize>> {
    let (name, tokens) = (base_name(symbol), tokens(text));
    let mut depth = 0_u32;
    for (at, token) in tokens.iter().enumerate().filter(|(_, t)| !t.directive) {
        match &text[token.at.clone()] {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            word if depth > 0 && word == name => {
                let next = tokens.get(at + 1).map(|next| &text[next.at.clone()]);
                if next == Some("(") {
                    return Some(token.at.clone());
                }
            }
            _ => {}
        }
    }
    None
}

/// The same in PTX: its symbol behind `call`.
fn call_in_ptx(text: &str, symbol: &str) -> Option<Range<usize>> {
    let is_end = |c: char| !(c.is_alphanumeric() || "_$%".contains(c));
    let mut all = text.match_indices(symbol).filter(|(at, _)| {
        let (before, behind) = (&text[..*at], &text[at + symbol.len()..]);
        let statement = before.rsplit([';', '{', '}']).next().unwrap_or(before);
        before.ends_with(is_end)
            && behind.starts_with(is_end)
            && statement.trim_start().starts_with("call")
    });
    all.next().map(|(at, name)| at..at + name.len())
}

/// An error, with what it is about where it is ptxas's.
pub fn placed(
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
    fn calls_of_what_is_not_there_are_found() {
        let source = "extern __device__ float f(float);\nfloat f2(float);\n#define F { f(1)\n\
                      __global__ void k(float *x) { x[0] = f2(f(x[0])); f(1); }\n";
        let call = call_in_cuda(source, "_Z1ff").expect("a call");
        assert_eq!(&source[call.start - 3..call.end + 2], "f2(f(x");
        assert_eq!(call_in_cuda(source, "_Z1gf"), None);
        let ptx = ".extern .func (.param .b32 r) f\n(.param .b32 p);\n.visible .entry k() {\n\
                   call.uni (r),\nf2,\n(p);\ncall.uni (r),\nf,\n(p);\nret;\n}\n";
        let call = call_in_ptx(ptx, "f").expect("a call");
        assert!(ptx[call.start..].starts_with("f,\n"), "{call:?}");
        assert_eq!(call_in_ptx(ptx, "g"), None);
    }

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
