//! The fuzzer: generated kernels through the front end, the emulator, and against hardware.
//!
//! * [`case`]: one generated kernel and everything that must hold for it on any machine.
//! * [`hardware`]: the same kernels (and the examples) on a GPU, bit for bit against the emulator.
//!
//! The normal tests run a second's worth of cases; `warpwright-fuzz run` goes on for as long as it
//! is told; `warpwright-fuzz hardware` writes a result file. docs/fuzzing.md describes all three.

pub mod case;
pub mod hardware;
