//! What a session decides, on a device made of numbers.

mod fake;

use std::ops::ControlFlow::{Break, Continue};
use std::sync::atomic::{AtomicUsize, Ordering};

use fake::{Fake, job, variant};
use warpwright_gpu::fleet::measure_split;
use warpwright_gpu::stats::Outcome;
use warpwright_gpu::{
    Budget, Fault, FaultKind, Measurements, Progress, Promise, State, Variant, Verdict, measure,
};

fn run_on(fake: &mut Fake, variants: &[Variant], budget: &Budget) -> Result<Measurements, Fault> {
    let dir = tempfile::tempdir().expect("folder");
    measure(
        fake,
        &job(dir.path()),
        variants,
        "default",
        budget,
        None,
        &mut |_| Continue(()),
    )
}

fn run(variants: &[Variant]) -> Measurements {
    run_on(&mut Fake::new(1), variants, &Budget::default()).expect("measures")
}

fn verdict<'a>(m: &'a Measurements, id: &str) -> &'a Verdict {
    &m.get(id).expect("measured").verdict
}

#[test]
fn the_fastest_correct_variant_is_chosen() {
    let m = run(&[
        variant("default", "ns=100000"),
        variant("a", "ns=95000"),
        variant("b", "ns=80000"),
        variant("c", "ns=130000"),
    ]);
    assert_eq!(m.chosen, "b");
    assert!((m.chosen_ratio() - 0.8).abs() < 0.01);
    let outcome = |id| m.get(id).and_then(|v| v.outcome);
    assert_eq!(outcome("default"), None);
    assert_eq!(outcome("a"), Some(Outcome::Faster));
    assert_eq!(outcome("c"), Some(Outcome::Slower));
    assert!(m.tight && !m.interrupted);
}

#[test]
fn a_difference_inside_the_noise_is_a_tie_and_the_baseline_wins_it() {
    let m = run(&[variant("default", "ns=100000"), variant("a", "ns=99950")]);
    assert_eq!(m.get("a").and_then(|v| v.outcome), Some(Outcome::Tie));
    assert_eq!(m.chosen, "default");
}

/// Code and data lie elsewhere in every epoch; a difference that comes from that is no difference.
#[test]
fn placement_noise_does_not_make_a_winner() {
    let m = run(&[
        variant("default", "ns=100000 placement=0.02"),
        variant("a", "ns=99500 placement=0.02"),
    ]);
    assert_eq!(m.get("a").and_then(|v| v.outcome), Some(Outcome::Tie));
}

#[test]
fn two_sessions_agree_within_their_intervals() {
    let variants = [
        variant("default", "ns=100000 placement=0.004"),
        variant("a", "ns=90000 placement=0.004"),
    ];
    let sessions = [11, 12]
        .map(|seed| run_on(&mut Fake::new(seed), &variants, &Budget::default()).expect("measures"));
    for id in ["default", "a"] {
        let [x, y] =
            [&sessions[0], &sessions[1]].map(|m| m.get(id).and_then(|v| v.time_ns).expect("timed"));
        assert!(x.low <= y.high && y.low <= x.high, "{id}: {x:?} {y:?}");
        assert!(x.coverage > 0.95);
    }
}

#[test]
fn planted_faults_are_named_and_never_chosen() {
    let m = run(&[
        variant("default", "ns=100000"),
        variant("wrong", "ns=10 check=wrong"),
        variant("corrupts", "ns=10 check=corrupts"),
        variant("hangs", "ns=10 check=timeout"),
        variant("crashes", "ns=10 check=illegal-address"),
        variant("refused", "ns=10 check=rejected"),
        variant("later", "ns=10 timed=illegal-instruction"),
        variant("good", "ns=90000"),
    ]);
    assert!(matches!(
        verdict(&m, "wrong"),
        Verdict::Wrong { index: 7, .. }
    ));
    assert!(matches!(verdict(&m, "corrupts"), Verdict::Corrupts { .. }));
    for (id, kind) in [
        ("hangs", FaultKind::Timeout),
        ("crashes", FaultKind::IllegalAddress),
        ("refused", FaultKind::Rejected),
        ("later", FaultKind::IllegalInstruction),
    ] {
        let found = verdict(&m, id);
        assert!(
            matches!(found, Verdict::Failed { kind: k, .. } if *k == kind),
            "{id}: {found}"
        );
        assert_eq!(m.get(id).and_then(|v| v.time_ns), None, "{id}");
    }
    assert_eq!(m.chosen, "good");
    assert_eq!(m.faults, 3);
}

