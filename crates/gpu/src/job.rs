//! What a worker needs to run variants of one kernel: the launch, resolved to bytes and files.
//!
//! A [`Job`] crosses the process boundary as JSON; bulk data (initial contents, reference outputs,
//! images) lies in files in the job's folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use warpwright_launch::Table;

use crate::fault::{Fault, FaultKind};

/// Grid, block and shared memory of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Blocks (in blocks, also with clusters).
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Blocks per cluster, if launched with clusters.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory, bytes per block.
    pub dynamic_smem: u32,
}

impl Shape {
    /// Threads per block.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }
}

/// One parameter of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// The parameter's bytes, zero where a pointer stands.
    pub bytes: Vec<u8>,
    /// The pointers in it.
    pub pointers: Vec<Pointer>,
}

/// A pointer into a buffer, as a part of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    /// Its first byte in the parameter.
    pub at: usize,
    /// Index into [`Job::buffers`].
    pub buffer: usize,
    /// Offset in bytes from the buffer's start.
    pub offset: u64,
}

/// Memory with initial contents: what a parameter points to, or a module variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// Name of the argument, or of the variable in the module.
    pub name: String,
    /// Size in bytes.
    pub bytes: usize,
    /// Element type as PTX names it (`f32`, `u8`, …).
    pub element: String,
    /// File with the initial contents.
    pub file: PathBuf,
    /// Its elements are pointers to parts of another buffer, whatever the file has.
    pub table: Option<Table>,
    /// True for a `__device__` or `__constant__` variable: it lies in the module.
    pub symbol: bool,
    /// True if its contents after the launch are a result.
    pub output: bool,
    /// True if nothing is to be read from it before the kernel has written it; such a buffer is
    /// not restored between timed launches.
    pub unwritten: bool,
    /// The pointer lies `offset` bytes after a multiple of `align` bytes.
    pub align: usize,
    /// See `align`.
    pub offset: usize,
    /// Largest accepted difference from the default build's result, for variants that do not
    /// promise identical bits: absolute and relative part. `None`: not one bit.
    pub tolerance: Option<(f64, f64)>,
}

impl Buffer {
    /// Where the data starts in an allocation at `base`, leaving `margin` bytes free before it.
    pub(crate) fn start(&self, base: u64, margin: usize) -> usize {
        let align = self.align.max(1) as u64;
        ((base + margin as u64).div_ceil(align) * align - base) as usize + self.offset
    }
}

/// A kernel launch, ready for the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Kernel name that variants have unless they say otherwise.
    pub kernel: String,
    /// Grid and block that variants have unless they say otherwise.
    pub shape: Shape,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// What the parameters point to, in their order, then module variables.
    pub buffers: Vec<Buffer>,
    /// Folder of the files.
    pub dir: PathBuf,
}

impl Job {
    /// Size in bytes of what one launch needs of its own: all buffers without module variables.
    pub fn footprint(&self) -> u64 {
        self.buffers
            .iter()
            .filter(|b| !b.symbol)
            .map(|b| b.bytes as u64)
            .sum()
    }

    /// Where the default build's result for a buffer lies.
    pub fn reference_file(&self, buffer: usize) -> PathBuf {
        self.dir.join(format!("reference-{buffer}.bin"))
    }
}

/// What a recipe promises about results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// The same bits as the default build.
    Bitwise,
    /// Within the tolerance that the launch description states.
    Tolerance,
}

/// A kernel's machine code (or PTX).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Image {
    /// In a file.
    File(PathBuf),
    /// In memory; written to the job's folder before it goes to a worker.
    Bytes(Vec<u8>),
}

impl Image {
    /// The bytes, read from the file if need be.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self) -> Result<std::borrow::Cow<'_, [u8]>, Fault> {
        match self {
            Image::Bytes(bytes) => Ok(bytes.into()),
            Image::File(path) => Ok(read(path)?.into()),
        }
    }
}

/// One way to build and launch the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Unique within a session; reports use it.
    pub id: String,
    /// Cubin, fat binary or PTX.
    pub image: Image,
    /// Kernel name, if it differs from the job's.
    pub kernel: Option<String>,
    /// Grid and block, if they differ from the job's.
    pub shape: Option<Shape>,
    /// Share of the SM's memory to prefer for shared memory, in percent; left to the driver if
    /// absent (`CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`).
    pub carveout: Option<u8>,
    /// What its results are compared by.
    pub promise: Promise,
    /// Time it to the end, whatever its rank: what a report wants to compare.
    #[serde(default)]
    pub keep: bool,
}

impl Variant {
    /// A variant with the job's own kernel name and launch shape that promises identical bits.
    pub fn new(id: impl Into<String>, image: Image) -> Self {
        Variant {
            id: id.into(),
            image,
            kernel: None,
            shape: None,
            carveout: None,
            promise: Promise::Bitwise,
            keep: false,
        }
    }
}

/// Images that are in memory go to files of the job's folder, where a worker finds them.
pub(crate) fn in_files(job: &Job, variants: &[Variant]) -> Result<Vec<Variant>, Fault> {
    let mut out = variants.to_vec();
    for (index, variant) in out.iter_mut().enumerate() {
        if let Image::Bytes(bytes) = &variant.image {
            let path = job.dir.join(format!("image-{index}.bin"));
            write(&path, bytes)?;
            variant.image = Image::File(path);
        }
    }
    Ok(out)
}

/// Reads a file; the error is the input's.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    std::fs::read(path).map_err(|e| {
        Fault::new(
            FaultKind::Input,
            format!("cannot read {}: {e}", path.display()),
        )
    })
}

/// Writes a file; the error is the input's.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    std::fs::write(path, bytes).map_err(|e| {
        Fault::new(
            FaultKind::Input,
            format!("cannot write {}: {e}", path.display()),
        )
    })
}
