//! A thin, safe layer over the CUDA driver API: context, memory, modules, events, launches.
//!
//! Everything unsafe about the driver is in this folder. A context belongs to the thread that
//! opened it (none of the types here is `Send`); all work goes to one stream. Results are checked
//! at every call and become [`Fault`]s. Device code can do anything to *device* memory; it cannot
//! reach host memory, because no managed or mapped memory is ever allocated.

#![allow(unsafe_code)]

mod api;
mod context;
mod memory;
mod module;

use std::ffi::{CStr, c_char, c_uint};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::fault::{Fault, FaultKind};
use api::{Api, api};

pub(crate) use context::{Context, Event};
pub(crate) use cudarc::driver::sys::CUdevice_attribute as DeviceAttribute;
pub(crate) use cudarc::driver::sys::CUfunction_attribute as FunctionAttribute;
pub(crate) use memory::{Memory, Span};
pub(crate) use module::{Function, Module};

/// Set once a fault has made this process's context unusable. From then on nothing is released:
/// a driver call could wait for ever for a kernel that does not end.
static LOST: AtomicBool = AtomicBool::new(false);

fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

fn mark_lost() {
    LOST.store(true, Ordering::Relaxed);
}

/// Number of devices the driver sees.
pub(crate) fn device_count() -> Result<u32, Fault> {
    let api = api()?;
    let mut count = 0;
    // SAFETY: the pointer is valid for one int.
    check(api, "cuDeviceGetCount", unsafe {
        (api.device_count)(&mut count)
    })?;
    Ok(count.try_into().unwrap_or(0))
}

/// CUDA version that the driver provides, as `13.0`.
pub(crate) fn driver_api_version() -> Result<String, Fault> {
    let api = api()?;
    let mut version = 0;
    // SAFETY: the pointer is valid for one int.
    check(api, "cuDriverGetVersion", unsafe {
        (api.driver_version)(&mut version)
    })?;
    Ok(api::version_text(version))
}

/// Turns a result code into a [`Fault`] of the matching kind.
fn check(api: &Api, call: &str, code: c_uint) -> Result<(), Fault> {
    if code == 0 {
        return Ok(());
    }
    let kind = kind_of(call, code);
    if kind.is_sticky() {
        mark_lost();
    }
    Err(Fault::new(
        kind,
        format!("{call}: {}", code_name(api, code)),
    ))
}

/// Codes of `CUresult` in cuda.h.
fn kind_of(call: &str, code: c_uint) -> FaultKind {
    match code {
        2 => FaultKind::OutOfMemory,
        34 | 36 | 46 | 100 | 101 | 221 | 223 | 802..=805 => FaultKind::Missing,
        200 | 209 | 218 | 222 | 300..=303 | 500 => FaultKind::Rejected,
        700 | 717 => FaultKind::IllegalAddress,
        701 => FaultKind::OutOfResources,
        702 => FaultKind::Timeout,
        710 | 714 | 718 | 719 | 721 => FaultKind::LaunchFailed,
        715 => FaultKind::IllegalInstruction,
        716 => FaultKind::MisalignedAddress,
        720 | 912 => FaultKind::BadLaunch,
        1 if call == "cuLaunchKernelEx" => FaultKind::BadLaunch,
        _ => FaultKind::Internal,
    }
}

/// `CUDA_ERROR_ILLEGAL_ADDRESS (700, an illegal memory access was encountered)`.
fn code_name(api: &Api, code: c_uint) -> String {
    let text = |f: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint| {
        let mut text = ptr::null();
        // SAFETY: on success the driver stores a pointer to a static NUL-terminated string.
        unsafe {
            (f(code, &mut text) == 0 && !text.is_null())
                .then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    };
    match (text(api.error_name), text(api.error_string)) {
        (Some(name), Some(words)) => format!("{name} ({code}, {words})"),
        _ => format!("error {code}"),
    }
}
