//! From what a kernel keeps busy to a time: the form that all predictors have, and the figures of a GPU's behaviour that no
//! table has, which they were fitted with.
//!
//! A predictor counts bytes, operations and waits of a stretch of a kernel, and divides each by its rate ([`Rates`],
//! [`Behaviour`]). Of what is busy at the same time the slowest sets the pace, and what is close to it adds to it ([`joined`]).

use crate::fact::{Confidence, Provenance};
use crate::gpu::Gpu;

/// The time of parts that are busy at the same time, in their own unit, and the slowest of them: the last of several that are
/// as slow. Near balance neither hides the others completely, so they are joined by a norm of this power. Parts are not
/// negative; without any the time is 0.
pub fn joined<N: Copy>(parts: &[(f64, N)], power: f64) -> (f64, Option<N>) {
    let sum: f64 = parts.iter().map(|(time, _)| time.powf(power)).sum();
    let slowest = parts.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    (sum.powf(1.0 / power), slowest.map(|(_, name)| *name))
}

/// How a GPU behaves under one kind of kernel. The kinds differ although the hardware is one: each figure was fitted together
/// with the other constants of its predictor, and takes up what that leaves out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behaviour {
    /// Bytes per clock and multiprocessor that the level-2 cache delivers.
    pub cache_bytes: f64,
    /// Cycles until a load from there or from memory arrives.
    pub arrival: f64,
    /// The power of the norm that joins what is busy.
    pub power: f64,
    /// What it was fitted to.
    pub source: Provenance,
}

const fn fitted(source: &'static str) -> Provenance {
    Provenance {
        confidence: Confidence::Measured,
        source,
    }
}

impl Behaviour {
    /// Tiles of naive kernels.
    pub const TILES: Behaviour = Behaviour {
        cache_bytes: 40.0,
        arrival: 700.0,
        power: 2.0,
        source: fitted("280 schedules of 23 kernels in examples/naive on an H200"),
    };
    /// Naive kernels that memory bounds: teams, totals, fours, squares.
    pub const FAMILIES: Behaviour = Behaviour {
        cache_bytes: 40.0,
        arrival: 800.0,
        power: 4.0,
        source: fitted("ways of kernels in examples/naive on an H200 (docs/naive.md)"),
    };
    /// Kernels that stream planes of a stencil.
    pub const STREAMS: Behaviour = Behaviour {
        cache_bytes: 24.7,
        arrival: 1333.0,
        power: 3.9,
        source: fitted(
            "215 kernels of the eight stencils in examples/stencils on an H200 (docs/stencils.md)",
        ),
    };
    /// Stencils as written and in boxes of points; a warp from its start to its end.
    pub const BOXES: Behaviour = Behaviour {
        cache_bytes: 34.0,
        arrival: 1700.0,
        power: 3.9,
        source: fitted(
            "ten stencils as written on an H200 (bench/results/h200-2026-11-22-stencils.json)",
        ),
    };
}

/// The power of the norm that joins the times of finished machine code (docs/model.md has the fit).
pub const NORM: f64 = 1.5;

/// How many times the bytes of device memory the level-2 cache moves in a cycle: spills, which follow each other
/// (docs/model.md has the fit), and scattered sectors (docs/regs.md).
pub const CACHE_OVER_MEMORY: [f64; 2] = [4.0, 1.0];

/// The rates of a board, of the typical one where none was named. Those of units stand in
/// [`Throughput`](crate::Throughput).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Multiprocessors.
    pub sms: f64,
    /// Clock in MHz.
    pub mhz: f64,
    /// Device memory in GB/s (10⁹ bytes a second): what a copy reaches, else the peak.
    pub gb_s: f64,
    /// Is it the peak?
    pub is_peak: bool,
    /// Instructions of a warp that a multiprocessor issues per clock.
    pub issued: f64,
}

impl Rates {
    /// The rates of a GPU.
    ///
    /// # Errors
    /// The name of the first figure that the tables do not have.
    pub fn of(gpu: &Gpu) -> Result<Rates, &'static str> {
        let board = gpu.typical_board().ok_or("which board it is")?;
        let sms = board.sms.ok_or("multiprocessors")?.value;
        let mhz = board.clock_mhz.ok_or("clock")?.value;
        let memory = board.copy_gb_s.or(board.dram_gb_s);
        Ok(Rates {
            sms: sms.into(),
            mhz: mhz.into(),
            gb_s: memory.ok_or("memory bandwidth")?.value.into(),
            is_peak: board.copy_gb_s.is_none(),
            issued: gpu.arch.schedulers.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test that cannot go on fails.

    use super::*;
    use crate::{
        MOST_SHARED_PER_BLOCK, RESIDENT_THREADS, SHARED_PER_BLOCK, WARP_SIZE, architectures, lookup,
    };

    #[test]
    fn what_is_close_to_the_slowest_adds_to_it() {
        let (alone, slowest) = joined(&[(3.0, "a"), (0.0, "b")], 2.0);
        assert_eq!((alone, slowest), (3.0, Some("a")));
        assert_eq!(joined(&[(3.0, "a"), (4.0, "b")], 2.0), (5.0, Some("b")));
        let (high, _) = joined(&[(3.0, ()), (4.0, ())], 64.0);
        assert!((4.0..4.001).contains(&high), "{high}");
        assert_eq!(joined::<()>(&[], 2.0), (0.0, None));
    }

    #[test]
    fn rates_are_the_tables() {
        let rates = Rates::of(&lookup("h200").unwrap()).unwrap();
        assert_eq!(
            (rates.sms, rates.issued, rates.is_peak),
            (132.0, 4.0, false)
        );
        // Every architecture has a typical board.
        for arch in architectures() {
            let gpu = lookup(&arch.sm.to_string()).unwrap();
            assert!(Rates::of(&gpu).err() != Some("which board it is"), "{gpu}");
        }
    }

    #[test]
    fn limits_of_all_are_the_tables() {
        let most = architectures().map(|arch| arch.threads.warps * WARP_SIZE);
        assert_eq!(most.max(), Some(RESIDENT_THREADS));
        for arch in architectures().filter(|arch| arch.sm >= 20) {
            assert_eq!(arch.shared.per_block, SHARED_PER_BLOCK);
        }
        let most = architectures().map(|arch| arch.shared.per_block_opt_in);
        assert_eq!(most.max(), Some(MOST_SHARED_PER_BLOCK));
    }
}
