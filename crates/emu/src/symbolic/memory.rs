//! Memory whose words are bits or terms, and the log of who touched what.

use smallvec::SmallVec;
use warpwright_launch::ElemType;

use crate::lanes::Mask;
use crate::symbolic::term::{Id, Terms, Unset, Val};

/// A word of memory: bits, a term, the input that it was at first, or nothing that anybody wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Bits(u32),
    Term(Id),
    Initial,
    Unset,
}

/// What a buffer holds before the first launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Any values: each element is an input.
    Any,
    /// These bytes.
    Known(Vec<u8>),
    /// Nothing.
    Unset,
}

/// Global or constant memory under one name, over the launches of one side.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its name in reports.
    pub name: String,
    /// The number that its inputs have in terms: the same on both sides.
    pub number: u32,
    /// Bits of an element.
    pub bits: u32,
    /// Bytes.
    pub len: u64,
    /// A store is a fault.
    pub constant: bool,
    /// Somebody has written to it.
    pub written: bool,
    /// Who touches it when is noted: of an input that nobody writes that is not needed.
    pub logged: bool,
    /// Somebody has read what it held before the first launch, where that is known.
    pub relied: bool,
    /// What a variable of the module holds when that is loaded.
    pub(crate) loaded: Vec<u8>,
    words: Vec<Word>,
    /// Bytes that are known from the start, and that nobody has written.
    given: Vec<bool>,
}

impl Buffer {
    /// A buffer of so many elements.
    pub fn new(name: &str, number: u32, ty: ElemType, len: usize, content: &Content) -> Buffer {
        let bits = 8 * ty.size() as u32;
        let bytes = len as u64 * u64::from(bits / 8);
        let buffer = Buffer::of_bytes(name, (number, bits), bytes, false, content);
        let given = match content {
            Content::Known(bytes) => vec![true; bytes.len()],
            Content::Any | Content::Unset => Vec::new(),
        };
        Buffer { given, ..buffer }
    }

    /// A constant that holds these bytes; the number of its inputs and the bits of its elements.
    pub(crate) fn given(name: &str, place: (u32, u32), bytes: &[u8]) -> Buffer {
        let content = Content::Known(bytes.to_vec());
        Buffer {
            given: vec![true; bytes.len()],
            ..Buffer::of_bytes(name, place, bytes.len() as u64, true, &content)
        }
    }

    /// A buffer of so many bytes of which nothing is known.
    pub fn bare(name: &str, ty: ElemType, len: u64) -> Buffer {
        let bits = 8 * ty.size() as u32;
        let empty = Buffer::of_bytes(name, (0, bits), 0, false, &Content::Any);
        Buffer { len, ..empty }
    }

    pub(crate) fn of_bytes(
        name: &str,
        (number, bits): (u32, u32),
        len: u64,
        constant: bool,
        content: &Content,
    ) -> Buffer {
        let count = len.div_ceil(4) as usize;
        let words = match content {
            Content::Any => vec![Word::Initial; count],
            Content::Unset => vec![Word::Unset; count],
            Content::Known(bytes) => {
                let mut words: Vec<Word> = bytes.chunks(4).map(known).collect();
                words.resize(count, Word::Bits(0));
                words
            }
        };
        Buffer {
            name: name.to_owned(),
            number,
            bits,
            len,
            constant,
            written: false,
            logged: false,
            relied: false,
            loaded: Vec::new(),
            words,
            given: Vec::new(),
        }
    }

    /// A variable of the module that launches leave otherwise than they found it.
    pub fn is_state(&self) -> bool {
        let loaded = self.loaded.chunks(4).map(known);
        self.written && !self.constant && loaded.zip(&self.words).any(|(old, now)| old != *now)
    }

    /// As it is for all that is known after other launches.
    pub fn forgotten(&self) -> Buffer {
        Buffer {
            words: vec![Word::Unset; self.words.len()],
            written: false,
            ..self.clone()
        }
    }

    /// Do both hold the same?
    pub fn holds_as(&self, other: &Buffer) -> bool {
        self.words == other.words
    }

    /// Overwrites bytes from the start on with known ones.
    pub(crate) fn fill(&mut self, bytes: &[u8]) {
        for (word, chunk) in self.words.iter_mut().zip(bytes.chunks(4)) {
            *word = known(chunk);
        }
    }

