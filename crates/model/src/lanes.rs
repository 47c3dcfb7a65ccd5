//! Integer arithmetic for the 32 lanes of one warp: what the addresses of a sample come from.
//!
//! Parameters, loaded values and whatever is not integer arithmetic are made up, but the same
//! address always holds the same value.

use warpwright_ptx::opcode::{Op, Opcode};
use warpwright_ptx::{
    Address, Base, Body, Imm, Inst, Operand, Part, Reg, Space, SpecialReg, Symbol,
};
use warpwright_target::WARP_SIZE;

use crate::sample::Warp;

/// Threads of a warp.
pub const LANES: usize = WARP_SIZE as usize;
/// A value in each lane.
pub type Values = [i64; LANES];

/// The registers of one warp.
pub struct Lanes<'a> {
    body: &'a Body,
    warp: Warp,
    values: Vec<Values>,
}

impl<'a> Lanes<'a> {
    /// All registers zero.
    pub fn new(body: &'a Body, registers: usize, warp: Warp) -> Self {
        Lanes {
            body,
            warp,
            values: vec![[0; LANES]; registers],
        }
    }

    /// The address in each lane.
    pub fn base(&self, address: &Address) -> Values {
        let base = match address.base {
            Base::Reg(reg) => self.values[reg.as_u32() as usize],
            Base::Symbol(symbol) => [place(symbol); LANES],
            Base::Absolute | Base::Unresolved => [0; LANES],
        };
        base.map(|v| v.wrapping_add(address.offset))
    }

    fn operand(&self, operand: &Operand) -> Values {
        match *operand {
            Operand::Reg(reg) => self.values[reg.as_u32() as usize],
            Operand::Sum { reg, by } => {
                self.values[reg.as_u32() as usize].map(|v| v.wrapping_add(by))
            }
            Operand::Neg(reg) => self.values[reg.as_u32() as usize].map(i64::wrapping_neg),
            Operand::Not(reg) => self.values[reg.as_u32() as usize].map(|v| !v),
            Operand::Select { reg, .. } => self.values[reg.as_u32() as usize],
            Operand::Imm(Imm::Int { value, .. }) => [value; LANES],
            Operand::Symbol { symbol, offset } => [place(symbol).wrapping_add(offset); LANES],
            Operand::Special { reg, part } => self.special(reg, part),
            _ => [1; LANES],
        }
    }

    fn special(&self, reg: SpecialReg, part: Option<Part>) -> Values {
        let [x, y, z] = self.warp.block.map(i64::from);
        let axis = match part {
            Some(Part::Y) => 1,
            Some(Part::Z) => 2,
            _ => 0,
        };
        let of_lane = |lane: i64| match reg {
            SpecialReg::Tid => [lane % x, lane / x % y, lane / x / y % z][axis],
            SpecialReg::NTid => [x, y, z][axis],
            SpecialReg::CtaId => [i64::from(self.warp.index), 0, 0][axis],
            SpecialReg::LaneId => lane,
            SpecialReg::NCtaId => 1024,
            _ => 0,
        };
        std::array::from_fn(|lane| of_lane(lane as i64))
    }

    /// Carries out one instruction; what is not integer arithmetic gets a value made up from its
    /// operands.
    pub fn execute(&mut self, inst: Inst, opcode: &Opcode, defs: &[Reg]) {
        let operands = self.body.operands(inst);
        let get = |i: usize| operands.get(i).map_or([0; LANES], |o| self.operand(o));
        let is_high = opcode.has_mod("hi");
        let two = |f: fn(i64, i64) -> i64| zip(get(1), get(2), f);
        let result = match opcode.op {
            Some(Op::Mov | Op::Cvt | Op::Cvta) => get(1),
            Some(Op::Add) => two(i64::wrapping_add),
            Some(Op::Sub) => two(i64::wrapping_sub),
            Some(Op::Mul | Op::Mul24) if !is_high => two(i64::wrapping_mul),
            Some(Op::Mad | Op::Mad24) if !is_high => {
                zip(two(i64::wrapping_mul), get(3), i64::wrapping_add)
            }
            Some(Op::Shl) => two(|a, b| a.wrapping_shl(b as u32)),
            Some(Op::Shr) => two(|a, b| a.wrapping_shr(b as u32)),
            Some(Op::And) => two(|a, b| a & b),
            Some(Op::Or) => two(|a, b| a | b),
            Some(Op::Xor) => two(|a, b| a ^ b),
            Some(Op::Min) => two(i64::min),
            Some(Op::Max) => two(i64::max),
            Some(Op::Neg) => get(1).map(i64::wrapping_neg),
            Some(Op::Selp) => get(1),
            Some(Op::Ld | Op::Ldu) => {
                let from = address(self.body, inst).map_or([0; LANES], |a| self.base(&a));
                let is_pointer = opcode.types.iter().any(|t| t.bits() == 64);
                match (opcode.space, is_pointer) {
                    (Some(Space::Param), true) => from.map(|a| (made_up(a) % (1 << 20)) << 24),
                    (Some(Space::Param | Space::Const), false) => {
                        from.map(|a| 1000 + made_up(a) % 1000)
                    }
                    _ => from.map(|a| made_up(a) % (1 << 20)),
                }
            }
            _ => {
                let sources = operands.iter().skip(1);
                sources.fold([i64::from(inst.as_u32()); LANES], |all, o| {
                    zip(all, self.operand(o), |a, b| {
                        made_up(a ^ b.rotate_left(7)) % (1 << 16)
                    })
                })
            }
        };
        for reg in defs {
            self.values[reg.as_u32() as usize] = result;
        }
    }
}

fn zip(a: Values, b: Values, f: fn(i64, i64) -> i64) -> Values {
    std::array::from_fn(|lane| f(a[lane], b[lane]))
}

/// Where a variable lies: far from all others.
fn place(symbol: Symbol) -> i64 {
    match symbol {
        Symbol::Var(var) => (i64::from(var.as_u32()) + 1) << 36,
        Symbol::Func(func) => (i64::from(func.as_u32()) + 1) << 20,
    }
}

/// A non-negative number that looks random and depends on `seed` alone (SplitMix64's finaliser).
fn made_up(seed: i64) -> i64 {
    let mut z = (seed as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 1) as i64
}

/// The memory operand of an instruction.
pub fn address(body: &Body, inst: Inst) -> Option<Address> {
    body.operands(inst).iter().find_map(|o| match o {
        Operand::Mem(address) => Some(*address),
        _ => None,
    })
}
