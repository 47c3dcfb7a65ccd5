//! What the instructions of PTX cost on a GPU, before ptxas has seen them: `target`'s latencies and
//! throughputs by latency class.

use warpwright_ptx::opcode::LatencyClass;
use warpwright_target::{Fact, Gpu, LINE_BYTES, SECTOR_BYTES, WARP_SIZE};

/// Machine instructions that a PTX division or exact root becomes (the fast path of ptxas's
/// expansion of `div.rn.f32` and of integer division has 8 to 20).
const DIVISION_LENGTH: f64 = 12.0;

/// Cycles by class, per scheduler, and the figures of the memory system.
#[derive(Debug, Clone)]
pub struct Costs {
    classes: Vec<(LatencyClass, f64, f64)>,
    /// Bytes of a cache line.
    pub line_bytes: u32,
    /// Bytes that are fetched at once.
    pub sector_bytes: u32,
}

/// A figure of the table, or what stands in for it.
pub(crate) fn figure(fact: Option<Fact<u32>>, otherwise: u32) -> f64 {
    f64::from(fact.map_or(otherwise, |f| f.value).max(1))
}

impl Costs {
    /// The costs on a GPU.
    pub fn new(gpu: &Gpu) -> Self {
        use LatencyClass::*;
        let (rate, wait) = (&gpu.arch.throughput, &gpu.arch.latency);
        let schedulers = f64::from(gpu.arch.schedulers.max(1));
        let warp = f64::from(WARP_SIZE);
        let issue = |per_sm: f64| (warp * schedulers / per_sm).max(1.0);
        let fp32 = figure(rate.fp32, 128);
        let int = issue(figure(rate.int_add.or(rate.logic), 64));
        let special = issue(figure(rate.special, 16));
        let memory = issue(figure(rate.load_store, 32));
        let alu = figure(wait.alu, 4);
        let sfu = figure(wait.special, 20);
        let l1 = figure(wait.l1, 32);
        let fp64 = (issue(figure(rate.fp64, 2)), figure(wait.fp64, 16));
        let classes = vec![
            (Alu, int, alu),
            (
                IntMul,
                issue(figure(rate.int_mul, 64)),
                figure(wait.int_mul, 5),
            ),
            (Fp16, issue(figure(rate.fp16, 256) / 2.0), alu),
            (Fp32, issue(fp32), alu),
            (Fp64, fp64.0, fp64.1),
            (Sfu, special, sfu),
            (
                Division,
                DIVISION_LENGTH * issue(fp32),
                DIVISION_LENGTH * alu,
            ),
            (Conversion, special, sfu),
            (
                Warp,
                issue(figure(rate.shuffle, 32)),
                figure(wait.shared, 25),
            ),
            (SharedLoad, memory, figure(wait.shared, 30)),
            (GlobalLoad, memory, 0.0),
            (LocalLoad, memory, l1),
            (ConstLoad, 1.0, alu),
            (ParamLoad, 1.0, alu),
            (Store, memory, 0.0),
            (Atomic, memory, figure(wait.l2.or(wait.l1), 200)),
            (AsyncCopy, memory, 0.0),
            (Tensor, issue(fp32 / 8.0), 2.0 * sfu),
            (Texture, 2.0 * memory, 2.0 * l1),
            (Control, 1.0, alu),
            (Barrier, 1.0, sfu),
            (Video, 4.0 * int, 4.0 * alu),
            (Misc, 1.0, alu),
        ];
        Costs {
            classes,
            line_bytes: LINE_BYTES,
            sector_bytes: SECTOR_BYTES,
        }
    }

    fn of(&self, class: LatencyClass) -> (f64, f64) {
        let found = self.classes.iter().find(|(c, ..)| *c == class);
        found.map_or((1.0, 1.0), |&(_, issue, latency)| (issue, latency))
    }

    /// Cycles that a warp's instruction occupies its scheduler.
    pub fn issue(&self, class: LatencyClass) -> f64 {
        self.of(class).0
    }

    /// Cycles until an instruction that needs the result can issue; 0 for global loads, whose
    /// latency depends on the caches.
    pub fn latency(&self, class: LatencyClass) -> f64 {
        self.of(class).1
    }
}
