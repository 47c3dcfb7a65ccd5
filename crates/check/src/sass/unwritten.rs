//! What a control field keeps apart though no register shows it, and what ptxas never writes into one.
//!
//! Found by an attack that moved instructions together with their control fields: every register was protected, and
//! the code was wrong. Three rules, each with the original as its witness:
//!
//! 1. *Behind what synchronizes.* No register connects a barrier, a fence or a wait for a cluster with what comes next,
//!    but ptxas keeps the next one of these apart from it, what transfers control, and what takes an unknown time (memory,
//!    special registers): by six cycles from `UCGABAR_ARV` to `UCGABAR_WAIT`, by eight from `CGAERRBAR` to the former.
//!    So there are at least as many cycles as in the original behind the same operation, or, from a barrier of the
//!    block to what takes an unknown time, to a fence, to the next one or to what transfers control, as many as ptxas
//!    leaves at least ([`cycles_behind_barrier`], [`cycles_between_barriers`], and the gap that its port has to that of
//!    branches). Arithmetic may follow at once, as ptxas lets it, and memory accesses may come right before.
//! 2. *A scoreboard that nobody releases.* A write scoreboard belongs to what delivers late, a read scoreboard to what
//!    reads late; on others ptxas sets none.
//! 3. *What ptxas never writes.* Operand reuse on what reads its registers late, bits above the control field, and stalls of
//!    twelve cycles or more with the yield bit set.
//!
//! A wait so early that it does not see its scoreboard counts for nothing in the hazard checker already. Distances are
//! counted along the order of the code: where control jumps, the branch takes longer than any of them. It goes by no
//! paper.

use std::collections::BTreeMap;

use warpwright_flow::{EntityRef as _, Inst};
use warpwright_sass::function::Code;
use warpwright_sass::roles::{File, Role, Roles, Table};
use warpwright_sass::{Control, Instruction, Operation};
use warpwright_target::{IssueUnits, cycles_behind_barrier, cycles_between_barriers};

use super::places::shape;
use super::protection::{Weaker, offset};

/// Holds `new` against `original`, whose instruction stands for each of `new`'s (`kept`), if one does.
pub(super) fn compare(
    (original, new): (&Code, &Code),
    kept: &[Option<u32>],
    table: &Table,
) -> Result<(), Weaker> {
    let sm = new.instructions().first().map_or(0, |word| word.sm());
    let units = IssueUnits::for_sm(sm).ok_or(Weaker::Architecture)?;
    for (at, &word) in new.instructions().iter().enumerate() {
        let was = kept[at].map(|old| original.instructions()[old as usize]);
        fields(word, was, units, table, offset(Inst::new(at)))?;
    }
    let [before, after] = [original, new].map(|code| behind_barriers(code, units, table));
    for (&(barrier, next), &(cycles, at)) in &after {
        let witness = before.get(&(barrier, next)).map(|seen| seen.0);
        let usual = match next {
            _ if barrier.operation != Operation::BAR.number() => None,
            Next::Late => cycles_behind_barrier(sm),
            Next::Control => gap_to_branch(barrier.operation, units),
            Next::Barrier(next) if next.operation == Operation::BAR.number() => {
                cycles_between_barriers(sm)
            }
            Next::Barrier(next) if next.operation == Operation::MEMBAR.number() => {
                cycles_behind_barrier(sm)
            }
            Next::Nothing | Next::Barrier(_) => None,
        };
        let enough = witness.into_iter().chain(usual).min();
        if enough.is_none_or(|enough| cycles < enough) {
            return Err(Weaker::BehindBarrier { at, cycles });
        }
    }
    Ok(())
}

/// The cycles that ptxas leaves at least between an operation and a branch.
fn gap_to_branch(operation: u16, units: &IssueUnits) -> Option<u16> {
    let [earlier, branch] = [operation, Operation::BRA.number()].map(|one| units.port(one));
    let gaps = units.gaps_before(branch?);
    let gap = gaps.iter().find(|gap| Some(gap.0) == earlier)?;
    Some(gap.1.into())
}

