//! Scripts that judge results have tests of their own.

use std::path::Path;
use std::process::Command;

/// What is compared with a device's launches: differences are found.
#[test]
fn the_comparison_of_launches_finds_what_differs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("python3")
        .args(["-B", "-m", "unittest"])
        .arg("bench/no_gpu_programs/test_agree.py")
        .current_dir(root)
        .output()
        .expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
