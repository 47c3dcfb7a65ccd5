//! What one function computes whatever its threads are: predicates that always hold or never do, and results that are
//! constants.
//!
//! Method: conditional constant propagation (Wegman and Zadeck, TOPLAS 13(2), 1991), with ranges in place of constants:
//! only ways that can be gone are followed, so that a loop that ends after its first turn shows it. Registers have a
//! range at the entry of each block; from the fourth visit on bounds that still move are given up (Cousot and Cousot,
//! POPL 1977).
//!
//! It is right by itself: each range holds all values that the register can have there, by induction over the
//! instructions that a thread has executed.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use warpwright_flow::{Block, Cfg, Inst, Liveness, Transfer, Value};

use crate::range::Range;
use crate::semantics::{Arg, Effect, Semantics, Step};

/// Visits of a block after which bounds that move are given up.
const VISITS: u32 = 3;

/// The results of an instruction, as far as they are constants.
pub(crate) type Results = SmallVec<[Option<(u64, u64)>; 2]>;

/// What is known of a function's instructions.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Guards that always hold, or never.
    pub(crate) guards: FxHashMap<Inst, bool>,
    /// Instructions with a constant among their results.
    pub(crate) values: FxHashMap<Inst, Results>,
}

/// Ranges of the registers at one point; what is not there may be anything.
type State = FxHashMap<Value, Range>;

impl Known {
    /// Analyses a function. Nothing is known where an instruction is not understood.
    pub(crate) fn of<S: Semantics>(func: &S) -> Known {
        let cfg = Cfg::new(func);
        let mut steps = Vec::new();
        for index in 0..func.inst_count() as u32 {
            match func.step(Inst(index)) {
                Ok(step) => steps.push(step),
                Err(_) => return Known::default(),
            }
        }
        let liveness = Liveness::new(func, &cfg);
        let mut analysis = Analysis {
            func,
            entries: vec![None; cfg.block_count()],
            visits: vec![0; cfg.block_count()],
            cfg,
            liveness,
            steps,
            known: Known::default(),
        };
        analysis.settle();
        analysis.record();
        analysis.known
    }
}

struct Analysis<'a, S> {
    func: &'a S,
    cfg: Cfg,
    liveness: Liveness,
    steps: Vec<Step>,
    /// Of each block that can be entered, the ranges of what is live there.
    entries: Vec<Option<State>>,
    visits: Vec<u32>,
    known: Known,
}

