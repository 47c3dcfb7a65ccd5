//! Tells the program which commit it was built from: that of a release build, where there is a repository.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=WARPWRIGHT_COMMIT");
    let stated = std::env::var("WARPWRIGHT_COMMIT").ok();
    // A development build would be made anew at each commit.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release {
        // The first changes with the branch, the second with every commit.
        println!("cargo:rerun-if-changed=../../.git/HEAD");
        println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    }
    let commit = stated.or_else(packaged);
    let commit = commit.or_else(|| is_release.then(head).flatten());
    let commit = commit.unwrap_or_else(|| "development build".to_owned());
    println!("cargo:rustc-env=WARPWRIGHT_COMMIT={commit}");
}

/// What `cargo package` writes beside the sources.
fn packaged() -> Option<String> {
    let text = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    let commit = rest.get(..10)?;
    Some(format!("commit {commit}"))
}

fn head() -> Option<String> {
    let git = Command::new("git")
        .args(["rev-parse", "--short=10", "HEAD"])
        .output()
        .ok()?;
    let text = String::from_utf8(git.stdout).ok()?;
    let commit = text.trim();
    (git.status.success() && !commit.is_empty()).then(|| format!("commit {commit}"))
}
