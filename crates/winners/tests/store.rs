//! What a store of winners survives.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{AtFlags, CWD, Gid, Uid, chown, chownat};
use warpwright_winners::aside::Aside;
use warpwright_winners::{
    Exposure, Kept, LaunchClass, RecordError, Shape, Standing, Store, StoreError, Winner, export,
};

fn winner(kernel: &str, gpu: &str, grid: u32) -> Winner {
    Winner {
        kernel: kernel.repeat(32),
        gpu: gpu.into(),
        guard: LaunchClass::new([grid, 1, 1], [256, 1, 1], 0, [0; 3])
            .expect("a grid")
            .guard(),
        shape: Shape::SAME,
        symbol: "k".into(),
        recipe: "spill-to-shared".into(),
        proof: "machine code".into(),
        original_ns: 2000,
        winner_ns: 1000,
        driver: "580.1".into(),
        date: "2026-11-22".into(),
        standing: Standing::Measured,
        cubin: vec![7; 1000],
    }
}

/// The winners for a kernel on a GPU.
fn of_kernel(store: &Store, kernel: &str, gpu: &str) -> Vec<Winner> {
    let index = store.index().expect("read");
    let all = store.of(&index, kernel).into_iter();
    all.filter(|winner| winner.gpu == gpu).collect()
}

