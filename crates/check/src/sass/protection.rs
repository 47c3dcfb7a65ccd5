//! Does the rewritten code wait for as much as the original does?
//!
//! Goal: the tables of distances and orders are habits of ptxas and no specification of the hardware. Code whose control
//! fields follow from them alone went wrong on a device (docs/scheduling.md). So the witness here is ptxas's own
//! code: the original, and what was seen often.
//!
//! Theory. A control field protects dependences between accesses of registers: by cycles from issue to issue where a
//! unit has a fixed latency, by a scoreboard that is set and waited for elsewhere. What is enough depends on the two
//! operations and operands. Two lines of defence follow, and `unwritten` between them; [`super::judge`] comes before all.
//!
//! 1. *Kept instructions.* The two versions are aligned: a longest common subsequence of instructions without their
//!    registers; if that does not hold, another one as long that prefers equal control fields. A kept instruction must
//!    stall at least as long as before, set the same scoreboards (or one where it set none), and wait for at least the
//!    same ones; a wait may go where all that set its scoreboard before it are gone. So between two kept instructions
//!    nothing becomes weaker, unless one between them is gone.
//! 2. *Distances.* Each dependence that cycles protect, as [`super::flight`] finds it along all paths, needs a witness: the same two operations and operands with no more cycles in the original, or often in
//!    the mined table of distances by operation. Where these two were not seen often, as many cycles are enough as most
//!    operations of the same two classes come down to that were, or as the slowest class of readers needs behind the
//!    earlier one's class. Local and shared memory get their operands alike, and whatever takes an unknown time
//!    overwrites alike. That is all there is for new dependences, from inserted instructions and other names of
//!    registers, and for those that are shorter as something is gone.
//!
//! What is new and protected by a scoreboard is left to the judge. What the rule gives away: right code with
//! shorter stalls is undecided. It goes by no paper.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use warpwright_flow::{Block, Cfg, EntityRef as _, Inst};
use warpwright_sass::Control;
use warpwright_sass::function::{Code, register_of};
use warpwright_sass::roles::Table;
use warpwright_target::IssueUnits;

use super::align::{align, align_exactly, slide};
use super::flight::{Dependence, Kind};
use super::judge::Judged;
use super::places::shape;
use super::timing::Timed;
use super::unwritten;

/// What protects the rewritten code less than ptxas protected the original.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Weaker {
    #[error("the instruction at {at:#x} stalls for {now} cycles, in the original for {was}")]
    Stall { at: u32, was: u32, now: u32 },
    #[error("the instruction at {0:#x} waits for fewer scoreboards than in the original")]
    Waits(u32),
    #[error("the instruction at {0:#x} sets other scoreboards than in the original")]
    Scoreboards(u32),
    #[error(
        "the instruction at {0:#x} stalls for 12 cycles or more with the yield bit set, which ptxas never writes"
    )]
    Yield(u32),
    #[error(
        "{cycles} cycles lie between {earlier:#x} and {later:#x} ({}), and ptxas was not seen to leave as few between such instructions", order(*kind)
    )]
    Distance {
        earlier: u32,
        later: u32,
        cycles: u16,
        kind: Kind,
    },
    #[error(
        "the instruction at {at:#x} issues {cycles} cycles behind a barrier, and ptxas was not seen to leave as few"
    )]
    BehindBarrier { at: u32, cycles: u16 },
    #[error("the instruction at {0:#x} sets a scoreboard that it may never release")]
    Unreleased(u32),
    #[error(
        "the instruction at {0:#x} keeps an operand for reuse, which no such instruction of ptxas does"
    )]
    Reuse(u32),
    #[error("bits of the instruction at {0:#x} that have no known meaning differ")]
    Reserved(u32),
    #[error("nothing is known of the schedule on this architecture")]
    Architecture,
}

fn order(kind: Kind) -> &'static str {
    match kind {
        Kind::Raw => "read after write",
        Kind::War => "write after read",
        Kind::Waw => "write after write",
    }
}

/// Holds the control fields of `new` against those of `original`, which ptxas wrote.
pub(super) fn compare((before, after): (&Judged, &Judged), table: &Table) -> Result<(), Weaker> {
    let (original, new) = (before.code, after.code);
    aligned((original, new), table, |kept| {
        stalls(original, new, kept)?;
        scoreboards(original, new, kept)?;
        unwritten::compare((original, new), kept, table)
    })?;
    distances(before, after)
}

/// Does every kept instruction stall at least as long as before, whatever scoreboards it sets and waits for?
pub(super) fn stalls_as_long(original: &Code, new: &Code, table: &Table) -> bool {
    let holds = |kept: &[Option<u32>]| stalls(original, new, kept);
    aligned((original, new), table, holds).is_ok()
}

