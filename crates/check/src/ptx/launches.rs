//! Launches that the original takes: the rewritten kernel must take them, too.

use warpwright_ptx::{FuncId, Function};
use warpwright_target::{
    Gpu, LOCAL_MEMORY_PER_THREAD, REGISTERS_PER_THREAD, Resources, STACK_PER_THREAD, WARP_SIZE,
    lookup, occupancy,
};

use super::surroundings::{SPACES, Surroundings};
use super::{Options, Why};
use crate::slots::Threads;
use crate::verdict::Cause;

/// Memory that is declared, against what ptxas and a launch accept.
pub(super) fn too_large(
    (around, id): (&Surroundings<'_>, FuncId),
    (other, new_id): (&Surroundings<'_>, FuncId),
    options: &Options,
) -> Option<Why> {
    let (before, now) = (around.bytes(id), other.bytes(new_id));
    let gpu = gpu(other);
    let shared = gpu.map_or(0, |gpu| gpu.arch.shared.per_block);
    // All threads that reside have local memory at once; so much is set aside for each before any launch. Constant
    // and global memory are the whole module's.
    let local = before[1].saturating_add(STACK_PER_THREAD.into());
    let local = local.min(LOCAL_MEMORY_PER_THREAD.into());
    let most = [shared.into(), local, 0, 0];
    let too_much = (0..SPACES.len()).find_map(|index| {
        let (space, most, now) = (SPACES[index], most[index], now[index]);
        (now > before[index] && now > most).then(|| match most {
            0 => format!("it declares more {space} memory"),
            _ => format!("it declares {now} bytes of {space} memory; {most} are certain"),
        })
    });
    if let Some(text) = too_much {
        return Some((Cause::Around, text));
    }
    let is_more = now[0] > before[0] && (around.has_dynamic || other.has_dynamic);
    is_more
        .then(|| no_room(gpu, before[0], now[0], options))
        .flatten()
}

/// Why more static shared memory may leave too little for the dynamic one.
fn no_room(gpu: Option<Gpu>, before: u64, now: u64, options: &Options) -> Option<Why> {
    let Some(dynamic) = options.dynamic_smem else {
        let text = "it declares more shared memory, and how much dynamic memory a launch has is not stated";
        return Some((Cause::DynamicSharedMemory, text.to_owned()));
    };
    let shared = gpu?.arch.shared;
    let dynamic = u64::from(dynamic);
    // More than the default limit only where the launch asks for it already.
    let most = match before.saturating_add(dynamic) > shared.per_block.into() {
        true => shared.per_block_opt_in,
        false => shared.per_block,
    };
    (now.saturating_add(dynamic) > most.into()).then(|| {
        let text = format!(
            "it declares {now} bytes of shared memory, which with {dynamic} dynamic ones are more than {most}"
        );
        (Cause::Launches, text)
    })
}

pub(super) fn gpu(around: &Surroundings<'_>) -> Option<Gpu> {
    let target = around.module.header.targets.first()?;
    lookup(target).ok()
}

/// Threads of a block, as many as a number holds.
pub(super) fn count(block: [u32; 3]) -> u32 {
    block.iter().fold(1, |all, &n| all.saturating_mul(n))
}

/// The blocks that may run a kernel. What `.reqntid` and `.maxntid` of either version say holds for
/// every launch, because others fail.
pub(super) fn threads(original: &Function, new: &Function, options: &Options) -> Threads {
    let block = launched(original, options);
    let block = block.or(new.req_ntid()).or(original.req_ntid());
    let most = [new, original].map(|function| function.max_ntid().map(count));
    let largest = Threads::default().most;
    let most = most.into_iter().flatten().fold(largest, u32::min);
    // A block beyond what any device takes is never launched.
    Threads {
        block: block.filter(|&block| count(block) <= largest),
        most,
    }
}

/// The block that was named, if the original takes it: of several kernels it need not be everyone's.
fn launched(original: &Function, options: &Options) -> Option<[u32; 3]> {
    let required = original.req_ntid();
    let most = original.max_ntid().map(count);
    options.block.filter(|&block| {
        required.is_none_or(|required| required == block)
            && most.is_none_or(|most| count(block) <= most)
    })
}

/// A launch that the original takes and the rewritten kernel does not.
pub(super) fn refused_launch(
    around: &Surroundings<'_>,
    original: &Function,
    new: &Function,
    options: &Options,
) -> Option<String> {
    let named = launched(original, options);
    let block = named.or(original.req_ntid());
    let hint = match named {
        None => "; --block names the one that is launched",
        Some(_) => "",
    };
    let refuses =
        |directive: &str| format!("its {directive} refuses launches that the original takes{hint}");
    if let Some(required) = new.req_ntid()
        && block != Some(required)
    {
        return Some(refuses(".reqntid"));
    }
    let most = block.or(original.max_ntid()).map(count);
    let most = most.unwrap_or(u32::MAX).min(Threads::default().most);
    if new.max_ntid().is_some_and(|bound| count(bound) < most) {
        return Some(refuses(".maxntid"));
    }
    let smallest = block.map_or(1, |_| most);
    let registers = || match new.max_nreg() {
        None => {
            let what = "its registers are not limited as the original's: it may refuse launches that the original takes";
            format!("{what}{hint}")
        }
        Some(_) => refuses("limit of registers"),
    };
    let Some(gpu) = gpu(around) else {
        let limits = [original, new].map(Function::max_nreg);
        return (limits[0] != limits[1]).then(registers);
    };
    let mut blocks = (smallest..=most).step_by(WARP_SIZE as usize).chain([most]);
    blocks
        .any(|threads| starts(&gpu, original, threads) && !starts(&gpu, new, threads))
        .then(registers)
}

/// Does a block of so many threads find enough registers, whatever ptxas makes of the kernel? Without `.maxnreg` it
/// keeps to what the largest block allows.
pub(super) fn starts(gpu: &Gpu, function: &Function, threads: u32) -> bool {
    let bound = function.req_ntid().or(function.max_ntid()).map(count);
    let registers = match (function.max_nreg(), bound) {
        (Some(limit), _) => limit,
        (None, Some(bound)) if threads <= bound => return true,
        (None, _) => *REGISTERS_PER_THREAD.end(),
    };
    let registers = registers.clamp(*REGISTERS_PER_THREAD.start(), *REGISTERS_PER_THREAD.end());
    occupancy(gpu, &Resources::new(registers, threads)).is_ok_and(|found| found.blocks > 0)
}
