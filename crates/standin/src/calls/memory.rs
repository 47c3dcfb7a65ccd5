//! Allocations, copies, fills, symbols.

use std::ffi::{c_int, c_uint};

use warpwright_target::PITCH_BYTES;

use super::{calls, get, put};
use crate::abi::{
    Code, Copy3D, Data, Extent, Handle, INVALID_VALUE, Location, Pitched, PointerAttributes,
};
use crate::graphs::{Work, on};
use crate::memory::Kind;
use crate::state::{Answer, state};

/// # Safety
/// An output of this type.
unsafe fn allocate(to: *mut Handle, len: usize, kind: Kind) -> Answer {
    let mut state = state();
    state.gpu()?;
    state.healthy()?;
    let base = if len == 0 {
        0
    } else {
        state.arena.allocate(len as u64, kind)?
    };
    // SAFETY: as the caller says.
    unsafe { put(to, base as Handle) }
}

fn free(pointer: Handle) -> Answer {
    let mut state = state();
    state.meet()?;
    match pointer.is_null() {
        true => Ok(()),
        false => state.arena.free(pointer as u64),
    }
}

/// # Safety
/// An output of this type.
unsafe fn pitched(to: *mut Handle, pitch: *mut usize, width: usize, rows: usize) -> Answer {
    let bytes = width
        .checked_next_multiple_of(PITCH_BYTES as usize)
        .ok_or(INVALID_VALUE)?;
    // SAFETY: as the caller says.
    unsafe {
        put(pitch, bytes)?;
        allocate(
            to,
            bytes.checked_mul(rows).ok_or(INVALID_VALUE)?,
            Kind::Device,
        )
    }
}

fn flat(to: u64, from: u64, len: usize, stream: Handle) -> Answer {
    let work = Work::Copy((to, 0), (from, 0), len as u64, 1);
    on(stream as usize, work)
}

fn rows(
    to: (u64, usize),
    from: (u64, usize),
    width: usize,
    height: usize,
    stream: Handle,
) -> Answer {
    let at = |(base, pitch): (u64, usize)| (base, pitch as u64);
    let work = Work::Copy(at(to), at(from), width as u64, height as u64);
    on(stream as usize, work)
}

fn fill(to: (u64, usize), value: c_int, width: usize, height: usize, stream: Handle) -> Answer {
    let to = (to.0, to.1 as u64);
    let work = Work::Fill(to, vec![value as u8], width as u64, height as u64);
    on(stream as usize, work)
}

/// The place of a symbol, with room for so many bytes at an offset.
fn symbol(symbol: Data, len: usize, offset: usize) -> Result<u64, Code> {
    let (base, size) = state().variable(symbol as usize)?;
    let end = offset.checked_add(len).ok_or(INVALID_VALUE)?;
    match end as u64 <= size {
        true => Ok(base + offset as u64),
        false => Err(INVALID_VALUE),
    }
}

/// One end of a copy in three dimensions: address, bytes of a row, rows of a slice, bytes of an element.
fn end(array: Handle, at: Extent, pointer: Pitched) -> Result<(u64, u64, u64, u64), Code> {
    if array.is_null() {
        let (pitch, rows) = (pointer.pitch as u64, pointer.height as u64);
        let base = pointer.pointer as u64
            + at.width as u64
            + pitch * (at.height as u64 + rows * at.depth as u64);
        return Ok((base, pitch, rows, 1));
    }
    let (base, shape) = super::texture::array(array)?;
    let (pitch, rows) = (shape.width * shape.element, shape.height.max(1));
    let offset =
        at.width as u64 * shape.element + pitch * (at.height as u64 + rows * at.depth as u64);
    Ok((base + offset, pitch, rows, shape.element))
}

fn copy3d(params: &Copy3D, stream: Handle) -> Answer {
    let to = end(params.dst_array, params.dst_at, params.dst)?;
    let from = end(params.src_array, params.src_at, params.src)?;
    // With an array the width counts its elements.
    let width = params.extent.width as u64 * to.3.max(from.3);
    for slice in 0..params.extent.depth as u64 {
        let place =
            |(base, pitch, rows, _): (u64, u64, u64, u64)| (base + slice * pitch * rows, pitch);
        let work = Work::Copy(place(to), place(from), width, params.extent.height as u64);
        on(stream as usize, work)?;
    }
    Ok(())
}

/// The work of a copy node, if it has one slice.
///
/// # Safety
/// A description that the program filled.
pub unsafe fn copy_node(params: *const Copy3D) -> Result<Work, Code> {
    // SAFETY: as the caller says.
    let params = unsafe { get(params)? };
    if params.extent.depth > 1 {
        state().refuse("copy nodes of several slices");
        return Err(crate::abi::NOT_SUPPORTED);
    }
    let to = end(params.dst_array, params.dst_at, params.dst)?;
    let from = end(params.src_array, params.src_at, params.src)?;
    let width = params.extent.width as u64 * to.3.max(from.3);
    Ok(Work::Copy(
        (to.0, to.1),
        (from.0, from.1),
        width,
        params.extent.height as u64,
    ))
}

