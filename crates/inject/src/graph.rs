//! Graphs: kernels in nodes are replaced when the node is made or set. Captured launches come through
//! [`crate::launch`] and are replaced there.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_ulonglong, c_void};

use warpwright_winners::LaunchClass;

use crate::abi::{
    Code, GraphNode, Handle, KernelNode, KernelNodeV1, NODE_GRAPH, NODE_KERNEL, Out, SUCCESS,
    explicit,
};
use crate::driver;
use crate::functions::{Kind, Replacement, original, replacement};
use crate::state::{Mode, guarded, mode, replacing, state};
use crate::trace;

fn class(node: &KernelNodeV1) -> Option<LaunchClass> {
    LaunchClass::new(node.grid, node.block, node.shared, [0; 3])
}

/// The winner for a node and its handle in the context of the node.
fn winner(
    node: &KernelNodeV1,
    kernel: Handle,
    context: Handle,
) -> Option<(&'static Replacement, Handle)> {
    if !replacing() {
        return None;
    }
    let handle = if node.function.is_null() {
        kernel
    } else {
        node.function
    };
    let found = replacement(handle, || class(node))?;
    // SAFETY: outputs of the right types.
    let current = driver::handle(|out| unsafe { driver::context(out) });
    if !context.is_null() && current != Some(context) {
        return None;
    }
    Some((found, found.function()?))
}

/// Nodes with winners in them, and what the program put there: function and kernel.
#[derive(Default)]
pub struct Nodes(BTreeMap<usize, [usize; 2]>);

impl Nodes {
    /// Nodes beyond are forgotten: then a program may see another of its handles for the same code.
    const MOST: usize = 1 << 16;

    fn note(&mut self, node: usize, is_replaced: bool, own: [Handle; 2]) {
        if self.0.len() >= Nodes::MOST {
            self.0.clear();
        }
        match is_replaced {
            true => drop(self.0.insert(node, own.map(|handle| handle as usize))),
            false => drop(self.0.remove(&node)),
        }
    }
}

/// The node that a call is about: it makes it, or was given it.
#[derive(Clone, Copy)]
enum Node {
    Made(Out),
    Given(Handle),
}

/// The executable graph changes, and the node that it was made from does not.
const UNTOUCHED: Node = Node::Made(std::ptr::null_mut());

impl Node {
    /// Notes what the program put into it.
    fn holds(self, code: Code, is_replaced: bool, own: [Handle; 2]) {
        let node = match self {
            Node::Given(node) => node,
            // SAFETY: the driver has written it if it succeeded.
            Node::Made(out) if code == SUCCESS && !out.is_null() => unsafe { *out },
            Node::Made(_) => return,
        };
        if code == SUCCESS && replacing() {
            guarded(|| state().nodes.note(node as usize, is_replaced, own));
        }
    }
}

/// Makes a call with the winner in the node, and with the original if that is refused.
fn replaced_v1(
    at: Node,
    params: *const KernelNodeV1,
    call: impl Fn(*const KernelNodeV1) -> Code,
) -> Code {
    // SAFETY: null, or what the driver is to read.
    let node = unsafe { params.as_ref() };
    let null = std::ptr::null_mut();
    let own = node.map_or([null; 2], |node| [node.function, null]);
    let found = node.and_then(|node| Some((node, winner(node, null, null)?)));
    let Some((node, (winner, function))) = found else {
        let code = call(params);
        at.holds(code, false, own);
        return code;
    };
    let changed = KernelNodeV1 { function, ..*node };
    settle(winner, (at, own), call(&raw const changed), || call(params))
}

