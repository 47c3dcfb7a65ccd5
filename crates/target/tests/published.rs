//! Occupancies that papers, NVIDIA's guides and our own measurements state.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use warpwright_target::{
    Carveout, Gpu, LaunchError, Limiter, Options, Resources, desired_registers, lookup,
    most_shared_memory, occupancy, occupancy_with, registers_for_one_more_block, staircase,
};

const KB: u32 = 1024;

fn gpu(name: &str) -> Gpu {
    lookup(name).unwrap()
}

fn limiters(gpu: &Gpu, resources: &Resources) -> Vec<Limiter> {
    occupancy(gpu, resources).unwrap().limiters.iter().collect()
}

/// You & Tsai 2011, Table 1: 256 threads, 17 registers, 4 KB of shared memory on compute capability 1.3.
const TABLE_1: Resources = Resources::new(17, 256).static_smem(4 * KB);

#[test]
fn you_tsai_table_2() {
    let sm_13 = gpu("sm_13");
    let result = occupancy(&sm_13, &TABLE_1).unwrap();
    let warps = |limit: Option<u32>| limit.unwrap() * (256 / 32);
    assert_eq!(warps(result.limits.registers), 24);
    assert_eq!(warps(result.limits.shared_memory), 32);
    assert_eq!(warps(Some(result.limits.blocks)), 64);
    assert_eq!((result.blocks, result.warps, result.percent), (3, 24, 75.0));
    assert_eq!(limiters(&sm_13, &TABLE_1), [Limiter::Registers]);
}

#[test]
fn you_tsai_desired_register_usage() {
    let sm_13 = gpu("gtx285");
    assert_eq!(desired_registers(&sm_13, 256, 4), Some(16));
    assert_eq!(registers_for_one_more_block(&sm_13, &TABLE_1), Ok(Some(16)));
    let reduced = occupancy(&sm_13, &TABLE_1.regs(16)).unwrap();
    assert_eq!((reduced.warps, reduced.percent), (32, 100.0));
    // Now registers, shared memory and warps keep a fifth block out alike.
    let all = [Limiter::Registers, Limiter::SharedMemory, Limiter::Warps];
    assert_eq!(limiters(&sm_13, &TABLE_1.regs(16)), all);
    assert_eq!(
        registers_for_one_more_block(&sm_13, &TABLE_1.regs(16)),
        Ok(None)
    );
}

/// CUDA C++ Best Practices Guide, Calculating Occupancy (stated for 7.0; the register rules of 8.0 and 9.0
/// are the same).
#[test]
fn best_practices_guide() {
    for name in ["sm_80", "sm_90"] {
        let gpu = gpu(name);
        let small = occupancy(&gpu, &Resources::new(37, 128)).unwrap();
        assert_eq!((small.blocks, small.percent), (12, 75.0), "{name}");
        let large = occupancy(&gpu, &Resources::new(37, 320)).unwrap();
        assert_eq!((large.blocks, large.percent), (4, 62.5), "{name}");
    }
}

/// CUDA C++ Programming Guide, Multiprocessor Level: 64 registers and 512 threads give two blocks, one
/// register more gives one.
#[test]
fn programming_guide() {
    for name in ["sm_52", "sm_80", "sm_90", "sm_100"] {
        let gpu = gpu(name);
        assert_eq!(
            occupancy(&gpu, &Resources::new(64, 512)).unwrap().blocks,
            2,
            "{name}"
        );
        assert_eq!(
            occupancy(&gpu, &Resources::new(65, 512)).unwrap().blocks,
            1,
            "{name}"
        );
    }
}

/// RegDem, section 2: on Maxwell a thread can have 32 registers at full occupancy.
#[test]
fn regdem_maxwell() {
    let maxwell = gpu("titan-x-maxwell");
    assert_eq!(
        occupancy(&maxwell, &Resources::new(32, 256))
            .unwrap()
            .percent,
        100.0
    );
    assert!(
        occupancy(&maxwell, &Resources::new(33, 256))
            .unwrap()
            .percent
            < 100.0
    );
    assert_eq!(desired_registers(&maxwell, 256, 8), Some(32));
}

/// CRAT, section 1, CFD: 8 blocks at 32 registers fill the file of Fermi, so a block has 128 threads; 7
/// blocks can have 36 registers.
#[test]
fn crat_cfd() {
    let fermi = gpu("sm_20");
    assert_eq!(desired_registers(&fermi, 128, 8), Some(32));
    assert_eq!(desired_registers(&fermi, 128, 7), Some(36));
}

