//! `#pragma warpwright stencil unroll(j=4, k=2) reassociate`, in front of a kernel or inside it.

use warpwright_cudac::diag::{Diagnostic, Span};
use warpwright_cudac::{File, Header};

/// What the pragma of a kernel asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pragma {
    pub(super) unroll: Vec<(String, u32)>,
    pub(super) reassociate: bool,
    pub(super) span: Span,
}

/// The pragma of a kernel: the first one that stands after the kernel before it.
pub(super) fn of(file: &File, kernel: &Header) -> Result<Option<Pragma>, Diagnostic> {
    let before = file.kernels.iter().map(|k| k.span.end);
    let start = before.filter(|end| *end <= kernel.span.start).max();
    let range = start.unwrap_or(0)..kernel.span.end;
    for (text, span) in &file.pragmas {
        if range.contains(&span.start)
            && let Some(rest) = text.strip_prefix("stencil")
        {
            return parse(rest, span).map(Some);
        }
    }
    Ok(None)
}

fn parse(text: &str, span: &Span) -> Result<Pragma, Diagnostic> {
    let mut pragma = Pragma {
        span: span.clone(),
        ..Pragma::default()
    };
    let mut rest = text.trim();
    while !rest.is_empty() {
        let length = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        rest = after.trim_start();
        match word {
            "reassociate" => pragma.reassociate = true,
            "unroll" => {
                let inner = rest.strip_prefix('(').and_then(|r| r.split_once(')'));
                let Some((inner, after)) = inner else {
                    return Err(wrong("`unroll` is followed by `(iterator=factor)`", span));
                };
                for part in inner.split(',') {
                    pragma.unroll.push(factor(part, span)?);
                }
                rest = after.trim_start();
            }
            _ => {
                let word = if word.is_empty() { rest } else { word };
                return Err(wrong(
                    &format!("`{word}` is nothing to ask of a stencil"),
                    span,
                ));
            }
        }
        rest = rest.trim_start_matches(',').trim_start();
    }
    Ok(pragma)
}

fn factor(text: &str, span: &Span) -> Result<(String, u32), Diagnostic> {
    let parsed = text.split_once('=').and_then(|(name, factor)| {
        let factor: u32 = factor.trim().parse().ok()?;
        Some((name.trim().to_owned(), factor))
    });
    match parsed {
        Some((name, factor @ 1..=64)) if !name.is_empty() => Ok((name, factor)),
        _ => {
            let what = format!(
                "`{}` is no iterator with a factor from 1 to 64",
                text.trim()
            );
            Err(wrong(&what, span))
        }
    }
}

fn wrong(what: &str, span: &Span) -> Diagnostic {
    Diagnostic::error("stencil::pragma", what)
        .label(span.clone(), "in this pragma")
        .help("for example `#pragma warpwright stencil unroll(j=4, k=2) reassociate`")
}
