//! The launches of kernels in a file's own host code, and their extents as far as these are numbers.
//!
//! Host code is no part of the subset that is lowered, so it is read as words and signs: what a name is at a launch
//! follows from its declaration and from what the code assigns to it on the way. What may be something else at run time
//! is unknown: a parameter, what a condition or a loop assigns, what a call may write. What is found is a fact about
//! that launch, and no promise of others.

mod calls;
mod names;
mod number;
mod preprocess;
#[cfg(test)]
mod tests;
mod values;

use std::cell::Cell;
use std::collections::BTreeMap;

pub use calls::{Calls, Unlaunched};
use number::Number;
use preprocess::Acting;
use values::{Known, Value};
use warpwright_cudac::launches;
use warpwright_cudac::macros::Macros;
use warpwright_cudac::words::Token;
use warpwright_target::Gpu;
/// Extents of a launch in as many dimensions as it says; none where one is no number that is known.
pub type Extents = Vec<Option<u32>>;

/// A launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnLaunch {
    /// The byte of the text at which the kernel is named.
    pub at: usize,
    /// Blocks; empty where not even the number of dimensions is known.
    pub grid: Extents,
    /// Threads per block, likewise.
    pub block: Extents,
    /// Dynamic shared memory in bytes per block, if it is known.
    pub dynamic_smem: Option<u32>,
    /// What it hands over, where that is seen.
    pub arguments: Option<Vec<Handed>>,
}

/// What a launch hands over for a parameter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handed {
    /// As it is written.
    pub text: String,
    /// The integer that it is, if that is known.
    pub number: Option<i64>,
}

/// What an expression that stands at a byte of a text is, if it is a number above zero.
pub fn number(text: &str, expr: &str, at: usize) -> Option<u32> {
    HostCode::new(text, &[]).number(expr, at)
}

/// Are all of them numbers? These, then.
pub fn numbers(extents: &Extents) -> Option<Vec<u32>> {
    let all: Option<Vec<u32>> = extents.iter().copied().collect();
    all.filter(|all| !all.is_empty())
}

/// A text as words, signs and brackets.
#[derive(Debug)]
pub struct HostCode<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    /// By token: the bracket around it.
    around: Vec<Option<usize>>,
    /// By opening bracket: the one that closes it.
    closes: BTreeMap<usize, usize>,
    /// By closing bracket: the one that opens it.
    opens: BTreeMap<usize, usize>,
    /// Where each word stands.
    places: BTreeMap<&'t str, Vec<usize>>,
    macros: Macros,
    /// Macros that do something.
    acting: Acting,
    /// Multiprocessors of the GPU, if somebody has said which it is.
    processors: Option<i64>,
    /// Names that may still be looked up.
    fuel: Cell<u32>,
}

impl<'t> HostCode<'t> {
    /// Reads a text without what is not compiled; `options` are nvcc's, of which `-D` and `-U` count.
    pub fn new(text: &'t str, options: &[String]) -> Self {
        Self::with_headers(text, options, &[])
    }

    /// The same with the texts of headers, of which macros count.
    pub fn with_headers(text: &'t str, options: &[String], headers: &[String]) -> Self {
        let (tokens, macros, acting) = preprocess::compiled(text, options, headers);
        Self::of(text, tokens, (macros, acting))
    }

    /// For a GPU.
    pub fn on(self, gpu: &Gpu) -> Self {
        let processors = gpu.board.and_then(|_| gpu.typical_sms()).map(i64::from);
        HostCode { processors, ..self }
    }

    /// A text of these tokens.
    fn of(text: &'t str, tokens: Vec<Token>, (macros, acting): (Macros, Acting)) -> Self {
        let mut code = HostCode {
            text,
            tokens,
            around: Vec::new(),
            closes: BTreeMap::new(),
            opens: BTreeMap::new(),
            places: BTreeMap::new(),
            macros,
            acting,
            processors: None,
            fuel: Cell::new(values::MOST),
        };
        code.read_brackets();
        code
    }

    /// All launches of a kernel, by its name without namespaces, in their order. Those of another instance than that with
    /// these template arguments, as far as they are known to be, are left out.
    pub fn launches(&self, kernel: &str, instance: &[String]) -> Vec<OwnLaunch> {
        let all = self.sites(kernel);
        let all = all.filter_map(|site| Some((site, self.launch(site, instance)?)));
        all.map(|(at, own)| OwnLaunch {
            at: self.tokens[at].at.start,
            ..own
        })
        .collect()
    }

