//! Loops around which all threads of a block go together, so that what they do together may stand in several places.
//!
//! A register is uniform if all that writes it computes from uniform ones what memory and the thread's place in its block
//! have no part in (the largest such set). Which way control came is left out: a barrier behind a branch that threads take
//! differently would be an error of the kernel's, and who checks the result does not leave it out.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Function as _, Transfer};
use warpwright_ptx::opcode::{Control, Op};
use warpwright_ptx::{Inst, Operand, Reg, Space, SpecialReg, View};

use super::region::Region;

/// Do all threads of a block that come to the loop together meet all the time at the same instructions?
pub(super) fn stays_together(view: &View<'_>, region: &Region<'_>) -> bool {
    let uniform = uniform(view);
    let body = view.body();
    let is_uniform = |at: Inst| {
        let guard = body.insts[at].guard;
        guard.is_none_or(|guard| uniform.contains(&guard.reg))
    };
    let meeting: Vec<Inst> = region.insts().filter(|&at| meets(view, at)).collect();
    let goes_along = |at: Inst| {
        let leaves = matches!(
            view.transfer(warpwright_flow::Inst(at.as_u32())),
            Transfer::Exit | Transfer::Return | Transfer::Trap
        );
        // Behind a branch that only some take, they come together before they meet.
        let skips = view.targets(at).iter().all(|&to| {
            let to = body.labels[to].at;
            let is_on = at < to && region.holds(to);
            is_on && !meeting.iter().any(|&meet| at < meet && meet < to)
        });
        let is_branch = matches!(
            view.module().opcode(&body.insts[at]).control(),
            Control::Branch
        );
        is_uniform(at) || (is_branch && skips && !leaves)
    };
    let mut deciding = region.insts().filter(|&at| {
        let control = view.module().opcode(&body.insts[at]).control();
        !matches!(control, Control::Next) || meets(view, at)
    });
    deciding.all(goes_along)
}

/// Do threads do something together there?
pub(super) fn meets(view: &View<'_>, at: Inst) -> bool {
    let effect = view.module().opcode(&view.body().insts[at]).effect();
    effect.convergent || effect.barrier
}

fn uniform(view: &View<'_>) -> BTreeSet<Reg> {
    let mut definitions: BTreeMap<Reg, Vec<Inst>> = BTreeMap::new();
    for index in 0..view.body().insts.len() as u32 {
        let inst = Inst::from_u32(index);
        for reg in view.defs(inst) {
            definitions.entry(reg).or_default().push(inst);
        }
    }
    let mut uniform: BTreeSet<Reg> = definitions.keys().copied().collect();
    loop {
        let before = uniform.len();
        let holds = |reg: &Reg| {
            definitions[reg]
                .iter()
                .all(|&inst| computes(view, inst, &uniform))
        };
        let kept: BTreeSet<Reg> = uniform.iter().copied().filter(holds).collect();
        uniform = kept;
        if uniform.len() == before {
            return uniform;
        }
    }
}

/// Does an instruction compute the same for all threads of a block from these registers?
fn computes(view: &View<'_>, inst: Inst, uniform: &BTreeSet<Reg>) -> bool {
    let body = view.body();
    let data = &body.insts[inst];
    let opcode = view.module().opcode(data);
    let is_parameter =
        opcode.op == Some(Op::Ld) && matches!(opcode.space, Some(Space::Param | Space::Const));
    let is_pure = opcode.effect().is_none() || is_parameter;
    let is_shared = |operand: &Operand| match operand {
        Operand::Special { reg, .. } => matches!(
            reg,
            SpecialReg::NTid | SpecialReg::CtaId | SpecialReg::NCtaId
        ),
        _ => true,
    };
    let guard = data.guard.is_none_or(|guard| uniform.contains(&guard.reg));
    is_pure
        && guard
        && opcode.control() == Control::Next
        && body.operands(inst).iter().all(is_shared)
        && view.uses(inst).iter().all(|reg| uniform.contains(reg))
}
