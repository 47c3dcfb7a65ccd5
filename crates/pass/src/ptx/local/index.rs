//! What an index is made of: constants alone, iterations of loops, or what only a run shows.
//!
//! A value is steady when nothing but the iteration decides it: each register that it is made of has one definition that
//! reaches it, or one in front of a loop and one that every iteration of the loop runs. With these loops unrolled it is a
//! constant.

use std::collections::BTreeSet;

use warpwright_flow::{self as flow, Block, Loop, Source};
use warpwright_ptx::opcode::{Control, Op};
use warpwright_ptx::{Base, Imm, Inst, Operand, Reg, Space, Symbol};

use super::{Index, Turns, Use, Walk};
use crate::ptx::unroll::counted::Counted;
use crate::ptx::unroll::region::Region;

/// More iterations are not unrolled: the code grows by each.
const MOST_TURNS: u64 = 1024;

/// Words of 2/π, most significant first, by which `sinf` and its kin reduce large arguments (Payne and Hanek, "Radian
/// reduction for trigonometric functions", SIGNUM 1983).
const TWO_OVER_PI: [u32; 2] = [0xa2f9_836e, 0x4e44_1529];

/// Where the library of older toolkits keeps these words.
const TABLE: &str = "__cudart_i2opi";

/// What a walk through steady values has met.
#[derive(Default)]
struct Seen {
    values: BTreeSet<(Reg, Inst)>,
    /// The loops whose iterations decide.
    loops: BTreeSet<Loop>,
}

fn inst_of(source: Source) -> Option<Inst> {
    match source {
        Source::Entry => None,
        Source::Inst(inst) => Some(Inst::from_u32(inst.0)),
    }
}

