//! One file per command.

pub mod bug;
pub mod check;
mod cuda;
pub mod explain;
pub mod inplace;
pub mod launch;
pub mod measure;
mod naive_opt;
pub mod nvcc;
pub mod occupancy;
pub mod opt;
pub mod pass;
pub mod report;
pub mod run;
pub mod sass;
pub mod selftest;
pub mod stencil;
mod stencil_opt;
mod stencil_tune;
pub mod toolkit;
pub mod tune;
pub mod words;

use crate::failure::Failure;

/// Prints a JSON document on stdout.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|e| Failure::Internal(format!("a document that is no JSON: {e}")))?;
    crate::terminal::json(&text);
    Ok(())
}
