//! Graphs: kernels in nodes are replaced when the node is made or set. Captured launches come through
//! [`crate::launch`] and are replaced there.
//!
//! A winner may be refused as late as where the graph is made executable or launched: then its nodes get their own kernels back.
//!
//! A node's cluster is an attribute that is set behind the parameters: before that happens, the node gets its own kernel
//! back, and whoever sets its parameters later finds the attribute.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_char, c_uint, c_ulonglong, c_void};

use warpwright_launch::Extents;

use crate::abi::{
    ATTRIBUTE_CLUSTER, ATTRIBUTE_COOPERATIVE, ATTRIBUTE_PREFERRED_CLUSTER, Code, GraphNode, Handle,
    KernelNode, KernelNodeV1, NODE_GRAPH, NODE_KERNEL, NOT_FOUND, Out, SUCCESS, dims, explicit,
};
use crate::driver;
use crate::functions::{Kind, Replacement, original, refused, replacement};
use crate::launch::Launch;
use crate::memory::pass;
use crate::notes::say;
use crate::state::{Mode, guarded, mode, replacing, state};
use crate::turns::{self, Taken, Turns};
use crate::within::is_amid;
use crate::{trace, trial};

/// The launch of a node with these attributes.
fn launch_of(node: &KernelNodeV1, kernel: Handle, attributes: Attributes) -> Launch {
    Launch {
        function: match node.function.is_null() {
            true => kernel,
            false => node.function,
        },
        grid: node.grid,
        block: node.block,
        shared: node.shared,
        cluster: attributes.cluster,
        cooperative: attributes.cooperative,
        alone: attributes.alone,
        stream: std::ptr::null_mut(),
        params: node.params,
        extra: node.extra,
    }
}

/// What nodes have beside their parameters.
#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    cluster: [u32; 3],
    cooperative: bool,
    alone: bool,
}

impl Attributes {
    /// Those of a node; of one whose attributes the driver does not tell nothing is known.
    fn of(node: Handle) -> Attributes {
        let alone = Attributes {
            alone: true,
            ..Attributes::default()
        };
        let read = |attribute| {
            let mut value = [0u64; 8];
            // SAFETY: a node of the program; the output is as large as any attribute.
            match unsafe { driver::node_attribute(node, attribute, &raw mut value) } {
                SUCCESS => Some(value),
                // A driver without the function has no clusters.
                NOT_FOUND => Some([0; 8]),
                _ => None,
            }
        };
        let Some((cluster, cooperative)) = read(ATTRIBUTE_CLUSTER).zip(read(ATTRIBUTE_COOPERATIVE))
        else {
            return alone;
        };
        // Drivers before 12.8 do not know this one.
        let preferred = read(ATTRIBUTE_PREFERRED_CLUSTER).unwrap_or([0; 8]);
        Attributes {
            cluster: dims(&cluster),
            cooperative: cooperative[0] as u32 != 0,
            alone: dims(&preferred) != [0; 3],
        }
    }
}

/// The winner for a node, what its launches become, and the handle in the context of the node.
fn winner(
    at: Node,
    node: &KernelNodeV1,
    kernel: Handle,
    context: Handle,
) -> Option<(&'static Replacement, Extents, Handle)> {
    if !replacing() {
        return None;
    }
    let has_room = || state().nodes.own.len() < Nodes::MOST;
    let attributes = guarded(|| has_room().then(|| at.attributes())).flatten()?;
    let (found, extents) = replacement(&launch_of(node, kernel, attributes))?;
    // SAFETY: outputs of the right types.
    let current = driver::handle(|out| unsafe { driver::context(out) });
    if !context.is_null() && current != Some(context) {
        return None;
    }
    Some((found, extents, found.function()?))
}

/// What the program put into a node, and the extents of the winner that is there.
#[derive(Clone, Copy)]
struct Own {
    function: usize,
    kernel: usize,
    extents: Extents,
    there: Extents,
}

impl Own {
    /// A kernel has the function that the driver tells in the context in which the node is made.
    fn behind(there: Extents, node: &KernelNodeV1, kernel: Handle) -> Own {
        let of_kernel = || {
            // SAFETY: the program's kernel; an output of the right type.
            driver::handle(|out| unsafe { driver::kernel_function(out, kernel) })
        };
        let function = match node.function.is_null() {
            true => of_kernel().unwrap_or(node.function),
            false => node.function,
        };
        Own {
            function: function as usize,
            kernel: kernel as usize,
            extents: extents(node),
            there,
        }
    }
}

