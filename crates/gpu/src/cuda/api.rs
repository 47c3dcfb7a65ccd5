//! The driver entry points that are used, resolved once at run time.
//!
//! The types come from `cudarc`'s bindings and so does the search for the library. Its functions
//! are not called: they panic when the driver lacks a symbol, and their result is an enum, which
//! must not hold a code that a newer driver returns. Here a missing symbol is an error that names
//! it, and a result is a number.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute, CUjit_option, CUlaunchConfig, CUmodule, CUstream,
};

use crate::fault::{Fault, FaultKind};

/// The oldest driver API that has every entry point below (`cuFuncGetParamInfo` came with CUDA
/// 12.4, driver 550; cuda.h of the 12.4 toolkit).
const OLDEST_API: c_int = 12_040;

macro_rules! api {
    ($($field:ident: $symbol:literal ($($arg:ty),*);)*) => {
        /// One field per driver function; each returns a `CUresult` as a number.
        pub(super) struct Api {
            $(pub(super) $field: unsafe extern "C" fn($($arg),*) -> c_uint,)*
        }

        impl Api {
            /// Resolves every entry point; the error is the first missing symbol.
            fn resolve() -> Result<Api, &'static str> {
                // SAFETY: the caller has seen that the library loads, so this cannot panic; the
                // library stays loaded for the life of the process.
                let library = unsafe { sys::culib() };
                Ok(Api {
                    // SAFETY: the signatures below are those of cuda.h, as bound by cudarc.
                    $($field: unsafe { *library.get($symbol).map_err(|_| name($symbol))? },)*
                })
            }
        }
    };
}

