//! Scripts that judge results have tests of their own.

use std::path::Path;
use std::process::Command;

/// What is compared with a device's launches: differences are found.
#[test]
fn the_comparison_of_launches_finds_what_differs() {
    passes("bench/no_gpu_programs/test_agree.py");
}

/// What a campaign makes of the times of programs.
#[test]
fn campaigns_compare_runs_in_turns() {
    passes("bench/foreign/test_inplace.py");
}

fn passes(tests: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("python3")
        .args(["-B", "-m", "unittest", tests])
        .current_dir(root)
        .output()
        .expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