    /// A word as it is.
    pub(crate) fn word(&self, at: usize) -> Option<Word> {
        self.words.get(at).copied()
    }

    /// What stands at a place now.
    #[inline(always)]
    pub(crate) fn read(&mut self, terms: &mut Terms, offset: u64, size: u32) -> Val {
        match term_at(&self.words, offset, size) {
            Some(id) if self.given.is_empty() => Val::Term(id),
            _ => self.read_otherwise(terms, offset, size),
        }
    }

    fn read_otherwise(&mut self, terms: &mut Terms, offset: u64, size: u32) -> Val {
        self.relied |= self.given_at(offset, size).contains(&true);
        self.stands(terms, offset, size)
    }

    fn given_at(&mut self, offset: u64, size: u32) -> &mut [bool] {
        let at = offset as usize..offset as usize + size as usize;
        self.given.get_mut(at).unwrap_or_default()
    }

    fn stands(&mut self, terms: &mut Terms, offset: u64, size: u32) -> Val {
        let (number, bits) = (self.number, self.bits);
        let fresh = |terms: &mut Terms, at: u32, word: Word| match word {
            Word::Initial => initial(terms, number, bits, at),
            _ => Val::Term(terms.unset(Unset::Global(number), at)),
        };
        read(&mut self.words, terms, offset, size, fresh)
    }

    pub(crate) fn write(&mut self, terms: &mut Terms, offset: u64, size: u32, value: Val) {
        self.written = true;
        if size < 4 {
            // The rest of the word stays: it must be known what it is.
            self.stands(terms, offset & !3, 4);
        }
        self.given_at(offset, size).fill(false);
        write(&mut self.words, terms, offset, size, value);
    }

    /// Element `index` now.
    pub fn element(&mut self, terms: &mut Terms, index: usize) -> Val {
        let size = self.bits / 8;
        self.read(terms, index as u64 * u64::from(size), size)
    }

    /// Elements.
    pub fn elements(&self) -> usize {
        (self.len / u64::from(self.bits / 8)) as usize
    }
}

fn known(chunk: &[u8]) -> Word {
    let mut word = [0; 4];
    word[..chunk.len()].copy_from_slice(chunk);
    Word::Bits(u32::from_le_bytes(word))
}

/// Word `at` of a buffer's inputs.
fn initial(terms: &mut Terms, number: u32, bits: u32, at: u32) -> Val {
    match bits {
        32 => Val::Term(terms.input(number, at, 32)),
        64 => {
            let whole = Val::Term(terms.input(number, at / 2, 64));
            terms.extract(whole, 32 * (at & 1), 32)
        }
        _ => {
            let per = 32 / bits;
            let mut all = Val::Term(terms.input(number, at * per, bits));
            for i in 1..per {
                let next = Val::Term(terms.input(number, at * per + i, bits));
                all = terms.concat(all, i * bits, next, (i + 1) * bits);
            }
            all
        }
    }
}

/// The term that a word is, most often.
#[inline(always)]
pub(crate) fn term_at(words: &[Word], offset: u64, size: u32) -> Option<Id> {
    match words.get((offset >> 2) as usize) {
        Some(&Word::Term(id)) if size == 4 => Some(id),
        _ => None,
    }
}

/// Reads 1, 2, 4 or 8 bytes at an aligned place; `fresh` makes what was not touched yet.
#[inline]
pub(crate) fn read(
    words: &mut [Word],
    terms: &mut Terms,
    offset: u64,
    size: u32,
    fresh: impl Fn(&mut Terms, u32, Word) -> Val,
) -> Val {
    let at = (offset >> 2) as usize;
    let mut word = |terms: &mut Terms, at: usize| match words.get(at) {
        Some(&Word::Bits(bits)) => Val::Bits(u64::from(bits)),
        Some(&Word::Term(id)) => Val::Term(id),
        Some(&other) => {
            let value = fresh(terms, at as u32, other);
            if let (Val::Term(id), Some(place)) = (value, words.get_mut(at)) {
                *place = Word::Term(id);
            }
            value
        }
        None => Val::Bits(0),
    };
    match size {
        4 => word(terms, at),
        8 => {
            let (low, high) = (word(terms, at), word(terms, at + 1));
            match (low, high) {
                (Val::Bits(low), Val::Bits(high)) => Val::Bits(low | high << 32),
                _ => terms.concat(low, 32, high, 64),
            }
        }
        _ => {
            let whole = word(terms, at);
            terms.extract(whole, 8 * (offset & 3) as u32, 8 * size)
        }
    }
}