/// Holds the versions against each other as they are aligned; if that does not hold, in other ways as long.
fn aligned(
    (original, new): (&Code, &Code),
    table: &Table,
    holds: impl Fn(&[Option<u32>]) -> Result<(), Weaker>,
) -> Result<(), Weaker> {
    let [old_shapes, new_shapes] = [original, new].map(|code| shapes(code, table));
    let new_words = new.instructions();
    let kept = align(&old_shapes, &new_shapes);
    let Err(weaker) = holds(&kept) else {
        return Ok(());
    };
    // Of several as long, the one with the same control fields: what is inserted may look like what is there.
    let exact = |code: &Code, shapes: &[u128]| -> Vec<(u128, Control)> {
        let controls = code.instructions().iter().map(|word| word.control());
        shapes.iter().copied().zip(controls).collect()
    };
    let exact = [exact(original, &old_shapes), exact(new, &new_shapes)];
    let is_exact = |&(old, new): &(usize, usize)| exact[0][old] == exact[1][new];
    // Or one that keeps at least what the original's protects.
    let keeps = |&(old, new): &(usize, usize)| {
        let [was, now] = [original.instructions()[old], new_words[new]].map(|word| word.control());
        let tells = |was: Option<u8>, now: Option<u8>| was.is_none() || was == now;
        old_shapes[old] == new_shapes[new]
            && now.stall >= was.stall
            && tells(was.write_barrier, now.write_barrier)
            && tells(was.read_barrier, now.read_barrier)
    };
    let count = old_shapes.len();
    if holds(&slide(&kept, count, is_exact)).is_ok() || holds(&slide(&kept, count, keeps)).is_ok() {
        return Ok(());
    }
    let kept = align_exactly((&old_shapes, &new_shapes), (&exact[0], &exact[1]));
    holds(&kept.ok_or(weaker)?)
}

/// Did no instruction go over another one? (Some may have come or gone.)
pub(super) fn is_in_old_order(original: &Code, new: &Code, table: &Table) -> bool {
    let [old, new] = [original, new].map(|code| shapes(code, table));
    let mut left: FxHashMap<u128, usize> = FxHashMap::default();
    for &shape in &old {
        *left.entry(shape).or_default() += 1;
    }
    let mut take = |shape: &u128| {
        let left = left.get_mut(shape).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    let common = new.iter().filter(|shape| take(shape)).count();
    align(&old, &new).into_iter().flatten().count() == common
}

fn shapes(code: &Code, table: &Table) -> Vec<u128> {
    let words = code.instructions().iter();
    words.map(|&word| shape(word, table)).collect()
}

pub(super) fn offset(inst: Inst) -> u32 {
    inst.0 * 16
}

/// Accesses to local and to shared memory get their operands alike.
fn alike(operation: u16) -> u16 {
    const LDL: u16 = 0x183;
    const STL: u16 = 0x187;
    const LDS: u16 = 0x184;
    const STS: u16 = 0x188;
    match operation {
        LDL => LDS,
        STL => STS,
        other => other,
    }
}

/// The first line of defence, as far as time goes.
fn stalls(original: &Code, new: &Code, kept: &[Option<u32>]) -> Result<(), Weaker> {
    let sm = new.instructions().first().map_or(0, |word| word.sm());
    let units = IssueUnits::for_sm(sm).ok_or(Weaker::Architecture)?;
    for (at, &word) in new.instructions().iter().enumerate() {
        let (old, now) = (kept[at], word.control());
        let was = old.map(|old| original.instructions()[old as usize].control());
        let least = was.map_or_else(
            || units.least_stall(word.operation().number()),
            |was| was.stall,
        );
        let interlocked = |control: &Control| control.stall == 0 && !control.yield_bit;
        let was_interlocked = was.as_ref().is_some_and(interlocked);
        let holds = match interlocked(&now) {
            true => was_interlocked || was.is_none(),
            false => !was_interlocked && now.stall >= least,
        };
        if !holds {
            let (was, now) = (u32::from(least), u32::from(now.stall));
            let at = offset(Inst::new(at));
            return Err(Weaker::Stall { at, was, now });
        }
    }
    Ok(())
}

/// The first line of defence, as far as scoreboards go.
fn scoreboards(original: &Code, new: &Code, kept: &[Option<u32>]) -> Result<(), Weaker> {
    let remains: BTreeSet<u32> = kept.iter().flatten().copied().collect();
    let mut waits = None;
    for (at, &word) in new.instructions().iter().enumerate() {
        let Some(old) = kept[at] else { continue };
        let (at, now) = (offset(Inst::new(at)), word.control());
        let was = original.instructions()[old as usize].control();
        let tells = |was: Option<u8>, now: Option<u8>| was.is_none() || was == now;
        if !tells(was.write_barrier, now.write_barrier)
            || !tells(was.read_barrier, now.read_barrier)
        {
            return Err(Weaker::Scoreboards(at));
        }
        let lost = was.wait_mask & !now.wait_mask;
        if lost == 0 {
            continue;
        }
        let waits = waits.get_or_insert_with(|| Waits::new(original));
        if !is_idle(lost, waits.ended_by(Inst(old)), &remains) {
            return Err(Weaker::Waits(at));
        }
    }
    Ok(())
}

/// Does nobody need a wait for these scoreboards, as all that set them before it are gone?
fn is_idle(lost: u8, ended: impl Iterator<Item = (Inst, u8)>, remains: &BTreeSet<u32>) -> bool {
    let (mut gone, mut are_gone) = (0, true);
    for (setter, board) in ended.filter(|(_, board)| lost & board != 0) {
        gone |= board;
        are_gone &= !remains.contains(&setter.0);
    }
    are_gone && gone == lost
}

/// What a distance depends on: the order that is kept, the two operations, the fields that name the register, and which
/// register of each operand it is.
type Pair = (Kind, [(u16, u8, u16); 2]);

/// What a dependence depends on.
fn pair(dependence: &Dependence, timed: &[Timed]) -> Option<Pair> {
    let (_, number) = register_of(dependence.earlier.operand.value)?;
    let sides = [dependence.earlier, dependence.later].map(|access| {
        let operation = timed[access.inst.index()].operation;
        let span = access.operand.span;
        (alike(operation), span.bit, number - span.first)
    });
    Some((dependence.kind, sides))
}

/// The same where no instruction counts as kept: what no register shows, and the second line of defence.
pub(super) fn compare_anew(
    (before, after): (&Judged, &Judged),
    table: &Table,
) -> Result<(), Weaker> {
    let nothing_kept = vec![None; after.timed.len()];
    unwritten::compare((before.code, after.code), &nothing_kept, table)?;
    distances(before, after)
}

/// The second line of defence.
fn distances(before: &Judged, after: &Judged) -> Result<(), Weaker> {
    match too_close(before, after).next() {
        Some(found) => Err(Weaker::Distance {
            earlier: offset(found.earlier.inst),
            later: offset(found.later.inst),
            cycles: found.cycles,
            kind: found.kind,
        }),
        None => Ok(()),
    }
}

/// Dependences that cycles protect, with fewer than the tables and the original know.
pub(super) fn too_close<'a>(
    before: &'a Judged,
    after: &'a Judged,
) -> impl Iterator<Item = &'a Dependence> {
    let habits = &after.habits;
    let mut witnesses: FxHashMap<Pair, u16> = FxHashMap::default();
    for one in &before.by_cycles {
        if let Some(pair) = pair(one, &before.timed) {
            let fewest = witnesses.entry(pair).or_insert(u16::MAX);
            *fewest = one.cycles.min(*fewest);
        }
    }
    after.by_cycles.iter().filter(move |one| {
        let of_original = || witnesses.get(&pair(one, &after.timed)?).copied();
        let holds = |cycles: Option<u16>| cycles.is_some_and(|cycles| cycles <= one.cycles);
        !holds(habits.enough(one, &after.timed)) && !holds(of_original())
    })
}

