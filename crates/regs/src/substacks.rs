//! Which spill slots lie in shared memory: CRAT's spilling optimisation.
//!
//! Paper: CRAT section 5.3, Algorithm 1. The spill stack is cut into sub-stacks; the gain of one is
//! the number of its accesses; a 0-1 knapsack puts those into the spare shared memory that save most
//! accesses to local memory. The spare memory is what the chosen TLP leaves, so TLP never suffers.
//!
//! Departures: accesses are weighted by loops (the paper counts them where they stand), and beside
//! the paper's sub-stacks by type and width there are finer ones, one for each cell, that is for all
//! live ranges that share a piece of memory: the paper leaves other cuts to future work.

use warpwright_flow::{EntityRef, Function, Value};

use crate::allocate::{Added, Allocation, Limits};
use crate::draft::{Draft, Origin, Role};
use crate::evict::{Facts, remove_dead_stores};
use crate::frame::{Cell, Frame, Layout};
use crate::knapsack::{Item, choose};

/// How the spill stack is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// One sub-stack for each register class: the paper's.
    Class,
    /// One for each cell.
    #[default]
    Cell,
}

/// Shared memory that spilling may take.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Bytes per block: the paper's SpareShmSize.
    pub capacity: u64,
    /// Threads of the largest block.
    pub threads: u32,
    /// How the slots lie.
    pub layout: Layout,
    /// How the spill stack is cut.
    pub cut: Cut,
}

impl Shared {
    /// The sets of base addresses worth trying, by the access sizes that they serve (0: all).
    pub(crate) fn base_sizes(&self) -> &'static [&'static [u32]] {
        match self.layout {
            Layout::SlotMajor => &[&[4], &[8], &[4, 8]],
            Layout::ThreadMajor => &[&[0]],
        }
    }
}

/// Places the slots of an allocation: those that save most in shared memory, as far as there are base
/// addresses for them, and the others in local memory.
pub(crate) fn distribute(
    mut draft: Draft,
    register: Vec<Option<u32>>,
    limits: &Limits,
    bases: &[u32],
) -> Allocation {
    remove_dead_stores(&mut draft);
    let facts = Facts::new(&draft);
    let ranges = facts.ranges(&draft);
    let (layout, threads) = match &limits.shared {
        Some(shared) => (shared.layout, shared.threads),
        None => (Layout::ThreadMajor, 1),
    };
    let all = Frame::new(&draft, &ranges, layout, threads, |_| true);
    let chosen = match &limits.shared {
        Some(shared) => chosen_cells(&draft, &facts, &all, shared, bases),
        None => Vec::new(),
    };
    let shared = all.keep(|cell| chosen.contains(&cell));
    let local = all
        .keep(|cell| !chosen.contains(&cell))
        .laid_out(Layout::ThreadMajor, 1);
    drop_bases(&mut draft, &shared);
    let added = count(&draft, &shared);
    Allocation {
        merged: 0,
        draft,
        register,
        shared,
        local,
        added,
    }
}

/// The knapsack over the sub-stacks.
fn chosen_cells(
    draft: &Draft,
    facts: &Facts,
    frame: &Frame,
    shared: &Shared,
    bases: &[u32],
) -> Vec<Cell> {
    let reachable = |cell: &Cell| bases.contains(&0) || bases.contains(&cell.bytes);
    let mut stacks: Vec<(u8, Vec<Cell>)> = Vec::new();
    for (cell, class) in frame
        .cells()
        .into_iter()
        .filter(|(cell, _)| reachable(cell))
    {
        let same = stacks.iter_mut().find(|(of, _)| *of == class.0);
        match (shared.cut, same) {
            (Cut::Class, Some((_, cells))) => cells.push(cell),
            _ => stacks.push((class.0, vec![cell])),
        }
    }
    let items: Vec<Item> = stacks
        .iter()
        .map(|(_, cells)| Item {
            size: cells.iter().map(|cell| u64::from(cell.bytes)).sum::<u64>()
                * u64::from(shared.threads),
            gain: cells
                .iter()
                .map(|&cell| accesses(draft, facts, frame, cell))
                .sum::<f64>() as u64,
        })
        .collect();
    let chosen = choose(&items, capacity(shared));
    chosen
        .into_iter()
        .flat_map(|index| stacks[index].1.clone())
        .collect()
}

/// What fits however the cells are chosen: thread-major frames are rounded up to eight bytes a
/// thread if both sizes meet.
fn capacity(shared: &Shared) -> u64 {
    match shared.layout {
        Layout::SlotMajor => shared.capacity,
        Layout::ThreadMajor => {
            let slack = 4 * u64::from(shared.threads);
            shared.capacity.saturating_sub(slack)
        }
    }
}

/// Loop-weighted accesses to a cell.
fn accesses(draft: &Draft, facts: &Facts, frame: &Frame, cell: Cell) -> f64 {
    let of_cell = |&inst: &warpwright_flow::Inst| {
        slot(draft, inst).is_some_and(|slot| frame.cell(slot) == Some(cell))
    };
    let all = draft.insts().filter(of_cell);
    all.map(|inst| facts.weight(inst)).sum()
}

/// The slot that an added load or store accesses.
pub fn slot(draft: &Draft, inst: warpwright_flow::Inst) -> Option<Value> {
    let is_access = matches!(
        draft.origin(inst),
        Origin::Load { .. } | Origin::Store { .. }
    );
    let mut all = draft.defs(inst).iter().chain(draft.uses(inst)).copied();
    let slot = all.find(|&value| matches!(draft.role(value), Role::Slot(_)));
    slot.filter(|_| is_access)
}

/// Accesses to local memory need no base address.
fn drop_bases(draft: &mut Draft, shared: &Frame) {
    for index in 0..draft.inst_count() {
        let inst = warpwright_flow::Inst::new(index);
        if slot(draft, inst).is_some_and(|slot| shared.cell(slot).is_none()) {
            let roles: Vec<bool> = draft
                .uses(inst)
                .iter()
                .map(|&value| !matches!(draft.role(value), Role::Base(_)))
                .collect();
            let mut keep = roles.into_iter();
            draft.code[index]
                .uses
                .retain(|_| keep.next().unwrap_or(true));
        }
    }
    if shared.is_empty() {
        let own = draft
            .code
            .first()
            .is_some_and(|code| code.origin == Origin::Bases);
        draft.remove(|inst| own && inst.index() == 0);
    }
}

/// What was added, weighted by loops.
fn count(draft: &Draft, shared: &Frame) -> Added {
    let facts = Facts::new(draft);
    let mut added = Added::default();
    for inst in draft.insts() {
        match slot(draft, inst) {
            Some(slot) if shared.cell(slot).is_some() => added.shared += facts.weight(inst),
            Some(_) => added.local += facts.weight(inst),
            None if draft.origin(inst) == Origin::Bases => added.others += 1.0,
            None => {}
        }
    }
    added
}
