//! A kernel in CUDA C to a [`Stencil`].
//!
//! Goal: an ordinary kernel in which a thread computes one point, or a column of points in
//! sequential loops, from affine accesses, is the same stencil as its text in the compact language
//! (section 5 of Rawat et al., PPoPP 2018, says what their tool accepts; it needs pragmas around
//! the statements, this needs none).
//!
//! The kernel is executed symbolically: integers are polynomials in places of threads, loop
//! counters and sizes (`poly.rs`); conditions bound the points (`guard.rs`); floating-point
//! statements are collected (`execute.rs`, `value.rs`). Then the accesses show how the arrays are
//! laid out and which dimension is which (`shape.rs`), and the stencil is built by the same
//! [`Builder`](super::build) as from the compact language (`emit.rs`).
//!
//! Requires: a function of the subset that [`syntax`](warpwright_cudac) understands. Whatever is no
//! stencil is refused by name; nothing is ignored except unused variables and arguments.

mod emit;
mod execute;
mod guard;
mod inline;
mod poly;
mod pragma;
mod shape;
mod value;

use super::ir::Stencil;
use warpwright_cudac::diag::Diagnostic;
use warpwright_cudac::{File, Header};

/// The kernels to look at: the one with a name, else those marked by `#pragma warpwright stencil`,
/// else the only one.
pub fn choose<'a>(file: &'a File, name: Option<&str>) -> Result<Vec<&'a Header>, Diagnostic> {
    let all = || {
        let names: Vec<&str> = file.kernels.iter().map(|k| &*k.name.text).collect();
        format!("it has {}", names.join(", "))
    };
    if let Some(name) = name {
        let found = file.kernels.iter().find(|k| k.name.text == name);
        return found.map(|k| vec![k]).ok_or_else(|| {
            let what = format!("`{}` has no kernel `{name}`", file.source.name);
            let problem = Diagnostic::error("stencil::kernel", what);
            if file.kernels.is_empty() {
                problem
            } else {
                problem.help(all())
            }
        });
    }
    let mut marked = Vec::new();
    for kernel in &file.kernels {
        if is_marked(file, kernel)? {
            marked.push(kernel);
        }
    }
    match (marked.is_empty(), file.kernels.as_slice()) {
        (false, _) => Ok(marked),
        (true, [only]) => Ok(vec![only]),
        (true, []) => {
            let what = format!("`{}` has no kernel", file.source.name);
            Err(Diagnostic::error("stencil::kernel", what))
        }
        (true, _) => {
            let what = format!("`{}` has several kernels", file.source.name);
            Err(Diagnostic::error("stencil::kernel", what).help(format!(
                "{}; mark the stencil with `#pragma warpwright stencil`",
                all()
            )))
        }
    }
}

/// Does the text mark a kernel as a stencil? A pragma that is not understood is an error.
pub fn is_marked(file: &File, kernel: &Header) -> Result<bool, Diagnostic> {
    pragma::of(file, kernel).map(|pragma| pragma.is_some())
}

/// The stencil that a kernel computes.
pub fn extract(file: &File, kernel: &Header) -> Result<Stencil, Vec<Diagnostic>> {
    let one = |problem| vec![problem];
    let pragma = pragma::of(file, kernel).map_err(one)?;
    if kernel.nested {
        let what = "a template is several kernels; only one can be understood";
        let problem = Diagnostic::error("stencil::template", what);
        return Err(one(problem.label(kernel.name.span.clone(), "this kernel")));
    }
    let function = file.kernel(kernel).map_err(one)?;
    let trace = execute::run(file, &function).map_err(one)?;
    let shape = shape::find(&trace).map_err(one)?;
    emit::build(&function, &trace, &shape, pragma.as_ref())
}
