//! Random naive kernels, and everything that `warpwright-naive` makes of them against the original in the emulator.

#![warn(missing_docs)]

pub mod check;
pub mod device;
pub mod generate;
pub mod ways;
