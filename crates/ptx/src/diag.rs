//! Labelled diagnostics, and their rendering.

use std::fmt;
use std::sync::Arc;

use crate::ir::Module;
use crate::span::{LineIndex, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; the module is usable.
    Warning,
    /// The module is wrong.
    Error,
}

/// Something to say about a module, with the places it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// A stable name of the kind of problem, such as `ptx::name`.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// Places with a remark each; the first is the main one.
    pub labels: Vec<(Span, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        let severity = Severity::Error;
        Diagnostic {
            severity,
            code,
            message: message.into(),
            labels: Vec::new(),
            help: None,
        }
    }

    /// A warning.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, message)
        }
    }

    /// Adds a place.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push((span, text.into()));
        self
    }

    /// Sets the help line.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Is it an error?
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// `file:line:column: error: message`, for one-line output.
    pub fn one_line(&self, module: &Module) -> String {
        let at = self.labels.first().map_or(0, |(span, _)| span.start);
        let place = LineIndex::new(&module.source).line_col(&module.source, at);
        let kind = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        format!("{}:{place}: {kind}: {}", module.name, self.message)
    }

    /// The diagnostic with its source, as miette knows it (the command line renders it in colour).
    ///
    /// Lines too long to be shown (machine-made, or no PTX at all) are cut to an excerpt around
    /// the first label; its name then holds line and column.
    pub fn report<'a>(&'a self, module: &'a Module) -> Report<'a> {
        let text = &*module.source;
        let labels: Vec<(Span, &str)> = self
            .labels
            .iter()
            .map(|(span, label)| (first_lines(*span, text), &**label))
            .collect();
        match labels.first() {
            Some(&first)
                if labels
                    .iter()
                    .any(|(span, _)| line_length(*span, text) > LONG_LINE) =>
            {
                let (name, excerpt, span) = excerpt(&module.name, text, first.0);
                let source = miette::NamedSource::new(name, Arc::from(excerpt));
                Report {
                    diagnostic: self,
                    source,
                    labels: vec![(span, first.1)],
                }
            }
            _ => {
                let source = miette::NamedSource::new(&module.name, Arc::clone(&module.source));
                Report {
                    diagnostic: self,
                    source,
                    labels,
                }
            }
        }
    }

    /// The whole diagnostic as plain text: message, source lines with labels, help.
    pub fn render(&self, module: &Module) -> String {
        let theme = miette::GraphicalTheme::unicode_nocolor();
        let handler = miette::GraphicalReportHandler::new_themed(theme).with_width(100);
        let mut out = String::new();
        match handler.render_report(&mut out, &self.report(module)) {
            Ok(()) => out,
            Err(fmt::Error) => self.one_line(module),
        }
    }
}

/// A diagnostic together with its source text.
#[derive(Debug)]
pub struct Report<'a> {
    diagnostic: &'a Diagnostic,
    source: miette::NamedSource<Arc<str>>,
    labels: Vec<(Span, &'a str)>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}

impl std::error::Error for Report<'_> {}

impl miette::Diagnostic for Report<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.diagnostic.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.diagnostic.help.as_ref()?;
        Some(Box::new(help))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        let labels = self.labels.iter().map(|&(span, text)| {
            let range = (span.start as usize, span.len() as usize);
            miette::LabeledSpan::new_with_span(Some(text.to_owned()), range)
        });
        Some(Box::new(labels))
    }
}

/// Longest line, in bytes, that is shown whole.
const LONG_LINE: usize = 1000;

/// Most lines that one label marks.
const LABEL_LINES: usize = 4;

/// A span without what lies beyond its first lines.
fn first_lines(span: Span, text: &str) -> Span {
    let inside = span.text(text);
    let end = inside
        .match_indices('\n')
        .nth(LABEL_LINES - 1)
        .map_or(inside.len(), |(n, _)| n);
    Span::new(span.start, span.start + end as u32)
}

/// Length in bytes of the longest line that a span touches or that stands next to those.
fn line_length(span: Span, text: &str) -> usize {
    let bytes = text.as_bytes();
    let (before, rest) = bytes.split_at((span.start as usize).min(bytes.len()));
    let (inside, after) = rest.split_at((span.len() as usize).min(rest.len()));
    // One line on each side is shown too.
    let start = memchr::memrchr_iter(b'\n', before)
        .nth(1)
        .map_or(0, |n| n + 1);
    let end = memchr::memchr_iter(b'\n', after)
        .nth(1)
        .unwrap_or(after.len());
    let shown = &bytes[start..before.len() + inside.len() + end];
    shown
        .split(|&b| b == b'\n')
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0)
}

/// A piece of the line around the start of a span: its name, its text and the span within.
fn excerpt(name: &str, text: &str, span: Span) -> (String, String, Span) {
    const AROUND: usize = 60;
    let at = (span.start as usize).min(text.len());
    let place = LineIndex::new(text).line_col(text, span.start);
    let line_start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let line_end = text[at..].find('\n').map_or(text.len(), |n| at + n);
    let start = text
        .floor_char_boundary(at.saturating_sub(AROUND))
        .max(line_start);
    let end = text
        .ceil_char_boundary((at + AROUND).min(line_end))
        .min(line_end);
    let length = (span.len() as usize).min(end - at);
    let length = text[at..].floor_char_boundary(length);
    let name = format!("{name}:{place}, an excerpt");
    let from = (at - start) as u32;
    (
        name,
        text[start..end].to_owned(),
        Span::new(from, from + length as u32),
    )
}

/// The candidate nearest to `name` in spelling, if it is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.len() / 3).clamp(1, 3);
    let distances = candidates.map(|c| (edit_distance(name, c, limit), c));
    let near = distances.filter_map(|(d, c)| d.map(|d| (d, c)));
    near.min().map(|(_, c)| c)
}

/// Levenshtein distance in bytes if it is at most `limit`.
fn edit_distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit || a.len() > 256 {
        return None;
    }
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().filter(|&d| d <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_shown_as_excerpts() {
        let source = format!(
            ".version 8.0\n.target sm_90\n/* {} */ \u{e9}\u{e9} {}\n",
            "\u{e9}".repeat(50_000),
            "x ".repeat(90_000)
        );
        let (module, diagnostics) = Module::parse("long.ptx", &source);
        let text = diagnostics[0].render(&module);
        assert!(text.contains("[long.ptx:3:50008, an excerpt:1:"), "{text}");
        assert!(text.len() < 2000, "{text}");
    }

    #[test]
    fn a_label_marks_a_few_lines_at_most() {
        let source = format!(
            ".version 8.0\n.target sm_90\n/* {}",
            "never closed\n".repeat(1000)
        );
        let (module, diagnostics) = Module::parse("open.ptx", &source);
        let text = diagnostics[0].render(&module);
        assert!(text.lines().count() < 20, "{text}");
    }

    #[test]
    fn suggestions_are_near_and_stable() {
        let names = ["%rd1", "%rd2", "foo_param_0", "bar"];
        assert_eq!(
            nearest("foo_parm_0", names.into_iter()),
            Some("foo_param_0")
        );
        assert_eq!(nearest("%rd9", names.into_iter()), Some("%rd1"));
        assert_eq!(nearest("quite_another", names.into_iter()), None);
    }
}
