//! Arguments that a program's own text names, for kernels that it does not launch without any.
//!
//! Names of options are read where they are asked for: the helpers of CUDA's samples, `strcmp` with what was given,
//! `getopt`. Which kernels they lead to is nothing that is read: the program runs with them.

use std::collections::{BTreeSet, VecDeque};

use warpwright_cudac::words::{Token, tokens};

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    /// As it is given: `--kernel`, `-t`.
    word: String,
    takes: Takes,
    /// What it is kept in.
    variable: Option<String>,
}

/// What stands behind an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// A number behind `=`.
    Joined,
    /// A number as the next word.
    Behind,
    /// What nobody can guess.
    Text,
}

/// Names of options that launch nothing.
const IDLE: [&str; 4] = ["help", "h", "?", "version"];

/// Arguments that are tried at most.
const MOST: u32 = 32;
/// So many numbers in a row that lead to nothing new end the search of an option.
const FRUITLESS: u32 = 2;

/// The search for arguments.
pub struct Search {
    open: VecDeque<Named>,
    walk: Option<Walk>,
    left: u32,
}

/// The numbers of an option, one after the other.
struct Walk {
    option: Named,
    next: i64,
    fruitless: u32,
    is_fruitful: bool,
}

impl Search {
    /// By the texts of a program.
    pub fn of<'t>(texts: impl Iterator<Item = &'t str> + Clone) -> Search {
        let mut all: Vec<Named> = Vec::new();
        for text in texts.clone() {
            for found in Words::of(text).options() {
                match all.iter_mut().find(|own| own.word == found.word) {
                    // `if (checkCmdLineFlag(…, "n")) n = getCmdLineArgumentInt(…, "n");`
                    Some(own) if own.takes == Takes::Nothing => *own = found,
                    Some(_) => {}
                    None => all.push(found),
                }
            }
        }
        let is_idle = |option: &Named| IDLE.contains(&option.word.trim_start_matches('-'));
        all.retain(|option| option.takes != Takes::Text && !is_idle(option));
        // What decides between several paths leads to most.
        let switched: BTreeSet<&str> = texts.flat_map(switched).collect();
        let decides = |option: &Named| {
            let variable = option.variable.as_deref();
            variable.is_some_and(|variable| switched.contains(variable))
        };
        all.sort_by_key(|option| (!decides(option), option.takes == Takes::Nothing));
        Search {
            open: all.into(),
            walk: None,
            left: MOST,
        }
    }

    /// Is there something to be tried?
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The next arguments; `is_fruitful`: the last ones led to something new.
    pub fn next(&mut self, is_fruitful: bool) -> Option<Vec<String>> {
        self.left = self.left.checked_sub(1)?;
        if let Some(found) = self.walk.as_mut().and_then(|walk| walk.next(is_fruitful)) {
            return Some(found);
        }
        let option = self.open.pop_front()?;
        let words = option.with(1);
        self.walk = (option.takes != Takes::Nothing).then_some(Walk {
            option,
            next: 2,
            fruitless: 0,
            is_fruitful: false,
        });
        Some(words)
    }
}

impl Walk {
    fn next(&mut self, is_fruitful: bool) -> Option<Vec<String>> {
        self.is_fruitful |= is_fruitful;
        self.fruitless = if is_fruitful { 0 } else { self.fruitless + 1 };
        let number = match self.next {
            0 => return None,
            _ if self.fruitless < FRUITLESS => self.next,
            _ if self.is_fruitful => 0,
            _ => return None,
        };
        self.next = if number == 0 { 0 } else { number + 1 };
        Some(self.option.with(number))
    }
}

impl Named {
    fn with(&self, number: i64) -> Vec<String> {
        match self.takes {
            Takes::Joined => vec![format!("{}={number}", self.word)],
            Takes::Behind => vec![self.word.clone(), number.to_string()],
            Takes::Nothing | Takes::Text => vec![self.word.clone()],
        }
    }
}

