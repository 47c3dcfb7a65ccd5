//! Launches, in all forms.

use std::ffi::{c_uint, c_void};

use warpwright_winners::LaunchClass;

use crate::abi::{
    ATTRIBUTE_CLUSTER, ATTRIBUTE_COOPERATIVE, Code, Handle, LaunchConfig, SUCCESS, explicit,
};
use crate::functions::{Replacement, replacement};
use crate::state::{Mode, mode};
use crate::{trace, trial};

/// A launch, as far as we look at it.
#[derive(Debug, Clone, Copy)]
pub struct Launch {
    pub function: Handle,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub cluster: [u32; 3],
    pub cooperative: bool,
    /// Never the null stream.
    pub stream: Handle,
    /// The parameters, in one of two ways.
    pub params: Params,
    pub extra: Params,
}

impl Launch {
    /// Its class.
    pub fn class(&self) -> Option<LaunchClass> {
        LaunchClass::new(self.grid, self.block, self.shared, self.cluster)
    }
}

/// A launch as the mode has it; `call` makes it with the function that it is given.
#[inline]
fn go(launch: &Launch, call: impl Fn(Handle) -> Code) -> Code {
    match mode() {
        Mode::Off => call(launch.function),
        Mode::With => with(launch, winner(launch), call),
        Mode::Trace => {
            // Looked up, and at its first launch loaded, before the time begins.
            let winner = winner(launch);
            trace::launch(launch, || with(launch, winner, &call))
        }
        Mode::Try => trial::launch(launch, call),
    }
}

#[inline]
fn winner(launch: &Launch) -> Option<&'static Replacement> {
    replacement(launch.function, || launch.class())
}

#[inline]
fn with(launch: &Launch, winner: Option<&Replacement>, call: impl Fn(Handle) -> Code) -> Code {
    let Some(winner) = winner else {
        return call(launch.function);
    };
    match call(winner.handle()) {
        SUCCESS => {
            winner.launched();
            SUCCESS
        }
        refused => {
            let code = call(launch.function);
            // After a fault every call fails: that is not the winner's.
            if code == SUCCESS {
                winner.refused(refused);
            }
            code
        }
    }
}

/// Pointers to the parameters' values, or another way to pass them.
pub type Params = *mut *mut c_void;

/// `cuLaunchKernel`
#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub unsafe fn kernel(
    per_thread: bool,
    real: unsafe extern "C" fn(
        Handle,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        Handle,
        Params,
        Params,
    ) -> Code,
    function: Handle,
    gx: c_uint,
    gy: c_uint,
    gz: c_uint,
    bx: c_uint,
    by: c_uint,
    bz: c_uint,
    shared: c_uint,
    stream: Handle,
    params: Params,
    extra: Params,
) -> Code {
    let launch = Launch {
        function,
        grid: [gx, gy, gz],
        block: [bx, by, bz],
        shared,
        cluster: [0; 3],
        cooperative: false,
        stream: explicit(stream, per_thread),
        params,
        extra,
    };
    // SAFETY: the program's call, perhaps with a function of the same signature.
    go(&launch, |function| unsafe {
        real(
            function, gx, gy, gz, bx, by, bz, shared, stream, params, extra,
        )
    })
}

/// `cuLaunchCooperativeKernel`
#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub unsafe fn cooperative(
    per_thread: bool,
    real: unsafe extern "C" fn(
        Handle,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        Handle,
        Params,
    ) -> Code,
    function: Handle,
    gx: c_uint,
    gy: c_uint,
    gz: c_uint,
    bx: c_uint,
    by: c_uint,
    bz: c_uint,
    shared: c_uint,
    stream: Handle,
    params: Params,
) -> Code {
    let launch = Launch {
        function,
        grid: [gx, gy, gz],
        block: [bx, by, bz],
        shared,
        cluster: [0; 3],
        cooperative: true,
        stream: explicit(stream, per_thread),
        params,
        extra: std::ptr::null_mut(),
    };
    // SAFETY: as for `kernel`.
    go(&launch, |function| unsafe {
        real(function, gx, gy, gz, bx, by, bz, shared, stream, params)
    })
}

/// `cuLaunchKernelEx`
pub unsafe fn kernel_ex(
    per_thread: bool,
    real: unsafe extern "C" fn(*const LaunchConfig, Handle, Params, Params) -> Code,
    config: *const LaunchConfig,
    function: Handle,
    params: Params,
    extra: Params,
) -> Code {
    // SAFETY: the program's call, perhaps with a function of the same signature.
    let call = |function| unsafe { real(config, function, params, extra) };
    // SAFETY: null, or what the driver is to read.
    let Some(read) = (unsafe { config.as_ref() }) else {
        return call(function);
    };
    // SAFETY: as above.
    let attributes = unsafe { read.attributes() };
    let find = |id| attributes.iter().find(|a| a.id == id).map(|a| a.value);
    let cluster = find(ATTRIBUTE_CLUSTER).map_or([0; 3], |value| {
        [value[0] as u32, (value[0] >> 32) as u32, value[1] as u32]
    });
    let launch = Launch {
        function,
        grid: read.grid,
        block: read.block,
        shared: read.shared,
        cluster,
        cooperative: find(ATTRIBUTE_COOPERATIVE).is_some_and(|value| value[0] as u32 != 0),
        stream: explicit(read.stream, per_thread),
        params,
        extra,
    };
    go(&launch, call)
}
