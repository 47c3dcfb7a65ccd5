//! What `opt` does on PTX when there is no ptxas: it estimates the register need from liveness and
//! sets a limit only where the estimate stands just above an occupancy stair.
//!
//! The limit goes in as `.maxnreg`; ptxas (whoever runs it later) keeps it by spilling if the
//! estimate was too low, so the tool stays cautious: the stair must be within reach of scheduling
//! alone.

use warpwright_ptx::{FuncId, Function, Module};

use crate::candidate::{Candidate, Resources};
use crate::explain::pressure_report;
use crate::kernel::{block_of, static_shared_bytes};
use crate::opt::{KernelReport, OptError, Request, kernels};
use crate::recipe::{Decision, Recipe};
use crate::residency::{occupy, stairs};

/// Registers that ptxas takes beyond the values that are live: addresses it splits, constants it
/// hoists, the stack pointer. Of 20 doubles to 63 doubles live, 12 to 58 more were taken (docs/facts.md); small kernels take a handful. Registers come in eights.
pub fn registers(peak_units: u32) -> u32 {
    let scheduling = peak_units / 8;
    (peak_units + scheduling + 6)
        .next_multiple_of(2)
        .clamp(16, 255)
}

/// How far above a stair the estimate may stand for the limit to be set: 1/8 of the stair.
const REACH: u32 = 8;

/// Estimates each kernel and decides on directives.
pub fn estimate(module: &Module, request: &Request) -> Result<Vec<KernelReport>, OptError> {
    let wanted = kernels(module, request.kernel)?;
    module
        .kernels()
        .filter(|(_, f)| wanted.iter().any(|w| w.name == f.name))
        .map(|(id, function)| estimate_one(module, id, function, request))
        .collect()
}

fn estimate_one(
    module: &Module,
    id: FuncId,
    function: &Function,
    request: &Request,
) -> Result<KernelReport, OptError> {
    let name = &*function.name;
    let launch = request.launch.filter(|l| l.kernel == name);
    let block = block_of(function, request.block, launch).map_err(OptError::Request)?;
    let dynamic_smem = request
        .dynamic_smem
        .or(launch.map(|l| l.dynamic_smem))
        .unwrap_or_default();
    let shared_bytes = static_shared_bytes(module, function);
    let need = registers(pressure_report(module, id).peak_units);
    let stairs = stairs(request.gpu, &block, shared_bytes, dynamic_smem)
        .map_err(|e| OptError::Request(format!("kernel `{name}`: {e}")))?;

    let resources = |registers| Resources {
        registers,
        shared_bytes,
        ..Resources::default()
    };
    let mut candidates = vec![Candidate::new(Recipe::default())];
    candidates[0].resources = Some(resources(need));
    for stair in stairs
        .iter()
        .rev()
        .filter(|s| s.regs < need && s.regs + s.regs / REACH >= need)
    {
        let decision = Decision::MaxRegisters {
            registers: stair.regs,
        };
        let mut candidate = Candidate::new(Recipe::default().with(decision));
        candidate.resources = Some(resources(stair.regs));
        candidates.push(candidate);
    }
    for candidate in &mut candidates {
        occupy(request.gpu, &block, dynamic_smem, candidate);
    }
    let mut notes = vec![
        "no ptxas: registers are estimated from the liveness of the PTX, nothing was built".into(),
    ];
    if !block.is_given() {
        notes.push(format!(
            "the block size is not known; {} threads are assumed (--block states it)",
            block.threads()
        ));
    }
    let opaque = function.opaque().is_some();
    let (chosen, reason) = match (candidates.len(), opaque) {
        (_, true) => (
            0,
            "passed through unchanged: it has instructions unknown to us".into(),
        ),
        (1, _) => (
            0,
            format!("about {need} registers are estimated, and no stair is close below"),
        ),
        _ => (
            1,
            format!("about {need} registers are estimated, just above the next stair"),
        ),
    };
    Ok(KernelReport {
        name: name.to_string(),
        block: block.dims,
        block_source: format!("{:?}", block.source).to_lowercase(),
        dynamic_smem,
        candidates,
        chosen,
        reason,
        notes,
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
