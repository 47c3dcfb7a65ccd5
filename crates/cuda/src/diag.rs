//! Labelled diagnostics about a source text, and their rendering.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A half-open range of bytes in a source text.
pub type Span = Range<usize>;

/// A text and the name under which diagnostics show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's name, as the user wrote it.
    pub name: String,
    /// Its contents.
    pub text: Arc<str>,
}

impl Source {
    /// A source text.
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        Source {
            name: name.into(),
            text: text.into(),
        }
    }
}

/// What is wrong with a source, with the places it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// A stable name of the kind of problem, such as `stencil::in-place`.
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
        Diagnostic {
            code,
            message: message.into(),
            labels: Vec::new(),
            help: None,
        }
    }

    /// Adds a place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push((span, text.into()));
        self
    }

    /// Sets the help line.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The diagnostic with its source, as miette knows it (the command line renders it in colour).
    ///
    /// Of a line too long to be shown there is only the part around the first label; the name then
    /// holds its line.
    pub fn report<'a>(&'a self, source: &'a Source) -> Report<'a> {
        let text = &*source.text;
        let labels: Vec<(Span, &str)> = self
            .labels
            .iter()
            .map(|(span, label)| (first_lines(span, text), &**label))
            .collect();
        let long = labels
            .iter()
            .any(|(span, _)| longest_line(span, text) > LONG_LINE);
        match labels.first() {
            Some((span, label)) if long => {
                let (name, excerpt, span) = excerpt(source, span);
                Report {
                    diagnostic: self,
                    source: miette::NamedSource::new(name, Arc::from(excerpt)),
                    labels: vec![(span, label)],
                }
            }
            _ => Report {
                diagnostic: self,
                source: miette::NamedSource::new(&source.name, Arc::clone(&source.text)),
                labels,
            },
        }
    }

    /// The whole diagnostic as plain text: message, source lines with labels, help.
    pub fn render(&self, source: &Source) -> String {
        let theme = miette::GraphicalTheme::unicode_nocolor();
        let handler = miette::GraphicalReportHandler::new_themed(theme).with_width(100);
        let mut out = String::new();
        match handler.render_report(&mut out, &self.report(source)) {
            Ok(()) => out,
            Err(fmt::Error) => format!("{}: error: {}", source.name, self.message),
        }
    }
}

/// Renders several diagnostics, one after the other.
pub fn render_all(diagnostics: &[Diagnostic], source: &Source) -> String {
    diagnostics.iter().map(|d| d.render(source)).collect()
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

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.diagnostic.help.as_ref()?;
        Some(Box::new(help))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        let labels = self.labels.iter().map(|(span, text)| {
            let range = (span.start, span.len());
            miette::LabeledSpan::new_with_span(Some((*text).to_owned()), range)
        });
        Some(Box::new(labels))
    }
}

/// Longest line, in bytes, that is shown whole.
const LONG_LINE: usize = 1000;

/// Most lines that one label marks.
const LABEL_LINES: usize = 4;

/// A span within the text, without what lies beyond its first lines.
fn first_lines(span: &Span, text: &str) -> Span {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.floor_char_boundary(span.end.clamp(start, text.len()));
    let inside = &text[start..end];
    let length = inside
        .match_indices('\n')
        .nth(LABEL_LINES - 1)
        .map_or(inside.len(), |(n, _)| n);
    start..start + length
}

/// Length of the longest of the lines that a span touches and of their neighbours, which are shown
/// too.
fn longest_line(span: &Span, text: &str) -> usize {
    let start = text[..span.start].rmatch_indices('\n').nth(1);
    let end = text[span.end..].match_indices('\n').nth(1);
    let start = start.map_or(0, |(at, _)| at + 1);
    let end = end.map_or(text.len(), |(at, _)| span.end + at);
    text[start..end].lines().map(str::len).max().unwrap_or(0)
}

/// A part of the line around the start of a span: its name, its text, and the span in it.
fn excerpt(source: &Source, span: &Span) -> (String, String, Span) {
    const AROUND: usize = 60;
    let text = &*source.text;
    let line = text[..span.start].matches('\n').count() + 1;
    let line_start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[span.start..]
        .find('\n')
        .map_or(text.len(), |at| span.start + at);
    let start = text
        .floor_char_boundary(span.start.saturating_sub(AROUND))
        .max(line_start);
    let end = text.ceil_char_boundary((span.start + AROUND).min(line_end));
    let name = format!("{}:{line}, an excerpt", source.name);
    let from = span.start - start;
    let length = span.len().min(end - span.start);
    (name, text[start..end].to_owned(), from..from + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_shown_as_excerpts() {
        let text = format!(
            "\u{e9}\n{} here {}\nend\n",
            "x ".repeat(50_000),
            "\u{e9}".repeat(9_000)
        );
        let at = text.find("here").unwrap();
        let source = Source::new("long.cu", text);
        let problem = Diagnostic::error("x::y", "wrong").label(at..at + 4, "this");
        let shown = problem.render(&source);
        assert!(shown.contains("[long.cu:2, an excerpt:1:"), "{shown}");
        assert!(shown.contains(" here ") && shown.len() < 1000, "{shown}");
    }

    #[test]
    fn labels_outside_the_text_do_no_harm() {
        let source = Source::new("a.cu", "ab\u{e9}");
        let reversed = Span { start: 4, end: 3 };
        for span in [0..99, 3..3, 7..9, reversed] {
            let problem = Diagnostic::error("x::y", "wrong").label(span, "this");
            assert!(problem.render(&source).contains("wrong"));
        }
    }
}
