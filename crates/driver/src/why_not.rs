//! Why a candidate was not chosen, for people: the rules of [`crate::choose`], told of one candidate.

use std::fmt;

use warpwright_diag::count;
use warpwright_pass::Caution;

use crate::Candidate;
use crate::candidate::{Rejection, Resources};
use crate::choose::{is_for_measuring, objection, promise};

/// Predictions that differ by less are called equal.
pub(crate) const SAME: f64 = 0.005;

/// Who saves less of the time saves nothing: it would read as 0.0%.
pub(crate) const NOTHING: f64 = 0.0005;

/// Why a candidate was not chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum NotChosen {
    /// It is out.
    Rejected(Rejection),
    /// Its outputs have to be compared first.
    Waits(Caution),
    /// Slower than the choice; it spills so many bytes of traffic more, or has so many warps fewer.
    Slower {
        /// Bytes of spill traffic in local memory above the choice's.
        spills: u32,
        /// The same in shared memory.
        moved: u32,
        /// Has one of them spill slots that ptxas put in shared memory, whose traffic it does not count?
        is_local: bool,
        /// Resident warps below the choice's.
        warps: u32,
    },
    /// As fast as the choice, which is the earlier proposal, or faster by nothing that can be told.
    AsFast,
    /// It saves less than such a change must promise.
    Promise {
        /// The share of time that it saves.
        saves: f64,
        /// The share that it would have to save.
        needed: f64,
    },
    /// So likely slower than the default, by measured builds like it; or none of them was like it.
    Risk {
        /// Probability of being slower by 2%; none where it is of no known kind.
        slower: Option<f64>,
    },
    /// The model cannot tell such builds from what they were made of: measurements choose among them.
    Measured,
    /// Measured, and not faster beyond the noise.
    Noise,
    /// Nothing is known of its time.
    Unrated,
}

impl fmt::Display for NotChosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotChosen::Rejected(why) => {
                let why = why.to_string();
                write!(f, "out: {}", why.lines().next().unwrap_or_default())
            }
            NotChosen::Waits(Caution::Fusion) => {
                f.write_str("waits for `tune`: last bits may differ")
            }
            NotChosen::Waits(Caution::Untried { sm }) => {
                write!(f, "waits for `tune`: such code has not run on sm_{sm}")
            }
            NotChosen::Waits(caution) => write!(f, "waits for `tune`: {caution}"),
            NotChosen::Slower {
                spills,
                moved,
                warps,
                is_local,
            } if spills + moved + warps > 0 => {
                let local = if *is_local { " in local memory" } else { "" };
                let parts = [(spills, local), (moved, " in shared memory")];
                let parts = parts.into_iter().filter(|(bytes, _)| **bytes > 0);
                let parts = parts.map(|(bytes, place)| {
                    format!("{} more spill traffic{place}", count(*bytes, "byte"))
                });
                let parts: Vec<String> = parts.collect();
                f.write_str("slower than the choice: ")?;
                match parts.is_empty() {
                    true => write!(f, "{} fewer", count(*warps, "resident warp")),
                    false => f.write_str(&parts.join(", ")),
                }
            }
            NotChosen::Slower { .. } => f.write_str("slower than the choice"),
            NotChosen::AsFast => f.write_str("no faster than the choice"),
            NotChosen::Promise { saves, needed } => write!(
                f,
                "saves {:.1}%; such a change must promise {:.0}%",
                saves * 100.0,
                needed * 100.0
            ),
            NotChosen::Risk {
                slower: Some(slower),
            } => {
                write!(f, "may be slower: {:.0}% likely", slower * 100.0)
            }
            NotChosen::Risk { slower: None } => f.write_str("unlike anything measured"),
            NotChosen::Measured => f.write_str("waits for `tune`: only a measurement can tell"),
            NotChosen::Noise => f.write_str("not faster beyond the noise"),
            NotChosen::Unrated => f.write_str("its time is not known"),
        }
    }
}

