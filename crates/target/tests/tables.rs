//! The tables themselves: complete, sourced and consistent.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use warpwright_target::{
    Architecture, Confidence, Fact, RegisterAllocation, architectures, boards, lookup,
};

fn row(name: &str) -> &'static Architecture {
    lookup(name).unwrap().arch
}

#[test]
fn every_architecture_of_the_contract_has_a_row() {
    let rows: Vec<u32> = architectures().map(|arch| arch.sm).collect();
    assert_eq!(
        rows,
        [
            13, 20, 30, 35, 52, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121
        ]
    );
}

#[test]
fn every_figure_names_its_source() {
    let check = |owner: &str, name: &str, fact: Option<Fact<u32>>| {
        if let Some(fact) = fact {
            assert!(fact.value > 0, "{owner} {name}: 0 is not a figure");
            assert!(fact.source.len() > 5, "{owner} {name}: no source");
            let vague = fact.source.starts_with("equal to") || fact.source.contains("divided by");
            assert_eq!(
                vague,
                fact.confidence == Confidence::Estimated,
                "{owner} {name}: {}",
                fact.source
            );
        }
    };
    for arch in architectures() {
        let owner = format!("sm_{}", arch.sm);
        assert_eq!(arch.limits.confidence, Confidence::Documented, "{owner}");
        assert!(!arch.limits.source.is_empty(), "{owner}");
        check(&owner, "l1_bytes", arch.l1_bytes);
        arch.throughput
            .iter()
            .chain(arch.latency.iter())
            .for_each(|(name, fact)| check(&owner, name, fact));
    }
    for board in boards() {
        check(board.name, "sms", board.sms);
        check(board.name, "clock_mhz", board.clock_mhz);
        check(board.name, "dram_gb_s", board.dram_gb_s);
        check(board.name, "copy_gb_s", board.copy_gb_s);
        check(board.name, "l2_kib", board.l2_kib);
        check(board.name, "persisting_l2_kib", board.persisting_l2_kib);
        let [whole, part] =
            [board.l2_kib, board.persisting_l2_kib].map(|fact| fact.map(|f| f.value));
        assert!(part < whole || whole.is_none(), "{}", board.name);
        let has_part = board.arch.has_persisting_l2() && whole.is_some();
        assert_eq!(part.is_some(), has_part, "{}", board.name);
    }
}

#[test]
fn rows_are_consistent() {
    for arch in architectures() {
        let (registers, threads, shared) = (&arch.registers, &arch.threads, &arch.shared);
        let sm = arch.sm;
        assert!(
            registers.per_block <= registers.per_sm && registers.per_thread <= 255,
            "sm_{sm}"
        );
        let unit = match registers.allocation {
            RegisterAllocation::PerWarp(unit) | RegisterAllocation::PerBlock(unit) => unit,
        };
        assert_eq!(
            registers.per_sm % (unit * registers.warp_granularity),
            0,
            "sm_{sm}"
        );
        assert!(threads.per_block <= threads.warps * 32, "sm_{sm}");
        assert!(shared.carveouts.is_sorted(), "sm_{sm}");
        assert_eq!(shared.carveouts.last(), Some(&shared.per_sm), "sm_{sm}");
        assert!(shared.per_block <= shared.per_block_opt_in, "sm_{sm}");
        assert!(
            shared.per_block_opt_in + shared.reserved <= shared.per_sm,
            "sm_{sm}"
        );
        let on_chip = arch.l1_bytes.map_or(u32::MAX, |fact| fact.value);
        assert!(
            sm == 52 || shared.per_sm <= on_chip,
            "sm_{sm}: shared memory is carved out of level 1"
        );
    }
}

#[test]
fn latencies_grow_with_distance() {
    for arch in architectures() {
        let known: Vec<u32> = [
            arch.latency.alu,
            arch.latency.shared,
            arch.latency.l1,
            arch.latency.l2,
        ]
        .into_iter()
        .chain([arch.latency.dram])
        .flatten()
        .map(|fact| fact.value)
        .collect();
        assert!(known.is_sorted(), "sm_{}: {known:?}", arch.sm);
    }
}

#[test]
fn local_memory_takes_the_path_of_global_memory() {
    assert_eq!(row("sm_90").latency.local(), row("sm_90").latency.l1);
    assert_eq!(row("sm_13").latency.local(), row("sm_13").latency.dram);
}

/// 34 TFLOP/s FP64 without tensor cores, as measured on the H200.
#[test]
fn h200_peak_rates() {
    let gpu = lookup("h200").unwrap();
    let board = gpu.board.unwrap();
    let (sms, mhz) = (board.sms.unwrap().value, board.clock_mhz.unwrap().value);
    let per_clock = gpu.arch.throughput.fp64.unwrap().value;
    let tflops = f64::from(sms * per_clock * 2) * f64::from(mhz) / 1e6;
    assert!((33.0..34.0).contains(&tflops), "{tflops}");
    assert!((4250..4350).contains(&board.copy_gb_s.unwrap().value));
}
