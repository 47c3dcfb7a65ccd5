//! The instruction words that spilling is made of, on bits.
//!
//! Positions from docs/facts.md; the address scale in bits 78 and 79 and the special register
//! in bits 72 to 79 as nvdisasm prints them, the same on every architecture from sm_75 to sm_120.

use warpwright_target::machine_code;

use crate::control::Control;
use crate::inst::Instruction;
use crate::operation::{OperandForm, Operation};

/// A general register, 0 to 254.
pub(crate) type Register = u8;

/// A uniform register, 0 to 62.
pub(crate) type Uniform = u8;

/// RZ, which reads as zero.
pub(crate) const ZERO_REGISTER: Register = 255;

/// The register that holds the stack pointer.
pub(crate) const STACK: Register = 1;

/// A run of bits in an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    at: u32,
    width: u32,
}

impl Field {
    const fn new(at: u32, width: u32) -> Field {
        Field { at, width }
    }

    const fn mask(self) -> u128 {
        ((1 << self.width) - 1) << self.at
    }

    fn get(self, bits: u128) -> u32 {
        ((bits & self.mask()) >> self.at) as u32
    }

    fn put(self, bits: u128, value: u32) -> u128 {
        bits & !self.mask() | (u128::from(value) << self.at) & self.mask()
    }
}

const OPCODE: Field = Field::new(0, 12);
const GUARD: Field = Field::new(12, 4);
const RESULT: Field = Field::new(16, 8);
const BASE: Field = Field::new(24, 8);
const DATA: Field = Field::new(32, 8);
const OFFSET: Field = Field::new(40, 24);
const IMMEDIATE: Field = Field::new(32, 32);
const CONSTANT_WORD: Field = Field::new(40, 14);
const CONSTANT_OFFSET: Field = Field::new(38, 16);
const BANK: Field = Field::new(54, 5);
const ADDEND: Field = Field::new(64, 8);
const SPECIAL: Field = Field::new(72, 8);
const SIZE: Field = Field::new(73, 3);
const SCALE: Field = Field::new(78, 2);
const CACHE: Field = Field::new(84, 3);
const HAS_UNIFORM: Field = Field::new(91, 1);
/// The uniform register in the address of a load, and of a store.
const LOAD_UNIFORM: Field = Field::new(32, 6);
const STORE_UNIFORM: Field = Field::new(64, 6);
const CONTROL: Field = Field::new(105, 23);

const STL: u32 = opcode(Operation::STL, OperandForm::REGISTERS);
const STS: u32 = opcode(Operation::STS, OperandForm::REGISTERS);
const LDL: u32 = opcode(Operation::LDL, OperandForm::IMMEDIATE);
const LDS: u32 = opcode(Operation::LDS, OperandForm::IMMEDIATE);

const fn opcode(operation: Operation, form: OperandForm) -> u32 {
    operation.with(form).number() as u32
}

/// STL with a uniform register in its address. LDL has one where a bit says so.
const STL_UNIFORM: u32 = opcode(Operation::STL, OperandForm::IMMEDIATE);

/// Ways to load the stack pointer, control field left out: `LDC R1`, `MOV R1`, `IMAD.MOV.U32 R1`
/// from `c[0x0][0x28]`, and from `c[0x0][0x37c]` on sm_100 and later.
const STACK_LOADS: [u128; 4] = [
    0x0000_0800 << 64 | 0x0000_0a00_ff01_7b82,
    0x0000_0f00 << 64 | 0x0000_0a00_0001_7a02,
    0x078e_00ff << 64 | 0x0000_0a00_ff01_7624,
    0x0000_0800 << 64 | 0x0000_df00_ff01_7b82,
];

/// Ways to add an immediate to the stack pointer, immediate and control field left out:
/// `IADD3 R1, R1, n, RZ`, `VIADD R1, R1, n` and, from sm_120 on, `IADD R1, R1, n`.
const STACK_ADDS: [u128; 3] = [
    0x07ff_e0ff << 64 | 0x0101_7810,
    0x0101_7836,
    0x078e_0000 << 64 | 0x0101_7835,
];

