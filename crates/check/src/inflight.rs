//! Registers that an asynchronous operation still reads or writes after its instruction has been
//! passed (`wgmma`, `tcgen05.ld`).
//!
//! The terms take such an operation to happen at once. That is right if nobody touches its registers
//! before the wait (nor, for `wgmma`, writes them between the last fence and the operation), which
//! is checked here for the rewritten function; the original is taken to keep the rule. Operations
//! of the same queue may share their accumulators, all of them in place. A wait or a fence under a guard is none.

use rustc_hash::FxHashSet;
use warpwright_flow::{Block, Cfg, Inst, Queue, Value};

use crate::semantics::Semantics;

/// An instruction that touches a register in flight, and the operation that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) inst: Inst,
    pub(crate) holder: Inst,
    pub(crate) value: Value,
}

/// The first reachable operation that has a register touched, and where.
pub(crate) fn find(func: &impl Semantics, cfg: &Cfg) -> Option<Touched> {
    for &block in cfg.reverse_postorder() {
        for holder in cfg.insts(block) {
            let mut held = Vec::new();
            func.for_each_held(holder, |queue, value| held.push((queue, value)));
            for (queue, value) in held {
                let flight = Flight {
                    func,
                    cfg,
                    holder,
                    queue,
                    value,
                };
                if let Some(inst) = flight.after().or_else(|| flight.before()) {
                    return Some(Touched {
                        inst,
                        holder,
                        value,
                    });
                }
            }
        }
    }
    None
}

/// One register of one operation.
struct Flight<'a, F> {
    func: &'a F,
    cfg: &'a Cfg,
    holder: Inst,
    queue: Queue,
    value: Value,
}

/// What an instruction means for a walk.
enum Encounter {
    /// The walk ends here.
    Stop,
    /// The register is touched.
    Touch,
    /// On.
    Go,
}

impl<F: Semantics> Flight<'_, F> {
    /// Who touches the register between the operation and the wait? One that the operation writes
    /// may not even be read.
    fn after(&self) -> Option<Inst> {
        let is_written = self.defines(self.holder);
        let step = |inst| {
            if self.is_certain(inst) && self.func.waits(inst).contains(self.queue) {
                return Encounter::Stop;
            }
            let mut touches = self.defines(inst);
            if is_written {
                self.func
                    .for_each_use(inst, |value| touches |= value == self.value);
            }
            if touches && !self.shares(inst) {
                Encounter::Touch
            } else {
                Encounter::Go
            }
        };
        let start = self.cfg.block_of(self.holder);
        let rest = self.cfg.insts(start).filter(|inst| *inst > self.holder);
        self.search(
            rest,
            |block| self.cfg.insts(block),
            |block| self.cfg.succs(block),
            step,
        )
    }

    /// Who writes the register between the last fence and the operation?
    fn before(&self) -> Option<Inst> {
        if !self.func.needs_fence(self.queue) {
            return None;
        }
        let step = |inst| match () {
            () if self.is_certain(inst) && self.func.is_fence(self.queue, inst) => Encounter::Stop,
            () if self.defines(inst) && !self.shares(inst) => Encounter::Touch,
            () => Encounter::Go,
        };
        let start = self.cfg.block_of(self.holder);
        let rest = self
            .cfg
            .insts(start)
            .rev()
            .filter(|inst| *inst < self.holder);
        self.search(
            rest,
            |block| self.cfg.insts(block).rev(),
            |block| self.cfg.preds(block),
            step,
        )
    }

    fn defines(&self, inst: Inst) -> bool {
        let mut defines = false;
        self.func
            .for_each_def(inst, |value| defines |= value == self.value);
        defines
    }

    /// Is it executed whatever happens?
    fn is_certain(&self, inst: Inst) -> bool {
        !self.func.is_predicated(inst)
    }

    /// Does it add to the holder's own sums, the register being one of them?
    fn shares(&self, inst: Inst) -> bool {
        let mut is_held = false;
        self.func.for_each_held(inst, |queue, value| {
            is_held |= queue == self.queue && value == self.value;
        });
        let [own, other] = [self.holder, inst].map(|inst| self.sums(inst));
        is_held && own == other && own.contains(&self.value)
    }

    /// What an operation reads and writes, in order.
    fn sums(&self, inst: Inst) -> Vec<Value> {
        let mut read = FxHashSet::default();
        self.func.for_each_use(inst, |value| _ = read.insert(value));
        let mut sums = Vec::new();
        self.func.for_each_def(inst, |value| {
            sums.extend(read.contains(&value).then_some(value))
        });
        sums
    }

    /// Walks from the rest of the operation's block over all blocks that follow.
    fn search<'b, I: Iterator<Item = Inst>>(
        &self,
        mut rest: impl Iterator<Item = Inst>,
        insts: impl Fn(Block) -> I,
        next: impl Fn(Block) -> &'b [Block],
        step: impl Fn(Inst) -> Encounter,
    ) -> Option<Inst> {
        /// The touching instruction, or whether the walk goes on behind the block.
        fn walk(
            insts: &mut dyn Iterator<Item = Inst>,
            step: &dyn Fn(Inst) -> Encounter,
        ) -> Result<bool, Inst> {
            for inst in insts {
                match step(inst) {
                    Encounter::Stop => return Ok(false),
                    Encounter::Touch => return Err(inst),
                    Encounter::Go => {}
                }
            }
            Ok(true)
        }
        let mut seen: FxHashSet<Block> = FxHashSet::default();
        let mut work = Vec::new();
        match walk(&mut rest, &step) {
            Err(inst) => return Some(inst),
            Ok(true) => work.extend_from_slice(next(self.cfg.block_of(self.holder))),
            Ok(false) => {}
        }
        while let Some(block) = work.pop() {
            if !seen.insert(block) {
                continue;
            }
            match walk(&mut insts(block), &step) {
                Err(inst) => return Some(inst),
                Ok(true) => work.extend_from_slice(next(block)),
                Ok(false) => {}
            }
        }
        None
    }
}
