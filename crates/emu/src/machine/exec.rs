//! One instruction of one strand.

use super::access::{Trouble, address_of};
use super::block::Block;
use super::warp::{Next, Wait, Warp};
use crate::fault::FaultKind;
use crate::lanes::{Lanes, Mask, WARP, fill, lanes_of, mask_where};
use crate::pattern::{self, Patterns};
use crate::program::{Access, AccessSpace, Op, Out, Program, Src, Step};

impl Warp {
    /// Executes the instruction that a strand stands at.
    #[inline(always)]
    pub fn step(&mut self, block: &mut Block<'_>, current: usize) -> Result<Next, Box<Trouble>> {
        let program: &Program = block.program;
        let strand = &self.strands[current];
        let (frame, pc, lanes) = (strand.frame, strand.pc, strand.mask);
        let function = self
            .frames
            .get(frame)
            .and_then(|f| program.functions.get(f.function));
        let Some(step) = function.and_then(|f| f.code.get(pc as usize)) else {
            return Err(Trouble::new(
                FaultKind::BadTarget,
                Warp::first(lanes),
                "no instruction",
            ));
        };
        let mask = match step.guard {
            None => lanes,
            Some(guard) => {
                if block.check.registers {
                    self.check_defined(frame, guard.reg, lanes)?;
                }
                let flip = guard.negated as u64;
                let values = self.value(block, frame, Src::Reg(guard.reg));
                lanes & mask_where(|lane| (values[lane] ^ flip) & 1 != 0)
            }
        };
        block.clock += 1;
        if step.counted {
            block.counts.add(step.site, mask);
        }
        if mask == 0 {
            return Ok(Next::Fall);
        }
        if block.options.patterns {
            let mut own = Patterns::default();
            for access in pattern::accesses(&step.op).into_iter().flatten() {
                self.note_reach(block, frame, access, mask);
                let is_constant = |at| block.memory.slot(at).is_some_and(|found| found.constant);
                let is_atomic = matches!(step.op, Op::Atomic(_) | Op::Atomic128 { .. });
                own.note(
                    (access, is_atomic),
                    self.value(block, frame, access.base),
                    mask,
                    is_constant,
                );
            }
            if let Some(patterns) = block.counts.patterns_of(step.site) {
                patterns.add(&own);
            }
            if let Op::Atomic(atomic) = &step.op {
                let base = self.value(block, frame, atomic.access.base);
                block.counts.contended.note(atomic, base, mask);
            }
        }
        if block.check.registers {
            self.check_reads(frame, step, mask)?;
        }
        let next = self.execute(block, current, frame, mask, step)?;
        if block.check.registers
            && !matches!(step.op, Op::Alu { .. } | Op::Call { .. })
            && let Some(data) = self.frames.get_mut(frame)
        {
            step.writes
                .iter()
                .for_each(|&reg| data.mark(reg, mask, true));
        }
        Ok(next)
    }

    /// How far an access goes into global memory.
    fn note_reach(&self, block: &mut Block<'_>, frame: usize, access: &Access, mask: Mask) {
        if !matches!(access.space, AccessSpace::Global | AccessSpace::Generic) {
            return;
        }
        let base = self.value(block, frame, access.base);
        for address in lanes_of(mask).map(|lane| address_of(access, base, lane)) {
            if let Some((index, offset)) = block.memory.place(address) {
                block.counts.note_reach(index, offset + access.bytes());
            }
        }
    }

    fn execute(
        &mut self,
        block: &mut Block<'_>,
        current: usize,
        frame: usize,
        mask: Mask,
        step: &Step,
    ) -> Result<Next, Box<Trouble>> {
        match &step.op {
            Op::Alu { srcs, outs } => {
                self.alu(block, frame, mask, srcs, outs);
                if block.check.registers {
                    self.propagate(frame, step, mask);
                }
            }
            Op::Load(load) => self.load(block, frame, mask, load)?,
            Op::Store { access, srcs } => self.store(block, frame, mask, access, srcs)?,
            Op::Atomic(atomic) => self.atomic(block, frame, mask, atomic)?,
            Op::Atomic128 {
                access,
                dst,
                compare,
                value,
            } => {
                self.atomic128(block, frame, mask, access, *dst, *compare, *value)?;
            }
            Op::Special { dst, reg, part } => {
                let values = self.special(block, *reg, *part);
                self.set(frame, *dst, mask, &values);
            }
            Op::LocalAddress { dst, offset } => {
                let base = self.frames.get(frame).map_or(0, |f| f.local_base);
                self.set(frame, *dst, mask, &[base + offset; WARP]);
            }
            Op::Branch { target } => return Ok(self.branch(current, mask, *target)),
            Op::BranchTable { targets, index } => {
                return self.branch_table(block, current, mask, targets, *index);
            }
            Op::Call {
                callee,
                args,
                returns,
            } => {
                return self.call(block, current, mask, callee, args, returns);
            }
            Op::Return => return self.ret(block, current, mask),
            Op::Exit => {
                self.finish_copies(block, mask)?;
                self.exit(current, mask);
                return Ok(Next::Reschedule);
            }
            Op::Trap => {
                return Err(Trouble::new(
                    FaultKind::Trap,
                    Warp::first(mask),
                    "`trap` was executed",
                ));
            }
            Op::Nop => {}
            Op::Pause => {
                self.strands[current].pc += 1;
                return Ok(Next::Yield);
            }
            Op::SetRegisters(set) => return self.set_registers(block, current, mask, *set),
            Op::Barrier(barrier) => return self.arrive(block, current, mask, barrier),
            Op::Collective { members, op } => {
                return self.collective(block, current, mask, *members, op);
            }
            Op::ActiveMask { dst } => self.set(frame, *dst, mask, &[mask as u64; WARP]),
            Op::CopyAsync(copy) => self.copy_async(block, frame, mask, copy)?,
            Op::CommitGroup => self.copies.commit(mask),
            Op::WaitGroup { pending } => self.wait_group(block, mask, *pending)?,
            Op::Mbarrier { address, op } => {
                return self.mbarrier(block, current, mask, address, op);
            }
            Op::CopyBulk(copy) => self.copy_bulk(block, frame, mask, copy)?,
            Op::Texture(op) => self.texture(block, frame, mask, op)?,
            Op::Surface(op) => self.surface(block, frame, mask, op)?,
        }
        Ok(Next::Fall)
    }

