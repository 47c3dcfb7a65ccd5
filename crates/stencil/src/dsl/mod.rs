//! The compact language for stencils: `.stencil` files.
//!
//! Goal: the language of listing 1 of Rawat et al. (PPoPP 2018), read into a [`Stencil`] and
//! printed from one. docs/stencils.md is the guide for users.
//!
//! Beyond the listing: temporaries (`double t = …;`), `+=` and `-=`, constants (`double c = 0.5;`
//! at the top level), sizes with a constant added (`double u[N+4]`), components (`u[2][k][j][i]`),
//! several functions and calls, functions of CUDA's mathematical library, and `reassociate;`.
//!
//! Margins are not written: a point is computed if all its neighbours exist.

mod ast;
mod lex;
mod lower;
mod parse;
mod print;
#[cfg(test)]
mod tests;

pub use print::{literal, print};

use super::ir::Stencil;
use warpwright_cudac::diag::Diagnostic;

/// Reads a `.stencil` file.
pub fn parse(text: &str) -> Result<Stencil, Vec<Diagnostic>> {
    let program = parse::parse(text).map_err(|problem| vec![problem])?;
    lower::lower(&program)
}
