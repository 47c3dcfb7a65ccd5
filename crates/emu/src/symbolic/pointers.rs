//! May a result depend on where buffers lie? Addresses are followed through registers: what they lead to is none of them.
//!
//! A register without order is what any instruction makes of it. Low bits of an address are those of its offset, as far
//! as buffers are aligned; a difference of two addresses of one buffer has none of it left.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher as _};

use rustc_hash::FxHasher;
use warpwright_launch::Launch;
use warpwright_ptx::special::SpecialReg;

use crate::matrix::MatrixOp;
use crate::memory::{
    FUNCTION_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, SLOT_BITS, slot_address,
};
use crate::program::{Access, AccessSpace, CollectiveOp, Op, Program, Src, Step};
use crate::symbolic::form::opcode;

/// Beyond all slots.
const END: u64 = 1 << (SLOT_BITS + 16);

/// Bytes of a window that addresses in it may reach.
const WINDOW: u64 = 1 << 24;

/// Bytes at whose multiples buffers lie, if nothing else is described.
const ALIGNMENT: u64 = 256;

/// What addresses a value is made of, as bits; [`SEVERAL`] is more than one.
type Bases = u128;

const SEVERAL: Bases = 1 << 127;

/// What is left of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    /// It, with something added.
    #[default]
    Plain,
    /// Its low bits, in the low bits.
    Low,
    /// Anything.
    Any,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    of: Bases,
    left: Left,
}

impl Held {
    const NOTHING: Held = Held {
        of: 0,
        left: Left::Plain,
    };

    fn of(base: usize) -> Held {
        let of = if base < 127 { 1 << base } else { SEVERAL };
        Held {
            of,
            left: Left::Plain,
        }
    }

    fn is_one(self) -> bool {
        self.of != 0
    }

    fn or(self, other: Held) -> Held {
        Held {
            of: self.of | other.of,
            left: self.left.max(other.left),
        }
    }

    fn at_least(self, left: Left) -> Held {
        match self.is_one() {
            true => Held {
                left: self.left.max(left),
                ..self
            },
            false => self,
        }
    }
}

/// What holds an address, or is made of one.
struct Holds<'p> {
    program: &'p Program,
    /// First bytes of the parameters that are pointers.
    params: Vec<u64>,
    /// Names of shared variables.
    shared: BTreeSet<&'p str>,
    /// A buffer holds pointers.
    tables: bool,
    /// All pointers are aligned to [`ALIGNMENT`].
    aligned: bool,
    regs: Vec<Held>,
    /// What stands in local memory.
    local: Held,
    /// What a thread has stored elsewhere: whoever reads may read it.
    memory: Held,
}

