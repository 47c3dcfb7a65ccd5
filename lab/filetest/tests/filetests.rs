//! All files under `filetests/`, one test each.

use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
    warpwright_filetest::run_all(warpwright_filetest::commands::all(), &root).exit();
}
