//! Does the rewritten code wait for as much as the original does?
//!
//! Goal: the hazard checker's tables are habits of ptxas and no specification of the hardware. Code whose control
//! fields follow from them alone went wrong on a device (docs/scheduling.md). So the witness here is ptxas's own
//! code: the original, and what was seen often.
//!
//! Theory. A control field protects dependences between accesses of registers: by cycles from issue to issue where a
//! unit has a fixed latency, by a scoreboard that is set and waited for elsewhere. What is enough depends on the two
//! operations and operands. Two lines of defence follow, and `unwritten` between them; the hazard checker comes before all.
//!
//! 1. *Kept instructions.* The two versions are aligned: a longest common subsequence of instructions without their
//!    registers; if that does not hold, another one as long that prefers equal control fields. A kept instruction must
//!    stall at least as long as before, set the same scoreboards (or one where it set none), and wait for at least the
//!    same ones; a wait may go where all that set its scoreboard before it are gone. So between two kept instructions
//!    nothing becomes weaker, unless one between them is gone.
//! 2. *Distances.* Each dependence that cycles protect, as the fixpoint of the hazard checker finds it along all
//!    paths, needs a witness: the same two operations and operands with no more cycles in the original, or often in
//!    the mined table of distances by operation. Where these two were not seen often, as many cycles are enough as most
//!    operations of the same two classes come down to that were, or as the slowest class of readers needs behind the
//!    earlier one's class. Local and shared memory get their operands alike, and whatever takes an unknown time
//!    overwrites alike. That is all there is for new dependences, from inserted instructions and other names of
//!    registers, and for those that are shorter as something is gone.
//!
//! What is new and protected by a scoreboard is left to the hazard checker. What the rule gives away: right code with
//! shorter stalls is undecided. It goes by no paper.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use warpwright_flow::{Block, Cfg, EntityRef as _, Inst};
use warpwright_sass::function::{Code, register_of};
use warpwright_sass::hazards::{self, Dependence, Distances, Kept, Kind, Unchecked};
use warpwright_sass::roles::Table;
use warpwright_sass::{Control, Instruction};
use warpwright_target::IssueUnits;

