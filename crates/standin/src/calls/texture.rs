//! Arrays, and objects that textures and surfaces are read through. Kernels that read them are not run: the emulator
//! refuses them by name.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_ulonglong};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::{calls, get, put};
use crate::abi::{Channel, Code, Data, Extent, Handle, INVALID_RESOURCE_HANDLE, INVALID_VALUE};
use crate::graphs::{Work, on};
use crate::memory::Kind;
use crate::state::{Answer, state};

/// The extent of an array in elements, and the bytes of one.
#[derive(Clone, Copy)]
pub struct Shape {
    pub width: u64,
    pub height: u64,
    pub element: u64,
}

static SHAPES: Mutex<BTreeMap<u64, Shape>> = Mutex::new(BTreeMap::new());

/// Where an array lies, and its shape.
pub fn array(handle: Handle) -> Result<(u64, Shape), Code> {
    let shapes = SHAPES
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let shape = shapes.get(&(handle as u64)).copied();
    Ok((handle as u64, shape.ok_or(INVALID_RESOURCE_HANDLE)?))
}

/// # Safety
/// A channel description, and an output of this type.
unsafe fn allocate(to: *mut Handle, channel: *const Channel, extent: Extent) -> Answer {
    // SAFETY: as the caller says.
    let channel = unsafe { get(channel)? };
    let element = channel.bits.iter().sum::<c_int>() as u64 / 8;
    let [width, height, depth] = [extent.width, extent.height, extent.depth].map(|n| n as u64);
    let rows = height.max(1).checked_mul(depth.max(1));
    let len = rows.and_then(|rows| rows.checked_mul(width)?.checked_mul(element));
    let base = state()
        .arena
        .allocate(len.filter(|&n| n > 0).ok_or(INVALID_VALUE)?, Kind::Array)?;
    let shape = Shape {
        width,
        height,
        element,
    };
    let mut shapes = SHAPES
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    shapes.insert(base, shape);
    // SAFETY: as above.
    unsafe { put(to, base as Handle) }
}

/// Where bytes of a row begin in an array, and its pitch.
fn place(handle: Handle, x: usize, y: usize) -> Result<(u64, u64), Code> {
    let (base, shape) = array(handle)?;
    let pitch = shape.width * shape.element;
    Ok((base + x as u64 + y as u64 * pitch, pitch))
}

/// Objects of textures and surfaces count from 1, as they do on a device: a kernel may be given their numbers.
static OBJECTS: AtomicU64 = AtomicU64::new(1);

/// # Safety
/// An output of this type.
unsafe fn object(to: *mut c_ulonglong) -> Answer {
    let number = OBJECTS.fetch_add(1, Relaxed);
    // SAFETY: as the caller says.
    unsafe { put(to, number) }
}

calls! {
    fn cudaMallocArray(to: *mut Handle, channel: *const Channel, width: usize, height: usize, _flags: c_uint) {
        let extent = Extent { width, height, depth: 0 };
        // SAFETY: a description, and an output of this type.
        unsafe { allocate(to, channel, extent) }
    }

    fn cudaMalloc3DArray(to: *mut Handle, channel: *const Channel, extent: Extent, _flags: c_uint) {
        // SAFETY: as above.
        unsafe { allocate(to, channel, extent) }
    }

    fn cudaFreeArray(array: Handle) {
        match array.is_null() {
            true => Ok(()),
            false => state().arena.free(array as u64),
        }
    }

    fn cudaMemcpyToArray | cudaMemcpyToArray_ptds(to: Handle, x: usize, y: usize, from: Data, len: usize, _kind: c_int) {
        let (to, _) = place(to, x, y)?;
        on(0, Work::Copy((to, 0), (from as u64, 0), len as u64, 1))
    }

    fn cudaMemcpy2DToArray | cudaMemcpy2DToArray_ptds(to: Handle, x: usize, y: usize, from: Data, pitch: usize, width: usize, height: usize, _kind: c_int) {
        on(0, Work::Copy(place(to, x, y)?, (from as u64, pitch as u64), width as u64, height as u64))
    }

    fn cudaMemcpy2DToArrayAsync | cudaMemcpy2DToArrayAsync_ptsz(to: Handle, x: usize, y: usize, from: Data, pitch: usize, width: usize, height: usize, _kind: c_int, stream: Handle) {
        on(stream as usize, Work::Copy(place(to, x, y)?, (from as u64, pitch as u64), width as u64, height as u64))
    }

    fn cudaMemcpyFromArray | cudaMemcpyFromArray_ptds(to: Handle, from: Handle, x: usize, y: usize, len: usize, _kind: c_int) {
        let (from, _) = place(from, x, y)?;
        on(0, Work::Copy((to as u64, 0), (from, 0), len as u64, 1))
    }

    fn cudaMemcpy2DFromArray | cudaMemcpy2DFromArray_ptds(to: Handle, pitch: usize, from: Handle, x: usize, y: usize, width: usize, height: usize, _kind: c_int) {
        on(0, Work::Copy((to as u64, pitch as u64), place(from, x, y)?, width as u64, height as u64))
    }

    fn cudaCreateTextureObject(to: *mut c_ulonglong, _resource: Data, _texture: Data, _view: Data) {
        // SAFETY: an output of this type.
        unsafe { object(to) }
    }

    fn cudaDestroyTextureObject(_object: c_ulonglong) { Ok(()) }

    fn cudaCreateSurfaceObject(to: *mut c_ulonglong, _resource: Data) {
        // SAFETY: an output of this type.
        unsafe { object(to) }
    }

    fn cudaDestroySurfaceObject(_object: c_ulonglong) { Ok(()) }
}

#[unsafe(no_mangle)]
extern "C" fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    kind: c_int,
) -> Channel {
    Channel {
        bits: [x, y, z, w],
        kind,
    }
}
