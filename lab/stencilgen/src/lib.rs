//! Random stencil kernels in the shapes that people write ([`generate`]), ways to compute each ([`ways`]), and all of
//! them against the kernel as written: in the PTX emulator ([`check`]) and as a program for a GPU ([`program`]).

pub mod check;
mod edges;
pub mod generate;
mod masks;
mod pads;
mod pixels;
pub mod program;
mod shapes;
pub mod ways;
