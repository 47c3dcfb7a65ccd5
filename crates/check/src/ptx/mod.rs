//! The checker on PTX.

mod function;
mod meaning;
mod step;

use std::collections::BTreeSet;

use warpwright_ptx::{DirectiveKind, FuncId, Function, Item, Linkage, Module, TopItem, VarId};

use crate::prove::check;
use crate::slots::Threads;
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
    let different = different_heads(original.0, first, new.0, second)
        .or_else(|| lost_variable(original.0, new.0))
        .or_else(|| unread_bytes(first, second))
        .or_else(|| refused_launch(first, second, options));
    if let Some(text) = different {
        return Verdict::Undecided(Reason::new(text));
    }
    let views = (
        PtxFunction::new(original.0, original.1),
        PtxFunction::new(new.0, new.1),
    );
    let (Some(a), Some(b)) = views else {
        return Verdict::Undecided(Reason::new("there is no such function with a body"));
    };
    check(&a, &b, &threads(first, second, options))
}

/// All functions of `original` that have a body, or get one in `new`, by name, with the verdict on
/// the function of that name in `new`.
pub fn check_modules(original: &Module, new: &Module, options: &Options) -> Vec<(String, Verdict)> {
    let mut verdicts = Vec::new();
    for (id, function) in &original.functions {
        let other = new.function(&function.name);
        let is_defined_there = other.is_some_and(|other| new.functions[other].body.is_some());
        if function.body.is_none() && !is_defined_there {
            continue;
        }
        let verdict = match other {
            _ if function.body.is_none() => {
                Verdict::Undecided(Reason::new("the original leaves it to the linker"))
            }
            Some(_) if aliases(original, &function.name) != aliases(new, &function.name) => {
                Verdict::Undecided(Reason::new("it has other aliases"))
            }
            Some(other) => check_functions((original, id), (new, other), options),
            None => Verdict::Undecided(Reason::new("the rewritten module does not have it")),
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

/// The blocks that may run a kernel. What `.reqntid` and `.maxntid` of either version say holds for
/// every launch, because others fail.
fn threads(original: &Function, new: &Function, options: &Options) -> Threads {
    let block = options.block.or(new.req_ntid()).or(original.req_ntid());
    let most = [new, original].map(|function| function.max_ntid().map(count));
    let largest = Threads::default().most;
    let most = most.into_iter().flatten().fold(largest, u32::min);
    // A block beyond what any device takes is never launched.
    Threads {
        block: block.filter(|&block| count(block) <= largest),
        most,
    }
}

/// How the two functions' parameters differ, if they do.
fn different_heads(
    module: &Module,
    original: &Function,
    other: &Module,
    new: &Function,
) -> Option<String> {
    let parameter = |module: &Module, var: VarId| {
        let var = &module.variables[var];
        (
            var.space,
            var.ty,
            var.vector,
            var.dims.clone(),
            var.alignment(),
        )
    };
    let list = |module: &Module, params: &[warpwright_ptx::Param]| {
        params
            .iter()
            .map(|param| parameter(module, param.var))
            .collect::<Vec<_>>()
    };
    if original.kind != new.kind {
        return Some("one is a kernel, the other is not".to_owned());
    }
    if original.linkage != new.linkage {
        return Some("other modules see them differently".to_owned());
    }
    if clusters(original) != clusters(new) {
        return Some("they run in different clusters".to_owned());
    }
    let same = list(module, &original.params) == list(other, &new.params)
        && list(module, &original.returns) == list(other, &new.returns);
    (!same).then(|| "their parameters differ".to_owned())
}

/// What a kernel's head says about clusters: it decides what barriers and addresses mean.
fn clusters(function: &Function) -> Vec<&DirectiveKind> {
    let kinds = function.directives.iter().map(|directive| &directive.kind);
    kinds
        .filter(|kind| {
            matches!(
                kind,
                DirectiveKind::ReqNctaPerCluster(_)
                    | DirectiveKind::ExplicitCluster
                    | DirectiveKind::MaxClusterRank(_)
                    | DirectiveKind::BlocksAreClusters
            )
        })
        .collect()
}

/// Threads of a block, as many as a number holds.
fn count(block: [u32; 3]) -> u32 {
    block.iter().fold(1, |all, &n| all.saturating_mul(n))
}

/// A launch that the original takes and the rewritten kernel does not.
fn refused_launch(original: &Function, new: &Function, options: &Options) -> Option<String> {
    if let (Some(given), Some(required)) = (options.block, original.req_ntid())
        && given != required
    {
        return Some("the block that was named contradicts the original's .reqntid".to_owned());
    }
    let block = options.block.or(original.req_ntid());
    if let Some(required) = new.req_ntid()
        && block != Some(required)
    {
        return Some("its .reqntid refuses launches that the original takes".to_owned());
    }
    let most = block.or(original.max_ntid()).map(count);
    let most = most.unwrap_or(u32::MAX).min(Threads::default().most);
    match new.max_ntid() {
        Some(bound) if count(bound) < most => {
            Some("its .maxntid refuses launches that the original takes".to_owned())
        }
        _ => None,
    }
}

/// A variable that the host or another module may look up, and that the rewritten module lacks.
fn lost_variable(original: &Module, new: &Module) -> Option<String> {
    let exported = |module: &Module| -> BTreeSet<String> {
        let variables = module.variables.values();
        let exported =
            variables.filter(|v| v.owner.is_none() && !matches!(v.linkage, Linkage::Local));
        exported.map(|v| v.name.to_string()).collect()
    };
    let (before, now) = (exported(original), exported(new));
    let lost = before.difference(&now).next()?;
    Some(format!("`{lost}` can no longer be found by name"))
}

/// Loads of which the compiler may leave bytes out are not what their opcode says.
fn unread_bytes(original: &Function, new: &Function) -> Option<String> {
    let masks = |function: &Function| -> Vec<String> {
        let pragmas = function.body.iter().flat_map(|body| &body.items);
        let strings = pragmas.filter_map(|item| match item {
            Item::Pragma(strings, _) => Some(strings),
            _ => None,
        });
        let masks = strings.flatten().filter(|s| s.contains("used_bytes_mask"));
        masks.cloned().collect()
    };
    (masks(original) != masks(new)).then(|| "other bytes of its loads are used".to_owned())
}
