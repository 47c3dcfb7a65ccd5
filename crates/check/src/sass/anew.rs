//! Is code in another order, with control fields of its own, protected like the original?
//!
//! Goal: where instructions changed places, [`super::protection`] has nothing to hold on to: no control field is still
//! about the same neighbours. What is left to ask, beside the hazard checker, goes here. By no paper.
//!
//! * *What orders memory by its control field* (fences, groups of copies; scoreboards that no register explains): the
//!   same instructions in the same order, with as many scoreboards and no shorter stalls; what DEPBAR counts is counted
//!   on the same scoreboards; and what such a scoreboard tells is awaited by the first instruction that touches
//!   memory, synchronizes or transfers control.
//! * *Uniform registers* belong to the warp, so threads elsewhere may overwrite them while some wait: between two
//!   ordered events the instructions that read or write them are the same.
//! * *Distances* have witnesses, and what no register shows is kept ([`super::protection::compare_anew`]).

use std::collections::BTreeMap;

use warpwright_flow::{Function as _, Inst, Transfer};
use warpwright_sass::function::Code;
use warpwright_sass::hazards::{self, Hidden};
use warpwright_sass::roles::{File, Table};

use super::places::shape;
use super::step;
use super::words::Unknown;

/// Holds the order of `new` against that of `original`.
pub(super) fn compare(original: &Code, new: &Code, table: &'static Table) -> Result<(), Unknown> {
    same_order(original, new, table)?;
    same_uniform(original, new, table)
}

/// Where `__syncwarp` stood and the warp is together anyway ptxas leaves a NOP (tried with 13.5 on sm_75 to sm_120;
/// without any word of it in its documentation). Other lanes may touch what a lane's own addresses keep apart, so
/// global accesses stay on their side. Shared ones keep their order anyhow, and local ones are the lane's own. Further
/// NOPs may stand anywhere.
pub(super) fn same_between_nops(
    original: &Code,
    new: &Code,
    table: &'static Table,
) -> Result<(), Unknown> {
    let mut rest = between_nops(new, table).into_iter();
    for (place, wanted) in between_nops(original, table) {
        let mut found: BTreeMap<u128, u32> = BTreeMap::new();
        while found != wanted {
            let (_, more) = rest.next().ok_or(Unknown::Barrier(place))?;
            for (shape, count) in more {
                let all = found.entry(shape).or_default();
                *all += count;
                if wanted.get(&shape).is_none_or(|wanted| wanted < all) {
                    return Err(Unknown::Barrier(place));
                }
            }
        }
    }
    Ok(())
}

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

fn same_order(original: &Code, new: &Code, table: &'static Table) -> Result<(), Unknown> {
    let hidden = |code: &Code| hazards::hidden(code).map_err(Unknown::Unchecked);
    let all = [hidden(original)?, hidden(new)?];
    let [before, after] =
        [(original, &all[0]), (new, &all[1])].map(|(code, all)| special(code, all, table));
    for (at, (inst, event)) in after.iter().enumerate() {
        let stall = |code: &Code, inst: Inst| code.instructions()[inst.0 as usize].stall();
        let keeps = before.get(at).is_some_and(|(old, known)| {
            known == event && (!event.synchronizes || stall(original, *old) <= stall(new, *inst))
        });
        if !keeps {
            return Err(Unknown::Schedule(inst.0 * 16));
        }
        let mut open = all[1][inst.0 as usize].tokens & !event.counted;
        for (later, hidden) in all[1].iter().enumerate().skip(inst.0 as usize + 1) {
            open &= !new.instructions()[later].wait_mask();
            if open == 0 {
                break;
            }
            if hidden.awaits_tokens {
                return Err(Unknown::Schedule(later as u32 * 16));
            }
        }
    }
    match before.len() == after.len() {
        true => Ok(()),
        false => Err(Unknown::Schedule(0)),
    }
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

/// The instructions on uniform registers between two ordered events, by shape, and where the first event is.
type Regions = Vec<(u32, BTreeMap<u128, u32>)>;

fn same_uniform(original: &Code, new: &Code, table: &'static Table) -> Result<(), Unknown> {
    let [before, after] = [original, new].map(|code| regions(code, table));
    for (at, (place, uniform)) in after.iter().enumerate() {
        if before.get(at).is_none_or(|(_, known)| known != uniform) {
            return Err(Unknown::Uniform(*place));
        }
    }
    match before.len() == after.len() {
        true => Ok(()),
        false => Err(Unknown::Uniform(0)),
    }
}

fn regions(code: &Code, table: &'static Table) -> Regions {
    let mut regions = vec![(0, BTreeMap::new())];
    for inst in all(code) {
        let word = code.instructions()[inst.0 as usize];
        let mut spans = code.roles(inst).spans().iter();
        let is_uniform = |file| matches!(file, File::Uniform | File::UniformPred);
        if spans.any(|span| is_uniform(span.file))
            && let Some((_, here)) = regions.last_mut()
        {
            *here.entry(shape(word, table)).or_default() += 1;
        }
        if code.transfer(inst) != Transfer::Next || step::may_part(word, table) {
            regions.push((inst.0 * 16, BTreeMap::new()));
        }
    }
    regions
}
