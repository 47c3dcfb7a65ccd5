//! Names of kernels as their sources have them.

/// A mangled C++ symbol as its source writes it, any other name as it is.
pub fn source_name(symbol: &str) -> String {
    // Without the prefix, a name such as `a` would be read as the code of a type.
    let is_mangled = symbol.starts_with("_Z");
    let parsed = is_mangled.then(|| cpp_demangle::Symbol::new(symbol).ok());
    let text = parsed.flatten().and_then(|symbol| symbol.demangle().ok());
    text.unwrap_or_else(|| symbol.to_owned())
}

/// The names that an unknown word may stand for, at most three, the nearest first: a few letters apart, or one within the
/// other. Case does not count.
pub fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    const SHORTEST: usize = 3;
    let word = word.to_lowercase();
    let distance = |name: &str| {
        let name = name.to_lowercase();
        let is_part = name.len().min(word.len()) >= SHORTEST
            && (name.contains(&word) || word.contains(&name));
        let edits = strsim::damerau_levenshtein(&word, &name);
        match is_part {
            true => Some(edits.min(1)),
            false => (edits <= word.chars().count() / 3).then_some(edits),
        }
    };
    let mut found: Vec<_> = names
        .into_iter()
        .filter_map(|name| Some((distance(name)?, name)))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(3).map(|(_, name)| name).collect()
}

/// `; near: a, b`, or nothing.
pub fn near<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    match &nearest(word, names)[..] {
        [] => String::new(),
        found => format!("; near: {}", found.join(", ")),
    }
}

