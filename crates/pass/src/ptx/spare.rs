//! Shared memory that spill slots may take, and how large a block they must serve.
//!
//! ptxas takes up to `per_block` bytes (48 KB) of static shared memory. Dynamic shared memory begins
//! behind the static one, at its own alignment: a launch asks for the same number of dynamic bytes
//! as before, but the sum must stay within what that launch may have.

use warpwright_ptx::ir::{Address, Base, Operand};
use warpwright_ptx::opcode::Op;
use warpwright_ptx::types::Space;
use warpwright_ptx::{Function, Module, SpecialReg};
use warpwright_target::most_shared_memory;

use crate::launch::Block;
use crate::pass::Need;
use crate::ptx::facts::{static_shared_bytes, uses_dynamic_shared};
use crate::refusal::Refusal;
use crate::site::Site;

/// What code may rely on without saying so: kernels align dynamic shared memory by hand, and the
/// largest alignment that an instruction wants is 1,024 bytes (swizzled tiles of `wgmma` and TMA).
/// In front of dynamic memory, the area's size is a multiple of it.
pub const DYNAMIC_ALIGNMENT: u64 = 1024;

/// The largest block that a kernel is launched with, as far as the kernel says it or will say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Threads of the largest block.
    pub threads: u32,
    /// The exact block, if the kernel requires one.
    pub exact: Option<[u32; 3]>,
    /// The kernel does not bound its blocks itself: `.maxntid` has to be written.
    pub is_new: bool,
}

/// The bound that slots are laid out for. A bound of the kernel's own stays as it is, even if the
/// launch at hand is smaller: others may rely on it.
///
/// # Errors
/// [`Need::BlockSize`].
pub fn bound(function: &Function, block: &Block) -> Result<Bound, Refusal> {
    let own = function.req_ntid().or(function.max_ntid());
    let count = |dims: [u32; 3]| dims.iter().fold(1u32, |all, &n| all.saturating_mul(n));
    match own {
        Some(dims) => Ok(Bound {
            threads: count(dims),
            exact: function.req_ntid(),
            is_new: false,
        }),
        None if block.is_given() => Ok(Bound {
            threads: block.threads(),
            exact: None,
            is_new: true,
        }),
        None => Err(Refusal::NotStated(Need::BlockSize)),
    }
}

/// Bytes of shared memory per block that spill slots may take while `blocks` blocks stay resident.
///
/// # Errors
/// Names what makes more shared memory visible to the kernel, or its dynamic part unknown.
pub fn spare_shared(site: &Site, blocks: u32) -> Result<u64, Refusal> {
    let Site {
        module, setting, ..
    } = *site;
    let function = &module.functions[site.kernel];
    let dynamic = setting.promised_dynamic();
    obstacle(module, function)?;
    let has_dynamic = uses_dynamic_shared(module, function);
    if has_dynamic && dynamic == 0 {
        return Err(Refusal::NotStated(Need::DynamicShared));
    }
    let shared = &setting.gpu.arch.shared;
    // Variables are aligned to 16 bytes at most, but for those that say more.
    let used = u64::from(used_shared(module, function)).next_multiple_of(16);
    let dynamic = u64::from(dynamic);
    // A launch that works today within the limit that needs no opt-in must do so afterwards.
    let launch = match used + dynamic <= u64::from(shared.per_block) {
        true => shared.per_block,
        false => shared.per_block_opt_in,
    };
    let resident = most_shared_memory(setting.gpu, blocks).unwrap_or(0);
    let total = u64::from(launch.min(resident)).saturating_sub(dynamic);
    let spare = total.min(u64::from(shared.per_block)).saturating_sub(used);
    Ok(match has_dynamic {
        true => spare / DYNAMIC_ALIGNMENT * DYNAMIC_ALIGNMENT,
        false => spare,
    })
}

/// The size that an area of `bytes` bytes is declared with.
pub fn declared_bytes(module: &Module, function: &Function, bytes: u64) -> u64 {
    match uses_dynamic_shared(module, function) {
        true => bytes.next_multiple_of(DYNAMIC_ALIGNMENT),
        false => bytes,
    }
}

/// Static shared memory; with calls, that of the whole module, which the callees may use.
fn used_shared(module: &Module, function: &Function) -> u32 {
    let mut insts = function.body.iter().flat_map(|body| body.insts.values());
    if !insts.any(|inst| module.opcode(inst).op == Some(Op::Call)) {
        return static_shared_bytes(module, function);
    }
    let shared = module
        .variables
        .values()
        .filter(|v| v.space == Space::Shared);
    u32::try_from(shared.map(|v| v.bytes()).sum::<u64>()).unwrap_or(u32::MAX)
}

/// Why a kernel may notice that it has more shared memory than before.
fn obstacle(module: &Module, function: &Function) -> Result<(), Refusal> {
    let Some(body) = &function.body else {
        return Err(Refusal::NoBody);
    };
    for inst in body.insts.keys() {
        let is_shared = module
            .opcode(&body.insts[inst])
            .spaces()
            .any(|s| s == Space::Shared);
        for operand in body.operands(inst) {
            let reason = match operand {
                Operand::Special {
                    reg: SpecialReg::TotalSmemSize | SpecialReg::AggrSmemSize,
                    ..
                } => "reads the size of its shared memory",
                Operand::Mem(Address {
                    base: Base::Absolute,
                    ..
                }) if is_shared => "accesses shared memory at an absolute address",
                _ => continue,
            };
            return Err(Refusal::SeesSharedMemory(reason));
        }
    }
    Ok(())
}
