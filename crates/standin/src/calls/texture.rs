//! Arrays, and objects that textures and surfaces are read through. Kernels run that read what has one level and no faces;
//! of others the trace says so.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_ulonglong};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use warpwright_emu::{Addressing, Channel as Held, Texture};

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
    depth: u64,
    channel: Channel,
    flags: c_uint,
}

/// Flags of arrays: layers, and the six faces of a cube.
const LAYERED: c_uint = 1;
const CUBE: c_uint = 4;

/// `cudaResourceDesc`: an array, or memory.
#[repr(C)]
#[derive(Clone, Copy)]
struct Resource {
    kind: c_int,
    /// The array, or the memory.
    place: u64,
    channel: Channel,
    /// Bytes of linear memory; or width, height in elements, and bytes of a row.
    sizes: [usize; 3],
}

/// Kinds of resources.
const ARRAY: c_int = 0;
const LINEAR: c_int = 2;
const PITCHED: c_int = 3;

/// `cudaTextureDesc`, as far as it is read.
#[repr(C)]
#[derive(Clone, Copy)]
struct Sampler {
    addressing: [c_int; 3],
    filter: c_int,
    read: c_int,
    srgb: c_int,
    border: [f32; 4],
    normalised: c_int,
}

impl Sampler {
    /// What a surface does not have.
    const NONE: Sampler = Sampler {
        addressing: [1; 3],
        filter: 0,
        read: 0,
        srgb: 0,
        border: [0.0; 4],
        normalised: 0,
    };
}

/// What a channel description says: how many there are, their bits, and what they hold.
fn channels(of: Channel) -> Option<(u32, u32, Held)> {
    let held = match of.kind {
        0 => Held::Signed,
        1 => Held::Unsigned,
        2 => Held::Float,
        _ => return None,
    };
    let count = of.bits.iter().take_while(|&&bits| bits > 0).count() as u32;
    let bits = u32::try_from(of.bits[0]).ok()?;
    let is_same = of.bits[..count as usize]
        .iter()
        .all(|&own| own == of.bits[0]);
    let is_known = matches!(count, 1 | 2 | 4) && matches!(bits, 8 | 16 | 32);
    (is_same && is_known && (held, bits) != (Held::Float, 8)).then_some((count, bits, held))
}

/// A texture or a surface; or what about it is not stood in for.
fn texture(resource: &Resource, sampler: &Sampler) -> Result<Texture, &'static str> {
    let number = |n: u64| u32::try_from(n).map_err(|_| "a texture of that size");
    let (base, channel, extent, pitch, is_layered) = match resource.kind {
        ARRAY => {
            let (base, shape) = array(resource.place as Handle).map_err(|_| "no array")?;
            if shape.flags & CUBE != 0 {
                return Err("cube maps");
            }
            let extent = [shape.width, shape.height, shape.depth];
            (
                base,
                shape.channel,
                extent,
                shape.width * shape.element,
                shape.flags & LAYERED != 0,
            )
        }
        LINEAR | PITCHED => {
            let (_, bits, _) = channels(resource.channel).ok_or("a format of texels")?;
            let texel = u64::from(bits) / 8
                * resource.channel.bits.iter().filter(|&&n| n > 0).count() as u64;
            let [first, height, pitch] = resource.sizes.map(|n| n as u64);
            match resource.kind {
                LINEAR => (
                    resource.place,
                    resource.channel,
                    [first / texel.max(1), 0, 0],
                    first,
                    false,
                ),
                _ => (
                    resource.place,
                    resource.channel,
                    [first, height, 0],
                    pitch,
                    false,
                ),
            }
        }
        _ => return Err("mipmaps"),
    };
    let (count, bits, held) = channels(channel).ok_or("a format of texels")?;
    let addressing = |mode| match mode {
        0 => Ok(Addressing::Wrap),
        1 => Ok(Addressing::Clamp),
        2 => Ok(Addressing::Mirror),
        3 => Ok(Addressing::Border),
        _ => Err("an addressing mode"),
    };
    let [x, y, z] = sampler.addressing.map(addressing);
    let reads_normalised = sampler.read == 1 && held != Held::Float;
    let is_filtered = sampler.filter == 1 && resource.kind != LINEAR;
    let is_integer = held != Held::Float && !reads_normalised;
    match () {
        () if sampler.srgb != 0 => return Err("sRGB textures"),
        () if is_filtered && is_integer => return Err("filtered integers"),
        () if reads_normalised && bits == 32 => return Err("normalised integers of 32 bits"),
        () => {}
    }
    Ok(Texture {
        base,
        extent: [number(extent[0])?, number(extent[1])?, number(extent[2])?],
        is_layered,
        is_linear_memory: resource.kind == LINEAR,
        pitch,
        channels: count,
        bits,
        channel: held,
        addressing: [x?, y?, z?],
        is_filtered,
        reads_normalised,
        is_normalised: sampler.normalised != 0,
        border: sampler.border,
    })
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
unsafe fn allocate(
    to: *mut Handle,
    channel: *const Channel,
    extent: Extent,
    flags: c_uint,
) -> Answer {
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
        depth,
        channel,
        flags,
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

/// Makes an object; what is not stood in for has a number all the same.
///
/// # Safety
/// A description of this type, and an output.
unsafe fn object(
    to: *mut c_ulonglong,
    resource: Data,
    sampler: &Sampler,
    has_view: bool,
) -> Answer {
    // SAFETY: as the caller says.
    let resource = unsafe { get(resource.cast::<Resource>())? };
    let made = match has_view {
        true => Err("views of textures"),
        false => texture(&resource, sampler),
    };
    let number = OBJECTS.fetch_add(1, Relaxed);
    let mut state = state();
    match made {
        Ok(texture) => state.arena.device.put_texture(number, texture),
        Err(what) => state.unread_texture = Some(what),
    }
    // SAFETY: as above.
    unsafe { put(to, number) }
}

calls! {
    fn cudaMallocArray(to: *mut Handle, channel: *const Channel, width: usize, height: usize, flags: c_uint) {
        let extent = Extent { width, height, depth: 0 };
        // SAFETY: a description, and an output of this type.
        unsafe { allocate(to, channel, extent, flags) }
    }

    fn cudaMalloc3DArray(to: *mut Handle, channel: *const Channel, extent: Extent, flags: c_uint) {
        // SAFETY: as above.
        unsafe { allocate(to, channel, extent, flags) }
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

    fn cudaCreateTextureObject(to: *mut c_ulonglong, resource: Data, texture: Data, view: Data) {
        // SAFETY: descriptions, and an output of this type.
        unsafe {
            let sampler = get(texture.cast::<Sampler>())?;
            object(to, resource, &sampler, !view.is_null())
        }
    }

    fn cudaDestroyTextureObject(number: c_ulonglong) {
        state().arena.device.remove_texture(number);
        Ok(())
    }

    fn cudaCreateSurfaceObject(to: *mut c_ulonglong, resource: Data) {
        // SAFETY: a description, and an output of this type.
        unsafe { object(to, resource, &Sampler::NONE, false) }
    }

    fn cudaDestroySurfaceObject(number: c_ulonglong) {
        state().arena.device.remove_texture(number);
        Ok(())
    }
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