fn extents(node: &KernelNodeV1) -> Extents {
    Extents {
        grid: node.grid,
        block: node.block,
        dynamic_smem: node.shared,
    }
}

/// Nodes with winners in them, and what the program put there.
#[derive(Default)]
pub struct Nodes {
    own: BTreeMap<usize, Own>,
    /// Nodes whose clusters were set: an executable graph may still have the ones from before.
    clustered: BTreeSet<usize>,
    /// What executable graphs were made from, while both have the same launches.
    sources: BTreeMap<usize, usize>,
    pub turns: Turns,
}

impl Nodes {
    /// Nodes beyond keep the program's kernel: what was there has to be known to be put back.
    const MOST: usize = 1 << 16;

    /// What an executable graph was made from, while both have the same launches.
    pub fn source(&self, exec: Handle) -> Option<Handle> {
        let source = self.sources.get(&(exec as usize));
        source.map(|&source| source as Handle)
    }

    /// Has the program nodes of which something is noted?
    fn has_any(&self) -> bool {
        !self.own.is_empty() || !self.clustered.is_empty()
    }

    /// A node is gone: its handle may be another's soon.
    fn forget(&mut self, node: Handle) {
        self.own.remove(&(node as usize));
        self.clustered.remove(&(node as usize));
    }

    fn note(&mut self, node: usize, own: Option<Own>) {
        match own {
            Some(own) => drop(self.own.insert(node, own)),
            None => drop(self.own.remove(&node)),
        }
    }
}

/// The node that a call is about: it makes it, was given it, or changes it in an executable graph (the first) and not where that
/// was made from.
#[derive(Clone, Copy)]
enum Node {
    Made(Out),
    Given(Handle),
    Executable(Handle, Handle),
}

impl Node {
    /// Notes what the program put into it, if a winner is there.
    fn holds(self, code: Code, own: Option<Own>) {
        if code != SUCCESS || !replacing() {
            return;
        }
        let node = match self {
            Node::Given(node) => node,
            // SAFETY: the driver has written it.
            Node::Made(out) if !out.is_null() => unsafe { *out },
            Node::Made(_) => return,
            Node::Executable(exec, _) => {
                guarded(|| state().nodes.sources.remove(&(exec as usize)));
                return;
            }
        };
        guarded(|| {
            let nodes = &mut state().nodes;
            if matches!(self, Node::Given(_)) {
                nodes.sources.clear();
            }
            nodes.note(node as usize, own);
        });
    }

    /// An executable graph has another launch in it: what is seen or tried of it is that.
    fn has(self, code: Code, node: &KernelNodeV1, kernel: Handle) {
        let (Node::Executable(exec, at), SUCCESS) = (self, code) else {
            return;
        };
        match mode() {
            Mode::Trace => {
                guarded(|| trace::graph_node(&launch_of(node, kernel, self.attributes())));
            }
            Mode::Try => {
                guarded(|| trial::again(exec, at, &launch_of(node, kernel, self.attributes())));
            }
            Mode::With | Mode::Off => {}
        }
    }

    fn attributes(self) -> Attributes {
        match self {
            Node::Made(_) => Attributes::default(),
            Node::Given(node) => Attributes::of(node),
            Node::Executable(_, node) => {
                let mut attributes = Attributes::of(node);
                attributes.alone |= state().nodes.clustered.contains(&(node as usize));
                attributes
            }
        }
    }
}

/// The node with another function, in the extents of that.
fn changed(node: &KernelNodeV1, function: Handle, to: Extents) -> KernelNodeV1 {
    KernelNodeV1 {
        function,
        grid: to.grid,
        block: to.block,
        shared: to.dynamic_smem,
        ..*node
    }
}

/// Makes a call with the winner in the node, and with the original if that is refused.
fn replaced_v1(
    at: Node,
    params: *const KernelNodeV1,
    call: impl Fn(*const KernelNodeV1) -> Code,
) -> Code {
    let null = std::ptr::null_mut();
    // SAFETY: null, or what the driver is to read.
    let Some(node) = (unsafe { params.as_ref() }) else {
        return call(params);
    };
    let Some((winner, to, function)) = winner(at, node, null, null) else {
        let code = call(params);
        at.holds(code, None);
        at.has(code, node, null);
        return code;
    };
    let own = Own::behind(to, node, null);
    let changed = changed(node, function, to);
    settle(winner, (at, own), call(&raw const changed), || call(params))
}

