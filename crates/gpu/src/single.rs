//! One launch of one variant, for its outputs.

use crate::backend::{Against, Backend, CheckRequest, Resources, Verdict};
use crate::fault::Fault;
use crate::job::{self, Image, Job, Variant};
use crate::prepare::prepare;
use std::path::Path;
use warpwright_launch::{ContentsError, Launch};

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

/// Runs a kernel once with such contents of its buffers; what they hold afterwards, or what went wrong. `scratch` is an empty
/// folder.
///
/// # Errors
/// The backend fails, or the launch is wrong.
pub fn run_once(
    backend: &mut dyn Backend,
    (image, launch, inputs): (Image, &Launch, &[Vec<u8>]),
    scratch: &Path,
    limit_s: f64,
) -> Result<Result<Vec<Vec<u8>>, Verdict>, Fault> {
    let files = |name: &str| Err(ContentsError::NotCarried(name.to_owned()));
    let job = prepare(launch, scratch, &files)?;
    let found = run(backend, &job, &Variant::new("this kernel", image), limit_s)?;
    if !found.verdict.is_correct() {
        return Ok(Err(found.verdict));
    }
    let mut outputs = found.outputs.into_iter();
    let contents = launch.buffers().zip(inputs);
    let contents = contents.map(|(buffer, input)| match buffer.output {
        true => outputs.next().map(|o| o.1).unwrap_or_default(),
        false => input.clone(),
    });
    Ok(Ok(contents.collect()))
}
