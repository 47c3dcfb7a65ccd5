//! How crates are compiled, where something rests on it.

use std::path::Path;

/// What a program preloads needs the C library alone: pieces that are compiled apart may call what unwinds panics, which is
/// in another library.
#[test]
fn what_is_preloaded_is_one_piece_in_each_profile() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let text = std::fs::read_to_string(manifest).expect("the workspace's manifest");
    for profile in ["dev", "release"] {
        for package in ["linkage", "preload"] {
            let head = format!("[profile.{profile}.package.warpwright-{package}]");
            let (_, section) = text.split_once(&head).expect(&head);
            let mut lines = section
                .lines()
                .skip(1)
                .take_while(|line| !line.starts_with('['));
            assert!(lines.any(|line| line == "codegen-units = 1"), "{head}");
        }
    }
}
