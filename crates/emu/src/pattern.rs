//! How the lanes of a warp lie in memory: coalescing and bank conflicts.
//!
//! Global memory is moved in sectors of 32 bytes: an access of a warp takes as many as its lanes touch (CUDA C++ Best
//! Practices Guide, "Coalesced Access to Global Memory"). Shared memory has 32 banks of 32 bits: an access takes as many
//! passes as the fullest bank has different words (CUDA C++ Programming Guide, "Shared Memory", compute capability 5.0
//! and later). How elements of 8 and 16 bytes go was seen on an H100 (bench/results/accesses-*.json).

use std::collections::BTreeMap;

use crate::lanes::{Lanes, Mask, WARP, lanes_of};
use crate::machine::access::address_of;
use crate::memory::{Window, window};
use crate::program::{Access, AccessSpace, Atomic, Op};

/// Bytes of a sector.
const SECTOR: u64 = 32;
/// Banks, and bytes of a word.
const BANKS: usize = 32;
const WORD: u64 = 4;

/// Bytes of a line of the level-2 cache, where atomic operations on global memory are carried out.
const LINE: u64 = 128;

/// Atomic operations that wait for each other: those on one line of global memory, of whatever block, where those of a warp
/// in one sector are one, and those of a warp on one bank of shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// Operations on the line that most go to.
    pub line: u64,
    /// Blocks that they come from.
    pub line_blocks: u64,
    /// Blocks that ran.
    pub blocks: u64,
    /// Turns over shared memory, of all warps together.
    pub turns: u64,
}

/// The same while it is counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contended {
    /// By line: operations, and blocks.
    lines: BTreeMap<u64, [u64; 2]>,
    turns: u64,
    blocks: u64,
}

impl Contended {
    /// Of one block.
    pub(crate) fn of_block() -> Contended {
        Contended {
            blocks: 1,
            ..Contended::default()
        }
    }

    /// One operation of a block, by lanes.
    pub(crate) fn note(&mut self, atomic: &Atomic, base: &Lanes, mask: Mask) {
        let addresses = lanes_of(mask).map(|lane| address_of(&atomic.access, base, lane));
        let addresses: Vec<u64> = addresses.collect();
        let is_one = addresses.windows(2).all(|pair| pair[0] == pair[1]);
        let lanes = match is_one && atomic.combines {
            true => &addresses[..addresses.len().min(1)],
            false => &addresses[..],
        };
        let (mut banks, mut cells) = ([0_u64; BANKS], BTreeMap::<u64, u64>::new());
        for &address in lanes {
            match place(atomic.access.space, address) {
                Window::Global => *cells.entry(address).or_default() += 1,
                Window::Shared(offset) => banks[(offset / WORD) as usize % BANKS] += 1,
                _ => {}
            }
        }
        // Neighbours in a sector go together, lanes at one address do not.
        let mut sectors = BTreeMap::<u64, u64>::new();
        for (address, lanes) in cells {
            let most = sectors.entry(address / SECTOR).or_default();
            *most = lanes.max(*most);
        }
        for (sector, turns) in sectors {
            let line = self.lines.entry(sector * SECTOR / LINE).or_default();
            *line = [line[0] + turns, 1];
        }
        self.turns += banks.into_iter().max().unwrap_or(0);
    }

    pub(crate) fn merge(&mut self, other: &Contended) {
        for (line, [operations, blocks]) in &other.lines {
            let [all, of] = self.lines.entry(*line).or_default();
            (*all, *of) = (*all + operations, *of + blocks);
        }
        self.turns += other.turns;
        self.blocks += other.blocks;
    }

    /// What it comes to.
    pub(crate) fn contention(&self) -> Contention {
        let fullest = self.lines.values().max().copied();
        let [line, line_blocks] = fullest.unwrap_or_default();
        Contention {
            line,
            line_blocks,
            blocks: self.blocks,
            turns: self.turns,
        }
    }
}

/// What an address of an access lies in.
fn place(space: AccessSpace, address: u64) -> Window {
    match space {
        AccessSpace::Global => Window::Global,
        AccessSpace::Shared => Window::Shared(address),
        AccessSpace::Generic | AccessSpace::Local | AccessSpace::Param => window(address),
    }
}

