//! Device memory: global and constant allocations behind guard gaps.
//!
//! Every allocation has a slot of 16 GiB to itself and lies in the middle of it, so an address
//! that runs off an allocation by less than 8 GiB hits nothing and still tells whose it was. The
//! first slots are the windows through which generic addresses reach the other state spaces:
//!
//! | slot | holds |
//! |---|---|
//! | 0 | nothing (null pointers) |
//! | 1 | shared memory of the block |
//! | 2 | local memory of the thread |
//! | 3 | kernel parameters |
//! | 4 | functions (for indirect calls) |
//! | 5… | `.global` and `.const` variables, then buffers |
//!
//! Storage is 32-bit atomics with relaxed ordering, so that blocks can run on several cores
//! without locks; on the hosts we know these are plain moves.

pub(crate) mod image;
pub(crate) mod mbarrier;
pub(crate) mod shared;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::texture::Texture;

/// Log2 of a slot's size.
pub(crate) const SLOT_BITS: u32 = 34;
/// First address of the shared window.
pub const SHARED_WINDOW: u64 = 1 << SLOT_BITS;
/// First address of the local window.
pub const LOCAL_WINDOW: u64 = 2 << SLOT_BITS;
/// First address of the window of kernel parameters.
pub const PARAM_WINDOW: u64 = 3 << SLOT_BITS;
/// Addresses of functions: this plus 16 times the function's number.
pub const FUNCTION_WINDOW: u64 = 4 << SLOT_BITS;
/// The first slot for allocations.
const FIRST_SLOT: u64 = 5;

/// What a generic address points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Shared memory, at this offset.
    Shared(u64),
    /// Local memory, at this offset.
    Local(u64),
    /// Kernel parameters, at this offset.
    Param(u64),
    /// Global or constant memory, or nothing.
    Global,
}

/// Splits a generic address.
#[inline(always)]
pub fn window(address: u64) -> Window {
    let offset = address & ((1 << SLOT_BITS) - 1);
    match address >> SLOT_BITS {
        1 => Window::Shared(offset),
        2 => Window::Local(offset),
        3 => Window::Param(offset),
        _ => Window::Global,
    }
}

/// The address of allocation number `index` (global and constant memory alike).
pub fn slot_address(index: usize) -> u64 {
    ((FIRST_SLOT + index as u64) << SLOT_BITS) + (1 << (SLOT_BITS - 1))
}

/// Where the bytes of an allocation are.
enum Words {
    Own(Box<[AtomicU32]>),
    /// Somebody else's, who sees what kernels write.
    Lent(&'static [AtomicU32]),
}

/// The slot that an address lies in.
#[inline(always)]
fn slot_of(address: u64) -> Option<usize> {
    let index = (address >> SLOT_BITS).checked_sub(FIRST_SLOT)?;
    usize::try_from(index).ok()
}

/// One allocation.
pub struct Allocation {
    /// Its name in reports.
    pub name: String,
    /// Address of its first byte.
    pub base: u64,
    /// Size in bytes.
    pub len: u64,
    /// Is it constant memory?
    pub constant: bool,
    words: Words,
}

impl Allocation {
    /// An allocation with this content at this address.
    pub fn new(name: String, base: u64, bytes: &[u8], constant: bool) -> Self {
        let words = bytes.chunks(4).map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            AtomicU32::new(u32::from_le_bytes(word))
        });
        Allocation {
            name,
            base,
            len: bytes.len() as u64,
            constant,
            words: Words::Own(words.collect()),
        }
    }

    /// An allocation over memory of somebody else; `len` bytes of it count.
    pub fn lent(
        name: String,
        base: u64,
        words: &'static [AtomicU32],
        len: u64,
        constant: bool,
    ) -> Self {
        Allocation {
            name,
            base,
            len: len.min(4 * words.len() as u64),
            constant,
            words: Words::Lent(words),
        }
    }

    #[inline(always)]
    fn words(&self) -> &[AtomicU32] {
        match &self.words {
            Words::Own(words) => words,
            Words::Lent(words) => words,
        }
    }

    /// Itself and the offset in it, if it holds all of `size` bytes at an address.
    #[inline(always)]
    fn holds(&self, address: u64, size: u64) -> Option<(&Allocation, u64)> {
        let offset = address.wrapping_sub(self.base);
        (offset < self.len && size <= self.len - offset).then_some((self, offset))
    }

    /// The content.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self
            .words()
            .iter()
            .flat_map(|word| word.load(Relaxed).to_le_bytes())
            .collect();
        bytes.truncate(self.len as usize);
        bytes
    }

    /// Reads `size` (1, 2, 4 or 8) bytes at an aligned offset inside the allocation.
    #[inline(always)]
    pub fn read(&self, offset: u64, size: u32) -> u64 {
        let index = (offset >> 2) as usize;
        let word = |i: usize| self.words().get(i).map_or(0, |w| w.load(Relaxed)) as u64;
        match size {
            4 => word(index),
            8 => word(index) | word(index + 1) << 32,
            _ => word(index) >> (8 * (offset & 3)) & ((1 << (8 * size)) - 1),
        }
    }

    /// Writes `size` (1, 2, 4 or 8) bytes at an aligned offset inside the allocation.
    #[inline(always)]
    pub fn write(&self, offset: u64, size: u32, value: u64) {
        let index = (offset >> 2) as usize;
        let store = |i: usize, value: u64| {
            if let Some(word) = self.words().get(i) {
                word.store(value as u32, Relaxed);
            }
        };
        match size {
            4 => store(index, value),
            8 => {
                store(index, value);
                store(index + 1, value >> 32);
            }
            // Neighbouring bytes may belong to a block on another core.
            _ => {
                let shift = 8 * (offset & 3) as u32;
                let mask = (((1u64 << (8 * size)) - 1) as u32) << shift;
                if let Some(word) = self.words().get(index) {
                    let set = |old: u32| Some(old & !mask | (value as u32) << shift & mask);
                    // The closure always returns `Some`, so the update cannot fail.
                    let _ = word.fetch_update(Relaxed, Relaxed, set);
                }
            }
        }
    }
}

