//! Texture and surface objects: which texel a coordinate means, and what is made of texels.
//!
//! Source: CUDA C++ Programming Guide, "Texture Fetching" (nearest-point sampling, linear filtering with weights in 9-bit
//! fixed point of which 8 bits are the fraction, addressing modes) and "Texture and Surface Memory" (normalised reads, what lies
//! outside of linear memory is zero); PTX ISA, `tex`, `suld`, `sust` (coordinates, clamping of surfaces). The hardware's
//! own precision in filtering is not documented, so that filtered texels count as approximate.

use crate::arith::narrow::F16;

/// What a channel holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Integers with a sign.
    Signed,
    /// Integers without one.
    Unsigned,
    /// Floating-point numbers of 16 or 32 bits.
    Float,
}

/// What a coordinate outside of a dimension means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// The texture again; with coordinates that are not normalised, [`Clamp`](Self::Clamp).
    Wrap,
    /// The texel at the border.
    Clamp,
    /// The texture mirrored; with coordinates that are not normalised, [`Clamp`](Self::Clamp).
    Mirror,
    /// The border's colour.
    Border,
}

/// A texture or a surface, and how a texture is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Texture {
    /// Where its first texel lies.
    pub base: u64,
    /// Texels along x, y and z; 0 for a dimension that it does not have.
    pub extent: [u32; 3],
    /// Its last dimension counts layers, which are not filtered.
    pub is_layered: bool,
    /// Linear memory: read by integers, and zero outside.
    pub is_linear_memory: bool,
    /// Bytes from a row to the next.
    pub pitch: u64,
    /// Channels of a texel: 1, 2 or 4.
    pub channels: u32,
    /// Bits of a channel: 8, 16 or 32.
    pub bits: u32,
    /// What a channel holds.
    pub channel: Channel,
    /// By dimension.
    pub addressing: [Addressing; 3],
    /// Texels are filtered, not picked.
    pub is_filtered: bool,
    /// Integers are read as numbers from 0 or -1 to 1.
    pub reads_normalised: bool,
    /// Coordinates go from 0 to 1.
    pub is_normalised: bool,
    /// What lies outside, with [`Addressing::Border`].
    pub border: [f32; 4],
}

/// The dimensions of an access, as instructions name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Dimensions with coordinates.
    pub dimensions: usize,
    /// A layer is named first.
    pub is_layered: bool,
}

/// Weights have so many parts.
const PARTS: f32 = 256.0;

impl Texture {
    /// Bytes of a texel.
    pub(crate) fn texel(&self) -> u64 {
        u64::from(self.channels * self.bits / 8)
    }

    /// Is it what an access of these dimensions reads?
    pub(crate) fn has(&self, geometry: Geometry) -> bool {
        let [_, y, z] = self.extent;
        let dimensions = match (y, z, self.is_layered) {
            (0, ..) => 1,
            (_, 0, _) | (.., true) => 2,
            _ => 3,
        };
        (dimensions, self.is_layered) == (geometry.dimensions, geometry.is_layered)
    }

    /// Where a texel lies.
    pub(crate) fn address(&self, at: [u32; 3]) -> u64 {
        let rows = u64::from(self.extent[1].max(1));
        let row = u64::from(at[1]) + rows * u64::from(at[2]);
        self.base + row * self.pitch + u64::from(at[0]) * self.texel()
    }

    /// The texel that an index along a dimension means; none outside.
    fn index(&self, dimension: usize, at: i64) -> Option<u32> {
        let size = i64::from(self.extent[dimension].max(1));
        let inside = (0..size).contains(&at).then_some(at);
        let found = match (self.addressing[dimension], self.is_normalised) {
            (Addressing::Border, _) => inside?,
            (Addressing::Wrap, true) => at.rem_euclid(size),
            (Addressing::Mirror, true) => {
                let turn = at.rem_euclid(2 * size);
                turn.min(2 * size - 1 - turn)
            }
            _ => at.clamp(0, size - 1),
        };
        u32::try_from(found).ok()
    }

    /// The indices that a coordinate along a dimension is made of, and the weight of the second.
    fn along(&self, dimension: usize, coordinate: f32) -> (i64, f32) {
        let size = self.extent[dimension].max(1) as f32;
        let mut x = match self.is_normalised {
            true => coordinate * size,
            false => coordinate,
        };
        if x.is_nan() {
            x = 0.0;
        }
        // Far beyond every texture.
        x = x.clamp(-1e9, 1e9);
        match self.is_filtered {
            false => (x.floor() as i64, 0.0),
            true => {
                let x = x - 0.5;
                let whole = x.floor();
                // The nearest of the parts; a whole one is the next texel alone.
                (
                    whole as i64,
                    ((x - whole) * PARTS).round_ties_even() / PARTS,
                )
            }
        }
    }

