//! Does a control field protect every register, as far as one version by itself shows?
//!
//! Goal: the judge of machine code shares nothing with whoever writes control fields; `sass::hazards` does. By no paper.
//!
//! A version's accesses are walked by [`super::flight`]. Three things are wrong with a schedule:
//!
//! 1. an access that takes an unknown time and that nothing keeps before the next one,
//! 2. a flag for operand reuse where what is kept is out of date, or nothing,
//! 3. a scoreboard that there is not.
//!
//! What the original has of these, too, is a mistake of the tables: as many of the same kind are let pass. Dependences
//! that cycles protect are held against the original by [`super::protection`].

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use warpwright_flow::{Block, Cfg, Inst};
use warpwright_sass::function::{Code, value_of};
use warpwright_sass::isa::table::Table as Forms;
use warpwright_sass::roles::{File, Role, Span, Table};

use super::bits;
use super::flight::{Dependence, Kind, dependences};
use super::habits::Habits;
use super::places::shape;
use super::timing::{GROUPS, NOP, Timed, Unjudged, counted, timed};
use super::words::Unknown;

/// What one version's control fields protect.
pub(super) struct Judged<'c> {
    pub(super) code: &'c Code,
    pub(super) timed: Vec<Timed>,
    pub(super) habits: Rc<Habits>,
    /// Dependences that cycles protect.
    pub(super) by_cycles: Vec<Dependence>,
    /// Pairs of which the earlier one takes an unknown time and that nothing keeps in order.
    open: BTreeSet<(Inst, Inst, Kind)>,
    /// Instructions that keep an operand which they should not.
    kept: Vec<Inst>,
    /// Instructions that name a scoreboard that there is not.
    nameless: Vec<Inst>,
}

impl<'c> Judged<'c> {
    /// Walks a version.
    ///
    /// # Errors
    /// An instruction is not known well enough.
    pub(super) fn new(code: &'c Code) -> Result<Judged<'c>, Unjudged> {
        let timed = timed(code)?;
        let sm = code.instructions().first().map_or(0, |word| word.sm());
        let habits = Habits::for_sm(sm).ok_or(Unjudged::Architecture(sm))?;
        let mut by_cycles = Vec::new();
        let mut open = BTreeSet::new();
        dependences(code, &timed, &habits, |found| match found.is_late {
            true => {
                open.insert((found.later.inst, found.earlier.inst, found.kind));
            }
            false => by_cycles.push(found),
        });
        let nameless = timed.iter().filter(|one| one.names_no_scoreboard);
        Ok(Judged {
            nameless: nameless.map(|one| one.inst).collect(),
            kept: kept(code, &timed),
            code,
            timed,
            habits,
            by_cycles,
            open,
        })
    }

    /// What is wrong with it by itself, and is not so in the original.
    pub(super) fn faults(&self, original: &Judged, table: &'static Table) -> Vec<Unknown> {
        let name =
            |judged: &Judged, inst: Inst| shape(judged.code.instructions()[inst.0 as usize], table);
        let mut faults = Vec::new();
        let pair = |judged: &Judged, open: &(Inst, Inst, Kind)| {
            (name(judged, open.0), name(judged, open.1), open.2)
        };
        let mut known = counts(original.open.iter().map(|open| pair(original, open)));
        let open = self
            .open
            .iter()
            .filter(|open| !take(&mut known, &pair(self, open)));
        faults.extend(open.map(|open| Unknown::Schedule(open.0.0 * 16)));
        let mut known = counts(original.nameless.iter().map(|&inst| name(original, inst)));
        let nameless = self
            .nameless
            .iter()
            .filter(|&&inst| !take(&mut known, &name(self, inst)));
        faults.extend(nameless.map(|inst| Unknown::Schedule(inst.0 * 16)));
        let mut known = counts(original.kept.iter().map(|&inst| name(original, inst)));
        let kept = self
            .kept
            .iter()
            .filter(|&&inst| !take(&mut known, &name(self, inst)));
        faults.extend(kept.map(|inst| Unknown::Kept(inst.0 * 16)));
        faults
    }
}

fn counts<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

/// Takes one away, if there is one.
fn take<T: Ord>(counts: &mut BTreeMap<T, usize>, one: &T) -> bool {
    let left = counts.get_mut(one).filter(|left| **left > 0);
    left.map(|left| *left -= 1).is_some()
}

/// What of a control field does not follow from registers: it orders memory, or counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    /// Scoreboards that it sets though no register of its own is in use for an unknown time, one bit each: a fence.
    pub(super) tokens: u8,
    /// Scoreboards that it sets and of which a DEPBAR counts the users, one bit each.
    pub(super) counted: u8,
    /// Does it work on no register, so that its stall counts are its own?
    pub(super) synchronizes: bool,
    /// Must what such scoreboards tell be over before it?
    pub(super) awaits_tokens: bool,
}

