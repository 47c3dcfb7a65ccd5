//! Values that must lie together: what an instruction set's operands ask for, as rigid groups.
//!
//! A value is a group by itself. Operands that take several values (tuples), operands that are
//! read and written at one place (tied), and registers given by the instruction set (fixed) join
//! values into groups whose members keep their distance. A group begins at one register; its
//! alignment says which registers that may be.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use warpwright_flow::{EntityRef, Function, Inst, Value};

use crate::draft::{Draft, Role};
use crate::interference::Graph;

/// What no placement can satisfy: the instruction whose operands contradict others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction(pub(crate) Option<Inst>);

/// A file of registers. All classes that take 32-bit registers share one; any other class has its
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bank {
    General,
    Class(u8),
}

/// Values with fixed distances.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The members with their distance from the group's first register, which is 0 for one of them.
    pub(crate) members: Vec<(Value, u32)>,
    /// Registers from the first to the last.
    pub(crate) span: u32,
    /// The first register is `residue` more than a multiple of this power of two.
    pub(crate) align: u32,
    pub(crate) residue: u32,
    /// The first register, if it is given.
    pub(crate) fixed: Option<u32>,
    pub(crate) bank: Bank,
}

/// All groups of a draft; slots are in none.
pub(crate) struct Groups {
    pub(crate) list: Vec<Group>,
    /// For each value its group, and its distance in it.
    of: Vec<Option<(u32, u32)>>,
}

impl Groups {
    pub(crate) fn new(draft: &Draft) -> Result<Groups, Contradiction> {
        let mut joined = Joined::new(draft);
        for inst in draft.insts() {
            let mut fits = true;
            draft.for_each_tuple(inst, |values, align| {
                let mut distance = 0;
                for &value in values {
                    fits &= joined.join(values[0], value, distance);
                    distance += i64::from(draft.units(value).max(1));
                }
                fits &= joined.align(values[0], align.max(1));
            });
            draft.for_each_tied(inst, |def, used| fits &= joined.join(def, used, 0));
            if !fits {
                return Err(Contradiction(Some(inst)));
            }
        }
        joined.finish(draft)
    }

    /// The group of a register.
    pub(crate) fn of(&self, value: Value) -> Option<usize> {
        self.of[value.index()].map(|(group, _)| group as usize)
    }

    /// Do operands or fixed registers say anything about a value?
    pub(crate) fn is_constrained(&self, value: Value) -> bool {
        self.of(value).is_some_and(|group| {
            let group = &self.list[group];
            group.members.len() > 1 || group.fixed.is_some()
        })
    }

    /// For each group the groups that it meets.
    pub(crate) fn conflicts(
        &self,
        draft: &Draft,
        graph: &Graph,
    ) -> Result<Conflicts, Contradiction> {
        let mut found: Vec<(u32, i64)> = Vec::new();
        let mut sets = Vec::new();
        let mut known: BTreeMap<Distances, u32> = BTreeMap::new();
        let all = self.list.iter().enumerate().map(|(index, group)| {
            found.clear();
            for &(value, at) in &group.members {
                let size = i64::from(draft.units(value).max(1));
                for &other in graph.of(value) {
                    let Some((with, place)) = self.of[other.index()] else {
                        continue;
                    };
                    let other_size = i64::from(draft.units(other).max(1));
                    let apart = i64::from(place) - i64::from(at);
                    let overlaps = apart - size + 1..apart + other_size;
                    if with as usize != index {
                        found.extend(overlaps.map(|distance| (with, distance)));
                    } else if overlaps.contains(&0) {
                        return Err(Contradiction(None));
                    }
                }
            }
            found.sort_unstable();
            found.dedup();
            let met = found.chunk_by(|a, b| a.0 == b.0).map(|all| {
                let distances: Distances = all.iter().map(|&(_, distance)| distance).collect();
                let set = *known.entry(distances).or_insert_with_key(|distances| {
                    sets.push(distances.clone());
                    sets.len() as u32 - 1
                });
                Conflict {
                    other: all[0].0,
                    set,
                }
            });
            Ok(met.collect())
        });
        let of = all.collect::<Result<_, _>>()?;
        Ok(Conflicts { of, sets })
    }
}

/// Which groups meet. Nearly all do so at a few sets of distances, which are kept once.
pub(crate) struct Conflicts {
    of: Vec<Vec<Conflict>>,
    sets: Vec<Distances>,
}

impl Conflicts {
    /// The groups that one meets, ascending.
    pub(crate) fn of(&self, group: usize) -> &[Conflict] {
        &self.of[group]
    }

