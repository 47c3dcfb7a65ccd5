//! Under which condition on a size a rewrite is right that is wrong at a size which nobody described.
//!
//! The refuted launch has one parameter that is another one than described; or it is described, and each of its parameters
//! is looked at. Where all smaller values that were tried are right and all larger ones are wrong, the largest right one
//! is said. Else of the powers of two that divide all of a parameter's values at which both agree, and none at which they
//! differ, the smallest one is said at whose multiples both agree, too, larger than the wrong value and smaller.

use serde::Serialize;
use warpwright_rewrite::Standing;

use super::{Rewritten, Try, Unasked, Word, parameters, scales};

/// What a size keeps to where both kernels agree, as far as sizes were tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Precondition {
    /// As `--require` takes it: `n % 4 == 0`, `n <= 256`.
    pub condition: String,
    /// The parameter.
    pub name: String,
    /// Its values at which both agree, in the order in which they were tried.
    pub right: Vec<i64>,
    /// Those at which they do not.
    pub wrong: Vec<i64>,
    /// All of it in a sentence.
    pub text: String,
}

impl Precondition {
    /// `name % by == 0`
    fn new(name: &str, by: i64, values: [Vec<i64>; 2]) -> Precondition {
        let condition = format!("{name} % {by} == 0");
        let [right, wrong] = values.each_ref().map(|values| listed(values));
        let text = format!(
            "right where {condition}, as far as tried: at {name} = {right}, not at {wrong} (`--require '{condition}'` tries \
             more of them)"
        );
        Precondition::of(name, values, (condition, text))
    }

    /// `name <= most`
    fn up_to(name: &str, most: i64, values: [Vec<i64>; 2]) -> Precondition {
        let condition = format!("{name} <= {most}");
        let [right, wrong] = values.each_ref().map(|values| listed(values));
        let text = format!(
            "right up to {name} = {most} and wrong from {} on, as far as tried: right at {name} = {right}, wrong at {wrong} \
             (`--require '{condition}'` tries the smaller ones alone)",
            most + 1
        );
        Precondition::of(name, values, (condition, text))
    }

    fn of(
        name: &str,
        [right, wrong]: [Vec<i64>; 2],
        (condition, text): (String, String),
    ) -> Precondition {
        Precondition {
            condition,
            name: name.to_owned(),
            right,
            wrong,
            text,
        }
    }
}

fn listed(values: &[i64]) -> String {
    let all: Vec<String> = values.iter().map(i64::to_string).collect();
    all.join(", ")
}

/// Powers of two that are tried, up to the largest block.
const POWERS: std::ops::RangeInclusive<u32> = 1..=10;
/// Multiples of each at which both must agree: odd, so that no larger power will do in its place.
const MULTIPLES: [i64; 2] = [3, 5];

/// The condition, if there is one: for a launch that is refuted as it is described, or for the only one that is of a
/// derived size.
pub(super) fn of(
    unasked: &Unasked<'_>,
    (found, tries): (&Rewritten, &[Try]),
) -> Option<Precondition> {
    let options = unasked.options;
    let verdict = |at: &Try| {
        let mut launches = found.launches.iter();
        let launch = launches.find(|l| l.size == at.size && l.set == at.words())?;
        Some(launch.verdict)
    };
    let mut refuted = tries.iter().filter(|at| verdict(at) == Some(Word::Refuted));
    let at = refuted.next().filter(|at| at.numbers.is_empty())?;
    let own = parameters(options, at);
    let names: Vec<&str> = match at.derived {
        // What was changed of the size stands last.
        true => at.set.last().map(|(name, _)| &**name).into_iter().collect(),
        false if is_short(found) => scales(options).0,
        false => return None,
    };
    if at.derived && refuted.next().is_some() {
        return None;
    }
    let agreed = tries.iter().filter(|at| verdict(at) <= Some(Word::Tested));
    let agreed: Vec<&Try> = agreed.filter(|at| verdict(at).is_some()).collect();
    names.into_iter().find_map(|name| {
        // What was not proved there is tried once more, with the inputs that showed the fault.
        let is_sure = |at: &&&Try| unasked.witness.is_none() || verdict(at) < Some(Word::Tested);
        let values = agreed.iter().filter(is_sure);
        let values = values.filter_map(|at| parameters(options, at).get(name).copied());
        let mut right: Vec<i64> = Vec::new();
        values.for_each(|value| remember(&mut right, value));
        let wrong = *own.get(name)?;
        // What is wrong as described is most often wrong everywhere, and large sizes take long.
        let most = match at.derived {
            true => MOST_DERIVED,
            false => MOST_LARGER.saturating_mul(wrong.max(LEAST_DESCRIBED)),
        };
        let mut trial = Trial {
            unasked,
            at,
            name,
            most,
            right,
            wrong: vec![wrong],
        };
        trial.threshold(wrong).or_else(|| trial.condition(wrong))
    })
}

