//! `promote`: a location that a loop stores in each iteration is kept in a register.
//!
//! Goal: loads of the next iterations in flight while this one computes. `c[i] += a[k] * b[k]` in a loop stores `c[i]` each
//! time, since `a` or `b` might be `c`, and no load may begin before the store in front of it. LLVM's LICM promotes scalars
//! where it knows that nothing else touches them. Here nothing needs to be known: what else the loop loads is compared with
//! the location by its address, and takes the register's value where it is the same.
//!
//! Method, for one location `[base+offset]` after another: on each way into the loop the register is loaded; stores to the
//! location become moves to it, and loads of it moves from it; another load is followed by a selection between what it
//! loaded and the register, another store by one between the register and what it stored; on each way out the register is
//! stored. Of several locations the one that came first is loaded first and stored last: where two are one, its register
//! has what both stored.
//!
//! Why it is right: at the loop's header the original's memory is that of the rewritten loop with the register's value at
//! the location. Accesses are aligned, and all of one size, so they overlap only where their addresses are equal. Each
//! iteration stores the location before it leaves, so the load in front and the stores behind touch what the original
//! touches. No other thread sees the stores between: nothing in the loop orders them, so it would race with the original.
//!
//! A loop of one block whose loads go where can be told behind it has no selections (`again.rs`). Loops that have at most seven
//! iterations are left alone.
//!
//! Departures: no aliases are looked for, and nothing is promoted that is stored in some iterations only.
//!
//! Requires an innermost loop that is entered at its header; plain scalar accesses of global memory, all of 4 or all of 8
//! bytes; nothing that orders memory, and nothing in which threads meet. Preserves every value and the bytes that each
//! thread reads and writes.

mod again;
mod around;
mod arrays;
mod location;
mod write;

use std::borrow::Cow;
use std::collections::BTreeSet;

use warpwright_diag::count;
use warpwright_flow::{Cfg, Dominators, Loop, Loops};
use warpwright_ptx::{Diagnostic, Module, View};

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::ptx::facts::view;
use crate::ptx::unroll::{counted::Counted, region::Region};
use crate::refusal::Refusal;
use crate::site::Site;
use again::Again;
use location::{Cell, Location, Turn};

/// The pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promote {
    /// Which loops.
    pub arrays: Arrays,
}

crate::options!(Promote: []; [arrays: Arrays = Arrays::Any, "which loops, by what they load from: where arrays do meet, the kernel runs the loop as written, or chooses by address"]);

/// What a loop may load from beside the location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrays {
    /// Anything.
    Any,
    /// Other arrays than those it stores to. One that may load what it stores runs twice where it does.
    Apart,
}

crate::words!(Arrays: Arrays::Any = "any", Arrays::Apart = "apart");

impl Pass for Promote {
    const NAME: &'static str = "promote";
    const ABOUT: &'static str = "keep in registers what loops store to the same place in each iteration; whether they load it, too, is compared by \
         address as they run, and nothing is assumed of pointers";

    fn work(&self) -> Work<Self> {
        Work::Ptx(promote)
    }
}

/// Locations of one loop that get registers.
const MOST_LOCATIONS: usize = 16;

fn promote(pass: &Promote, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    let mut work = Promotion {
        arrays: pass.arrays,
        module: Cow::Borrowed(site.module),
        made: Vec::new(),
        left: Vec::new(),
    };
    let mut loops = 0;
    while let Some(done) = work.one_loop(site, loops, fuel)? {
        loops += done;
    }
    if work.made.is_empty() && fuel.left() > 0 {
        let first = work.left.into_iter().next();
        return Err(first.map_or(NOTHING, |left| left.1));
    }
    Ok(work.rewritten())
}

/// Iterations with which a loop gains nothing: what a loop of several at once leaves over, above all.
const FEW_ITERATIONS: u64 = 7;
const OWN: Refusal = Refusal::InTheWay("its loop may load from the array that it stores to");
const SHORT: Refusal = Refusal::InTheWay("its loop has at most a few iterations");

const NOTHING: Refusal = Refusal::NothingToDo("innermost loop that stores to global memory");

/// The module as far as locations have been promoted.
struct Promotion<'m> {
    arrays: Arrays,
    module: Cow<'m, Module>,
    /// A sentence for each.
    made: Vec<String>,
    /// Locations in their text, and why they stay in memory.
    left: Vec<(String, Refusal)>,
}

