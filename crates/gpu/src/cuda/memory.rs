//! Device memory and parts of it.

use cudarc::driver::sys::CUdeviceptr;

use super::api::Api;
use super::{check, lost};
use crate::fault::{Fault, FaultKind};

/// Device memory; freed when dropped, unless it belongs to a module.
pub(crate) struct Memory {
    api: &'static Api,
    address: CUdeviceptr,
    bytes: usize,
    owned: bool,
}

impl Memory {
    /// Memory that is to be freed.
    pub(super) fn owned(api: &'static Api, address: CUdeviceptr, bytes: usize) -> Self {
        Memory {
            api,
            address,
            bytes,
            owned: true,
        }
    }

    /// Memory that belongs to a module.
    pub(super) fn borrowed(api: &'static Api, address: CUdeviceptr, bytes: usize) -> Self {
        Memory {
            api,
            address,
            bytes,
            owned: false,
        }
    }

    /// A part of it; an error if it does not lie inside.
    pub(crate) fn span(&self, offset: usize, bytes: usize) -> Result<Span<'_>, Fault> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(Span {
                memory: self,
                offset,
                bytes,
            }),
            _ => {
                let detail = format!("bytes {offset}+{bytes} of an allocation of {}", self.bytes);
                Err(Fault::new(FaultKind::Internal, detail))
            }
        }
    }

    /// All of it.
    pub(crate) fn all(&self) -> Span<'_> {
        Span {
            memory: self,
            offset: 0,
            bytes: self.bytes,
        }
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.owned && !lost() {
            // SAFETY: allocated by `alloc`, freed once.
            unsafe { (self.api.free)(self.address) };
        }
    }
}

/// A part of an allocation.
#[derive(Clone, Copy)]
pub(crate) struct Span<'a> {
    memory: &'a Memory,
    offset: usize,
    bytes: usize,
}

impl Span<'_> {
    /// The device address, for kernel parameters.
    pub(crate) fn address(&self) -> CUdeviceptr {
        self.memory.address + self.offset as CUdeviceptr
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Copies from the host and waits. Not ordered with the stream.
    pub(crate) fn upload(&self, data: &[u8]) -> Result<(), Fault> {
        let bytes = self.bytes.min(data.len());
        if bytes == 0 {
            return Ok(());
        }
        let api = self.memory.api;
        // SAFETY: `data` holds `bytes` bytes and the span lies inside a live allocation.
        let code = unsafe { (api.upload)(self.address(), data.as_ptr().cast(), bytes) };
        check(api, "cuMemcpyHtoD", code)
    }

    /// Copies to the host and waits. Not ordered with the stream.
    pub(crate) fn download(&self) -> Result<Vec<u8>, Fault> {
        let mut data = vec![0u8; self.bytes];
        if self.bytes == 0 {
            return Ok(data);
        }
        let api = self.memory.api;
        // SAFETY: `data` has room for the span, which lies inside a live allocation.
        let code = unsafe { (api.download)(data.as_mut_ptr().cast(), self.address(), self.bytes) };
        check(api, "cuMemcpyDtoH", code)?;
        Ok(data)
    }
}
