//! The first version in the order of the predictions that agrees with the input.

use warpwright_ladder::Fall;
use warpwright_pass::passes::Lower;
use warpwright_pass::{Artifact, Executor, Invocation, Language, Refusal, RunError, Target};
use warpwright_stencil::versions::{Family, Version};

use crate::source::{Attempt, Kept, attempt};

/// A version must be predicted to take less than this part of the kernel as written: the model is not surer than that.
pub const MARGIN: f64 = 0.95;

/// What became of a version.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It was not looked at: another one came before it, or there was no fuel.
    NotTried,
    /// The kernel as written is predicted to be as fast, or faster.
    NoGain,
    /// It is out.
    Falls(Fall<Refusal>),
    /// It agrees with the input, or could not be compared.
    Kept,
}

/// The choice.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its place among the versions; the kernel as written where nothing is better.
    pub version: usize,
    /// Its text, and what is known of it; none: the input stays as it is.
    pub kept: Option<Kept>,
    /// By version.
    pub verdicts: Vec<Verdict>,
}

/// The pass that makes a version of an input; none where the input is that version.
pub fn pass(version: &Version, input: Language) -> Option<Invocation> {
    match (version.family, input) {
        (Family::Original, Language::Cuda) => None,
        (Family::Original, Language::Stencil) => Some(Lower.into()),
        _ => Some(version.way.clone().into()),
    }
}

/// Tries the versions, the one that is predicted to be the fastest first, until one agrees.
///
/// The kernel as written is among them, wins ties, and is what remains. A version that could not be compared (there
/// is no compiler) is taken, and says so. `None`: no version can be written at all.
///
/// # Errors
/// The file cannot be read or written.
pub fn choose(
    versions: &[Version],
    (file, target): (&Artifact, &Target<'_>),
    executor: &mut Executor<'_>,
) -> Result<Option<Chosen>, RunError> {
    let time = |v: &Version| v.predicted_ms.unwrap_or(f64::INFINITY);
    let language = file.as_source().map_or(Language::Cuda, |of| of.language);
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
        let kept = match pass(version, language) {
            None => None,
            Some(pass) => match attempt(&pass, (file, target), executor)? {
                Attempt::Kept(kept) => Some(*kept),
                Attempt::NotOne => continue,
                Attempt::Falls(fall) => {
                    verdicts[at] = Verdict::Falls(fall);
                    continue;
                }
            },
        };
        verdicts[at] = Verdict::Kept;
        for &later in &order[place + 1..] {
            if version.family == Family::Original {
                verdicts[later] = Verdict::NoGain;
            }
        }
        return Ok(Some(Chosen {
            version: at,
            kept,
            verdicts,
        }));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_ladder::CompileError;
    use warpwright_pass::{Builders, Setting, SourceFile};
    use warpwright_stencil::dsl;
    use warpwright_stencil::ir::Stencil;
    use warpwright_stencil::versions::versions;

    const STAR: &str = "function star (out, in) { out[j][i] = in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]; }\n\
                        parameter M, N; iterator j, i; double in[M][N], out[M][N]; star (out, in); return out;";

    /// All versions of a stencil, the original predicted to take one millisecond and the others so many.
    fn predicted(stencil: &Stencil, others: f64) -> Vec<Version> {
        let gpu = warpwright_target::lookup("h200").expect("a known GPU");
        let sizes = stencil.parameters.values().map(|_| 512).collect();
        let mut found = versions(stencil, &gpu, (&sizes, None), 3, false);
        for version in &mut found {
            let is_original = version.family == Family::Original;
            version.predicted_ms = Some(if is_original { 1.0 } else { others });
        }
        found
    }

    fn chosen(others: Option<f64>) -> (Family, Vec<Verdict>) {
        let stencil = dsl::parse(STAR).expect("a stencil");
        let mut all = predicted(&stencil, others.unwrap_or(1.0));
        for version in all.iter_mut().filter(|_| others.is_none()) {
            version.predicted_ms = None;
        }
        assert!(all.len() >= 4, "{all:?}");
        let missing = |_: &SourceFile| Err(CompileError::Missing("none here".into()));
        let mut executor = Executor::new(Builders {
            compile_unfused: Some(&missing),
            ..Builders::default()
        });
        let gpu = warpwright_target::lookup("h200").expect("a known GPU");
        let target = Target {
            kernel: Some("star"),
            setting: Setting::new(&gpu),
        };
        let file = Artifact::source(SourceFile {
            name: "star.stencil".to_owned(),
            text: STAR.to_owned(),
            language: Language::Stencil,
        });
        let chosen = choose(&all, (&file, &target), &mut executor).expect("it can be read");
        let chosen = chosen.expect("something can be written");
        let kept = chosen.kept.expect("a text in CUDA C");
        assert!(kept.text.contains("__global__"), "{}", kept.text);
        assert_eq!(kept.unchecked.as_deref(), Some("none here"));
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