fn replaced(at: Node, params: *const KernelNode, call: impl Fn(*const KernelNode) -> Code) -> Code {
    // SAFETY: as above.
    let Some(node) = (unsafe { params.as_ref() }) else {
        return call(params);
    };
    let Some((winner, to, function)) = winner(at, &node.node, node.kernel, node.context) else {
        let code = call(params);
        at.holds(code, None);
        at.has(code, &node.node, node.kernel);
        return code;
    };
    let own = Own::behind(to, &node.node, node.kernel);
    let null = std::ptr::null_mut();
    let (function, kernel) = match (node.node.function.is_null(), winner.kind) {
        (true, Kind::Kernel) => (null, winner.handle()),
        (true, Kind::Function) => (function, null),
        (false, _) => (function, node.kernel),
    };
    let changed = KernelNode {
        node: changed(&node.node, function, to),
        kernel,
        ..*node
    };
    settle(winner, (at, own), call(&raw const changed), || call(params))
}

fn settle(
    winner: &Replacement,
    (at, own): (Node, Own),
    code: Code,
    otherwise: impl FnOnce() -> Code,
) -> Code {
    if code == SUCCESS {
        at.holds(code, Some(own));
        winner.launched();
        return code;
    }
    let other = otherwise();
    at.holds(other, None);
    if other == SUCCESS {
        winner.refused(code);
    }
    other
}

/// Attributes that decide which launches a node's are.
const DECIDING: [u32; 3] = [
    ATTRIBUTE_CLUSTER,
    ATTRIBUTE_COOPERATIVE,
    ATTRIBUTE_PREFERRED_CLUSTER,
];

/// `cuGraphKernelNodeSetAttribute`
pub unsafe fn set_attribute(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle, c_uint, *const c_void) -> Code,
    node: Handle,
    attribute: c_uint,
    value: *const c_void,
) -> Code {
    if DECIDING.contains(&attribute) {
        give_back(node);
    }
    // SAFETY: the program's call.
    unsafe { real(node, attribute, value) }
}

/// `cuGraphKernelNodeCopyAttributes`
pub unsafe fn copy_attributes(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle, Handle) -> Code,
    to: Handle,
    from: Handle,
) -> Code {
    give_back(to);
    // SAFETY: the program's call.
    unsafe { real(to, from) }
}

/// A node gets the program's own kernel back: its launches are about to be others.
fn give_back(node: Handle) {
    if !replacing() || node.is_null() {
        return;
    }
    guarded(|| {
        state().nodes.clustered.insert(node as usize);
        // SAFETY: the program's node, with the parameters that the driver has just given.
        give_own(node, |params| unsafe {
            let code = driver::set_node_kernel(node, params);
            if code != SUCCESS {
                say("a node of a graph keeps its winner though its cluster changes");
            }
            code
        });
        state().nodes.own.remove(&(node as usize));
    });
}

/// A node as the driver has it, and as the program made it.
pub struct Both {
    pub there: KernelNode,
    pub own: KernelNode,
}

impl Both {
    pub fn of(node: Handle) -> Option<Both> {
        // SAFETY: zeros are valid, and the driver fills them.
        let mut there: KernelNode = unsafe { std::mem::zeroed() };
        // SAFETY: the program's node.
        if unsafe { driver::node_kernel(node, &raw mut there) } != SUCCESS {
            return None;
        }
        let mut own = there;
        restore(node, &mut own.node, &mut own.kernel);
        // Where the function was ours, the kernel is left to the function.
        if own.node.function != there.node.function && own.kernel == there.kernel {
            own.kernel = std::ptr::null_mut();
        }
        Some(Both { there, own })
    }

    /// The winner in it.
    pub fn winner(&self) -> Option<Handle> {
        let Both { there, own } = self;
        if own.node.function != there.node.function {
            return Some(there.node.function);
        }
        (own.kernel != there.kernel).then_some(there.kernel)
    }

    /// The program's launch in it.
    pub fn launch(&self, node: Handle) -> Launch {
        launch_of(&self.own.node, self.own.kernel, Attributes::of(node))
    }
}

