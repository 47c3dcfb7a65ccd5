//! Which kernels of files are stencils, and what is in the way of the others.
//!
//! `cargo run -p warpwright-stencil --example survey -- FILE.cu… [-- NVCC OPTIONS]` prints a line for
//! each kernel: the file, the kernel, `stencil` or the code of the refusal, and the reason with its place.

use std::path::Path;
use std::sync::Arc;

use warpwright_cudac::diag::Source;
use warpwright_cudac::{File, marked};
use warpwright_stencil::extract;
use warpwright_toolkit::{FindOptions, NvccJob, Toolkit};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut parts = words.splitn(2, |word| word == "--");
    let files = parts.next().unwrap_or_default();
    let options = parts.next().unwrap_or_default();
    let toolkit = Toolkit::find(&FindOptions::default()).ok();
    for name in files {
        let path = Path::new(name);
        let Ok(bytes) = std::fs::read(path) else {
            println!("{name}\t-\tunreadable");
            continue;
        };
        let text: Arc<str> = String::from_utf8_lossy(&bytes).into();
        let source = Source::new(&**name, Arc::clone(&text));
        let mut job = NvccJob::new(path, "sm_90");
        job.extra = options.iter().map(Into::into).collect();
        let nvcc = toolkit.as_ref().and_then(|toolkit| toolkit.nvcc().ok());
        let output = nvcc.and_then(|nvcc| nvcc.preprocess(&job, &marked(&text)).ok());
        let copy = path.file_name().unwrap_or_default().to_string_lossy();
        let file = match output {
            Some(output) => File::parse_preprocessed(source, &format!("/{copy}"), &output),
            None => File::parse(source),
        };
        let Ok(file) = file else {
            println!("{name}\t-\ttoo large");
            continue;
        };
        let read = if file.is_preprocessed {
            ""
        } else {
            " (as it stands)"
        };
        for kernel in &file.kernels {
            let own = &kernel.name.text;
            match extract::extract(&file, kernel) {
                Ok(_) => println!("{name}\t{own}\tstencil{read}\t"),
                Err(problems) => {
                    let Some(problem) = problems.first() else {
                        continue;
                    };
                    let at = problem
                        .labels
                        .first()
                        .map_or(0, |(span, _)| span.start as usize);
                    let before = text.get(..at).unwrap_or("");
                    let line = before.matches('\n').count() + 1;
                    let (code, why) = (problem.code, &problem.message);
                    println!("{name}\t{own}\t{code}{read}\t{line}: {why}");
                }
            }
        }
    }
}
