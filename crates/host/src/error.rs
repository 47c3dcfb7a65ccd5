//! Why a kernel's launch has no description.

use warpwright_cudac::diag::{Diagnostic, Source};
use warpwright_pass::names::source_name;
use warpwright_target::LaunchError;

/// Why a kernel's launch has no description.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Of all these kernels none is named, or not one alone.
    #[error("{count} kernels are meant", count = .found.len())]
    NotOne {
        /// The file's name.
        file: String,
        /// The name that was asked for.
        wanted: Option<String>,
        /// The kernels that it is for, by their symbols.
        found: Vec<String>,
        /// All of the file.
        all: Vec<String>,
    },
    /// A kernel's head is no CUDA C that is understood.
    #[error("the head of a kernel is not understood")]
    Syntax(Box<Diagnostic>, Source),
    /// The same, without a place.
    #[error("the head of `{0}` is not understood")]
    Head(String),
    /// A kernel has no definition in a file.
    #[error(
        "the definition of `{}` is not found in `{file}`: it stands in a header, or is not understood; write the \
         description by hand (docs/launch.md)", source_name(.symbol)
    )]
    NotFound {
        /// The kernel.
        symbol: String,
        /// The file's name.
        file: String,
    },
    /// A parameter is nothing that a description has.
    #[error("parameter `{name}` {why}")]
    Parameter {
        /// Its name.
        name: String,
        /// Why not.
        why: Strange,
    },
    /// No block of the GPU is so large.
    #[error(transparent)]
    Impossible(#[from] LaunchError),
    /// The emulator has nothing to try.
    #[error("no description to try")]
    NoDraft,
}

/// Why no description has a parameter; types are those that are written.
#[derive(Debug, thiserror::Error)]
pub enum Strange {
    /// Its type.
    #[error("is of a type that is not understood: write its table by hand (docs/launch.md)")]
    Type,
    /// A texture or a surface.
    #[error(
        "is a `{0}`: no launch description has one; `opt` and `explain` need none, `trace` sees it in your program"
    )]
    Texture(String),
    /// A structure with pointers to what is not understood.
    #[error(
        "is of type `{0}`, which holds pointers to what is not understood: write its table by hand (docs/launch.md)"
    )]
    Pointers(String),
    /// A pointer to structures with pointers.
    #[error(
        "points to `{0}`, which holds pointers: a launch description has pointers in parameters alone"
    )]
    Deep(String),
    /// Bytes with pointers.
    #[error(
        "is a `{0}`, which is not understood and holds pointers: write its table by hand (docs/launch.md)"
    )]
    Bytes(String),
}

impl Strange {
    /// Of the parameter of this name.
    pub(crate) fn of(self, name: &str) -> Error {
        let (name, why) = (name.to_owned(), self);
        Error::Parameter { name, why }
    }
}
