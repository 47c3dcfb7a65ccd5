//! All that a session has found out so far, in a form that can be stored.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::backend::{CheckReport, Reference, Resources, Verdict};
use crate::device::{Clocks, DeviceInfo, utc_now};
use crate::fault::{Fault, FaultKind};
use crate::job::{Job, Variant};
use crate::plan::Plan;
use crate::stats::Series;

/// All that a session has found out so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Identifies job and baseline.
    key: String,
    pub(super) device: DeviceInfo,
    pub(super) reference: Reference,
    pub(super) plan: Option<Plan>,
    pub(super) stage: u32,
    pub(super) epoch: u32,
    pub(super) spent: f64,
    pub(super) faults: u32,
    pub(super) clocks: Option<(Clocks, Clocks)>,
    pub(super) sm_mhz: Option<(u32, u32)>,
    pub(super) date: String,
    pub(super) entries: Vec<Entry>,
}

/// What was found about one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) id: String,
    /// Identifies the image and the launch.
    key: String,
    pub(super) verdict: Verdict,
    pub(super) resources: Option<Resources>,
    pub(super) ns: f64,
    pub(super) series: Series,
    pub(super) dropped_after: Option<u32>,
}

impl Entry {
    fn new(variant: &Variant) -> Result<Self, Fault> {
        let launch = (
            &variant.kernel,
            &variant.shape,
            variant.carveout,
            variant.promise,
        );
        let key = digest(&[&variant.image.read()?, &json(&launch)?]);
        Ok(Entry {
            id: variant.id.clone(),
            key,
            verdict: Verdict::Untested,
            resources: None,
            ns: 0.0,
            series: Series::default(),
            dropped_after: None,
        })
    }

    pub(super) fn take(&mut self, report: &CheckReport) {
        self.verdict = report.verdict.clone();
        self.resources = Some(report.resources.clone());
        if self.series.is_empty() {
            self.ns = report.ns;
        }
    }
}

impl State {
    /// A state in which nothing is known yet. `variants` ends with the control.
    pub(super) fn new(
        job: &Job,
        device: DeviceInfo,
        variants: &[Variant],
        baseline: usize,
    ) -> Result<Self, Fault> {
        let mut entries: Vec<Entry> = Vec::new();
        for variant in variants {
            if entries.iter().any(|e| e.id == variant.id) {
                let detail = format!("two variants are called `{}`", variant.id);
                return Err(Fault::new(FaultKind::Input, detail));
            }
            entries.push(Entry::new(variant)?);
        }
        Ok(State {
            key: digest(&[&job_key(job)?, entries[baseline].key.as_bytes()]),
            device,
            reference: Reference::default(),
            plan: None,
            stage: 0,
            epoch: 0,
            spent: 0.0,
            faults: 0,
            clocks: None,
            sm_mhz: None,
            date: utc_now(),
            entries,
        })
    }

    /// Takes over what an earlier session found, as far as it is about the same thing: the same
    /// job, baseline and device (or nothing is), and the same image and launch of a variant. The
    /// caller vouches for the same initial contents of buffers.
    pub(super) fn resume(&mut self, old: State) {
        if old.key != self.key || old.device != self.device {
            return;
        }
        for entry in &mut self.entries {
            let same = |e: &&Entry| e.id == entry.id && e.key == entry.key;
            if let Some(old) = old.entries.iter().find(same) {
                *entry = old.clone();
            }
        }
        self.plan = old.plan;
        self.stage = old.stage;
        self.epoch = old.epoch;
        self.spent = old.spent;
        self.faults = old.faults;
        self.clocks = old.clocks;
        self.sm_mhz = old.sm_mhz;
    }
}

/// What identifies a job wherever its files lie.
fn job_key(job: &Job) -> Result<Vec<u8>, Fault> {
    let mut job = job.clone();
    job.dir = Default::default();
    for buffer in &mut job.buffers {
        buffer.file = Default::default();
    }
    json(&job)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(value).map_err(|e| Fault::new(FaultKind::Internal, e.to_string()))
}

fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
