//! Orders of a block in which few registers are needed.
//!
//! Goal: a block within so many registers, whatever the order costs, and then as short as these allow. Paper: Rawat et al.
//! (PPoPP 2018), section 3.1: of the operands of a node the one with the larger Sethi-Ullman number is evaluated first;
//! and section 3.3: what ends live ranges goes early ("release potential").
//!
//! Departures: the paper orders expression trees of a stencil, tree by tree, by all permutations of what shares data. Here
//! are blocks of machine code, which share nearly everything, store, and have their loads in them: a list goes backwards
//! from the end of the block and takes what ends the most live ranges seen from there, of equals what was asked for last
//! (so a tree is finished before the next one begins) and then the operand with the smaller number; once more without
//! the former. Others go forwards, take what ends live ranges at once, and else keep to one of these orders or to the
//! old one. The best of all is taken. Operands of an instruction are needed together, so that k equal ones need k
//! registers (Sethi and Ullman's own rule; the paper's accumulations need two). The paper orders once and lets nvcc
//! schedule again; here nothing comes behind, so what is found is only where each instruction goes at the latest:
//! [`Room`] lets others go ahead of it while registers for them are free.
//!
//! Values that are live at both ends of the block count throughout it. Tuples that fit nowhere are not counted.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use warpwright_flow::{Cfg, Function, Inst, Liveness, Value};

use super::Gate;
use super::graph::{Graph, places_in};

/// A part of a value's life within a block: from a definition, or the block's beginning, to its last use.
#[derive(Debug, Clone, Default)]
struct Piece {
    /// The instruction that begins it; none for what is live when the block begins.
    start: Option<usize>,
    /// The others that read or write it.
    accesses: SmallVec<[usize; 4]>,
    is_live_behind: bool,
}

impl Piece {
    /// The last place where it is needed, of so many.
    fn end(&self, count: usize) -> usize {
        match self.is_live_behind {
            true => count,
            false => {
                let accesses = self.accesses.iter().copied();
                accesses.max().or(self.start).unwrap_or(0)
            }
        }
    }
}

/// The registers that the instructions of a block share, in an order.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    all: Vec<Piece>,
    /// By instruction: the pieces that it begins, and others that it needs.
    starts: Vec<SmallVec<[usize; 2]>>,
    needs: Vec<SmallVec<[usize; 4]>>,
}

impl Pieces {
    /// Those of a block, in its order.
    pub fn new(func: &impl Function, (cfg, liveness): (&Cfg, &Liveness), block: &[Inst]) -> Pieces {
        let mut pieces = Pieces::default();
        let [Some(&first), Some(&last)] = [block.first(), block.last()] else {
            return pieces;
        };
        let mut current: FxHashMap<Value, usize> = FxHashMap::default();
        for value in liveness.live_before(func, cfg, first) {
            current.insert(value, pieces.add(None));
        }
        for (node, &inst) in block.iter().enumerate() {
            let mut needs: SmallVec<[usize; 4]> = SmallVec::new();
            liveness.for_each_read(func, inst, |value| {
                let piece = *current.entry(value).or_insert_with(|| pieces.add(None));
                needs.push(piece);
            });
            let mut starts: SmallVec<[usize; 2]> = SmallVec::new();
            let keeps = func.is_predicated(inst);
            func.for_each_def(inst, |value| match current.get(&value).copied() {
                Some(piece) if keeps => needs.push(piece),
                _ => {
                    let piece = pieces.add(Some(node));
                    current.insert(value, piece);
                    starts.push(piece);
                }
            });
            needs.sort_unstable();
            needs.dedup();
            for &piece in &needs {
                pieces.all[piece].accesses.push(node);
            }
            pieces.needs.push(needs);
            pieces.starts.push(starts);
        }
        for value in liveness.live_after(func, cfg, last) {
            let piece = *current.entry(value).or_insert_with(|| pieces.add(None));
            pieces.all[piece].is_live_behind = true;
        }
        pieces
    }

    fn add(&mut self, start: Option<usize>) -> usize {
        self.all.push(Piece {
            start,
            ..Piece::default()
        });
        self.all.len() - 1
    }

