//! The same launch gives the same bytes and the same fault on any number of cores.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::sync::atomic::AtomicU64;

use warpwright_emu::{Emulator, FaultKind, Options, Outcome};
use warpwright_launch::LaunchFile;
use warpwright_ptx::Module;

/// Every thread adds its number to one of eight sums; with `trap`, blocks from 20 on end badly.
fn source(trap: bool) -> String {
    let guard = if trap { "@%p trap;" } else { "" };
    format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 sums)\n{{\n\
         .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<3>;\n\
         ld.param.u64 %d0, [sums];\n\
         mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x;\n\
         setp.ge.u32 %p, %r0, 20; {guard}\n\
         mad.lo.u32 %r2, %r0, 96, %r1;\n\
         and.b32 %r3, %r2, 7;\n\
         mul.wide.u32 %d1, %r3, 4; add.u64 %d2, %d0, %d1;\n\
         red.global.add.u32 [%d2], %r2;\n\
         ret;\n}}\n"
    )
}

fn run(trap: bool, threads: usize) -> Outcome {
    let (module, diagnostics) = Module::parse("k.ptx", &source(trap));
    assert!(diagnostics.iter().all(|d| !d.is_error()));
    let text = "kernel = \"k\"\n[sizes.one]\n[launch]\ngrid = [300]\nblock = [96]\n\
                [[args]]\nname = \"sums\"\ntype = \"u32\"\nshape = [8]\ninit = \"zeros\"\noutput = true\n";
    let launch = LaunchFile::parse(text, "k.toml")
        .unwrap()
        .resolve("one", &[])
        .unwrap();
    let program = Emulator::new(&module, "k").unwrap();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    let done = AtomicU64::new(0);
    let run = || program.run_counting(&launch, vec![vec![0; 32]], &Options::default(), &done);
    let outcome = pool.install(run).unwrap();
    // Whoever looks on sees the last block.
    let is_whole = done.into_inner() == launch.grid_blocks();
    assert!(is_whole || matches!(outcome, Outcome::Faulted(_)));
    outcome
}

#[test]
fn sums_do_not_depend_on_the_number_of_cores() {
    let sums = |threads| match run(false, threads) {
        Outcome::Finished(results) => (results.buffers, results.statistics),
        Outcome::Faulted(fault) => panic!("{fault}"),
    };
    let one = sums(1);
    let total: u32 = one.0[0]
        .chunks(4)
        .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
        .fold(0, u32::wrapping_add);
    assert_eq!(total, (0..300u32 * 96).fold(0, u32::wrapping_add));
    assert_eq!(one.1.thread_instructions % (300 * 96), 0);
    for threads in [2, 3, 8] {
        assert_eq!(sums(threads), one);
    }
}

#[test]
fn the_first_block_that_faults_is_reported() {
    for threads in [1, 2, 8] {
        match run(true, threads) {
            Outcome::Faulted(fault) => {
                assert_eq!((fault.kind, fault.block), (FaultKind::Trap, [20, 0, 0]));
            }
            Outcome::Finished(_) => panic!("no fault"),
        }
    }
}
