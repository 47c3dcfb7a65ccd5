//! Instructions that the lanes of a warp execute together: votes, shuffles, matches, reductions,
//! warp barriers and matrix operations.
//!
//! The lanes of a strand may name different member masks (cooperative groups do that): each group
//! of lanes with one mask is a collective of its own. A group whose members have not all come
//! waits; exited lanes count as come. Lanes that wait for partners at another place than theirs
//! never meet them, and the block's deadlock check reports it.

use super::access::Trouble;
use super::block::Block;
use super::warp::{Next, Wait, Warp};
use crate::fault::FaultKind;
use crate::lanes::{Lanes, Mask, WARP, lanes_of, mask_where};
use crate::program::{CollectiveOp, Members, ShuffleMode, Src, Vote};

impl Warp {
    /// Executes a collective instruction with the lanes of a strand that have come.
    pub fn collective(
        &mut self,
        block: &mut Block<'_>,
        current: usize,
        mask: Mask,
        members: Members,
        op: &CollectiveOp,
    ) -> Result<Next, Box<Trouble>> {
        let strand = self.strands[current].clone();
        let mut left = mask;
        let mut done: Mask = 0;
        while left != 0 {
            let first = Warp::first(left);
            let (wanted, group) = match members {
                Members::Present => (mask, mask),
                Members::All => (self.lanes, mask),
                Members::Mask(src) => {
                    let masks = self.value(block, strand.frame, src);
                    let wanted = masks[first] as Mask;
                    (wanted, left & mask_where(|l| masks[l] as Mask == wanted))
                }
            };
            left &= !group;
            if let Some(lane) = lanes_of(group & !wanted).next() {
                let message = format!("the lane is not in its own member mask {wanted:#010x}");
                return Err(Trouble::new(FaultKind::WarpDivergence, lane, message));
            }
            if matches!(op, CollectiveOp::WarpBarrier) {
                if wanted & self.live() & !group == 0 {
                    done |= group;
                } else {
                    self.split_waiting(current, group, Wait::WarpBarrier(wanted));
                }
            } else if wanted & self.live() & !group == 0 {
                self.perform(block, strand.frame, group, wanted, op)?;
                done |= group;
            } else {
                self.split_waiting(current, group, Wait::Collective);
            }
        }
        // Whoever is left on the strand has executed it, or was kept out by the guard.
        let waiting = mask & !done;
        if waiting == 0 {
            return Ok(Next::Fall);
        }
        match self.strands.get_mut(current) {
            Some(s) if s.mask & waiting == 0 && s.mask != 0 => s.pc += 1,
            _ => {}
        }
        self.drop_empty();
        Ok(Next::Reschedule)
    }

    /// Moves lanes into a strand of their own that waits at the same place.
    fn split_waiting(&mut self, current: usize, lanes: Mask, wait: Wait) {
        let Some(strand) = self.strands.get_mut(current) else {
            return;
        };
        if strand.mask == lanes {
            strand.wait = wait;
            return;
        }
        strand.mask &= !lanes;
        let part = super::warp::Strand {
            mask: lanes,
            wait,
            ..strand.clone()
        };
        self.strands.push(part);
    }

