//! From recipes to PTX text: performance-tuning directives and pragmas of the entries, everything
//! else byte-identical.

use warpwright_ptx::edit::{EditError, Edits};
use warpwright_ptx::{Dims, DirectiveKind, FuncId, Function, Module};

use crate::kernel::{SMEM_PRAGMA, has_shared_spilling};
use crate::recipe::{Decision, Recipe};

/// A recipe does not fit the module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RealiseError {
    /// No such kernel, or only a declaration of it.
    #[error("there is no kernel `{0}` with a body")]
    NoKernel(String),
    /// The kernel requires another block size than the recipe promises.
    #[error("kernel `{kernel}` bounds its blocks to {own} threads, the recipe promises {threads}")]
    BlockBound {
        /// The kernel.
        kernel: String,
        /// Threads per block of its own directive.
        own: u32,
        /// Threads per block of the recipe.
        threads: u32,
    },
    /// The edits contradict each other.
    #[error(transparent)]
    Edit(#[from] EditError),
}

/// The module's text with each kernel's recipe in it. ptxas options in a recipe are not part of
/// the text; see [`Recipe::usage_level`].
pub fn realise(module: &Module, recipes: &[(&str, &Recipe)]) -> Result<String, RealiseError> {
    let mut edits = Edits::new(module);
    for (name, recipe) in recipes {
        let kernel = module.kernels().find(|(_, f)| *f.name == **name);
        let (id, function) = kernel.ok_or_else(|| RealiseError::NoKernel((*name).into()))?;
        for &decision in &recipe.0 {
            decide(&mut edits, id, function, decision)?;
        }
    }
    Ok(edits.apply()?)
}

fn decide(
    edits: &mut Edits,
    id: FuncId,
    function: &Function,
    decision: Decision,
) -> Result<(), RealiseError> {
    match decision {
        Decision::MaxRegisters { registers } => {
            set_goal(edits, id, function, &DirectiveKind::MaxNreg(registers));
        }
        Decision::MinBlocks { blocks } => {
            set_goal(edits, id, function, &DirectiveKind::MinNctaPerSm(blocks));
        }
        Decision::BlockBound { threads } => bound_block(edits, id, function, threads)?,
        Decision::SharedSpilling if has_shared_spilling(function) => {}
        Decision::SharedSpilling => {
            edits.add_declaration(id, &format!(".pragma \"{SMEM_PRAGMA}\";"))?;
        }
        Decision::RegisterUsageLevel { .. } => {}
    }
    Ok(())
}

/// A bound that the kernel has already is kept if it is wide enough: a launch may rely on it.
fn bound_block(
    edits: &mut Edits,
    id: FuncId,
    function: &Function,
    threads: u32,
) -> Result<(), RealiseError> {
    let own = function
        .req_ntid()
        .or(function.max_ntid())
        .map(|d| d.iter().fold(1u32, |all, &n| all.saturating_mul(n)));
    match own {
        None => {
            edits.set_directive(
                id,
                &DirectiveKind::MaxNtid(Dims([threads, 1, 1].into_iter().collect())),
            );
            Ok(())
        }
        Some(own) if own >= threads => Ok(()),
        Some(own) => Err(RealiseError::BlockBound {
            kernel: function.name.to_string(),
            own,
            threads,
        }),
    }
}

/// Sets the one directive that says how many registers a thread may have, directly or through
/// resident blocks. It takes the place of the kernel's own one: two would contradict each other.
fn set_goal(edits: &mut Edits, id: FuncId, function: &Function, goal: &DirectiveKind) {
    let mut own = function.directives.iter().filter(|d| is_goal(&d.kind));
    match own.next() {
        Some(first) => edits.replace(first.span, goal.to_string()),
        None => edits.set_directive(id, goal),
    }
    for other in own {
        edits.delete(other.span);
    }
}

fn is_goal(kind: &DirectiveKind) -> bool {
    use DirectiveKind::{MaxNctaPerSm, MaxNreg, MinNctaPerSm};
    matches!(kind, MaxNreg(_) | MinNctaPerSm(_) | MaxNctaPerSm(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> Module {
        let (module, diagnostics) = Module::parse("test.ptx", text);
        assert!(diagnostics.iter().all(|d| !d.is_error()), "{diagnostics:?}");
        module
    }

    const TEXT: &str = ".version 9.0\n.target sm_90\n.address_size 64\n\n.visible .entry a(\n)\n\
                        .maxntid 128, 1, 1\n.minnctapersm 2\n{\n\tret;\n}\n// between\n.visible .entry b(\n)\n{\n\tret;\n}\n";

    #[test]
    fn a_limit_replaces_the_blocks_wanted() {
        let recipe = Recipe::default().with(Decision::MaxRegisters { registers: 64 });
        let text = realise(&module(TEXT), &[("a", &recipe)]).unwrap();
        assert_eq!(
            text,
            TEXT.replace(".minnctapersm 2\n{", ".maxnreg 64\n{"),
            "nothing but the directive changes"
        );
        assert_eq!(
            module(&text).kernels().next().unwrap().1.max_nreg(),
            Some(64)
        );
    }

    #[test]
    fn the_default_recipe_changes_nothing() {
        let recipe = Recipe::default();
        assert_eq!(
            realise(&module(TEXT), &[("a", &recipe), ("b", &recipe)]).unwrap(),
            TEXT
        );
    }

    #[test]
    fn two_kernels_at_once() {
        let a = Recipe::default().with(Decision::SharedSpilling);
        let b = Recipe::default()
            .with(Decision::BlockBound { threads: 256 })
            .with(Decision::MinBlocks { blocks: 3 });
        let text = realise(&module(TEXT), &[("a", &a), ("b", &b)]).unwrap();
        let module = module(&text);
        let kernels: Vec<&Function> = module.kernels().map(|(_, f)| f).collect();
        assert!(has_shared_spilling(kernels[0]) && !has_shared_spilling(kernels[1]));
        assert_eq!(kernels[1].max_ntid(), Some([256, 1, 1]));
        assert_eq!(kernels[1].min_nctapersm(), Some(3));
    }

    #[test]
    fn a_promise_beyond_the_kernels_own_bound_is_refused() {
        let recipe = Recipe::default().with(Decision::BlockBound { threads: 256 });
        assert!(matches!(
            realise(&module(TEXT), &[("a", &recipe)]),
            Err(RealiseError::BlockBound {
                own: 128,
                threads: 256,
                ..
            })
        ));
        assert!(matches!(
            realise(&module(TEXT), &[("c", &recipe)]),
            Err(RealiseError::NoKernel(_))
        ));
    }
}
