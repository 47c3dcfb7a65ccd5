//! `spill-to-shared`: the spill slots of a finished kernel move from local to shared memory.
//!
//! Goal and paper (RegDem): see [`warpwright_sass::spill`], which finds the slots and rewrites the code. Here
//! is what depends on the GPU and the launch. There are two extents: all slots, even where that costs
//! resident blocks (a kernel with one block of eight warps and its slots in shared memory took 0.35 times
//! the time of four blocks with slots in local memory), and the hottest ones that fit beside the blocks
//! that reside. RegDem (section 3.1) has the second only.
//!
//! Requires: the block size; the dynamic shared memory of the launch; no clusters; one copy of the program.
//! A block size that only the caller knows becomes a bound in the cubin, so that larger launches fail.
//! Preserves: what [`warpwright_sass::spill`] says; control fields only ever wait for more.

use std::collections::BTreeSet;

use warpwright_flow::{Cfg, Inst, Loops};
use warpwright_regs::knapsack::{Item, choose};
use warpwright_sass::Instruction;
use warpwright_sass::elf::{Elf, RESERVED_REGISTERS};
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::hazards::settle::{Thrift, settle};
use warpwright_sass::spill::{self, Frame, Index, Layout, Move, Scratch, Slot};
use warpwright_target::{Resources, occupancy};

use crate::own_shared::{Launch, cautions, limit, stated, stays_without_opt_in, used_bytes};
use crate::pass::{Fuel, Need, Outcome, Pass, Rewritten, Work};
use crate::refusal::Refusal;
use crate::site::{CubinSite, Setting};

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct SpillToShared {
    /// Only the hottest slots that fit while so many blocks per SM stay resident; refused where all fit.
    /// Without it all slots; refused where they do not fit into the shared memory that a block can have.
    pub blocks: Option<u32>,
}

crate::options!(SpillToShared: [];
    [blocks: Option<u32> = None, "only the hottest slots that fit while so many blocks per SM stay resident [default: all slots]"]);

impl Pass for SpillToShared {
    const NAME: &'static str = "spill-to-shared";
    const ABOUT: &'static str =
        "move the spill slots of finished kernels to shared memory (RegDem)";

    fn needs(&self) -> &'static [Need] {
        &[Need::BlockSize, Need::DynamicShared]
    }

    fn work(&self) -> Work<Self> {
        Work::MachineCode(move_slots)
    }
}

fn move_slots(pass: &SpillToShared, site: &CubinSite, fuel: &mut Fuel) -> Outcome<Vec<u8>> {
    let setting = &site.setting;
    let mut elf = site.cubin.elf().clone();
    let sections = elf.kernel(site.kernel)?;
    let code = elf.instructions(&sections)?;
    let frame = Frame::find(&code)?;
    let launch = Launch::new(&elf, &sections, setting)?;
    let registers = elf.registers(&sections)?.unwrap_or(0);
    let flow = Code::new(&elf, &sections, Calls::Followed)?;
    let scratch = spill::scratch(&flow, registers.saturating_sub(RESERVED_REGISTERS));
    let scratch = scratch.ok_or(Refusal::InTheWay(
        "it has too few registers for the code at its entry",
    ))?;
    let used = used_bytes(&elf, &sections, setting)?;
    let limit = limit(setting, pass.blocks.unwrap_or(1), used);
    let threads = launch.shape.threads();
    let fits = |layout: &Layout| layout.end <= limit;
    let all: Vec<&Slot> = frame.slots.iter().collect();
    let all_fit = Layout::new(&all, threads, used).is_some_and(|layout| fits(&layout));
    let mut slots = match (all_fit, pass.blocks) {
        (true, None) => all,
        (true, Some(_)) => {
            return Err(Refusal::InTheWay("all slots fit beside that many blocks"));
        }
        (false, None) => {
            return Err(Refusal::InTheWay(
                match stays_without_opt_in(setting, used) {
                    true => NO_OPT_IN,
                    false => "its spill slots do not all fit into shared memory",
                },
            ));
        }
        (false, Some(_)) => hottest(&flow, &frame, threads, limit.saturating_sub(used))?,
    };
    if let Some(copy) = elf.intermediate_copy() {
        let what =
            "the cubin holds an intermediate copy of the program, which would stay the old one";
        return Err(Refusal::obstacle(what, copy));
    }
    let given = fuel.burn_up_to(slots.len() as u64);
    slots.truncate(usize::try_from(given).unwrap_or(usize::MAX));
    if slots.is_empty() {
        return Ok(Rewritten::new(site.cubin.bytes().to_vec()));
    }
    let layout = Layout::new(&slots, threads, used).filter(fits);
    let layout = layout.ok_or(Refusal::InTheWay("no slot fits"))?;
    let index = match slots.len() == frame.slots.len() {
        true => Index::StackPointer(None),
        false => base(
            &code,
            scratch,
            (&frame, &slots),
            (registers, (setting, threads), pass.blocks),
        )?,
    };
    let moved = slots.len();
    let moves: Vec<Move> = slots
        .into_iter()
        .zip(layout.offsets.iter().copied())
        .collect();
    let at_entry = (launch.shape, scratch);
    spill::move_slots(&code, &frame, &moves, index, at_entry).apply(&mut elf, site.kernel)?;
    settle_order(&mut elf, site.kernel)?;
    // A launch may have less dynamic shared memory than it may have at most, or none: the section alone
    // must hold all slots.
    elf.set_shared_bytes(site.kernel, u64::from(layout.end))?;
    match index {
        Index::StackPointer(None) => elf.drop_frame(&sections)?,
        Index::StackPointer(Some(_)) => {}
        Index::Register(index) => {
            let stated = u8::try_from(stated(index).max(registers));
            let stated = stated.map_err(|_| NO_REGISTER)?;
            elf.set_registers(site.kernel, stated)?;
        }
    }
    if launch.is_promise {
        elf.bound_blocks(site.kernel, threads)?;
    }
    let note = format!("{moved} of {} spill slots moved", frame.slots.len());
    let cautions = cautions(site, &launch);
    Ok(Rewritten::new(elf.write()?).note(note).careful(cautions))
}

