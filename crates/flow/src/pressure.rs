//! Register pressure at every instruction.
//!
//! Two numbers per instruction, both in 32-bit general registers ([`crate::ClassInfo::units`]):
//!
//! - *before*: what is live right before it;
//! - *during*: the larger of *before* and what is live after it together with everything it
//!   defines. So a result may take the register of an operand that ends here, a dead result still
//!   needs a register, and a predicated definition of a value that lives on counts once.
//!
//! A 64-bit value counts two units. That it needs an even-aligned pair (and a 128-bit value an
//! aligned quadruple) is not counted: an allocator may need a register or so more than the peak.
//! Predicates and uniform registers count in their class only.
//!
//! Unreachable instructions have no pressure.

use cranelift_entity::EntityRef;
use smallvec::SmallVec;

use crate::{Cfg, Function, Inst, LiveSet, Liveness, Value};

/// The pressure curve of one function.
#[derive(Clone, Debug)]
pub struct Pressure {
    before: Vec<u32>,
    during: Vec<u32>,
}

/// A maximal run of instructions, in program order, at a certain pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PressureRegion {
    /// The first instruction.
    pub first: Inst,
    /// The last instruction.
    pub last: Inst,
    /// The highest pressure *during* an instruction of the region, in units.
    pub units: u32,
}

/// Running totals while walking a block.
struct Count<'a, F> {
    func: &'a F,
    units: u32,
}

impl<F: Function> Count<'_, F> {
    fn add(&mut self, value: Value) {
        self.units += self.func.units(value);
    }

    fn remove(&mut self, value: Value) {
        self.units -= self.func.units(value);
    }
}

impl Pressure {
    /// Computes the pressure curve.
    pub fn new(func: &impl Function, cfg: &Cfg, liveness: &Liveness) -> Pressure {
        let insts = func.inst_count();
        let mut curve = Pressure {
            before: vec![0; insts],
            during: vec![0; insts],
        };
        let mut live = LiveSet::new(func.value_count());
        let mut count = Count { func, units: 0 };
        for &block in cfg.reverse_postorder() {
            live.clear();
            count.units = 0;
            for &succ in cfg.succs(block) {
                for &value in liveness.live_in(succ) {
                    if live.insert(value) {
                        count.add(value);
                    }
                }
            }
            for inst in cfg.insts(block).rev() {
                curve.go_over(inst, liveness, &mut live, &mut count);
            }
        }
        curve
    }

    /// Goes backwards over `inst` and notes its pressure.
    fn go_over<F: Function>(
        &mut self,
        inst: Inst,
        liveness: &Liveness,
        live: &mut LiveSet,
        count: &mut Count<'_, F>,
    ) {
        let func = count.func;
        let mut dead_after: SmallVec<[Value; 8]> = SmallVec::new();
        func.for_each_def(inst, |value| {
            if live.insert(value) {
                count.add(value);
                dead_after.push(value);
            }
        });
        let after = count.units;
        let mut remove = |value: Value| {
            if live.remove(value) {
                count.remove(value);
            }
        };
        if func.is_predicated(inst) {
            dead_after.into_iter().for_each(remove);
        } else {
            func.for_each_def(inst, &mut remove);
        }
        liveness.for_each_read(func, inst, |value| {
            if live.insert(value) {
                count.add(value);
            }
        });
        self.before[inst.index()] = count.units;
        self.during[inst.index()] = count.units.max(after);
    }
    /// Units live right before `inst`.
    pub fn before(&self, inst: Inst) -> u32 {
        self.before[inst.index()]
    }

    /// Units needed while `inst` executes.
    pub fn during(&self, inst: Inst) -> u32 {
        self.during[inst.index()]
    }

    /// The highest pressure during any instruction: 0 for an empty function.
    pub fn max(&self) -> u32 {
        self.during.iter().copied().max().unwrap_or(0)
    }

    /// The first instruction at the highest pressure.
    pub fn peak(&self) -> Option<Inst> {
        let max = self.max();
        self.during
            .iter()
            .position(|&units| units == max)
            .map(Inst::new)
    }

    /// The maximal runs of instructions, in program order, whose pressure is at least `units`.
    pub fn regions_from(&self, units: u32) -> Vec<PressureRegion> {
        let mut regions: Vec<PressureRegion> = Vec::new();
        for (index, &during) in self.during.iter().enumerate() {
            let inst = Inst::new(index);
            match regions.last_mut() {
                _ if during < units => {}
                Some(region) if region.last.index() + 1 == index => {
                    region.last = inst;
                    region.units = region.units.max(during);
                }
                _ => regions.push(PressureRegion {
                    first: inst,
                    last: inst,
                    units: during,
                }),
            }
        }
        regions
    }

    /// The runs of instructions at the highest pressure.
    pub fn peak_regions(&self) -> Vec<PressureRegion> {
        self.regions_from(self.max())
    }

    /// The `count` highest peaks, highest first: runs of equal pressure, in program order, with
    /// lower pressure on both sides.
    pub fn highest(&self, count: usize) -> Vec<PressureRegion> {
        let mut peaks = Vec::new();
        let mut first = 0;
        for run in self.during.chunk_by(|a, b| a == b) {
            let (units, last) = (run[0], first + run.len() - 1);
            let rises = first == 0 || self.during[first - 1] < units;
            let falls = self.during.get(last + 1).is_none_or(|&next| next < units);
            if rises && falls && units > 0 {
                let (first, last) = (Inst::new(first), Inst::new(last));
                peaks.push(PressureRegion { first, last, units });
            }
            first = last + 1;
        }
        peaks.sort_by_key(|peak| (std::cmp::Reverse(peak.units), peak.first));
        peaks.truncate(count);
        peaks
    }
}
