//! What passes prove, `check` proves: on the filetests' kernels, and with `WARPWRIGHT_AGREEMENT=DIR` on all PTX below a
//! folder, such as the corpus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warpwright_fuzz::agreement::{Count, count};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "ptx") {
            found.push(path);
        }
    }
}

#[test]
fn what_passes_prove_check_proves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    match std::env::var("WARPWRIGHT_AGREEMENT") {
        Ok(folder) => files(Path::new(&folder), &mut paths),
        Err(_) => {
            for part in ["filetests/check", "filetests/pass", "filetests/run"] {
                files(&root.join(part), &mut paths);
            }
            // Wrong rewrites of one kernel are hardly other kernels.
            paths.retain(|path| {
                let name = path
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned());
                name.is_some_and(|name| !name.starts_with("wrong-"))
            });
        }
    }
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a text");
        count(&path.to_string_lossy(), &text, &mut counts);
    }
    let (mut apart, mut claimed) = (Vec::new(), 0);
    for (recipe, count) in counts {
        let Count {
            claimed: own,
            agreed,
            unproved,
            apart: others,
        } = count;
        let open = unproved.len();
        println!("{recipe}: {own} proved by the pass, {agreed} by check; {open} not by the pass");
        for why in unproved {
            println!("    {}", why.lines().next().unwrap_or_default());
        }
        claimed += own;
        apart.extend(others);
    }
    assert!(apart.is_empty(), "{}", apart.join("\n"));
    assert!(claimed >= 300, "the test runs dry: {claimed}");
}
