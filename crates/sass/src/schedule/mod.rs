//! Another order for the instructions of a block.
//!
//! Goal: instructions whose results come late begin early, and what waits for them comes as late as it may, so that
//! one warp waits less. Paper: RegDem (section 3.4.2) hoists the loads that it inserted; here every instruction
//! may move, by list scheduling (Gibbons and Muchnick, Efficient Instruction Scheduling for a Pipelined Architecture,
//! 1986: forward), over the graph of [`graph`].
//!
//! Of those that are ready the next one is chosen by [`Priority`]. Registers keep their names, so a schedule never
//! needs more of them: what an earlier instruction still reads or writes keeps a later one away.
//!
//! Time is estimated as the hardware issues: one instruction in a cycle, in order, each when the distances to what it
//! depends on have passed and its port is free. The same estimate rates the order as it was, and the old one is kept
//! where the new one is not shorter.

pub mod graph;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use warpwright_flow::Inst;
use warpwright_target::IssueUnits;

use crate::function::Code;
use crate::hazards::Unchecked;
use crate::ir::{Ir, Op};
use graph::{Analysis, Graph};

/// Which of several instructions that could issue goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// The one with the longest way to the end of the block, in cycles.
    Height,
    /// The one that came first: the order changes only where an instruction would wait.
    Place,
}

/// What a new order brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// Cycles from the first issue of the block until the last instruction issues, alone on the machine.
    pub before: u32,
    /// The same in the new order.
    pub after: u32,
    /// Cycles in which its instructions issue: what remains where other warps fill the waits.
    pub issues: u32,
    /// Instructions that stand elsewhere now.
    pub moved: u32,
}

/// What is known of a function's instructions, for all its blocks.
pub struct Scheduler {
    analysis: Analysis,
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
        let places: Option<Vec<usize>> = ops.iter().map(|op| op.origin()).collect();
        let Some(places) = places.filter(|places| places.len() > 2) else {
            return (Estimate::default(), None);
        };
        let insts: Vec<Inst> = places.iter().map(|&at| Inst(at as u32)).collect();
        let graph = self.analysis.graph(code, &insts);
        let own: Vec<usize> = (0..insts.len()).collect();
        let before = self.time(&graph, &places, &own);
        let order = self.list(&graph, &places, priority);
        let after = self.time(&graph, &places, &order);
        let moved = order.iter().zip(&own).filter(|(a, b)| a != b).count();
        let estimate = Estimate {
            before,
            after: after.min(before),
            issues: self.issues(&places),
            moved: moved as u32,
        };
        (estimate, (after < before).then_some(order))
    }

    /// Cycles in which so many instructions issue one after the other, each port kept busy as long as it is.
    fn issues(&self, places: &[usize]) -> u32 {
        let mut clock = Clock::new(self.units);
        for &place in places {
            clock.issue(self.ports[place], 0);
        }
        clock.now
    }

    /// Cycles until the last one of `order` issues.
    fn time(&self, graph: &Graph, places: &[usize], order: &[usize]) -> u32 {
        let mut ready = vec![0; places.len()];
        let mut clock = Clock::new(self.units);
        for &node in order {
            let at = clock.issue(self.ports[places[node]], ready[node]);
            for edge in graph.successors(node) {
                let next = &mut ready[edge.to as usize];
                *next = (at + u32::from(edge.cycles)).max(*next);
            }
        }
        clock.now
    }

    /// The ways from each instruction to the end of the block, in cycles.
    fn heights(graph: &Graph, count: usize) -> Vec<u32> {
        let mut height = vec![0u32; count];
        for node in (0..count).rev() {
            let heights = graph.successors(node).iter();
            let highest = heights
                .map(|edge| u32::from(edge.cycles) + height[edge.to as usize])
                .max();
            height[node] = highest.unwrap_or(0);
        }
        height
    }

    fn list(&self, graph: &Graph, places: &[usize], priority: Priority) -> Vec<usize> {
        let count = places.len();
        let rank = match priority {
            Priority::Height => Scheduler::heights(graph, count),
            Priority::Place => vec![0; count],
        };
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
        while order.len() < count {
            while let Some(&Reverse((_, node))) =
                later.peek().filter(|Reverse((time, _))| *time <= clock.now)
            {
                later.pop();
                now.push((rank[node], Reverse(node)));
            }
            // The first one whose port is free.
            let mut chosen = None;
            let mut freed = u32::MAX;
            while let Some((rank, Reverse(node))) = now.pop() {
                let free = clock.earliest(self.ports[places[node]]);
                if free <= clock.now {
                    chosen = Some(node);
                    break;
                }
                freed = free.min(freed);
                busy.push((rank, Reverse(node)));
                if busy.len() >= LOOK {
                    break;
                }
            }
            now.extend(busy.drain(..));
            let Some(node) = chosen else {
                let by_time = later.peek().map_or(u32::MAX, |&Reverse((time, _))| time);
                clock.now = freed.min(by_time).max(clock.now + 1);
                continue;
            };
            let at = clock.issue(self.ports[places[node]], ready[node]);
            order.push(node);
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