use super::align::{align, align_exactly, slide};
use super::bits;
use super::places::shape;
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
    #[error("the schedule cannot be checked: {0}")]
    Unchecked(#[from] Unchecked),
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
pub(super) fn compare(original: &Code, new: &Code, table: &Table) -> Result<(), Weaker> {
    let holds = |kept: &[Option<u32>]| {
        kept_instructions(original, new, kept)?;
        unwritten::compare((original, new), kept, table)
    };
    let [old_shapes, new_shapes] = [original, new].map(|code| shapes(code, table));
    let kept = align(&old_shapes, &new_shapes);
    if let Err(weaker) = holds(&kept) {
        // Of several as long, the one with the same control fields: what is inserted may look like what is there.
        let exact = |code: &Code, shapes: &[u128]| -> Vec<(u128, Control)> {
            let controls = code.instructions().iter().map(|word| word.control());
            shapes.iter().copied().zip(controls).collect()
        };
        let exact = [exact(original, &old_shapes), exact(new, &new_shapes)];
        if holds(&slide(&kept, (&exact[0], &exact[1]))).is_err() {
            let kept = align_exactly((&old_shapes, &new_shapes), (&exact[0], &exact[1]));
            holds(&kept.ok_or(weaker)?)?;
        }
    }
    distances(original, new)
}

fn shapes(code: &Code, table: &Table) -> Vec<u128> {
    let words = code.instructions().iter();
    words.map(|&word| shape(word, table)).collect()
}

pub(super) fn offset(inst: Inst) -> u32 {
    inst.0 * 16
}

/// The operation, as the mined tables name it.
fn operation(word: Instruction) -> u16 {
    (bits::OPCODE.get(word) & 0x1ff) as u16
}

/// The same for accesses to local and to shared memory, which get their operands alike.
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

/// The first line of defence.
fn kept_instructions(original: &Code, new: &Code, kept: &[Option<u32>]) -> Result<(), Weaker> {
    let mut waits = None;
    let sm = new.instructions().first().map_or(0, |word| word.sm());
    let units = IssueUnits::for_sm(sm).ok_or(Weaker::Architecture)?;
    let remains: BTreeSet<u32> = kept.iter().flatten().copied().collect();
    for (at, &word) in new.instructions().iter().enumerate() {
        let (at, now) = (offset(Inst(at as u32)), word.control());
        let was = kept[at as usize / 16]
            .map(|old| (old, original.instructions()[old as usize].control()));
        let least = was.map_or_else(
            || units.least_stall(word.operation().number()),
            |(_, was)| was.stall,
        );
        let is_odd = |control: &Control| control.stall >= LONG_STALL && control.yield_bit;
        let interlocked = |stall: u8, yield_bit: bool| stall == 0 && !yield_bit;
        let was_interlocked = was.is_some_and(|(_, was)| interlocked(was.stall, was.yield_bit));
        let stalls = match interlocked(now.stall, now.yield_bit) {
            true => was_interlocked || was.is_none(),
            false => !was_interlocked && now.stall >= least,
        };
        if !stalls {
            let (was, now) = (u32::from(least), u32::from(now.stall));
            return Err(Weaker::Stall { at, was, now });
        }
        if is_odd(&now) && !was.is_some_and(|(_, was)| is_odd(&was)) {
            return Err(Weaker::Yield(at));
        }
        let Some((old, was)) = was else { continue };
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

/// From so many cycles on ptxas clears the yield bit; with it a stall may be much shorter than it says.
const LONG_STALL: u8 = 12;

/// What a distance depends on: the order that is kept, the two operations, the fields that name the register, and which
/// register of each operand it is.
type Pair = (Kind, [(u16, u8, u16); 2]);

/// Visits the dependences that cycles protect.
fn visit(code: &Code, mut visit: impl FnMut(&Dependence, Pair)) -> Result<(), Unchecked> {
    hazards::dependences(code, |dependence| {
        let both = [dependence.earlier, dependence.later];
        let operations = both.map(|one| operation(code.instructions()[one.inst.index()]));
        let Some((_, number)) = register_of(dependence.value) else {
            return;
        };
        if dependence.unsettled().is_some() || dependence.is_in_order() {
            return;
        }
        let side = |at: usize| {
            let span = both[at].span;
            (alike(operations[at]), span.bit, number - span.first)
        };
        visit(&dependence, (dependence.kind, [side(0), side(1)]));
    })
}

/// The same where no instruction counts as kept: what no register shows, and the second line of defence.
pub(super) fn compare_anew(original: &Code, new: &Code, table: &Table) -> Result<(), Weaker> {
    let nothing_kept = vec![None; new.instructions().len()];
    unwritten::compare((original, new), &nothing_kept, table)?;
    distances(original, new)
}

/// The second line of defence.
fn distances(original: &Code, new: &Code) -> Result<(), Weaker> {
    let sm = new.instructions().first().map_or(0, |word| word.sm());
    let mined = Kept::for_sm(sm);
    let by_class = Distances::for_sm(sm);
    let mut doubtful = Vec::new();
    visit(new, |dependence, pair| {
        let often = mined.and_then(|mined| mined.often(dependence));
        if often.is_none_or(|cycles| cycles > dependence.cycles) {
            doubtful.push((*dependence, pair));
        }
    })?;
    if doubtful.is_empty() {
        return Ok(());
    }
    let mut witnesses: FxHashMap<Pair, u16> = FxHashMap::default();
    visit(original, |dependence, pair| {
        let fewest = witnesses.entry(pair).or_insert(u16::MAX);
        *fewest = dependence.cycles.min(*fewest);
    })?;
    let is_unseen = |(dependence, pair): &&(Dependence, Pair)| {
        let witness = witnesses.get(pair).copied();
        let of_classes = mined.and_then(|mined| mined.of_classes(dependence));
        let slowest = by_class.and_then(|known| known.slowest(dependence));
        let late = by_class.and_then(|known| known.before_late(dependence));
        let enough = [witness, of_classes, slowest, late].into_iter().flatten();
        let enough = enough.min();
        enough.is_none_or(|cycles| cycles > dependence.cycles)
    };
    match doubtful.iter().find(is_unseen) {
        Some((dependence, _)) => Err(Weaker::Distance {
            earlier: offset(dependence.earlier.inst),
            later: offset(dependence.later.inst),
            cycles: dependence.cycles,
            kind: dependence.kind,
        }),
        None => Ok(()),
    }
}

/// Which instructions wait for which, by the masks of the control fields, along all paths.
struct Waits {
    /// The one that waits, one that sets the scoreboard, and the scoreboard as a bit, ascending.
    ends: Vec<(Inst, Inst, u8)>,
}

/// Instructions whose scoreboards nobody has waited for yet, and these, one bit each.
type Set = BTreeSet<(Inst, u8)>;

impl Waits {
    fn new(code: &Code) -> Waits {
        let cfg = Cfg::new(code);
        let mut at_start = vec![Set::new(); cfg.block_count()];
        let mut work: BTreeSet<Block> = cfg.blocks().collect();
        while let Some(block) = work.pop_first() {
            let mut set = at_start[block.index()].clone();
            for inst in cfg.insts(block) {
                pass(code, inst, &mut set, |_| ());
            }
            for &next in cfg.succs(block) {
                let known = &mut at_start[next.index()];
                let before = known.len();
                known.extend(&set);
                if known.len() > before {
                    work.insert(next);
                }
            }
        }
        let mut ends = Vec::new();
        for block in cfg.blocks() {
            let mut set = std::mem::take(&mut at_start[block.index()]);
            for inst in cfg.insts(block) {
                pass(code, inst, &mut set, |(setter, board)| {
                    ends.push((inst, setter, board));
                });
            }
        }
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

fn pass(code: &Code, inst: Inst, set: &mut Set, mut ends: impl FnMut((Inst, u8))) {
    let control = code.instructions()[inst.index()].control();
    set.retain(|&(setter, board)| {
        let is_awaited = control.wait_mask & board != 0;
        if is_awaited {
            ends((setter, board));
        }
        !is_awaited
    });
    for tells in [control.write_barrier, control.read_barrier] {
        let board = tells.and_then(|tells| 1u8.checked_shl(tells.into()));
        set.extend(board.map(|board| (inst, board)));
    }
}
