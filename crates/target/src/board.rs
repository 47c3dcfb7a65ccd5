//! What one board (product) adds to its architecture: how many SMs, how fast, with what memory.

use serde::Serialize;

use crate::arch::Architecture;
use crate::fact::Fact;

/// One row of the table of boards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Board {
    /// The name by which `lookup` finds it first: "h200".
    pub name: &'static str,
    /// Other names, among them the one that the driver reports.
    pub aliases: &'static [&'static str],
    /// Its architecture.
    #[serde(skip)]
    pub arch: &'static Architecture,
    /// Multiprocessors.
    pub sms: Option<Fact<u32>>,
    /// Highest sustained clock of the SMs in MHz (boost clock; shader clock up to Fermi).
    pub clock_mhz: Option<Fact<u32>>,
    /// Peak bandwidth of device memory in GB/s (10⁹ bytes a second).
    pub dram_gb_s: Option<Fact<u32>>,
    /// Bandwidth that a plain copy reaches, reads and writes added, in GB/s.
    pub copy_gb_s: Option<Fact<u32>>,
    /// Level-2 cache in KiB, as the driver reports it.
    pub l2_kib: Option<Fact<u32>>,
    /// As much of it as can be set aside for persisting accesses, in KiB, as the driver reports it.
    pub persisting_l2_kib: Option<Fact<u32>>,
}
