//! Modules and the kernels in them.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;

use cudarc::driver::sys::{CUfunction, CUfunction_attribute, CUjit_option, CUmodule};

use super::api::Api;
use super::{Memory, check, lost};
use crate::fault::{Fault, FaultKind};

/// A loaded module.
pub(crate) struct Module {
    api: &'static Api,
    raw: CUmodule,
}

impl Module {
    pub(super) fn load(api: &'static Api, image: &[u8]) -> Result<Self, Fault> {
        const LOG: usize = 16 * 1024;
        let mut log = vec![0u8; LOG];
        let mut options = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // The second value is a number that travels in a pointer (cuda.h, cuModuleLoadDataEx).
        let mut values: [*mut c_void; 2] =
            [log.as_mut_ptr().cast(), ptr::without_provenance_mut(LOG)];
        // PTX has to end in NUL; the headers of binaries give their own size.
        let image: Vec<u8> = image.iter().copied().chain([0]).collect();
        let mut raw = ptr::null_mut();
        // SAFETY: the image is NUL-terminated or a binary whose header gives its size; a damaged
        // header is the driver's to find. The options match their values in number and type.
        let code = unsafe {
            (api.module_load)(
                &mut raw,
                image.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        check(api, "cuModuleLoadDataEx", code).map_err(|mut fault| {
            let end = log.iter().position(|&b| b == 0).unwrap_or(LOG);
            let text = String::from_utf8_lossy(&log[..end]);
            if !text.trim().is_empty() {
                fault.detail = format!("{}\n{}", fault.detail, text.trim());
            }
            fault
        })?;
        Ok(Module { api, raw })
    }

    /// Names of the kernels in the module.
    pub(crate) fn kernels(&self) -> Result<Vec<String>, Fault> {
        let mut count = 0;
        // SAFETY: the pointer is valid for one number; then `raw` has room for as many handles.
        let functions = unsafe {
            let code = (self.api.module_function_count)(&mut count, self.raw);
            check(self.api, "cuModuleGetFunctionCount", code)?;
            let mut functions: Vec<CUfunction> = vec![ptr::null_mut(); count as usize];
            let code = (self.api.module_functions)(functions.as_mut_ptr(), count, self.raw);
            check(self.api, "cuModuleEnumerateFunctions", code)?;
            functions
        };
        functions.into_iter().map(|f| self.name_of(f)).collect()
    }

    fn name_of(&self, function: CUfunction) -> Result<String, Fault> {
        let mut name = ptr::null();
        // SAFETY: on success the driver stores a NUL-terminated string that lives as long as the
        // module.
        unsafe {
            let code = (self.api.function_name)(&mut name, function);
            check(self.api, "cuFuncGetName", code)?;
            Ok(CStr::from_ptr(name).to_string_lossy().into_owned())
        }
    }

    /// A kernel by name.
    pub(crate) fn function(&self, name: &str) -> Result<Function<'_>, Fault> {
        let c_name = c_string(name)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the name is NUL-terminated; the pointer is valid for one handle.
        let code = unsafe { (self.api.module_function)(&mut raw, self.raw, c_name.as_ptr()) };
        check(self.api, "cuModuleGetFunction", code).map_err(|mut fault| {
            let names = self.kernels().unwrap_or_default().join(", ");
            fault.detail = format!(
                "no kernel `{name}` (the module has: {names}); {}",
                fault.detail
            );
            fault
        })?;
        let params = param_sizes(self.api, raw);
        Ok(Function {
            module: self,
            raw,
            params,
        })
    }

    /// The memory of a `__device__` or `__constant__` variable.
    pub(crate) fn symbol(&self, name: &str) -> Result<Memory, Fault> {
        let c_name = c_string(name)?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the name is NUL-terminated; both pointers are valid for one value.
        let code = unsafe {
            (self.api.module_global)(&mut address, &mut bytes, self.raw, c_name.as_ptr())
        };
        check(self.api, "cuModuleGetGlobal", code).map_err(|mut fault| {
            fault.detail = format!("no variable `{name}`; {}", fault.detail);
            fault
        })?;
        Ok(Memory::borrowed(self.api, address, bytes))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if !lost() {
            // SAFETY: loaded by `load`, unloaded once; functions borrow the module.
            unsafe { (self.api.module_unload)(self.raw) };
        }
    }
}

fn c_string(name: &str) -> Result<CString, Fault> {
    CString::new(name).map_err(|_| {
        Fault::new(
            FaultKind::Input,
            format!("a name with a zero byte: {name:?}"),
        )
    })
}

/// A kernel of a module.
pub(crate) struct Function<'m> {
    module: &'m Module,
    pub(super) raw: CUfunction,
    params: Vec<usize>,
}

impl Function<'_> {
    /// An attribute of the kernel as loaded.
    pub(crate) fn attribute(&self, attribute: CUfunction_attribute) -> Result<u32, Fault> {
        let api = self.module.api;
        let mut value = 0;
        // SAFETY: the pointer is valid for one int.
        let code = unsafe { (api.function_attribute)(&mut value, attribute, self.raw) };
        check(api, "cuFuncGetAttribute", code)?;
        Ok(value.try_into().unwrap_or(0))
    }

    /// Sets an attribute of the kernel.
    pub(crate) fn set(&self, attribute: CUfunction_attribute, value: u32) -> Result<(), Fault> {
        let api = self.module.api;
        let value = c_int::try_from(value).unwrap_or(c_int::MAX);
        // SAFETY: the handle is live.
        let code = unsafe { (api.function_set)(self.raw, attribute, value) };
        check(api, "cuFuncSetAttribute", code)
    }

    /// Blocks of `threads` threads that fit on one SM with so much dynamic shared memory.
    pub(crate) fn blocks_per_sm(&self, threads: u32, dynamic_smem: u32) -> Result<u32, Fault> {
        let api = self.module.api;
        let mut blocks = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: the pointer is valid for one int.
        let code =
            unsafe { (api.occupancy)(&mut blocks, self.raw, threads, dynamic_smem as usize) };
        check(api, "cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        Ok(blocks.try_into().unwrap_or(0))
    }

    /// An error unless the parameters have the sizes that the kernel declares.
    pub(super) fn check_params(&self, params: &[Vec<u8>]) -> Result<(), Fault> {
        if params.iter().map(Vec::len).eq(self.params.iter().copied()) {
            return Ok(());
        }
        let given: Vec<usize> = params.iter().map(Vec::len).collect();
        let detail = format!(
            "the kernel takes {} parameters of {:?} bytes; the launch gives {} of {given:?}",
            self.params.len(),
            self.params,
            given.len()
        );
        Err(Fault::new(FaultKind::BadLaunch, detail))
    }
}

/// Sizes in bytes of the parameters a kernel declares.
fn param_sizes(api: &Api, function: CUfunction) -> Vec<usize> {
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: both pointers are valid for one size. An index past the last parameter is
        // answered with an error, which ends the list.
        let code = unsafe { (api.function_param)(function, sizes.len(), &mut offset, &mut size) };
        if code != 0 {
            return sizes;
        }
        sizes.push(size);
    }
}
