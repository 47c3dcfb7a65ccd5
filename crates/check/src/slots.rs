//! Spill slots: memory that the rewrite added for itself.
//!
//! A private region is a `.local` or `.shared` variable that the original does not have. Only the
//! rewritten function's own loads and stores can reach it: any other use of its address would show
//! in an event that the original does not have. Here every such access is placed: its offset in the
//! region is worked out for every thread of the block, which proves that it stays inside and that no
//! two threads ever share a byte. What one thread then finds in its slots depends on its own stores
//! alone, whatever the others do, barriers or not.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::linear::{FUEL, linear};
use crate::pieces::of_numbers;
use crate::semantics::{Coordinate, SlotSpace, Variable};
use crate::term::{Head, Side, Sym, Term, Terms, sign_extended, truncate};

/// What is known about the blocks that run the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The block's exact dimensions, if they are known.
    pub block: Option<[u32; 3]>,
    /// No block has more threads than this.
    pub most: u32,
}

impl Default for Threads {
    /// Any block that hardware allows: 1,024 threads.
    fn default() -> Self {
        Threads {
            block: None,
            most: 1024,
        }
    }
}

/// A slot: a number of bytes at a known offset for each thread.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) region: usize,
    /// How many slots in memory of one version alone its version had before it.
    ordinal: u32,
    /// The offset as a function of the thread, in bytes from the start of the region.
    offsets: Offsets,
    pub(crate) bytes: u32,
    /// Slots that share bytes with this one in some thread, this one left out; with the constant
    /// distance in bytes from here to there, if it is constant.
    pub(crate) overlaps: Vec<(u32, Option<i64>)>,
}

/// Where an access goes in its region, as a function of the thread: one offset for all threads, or one
/// for each thread of the block.
type Offsets = Rc<[u32]>;

fn offset_of(offsets: &Offsets, thread: usize) -> u32 {
    match **offsets {
        [all] => all,
        _ => offsets[thread],
    }
}

#[derive(Clone, Debug)]
struct Region {
    name: String,
    /// Whose it is.
    side: Side,
    /// Do both versions have such memory, each its own?
    is_own: bool,
    symbol: Sym,
    space: SlotSpace,
    bytes: u32,
    align: u32,
    is_global: bool,
    /// For each byte of shared memory, the thread that uses it, plus 1.
    owner: Vec<u32>,
    /// For each word of four bytes, the slots that touch it in some thread.
    touching: Vec<SmallVec<[u32; 2]>>,
}

impl Region {
    /// Notes the bytes of a new slot; the slots that touch the same words in some thread.
    fn touch(&mut self, offsets: &[u32], bytes: u32, slot: u32) -> BTreeSet<u32> {
        let mut near = BTreeSet::new();
        for &offset in offsets {
            for word in offset / 4..=(offset + bytes - 1) / 4 {
                let touching = &mut self.touching[word as usize];
                near.extend(touching.iter().filter(|&&other| other != slot));
                if !touching.contains(&slot) {
                    touching.push(slot);
                }
            }
        }
        near
    }
}

/// Why an access to a private region cannot be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Misplaced {
    /// It is wrong.
    Wrong(String),
    /// It may be right, but the checker cannot tell.
    Unclear(String),
}

/// All private regions and the slots found in them so far.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    regions: Vec<Region>,
    pub(crate) slots: Vec<Slot>,
    ids: FxHashMap<(usize, Offsets, u32), u32>,
    offsets: FxHashMap<(Term, usize), Offsets>,
    /// The slots in memory that the versions have each for itself, in order.
    own: BTreeMap<Side, Vec<u32>>,
    /// Those of the rewritten version that a last use may empty.
    lost: BTreeSet<u32>,
    threads: Threads,
}

/// The largest region that can be proved: the memory of the largest block.
const MAX_REGION: u64 = 1 << 20;

/// A region that is larger than can be proved.
#[derive(Debug, thiserror::Error)]
#[error("{name} is larger than {} bytes", MAX_REGION)]
pub(crate) struct TooLarge {
    name: String,
}

impl Slots {
    pub(crate) fn new(threads: Threads) -> Slots {
        Slots {
            threads,
            ..Slots::default()
        }
    }

