//! Fields of instruction words that the checker reads by itself. It shares no code with the passes.

use warpwright_sass::Instruction;
use warpwright_sass::isa::{self, operand::Shape};

/// A run of bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field(u32, u32);

impl Field {
    pub(super) fn get(self, inst: Instruction) -> u32 {
        ((inst.bits() & self.mask()) >> self.0) as u32
    }

    pub(super) fn mask(self) -> u128 {
        ((1u128 << self.1) - 1) << self.0
    }
}

pub(super) const OPCODE: Field = Field(0, 12);
/// How the sources are given, and what stands there where an immediate is the second one.
pub(super) const FORM: Field = Field(9, 3);
pub(super) const FORM_IMMEDIATE: u32 = 4;
pub(super) const FORM_REGISTERS: u32 = 1;
pub(super) const GUARD: Field = Field(12, 4);
pub(super) const GUARD_NEGATED: Field = Field(15, 1);
pub(super) const RESULT: Field = Field(16, 8);
pub(super) const A: Field = Field(24, 8);
pub(super) const B: Field = Field(32, 8);
pub(super) const C: Field = Field(64, 8);
pub(super) const IMMEDIATE: Field = Field(32, 32);
/// Offset of an access, in bytes, with its sign.
pub(super) const OFFSET: Field = Field(40, 24);
pub(super) const SPECIAL: Field = Field(72, 8);
pub(super) const SIZE: Field = Field(73, 3);
pub(super) const SCALE: Field = Field(78, 2);
/// Everything above the operands up to the control field.
pub(super) const MODIFIERS: Field = Field(72, 33);
/// What a cache does with the line: what is evicted first, last, unchanged or not kept; and the last use of
/// a line, which need not be written back.
pub(super) const CACHE: Field = Field(84, 3);
pub(super) const LAST_USE: u32 = 3;
/// Has an address a uniform register? Where it stands in a load, and in a store.
pub(super) const HAS_UNIFORM: Field = Field(91, 1);
pub(super) const LOAD_UNIFORM: Field = Field(32, 6);
pub(super) const STORE_UNIFORM: Field = Field(64, 6);
/// The scheduling of an instruction decides nothing about values; the hazard checker looks at it.
pub(super) const CONTROL: Field = Field(105, 23);
/// Parts of it: cycles to the next instruction, scoreboards that tell of results and of operands (7: none),
/// scoreboards that are waited for.
pub(super) const STALL: Field = Field(105, 4);
/// Clear, the scheduler may go on with another warp.
pub(super) const YIELD: Field = Field(109, 1);
pub(super) const SCOREBOARDS: [Field; 2] = [Field(110, 3), Field(113, 3)];
pub(super) const WAITS: Field = Field(116, 6);
/// Sources that are kept for the next instruction, one bit each.
pub(super) const REUSE: Field = Field(122, 4);
/// DEPBAR: the scoreboard that it counts on, how many may be left there, and those that it waits for whole.
pub(super) const COUNTED_SCOREBOARD: Field = Field(44, 3);
pub(super) const COUNT_LEFT: Field = Field(38, 6);
pub(super) const ALSO_AWAITED: Field = Field(32, 6);
/// WARPGROUP: is it the wait for groups of matrix products (which counts like DEPBAR)?
pub(super) const IS_GROUP_WAIT: Field = Field(80, 1);
/// The group that an asynchronous matrix product ends; 7 for none.
pub(super) const GROUP: Field = Field(84, 3);
/// BAR: what it does; one that arrives alone waits for nobody.
pub(super) const BARRIER_MODE: Field = Field(77, 3);
pub(super) const BARRIER_ARRIVES: u32 = 1;
/// Order, scope and privacy of an access to global memory, and what stands there in a plain one, and in a plain load
/// of what does not change while the kernel runs: from sm_80 on, as nvdisasm prints them for each value.
pub(super) const ORDER: Field = Field(77, 4);
pub(super) const WEAK: u32 = 0;
pub(super) const CONSTANT: u32 = 4;
pub(super) const ORDERED_SINCE: u32 = 80;
/// The address is a pair of registers; uniform registers describe the memory, and are no part of the address.
pub(super) const PAIR_ALONE: u128 = 1 << 72 | 1 << 76;
/// Where the distance of a branch stands; its low bits since Hopper, nothing that is known before.
const DISTANCE: [Field; 2] = [Field(16, 8), Field(34, 48)];
const SPLIT_SINCE: u32 = 90;
/// Where that of a BSSY does.
const BARRIER_DISTANCE: Field = Field(34, 30);
/// Where that of a LEPC does, as far as it is followed.
const ADDRESS_DISTANCE: Field = Field(24, 8);
const CALL_ABS: u32 = 0x143;
const BSSY: u32 = 0x145;
const LEPC: u32 = 0x14e;

