//! Types of the runtime's interface, as cuda_runtime_api.h and driver_types.h of CUDA 13 declare them.

use std::ffi::{c_char, c_int, c_void};

/// `cudaError_t`.
pub type Code = c_int;
/// Pointers to things of the runtime: streams, events, graphs, arrays.
pub type Handle = *mut c_void;
/// Memory that is read.
pub type Data = *const c_void;
/// `const char *`.
pub type Text = *const c_char;

pub const SUCCESS: Code = 0;
pub const INVALID_VALUE: Code = 1;
pub const MEMORY_ALLOCATION: Code = 2;
pub const INVALID_CONFIGURATION: Code = 9;
pub const INVALID_SYMBOL: Code = 13;
pub const MISSING_CONFIGURATION: Code = 52;
pub const INVALID_DEVICE_FUNCTION: Code = 98;
pub const NO_DEVICE: Code = 100;
pub const INVALID_DEVICE: Code = 101;
pub const INVALID_RESOURCE_HANDLE: Code = 400;
pub const ILLEGAL_ADDRESS: Code = 700;
pub const LAUNCH_OUT_OF_RESOURCES: Code = 701;
pub const ASSERT: Code = 710;
pub const MISALIGNED_ADDRESS: Code = 716;
pub const LAUNCH_FAILURE: Code = 719;
pub const COOPERATIVE_LAUNCH_TOO_LARGE: Code = 720;
pub const NOT_SUPPORTED: Code = 801;
pub const CAPTURE_UNMATCHED: Code = 903;
pub const UNKNOWN: Code = 999;

/// The names and texts of the codes above, for `cudaGetErrorName` and `cudaGetErrorString`.
pub const TEXTS: &[(Code, &std::ffi::CStr, &std::ffi::CStr)] = &[
    (SUCCESS, c"cudaSuccess", c"no error"),
    (INVALID_VALUE, c"cudaErrorInvalidValue", c"invalid argument"),
    (
        MEMORY_ALLOCATION,
        c"cudaErrorMemoryAllocation",
        c"out of memory",
    ),
    (
        INVALID_CONFIGURATION,
        c"cudaErrorInvalidConfiguration",
        c"invalid configuration argument",
    ),
    (
        INVALID_SYMBOL,
        c"cudaErrorInvalidSymbol",
        c"invalid device symbol",
    ),
    (
        MISSING_CONFIGURATION,
        c"cudaErrorMissingConfiguration",
        c"__global__ function call is not configured",
    ),
    (
        INVALID_DEVICE_FUNCTION,
        c"cudaErrorInvalidDeviceFunction",
        c"invalid device function",
    ),
    (
        NO_DEVICE,
        c"cudaErrorNoDevice",
        c"no CUDA-capable device is detected",
    ),
    (
        INVALID_DEVICE,
        c"cudaErrorInvalidDevice",
        c"invalid device ordinal",
    ),
    (
        INVALID_RESOURCE_HANDLE,
        c"cudaErrorInvalidResourceHandle",
        c"invalid resource handle",
    ),
    (
        ILLEGAL_ADDRESS,
        c"cudaErrorIllegalAddress",
        c"an illegal memory access was encountered",
    ),
    (
        LAUNCH_OUT_OF_RESOURCES,
        c"cudaErrorLaunchOutOfResources",
        c"too many resources requested for launch",
    ),
    (ASSERT, c"cudaErrorAssert", c"device-side assert triggered"),
    (
        MISALIGNED_ADDRESS,
        c"cudaErrorMisalignedAddress",
        c"misaligned address",
    ),
    (
        LAUNCH_FAILURE,
        c"cudaErrorLaunchFailure",
        c"unspecified launch failure",
    ),
    (
        COOPERATIVE_LAUNCH_TOO_LARGE,
        c"cudaErrorCooperativeLaunchTooLarge",
        c"too many blocks in cooperative launch",
    ),
    (
        NOT_SUPPORTED,
        c"cudaErrorNotSupported",
        c"operation not supported",
    ),
    (
        CAPTURE_UNMATCHED,
        c"cudaErrorStreamCaptureUnmatched",
        c"the capture was not initiated in this stream",
    ),
    (UNKNOWN, c"cudaErrorUnknown", c"unknown error"),
];

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

impl Dim3 {
    pub fn array(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

/// What a program hands to `__cudaRegisterFatBinary`.
#[repr(C)]
pub struct Wrapper {
    pub magic: u32,
    /// 1: an image; 2: device-linked code.
    pub version: u32,
    pub data: *const u8,
    pub more: *const c_void,
}

pub const WRAPPER: u32 = 0x4662_43b1;

/// `cudaLaunchConfig_t`.
#[repr(C)]
pub struct LaunchConfig {
    pub grid: Dim3,
    pub block: Dim3,
    pub dynamic_smem: usize,
    pub stream: Handle,
    pub attributes: *const LaunchAttribute,
    pub count: u32,
}

/// `cudaLaunchAttribute`: a number and 64 bytes of value.
#[repr(C)]
pub struct LaunchAttribute {
    pub id: u32,
    pub padding: u32,
    pub value: [u32; 16],
}

pub const ATTRIBUTE_COOPERATIVE: u32 = 2;
pub const ATTRIBUTE_CLUSTER: u32 = 4;

/// `cudaKernelNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode {
    pub function: Data,
    pub grid: Dim3,
    pub block: Dim3,
    pub dynamic_smem: u32,
    pub params: *const Data,
    pub extra: *const Data,
}

/// `cudaMemsetParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FillNode {
    pub dst: Handle,
    pub pitch: usize,
    pub value: u32,
    pub element: u32,
    pub width: usize,
    pub height: usize,
}