impl Promotion<'_> {
    /// Promotes the locations of the innermost loop of this number in the order of the text, and says how many loops
    /// it is now. There is none: `None`.
    fn one_loop(
        &mut self,
        site: &Site,
        nth: usize,
        fuel: &mut Fuel,
    ) -> Result<Option<usize>, Refusal> {
        if let Some(text) = self.whole_loop(site, nth, fuel)? {
            self.module = Cow::Owned(parsed(site, &text)?);
            return Ok(Some(2));
        }
        let mut seen = BTreeSet::new();
        for _ in 0..MOST_LOCATIONS {
            match self.one_location(site, nth, &mut seen, fuel)? {
                Step::NoLoop => return Ok(None),
                Step::NoMore => break,
                Step::Made(text) => self.module = Cow::Owned(parsed(site, &text)?),
            }
        }
        Ok(Some(1))
    }

    /// The text with the loop in two copies, if it can be.
    fn whole_loop(
        &mut self,
        site: &Site,
        nth: usize,
        fuel: &mut Fuel,
    ) -> Result<Option<String>, Refusal> {
        let view = view(&self.module, site.kernel)?;
        let cfg = Cfg::new(&view);
        let loops = Loops::new(&cfg);
        let Some(of) = innermost(&cfg, &loops).nth(nth) else {
            return Ok(None);
        };
        let Ok(turn) = self.turn(&view, &cfg, &loops, of) else {
            return Ok(None);
        };
        match Again::new(&turn, &cfg, &loops, of) {
            Some(again) if fuel.burn() => {
                self.made.push(again.in_words(site.kernel));
                again.written(site.kernel).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The text with the first location promoted that was not seen yet and that can be.
    fn one_location(
        &mut self,
        site: &Site,
        nth: usize,
        seen: &mut BTreeSet<Cell>,
        fuel: &mut Fuel,
    ) -> Result<Step, Refusal> {
        let view = view(&self.module, site.kernel)?;
        let cfg = Cfg::new(&view);
        let loops = Loops::new(&cfg);
        let Some(of) = innermost(&cfg, &loops).nth(nth) else {
            return Ok(Step::NoLoop);
        };
        let turn = self.turn(&view, &cfg, &loops, of);
        let dominators = Dominators::new(&cfg);
        for cell in location::stored(&view, &cfg, loops.blocks(of)) {
            if !seen.insert(cell.clone()) {
                continue;
            }
            let location = turn
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|turn| Location::new(turn, &dominators, &cell));
            match location {
                Err(refusal) => self.left.push((cell.to_string(), refusal)),
                Ok(_) if !fuel.burn() => {}
                Ok(location) => {
                    self.made.push(location.in_words(site.kernel));
                    return Ok(Step::Made(location.written(site.kernel)?));
                }
            }
        }
        Ok(Step::NoMore)
    }

    /// # Errors
    /// The loop cannot be followed, is too short, or may load from where it stores.
    fn turn<'v>(
        &self,
        view: &'v View<'v>,
        cfg: &'v Cfg,
        loops: &'v Loops,
        of: Loop,
    ) -> Result<Turn<'v>, Refusal> {
        let region = Region::new(view, cfg, loops, of).ok();
        let most = region.and_then(|region| {
            let counted = Counted::new(view, cfg, &region, 2).ok()?;
            counted.most(view, &region)
        });
        if most.is_some_and(|most| most <= FEW_ITERATIONS) {
            return Err(SHORT);
        }
        let turn = Turn::new(view, cfg, loops, of)?;
        let stores = turn.accesses().iter().any(|access| !access.is_load);
        let is_asked = stores && self.arrays == Arrays::Apart;
        match is_asked && !arrays::Pointers::new(view).are_apart(turn.accesses()) {
            true => Err(OWN),
            false => Ok(turn),
        }
    }

    fn rewritten(self) -> Rewritten<String> {
        let mut rewritten = Rewritten::new(self.module.source.to_string());
        if !self.made.is_empty() {
            let locations = count(self.made.len(), "location");
            let all = self.made.join(", ");
            rewritten = rewritten.note(format!(
                "{locations} kept in registers, and compared by address with what is loaded: {all}"
            ));
        }
        for (cell, why) in self.left {
            rewritten = rewritten.note(format!("{cell} stays in memory: {why}"));
        }
        rewritten
    }
}

/// What came of the search for another location.
enum Step {
    NoLoop,
    NoMore,
    Made(String),
}

/// The innermost loops in the order of the text.
fn innermost(cfg: &Cfg, loops: &Loops) -> impl Iterator<Item = Loop> + use<> {
    let outer: BTreeSet<_> = loops.iter().filter_map(|of| loops.parent(of)).collect();
    let mut all: Vec<_> = loops.iter().filter(|of| !outer.contains(of)).collect();
    all.sort_by_key(|&of| cfg.first_inst(loops.header(of)));
    all.into_iter()
}

/// A text of our own, read again.
fn parsed(site: &Site, text: &str) -> Result<Module, Refusal> {
    let (module, diagnostics) = Module::parse(&site.module.name, text);
    match diagnostics.iter().find(|found| found.is_error()) {
        Some(found) => Err(Refusal::obstacle(
            "its text cannot be read again",
            in_words(found),
        )),
        None => Ok(module),
    }
}

fn in_words(found: &Diagnostic) -> String {
    found.message.clone()
}