/// Lets moved accesses wait where only the order of global and local memory kept them from what they overwrite: ptxas
/// relies on that order, and never on one between global and shared memory.
fn settle_order(elf: &mut Elf, kernel: &str) -> Result<(), Refusal> {
    let sections = elf.kernel(kernel)?;
    let mut code = Code::new(elf, &sections, Calls::Followed)?;
    settle(&mut code, &BTreeSet::new(), Thrift::Late, None)
        .map_err(|why| Refusal::obstacle("its control fields cannot be set", why))?;
    elf.set_instructions(kernel, code.instructions())?;
    Ok(())
}

const NO_OPT_IN: &str = "its spill slots do not all fit into the 48 KB, dynamic shared memory included, that it has now without opting \
                         in to more";

const NO_REGISTER: Refusal =
    Refusal::InTheWay("no register is left for the addresses of the slots");

/// The slots that save the most traffic in `room` bytes of shared memory per block: a 0-1 knapsack of
/// loop-weighted bytes (RegDem, section 3.1, takes the registers with the fewest accesses instead).
fn hottest<'a>(
    code: &Code,
    frame: &'a Frame,
    threads: u32,
    room: u32,
) -> Result<Vec<&'a Slot>, Refusal> {
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
        true => Err(Refusal::InTheWay(
            "no spill slot fits into the shared memory that is free",
        )),
        false => Ok(chosen.into_iter().map(|at| &frame.slots[at]).collect()),
    }
}

/// What the addresses are made of where only `moved` slots go: a register that nobody uses for the
/// thread's index, if it costs none of the blocks that are to stay, else the stack pointer's.
fn base(
    code: &[Instruction],
    scratch: Scratch,
    (frame, moved): (&Frame, &[&Slot]),
    (registers, (setting, most), blocks): (u32, (&Setting, u32), Option<u32>),
) -> Result<Index, Refusal> {
    let is_free = |index: &Index| match (blocks, index) {
        (Some(blocks), &Index::Register(register)) => {
            let need = |threads| Resources::new(stated(register).max(registers), threads);
            let own = need(setting.block.threads());
            occupancy(setting.gpu, &own).is_ok_and(|found| found.blocks >= blocks)
                && occupancy(setting.gpu, &need(most)).is_ok()
        }
        _ => true,
    };
    let stay = frame.slots.iter().filter(|slot| !moved.contains(slot));
    let index = Index::free(code, scratch).filter(is_free);
    let index = index.or_else(|| Index::freed(code, &stay.collect::<Vec<_>>()));
    index.ok_or(NO_REGISTER)
}
