//! The ways into a loop and out of it.

use warpwright_flow::{Block, Cfg, Function as _, Transfer};
use warpwright_ptx::{Inst, Label, Operand, OperandId, Scope, View};

use crate::refusal::Refusal;

/// The ways into a loop and out of it, as places in the text.
pub(super) struct Around {
    pub(super) header: Block,
    /// The header's label: the first that stands there.
    pub(super) label: Label,
    /// The operands of branches from elsewhere to the header.
    pub(super) entries: Vec<OperandId>,
    /// Does control come from the loop where the text in front of the header ends?
    pub(super) falls_from_inside: bool,
    pub(super) exits: Vec<Exit>,
}

/// A way out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Exit {
    /// A branch to this label.
    Branch(OperandId, Label),
    /// Behind a branch that is not taken.
    Behind(Inst),
}

const ENDS: Refusal = Refusal::InTheWay("its loop may end the thread");
const PLACE: Refusal = Refusal::InTheWay("the ways into its loop or out of it have no labels");

impl Around {
    /// # Errors
    /// A way has no place where something can be added.
    pub(super) fn new(
        view: &View<'_>,
        cfg: &Cfg,
        blocks: &[Block],
        header: Block,
    ) -> Result<Around, Refusal> {
        let ways = Ways { view, cfg, blocks };
        let first = Inst::from_u32(cfg.first_inst(header).0);
        let body = view.body();
        let labels: Vec<Label> = (body.labels.keys())
            .filter(|&label| body.labels[label].at == first)
            .collect();
        let is_outer = |&label: &Label| body.labels[label].scope == Scope::from_u32(0);
        if first == Inst::from_u32(0) || !labels.iter().all(is_outer) {
            return Err(PLACE);
        }
        Ok(Around {
            header,
            label: *labels.first().ok_or(PLACE)?,
            entries: ways.entries(first)?,
            falls_from_inside: ways.falls_from_inside(first),
            exits: ways.exits()?,
        })
    }
}

struct Ways<'a> {
    view: &'a View<'a>,
    cfg: &'a Cfg,
    blocks: &'a [Block],
}

impl Ways<'_> {
    fn is_inside(&self, inst: Inst) -> bool {
        let at = warpwright_flow::Inst(inst.as_u32());
        self.blocks.contains(&self.cfg.block_of(at))
    }

    fn entries(&self, first: Inst) -> Result<Vec<OperandId>, Refusal> {
        let body = self.view.body();
        let mut entries = Vec::new();
        for inst in body.insts.keys().filter(|&inst| !self.is_inside(inst)) {
            let targets = self.view.targets(inst);
            let all = targets.iter().filter(|&&to| body.labels[to].at == first);
            let wanted = all.count();
            let before = entries.len();
            entries.extend(body.insts[inst].operands.ids().filter(|&id| {
                matches!(body.operands[id], Operand::Label(to) if body.labels[to].at == first)
            }));
            if entries.len() - before != wanted {
                return Err(Refusal::InTheWay("its loop is entered by a table"));
            }
        }
        Ok(entries)
    }

    fn falls_from_inside(&self, first: Inst) -> bool {
        let before = first.as_u32().checked_sub(1).map(Inst::from_u32);
        before.is_some_and(|before| self.is_inside(before) && self.falls_through(before))
    }

    fn falls_through(&self, inst: Inst) -> bool {
        let at = warpwright_flow::Inst(inst.as_u32());
        let goes_on = matches!(self.view.transfer(at), Transfer::Next | Transfer::Call);
        goes_on || self.view.is_predicated(at)
    }

    fn exits(&self) -> Result<Vec<Exit>, Refusal> {
        let body = self.view.body();
        let mut exits = Vec::new();
        for &block in self.blocks {
            if self.cfg.leaves(block) {
                return Err(ENDS);
            }
            let last = Inst::from_u32(self.cfg.last_inst(block).0);
            for id in body.insts[last].operands.ids() {
                if let Operand::Label(to) = body.operands[id]
                    && !self.is_inside(body.labels[to].at)
                {
                    exits.push(Exit::Branch(id, to));
                }
            }
            let next = Inst::from_u32(last.as_u32() + 1);
            if self.falls_through(last) && !self.is_inside(next) {
                exits.push(Exit::Behind(last));
            }
        }
        if exits.is_empty() {
            return Err(Refusal::InTheWay("its loop is never left"));
        }
        let branches = exits.iter().filter_map(|exit| match exit {
            Exit::Branch(_, to) => Some(*to),
            Exit::Behind(_) => None,
        });
        match branches.clone().count() == 0 || self.has_an_end(branches) {
            true => Ok(exits),
            false => Err(PLACE),
        }
    }

    /// Can blocks that lead to these labels stand behind the last instruction?
    fn has_an_end(&self, mut labels: impl Iterator<Item = Label>) -> bool {
        let body = self.view.body();
        let is_outer = |label: Label| body.labels[label].scope == Scope::from_u32(0);
        let last = body.insts.keys().next_back();
        labels.all(is_outer) && last.is_some_and(|last| !self.falls_through(last))
    }
}
