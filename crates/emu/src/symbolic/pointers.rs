//! May a result depend on where buffers lie? Addresses are followed through registers: what they lead to is none of them.

use warpwright_launch::Launch;

use crate::memory::{PARAM_WINDOW, SLOT_BITS, slot_address};
use crate::program::{AccessSpace, Op, Program, Src, Step};

/// Beyond all slots.
const END: u64 = 1 << (SLOT_BITS + 16);

/// What holds an address, or is made of one.
struct Holds<'p> {
    program: &'p Program,
    /// First bytes of the parameters that are pointers.
    params: Vec<u64>,
    /// A buffer holds pointers.
    tables: bool,
    regs: Vec<bool>,
}

impl Holds<'_> {
    fn has(&self, src: Src) -> bool {
        match src {
            Src::Reg(reg) => self.regs[reg as usize],
            Src::Const(at) => {
                (slot_address(0)..END).contains(&self.program.constants[at as usize][0])
            }
        }
    }

    fn any(&self, srcs: &[Src]) -> bool {
        srcs.iter().any(|&src| self.has(src))
    }

    fn is_pointer(&self, base: Src, offset: i64) -> bool {
        let Src::Const(at) = base else {
            return true;
        };
        let address = self.program.constants[at as usize][0].wrapping_add_signed(offset);
        let from = address.wrapping_sub(PARAM_WINDOW);
        self.params.iter().any(|&at| from <= at && at < from + 8)
    }

    /// Registers that a step makes hold one.
    fn made(&self, step: &Step) -> bool {
        match &step.op {
            Op::Alu { srcs, .. } => self.any(srcs),
            Op::Load(load) if load.access.space == AccessSpace::Param => {
                self.is_pointer(load.access.base, load.access.offset)
            }
            Op::Load(load) => self.tables && load.access.elem == 8,
            _ => false,
        }
    }

    /// Does a step do with one what is no access?
    fn shows(&self, step: &Step) -> bool {
        let is_guard = step
            .guard
            .is_some_and(|guard| self.regs[guard.reg as usize]);
        is_guard
            || match &step.op {
                Op::Store { srcs, .. } => self.any(srcs),
                Op::Atomic(atomic) => self.any(&atomic.value),
                Op::Load(_) | Op::Alu { .. } | Op::CopyAsync(_) => false,
                Op::Collective { .. } if step.writes.is_empty() => false,
                _ => step.reads.iter().any(|&reg| self.regs[reg as usize]),
            }
    }
}

impl Program {
    /// May what the kernel does depend on addresses, but for where it reads and writes?
    pub fn shows_addresses(&self, launch: &Launch) -> bool {
        let function = &self.functions[self.kernel];
        let regions = self.image.params.regions.iter().zip(&launch.args);
        let params = regions.flat_map(|(region, arg)| {
            let pointers = arg.pointers.iter();
            pointers.map(|pointer| region.start + pointer.at as u64)
        });
        let mut holds = Holds {
            program: self,
            params: params.collect(),
            tables: launch.buffers().any(|buffer| buffer.table.is_some()),
            regs: vec![false; function.regs],
        };
        let mut is_new = true;
        while std::mem::take(&mut is_new) {
            for step in function.code.iter().filter(|step| !step.writes.is_empty()) {
                let made = holds.made(step);
                for &reg in step.writes.iter().filter(|_| made) {
                    is_new |= !std::mem::replace(&mut holds.regs[reg as usize], true);
                }
            }
        }
        function.code.iter().any(|step| holds.shows(step))
    }
}
