//! The launches of kernels in a file's own host code, and their extents as far as these are numbers.
//!
//! Host code is no part of the subset that is lowered, so it is read as words and signs: what a name is at a launch
//! follows from its declaration and from what the code assigns to it on the way. What may be something else at run time
//! is unknown: a parameter, what a condition or a loop assigns, what a call may write. What is found is a fact about
//! that launch, and no promise of others.

mod amount;
mod calls;
mod choices;
mod described;
mod memory;
mod names;
mod number;
mod preprocess;
#[cfg(test)]
mod tests;
mod values;

use std::cell::Cell;
use std::collections::BTreeMap;

pub use amount::{Amount, Root};
pub use calls::{Calls, Unlaunched};
pub use described::{Argument, Described};
pub use memory::Memory;
use number::Number;
pub use preprocess::expanded;
use values::Known;
use warpwright_cudac::launches;
use warpwright_cudac::macros::Macros;
use warpwright_cudac::words::Token;
pub use warpwright_launch::Op;

/// Extents of a launch in as many dimensions as it says; none where one is no number that is known.
pub type Extents = Vec<Option<u32>>;

/// A launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnLaunch {
    /// Blocks; empty where not even the number of dimensions is known.
    pub grid: Extents,
    /// Threads per block, likewise.
    pub block: Extents,
    /// Dynamic shared memory in bytes per block, if it is known.
    pub dynamic_smem: Option<u32>,
}

/// Where a launch stands: the token that names the kernel, or the variable that is it, and the token that names the kernel.
type Site = (usize, usize);

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
        let (tokens, macros) = preprocess::compiled(text, options, headers);
        Self::of(text, tokens, macros)
    }

    /// A text of these tokens.
    fn of(text: &'t str, tokens: Vec<Token>, macros: Macros) -> Self {
        let mut code = HostCode {
            text,
            tokens,
            around: Vec::new(),
            closes: BTreeMap::new(),
            opens: BTreeMap::new(),
            places: BTreeMap::new(),
            macros,
            fuel: Cell::new(values::MOST),
        };
        code.read_brackets();
        code
    }

    /// The launches of a kernel as [`described`](Self::described) finds them, by their numbers.
    pub fn launches(&self, kernel: &str, instance: &[String]) -> Vec<OwnLaunch> {
        let extents = |all: &[Option<Amount>]| {
            let all = all.iter().map(|amount| sure(amount.as_ref()?));
            all.map(|n| n.filter(|&n| n > 0)).collect()
        };
        let all = self.described(kernel, instance).into_iter();
        all.map(|own| OwnLaunch {
            grid: extents(&own.grid),
            block: extents(&own.block),
            dynamic_smem: own.dynamic_smem.as_ref().and_then(sure),
        })
        .collect()
    }

    /// Where a kernel may be launched, by its name without namespaces.
    fn sites<'a>(&'a self, kernel: &'a str) -> impl Iterator<Item = Site> + 'a {
        let is_it = move |at: &usize| self.word(*at) == kernel && self.tokens[*at].word;
        let uses = (0..self.tokens.len()).filter(is_it);
        uses.flat_map(|named| {
            let by_variable = self.by_variable(named).into_iter();
            let by_variable = by_variable.map(move |at| (at, named));
            std::iter::once((named, named)).chain(by_variable)
        })
    }

    /// What a text that stands at a byte of this code is, if it is a number above zero.
    pub fn number(&self, text: &str, at: usize) -> Option<u32> {
        self.fuel.set(values::MOST);
        let at = self.tokens.partition_point(|t| t.at.start < at);
        let value = self.value(text, at, &Known::default())?.number()?;
        sure(&value.amount).filter(|&n| n > 0)
    }

    /// `auto f = k<float>; f<<<…>>>(…);`: the uses of the variable that is the kernel named at a token.
    fn by_variable(&self, named: usize) -> Vec<usize> {
        let end = launches::behind_template(self.text, &self.tokens, named).unwrap_or(named + 1);
        let address = usize::from(self.word_before(named) == "&");
        let equals = named.checked_sub(1 + address);
        let is_it =
            |equals: &usize| self.word(*equals) == "=" && matches!(self.word(end), ";" | ",");
        let variable = equals
            .filter(is_it)
            .and_then(|equals| equals.checked_sub(1));
        let variable = variable.and_then(|at| match self.opens.get(&at) {
            // `void (*f)(…) = k`
            Some(&open) => open.checked_sub(2),
            None => Some(at),
        });
        let Some(variable) = variable.filter(|&at| self.tokens[at].word) else {
            return Vec::new();
        };
        let home = self.around[variable];
        let home = home
            .filter(|&open| self.word(open) == "(")
            .map_or(home, |open| self.around[open]);
        let all = self.places(self.word(variable)).iter();
        all.copied()
            .filter(|&at| at > variable && self.is_inside(at, home))
            .collect()
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

    /// `cudaLaunchKernelEx(&config, k, …)`: the token of `config`, for that of `k`.
    fn extended(&self, at: usize) -> Option<usize> {
        let open = self.around[at]?;
        let is_it = open > 0
            && self.word(open) == "("
            && is_extended(self.word(open - 1))
            && self.word(open + 1) == "&"
            && self.word(open + 3) == ","
            && open + 3 < at
            && !self.tokens[at].directive;
        is_it.then_some(open + 2)
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
            let value = value.and_then(values::Value::number);
            let value = value.filter(|n| n.amount.is_sure());
            return value.is_none_or(|n| n.number() == Some(number));
        }
        let is_scalar = |name: &str| ["float", "double", "int", "__half"].contains(&name);
        !is_scalar(argument) || !is_scalar(own) || argument == own
    }
}

/// `cudaLaunchKernelEx` and its kin, which get a `cudaLaunchConfig_t`.
fn is_extended(function: &str) -> bool {
    function.starts_with("cudaLaunchKernelEx")
}

/// What an amount is whatever the program is given.
fn sure(amount: &Amount) -> Option<u32> {
    let number = amount.number().filter(|_| amount.is_sure())?;
    u32::try_from(number).ok()
}
