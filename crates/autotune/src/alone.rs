//! Versions of a kernel in CUDA C that are timed alone, in programs made for it: built side by side, timed in turns with the
//! kernel as written, and the fastest that agrees with it in the emulator too is taken.
//!
//! What is built and what is timed is for [`naive`](crate::naive) and [`stencil`](crate::stencil) to say.

use std::time::Duration;

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use warpwright_api::{Error, source::sizes::OwnSizes};
use warpwright_diag::Problem;
use warpwright_driver::source::{Attempt, Kept, attempt};
use warpwright_gpu::{DeviceInfo, devices};
use warpwright_naive::emit::NoLauncher;
use warpwright_pass::{Artifact, Executor, Invocation, Target};
use warpwright_toolkit::ToolError;

use crate::Watch;

/// Compiling one version, or a whole measurement.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// What is asked of a search.
pub struct Wanted<'a> {
    /// Only this kernel, by name.
    pub kernel: Option<&'a str>,
    /// The GPU, as somebody names it.
    pub gpu: &'a str,
    /// Sizes that somebody states, elements.
    pub sizes: &'a [(String, i64)],
    /// Those of the file's own launches.
    pub own: &'a OwnSizes,
    /// May the sums of stencils be reordered?
    pub reassociate: bool,
    /// Is more tried than what is predicted to be good?
    pub exhaustive: bool,
    /// Seconds of measuring.
    pub budget: f64,
}

/// Why a version is out before or while it is measured.
#[derive(Debug, thiserror::Error)]
pub enum Out {
    /// It cannot be written.
    #[error(transparent)]
    NotWritten(NoLauncher),
    /// nvcc refuses it.
    #[error("it does not compile: {0}")]
    NotCompiled(ToolError),
    /// What its process says.
    #[error("it does not run: {0}")]
    NotRun(String),
}

impl Out {
    /// What nvcc makes of a version; what is no fault of the version's is an error.
    pub(crate) fn of<T>(built: Result<T, ToolError>) -> Result<Result<T, Out>, Error> {
        match built {
            Ok(built) => Ok(Ok(built)),
            Err(error @ ToolError::Rejected { .. }) => Ok(Err(Out::NotCompiled(error))),
            Err(error) => Err(error.into()),
        }
    }
}

/// Builds so many versions side by side.
///
/// # Errors
/// The first of `build`.
pub(crate) fn build_all<T: Send>(
    count: usize,
    watch: &dyn Watch,
    build: impl Fn(usize) -> Result<Result<T, Out>, Error> + Sync,
) -> Result<Vec<Result<T, Out>>, Error> {
    let bar = watch.bar(Some(count as u64), "compiling");
    let one = |at| {
        let built = build(at);
        bar.more();
        built
    };
    let built: Vec<_> = (0..count).into_par_iter().map(one).collect();
    built.into_iter().collect()
}

/// A line of a measuring program.
pub(crate) fn parsed<T: DeserializeOwned>(line: &str) -> Result<T, Error> {
    let parsed = serde_json::from_str(line);
    let wrong = |e| Problem::Internal(format!("the measuring program: {e}"));
    Ok(parsed.map_err(wrong)?)
}

/// A version that is measured.
pub(crate) trait Version {
    /// Is the kernel as written measured with each of them, and none of them itself?
    const IS_BESIDE: bool;

    /// What the fastest has least of; none of what was not measured or is out.
    fn time(&self) -> Option<f64>;

    /// Is it surely faster than the kernel as written ([`warpwright_gpu::stats::faster`])?
    fn gains(&self) -> bool;

    /// Is it the kernel as written?
    fn is_original(&self) -> bool;

    /// It is out.
    fn reject(&mut self, why: String);
}

/// Of the versions that were timed the fastest that is surely faster than the original; else the original, if it is one of
/// them. Where it is and was not timed (it was out), the fastest of all.
pub(crate) fn fastest<V: Version>(all: &[V]) -> Option<usize> {
    let times = all.iter().enumerate();
    let times: Vec<(usize, f64)> = times.filter_map(|(at, v)| Some((at, v.time()?))).collect();
    let original = times.iter().find(|(at, _)| all[*at].is_original());
    let is_any = !V::IS_BESIDE && original.is_none();
    let gains = times.iter().filter(|(at, _)| is_any || all[*at].gains());
    let fastest = gains.min_by(|a, b| a.1.total_cmp(&b.1)).or(original);
    fastest.map(|(at, _)| *at)
}

/// The number of a version, and the file with it, unless it is the kernel as written.
pub(crate) type Settled = (usize, Option<Box<Kept>>);

/// The fastest version that agrees with the kernel as written in the emulator too; those that do not are out. `pass` makes a version of the file.
pub(crate) fn settle<V: Version>(
    all: &mut [V],
    pass: impl Fn(usize) -> Option<Invocation>,
    (file, target): (&Artifact, &Target<'_>),
    executor: &mut Executor<'_>,
) -> Result<Option<Settled>, Error> {
    while let Some(at) = fastest(all) {
        let Some(pass) = pass(at) else {
            return Ok(Some((at, None)));
        };
        let why = match attempt(&pass, (file, target), executor)? {
            Attempt::Kept(kept) => return Ok(Some((at, Some(kept)))),
            Attempt::Falls(fall) => fall.to_string(),
            Attempt::NotOne => "it cannot be written".to_owned(),
        };
        all[at].reject(why);
    }
    Ok(None)
}

/// The GPU that is measured on.
///
/// # Errors
/// There is none.
pub fn one_device() -> Result<DeviceInfo, Error> {
    let first = devices()?.into_iter().next();
    Ok(first.ok_or_else(|| Problem::Missing {
        what: "there is no GPU to measure on".into(),
        mend: Some("`warpwright opt` chooses without one".into()),
    })?)
}
