//! What launches of a kernel in one class were given, as long as that is little: a size that takes two values is worth a
//! version for each, a number that is another one at each launch is not.
//!
//! Launches are told apart by their grid and the bytes of their parameters, pointers left out. Where there are more kinds of
//! launches than are kept, the word that takes the most values is what changes all the time: it is left out, too.

use std::collections::BTreeSet;

/// Kinds of launches that are kept apart.
const MOST: usize = 8;
/// What is left out is left out by so many bytes.
const WORD: usize = 4;
/// Bytes of a grid, which stands before the parameters.
const GRID: usize = 12;

/// Launches that were given the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Grid and parameters; none for what is left out.
    bytes: Vec<Option<u8>>,
    /// Launches.
    pub count: u64,
    /// Those whose time is known.
    pub timed: u64,
    /// Their time.
    pub total_ns: u64,
}

impl Taken {
    /// The grid, if it is the same.
    pub fn grid(&self) -> Option<[u32; 3]> {
        let all: Option<Vec<u8>> = self.bytes.get(..GRID)?.iter().copied().collect();
        let all = all?;
        let number = |at: usize| {
            let bytes = [all[at], all[at + 1], all[at + 2], all[at + 3]];
            u32::from_le_bytes(bytes)
        };
        Some([number(0), number(4), number(8)])
    }

    /// The bytes of the parameters; none for what is left out.
    pub fn parameters(&self) -> &[Option<u8>] {
        self.bytes.get(GRID..).unwrap_or_default()
    }

    /// Nanoseconds of all launches: those whose time is not known count like the others.
    pub fn gpu_ns(&self) -> u64 {
        (self.total_ns as f64 * self.count as f64 / self.timed.max(1) as f64) as u64
    }

    /// `COUNT:TIMED:NS:DIGITS`, two digits for a byte, `..` for one that is left out.
    pub(crate) fn text(&self) -> String {
        let Taken {
            count,
            timed,
            total_ns,
            ..
        } = self;
        format!("{count}:{timed}:{total_ns}:{}", digits(&self.bytes))
    }

    pub(crate) fn parse(text: &str) -> Option<Taken> {
        let mut parts = text.splitn(4, ':');
        let mut number = || parts.next()?.parse().ok();
        let (count, timed, total_ns) = (number()?, number()?, number()?);
        let bytes = from_digits(parts.next()?)?;
        (bytes.len() >= GRID).then_some(Taken {
            bytes,
            count,
            timed,
            total_ns,
        })
    }
}

/// Two digits for a byte, `..` for one that is not known.
pub fn digits(bytes: &[Option<u8>]) -> String {
    let digits = bytes.iter().map(|byte| match byte {
        Some(byte) => format!("{byte:02x}"),
        None => "..".to_owned(),
    });
    digits.collect()
}

/// The bytes of [`digits`].
pub fn from_digits(text: &str) -> Option<Vec<Option<u8>>> {
    let byte = |pair: &[u8]| match pair {
        b".." => Some(None),
        _ => {
            let pair = std::str::from_utf8(pair).ok()?;
            Some(Some(u8::from_str_radix(pair, 16).ok()?))
        }
    };
    text.as_bytes().chunks(2).map(byte).collect()
}

/// The kinds of launches of a kernel in one class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    taken: Vec<Taken>,
    /// Which of them a number stands for that was given out.
    of: Vec<usize>,
}

impl Values {
    /// The kinds.
    pub fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// One more launch of a kind that is known: its number. `None` where it is of another kind.
    pub fn meet(&mut self, grid: [u32; 3], parameters: &[u8]) -> Option<usize> {
        let all = || grid.iter().flat_map(|n| n.to_le_bytes());
        let is_it = |taken: &Taken| {
            let bytes = all().chain(parameters.iter().copied());
            let mut pairs = taken.bytes.iter().zip(bytes);
            taken.bytes.len() == GRID + parameters.len()
                && pairs.all(|(known, byte)| known.is_none_or(|known| known == byte))
        };
        let place = self.taken.iter().position(is_it)?;
        self.taken[place].count += 1;
        self.of.iter().position(|of| *of == place)
    }