fn replaced(at: Node, params: *const KernelNode, call: impl Fn(*const KernelNode) -> Code) -> Code {
    // SAFETY: as above.
    let node = unsafe { params.as_ref() };
    let found = node.and_then(|node| Some((node, winner(&node.node, node.kernel, node.context)?)));
    let null = std::ptr::null_mut();
    let own = node.map_or([null; 2], |node| [node.node.function, node.kernel]);
    let Some((node, (winner, function))) = found else {
        let code = call(params);
        at.holds(code, false, own);
        return code;
    };
    let mut changed = *node;
    match (node.node.function.is_null(), winner.kind) {
        (true, Kind::Kernel) => changed.kernel = winner.handle(),
        (true, Kind::Function) => {
            changed.node.function = function;
            changed.kernel = std::ptr::null_mut();
        }
        (false, _) => changed.node.function = function,
    }
    settle(winner, (at, own), call(&raw const changed), || call(params))
}

fn settle(
    winner: &Replacement,
    (at, own): (Node, [Handle; 2]),
    code: Code,
    otherwise: impl FnOnce() -> Code,
) -> Code {
    if code == SUCCESS {
        at.holds(code, true, own);
        winner.launched();
        return code;
    }
    let other = otherwise();
    at.holds(other, false, own);
    if other == SUCCESS {
        winner.refused(code);
    }
    other
}

/// `cuGraphAddKernelNode`, version 1
pub unsafe fn add_v1(
    _: bool,
    real: unsafe extern "C" fn(Out, Handle, *const Handle, usize, *const KernelNodeV1) -> Code,
    node: Out,
    graph: Handle,
    after: *const Handle,
    count: usize,
    params: *const KernelNodeV1,
) -> Code {
    // SAFETY: the program's call, perhaps with another function in the node.
    replaced_v1(Node::Made(node), params, |params| unsafe {
        real(node, graph, after, count, params)
    })
}

/// `cuGraphAddKernelNode`
pub unsafe fn add(
    _: bool,
    real: unsafe extern "C" fn(Out, Handle, *const Handle, usize, *const KernelNode) -> Code,
    node: Out,
    graph: Handle,
    after: *const Handle,
    count: usize,
    params: *const KernelNode,
) -> Code {
    // SAFETY: as above.
    replaced(Node::Made(node), params, |params| unsafe {
        real(node, graph, after, count, params)
    })
}

/// The kernel of a node of any kind is replaced in a copy.
fn replaced_node(at: Node, params: *mut GraphNode, call: impl Fn(*mut GraphNode) -> Code) -> Code {
    // SAFETY: null, or what the driver is to read.
    let Some(node) = (unsafe { params.as_ref() }).filter(|node| node.kind == NODE_KERNEL) else {
        return call(params);
    };
    let original: *const KernelNode = &raw const node.kernel;
    replaced(at, original, |kernel| {
        if kernel == original {
            return call(params);
        }
        // SAFETY: it is the changed copy.
        let mut changed = GraphNode {
            kernel: unsafe { *kernel },
            ..*node
        };
        call(&raw mut changed)
    })
}

/// `cuGraphAddNode`
pub unsafe fn add_node(
    _: bool,
    real: unsafe extern "C" fn(Out, Handle, *const Handle, usize, *mut GraphNode) -> Code,
    node: Out,
    graph: Handle,
    after: *const Handle,
    count: usize,
    params: *mut GraphNode,
) -> Code {
    // SAFETY: as above.
    replaced_node(Node::Made(node), params, |params| unsafe {
        real(node, graph, after, count, params)
    })
}

/// `cuGraphAddNode`, version 2
#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub unsafe fn add_node_v2(
    _: bool,
    real: unsafe extern "C" fn(
        Out,
        Handle,
        *const Handle,
        *const c_void,
        usize,
        *mut GraphNode,
    ) -> Code,
    node: Out,
    graph: Handle,
    after: *const Handle,
    edges: *const c_void,
    count: usize,
    params: *mut GraphNode,
) -> Code {
    // SAFETY: as above.
    replaced_node(Node::Made(node), params, |params| unsafe {
        real(node, graph, after, edges, count, params)
    })
}