/// The accesses of an instruction to one kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Executions by warps that touched it.
    pub requests: u64,
    /// What they took: sectors of global memory, passes over shared memory.
    pub taken: u64,
    /// What the same bytes take side by side.
    pub least: u64,
}

impl Pattern {
    pub(crate) fn add(&mut self, other: &Pattern) {
        self.requests += other.requests;
        self.taken += other.taken;
        self.least += other.least;
    }
}

/// The accesses of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patterns {
    /// To global memory, without constants.
    pub global: Pattern,
    /// To shared memory.
    pub shared: Pattern,
    /// Atomic operations of both: `taken` are the lanes at the address that most of a warp go to.
    pub atomic: Pattern,
}

impl Patterns {
    pub(crate) fn add(&mut self, other: &Patterns) {
        self.global.add(&other.global);
        self.shared.add(&other.shared);
        self.atomic.add(&other.atomic);
    }

    /// One access of the lanes in `mask`. Constants go another way.
    pub(crate) fn note(
        &mut self,
        (access, is_atomic): (&Access, bool),
        base: &Lanes,
        mask: Mask,
        is_constant: impl Fn(u64) -> bool,
    ) {
        let (mut global, mut shared) = (Vec::new(), Vec::new());
        if is_atomic {
            let addresses = lanes_of(mask).map(|lane| address_of(access, base, lane));
            self.atomic.add(&same(addresses.collect()));
        }
        for lane in lanes_of(mask) {
            let address = address_of(access, base, lane);
            match access.space {
                AccessSpace::Global => global.push(address),
                AccessSpace::Shared => shared.push((lane, address)),
                AccessSpace::Generic => match window(address) {
                    Window::Global => global.push(address),
                    Window::Shared(offset) => shared.push((lane, offset)),
                    _ => {}
                },
                AccessSpace::Local | AccessSpace::Param => {}
            }
        }
        if !global.first().is_some_and(|&address| is_constant(address)) {
            self.global.add(&sectors(global, access.bytes()));
        }
        self.shared.add(&passes(&shared, access.bytes()));
    }
}

/// The accesses to memory that an instruction makes.
pub(crate) fn accesses(op: &Op) -> [Option<&Access>; 2] {
    match op {
        Op::Load(load) => [Some(&load.access), None],
        Op::Store { access, .. } | Op::Atomic128 { access, .. } => [Some(access), None],
        Op::Atomic(atomic) => [Some(&atomic.access), None],
        Op::CopyAsync(copy) => [Some(&copy.src), Some(&copy.dst)],
        _ => [None, None],
    }
}

/// An access to elements at these addresses; the same one is moved once.
fn sectors(mut addresses: Vec<u64>, bytes: u64) -> Pattern {
    if addresses.is_empty() || bytes == 0 {
        return Pattern::default();
    }
    addresses.sort_unstable();
    addresses.dedup();
    let least = (addresses.len() as u64 * bytes).div_ceil(SECTOR);
    let touched = |address: &u64| address / SECTOR..(address + bytes).div_ceil(SECTOR);
    let mut sectors: Vec<u64> = addresses.iter().flat_map(touched).collect();
    sectors.dedup();
    Pattern {
        requests: 1,
        taken: sectors.len() as u64,
        least,
    }
}

/// An atomic operation at these addresses.
fn same(mut addresses: Vec<u64>) -> Pattern {
    addresses.sort_unstable();
    let most = addresses.chunk_by(|a, b| a == b).map(<[u64]>::len).max();
    Pattern {
        requests: 1,
        taken: most.unwrap_or(0) as u64,
        least: 1,
    }
}

