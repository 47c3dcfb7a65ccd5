//! What a generated text takes for granted of the preprocessor, as conditions in front of it.
//!
//! A source compiler writes numbers for macros, and follows the branches that an `#if` takes. Another `-D` may change
//! both, so the text says for which it is. A macro that is a whole number is compared by the preprocessor, one of any
//! other text as a string by the compiler. All macros count that the kernel can reach by names: its own words, and those
//! of functions, constants, types and other macros; and every `#if` around or inside one of these.

use std::collections::BTreeSet;

use crate::ast::Init;
use crate::macros::{Macro, substitute};
use crate::preprocessed::groups;
use crate::words::{closed, tokens, words};
use crate::{File, Header, print};

/// Longest text of a macro that is compared, in bytes: compilers limit how deep a constant is computed.
const LONGEST: usize = 400;

/// Conditions of a generated text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Guards {
    /// For `#if`, in order.
    conditions: Vec<String>,
    /// What they say, in words: `NCOL = 1024`.
    said: Vec<String>,
    /// Macros that the compiler has to compare: a use, its name, and what it stands for without blanks.
    texts: Vec<(String, String, String)>,
}

impl Guards {
    /// What was generated for a kernel, for these values alone; with others the function `attempt` refuses every launch.
    pub(crate) fn around(&self, text: &str, kernel: &str, attempt: &str) -> String {
        let text = format!("{}{text}", self.compared(attempt));
        if self.conditions.is_empty() {
            return text;
        }
        let said = self.said.join(", ");
        format!(
            "// What was generated holds for {said}. With other values {kernel} is launched as written.\n#if {}\n\n{text}\n\
             #else\n#pragma message(\"{kernel} runs as written: what was generated is for {said}\")\ntemplate <typename... \
             Arguments>\nstatic inline cudaError_t {attempt}(const Arguments &...)\n{{\n    return \
             cudaErrorNotSupported;\n}}\n#endif\n\n",
            self.conditions.join(" && \\\n    ")
        )
    }

    /// Assertions about the texts of macros.
    fn compared(&self, stem: &str) -> String {
        if self.texts.is_empty() {
            return String::new();
        }
        let is = format!("{stem}_is");
        let text = format!("{stem}_TEXT");
        let mut out = format!(
            "static constexpr bool {is}(const char *text, const char *value, bool whole)\n{{\n    return *text == ' ' ? \
             {is}(text + 1, value, whole) :\n        *value == 0 ? !whole || *text == 0 : *text == *value && {is}(text + 1, \
             value + 1, whole);\n}}\n#define {text}_(...) #__VA_ARGS__\n#define {text}(...) {text}_(__VA_ARGS__)\n"
        );
        for (used, name, value) in &self.texts {
            let cut = value.char_indices().nth(LONGEST).map(|(at, _)| at);
            let value = &value[..cut.unwrap_or(value.len())];
            out += &format!(
                "static_assert({is}({text}({used}), {}, {}), \"the macro {name} is not what these kernels were generated \
                 for\");\n",
                literal(value),
                cut.is_none(),
            );
        }
        out + &format!("#undef {text}\n#undef {text}_\n\n")
    }
}

/// A text as a literal of C.
fn literal(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', " "))
}

impl File {
    /// What a text behind a kernel takes for granted, generated from what that kernel means here.
    pub(crate) fn guards(&self, header: &Header) -> Guards {
        let reached = self.reached(header);
        let at = header.span.end;
        let mut guards = Guards::default();
        let of_branches = self.tested(header, &reached);
        for name in reached.union(&of_branches) {
            let found = self.macros.named(name).rfind(|m| m.span.start <= at);
            let Some(found) = found.filter(|m| m.body.is_some()) else {
                let is_compilers = name.starts_with('_') || !of_branches.contains(name);
                if !is_compilers {
                    guards.conditions.push(format!("!defined({name})"));
                    guards.said.push(format!("{name} not defined"));
                }
                continue;
            };
            if found.foreign {
                continue;
            }
            self.guard(found, reached.contains(name), at, &mut guards);
        }
        guards
    }

    /// The condition on one macro; its text counts where the kernel reaches it.
    fn guard(&self, found: &Macro, is_reached: bool, at: usize, guards: &mut Guards) {
        let name = &found.name;
        let used = match &found.parameters {
            None => name.clone(),
            Some(parameters) => format!("{name}({})", parameters.join(", ")),
        };
        let body = found.body.as_deref().unwrap_or("");
        let value = self.substituted(&used, at, &mut Vec::new());
        match value.filter(|_| !body.is_empty()) {
            Some(value) if found.parameters.is_none() && is_number(&value) => {
                let condition = format!("defined({name}) && ({name}) == ({value})");
                guards.conditions.push(condition);
                guards.said.push(format!("{name} = {value}"));
            }
            Some(value) if is_reached && !used.contains("...") => {
                let blank = |c: char| c.is_ascii_whitespace();
                guards
                    .texts
                    .push((used, name.clone(), value.replace(blank, "")));
            }
            _ => {
                guards.conditions.push(format!("defined({name})"));
                guards.said.push(format!("{name} defined"));
            }
        }
    }

