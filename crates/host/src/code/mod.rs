//! The launches of kernels in a file's own host code, and their extents as far as these are numbers.
//!
//! Host code is no part of the subset that is lowered, so it is read as words and signs: what a name is at a launch
//! follows from its declaration and from what the code assigns to it on the way. What may be something else at run time
//! is unknown: a parameter, what a condition or a loop assigns, what a call may write. What is found is a fact about
//! that launch, and no promise of others.

mod amount;
mod choices;
mod described;
mod members;
mod memory;
mod names;
mod number;
mod preprocess;
mod reached;
#[cfg(test)]
mod tests;
mod values;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

pub use amount::{Amount, Root};
pub use described::{Argument, Described};
pub use memory::{Held, Memory, ModuleVariable};
use number::Number;
pub use preprocess::expanded;
pub use reached::Reached;
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

/// Where a launch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Site {
    /// The token that names the kernel, or the variable that is it.
    at: usize,
    /// The token that names the kernel.
    named: usize,
    /// Does the code come to it?
    reached: Reached,
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
    /// Names that may still be looked up.
    fuel: Cell<u32>,
    /// What is not known is kept by its name.
    symbolic: bool,
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
            symbolic: false,
        };
        code.read_brackets();
        code
    }

    /// All launches of a kernel, by its name without namespaces: those that the code surely comes to first, in their
    /// order. Those that it never comes to are left out where there are others, and so are those of another instance than
    /// that with these template arguments, as far as they are known to be.
    pub fn launches(&self, kernel: &str, instance: &[String]) -> Vec<OwnLaunch> {
        let all = self.sites(kernel, instance).into_iter();
        all.map(|(_, launch)| launch).collect()
    }

    /// The same with their places.
    fn sites(&self, kernel: &str, instance: &[String]) -> Vec<(Site, OwnLaunch)> {
        let is_it = |at: &usize| self.word(*at) == kernel && self.tokens[*at].word;
        let uses = (0..self.tokens.len()).filter(is_it);
        let site = |(at, named)| {
            let mut known = Known::default();
            let launch = self.launch((at, named), instance, &mut known)?;
            let reached = match self.tokens[at].directive {
                true => Reached::Unknown,
                false => self.reached(at, &known),
            };
            Some((Site { at, named, reached }, launch))
        };
        let all = uses.flat_map(|named| {
            let own = [(named, named)].into_iter();
            own.chain(
                self.by_variable(named)
                    .into_iter()
                    .map(move |at| (at, named)),
            )
        });
        let mut all: Vec<_> = all.filter_map(site).collect();
        all.sort_by_key(|(site, _)| site.reached);
        let possible = all.partition_point(|(site, _)| site.reached < Reached::Never);
        all.truncate(if possible == 0 { all.len() } else { possible });
        all
    }

    /// What a text that stands at a byte of this code is, if it is a number above zero.
    pub fn number(&self, text: &str, at: usize) -> Option<u32> {
        self.fuel.set(values::MOST);
        let at = self.tokens.partition_point(|t| t.at.start < at);
        let value = self
            .value(text, at, &Known::default())?
            .number()?
            .number()?;
        u32::try_from(value).ok().filter(|&n| n > 0)
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

    /// The launch at a token of the kernel that is named at that or at another, and what it says of the parameters of
    /// templates.
    fn launch(
        &self,
        (at, named): (usize, usize),
        instance: &[String],
        known: &mut Known,
    ) -> Option<OwnLaunch> {
        self.fuel.set(values::MOST);
        if let Some(config) = self.extended(at) {
            let field = |field| self.field(config, field, at, known);
            return Some(OwnLaunch {
                grid: extents(field("gridDim")),
                block: extents(field("blockDim")),
                dynamic_smem: bytes(field("dynamicSmemBytes")),
            });
        }
        let found = launches::launch(self.text, &self.tokens, at)?;
        if self.tokens[at].directive {
            // Its names are the parameters of a macro.
            return Some(OwnLaunch::default());
        }
        if let Some(arguments) = self.template_arguments(&found, named) {
            for (argument, own) in arguments.into_iter().zip(instance) {
                if !self.may_be(argument, own, at, known) {
                    return None;
                }
            }
        }
        let part = |range: &Range<usize>| self.value(&self.text[range.clone()], at, known);
        let [grid, block] = [0, 1].map(|n| extents(found.config.get(n).and_then(part)));
        let dynamic_smem = match found.config.get(2) {
            None => Some(0),
            Some(range) => bytes(part(range)),
        };
        Some(OwnLaunch {
            grid,
            block,
            dynamic_smem,
        })
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
            return value
                .and_then(values::Value::number)
                .and_then(|n| n.number())
                .is_none_or(|n| n == number);
        }
        let is_scalar = |name: &str| ["float", "double", "int", "__half"].contains(&name);
        !is_scalar(argument) || !is_scalar(own) || argument == own
    }
}

/// `cudaLaunchKernelEx` and its kin, which get a `cudaLaunchConfig_t`.
fn is_extended(function: &str) -> bool {
    function.starts_with("cudaLaunchKernelEx")
}

/// Extents, each above zero.
fn extents(value: Option<values::Value>) -> Extents {
    let extent = |n: Option<Number>| {
        let n = n?.number()?;
        u32::try_from(n).ok().filter(|&n| n > 0)
    };
    let all = value.map_or_else(Vec::new, values::Value::extents);
    all.into_iter().map(extent).collect()
}

fn bytes(value: Option<values::Value>) -> Option<u32> {
    u32::try_from(value?.number()?.number()?).ok()
}