#[test]
fn winners_are_found_by_kernel_and_gpu() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path().join("not/yet"));
    assert!(store.index().expect("empty").is_empty());
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
    assert_eq!(store.index().expect("read").kernels(), 2);
    let found = of_kernel(&store, &all[0].kernel, "H200");
    assert_eq!(found.len(), 2);
    assert!(found.contains(&all[0]) && found.contains(&all[1]));
    let other = Store::at(folder.path().join("other"));
    assert_eq!(
        other
            .import(&store.export().expect("exported"), Standing::Trusted)
            .expect("imported")
            .len(),
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
    assert!(of_kernel(&store, &cut.kernel, "H200").is_empty());
    assert_eq!(
        of_kernel(&store, &good.kernel, "H200"),
        std::slice::from_ref(&good)
    );
    let export = store.export().expect("exported");
    let other = Store::at(folder.path().join("other"));
    let damaged = [&export[..], b"x"].concat();
    assert!(matches!(
        other.import(&damaged, Standing::Trusted),
        Err(StoreError::Head(RecordError::Followed))
    ));
    // The form of before: records and nothing else.
    let records = [&good.to_bytes()[..], b"x"].concat();
    assert!(matches!(
        other.import(&records, Standing::Trusted),
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
    let changed = first.replacen(" 2 ", " 3 ", 1).into_bytes();
    let changed = [&changed[..], &text[head..]].concat();
    fs::write(&path, &changed).expect("written");
    let found = store.all().expect("read");
    let later = found.iter().find(|e| e.path == path).expect("listed");
    assert_eq!(later.winner, Err(RecordError::Later(3)));
    assert_eq!(of_kernel(&store, &own.kernel, "H200"), [own]);
    assert!(of_kernel(&store, &"bb".repeat(32), "H200").is_empty());
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

/// Permissions of a path.
fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
}

/// Wherever it is cut, an export is taken as a whole or not at all.
#[test]
fn exports_are_whole() {
    let all = ["aa", "bb", "cc"].map(|kernel| winner(kernel, "H200", 1));
    let export = export::to_bytes(&all);
    assert_eq!(export::winners(&export).expect("an export"), all);
    for end in 1..export.len() {
        assert!(export::winners(&export[..end]).is_err(), "{end}");
        let mut bad = export.clone();
        bad[end] ^= 1;
        assert!(export::winners(&bad).is_err(), "{end}");
    }
    // The right digest over another number of records, and over numbers that are written otherwise.
    for (sign, line) in [
        ("", "records 3"),
        ("", "records +1"),
        ("", "records 01"),
        ("+", "records 1"),
    ] {
        let odd = [line.as_bytes(), b"\n", &all[0].to_bytes()].concat();
        let digest = warpwright_winners::sha256(&odd);
        let head = format!("warpwright-export 1 {sign}{} {digest}\n", odd.len());
        let odd = export::winners(&[head.as_bytes(), &odd].concat());
        assert!(
            matches!(odd, Err(StoreError::Head(RecordError::Damaged))),
            "{sign}{line}"
        );
    }
    let text = String::from_utf8_lossy(&export).replacen(" 1 ", " 2 ", 1);
    let later = export::winners(text.as_bytes());
    assert!(matches!(later, Err(StoreError::LaterExport(2))));
    // What versions before this form wrote.
    let before = all.iter().flat_map(Winner::to_bytes);
    let before = before.collect::<Vec<u8>>();
    assert_eq!(export::winners(&before).expect("an export"), all);
}

/// What comes from elsewhere has a file of its own and is not used until something here has looked at it.
#[test]
fn imported_winners_wait() {
    let folder = tempfile::tempdir().expect("folder");
    let (from, store) = (
        Store::at(folder.path().join("from")),
        Store::at(folder.path().join("to")),
    );
    let mut foreign = winner("aa", "H200", 1);
    foreign.standing = Standing::Proved;
    from.put(&foreign).expect("written");
    let export = from.export().expect("exported");
    store.import(&export, Standing::Imported).expect("imported");
    assert!(store.index().expect("read").is_empty());
    assert!(of_kernel(&store, &foreign.kernel, "H200").is_empty());
    let entry = store.all().expect("read").remove(0);
    let waiting = entry.winner.expect("a winner");
    assert_eq!(waiting.standing, Standing::Imported);
    let empty = store.export().expect("exported");
    assert_eq!(export::winners(&empty).expect("an export"), []);
    // Under the name of one that is used it is none all the same.
    let renamed = entry.path.with_extension("winner");
    fs::copy(&entry.path, &renamed).expect("copied");
    assert!(of_kernel(&store, &foreign.kernel, "H200").is_empty());
    fs::remove_file(renamed).expect("removed");
    let proved = Winner {
        standing: Standing::Proved,
        ..waiting
    };
    store.promote(&entry.path, &proved).expect("promoted");
    assert!(!entry.path.exists());
    assert_eq!(of_kernel(&store, &foreign.kernel, "H200"), [proved]);
}

/// What is better stays, whatever comes.
#[test]
fn no_better_winner_is_replaced() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path());
    let timed = |ns, standing| Winner {
        winner_ns: ns,
        standing,
        ..winner("aa", "H200", 1)
    };
    let own = timed(1500, Standing::Measured);
    store.put(&own).expect("written");
    let lying = timed(1, Standing::Trusted);
    let kept = store.keep(&lying).expect("looked at");
    assert!(matches!(kept, Kept::Better(_)));
    assert_eq!(
        of_kernel(&store, &own.kernel, "H200"),
        std::slice::from_ref(&own)
    );
    let slower = timed(1600, Standing::Measured);
    assert!(matches!(store.keep(&slower), Ok(Kept::Better(_))));
    let faster = timed(1400, Standing::Measured);
    assert!(matches!(store.keep(&faster), Ok(Kept::Written(_))));
    // Another driver: what was measured before says nothing.
    let later = Winner {
        driver: "590".into(),
        ..timed(1900, Standing::Measured)
    };
    assert!(matches!(store.keep(&later), Ok(Kept::Written(_))));
    assert_eq!(of_kernel(&store, &own.kernel, "H200"), [later]);
    // Two of an export for the same launches: the faster one.
    let other = Store::at(folder.path().join("other"));
    let export = [
        timed(1700, Standing::Measured).to_bytes(),
        timed(1200, Standing::Measured).to_bytes(),
        timed(1800, Standing::Measured).to_bytes(),
    ];
    let kept = other.import(&export.concat(), Standing::Trusted);
    let written = kept.expect("imported").into_iter();
    assert_eq!(written.filter(|k| matches!(k, Kept::Written(_))).count(), 2);
    let left = of_kernel(&other, &own.kernel, "H200");
    assert_eq!((left.len(), left[0].winner_ns), (1, 1200));
}

