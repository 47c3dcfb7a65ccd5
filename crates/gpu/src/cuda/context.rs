//! A device's context: allocation, copies, launches, waiting, events.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUevent, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig, CUstream,
};

use super::api::{Api, api};
use super::{Function, Memory, Module, Span, check, lost, mark_lost};
use crate::fault::{Fault, FaultKind};
use crate::job::Shape;

/// `CUDA_ERROR_NOT_READY`: work is still running.
const NOT_READY: c_uint = 600;

/// A device's primary context with one stream.
pub(crate) struct Context {
    api: &'static Api,
    device: CUdevice,
    stream: CUstream,
}

impl Context {
    /// Retains the primary context of a device and makes it current on this thread.
    pub(crate) fn open(ordinal: u32) -> Result<Self, Fault> {
        let api = api()?;
        if lost() {
            let detail = "an earlier fault has cost this process its device context";
            return Err(Fault::new(FaultKind::Internal, detail));
        }
        let mut device = 0;
        let mut context: CUcontext = ptr::null_mut();
        let mut stream: CUstream = ptr::null_mut();
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        // SAFETY: all pointers are valid for one value; each call needs what the one before made.
        unsafe {
            check(api, "cuDeviceGet", (api.device_get)(&mut device, ordinal))?;
            check(
                api,
                "cuDevicePrimaryCtxRetain",
                (api.context_retain)(&mut context, device),
            )?;
            check(api, "cuCtxSetCurrent", (api.context_set)(context))?;
            // Flag 0: ordered with the default stream, on which uploads and downloads happen.
            check(api, "cuStreamCreate", (api.stream_create)(&mut stream, 0))?;
        }
        Ok(Context {
            api,
            device,
            stream,
        })
    }

    /// The device's marketing name.
    pub(crate) fn name(&self) -> Result<String, Fault> {
        let mut text = [0 as c_char; 256];
        // SAFETY: the buffer is as long as stated; the driver terminates the string.
        unsafe {
            let code = (self.api.device_name)(text.as_mut_ptr(), 255, self.device);
            check(self.api, "cuDeviceGetName", code)?;
            Ok(CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned())
        }
    }

    /// PCI bus id, as NVML wants it.
    pub(crate) fn bus_id(&self) -> Result<CString, Fault> {
        let mut text = [0 as c_char; 64];
        // SAFETY: the buffer is as long as stated; the driver terminates the string.
        unsafe {
            let code = (self.api.device_bus_id)(text.as_mut_ptr(), 63, self.device);
            check(self.api, "cuDeviceGetPCIBusId", code)?;
            Ok(CStr::from_ptr(text.as_ptr()).to_owned())
        }
    }

    /// A device attribute.
    pub(crate) fn attribute(&self, attribute: CUdevice_attribute) -> Result<u32, Fault> {
        let mut value = 0;
        // SAFETY: the pointer is valid for one int.
        let code = unsafe { (self.api.device_attribute)(&mut value, attribute, self.device) };
        check(self.api, "cuDeviceGetAttribute", code)?;
        Ok(value.try_into().unwrap_or(0))
    }

    /// Device memory in bytes.
    pub(crate) fn total_memory(&self) -> Result<u64, Fault> {
        let mut bytes = 0;
        // SAFETY: the pointer is valid for one size.
        let code = unsafe { (self.api.device_memory)(&mut bytes, self.device) };
        check(self.api, "cuDeviceTotalMem", code)?;
        Ok(bytes as u64)
    }

    /// Allocates device memory (at least one byte; uninitialised).
    pub(crate) fn alloc(&self, bytes: usize) -> Result<Memory, Fault> {
        let mut address = 0;
        // SAFETY: the pointer is valid for one address; the size is not zero.
        let code = unsafe { (self.api.alloc)(&mut address, bytes.max(1)) };
        check(self.api, "cuMemAlloc", code).map_err(|mut fault| {
            fault.detail = format!("{} for {bytes} bytes", fault.detail);
            fault
        })?;
        Ok(Memory::owned(self.api, address, bytes))
    }

    /// Copies on the device, in stream order.
    pub(crate) fn copy(&self, to: Span<'_>, from: Span<'_>) -> Result<(), Fault> {
        if to.len() != from.len() {
            let detail = format!("copy of {} bytes into {}", from.len(), to.len());
            return Err(Fault::new(FaultKind::Internal, detail));
        }
        if to.len() == 0 {
            return Ok(());
        }
        // SAFETY: a span lies inside a live allocation.
        let code = unsafe { (self.api.copy)(to.address(), from.address(), to.len(), self.stream) };
        check(self.api, "cuMemcpyDtoDAsync", code)
    }