    /// A launch of another kind: its number. Parameters that are left out are none.
    pub fn add(&mut self, grid: [u32; 3], parameters: &[Option<u8>]) -> usize {
        let grid = grid.iter().flat_map(|n| n.to_le_bytes()).map(Some);
        self.join(Taken {
            bytes: grid.chain(parameters.iter().copied()).collect(),
            count: 1,
            timed: 0,
            total_ns: 0,
        })
    }

    /// Launches of a kind, perhaps of another process: its number.
    pub fn join(&mut self, mut other: Taken) -> usize {
        loop {
            self.leave_out_the_same(&mut other);
            let same = (self.taken.iter_mut()).position(|taken| taken.bytes == other.bytes);
            if let Some(place) = same {
                let known = &mut self.taken[place];
                known.count += other.count;
                known.timed += other.timed;
                known.total_ns += other.total_ns;
                return self.number(place);
            }
            if self.taken.len() < MOST {
                self.taken.push(other);
                return self.number(self.taken.len() - 1);
            }
            let word = self.widest(&other);
            forget(&mut other.bytes, word);
        }
    }

    /// The time of a launch that has this number.
    pub fn time(&mut self, number: usize, ns: u64) {
        let place = self.of.get(number).copied();
        if let Some(taken) = place.and_then(|place| self.taken.get_mut(place)) {
            taken.timed += 1;
            taken.total_ns += ns;
        }
    }

    fn number(&mut self, place: usize) -> usize {
        let known = self.of.iter().position(|of| *of == place);
        known.unwrap_or_else(|| {
            self.of.push(place);
            self.of.len() - 1
        })
    }

    /// What is left out of one is left out of all; some may become the same then.
    fn leave_out_the_same(&mut self, other: &mut Taken) {
        let Some(first) = self.taken.first() else {
            return;
        };
        if first.bytes.len() != other.bytes.len() {
            // Another signature under the same name: nothing is known of either.
            other.bytes = vec![None; first.bytes.len()];
        }
        let words = first.bytes.len().div_ceil(WORD);
        let is_out = |bytes: &[Option<u8>], word: usize| word_of(bytes, word).contains(&None);
        let out = (0..words).filter(|&w| is_out(&first.bytes, w) || is_out(&other.bytes, w));
        for word in out.collect::<Vec<_>>() {
            forget(&mut other.bytes, word);
            for taken in &mut self.taken {
                forget(&mut taken.bytes, word);
            }
        }
        let mut place = 0;
        while place < self.taken.len() {
            let own = &self.taken[place];
            let earlier = self.taken[..place].iter();
            match earlier.clone().position(|t| t.bytes == own.bytes) {
                Some(same) => self.merge(place, same),
                None => place += 1,
            }
        }
    }

    fn merge(&mut self, place: usize, into: usize) {
        let gone = self.taken.remove(place);
        let known = &mut self.taken[into];
        known.count += gone.count;
        known.timed += gone.timed;
        known.total_ns += gone.total_ns;
        for of in &mut self.of {
            match *of {
                of_gone if of_gone == place => *of = into,
                later if later > place => *of = later - 1,
                _ => {}
            }
        }
    }

    /// The word that takes the most values; of several the last, since sizes stand before numbers of iterations.
    fn widest(&self, other: &Taken) -> usize {
        let values = |word: usize| {
            let all = self.taken.iter().chain([other]);
            let values: BTreeSet<&[Option<u8>]> = all.map(|t| word_of(&t.bytes, word)).collect();
            values.len()
        };
        let words = 0..other.bytes.len().div_ceil(WORD);
        words.max_by_key(|&word| values(word)).unwrap_or(0)
    }
}

fn word_of(bytes: &[Option<u8>], word: usize) -> &[Option<u8>] {
    &bytes[word * WORD..bytes.len().min((word + 1) * WORD)]
}