impl Judged<'_> {
    /// What is hidden in the control fields of every instruction.
    pub(super) fn hidden(&self) -> Vec<Hidden> {
        let counted = counted(self.code);
        self.timed
            .iter()
            .map(|one| hidden(self.code, one, counted))
            .collect()
    }
}

fn hidden(code: &Code, one: &Timed, counted: u8) -> Hidden {
    let is_late = |role| {
        let mut spans = code.roles(one.inst).spans().iter();
        spans.any(|&span| span.role == role && span.file != File::Barrier && one.is_late(span))
    };
    let delivered = one.delivered & (GROUPS - 1);
    let explains_results = is_late(Role::Def) || one.unit.is_late_if_counted;
    let results = if explains_results { 0 } else { delivered };
    let sources = match is_late(Role::Use) {
        true => 0,
        false => one.reads_told,
    };
    let is_sync = one.synchronizes();
    let reads_memory = one.unit.sources.is_some() && one.unit.reads_before_barrier;
    Hidden {
        tokens: results | sources,
        counted: (delivered | one.reads_told) & counted,
        synchronizes: is_sync,
        awaits_tokens: reads_memory || is_sync || matches!(one.unit.name, "control" | "bmov"),
    }
}

impl Timed {
    /// Does it work on no register, but on what other threads and units do?
    pub(super) fn synchronizes(&self) -> bool {
        self.unit.name == "sync" && self.operation != NOP
    }
}

/// Instructions whose flags for operand reuse are wrong: the yield bit is clear, no general register stands there, the
/// instruction writes it, or what takes an unknown time writes it before it is read there again (an H200 then read what
/// had been kept).
fn kept(code: &Code, timed: &[Timed]) -> Vec<Inst> {
    let cfg = Cfg::new(code);
    let flagged = timed.iter().filter(|one| {
        let word = code.instructions()[one.inst.0 as usize];
        !one.unit.has_other_flags && bits::REUSE.get(word) != 0
    });
    let wrong = flagged.filter(|one| {
        let word = code.instructions()[one.inst.0 as usize];
        let slots = (0..4u8).filter(|slot| bits::REUSE.get(word) >> slot & 1 != 0);
        let mut spans = slots.map(|slot| (slot, source(code, one.inst, slot)));
        bits::YIELD.get(word) == 0
            || spans.any(|(slot, span)| {
                span.is_none_or(|span| {
                    let flag = Flag {
                        code,
                        timed,
                        slot,
                        span,
                    };
                    writes(one, span) || flag.is_stale(&cfg, one.inst)
                })
            })
    });
    wrong.map(|one| one.inst).collect()
}

/// The general register that a flag keeps: which source a slot stands for is the form's.
fn source(code: &Code, inst: Inst, slot: u8) -> Option<Span> {
    let word = code.instructions()[inst.0 as usize];
    let bit = Forms::of(word.sm())?.find(word.bits())?.kept(slot)?;
    let mut uses = code.roles(inst).uses();
    uses.find(|span| span.file == File::Gpr && span.bit == bit)
}

fn writes(one: &Timed, span: Span) -> bool {
    let mut registers = span.registers().filter_map(|n| value_of(span.file, n));
    registers.any(|register| one.written.contains(&register))
}

/// A flag that keeps a register for its slot.
struct Flag<'c> {
    code: &'c Code,
    timed: &'c [Timed],
    slot: u8,
    span: Span,
}

impl Flag<'_> {
    /// Does what takes an unknown time write the register in the flag's block before it is read there again, or on the
    /// way to another block that reads it there?
    fn is_stale(&self, cfg: &Cfg, inst: Inst) -> bool {
        let block = cfg.block_of(inst);
        let (is_late, is_read) = self.pass(inst.0 + 1..cfg.last_inst(block).0 + 1);
        if is_late || is_read {
            return is_late;
        }
        let mut seen = BTreeSet::new();
        let mut work: Vec<(Block, bool)> = cfg.succs(block).iter().map(|&b| (b, false)).collect();
        while let Some((block, was_late)) = work.pop() {
            if !seen.insert((block, was_late)) {
                continue;
            }
            let (is_late, is_read) = self.pass(cfg.first_inst(block).0..cfg.last_inst(block).0 + 1);
            let is_late = is_late || was_late;
            match is_read {
                true if is_late => return true,
                true => {}
                false => work.extend(cfg.succs(block).iter().map(|&next| (next, is_late))),
            }
        }
        false
    }

    /// Over a part of a block, up to where the register is read in the slot: is it written late, and is it read?
    fn pass(&self, range: std::ops::Range<u32>) -> (bool, bool) {
        let mut is_late = false;
        for inst in range.map(Inst) {
            let other = source(self.code, inst, self.slot);
            if other.is_some_and(|other| other.first == self.span.first) {
                return (is_late, true);
            }
            let one = &self.timed[inst.0 as usize];
            is_late |= writes(one, self.span) && one.takes_unknown_time();
        }
        (is_late, false)
    }
}
