//! `smem-spilling`: let ptxas spill to shared memory first.
//!
//! Goal: spill slots where an access takes a third of the time. CUDA 13.0 and later,
//! `.pragma "enable_smem_spilling"` (docs/facts.md).
//!
//! Requires PTX ISA 9.0, no dynamic shared memory, no `setmaxnreg` and no calls: ptxas rejects or ignores the
//! pragma otherwise. Preserves every instruction.

use warpwright_ptx::{Edits, Function, Module};

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::ptx::facts::{SMEM_PRAGMA, has_operation, has_shared_spilling, uses_dynamic_shared};
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::Site;

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct SmemSpilling {}

crate::options!(SmemSpilling: []; []);

impl Pass for SmemSpilling {
    const NAME: &'static str = "smem-spilling";
    const LABEL: &'static str = "smem";
    const ABOUT: &'static str = "let ptxas spill to shared memory first, by its pragma";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn work(&self) -> Work<Self> {
        Work::Ptx(ask)
    }
}

impl SmemSpilling {
    /// Why ptxas would reject or ignore the pragma for this kernel, if so.
    pub fn obstacle(
        module: &Module,
        function: &Function,
        dynamic_smem: u32,
    ) -> Option<&'static str> {
        if module.header.version < (9, 0) {
            return Some("the pragma needs PTX ISA 9.0");
        }
        if dynamic_smem > 0 || uses_dynamic_shared(module, function) {
            return Some("the kernel uses dynamic shared memory");
        }
        if has_operation(module, function, "setmaxnreg") {
            return Some("the kernel uses setmaxnreg");
        }
        if has_operation(module, function, "call") {
            return Some("the kernel calls functions");
        }
        None
    }
}

fn ask(_: &SmemSpilling, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    let function = site.function();
    if let Some(why) = SmemSpilling::obstacle(site.module, function, site.setting.dynamic()) {
        return Err(Refusal::InTheWay(why));
    }
    let mut edits = Edits::new(site.module);
    if !has_shared_spilling(function) && fuel.burn() {
        edits.add_declaration(site.kernel, &format!(".pragma \"{SMEM_PRAGMA}\";"))?;
    }
    Ok(Rewritten::new(edits.apply()?))
}