/// The CUDA Occupancy Calculator's rule for 2.x: registers per warp in units of 64, warps in pairs.
#[test]
fn fermi() {
    let fermi = gpu("sm_20");
    let result = occupancy(&fermi, &Resources::new(21, 192)).unwrap();
    assert_eq!((result.blocks, result.warps), (7, 42));
    // 63 registers take 2,048 of one warp: 16 warps in all; 160 threads are 5 warps.
    assert_eq!(
        occupancy(&fermi, &Resources::new(63, 160)).unwrap().blocks,
        3
    );
    assert_eq!(
        staircase(&fermi, 256, 0, 0).unwrap().first().unwrap().regs,
        63
    );
}

/// Seen on an H200: three blocks with 75 KB of static shared memory reside; 210,944 bytes launch.
#[test]
fn h200_static_sections() {
    let h200 = gpu("h200");
    let block = |bytes| Resources::new(32, 256).static_smem(bytes);
    assert_eq!(occupancy(&h200, &block(75 * KB)).unwrap().blocks, 3);
    assert_eq!(occupancy(&h200, &block(75 * KB + 1)).unwrap().blocks, 2);
    assert_eq!(occupancy(&h200, &block(210_944)).unwrap().blocks, 1);
    assert_eq!(most_shared_memory(&h200, 3), Some(75 * KB));
    assert_eq!(most_shared_memory(&h200, 1), Some(227 * KB));
    assert_eq!(limiters(&h200, &block(75 * KB)), [Limiter::SharedMemory]);
}

#[test]
fn preferred_carveout_limits_blocks() {
    let h200 = gpu("h200");
    let kernel = Resources::new(32, 256).dynamic_smem(10 * KB);
    let blocks = |percent| {
        let options = Options {
            carveout: Carveout::Percent(percent),
            ..Options::default()
        };
        occupancy_with(&h200, &kernel, &options)
            .unwrap()
            .limits
            .shared_memory
    };
    // 11 KB with the reserved part; carve-outs of 16, 64, 132 and 228 KB.
    assert_eq!(
        [0, 20, 50, 100, 255].map(blocks),
        [1, 5, 12, 20, 20].map(Some)
    );
}

#[test]
fn staircase_of_a_hopper_kernel() {
    let steps: Vec<_> = staircase(&gpu("sm_90"), 256, 0, 0)
        .unwrap()
        .iter()
        .map(|s| (s.blocks, s.warps, s.regs))
        .collect();
    let expected = [
        (1, 8, 255),
        (2, 16, 128),
        (3, 24, 80),
        (4, 32, 64),
        (5, 40, 48),
        (6, 48, 40),
        (8, 64, 32),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn launch_errors_say_what_is_wrong() {
    let sm_90 = gpu("sm_90");
    let message = |resources| occupancy(&sm_90, &resources).unwrap_err().to_string();
    assert_eq!(
        message(Resources::new(32, 0)),
        "a block of 0 threads cannot be launched"
    );
    assert_eq!(
        message(Resources::new(32, 1025)),
        "a block of 1025 threads is larger than the 1024 that the device allows"
    );
    assert_eq!(
        message(Resources::new(256, 32)),
        "256 registers per thread are more than the 255 that the device allows"
    );
    assert_eq!(
        message(Resources::new(65, 1024)),
        "a block of 1024 threads at 65 registers takes 73728 registers, more than the 65536 that the device \
         allows: one of 896 threads fits"
    );
    assert_eq!(
        message(
            Resources::new(32, 32)
                .static_smem(200 * KB)
                .dynamic_smem(27 * KB + 1)
        ),
        "a block takes 233600 bytes of shared memory (1024 of them reserved by the system), more than the \
         233472 that the device allows"
    );
    assert_eq!(
        message(Resources {
            barriers: 17,
            ..Resources::new(32, 32)
        }),
        "17 barriers are more than the 16 that a block can name"
    );
    assert!(matches!(
        staircase(&sm_90, 2000, 0, 0),
        Err(LaunchError::BlockTooLarge { .. })
    ));
    assert_eq!(desired_registers(&sm_90, 0, 1), None);
    assert_eq!(desired_registers(&sm_90, 256, 0), None);
    assert_eq!(desired_registers(&sm_90, 256, u32::MAX), None);
}

#[test]
fn more_than_48_kb_can_be_refused() {
    let kernel = Resources::new(32, 256).dynamic_smem(48 * KB + 1);
    let strict = Options {
        opt_in: false,
        ..Options::default()
    };
    for name in ["sm_75", "sm_90", "sm_120"] {
        assert!(occupancy(&gpu(name), &kernel).is_ok(), "{name}");
        let error = occupancy_with(&gpu(name), &kernel, &strict).unwrap_err();
        assert!(
            matches!(error, LaunchError::SharedMemoryExceeded { .. }),
            "{name}"
        );
    }
}
