//! Races on shared memory between the warps of a block, by vector clocks (FastTrack: Flanagan and
//! Freund, PLDI 2009, with warps in the place of threads).
//!
//! A warp's own accesses are ordered. Barriers order what came before an arrival ahead of what
//! comes after the wait; atomic operations on shared memory, and mbarriers, pass the clock of
//! every earlier user of the same word on to the next. Divergent lanes of one warp are not told
//! apart.

/// Per-warp logical times.
type Clock = Box<[u32]>;

/// The detector's state for one block.
pub(crate) struct Races {
    /// What each warp knows of the others' progress.
    warps: Vec<Clock>,
    /// Last write of each byte: warp and its time (time 0: never).
    writes: Vec<(u8, u32)>,
    /// Last read of each byte by each warp, where there was one.
    reads: Vec<Option<Clock>>,
    /// Clocks carried by synchronising words, by byte offset.
    words: std::collections::BTreeMap<u64, Clock>,
}

/// How an access takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Read,
    Write,
    /// Atomic operations do not race with each other, and synchronise.
    Atomic,
}

impl Races {
    pub fn new(bytes: usize, warps: usize) -> Self {
        let clock = |warp: usize| {
            let mut clock = vec![0; warps].into_boxed_slice();
            if let Some(own) = clock.get_mut(warp) {
                *own = 1;
            }
            clock
        };
        Races {
            warps: (0..warps).map(clock).collect(),
            writes: vec![(0, 0); bytes],
            reads: vec![None; bytes],
            words: Default::default(),
        }
    }

    /// Notes an access. The warp that it races with, if there is one.
    pub fn access(
        &mut self,
        warp: usize,
        offset: u64,
        size: u64,
        kind: AccessKind,
    ) -> Option<usize> {
        if kind == AccessKind::Atomic {
            self.acquire(warp, offset);
        }
        let mut rival = None;
        for byte in offset as usize..(offset + size) as usize {
            rival = rival.or(self.byte(warp, byte, kind));
        }
        if kind == AccessKind::Atomic {
            self.release(warp, offset);
        }
        rival
    }

    fn byte(&mut self, warp: usize, byte: usize, kind: AccessKind) -> Option<usize> {
        let known = self.warps.get(warp)?;
        let (writer, time) = *self.writes.get(byte)?;
        let writer = writer as usize;
        let mut rival = (known.get(writer).copied().unwrap_or(0) < time).then_some(writer);
        let now = known.get(warp).copied().unwrap_or(0);
        let warps = known.len();
        let reads = self.reads.get_mut(byte)?;
        if kind == AccessKind::Read {
            let reads = reads.get_or_insert_with(|| vec![0; warps].into_boxed_slice());
            if let Some(own) = reads.get_mut(warp) {
                *own = now;
            }
        } else {
            let unknown = |(&read, &known): (&u32, &u32)| read > known;
            let unseen = reads
                .as_ref()
                .and_then(|r| r.iter().zip(known).position(unknown));
            rival = rival.or(unseen);
            *reads = None;
            if let Some(write) = self.writes.get_mut(byte) {
                *write = (warp as u8, now);
            }
        }
        rival
    }

    /// The warp learns what the word's last users knew.
    pub fn acquire(&mut self, warp: usize, word: u64) {
        if let (Some(clock), Some(own)) = (self.words.get(&word), self.warps.get_mut(warp)) {
            join(own, clock);
        }
    }

    /// The word learns what the warp knows; the warp's time moves on.
    pub fn release(&mut self, warp: usize, word: u64) {
        let Some(own) = self.warps.get_mut(warp) else {
            return;
        };
        match self.words.entry(word) {
            std::collections::btree_map::Entry::Occupied(mut entry) => join(entry.get_mut(), own),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(own.clone());
            }
        }
        if let Some(time) = own.get_mut(warp) {
            *time += 1;
        }
    }

    /// A barrier completed: everyone who waited knows what everyone who arrived knew.
    pub fn barrier(&mut self, arrived: &[usize], waiting: &[usize]) {
        let mut all = vec![0; self.warps.len()].into_boxed_slice();
        for &warp in arrived {
            if let Some(clock) = self.warps.get(warp) {
                join(&mut all, clock);
            }
        }
        for &warp in waiting {
            if let Some(clock) = self.warps.get_mut(warp) {
                join(clock, &all);
            }
        }
        for &warp in arrived {
            if let Some(time) = self
                .warps
                .get_mut(warp)
                .and_then(|clock| clock.get_mut(warp))
            {
                *time += 1;
            }
        }
    }
}

fn join(into: &mut [u32], from: &[u32]) {
    for (a, b) in into.iter_mut().zip(from) {
        *a = (*a).max(*b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessKind::*;

    #[test]
    fn a_write_races_with_an_unordered_read_or_write() {
        let mut races = Races::new(16, 3);
        assert_eq!(races.access(0, 0, 4, Write), None);
        assert_eq!(races.access(0, 0, 4, Read), None);
        assert_eq!(races.access(1, 3, 1, Read), Some(0));
        assert_eq!(races.access(1, 4, 4, Read), None);
        assert_eq!(races.access(2, 4, 1, Write), Some(1));
    }

    #[test]
    fn barriers_order_those_who_take_part() {
        let mut races = Races::new(16, 3);
        races.access(0, 0, 4, Write);
        races.barrier(&[0, 1], &[0, 1]);
        assert_eq!(races.access(1, 0, 4, Read), None);
        assert_eq!(races.access(2, 0, 4, Read), Some(0));
        // A write after the barrier is not covered by it.
        races.access(0, 8, 4, Write);
        assert_eq!(races.access(1, 8, 4, Read), Some(0));
    }

    #[test]
    fn an_arrival_without_a_wait_orders_one_way() {
        let mut races = Races::new(16, 2);
        races.access(0, 0, 4, Write);
        races.barrier(&[0, 1], &[1]);
        assert_eq!(races.access(1, 0, 4, Read), None);
        races.access(1, 8, 4, Write);
        assert_eq!(races.access(0, 8, 4, Read), Some(1));
    }

    #[test]
    fn atomics_synchronise_and_race_only_with_plain_accesses() {
        let mut races = Races::new(16, 2);
        races.access(0, 0, 4, Write);
        assert_eq!(races.access(0, 8, 4, Atomic), None);
        assert_eq!(races.access(1, 8, 4, Atomic), None);
        assert_eq!(races.access(1, 0, 4, Read), None);
        assert_eq!(races.access(0, 8, 4, Write), Some(1));
    }
}