/// Elements of 8 bytes go half a warp at a time, those of 16 a quarter; two such parts go together where each lane has
/// the address of its neighbour, or each that of the lane two away.
fn passes(lanes: &[(usize, u64)], bytes: u64) -> Pattern {
    if lanes.is_empty() {
        return Pattern::default();
    }
    let mut addresses = [None; WARP];
    for &(lane, address) in lanes {
        addresses[lane] = Some(address);
    }
    // Lanes that go together at the least, and at the most.
    let (part, whole) = match bytes {
        ..=4 => (WARP, WARP),
        5..=8 => (WARP / 2, WARP),
        _ => (WARP / 4, WARP / 2),
    };
    let (mut taken, mut least) = (0, 0);
    for first in (0..WARP).step_by(whole) {
        let own = first..first + whole;
        let pairs = |apart: usize| {
            let same = |lane: usize| match (addresses[lane], addresses[lane ^ apart]) {
                (Some(one), Some(other)) => one == other,
                _ => true,
            };
            own.clone().all(same)
        };
        let together = if pairs(1) || pairs(2) { whole } else { part };
        for first in own.clone().step_by(together) {
            let own = addresses[first..first + together].iter().flatten();
            let words = own.flat_map(|at| at / WORD..(at + bytes).div_ceil(WORD));
            let mut words: Vec<u64> = words.collect();
            words.sort_unstable();
            words.dedup();
            let mut banks = [0_u64; BANKS];
            for word in &words {
                banks[*word as usize % BANKS] += 1;
            }
            taken += banks.into_iter().max().unwrap_or(0);
            least += (words.len() as u64).div_ceil(BANKS as u64);
        }
    }
    Pattern {
        requests: 1,
        taken,
        least,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(taken: u64, least: u64) -> Pattern {
        Pattern {
            requests: 1,
            taken,
            least,
        }
    }

    #[test]
    fn lanes_at_one_address_are_counted() {
        assert_eq!(same((0..32).collect()), pattern(1, 1));
        assert_eq!(same(vec![8; 32]), pattern(32, 1));
        assert_eq!(same(vec![8, 16, 8, 4, 8, 16]), pattern(3, 1));
    }

    #[test]
    fn sectors_are_those_that_lanes_touch() {
        let strided = |stride: u64, bytes: u64| {
            sectors((0..32).map(|lane| 4096 + lane * stride).collect(), bytes)
        };
        assert_eq!(strided(4, 4), pattern(4, 4));
        assert_eq!(strided(0, 4), pattern(1, 1));
        assert_eq!(strided(8, 4), pattern(8, 4));
        assert_eq!(strided(4096, 4), pattern(32, 4));
        assert_eq!(strided(16, 16), pattern(16, 16));
        assert_eq!(strided(1, 1), pattern(1, 1));
        // Off by one element: one sector more.
        let off = sectors((0..32).map(|lane| 4100 + lane * 4).collect(), 4);
        assert_eq!(off, pattern(5, 4));
        assert_eq!(sectors(Vec::new(), 4), Pattern::default());
    }

    #[test]
    fn passes_are_the_words_of_the_fullest_bank() {
        let strided = |stride: u64, bytes: u64| {
            let lanes: Vec<(usize, u64)> = (0..32).map(|l| (l, l as u64 * stride)).collect();
            passes(&lanes, bytes)
        };
        assert_eq!(strided(4, 4), pattern(1, 1));
        // The same word for all.
        assert_eq!(strided(0, 4), pattern(1, 1));
        assert_eq!(strided(8, 4), pattern(2, 1));
        // A column of a tile of 32, and of one of 33.
        assert_eq!(strided(128, 4), pattern(32, 1));
        assert_eq!(strided(132, 4), pattern(1, 1));
        assert_eq!(strided(8, 8), pattern(2, 2));
        assert_eq!(strided(16, 16), pattern(4, 4));
        // A structure of three floats.
        assert_eq!(strided(12, 4), pattern(1, 1));
        // Doubles a column of a tile of 32 apart.
        assert_eq!(strided(256, 8), pattern(32, 2));
        // One element for all lanes, and one for each pair.
        assert_eq!(
            (strided(0, 8), strided(0, 16)),
            (pattern(1, 1), pattern(2, 2))
        );
        let pairs: Vec<(usize, u64)> = (0..32).map(|l| (l, (l as u64 / 2) * 16)).collect();
        assert_eq!(passes(&pairs, 16), pattern(2, 2));
        assert_eq!(passes(&[], 4), Pattern::default());
    }
}
