//! Stores and loads of program memory, as terms.
//!
//! A memory is a chain of stores and events from the function's entry. A load is a function of its
//! address and of the memory it reads; stores that surely miss it are skipped, so that a load may
//! pass them. Stores that surely miss each other are brought into one order. 'Surely' means: in one
//! state space, at the same unknown base plus constants whose byte ranges are apart, or in two variables.

use crate::term::{Args, Head, Sym, Term, Terms};

/// Stores that a load or store looks past at most.
const REACH: usize = 192;

/// A range of bytes at a constant distance from an unknown base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    base: Term,
    /// The variable that it is in, if that is known: no other one has its bytes.
    variable: Option<Sym>,
    offset: i64,
    bytes: u32,
}

impl Extent {
    pub(crate) fn new(terms: &Terms, address: Term, bytes: u32) -> Extent {
        let variable = terms.variable_of(address);
        match (terms.head(address), terms.args(address)) {
            (Head::Add(bits @ (32 | 64)), &[base, last]) => match terms.as_const(last) {
                Some(offset) if bits == 32 => Extent {
                    base,
                    offset: i64::from(offset as u32 as i32),
                    bytes,
                    variable,
                },
                Some(offset) => Extent {
                    base,
                    offset: offset as i64,
                    bytes,
                    variable,
                },
                None => Extent {
                    base: address,
                    offset: 0,
                    bytes,
                    variable,
                },
            },
            _ => Extent {
                base: address,
                offset: 0,
                bytes,
                variable,
            },
        }
    }

    /// Do the two surely share no byte?
    fn misses(self, other: Extent) -> bool {
        // Far offsets might wrap around the address space and meet again.
        const NEAR: i64 = 1 << 30;
        let near = |extent: Extent| (-NEAR..NEAR).contains(&extent.offset);
        let differ = |(a, b)| a != b;
        let apart = self.variable.zip(other.variable).is_some_and(differ);
        apart
            || self.base == other.base
                && near(self)
                && near(other)
                && (self.offset + i64::from(self.bytes) <= other.offset
                    || other.offset + i64::from(other.bytes) <= self.offset)
    }

    fn order(self) -> (Term, i64) {
        (self.base, self.offset)
    }
}

/// Where the stores of a chain go. Events, and stores that may go to several spaces, have no entry:
/// nothing passes them.
pub(crate) type Extents = rustc_hash::FxHashMap<Term, Extent>;

/// The earliest memory in the chain that gives a load of `extent` the same bytes.
pub(crate) fn version(
    terms: &Terms,
    extents: &Extents,
    memory: Term,
    extent: Option<Extent>,
) -> Term {
    let mut at = memory;
    let Some(extent) = extent else { return at };
    for _ in 0..REACH {
        match extents.get(&at) {
            Some(stored) if stored.misses(extent) => at = terms.args(at)[0],
            _ => break,
        }
    }
    at
}

/// The memory after a store: `content` is its guard, address and values.
pub(crate) fn store(
    terms: &mut Terms,
    extents: &mut Extents,
    memory: Term,
    op: Sym,
    content: &[Term],
    extent: Option<Extent>,
) -> Term {
    let Some(extent) = extent else {
        let args = std::iter::once(memory).chain(content.iter().copied());
        return terms.make(Head::Store(op), args);
    };
    // Sink it below later-ordered stores that it surely misses.
    let mut above = Vec::new();
    let mut at = memory;
    while above.len() < REACH
        && let Some(&stored) = extents.get(&at)
        && stored.misses(extent)
        && extent.order() < stored.order()
    {
        above.push(at);
        at = terms.args(at)[0];
    }
    let mut memory = link(terms, extents, Head::Store(op), at, content, extent);
    for later in above.into_iter().rev() {
        let (head, extent) = (terms.head(later), extents[&later]);
        let rest: Args = terms.args(later)[1..].into();
        memory = link(terms, extents, head, memory, &rest, extent);
    }
    memory
}

fn link(
    terms: &mut Terms,
    extents: &mut Extents,
    head: Head,
    memory: Term,
    content: &[Term],
    extent: Extent,
) -> Term {
    let args = std::iter::once(memory).chain(content.iter().copied());
    let term = terms.make(head, args);
    extents.insert(term, extent);
    term
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory, a base address, and stores of one value to `base + offset`.
    struct Fixture {
        terms: Terms,
        extents: Extents,
        entry: Term,
        base: Term,
        value: Term,
    }

    impl Fixture {
        fn new() -> Fixture {
            let mut terms = Terms::default();
            let entry = terms.leaf(Head::Memory(0));
            let base = terms.unknown("base");
            let value = terms.unknown("value");
            Fixture {
                terms,
                extents: Extents::default(),
                entry,
                base,
                value,
            }
        }

        fn extent(&mut self, offset: i64, bytes: u32) -> (Term, Extent) {
            let address = self.terms.add_const(64, self.base, offset);
            (address, Extent::new(&self.terms, address, bytes))
        }

        fn store(&mut self, memory: Term, offset: i64) -> Term {
            let (address, extent) = self.extent(offset, 4);
            let op = self.terms.sym("st");
            let content = [address, self.value];
            let (terms, extents) = (&mut self.terms, &mut self.extents);
            store(terms, extents, memory, op, &content, Some(extent))
        }
    }

    #[test]
    fn stores_apart_commute_and_overlapping_ones_do_not() {
        let mut f = Fixture::new();
        let orders = [[0, 4, 8], [8, 4, 0], [4, 8, 0]].map(|order| {
            order
                .into_iter()
                .fold(f.entry, |memory, offset| f.store(memory, offset))
        });
        assert!(orders.iter().all(|memory| *memory == orders[0]));
        let overlapping =
            [[0, 2], [2, 0]].map(|order| order.into_iter().fold(f.entry, |m, o| f.store(m, o)));
        assert_ne!(overlapping[0], overlapping[1]);
    }

    #[test]
    fn a_load_passes_stores_that_miss_it() {
        let mut f = Fixture::new();
        let first = f.store(f.entry, 0);
        let memory = f.store(first, 8);
        let see = |f: &mut Fixture, offset, bytes| {
            let (_, extent) = f.extent(offset, bytes);
            version(&f.terms, &f.extents, memory, Some(extent))
        };
        assert_eq!(see(&mut f, 16, 8), f.entry);
        assert_eq!(see(&mut f, 0, 4), first);
        assert_eq!(see(&mut f, 4, 8), memory);
        assert_eq!(see(&mut f, i64::MAX, 4), memory, "it might wrap around");
        assert_eq!(version(&f.terms, &f.extents, memory, None), memory);
    }

    #[test]
    fn other_bases_may_be_the_same() {
        let mut f = Fixture::new();
        let memory = f.store(f.entry, 0);
        let other = f.terms.unknown("other");
        let extent = Extent::new(&f.terms, other, 4);
        assert_eq!(version(&f.terms, &f.extents, memory, Some(extent)), memory);
    }
}
