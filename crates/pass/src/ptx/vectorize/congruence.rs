//! What registers leave when they are divided by powers of two, if pointers among the parameters are aligned.
//!
//! Method: forward data flow of congruences (Granger, International Journal of Computer Mathematics 30, 1989) modulo
//! powers of two up to 256, over all ways through the function.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Block, Cfg};
use warpwright_launch::Field;
use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Inst, Operand, Reg, Type, View};

use crate::ptx::specialize::{integer_bits, loaded_field};

/// Bits that are looked at.
const BITS: u32 = 8;

/// What pointers are taken to be multiples of: 2^4 bytes.
const POINTER: u32 = 4;

/// A number that leaves `rest` modulo 2^`bits`, if these parameters leave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Congruence {
    pub(super) bits: u32,
    pub(super) rest: u64,
    pub(super) pointers: BTreeSet<Field>,
}

type State = BTreeMap<Reg, Congruence>;

impl Congruence {
    fn new(bits: u32, rest: u64) -> Congruence {
        let bits = bits.min(BITS);
        Congruence {
            bits,
            rest: rest & ((1 << bits) - 1),
            pointers: BTreeSet::new(),
        }
    }

    fn constant(value: u64) -> Congruence {
        Congruence::new(BITS, value)
    }

    pub(super) fn modulus(&self) -> u64 {
        1 << self.bits
    }

    fn with(mut self, others: [&Congruence; 2]) -> Congruence {
        for other in others {
            self.pointers.extend(&other.pointers);
        }
        self
    }

    fn sum(&self, other: &Congruence, sign: i64) -> Congruence {
        let rest = (other.rest as i64).wrapping_mul(sign) as u64;
        Congruence::new(self.bits.min(other.bits), self.rest.wrapping_add(rest)).with([self, other])
    }

    fn product(&self, other: &Congruence) -> Congruence {
        let zeros = |of: &Congruence| of.rest.trailing_zeros().min(of.bits);
        let bits = (zeros(self) + other.bits).min(zeros(other) + self.bits);
        Congruence::new(bits, self.rest.wrapping_mul(other.rest)).with([self, other])
    }

    fn join(&self, other: &Congruence) -> Congruence {
        let apart = (self.rest ^ other.rest).trailing_zeros();
        Congruence::new(self.bits.min(other.bits).min(apart), self.rest).with([self, other])
    }
}

/// Of each block, what registers are congruent to where it begins.
pub(super) struct Congruences {
    entries: Vec<Option<State>>,
    blocks: BTreeMap<Inst, (Block, Inst)>,
}

impl Congruences {
    pub(super) fn new(view: &View<'_>, cfg: &Cfg) -> Congruences {
        let mut blocks = BTreeMap::new();
        for block in cfg.blocks() {
            let first = Inst::from_u32(cfg.first_inst(block).0);
            for at in cfg.insts(block) {
                blocks.insert(Inst::from_u32(at.0), (block, first));
            }
        }
        let mut entries: Vec<Option<State>> = vec![None; cfg.block_count()];
        if let Some(first) = entries.first_mut() {
            *first = Some(State::new());
        }
        let mut work = BTreeSet::from([(0, Block(0))]);
        while let Some((_, block)) = work.pop_first() {
            let Some(mut state) = entries.get(block.0 as usize).cloned().flatten() else {
                continue;
            };
            for at in cfg.insts(block) {
                execute(view, Inst::from_u32(at.0), &mut state);
            }
            for &to in cfg.succs(block) {
                if enter(&mut entries[to.0 as usize], &state) {
                    work.extend(cfg.rpo_number(to).map(|number| (number, to)));
                }
            }
        }
        Congruences { entries, blocks }
    }

    /// What a register is congruent to before an instruction.
    pub(super) fn before(&self, view: &View<'_>, inst: Inst, reg: Reg) -> Option<Congruence> {
        let &(block, first) = self.blocks.get(&inst)?;
        let mut state = self.entries.get(block.0 as usize)?.clone()?;
        for at in first.as_u32()..inst.as_u32() {
            execute(view, Inst::from_u32(at), &mut state);
        }
        state.remove(&reg)
    }
}

