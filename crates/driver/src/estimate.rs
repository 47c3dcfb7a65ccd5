//! What `opt` does on PTX when there is no ptxas: it estimates the register need from liveness and
//! sets a limit only where the estimate stands just above an occupancy stair.
//!
//! The limit goes in as `.maxnreg`; ptxas (whoever runs it later) keeps it by spilling if the
//! estimate was too low, so the tool stays cautious: the stair must be within reach of scheduling
//! alone.

use warpwright_pass::passes::{MaxNReg, has_bounds};
use warpwright_pass::ptx::facts::{kernel_pressure, static_shared_bytes};
use warpwright_pass::{Artifact, Recipe};

use crate::candidate::{Candidate, Resources};
use crate::explore::not_promised;
use crate::opt::{KernelReport, OptError, Request};
use crate::residency::occupy;

/// Registers that ptxas takes beyond the values that are live: addresses it splits, constants it
/// hoists, the stack pointer. For 20 to 63 doubles live, 12 to 58 more were taken; small kernels take a
/// handful (docs/facts.md). Counts are even.
pub fn registers(peak_units: u32) -> u32 {
    let scheduling = peak_units / 8;
    (peak_units + scheduling + 6)
        .next_multiple_of(2)
        .clamp(16, 255)
}

/// How far above a stair the estimate may stand for the limit to be set: 1/8 of the stair.
const REACH: u32 = 8;

/// Estimates each kernel and decides on directives.
///
/// # Errors
/// [`OptError::Scope`], [`OptError::Launch`].
pub fn estimate(input: &Artifact, request: &Request) -> Result<Vec<KernelReport>, OptError> {
    let kernels = request.scope.kernels(input)?;
    let estimate = |kernel: &String| estimate_one(input, kernel, request);
    kernels.iter().map(estimate).collect()
}

fn estimate_one(
    input: &Artifact,
    kernel: &str,
    request: &Request,
) -> Result<KernelReport, OptError> {
    let setting = request.scope.setting(input, kernel, request.gpu)?;
    let block = setting.block;
    let function = input
        .as_module()
        .and_then(|module| Some((module, module.function(kernel)?)));
    let peak = function.map_or(0, |(module, id)| kernel_pressure(module, id));
    let function = function.map(|(module, id)| (module, &module.functions[id]));
    let shared_bytes = function.map_or(0, |(module, f)| static_shared_bytes(module, f));
    let is_opaque = function.is_none_or(|(_, f)| f.opaque().is_some());
    let need = registers(peak);
    let stairs = setting
        .stairs(shared_bytes)
        .map_err(|error| OptError::Launch {
            kernel: kernel.to_owned(),
            error,
        })?;
    let close = |regs: u32| regs < need && regs + regs / REACH >= need;
    let close = stairs
        .iter()
        .rev()
        .map(|stair| stair.regs)
        .filter(|&regs| close(regs));
    let limit = |registers| (Recipe::default().with(MaxNReg { registers }), registers);
    let recipes = std::iter::once((Recipe::default(), need)).chain(close.map(limit));
    let candidate = |(recipe, registers)| {
        let resources = Resources {
            registers,
            shared_bytes,
            ..Resources::default()
        };
        let mut candidate = Candidate::built(recipe, resources);
        occupy(&setting, &mut candidate);
        candidate
    };
    let candidates: Vec<Candidate> = recipes.map(candidate).collect();
    let mut notes = vec![
        "no ptxas: registers are estimated from the liveness of the PTX, nothing was built".into(),
    ];
    notes.extend(not_promised(&block));
    let (chosen, reason) = match candidates.len() {
        _ if is_opaque => (
            0,
            "passed through unchanged: it has instructions unknown to us".into(),
        ),
        1 => (
            0,
            format!("about {need} registers are estimated, and no stair is close below"),
        ),
        _ => (
            1,
            format!("about {need} registers are estimated, just above the next stair"),
        ),
    };
    Ok(KernelReport {
        name: kernel.to_string(),
        block: block.dims,
        block_source: block.source,
        has_bounds: function.is_some_and(|(_, function)| has_bounds(function)),
        dynamic_smem: setting.dynamic(),
        grid: setting.grid,
        idle_sms: setting.idle_sms(),
        guessed: setting.guessed.to_owned(),
        recipe_text: candidates[chosen].recipe.to_string(),
        candidates,
        chosen,
        reason,
        notes,
        promises: Vec::new(),
        gained: None,
        wasted: None,
        counted: None,
        crat: None,
    })
}

#[cfg(test)]
mod tests {
    use super::registers;

    #[test]
    fn the_estimate_grows_with_pressure_and_stays_in_range() {
        assert_eq!(registers(0), 16);
        assert!(registers(63 * 2) > 126);
        assert_eq!(registers(1000), 255);
    }
}
