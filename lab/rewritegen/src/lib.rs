//! Random computations, each as a plain kernel and under a random schedule, right or with one mistake; and what
//! `warpwright_rewrite` says of the two, held against the emulator on numbers and against the host.
//!
//! A schedule offers places for a mistake while it is written ([`code::Code::slip`]), so the same seed gives the right
//! kernel and every broken one. No verdict may be wrong: what differs on numbers is never equal, what is right is never
//! refuted, and what is equal bit for bit has the same bits on every input that is tried.

pub mod check;
pub mod code;
pub mod emit;
pub mod family;
