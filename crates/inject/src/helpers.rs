//! Our own kernels on the device: the comparison of two pieces of memory, and what stands before a launch that is timed.

use std::ffi::c_void;

use crate::abi::{Code, Handle, ok};
use crate::driver;

/// The driver compiles them.
const HELPERS: &str = concat!(include_str!("helpers.ptx"), "\0");
/// How long the device is kept busy while a launch is queued, in nanoseconds.
const GATE_NS: u64 = 30_000;
/// Threads of a block.
const THREADS: u32 = 512;
/// Blocks that read or compare.
const BLOCKS: u32 = 256;

/// The kernels, in a context.
#[derive(Clone, Copy)]
pub struct Helpers {
    module: Handle,
    diff: Handle,
    flush: Handle,
}

// SAFETY: the driver's handles may be used on every thread.
unsafe impl Send for Helpers {}

impl Helpers {
    /// Into the current context.
    ///
    /// # Errors
    /// The driver's.
    pub fn load() -> Result<Helpers, Code> {
        let null = std::ptr::null_mut();
        let mut own = Helpers {
            module: null,
            diff: null,
            flush: null,
        };
        // SAFETY: texts that end in a zero; outputs of the right types.
        unsafe {
            ok(driver::module_load(
                &raw mut own.module,
                HELPERS.as_ptr().cast(),
            ))?;
            let both = [
                (&raw mut own.diff, c"ww_diff"),
                (&raw mut own.flush, c"ww_flush"),
            ];
            for (function, name) in both {
                ok(driver::module_function(function, own.module, name.as_ptr()))?;
            }
        }
        Ok(own)
    }

    /// Out of the context; nothing of them runs any more.
    pub fn unload(self) {
        // SAFETY: a module of ours.
        unsafe { driver::module_unload(self.module) };
    }

    /// Keeps the device busy while the next calls are queued, so that no time between them is the host's. With memory (its
    /// address, and how many pieces of 16 zero bytes) that is read as well, and fills the cache.
    ///
    /// # Errors
    /// The driver's.
    pub fn hold(&self, stream: Handle, memory: Option<(u64, u64)>) -> Result<(), Code> {
        let (mut base, mut chunks) = memory.unwrap_or((0, 0));
        let mut gate = GATE_NS;
        let blocks = if memory.is_some() { 4 * BLOCKS } else { 1 };
        let params = [
            (&raw mut base).cast(),
            (&raw mut chunks).cast(),
            (&raw mut gate).cast(),
        ];
        // SAFETY: the kernel takes these three; the memory has so many pieces.
        unsafe { launch(self.flush, blocks, stream, params) }
    }

    /// Compares as many bytes at two addresses; `result` gets the number of those that differ, and the first.
    ///
    /// # Errors
    /// The driver's.
    pub fn diff(&self, stream: Handle, of: [u64; 3], result: u64) -> Result<(), Code> {
        let ([mut a, mut b, mut bytes], mut result) = (of, result);
        let params = [
            (&raw mut a).cast(),
            (&raw mut b).cast(),
            (&raw mut bytes).cast(),
            (&raw mut result).cast(),
        ];
        // SAFETY: the kernel takes these four.
        unsafe { launch(self.diff, BLOCKS, stream, params) }
    }
}

/// # Safety
/// The kernel takes these parameters.
unsafe fn launch<const N: usize>(
    function: Handle,
    blocks: u32,
    stream: Handle,
    mut params: [*mut c_void; N],
) -> Result<(), Code> {
    let null = std::ptr::null_mut();
    // SAFETY: the caller's.
    ok(unsafe {
        driver::launch_kernel(
            function,
            blocks,
            1,
            1,
            THREADS,
            1,
            1,
            0,
            stream,
            params.as_mut_ptr(),
            null,
        )
    })
}
