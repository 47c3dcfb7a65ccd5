//! One launch of one variant, for its outputs.

use crate::backend::{Against, Backend, CheckRequest, Resources, Verdict};
use crate::fault::Fault;
use crate::job::{self, Job, Variant};

/// What one launch came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What the kernel takes, as loaded.
    pub resources: Resources,
    /// [`Verdict::Identical`], or [`Verdict::Corrupts`] if it wrote beyond a buffer.
    pub verdict: Verdict,
    /// Two launches gave the same bits.
    pub deterministic: bool,
    /// Time of a second launch, nanoseconds; a rough estimate.
    pub ns: f64,
    /// Name and contents of each output, in the order of the job's buffers.
    pub outputs: Vec<(String, Vec<u8>)>,
}

/// Launches a variant and returns its outputs, without comparing them with anything.
pub fn run(
    backend: &mut dyn Backend,
    job: &Job,
    variant: &Variant,
    limit_s: f64,
) -> Result<Run, Fault> {
    let variant = job::in_files(job, std::slice::from_ref(variant))?.remove(0);
    backend.open(job)?;
    let request = CheckRequest {
        variant,
        against: Against::Nothing,
        limit_s,
    };
    let report = backend.check(&request)?;
    let mut outputs = Vec::new();
    for (index, buffer) in job.buffers.iter().enumerate().filter(|(_, b)| b.output) {
        if report.verdict.is_correct() {
            outputs.push((buffer.name.clone(), job::read(&job.reference_file(index))?));
        }
    }
    Ok(Run {
        resources: report.resources,
        verdict: report.verdict,
        deterministic: report.reference.unstable.is_empty(),
        ns: report.ns,
        outputs,
    })
}