/// Puts the program's own kernel into a node, by `set`. Returns the winner that was there; none if none was, or it stays.
fn give_own(node: Handle, set: impl FnOnce(*const KernelNode) -> Code) -> Option<Handle> {
    let both = Both::of(node)?;
    let winner = both.winner()?;
    (set(&raw const both.own) == SUCCESS).then_some(winner)
}

/// Makes a call again where the driver refused it and `give` has taken winners out; what was refused so is counted against them.
fn or_own(call: impl Fn() -> Code, give: impl FnOnce() -> Vec<Handle>) -> Code {
    let code = call();
    if code == SUCCESS || !replacing() {
        return code;
    }
    let winners = guarded(give).unwrap_or_default();
    if winners.is_empty() {
        return code;
    }
    let other = call();
    if other == SUCCESS {
        guarded(|| winners.into_iter().for_each(|winner| refused(winner, code)));
    }
    other
}

/// A graph without winners; these.
fn own_in_graph(graph: Handle) -> Vec<Handle> {
    let mut winners = Vec::new();
    kernel_nodes(graph, 0, &mut |node| {
        // SAFETY: as in `give_back`.
        let set = |params| unsafe { driver::set_node_kernel(node, params) };
        winners.extend(give_own(node, set));
        state().nodes.own.remove(&(node as usize));
    });
    winners
}

/// The same of an executable graph. What it was made from is asked, if it is there and has not changed.
fn own_in_exec(exec: Handle) -> Vec<Handle> {
    let source = state().nodes.sources.remove(&(exec as usize));
    let mut winners = Vec::new();
    if let Some(source) = source {
        kernel_nodes(source as Handle, 0, &mut |node| {
            // SAFETY: as above.
            let set = |params| unsafe { driver::set_exec_node_kernel(exec, node, params) };
            winners.extend(give_own(node, set));
        });
    }
    winners
}

/// `cuGraphAddKernelNode`, version 1
pub unsafe fn add_v1(
    _: bool,
    real: unsafe extern "C-unwind" fn(
        Out,
        Handle,
        *const Handle,
        usize,
        *const KernelNodeV1,
    ) -> Code,
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
    real: unsafe extern "C-unwind" fn(Out, Handle, *const Handle, usize, *const KernelNode) -> Code,
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
    real: unsafe extern "C-unwind" fn(Out, Handle, *const Handle, usize, *mut GraphNode) -> Code,
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
    real: unsafe extern "C-unwind" fn(
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
    real: unsafe extern "C-unwind" fn(Handle, *const KernelNodeV1) -> Code,
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
    real: unsafe extern "C-unwind" fn(Handle, *const KernelNode) -> Code,
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
    real: unsafe extern "C-unwind" fn(Handle, Handle, *const KernelNodeV1) -> Code,
    exec: Handle,
    node: Handle,
    params: *const KernelNodeV1,
) -> Code {
    // SAFETY: as above.
    replaced_v1(Node::Executable(exec, node), params, |params| unsafe {
        real(exec, node, params)
    })
}

/// `cuGraphExecKernelNodeSetParams`
pub unsafe fn set_exec(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle, Handle, *const KernelNode) -> Code,
    exec: Handle,
    node: Handle,
    params: *const KernelNode,
) -> Code {
    // SAFETY: as above.
    replaced(Node::Executable(exec, node), params, |params| unsafe {
        real(exec, node, params)
    })
}

/// `cuGraphNodeSetParams`
pub unsafe fn set_node(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle, *mut GraphNode) -> Code,
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
    real: unsafe extern "C-unwind" fn(Handle, Handle, *mut GraphNode) -> Code,
    exec: Handle,
    node: Handle,
    params: *mut GraphNode,
) -> Code {
    // SAFETY: as above.
    replaced_node(Node::Executable(exec, node), params, |params| unsafe {
        real(exec, node, params)
    })
}

/// `cuGraphKernelNodeGetParams`, version 1: the program sees its own kernel.
pub unsafe fn get_v1(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle, *mut KernelNodeV1) -> Code,
    node: Handle,
    params: *mut KernelNodeV1,
) -> Code {
    // SAFETY: the program's call; the driver has written the parameters.
    unsafe {
        let code = real(node, params);
        if code == SUCCESS && replacing() {
            let params = &mut *params;
            guarded(|| restore(node, params, &mut std::ptr::null_mut()));
        }
        code
    }
}

