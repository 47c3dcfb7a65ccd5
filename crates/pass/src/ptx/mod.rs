//! Passes over PTX, a file each, and what they share.

pub mod allocate;
pub mod cache;
pub mod dead_code;
mod draft_code;
pub mod facts;
pub mod fusion;
pub mod goal;
pub mod limits;
pub mod local;
pub mod maxntid;
pub mod pressure_notes;
pub mod print;
pub mod promote;
pub mod reduce;
pub mod remat;
pub mod reshape;
pub mod slice;
pub mod smem_spilling;
pub mod spare;
pub mod specialize;
pub mod spill_shared;
pub mod unroll;
pub mod vectorize;