calls! {
    fn cudaMalloc(to: *mut Handle, len: usize) {
        // SAFETY: an output of this type.
        unsafe { allocate(to, len, Kind::Device) }
    }

    fn cudaMallocAsync | cudaMallocAsync_ptsz(to: *mut Handle, len: usize, _stream: Handle) {
        // SAFETY: as above.
        unsafe { allocate(to, len, Kind::Device) }
    }

    fn cudaMallocFromPoolAsync | cudaMallocFromPoolAsync_ptsz(to: *mut Handle, len: usize, _pool: Handle, _stream: Handle) {
        // SAFETY: as above.
        unsafe { allocate(to, len, Kind::Device) }
    }

    fn cudaMallocManaged(to: *mut Handle, len: usize, _flags: c_uint) {
        // SAFETY: as above.
        unsafe { allocate(to, len, Kind::Managed) }
    }

    fn cudaMallocHost(to: *mut Handle, len: usize) {
        // SAFETY: as above.
        unsafe { allocate(to, len, Kind::Host) }
    }

    fn cudaHostAlloc(to: *mut Handle, len: usize, _flags: c_uint) {
        // SAFETY: as above.
        unsafe { allocate(to, len, Kind::Host) }
    }

    fn cudaMallocPitch(to: *mut Handle, pitch: *mut usize, width: usize, height: usize) {
        // SAFETY: outputs of these types.
        unsafe { pitched(to, pitch, width, height) }
    }

    fn cudaMalloc3D(to: *mut Pitched, extent: Extent) {
        let rows = extent.height.checked_mul(extent.depth).ok_or(INVALID_VALUE)?;
        let (mut pointer, mut pitch) = (std::ptr::null_mut(), 0);
        // SAFETY: outputs of these types.
        unsafe {
            pitched(&raw mut pointer, &raw mut pitch, extent.width, rows)?;
            put(to, Pitched { pointer, pitch, width: extent.width, height: extent.height })
        }
    }

    fn cudaFree(pointer: Handle) { free(pointer) }

    fn cudaFreeAsync | cudaFreeAsync_ptsz(pointer: Handle, _stream: Handle) { free(pointer) }

    fn cudaFreeHost(pointer: Handle) { free(pointer) }

    fn cudaHostRegister(pointer: Handle, len: usize, _flags: c_uint) {
        state().arena.register(pointer as u64, len as u64)
    }

    fn cudaHostUnregister(pointer: Handle) { state().arena.free(pointer as u64) }

    fn cudaHostGetDevicePointer(to: *mut Handle, pointer: Handle, _flags: c_uint) {
        state().arena.find(pointer as u64).ok_or(INVALID_VALUE)?;
        // SAFETY: an output of this type.
        unsafe { put(to, pointer) }
    }

    fn cudaHostGetFlags(flags: *mut c_uint, pointer: Handle) {
        state().arena.find(pointer as u64).ok_or(INVALID_VALUE)?;
        // SAFETY: an output of this type.
        unsafe { put(flags, 0) }
    }

    fn cudaMemGetInfo(free: *mut usize, all: *mut usize) {
        let state = state();
        let (limit, held) = (state.arena.limit, state.arena.held);
        // SAFETY: outputs of this type.
        unsafe {
            put(free, limit.saturating_sub(held) as usize)?;
            put(all, limit as usize)
        }
    }

    fn cudaPointerGetAttributes(to: *mut PointerAttributes, pointer: Data) {
        let found = state().arena.find(pointer as u64);
        let kind = match found.map(|(_, block)| block.kind) {
            None => 0,
            Some(Kind::Host | Kind::Registered) => 1,
            Some(Kind::Device | Kind::Array | Kind::Variable) => 2,
            Some(Kind::Managed) => 3,
        };
        let value = PointerAttributes {
            kind,
            device: if kind == 0 { -2 } else { 0 },
            device_pointer: if kind == 0 { std::ptr::null_mut() } else { pointer.cast_mut() },
            host_pointer: if kind == 2 { std::ptr::null_mut() } else { pointer.cast_mut() },
            reserved: [0; 8],
        };
        // SAFETY: an output of this type.
        unsafe { put(to, value) }
    }

    fn cudaMemcpy | cudaMemcpy_ptds(to: Handle, from: Data, len: usize, _kind: c_int) {
        state().meet()?;
        flat(to as u64, from as u64, len, std::ptr::null_mut())
    }

    fn cudaMemcpyAsync | cudaMemcpyAsync_ptsz(to: Handle, from: Data, len: usize, _kind: c_int, stream: Handle) {
        flat(to as u64, from as u64, len, stream)
    }

    fn cudaMemcpyPeer(to: Handle, _device: c_int, from: Data, _peer: c_int, len: usize) {
        flat(to as u64, from as u64, len, std::ptr::null_mut())
    }

    fn cudaMemcpyPeerAsync(to: Handle, _device: c_int, from: Data, _peer: c_int, len: usize, stream: Handle) {
        flat(to as u64, from as u64, len, stream)
    }

    fn cudaMemcpy2D | cudaMemcpy2D_ptds(to: Handle, to_pitch: usize, from: Data, from_pitch: usize, width: usize, height: usize, _kind: c_int) {
        state().meet()?;
        rows((to as u64, to_pitch), (from as u64, from_pitch), width, height, std::ptr::null_mut())
    }

    fn cudaMemcpy2DAsync | cudaMemcpy2DAsync_ptsz(to: Handle, to_pitch: usize, from: Data, from_pitch: usize, width: usize, height: usize, _kind: c_int, stream: Handle) {
        rows((to as u64, to_pitch), (from as u64, from_pitch), width, height, stream)
    }

    fn cudaMemcpy3D | cudaMemcpy3D_ptds(params: *const Copy3D) {
        // SAFETY: a description that the program filled.
        let params = unsafe { get(params)? };
        copy3d(&params, std::ptr::null_mut())
    }

    fn cudaMemcpy3DAsync | cudaMemcpy3DAsync_ptsz(params: *const Copy3D, stream: Handle) {
        // SAFETY: as above.
        let params = unsafe { get(params)? };
        copy3d(&params, stream)
    }

    fn cudaMemset | cudaMemset_ptds(to: Handle, value: c_int, len: usize) {
        fill((to as u64, 0), value, len, 1, std::ptr::null_mut())
    }

    fn cudaMemsetAsync | cudaMemsetAsync_ptsz(to: Handle, value: c_int, len: usize, stream: Handle) {
        fill((to as u64, 0), value, len, 1, stream)
    }

    fn cudaMemset2D | cudaMemset2D_ptds(to: Handle, pitch: usize, value: c_int, width: usize, height: usize) {
        fill((to as u64, pitch), value, width, height, std::ptr::null_mut())
    }

    fn cudaMemset2DAsync | cudaMemset2DAsync_ptsz(to: Handle, pitch: usize, value: c_int, width: usize, height: usize, stream: Handle) {
        fill((to as u64, pitch), value, width, height, stream)
    }

    fn cudaMemset3D | cudaMemset3D_ptds(to: Pitched, value: c_int, extent: Extent) {
        for slice in 0..extent.depth {
            let base = to.pointer as u64 + (slice * to.pitch * to.height) as u64;
            fill((base, to.pitch), value, extent.width, extent.height, std::ptr::null_mut())?;
        }
        Ok(())
    }

    fn cudaMemcpyToSymbol | cudaMemcpyToSymbol_ptds(to: Data, from: Data, len: usize, offset: usize, _kind: c_int) {
        flat(symbol(to, len, offset)?, from as u64, len, std::ptr::null_mut())
    }

    fn cudaMemcpyToSymbolAsync | cudaMemcpyToSymbolAsync_ptsz(to: Data, from: Data, len: usize, offset: usize, _kind: c_int, stream: Handle) {
        flat(symbol(to, len, offset)?, from as u64, len, stream)
    }

    fn cudaMemcpyFromSymbol | cudaMemcpyFromSymbol_ptds(to: Handle, from: Data, len: usize, offset: usize, _kind: c_int) {
        state().meet()?;
        flat(to as u64, symbol(from, len, offset)?, len, std::ptr::null_mut())
    }

    fn cudaMemcpyFromSymbolAsync | cudaMemcpyFromSymbolAsync_ptsz(to: Handle, from: Data, len: usize, offset: usize, _kind: c_int, stream: Handle) {
        flat(to as u64, symbol(from, len, offset)?, len, stream)
    }

    fn cudaGetSymbolAddress(to: *mut Handle, symbol: Data) {
        let (base, _) = state().variable(symbol as usize)?;
        // SAFETY: an output of this type.
        unsafe { put(to, base as Handle) }
    }

    fn cudaGetSymbolSize(to: *mut usize, symbol: Data) {
        let (_, size) = state().variable(symbol as usize)?;
        // SAFETY: an output of this type.
        unsafe { put(to, size as usize) }
    }

    fn cudaMemPrefetchAsync | cudaMemPrefetchAsync_ptsz(_pointer: Data, _len: usize, _to: Location, _flags: c_uint, _stream: Handle) { Ok(()) }

    fn cudaMemAdvise(_pointer: Data, _len: usize, _advice: c_int, _to: Location) { Ok(()) }

    fn cudaStreamAttachMemAsync | cudaStreamAttachMemAsync_ptsz(_stream: Handle, _pointer: Data, _len: usize, _flags: c_uint) { Ok(()) }
}
