//! The correct variants against each other: halve the field, then time the finalists.

use super::{Progress, Session, Step};
use crate::backend::{TimeReport, TimeRequest, Verdict};
use crate::fault::{Fault, FaultKind};
use crate::halving;
use crate::plan::Plan;
use crate::stats::{self, Estimate, Series};

/// Contenders beside the baseline that are timed to the end.
const FINALISTS: usize = 3;
/// Share of the budget for finding the finalists.
const HALVING_SHARE: f64 = 0.4;
/// Epochs of the final: from six on, the spread of their medians bounds the median with 95%.
const EPOCHS: std::ops::Range<u32> = 6..24;
/// Rounds of an epoch. One is enough: six epochs of one round say more than one of six.
const ROUNDS: std::ops::RangeInclusive<u32> = 1..=40;
/// What is spent at most, over the budget, when the final needs more epochs to say anything.
const OVERDRAFT: f64 = 2.0;
/// Warm-up of the first epoch (the clocks rise from idle), and of every other, seconds.
const WARMUP_S: (f64, f64) = (0.5, 0.05);
/// What a sample costs beside its launches, seconds: flush, restoring, events.
const SAMPLE_OVERHEAD_S: f64 = 250e-6;

impl Session<'_, '_> {
    /// Halves the field until few are left, then times those until their intervals are tight.
    pub(super) fn race(&mut self) -> Result<Step, Fault> {
        while !self.budget.exhaustive && self.contenders().len() > FINALISTS {
            let stages = halving::stages(self.contenders().len(), FINALISTS);
            let left = self.budget.seconds * HALVING_SHARE - self.state.spent;
            let group = self.alive();
            if self.epoch(&group, left / f64::from(stages))?.is_break() {
                return Ok(Step::Break(()));
            }
            self.halve();
            self.state.stage += 1;
        }
        let mut epochs = 0;
        loop {
            let mut group = self.alive();
            group.push(self.variants.len() - 1);
            let left = (self.budget.seconds - self.state.spent).max(0.0);
            let share = left / f64::from(EPOCHS.start.saturating_sub(epochs).max(1));
            let step = self.epoch(&group, share)?;
            epochs += 1;
            self.tight = epochs >= EPOCHS.start && self.is_tight(&group);
            let enough = match epochs {
                e if e >= EPOCHS.end => true,
                e if e >= EPOCHS.start => self.tight || self.state.spent >= self.budget.seconds,
                _ => self.state.spent >= OVERDRAFT * self.budget.seconds,
            };
            if step.is_break() || enough {
                return Ok(step);
            }
        }
    }

    fn halve(&mut self) {
        let field: Vec<(usize, Estimate)> = self
            .contenders()
            .into_iter()
            .filter_map(|i| Some((i, self.ratio(i)?)))
            .collect();
        let keep = field.len().div_ceil(2).max(FINALISTS);
        let kept = halving::survivors(&field, keep);
        for (index, _) in field {
            if !kept.contains(&index) {
                self.state.entries[index].dropped_after = Some(self.state.stage);
            }
        }
    }

    fn is_tight(&self, group: &[usize]) -> bool {
        let tight = |e: Option<Estimate>| {
            e.is_some_and(|e| {
                e.half_width() <= self.budget.half_width && e.coverage >= stats::CONFIDENCE
            })
        };
        group
            .iter()
            .all(|&i| tight(self.state.entries[i].series.estimate()))
            && group
                .iter()
                .all(|&i| i == self.baseline || tight(self.ratio(i)))
    }

    /// One epoch of about `seconds` for a group that includes the baseline. Variants that fail
    /// are excluded, and the others are timed.
    fn epoch(&mut self, group: &[usize], seconds: f64) -> Result<Step, Fault> {
        let mut group = group.to_vec();
        let mut nobody = 0;
        loop {
            let request = self.request(&group, seconds);
            match self.backend.time(&request) {
                Ok(report) => {
                    self.keep(&group, &report);
                    break;
                }
                Err(fault) => {
                    self.state.faults += u32::from(fault.kind.is_fatal());
                    if fault.kind == FaultKind::OutOfMemory && self.smaller_plan() {
                        continue;
                    }
                    match self.culprit(&group, &fault) {
                        Some(culprit) if self.is_baseline(culprit) => return Err(fault),
                        Some(culprit) => {
                            self.exclude(culprit, &fault);
                            group.retain(|&i| i != culprit);
                        }
                        None if fault.kind.is_environmental() || nobody > 0 => return Err(fault),
                        None if fault.kind == FaultKind::OutOfMemory => return Err(fault),
                        None => {
                            nobody += 1;
                            self.try_each_alone(&mut group)?;
                        }
                    }
                }
            }
        }
        Ok(self.report_epoch())
    }

    fn is_baseline(&self, index: usize) -> bool {
        index == self.baseline || index == self.variants.len() - 1
    }

    fn culprit(&self, group: &[usize], fault: &Fault) -> Option<usize> {
        if fault.kind.is_environmental() {
            return None;
        }
        let id = fault.variant.as_ref()?;
        group.iter().copied().find(|&i| self.variants[i].id == *id)
    }

