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
use warpwright_ptx::opcode::{LatencyClass, Op};
use warpwright_ptx::{
    Base, Body, FuncId, Imm, Inst, Module, Operand, Part, Reg, Space, SpecialReg, Symbol, View,
};
use warpwright_target::WARP_SIZE;

use crate::cost::Costs;

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

const LANES: usize = WARP_SIZE as usize;
type Values = [i64; LANES];

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

/// Samples the first warp of a block; `None` if the function has no body.
pub fn sample(module: &Module, kernel: FuncId, warp: &Warp, costs: &Costs) -> Option<Vec<Segment>> {
    let view = module.view(kernel)?;
    let cfg = Cfg::new(&view);
    let loops = Loops::new(&cfg);
    let plans = cfg
        .blocks()
        .map(|block| plan(&view, &cfg, block, costs))
        .collect();
    let mut sampler = Sampler {
        module,
        body: view.body(),
        wanted: wanted(&view),
        values: vec![[0; LANES]; view.value_count()],
        view: &view,
        cfg: &cfg,
        loops: &loops,
        plans,
        warp: *warp,
        sector: i64::from(costs.sector_bytes),
        steps: 0,
        segments: Vec::new(),
    };
    let all: Vec<Block> = cfg.reverse_postorder().to_vec();
    sampler.region(&all, None, 0);
    Some(sampler.segments)
}

/// One basic block as segments: level 0 is what depends on no load of the block, level 1 what
/// depends on a load of level 0, and so on.
struct Level {
    issue: f64,
    alone: f64,
    loads: Vec<Inst>,
}

fn plan(view: &View, cfg: &Cfg, block: Block, costs: &Costs) -> Vec<Level> {
    let (module, body) = (view.module(), view.body());
    // Of each register written in the block: its level, and when it is ready within the level.
    let mut ready: std::collections::BTreeMap<Reg, (usize, f64)> = Default::default();
    let mut levels: Vec<Level> = Vec::new();
    for index in cfg.insts(block) {
        let inst = Inst::from_u32(index.0);
        let class = module.opcode(&body.insts[inst]).latency_class();
        let (mut level, mut start) = (0, 0.0f64);
        for reg in view.uses(inst) {
            if let Some(&(l, t)) = ready.get(&reg) {
                match l.cmp(&level) {
                    std::cmp::Ordering::Greater => (level, start) = (l, t),
                    std::cmp::Ordering::Equal => start = start.max(t),
                    std::cmp::Ordering::Less => {}
                }
            }
        }
        while levels.len() <= level {
            levels.push(Level {
                issue: 0.0,
                alone: 0.0,
                loads: Vec::new(),
            });
        }
        let this = &mut levels[level];
        this.issue += costs.issue(class);
        let is_load = class == LatencyClass::GlobalLoad;
        let end = start + costs.latency(class);
        this.alone = this.alone.max(end).max(this.issue);
        if is_load {
            this.loads.push(inst);
        }
        let result = if is_load {
            (level + 1, 0.0)
        } else {
            (level, end)
        };
        for reg in view.defs(inst) {
            ready.insert(reg, result);
        }
    }
    levels
}

/// The registers that addresses of global loads depend on.
fn wanted(view: &View) -> Vec<bool> {
    let body = view.body();
    let mut wanted = vec![false; view.value_count()];
    let mut defs: Vec<Vec<Inst>> = vec![Vec::new(); view.value_count()];
    let mut work: Vec<Reg> = Vec::new();
    for inst in body.insts.keys() {
        for reg in view.defs(inst) {
            defs[reg.as_u32() as usize].push(inst);
        }
        let opcode = view.module().opcode(&body.insts[inst]);
        if opcode.latency_class() == LatencyClass::GlobalLoad {
            work.extend(address(body, inst).and_then(base_register));
        }
    }
    while let Some(reg) = work.pop() {
        let index = reg.as_u32() as usize;
        if !std::mem::replace(&mut wanted[index], true) {
            for &inst in &defs[index] {
                work.extend(view.uses(inst));
            }
        }
    }
    wanted
}

