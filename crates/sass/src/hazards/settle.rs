//! Control fields for code into which instructions were put, or whose registers have other names.
//!
//! Goal: whoever adds loads and stores to finished code gives them scoreboards, waits and stalls that are right
//! and cost little. Paper: RegDem, section 3.2: a barrier tracker finds for each added access the scoreboard
//! that is free, or the one that keeps it waiting least.
//!
//! Departures: the tracker goes over the whole graph, not over basic blocks, with two kinds of time instead of
//! cycles: global memory's, and all others'. What is needed between which instructions is not decided by rules
//! of its own but read off the hazard checker, round after round, until it finds nothing.
//!
//! What the hazard checker demands is the least that was ever seen. Where the code before is at hand, instructions also
//! come no closer to each other than ptxas often leaves such ones, or left them there; and what takes an
//! unknown time no closer behind barriers and fences.
//!
//! Requires: code that was without hazards before. Preserves: what the instructions that were there waited for,
//! told and stalled; they may wait for more, stall longer, and tell where they told nothing.

use std::collections::BTreeSet;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use warpwright_flow::{Block, Cfg, EntityRef, Function, Inst};
use warpwright_target::{IssueUnits, Unit, cycles_behind_barrier};

use super::distance::{Close, Distances};
use super::pending::SETTLED;
use super::reuse::forget;
use super::timing::{Timing, timings};
use super::violation::{Cause, Hazard, Violation};
use super::waits::{keep_waits_apart, waits};
use super::walk::{Dependence, Kind, Operand, dependences};
use super::{SYNC, Unchecked, control_faults, judge};
use crate::control::SCOREBOARDS;
use crate::function::{Code, register_of, value_of};
use crate::operation::Operation;
use crate::roles::{File, Role, Span};

/// A longer stall has another meaning together with the yield bit (docs/sass.md).
const MOST_STALL: u8 = 11;
/// Rounds at most; each adds something, so it ends anyway.
const ROUNDS: usize = 256;
/// Behind a barrier so many cycles are as good as any number.
const FAR: u16 = 32;

/// How added instructions wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Thrift {
    /// Each for what it needs, as late as it can: section 3.4.2 of the paper.
    #[default]
    Late,
    /// The instruction behind an added access waits for it: the paper's algorithm before that.
    AtOnce,
}

/// Why there are no control fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsettled {
    /// The code cannot be checked.
    #[error(transparent)]
    Unchecked(#[from] Unchecked),
    /// Nothing can be added that ends the hazard.
    #[error("nothing can be done about the hazard at {:#x}", .0.0 * 16)]
    Hazard(Inst),
}

/// Gives the instructions `added` to `code` their control fields, and adds to those of others what the added
/// ones, or other registers, make necessary. `before` is the code that ptxas wrote; without it only hazards are ended.
///
/// # Errors
/// See [`Unsettled`].
pub fn settle(
    code: &mut Code,
    added: &BTreeSet<Inst>,
    thrift: Thrift,
    before: Option<&Code>,
) -> Result<(), Unsettled> {
    for &inst in added {
        if let Some(before) = inst.0.checked_sub(1).map(Inst) {
            change(code, before, |control| control.reuse = 0);
        }
    }
    let cfg = Cfg::new(code);
    forget(code)?;
    let mut tracker = Tracker::new(code, &cfg);
    tracker.give(code, &cfg, added, thrift);
    let habits = before.map(Habits::new).transpose()?;
    if let Some(habits) = &habits {
        habits.keep_behind_barriers(code, &cfg)?;
    }
    for _ in 0..ROUNDS {
        let violations = violations(code, habits.as_ref())?;
        if violations.is_empty() {
            // Values of ours fit.
            let _ = keep_waits_apart(code);
            return Ok(());
        }
        let before = code.instructions().to_vec();
        let mut failed = None;
        // Blocks in which stalls grew in this round: what was counted across their ends is counted again.
        let mut grown = BTreeSet::new();
        for violation in &violations {
            let later = violation.inst;
            let done = match violation.hazard {
                Hazard::Reuse { slot, .. } => {
                    change(code, later, |control| control.reuse &= !(1 << slot));
                    true
                }
                Hazard::NoSuchScoreboard { .. } => false,
                Hazard::Order {
                    kind,
                    earlier,
                    cause,
                    ..
                } => match cause {
                    Cause::NotAwaited { scoreboards } => {
                        // That sources are read is told long before the results are there.
                        let told = code.instructions()[earlier.index()].control().read_barrier;
                        let read = told.map_or(0, |board| 1 << board) & scoreboards;
                        tracker.update(code, &cfg);
                        match kind {
                            Kind::War if read != 0 => wait(code, &cfg, later, read),
                            Kind::War if tell(code, &tracker, (earlier, later), kind) => true,
                            _ => wait(code, &cfg, later, scoreboards),
                        }
                    }
                    Cause::NoScoreboard => {
                        tracker.update(code, &cfg);
                        tell(code, &tracker, (earlier, later), kind)
                    }
                    Cause::TooSoon { cycles, needed } => {
                        let blocks = [earlier, later].map(|inst| cfg.block_of(inst));
                        let is_straight = blocks[0] == blocks[1] && earlier < later;
                        if !is_straight && blocks.iter().any(|block| grown.contains(block)) {
                            continue;
                        }
                        grown.extend(blocks);
                        let more = match is_straight {
                            true => grown_between(code, &before, (earlier, later)),
                            false => 0,
                        };
                        let short = needed.saturating_sub(cycles).saturating_sub(more);
                        short == 0 || stall(code, &cfg, (earlier, later), short)
                    }
                },
            };
            if !done {
                failed = Some(later);
            }
        }
        if code.instructions() == before {
            let inst = failed.unwrap_or(violations[0].inst);
            return Err(Unsettled::Hazard(inst));
        }
    }
    Err(Unsettled::Hazard(Inst(0)))
}

