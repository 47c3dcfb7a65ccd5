//! How long a plan should take, from what its step costs and the facts about the GPU.
//!
//! A step keeps six things busy; the slowest sets the pace, those close to it add to it (a norm of
//! a high power stands for that):
//!
//! - device memory: what the computed points of the tiles read and write, each once;
//! - the path from the level-2 cache: the same with the tiles' halos;
//! - shared memory and the load/store units: reads, writes, and the copies that arrive;
//! - double- or single-precision units;
//! - issue slots;
//! - latency: barriers and the chain of operations of one step, which the other resident blocks
//!   have to cover.
//!
//! The number of resident blocks follows from the occupancy calculator, with registers estimated
//! from the values alive at once in the text. Blocks come in waves; a partial last wave costs
//! between its share and a whole one.
//!
//! The constants in [`Fit`] are fitted, not derived: to 215 kernels of the eight stencils in
//! examples/stencils, measured on an H200 (docs/stencils.md). They stand for the
//! behaviour of one GPU and are the weakest part of the model elsewhere.

use warpwright_target::{Behaviour, Gpu, Rates, Resources, joined, occupancy};

use super::generate::Kernel;
use super::plan::Refusal;
use crate::evaluate::Sizes;

/// A prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Milliseconds for a sweep.
    pub ms: f64,
    /// What limits it.
    pub bound: &'static str,
}

/// Constants of the model.
struct Fit {
    /// Registers that every kernel takes.
    base_registers: f64,
    /// Of the registers for values alive in the text's order, the part that the compiler needs.
    alive: f64,
    /// Instructions for an operation of the text: some are fused.
    fused: f64,
    /// Instructions of a step beside operations and accesses.
    overhead: f64,
    /// Cycles of a step that nothing of its own block covers: always, for a barrier, and for an
    /// operation.
    step: f64,
    barrier: f64,
    operation: f64,
    /// The part of it that one resident block alone cannot cover.
    exposed: f64,
    /// How much of a partial last wave is paid by its share only.
    share: f64,
    /// Steps before a block computes.
    start: f64,
    /// Bytes of local memory traffic for a register too many, relative to shared memory.
    spill: f64,
    /// All of it: the other constants were fitted to the order of the kernels, and their times came out too long.
    scale: f64,
}

const STREAMS: Behaviour = Behaviour::STREAMS;

const FIT: Fit = Fit {
    base_registers: 30.0,
    alive: 1.0,
    fused: 1.0,
    overhead: 30.0,
    step: 100.0,
    barrier: 288.0,
    operation: 2.26,
    exposed: 0.41,
    share: 0.52,
    start: 5.2,
    spill: 0.52,
    scale: 0.8,
};

/// The figures of a GPU that the model needs.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    gpu: Gpu,
    multiprocessors: f64,
    clock_hz: f64,
    /// Bytes per clock and multiprocessor.
    memory: f64,
    shared: f64,
    /// Results per clock and multiprocessor.
    fp32: f64,
    fp64: f64,
    /// Instructions of a warp per clock and multiprocessor.
    pub(super) issued: f64,
}

impl Machine {
    /// Collects the figures; the error names the one that is missing.
    pub fn new(gpu: &Gpu) -> Result<Machine, Refusal> {
        let missing = |what: &str| Refusal::new(format!("no figure for this GPU: {what}"));
        let board = Rates::of(gpu).map_err(missing)?;
        // A copy reaches some nine tenths of the peak.
        let bandwidth = board.gb_s * if board.is_peak { 0.9 } else { 1.0 };
        let rates = &gpu.arch.throughput;
        let clock_hz = board.mhz * 1e6;
        Ok(Machine {
            gpu: *gpu,
            multiprocessors: board.sms,
            clock_hz,
            issued: board.issued,
            memory: bandwidth * 1e9 / board.sms / clock_hz,
            shared: f64::from(
                rates
                    .shared_bytes
                    .ok_or_else(|| missing("shared memory"))?
                    .value,
            ),
            fp32: f64::from(rates.fp32.ok_or_else(|| missing("FP32 rate"))?.value),
            fp64: f64::from(rates.fp64.ok_or_else(|| missing("FP64 rate"))?.value),
        })
    }

