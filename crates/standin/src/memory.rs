//! Device memory: host memory at the addresses of the emulator's slots, far apart, so that what misses an allocation
//! hits nothing. Managed and pinned memory are of the same kind; what the program registers stays where it is.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::sync::atomic::AtomicU32;

use warpwright_emu::{Device, Variable};
use warpwright_winners::sha256;

use crate::abi::{Code, INVALID_VALUE, MEMORY_ALLOCATION};
use crate::state::Answer;

/// Slots below those where position-independent programs are loaded (0x5555…).
const SLOTS: usize = 5000;
/// Bytes of the device heap behind `malloc`, as CUDA has it by default.
const HEAP: usize = 8 << 20;

/// What an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Device,
    Managed,
    /// Pinned host memory.
    Host,
    /// Host memory of the program's own that it registered.
    Registered,
    Array,
    Variable,
}

/// May an address be one of device memory, whether or not anything is allocated there?
pub fn is_ours(address: u64) -> bool {
    (Device::address(0)..Device::address(SLOTS)).contains(&address)
}

/// One allocation.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub len: u64,
    pub kind: Kind,
    slot: Option<usize>,
    /// Bytes that are mapped.
    mapped: usize,
    /// Counts allocations from 1.
    pub number: u64,
}

/// What all allocations hold, by their addresses.
pub type Digests = BTreeMap<u64, String>;

/// All allocations.
pub struct Arena {
    pub device: Device,
    blocks: BTreeMap<u64, Block>,
    /// Of those that nothing has written since.
    digests: Digests,
    fresh: usize,
    free: VecDeque<usize>,
    number: u64,
    pub held: u64,
    pub limit: u64,
}

impl Arena {
    pub fn new(limit: u64) -> Arena {
        Arena {
            device: Device::new(HEAP),
            blocks: BTreeMap::new(),
            digests: Digests::new(),
            fresh: Device::FIRST_FREE,
            free: VecDeque::new(),
            number: 0,
            held: 0,
            limit,
        }
    }

    /// So many slots in a row.
    fn slots(&mut self, count: usize) -> Result<usize, Code> {
        if self.fresh + count <= SLOTS {
            self.fresh += count;
            return Ok(self.fresh - count);
        }
        match count {
            1 => self.free.pop_front().ok_or(MEMORY_ALLOCATION),
            _ => Err(MEMORY_ALLOCATION),
        }
    }

    /// Slots for the variables of a module.
    pub fn reserve(&mut self, count: usize) -> Result<usize, Code> {
        self.slots(count.max(1))
    }

    /// Maps zeros at a slot.
    fn map(
        &mut self,
        slot: usize,
        len: u64,
        kind: Kind,
    ) -> Result<(u64, &'static [AtomicU32]), Code> {
        const PAGE: u64 = 4096;
        if len > self.limit.saturating_sub(self.held) {
            return Err(MEMORY_ALLOCATION);
        }
        let (base, mapped) = (
            Device::address(slot),
            len.max(1).next_multiple_of(PAGE) as usize,
        );
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping; nothing that is mapped is replaced.
        let at = unsafe { libc::mmap(base as *mut c_void, mapped, access, flags, -1, 0) };
        if at as u64 != base {
            if at != libc::MAP_FAILED {
                // SAFETY: the mapping that was just made elsewhere (kernels that do not know the flag).
                unsafe { libc::munmap(at, mapped) };
            }
            return Err(MEMORY_ALLOCATION);
        }
        self.number += 1;
        self.held += len;
        let block = Block {
            len,
            kind,
            slot: Some(slot),
            mapped,
            number: self.number,
        };
        self.blocks.insert(base, block);
        // SAFETY: mapped above, and unmapped only after the emulator has let go of it.
        Ok((base, unsafe { words(base, mapped as u64) }))
    }

