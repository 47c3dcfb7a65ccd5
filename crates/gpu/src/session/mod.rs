//! Measuring a kernel's variants: check each alone, race the correct ones, judge.
//!
//! The backend may lose a worker at any time; the variant that was running pays for it and the
//! session goes on. All that was found is in [`State`], which can be stored after every step and
//! given back to go on from there.

mod checks;
mod race;
mod state;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Verdict};
use crate::fault::{Fault, FaultKind};
use crate::job::{Job, Variant, in_files};
use crate::results::{Environment, Measured, Measurements, SCHEMA};
use crate::stats::{self, Estimate, Outcome};

pub use state::State;

/// How much to spend, and on what.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Seconds of timing per kernel (checks come on top). Up to twice as much is spent if the
    /// final could not tell anything otherwise. Zero: only check.
    pub seconds: f64,
    /// Half-width of an interval, relative, at which a time is known well enough.
    pub half_width: f64,
    /// Smallest relative difference that is ever called one.
    pub resolution: f64,
    /// Longest that one launch may take, seconds.
    pub limit_s: f64,
    /// Time every correct variant to the end instead of halving the field.
    pub exhaustive: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            seconds: 10.0,
            half_width: 0.005,
            resolution: 0.002,
            limit_s: 10.0,
            exhaustive: false,
        }
    }
}

/// News for whoever watches a session.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A variant was checked.
    Checked {
        /// Which.
        id: &'a str,
        /// With what result.
        verdict: &'a Verdict,
        /// How many were checked so far.
        done: usize,
        /// How many there are.
        of: usize,
    },
    /// An epoch of timing is over.
    Timed {
        /// Variants still in the race.
        alive: usize,
        /// The best variant so far.
        best: &'a str,
        /// Its time over the baseline's.
        ratio: f64,
        /// Seconds of timing spent.
        spent: f64,
        /// Seconds of timing there are.
        budget: f64,
    },
    /// A variant was excluded during the race.
    Excluded {
        /// Which.
        id: &'a str,
        /// Why.
        verdict: &'a Verdict,
    },
    /// The session can be resumed from here.
    Checkpoint(&'a State),
}

/// Takes the news; `Break` stops the session at the next step.
pub type Watcher<'a> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'a;

/// Measures `variants` of `job` against the one called `baseline`.
///
/// `resume` is a state from an interrupted session; what it holds about variants that have not changed is kept if job,
/// baseline and device are the same.
///
/// # Errors
/// Nothing can be measured at all: no device, an unusable launch, a baseline that does not run.
pub fn measure(
    backend: &mut dyn Backend,
    job: &Job,
    variants: &[Variant],
    baseline: &str,
    budget: &Budget,
    resume: Option<State>,
    watcher: &mut Watcher<'_>,
) -> Result<Measurements, Fault> {
    let mut session = Session::new(backend, job, variants, baseline, budget, resume, watcher)?;
    let interrupted = session.run()?.is_break();
    Ok(session.results(interrupted))
}

struct Session<'a, 'w> {
    backend: &'a mut dyn Backend,
    job: &'a Job,
    variants: Vec<Variant>,
    /// Index of the baseline; the control is the last variant.
    baseline: usize,
    budget: &'a Budget,
    state: State,
    watcher: &'a mut Watcher<'w>,
    tight: bool,
    chosen: usize,
}

/// Stop early, or go on.
type Step = ControlFlow<()>;

impl<'a, 'w> Session<'a, 'w> {
    fn new(
        backend: &'a mut dyn Backend,
        job: &'a Job,
        variants: &[Variant],
        baseline: &str,
        budget: &'a Budget,
        resume: Option<State>,
        watcher: &'a mut Watcher<'w>,
    ) -> Result<Self, Fault> {
        let mut variants = in_files(job, variants)?;
        let index = variants
            .iter()
            .position(|v| v.id == baseline)
            .ok_or_else(|| {
                Fault::new(
                    FaultKind::Input,
                    format!("no variant is called `{baseline}`"),
                )
            })?;
        // The control is the baseline again, loaded to another place: what it differs by is
        // noise that no number of rounds averages out.
        let mut control = variants[index].clone();
        control.id = format!("{baseline} (again)");
        variants.push(control);
        let device = backend.open(job)?;
        let mut state = State::new(job, device, &variants, index)?;
        if let Some(old) = resume {
            state.resume(old);
        }
        Ok(Session {
            backend,
            job,
            variants,
            baseline: index,
            budget,
            state,
            watcher,
            tight: false,
            chosen: index,
        })
    }

