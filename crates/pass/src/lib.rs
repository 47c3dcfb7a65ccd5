//! Passes: what one is, all that there are, recipes of them, and the executor that carries them out.
//!
//! * [`pass`]: the trait, with [`options`] that print and parse, [`Refusal`]s, [`Need`]s and [`Caution`]s.
//! * [`passes`]: the registry, one line a pass.
//! * [`recipe`]: lists of them as text.
//! * [`executor`]: verify, apply, verify, prove ([`proof`]), time, fuel; what it works on is an [`Artifact`].
//! * [`carry`](mod@carry): recipes on a whole input, every step proved.
//! * [`witness`]: a difference that the checker found, shown in the emulator.
//! * [`miscompiled`]: versions of ptxas that make wrong code.
//! * [`names`]: kernels as their sources call them.
//! * [`reliance`]: what a kernel relies on that its code does not show.
//! * [`scope`], [`site`], [`launch`]: what callers state about kernels and launches, and what a pass is given.
//! * [`ptx`]: the passes over PTX; [`source`]: those over CUDA C; [`spill_to_shared`], [`dead_instructions`],
//!   [`demote`], [`schedule`], [`throttle`], [`usage_level`]: the others.

pub mod artifact;
pub mod budget;
pub mod carry;
pub mod dead_instructions;
pub mod demote;
pub mod executor;
mod hazard;
pub mod launch;
mod legacy;
pub mod miscompiled;
pub mod names;
pub mod options;
mod own_shared;
pub mod pass;
pub mod passes;
pub mod proof;
pub mod ptx;
pub mod recipe;
pub mod refusal;
pub mod reliance;
pub mod rename;
pub mod schedule;
pub mod scope;
pub mod site;
pub mod source;
pub mod spill_to_shared;
pub mod throttle;
pub mod usage_level;
pub mod witness;

pub use artifact::{Artifact, Invalid, Language, SourceFile};
pub use budget::Budget;
pub use carry::{CarriedOut, CarryError, Demand, Done, Plan, Stepped, carry_out, plans};
pub use executor::{
    Builders, Comparison, Executor, ProofError, Proved, Run, RunError, Step, Target,
};
pub use hazard::Hazard;
pub use launch::{Block, BlockSource};
pub use pass::{AssemblerOptions, Caution, Emulated, Fuel, Level, Need, Pass, Rewritten, Work};
pub use proof::{NotProved, Rung, rests_on};
pub use recipe::{Invocation, Recipe, RecipeError};
pub use refusal::Refusal;
pub use reliance::{Footprint, Reliance};
pub use scope::{Bounded, Scope, ScopeError, Seen};
pub use site::{CubinSite, Setting, Site, Source, SourceSite};
pub use warpwright_check::Promises;
