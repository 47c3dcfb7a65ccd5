//! A kernel in CUDA C to a [`Stencil`].
//!
//! Goal: an ordinary kernel in which a thread computes one point, or a column of points in
//! sequential loops, from affine accesses, is the same stencil as its text in the compact language
//! (section 5 of Rawat et al., PPoPP 2018, says what their tool accepts; it needs pragmas around
//! the statements, this needs none).
//!
//! The kernel is executed symbolically: integers are polynomials in places of threads, loop counters
//! and sizes ([`affine`](warpwright_cudac::affine)). Then the accesses show how the arrays are laid
//! out and which dimension is which, and the stencil is built by the same [`Builder`](super::build)
//! as from the compact language.
//!
//! | file | |
//! |---|---|
//! | `machine.rs` | the state of the execution, and what it leaves behind |
//! | `statements.rs`, `value.rs`, `access.rs`, `call.rs`, `inline.rs` | statements, expressions, elements of arrays, functions |
//! | `guard.rs`, `branch.rs` | conditions bound the points; the border may do something simpler |
//! | `integers.rs` | whole numbers that are data |
//! | `edge.rs`, `ends.rs` | indices that are clamped or wrapped at the border |
//! | `choices.rs` | values that are chosen by the place of the point |
//! | `loops.rs`, `carried.rs` | loops over points and inside them; what a loop carries |
//! | `tile.rs`, `cover.rs` | tiles in shared memory, undone |
//! | `globals.rs`, `template.rs`, `pragma.rs` | what stands around the kernel |
//! | `live.rs`, `shape.rs`, `emit.rs` | from the trace to the stencil |
//! | `record.rs` | arguments that are structures |
//! | `mapping.rs` | which threads compute which points |
//!
//! Requires: a function of the subset that [`syntax`](warpwright_cudac) understands. Whatever is no
//! stencil is refused by name; nothing is ignored except unused variables and arguments.

mod access;
mod branch;
mod call;
mod carried;
mod choices;
mod cover;
mod edge;
mod emit;
mod ends;
mod globals;
mod guard;
mod inline;
mod integers;
mod live;
mod loops;
mod machine;
mod mapping;
mod pragma;
pub(crate) mod record;
mod shape;
mod statements;
mod template;
mod tile;
mod value;
mod window;

pub use mapping::{Along, mapping};

use super::ir::Stencil;
use warpwright_cudac::diag::Diagnostic;
use warpwright_cudac::{File, Header};

/// The kernels to look at: the one with a name, else those marked by `#pragma warpwright stencil`,
/// else the only one, else the only one that is a stencil.
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
        (true, kernels) => the_stencil(file, kernels).map(|kernel| vec![kernel]),
    }
}

/// All kernels to transform: as [`choose`], but every kernel of several that is a stencil.
pub fn choose_all(file: &File) -> Result<Vec<&Header>, Diagnostic> {
    choose(file, None).or_else(|problem| {
        let stencils = file.kernels.iter().filter(|k| extract(file, k).is_ok());
        let stencils: Vec<&Header> = stencils.collect();
        match stencils.is_empty() {
            true => Err(problem),
            false => Ok(stencils),
        }
    })
}

/// The one kernel of several that is a stencil.
fn the_stencil<'a>(file: &'a File, kernels: &'a [Header]) -> Result<&'a Header, Diagnostic> {
    let found: Vec<_> = kernels.iter().map(|k| (k, extract(file, k))).collect();
    let mut stencils = found.iter().filter(|(_, stencil)| stencil.is_ok());
    let (first, second) = (stencils.next(), stencils.next());
    if let (Some((only, _)), None) = (first, second) {
        return Ok(only);
    }
    let (what, wanted) = match first {
        Some(_) => ("several kernels that are stencils", true),
        None => ("several kernels, none of which is a stencil", false),
    };
    let what = format!("`{}` has {what}", file.source.name);
    let mut problem = Diagnostic::error("stencil::kernel", what);
    for (kernel, stencil) in &found {
        match stencil {
            Ok(_) => problem = problem.label(kernel.name.span.clone(), "a stencil"),
            Err(reasons) if !wanted => {
                let reason = reasons.first().map_or("refused", |r| &*r.message);
                problem = problem.label(kernel.name.span.clone(), reason.to_owned());
            }
            Err(_) => {}
        }
    }
    Err(problem.help("name one with `--kernel`, to transform it or to see what is in its way"))
}

/// Does the text mark a kernel as a stencil? A pragma that is not understood is an error.
pub fn is_marked(file: &File, kernel: &Header) -> Result<bool, Diagnostic> {
    pragma::of(file, kernel).map(|pragma| pragma.is_some())
}

/// What the kernel as written is an instance of, if it is a template: by parameter, whether it is a type, its name, and
/// what it is there.
pub fn instance(file: &File, kernel: &Header) -> Result<Vec<(bool, String, String)>, Diagnostic> {
    let bound = template::bind(file, kernel)?;
    let bound = bound.into_iter().map(|(name, bound)| match bound {
        machine::Bound::Type(ty) => (true, name, ty),
        machine::Bound::Value(value) => (false, name, warpwright_cudac::print::expr(&value)),
    });
    Ok(bound.collect())
}

/// The stencil that a kernel computes.
pub fn extract(file: &File, kernel: &Header) -> Result<Stencil, Vec<Diagnostic>> {
    let one = |problem| vec![problem];
    let pragma = pragma::of(file, kernel).map_err(one)?;
    if kernel.is_member {
        let what =
            "a kernel inside something else, or of a template of this kind, is not understood";
        let problem = Diagnostic::error("stencil::template", what);
        return Err(one(problem.label(kernel.name.span.clone(), "this kernel")));
    }
    if let Some(problem) = file.is_ambiguous(kernel) {
        return Err(one(problem));
    }
    let bound = template::bind(file, kernel).map_err(one)?;
    let function = file.kernel(kernel).map_err(one)?;
    let trace = machine::run(file, &function, bound).map_err(one)?;
    let shape = shape::find(&trace).map_err(one)?;
    emit::build(&function, &trace, &shape, pragma.as_ref())
}
