//! Under which condition on a size a rewrite is right that is wrong at a size which nobody described.
//!
//! The refuted launch has one parameter that is another one than described; or it is described, and each of its parameters
//! is looked at. Of the powers of two that divide all of a parameter's values at which both agree, and none at which they
//! differ, the smallest one is said at whose multiples both agree, too.

use serde::Serialize;
use warpwright_ptx::Module;
use warpwright_rewrite::Standing;

use super::{RewriteOptions, Rewritten, Try, Word, parameters, scales, unasked};
use crate::Input;

/// What a size keeps to where both kernels agree, as far as sizes were tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Precondition {
    /// As `--require` takes it: `n % 4 == 0`.
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
    fn new(name: &str, by: i64, [right, wrong]: [Vec<i64>; 2]) -> Precondition {
        let condition = format!("{name} % {by} == 0");
        let listed = |values: &[i64]| {
            let all: Vec<String> = values.iter().map(i64::to_string).collect();
            all.join(", ")
        };
        let text = format!(
            "right where {condition}, as far as tried: at {name} = {}, not at {} (`--require '{condition}'` tries more of \
             them)",
            listed(&right),
            listed(&wrong)
        );
        Precondition {
            condition,
            name: name.to_owned(),
            right,
            wrong,
            text,
        }
    }
}

/// Powers of two that are tried, up to the largest block.
const POWERS: std::ops::RangeInclusive<u32> = 1..=10;
/// Multiples of each at which both must agree: odd, so that no larger power will do in its place.
const MULTIPLES: [i64; 2] = [3, 5];

/// The condition, if there is one: for a launch that is refuted as it is described, or for the only one that is of a
/// derived size.
pub(super) fn of(
    inputs: [&Input; 2],
    modules: &[Module; 2],
    options: &RewriteOptions<'_>,
    (found, tries): (&Rewritten, &[Try]),
) -> Option<Precondition> {
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
        let values = agreed
            .iter()
            .filter_map(|at| parameters(options, at).get(name).copied());
        let mut right: Vec<i64> = Vec::new();
        values.for_each(|value| remember(&mut right, value));
        let wrong = *own.get(name)?;
        // What is wrong as described is most often wrong everywhere, and large sizes take long.
        let most = match at.derived {
            true => i64::MAX,
            false => MOST_LARGER.saturating_mul(wrong.max(LEAST_DESCRIBED)),
        };
        condition(
            (inputs, modules, options),
            (at, name, most),
            [right, vec![wrong]],
        )
    })
}

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

/// The condition on a parameter of a launch, of which some values are right and others are not; none above the most is tried.
fn condition(
    (inputs, modules, options): ([&Input; 2], &[Module; 2], &RewriteOptions<'_>),
    (at, name, most): (&Try, &str, i64),
    [mut right, mut wrong]: [Vec<i64>; 2],
) -> Option<Precondition> {
    for by in POWERS.map(|power| 1i64 << power) {
        let is_large = MULTIPLES.iter().any(|factor| factor * by > most);
        if is_large || right.iter().any(|value| value % by != 0) {
            return None;
        }
        if wrong.iter().any(|value| value % by == 0) {
            continue;
        }
        let holds = MULTIPLES.iter().all(|factor| {
            let other = at.derived(name, factor * by);
            let found = unasked(inputs, modules, options, &other);
            match found.map(|(_, _, result)| result.standing) {
                Some(Standing::Refuted) => remember(&mut wrong, factor * by),
                Some(standing) if standing <= Standing::Tested => {
                    remember(&mut right, factor * by);
                    return true;
                }
                _ => {}
            }
            false
        });
        if holds {
            return Some(Precondition::new(name, by, [right, wrong]));
        }
    }
    None
}

fn remember(values: &mut Vec<i64>, value: i64) {
    if !values.contains(&value) {
        values.push(value);
    }
}