/// The largest value that is tried where one that nobody has described is wrong.
const MOST_DERIVED: i64 = 1 << 20;
/// How much larger a described size becomes, if it is no smaller than the least that counts.
const MOST_LARGER: i64 = 4;
const LEAST_DESCRIBED: i64 = 32;
/// Terms of what was compared, above which no other sizes are tried for a launch that is wrong as described.
const FEW_TERMS: usize = 1 << 19;

fn is_short(found: &Rewritten) -> bool {
    found
        .launches
        .iter()
        .map(|launch| launch.terms)
        .sum::<usize>()
        <= FEW_TERMS
}

/// Values of a parameter of a launch, of which some are right and others are not.
struct Trial<'t> {
    unasked: &'t Unasked<'t>,
    at: &'t Try,
    name: &'t str,
    /// None above it is tried.
    most: i64,
    right: Vec<i64>,
    wrong: Vec<i64>,
}

impl Trial<'_> {
    /// Is a value right? `None` where there is no such launch, or the original is at fault.
    fn is_right(&mut self, value: i64) -> Option<bool> {
        if value < 1 || value > self.most {
            return None;
        }
        if self.right.contains(&value) || self.wrong.contains(&value) {
            return Some(self.right.contains(&value));
        }
        let other = self.at.derived(self.name, value);
        match self.unasked.at(&other, &[])?.2.standing {
            Standing::Refuted => remember(&mut self.wrong, value),
            Standing::WrongInput => return None,
            _ => remember(&mut self.right, value),
        }
        Some(self.right.contains(&value))
    }

    /// The largest right value, where all that is tried below is right, and wrong above.
    fn threshold(&mut self, wrong: i64) -> Option<Precondition> {
        let known = [self.right.clone(), self.wrong.clone()];
        let found = self.highest(wrong);
        if found.is_none() {
            [self.right, self.wrong] = known;
        }
        found
    }

    fn highest(&mut self, wrong: i64) -> Option<Precondition> {
        let (mut low, mut high) = (0, wrong);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match self.is_right(middle)? {
                true => low = middle,
                false => high = middle,
            }
        }
        let below = [low - 1, low / 2, low / 2 + 1];
        let above = [high + 1, high + 2, 2 * high];
        let is_right = below.map(|value| self.is_right(value) != Some(false));
        let is_wrong = above.map(|value| self.is_right(value) != Some(true));
        let is_one = low > 0
            && is_right.into_iter().chain(is_wrong).all(|holds| holds)
            && self.right.iter().all(|&value| value <= low)
            && self.wrong.iter().all(|&value| value > low);
        is_one.then(|| {
            self.right.sort_unstable();
            self.wrong.sort_unstable();
            Precondition::up_to(self.name, low, [self.right.clone(), self.wrong.clone()])
        })
    }

    fn condition(&mut self, wrong: i64) -> Option<Precondition> {
        for by in POWERS.map(|power| 1i64 << power) {
            let is_large = MULTIPLES.iter().any(|factor| factor * by > self.most);
            if is_large || self.right.iter().any(|value| value % by != 0) {
                return None;
            }
            if self.wrong.iter().any(|value| value % by == 0) {
                continue;
            }
            let multiples = MULTIPLES.map(|factor| factor * by);
            // What is right because it is small is right no more above, and so are other numbers below.
            let above = (wrong / by + 1) * by;
            if multiples
                .into_iter()
                .all(|value| self.is_right(value) == Some(true))
                && self.is_right(above) == Some(true)
                && self.is_right(MULTIPLES[0] * by + 1) == Some(false)
            {
                let values = [self.right.clone(), self.wrong.clone()];
                return Some(Precondition::new(self.name, by, values));
            }
        }
        None
    }
}

fn remember(values: &mut Vec<i64>, value: i64) {
    if !values.contains(&value) {
        values.push(value);
    }
}
