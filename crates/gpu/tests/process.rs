//! The child process: crashes, hangs and noise. This program is its own worker, so it has a
//! `main` of its own.

mod fake;

use std::ops::ControlFlow::Continue;
use std::time::{Duration, Instant};

use fake::{Fake, job, variant};
use libtest_mimic::{Arguments, Failed, Trial};
use warpwright_gpu::{
    Against, Backend, Budget, CheckRequest, FaultKind, Plan, Process, TimeRequest, Variant,
    Verdict, WORKER_ARGUMENT, WorkerCommand, measure, serve,
};

fn main() {
    if std::env::args().nth(1).as_deref() == Some(WORKER_ARGUMENT) {
        let served = serve(
            &mut Fake::new(1),
            std::io::stdin().lock(),
            std::io::stdout(),
        );
        std::process::exit(i32::from(served.is_err()));
    }
    let tests: [(&str, fn()); 6] = [
        ("a_request_is_answered", a_request_is_answered),
        (
            "a_crash_names_the_variant_and_costs_no_more",
            a_crash_names_the_variant,
        ),
        ("a_hang_ends_with_the_worker", a_hang_ends_with_the_worker),
        (
            "a_crash_while_timing_names_the_variant",
            a_crash_while_timing_names_the_variant,
        ),
        (
            "a_session_survives_everything",
            a_session_survives_everything,
        ),
        (
            "a_missing_program_is_an_error",
            a_missing_program_is_an_error,
        ),
    ];
    let trials = tests
        .into_iter()
        .map(|(name, test)| {
            Trial::test(name, move || {
                test();
                Ok::<(), Failed>(())
            })
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn process() -> Process {
    let command = WorkerCommand::this_program(0).expect("own path");
    Process::new(command).with_grace(Duration::from_secs(2))
}

fn stored(dir: &std::path::Path, id: &str, script: &str) -> Variant {
    let path = dir.join(format!("{id}.img"));
    std::fs::write(&path, script).expect("folder");
    Variant::new(id, warpwright_gpu::Image::File(path))
}

fn check(variant: Variant) -> CheckRequest {
    CheckRequest {
        variant,
        against: Against::Nothing,
        limit_s: 0.1,
    }
}

fn time(variants: Vec<Variant>) -> TimeRequest {
    let plan = Plan {
        batch: 1,
        warm: false,
    };
    TimeRequest {
        variants,
        plan,
        rounds: 5,
        epoch: 0,
        restore: Vec::new(),
        warmup_s: 0.0,
        limit_s: 0.1,
    }
}

fn a_request_is_answered() {
    let dir = tempfile::tempdir().expect("folder");
    let mut process = process();
    assert_eq!(process.open(&job(dir.path())).expect("opens").name, "Fake");
    // A kernel that prints does not disturb the conversation.
    let good = stored(dir.path(), "good", "ns=2000 check=print");
    assert_eq!(
        process.check(&check(good.clone())).expect("checks").ns,
        2000.0
    );
    let report = process.time(&time(vec![good])).expect("times");
    assert_eq!(report.samples[0].len(), 5);
    assert_eq!(process.restarts(), 0);
}

fn a_crash_names_the_variant() {
    let dir = tempfile::tempdir().expect("folder");
    let mut process = process();
    process.open(&job(dir.path())).expect("opens");
    let good = stored(dir.path(), "good", "");
    for (script, word) in [("check=exit", "exit code 9"), ("check=abort", "signal 6")] {
        let fault = process
            .check(&check(stored(dir.path(), "bad", script)))
            .expect_err("dies");
        assert_eq!(fault.kind, FaultKind::Killed);
        assert_eq!(fault.variant.as_deref(), Some("bad"));
        assert!(fault.detail.contains(word), "{fault}");
        assert!(process.check(&check(good.clone())).is_ok());
    }
    // A fault that costs the context, reported in good order: the worker is replaced, too.
    let bad = stored(dir.path(), "bad", "check=illegal-address");
    assert_eq!(
        process.check(&check(bad)).expect_err("fails").kind,
        FaultKind::IllegalAddress
    );
    assert!(process.check(&check(good.clone())).is_ok());
    assert_eq!(process.restarts(), 3);
    // One that does not: the worker stays.
    let bad = stored(dir.path(), "bad", "check=rejected");
    assert_eq!(
        process.check(&check(bad)).expect_err("fails").kind,
        FaultKind::Rejected
    );
    assert!(process.check(&check(good)).is_ok());
    assert_eq!(process.restarts(), 3);
}

fn a_hang_ends_with_the_worker() {
    let dir = tempfile::tempdir().expect("folder");
    let mut process = process();
    process.open(&job(dir.path())).expect("opens");
    let start = Instant::now();
    let hang = stored(dir.path(), "hang", "check=hang");
    let fault = process.check(&check(hang)).expect_err("hangs");
    assert_eq!(
        (fault.kind, fault.variant.as_deref()),
        (FaultKind::Timeout, Some("hang"))
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(
        process
            .check(&check(stored(dir.path(), "good", "")))
            .is_ok()
    );
}

fn a_crash_while_timing_names_the_variant() {
    let dir = tempfile::tempdir().expect("folder");
    let mut process = process();
    process.open(&job(dir.path())).expect("opens");
    let variants = vec![
        stored(dir.path(), "good", ""),
        stored(dir.path(), "bad", "timed=exit"),
        stored(dir.path(), "other", ""),
    ];
    let fault = process.time(&time(variants)).expect_err("dies");
    assert_eq!(
        (fault.kind, fault.variant.as_deref()),
        (FaultKind::Killed, Some("bad"))
    );
}

fn a_session_survives_everything() {
    let dir = tempfile::tempdir().expect("folder");
    let variants = [
        variant("default", "ns=100000"),
        variant("hangs", "ns=10 check=hang"),
        variant("exits", "ns=10 check=exit"),
        variant("wrong", "ns=10 check=wrong"),
        variant("dies later", "ns=10 timed=exit"),
        variant("good", "ns=90000"),
    ];
    let budget = Budget {
        seconds: 1.0,
        limit_s: 0.1,
        ..Budget::default()
    };
    let job = job(dir.path());
    let mut process = process();
    let m = measure(
        &mut process,
        &job,
        &variants,
        "default",
        &budget,
        None,
        &mut |_| Continue(()),
    )
    .expect("measures");
    assert_eq!(m.chosen, "good");
    let kind = |id: &str| match m.get(id).map(|v| &v.verdict) {
        Some(Verdict::Failed { kind, .. }) => Some(*kind),
        _ => None,
    };
    assert_eq!(kind("hangs"), Some(FaultKind::Timeout));
    assert_eq!(kind("exits"), Some(FaultKind::Killed));
    assert_eq!(kind("dies later"), Some(FaultKind::Killed));
    assert!(matches!(
        m.get("wrong").map(|v| &v.verdict),
        Some(Verdict::Wrong { .. })
    ));
}

fn a_missing_program_is_an_error() {
    let dir = tempfile::tempdir().expect("folder");
    let program = dir.path().join("nothing-here");
    let mut process = Process::new(WorkerCommand {
        program,
        args: Vec::new(),
    });
    let fault = process
        .open(&job(dir.path()))
        .expect_err("nothing to start");
    assert_eq!(fault.kind, FaultKind::Internal);
}
