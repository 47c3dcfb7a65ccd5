//! How a command fails: one labelled message on stderr and the exit code of the contract.

use miette::{LabeledSpan, NamedSource, miette};
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use warpwright::{Error, Fault};
use warpwright_diag::{Diagnostic, Problem, SourceText, printable};

use warpwright_report::screen::wrap;

use warpwright_files::STDIN;

/// The command with the one before it, for `see … --help`.
pub static COMMAND: OnceLock<String> = OnceLock::new();

/// Why a command stopped.
#[derive(Debug)]
pub enum Failure {
    /// The input is wrong: exit code 1. The report carries file, line and column where known.
    Input(miette::Report),
    /// The input is wrong, and the messages are rendered already: exit code 1.
    Rendered(String),
    /// Wrong usage: exit code 2.
    Usage(String),
    /// A tool or device is missing: exit code 3.
    Missing {
        /// What is missing.
        what: String,
        /// The command that mends it.
        mend: Option<String>,
    },
    /// Our own mistake: exit code 4.
    Internal(String),
    /// The checker does not decide, or nothing is proved: exit code 5.
    Undecided(String),
    /// The result was printed already; only the exit code is left to say.
    Quiet(u8),
}

/// What `--json` has of a failure.
#[derive(Debug, Serialize)]
struct Document {
    /// `warpwright.error/1`
    schema: &'static str,
    /// The exit code.
    code: u8,
    /// `input`, `usage`, `missing`, `internal` or `undecided`.
    kind: &'static str,
    message: String,
    /// Where in a file, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
    /// The command that mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

/// A place in a file; lines and columns begin at 1.
#[derive(Debug, Serialize)]
struct Place {
    file: Option<String>,
    line: usize,
    column: usize,
    label: Option<String>,
}

impl Place {
    /// Where the first label of a report is.
    fn of(report: &miette::Report) -> Option<Place> {
        let label = report.labels()?.next()?;
        let contents = report.source_code()?.read_span(label.inner(), 0, 0).ok()?;
        Some(Place {
            file: contents.name().map(str::to_owned),
            line: contents.line() + 1,
            column: contents.column() + 1,
            label: label.label().map(str::to_owned),
        })
    }
}

/// What a compiler or one of our own front ends has rendered: the place of its first error.
impl Place {
    fn rendered(text: &str) -> Option<Place> {
        let mut lines = text.lines();
        let place = lines.by_ref().find_map(|line| {
            // `╭─[k.ptx:3:5]`, ours
            if let Some((_, rest)) = line.split_once("─[") {
                let mut parts = rest.split(']').next()?.rsplitn(3, ':');
                let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
                return Some((parts.next()?.to_owned(), line, Some(column)));
            }
            // `k.cu(3): error: …`, nvcc's
            let (place, _) = line.split_once("): error")?;
            let (file, line) = place.rsplit_once('(')?;
            Some((file.to_owned(), line.parse().ok()?, None))
        });
        let (file, line, column) = place?;
        // nvcc quotes the line behind two blanks and points at the column.
        let marked = || {
            lines.take(4).find_map(|line| {
                let at = line.find('^')?;
                line[..at].trim().is_empty().then(|| at.saturating_sub(1))
            })
        };
        Some(Place {
            file: Some(file),
            line,
            column: column.or_else(marked).unwrap_or(1).max(1),
            label: None,
        })
    }
}

/// A text that is shown as PTX is: of a long line, the part around the label.
struct Text {
    name: String,
    text: Arc<str>,
}

impl SourceText for Text {
    fn name(&self) -> &str {
        &self.name
    }

