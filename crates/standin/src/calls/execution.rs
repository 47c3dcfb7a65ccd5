//! Launches, attributes of functions, occupancy.

use std::ffi::{c_int, c_uint};

use warpwright_emu::Extents;
use warpwright_target::{Gpu, occupancy};

use super::{calls, get, put};
use crate::abi::{
    ATTRIBUTE_CLUSTER, ATTRIBUTE_COOPERATIVE, Callback, Code, Data, Dim3, FunctionAttributes,
    Handle, HostFunction, INVALID_VALUE, LaunchConfig, NOT_SUPPORTED, Text,
};
use crate::graphs::{Work, on};
use crate::launch::{extents, resources};
use crate::modules::Needs;
use crate::state::{Answer, State, state};

/// # Safety
/// `args` points to a pointer for each of the kernel's parameters.
pub unsafe fn launch(
    function: Data,
    extents: Extents,
    args: *const Data,
    stream: Handle,
    cooperative: bool,
) -> Answer {
    // SAFETY: as the caller says.
    let mut call = unsafe { state().call(function, extents, args)? };
    call.cooperative = cooperative;
    on(stream as usize, Work::Kernel(Box::new(call)))
}

fn needs(state: &mut State, function: Data) -> Result<Needs, Code> {
    let known = state.modules.function(function as usize)?;
    let needs = state.needs(&known)?;
    Ok(needs.unwrap_or(Needs {
        registers: 1,
        static_smem: 0,
        local: 0,
        max_threads: None,
    }))
}

/// Offset and size of a kernel's parameters.
fn parameters(function: Data) -> Result<Vec<(u64, u64)>, Code> {
    let mut state = state();
    let known = state.modules.function(function as usize)?;
    state.parameters(&known)?.ok_or(NOT_SUPPORTED)
}

/// The most threads of a block that a kernel can have.
fn most_threads(gpu: &Gpu, needs: Needs) -> u32 {
    let warp = warpwright_target::WARP_SIZE;
    let stated = needs.max_threads.map(|most| most.iter().product());
    let most = stated
        .unwrap_or(gpu.arch.threads.per_block)
        .min(gpu.arch.threads.per_block);
    let fits = |threads: &u32| occupancy(gpu, &resources(needs, *threads, 0)).is_ok();
    let steps = (1..=most / warp).rev().map(|warps| warps * warp);
    steps.into_iter().find(fits).unwrap_or(most)
}

fn blocks(function: Data, threads: c_int, dynamic_smem: usize) -> Result<c_int, Code> {
    let mut state = state();
    let gpu = state.gpu()?;
    let needs = needs(&mut state, function)?;
    let threads = u32::try_from(threads)
        .ok()
        .filter(|&n| n > 0)
        .ok_or(INVALID_VALUE)?;
    let dynamic_smem = u32::try_from(dynamic_smem).map_err(|_| INVALID_VALUE)?;
    let held = occupancy(&gpu, &resources(needs, threads, dynamic_smem));
    Ok(held.map_or(0, |held| held.blocks as c_int))
}