impl<S: Semantics> Analysis<'_, S> {
    fn settle(&mut self) {
        if self.cfg.block_count() == 0 {
            return;
        }
        self.entries[0] = Some(State::default());
        let mut work = BTreeSet::from([(0, Block(0))]);
        while let Some((_, block)) = work.pop_first() {
            let Some(mut state) = self.entries[block.as_u32() as usize].clone() else {
                continue;
            };
            for inst in self.cfg.insts(block) {
                self.execute(inst, &mut state, &mut |_, _, _| {});
            }
            for to in self.ways(block, &state) {
                if self.enter(block, to, &state) {
                    work.extend(self.cfg.rpo_number(to).map(|number| (number, to)));
                }
            }
        }
    }

    /// Writes down what came out.
    fn record(&mut self) {
        for block in self.cfg.blocks() {
            let Some(mut state) = self.entries[block.as_u32() as usize].clone() else {
                continue;
            };
            let mut known = std::mem::take(&mut self.known);
            for inst in self.cfg.insts(block) {
                self.execute(inst, &mut state, &mut |inst, guard, results| {
                    known.guards.extend(guard.map(|holds| (inst, holds)));
                    if results.iter().any(Option::is_some) {
                        known.values.insert(inst, results);
                    }
                });
            }
            self.known = known;
        }
    }

    fn guard(&self, step: &Step, state: &State) -> Option<bool> {
        let guard = step.guard?;
        let holds = read(state, guard.value).of_width(1).truth()?;
        Some(holds != guard.negated)
    }

    /// Executes an instruction; `tell` gets what its guard is known to be, and constants among its results.
    fn execute(
        &self,
        inst: Inst,
        state: &mut State,
        tell: &mut dyn FnMut(Inst, Option<bool>, Results),
    ) {
        let step = &self.steps[inst.as_u32() as usize];
        let guard = self.guard(step, state);
        if guard == Some(false) {
            return tell(inst, guard, Results::new());
        }
        let ranges: SmallVec<[Range; 2]> = self.results(step, state);
        tell(
            inst,
            guard,
            ranges.iter().map(|range| constant(*range)).collect(),
        );
        let is_certain = step.guard.is_none() || guard == Some(true);
        // Whatever else it writes may be anything.
        self.func.for_each_def(inst, |value| {
            let old = read(state, value);
            let at = step
                .results
                .iter()
                .rposition(|&result| result == Some(value));
            let new = at
                .and_then(|at| ranges.get(at))
                .copied()
                .unwrap_or(Range::ANY);
            state.insert(value, if is_certain { new } else { old.join(new) });
        });
    }

    fn results(&self, step: &Step, state: &State) -> SmallVec<[Range; 2]> {
        let count = step.results.len();
        let mut ranges: SmallVec<[Range; 2]> = SmallVec::from_elem(Range::ANY, count);
        if let (Effect::Pure, Some(fold)) = (step.effect, step.fold) {
            let args: SmallVec<[Range; 4]> =
                (0..step.args.len()).map(|n| arg(step, n, state)).collect();
            let first = fold.range(&args);
            // The second result of a comparison is the other answer.
            for (range, is_first) in ranges.iter_mut().zip([true, false]) {
                *range = match (is_first, first.truth()) {
                    (true, _) => first,
                    (false, Some(holds)) => Range::only(u64::from(!holds)),
                    (false, None) => Range::ANY,
                };
            }
        }
        for (range, known) in ranges.iter_mut().zip(&step.known) {
            *range = known.map_or(*range, |(low, high)| Range::new(low, high));
        }
        ranges
    }

    /// Where control can go from a block.
    fn ways(&self, block: Block, state: &State) -> Vec<Block> {
        let last = self.cfg.last_inst(block);
        let step = &self.steps[last.as_u32() as usize];
        let transfer = self.func.transfer(last);
        let next = Inst(last.0 + 1);
        let has_next = (next.as_u32() as usize) < self.func.inst_count();
        let next = has_next.then(|| self.cfg.block_of(next));
        let mut taken = Vec::new();
        self.func
            .for_each_target(last, |target| taken.push(self.cfg.block_of(target)));
        let is_conditional = self.func.is_predicated(last);
        match (transfer, self.guard(step, state)) {
            (Transfer::Next | Transfer::Call, _) => self.cfg.succs(block).to_vec(),
            (Transfer::Branch, _) => self.cfg.succs(block).to_vec(),
            (_, Some(true)) => taken,
            (_, Some(false)) => next.into_iter().collect(),
            (_, None) if is_conditional => taken.into_iter().chain(next).collect(),
            (_, None) => taken,
        }
    }

    /// Brings what is known over an edge; says whether that changes anything.
    fn enter(&mut self, from: Block, to: Block, state: &State) -> bool {
        let index = to.as_u32() as usize;
        let live = self.liveness.live_in(to);
        let Some(before) = &mut self.entries[index] else {
            let kept = live
                .iter()
                .filter_map(|&value| Some((value, *state.get(&value)?)));
            self.entries[index] = Some(kept.collect());
            return true;
        };
        let is_back = self.cfg.rpo_number(from) >= self.cfg.rpo_number(to);
        self.visits[index] += u32::from(is_back);
        let mut is_changed = false;
        before.retain(|value, range| {
            let Some(&new) = state.get(value) else {
                is_changed = true;
                return false;
            };
            let joined = range.join(new);
            let joined = match self.visits[index] > VISITS {
                true => range.widen(joined),
                false => joined,
            };
            is_changed |= joined != *range;
            *range = joined;
            true
        });
        is_changed
    }
}

fn constant(range: Range) -> Option<(u64, u64)> {
    range.value().map(|value| (value, value))
}

fn read(state: &State, value: Value) -> Range {
    state.get(&value).copied().unwrap_or(Range::ANY)
}

fn arg(step: &Step, index: usize, state: &State) -> Range {
    if let Some(&(_, low, high)) = step.bounds.iter().find(|bound| bound.0 == index) {
        return Range::new(low, high);
    }
    match step.args[index] {
        Arg::Value(value) => read(state, value),
        Arg::Not(value) => match read(state, value).of_width(1).truth() {
            Some(holds) => Range::only(u64::from(!holds)),
            None => Range::all(1),
        },
        Arg::Low { value, bits, .. } => {
            let range = read(state, value);
            let fits = range.high <= Range::all(bits).high;
            if fits { range } else { Range::all(bits) }
        }
        Arg::Const(bits) => Range::only(bits),
        _ => Range::ANY,
    }
}
