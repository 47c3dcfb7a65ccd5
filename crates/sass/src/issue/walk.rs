//! The way through the code that finds out what every control field must say.
//!
//! Twice through all blocks in reverse postorder to choose, if there are loops: the second time with what goes on
//! around the back edges known. Then to a fixpoint, in which waits and stalls only grow, until a whole round changes nothing.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use warpwright_flow::{Block, Cfg, EntityRef, Function, Inst};
use warpwright_target::IssueUnits;

use super::scoreboards::Board;
use super::{Old, Unassigned, hints};
use crate::branch::ControlFlow;
use crate::control::{Control, SCOREBOARDS};
use crate::edit::Arrangement;
use crate::function::Code;
use crate::hazards::distance::Close;
use crate::hazards::effect::Effect;
use crate::hazards::pending::{Pending, SETTLED};
use crate::hazards::settle::Left;
use crate::hazards::timing::{Timing, away, timings};
use crate::hazards::waits::{MASK_SEES_AFTER, is_block_barrier};
use crate::hazards::walk::{Dependence, visit_leaving, visit_pairs};
use crate::hazards::{self, Hidden, Order, OrderKind, Orders, Unchecked};
use crate::roles::{File, Role, Span};

/// The longest stall.
const MOST_STALL: u16 = 15;
/// The same where the yield bit is set and stays so: ptxas clears it from one more on.
const MOST_STALL_UNYIELDING: u16 = 11;
/// A place in a block that is never reached.
const NEVER: u32 = u32::MAX;

/// What an instruction needs besides its waits.
#[derive(Debug, Clone, Copy, Default)]
struct Needs {
    /// Somebody must learn when its results have come.
    write: bool,
    /// Somebody must learn when its sources have been read.
    read: bool,
    /// The place in its block of the first instruction that waits for its results, and for its sources.
    first: [u32; 2],
    /// It had a scoreboard that no register explains.
    token: bool,
}

struct Walk<'a> {
    code: &'a Code,
    cfg: Cfg,
    units: &'static IssueUnits,
    close: Rc<Close>,
    before: Option<&'a Code>,
    left: OnceCell<Left>,
    orders: &'static Orders,
    timings: Vec<Timing>,
    hidden: Vec<Hidden>,
    away: Option<Timing>,
    steps: Vec<Effect>,
    needs: Vec<Needs>,
    /// The whole field stays.
    kept: Vec<bool>,
    /// It only gets stricter.
    grows: Vec<bool>,
    followed: &'a [bool],
    /// These keep their scoreboards where they need one.
    scoreboards: &'a [bool],
    /// Stalls at least so long.
    least: Vec<u8>,
    /// Stalls for a dependence, not for its unit alone.
    is_for_dependence: Vec<bool>,
    /// Scoreboards that belong to DEPBAR.
    pinned: u8,
    has_changed: bool,
    /// Changes so far, in all blocks and by block.
    changes: u32,
    changes_in: Vec<u32>,
    /// By block, the last time that nothing had to be changed.
    quiet: Vec<Option<Quiet>>,
    /// An instruction that seemed to need no scoreboard got one.
    gave_scoreboard: bool,
    /// By block: cycles that were added before it in this round.
    raised: Vec<u16>,
}

/// What is known at the start of a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct State {
    pending: Pending,
    /// Scoreboards that tell something that no register explains.
    tokens: u8,
}

impl State {
    fn join(&mut self, other: &State) -> bool {
        let tokens = self.tokens | other.tokens;
        let changed = std::mem::replace(&mut self.tokens, tokens) != tokens;
        self.pending.join(&other.pending) || changed
    }
}

/// A way through a block on which nothing had to be changed: it ends the same way again.
struct Quiet {
    /// Changes in the block until then.
    changes: u32,
    start: State,
    end: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Choose,
    Grow,
}