/// Cycles that were added from one instruction up to another one of the same block.
fn grown_between(
    code: &Code,
    before: &[crate::Instruction],
    (earlier, later): (Inst, Inst),
) -> u16 {
    let between = earlier.index()..later.index();
    let stall = |inst: &crate::Instruction| u16::from(inst.control().stall.max(1));
    let now: u16 = code.instructions()[between.clone()].iter().map(stall).sum();
    now.saturating_sub(before[between].iter().map(stall).sum())
}

/// What is wrong, in program order: the hazard checker's findings, and pairs that are closer than [`Habits`] allow.
fn violations(code: &Code, habits: Option<&Habits>) -> Result<Vec<Violation>, Unchecked> {
    let sm = code.instructions().first().map_or(0, |inst| inst.sm());
    let distances = Distances::for_sm(sm).ok_or(Unchecked::Architecture(sm))?;
    let mut found = control_faults(code)?;
    dependences(code, |dependence| {
        let usual = habits.and_then(|habits| habits.too_close(&dependence));
        let cause = match (judge(&dependence, distances), usual) {
            (Some(Cause::TooSoon { .. }), Some(usual)) => Some(usual),
            (cause, usual) => cause.or(usual),
        };
        let violation = cause.map(|cause| Violation::order(&dependence, cause));
        let is_new = |one: &Violation| found.last().is_none_or(|last| last != one);
        found.extend(violation.filter(is_new));
    })?;
    found.sort_by_key(|violation| violation.inst);
    Ok(found)
}

/// A dependence that cycles protect, as it is told apart: the order that is kept, the operations, the fields that name
/// the register, and which register of each operand it is.
type Alike = (Kind, [(u16, u8, u16); 2]);

/// The fewest cycles that some code leaves between instructions that are alike.
#[derive(Debug, Default)]
pub(crate) struct Left(FxHashMap<Alike, u16>);

impl Left {
    /// In this code.
    pub fn by(code: &Code) -> Result<Left, Unchecked> {
        let mut left = Left::default();
        dependences(code, |dependence| {
            if let Some(alike) = alike(&dependence) {
                let fewest = left.0.entry(alike).or_insert(u16::MAX);
                *fewest = dependence.cycles.min(*fewest);
            }
        })?;
        Ok(left)
    }

    /// Between two like these.
    pub fn cycles(&self, dependence: &Dependence) -> Option<u16> {
        self.0.get(&alike(dependence)?).copied()
    }
}

/// How close ptxas lets instructions come, everywhere and in the code before.
struct Habits {
    close: Option<Rc<Close>>,
    /// In the code before.
    left: Left,
    units: &'static IssueUnits,
    /// By operation of a barrier or fence, the fewest cycles to what takes an unknown time behind it.
    behind: FxHashMap<u16, u16>,
    sm: u32,
}

impl Habits {
    fn new(before: &Code) -> Result<Habits, Unchecked> {
        let sm = before.instructions().first().map_or(0, |inst| inst.sm());
        let units = IssueUnits::for_sm(sm).ok_or(Unchecked::Architecture(sm))?;
        let mut behind = FxHashMap::default();
        for (barrier, _, cycles) in behind_barriers(before, units) {
            let operation = before.instructions()[barrier.index()].operation();
            let fewest = behind.entry(operation.number()).or_insert(u16::MAX);
            *fewest = cycles.min(*fewest);
        }
        Ok(Habits {
            close: Close::for_sm(sm),
            left: Left::by(before)?,
            units,
            behind,
            sm,
        })
    }