    /// The distances from the other group's first register to the group's at which two members would overlap:
    /// ascending, each once.
    pub(crate) fn distances(&self, met: &Conflict) -> &[i64] {
        &self.sets[met.set as usize]
    }
}

type Distances = SmallVec<[i64; 4]>;

/// A group that another one meets.
pub(crate) struct Conflict {
    other: u32,
    /// The number of the set of distances.
    set: u32,
}

impl Conflict {
    /// The group.
    pub(crate) fn other(&self) -> usize {
        self.other as usize
    }
}

/// A forest whose edges carry distances.
struct Joined {
    /// The parent, and how far the value lies behind it.
    parent: Vec<(usize, i64)>,
    /// For roots: `(align, residue)` of the root's own register.
    align: Vec<(i64, i64)>,
}

impl Joined {
    fn new(draft: &Draft) -> Joined {
        let values = draft.value_count();
        let own = |value| i64::from(draft.units(Value::new(value)).max(1));
        Joined {
            parent: (0..values).map(|value| (value, 0)).collect(),
            align: (0..values).map(|value| (own(value), 0)).collect(),
        }
    }

    /// The root, and how far the value lies behind it.
    fn find(&mut self, value: usize) -> (usize, i64) {
        let (parent, distance) = self.parent[value];
        if parent == value {
            return (value, 0);
        }
        let (root, further) = self.find(parent);
        self.parent[value] = (root, distance + further);
        self.parent[value]
    }

    /// Lets `b` lie `distance` registers behind `a`; says whether that can be.
    fn join(&mut self, a: Value, b: Value, distance: i64) -> bool {
        let (root_a, at_a) = self.find(a.index());
        let (root_b, at_b) = self.find(b.index());
        // Where b's root lies, counted from a's.
        let between = at_a + distance - at_b;
        if root_a == root_b {
            return between == 0;
        }
        self.parent[root_b] = (root_a, between);
        let (align, residue) = self.align[root_b];
        self.restrict(root_a, align, residue - between)
    }

    /// Lets a value lie at a multiple of `align`.
    fn align(&mut self, value: Value, align: u32) -> bool {
        let (root, at) = self.find(value.index());
        align.is_power_of_two() && self.restrict(root, align.into(), -at)
    }

    fn restrict(&mut self, root: usize, align: i64, residue: i64) -> bool {
        let (old, old_residue) = self.align[root];
        let (small, large, of_large) = match old < align {
            true => (old, align, residue),
            false => (align, old, old_residue),
        };
        self.align[root] = (large, of_large.rem_euclid(large));
        (residue - old_residue).rem_euclid(small) == 0
    }

    fn finish(mut self, draft: &Draft) -> Result<Groups, Contradiction> {
        let mut members: BTreeMap<usize, Vec<(Value, i64)>> = BTreeMap::new();
        // Groups in the order of their lowest value.
        let mut order = Vec::new();
        for value in draft.values() {
            if matches!(draft.role(value), Role::Slot(_)) {
                continue;
            }
            let (root, at) = self.find(value.index());
            let list = members.entry(root).or_default();
            if list.is_empty() {
                order.push(root);
            }
            list.push((value, at));
        }
        let mut groups = Groups {
            list: Vec::with_capacity(order.len()),
            of: vec![None; draft.value_count()],
        };
        for root in order {
            let members = &members[&root];
            let first = members.iter().map(|&(_, at)| at).min().unwrap_or(0);
            let (align, residue) = self.align[root];
            let mut group = Group {
                members: Vec::with_capacity(members.len()),
                span: 0,
                align: align as u32,
                residue: (residue + first).rem_euclid(align) as u32,
                fixed: None,
                bank: bank(draft, members[0].0),
            };
            for &(value, at) in members {
                let at = (at - first) as u32;
                let given = draft.fixed(value).map(|place| place.checked_sub(at));
                let is_same = |place| group.fixed.is_none_or(|fixed| fixed == place);
                match given {
                    None => {}
                    Some(Some(place)) if is_same(place) => group.fixed = Some(place),
                    Some(_) => return Err(Contradiction(None)),
                }
                if bank(draft, value) != group.bank {
                    return Err(Contradiction(None));
                }
                group.span = group.span.max(at + draft.units(value).max(1));
                groups.of[value.index()] = Some((groups.list.len() as u32, at));
                group.members.push((value, at));
            }
            if group
                .fixed
                .is_some_and(|place| place % group.align != group.residue)
            {
                return Err(Contradiction(None));
            }
            groups.list.push(group);
        }
        Ok(groups)
    }
}

fn bank(draft: &Draft, value: Value) -> Bank {
    match draft.units(value) {
        0 => Bank::Class(draft.class(value).0),
        _ => Bank::General,
    }
}