    /// All words that a kernel reaches by names.
    fn reached(&self, header: &Header) -> BTreeSet<String> {
        let start = header
            .head
            .as_ref()
            .map_or(header.span.start, |head| head.start);
        let own = &self.source.text[start..header.span.end];
        let mut open: Vec<String> = words(own).into_iter().collect();
        let mut found = BTreeSet::new();
        while let Some(word) = open.pop() {
            if !found.contains(&word) {
                open.extend(words(&self.meaning(&word)));
                found.insert(word);
            }
        }
        found
    }

    /// Everything that a file says of a name, as a text of words.
    fn meaning(&self, name: &str) -> String {
        let mut all: Vec<String> = Vec::new();
        let macros = self.macros.named(name).filter(|m| !m.foreign);
        all.extend(macros.filter_map(|m| m.body.clone()));
        for function in self.functions.iter().filter(|f| f.name.text == name) {
            let (part, span) = &function.part;
            all.push(self.parts[*part].text[span.clone()].to_owned());
        }
        for global in self.globals.iter().filter(|g| g.name.text == name) {
            all.push(print::declared(&global.ty, name));
            all.extend(global.init.iter().map(initial));
        }
        let aliases = self.aliases.iter().filter(|a| a.name == name);
        all.extend(aliases.map(|a| a.ty.clone()));
        for structure in self.structures.iter().filter(|s| s.name == name) {
            all.extend(structure.template.iter().map(|(_, text)| text.clone()));
            let members = structure.members.iter().flatten();
            all.extend(members.map(|m| print::declared(&m.ty, &m.name)));
        }
        for instance in self.instances.iter().filter(|i| i.name.text == name) {
            all.push(
                self.source
                    .text
                    .get(line_of(self, instance.name.span.start))
                    .unwrap_or("")
                    .to_owned(),
            );
        }
        all.join(" ; ")
    }

    /// The names that decide which branches a kernel is made of, in the file and in headers of its own.
    fn tested(&self, header: &Header, reached: &BTreeSet<String>) -> BTreeSet<String> {
        let mut defined: BTreeSet<&str> = BTreeSet::new();
        defined.extend(self.functions.iter().map(|f| &*f.name.text));
        defined.extend(self.globals.iter().map(|g| &*g.name.text));
        defined.extend(self.aliases.iter().map(|a| &*a.name));
        defined.extend(self.structures.iter().map(|s| &*s.name));
        let of_macros = self.macros.iter().filter(|m| m.parameters.is_some());
        defined.extend(of_macros.map(|m| &*m.name));
        defined.retain(|name| reached.contains(*name));
        let mut found = BTreeSet::new();
        let headers = self.headers.iter();
        let headers = headers.filter_map(|path| std::fs::read_to_string(path).ok());
        for (number, text) in [self.source.text.to_string()]
            .into_iter()
            .chain(headers)
            .enumerate()
        {
            for group in groups(&text) {
                let span = &group.span;
                let meets = |own: &crate::diag::Span| own.start < span.end && span.start < own.end;
                let is_kernels = number == 0 && meets(&header.span);
                let inside = &text[span.clone()];
                if is_kernels || words(inside).iter().any(|word| defined.contains(&**word)) {
                    found.extend(group.conditions.iter().flat_map(|line| names_of(line)));
                }
            }
        }
        found
    }

    /// A text with every macro of the author's expanded as the preprocessor does it; none where it pastes words or makes
    /// strings of them.
    fn substituted(&self, text: &str, at: usize, inside: &mut Vec<String>) -> Option<String> {
        let all = tokens(text);
        let (mut out, mut from, mut number) = (String::new(), 0, 0);
        while let Some(token) = all.get(number) {
            let word = &text[token.at.clone()];
            number += 1;
            let found = self.macros.get(word, at);
            let found = found.filter(|m| token.word && !inside.contains(&m.name));
            let Some(found) = found else {
                continue;
            };
            let body = found.body.as_deref().unwrap_or("");
            if body.contains('#') {
                return None;
            }
            let mut end = token.at.end;
            let body = match &found.parameters {
                None => body.to_owned(),
                Some(parameters) => {
                    let is_call = all.get(number).is_some_and(|t| &text[t.at.clone()] == "(");
                    let close = is_call.then(|| closed(text, &all, number)).flatten();
                    let Some(close) = close else { continue };
                    let given = self.arguments(text, &all[number..=close], at, inside)?;
                    if given.len() != parameters.len() {
                        return None;
                    }
                    (number, end) = (close + 1, all[close].at.end);
                    substitute(body, parameters, &given)
                }
            };
            out += &text[from..token.at.start];
            from = end;
            inside.push(found.name.clone());
            let whole = self.substituted(&body, at, inside);
            inside.pop();
            out += &whole.filter(|text| text.len() < 1 << 16)?;
        }
        Some(out + &text[from..])
    }

