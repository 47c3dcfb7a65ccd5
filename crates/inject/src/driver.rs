//! The driver's own functions, for calls that we make ourselves.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use warpwright_linkage::captured;

use crate::abi::{Code, Handle, NOT_FOUND, Out, SUCCESS, Text};
use crate::door::{behind, real_dlsym};
use crate::modules::is_mapped;
use crate::state::is_sealed;

/// A function of the driver, by which it is found out whether the driver is still loaded.
static MET: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Is this process a forked child? Another thread may have held a lock of the dynamic linker's at the fork.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// From now on this process is a forked child.
pub fn in_child() {
    IS_CHILD.store(true, Ordering::Relaxed);
}

/// Was the driver loaded, and is it not any more?
pub fn is_gone() -> bool {
    let met = MET.load(Ordering::Acquire);
    if met.is_null() {
        return false;
    }
    if IS_CHILD.load(Ordering::Relaxed) {
        return !is_sealed() && !is_mapped(met.cast(), 1);
    }
    // SAFETY: the callback reads what the dynamic linker gives it, and compares the address alone.
    unsafe { libc::dl_iterate_phdr(Some(has), met) == 0 }
}

/// Does an object have this address?
unsafe extern "C" fn has(object: *mut libc::dl_phdr_info, _: usize, at: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker's, for the time of the call.
    let object = unsafe { &*object };
    let base = object.dlpi_addr as usize;
    let parts = (0..usize::from(object.dlpi_phnum)).map(|part| {
        // SAFETY: there are so many.
        unsafe { &*object.dlpi_phdr.add(part) }
    });
    let mut loaded = parts.filter(|part| part.p_type == libc::PT_LOAD);
    let has = loaded.any(|part| {
        let start = base.wrapping_add(part.p_vaddr as usize);
        at.addr().wrapping_sub(start) < part.p_memsz as usize
    });
    c_int::from(has)
}

/// Are all of the driver's functions known that were looked for? What is not among them the driver does not have.
static IS_MET: AtomicBool = AtomicBool::new(false);

/// Finds all functions of the driver that are called or stood in for, at once and while the program may ask the dynamic linker:
/// later its locks may be held by a thread that waits for this one, or that a forked child does not have. Are they known?
pub fn meet() -> bool {
    if IS_MET.load(Ordering::Acquire) {
        return true;
    }
    let own = look(&NAMES);
    let known = own.is_some_and(|own| {
        keep(own);
        crate::door::meet();
        true
    });
    IS_MET.store(known, Ordering::Release);
    known
}

/// Functions of the driver by their exported names, or nulls; `None` where there is no driver yet. The dynamic linker is asked what
/// it has loaded, and nothing by name: an error of its that the program has not asked for yet stays.
pub fn look<const N: usize>(names: &[&CStr; N]) -> Option<[*mut c_void; N]> {
    let Some(mut found) = in_table(names) else {
        // Linked into the program, perhaps under another name; ours come before it.
        let is_linked = !behind(c"cuInit").is_null();
        return is_linked.then(|| names.map(behind));
    };
    let is_readable = in_table(&[c"cuInit"]).is_some_and(|[init]| !init.is_null());
    for (name, found) in names.iter().zip(&mut found) {
        if found.is_null() && !is_readable {
            *found = by_name(name);
        }
        if !found.is_null() {
            MET.store(*found, Ordering::Release);
        }
    }
    Some(found)
}

/// The same of one, whoever has it.
pub fn symbol(name: &CStr) -> *mut c_void {
    look(&[name]).map_or_else(|| behind(name), |[found]| found)
}

/// What the driver's own table says of names: nulls where it has none. `None` where it is not loaded.
fn in_table<const N: usize>(names: &[&CStr; N]) -> Option<[*mut c_void; N]> {
    let mut found = [std::ptr::null_mut(); N];
    let mut wanted = Wanted {
        names,
        is_loaded: false,
        found: &mut found,
    };
    // SAFETY: the callback reads what the dynamic linker gives it, and writes what was found. A forked child has this thread alone.
    unsafe {
        match IS_CHILD.load(Ordering::Relaxed) {
            true => captured::each(|base, table| wanted.look_into(base, table)),
            false => _ = libc::dl_iterate_phdr(Some(find), (&raw mut wanted).cast()),
        }
    }
    wanted.is_loaded.then_some(found)
}

