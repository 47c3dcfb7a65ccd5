//! A call frame: the registers and private memory of one activation of a function, for the lanes
//! of a warp that entered it together.

use crate::lanes::{Lanes, Mask, WARP};
use crate::memory::shared::{read_le, write_le};
use crate::program::Function;

/// Bytes that fill registers and memory before they are written: a pattern that makes a use of
/// them stand out, the same in every run.
pub(crate) const POISON: u8 = 0xa5;

/// A call frame.
pub(crate) struct Frame {
    /// Number of the function.
    pub function: usize,
    pub regs: Vec<Lanes>,
    /// Lanes in which each register has been written; empty if that is not checked.
    defined: Vec<Mask>,
    /// First address of this frame's `.local` variables.
    pub local_base: u64,
    local: Private,
    param: Private,
    /// The caller's frame and the place to return to; `None` in the kernel.
    pub caller: Option<Caller>,
    /// Lanes that have not returned.
    pub active: Mask,
    /// Number of callers above.
    pub depth: u32,
}

/// Who called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub frame: usize,
    /// The call instruction.
    pub pc: u32,
}

/// Memory that each lane has for itself, lane by lane.
struct Private {
    bytes: Vec<u8>,
    size: usize,
    /// Bytes written; empty if that is not checked.
    written: Vec<bool>,
}

impl Private {
    fn new(size: u64, check: bool) -> Self {
        let size = size as usize;
        let written = if check {
            vec![false; size * WARP]
        } else {
            Vec::new()
        };
        Private {
            bytes: vec![POISON; size * WARP],
            size,
            written,
        }
    }

    fn read(&self, lane: usize, offset: u64, size: u32) -> u64 {
        read_le(
            &self.bytes,
            lane * self.size + offset as usize,
            size as usize,
        )
    }

    fn write(&mut self, lane: usize, offset: u64, size: u32, value: u64) {
        let at = lane * self.size + offset as usize;
        write_le(&mut self.bytes, at, size as usize, value);
        self.written
            .iter_mut()
            .skip(at)
            .take(size as usize)
            .for_each(|w| *w = true);
    }

    fn is_written(&self, lane: usize, offset: u64, size: u64) -> bool {
        let at = lane * self.size + offset as usize;
        self.written
            .get(at..at + size as usize)
            .is_none_or(|w| w.iter().all(|&w| w))
    }

    fn forget(&mut self, lane: usize, offset: u64, size: u32) {
        let at = lane * self.size + offset as usize;
        self.written
            .iter_mut()
            .skip(at)
            .take(size as usize)
            .for_each(|w| *w = false);
    }

    fn copy(&self, lane: usize, offset: u64, len: u64) -> &[u8] {
        let at = lane * self.size + offset as usize;
        self.bytes.get(at..at + len as usize).unwrap_or(&[])
    }

    fn paste(&mut self, lane: usize, offset: u64, bytes: &[u8]) {
        let at = lane * self.size + offset as usize;
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.written
            .iter_mut()
            .skip(at)
            .take(bytes.len())
            .for_each(|w| *w = true);
    }
}

impl Frame {
    /// A frame of a function for these lanes. `check` keeps track of what has been written.
    pub fn new(
        number: usize,
        function: &Function,
        lanes: Mask,
        caller: Option<(Caller, &Frame)>,
        check: Check,
    ) -> Self {
        let poison = u64::from_ne_bytes([POISON; 8]);
        let local_base = caller.map_or(0, |(_, above)| above.local_end());
        Frame {
            function: number,
            regs: vec![[poison; WARP]; function.regs],
            defined: if check.registers {
                vec![0; function.regs]
            } else {
                Vec::new()
            },
            local_base: local_base.next_multiple_of(256),
            local: Private::new(function.local.len, check.memory),
            param: Private::new(function.param.len, check.memory),
            caller: caller.map(|(caller, _)| caller),
            active: lanes,
            depth: caller.map_or(0, |(_, above)| above.depth + 1),
        }
    }

    /// One past the last address of its `.local` variables.
    pub fn local_end(&self) -> u64 {
        self.local_base + self.local.size as u64
    }

    /// Writes lanes of a register.
    #[inline(always)]
    pub fn set(&mut self, reg: u32, mask: Mask, values: &Lanes) {
        let Some(target) = self.regs.get_mut(reg as usize) else {
            return;
        };
        if mask == Mask::MAX {
            *target = *values;
        } else {
            for (lane, target) in target.iter_mut().enumerate() {
                if mask >> lane & 1 != 0 {
                    *target = values[lane];
                }
            }
        }
    }

    /// Writes one lane of a register.
    #[inline(always)]
    pub fn set_lane(&mut self, reg: u32, lane: usize, value: u64) {
        if let Some(target) = self.regs.get_mut(reg as usize) {
            target[lane] = value;
        }
    }

    /// Lanes of a mask in which a register has not been written.
    pub fn undefined(&self, reg: u32, mask: Mask) -> Mask {
        mask & !self.defined.get(reg as usize).copied().unwrap_or(Mask::MAX)
    }

    /// Marks lanes of a register as written, or not.
    pub fn mark(&mut self, reg: u32, mask: Mask, defined: bool) {
        if let Some(lanes) = self.defined.get_mut(reg as usize) {
            *lanes = if defined {
                *lanes | mask
            } else {
                *lanes & !mask
            };
        }
    }

    /// A view of one of the two private memories.
    pub fn private(&mut self, which: PrivateSpace) -> PrivateView<'_> {
        PrivateView(match which {
            PrivateSpace::Local => &mut self.local,
            PrivateSpace::Param => &mut self.param,
        })
    }

    /// Bytes of a `.param` variable of one lane.
    pub fn param_bytes(&self, lane: usize, offset: u64, len: u64) -> &[u8] {
        self.param.copy(lane, offset, len)
    }
}

/// What to keep track of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Check {
    pub registers: bool,
    pub memory: bool,
}

/// The state spaces that are private to a thread and live in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrivateSpace {
    Local,
    Param,
}

/// Access to a private memory, offsets from the frame's own base.
pub(crate) struct PrivateView<'a>(&'a mut Private);

impl PrivateView<'_> {
    pub fn read(&self, lane: usize, offset: u64, size: u32) -> u64 {
        self.0.read(lane, offset, size)
    }

    pub fn write(&mut self, lane: usize, offset: u64, size: u32, value: u64) {
        self.0.write(lane, offset, size, value);
    }

    pub fn paste(&mut self, lane: usize, offset: u64, bytes: &[u8]) {
        self.0.paste(lane, offset, bytes);
    }

    /// Makes bytes count as never written.
    pub fn forget(&mut self, lane: usize, offset: u64, size: u32) {
        self.0.forget(lane, offset, size);
    }

    pub fn is_written(&self, lane: usize, offset: u64, size: u64) -> bool {
        self.0.is_written(lane, offset, size)
    }
}
