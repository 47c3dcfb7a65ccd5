//! A test file taken apart: its header, and the expectations in its comments.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A `// test: NAME ARGS` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The command.
    pub name: String,
    /// What follows it.
    pub args: Vec<String>,
}

impl Test {
    /// Name and arguments, as the expectation block repeats them.
    pub fn title(&self) -> String {
        let mut title = self.name.clone();
        for arg in &self.args {
            title.push(' ');
            title.push_str(arg);
        }
        title
    }
}

/// What a test must say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Exactly this text (an `// expect:` block).
    Exactly(String),
    /// A line holds this (`// contains:`).
    Contains(String),
    /// No line holds this (`// lacks:`).
    Lacks(String),
}

/// A test file.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where it lies.
    pub path: PathBuf,
    /// Its whole text, expectations included.
    pub source: String,
    /// The tests to run, in order.
    pub tests: Vec<Test>,
    /// `// contains:` and `// lacks:` lines: they hold for all tests of the file together.
    pub conditions: Vec<Expectation>,
    /// `// expect: TITLE` blocks: title and text.
    pub blocks: Vec<(String, String)>,
}

impl Case {
    /// Reads the comments of a test file. Errors name the line.
    pub fn parse(path: &Path, source: &str) -> Result<Case, String> {
        let mut case = Case {
            path: path.to_owned(),
            source: source.to_owned(),
            tests: Vec::new(),
            conditions: Vec::new(),
            blocks: Vec::new(),
        };
        let mut lines = source.lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let Some(comment) = line.strip_prefix("// ") else {
                continue;
            };
            if let Some(rest) = comment.strip_prefix("test:") {
                let mut words = rest.split_whitespace().map(str::to_owned);
                let name = words
                    .next()
                    .ok_or(format!("line {}: no test named", number + 1))?;
                case.tests.push(Test {
                    name,
                    args: words.collect(),
                });
            } else if let Some(text) = comment.strip_prefix("contains: ") {
                case.conditions.push(Expectation::Contains(text.to_owned()));
            } else if let Some(text) = comment.strip_prefix("lacks: ") {
                case.conditions.push(Expectation::Lacks(text.to_owned()));
            } else if let Some(title) = comment.strip_prefix("expect: ") {
                let mut text = String::new();
                while let Some((_, line)) = lines.next_if(|(_, line)| is_block_line(line)) {
                    let _: std::fmt::Result = writeln!(text, "{}", block_text(line));
                }
                case.blocks.push((title.trim_end().to_owned(), text));
            }
        }
        match case.tests.is_empty() {
            true => Err("no `// test:` line".to_owned()),
            false => Ok(case),
        }
    }

    /// The name that the test is shown under: the file without its folder.
    pub fn file_name(&self) -> String {
        self.path
            .file_name()
            .map_or_else(String::new, |n| n.to_string_lossy().into_owned())
    }

    /// The source without its expectation blocks.
    pub fn without_blocks(&self) -> String {
        let mut out = String::new();
        let mut in_block = false;
        for line in self.source.split_inclusive('\n') {
            let text = line.trim_end();
            in_block = text.starts_with("// expect: ") || (in_block && is_block_line(text));
            if !in_block {
                out.push_str(line);
            }
        }
        let length = out.trim_end().len();
        out.truncate(length);
        out.push('\n');
        out
    }

    /// The text of the file with these expectation blocks in place of its own.
    pub fn with_blocks(&self, blocks: &[(String, String)]) -> String {
        if self.blocks.is_empty() && blocks.iter().all(|(_, text)| text.is_empty()) {
            // The end of the file may be what it tests.
            return self.source.clone();
        }
        let mut out = self.without_blocks();
        for (title, text) in blocks.iter().filter(|(_, text)| !text.is_empty()) {
            let _: std::fmt::Result = write!(out, "\n// expect: {title}\n");
            for line in text.lines() {
                let _: std::fmt::Result = match line.is_empty() {
                    true => writeln!(out, "//"),
                    false => writeln!(out, "// {line}"),
                };
            }
        }
        out
    }
}

/// Does a line belong to the block above it? A block ends at the first line that is no comment or
/// begins the next block.
fn is_block_line(line: &str) -> bool {
    (line == "//" || line.starts_with("// ")) && !line.starts_with("// expect: ")
}

fn block_text(line: &str) -> &str {
    line.strip_prefix("// ").unwrap_or("")
}

/// Trailing white space is lost in comments, so it does not count.
pub(crate) fn normalise(text: &str) -> String {
    let lines = text.trim_end().lines().map(str::trim_end);
    lines.fold(String::new(), |mut out, line| {
        out.push_str(line);
        out.push('\n');
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "// test: liveness k\n// test: parse\n// contains: %r1\ncode\n\n\
        // expect: liveness k\n// a\n//\n// b\n\n// expect: parse\n// c\n";

    #[test]
    fn a_file_is_its_tests_conditions_and_blocks() {
        let case = Case::parse(Path::new("x.ptx"), SOURCE).unwrap();
        let titles: Vec<String> = case.tests.iter().map(Test::title).collect();
        assert_eq!(titles, ["liveness k", "parse"]);
        assert_eq!(case.conditions, [Expectation::Contains("%r1".to_owned())]);
        let want = [("liveness k", "a\n\nb\n"), ("parse", "c\n")];
        assert_eq!(case.blocks, want.map(|(t, x)| (t.to_owned(), x.to_owned())));
        assert!(Case::parse(Path::new("x.ptx"), "code").is_err());
    }

    #[test]
    fn blocks_are_written_back_as_they_were_read() {
        let case = Case::parse(Path::new("x.ptx"), SOURCE).unwrap();
        assert_eq!(case.with_blocks(&case.blocks), SOURCE);
        let code = "// test: liveness k\n// test: parse\n// contains: %r1\ncode\n";
        assert_eq!(case.with_blocks(&[]), code);
    }
}
