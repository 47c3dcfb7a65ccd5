//! The calculator against NVIDIA's own: every register count, block size and a grid of shared-memory sizes,
//! for every row that `cuda_occupancy.h` knows; blocks, limiting factors and the limit of each resource must
//! be the same.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use warpwright_target::{
    Architecture, Carveout, Gpu, LaunchError, Limiter, Occupancy, Options, Resources, Variant,
    architectures, occupancy_with,
};

/// Numbers of a record of the driver; see `header_driver.cpp`.
const FIELDS: usize = 8;
/// Register counts, from 1 up.
const REGISTER_COUNTS: usize = 255;
/// The driver's "no limit".
const UNLIMITED: u16 = u16::MAX;
/// `CUDA_OCC_ERROR_UNKNOWN_DEVICE`.
const UNKNOWN_DEVICE: u16 = 2;

/// One launch, but for the registers.
#[derive(Clone, Copy, Debug)]
struct Case {
    arch: &'static Architecture,
    options: Options,
    resources: Resources,
}

#[test]
fn agrees_with_nvidias_header() {
    let test = "agrees_with_nvidias_header";
    let Some(include) = support::header_directory() else {
        return support::skip(
            test,
            "no cuda_occupancy.h: run `warpwright toolkit install` or set CUDA_HOME",
        );
    };
    let Some(cxx) = support::cxx() else {
        return support::skip(test, "no C++ compiler: install one or set CXX");
    };
    let scratch = tempfile::tempdir().unwrap();
    let cases: Vec<Case> = rows(&include)
        .flat_map(|(arch, barriers)| cases(arch, barriers))
        .collect();
    let input = scratch.path().join("cases");
    fs::write(&input, describe(&cases)).unwrap();
    let driver = compile(&cxx, &include, scratch.path());
    let mut child = Command::new(driver)
        .stdin(File::open(input).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = BufReader::with_capacity(1 << 20, child.stdout.take().unwrap());
    let mut unknown = BTreeSet::new();
    let mut compared = 0_usize;
    for case in &cases {
        let mut bytes = [0; REGISTER_COUNTS * FIELDS * 2];
        answers
            .read_exact(&mut bytes)
            .expect("the driver stopped early");
        for (record, regs) in bytes.chunks_exact(FIELDS * 2).zip(1..) {
            let theirs: [u16; FIELDS] =
                std::array::from_fn(|i| u16::from_ne_bytes([record[2 * i], record[2 * i + 1]]));
            if theirs[0] == UNKNOWN_DEVICE {
                unknown.insert(case.arch.sm);
            } else if regs <= case.arch.registers.per_thread {
                compare(case, regs, &theirs);
                compared += 1;
            }
        }
    }
    assert!(child.wait().unwrap().success());
    println!(
        "{compared} launches compared with {}",
        include.join("cuda_occupancy.h").display()
    );
    for sm in unknown {
        support::skip(
            test,
            &format!("sm_{sm}: this cuda_occupancy.h is too old to know it"),
        );
    }
    assert!(compared > 5_000_000, "only {compared} launches compared");
}

/// The rows that the header knows, each with the barrier counts to try.
fn rows(include: &Path) -> impl Iterator<Item = (&'static Architecture, &'static [u32])> {
    // The header of CUDA 13.0 still reckons with 64 barriers on sm_103; 13.5 does with 32.
    let old = support::cuda_version(include).is_none_or(|version| version < 13_050);
    architectures()
        .filter(|arch| arch.sm >= 30)
        .map(move |arch| match arch.sm {
            103 if old => (arch, [].as_slice()),
            _ => (arch, [1, 2, 3, 8, 16].as_slice()),
        })
}

fn cases(arch: &'static Architecture, barriers: &[u32]) -> Vec<Case> {
    let block_sizes: Vec<u32> = (32..=1024)
        .step_by(32)
        .chain([1, 31, 33, 100, 250, 999, 1023])
        .collect();
    let some_block_sizes = [32, 96, 100, 128, 256, 999, 1024];
    let percents: &[u8] = if arch.sm >= 70 {
        &[0, 1, 25, 37, 50, 100]
    } else {
        &[0, 50, 100]
    };
    let shared = shared_sizes(arch);
    let default = Options::default();
    let mut cases = Vec::new();
    let mut add = |options, threads, (static_smem, dynamic_smem), barriers| {
        let resources = Resources {
            regs: 0,
            block_threads: threads,
            static_smem,
            dynamic_smem,
            barriers,
        };
        cases.push(Case {
            arch,
            options,
            resources,
        });
    };
    for &sizes in &shared {
        for &threads in &block_sizes {
            add(default, threads, sizes, 0);
            add(
                Options {
                    opt_in: false,
                    ..default
                },
                threads,
                sizes,
                0,
            );
        }
        for &percent in percents {
            for threads in some_block_sizes {
                add(
                    Options {
                        carveout: Carveout::Percent(percent),
                        ..default
                    },
                    threads,
                    sizes,
                    0,
                );
            }
        }
    }
    for &barriers in barriers {
        for &threads in &block_sizes {
            add(default, threads, (0, 0), barriers);
        }
    }
    cases
}

/// Static and dynamic sizes: nothing, odd ones, about each limit and just beyond.
fn shared_sizes(arch: &Architecture) -> Vec<(u32, u32)> {
    let memory = &arch.shared;
    let mut totals: BTreeSet<u32> =
        [0, 1, 127, 128, 129, 1000, 4096, 16_383, 20_481, 33_333].into();
    for limit in [
        memory.per_block,
        memory.per_block_opt_in,
        memory.per_sm,
        memory.per_sm / 2,
    ] {
        totals.extend([
            limit - 1025,
            limit - 1024,
            limit - 1023,
            limit - 1,
            limit,
            limit + 1,
            limit + 1025,
        ]);
    }
    let halved = |total: u32| [(total, 0), (total / 3, total - total / 3), (0, total)];
    let mut sizes: Vec<_> = totals
        .into_iter()
        .zip(0..)
        .map(|(total, i)| halved(total)[i % 3])
        .collect();
    sizes.extend(halved(10_001));
    sizes
}

/// The driver's input.
fn describe(cases: &[Case]) -> String {
    let mut text = String::new();
    for Case {
        arch,
        options,
        resources,
    } in cases
    {
        let (major, minor) = arch.compute_capability();
        let (threads, registers, shared) = (&arch.threads, &arch.registers, &arch.shared);
        let carveout = match options.carveout {
            Carveout::MaxShared => -1,
            Carveout::Percent(percent) => i32::from(percent),
        };
        writeln!(
            text,
            "{major} {minor} {} {} {} {} {} {} {} {} {carveout} {} {} {} {} {}",
            threads.per_block,
            threads.warps * 32,
            registers.per_block,
            registers.per_sm,
            shared.per_block,
            shared.per_sm,
            shared.per_block_opt_in,
            shared.reserved,
            u8::from(options.opt_in),
            resources.barriers,
            resources.static_smem,
            resources.dynamic_smem,
            resources.block_threads,
        )
        .unwrap();
    }
    text
}

fn compile(cxx: &str, include: &Path, scratch: &Path) -> PathBuf {
    let driver = scratch.join("header_driver");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/header_driver.cpp");
    let mut command = Command::new(cxx);
    command
        .args(["-std=c++17", "-O2", "-w", "-I"])
        .arg(include)
        .arg(source)
        .arg("-o")
        .arg(&driver);
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    driver
}

fn compare(case: &Case, regs: u32, theirs: &[u16; FIELDS]) {
    let gpu = Gpu {
        arch: case.arch,
        board: None,
        variant: Variant::Base,
    };
    let ours = occupancy_with(&gpu, &case.resources.regs(regs), &case.options);
    let same = match &ours {
        Ok(occupancy) => is_same(occupancy, theirs),
        Err(error) => theirs[1] == 0 && limit_of(error).is_some_and(|field| theirs[field] == 0),
    };
    assert!(
        same,
        "sm_{} at {regs} registers, {:?}, {:?}\nours: {ours:?}\ntheirs: status, blocks, factors, limits by \
         registers, shared memory, warps, blocks, barriers: {theirs:?}",
        case.arch.sm, case.resources, case.options,
    );
}

fn is_same(ours: &Occupancy, theirs: &[u16; FIELDS]) -> bool {
    let limits = [
        Limiter::Registers,
        Limiter::SharedMemory,
        Limiter::Warps,
        Limiter::Blocks,
        Limiter::Barriers,
    ]
    .map(|limiter| {
        ours.limits
            .of(limiter)
            .map_or(UNLIMITED, |limit| u16::try_from(limit).unwrap())
    });
    let bits = |limiter| match limiter {
        Limiter::Warps => 0x01,
        Limiter::Registers => 0x02,
        Limiter::SharedMemory => 0x04,
        Limiter::Blocks => 0x08,
        Limiter::Barriers => 0x10,
    };
    let factors: u16 = ours.limiters.iter().map(bits).sum();
    // The header leaves the factors of the other resources standing when barriers limit further.
    let by_barriers_alone = factors == bits(Limiter::Barriers);
    let theirs_factors = if by_barriers_alone {
        theirs[2] & factors
    } else {
        theirs[2]
    };
    (theirs[0], u32::from(theirs[1])) == (0, ours.blocks)
        && theirs_factors == factors
        && theirs[3..] == limits
}

/// The field of the record that must be 0 where the launch fails for this reason.
fn limit_of(error: &LaunchError) -> Option<usize> {
    match error {
        LaunchError::TooManyRegisters { .. } | LaunchError::RegistersExceeded { .. } => Some(3),
        LaunchError::SharedMemoryExceeded { .. } => Some(4),
        LaunchError::BlockTooLarge { .. } => Some(5),
        LaunchError::EmptyBlock | LaunchError::TooManyBarriers { .. } => None,
    }
}
