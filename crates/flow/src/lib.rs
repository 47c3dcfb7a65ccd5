//! Analyses over any instruction set: CFG, dominators, loops, liveness, pressure, live ranges.
//!
//! An instruction set implements [`Function`] once; everything else in this crate, and the
//! register passes above it, is written against that trait alone. The analyses build on each other
//! in this order, and each is one call:
//!
//! ```text
//! Cfg::new(func)                            blocks and edges
//! Dominators::new(cfg), Dominators::post(cfg)
//! Loops::new(cfg)                           loop nest
//! Liveness::new(func, cfg)                  live values at block boundaries, walks within
//! Pressure::new(func, cfg, liveness)        registers needed at each instruction
//! LiveRanges::new(func, cfg, liveness)
//! DefUse::new(func, liveness)               definitions and uses, reaching definitions (also: reaching)
//! Webs::new(func, cfg, liveness, def_use)   what can be renamed apart
//! ```
//!
//! All of them take any input that keeps the trait's contract: empty functions, unreachable code,
//! loops without exit, irreducible regions; none recurses, so depth is no limit. Time and memory
//! grow with the size of the results, not with blocks × values.

mod cfg;
mod defuse;
mod dominators;
mod function;
mod held;
mod lists;
mod liveness;
mod loops;
mod pressure;
mod ranges;

pub use cfg::{Block, Cfg, Reached, Stale};
pub use cranelift_entity::EntityRef;
pub use defuse::{DefUse, Source, Web, Webs, reaching};
pub use dominators::Dominators;
pub use function::{Class, ClassInfo, Function, Inst, Queue, Queues, Repetition, Transfer, Value};
pub use liveness::{LiveSet, Liveness, Walk};
pub use loops::{Loop, Loops};
pub use pressure::{Pressure, PressureRegion};
pub use ranges::{LiveRanges, Point, Segment};