fn forget(bytes: &mut [Option<u8>], word: usize) {
    let end = bytes.len().min((word + 1) * WORD);
    bytes[word * WORD..end].fill(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same launches one after the other, as the library sees them.
    fn seen(launches: impl Iterator<Item = ([u32; 3], Vec<u32>, u64)>) -> Values {
        let mut values = Values::default();
        for (grid, parameters, ns) in launches {
            let bytes: Vec<u8> = parameters.iter().flat_map(|n| n.to_le_bytes()).collect();
            let number = values.meet(grid, &bytes).unwrap_or_else(|| {
                let known: Vec<_> = bytes.iter().copied().map(Some).collect();
                values.add(grid, &known)
            });
            values.time(number, ns);
        }
        values
    }

    fn word(taken: &Taken, word: usize) -> Option<u32> {
        let bytes: Option<Vec<u8>> = word_of(taken.parameters(), word).iter().copied().collect();
        Some(u32::from_le_bytes(bytes?.try_into().ok()?))
    }

    #[test]
    fn few_values_are_told_apart_beside_what_changes_all_the_time() {
        // A size with two values, and the number of the iteration.
        let launch = |i: u32| {
            let (size, ns) = if i.is_multiple_of(3) {
                (600, 50)
            } else {
                (1000, 100)
            };
            ([4, 1, 1], vec![size, i, 7], ns)
        };
        let values = seen((0..300).map(launch));
        let [small, large] = values.taken() else {
            panic!("{values:?}")
        };
        assert_eq!(
            (word(small, 0), word(small, 1), word(small, 2)),
            (Some(600), None, Some(7))
        );
        assert_eq!(
            (small.count, small.timed, small.total_ns),
            (100, 100, 5_000)
        );
        assert_eq!(
            (word(large, 0), large.count, large.gpu_ns()),
            (Some(1000), 200, 20_000)
        );
        assert_eq!(large.grid(), Some([4, 1, 1]));
    }

    #[test]
    fn many_values_are_none() {
        let values = seen((0..100).map(|i| ([i + 1, 1, 1], vec![i], 1)));
        let [all] = values.taken() else {
            panic!("{values:?}")
        };
        assert_eq!((all.grid(), word(all, 0), all.count), (None, None, 100));
        assert_eq!((all.timed, all.total_ns), (100, 100));
        assert!(values.of.len() < 40, "{values:?}");
    }

    #[test]
    fn what_is_left_out_once_is_left_out_of_all() {
        let mut values = Values::default();
        let known = |n: u8| vec![Some(n); 8];
        values.add([1; 3], &known(1));
        let second = values.add([1; 3], &known(2));
        let pointer = [vec![None; 4], vec![Some(1); 4]].concat();
        let third = values.add([1; 3], &pointer);
        assert_eq!(values.taken().len(), 2);
        assert!(
            values
                .taken()
                .iter()
                .all(|t| t.parameters()[..4] == [None; 4])
        );
        // Of the first and the third nothing else is different.
        assert_eq!(values.taken()[0].count, 2);
        values.time(third, 5);
        values.time(second, 7);
        let times: Vec<u64> = values.taken().iter().map(|t| t.total_ns).collect();
        assert_eq!(times, [5, 7]);
        // Other bytes than there were parameters.
        values.add([1; 3], &[Some(1)]);
        assert_eq!(values.taken().len(), 1);
        assert!(values.meet([1; 3], &[9; 8]).is_some());
        assert!(values.meet([1; 3], &[9; 4]).is_none());
    }

    #[test]
    fn texts_come_back() {
        let values = seen((0..9).map(|i| ([2, 1, 1], vec![i % 2, i], 3)));
        for taken in values.taken() {
            assert_eq!(Taken::parse(&taken.text()).as_ref(), Some(taken));
        }
        for wrong in ["", "1:1:1", "1:1:1:0011", "1:1:x:..", "1:1:1:zz"] {
            assert_eq!(Taken::parse(wrong), None, "{wrong}");
        }
    }
}