    fn perform(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        group: Mask,
        members: Mask,
        op: &CollectiveOp,
    ) -> Result<(), Box<Trouble>> {
        match op {
            CollectiveOp::WarpBarrier => {}
            CollectiveOp::Vote { kind, dst, src } => {
                let values = self.value(block, frame, *src);
                let votes = group & mask_where(|l| values[l] & 1 != 0);
                let result = match kind {
                    Vote::All => (votes == group) as u64,
                    Vote::Any => (votes != 0) as u64,
                    Vote::Uniform => (votes == group || votes == 0) as u64,
                    Vote::Ballot => votes as u64,
                };
                self.set(frame, *dst, group, &[result; WARP]);
            }
            CollectiveOp::Shuffle {
                mode,
                dst,
                pred,
                src,
                b,
                c,
            } => {
                let (result, in_range) =
                    self.shuffle(block, frame, group, members, *mode, [*src, *b, *c])?;
                if let Some(dst) = dst {
                    self.set(frame, *dst, group, &result);
                }
                if let Some(pred) = pred {
                    self.set(frame, *pred, group, &in_range);
                }
            }
            CollectiveOp::MatchAny { dst, src, wide } => {
                let values = narrowed(self.value(block, frame, *src), *wide);
                let result = Warp::per_lane(group, |l| {
                    (group & mask_where(|m| values[m] == values[l])) as u64
                });
                self.set(frame, *dst, group, &result);
            }
            CollectiveOp::MatchAll {
                dst,
                pred,
                src,
                wide,
            } => {
                let values = narrowed(self.value(block, frame, *src), *wide);
                let first = values[Warp::first(group)];
                let all = lanes_of(group).all(|l| values[l] == first);
                self.set(
                    frame,
                    *dst,
                    group,
                    &[if all { group as u64 } else { 0 }; WARP],
                );
                if let Some(pred) = pred {
                    self.set(frame, *pred, group, &[all as u64; WARP]);
                }
            }
            CollectiveOp::Redux { dst, src, f } => {
                let values = self.value(block, frame, *src);
                let result = lanes_of(group).map(|l| values[l]).reduce(f).unwrap_or(0);
                self.set(frame, *dst, group, &[result; WARP]);
            }
            CollectiveOp::Elect { dst, pred } => {
                let leader = Warp::first(group);
                if let Some(dst) = dst {
                    self.set(frame, *dst, group, &[leader as u64; WARP]);
                }
                self.set(
                    frame,
                    *pred,
                    group,
                    &Warp::per_lane(group, |l| (l == leader) as u64),
                );
            }
            CollectiveOp::Matrix(matrix) => {
                if group != Mask::MAX {
                    let message = "a matrix instruction needs all 32 lanes of the warp";
                    let lane = Warp::first(group);
                    return Err(Trouble::new(FaultKind::WarpDivergence, lane, message));
                }
                self.matrix(block, frame, matrix)?;
            }
        }
        Ok(())
    }

    /// `shfl` (PTX ISA, 'shfl.sync'): values, and whether the source lane was in range.
    fn shuffle(
        &self,
        block: &Block<'_>,
        frame: usize,
        group: Mask,
        members: Mask,
        mode: ShuffleMode,
        [src, b, c]: [Src; 3],
    ) -> Result<(Lanes, Lanes), Box<Trouble>> {
        let [values, b, c] = [src, b, c].map(|s| self.value(block, frame, s));
        let mut result = [0; WARP];
        let mut in_range = [0; WARP];
        for lane in lanes_of(group) {
            let distance = (b[lane] & 0x1f) as usize;
            let (clamp, segment) = ((c[lane] & 0x1f) as usize, (c[lane] >> 8 & 0x1f) as usize);
            let last = lane & segment | clamp & !segment;
            let first = lane & segment;
            let (from, valid) = match mode {
                ShuffleMode::Up => {
                    let from = lane.wrapping_sub(distance);
                    (from, lane as isize - distance as isize >= last as isize)
                }
                ShuffleMode::Down => (lane + distance, lane + distance <= last),
                ShuffleMode::Butterfly => (lane ^ distance, lane ^ distance <= last),
                ShuffleMode::Index => {
                    let from = first | distance & !segment;
                    (from, from <= last)
                }
            };
            let from = if valid { from } else { lane };
            in_range[lane] = valid as u64;
            if group >> from & 1 == 0 && block.options.loose_shuffles {
                result[lane] = UNDEFINED;
                continue;
            }
            if group >> from & 1 == 0 {
                let why = match (members >> from & 1, self.exited >> from & 1) {
                    (0, _) => "is not in the member mask",
                    (_, 1) => "has exited",
                    _ => "does not take part",
                };
                let message = format!("lane {lane} reads from lane {from}, which {why}");
                return Err(Trouble::new(FaultKind::InactiveLane, lane, message));
            }
            result[lane] = values[from] & 0xffff_ffff;
        }
        Ok((result, in_range))
    }
}

/// What stands for a value that is not defined.
const UNDEFINED: u64 = 0x7fc0_dead;

fn narrowed(values: &Lanes, wide: bool) -> Lanes {
    if wide {
        *values
    } else {
        values.map(|v| v & 0xffff_ffff)
    }
}
