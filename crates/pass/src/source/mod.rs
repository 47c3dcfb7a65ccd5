//! Passes over CUDA C.

pub mod launch_bounds;
pub mod naive;
