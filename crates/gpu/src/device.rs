//! A GPU: what it is, and what it is doing.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::cuda::{self, Context, DeviceAttribute as A};
use crate::fault::Fault;
pub use crate::nvml::Clocks;
use crate::nvml::Nvml;

/// What is known of a device. Sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The driver's number for it, from zero.
    pub ordinal: u32,
    /// Marketing name.
    pub name: String,
    /// Architecture, as `sm_90`.
    pub arch: String,
    /// Number of streaming multiprocessors.
    pub sm_count: u32,
    /// L2 cache.
    pub l2_bytes: u64,
    /// Device memory.
    pub memory_bytes: u64,
    /// Largest shared memory of a block, with opt-in.
    pub smem_per_block: u32,
    /// Shared memory of an SM.
    pub smem_per_sm: u32,
    /// 32-bit registers of an SM.
    pub regs_per_sm: u32,
    /// CUDA version that the driver provides, as `13.0`.
    pub cuda: String,
    /// Driver version, as `580.95.05`; absent without NVML.
    pub driver: Option<String>,
    /// Highest SM and memory clocks of the board, MHz; absent without NVML.
    pub highest_mhz: Option<(u32, u32)>,
}

/// A device, opened: its context is current on this thread.
pub struct Device {
    context: Context,
    nvml: Option<Nvml>,
    info: DeviceInfo,
}

impl Device {
    /// Opens a device by ordinal.
    ///
    /// # Errors
    /// [`crate::FaultKind::Missing`]: there is no driver or no such device.
    pub fn open(ordinal: u32) -> Result<Self, Fault> {
        let context = Context::open(ordinal)?;
        let nvml = context.bus_id().ok().and_then(|id| Nvml::open(&id));
        let attribute = |a| context.attribute(a);
        let (major, minor) = (
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let info = DeviceInfo {
            ordinal,
            name: context.name()?,
            arch: format!("sm_{major}{minor}"),
            sm_count: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            l2_bytes: attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            memory_bytes: context.total_memory()?,
            smem_per_block: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            smem_per_sm: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            regs_per_sm: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
            cuda: cuda::driver_api_version()?,
            driver: nvml.as_ref().and_then(Nvml::driver_version),
            highest_mhz: nvml.as_ref().and_then(Nvml::highest_clocks),
        };
        Ok(Device {
            context,
            nvml,
            info,
        })
    }

    /// What is known of it.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Its clocks now; absent without NVML.
    pub fn clocks(&self) -> Option<Clocks> {
        self.nvml.as_ref().and_then(Nvml::clocks)
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

/// All devices the driver sees.
///
/// # Errors
/// [`crate::FaultKind::Missing`]: there is none.
pub fn devices() -> Result<Vec<DeviceInfo>, Fault> {
    (0..cuda::device_count()?)
        .map(|i| Device::open(i).map(|d| d.info))
        .collect()
}

/// Now, in UTC, as `2026-11-21T08:15:30Z`.
pub fn utc_now() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    utc(seconds)
}

/// Calendar date from days since 1970 (Hinnant, 'chrono-Compatible Low-Level Date Algorithms',
/// civil_from_days).
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months counted from March, so that the leap day is the last of the year.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_795_248_930), "2026-11-21T08:15:30Z");
    }
}
