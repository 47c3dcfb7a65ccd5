//! Which threads compute which points in the kernel as written.

use super::{machine, shape, template};
use warpwright_cudac::affine::Symbol;
use warpwright_cudac::diag::Diagnostic;
use warpwright_cudac::{File, Header};

/// Where the points along a dimension of the stencil come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// The thread at `blockIdx * blockDim + threadIdx` of an axis (0: x) computes the point `shift` further.
    Threads {
        /// The axis.
        axis: u8,
        /// From the thread's place to the point's.
        shift: i64,
    },
    /// The block at `blockIdx` of an axis computes the points `shift` further.
    Blocks {
        /// The axis.
        axis: u8,
        /// From the block's place to the point's.
        shift: i64,
    },
    /// A loop goes through all of them, whatever the launch.
    Loop,
}

/// By dimension, outermost first: the way of the kernel as written. `None`: a way that a launch cannot be
/// compared with.
pub fn mapping(file: &File, kernel: &Header) -> Result<Option<Vec<Along>>, Diagnostic> {
    let bound = template::bind(file, kernel)?;
    let function = file.kernel(kernel)?;
    let trace = machine::run(file, &function, bound)?;
    let shape = shape::find(&trace)?;
    let along = |&(symbol, shift): &(Symbol, i64)| match symbol {
        Symbol::Global(axis) => Some(Along::Threads { axis, shift }),
        Symbol::BlockIdx(axis) => Some(Along::Blocks { axis, shift }),
        Symbol::Loop(_) => Some(Along::Loop),
        _ => None,
    };
    Ok(shape.dims.iter().map(along).collect())
}
