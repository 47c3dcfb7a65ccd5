//! Shared memory of a block.

use crate::program::Layout;
use crate::race::Races;

/// The shared memory of one block.
pub(crate) struct Shared {
    bytes: Vec<u8>,
    pub layout: Layout,
    /// Which bytes have been written, if that is checked.
    written: Option<Vec<bool>>,
    /// The race detector, if races are checked.
    pub races: Option<Races>,
}

impl Shared {
    /// Memory of this layout, filled with a pattern.
    pub fn new(layout: Layout, fill: u8, check_uninitialised: bool, warps: Option<usize>) -> Self {
        let len = layout.len as usize;
        Shared {
            bytes: vec![fill; len],
            written: check_uninitialised.then(|| vec![false; len]),
            races: warps.map(|warps| Races::new(len, warps)),
            layout,
        }
    }

    /// Does an access lie inside one variable?
    #[inline(always)]
    pub fn holds(&self, offset: u64, size: u64) -> bool {
        self.layout.find(offset, size).is_some()
    }

    /// Has every byte been written? True if that is not checked.
    #[inline(always)]
    pub fn is_written(&self, offset: u64, size: u64) -> bool {
        let Some(written) = &self.written else {
            return true;
        };
        written
            .get(offset as usize..(offset + size) as usize)
            .is_some_and(|w| w.iter().all(|&w| w))
    }

    /// Makes bytes count as never written.
    pub fn forget(&mut self, offset: u64, size: u32) {
        if let Some(written) = &mut self.written {
            written
                .iter_mut()
                .skip(offset as usize)
                .take(size as usize)
                .for_each(|w| *w = false);
        }
    }

    /// Reads up to 8 bytes that [`holds`](Self::holds) has confirmed.
    #[inline(always)]
    pub fn read(&self, offset: u64, size: u32) -> u64 {
        read_le(&self.bytes, offset as usize, size as usize)
    }

    /// Writes up to 8 bytes that [`holds`](Self::holds) has confirmed.
    #[inline(always)]
    pub fn write(&mut self, offset: u64, size: u32, value: u64) {
        write_le(&mut self.bytes, offset as usize, size as usize, value);
        if let Some(written) = &mut self.written {
            written
                .iter_mut()
                .skip(offset as usize)
                .take(size as usize)
                .for_each(|w| *w = true);
        }
    }
}

/// Reads a little-endian number; zero outside the slice.
#[inline(always)]
pub(crate) fn read_le(bytes: &[u8], at: usize, size: usize) -> u64 {
    let get = |n| bytes.get(at..at + n);
    match size {
        4 => get(4)
            .and_then(|b| b.try_into().ok())
            .map_or(0, u32::from_le_bytes) as u64,
        8 => get(8)
            .and_then(|b| b.try_into().ok())
            .map_or(0, u64::from_le_bytes),
        n => get(n).map_or(0, |b| {
            b.iter()
                .rev()
                .fold(0, |value, &byte| value << 8 | byte as u64)
        }),
    }
}

/// Writes a little-endian number; nothing outside the slice.
#[inline(always)]
pub(crate) fn write_le(bytes: &mut [u8], at: usize, size: usize, value: u64) {
    if let Some(place) = bytes.get_mut(at..at + size) {
        match size {
            4 => place.copy_from_slice(&(value as u32).to_le_bytes()),
            8 => place.copy_from_slice(&value.to_le_bytes()),
            _ => place.copy_from_slice(&value.to_le_bytes()[..size]),
        }
    }
}
