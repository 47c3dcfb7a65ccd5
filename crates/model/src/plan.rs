//! What a sample does with each basic block, worked out once: its segments, the instructions that
//! its addresses come from, and its loads.

use smallvec::SmallVec;
use warpwright_flow::{Block, Cfg, Function as _};
use warpwright_ptx::opcode::{LatencyClass, Opcode};
use warpwright_ptx::{Address, Base, Inst, Reg, View};

use crate::cost::Costs;
use crate::lanes::address;
use crate::sample::Segment;

/// A basic block.
pub struct Plan<'a> {
    /// Instructions in the block.
    pub insts: usize,
    /// Those that addresses come from, and the loads, in order.
    pub steps: Vec<AddressOp<'a>>,
    /// Level 0 is what depends on no load of the block, level 1 what depends on a load of level 0,
    /// and so on.
    pub levels: Vec<Level>,
}

/// An instruction that matters to addresses.
pub struct AddressOp<'a> {
    /// The instruction.
    pub inst: Inst,
    /// Its opcode.
    pub opcode: &'a Opcode,
    /// What it defines; empty if no address depends on it.
    pub defs: SmallVec<[Reg; 4]>,
    /// It is a load from global memory.
    pub load: Option<Load>,
}

/// A load from global memory.
pub struct Load {
    /// Where from.
    pub address: Address,
    /// Bytes per lane.
    pub bytes: i64,
    /// Bytes of a sector.
    pub sector: i64,
    /// The level of the block whose end waits for it.
    pub level: usize,
}

/// A stretch of a block up to a wait.
#[derive(Default)]
pub struct Level {
    issue: f64,
    alone: f64,
}

impl Level {
    /// As a segment that reads nothing yet.
    pub fn segment(&self) -> Segment {
        Segment {
            issue: self.issue,
            alone: self.alone,
            sectors: Vec::new(),
        }
    }
}

/// The plans of all blocks.
pub fn plans<'a>(view: &View<'a>, cfg: &Cfg, costs: &Costs) -> Vec<Plan<'a>> {
    let wanted = wanted(view);
    let mut ready = Ready::new(view.value_count());
    let plan = |block| plan(view, cfg, block, costs, &wanted, &mut ready);
    cfg.blocks().map(plan).collect()
}

/// Of each register written in the block at hand: its level, and when it is ready within the level.
struct Ready {
    block: usize,
    values: Vec<(usize, usize, f64)>,
}

impl Ready {
    fn new(registers: usize) -> Self {
        Ready {
            block: 0,
            values: vec![(0, 0, 0.0); registers],
        }
    }

    fn get(&self, reg: Reg) -> Option<(usize, f64)> {
        let (block, level, time) = self.values[reg.as_u32() as usize];
        (block == self.block).then_some((level, time))
    }

    fn set(&mut self, reg: Reg, level: usize, time: f64) {
        self.values[reg.as_u32() as usize] = (self.block, level, time);
    }
}

fn plan<'a>(
    view: &View<'a>,
    cfg: &Cfg,
    block: Block,
    costs: &Costs,
    wanted: &[bool],
    ready: &mut Ready,
) -> Plan<'a> {
    let (module, body) = (view.module(), view.body());
    ready.block += 1;
    let mut plan = Plan {
        insts: 0,
        steps: Vec::new(),
        levels: Vec::new(),
    };
    for index in cfg.insts(block) {
        plan.insts += 1;
        let inst = Inst::from_u32(index.0);
        let opcode = module.opcode(&body.insts[inst]);
        let class = opcode.latency_class();
        let (level, start) = start(view, inst, ready);
        while plan.levels.len() <= level {
            plan.levels.push(Level::default());
        }
        let this = &mut plan.levels[level];
        this.issue += costs.issue(class);
        let end = start + costs.latency(class);
        this.alone = this.alone.max(end).max(this.issue);
        let is_load = class == LatencyClass::GlobalLoad;
        let (known, time) = if is_load {
            (level + 1, 0.0)
        } else {
            (level, end)
        };
        let mut defs = view.defs(inst);
        for &reg in &defs {
            ready.set(reg, known, time);
        }
        if !defs.iter().any(|r| wanted[r.as_u32() as usize]) {
            defs.clear();
        }
        let load = address(body, inst).filter(|_| is_load).map(|address| Load {
            address,
            bytes: i64::from(bytes(opcode)),
            sector: i64::from(costs.sector_bytes),
            level,
        });
        if load.is_some() || !defs.is_empty() {
            plan.steps.push(AddressOp {
                inst,
                opcode,
                defs,
                load,
            });
        }
    }
    plan
}

/// The level at which an instruction can issue, and when within it.
fn start(view: &View, inst: Inst, ready: &Ready) -> (usize, f64) {
    let (mut level, mut start) = (0, 0.0f64);
    for (l, t) in view.uses(inst).into_iter().filter_map(|reg| ready.get(reg)) {
        match l.cmp(&level) {
            std::cmp::Ordering::Greater => (level, start) = (l, t),
            std::cmp::Ordering::Equal => start = start.max(t),
            std::cmp::Ordering::Less => {}
        }
    }
    (level, start)
}

/// Bytes per lane that an instruction moves.
fn bytes(opcode: &Opcode) -> u32 {
    let element = opcode.types.last().map_or(4, |t| t.bits().div_ceil(8));
    element * u32::from(opcode.vector.unwrap_or(1)).max(1)
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

fn base_register(address: Address) -> Option<Reg> {
    match address.base {
        Base::Reg(reg) => Some(reg),
        _ => None,
    }
}
