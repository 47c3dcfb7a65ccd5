//! Names of kernels as their sources have them.

/// A mangled C++ symbol as its source writes it, any other name as it is.
pub fn source_name(symbol: &str) -> String {
    let parsed = cpp_demangle::Symbol::new(symbol);
    let text = parsed.ok().and_then(|symbol| symbol.demangle().ok());
    text.unwrap_or_else(|| symbol.to_owned())
}

/// The name alone of what [`source_name`] gives: no result, parameters or template arguments (`ns::k`).
pub fn plain_name(symbol: &str) -> String {
    let text = source_name(symbol);
    let mut depth = 0_u32;
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '(' if depth == 0 && !plain.ends_with(' ') && !plain.is_empty() => break,
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => depth = depth.saturating_sub(1),
            // What stands before a blank is the result of a template.
            ' ' if depth == 0 => plain.clear(),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    match plain.is_empty() {
        true => text,
        false => plain,
    }
}

/// Does a pattern name a kernel: its symbol, its name in the source with or without parameters, or a glob (`*` and
/// `?`) over one of these?
pub fn is_named(pattern: &str, symbol: &str) -> bool {
    let spellings = [symbol.to_owned(), source_name(symbol), plain_name(symbol)];
    let last = spellings[2].rsplit("::").next().map(str::to_owned);
    let mut all = spellings.iter().chain(&last);
    all.any(|name| name == pattern || glob(pattern, name))
}

/// The kernels that a pattern names: the one of this very symbol, else all that it [names](is_named).
pub fn selected<'n>(pattern: &str, symbols: &'n [String]) -> Vec<&'n str> {
    match symbols.iter().find(|symbol| *symbol == pattern) {
        Some(symbol) => vec![symbol],
        None => {
            let symbols = symbols.iter().map(String::as_str);
            symbols.filter(|symbol| is_named(pattern, symbol)).collect()
        }
    }
}

/// `*` is any characters, `?` is one.
fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The last star, and the place up to which it stands for the name.
    let mut star = None;
    while n < name.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n]) {
            p += 1;
            n += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            p = at + 1;
            n = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `void ns::k<int, 4>(float*)`
    const TEMPLATE: &str = "_ZN2ns1kIiLi4EEEvPf";

    #[test]
    fn kernels_are_called_as_in_their_source() {
        assert_eq!(source_name("saxpy"), "saxpy");
        assert_eq!(plain_name("saxpy"), "saxpy");
        assert_eq!(plain_name(TEMPLATE), "ns::k");
        assert_eq!(plain_name("_Z5saxpyifPf"), "saxpy");
        for name in [TEMPLATE, "ns::k", "k", "ns::*", "*::?", "*k*"] {
            assert!(is_named(name, TEMPLATE), "{name}");
        }
        for name in ["n", "ns", "k?", "", "K"] {
            assert!(!is_named(name, TEMPLATE), "{name}");
        }
    }

    #[test]
    fn a_symbol_goes_before_what_is_called_like_it() {
        let symbols = ["k".to_owned(), "_Z1kPf".to_owned()];
        assert_eq!(selected("k", &symbols), ["k"]);
        assert_eq!(selected("k(float*)", &symbols), ["_Z1kPf"]);
        assert_eq!(selected("*k*", &symbols), ["k", "_Z1kPf"]);
        assert!(selected("x", &symbols).is_empty());
    }

    #[test]
    fn stars_take_what_they_need() {
        assert!(glob("a*b*c", "aXbYbZc") && glob("**", "") && glob("*", "x"));
        assert!(!glob("a*b", "aXbY") && !glob("?", "") && !glob("", "x"));
    }
}
