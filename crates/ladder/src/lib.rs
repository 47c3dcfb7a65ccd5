//! The rung of the ladder that the source compilers climb: a rewritten kernel against the one that was written, in the
//! PTX emulator at odd and tiny sizes; races in shared memory and accesses outside of arrays are faults.
//!
//! Both stand in one text, which nvcc compiles without fusing multiplications and additions: it may choose other pairs
//! in other texts. Every bit must be equal, except where sums were reordered with permission.
//!
//! What agrees there is compared on terms too, for every input of the same launches: what only numbers other than these
//! show, and races at any, are found.
//!
//! A source compiler says in [`Trial`]s what is launched; [`climb`] compiles, runs and compares.

mod climb;
mod emulated;
mod names;
mod terms;
mod variables;

use std::sync::Arc;

use serde::Serialize;
use warpwright_cudac::File;
use warpwright_cudac::diag::Source;

pub use climb::{Bounds, climb};
pub use emulated::symbol;
pub use variables::with_variables;

/// Makes PTX of a text, with nvcc's `-fmad=false`.
pub type Compile<'a> = dyn Fn(&str) -> Result<String, CompileError> + 'a;

/// Reads a text as the input was read: where headers, `-D` and `#if` count, with the preprocessor. `None`: it cannot be.
pub type Read<'a> = dyn Fn(Source) -> Option<File> + 'a;

/// What a comparison needs of its surroundings.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    /// Makes PTX of a text.
    pub compile: &'a Compile<'a>,
    /// Reads a changed copy of the input.
    pub read: &'a Read<'a>,
}

/// Reads a text that stands for itself.
pub fn read_alone(source: Source) -> Option<File> {
    File::parse(source).ok()
}

/// Why a text was not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// There is no compiler.
    Missing(String),
    /// It refuses the text.
    Rejected(String),
}

/// One grid: what both kernels are launched with.
#[derive(Clone, Debug)]
pub struct Trial {
    /// CUDA C++ in which both stand.
    pub text: Arc<str>,
    /// The sizes, by name.
    pub sizes: Vec<(String, i64)>,
    /// The file's constants were made smaller for it.
    pub is_shrunk: bool,
    /// The arrays that are compared, with what they hold at first.
    pub arrays: Vec<Array>,
    /// What they must hold in the end.
    pub original: Original,
    /// All that the rewrite may launch here.
    pub rewrites: Vec<Run>,
    /// Variables of the text that host code would set, such as arrays in constant memory, and what they hold.
    pub variables: Vec<(String, Vec<u8>)>,
}

/// An array.
#[derive(Clone, Debug)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Its elements.
    pub element: Element,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// How far a value may be from the original's where sums were reordered, over the largest magnitude.
    pub tolerance: f64,
}

/// An element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `float`
    Single,
    /// `double`
    Double,
    /// So many bytes, of which none may ever differ.
    Exact(usize),
}

/// Where the expected contents come from.
#[derive(Clone, Debug)]
pub enum Original {
    /// A run of the kernel as written.
    Run(Run),
    /// They are known, array by array.
    Known(Vec<Vec<u8>>),
}

/// Kernels one after the other, with the same arguments.
#[derive(Clone, Debug)]
pub struct Run {
    /// The kernels.
    pub launches: Vec<Launch>,
    /// What each is passed.
    pub arguments: Vec<Argument>,
    /// Memory between them, and what it holds at first; its numbers follow the arrays'.
    pub scratch: Vec<Vec<u8>>,
    /// Bytes by which every array misses a multiple of 256.
    pub offset: usize,
    /// Sums were reordered: values may differ by the arrays' tolerances.
    pub is_reordered: bool,
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The kernel's name in the text.
    pub kernel: String,
    /// Blocks.
    pub grid: [u64; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
}

/// What a kernel is passed. Numbers take the type that the kernel declares.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// The array of this number.
    Array(usize),
    /// A floating-point number.
    Real(f64),
    /// A whole number.
    Integer(i64),
    /// A structure by value: its members, and its alignment where it is more than theirs.
    Structure(Vec<Member>, Option<usize>),
    /// A pointer that is not used.
    Unused,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its type in a launch description, such as `s32`.
    pub ty: &'static str,
    /// Its value.
    pub value: Argument,
}

/// What agreed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Checked {
    /// The sizes, by name, of each comparison.
    pub sizes: Vec<Vec<(String, i64)>>,
    /// The kernels that ran.
    pub kernels: Vec<String>,
    /// The largest difference over the largest magnitude; 0 where bits had to be equal.
    pub distance: f64,
    /// Comparisons.
    pub compared: usize,
    /// Of these such in which both are the same for every input.
    pub proved: usize,
    /// The file's constants were made smaller for it.
    pub shrunk: bool,
}

/// An original that cannot be run on a grid: what the emulator says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotRun(pub String);

/// Why a rewrite is out; `R`: why it cannot take the original's place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fall<R> {
    /// The kernel cannot be replaced.
    #[error("the kernel cannot be replaced: {0}")]
    Refused(R),
    /// The compiler refuses it.
    #[error("it does not compile: {0}")]
    Compile(String),
    /// It does something wrong.
    #[error("`{kernel}` at {sizes:?}: {fault}")]
    Fault {
        /// The kernel.
        kernel: String,
        /// The sizes.
        sizes: Vec<(String, i64)>,
        /// What the emulator says.
        fault: String,
    },
    /// It computes something else.
    #[error(
        "`{kernel}` at {sizes:?}: element {element} of `{array}` is another one, \
         {distance:.1e} of the largest value away at worst"
    )]
    Differs {
        /// The kernel.
        kernel: String,
        /// The sizes.
        sizes: Vec<(String, i64)>,
        /// The array.
        array: String,
        /// The first element that differs.
        element: usize,
        /// How far its elements are from the original's at worst, over the largest magnitude.
        distance: f64,
    },
}

/// How far a rewrite got.
#[derive(Clone, Debug, PartialEq)]
pub enum Rung<R> {
    /// It agrees with the original.
    Agrees(Checked),
    /// It is out.
    Falls(Fall<R>),
    /// It was not compared: there is no compiler, or no small grid could be made.
    Unchecked(String),
}

impl<R> Rung<R> {
    /// The same with another type of refusals.
    pub fn refused<S>(self, of: impl FnOnce(R) -> S) -> Rung<S> {
        match self {
            Rung::Agrees(checked) => Rung::Agrees(checked),
            Rung::Unchecked(why) => Rung::Unchecked(why),
            Rung::Falls(fall) => Rung::Falls(match fall {
                Fall::Refused(refusal) => Fall::Refused(of(refusal)),
                Fall::Compile(why) => Fall::Compile(why),
                Fall::Fault {
                    kernel,
                    sizes,
                    fault,
                } => Fall::Fault {
                    kernel,
                    sizes,
                    fault,
                },
                Fall::Differs {
                    kernel,
                    sizes,
                    array,
                    element,
                    distance,
                } => Fall::Differs {
                    kernel,
                    sizes,
                    array,
                    element,
                    distance,
                },
            }),
        }
    }
}
