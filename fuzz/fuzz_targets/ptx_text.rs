//! Text behind a header: the properties that the tests check too.
#![no_main]

#[path = "../../crates/ptx/tests/properties/mod.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    properties::check(text);
    properties::check(&format!(".version 8.0\n.target sm_90\n.entry k()\n{{\n{text}"));
});
