//! Shared memory of a pass's own in a finished cubin: where it begins and ends, what launches must keep to.

use warpwright_sass::elf::{Elf, KernelSections, RESERVED_REGISTERS};
use warpwright_sass::spill::Shape;
use warpwright_target::{EditedCode, Gpu, most_shared_memory, ran_right};

use crate::pass::{Caution, Need};
use crate::refusal::Refusal;
use crate::site::{CubinSite, Setting};

/// What the proof does not cover: what launches must keep to, and architectures where it has not run.
pub(crate) fn cautions(site: &CubinSite, launch: &Launch) -> Vec<Caution> {
    let setting = &site.setting;
    let sm = setting.gpu.arch.sm;
    let untried = (!ran_right(EditedCode::OwnSharedMemory, sm)).then_some(Caution::Untried { sm });
    let bound = launch.is_promise.then_some(Caution::BlockBound {
        threads: launch.shape.threads(),
    });
    let kernel = site.cubin.kernel(site.kernel);
    let bytes = setting.promised_dynamic();
    let dynamic = kernel
        .is_none_or(|kernel| kernel.touches_shared())
        .then_some(Caution::DynamicSharedBound { bytes });
    untried.into_iter().chain(bound).chain(dynamic).collect()
}

/// The registers that a kernel must state whose last one is `index`.
pub(crate) fn stated(index: u8) -> u32 {
    u32::from(index) + 1 + RESERVED_REGISTERS
}

/// What launches can look like.
pub(crate) struct Launch {
    pub(crate) shape: Shape,
    /// Does it hold only because the caller said so? Then it becomes a bound that the driver
    /// enforces.
    pub(crate) is_promise: bool,
}

impl Launch {
    /// What the kernel requires, else as many threads as it allows or as were named.
    pub(crate) fn new(
        elf: &Elf,
        sections: &KernelSections,
        setting: &Setting,
    ) -> Result<Launch, Refusal> {
        if elf.is_clustered(sections)? {
            // ptxas puts the rank into every shared address; ours go without, which is not tried.
            return Err(Refusal::InTheWay("it runs in clusters"));
        }
        if let Some(exact) = elf.required_block(sections)? {
            let (shape, is_promise) = (Shape::Exact(exact), false);
            return Ok(Launch { shape, is_promise });
        }
        let bound = elf.block_bound(sections)?.map(|[x, y, z]| x * y * z);
        let named = setting.block.is_given().then(|| setting.block.threads());
        let threads = named.or(bound);
        let threads = threads.ok_or(Refusal::NotStated(Need::BlockSize))?;
        Ok(Launch {
            shape: Shape::AtMost(threads),
            is_promise: bound.is_none_or(|bound| threads < bound),
        })
    }
}

/// End of the block's shared memory as it is, dynamic included: an address.
pub(crate) fn used_bytes(
    elf: &Elf,
    sections: &KernelSections,
    setting: &Setting,
) -> Result<u32, Refusal> {
    let first = setting.gpu.arch.first_shared_address();
    let own = u32::try_from(elf.shared_bytes(sections)).ok();
    let end = own.and_then(|own| own.max(first).checked_add(setting.promised_dynamic()));
    end.ok_or(Refusal::InTheWay(
        "it takes more shared memory than there is",
    ))
}

/// Must a kernel with so many bytes of static shared memory stay launchable without opting in to more (`cuFuncSetAttribute`,
/// CUDA Driver API)? A program whose dynamic shared memory fits beside them does not ask for more.
pub(crate) fn is_without_opt_in(gpu: &Gpu, own: u32, dynamic: u32) -> bool {
    dynamic > 0 && own.saturating_add(dynamic) <= gpu.arch.shared.per_block
}

/// The same of a kernel whose shared-memory section ends at `used`.
pub(crate) fn stays_without_opt_in(setting: &Setting, used: u32) -> bool {
    let first = setting.gpu.arch.first_shared_address();
    let own = used.saturating_sub(first + setting.promised_dynamic());
    is_without_opt_in(setting.gpu, own, setting.dynamic())
}

/// Up to which address the shared-memory section of a kernel, which ends at `used` ([`used_bytes`]), may grow while so many
/// blocks reside. Every launch adds its dynamic shared memory to that.
pub(crate) fn limit(setting: &Setting, blocks: u32, used: u32) -> u32 {
    let arch = setting.gpu.arch;
    let is_small =
        !ran_right(EditedCode::LargeSharedSection, arch.sm) || stays_without_opt_in(setting, used);
    let most = most_shared_memory(setting.gpu, blocks).unwrap_or(0);
    let most = match is_small {
        true => most.min(arch.shared.per_block),
        false => most,
    };
    (arch.first_shared_address() + most).saturating_sub(setting.dynamic())
}
