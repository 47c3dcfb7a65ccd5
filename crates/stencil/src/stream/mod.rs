//! Beyond the paper: streaming kernels, as today's best stencil compilers generate them.
//!
//! A [`Plan`] says how a stencil is computed; [`generate`] carries it out. A block of threads keeps
//! a tile of the inner dimensions and walks along the outermost one. What it does for a plane:
//!
//! | file | |
//! |---|---|
//! | `graph.rs` | the sweep as one graph, without names |
//! | `shifts.rs` | which values of a point are values of other points |
//! | `terms.rs` | outputs as sums of such values |
//! | `layout.rs` | which planes stand in registers and which in shared memory |
//! | `kernel.rs`, `sums.rs` | the straight-line code of a plane |
//! | `planes.rs` | how planes come and go: queues, copies, stores |
//! | `generate.rs`, `writer.rs` | what surrounds it: the kernels and their launch |
//! | `cost.rs`, `model.rs`, `search.rs` | what a step costs, how long a sweep takes, all plans by that |
//! | `boxes.rs` | the same model for kernels that do not stream |
//!
//! Sources: 2.5D blocking, Nguyen et al. (SC 2010); register queues, Micikevicius (GPGPU 2009);
//! retiming, Stock et al. (PLDI 2014) and Rawat et al. (IPDPS 2018); values of neighbouring points
//! as common subexpressions, Deitz et al. (ICS 2001).
//!
//! Without the permission to reassociate, results are those of the input to the bit (if nvcc does
//! not fuse multiplications and additions, which it decides for any text of the source).

mod boxes;
mod cost;
mod emit;
mod generate;
mod graph;
mod kernel;
mod layout;
mod model;
mod names;
mod plan;
mod planes;
mod search;
mod shifts;
mod sums;
mod terms;
mod writer;

pub use cost::Cost;
pub use generate::{Kernel, generate};
pub use model::{Machine, Prediction};
pub use plan::{Plan, Refusal};
pub use search::{Ranked, search};
