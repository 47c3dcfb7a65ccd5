//! Each variant by itself: does it run, and is it right?

use super::{Progress, Session, Step};
use crate::backend::{Against, CheckReport, CheckRequest, Verdict};
use crate::fault::{Fault, FaultKind};
use crate::job::{Promise, Variant};

impl Session<'_, '_> {
    /// Runs the baseline: its results are the reference, also in a resumed session.
    pub(super) fn check_baseline(&mut self) -> Result<(), Fault> {
        let variant = self.variants[self.baseline].clone();
        let report = self.check(&variant, Against::Nothing, self.budget.limit_s)?;
        if !report.verdict.is_correct() {
            // Without a right reference nothing else means anything.
            let detail = format!("the baseline `{}`: {}", variant.id, report.verdict);
            return Err(Fault::new(FaultKind::Input, detail).blame(&variant.id));
        }
        for &index in &report.reference.unstable {
            if let Some(buffer) = self
                .job
                .buffers
                .get(index)
                .filter(|b| b.tolerance.is_none())
            {
                let detail = format!(
                    "two runs of `{}` differ in `{}`, for which the launch states no tolerance",
                    variant.id, buffer.name
                );
                return Err(Fault::new(FaultKind::Input, detail));
            }
        }
        self.state.reference = report.reference.clone();
        for index in [self.baseline, self.variants.len() - 1] {
            self.state.entries[index].take(&report);
        }
        Ok(())
    }

    pub(super) fn check_variants(&mut self) -> Result<Step, Fault> {
        let reference_s = self.state.entries[self.baseline].ns * 1e-9;
        // A variant a hundred times slower than the baseline is of no use: do not wait for it.
        let limit = (100.0 * reference_s).clamp(self.budget.limit_s.min(2.0), self.budget.limit_s);
        let of = self.variants.len() - 1;
        for index in 0..of {
            if self.state.entries[index].verdict == Verdict::Untested {
                self.check_one(index, limit)?;
            }
            let entry = &self.state.entries[index];
            let (id, verdict) = (entry.id.as_str(), &entry.verdict);
            let news = Progress::Checked {
                id,
                verdict,
                done: index + 1,
                of,
            };
            if (self.watcher)(&news).is_break() || self.checkpoint().is_break() {
                return Ok(Step::Break(()));
            }
        }
        Ok(Step::Continue(()))
    }

    pub(super) fn check_one(&mut self, index: usize, limit: f64) -> Result<(), Fault> {
        let variant = self.variants[index].clone();
        let known = self.state.reference.clone();
        let against = Against::Reference {
            known,
            bits: variant.promise == Promise::Bitwise,
        };
        match self.check(&variant, against, limit) {
            Ok(report) => self.state.entries[index].take(&report),
            Err(fault) if fault.kind.is_environmental() => return Err(fault),
            Err(fault) => self.state.entries[index].verdict = Verdict::failed(&fault),
        }
        Ok(())
    }

    /// One check; tried twice if the process died in a way that may be nobody's fault.
    fn check(
        &mut self,
        variant: &Variant,
        against: Against,
        limit_s: f64,
    ) -> Result<CheckReport, Fault> {
        let request = CheckRequest {
            variant: variant.clone(),
            against,
            limit_s,
        };
        let mut result = self.backend.check(&request);
        for _ in 0..1 {
            let Err(fault) = &result else { break };
            self.state.faults += u32::from(fault.kind.is_fatal());
            if !matches!(fault.kind, FaultKind::Killed | FaultKind::Internal) {
                break;
            }
            result = self.backend.check(&request);
        }
        result
    }
}
