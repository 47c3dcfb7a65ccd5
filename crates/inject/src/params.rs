//! The parameters of a launch, as its caller passes them: pointers to their values, or a buffer.

use std::ffi::c_void;

use warpwright_launch::{Field, Packed, ParamBytes};
use warpwright_winners::fit::Place;

/// Pointers to the parameters' values, or another way to pass them.
pub type Params = *mut *mut c_void;

/// Parameters of a launch of a kernel whose parameters lie at `places`.
#[derive(Clone, Copy)]
pub struct Passed<'a> {
    /// Pointers to the values, or null.
    pub params: Params,
    /// The other way, or null.
    pub extra: Params,
    /// Of each parameter its first byte in the buffer, and its size.
    pub places: &'a [Place],
}

/// Can something lie there? A launch that the driver refuses may name what it does not read, and the first pages of the address
/// space are nobody's (`vm.mmap_min_addr`).
fn is_place<T>(at: *const T) -> bool {
    const FIRST: usize = 64 << 10;
    at.addr() >= FIRST
}

impl ParamBytes for Passed<'_> {
    #[inline]
    fn read(&self, field: Field) -> Option<u64> {
        let &(_, size) = self.places.get(field.param())?;
        if field.at() + field.bytes() > size as usize {
            return None;
        }
        if self.params.is_null() {
            let bytes = buffer(self.extra)??;
            let places = self.places;
            return Packed { bytes, places }.read(field);
        }
        if !is_place(self.params) {
            return None;
        }
        // SAFETY: as many pointers as the kernel has parameters, each to as many bytes: the driver reads them next.
        unsafe {
            let value = *self.params.add(field.param());
            if !is_place(value) {
                return None;
            }
            let at = value.cast::<u8>().add(field.at());
            Some(match field.bytes() {
                1 => at.read().into(),
                2 => at.cast::<u16>().read_unaligned().into(),
                4 => at.cast::<u32>().read_unaligned().into(),
                _ => at.cast::<u64>().read_unaligned(),
            })
        }
    }
}

impl Passed<'_> {
    /// The bytes as the driver packs them; `None` where they are not all there.
    pub fn packed(&self) -> Option<Vec<u8>> {
        let ends = self.places.iter().map(|&(at, size)| at + size);
        let length = ends.max().unwrap_or(0) as usize;
        if self.params.is_null() {
            let bytes = match length {
                0 => &[],
                _ => buffer(self.extra)??,
            };
            return bytes.get(..length).map(<[u8]>::to_vec);
        }
        if !is_place(self.params) {
            return None;
        }
        let mut all = vec![0; length];
        for (index, &(at, size)) in self.places.iter().enumerate() {
            let (at, size) = (at as usize, size as usize);
            // SAFETY: as many pointers as the kernel has parameters, each to as many bytes: the driver reads them next.
            unsafe {
                let value = *self.params.add(index);
                if !is_place(value) {
                    return None;
                }
                let value = std::slice::from_raw_parts(value.cast::<u8>(), size);
                all[at..at + size].copy_from_slice(value);
            }
        }
        Some(all)
    }
}

/// Bytes of the longest buffer; the driver takes up to 32,764 bytes of parameters.
const LONGEST: usize = 64 << 10;

/// The buffer among a launch's `extra`; `None` where they hold something unknown, or what no driver takes. Pairs of a number (1: the buffer, 2:
/// a pointer to its size) and a pointer, up to a zero.
pub fn buffer<'a>(extra: Params) -> Option<Option<&'a [u8]>> {
    let (mut start, mut bytes) = (std::ptr::null::<u8>(), 0usize);
    let mut at = extra;
    // SAFETY: what the driver is to read.
    unsafe {
        while is_place(at) && !(*at).is_null() {
            let value = *at.add(1);
            match *at as usize {
                1 if is_place(value) => start = value.cast(),
                2 if is_place(value) => bytes = *value.cast::<usize>(),
                _ => return None,
            }
            at = at.add(2);
        }
        if bytes > LONGEST {
            return None;
        }
        let has_one = !start.is_null();
        Some(has_one.then(|| std::slice::from_raw_parts(start, bytes)))
    }
}