    fn too_close(&self, dependence: &Dependence) -> Option<Cause> {
        alike(dependence)?;
        let seen = self.left.cycles(dependence);
        let close = self.close.as_ref()?;
        let usual = match close.is_known(dependence) {
            true => close.cycles(dependence),
            // Then it is over, whatever it is.
            false => Some(SETTLED),
        };
        let needed = seen.into_iter().chain(usual).min()?;
        let cycles = dependence.cycles;
        (cycles < needed).then_some(Cause::TooSoon { cycles, needed })
    }

    /// Lets what takes an unknown time stay as far behind barriers and fences as it was behind such ones, or as ptxas
    /// leaves it everywhere.
    fn keep_behind_barriers(&self, code: &mut Code, cfg: &Cfg) -> Result<(), Unsettled> {
        for (barrier, late, cycles) in behind_barriers(code, self.units) {
            let operation = code.instructions()[barrier.index()].operation();
            let seen = self.behind.get(&operation.number()).copied();
            let usual = cycles_behind_barrier(self.sm).filter(|_| operation == Operation::BAR);
            let needed = seen.into_iter().chain(usual).min().unwrap_or(FAR);
            let more = needed.saturating_sub(cycles);
            if more > 0 && !stall(code, cfg, (barrier, late), more) {
                return Err(Unsettled::Hazard(late));
            }
        }
        Ok(())
    }
}

/// What a dependence is like, if cycles protect it.
fn alike(dependence: &Dependence) -> Option<Alike> {
    if dependence.unsettled().is_some() || dependence.is_in_order() {
        return None;
    }
    let (_, number) = register_of(dependence.value)?;
    let both = [dependence.earlier, dependence.later].map(|side| {
        let place = number.saturating_sub(side.span.first);
        (side.timing.operation, side.span.bit, place)
    });
    Some((dependence.kind, both))
}

/// Barriers and fences, each with the next instruction in the order of the code that takes an unknown time, if that is
/// near, and the cycles between them.
fn behind_barriers(code: &Code, units: &IssueUnits) -> Vec<(Inst, Inst, u16)> {
    let insts = code.instructions();
    let is_barrier = |inst: &crate::Instruction| {
        let unit = units.of(inst.operation().number());
        inst.operation() != Operation::NOP && unit.is_some_and(|unit| unit.name == SYNC)
    };
    let barriers = insts
        .iter()
        .enumerate()
        .filter(|(_, inst)| is_barrier(inst));
    let mut found = Vec::new();
    for (at, _) in barriers {
        let mut cycles = 0;
        for (later, pair) in (at + 1..).zip(insts[at..].windows(2)) {
            cycles += u16::from(pair[0].control().stall.max(1));
            let unit = units.of(pair[1].operation().number());
            let is_late = unit.is_none_or(|unit| unit.is_late);
            // The barrier of the same kind counts from itself.
            let is_again = is_barrier(&pair[1]) && pair[1].operation() == insts[at].operation();
            if is_late && cycles < FAR {
                found.push((Inst::new(at), Inst::new(later), cycles));
            }
            if is_late || is_again || cycles >= FAR {
                break;
            }
        }
    }
    found
}

/// For each instruction: is it known how soon its general registers may be stored to shared memory?
///
/// # Errors
/// The code cannot be checked.
pub fn storable(code: &Code) -> Result<Vec<bool>, Unchecked> {
    const DATA: u8 = 32;
    let sm = code.instructions().first().map_or(0, |inst| inst.sm());
    let unit = IssueUnits::for_sm(sm).and_then(|units| units.of(Operation::STS.number()));
    let unit = unit.ok_or(Unchecked::Architecture(sm))?;
    let close = Close::for_sm(sm);
    let timings = timings(code)?;
    let insts = timings.iter().enumerate().map(|(at, &timing)| {
        let inst = Inst::new(at);
        let is_known = |span: Span| {
            let earlier = Operand { inst, span, timing };
            let span = Span {
                role: Role::Use,
                bit: DATA,
                ..span
            };
            let later = Timing {
                unit,
                operation: Operation::STS.number(),
                is_late: unit.is_late,
            };
            let dependence = |value| Dependence {
                kind: Kind::Raw,
                earlier,
                later: Operand {
                    inst,
                    span,
                    timing: later,
                },
                value,
                cycles: 0,
                waitless: Some(0),
                scoreboards: 0,
                order: None,
            };
            let mut values = span
                .registers()
                .filter_map(|number| value_of(span.file, number));
            timing.is_late(earlier.span)
                || values.all(|value| {
                    close
                        .as_ref()
                        .is_some_and(|c| c.is_known(&dependence(value)))
                })
        };
        let mut general = code
            .roles(inst)
            .defs()
            .filter(|span| span.file == File::Gpr);
        general.all(is_known)
    });
    Ok(insts.collect())
}

