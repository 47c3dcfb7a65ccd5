//! Loads, stores and atomic operations.

use super::access::{Target, Trouble, address_of};
use super::block::Block;
use super::warp::Warp;
use crate::fault::FaultKind;
use crate::lanes::{Mask, WARP, lanes_of};
use crate::program::{Access, Atomic, Load, Src};
use crate::race::AccessKind;

impl Warp {
    /// `ld`.
    pub(super) fn load(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        mask: Mask,
        load: &Load,
    ) -> Result<(), Box<Trouble>> {
        match load.access.count {
            1 => self.load_elements::<1>(block, frame, mask, load),
            2 => self.load_elements::<2>(block, frame, mask, load),
            4 => self.load_elements::<4>(block, frame, mask, load),
            _ => self.load_elements::<8>(block, frame, mask, load),
        }
    }

    fn load_elements<const COUNT: usize>(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        mask: Mask,
        load: &Load,
    ) -> Result<(), Box<Trouble>> {
        let access = &load.access;
        let base = *self.value(block, frame, access.base);
        let mut results = [[0; WARP]; COUNT];
        for lane in lanes_of(mask) {
            let address = address_of(access, &base, lane);
            let target = self.target(block, frame, lane, access, address)?;
            for (i, result) in results.iter_mut().enumerate() {
                let at = (i as u32 * access.elem) as u64;
                let bits = self.read(block, target, lane, at, access.elem)?;
                result[lane] = if load.signed {
                    let unused = 64 - 8 * access.elem;
                    ((bits << unused) as i64 >> unused) as u64 & load.mask
                } else {
                    bits
                };
            }
        }
        for (dst, result) in load.dsts.iter().zip(&results) {
            if let Some(dst) = dst {
                self.set(frame, *dst, mask, result);
            }
        }
        Ok(())
    }

    /// `st`.
    pub(super) fn store(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        mask: Mask,
        access: &Access,
        srcs: &[Src],
    ) -> Result<(), Box<Trouble>> {
        let base = *self.value(block, frame, access.base);
        for lane in lanes_of(mask) {
            let address = address_of(access, &base, lane);
            let target = self.target(block, frame, lane, access, address)?;
            for (i, &src) in srcs.iter().enumerate() {
                let value = self.value(block, frame, src)[lane];
                let at = (i as u32 * access.elem) as u64;
                self.write(block, target, lane, at, access.elem, value)?;
                if block.check.registers {
                    self.store_undefined(block, frame, lane, src, target, (at, access.elem))?;
                }
            }
        }
        Ok(())
    }

    /// Storing an undefined value leaves memory of the block or thread undefined; in global
    /// memory it is a fault.
    fn store_undefined(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        lane: usize,
        src: Src,
        target: Target<'_>,
        (at, size): (u64, u32),
    ) -> Result<(), Box<Trouble>> {
        let Src::Reg(reg) = src else { return Ok(()) };
        let Err(trouble) = self.check_defined(frame, reg, 1 << lane) else {
            return Ok(());
        };
        match target {
            Target::Shared(offset) => block.shared.forget(offset + at, size),
            Target::Private(owner, space, offset) => {
                if let Some(owner) = self.frames.get_mut(owner) {
                    owner.private(space).forget(lane, offset + at, size);
                }
            }
            Target::Global(..) | Target::Kernel(_) => return Err(trouble),
        }
        Ok(())
    }

    /// `atom` and `red`.
    pub(super) fn atomic(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        mask: Mask,
        atomic: &Atomic,
    ) -> Result<(), Box<Trouble>> {
        self.may_spin = true;
        let access = &atomic.access;
        let size = access.elem;
        for (lane, target) in self.targets(block, frame, mask, access)? {
            for (i, &value) in atomic.value.iter().enumerate() {
                let value = self.value(block, frame, value)[lane];
                let second = atomic
                    .second
                    .map_or(0, |s| self.value(block, frame, s)[lane]);
                let at = (i as u32 * size) as u64;
                let old = match target {
                    Target::Global(allocation, offset) if !allocation.constant => {
                        let _exclusive = block.memory.lock_atomics();
                        let old = allocation.read(offset + at, size);
                        let f = atomic.f_global.as_ref().unwrap_or(&atomic.f);
                        allocation.write(offset + at, size, f(old, value, second));
                        old
                    }
                    Target::Shared(offset) => {
                        let offset = offset + at;
                        self.note_race(block, lane, offset, size, AccessKind::Atomic)?;
                        let old = block.shared.read(offset, size);
                        block
                            .shared
                            .write(offset, size, (atomic.f)(old, value, second));
                        old
                    }
                    _ => return Err(not_atomic(lane)),
                };
                if let (Some(&Some(dst)), Some(data)) =
                    (atomic.dsts.get(i), self.frames.get_mut(frame))
                {
                    data.set_lane(dst, lane, old);
                }
            }
        }
        Ok(())
    }

    /// 128-bit `atom`.
    #[expect(clippy::too_many_arguments, reason = "the instruction's operands")]
    pub(super) fn atomic128(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        mask: Mask,
        access: &Access,
        dst: [u32; 2],
        compare: Option<[Src; 2]>,
        value: [Src; 2],
    ) -> Result<(), Box<Trouble>> {
        self.may_spin = true;
        for (lane, target) in self.targets(block, frame, mask, access)? {
            let pair = |srcs: [Src; 2]| srcs.map(|s| self.value(block, frame, s)[lane]);
            let (new, compare) = (pair(value), compare.map(pair));
            let lock = match target {
                Target::Global(..) => Some(block.memory.lock_atomics()),
                Target::Shared(offset) => {
                    self.note_race(block, lane, offset, 16, AccessKind::Atomic)?;
                    None
                }
                _ => return Err(not_atomic(lane)),
            };
            let old = match target {
                Target::Global(a, offset) => [a.read(offset, 8), a.read(offset + 8, 8)],
                Target::Shared(offset) => [
                    block.shared.read(offset, 8),
                    block.shared.read(offset + 8, 8),
                ],
                _ => [0; 2],
            };
            if compare.is_none_or(|c| c == old) {
                for (i, value) in new.into_iter().enumerate() {
                    match target {
                        Target::Global(a, offset) => a.write(offset + 8 * i as u64, 8, value),
                        Target::Shared(offset) => {
                            block.shared.write(offset + 8 * i as u64, 8, value)
                        }
                        _ => {}
                    }
                }
            }
            drop(lock);
            if let Some(data) = self.frames.get_mut(frame) {
                data.set_lane(dst[0], lane, old[0]);
                data.set_lane(dst[1], lane, old[1]);
            }
        }
        Ok(())
    }
}

fn not_atomic(lane: usize) -> Box<Trouble> {
    let message = "an atomic operation outside global and shared memory";
    Trouble::new(FaultKind::BadOperand, lane, message)
}
