//! The macros of a file, and what their uses mean.
//!
//! A use is expanded as the preprocessor does it: arguments are put into the body as text, and the
//! result is parsed. It must be an expression, and it must stay one where it stands: a body such as
//! `a + b` without parentheses inside a product would fall apart, so that is refused. `#`, `##` and
//! variable arguments are refused as well.

use std::collections::BTreeMap;

use crate::ast::{Expr, ExprKind};
use crate::diag::{Diagnostic, Span};
use crate::parse_expr;

/// `#define NAME body`, `#define NAME(parameters) body` or `#undef NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Macro {
    /// Its name.
    pub name: String,
    /// Its parameters, if it takes any.
    pub parameters: Option<Vec<String>>,
    /// Its body; none after `#undef`.
    pub body: Option<String>,
    /// The whole line; that of the `#include` for a macro of a header.
    pub span: Span,
    /// It stands inside an `#if` that nobody decided.
    pub conditional: bool,
    /// It is the toolkit's or the system's.
    pub foreign: bool,
}

/// The macros of a file in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Macros {
    all: Vec<Macro>,
    by_name: BTreeMap<String, Vec<usize>>,
}

/// Most bytes of an expanded use.
const LONGEST: usize = 1 << 16;

impl Macros {
    /// These, in this order.
    pub fn new(all: Vec<Macro>) -> Macros {
        let mut macros = Macros::default();
        macros.extend(all);
        macros
    }

    pub(crate) fn extend(&mut self, more: impl IntoIterator<Item = Macro>) {
        for found in more {
            let same_name = self.by_name.entry(found.name.clone()).or_default();
            same_name.push(self.all.len());
            self.all.push(found);
        }
    }

    /// All definitions but those of the toolkit and the system.
    pub fn iter(&self) -> impl Iterator<Item = &Macro> {
        self.all.iter().filter(|m| !m.foreign)
    }

    /// Those of a name, in order.
    pub fn named(&self, name: &str) -> impl DoubleEndedIterator<Item = &Macro> {
        let numbers = self.by_name.get(name).into_iter().flatten();
        numbers.filter_map(|n| self.all.get(*n))
    }

    /// The body of a macro without parameters that is defined once.
    pub fn object(&self, name: &str) -> Option<&str> {
        let mut named = self.named(name);
        let only = named
            .next()
            .filter(|m| m.parameters.is_none() && !m.conditional)?;
        if named.next().is_some() {
            return None;
        }
        only.body.as_deref()
    }

    /// The definition of a name that holds at a place.
    pub fn get(&self, name: &str, at: usize) -> Option<&Macro> {
        let mut before = self.named(name).rev().filter(|m| m.span.start <= at);
        before.next().filter(|m| m.body.is_some())
    }

    /// What a name is defined as where it stands, if that is known without the preprocessor.
    pub fn body_of(&self, expr: &Expr) -> Option<&str> {
        let ExprKind::Name(name) = &expr.kind else {
            return None;
        };
        let found = self.get(name, expr.span.start)?;
        let is_known = found.parameters.is_none() && !self.named(name).any(|m| m.conditional);
        found.body.as_deref().filter(|_| is_known)
    }

    /// What a name or a call means if it is a macro, expanded once.
    pub fn expand(
        &self,
        expr: &Expr,
        print: impl Fn(&Expr) -> String,
        is_type: impl Fn(&str) -> bool,
    ) -> Expanded {
        let (name, arguments) = match &expr.kind {
            ExprKind::Name(name) => (&**name, None),
            ExprKind::Call(name, arguments) => (&*name.text, Some(arguments)),
            _ => return Expanded::NoMacro,
        };
        let Some(found) = self.get(name, expr.span.start) else {
            return Expanded::NoMacro;
        };
        let choice = self.named(name).find(|m| m.conditional);
        if let Some(choice) = choice {
            let what = format!("what `{name}` means depends on the preprocessor");
            let problem = self.problem(what, expr, choice);
            return Expanded::Problem(problem.help("nvcc is needed to decide it"));
        }
        let body = found.body.as_deref().unwrap_or("");
        let text = match (&found.parameters, arguments) {
            (None, None) => body.to_owned(),
            (Some(parameters), Some(arguments)) => {
                if parameters.len() != arguments.len() {
                    let (wanted, given) = (parameters.len(), arguments.len());
                    let what = format!("the macro `{name}` takes {wanted} arguments, not {given}");
                    return Expanded::Problem(self.problem(what, expr, found));
                }
                let texts: Vec<String> = arguments.iter().map(print).collect();
                substitute(body, parameters, &texts)
            }
            // The name of a macro with arguments means itself without them.
            (Some(_), None) => return Expanded::NoMacro,
            // It stands for the name of what is called.
            (None, Some(arguments)) => {
                let texts: Vec<String> = arguments.iter().map(print).collect();
                format!("{body}({})", texts.join(", "))
            }
        };
        if text.contains('#') || text.len() > LONGEST || body.contains("__VA_ARGS__") {
            let what = format!("the macro `{name}` is not understood");
            return Expanded::Problem(self.problem(what, expr, found));
        }
        match parse_expr(&text, expr.span.clone(), is_type) {
            Some(expr) => Expanded::Expr(Box::new(expr)),
            None => {
                let what = format!("the macro `{name}` is no expression");
                Expanded::Problem(self.problem(what, expr, found))
            }
        }
    }

    fn problem(&self, what: String, used: &Expr, found: &Macro) -> Diagnostic {
        Diagnostic::error("cuda::macro", what)
            .label(used.span.clone(), "used here")
            .label(found.span.clone(), "defined here")
    }
}

/// What becomes of an expression.
pub enum Expanded {
    /// It is no use of a macro.
    NoMacro,
    /// What it stands for.
    Expr(Box<Expr>),
    /// It cannot be expanded.
    Problem(Diagnostic),
}

/// Puts arguments in the place of parameters, word by word.
pub fn substitute(body: &str, parameters: &[String], arguments: &[String]) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match word(first) {
            true => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        match parameters.iter().position(|p| p == token) {
            Some(n) => out.push_str(&arguments[n]),
            None => out.push_str(token),
        }
        if out.len() > LONGEST {
            return out;
        }
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_replace_whole_words() {
        let p = ["x".to_owned(), "y".to_owned()];
        let a = ["i+1".to_owned(), "j".to_owned()];
        assert_eq!(substitute("xx[(y)*W + (x)]", &p, &a), "xx[(j)*W + (i+1)]");
    }
}
