//! What stands around the instructions: the module's header, heads of functions, directives,
//! declarations, sizes. What is not known here is not decided.

use std::collections::BTreeSet;

use warpwright_ptx::{
    Directive, DirectiveKind, FuncId, Function, FunctionKind, Item, Linkage, Module, Param, Space,
    TopItem, VarId,
};
use warpwright_target::{LOCAL_MEMORY_PER_THREAD, lookup};

use super::Options;
use crate::slots::Threads;

/// Why the rewritten function is not known to take all that the original takes, and to mean the same
/// by the same instructions.
pub(super) fn difference(
    (module, id): (&Module, FuncId),
    (other, new_id): (&Module, FuncId),
    options: &Options,
) -> Option<String> {
    let (original, new) = (module.functions.get(id)?, other.functions.get(new_id)?);
    different_modules(module, other)
        .or_else(|| different_heads(module, original, other, new))
        .or_else(|| unknown_statements(module, original).or_else(|| unknown_statements(other, new)))
        .or_else(|| too_large((module, id), (other, new_id)))
        .or_else(|| refused_launch(original, new, options))
}

/// How two declarations of one name differ, bodies left out.
pub(super) fn different_heads(
    module: &Module,
    original: &Function,
    other: &Module,
    new: &Function,
) -> Option<String> {
    if original.kind != new.kind {
        return Some("one is a kernel, the other is not".to_owned());
    }
    if original.linkage != new.linkage {
        return Some("other modules see them differently".to_owned());
    }
    if original.attributes != new.attributes {
        return Some("their attributes differ".to_owned());
    }
    if head(module, &original.params, &original.returns) != head(other, &new.params, &new.returns) {
        return Some("their parameters differ".to_owned());
    }
    let directives = |function: &Function| binding(&function.directives);
    directives(original)
        .and_then(|before| Ok(before == directives(new)?))
        .and_then(|same| {
            let before = declarations(module, original)?;
            Ok(same && before == declarations(other, new)?)
        })
        .map_or_else(Some, |same| {
            (!same).then(|| "their directives differ".to_owned())
        })
}

/// Space, type, vector length, dimensions, alignment, `.ptr`, attributes.
fn head(module: &Module, params: &[Param], returns: &[Param]) -> Vec<String> {
    let show = |var: VarId| {
        let var = &module.variables[var];
        format!(
            "{} {} v{} {:?} {} {:?} {:?}",
            var.space,
            var.ty,
            var.vector,
            var.dims,
            var.alignment(),
            var.ptr,
            var.attributes
        )
    };
    let all = params.iter().map(|param| show(param.var));
    let returns = returns.iter().map(|param| show(param.var));
    all.chain(["->".to_owned()]).chain(returns).collect()
}

/// The directives that a caller, the compiler or the launch is bound by. Those about tuning are left
/// out, and those about the block are compared with the launch.
fn binding(directives: &[Directive]) -> Result<Vec<String>, String> {
    let mut kept = Vec::new();
    for directive in directives {
        match &directive.kind {
            DirectiveKind::MaxNtid(_)
            | DirectiveKind::ReqNtid(_)
            | DirectiveKind::MinNctaPerSm(_)
            | DirectiveKind::MaxNctaPerSm(_)
            | DirectiveKind::MaxNreg(_) => {}
            DirectiveKind::Pragma(strings) => kept.extend(telling(strings)),
            kind @ (DirectiveKind::ReqNctaPerCluster(_)
            | DirectiveKind::ExplicitCluster
            | DirectiveKind::MaxClusterRank(_)
            | DirectiveKind::BlocksAreClusters
            | DirectiveKind::NoReturn
            | DirectiveKind::AbiPreserve(_)
            | DirectiveKind::AbiPreserveControl(_)) => kept.push(format!("{kind:?}")),
            DirectiveKind::Unknown(text) => {
                return Err(format!("the directive `{text}` is not known"));
            }
        }
    }
    Ok(kept)
}

/// Pragmas that may change more than speed.
fn telling(strings: &[String]) -> impl Iterator<Item = String> {
    const HINTS: [&str; 3] = ["nounroll", "frequency", "enable_smem_spilling"];
    let is_hint = |text: &str| HINTS.iter().any(|hint| text.trim().starts_with(hint));
    strings.iter().filter(move |text| !is_hint(text)).cloned()
}

/// What declarations without a body say of a function; they bind those who call it.
fn declarations(module: &Module, function: &Function) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for item in &module.items {
        if let TopItem::Declare {
            func,
            returns,
            params,
            directives,
            ..
        } = item
            && module.functions[*func].name == function.name
        {
            all.push(head(module, params, returns).join(", "));
            all.extend(binding(directives)?);
        }
    }
    all.dedup();
    Ok(all)
}

