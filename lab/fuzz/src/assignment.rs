//! The promise of `allocate`: if each name stands for the registers that it says (`%r5` for number
//! 5, `%rd3` for 6 and 7), values that are live together never share one, and none lies beyond the
//! limit.

use warpwright_flow::{Cfg, EntityRef as _, Function as _, LiveSet, Liveness};
use warpwright_ptx::{FuncId, Module, Reg};

/// What breaks the promise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// There is only a declaration.
    #[error("no body")]
    NoBody,
    /// A name without a number.
    #[error("{0} has no number")]
    Number(String),
    /// A register that there is not.
    #[error("{name} is beyond {limit} registers")]
    Beyond {
        /// The value.
        name: String,
        /// 32-bit registers.
        limit: u32,
    },
    /// Two values in one register.
    #[error("{0} shares a register with a live value")]
    Shared(String),
}

/// Checks the promise for `limit` 32-bit registers.
///
/// # Errors
/// The value that breaks it.
pub fn check(module: &Module, kernel: FuncId, limit: u32) -> Result<(), Broken> {
    let view = module.view(kernel).ok_or(Broken::NoBody)?;
    let cfg = Cfg::new(&view);
    let liveness = Liveness::new(&view, &cfg);
    let mut live = LiveSet::new(view.value_count());
    for block in cfg.blocks() {
        let mut walk = liveness.walk(&view, &cfg, block, &mut live);
        loop {
            let mut taken = vec![false; limit as usize];
            for &value in walk.live().members() {
                let name = || view.value_name(value).to_string();
                let number = view.body().regs[Reg::new(value.index())].index();
                let first = number.ok_or_else(|| Broken::Number(name()))? as usize;
                let units = view.units(value) as usize;
                let own = taken.get_mut(first * units..(first + 1) * units);
                let own = own.ok_or_else(|| Broken::Beyond {
                    name: name(),
                    limit,
                })?;
                for unit in own {
                    if std::mem::replace(unit, true) {
                        return Err(Broken::Shared(name()));
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
