//! Text as a terminal may have it.

/// Would a terminal take this character for a command, or show what follows in another order?
pub fn is_control(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// The text with such characters escaped (`\u{1b}`).
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_control(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn escapes_are_shown_and_not_sent() {
        assert_eq!(
            printable("a\tb\né…\u{1b}[2J\u{9b}\r\u{202e}"),
            "a\tb\né…\\u{1b}[2J\\u{9b}\\u{d}\\u{202e}"
        );
    }
}
