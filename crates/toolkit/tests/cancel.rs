//! An interruption: alone in its file, because it holds for the rest of the process.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use warpwright_toolkit::{FindOptions, PtxasJob, ToolError, Toolkit, shut_down};

#[test]
fn shutting_down_ends_running_tools_and_removes_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let (script, mark) = (dir.path().join("ptxas"), dir.path().join("tmpdir"));
    // The mark appears by renaming, so that it is never seen half written.
    let text = format!(
        "#!/bin/sh\necho \"$TMPDIR\" > {0}.new; mv {0}.new {0}\nsleep 1000\n",
        mark.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let explicit_dir = Some(dir.path().to_path_buf());
    let toolkit = Toolkit::find(&FindOptions { explicit_dir }).unwrap();
    let ptxas = toolkit.ptxas().unwrap();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| ptxas.run(&PtxasJob::new("", "sm_90")));
        while !mark.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let used = std::fs::read_to_string(&mark).unwrap();
        assert!(Path::new(used.trim()).is_dir());
        shut_down();
        assert!(
            !Path::new(used.trim()).exists(),
            "gone when shut_down returns"
        );
        assert!(matches!(
            running.join().unwrap(),
            Err(ToolError::Cancelled { .. })
        ));
    });
    let later = ptxas.run(&PtxasJob::new("", "sm_90"));
    assert!(
        matches!(later, Err(ToolError::Cancelled { .. })),
        "nothing starts any more"
    );
}
