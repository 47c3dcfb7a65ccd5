//! Stencils from source to source through the command line: both languages give a `.cu` with launch
//! code that nvcc takes, and what cannot be done is said.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpwright_toolkit::NvccJob;
use warpwright_toolkit::testing::require_toolkit;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/stencils")
        .join(name)
}

fn warpwright(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_warpwright");
    Command::new(program)
        .args(arguments)
        .output()
        .expect("it starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Optimizes an example into a folder; the file that was written.
fn optimize(folder: &Path, name: &str, more: &[&str]) -> PathBuf {
    let out = folder.join(format!("{}.out.cu", name.replace('.', "-")));
    let (input, path) = (example(name), out.display().to_string());
    let input = input.display().to_string();
    let arguments = [&["opt", &input, "-o", &path], more].concat();
    let output = warpwright(&arguments);
    assert!(output.status.success(), "{name}: {}", stderr(&output));
    out
}

#[test]
fn both_languages_become_cuda_with_launch_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let toolkit = require_toolkit("both_languages_become_cuda_with_launch_code");
    for name in ["2d25pt.stencil", "2d25pt.cu", "3d27pt.stencil"] {
        for more in [&[][..], &["--fp", "reassociate"]] {
            let out = optimize(folder.path(), name, more);
            let text = std::fs::read_to_string(&out).expect("it is written");
            assert!(text.contains("extern \"C\" cudaError_t"), "{text}");
            assert!(text.contains("<<<grid, block"), "{text}");
            if let Some(nvcc) = toolkit.as_ref().and_then(|t| t.nvcc().ok()) {
                let made = nvcc.to_ptx(&NvccJob::new(&out, "sm_90"));
                made.unwrap_or_else(|e| panic!("{name}: {e}"));
            }
        }
    }
}

#[test]
fn what_is_chosen_is_data_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("x.cu").display().to_string();
    let input = example("2d81pt.stencil").display().to_string();
    let output = warpwright(&["opt", &input, "-o", &out, "--json", "--grid", "N=1000"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!(document["schema"], "warpwright.stencil-opt/1");
    assert_eq!(document["sizes"][1], serde_json::json!(["N", 1000]));
    let chosen = document["chosen"].as_u64().expect("a choice") as usize;
    assert_eq!(document["versions"][chosen]["family"], "streamed");
}

#[test]
fn wrong_requests_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("x.cu");
    let path = out.display().to_string();
    let input = example("2d25pt.stencil").display().to_string();
    let wrong = [
        (
            vec!["opt", &*input, "-o", &*path, "--grid", "Q=5"],
            1,
            "has no size `Q`",
        ),
        (
            vec!["opt", &*input, "-o", &*path, "--grid", "N=0"],
            2,
            "is no size",
        ),
        (
            vec!["opt", &*input, "-o", &*path, "--gpu", "potato"],
            1,
            "potato",
        ),
        (
            vec!["opt", &*input, "-o", &*path, "--fp", "fast"],
            2,
            "fast",
        ),
    ];
    for (arguments, code, what) in wrong {
        let output = warpwright(&arguments);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains(what), "{}", stderr(&output));
        assert!(!out.exists(), "nothing is half-written");
    }
}
