//! For tests of all crates: use the toolkit where there is one, and say loudly where there is none.

use std::path::Path;

use crate::error::ToolError;
use crate::find::{FindOptions, Toolkit};
use crate::nvcc::NvccJob;

/// Set to `1`, a test that would be skipped for want of a tool fails instead.
pub const REQUIRE_VARIABLE: &str = "WARPWRIGHT_REQUIRE_TOOLKIT";

/// The toolkit for the test `name`, or `None` after printing that the test is skipped.
///
/// # Panics
/// There is no toolkit, and [`REQUIRE_VARIABLE`] is set.
pub fn require_toolkit(name: &str) -> Option<Toolkit> {
    let found = Toolkit::find(&FindOptions::default());
    found.map_err(|e| skip(name, &e.to_string())).ok()
}

/// PTX of a text for sm_90 without fused multiplications and additions, as the emulator compares kernels.
///
/// # Errors
/// There is no nvcc, or it refuses the text.
pub fn unfused_ptx(toolkit: &Toolkit, text: &str) -> Result<String, ToolError> {
    let mut job = NvccJob::new(Path::new("text.cu"), "sm_90");
    job.lineinfo = false;
    job.extra.push("-fmad=false".into());
    Ok(toolkit.nvcc()?.text_to_ptx(text, &job)?.ptx)
}

/// Skips the test `name` for the given reason.
///
/// # Panics
/// [`REQUIRE_VARIABLE`] is set.
pub fn skip(name: &str, reason: &str) {
    let required = std::env::var_os(REQUIRE_VARIABLE).is_some_and(|v| !v.is_empty() && v != "0");
    assert!(
        !required,
        "{name} must not be skipped ({REQUIRE_VARIABLE} is set): {reason}"
    );
    eprintln!("SKIPPED {name}: {reason}");
}
