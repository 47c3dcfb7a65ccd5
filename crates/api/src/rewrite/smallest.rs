//! The smallest launch at which a rewrite is refuted, and the plainest inputs there.
//!
//! Each size in turn becomes the least value at which the rewritten kernel is still at fault; then data become zeros and
//! ones wherever a difference remains.

use serde::Serialize;
use warpwright_rewrite::{Standing, plainest};

use super::{Found, Reason, Rewritten, Try, Unasked, Word, parameters, reason, scales};

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
    let mut search = Search { unasked, terms: 0 };
    let mut best = (tries.iter().find(is_it)?.clone(), None);
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

struct Search<'s> {
    unasked: &'s Unasked<'s>,
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
        let found = self.unasked.at(at)?;
        self.terms += found.2.terms;
        (found.2.standing == Standing::Refuted).then_some(found)
    }
}
