//! Our liveness against another program's: nvdisasm's life ranges, instruction by instruction.
//!
//! One kind of difference is nvdisasm's own contradiction and is left out: it shows a register live into an
//! instruction that control reaches by falling through from the one before, and not live at that one.
//! (It happens where `.nv.info` puts a label between the two.) The register counts as understood there and
//! on all ways that lead there without writing it.

use std::collections::BTreeSet;

use warpwright_flow::{Cfg, EntityRef, Function, Inst, Transfer, Value};

use super::{Code, for_each_occupied};
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

/// Numbers of occupied registers at one instruction, in the order of [`COUNTED`].
pub type Counts = [u32; COUNTED.len()];

/// The files that are compared. nvdisasm shows no convergence barriers.
pub const COUNTED: [File; 4] = [File::Gpr, File::Pred, File::Uniform, File::UniformPred];

/// The numbers of occupied registers at every instruction.
pub fn counts(code: &Code) -> Vec<Counts> {
    let mut counts = vec![Counts::default(); code.instructions().len()];
    for_each_occupied(code, |inst, occupied| {
        for value in occupied {
            if let Some(place) = counted(*value) {
                counts[inst.index()][place] += 1;
            }
        }
    });
    counts
}

fn counted(value: Value) -> Option<usize> {
    let (file, _) = super::register_of(value)?;
    COUNTED.iter().position(|&known| known == file)
}

/// What another program says of one instruction.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Registers that are live before it or written by it.
    pub occupied: BTreeSet<Value>,
    /// Those of them that it writes without reading them.
    pub written: BTreeSet<Value>,
}

/// What the comparison finds.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Differences without an explanation, in program order.
    pub differences: Vec<Difference>,
    /// Registers and instructions at which the other program contradicts itself.
    pub contradictions: usize,
}

/// Compares with what another program says of every instruction. `shown` is the number of registers of each
/// file that the other program shows, by [`COUNTED`]; others are not compared.
pub fn compare(code: &Code, theirs: &[Row], shown: &[u16; COUNTED.len()]) -> Comparison {
    let contradicted = contradictions(code, theirs);
    let mut found = Comparison::default();
    for_each_occupied(code, |inst, ours| {
        let Some(theirs) = theirs.get(inst.index()) else {
            return;
        };
        let is_shown = |value: &&Value| {
            let place = counted(**value);
            let number = super::register_of(**value).map_or(0, |register| register.1);
            place.is_some_and(|place| number < shown[place])
        };
        for &value in ours.iter().filter(is_shown) {
            if theirs.occupied.contains(&value) {
                continue;
            }
            if contradicted.contains(&(inst, value)) {
                found.contradictions += 1;
            } else {
                found.differences.push(Difference {
                    inst,
                    value,
                    ours: true,
                });
            }
        }
        for &value in theirs.occupied.iter().filter(|value| !ours.contains(value)) {
            found.differences.push(Difference {
                inst,
                value,
                ours: false,
            });
        }
    });
    found.differences.sort_unstable();
    found
}

/// Where a register must be live by the other program's own rows, and is not.
fn contradictions(code: &Code, theirs: &[Row]) -> BTreeSet<(Inst, Value)> {
    let before = live_before(code, theirs);
    let cfg = Cfg::new(code);
    let mut found = BTreeSet::new();
    let mut work = Vec::new();
    for (at, pair) in before.windows(2).enumerate() {
        let inst = Inst::new(at);
        if code.transfer(inst) != Transfer::Next {
            continue;
        }
        let missing = pair[1]
            .iter()
            .filter(|value| !theirs[at].occupied.contains(value));
        work.extend(missing.map(|&value| (inst, value)));
    }
    while let Some((inst, value)) = work.pop() {
        let absent = theirs
            .get(inst.index())
            .is_some_and(|row| !row.occupied.contains(&value));
        if !absent || !found.insert((inst, value)) {
            continue;
        }
        let block = cfg.block_of(inst);
        if inst == cfg.first_inst(block) {
            work.extend(
                cfg.preds(block)
                    .iter()
                    .map(|&pred| (cfg.last_inst(pred), value)),
            );
        } else {
            work.push((Inst::new(inst.index() - 1), value));
        }
    }
    found
}

/// What is live before each instruction according to the rows: occupied and not just written. A guarded write
/// leaves alive what is live behind it.
fn live_before(code: &Code, theirs: &[Row]) -> Vec<BTreeSet<Value>> {
    let mut before = vec![BTreeSet::new(); theirs.len()];
    for at in (0..theirs.len()).rev() {
        let row = &theirs[at];
        let guarded = code.is_predicated(Inst::new(at));
        let after = before.get(at + 1).cloned().unwrap_or_default();
        let live =
            |value: &&Value| !row.written.contains(*value) || guarded && after.contains(*value);
        before[at] = row.occupied.iter().filter(live).copied().collect();
    }
    before
}
