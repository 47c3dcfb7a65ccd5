//! A sample of one warp's way through a PTX kernel: segments of computation, and what each reads
//! from global memory.
//!
//! Goal: the compute and memory segments of CRAT (section 4.1, figure 10 a), with the memory
//! accesses that the paper measured in a simulator. Departure: nothing is measured. The integer
//! arithmetic that addresses depend on is carried out for 32 lanes, with made-up parameters; what
//! is loaded is made up too, but the same address always holds the same value. So strides along
//! lanes and along iterations, broadcasts and gathers show as they are; trip counts do not: an
//! innermost loop runs [`INNER_TRIPS`] times, one around others [`OUTER_TRIPS`] times, and both
//! arms of a branch run once. Loads of one basic block that do not depend on each other wait
//! together, because ptxas moves them up.

use warpwright_flow::{Block, Cfg, Function as _, Loop, Loops};
use warpwright_ptx::{FuncId, Module, View};

use crate::cost::Costs;
use crate::lanes::{LANES, Lanes};
use crate::plan::{Load, Plan, plans};

/// How often an innermost loop runs: the weight that the profile gives it, too.
pub const INNER_TRIPS: usize = 10;
/// How often a loop around others runs.
pub const OUTER_TRIPS: usize = 2;
/// Loops deeper than this run once.
const MAX_DEPTH: usize = 6;
/// Instructions that a sample carries out before it ends: what bounds the time.
const MAX_STEPS: usize = 12_000;
/// Segments that a sample keeps.
const MAX_SEGMENTS: usize = 48;
/// Sectors that a sample reads before it ends: what its reuse is worked out from.
const MAX_SECTORS: usize = 4096;

/// A stretch of a warp's life up to a wait for global memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Segment {
    /// Cycles that it occupies its scheduler.
    pub issue: f64,
    /// Cycles that it takes alone: the longest chain of dependent instructions, or `issue`.
    pub alone: f64,
    /// Byte addresses of the sectors that it reads from global memory at its end, in order, each
    /// load's without repetition. Empty: it waits for nothing.
    pub sectors: Vec<i64>,
}

/// Which warp is sampled.
#[derive(Debug, Clone, Copy)]
pub struct Warp {
    /// Threads per block.
    pub block: [u32; 3],
    /// Index of the block in x.
    pub index: u32,
}

/// A kernel made ready for sampling: worked out once, sampled for several warps.
pub struct Code<'a> {
    view: View<'a>,
    cfg: Cfg,
    loops: Loops,
    plans: Vec<Plan<'a>>,
}

impl<'a> Code<'a> {
    /// Prepares a kernel; `None` if the function has no body.
    pub fn new(module: &'a Module, kernel: FuncId, costs: &Costs) -> Option<Self> {
        let view = module.view(kernel)?;
        let cfg = Cfg::new(&view);
        let loops = Loops::new(&cfg);
        let plans = plans(&view, &cfg, costs);
        Some(Code {
            view,
            cfg,
            loops,
            plans,
        })
    }

    /// Samples one warp.
    pub fn sample(&self, warp: &Warp) -> Vec<Segment> {
        let registers = self.view.value_count();
        let mut sampler = Sampler {
            code: self,
            lanes: Lanes::new(self.view.body(), registers, *warp),
            steps: 0,
            sectors: 0,
            segments: Vec::new(),
        };
        sampler.region(self.cfg.reverse_postorder(), None, 0);
        sampler.segments
    }
}

struct Sampler<'a> {
    code: &'a Code<'a>,
    lanes: Lanes<'a>,
    steps: usize,
    sectors: usize,
    segments: Vec<Segment>,
}

impl Sampler<'_> {
    fn is_full(&self) -> bool {
        let (segments, sectors) = (self.segments.len(), self.sectors);
        self.steps > MAX_STEPS || segments >= MAX_SEGMENTS || sectors >= MAX_SECTORS
    }

    /// Runs the blocks of a loop (or of the whole function) once, inner loops as often as they run.
    fn region(&mut self, blocks: &[Block], within: Option<Loop>, depth: usize) {
        let mut done: Vec<Loop> = Vec::new();
        for &block in blocks {
            if self.is_full() {
                return;
            }
            match self.child(block, within) {
                Some(inner) if depth < MAX_DEPTH => {
                    if done.contains(&inner) {
                        continue;
                    }
                    done.push(inner);
                    let of_inner = |&&b: &&Block| self.code.loops.contains(inner, b);
                    let body: Vec<Block> = blocks.iter().filter(of_inner).copied().collect();
                    let is_innermost = self
                        .code
                        .loops
                        .iter()
                        .all(|l| self.code.loops.parent(l) != Some(inner));
                    let trips = if is_innermost {
                        INNER_TRIPS
                    } else {
                        OUTER_TRIPS
                    };
                    for _ in 0..trips {
                        self.region(&body, Some(inner), depth + 1);
                    }
                }
                _ => self.block(block),
            }
        }
    }

    /// The loop around `block` that lies directly within `within`.
    fn child(&self, block: Block, within: Option<Loop>) -> Option<Loop> {
        let mut at = self.code.loops.innermost(block);
        while let Some(found) = at.filter(|_| at != within) {
            let parent = self.code.loops.parent(found);
            if parent == within {
                return Some(found);
            }
            at = parent;
        }
        None
    }

    fn block(&mut self, block: Block) {
        let code = self.code;
        let plan = &code.plans[block.0 as usize];
        self.steps += plan.insts;
        let mut segments: Vec<Segment> = plan.levels.iter().map(|level| level.segment()).collect();
        for step in &plan.steps {
            if let Some(load) = &step.load {
                self.read(load, &mut segments[load.level].sectors);
            }
            if !step.defs.is_empty() {
                self.lanes.execute(step.inst, step.opcode, &step.defs);
            }
        }
        for segment in segments {
            self.sectors += segment.sectors.len();
            self.push(segment);
        }
    }

    /// Appends the sectors that a load touches, sorted, each once.
    fn read(&self, load: &Load, sectors: &mut Vec<i64>) {
        let start = sectors.len();
        sectors.reserve(LANES);
        for at in self.lanes.base(&load.address) {
            let first = at.div_euclid(load.sector) * load.sector;
            let mut next = first;
            while next < at + load.bytes {
                // Neighbouring lanes mostly share a sector.
                if sectors[start..].last() != Some(&next) {
                    sectors.push(next);
                }
                next += load.sector;
            }
        }
        if !sectors[start..].is_sorted() {
            sectors[start..].sort_unstable();
            let mut kept = start;
            for at in start..sectors.len() {
                if kept == start || sectors[kept - 1] != sectors[at] {
                    sectors[kept] = sectors[at];
                    kept += 1;
                }
            }
            sectors.truncate(kept);
        }
    }

    /// Appends a segment; one that follows a segment without a wait goes on with it.
    fn push(&mut self, segment: Segment) {
        match self.segments.last_mut() {
            Some(last) if last.sectors.is_empty() => {
                last.issue += segment.issue;
                last.alone += segment.alone;
                last.sectors = segment.sectors;
            }
            _ => self.segments.push(segment),
        }
    }
}
