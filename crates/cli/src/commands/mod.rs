//! One file per command.

mod belongs;
pub mod bug;
pub mod check;
pub mod explain;
pub mod inplace;
pub mod launch;
pub mod measure;
mod naive_opt;
mod naive_tune;
pub mod nvcc;
pub mod occupancy;
pub mod opt;
mod own_run;
pub mod pass;
pub mod report;
pub mod rewrite;
pub mod run;
pub mod sass;
pub mod selftest;
pub mod stencil;
mod stencil_opt;
mod stencil_tune;
pub mod toolkit;
pub mod tune;
pub mod words;

pub use self::own_run::{BUDGET as OWN_BUDGET, FOR_RUN, Wanted};

use std::path::Path;

use crate::failure::Failure;
use crate::input::write_atomically;
use warpwright::source::quoted;

/// Behind `agrees … at 7 launches`: in how many of the comparisons that holds for every input.
fn for_every_input(proved: usize, compared: usize) -> String {
    match proved {
        0 => String::new(),
        all if all == compared => ", proved there".to_owned(),
        some => format!(", {some} of {compared} proved"),
    }
}

/// Prints a JSON document on stdout.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|e| Failure::Internal(format!("a document that is no JSON: {e}")))?;
    crate::terminal::json(&text);
    Ok(())
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
    write_atomically(place, page.as_bytes())
}
