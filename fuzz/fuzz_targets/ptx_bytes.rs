//! Any bytes: the parser gives a module and diagnostics that can be rendered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpwright_ptx::Module;

fuzz_target!(|bytes: &[u8]| {
    let (module, diagnostics) = Module::parse_bytes("fuzz.ptx", bytes);
    for diagnostic in &diagnostics {
        assert!(!diagnostic.render(&module).is_empty());
    }
});
