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