    pub(super) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Multiprocessors, clock in Hz, and per clock and multiprocessor: bytes of device memory, results in single and
    /// in double precision.
    pub(super) fn rates(&self) -> [f64; 5] {
        [
            self.multiprocessors,
            self.clock_hz,
            self.memory,
            self.fp32,
            self.fp64,
        ]
    }

    /// Registers per thread that the compiler should need.
    pub fn registers(&self, kernel: &Kernel) -> f64 {
        let cost = &kernel.cost;
        FIT.base_registers + f64::from(cost.registers) + FIT.alive * f64::from(cost.alive)
    }

    /// The time of a sweep; `None` if the kernel cannot be launched or has nothing to compute.
    pub fn predict(&self, kernel: &Kernel, sizes: &Sizes) -> Option<Prediction> {
        let (cost, plan) = (&kernel.cost, &kernel.plan);
        let threads = f64::from(plan.threads());
        let wanted = self.registers(kernel);
        let room = self.room(plan.threads() * plan.min_blocks)?;
        let registers = wanted.min(f64::from(room)).ceil() as u32;
        let spilled = (wanted - f64::from(room)).max(0.0);
        let resources = Resources::new(registers, plan.threads()).dynamic_smem(kernel.shared_bytes);
        let resident = occupancy(&self.gpu, &resources).ok()?.blocks;
        let blocks = kernel.blocks(sizes).iter().product::<u64>() as f64;
        if resident == 0 || blocks == 0.0 {
            return None;
        }
        // Few blocks spread over all multiprocessors.
        let together = f64::from(resident).min((blocks / self.multiprocessors).ceil());
        let waves = (blocks / (self.multiprocessors * together)).max(1.0);
        let waves = waves.ceil() * (1.0 - FIT.share) + waves * FIT.share;
        let [_, _, planes] = kernel.domain(sizes);
        let chunk = planes.min(u64::from(plan.chunk)) as f64;
        let steps = chunk + f64::from(cost.extra_planes) + FIT.start;

        let size = f64::from(cost.element_bytes);
        // More than a pair of neighbours: each store leaves gaps that the next ones fill.
        let gaps = f64::from((plan.points[0] / 2).max(1));
        let own = (f64::from(cost.loaded) + f64::from(cost.stored) * gaps) * size * threads;
        let brought = f64::from(cost.copied) * size + own;
        let rate = if size == 8.0 { self.fp64 } else { self.fp32 };
        let operations = f64::from(cost.operations) * FIT.fused;
        let accesses = f64::from(cost.shared_bytes) / size * 0.7;
        let traffic = f64::from(cost.shared_bytes) * threads + brought;
        let spills = spilled * 8.0 * threads * FIT.spill;
        let tile = f64::from(kernel.tile[0] * kernel.tile[1]);
        // Short rows leave parts of cache lines to other blocks.
        let torn = match cost.copied {
            0 => 1.0,
            copied => f64::from(cost.copied_lines) / (f64::from(copied) * size),
        };
        let busy = [
            (
                tile * f64::from(cost.point_bytes) * torn / self.memory,
                "memory",
            ),
            (
                (f64::from(cost.copied_lines) + own) / STREAMS.cache_bytes,
                "cache",
            ),
            ((traffic + spills) / self.shared, "shared memory"),
            (operations * threads / rate, "arithmetic"),
            (
                (operations + accesses + FIT.overhead) * (threads / 32.0).ceil() / self.issued,
                "instructions",
            ),
        ];
        let mut all = busy
            .map(|(cycles, what)| (cycles * together, what))
            .to_vec();
        let chain = FIT.step
            + FIT.barrier * f64::from(cost.barriers)
            + FIT.operation * f64::from(cost.operations);
        all.push((chain, "latency"));
        let arrival = STREAMS.arrival / f64::from(plan.ahead);
        all.push((arrival, "latency"));
        let (busy, bound) = joined(&all, STREAMS.power);
        let cycles = busy + FIT.exposed * arrival / together;
        Some(Prediction {
            ms: FIT.scale * waves * steps * cycles / self.clock_hz * 1e3,
            bound: bound?,
        })
    }

    /// Registers per thread if so many threads are to reside on a multiprocessor.
    fn room(&self, threads: u32) -> Option<u32> {
        let file = &self.gpu.arch.registers;
        let warps = threads.div_ceil(32).max(1);
        let each = file.per_sm / (warps * 32) / 8 * 8;
        (each > 0).then_some(each.min(file.per_thread))
    }
}
