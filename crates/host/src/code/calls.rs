//! Kernels of a program that no code of it launches.
//!
//! By names alone: a function is called wherever code that is reached from `main` names one of its name. So it is said
//! of too few kernels rather than of too many. Members of classes, operators, what a macro makes, what stands outside of
//! functions and what may be compiled all count as reached.

use std::collections::{BTreeMap, BTreeSet};

use super::HostCode;
use warpwright_cudac::words::{tokens, words as all_words};

/// Why no code of a program launches a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlaunched {
    /// None names it.
    Unnamed,
    /// What names it is not reached from `main`.
    Uncalled(String),
}

impl Unlaunched {
    /// The same in words, of the program that has its `main` in this file.
    pub fn in_words(&self, main: &str) -> String {
        let program = format!("no code of the program of `{main}` launches it");
        match self {
            Unlaunched::Unnamed => program,
            Unlaunched::Uncalled(function) => {
                format!("{program}: `{function}`, which would, is not called from `main`")
            }
        }
    }
}

/// Of attributes in front of a name, those that stand in front of parentheses.
const ATTRIBUTES: [&str; 8] = [
    "__launch_bounds__",
    "__cluster_dims__",
    "__block_size__",
    "__maxnreg__",
    "__attribute__",
    "__align__",
    "alignas",
    "decltype",
];

/// Words of texts in which functions are called that no code names: by the loader, or by what stands in a string.
const BY_OTHERS: [&str; 9] = [
    "constructor",
    "destructor",
    "dlsym",
    "cuModuleGetFunction",
    "cuModuleEnumerateFunctions",
    "cuLibraryGetKernel",
    "cuLibraryEnumerateKernels",
    "cudaLibraryGetKernel",
    "cudaLibraryEnumerateKernels",
];

/// Options that bring texts which are not read.
const MORE_TEXTS: [&str; 7] = [
    "-I=",
    "-isystem",
    "-include",
    "--include-path",
    "--system-include",
    "--pre-include",
    "--options-file",
];

/// What the functions of a program name.
pub struct Calls {
    /// By name: the words of the bodies of all functions that have it.
    functions: BTreeMap<String, BTreeSet<String>>,
    /// What is reached from `main`, and from what stands outside of functions.
    reached: BTreeSet<String>,
}

impl Calls {
    /// Of the texts of all sources of a program and of their headers, which nvcc compiles with these options. None where
    /// names do not say who calls whom.
    pub fn of(texts: &[String], nvcc: &[String]) -> Option<Calls> {
        let more = |option: &String| MORE_TEXTS.iter().any(|more| option.starts_with(more));
        if nvcc.iter().any(more) {
            return None;
        }
        let mut calls = Calls {
            functions: BTreeMap::new(),
            // A name may be defined as another one.
            reached: nvcc.iter().flat_map(|option| all_words(option)).collect(),
        };
        for text in texts {
            calls.read(text, nvcc)?;
        }
        if !calls.functions.contains_key("main") {
            return None;
        }
        calls.reached.insert("main".to_owned());
        let mut open: Vec<String> = calls.reached.iter().cloned().collect();
        while let Some(name) = open.pop() {
            for word in calls.functions.get(&name).into_iter().flatten() {
                if calls.reached.insert(word.clone()) {
                    open.push(word.clone());
                }
            }
        }
        Some(calls)
    }

    /// Why no code launches the kernel of this name, which has no namespace and no arguments of a template.
    pub fn unlaunched(&self, kernel: &str) -> Option<Unlaunched> {
        if self.reached.contains(kernel) || !self.functions.contains_key(kernel) {
            return None;
        }
        let mut by = self.functions.iter();
        let by = by.find(|(name, words)| *name != kernel && words.contains(kernel));
        Some(by.map_or(Unlaunched::Unnamed, |(name, _)| {
            Unlaunched::Uncalled(name.clone())
        }))
    }

