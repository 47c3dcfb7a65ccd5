//! Is code in another order, with control fields of its own, protected like the original?
//!
//! Goal: where instructions changed places, [`super::protection`] has nothing to hold on to: no control field is still
//! about the same neighbours. What is left to ask, beside the hazard checker, goes here. By no paper.
//!
//! * *What orders memory by its control field* (fences, groups of copies; scoreboards that no register explains): the
//!   same instructions in the same order, with as many scoreboards and no shorter stalls; what DEPBAR counts is counted
//!   on the same scoreboards; and what such a scoreboard tells is awaited by the first instruction that touches
//!   memory, synchronizes or transfers control.
//! * *Waits that no register explains* ([`same_waits`]): what they end is over there, too.
//! * *Distances* have witnesses, and what no register shows is kept ([`super::protection::compare_anew`]).

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Cfg, Inst};
use warpwright_sass::Operation;
use warpwright_sass::function::Code;
use warpwright_sass::roles::{Role, Table};

use super::judge::{Hidden, Judged};
use super::places::shape;
use super::protection::for_each_set;
use super::step;
use super::timing::Operand;
use super::words::Unknown;

/// Holds what orders memory in `new` against `original`.
pub(super) fn compare(
    original: &Judged,
    new: &Judged,
    table: &'static Table,
) -> Result<(), Unknown> {
    let all = [original.hidden(), new.hidden()];
    let before = special(original.code, &all[0], table);
    let after = special(new.code, &all[1], table);
    let stall = |judged: &Judged, inst: Inst| judged.code.instructions()[inst.0 as usize].stall();
    for (at, (inst, event)) in after.iter().enumerate() {
        let keeps = before.get(at).is_some_and(|(old, known)| {
            let stalls = || stall(original, *old) <= stall(new, *inst);
            known == event && (!event.synchronizes || stalls())
        });
        if !keeps {
            return Err(Unknown::Schedule(inst.0 * 16));
        }
        let mut open = all[1][inst.0 as usize].tokens & !event.counted;
        for (later, hidden) in all[1].iter().enumerate().skip(inst.0 as usize + 1) {
            open &= !new.code.instructions()[later].wait_mask();
            if open == 0 {
                break;
            }
            if hidden.awaits_tokens {
                return Err(Unknown::Schedule(later as u32 * 16));
            }
        }
    }
    match before.len() == after.len() {
        true => same_waits((original, new), table, |waiter, setter, is_result| {
            orders_memory(original, waiter, setter, table)
                && !is_for_register(original, waiter, setter, is_result)
        }),
        false => Err(Unknown::Schedule(0)),
    }
}

/// Does every instruction that is still there set a scoreboard where it set one, and wait for whatever it waited for, by
/// whichever scoreboards?
pub(super) fn waits_for_as_much(
    (original, new): (&Judged, &Judged),
    table: &'static Table,
) -> Result<(), Unknown> {
    let [before, after] = [original, new].map(|judged| names(judged.code, table));
    let tells = |judged: &Judged, inst: usize| {
        let control = judged.code.instructions()[inst].control();
        [control.write_barrier, control.read_barrier].map(|board| board.is_some())
    };
    let places: BTreeMap<Name, usize> = after.into_iter().zip(0..).collect();
    for (at, name) in before.iter().enumerate() {
        let Some(&now) = places.get(name) else {
            continue;
        };
        let [told, tells] = [tells(original, at), tells(new, now)];
        if told.iter().zip(tells).any(|(&told, tells)| told && !tells) {
            return Err(Unknown::Schedule(now as u32 * 16));
        }
    }
    // Where the original waits for what nobody has set, too, as many scoreboards are awaited.
    let mut idle: BTreeMap<Name, u32> = BTreeMap::new();
    for_each_set(original.code, |inst, set| {
        let open = set.iter().fold(0, |all, (_, board)| all | board);
        let mask = original.code.instructions()[inst.0 as usize].wait_mask();
        idle.insert(before[inst.0 as usize], (mask & !open).count_ones());
    });
    for (name, &now) in &places {
        let awaited = new.code.instructions()[now].wait_mask().count_ones();
        if idle.get(name).is_some_and(|&idle| awaited < idle) {
            return Err(Unknown::Schedule(now as u32 * 16));
        }
    }
    same_waits((original, new), table, |_, _, _| true)
}