impl Walk<'_> {
    /// What the index of an access is made of, and the loops whose iterations decide it, by the branch that leaves them or
    /// goes back; none where it is constant.
    pub(super) fn index(&self, found: &Use) -> Option<(Index, BTreeSet<Inst>)> {
        let only = |index: Index| Some((index, BTreeSet::new()));
        let Some(base) = found.base else {
            return only(Index::Computed);
        };
        if let Some(why) = self.given(&self.slice(base, found.inst)) {
            return only(why);
        }
        let mut seen = Seen::default();
        match self.steady(base, found.inst, &mut seen) {
            Ok(()) => self.by_loops(&seen.loops),
            Err(merged) => only(self.merged(base, found.inst, &merged)),
        }
    }

    /// The index that is not steady, since these definitions meet.
    fn merged(&self, base: Reg, at: Inst, merged: &[Inst]) -> Index {
        let goes_round = |&of: &Loop| {
            merged.iter().any(|&inst| self.is_in(inst, of)) && self.goes_on(base, at, of)
        };
        let Some(of) = self.around(self.block(at)).find(goes_round) else {
            return Index::Computed;
        };
        let Some(&exit) = self.exits(of).last() else {
            return Index::Computed;
        };
        let mut inside = merged.iter().filter(|&&inst| self.is_in(inst, of));
        match (inside.next(), inside.next()) {
            // One step for every iteration: only where it begins is decided by branches.
            (Some(&step), None)
                if self.body.insts[step].guard.is_none()
                    && self.is_run_each_time(self.block(step), of) =>
            {
                match self.turns(of) {
                    number @ Turns::Varying => Index::Turns { exit, number },
                    _ => Index::Computed,
                }
            }
            _ => Index::Moved { exit },
        }
    }

    /// The index that the iterations of loops decide.
    fn by_loops(&self, loops: &BTreeSet<Loop>) -> Option<(Index, BTreeSet<Inst>)> {
        let exits = loops
            .iter()
            .filter_map(|&of| Some((self.turns(of), *self.exits(of).last()?)));
        let all: Vec<(Turns, Inst)> = exits.collect();
        let (number, exit) = all.iter().copied().min()?;
        let index = match all.len() == loops.len() {
            true => Index::Turns { exit, number },
            false => Index::Computed,
        };
        Some((index, all.into_iter().map(|(_, exit)| exit).collect()))
    }

    fn block(&self, inst: Inst) -> Block {
        self.cfg.block_of(flow::Inst(inst.as_u32()))
    }

    /// The loops around a block, the innermost first.
    fn around(&self, block: Block) -> impl Iterator<Item = Loop> + '_ {
        let innermost = self.loops.innermost(block);
        std::iter::successors(innermost, |&of| self.loops.parent(of))
    }

    /// What reaches a use.
    fn reaching(&self, reg: Reg, at: Inst) -> Vec<Source> {
        let (at, value) = (flow::Inst(at.as_u32()), flow::Value(reg.as_u32()));
        self.def_use.reaching(self.view, &self.cfg, at, value)
    }

    /// The definitions that reach a use.
    fn defs(&self, reg: Reg, at: Inst) -> impl Iterator<Item = Inst> {
        self.reaching(reg, at).into_iter().filter_map(inst_of)
    }

    /// Is a register before an instruction steady? Otherwise the definitions that meet where it is not.
    fn steady(&self, reg: Reg, at: Inst, seen: &mut Seen) -> Result<(), Vec<Inst>> {
        if !seen.values.insert((reg, at)) {
            return Ok(());
        }
        let defs: Vec<Inst> = self.defs(reg, at).collect();
        if self.reaching(reg, at).contains(&Source::Entry) {
            return Err(defs);
        }
        if let [first, again] = defs[..] {
            let carried = [(first, again), (again, first)]
                .into_iter()
                .find_map(|(first, again)| self.carried(reg, at, first, again));
            seen.loops.extend(carried.ok_or_else(|| defs.clone())?);
        } else if defs.len() != 1 {
            return Err(defs);
        }
        for &def in &defs {
            for of in self.around(self.block(def)) {
                // What leaves a loop by its only way out is what the last iteration made.
                if !self.loops.contains(of, self.block(at)) {
                    if self.exits(of).len() != 1 {
                        return Err(defs);
                    }
                    seen.loops.insert(of);
                }
            }
            for used in self.view.uses(def) {
                self.steady(used, def, seen)?;
            }
        }
        Ok(())
    }

    /// The loops around `again`, up to the outermost that `first` stands in front of, where each of their iterations runs
    /// `again` once and goes on from what it made.
    fn carried(&self, reg: Reg, at: Inst, first: Inst, again: Inst) -> Option<Vec<Loop>> {
        let all = self.around(self.block(again));
        let all: Vec<Loop> = all.take_while(|&of| !self.is_in(first, of)).collect();
        let &outermost = all.last()?;
        if !self.is_in(at, outermost) || self.body.insts[again].guard.is_some() {
            return None;
        }
        let mut runs = self.block(again);
        for (number, &of) in all.iter().enumerate() {
            let is_run = self.is_run_each_time(runs, of) && !self.loops.is_irreducible(of);
            let is_left_once = number + 1 == all.len() || self.exits(of).len() == 1;
            if !is_run || !is_left_once {
                return None;
            }
            runs = self.loops.header(of);
        }
        let header = self.loops.header(outermost);
        let mut before = self.cfg.preds(header).iter().copied();
        let is_first = |block: Block| {
            let last = Inst::from_u32(self.cfg.last_inst(block).0);
            let is_set = self.view.defs(last).contains(&reg);
            let only = [Source::Inst(flow::Inst(first.as_u32()))];
            last == first || !is_set && self.reaching(reg, last) == only
        };
        before
            .all(|block| self.loops.contains(outermost, block) || is_first(block))
            .then_some(all)
    }

    /// Does each iteration of a loop run this block?
    fn is_run_each_time(&self, block: Block, of: Loop) -> bool {
        let back = self.cfg.preds(self.loops.header(of)).iter();
        let mut back = back.filter(|&&from| self.loops.contains(of, from));
        back.all(|&from| self.dominators.dominates(block, from))
    }

    /// How many iterations a loop has.
    fn turns(&self, of: Loop) -> Turns {
        let exits = self.exits(of);
        let is_given = |&exit: &Inst| {
            let guard = self.body.insts[exit].guard;
            guard.is_some_and(|guard| self.given(&self.slice(guard.reg, exit)).is_some())
        };
        if exits.iter().all(is_given) {
            return Turns::Varying;
        }
        let region = Region::new(self.view, &self.cfg, &self.loops, of).ok();
        let most = region.and_then(|region| {
            let counted = Counted::new(self.view, &self.cfg, &region, 2).ok()?;
            counted.most(self.view, &region)
        });
        match most.filter(|_| !exits.iter().any(is_given)) {
            None => Turns::Unknown,
            Some(0..=MOST_TURNS) => Turns::Constant,
            Some(_) => Turns::Many,
        }
    }

    /// All that a register is made of before an instruction.
    fn slice(&self, of: Reg, at: Inst) -> BTreeSet<Inst> {
        self.slice_within(of, at, |_| true)
    }

    /// The same, as far as `is_in` goes.
    fn slice_within(&self, of: Reg, at: Inst, is_in: impl Fn(Inst) -> bool) -> BTreeSet<Inst> {
        let mut found = BTreeSet::new();
        let mut open = vec![(of, at)];
        while let Some((reg, at)) = open.pop() {
            for inst in self.defs(reg, at) {
                if is_in(inst) && found.insert(inst) {
                    open.extend(self.view.uses(inst).into_iter().map(|used| (used, inst)));
                }
            }
        }
        found
    }

    /// The first thing among instructions that is no constant.
    fn given(&self, slice: &BTreeSet<Inst>) -> Option<Index> {
        let of = |&inst: &Inst| {
            let opcode = self.module.opcode(&self.body.insts[inst]);
            if opcode.op == Some(Op::Ld) && opcode.space == Some(Space::Param) {
                return Some(Index::Parameter);
            }
            if !opcode.is_pure() {
                return Some(Index::Loaded(inst));
            }
            let operands = self.body.operands(inst);
            let is_special = |operand: &Operand| matches!(operand, Operand::Special { .. });
            operands.iter().any(is_special).then_some(Index::Thread)
        };
        let all: Vec<Index> = slice.iter().filter_map(of).collect();
        let rank = |index: &&Index| match index {
            Index::Loaded(_) => 0,
            Index::Thread => 1,
            _ => 2,
        };
        all.iter().min_by_key(rank).copied()
    }

    fn is_in(&self, inst: Inst, of: Loop) -> bool {
        self.loops.contains(of, self.block(inst))
    }

    /// Does a register depend on its own value in the iteration before?
    fn goes_on(&self, of: Reg, at: Inst, around: Loop) -> bool {
        let mut left = self.slice_within(of, at, |inst| self.is_in(inst, around));
        // What needs nothing that is left goes, until nothing does: the rest goes round.
        loop {
            let needs = |inst: &Inst| {
                let uses = self.view.uses(*inst).into_iter();
                let mut defs = uses.flat_map(|reg| self.defs(reg, *inst));
                defs.any(|def| left.contains(&def))
            };
            let kept: BTreeSet<Inst> = left.iter().copied().filter(needs).collect();
            if kept.len() == left.len() {
                return !left.is_empty();
            }
            left = kept;
        }
    }

    /// The conditional branches that leave a loop.
    fn exits(&self, of: Loop) -> Vec<Inst> {
        let insts = self.body.insts.keys().filter(|&inst| self.is_in(inst, of));
        let leaves = |inst: &Inst| {
            let data = &self.body.insts[*inst];
            let is_branch = self.module.opcode(data).control() != Control::Next;
            let is_out = |&to: &Block| !self.loops.contains(of, to);
            let succs = self.cfg.succs(self.block(*inst));
            is_branch && data.guard.is_some() && succs.iter().any(is_out)
        };
        insts.filter(leaves).collect()
    }

    /// Do accesses store what words of 2/π make?
    pub(super) fn is_trigonometric(&self, accesses: &[&Use]) -> bool {
        let stores = accesses.iter().map(|found| found.inst);
        let made: BTreeSet<Inst> = stores
            .filter(|&inst| self.op(inst) == Some(Op::St))
            .flat_map(|inst| {
                let uses = self.view.uses(inst).into_iter();
                uses.flat_map(move |reg| self.slice(reg, inst))
            })
            .collect();
        let operands = || made.iter().flat_map(|&inst| self.body.operands(inst));
        let has = |word: u32| {
            operands().any(|operand| match operand {
                Operand::Imm(Imm::Int { value, .. }) => *value as u32 == word,
                _ => false,
            })
        };
        let is_table = |operand: &Operand| {
            let symbol = match operand {
                Operand::Symbol { symbol, .. } => *symbol,
                Operand::Mem(address) => match address.base {
                    Base::Symbol(symbol) => symbol,
                    _ => return false,
                },
                _ => return false,
            };
            match symbol {
                Symbol::Var(var) => self.module.variables[var].name.starts_with(TABLE),
                _ => false,
            }
        };
        TWO_OVER_PI.into_iter().all(has) || operands().any(is_table)
    }
}
