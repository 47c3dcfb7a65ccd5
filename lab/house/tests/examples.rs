//! docs/adding-a-pass.md and docs/adding-a-gpu.md tell the truth: the files that they name are there, and the code
//! that they show is theirs.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The page, the files that it names with a path, and those that show some of its code.
fn hold(page: &str, least: usize, more: &[&str]) {
    let page = std::fs::read_to_string(root().join(page)).unwrap();
    let is_file = |word: &&str| {
        let ours = ["crates/", "lab/", "filetests/"];
        let name = word.rsplit('/').next().unwrap_or_default();
        ours.iter().any(|folder| word.starts_with(folder)) && name.contains('.')
    };
    let files: Vec<&str> = page.split('`').filter(is_file).collect();
    assert!(files.len() >= least, "{files:?}");
    let texts = files.iter().chain(more).map(|file| {
        let text = std::fs::read_to_string(root().join(file));
        text.unwrap_or_else(|error| panic!("{file}: {error}"))
    });
    // Line breaks are the formatter's.
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let texts: Vec<String> = texts.map(|text| flat(&text)).collect();
    let blocks = page.split("```rust\n").skip(1);
    for block in blocks.filter_map(|block| block.split("```").next()) {
        let is_there = texts.iter().any(|text| text.contains(&flat(block)));
        assert!(is_there, "no file has this:\n{block}");
    }
}

#[test]
fn the_passes_are_what_the_page_shows() {
    hold("docs/adding-a-pass.md", 9, &["crates/pass/src/throttle.rs"]);
}

#[test]
fn the_gpu_is_what_the_page_shows() {
    hold("docs/adding-a-gpu.md", 3, &[]);
}
