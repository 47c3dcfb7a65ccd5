//! The pipeline: Recipe, Candidate, choice; the only room that knows every level.
//!
//! * [`recipe`], [`candidate`]: the decisions about a kernel, and what came of them.
//! * [`kernel`]: what the PTX says about a kernel before any build; [`slice`](mod@slice): the kernel without the
//!   others of its module.
//! * [`propose`] -> [`realise`] -> [`build`] -> [`residency`], [`score`] -> [`choose`]: the steps,
//!   put together by [`explore`] and [`opt`].
//! * [`rewrite`], [`finish`]: our own passes within a recipe, before and after ptxas. [`throttle`] has
//!   a decision on either side.
//! * [`fusion`]: where ptxas may round differently after a rewrite, and a measurement must agree.
//! * [`crat`]: resource usage, design space and choice as CRAT has them.
//! * [`spill`], [`allocate`]: register passes on PTX, with what `regs` decides and `ptx` writes.
//! * [`remat`], [`reduce`](mod@reduce), [`control`]: fewer registers, one means alone, all in turn, and
//!   with ptxas in the loop.
//! * [`database`]: measurements that overrule the model.
//! * [`life_ranges`]: liveness of machine code against nvdisasm.
//! * [`stencil`]: stencils from source to source.
//! * [`passes`]: passes that run alone, with the parameters of [`context`].

pub mod allocate;
pub mod allocate_pass;
pub mod build;
pub mod candidate;
pub mod choose;
pub mod context;
pub mod control;
pub mod crat;
pub mod cubin;
pub mod database;
pub mod demote;
pub mod estimate;
pub mod explain;
pub mod explore;
pub mod finish;
pub mod fusion;
pub mod kernel;
pub mod life_ranges;
pub mod opt;
pub mod passes;
pub mod propose;
pub mod realise;
pub mod recipe;
pub mod reduce;
pub mod remat;
pub mod residency;
pub mod rewrite;
pub mod score;
pub mod slice;
pub mod spare;
pub mod spill;
mod spill_code;
pub mod spill_pass;
pub mod stencil;
pub mod step;
pub mod throttle;
pub mod tune;

pub use candidate::{Candidate, Measured, Residency, Resources, Score};
pub use opt::{Crat, KernelOutcome, KernelReport, OptError, Request};
pub use propose::Peers;
pub use recipe::{Decision, Recipe, Scarce, Stage};
pub use rewrite::{Setting, Site};
