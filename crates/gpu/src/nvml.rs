//! Clocks, temperature and the driver's version, read through NVML if it is there.
//!
//! Read only: nothing here sets a clock, a limit or a mode. Without NVML the readings are absent,
//! and nothing else changes. Signatures and constants: nvml.h.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

use libloading::Library;
use serde::{Deserialize, Serialize};

/// One reading of a device's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// SM clock, MHz.
    pub sm_mhz: u32,
    /// Memory clock, MHz.
    pub memory_mhz: u32,
    /// Temperature of the chip, degrees Celsius.
    pub celsius: Option<u32>,
    /// Power draw, milliwatts.
    pub milliwatts: Option<u32>,
    /// Why clocks are lower than they could be (`nvmlClocksThrottleReason*` bits; 1 = idle).
    pub throttle: Option<u64>,
}

type Device = *mut c_void;

/// A loaded and initialised NVML with the device of interest.
pub(crate) struct Nvml {
    library: Library,
    device: Device,
}

/// `NVML_CLOCK_SM` and `NVML_CLOCK_MEM` of `nvmlClockType_t`.
const CLOCK_SM: c_int = 1;
const CLOCK_MEMORY: c_int = 2;
/// `NVML_TEMPERATURE_GPU` of `nvmlTemperatureSensors_t`.
const SENSOR_GPU: c_int = 0;

impl Nvml {
    /// Loads NVML and finds the device with a PCI bus id; `None` if either is not to be had.
    pub(crate) fn open(bus_id: &CStr) -> Option<Self> {
        let name = if cfg!(windows) {
            "nvml.dll"
        } else {
            "libnvidia-ml.so.1"
        };
        // SAFETY: loading a library runs its initialisers; NVML is made for being loaded this way.
        let library = unsafe { Library::new(name) }.ok()?;
        let mut nvml = Nvml {
            library,
            device: ptr::null_mut(),
        };
        // SAFETY: the signatures are those of nvml.h; the bus id is NUL-terminated and the
        // pointer is valid for one handle.
        unsafe {
            let init = nvml.symbol::<unsafe extern "C" fn() -> c_int>(c"nvmlInit_v2")?;
            if init() != 0 {
                return None;
            }
            let find = nvml.symbol::<unsafe extern "C" fn(*const c_char, *mut Device) -> c_int>(
                c"nvmlDeviceGetHandleByPciBusId_v2",
            )?;
            let mut device = ptr::null_mut();
            (find(bus_id.as_ptr(), &mut device) == 0).then(|| {
                nvml.device = device;
                nvml
            })
        }
    }

    /// Version of the installed driver, as `580.95.05`.
    pub(crate) fn driver_version(&self) -> Option<String> {
        let mut text = [0 as c_char; 96];
        // SAFETY: the buffer is as long as stated; NVML terminates the string.
        unsafe {
            let get = self.symbol::<unsafe extern "C" fn(*mut c_char, c_uint) -> c_int>(
                c"nvmlSystemGetDriverVersion",
            )?;
            (get(text.as_mut_ptr(), 95) == 0)
                .then(|| CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned())
        }
    }

    /// Current clocks and what explains them.
    pub(crate) fn clocks(&self) -> Option<Clocks> {
        Some(Clocks {
            sm_mhz: self.number(c"nvmlDeviceGetClockInfo", CLOCK_SM)?,
            memory_mhz: self.number(c"nvmlDeviceGetClockInfo", CLOCK_MEMORY)?,
            celsius: self.number(c"nvmlDeviceGetTemperature", SENSOR_GPU),
            milliwatts: self.power(),
            throttle: self.throttle(),
        })
    }

    /// Highest SM and memory clocks of the board, MHz.
    pub(crate) fn highest_clocks(&self) -> Option<(u32, u32)> {
        Some((
            self.number(c"nvmlDeviceGetMaxClockInfo", CLOCK_SM)?,
            self.number(c"nvmlDeviceGetMaxClockInfo", CLOCK_MEMORY)?,
        ))
    }

    /// A getter `(device, selector, *unsigned)`.
    fn number(&self, getter: &CStr, selector: c_int) -> Option<u32> {
        let mut value = 0;
        // SAFETY: the getters passed here have this signature; the pointer is valid.
        unsafe {
            let get =
                self.symbol::<unsafe extern "C" fn(Device, c_int, *mut c_uint) -> c_int>(getter)?;
            (get(self.device, selector, &mut value) == 0).then_some(value)
        }
    }

    fn power(&self) -> Option<u32> {
        let mut value = 0;
        // SAFETY: as nvml.h declares it; the pointer is valid.
        unsafe {
            let get = self.symbol::<unsafe extern "C" fn(Device, *mut c_uint) -> c_int>(
                c"nvmlDeviceGetPowerUsage",
            )?;
            (get(self.device, &mut value) == 0).then_some(value)
        }
    }

    fn throttle(&self) -> Option<u64> {
        let mut value = 0;
        // SAFETY: as nvml.h declares it; the pointer is valid.
        unsafe {
            let get = self.symbol::<unsafe extern "C" fn(Device, *mut c_ulonglong) -> c_int>(
                c"nvmlDeviceGetCurrentClocksThrottleReasons",
            )?;
            (get(self.device, &mut value) == 0).then_some(value)
        }
    }

    /// # Safety
    /// `F` must be the C signature of the symbol.
    unsafe fn symbol<F: Copy>(&self, name: &CStr) -> Option<F> {
        // SAFETY: the caller vouches for the type; the library outlives the call.
        unsafe {
            self.library
                .get::<F>(name.to_bytes_with_nul())
                .ok()
                .map(|s| *s)
        }
    }
}
