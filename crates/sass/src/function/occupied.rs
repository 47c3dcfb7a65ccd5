//! The registers occupied at each instruction: live before it, or written by it.
//!
//! That is what nvdisasm counts (`-plr -lrm count`); comparing the two tests roles, control flow and
//! liveness together.

use warpwright_flow::{Cfg, Function, Inst, LiveSet, Liveness, Value};

/// Visits every instruction (block by block, each backwards) with its occupied registers in
/// ascending order.
pub fn for_each_occupied(func: &impl Function, mut visit: impl FnMut(Inst, &[Value])) {
    let cfg = Cfg::new(func);
    let liveness = Liveness::new(func, &cfg);
    let mut live = LiveSet::new(func.value_count());
    let mut occupied = Vec::new();
    for block in cfg.blocks() {
        let mut walk = liveness.walk(func, &cfg, block, &mut live);
        while let Some(inst) = walk.step() {
            occupied.clear();
            occupied.extend_from_slice(walk.live().members());
            func.for_each_def(inst, |value| occupied.push(value));
            occupied.sort_unstable();
            occupied.dedup();
            visit(inst, &occupied);
        }
    }
}