calls! {
    fn cudaLaunchKernel | cudaLaunchKernel_ptsz(function: Data, grid: Dim3, block: Dim3, args: *const Data, dynamic_smem: usize, stream: Handle) {
        let extents = extents(grid, block, dynamic_smem)?;
        // SAFETY: the program gives a pointer for each parameter.
        unsafe { launch(function, extents, args, stream, false) }
    }

    fn cudaLaunchCooperativeKernel | cudaLaunchCooperativeKernel_ptsz(function: Data, grid: Dim3, block: Dim3, args: *const Data, dynamic_smem: usize, stream: Handle) {
        let extents = extents(grid, block, dynamic_smem)?;
        // SAFETY: as above.
        unsafe { launch(function, extents, args, stream, true) }
    }

    fn cudaLaunchKernelExC | cudaLaunchKernelExC_ptsz(config: *const LaunchConfig, function: Data, args: *const Data) {
        if config.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: a configuration with as many attributes as it says.
        let (config, attributes) = unsafe {
            let config = &*config;
            let count = if config.attributes.is_null() { 0 } else { config.count as usize };
            (config, (0..count).map(|at| &*config.attributes.add(at)))
        };
        let mut extents = extents(config.grid, config.block, config.dynamic_smem)?;
        let mut cooperative = false;
        for attribute in attributes {
            match attribute.id {
                ATTRIBUTE_COOPERATIVE => cooperative = attribute.value[0] != 0,
                ATTRIBUTE_CLUSTER => {
                    let [x, y, z, ..] = attribute.value;
                    extents.cluster = Some([x, y, z]);
                }
                _ => {}
            }
        }
        // SAFETY: as above.
        unsafe { launch(function, extents, args, config.stream, cooperative) }
    }

    fn cudaLaunchHostFunc | cudaLaunchHostFunc_ptsz(stream: Handle, function: Option<HostFunction>, data: Handle) {
        on(stream as usize, Work::Host(function.ok_or(INVALID_VALUE)?, data as usize))
    }

    fn cudaStreamAddCallback | cudaStreamAddCallback_ptsz(stream: Handle, function: Option<Callback>, data: Handle, _flags: c_uint) {
        on(stream as usize, Work::Callback(function.ok_or(INVALID_VALUE)?, stream as usize, data as usize))
    }

    fn cudaGetKernel(kernel: *mut Data, function: Data) {
        state().modules.function(function as usize)?;
        // SAFETY: an output of this type.
        unsafe { put(kernel, function) }
    }

    fn cudaGetFuncBySymbol(kernel: *mut Data, function: Data) {
        state().modules.function(function as usize)?;
        // SAFETY: an output of this type.
        unsafe { put(kernel, function) }
    }

    fn cudaFuncGetName(name: *mut Text, function: Data) {
        let known = state().modules.function(function as usize)?;
        let text = std::ffi::CString::new(&*known.name).map_err(|_| INVALID_VALUE)?;
        // SAFETY: an output of this type; the name is the program's to keep.
        unsafe { put(name, text.into_raw().cast_const()) }
    }

    fn cudaFuncGetParamCount(function: Data, count: *mut usize) {
        let places = parameters(function)?;
        // SAFETY: an output of this type.
        unsafe { put(count, places.len()) }
    }

    fn cudaFuncGetParamInfo(function: Data, index: usize, offset: *mut usize, size: *mut usize) {
        let (start, len) = *parameters(function)?.get(index).ok_or(INVALID_VALUE)?;
        // SAFETY: outputs of these types; the second may be null.
        unsafe {
            if !size.is_null() {
                put(size, len as usize)?;
            }
            put(offset, start as usize)
        }
    }

    fn cudaFuncGetAttributes(attributes: *mut FunctionAttributes, function: Data) {
        let mut state = state();
        let (gpu, needs) = (state.gpu()?, needs(&mut state, function)?);
        let (major, minor) = gpu.arch.compute_capability();
        let version = (10 * major + minor) as c_int;
        let most = state.dynamic_smem_limit(&gpu, function as usize, needs.static_smem);
        let value = FunctionAttributes {
            shared: needs.static_smem as usize,
            constant: 0,
            local: needs.local as usize,
            max_threads: most_threads(&gpu, needs) as c_int,
            registers: needs.registers as c_int,
            ptx_version: version,
            binary_version: version,
            cache_ca: 0,
            max_dynamic_shared: most as c_int,
            carveout: -1,
            cluster: [0; 4],
            cluster_policy: 0,
            non_portable_cluster: 0,
            reserved: [0; 16],
        };
        // SAFETY: an output of this type.
        unsafe { put(attributes, value) }
    }

    fn cudaFuncSetAttribute(function: Data, attribute: c_int, value: c_int) {
        const MOST_DYNAMIC_SMEM: c_int = 8;
        let mut state = state();
        let needs = needs(&mut state, function)?;
        if attribute == MOST_DYNAMIC_SMEM {
            let most = state.gpu()?.arch.shared.per_block_opt_in.saturating_sub(needs.static_smem);
            let value = u32::try_from(value).ok().filter(|&value| value <= most);
            state.dynamic_smem.insert(function as usize, value.ok_or(INVALID_VALUE)?);
        }
        Ok(())
    }

    fn cudaFuncSetCacheConfig(function: Data, _config: c_int) {
        state().modules.function(function as usize).map(drop)
    }

    fn cudaFuncSetSharedMemConfig(function: Data, _config: c_int) {
        state().modules.function(function as usize).map(drop)
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(count: *mut c_int, function: Data, threads: c_int, dynamic_smem: usize) {
        let blocks = blocks(function, threads, dynamic_smem)?;
        // SAFETY: an output of this type.
        unsafe { put(count, blocks) }
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count: *mut c_int, function: Data, threads: c_int, dynamic_smem: usize, _flags: c_uint) {
        let blocks = blocks(function, threads, dynamic_smem)?;
        // SAFETY: an output of this type.
        unsafe { put(count, blocks) }
    }

    fn cudaOccupancyAvailableDynamicSMemPerBlock(bytes: *mut usize, function: Data, blocks: c_int, _threads: c_int) {
        let mut state = state();
        let (gpu, needs) = (state.gpu()?, needs(&mut state, function)?);
        let blocks = u32::try_from(blocks).ok().filter(|&n| n > 0).ok_or(INVALID_VALUE)?;
        let most = warpwright_target::most_shared_memory(&gpu, blocks).unwrap_or(0);
        // SAFETY: an output of this type.
        unsafe { put(bytes, most.saturating_sub(needs.static_smem) as usize) }
    }

    fn cudaOccupancyMaxActiveClusters(count: *mut c_int, function: Data, config: *const LaunchConfig) {
        if config.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: a configuration.
        let config = unsafe { &*config };
        let threads: u32 = config.block.array().iter().product();
        let blocks = blocks(function, threads as c_int, config.dynamic_smem)?;
        let sms = state().gpu()?.typical_sms().unwrap_or(1);
        // SAFETY: an output of this type.
        unsafe { put(count, blocks * sms as c_int) }
    }
}

/// A node's launch.
///
/// # Safety
/// A description that the program filled.
pub unsafe fn node(params: *const crate::abi::KernelNode) -> Result<Work, Code> {
    // SAFETY: as the caller says.
    let node = unsafe { get(params)? };
    let extents = extents(node.grid, node.block, node.dynamic_smem as usize)?;
    if node.params.is_null() && !node.extra.is_null() {
        state().refuse("kernel nodes with `extra`");
        return Err(crate::abi::NOT_SUPPORTED);
    }
    // SAFETY: a pointer for each parameter.
    let call = unsafe { state().call(node.function, extents, node.params)? };
    Ok(Work::Kernel(Box::new(call)))
}