impl Holds<'_> {
    fn has(&self, src: Src) -> Held {
        let Src::Const(at) = src else {
            let Src::Reg(reg) = src else {
                return Held::NOTHING;
            };
            return self.regs[reg as usize];
        };
        let value = self.program.constants[at as usize][0];
        let windows = [SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, FUNCTION_WINDOW];
        match value {
            _ if (slot_address(0)..END).contains(&value) => {
                Held::of(self.params.len() + (value >> SLOT_BITS) as usize)
            }
            _ if windows.iter().any(|&at| (at..at + WINDOW).contains(&value)) => Held::of(127),
            _ => Held::NOTHING,
        }
    }

    fn all(&self, srcs: &[Src]) -> Held {
        srcs.iter()
            .map(|&src| self.has(src))
            .fold(Held::NOTHING, Held::or)
    }

    fn any(&self, srcs: &[Src]) -> bool {
        self.all(srcs).is_one()
    }

    /// What a load of parameters gives.
    fn pointer(&self, access: &Access) -> Held {
        let Src::Const(at) = access.base else {
            return Held::of(127);
        };
        let address = self.program.constants[at as usize][0].wrapping_add_signed(access.offset);
        let from = address.wrapping_sub(PARAM_WINDOW);
        let params = self.params.iter().enumerate();
        let loaded = params.filter(|&(_, &at)| from < at + 8 && at < from + access.bytes());
        loaded
            .map(|(number, _)| Held::of(number))
            .fold(Held::NOTHING, Held::or)
    }

    fn instruction(&self, step: &Step) -> &str {
        let site = self.program.sites.get(step.site as usize);
        site.map_or("", |site| &site.place.instruction)
    }

    /// Is a shared variable's address among the operands?
    fn names_shared(&self, step: &Step) -> bool {
        let text = self.instruction(step);
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_$%.".contains(c);
        !self.shared.is_empty()
            && text
                .split(|c| !is_part(c))
                .any(|word| self.shared.contains(word))
    }

    /// What registers that a step makes hold.
    fn made(&self, step: &Step) -> Held {
        match &step.op {
            Op::Alu { srcs, .. } => self.computed(step, srcs),
            Op::Load(load) if load.access.space == AccessSpace::Param => self.pointer(&load.access),
            Op::Load(load) if load.access.space == AccessSpace::Local => self.local,
            Op::Load(load) if self.tables && load.access.elem == 8 => Held::of(127),
            Op::LocalAddress { .. } => Held::of(127),
            // How much more than its variables a block is given is not stated.
            Op::Special {
                reg: SpecialReg::TotalSmemSize | SpecialReg::AggrSmemSize,
                ..
            } => Held::of(127).at_least(Left::Any),
            Op::Load(_) | Op::Atomic(_) | Op::Atomic128 { .. } => self.memory,
            Op::Collective {
                op: CollectiveOp::Matrix(MatrixOp::Load { .. }),
                ..
            } => self.memory,
            _ => {
                let reads = step.reads.iter().map(|&reg| self.regs[reg as usize]);
                reads.fold(Held::NOTHING, Held::or).at_least(Left::Any)
            }
        }
    }

    fn computed(&self, step: &Step, srcs: &[Src]) -> Held {
        let all = match self.names_shared(step) {
            true => self.all(srcs).or(Held::of(127)),
            false => self.all(srcs),
        };
        if !all.is_one() {
            return Held::NOTHING;
        }
        let opcode = opcode(self.instruction(step));
        let mut words = opcode.split('.');
        let op = words.next().unwrap_or_default();
        let bends = words.any(|word| matches!(word, "hi" | "sat") || word.starts_with('f'));
        let parts: Vec<Held> = srcs.iter().map(|&src| self.has(src)).collect();
        let ones = parts.iter().filter(|part| part.is_one()).count();
        let is_apart = all.of.count_ones() == 1 && all.of != SEVERAL && all.left == Left::Plain;
        match op {
            "isspacep" => Held::NOTHING,
            "setp" | "set" | "sub" if ones == 2 && is_apart => Held::NOTHING,
            "and" if self.masks(srcs, all) => Held::NOTHING,
            "mov" | "cvta" | "selp" | "cvt" if !bends => all,
            "add" | "mad" if ones == 1 && !bends => {
                let last = parts.last().copied().unwrap_or_default();
                let is_added = op == "add" || last.is_one();
                all.at_least(if is_added { Left::Plain } else { Left::Low })
            }
            "sub" if ones == 1 && parts.first().is_some_and(|part| part.is_one()) => all,
            "add" | "sub" | "mad" | "mul" | "and" | "or" | "xor" | "not" | "shl" | "neg"
                if !bends =>
            {
                all.at_least(Left::Low)
            }
            _ => all.at_least(Left::Any),
        }
    }

    /// Are bits kept alone in which aligned pointers have none?
    fn masks(&self, srcs: &[Src], all: Held) -> bool {
        let is_mask = |src: &Src| match *src {
            Src::Const(at) => self.program.constants[at as usize][0] < ALIGNMENT,
            Src::Reg(_) => false,
        };
        let of_params = all.of >> self.params.len().min(127) == 0;
        self.aligned && of_params && all.left <= Left::Low && srcs.iter().any(is_mask)
    }

    /// Does a step do with one what is no access?
    fn shows(&self, step: &Step) -> bool {
        let is_guard = step
            .guard
            .is_some_and(|guard| self.regs[guard.reg as usize].is_one());
        is_guard
            || match &step.op {
                Op::Store { access, .. } if access.space == AccessSpace::Local => false,
                Op::Store { srcs, .. } => self.any(srcs),
                Op::Atomic(atomic) => {
                    self.any(&atomic.value) || atomic.second.is_some_and(|s| self.any(&[s]))
                }
                Op::Load(_) | Op::Alu { .. } | Op::CopyAsync(_) => false,
                Op::Collective {
                    op: CollectiveOp::Matrix(MatrixOp::Load { .. }),
                    ..
                } => false,
                Op::Collective {
                    op: CollectiveOp::Matrix(MatrixOp::Store { srcs, .. }),
                    ..
                } => self.any(srcs),
                _ => step
                    .reads
                    .iter()
                    .any(|&reg| self.regs[reg as usize].is_one()),
            }
    }

    fn settle(&mut self, code: &[Step]) {
        let mut is_new = true;
        while std::mem::take(&mut is_new) {
            for step in code {
                if let Op::Store { access, srcs } = &step.op
                    && access.space == AccessSpace::Local
                {
                    let local = self.local.or(self.all(srcs));
                    is_new |= std::mem::replace(&mut self.local, local) != local;
                }
                let is_stored = match &step.op {
                    Op::Store { .. } | Op::Atomic(_) | Op::Atomic128 { .. } => true,
                    Op::Collective { .. } => step.writes.is_empty(),
                    _ => false,
                };
                if is_stored && self.shows(step) {
                    let memory = self.memory.or(Held::of(127).at_least(Left::Any));
                    is_new |= std::mem::replace(&mut self.memory, memory) != memory;
                }
                if step.writes.is_empty() {
                    continue;
                }
                let made = self.made(step);
                for &reg in &step.writes {
                    let held = &mut self.regs[reg as usize];
                    let now = held.or(made);
                    is_new |= std::mem::replace(held, now) != now;
                }
            }
        }
    }
}

/// Steps back that [`Labels`] tells apart.
const BACK: u32 = 24;

