//! `(x) + y`: a sum, or a cast of `+y` to the type `x`? The grammar knows no types and may take the
//! cast, which also changes what belongs together around it. Accessor macros are full of such text.
//!
//! So the grammar sees the text without the parentheses where their content is one word that names
//! no type and an operator follows that is also a sign. Blanks take their place: no other byte moves.

/// The text for the grammar, if it is another one.
pub(crate) fn resolved(text: &str, is_type: impl Fn(&str) -> bool) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out: Option<Vec<u8>> = None;
    for (open, _) in text.match_indices('(') {
        let inside = &text[open + 1..];
        let Some(length) = inside.find(')') else {
            break;
        };
        let word = inside[..length].trim();
        let is_word = word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let close = open + 1 + length;
        let after = text[close + 1..].trim_start_matches([' ', '\t']);
        let sign = after.starts_with(['+', '-', '*', '&']) && !after.starts_with("&&");
        if !is_word || !sign || is_type(word) || follows_a_name(&bytes[..open]) {
            continue;
        }
        let out = out.get_or_insert_with(|| bytes.to_vec());
        (out[open], out[close]) = (b' ', b' ');
    }
    // Only parentheses became blanks, so this is text as before.
    String::from_utf8(out?).ok()
}

/// `f (x)`, `if (x)`, `a[0](x)`: the parentheses belong to what stands before them.
fn follows_a_name(before: &[u8]) -> bool {
    let last = before.iter().rev().find(|b| !matches!(b, b' ' | b'\t'));
    last.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b']' | b'>'))
        && !before.trim_ascii_end().ends_with(b"return")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_could_be_a_cast_of_a_sign_changes() {
        let is_type = |word: &str| word == "real";
        for (text, expected) in [
            ("((i)+(j)*n+(k)*n*m)", Some("( i + j *n+ k *n*m)")),
            ("return (a) - 1;", Some("return  a  - 1;")),
            ("x = (size_t)(k) * N", Some("x = (size_t) k  * N")),
            ("f(x) + g (y) - a[1](z) * 2", None),
            ("if (x) *p = 1;", None),
            ("(real)-x + (x + y) * (3)", None),
            ("(x) && (y) / 2 + (z)", None),
        ] {
            assert_eq!(resolved(text, is_type).as_deref(), expected, "{text}");
        }
    }
}
