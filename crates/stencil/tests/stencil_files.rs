//! Kernels and texts that are accepted, with the stencil that they are, and such that are refused,
//! with what is said about them: one file each under `stencils/`.
//!
//! What is expected stands in comments behind the line `// expect:`. `WARPWRIGHT_BLESS=1` rewrites
//! it; read the difference before you commit it.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use warpwright_cudac::File;
use warpwright_cudac::diag::{Diagnostic, Source, render_all};
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::{dsl, extract};

const MARK: &str = "// expect:\n";

fn read(source: &Source) -> Result<Stencil, Vec<Diagnostic>> {
    if source.name.ends_with(".stencil") {
        return dsl::parse(&source.text);
    }
    let file = File::parse(source.clone()).map_err(|problem| vec![problem])?;
    let kernels = extract::choose(&file, None).map_err(|problem| vec![problem])?;
    extract::extract(&file, kernels[0])
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/stencils")
        .join(folder);
    let entries = folder.read_dir().unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Compares, or rewrites, all files of a folder; `say` turns a file into what is expected.
fn compare(folder: &str, say: impl Fn(&Source) -> Result<String, String>) {
    let mut wrong = String::new();
    for path in files(folder) {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let program = text.split(MARK).next().unwrap();
        let said = match say(&Source::new(name, program)) {
            Ok(said) => said,
            Err(problem) => {
                let _ = writeln!(wrong, "{name}: {problem}");
                continue;
            }
        };
        let lines = said.lines().map(|line| format!("// {line}"));
        let lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
        let expected = format!("{program}{MARK}{}\n", lines.join("\n"));
        if text == expected {
            continue;
        }
        if std::env::var_os("WARPWRIGHT_BLESS").is_some() {
            std::fs::write(&path, expected).unwrap();
        } else {
            let _ = writeln!(wrong, "{name}:\n{said}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn accepted() {
    compare("accepted", |source| match read(source) {
        Err(problems) => Err(render_all(&problems, source)),
        Ok(stencil) => {
            let margins = stencil.dims.values().map(|dim| {
                let (name, low, high) = (&dim.name, dim.low, dim.high);
                format!("{name}: {low} and {high} cells are not computed\n")
            });
            Ok(format!(
                "{}{}",
                margins.collect::<String>(),
                dsl::print(&stencil)
            ))
        }
    });
}

#[test]
fn refused() {
    compare("refused", |source| match read(source) {
        Err(problems) => Ok(render_all(&problems, source)),
        Ok(stencil) => Err(format!("accepted:\n{}", dsl::print(&stencil))),
    });
}