    /// The arguments of a macro, expanded: these tokens are its parentheses and what is between them.
    fn arguments(
        &self,
        text: &str,
        all: &[crate::words::Token],
        at: usize,
        inside: &mut Vec<String>,
    ) -> Option<Vec<String>> {
        let (mut found, mut depth, mut start) = (Vec::new(), 0, all.first()?.at.end);
        for token in all {
            match &text[token.at.clone()] {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            let ends = depth == 0 || depth == 1 && &text[token.at.clone()] == ",";
            if ends {
                found.push(self.substituted(text[start..token.at.start].trim(), at, inside)?);
                start = token.at.end;
            }
        }
        Some(found)
    }
}

/// The line around a place.
fn line_of(file: &File, at: usize) -> std::ops::Range<usize> {
    let text = &*file.source.text;
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    start..text[at..].find('\n').map_or(text.len(), |n| at + n)
}

/// A first value as a text.
fn initial(init: &Init) -> String {
    match init {
        Init::Value(value) => print::expr(value),
        Init::List(all, _) => all.iter().map(initial).collect::<Vec<_>>().join(", "),
    }
}

/// The names in the condition of a line `#if …`, without the compilers' own.
fn names_of(line: &str) -> Vec<String> {
    let line = line.trim_start().trim_start_matches('#');
    let all = words(line).into_iter();
    let is_own = |word: &String| {
        let directive = matches!(
            &**word,
            "if" | "ifdef"
                | "ifndef"
                | "elif"
                | "elifdef"
                | "elifndef"
                | "else"
                | "endif"
                | "defined"
        );
        !directive && !word.starts_with("__") && !word.starts_with(|c: char| c.is_ascii_digit())
    };
    all.filter(is_own).collect()
}

/// Is an expanded text a constant that the preprocessor can compute: whole numbers, signs and parentheses?
fn is_number(text: &str) -> bool {
    let mut digits = false;
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match word(first) {
            true => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if word(first) {
            let plain = token.trim_end_matches(['u', 'U', 'l', 'L']);
            let hexadecimal = plain.strip_prefix("0x").or(plain.strip_prefix("0X"));
            let is_whole = match hexadecimal {
                Some(digits) => !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit()),
                None => !plain.is_empty() && plain.chars().all(|c| c.is_ascii_digit()),
            };
            if !is_whole {
                return false;
            }
            digits = true;
        } else if !first.is_ascii_whitespace() && !"()+-*/%<>=!&|^~?:".contains(first) {
            return false;
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;

    fn guards(text: &str) -> Guards {
        let file = File::parse(Source::new("k.cu", text)).expect("it is read");
        file.guards(&file.kernels[0])
    }

    const KERNEL: &str = "__global__ void k(T *p) { p[N * threadIdx.x] = f(W); }\n";

    #[test]
    fn values_and_texts_of_macros_that_a_kernel_reaches() {
        let before = "#ifndef N\n#define N (2 * M)\n#endif\n#define M 0x20u\n#define T float\n#define HOST 3\n\
                      #define S(x) ((x) * 2.5f)\n__device__ float f(float x) { return S(x) + E; }\n\
                      const int W = V;\n#define V sizeof(T)\n#define E (float)N\n";
        let found = guards(&format!("{before}{KERNEL}"));
        assert_eq!(found.said, ["M = 0x20u", "N = (2 * 0x20u)"]);
        let texts: Vec<(&str, &str)> = found.texts.iter().map(|t| (&*t.0, &*t.2)).collect();
        assert_eq!(
            texts,
            [
                ("E", "(float)(2*0x20u)"),
                ("S(x)", "((x)*2.5f)"),
                ("T", "float"),
                ("V", "sizeof(float)")
            ]
        );
    }

    #[test]
    fn branches_around_what_a_kernel_reaches() {
        let before = "#ifdef BIG\nconst int W = 2048;\n#else\nconst int W = 1024;\n#endif\n#ifdef HOST\nint h;\n#endif\n\
                      #if defined(SLOW) && LEVEL > 2\n#define f(x) x\n#else\n#define f(x) (x + 1)\n#endif\n#define LEVEL 1\n";
        let found = guards(&format!("{before}{KERNEL}"));
        assert_eq!(
            found.conditions,
            [
                "!defined(BIG)",
                "defined(LEVEL) && (LEVEL) == (1)",
                "!defined(SLOW)"
            ]
        );
    }

    #[test]
    fn numbers_for_the_preprocessor() {
        for (text, is) in [
            ("1024", true),
            ("(-4 << 2)", true),
            ("0x1fUL", true),
            ("1e3", false),
            ("1.0", false),
            ("10f", false),
            ("(int)4", false),
            ("", false),
            ("'a'", false),
        ] {
            assert_eq!(is_number(text), is, "{text}");
        }
    }
}
