//! Another order for the instructions of a block.
//!
//! Goal: instructions whose results come late begin early, and what waits for them comes as late as it may, so that
//! one warp waits less. Paper: RegDem (section 3.4.2) hoists the loads that it inserted; here every instruction
//! may move, by list scheduling (Gibbons and Muchnick, Efficient Instruction Scheduling for a Pipelined Architecture,
//! 1986: forward), over the graph of [`graph`].
//!
//! Of those that are ready the next one is chosen by [`Priority`]. What waits for a load from global or local memory never
//! goes before such a load that stood in front of it ([`graph::Far`]): as many stay in flight as ptxas had. Registers
//! keep their names, so a schedule never needs more of them: what an earlier instruction still reads or writes keeps a
//! later one away.
//!
//! A block that is a loop by itself is looked at for two turns, so that a load for the next turn begins early; what other
//! blocks load and do not read is waited for behind them.
//!
//! Where few registers are the goal ([`Scheduler::within`]), they are to get other names afterwards, so that the graph is
//! that of their values; orders that need few of them are looked for first ([`pressure`]), and what is ready goes ahead of
//! its place in such an order, by [`Priority`], as registers allow.
//!
//! Time is estimated as the hardware issues: one instruction in a cycle, in order, each when the distances to what it
//! depends on have passed and its port is free. The same estimate rates the order as it was, and the old one is kept
//! where the new one is not shorter.

pub mod graph;
pub mod pressure;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use warpwright_flow::{Cfg, Inst, Liveness};
use warpwright_target::IssueUnits;

use crate::demote::General;
use crate::function::Code;
use crate::hazards::Unchecked;
use crate::ir::{Ir, Op};
use graph::{Analysis, Graph};
use pressure::{Pieces, Room};

/// Which of several instructions that could issue goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// The one with the longest way to the end of the block, in cycles.
    Height,
    /// The one that came first: the order changes only where an instruction would wait.
    Place,
    /// As by height, with heights of up to an eighth more or less, by this seed. The order is taken unless it is longer
    /// by more than a sixteenth: what the estimate does not know, measuring may find.
    Varied(u32),
}

impl Priority {
    /// May an order that takes `after` cycles stand for one that took `before`?
    pub fn takes(self, before: f64, after: f64) -> bool {
        match self {
            Priority::Height | Priority::Place => after < before,
            Priority::Varied(_) => after <= before * 17.0 / 16.0,
        }
    }
}

/// A height of up to an eighth more or less.
fn varied(seed: u32, node: usize, height: u32) -> u32 {
    let mut hash = FxHasher::default();
    (seed, node).hash(&mut hash);
    let more = (hash.finish() >> 32) as u32 % (height / 4 + 2);
    height + more - (height / 8).min(height)
}

/// What a new order brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// Cycles of the block, alone on the machine; of a loop those of a turn.
    pub before: u32,
    /// The same in the new order.
    pub after: u32,
    /// Cycles in which its instructions issue: what remains where other warps fill the waits.
    pub issues: u32,
    /// Instructions that stand elsewhere now.
    pub moved: u32,
}

/// An order of a block that was looked for with few registers as the goal.
#[derive(Debug, Clone)]
pub struct Within {
    /// What it brings.
    pub estimate: Estimate,
    /// The new n-th instruction is the old one at the n-th of these places; none where the order stays.
    pub places: Option<Vec<usize>>,
    /// General registers that the block needs at once as it was, and so.
    pub registers: [u32; 2],
}

/// The graph of a block, and that of two turns where it is a loop.
struct Trip {
    once: Graph,
    twice: Option<Graph>,
}

/// What may go next, beyond what dependences say.
trait Gate {
    /// May an instruction go ahead of those that stand before it?
    fn lets(&self, node: usize) -> bool;
    /// The one that goes where no other may.
    fn first(&self) -> Option<usize>;
    /// An instruction was issued.
    fn issued(&mut self, node: usize);
}

/// All may go.
struct Open;

impl Gate for Open {
    fn lets(&self, _: usize) -> bool {
        true
    }

    fn first(&self) -> Option<usize> {
        None
    }

    fn issued(&mut self, _: usize) {}
}

/// What is known of a function's instructions, for all its blocks.
pub struct Scheduler {
    analysis: Analysis,
    cfg: Cfg,
    units: &'static IssueUnits,
    ports: Vec<Option<u8>>,
}

