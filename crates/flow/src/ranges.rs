//! Live ranges: for each value, the stretches of the program over which it occupies a register.
//!
//! Positions are half-instructions ([`Point`]), so that a value whose last use is at an instruction
//! and one that the instruction defines do not overlap. They lie in program order; a stretch that
//! leaves a block downwards and enters the next one in program order goes on as one segment.

use cranelift_entity::EntityRef;

use crate::lists::Lists;
use crate::{Cfg, DefUse, Function, Inst, LiveSet, Liveness, Pressure, Value};

/// A place in the program: before or after one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point(pub u32);

impl Point {
    /// Right before `inst`, where its operands are read.
    pub fn before(inst: Inst) -> Point {
        Point(inst.0 * 2)
    }

    /// Right after `inst`, where its results are there.
    pub fn after(inst: Inst) -> Point {
        Point(inst.0 * 2 + 1)
    }

    /// The instruction.
    pub fn inst(self) -> Inst {
        Inst(self.0 / 2)
    }
}

/// A stretch of points, both ends included.
///
/// A value defined at `i` and last used at `j` has the segment from after `i` to before `j`; a dead
/// definition at `i` the single point after `i`; a value live through a whole block reaches from
/// before its first to after its last instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first point.
    pub start: Point,
    /// The last point.
    pub end: Point,
}

impl Segment {
    /// Do the two share a point?
    pub fn overlaps(self, other: Segment) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Number of instructions before which the value is live.
    pub fn length(self) -> u32 {
        // Even points in `start..=end`.
        (self.end.0 / 2 + 1) - self.start.0.div_ceil(2)
    }
}

/// The live ranges of all values.
#[derive(Clone, Debug)]
pub struct LiveRanges {
    segments: Lists<Segment>,
    length: Vec<u32>,
}

impl LiveRanges {
    /// Computes the ranges, over all blocks, unreachable ones included.
    pub fn new(func: &impl Function, cfg: &Cfg, liveness: &Liveness) -> LiveRanges {
        let mut builder = Builder {
            pairs: Vec::new(),
            end: vec![Point(0); func.value_count()],
        };
        let mut live = LiveSet::new(func.value_count());
        for block in cfg.blocks().rev() {
            builder.go_over(func, cfg, liveness, block, &mut live);
        }
        builder.pairs.reverse();
        let segments = merge(func.value_count(), &builder.pairs);
        let length = (0..func.value_count())
            .map(|value| {
                segments
                    .get(value)
                    .iter()
                    .map(|segment| segment.length())
                    .sum()
            })
            .collect();
        LiveRanges { segments, length }
    }

    /// The segments of `value`, ascending, neither overlapping nor adjacent.
    pub fn segments(&self, value: Value) -> &[Segment] {
        self.segments.get(value.index())
    }

    /// Number of instructions before which `value` is live.
    pub fn length(&self, value: Value) -> u32 {
        self.length[value.index()]
    }

    /// Is `value` live at `point` (or, after an instruction, defined there)?
    pub fn is_live_at(&self, value: Value, point: Point) -> bool {
        let segments = self.segments(value);
        let next = segments.partition_point(|segment| segment.start <= point);
        next > 0 && point <= segments[next - 1].end
    }

    /// Are `a` and `b` ever live at the same point?
    pub fn interfere(&self, a: Value, b: Value) -> bool {
        let (mut a, mut b) = (self.segments(a), self.segments(b));
        while let (Some(x), Some(y)) = (a.first(), b.first()) {
            if x.overlaps(*y) {
                return true;
            }
            if x.end < y.end {
                a = &a[1..];
            } else {
                b = &b[1..];
            }
        }
        false
    }

    /// The values live across the first peak of the pressure curve without being read or written
    /// there, the longest range first: what could be spilled or recomputed to lower the peak.
    pub fn crossing_peak(&self, pressure: &Pressure, def_use: &DefUse) -> Vec<Value> {
        let Some(peak) = pressure.peak() else {
            return Vec::new();
        };
        let mut crossing: Vec<Value> = (0..self.length.len())
            .map(Value::new)
            .filter(|&value| self.is_live_at(value, Point::before(peak)))
            .filter(|&value| self.is_live_at(value, Point::after(peak)))
            .filter(|&value| !def_use.uses(value).contains(&peak))
            .filter(|&value| !def_use.defs(value).contains(&peak))
            .collect();
        crossing.sort_by_key(|&value| (std::cmp::Reverse(self.length(value)), value));
        crossing
    }
}

/// Collects segments from the last block to the first, so in descending order for each value.
struct Builder {
    pairs: Vec<(u32, Segment)>,
    /// For values live at the current point: where the current segment ends.
    end: Vec<Point>,
}

impl Builder {
    fn go_over(
        &mut self,
        func: &impl Function,
        cfg: &Cfg,
        liveness: &Liveness,
        block: crate::Block,
        live: &mut LiveSet,
    ) {
        live.clear();
        let last = Point::after(cfg.last_inst(block));
        for &succ in cfg.succs(block) {
            for &value in liveness.live_in(succ) {
                if live.insert(value) {
                    self.end[value.index()] = last;
                }
            }
        }
        for inst in cfg.insts(block).rev() {
            let kills = !func.is_predicated(inst);
            func.for_each_def(inst, |value| {
                let start = Point::after(inst);
                if !live.contains(value) {
                    self.pairs.push((value.0, Segment { start, end: start }));
                } else if kills {
                    live.remove(value);
                    self.pairs.push((
                        value.0,
                        Segment {
                            start,
                            end: self.end[value.index()],
                        },
                    ));
                }
            });
            liveness.for_each_read(func, inst, |value| {
                if live.insert(value) {
                    self.end[value.index()] = Point::before(inst);
                }
            });
        }
        let start = Point::before(cfg.first_inst(block));
        for value in live.to_sorted() {
            self.pairs.push((
                value.0,
                Segment {
                    start,
                    end: self.end[value.index()],
                },
            ));
        }
    }
}

/// Joins adjacent and overlapping segments of each value; the pairs ascend for each value.
fn merge(values: usize, pairs: &[(u32, Segment)]) -> Lists<Segment> {
    let raw = Lists::from_pairs(values, pairs);
    let mut merged = Lists::default();
    let mut list: Vec<Segment> = Vec::new();
    for value in 0..values {
        for &segment in raw.get(value) {
            match list.last_mut() {
                Some(before) if segment.start.0 <= before.end.0 + 1 => {
                    before.end = before.end.max(segment.end);
                }
                _ => list.push(segment),
            }
        }
        merged.push_list(list.drain(..));
    }
    merged
}
