//! Register management, once, for every instruction set.
//!
//! Everything here is written against [`warpwright_flow::Function`] alone and answers *what* to
//! do: which value to recompute, which to keep in shared memory and where, which register a value
//! gets. *How* an instruction set inserts a load, a store or a recomputation lives with that
//! instruction set, and `driver` brings the two together.

mod again;
pub mod allocate;
mod coalesce;
mod color;
pub mod demote;
pub mod draft;
mod evict;
pub mod frame;
mod groups;
mod interference;
pub mod knapsack;
pub mod remat;
pub mod spill;
pub mod substacks;
mod union;
mod webs;