/// Why `candidates[index]` was not chosen, but `candidates[chosen]`; the first one is the default build, and
/// `margin` is the one that the choice was made with.
pub fn why_not(candidates: &[Candidate], chosen: usize, index: usize, margin: f64) -> NotChosen {
    let (candidate, choice) = (&candidates[index], &candidates[chosen]);
    if let Some(why) = candidate.rejected() {
        // It stands beside the recipe, which a pass's refusal names as well.
        let mut why = why.clone();
        for pass in candidate.recipe.passes() {
            if let Some(rest) = why.text.strip_prefix(&format!("{pass}: ")) {
                why.text = rest.to_owned();
            }
        }
        return NotChosen::Rejected(why);
    }
    let slower = || {
        let warps = |c: &Candidate| c.residency().map_or(0, |residency| residency.warps);
        let more = |of: fn(&Resources) -> u32| {
            let bytes = |c: &Candidate| c.resources().map_or(0, of);
            bytes(candidate).saturating_sub(bytes(choice))
        };
        NotChosen::Slower {
            spills: more(Resources::local_spill_bytes),
            is_local: [candidate, choice]
                .iter()
                .any(|c| c.resources().is_some_and(|r| r.spill_shared_bytes > 0)),
            moved: more(|r| r.spill_moved_bytes),
            warps: warps(choice).saturating_sub(warps(candidate)),
        }
    };
    if let (Some(its), Some(best)) = (candidate.measured(), choice.measured()) {
        return match its.relative_time < best.relative_time + SAME {
            true => NotChosen::Noise,
            false => slower(),
        };
    }
    let (Some(its), Some(best)) = (candidate.score(), choice.score()) else {
        return NotChosen::Unrated;
    };
    if its.relative_time > best.relative_time + SAME {
        return slower();
    }
    if let Some(caution) = candidate.caution() {
        return NotChosen::Waits(caution);
    }
    let needed = promise(&candidates[0], candidate, margin);
    let saves = 1.0 - its.relative_time;
    if index == 0 || saves < NOTHING {
        return NotChosen::AsFast;
    }
    match objection(&candidates[0], candidate) {
        _ if saves <= needed => NotChosen::Promise { saves, needed },
        _ if is_for_measuring(&candidates[0], candidate) => NotChosen::Measured,
        Some(found) => NotChosen::Risk {
            slower: found.is_known.then_some(f64::from(found.risk)),
        },
        None => NotChosen::AsFast,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::{Because, Score};
    use warpwright_pass::Recipe;
    use warpwright_pass::passes::MaxNReg;

    fn candidate(registers: u32, relative_time: f64, spills: u32) -> Candidate {
        let recipe = match registers {
            0 => Recipe::default(),
            registers => Recipe::default().with(MaxNReg { registers }),
        };
        let resources = Resources {
            spill_store_bytes: spills,
            ..Resources::default()
        };
        let mut candidate = Candidate::built(recipe, resources);
        candidate.figures_mut().unwrap().score = Some(Score {
            relative_time,
            bound: "latency".into(),
            turns: crate::candidate::Turns::None,
            contention: 1.0,
            active_warps: 8,
            is_trade: false,
            judgement: None,
            tpsc: None,
        });
        candidate
    }

    #[test]
    fn a_refusal_does_not_repeat_the_recipe() {
        let mut refused = candidate(40, 0.1, 0);
        let text = format!("{}: too few", refused.recipe);
        refused.reject(Rejection::new(Because::Refused, text));
        let told = why_not(&[candidate(0, 1.0, 0), refused], 0, 1, 0.05);
        assert_eq!(told.to_string(), "out: too few");
    }

    #[test]
    fn traffic_is_told_where_it_is() {
        let mut moved = candidate(48, 0.95, 484);
        moved.figures_mut().unwrap().resources.spill_moved_bytes = 484;
        let all = [candidate(0, 1.0, 0), candidate(64, 0.8, 0), moved];
        assert_eq!(
            why_not(&all, 1, 2, 0.05).to_string(),
            "slower than the choice: 484 bytes more spill traffic in shared memory"
        );
    }

    #[test]
    fn what_reads_as_nothing_is_no_promise() {
        let all = [
            candidate(0, 1.0, 0),
            candidate(64, 0.9997, 0),
            candidate(56, 0.999, 0),
        ];
        let told = [1, 2].map(|index| why_not(&all, 0, index, 0.05).to_string());
        assert_eq!(
            told,
            [
                "no faster than the choice",
                "saves 0.1%; such a change must promise 5%"
            ]
        );
    }

    #[test]
    fn the_rules_of_the_choice_are_named() {
        let mut broken = candidate(40, 0.1, 0);
        broken.reject(Rejection::new(Because::Build, "ptxas failed"));
        let all = [
            candidate(0, 1.0, 0),
            candidate(64, 0.80, 0),
            candidate(48, 0.95, 100),
            broken,
            candidate(56, 0.801, 0),
        ];
        assert_eq!(
            why_not(&all, 1, 2, 0.05),
            NotChosen::Slower {
                spills: 100,
                moved: 0,
                is_local: false,
                warps: 0
            }
        );
        assert!(matches!(why_not(&all, 1, 3, 0.05), NotChosen::Rejected(_)));
        assert_eq!(why_not(&all, 1, 4, 0.05), NotChosen::AsFast);
        // Spilling more for less time is a trade, which must promise more than the margin.
        let kept = [candidate(0, 1.0, 0), candidate(48, 0.90, 100)];
        let NotChosen::Promise { saves, needed } = why_not(&kept, 0, 1, 0.05) else {
            panic!("a promise that is too small");
        };
        assert!((saves - 0.1).abs() < 1e-9 && needed > 0.1);
    }
}
