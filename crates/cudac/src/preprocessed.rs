//! What nvcc's own preprocessor says about a file: which branches of its `#if`s are compiled, every
//! macro with the place from which it holds, and what the included headers define.
//!
//! The file itself is still read as its author wrote it, so that diagnostics and edits are about the
//! author's text. To learn which branches are taken, a copy is preprocessed that says so itself:
//! [`marked`] puts a pragma of our own behind each `#if`, `#elif` and `#else`. Headers of the toolkit
//! and of the system give their macros only.

use std::ops::Range;

use crate::diag::Span;
use crate::macros::Macro;

/// The pragma behind each branch, with the branch's number.
const MARK: &str = "#pragma warpwright_branch ";

/// What the preprocessor says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preprocessed {
    /// All definitions in order; those of headers stand at the line that includes them.
    pub(crate) macros: Vec<Macro>,
    /// The text of headers, each part with the place of the `#include` in the file.
    pub(crate) headers: Vec<(Span, String)>,
    /// The files of those headers.
    pub(crate) files: Vec<String>,
    /// Parts of the file that are not compiled, and lines that only the preprocessor reads.
    pub(crate) hidden: Vec<Span>,
}

/// The text to preprocess (`nvcc -E`, and `-dD` for the macros) in place of a file's own.
pub fn marked(text: &str) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for (number, directive) in conditionals(text).iter().enumerate() {
        out.push_str(&text[at..directive.line.end]);
        at = directive.line.end;
        if directive.kind != Kind::End {
            if !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(MARK);
            out.push_str(&number.to_string());
            out.push('\n');
        }
    }
    out.push_str(&text[at..]);
    out
}

/// A line that begins or ends a branch.
struct Conditional {
    kind: Kind,
    /// With its end, and with the lines that continue it.
    line: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    If,
    Else,
    End,
}

/// All `#if`s and what belongs to them, in order; not those in comments and strings.
fn conditionals(text: &str) -> Vec<Conditional> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let line = at..at + logical_line(rest);
        let word = rest.trim_start_matches([' ', '\t']).strip_prefix('#');
        if let Some(word) = word {
            let word = word.trim_start_matches([' ', '\t']);
            let length = word.find(|c: char| !c.is_ascii_alphabetic());
            let kind = match &word[..length.unwrap_or(word.len())] {
                "if" | "ifdef" | "ifndef" => Some(Kind::If),
                "elif" | "elifdef" | "elifndef" | "else" => Some(Kind::Else),
                "endif" => Some(Kind::End),
                _ => None,
            };
            if let Some(kind) = kind {
                let line = line.clone();
                found.push(Conditional { kind, line });
            }
        }
        at = after_line(text, line);
    }
    found
}

/// An `#if` with all that belongs to it.
pub(crate) struct Group {
    /// From its first line to the end of its last.
    pub(crate) span: Span,
    /// Its lines `#if`, `#elif`, `#else` and `#endif`, each with those that continue it.
    pub(crate) conditions: Vec<String>,
}

/// Every `#if` of a text, inner ones before those around them.
pub(crate) fn groups(text: &str) -> Vec<Group> {
    let (mut open, mut found): (Vec<Group>, _) = (Vec::new(), Vec::new());
    for Conditional { kind, line } in conditionals(text) {
        if kind == Kind::If {
            let (span, conditions) = (line.clone(), Vec::new());
            open.push(Group { span, conditions });
        }
        let Some(group) = open.last_mut() else {
            continue;
        };
        group.span.end = line.end;
        group.conditions.push(text[line].to_owned());
        if kind == Kind::End {
            found.extend(open.pop());
        }
    }
    found.extend(open);
    found
}

/// The length of a line with those that a backslash joins to it.
fn logical_line(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            break;
        }
    }
    length
}

/// Where the next line begins that is not inside a comment or a raw string of this one.
fn after_line(text: &str, line: Range<usize>) -> usize {
    let mut at = line.start;
    while at < line.end {
        let rest = &text[at..];
        let closed = |skip: usize, end: &str| {
            let inside = rest.get(skip..).unwrap_or("");
            inside.find(end).map(|n| at + skip + n + end.len())
        };
        if rest.starts_with("//") {
            return line.end;
        } else if rest.starts_with("/*") {
            let Some(end) = closed(2, "*/") else {
                return text.len();
            };
            at = end;
        } else if rest.starts_with("R\"") {
            let open = rest.find('(').unwrap_or(rest.len());
            let end = format!("){}\"", rest.get(2..open).unwrap_or(""));
            let Some(end) = closed(open, &end) else {
                return text.len();
            };
            at = end;
        } else if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            at += 1 + quoted(&text[at + 1..line.end], quote);
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
        if at > line.end {
            // A comment or a string that goes on: the rest of its last line is no new line.
            let end = at + logical_line(&text[at..]);
            return after_line(text, at..end);
        }
    }
    line.end
}

