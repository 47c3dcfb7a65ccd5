//! `cp.async`, `cp.async.bulk` and mbarriers in their synchronous meaning.

use super::access::{Target, Trouble};
use super::block::Block;
use super::copies::Copy;
use super::warp::{Next, Warp};
use crate::fault::FaultKind;
use crate::lanes::{Mask, lanes_of};
use crate::memory::mbarrier::State;
use crate::program::{Access, CopyAsync, CopyBulk, MbarrierOp, Src};
use crate::race::AccessKind;

impl Warp {
    /// Begins copies; see [`super::copies`] for when they end.
    pub fn copy_async(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        mask: Mask,
        copy: &CopyAsync,
    ) -> Result<(), Box<Trouble>> {
        let total = copy.dst.bytes();
        let to = self.targets(block, frame, mask, &copy.dst)?;
        for (lane, target) in to {
            let Target::Shared(offset) = target else {
                return Err(bad(
                    lane,
                    "the destination of `cp.async` is not in shared memory",
                ));
            };
            let ignored = copy
                .ignore
                .is_some_and(|p| self.value(block, frame, p)[lane] & 1 != 0);
            let size = match copy.src_size {
                _ if ignored => 0,
                Some(size) => self.value(block, frame, size)[lane] & 0xffff_ffff,
                None => total,
            };
            if size > total {
                return Err(bad(
                    lane,
                    format!("a source of {size} bytes for a copy of {total}"),
                ));
            }
            let mut bytes = vec![0; total as usize];
            if size > 0 {
                // Only the bytes read have to exist; the address is aligned to the whole copy.
                let source = Access {
                    elem: 1,
                    count: size as u32,
                    ..copy.src
                };
                for (_, from) in self.targets(block, frame, 1 << lane, &source)? {
                    if !matches!(from, Target::Global(of, _) if !of.constant) {
                        let what = "the source of `cp.async` is not in global memory";
                        return Err(bad(lane, what));
                    }
                    for (at, byte) in bytes.iter_mut().enumerate().take(size as usize) {
                        *byte = self.read(block, from, lane, at as u64, 1)? as u8;
                    }
                }
            }
            self.copies.begin(lane, Copy { to: offset, bytes });
        }
        Ok(())
    }

    fn deliver(
        &self,
        block: &mut Block<'_>,
        lane: usize,
        copies: Vec<Copy>,
    ) -> Result<(), Box<Trouble>> {
        for copy in copies {
            for (at, byte) in copy.bytes.iter().enumerate() {
                let offset = copy.to + at as u64;
                self.note_race(block, lane, offset, 1, AccessKind::Write)?;
                block.shared.write(offset, 1, *byte as u64);
            }
        }
        Ok(())
    }

    /// `cp.async.wait_group` and `wait_all`.
    pub fn wait_group(
        &mut self,
        block: &mut Block<'_>,
        mask: Mask,
        pending: u32,
    ) -> Result<(), Box<Trouble>> {
        for lane in lanes_of(mask) {
            let done = match pending {
                u32::MAX => self.copies.finish_all(lane),
                n => self.copies.finish(lane, n as usize),
            };
            self.deliver(block, lane, done)?;
        }
        Ok(())
    }

    /// Ends the copies of lanes that exit.
    pub fn finish_copies(&mut self, block: &mut Block<'_>, mask: Mask) -> Result<(), Box<Trouble>> {
        for lane in lanes_of(mask) {
            let done = self.copies.finish_all(lane);
            self.deliver(block, lane, done)?;
        }
        Ok(())
    }

    /// An operation on mbarrier objects.
    pub fn mbarrier(
        &mut self,
        block: &mut Block<'_>,
        current: usize,
        mask: Mask,
        access: &Access,
        op: &MbarrierOp,
    ) -> Result<Next, Box<Trouble>> {
        let frame = self.strands[current].frame;
        if let MbarrierOp::PendingCount { dst, state } = op {
            let tokens = *self.value(block, frame, *state);
            let pending = |l: usize| State::unpack(tokens[l]).map_or(0, |s| s.pending as u64);
            let values = Warp::per_lane(mask, pending);
            self.set(frame, *dst, mask, &values);
            return Ok(Next::Fall);
        }
        let mut all_done = true;
        for (lane, target) in self.targets(block, frame, mask, access)? {
            let Target::Shared(offset) = target else {
                return Err(bad(lane, "an mbarrier object outside shared memory"));
            };
            all_done &= self.mbarrier_lane(block, frame, lane, offset, op)?;
        }
        // A waiting loop must not keep the others from arriving.
        if matches!(op, MbarrierOp::Test { .. }) && !all_done {
            self.strands[current].pc += 1;
            return Ok(Next::Yield);
        }
        Ok(Next::Fall)
    }

