//! OptTLP without running the kernel: the number of resident blocks beyond which more of them do
//! not help, or hurt (CRAT, section 4.1).
//!
//! The kernel is sampled into segments ([`crate::sample`]); for each number of blocks the share of
//! accesses that the first-level cache loses is worked out ([`crate::reuse`]), and the scheduler
//! is mimicked with the latencies and the traffic that follow ([`crate::mimic`]).
//!
//! Departure: the paper takes the number of blocks that are involved when the first block ends.
//! With cache contention that number grows where it should fall, because longer waits involve more
//! blocks. Here every number of blocks does the same work, and the largest number within
//! [`TOLERANCE`] of the fastest is the answer: the mimic sees contention better than it sees how much
//! latency more warps hide (docs/regs.md). The paper's number is reported beside it.

use serde::{Deserialize, Serialize};
use warpwright_ptx::{FuncId, Module};
use warpwright_target::{CACHE_OVER_MEMORY, Gpu, WARP_SIZE};

use crate::cost::{Costs, figure};
use crate::mimic::{Work, mimic};
use crate::reuse::Reuse;
use crate::sample::{Code, Segment, Warp};
use crate::stall::{Parameters, memory_bytes_per_cycle};

/// Numbers of blocks that differ by less than this share of the time are equal.
pub const TOLERANCE: f64 = 0.02;
/// At most so many numbers of blocks are tried, evenly spread.
const MOST_TRIED: u32 = 12;

/// How a kernel is launched, as far as this model asks.
#[derive(Debug, Clone, Copy)]
pub struct Launched {
    /// Threads per block.
    pub block: [u32; 3],
    /// Shared memory in bytes per block, the reserved part included.
    pub shared_bytes: u32,
    /// The most blocks that reside, registers aside.
    pub most_blocks: u32,
}

/// The mimic's time at one number of resident blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Resident blocks per SM.
    pub blocks: u32,
    /// Cycles for the same work, over the fastest point's.
    pub relative_time: f64,
    /// The same over the time without any loss in the first-level cache: 1 is no contention.
    pub contention: f64,
}

/// The estimate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptTlp {
    /// Blocks per SM: the largest number within the tolerance of the fastest.
    pub blocks: u32,
    /// The paper's number: blocks involved when the first one ends, all that can reside resident.
    pub involved: u32,
    /// Ascending in blocks.
    pub points: Vec<Point>,
}

impl OptTlp {
    /// How much longer the kernel takes because blocks take each other's lines, at this number of
    /// them (1 is not at all).
    pub fn contention(&self, blocks: u32) -> f64 {
        self.at(blocks, |p| p.contention)
    }

    /// The mimic's time at this number of blocks, over the fastest point's.
    pub fn relative_time(&self, blocks: u32) -> f64 {
        self.at(blocks, |p| p.relative_time)
    }

    /// A figure between the points that were tried: linear.
    fn at(&self, blocks: u32, figure: fn(&Point) -> f64) -> f64 {
        let after = self.points.partition_point(|p| p.blocks < blocks);
        let before = after.checked_sub(1).and_then(|i| self.points.get(i));
        match (before, self.points.get(after)) {
            (_, Some(p)) if p.blocks == blocks => figure(p),
            (Some(a), Some(b)) => {
                let share = f64::from(blocks - a.blocks) / f64::from(b.blocks - a.blocks);
                figure(a) + share * (figure(b) - figure(a))
            }
            (Some(p), None) | (None, Some(p)) => figure(p),
            (None, None) => 1.0,
        }
    }
}