/// The names of the kernels that a text defines.
pub fn kernels(text: &str) -> BTreeSet<String> {
    let words = Words::of(text);
    let starts = (0..words.tokens.len()).filter(|&at| words.word(at) == "__global__");
    let named = |start: usize| {
        let ends = |at: &usize| matches!(words.word(*at), ";" | "{");
        let mut head = (start + 1..words.tokens.len()).take_while(|at| !ends(at));
        let is_name = |at: &usize| {
            let word = words.word(*at);
            words.tokens[*at].word && words.word(at + 1) == "(" && !word.starts_with("__")
        };
        Some(words.word(head.find(is_name)?).to_owned())
    };
    starts.filter_map(named).collect()
}

/// What the `switch`es of a text go by.
fn switched(text: &str) -> BTreeSet<&str> {
    let words = Words::of(text);
    let heads = (0..words.tokens.len()).filter(|&at| words.word(at) == "switch");
    let inside = |at: usize| {
        let behind = (at + 1..words.tokens.len()).map(|at| words.word(at));
        behind.take_while(|word| *word != ")")
    };
    heads.flat_map(inside).collect()
}

/// A text as words and signs.
struct Words<'t> {
    text: &'t str,
    tokens: Vec<Token>,
}

impl<'t> Words<'t> {
    fn of(text: &'t str) -> Words<'t> {
        Words {
            text,
            tokens: tokens(text),
        }
    }

    fn word(&self, at: usize) -> &'t str {
        let token = self.tokens.get(at);
        token.map_or("", |token| &self.text[token.at.clone()])
    }

    /// What stands in quotes behind a token.
    fn literal(&self, at: usize) -> Option<&'t str> {
        let (token, next) = (self.tokens.get(at)?, self.tokens.get(at + 1)?);
        let between = self.text[token.at.end..next.at.start].trim();
        let inside = between.strip_prefix('"')?.strip_suffix('"')?;
        let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\\' | '%' | '/');
        (!inside.is_empty() && inside.chars().all(is_plain)).then_some(inside)
    }

    /// The first token of the statement that has this one.
    fn statement(&self, at: usize) -> usize {
        let ends = |at: &usize| matches!(self.word(*at), ";" | "{" | "}");
        let before = (0..=at).rev().find(ends);
        before.map_or(0, |before| before + 1)
    }

    /// The function whose parentheses have a token.
    fn called(&self, at: usize) -> &'t str {
        let mut depth = 0;
        let mut before = (self.statement(at)..=at).rev();
        let open = before.find(|&at| {
            match self.word(at) {
                ")" => depth += 1,
                "(" => depth -= 1,
                _ => {}
            }
            depth < 0
        });
        let name = open.and_then(|open| open.checked_sub(1));
        name.map_or("", |name| self.word(name))
    }

    fn options(&self) -> Vec<Named> {
        let literals = (0..self.tokens.len()).filter_map(|at| Some((at, self.literal(at)?)));
        literals
            .flat_map(|(at, text)| self.option(at, text))
            .collect()
    }

    /// The options that a literal behind a token names.
    fn option(&self, at: usize, text: &str) -> Vec<Named> {
        let one = |word: String, takes: Takes| {
            let variable = self.variable(at).map(str::to_owned);
            vec![Named {
                word,
                takes,
                variable,
            }]
        };
        let long = |takes: Takes| one(format!("--{text}"), takes);
        match self.called(at) {
            "checkCmdLineFlag" => long(Takes::Nothing),
            "getCmdLineArgumentInt" | "getCmdLineArgumentFloat" => long(Takes::Joined),
            "getCmdLineArgumentString" => long(Takes::Text),
            "strcmp" | "strncmp" | "strcasecmp" if text.len() > 1 && text.starts_with('-') => {
                one(text.to_owned(), self.taken(at))
            }
            "getopt" | "getopt_long" => letters(text),
            _ => match (self.word(at), self.word(at + 1), self.word(at + 2)) {
                ("{", ",", "no_argument") => long(Takes::Nothing),
                ("{", ",", "required_argument" | "optional_argument") => long(Takes::Behind),
                _ => Vec::new(),
            },
        }
    }

    /// The variable that a statement sets.
    fn variable(&self, at: usize) -> Option<&'t str> {
        let start = self.statement(at);
        let set = (start..at).find(|&at| self.word(at + 1) == "=" && self.word(at + 2) != "=");
        set.map(|at| self.word(at))
    }

    /// What the code behind `if (!strcmp(argv[i], "-n"` takes.
    fn taken(&self, at: usize) -> Takes {
        /// Tokens of the condition and of what follows, up to the next one.
        const NEAR: usize = 40;
        let near = at + 1..self.tokens.len().min(at + NEAR);
        let own = near.take_while(|&at| !matches!(self.word(at), "strcmp" | "}"));
        let words: Vec<&str> = own.map(|at| self.word(at)).collect();
        let is_number = |word: &&str| word.starts_with("ato") || word.starts_with("strto");
        match words.iter().any(is_number) {
            true => Takes::Behind,
            false if words.contains(&"argv") => Takes::Text,
            false => Takes::Nothing,
        }
    }
}

