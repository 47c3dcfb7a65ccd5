//! Uniform registers belong to the warp: threads elsewhere may overwrite them while some wait.
//!
//! Goal: a thread by itself finds in a uniform register what it wrote there; but where threads of a warp part, wait for
//! each other or meet, others of them run in between, and have the same register. ptxas knows where they may. By no paper.
//!
//! So the code is cut where threads may part or meet ([`super::step::may_part`]: whatever transfers control, waits, or is
//! not known to do neither; and where branches go). Within a piece the same threads run together, and the proof of the
//! values stands for all of them. What counts is a register that the rewritten version *carries* into some piece, as it
//! reads it there before it is surely written. For each such one:
//!
//! 1. the pieces of both versions correspond: as many, which end alike and go on to the same ones,
//! 2. where the rewritten version carries it in, the original does,
//! 3. both write it in the same pieces, and surely in the same ones. Where a guard decides, each side of which some
//!    threads of the piece may take, the piece also touches the register in the same order; and where the threads of the
//!    piece themselves do not read it any more, so that no proof compares what they leave in it for others.
//!
//! Then whoever overwrites what the rewritten version carries does so in the original. A register that the original does
//! not name and that is written at the entry alone, where the warp is together, is the version's own.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Cfg, EntityRef as _, Function as _, Inst, LiveSet, Liveness, Transfer};
use warpwright_sass::function::{Code, register_of};
use warpwright_sass::roles::{File, Role, Table};

use super::bits;
use super::places::shape;
use super::step;
use super::words::Unknown;

/// A uniform register or predicate.
type Register = (File, u16);

/// Holds the uniform registers of `new` against those of `original`.
pub(super) fn compare(original: &Code, new: &Code, table: &'static Table) -> Result<(), Unknown> {
    let before = pieces(original, table);
    let after = pieces(new, table);
    let mut carried: BTreeSet<Register> = after.iter().flat_map(Piece::carried).collect();
    for own in own(&before, &after) {
        carried.remove(&own);
    }
    if carried.is_empty() {
        return Ok(());
    }
    if before.len() != after.len() {
        return Err(Unknown::Uniform(0));
    }
    for (before, after) in before.iter().zip(&after) {
        let keeps = |register: &Register| {
            let [was, now] = [before, after].map(|piece| piece.uses.get(register));
            Use::keeps(was, now)
        };
        if before.end != after.end || !carried.iter().all(keeps) {
            return Err(Unknown::Uniform(after.begins));
        }
    }
    Ok(())
}

/// What stands between two places where threads may part or meet.
struct Piece {
    begins: u32,
    /// The opcode of what ends it, and the pieces behind it.
    end: (u32, Vec<usize>),
    has_entry: bool,
    uses: BTreeMap<Register, Use>,
}

impl Piece {
    fn carried(&self) -> impl Iterator<Item = Register> + '_ {
        let carried = self.uses.iter().filter(|(_, used)| used.is_carried);
        carried.map(|(register, _)| *register)
    }
}

/// What a piece does to one register.
#[derive(Debug, Default, PartialEq, Eq)]
struct Use {
    /// Is it read before it is surely written?
    is_carried: bool,
    /// Does a guard decide whether it is written?
    is_guarded: bool,
    is_surely_written: bool,
    /// Do the same threads read it behind the piece?
    is_live_behind: bool,
    /// All that touches it, without registers.
    touches: Vec<(u128, Role)>,
}

impl Use {
    fn note(&mut self, touch: (u128, Role), is_guarded: bool) {
        self.touches.push(touch);
        match touch.1 {
            Role::Use => self.is_carried |= !self.is_surely_written,
            Role::Def if is_guarded => self.is_guarded = true,
            Role::Def => self.is_surely_written = true,
        }
    }

    /// May nobody overwrite, or find, more by `now` than by `was`?
    fn keeps(was: Option<&Use>, now: Option<&Use>) -> bool {
        let none = Use::default();
        let [was, now] = [was, now].map(|used| used.unwrap_or(&none));
        let is_compared = now.is_live_behind || !now.is_surely_written;
        if was.is_guarded || now.is_guarded || !is_compared {
            return was.touches == now.touches
                && [was.is_carried, was.is_guarded, was.is_surely_written]
                    == [now.is_carried, now.is_guarded, now.is_surely_written];
        }
        was.is_surely_written == now.is_surely_written && (was.is_carried || !now.is_carried)
    }
}

