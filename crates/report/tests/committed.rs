//! The tables in README and docs are what `report --plan bench/tables.json` writes from the committed result
//! files, and no kernel is called held out that a decision was made on.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use warpwright_report::results::Suite;
use warpwright_report::tables::{Plan, Seen};

fn read(name: &str) -> std::io::Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(name))
}

fn plan() -> Plan {
    Plan::parse("bench/tables.json", &read("bench/tables.json").unwrap()).unwrap()
}

#[test]
fn tables_are_what_the_committed_results_say() {
    for (file, text) in plan().files(&read).unwrap() {
        assert!(
            read(&file).unwrap() == text,
            "{file} is not what bench/tables.sh writes"
        );
    }
}

#[test]
fn every_kernel_that_a_decision_names_was_measured() {
    let text = read("bench/results/h200-2026-11-22-suite.json").unwrap();
    let suite: Suite = serde_json::from_str(&text).unwrap();
    let measured: Vec<&str> = suite
        .kernels
        .iter()
        .map(|k| k.report.name.as_str())
        .collect();
    for decision in plan().decisions {
        let Seen::Some(kernels) = decision.kernels else {
            continue;
        };
        for kernel in kernels {
            assert!(measured.contains(&&*kernel), "{}: {kernel}", decision.what);
        }
    }
}