/// `ab:c` of `getopt`.
fn letters(text: &str) -> Vec<Named> {
    let mut all: Vec<Named> = Vec::new();
    for letter in text.chars() {
        match (letter, all.last_mut()) {
            (':', Some(last)) => last.takes = Takes::Behind,
            (letter, _) if letter.is_ascii_alphanumeric() => all.push(Named {
                word: format!("-{letter}"),
                takes: Takes::Nothing,
                variable: None,
            }),
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that are tried where these alone lead to something new.
    fn tried(text: &str, fruitful: &[&str]) -> Vec<String> {
        let mut search = Search::of([text].into_iter());
        let (mut all, mut is_fruitful) = (Vec::new(), false);
        while let Some(words) = search.next(is_fruitful) {
            let words = words.join(" ");
            is_fruitful = fruitful.contains(&&*words);
            all.push(words);
        }
        all
    }

    #[test]
    fn options_are_those_that_the_code_asks_for() {
        let text = r#"int main(int argc, char **argv) {
            if (checkCmdLineFlag(argc, (const char **)argv, "help") || checkCmdLineFlag(argc, argv, "?")) { printf("--fast\n"); }
            if (checkCmdLineFlag(argc, (const char **)argv, "n")) { n = getCmdLineArgumentInt(argc, (const char **)argv, "n"); }
            bool cpu = checkCmdLineFlag(argc, argv, "cpu");
            getCmdLineArgumentString(argc, (const char **)argv, "type", &type);
            if (checkCmdLineFlag(argc, (const char **)argv, "type")) {}
            int which = getCmdLineArgumentInt(argc, (const char **)argv, "kernel");
            switch (which) { case 1: f(); }
        }"#;
        assert_eq!(
            tried(text, &["--kernel=2"]),
            [
                "--kernel=1",
                "--kernel=2",
                "--kernel=3",
                "--kernel=4",
                "--kernel=0",
                "--n=1",
                "--n=2",
                "--cpu"
            ]
        );
    }

    #[test]
    fn options_of_other_parsers_are_found() {
        for (text, expected) in [
            (
                "if (!strcmp(argv[i], \"-x\")) { fast = true; } else if (strcmp(argv[i], \"-n\") == 0) n = atoi(argv[++i]); }",
                &["-n 1", "-n 2", "-x"][..],
            ),
            ("if (!strcmp(argv[1], \"-o\")) { out = argv[2]; }", &[]),
            (
                "while ((c = getopt(argc, argv, \"vs:\")) != -1) {}",
                &["-s 1", "-s 2", "-v"],
            ),
            (
                "struct option all[] = {{\"size\", required_argument, 0, 's'}, {\"quick\", no_argument, 0, 'q'}};",
                &["--size 1", "--size 2", "--quick"],
            ),
            ("strcmp(name, \"k\"); printf(\"-n\"); f(\"\");", &[]),
        ] {
            assert_eq!(tried(text, &[]), expected, "{text}");
        }
        // All that are fruitful, and no more than so many.
        let endless = "n = getCmdLineArgumentInt(argc, argv, \"n\");";
        let all: Vec<String> = (1..100).map(|n| format!("--n={n}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert_eq!(tried(endless, &all).len(), MOST as usize);
    }

    #[test]
    fn kernels_are_named() {
        let text = "template <int N> __global__ void __launch_bounds__(64) a(float *x) {}\n\
                    extern \"C\" __global__ void b(int n);\n// __global__ void c()\nvoid d() {}";
        assert_eq!(kernels(text).into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }
}
