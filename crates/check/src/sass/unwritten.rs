//! What a control field keeps apart though no register shows it, and what ptxas never writes into one.
//!
//! Found by an attack that moved instructions together with their control fields: every register was protected, and
//! the code was wrong. Three rules, each with the original as its witness:
//!
//! 1. *Behind a barrier.* What takes an unknown time (memory, special registers) issues some cycles behind a barrier or
//!    fence of the unit `sync`: at least as many as in the original behind the same operation, or, behind a barrier of
//!    the block, as many as ptxas leaves at least ([`cycles_behind_barrier`]).
//! 2. *A scoreboard that nobody releases.* A write scoreboard belongs to what delivers late, a read scoreboard to what
//!    reads late; on others ptxas sets none.
//! 3. *Bits without a meaning.* Operand reuse on what reads its registers late, and the bits above the control field.
//!
//! A wait so early that it does not see its scoreboard counts for nothing in the hazard checker already. Distances are
//! counted along the order of the code: where control jumps, the branch takes longer than any of them. It goes by no
//! paper.

use std::collections::BTreeMap;

use warpwright_flow::{EntityRef as _, Inst};
use warpwright_sass::function::Code;
use warpwright_sass::roles::{File, Role, Roles, Table};
use warpwright_sass::{Instruction, Operation};
use warpwright_target::{IssueUnits, cycles_behind_barrier};

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
    let [before, after] = [original, new].map(|code| behind_barriers(code, units));
    for (&operation, &(cycles, at)) in &after {
        let witness = before.get(&operation).map(|seen| seen.0);
        let is_barrier = operation == Operation::BAR.number();
        let usual = cycles_behind_barrier(sm).filter(|_| is_barrier);
        let enough = witness.into_iter().chain(usual).min();
        if enough.is_none_or(|enough| cycles < enough) {
            return Err(Weaker::BehindBarrier { at, cycles });
        }
    }
    Ok(())
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

/// Bits from here on belong to no field that is known.
const ABOVE_CONTROL: u32 = 126;

/// Distances from here on are not told apart.
const FAR: u16 = 32;

/// By operation of the unit `sync`: the fewest cycles from it to what takes an unknown time, with where that stands.
fn behind_barriers(code: &Code, units: &IssueUnits) -> BTreeMap<u16, (u16, u32)> {
    let mut fewest = BTreeMap::new();
    let mut open: BTreeMap<u16, u16> = BTreeMap::new();
    for (index, &word) in code.instructions().iter().enumerate() {
        let operation = word.operation().number();
        let unit = units.of(operation);
        if unit.is_none_or(|unit| unit.is_late) {
            for (barrier, cycles) in std::mem::take(&mut open) {
                let here = (cycles, offset(Inst::new(index)));
                let known = fewest.entry(barrier).or_insert(here);
                *known = here.min(*known);
            }
        }
        let is_nop = operation == Operation::NOP.number();
        if !is_nop && unit.is_some_and(|unit| unit.name == "sync") {
            open.insert(operation, 0);
        }
        let cycles = u16::from(word.control().stall.max(1));
        open.values_mut().for_each(|since| *since += cycles);
        open.retain(|_, since| *since < FAR);
    }
    fewest
}