    /// Allocates zeros; their address.
    pub fn allocate(&mut self, len: u64, kind: Kind) -> Result<u64, Code> {
        let slot = self.slots(1)?;
        let (base, words) = self
            .map(slot, len, kind)
            .inspect_err(|_| self.free.push_back(slot))?;
        let name = self.name(base);
        self.device.put(&name, base, words, len);
        Ok(base)
    }

    /// Puts a module's variable where its kernels look for it.
    pub fn place(&mut self, slot: usize, variable: &Variable) -> Result<u64, Code> {
        let len = variable.bytes.len() as u64;
        let (base, words) = self.map(slot, len, Kind::Variable)?;
        // SAFETY: so many bytes were just mapped there.
        unsafe {
            std::ptr::copy_nonoverlapping(
                variable.bytes.as_ptr(),
                base as *mut u8,
                variable.bytes.len(),
            );
        }
        self.device.put_variable(variable, words);
        Ok(base)
    }

    fn name(&self, base: u64) -> String {
        let number = self.blocks.get(&base).map_or(0, |block| block.number);
        format!("allocation {number}")
    }

    /// Lets kernels see host memory of the program.
    pub fn register(&mut self, base: u64, len: u64) -> Answer {
        if base == 0 || len == 0 || self.find(base).is_some() {
            return Err(INVALID_VALUE);
        }
        self.number += 1;
        let block = Block {
            len,
            kind: Kind::Registered,
            slot: None,
            mapped: 0,
            number: self.number,
        };
        self.blocks.insert(base, block);
        let name = self.name(base);
        if base.is_multiple_of(4) {
            // SAFETY: the program says that the memory is there until it unregisters it.
            self.device
                .put(&name, base, unsafe { words(base, len) }, len);
        }
        Ok(())
    }

    /// Frees what begins at an address.
    pub fn free(&mut self, base: u64) -> Answer {
        let own = self.blocks.get(&base).filter(|b| b.kind != Kind::Variable);
        let block = *own.ok_or(INVALID_VALUE)?;
        self.blocks.remove(&base);
        self.digests.remove(&base);
        self.device.remove(base);
        if let Some(slot) = block.slot {
            self.held -= block.len;
            self.free.push_back(slot);
            // SAFETY: the mapping of this allocation, which nobody else knows any more.
            unsafe { libc::munmap(base as *mut c_void, block.mapped) };
        }
        Ok(())
    }

    /// The allocation that an address lies in, and where that begins.
    pub fn find(&self, address: u64) -> Option<(u64, Block)> {
        let (&base, &block) = self.blocks.range(..=address).next_back()?;
        (address - base < block.len.max(1)).then_some((base, block))
    }

    /// How far an address lies from the allocation next to it, in bytes.
    pub fn distance(&self, address: u64) -> Option<u64> {
        let below = self.blocks.range(..=address).next_back();
        let below = below.and_then(|(base, block)| address.checked_sub(base + block.len));
        let above = self.blocks.range(address..).next();
        let above = above.map(|(base, _)| base - address);
        below.into_iter().chain(above).min()
    }

    /// May so many bytes be copied from or to an address? Host memory is the program's to know.
    pub fn check(&self, address: u64, len: u64) -> Answer {
        if len == 0 {
            return Ok(());
        }
        match self.find(address) {
            Some((base, block)) if len <= block.len - (address - base) => Ok(()),
            Some((_, block)) if block.kind == Kind::Registered => Ok(()),
            None if !is_ours(address) && address != 0 => Ok(()),
            _ => Err(INVALID_VALUE),
        }
    }

    /// Does the host read device memory when it reads so?
    pub fn is_device(&self, address: u64) -> bool {
        let found = self.find(address);
        found.is_some_and(|(_, block)| !matches!(block.kind, Kind::Host | Kind::Registered))
    }

    /// Can the host see what kernels write without a copy?
    pub fn is_shared_with_host(&self) -> bool {
        let shared = |b: &Block| matches!(b.kind, Kind::Managed | Kind::Host | Kind::Registered);
        self.blocks.values().any(shared)
    }

