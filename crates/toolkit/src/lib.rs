//! Find, install and run nvcc, ptxas and nvdisasm; parse what they print; cache builds by content.
//!
//! With [`find`](Toolkit::find) comes a [`Toolkit`]; from it come the typed wrappers [`Ptxas`], [`Nvcc`],
//! [`Nvdisasm`] and [`Cuobjdump`], each a function from a job to a value. What the tools print is parsed by
//! the pure functions of [`resources`] and [`diagnostic`]. [`BuildCache`] stands in front of ptxas.
//!
//! Every run has a time limit, uses a private temporary directory, and leaves no file and no process
//! behind, whatever becomes of it.

pub mod diagnostic;
pub mod life_ranges;
pub mod resources;

mod cache;
mod cubin;
mod cuobjdump;
mod dirs;
mod environment;
mod error;
mod find;
mod install;
mod nvcc;
mod nvdisasm;
mod private;
mod process;
mod program;
mod ptxas;
mod renamed;
mod scratch;
#[doc(hidden)]
pub mod testing;
mod tool;

pub use cache::BuildCache;
pub use cuobjdump::{Cuobjdump, EmbeddedFile};
pub use diagnostic::{Diagnostic, Severity};
pub use dirs::{CACHE_VARIABLE, cache_dir};
pub use error::{NO_CACHE, NotFound, REMEDY, ToolError};
pub use find::{FindOptions, TOOLKIT_VARIABLE, Toolkit};
pub use install::{InstallError, InstallOptions, Installed, Progress, install, installable};
pub use nvcc::{Nvcc, NvccJob, NvccOutput, files_read};
pub use nvdisasm::Nvdisasm;
pub use private::PrivateFolder;
pub use process::{Invocation, Output, cancel_all, shut_down};
pub use program::{Program, run_program};
pub use ptxas::{Build, Ptxas, PtxasJob};
pub use resources::{FunctionKind, KernelResources, ModuleResources};
pub use tool::{Origin, PATIENCE_VARIABLE, Tool, ToolKind, Version, patience};

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
