//! Our liveness against another program's: nvdisasm's life ranges, instruction by instruction.
//!
//! Where the two differ, nvdisasm's rule for guarded writes ([`Hyperblocks`]) must say exactly what nvdisasm
//! says, at every instruction of the section; such differences are counted, all others are reported.

use warpwright_flow::{EntityRef, Inst, Value};

use super::hyperblock::Hyperblocks;
use super::occupied::for_each_occupied;
use super::{Code, register_of};
use crate::roles::File;

/// A register that only one side takes for occupied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// Where.
    pub inst: Inst,
    /// Which register.
    pub value: Value,
    /// Is it occupied for us (and not for them)?
    pub ours: bool,
}

/// The files that are compared. nvdisasm shows no convergence barriers.
pub const COUNTED: [File; 4] = [File::Gpr, File::Pred, File::Uniform, File::UniformPred];

/// What another program says of one instruction.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Registers that are live before it or written by it, ascending.
    pub occupied: Vec<Value>,
    /// Is there a label before it?
    pub labelled: bool,
}

/// What the comparison finds.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Differences without an explanation, in program order.
    pub differences: Vec<Difference>,
    /// Registers and instructions at which the two differ by the rule for guarded writes.
    pub by_rule: usize,
}

/// Compares with what another program says of every instruction; of some (code that it takes for dead) it may
/// say nothing. `shown` is the number of registers of each
/// file that the other program shows, by [`COUNTED`]; others are not compared.
pub fn compare(code: &Code, theirs: &[Option<Row>], shown: &[u16; COUNTED.len()]) -> Comparison {
    let mut plain = Vec::new();
    for_each_occupied(code, |inst, ours| {
        differences(inst, ours, theirs, shown, &mut plain);
    });
    if plain.is_empty() {
        return Comparison::default();
    }
    let row = |inst: Inst| theirs.get(inst.index()).and_then(Option::as_ref);
    let labelled = |inst: Inst| row(inst).is_some_and(|row| row.labelled);
    let mut left = Vec::new();
    Hyperblocks::new(code, labelled).for_each_occupied(|inst, ours| {
        differences(inst, ours, theirs, shown, &mut left);
    });
    left.sort_unstable();
    Comparison {
        by_rule: if left.is_empty() { plain.len() } else { 0 },
        differences: left,
    }
}

/// Adds what only one of two ascending lists has.
fn differences(
    inst: Inst,
    ours: &[Value],
    theirs: &[Option<Row>],
    shown: &[u16; COUNTED.len()],
    found: &mut Vec<Difference>,
) {
    let Some(Some(row)) = theirs.get(inst.index()) else {
        return;
    };
    let mut theirs = row.occupied.iter().copied().peekable();
    let mut ours = ours.iter().copied().filter(|&v| is_shown(v, shown));
    let mut mine = ours.next();
    loop {
        let (value, is_ours) = match (mine, theirs.peek().copied()) {
            (None, None) => break,
            (Some(a), Some(b)) if a == b => {
                mine = ours.next();
                theirs.next();
                continue;
            }
            (Some(a), other) if other.is_none_or(|b| a < b) => (a, true),
            (_, Some(b)) => (b, false),
            (Some(a), None) => (a, true),
        };
        if is_ours {
            mine = ours.next();
        } else {
            theirs.next();
        }
        found.push(Difference {
            inst,
            value,
            ours: is_ours,
        });
    }
}

fn is_shown(value: Value, shown: &[u16; COUNTED.len()]) -> bool {
    let Some((file, number)) = register_of(value) else {
        return false;
    };
    let place = COUNTED.iter().position(|&known| known == file);
    place.is_some_and(|place| number < shown[place])
}