/// Two files for the same launches are ordered by time, whatever they are called; narrower guards come before wider ones.
#[test]
fn winners_are_tried_in_order() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path());
    let slow = Winner {
        winner_ns: 1900,
        ..winner("aa", "H200", 1)
    };
    let path = store.put(&slow).expect("written");
    let named = format!("{}-0.winner", &slow.kernel[..32]);
    fs::rename(path, folder.path().join(named)).expect("renamed");
    let fast = winner("aa", "H200", 1);
    store.put(&fast).expect("written");
    assert_eq!(
        of_kernel(&store, &fast.kernel, "H200"),
        std::slice::from_ref(&fast)
    );
    let narrow = Winner {
        guard: "256,1,1 smem 0 cluster 0,0,0 grid 0"
            .parse::<LaunchClass>()
            .expect("a class")
            .guard()
            .grid([1, 1, 1]),
        winner_ns: 1950,
        ..fast.clone()
    };
    assert!(fast.guard.covers(&narrow.guard), "{}", narrow.guard);
    let special = Winner {
        guard: fast.guard.and(
            &warpwright_winners::Guard::parse(
                "param1:4=7",
                &warpwright_launch::Signature::default(),
            )
            .expect("a guard"),
        ),
        winner_ns: 1990,
        ..fast.clone()
    };
    store.put(&special).expect("written");
    assert_eq!(of_kernel(&store, &fast.kernel, "H200"), [special, fast]);
}

/// What was measured here is tried before what comes from elsewhere, whatever that claims and however narrow it is.
#[test]
fn winners_from_elsewhere_are_tried_last() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path());
    let own = Winner {
        winner_ns: 1999,
        ..winner("aa", "H200", 4)
    };
    store.put(&own).expect("written");
    let claims = |standing, grid| Winner {
        guard: own.guard.clone().grid(grid),
        winner_ns: 1,
        standing,
        ..own.clone()
    };
    let (proved, trusted) = (
        claims(Standing::Proved, [4, 1, 1]),
        Winner {
            guard: winner("aa", "H200", 64).guard,
            ..claims(Standing::Trusted, [4, 1, 1])
        },
    );
    assert!(own.guard.covers(&proved.guard));
    store.put(&proved).expect("written");
    store.put(&trusted).expect("written");
    let found = of_kernel(&store, &own.kernel, "H200");
    let standings: Vec<Standing> = found.iter().map(|winner| winner.standing).collect();
    assert_eq!(standings.len(), 3);
    assert_eq!(standings[0], Standing::Measured);
}

/// Terminals do what control characters say: a record has none.
#[test]
fn records_have_no_control_characters() {
    let odd = Winner {
        recipe: "maxnreg(64)\u{1b}[2J".into(),
        ..winner("aa", "H200", 1)
    };
    let written = odd.to_bytes();
    let (read, _) = Winner::read(&written).expect("a winner");
    assert_eq!(read.recipe, "maxnreg(64) [2J");
    let text = String::from_utf8(written).expect("text");
    let body = text.split_once('\n').expect("a head").1;
    let body = body.replace("maxnreg(64) [2J", "maxnreg(64)\u{1b}[2J");
    let digest = warpwright_winners::sha256(body.as_bytes());
    let hostile = format!("warpwright-winner 2 {} {digest}\n{body}", body.len());
    let why = Winner::read(hostile.as_bytes());
    assert_eq!(why, Err(RecordError::Lacks("recipe")));
}