/// The length of a string or character up to and with its closing quote.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (n, c) in text.char_indices() {
        if !escaped && (c == quote || c == '\n') {
            return n + 1;
        }
        escaped = !escaped && c == '\\';
    }
    text.len()
}

impl Preprocessed {
    /// Reads what the preprocessor made of the [`marked`] copy of a text. `name` ends the name
    /// under which the copy was preprocessed; none if the output is not of it.
    pub(crate) fn read(text: &str, name: &str, output: &str) -> Option<Preprocessed> {
        let conditionals = conditionals(text);
        let lines = Lines::new(text, &conditionals);
        let mut found = Preprocessed::default();
        let mut taken = vec![false; conditionals.len()];
        let mut reader = Reader::default();
        for line in output.lines() {
            if let Some(marker) = line.strip_prefix("# ") {
                reader.go_to(marker, name);
                if reader.is_header() && !found.files.contains(&reader.file) {
                    found.files.push(reader.file.clone());
                }
                continue;
            }
            let here = lines.of(reader.main);
            if reader.is_main() {
                let number = line.strip_prefix(MARK).and_then(|n| n.trim().parse().ok());
                if let Some(taken) = number.and_then(|n: usize| taken.get_mut(n)) {
                    *taken = true;
                }
            }
            if let Some(mut found_macro) = definition(line, &here) {
                found_macro.foreign = !reader.is_own(&found_macro.name);
                found.macros.push(found_macro);
            } else if reader.is_header() && !line.starts_with('#') {
                match found.headers.last_mut() {
                    Some((at, text)) if *at == here => {
                        text.push_str(line);
                        text.push('\n');
                    }
                    _ => found.headers.push((here, format!("{line}\n"))),
                }
            }
            reader.next();
        }
        found.headers.retain(|(_, text)| !text.trim().is_empty());
        found.hidden = hidden(&conditionals, &taken);
        reader.begun.then_some(found)
    }
}

/// `#define` and `#undef` of the output.
fn definition(line: &str, at: &Span) -> Option<Macro> {
    let (rest, undone) = match line.strip_prefix("#define ") {
        Some(rest) => (rest, false),
        None => (line.strip_prefix("#undef ")?, true),
    };
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let (parameters, body) = match rest.strip_prefix('(') {
        Some(inner) => {
            let (list, body) = inner.split_once(')')?;
            let names = list.split(',').map(|p| p.trim().to_owned());
            (Some(names.filter(|p| !p.is_empty()).collect()), body)
        }
        None => (None, rest),
    };
    Some(Macro {
        name: name.to_owned(),
        parameters,
        body: (!undone).then(|| body.trim().to_owned()),
        span: at.clone(),
        conditional: false,
        foreign: false,
    })
}

/// What is not compiled, and the lines around it.
fn hidden(conditionals: &[Conditional], taken: &[bool]) -> Vec<Span> {
    let mut hidden = Vec::new();
    // The branches that are open: their beginnings.
    let mut open: Vec<(usize, bool)> = Vec::new();
    for (number, conditional) in conditionals.iter().enumerate() {
        hidden.push(conditional.line.clone());
        if conditional.kind != Kind::If
            && let Some((start, false)) = open.pop()
        {
            hidden.push(start..conditional.line.start);
        }
        if conditional.kind != Kind::End {
            open.push((conditional.line.end, taken[number]));
        }
    }
    hidden.sort_by_key(|span| (span.start, span.end));
    hidden
}

/// The lines of a file, by their numbers in its marked copy.
struct Lines(Vec<Span>);

impl Lines {
    fn new(text: &str, conditionals: &[Conditional]) -> Lines {
        let mut lines = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            lines.push(start..start + line.trim_end().len());
            let marked = |c: &&Conditional| c.kind != Kind::End && c.line.end == at;
            if let Some(conditional) = conditionals.iter().find(marked) {
                lines.push(conditional.line.clone());
            }
        }
        Lines(lines)
    }

    /// The place of a line, counted from 1; 0 is the beginning of the file.
    fn of(&self, line: usize) -> Span {
        let found = line.checked_sub(1).and_then(|n| self.0.get(n));
        found.cloned().unwrap_or(0..0)
    }
}