    /// What lies at an address is another from here on.
    fn written(&mut self, address: u64) {
        if let Some((base, _)) = self.find(address) {
            self.digests.remove(&base);
        }
    }

    /// Kernels may have written anything.
    pub fn all_written(&mut self) {
        self.digests.clear();
    }

    /// The allocations whose digest has to be taken: the host writes those that it sees without a word.
    fn undigested(&self) -> impl Iterator<Item = (u64, Block)> + '_ {
        let is_known = |base: &u64, block: &Block| {
            matches!(block.kind, Kind::Device | Kind::Array | Kind::Variable)
                && self.digests.contains_key(base)
        };
        let all = self.blocks.iter().map(|(base, block)| (*base, *block));
        all.filter(move |(base, block)| !is_known(base, block))
    }

    /// Bytes whose digest has to be taken to know what memory holds.
    pub fn unknown(&self) -> u64 {
        self.undigested().map(|(_, block)| block.len).sum()
    }

    /// What all allocations hold.
    pub fn digests(&mut self) -> Digests {
        let taken = self.undigested();
        let taken: Vec<_> = taken
            .map(|(base, block)| (base, sha256(self.bytes(base, &block))))
            .collect();
        self.digests.extend(taken);
        self.digests.clone()
    }

    /// The allocations that hold something else than before, with their bytes.
    pub fn changed(&mut self, before: &Digests) -> BTreeMap<u64, (String, Vec<u8>)> {
        let after = self.digests().into_iter();
        let others = after.filter(|(base, digest)| before.get(base) != Some(digest));
        let with_bytes = others.filter_map(|(base, digest)| {
            let block = self.blocks.get(&base)?;
            Some((base, (digest, self.bytes(base, block).to_vec())))
        });
        with_bytes.collect()
    }

    /// Writes what a kernel would write.
    pub fn rewrite(&mut self, base: u64, digest: String, bytes: &[u8]) {
        // SAFETY: an allocation of as many bytes, whose digest was taken before; kernels do not run.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), base as *mut u8, bytes.len()) };
        self.digests.insert(base, digest);
    }

    /// Copies rows; each end is checked as a whole.
    pub fn copy(&mut self, to: (u64, u64), from: (u64, u64), width: u64, height: u64) -> Answer {
        if width == 0 || height == 0 {
            return Ok(());
        }
        for (at, pitch) in [to, from] {
            if height > 1 && pitch < width {
                return Err(INVALID_VALUE);
            }
            self.check(at, pitch * (height - 1) + width)?;
        }
        self.written(to.0);
        for row in 0..height {
            let (to, from) = (to.0 + row * to.1, from.0 + row * from.1);
            // SAFETY: inside of allocations, or host memory that the program vouches for.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, width as usize) };
        }
        Ok(())
    }

    /// Fills rows with a byte.
    pub fn fill(&mut self, to: (u64, u64), value: u8, width: u64, height: u64) -> Answer {
        if width == 0 || height == 0 {
            return Ok(());
        }
        self.check(to.0, to.1 * (height - 1) + width)?;
        self.written(to.0);
        for row in 0..height {
            // SAFETY: inside of an allocation.
            unsafe { std::ptr::write_bytes((to.0 + row * to.1) as *mut u8, value, width as usize) };
        }
        Ok(())
    }

    /// What lies in an allocation.
    pub fn bytes(&self, base: u64, block: &Block) -> &[u8] {
        // SAFETY: an allocation that is there; kernels do not run while the state is locked.
        unsafe { std::slice::from_raw_parts(base as *const u8, block.len as usize) }
    }
}

/// # Safety
/// The memory is there as long as the slice is used.
unsafe fn words(base: u64, len: u64) -> &'static [AtomicU32] {
    // SAFETY: as above; the address is a multiple of four.
    unsafe { std::slice::from_raw_parts(base as *const AtomicU32, (len / 4) as usize) }
}
