//! An innermost loop as a piece of text, and copies of it.

use std::collections::BTreeSet;

use warpwright_flow::{Block, Cfg, Function as _, Loop, Loops};
use warpwright_ptx::opcode::Control;
use warpwright_ptx::{Inst, Item, Label, Operand, Span, View};

use super::uniform;
use crate::refusal::Refusal;

/// An innermost loop that lies in one piece: from its header's label to the branch back at its end.
pub(in crate::ptx) struct Region<'v> {
    view: &'v View<'v>,
    header: Label,
    first: Inst,
    last: Inst,
    /// Labels in it, but for the header's.
    own: Vec<Label>,
    /// Its blocks in the order of the text.
    blocks: Vec<Block>,
}

/// How a copy is to be.
pub(super) struct Copy<'a> {
    /// What the copy's own labels end in.
    pub(super) suffix: Option<String>,
    /// Where the copy's ways back lead.
    pub(super) header: &'a str,
    /// Where the way out at the end leads, if another copy stands behind this one.
    pub(super) exit: Option<&'a str>,
    /// Does the branch at the end stay?
    pub(super) is_tested: bool,
}

const SHAPE: Refusal = Refusal::InTheWay("its loop does not lie in one piece of the text");
const ENTRIES: Refusal = Refusal::InTheWay("its loop is entered beside its header");