const ULDC: u128 = 0x0000_0800 << 64 | 0x7ab9;
/// `UIADD3 to, a, n, URZ`.
const UIADD3: u128 = 0x0fff_e03f << 64 | 0x7890;
const S2R: u128 = 0x7919;
const LDC: u128 = 0x0000_0800 << 64 | 0xff00_7b82;
const IMAD_U32: u128 = 0x078e_0000 << 64 | 0x7224;
const NOP: u128 = 0x7918;
/// The guard PT.
const ALWAYS: u128 = 0x7000;

/// A plain access to local memory: base register, constant offset, some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalWord {
    pub(crate) is_store: bool,
    pub(crate) base: Register,
    /// Added to the base, in bytes.
    pub(crate) offset: i32,
    pub(crate) bytes: u32,
}

/// How `inst` uses local memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Local {
    /// Not at all.
    No,
    /// In the plain form.
    Plain(LocalWord),
    /// In a form with something else in it: a uniform register, an unknown bit.
    Other,
}

pub(crate) fn local(inst: Instruction) -> Local {
    if !matches!(inst.operation(), Operation::LDL | Operation::STL) {
        return Local::No;
    }
    let bits = inst.bits();
    let opcode = OPCODE.get(bits);
    let register = if opcode == STL { DATA } else { RESULT };
    let known = [OPCODE, GUARD, register, BASE, OFFSET, SIZE, CACHE, CONTROL];
    let mask = known.iter().fold(0, |mask, field| mask | field.mask());
    if !matches!(opcode, LDL | STL) || bits & !mask != 0 {
        return Local::Other;
    }
    Local::Plain(LocalWord {
        is_store: opcode == STL,
        base: BASE.get(bits) as Register,
        offset: (OFFSET.get(bits) << 8) as i32 >> 8,
        bytes: inst.access_bytes(),
    })
}

/// The register in the place of a result.
pub(crate) fn result(inst: Instruction) -> Register {
    RESULT.get(inst.bits()) as Register
}

/// Are two instructions the same but for their control fields?
pub(crate) fn is_same(one: Instruction, other: Instruction) -> bool {
    (one.bits() ^ other.bits()) & !CONTROL.mask() == 0
}

/// Does `inst` load the stack pointer into R1?
pub(crate) fn is_stack_load(inst: Instruction) -> bool {
    STACK_LOADS.contains(&(inst.bits() & !CONTROL.mask()))
}

/// Is its guard always false? ptxas writes such instructions as fillers.
pub(crate) fn is_never_executed(inst: Instruction) -> bool {
    const NEVER: u32 = 0xf;
    GUARD.get(inst.bits()) == NEVER
}

/// Is it UCGABAR_ARV or UCGABAR_WAIT (sm_90 and later; nothing before has these opcodes)?
pub(crate) fn is_cluster_barrier(inst: Instruction) -> bool {
    inst.operation() == Operation::UCGABAR
}

/// Does `inst` wait for all but some of the operations under a scoreboard (`DEPBAR`)? That relies on the
/// order in which they end, and shared memory is another pipeline.
pub(crate) fn counts_scoreboard(inst: Instruction) -> bool {
    inst.operation() == Operation::DEPBAR
}

/// What `inst` adds to the stack pointer, in bytes.
pub(crate) fn stack_add(inst: Instruction) -> Option<i32> {
    let form = inst.bits() & !CONTROL.mask() & !IMMEDIATE.mask();
    let is_add = STACK_ADDS.contains(&form);
    is_add.then(|| IMMEDIATE.get(inst.bits()) as i32)
}

/// Where a slot lies in shared memory: thread t of the block finds it at `offset + t * scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bytes from the start of the block's shared memory to the access of thread 0.
    pub(crate) offset: u32,
    /// Bytes per thread: 4, 8 or 16.
    pub(crate) scale: u32,
}

/// The access to local memory `inst`, in shared memory: `[index.Xscale + offset]`. Guard, data
/// register, width and control field stay.
pub(crate) fn to_shared(inst: Instruction, index: Register, place: Place) -> Instruction {
    let bits = inst.bits();
    let opcode = if OPCODE.get(bits) == STL { STS } else { LDS };
    let bits = OPCODE.put(bits, opcode);
    let bits = BASE.put(bits, u32::from(index));
    let bits = OFFSET.put(bits, place.offset);
    let bits = SCALE.put(bits, place.scale.trailing_zeros() - 1);
    // Stores to local memory of 8 or 16 bits say 'signed', those to shared memory 'unsigned'.
    let size = SIZE.get(bits);
    let is_narrow_store = opcode == STS && size < 4;
    let bits = SIZE.put(bits, if is_narrow_store { size & !1 } else { size });
    inst.with_bits(CACHE.put(bits, 0))
}