/// What the dynamic linker finds by a name, where the driver's own table is of a form that is not read.
fn by_name(name: &CStr) -> *mut c_void {
    const HOW: c_int = libc::RTLD_NOLOAD | libc::RTLD_LAZY;
    // SAFETY: C strings, and a handle of dlopen; nothing is loaded that is not there. It is not held: the program may close
    // it.
    unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), HOW);
        if library.is_null() {
            return std::ptr::null_mut();
        }
        let found = real_dlsym(library, name.as_ptr());
        if found.is_null() {
            libc::dlerror();
        }
        if cfg!(target_arch = "x86_64") {
            libc::dlclose(library);
        }
        found
    }
}

/// What is looked for in the driver, and in what was loaded behind it: it may have it from there.
struct Wanted<'a> {
    names: &'a [&'a CStr],
    is_loaded: bool,
    found: &'a mut [*mut c_void],
}

impl Wanted<'_> {
    /// Looks for them in an object, which lies at `base` and has this dynamic section. Were all found?
    ///
    /// # Safety
    /// The object stays for the time of the call.
    unsafe fn look_into(&mut self, base: usize, table: usize) -> bool {
        // SAFETY: the caller's, and C strings.
        unsafe {
            self.is_loaded |= captured::is_called(base, table, c"libcuda.so.1".as_ptr());
            if !self.is_loaded {
                return false;
            }
            for (name, found) in self.names.iter().zip(&mut *self.found) {
                if found.is_null() {
                    *found = captured::in_object(base, table, name.as_ptr());
                }
            }
        }
        self.found.iter().all(|found| !found.is_null())
    }
}