    fn read(&mut self, text: &str, nvcc: &[String]) -> Option<()> {
        let raw = tokens(text);
        let word = |at: usize| raw.get(at).map_or("", |token| &text[token.at.clone()]);
        // Names are made of others.
        let is_made = |at: usize| raw[at].directive && word(at) == "#" && word(at + 1) == "#";
        if (0..raw.len()).any(|at| is_made(at) || BY_OTHERS.contains(&word(at))) {
            return None;
        }
        let code = HostCode::new(text, nvcc);
        // What is left out may be compiled all the same: a header that is not read may define its condition.
        let kept: BTreeSet<usize> = code.tokens.iter().map(|token| token.at.start).collect();
        let left_out = raw.iter().filter(|token| !kept.contains(&token.at.start));
        self.reached.extend(
            left_out
                .filter(|token| token.word)
                .map(|token| text[token.at.clone()].to_owned()),
        );
        let is_brace = |at: &usize| !code.tokens[*at].directive;
        let braces = |sign: &str| {
            let all = (0..code.tokens.len()).filter(is_brace);
            all.filter(|at| code.word(*at) == sign).count()
        };
        if braces("{") != braces("}") || braces("{") > code.closes.len() {
            return None;
        }
        self.outside(&code, 0..code.tokens.len());
        Some(())
    }

    /// Reads declarations: the words of functions' bodies are theirs, all others are reached.
    fn outside(&mut self, code: &HostCode<'_>, range: std::ops::Range<usize>) {
        let (mut head, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let close = code.closes.get(&at).copied();
            match (code.word(at), close) {
                _ if code.tokens[at].directive => self.reach(code, at..at + 1),
                (";", _) => {
                    self.declared(code, &std::mem::take(&mut head));
                }
                ("{", Some(close)) => {
                    let own = std::mem::take(&mut head);
                    if is_space(code, &own) {
                        self.outside(code, at + 1..close);
                    } else if let Some(name) = self.declared(code, &own) {
                        let words = words(code, at + 1..close);
                        self.functions.entry(name).or_default().extend(words);
                    } else {
                        self.reach(code, at + 1..close);
                    }
                    at = close;
                }
                // What is in parentheses is part of the head.
                (_, Some(close)) => {
                    head.extend(at..=close);
                    at = close;
                }
                _ => head.push(at),
            }
            at += 1;
        }
        self.reach_all(code, &head);
    }

    /// The name of the function that a head declares; all else of it is reached.
    fn declared(&mut self, code: &HostCode<'_>, head: &[usize]) -> Option<String> {
        let name = function(code, head);
        let others: Vec<usize> = head
            .iter()
            .copied()
            .filter(|at| Some(*at) != name)
            .collect();
        self.reach_all(code, &others);
        name.map(|at| code.word(at).to_owned())
    }

    fn reach(&mut self, code: &HostCode<'_>, range: std::ops::Range<usize>) {
        self.reached.extend(words(code, range));
    }

    fn reach_all(&mut self, code: &HostCode<'_>, all: &[usize]) {
        for &at in all {
            self.reach(code, at..at + 1);
        }
    }
}

fn words(code: &HostCode<'_>, range: std::ops::Range<usize>) -> impl Iterator<Item = String> {
    let words = range.filter(|at| code.tokens[*at].word);
    words.map(|at| code.word(at).to_owned())
}

/// `namespace a {`, `extern "C" {`
fn is_space(code: &HostCode<'_>, head: &[usize]) -> bool {
    let words: Vec<&str> = head.iter().map(|at| code.word(*at)).collect();
    words == ["extern"] || words.iter().take(2).any(|word| *word == "namespace")
}

