//! What ptxas and nvcc complain about, as data. Pure text parsing.
//!
//! ptxas (13.0 and 13.5) prints `ptxas FILE, line N; error   : TEXT` for a place in the input and
//! `ptxas fatal   : TEXT` without one; some notes carry a code, `(C7508)`. nvcc passes on what its
//! phases print: `FILE(LINE): error: TEXT` from cudafe++ and cicc, `FILE:LINE:COLUMN: error: TEXT` from
//! the host preprocessor, and `nvcc fatal   : TEXT` of its own.

use serde::{Deserialize, Serialize};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A note.
    Info,
    /// Suspicious, but a result was made.
    Warning,
    /// No result was made.
    Error,
    /// The tool stopped at once.
    Fatal,
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Severity::Info => "note",
            Severity::Warning => "warning",
            Severity::Error | Severity::Fatal => "error",
        })
    }
}

/// One message of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The file as the tool named it; of a text given to [`crate::Ptxas`], always `None`.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column, from 1; only the host preprocessor gives one.
    pub column: Option<u32>,
    /// The tool's own number for it, such as `C7508` or `177-D`.
    pub code: Option<String>,
    /// The message without any of the above.
    pub message: String,
}

impl Diagnostic {
    fn bare(severity: Severity, message: &str) -> Self {
        let (code, message) = split_code(message.trim());
        Diagnostic {
            severity,
            file: None,
            line: None,
            column: None,
            code,
            message,
        }
    }
}

impl Diagnostic {
    /// Does ptxas refuse PTX because it is of a newer version than the newest that it reads?
    pub fn is_newer_version(&self) -> bool {
        self.severity == Severity::Fatal && self.message.starts_with("Unsupported .version")
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        write!(f, "{}: {}", self.severity, self.message)?;
        match &self.code {
            Some(code) => write!(f, " ({code})"),
            None => Ok(()),
        }
    }
}

/// The message to show when only one fits: the first error that has a place, else the first error,
/// else the last line of the log.
pub(crate) fn first_error(diagnostics: &[Diagnostic], log: &str) -> String {
    let errors = || diagnostics.iter().filter(|d| d.severity >= Severity::Error);
    let best = errors()
        .find(|d| d.line.is_some())
        .or_else(|| errors().next());
    match best {
        Some(d) => d.to_string(),
        None => log
            .lines()
            .rfind(|l| !l.trim().is_empty())
            .unwrap_or("it said nothing")
            .to_owned(),
    }
}

/// One line of ptxas, if it is a message. `ptxas info    : Used 8 registers` is one too; what it means
/// is for [`crate::resources`] to say.
pub fn parse_ptxas_line(line: &str) -> Option<Diagnostic> {
    let rest = line.strip_prefix("ptxas ")?;
    if let Some((severity, message)) = split_severity(rest) {
        return Some(Diagnostic::bare(severity, message));
    }
    // `FILE, line N; error   : TEXT`; the file may itself contain commas and semicolons.
    for (at, _) in rest.match_indices(", line ") {
        let after = &rest[at + ", line ".len()..];
        let Some((number, tail)) = after.split_once(';') else {
            continue;
        };
        let Ok(number) = number.trim().parse() else {
            continue;
        };
        let Some((severity, message)) = split_severity(tail.trim_start()) else {
            continue;
        };
        let mut found = Diagnostic::bare(severity, message);
        found.file = Some(rest[..at].to_owned());
        found.line = Some(number);
        return Some(found);
    }
    None
}

/// All messages of ptxas in a text.
pub fn parse_ptxas(text: &str) -> Vec<Diagnostic> {
    text.lines().filter_map(parse_ptxas_line).collect()
}

/// All messages of nvcc and the phases that it runs.
pub fn parse_nvcc(text: &str) -> Vec<Diagnostic> {
    text.lines().filter_map(parse_nvcc_line).collect()
}

fn parse_nvcc_line(line: &str) -> Option<Diagnostic> {
    if let Some(found) = parse_ptxas_line(line) {
        return Some(found);
    }
    for tool in ["nvcc ", "nvlink ", "fatbinary ", "cuobjdump ", "nvdisasm "] {
        let split = line.strip_prefix(tool).and_then(split_severity);
        if let Some((severity, message)) = split {
            return Some(Diagnostic::bare(severity, message));
        }
    }
    placed_by_front_end(line).or_else(|| placed_by_host(line))
}

/// `FILE(LINE): error: TEXT` and `FILE(LINE): warning #177-D: TEXT`.
fn placed_by_front_end(line: &str) -> Option<Diagnostic> {
    let (place, rest) = line.split_once("): ")?;
    let (file, number) = place.rsplit_once('(')?;
    let number = number.parse().ok()?;
    let (severity, rest) = split_word(rest)?;
    let (code, message) = match rest.strip_prefix(" #") {
        Some(rest) => rest
            .split_once(": ")
            .map(|(c, m)| (Some(c.to_owned()), m))?,
        None => (None, rest.strip_prefix(':')?),
    };
    Some(Diagnostic {
        severity,
        file: Some(file.to_owned()),
        line: Some(number),
        column: None,
        code,
        message: message.trim().to_owned(),
    })
}

/// `FILE:LINE:COLUMN: error: TEXT`, and `cc1plus: fatal error: TEXT` without a place.
fn placed_by_host(line: &str) -> Option<Diagnostic> {
    let markers = [": fatal error: ", ": error: ", ": warning: "];
    let (at, marker) = markers.iter().find_map(|m| Some((line.find(m)?, *m)))?;
    let severity = match marker {
        ": warning: " => Severity::Warning,
        ": error: " => Severity::Error,
        _ => Severity::Fatal,
    };
    let mut found = Diagnostic::bare(severity, &line[at + marker.len()..]);
    let mut place = line[..at].rsplitn(3, ':');
    let column = place.next().and_then(|t| t.parse().ok());
    let number = place.next().and_then(|t| t.parse().ok());
    if let (Some(file), Some(_), Some(_)) = (place.next(), number, column) {
        (found.file, found.line, found.column) = (Some(file.to_owned()), number, column);
    }
    Some(found)
}

fn split_word(text: &str) -> Option<(Severity, &str)> {
    let words = [
        ("info", Severity::Info),
        ("remark", Severity::Info),
        ("warning", Severity::Warning),
        ("error", Severity::Error),
        ("fatal", Severity::Fatal),
        ("catastrophic error", Severity::Fatal),
    ];
    words
        .iter()
        .find_map(|(word, severity)| Some((*severity, text.strip_prefix(word)?)))
}

/// `error   : TEXT`: a word, blanks, a colon.
fn split_severity(text: &str) -> Option<(Severity, &str)> {
    let (severity, rest) = split_word(text)?;
    Some((severity, rest.trim_start().strip_prefix(':')?))
}

/// `(C7508) TEXT`.
fn split_code(message: &str) -> (Option<String>, String) {
    let inside = message
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(") "));
    match inside {
        Some((code, rest)) if is_code(code) => (Some(code.to_owned()), rest.to_owned()),
        _ => (None, message.to_owned()),
    }
}

fn is_code(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_uppercase())
        && text.len() > 1
        && chars.all(|c| c.is_ascii_digit())
}
