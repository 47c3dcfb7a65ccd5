//! `usage-level`: how much ptxas cares for registers when it schedules.
//!
//! Goal: another point between instruction-level parallelism and registers. ptxas,
//! `--register-usage-level` (0 to 10, 5 is the default): an option of the whole module.
//!
//! Requires a module with one kernel to mean that kernel alone. Preserves the PTX.

use crate::pass::{Pass, Work};
use crate::reliance::Footprint;

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct UsageLevel {
    /// The level, 0 to 10.
    pub level: u32,
}

crate::options!(UsageLevel: [level "0 to 10; 5 is what ptxas takes by itself" in 0..=10]; []);

impl Pass for UsageLevel {
    const NAME: &'static str = "usage-level";
    const LABEL: &'static str = "level";
    const ABOUT: &'static str =
        "tell ptxas how much to care for registers (--register-usage-level)";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn work(&self) -> Work<Self> {
        Work::Assembler(|pass, options| {
            options.usage_level = Some(u8::try_from(pass.level).unwrap_or(u8::MAX));
        })
    }
}
