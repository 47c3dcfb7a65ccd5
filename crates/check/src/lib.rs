//! The independent checker: is one function a correct rewrite of another?

mod alike;
mod compare;
mod congruence;
mod execute;
mod facts;
mod fold;
mod foresee;
mod guided;
mod induction;
mod inflight;
mod integers;
mod known;
mod linear;
mod machine;
mod memory;
mod pieces;
mod product;
mod prove;
mod ptx;
mod quotient;
mod range;
mod report;
mod sass;
mod semantics;
mod slots;
mod spill;
mod state;
mod straight;
mod term;
mod together;
mod trace;
mod uniform;
mod verdict;
mod wholes;

pub use fold::{Comparison, Fold, IntOp};
pub use prove::check;
pub use ptx::{NEW_KERNEL, Options, check_functions, check_modules, signature};
pub use sass::{
    Answer, ControlFields, CubinOptions, Promises, Unjudged, answer, check_cubins, check_files,
    check_kernels, unprotected,
};
pub use semantics::{
    Access, Address, Arg, Base, Coordinate, Effect, Extend, Form, Guard, Meaning, Name, Part,
    Semantics, SlotSpace, Spaces, Split, Step, Unsupported, Variable,
};
pub use slots::Threads;
pub use verdict::{Cause, Reason, Refutation, Verdict};
