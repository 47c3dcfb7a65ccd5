//! The fuzzer: generated kernels through the front end, the emulator, the register passes, and against
//! hardware.
//!
//! * [`case`]: one generated kernel and everything that must hold for it on any machine.
//! * [`passes`]: the same kernels through the register passes, and [`machine_code`]: as machine code through
//!   the passes over it; [`proved`] and [`assignment`] are what must hold of any kernel that went through one.
//! * [`agreement`]: what passes prove, `check` proves.
//! * [`totals`]: what a long run came to.
//! * [`constants`]: constant expressions and immediates against ptxas.
//! * [`controls`]: planted mistakes, and rewrites that change nothing.
//! * [`attack`]: one wrong edit in machine code that is proved.
//! * [`demotion`]: how far register demotion reaches on the examples.
//! * [`orders`]: other orders of machine code, right and wrong.
//! * [`precision`]: right rewrites that the checker does not prove, by reason.
//! * [`promoted`]: loops with what they store in registers, whatever pointers are one.
//! * [`forms`]: every form that the emulator runs, on a GPU.
//! * [`hardware`]: the same kernels (and the examples) on a GPU, bit for bit against the emulator.
//! * [`shapes`]: kernels whose threads use their places in the grid, in blocks of another shape.
//! * [`ptxas`]: the same kernels built by ptxas in many ways, on a GPU.
//!
//! The normal tests run a second's worth of cases; `warpwright-fuzz run` and
//! `warpwright-fuzz passes` go on for as long as they are told; `warpwright-fuzz hardware` writes a
//! result file. lab/fuzz/README.md describes them all.

pub mod agreement;
pub mod assignment;
pub mod attack;
pub mod case;
pub mod constants;
pub mod controls;
pub mod demotion;
mod equal;
pub mod forms;
pub mod hardware;
pub mod machine_code;
pub mod orders;
pub mod passes;
pub mod precision;
pub mod promoted;
pub mod proved;
pub mod ptxas;
pub mod shapes;
pub mod suite;
pub mod totals;
pub mod traffic;