    /// A layer by its number: those outside are the first or the last.
    fn layer(&self, layer: u64) -> u32 {
        (layer as u32).min(self.extent[2].max(1) - 1)
    }

    /// What is read at coordinates: channels as bits of 32-bit registers. `bytes` reads so many at an address.
    pub(crate) fn read<E>(
        &self,
        geometry: Geometry,
        coordinates: &[u64],
        bytes: &mut dyn FnMut(u64, u32) -> Result<u64, E>,
    ) -> Result<[u32; 4], E> {
        let (layer, coordinates) = match (geometry.is_layered, coordinates) {
            (true, [layer, rest @ ..]) => (self.layer(*layer), rest),
            (_, all) => (0, all),
        };
        let mut corners = vec![([0_u32; 3], 1.0_f32, true)];
        for dimension in 0..geometry.dimensions {
            let bits = coordinates.get(dimension).copied().unwrap_or(0);
            let (first, weight) = self.along(dimension, f32::from_bits(bits as u32));
            let mut next = Vec::with_capacity(2 * corners.len());
            for (at, own, is_inside) in corners {
                for (index, part) in [(first, 1.0 - weight), (first + 1, weight)] {
                    if part == 0.0 {
                        continue;
                    }
                    let (mut at, found) = (at, self.index(dimension, index));
                    at[dimension] = found.unwrap_or(0);
                    next.push((at, own * part, is_inside && found.is_some()));
                }
            }
            corners = next;
        }
        if geometry.is_layered {
            corners.iter_mut().for_each(|(at, ..)| at[2] = layer);
        }
        if let [(at, _, is_inside)] = corners[..] {
            return match is_inside {
                true => self.fetched(self.address(at), bytes),
                false => Ok(self.outside()),
            };
        }
        let mut sum = [0.0_f64; 4];
        for (at, weight, is_inside) in corners {
            let texel = match is_inside {
                true => self.fetched(self.address(at), bytes)?,
                false => self.outside(),
            };
            for (sum, bits) in sum.iter_mut().zip(texel) {
                *sum += f64::from(weight) * f64::from(f32::from_bits(bits));
            }
        }
        Ok(sum.map(|sum| (sum as f32).to_bits()))
    }

    /// The texel of linear memory at an index; zeros outside.
    pub(crate) fn element<E>(
        &self,
        index: i32,
        bytes: &mut dyn FnMut(u64, u32) -> Result<u64, E>,
    ) -> Result<[u32; 4], E> {
        match u32::try_from(index) {
            Ok(index) if index < self.extent[0] => self.fetched(self.address([index, 0, 0]), bytes),
            _ => Ok([0; 4]),
        }
    }

    fn outside(&self) -> [u32; 4] {
        match self.gives_floats() {
            true => self.border.map(f32::to_bits),
            false => self.border.map(|n| n as i64 as u32),
        }
    }

    pub(crate) fn gives_floats(&self) -> bool {
        self.channel == Channel::Float || self.reads_normalised
    }

    /// The channels of a texel; zeros for those that it does not have.
    fn fetched<E>(
        &self,
        address: u64,
        bytes: &mut dyn FnMut(u64, u32) -> Result<u64, E>,
    ) -> Result<[u32; 4], E> {
        let mut all = [0; 4];
        let size = self.bits / 8;
        for (at, channel) in all.iter_mut().enumerate().take(self.channels as usize) {
            let place = address + at as u64 * u64::from(size);
            *channel = self.decoded(bytes(place, size)? as u32);
        }
        Ok(all)
    }

    /// A channel's bits as they are read.
    fn decoded(&self, bits: u32) -> u32 {
        let unused = 32 - self.bits;
        let signed = ((bits << unused) as i32) >> unused;
        match (self.channel, self.reads_normalised) {
            (Channel::Float, _) if self.bits == 16 => F16(bits as u16).widen().to_bits(),
            (Channel::Float, _) | (Channel::Unsigned, false) => bits,
            (Channel::Signed, false) => signed as u32,
            (Channel::Unsigned, true) => {
                let most = u32::MAX >> unused;
                (bits as f32 / most as f32).to_bits()
            }
            (Channel::Signed, true) => {
                let most = (u32::MAX >> unused) >> 1;
                (signed as f32 / most as f32).max(-1.0).to_bits()
            }
        }
    }
}
