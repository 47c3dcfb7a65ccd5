//! May a result depend on where buffers lie? Addresses are followed through registers: what they lead to is none of them.
//!
//! A register without order is what any instruction makes of it. Low bits of an address are those of its offset, as far
//! as buffers are aligned; a difference of two addresses of one buffer has none of it left.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_launch::Launch;
use warpwright_ptx::special::SpecialReg;

use crate::memory::{
    FUNCTION_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, SLOT_BITS, slot_address,
};
use crate::program::{AccessSpace, Op, Program, Src, Step};
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

    fn pointer(&self, base: Src, offset: i64) -> Held {
        let Src::Const(at) = base else {
            return Held::of(127);
        };
        let address = self.program.constants[at as usize][0].wrapping_add_signed(offset);
        let from = address.wrapping_sub(PARAM_WINDOW);
        let mut params = self.params.iter();
        let number = params.position(|&at| from <= at && at < from + 8);
        number.map_or(Held::NOTHING, Held::of)
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
            Op::Load(load) if load.access.space == AccessSpace::Param => {
                self.pointer(load.access.base, load.access.offset)
            }
            Op::Load(load) if load.access.space == AccessSpace::Local => self.local,
            Op::Load(load) if self.tables && load.access.elem == 8 => Held::of(127),
            Op::LocalAddress { .. } => Held::of(127),
            // How much more than its variables a block is given is not stated.
            Op::Special {
                reg: SpecialReg::TotalSmemSize | SpecialReg::AggrSmemSize,
                ..
            } => Held::of(127).at_least(Left::Any),
            _ => Held::NOTHING,
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
                Op::Collective { .. } if step.writes.is_empty() => false,
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

/// How often a kernel does what with addresses, by opcode, where what it does may depend on them, but for where it reads
/// and writes.
pub type Shown = BTreeMap<String, usize>;

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
        };
        holds.settle(&function.code);
        let mut shown = Shown::new();
        if !function.code.iter().any(|step| holds.shows(step)) {
            return shown;
        }
        for step in &function.code {
            let is_plain = match &step.op {
                Op::Alu { .. } => holds.made(step).left == Left::Plain,
                _ => true,
            };
            if !is_plain || holds.shows(step) {
                let what = opcode(holds.instruction(step)).to_owned();
                *shown.entry(what).or_default() += 1;
            }
        }
        shown
    }
}
