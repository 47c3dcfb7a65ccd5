//! Several GPUs of one host: independent tasks side by side, or one kernel's variants split up.
//!
//! Times from different devices are never compared with each other: every device races its share
//! of the variants against its own run of the baseline, and the finalists meet on one device.

use std::ops::ControlFlow;
use std::sync::Mutex;

use crate::backend::Backend;
use crate::fault::{Fault, FaultKind};
use crate::job::{Job, Variant};
use crate::results::{Measured, Measurements};
use crate::session::{Budget, measure};

/// Runs `tasks` on `backends`, each backend taking the next task when it is free. Results come
/// in the order of the tasks.
pub fn spread<B: Send, T: Send, R: Send>(
    backends: Vec<B>,
    tasks: Vec<T>,
    run: impl Fn(&mut B, T) -> R + Sync,
) -> Vec<R> {
    let count = tasks.len();
    let queue = Mutex::new(tasks.into_iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for mut backend in backends {
            let (queue, done, run) = (&queue, &done, &run);
            scope.spawn(move || {
                loop {
                    // A panic elsewhere must not take this device's results along.
                    let next = queue.lock().unwrap_or_else(|e| e.into_inner()).next();
                    let Some((index, task)) = next else { break };
                    let result = run(&mut backend, task);
                    done.lock()
                        .unwrap_or_else(|e| e.into_inner())
                        .push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// What a device of the fleet reports while it works.
pub type FleetWatcher<'a> = dyn Fn(usize, &crate::Progress<'_>) -> ControlFlow<()> + Sync + 'a;

/// Measures one kernel's variants on several devices of the same kind; with one it is
/// [`measure`]. The watcher is told the device's number within `backends`.
///
/// # Errors
/// As of [`measure`].
pub fn measure_split<B: Backend + Send>(
    mut backends: Vec<B>,
    job: &Job,
    variants: &[Variant],
    baseline: &str,
    budget: &Budget,
    watcher: &FleetWatcher<'_>,
) -> Result<Measurements, Fault> {
    if backends.is_empty() {
        return Err(Fault::new(FaultKind::Missing, "no device to measure on"));
    }
    if backends.len() == 1 {
        let backend = &mut backends[0];
        return measure(backend, job, variants, baseline, budget, None, &mut |p| {
            watcher(0, p)
        });
    }
    let shares = shares(variants, baseline, backends.len());
    // Half of the time for the heats, half for the final.
    let heat = &Budget {
        seconds: budget.seconds / 2.0,
        ..*budget
    };
    let results: Vec<Result<Measurements, Fault>> = std::thread::scope(|scope| {
        let running: Vec<_> = backends
            .iter_mut()
            .zip(shares)
            .enumerate()
            .map(|(n, (backend, share))| {
                scope.spawn(move || {
                    let job = own_folder(job, n)?;
                    measure(backend, &job, &share, baseline, heat, None, &mut |p| {
                        watcher(n, p)
                    })
                })
            })
            .collect();
        let panicked = || {
            Err(Fault::new(
                FaultKind::Internal,
                "a measuring thread panicked",
            ))
        };
        running
            .into_iter()
            .map(|r| r.join().unwrap_or_else(|_| panicked()))
            .collect()
    });
    let results = results.into_iter().collect::<Result<Vec<_>, _>>()?;
    let finalists: Vec<Variant> = variants
        .iter()
        .filter(|v| v.id == baseline || results.iter().any(|r| is_finalist(r, &v.id)))
        .cloned()
        .collect();
    let last = Budget {
        exhaustive: true,
        ..*heat
    };
    let mut total = measure(
        &mut backends[0],
        job,
        &finalists,
        baseline,
        &last,
        None,
        &mut |p| watcher(0, p),
    )?;
    merge(&mut total, variants, &results);
    Ok(total)
}

/// Deals the variants out like cards, the baseline to everybody.
fn shares(variants: &[Variant], baseline: &str, devices: usize) -> Vec<Vec<Variant>> {
    let mut shares: Vec<Vec<Variant>> = vec![Vec::new(); devices];
    let mut next = 0;
    for variant in variants {
        if variant.id == baseline {
            shares
                .iter_mut()
                .for_each(|share| share.push(variant.clone()));
        } else {
            shares[next % devices].push(variant.clone());
            next += 1;
        }
    }
    shares
}

/// The job with a folder of its own for what workers write; initial contents are shared.
fn own_folder(job: &Job, number: usize) -> Result<Job, Fault> {
    let dir = job.dir.join(format!("device-{number}"));
    std::fs::create_dir_all(&dir)
        .map_err(|e| Fault::new(FaultKind::Input, format!("{}: {e}", dir.display())))?;
    Ok(Job { dir, ..job.clone() })
}

fn is_finalist(result: &Measurements, id: &str) -> bool {
    result
        .get(id)
        .is_some_and(|m| m.verdict.is_correct() && m.dropped_after.is_none())
}

/// Adds what the heats found about variants that did not reach the final.
fn merge(total: &mut Measurements, variants: &[Variant], heats: &[Measurements]) {
    let mut all: Vec<Measured> = Vec::new();
    for variant in variants {
        let found = total
            .get(&variant.id)
            .or_else(|| heats.iter().find_map(|h| h.get(&variant.id)));
        all.extend(found.cloned());
    }
    total.variants = all;
    total.faults += heats.iter().map(|h| h.faults).sum::<u32>();
    total.seconds += heats.iter().map(|h| h.seconds).sum::<f64>();
    total.interrupted |= heats.iter().any(|h| h.interrupted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Image;

    #[test]
    fn results_keep_the_order_of_tasks() {
        let squares = spread(vec![(), (), ()], (0..50u32).collect(), |(), n| n * n);
        assert_eq!(squares, (0..50).map(|n| n * n).collect::<Vec<_>>());
    }

    #[test]
    fn everybody_gets_the_baseline_and_a_share() {
        let variants: Vec<Variant> = ["a", "base", "b", "c", "d"]
            .map(|id| Variant::new(id, Image::Bytes(Vec::new())))
            .to_vec();
        let ids = |share: &[Variant]| share.iter().map(|v| v.id.clone()).collect::<Vec<_>>();
        let shares = shares(&variants, "base", 2);
        assert_eq!(ids(&shares[0]), ["a", "base", "c"]);
        assert_eq!(ids(&shares[1]), ["base", "b", "d"]);
    }
}
