//! Memory whose words are bits or terms, and the log of who touched what.

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
    words: Vec<Word>,
}

impl Buffer {
    /// A buffer of so many elements.
    pub fn new(name: &str, number: u32, ty: ElemType, len: usize, content: &Content) -> Buffer {
        let bits = 8 * ty.size() as u32;
        let bytes = len as u64 * u64::from(bits / 8);
        Buffer::of_bytes(name, (number, bits), bytes, false, content)
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
            words,
        }
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
    pub(crate) fn read(&mut self, terms: &mut Terms, offset: u64, size: u32) -> Val {
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
            self.read(terms, offset & !3, 4);
        }
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

/// When and by whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Number of the block, from 1; 0 is nobody.
    pub block: u32,
    pub warp: u16,
    pub lane: u8,
    pub atomic: bool,
    /// Barriers that the block has passed.
    pub barriers: u32,
    /// Collective instructions that the warp has executed.
    pub stamp: u32,
    /// The condition on data under which it happens; 0 without one.
    pub under: Id,
}

/// Lanes of a warp that read at the same stamp; `last` is one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Readers {
    last: Moment,
    lanes: Mask,
}

impl Readers {
    /// One that nothing orders before a write.
    fn unordered(&self, atomic: bool, is_ordered: impl Fn(&Moment) -> bool) -> Option<Moment> {
        if self.last.block == 0 || self.last.atomic && atomic {
            return None;
        }
        let mut lanes = self.lanes;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            let reader = Moment { lane, ..self.last };
            if !is_ordered(&reader) {
                return Some(reader);
            }
            lanes &= lanes - 1;
        }
        None
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    writer: Moment,
    /// The last ones, those of the same warp at an earlier stamp, and those of another warp.
    readers: [Readers; 3],
    value: Option<Val>,
}

impl Touched {
    fn read(&mut self, now: Moment) {
        let lanes = 1 << now.lane;
        let last = &mut self.readers[0];
        if (last.last, last.lanes) == (now, last.lanes | lanes) {
            return;
        }
        let before = last.last;
        let same = Moment {
            lane: now.lane,
            under: now.under,
            ..before
        } == now;
        // Of readers under several conditions nothing is assumed.
        let under = if same && before.under != now.under {
            0
        } else {
            now.under
        };
        let lanes = if same { last.lanes | lanes } else { lanes };
        if !same {
            let old = *last;
            match (before.block, before.warp) == (now.block, now.warp) {
                true if before.barriers == now.barriers => self.readers[1] = old,
                true => {}
                false => (self.readers[1], self.readers[2]) = (Readers::default(), old),
            }
        }
        self.readers[0] = Readers {
            last: Moment { under, ..now },
            lanes,
        };
    }
}

/// Entries of a page.
const PAGE: usize = 256;

/// The log of a memory: one entry for so many bytes, in pages that are there once they are touched.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pages: Vec<Option<Box<[Touched; PAGE]>>>,
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
        let page =
            self.pages[at / PAGE].get_or_insert_with(|| Box::new([Touched::default(); PAGE]));
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
            let both_atomic = entry.writer.atomic && now.atomic;
            if entry.writer.block != 0 && !both_atomic && !is_ordered(&entry.writer) {
                found = Some(Conflict {
                    first: entry.writer,
                    what: Clash::ReadAfterWrite,
                });
            }
            entry.read(now);
        }
        found
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
        let mut found = None;
        for at in range {
            let entry = self.entry(at);
            let writer = entry.writer;
            let same = value.is_some() && entry.value == value || writer.atomic && now.atomic;
            if writer.block != 0 && !same && !is_ordered(&writer) {
                found = Some(Conflict {
                    first: writer,
                    what: Clash::WriteAfterWrite,
                });
            }
            let mut readers = entry.readers.iter();
            let reader = readers.find_map(|r| r.unordered(now.atomic, &is_ordered));
            if let Some(first) = reader {
                found = Some(Conflict {
                    first,
                    what: Clash::WriteAfterRead,
                });
            }
            (entry.writer, entry.value) = (now, value);
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
