//! What must hold for every architecture and every kernel.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use warpwright_target::{
    Gpu, LaunchError, Limiter, Resources, Variant, architectures, desired_registers,
    most_shared_memory, occupancy, registers_for_one_more_block, staircase,
};

fn gpus() -> impl Strategy<Value = Gpu> {
    let gpus: Vec<Gpu> = architectures()
        .map(|arch| Gpu {
            arch,
            board: None,
            variant: Variant::Base,
        })
        .collect();
    prop::sample::select(gpus)
}

fn kernels() -> impl Strategy<Value = Resources> {
    let size = prop_oneof![Just(0), 0_u32..50_000, 0_u32..240_000];
    (0_u32..260, 0_u32..1100, size, 0_u32..9000, 0_u32..=16).prop_map(
        |(regs, block_threads, static_smem, dynamic_smem, barriers)| Resources {
            regs,
            block_threads,
            static_smem,
            dynamic_smem,
            barriers,
        },
    )
}

/// Blocks that reside; none where the launch fails.
fn blocks(gpu: &Gpu, resources: &Resources) -> u32 {
    occupancy(gpu, resources).map_or(0, |occupancy| occupancy.blocks)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn more_of_anything_never_gives_more_blocks(gpu in gpus(), kernel in kernels()) {
        let now = blocks(&gpu, &kernel);
        let more = [
            Resources { regs: kernel.regs + 1, ..kernel },
            Resources { block_threads: kernel.block_threads.max(1) + 1, ..kernel },
            Resources { static_smem: kernel.static_smem + 1, ..kernel },
            Resources { dynamic_smem: kernel.dynamic_smem + 1, ..kernel },
            Resources { barriers: kernel.barriers + 1, ..kernel },
        ];
        if kernel.block_threads > 0 {
            for more in more {
                prop_assert!(blocks(&gpu, &more) <= now, "{more:?}");
            }
        }
    }

    #[test]
    fn the_result_is_the_smallest_limit(gpu in gpus(), kernel in kernels()) {
        if let Ok(result) = occupancy(&gpu, &kernel) {
            let limits = Limiter::ALL.map(|limiter| result.limits.of(limiter));
            prop_assert_eq!(Some(result.blocks), limits.into_iter().flatten().min());
            prop_assert!(result.blocks > 0);
            prop_assert!(result.warps <= gpu.arch.threads.warps && result.percent <= 100.0);
            for limiter in Limiter::ALL {
                let binds = result.limits.of(limiter) == Some(result.blocks);
                prop_assert_eq!(result.limiters.contains(limiter), binds);
            }
        }
    }

    /// Against the calculator at every register count: the steps are exactly the block counts that some
    /// register count reaches, each with the largest such count.
    #[test]
    fn stairs_are_all_there_and_maximal(gpu in gpus(), kernel in kernels()) {
        let shape = Resources { regs: 0, barriers: 0, ..kernel };
        let stairs = staircase(&gpu, shape.block_threads, shape.static_smem, shape.dynamic_smem);
        let mut expected: Vec<(u32, u32)> = Vec::new();
        for regs in (1..=gpu.arch.registers.per_thread).rev() {
            let blocks = blocks(&gpu, &shape.regs(regs));
            if blocks > 0 && expected.last().is_none_or(|&(last, _)| last < blocks) {
                expected.push((blocks, regs));
            }
        }
        match stairs {
            Ok(stairs) => {
                let found: Vec<_> = stairs.iter().map(|stair| (stair.blocks, stair.regs)).collect();
                prop_assert_eq!(found, expected);
            }
            Err(LaunchError::TooManyRegisters { .. } | LaunchError::RegistersExceeded { .. }) => {
                prop_assert!(false, "a staircase has no register count");
            }
            Err(_) => prop_assert!(expected.is_empty()),
        }
    }

    #[test]
    fn desired_registers_are_the_inverse_of_the_register_limit(
        gpu in gpus(), threads in 1_u32..=1024, wanted in 1_u32..40,
    ) {
        let limit = |regs| occupancy(&gpu, &Resources::new(regs, threads)).ok()?.limits.registers;
        let found = desired_registers(&gpu, threads, wanted);
        let expected = (1..=gpu.arch.registers.per_thread).rev().find(|&regs| limit(regs) >= Some(wanted));
        if threads <= gpu.arch.threads.per_block {
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn one_more_block_is_what_the_fewer_registers_give(gpu in gpus(), kernel in kernels()) {
        if let Ok(now) = occupancy(&gpu, &kernel) {
            match registers_for_one_more_block(&gpu, &kernel).unwrap() {
                Some(regs) => {
                    prop_assert!(regs < kernel.regs);
                    prop_assert!(blocks(&gpu, &kernel.regs(regs)) > now.blocks);
                    prop_assert_eq!(blocks(&gpu, &kernel.regs(regs + 1)), now.blocks);
                }
                None => prop_assert_eq!(blocks(&gpu, &kernel.regs(1)), now.blocks),
            }
        }
    }

    #[test]
    fn most_shared_memory_is_maximal(gpu in gpus(), wanted in 1_u32..40) {
        let limit = |bytes| {
            let kernel = Resources::new(1, 32).static_smem(bytes);
            occupancy(&gpu, &kernel).ok().map(|result| result.limits.shared_memory.unwrap_or(u32::MAX))
        };
        if let Some(bytes) = most_shared_memory(&gpu, wanted) {
            prop_assert!(limit(bytes) >= Some(wanted));
            prop_assert!(limit(bytes + 1) < Some(wanted));
        }
    }

    #[test]
    fn no_input_panics(gpu in gpus(), r in any::<[u32; 5]>()) {
        let [regs, block_threads, static_smem, dynamic_smem, barriers] = r;
        let kernel = Resources { regs, block_threads, static_smem, dynamic_smem, barriers };
        let _ = occupancy(&gpu, &kernel);
        let _ = registers_for_one_more_block(&gpu, &kernel);
        let _ = staircase(&gpu, block_threads, static_smem, dynamic_smem);
        let _ = desired_registers(&gpu, block_threads, barriers);
        let _ = most_shared_memory(&gpu, barriers);
        let _ = warpwright_target::lookup(&format!("sm_{regs}a"));
    }
}
