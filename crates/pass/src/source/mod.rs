//! Passes over source files.

pub mod launch_bounds;
pub mod naive;
pub mod stencil;
