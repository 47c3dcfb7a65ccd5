//! The library that programs preload (`LD_PRELOAD`), and whatever they start: a few pages that need no other library than
//! the C library, which every program has. Most of what is started never asks for the driver, and is to run where there is little
//! memory, no file may be opened, or system calls are forbidden.
//!
//! What asks for the driver, through [`door`], opens the library `inject` that does the work; where that is not to be had, the
//! program runs alone.
//!
//! What a program starts has this library as well, if it can open it (`children`). A program that forbids itself system calls
//! has none of ours from then on (`sealed`).
//!
//! No panic is compiled into this crate, nothing is allocated, and hardly anything called.
//!
//! Unsafe code is allowed in this room: all of it calls C or is called from C.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod children;
#[cfg(target_arch = "x86_64")]
mod closed;
mod door;
mod exported;
#[cfg(target_arch = "x86_64")]
mod folder;
#[cfg(target_arch = "x86_64")]
mod foreign;
mod holes;
mod inside;
mod pending;
#[cfg(target_arch = "x86_64")]
mod room;
#[cfg(target_arch = "x86_64")]
mod sealed;
#[cfg(target_arch = "x86_64")]
mod ways;

// The standard library's tables of unwinding name this function, and it everything that a panic needs: nothing here unwinds.
std::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    ".long 0",
);
