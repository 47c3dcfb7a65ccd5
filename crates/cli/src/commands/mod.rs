//! One file per command.

pub mod bug;
pub mod check;
pub mod explain;
pub mod inplace;
pub mod launch;
pub mod measure;
mod naive_opt;
pub mod nvcc;
pub mod occupancy;
pub mod opt;
mod own;
pub mod pass;
pub mod report;
pub mod rewrite;
pub mod run;
pub mod sass;
pub mod selftest;
mod stencil_opt;
pub mod toolkit;
pub mod tune;
pub mod words;

use std::path::Path;

use crate::failure::Failure;
use warpwright::source::quoted;
use warpwright_files::write_atomically;

/// Prints a JSON document on stdout.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    crate::terminal::json(&json_text(document)?);
    Ok(())
}

/// A document as JSON.
pub fn json_text(document: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(document)
        .map_err(|e| Failure::Internal(format!("a document that is no JSON: {e}")))
}

/// Writes the page of a document, where one was asked for, with the command that made it.
pub fn write_page(place: Option<&Path>, document: &impl serde::Serialize) -> Result<(), Failure> {
    let Some(place) = place else { return Ok(()) };
    let internal = |e: &dyn std::fmt::Display| Failure::Internal(e.to_string());
    let mut json = serde_json::to_value(document).map_err(|e| internal(&e))?;
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words.map(|w| quoted(&w.to_string_lossy())).collect();
    json["command"] = format!("warpwright {}", words.join(" ")).into();
    let page = warpwright_report::page(&json).map_err(|e| internal(&e))?;
    Ok(write_atomically(place, page.as_bytes())?)
}