/// `cuGraphKernelNodeGetParams`
pub unsafe fn get(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle, *mut KernelNode) -> Code,
    node: Handle,
    params: *mut KernelNode,
) -> Code {
    // SAFETY: as above.
    unsafe {
        let code = real(node, params);
        if code == SUCCESS && replacing() {
            let params = &mut *params;
            guarded(|| restore(node, &mut params.node, &mut params.kernel));
        }
        code
    }
}

/// Puts back what the program had put into a node; of a node that was captured, a handle for the same code.
fn restore(node: Handle, params: &mut KernelNodeV1, kernel: &mut Handle) {
    let own = state().nodes.own.get(&(node as usize)).copied();
    // In other extents it is another node, of a graph that was captured or copied.
    let own = own.filter(|own| own.there == extents(params));
    for (place, known) in [
        (&mut params.function, own.map(|own| own.function)),
        (kernel, own.map(|own| own.kernel)),
    ] {
        let known = known.map(|handle| handle as Handle);
        if !place.is_null()
            && let Some(handle) = known.filter(|h| !h.is_null()).or_else(|| original(*place))
        {
            *place = handle;
        }
    }
    if let Some(own) = own {
        params.grid = own.extents.grid;
        params.block = own.extents.block;
        params.shared = own.extents.dynamic_smem;
    }
}

/// Does something with each kernel's node of a graph, and of graphs within it.
pub fn kernel_nodes(graph: Handle, deep: u32, work: &mut dyn FnMut(Handle)) {
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
            NODE_KERNEL => work(node),
            NODE_GRAPH => {
                // SAFETY: as above.
                let inner = driver::handle(|out| unsafe { driver::node_graph(node, out) });
                if let Some(inner) = inner {
                    kernel_nodes(inner, deep + 1, work);
                }
            }
            _ => {}
        }
    }
}

/// The launches in a graph by their nodes, with those of graphs within it.
fn launches(graph: Handle) -> Vec<(Handle, Launch)> {
    let mut found = Vec::new();
    kernel_nodes(graph, 0, &mut |node| {
        found.extend(Both::of(node).map(|both| (node, both.launch(node))));
    });
    found
}

/// Makes a graph executable.
fn make(exec: Out, graph: Handle, call: impl Fn() -> Code) -> Code {
    let code = or_own(call, || own_in_graph(graph));
    if code == SUCCESS && mode() != Mode::Off && !exec.is_null() {
        // SAFETY: the driver has written it.
        let exec = unsafe { *exec };
        guarded(|| made(exec, graph));
    }
    code
}

/// A graph is executable.
fn made(exec: Handle, graph: Handle) {
    if replacing() {
        turns::made(exec, graph);
        let sources = &mut state().nodes.sources;
        sources.insert(exec as usize, graph as usize);
    }
    if mode() != Mode::With {
        see(exec, &launches(graph));
    }
}

/// An executable graph has these launches.
fn see(exec: Handle, launches: &[(Handle, Launch)]) {
    match mode() {
        Mode::Try => trial::record_graph(exec, launches),
        Mode::Trace => trace::graph(exec, launches.iter().map(|(_, launch)| launch)),
        Mode::With | Mode::Off => {}
    }
}

/// `cuGraphInstantiate` of CUDA 11
pub unsafe fn instantiate_v2(
    _: bool,
    real: unsafe extern "C-unwind" fn(Out, Handle, Out, *mut c_char, usize) -> Code,
    exec: Out,
    graph: Handle,
    node: Out,
    log: *mut c_char,
    size: usize,
) -> Code {
    // SAFETY: the program's call.
    make(exec, graph, || unsafe {
        real(exec, graph, node, log, size)
    })
}

/// `cuGraphInstantiate`
pub unsafe fn instantiate(
    _: bool,
    real: unsafe extern "C-unwind" fn(Out, Handle, c_ulonglong) -> Code,
    exec: Out,
    graph: Handle,
    flags: c_ulonglong,
) -> Code {
    // SAFETY: the program's call.
    make(exec, graph, || unsafe { real(exec, graph, flags) })
}

/// `cuGraphInstantiateWithParams`
pub unsafe fn instantiate_with(
    _: bool,
    real: unsafe extern "C-unwind" fn(Out, Handle, *mut c_void) -> Code,
    exec: Out,
    graph: Handle,
    params: *mut c_void,
) -> Code {
    // SAFETY: the program's call.
    make(exec, graph, || unsafe { real(exec, graph, params) })
}

