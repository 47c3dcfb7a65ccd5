//! The sample of cubins that the tests of this crate share: a few sources of the corpus and the
//! examples, for every architecture, kept between runs below the target directory.

#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{BuildCache, NvccJob, PtxasJob, Toolkit};

/// One cubin and what it was made of.
pub struct Sample {
    /// Source, architecture and options.
    pub name: String,
    /// The bytes that ptxas wrote.
    pub cubin: Vec<u8>,
}

/// All architectures with different encodings or containers.
pub const ARCHITECTURES: [&str; 7] = [
    "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120",
];

/// How a source is compiled besides the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As it comes.
    Default,
    /// With line tables.
    Lines,
    /// At most 32 registers, so that large kernels spill.
    Limited,
    /// Unoptimized, with debug information.
    Debug,
    /// Relocatable.
    Relocatable,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles a source of the repository for one architecture. The PTX is for sm_75 unless the
/// source needs a later one.
pub fn build(
    toolkit: &Toolkit,
    source: &str,
    virtual_gpu: &str,
    gpu: &str,
    variant: Variant,
) -> Sample {
    let cache = BuildCache::open(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("cubins"),
        1 << 28,
    );
    let path = repository().join(source);
    let mut nvcc = NvccJob::new(&path, virtual_gpu);
    nvcc.extra = vec!["-std=c++17".into()];
    if variant == Variant::Debug {
        nvcc.extra.push("-G".into());
    }
    if variant == Variant::Relocatable {
        nvcc.extra.push("-rdc=true".into());
    }
    let ptx = cache.nvcc(&toolkit.nvcc().unwrap(), &nvcc).unwrap().ptx;
    let mut ptxas = PtxasJob::new(&ptx, gpu);
    match variant {
        Variant::Default => {}
        Variant::Lines => ptxas.lineinfo = true,
        Variant::Limited => ptxas.maxrregcount = Some(32),
        Variant::Debug => {
            ptxas.opt_level = Some(0);
            ptxas.extra = vec!["-g".into()];
        }
        Variant::Relocatable => ptxas.extra = vec!["-c".into()],
    }
    let cubin = cache
        .ptxas(&toolkit.ptxas().unwrap(), &ptxas)
        .unwrap()
        .cubin;
    let name = format!("{source} {gpu} {variant:?}");
    Sample { name, cubin }
}

/// The sample, or nothing after saying that `test` is skipped.
pub fn cubins(test: &str) -> Option<Vec<Sample>> {
    let toolkit = require_toolkit(test)?;
    let mut samples = Vec::new();
    let control = "lab/corpus/cuda/control.cu";
    for gpu in ARCHITECTURES {
        samples.push(build(&toolkit, control, "sm_75", gpu, Variant::Lines));
    }
    for (source, gpu, variant) in [
        (control, "sm_90", Variant::Debug),
        (control, "sm_90", Variant::Relocatable),
        ("lab/corpus/cuda/atomics.cu", "sm_90", Variant::Default),
        (
            "examples/sgemm_tile/sgemm_tile.cu",
            "sm_75",
            Variant::Limited,
        ),
        (
            "examples/sgemm_tile/sgemm_tile.cu",
            "sm_90",
            Variant::Limited,
        ),
        (
            "examples/sgemm_tile/sgemm_tile.cu",
            "sm_120",
            Variant::Limited,
        ),
    ] {
        samples.push(build(&toolkit, source, "sm_75", gpu, variant));
    }
    Some(samples)
}

/// Unoptimized builds with debug information, for every architecture.
pub fn unoptimized(test: &str) -> Option<Vec<Sample>> {
    let toolkit = require_toolkit(test)?;
    let mut samples = Vec::new();
    for source in ["control", "memory"] {
        let source = format!("lab/corpus/cuda/{source}.cu");
        for gpu in ARCHITECTURES {
            samples.push(build(&toolkit, &source, "sm_75", gpu, Variant::Debug));
        }
    }
    Some(samples)
}
