//! The committed result of the SASS corpus, and what the documentation says of it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use warpwright_corpus::sass::known::{GUARDED_WRITES, Known};
use warpwright_corpus::sass::results::{Results, in_page};

#[test]
fn the_page_shows_the_result_file() {
    let results = Results::load(&Results::path()).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/corpus/sass-results.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let expected = in_page(&page, &results.tables()).unwrap();
    if std::env::var_os("WARPWRIGHT_BLESS").is_some() {
        std::fs::write(&path, &expected).unwrap();
        return;
    }
    assert_eq!(
        page, expected,
        "run `warpwright-corpus sass … --summary lab/corpus/sass-results.md`"
    );
}

#[test]
fn the_corpus_is_large_and_every_promise_holds() {
    let results = Results::load(&Results::path()).unwrap();
    let all = results.total();
    assert_eq!(all.failures, [""; 0]);
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
fn every_explanation_explains_something() {
    let known = Known::load().unwrap();
    let live = Results::load(&Results::path()).unwrap().total().liveness;
    for (rule, what) in known.rules() {
        assert_eq!(rule, GUARDED_WRITES, "{what}");
        assert!(live.by_rule > 0, "nothing needs the rule {rule}: {what}");
    }
    let is_listed = known.rules().any(|(rule, _)| rule == GUARDED_WRITES);
    assert!(
        is_listed || live.by_rule == 0,
        "{GUARDED_WRITES} is not explained"
    );
    let listed: BTreeSet<&str> = known.reasons().collect();
    let used: BTreeSet<&str> = live.reasons.keys().map(String::as_str).collect();
    assert_eq!(listed, used);
}
