//! Where each array's planes live while a block walks along the streamed dimension.
//!
//! An array of which a thread needs only its own columns stays in registers: a queue along the
//! streamed dimension, filled from global memory one plane ahead. An array that is also read at
//! neighbouring columns has a ring of planes in shared memory that asynchronous copies fill
//! `ahead` planes before they are needed, halo included; own columns at several planes go from
//! there into a queue as well.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::SourceId;
use super::plan::Plan;

/// Plane, row and column relative to the first point of a thread.
pub(super) type Place = [i32; 3];

/// One element that a point reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Read {
    pub(super) source: SourceId,
    pub(super) at: Place,
    /// The field that is computed for the neighbours with it.
    pub(super) staged: Option<usize>,
}

/// How far something reaches beyond a rectangle: rows before and after, columns before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) rows: [i32; 2],
    pub(super) columns: [i32; 2],
}

impl Reach {
    pub(super) fn include(&mut self, [y, x]: [i32; 2], size: [i32; 2]) {
        let grow = |edge: &mut [i32; 2], at: i32, size: i32| {
            edge[0] = edge[0].max(-at);
            edge[1] = edge[1].max(at - (size - 1));
        };
        grow(&mut self.rows, y, size[0]);
        grow(&mut self.columns, x, size[1]);
    }

    fn beyond(self, more: Reach, region: Reach) -> Reach {
        let edge = |a: [i32; 2], b: [i32; 2], c: [i32; 2]| {
            [(a[0] + b[0] - c[0]).max(0), (a[1] + b[1] - c[1]).max(0)]
        };
        Reach {
            rows: edge(self.rows, more.rows, region.rows),
            columns: edge(self.columns, more.columns, region.columns),
        }
    }

    fn union(&mut self, other: Reach) {
        for (a, b) in self.rows.iter_mut().zip(other.rows) {
            *a = (*a).max(b);
        }
        for (a, b) in self.columns.iter_mut().zip(other.columns) {
            *a = (*a).max(b);
        }
    }
}

/// Where one array lives.
#[derive(Clone, Debug, Default)]
pub(super) struct Home {
    /// Its place among the arrays of the ring.
    pub(super) ring: Option<usize>,
    /// Planes of the own columns in registers, from and to, if there are any.
    pub(super) queue: Option<[i32; 2]>,
    /// The ring's planes are needed beyond the tile's rows, columns, and corners.
    pub(super) sides: [bool; 3],
}

/// The layout of a kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) homes: BTreeMap<SourceId, Home>,
    /// Points that a thread computes: rows and columns.
    pub(super) points: [i32; 2],
    /// The tile's computed points are surrounded by so many that only compute for neighbours.
    pub(super) halo: Reach,
    /// Points of all threads: rows and columns.
    pub(super) region: [i32; 2],
    /// The ring's planes reach so far beyond the threads' points: no thread looks outside, whether anybody uses what
    /// it computes or not.
    pub(super) reach: Reach,
    /// So much of that is needed, and copied.
    pub(super) copied: Reach,
    /// Columns before the ring's planes, for alignment.
    pub(super) pad: i32,
    /// Rows and columns of one plane of the ring.
    pub(super) plane: [i32; 2],
    /// Planes of the ring, relative to the one that is computed: from and to.
    pub(super) window: [i32; 2],
    /// Planes in the ring, those on their way included.
    pub(super) slots: i32,
    /// Arrays in the ring.
    pub(super) rings: i32,
    /// Fields given to neighbours.
    pub(super) staged: i32,
    /// Elements before and after the fields given to neighbours: threads at the edge look there for values that
    /// nobody uses.
    pub(super) guard: i32,
}

impl Layout {
    /// Decides from what is read. `fields` is by staged field how far its readers stand away;
    /// `start` is the first column of the first tile.
    pub(super) fn new(plan: &Plan, reads: &BTreeSet<Read>, fields: &[Reach], start: i32) -> Layout {
        let points = [plan.points[1] as i32, plan.points[0] as i32];
        let mut layout = Layout {
            points,
            region: [
                plan.block[1] as i32 * points[0],
                plan.block[0] as i32 * points[1],
            ],
            staged: fields.len() as i32,
            ..Layout::default()
        };
        for field in fields {
            layout.halo.union(*field);
        }
        // Pairs of columns stay pairs.
        layout.halo.columns = layout.halo.columns.map(|c| c + c % 2);
        layout.place(reads, fields);
        if layout.rings > 0 {
            layout.shape(plan, start);
        }
        if layout.staged > 0 {
            let h = layout.halo;
            let rows = h.rows[0].max(h.rows[1]);
            let columns = h.columns[0].max(h.columns[1]);
            layout.guard = rows * layout.region[1] + columns + 2;
            layout.guard += layout.guard % 2;
        }
        layout
    }

