//! The source level: CUDA C as people write it, and what can be done to it before nvcc sees it.
//!
//! [`stencil`] schedules the expressions of a stencil for registers and generates its kernels.

pub mod diag;
pub mod stencil;
pub mod syntax;

/// Runs one level of a recursion over nested input; the stack grows with the nesting, which the
/// parsers limit.
fn with_stack<T>(level: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 2 << 20, level)
}