pub(super) const NEVER: u32 = 0xf;
pub(super) const RZ: u32 = 255;
/// Before sm_100, where the field of a uniform register has six bits.
pub(super) const URZ: u16 = 63;
pub(super) const STACK: u32 = 1;

/// The value of [`OFFSET`].
pub(super) fn offset(inst: Instruction) -> i32 {
    (OFFSET.get(inst) << 8) as i32 >> 8
}

/// What an instruction reads from constant memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Constant {
    pub(super) bank: u32,
    /// In bytes, an index left out.
    pub(super) offset: i64,
    /// So many bytes at most: only loads say how many.
    pub(super) bytes: i64,
    pub(super) is_load: bool,
    pub(super) is_indexed: bool,
}

/// Where the offset stands differs between loads of different architectures, so the tables are asked: `None` also for
/// an instruction of no known form.
pub(super) fn constant(inst: Instruction) -> Option<Constant> {
    let decoded = isa::decode(inst);
    let is_load = matches!(decoded.mnemonic(), "LDC" | "ULDC" | "LDCU");
    let operands = decoded.operands(0);
    let constant = operands.iter().find(|o| o.shape == Shape::Constant)?;
    let mut numbers = constant.immediates.iter().map(|number| number.value);
    Some(Constant {
        bank: numbers.next()? as u32,
        offset: numbers.next().unwrap_or(0),
        bytes: match is_load {
            true => i64::from(inst.access_bytes()),
            false => 8,
        },
        is_load,
        is_indexed: constant.registers.iter().any(|r| !r.constant),
    })
}

/// What the register in the address of a shared access is multiplied by.
pub(super) fn scale(inst: Instruction) -> u32 {
    match SCALE.get(inst) {
        0 => 1,
        power => 2 << power,
    }
}

/// `NOP` or a branch to itself, which ptxas fills sections up with.
pub(super) fn is_padding(inst: Instruction) -> bool {
    OPCODE.get(inst) == 0x918
}

/// May it decide where threads go on, or hold an address of code?
pub(super) fn is_control(inst: Instruction) -> bool {
    matches!(OPCODE.get(inst) & 0x1ff, 0x140..=0x15f)
}

/// What a branch, call or RET adds to the address of the next instruction, in bytes. Hopper and later
/// keep the low eight bits elsewhere.
pub(super) fn relative_distance(inst: Instruction) -> i64 {
    let high = (inst.bits() & DISTANCE[1].mask()) >> DISTANCE[1].0;
    let high = ((high as i64) << 16) >> 16;
    match inst.sm() {
        ..SPLIT_SINCE => high * 4,
        _ => (high << 8 | i64::from(DISTANCE[0].get(inst))) * 4,
    }
}

/// The bits of a control instruction in which it has a distance, if it has one. All others mean the same wherever it
/// stands.
pub(super) fn distance_bits(inst: Instruction) -> u128 {
    match OPCODE.get(inst) & 0x1ff {
        CALL_ABS => 0,
        BSSY => BARRIER_DISTANCE.mask(),
        LEPC => ADDRESS_DISTANCE.mask(),
        _ if inst.sm() < SPLIT_SINCE => DISTANCE[1].mask(),
        _ => DISTANCE[0].mask() | DISTANCE[1].mask(),
    }
}

/// The same for a BSSY, which has its barrier where others have the low bits, and, from sm_100 on, its mode
/// behind a shorter distance.
pub(super) fn barrier_distance(inst: Instruction) -> i64 {
    let words = BARRIER_DISTANCE.get(inst) << 2;
    i64::from(words as i32 >> 2) * 4
}