/// Whatever lies in the folder, the rest of it is read.
#[test]
fn bad_entries_are_entries() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path());
    let good = winner("aa", "H200", 1);
    let path = store.put(&good).expect("written");
    let place = |name: &str| {
        folder
            .path()
            .join(format!("{}-{name}.winner", "aa".repeat(16)))
    };
    fs::create_dir(place("1")).expect("made");
    symlink("/dev/zero", place("2")).expect("linked");
    symlink("/nowhere/at/all", place("3")).expect("linked");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place("4"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .expect("a pipe");
    let huge = fs::File::create(place("5")).expect("made");
    huge.set_len(1 << 30).expect("sparse");
    fs::copy(&path, place("6")).expect("copied");
    allow(&place("6"), 0o666);
    symlink(&path, place("7")).expect("linked");
    for (name, more) in [("8", &b"x"[..]), ("9", &good.to_bytes())] {
        let more = [&good.to_bytes()[..], more].concat();
        fs::write(place(name), more).expect("written");
    }
    let begun = Instant::now();
    let all = store.all().expect("read");
    let of = |name: &str| {
        let found = all.iter().find(|e| e.path == place(name));
        found.expect("an entry").winner.clone()
    };
    assert_eq!(of("1"), Err(RecordError::NoFile));
    assert_eq!(of("2"), Err(RecordError::NoFile));
    let vanished = RecordError::Unreadable(io::ErrorKind::NotFound);
    assert_eq!(of("3"), Err(vanished));
    assert_eq!(of("4"), Err(RecordError::NoFile));
    assert_eq!(of("5"), Err(RecordError::TooLarge(1 << 30)));
    assert_eq!(of("6"), Err(RecordError::Exposed));
    assert_eq!(of("7"), Ok(good.clone()));
    assert_eq!(of("8"), Err(RecordError::Followed));
    assert_eq!(of("9"), Err(RecordError::Followed));
    assert_eq!(
        of_kernel(&store, &good.kernel, "H200"),
        std::slice::from_ref(&good)
    );
    let exported = export::winners(&store.export().expect("exported"));
    assert_eq!(exported.expect("an export"), [good.clone(), good.clone()]);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// Who can write a store decides what programs run.
#[test]
fn stores_that_others_can_write_are_refused_or_told() {
    let folder = tempfile::tempdir().expect("folder");
    let inner = folder.path().join("inner");
    let store = Store::at(&inner);
    assert_eq!(store.exposure().expect("none"), None);
    let good = winner("aa", "H200", 1);
    let path = store.put(&good).expect("written");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&inner), mode(&path)), (0o700, 0o600));
    allow(&inner, 0o770);
    assert_eq!(store.exposure().expect("told"), Some(Exposure::Group));
    assert_eq!(store.index().expect("read").kernels(), 1);
    let path = store.put(&good).expect("written");
    assert_eq!(mode(&path), 0o640, "the group reads");
    for (exposed, path) in [(0o777, &inner), (0o1777, &inner)] {
        allow(path, exposed);
        assert!(matches!(store.index(), Err(StoreError::Exposed(_))));
        assert!(matches!(store.all(), Err(StoreError::Exposed(_))));
        assert!(matches!(store.put(&good), Err(StoreError::Exposed(_))));
        assert!(matches!(
            store.check_writable(),
            Err(StoreError::Exposed(_))
        ));
    }
    allow(&inner, 0o700);
    allow(folder.path(), 0o777);
    assert!(matches!(store.index(), Err(StoreError::Exposed(_))));
    // Nobody but its owner renames what is in a sticky folder.
    allow(folder.path(), 0o1777);
    assert_eq!(store.exposure().expect("safe"), None);
    // Who can rename a folder above it can put another one in its place.
    allow(folder.path(), 0o775);
    let owner = fs::metadata(folder.path()).expect("there");
    let others = Gid::from_raw(owner.uid().wrapping_add(12_345));
    if chown(folder.path(), None, Some(others)).is_ok() {
        assert_eq!(store.exposure().expect("told"), Some(Exposure::Group));
    }
    allow(folder.path(), 0o700);
    // So can who can replace a link on the way.
    let (open, deep) = (folder.path().join("open"), folder.path().join("deep"));
    fs::create_dir(&open).expect("made");
    fs::create_dir(&deep).expect("made");
    symlink(&inner, open.join("link")).expect("linked");
    symlink("../open/link", deep.join("link")).expect("linked");
    for link in [open.join("link"), deep.join("link")] {
        let linked = Store::at(&link);
        allow(&open, 0o700);
        assert_eq!(linked.index().expect("read").kernels(), 1);
        allow(&open, 0o777);
        assert!(matches!(linked.index(), Err(StoreError::Exposed(_))));
    }
}

