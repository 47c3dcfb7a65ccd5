//! The committed result of the SASS corpus, and what the documentation says of it.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use warpwright_corpus::sass::known::Known;
use warpwright_corpus::sass::results::{Results, in_page};

#[test]
fn the_page_shows_the_result_file() {
    let results = Results::load(&Results::path()).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sass.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let expected = in_page(&page, &results.tables()).unwrap();
    if std::env::var_os("WARPWRIGHT_BLESS").is_some() {
        std::fs::write(&path, &expected).unwrap();
        return;
    }
    assert_eq!(
        page, expected,
        "run `warpwright-corpus sass … --summary docs/sass.md`"
    );
}

#[test]
fn the_corpus_is_large_and_what_fails_is_listed() {
    let results = Results::load(&Results::path()).unwrap();
    let all = results.total();
    let listed = std::fs::read_to_string(Known::path()).unwrap();
    for failure in &all.failures {
        let function = failure.split(": ").nth(1).unwrap();
        let is_liveness = failure.contains("differences in liveness");
        assert!(
            is_liveness && listed.contains(&format!(" {function} ")),
            "{failure}"
        );
    }
    assert_eq!(all.cubins, all.identical);
    assert!(all.kernels >= 2_000, "{} kernels", all.kernels);
    assert!(
        all.instructions >= 1_000_000,
        "{} instructions",
        all.instructions
    );
    for sm in [75, 80, 86, 89, 90, 100, 120] {
        for ptxas in ["13.0", "13.5"] {
            let mut rows = results.rows.iter();
            assert!(
                rows.any(|row| (row.sm, &*row.ptxas) == (sm, ptxas)),
                "sm_{sm} {ptxas}"
            );
        }
    }
}

#[test]
fn the_explanations_can_be_read() {
    Known::load().unwrap();
}
