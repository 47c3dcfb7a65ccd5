//! Launches that were computed before on the same memory are not computed again: what they wrote then is written. Programs
//! that measure launch the same again and again, and the budget then lasts to their end.
//!
//! The same is: function, extents, parameters, and the bytes of all allocations, by their digests. A kernel with the device
//! heap behind it has more memory than that, so that nothing is taken for the same from then on.

use std::collections::BTreeMap;

use warpwright_emu::{Extents, Spent};

use crate::launch::Call;
use crate::memory::Digests;

/// Bytes whose digest takes as long as one warp instruction in the emulator.
const DIGESTED: u64 = 200;
/// Work of a launch that is worth a look at memory.
const WORTH: u64 = 1000;
/// So many looks in a row that find no launch like it are the last ones.
const MOST_MISSES: u32 = 6;
/// Bytes of what launches wrote that are kept.
const KEPT: u64 = 256 << 20;

/// What tells calls apart.
type Key = (
    usize,
    [u32; 3],
    [u32; 3],
    Option<[u32; 3]>,
    u32,
    bool,
    Option<Vec<u8>>,
);

/// What a launch did.
#[derive(Clone)]
pub struct Done {
    pub spent: Spent,
    /// The allocations that were others behind it, by their addresses: digests and bytes.
    pub written: BTreeMap<u64, (String, Vec<u8>)>,
}

/// Launches of a kind.
#[derive(Default)]
struct Known {
    /// Work of the last one that ran.
    work: u64,
    misses: u32,
    /// By what memory held.
    done: BTreeMap<Digests, Done>,
}

/// Launches so far.
#[derive(Default)]
pub struct Again {
    known: BTreeMap<Key, Known>,
    kept: u64,
    has_heap: bool,
}

fn key(call: &Call) -> Key {
    let Extents {
        grid,
        block,
        cluster,
        dynamic_smem,
    } = call.extents;
    let params = call.params.clone();
    (
        call.function,
        grid,
        block,
        cluster,
        dynamic_smem,
        call.cooperative,
        params,
    )
}

/// Work that a digest of so many bytes counts as.
pub fn price(bytes: u64) -> u64 {
    bytes / DIGESTED
}

impl Again {
    /// A kernel has used the device heap.
    pub fn heap(&mut self) {
        self.has_heap = true;
    }

    /// Is it worth the digest of so many bytes to know whether a call is like one before?
    pub fn is_worth(&self, call: &Call, bytes: u64) -> bool {
        let known = self.known.get(&key(call)).filter(|_| !self.has_heap);
        known.is_some_and(|known| {
            known.work >= price(bytes).max(WORTH) && known.misses < MOST_MISSES
        })
    }

    /// What the same call did on the same memory.
    pub fn done(&mut self, call: &Call, before: &Digests) -> Option<Done> {
        let known = self.known.get_mut(&key(call))?;
        let found = known.done.get(before).cloned();
        known.misses = if found.is_some() { 0 } else { known.misses + 1 };
        found
    }

    /// A call ran.
    pub fn ran(&mut self, call: &Call, work: u64) {
        self.known.entry(key(call)).or_default().work = work;
    }

    /// What it did, of what memory held before.
    pub fn keep(&mut self, call: &Call, before: Digests, done: Done) {
        let bytes = done.written.values().map(|(_, bytes)| bytes.len() as u64);
        let kept = self.kept.saturating_add(bytes.sum());
        if kept <= KEPT {
            self.kept = kept;
            self.known
                .entry(key(call))
                .or_default()
                .done
                .insert(before, done);
        }
    }
}
