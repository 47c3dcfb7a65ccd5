//! A device whose memory outlives launches: for programs that are run on the emulator.

use std::sync::atomic::AtomicU32;

use super::block::Grid;
use crate::memory::image::Image;
use crate::memory::{Allocation, Memory, slot_address};
use crate::program::Program;
use crate::texture::Texture;

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Blocks per cluster, if the launch states them.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory per block.
    pub dynamic_smem: u32,
}

impl Extents {
    pub(crate) fn grid(&self) -> Grid {
        Grid {
            grid: self.grid,
            block: self.block,
            dynamic_smem: self.dynamic_smem,
        }
    }
}

/// What a kernel that ran to its end on a device has cost, and what it printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// Warp instructions, and as many as it takes to begin the blocks.
    pub work: u64,
    /// What `printf` wrote, block by block.
    pub printed: String,
    /// Did functions run that GPUs approximate, so that their results may be rounded otherwise there?
    pub is_approximate: bool,
}

/// The memory of a device. The bytes are the caller's: what it writes kernels read, and the other way round.
pub struct Device {
    pub(super) memory: Memory,
}

impl Device {
    /// The first slot that is free; those before it hold the device heap.
    pub const FIRST_FREE: usize = 1;

    /// A device with a heap of so many bytes behind `malloc`.
    pub fn new(heap: usize) -> Device {
        Device {
            memory: Memory::new(Vec::new()).with_heap(heap),
        }
    }

    /// The address at which an allocation of this slot begins. Slots are far apart, so that what misses an
    /// allocation hits nothing.
    pub fn address(slot: usize) -> u64 {
        slot_address(slot)
    }

    /// Adds `len` bytes at an address: that of a slot, or any other outside of all slots in use.
    pub fn put(&mut self, name: &str, address: u64, words: &'static [AtomicU32], len: u64) {
        let name = name.to_owned();
        let allocation = Allocation::lent(name, address, words, len, false);
        self.memory.put(allocation);
    }

    /// The same for a module's variable.
    pub fn put_variable(&mut self, variable: &Variable, words: &'static [AtomicU32]) {
        let (name, len) = (variable.name.clone(), variable.bytes.len() as u64);
        let allocation = Allocation::lent(name, variable.address, words, len, variable.constant);
        self.memory.put(allocation);
    }

    /// Makes a texture or a surface object of this number.
    pub fn put_texture(&mut self, number: u64, texture: Texture) {
        self.memory.textures.insert(number, texture);
    }

    /// Removes the object of this number.
    pub fn remove_texture(&mut self, number: u64) {
        self.memory.textures.remove(&number);
    }

    /// Removes what begins at an address.
    pub fn remove(&mut self, address: u64) {
        self.memory.remove(address);
    }
}

/// A variable of a module in global or constant memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name in PTX.
    pub name: String,
    /// Where kernels look for it.
    pub address: u64,
    /// Its first contents.
    pub bytes: Vec<u8>,
    /// Does it lie in constant memory?
    pub constant: bool,
}

/// The place of a kernel's parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in PTX.
    pub name: String,
    /// Where it begins, in bytes from the first one.
    pub offset: u64,
    /// Its size in bytes.
    pub len: u64,
}

impl Image {
    /// The variables, in the order of their slots.
    pub(crate) fn variables(&self) -> Vec<Variable> {
        let all = self.globals.iter().enumerate();
        all.map(|(at, global)| Variable {
            name: global.name.clone(),
            address: slot_address(self.first + at),
            bytes: global.bytes.clone(),
            constant: global.constant,
        })
        .collect()
    }
}

impl Program {
    /// Does it read textures, or read or write surfaces?
    pub fn uses_textures(&self) -> bool {
        self.textures
    }

    /// Does it call `malloc` or `free`?
    pub fn uses_heap(&self) -> bool {
        self.heap
    }

    /// The kernel's parameters in their order.
    pub fn parameters(&self) -> Vec<Parameter> {
        let all = self.image.params.regions.iter();
        all.map(|region| Parameter {
            name: region.name.clone(),
            offset: region.start,
            len: region.len,
        })
        .collect()
    }
}
