//! The state of both functions while a node of the product graph is executed.

use std::rc::Rc;

use warpwright_flow::{Block, Cfg, Inst, Liveness, Value};

use crate::memory::Extents;
use crate::semantics::{Semantics, Step, Unsupported};
use crate::slots::{Misplaced, Slots};
use crate::state::{Layout, MEMORIES, State};
use crate::term::{Args, Head, Side, Sym, Term, Terms};

/// One of the two functions, with everything that is looked up again and again.
pub(crate) struct Function<'a, S> {
    pub(crate) func: &'a S,
    pub(crate) cfg: Cfg,
    /// Locations that need not be kept; see [`crate::state`].
    pub(crate) liveness: Liveness,
    steps: Vec<Option<Rc<(Step, Sym)>>>,
}

impl<'a, S: Semantics> Function<'a, S> {
    /// Translates all reachable instructions.
    pub(crate) fn new(func: &'a S, terms: &mut Terms) -> Result<Self, (Inst, Unsupported)> {
        let cfg = Cfg::new(func);
        let liveness = Liveness::new(func, &cfg);
        let mut steps = vec![None; func.inst_count()];
        for &block in cfg.reverse_postorder() {
            for inst in cfg.insts(block) {
                let step = func.step(inst).map_err(|error| (inst, error))?;
                let sym = terms.sym(&step.op);
                steps[inst.as_u32() as usize] = Some(Rc::new((step, sym)));
            }
        }
        Ok(Function {
            func,
            cfg,
            liveness,
            steps,
        })
    }

    /// Does the set of threads that execute it together matter?
    pub(crate) fn is_collective(&self, inst: Inst) -> bool {
        let step = self.steps.get(inst.as_u32() as usize);
        step.is_some_and(|step| step.as_ref().is_some_and(|step| step.0.is_collective))
    }

    fn step(&self, inst: Inst) -> Option<Rc<(Step, Sym)>> {
        self.steps.get(inst.as_u32() as usize)?.clone()
    }
}

/// Something that the other function must do too.
#[derive(Clone, Debug)]
pub(crate) struct Observable {
    pub(crate) inst: Inst,
    /// Memories that it changes, as bits.
    pub(crate) memories: u8,
    pub(crate) op: Sym,
    /// Guard, address, values; an event's guard and arguments.
    pub(crate) content: Args,
    /// Is it a plain store?
    pub(crate) is_store: bool,
}

/// A load that was executed: its first result, and its guard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded {
    pub(crate) inst: Inst,
    pub(crate) term: Term,
    pub(crate) guard: Term,
    pub(crate) is_safe: bool,
    /// Events of its function at this node before it: each might be the thread's last.
    pub(crate) after: usize,
}

/// An access to memory that both versions have, whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessed {
    pub(crate) inst: Inst,
    pub(crate) address: Term,
    /// All elements together.
    pub(crate) bytes: u32,
    pub(crate) guard: Term,
    /// Must its alignment be shown?
    pub(crate) is_wide: bool,
    /// Events of its function at this node before it.
    pub(crate) after: usize,
}

/// What happened at one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) observables: [Vec<Observable>; 2],
    /// How many of them are events, of which a thread may not come back.
    pub(crate) events: [usize; 2],
    pub(crate) loads: [Vec<Loaded>; 2],
    pub(crate) accesses: [Vec<Accessed>; 2],
    pub(crate) misplaced: Vec<(Inst, Misplaced)>,
}

/// Registers of one function while a node is executed.
#[derive(Debug, Default)]
struct Registers {
    terms: Vec<Term>,
    /// A register is set if this is the current epoch.
    stamps: Vec<u32>,
}

/// The state of both functions at one point, as it is being executed.
pub(crate) struct Machine<'a, S> {
    pub(crate) functions: [Function<'a, S>; 2],
    pub(crate) terms: Terms,
    pub(crate) slots: Slots,
    pub(crate) extents: Extents,
    pub(crate) log: Log,
    pub(crate) node: u32,
    epoch: u32,
    registers: [Registers; 2],
    pub(crate) flags: [Term; 2],
    pub(crate) memories: [[Term; MEMORIES]; 2],
    pub(crate) slot_values: Vec<Term>,
    pub(crate) truth: Term,
    /// Instructions executed, locations joined and pairs of terms compared so far.
    pub(crate) work: u64,
}

pub(crate) const SIDES: [Side; 2] = [Side::Original, Side::Rewritten];
pub(crate) const REWRITTEN: usize = 1;