/// Writes 1, 2, 4 or 8 bytes at an aligned place.
#[inline]
pub(crate) fn write(words: &mut [Word], terms: &mut Terms, offset: u64, size: u32, value: Val) {
    let at = (offset >> 2) as usize;
    let mut put = |at: usize, value: Val| {
        if let Some(place) = words.get_mut(at) {
            *place = match value {
                Val::Bits(bits) => Word::Bits(bits as u32),
                Val::Term(id) => Word::Term(id),
            };
        }
    };
    match size {
        4 => {
            let value = terms.extract(value, 0, 32);
            put(at, value);
        }
        8 => {
            let (low, high) = (terms.extract(value, 0, 32), terms.extract(value, 32, 32));
            put(at, low);
            put(at + 1, high);
        }
        _ => {
            let old = match words.get(at) {
                Some(&Word::Bits(bits)) => Val::Bits(u64::from(bits)),
                Some(&Word::Term(id)) => Val::Term(id),
                _ => Val::Bits(0),
            };
            let (from, bits) = (8 * (offset & 3) as u32, 8 * size);
            let mut new = terms.extract(value, 0, bits);
            if from > 0 {
                let below = terms.extract(old, 0, from);
                new = terms.concat(below, from, new, from + bits);
            }
            if from + bits < 32 {
                let above = terms.extract(old, from + bits, 32 - from - bits);
                new = terms.concat(new, from + bits, above, 32);
            }
            let place = words.get_mut(at);
            if let Some(place) = place {
                *place = match new {
                    Val::Bits(bits) => Word::Bits(bits as u32),
                    Val::Term(id) => Word::Term(id),
                };
            }
        }
    }
}

// ---- who touched what

/// By which kind of access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum By {
    #[default]
    Plain,
    /// A load of what nothing may write while the kernel runs.
    ReadOnly,
    /// A load ahead of a compare-and-swap at the same address.
    Guess,
    /// An atomic operation of a kind, whose order does not show among its own kind.
    Commuting(u8),
    /// An atomic operation that shows what came before it.
    Showing,
}

impl By {
    pub fn is_atomic(self) -> bool {
        matches!(self, By::Commuting(_) | By::Showing)
    }

    fn shows(self, other: By) -> bool {
        self == By::Showing || other == By::Showing || self != other
    }
}

/// When and by whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Number of the block, from 1; 0 is nobody.
    pub block: u32,
    pub warp: u16,
    pub lane: u8,
    pub by: By,
    /// Barriers that the block has passed.
    pub barriers: u32,
    /// Collective instructions that the warp has executed.
    pub stamp: u32,
    /// The condition on data under which it happens; 0 without one.
    pub under: Id,
}

/// Lanes of a warp that touch a place at the same stamp; `last` is one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    last: Moment,
    lanes: Mask,
}

type Groups = SmallVec<[Group; 1]>;

impl Group {
    #[inline]
    fn has(&self, now: &Moment) -> bool {
        let lane = now.lane;
        Moment { lane, ..self.last } == *now
    }

    /// Is it of the same warp and kind, under the same condition?
    #[inline]
    fn is_like(&self, now: &Moment) -> bool {
        let last = &self.last;
        last.warp == now.warp && last.under == now.under && last.by == now.by
    }

    /// One that nothing orders before another access.
    fn unordered(&self, is_ordered: impl Fn(&Moment) -> bool) -> Option<Moment> {
        let mut lanes = self.lanes;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            let one = Moment { lane, ..self.last };
            if !is_ordered(&one) {
                return Some(one);
            }
            lanes &= lanes - 1;
        }
        None
    }
}

/// The last one of some accesses that nothing orders before another.
#[inline]
fn unordered(
    groups: &Groups,
    now: &Moment,
    is_ordered: impl Fn(&Moment) -> bool,
) -> Option<Moment> {
    // All of the block come before what follows a barrier.
    let is_past =
        |group: &&Group| group.last.block == now.block && group.last.barriers < now.barriers;
    let mut groups = groups.iter().rev().filter(|group| !is_past(group));
    groups.find_map(|group| group.unordered(&is_ordered))
}

