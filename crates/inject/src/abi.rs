//! Types of the driver's interface, as cuda.h 11 to 13 declare them.

use std::ffi::{c_char, c_void};

/// `CUresult`.
pub type Code = u32;
/// Pointers to things of the driver.
pub type Handle = *mut c_void;
/// `const char *`.
pub type Text = *const c_char;
/// Outputs of handles.
pub type Out = *mut Handle;

pub const SUCCESS: Code = 0;
pub const NOT_FOUND: Code = 500;
pub const NOT_READY: Code = 600;

/// A call's code as a result.
pub fn ok(code: Code) -> Result<(), Code> {
    if code == SUCCESS { Ok(()) } else { Err(code) }
}

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: what the null stream means in either flavour.
pub const STREAM_LEGACY: usize = 1;
pub const STREAM_PER_THREAD: usize = 2;

/// The null stream by its own name, so that it means the same in calls of the other flavour.
pub fn explicit(stream: Handle, per_thread: bool) -> Handle {
    match (stream.is_null(), per_thread) {
        (false, _) => stream,
        (true, false) => STREAM_LEGACY as Handle,
        (true, true) => STREAM_PER_THREAD as Handle,
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: Handle,
    pub attributes: *const LaunchAttribute,
    pub count: u32,
}

/// `CUlaunchAttribute`: a number and 64 bytes of value.
#[repr(C)]
pub struct LaunchAttribute {
    pub id: u32,
    pub padding: u32,
    pub value: [u64; 8],
}

pub const ATTRIBUTE_COOPERATIVE: u32 = 2;
pub const ATTRIBUTE_CLUSTER: u32 = 4;
pub const ATTRIBUTE_PREFERRED_CLUSTER: u32 = 11;
pub const ATTRIBUTE_DEVICE_UPDATABLE: u32 = 13;
/// Attributes that any code has in the same way: policies of caches and synchronisation, programmatic dependences,
/// priorities, memory domains, an event, the carve-out.
pub const ATTRIBUTES_OF_ALL: [u32; 11] = [0, 1, 3, 5, 6, 7, 8, 9, 10, 12, 14];

/// Three dimensions, as an attribute's value holds them.
pub fn dims(value: &[u64; 8]) -> [u32; 3] {
    [value[0] as u32, (value[0] >> 32) as u32, value[1] as u32]
}

impl LaunchConfig {
    /// The attributes.
    ///
    /// # Safety
    /// The pointer and the count are those that the program passed for the driver to read.
    pub unsafe fn attributes(&self) -> &[LaunchAttribute] {
        match self.attributes.is_null() || self.count == 0 {
            true => &[],
            false => unsafe { std::slice::from_raw_parts(self.attributes, self.count as usize) },
        }
    }
}

/// `CUDA_KERNEL_NODE_PARAMS_v1`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNodeV1 {
    pub function: Handle,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub params: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`; `_v3` begins like it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode {
    pub node: KernelNodeV1,
    pub kernel: Handle,
    pub context: Handle,
}

/// `CUgraphNodeParams`: 16 bytes of kind, then a union of 232 bytes and 8 reserved ones.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GraphNode {
    pub kind: u32,
    pub reserved: [u32; 3],
    pub kernel: KernelNode,
    pub rest: [u64; 21],
}

pub const NODE_KERNEL: u32 = 0;
pub const NODE_GRAPH: u32 = 4;

/// `CUfunction_attribute`.
pub const FUNCTION_REGISTERS: i32 = 4;
pub const FUNCTION_DYNAMIC_SHARED: i32 = 8;
/// The cluster that launches have which state none: width, height, depth.
pub const FUNCTION_CLUSTER: [i32; 3] = [11, 12, 13];
/// What a program may set on a function and what changes which launches are accepted, or how they run:
/// most dynamic shared memory, preferred carve-out, required cluster dimensions, clusters of a size that is not
/// portable, preference of cluster scheduling.
pub const SETTABLE: [i32; 7] = [FUNCTION_DYNAMIC_SHARED, 9, 11, 12, 13, 14, 15];

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
pub const CAPABILITY: [i32; 2] = [75, 76];
/// `CU_STREAM_CAPTURE_MODE_RELAXED`
pub const CAPTURE_RELAXED: u32 = 2;
