//! What a store of winners survives.

use std::fs;
use warpwright_winners::{LaunchClass, RecordError, Store, StoreError, Winner};

fn winner(kernel: &str, gpu: &str, grid: u32) -> Winner {
    Winner {
        kernel: kernel.repeat(32),
        gpu: gpu.into(),
        class: LaunchClass::new([grid, 1, 1], [256, 1, 1], 0, [0; 3]).expect("a grid"),
        symbol: "k".into(),
        recipe: "spill-to-shared".into(),
        proof: "machine code".into(),
        original_ns: 2000,
        winner_ns: 1000,
        driver: "580.1".into(),
        date: "2026-11-22".into(),
        cubin: vec![7; 1000],
    }
}

#[test]
fn winners_are_found_by_kernel_and_gpu() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path().join("not/yet"));
    assert!(store.keys().expect("empty").is_empty());
    let all = [
        winner("aa", "H200", 1),
        winner("aa", "H200", 1000),
        winner("aa", "A100", 1),
        winner("bb", "H200", 1),
    ];
    for one in &all {
        store.put(one).expect("written");
        store.put(one).expect("written again");
    }
    assert_eq!(store.all().expect("read").len(), 4);
    assert_eq!(store.keys().expect("read").len(), 2);
    let found = store.of_kernel(&all[0].kernel, "H200").expect("read");
    assert_eq!(found.len(), 2);
    assert!(found.contains(&all[0]) && found.contains(&all[1]));
    let other = Store::at(folder.path().join("other"));
    assert_eq!(
        other
            .import(&store.export().expect("exported"))
            .expect("imported"),
        4
    );
    assert_eq!(
        other.export().expect("exported"),
        store.export().expect("exported")
    );
}

#[test]
fn a_truncated_file_is_no_winner_and_no_failure() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path());
    let (good, cut) = (winner("aa", "H200", 1), winner("bb", "H200", 1));
    store.put(&good).expect("written");
    let path = store.put(&cut).expect("written");
    let bytes = fs::read(&path).expect("read");
    fs::write(&path, &bytes[..bytes.len() / 2]).expect("cut");
    fs::write(folder.path().join("x.winner"), "hello").expect("written");
    let errors: Vec<_> = store
        .all()
        .expect("read")
        .into_iter()
        .filter_map(|e| e.winner.err())
        .collect();
    assert_eq!(errors, [RecordError::Cut, RecordError::Foreign]);
    assert!(
        store
            .of_kernel(&cut.kernel, "H200")
            .expect("read")
            .is_empty()
    );
    assert_eq!(store.of_kernel(&good.kernel, "H200").expect("read"), [good]);
    let export = store.export().expect("exported");
    let damaged = [&export[..], b"x"].concat();
    let other = Store::at(folder.path().join("other"));
    assert!(matches!(
        other.import(&damaged),
        Err(StoreError::Export { number: 2, .. })
    ));
    assert!(other.all().expect("read").is_empty());
}

#[test]
fn many_writers_leave_whole_records() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path());
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..20 {
                    let mut one = winner("aa", "H200", 1);
                    one.cubin = vec![writer; 10_000 + round];
                    store.put(&one).expect("written");
                    let seen = store.all().expect("read");
                    assert!(seen.iter().all(|entry| entry.winner.is_ok()));
                }
            });
        }
    });
    let left: Vec<_> = fs::read_dir(folder.path()).expect("read").collect();
    assert_eq!(left.len(), 1);
}

/// Records of this version stand beside those of a later one, which stay as they are, and beside facts that are not
/// known here.
#[test]
fn records_of_other_versions_live_side_by_side() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path());
    let (own, later) = (winner("aa", "H200", 1), winner("bb", "H200", 1));
    store.put(&own).expect("written");
    let path = store.put(&later).expect("written");
    let text = fs::read(&path).expect("read");
    let head = text.iter().position(|&b| b == b'\n').expect("a head");
    let first = String::from_utf8(text[..head].to_vec()).expect("text");
    let changed = first.replacen(" 1 ", " 2 ", 1).into_bytes();
    let changed = [&changed[..], &text[head..]].concat();
    fs::write(&path, &changed).expect("written");
    let found = store.all().expect("read");
    let later = found.iter().find(|e| e.path == path).expect("listed");
    assert_eq!(later.winner, Err(RecordError::Later(2)));
    assert_eq!(store.of_kernel(&own.kernel, "H200").expect("read"), [own]);
    assert!(
        store
            .of_kernel(&"bb".repeat(32), "H200")
            .expect("read")
            .is_empty()
    );
    store.export().expect("exported");
    assert_eq!(fs::read(&path).expect("read"), changed);
}

/// A file in the place of the folder is as good as a full disk: writing fails.
#[test]
fn what_cannot_be_written_is_an_error_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    fs::write(folder.path().join("file"), "").expect("written");
    let store = Store::at(folder.path().join("file"));
    assert!(matches!(
        store.put(&winner("aa", "H200", 1)),
        Err(StoreError::Io { .. })
    ));
}