/// Adds an access. Those are left out that order with all that follow: of the block before its last barrier, and of the
/// lane itself, if they are of the same kind. Of another block one is enough.
fn join(groups: &mut Groups, now: Moment) {
    let lanes = 1 << now.lane;
    // Once more what others were left out for.
    if let [others @ .., last] = &mut groups[..]
        && last.has(&now)
        && !others.iter().any(|group| group.is_like(&now))
    {
        last.lanes |= lanes;
        return;
    }
    let foreign = groups.iter().rposition(|g| g.last.block != now.block);
    let mut at = 0;
    groups.retain(|group| {
        at += 1;
        if group.last.block != now.block {
            return foreign == Some(at - 1);
        }
        if group.is_like(&now) && !group.has(&now) {
            group.lanes &= !lanes;
        }
        group.last.barriers == now.barriers && group.lanes != 0
    });
    match groups.iter_mut().find(|group| group.has(&now)) {
        Some(group) => group.lanes |= lanes,
        None => groups.push(Group { last: now, lanes }),
    }
}

/// What stands at a place: a value, or a part of it.
type Part = (Val, u64);

/// The part of a value, written at an offset, that a place gets.
fn part(value: Val, (offset, size): (u64, u32), (from, bytes): (u64, u64)) -> Part {
    if from < offset || u64::from(size) < bytes {
        return (value, u64::MAX - offset);
    }
    match value {
        Val::Bits(bits) => {
            let mask = u64::MAX >> (64 - 8 * bytes.clamp(1, 8));
            let shift = 8 * (from - offset) as u32;
            (Val::Bits(bits.checked_shr(shift).unwrap_or(0) & mask), 0)
        }
        Val::Term(_) => (value, from - offset),
    }
}

#[derive(Clone, Debug, Default)]
struct Touched {
    /// Stores that none replaces for sure: several are there where all write the same.
    stores: Groups,
    /// Atomic operations since.
    atomics: Groups,
    readers: Groups,
    value: Option<Part>,
    /// The last one to which it is read-only.
    constant: Moment,
}

impl Touched {
    /// A write that nothing orders before a read.
    #[inline]
    fn writer(&self, now: &Moment, is_ordered: impl Fn(&Moment) -> bool) -> Option<Moment> {
        let store = unordered(&self.stores, now, &is_ordered);
        store.or_else(|| unordered(&self.atomics, now, &is_ordered))
    }

    /// A write that nothing orders before another one, but for those of the same value, and for atomic operations among
    /// themselves.
    fn other_writer(
        &self,
        now: &Moment,
        value: Option<Part>,
        is_ordered: impl Fn(&Moment) -> bool,
    ) -> Option<Moment> {
        if now.by.is_atomic() {
            return unordered(&self.stores, now, &is_ordered);
        }
        let is_same = value.is_some() && self.value == value;
        let store = match is_same {
            true => None,
            false => unordered(&self.stores, now, &is_ordered),
        };
        store.or_else(|| unordered(&self.atomics, now, &is_ordered))
    }

    fn write(&mut self, now: Moment, value: Option<Part>, is_ordered: impl Fn(&Moment) -> bool) {
        if now.by.is_atomic() {
            join(&mut self.atomics, now);
        } else {
            // What happens under a condition replaces nothing that may happen without it.
            let stays = |group: &mut Group| {
                let is_other = now.under != 0 && group.last.under != now.under;
                is_other || group.unordered(&is_ordered).is_some()
            };
            self.stores.retain(stays);
            self.atomics.retain(stays);
            join(&mut self.stores, now);
        }
        self.value = value;
    }
}

/// Entries of a page.
const PAGE: usize = 256;

/// The log of a memory: one entry for so many bytes, in pages that are there once they are touched.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pages: Vec<Option<Box<[Touched]>>>,
    len: usize,
    granule: u64,
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub first: Moment,
    pub what: Clash,
}

/// Which accesses meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clash {
    /// A read of what another thread writes.
    ReadAfterWrite,
    /// A write over what another thread reads.
    WriteAfterRead,
    /// Two writes of different values.
    WriteAfterWrite,
    /// A write to what a load takes for memory that nothing changes (`ld.global.nc`), of one thread or of two.
    Constant,
}

impl Log {
    pub fn new(bytes: u64, granule: u64) -> Log {
        let len = bytes.div_ceil(granule) as usize;
        let mut pages = Vec::new();
        pages.resize_with(len.div_ceil(PAGE), || None);
        Log {
            pages,
            len,
            granule,
        }
    }