/// All global and constant memory of a run.
pub struct Memory {
    allocations: Vec<Allocation>,
    /// Memory that lies outside of the slots.
    elsewhere: Vec<Allocation>,
    atomics: Mutex<()>,
    heap: Option<Heap>,
    /// Texture and surface objects by their numbers.
    pub textures: BTreeMap<u64, Texture>,
}

/// Coordinates of a texture, the layer among them, at most.
pub const TEXTURE_LIMIT: usize = 4;

/// The device heap behind `malloc`: one allocation, handed out front to back.
struct Heap {
    index: usize,
    used: Mutex<u64>,
}

impl Memory {
    /// Memory of these allocations; number `i` must stand at [`slot_address`]`(i)`.
    pub fn new(allocations: Vec<Allocation>) -> Self {
        Memory {
            allocations,
            elsewhere: Vec::new(),
            atomics: Mutex::new(()),
            heap: None,
            textures: BTreeMap::new(),
        }
    }

    /// Adds a heap of this many bytes.
    pub fn with_heap(mut self, bytes: usize) -> Self {
        let index = self.allocations.len();
        let heap = Allocation::new(
            "device heap".into(),
            slot_address(index),
            &vec![0; bytes],
            false,
        );
        self.allocations.push(heap);
        self.heap = Some(Heap {
            index,
            used: Mutex::new(0),
        });
        self
    }

    /// Puts an allocation where its address says: into its slot, in place of what was there, or beside the slots.
    pub fn put(&mut self, allocation: Allocation) {
        self.remove(allocation.base);
        match slot_of(allocation.base) {
            Some(index) if allocation.base == slot_address(index) => {
                for empty in self.allocations.len()..=index {
                    let base = slot_address(empty);
                    self.allocations
                        .push(Allocation::new(String::new(), base, &[], false));
                }
                self.allocations[index] = allocation;
            }
            _ => self.elsewhere.push(allocation),
        }
    }

    /// Removes the allocation that begins at an address.
    pub fn remove(&mut self, base: u64) {
        let own = slot_of(base).filter(|&index| base == slot_address(index));
        if let Some(slot) = own.and_then(|index| self.allocations.get_mut(index)) {
            *slot = Allocation::new(String::new(), base, &[], false);
        }
        self.elsewhere.retain(|other| other.base != base);
    }