/// Headers, pragmas, names that others look up.
fn different_modules(original: &Module, new: &Module) -> Option<String> {
    let (before, now) = (&original.header, &new.header);
    if (before.version, &before.targets, before.address_size)
        != (now.version, &now.targets, now.address_size)
    {
        return Some("their versions, targets or address sizes differ".to_owned());
    }
    let pragmas = |module: &Module| -> Vec<String> {
        let items = module.items.iter();
        let strings = items.filter_map(|item| match item {
            TopItem::Pragma(strings, _) => Some(telling(strings)),
            _ => None,
        });
        strings.flatten().collect()
    };
    if pragmas(original) != pragmas(new) {
        return Some("their pragmas differ".to_owned());
    }
    for module in [original, new] {
        let unknown = module.items.iter().find_map(|item| match item {
            TopItem::Unknown(span) => Some(module.text(*span)),
            _ => None,
        });
        if let Some(text) = unknown {
            let word = text.split_whitespace().next().unwrap_or_default();
            return Some(format!("the directive `{word}` is not known"));
        }
    }
    let (before, now) = (exported(original), exported(new));
    if let Some(lost) = before.difference(&now).next() {
        return Some(format!("`{lost}` can no longer be found by name"));
    }
    let added = now.difference(&before).next()?;
    Some(format!("`{added}` may take the place of another module's"))
}

/// What the host or another module may look up.
fn exported(module: &Module) -> BTreeSet<&str> {
    let variables = module.variables.values();
    let variables = variables.filter(|v| v.owner.is_none() && v.linkage != Linkage::Local);
    let functions = module.functions.values();
    let functions = functions.filter(|f| f.linkage != Linkage::Local && f.body.is_some());
    let names = variables.map(|v| &*v.name);
    names.chain(functions.map(|f| &*f.name)).collect()
}

/// A statement of the body that the front end does not know.
fn unknown_statements(module: &Module, function: &Function) -> Option<String> {
    let body = function.body.as_ref()?;
    let mut unknown = body.items.iter().filter_map(|item| match item {
        Item::Unknown(span) => module.text(*span).split_whitespace().next(),
        _ => None,
    });
    let word = unknown.find(|word| ![".section", ".file"].contains(word))?;
    Some(format!("the directive `{word}` is not known"))
}

/// Memory that is declared, against what ptxas and a launch accept. A kernel has the variables of the
/// functions that it calls; all that it might call are counted.
fn too_large(original: (&Module, FuncId), new: (&Module, FuncId)) -> Option<String> {
    let declared = |(module, id): (&Module, FuncId), space: Space| {
        let is_reached = |owner: Option<FuncId>| match owner {
            Some(owner) if owner != id => module.functions[owner].kind == FunctionKind::Func,
            _ => true,
        };
        let variables = module.variables.values();
        let reached = variables.filter(|v| v.space == space && is_reached(v.owner));
        reached.fold(0u64, |sum, variable| {
            let align = u64::from(variable.alignment().max(1));
            let start = sum.checked_next_multiple_of(align).unwrap_or(u64::MAX);
            start.saturating_add(variable.bytes())
        })
    };
    let target = new.0.header.targets.first();
    let gpu = target.and_then(|target| lookup(target).ok());
    let shared = gpu.map_or(0, |gpu| gpu.arch.shared.per_block);
    for (space, most) in [
        (Space::Shared, shared),
        (Space::Local, LOCAL_MEMORY_PER_THREAD),
    ] {
        let (before, now) = (declared(original, space), declared(new, space));
        if now > before && now > u64::from(most) {
            return Some(format!(
                "it declares {now} bytes of {space} memory; {most} are certain"
            ));
        }
    }
    // Constant and global memory are the whole module's.
    let extra = |space: Space| declared(new, space) > declared(original, space);
    let space = [Space::Const, Space::Global]
        .into_iter()
        .find(|s| extra(*s))?;
    Some(format!("it declares more {space} memory"))
}

/// Threads of a block, as many as a number holds.
fn count(block: [u32; 3]) -> u32 {
    block.iter().fold(1, |all, &n| all.saturating_mul(n))
}

/// The blocks that may run a kernel. What `.reqntid` and `.maxntid` of either version say holds for
/// every launch, because others fail.
pub(super) fn threads(original: &Function, new: &Function, options: &Options) -> Threads {
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

/// A launch that the original takes and the rewritten kernel does not.
fn refused_launch(original: &Function, new: &Function, options: &Options) -> Option<String> {
    if let (Some(given), Some(required)) = (options.block, original.req_ntid())
        && given != required
    {
        return Some("the block that was named contradicts the original's .reqntid".to_owned());
    }
    let block = options.block.or(original.req_ntid());
    let refuses = |directive: &str| {
        let hint = match options.block {
            None => "; --block names the one that is launched",
            Some(_) => "",
        };
        format!("its {directive} refuses launches that the original takes{hint}")
    };
    if let Some(required) = new.req_ntid()
        && block != Some(required)
    {
        return Some(refuses(".reqntid"));
    }
    let most = block.or(original.max_ntid()).map(count);
    let most = most.unwrap_or(u32::MAX).min(Threads::default().most);
    new.max_ntid()
        .is_some_and(|bound| count(bound) < most)
        .then(|| refuses(".maxntid"))
}
