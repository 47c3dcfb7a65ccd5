//! Launches, in all forms.

use std::ffi::c_uint;

use warpwright_launch::Extents;
use warpwright_winners::LaunchClass;

use crate::abi::{
    ATTRIBUTE_CLUSTER, ATTRIBUTE_COOPERATIVE, ATTRIBUTE_DEVICE_UPDATABLE,
    ATTRIBUTE_PREFERRED_CLUSTER, ATTRIBUTES_OF_ALL, Code, Handle, LaunchAttribute, LaunchConfig,
    SUCCESS, dims, explicit,
};
use crate::functions::{Replacement, own_cluster, replacement};
pub use crate::params::Params;
use crate::state::{Mode, mode};
use crate::within::is_amid;
use crate::{trace, trial};

/// A launch, as far as we look at it.
#[derive(Debug, Clone, Copy)]
pub struct Launch {
    pub function: Handle,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    /// As the launch states it; zeros where it does not.
    pub cluster: [u32; 3],
    pub cooperative: bool,
    /// It has an attribute that other code may not have in the same way.
    pub alone: bool,
    /// Never the null stream.
    pub stream: Handle,
    /// The parameters, in one of two ways.
    pub params: Params,
    pub extra: Params,
}

impl Launch {
    /// The cluster that it runs in; zeros without.
    pub fn effective_cluster(&self) -> [u32; 3] {
        match self.cluster {
            [0, 0, 0] => own_cluster(self.function),
            stated => stated,
        }
    }

    /// Its class.
    pub fn class(&self) -> Option<LaunchClass> {
        let cluster = self.effective_cluster();
        LaunchClass::new(self.grid, self.block, self.shared, cluster)
    }

    /// Its extents.
    pub fn extents(&self) -> Extents {
        Extents {
            grid: self.grid,
            block: self.block,
            dynamic_smem: self.shared,
        }
    }
}

/// A launch as the mode has it; `call` makes it with the function and the extents that it is given.
#[inline]
fn go(launch: &Launch, call: impl Fn(Handle, &Extents) -> Code) -> Code {
    let own = launch.extents();
    match mode() {
        Mode::Off => call(launch.function, &own),
        Mode::With => with(launch, replacement(launch), call),
        Mode::Trace | Mode::Try if is_amid() => call(launch.function, &own),
        Mode::Trace => {
            // Looked up, and at its first launch loaded, before the time begins.
            let winner = replacement(launch);
            let mut launched = None;
            let of = winner.map(|(winner, _)| winner);
            let code = trace::launch(launch, of, |replaced| {
                let (code, own) = choose(launch, winner.filter(|_| replaced), &call);
                launched = own;
                code
            });
            // Not before the time ends: it is written into a file.
            tell(launched);
            code
        }
        Mode::Try => trial::launch(launch, call),
    }
}

#[inline]
fn with(
    launch: &Launch,
    winner: Option<(&'static Replacement, Extents)>,
    call: impl Fn(Handle, &Extents) -> Code,
) -> Code {
    let (code, launched) = choose(launch, winner, call);
    tell(launched);
    code
}

#[inline]
fn tell(launched: Option<&Replacement>) {
    if let Some(winner) = launched {
        winner.launched();
    }
}

/// Launches the winner, or the original; also returns the winner if it was that.
#[inline]
fn choose(
    launch: &Launch,
    winner: Option<(&'static Replacement, Extents)>,
    call: impl Fn(Handle, &Extents) -> Code,
) -> (Code, Option<&'static Replacement>) {
    let Some((winner, extents)) = winner else {
        return (call(launch.function, &launch.extents()), None);
    };
    match call(winner.handle(), &extents) {
        SUCCESS => (SUCCESS, Some(winner)),
        refused => {
            let code = call(launch.function, &launch.extents());
            // After a fault every call fails: that is not the winner's.
            if code == SUCCESS {
                winner.refused(refused);
            }
            (code, None)
        }
    }
}

/// Has the launch an attribute that other code may not have in the same way?
fn is_alone(attribute: &LaunchAttribute) -> bool {
    match attribute.id {
        ATTRIBUTE_CLUSTER | ATTRIBUTE_COOPERATIVE => false,
        ATTRIBUTE_PREFERRED_CLUSTER => dims(&attribute.value) != [0; 3],
        ATTRIBUTE_DEVICE_UPDATABLE => attribute.value[0] as u32 != 0,
        other => !ATTRIBUTES_OF_ALL.contains(&other),
    }
}

/// `cuLaunchKernel`
#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub unsafe fn kernel(
    per_thread: bool,
    real: unsafe extern "C-unwind" fn(
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
        alone: false,
        stream: explicit(stream, per_thread),
        params,
        extra,
    };
    // SAFETY: the program's call, perhaps with a function of the same signature.
    go(&launch, |function, to| unsafe {
        let ([gx, gy, gz], [bx, by, bz]) = (to.grid, to.block);
        let shared = to.dynamic_smem;
        real(
            function, gx, gy, gz, bx, by, bz, shared, stream, params, extra,
        )
    })
}

/// `cuLaunchCooperativeKernel`
#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub unsafe fn cooperative(
    per_thread: bool,
    real: unsafe extern "C-unwind" fn(
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
        alone: false,
        stream: explicit(stream, per_thread),
        params,
        extra: std::ptr::null_mut(),
    };
    // SAFETY: as for `kernel`.
    go(&launch, |function, to| unsafe {
        let ([gx, gy, gz], [bx, by, bz]) = (to.grid, to.block);
        let shared = to.dynamic_smem;
        real(function, gx, gy, gz, bx, by, bz, shared, stream, params)
    })
}

/// `cuLaunchKernelEx`
pub unsafe fn kernel_ex(
    per_thread: bool,
    real: unsafe extern "C-unwind" fn(*const LaunchConfig, Handle, Params, Params) -> Code,
    config: *const LaunchConfig,
    function: Handle,
    params: Params,
    extra: Params,
) -> Code {
    // SAFETY: null, or what the driver is to read.
    let Some(read) = (unsafe { config.as_ref() }) else {
        // SAFETY: the program's call.
        return unsafe { real(config, function, params, extra) };
    };
    // SAFETY: as above.
    let attributes = unsafe { read.attributes() };
    let find = |id| attributes.iter().find(|a| a.id == id).map(|a| a.value);
    let launch = Launch {
        function,
        grid: read.grid,
        block: read.block,
        shared: read.shared,
        cluster: find(ATTRIBUTE_CLUSTER).map_or([0; 3], |value| dims(&value)),
        cooperative: find(ATTRIBUTE_COOPERATIVE).is_some_and(|value| value[0] as u32 != 0),
        alone: attributes.iter().any(is_alone),
        stream: explicit(read.stream, per_thread),
        params,
        extra,
    };
    let own = launch.extents();
    go(&launch, |function, to| {
        let changed = LaunchConfig {
            grid: to.grid,
            block: to.block,
            shared: to.dynamic_smem,
            ..*read
        };
        let config = if *to == own {
            config
        } else {
            &raw const changed
        };
        // SAFETY: the program's call, perhaps with a function of the same signature.
        unsafe { real(config, function, params, extra) }
    })
}
