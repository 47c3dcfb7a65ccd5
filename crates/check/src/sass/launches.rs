//! Which launches the rewritten version takes, and what must be promised of them.

use std::fmt;
use std::ops::Range;

use warpwright_sass::elf::info::Attribute;
use warpwright_target::{Resources, lookup, machine_code, occupancy};

use super::{CubinOptions, Side};
use crate::slots::Threads;

/// Registers at the end of those that a cubin states which code must not name (docs/checker.md).
pub(super) const RESERVED: u32 = 2;

/// Why the rewritten version takes fewer launches than the original.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Narrower {
    #[error("its .reqntid refuses launches that the original takes{}", with_block(*.0))]
    Required(bool),
    #[error("its .maxntid refuses launches that the original takes{}", with_block(*.0))]
    Bound(bool),
    #[error("its .nv.info bounds the block in a way that is not understood")]
    Unclear,
    #[error("it uses {need} registers and states {stated}, of which {RESERVED} are not its own")]
    TooFewRegisters { need: u32, stated: u32 },
    #[error(
        "with {stated} registers and {bytes} bytes of shared memory, blocks of {threads} threads do not start"
    )]
    DoesNotStart {
        stated: u32,
        bytes: u32,
        threads: u32,
    },
    #[error(
        "{bytes} bytes of shared memory with {dynamic} of dynamic beside them are more than the {most} that a launch has which \
         asks for no more, as the original's need not"
    )]
    NeedsOptIn { bytes: u32, dynamic: u32, most: u32 },
    #[error("nothing is known of the GPUs that it is for")]
    UnknownGpu,
    #[error("it states less shared memory than the original")]
    LessShared,
    #[error("its shared memory is too large")]
    TooMuchShared,
    #[error(
        "launches of the original may have dynamic shared memory where the rewritten version has memory of \
         its own: state the most with --dynamic-smem BYTES, or 0 if there is none"
    )]
    DynamicNotStated,
}

fn with_block(is_stated: bool) -> &'static str {
    match is_stated {
        true => "",
        false => "; state the block with --block X,Y,Z",
    }
}

/// What a proof takes for granted about launches, as nothing refuses others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// All blocks have these dimensions.
    pub block: Option<[u32; 3]>,
    /// A launch has at most so many bytes of dynamic shared memory.
    pub dynamic_smem: Option<u32>,
}

impl Promises {
    /// Is nothing taken for granted?
    pub fn is_empty(&self) -> bool {
        *self == Promises::default()
    }
}

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some([x, y, z]) = self.block {
            write!(f, "blocks of {x}x{y}x{z} threads")?;
        }
        if let Some(bytes) = self.dynamic_smem {
            let and = if self.block.is_some() { ", " } else { "" };
            write!(f, "{and}at most {bytes} bytes of dynamic shared memory")?;
        }
        Ok(())
    }
}

/// The blocks that may run the kernel.
pub(super) struct Launches {
    pub(super) threads: Threads,
    /// Does the proof need the block, beyond what both cubins demand?
    needs_block: bool,
    /// Does it need the block as soon as memory is laid out by threads?
    is_shape_promised: bool,
}

impl Launches {
    pub(super) fn promises(
        &self,
        options: &CubinOptions,
        area: &Range<u32>,
        has_dynamic: bool,
    ) -> Promises {
        let has_area = !area.is_empty();
        let needs_block = self.needs_block || has_area && self.is_shape_promised;
        Promises {
            block: options.block.filter(|_| needs_block),
            dynamic_smem: options.dynamic_smem.filter(|_| has_area && has_dynamic),
        }
    }
}

/// The rewritten version must take all blocks that the original takes.
pub(super) fn compare(
    original: &Side,
    new: &Side,
    options: &CubinOptions,
) -> Result<Launches, Narrower> {
    let required = [
        original.block(Attribute::REQNTID)?,
        new.block(Attribute::REQNTID)?,
    ];
    let bound = [
        original.block(Attribute::MAX_THREADS)?.map(count),
        new.block(Attribute::MAX_THREADS)?.map(count),
    ];
    // Of several kernels the block that is stated need not be everyone's.
    let stated = options.block.filter(|&block| {
        required[0].is_none_or(|required| required == block)
            && bound[0].is_none_or(|most| count(block) <= most)
    });
    let is_stated = stated.is_some();
    let is_new_demand = required[0] != required[1];
    if is_new_demand && stated.is_none_or(|block| required[1] != Some(block)) {
        return Err(Narrower::Required(is_stated));
    }
    let block = stated.or(required[0]);
    let largest = Threads::default().most;
    let taken = required[0].map(count).or(bound[0]).unwrap_or(largest);
    let taken = taken.min(largest);
    let most = block.map_or(taken, count).min(largest);
    if bound[1].is_some_and(|bound| bound < most) {
        return Err(Narrower::Bound(is_stated));
    }
    // Where a block is only bounded now, larger launches fail: that is for the caller to say.
    let needs_block = is_new_demand || bound[1].is_some_and(|bound| bound < taken);
    let most = bound[1].unwrap_or(most).min(largest);
    fits(original, new, most.min(taken), options)?;
    Ok(Launches {
        threads: Threads { block, most },
        needs_block,
        is_shape_promised: is_stated && required[0] != stated,
    })
}

