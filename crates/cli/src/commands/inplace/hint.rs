//! What a sentence can say about a kernel: whether it can be replaced, what limits it.

use warpwright_sass::Kernel;
use warpwright_target::{Gpu, Resources, occupancy};

use super::document::Launched;

/// Shorter launches are dominated by the launch itself.
const SHORT_NS: u64 = 3000;

/// The hint for launches of a kernel whose code is at hand.
pub fn hint(launched: &Launched, kernel: &Kernel, gpu: &Gpu) -> String {
    let launches = launched.launches + launched.in_graphs;
    if launched.gpu_ns / launches.max(1) < SHORT_NS {
        return "too short to gain".into();
    }
    if launched.launches == 0 {
        return "launched in graphs alone: tune cannot try it".into();
    }
    if let Some(bytes) = launched.spill_bytes.filter(|&bytes| bytes > 0) {
        return format!("spills ({bytes} bytes in the code): shared memory may take them");
    }
    let blocks: u64 = launched.grid.iter().map(|&n| u64::from(n)).product();
    let sms = gpu.typical_board().and_then(|board| board.sms.as_ref());
    let sms = sms.map_or(0, |fact| u64::from(fact.value));
    if blocks < sms {
        return format!("{blocks} blocks for {sms} SMs");
    }
    let need = Resources::new(kernel.registers, launched.block.iter().product())
        .static_smem(launched.static_smem.unwrap_or(0))
        .dynamic_smem(launched.dynamic_smem);
    match occupancy(gpu, &need) {
        Ok(found) if found.percent < 100.0 => {
            let limiters: Vec<&str> = found.limiters.iter().map(|l| l.name()).collect();
            format!("occupancy limited by {}", limiters.join(" and "))
        }
        _ => "full occupancy".into(),
    }
}