    pub fn clear(&mut self) {
        let pages = self.pages.iter_mut().flatten();
        pages.for_each(|page| page.fill(Touched::default()));
    }

    #[inline(always)]
    fn entry(&mut self, at: usize) -> &mut Touched {
        let page = &mut self.pages[at / PAGE];
        let page = page.get_or_insert_with(|| vec![Touched::default(); PAGE].into());
        &mut page[at % PAGE]
    }

    fn range(&self, offset: u64, size: u32) -> std::ops::Range<usize> {
        let granule = self.granule.max(1);
        let end = (offset + u64::from(size)).div_ceil(granule) as usize;
        (offset / granule) as usize..end.min(self.len)
    }

    #[inline]
    pub fn read(
        &mut self,
        offset: u64,
        size: u32,
        now: Moment,
        is_ordered: impl Fn(&Moment) -> bool,
    ) -> Option<Conflict> {
        let range = self.range(offset, size);
        let mut found = None;
        for at in range {
            let entry = self.entry(at);
            let is_constant = now.by == By::ReadOnly;
            if is_constant {
                entry.constant = now;
            }
            let is_guessed = |earlier: &Moment| now.by == By::Guess && earlier.by.is_atomic();
            // What nothing may write nothing may have written before a barrier, either.
            let barriers = if is_constant { 0 } else { now.barriers };
            let since = Moment { barriers, ..now };
            let writer = entry.writer(&since, |earlier| {
                !is_constant && (is_guessed(earlier) || is_ordered(earlier))
            });
            if let Some(first) = writer {
                let what = match is_constant {
                    true => Clash::Constant,
                    false => Clash::ReadAfterWrite,
                };
                found = Some(Conflict { first, what });
            }
            join(&mut entry.readers, now);
        }
        found
    }

    /// Does an atomic operation show which of some threads of its block came first?
    pub fn is_order_shown(
        &mut self,
        offset: u64,
        size: u32,
        now: Moment,
        is_ordered: impl Fn(&Moment) -> bool,
    ) -> bool {
        let mut shown = false;
        for at in self.range(offset, size) {
            let own = |group: &&Group| group.last.block == now.block;
            let mut beside = self.entry(at).atomics.iter().filter(own);
            let is_shown = |group: &Group| now.by.shows(group.last.by);
            shown |= beside.any(|group| is_shown(group) && group.unordered(&is_ordered).is_some());
        }
        shown
    }

    /// Does one show which of some blocks came first? Nothing orders them.
    pub fn is_block_order_shown(&mut self, offset: u64, size: u32, now: Moment) -> bool {
        let mut shown = false;
        for at in self.range(offset, size) {
            let mut groups = self.entry(at).atomics.iter();
            let others = |group: &Group| group.last.block != now.block;
            shown |= groups.any(|group| others(group) && now.by.shows(group.last.by));
        }
        shown
    }

