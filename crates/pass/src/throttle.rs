//! `throttle`: fewer blocks reside than could, and each has more of the caches.
//!
//! Goal: exactly so many resident blocks per SM. Paper: CRAT, sections 1 and 4.1 (after Kayıran et
//! al. 2013), where a dummy array in shared memory keeps the other blocks out.
//!
//! Departure: on today's SMs shared memory and the first-level cache are one memory, and the
//! carve-out follows the arrays: four blocks kept apart by 46 KB each leave a 256 KB cache with
//! 60 KB, so the throttle takes from the cache what it was to save for it. Registers are the
//! resource that costs nothing: a cubin may state more than its code uses, the driver allocates
//! what stands there, and nothing else changes. It needs a finished cubin (tried on sm_90), and the
//! register file keeps out nothing below 8 warps per SM (255 registers); for PTX output and other
//! architectures the paper's array remains.
//!
//! Requires: the block size that the launch will have. Preserves: every instruction.

use warpwright_ptx::Edits;
use warpwright_target::{EditedCode, Gpu, Resources, most_shared_memory, occupancy, ran_right};

use crate::own_shared::is_without_opt_in;
use crate::pass::{Fuel, Need, Outcome, Pass, Rewritten, Work};
use crate::ptx::facts::static_shared_bytes;
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::{CubinSite, Setting, Site};

/// The resource that a throttled kernel takes more of than it uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThrottleBy {
    /// Registers: the cubin states a larger count. The caches keep their size.
    #[default]
    Registers,
    /// Shared memory: an array that nobody uses, as in the paper. Where the first-level cache and
    /// shared memory are one, the cache gets smaller by what the arrays take.
    SharedMemory,
}

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct Throttle {
    /// Blocks per SM.
    pub blocks: u32,
    /// What the blocks are made to run out of.
    pub by: ThrottleBy,
}

crate::words!(ThrottleBy: ThrottleBy::Registers = "registers", ThrottleBy::SharedMemory = "smem");
crate::options!(Throttle: [blocks "blocks per SM that reside"];
    [by: ThrottleBy = ThrottleBy::Registers, "what they run out of: registers (in a cubin) or shared memory (in PTX)"]);

impl Pass for Throttle {
    const NAME: &'static str = "throttle";
    const ABOUT: &'static str =
        "let fewer blocks reside than could, so that each has more of the caches (CRAT)";
    const FOOTPRINT: Footprint = Footprint::FewerBlocks;

    fn needs(&self) -> &'static [Need] {
        &[Need::BlockSize]
    }

    fn work(&self) -> Work<Self> {
        match self.by {
            ThrottleBy::Registers => Work::MachineCode(state_registers),
            ThrottleBy::SharedMemory => Work::Ptx(add_array),
        }
    }
}

/// Arrays come in multiples of this, so that what lies behind them in shared memory (dynamic shared
/// memory that a kernel aligns by hand) keeps its alignment.
const ARRAY_UNIT: u32 = 1024;

/// Can register counts throttle on this GPU?
pub fn by_registers(gpu: &Gpu) -> bool {
    ran_right(EditedCode::RegisterCount, gpu.arch.sm)
}

/// The smallest number of registers per thread, not below the kernel's own, at which exactly
/// `blocks` blocks reside.
pub fn registers_for(gpu: &Gpu, need: &Resources, blocks: u32) -> Option<u32> {
    let resident = |&regs: &u32| occupancy(gpu, &need.regs(regs)).map(|o| o.blocks);
    (need.regs..=gpu.arch.registers.per_thread).find(|regs| resident(regs) == Ok(blocks))
}

/// Bytes of an unused array in static shared memory, beside the kernel's own, at which exactly
/// `blocks` blocks reside, ptxas still takes the module, and a program that does not opt in to more still launches it.
pub fn array_for(gpu: &Gpu, need: &Resources, blocks: u32) -> Option<u32> {
    let one_more = most_shared_memory(gpu, blocks + 1)?;
    let taken = need.static_smem + need.dynamic_smem;
    let array = (one_more + 1)
        .checked_sub(taken)?
        .next_multiple_of(ARRAY_UNIT);
    let total = need.static_smem + array;
    let resident = occupancy(gpu, &need.static_smem(total)).map(|o| o.blocks);
    let per_block = gpu.arch.shared.per_block;
    let most = match is_without_opt_in(gpu, need.static_smem, need.dynamic_smem) {
        true => per_block - need.dynamic_smem,
        false => per_block,
    };
    (total <= most && resident == Ok(blocks)).then_some(array)
}