/// A wait of one instruction for what another one tells: the waiting one, the other one, and whether it tells of its
/// results or of its sources.
type Wait = (Name, Name, bool);

/// An instruction without its registers, and which of those that look the same it is.
type Name = (u128, u32);

/// Waits that matter are kept. Those that no register explains order memory: an invalidation of the cache waits for the load that acquires. So what
/// works on no register waits for whatever it waited for, and what touches memory for whatever is no plain access, unless
/// it takes the result, or overwrites what that reads: the judge's walk sees to these. Calls and branches wait by
/// convention.
fn same_waits(
    (original, new): (&Judged, &Judged),
    table: &'static Table,
    matters: impl Fn(Inst, Inst, bool) -> bool,
) -> Result<(), Unknown> {
    let [before, after] = [original, new].map(|judged| names(judged.code, table));
    let mut wanted: BTreeMap<Name, Vec<Wait>> = BTreeMap::new();
    for_each_set(original.code, |inst, set| {
        let words = original.code.instructions();
        let mask = words[inst.0 as usize].wait_mask();
        for &(setter, _) in set.iter().filter(|(_, board)| mask & board != 0) {
            let [waiter, other] = [inst, setter].map(|one| before[one.0 as usize]);
            let control = words[setter.0 as usize].control();
            let awaits = |board: Option<u8>| board.is_some_and(|board| mask >> board & 1 != 0);
            let waits = wanted.entry(waiter).or_default();
            let mut wait_for = |is_result: bool, board: Option<u8>| {
                let wait = awaits(board) && matters(inst, setter, is_result);
                waits.extend(wait.then_some((waiter, other, is_result)));
            };
            wait_for(true, control.write_barrier);
            wait_for(false, control.read_barrier);
        }
    });
    let places: BTreeMap<Name, Inst> = after.iter().copied().zip((0..).map(Inst)).collect();
    let mut failed = None;
    for_each_set(new.code, |inst, set| {
        let words = new.code.instructions();
        let mask = words[inst.0 as usize].wait_mask();
        let waits = wanted.remove(&after[inst.0 as usize]).unwrap_or_default();
        let holds = |&(_, other, is_result): &Wait| {
            // What is gone tells nothing.
            let Some(&setter) = places.get(&other) else {
                return true;
            };
            let control = words[setter.0 as usize].control();
            let board = match is_result {
                true => control.write_barrier,
                false => control.read_barrier.or(control.write_barrier),
            };
            let bit = board.and_then(|board| 1u8.checked_shl(board.into()));
            bit.is_some_and(|bit| mask & bit != 0 || !set.contains(&(setter, bit)))
        };
        if !waits.iter().all(holds) {
            failed.get_or_insert(inst);
        }
    });
    match failed {
        Some(inst) => Err(Unknown::Order(inst.0 * 16)),
        None => Ok(()),
    }
}

fn names(code: &Code, table: &Table) -> Vec<Name> {
    let mut seen: BTreeMap<u128, u32> = BTreeMap::new();
    let shapes = code.instructions().iter().map(|&word| shape(word, table));
    shapes
        .map(|shape| {
            let number = seen.entry(shape).or_default();
            *number += 1;
            (shape, *number)
        })
        .collect()
}

/// Is a wait of `waiter` for `setter` one that orders memory?
fn orders_memory(judged: &Judged, waiter: Inst, setter: Inst, table: &'static Table) -> bool {
    let word = |inst: Inst| judged.code.instructions()[inst.0 as usize];
    let unit = judged.timed[waiter.0 as usize].unit;
    if matches!(unit.name, "control" | "bmov") {
        return false;
    }
    let works_on_none = judged.timed[waiter.0 as usize]
        .operands
        .iter()
        .all(|one| one.is_guard());
    let touches_memory = unit.sources.is_some() && unit.reads_before_barrier;
    let is_plain = step::is_plain(word(setter), table);
    works_on_none && word(waiter).operation() != Operation::NOP || touches_memory && !is_plain
}

/// Does `waiter` take what `setter` delivers (`is_result`), or overwrite what it reads late?
fn is_for_register(judged: &Judged, waiter: Inst, setter: Inst, is_result: bool) -> bool {
    let [waiter, setter] = [waiter, setter].map(|inst| &judged.timed[inst.0 as usize]);
    let role = if is_result { Role::Def } else { Role::Use };
    let mut operands = setter.operands.iter();
    operands.any(|one| {
        let meets = |other: &Operand| {
            other.value == one.value && (is_result || other.span.role == Role::Def)
        };
        one.span.role == role && setter.is_late(one.span) && waiter.operands.iter().any(meets)
    })
}

