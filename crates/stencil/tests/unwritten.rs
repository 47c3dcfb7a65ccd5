//! What is understood of a stencil but written by no generator is refused by all of them: a kernel
//! without its border, or with another array than the file's, would compute something else.

#![allow(clippy::unwrap_used)]

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_stencil::evaluate::Sizes;
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::{emit, extract, stream};

fn read(name: &str) -> Stencil {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stencils/accepted/");
    let text = std::fs::read_to_string(format!("{folder}{name}.cu")).unwrap();
    let file = File::parse(Source::new(name, text)).unwrap();
    extract::extract(&file, &file.kernels[0]).unwrap()
}

#[test]
fn no_generator_drops_what_it_cannot_write() {
    let gpu = warpwright_target::lookup("h200").unwrap();
    for name in [
        "border-copied",
        "border-in-else",
        "border-by-return",
        "constant-memory",
    ] {
        let stencil = read(name);
        assert!(stencil.unwritten().is_some(), "{name}");
        let sizes: Sizes = stencil.parameters.values().map(|_| 512).collect();
        let parts = std::slice::from_ref(&stencil);
        assert!(
            emit::generate(parts, &emit::Options::default()).is_err(),
            "{name}"
        );
        let ranked = stream::search(&stencil, &gpu, &sizes, 1);
        assert!(ranked.is_err(), "{name}");
    }
    assert_eq!(read("grid-stride").unwritten(), None);
}
