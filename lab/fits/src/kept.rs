//! Files of `tune --keep`: every build that was measured inside a program.

use std::path::Path;

use warpwright_autotune::kept::{Build, Document, Kernel, Told};

use crate::judge::OF;
use crate::records::Row;

/// Reads a file.
///
/// # Errors
/// It cannot be read, or is of another version.
pub fn read(path: &Path) -> Result<Document, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(path)?;
    Document::parse(&text).map_err(|why| format!("`{}`: {why}", path.display()).into())
}

/// Its time over the original's, if it is right: at the second launch where it was timed there, since what is timed
/// there was chosen by the first.
pub fn ratio(build: &Build) -> Option<f64> {
    let [first, second] = build.ratios;
    second.or(first).filter(|_| build.outcome == Told::Same)
}

/// Rows of the builds that are for all launches of their kernel as they are: what a choice chooses among. The file's path
/// stands for the program.
///
/// # Errors
/// See [`read`].
pub fn rows(path: &Path, split: &str) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let program = path.with_extension("").display().to_string();
    let document = read(path)?;
    let rows = document.kernels.iter();
    Ok(rows
        .flat_map(|kernel| of_kernel(kernel, &program, split))
        .collect())
}

fn of_kernel(kernel: &Kernel, program: &str, split: &str) -> Vec<Row> {
    let figures = kernel.code.as_ref().and_then(|code| code.figures.clone());
    // Of the first launch, where all builds were timed.
    let (Some(figures), Some(ns)) = (figures, kernel.ns[0]) else {
        return Vec::new();
    };
    let [x, y, z] = kernel.launch.grid;
    let name = kernel.name.as_ref().unwrap_or(&kernel.digest);
    let default = Row {
        program: program.to_owned(),
        split: split.to_owned(),
        kernel: format!("{name} at {x},{y},{z} where {}", kernel.among),
        build: "default".to_owned(),
        grid: kernel.launch.grid,
        block: kernel.launch.block,
        ns,
        noise: 1.0,
        figures,
    };
    let is_for_all = |b: &&Build| b.guard == "always" && b.launch == kernel.launch;
    let all = kernel.builds.iter().filter(is_for_all);
    let built = all.filter(|b| b.outcome == Told::Same).filter_map(|b| {
        Some(Row {
            program: default.program.clone(),
            split: default.split.clone(),
            kernel: default.kernel.clone(),
            build: format!("{}{OF}{}", b.recipe, b.of),
            ns: ns * b.ratios[0]?,
            figures: b.code.as_ref()?.figures.clone()?,
            ..default
        })
    });
    let built: Vec<Row> = built.collect();
    std::iter::once(default).chain(built).collect()
}
