//! Where spill slots lie in memory.
//!
//! Paper: You & Tsai section 2.3, Eq. 3: each thread owns consecutive words ([`Layout::ThreadMajor`]).
//! Departure: the default is [`Layout::SlotMajor`], where successive threads own consecutive words of
//! one slot. Shared memory has 32 banks of four bytes (CUDA C++ Programming Guide, 'Shared Memory'):
//! with a whole warp at one slot, Eq. 3 with N words a thread makes gcd(N, 32) threads meet in one
//! bank, and slot-major none. 64-bit slots have an area of their own, so that they are aligned and one
//! access moves both words.
//!
//! Slots whose contents are never needed at the same time share memory: slot numbers are a greedy
//! colouring of the slots' live ranges, as for registers (the paper's 'naive register allocation').

use std::collections::BTreeMap;

use warpwright_flow::{Class, EntityRef, Function, LiveRanges, Value};

use crate::draft::Draft;

/// How the slots of the threads of a block lie in shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// All threads' words of one slot, then those of the next: no bank conflicts.
    #[default]
    SlotMajor,
    /// All slots of one thread, then those of the next: Eq. 3 of You & Tsai.
    ThreadMajor,
}

/// A slot's size and its number among those of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// 4 or 8 bytes.
    pub bytes: u32,
    /// From 0.
    pub number: u32,
}

/// The spill area of one block: which cell each slot has, and where the cells lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    layout: Layout,
    threads: u32,
    cells: BTreeMap<Value, (Cell, Class)>,
    /// Number of cells of 8 and of 4 bytes.
    wide: u32,
    narrow: u32,
}

impl Frame {
    /// Gives a cell to each slot of the draft for which `is_here` holds. `threads` is the largest
    /// block.
    pub(crate) fn new(
        draft: &Draft,
        ranges: &LiveRanges,
        layout: Layout,
        threads: u32,
        is_here: impl Fn(Value) -> bool,
    ) -> Frame {
        let mut frame = Frame {
            layout,
            threads,
            cells: BTreeMap::new(),
            wide: 0,
            narrow: 0,
        };
        for value in draft.values() {
            let Some(slot) = draft.values[value.index()].slot else {
                continue;
            };
            if is_here(slot) && !frame.cells.contains_key(&slot) {
                frame.add(ranges, slot, draft.bytes(value), draft.class(value));
            }
        }
        frame
    }

    /// Gives `slot` the first cell of its size and class whose other slots never overlap with it.
    fn add(&mut self, ranges: &LiveRanges, slot: Value, bytes: u32, class: Class) {
        let mut taken: Vec<u32> = Vec::new();
        for (&other, &(cell, of)) in &self.cells {
            if cell.bytes == bytes && (of != class || ranges.interfere(slot, other)) {
                taken.push(cell.number);
            }
        }
        let number = (0..).find(|number| !taken.contains(number)).unwrap_or(0);
        self.insert(slot, Cell { bytes, number }, class);
    }

    fn insert(&mut self, slot: Value, cell: Cell, class: Class) {
        let count = match cell.bytes {
            8 => &mut self.wide,
            _ => &mut self.narrow,
        };
        *count = (*count).max(cell.number + 1);
        self.cells.insert(slot, (cell, class));
    }

    /// All cells, each once, with the class of what lies there.
    pub(crate) fn cells(&self) -> Vec<(Cell, Class)> {
        let mut cells: Vec<(Cell, Class)> = self.cells.values().copied().collect();
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    /// The frame of some of the cells alone, numbered anew. What the answer takes as a cell is one
    /// of this frame's.
    pub(crate) fn keep(&self, is_kept: impl Fn(Cell) -> bool) -> Frame {
        let mut kept = Frame {
            cells: BTreeMap::new(),
            wide: 0,
            narrow: 0,
            ..*self
        };
        let cells: Vec<Cell> = self.cells().into_iter().map(|(cell, _)| cell).collect();
        for (&slot, &(cell, class)) in &self.cells {
            if is_kept(cell) {
                let before = |other: &&Cell| other.bytes == cell.bytes && **other < cell;
                let number = cells.iter().filter(before).filter(|c| is_kept(**c)).count() as u32;
                let bytes = cell.bytes;
                kept.insert(slot, Cell { bytes, number }, class);
            }
        }
        kept
    }

    /// The same cells in another layout.
    pub(crate) fn laid_out(self, layout: Layout, threads: u32) -> Frame {
        Frame {
            layout,
            threads,
            ..self
        }
    }

    /// Are there no slots?
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The cell of a slot.
    pub fn cell(&self, slot: Value) -> Option<Cell> {
        self.cells.get(&slot).map(|(cell, _)| *cell)
    }

    /// The paper's N_sr: words of four bytes that each thread has.
    pub fn words(&self) -> u32 {
        2 * self.wide + self.narrow
    }

    /// Bytes of one thread's slots, with what alignment adds if they lie together.
    pub fn thread_bytes(&self) -> u32 {
        match (self.layout, self.wide) {
            (Layout::ThreadMajor, 1..) => (4 * self.words()).next_multiple_of(8),
            _ => 4 * self.words(),
        }
    }

    /// Bytes of the whole block's slots.
    pub fn bytes(&self) -> u64 {
        u64::from(self.thread_bytes()) * u64::from(self.threads)
    }

    /// Alignment of the area in bytes.
    pub fn alignment(&self) -> u32 {
        if self.wide > 0 { 8 } else { 4 }
    }

    /// Bytes from one thread's cell to the next thread's.
    pub fn stride(&self, bytes: u32) -> u32 {
        match self.layout {
            Layout::SlotMajor => bytes,
            Layout::ThreadMajor => self.thread_bytes(),
        }
    }

    /// Bytes from the start of the area to the first thread's cell.
    pub fn offset(&self, cell: Cell) -> u32 {
        let threads = match self.layout {
            Layout::SlotMajor => self.threads,
            Layout::ThreadMajor => 1,
        };
        let area = if cell.bytes == 8 { 0 } else { 8 * self.wide };
        threads * (area + cell.bytes * cell.number)
    }
}