fn address(body: &Body, inst: Inst) -> Option<warpwright_ptx::Address> {
    body.operands(inst).iter().find_map(|o| match o {
        Operand::Mem(address) => Some(*address),
        _ => None,
    })
}

fn base_register(address: warpwright_ptx::Address) -> Option<Reg> {
    match address.base {
        Base::Reg(reg) => Some(reg),
        _ => None,
    }
}

struct Sampler<'a> {
    module: &'a Module,
    body: &'a Body,
    view: &'a View<'a>,
    cfg: &'a Cfg,
    loops: &'a Loops,
    plans: Vec<Vec<Level>>,
    wanted: Vec<bool>,
    values: Vec<Values>,
    warp: Warp,
    sector: i64,
    steps: usize,
    segments: Vec<Segment>,
}

impl Sampler<'_> {
    fn is_full(&self) -> bool {
        self.steps > MAX_STEPS || self.segments.len() >= MAX_SEGMENTS
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
                    let of_inner = |&&b: &&Block| self.loops.contains(inner, b);
                    let body: Vec<Block> = blocks.iter().filter(of_inner).copied().collect();
                    let is_innermost = self
                        .loops
                        .iter()
                        .all(|l| self.loops.parent(l) != Some(inner));
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
        let mut at = self.loops.innermost(block);
        while let Some(found) = at.filter(|_| at != within) {
            let parent = self.loops.parent(found);
            if parent == within {
                return Some(found);
            }
            at = parent;
        }
        None
    }

    fn block(&mut self, block: Block) {
        let mut addresses: std::collections::BTreeMap<Inst, Vec<i64>> = Default::default();
        for index in self.cfg.insts(block) {
            let inst = Inst::from_u32(index.0);
            self.steps += 1;
            let opcode = self.module.opcode(&self.body.insts[inst]);
            if opcode.latency_class() == LatencyClass::GlobalLoad {
                addresses.insert(inst, self.sectors(inst));
            }
            if self
                .view
                .defs(inst)
                .iter()
                .any(|r| self.wanted[r.as_u32() as usize])
            {
                self.execute(inst);
            }
        }
        let plan = std::mem::take(&mut self.plans[block.0 as usize]);
        for level in &plan {
            let mut segment = Segment {
                issue: level.issue,
                alone: level.alone,
                sectors: Vec::new(),
            };
            for load in &level.loads {
                segment
                    .sectors
                    .extend(addresses.remove(load).unwrap_or_default());
            }
            self.push(segment);
        }
        self.plans[block.0 as usize] = plan;
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

    /// The sectors that a load touches, sorted, each once.
    fn sectors(&self, inst: Inst) -> Vec<i64> {
        let Some(address) = address(self.body, inst) else {
            return Vec::new();
        };
        let opcode = self.module.opcode(&self.body.insts[inst]);
        let element = opcode.types.last().map_or(4, |t| t.bits().div_ceil(8));
        let bytes = i64::from(element * u32::from(opcode.vector.unwrap_or(1)).max(1));
        let base = self.base(&address);
        let mut sectors: Vec<i64> = Vec::with_capacity(LANES);
        for at in base {
            let first = at.div_euclid(self.sector);
            let last = (at + bytes - 1).div_euclid(self.sector);
            sectors.extend((first..=last).map(|s| s * self.sector));
        }
        sectors.sort_unstable();
        sectors.dedup();
        sectors
    }

    fn base(&self, address: &warpwright_ptx::Address) -> Values {
        let base = match address.base {
            Base::Reg(reg) => self.values[reg.as_u32() as usize],
            Base::Symbol(symbol) => [place(symbol); LANES],
            Base::Absolute | Base::Unresolved => [0; LANES],
        };
        base.map(|v| v.wrapping_add(address.offset))
    }

    fn operand(&self, operand: &Operand) -> Values {
        match *operand {
            Operand::Reg(reg) => self.values[reg.as_u32() as usize],
            Operand::Neg(reg) => self.values[reg.as_u32() as usize].map(i64::wrapping_neg),
            Operand::Not(reg) => self.values[reg.as_u32() as usize].map(|v| !v),
            Operand::Select { reg, .. } => self.values[reg.as_u32() as usize],
            Operand::Imm(Imm::Int { value, .. }) => [value; LANES],
            Operand::Symbol { symbol, offset } => [place(symbol).wrapping_add(offset); LANES],
            Operand::Special { reg, part } => self.special(reg, part),
            _ => [1; LANES],
        }
    }

    fn special(&self, reg: SpecialReg, part: Option<Part>) -> Values {
        let [x, y, z] = self.warp.block.map(i64::from);
        let axis = match part {
            Some(Part::Y) => 1,
            Some(Part::Z) => 2,
            _ => 0,
        };
        let of_lane = |lane: i64| match reg {
            SpecialReg::Tid => [lane % x, lane / x % y, lane / x / y % z][axis],
            SpecialReg::NTid => [x, y, z][axis],
            SpecialReg::CtaId => [i64::from(self.warp.index), 0, 0][axis],
            SpecialReg::LaneId => lane,
            SpecialReg::NCtaId => 1024,
            _ => 0,
        };
        std::array::from_fn(|lane| of_lane(lane as i64))
    }

    /// Carries out one instruction; what is not integer arithmetic gets a value made up from its
    /// operands.
    fn execute(&mut self, inst: Inst) {
        let opcode = self.module.opcode(&self.body.insts[inst]);
        let operands = self.body.operands(inst);
        let get = |i: usize| operands.get(i).map_or([0; LANES], |o| self.operand(o));
        let is_high = opcode.has_mod("hi");
        let two = |f: fn(i64, i64) -> i64| zip(get(1), get(2), f);
        let result = match opcode.op {
            Some(Op::Mov | Op::Cvt | Op::Cvta) => get(1),
            Some(Op::Add) => two(i64::wrapping_add),
            Some(Op::Sub) => two(i64::wrapping_sub),
            Some(Op::Mul | Op::Mul24) if !is_high => two(i64::wrapping_mul),
            Some(Op::Mad | Op::Mad24) if !is_high => {
                zip(two(i64::wrapping_mul), get(3), i64::wrapping_add)
            }
            Some(Op::Shl) => two(|a, b| a.wrapping_shl(b as u32)),
            Some(Op::Shr) => two(|a, b| a.wrapping_shr(b as u32)),
            Some(Op::And) => two(|a, b| a & b),
            Some(Op::Or) => two(|a, b| a | b),
            Some(Op::Xor) => two(|a, b| a ^ b),
            Some(Op::Min) => two(i64::min),
            Some(Op::Max) => two(i64::max),
            Some(Op::Neg) => get(1).map(i64::wrapping_neg),
            Some(Op::Selp) => get(1),
            Some(Op::Ld | Op::Ldu) => {
                let from = address(self.body, inst).map_or([0; LANES], |a| self.base(&a));
                let is_pointer = opcode.types.iter().any(|t| t.bits() == 64);
                match (opcode.space, is_pointer) {
                    (Some(Space::Param), true) => from.map(|a| (made_up(a) % (1 << 20)) << 24),
                    (Some(Space::Param | Space::Const), false) => {
                        from.map(|a| 1000 + made_up(a) % 1000)
                    }
                    _ => from.map(|a| made_up(a) % (1 << 20)),
                }
            }
            _ => {
                let sources = operands.iter().skip(1);
                sources.fold([i64::from(inst.as_u32()); LANES], |all, o| {
                    zip(all, self.operand(o), |a, b| {
                        made_up(a ^ b.rotate_left(7)) % (1 << 16)
                    })
                })
            }
        };
        for reg in self.view.defs(inst) {
            self.values[reg.as_u32() as usize] = result;
        }
    }
}

fn zip(a: Values, b: Values, f: fn(i64, i64) -> i64) -> Values {
    std::array::from_fn(|lane| f(a[lane], b[lane]))
}

/// Where a variable lies: far from all others.
fn place(symbol: Symbol) -> i64 {
    match symbol {
        Symbol::Var(var) => (i64::from(var.as_u32()) + 1) << 36,
        Symbol::Func(func) => (i64::from(func.as_u32()) + 1) << 20,
    }
}

/// A non-negative number that looks random and depends on `seed` alone (SplitMix64's finaliser).
fn made_up(seed: i64) -> i64 {
    let mut z = (seed as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 1) as i64
}