/// `cuGraphKernelNodeSetParams`, version 1
pub unsafe fn set_v1(
    _: bool,
    real: unsafe extern "C" fn(Handle, *const KernelNodeV1) -> Code,
    node: Handle,
    params: *const KernelNodeV1,
) -> Code {
    // SAFETY: as above.
    replaced_v1(Node::Given(node), params, |params| unsafe {
        real(node, params)
    })
}

/// `cuGraphKernelNodeSetParams`
pub unsafe fn set(
    _: bool,
    real: unsafe extern "C" fn(Handle, *const KernelNode) -> Code,
    node: Handle,
    params: *const KernelNode,
) -> Code {
    // SAFETY: as above.
    replaced(Node::Given(node), params, |params| unsafe {
        real(node, params)
    })
}

/// `cuGraphExecKernelNodeSetParams`, version 1
pub unsafe fn set_exec_v1(
    _: bool,
    real: unsafe extern "C" fn(Handle, Handle, *const KernelNodeV1) -> Code,
    exec: Handle,
    node: Handle,
    params: *const KernelNodeV1,
) -> Code {
    // SAFETY: as above.
    replaced_v1(UNTOUCHED, params, |params| unsafe {
        real(exec, node, params)
    })
}

/// `cuGraphExecKernelNodeSetParams`
pub unsafe fn set_exec(
    _: bool,
    real: unsafe extern "C" fn(Handle, Handle, *const KernelNode) -> Code,
    exec: Handle,
    node: Handle,
    params: *const KernelNode,
) -> Code {
    // SAFETY: as above.
    replaced(UNTOUCHED, params, |params| unsafe {
        real(exec, node, params)
    })
}

/// `cuGraphNodeSetParams`
pub unsafe fn set_node(
    _: bool,
    real: unsafe extern "C" fn(Handle, *mut GraphNode) -> Code,
    node: Handle,
    params: *mut GraphNode,
) -> Code {
    // SAFETY: as above.
    replaced_node(Node::Given(node), params, |params| unsafe {
        real(node, params)
    })
}

/// `cuGraphExecNodeSetParams`
pub unsafe fn set_exec_node(
    _: bool,
    real: unsafe extern "C" fn(Handle, Handle, *mut GraphNode) -> Code,
    exec: Handle,
    node: Handle,
    params: *mut GraphNode,
) -> Code {
    // SAFETY: as above.
    replaced_node(UNTOUCHED, params, |params| unsafe {
        real(exec, node, params)
    })
}

/// `cuGraphKernelNodeGetParams`, version 1: the program sees its own kernel.
pub unsafe fn get_v1(
    _: bool,
    real: unsafe extern "C" fn(Handle, *mut KernelNodeV1) -> Code,
    node: Handle,
    params: *mut KernelNodeV1,
) -> Code {
    // SAFETY: the program's call; the driver has written the parameters.
    unsafe {
        let code = real(node, params);
        if code == SUCCESS && replacing() {
            guarded(|| restore(node, [&mut (*params).function, &mut std::ptr::null_mut()]));
        }
        code
    }
}

/// `cuGraphKernelNodeGetParams`
pub unsafe fn get(
    _: bool,
    real: unsafe extern "C" fn(Handle, *mut KernelNode) -> Code,
    node: Handle,
    params: *mut KernelNode,
) -> Code {
    // SAFETY: as above.
    unsafe {
        let code = real(node, params);
        if code == SUCCESS && replacing() {
            let params = &mut *params;
            guarded(|| restore(node, [&mut params.node.function, &mut params.kernel]));
        }
        code
    }
}

/// Puts back what the program had put into a node; of a node that was captured, a handle for the same code.
fn restore(node: Handle, places: [&mut Handle; 2]) {
    let own = state().nodes.0.get(&(node as usize)).copied();
    for (place, number) in places.into_iter().zip(0..) {
        let known = own.map(|own| own[number] as Handle);
        if !place.is_null()
            && let Some(handle) = known.filter(|h| !h.is_null()).or_else(|| original(*place))
        {
            *place = handle;
        }
    }
}