    /// The same in another order.
    pub fn in_order(&self, order: &[usize]) -> Pieces {
        let places = places_in(order);
        let moved = |piece: &Piece| Piece {
            start: piece.start.map(|node| places[node]),
            accesses: piece.accesses.iter().map(|&node| places[node]).collect(),
            is_live_behind: piece.is_live_behind,
        };
        Pieces {
            all: self.all.iter().map(moved).collect(),
            starts: order.iter().map(|&old| self.starts[old].clone()).collect(),
            needs: order.iter().map(|&old| self.needs[old].clone()).collect(),
        }
    }

    /// For each instruction the registers that hold something behind it, its own results among them, and those when the
    /// block begins.
    fn curve(&self) -> (u32, Vec<u32>) {
        let count = self.needs.len();
        let mut change = vec![0i64; count + 1];
        let mut before = 0;
        for piece in &self.all {
            let end = piece.end(count);
            let first = piece.start.unwrap_or(0);
            let end = match piece.start {
                Some(start) => end.max(start + 1),
                None => end,
            };
            let is_needed = piece.is_live_behind || !piece.accesses.is_empty();
            before += u32::from(piece.start.is_none() && is_needed);
            change[first] += 1;
            change[end.min(count)] -= 1;
        }
        let mut now = 0i64;
        let curve = change[..count].iter().map(|change| {
            now += change;
            now as u32
        });
        (before, curve.collect())
    }

    /// The most registers that are needed at once.
    fn most(&self) -> u32 {
        let (before, curve) = self.curve();
        curve.into_iter().max().unwrap_or(0).max(before)
    }

    /// The most registers that are needed at once in another order.
    pub fn most_in(&self, order: &[usize]) -> u32 {
        self.in_order(order).most()
    }

    /// The registers that computing each instruction's results needs, all that it reads in the block computed for it alone.
    fn sethi_ullman(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = vec![0; self.needs.len()];
        for node in 0..self.needs.len() {
            let starts = self.needs[node]
                .iter()
                .filter_map(|&piece| self.all[piece].start);
            let mut sources: SmallVec<[usize; 4]> = starts.filter(|&start| start < node).collect();
            sources.sort_unstable();
            sources.dedup();
            let mut operands: SmallVec<[u32; 4]> =
                sources.iter().map(|&source| numbers[source]).collect();
            operands.sort_unstable_by_key(|&number| Reverse(number));
            let together = operands
                .iter()
                .zip(0..)
                .map(|(number, before)| number + before);
            let own = self.starts[node].len() as u32;
            numbers[node] = together.max().unwrap_or(0).max(own).max(1);
        }
        numbers
    }

    /// Orders that may need fewer registers than this one.
    pub fn orders(&self, graph: &Graph) -> Vec<Vec<usize>> {
        let own: Vec<usize> = (0..self.needs.len()).collect();
        let [deep, late] = [true, false].map(|is_deep| self.backwards(graph, is_deep));
        let eager = [&deep, &late, &own].map(|order| self.forwards(graph, &places_in(order)));
        [deep, late].into_iter().chain(eager).collect()
    }

    /// From the end: what ends the most live ranges, seen from there; of equals what was asked for last (`is_deep`), or else
    /// the operand with the smaller number, and then what comes last.
    fn backwards(&self, graph: &Graph, is_deep: bool) -> Vec<usize> {
        let count = self.needs.len();
        let numbers = self.sethi_ullman();
        let mut before: Vec<SmallVec<[usize; 4]>> = vec![SmallVec::new(); count];
        let successors = |node| graph.successors(node).len();
        let mut open: Vec<usize> = (0..count).map(successors).collect();
        for node in 0..count {
            for edge in graph.successors(node) {
                before[edge.to as usize].push(node);
            }
        }
        let mut is_live: Vec<bool> = self.all.iter().map(|piece| piece.is_live_behind).collect();
        let mut ready: Vec<(usize, usize)> = (0..count)
            .filter(|&node| open[node] == 0)
            .map(|node| (0, node))
            .collect();
        let mut order = Vec::with_capacity(count);
        let key = |&(since, node): &(usize, usize), is_live: &[bool]| {
            let begins = self.needs[node].iter().filter(|&&piece| !is_live[piece]);
            let ends = self.starts[node].iter().filter(|&&piece| is_live[piece]);
            let more = begins.count() as i64 - ends.count() as i64;
            let since = if is_deep { since } else { 0 };
            (more, Reverse(since), numbers[node], Reverse(node))
        };
        while let Some(at) = (0..ready.len()).min_by_key(|&at| key(&ready[at], &is_live)) {
            let (_, node) = ready.swap_remove(at);
            order.push(node);
            self.starts[node]
                .iter()
                .for_each(|&piece| is_live[piece] = false);
            self.needs[node]
                .iter()
                .for_each(|&piece| is_live[piece] = true);
            for &source in &before[node] {
                open[source] -= 1;
                if open[source] == 0 {
                    ready.push((order.len(), source));
                }
            }
        }
        order.reverse();
        order
    }