    /// `malloc`: an address of 16-byte alignment, or null when the heap is full.
    pub fn malloc(&self, bytes: u64) -> u64 {
        let Some(heap) = &self.heap else { return 0 };
        let Some(block) = self.allocations.get(heap.index) else {
            return 0;
        };
        let mut used = heap.used.lock().unwrap_or_else(PoisonError::into_inner);
        match used.checked_add(bytes).map(|end| end.next_multiple_of(16)) {
            Some(end) if end <= block.len => block.base + std::mem::replace(&mut *used, end),
            _ => 0,
        }
    }

    /// The allocation whose slot an address lies in.
    #[inline(always)]
    pub fn slot(&self, address: u64) -> Option<&Allocation> {
        self.allocations.get(slot_of(address)?)
    }

    /// The number of the allocation that an address lies in, and the offset in it.
    pub fn place(&self, address: u64) -> Option<(usize, u64)> {
        let index = slot_of(address)?;
        let (_, offset) = self.allocations.get(index)?.holds(address, 1)?;
        Some((index, offset))
    }

    /// The allocation that holds all of `size` bytes at an address, and the offset in it.
    #[inline(always)]
    pub fn find(&self, address: u64, size: u64) -> Option<(&Allocation, u64)> {
        let found = self.slot(address).and_then(|a| a.holds(address, size));
        match found {
            None if !self.elsewhere.is_empty() => self.find_elsewhere(address, size),
            found => found,
        }
    }

    #[cold]
    fn find_elsewhere(&self, address: u64, size: u64) -> Option<(&Allocation, u64)> {
        self.elsewhere.iter().find_map(|a| a.holds(address, size))
    }

    /// Allocation number `index`.
    pub fn allocation(&self, index: usize) -> Option<&Allocation> {
        self.allocations.get(index)
    }

    /// Excludes all other atomic operations while it is held.
    pub fn lock_atomics(&self) -> MutexGuard<'_, ()> {
        self.atomics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_of_every_width_meet_in_the_same_bytes() {
        let a = Allocation::new("a".into(), 0, &[0; 12], false);
        a.write(0, 8, 0x8877_6655_4433_2211);
        a.write(2, 2, 0xbbaa);
        a.write(7, 1, 0xff);
        assert_eq!(a.read(0, 4), 0xbbaa_2211);
        assert_eq!(a.read(4, 2), 0x6655);
        assert_eq!(a.read(7, 1), 0xff);
        assert_eq!(
            a.bytes(),
            [0x11, 0x22, 0xaa, 0xbb, 0x55, 0x66, 0x77, 0xff, 0, 0, 0, 0]
        );
    }

    #[test]
    fn gaps_belong_to_the_allocation_that_was_missed() {
        let allocation = |i| Allocation::new(format!("a{i}"), slot_address(i), &[0; 10], false);
        let memory = Memory::new(vec![allocation(0), allocation(1)]);
        let base = slot_address(1);
        assert!(memory.find(base + 8, 2).is_some());
        assert!(memory.find(base + 8, 4).is_none());
        assert!(memory.find(base - 1, 1).is_none());
        assert_eq!(memory.slot(base - 1).map(|a| a.name.as_str()), Some("a1"));
        assert!(memory.slot(0).is_none() && memory.slot(SHARED_WINDOW).is_none());
    }

    #[test]
    fn what_is_put_lies_where_its_address_says() {
        let mut memory = Memory::new(Vec::new());
        let words: &'static [AtomicU32] = Vec::leak(vec![AtomicU32::new(7), AtomicU32::new(9)]);
        let lent = |base| Allocation::lent("lent".into(), base, words, 6, false);
        let (slot, beside) = (slot_address(3), 1 << 46 | 64);
        memory.put(lent(slot));
        memory.put(lent(beside));
        for base in [slot, beside] {
            assert!(memory.find(base + 4, 2).is_some() && memory.find(base + 4, 4).is_none());
        }
        assert!(memory.find(slot_address(2), 1).is_none());
        let (found, at) = memory.find(beside + 4, 2).unwrap();
        found.write(at, 2, 11);
        assert_eq!(words[1].load(Relaxed), 11);
        memory.remove(slot);
        memory.remove(beside);
        assert!(memory.find(slot, 1).is_none() && memory.find(beside, 1).is_none());
    }

    #[test]
    fn the_heap_hands_out_aligned_pieces_until_it_is_full() {
        let memory = Memory::new(Vec::new()).with_heap(64);
        let (a, b) = (memory.malloc(5), memory.malloc(40));
        assert_eq!(b - a, 16);
        assert_eq!(memory.malloc(1), 0);
    }
}
