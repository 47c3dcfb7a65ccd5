//! Launch descriptions: how to run a kernel, independent of any host program.
//!
//! A TOML file names the kernel, the grid and block, and every argument with its type, shape and
//! initial contents; `docs/launch.md` describes the format. The emulator, the GPU runner and the
//! static model all start from the [`Launch`] that such a file resolves to at one of its sizes:
//!
//! ```
//! use warpwright_launch::{LaunchFile, no_files};
//!
//! let text = r#"
//!     kernel = "scale"
//!     [sizes.small]
//!     n = 1000
//!     [launch]
//!     grid = ["ceil_div(n, 256)"]
//!     block = [256]
//!     [[args]]
//!     name = "n"
//!     type = "s32"
//!     value = "n"
//!     [[args]]
//!     name = "x"
//!     type = "f32"
//!     shape = ["n"]
//!     init = { kind = "uniform", low = -1.0, high = 1.0 }
//!     output = true
//! "#;
//! let launch = LaunchFile::parse(text, "scale.toml")?.resolve("small", &[])?;
//! assert_eq!((launch.grid, launch.block_threads()), ([4, 1, 1], 256));
//! let x = launch.args[1].points_to().map(|of| &launch.memory[of]);
//! assert_eq!(x.map(|x| x.materialize(&no_files)).transpose()?.map(|bytes| bytes.len()), Some(4000));
//! # Ok::<(), warpwright_launch::LaunchError>(())
//! ```
//!
//! Beside it stand what is known of launches ([`Facts`]), for which launches a version of a kernel is right
//! ([`Guard`]), and what they become for it ([`Shape`], [`Version`]).
//!
//! Nothing here reads a file or touches a device: text and bytes in, values out. The same
//! description gives the same bytes on every machine.

mod alike;
mod compare;
mod element;
mod error;
mod expr;
mod facts;
mod file;
mod generate;
mod guard;
mod init;
mod launch;
mod made;
mod npy;
mod resolve;
mod resolve_init;
mod schema;
mod shape;
mod values;
mod version;

pub use compare::{Comparison, Tolerance, compare};
pub use element::ElemType;
pub use error::LaunchError;
pub use expr::{Expr, ExprError, Op};
pub use facts::{Allocation, Facts, Known, Parts, Source};
pub use file::LaunchFile;
pub use generate::Generator;
pub use guard::{
    CNames, CompiledGuard, Condition, Disjoint, Extent, Guard, GuardError, GuardProblem, Named,
    PtxGuard, PtxNames, Quantity, Set, Signature,
};
pub use init::{ContentsError, FileFormat, Init, no_files};
pub use launch::{Arg, Buffer, Launch, Pointer, Table};
pub use made::{Made, mark};
pub use npy::{Npy, NpyError, read_npy, write_npy};
pub use schema::{ArgTable, InitTable, OneOrMany};
pub use shape::{Extents, NoShape, Shape};
pub use values::{Field, LaunchValues, Packed, ParamBytes};
pub use version::Version;