/// Numbers for what registers hold, the same for what is made alike: of the instructions that set a register their
/// opcodes, constants and operands, and so on.
///
/// Method: colour refinement (Weisfeiler and Leman, 1968), so many rounds.
struct Labels<'h, 'p> {
    holds: &'h Holds<'p>,
    launch: &'h Launch,
    regs: Vec<u64>,
}

impl<'h, 'p> Labels<'h, 'p> {
    fn new(holds: &'h Holds<'p>, launch: &'h Launch, code: &[Step]) -> Self {
        let regs = vec![0; holds.regs.len()];
        let mut labels = Labels {
            holds,
            launch,
            regs,
        };
        for _ in 0..BACK {
            let mut next = vec![0u64; labels.regs.len()];
            for step in code.iter().filter(|step| !step.writes.is_empty()) {
                let made = labels.of(step);
                for (at, &reg) in step.writes.iter().enumerate() {
                    // In whatever order they stand.
                    let sum = &mut next[reg as usize];
                    *sum = sum.wrapping_add(hashed(&(made, at)));
                }
            }
            labels.regs = next;
        }
        labels
    }

    fn src(&self, src: Src) -> u64 {
        match src {
            Src::Reg(reg) => self.regs[reg as usize],
            Src::Const(at) => hashed(&self.holds.program.constants[at as usize][0]),
        }
    }

    fn all(&self, srcs: &[Src]) -> Vec<u64> {
        srcs.iter().map(|&src| self.src(src)).collect()
    }

    /// What an access goes to: of a parameter its name and the place in it.
    fn place(&self, access: &Access) -> (u64, String) {
        let (base, program) = (access.base, self.holds.program);
        if let (AccessSpace::Param, Src::Const(at)) = (access.space, base) {
            let at = program.constants[at as usize][0].wrapping_add_signed(access.offset);
            let at = at.wrapping_sub(PARAM_WINDOW);
            let regions = program.image.params.regions.iter().zip(&self.launch.args);
            let mut all = regions
                .filter(|(region, _)| (region.start..region.start + region.len).contains(&at));
            if let Some((region, arg)) = all.next() {
                return (at - region.start, arg.name.clone());
            }
        }
        (hashed(&(self.src(base), access.offset)), String::new())
    }

    fn of(&self, step: &Step) -> u64 {
        let guard = step
            .guard
            .map(|guard| (self.regs[guard.reg as usize], guard.negated));
        let what = opcode(self.holds.instruction(step));
        let operands = match &step.op {
            Op::Alu { srcs, .. } => hashed(&self.all(srcs)),
            Op::Load(load) => hashed(&self.place(&load.access)),
            Op::Store { access, srcs } => hashed(&(self.place(access), self.all(srcs))),
            Op::Atomic(atomic) => {
                let second = atomic.second.map(|src| self.src(src));
                hashed(&(self.place(&atomic.access), self.all(&atomic.value), second))
            }
            Op::Special { reg, part, .. } => hashed(&format!("{reg:?} {part:?}")),
            Op::LocalAddress { offset, .. } => hashed(offset),
            _ => {
                let reads = step.reads.iter().map(|&reg| self.regs[reg as usize]);
                hashed(&reads.collect::<Vec<u64>>())
            }
        };
        hashed(&(what, step.counted, guard, operands))
    }
}

fn hashed(of: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    of.hash(&mut hasher);
    hasher.finish()
}

/// How often a kernel does what with addresses, where what it does may depend on them, but for where it reads and writes: by
/// a number for the instruction and all that its operands are made of.
pub type Shown = BTreeMap<u64, usize>;

impl Program {
    /// May what the kernel does depend on addresses, and what is done with them? Empty where not.
    pub fn shown_addresses(&self, launch: &Launch) -> Shown {
        let function = &self.functions[self.kernel];
        let regions = self.image.params.regions.iter().zip(&launch.args);
        let params = regions.flat_map(|(region, arg)| {
            let pointers = arg.pointers.iter();
            pointers.map(|pointer| region.start + pointer.at as u64)
        });
        let mut buffers = launch.memory.iter();
        let aligned = buffers.all(|buffer| {
            buffer.align as u64 >= ALIGNMENT && (buffer.offset as u64).is_multiple_of(ALIGNMENT)
        });
        let shared = self.image.shared.regions.iter();
        let shared = shared.map(|region| &*region.name);
        let dynamic = self.image.dynamic.1.iter().map(|name| &**name);
        let mut holds = Holds {
            program: self,
            params: params.collect(),
            shared: shared.chain(dynamic).collect(),
            tables: launch.buffers().any(|buffer| buffer.table.is_some()),
            aligned,
            regs: vec![Held::NOTHING; function.regs],
            local: Held::NOTHING,
            memory: Held::NOTHING,
        };
        holds.settle(&function.code);
        let mut shown = Shown::new();
        if !function.code.iter().any(|step| holds.shows(step)) {
            return shown;
        }
        let labels = Labels::new(&holds, launch, &function.code);
        for step in &function.code {
            let is_plain = holds.made(step).left == Left::Plain;
            if !is_plain || holds.shows(step) {
                *shown.entry(labels.of(step)).or_default() += 1;
            }
        }
        shown
    }
}
