//! docs/adding-a-pass.md tells the truth: the files that it names are there, and the code that it shows is theirs.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_worked_examples_are_what_the_page_shows() {
    let page = std::fs::read_to_string(root().join("docs/adding-a-pass.md")).unwrap();
    let is_path = |word: &&str| word.contains('/') && word.contains('.') && !word.contains(' ');
    let files: Vec<&str> = page.split('`').filter(is_path).collect();
    assert!(files.len() > 8, "{files:?}");
    let texts = files.iter().map(|file| {
        let text = std::fs::read_to_string(root().join(file));
        text.unwrap_or_else(|error| panic!("{file}: {error}"))
    });
    let mut texts: Vec<String> = texts.collect();
    let more = ["crates/pass/src/throttle.rs"];
    texts.extend(more.map(|file| std::fs::read_to_string(root().join(file)).unwrap()));
    // Line breaks are the formatter's.
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let texts: Vec<String> = texts.iter().map(|text| flat(text)).collect();
    let blocks = page.split("```rust\n").skip(1);
    for block in blocks.filter_map(|block| block.split("```").next()) {
        let is_there = texts.iter().any(|text| text.contains(&flat(block)));
        assert!(is_there, "no file has this:\n{block}");
    }
}
