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

mod stall;

pub use stall::{Bound, Case, Parameters, Prediction, predict};
