//! Copies begun by `cp.async`.
//!
//! The data is read when the copy begins and appears in shared memory only when the thread waits
//! for it (or at its exit): as late as the ISA allows, so that a missing wait shows.

use std::collections::VecDeque;

use crate::lanes::{Mask, WARP};

/// One copy of one lane.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// Offset in shared memory.
    pub to: u64,
    pub bytes: Vec<u8>,
}

/// The copies of a warp's lanes that are not visible yet.
#[derive(Default)]
pub(crate) struct Copies {
    /// Committed groups of each lane, oldest first.
    groups: Vec<VecDeque<Vec<Copy>>>,
    /// Copies since the last commit of each lane.
    open: Vec<Vec<Copy>>,
}

impl Copies {
    pub fn begin(&mut self, lane: usize, copy: Copy) {
        self.open.resize_with(WARP, Vec::new);
        self.open[lane].push(copy);
    }

    pub fn commit(&mut self, mask: Mask) {
        self.open.resize_with(WARP, Vec::new);
        self.groups.resize_with(WARP, VecDeque::new);
        for lane in crate::lanes::lanes_of(mask) {
            self.groups[lane].push_back(std::mem::take(&mut self.open[lane]));
        }
    }

    /// The copies of all but a lane's `pending` youngest groups, in order.
    pub fn finish(&mut self, lane: usize, pending: usize) -> Vec<Copy> {
        let mut done = Vec::new();
        if let Some(groups) = self.groups.get_mut(lane) {
            while groups.len() > pending {
                done.extend(groups.pop_front().unwrap_or_default());
            }
        }
        done
    }

    /// All copies of a lane, committed or not.
    pub fn finish_all(&mut self, lane: usize) -> Vec<Copy> {
        let mut done = self.finish(lane, 0);
        if let Some(open) = self.open.get_mut(lane) {
            done.append(open);
        }
        done
    }
}