    #[inline(always)]
    pub fn set(&mut self, frame: usize, reg: u32, mask: Mask, values: &Lanes) {
        if let Some(frame) = self.frames.get_mut(frame) {
            frame.set(reg, mask, values);
        }
    }

    #[inline(always)]
    fn alu(&mut self, block: &Block<'_>, frame: usize, mask: Mask, srcs: &[Src], outs: &[Out]) {
        const NONE: Lanes = [0; WARP];
        let mut values = [&NONE; 8];
        for (value, &src) in values.iter_mut().zip(srcs) {
            *value = self.value(block, frame, src);
        }
        let inputs = &values[..srcs.len().min(8)];
        if let [out] = outs {
            let mut result = NONE;
            (out.f)(inputs, &mut result, mask);
            self.set(frame, out.dst, mask, &result);
            return;
        }
        // A destination may be a source of the next result: compute all of them first.
        let mut results = [NONE; 4];
        for (result, out) in results.iter_mut().zip(outs) {
            (out.f)(inputs, result, mask);
        }
        for (result, out) in results.iter().zip(outs) {
            self.set(frame, out.dst, mask, result);
        }
    }

    fn branch(&mut self, current: usize, mask: Mask, target: u32) -> Next {
        let strand = &mut self.strands[current];
        if mask == strand.mask {
            strand.pc = target;
        } else {
            let rest = strand.mask & !mask;
            let next = strand.pc + 1;
            strand.pc = target;
            self.split(current, rest, next, Wait::Ready);
        }
        Next::Reschedule
    }

    fn branch_table(
        &mut self,
        block: &Block<'_>,
        current: usize,
        mask: Mask,
        targets: &[u32],
        index: Src,
    ) -> Result<Next, Box<Trouble>> {
        let strand = self.strands[current].clone();
        let indices = *self.value(block, strand.frame, index);
        if let Some(lane) = lanes_of(mask).find(|&l| indices[l] as u32 as usize >= targets.len()) {
            let message = format!(
                "index {} into a table of {} targets",
                indices[lane] as u32,
                targets.len()
            );
            return Err(Trouble::new(FaultKind::BadTarget, lane, message));
        }
        let mut left = mask;
        let rest = strand.mask & !mask;
        let mut parts: Vec<(Mask, u32)> = Vec::new();
        while left != 0 {
            let target = targets[indices[Warp::first(left)] as u32 as usize];
            let same =
                left & mask_where(|l| targets.get(indices[l] as u32 as usize) == Some(&target));
            parts.push((same, target));
            left &= !same;
        }
        if rest != 0 {
            parts.push((rest, strand.pc + 1));
        }
        let mut parts = parts.into_iter();
        if let Some((first, target)) = parts.next() {
            for (lanes, target) in parts {
                self.strands.push(super::warp::Strand {
                    mask: lanes,
                    pc: target,
                    ..strand.clone()
                });
            }
            let strand = &mut self.strands[current];
            (strand.mask, strand.pc) = (first, target);
        }
        Ok(Next::Reschedule)
    }

    /// A fault if a register has not been written in all lanes of a mask.
    pub(super) fn check_defined(
        &self,
        frame: usize,
        reg: u32,
        mask: Mask,
    ) -> Result<(), Box<Trouble>> {
        let undefined = self.frames.get(frame).map_or(0, |f| f.undefined(reg, mask));
        if undefined == 0 {
            return Ok(());
        }
        let message = "a register is used that was never written";
        Err(Trouble::new(
            FaultKind::UninitialisedRegister,
            Warp::first(undefined),
            message,
        ))
    }

    /// Undefined values may be copied and computed with; they may not decide, be an address, leave
    /// the thread or take part in anything between lanes.
    fn check_reads(&self, frame: usize, step: &Step, mask: Mask) -> Result<(), Box<Trouble>> {
        match &step.op {
            Op::Alu { .. } => return Ok(()),
            Op::Store { access, .. } => {
                return match access.base {
                    Src::Reg(reg) => self.check_defined(frame, reg, mask),
                    Src::Const(_) => Ok(()),
                };
            }
            _ => {}
        }
        step.reads
            .iter()
            .try_for_each(|&reg| self.check_defined(frame, reg, mask))
    }

    /// A result is defined where all operands are.
    fn propagate(&mut self, frame: usize, step: &Step, mask: Mask) {
        let Some(data) = self.frames.get_mut(frame) else {
            return;
        };
        let undefined = step
            .reads
            .iter()
            .fold(0, |m, &reg| m | data.undefined(reg, mask));
        for &reg in &step.writes {
            data.mark(reg, mask & !undefined, true);
            data.mark(reg, undefined, false);
        }
    }

    /// A value computed for each lane of a mask.
    pub fn per_lane(mask: Mask, f: impl Fn(usize) -> u64) -> Lanes {
        let mut values = [0; WARP];
        fill(mask, &mut values, f);
        values
    }
}
