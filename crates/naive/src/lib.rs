//! Naive kernels: one output element per thread in, tuned CUDA C out (Yang et al., "A GPGPU compiler for memory
//! optimization and parallelism management", PLDI 2010, and what came after it).
//!
//! * `recognise`: a kernel of CUDA C to the small loop nest of `ir`.
//! * `forms`: accesses as strides, and what moves along each; `bounds`: where polynomials lie.
//! * `schedule`: the choices; `emit`: a kernel and its choices to CUDA C.
//! * `totals`, `team`, `across`, `fours`, `prefix`: families beside tiles.
//! * `way`: a schedule or a choice of a family, as text and back.
//! * `search`: which there are, and how long each should take.
//! * `replace`: the file in which the result takes the place of the input.
//! * `versions`: that file against the input, in the emulator; `harness`: on a GPU.

pub mod across;
pub mod bounds;
pub mod emit;
pub mod explain;
pub mod families;
pub mod forms;
pub mod fours;
pub mod harness;
pub mod ir;
pub mod prefix;
pub mod recognise;
pub mod replace;
pub mod schedule;
pub mod search;
pub mod team;
mod text;
pub mod totals;
pub mod versions;
pub mod way;
mod wide;