impl<'a, S: Semantics> Machine<'a, S> {
    pub(crate) fn new(functions: [Function<'a, S>; 2], mut terms: Terms, slots: Slots) -> Self {
        let truth = terms.constant(1);
        let registers = [0, 1].map(|side: usize| {
            let values = functions[side].func.value_count();
            Registers {
                terms: vec![truth; values],
                stamps: vec![0; values],
            }
        });
        Machine {
            functions,
            terms,
            slots,
            extents: Extents::default(),
            log: Log::default(),
            node: 0,
            epoch: 0,
            registers,
            flags: [truth; 2],
            memories: [[truth; MEMORIES]; 2],
            slot_values: Vec::new(),
            truth,
            work: 0,
        }
    }

    fn live_in(&self, side: usize, block: Option<Block>) -> &[Value] {
        block.map_or(&[], |block| self.functions[side].liveness.live_in(block))
    }

    /// Where locations stand in the states of a node that starts at these blocks.
    pub(crate) fn layout(&self, blocks: [Option<Block>; 2]) -> Layout {
        Layout {
            original: self.live_in(0, blocks[0]).len(),
            rewritten: self.live_in(1, blocks[1]).len(),
        }
    }

    /// The register at a position of a state, with its function.
    pub(crate) fn register_at(
        &self,
        blocks: [Option<Block>; 2],
        position: usize,
    ) -> Option<(usize, Value)> {
        let original = self.live_in(0, blocks[0]);
        let value = |side, at: usize| Some((side, *self.live_in(side, blocks[side]).get(at)?));
        match position.checked_sub(original.len()) {
            None => value(0, position),
            Some(at) => value(1, at),
        }
    }

    /// The state in which both functions are entered. `given` says what the original's unset
    /// registers are taken to hold.
    pub(crate) fn entry_state(
        &mut self,
        blocks: [Option<Block>; 2],
        given: &dyn Fn(Value) -> Option<Term>,
    ) -> State {
        let mut state = State::new();
        for side in [0, 1] {
            for value in self.live_in(side, blocks[side]).to_vec() {
                let named = self.functions[side].func.entry_name(value);
                let given = if side == 0 { given(value) } else { None };
                state.push(match (named, given) {
                    (Some(name), _) => self.terms.input(&name),
                    (None, Some(term)) => term,
                    (None, None) => self.terms.leaf(Head::Unset(SIDES[side], value)),
                });
            }
        }
        // A carry flag before it is set, which stands for no register. Like the original's other unset
        // registers it is taken to hold what makes the two agree.
        let unset = self
            .terms
            .leaf(Head::Unset(Side::Rewritten, Value(u32::MAX)));
        state.extend([unset; 2]);
        for _ in SIDES {
            for memory in 0..MEMORIES {
                state.push(self.terms.leaf(Head::Memory(memory as u8)));
            }
        }
        for slot in 0..self.slots.slots.len() {
            let name = self.slots.number(slot as u32);
            state.push(self.terms.leaf(Head::SlotUnset(name)));
        }
        state
    }

    /// Goes to the start of `node` with `state`.
    pub(crate) fn enter(&mut self, node: u32, blocks: [Option<Block>; 2], state: &State) {
        self.node = node;
        self.epoch += 1;
        self.work += state.len() as u64;
        self.log = Log::default();
        let layout = self.layout(blocks);
        let mut position = 0;
        for side in [0, 1] {
            let live: &[Value] = match blocks[side] {
                Some(block) => self.functions[side].liveness.live_in(block),
                None => &[],
            };
            let registers = &mut self.registers[side];
            for value in live {
                let index = value.as_u32() as usize;
                registers.terms[index] = state[position];
                registers.stamps[index] = self.epoch;
                position += 1;
            }
            self.flags[side] = state[layout.flag(side)];
            for memory in 0..MEMORIES {
                self.memories[side][memory] = state[layout.memory(side, memory)];
            }
        }
        self.slot_values = state.get(layout.slot(0)..).unwrap_or(&[]).to_vec();
        self.fill_slots();
    }

    /// Gives slots that were found meanwhile their first content.
    pub(crate) fn fill_slots(&mut self) {
        for slot in self.slot_values.len()..self.slots.slots.len() {
            let name = self.slots.number(slot as u32);
            let unset = self.terms.leaf(Head::SlotUnset(name));
            self.slot_values.push(unset);
        }
    }

    /// The current state as a node that starts at these blocks sees it.
    pub(crate) fn leave(&mut self, blocks: [Option<Block>; 2]) -> State {
        let mut state = State::new();
        for side in [0, 1] {
            for value in self.live_in(side, blocks[side]).to_vec() {
                state.push(self.read(side, value));
            }
        }
        state.extend(self.flags);
        state.extend(self.memories.iter().flatten());
        state.extend(&self.slot_values);
        state
    }

    /// Executes a block of one function.
    pub(crate) fn run(&mut self, side: usize, block: Block) {
        for inst in self.functions[side].cfg.insts(block) {
            self.work += 1;
            if let Some(step) = self.functions[side].step(inst) {
                self.execute(side, inst, &step.0, step.1);
            }
        }
    }

    /// What a deciding instruction decides by: operation, guard and arguments.
    pub(crate) fn condition(
        &mut self,
        side: usize,
        inst: Inst,
        is_flipped: bool,
    ) -> Option<Observable> {
        let step = self.functions[side].step(inst)?;
        let (step, op) = &*step;
        let mut guard = self.guard(side, step);
        if is_flipped {
            guard = self.terms.not(guard);
        }
        let mut content = Args::from_slice(&[guard]);
        for arg in &step.args {
            content.push(self.arg(side, arg, guard));
        }
        Some(Observable {
            inst,
            memories: 0,
            op: *op,
            content,
            is_store: false,
        })
    }

    pub(crate) fn read(&mut self, side: usize, value: Value) -> Term {
        let index = value.as_u32() as usize;
        let registers = &self.registers[side];
        match registers.stamps.get(index) {
            Some(&stamp) if stamp == self.epoch => registers.terms[index],
            _ => self
                .terms
                .leaf(Head::Unknown(self.node, SIDES[side], value)),
        }
    }

    pub(crate) fn write(&mut self, side: usize, value: Value, term: Term, guard: Term) {
        let term = if guard == self.truth {
            term
        } else {
            let old = self.read(side, value);
            self.terms.select(guard, term, old)
        };
        let index = value.as_u32() as usize;
        self.registers[side].terms[index] = term;
        self.registers[side].stamps[index] = self.epoch;
    }
}
