//! What stands around the instructions: the module's header, heads of functions, directives,
//! declarations, sizes. What is not known here is not decided.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use warpwright_ptx::opcode::Op;
use warpwright_ptx::{
    Base, Directive, DirectiveKind, FuncId, Function, FunctionKind, Item, Linkage, Module, Operand,
    Param, Space, SpecialReg, Symbol, TopItem, VarId,
};

use super::launches::{refused_launch, too_large};
use super::places::relies_on_places;
use super::shaped::{self, Launches};
use super::{Options, Why};
use crate::verdict::Cause;

/// What is looked up again and again in one module.
pub(super) struct Surroundings<'m> {
    pub(super) module: &'m Module,
    /// Functions by name.
    pub(super) functions: FxHashMap<&'m str, FuncId>,
    /// Declarations of a function without a body.
    declared: FxHashMap<FuncId, Vec<&'m TopItem>>,
    /// Other names of a function, in order.
    aliases: FxHashMap<FuncId, Vec<&'m str>>,
    /// Bytes of shared, local, constant and global memory that every function may come to.
    common: [u64; 4],
    /// The same of one kernel alone.
    own: FxHashMap<FuncId, [u64; 4]>,
    /// May a kernel be launched with dynamic shared memory?
    pub(super) has_dynamic: bool,
}

/// The memories of [`Surroundings::common`].
pub(super) const SPACES: [Space; 4] = [Space::Shared, Space::Local, Space::Const, Space::Global];

impl<'m> Surroundings<'m> {
    pub(super) fn new(module: &'m Module) -> Self {
        let mut found = Surroundings {
            module,
            functions: module
                .functions
                .iter()
                .map(|(id, f)| (&*f.name, id))
                .collect(),
            declared: FxHashMap::default(),
            aliases: FxHashMap::default(),
            common: [0; 4],
            own: FxHashMap::default(),
            has_dynamic: names_dynamic_memory(module),
        };
        for item in &module.items {
            match item {
                TopItem::Declare { func, .. } => {
                    found.declared.entry(*func).or_default().push(item)
                }
                TopItem::Alias { alias, aliasee, .. } => {
                    let name = &*module.functions[*alias].name;
                    found.aliases.entry(*aliasee).or_default().push(name);
                }
                _ => {}
            }
        }
        found
            .aliases
            .values_mut()
            .for_each(|names| names.sort_unstable());
        for variable in module.variables.values() {
            let Some(space) = SPACES.iter().position(|&space| space == variable.space) else {
                continue;
            };
            // A kernel has the variables of the functions that it calls; all that it might call count.
            let of = variable
                .owner
                .filter(|&owner| module.functions[owner].kind == FunctionKind::Entry);
            let sums = match of {
                Some(kernel) => found.own.entry(kernel).or_default(),
                None => &mut found.common,
            };
            // With room to align it wherever it comes to lie.
            let align = u64::from(variable.alignment().max(1));
            sums[space] = sums[space].saturating_add(
                variable
                    .bytes()
                    .checked_next_multiple_of(align)
                    .unwrap_or(u64::MAX),
            );
        }
        found
    }

    /// The names that stand for a function, in order.
    pub(super) fn aliases(&self, id: FuncId) -> &[&'m str] {
        self.aliases.get(&id).map_or(&[], |names| names)
    }

    pub(super) fn bytes(&self, id: FuncId) -> [u64; 4] {
        let own = self.own.get(&id).copied().unwrap_or_default();
        std::array::from_fn(|space| own[space].saturating_add(self.common[space]))
    }
}

/// Without an array of no stated size, or a look at how much there is, nobody asks for any.
fn names_dynamic_memory(module: &Module) -> bool {
    let mut variables = module.variables.values();
    let mut operands = (module.functions.values())
        .filter_map(|function| function.body.as_ref())
        .flat_map(|body| body.operands.values());
    variables.any(|v| v.space == Space::Shared && v.linkage == Linkage::Extern)
        || operands.any(|operand| {
            matches!(
                operand,
                Operand::Special {
                    reg: SpecialReg::DynamicSmemSize,
                    ..
                }
            )
        })
}