/// `cuGraphLaunch`
pub unsafe fn launch(
    per_thread: bool,
    real: unsafe extern "C-unwind" fn(Handle, Handle) -> Code,
    exec: Handle,
    stream: Handle,
) -> Code {
    // SAFETY: the program's call.
    let call = || or_own(|| unsafe { real(exec, stream) }, || own_in_exec(exec));
    match mode() {
        Mode::Trace | Mode::Try if is_amid() => call(),
        Mode::Trace => {
            let stream = explicit(stream, per_thread);
            let taken = match replacing() {
                true => guarded(|| Taken::new(exec, stream)).flatten(),
                false => None,
            };
            let turn = taken.as_ref().map(|taken| taken.turn.clone());
            let code = trace::graph_launch(exec, stream, turn, call);
            guarded(|| drop(taken));
            code
        }
        Mode::Try => {
            let recorded = guarded(|| state().recorded.get(&(exec as usize)).cloned());
            if let Some(recorded) = recorded.flatten() {
                trial::graph(&recorded, explicit(stream, per_thread));
            }
            let _pass = pass();
            call()
        }
        _ => call(),
    }
}

/// `cuGraphExecDestroy`
pub unsafe fn destroy(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle) -> Code,
    exec: Handle,
) -> Code {
    forget_source(exec);
    match mode() {
        Mode::Trace => {
            guarded(|| {
                state().trace.forget_graph(exec);
                turns::gone(exec);
            });
        }
        Mode::Try => drop(guarded(|| state().recorded.remove(&(exec as usize)))),
        Mode::Off | Mode::With => {}
    }
    // SAFETY: the program's call.
    unsafe { real(exec) }
}

/// An executable graph is another one than what it was made from.
fn forget_source(exec: Handle) {
    if replacing() {
        guarded(|| state().nodes.sources.remove(&(exec as usize)));
    }
}

/// An executable graph has the launches of another graph, unless that was refused. Its nodes are known by those of its own.
fn updated(exec: Handle, graph: Handle, code: Code) -> Code {
    if code == SUCCESS && matches!(mode(), Mode::Trace | Mode::Try) {
        guarded(|| {
            let mut launches = launches(graph);
            for (node, _) in &mut launches {
                *node = std::ptr::null_mut();
            }
            see(exec, &launches);
        });
    }
    code
}

/// `cuGraphExecUpdate` of CUDA 11
pub unsafe fn update_v1(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle, Handle, Out, *mut c_void) -> Code,
    exec: Handle,
    graph: Handle,
    node: Out,
    result: *mut c_void,
) -> Code {
    forget_source(exec);
    // SAFETY: the program's call.
    updated(exec, graph, unsafe { real(exec, graph, node, result) })
}

/// `cuGraphExecUpdate`
pub unsafe fn update(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle, Handle, *mut c_void) -> Code,
    exec: Handle,
    graph: Handle,
    result: *mut c_void,
) -> Code {
    forget_source(exec);
    // SAFETY: the program's call.
    updated(exec, graph, unsafe { real(exec, graph, result) })
}

/// `cuGraphDestroyNode`
pub unsafe fn destroy_node(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle) -> Code,
    node: Handle,
) -> Code {
    if replacing() {
        guarded(|| {
            let nodes = &mut state().nodes;
            nodes.forget(node);
            // What was made of its graph has it still.
            nodes.sources.clear();
        });
    }
    // SAFETY: the program's call.
    unsafe { real(node) }
}

/// A graph is about to be destroyed, and its nodes with it: nobody is to ask for them any more.
pub fn forget(graph: Handle) {
    let has_any = state().nodes.has_any();
    if has_any {
        kernel_nodes(graph, 0, &mut |node| state().nodes.forget(node));
    }
    let sources = &mut state().nodes.sources;
    sources.retain(|_, source| *source != graph as usize);
}

/// `cuGraphDestroy`: nobody is to ask for its nodes any more.
pub unsafe fn destroy_source(
    _: bool,
    real: unsafe extern "C-unwind" fn(Handle) -> Code,
    graph: Handle,
) -> Code {
    if replacing() && guarded(|| turns::is_kept(graph)) == Some(true) {
        return SUCCESS;
    }
    // SAFETY: the program's call.
    unsafe { real(graph) }
}
