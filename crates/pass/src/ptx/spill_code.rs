//! The text of what a draft adds to a kernel: loads, stores and base addresses.

use warpwright_flow::Value;
use warpwright_ptx::spill as text;
use warpwright_ptx::{Dims, DirectiveKind, Edits, FuncId, Inst, Space, View};
use warpwright_regs::draft::{Draft, Origin, Role};
use warpwright_regs::frame::Frame;

use crate::ptx::facts::register;

/// What the text depends on.
pub(crate) struct SpillCode<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) draft: &'a Draft,
    /// Slots in shared memory, and the variable that they lie in.
    pub(crate) shared: Option<(&'a Frame, &'a str)>,
    /// The same in local memory.
    pub(crate) local: Option<(&'a Frame, &'a str)>,
    /// The exact block, if the kernel requires one.
    pub(crate) block: Option<[u32; 3]>,
    /// The name that a register has in the text.
    pub(crate) name: &'a dyn Fn(Value) -> String,
}

impl SpillCode<'_> {
    /// The lines of an instruction that the draft added.
    pub(crate) fn lines(&self, at: warpwright_flow::Inst) -> Vec<String> {
        match self.draft.origin(at) {
            Origin::Own(_) => Vec::new(),
            Origin::Bases => self.bases(at).unwrap_or_default(),
            Origin::Load { .. } | Origin::Store { .. } => self.access(at).into_iter().collect(),
        }
    }

    fn bases(&self, at: warpwright_flow::Inst) -> Option<Vec<String>> {
        let (frame, area) = self.shared?;
        let mut scratch = Vec::new();
        let mut bases = Vec::new();
        for &value in self.draft.defs(at) {
            match self.draft.role(value) {
                Role::Base(size) => bases.push(((self.name)(value), frame.stride(size))),
                _ => scratch.push((self.name)(value)),
            }
        }
        let scratch = [&**scratch.first()?, &**scratch.get(1)?];
        let named = bases.iter().map(|(name, stride)| (&**name, *stride));
        let bases: Vec<(&str, u32)> = named.collect();
        Some(text::bases(area, self.block, scratch, &bases))
    }

    fn access(&self, at: warpwright_flow::Inst) -> Option<String> {
        let all = || {
            self.draft
                .defs(at)
                .iter()
                .chain(self.draft.uses(at))
                .copied()
        };
        let find = |is_it: fn(Role) -> bool| all().find(|&value| is_it(self.draft.role(value)));
        let value = find(|role| matches!(role, Role::Register(_)))?;
        let slot = find(|role| matches!(role, Role::Slot(_)))?;
        let within = |place: Option<(&Frame, &str)>| {
            let (frame, area) = place?;
            Some((frame.offset(frame.cell(slot)?), area.to_owned()))
        };
        let (space, offset, base) = match within(self.shared) {
            Some((offset, _)) => {
                let base = find(|role| matches!(role, Role::Base(_)))?;
                (Space::Shared, offset, (self.name)(base))
            }
            None => within(self.local).map(|(offset, area)| (Space::Local, offset, area))?,
        };
        let Role::Register(of) = self.draft.role(value) else {
            return None;
        };
        let bits = self.view.body().reg_type(register(of)).bits();
        let name = (self.name)(value);
        Some(match self.draft.origin(at) {
            Origin::Load { .. } => text::load(space, bits, &name, &base, offset),
            _ => text::store(space, bits, &name, &base, offset),
        })
    }
}

/// Promises that no block is larger.
pub(crate) fn promise(edits: &mut Edits<'_>, kernel: FuncId, threads: u32) {
    let dims = Dims([threads, 1, 1].into_iter().collect());
    edits.set_directive(kernel, &DirectiveKind::MaxNtid(dims));
}

/// The kernel's instruction of this number.
pub(crate) fn inst(of: warpwright_flow::Inst) -> Inst {
    Inst::from_u32(of.0)
}