/// What a writer that was killed left is nobody else's to read, and goes after a while.
#[test]
fn parts_are_private_and_swept() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path());
    let good = winner("aa", "H200", 1);
    store.put(&good).expect("written");
    let names = ["old", "held", "new", "folder"];
    let parts = names.map(|name| folder.path().join(format!("{name}.part-1-2")));
    for part in &parts[..3] {
        fs::write(part, "cut").expect("written");
    }
    fs::create_dir(&parts[3]).expect("made");
    let of = |part: &Path| fs::File::options().write(true).open(part).expect("open");
    // A writer that lives holds it, however long that takes.
    let held = of(&parts[1]);
    held.lock().expect("locked");
    for part in &parts[..2] {
        let before = SystemTime::now() - Duration::from_secs(7200);
        of(part).set_modified(before).expect("dated");
    }
    store.put(&good).expect("written");
    let are_there = || parts.each_ref().map(|part| part.exists());
    assert_eq!(are_there(), [false, true, true, true]);
    drop(held);
    of(&parts[2])
        .set_modified(SystemTime::now() - Duration::from_secs(90))
        .expect("dated");
    store.put(&good).expect("written");
    assert_eq!(are_there(), [false, false, false, true]);
    let aside = folder.path().join("aside");
    warpwright_winners::store::write_whole(&aside, b"x").expect("written");
    let mode = fs::metadata(&aside).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    warpwright_winners::store::write_whole(&aside, b"y").expect("replaced");
    assert_eq!(fs::read(&aside).expect("read"), b"y");
    let count = || fs::read_dir(folder.path()).expect("read").count();
    let before = count();
    let mut unfinished = Aside::new_in(folder.path()).expect("made");
    io::Write::write_all(unfinished.file(), b"x").expect("written");
    drop(unfinished);
    assert_eq!(count(), before);
}

/// A program that starts waits for the latest winners of a kernel, not for thousands.
#[test]
fn of_many_winners_the_latest_are_read() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::at(folder.path());
    let bytes = winner("aa", "H200", 1).to_bytes();
    for number in 0..10_000 {
        let name = format!("{}-{number:05}.winner", "aa".repeat(16));
        fs::write(folder.path().join(name), &bytes).expect("written");
    }
    let latest = Winner {
        winner_ns: 7,
        ..winner("aa", "H200", 4)
    };
    store.put(&latest).expect("written");
    let begun = Instant::now();
    let found = of_kernel(&store, &latest.kernel, "H200");
    let took = begun.elapsed();
    assert_eq!(found[0], latest);
    // Bounded work; how long it takes is for the library's own test.
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// Whoever has a record can write it at any time: it is one of the folder's owner, or of a team's.
#[test]
fn records_of_others_are_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let top = folder.path().canonicalize().expect("a path");
    let store = Store::at(top.join("store"));
    let path = store.put(&winner("aa", "H200", 1)).expect("written");
    let public = top.join("public");
    fs::create_dir(&public).expect("made");
    let read = || store.all().expect("read").remove(0).winner;
    // A link into a folder where everybody can write, and elsewhere.
    for (mode, is_used) in [(0o777, false), (0o755, true)] {
        allow(&public, mode);
        fs::rename(&path, public.join("record")).expect("moved");
        symlink(public.join("record"), &path).expect("linked");
        assert_eq!(read().is_ok(), is_used, "{mode:o}");
        assert!(is_used || read() == Err(RecordError::Linked));
        fs::rename(public.join("record"), &path).expect("moved");
    }
    // Only the administrator can give files away.
    let (other, own) = (Uid::from_raw(5555), Uid::from_raw(0));
    if chown(&path, Some(other), None).is_err() {
        return;
    }
    assert_eq!(read(), Err(RecordError::OfOther(5555)));
    allow(store.folder(), 0o770);
    assert!(read().is_ok());
    allow(store.folder(), 0o700);
    chown(&path, Some(own), None).expect("given");
    let link = Store::at(top.join("link"));
    symlink(store.folder(), link.folder()).expect("linked");
    assert!(link.exposure().expect("safe").is_none());
    chownat(
        CWD,
        link.folder(),
        Some(other),
        None,
        AtFlags::SYMLINK_NOFOLLOW,
    )
    .expect("given");
    let told = link.exposure().expect("safe");
    assert_eq!(told, Some(Exposure::Owner(5555)));
}
