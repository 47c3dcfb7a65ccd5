//! What can go wrong on a device, as a value that crosses process boundaries.

use serde::{Deserialize, Serialize};

/// The kind of a failure; decides who pays for it and whether the device context survives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// No driver library, no device, or a driver too old: exit code 3 of the command line.
    Missing,
    /// The launch description or a file cannot be used; no variant is to blame.
    Input,
    /// The device's memory does not hold the buffers.
    OutOfMemory,
    /// The driver does not load the image, or the image lacks the kernel or a symbol.
    Rejected,
    /// The launch asks for more registers, threads or shared memory than a block can have.
    OutOfResources,
    /// Grid, block, cluster or parameters do not fit the kernel.
    BadLaunch,
    /// An access outside any allocation.
    IllegalAddress,
    /// A misaligned access.
    MisalignedAddress,
    /// An instruction the hardware refuses (also a register beyond the declared count).
    IllegalInstruction,
    /// A trap, a failed device assertion, a hardware stack error or another launch failure.
    LaunchFailed,
    /// The kernel did not end in time.
    Timeout,
    /// The process that ran the kernel died.
    Killed,
    /// A driver error of another kind, or a broken protocol: ours or the driver's fault.
    Internal,
}

impl FaultKind {
    /// True if every later call in the same device context fails or may never return.
    pub fn is_sticky(self) -> bool {
        use FaultKind::*;
        matches!(
            self,
            IllegalAddress | MisalignedAddress | IllegalInstruction | LaunchFailed | Timeout
        )
    }

    /// True if the process that met it has to be replaced: after a sticky fault, and wherever it
    /// is not certain that the next variant would find things in order.
    pub fn is_fatal(self) -> bool {
        self.is_sticky() || matches!(self, FaultKind::Killed | FaultKind::Internal)
    }

    /// True if the fault says nothing about the variant that was running.
    pub fn is_environmental(self) -> bool {
        matches!(self, FaultKind::Missing | FaultKind::Input)
    }

    /// In words, as reports name it.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Missing => "device missing",
            FaultKind::Input => "unusable input",
            FaultKind::OutOfMemory => "out of device memory",
            FaultKind::Rejected => "rejected by the driver",
            FaultKind::OutOfResources => "launch out of resources",
            FaultKind::BadLaunch => "invalid launch",
            FaultKind::IllegalAddress => "illegal address",
            FaultKind::MisalignedAddress => "misaligned address",
            FaultKind::IllegalInstruction => "illegal instruction",
            FaultKind::LaunchFailed => "launch failed",
            FaultKind::Timeout => "time-out",
            FaultKind::Killed => "process killed",
            FaultKind::Internal => "internal error",
        }
    }
}

/// A failure on the device or on the way to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}{}: {detail}", kind.name(), variant.as_ref().map(|v| format!(" in variant `{v}`")).unwrap_or_default())]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// Which variant was running, if known.
    pub variant: Option<String>,
    /// The driver's call and error, the JIT log, or what else helps.
    pub detail: String,
}

impl Fault {
    /// A fault that no variant is known to have caused.
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        Fault {
            kind,
            variant: None,
            detail: detail.into(),
        }
    }

    /// Names the variant that was running, unless one is named already.
    pub fn blame(mut self, variant: &str) -> Self {
        self.variant.get_or_insert_with(|| variant.to_string());
        self
    }

    /// The exit code of the command line: 3 for a missing device, 1 for unusable input (a kernel
    /// that fails on the device included), 4 for our own errors.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            FaultKind::Missing => 3,
            FaultKind::Internal | FaultKind::Killed => 4,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_variant_once() {
        let f = Fault::new(FaultKind::Timeout, "no end after 2 s")
            .blame("a")
            .blame("b");
        assert_eq!(f.to_string(), "time-out in variant `a`: no end after 2 s");
        assert_eq!(f.exit_code(), 1);
        assert!(f.kind.is_fatal());
    }

    #[test]
    fn a_missing_device_is_exit_code_three() {
        assert_eq!(
            Fault::new(FaultKind::Missing, "libcuda.so.1").exit_code(),
            3
        );
    }
}