    fn launch(&self, at: usize, instance: &[String]) -> Option<OwnLaunch> {
        self.refuel();
        let mut known = Known::default();
        let Some(found) = launches::launch(self.text, &self.tokens, at) else {
            // A macro may launch what it is handed.
            let call = self.around[at].and_then(|open| open.checked_sub(1));
            let launches = call.is_some_and(|call| self.acting.launching.contains(self.word(call)));
            return launches.then(OwnLaunch::default);
        };
        if self.tokens[at].directive {
            // Its names are the parameters of a macro.
            return Some(OwnLaunch::default());
        }
        let own = self.template_arguments(&found, at).unwrap_or_default();
        for (argument, own) in own.into_iter().zip(instance) {
            if !self.may_be(argument, own, at, &mut known) {
                return None;
            }
        }
        let part = |range: &std::ops::Range<usize>| {
            self.refuel();
            self.value(&self.text[range.clone()], at, &known)
        };
        let [grid, block] = [0, 1].map(|n| extents(found.config.get(n).and_then(part)));
        let parameters = found.parameters;
        Some(OwnLaunch {
            grid,
            block,
            dynamic_smem: match found.config.get(2) {
                None => Some(0),
                Some(range) => part(range).and_then(small),
            },
            arguments: parameters.map(|range| self.arguments(&self.text[range], at)),
            ..OwnLaunch::default()
        })
    }

    fn arguments(&self, text: &str, at: usize) -> Vec<Handed> {
        let one = |text: &str| {
            self.refuel();
            let value = self.value(text, at, &Known::default());
            let number = value.and_then(Value::number);
            Handed {
                text: text.to_owned(),
                number: number.and_then(|number| match number {
                    Number::Integer(number, _) => Some(number),
                    Number::Real(..) => None,
                }),
            }
        };
        values::parts(text).into_iter().map(one).collect()
    }

    fn refuel(&self) {
        self.fuel.set(values::MOST);
    }

    /// Where a kernel may be launched, by its name without namespaces.
    fn sites<'a>(&'a self, kernel: &'a str) -> impl Iterator<Item = usize> + 'a {
        let is_it = move |at: &usize| self.word(*at) == kernel && self.tokens[*at].word;
        (0..self.tokens.len()).filter(is_it)
    }

    /// What a text that stands at a byte of this code is, if it is a number above zero.
    pub fn number(&self, text: &str, at: usize) -> Option<u32> {
        self.refuel();
        let at = self.tokens.partition_point(|t| t.at.start < at);
        let value = self.value(text, at, &Known::default())?;
        small(value).filter(|&n| n > 0)
    }

    /// The type of the elements of a `__constant__` or `__device__` variable, as it is written; empty where it is not
    /// understood.
    pub fn variable_type(&self, name: &str) -> String {
        let spaces = ["__constant__", "__device__", "__managed__"];
        let others = ["static", "const", "extern", "volatile", "struct"];
        let words = |&at: &usize| -> Option<Vec<&str>> {
            let words: Vec<&str> = (self.statement(at)..at).map(|at| self.word(at)).collect();
            let is_it = words.iter().any(|word| spaces.contains(word));
            Some(words).filter(|_| is_it && !self.tokens[at].directive)
        };
        let found = self.places(name).iter().find_map(words);
        let mut words = found.unwrap_or_default();
        words.retain(|word| !spaces.contains(word) && !others.contains(word));
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match words.iter().all(|word| word.chars().all(is_part)) {
            true => words.join(" "),
            false => String::new(),
        }
    }

    /// The template's arguments of a launch, or those behind the name of the kernel.
    fn template_arguments(&self, found: &launches::Launch, named: usize) -> Option<Vec<&'t str>> {
        let behind = || {
            let end = launches::behind_template(self.text, &self.tokens, named)?;
            Some(self.tokens[named + 1].at.end..self.tokens[end - 1].at.start)
        };
        let range = found.arguments.clone().or_else(behind)?;
        Some(values::parts(&self.text[range]))
    }

    /// Can a template's argument of a launch be this one? A parameter of the template that launches then is.
    fn may_be(&self, argument: &str, own: &str, at: usize, known: &mut Known) -> bool {
        let digits = own.rsplit(')').next().unwrap_or(own);
        if let Ok(number) = digits.trim_end_matches(['u', 'l']).parse::<i64>() {
            if self.is_free(argument, at) {
                known.push((argument.to_owned(), Number::constant(number)));
                return true;
            }
            let value = self.value(argument, at, known);
            let value = value.and_then(Value::number);
            return value.is_none_or(|n| n.integer() == Some(number));
        }
        let is_scalar = |name: &str| ["float", "double", "int", "__half"].contains(&name);
        !is_scalar(argument) || !is_scalar(own) || argument == own
    }
}

/// A number as CUDA takes it.
fn small(value: Value) -> Option<u32> {
    u32::try_from(value.number()?.integer()?).ok()
}

fn extents(value: Option<Value>) -> Extents {
    let all = value.map_or_else(Vec::new, Value::extents);
    let one = |number: Option<Number>| small(Value::Number(number?)).filter(|&n| n > 0);
    all.into_iter().map(one).collect()
}
