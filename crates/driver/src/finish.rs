//! The decisions of a recipe that edit the finished cubin.

use crate::demote::{Extent, spill_to_shared};
use crate::realise::Plan;
use crate::recipe::{Decision, Scarce, Stage};
use crate::throttle;

/// The cubin with the plan's cubin edits carried out, in order.
///
/// # Errors
/// Why an edit is not possible, for the report.
pub fn finish(mut cubin: Vec<u8>, plan: &Plan) -> Result<Vec<u8>, String> {
    for decision in plan.recipe.at(Stage::Finish) {
        cubin = match decision {
            Decision::Throttle {
                blocks,
                by: Scarce::Registers,
            } => throttle::with_registers(&cubin, plan.kernel, &plan.setting, blocks)?,
            Decision::SpillToShared => demote(&cubin, plan, Extent::All)?,
            Decision::SpillHottestToShared { blocks } => {
                demote(&cubin, plan, Extent::Beside(blocks))?
            }
            _ => return Err(format!("{decision} is not an edit of cubins")),
        };
    }
    Ok(cubin)
}

fn demote(cubin: &[u8], plan: &Plan, extent: Extent) -> Result<Vec<u8>, String> {
    spill_to_shared(cubin, plan.kernel, &plan.setting, extent).map_err(|e| e.to_string())
}