/// The control fields for `code`.
pub(super) fn controls(code: &Code, old: &Old<'_>) -> Result<Vec<Control>, Unassigned> {
    let Some(sm) = code.instructions().first().map(|inst| inst.sm()) else {
        return Ok(Vec::new());
    };
    let unknown = Unchecked::Architecture(sm);
    let mut walk = Walk::new(
        (code, old),
        IssueUnits::for_sm(sm).ok_or(unknown)?,
        Close::for_sm(sm).ok_or(Unassigned::NotTried(sm))?,
        Orders::for_sm(sm).ok_or(Unchecked::Architecture(sm))?,
    )?;
    walk.run()?;
    walk.hint();
    Ok(walk.steps.iter().map(|step| step.control).collect())
}

impl<'a> Walk<'a> {
    fn new(
        (code, old): (&'a Code, &'a Old<'_>),
        units: &'static IssueUnits,
        close: Rc<Close>,
        orders: &'static Orders,
    ) -> Result<Self, Unassigned> {
        let timings = timings(code)?;
        let rare = (0..code.inst_count())
            .map(Inst::new)
            .find(|&inst| code.roles(inst).is_rare());
        if let Some(inst) = rare {
            return Err(Unassigned::Rare { inst });
        }
        let insts = (0..code.inst_count()).map(Inst::new);
        let steps = insts
            .zip(&timings)
            .map(|(inst, &timing)| Effect::new(code, inst, timing));
        let steps: Vec<Effect> = steps.collect();
        let count = steps.len();
        let cfg = Cfg::new(code);
        let blocks = cfg.block_count();
        let mut walk = Walk {
            code,
            cfg,
            units,
            close,
            before: old.code,
            left: OnceCell::new(),
            orders,
            away: away(code),
            hidden: hazards::hidden(code)?,
            needs: vec![Needs::default(); count],
            kept: vec![false; count],
            grows: (0..count)
                .map(|at| old.kept.get(at) == Some(&true))
                .collect(),
            followed: &old.followed,
            scoreboards: &old.scoreboards,
            least: vec![1; count],
            is_for_dependence: vec![false; count],
            pinned: 0,
            has_changed: false,
            changes: 0,
            changes_in: vec![0; blocks],
            quiet: std::iter::repeat_with(|| None).take(blocks).collect(),
            gave_scoreboard: false,
            raised: Vec::new(),
            timings,
            steps,
        };
        walk.look_at_old_fields();
        for block in walk.cfg.blocks() {
            walk.look_ahead(block);
        }
        Ok(walk)
    }

    /// What the old fields say about the instructions themselves.
    fn look_at_old_fields(&mut self) {
        let insts = self.code.instructions();
        let end = Arrangement::length(insts);
        self.pinned = hazards::counted(self.code);
        for (at, &inst) in insts.iter().enumerate() {
            let old = inst.control();
            let timing = self.timings[at];
            let loops =
                matches!(ControlFlow::of(inst), ControlFlow::Jump(distance) if distance == -16);
            self.kept[at] = at >= end || loops;
            if self.kept[at] {
                continue;
            }
            let mut spans = self.code.roles(Inst::new(at)).defs();
            let is_late = spans.any(|span| span.file != File::Barrier && timing.is_late(span));
            let needs = &mut self.needs[at];
            let counts = timing.unit.is_late_if_counted && timing.is_late;
            let tokens = self.hidden[at].tokens;
            let is_token = |barrier: Option<u8>| barrier.is_some_and(|s| tokens >> s & 1 != 0);
            needs.token = tokens != 0;
            needs.write = is_late || counts || is_token(old.write_barrier);
            needs.read = is_token(old.read_barrier);
            let floor = self.units.least_stall(inst.operation().number());
            self.least[at] = match timing.unit.name {
                "sync" => floor.max(old.stall),
                _ if needs.token => floor.max(2),
                _ => floor,
            };
        }
    }

    /// Finds, for what takes its time, the first instruction of the block that has to wait for it.
    fn look_ahead(&mut self, block: Block) {
        let (mut next_use, mut next_def) = (FxHashMap::default(), FxHashMap::default());
        // The next instruction that is sure to read the register, late.
        let mut next_late: FxHashMap<_, (u32, Timing)> = FxHashMap::default();
        let mut barrier = NEVER;
        let insts: Vec<Inst> = self.cfg.insts(block).collect();
        for inst in insts.into_iter().rev() {
            let at = inst.index();
            let timing = self.timings[at];
            let mut first = [NEVER, NEVER];
            for &(value, span) in &self.steps[at].operands {
                if !timing.is_late(span) {
                    continue;
                }
                let find = |table: &FxHashMap<_, (u32, Timing)>, role| {
                    let &(place, other) = table.get(&value)?;
                    // A unit that works in order.
                    let kind = match span.role {
                        Role::Def => OrderKind::Waw,
                        Role::Use => OrderKind::War,
                    };
                    let ordered = role == Role::Def && self.in_order(kind, timing, other);
                    (!ordered).then_some(place)
                };
                let by_def = find(&next_def, Role::Def).unwrap_or(NEVER);
                match span.role {
                    Role::Def => {
                        let by_use = find(&next_use, Role::Use).unwrap_or(NEVER);
                        first[0] = first[0].min(by_use).min(by_def);
                    }
                    Role::Use if self.reads_before_barrier(timing) && barrier < by_def => {}
                    // It will have read for this one when it has for itself.
                    Role::Use if self.follows(next_late.get(&value), timing, by_def) => {}
                    Role::Use => first[1] = first[1].min(by_def),
                }
            }
            self.needs[at].first = first;
            self.needs[at].read |= first[1] < first[0];
            for &(value, span) in &self.steps[at].operands {
                let table = match span.role {
                    Role::Use => &mut next_use,
                    Role::Def => &mut next_def,
                };
                table.insert(value, (at as u32, timing));
                if span.role == Role::Use && timing.is_late(span) && !self.code.is_predicated(inst)
                {
                    next_late.insert(value, (at as u32, timing));
                }
            }
            if is_block_barrier(self.code.instructions()[at]) && !self.code.is_predicated(inst) {
                barrier = at as u32;
            }
        }
    }

    /// Does a unit keep the two in order?
    fn in_order(&self, kind: OrderKind, earlier: Timing, later: Timing) -> bool {
        let order = Order {
            kind,
            earlier: earlier.operation,
            later: later.operation,
        };
        self.orders.needed(order).is_some()
    }

    /// Has it read its registers when a barrier of the block is passed?
    fn reads_before_barrier(&self, timing: Timing) -> bool {
        let order = Order {
            kind: OrderKind::Barrier,
            earlier: timing.operation,
            later: 0,
        };
        self.orders.needed(order).is_some()
    }

    /// Is there another one in the same queue before the register is written?
    fn follows(&self, next: Option<&(u32, Timing)>, timing: Timing, by_def: u32) -> bool {
        next.is_some_and(|&(at, other)| {
            at < by_def && self.in_order(OrderKind::Read, timing, other)
        })
    }

    fn run(&mut self) -> Result<(), Unassigned> {
        let order = self.order();
        let mut at_start = vec![State::default(); self.cfg.block_count()];
        for &block in &order {
            let end = self.block(block, at_start[block.index()].clone(), Mode::Choose)?;
            for next in self.cfg.succs(block) {
                at_start[next.index()].join(&end);
            }
        }
        let places = places(&order);
        let goes_back = |block: &Block| {
            let mut succs = self.cfg.succs(*block).iter();
            succs.any(|next| places[next.index()] <= places[block.index()])
        };
        // Without a way back the first time has seen all that comes before a block.
        if self.gave_scoreboard || order.iter().any(goes_back) {
            for &block in &order {
                self.block(block, at_start[block.index()].clone(), Mode::Choose)?;
            }
        }
        // Each round settles at least one field for good, and few rounds are needed.
        loop {
            self.has_changed = false;
            self.fixpoint(&order)?;
            if !self.has_changed {
                return Ok(());
            }
        }
    }

    fn order(&self) -> Vec<Block> {
        let others = self
            .cfg
            .blocks()
            .filter(|&block| !self.cfg.is_reachable(block));
        self.cfg
            .reverse_postorder()
            .iter()
            .copied()
            .chain(others)
            .collect()
    }

    fn fixpoint(&mut self, order: &[Block]) -> Result<(), Unassigned> {
        let number_of = places(order);
        self.raised = vec![0; order.len()];
        let mut at_start = vec![State::default(); order.len()];
        let mut work: BTreeSet<u32> = (0..order.len() as u32).collect();
        while let Some(number) = work.pop_first() {
            let block = order[number as usize];
            let changed = match self.is_quiet(block, &at_start[block.index()]) {
                true => None,
                false => self.grow(block, &at_start[block.index()])?,
            };
            let quiet = self.quiet[block.index()].as_ref().map(|quiet| &quiet.end);
            let Some(end) = changed.as_ref().or(quiet) else {
                continue;
            };
            for next in self.cfg.succs(block) {
                if at_start[next.index()].join(end) {
                    work.insert(number_of[next.index()]);
                }
            }
        }
        Ok(())
    }

    /// Is it known how the block ends from here?
    fn is_quiet(&self, block: Block, start: &State) -> bool {
        let quiet = self.quiet[block.index()].as_ref();
        let changes = self.changes_in[block.index()];
        quiet.is_some_and(|quiet| quiet.changes == changes && quiet.start == *start)
    }

    /// Goes through a block; returns what is going on at its end, or takes note of it where nothing was changed.
    fn grow(&mut self, block: Block, start: &State) -> Result<Option<State>, Unassigned> {
        let changes = self.changes;
        let end = self.block(block, start.clone(), Mode::Grow)?;
        if self.changes != changes {
            return Ok(Some(end));
        }
        self.quiet[block.index()] = Some(Quiet {
            changes: self.changes_in[block.index()],
            start: start.clone(),
            end,
        });
        Ok(None)
    }

    /// The control field of an instruction says something else, or what it needs does.
    fn note_change(&mut self, at: usize) {
        self.has_changed = true;
        self.changes += 1;
        self.changes_in[self.cfg.block_of(Inst::new(at)).index()] += 1;
    }

    /// Goes through a block; returns what is going on at its end.
    fn block(&mut self, block: Block, start: State, mode: Mode) -> Result<State, Unassigned> {
        let State {
            mut pending,
            mut tokens,
        } = start;
        let first = self.cfg.first_inst(block).index();
        let last = self.cfg.last_inst(block).index();
        let mut board = Board::default();
        let mut issued: SmallVec<[Option<u32>; 32]> =
            smallvec::smallvec![None; self.units.port_count()];
        let mut clock = 0u32;
        if mode == Mode::Choose {
            for scoreboards in pending.late_scoreboards() {
                board.occupy(scoreboards, 100);
            }
        }
        for at in first..=last {
            let is_ours = !self.kept[at] && !self.grows[at];
            if mode == Mode::Choose && is_ours {
                self.reset(at);
            }
            let mut mask = self.steps[at].control.wait_mask;
            if tokens != 0 && (at == last || self.hidden[at].awaits_tokens) {
                mask |= tokens;
            }
            let mut short = self.required(at, &pending, &mut mask)?;
            if !self.kept[at] {
                tokens &= !mask;
            }
            let by_unit = self.gap(at, &issued, clock);
            if short > by_unit && at > first {
                self.is_for_dependence[at - 1] = true;
            }
            short = short.max(by_unit);
            if short > 0 {
                match (at > first, mode) {
                    (true, _) => self.stall_longer(at - 1, at, short)?,
                    (false, Mode::Choose) => {}
                    (false, Mode::Grow) => self.stall_before(block, at, short)?,
                }
                pending.pass(short);
                clock += u32::from(short);
                board.now += u32::from(short);
            }
            let mut control = self.steps[at].control;
            if control.wait_mask != mask {
                self.note_change(at);
                control.wait_mask = mask;
            }
            board.wait(mask);
            if mode == Mode::Choose && is_ours {
                self.choose(at, &mut control, &mut board)?;
            } else if mode == Mode::Choose {
                board.occupy_until(
                    scoreboards_of(control),
                    u32::from(self.timings[at].unit.result_cycles),
                );
            }
            self.steps[at].set_control(control);
            if self.needs[at].token {
                tokens |= scoreboards_of(control);
            }
            pending.wait(&self.steps[at], self.orders);
            self.leave(at, &pending)?;
            if let Some(port) = self.port(at) {
                issued[usize::from(port)] = Some(clock);
            }
            let stall = self.steps[at].control.stall;
            clock += u32::from(stall);
            board.now += u32::from(stall);
            pending.issue(&self.steps[at], &self.steps, self.orders);
        }
        Ok(State { pending, tokens })
    }

    /// The field of an instruction of which nothing has been decided.
    fn reset(&mut self, at: usize) {
        let old = self.code.instructions()[at].control();
        let is_interlocked =
            old.stall == 0 && !old.yield_bit && self.timings[at].unit.name == "sync";
        let mut control = Control {
            stall: self.least[at],
            yield_bit: true,
            ..Control::default()
        };
        if is_interlocked {
            (control.stall, control.yield_bit) = (0, false);
        }
        let pinned = |barrier: Option<u8>| barrier.filter(|&s| self.pinned >> s & 1 != 0);
        control.write_barrier = pinned(old.write_barrier);
        control.read_barrier = pinned(old.read_barrier);
        self.is_for_dependence[at] = false;
        self.steps[at].set_control(control);
    }

    /// The scoreboards that the instruction has to wait for, into `mask`; how many cycles too early it comes.
    fn required(&mut self, at: usize, pending: &Pending, mask: &mut u8) -> Result<u16, Unassigned> {
        let step = &self.steps[at];
        let inst = Inst::new(at);
        let (mut short, mut too_close) = (0, None);
        let mut unknown: SmallVec<[(Inst, Span); 4]> = SmallVec::new();
        let mut group = None;
        let mut keep = |dependence: &Dependence| {
            let earlier = dependence.earlier;
            if dependence.unsettled().is_none() {
                match self.cycles(dependence) {
                    Some(needed) => short = short.max(needed.saturating_sub(dependence.cycles)),
                    None => too_close = Some(earlier.inst),
                }
                return;
            }
            match dependence.scoreboards & 0x3f {
                0 if dependence.scoreboards != 0 => group = group.or(Some(earlier.inst)),
                0 => unknown.push((earlier.inst, earlier.span)),
                scoreboards => {
                    if scoreboards & *mask == 0 {
                        *mask |= self.told_by(dependence, scoreboards);
                    }
                    short = short.max(MASK_SEES_AFTER.saturating_sub(dependence.cycles));
                }
            }
        };
        visit_pairs(step, pending, &self.steps, self.orders, &mut |dependence| {
            if !dependence.is_in_order() {
                keep(&dependence);
            }
        });
        if let Some(away) = self.away.filter(|_| step.leaves) {
            visit_leaving(inst, pending, &self.steps, away, &mut |dependence| {
                if dependence.unsettled().is_some() {
                    keep(&dependence);
                }
            });
        }
        if let Some(inst) = group {
            return Err(Unassigned::Group { inst });
        }
        if let Some(earlier) = too_close {
            let later = inst;
            return Err(Unassigned::TooClose { earlier, later });
        }
        for (earlier, span) in unknown {
            self.give_scoreboard(earlier, span)?;
        }
        Ok(short)
    }

    /// How far apart two instructions must be that cycles keep apart.
    fn cycles(&self, dependence: &Dependence) -> Option<u16> {
        let usual = self.close.cycles(dependence);
        if self.close.is_known(dependence) {
            return usual;
        }
        let left = self.left.get_or_init(|| {
            let left = self.before.map(Left::by);
            left.and_then(Result::ok).unwrap_or_default()
        });
        usual.max(Some(
            left.cycles(dependence)
                .map_or(SETTLED, |left| left.min(SETTLED)),
        ))
    }

    /// Which of several scoreboards to wait for: the instruction's own.
    fn told_by(&self, dependence: &Dependence, scoreboards: u8) -> u8 {
        let earlier = dependence.earlier;
        let control = self.steps[earlier.inst.index()].control;
        let own = match earlier.span.role {
            Role::Def => [control.write_barrier, control.write_barrier],
            Role::Use => [control.read_barrier, control.write_barrier],
        };
        let own = own
            .into_iter()
            .flatten()
            .map(|s| 1 << s)
            .find(|bit| bit & scoreboards != 0);
        own.unwrap_or(scoreboards & scoreboards.wrapping_neg())
    }

    /// Somebody has to know when an access is over that has no scoreboard.
    fn give_scoreboard(&mut self, inst: Inst, span: Span) -> Result<(), Unassigned> {
        let at = inst.index();
        let mut control = self.steps[at].control;
        let taken = scoreboards_of(control) | self.pinned;
        let free = (0..SCOREBOARDS).rev().find(|s| taken >> s & 1 == 0);
        let free = free.ok_or(Unassigned::NoScoreboard)?;
        match span.role {
            Role::Def => {
                self.needs[at].write = true;
                control.write_barrier.get_or_insert(free);
            }
            Role::Use => {
                self.needs[at].read = true;
                control.read_barrier.get_or_insert(free);
            }
        }
        self.steps[at].set_control(control);
        self.note_change(at);
        self.gave_scoreboard = true;
        Ok(())
    }

    fn port(&self, at: usize) -> Option<u8> {
        self.units
            .port(self.code.instructions()[at].operation().number())
    }

    /// How many cycles too early the instruction comes for its unit.
    fn gap(&self, at: usize, issued: &[Option<u32>], clock: u32) -> u16 {
        let gaps = self
            .port(at)
            .map_or(&[][..], |port| self.units.gaps_before(port));
        let short = gaps.iter().filter_map(|&(unit, cycles)| {
            let since = clock - issued[usize::from(unit)]?;
            Some(u32::from(cycles).saturating_sub(since) as u16)
        });
        short.max().unwrap_or(0)
    }

    /// Lets so many cycles more pass before a block than at the start of this round.
    fn stall_before(&mut self, block: Block, at: usize, cycles: u16) -> Result<(), Unassigned> {
        // What is known of the time before the block may be from before the last time: it counts as a change.
        self.changes += 1;
        let raised = &mut self.raised[block.index()];
        let more = cycles.saturating_sub(*raised);
        *raised = cycles.max(*raised);
        let before: Vec<usize> = self
            .cfg
            .preds(block)
            .iter()
            .map(|&b| self.cfg.last_inst(b).index())
            .collect();
        for before in before.into_iter().filter(|_| more > 0) {
            self.stall_longer(before, at, more)?;
        }
        Ok(())
    }

    /// Lets an instruction stall longer, and those before it in its block where that is not enough. What they do
    /// not keep away shows in the next round.
    fn stall_longer(&mut self, at: usize, later: usize, cycles: u16) -> Result<(), Unassigned> {
        let first = self
            .cfg
            .first_inst(self.cfg.block_of(Inst::new(at)))
            .index();
        let mut left = cycles;
        for place in (first..=at).rev() {
            let mut control = self.steps[place].control;
            let is_fixed = self.kept[place] || control.stall == 0;
            let most = match self.grows[place] && control.yield_bit {
                true => MOST_STALL_UNYIELDING,
                false => MOST_STALL,
            };
            let more = left.min(most.saturating_sub(u16::from(control.stall)));
            if more == 0 || is_fixed {
                continue;
            }
            control.stall += more as u8;
            self.steps[place].set_control(control);
            self.note_change(place);
            left -= more;
            if left == 0 {
                return Ok(());
            }
        }
        Err(Unassigned::TooClose {
            earlier: Inst::new(at),
            later: Inst::new(later),
        })
    }

    /// Chooses the scoreboards of an instruction.
    fn choose(
        &mut self,
        at: usize,
        control: &mut Control,
        board: &mut Board,
    ) -> Result<(), Unassigned> {
        let needs = self.needs[at];
        let unit = self.timings[at].unit;
        let place = at as u32;
        let old = match self.scoreboards.get(at) == Some(&true) {
            true => self.code.instructions()[at].control(),
            false => Control::default(),
        };
        let mut take = |cycles: u16, first: u32, taken: u8, old: Option<u8>| {
            let chosen = board.choose(taken, u32::from(cycles), (first, old), place);
            chosen.ok_or(Unassigned::NoScoreboard)
        };
        if needs.write && control.write_barrier.is_none() {
            let scoreboard = take(
                unit.result_cycles,
                needs.first[0],
                self.pinned | scoreboards_of(*control),
                old.write_barrier,
            )?;
            control.write_barrier = Some(scoreboard);
        }
        if needs.read && control.read_barrier.is_none() {
            let scoreboard = take(
                unit.source_cycles,
                needs.first[1],
                self.pinned | scoreboards_of(*control),
                old.read_barrier,
            )?;
            control.read_barrier = Some(scoreboard);
        }
        Ok(())
    }

    /// Where control leaves for code that is not seen: what has a fixed latency is over when it gets there.
    fn leave(&mut self, at: usize, pending: &Pending) -> Result<(), Unassigned> {
        let Some(away) = self.away.filter(|_| self.steps[at].leaves) else {
            return Ok(());
        };
        let inst = Inst::new(at);
        let mut leaving = pending.clone();
        leaving.issue_without_leaving(&self.steps[at], &self.steps, self.orders);
        let mut short = 0;
        visit_leaving(
            inst,
            &leaving,
            &self.steps,
            away,
            &mut |dependence: Dependence| {
                if dependence.unsettled().is_none() && !dependence.is_in_order() {
                    let needed = self.close.cycles(&dependence).unwrap_or(u16::MAX);
                    short = short.max(needed.saturating_sub(dependence.cycles));
                }
            },
        );
        let mut control = self.steps[at].control;
        if short > 0 {
            let stall = u16::from(control.stall).saturating_add(short);
            if stall > MOST_STALL {
                return Err(Unassigned::TooClose {
                    earlier: inst,
                    later: inst,
                });
            }
            control.stall = stall as u8;
            self.steps[at].set_control(control);
            self.note_change(at);
        }
        Ok(())
    }

    /// Yield bits and reuse flags.
    fn hint(&mut self) {
        for block in self.cfg.blocks() {
            let last = self.cfg.last_inst(block).index();
            for at in self
                .cfg
                .insts(block)
                .map(|inst| inst.index())
                .collect::<Vec<_>>()
            {
                let mut control = self.steps[at].control;
                if self.kept[at] || self.grows[at] || control.stall == 0 {
                    continue;
                }
                let timing = self.timings[at];
                let old = self.code.instructions()[at].control();
                control.yield_bit = match old.stall {
                    0 => hints::yield_bit(timing, control.stall, self.is_for_dependence[at]),
                    // ptxas clears it for reasons that the instruction alone shows, too.
                    _ => old.yield_bit && hints::yield_bit(timing, control.stall, false),
                };
                let next = at + 1;
                let is_followed = self.followed.get(at) == Some(&true);
                if is_followed && control.yield_bit && old.reuse != 0 && at < last {
                    // What is read later may be written before, in another order.
                    let read = hints::reuse(self.code, Inst::new(at), Inst::new(next));
                    control.reuse = old.reuse & read;
                    self.steps[at].set_control(control);
                    continue;
                }
                if control.yield_bit
                    && at < last
                    && hints::keeps_operands(timing)
                    && hints::keeps_operands(self.timings[next])
                {
                    control.reuse = hints::reuse(self.code, Inst::new(at), Inst::new(next));
                }
                self.steps[at].set_control(control);
            }
        }
    }
}

/// By block, its place in the order.
fn places(order: &[Block]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (place, block) in order.iter().enumerate() {
        places[block.index()] = place as u32;
    }
    places
}

fn scoreboards_of(control: Control) -> u8 {
    let bit = |barrier: Option<u8>| barrier.map_or(0, |s| 1u8 << s);
    bit(control.write_barrier) | bit(control.read_barrier)
}
