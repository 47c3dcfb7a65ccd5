//! Kernels that are timed: what is tried for them, and what counts as won.
//!
//! Versions in CUDA C are timed alone, in programs made for that; candidates of a kernel in sessions that may run elsewhere.
//! Kernels of a program that runs are searched while it waits: the library inside (`inject`) times and compares, and who
//! started the program reads its notes and decides with what is here. What people see is the command line's.
//!
//! * [`alone`]: what the searches of [`naive`] kernels and of a [`stencil`] have in common.
//! * [`builds`]: the candidates of a kernel; [`session`]: their measurement.
//! * [`launches`]: at which launches; [`own_run`]: what a file's own program launches [without a GPU](no_gpu), with arguments
//!   that its code names; [`draft`]: the start of a description.
//! * [`program`]: the runs of a program; [`target`]: its hot kernels, and what came of each; [`candidates`]: what the pipeline
//!   proposes for one.
//! * [`search`]: what is tried next while the program waits; [`space`]: what all of it is.
//! * [`judge`]: what wins alone; [`weigh`]: what wins beside the program's other kernels.
//! * [`document`]: the result; [`kept`]: every build that was measured, for fits.
//! * [`store`]: winners, in and out; [`verify`]: those from elsewhere are proved; [`caches`]: PTX beside machine code in the
//!   caches of other tools.

pub mod alone;
mod belongs;
pub mod builds;
pub mod caches;
pub mod candidates;
pub mod document;
pub mod draft;
pub mod judge;
pub mod kept;
pub mod launches;
pub mod naive;
pub mod no_gpu;
mod own_args;
pub mod own_run;
pub mod program;
pub mod search;
pub mod session;
pub mod space;
pub mod stencil;
pub mod store;
pub mod target;
pub mod verify;
pub mod weigh;

use std::path::Path;

use warpwright_api::{Error, Unwatched, optimise};
use warpwright_target::Gpu;
use warpwright_toolkit::Toolkit;

/// How far some work is; it is over when this goes.
pub trait Bar: Sync {
    /// One part more is done.
    fn more(&self) {}

    /// What is being done.
    fn say(&self, _what: &str) {}

    /// A line beside it.
    fn note(&self, _line: &str) {}
}

impl Bar for Unwatched {}

/// Who tunes, and what they are told meanwhile.
pub trait Watch: Sync {
    /// Work begins that has so many parts, where that is known.
    fn bar(&self, _parts: Option<u64>, _what: &str) -> Box<dyn Bar + '_> {
        Box::new(Unwatched)
    }

    /// Progress, a line of it.
    fn tell(&self, _line: &str) {}

    /// A line on what went wrong; the work goes on.
    fn warn(&self, _line: &str) {}

    /// What ended the work on a kernel.
    fn failed(&self, _error: Error) {}

    /// What was measured is not in the database.
    fn unstored(&self, _error: Error) {}

    /// An error as people see it.
    fn shown(&self, error: Error) -> String {
        error.to_string()
    }

    /// There are no candidates of this kind (`PTX` or `machine code`) for a kernel.
    fn refused(&self, _kernel: &str, _of: &str, _error: Error) {}

    /// Has somebody asked the program, and with it the search, to end?
    fn is_asked_to_end(&self) -> bool {
        false
    }

    /// Who looks on while candidates of a kernel are built.
    fn building(&self) -> Box<dyn optimise::Watch + '_> {
        Box::new(Unwatched)
    }
}

/// What versions of a program's kernels are made with.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    /// Who is told.
    pub watch: &'a dyn Watch,
    /// What builds PTX, if there is one.
    pub toolkit: Option<&'a Toolkit>,
    /// Where the program runs.
    pub gpu: &'a Gpu,
    /// The folder with its modules.
    pub modules: &'a Path,
}

/// The name without its folder: result files travel.
pub(crate) fn last_part(file: &Path) -> String {
    file.file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}
