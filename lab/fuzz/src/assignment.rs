//! The promise of `allocate`: if each name stands for the registers that it says (`%r5` for number
//! 5, `%rd3` for 6 and 7), values that are live together never share one, and none lies beyond the
//! limit.

use warpwright_flow::{Cfg, EntityRef as _, Function as _, LiveSet, Liveness};
use warpwright_ptx::{FuncId, Module, Reg};

/// Checks the promise for `limit` 32-bit registers.
///
/// # Errors
/// The value that breaks it.
pub fn check(module: &Module, kernel: FuncId, limit: u32) -> Result<(), String> {
    let view = module.view(kernel).ok_or("no body")?;
    let cfg = Cfg::new(&view);
    let liveness = Liveness::new(&view, &cfg);
    let mut live = LiveSet::new(view.value_count());
    for block in cfg.blocks() {
        let mut walk = liveness.walk(&view, &cfg, block, &mut live);
        loop {
            let mut taken = vec![false; limit as usize];
            for &value in walk.live().members() {
                let name = view.value_name(value);
                let number = view.body().regs[Reg::new(value.index())].index();
                let first = number.ok_or_else(|| format!("{name} has no number"))? as usize;
                let units = view.units(value) as usize;
                let own = taken.get_mut(first * units..(first + 1) * units);
                for unit in own.ok_or_else(|| format!("{name} is beyond {limit} registers"))? {
                    if std::mem::replace(unit, true) {
                        return Err(format!("{name} shares a register with a live value"));
                    }
                }
            }
            if walk.step().is_none() {
                break;
            }
        }
    }
    Ok(())
}
