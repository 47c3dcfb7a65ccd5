//! The driver's functions that something stands in for.

/// Gives a macro all of them: exported name, base name for `cuGetProcAddress` and the version from which that means this
/// signature, flavour, modes, what is done, and the signature. What these mean is the macro's affair.
#[macro_export]
macro_rules! functions {
    ($with:ident) => {
        $with! {
            cuGetProcAddress c"cuGetProcAddress" 11030 LEGACY ALL door::get_proc_address,
                (name: *const c_char, found: *mut *mut c_void, version: c_int, flags: c_ulonglong);
            cuGetProcAddress_v2 c"cuGetProcAddress" 12000 LEGACY ALL door::get_proc_address_v2,
                (name: *const c_char, found: *mut *mut c_void, version: c_int, flags: c_ulonglong, status: *mut c_int);

            cuModuleLoad c"cuModuleLoad" 2000 LEGACY ALL modules::load_file,
                (module: Out, file: *const c_char);
            cuModuleLoadData c"cuModuleLoadData" 2000 LEGACY ALL modules::load_data,
                (module: Out, image: *const c_void);
            cuModuleLoadDataEx c"cuModuleLoadDataEx" 2010 LEGACY ALL modules::load_data_ex,
                (module: Out, image: *const c_void, count: c_uint, options: *mut c_void, values: *mut *mut c_void);
            cuModuleLoadFatBinary c"cuModuleLoadFatBinary" 2000 LEGACY ALL modules::load_data,
                (module: Out, image: *const c_void);
            cuModuleUnload c"cuModuleUnload" 2000 LEGACY ALL modules::unload,
                (module: Handle);
            cuLibraryLoadData c"cuLibraryLoadData" 12000 LEGACY ALL modules::load_library,
                (library: Out, image: *const c_void, options: *mut c_void, values: *mut *mut c_void, count: c_uint,
                 library_options: *mut c_void, library_values: *mut *mut c_void, library_count: c_uint);
            cuLibraryLoadFromFile c"cuLibraryLoadFromFile" 12000 LEGACY ALL modules::load_library_file,
                (library: Out, file: *const c_char, options: *mut c_void, values: *mut *mut c_void, count: c_uint,
                 library_options: *mut c_void, library_values: *mut *mut c_void, library_count: c_uint);
            cuLibraryUnload c"cuLibraryUnload" 12000 LEGACY ALL modules::unload,
                (library: Handle);
            cuLibraryGetModule c"cuLibraryGetModule" 12000 LEGACY ALL modules::of_library,
                (module: Out, library: Handle);

            cuLinkCreate_v2 c"cuLinkCreate" 6050 LEGACY TRACE compilers::link_create,
                (count: c_uint, options: *mut c_void, values: *mut *mut c_void, link: Out);
            cuLinkAddData_v2 c"cuLinkAddData" 6050 LEGACY TRACE compilers::link_add,
                (link: Handle, kind: c_uint, data: *mut c_void, size: usize, name: Text, count: c_uint, options: *mut c_void,
                 values: *mut *mut c_void);
            cuLinkAddFile_v2 c"cuLinkAddFile" 6050 LEGACY TRACE compilers::link_file,
                (link: Handle, kind: c_uint, file: Text, count: c_uint, options: *mut c_void, values: *mut *mut c_void);
            cuLinkComplete c"cuLinkComplete" 5050 LEGACY TRACE compilers::link_complete,
                (link: Handle, cubin: Out, size: *mut usize);

            cuCtxDestroy_v2 c"cuCtxDestroy" 4000 LEGACY ALL modules::destroy_context,
                (context: Handle);
            cuDevicePrimaryCtxReset_v2 c"cuDevicePrimaryCtxReset" 11000 LEGACY ALL modules::reset_device,
                (device: c_int);
            cuDevicePrimaryCtxRelease_v2 c"cuDevicePrimaryCtxRelease" 11000 LEGACY ALL modules::reset_device,
                (device: c_int);

            cuModuleGetFunction c"cuModuleGetFunction" 2000 LEGACY ALL functions::get_function,
                (function: Out, module: Handle, name: Text);
            cuLibraryGetKernel c"cuLibraryGetKernel" 12000 LEGACY ALL functions::get_kernel,
                (kernel: Out, library: Handle, name: Text);
            cuKernelGetFunction c"cuKernelGetFunction" 12000 LEGACY ALL functions::of_kernel,
                (function: Out, kernel: Handle);
            cuModuleGetGlobal_v2 c"cuModuleGetGlobal" 3020 LEGACY PUT modules::get_variable,
                (address: *mut u64, bytes: *mut usize, module: Handle, name: Text);
            cuLibraryGetGlobal c"cuLibraryGetGlobal" 12000 LEGACY PUT modules::get_variable,
                (address: *mut u64, bytes: *mut usize, library: Handle, name: Text);
            cuModuleGetFunctionCount c"cuModuleGetFunctionCount" 12040 LEGACY ALL grafts::count,
                (count: *mut c_uint, module: Handle);
            cuModuleEnumerateFunctions c"cuModuleEnumerateFunctions" 12040 LEGACY ALL grafts::enumerate,
                (functions: Out, most: c_uint, module: Handle);
            cuLibraryGetKernelCount c"cuLibraryGetKernelCount" 12040 LEGACY ALL grafts::count,
                (count: *mut c_uint, library: Handle);
            cuLibraryEnumerateKernels c"cuLibraryEnumerateKernels" 12040 LEGACY ALL grafts::enumerate,
                (kernels: Out, most: c_uint, library: Handle);
            cuFuncSetAttribute c"cuFuncSetAttribute" 9000 LEGACY ALL functions::set_attribute,
                (function: Handle, attribute: c_int, value: c_int);
            cuKernelSetAttribute c"cuKernelSetAttribute" 12000 LEGACY ALL functions::set_kernel_attribute,
                (attribute: c_int, value: c_int, kernel: Handle, device: c_int);

            cuLaunchKernel c"cuLaunchKernel" 4000 LEGACY ALL launch::kernel,
                (function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
                 shared: c_uint, stream: Handle, params: *mut *mut c_void, extra: *mut *mut c_void);
            cuLaunchKernel_ptsz c"cuLaunchKernel" 7000 THREAD ALL launch::kernel,
                (function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
                 shared: c_uint, stream: Handle, params: *mut *mut c_void, extra: *mut *mut c_void);
            cuLaunchKernelEx c"cuLaunchKernelEx" 11060 LEGACY ALL launch::kernel_ex,
                (config: *const LaunchConfig, function: Handle, params: *mut *mut c_void, extra: *mut *mut c_void);
            cuLaunchKernelEx_ptsz c"cuLaunchKernelEx" 11060 THREAD ALL launch::kernel_ex,
                (config: *const LaunchConfig, function: Handle, params: *mut *mut c_void, extra: *mut *mut c_void);
            cuLaunchCooperativeKernel c"cuLaunchCooperativeKernel" 9000 LEGACY ALL launch::cooperative,
                (function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
                 shared: c_uint, stream: Handle, params: *mut *mut c_void);
            cuLaunchCooperativeKernel_ptsz c"cuLaunchCooperativeKernel" 9000 THREAD ALL launch::cooperative,
                (function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
                 shared: c_uint, stream: Handle, params: *mut *mut c_void);

            cuGraphAddKernelNode c"cuGraphAddKernelNode" 10000 LEGACY PUT graph::add_v1,
                (node: Out, graph: Handle, after: *const Handle, count: usize, params: *const abi::KernelNodeV1);
            cuGraphAddKernelNode_v2 c"cuGraphAddKernelNode" 12000 LEGACY PUT graph::add,
                (node: Out, graph: Handle, after: *const Handle, count: usize, params: *const abi::KernelNode);
            cuGraphAddNode c"cuGraphAddNode" 12020 LEGACY PUT graph::add_node,
                (node: Out, graph: Handle, after: *const Handle, count: usize, params: *mut abi::GraphNode);
            cuGraphAddNode_v2 c"cuGraphAddNode" 12030 LEGACY PUT graph::add_node_v2,
                (node: Out, graph: Handle, after: *const Handle, edges: *const c_void, count: usize,
                 params: *mut abi::GraphNode);
            cuGraphKernelNodeSetParams c"cuGraphKernelNodeSetParams" 10000 LEGACY PUT graph::set_v1,
                (node: Handle, params: *const abi::KernelNodeV1);
            cuGraphKernelNodeSetParams_v2 c"cuGraphKernelNodeSetParams" 12000 LEGACY PUT graph::set,
                (node: Handle, params: *const abi::KernelNode);
            cuGraphExecKernelNodeSetParams c"cuGraphExecKernelNodeSetParams" 10010 LEGACY ALL graph::set_exec_v1,
                (exec: Handle, node: Handle, params: *const abi::KernelNodeV1);
            cuGraphExecKernelNodeSetParams_v2 c"cuGraphExecKernelNodeSetParams" 12000 LEGACY ALL graph::set_exec,
                (exec: Handle, node: Handle, params: *const abi::KernelNode);
            cuGraphNodeSetParams c"cuGraphNodeSetParams" 12020 LEGACY PUT graph::set_node,
                (node: Handle, params: *mut abi::GraphNode);
            cuGraphExecNodeSetParams c"cuGraphExecNodeSetParams" 12020 LEGACY ALL graph::set_exec_node,
                (exec: Handle, node: Handle, params: *mut abi::GraphNode);
            cuGraphKernelNodeGetParams c"cuGraphKernelNodeGetParams" 10000 LEGACY PUT graph::get_v1,
                (node: Handle, params: *mut abi::KernelNodeV1);
            cuGraphKernelNodeGetParams_v2 c"cuGraphKernelNodeGetParams" 12000 LEGACY PUT graph::get,
                (node: Handle, params: *mut abi::KernelNode);

            cuGraphKernelNodeSetAttribute c"cuGraphKernelNodeSetAttribute" 11000 LEGACY PUT graph::set_attribute,
                (node: Handle, attribute: c_uint, value: *const c_void);
            cuGraphKernelNodeCopyAttributes c"cuGraphKernelNodeCopyAttributes" 11000 LEGACY PUT graph::copy_attributes,
                (to: Handle, from: Handle);

            cuGraphInstantiate_v2 c"cuGraphInstantiate" 11000 LEGACY ALL graph::instantiate_v2,
                (exec: Out, graph: Handle, node: Out, log: *mut c_char, size: usize);
            cuGraphInstantiateWithFlags c"cuGraphInstantiate" 12000 LEGACY ALL graph::instantiate,
                (exec: Out, graph: Handle, flags: c_ulonglong);
            cuGraphInstantiateWithParams c"cuGraphInstantiateWithParams" 12000 LEGACY ALL graph::instantiate_with,
                (exec: Out, graph: Handle, params: *mut c_void);
            cuGraphInstantiateWithParams_ptsz c"cuGraphInstantiateWithParams" 12000 THREAD ALL graph::instantiate_with,
                (exec: Out, graph: Handle, params: *mut c_void);
            cuGraphLaunch c"cuGraphLaunch" 10000 LEGACY ALL graph::launch,
                (exec: Handle, stream: Handle);
            cuGraphLaunch_ptsz c"cuGraphLaunch" 10000 THREAD ALL graph::launch,
                (exec: Handle, stream: Handle);
            cuGraphExecDestroy c"cuGraphExecDestroy" 10000 LEGACY ALL graph::destroy,
                (exec: Handle);
            cuGraphExecUpdate c"cuGraphExecUpdate" 10020 LEGACY ALL graph::update_v1,
                (exec: Handle, graph: Handle, node: Out, result: *mut c_void);
            cuGraphExecUpdate_v2 c"cuGraphExecUpdate" 12000 LEGACY ALL graph::update,
                (exec: Handle, graph: Handle, result: *mut c_void);
            cuGraphDestroy c"cuGraphDestroy" 10000 LEGACY PUT graph::destroy_source,
                (graph: Handle);
            cuGraphDestroyNode c"cuGraphDestroyNode" 10000 LEGACY PUT graph::destroy_node,
                (node: Handle);

            cuMemAlloc_v2 c"cuMemAlloc" 3020 LEGACY TRY memory::alloc,
                (address: *mut u64, bytes: usize);
            cuMemAllocPitch_v2 c"cuMemAllocPitch" 3020 LEGACY TRY memory::alloc_pitch,
                (address: *mut u64, pitch: *mut usize, width: usize, height: usize, element: c_uint);
            cuMemAllocManaged c"cuMemAllocManaged" 6000 LEGACY TRY memory::alloc_managed,
                (address: *mut u64, bytes: usize, flags: c_uint);
            cuMemAllocAsync c"cuMemAllocAsync" 11020 LEGACY TRY memory::alloc_async,
                (address: *mut u64, bytes: usize, stream: Handle);
            cuMemAllocAsync_ptsz c"cuMemAllocAsync" 11020 THREAD TRY memory::alloc_async,
                (address: *mut u64, bytes: usize, stream: Handle);
            cuMemAllocFromPoolAsync c"cuMemAllocFromPoolAsync" 11020 LEGACY TRY memory::alloc_pool,
                (address: *mut u64, bytes: usize, pool: Handle, stream: Handle);
            cuMemAllocFromPoolAsync_ptsz c"cuMemAllocFromPoolAsync" 11020 THREAD TRY memory::alloc_pool,
                (address: *mut u64, bytes: usize, pool: Handle, stream: Handle);
            cuMemFree_v2 c"cuMemFree" 3020 LEGACY TRY memory::free,
                (address: u64);
            cuMemFreeAsync c"cuMemFreeAsync" 11020 LEGACY TRY memory::free_async,
                (address: u64, stream: Handle);
            cuMemFreeAsync_ptsz c"cuMemFreeAsync" 11020 THREAD TRY memory::free_async,
                (address: u64, stream: Handle);
            cuCtxEnablePeerAccess c"cuCtxEnablePeerAccess" 4000 LEGACY TRY memory::enable_peers,
                (context: Handle, flags: c_uint);
            cuMemMap c"cuMemMap" 10020 LEGACY TRY memory::map,
                (address: u64, bytes: usize, offset: usize, memory: u64, flags: u64);
            cuMemUnmap c"cuMemUnmap" 10020 LEGACY TRY memory::unmap,
                (address: u64, bytes: usize);
        }
    };
}