    fn place(&mut self, reads: &BTreeSet<Read>, fields: &[Reach]) {
        let none = Reach::default();
        let mut window: Option<[i32; 2]> = None;
        let sources: BTreeSet<SourceId> = reads.iter().map(|r| r.source).collect();
        for source in sources {
            let own = |r: &Read| (0..2).all(|d| (0..self.points[d]).contains(&r.at[d + 1]));
            let all = || reads.iter().filter(|r| r.source == source);
            let mut home = Home::default();
            let span = |planes: Vec<i32>| {
                let low = planes.iter().min()?;
                let high = planes.iter().max()?;
                Some([*low, *high])
            };
            let queue = span(all().filter(|r| own(r)).map(|r| r.at[0]).collect());
            let ring = span(all().filter(|r| !own(r)).map(|r| r.at[0]).collect());
            if let Some([mut low, mut high]) = ring {
                home.ring = Some(self.rings as usize);
                self.rings += 1;
                match queue {
                    Some([from, to]) if to > from => {
                        home.queue = queue;
                        low = low.min(to);
                        high = high.max(to);
                    }
                    Some([only, _]) => {
                        low = low.min(only);
                        high = high.max(only);
                    }
                    None => {}
                }
                let [from, to] = window.unwrap_or([low, high]);
                window = Some([from.min(low), to.max(high)]);
                for read in all() {
                    let mut at = Reach::default();
                    at.include([read.at[1], read.at[2]], self.points);
                    let readers = read.staged.map_or(none, |f| fields[f]);
                    let beyond = at.beyond(readers, self.halo);
                    let rows = beyond.rows != [0, 0];
                    let columns = beyond.columns != [0, 0];
                    home.sides[0] |= rows;
                    home.sides[1] |= columns;
                    home.sides[2] |= rows && columns;
                    self.copied.union(beyond);
                    self.reach.union(at);
                }
            } else {
                home.queue = queue;
            }
            self.homes.insert(source, home);
        }
        self.window = window.unwrap_or([0, 0]);
    }

    fn shape(&mut self, plan: &Plan, start: i32) {
        let first = start - self.halo.columns[0] - self.reach.columns[0];
        self.pad = first.rem_euclid(2);
        let columns = self.pad + self.reach.columns[0] + self.region[1] + self.reach.columns[1];
        let rows = self.reach.rows[0] + self.region[0] + self.reach.rows[1];
        self.plane = [rows, columns + columns % 2];
        self.slots = self.window[1] - self.window[0] + 1 + plan.ahead as i32;
    }

    /// Computed points of a tile: rows and columns.
    pub(super) fn tile(&self) -> [i32; 2] {
        [
            self.region[0] - self.halo.rows[0] - self.halo.rows[1],
            self.region[1] - self.halo.columns[0] - self.halo.columns[1],
        ]
    }

    /// Elements of one plane of the ring.
    pub(super) fn plane_elements(&self) -> i32 {
        self.plane[0] * self.plane[1]
    }

    /// Elements of one plane of the ring that are copied.
    pub(super) fn copied_shape(&self) -> [i32; 2] {
        let across = |copied: [i32; 2], region: i32| copied[0] + region + copied[1];
        let columns = self.pad + across(self.copied.columns, self.region[1]);
        [
            across(self.copied.rows, self.region[0]),
            columns + columns % 2,
        ]
    }

    /// Elements of all planes of the ring.
    pub(super) fn ring_elements(&self) -> i32 {
        self.slots * self.rings * self.plane_elements()
    }

    /// Elements of shared memory.
    pub(super) fn elements(&self) -> i32 {
        let staged = self.staged * self.region[0] * self.region[1];
        self.ring_elements() + staged + 2 * self.guard
    }
}