/// Registers of the rewritten version that it writes at the entry alone, whatever happens, and that the original does
/// not name.
fn own(before: &[Piece], after: &[Piece]) -> BTreeSet<Register> {
    let Some((first, rest)) = after.split_first().filter(|(first, _)| !first.has_entry) else {
        return BTreeSet::new();
    };
    let is_own = |register: &Register, used: &Use| {
        let is_written = |used: &Use| used.is_guarded || used.is_surely_written;
        let here = |piece: &Piece| piece.uses.get(register).is_some_and(is_written);
        used.is_surely_written
            && !used.is_guarded
            && !used.is_carried
            && !before.iter().any(|piece| piece.uses.contains_key(register))
            && !rest.iter().any(here)
    };
    let own = first
        .uses
        .iter()
        .filter(|(register, used)| is_own(register, used));
    own.map(|(register, _)| *register).collect()
}

/// The pieces that are reached, in the order of the code.
fn pieces(code: &Code, table: &'static Table) -> Vec<Piece> {
    let cfg = Cfg::new(code);
    let mut blocks = cfg.reverse_postorder().to_vec();
    blocks.sort_unstable_by_key(|&block| cfg.first_inst(block));
    let mut ranges = Vec::new();
    for &block in &blocks {
        let mut from = cfg.first_inst(block);
        for inst in cfg.insts(block) {
            if inst == cfg.last_inst(block) || parts(code, inst, table) {
                ranges.push((from, inst));
                from = Inst(inst.0 + 1);
            }
        }
    }
    let begins = ranges.iter().map(|range| range.0);
    let number: BTreeMap<Inst, usize> = begins.zip(0..).collect();
    let lasts = ranges.iter().map(|range| range.1).collect();
    let live = live_behind(code, &cfg, &lasts);
    let piece = |&(from, last): &(Inst, Inst)| {
        let block = cfg.block_of(last);
        let mut behind: Vec<usize> = match cfg.last_inst(block) == last {
            true => {
                let succs = cfg.succs(block).iter();
                succs.map(|&next| number[&cfg.first_inst(next)]).collect()
            }
            false => vec![number[&Inst(last.0 + 1)]],
        };
        behind.sort_unstable();
        let opcode = match parts(code, last, table) {
            true => bits::OPCODE.get(code.instructions()[last.index()]),
            false => 0,
        };
        let mut uses = uses(code, from..Inst(last.0 + 1), table);
        for (register, used) in &mut uses {
            let live = live.get(&last);
            used.is_live_behind = live.is_some_and(|live| live.contains(register));
        }
        Piece {
            begins: from.0 * 16,
            end: (opcode, behind),
            has_entry: !cfg.preds(cfg.block_of(from)).is_empty(),
            uses,
        }
    };
    ranges.iter().map(piece).collect()
}

/// By the last instructions of pieces, the registers that the same threads read behind them.
fn live_behind(
    code: &Code,
    cfg: &Cfg,
    lasts: &BTreeSet<Inst>,
) -> BTreeMap<Inst, BTreeSet<Register>> {
    let liveness = Liveness::new(code, cfg);
    let mut live = LiveSet::new(code.value_count());
    let mut behind = BTreeMap::new();
    for block in cfg.blocks() {
        let mut walk = liveness.walk(code, cfg, block, &mut live);
        while let Some(inst) = walk.peek() {
            if lasts.contains(&inst) {
                let registers = walk.live().members().iter().copied();
                let registers = registers.filter_map(register_of);
                let uniform =
                    registers.filter(|one| matches!(one.0, File::Uniform | File::UniformPred));
                behind.insert(inst, uniform.collect());
            }
            walk.step();
        }
    }
    behind
}

/// May threads of the warp part or meet at this instruction?
fn parts(code: &Code, inst: Inst, table: &'static Table) -> bool {
    let word = code.instructions()[inst.index()];
    code.transfer(inst) != Transfer::Next || step::may_part(word, table)
}

fn uses(
    code: &Code,
    insts: std::ops::Range<Inst>,
    table: &'static Table,
) -> BTreeMap<Register, Use> {
    let mut uses: BTreeMap<Register, Use> = BTreeMap::new();
    for inst in (insts.start.0..insts.end.0).map(Inst) {
        let shape = shape(code.instructions()[inst.index()], table);
        let is_guarded = code.is_predicated(inst);
        for role in [Role::Use, Role::Def] {
            let spans = code.roles(inst).spans().iter();
            let spans = spans.filter(|span| span.role == role);
            let spans = spans.filter(|span| matches!(span.file, File::Uniform | File::UniformPred));
            for register in spans.flat_map(|span| span.registers().map(|n| (span.file, n))) {
                uses.entry(register)
                    .or_default()
                    .note((shape, role), is_guarded);
            }
        }
    }
    uses
}