    #[inline]
    pub fn write(
        &mut self,
        offset: u64,
        size: u32,
        now: Moment,
        value: Option<Val>,
        is_ordered: impl Fn(&Moment) -> bool,
    ) -> Option<Conflict> {
        let range = self.range(offset, size);
        let granule = self.granule.max(1);
        let mut found = None;
        for at in range {
            let place = (at as u64 * granule, granule);
            let value = value.map(|value| part(value, (offset, size), place));
            let entry = self.entry(at);
            if let Some(first) = entry.other_writer(&now, value, &is_ordered) {
                found = Some(Conflict {
                    first,
                    what: Clash::WriteAfterWrite,
                });
            }
            let is_swap = now.by.is_atomic();
            let reader = unordered(&entry.readers, &now, |earlier| {
                is_swap && earlier.by == By::Guess || is_ordered(earlier)
            });
            let constant = Some(entry.constant).filter(|constant| constant.block != 0);
            if let Some(first) = constant.or(reader) {
                let what = match constant {
                    Some(_) => Clash::Constant,
                    None => Clash::WriteAfterRead,
                };
                found = Some(Conflict { first, what });
            }
            entry.write(now, value, &is_ordered);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(warp: u16, lane: u8, stamp: u32) -> Moment {
        Moment {
            block: 1,
            warp,
            lane,
            stamp,
            ..Moment::default()
        }
    }

    /// What the lanes of a warp read and one of them then overwrites, with nothing between.
    fn conflict(reads: &[Moment], write: Moment) -> Option<Moment> {
        let mut log = Log::new(4, 4);
        for &read in reads {
            assert_eq!(log.read(0, 4, read, |_| true), None);
        }
        let is_ordered = |earlier: &Moment| {
            earlier.warp == write.warp
                && (earlier.lane == write.lane || earlier.stamp < write.stamp)
        };
        let found = log.write(0, 4, write, None, is_ordered);
        found.map(|conflict| conflict.first)
    }

    /// What is said of writes to one place, one after the other, and of a read behind them: only a lane's own are ordered.
    fn met(writes: &[(Moment, Option<Val>)], read: Moment) -> (bool, bool) {
        let mut log = Log::new(4, 4);
        let own = |now: Moment| {
            move |earlier: &Moment| (earlier.warp, earlier.lane) == (now.warp, now.lane)
        };
        let mut found = false;
        for &(now, value) in writes {
            found |= log.write(0, 4, now, value, own(now)).is_some();
        }
        (found, log.read(0, 4, read, own(read)).is_some())
    }

    #[test]
    fn the_last_writer_does_not_hide_the_others() {
        let store = |warp, value| (at(warp, 0, 0), Some(Val::Bits(value)));
        let add = |warp| {
            let by = By::Commuting(16);
            (
                Moment {
                    by,
                    ..at(warp, 0, 0)
                },
                None,
            )
        };
        let last = |warp| at(warp, 0, 0);
        assert_eq!(met(&[store(0, 1), store(1, 1)], last(1)), (false, true));
        assert_eq!(met(&[store(0, 1), store(0, 2)], last(0)), (false, false));
        assert_eq!(
            met(&[store(0, 1), store(1, 1), store(1, 2)], last(1)),
            (true, true)
        );
        assert_eq!(met(&[add(0), add(1)], last(1)), (false, true));
        assert_eq!(met(&[store(0, 1), add(0)], last(0)), (false, false));
        assert_eq!(met(&[store(0, 1), add(0), add(1)], last(1)), (true, true));
    }

    #[test]
    fn an_exchange_is_not_hidden_by_the_sum_of_its_thread() {
        let of = |warp, by| Moment {
            by,
            ..at(warp, 0, 0)
        };
        let (sum, exchange) = (By::Commuting(16), By::Showing);
        for (kinds, is_shown) in [([exchange, sum], true), ([sum, sum], false)] {
            let mut log = Log::new(4, 4);
            for by in kinds {
                log.write(0, 4, of(0, by), None, |earlier| earlier.warp == 0);
            }
            let found = log.is_order_shown(0, 4, of(1, sum), |earlier| earlier.warp == 1);
            assert_eq!(found, is_shown);
        }
    }

    #[test]
    fn an_ordered_reader_does_not_push_another_out() {
        let reads = [at(0, 5, 0), at(0, 6, 1), at(0, 7, 2), at(1, 1, 2)];
        let lanes: Vec<Moment> = reads.to_vec();
        let mut log = Log::new(4, 4);
        for &read in &lanes {
            log.read(0, 4, read, |_| true);
        }
        let found = log.write(0, 4, at(0, 8, 3), None, |earlier| earlier.lane != 5);
        assert_eq!(found.map(|conflict| conflict.first), Some(at(0, 5, 0)));
    }

    #[test]
    fn the_last_reader_does_not_hide_the_others() {
        let lanes: Vec<Moment> = (0..4).map(|lane| at(0, lane, 0)).collect();
        assert_eq!(conflict(&lanes, at(0, 3, 0)), Some(at(0, 0, 0)));
        assert_eq!(conflict(&lanes[3..], at(0, 3, 0)), None);
        assert_eq!(conflict(&lanes, at(0, 3, 1)), None, "they have met since");
        let mixed = [at(0, 0, 1), at(0, 3, 1), at(0, 2, 2)];
        assert_eq!(conflict(&mixed, at(0, 2, 1)), Some(at(0, 0, 1)));
        let warps = [at(0, 1, 0), at(1, 1, 0), at(1, 2, 0)];
        assert_eq!(conflict(&warps, at(1, 2, 0)), Some(at(1, 1, 0)));
        assert_eq!(conflict(&warps[..1], at(1, 2, 0)), Some(at(0, 1, 0)));
    }
}