/// A joint run that dies without naming anybody: each contender is tried alone.
#[test]
fn an_unnamed_crash_is_traced_to_its_variant() {
    let m = run(&[
        variant("default", "ns=100000"),
        variant("good", "ns=90000"),
        variant("bad", "ns=80000 timed=silent"),
    ]);
    let found = verdict(&m, "bad");
    assert!(
        matches!(
            found,
            Verdict::Failed {
                kind: FaultKind::IllegalAddress,
                ..
            }
        ),
        "{found}"
    );
    assert_eq!(m.chosen, "good");
}

#[test]
fn a_winner_that_fails_when_run_again_is_not_chosen() {
    let m = run(&[
        variant("default", "ns=100000"),
        variant("racy", "ns=50000 second=wrong"),
        variant("good", "ns=90000"),
    ]);
    assert!(matches!(verdict(&m, "racy"), Verdict::Wrong { .. }));
    assert_eq!(m.chosen, "good");
}

#[test]
fn a_promise_of_bits_is_held_to() {
    let mut tolerant = variant("tolerant", "ns=80000 check=within");
    tolerant.promise = Promise::Tolerance;
    let strict = variant("strict", "ns=70000 check=within");
    let m = run(&[variant("default", "ns=100000"), strict, tolerant]);
    assert!(matches!(
        verdict(&m, "strict"),
        Verdict::Wrong {
            within_tolerance: true,
            ..
        }
    ));
    assert!(matches!(verdict(&m, "tolerant"), Verdict::Within { .. }));
    assert_eq!(m.chosen, "tolerant");
}

#[test]
fn halving_spends_its_time_on_the_best() {
    let mut variants = vec![variant("default", "ns=100000")];
    for i in 0..24 {
        variants.push(variant(
            &format!("v{i:02}"),
            &format!("ns={}", 80_000 + 2_000 * i),
        ));
    }
    let mut fake = Fake::new(5);
    let m = run_on(&mut fake, &variants, &Budget::default()).expect("measures");
    assert_eq!(m.chosen, "v00");
    let rounds = |id: &str| {
        let of =
            |(ids, rounds): &(Vec<String>, u32)| rounds * u32::from(ids.iter().any(|i| i == id));
        fake.requests.iter().map(of).sum::<u32>()
    };
    assert!(rounds("v23") >= 3 && rounds("v00") > 4 * rounds("v23"));
    assert_eq!(m.get("v23").and_then(|v| v.dropped_after), Some(0));
    let finalists = m
        .variants
        .iter()
        .filter(|v| v.dropped_after.is_none())
        .count();
    assert_eq!(finalists, 4);

    // One that a report wants to compare stays to the end.
    variants[20].keep = true;
    let m = run_on(&mut Fake::new(5), &variants, &Budget::default()).expect("measures");
    assert_eq!(m.get("v19").and_then(|v| v.dropped_after), None);
    assert_eq!(
        m.variants
            .iter()
            .filter(|v| v.dropped_after.is_none())
            .count(),
        5
    );

    let exhaustive = Budget {
        exhaustive: true,
        ..Budget::default()
    };
    let m = run_on(&mut Fake::new(5), &variants, &exhaustive).expect("measures");
    assert!(m.variants.iter().all(|v| v.dropped_after.is_none()));
    assert_eq!(m.chosen, "v00");
}