    /// From the beginning: what ends the most live ranges; of equals the one that comes first by `places`.
    fn forwards(&self, graph: &Graph, places: &[usize]) -> Vec<usize> {
        let count = self.needs.len();
        let mut open = vec![0usize; count];
        for edge in (0..count).flat_map(|node| graph.successors(node)) {
            open[edge.to as usize] += 1;
        }
        let mut left: Vec<usize> = self.all.iter().map(|piece| piece.accesses.len()).collect();
        let mut ready: Vec<usize> = (0..count).filter(|&node| open[node] == 0).collect();
        let mut order = Vec::with_capacity(count);
        let key = |node: usize, left: &[usize]| {
            let begins = self.starts[node].iter();
            let begins = begins.filter(|&&piece| left[piece] > 0 || self.all[piece].is_live_behind);
            let ends = self.needs[node].iter();
            let ends = ends.filter(|&&piece| left[piece] == 1 && !self.all[piece].is_live_behind);
            (begins.count() as i64 - ends.count() as i64, places[node])
        };
        while let Some(at) = (0..ready.len()).min_by_key(|&at| key(ready[at], &left)) {
            let node = ready.swap_remove(at);
            order.push(node);
            self.needs[node].iter().for_each(|&piece| left[piece] -= 1);
            for edge in graph.successors(node) {
                open[edge.to as usize] -= 1;
                if open[edge.to as usize] == 0 {
                    ready.push(edge.to as usize);
                }
            }
        }
        order
    }
}

/// Lets an instruction go ahead of those that stand before it as long as so many registers suffice, or as were needed there
/// anyway.
pub(super) struct Room {
    pieces: Pieces,
    limit: u32,
    /// The instructions as they would come if none more went ahead of another.
    order: Vec<usize>,
    places: Vec<usize>,
    /// Registers that hold something when the block begins, and behind each of these.
    before: u32,
    curve: Vec<u32>,
    done: usize,
}

impl Room {
    /// For a block whose order stays as `pieces` have it where nothing goes ahead.
    pub(super) fn new(pieces: Pieces, limit: u32) -> Room {
        let (before, curve) = pieces.curve();
        Room {
            limit,
            order: (0..curve.len()).collect(),
            places: (0..curve.len()).collect(),
            before,
            curve,
            done: 0,
            pieces,
        }
    }

    /// The place behind which a piece is needed no more once `node`, which is the last that needs it, goes next; none where
    /// another one needs it as long, or longer.
    fn shortened(&self, piece: usize, node: usize) -> Option<usize> {
        let piece = &self.pieces.all[piece];
        let others = piece.accesses.iter().filter(|&&other| other != node);
        let last = others.map(|&other| self.places[other]).max();
        let is_last = !piece.is_live_behind && last.is_none_or(|last| last < self.places[node]);
        // Those between go one place further.
        let moved = |last: usize| {
            if last < self.done {
                self.done
            } else {
                last + 1
            }
        };
        is_last.then(|| last.map_or(self.done, moved))
    }

    /// The registers behind each instruction from the next place on to that of `node`, if it goes next.
    fn ahead(&self, node: usize) -> Vec<u32> {
        let (first, last) = (self.done, self.places[node]);
        let (pieces, mut change) = (&self.pieces, vec![0i64; last - first + 2]);
        for &piece in &pieces.starts[node] {
            let begun = &pieces.all[piece];
            let is_dead = begun.accesses.is_empty() && !begun.is_live_behind;
            change[0] += 1;
            change[if is_dead { 1 } else { last - first + 1 }] -= 1;
        }
        for &piece in &pieces.needs[node] {
            if let Some(end) = self.shortened(piece, node) {
                change[end - first] -= 1;
            }
        }
        let old =
            (first..=last).map(|at| at.checked_sub(1).map_or(self.before, |at| self.curve[at]));
        let mut more = 0;
        let curve = old.zip(change).map(|(old, change)| {
            more += change;
            (i64::from(old) + more).max(0) as u32
        });
        curve.collect()
    }
}

