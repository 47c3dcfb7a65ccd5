//! Labelled diagnostics, and their rendering.

use std::fmt;
use std::sync::Arc;

use crate::excerpt::{LONG_LINE, excerpt, first_lines, longest_line};
use crate::span::{LineIndex, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; the module is usable.
    Warning,
    /// The module is wrong.
    Error,
}

/// A text and the name under which diagnostics show it.
pub trait SourceText {
    /// The file's name, as the user wrote it.
    fn name(&self) -> &str;
    /// Its contents.
    fn text(&self) -> &Arc<str>;
}

/// Something to say about a source text, with the places it is about.
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
    #[must_use]
    pub fn label(mut self, span: impl Into<Span>, text: impl Into<String>) -> Self {
        self.labels.push((span.into(), text.into()));
        self
    }

    /// Sets the help line.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Is it an error?
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// `file:line:column: error: message`, for one-line output.
    pub fn one_line(&self, source: &impl SourceText) -> String {
        let at = self.labels.first().map_or(0, |(span, _)| span.start);
        let place = LineIndex::new(source.text()).line_col(source.text(), at);
        let kind = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        format!("{}:{place}: {kind}: {}", source.name(), self.message)
    }

    /// The diagnostic with its source, as miette knows it (the command line renders it in colour).
    ///
    /// Lines too long to be shown (machine-made, or no source text at all) are cut to an excerpt around
    /// the first label; its name then holds line and column.
    pub fn report<'a>(&'a self, source: &impl SourceText) -> Report<'a> {
        let text = source.text();
        let labels = self.labels.iter();
        let labels = labels.map(|(span, label)| (first_lines(*span, text), &**label));
        let labels: Vec<(Span, &str)> = labels.collect();
        let long = |(span, _): &(Span, &str)| longest_line(*span, text) > LONG_LINE;
        match labels.first() {
            Some(&(span, label)) if labels.iter().any(long) => {
                let (name, excerpt, span) = excerpt(source.name(), text, span);
                Report {
                    diagnostic: self,
                    source: miette::NamedSource::new(name, Arc::from(excerpt)),
                    labels: vec![(span, label)],
                }
            }
            _ => Report {
                diagnostic: self,
                source: miette::NamedSource::new(source.name(), Arc::clone(text)),
                labels,
            },
        }
    }

    /// The whole diagnostic as plain text: message, source lines with labels, help.
    pub fn render(&self, source: &impl SourceText) -> String {
        let theme = miette::GraphicalTheme::unicode_nocolor();
        let handler = miette::GraphicalReportHandler::new_themed(theme).with_width(100);
        let mut out = String::new();
        match handler.render_report(&mut out, &self.report(source)) {
            Ok(()) => out,
            Err(fmt::Error) => self.one_line(source),
        }
    }
}

/// Renders several diagnostics, one after the other.
pub fn render_all(diagnostics: &[Diagnostic], source: &impl SourceText) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Text(Arc<str>);

    impl SourceText for Text {
        fn name(&self) -> &str {
            "long.txt"
        }

        fn text(&self) -> &Arc<str> {
            &self.0
        }
    }

    fn shown(text: &str, span: impl Into<Span>) -> String {
        let wrong = Diagnostic::error("x::y", "wrong").label(span, "this");
        wrong.render(&Text(text.into()))
    }

    #[test]
    fn long_lines_are_shown_as_excerpts() {
        let (before, after) = ("x ".repeat(50_000), "\u{e9}".repeat(9_000));
        let text = format!("\u{e9}\n{before} here {after}\nend\n");
        let at = text.find("here").unwrap();
        let shown = shown(&text, at..at + 4);
        assert!(
            shown.contains("[long.txt:2:100002, an excerpt:1:"),
            "{shown}"
        );
        assert!(shown.contains(" here ") && shown.len() < 1000, "{shown}");
    }

    #[test]
    fn a_label_marks_a_few_lines_at_most() {
        let text = "never closed\n".repeat(1000);
        let shown = shown(&text, 0..text.len());
        assert!(shown.lines().count() < 20, "{shown}");
    }

    #[test]
    fn labels_outside_the_text_do_no_harm() {
        for (start, end) in [(0, 99), (3, 3), (7, 9), (4, 3)] {
            let shown = shown("ab\u{e9}", Span::new(start, end));
            assert!(shown.contains("wrong"), "{shown}");
        }
    }
}
