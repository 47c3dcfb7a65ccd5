//! The small corpus, built and checked as the command does it. The folder stays between runs, so that only
//! what has changed is compiled again.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use warpwright_corpus::build::{Index, build};
use warpwright_corpus::check::check_dir;
use warpwright_corpus::plan::{Extent, Sources, plan};
use warpwright_corpus::producers::{Kind, Options, find};
use warpwright_corpus::table::table;
use warpwright_toolkit::testing::require_toolkit;

/// Builds the sample of one producer below the target directory, checks it, and returns its kernels.
fn kernels(kind: &Kind, folder: &str) -> Result<u64, String> {
    let producer = find(kind, &Options::default())?;
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let producers = [producer];
    let jobs = plan(&producers, &Sources::of_repository(), Extent::Sample).unwrap();
    let failed = build(&dir, &producers, &jobs).unwrap();
    assert_eq!(failed, [], "everything compiles");
    Index::default().save(&dir).unwrap();
    let tallies = check_dir(&dir).unwrap();
    assert!(
        tallies.values().all(|t| t.is_good()),
        "{}",
        table(&tallies, None)
    );
    Ok(tallies.values().map(|t| t.kernels).sum())
}

#[test]
fn nvcc() {
    let Some(toolkit) = require_toolkit("corpus sample of nvcc") else {
        return;
    };
    let version = toolkit.nvcc().unwrap().tool().version().unwrap();
    let kind = Kind::Nvcc(format!("{}.{}", version.major, version.minor));
    let found = kernels(&kind, &format!("sample-{kind}")).unwrap();
    assert!(found > 700, "{found} kernels");
}

#[test]
fn clang() {
    match kernels(&Kind::Clang, "sample-clang") {
        Ok(found) => assert!(found > 40, "{found} kernels"),
        Err(reason) => eprintln!("SKIPPED corpus sample of clang: {reason}"),
    }
}
