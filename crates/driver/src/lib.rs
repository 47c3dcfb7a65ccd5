//! Policy: which recipes are tried, which candidate is chosen, and what is remembered. What passes do is
//! the room below's.
//!
//! * [`candidate`]: a recipe and how far it has come.
//! * [`proposal`] -> [`build`] -> [`residency`], [`score`] -> [`choose`] -> proof: the steps, put together by
//!   [`explore`]; [`opt`] carries the choice out and replays recipes. [`why_not`](mod@why_not): why a candidate was not chosen.
//! * [`machine_code`]: steps behind ptxas, proposed round by round.
//! * [`search`]: which recipes are timed next where each is, and [`explore::versions`] makes them.
//! * [`control`]: `reduce` with ptxas in the loop.
//! * [`crat`]: resource usage, design space and choice as CRAT has them.
//! * [`estimate`]: without ptxas.
//! * [`database`], [`tune`]: measurements that overrule the model.
//! * [`life_ranges`]: liveness of machine code against nvdisasm.
//! * [`naive`], [`stencil`]: which version of a naive kernel or stencil is written; [`source`] tries one.

pub mod build;
pub mod candidate;
pub mod choose;
pub mod control;
pub mod crat;
pub mod database;
pub mod estimate;
pub mod explore;
pub mod life_ranges;
pub mod machine_code;
pub mod naive;
pub mod opt;
pub mod proposal;
pub mod residency;
pub mod score;
pub mod search;
pub mod source;
pub mod stencil;
pub mod tune;
pub mod why_not;

pub use candidate::{Candidate, Measured, Residency, Resources, Score};
pub use opt::{Chosen, Crat, KernelOutcome, KernelReport, OptError, Proofs, Request};
pub use proposal::Peers;
