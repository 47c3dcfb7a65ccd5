//! Calls and returns.

use super::access::Trouble;
use super::block::Block;
use super::frame::PrivateSpace;
use super::warp::{MAX_DEPTH, Next, Wait, Warp};
use crate::fault::FaultKind;
use crate::lanes::{Mask, lanes_of, mask_where};
use crate::program::{Arg, Callee, Function, Op, ParamPlace, Src};

impl Warp {
    /// `call`.
    pub(super) fn call(
        &mut self,
        block: &mut Block<'_>,
        current: usize,
        mask: Mask,
        callee: &Callee,
        args: &[Arg],
        returns: &[Arg],
    ) -> Result<Next, Box<Trouble>> {
        let strand = self.strands[current].clone();
        match callee {
            Callee::Host(function) => {
                self.host_call(block, strand.frame, mask, *function, args, returns)?;
                Ok(Next::Fall)
            }
            Callee::Function(number) => self.enter_call(block, current, mask, *number, args),
            Callee::Indirect(src) => {
                let addresses = *self.value(block, strand.frame, *src);
                let first = Warp::first(mask);
                let same = mask & mask_where(|l| addresses[l] == addresses[first]);
                if same != mask {
                    // Different functions are called one after the other: the rest come back here.
                    self.split(current, mask & !same, strand.pc, Wait::Ready);
                }
                let Some(number) = block.program.image.function_at(addresses[first]) else {
                    let message =
                        format!("a call of {:#x}, where no function is", addresses[first]);
                    return Err(Trouble::new(FaultKind::BadTarget, first, message));
                };
                self.enter_call(block, current, same, number, args)
            }
        }
    }

    fn enter_call(
        &mut self,
        block: &mut Block<'_>,
        current: usize,
        mask: Mask,
        number: usize,
        args: &[Arg],
    ) -> Result<Next, Box<Trouble>> {
        let program = block.program;
        let from = self.strands[current].frame;
        let first = Warp::first(mask);
        let function: &Function = match program.functions.get(number) {
            Some(function) if function.params.len() == args.len() && !function.code.is_empty() => {
                function
            }
            _ => {
                let message =
                    "a call with another number of arguments, or of a function without a body";
                return Err(Trouble::new(FaultKind::BadTarget, first, message));
            }
        };
        if self.frames.get(from).is_some_and(|f| f.depth >= MAX_DEPTH) {
            let message = format!("more than {MAX_DEPTH} nested calls");
            return Err(Trouble::new(FaultKind::StackOverflow, first, message));
        }
        let Some(to) = self.enter(block, current, number, function, mask) else {
            return Ok(Next::Reschedule);
        };
        for (arg, place) in args.iter().zip(&function.params) {
            self.pass(block, mask, (from, *arg), (to, *place));
        }
        Ok(Next::Reschedule)
    }

    /// Copies an argument into a parameter.
    fn pass(
        &mut self,
        block: &Block<'_>,
        mask: Mask,
        (from, arg): (usize, Arg),
        (to, place): (usize, ParamPlace),
    ) {
        for lane in lanes_of(mask) {
            let (bytes, value) = match arg {
                Arg::Memory { offset, len } => {
                    let bytes = self
                        .frames
                        .get(from)
                        .map(|f| f.param_bytes(lane, offset, len));
                    let bytes = bytes.unwrap_or(&[]).to_vec();
                    let value = crate::memory::shared::read_le(&bytes, 0, bytes.len().min(8));
                    (bytes, value)
                }
                Arg::Value(src) => {
                    let value = self.value(block, from, src)[lane];
                    (value.to_le_bytes().to_vec(), value)
                }
            };
            let Some(frame) = self.frames.get_mut(to) else {
                return;
            };
            match place {
                ParamPlace::Memory { offset, len } => {
                    let len = bytes.len().min(len as usize);
                    frame
                        .private(PrivateSpace::Param)
                        .paste(lane, offset, &bytes[..len]);
                }
                ParamPlace::Register(reg) => {
                    frame.set_lane(reg, lane, value);
                    frame.mark(reg, 1 << lane, true);
                }
            }
        }
    }

    /// `ret`.
    pub(super) fn ret(
        &mut self,
        block: &mut Block<'_>,
        current: usize,
        mask: Mask,
    ) -> Result<Next, Box<Trouble>> {
        let strand = self.strands[current].clone();
        let program = block.program;
        let Some(caller) = self.frames.get(strand.frame).and_then(|f| f.caller) else {
            // `ret` in the kernel ends the thread.
            self.finish_copies(block, mask)?;
            self.exit(current, mask);
            return Ok(Next::Reschedule);
        };
        let Some(frame) = self.frames.get(strand.frame) else {
            return Ok(Next::Reschedule);
        };
        let places = program
            .functions
            .get(frame.function)
            .map_or(&[][..], |f| &f.returns);
        let call = self
            .frames
            .get(caller.frame)
            .and_then(|f| program.functions.get(f.function));
        let call = call
            .and_then(|f| f.code.get(caller.pc as usize))
            .map(|step| &step.op);
        if let Some(Op::Call { returns, .. }) = call {
            for (to, place) in returns.iter().zip(places) {
                self.take(mask, (strand.frame, *place), (caller.frame, *to));
            }
        }
        self.leave(strand.frame, mask);
        if mask == strand.mask {
            let strand = &mut self.strands[current];
            (strand.frame, strand.pc) = (caller.frame, caller.pc + 1);
        } else {
            self.strands[current].mask &= !mask;
            self.strands[current].pc += 1;
            let back = super::warp::Strand {
                frame: caller.frame,
                pc: caller.pc + 1,
                mask,
                ..strand
            };
            self.strands.push(back);
        }
        Ok(Next::Reschedule)
    }

    /// Copies a return parameter back to the caller.
    fn take(&mut self, mask: Mask, (from, place): (usize, ParamPlace), (to, arg): (usize, Arg)) {
        for lane in lanes_of(mask) {
            let Some(frame) = self.frames.get(from) else {
                return;
            };
            let bytes = match place {
                ParamPlace::Memory { offset, len } => frame.param_bytes(lane, offset, len).to_vec(),
                ParamPlace::Register(reg) => {
                    let value = frame.regs.get(reg as usize).map_or(0, |r| r[lane]);
                    value.to_le_bytes().to_vec()
                }
            };
            let Some(frame) = self.frames.get_mut(to) else {
                return;
            };
            match arg {
                Arg::Memory { offset, len } => {
                    let len = bytes.len().min(len as usize);
                    frame
                        .private(PrivateSpace::Param)
                        .paste(lane, offset, &bytes[..len]);
                }
                Arg::Value(Src::Reg(reg)) => {
                    let value = crate::memory::shared::read_le(&bytes, 0, bytes.len().min(8));
                    frame.set_lane(reg, lane, value);
                    frame.mark(reg, 1 << lane, true);
                }
                Arg::Value(Src::Const(_)) => {}
            }
        }
    }
}
