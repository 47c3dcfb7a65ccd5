//! Reads and writes of textures and surfaces.

use super::access::Trouble;
use super::block::Block;
use super::warp::Warp;
use crate::fault::FaultKind;
use crate::lanes::{Mask, WARP, lanes_of};
use crate::memory::{Memory, TEXTURE_LIMIT};
use crate::program::{Beyond, SurfaceOp, TextureOp};
use crate::texture::{Geometry, Texture};

/// The object that a number names, if it has the dimensions of the access.
fn object(
    memory: &Memory,
    number: u64,
    geometry: Geometry,
    lane: usize,
) -> Result<&Texture, Box<Trouble>> {
    let wrong = |message: &str| Trouble::new(FaultKind::BadOperand, lane, message);
    let found = memory.textures.get(&number);
    let found =
        found.ok_or_else(|| wrong("there is no texture or surface object of this number"))?;
    match found.has(geometry) {
        true => Ok(found),
        false => Err(wrong("the texture or surface object has other dimensions")),
    }
}

/// Bits at an address.
fn bytes(memory: &Memory, lane: usize, address: u64, size: u32) -> Result<u64, Box<Trouble>> {
    match memory.find(address, size.into()) {
        Some((allocation, offset)) => Ok(allocation.read(offset, size)),
        None => Err(Trouble::new(
            FaultKind::OutOfBounds,
            lane,
            "a texel lies outside of the memory of its texture",
        )),
    }
}

impl Warp {
    /// `tex`.
    pub(super) fn texture(
        &mut self,
        block: &Block<'_>,
        frame: usize,
        mask: Mask,
        op: &TextureOp,
    ) -> Result<(), Box<Trouble>> {
        let numbers = *self.value(block, frame, op.object);
        let mut results = [[0; WARP]; 4];
        for lane in lanes_of(mask) {
            let texture = object(block.memory, numbers[lane], op.geometry, lane)?;
            if texture.is_linear_memory != op.by_element || texture.gives_floats() != op.floats {
                let message = "a texture is read in another way than its object says";
                return Err(Trouble::new(FaultKind::BadOperand, lane, message));
            }
            let mut coordinates = [0; TEXTURE_LIMIT];
            for (to, &src) in coordinates.iter_mut().zip(&op.coordinates) {
                *to = self.value(block, frame, src)[lane];
            }
            let read = &mut |address, size| bytes(block.memory, lane, address, size);
            let texel = match op.by_element {
                true => texture.element(coordinates[0] as i32, read)?,
                false => texture.read(op.geometry, &coordinates, read)?,
            };
            for (result, channel) in results.iter_mut().zip(texel) {
                result[lane] = channel.into();
            }
        }
        for (dst, result) in op.dsts.iter().zip(&results) {
            if let Some(dst) = dst {
                self.set(frame, *dst, mask, result);
            }
        }
        Ok(())
    }

    /// `suld.b`, `sust.b`: x counts bytes.
    pub(super) fn surface(
        &mut self,
        block: &Block<'_>,
        frame: usize,
        mask: Mask,
        op: &SurfaceOp,
    ) -> Result<(), Box<Trouble>> {
        let numbers = *self.value(block, frame, op.object);
        let size = u64::from(op.elem) * op.dsts.len().max(op.srcs.len()) as u64;
        let mut results = [[0; WARP]; 4];
        for lane in lanes_of(mask) {
            let surface = object(block.memory, numbers[lane], op.geometry, lane)?;
            let mut all = [0_i64; TEXTURE_LIMIT];
            for (to, &src) in all.iter_mut().zip(&op.coordinates) {
                *to = self.value(block, frame, src)[lane] as i32 as i64;
            }
            let Some(address) = placed(surface, op, all, size, lane)? else {
                continue;
            };
            let count = op.dsts.len().max(op.srcs.len());
            for (at, result) in results.iter_mut().enumerate().take(count) {
                let place = address + at as u64 * u64::from(op.elem);
                let Some((allocation, offset)) = block.memory.find(place, op.elem.into()) else {
                    let message = "a texel lies outside of the memory of its surface";
                    return Err(Trouble::new(FaultKind::OutOfBounds, lane, message));
                };
                match op.srcs.get(at) {
                    Some(&src) => {
                        let value = self.value(block, frame, src)[lane];
                        allocation.write(offset, op.elem, value);
                    }
                    None => result[lane] = allocation.read(offset, op.elem),
                }
            }
        }
        for (dst, result) in op.dsts.iter().zip(&results) {
            if let Some(dst) = dst {
                self.set(frame, *dst, mask, result);
            }
        }
        Ok(())
    }
}

/// Where an access of a surface goes; none where it has no effect and reads zeros.
fn placed(
    surface: &Texture,
    op: &SurfaceOp,
    coordinates: [i64; TEXTURE_LIMIT],
    size: u64,
    lane: usize,
) -> Result<Option<u64>, Box<Trouble>> {
    let (layer, rest) = match op.geometry.is_layered {
        true => (coordinates[0], &coordinates[1..]),
        false => (0, &coordinates[..]),
    };
    let [width, height, depth] = surface.extent.map(|n| i64::from(n.max(1)));
    let row = width * surface.texel() as i64;
    let [y, z] = match op.geometry.dimensions {
        1 => [0, 0],
        2 => [rest[1], 0],
        _ => [rest[1], rest[2]],
    };
    let z = if op.geometry.is_layered { layer } else { z };
    let mut at = [rest[0], y, z];
    if at[0].rem_euclid(size as i64) != 0 {
        let message = "an access of a surface is not aligned";
        return Err(Trouble::new(FaultKind::Misaligned, lane, message));
    }
    let last = [row - size as i64, height - 1, depth - 1];
    let is_inside = at
        .iter()
        .zip(last)
        .all(|(at, last)| (0..=last).contains(at));
    match op.beyond {
        _ if is_inside => {}
        Beyond::Zero => return Ok(None),
        Beyond::Clamp => at
            .iter_mut()
            .zip(last)
            .for_each(|(at, last)| *at = (*at).clamp(0, last.max(0))),
        Beyond::Trap => {
            let message = "an access beyond a surface traps";
            return Err(Trouble::new(FaultKind::OutOfBounds, lane, message));
        }
    }
    let start = surface.address([0, at[1] as u32, at[2] as u32]);
    Ok(Some(start + at[0] as u64))
}