impl Gate for Room {
    fn lets(&self, node: usize) -> bool {
        let (first, last) = (self.done, self.places[node]);
        if first == last {
            return true;
        }
        let was = std::iter::once(first).chain(first..last);
        let mut both = self.ahead(node).into_iter().zip(was);
        both.all(|(now, was)| now <= self.limit.max(self.curve[was]))
    }

    fn first(&self) -> Option<usize> {
        self.order.get(self.done).copied()
    }

    fn issued(&mut self, node: usize) {
        let (first, last) = (self.done, self.places[node]);
        if first < last {
            let curve = self.ahead(node);
            self.curve[first..=last].copy_from_slice(&curve);
            self.order[first..=last].rotate_right(1);
            for at in first..=last {
                self.places[self.order[at]] = at;
            }
        }
        self.done += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, most: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (self.0 >> 33) as usize % most
        }
    }

    /// Every instruction gives a value, and reads some of those before it; each value is read, or lives on.
    fn block(count: usize, dice: &mut Dice) -> Pieces {
        let mut pieces = Pieces::default();
        pieces.add(None);
        for node in 0..count {
            let mut needs: SmallVec<[usize; 4]> = SmallVec::new();
            for _ in 0..dice.below(4) {
                needs.push(dice.below(pieces.all.len()));
            }
            needs.sort_unstable();
            needs.dedup();
            for &piece in &needs {
                pieces.all[piece].accesses.push(node);
            }
            pieces.needs.push(needs);
            let start = pieces.add(Some(node));
            pieces.starts.push(SmallVec::from_slice(&[start]));
        }
        for piece in &mut pieces.all {
            piece.is_live_behind = piece.accesses.is_empty() || dice.below(8) == 0;
        }
        pieces
    }

    /// May it go next, as far as values are concerned?
    fn is_ready(room: &Room, node: usize) -> bool {
        let starts = room.pieces.needs[node].iter();
        let mut starts = starts.filter_map(|&piece| room.pieces.all[piece].start);
        room.places[node] >= room.done && starts.all(|start| room.places[start] < room.done)
    }

    #[test]
    fn what_goes_ahead_leaves_the_curve_of_the_new_order() {
        let mut dice = Dice(7);
        for _ in 0..200 {
            let count = 2 + dice.below(20);
            let pieces = block(count, &mut dice);
            let limit = pieces.most() - dice.below(2) as u32;
            let mut room = Room::new(pieces.clone(), limit);
            let most = pieces.most().max(limit);
            while room.done < count {
                let ready: Vec<usize> = (0..count).filter(|&node| is_ready(&room, node)).collect();
                let node = ready[dice.below(ready.len())];
                let node = if room.lets(node) {
                    node
                } else {
                    room.order[room.done]
                };
                room.issued(node);
                assert_eq!(room.curve, pieces.in_order(&room.order).curve().1);
                assert!(pieces.most_in(&room.order) <= most);
            }
        }
    }

    #[test]
    fn a_sum_of_many_loads_needs_two_registers() {
        // Loads first, then a chain of sums: (x0 + x1) + x2 …
        let loads = 12;
        let mut pieces = Pieces::default();
        let mut graph = Graph::default();
        let mut begin = |needs: &[usize]| {
            let node = pieces.needs.len();
            for &piece in needs {
                pieces.all[piece].accesses.push(node);
            }
            let start = pieces.add(Some(node));
            pieces.needs.push(SmallVec::from_slice(needs));
            pieces.starts.push(SmallVec::from_slice(&[start]));
            graph.add(needs);
            start
        };
        let values: Vec<usize> = (0..loads).map(|_| begin(&[])).collect();
        let mut sum = values[0];
        for &value in &values[1..] {
            sum = begin(&[sum, value]);
        }
        pieces.all[sum].is_live_behind = true;
        assert_eq!(pieces.most(), loads as u32);
        assert_eq!(pieces.sethi_ullman().last(), Some(&2));
        let orders = pieces.orders(&graph);
        let most: Vec<u32> = orders.iter().map(|order| pieces.most_in(order)).collect();
        assert_eq!(most, [2; 5]);
    }
}