    /// Adds a private region of one function.
    pub(crate) fn add_region(
        &mut self,
        side: Side,
        variable: &Variable,
        symbol: Sym,
        is_own: bool,
    ) -> Result<(), TooLarge> {
        if variable.space == SlotSpace::Other {
            return Ok(());
        }
        if variable.bytes > MAX_REGION {
            let name = variable.name.to_string();
            return Err(TooLarge { name });
        }
        self.regions.push(Region {
            name: variable.name.to_string(),
            side,
            is_own,
            symbol,
            space: variable.space,
            bytes: variable.bytes as u32,
            align: variable.align,
            is_global: variable.is_global,
            owner: match variable.space {
                SlotSpace::Shared => vec![0; variable.bytes as usize],
                _ => Vec::new(),
            },
            touching: vec![SmallVec::new(); variable.bytes.div_ceil(4) as usize],
        });
        Ok(())
    }

    /// May the last use of this slot empty it? In the original that is a choice: as the slot of the same number
    /// in the rewritten version does.
    pub(crate) fn loses(&mut self, slot: u32, is_rewritten: bool) -> bool {
        let ordinal = self.slots[slot as usize].ordinal;
        if is_rewritten {
            self.lost.insert(ordinal);
        }
        self.lost.contains(&ordinal)
    }

    /// Changes whenever something was found out about slots.
    pub(crate) fn found(&self) -> usize {
        self.slots.len() + self.lost.len()
    }

    /// A slot for people: its region and its bytes, as the first thread has them.
    pub(crate) fn describe(&self, slot: u32) -> String {
        let Some(slot) = self.slots.get(slot as usize) else {
            return "a slot".to_owned();
        };
        let first = slot.offsets.first().copied().unwrap_or(0);
        let name = &self.regions[slot.region].name;
        format!("{name}[{first}..{}]", first + slot.bytes)
    }

    /// A number for the slot in names of what it holds. The n-th slots of memory that each version has
    /// for itself share one: what stands in the original's at first is unknown, and is taken to be what
    /// the rewritten version finds in the slot of the same number. Both must overlap the slots of the
    /// same numbers at the same distances, if any: then one choice of bytes serves all, and stores to
    /// those change both alike.
    pub(crate) fn number(&self, slot: u32) -> u32 {
        const SHARED: u32 = 1 << 31;
        let found = &self.slots[slot as usize];
        let region = &self.regions[found.region];
        if !region.is_own {
            return slot;
        }
        let others = self.own.iter().find(|(side, _)| **side != region.side);
        let other = others.and_then(|(_, slots)| slots.get(found.ordinal as usize));
        let is_free = found.overlaps.is_empty();
        let is_shared = other.map_or(is_free, |&other| {
            let other = &self.slots[other as usize];
            let shape = self.shape(found);
            let is_alike = other.bytes == found.bytes && shape == self.shape(other);
            is_free && other.overlaps.is_empty() || is_alike && shape.is_some()
        });
        match is_shared {
            true => SHARED | found.ordinal,
            false => slot,
        }
    }

    /// Which slots share bytes with this one, by their numbers in its version, and how far from its
    /// start they begin. `None` if a distance is not the same for all threads.
    fn shape(&self, slot: &Slot) -> Option<BTreeSet<(u32, i64, u32)>> {
        let overlaps = slot.overlaps.iter().map(|&(other, distance)| {
            let other = &self.slots[other as usize];
            Some((other.ordinal, distance?, other.bytes))
        });
        overlaps.collect()
    }

    /// May a call change the slots of this region?
    pub(crate) fn survives_call(&self, slot: u32) -> bool {
        !self.regions[self.slots[slot as usize].region].is_global
    }

    /// Places an access of `lanes` elements of `bytes` each at `address`, and returns their slots.
    pub(crate) fn place(
        &mut self,
        terms: &Terms,
        address: Term,
        side: Side,
        space: SlotSpace,
        bytes: u32,
        lanes: u32,
    ) -> Result<Vec<u32>, Misplaced> {
        let region = self.region_of(terms, address).ok_or_else(|| {
            Misplaced::Unclear("an address mixes the spill area with something else".to_owned())
        })?;
        if self.regions[region].side != side {
            let name = &self.regions[region].name;
            let text = format!("{name} belongs to the other version");
            return Err(Misplaced::Unclear(text));
        }
        if self.regions[region].space != space {
            let name = &self.regions[region].name;
            return Err(Misplaced::Wrong(format!(
                "{name} is accessed as another state space"
            )));
        }
        let offsets = self.offsets(terms, address, region)?;
        (0..lanes)
            .map(|lane| self.slot(region, &offsets, lane * bytes, bytes, bytes * lanes))
            .collect()
    }