fn change(code: &mut Code, inst: Inst, change: impl FnOnce(&mut crate::Control)) {
    let mut control = code.instructions()[inst.index()].control();
    change(&mut control);
    // The values are ours and fit.
    let _ = code.set_control(inst, control);
}

/// Lets `later` wait for one of the scoreboards; where it does so too early to see it, the one before it stalls.
fn wait(code: &mut Code, cfg: &Cfg, later: Inst, scoreboards: u8) -> bool {
    let known = scoreboards & ((1 << SCOREBOARDS) - 1);
    if known == 0 {
        return false;
    }
    let one = known & known.wrapping_neg();
    let has = code.instructions()[later.index()].control().wait_mask & known;
    if has == 0 {
        change(code, later, |control| control.wait_mask |= one);
        return true;
    }
    before(cfg, later).is_some_and(|before| lengthen(code, before, 1) == 1)
}

/// Lets `earlier` tell when it is over, by the scoreboard that costs least.
fn tell(code: &mut Code, tracker: &Tracker, (earlier, later): (Inst, Inst), kind: Kind) -> bool {
    let control = code.instructions()[earlier.index()].control();
    let board = tracker.cheapest(code, earlier, later);
    let Some(board) = board else { return false };
    match kind {
        Kind::War if control.read_barrier.is_none() => {
            change(code, earlier, |control| control.read_barrier = Some(board));
        }
        Kind::Raw | Kind::Waw if control.write_barrier.is_none() => {
            change(code, earlier, |control| control.write_barrier = Some(board));
        }
        _ => return false,
    }
    true
}

/// The instruction from which alone control comes to `inst`, if it is the one above.
fn before(cfg: &Cfg, inst: Inst) -> Option<Inst> {
    let is_first = cfg.first_inst(cfg.block_of(inst)) == inst;
    inst.0.checked_sub(1).map(Inst).filter(|_| !is_first)
}

/// Adds cycles between two instructions: right before the later one, as far as that has a place, and else
/// behind the earlier one.
fn stall(code: &mut Code, cfg: &Cfg, (earlier, later): (Inst, Inst), mut cycles: u16) -> bool {
    if cycles > 64 {
        return false;
    }
    let mut at = later;
    while cycles > 0
        && let Some(place) = before(cfg, at)
    {
        cycles -= lengthen(code, place, cycles);
        if place == earlier {
            break;
        }
        at = place;
    }
    if cycles > 0 {
        cycles -= lengthen(code, earlier, cycles);
    }
    cycles == 0
}

/// Lets an instruction stall longer; says by how many cycles. One that waits until it is told stays as it is.
fn lengthen(code: &mut Code, inst: Inst, cycles: u16) -> u16 {
    let control = code.instructions()[inst.index()].control();
    let room = match (control.stall, control.yield_bit) {
        (0, false) => 0,
        (stall, _) => u16::from(MOST_STALL.saturating_sub(stall)),
    };
    let more = cycles.min(room);
    change(code, inst, |control| control.stall += more as u8);
    more
}

/// How long a scoreboard may keep somebody waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Busy {
    #[default]
    Free,
    /// Some ten cycles.
    Short,
    /// Hundreds.
    Long,
}

type Boards = [Busy; SCOREBOARDS as usize];

/// What each scoreboard counts before each instruction: the paper's barrier tracker.
struct Tracker {
    before: Vec<Boards>,
    /// Scoreboards that are waited for by count, where the order of what they count matters.
    counted: u8,
}

impl Tracker {
    fn new(code: &Code, cfg: &Cfg) -> Tracker {
        let mut tracker = Tracker {
            before: Vec::new(),
            counted: 0,
        };
        tracker.update(code, cfg);
        tracker
    }