/// Where in which file the output stands.
#[derive(Default)]
struct Reader {
    file: String,
    /// The headers of the system, as the preprocessor says.
    system: bool,
    /// The line of the file itself; that of the `#include` while a header is read.
    main: usize,
    in_main: bool,
    begun: bool,
    /// The folder of the toolkit's headers.
    toolkit: Option<String>,
}

impl Reader {
    /// `LINE "FILE" FLAGS`
    fn go_to(&mut self, marker: &str, name: &str) {
        let Some((line, rest)) = marker.split_once(' ') else {
            return;
        };
        let Some((file, flags)) = rest.trim_start_matches('"').split_once('"') else {
            return;
        };
        file.clone_into(&mut self.file);
        self.system = flags.split_whitespace().any(|flag| flag == "3");
        if let Some(folder) = file.strip_suffix("cuda_runtime.h") {
            self.toolkit.get_or_insert_with(|| folder.to_owned());
        }
        self.in_main = file.ends_with(name);
        if self.in_main {
            self.begun = true;
            self.main = line.parse().unwrap_or(0);
        }
    }

    fn is_main(&self) -> bool {
        self.in_main
    }

    /// A header that the file, or a header of its own, includes.
    fn is_header(&self) -> bool {
        let toolkit = self.toolkit.as_ref();
        self.begun
            && !self.in_main
            && !self.system
            && !self.file.starts_with('<')
            && !toolkit.is_some_and(|folder| self.file.starts_with(folder.as_str()))
    }

    /// Is a macro here the author's: of the file, of a header of its own, or given to nvcc?
    fn is_own(&self, name: &str) -> bool {
        let given = self.file == "<command-line>" && !name.starts_with("__");
        self.in_main || self.is_header() || given
    }

    fn next(&mut self) {
        self.main += usize::from(self.in_main);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "/* #if 0\n#else */ int a; // \"\n#ifdef A\n#define N 1\n#else\n#  define N 2\n#if \\\n  1\nint b;\n#endif\n#endif\nint c;\n";

    #[test]
    fn branches_are_marked_outside_comments() {
        let marked = marked(TEXT);
        assert_eq!(marked.matches(MARK).count(), 3, "{marked}");
        assert!(marked.contains("#if \\\n  1\n#pragma warpwright_branch 2\nint b;"));
        assert!(marked.starts_with("/* #if 0\n#else */ int a;"));
    }

    #[test]
    fn what_is_not_compiled_is_hidden() {
        let output = "# 0 \"<built-in>\"\n#define BUILT 1\n# 1 \"/x/cuda_runtime.h\" 1\nint no;\n\
                      # 1 \"/t/k.cu\" 2\n\n int a;\n\n\n\n\n#pragma warpwright_branch 1\n#define N 2\n\
                      # 11 \"/t/k.cu\"\n#pragma warpwright_branch 2\nint b;\n\n\nint c;\n";
        let found = Preprocessed::read(TEXT, "/k.cu", output).unwrap();
        let n = found.macros.iter().find(|m| m.name == "N").unwrap();
        assert_eq!(n.body.as_deref(), Some("2"));
        assert_eq!(&TEXT[n.span.clone()], "#  define N 2");
        assert!(found.headers.is_empty());
        let hidden: Vec<&str> = found.hidden.iter().map(|h| &TEXT[h.clone()]).collect();
        assert!(hidden.contains(&"#define N 1\n"), "{hidden:?}");
        assert!(!hidden.iter().any(|h| h.contains("int b")), "{hidden:?}");
        assert!(Preprocessed::read(TEXT, "/other.cu", output).is_none());
    }

    #[test]
    fn headers_stand_where_they_are_included() {
        let text = "#include \"h.h\"\n__global__ void f() {}\n";
        let output = "# 1 \"/t/k.cu\"\n# 1 \"/own/h.h\" 1\n#define R(a, b) a + b\nconst int W = 4;\n\
                      # 1 \"/usr/x.h\" 1 3\nint no;\n# 3 \"/own/h.h\" 2\n#undef R\n# 2 \"/t/k.cu\" 2\nvoid f() {}\n";
        let found = Preprocessed::read(text, "/k.cu", output).unwrap();
        assert_eq!(found.headers.len(), 1);
        let (at, header) = &found.headers[0];
        assert_eq!(
            (&text[at.clone()], header.trim()),
            ("#include \"h.h\"", "const int W = 4;")
        );
        let names: Vec<_> = found
            .macros
            .iter()
            .map(|m| (&*m.name, m.body.is_some()))
            .collect();
        assert_eq!(names, [("R", true), ("R", false)]);
        let parameters = ["a".to_owned(), "b".to_owned()];
        assert_eq!(found.macros[0].parameters.as_deref(), Some(&parameters[..]));
    }
}