    /// The region whose address is the one private symbol in `address`.
    fn region_of(&self, terms: &Terms, address: Term) -> Option<usize> {
        let mut at = address;
        loop {
            match (terms.head(at), terms.args(at)) {
                (Head::Symbol(symbol), _) => {
                    return self
                        .regions
                        .iter()
                        .position(|region| region.symbol == symbol);
                }
                (Head::Add(_), &[a, b]) if terms.is_private(a) != terms.is_private(b) => {
                    at = if terms.is_private(a) { a } else { b };
                }
                (Head::ZeroExtend(32, _), &[a]) => at = a,
                (
                    Head::Extract {
                        lo: 0, bits: 32, ..
                    },
                    &[a],
                ) => at = a,
                _ => return None,
            }
        }
    }

    /// The offset of `address` in its region for every thread.
    fn offsets(
        &mut self,
        terms: &Terms,
        address: Term,
        region: usize,
    ) -> Result<Offsets, Misplaced> {
        if let Some(offsets) = self.offsets.get(&(address, region)) {
            return Ok(offsets.clone());
        }
        let unclear =
            |text: &str| Misplaced::Unclear(format!("{text} in the address of a spill slot"));
        let value = |at| {
            Evaluation {
                terms,
                at,
                fuel: Cell::new(FUEL),
            }
            .value(address)
        };
        let is_local = self.regions[region].space == SlotSpace::Local;
        let wide: Vec<u64> = match (value(None), self.threads.block) {
            // Each thread has its own copy of a local region, and this is the same place in each.
            (Some(offset), _) if is_local => vec![offset],
            (_, Some(block)) => thread_indices(block)
                .map(|thread| value(Some((thread, block))))
                .collect::<Option<_>>()
                .ok_or_else(|| unclear("an operation that is not understood"))?,
            (_, None) => {
                let form = linear(terms, address, self.threads.most).ok_or_else(|| {
                    unclear("something else than a multiple of the thread's number in its block")
                })?;
                (0..u64::from(self.threads.most))
                    .map(|thread| form.at(thread))
                    .collect()
            }
        };
        let size = u64::from(self.regions[region].bytes);
        if let Some((thread, offset)) = wide.iter().enumerate().find(|&(_, &offset)| offset >= size)
        {
            let name = &self.regions[region].name;
            return Err(Misplaced::Wrong(format!(
                "thread {thread} accesses byte {} of {name}, which has {size}",
                *offset as i64
            )));
        }
        let narrow: Offsets = wide.into_iter().map(|offset| offset as u32).collect();
        self.offsets.insert((address, region), narrow.clone());
        Ok(narrow)
    }

    fn slot(
        &mut self,
        region: usize,
        base: &Offsets,
        shift: u32,
        bytes: u32,
        access: u32,
    ) -> Result<u32, Misplaced> {
        let offsets: Offsets = match shift {
            0 => base.clone(),
            _ => base.iter().map(|offset| offset + shift).collect(),
        };
        if shift == 0 {
            self.check_alignment(region, &offsets, access)?;
        }
        let key = (region, offsets, bytes);
        if let Some(&slot) = self.ids.get(&key) {
            return Ok(slot);
        }
        let offsets = key.1.clone();
        self.claim(region, &offsets, bytes)?;
        let id = self.slots.len() as u32;
        let own = self.own.entry(self.regions[region].side).or_default();
        let ordinal = own.len() as u32;
        if self.regions[region].is_own {
            own.push(id);
        }
        let near = self.regions[region].touch(&offsets, bytes, id);
        let mut slot = Slot {
            region,
            ordinal,
            offsets,
            bytes,
            overlaps: Vec::new(),
        };
        for other_id in near {
            let other = &mut self.slots[other_id as usize];
            if let Some(distance) = overlap(&slot, other) {
                slot.overlaps.push((other_id, distance));
                other.overlaps.push((id, distance.map(|bytes| -bytes)));
            }
        }
        self.slots.push(slot);
        self.ids.insert(key, id);
        Ok(id)
    }

