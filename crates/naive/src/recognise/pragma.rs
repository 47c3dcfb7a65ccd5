//! `#pragma warpwright naive sizes(n=4096, m=512) outputs(c) reassociate`, in front of a kernel.

use warpwright_cudac::diag::{Diagnostic, Span};
use warpwright_cudac::{File, Header};

use crate::ir::Pragma;

/// The pragma of a kernel: the first one that stands after the kernel before it.
pub(super) fn of(file: &File, kernel: &Header) -> Result<Option<Pragma>, Diagnostic> {
    others(file, kernel)?;
    place(file, kernel).map_or(Ok(None), |(text, at)| {
        parse(text.trim_start_matches("naive"), at).map(Some)
    })
}

/// Does the pragma speak of these parameters alone?
pub(super) fn fits(
    pragma: &Pragma,
    parameters: &[&str],
    (file, kernel): (&File, &Header),
) -> Result<(), Diagnostic> {
    let sizes = pragma.sizes.iter().map(|(name, _)| name);
    let mut named = sizes.chain(&pragma.outputs);
    let unknown = named.find(|name| !parameters.contains(&name.as_str()));
    let Some((unknown, (_, at))) = unknown.zip(place(file, kernel)) else {
        return Ok(());
    };
    let has = parameters.join(", ");
    let what = format!("the kernel has no parameter `{unknown}`; it has {has}");
    Err(wrong(&what, at))
}

/// What is asked for and not there is said, not left out in silence.
fn others(file: &File, kernel: &Header) -> Result<(), Diagnostic> {
    let before = file.kernels.iter().map(|k| k.span.end);
    let start = before.filter(|end| *end <= kernel.span.start).max();
    let range = start.unwrap_or(0)..kernel.span.end;
    for (text, at) in file
        .pragmas
        .iter()
        .filter(|(_, at)| range.contains(&at.start))
    {
        let word = text.split(|c: char| !c.is_ascii_alphanumeric()).next();
        match word.unwrap_or("") {
            "naive" | "stencil" => {}
            word @ ("tf32" | "bf16x3") => {
                let what = format!("`{word}`: products stay FP32, tensor cores are not used");
                return Err(wrong(&what, at));
            }
            word => return Err(wrong(&format!("`{word}` is no pragma of warpwright"), at)),
        }
    }
    Ok(())
}

fn place<'f>(file: &'f File, kernel: &Header) -> Option<&'f (String, Span)> {
    let before = file.kernels.iter().map(|k| k.span.end);
    let start = before.filter(|end| *end <= kernel.span.start).max();
    let range = start.unwrap_or(0)..kernel.span.end;
    let mut found = file.pragmas.iter();
    found.find(|(text, at)| range.contains(&at.start) && text.starts_with("naive"))
}

fn parse(text: &str, at: &Span) -> Result<Pragma, Diagnostic> {
    let mut pragma = Pragma::default();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after.trim_start();
        match word {
            "reassociate" => pragma.reassociate = true,
            "sizes" | "outputs" => {
                let inner = rest.strip_prefix('(').and_then(|r| r.split_once(')'));
                let (inner, after) =
                    inner.ok_or_else(|| wrong(&format!("`{word}` has no list"), at))?;
                for part in inner.split(',').map(str::trim) {
                    match word {
                        "sizes" => pragma.sizes.push(size(part, at)?),
                        _ => pragma.outputs.push(part.to_owned()),
                    }
                }
                rest = after.trim_start();
            }
            "tf32" | "bf16x3" => {
                let what = format!("`{word}`: products stay FP32, tensor cores are not used");
                return Err(wrong(&what, at));
            }
            _ => {
                let word = if word.is_empty() { rest } else { word };
                let what = format!("`{word}` is nothing to say of a naive kernel");
                return Err(wrong(&what, at));
            }
        }
        rest = rest.trim_start_matches(',').trim_start();
    }
    Ok(pragma)
}

fn size(text: &str, at: &Span) -> Result<(String, i64), Diagnostic> {
    let parsed = text.split_once('=').and_then(|(name, size)| {
        let size: i64 = size.trim().parse().ok()?;
        Some((name.trim().to_owned(), size))
    });
    match parsed {
        Some((name, size)) if size > 0 && !name.is_empty() => Ok((name, size)),
        _ => Err(wrong(&format!("`{text}` is no size"), at)),
    }
}

fn wrong(what: &str, at: &Span) -> Diagnostic {
    Diagnostic::error("naive::pragma", what)
        .label(at.clone(), "in this pragma")
        .help("for example `#pragma warpwright naive sizes(n=4096) outputs(c) reassociate`")
}
