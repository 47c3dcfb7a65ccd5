//! The source level: CUDA C as people write it, and what can be done to it before nvcc sees it.
//!
//! [`stencil`] schedules the expressions of a stencil for registers and generates its kernels.

pub mod diag;
pub mod stencil;