/// A symbol without its final NUL.
fn name(symbol: &'static [u8]) -> &'static str {
    std::str::from_utf8(symbol)
        .unwrap_or_default()
        .trim_end_matches('\0')
}

api! {
    init: b"cuInit\0" (c_uint);
    driver_version: b"cuDriverGetVersion\0" (*mut c_int);
    error_name: b"cuGetErrorName\0" (c_uint, *mut *const c_char);
    error_string: b"cuGetErrorString\0" (c_uint, *mut *const c_char);
    device_count: b"cuDeviceGetCount\0" (*mut c_int);
    device_get: b"cuDeviceGet\0" (*mut CUdevice, c_int);
    device_name: b"cuDeviceGetName\0" (*mut c_char, c_int, CUdevice);
    device_attribute: b"cuDeviceGetAttribute\0" (*mut c_int, CUdevice_attribute, CUdevice);
    device_memory: b"cuDeviceTotalMem_v2\0" (*mut usize, CUdevice);
    device_bus_id: b"cuDeviceGetPCIBusId\0" (*mut c_char, c_int, CUdevice);
    context_retain: b"cuDevicePrimaryCtxRetain\0" (*mut CUcontext, CUdevice);
    context_release: b"cuDevicePrimaryCtxRelease_v2\0" (CUdevice);
    context_set: b"cuCtxSetCurrent\0" (CUcontext);
    stream_create: b"cuStreamCreate\0" (*mut CUstream, c_uint);
    stream_destroy: b"cuStreamDestroy_v2\0" (CUstream);
    stream_query: b"cuStreamQuery\0" (CUstream);
    event_create: b"cuEventCreate\0" (*mut CUevent, c_uint);
    event_destroy: b"cuEventDestroy_v2\0" (CUevent);
    event_record: b"cuEventRecord\0" (CUevent, CUstream);
    event_elapsed: b"cuEventElapsedTime\0" (*mut f32, CUevent, CUevent);
    alloc: b"cuMemAlloc_v2\0" (*mut CUdeviceptr, usize);
    free: b"cuMemFree_v2\0" (CUdeviceptr);
    upload: b"cuMemcpyHtoD_v2\0" (CUdeviceptr, *const c_void, usize);
    download: b"cuMemcpyDtoH_v2\0" (*mut c_void, CUdeviceptr, usize);
    copy: b"cuMemcpyDtoDAsync_v2\0" (CUdeviceptr, CUdeviceptr, usize, CUstream);
    fill: b"cuMemsetD8Async\0" (CUdeviceptr, u8, usize, CUstream);
    module_load: b"cuModuleLoadDataEx\0"
        (*mut CUmodule, *const c_void, c_uint, *mut CUjit_option, *mut *mut c_void);
    module_unload: b"cuModuleUnload\0" (CUmodule);
    module_function: b"cuModuleGetFunction\0" (*mut CUfunction, CUmodule, *const c_char);
    module_function_count: b"cuModuleGetFunctionCount\0" (*mut c_uint, CUmodule);
    module_functions: b"cuModuleEnumerateFunctions\0" (*mut CUfunction, c_uint, CUmodule);
    module_global: b"cuModuleGetGlobal_v2\0"
        (*mut CUdeviceptr, *mut usize, CUmodule, *const c_char);
    function_name: b"cuFuncGetName\0" (*mut *const c_char, CUfunction);
    function_attribute: b"cuFuncGetAttribute\0" (*mut c_int, CUfunction_attribute, CUfunction);
    function_set: b"cuFuncSetAttribute\0" (CUfunction, CUfunction_attribute, c_int);
    function_param: b"cuFuncGetParamInfo\0" (CUfunction, usize, *mut usize, *mut usize);
    occupancy: b"cuOccupancyMaxActiveBlocksPerMultiprocessor\0"
        (*mut c_int, CUfunction, c_int, usize);
    launch: b"cuLaunchKernelEx\0"
        (*const CUlaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void);
}

/// The initialised driver, or what is missing. Looked for once per process.
pub(super) fn api() -> Result<&'static Api, Fault> {
    static API: OnceLock<Result<Api, Fault>> = OnceLock::new();
    API.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Api, Fault> {
    let missing = |detail: String| Fault::new(FaultKind::Missing, detail);
    // SAFETY: loading a library runs its initialisers; libcuda is made for being loaded this way.
    if !unsafe { sys::is_culib_present() } {
        return Err(missing(
            "no NVIDIA driver: libcuda.so.1 is not found. It comes with the driver (and, in a \
             container, from the NVIDIA container runtime), not with the CUDA toolkit"
                .into(),
        ));
    }
    let api = Api::resolve().map_err(|symbol| {
        missing(format!(
            "the NVIDIA driver is too old: libcuda lacks `{symbol}`; driver \
             550 (CUDA 12.4) or newer is needed"
        ))
    })?;
    // SAFETY: cuInit takes flags, which must be zero.
    let code = unsafe { (api.init)(0) };
    if code != 0 {
        return Err(missing(init_failure(&api, code)));
    }
    let mut version = 0;
    // SAFETY: the pointer is valid for one int.
    let code = unsafe { (api.driver_version)(&mut version) };
    if code == 0 && version < OLDEST_API {
        return Err(missing(format!(
            "the NVIDIA driver is too old: it provides CUDA {}, CUDA 12.4 (driver 550) or newer \
             is needed",
            version_text(version)
        )));
    }
    Ok(api)
}

/// `13000` -> `13.0` (cuDriverGetVersion: 1000 * major + 10 * minor).
pub(super) fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Why `cuInit` failed, with what usually mends it (codes: `CUresult` in cuda.h).
fn init_failure(api: &Api, code: c_uint) -> String {
    let hint = match code {
        34 => "the libcuda found is the toolkit's stub for linking; put the driver's before it",
        100 => "the driver sees no CUDA device (is CUDA_VISIBLE_DEVICES empty?)",
        803 => "libcuda and the kernel module have different versions; a reboot mends it",
        804 => "the CUDA compatibility package does not support this device",
        999 => "are the device files /dev/nvidia* there and accessible?",
        _ => "the driver cannot be used",
    };
    format!("cuInit failed with {}: {hint}", super::code_name(api, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_words() {
        assert_eq!(version_text(13000), "13.0");
        assert_eq!(version_text(12040), "12.4");
        assert_eq!(version_text(11080), "11.8");
    }

    /// Whatever this machine has, asking must not panic; without a driver it says what is missing.
    #[test]
    fn absence_is_an_error_not_a_panic() {
        if let Err(fault) = api() {
            assert_eq!(fault.kind, FaultKind::Missing);
            assert!(!fault.detail.is_empty());
        }
    }
}
