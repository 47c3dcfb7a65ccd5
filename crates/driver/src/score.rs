//! Scores built candidates with the static model, relative to the first one (the default build).

use warpwright_model::{Case, Parameters, Prediction, predict};
use warpwright_target::Gpu;

use crate::build::Built;
use crate::candidate::Score;

/// Fills in the scores. Without a prediction for the default there is nothing to compare with, and
/// no candidate gets one.
pub fn score_all(gpu: &Gpu, dynamic_smem: u32, built: &mut [Built]) {
    let parameters = Parameters::default();
    let Some(first) = built.first() else { return };
    let Some(default) = predict_one(gpu, dynamic_smem, first, None, &parameters) else {
        return;
    };
    for b in built {
        let global_bytes = Some(default.global_bytes);
        b.candidate.score =
            predict_one(gpu, dynamic_smem, b, global_bytes, &parameters).map(|p| Score {
                relative_time: p.cycles / default.cycles,
                bound: p.bound().name().into(),
            });
    }
}

/// The model's prediction for one built candidate; `global_bytes` is the default build's.
pub fn predict_one(
    gpu: &Gpu,
    dynamic_smem: u32,
    built: &Built,
    global_bytes: Option<f64>,
    parameters: &Parameters,
) -> Option<Prediction> {
    let (kernel, residency) = (built.kernel.as_ref()?, built.candidate.residency.as_ref()?);
    let resources = built.candidate.resources.as_ref()?;
    let per_block = resources.shared_bytes + dynamic_smem + gpu.arch.shared.reserved;
    let case = Case {
        gpu,
        code: &kernel.code,
        warps: residency.warps,
        frame_bytes: kernel.frame_bytes.max(resources.stack_bytes),
        shared_per_sm: per_block.saturating_mul(residency.blocks),
        global_bytes,
    };
    Some(predict(&case, parameters))
}
