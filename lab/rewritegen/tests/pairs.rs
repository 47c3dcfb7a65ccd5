//! A short run of random pairs, and mistakes of every kind that are caught by the sizes, not by luck.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_fuzzgen::Rng;
use warpwright_rewrite::Standing;
use warpwright_rewritegen::check::{Pair, Seen, run};
use warpwright_rewritegen::code::Mistake;
use warpwright_rewritegen::emit::emit;
use warpwright_rewritegen::family::{FAMILIES, Family};

#[test]
fn no_verdict_on_random_pairs_is_wrong() {
    let (counters, findings) = run(7, 0..120);
    let told: Vec<String> = findings
        .iter()
        .map(|f| format!("{}: {}", f.pair, f.what))
        .collect();
    assert_eq!(counters.wrong, 0, "{}", told.join("\n"));
    assert!(
        counters.broken > 50 && counters.pairs - counters.broken > 30,
        "{counters:?}"
    );
    let equal: u64 = ["bit-for-bit", "up-to-rounding"]
        .iter()
        .filter_map(|word| counters.right.get(*word))
        .sum();
    let all: u64 = counters.right.values().sum();
    assert!(
        10 * equal >= 8 * all,
        "most right ones are proved: {counters:?}"
    );
    let refuted: u64 = counters
        .mistakes
        .values()
        .map(|planted| planted.refuted)
        .sum();
    assert!(
        3 * refuted >= 2 * counters.broken,
        "most broken ones are refuted: {counters:?}"
    );
}

/// Schedules of each family, each once with a mistake at every place that it offers.
const SCHEDULES: u64 = 3;

fn schedule(family: usize, number: u64) -> Box<dyn Family> {
    FAMILIES[family].1(&mut Rng::new(1000 * family as u64 + number))
}

/// Of each kind of mistake that a schedule offers, the first place and the last.
fn places(offered: &[Mistake]) -> BTreeSet<usize> {
    let of = |kind: &Mistake| {
        let first = offered.iter().position(|other| other == kind);
        let last = offered.iter().rposition(|other| other == kind);
        [first, last]
    };
    offered.iter().flat_map(of).flatten().collect()
}

/// What is said at one size after the other, until the pair is refuted.
fn verdicts(pair: &Pair) -> Vec<(Standing, Seen)> {
    let mut found = Vec::new();
    for sizes in pair.plan() {
        match pair.at(&sizes) {
            Ok((at, seen)) => found.push((at.standing, seen)),
            Err(f) => panic!("{}: {}\n{}", f.pair, f.what, f.text),
        }
        if found.last().is_some_and(|(s, _)| *s == Standing::Refuted) {
            break;
        }
    }
    found
}

/// Sizes alone show them: one block, odd, prime, tile minus one, two tiles and one, one element. No input is drawn by luck.
#[test]
fn planted_mistakes_are_caught_by_the_sizes() {
    let mut caught: BTreeMap<Mistake, u64> = BTreeMap::new();
    let mut missed = Vec::new();
    for (family, number) in (0..FAMILIES.len()).flat_map(|f| (0..SCHEDULES).map(move |n| (f, n))) {
        let offered = schedule(family, number).rewrite(None).code.offered;
        for place in places(&offered) {
            let name = format!("{family}:{number}");
            let pair = Pair::of(schedule(family, number), Some(place), &name).unwrap();
            let found = verdicts(&pair);
            match found.last().is_some_and(|(s, _)| *s == Standing::Refuted) {
                true => *caught.entry(offered[place]).or_default() += 1,
                false => missed.push(format!("{name}:{place} {:?}: {found:?}", offered[place])),
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    let all: u64 = caught.values().sum();
    let every = caught.len() == 14;
    assert!(all >= 100 && every, "{all}, of every kind: {caught:?}");
}

/// Half of what is emitted is broken; every place in `data.bin` is there, and each buffer has one on either side.
#[test]
fn emitted_pairs_are_whole() {
    let folder = std::env::temp_dir().join(format!("rewritegen-{}", std::process::id()));
    emit(1, 12, &folder).unwrap();
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let bytes = read("data.bin").len() as u64;
    let document: serde_json::Value = serde_json::from_slice(&read("pairs.json")).unwrap();
    let pairs = document["pairs"].as_array().unwrap();
    let broken = pairs.iter().filter(|pair| !pair["mistake"].is_null());
    assert_eq!((pairs.len(), broken.count()), (12, 6));
    let mut witnesses = 0;
    for pair in pairs {
        for file in pair["files"].as_array().unwrap() {
            let text = read(file.as_str().unwrap());
            assert!(text.starts_with(b".version"), "{file}");
        }
        for launch in pair["launches"].as_array().unwrap() {
            let inputs = launch["inputs"].as_array().unwrap().iter();
            for contents in inputs.chain(launch.get("witness")) {
                for (side, kernel) in [(0, "a"), (1, "b")] {
                    let all = contents["sides"][side].as_array().unwrap();
                    let args = launch["kernels"][side]["args"].as_array().unwrap();
                    let buffers = args.iter().filter(|arg| arg.get("buffer").is_some());
                    assert_eq!(all.len(), buffers.count(), "{kernel} of {}", pair["pair"]);
                    let end = |range: &serde_json::Value| {
                        range["at"].as_u64().unwrap() + range["bytes"].as_u64().unwrap()
                    };
                    assert!(all.iter().all(|range| end(range) <= bytes));
                }
            }
            witnesses += usize::from(launch.get("witness").is_some());
        }
    }
    assert!(witnesses > 0, "a refuted pair has inputs that show it");
    std::fs::remove_dir_all(&folder).unwrap();
}