impl Scheduler {
    /// Looks at the function that an [`Ir`] was taken from.
    ///
    /// # Errors
    /// Something is not known well enough.
    pub fn new(code: &Code) -> Result<Scheduler, Unchecked> {
        let sm = code.instructions().first().map_or(0, |inst| inst.sm());
        let units = IssueUnits::for_sm(sm).ok_or(Unchecked::Architecture(sm))?;
        let ports = code.instructions().iter();
        Ok(Scheduler {
            analysis: Analysis::new(code)?,
            cfg: Cfg::new(code),
            units,
            ports: ports
                .map(|inst| units.port(inst.operation().number()))
                .collect(),
        })
    }

    /// A better order for a block of instructions that all come from the code, by their places in it, if there is one.
    pub fn block(
        &self,
        code: &Code,
        ops: &[Op],
        priority: Priority,
    ) -> (Estimate, Option<Vec<usize>>) {
        let Some(places) = origins(ops) else {
            return (Estimate::default(), None);
        };
        let trip = self.trip(code, &places, None);
        let own: Vec<usize> = (0..places.len()).collect();
        let before = self.time(&trip, &places, &own);
        let rank = Scheduler::ranks(&trip, places.len(), priority);
        let order = self.list(&trip.once, &rank, &places, &mut Open);
        let after = self.time(&trip, &places, &order);
        let moved = moved(&order);
        let is_taken = moved > 0 && priority.takes(before.into(), after.into());
        let estimate = Estimate {
            before,
            after: if is_taken { after } else { before },
            issues: self.issues(&places),
            moved,
        };
        (estimate, is_taken.then_some(order))
    }

    /// Which general registers are live where.
    pub fn liveness(&self, general: &General<'_>) -> Liveness {
        Liveness::new(general, &self.cfg)
    }