/// Two devices, one 10% slower: no time of one is compared with a time of the other.
#[test]
fn several_devices_share_the_field() {
    let dir = tempfile::tempdir().expect("folder");
    let mut variants = vec![variant("default", "ns=100000")];
    for i in 0..16 {
        let script = format!("ns={}", 90_000 + 1_000 * ((5 * i) % 16));
        variants.push(variant(&format!("v{i:02}"), &script));
    }
    variants.push(variant("wrong", "ns=10 check=wrong"));
    let backends = vec![Fake::new(1), Fake::new(2).slower_by(1.1)];
    let budget = Budget::default();
    let told = AtomicUsize::new(0);
    let m = measure_split(
        backends,
        &job(dir.path()),
        &variants,
        "default",
        &budget,
        &|n, _| {
            told.fetch_or(1 << n, Ordering::Relaxed);
            Continue(())
        },
    )
    .expect("measures");
    assert_eq!(m.chosen, "v00");
    let ids: Vec<&str> = m.variants.iter().map(|v| v.id.as_str()).collect();
    assert_eq!(
        ids,
        variants.iter().map(|v| v.id.as_str()).collect::<Vec<_>>()
    );
    assert!(matches!(verdict(&m, "wrong"), Verdict::Wrong { .. }));
    let ratio = |id: &str| m.get(id).and_then(|v| v.ratio).expect("timed").median;
    for v in m
        .variants
        .iter()
        .filter(|v| v.verdict.is_correct() && v.id != "default")
    {
        let index: usize = v.id[1..].parse().expect("number");
        let expected = 0.9 + 0.01 * ((5 * index) % 16) as f64;
        assert!(
            (ratio(&v.id) - expected).abs() < 0.01,
            "{}: {}",
            v.id,
            ratio(&v.id)
        );
    }
    assert_eq!(told.into_inner(), 3);
}

#[test]
fn without_a_timing_budget_it_only_checks() {
    let mut fake = Fake::new(1);
    let budget = Budget {
        seconds: 0.0,
        ..Budget::default()
    };
    let variants = [
        variant("default", ""),
        variant("a", ""),
        variant("b", "check=wrong"),
    ];
    let m = run_on(&mut fake, &variants, &budget).expect("measures");
    assert!(fake.requests.is_empty());
    assert!(verdict(&m, "a").is_correct() && !verdict(&m, "b").is_correct());
    assert_eq!(m.chosen, "default");
}

/// Stopped after every possible step, stored as JSON and resumed: the same winner, and nothing is
/// checked twice but the baseline.
#[test]
fn an_interrupted_session_goes_on_where_it_was() {
    let variants: Vec<Variant> = (0..8)
        .map(|i| variant(&format!("v{i}"), &format!("ns={}", 90_000 + 5_000 * i)))
        .chain([variant("default", "ns=100000")])
        .collect();
    let mut stopped = 0;
    for stop_at in 1..=12 {
        let dir = tempfile::tempdir().expect("folder");
        let job = job(dir.path());
        let budget = Budget::default();
        let mut kept: Option<String> = None;
        let mut steps = 0;
        let mut first = Fake::new(3);
        let m = measure(
            &mut first,
            &job,
            &variants,
            "default",
            &budget,
            None,
            &mut |news| {
                if let Progress::Checkpoint(state) = news {
                    kept = Some(serde_json::to_string(state).expect("serialises"));
                    steps += 1;
                    if steps == stop_at {
                        return Break(());
                    }
                }
                Continue(())
            },
        )
        .expect("measures");
        stopped += u32::from(m.interrupted);
        let state: State = serde_json::from_str(&kept.expect("a checkpoint")).expect("parses");
        let mut second = Fake::new(3);
        let m = measure(
            &mut second,
            &job,
            &variants,
            "default",
            &budget,
            Some(state),
            &mut |_| Continue(()),
        )
        .expect("measures");
        assert_eq!(m.chosen, "v0");
        assert!(!m.interrupted && m.tight);
        for v in &variants {
            let checks = |f: &Fake| f.checks.get(&v.id).copied().unwrap_or(0);
            // The baseline gives each session its reference; a winner is checked again.
            let again = if v.id == "v0" {
                2
            } else {
                u32::from(v.id == "default")
            };
            let expected = 1 + again;
            assert!(
                checks(&first) + checks(&second) <= expected,
                "{} at {stop_at}",
                v.id
            );
        }
    }
    assert!(stopped >= 10, "{stopped}");
}