/// A head without the `template <…>` that it begins with.
fn behind_template<'h>(code: &HostCode<'_>, head: &'h [usize]) -> &'h [usize] {
    let (Some((&first, rest)), mut depth) = (head.split_first(), 0_u32) else {
        return head;
    };
    if code.word(first) != "template" {
        return head;
    }
    let end = rest.iter().position(|&at| {
        match code.word(at) {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    end.map_or(&[], |end| behind_template(code, &rest[end + 1..]))
}

/// The token of the name of the function that a head declares: a word in front of parentheses and behind a type.
fn function(code: &HostCode<'_>, head: &[usize]) -> Option<usize> {
    let head = behind_template(code, head);
    let of_class = [
        "class", "struct", "union", "enum", "typedef", "using", "=", "operator",
    ];
    let level = code.around[*head.first()?];
    let top = |at: &&usize| code.around[**at] == level;
    let mut own = head.iter().filter(top).enumerate();
    let mut before = "";
    own.find_map(|(number, &at)| {
        let word = code.word(at);
        let next = code.word(at + 1);
        let is_named = code.tokens[at].word && next == "(" && !ATTRIBUTES.contains(&word);
        let is_behind = number > 0 && !matches!(before, "::" | ":" | "~" | "," | ".");
        let found = (is_named && is_behind).then_some(at);
        let ends = of_class.contains(&word) || is_named && !is_behind;
        before = word;
        match (found, ends) {
            (Some(at), _) => Some(Some(at)),
            (None, true) => Some(None),
            _ => None,
        }
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, kernel: &str) -> Option<Unlaunched> {
        Calls::of(&[text.to_owned()], &[])?.unlaunched(kernel)
    }

    #[test]
    fn no_code_launches_what_nothing_from_main_names() {
        let uncalled = |name: &str| Some(Unlaunched::Uncalled(name.to_owned()));
        let k = "__global__ void __launch_bounds__(64) k(int *p) { p[0] = 1; }\n";
        for (text, expected) in [
            ("int main() { }", Some(Unlaunched::Unnamed)),
            (
                "int main() { /* k<<<1, 1>>>(p); */ }",
                Some(Unlaunched::Unnamed),
            ),
            (
                "__global__ void k(int *p); int main() { }",
                Some(Unlaunched::Unnamed),
            ),
            (
                "extern \"C\" void run(int *p);\nvoid run(int *p) { k<<<1, 1>>>(p); }\nint main() { }",
                uncalled("run"),
            ),
            (
                "extern \"C\" { static void run(int *p) { k<<<1, 1>>>(p); } }\nnamespace a { void f() { run(0); } }\nint main() { }",
                uncalled("run"),
            ),
            (
                "template <class T> T *run(T *p) { k<<<1, 1>>>(p); }\nint main() { }",
                uncalled("run"),
            ),
        ] {
            assert_eq!(found(&format!("{k}{text}"), "k"), expected, "{text}");
        }
    }

    #[test]
    fn what_may_be_launched_is_not_said_to_be_launched_by_nobody() {
        let k = "__global__ void k(int *p) { p[0] = 1; }\n";
        for text in [
            "int main() { k<<<1, 1>>>(0); }",
            "void run() { k<<<1, 1>>>(0); } int main() { run(); }",
            // Anything may go by a name.
            "void run() { k<<<1, 1>>>(0); } int main() { std::thread t(run); }",
            "void run() { k<<<1, 1>>>(0); } void (*f)() = run; int main() { f(); }",
            "void run() { k<<<1, 1>>>(0); } int x = (run(), 1); int main() { }",
            "void (*f)(int *) = k; int main() { }",
            // Nobody names a member, an operator or what a macro makes.
            "struct S { S() { k<<<1, 1>>>(0); } void run() override; }; int main() { S s; }",
            "void S::run() { k<<<1, 1>>>(0); } int main() { }",
            "S operator+(S a, S b) { k<<<1, 1>>>(0); } int main() { }",
            "TEST(a, b) { k<<<1, 1>>>(0); } int main() { }",
            "#define RUN k<<<1, 1>>>(0)\nint main() { RUN; }",
            "#define RUN(a) a##un()\nvoid run() { k<<<1, 1>>>(0); } int main() { RUN(r); }",
            "__attribute__((constructor)) void run() { k<<<1, 1>>>(0); } int main() { }",
            "int main() { cuModuleGetFunction(&f, m, \"k\"); }",
            // A header that is not read may define it.
            "int main() {\n#ifdef WITH_K\nk<<<1, 1>>>(0);\n#endif\n}",
            "int main() {\n#if 0\nk<<<1, 1>>>(0);\n#endif\n}",
            // No program, and what is not understood.
            "void run() { }",
            "int main() { ",
        ] {
            assert_eq!(found(&format!("{k}{text}"), "k"), None, "{text}");
        }
        assert_eq!(found("int main() { }", "k"), None);
        let text = format!("{k}void run() {{ k<<<1, 1>>>(0); }} int main() {{ go(); }}");
        let with = |option: &str| Calls::of(std::slice::from_ref(&text), &[option.to_owned()]);
        assert!(with("-DN=1").unwrap().unlaunched("k").is_some());
        assert_eq!(with("-Dgo=run").unwrap().unlaunched("k"), None);
        assert!(with("-include=more.h").is_none());
    }
}
