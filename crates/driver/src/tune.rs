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
}
