//! Two places where the grammar, which knows no types, may misread what stands there.
//!
//! `(x) + y`: a sum, or a cast of `+y` to the type `x`? The grammar may take the cast, which also
//! changes what belongs together around it. Accessor macros are full of such text. So it sees the
//! text without the parentheses where their content is one word that names no type, with subscripts
//! or without (`(a[i]) + y`, which would be a cast to an array), and an operator follows that is also
//! a sign. Blanks take their place: no other byte moves.
//!
//! `x < n && y >= 0`: comparisons, or an assignment of `0` to the template `x<n && y>`? So the
//! grammar sees `>` in the place of `<` where no name of a template stands before it: the two bind
//! as tightly, and what is made of the tree takes the operators from the text itself.

use crate::diag::Span;

/// Words before `<` that begin the arguments of a template.
const TEMPLATES: [&str; 6] = [
    "template",
    "static_cast",
    "reinterpret_cast",
    "const_cast",
    "dynamic_cast",
    "include",
];

/// The text for the grammar, if it is another one. Comparisons are looked at inside `bodies`.
pub(crate) fn resolved(
    text: &str,
    bodies: &[Span],
    is_type: impl Fn(&str) -> bool,
    is_template: impl Fn(&str) -> bool,
) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = casts(text, is_type);
    for body in bodies {
        for at in body.clone() {
            if bytes.get(at) != Some(&b'<') || !is_less(bytes, at, &is_template) {
                continue;
            }
            out.get_or_insert_with(|| bytes.to_vec())[at] = b'>';
        }
    }
    // Only parentheses became blanks and signs other signs, so this is text as before.
    String::from_utf8(out?).ok()
}

/// Is `<` at a place a comparison?
fn is_less(bytes: &[u8], at: usize, is_template: &impl Fn(&str) -> bool) -> bool {
    let neighbour = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied();
    let around = [neighbour(at.checked_sub(1)), neighbour(Some(at + 1))];
    if around.iter().flatten().any(|b| matches!(b, b'<' | b'=')) {
        return false;
    }
    let before = bytes[..at].trim_ascii_end();
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let length = before.iter().rev().take_while(|b| word(b)).count();
    let (rest, name) = before.split_at(before.len() - length);
    if name.is_empty() {
        return before.last().is_some_and(|b| matches!(b, b')' | b']'));
    }
    let name = String::from_utf8_lossy(name);
    !TEMPLATES.contains(&&*name) && !rest.ends_with(b"::") && !is_template(&name)
}

/// The text without parentheses that look like casts.
fn casts(text: &str, is_type: impl Fn(&str) -> bool) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    let mut out: Option<Vec<u8>> = None;
    for (open, _) in text.match_indices('(') {
        let inside = &text[open + 1..];
        let Some((word, length)) = element(inside) else {
            continue;
        };
        let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let close = open + 1 + length;
        let blank = |c: char| c.is_ascii_whitespace() || c == '\\';
        let after = text[close + 1..].trim_start_matches(blank);
        let sign = after.starts_with(['+', '-', '*', '&']) && !after.starts_with("&&");
        if !is_word || !sign || is_type(word) || follows_a_name(&bytes[..open]) {
            continue;
        }
        let out = out.get_or_insert_with(|| bytes.to_vec());
        (out[open], out[close]) = (b' ', b' ');
    }
    out
}

/// The word of `word[…]…)`, and where the closing parenthesis stands.
fn element(inside: &str) -> Option<(&str, usize)> {
    let bytes = inside.as_bytes();
    let blank = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    };
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let start = blank(0);
    let length = bytes[start..].iter().take_while(|b| word(b)).count();
    let mut at = blank(start + length);
    while bytes.get(at) == Some(&b'[') {
        let mut depth = 0_usize;
        let close = bytes[at..].iter().position(|b| {
            match b {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            depth == 0 || matches!(b, b';' | b'{' | b'}')
        })?;
        if bytes[at + close] != b']' {
            return None;
        }
        at = blank(at + close + 1);
    }
    (bytes.get(at) == Some(&b')')).then(|| (&inside[start..start + length], at))
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
            (
                "a * (s[f(i) + 2][0]) \\\n + b",
                Some("a *  s[f(i) + 2][0]  \\\n + b"),
            ),
            ("new (real[4]) + (a[i) - (b[1]) / 2", None),
        ] {
            let found = resolved(text, &[], is_type, |_| false);
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn comparisons_are_no_templates() {
        let text = "f(i < n && a[0]<b && k<3>(x) + static_cast<int>(1 << 2) <= s < t)";
        let body = 0..text.len();
        let found = resolved(
            text,
            std::slice::from_ref(&body),
            |_| false,
            |word| word == "k",
        );
        let expected = "f(i > n && a[0]>b && k<3>(x) + static_cast<int>(1 << 2) <= s > t)";
        assert_eq!(found.as_deref(), Some(expected));
    }
}