/// Brings what is known into a block; says whether that changes anything.
fn enter(entry: &mut Option<State>, state: &State) -> bool {
    let Some(before) = entry else {
        *entry = Some(state.clone());
        return true;
    };
    let mut is_changed = false;
    before.retain(|reg, known| {
        let joined = state.get(reg).map(|other| known.join(other));
        let joined = joined.filter(|joined| joined.bits > 0);
        is_changed |= joined.as_ref() != Some(known);
        joined.is_some_and(|joined| {
            *known = joined;
            true
        })
    });
    is_changed
}

fn execute(view: &View<'_>, inst: Inst, state: &mut State) {
    let body = view.body();
    let is_certain = body.insts[inst].guard.is_none();
    let result = result(view, inst, state).filter(|of| of.bits > 0);
    for reg in view.defs(inst) {
        let is_first =
            matches!(body.operands(inst).first(), Some(Operand::Reg(first)) if *first == reg);
        let new = result.clone().filter(|_| is_first);
        let new = match is_certain {
            true => new,
            false => new.zip(state.get(&reg)).map(|(new, old)| new.join(old)),
        };
        match new.filter(|of| of.bits > 0) {
            Some(of) => drop(state.insert(reg, of)),
            None => drop(state.remove(&reg)),
        }
    }
}

/// What an instruction's first result is congruent to.
fn result(view: &View<'_>, inst: Inst, state: &State) -> Option<Congruence> {
    let body = view.body();
    let opcode = view.module().opcode(&body.insts[inst]);
    let operands = body.operands(inst);
    let ty = *opcode.types.last()?;
    let arg = |n: usize| match operands.get(n)? {
        Operand::Reg(reg) => state.get(reg).cloned(),
        Operand::Imm(imm) => Some(Congruence::constant(imm.seen_as(ty))),
        _ => None,
    };
    // What is not known leaves anything modulo 1.
    let any = |n: usize| arg(n).unwrap_or(Congruence::new(0, 0));
    let words: Vec<&str> = opcode.mods().collect();
    if !opcode.types.iter().all(|&ty| integer_bits(ty).is_some()) {
        return None;
    }
    Some(match (opcode.op?, words.as_slice()) {
        (Op::Ld, _) => {
            let field = loaded_field(view, inst).filter(|field| field.bytes() == 8)?;
            let mut pointer = Congruence::new(POINTER, 0);
            pointer.pointers.insert(field);
            pointer
        }
        (Op::Mov, [_]) | (Op::Cvt, [_, _]) => arg(1)?,
        (Op::Cvta, ["to", "global", _] | ["global", _]) => arg(1)?,
        (Op::Add, [_]) => arg(1)?.sum(&arg(2)?, 1),
        (Op::Sub, [_]) => arg(1)?.sum(&arg(2)?, -1),
        (Op::Mul, ["lo" | "wide", _]) => any(1).product(&any(2)),
        (Op::Mad, ["lo" | "wide", _]) => any(1).product(&any(2)).sum(&arg(3)?, 1),
        (Op::Shl, [_]) => {
            let Some(Operand::Imm(by)) = operands.get(2) else {
                return None;
            };
            let by = by.seen_as(Type::U32).min(u64::from(BITS));
            any(1).product(&Congruence::constant(1 << by))
        }
        (Op::And, [_]) => {
            let Some(Operand::Imm(mask)) = operands.get(2) else {
                return None;
            };
            let (of, mask) = (any(1), mask.seen_as(ty));
            let zeros = mask.trailing_zeros().min(BITS);
            match zeros > of.bits {
                true => Congruence::new(zeros, 0),
                false => Congruence::new(of.bits, of.rest & mask).with([&of, &of]),
            }
        }
        (Op::Selp, [_]) => arg(1)?.join(&arg(2)?),
        _ => return None,
    })
}
