//! Thread throttling: fewer blocks reside than could, and each has more of the caches.
//!
//! Goal: exactly `blocks` resident blocks per SM. Paper: CRAT, sections 1 and 4.1 (after Kayıran et
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
use warpwright_sass::{Cubin, patch::set_registers};
use warpwright_target::{Gpu, Resources, most_shared_memory, occupancy};

use crate::kernel::static_shared_bytes;
use crate::rewrite::{Setting, Site};

/// Arrays come in multiples of this, so that what lies behind them in shared memory (dynamic shared
/// memory that a kernel aligns by hand) keeps its alignment.
const ARRAY_UNIT: u32 = 1024;
/// The architectures whose cubins were run with a larger register count than their code needs.
const REGISTER_COUNT_TRIED: [u32; 1] = [90];

/// Can register counts throttle on this GPU?
pub fn by_registers(gpu: &Gpu) -> bool {
    REGISTER_COUNT_TRIED.contains(&gpu.arch.sm)
}

/// The smallest number of registers per thread, not below the kernel's own, at which exactly
/// `blocks` blocks reside.
pub fn registers_for(gpu: &Gpu, need: &Resources, blocks: u32) -> Option<u32> {
    let resident = |&regs: &u32| occupancy(gpu, &need.regs(regs)).map(|o| o.blocks);
    (need.regs..=gpu.arch.registers.per_thread).find(|regs| resident(regs) == Ok(blocks))
}

/// Bytes of an unused array in static shared memory, beside the kernel's own, at which exactly
/// `blocks` blocks reside and ptxas still takes the module.
pub fn array_for(gpu: &Gpu, need: &Resources, blocks: u32) -> Option<u32> {
    let one_more = most_shared_memory(gpu, blocks + 1)?;
    let taken = need.static_smem + need.dynamic_smem;
    let array = (one_more + 1)
        .checked_sub(taken)?
        .next_multiple_of(ARRAY_UNIT);
    let total = need.static_smem + array;
    let resident = occupancy(gpu, &need.static_smem(total)).map(|o| o.blocks);
    (total <= gpu.arch.shared.per_block && resident == Ok(blocks)).then_some(array)
}

/// The site's module with an unused array in the kernel's shared memory. ptxas keeps it.
pub fn with_shared_memory(site: &Site, blocks: u32) -> Result<String, String> {
    let Setting {
        gpu,
        block,
        dynamic_smem,
    } = site.setting;
    let function = &site.module.functions[site.kernel];
    let need = Resources {
        static_smem: static_shared_bytes(site.module, function),
        dynamic_smem,
        ..Resources::new(1, block.threads())
    };
    let bytes = array_for(gpu, &need, blocks)
        .ok_or_else(|| format!("no array that ptxas takes leaves exactly {blocks} blocks"))?;
    let mut edits = Edits::new(site.module);
    let name = edits.fresh_name("warpwright_throttle");
    edits
        .add_shared_variable(site.kernel, &name, 16, u64::from(bytes))
        .and_then(|()| edits.apply())
        .map_err(|e| e.to_string())
}

/// The cubin with a register count at which exactly `blocks` blocks of `kernel` reside.
pub fn with_registers(
    cubin: &[u8],
    kernel: &str,
    setting: &Setting,
    blocks: u32,
) -> Result<Vec<u8>, String> {
    if !by_registers(setting.gpu) {
        return Err(format!(
            "throttling by registers was not tried on {}",
            setting.gpu
        ));
    }
    let parsed = Cubin::parse(cubin).map_err(|e| e.to_string())?;
    let code = parsed.kernel(kernel).ok_or("the cubin lacks the kernel")?;
    let need = Resources {
        static_smem: code
            .shared_bytes
            .saturating_sub(setting.gpu.arch.shared.reserved),
        dynamic_smem: setting.dynamic_smem,
        ..Resources::new(code.registers, setting.block.threads())
    };
    let registers = registers_for(setting.gpu, &need, blocks)
        .ok_or_else(|| format!("no register count leaves exactly {blocks} blocks"))?;
    set_registers(cubin, kernel, registers).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Block, BlockSource};
    use warpwright_ptx::Module;
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

    #[test]
    fn the_array_stands_in_the_kernel() {
        let text = ".version 9.0\n.target sm_90\n.address_size 64\n\n.visible .entry k(\n)\n{\n\tret;\n}\n";
        let (module, _) = Module::parse("t.ptx", text);
        let gpu = lookup("h200").unwrap();
        let block = Block {
            dims: [256, 1, 1],
            source: BlockSource::Option,
        };
        let setting = Setting {
            gpu: &gpu,
            block,
            dynamic_smem: 0,
        };
        let kernel = module.function("k").unwrap();
        let site = Site {
            module: &module,
            kernel,
            setting,
        };
        let new = with_shared_memory(&site, 5).unwrap();
        assert!(
            new.contains(".shared .align 16 .b8 warpwright_throttle0["),
            "{new}"
        );
        assert!(with_shared_memory(&site, 2).is_err());
    }
}
