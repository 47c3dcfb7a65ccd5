//! The smallest launch at which a rewrite is refuted, and the plainest inputs there.
//!
//! Each size in turn becomes the least value at which the rewritten kernel is still at fault; then data become zeros and
//! ones wherever a difference remains. Inputs are within what is described where those that showed it are.

use serde::Serialize;
use warpwright_rewrite::{Standing, Witness, described_ranges, plainest};

use super::{
    Contents, Found, Reason, Rewritten, Try, Unasked, Word, parameters, reason, scales, sides,
};

/// Where a fault is the easiest to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Smallest {
    /// The description's size.
    pub size: String,
    /// What is changed of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// What is wrong there.
    pub why: Vec<Reason>,
}

/// Values of a size that are tried, from the least on: those around what blocks and warps have.
const VALUES: [i64; 20] = [
    1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129,
];
/// Terms that are made for it.
const MOST_TERMS: usize = 4_000_000;

/// The smallest launch that shows what one of those tried does.
pub(super) fn of(unasked: &Unasked<'_>, (found, tries): (&Rewritten, &[Try])) -> Option<Smallest> {
    let options = unasked.options;
    let refuted = found.launches.iter().find(|l| l.verdict == Word::Refuted)?;
    let is_it = |at: &&Try| at.size == refuted.size && at.words() == refuted.set;
    let first = tries.iter().find(is_it)?;
    let mut search = Search {
        unasked,
        ranges: ranges(unasked, first),
        terms: 0,
    };
    let mut best = (first.clone(), None);
    if options.size.is_none() && options.set.is_empty() {
        for name in scales(options).0 {
            search.smaller(name, &mut best);
        }
    }
    let (at, known) = best;
    let (sides, paired, result) = match known {
        Some(known) => known,
        None => search.at(&at)?,
    };
    let plain = plainest(&sides[0], &sides[1], &paired, &result);
    let is_new = at.words() != refuted.set || plain.is_some();
    let why = match &plain {
        Some(plain) => vec![reason(plain)],
        None => result.why.iter().map(reason).collect(),
    };
    is_new.then(|| Smallest {
        set: at.words(),
        size: at.size,
        why,
    })
}

/// The numbers that are described, if those that refuted the launch are among them.
fn ranges(unasked: &Unasked<'_>, at: &Try) -> Vec<(String, f64, f64)> {
    let Unasked {
        inputs,
        modules,
        options,
        witness,
    } = unasked;
    let sides = sides(*inputs, modules, options, at, Contents::All);
    let ranges = sides.map_or_else(|_| Vec::new(), |sides| described_ranges(&sides[0]));
    let is_within = |witness: &Witness| witness.is_within(&ranges);
    match witness.as_ref().is_some_and(is_within) {
        true => ranges
            .into_iter()
            .map(|(name, _, ends)| (name, ends[0], ends[1]))
            .collect(),
        false => Vec::new(),
    }
}

struct Search<'s> {
    unasked: &'s Unasked<'s>,
    /// Numbers that inputs keep to.
    ranges: Vec<(String, f64, f64)>,
    terms: usize,
}

impl Search<'_> {
    /// Makes a size the least one at which the rewritten kernel is refuted.
    fn smaller(&mut self, name: &str, best: &mut (Try, Option<Found>)) {
        let Some(&now) = parameters(self.unasked.options, &best.0).get(name) else {
            return;
        };
        let mut right = 0;
        let mut wrong = now;
        for value in VALUES.into_iter().filter(|&value| value < now) {
            match self.with(name, value, best) {
                true => {
                    wrong = value;
                    break;
                }
                false => right = value,
            }
        }
        while right + 1 < wrong {
            let middle = right + (wrong - right) / 2;
            match self.with(name, middle, best) {
                true => wrong = middle,
                false => right = middle,
            }
        }
    }

    /// Takes a value over if the rewritten kernel is refuted there.
    fn with(&mut self, name: &str, value: i64, best: &mut (Try, Option<Found>)) -> bool {
        let at = best.0.derived(name, value);
        let found = self.at(&at);
        let is_wrong = found.is_some();
        if is_wrong {
            *best = (at, found);
        }
        is_wrong
    }

    /// What is found at a launch where the rewritten kernel is refuted.
    fn at(&mut self, at: &Try) -> Option<Found> {
        if self.terms > MOST_TERMS {
            return None;
        }
        let found = self.unasked.at(at, &self.ranges)?;
        self.terms += found.2.terms;
        (found.2.standing == Standing::Refuted).then_some(found)
    }
}