    fn update(&mut self, code: &Code, cfg: &Cfg) {
        let insts = code.instructions();
        let counted = insts
            .iter()
            .filter(|inst| inst.operation() == Operation::DEPBAR);
        self.counted = counted.fold(0, |all, &inst| {
            waits(inst, 0).fold(all, |all, wait| all | wait.scoreboards)
        });
        let mut at_start = vec![Boards::default(); cfg.block_count()];
        let mut work: BTreeSet<Block> = cfg.blocks().collect();
        self.before = vec![Boards::default(); insts.len()];
        while let Some(block) = work.pop_first() {
            let mut boards = at_start[block.index()];
            for inst in cfg.insts(block) {
                self.before[inst.index()] = boards;
                pass(code, inst, &mut boards);
            }
            for &next in cfg.succs(block) {
                let old = at_start[next.index()];
                for (known, board) in at_start[next.index()].iter_mut().zip(boards) {
                    *known = (*known).max(board);
                }
                if at_start[next.index()] != old {
                    work.insert(next);
                }
            }
        }
    }

    /// The scoreboard by which `earlier` keeps `later`, and others, waiting least.
    fn cheapest(&self, code: &Code, earlier: Inst, later: Inst) -> Option<u8> {
        let boards = self.before[earlier.index()];
        let end = match later > earlier {
            true => later,
            false => earlier,
        };
        let cost = |board: u8| {
            let mut worst = boards[usize::from(board)];
            let between = (earlier.0 + 1..=end.0).map(Inst);
            let mut waiters = 0;
            for inst in between.filter(|&inst| inst != later) {
                let word = code.instructions()[inst.index()];
                waiters += u32::from(word.control().wait_mask >> board & 1);
                if sets(word.control()) >> board & 1 != 0 {
                    worst = worst.max(kind(word.unit()));
                }
            }
            (worst, waiters, board)
        };
        let free = (0..SCOREBOARDS).filter(|board| self.counted >> board & 1 == 0);
        free.min_by_key(|&board| cost(board))
    }

    /// The first control fields of what was added.
    fn give(&mut self, code: &mut Code, cfg: &Cfg, added: &BTreeSet<Inst>, thrift: Thrift) {
        let mut last: Option<(Inst, u8)> = None;
        for &inst in added {
            let word = code.instructions()[inst.index()];
            let is_load = word.operation() == Operation::LDS;
            if !is_load && word.operation() != Operation::STS {
                continue;
            }
            let block = cfg.block_of(inst);
            let end = cfg.last_inst(block).0;
            let mut results = Vec::new();
            code.for_each_def(inst, |value| results.push(value));
            let mut reader = (inst.0 + 1..=end).map(Inst).find(|&later| {
                let mut reads = false;
                code.for_each_use(later, |value| reads |= results.contains(&value));
                reads
            });
            if thrift == Thrift::AtOnce {
                reader = Some(Inst(inst.0 + 1)).filter(|next| next.0 <= end);
            }
            let Some(reader) = reader.filter(|_| is_load || thrift == Thrift::AtOnce) else {
                continue;
            };
            // What waits for two loads waits for one scoreboard.
            let shared = last
                .filter(|&(other, _)| other == reader)
                .map(|(_, board)| board);
            let Some(board) = shared.or_else(|| self.cheapest(code, inst, reader)) else {
                continue;
            };
            last = Some((reader, board));
            let is_next = reader.0 == inst.0 + 1;
            change(code, inst, |control| {
                match is_load {
                    true => control.write_barrier = Some(board),
                    false => control.read_barrier = Some(board),
                }
                control.stall = if is_next { 2 } else { 1 };
            });
            change(code, reader, |control| control.wait_mask |= 1 << board);
            self.update_block(code, cfg, block);
        }
    }

    /// The same block again, from its start.
    fn update_block(&mut self, code: &Code, cfg: &Cfg, block: Block) {
        let mut boards = self.before[cfg.first_inst(block).index()];
        for inst in cfg.insts(block) {
            self.before[inst.index()] = boards;
            pass(code, inst, &mut boards);
        }
    }
}

fn pass(code: &Code, inst: Inst, boards: &mut Boards) {
    let word = code.instructions()[inst.index()];
    let control = word.control();
    for (board, busy) in boards.iter_mut().enumerate() {
        if control.wait_mask >> board & 1 != 0 {
            *busy = Busy::Free;
        }
        if sets(control) >> board & 1 != 0 {
            *busy = (*busy).max(kind(word.unit()));
        }
    }
}

/// The scoreboards that an instruction sets.
fn sets(control: crate::Control) -> u8 {
    let one =
        |board: Option<u8>| board.map_or(0, |board| 1u8.checked_shl(board.into()).unwrap_or(0));
    one(control.write_barrier) | one(control.read_barrier)
}

fn kind(unit: Unit) -> Busy {
    match unit {
        Unit::GlobalLoad
        | Unit::GlobalStore
        | Unit::LocalLoad
        | Unit::LocalStore
        | Unit::Texture => Busy::Long,
        _ => Busy::Short,
    }
}
