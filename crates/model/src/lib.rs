//! Occupancy to performance: the static model that ranks candidates.
//!
//! A candidate is a stretch of machine code ([`warpwright_sass::Profile`]) at an occupancy. The
//! model puts three times against each other, each per warp and in SM cycles:
//!
//! * **issue**: the busiest execution unit, or the issue slots themselves;
//! * **latency**: what one warp needs alone (control-code stalls and waits, RegDem section 4),
//!   divided among the resident warps that hide it from each other;
//! * **traffic**: bytes to the second-level cache and device memory, spills that overflow the
//!   first-level cache included.
//!
//! They are joined by a p-norm, because near balance neither hides the other completely. Only
//! ratios between candidates of the same kernel mean anything. `docs/model.md` tells where the
//! free parameters come from and how well the ranking does.

//!
//! Beside it stands CRAT (MICRO 2015): [`opt_tlp`] estimates how many resident blocks a kernel can
//! make use of, from its PTX, and [`tpsc`] is the paper's measure of a candidate. `docs/regs.md`.

pub mod atomics;
pub mod attribution;
pub mod constants;
pub mod correction;
mod cost;
pub mod features;
mod forest;
mod lanes;
pub mod measured;
mod mimic;
mod opt_tlp;
mod plan;
mod reuse;
mod sample;
mod stall;
mod tpsc;

pub use opt_tlp::{Launched, OptTlp, Point, TOLERANCE, opt_tlp};
pub use stall::{Bound, Case, Parameters, Prediction, grid_warps, predict, profile};
pub use tpsc::{Inserted, Tpsc, inserted, tpsc};