    fn run(&mut self) -> Result<Step, Fault> {
        self.check_baseline()?;
        if self.check_variants()?.is_break() {
            return Ok(Step::Break(()));
        }
        if self.budget.seconds <= 0.0 {
            return Ok(Step::Continue(()));
        }
        let step = self.race()?;
        self.choose()?;
        Ok(step)
    }

    /// Correct variants that have not been dropped, without the control.
    fn alive(&self) -> Vec<usize> {
        let entries = self
            .state
            .entries
            .iter()
            .enumerate()
            .take(self.variants.len() - 1);
        entries
            .filter(|(_, e)| e.verdict.is_correct() && e.dropped_after.is_none())
            .map(|(i, _)| i)
            .collect()
    }

    /// Those of them that may be dropped.
    fn contenders(&self) -> Vec<usize> {
        let mut contenders = self.alive();
        contenders.retain(|&i| i != self.baseline && !self.variants[i].keep);
        contenders
    }

    fn ratio(&self, index: usize) -> Option<Estimate> {
        let entries = &self.state.entries;
        entries[index]
            .series
            .over(&entries[self.baseline].series)
            .estimate()
    }

    /// The noise on this device: what the control differs from the baseline by, or the stated
    /// resolution.
    fn noise(&self) -> f64 {
        let control = self.ratio(self.variants.len() - 1);
        let deviation = control.map_or(0.0, |r| (r.median - 1.0).abs());
        deviation.max(self.budget.resolution)
    }

    fn outcome(&self, index: usize) -> Option<Outcome> {
        if index == self.baseline {
            return None;
        }
        self.ratio(index).map(|r| stats::compare(&r, self.noise()))
    }

    /// Picks the fastest variant that is faster beyond the noise and still right when run again:
    /// a race shows itself in some runs only.
    fn choose(&mut self) -> Result<(), Fault> {
        loop {
            let alive = self.alive().into_iter();
            let faster = alive
                .filter(|&i| self.outcome(i) == Some(Outcome::Faster))
                .filter_map(|i| Some((i, self.ratio(i)?.median)));
            let Some((best, _)) = faster.min_by(|a, b| a.1.total_cmp(&b.1)) else {
                self.chosen = self.baseline;
                return Ok(());
            };
            self.check_one(best, self.budget.limit_s)?;
            let entry = &self.state.entries[best];
            if entry.verdict.is_correct() {
                self.chosen = best;
                return Ok(());
            }
            let _ = (self.watcher)(&Progress::Excluded {
                id: &entry.id,
                verdict: &entry.verdict,
            });
        }
    }

    fn checkpoint(&mut self) -> Step {
        (self.watcher)(&Progress::Checkpoint(&self.state))
    }

    fn results(&self, interrupted: bool) -> Measurements {
        let state = &self.state;
        let measured = |i: usize| {
            let entry = &state.entries[i];
            Measured {
                id: entry.id.clone(),
                verdict: entry.verdict.clone(),
                resources: entry.resources.clone(),
                time_ns: entry.series.estimate(),
                ratio: if i == self.baseline {
                    None
                } else {
                    self.ratio(i)
                },
                outcome: self.outcome(i),
                dropped_after: entry.dropped_after,
            }
        };
        Measurements {
            schema: SCHEMA,
            kernel: self.job.kernel.clone(),
            shape: self.job.shape.clone(),
            environment: Environment {
                device: state.device.clone(),
                clocks_before: state.clocks.map(|(before, _)| before),
                clocks_after: state.clocks.map(|(_, after)| after),
                sm_mhz_range: state.sm_mhz,
                date: state.date.clone(),
            },
            baseline: state.entries[self.baseline].id.clone(),
            deterministic: state.reference.unstable.is_empty(),
            plan: state.plan,
            noise: self.noise(),
            chosen: state.entries[self.chosen].id.clone(),
            tight: self.tight,
            interrupted,
            faults: state.faults,
            seconds: state.spent,
            variants: (0..self.variants.len() - 1).map(measured).collect(),
        }
    }
}
