//! What nvcc's host code calls before `main` and around `<<<>>>`.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};

use super::{calls, put};
use crate::abi::{Data, Dim3, Handle, MISSING_CONFIGURATION, NO_DEVICE, Text};
use crate::launch::extents;
use crate::modules::text;
use crate::state::{answer, is_captured, state};

/// The module behind a handle: handles count from 1.
fn number(handle: Handle) -> usize {
    (handle as usize).saturating_sub(1)
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinary(wrapper: Data) -> Handle {
    if is_captured() {
        return wrapper.cast_mut();
    }
    extern "C" fn end() {
        state().finish();
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: a function without arguments.
    ONCE.call_once(|| {
        let _ = unsafe { libc::atexit(end) };
    });
    (state().modules.add(wrapper as usize) + 1) as Handle
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_handle: Handle) {
    answer(|| state().place_managed());
}

#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(_handle: Handle) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(_handle: Handle) -> c_char {
    1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFunction(
    handle: Handle,
    host: Data,
    _device: Handle,
    name: Text,
    _threads: c_int,
    _tid: Handle,
    _bid: Handle,
    _block: Handle,
    _grid: Handle,
    _warp: Handle,
) {
    if is_captured() {
        return;
    }
    // SAFETY: nvcc's host code gives a name.
    let name = unsafe { text(name) };
    state()
        .modules
        .add_function(host as usize, number(handle), name);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterVar(
    handle: Handle,
    host: Data,
    _device: Handle,
    name: Text,
    _ext: c_int,
    size: usize,
    _constant: c_int,
    _global: c_int,
) {
    if is_captured() {
        return;
    }
    // SAFETY: as above.
    let name = unsafe { text(name) };
    let mut state = state();
    state
        .modules
        .add_variable(host as usize, number(handle), name, size as u64);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterManagedVar(
    handle: Handle,
    pointer: Handle,
    _device: Handle,
    name: Text,
    _ext: c_int,
    size: usize,
    _constant: c_int,
    _global: c_int,
) {
    if is_captured() {
        return;
    }
    // SAFETY: as above.
    let name = unsafe { text(name) };
    let mut state = state();
    state
        .modules
        .add_managed(pointer as usize, number(handle), name, size as u64);
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterHostVar(_handle: Handle, _name: Text, _host: Handle, _size: usize) {}

struct Configuration {
    grid: Dim3,
    block: Dim3,
    dynamic_smem: usize,
    stream: Handle,
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    dynamic_smem: usize,
    stream: Handle,
) -> u32 {
    if is_captured() {
        return NO_DEVICE as u32;
    }
    let configuration = Configuration {
        grid,
        block,
        dynamic_smem,
        stream,
    };
    CONFIGURATIONS.with_borrow_mut(|all| all.push(configuration));
    0
}

calls! {
    fn __cudaPopCallConfiguration(grid: *mut Dim3, block: *mut Dim3, dynamic_smem: *mut usize, stream: *mut Handle) {
        let last = CONFIGURATIONS.with_borrow_mut(Vec::pop).ok_or(MISSING_CONFIGURATION)?;
        // SAFETY: outputs of these types.
        unsafe {
            put(grid, last.grid)?;
            put(block, last.block)?;
            put(dynamic_smem, last.dynamic_smem)?;
            put(stream, last.stream)
        }
    }

    fn __cudaGetKernel(kernel: *mut Data, function: Data) {
        state().modules.function(function as usize)?;
        // SAFETY: an output of this type.
        unsafe { put(kernel, function) }
    }

    fn __cudaLaunchKernel | __cudaLaunchKernel_ptsz(kernel: Data, grid: Dim3, block: Dim3, args: *const Data, dynamic_smem: usize, stream: Handle) {
        let extents = extents(grid, block, dynamic_smem)?;
        // SAFETY: nvcc's host code gives a pointer for each parameter.
        unsafe { super::execution::launch(kernel, extents, args, stream, false) }
    }
}
