//! `spill-to-shared` on a finished cubin: how much fits, what goes, and the cubin with it done.
//!
//! Goal and paper: see [`warpwright_sass::spill`], which finds the slots and rewrites the code. Here
//! is what depends on the GPU and the launch. All slots move, even where that costs resident blocks:
//! the model weighs it (a kernel with one block of eight warps and its slots in shared memory took
//! 0.35 times the time of four blocks with slots in local memory). Departure from RegDem (section
//! 3.1), which spills no more than fits at the occupancy that it aims at.
//!
//! Requires: the block size; the dynamic shared memory of the launch. A block size that only the
//! caller knows becomes a bound in the cubin, so that larger launches fail.

use warpwright_check::{CubinOptions, check_kernels};
use warpwright_sass::elf::info::{Attribute, Record, Value};
use warpwright_sass::elf::{Elf, ElfError, KernelSections};
use warpwright_sass::spill::{self, Frame, Layout, Refusal, Shape, Slot};
use warpwright_target::most_shared_memory;

use crate::rewrite::Setting;

/// Why a kernel's spills stay in local memory.
#[derive(Debug, thiserror::Error)]
pub enum DemoteError {
    /// The cubin cannot be read or written.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// Its spill code is not of the kind that can move.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Something is not known, does not fit, or is in the way.
    #[error("{0}")]
    Other(String),
}

fn other(why: impl Into<String>) -> DemoteError {
    DemoteError::Other(why.into())
}

/// The cubin with the spill slots of `kernel` in shared memory, proved.
///
/// # Errors
/// Why they stay, for the report.
pub fn spill_to_shared(
    cubin: &[u8],
    kernel: &str,
    setting: &Setting,
) -> Result<Vec<u8>, DemoteError> {
    let original = Elf::parse(cubin)?;
    let mut elf = original.clone();
    let sections = elf.kernel(kernel)?;
    let code = elf.instructions(&sections)?;
    let frame = Frame::find(&code)?;
    let launch = Launch::new(&elf, &sections, setting)?;
    if elf.registers(&sections)?.unwrap_or(0) < spill::entry::REGISTERS {
        return Err(other("it has too few registers for the code at its entry"));
    }
    let used = used_bytes(&elf, &sections, setting)?;
    let limit = limit(setting);
    let slots: Vec<&Slot> = frame.slots.iter().collect();
    let layout = Layout::new(&slots, launch.shape.threads(), used)
        .filter(|layout| layout.end <= limit)
        .ok_or_else(|| other("its spill slots do not all fit into shared memory"))?;
    spill::move_all(&code, &frame, &layout, launch.shape).apply(&mut elf, kernel)?;
    elf.set_shared_bytes(kernel, u64::from(layout.end - setting.dynamic_smem))?;
    without_frame(&mut elf, &sections)?;
    launch.enforce(&mut elf, kernel)?;
    let bytes = elf.write()?;
    prove(&original, &Elf::parse(&bytes)?, kernel, &launch, setting)?;
    Ok(bytes)
}

fn prove(
    original: &Elf,
    new: &Elf,
    kernel: &str,
    launch: &Launch,
    setting: &Setting,
) -> Result<(), DemoteError> {
    let options = CubinOptions {
        block: launch.is_promise.then_some(setting.block.dims),
        dynamic_smem: setting.dynamic_smem,
    };
    match check_kernels(original, new, kernel, &options) {
        verdict if verdict.is_proved() => Ok(()),
        verdict => Err(other(format!("spill-to-shared is not proved: {verdict}"))),
    }
}

/// What launches can look like.
struct Launch {
    shape: Shape,
    /// Does it hold only because the caller said so? Then it becomes a bound that the driver
    /// enforces.
    is_promise: bool,
}

impl Launch {
    /// What the kernel requires, else as many threads as it allows or as were named.
    fn new(elf: &Elf, sections: &KernelSections, setting: &Setting) -> Result<Launch, DemoteError> {
        let info = elf.info(&info_name(&sections.name))?.unwrap_or_default();
        let block = |attribute| {
            let record = info.get(attribute)?;
            <[u32; 3]>::try_from(record.words()).ok()
        };
        let in_cluster = [
            Attribute::EXPLICIT_CLUSTER,
            Attribute::CTA_PER_CLUSTER,
            Attribute::MAX_CLUSTER_RANK,
        ];
        if in_cluster.iter().any(|&fact| info.get(fact).is_some()) {
            // ptxas puts the rank into every shared address; ours go without, which is not tried.
            return Err(other("it runs in clusters"));
        }
        if let Some(exact) = block(Attribute::REQNTID) {
            let (shape, is_promise) = (Shape::Exact(exact), false);
            return Ok(Launch { shape, is_promise });
        }
        let bound = block(Attribute::MAX_THREADS).map(|[x, y, z]| x * y * z);
        let named = setting.block.is_given().then(|| setting.block.threads());
        let threads = named.or(bound);
        let threads =
            threads.ok_or_else(|| other("its block size is not known; name it with --block"))?;
        Ok(Launch {
            shape: Shape::AtMost(threads),
            is_promise: bound.is_none_or(|bound| threads < bound),
        })
    }

    /// Makes launches with more threads fail.
    fn enforce(&self, elf: &mut Elf, kernel: &str) -> Result<(), ElfError> {
        if !self.is_promise {
            return Ok(());
        }
        let name = info_name(kernel);
        let mut info = elf.info(&name)?.unwrap_or_default();
        let words = [self.shape.threads(), 1, 1];
        let value = Value::Sized(words.iter().flat_map(|word| word.to_le_bytes()).collect());
        let attribute = Attribute::MAX_THREADS;
        info.records.retain(|record| record.attribute != attribute);
        info.records.push(Record { attribute, value });
        elf.set_info(&name, &info)
    }
}

fn info_name(kernel: &str) -> String {
    format!(".nv.info.{kernel}")
}

/// End of the block's shared memory as it is, dynamic included: an address.
fn used_bytes(elf: &Elf, sections: &KernelSections, setting: &Setting) -> Result<u32, DemoteError> {
    let first = setting.gpu.arch.first_shared_address();
    let own = u32::try_from(elf.shared_bytes(sections)).ok();
    let end = own.and_then(|own| own.max(first).checked_add(setting.dynamic_smem));
    end.ok_or_else(|| other("it takes more shared memory than there is"))
}

/// Up to which address the shared memory of a block may grow.
fn limit(setting: &Setting) -> u32 {
    let first = setting.gpu.arch.first_shared_address();
    first + most_shared_memory(setting.gpu, 1).unwrap_or(0)
}

/// States that the kernel has no stack frame any more.
fn without_frame(elf: &mut Elf, sections: &KernelSections) -> Result<(), ElfError> {
    let text = sections.text;
    let symbols = elf.symbols()?;
    let here = |index: u32| {
        let symbol = symbols.get(index as usize);
        symbol.is_some_and(|symbol| usize::from(symbol.section) == text)
    };
    let Some(mut info) = elf.info(".nv.info")? else {
        return Ok(());
    };
    for record in &mut info.records {
        let is_size = matches!(
            record.attribute,
            Attribute::FRAME_SIZE | Attribute::MIN_STACK_SIZE | Attribute::MAX_STACK_SIZE
        );
        if is_size && record.words().first().is_some_and(|&symbol| here(symbol)) {
            record.set_word(1, 0);
        }
    }
    elf.set_info(".nv.info", &info)
}
