//! A stand-in for the CUDA runtime (`libcudart.so`): a program that was built with `-cudart shared` finds it in
//! `LD_LIBRARY_PATH` in the runtime's place and runs without a GPU.
//!
//! Public functions of the runtime alone are answered, so nothing rests on what is undocumented ([`calls`]; those that
//! are not answered are [`refused`] by name). Device memory is host memory at addresses of the emulator's slots
//! ([`memory`]); each launch is recorded ([`record`]) and its kernel runs in the emulator as long as the budget lasts
//! ([`launch`]). From the first kernel that does not run on, none does, and the trace says up to which launch no
//! decision of the program can have rested on what was not computed.
//!
//! | variable | meaning |
//! |---|---|
//! | `WARPWRIGHT_DIR` | the folder for notes and modules |
//! | `WARPWRIGHT_GPU` | the GPU that is stood in for |
//! | `WARPWRIGHT_BUDGET` | seconds for kernels, counted in work |
//! | `WARPWRIGHT_MEMORY` | bytes that may be allocated |
//! | `WARPWRIGHT_CONTENTS` | bytes of what launches read that are kept |
//!
//! Unsafe code is allowed in this room: all of it is called from C, or hands memory to it.
#![allow(unsafe_code)]

mod abi;
mod again;
mod calls;
mod events;
mod graphs;
mod launch;
mod memory;
mod modules;
mod properties;
mod record;
mod refused;
mod state;