/// Which instructions wait for which, by the masks of the control fields, along all paths.
struct Waits {
    /// The one that waits, one that sets the scoreboard, and the scoreboard as a bit, ascending.
    ends: Vec<(Inst, Inst, u8)>,
}

/// Instructions whose scoreboards nobody has waited for yet, and these, one bit each.
pub(super) type Set = BTreeSet<(Inst, u8)>;

impl Waits {
    fn new(code: &Code) -> Waits {
        let mut ends = Vec::new();
        for_each_set(code, |inst, set| {
            let mask = code.instructions()[inst.index()].wait_mask();
            let ended = set.iter().filter(|(_, board)| mask & board != 0);
            ends.extend(ended.map(|&(setter, board)| (inst, setter, board)));
        });
        ends.sort_unstable();
        Waits { ends }
    }

    /// What an instruction waits for.
    fn ended_by(&self, waiter: Inst) -> impl Iterator<Item = (Inst, u8)> {
        let from = self.ends.partition_point(|end| end.0 < waiter);
        let ends = self.ends[from..].iter();
        let ends = ends.take_while(move |end| end.0 == waiter);
        ends.map(|end| (end.1, end.2))
    }
}

/// Visits each instruction with what nobody has waited for before it, along all paths.
pub(super) fn for_each_set(code: &Code, mut visit: impl FnMut(Inst, &Set)) {
    let cfg = Cfg::new(code);
    let mut at_start = vec![Set::new(); cfg.block_count()];
    let mut work: BTreeSet<Block> = cfg.blocks().collect();
    while let Some(block) = work.pop_first() {
        let mut set = at_start[block.index()].clone();
        cfg.insts(block).for_each(|inst| pass(code, inst, &mut set));
        for &next in cfg.succs(block) {
            let known = &mut at_start[next.index()];
            let before = known.len();
            known.extend(&set);
            if known.len() > before {
                work.insert(next);
            }
        }
    }
    for block in cfg.blocks() {
        let mut set = std::mem::take(&mut at_start[block.index()]);
        for inst in cfg.insts(block) {
            visit(inst, &set);
            pass(code, inst, &mut set);
        }
    }
}

fn pass(code: &Code, inst: Inst, set: &mut Set) {
    let control = code.instructions()[inst.index()].control();
    set.retain(|(_, board)| control.wait_mask & board == 0);
    for tells in [control.write_barrier, control.read_barrier] {
        let board = tells.and_then(|tells| 1u8.checked_shl(tells.into()));
        set.extend(board.map(|board| (inst, board)));
    }
}
