//! The library in a CUDA program by which its kernels are seen, replaced or tuned. What the program preloads (`preload`) opens
//! it.
//!
//! Every CUDA program reaches the driver through functions that it asks `dlsym` or `cuGetProcAddress` for;
//! [`door`] hands out our own in their place, [`wrapped`] lists them. What each does depends on `WARPWRIGHT`:
//!
//! * `with`: [`modules`] compares each loaded kernel's digest with the store of winners; [`launch`] launches the
//!   first of them whose guard holds for the launch, in its shape; [`params`] reads the parameters for that.
//! * `trace`: [`trace`] counts launches and times them with events; `trace+with` with the winners in place.
//! * `try`: [`trial`] runs candidates beside the original on the program's own data, compares all device memory and
//!   puts it back; [`memory`] knows that memory.
//!
//! What the program compiles while it runs has its PTX beside it ([`compilers`]).
//!
//! The program's own modules stay loaded: a winner is a second module beside them and only the handle in the launch
//! differs. A kernel that uses variables of its module has its winner in there, beside it ([`grafts`]). On any doubt the call goes through untouched and the reason is written
//! once to `WARPWRIGHT_LOG` ([`notes`]).
//!
//! Nothing of the program's comes in between ([`whole`], [`within`]). A program that forbids itself system calls has none of this
//! library's from then on.
//!
//! A program that has no memory left goes on without the library ([`reserve`]), and so does one whose functions have names that
//! the library calls ([`warpwright_linkage::captured`]).
//!
//! Unsafe code is allowed in this room: all of it calls C or is called from C.
#![allow(unsafe_code)]

mod abi;
mod compilers;
mod door;
mod driver;
mod functions;
mod grafts;
mod graph;
mod helpers;
mod launch;
mod memory;
mod mirrors;
mod modules;
mod notes;
mod params;
mod reserve;
mod state;
mod trace;
mod trial;
mod turns;
mod whole;
mod within;
mod wrapped;