    fn text(&self) -> &Arc<str> {
        &self.text
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let labelled = |name: &str, text: &str, label: LabeledSpan, message: String| {
            let report = miette!(labels = vec![label], "{message}");
            Failure::Input(report.with_source_code(NamedSource::new(name, text.to_owned())))
        };
        let text = error.to_string();
        match &error {
            Error::Ptx(_) | Error::Source(_) | Error::Nvcc { .. } | Error::Faulted(_) => {
                Failure::Rendered(text)
            }
            Error::Sass {
                name,
                text: source,
                error,
            } => {
                let span = error.span(source);
                let message = cut(&error.kind.to_string(), LONGEST_MESSAGE);
                // A place in a document is a label's; of long lines only a part is shown, control characters escaped.
                let is_plain = |line: &str| {
                    line.len() <= LONGEST_MESSAGE
                        && !line.contains(|c: char| c.is_control() && c != '\t')
                };
                if source.lines().all(is_plain) {
                    return labelled(name, source, LabeledSpan::at(span, "here"), message);
                }
                let text = Text {
                    name: name.to_string(),
                    text: source.to_string().into(),
                };
                let diagnostic = Diagnostic::error("sass::text", message).label(span, "here");
                Failure::Rendered(diagnostic.render(&text))
            }
            Error::Ptxas(refused) => match (refused.span(), &refused.text) {
                (Some(span), Some(ptx)) => {
                    labelled(&refused.name, ptx, LabeledSpan::at(span, "here"), text)
                }
                _ => Failure::input(text),
            },
            Error::NotText { name, before, .. } if !before.is_empty() => {
                let at = before.len();
                let label = LabeledSpan::at(at.saturating_sub(1)..at, "ends here");
                labelled(name, before, label, text)
            }
            _ => match error.fault() {
                Fault::Input => Failure::input(text),
                Fault::Usage => Failure::Usage(text),
                Fault::Missing => Failure::Missing {
                    what: text,
                    mend: error.mend().map(str::to_owned),
                },
                Fault::Internal => Failure::Internal(text),
                Fault::Undecided => Failure::Undecided(text),
            },
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Input(text) => Failure::input(text),
            Problem::Usage(text) => Failure::Usage(text),
            Problem::Missing { what, mend } => Failure::Missing { what, mend },
            Problem::Internal(text) => Failure::Internal(text),
            Problem::Undecided(text) => Failure::Undecided(text),
        }
    }
}

/// What the library makes an [`Error`] of.
macro_rules! of_the_library {
    ($($error:ty),* $(,)?) => { $(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Error::from(error).into()
            }
        }
    )* };
}

of_the_library!(
    warpwright_gpu::Fault,
    warpwright_host::Error,
    warpwright_pass::RecipeError,
    warpwright_pass::ScopeError,
    warpwright_toolkit::NotFound,
    warpwright_toolkit::ToolError,
    warpwright_winners::StoreError,
);

/// Characters of a message, which may quote its input, which may be one long line; and of all that was rendered.
const LONGEST_MESSAGE: usize = 2000;
const LONGEST_TEXT: usize = 16_000;

fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A message for the terminal: its first line in several, where it is long. What it quotes stays as it is.
fn folded(text: &str) -> String {
    let (first, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    wrap(first, "", "  ").join("\n") + rest
}

/// What miette puts before a message.
const CROSS: &str = "×";

/// Rendered diagnostics with the label that all other errors have, and without their codes, which stand in a line above.
fn labelled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let is_code = |c: char| c.is_ascii_lowercase() || c == '-' || c == ':';
        let code = line.trim_end();
        if code.contains("::") && code.chars().all(is_code) {
            continue;
        }
        match line.strip_prefix("  ").and_then(|l| l.strip_prefix(CROSS)) {
            Some(message) => out += &format!("error:{message}"),
            None => out += line,
        }
    }
    out.trim_start_matches('\n').to_owned()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Input(report) => write!(f, "{report}"),
            Failure::Rendered(text)
            | Failure::Usage(text)
            | Failure::Internal(text)
            | Failure::Undecided(text) => f.write_str(text),
            Failure::Missing { what, .. } => f.write_str(what),
            Failure::Quiet(code) => write!(f, "exit code {code}"),
        }
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// Wrong input, described by one sentence without a place in a file.
    pub fn input(message: impl fmt::Display + fmt::Debug + Send + Sync + 'static) -> Self {
        let text = cut(&message.to_string(), LONGEST_MESSAGE);
        Failure::Input(miette::Report::msg(printable(&text)))
    }

    /// The exit code of the contract.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Input(_) | Failure::Rendered(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Missing { .. } => 3,
            Failure::Internal(_) => 4,
            Failure::Undecided(_) => 5,
            Failure::Quiet(code) => *code,
        }
    }

    /// The document of `--json`.
    fn document(&self) -> Document {
        let (mut place, mut mend) = (None, None);
        let kind = match self {
            Failure::Input(report) => {
                place = Place::of(report);
                "input"
            }
            Failure::Rendered(text) => {
                place = Place::rendered(text);
                "input"
            }
            Failure::Usage(_) => "usage",
            Failure::Missing { mend: command, .. } => {
                mend.clone_from(command);
                "missing"
            }
            Failure::Internal(_) => "internal",
            Failure::Undecided(_) | Failure::Quiet(_) => "undecided",
        };
        // As it was named on the command line.
        if let Some(file) = place.as_mut().and_then(|place| place.file.as_mut())
            && *file == STDIN
        {
            "-".clone_into(file);
        }
        Document {
            schema: "warpwright.error/1",
            code: self.code(),
            kind,
            message: cut(self.to_string().trim_end(), LONGEST_TEXT),
            place,
            mend,
        }
    }

    /// The message as a terminal has it.
    pub fn shown(&self) -> String {
        match self {
            Failure::Input(report) if report.source_code().is_none() => {
                folded(&format!("error: {report}"))
            }
            Failure::Input(report) => {
                let text = format!("{report:?}").replacen(CROSS, "error:", 1);
                text.trim_start().to_owned()
            }
            Failure::Rendered(text) => cut(labelled(text).trim_end(), LONGEST_TEXT),
            Failure::Usage(message) => {
                let message = cut(message, LONGEST_MESSAGE);
                let message = folded(&format!("error: {message}"));
                let command = COMMAND.get().map_or("warpwright", |c| c);
                format!("{message}\n\nsee `{command} --help`")
            }
            Failure::Missing {
                what,
                mend: Some(mend),
            } => format!(
                "{}\n\nmend it with: {mend}",
                folded(&format!("error: {what}"))
            ),
            Failure::Missing { what, mend: None } => folded(&format!("error: {what}")),
            Failure::Internal(message) => format!(
                "internal error: {message}\n\nThis is a bug in Warpwright; please report it with the input and the \
                 command line."
            ),
            Failure::Undecided(message) => {
                folded(&format!("error: {}", cut(message, LONGEST_TEXT)))
            }
            Failure::Quiet(code) => format!("exit code {code}"),
        }
    }

    /// Prints the message on stderr, and the document on stdout if one was asked for; gives the exit code.
    pub fn report(self, wants_json: bool) -> ExitCode {
        let code = self.code();
        if wants_json
            && !matches!(self, Failure::Quiet(_))
            && let Ok(text) = serde_json::to_string_pretty(&self.document())
        {
            crate::terminal::json_of_failure(&text);
        }
        match self {
            Failure::Quiet(_) => {}
            // Its text was made printable when it was made; the colours are miette's.
            Failure::Input(_) => crate::terminal::shown(&format!("{}\n", self.shown())),
            _ => complain!("{}", self.shown()),
        }
        ExitCode::from(code)
    }
}

#[cfg(test)]
mod tests {
    use super::{folded, labelled};

    #[test]
    fn a_long_sentence_is_folded_and_what_it_quotes_is_not() {
        let names = "kernel_of_a_name(float*), ".repeat(9);
        let text = format!(
            "error: it has {names}\n    a line that {}\n",
            "goes on ".repeat(20)
        );
        let shown = folded(&text);
        let (sentence, quoted) = shown.split_once("\n    a line").unwrap();
        assert!(
            sentence.lines().all(|line| line.chars().count() <= 80),
            "{shown}"
        );
        assert_eq!(sentence.matches("kernel_of_a_name").count(), 9);
        assert_eq!(quoted.trim_end().lines().count(), 1);
        assert_eq!(folded("error: short"), "error: short");
    }

    #[test]
    fn every_error_has_the_same_label() {
        let rendered = "ptx::syntax\n\n  × expected `,`\n  │ or `;`\n   ╭─[k.ptx:1:1]\n 1 │ a × b\n   ╰────\n\
                        ptx::syntax\n\n  × again\n";
        let expected = "error: expected `,`\n  │ or `;`\n   ╭─[k.ptx:1:1]\n 1 │ a × b\n   ╰────\n\nerror: again\n";
        assert_eq!(labelled(rendered), expected);
        let nvcc = "error: nvcc refused `k.cu`\n\nk.cu(1): error: std::move\n";
        assert_eq!(labelled(nvcc), nvcc);
    }
}