/// More registers or shared memory must not keep a block from starting.
fn fits(original: &Side, new: &Side, threads: u32, options: &CubinOptions) -> Result<(), Narrower> {
    let shared = |side: &Side| side.module.elf.shared_bytes(side.sections);
    let (before, stated) = (original.registers(), new.registers());
    if stated <= before && shared(new) <= shared(original) {
        return Ok(());
    }
    let sm = new.module.elf.target().sm;
    let reserved = machine_code(sm).reserved_in_section;
    let bytes = u32::try_from(shared(new)).map_err(|_| Narrower::TooMuchShared)?;
    let resources = Resources {
        static_smem: bytes.saturating_sub(reserved),
        dynamic_smem: options.dynamic_smem.unwrap_or(0),
        ..Resources::new(stated, threads)
    };
    let gpu = lookup(&format!("sm_{sm}")).map_err(|_| Narrower::UnknownGpu)?;
    let (most, dynamic) = (gpu.arch.shared.per_block, resources.dynamic_smem);
    let own = |bytes: u32| bytes.saturating_sub(reserved).saturating_add(dynamic) <= most;
    let was = u32::try_from(shared(original)).unwrap_or(u32::MAX);
    if dynamic > 0 && own(was) && !own(bytes) {
        return Err(Narrower::NeedsOptIn {
            bytes: bytes.saturating_sub(reserved),
            dynamic,
            most,
        });
    }
    match occupancy(&gpu, &resources) {
        Ok(found) if found.blocks > 0 => Ok(()),
        _ => Err(Narrower::DoesNotStart {
            stated,
            bytes,
            threads,
        }),
    }
}

/// The shared memory that the rewritten version alone has: addresses.
pub(super) fn own_shared(
    original: &Side,
    new: &Side,
    options: &CubinOptions,
    has_dynamic: bool,
) -> Result<Range<u32>, Narrower> {
    let bytes = |side: &Side| side.module.elf.shared_bytes(side.sections);
    if bytes(new) < bytes(original) {
        return Err(Narrower::LessShared);
    }
    // Launches may have less dynamic shared memory, or none: then only the section is there.
    let end = original.shared_end(options.dynamic_smem.unwrap_or(0))?;
    let area = end..new.shared_end(0)?.max(end);
    if !area.is_empty() && options.dynamic_smem.is_none() && has_dynamic {
        return Err(Narrower::DynamicNotStated);
    }
    Ok(area)
}

impl Side<'_> {
    /// Where the block's shared memory ends with so much that is dynamic: an address, rounded up so that
    /// wide accesses behind it are aligned. Where the section counts them in, the first bytes are the system's even if
    /// the kernel has no section.
    fn shared_end(&self, dynamic: u32) -> Result<u32, Narrower> {
        let reserved = machine_code(self.module.elf.target().sm).reserved_in_section;
        let bytes = u32::try_from(self.module.elf.shared_bytes(self.sections)).ok();
        bytes
            .and_then(|bytes| bytes.max(reserved).checked_add(dynamic))
            .and_then(|end| end.checked_next_multiple_of(16))
            .filter(|&end| end < 1 << 23)
            .ok_or(Narrower::TooMuchShared)
    }

    /// What an attribute says of the block, if it says it once.
    fn block(&self, attribute: Attribute) -> Result<Option<[u32; 3]>, Narrower> {
        let records = self.info.records.iter();
        let mut records = records.filter(|record| record.attribute == attribute);
        let Some(record) = records.next() else {
            return Ok(None);
        };
        let block = <[u32; 3]>::try_from(record.words()).ok();
        let block = block.filter(|block| records.next().is_none() && count(*block) > 0);
        block.map(Some).ok_or(Narrower::Unclear)
    }
}

fn count(block: [u32; 3]) -> u32 {
    block.iter().fold(1, |all, &n| all.saturating_mul(n))
}
