//! The tables: one row per architecture, one per board, each figure with its source.
//!
//! One file per generation of architectures; `sources` names what the figures come from.

mod ada;
mod ampere;
mod blackwell;
mod boards;
mod fermi_to_maxwell;
mod hopper;
mod sources;
mod spills;
mod tesla;
mod turing;

use crate::arch::{Architecture, BelowNeed, RegisterAllocation, RegisterFile, SharedMemory};

pub(crate) use boards::BOARDS;
pub(crate) use spills::SPILLS;

/// All rows, from the oldest to the newest.
pub(crate) const ARCHITECTURES: &[&Architecture] = &[
    &tesla::SM_13,
    &fermi_to_maxwell::SM_20,
    &fermi_to_maxwell::SM_30,
    &fermi_to_maxwell::SM_35,
    &fermi_to_maxwell::SM_52,
    &turing::SM_75,
    &ampere::SM_80,
    &ampere::SM_86,
    &ampere::SM_87,
    &ada::SM_89,
    &hopper::SM_90,
    &blackwell::SM_100,
    &blackwell::SM_103,
    &blackwell::SM_110,
    &blackwell::SM_120,
    &blackwell::SM_121,
];

const KB: u32 = 1024;

/// The register file of every architecture since 5.0, and of 3.5.
const REGISTERS_64K: RegisterFile = RegisterFile {
    per_sm: 65_536,
    per_block: 65_536,
    per_thread: 255,
    allocation: RegisterAllocation::PerWarp(256),
    warp_granularity: 4,
};

/// Shared memory from 8.0 on: the system takes 1 KB of every block, the rest can be opted in to.
const fn shared_memory(per_sm: u32, carveouts: &'static [u32]) -> SharedMemory {
    SharedMemory {
        per_sm,
        per_block: 48 * KB,
        per_block_opt_in: per_sm - KB,
        reserved: KB,
        unit: 128,
        carveouts,
        below_need: BelowNeed::SmallestThatFits,
    }
}

/// Carve-outs of 8.6, 8.9 and 12.x.
const UP_TO_100_KB: &[u32] = &[0, 8 * KB, 16 * KB, 32 * KB, 64 * KB, 100 * KB];
/// Carve-outs of 8.0 and 8.7.
const UP_TO_164_KB: &[u32] = &[
    0,
    8 * KB,
    16 * KB,
    32 * KB,
    64 * KB,
    100 * KB,
    132 * KB,
    164 * KB,
];
/// Carve-outs of 9.0, 10.x and 11.0.
const UP_TO_228_KB: &[u32] = &[
    0,
    8 * KB,
    16 * KB,
    32 * KB,
    64 * KB,
    100 * KB,
    132 * KB,
    164 * KB,
    196 * KB,
    228 * KB,
];