/// Estimates OptTLP; `None` if the function has no body or nothing can reside.
pub fn opt_tlp(module: &Module, kernel: FuncId, gpu: &Gpu, launched: &Launched) -> Option<OptTlp> {
    let costs = Costs::new(gpu);
    let warp = |index| Warp {
        block: launched.block,
        index,
    };
    let code = Code::new(module, kernel, &costs)?;
    let segments = code.sample(&warp(0));
    // A block far away: neighbours may read the same lines without sharing them with everybody.
    let other = code.sample(&warp(500));
    let reuse = Reuse::new(&segments, &other, costs.line_bytes);
    let memory = Memory::new(gpu, &costs, launched);
    let threads: u32 = launched.block.iter().product();
    let warps = threads.div_ceil(WARP_SIZE).max(1);
    // Blocks of fewer warps than there are schedulers: the scheduler sees single warps.
    let schedulers = gpu.arch.schedulers.max(1);
    let (per_block, blocks_here) = match warps / schedulers {
        0 => (1, f64::from(warps) / f64::from(schedulers)),
        n => (n, 1.0),
    };
    let here = |blocks: u32| ((f64::from(blocks) * blocks_here).ceil() as u32).max(1);
    let all = 2 * here(launched.most_blocks);
    let run = |blocks: u32, contended: bool| {
        let work = memory.work(&segments, &reuse, blocks, blocks * warps, contended);
        (mimic(&work, per_block, here(blocks), all), work)
    };
    let mut points: Vec<Point> = Vec::new();
    let mut involved = 0;
    for blocks in tried(launched.most_blocks) {
        let (with, work) = run(blocks, true);
        let calm = memory.work(&segments, &reuse, blocks, blocks * warps, false);
        let contention = match calm == work {
            true => 1.0,
            false => with.cycles / run(blocks, false).0.cycles,
        };
        involved = (f64::from(with.involved) / blocks_here).ceil() as u32;
        points.push(Point {
            blocks,
            relative_time: with.cycles,
            contention: contention.max(1.0),
        });
    }
    let fastest = points.iter().map(|p| p.relative_time).reduce(f64::min)?;
    for point in &mut points {
        point.relative_time /= fastest.max(f64::MIN_POSITIVE);
    }
    let good = |p: &&Point| p.relative_time <= 1.0 + TOLERANCE;
    let best = points.iter().rfind(good)?;
    Some(OptTlp {
        blocks: best.blocks,
        involved: involved.min(launched.most_blocks),
        points,
    })
}

/// 1 to `most`, all of them or evenly spread.
fn tried(most: u32) -> Vec<u32> {
    let count = most.min(MOST_TRIED);
    let mut blocks: Vec<u32> = (1..=count).map(|i| i * most / count.max(1)).collect();
    blocks.insert(0, most.min(1));
    blocks.dedup();
    blocks.retain(|&b| b > 0);
    blocks
}

/// The memory system as one scheduler sees it.
struct Memory {
    l1: f64,
    l2: f64,
    far: f64,
    /// Cycles per sector from the second level.
    near_transfer: f64,
    /// Cycles per sector that was never there, beyond the second level's share.
    far_transfer: f64,
    line_bytes: f64,
    first_level: u32,
    carveouts: &'static [u32],
    shared_bytes: u32,
}

impl Memory {
    fn new(gpu: &Gpu, costs: &Costs, launched: &Launched) -> Self {
        let parameters = Parameters::default();
        let table = &gpu.arch.latency;
        let l1 = figure(table.l1, 32);
        let l2 = figure(table.l2.or(table.l1), 200);
        let dram = figure(table.dram.or(table.l2), 500);
        let schedulers = f64::from(gpu.arch.schedulers.max(1));
        let per_sector = memory_bytes_per_cycle(gpu).map_or(0.0, |bytes| {
            f64::from(costs.sector_bytes) * schedulers / bytes
        });
        Memory {
            l1,
            l2,
            far: l2 + parameters.dram_share * (dram - l2),
            near_transfer: per_sector / CACHE_OVER_MEMORY[1],
            far_transfer: per_sector * parameters.traffic_share,
            line_bytes: f64::from(costs.line_bytes),
            first_level: gpu.arch.l1_bytes.map_or(0, |f| f.value),
            carveouts: gpu.arch.shared.carveouts,
            shared_bytes: launched.shared_bytes,
        }
    }

    /// Lines of the first-level cache beside the carve-out that so many blocks need.
    fn lines(&self, blocks: u32) -> f64 {
        let need = self.shared_bytes.saturating_mul(blocks);
        let carveout = self.carveouts.iter().copied().find(|&c| c >= need);
        let left = self.first_level.saturating_sub(carveout.unwrap_or(need));
        f64::from(left) / self.line_bytes
    }

