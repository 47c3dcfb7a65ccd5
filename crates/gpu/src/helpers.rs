//! Our own kernels: the cache flush and the comparison of two buffers.

use std::time::Duration;

use crate::cuda::{Context, Memory, Module, Span};
use crate::device::Device;
use crate::fault::Fault;
use crate::job::Shape;

/// Compiled by the driver when a job is opened.
const HELPERS: &[u8] = include_bytes!("helpers.ptx");

/// Our own kernels and the memory they need.
pub(crate) struct Helpers {
    module: Module,
    /// Zeros, larger than the L2 cache.
    cache: Memory,
    /// Results of a comparison.
    result: Memory,
    blocks: u32,
}

impl Helpers {
    pub(crate) fn load(device: &Device) -> Result<Self, Fault> {
        let context = device.context();
        let info = device.info();
        let helpers = Helpers {
            module: context.module(HELPERS)?,
            // Three times the cache: replacement is not strictly the least recently used.
            cache: context.alloc((3 * info.l2_bytes).max(16 << 20) as usize)?,
            result: context.alloc(16)?,
            blocks: info.sm_count * 4,
        };
        helpers.clear(context)?;
        Ok(helpers)
    }

    pub(crate) fn clear(&self, context: &Context) -> Result<(), Fault> {
        context.fill(self.cache.all(), 0)
    }

    fn shape(&self) -> Shape {
        Shape {
            grid: [self.blocks, 1, 1],
            block: [512, 1, 1],
            cluster: None,
            dynamic_smem: 0,
        }
    }

    /// Fills the L2 cache with clean lines of no use, and keeps the device busy for `gate_ns`.
    pub(crate) fn flush(&self, context: &Context, gate_ns: u64) -> Result<(), Fault> {
        let params = words(&[
            self.cache.all().address(),
            self.cache.len() as u64 / 16,
            gate_ns,
        ]);
        context.launch(&self.module.function("ww_flush")?, &self.shape(), &params)
    }

    /// Number of bytes in which two spans of the same size differ.
    pub(crate) fn diff(&self, context: &Context, a: Span<'_>, b: Span<'_>) -> Result<u64, Fault> {
        let initial: Vec<u8> = words(&[0, u64::MAX]).concat();
        context.wait(Duration::from_secs(60))?;
        self.result.all().upload(&initial)?;
        let result = self.result.all().address();
        let params = words(&[a.address(), b.address(), a.len() as u64, result]);
        context.launch(&self.module.function("ww_diff")?, &self.shape(), &params)?;
        context.wait(Duration::from_secs(60))?;
        let counts = self.result.all().download()?;
        let count = counts
            .first_chunk::<8>()
            .map_or(u64::MAX, |c| u64::from_le_bytes(*c));
        Ok(count)
    }
}

/// Kernel parameters that are all 64-bit.
fn words(values: &[u64]) -> Vec<Vec<u8>> {
    values.iter().map(|v| v.to_le_bytes().to_vec()).collect()
}