/// A bound of the kernel's own does not do: how many blocks reside goes by how large they are.
fn is_stated(setting: &Setting) -> Result<(), Refusal> {
    match setting.block.is_given() {
        true => Ok(()),
        false => Err(Refusal::NotStated(Need::BlockSize)),
    }
}

/// An unused array in the kernel's shared memory. ptxas keeps it.
fn add_array(pass: &Throttle, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    let setting = &site.setting;
    is_stated(setting)?;
    let need = Resources {
        static_smem: static_shared_bytes(site.module, site.function()),
        dynamic_smem: setting.dynamic(),
        ..Resources::new(1, setting.block.threads())
    };
    let bytes = array_for(setting.gpu, &need, pass.blocks).ok_or(Refusal::NoThrottle {
        what: "array that ptxas takes",
        blocks: pass.blocks,
    })?;
    let mut edits = Edits::new(site.module);
    if fuel.burn() {
        let name = edits.fresh_name("warpwright_throttle");
        edits.add_shared_variable(site.kernel, &name, 16, u64::from(bytes))?;
    }
    Ok(Rewritten::new(edits.apply()?))
}

/// A register count at which exactly so many blocks of the kernel reside.
fn state_registers(pass: &Throttle, site: &CubinSite, fuel: &mut Fuel) -> Outcome<Vec<u8>> {
    let setting = &site.setting;
    if !by_registers(setting.gpu) {
        return Err(Refusal::NotTried(setting.gpu.arch.sm));
    }
    is_stated(setting)?;
    let kernel = site.cubin.kernel(site.kernel).ok_or(Refusal::NoBody)?;
    let need = Resources {
        static_smem: kernel
            .shared_bytes
            .saturating_sub(setting.gpu.arch.shared.reserved),
        dynamic_smem: setting.dynamic(),
        ..Resources::new(kernel.registers, setting.block.threads())
    };
    let registers = registers_for(setting.gpu, &need, pass.blocks).ok_or(Refusal::NoThrottle {
        what: "register count",
        blocks: pass.blocks,
    })?;
    if !fuel.burn() {
        return Ok(Rewritten::new(site.cubin.bytes().to_vec()));
    }
    let refused = |error| Refusal::obstacle("the register count cannot be raised", error);
    let mut elf = site.cubin.elf().clone();
    elf.raise_registers(site.kernel, registers)
        .map_err(refused)?;
    Ok(Rewritten::new(elf.write().map_err(refused)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_target::lookup;

    #[test]
    fn registers_reach_what_the_file_can_keep_out() {
        let gpu = lookup("h200").unwrap();
        let need = Resources::new(40, 256);
        assert_eq!(occupancy(&gpu, &need).unwrap().blocks, 6);
        assert_eq!(registers_for(&gpu, &need, 3), Some(65));
        assert_eq!(registers_for(&gpu, &need, 1), Some(129));
        assert_eq!(
            registers_for(&gpu, &need, 7),
            None,
            "more than reside anyway"
        );
        // Blocks of two warps: 255 registers still hold four of them.
        assert_eq!(registers_for(&gpu, &Resources::new(40, 64), 3), None);
    }

    #[test]
    fn arrays_reach_what_ptxas_takes() {
        let gpu = lookup("h200").unwrap();
        let need = Resources::new(32, 256).static_smem(2000);
        let array = array_for(&gpu, &need, 5).unwrap();
        let with = need.static_smem(2000 + array);
        assert_eq!(occupancy(&gpu, &with).unwrap().blocks, 5);
        assert_eq!(array_for(&gpu, &need, 3), None, "more than 48 KB each");
    }
}