    /// The segments at a residency; without contention, as if every warp had the cache to itself.
    fn work(
        &self,
        segments: &[Segment],
        reuse: &Reuse,
        blocks: u32,
        warps: u32,
        contended: bool,
    ) -> Vec<Work> {
        let (warps, lines) = (f64::from(warps), self.lines(blocks));
        let one = |(index, segment): (usize, &Segment)| {
            let cold = reuse.cold(index);
            let lost = match contended {
                true => reuse.lost(index, warps, lines),
                false => 0.0,
            };
            let waits = !segment.sectors.is_empty();
            let latency = self.l1
                + (self.l2 - self.l1) * lost.min(1.0)
                + (self.far - self.l1) * cold.min(1.0);
            Work {
                issue: segment.issue,
                alone: segment.alone,
                latency: if waits { latency.min(self.far) } else { 0.0 },
                transfer: lost * self.near_transfer + cold * self.far_transfer,
            }
        };
        segments.iter().enumerate().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_target::lookup;

    fn estimate(body: &str, launched: &Launched) -> OptTlp {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, \
             .param .u32 n)\n{{\n{body}\n}}\n"
        );
        let (module, diagnostics) = Module::parse("t.ptx", &text);
        assert!(diagnostics.iter().all(|d| !d.is_error()), "{diagnostics:?}");
        let kernel = module.function("k").unwrap();
        opt_tlp(&module, kernel, &lookup("h200").unwrap(), launched).unwrap()
    }

    const PROLOGUE: &str = ".reg .b64 %d<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %p<2>;\n\
        ld.param.u64 %d0, [a]; ld.param.u32 %r3, [n];\n\
        mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 256, %r0;\n";
    const EIGHT_BLOCKS: Launched = Launched {
        block: [256, 1, 1],
        shared_bytes: 1024,
        most_blocks: 8,
    };

    /// Each thread reads a row of its own, four bytes at a time: a line per lane must stay in the
    /// cache for eight iterations (k-means, sparse rows).
    #[test]
    fn rows_of_their_own_contend() {
        let body = format!(
            "{PROLOGUE} mul.lo.u32 %r4, %r2, %r3; mul.wide.u32 %d1, %r4, 4; add.u64 %d2, %d0, %d1;\n\
             mov.u32 %r5, 0; mov.f32 %f0, 0f00000000;\n$L:\n\
             ld.global.f32 %f1, [%d2]; add.f32 %f0, %f0, %f1; add.u64 %d2, %d2, 4;\n\
             add.u32 %r5, %r5, 1; setp.lt.u32 %p0, %r5, %r3; @%p0 bra $L;\n\
             st.global.f32 [%d0], %f0; ret;"
        );
        let found = estimate(&body, &EIGHT_BLOCKS);
        // 64 warps · 32 lines · 128 bytes is all of the cache.
        assert!(found.contention(8) > 1.2, "{found:?}");
        assert_eq!(found.contention(4), 1.0, "{found:?}");
        assert!(found.blocks < 8, "{found:?}");
        let launched = Launched {
            shared_bytes: 20 << 10,
            ..EIGHT_BLOCKS
        };
        let smaller = estimate(&body, &launched);
        assert!(
            smaller.blocks < 8,
            "with most of it carved out: {smaller:?}"
        );
    }

    #[test]
    fn streaming_does_not_contend_and_wants_many_blocks() {
        let body = format!(
            "{PROLOGUE} mul.wide.u32 %d1, %r2, 4; add.u64 %d2, %d0, %d1;\n\
             mov.u32 %r5, 0; mov.f32 %f0, 0f00000000;\n$L:\n\
             ld.global.f32 %f1, [%d2]; add.f32 %f0, %f0, %f1; add.u64 %d2, %d2, 1048576;\n\
             add.u32 %r5, %r5, 1; setp.lt.u32 %p0, %r5, %r3; @%p0 bra $L;\n\
             st.global.f32 [%d0], %f0; ret;"
        );
        let found = estimate(&body, &EIGHT_BLOCKS);
        assert!(
            found.points.iter().all(|p| p.contention == 1.0),
            "{found:?}"
        );
        assert!(found.blocks > 2, "{found:?}");
    }

    #[test]
    fn arithmetic_alone_is_as_fast_with_few_blocks() {
        let chain = "fma.rn.f32 %f0, %f0, %f0, %f0;".repeat(200);
        let body =
            format!("{PROLOGUE} mov.f32 %f0, 0f3f800000; {chain} st.global.f32 [%d0], %f0; ret;");
        let found = estimate(&body, &EIGHT_BLOCKS);
        assert!(found.relative_time(3) <= 1.0 + TOLERANCE, "{found:?}");
        assert_eq!(found.blocks, 8, "nothing speaks against more: {found:?}");
    }

    #[test]
    fn between_the_points_figures_are_linear() {
        let point = |blocks, relative_time| Point {
            blocks,
            relative_time,
            contention: 1.0,
        };
        let found = OptTlp {
            blocks: 4,
            involved: 4,
            points: vec![point(2, 3.0), point(4, 1.0)],
        };
        let times = [1, 2, 3, 4, 9].map(|blocks| found.relative_time(blocks));
        assert_eq!(times, [3.0, 3.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn the_numbers_tried_are_spread() {
        assert_eq!(tried(3), [1, 2, 3]);
        assert_eq!(tried(32).len(), 13);
        assert_eq!(tried(32).last(), Some(&32));
        assert_eq!(tried(0), [0; 0]);
    }
}
