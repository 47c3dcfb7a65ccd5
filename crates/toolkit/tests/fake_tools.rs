//! Tools that misbehave, played by shell scripts: each fault is its own error, and nothing is left behind.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use warpwright_toolkit::{FindOptions, NotFound, NvccJob, PtxasJob, ToolError, Toolkit};

fn script(dir: &Path, name: &str, body: &str) {
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A toolkit directory with one script, and a separate directory for temporary files that scripts can see
/// through `TMPDIR`'s parent.
fn fake(name: &str, body: &str) -> (TempDir, Toolkit) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("bin")).unwrap();
    script(&dir.path().join("bin"), name, body);
    let options = FindOptions {
        explicit_dir: Some(dir.path().to_path_buf()),
    };
    let toolkit = Toolkit::find(&options).unwrap();
    (dir, toolkit)
}

fn run(body: &str, timeout: Duration) -> Result<(), ToolError> {
    let (dir, toolkit) = fake(
        "ptxas",
        &format!("echo \"$TMPDIR\" > \"$0.tmpdir\"\n{body}"),
    );
    let mut job = PtxasJob::new(".version 8.0\n", "sm_90");
    job.timeout = timeout;
    let result = toolkit.ptxas().unwrap().run(&job).map(drop);
    let used = fs::read_to_string(dir.path().join("bin/ptxas.tmpdir")).unwrap();
    assert!(
        !Path::new(used.trim()).exists(),
        "the temporary directory is gone"
    );
    result
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn an_explicit_toolkit_without_ptxas_is_an_error() {
    let (_dir, toolkit) = fake("nvcc", "exit 0");
    let error = toolkit.ptxas().unwrap_err();
    assert!(
        matches!(error, ToolError::Missing { named: Some(_), .. }),
        "{error:?}"
    );
    assert!(error.is_tool_missing());
    assert!(
        error.to_string().contains("warpwright toolkit install"),
        "{error}"
    );
    assert!(toolkit.nvcc().is_ok());
}

#[test]
fn an_explicit_directory_without_tools_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ptxas"), "not executable").unwrap();
    let explicit_dir = Some(dir.path().to_path_buf());
    let error = Toolkit::find(&FindOptions { explicit_dir }).unwrap_err();
    assert!(
        matches!(
            error,
            NotFound::Named {
                origin: "--toolkit",
                ..
            }
        ),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("warpwright toolkit install"),
        "{error}"
    );
}

#[test]
fn a_hanging_ptxas_is_stopped_with_its_children() {
    let start = Instant::now();
    let error = run("sleep 1000 & sleep 1000", Duration::from_millis(300)).unwrap_err();
    assert!(matches!(error, ToolError::Timeout { .. }), "{error:?}");
    assert!(
        start.elapsed() < LONG,
        "its children do not keep the pipes open"
    );
}

#[test]
fn children_left_behind_do_not_delay_the_result() {
    let start = Instant::now();
    let error = run("sleep 1000 & exit 3", LONG).unwrap_err();
    assert!(
        matches!(error, ToolError::Rejected { code: 3, .. }),
        "{error:?}"
    );
    assert!(start.elapsed() < LONG);
}

#[test]
fn garbage_is_not_taken_for_a_cubin() {
    let write = |what: &str| format!("for last; do :; done; {what} > \"$last\"");
    for (body, reason) in [
        ("true".to_owned(), "wrote no cubin"),
        (write("echo garbage"), "8 bytes that it wrote are no cubin"),
        (write("cat /bin/sh"), "are no cubin"),
    ] {
        let error = run(&body, LONG).unwrap_err();
        assert!(matches!(error, ToolError::Garbage { .. }), "{error:?}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn a_crash_names_the_signal() {
    let error = run("kill -SEGV $$", LONG).unwrap_err();
    assert!(
        matches!(error, ToolError::Signal { signal: 11, .. }),
        "{error:?}"
    );
}

#[test]
fn a_refusal_carries_what_was_said() {
    let error = run("echo 'ptxas fatal   : No' >&2; exit 255", LONG).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ptxas refused its input (exit code 255): error: No"
    );
    assert!(error.is_input_error());
    let error = run("exit 9", LONG).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ptxas refused its input (exit code 9): it said nothing"
    );
}

#[test]
fn floods_of_output_do_not_block() {
    let error = run(
        "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; exit 1",
        LONG,
    );
    assert!(matches!(error, Err(ToolError::Rejected { log, .. }) if log.len() == 6_000_000));
}

#[test]
fn a_program_that_cannot_be_started() {
    let (dir, toolkit) = fake("ptxas", "exit 0");
    fs::write(dir.path().join("bin/ptxas"), "#!/no/such/interpreter\n").unwrap();
    let error = toolkit
        .ptxas()
        .unwrap()
        .run(&PtxasJob::new("", "sm_90"))
        .unwrap_err();
    assert!(matches!(error, ToolError::Spawn { .. }), "{error:?}");
    assert!(error.is_tool_missing());
}

#[test]
fn a_version_that_is_none() {
    let (_dir, toolkit) = fake("ptxas", "echo hello");
    let error = toolkit.ptxas().unwrap().tool().version().unwrap_err();
    assert!(matches!(error, ToolError::Garbage { .. }), "{error:?}");
}

#[test]
fn architectures_are_checked_before_anything_runs() {
    let (_dir, toolkit) = fake("ptxas", "exit 0");
    for gpu in ["", "h200", "sm_", "sm_90 -o /tmp/x", "sm_a", "--help"] {
        let error = toolkit
            .ptxas()
            .unwrap()
            .run(&PtxasJob::new("", gpu))
            .unwrap_err();
        assert!(
            matches!(error, ToolError::BadRequest(_)),
            "{gpu}: {error:?}"
        );
    }
}

#[test]
fn nvcc_on_a_file_that_is_not_there() {
    let (_dir, toolkit) = fake("nvcc", "exit 0");
    let job = NvccJob::new(Path::new("/no/such/file.cu"), "sm_90");
    let error = toolkit.nvcc().unwrap().to_ptx(&job).unwrap_err();
    assert!(matches!(error, ToolError::Io { .. }), "{error:?}");
}