/// What [`source_name`] gives without the result and the parameters (`ns::k<int, 4>`), and without the arguments of
/// templates as well (`ns::k`).
fn short_names(text: &str) -> (String, String) {
    let mut depth = 0_u32;
    let (mut full, mut plain) = (String::new(), String::new());
    for c in text.chars() {
        match c {
            // The parameters; `(anonymous namespace)` stands where a name begins.
            '(' if depth == 0 && !plain.is_empty() && !plain.ends_with(':') => break,
            // What stands before a blank is the result of a template.
            ' ' if depth == 0 => {
                plain.clear();
                full.clear();
                continue;
            }
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
        full.push(c);
    }
    match plain.is_empty() {
        true => (text.to_owned(), text.to_owned()),
        false => (full, plain),
    }
}

/// The last part of a name.
fn last(plain: &str) -> &str {
    plain.rsplit("::").next().unwrap_or(plain)
}

/// The arguments of the template that a symbol is an instance of, as its source name has them.
pub fn template_arguments(symbol: &str) -> Vec<String> {
    let (full, _) = short_names(&source_name(symbol));
    let (mut depth, mut open) = (0_i32, full.len());
    for (at, c) in full.char_indices().rev() {
        depth += match c {
            '>' => 1,
            '<' => -1,
            _ => 0,
        };
        if depth == 0 {
            open = at;
            break;
        }
    }
    let Some(inside) = full.get(open + 1..full.len().saturating_sub(1)) else {
        return Vec::new();
    };
    parameters(inside)
}

/// The parts of a list of types between commas in no brackets.
fn parameters(list: &str) -> Vec<String> {
    let mut depth = 0_i32;
    let parts = list.split(|c| {
        depth += match c {
            '<' | '(' => 1,
            '>' | ')' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    });
    let parts = parts.map(|part| part.trim().to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

/// What stands in the last parentheses of a head or of a kernel's name as people write it, where that ends it.
pub fn parameters_of(name: &str) -> Vec<String> {
    let Some(inside) = name.strip_suffix(')') else {
        return Vec::new();
    };
    let mut depth = 1;
    let open = inside.char_indices().rev().find(|(_, c)| {
        depth += match c {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        depth == 0
    });
    open.map_or_else(Vec::new, |(at, _)| parameters(&inside[at + 1..]))
}

/// The last part of the name that the source has for a symbol: without namespaces, the arguments of templates and
/// parameters.
pub fn base_name(symbol: &str) -> String {
    last(&short_names(&source_name(symbol)).1).to_owned()
}

/// Is a kernel none of the user's: what CUB instantiates to ask which code a file has?
pub fn is_of_library(symbol: &str) -> bool {
    base_name(symbol) == "EmptyKernel" && source_name(symbol).contains("cub::")
}

/// A name without the blanks that change nothing: `k<4, 4>` and `k<4,4>` are one.
fn squeezed(name: &str) -> String {
    let mut out = String::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = name.split_whitespace();
    out.push_str(words.next().unwrap_or_default());
    for word in words {
        if out.ends_with(is_word) && word.starts_with(is_word) {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// How a namespace without a name is written.
const ANONYMOUS: &str = "(anonymous namespace)";

/// A name in the source, taken apart.
#[derive(Default)]
struct Parts<'a> {
    /// Namespaces, the outermost first.
    spaces: Vec<&'a str>,
    /// The kernel's own name.
    own: &'a str,
    /// `<…>`, or nothing.
    arguments: &'a str,
    /// `(…)`, or nothing.
    parameters: &'a str,
}

/// The parts of a name as [`source_name`] has it; the result of a template is none of them.
fn parts(text: &str) -> Parts<'_> {
    let mut found = Parts::default();
    let (mut start, mut end, mut depth) = (0, None, 0_u32);
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        match c {
            '(' if depth == 0 && at == start && rest.starts_with(ANONYMOUS) => {
                at += ANONYMOUS.len();
                continue;
            }
            '(' if depth == 0 => {
                found.parameters = rest;
                break;
            }
            ' ' if depth == 0 => {
                found.spaces.clear();
                (start, end) = (at + 1, None);
            }
            ':' if depth == 0 && rest.starts_with("::") => {
                found.spaces.push(&text[start..at]);
                (start, end) = (at + 2, None);
                at += 2;
                continue;
            }
            '<' | '(' | '{' => {
                if depth == 0 {
                    end = Some(at);
                }
                depth += 1;
            }
            '>' | ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += c.len_utf8();
    }
    let end = end.unwrap_or(at);
    (found.own, found.arguments) = (&text[start..end], &text[end..at]);
    found
}

/// A list of types without the namespaces of any.
fn unqualified(list: &str) -> String {
    let mut out = String::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for part in list.split_inclusive("::") {
        match part.strip_suffix("::") {
            None => out.push_str(part),
            Some(before) => {
                let before = before.strip_suffix(ANONYMOUS).unwrap_or(before);
                out.push_str(before.trim_end_matches(is_word));
            }
        }
    }
    out
}

/// Stands for the star of a pointer type, which is no star of a pattern.
const POINTER: char = '\u{e000}';

/// A pattern in which a star behind a type of a list of parameters stands for a pointer.
fn with_pointers(pattern: &str) -> String {
    let (mut depth, mut before) = (0_u32, ' ');
    let star = |c: char| {
        depth = match c {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        let is_pointer = c == '*'
            && depth > 0
            && (before.is_alphanumeric() || ['_', '>', POINTER].contains(&before));
        before = if is_pointer { POINTER } else { c };
        before
    };
    pattern.chars().map(star).collect()
}

/// Does a pattern name a kernel: its symbol, its name in the source (with or without its result, parameters, template
/// arguments and namespaces, outer ones first, and those of types in it), or a glob (`*` and `?`) over one of these?
/// Blanks count between words alone.
pub fn is_named(pattern: &str, symbol: &str) -> bool {
    let whole = source_name(symbol);
    let pattern = with_pointers(&squeezed(pattern));
    let matches = |pattern: &str, name: &str| {
        let pointers = name.replace('*', &POINTER.to_string());
        glob(pattern, &squeezed(&pointers))
    };
    if glob(&pattern, symbol) || matches(&pattern, &whole) {
        return true;
    }
    // Every kernel's result.
    let pattern = pattern.strip_prefix("void ").unwrap_or(&pattern);
    let parts = parts(&whole);
    let named = |space: &&&str| **space != ANONYMOUS;
    let of_names: Vec<&str> = parts.spaces.iter().filter(named).copied().collect();
    let [arguments, parameters] = [parts.arguments, parts.parameters]
        .map(|list| [String::new(), list.to_owned(), unqualified(list)]);
    [&parts.spaces, &of_names].into_iter().any(|spaces| {
        (0..=spaces.len()).any(|from| {
            let spaces = spaces[from..].iter().map(|space| format!("{space}::"));
            let name = spaces.collect::<String>() + parts.own;
            let mut ends = arguments
                .iter()
                .flat_map(|a| parameters.iter().map(move |p| (a, p)));
            ends.any(|(a, p)| matches(pattern, &format!("{name}{a}{p}")))
        })
    })
}

/// Can a pattern name an instance of the definition of this name in a source file? Namespaces, parameters and template
/// arguments are left to the caller.
pub fn is_definition_named(pattern: &str, name: &str) -> bool {
    glob(last(&short_names(&source_name(pattern)).1), name)
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
    fn words_that_are_nearly_names() {
        let names = ["maxnreg", "maxntid", "spill-to-shared", "reduce"];
        assert_eq!(nearest("maxnregg", names), ["maxnreg"]);
        assert_eq!(nearest("MaxNReg", names), ["maxnreg"]);
        assert_eq!(nearest("spill", names), ["spill-to-shared"]);
        assert_eq!(nearest("redcue", names), ["reduce"]);
        assert!(nearest("frob", names).is_empty() && nearest("", names).is_empty());
    }

    #[test]
    fn kernels_are_called_as_in_their_source() {
        // `a` and `i` are codes of types, too.
        for name in ["saxpy", "a", "i", "_Zzz"] {
            assert_eq!(source_name(name), name);
            let short = short_names(&source_name(name));
            assert_eq!(short, (name.to_owned(), name.to_owned()));
        }
        assert_eq!(
            short_names(&source_name(TEMPLATE)),
            ("ns::k<int, 4>".to_owned(), "ns::k".to_owned())
        );
        assert_eq!(template_arguments(TEMPLATE), ["int", "4"]);
        assert!(
            template_arguments("_Z5saxpyifPf").is_empty() && template_arguments("k").is_empty()
        );
        let plain = |symbol: &str| short_names(&source_name(symbol)).1;
        assert_eq!(plain("_Z5saxpyifPf"), "saxpy");
        assert_eq!(plain("_ZN12_GLOBAL__N_11kEv"), "::k");
        for symbol in [TEMPLATE, "_ZN12_GLOBAL__N_11kEv", "_Z1kv", "k"] {
            assert_eq!(base_name(symbol), "k", "{symbol}");
        }
        for name in [
            TEMPLATE,
            "ns::k",
            "k",
            "ns::*",
            "*::?",
            "*k*",
            "ns::k<int, 4>",
            "k<int,4>",
            "k< int , 4 >",
            "void ns::k<int,4>(float *)",
            "k<int, *>",
        ] {
            assert!(is_named(name, TEMPLATE), "{name}");
            assert!(is_definition_named(name, "k"), "{name}");
        }
        for name in ["k", "k(float*, unsigned int)", "ns::k<4>", "_Z1kPf", "k*"] {
            assert!(is_definition_named(name, "k"), "{name}");
            assert!(!is_definition_named(name, "j"), "{name}");
        }
        // `void img::zip<img::Axpy>(img::Axpy, float const*)`, `img::(anonymous namespace)::hidden(int*)`
        let zip = "_ZN3img3zipINS_4AxpyEEEvT_PKf";
        let hidden = "_ZN3img12_GLOBAL__N_16hiddenEPi";
        for name in [
            "zip",
            "img::zip<img::Axpy>",
            "zip<Axpy>",
            "img::zip<Axpy>(img::Axpy, float const*)",
            "zip(Axpy, const float*)",
            "zip<Axpy>(Axpy, float const *)",
            "void zip(Axpy, float const*)",
        ] {
            let is_told = !name.contains("const float");
            assert_eq!(is_named(name, zip), is_told, "{name}: {}", source_name(zip));
        }
        for name in [
            "hidden",
            "img::hidden",
            "img::hidden(int*)",
            "void hidden(int *)",
            "img::(anonymous namespace)::hidden",
            "(anonymous namespace)::hidden",
        ] {
            assert!(is_named(name, hidden), "{name}: {}", source_name(hidden));
        }
        for name in ["zip<>", "img", "zip<Bxpy>", "Axpy", "g::zip", "zip(Axpy)"] {
            assert!(!is_named(name, zip), "{name}");
        }
        // `k(float*, float, int)`: a pointer's star is none of a pattern.
        let three = "_Z1kPffi";
        for (name, is_meant) in [
            ("k(float*, float, int)", true),
            ("k(float *,float,int)", true),
            ("k(float*,int)", false),
            ("k(float*, *)", true),
            ("k(*)", true),
            ("k(float*", false),
            ("k(*int)", true),
        ] {
            assert_eq!(is_named(name, three), is_meant, "{name}");
        }
        assert!(is_named("k(unsigned int,float)", "_Z1kjf"));
        assert!(!is_named("k(unsignedint,float)", "_Z1kjf"));
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
