//! The first version in the order of the predictions that agrees with the input.

use warpwright_ladder::{Compile, Fall, Rung};
use warpwright_stencil::replace::Refusal;
use warpwright_stencil::versions::{Family, Output, Problem, Version, climb};

/// A version must be predicted to take less than this part of the kernel as written: the model is not surer than that.
pub const MARGIN: f64 = 0.95;

/// What became of a version.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It was not looked at: another one came before it.
    NotTried,
    /// The kernel as written is predicted to be as fast, or faster.
    NoGain,
    /// How far it got.
    Tried(Rung<Refusal>),
}

/// The choice.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its place among the versions; the kernel as written where nothing is better.
    pub version: usize,
    /// Its text.
    pub output: Output,
    /// By version.
    pub verdicts: Vec<Verdict>,
}

/// Tries the versions, the one that is predicted to be the fastest first, until one agrees.
///
/// The kernel as written is among them, wins ties, and is what remains. A version that could not be compared (there
/// is no compiler) is taken, and says so. `None`: no version can be written at all.
pub fn choose(problem: &Problem, versions: &[Version], compile: &Compile<'_>) -> Option<Chosen> {
    let time = |v: &Version| v.predicted_ms.unwrap_or(f64::INFINITY);
    let originals = versions.iter().filter(|v| v.family == Family::Original);
    let original = originals.map(time).fold(f64::INFINITY, f64::min);
    let mut order: Vec<usize> = (0..versions.len()).collect();
    order.sort_by(|&a, &b| {
        let key = |at: usize| {
            let version = &versions[at];
            let gains = version.family != Family::Original && time(version) < MARGIN * original;
            // Everything that does not gain comes after the original.
            let class = match version.family {
                Family::Original => 1,
                _ if gains => 0,
                _ => 2,
            };
            (class, time(version))
        };
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let mut verdicts = vec![Verdict::NotTried; versions.len()];
    for (place, &at) in order.iter().enumerate() {
        let version = &versions[at];
        let rung = climb(problem, version, compile);
        let fell = matches!(rung, Rung::Falls(_));
        verdicts[at] = Verdict::Tried(rung);
        if fell {
            continue;
        }
        let output = match problem.output(version) {
            Ok(output) => output,
            Err(refusal) => {
                verdicts[at] = Verdict::Tried(Rung::Falls(Fall::Refused(refusal)));
                continue;
            }
        };
        for &later in &order[place + 1..] {
            if version.family == Family::Original {
                verdicts[later] = Verdict::NoGain;
            }
        }
        return Some(Chosen {
            version: at,
            output,
            verdicts,
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_ladder::CompileError;
    use warpwright_stencil::dsl;
    use warpwright_stencil::versions::versions;

    const STAR: &str = "function star (out, in) { out[j][i] = in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]; }\n\
                        parameter M, N; iterator j, i; double in[M][N], out[M][N]; star (out, in); return out;";

    /// All versions of a stencil, the original predicted to take one millisecond and the others so many.
    fn predicted(problem: &Problem, others: f64) -> Vec<Version> {
        let gpu = warpwright_target::lookup("h200").expect("a known GPU");
        let sizes = problem.stencil.parameters.values().map(|_| 512).collect();
        let mut found = versions(&problem.stencil, &gpu, &sizes, 3, false);
        for version in &mut found {
            let is_original = version.family == Family::Original;
            version.predicted_ms = Some(if is_original { 1.0 } else { others });
        }
        found
    }

    fn chosen(others: Option<f64>) -> (Family, Vec<Verdict>) {
        let problem = Problem::of_language(dsl::parse(STAR).expect("a stencil"));
        let mut all = predicted(&problem, others.unwrap_or(1.0));
        for version in all.iter_mut().filter(|_| others.is_none()) {
            version.predicted_ms = None;
        }
        assert!(all.len() >= 4, "{all:?}");
        let missing = |_: &str| Err(CompileError::Missing("none here".into()));
        let chosen = choose(&problem, &all, &missing).expect("something can be written");
        (all[chosen.version].family, chosen.verdicts)
    }

    #[test]
    fn the_original_wins_ties() {
        for others in [Some(1.0), Some(MARGIN), Some(2.0), None] {
            let (family, verdicts) = chosen(others);
            assert_eq!(family, Family::Original, "{others:?}");
            let kept = verdicts.iter().filter(|v| **v == Verdict::NoGain);
            assert_eq!(kept.count(), verdicts.len() - 1, "{others:?}: {verdicts:?}");
        }
    }

    #[test]
    fn what_gains_more_than_the_margin_is_taken() {
        let (family, verdicts) = chosen(Some(MARGIN - 0.001));
        assert_ne!(family, Family::Original);
        assert!(verdicts.contains(&Verdict::NotTried), "{verdicts:?}");
    }
}
