//! `spill-to-shared` on a finished cubin: how much fits, what goes, and the cubin with it done.
//!
//! Goal and paper: see [`warpwright_sass::spill`], which finds the slots and rewrites the code. Here
//! is what depends on the GPU and the launch. Two extents are candidates, and the model weighs them: all
//! slots, even where that costs resident blocks (a kernel with one block of eight warps and its slots
//! in shared memory took 0.35 times the time of four blocks with slots in local memory), and the
//! hottest ones that fit beside the blocks that reside. RegDem (section 3.1) has the second only.
//!
//! Requires: the block size; the dynamic shared memory of the launch. A block size that only the
//! caller knows becomes a bound in the cubin, so that larger launches fail.

use warpwright_check::{CubinOptions, check_kernels};
use warpwright_flow::{Cfg, Inst, Loops};
use warpwright_regs::knapsack::{Item, choose};
use warpwright_sass::Instruction;
use warpwright_sass::elf::info::{Attribute, Record, Value};
use warpwright_sass::elf::{Elf, ElfError, KernelSections, RESERVED_REGISTERS};
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::hazards;
use warpwright_sass::spill::{self, Frame, Index, Layout, Move, Refusal, Scratch, Shape, Slot};
use warpwright_target::{Resources, most_shared_memory, occupancy};

use crate::rewrite::Setting;

/// Why a build is chosen only once measured, on an architecture where none has run.
pub const CAUTION: &str =
    "spill-to-shared is proved here, but has run on sm_90 only; chosen only once measured";

/// The architectures where it has run.
pub const TRIED: [u32; 1] = [90];

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

/// How many slots move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All; refused where they do not fit into the shared memory that a block can have.
    All,
    /// The hottest, as far as this many blocks per SM stay resident. Refused where all fit.
    Beside(u32),
}

/// The cubin with spill slots of `kernel` in shared memory, proved.
///
/// # Errors
/// Why they stay, for the report.
pub fn spill_to_shared(
    cubin: &[u8],
    kernel: &str,
    setting: &Setting,
    extent: Extent,
) -> Result<Vec<u8>, DemoteError> {
    let original = Elf::parse(cubin)?;
    let mut elf = original.clone();
    let sections = elf.kernel(kernel)?;
    let code = elf.instructions(&sections)?;
    let frame = Frame::find(&code)?;
    let launch = Launch::new(&elf, &sections, setting)?;
    let registers = elf.registers(&sections)?.unwrap_or(0);
    let flow = Code::new(&elf, &sections, Calls::Followed).map_err(|e| other(e.to_string()))?;
    let scratch = spill::scratch(&flow, registers.saturating_sub(RESERVED_REGISTERS));
    let scratch =
        scratch.ok_or_else(|| other("it has too few registers for the code at its entry"))?;
    let used = used_bytes(&elf, &sections, setting)?;
    let limit = limit(setting, extent);
    let all: Vec<&Slot> = frame.slots.iter().collect();
    let threads = launch.shape.threads();
    let fits = |layout: &Layout| layout.end <= limit;
    let (slots, layout, index) = match Layout::new(&all, threads, used).filter(fits) {
        Some(_) if extent != Extent::All => {
            return Err(other("all slots fit beside that many blocks"));
        }
        Some(layout) => (all, layout, Index::StackPointer(None)),
        None if extent == Extent::All => {
            return Err(other("its spill slots do not all fit into shared memory"));
        }
        None => {
            let slots = hottest(&flow, &frame, threads, limit.saturating_sub(used))?;
            let layout = Layout::new(&slots, threads, used).filter(fits);
            let index = base(
                &code,
                scratch,
                (&frame, &slots),
                (registers, setting, extent),
            )?;
            (slots, layout.ok_or_else(|| other("no slot fits"))?, index)
        }
    };
    let moves: Vec<Move> = slots
        .into_iter()
        .zip(layout.offsets.iter().copied())
        .collect();
    let at_entry = (launch.shape, scratch);
    spill::move_slots(&code, &frame, &moves, index, at_entry).apply(&mut elf, kernel)?;
    // A launch may have less dynamic shared memory than it may have at most, or none: the section alone
    // must hold all slots.
    elf.set_shared_bytes(kernel, u64::from(layout.end))?;
    match index {
        Index::StackPointer(None) => without_frame(&mut elf, &sections)?,
        Index::StackPointer(Some(_)) => {}
        Index::Register(index) => {
            let stated = u8::try_from(stated(index).max(registers));
            let stated = stated.map_err(|_| other("no register is left for the addresses"))?;
            elf.set_registers(kernel, stated)?;
        }
    }
    launch.enforce(&mut elf, kernel)?;
    let bytes = elf.write()?;
    let new = Elf::parse(&bytes)?;
    prove(&original, &new, kernel, &launch, setting)?;
    without_hazards(&new, kernel)?;
    without_second_copy(&new)?;
    Ok(bytes)
}

