//! Stencils: one representation for kernels in CUDA C and for the compact language, and the
//! transformations of Rawat et al. (PPoPP 2018) and after on it.

mod build;
mod canonical;
pub mod dsl;
pub mod emit;
pub mod evaluate;
pub mod extract;
pub mod harness;
pub mod ir;
mod names;
pub mod replace;
mod rules;
pub mod schedule;
pub mod statistics;
pub mod stream;
pub mod sweep;
pub mod versions;

use warpwright_cudac::with_stack;
