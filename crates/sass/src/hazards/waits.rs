//! What an instruction waits for before it issues, and what it counts on.

use warpwright_flow::{Cfg, Inst};

use crate::control::ControlRange;
use crate::function::Code;
use crate::inst::Instruction;
use crate::operation::Operation;

/// Stands among the scoreboards for the groups of asynchronous matrix products.
pub(crate) const GROUPS: u8 = 1 << 7;

/// A wait for scoreboards.
pub(crate) struct Wait {
    /// One bit each.
    pub scoreboards: u8,
    /// How many instructions may still be counted on the scoreboard; the oldest end first.
    pub count: u8,
    /// Cycles after the issue of an instruction from which on the wait sees its scoreboards.
    pub sees_after: u16,
}

/// No two instructions of the corpus are closer where the second waits by its mask.
pub(crate) const MASK_SEES_AFTER: u16 = 2;
/// DEPBAR looks later.
const DEPBAR_SEES_AFTER: u16 = 1;

/// What an instruction waits for before it issues: the mask of its control field, and the operands of DEPBAR.LE (one
/// scoreboard counted, others in braces whole) and WARPGROUP.DEPBAR.LE.
pub(crate) fn waits(inst: Instruction, mask: u8) -> impl Iterator<Item = Wait> {
    const DEPBAR: u128 = 0x91a;
    const WARPGROUP: u128 = 0x9c5;
    const WARPGROUP_DEPBAR: u128 = 1 << 80;
    let bits = inst.bits();
    let mask = Wait {
        scoreboards: mask,
        count: 0,
        sees_after: MASK_SEES_AFTER,
    };
    let opcode = bits & 0xfff;
    let counted = match opcode {
        DEPBAR => Some(1 << field(bits, 44, 3)),
        WARPGROUP if bits & WARPGROUP_DEPBAR != 0 => Some(GROUPS),
        _ => None,
    };
    let mask = Some(mask).filter(|wait| wait.scoreboards != 0);
    let counted = counted.map(|scoreboards| Wait {
        scoreboards,
        count: field(bits, 38, 6),
        sees_after: DEPBAR_SEES_AFTER,
    });
    let also = Some(Wait {
        scoreboards: field(bits, 32, 6),
        count: 0,
        sees_after: DEPBAR_SEES_AFTER,
    });
    let also = also.filter(|wait| opcode == DEPBAR && wait.scoreboards != 0);
    mask.into_iter().chain(counted).chain(also)
}

/// Does an asynchronous matrix product end its group (`gsb0`)?
pub(crate) fn commits(inst: Instruction) -> bool {
    const NO_GROUP: u8 = 7;
    field(inst.bits(), 84, 3) != NO_GROUP
}

/// Does it wait for the other warps of the block? On sm_75 loads and stores have read their registers before it
/// does ([`super::orders`]).
pub(crate) fn is_block_barrier(inst: Instruction) -> bool {
    const ARRIVE: u8 = 1;
    inst.operation() == Operation::BAR && field(inst.bits(), 77, 3) != ARRIVE
}

/// A set of one scoreboard or none.
pub(crate) fn bit(scoreboard: Option<u8>) -> u8 {
    scoreboard.map_or(0, |s| 1 << s)
}

fn field(bits: u128, at: u32, width: u32) -> u8 {
    (bits >> at) as u8 & ((1 << width) - 1)
}

/// Where an instruction waits for a scoreboard that the one before it sets, ptxas lets two cycles pass, also where the
/// wait is meant for an older one.
///
/// # Errors
/// A control field that does not fit.
pub(crate) fn keep_waits_apart(code: &mut Code) -> Result<(), ControlRange> {
    let cfg = Cfg::new(code);
    for block in cfg.blocks() {
        let insts: Vec<Inst> = cfg.insts(block).collect();
        for pair in insts.windows(2) {
            let [mut earlier, later] =
                [pair[0], pair[1]].map(|inst| code.instructions()[inst.0 as usize].control());
            let sets = bit(earlier.write_barrier) | bit(earlier.read_barrier);
            // One that does not stall at all is done before the next one begins, or nobody knows.
            let is_close = (1..MASK_SEES_AFTER).contains(&earlier.stall.into());
            if sets & later.wait_mask != 0 && is_close {
                earlier.stall = MASK_SEES_AFTER as u8;
                code.set_control(pair[0], earlier)?;
            }
        }
    }
    Ok(())
}