impl<'v> Region<'v> {
    /// # Errors
    /// It does not lie in one piece, is entered elsewhere, or declares something.
    pub(in crate::ptx) fn new(
        view: &'v View<'v>,
        cfg: &Cfg,
        loops: &Loops,
        of: Loop,
    ) -> Result<Region<'v>, Refusal> {
        if loops.is_irreducible(of) {
            return Err(ENTRIES);
        }
        let mut blocks = loops.blocks(of).to_vec();
        blocks.sort_by_key(|&block| cfg.first_inst(block));
        let header = loops.header(of);
        let (Some(&top), Some(&bottom)) = (blocks.first(), blocks.last()) else {
            return Err(SHAPE);
        };
        let (first, last) = (cfg.first_inst(top), cfg.last_inst(bottom));
        let is_whole = blocks
            .windows(2)
            .all(|pair| cfg.last_inst(pair[0]).0 + 1 == cfg.first_inst(pair[1]).0);
        if top != header || !is_whole {
            return Err(SHAPE);
        }
        let (first, last) = (Inst::from_u32(first.0), Inst::from_u32(last.0));
        let body = view.body();
        let mut at_header = body.labels.iter().filter(|(_, label)| label.at == first);
        let (Some((header, _)), None) = (at_header.next(), at_header.next()) else {
            return Err(SHAPE);
        };
        let is_inside = |label: Label| {
            let at = body.labels[label].at;
            first < at && at <= last
        };
        let own = body
            .labels
            .keys()
            .filter(|&label| is_inside(label))
            .collect();
        let region = Region {
            view,
            header,
            first,
            last,
            own,
            blocks,
        };
        region.has_one_entry()?;
        region.has_plain_items()?;
        region.ends_with_a_branch_back()?;
        Ok(region)
    }

    /// No branch from elsewhere leads to its labels, but to the header's.
    fn has_one_entry(&self) -> Result<(), Refusal> {
        let own: BTreeSet<Label> = self.own.iter().copied().collect();
        let outside = self.view.body().insts.keys().filter(|at| !self.holds(*at));
        let enters = |at: Inst| self.view.targets(at).iter().any(|to| own.contains(to));
        match outside.into_iter().any(enters) {
            true => Err(ENTRIES),
            false => Ok(()),
        }
    }

    /// What can stand there several times.
    fn has_plain_items(&self) -> Result<(), Refusal> {
        let span = self.span();
        let body = self.view.body();
        let mut depth = 0;
        for item in &body.items {
            let (at, is_plain) = match item {
                Item::Open(scope) => (body.scopes[*scope].span.start, true),
                Item::Close(scope) => (body.scopes[*scope].close.start, true),
                Item::Regs(id) => (body.reg_decls[*id].span.start, depth > 0),
                Item::Var(id) => (self.view.module().variables[*id].span.start, depth > 0),
                Item::BranchTable(id) => (body.branch_tables[*id].span.start, false),
                Item::CallTable(id) => (body.call_tables[*id].span.start, false),
                Item::Prototype(id) => (body.prototypes[*id].span.start, false),
                Item::Unknown(unknown) => (unknown.start, false),
                Item::Inst(_) | Item::Label(_) | Item::Loc(_) | Item::Pragma(..) => continue,
            };
            if at < span.start || span.end <= at {
                continue;
            }
            match item {
                Item::Open(_) => depth += 1,
                Item::Close(_) => depth -= 1,
                _ => {}
            }
            if !is_plain || depth < 0 {
                return Err(Refusal::InTheWay("its loop holds declarations or tables"));
            }
        }
        match depth {
            0 => Ok(()),
            _ => Err(SHAPE),
        }
    }

    /// The branch at the end leads to the header, and all others inside lead on or to the header.
    fn ends_with_a_branch_back(&self) -> Result<(), Refusal> {
        let body = self.view.body();
        let is_branch = |at: Inst| {
            let opcode = self.view.module().opcode(&body.insts[at]);
            matches!(opcode.control(), Control::Branch)
        };
        if !is_branch(self.last) || self.view.targets(self.last).as_slice() != [self.header] {
            return Err(SHAPE);
        }
        let leads_on = |at: Inst| {
            let targets = self.view.targets(at);
            targets.iter().all(|&to| {
                to == self.header || body.labels[to].at > at || body.labels[to].at < self.first
            })
        };
        match self.insts().all(leads_on) {
            true => Ok(()),
            false => Err(SHAPE),
        }
    }

    /// May its instructions stand in several places? Says whether threads meet in it.
    ///
    /// # Errors
    /// Others are called in it, or threads meet that do not go around alike.
    pub(super) fn may_be_copied(&self) -> Result<bool, Refusal> {
        let (module, body) = (self.view.module(), self.view.body());
        let calls = |at: Inst| matches!(module.opcode(&body.insts[at]).control(), Control::Call);
        if self.insts().any(calls) {
            return Err(Refusal::InTheWay("its loop calls a function"));
        }
        let meets = self.insts().any(|at| uniform::meets(self.view, at));
        match meets && !uniform::stays_together(self.view, self) {
            true => Err(Refusal::InTheWay(
                "threads meet in its loop, and might not all go around alike",
            )),
            false => Ok(meets),
        }
    }

    /// Its instructions, in the order of the text.
    pub(super) fn insts(&self) -> impl Iterator<Item = Inst> + use<> {
        (self.first.as_u32()..=self.last.as_u32()).map(Inst::from_u32)
    }

    /// The number of its instructions.
    pub(super) fn len(&self) -> usize {
        (self.last.as_u32() - self.first.as_u32()) as usize + 1
    }

    pub(super) fn last(&self) -> Inst {
        self.last
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub(super) fn holds(&self, at: Inst) -> bool {
        self.first <= at && at <= self.last
    }

    /// Do branches but the one at the end leave it or lead back?
    pub(super) fn has_other_ways(&self) -> bool {
        let body = self.view.body();
        let mut inner = self.insts().filter(|&at| at != self.last);
        inner.any(|at| {
            let leaves = matches!(
                self.view.transfer(warpwright_flow::Inst(at.as_u32())),
                warpwright_flow::Transfer::Exit
                    | warpwright_flow::Transfer::Return
                    | warpwright_flow::Transfer::Trap
            );
            leaves
                || self
                    .view
                    .targets(at)
                    .iter()
                    .any(|&to| to == self.header || !self.holds(body.labels[to].at))
        })
    }

    /// From the header's label to the branch at the end.
    pub(super) fn span(&self) -> Span {
        let body = self.view.body();
        Span::new(
            body.labels[self.header].span.start,
            body.insts[self.last].span.end,
        )
    }

    /// The header's label.
    pub(super) fn header(&self) -> &'v str {
        &self.view.body().labels[self.header].name
    }

    /// The header's label, and that ptxas is to leave what follows as it is.
    pub(super) fn begin(&self) -> String {
        format!("{}:\n\t.pragma \"nounroll\";\n", self.header())
    }

    /// The loop as it was, marked so.
    pub(super) fn left_alone(&self) -> String {
        self.begin()
            + &self.copy(&Copy {
                suffix: None,
                header: self.header(),
                exit: None,
                is_tested: true,
            })
    }

    /// The text behind the header's label, with other labels.
    pub(super) fn copy(&self, copy: &Copy<'_>) -> String {
        let (module, body) = (self.view.module(), self.view.body());
        let start = body.labels[self.header].span.end;
        let mut places: Vec<(Span, String)> = Vec::new();
        let renamed = |label: Label| -> Option<String> {
            let name = &body.labels[label].name;
            let suffix = copy.suffix.as_ref().filter(|_| self.own.contains(&label))?;
            Some(format!("{name}{suffix}"))
        };
        for &label in &self.own {
            if let Some(name) = renamed(label) {
                places.push((body.labels[label].span, format!("{name}:")));
            }
        }
        for item in &body.items {
            if let Item::Pragma(strings, span) = item
                && strings.iter().any(|text| text == "nounroll")
                && start <= span.start
                && span.end <= self.span().end
            {
                places.push((*span, String::new()));
            }
        }
        for at in self.insts().filter(|&at| at != self.last) {
            for id in body.insts[at].operands.ids() {
                let Operand::Label(to) = body.operands[id] else {
                    continue;
                };
                let name = match to == self.header {
                    true => Some(copy.header.to_owned()),
                    false => renamed(to),
                };
                places.extend(name.map(|name| (body.operand_span(id), name)));
            }
        }
        places.push((body.insts[self.last].span, self.end(copy)));
        places.sort_by_key(|(span, _)| span.start);
        let mut text = String::new();
        let mut from = start;
        for (span, new) in places {
            text.push_str(module.text(Span::new(from, span.start)));
            text.push_str(&new);
            from = span.end;
        }
        text.trim_start_matches('\n').to_owned()
    }

    /// The branch at the end of a copy.
    fn end(&self, copy: &Copy<'_>) -> String {
        let body = self.view.body();
        let data = &body.insts[self.last];
        let opcode = self.view.module().text(data.opcode_span);
        let Some(guard) = data.guard else {
            // The next copy follows.
            return match copy.exit {
                Some(_) => String::new(),
                None if copy.is_tested => format!("{opcode} {};", copy.header),
                None => String::new(),
            };
        };
        let name = body.reg_name(guard.reg);
        let sign = |negated: bool| if negated { "!" } else { "" };
        match copy.exit {
            _ if !copy.is_tested => String::new(),
            Some(exit) => format!("@{}{name} {opcode} {exit};", sign(!guard.negated)),
            None => format!("@{}{name} {opcode} {};", sign(guard.negated), copy.header),
        }
    }
}
