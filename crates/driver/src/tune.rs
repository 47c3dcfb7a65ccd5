//! What becomes of measurements: they overrule the model.

use warpwright_gpu::Measurements;
use warpwright_gpu::stats::Outcome;

use crate::candidate::{Because, Measured, Rejection};
use crate::choose::choose;
use crate::explore::remember;
use crate::opt::{DEFAULT_MARGIN, KernelReport, Known};

/// Enters what was measured into a report, and chooses anew: the fastest correct candidate, or the
/// default if none is faster beyond the noise.
pub fn merge(report: &mut KernelReport, measurements: &Measurements) {
    for candidate in &mut report.candidates {
        let name = candidate
            .same_code_as()
            .map_or_else(|| candidate.name(), str::to_owned);
        let Some(found) = measurements.get(&name) else {
            continue;
        };
        if let Some(figures) = candidate.figures_mut() {
            figures.measured = found.time_ns.map(|time| Measured {
                median_ns: time.median,
                interval_ns: (time.low, time.high),
                relative_time: found.ratio.map_or(1.0, |r| r.median),
            });
        }
        if !found.verdict.is_correct() && candidate.rejected().is_none() {
            candidate.reject(Rejection::new(Because::Measured, &found.verdict));
        }
    }
    let chosen = report
        .candidates
        .iter()
        .position(|c| c.name() == measurements.chosen);
    report.chosen = chosen.unwrap_or(0);
    promise_anew(report);
    report.reason = match measurements
        .get(&measurements.chosen)
        .and_then(|m| m.outcome)
    {
        Some(Outcome::Faster) => {
            format!(
                "measured: {:.3} times the default's time",
                measurements.chosen_ratio()
            )
        }
        _ => "measured: no candidate is faster than the default beyond the noise".into(),
    };
}

/// Enters remembered measurements into a report, and chooses by them.
pub fn recall(report: &mut KernelReport, known: &Known) {
    for candidate in &mut report.candidates {
        remember(candidate, known);
    }
    let choice = choose(&report.candidates, DEFAULT_MARGIN);
    (report.chosen, report.reason) = (choice.index, choice.reason);
    promise_anew(report);
}

/// What the choice of the model held for is not what another one does.
fn promise_anew(report: &mut KernelReport) {
    let chosen = report.candidates.get(report.chosen);
    let figures = chosen.and_then(|candidate| candidate.figures());
    report.promises = figures.map_or_else(Vec::new, |figures| figures.holds_for.clone());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::{Candidate, Resources};
    use warpwright_pass::passes::{MaxNReg, SpillToShared};
    use warpwright_pass::{BlockSource, Recipe};

    #[test]
    fn the_choice_of_measurements_promises_what_is_its_own() {
        let moved = Recipe::default().with(SpillToShared { blocks: None });
        let limited = Recipe::default().with(MaxNReg { registers: 128 });
        let built = |recipe: Recipe| Candidate::built(recipe, Resources::default());
        let mut candidates = [Recipe::default(), moved, limited.clone()].map(built);
        let figures = candidates[1].figures_mut().expect("built");
        figures.holds_for = vec!["of 0 bytes".to_owned()];
        let mut report = KernelReport {
            name: "k".to_owned(),
            block: [256, 1, 1],
            block_source: BlockSource::Launch,
            has_bounds: false,
            dynamic_smem: 0,
            grid: None,
            idle_sms: None,
            guessed: String::new(),
            recipe_text: String::new(),
            candidates: candidates.to_vec(),
            chosen: 1,
            reason: String::new(),
            notes: Vec::new(),
            promises: vec!["of 0 bytes".to_owned()],
            gained: None,
            wasted: None,
            counted: None,
            crat: None,
        };
        let measured = |time: f64| {
            Ok(Measured {
                median_ns: time,
                interval_ns: (time, time),
                relative_time: time,
            })
        };
        let mut known = Known::new();
        known.insert(Recipe::default(), measured(1.0));
        known.insert(report.candidates[1].recipe.clone(), measured(0.5));
        recall(&mut report, &known);
        assert_eq!(
            (report.chosen, &*report.promises),
            (1, &["of 0 bytes".to_owned()][..])
        );
        known.insert(limited, measured(0.25));
        recall(&mut report, &known);
        assert_eq!((report.chosen, report.promises.len()), (2, 0));
    }
}