/// Rules 2 and 3.
fn fields(
    word: Instruction,
    was: Option<Instruction>,
    units: &IssueUnits,
    table: &Table,
    at: u32,
) -> Result<(), Weaker> {
    let above = |word: Instruction| word.bits() >> ABOVE_CONTROL;
    if above(word) != was.map_or(0, above) {
        return Err(Weaker::Reserved(at));
    }
    let now = word.control();
    let had = was.map(|was| was.control());
    let is_odd = |control: Control| control.stall >= LONG_STALL && control.yield_bit;
    if is_odd(now) && !had.is_some_and(is_odd) {
        return Err(Weaker::Yield(at));
    }
    let unit = units.of(word.operation().number());
    let is_late = unit.is_some_and(|unit| unit.is_late || unit.is_late_if_counted);
    if is_late && now.reuse & !had.map_or(0, |had| had.reuse) != 0 {
        return Err(Weaker::Reuse(at));
    }
    let writes = now.write_barrier.is_some() && had.is_none_or(|had| had.write_barrier.is_none());
    let reads = now.read_barrier.is_some() && had.is_none_or(|had| had.read_barrier.is_none());
    if !writes && !reads {
        return Ok(());
    }
    let roles = table.roles(word);
    let has = |wanted: fn(&Roles) -> bool| roles.as_ref().is_some_and(wanted);
    let delivers = has(|roles| roles.defs().next().is_some());
    let reads_late = has(|roles| {
        let late = |file| matches!(file, File::Gpr | File::Uniform);
        roles
            .spans()
            .iter()
            .any(|span| span.role == Role::Use && late(span.file))
    });
    let is_released = is_late && (!writes || delivers) && (!reads || reads_late);
    match is_released {
        true => Ok(()),
        false => Err(Weaker::Unreleased(at)),
    }
}

/// From so many cycles on ptxas clears the yield bit; with it a stall may be much shorter than it says.
const LONG_STALL: u8 = 12;

/// Bits from here on belong to no field that is known.
const ABOVE_CONTROL: u32 = 126;

/// Distances from here on are not told apart.
const FAR: u16 = 32;

/// An instruction of the unit `sync`, without registers and control field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Barrier {
    operation: u16,
    shape: u128,
}

/// What comes behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// What takes an unknown time.
    Late,
    /// What transfers control.
    Control,
    /// Arithmetic, which may follow at once.
    Nothing,
    /// Another one of the unit.
    Barrier(Barrier),
}

/// One that was passed, and what has come behind it.
struct Passed {
    barrier: Barrier,
    cycles: u16,
    seen: Vec<Next>,
}

/// The fewest cycles from each barrier to the next one of each kind behind it, with where that stands.
fn behind_barriers(
    code: &Code,
    units: &IssueUnits,
    table: &Table,
) -> BTreeMap<(Barrier, Next), (u16, u32)> {
    let mut fewest = BTreeMap::new();
    let mut open: Vec<Passed> = Vec::new();
    for (index, &word) in code.instructions().iter().enumerate() {
        let next = next(word, units, table);
        for passed in open
            .iter_mut()
            .filter(|passed| !passed.seen.contains(&next))
        {
            let here = (passed.cycles, offset(Inst::new(index)));
            let known = fewest.entry((passed.barrier, next)).or_insert(here);
            *known = here.min(*known);
            passed.seen.push(next);
        }
        if let Next::Barrier(barrier) = next {
            open.retain(|passed| passed.barrier != barrier);
            open.push(Passed {
                barrier,
                cycles: 0,
                seen: vec![Next::Nothing],
            });
        }
        let cycles = u16::from(word.control().stall.max(1));
        open.iter_mut().for_each(|passed| passed.cycles += cycles);
        open.retain(|passed| passed.cycles < FAR);
    }
    fewest
}

fn next(word: Instruction, units: &IssueUnits, table: &Table) -> Next {
    let operation = word.operation().number();
    let unit = units.of(operation);
    match unit.map(|unit| unit.name) {
        _ if operation == Operation::NOP.number() => Next::Nothing,
        Some("sync") => Next::Barrier(Barrier {
            operation,
            shape: shape(word, table),
        }),
        Some("control") => Next::Control,
        _ if unit.is_none_or(|unit| unit.is_late) => Next::Late,
        _ => Next::Nothing,
    }
}
