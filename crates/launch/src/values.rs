//! The numbers of one launch, as whoever tests a guard has them.

/// One launch: its extents and the bytes of its parameters.
#[derive(Clone, Copy, Debug)]
pub struct LaunchValues<'a, P: ?Sized> {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z.
    pub block: [u32; 3],
    /// Blocks per cluster in x, y and z, the kernel's own where the launch states none; ones without clusters.
    pub cluster: [u32; 3],
    /// Dynamic shared memory in bytes per block.
    pub dynamic_smem: u32,
    /// The parameters.
    pub params: &'a P,
}

/// Parameters whose bytes can be read.
pub trait ParamBytes {
    /// The value of a field, zero-extended; `None` where the parameter or its bytes are not there.
    fn read(&self, field: Field) -> Option<u64>;
}

/// A scalar in a kernel's parameters: a parameter, or a member of a structure. It lies at a multiple of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    param: u16,
    at: u32,
    bytes: u8,
}

impl Field {
    /// The field of `bytes` (1, 2, 4 or 8) at byte `at` of a parameter, which are counted from 0. `None` for another
    /// size, or a place that is no multiple of it.
    pub fn new(param: u16, at: u32, bytes: u8) -> Option<Field> {
        let fits = matches!(bytes, 1 | 2 | 4 | 8) && at.is_multiple_of(bytes.into());
        fits.then_some(Field { param, at, bytes })
    }

    /// Which parameter, from 0.
    pub fn param(self) -> usize {
        self.param.into()
    }

    /// Its first byte in the parameter.
    pub fn at(self) -> usize {
        self.at as usize
    }

    /// Bytes: 1, 2, 4 or 8.
    pub fn bytes(self) -> usize {
        self.bytes.into()
    }

    /// Its largest value.
    pub fn most(self) -> u64 {
        u64::MAX >> (64 - 8 * u32::from(self.bytes))
    }

    /// Where `part` lies in it, in bits.
    pub(crate) fn shift_of(self, part: Field) -> Option<u32> {
        let end = |field: Field| field.at + u32::from(field.bytes);
        let is_inside = self.param == part.param && self.at <= part.at && end(part) <= end(self);
        is_inside.then(|| 8 * (part.at - self.at))
    }

    /// Its two halves, low one first.
    pub(crate) fn halves(self) -> Option<[Field; 2]> {
        let bytes = self.bytes / 2;
        let half = |at| Field::new(self.param, at, bytes);
        Some([half(self.at)?, half(self.at + u32::from(bytes))?])
    }

    /// Its value in the bytes of its parameter.
    pub fn of(self, param: &[u8]) -> Option<u64> {
        let bytes = param.get(self.at()..self.at() + self.bytes())?;
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(all))
    }

    /// Writes its value into the bytes of its parameter; `false` where they do not reach so far.
    pub(crate) fn write(self, param: &mut [u8], value: u64) -> bool {
        let place = param.get_mut(self.at()..self.at() + self.bytes());
        let Some(place) = place else { return false };
        place.copy_from_slice(&value.to_le_bytes()[..self.bytes()]);
        true
    }
}

impl<B: AsRef<[u8]>> ParamBytes for [B] {
    fn read(&self, field: Field) -> Option<u64> {
        field.of(self.get(field.param())?.as_ref())
    }
}

impl<B: AsRef<[u8]>> ParamBytes for Vec<B> {
    fn read(&self, field: Field) -> Option<u64> {
        self.as_slice().read(field)
    }
}

impl<B: AsRef<[u8]>, const N: usize> ParamBytes for [B; N] {
    fn read(&self, field: Field) -> Option<u64> {
        self.as_slice().read(field)
    }
}

/// Parameters in one buffer, as a launch may pass them.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    /// The buffer.
    pub bytes: &'a [u8],
    /// Of each parameter its first byte and its size.
    pub places: &'a [(u32, u32)],
}

impl ParamBytes for Packed<'_> {
    fn read(&self, field: Field) -> Option<u64> {
        let &(first, size) = self.places.get(field.param())?;
        let end = first.checked_add(size)?;
        field.of(self.bytes.get(first as usize..end as usize)?)
    }
}
