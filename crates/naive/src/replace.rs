//! The input with generated kernels in it.
//!
//! The kernel keeps its name, its parameters and its text, and the rest of the file stays byte by byte
//! ([`warpwright_cudac::replace`]).

use warpwright_cudac::replace::{Insertion, Replaced, avoid, words};
use warpwright_cudac::{File, Header};

use crate::emit::{self, Generated, Names, NoLauncher};
use crate::ir::Kernel;

/// The file with these kernels in the place of one, and the names in it.
///
/// # Errors
/// The kernel cannot be launched in another way.
pub fn replaced(
    file: &File,
    header: &Header,
    kernel: &Kernel,
    generated: &Generated,
) -> Result<(Replaced, Names), NoLauncher> {
    let taken = words(&file.source.text);
    let names = Names::new(&kernel.name, &taken);
    let launcher = emit::launcher(kernel, generated, &names)?;
    // Macros of the file change every word that they are called, but those that the kernel itself uses.
    let own = words(&file.source.text[header.span.clone()]);
    let macros = file.macros.iter().map(|m| m.name.clone());
    let macros = macros.filter(|name| !own.contains(name)).collect();
    let text = avoid(&launcher.text, &macros);
    let launch = avoid(&launcher.launch, &macros);
    let copies = text.contains("__pipeline_");
    let has_header = file.source.text[..header.span.start].contains("<cuda_pipeline.h>");
    let insertion = Insertion {
        text: &text,
        attempt: &names.attempt(),
        launcher: &launch,
        header: (copies && !has_header).then_some("cuda_pipeline.h"),
        launch: &names.launch(),
        by_pointers: &launcher.by_pointers,
    };
    Ok((file.replaced(header, &insertion), names))
}