/// Looks for them in an object of the dynamic linker's.
unsafe extern "C" fn find(object: *mut libc::dl_phdr_info, _: usize, to: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker's, and the caller's, for the time of the call.
    let (object, wanted) = unsafe { (&*object, &mut *to.cast::<Wanted<'_>>()) };
    let mut parts = (0..usize::from(object.dlpi_phnum)).map(|part| {
        // SAFETY: there are so many.
        unsafe { &*object.dlpi_phdr.add(part) }
    });
    let base = object.dlpi_addr as usize;
    let Some(dynamic) = parts.find(|part| part.p_type == libc::PT_DYNAMIC) else {
        return 0;
    };
    // SAFETY: it stays for the time of the call.
    c_int::from(unsafe { wanted.look_into(base, base.wrapping_add(dynamic.p_vaddr as usize)) })
}

macro_rules! driver {
    ($($(#[$meta:meta])* $name:ident = $symbol:literal ($($arg:ident: $ty:ty),*);)*) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        enum Index { $($name),* }

        /// All of them, or null.
        static FOUND: [AtomicPtr<c_void>; NAMES.len()] =
            [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

        /// Their names.
        static NAMES: [&CStr; [$($symbol),*].len()] = [$($symbol),*];

        $(
            $(#[$meta])*
            ///
            /// # Safety
            /// As the driver's documentation asks for.
            #[allow(clippy::too_many_arguments)]
            pub unsafe fn $name($($arg: $ty),*) -> Code {
                let function = function(Index::$name);
                if function.is_null() {
                    return NOT_FOUND;
                }
                // SAFETY: the driver's function of that name has this signature.
                let function: unsafe extern "C-unwind" fn($($ty),*) -> Code =
                    unsafe { std::mem::transmute(function) };
                unsafe { function($($arg),*) }
            }
        )*
    };
}

driver! {
    /// Version of the driver, 13000 for 13.0.
    driver_version = c"cuDriverGetVersion" (version: *mut c_int);
    /// Number of devices.
    device_count = c"cuDeviceGetCount" (count: *mut c_int);
    /// Name of a device.
    device_name = c"cuDeviceGetName" (name: *mut c_char, size: c_int, device: c_int);
    /// A number about a device.
    device_attribute = c"cuDeviceGetAttribute" (value: *mut c_int, attribute: c_int, device: c_int);
    /// The calling thread's context.
    context = c"cuCtxGetCurrent" (context: Out);
    /// Its device.
    context_device = c"cuCtxGetDevice" (device: *mut c_int);
    /// How the calling thread's calls meet captures.
    exchange_capture_mode = c"cuThreadExchangeStreamCaptureMode" (mode: *mut u32);
    /// Is a stream being captured?
    stream_is_capturing = c"cuStreamIsCapturing" (stream: Handle, status: *mut u32);
    /// An event.
    event_create = c"cuEventCreate" (event: Out, flags: u32);
    /// Marks a place in a stream.
    event_record = c"cuEventRecord" (event: Handle, stream: Handle);
    /// Has it been reached?
    event_query = c"cuEventQuery" (event: Handle);
    /// Time between two places, in milliseconds.
    event_elapsed = c"cuEventElapsedTime" (milliseconds: *mut f32, begin: Handle, end: Handle);
    /// A module that is not bound to a context.
    library_load = c"cuLibraryLoadData" (library: Out, image: *const c_void, options: *mut c_void,
        values: *mut c_void, count: u32, library_options: *mut c_void, library_values: *mut c_void,
        library_count: u32);
    /// Code that the driver puts together.
    link_create = c"cuLinkCreate_v2" (count: u32, options: *mut c_void, values: *mut c_void, state: Out);
    /// Adds a part.
    link_add = c"cuLinkAddData_v2" (state: Handle, kind: u32, data: *mut c_void, size: usize, name: Text,
        count: u32, options: *mut c_void, values: *mut c_void);
    /// The cubin; it lives as long as the state.
    link_complete = c"cuLinkComplete" (state: Handle, cubin: Out, size: *mut usize);
    /// Ends it.
    link_destroy = c"cuLinkDestroy" (state: Handle);
    /// A kernel of it.
    library_kernel = c"cuLibraryGetKernel" (kernel: Out, library: Handle, name: Text);
    /// Name of a function.
    function_name = c"cuFuncGetName" (name: *mut Text, function: Handle);
    /// Module of a function.
    function_module = c"cuFuncGetModule" (module: Out, function: Handle);
    /// Name of a kernel.
    kernel_name = c"cuKernelGetName" (name: *mut Text, kernel: Handle);
    /// Library of a kernel.
    kernel_library = c"cuKernelGetLibrary" (library: Out, kernel: Handle);
    /// The function of a kernel in the current context.
    kernel_function = c"cuKernelGetFunction" (function: Out, kernel: Handle);
    /// Loads a function now, not at its first launch.
    function_load = c"cuFuncLoad" (function: Handle);
    /// A number about a function.
    function_attribute = c"cuFuncGetAttribute" (value: *mut c_int, attribute: c_int, function: Handle);
    /// A number about a kernel on a device.
    kernel_attribute = c"cuKernelGetAttribute" (value: *mut c_int, attribute: c_int, kernel: Handle,
        device: c_int);
    /// Sets one.
    set_kernel_attribute = c"cuKernelSetAttribute" (attribute: c_int, value: c_int, kernel: Handle,
        device: c_int);
    /// Sets one of a function.
    set_function_attribute = c"cuFuncSetAttribute" (function: Handle, attribute: c_int, value: c_int);
    /// Blocks per SM.
    occupancy = c"cuOccupancyMaxActiveBlocksPerMultiprocessor" (blocks: *mut c_int, function: Handle,
        threads: c_int, shared: usize);
    /// Waits for everything in the context.
    synchronize = c"cuCtxSynchronize" ();
    /// Is a stream through?
    stream_query = c"cuStreamQuery" (stream: Handle);
    /// Frees an event.
    event_destroy = c"cuEventDestroy_v2" (event: Handle);
    /// Free and all memory, in bytes.
    memory_info = c"cuMemGetInfo_v2" (free: *mut usize, all: *mut usize);
    /// Device memory.
    memory_alloc = c"cuMemAlloc_v2" (address: *mut u64, bytes: usize);
    /// Frees it.
    memory_free = c"cuMemFree_v2" (address: u64);
    /// A copy within the device.
    memory_copy = c"cuMemcpyDtoDAsync_v2" (to: u64, from: u64, bytes: usize, stream: Handle);
    /// Sets bytes.
    memory_set = c"cuMemsetD8Async" (to: u64, byte: u8, bytes: usize, stream: Handle);
    /// A copy to the device.
    memory_from_host = c"cuMemcpyHtoD_v2" (to: u64, from: *const c_void, bytes: usize);
    /// A copy to the host.
    memory_to_host = c"cuMemcpyDtoH_v2" (to: *mut c_void, from: u64, bytes: usize);
    /// A fact about an address.
    pointer_attribute = c"cuPointerGetAttribute" (value: *mut c_void, attribute: c_int, address: u64);
    /// A module of our own.
    module_load = c"cuModuleLoadData" (module: Out, image: *const c_void);
    /// A function of it.
    module_function = c"cuModuleGetFunction" (function: Out, module: Handle, name: Text);
    /// Place and size of a module's variable.
    module_variable = c"cuModuleGetGlobal_v2" (address: *mut u64, bytes: *mut usize, module: Handle, name: Text);
    /// The same for a library, in the current context.
    library_variable = c"cuLibraryGetGlobal" (address: *mut u64, bytes: *mut usize, library: Handle, name: Text);
    /// Unloads it.
    library_unload = c"cuLibraryUnload" (library: Handle);
    /// Unloads it.
    module_unload = c"cuModuleUnload" (module: Handle);
    /// A launch of our own.
    launch_kernel = c"cuLaunchKernel" (function: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32,
        shared: u32, stream: Handle, params: *mut *mut c_void, extra: *mut *mut c_void);
    /// Place and size of a function's parameter.
    function_parameter = c"cuFuncGetParamInfo" (function: Handle, index: usize, offset: *mut usize,
        bytes: *mut usize);
    /// Place and size of a kernel's parameter.
    kernel_parameter = c"cuKernelGetParamInfo" (kernel: Handle, index: usize, offset: *mut usize,
        bytes: *mut usize);
    /// Nodes of a graph.
    graph_nodes = c"cuGraphGetNodes" (graph: Handle, nodes: Out, count: *mut usize);
    /// Destroys it.
    graph_destroy = c"cuGraphDestroy" (graph: Handle);
    /// Kind of a node.
    node_type = c"cuGraphNodeGetType" (node: Handle, kind: *mut u32);
    /// The graph in a node.
    node_graph = c"cuGraphChildGraphNodeGetGraph" (node: Handle, graph: Out);
    /// The launch in a node.
    node_kernel = c"cuGraphKernelNodeGetParams_v2" (node: Handle, params: *mut crate::abi::KernelNode);
    /// Sets it.
    set_node_kernel = c"cuGraphKernelNodeSetParams_v2" (node: Handle, params: *const crate::abi::KernelNode);
    /// Sets it in an executable graph.
    set_exec_node_kernel = c"cuGraphExecKernelNodeSetParams_v2" (exec: Handle, node: Handle,
        params: *const crate::abi::KernelNode);
    /// An attribute of it.
    node_attribute = c"cuGraphKernelNodeGetAttribute" (node: Handle, attribute: u32, value: *mut [u64; 8]);
}

/// It, or null.
fn function(index: Index) -> *mut c_void {
    let place = &FOUND[index as usize];
    if place.load(Ordering::Relaxed).is_null() && !meet() {
        place.store(symbol(NAMES[index as usize]), Ordering::Relaxed);
    }
    place.load(Ordering::Relaxed)
}

fn keep(found: [*mut c_void; NAMES.len()]) {
    for (place, found) in FOUND.iter().zip(found) {
        place.store(found, Ordering::Relaxed);
    }
}

/// For a driver that was unloaded: another one may be loaded.
pub fn forget() {
    IS_MET.store(false, Ordering::Release);
    for place in &FOUND {
        place.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
    MET.store(std::ptr::null_mut(), Ordering::Release);
}

/// While it lives, what the calling thread does disturbs no capture: neither its own nor one of another thread.
pub struct Relaxed(Option<u32>);

impl Relaxed {
    pub fn new() -> Self {
        let mut mode = crate::abi::CAPTURE_RELAXED;
        // SAFETY: the mode is exchanged in place.
        let done = unsafe { exchange_capture_mode(&raw mut mode) } == SUCCESS;
        Relaxed(done.then_some(mode))
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        if let Some(mut mode) = self.0 {
            // SAFETY: as above, with the mode that was there.
            unsafe { exchange_capture_mode(&raw mut mode) };
        }
    }
}

/// A text of the driver.
pub fn text(pointer: Text) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the driver's texts end in a zero.
    Some(
        unsafe { CStr::from_ptr(pointer) }
            .to_string_lossy()
            .into_owned(),
    )
}

/// May work be put between the program's calls on this stream?
pub fn is_capturing(stream: Handle) -> bool {
    let mut status = 0;
    // SAFETY: the stream is the program's.
    let code = unsafe { stream_is_capturing(stream, &raw mut status) };
    // The legacy stream answers with an error while another one is captured.
    code != SUCCESS || status != 0
}

/// Do launches on this stream become nodes of a graph? An error of the driver's says that another stream's do.
pub fn is_capturing_into(stream: Handle) -> bool {
    !stream.is_null() && is_capturing(stream)
}

/// A handle that a call writes, if it succeeds.
pub fn handle(call: impl FnOnce(Out) -> Code) -> Option<Handle> {
    let mut handle: Handle = std::ptr::null_mut();
    (call(&raw mut handle) == SUCCESS && !handle.is_null()).then_some(handle)
}

/// A number that a call writes, if it succeeds.
pub fn number(call: impl FnOnce(*mut c_int) -> Code) -> Option<c_int> {
    let mut number = 0;
    (call(&raw mut number) == SUCCESS).then_some(number)
}

/// The machine code that the driver makes of PTX, for at most so many registers a thread; none if it refuses, or no
/// context is current.
pub fn compiled(ptx: &str, registers: Option<u32>) -> Option<Vec<u8>> {
    /// CU_JIT_INPUT_PTX of cuda.h.
    const PTX: u32 = 1;
    let null = std::ptr::null_mut;
    let mut text = [ptx.as_bytes(), b"\0"].concat();
    let (mut state, mut cubin, mut size) = (null(), null(), 0usize);
    // CU_JIT_MAX_REGISTERS; its value stands in the pointer's place.
    let (mut names, mut values) = ([0u32], [registers.unwrap_or(0) as usize as *mut c_void]);
    let (names, values) = (names.as_mut_ptr().cast(), values.as_mut_ptr().cast());
    let count = u32::from(registers.is_some());
    // SAFETY: so many options, which live through this function, and an output of the right type.
    if unsafe { link_create(count, names, values, &raw mut state) } != SUCCESS {
        return None;
    }
    let data = text.as_mut_ptr().cast();
    // SAFETY: text of this length that ends in a zero, a name, no options; outputs of the right types.
    let made = unsafe {
        link_add(
            state,
            PTX,
            data,
            text.len(),
            c"ptx".as_ptr(),
            0,
            null(),
            null(),
        ) == SUCCESS
            && link_complete(state, &raw mut cubin, &raw mut size) == SUCCESS
    };
    let code = (made && !cubin.is_null()).then(|| {
        // SAFETY: the driver says where the cubin is and how long; it stays until the state ends.
        unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), size) }.to_vec()
    });
    // SAFETY: a state of ours, which nobody uses any more.
    unsafe { link_destroy(state) };
    code
}