/// `cudaHostNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostNode {
    pub function: Option<HostFunction>,
    pub data: Handle,
}

/// `cudaHostFn_t`.
pub type HostFunction = unsafe extern "C" fn(Handle);
/// `cudaStreamCallback_t`.
pub type Callback = unsafe extern "C" fn(Handle, Code, Handle);

/// `cudaPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pitched {
    pub pointer: Handle,
    pub pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// `cudaExtent` and `cudaPos`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Extent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Copy3D {
    pub src_array: Handle,
    pub src_at: Extent,
    pub src: Pitched,
    pub dst_array: Handle,
    pub dst_at: Extent,
    pub dst: Pitched,
    pub extent: Extent,
    pub kind: c_int,
}

/// `cudaChannelFormatDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Channel {
    pub bits: [c_int; 4],
    pub kind: c_int,
}

/// `cudaMemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Location {
    pub kind: c_int,
    pub id: c_int,
}

/// `cudaFuncAttributes`.
#[repr(C)]
pub struct FunctionAttributes {
    pub shared: usize,
    pub constant: usize,
    pub local: usize,
    pub max_threads: c_int,
    pub registers: c_int,
    pub ptx_version: c_int,
    pub binary_version: c_int,
    pub cache_ca: c_int,
    pub max_dynamic_shared: c_int,
    pub carveout: c_int,
    pub cluster: [c_int; 4],
    pub cluster_policy: c_int,
    pub non_portable_cluster: c_int,
    pub reserved: [c_int; 16],
}

/// `cudaPointerAttributes`.
#[repr(C)]
pub struct PointerAttributes {
    /// 0 unregistered, 1 host, 2 device, 3 managed.
    pub kind: c_int,
    pub device: c_int,
    pub device_pointer: Handle,
    pub host_pointer: Handle,
    pub reserved: [i64; 8],
}

/// `cudaDeviceProp`.
#[repr(C)]
pub struct DeviceProperties {
    pub name: [c_char; 256],
    pub uuid: [u8; 16],
    pub luid: [u8; 8],
    pub luid_mask: u32,
    pub total_memory: usize,
    pub shared_per_block: usize,
    pub registers_per_block: c_int,
    pub warp: c_int,
    pub most_pitch: usize,
    pub threads_per_block: c_int,
    pub block: [c_int; 3],
    pub grid: [c_int; 3],
    pub constant: usize,
    pub major: c_int,
    pub minor: c_int,
    pub texture_alignment: usize,
    pub texture_pitch_alignment: usize,
    pub sms: c_int,
    pub integrated: c_int,
    pub maps_host_memory: c_int,
    pub textures: [c_int; 38],
    pub surface_alignment: usize,
    pub concurrent_kernels: c_int,
    pub ecc: c_int,
    pub pci: [c_int; 3],
    pub tcc: c_int,
    pub copy_engines: c_int,
    pub unified_addressing: c_int,
    pub bus_width: c_int,
    pub l2: c_int,
    pub persisting_l2: c_int,
    pub threads_per_sm: c_int,
    pub stream_priorities: c_int,
    pub global_l1: c_int,
    pub local_l1: c_int,
    pub shared_per_sm: usize,
    pub registers_per_sm: c_int,
    pub managed: c_int,
    pub multi_gpu: [c_int; 2],
    pub host_atomics: c_int,
    pub pageable: c_int,
    pub concurrent_managed: c_int,
    pub preemption: c_int,
    pub registered_pointer: c_int,
    pub cooperative: c_int,
    pub shared_opt_in: usize,
    pub pageable_tables: c_int,
    pub direct_managed: c_int,
    pub blocks_per_sm: c_int,
    pub policy_window: c_int,
    pub shared_reserved: usize,
    pub host_register: c_int,
    pub sparse: c_int,
    pub host_register_read_only: c_int,
    pub timeline: c_int,
    pub pools: c_int,
    pub rdma: [c_int; 3],
    pub pool_handles: u32,
    pub deferred: c_int,
    pub ipc: c_int,
    pub clusters: c_int,
    pub function_pointers: c_int,
    pub rest: [c_int; 63],
}

// As a C++ compiler lays them out from CUDA 13's headers.
const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<DeviceProperties>() == 1008);
    assert!(offset_of!(DeviceProperties, total_memory) == 288);
    assert!(offset_of!(DeviceProperties, textures) == 396);
    assert!(offset_of!(DeviceProperties, surface_alignment) == 552);
    assert!(offset_of!(DeviceProperties, bus_width) == 592);
    assert!(offset_of!(DeviceProperties, shared_per_sm) == 624);
    assert!(offset_of!(DeviceProperties, shared_opt_in) == 672);
    assert!(offset_of!(DeviceProperties, shared_reserved) == 696);
    assert!(offset_of!(DeviceProperties, host_register) == 704);
    assert!(offset_of!(DeviceProperties, pools) == 720);
    assert!(offset_of!(DeviceProperties, clusters) == 748);
    assert!(size_of::<FunctionAttributes>() == 144);
    assert!(size_of::<PointerAttributes>() == 88);
    assert!(size_of::<LaunchConfig>() == 56);
    assert!(size_of::<Channel>() == 20);
    assert!(size_of::<Copy3D>() == 160);
    assert!(size_of::<KernelNode>() == 56);
};
