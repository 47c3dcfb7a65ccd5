//! What holds for every text, damaged or not; shared by the tests and the fuzz targets.

use warpwright_flow::{Cfg, Liveness, Pressure};
use warpwright_ptx::print::canonical;
use warpwright_ptx::verify::diagnose;
use warpwright_ptx::{Diagnostic, Edits, Module, check as structure};

/// Panics unless `text` is printed back, covered, and stable in its canonical form.
pub fn check(text: &str) {
    let (module, diagnostics) = Module::parse("fuzz.ptx", text);
    assert_eq!(module.print().as_deref(), Ok(text));
    assert_eq!(structure::coverage(&module), Ok(()), "{text}");
    assert_eq!(Edits::new(&module).apply().as_deref(), Ok(text));
    if diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    let (again, errors) = Module::parse("canonical.ptx", &canonical(&module));
    let errors: Vec<_> = errors.iter().filter(|d| d.is_error()).collect();
    assert!(
        errors.is_empty(),
        "{}\n{errors:?}\n{text}",
        canonical(&module)
    );
    assert_eq!(structure::same(&module, &again), Ok(()), "{text}");
    let _: Vec<Diagnostic> = diagnose(&module);
    for func in module.functions.keys() {
        let Some(view) = module.view(func) else {
            continue;
        };
        let cfg = Cfg::new(&view);
        let liveness = Liveness::new(&view, &cfg);
        let _: u32 = Pressure::new(&view, &cfg, &liveness).max();
    }
}