/// The access to the frame `inst` with the frame's start in a uniform register instead of R1; the rest
/// stays.
pub(crate) fn through_uniform(inst: Instruction, base: Uniform) -> Instruction {
    let bits = BASE.put(inst.bits(), u32::from(ZERO_REGISTER));
    let bits = HAS_UNIFORM.put(bits, 1);
    inst.with_bits(match OPCODE.get(bits) {
        STL => {
            let bits = OPCODE.put(bits, STL_UNIFORM);
            STORE_UNIFORM.put(bits, u32::from(base))
        }
        _ => LOAD_UNIFORM.put(bits, u32::from(base)),
    })
}

/// `ULDC to, c[0x0][0x28]`: the stack pointer as the driver leaves it, before sm_100.
pub(crate) fn stack_pointer(sm: u32, to: Uniform, control: Control) -> Instruction {
    const STACK_WORD: u32 = 0x28 / 4;
    let bits = RESULT.put(ULDC, u32::from(to));
    build(sm, CONSTANT_WORD.put(bits, STACK_WORD), control)
}

/// `UIADD3 register, register, n, URZ`.
pub(crate) fn add_uniform(sm: u32, register: Uniform, n: u32, control: Control) -> Instruction {
    let bits = RESULT.put(UIADD3, u32::from(register));
    let bits = BASE.put(bits, u32::from(register));
    build(sm, IMMEDIATE.put(bits, n), control)
}

/// A new instruction. The values of `control` are ours and fit.
fn build(sm: u32, bits: u128, control: Control) -> Instruction {
    let inst = Instruction::new(sm, bits);
    inst.with_control(control).unwrap_or(inst)
}

/// `S2R to, SR_TID`: the thread's index in dimension 0 to 2.
pub(crate) fn thread_index(sm: u32, to: Register, dimension: u32, control: Control) -> Instruction {
    const TID_X: u32 = 0x21;
    let bits = RESULT.put(S2R, u32::from(to));
    let bits = SPECIAL.put(bits, TID_X + dimension);
    build(sm, bits, control)
}

/// `LDC to, ntid`: the block's size in dimension 0 to 2, which the driver leaves in constant bank 0.
pub(crate) fn block_size(sm: u32, to: Register, dimension: u32, control: Control) -> Instruction {
    // In words.
    let first = machine_code(sm).block_size / 4;
    let bits = RESULT.put(LDC, u32::from(to));
    let bits = CONSTANT_WORD.put(bits, first + dimension);
    build(sm, bits, control)
}

/// `IMAD.U32 to, a, b, c`: a · b + c.
pub(crate) fn multiply_add(
    sm: u32,
    to: Register,
    [a, b, c]: [Register; 3],
    control: Control,
) -> Instruction {
    let bits = RESULT.put(IMAD_U32, u32::from(to));
    let bits = BASE.put(bits, u32::from(a));
    let bits = DATA.put(bits, u32::from(b));
    let bits = ADDEND.put(bits, u32::from(c));
    build(sm, bits, control)
}

/// A load or store of shared memory: `LDS data, [index.Xscale + offset]`. `access` is whether it stores, the
/// register of the data, and the bytes: 4, 8 or 16.
pub(crate) fn shared(
    sm: u32,
    (is_store, data, bytes): (bool, Register, u32),
    index: Register,
    place: Place,
    control: Control,
) -> Instruction {
    const WORD: u32 = 4;
    let (opcode, field) = if is_store { (STS, DATA) } else { (LDS, RESULT) };
    let bits = OPCODE.put(ALWAYS, opcode);
    let bits = field.put(bits, u32::from(data));
    let bits = BASE.put(bits, u32::from(index));
    let bits = OFFSET.put(bits, place.offset);
    let bits = SCALE.put(bits, place.scale.trailing_zeros() - 1);
    let size = WORD + (bytes / WORD).trailing_zeros();
    build(sm, SIZE.put(bits, size), control)
}