    fn exclude(&mut self, index: usize, fault: &Fault) {
        let entry = &mut self.state.entries[index];
        entry.verdict = Verdict::failed(fault);
        entry.series = Series::default();
        // Whoever watches may stop the session at the next epoch.
        let _ = (self.watcher)(&Progress::Excluded {
            id: &entry.id,
            verdict: &entry.verdict,
        });
    }

    /// A joint run died and nobody knows of whom: let each run alone, and exclude who dies.
    fn try_each_alone(&mut self, group: &mut Vec<usize>) -> Result<(), Fault> {
        for index in group.clone() {
            let mut request = self.request(&[index], 0.0);
            request.rounds = *ROUNDS.start();
            if let Err(fault) = self.backend.time(&request) {
                self.state.faults += u32::from(fault.kind.is_fatal());
                if fault.kind.is_environmental() || self.is_baseline(index) {
                    return Err(fault);
                }
                self.exclude(index, &fault);
                group.retain(|&i| i != index);
            }
        }
        Ok(())
    }

    /// Needs less memory from now on; samples taken so far do not compare with later ones.
    fn smaller_plan(&mut self) -> bool {
        let Some(plan) = self.state.plan.filter(|plan| plan.sets() > 1) else {
            return false;
        };
        let batch = (plan.batch / 2).max(1);
        self.state.plan = Some(Plan {
            batch,
            warm: plan.warm && plan.batch > 1,
        });
        for entry in &mut self.state.entries {
            entry.series = Series::default();
        }
        true
    }

    fn request(&mut self, group: &[usize], seconds: f64) -> TimeRequest {
        let plan = self.plan();
        let times = group.iter().map(|&i| self.state.entries[i].ns * 1e-9);
        let slowest = times.clone().fold(0.0, f64::max);
        let restore: Vec<usize> = self
            .state
            .reference
            .changed
            .iter()
            .copied()
            .filter(|&i| {
                self.job
                    .buffers
                    .get(i)
                    .is_some_and(|b| !b.symbol && !b.unwritten)
            })
            .collect();
        let round_s: f64 = times
            .map(|t| t * f64::from(plan.sets()) + SAMPLE_OVERHEAD_S)
            .sum();
        // Later epochs of long kernels need none: the device is warm, and a round costs more.
        let warmup_s = match self.state.epoch {
            0 => WARMUP_S.0,
            _ if round_s > WARMUP_S.1 => 0.0,
            _ => WARMUP_S.1,
        };
        let rounds = ((seconds - warmup_s) / round_s.max(1e-9)).max(0.0) as u32;
        TimeRequest {
            variants: group.iter().map(|&i| self.variants[i].clone()).collect(),
            plan,
            rounds: rounds.clamp(*ROUNDS.start(), *ROUNDS.end()),
            epoch: self.state.epoch,
            restore,
            warmup_s,
            limit_s: 2.0 + 20.0 * slowest * f64::from(plan.sets()),
        }
    }

    /// The plan for all variants, made when it is first needed.
    fn plan(&mut self) -> Plan {
        if let Some(plan) = self.state.plan {
            return plan;
        }
        let correct = self.state.entries.iter().filter(|e| e.verdict.is_correct());
        let fastest = correct.map(|e| e.ns).fold(f64::INFINITY, f64::min);
        let device = &self.state.device;
        let footprint = self.job.footprint();
        // Initial contents, reference results and the checked run's buffers stay there, and so
        // does what the flush reads; a tenth is for the driver.
        let taken = 3 * footprint + 3 * device.l2_bytes + device.memory_bytes / 10;
        let plan = Plan::choose(
            fastest,
            footprint,
            device.memory_bytes.saturating_sub(taken),
        );
        self.state.plan = Some(plan);
        plan
    }

    fn keep(&mut self, group: &[usize], report: &TimeReport) {
        for (&index, samples) in group.iter().zip(&report.samples) {
            let entry = &mut self.state.entries[index];
            entry.series.push(self.state.epoch, samples.clone());
            // Better than the estimate of the check, for planning the next epochs.
            entry.ns = stats::median(samples).unwrap_or(entry.ns);
        }
        self.state.epoch += 1;
        self.state.spent += report.wall_s;
        if let (Some(before), Some(after)) = (report.clocks_before, report.clocks_after) {
            let first = self.state.clocks.map_or(before, |(first, _)| first);
            self.state.clocks = Some((first, after));
            let (low, high) = self.state.sm_mhz.unwrap_or((u32::MAX, 0));
            let (a, b) = (before.sm_mhz, after.sm_mhz);
            self.state.sm_mhz = Some((low.min(a).min(b), high.max(a).max(b)));
        }
    }

    fn report_epoch(&mut self) -> Step {
        let alive = self.alive();
        let ratios = alive
            .iter()
            .filter_map(|&i| Some((i, self.ratio(i)?.median)));
        let (best, ratio) = ratios
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or((self.baseline, 1.0));
        let news = Progress::Timed {
            alive: alive.len(),
            best: &self.state.entries[best].id,
            ratio,
            spent: self.state.spent,
            budget: self.budget.seconds,
        };
        match (self.watcher)(&news) {
            Step::Break(()) => Step::Break(()),
            Step::Continue(()) => self.checkpoint(),
        }
    }
}
