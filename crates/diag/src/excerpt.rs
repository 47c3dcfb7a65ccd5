//! What of a source text is shown around a label.

use crate::span::{LineIndex, Span};

/// Longest line, in bytes, that is shown whole.
pub(crate) const LONG_LINE: usize = 1000;

/// Most lines that one label marks.
const LABEL_LINES: usize = 4;

/// A span within the text, without what lies beyond its first lines.
pub(crate) fn first_lines(span: Span, text: &str) -> Span {
    let start = text.floor_char_boundary(span.start as usize);
    let end = text.floor_char_boundary((span.end as usize).max(start));
    let inside = &text[start..end];
    let mut breaks = memchr::memchr_iter(b'\n', inside.as_bytes());
    let length = breaks.nth(LABEL_LINES - 1).unwrap_or(inside.len());
    Span::from(start..start + length)
}

/// Length in bytes of the longest line that a span touches or that stands next to those.
pub(crate) fn longest_line(span: Span, text: &str) -> usize {
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
pub(crate) fn excerpt(name: &str, text: &str, span: Span) -> (String, String, Span) {
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