    fn check_alignment(
        &self,
        region: usize,
        offsets: &[u32],
        access: u32,
    ) -> Result<(), Misplaced> {
        let Region { name, align, .. } = &self.regions[region];
        if !align.is_multiple_of(access) {
            return Err(Misplaced::Wrong(format!(
                "{name} is aligned to {align} bytes, an access to it needs {access}"
            )));
        }
        match offsets
            .iter()
            .position(|offset| !offset.is_multiple_of(access))
        {
            Some(thread) => Err(Misplaced::Wrong(format!(
                "thread {thread} accesses {access} bytes at byte {} of {name}: not aligned",
                offsets[thread]
            ))),
            None => Ok(()),
        }
    }

    /// Claims the bytes of a slot for their threads. In local memory each thread has its own.
    fn claim(&mut self, region: usize, offsets: &[u32], bytes: u32) -> Result<(), Misplaced> {
        let Region {
            name,
            owner,
            bytes: size,
            space,
            ..
        } = &mut self.regions[region];
        for (thread, &offset) in offsets.iter().enumerate() {
            if u64::from(offset) + u64::from(bytes) > u64::from(*size) {
                return Err(Misplaced::Wrong(format!(
                    "thread {thread} accesses bytes {offset} to {} of {name}, which ends before",
                    offset + bytes - 1
                )));
            }
            if *space == SlotSpace::Local {
                continue;
            }
            let range = &mut owner[offset as usize..offset as usize + bytes as usize];
            let me = thread as u32 + 1;
            if let Some(other) = range.iter().find(|&&owner| owner != 0 && owner != me) {
                return Err(Misplaced::Wrong(format!(
                    "threads {} and {thread} share byte {offset} of {name}",
                    other - 1
                )));
            }
            range.fill(me);
        }
        Ok(())
    }
}

/// Do two slots share bytes in any thread? With their distance, if it is the same in all.
fn overlap(a: &Slot, b: &Slot) -> Option<Option<i64>> {
    let distance = |thread: usize| {
        i64::from(offset_of(&b.offsets, thread)) - i64::from(offset_of(&a.offsets, thread))
    };
    let first = distance(0);
    let mut threads = 0..a.offsets.len().max(b.offsets.len());
    let touches = |by: i64| -i64::from(b.bytes) < by && by < i64::from(a.bytes);
    match threads.clone().all(|thread| distance(thread) == first) {
        true => touches(first).then_some(Some(first)),
        false => threads
            .any(|thread| touches(distance(thread)))
            .then_some(None),
    }
}

/// All thread indices of a block, x running fastest.
fn thread_indices([x, y, z]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..z).flat_map(move |k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])))
}

/// Works out addresses for one thread, the private region taken to start at 0.
struct Evaluation<'a> {
    terms: &'a Terms,
    /// The thread's index and its block's size; `None`: an address that needs them has no value.
    at: Option<([u32; 3], [u32; 3])>,
    fuel: Cell<u32>,
}

impl Evaluation<'_> {
    fn value(&self, term: Term) -> Option<u64> {
        self.fuel.set(self.fuel.get().checked_sub(1)?);
        let args = self.terms.args(term);
        let arg = |index: usize| self.value(*args.get(index)?);
        Some(match self.terms.head(term) {
            Head::Const(bits) => bits,
            Head::Symbol(_) if self.terms.is_private(term) => 0,
            Head::Coordinate(coordinate) => {
                let (thread, block) = self.at?;
                let (of, dim) = match coordinate {
                    Coordinate::Thread(dim) => (thread, dim),
                    Coordinate::Block(dim) => (block, dim),
                };
                u64::from(*of.get(usize::from(dim))?)
            }
            Head::Add(bits) => truncate(arg(0)?.wrapping_add(arg(1)?), bits),
            Head::Mul(bits) => truncate(arg(0)?.wrapping_mul(arg(1)?), bits),
            Head::Logic { bits, table } => {
                let values: Option<Vec<u64>> = (0..args.len()).map(arg).collect();
                of_numbers(bits, table, &values?)
            }
            Head::Concat => {
                let (mut at, mut found) = (0, 0);
                for (part, bits) in args.chunks_exact(2).map(|part| (part[0], part[1])) {
                    let bits = self.terms.as_const(bits)? as u32;
                    let value = truncate(self.value(part)?, bits);
                    found |= value.checked_shl(at)?;
                    at += bits;
                }
                found
            }
            Head::ZeroExtend(from, _) => truncate(arg(0)?, from),
            Head::SignExtend(from, to) => truncate(sign_extended(arg(0)?, from) as u64, to),
            Head::Extract { lo, bits, .. } if lo < 64 => truncate(arg(0)? >> lo, bits),
            _ => return None,
        })
    }
}