    /// An order for such a block that needs `limit` general registers at most, or as few as are found, and is then the
    /// shortest of those by `priorities`; the old one where no other is better. Values of `general` are to get registers
    /// anew afterwards.
    pub fn within(
        &self,
        (code, general): (&Code, &General<'_>),
        liveness: &Liveness,
        ops: &[Op],
        (priorities, limit): (&[Priority], u32),
    ) -> Within {
        let Some(places) = origins(ops) else {
            return Within {
                estimate: Estimate::default(),
                places: None,
                registers: [0; 2],
            };
        };
        let insts: Vec<Inst> = places.iter().map(|&at| Inst(at as u32)).collect();
        let pieces = Pieces::new(general, (&self.cfg, liveness), &insts);
        let trip = self.trip(code, &places, Some(general));
        let own: Vec<usize> = (0..places.len()).collect();
        let over = |order: &Vec<usize>| pieces.most_in(order).max(limit);
        let mut found = vec![own.clone()];
        if over(&own) > limit {
            found.extend(pieces.orders(&trip.once));
        }
        let base = found.into_iter().min_by_key(over).unwrap_or_default();
        let ahead = priorities.iter().map(|&priority| -> Vec<usize> {
            let rank = Scheduler::ranks(&trip, places.len(), priority);
            let of_base =
                |all: &[usize]| -> Vec<usize> { base.iter().map(|&at| all[at]).collect() };
            let rank: Vec<u32> = base.iter().map(|&at| rank[at]).collect();
            let mut room = Room::new(pieces.in_order(&base), limit);
            let graph = trip.once.in_order(&base);
            let order = self.list(&graph, &rank, &of_base(&places), &mut room);
            order.into_iter().map(|at| base[at]).collect()
        });
        let all = std::iter::once(base.clone()).chain(ahead);
        let all =
            all.map(|order: Vec<usize>| (over(&order), self.time(&trip, &places, &order), order));
        let best = all.min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        let (_, after, order) = best.unwrap_or((0, 0, own.clone()));
        let moved = moved(&order);
        Within {
            estimate: Estimate {
                before: self.time(&trip, &places, &own),
                after,
                issues: self.issues(&places),
                moved,
            },
            registers: [&own, &order].map(|order| pieces.most_in(order)),
            places: (moved > 0).then_some(order),
        }
    }

    fn trip(&self, code: &Code, places: &[usize], renamed: Option<&General<'_>>) -> Trip {
        let insts: Vec<Inst> = places.iter().map(|&at| Inst(at as u32)).collect();
        let graph = |insts: &[Inst]| self.analysis.graph(code, insts, renamed);
        Trip {
            once: graph(&insts),
            twice: (self.is_loop(&insts)).then(|| graph(&[&insts[..], &insts].concat())),
        }
    }

    /// Cycles in which so many instructions issue one after the other, each port kept busy as long as it is.
    fn issues(&self, places: &[usize]) -> u32 {
        let mut clock = Clock::new(self.units);
        for &place in places {
            clock.issue(self.ports[place], 0);
        }
        clock.now
    }

    /// Does a block end where it begins?
    fn is_loop(&self, block: &[Inst]) -> bool {
        let whole = self.cfg.block_of(block[0]);
        let ends = [self.cfg.first_inst(whole), self.cfg.last_inst(whole)];
        ends == [block[0], block[block.len() - 1]] && self.cfg.succs(whole).contains(&whole)
    }

    /// Cycles that the block takes in this order: of a loop one turn behind another, else until what is behind the block
    /// has what it loads.
    fn time(&self, trip: &Trip, places: &[usize], order: &[usize]) -> u32 {
        let count = order.len();
        let (graph, turns) = match &trip.twice {
            Some(twice) => (twice, 2),
            None => (&trip.once, 1),
        };
        let mut ready = vec![0; turns * count];
        let mut clock = Clock::new(self.units);
        let (mut begin, mut end) = (0, 0);
        for turn in 0..turns {
            begin = clock.now;
            for &place in order {
                let node = turn * count + place;
                let at = clock.issue(self.ports[places[place]], ready[node]);
                for edge in graph.successors(node) {
                    let next = &mut ready[edge.to as usize];
                    *next = (at + u32::from(edge.cycles)).max(*next);
                }
                if turns == 1 {
                    end = (at + u32::from(graph.behind(node))).max(end);
                }
            }
            end = clock.now.max(end);
        }
        end - begin
    }

    /// The ways from each instruction to the end of the block, or to the end of its next turn, in cycles.
    fn heights(trip: &Trip, count: usize) -> Vec<u32> {
        let graph = trip.twice.as_ref().unwrap_or(&trip.once);
        let all = count * if trip.twice.is_some() { 2 } else { 1 };
        let mut height = vec![0u32; all];
        for node in (0..all).rev() {
            let heights = graph.successors(node).iter();
            let ways = heights.map(|edge| u32::from(edge.cycles) + height[edge.to as usize]);
            let highest = ways.chain([u32::from(graph.behind(node))]).max();
            height[node] = highest.unwrap_or(0);
        }
        height.truncate(count);
        height
    }

    /// Which of the instructions that are ready goes first: the one with the largest number.
    fn ranks(trip: &Trip, count: usize, priority: Priority) -> Vec<u32> {
        match priority {
            Priority::Height => Scheduler::heights(trip, count),
            Priority::Place => vec![0; count],
            Priority::Varied(seed) => {
                let heights = Scheduler::heights(trip, count).into_iter().enumerate();
                heights
                    .map(|(node, height)| varied(seed, node, height))
                    .collect()
            }
        }
    }

    fn list(
        &self,
        graph: &Graph,
        rank: &[u32],
        places: &[usize],
        gate: &mut impl Gate,
    ) -> Vec<usize> {
        let count = places.len();
        let mut open = vec![0u32; count];
        for edge in (0..count).flat_map(|node| graph.successors(node)) {
            open[edge.to as usize] += 1;
        }
        let mut ready = vec![0u32; count];
        let mut clock = Clock::new(self.units);
        // Those that could issue now, by rank; and those that have to wait, by their time.
        let mut now: BinaryHeap<(u32, Reverse<usize>)> = BinaryHeap::new();
        let mut later: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
        for node in (0..count).filter(|&node| open[node] == 0) {
            later.push(Reverse((0, node)));
        }
        let mut order = Vec::with_capacity(count);
        let mut busy = Vec::new();
        let mut loads = Loads::new(graph, count);
        let mut is_ready = vec![false; count];
        while order.len() < count {
            while let Some(&Reverse((_, node))) =
                later.peek().filter(|Reverse((time, _))| *time <= clock.now)
            {
                later.pop();
                is_ready[node] = loads.let_pass(node);
                match is_ready[node] {
                    true => now.push((rank[node], Reverse(node))),
                    false => loads.parked.push(Reverse(node)),
                }
            }
            // The first one whose port is free, and that may.
            let mut chosen = None;
            let mut freed = u32::MAX;
            while let Some((rank, Reverse(node))) = now.pop() {
                if loads.is_issued[node] {
                    continue;
                }
                let free = clock.earliest(self.ports[places[node]]);
                if free > clock.now {
                    freed = free.min(freed);
                } else if gate.lets(node) {
                    chosen = Some(node);
                    break;
                }
                busy.push((rank, Reverse(node)));
                if busy.len() >= LOOK {
                    break;
                }
            }
            now.extend(busy.drain(..));
            let first = gate.first().filter(|&first| is_ready[first]);
            if let (None, Some(first)) = (chosen, first) {
                let free = clock.earliest(self.ports[places[first]]);
                chosen = (free <= clock.now).then_some(first);
                freed = free.min(freed);
            }
            let Some(node) = chosen else {
                let by_time = later.peek().map_or(u32::MAX, |&Reverse((time, _))| time);
                clock.now = freed.min(by_time).max(clock.now + 1);
                continue;
            };
            let at = clock.issue(self.ports[places[node]], ready[node]);
            order.push(node);
            gate.issued(node);
            for passed in loads.issued(node) {
                later.push(Reverse((ready[passed], passed)));
            }
            for edge in graph.successors(node) {
                let to = edge.to as usize;
                ready[to] = (at + u32::from(edge.cycles)).max(ready[to]);
                open[to] -= 1;
                if open[to] == 0 {
                    later.push(Reverse((ready[to], to)));
                }
            }
        }
        order
    }
}

/// The places of the instructions of a block, if all come from the code and there is something to order.
fn origins(ops: &[Op]) -> Option<Vec<usize>> {
    let places: Option<Vec<usize>> = ops.iter().map(|op| op.origin()).collect();
    places.filter(|places| places.len() > 2)
}

/// Instructions that stand elsewhere.
fn moved(order: &[usize]) -> u32 {
    let moved = order.iter().enumerate().filter(|(at, old)| at != *old);
    moved.count() as u32
}

/// Loads from memory that may be far away, and what waits for such: a reader never goes before a load that stood in
/// front of it. Else that load would begin when another one has ended, and how long that takes nobody knows here.
struct Loads<'g> {
    graph: &'g Graph,
    is_issued: Vec<bool>,
    /// The first place of a load that was not issued.
    first: usize,
    parked: BinaryHeap<Reverse<usize>>,
}

