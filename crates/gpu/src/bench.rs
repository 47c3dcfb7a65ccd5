//! Taking samples: buffers, events, and what happens around a timed launch.
//!
//! `docs/measuring.md` gives the reasons for each step.

use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::backend::{TimeReport, TimeRequest};
use crate::cuda::{Context, Event, Memory};
use crate::device::Device;
use crate::fault::Fault;
use crate::job::Variant;
use crate::kernel::Kernel;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::runner::Open;

/// Times variants in one context, in rounds that each take one sample of each.
pub(crate) fn time(
    open: &Open,
    device: &Device,
    request: &TimeRequest,
) -> Result<TimeReport, Fault> {
    let context = device.context();
    let began = Instant::now();
    let mut rng = Rng::new(request.epoch.into());
    let _padding = padding(context, &mut rng)?;
    let mut modules = Vec::new();
    for variant in &request.variants {
        open.start(&variant.id)?;
        let module = variant
            .image
            .read()
            .and_then(|image| context.module(&image));
        modules.push(module.map_err(|f| f.blame(&variant.id))?);
    }
    let mut kernels = Vec::new();
    for (module, variant) in modules.iter().zip(&request.variants) {
        let kernel = Kernel::prepare(module, &open.job, variant);
        kernels.push(kernel.map_err(|f| f.blame(&variant.id))?);
    }
    let bench = Bench::set_up(context, open, request)?;
    let mut round = || bench.round(open, &request.variants, &kernels, &mut rng);
    let warm_until = Instant::now() + Duration::from_secs_f64(request.warmup_s);
    while Instant::now() < warm_until {
        round()?;
    }
    let clocks_before = device.clocks();
    let mut samples = vec![Vec::with_capacity(request.rounds as usize); kernels.len()];
    for _ in 0..request.rounds {
        for (samples, ns) in samples.iter_mut().zip(round()?) {
            samples.push(ns);
        }
    }
    Ok(TimeReport {
        samples,
        wall_s: began.elapsed().as_secs_f64(),
        clocks_before,
        clocks_after: device.clocks(),
    })
}

/// Buffers and events for taking samples.
struct Bench<'a> {
    context: &'a Context,
    plan: Plan,
    restore: &'a [usize],
    sets: Vec<Arena>,
    params: Vec<Vec<Vec<u8>>>,
    begin: Event,
    end: Event,
    limit: Duration,
    gate_ns: u64,
}

impl<'a> Bench<'a> {
    fn set_up(context: &'a Context, open: &Open, request: &'a TimeRequest) -> Result<Self, Fault> {
        let plan = request.plan;
        let mut sets = Vec::new();
        let mut params = Vec::new();
        for _ in 0..plan.sets() {
            let set = Arena::plain(context, &open.job)?;
            for restored in open.pristine.iter().enumerate() {
                set.restore(context, &open.job, restored)?;
            }
            params.push(set.params(&open.job)?);
            sets.push(set);
        }
        Ok(Bench {
            context,
            plan,
            restore: &request.restore,
            sets,
            params,
            begin: context.event()?,
            end: context.event()?,
            limit: Duration::from_secs_f64(request.limit_s),
            // Queueing one launch takes the host some microseconds.
            gate_ns: 20_000 + 6_000 * u64::from(plan.sets() + 2),
        })
    }

    /// One sample of each kernel, in an order of its own; nanoseconds by variant.
    fn round(
        &self,
        open: &Open,
        variants: &[Variant],
        kernels: &[Kernel<'_>],
        rng: &mut Rng,
    ) -> Result<Vec<f64>, Fault> {
        let mut samples = vec![0.0; kernels.len()];
        for v in rng.permutation(kernels.len()) {
            let id = &variants[v].id;
            open.start(id)?;
            samples[v] = self.sample(open, &kernels[v]).map_err(|f| f.blame(id))?;
        }
        Ok(samples)
    }

    /// One sample of one kernel: nanoseconds per launch.
    fn sample(&self, open: &Open, kernel: &Kernel<'_>) -> Result<f64, Fault> {
        for set in &self.sets {
            for &index in self.restore {
                set.restore(self.context, &open.job, (index, &open.pristine[index]))?;
            }
        }
        kernel.restore_symbols(self.context, &open.pristine)?;
        open.helpers.flush(self.context, self.gate_ns)?;
        let mut params = self.params.iter();
        if self.plan.warm
            && let Some(params) = params.next()
        {
            kernel.launch(self.context, params)?;
        }
        self.context.record(&self.begin)?;
        for params in params {
            kernel.launch(self.context, params)?;
        }
        self.context.record(&self.end)?;
        self.context.wait(self.limit)?;
        Ok(self.begin.until(&self.end)? / f64::from(self.plan.batch))
    }
}

/// Allocations that shift what is allocated after them, so that epochs differ in placement.
fn padding(context: &Context, rng: &mut Rng) -> Result<Vec<Memory>, Fault> {
    (0..3)
        .map(|_| context.alloc((1 + rng.below(64)) * 512 * 1024))
        .collect()
}