/// The launches in a graph, with those of graphs within it.
fn launches(graph: Handle, deep: u32, found: &mut Vec<KernelNode>) {
    const DEEPEST: u32 = 8;
    let mut count = 0;
    // SAFETY: the program's graph; outputs of the right types.
    let code = unsafe { driver::graph_nodes(graph, std::ptr::null_mut(), &raw mut count) };
    if code != SUCCESS || deep > DEEPEST {
        return;
    }
    let mut nodes = vec![std::ptr::null_mut(); count];
    // SAFETY: as above, with room for as many as there are.
    if unsafe { driver::graph_nodes(graph, nodes.as_mut_ptr(), &raw mut count) } != SUCCESS {
        return;
    }
    for node in nodes {
        let mut kind = u32::MAX;
        // SAFETY: as above.
        unsafe { driver::node_type(node, &raw mut kind) };
        match kind {
            NODE_KERNEL => {
                // SAFETY: zeros are valid, and the driver fills them.
                let mut params: KernelNode = unsafe { std::mem::zeroed() };
                // SAFETY: as above.
                if unsafe { driver::node_kernel(node, &raw mut params) } == SUCCESS {
                    found.push(params);
                }
            }
            NODE_GRAPH => {
                // SAFETY: as above.
                let inner = driver::handle(|out| unsafe { driver::node_graph(node, out) });
                if let Some(inner) = inner {
                    launches(inner, deep + 1, found);
                }
            }
            _ => {}
        }
    }
}

fn instantiated(code: Code, exec: Out, graph: Handle) -> Code {
    if code == SUCCESS && mode() == Mode::Trace && !exec.is_null() {
        guarded(|| {
            let mut found = Vec::new();
            launches(graph, 0, &mut found);
            // SAFETY: the driver has written it.
            trace::graph(unsafe { *exec }, &found);
        });
    }
    code
}

/// `cuGraphInstantiate` of CUDA 11
pub unsafe fn instantiate_v2(
    _: bool,
    real: unsafe extern "C" fn(Out, Handle, Out, *mut c_char, usize) -> Code,
    exec: Out,
    graph: Handle,
    node: Out,
    log: *mut c_char,
    size: usize,
) -> Code {
    // SAFETY: the program's call.
    instantiated(unsafe { real(exec, graph, node, log, size) }, exec, graph)
}

/// `cuGraphInstantiate`
pub unsafe fn instantiate(
    _: bool,
    real: unsafe extern "C" fn(Out, Handle, c_ulonglong) -> Code,
    exec: Out,
    graph: Handle,
    flags: c_ulonglong,
) -> Code {
    // SAFETY: the program's call.
    instantiated(unsafe { real(exec, graph, flags) }, exec, graph)
}

/// `cuGraphInstantiateWithParams`
pub unsafe fn instantiate_with(
    _: bool,
    real: unsafe extern "C" fn(Out, Handle, *mut c_void) -> Code,
    exec: Out,
    graph: Handle,
    params: *mut c_void,
) -> Code {
    // SAFETY: the program's call.
    instantiated(unsafe { real(exec, graph, params) }, exec, graph)
}

/// `cuGraphLaunch`
pub unsafe fn launch(
    per_thread: bool,
    real: unsafe extern "C" fn(Handle, Handle) -> Code,
    exec: Handle,
    stream: Handle,
) -> Code {
    // SAFETY: the program's call.
    let call = || unsafe { real(exec, stream) };
    match mode() {
        Mode::Trace => trace::graph_launch(exec, explicit(stream, per_thread), call),
        _ => call(),
    }
}

/// `cuGraphExecDestroy`
pub unsafe fn destroy(_: bool, real: unsafe extern "C" fn(Handle) -> Code, exec: Handle) -> Code {
    if mode() == Mode::Trace {
        guarded(|| state().trace.forget_graph(exec));
    }
    // SAFETY: the program's call.
    unsafe { real(exec) }
}
