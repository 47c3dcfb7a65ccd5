//! Places in the source text: byte spans, and their lines and columns.

use std::fmt;
use std::ops::Range;

/// A half-open range of bytes `start..end` in a source text.
///
/// Offsets beyond 4 GiB count as 4 GiB; the parser of PTX refuses sources beyond 2 GiB.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span `start..end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }

    /// An empty span at `at`.
    pub const fn point(at: u32) -> Self {
        Span { start: at, end: at }
    }

    /// Length in bytes.
    pub const fn len(self) -> u32 {
        self.end.saturating_sub(self.start)
    }

    /// Does the span hold no byte?
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// Does `other` lie within this span?
    pub const fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The span as a range of byte indices.
    pub const fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The text that the span covers in `source`, or `""` if it lies outside (or cuts a
    /// character).
    pub fn text(self, source: &str) -> &str {
        source.get(self.range()).unwrap_or("")
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Span {
        let offset = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Span::new(offset(range.start), offset(range.end))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A line and a column, both counted from 1. Columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LineCol {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for LineCol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The beginnings of all lines of a text, for turning byte offsets into lines and columns.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Finds all line starts of `source`.
    pub fn new(source: &str) -> Self {
        let mut starts = vec![0];
        let ends = source.bytes().enumerate().filter(|&(_, b)| b == b'\n');
        starts.extend(ends.map(|(i, _)| i as u32 + 1));
        LineIndex { starts }
    }

    /// Number of lines (at least one).
    pub fn lines(&self) -> u32 {
        self.starts.len() as u32
    }

    /// Line and column of a byte offset; offsets past the end count as the end.
    pub fn line_col(&self, source: &str, offset: u32) -> LineCol {
        let line = self.starts.partition_point(|&s| s <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0) as usize;
        let end = (offset as usize).min(source.len());
        let head = source.as_bytes().get(start..end).unwrap_or(&[]);
        // A character's first byte is any byte that is not a UTF-8 continuation.
        let chars = head.iter().filter(|&&b| b & 0xC0 != 0x80).count();
        LineCol {
            line: line as u32,
            column: chars as u32 + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let text = "ab\n\u{e9}x\n";
        let index = LineIndex::new(text);
        let at = |o| index.line_col(text, o).to_string();
        assert_eq!(at(0), "1:1");
        assert_eq!(at(2), "1:3");
        assert_eq!(at(3), "2:1");
        assert_eq!(at(5), "2:2");
        assert_eq!(at(99), "3:1");
    }
}