/// Why the rewritten function is not known to take all that the original takes, and to mean the same
/// by the same instructions; [`different_modules`] left out.
pub(super) fn difference(
    (around, id): (&Surroundings<'_>, FuncId),
    (other, new_id): (&Surroundings<'_>, FuncId),
    options: &Options,
    launches: Option<&Launches>,
) -> Option<Why> {
    let (original, new) = (
        around.module.functions.get(id)?,
        other.module.functions.get(new_id)?,
    );
    let versions = ((around.module, id), (other.module, new_id));
    different_heads((around, id), (other, new_id))
        .or_else(|| unknown_statements(around.module, original))
        .or_else(|| unknown_statements(other.module, new))
        .or_else(|| other_registers(versions.0, versions.1))
        .or_else(|| shared_by_several(around.module, versions.1))
        .or_else(|| relies_on_places(versions.0, versions.1))
        .map(|text| (Cause::Around, text))
        .or_else(|| too_large((around, id), (other, new_id), options))
        .or_else(|| {
            let text = match launches {
                None => refused_launch(around, original, new, options)?,
                Some(launches) => shaped::refused(other, original, new, launches)?,
            };
            Some((Cause::Launches, text))
        })
}

/// New shared memory of the module that two functions of a block may use: whose bytes are whose is found out in one
/// function alone.
fn shared_by_several(original: &Module, (module, id): (&Module, FuncId)) -> Option<String> {
    let is_kernel = |id: FuncId| module.functions[id].kind == FunctionKind::Entry;
    let is_new = |name: &str| {
        let mut known = original.variables.values();
        !known.any(|v| v.owner.is_none() && *v.name == *name)
    };
    let added = module
        .variables
        .iter()
        .filter(|(_, v)| v.owner.is_none() && v.space == Space::Shared && is_new(&v.name));
    added.into_iter().find_map(|(var, variable)| {
        let mut users = module.functions.iter().filter(|(_, f)| names(f, var));
        let is_used = module.functions.get(id).is_some_and(|f| names(f, var));
        let other = users.find(|&(user, _)| user != id && !(is_kernel(user) && is_kernel(id)))?;
        is_used.then(|| {
            format!(
                "`{}` is new, and `{}` uses it too",
                variable.name, other.1.name
            )
        })
    })
}

fn names(function: &Function, var: VarId) -> bool {
    let is_it = |symbol| matches!(symbol, Symbol::Var(named) if named == var);
    let Some(body) = &function.body else {
        return false;
    };
    body.operands.values().any(|operand| match *operand {
        Operand::Symbol { symbol, .. } => is_it(symbol),
        Operand::Mem(address) => matches!(address.base, Base::Symbol(symbol) if is_it(symbol)),
        _ => false,
    })
}

/// Registers that move between warps come from those that a kernel is launched with.
fn other_registers(
    (module, id): (&Module, FuncId),
    (other, new_id): (&Module, FuncId),
) -> Option<String> {
    let bounds = |function: &Function| {
        let (required, most) = (function.req_ntid(), function.max_ntid());
        (
            function.max_nreg(),
            function.min_nctapersm(),
            required,
            most,
        )
    };
    let moves = module.functions.values().any(|function| {
        let insts = function.body.iter().flat_map(|body| body.insts.values());
        insts
            .into_iter()
            .any(|data| module.opcode(data).op == Some(Op::Setmaxnreg))
    });
    (moves && bounds(&module.functions[id]) != bounds(&other.functions[new_id])).then(|| {
        "its warps hand registers to each other, and may be launched with another number".to_owned()
    })
}

/// How two declarations of one name differ, bodies left out.
pub(super) fn different_heads(
    (around, id): (&Surroundings<'_>, FuncId),
    (there, new_id): (&Surroundings<'_>, FuncId),
) -> Option<String> {
    let (module, other) = (around.module, there.module);
    let (original, new) = (&module.functions[id], &other.functions[new_id]);
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
            let before = declarations(around, id)?;
            Ok(same && before == declarations(there, new_id)?)
        })
        .map_or_else(
            |unknown| Some(unknown.to_string()),
            |same| (!same).then(|| "their directives differ".to_owned()),
        )
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

/// A directive whose meaning is not known.
#[derive(Debug, thiserror::Error)]
#[error("the directive `{0}` is not known")]
struct UnknownDirective(String);

/// The directives that a caller, the compiler or the launch is bound by. Those about tuning are left
/// out, and those about the block are compared with the launch.
fn binding(directives: &[Directive]) -> Result<Vec<String>, UnknownDirective> {
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
                return Err(UnknownDirective(text.clone()));
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
fn declarations(around: &Surroundings<'_>, id: FuncId) -> Result<Vec<String>, UnknownDirective> {
    let mut all = Vec::new();
    for item in around.declared.get(&id).into_iter().flatten() {
        if let TopItem::Declare {
            returns,
            params,
            directives,
            ..
        } = item
        {
            all.push(head(around.module, params, returns).join(", "));
            all.extend(binding(directives)?);
        }
    }
    all.dedup();
    Ok(all)
}

/// Headers, pragmas, names that others look up.
pub(super) fn different_modules(original: &Module, new: &Module) -> Option<String> {
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
    let lost = variables(original)
        .difference(&variables(new))
        .next()
        .copied()?;
    Some(format!("`{lost}` can no longer be found by name"))
}

/// A name that others see, and that the original does not have. `spare`: these are left out.
pub(super) fn new_name(
    original: &Module,
    new: &Module,
    spare: impl Fn(&str) -> bool,
) -> Option<String> {
    let (before, now) = (exported(original), exported(new));
    let mut added = now.difference(&before);
    let added = added.find(|name| !spare(name))?;
    Some(format!(
        "`{added}` is new, and may be taken for another module's of that name"
    ))
}

/// Functions that are there without a body in any module.
pub(super) const OF_THE_SYSTEM: [&str; 4] = ["vprintf", "__assertfail", "malloc", "free"];

/// Is a name of the new module a kernel that no function of the original can reach? None of them calls a kernel; one
/// that another module launches would be reached by what the original leaves to the linker.
pub(super) fn is_apart(original: &Module, new: &Module, name: &str) -> bool {
    let is_kernel = new
        .function(name)
        .is_some_and(|id| new.functions[id].kind == FunctionKind::Entry);
    let is_whole = original
        .functions
        .values()
        .all(|f| f.body.is_some() || OF_THE_SYSTEM.contains(&&*f.name));
    is_kernel && is_whole && original.function(name).is_none()
}

/// Variables that the host or another module may look up.
fn variables(module: &Module) -> BTreeSet<&str> {
    let variables = module.variables.values();
    let exported = variables.filter(|v| v.owner.is_none() && v.linkage != Linkage::Local);
    exported.map(|v| &*v.name).collect()
}

/// Functions, too; that none is lost is seen where they are compared.
fn exported(module: &Module) -> BTreeSet<&str> {
    let functions = module.functions.values();
    let functions = functions.filter(|f| f.linkage != Linkage::Local && f.body.is_some());
    let mut names = variables(module);
    names.extend(functions.map(|f| &*f.name));
    names
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