impl<'g> Loads<'g> {
    fn new(graph: &'g Graph, count: usize) -> Loads<'g> {
        let mut loads = Loads {
            graph,
            is_issued: vec![false; count],
            first: 0,
            parked: BinaryHeap::new(),
        };
        loads.advance();
        loads
    }

    fn advance(&mut self) {
        let is_open = |at: usize| self.graph.far(at).loads && !self.is_issued[at];
        self.first = (self.first..self.is_issued.len())
            .find(|&at| is_open(at))
            .unwrap_or(usize::MAX);
    }

    /// May it issue, as far as loads are concerned?
    fn let_pass(&self, node: usize) -> bool {
        !self.graph.far(node).waits || node <= self.first
    }

    /// An instruction was issued; those that may go now.
    fn issued(&mut self, node: usize) -> Vec<usize> {
        self.is_issued[node] = true;
        let mut passed = Vec::new();
        if node == self.first {
            self.advance();
            while let Some(&Reverse(node)) = self.parked.peek().filter(|node| node.0 <= self.first)
            {
                self.parked.pop();
                passed.push(node);
            }
        }
        passed
    }
}

/// So many instructions are looked at for one whose port is free.
const LOOK: usize = 8;

/// When the ports are free.
struct Clock {
    units: &'static IssueUnits,
    /// The next cycle in which an instruction may issue.
    now: u32,
    last: Vec<Option<u32>>,
}

impl Clock {
    fn new(units: &'static IssueUnits) -> Clock {
        Clock {
            units,
            now: 0,
            last: vec![None; units.port_count()],
        }
    }

    /// When an instruction for this port may issue.
    fn earliest(&self, port: Option<u8>) -> u32 {
        let gaps = port
            .map_or(&[][..], |port| self.units.gaps_before(port))
            .iter();
        let free = gaps.filter_map(|&(other, cycles)| {
            Some(self.last[usize::from(other)]? + u32::from(cycles))
        });
        free.max().unwrap_or(0)
    }

    /// Issues an instruction that is ready at some time; when it did.
    fn issue(&mut self, port: Option<u8>, ready: u32) -> u32 {
        let at = self.now.max(ready).max(self.earliest(port));
        if let Some(port) = port {
            self.last[usize::from(port)] = Some(at);
        }
        self.now = at + 1;
        at
    }
}

/// Puts the instructions of a block of `ir` into another order: the new n-th one is the old `order[n]`-th.
pub fn reorder(ir: &mut Ir, block: usize, order: &[usize]) {
    let old = std::mem::take(&mut ir.blocks[block]);
    ir.blocks[block] = order.iter().map(|&at| old[at]).collect();
}
