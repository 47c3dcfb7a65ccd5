//! What the filetests expect of liveness is what nvdisasm says: its life ranges of the same text.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use warpwright_driver::life_ranges::{Outcome, compare_cubin};
use warpwright_sass::text;
use warpwright_toolkit::testing::require_toolkit;

#[test]
fn nvdisasm_says_the_same_of_the_filetests() {
    let Some(toolkit) = require_toolkit("nvdisasm_says_the_same_of_the_filetests") else {
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/sass");
    let mut compared = 0;
    for folder in ["liveness", "operands"] {
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = file.unwrap().path();
            let cubin = text::assemble(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let limit = Duration::from_secs(60);
            let functions = compare_cubin(toolkit.nvdisasm().unwrap(), &cubin, limit);
            for function in functions.unwrap_or_else(|e| panic!("{}: {e}", path.display())) {
                let agrees = matches!(function.outcome, Outcome::Agrees { .. });
                assert!(agrees, "{}: {:?}", path.display(), function.outcome);
                compared += 1;
            }
        }
    }
    assert!(compared > 80, "only {compared} functions");
}
