//! The checker on PTX.

mod function;
mod meaning;
mod step;
mod surroundings;

use warpwright_ptx::{FuncId, Function, Module, TopItem};

use crate::prove::check;
use crate::verdict::{Reason, Verdict};
use function::PtxFunction;

/// What the caller knows beside the two modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The exact block that the kernel is launched with, in threads. Without it, `.reqntid` is
    /// used, or else any block up to `.maxntid` threads.
    pub block: Option<[u32; 3]>,
}

/// Is function `new` a correct version of function `original`?
///
/// Device functions that they call by the same name are taken to be equal: [`check_modules`] checks
/// them, too.
pub fn check_functions(
    original: (&Module, FuncId),
    new: (&Module, FuncId),
    options: &Options,
) -> Verdict {
    let (Some(first), Some(second)) = (function(original), function(new)) else {
        return Verdict::Undecided(Reason::new("there is no such function with a body"));
    };
    if let Some(text) = surroundings::difference(original, new, options) {
        return Verdict::Undecided(Reason::new(text));
    }
    let views = (
        PtxFunction::new(original.0, original.1),
        PtxFunction::new(new.0, new.1),
    );
    let (Some(a), Some(b)) = views else {
        return Verdict::Undecided(Reason::new("there is no such function with a body"));
    };
    check(&a, &b, &surroundings::threads(first, second, options))
}

/// All functions of `original` that have a body, or get one in `new`, by name, with the verdict on
/// the function of that name in `new`.
pub fn check_modules(original: &Module, new: &Module, options: &Options) -> Vec<(String, Verdict)> {
    let mut verdicts = Vec::new();
    for (id, function) in &original.functions {
        let other = new.function(&function.name);
        let undecided = |text: &str| Verdict::Undecided(Reason::new(text));
        let verdict = match (other, &function.body) {
            // Nobody can call what is no longer declared.
            (None, None) => continue,
            (None, Some(_)) => undecided("the rewritten module does not have it"),
            (Some(other), None) => {
                let declared = &new.functions[other];
                if declared.body.is_some() {
                    undecided("the original leaves it to the linker")
                } else {
                    match surroundings::different_heads(original, function, new, declared) {
                        Some(text) => undecided(&text),
                        None => continue,
                    }
                }
            }
            (Some(_), Some(_))
                if aliases(original, &function.name) != aliases(new, &function.name) =>
            {
                undecided("it has other aliases")
            }
            (Some(other), Some(_)) => check_functions((original, id), (new, other), options),
        };
        verdicts.push((function.name.to_string(), verdict));
    }
    verdicts
}

/// The names that stand for a function, in order.
fn aliases<'m>(module: &'m Module, name: &str) -> Vec<&'m str> {
    let mut names: Vec<&str> = module
        .items
        .iter()
        .filter_map(|item| match item {
            TopItem::Alias { alias, aliasee, .. } if *module.functions[*aliasee].name == *name => {
                Some(&*module.functions[*alias].name)
            }
            _ => None,
        })
        .collect();
    names.sort_unstable();
    names
}

fn function((module, id): (&Module, FuncId)) -> Option<&Function> {
    module.functions.get(id)
}
