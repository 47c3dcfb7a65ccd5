//! From recipes to PTX text: rewriting passes first, then performance-tuning directives and pragmas
//! of the entries; everything else stays byte-identical.

use warpwright_ptx::edit::{EditError, Edits};
use warpwright_ptx::{Dims, DirectiveKind, FuncId, Function, Module};

use crate::kernel::{SMEM_PRAGMA, has_shared_spilling};
use crate::recipe::{Decision, Recipe, Stage};
use crate::rewrite::{Setting, Site, rewrite};

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
    /// A rewriting pass has no proved result for this kernel.
    #[error("{0}")]
    Rewrite(String),
    /// The edits contradict each other.
    #[error(transparent)]
    Edit(#[from] EditError),
}

/// What is decided about one kernel, and where it will run.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The kernel's name.
    pub kernel: &'a str,
    /// The decisions.
    pub recipe: &'a Recipe,
    /// Where it will run.
    pub setting: Setting<'a>,
}

/// The module's text with each kernel's recipe in it. ptxas options and cubin edits in a recipe are
/// not part of the text; see [`Recipe::usage_level`] and [`crate::finish`].
pub fn realise(module: &Module, plans: &[Plan]) -> Result<String, RealiseError> {
    let mut rewritten: Option<Module> = None;
    for plan in plans {
        for decision in plan.recipe.at(Stage::Rewrite) {
            let module = rewritten.as_ref().unwrap_or(module);
            let site = Site {
                module,
                kernel: kernel(module, plan.kernel)?,
                setting: plan.setting,
            };
            rewritten = Some(rewrite(&site, decision).map_err(RealiseError::Rewrite)?);
        }
    }
    let module = rewritten.as_ref().unwrap_or(module);
    let mut edits = Edits::new(module);
    for plan in plans {
        let id = kernel(module, plan.kernel)?;
        for decision in plan.recipe.at(Stage::Directive) {
            decide(&mut edits, id, &module.functions[id], decision)?;
        }
    }
    Ok(edits.apply()?)
}

fn kernel(module: &Module, name: &str) -> Result<FuncId, RealiseError> {
    let found = module.kernels().find(|(_, f)| *f.name == *name);
    found
        .map(|(id, _)| id)
        .ok_or_else(|| RealiseError::NoKernel(name.into()))
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
        _ => {}
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
    use crate::kernel::{Block, BlockSource};
    use crate::recipe::Scarce;

    fn module(text: &str) -> Module {
        let (module, diagnostics) = Module::parse("test.ptx", text);
        assert!(diagnostics.iter().all(|d| !d.is_error()), "{diagnostics:?}");
        module
    }

    /// `realise` for blocks of 128 threads on an H200.
    fn realised(text: &str, recipes: &[(&str, &Recipe)]) -> Result<String, RealiseError> {
        let gpu = warpwright_target::lookup("h200").unwrap();
        let setting = Setting {
            gpu: &gpu,
            block: Block {
                dims: [128, 1, 1],
                source: BlockSource::Option,
            },
            dynamic_smem: 0,
        };
        let plan = |&(kernel, recipe)| Plan {
            kernel,
            recipe,
            setting,
        };
        let plans: Vec<Plan> = recipes.iter().map(plan).collect();
        realise(&module(text), &plans)
    }

    const TEXT: &str = ".version 9.0\n.target sm_90\n.address_size 64\n\n.visible .entry a(\n)\n\
                        .maxntid 128, 1, 1\n.minnctapersm 2\n{\n\tret;\n}\n// between\n.visible .entry b(\n)\n{\n\tret;\n}\n";

    #[test]
    fn a_limit_replaces_the_blocks_wanted() {
        let recipe = Recipe::default().with(Decision::MaxRegisters { registers: 64 });
        let text = realised(TEXT, &[("a", &recipe)]).unwrap();
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
            realised(TEXT, &[("a", &recipe), ("b", &recipe)]).unwrap(),
            TEXT
        );
    }

    #[test]
    fn two_kernels_at_once() {
        let a = Recipe::default().with(Decision::SharedSpilling);
        let b = Recipe::default()
            .with(Decision::BlockBound { threads: 256 })
            .with(Decision::MinBlocks { blocks: 3 });
        let text = realised(TEXT, &[("a", &a), ("b", &b)]).unwrap();
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
            realised(TEXT, &[("a", &recipe)]),
            Err(RealiseError::BlockBound {
                own: 128,
                threads: 256,
                ..
            })
        ));
        assert!(matches!(
            realised(TEXT, &[("c", &recipe)]),
            Err(RealiseError::NoKernel(_))
        ));
    }

    #[test]
    fn a_throttle_is_proved_and_stands_beside_directives() {
        let recipe = Recipe::default()
            .with(Decision::MaxRegisters { registers: 64 })
            .with(Decision::Throttle {
                blocks: 6,
                by: Scarce::SharedMemory,
            });
        let text = realised(TEXT, &[("a", &recipe)]).unwrap();
        assert!(text.contains(".maxnreg 64") && text.contains("warpwright_throttle"));
        let everything = Decision::Throttle {
            blocks: 1,
            by: Scarce::SharedMemory,
        };
        assert!(matches!(
            realised(TEXT, &[("a", &Recipe::default().with(everything))]),
            Err(RealiseError::Rewrite(_))
        ));
    }
}