    fn mbarrier_lane(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        lane: usize,
        offset: u64,
        op: &MbarrierOp,
    ) -> Result<bool, Box<Trouble>> {
        let value = |warp: &Warp, block: &Block<'_>, src: Src| warp.value(block, frame, src)[lane];
        if let MbarrierOp::Init { count } = op {
            let count = value(self, block, *count) & 0xffff_ffff;
            let Some(state) = State::new(count) else {
                return Err(bad_barrier(lane, format!("a count of {count} arrivals")));
            };
            self.note_race(block, lane, offset, 8, AccessKind::Write)?;
            block.shared.write(offset, 8, state.pack());
            return Ok(true);
        }
        if let MbarrierOp::CopyArrive { .. } = op {
            let done = self.copies.finish_all(lane);
            self.deliver(block, lane, done)?;
        }
        let Some(mut state) = State::unpack(block.shared.read(offset, 8)) else {
            return Err(bad_barrier(
                lane,
                "an mbarrier object that is not initialised",
            ));
        };
        if let (MbarrierOp::Test { dst, token, parity }, races) = (op, &mut block.shared.races) {
            if let Some(races) = races {
                races.acquire(self.index, offset);
            }
            let token = value(self, block, *token);
            // Waiting for a phase: it is complete when the current one has the other parity.
            let awaited = if *parity {
                token & 1 != 0
            } else {
                token >> 62 & 1 != 0
            };
            let complete = state.parity != awaited;
            if let Some(data) = self.frames.get_mut(frame) {
                data.set_lane(*dst, lane, complete as u64);
            }
            return Ok(complete);
        }
        if let Some(races) = &mut block.shared.races {
            races.release(self.index, offset);
        }
        let before = state.pack();
        let fine = match op {
            MbarrierOp::Arrive {
                count,
                expect,
                drop,
                ..
            } => {
                let expect = expect.map_or(0, |e| value(self, block, e) & 0xffff_ffff);
                let count = count.map_or(1, |c| value(self, block, c) & 0xffff_ffff);
                state.expect(expect as i64) && state.arrive(count, *drop)
            }
            MbarrierOp::ExpectTx { bytes } => {
                state.expect((value(self, block, *bytes) & 0xffff_ffff) as i64)
            }
            MbarrierOp::CompleteTx { bytes } => {
                state.transact(-((value(self, block, *bytes) & 0xffff_ffff) as i64))
            }
            MbarrierOp::CopyArrive { no_increment } => {
                *no_increment && state.arrive(1, false) || !no_increment
            }
            _ => true,
        };
        if !fine {
            let message = "more arrivals than are pending, or too many transaction bytes";
            return Err(bad_barrier(lane, message));
        }
        let word = if matches!(op, MbarrierOp::Invalidate) {
            0
        } else {
            state.pack()
        };
        block.shared.write(offset, 8, word);
        if let MbarrierOp::Arrive {
            state: Some(dst), ..
        } = op
            && let Some(data) = self.frames.get_mut(frame)
        {
            data.set_lane(*dst, lane, before);
        }
        Ok(true)
    }

    /// `cp.async.bulk`: at once, and counted off its mbarrier.
    pub fn copy_bulk(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        mask: Mask,
        copy: &CopyBulk,
    ) -> Result<(), Box<Trouble>> {
        for lane in lanes_of(mask) {
            let size = self.value(block, frame, copy.size)[lane] & 0xffff_ffff;
            if !size.is_multiple_of(16) {
                return Err(bad(
                    lane,
                    format!("a bulk copy of {size} bytes, no multiple of 16"),
                ));
            }
            let one = |access: Access| Access {
                elem: 1,
                count: size as u32,
                align: 16,
                ..access
            };
            let only = 1 << lane;
            let from = self.targets(block, frame, only, &one(copy.src))?;
            let to = self.targets(block, frame, only, &one(copy.dst))?;
            for ((_, from), (_, to)) in from.into_iter().zip(to) {
                for at in (0..size).step_by(8) {
                    let word = self.read(block, from, lane, at, 8)?;
                    self.write(block, to, lane, at, 8, word)?;
                }
            }
            if let Some(mbarrier) = copy.mbarrier {
                for (_, target) in self.targets(block, frame, only, &mbarrier)? {
                    let Target::Shared(offset) = target else {
                        return Err(bad(lane, "an mbarrier object outside shared memory"));
                    };
                    let Some(mut state) = State::unpack(block.shared.read(offset, 8)) else {
                        return Err(bad_barrier(
                            lane,
                            "an mbarrier object that is not initialised",
                        ));
                    };
                    if !state.transact(-(size as i64)) {
                        return Err(bad_barrier(lane, "too many transaction bytes"));
                    }
                    if let Some(races) = &mut block.shared.races {
                        races.release(self.index, offset);
                    }
                    block.shared.write(offset, 8, state.pack());
                }
            }
        }
        Ok(())
    }
}

fn bad(lane: usize, message: impl Into<String>) -> Box<Trouble> {
    Trouble::new(FaultKind::BadOperand, lane, message)
}

fn bad_barrier(lane: usize, message: impl Into<String>) -> Box<Trouble> {
    Trouble::new(FaultKind::BadBarrier, lane, message)
}
