//! The device: number, properties, limits, errors.

use std::ffi::{CStr, c_char, c_int, c_uint};

use super::{calls, put};
use crate::abi::{
    Code, Data, DeviceProperties, Handle, INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, TEXTS, Text,
};
use crate::properties::{attribute, properties};
use crate::record::DRIVER;
use crate::state::{Answer, last_error, state};

/// The one pool: allocations of all of them are alike.
const POOL: usize = 16;

/// There is one device.
fn known(device: c_int) -> Answer {
    state().gpu()?;
    if device == 0 {
        Ok(())
    } else {
        Err(INVALID_DEVICE)
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> Code {
    last_error(true)
}

#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> Code {
    last_error(false)
}

fn texts(code: Code) -> (&'static CStr, &'static CStr) {
    let known = TEXTS.iter().find(|(own, ..)| *own == code);
    let unknown = (c"unrecognized error code", c"unrecognized error code");
    known.map_or(unknown, |(_, name, text)| (name, text))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(code: Code) -> Text {
    texts(code).0.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(code: Code) -> Text {
    texts(code).1.as_ptr()
}

calls! {
    fn cudaGetDeviceCount(count: *mut c_int) {
        let number = c_int::from(state().gpu.is_some());
        // SAFETY: an output of this type.
        unsafe { put(count, number)? };
        if number == 0 { Err(NO_DEVICE) } else { Ok(()) }
    }

    fn cudaGetDevice(device: *mut c_int) {
        state().gpu()?;
        // SAFETY: an output of this type.
        unsafe { put(device, 0) }
    }

    fn cudaSetDevice(device: c_int) { known(device) }

    fn cudaInitDevice(device: c_int, _flags: c_uint, _more: c_uint) { known(device) }

    fn cudaSetValidDevices(_devices: *const c_int, _count: c_int) { known(0) }

    fn cudaChooseDevice(device: *mut c_int, _wanted: *const DeviceProperties) {
        known(0)?;
        // SAFETY: an output of this type.
        unsafe { put(device, 0) }
    }

    fn cudaSetDeviceFlags(_flags: c_uint) { Ok(()) }

    fn cudaGetDeviceFlags(flags: *mut c_uint) {
        // SAFETY: an output of this type.
        unsafe { put(flags, 0) }
    }

    fn cudaGetDeviceProperties(to: *mut DeviceProperties, device: c_int) {
        known(device)?;
        let state = state();
        let value = properties(&state.gpu()?, state.arena.limit);
        // SAFETY: an output of this type.
        unsafe { put(to, value) }
    }

    fn cudaDeviceGetAttribute(value: *mut c_int, number: c_int, device: c_int) {
        known(device)?;
        let found = attribute(&state().gpu()?, number);
        // SAFETY: an output of this type.
        unsafe { put(value, found) }
    }

    fn cudaDeviceSynchronize() { state().meet() }

    fn cudaThreadSynchronize() { state().meet() }

    fn cudaDeviceReset() {
        let mut state = state();
        state.finish();
        Ok(())
    }

    fn cudaThreadExit() { Ok(()) }

    fn cudaDeviceSetLimit(_limit: c_int, _value: usize) { Ok(()) }

    fn cudaDeviceGetLimit(value: *mut usize, _limit: c_int) {
        // SAFETY: an output of this type.
        unsafe { put(value, 0) }
    }

    fn cudaDeviceSetCacheConfig(_config: c_int) { Ok(()) }

    fn cudaThreadSetCacheConfig(_config: c_int) { Ok(()) }

    fn cudaDeviceGetCacheConfig(config: *mut c_int) {
        // SAFETY: an output of this type.
        unsafe { put(config, 0) }
    }

    fn cudaDeviceSetSharedMemConfig(_config: c_int) { Ok(()) }

    fn cudaDeviceGetSharedMemConfig(config: *mut c_int) {
        // SAFETY: an output of this type.
        unsafe { put(config, 1) }
    }

    fn cudaDeviceGetPCIBusId(to: *mut c_char, len: c_int, device: c_int) {
        const ID: &CStr = c"0000:00:00.0";
        known(device)?;
        let bytes = ID.to_bytes_with_nul();
        if to.is_null() || (len as usize) < bytes.len() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: a buffer of at least so many bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), to, bytes.len()) };
        Ok(())
    }

    fn cudaDeviceGetByPCIBusId(device: *mut c_int, _id: Text) {
        // SAFETY: an output of this type.
        unsafe { put(device, 0) }
    }

    fn cudaDeviceCanAccessPeer(can: *mut c_int, _device: c_int, _peer: c_int) {
        // SAFETY: an output of this type.
        unsafe { put(can, 0) }
    }

    fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        // SAFETY: outputs of this type, or null.
        unsafe {
            let _ = put(least, 0);
            let _ = put(greatest, 0);
        }
        Ok(())
    }

    fn cudaDriverGetVersion(version: *mut c_int) {
        // SAFETY: an output of this type.
        unsafe { put(version, DRIVER as c_int) }
    }

    fn cudaRuntimeGetVersion(version: *mut c_int) {
        // SAFETY: an output of this type.
        unsafe { put(version, DRIVER as c_int) }
    }

    fn cudaProfilerStart() { Ok(()) }

    fn cudaProfilerStop() { Ok(()) }

    fn cudaDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int) {
        known(device)?;
        // SAFETY: an output of this type.
        unsafe { put(pool, POOL as Handle) }
    }

    fn cudaDeviceGetMemPool(pool: *mut Handle, device: c_int) {
        known(device)?;
        // SAFETY: an output of this type.
        unsafe { put(pool, POOL as Handle) }
    }

    fn cudaDeviceSetMemPool(device: c_int, _pool: Handle) { known(device) }

    fn cudaMemPoolCreate(pool: *mut Handle, _properties: Data) {
        // SAFETY: an output of this type.
        unsafe { put(pool, POOL as Handle) }
    }

    fn cudaMemPoolDestroy(_pool: Handle) { Ok(()) }

    fn cudaMemPoolSetAttribute(_pool: Handle, _attribute: c_int, _value: Data) { Ok(()) }

    fn cudaMemPoolTrimTo(_pool: Handle, _keep: usize) { Ok(()) }

    fn cudaCtxResetPersistingL2Cache() { Ok(()) }
}