#[test]
fn a_changed_image_is_looked_at_again() {
    let dir = tempfile::tempdir().expect("folder");
    let job = job(dir.path());
    let budget = Budget::default();
    let mut kept = None;
    let old = [
        variant("default", "ns=100000"),
        variant("a", "ns=90000"),
        variant("b", "ns=80000"),
    ];
    measure(
        &mut Fake::new(1),
        &job,
        &old,
        "default",
        &budget,
        None,
        &mut |news| {
            if let Progress::Checkpoint(state) = news {
                kept = Some((*state).clone());
            }
            Continue(())
        },
    )
    .expect("measures");
    let new = [
        old[0].clone(),
        old[1].clone(),
        variant("b", "ns=70000 check=wrong"),
    ];
    let mut fake = Fake::new(1);
    let m = measure(&mut fake, &job, &new, "default", &budget, kept, &mut |_| {
        Continue(())
    })
    .expect("measures");
    assert_eq!(fake.checks.get("b"), Some(&1));
    assert!(matches!(verdict(&m, "b"), Verdict::Wrong { .. }));
    assert_eq!(m.chosen, "a");
}

#[test]
fn less_memory_means_fewer_sets() {
    let m = run(&[
        variant("default", "ns=1000 memory=8"),
        variant("a", "ns=900 memory=8"),
    ]);
    let plan = m.plan.expect("timed");
    assert!(plan.sets() <= 8, "{plan:?}");
    assert_eq!(m.chosen, "a");
}

/// Memory that not even one set of buffers gets is the launch's fault; memory that one variant
/// asks for on top is that variant's.
#[test]
fn running_out_of_memory() {
    let m = run(&[
        variant("default", "ns=100000"),
        variant("a", "ns=9 check=out-of-memory"),
    ]);
    let found = verdict(&m, "a");
    assert!(
        matches!(
            found,
            Verdict::Failed {
                kind: FaultKind::OutOfMemory,
                ..
            }
        ),
        "{found}"
    );
    let variants = [variant("default", "memory=0")];
    let fault = run_on(&mut Fake::new(1), &variants, &Budget::default()).expect_err("no memory");
    assert_eq!(fault.kind, FaultKind::OutOfMemory);
}

#[test]
fn what_cannot_be_measured_is_an_error() {
    let budget = Budget::default();
    let kind = |variants: &[Variant]| {
        run_on(&mut Fake::new(1), variants, &budget)
            .expect_err("no measurement")
            .kind
    };
    // No baseline; two variants of one name.
    assert_eq!(kind(&[variant("a", "")]), FaultKind::Input);
    assert_eq!(
        kind(&[variant("default", ""), variant("default", "")]),
        FaultKind::Input
    );
    // A baseline that writes where it must not, or does not run: there is no reference.
    assert_eq!(
        kind(&[variant("default", "check=corrupts")]),
        FaultKind::Input
    );
    assert_eq!(
        kind(&[variant("default", "check=timeout")]),
        FaultKind::Timeout
    );
    // The device goes away.
    assert_eq!(
        kind(&[variant("default", ""), variant("a", "check=missing")]),
        FaultKind::Missing
    );
}

#[test]
fn a_baseline_that_varies_needs_a_tolerance() {
    let dir = tempfile::tempdir().expect("folder");
    let variants = [
        variant("default", "ns=100000 unstable"),
        variant("a", "ns=90000"),
    ];
    let mut job = job(dir.path());
    let budget = Budget::default();
    let go = |job: &_| {
        measure(
            &mut Fake::new(1),
            job,
            &variants,
            "default",
            &budget,
            None,
            &mut |_| Continue(()),
        )
    };
    assert!(!go(&job).expect("measures").deterministic);
    job.buffers[0].tolerance = None;
    assert_eq!(go(&job).expect_err("no tolerance").kind, FaultKind::Input);
}

#[test]
fn results_survive_json() {
    let m = run(&[
        variant("default", "ns=100000"),
        variant("a", "ns=90000 check=wrong"),
    ]);
    let text = serde_json::to_string(&m).expect("serialises");
    let back: Measurements = serde_json::from_str(&text).expect("parses");
    assert_eq!(
        (&back.chosen, back.plan, &back.environment),
        (&m.chosen, m.plan, &m.environment)
    );
    for (x, y) in back.variants.iter().zip(&m.variants) {
        assert_eq!(
            (&x.id, &x.verdict, &x.resources),
            (&y.id, &y.verdict, &y.resources)
        );
        assert_eq!(x.time_ns.map(|e| e.samples), y.time_ns.map(|e| e.samples));
    }
}