    /// Fills with a byte, in stream order.
    pub(crate) fn fill(&self, span: Span<'_>, byte: u8) -> Result<(), Fault> {
        if span.len() == 0 {
            return Ok(());
        }
        // SAFETY: a span lies inside a live allocation.
        let code = unsafe { (self.api.fill)(span.address(), byte, span.len(), self.stream) };
        check(self.api, "cuMemsetD8Async", code)
    }

    /// Launches a function, in stream order. `params` are the parameters' bytes, one slice per
    /// parameter; they are checked against what the function declares.
    pub(crate) fn launch(
        &self,
        function: &Function<'_>,
        shape: &Shape,
        params: &[Vec<u8>],
    ) -> Result<(), Fault> {
        function.check_params(params)?;
        let mut pointers: Vec<*mut c_void> = params
            .iter()
            .map(|p| p.as_ptr().cast_mut().cast())
            .collect();
        let mut attributes = cluster_attribute(shape);
        let config = CUlaunchConfig {
            gridDimX: shape.grid[0],
            gridDimY: shape.grid[1],
            gridDimZ: shape.grid[2],
            blockDimX: shape.block[0],
            blockDimY: shape.block[1],
            blockDimZ: shape.block[2],
            sharedMemBytes: shape.dynamic_smem,
            hStream: self.stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as c_uint,
        };
        // SAFETY: `pointers` has one pointer per declared parameter, each to as many bytes as
        // declared (checked above); the driver copies them before it returns. What the kernel
        // does is confined to device memory.
        let code = unsafe {
            (self.api.launch)(
                &config,
                function.raw,
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check(self.api, "cuLaunchKernelEx", code)
    }

    /// Waits for everything in the stream, but no longer than `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> Result<(), Fault> {
        let start = Instant::now();
        loop {
            // SAFETY: the stream lives as long as the context.
            match unsafe { (self.api.stream_query)(self.stream) } {
                NOT_READY => {}
                code => return check(self.api, "kernel execution", code),
            }
            let waited = start.elapsed();
            if waited > limit {
                mark_lost();
                let detail = format!("no end after {:.1} s", limit.as_secs_f64());
                return Err(Fault::new(FaultKind::Timeout, detail));
            }
            // Short kernels are polled without a pause, so that the next one starts at once.
            if waited > Duration::from_millis(2) {
                std::thread::sleep(Duration::from_micros(100));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Creates a timing event.
    pub(crate) fn event(&self) -> Result<Event, Fault> {
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer is valid for one handle; flag 0 is an event with timing.
        check(self.api, "cuEventCreate", unsafe {
            (self.api.event_create)(&mut raw, 0)
        })?;
        Ok(Event { api: self.api, raw })
    }

    /// Records an event, in stream order.
    pub(crate) fn record(&self, event: &Event) -> Result<(), Fault> {
        // SAFETY: both handles are live.
        let code = unsafe { (self.api.event_record)(event.raw, self.stream) };
        check(self.api, "cuEventRecord", code)
    }

    /// Loads a module from a cubin, fat binary or PTX text. The error holds the JIT log.
    pub(crate) fn module(&self, image: &[u8]) -> Result<Module, Fault> {
        Module::load(self.api, image)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if lost() {
            return;
        }
        // SAFETY: both were created by `open` and are dropped once.
        unsafe {
            (self.api.stream_destroy)(self.stream);
            (self.api.context_release)(self.device);
        }
    }
}

/// The launch attribute for thread-block clusters, if the shape has any.
fn cluster_attribute(shape: &Shape) -> Vec<CUlaunchAttribute> {
    let Some([x, y, z]) = shape.cluster else {
        return Vec::new();
    };
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    value.clusterDim.x = x;
    value.clusterDim.y = y;
    value.clusterDim.z = z;
    let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    vec![CUlaunchAttribute {
        id,
        pad: [0; 4],
        value,
    }]
}

/// A timing event.
pub(crate) struct Event {
    api: &'static Api,
    raw: CUevent,
}

impl Event {
    /// Nanoseconds from `self` to `end`; both must have happened. Resolution about 0.5
    /// microseconds (CUDA driver API, event management).
    pub(crate) fn until(&self, end: &Event) -> Result<f64, Fault> {
        let mut milliseconds = 0f32;
        // SAFETY: both handles are live.
        let code = unsafe { (self.api.event_elapsed)(&mut milliseconds, self.raw, end.raw) };
        check(self.api, "cuEventElapsedTime", code)?;
        Ok(f64::from(milliseconds) * 1e6)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if !lost() {
            // SAFETY: created by `event`, destroyed once.
            unsafe { (self.api.event_destroy)(self.raw) };
        }
    }
}