/// From sm_100 on a cubin holds its program twice. The intermediate copy, from which a driver can make code for
/// another GPU of the family, would still use the stack that is gone.
fn without_second_copy(elf: &Elf) -> Result<(), DemoteError> {
    let is_copy = |name: &str| name.starts_with(".nv.capmerc") || name.starts_with(".nv.merc");
    match elf.sections.iter().find(|section| is_copy(&section.name)) {
        None => Ok(()),
        Some(copy) => Err(other(format!(
            "the cubin holds an intermediate copy of the program ({}), which would stay the old one",
            copy.name
        ))),
    }
}

/// The moved accesses keep their control fields, but a load from shared memory is no load from local
/// memory, and there is new code at the entry: nothing may come too soon.
fn without_hazards(elf: &Elf, kernel: &str) -> Result<(), DemoteError> {
    let code = Code::new(elf, &elf.kernel(kernel)?, Calls::Followed);
    let code = code.map_err(|error| other(error.to_string()))?;
    let violations = hazards::check(&code)
        .map_err(|error| other(format!("its control fields cannot be checked: {error}")))?;
    match violations.first() {
        None => Ok(()),
        Some(first) => Err(other(format!(
            "a hazard in the rewritten code: {}",
            first.describe(&code)
        ))),
    }
}

/// The slots that save the most traffic in `room` bytes of shared memory per block: a 0-1 knapsack of
/// loop-weighted bytes (RegDem, section 3.1, takes the registers with the fewest accesses instead).
fn hottest<'a>(
    code: &Code,
    frame: &'a Frame,
    threads: u32,
    room: u32,
) -> Result<Vec<&'a Slot>, DemoteError> {
    let cfg = Cfg::new(code);
    let loops = Loops::new(&cfg);
    let weight = |at: usize| loops.weight(cfg.block_of(Inst(at as u32)));
    let item = |slot: &Slot| Item {
        size: u64::from(slot.bytes) * u64::from(threads),
        gain: slot
            .accesses
            .iter()
            .map(|access| (weight(access.at) * f64::from(access.bytes)) as u64)
            .sum(),
    };
    let items: Vec<Item> = frame.slots.iter().map(item).collect();
    // The layout begins at a multiple of 16.
    let chosen = choose(&items, u64::from(room.saturating_sub(16)));
    match chosen.is_empty() {
        true => Err(other(
            "no spill slot fits into the shared memory that is free",
        )),
        false => Ok(chosen.into_iter().map(|at| &frame.slots[at]).collect()),
    }
}

/// The registers that a kernel must state whose last one is `index`.
fn stated(index: u8) -> u32 {
    u32::from(index) + 1 + RESERVED_REGISTERS
}

/// What the addresses are made of where only `moved` slots go: a register that nobody uses for the
/// thread's index, if it costs none of the blocks that are to stay, else the stack pointer's.
fn base(
    code: &[Instruction],
    scratch: Scratch,
    (frame, moved): (&Frame, &[&Slot]),
    (registers, setting, extent): (u32, &Setting, Extent),
) -> Result<Index, DemoteError> {
    let is_free = |index: &Index| match (extent, index) {
        (Extent::Beside(blocks), &Index::Register(register)) => {
            let need = Resources {
                regs: stated(register).max(registers),
                block_threads: setting.block.threads(),
                static_smem: 0,
                dynamic_smem: 0,
                barriers: 0,
            };
            occupancy(setting.gpu, &need).is_ok_and(|found| found.blocks >= blocks)
        }
        _ => true,
    };
    let stay = frame.slots.iter().filter(|slot| !moved.contains(slot));
    let index = Index::free(code, scratch).filter(is_free);
    let index = index.or_else(|| Index::freed(code, &stay.collect::<Vec<_>>()));
    index.ok_or_else(|| other("no register is left for the addresses of the slots"))
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
        dynamic_smem: Some(setting.dynamic_smem),
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

/// Up to which address the shared-memory section of a kernel may grow. Every launch adds its dynamic
/// shared memory to that.
fn limit(setting: &Setting, extent: Extent) -> u32 {
    let arch = setting.gpu.arch;
    let blocks = match extent {
        Extent::All => 1,
        Extent::Beside(blocks) => blocks,
    };
    let most = most_shared_memory(setting.gpu, blocks).unwrap_or(0);
    // Only on sm_90 is it known that a larger section launches without an opt-in (docs/facts.md).
    let most = match arch.sm {
        90 => most,
        _ => most.min(arch.shared.per_block),
    };
    (arch.first_shared_address() + most).saturating_sub(setting.dynamic_smem)
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
