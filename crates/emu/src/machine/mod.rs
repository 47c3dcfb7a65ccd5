//! The machine: blocks of warps that execute decoded instructions.

pub(crate) mod access;
mod asynchronous;
mod barrier;
mod block;
mod call;
mod collective;
mod copies;
mod device;
mod exec;
mod frame;
mod grid;
mod host;
mod matrix;
mod registers;
mod special;
mod texture;
mod transfer;
mod warp;

pub(crate) use block::Grid;
pub use device::{Device, Extents, Parameter, Spent, Variable};
pub(crate) use grid::kernel_params;
pub use grid::launches_begun;