/// Where `__syncwarp` stood and the warp is together anyway ptxas leaves a NOP (tried with 13.5 on sm_75 to sm_120;
/// without any word of it in its documentation). Other lanes may touch what a lane's own addresses keep apart, so
/// global accesses stay on their side. Shared ones keep their order anyhow, and local ones are the lane's own. Further
/// NOPs may stand anywhere.
///
/// So such a NOP is a barrier for global memory, in either version the one before the next access: what was loaded
/// before it says nothing of what is there behind it. Here they are, version by version.
pub(super) fn warp_barriers(
    (original, new): (&Code, &Code),
    table: &'static Table,
) -> Result<[BTreeSet<Inst>; 2], Unknown> {
    let mut barriers = [BTreeSet::new(), BTreeSet::new()];
    let mut rest = between_nops(new, table).into_iter();
    let (mut is_first, mut behind) = (true, None);
    for (place, wanted) in between_nops(original, table) {
        if wanted.is_empty() {
            behind = behind.or(Some(place));
            continue;
        }
        let (mut found, mut start) = (BTreeMap::new(), None);
        while found != wanted {
            let (at, more) = rest.next().ok_or(Unknown::Barrier(place))?;
            if !more.is_empty() {
                start = start.or(Some(at));
            }
            for (shape, count) in more {
                let all: &mut u32 = found.entry(shape).or_default();
                *all += count;
                if wanted.get(&shape).is_none_or(|wanted| wanted < all) {
                    return Err(Unknown::Barrier(place));
                }
            }
        }
        if !is_first {
            barriers[0].insert(Inst(place / 16));
            barriers[1].extend(start.map(|at| Inst(at / 16)));
        }
        (is_first, behind) = (false, None);
    }
    // Behind the last access, in a loop.
    let behind = behind.map(|place| Inst(place / 16));
    let is_reached = |inst: &Inst| {
        let cfg = Cfg::new(original);
        cfg.is_reachable(cfg.block_of(*inst))
    };
    if let Some(last) = behind.filter(|last| !is_first && is_reached(last)) {
        let (at, _) = rest.next().ok_or(Unknown::Barrier(last.0 * 16))?;
        barriers[0].insert(last);
        barriers[1].insert(Inst(at / 16));
    }
    Ok(barriers)
}

/// The global accesses behind each NOP, by shape, and where the NOP is.
type Regions = Vec<(u32, BTreeMap<u128, u32>)>;

fn between_nops(code: &Code, table: &'static Table) -> Regions {
    let mut regions = vec![(0, BTreeMap::new())];
    for inst in all(code) {
        let word = code.instructions()[inst.0 as usize];
        let name = step::name(word, table);
        if matches!(name, "LDG" | "STG")
            && let Some((_, here)) = regions.last_mut()
        {
            *here.entry(shape(word, table)).or_default() += 1;
        }
        if name == "NOP" {
            regions.push((inst.0 * 16, BTreeMap::new()));
        }
    }
    regions
}

fn all(code: &Code) -> impl Iterator<Item = Inst> + use<> {
    (0..code.instructions().len() as u32).map(Inst)
}

/// What must be the same of an instruction that orders memory by its control field.
#[derive(PartialEq, Eq)]
struct Special {
    shape: u128,
    /// How many scoreboards that no register explains.
    tokens: u32,
    counted: u8,
    synchronizes: bool,
    /// No stall and the yield bit clear is another way to wait.
    is_interlocked: bool,
}

fn special(code: &Code, hidden: &[Hidden], table: &'static Table) -> Vec<(Inst, Special)> {
    let found = all(code).zip(hidden);
    let found = found.filter(|(_, h)| h.tokens != 0 || h.counted != 0 || h.synchronizes);
    found
        .map(|(inst, hidden)| {
            let word = code.instructions()[inst.0 as usize];
            let is_interlocked =
                hidden.synchronizes && word.stall() == 0 && !word.control().yield_bit;
            let special = Special {
                shape: shape(word, table),
                tokens: hidden.tokens.count_ones(),
                counted: hidden.counted,
                synchronizes: hidden.synchronizes,
                is_interlocked,
            };
            (inst, special)
        })
        .collect()
}
