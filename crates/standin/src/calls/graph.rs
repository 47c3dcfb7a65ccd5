//! Graphs that a program builds itself.

use std::ffi::{c_int, c_uint, c_ulonglong};

use super::{calls, get, put};
use crate::abi::{Code, Copy3D, Data, FillNode, Handle, HostNode, INVALID_VALUE, KernelNode};
use crate::graphs::{Work, launch};
use crate::state::{Answer, state};

/// # Safety
/// An output of this type.
unsafe fn add(to: *mut Handle, graph: Handle, work: Work) -> Answer {
    let mut state = state();
    let node = state.clock.handle();
    state.graphs.add(graph as usize, node as usize, work)?;
    // SAFETY: as the caller says.
    unsafe { put(to, node) }
}

/// # Safety
/// An output of this type.
unsafe fn instantiate(exec: *mut Handle, graph: Handle) -> Answer {
    let mut state = state();
    let handle = state.clock.handle();
    state.graphs.copy(graph as usize, handle as usize)?;
    // SAFETY: as the caller says.
    unsafe { put(exec, handle) }
}

/// # Safety
/// A description that the program filled.
unsafe fn fill(params: *const FillNode) -> Result<Work, Code> {
    // SAFETY: as the caller says.
    let node = unsafe { get(params)? };
    let element = node.value.to_le_bytes();
    let element = element.get(..node.element as usize).ok_or(INVALID_VALUE)?;
    let to = (node.dst as u64, node.pitch as u64);
    Ok(Work::Fill(
        to,
        element.to_vec(),
        node.width as u64,
        node.height as u64,
    ))
}

fn flat(to: Handle, from: Data, len: usize) -> Work {
    Work::Copy((to as u64, 0), (from as u64, 0), len as u64, 1)
}

calls! {
    fn cudaGraphCreate(to: *mut Handle, _flags: c_uint) {
        let mut state = state();
        let graph = state.clock.handle();
        state.graphs.create(graph as usize);
        // SAFETY: an output of this type.
        unsafe { put(to, graph) }
    }

    fn cudaGraphDestroy(_graph: Handle) { Ok(()) }

    fn cudaGraphExecDestroy(exec: Handle) {
        state().graphs.destroy(exec as usize);
        Ok(())
    }

    fn cudaGraphClone(to: *mut Handle, graph: Handle) {
        // SAFETY: an output of this type.
        unsafe { instantiate(to, graph) }
    }

    fn cudaGraphAddKernelNode(to: *mut Handle, graph: Handle, _from: *const Handle, _count: usize, params: *const KernelNode) {
        // SAFETY: a description that the program filled, and an output of this type.
        unsafe { add(to, graph, super::execution::node(params)?) }
    }

    fn cudaGraphAddMemcpyNode(to: *mut Handle, graph: Handle, _from: *const Handle, _count: usize, params: *const Copy3D) {
        // SAFETY: as above.
        unsafe { add(to, graph, super::memory::copy_node(params)?) }
    }

    fn cudaGraphAddMemcpyNode1D(to: *mut Handle, graph: Handle, _from: *const Handle, _count: usize, dst: Handle, src: Data, len: usize, _kind: c_int) {
        // SAFETY: an output of this type.
        unsafe { add(to, graph, flat(dst, src, len)) }
    }

    fn cudaGraphAddMemsetNode(to: *mut Handle, graph: Handle, _from: *const Handle, _count: usize, params: *const FillNode) {
        // SAFETY: as above.
        unsafe { add(to, graph, fill(params)?) }
    }

    fn cudaGraphAddHostNode(to: *mut Handle, graph: Handle, _from: *const Handle, _count: usize, params: *const HostNode) {
        // SAFETY: as above.
        let node = unsafe { get(params)? };
        let work = Work::Host(node.function.ok_or(INVALID_VALUE)?, node.data as usize);
        // SAFETY: an output of this type.
        unsafe { add(to, graph, work) }
    }

    fn cudaGraphAddChildGraphNode(to: *mut Handle, graph: Handle, _from: *const Handle, _count: usize, child: Handle) {
        let mut copy = std::ptr::null_mut();
        // SAFETY: outputs of this type.
        unsafe {
            instantiate(&raw mut copy, child)?;
            add(to, graph, Work::Graph(copy as usize))
        }
    }

    fn cudaGraphAddEmptyNode(to: *mut Handle, graph: Handle, _from: *const Handle, _count: usize) {
        // SAFETY: an output of this type.
        unsafe { add(to, graph, Work::Nothing) }
    }

    fn cudaGraphInstantiate(exec: *mut Handle, graph: Handle, _flags: c_ulonglong) {
        // SAFETY: an output of this type.
        unsafe { instantiate(exec, graph) }
    }

    fn cudaGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, _flags: c_ulonglong) {
        // SAFETY: an output of this type.
        unsafe { instantiate(exec, graph) }
    }

    fn cudaGraphLaunch | cudaGraphLaunch_ptsz(exec: Handle, _stream: Handle) { launch(exec as usize) }

    fn cudaGraphUpload | cudaGraphUpload_ptsz(_exec: Handle, _stream: Handle) { Ok(()) }

    fn cudaGraphExecUpdate(exec: Handle, graph: Handle, _result: Handle) {
        state().graphs.copy(graph as usize, exec as usize)
    }

    fn cudaGraphKernelNodeSetParams(node: Handle, params: *const KernelNode) {
        // SAFETY: a description that the program filled.
        let work = unsafe { super::execution::node(params)? };
        state().graphs.change(None, node as usize, &work)
    }

    fn cudaGraphExecKernelNodeSetParams(exec: Handle, node: Handle, params: *const KernelNode) {
        // SAFETY: as above.
        let work = unsafe { super::execution::node(params)? };
        state().graphs.change(Some(exec as usize), node as usize, &work)
    }

    fn cudaGraphExecMemcpyNodeSetParams1D(exec: Handle, node: Handle, dst: Handle, src: Data, len: usize, _kind: c_int) {
        state().graphs.change(Some(exec as usize), node as usize, &flat(dst, src, len))
    }

    fn cudaGraphExecMemsetNodeSetParams(exec: Handle, node: Handle, params: *const FillNode) {
        // SAFETY: as above.
        let work = unsafe { fill(params)? };
        state().graphs.change(Some(exec as usize), node as usize, &work)
    }

    fn cudaGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize) {
        let state = state();
        let own = state.graphs.nodes(graph as usize)?;
        // SAFETY: room for as many handles as the count says, or null for the count alone.
        unsafe {
            let room = if nodes.is_null() { 0 } else { get(count)? };
            for (at, (node, _)) in own.iter().enumerate().take(room) {
                nodes.add(at).write(*node as Handle);
            }
            put(count, own.len())
        }
    }
}