/// Is it `S2R` of the thread's index in the block, of the block's index in the grid, or of the lane?
pub(crate) fn is_index(inst: Instruction) -> bool {
    const LANE: u32 = 0x00;
    let known = OPCODE.mask() | GUARD.mask() | RESULT.mask() | SPECIAL.mask() | CONTROL.mask();
    let special = SPECIAL.get(inst.bits());
    let is_fixed =
        special == LANE || (0x21..=0x23).contains(&special) || (0x25..=0x27).contains(&special);
    OPCODE.get(inst.bits()) == OPCODE.get(S2R) && inst.bits() & !known == 0 && is_fixed
}

/// Is it a move of a word of constant bank 0: `MOV R, c[0][n]`, `IMAD.MOV.U32 R, RZ, RZ, c[0][n]` or
/// `LDC R, c[0][n]`?
pub(crate) fn is_constant_move(inst: Instruction) -> bool {
    const FORMS: [u128; 3] = [
        LDC,
        0x0000_0f00 << 64 | 0x0000_7a02,
        0x078e_00ff << 64 | 0xff00_7624,
    ];
    let free = RESULT.mask() | CONSTANT_WORD.mask() | CONTROL.mask();
    FORMS.contains(&(inst.bits() & !free))
}

/// The register of `CALL.ABS R`, which has the low half of the address, and the one behind it the high half.
pub(crate) fn called_register(inst: Instruction) -> Option<Register> {
    let by_register = Operation::CALL_ABS.with(OperandForm::REGISTERS);
    (inst.opcode() == by_register).then(|| BASE.get(inst.bits()) as Register)
}

/// `LDC.64 to, c[bank][index + offset]`: `to`, `index`, and `offset` in bytes.
pub(crate) fn address_load(inst: Instruction, bank: u32) -> Option<(Register, Register, i64)> {
    let bits = inst.bits();
    let known = RESULT.mask() | BASE.mask() | CONSTANT_OFFSET.mask() | CONTROL.mask();
    let plain = BANK.put(SIZE.put(OPCODE.put(ALWAYS, OPCODE.get(LDC)), 5), bank);
    let is_load = bits & !known == plain;
    let offset = i64::from(CONSTANT_OFFSET.get(bits) as u16 as i16);
    is_load.then(|| (RESULT.get(bits) as u8, BASE.get(bits) as u8, offset))
}

/// `NOP`.
pub(crate) fn nothing(sm: u32, control: Control) -> Instruction {
    build(sm, NOP, control)
}

/// `NOP` with the waits and the stall of `inst`.
pub(crate) fn nothing_instead_of(inst: Instruction) -> Instruction {
    let control = Control {
        write_barrier: None,
        read_barrier: None,
        reuse: 0,
        ..inst.control()
    };
    nothing(inst.sm(), control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(opcode: u32, size: u32) -> Instruction {
        let bits = OPCODE.put(0, opcode) | 7 << 12;
        let bits = BASE.put(SIZE.put(bits, size), STACK.into());
        Instruction::new(90, OFFSET.put(bits, 0x40))
    }

    #[test]
    fn wide_accesses_stay_wide() {
        for (size, scale) in [(4, 4), (5, 8), (6, 16)] {
            for (opcode, moved) in [(LDL, LDS), (STL, STS)] {
                let place = Place {
                    offset: 0x1400,
                    scale,
                };
                let inst = to_shared(access(opcode, size), 1, place);
                assert_eq!(inst.access_bytes(), scale);
                assert_eq!(OPCODE.get(inst.bits()), moved);
                assert_eq!(SCALE.get(inst.bits()), scale.trailing_zeros() - 1);
                assert_eq!(OFFSET.get(inst.bits()), 0x1400);
            }
        }
    }

    #[test]
    fn what_stays_is_addressed_through_the_uniform_register() {
        for size in [4, 5, 6] {
            for opcode in [LDL, STL] {
                let inst = through_uniform(access(opcode, size), 9);
                assert_eq!(inst.access_bytes(), access(opcode, size).access_bytes());
                assert_eq!(OFFSET.get(inst.bits()), 0x40);
                assert_eq!(BASE.get(inst.bits()), u32::from(ZERO_REGISTER));
                let roles = crate::roles::Roles::of(inst).expect("it is known");
                let uniform = |span: &crate::roles::Span| span.file == crate::roles::File::Uniform;
                assert!(roles.uses().any(|span| uniform(&span) && span.first == 9));
            }
        }
    }
}
