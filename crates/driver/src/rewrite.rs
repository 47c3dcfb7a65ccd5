//! The rewriting decisions of a recipe: each turns PTX into PTX through one of our own passes, and
//! none goes on without a proof.
//!
//! After each pass the text is parsed and verified, and the independent checker must *prove* that
//! the kernel computes what it did before. A kernel that is refuted or undecided is no candidate;
//! the report says why.

use warpwright_check::{Options, check_functions};
use warpwright_ptx::{FuncId, Module, verify};
use warpwright_target::Gpu;

use crate::allocate::{Point, allocate};
use crate::kernel::Block;
use crate::recipe::{Decision, Scarce};
use crate::reduce::reduce;
use crate::throttle;

/// Where a kernel will run.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The target.
    pub gpu: &'a Gpu,
    /// Threads per block, and how we know.
    pub block: Block,
    /// Dynamic shared memory in bytes per block.
    pub dynamic_smem: u32,
}

/// One kernel of a module, and where it will run: what a pass is given.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// The module.
    pub module: &'a Module,
    /// The kernel in it.
    pub kernel: FuncId,
    /// Where it will run.
    pub setting: Setting<'a>,
}

/// The module with one decision carried out and proved.
///
/// # Errors
/// Why there is no such version, for the report: the pass refuses, or the proof fails.
pub fn rewrite(site: &Site, decision: Decision) -> Result<Module, String> {
    let text = text(site, decision)?;
    let (new, diagnostics) = Module::parse(&site.module.name, &text);
    if let Some(error) = diagnostics.iter().find(|d| d.is_error()) {
        return Err(format!("{decision} gave invalid PTX: {}", error.message));
    }
    if let Err(errors) = verify(&new) {
        let first = errors.first().map_or("", |d| d.message.as_str());
        return Err(format!("{decision} gave invalid PTX: {first}"));
    }
    prove(site, &new).map_err(|why| format!("{decision} is not proved: {why}"))?;
    Ok(new)
}

/// The rewritten text of the whole module.
fn text(site: &Site, decision: Decision) -> Result<String, String> {
    match decision {
        Decision::Throttle {
            blocks,
            by: Scarce::SharedMemory,
        } => throttle::with_shared_memory(site, blocks),
        Decision::Allocate { registers, blocks } => {
            Ok(allocate(site, &Point::new(registers, blocks))?.text)
        }
        Decision::Reduce { registers } => {
            let reduced = reduce(site, registers)?;
            match reduced.text == *site.module.source {
                true => Err(format!("{decision}: nothing lowers the pressure")),
                false => Ok(reduced.text),
            }
        }
        _ => Err(format!("{decision} is not a pass over PTX")),
    }
}

/// Is the kernel in `new` a correct version of the site's?
fn prove(site: &Site, new: &Module) -> Result<(), String> {
    let name = &site.module.functions[site.kernel].name;
    let kernel = new.function(name).ok_or("the kernel is gone")?;
    let options = Options {
        block: site
            .setting
            .block
            .is_given()
            .then_some(site.setting.block.dims),
    };
    match check_functions((site.module, site.kernel), (new, kernel), &options) {
        verdict if verdict.is_proved() => Ok(()),
        verdict => Err(verdict.to_string()),
    }
}
